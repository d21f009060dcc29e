"""Word orders put together from parts, and the tenth of them that training never sees.

A grammar is text: "[a|b]" is a choice, a line (or a "|" outside of brackets) is one of the
alternatives, "{c}" a gap that is filled later. What comes out with its gaps still open is a
*word order*: "Could you kindly tell me what the capital of {c} is?". A hash of its letters
says on which side it stands: one in ten belongs to the held-out set and is never trained,
whatever its gaps hold. Of the clauses and questions that stand within frames a tenth is held
out too, in every frame. Case, spaces and punctuation do not count, so an order cannot stand on
both sides.
"""

import ast
import hashlib
import math
import re
from functools import lru_cache
from pathlib import Path

HELD_SHARE = 10
HASH = "#"  # the mark of the held-out set that is told apart by the hash


def same(a):
    return "".join(c for c in a.lower() if c.isalnum() or c in "{}")


def own_words(order):
    return len(re.findall(r"[\w']+", re.sub(r"\{\w+\}", " ", order)))


def mark(p):
    """The set a phrasing of the lists belongs to."""
    return p[0] if p[0] in "~^" else False


@lru_cache(None)
def phrasings():
    """{mark or False: the strings in the sources that belong to that set}"""
    out = {False: set(), "~": set(), "^": set()}
    for name in ("skills", "arithmetic", "talk", "tools", "stories", "wording"):
        tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for p in re.split(r"[|\n]", node.value):
                    if same(p):
                        out[mark(p)].add(p.lstrip("~^"))
    return out


@lru_cache(None)
def plainest():
    """The phrasings written out in the lists: never held out."""
    return {same(p) for p in phrasings()[False]}


@lru_cache(1 << 16)
def held_out(order):
    """Whether a word order is kept out of training; never one of the lists or of fewer than four words of its own (five, if it begins with a gap)."""
    digest = hashlib.sha256(b"order " + same(order).encode()).digest()
    return digest[0] % HELD_SHARE == 0 and own_words(order) >= 4 + order.startswith("{") and same(order) not in plainest()


# ---- grammars -----------------------------------------------------------------------------

def _parse(text, at, closing):
    """Alternatives from `at` on: (list of (weight, parts), where it ends)."""
    options, parts, piece = [], [], ""
    while at < len(text):
        c = text[at]
        if c == "[":
            inner, at = _parse(text, at + 1, "]")
            parts += [piece, inner]
            piece = ""
        elif c == "|" or c == closing:
            options.append(parts + [piece])
            parts, piece = [], ""
            if c == closing:
                return _weighed(options), at + 1
            at += 1
        else:
            piece += c
            at += 1
    assert closing is None, f"a bracket is open: {text[:80]}"
    return _weighed(options + [parts + [piece]]), at


def _size(parts):
    n = 1
    for p in parts:
        if not isinstance(p, str):
            n *= sum(_size(q) for q in p[0])
    return n


def _weighed(options):
    return options, [1 + math.log2(_size(o)) for o in options]


@lru_cache(None)
def _grammar(text):
    lines = [x.strip() for x in text.strip().splitlines()]
    return _parse("|".join(x for x in lines if x), 0, None)[0]


def size(text):
    """How many word orders a grammar has."""
    return sum(_size(o) for o in _grammar(text)[0])


def _draw(r, node):
    options, weights = node
    return "".join(p if isinstance(p, str) else _draw(r, p) for p in r.choices(options, weights)[0])


def expand(r, text):
    return re.sub(r" +", " ", _draw(r, _grammar(text))).strip()


SHORTER = [("what is", "what's"), ("do not", "don't"), ("does not", "doesn't"), ("is not", "isn't"), ("I am", "I'm"), ("I would", "I'd"), ("cannot", "can't"), ("I have", "I've"), ("I will", "I'll"),
           ("it is", "it's"), ("that is", "that's"), ("colour", "color"), ("you are", "you're"), ("did not", "didn't"), ("we are", "we're")]


def contracted(r, order):
    for long, short in SHORTER:
        if long in order.lower() and r.random() < 0.5:
            order = re.sub(rf"\b{long}\b", short, order, flags=re.I)
    return order


