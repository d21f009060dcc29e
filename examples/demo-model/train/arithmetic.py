"""Skills about numbers. The held-out split is by operands: see `skills.reserved`."""

from orders import HASH
from skills import Item, cap, number, phrase, pick

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def words(n):
    if n < 20:
        return ONES[n]
    if n == 100:
        return "one hundred"
    return TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")


ADD = ["What is {a} + {b}?", "What is {a} plus {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} = ?", "How much is {a} plus {b}?", "Add {a} and {b}.", "Calculate {a} + {b}.",
       "What's {a} plus {b}?", "How much is {a} + {b}?", "What do you get if you add {a} and {b}?", "Can you add {a} and {b}?", "What is the sum of {a} and {b}?",
       "{a} plus {b}?", "Compute {a} + {b}.", "~Please work out {a} + {b}.", "~Tell me {a} plus {b}.", "~What does {a} + {b} make?", "~If I add {a} and {b}, what do I get?", "{a} plus {b} is what?", "{a} plus {b} makes?", "What makes {a} + {b}?", "How much do {a} and {b} make?", "I add {b} to {a}. What do I get?", "Add {b} to {a}.", "Find {a} + {b}.", "{a} + {b} is how much?", "{a} and {b} more is what?", "What number is {a} plus {b}?", "Sum up {a} and {b}.", "Can you do {a} + {b}?", "The result of {a} + {b}?", "Solve: {a} + {b}.", "Let x be {a} + {b}. What is x?", "{a} + {b} equals?", "How much does {a} + {b} give?", "Together {a} and {b} are how many?", "^{a} and {b} together make what?", "^What will I get for {a} + {b}?", "^Could you solve {a} + {b}?", "^I have to add {a} and {b}. What is the result?"]
SUB = ["What is {a} - {b}?", "What is {a} minus {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} = ?", "How much is {a} minus {b}?", "Subtract {b} from {a}.", "Calculate {a} - {b}.",
       "What's {a} minus {b}?", "How much is {a} - {b}?", "Take {b} away from {a}.", "{a} minus {b}?", "Compute {a} - {b}.",
       "~Please work out {a} - {b}.", "~Tell me {a} minus {b}.", "~What does {a} - {b} make?", "{a} minus {b} is what?", "{a} minus {b} makes?", "{a} - {b} is how much?", "What remains of {a} if {b} are taken away?", "I have {a} and lose {b}. How much is left?", "Find {a} - {b}.", "What number is {a} minus {b}?", "Can you do {a} - {b}?", "The result of {a} - {b}?", "Solve: {a} - {b}.", "{a} - {b} equals?", "How much does {a} - {b} give?", "{a} less {b} is what?", "From {a} take {b}.", "^What will I get for {a} - {b}?", "^Could you solve {a} - {b}?", "^If I take {b} from {a}, what is left?"]
MUL = ["What is {a} * {b}?", "What is {a} times {b}?", "{a} * {b}", "{a} x {b}", "{a} times {b} = ?", "How much is {a} times {b}?", "Multiply {a} by {b}.", "Calculate {a} * {b}.",
       "What's {a} times {b}?", "How much is {a} x {b}?", "Multiply {a} and {b}.", "{a} times {b}?", "What is the product of {a} and {b}?",
       "~Please work out {a} * {b}.", "~Tell me {a} times {b}.", "~What does {a} x {b} make?", "{a} times {b} is what?", "{a} times {b} makes?", "{a} * {b} is how much?", "Find {a} * {b}.", "What number is {a} times {b}?", "Can you do {a} * {b}?", "The result of {a} * {b}?", "Solve: {a} x {b}.", "{a} * {b} equals?", "How much does {a} * {b} give?", "How much are {a} times {b}?", "^What will I get for {a} * {b}?", "^Could you solve {a} * {b}?", "^I have to multiply {a} and {b}. What is the result?"]


def steps(a, op, b):
    """How the thinking part works a sum out."""
    c = a + b if op == "+" else a - b
    if a < 10 and b < 10 or op == "+" and (a < 10 or b < 10) and a % 10 + b % 10 < 10:
        return f"{a} {op} {b} = {c}."
    ta, tb, oa, ob = a // 10 * 10, b // 10 * 10, a % 10, b % 10
    if op == "+":
        return f"Tens: {ta} + {tb} = {ta + tb}. Ones: {oa} + {ob} = {oa + ob}. Together: {ta + tb} + {oa + ob} = {c}."
    return f"First {a} - {tb} = {a - tb}. Then {a - tb} - {ob} = {c}."


