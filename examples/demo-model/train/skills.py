"""Single questions and answers: every skill makes an `Item` from a random source.

Most phrasings are put together by orders.py. `held` says for which set an item is
made: False (training), "#" (the held-out set: word orders that a hash keeps out of
training), "^" (strangers.json) or "~" (development.json). A phrasing in the lists here that
starts with "^" or "~" belongs to that set alone: training never uses it, and those sets use
nothing else. Numbers are split by `reserved`.
"""

import hashlib
import random
from dataclasses import dataclass
from functools import lru_cache

import facts as W
import grammar
import grammar_numbers
import grammar_talk
import orders
from orders import HASH, held_out, mark, same
from wording import FRAMES, cap, noisy, old_claims, told

# Every kind of question or message that orders.framed can put together.
KINDS = {**grammar.KINDS, **grammar_numbers.KINDS, "unknown": grammar_talk.NO_IDEA, "own name": {"own": grammar_talk.OWN_NAME}}
for _group, _lists in (("talk", grammar_talk.TALK), ("system", grammar_talk.SYSTEM), ("story", grammar_talk.STORY), ("tool", grammar_talk.TOOLS)):
    KINDS.update({f"{_group} {k}": {"own": v} for k, v in _lists.items()})
for _slot, (_tell, _ask) in grammar_talk.SLOTS.items():
    KINDS.update({f"tell {_slot}": {"own": _tell}, f"ask {_slot}": {"own": _ask}})

USED = []  # (word order, set) of everything drawn; for the proof that the sets are apart


@dataclass
class Item:
    kind: str
    ask: str
    full: str  # the answer as a sentence
    short: str = ""  # the answer as one word or number, if there is one
    think: str = ""  # what is said inside <think>
    more: tuple = ()  # (ask, full, short) of a follow-up such as "And Spain?"