# ---- frames for a thing, a clause, a question, a statement ---------------------------------

WHO = "[my brother|my sister|my teacher|a friend|my son|my daughter|my mother|my father|my neighbour|my boss|my uncle|my aunt|a child|someone|somebody|a boy|my class|our teacher|the quiz|my grandmother|a colleague]"
TELL = "[tell me|tell us|give me|give us|name|name me|say|state|write|write down|show me|find|find out|find me|let me know|let me hear|mention|look up|think of|recall|type|teach me|remind me of|point out|help me with|answer me]"
SOFT = "[||||please |kindly |now |quickly |next |then |first |just |so |and |do |well, |okay, |come on, |go on, |right, |again, |as a favour, |for once, |if you can, |if possible, |when you have time, ]"
TAIL = "[||||||, please| for me| now| if you can| if you know it| right away| once more| today| again| for my homework| for school| at once| in a word| quickly| here]"
YOU = "[can|could|would|will|can't|couldn't|won't] you [|||please |kindly |perhaps |maybe |quickly |also |possibly |just |now |again ]"
KNOW = "[do you know|do you happen to know|do you remember|do you still know|can you say|can you recall|could you say|could you work out|have you learned|is it known|did you learn|are you able to say|would you know|any idea|do you have an idea]"
WANT = "[I|we|I really|I just|I also|now I|today I] [want to|need to|would like to|wish to|would love to|have to|hope to|must|should|am here to|came to|try to]"
LEARN = "[know|hear|learn|find out|write down|understand|hear from you|remember|be told|look up]"
LOST = "[I forgot|I have forgotten|we forgot|I always forget|I cannot remember|I can't recall|I do not know|we never learned|I keep forgetting|I need|I am not sure about|I am unsure about|I am curious about|I wonder about|I should know|I mix up|we do not know|I just forgot|I lost]"

# {x}: "the capital of {c}"
THING = f"""
[what is|what is|what's|what was|what would be|what might be|what could be|what do you think is|what do people say is|what exactly is|what then is|what on earth is|what, please, is|what do we know is|what shall I write for|what do I answer for|what comes to mind for] {{x}}[|||| again| please| now| then| exactly| in fact| really]?
{SOFT}{TELL} {{x}}{TAIL}.
{SOFT}{TELL} {{x}}{TAIL}.
{YOU}{TELL} {{x}}{TAIL}?
{WANT} {LEARN} {{x}}{TAIL}.
{LOST} {{x}}[.|. Can you help?|. What is it?|. Do you know it?|. Please help.|, so tell me.]
{WHO} [asks for|wants to know|asked me for|would like to know|is asking for|needs|wants to hear|has forgotten|does not know|keeps asking for|wonders about] {{x}}[.|.|. What is it?|. What do I say?|. What shall I answer?|. Can you help?]
{KNOW} {{x}}[|, please| by heart| perhaps| too| at all]?
{{x}}[, please|, what is it|: what is it|, do you know it|, can you name it|, can you tell me|, what would that be|, quickly|, if you please|, that is my question|, any idea|: do you know|: tell me|? Tell me|? Please tell me|, what is that|, can you say it|, I need it|, once again]?
[I am|we are|I'm] [looking for|searching for|asking for|asking about|thinking about|wondering about|after|trying to find|trying to remember|interested in|missing|in need of] {{x}}[|, please| here| now| today| again].
[help me|help us|can you help me|please help me] [with|find|to find|remember|to remember|write down] {{x}}[|, please| now| again].
[if|when] {WHO} asks [me|you|us] [for|about] {{x}}, what [do|should|would|can|shall] [I|you|we] [say|answer|reply]?
[on|in] [my|this|the|our] [list|homework|test|quiz|crossword|form|page|exam|game] [I need|is|stands|they ask for|there is|we need|I must give|you see|comes] {{x}}[.|. What is it?|. Can you help?]
[my|the|our|this|here is my|the first|the second|a small] question [is about|is|concerns|asks for|is this:] {{x}}.
[what about|how about|and|so|now|next:|then|first:|quiz:|question:|homework:] {{x}}?
"""