def arithmetic(r, held, wide=False):
    """Sums within 0..20, two digits with one digit, the times table; `wide`: any two digits (when thinking)."""

    def pair():
        if wide:
            return r.randint(10, 99), r.randint(2, 99)
        if r.random() < 0.75:
            return r.randint(0, 20), r.randint(0, 20)
        return r.randint(10, 99), r.randint(1, 9)

    kind = r.random()
    if kind < 0.42:
        def draw():
            x, y = pair()
            return (x, "+", y) if wide or x <= 20 or r.random() < 0.7 else (y, "+", x)

        a, _, b = number(r, held, draw)
        ask, c, op = phrase(r, held, ADD, ["{a} + {b}", "{a} plus {b}", "the sum of {a} and {b}"], 0.3, "add"), a + b, "+"
    elif kind < 0.74:
        def draw():
            x, y = pair()
            return max(x, y), "-", min(x, y)

        a, _, b = number(r, held, draw)
        ask, c, op = phrase(r, held, SUB, ["{a} - {b}", "{a} minus {b}"], 0.3, "sub"), a - b, "-"
    else:
        a, b = r.randint(0, 10), r.randint(0, 10)
        ask, c, op = phrase(r, held, MUL, ["{a} * {b}", "{a} times {b}", "{a} x {b}", "the product of {a} and {b}"], 0.3, "mul"), a * b, "*"
    think = steps(a, op, b) if op != "*" else f"From the times table: {a} * {b} = {c}."
    return Item("arithmetic", ask.format(a=a, b=b), f"{a} {op} {b} = {c}.", str(c), think)


def arithmetic_wide(r, held):
    return arithmetic(r, held, True)


def word_problem(r, held):
    import facts as W

    from talk import name_of

    name = name_of(r, held) if held == HASH else r.choice(W.NAMES)
    thing = r.choice([p[1] for p in W.PLURALS[:40]])
    a, _, b = number(r, held, lambda: (r.randint(2, 20), "story", r.randint(2, 20)), pair=True)
    if r.random() < 0.5:
        ask = pick(r, held, ["{n} has {a} {t} and gets {b} more. How many {t} does {n} have now?", "{n} has {a} {t}. {n} buys {b} more. How many {t} are there?",
                             "There are {a} {t}. Then {b} more come. How many {t} are there?", "{n} had {a} {t} and got {b} more. How many {t} does {n} have?", "{n} finds {a} {t} and then {b} more. How many {t} are there?", "~{n} had {a} {t} and found {b} more. How many {t} does {n} have?", "{n} owns {a} {t}. A friend brings {b} more. How many {t} are there now?", "On the table are {a} {t}. {n} adds {b}. How many {t} are on the table?", "{n} sees {a} {t} and later {b} more. How many {t} did {n} see?", "{n} bought {a} {t} and then {b} more. How many {t} is that in all?", "^First {n} has {a} {t}, then {n} gets {b} more. How many {t} is that?", "^In a box are {a} {t}. {n} puts in {b} more. How many {t} are in the box?"], "story more")
        c, op = a + b, "+"
    else:
        a, b = max(a, b), min(a, b)
        ask = pick(r, held, ["{n} has {a} {t} and gives away {b}. How many {t} are left?", "{n} has {a} {t}. {n} loses {b}. How many {t} are left?",
                             "There are {a} {t}. Then {b} go away. How many {t} are left?", "{n} had {a} {t} and lost {b}. How many {t} does {n} have?", "{n} has {a} {t} and sells {b}. How many are left?", "~{n} had {a} {t} and sold {b}. How many {t} are left?", "On the table are {a} {t}. {n} takes {b}. How many {t} are left on the table?", "{n} owned {a} {t}. Now {b} are gone. How many {t} does {n} still have?", "From {a} {t}, {n} uses {b}. How many {t} remain?", "{n} bought {a} {t} and gave {b} to a friend. How many {t} are left?", "^First {n} has {a} {t}, then {n} loses {b}. How many {t} are left?", "^In a box are {a} {t}. {n} takes away {b}. How many {t} are in the box?"], "story less")
        c, op = a - b, "-"
    return Item("word problem", ask.format(n=name, a=a, b=b, t=thing), f"{a} {op} {b} = {c}, so the answer is {c}.", str(c), f"I have to work out {a} {op} {b}. {steps(a, op, b)}")