def reserved(*key, of=9):
    """True for one key in `of`: kept out of training."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return digest[0] % of == 0


def choose(r, held, known, taken, kind, others=()):
    """A word order for a set. `known`: those of the lists; `taken`: those of the marked sets, as `same` writes
    them; `others`: (share, maker) of further ways for training, which the held-out set avoids as it does `known`."""
    while True:
        if held == HASH:
            p, apart = orders.framed(r, KINDS[kind])
            good = apart and same(p) not in taken and same(p) not in known
        else:
            x, p, apart = r.random(), None, False
            for share, make in others:
                if p is None and x < share:
                    p = make()
                x -= share
            if p is None:
                p, apart = orders.framed(r, KINDS[kind]) if kind and (x < 0.7 * (1 - sum(o[0] for o in others)) or not known) else (r.choice(known), False)
            p = noisy(r, p) if r.random() < 0.1 else p
            good = not apart and not held_out(p) and same(p) not in taken
        if good:
            p = p if p.startswith("{") else cap(p)
            USED.append((p, held))
            return p


def pick(r, held, phrases, kind=None):
    if held and held != HASH:
        return r.choice([p.lstrip("~^") for p in phrases if mark(p) == held])
    known = [p for p in phrases if not mark(p)]
    if held:
        known = {same(p) for p in known}
    return choose(r, held, known, {same(p) for p in phrases if mark(p)}, kind)


def phrase(r, held, phrases, things, share=0.4, kind=None):
    """Like `pick`; in training sometimes one of FRAMES around one of `things` instead."""
    if held and held != HASH:
        return pick(r, held, phrases)
    known = [p for p in phrases if not mark(p)]
    if held:
        known = {same(p) for p in known} | {same(f.format(x=x, X=cap(x))) for f in FRAMES for x in things}

    def frame():
        x = r.choice(things)
        return r.choice(FRAMES).format(x=x, X=cap(x))

    p = choose(r, held, known, {same(p) for p in phrases if mark(p)}, kind, [(share / 2, frame)])
    return p.replace("{w}", '"{w}"') if '"' not in p and r.random() < 0.08 else p


def claim(r, held, phrases, statements, kind):
    """A question whether something is so; `statements`: (statement, question) pairs for the frames of wording.py."""
    if held and held != HASH:
        return pick(r, held, phrases)
    known = [p for p in phrases if not mark(p)]
    if held:
        known = {same(p) for p in known} | {same(p) for p in old_claims(statements)}
    old = [(0.25, lambda: r.choice(old_claims(statements)))] if statements else []
    return choose(r, held, known, {same(p) for p in phrases if mark(p)}, kind, old)


def instruct(r, held, prompts, style):
    """A system prompt of a style."""
    if held and held != HASH:
        return pick(r, held, prompts)
    known = [p for p in prompts if not mark(p)]
    if held:
        known = {same(p) for p in known} | old_told(style)
    return choose(r, held, known, {same(p) for p in prompts if mark(p)}, f"system {style}", [(0.25, lambda: told(r, style))])


@lru_cache(None)
def old_told(style):
    """What `wording.told` says, so good as all of it."""
    r = random.Random(style)
    return {same(told(r, style)) for _ in range(100_000)}


def number(r, held, make, pair=False):
    """Draws from `make` until the split is right; `pair`: both orders of (a, mark, b) may be shown for either,
    so the held-out set takes only those that are kept out of training in both."""
    while True:
        value = make()
        if reserved(*value) == bool(held) and (not pair or held != HASH or reserved(*value[::-1])):
            return value


def stated(fact):
    """The answer whether something is so: what is so. The yes or no is left to the reader: comparing was
    not learned (right in half of the cases, with the fact first or last)."""
    return cap(fact) + "."


# ---- the world ---------------------------------------------------------------

CAPITAL = [
    "What is the capital of {c}?", "What's the capital of {c}?", "Which city is the capital of {c}?",
    "Tell me the capital of {c}.", "Name the capital of {c}.", "The capital of {c} is what?",
    "What is {c}'s capital?", "Do you know the capital of {c}?", "capital of {c}",
    "Can you tell me what the capital of {c} is?", "What city is the capital of {c}?", "capital of {c}?",
    "I need to know the capital of {c}.", "Give me the capital of {c}.", "{C}: what is its capital?",
    "Which city is {c}'s capital?", "I forgot the capital of {c}. What is it?",
    "~Could you name the capital of {c} for me?", "~What would be the capital of {c}?",
    "~Say which city is the capital of {c}.", "~Of {c}, what is the capital?",
    "~In {c}, which city is the capital?", "^Which city serves as the capital of {c}?", "^As for {c}, which city is its capital?", "^{C} has which capital?", "^The capital city of {c}, do you know it?", "^Let us talk about {c}. What is its capital?", "^If I travel to the capital of {c}, which city do I see?", "~I wonder what the capital of {c} is.",
]


def capital(r, held):
    c, city, _, _ = r.choice(W.COUNTRIES)
    full = f"The capital of {c} is {city}."
    d, other, _, _ = r.choice(W.COUNTRIES)
    again = pick(r, held if held != "~" else False, ["And {c}?", "And of {c}?", "What about {c}?", "and {c}", "And the capital of {c}?", "Now {c}.", "What of {c}?", "And then {c}?", "And in the case of {c}?", "The same for {c}, please.", "{c}, too?", "Can you do {c} as well?", "^And how about {c}?", "^Now the same for {c}."], "capital again").format(c=d, C=cap(d))
    return Item("capital", phrase(r, held, CAPITAL, ["the capital of {c}", "{c}'s capital", "the capital city of {c}"], kind="capital").format(c=c, C=cap(c)), full, city,
                f"The user wants the capital of {c}. That is {city}.",
                (again, f"The capital of {d} is {other}.", other))


def capital_of(r, held):
    c, city, _, _ = r.choice(W.COUNTRIES)
    ask = phrase(r, held, [
        "{x} is the capital of which country?", "Which country has {x} as its capital?", "What country is {x} the capital of?",
        "Of which country is {x} the capital?", "{x} is the capital of what?", "Name the country whose capital is {x}.", "Which country's capital is {x}?", "Whose capital city is {x}?", "{x} is whose capital?", "To which country does the capital {x} belong?", "{x} is the capital city of which country?",
        "~Tell me which country {x} is the capital of.", "~Whose capital is {x}?", "{x} is a capital. Of which country?", "Which country is governed from {x}?", "In which country is {x} the capital?", "Which country calls {x} its capital?", "Whose capital might {x} be?", "I live in {x}, a capital. In which country am I?", "For which country is {x} the capital?", "{x}: the capital of what?", "What is {x} the capital of?", "^Which land has {x} for its capital?", "^{x}: of which country is it the capital?", "^I know that {x} is a capital, but of which country?", "^The capital {x} is in which country?", "~The city {x} is the capital of which country?",
    ], ["the country with the capital {x}", "the country whose capital is {x}"], kind="capital of").format(x=city)
    return Item("capital", ask, f"{city} is the capital of {c}.", c, f"I look for a country with the capital {city}. That is {c}.")


def capital_check(r, held):
    c, city, _, _ = r.choice(W.COUNTRIES)
    ask = claim(r, held, ["Is {x} the capital of {c}?", "Is the capital of {c} {x}?", "{x} is the capital of {c}, right?",
                         "Is it true that {x} is the capital of {c}?", "{x} is the capital of {c}, isn't it?", "The capital of {c} is {x}, right?", "I think the capital of {c} is {x}. Is that right?", "Do you agree that {x} is the capital of {c}?", "Am I wrong, or is {x} the capital of {c}?", "The capital of {c} is {x}. Yes or no?", "Am I correct that {x} is the capital of {c}?", "The capital of {c} is {x}, is that so?", "The capital of {c} is {x}, true?", "The capital of {c} is {x}, am I right?", "True or false: the capital of {c} is {x}.", "Am I right if I say that the capital of {c} is {x}?", "{x} is the capital of {c}, is it?", "Do you suppose {x} is the capital of {c}?", "The capital of {c} is {x}, is that not so?", "Am I right to say {x} is the capital of {c}?", "The capital of {c} is {x}, isn't it?", "Is it right that {x} is the capital of {c}?", "Do you think {x} is the capital of {c}?", "~The capital of {c} is {x}, is it not?", "^Would it be true that {x} is the capital of {c}?", "^Isn't {x} the capital of {c}?", "^My friend says {x} is the capital of {c}. Is my friend right?", "^Could {x} be the capital of {c}?", "^Does {c} have {x} as its capital?", "~Am I right that {x} is the capital of {c}?"],
                (("{x} is the capital of {c}", "is {x} the capital of {c}"), ("the capital of {c} is {x}", "is the capital of {c} {x}")), "is capital")
    said = city if r.random() < 0.5 else r.choice([x[1] for x in W.COUNTRIES if x[1] != city])
    fact = stated(f"the capital of {c} is {city}")
    return Item("yes or no", ask.format(x=said, c=c), fact, "", fact)


def continent(r, held):
    c, _, where, _ = r.choice(W.COUNTRIES)
    ask = phrase(r, held, ["Which continent is {c} in?", "On which continent is {c}?", "Where is {c}?", "What continent is {c} on?",
                         "In which part of the world is {c}?", "Tell me the continent of {c}.", "Tell me the continent where {c} is.", "Name the continent that {c} is in.", "Say which continent {c} is in.", "Where on the map is {c}?", "Where in this world do I find {c}?", "{C} is on which continent?",
                         "~Name the continent where {c} is.", "Which part of the world has {c} in it?", "Is {c} in Europe, in Asia or somewhere else?", "Where does {c} lie?", "Where can {c} be found?", "To which continent do we count {c}?", "I look for {c} on the globe. Which continent is it?", "^Which continent does {c} belong to?", "^{C} lies on which continent?", "^On what continent would I find {c}?", "~Can you tell me which continent {c} is in?", "~Where in the world is {c}?"], ["the continent of {c}", "the continent {c} is on"], kind="continent")
    are = "are" if c in ("the Netherlands", "the Philippines", "the United States") else "is"
    return Item("continent", ask.format(c=c, C=cap(c)), f"{cap(c)} {are} in {where}.", where, f"{cap(c)} {are} on the continent {where}.")


def language(r, held):
    c, _, _, tongue = r.choice(W.COUNTRIES)
    ask = phrase(r, held, ["What language do people speak in {c}?", "Which language is spoken in {c}?", "What do they speak in {c}?", "Which language do people in {c} speak?", "People in {c} speak what?", "Say which language they speak in {c}.",
                         "What is the language of {c}?", "In {c}, what language do people speak?", "Tell me the language of {c}.",
                         "~Name the language people speak in {c}.", "~People in {c} speak which language?", "In which language do people in {c} talk?", "How do they talk in {c}, in which language?", "What do the people in {c} speak?", "I go to {c}. Which language should I learn?", "Which language do children in {c} learn?", "What is spoken in {c}?", "^What tongue do the people of {c} speak?", "^When I visit {c}, which language will I hear?", "^Which language would I need in {c}?"], ["the language of {c}", "the language people speak in {c}"], kind="language")
    return Item("language", ask.format(c=c), f"People in {c} speak {tongue}.", tongue, f"The main language of {c} is {tongue}.")


OPP = [
    "What is the opposite of {w}?", "What's the opposite of {w}?", "Give me the opposite of {w}.", "opposite of {w}",
    "Tell me the opposite of {w}.", "Which word is the opposite of {w}?", "What is the opposite of the word {w}?",
    "{W}: what is the opposite?", "Which word means the opposite of {w}?", "The opposite of {w} is what?",
    'What is the opposite of "{w}"?', "If something is not {w}, what is it?", "Name the opposite of {w}.", "Do you know the opposite of {w}?",
    "~Can you give me the opposite of {w}?", "~What word is the opposite of {w}?", "~Of {w}, what is the opposite?",
    "~I need the opposite of {w}.", "Not {w}, but what?", "What is the contrary of {w}?", "Which word says the opposite of {w}?", "How do you say the opposite of {w}?", "{w} and its opposite: what is it?", "Opposite of {w}?", "The reverse of {w}?", "What do we call the opposite of {w}?", "I look for a word that is the opposite of {w}.", "If it is not {w}, then it is what?", "^Can you think of the opposite of {w}?", "^Which word is opposite to {w}?", "^Turn {w} into its opposite.", "^I say {w}. Now you say the opposite.", "^What would you call the opposite of {w}?", '~Say the opposite of "{w}".',
]


def opposite(r, held):
    a, b = r.choice(W.OPPOSITES)
    d, e = r.choice(W.OPPOSITES)
    if r.random() < 0.5:
        a, b = b, a
    if r.random() < 0.5:
        d, e = e, d
    again = pick(r, held if held != "~" else False, ["And of {w}?", "And {w}?", "What about {w}?", "and the opposite of {w}?", "Now {w}.", "Now {w}, please.", "And then {w}?", "And the word {w}?", "What of {w}?", "The same for {w}, please.", "Next word: {w}.", "^And how about {w}?", "^And for {w}?"], "word again").format(w=d)
    return Item("opposite", phrase(r, held, OPP, ["the opposite of {w}", 'the opposite of "{w}"', "a word that means the opposite of {w}"], kind="opposite").format(w=a, W=cap(a)), f"The opposite of {a} is {b}.", b,
                f"The user wants a word that means the opposite of {a}. That is {b}.", (again, f"The opposite of {d} is {e}.", e))


def plural(r, held):
    a, b = r.choice(W.PLURALS)
    d, e = r.choice(W.PLURALS)
    ask = phrase(r, held, ["What is the plural of {w}?", "What's the plural of {w}?", "Give me the plural of {w}.", "plural of {w}",
                         "How do you say more than one {w}?", "One {w}, two what?", "What is the plural form of {w}?", "Tell me the plural of {w}.",
                         'What is the plural of "{w}"?', "Make {w} plural.", "~Can you tell me the plural of {w}?", "~The plural of {w} is what?", "How do you form the plural of {w}?", "I have one {w}. You have two what?", "What is {w} in the plural?", "Say {w} in the plural.", "Not one {w}, but many what?", "How do I say that there are many of the thing {w}?", "What do you call two of them, if one is a {w}?", "^Write the plural of {w}.", "^There is one {w} here. If there are two, what do I say?", "^What do you call more than one {w}?",
                         "~How is the plural of {w} written?"], ["the plural of {w}", "the plural of the word {w}", "the plural form of {w}"], kind="plural")
    again = pick(r, held if held != "~" else False, ["And of {w}?", "And {w}?", "What about {w}?", "^And how about {w}?", "^And for {w}?"], "word again").format(w=d)
    return Item("plural", ask.format(w=a), f"The plural of {a} is {b}.", b, f"One {a}, two {b}.", (again, f"The plural of {d} is {e}.", e))


def past(r, held):
    a, b = r.choice(W.PASTS)
    d, e = r.choice(W.PASTS)
    ask = phrase(r, held, ["What is the past tense of {w}?", "What's the past tense of {w}?", "Give me the past of {w}.", "past tense of {w}",
                         "Put {w} in the past tense.", "Tell me the past tense of {w}.", "What is the past form of {w}?",
                         'What is the past tense of "{w}"?', "~Can you tell me the past tense of {w}?", "~The past tense of {w} is what?", "Today I {w}. Yesterday I what?", "What is {w} in the past?", "How do you put {w} in the past?", "Say {w} in the past tense.", "If I {w} now, what did I do yesterday, in one word?", "{w} in the past tense", "Change {w} to the past tense.", "^Write the past tense of {w}.", "^Which word is the past tense of {w}?", "^How does {w} look in the past tense?"], ["the past tense of {w}", "the past of {w}", "the past form of {w}"], kind="past")
    again = pick(r, held if held != "~" else False, ["And of {w}?", "And {w}?", "What about {w}?", "^And how about {w}?", "^And for {w}?"], "word again").format(w=d)
    return Item("past tense", ask.format(w=a), f"The past tense of {a} is {b}.", b, f"Today I {a}, yesterday I {b}.",
                (again, f"The past tense of {d} is {e}.", e))


def colour(r, held):
    a, b = r.choice(W.COLOURS)
    ask = phrase(r, held, ["What colour is {w}?", "Which colour is {w}?", "Tell me the colour of {w}.", "What is the colour of {w}?", "What color is {w}?",
                         "{W} has which colour?", "Do you know what colour {w} is?", "~Name the colour of {w}.", "~Of what colour is {w}?", "What colour does {w} have?", "In which colour do I draw {w}?", "{W} is of which colour?", "How would you colour {w}?", "I want to draw {w}. Which colour do I need?", "Tell me what colour {w} is.", "^Which colour does {w} have?", "^If I paint {w}, which colour do I take?", "^Say which colour {w} is.",
                         "~Can you tell me what colour {w} is?"], ["the colour of {w}", "what colour {w} is"], kind="colour")
    return Item("colour", ask.format(w=a, W=cap(a)), f"{cap(a)} is {b}.", b, f"The colour of {a} is {b}.")


def sound(r, held):
    a, b = r.choice(W.SOUNDS)
    ask = phrase(r, held, ["What sound does {w} make?", "What does {w} say?", "Which sound does {w} make?", "How does {w} sound?", "Tell me the sound of {w}.",
                         "What noise does {w} make?", "~Make the sound of {w}.", "What do you hear from {w}?", "{w} makes which sound?", "What is the noise of {w}?", "How does {w} go?", "Can you sound like {w}?", "Which sound belongs to {w}?", "^Which noise comes from {w}?", "^What sound will I hear from {w}?", "^What would {w} say?", "~Can you tell me what sound {w} makes?"], ["the sound of {w}", "the sound {w} makes", "what {w} says"], kind="sound")
    return Item("sound", ask.format(w=a), f"{cap(a)} says {b}.", b, f"The sound of {a} is {b}.")


def young(r, held):
    a, b = r.choice(W.YOUNG)
    ask = phrase(r, held, ["What is a young {w} called?", "What is a baby {w} called?", "What do you call a baby {w}?", "What is the young of a {w} called?",
                         "What do you call a young {w}?", "Name a baby {w}.", "~How do you call the young of a {w}?", "~A baby {w} is called what?", "What is the young {w} called?", "How is a young {w} called?", "The young of a {w} has what name?", "Tell me what a young {w} is called.", "Which word do we use for a baby {w}?", "A {w} has a little one. What is it?", "^What is the word for a young {w}?", "^Which name does a baby {w} have?", "^How do people call a baby {w}?"], ["the name of a baby {w}", "the young of a {w}"], kind="young")
    art = "An" if b[0] in "aeiou" else "A"
    return Item("young animal", ask.format(w=a).replace("a owl", "an owl").replace("a eagle", "an eagle"),
                f"A young {a} is called {art.lower()} {b}.", b, f"{art} {b} is a young {a}.")


def article(w):
    return ("an " if w[0] in "aeiou" else "a ") + w


PLAIN = ("a colour", "a metal", "a drink", "a sport", "a planet")
MASS = {"a colour", "a metal", "a drink", "a sport", "a planet"}


def category(r, held):
    cat = r.choice(list(W.CATEGORIES))
    w = r.choice(W.CATEGORIES[cat])
    thing = w if cat in MASS else article(w)
    if r.random() < 0.5:
        ask = pick(r, held, ["What kind of thing is {w}?", "What sort of thing is {w}?", "Is {w} {x} or {y}?", "{W}: {x} or {y}?", "What type of thing is {w}?", "Would you call {w} {x} or {y}?", "Tell me: is {w} {x} or {y}?", "Which of the two is {w}: {x} or {y}?", "Name the kind of thing {w} is.", "To which kind of thing does {w} belong?",
                             "~Which is {w}, {x} or {y}?", "~Tell me what kind of thing {w} is.", "{w}, what kind of thing is that?", "Is {w} rather {x} or {y}?", "Decide: {w} is {x} or {y}?", "Do we call {w} {x} or do we call it {y}?", "{x} or {y}, what is {w}?", "Of what sort is {w}?", "What is {w}: {x} or {y}?", "^Choose one: is {w} {x} or {y}?", "^What might {w} be, {x} or {y}?", "^{W} is what sort of thing?"], r.choice(["category kind", "category or"]))
        other = r.choice([c for c in W.CATEGORIES if c != cat])
        x, y = (cat, other) if r.random() < 0.5 else (other, cat)
        return Item("category", ask.format(w=thing, W=cap(thing), x=x, y=y), f"{cap(thing)} is {cat}.", cat.split(" ", 1)[1], f"{cap(thing)} is {cat}.")
    ask = claim(r, held, ["Is {w} {x}?", "Is it true that {w} is {x}?", "{W} is {x}, right?", "Would you say {w} is {x}?", "Is {w} {x}? Yes or no?", "I say {w} is {x}. Am I right?", "{W} is {x}, isn't it?", "Do you agree that {w} is {x}?", "Do you believe {w} is {x}?", "Do you suppose {w} is {x}?", "Would you think {w} is {x}?", "Am I right if I say {w} is {x}?", "{W} is {x}, true?", "True or false: {w} is {x}.", "{W} is {x}, am I right?", "Do people think {w} is {x}?", "{W} is {x}, is that so?", "Am I correct that {w} is {x}?", "Is it right that {w} is {x}?", "Do you say {w} is {x}?", "Can you say if {w} is {x}?", "I think {w} is {x}. Is that right?", "Can you tell me if {w} is {x}?", "~Am I right that {w} is {x}?", "^Could {w} be {x}?", "^My friend says {w} is {x}. Is my friend right?", "^Does {w} count as {x}?", "^Are you sure that {w} is {x}?", "~Do you think {w} is {x}?"], (("{w} is {x}", "is {w} {x}"),), "is a")
    said = cat if r.random() < 0.5 else r.choice([c for c in W.CATEGORIES if c != cat and not (cat in ("a bird", "a fish", "an insect") and c == "an animal")])
    fact = stated(f"{thing} is {cat}")
    return Item("yes or no", ask.format(w=thing, W=cap(thing), x=said), fact, "", fact)


DEF = [
    "What is {w}?", "What's {w}?", "Define {w}.", "What does the word {b} mean?", "What does {b} mean?", "Tell me what {w} is.",
    "Can you explain what {w} is?", "Explain the word {b}.", "What is the meaning of {b}?", "Do you know what {w} is?", "what is {w}",
    "Give me a definition of {b}.", "How would you define {b}?", "I do not know what {w} is. Can you help?", "Please explain {b}.",
    "Tell me about {w}.", "In a few words, what is {w}?", "Say what {w} is.", "Explain in a few words what {w} is.", "Tell me in a few words what {w} is.", "Say in one sentence what {w} is.", "Say shortly what {w} is.", "What is {w} exactly?", "What really is {w}?", "What precisely is {w}?", "So what is {w}?", "What actually is {w}?", "What in fact is {w}?", "Exactly what is {w}?", "Tell me exactly what {w} is.", "Say exactly what {w} is.", "What then is {w}?", "Just what is {w}?", "What is meant by {b}?", "What do you mean by {b}?", "What do we call {b}?", "I want a definition of {b}.", "~Could you tell me what {w} is?", "~What do people mean by {b}?", "~I would like a definition of {b}.",
    "~What exactly is {w}?", "~Say in a few words what {w} is.", "Describe {w}.", "Describe {w} for me.", "{w}: what is that?", "I never heard of {w}. What is it?", "What do people call {b}?", "Please describe what {w} is.", "What should I know about {w}?", "Somebody said {b}. What is that?", "What does one call {b}?", "Teach me what {w} is.", "I read about {w}. What is it?", "How do you explain {w}?", "What is the sense of the word {b}?", "What would you say {w} is?", "In your words, what is {w}?", "{b}?", "{w}?", "Tell a child what {w} is.", "My son does not know what {w} is.", "The word {b}, what does it say?", "What is this: {w}?", "Is there a short way to say what {w} is?", "Do you know the word {b}?", "What can you say about {w}?", "^What sort of thing is meant by {b}?", "^How would you explain {w} to a child?", "^{b}: what does that word mean?", "^Describe {w} in a sentence.", "^My child asks what {w} is. What do I say?", "^I came across the word {b}. What does it mean?",
]


def definition(r, held):
    w, text = r.choice(W.DEFINITIONS)
    bare = w.split(" ", 1)[1]
    return Item("definition", phrase(r, held, DEF, ["the meaning of {b}", "a definition of {b}", "what {w} is", "the meaning of the word {b}"], kind="definition").format(w=w, b=bare), f"{cap(w)} is {text}.", "", f"The user wants to know what {w} is. I know this word.")


def how_many(r, held):
    q, full, n = r.choice(W.NUMBERS_OF)
    ask = phrase(r, held, ["How many {q}?", "how many {q}", "Tell me how many {q}.", "Do you know how many {q}?", "~Can you say how many {q}?", "~I wonder how many {q}.", "Say, how many {q}?", "And how many {q}?", "I forgot how many {q}.", "Count for me: how many {q}?", "Is it known how many {q}?", "I would like to learn how many {q}.", "What do you think, how many {q}?", "^Can you count how many {q}?", "^I ask myself how many {q}.", "^Would you know how many {q}?"], ["how many {q}"], kind="how many")
    return Item("how many", ask.format(q=q), full, n, f"This is a number I know: {n}.")


# ---- days, months, letters ------------------------------------------------------

def sequence(r, held):
    which = r.choice(["day", "month", "letter"])
    names = {"day": W.DAYS, "month": W.MONTHS, "letter": list(W.LETTERS)}[which]
    i = r.randrange(len(names))
    a, b = names[i], names[(i + 1) % len(names)]
    if which == "letter" and i == 25:
        a, b = "Y", "Z"
    name = f"the letter {a}" if which == "letter" and r.random() < 0.5 else a
    name_b = f"the letter {b}" if which == "letter" and r.random() < 0.5 else b
    if r.random() < 0.55:
        ask = phrase(r, held, ["What {k} comes after {a}?", "Which {k} comes after {a}?", "Which {k} follows {a}?", "What is the {k} after {a}?", "Tell me the {k} after {a}.", "Which {k} do we have after {a}?", "What {k} is right after {a}?", "Say which {k} comes after {a}.",
                             "What comes after {a}?", "After {a} comes which {k}?", "~Which {k} is next after {a}?", "{a} comes first, then which {k}?", "Which {k} will come after {a}?", "{a}, and then?", "Following {a} is which {k}?", "Once {a} is done, which {k} is next?", "What is next after {a}?", "Behind {a} is which {k}?", "The {k} after {a} is what?", "^{a} is over. Which {k} is it then?", "^Right after {a}, which {k} comes?", "^Which {k} stands directly after {a}?", "~Name the {k} that follows {a}.", "~What {k} do we have right after {a}?"], ["the {k} after {a}", "the {k} that comes after {a}", "the next {k} after {a}"], kind="after")
        return Item("next " + which, ask.format(k=which, a=name), f"{b} comes after {a}." if which != "letter" else f"The letter {b} comes after {a}.", b, f"The order is {a}, {b}. So the answer is {b}.")
    ask = phrase(r, held, ["What {k} comes before {b}?", "Which {k} comes before {b}?", "What is the {k} before {b}?", "Tell me the {k} before {b}.", "Which {k} do we have before {b}?", "What {k} is right before {b}?", "Say which {k} comes before {b}.",
                         "What comes before {b}?", "Before {b} comes which {k}?", "~Which {k} is right before {b}?", "{b} comes after which {k}?", "Which {k} was there before {b}?", "Ahead of {b} is which {k}?", "The {k} before {b} is what?", "Which {k} comes just before {b}?", "{b} follows which {k}?", "^Which {k} stands directly before {b}?", "^Right before {b}, which {k} comes?", "~Name the {k} that comes before {b}."], ["the {k} before {b}", "the {k} that is before {b}"], kind="before")
    return Item("next " + which, ask.format(k=which, b=name_b), f"{a} comes before {b}." if which != "letter" else f"The letter {a} comes before {b}.", a, f"The order is {a}, {b}. So the answer is {a}.")


def tomorrow(r, held):
    i = r.randrange(7)
    today, move = W.DAYS[i], r.choice([("tomorrow", 1), ("yesterday", -1)])
    ask = pick(r, held, ["Today is {t}. What day is {m}?", "If today is {t}, what day is {m}?", "It is {t} today. Which day is {m}?", "Today we have {t}. Tell me which day is {m}.", "If it is {t} today, tell me which day is {m}.", "Let today be {t}. What day is {m}?", "Imagine today is {t}. What day is {m}?", "Today it is {t}. Which day is {m}?", "What day is {m} if today is {t}?",
                         "~Today it is {t}. Tell me which day is {m}.", "~Suppose today is {t}. What day is {m}?", "{t} is today. Which day is {m}?", "So today is {t}, what day is {m}?", "Say that today is {t}. Then what day is {m}?", "As today is {t}, what is {m}?", "What is {m} if we have {t} today?", "Here today is {t}. Which day is {m}?", "Today is {t}, so {m} is what?", "^We have {t} today. Which day is {m}?", "^My calendar says today is {t}. What day is {m}?", "^Which day is {m}, when today is {t}?"], "tomorrow")
    day = W.DAYS[(i + move[1]) % 7]
    was = "was" if move[1] < 0 else "is"
    word = ask.format(t=today, m=move[0])
    if move[1] < 0:
        word = word.replace("day is yesterday", "day was yesterday")
    return Item("next day", word, f"{cap(move[0])} {was} {day}.", day, f"Today is {today}. {cap(move[0])} {was} {day}.")


def position(r, held):
    if r.random() < 0.4:
        i = r.randrange(7)
        ask = phrase(r, held, ["What is the {o} day of the week?", "Which day is the {o} day of the week?", "Name the {o} day of the week.", "~Tell me which day of the week is the {o}.", "Which weekday is number {o}?", "What is the name of the {o} day of the week?", "Of all days of the week, which is the {o}?", "^Which day comes {o} in the week?", "^In a week, which is the {o} day?", "~The {o} day of the week is which?"], ["the {o} day of the week", "the {o} weekday"], kind="weekday")
        return Item("order", ask.format(o=W.ORDINALS[i]), f"The {W.ORDINALS[i]} day of the week is {W.DAYS[i]}.", W.DAYS[i], f"Counting from Monday, the {W.ORDINALS[i]} is {W.DAYS[i]}.")
    i = r.randrange(12)
    m, o = W.MONTHS[i], W.ORDINALS[i]
    style = r.randrange(3)
    if style == 0:
        ask = phrase(r, held, ["What is the {o} month of the year?", "Which month is the {o} month?", "Name the {o} month of the year.", "~Tell me which month is the {o} of the year.", "Of all months, which is the {o}?", "What is the name of the {o} month?", "Which is the {o} month of the year?", "^Which month comes {o} in the year?", "^In a year, which is the {o} month?", "~The {o} month of the year is which?"], ["the {o} month of the year", "the {o} month"], kind="monthno")
        return Item("order", ask.format(o=o), f"The {o} month of the year is {m}.", m, f"Counting from January, the {o} is {m}.")
    if style == 1:
        ask = phrase(r, held, ["How many days does {m} have?", "How many days are in {m}?", "How long is {m}?", "How many days has {m}?", "~Tell me the number of days in {m}.", "{m} is how many days long?", "Count the days of {m}.", "How many days long is {m}?", "The month {m} has how many days?", "^How many days do we count in {m}?", "^In {m} there are how many days?", "~{m} has how many days?"], ["how many days {m} has", "the number of days of {m}", "the length of {m}"], kind="monthdays")
        return Item("order", ask.format(m=m), f"{m} has {W.MONTH_DAYS[i]} days.", str(W.MONTH_DAYS[i]), f"{m} has {W.MONTH_DAYS[i]} days.")
    season = dict(W.SEASONS)[m]
    ask = phrase(r, held, ["In which season is {m}?", "Which season is {m} in?", "What season is it in {m}?", "{m} is in which season?", "~Tell me the season of {m}.", "{m}: which season?", "Is {m} in summer, in winter or when?", "When it is {m}, what season is it?", "Which time of the year is {m}?", "^Which season do we have in {m}?", "^{m} falls into which season?", "~What season does {m} belong to?"], ["the season of {m}", "the season {m} is in"], kind="season")
    return Item("order", ask.format(m=m), f"{m} is in {season}.", season, f"In the north, {m} is in {season}.")


def lists(r, held):
    which = r.choice(["days", "months", "seasons", "letters"])
    if which == "days":
        return Item("list", pick(r, held, ["Name the days of the week.", "List the days of the week.", "Tell me the days of the week.", "Say all days of the week.", "Name all seven days.", "What are the days of the week?", "~Tell me all days of the week.", "Which days does a week have?", "All the days of the week, please.", "List all seven days.", "^Go through the days of the week."], "days"),
                    "The days of the week are " + ", ".join(W.DAYS[:-1]) + " and Sunday.")
    if which == "months":
        return Item("list", pick(r, held, ["Name the months of the year.", "List the months.", "Tell me the months of the year.", "Say all months.", "Name all twelve months.", "What are the months of the year?", "~Tell me all months of the year.", "Which months does a year have?", "All the months, please.", "List all twelve months.", "^Go through the months of the year."], "months"),
                    "The months of the year are " + ", ".join(W.MONTHS[:-1]) + " and December.")
    if which == "seasons":
        return Item("list", pick(r, held, ["Name the seasons.", "List the four seasons.", "Tell me the seasons.", "Say all seasons.", "Name all four seasons.", "Tell me the four seasons.", "What are the seasons of the year?", "~Tell me all four seasons.", "Which seasons does a year have?", "All the seasons, please.", "What are the four seasons?", "^Which seasons are there?"], "seasons"), "The seasons are spring, summer, autumn and winter.")
    return Item("list", pick(r, held, ["Say the alphabet.", "List the letters of the alphabet.", "Tell me the alphabet.", "Say the whole alphabet.", "Can you say the alphabet?", "~Tell me the whole alphabet.", "All the letters, please.", "Which letters does the alphabet have?", "Write the alphabet.", "^Go through the alphabet."], "alphabet"), ", ".join(W.LETTERS) + ".")


# ---- words ------------------------------------------------------------------------

def spell(r, held):
    w = r.choice(W.SPELL)
    out = "-".join(w.upper())
    ask = phrase(r, held, ["Spell {w}.", "How do you spell {w}?", "Spell the word {w}.", 'Spell "{w}".', "Can you spell {w}?", "Please spell the word {w}.", "spell {w}",
                         "How is {w} spelled?", "Spell {w} for me.", "How would you spell {w}?", "How does one write {w}?", 'How do you spell "{w}"?', "Could you spell the word {w}?", "Write {w} letter by letter.", "Tell me how you spell {w}.", "~Could you spell {w} for me?", "~Tell me how to spell {w}.", "Which letters are in {w}?", "{w}: how is it spelled?", "What are the letters of {w}?", "How is the word {w} written?", "I cannot spell {w}.", "Help me spell {w}.", "Can you write {w} with its letters?", "Please spell out {w}.", "Which letters make the word {w}?", "The spelling of {w}, please.", "Show the letters of {w}.", "How do I write {w}?", "^How should I spell {w}?", "^Take {w} apart, letter by letter.", "^I want to write {w}. How is it spelled?", "^Can you show me how {w} is spelled?", '~How does one spell "{w}"?'], ["the spelling of {w}", "how to spell the word {w}", "the letters of {w}", "{w}, letter by letter"], kind="spell")
    return Item("spelling", ask.format(w=w), f"{out}.", out, f"The letters of {w} are {', '.join(w.upper())}.")


def letters_in(r, held):
    w = r.choice([x for x in W.SPELL])
    out = "-".join(w.upper())
    style = r.choice(["first", "last", "count"])
    if style == "count":
        ask = phrase(r, held, ["How many letters does {w} have?", "How many letters are in the word {w}?", "Count the letters of {w}.", "~Tell me how many letters {w} has.", "{w} has how many letters?", "How long is the word {w}?", "The number of letters in {w}?", "How many letters can you count in {w}?", "How many letters are there in {w}?", "^The word {w} is made of how many letters?", "^How many letters do I need for {w}?"], ["how many letters {w} has", "the number of letters in {w}", "how long the word {w} is"], kind="letter count")
        return Item("letters", ask.format(w=w), f"{out}: the word {w} has {len(w)} letters.", str(len(w)), f"{out}: that is {len(w)} letters.")
    a = w.upper()[0 if style == "first" else -1]
    ask = phrase(r, held, ["What is the {s} letter of {w}?", "Which letter is the {s} one in {w}?", "Tell me the {s} letter of the word {w}.", "~What {s} letter does {w} have?", "{w}: what is its {s} letter?", "Which letter is {s} in {w}?", "Which letter comes {s} in the word {w}?", "What letter is the {s} of {w}?", "Look at the word {w}. What is the {s} letter?", "^In the word {w}, which letter is {s}?", "^The {s} letter of {w} is which one?"], ["the {s} letter of {w}", "the {s} letter in the word {w}"], kind="letter at")
    return Item("letters", ask.format(w=w, s=style), f"{out}: the {style} letter of {w} is {a}.", a, f"{out}: the {style} letter is {a}.")


def random_words(r, n, pool=None):
    return r.sample(pool or W.COMMON, n)


def repeat(r, held):
    n = r.randint(1, 5)
    words = number(r, held, lambda: tuple(random_words(r, n)))
    if not held and r.random() < 0.3:
        from talk import name_of

        words = tuple(name_of(r, False) if r.random() < 0.6 else name_of(r, False).lower() for _ in range(n))
    text = " ".join(words)
    style = r.random()
    if n > 1 and style < 0.45:
        where = r.choice(["first", "last"])
        listing = r.choice([", ".join(words), ", ".join(words[:-1]) + " and " + words[-1]])
        w = words[0 if where == "first" else -1]
        ask = pick(r, held, ["What is the {s} word here: {l}?", "Which word comes {s}: {l}?", "Say the {s} word of this list: {l}.", "{l}: which is the {s} word?", "In the list {l}, which word is {s}?", "Which word is {s} in this list: {l}?", "Which is the {s} word in this list: {l}?", "Give me the {s} word: {l}.", "Name the {s} of these: {l}.",
                             "~In this list, which word is {s}: {l}?", "~Give me the {s} of these words: {l}.", "{l}. Which word was {s}?", "I have these words: {l}. What is the {s} one?", "Of {l}, which one comes {s}?", "Which is the {s} of {l}?", "Find the {s} word in {l}.", "^Here are some words: {l}. Which one is {s}?", "^Look at {l}. Which word stands {s}?"], "word list")
        return Item("word list", ask.format(s=where, l=listing), f"The {where} word is {w}.", w, f"The list is {', '.join(words)}. The {where} word is {w}.")
    ask = pick(r, held, ["Say {t}.", "Repeat: {t}", "Repeat after me: {t}", 'Say "{t}".', "Please say: {t}", "Repeat these words: {t}", "Write: {t}", "Can you repeat this: {t}", "Repeat this, please: {t}", 'Can you repeat "{t}"?', 'Repeat the words "{t}".', 'Please say "{t}".', 'Please write "{t}".', "Repeat this now: {t}", "Can you say: {t}", "Repeat \"{t}\".", "Say this: {t}", "Please write: {t}", "Say it after me: {t}", "~Now repeat this: {t}", "^Say after me: {t}", "^Would you repeat this: {t}", "^Just repeat: {t}", '~Please repeat "{t}".'], "repeat")
    return Item("repeat", ask.format(t=text), cap(text) + ".", text, f"The user wants me to repeat: {text}.")