# {i}: "what the capital of {c} is"
CLAUSE = f"""
{SOFT}[tell me|tell us|say|state|write|write down|explain|show me|find out|let me know|let me hear|look up|think about|recall|answer|work out|teach me|report|type|inform me] {{i}}{TAIL}.
{SOFT}[tell me|tell us|say|state|write|write down|explain|show me|find out|let me know|let me hear|look up|think about|recall|answer|work out|teach me|report|type|inform me] {{i}}{TAIL}.
{YOU}[tell me|tell us|say|explain|explain to me|find out|show me|let me know|recall|look up|teach me|work out|help me understand|remind me] {{i}}{TAIL}?
{KNOW} {{i}}[|, please| perhaps| at all]?
{WANT} {LEARN} {{i}}{TAIL}.
[I wonder|I forgot|I always forget|I cannot remember|we do not know|I don't know|I often ask myself|I never learned|I am not sure|I would like to know|I am curious|I have no idea|I cannot say|we wonder|I still wonder|I just forgot|we are not sure] {{i}}[.|. Can you help?|. Do you know?|. Please help.|. Tell me.]
{WHO} [asks|wants to know|asked me|would like to know|is asking|wonders|wants to hear|does not know|keeps asking] {{i}}[.|.|. Do you know?|. What do I say?|. What shall I answer?|. Can you help?]
[if|when] {WHO} asks [me|you|us] {{i}}, what [do|should|would|can|shall] [I|you|we] [say|answer|reply]?
[my|the|our|a|one] question [is|was|would be]: {{i}}?
[it would help me|I would be happy|it would be nice|I would be thankful] to [know|hear|learn] {{i}}.
[is there a way to say|is it easy to say|is it hard to say|may I ask|may I know|might I ask|who can tell me|who knows] {{i}}?
"""

# {d}: "which city is the capital of {c}"
QUESTION = f"""
{{d}}?|{{d}}?|{{d}}?|{{d}}?
{{d}}[, please|, do you know|, do you think|, can you say|, in your opinion|, and why not say it|, my friend|, if I may ask|, tell me|, say|, dear model|, and be quick|, can you tell|, I wonder|, would you say|? Answer me|? Tell me|? I forgot it|? I need it|? Do you know|? Can you help|? Any idea|? That is all I ask|, if you know it]?
[tell me|say|tell us|please tell me|answer me|please say|think|help me|do tell|now tell me|quickly tell me|please answer|well|okay|right|say, please|and now|so|then|next|first|and|come on|a question|my question|question|quiz|an easy one|one thing]: {{d}}?
[and|so|now|well,|okay,|then|but|please,|say,|hm,|right,|tell me,|next,|again,|oh,|listen,|hey,|excuse me,|sorry,] {{d}}[||| again| then| please| now]?
{WHO} [asks|asked me|asked|wants to know|would like to know|keeps asking|just asked]: {{d}}?
[I have a question|I am curious|a short question|I need help|something else|one more thing|here is a question|here comes a question|just this|let me ask|let me ask you|may I ask|can I ask|I wonder|I want to know|I need to know|I would like to know]: {{d}}?
[in|on] [my|this|our|the] [homework|test|quiz|exam|game|book|form] [I am asked|it says|stands|they ask|we read|it asks]: {{d}}?
"""