def compare(r, held):
    def draw():
        x = r.randint(0, 99)
        y = r.randint(0, 99) if r.random() < 0.7 else min(99, x + r.randint(1, 9))
        return (x, "?", y) if x != y else (x, "?", (y + 1) % 100)

    a, _, b = number(r, held, draw, pair=True)
    if r.random() < 0.5:
        a, b = b, a
    if r.random() < 0.6:
        ask = pick(r, held, ["Which is bigger, {a} or {b}?", "Which number is larger: {a} or {b}?", "What is more, {a} or {b}?", "Which of {a} and {b} is bigger?", "Name the bigger number: {a} or {b}.", "Is {a} or {b} bigger?", "Which one is bigger: {a} or {b}?", "Which of these is bigger, {a} or {b}?", "{a} or {b}: which is bigger?", "~Which of the two is bigger: {a} or {b}?", "~Tell me the larger number, {a} or {b}.", "{a} and {b}: which one is bigger?", "What is the bigger number, {a} or {b}?", "Give me the bigger one of {a} and {b}.", "Compare {a} and {b}. Which is bigger?", "Is {a} bigger or is {b} bigger?", "Say the larger of {a} and {b}.", "What is bigger, {a} or {b}?", "Between {a} and {b}, which is larger?", "Which is more: {a} or {b}?", "^Out of {a} and {b}, which is bigger?", "^I have {a} and {b}. Which number is bigger?"], "bigger")
        c, w = max(a, b), "bigger"
    else:
        ask = pick(r, held, ["Which is smaller, {a} or {b}?", "Which number is smaller: {a} or {b}?", "What is less, {a} or {b}?", "Which of {a} and {b} is smaller?", "Name the smaller number: {a} or {b}.", "Is {a} or {b} smaller?", "Which one is smaller: {a} or {b}?", "Which of these is smaller, {a} or {b}?", "{a} or {b}: which is smaller?", "~Which of the two is smaller: {a} or {b}?", "~Tell me the smaller number, {a} or {b}.", "{a} and {b}: which one is smaller?", "What is the smaller number, {a} or {b}?", "Give me the smaller one of {a} and {b}.", "Compare {a} and {b}. Which is smaller?", "Is {a} smaller or is {b} smaller?", "Say the smaller of {a} and {b}.", "What is smaller, {a} or {b}?", "Between {a} and {b}, which is smaller?", "Which is less: {a} or {b}?", "^Out of {a} and {b}, which is smaller?", "^I have {a} and {b}. Which number is smaller?"], "smaller")
        c, w = min(a, b), "smaller"
    other = a + b - c
    return Item("compare", ask.format(a=a, b=b), f"{c} is {w} than {other}.", str(c), f"I compare {a} and {b}. {c} is {w}.")


def neighbour(r, held):
    n, _ = number(r, held, lambda: (r.randint(1, 199), "next"))
    if r.random() < 0.5:
        ask = phrase(r, held, ["What number comes after {n}?", "Which number follows {n}?", "What comes after {n}?", "Tell me the number after {n}.", "~Name the number right after {n}.", "~Which number is next after {n}?", "{n}, and then which number?", "What is one more than {n}?", "The number after {n} is what?", "Which number will come after {n}?", "Behind {n} is which number?", "Count on by one from {n}.", "^Counting up, which number comes after {n}?", "^Which number do I say after {n}?"], ["the number after {n}", "the next number after {n}", "the number that follows {n}"], kind="number after")
        return Item("next number", ask.format(n=n), f"{n + 1} comes after {n}.", str(n + 1), f"{n} + 1 = {n + 1}.")
    ask = phrase(r, held, ["What number comes before {n}?", "Which number is before {n}?", "What comes before {n}?", "Tell me the number before {n}.", "~Name the number right before {n}.", "What is one less than {n}?", "The number before {n} is what?", "Which number comes just before {n}?", "{n} comes after which number?", "Count back by one from {n}.", "^Counting up, which number comes before {n}?", "^Which number do I say before {n}?"], ["the number before {n}", "the number that comes before {n}"], kind="number before")
    return Item("next number", ask.format(n=n), f"{n - 1} comes before {n}.", str(n - 1), f"{n} - 1 = {n - 1}.")


def count(r, held):
    a, _, b = number(r, held, lambda: (r.randint(0, 40), "to", r.randint(2, 11)))
    b += a
    if r.random() < 0.7:
        run = range(a, b + 1)
        ask = pick(r, held, ["Count from {a} to {b}.", "Can you count from {a} to {b}?", "Please count from {a} up to {b}.", "count {a} to {b}", "Count up from {a} to {b}.", "Go from {a} to {b}.", "Say the numbers from {a} to {b}.", "Begin with {a} and count up to {b}.", "~Start at {a} and count to {b}.", "~Would you count from {a} to {b}?", "Show me how you count from {a} to {b}.", "All numbers from {a} to {b}, please.", "Write the numbers from {a} to {b}.", "Count from {a} and stop at {b}.", "I want you to count from {a} to {b}.", "Try to count from {a} to {b}.", "Name the numbers from {a} to {b}.", "Which numbers are there from {a} to {b}?", "Count: {a} to {b}.", "^Let me hear you count from {a} to {b}.", "^List the numbers from {a} to {b}."], "count up").format(a=a, b=b)
    else:
        run = range(b, a - 1, -1)
        ask = pick(r, held, ["Count down from {b} to {a}.", "Count backwards from {b} to {a}.", "Can you count down from {b} to {a}?", "Go down from {b} to {a}.", "Begin with {b} and count down to {a}.", "Say the numbers backwards from {b} to {a}.", "~Start at {b} and count down to {a}.", "~Please go backwards from {b} to {a}.", "Count back from {b} to {a}.", "Show me how you count down from {b} to {a}.", "Write the numbers from {b} down to {a}.", "Count down from {b} and stop at {a}.", "All numbers from {b} down to {a}, please.", "Name the numbers from {b} back to {a}.", "^Let me hear you count down from {b} to {a}.", "^List the numbers down from {b} to {a}."], "count down").format(a=a, b=b)
    text = ", ".join(map(str, run))
    return Item("counting", ask, text + ".", text, f"I count in steps of one from {run[0]} to {run[-1]}.")


def number_words(r, held):
    n = r.randint(0, 100)
    w = words(n)
    if r.random() < 0.5:
        ask = phrase(r, held, ["Write {n} in words.", "How do you write {n} in words?", "Write the number {n} as a word.", "{n} in words", "Turn {n} into words.", "Say {n} in words.", "~Put the number {n} into words.", "~What is {n} in words?", "How do I say {n} in words?", "{n} written in words?", "I want {n} in words.", "Which words do I write for {n}?", "Give me {n} in words.", "Can you write {n} in words?", "^How is {n} written in words?", "^Spell out {n} in words."], ["{n} in words", "the word for {n}"], 0.3, "in words")
        return Item("number words", ask.format(n=n), f"{n} in words is {w}.", w, f"{n} is {w}.")
    ask = phrase(r, held, ["Write {w} as a number.", "Write {w} in digits.", "What is {w} in digits?", "Turn {w} into digits.", "Write {w} with digits.", "Which number do I write for {w}?", "{w} as a number", "~Put {w} into digits.", "~Which number is {w}?", "How do I write {w} as a number?", "{w} written in digits?", "I want {w} in digits.", "Give me {w} in digits.", "Can you write {w} in digits?", "{w}: which number is that in digits?", "Which digits are {w}?", "^How is {w} written in digits?", "^Which digits do I write for {w}?"], ["{w} in digits", "{w} as a number", "the number {w} in digits"], 0.3, "in digits")
    return Item("number words", ask.format(w=w), f"{cap(w)} in digits is {n}.", str(n), f"{cap(w)} is {n}.")


def even(r, held):
    n, _ = number(r, held, lambda: (r.randint(0, 99), "even"))
    ask = pick(r, held, ["Is {n} even or odd?", "Is {n} odd or even?", "Is the number {n} even or odd?", "{n}: even or odd?", "Can you tell me if {n} is odd or even?", "Even or odd: {n}?", "~Tell me if {n} is even or odd.", "~Would you call {n} odd or even?", "Is {n} an even or an odd number?", "Decide if {n} is even or odd.", "{n}, odd or even?", "What is {n}, even or odd?", "Do you know if {n} is even or odd?", "Say if {n} is odd or even.", "Check if {n} is even or odd.", "^The number {n}, is it even or odd?", "^I have the number {n}. Is it odd or even?"], "even")
    w = "odd" if n % 2 else "even"
    return Item("even or odd", ask.format(n=n), f"{n} is {w}.", w, f"The last digit of {n} is {n % 10}, so it is {w}.")


def sort(r, held):
    n = r.randint(3, 4)
    xs = list(number(r, held, lambda: tuple(r.sample(range(0, 30), n))))
    ask = pick(r, held, ["Sort these numbers: {x}.", "Put these numbers in order: {x}.", "Sort {x}.", "Order these from small to big: {x}.", "Order these numbers: {x}.", "Arrange these numbers: {x}.", "Sort {x} from small to big.", "Put {x} in order from small to big.", "Can you arrange {x}?", "Sort these, small ones first: {x}.", "Can you sort {x}?", "From small to big: {x}.", "Put {x} in order.", "~Bring these numbers into order: {x}.", "~Arrange {x} from small to big.", "I have {x}. Sort them.", "Please sort: {x}.", "Which order do {x} have?", "Sort the list {x}.", "{x}: sort these.", "{x}: which order is right?", "Write {x} in order.", "List {x} in order.", "Could you put {x} in order?", "Smallest number first: {x}.", "What is the right order of {x}?", "Order: {x}.", "The numbers {x} should be sorted.", "Make an ordered list of {x}.", "Can you order these numbers for me: {x}?", "^Here are some numbers: {x}. Please sort them.", "^How do I sort {x}?", "^Start with the smallest: {x}."], "sort")
    out = ", ".join(map(str, sorted(xs)))
    return Item("sorting", ask.format(x=", ".join(map(str, xs))), out + ".", out, f"The smallest is {min(xs)}, the biggest is {max(xs)}.")