# {s}: "Paris is the capital of France"
STATEMENT = f"""
{{s}}, [right|true|correct|yes|no|isn't it|is it|is that so|is that right|is that true|am I right|am I correct|do you agree|don't you think|or not|yes or no|true or false|right or wrong|or is it not|or am I wrong|wouldn't you say|surely|not so|okay|eh|or what|is it right|would you agree]?
{{s}}. [is that right|is that so|is it so|is this true|is that true|is this correct|is that correct|am I right|do you agree|yes or no|true or false|right or wrong|right|true|correct|would you agree|can that be|is it a fact|what do you say|do you think so too|am I mistaken|have I got that right|is that a fact|or not]?
[yes or no|true or false|right or wrong|is this right|is this true|true or not|correct or not|right or not|check this|please check|check|is this a fact|fact or not|judge this|say yes or no|answer yes or no|tell me if this is true|decide|what about this|a claim|here is a claim|here is a sentence|my claim]: {{s}}[.|?]
[is it|is it really|would it be|can it be|is it perhaps|was it ever|is it not|isn't it|might it be] [true|right|correct|a fact|so|certain|the case|known|wrong to say] that {{s}}?
[do you|would you|could you|can you|do people|will you|should I|may I|do we|can one] [agree|believe|think|say|suppose|claim|accept|confirm|hold] [that ||]{{s}}?
[am I|would I be] [right|correct|wrong|mistaken|not wrong] [that|to say that|to think that|to say|if I say|if I say that|when I say|if I think|in thinking|in saying that] {{s}}?
[I think|I believe|I say|I heard|I heard that|I read that|I guess|I learned that|I always thought|I know|they say|they say that|people say|people say that|it is said that|I was told|I was told that|I would say|I am sure that|in a book I read that|on the radio they said|it says here that|the teacher told us that] {{s}}. [is that right|is it true|is that so|do you agree|right|true|am I right|yes or no|is that correct|correct|can that be|what do you say|true or false|are they right|would you agree|is it so|do they lie|was that right|is that wrong]?
{WHO} [says|thinks|believes|said|told me|is sure|claims|told me that|thinks that|says that|claims that|wrote that|bets that] {{s}}. [is that right|is it true|is that so|do you agree|right|true|yes or no|is that correct|correct|can that be|what do you say|is that a mistake|would you agree]?
[tell me|say|check|find out|please tell me|please check|please say|let me know|decide|I want to know|I wonder|I would like to know|I need to know|I am not sure|I ask myself|can you tell me|can you say|can you check|could you tell me|could you say|could you check|do you know|would you check|do you happen to know|will you tell me|judge] [if|whether] {{s}}[|, please| or not]?
[suppose I say|imagine I write|what if I say|let us say|let me guess|so|then|and|really|you mean|now|well,|but|of course|maybe|probably] {{s}}[?|? Is that right?|? Is it true?|. Would that be right?|. Is that true?|. Yes or no?|. Am I right?]
[correct me if I am wrong|help me|quick|a question|tell me|please answer|answer me|quiz|a test|question]: {{s}}[. True?|. Right?|, right?|, true or false?|, yes or no?|. Is that so?|?]
"""

# {q}: "is Paris the capital of France"
CHECK = f"""
{{q}}?|{{q}}?|{{q}}?
{{q}}[, yes or no|, true or false|? Yes or no|, do you think|, what do you think|, what do you say|, in your opinion|, do you know|, or not|, or is it something else|, or am I wrong|, please|, tell me|? I think so|? I do not think so|? I am not sure|? Tell me|? I guess so|? Please say yes or no|? What do you say|, would you say|, my friend|, really|, in fact|, can you say]?
[tell me|say|yes or no|please tell me|please answer|answer me|quick|a question|my question|question|quiz|help me|the question is|let me ask|think|now tell me|what do you think|what do you say|one thing|true or false|may I ask|can I ask|I wonder|I want to know|well|okay]: {{q}}?
[and|so|now|well,|okay,|then|but|please,|say,|hm,|right,|tell me,|listen,|oh,|hey,|sorry,|tell me please,] {{q}}[||| then| now| really]?
{WHO} [asks|asked me|wants to know|would like to know|keeps asking]: {{q}}?
"""


FRAMES = {"x": THING, "i": CLAUSE, "d": QUESTION, "s": STATEMENT, "q": CHECK}
SHARES = {"x": 3, "i": 2.5, "d": 4, "s": 4, "q": 2.5, "own": 3}


def framed(r, kind):
    """(a word order of a kind of question, whether it is held out); `kind`: grammars for "x", "i", "d", "s", "q"
    (as above) and "own" (whole messages)."""
    k = r.choices(list(kind), [SHARES[k] for k in kind])[0]
    core = order = expand(r, kind[k])
    if k != "own":
        order = expand(r, FRAMES[k]).replace("{" + k + "}", core)
    order = re.sub(r"([.?!]) ([a-z])", lambda m: m[1] + " " + m[2].upper(), order)
    if r.random() < 0.2:
        order = contracted(r, order)
    return order, held_out(order) or k in "idq" and held_out(core)
