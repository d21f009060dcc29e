"""Many ways to say the same: words around a question, frames for things and statements, small slips.

For training only, but for `BEFORE` and `AFTER`, which hold the words around questions of the
development set ("~") and of the held-out set ("^").
"""

import itertools
from functools import lru_cache

import facts as W


def _list(text):
    return [x.strip() for x in text.replace("\n", "|").split("|") if x.strip()]


def cap(s):
    return s[:1].upper() + s[1:]


# ---- words around a question ----------------------------------------------------------

# "Well" and "Thanks a lot" are also whole messages in training, so the marks of these are added here.
BEFORE = ["~" + x for x in ("Tell me this: ", "Here is one for you. ", "Well, ", "Hi there! ")] + ["^If you do not mind: ", "^Now then, ", "^Here is something I want to know. ", "^Dear demo, "]
AFTER = ["~" + x for x in (" Thanks a lot.", " I would like to know.")] + ["^ Could you help me out?", "^ I would be glad to know.", "^ Thank you kindly."]

GREET = _list("""Hey|Hi|Hello|Good day|Dear model|OK|Okay|Right|Listen|So|And|Alright|Excuse me|Sorry|Good|Great|Thanks|Fine|Now|Next|Oh|Ah|Hm|Friend|My friend|Please|Nice
Say|Look|Little model|Yes|Good morning|Good evening|Sir|Tell me|Very good|But|Wait|Hello again|Hey you|Dear friend|Come on|Once more|First|Second|Of course|Perfect|Wonderful|No problem|Model""")
LEAD = _list("""I have a question.|Quick question:|Next question:|Another one:|One more:|Please tell me:|A question for you:|I want to ask something.|My sister wants to know:|My teacher asks:
I need this for school:|This is for my homework.|Can you help me?|I have a little question.|We are playing a game.|This is a quiz.|Here is my question:|Here comes another question.|Let me ask:
Answer this, please:|The question is:|I am learning.|I was thinking.|You may know this:|Question two:|My son asked me:|Let us go on.|I need your help.|Something else:|Do you know this?|Try this:
Think about this:|My next question is this:|I forgot this:|Just a short one:|This one is easy:|Be quick:|Help me:|It is for a friend.|An easy one:|Let's see:|If you can, answer this:|If I may ask:
I always mix this up.|There is one thing I forgot.|I want to be sure:|I am not from here.|I asked my father, but he did not know.|Maybe you can tell me:|Now something different.|What about this:|Your turn:
You are good at this.|I am writing a letter.|My daughter is curious:|At school they asked us:|For a crossword:|I bet you know this:|Now comes a hard one.|No more jokes.|Enough of that.|Let me test you:""")
CLOSE = _list("""Thanks!|Please.|Please answer.|Thank you.|I am curious.|Do you know?|Thanks.|Thank you very much.|Thank you!|Many thanks!|I need it for school.|My brother asks.|It is for a quiz.|Be quick.
I really need it.|That would help me.|Thanks in advance.|Thanks so much.|You are kind.|I forgot it.|Just curious.|Can you help?|I cannot remember.|It is for my homework.|I want to learn.|Please be quick.
Please tell me.|My friend wants to know.|If you know it.|Help me.|I do not know it.|I have no idea.|Take your time.|That is all.|I need to know.|Any idea?|You surely know.|Cheers!|Please help.
It is important.|I always forget it.|Let me know.|Good luck!|I hope you know.|I am not sure.|I thank you.|Thanks, my friend.|A short answer is enough.|That is my question.|I have been wondering.|What do you say?
I want a good answer.|It would be nice to know.|You would make me happy.|I owe you one.|Nobody here knows.|We made a bet.|My mother wants to know.|Thanks for helping.|Thank you, dear model.|That is very kind.
So tell me.|I am all ears.|Is that hard?|Easy, right?|I should know that.""")
ASIDE = ["I saw a {n} today.", "The {n} is {a}.", "We talked about the {n}.", "Here it is {a}.", "There is a {n} in front of me.", "My {n} is very {a}.", "I bought a {n}.", "Outside is a {a} {n}.", "The day was {a}.",
         "I am reading about a {n}.", "Nobody saw the {n}.", "My sister lost her {n}.", "They sell a {n} there.", "It was a {a} week.", "I dreamt of a {n}.", "A {a} {n} stood there."]
_NOUNS = [p[0] for p in W.PLURALS]
_ADJECTIVES = _list("hot|cold|big|small|happy|sad|good|new|old|dark|wet|dry|quiet|empty|early|late|strong|clean|far|sweet|safe|kind|cheap|fresh|calm|tiny|wild|lucky|fair")


def aside(r):
    """A sentence that has nothing to do with the question."""
    return r.choice(ASIDE).format(n=r.choice(_NOUNS), a=r.choice(_ADJECTIVES))


def around(r, text):
    """A question with words before it, after it or both."""
    y = r.random()
    if y < 0.65:
        greet, lead = r.choice(GREET) + r.choice([",", "!", ".", ",", ":"]) + " ", (r.choice(LEAD) if r.random() < 0.85 else aside(r)) + " "
        low = text if r.random() < 0.6 or text[:2] == "I " else text[:1].lower() + text[1:]
        text = r.choice([greet + low, greet + low, lead + text, lead + low, greet + lead + text])
    if y > 0.5:
        text += " " + (r.choice(CLOSE) if r.random() < 0.9 else aside(r))
    return text


# ---- small slips -----------------------------------------------------------------------

# Words that change nothing, put anywhere into a question; words that may be missing.
FILLER = """really actually now just then perhaps maybe simply again today here quickly kindly please exactly precisely truly indeed possibly once also still
finally first shortly briefly clearly honestly surely certainly now, please, then, again, basically roughly usually normally generally correctly""".split()
DROPPED = {"the", "is", "of", "me", "please", "a", "to", "for", "do", "does", "are", "tell"}


def noisy(r, p):
    """A phrasing with a word more, a word less or two words exchanged: people do not all ask alike."""
    words = p.split(" ")
    if len(words) < 4 or '"' in p:
        return p
    x = r.random()
    if x < 0.55:
        for _ in range(r.choice([1, 1, 2])):
            words.insert(r.randrange(len(words)), r.choice(FILLER))
    elif x < 0.85:
        gone = [i for i, w in enumerate(words[:-1]) if w.lower() in DROPPED]
        if gone:
            del words[r.choice(gone)]
    else:
        i = r.randrange(len(words) - 1)
        if not any("{" in w for w in words[i : i + 2]):
            words[i], words[i + 1] = words[i + 1], words[i]
    return " ".join(words)


# ---- frames ----------------------------------------------------------------------------

def _orders():
    """Please tell me {x}. / Could you name {x}? and so on."""
    will = ["", "Please ", "Can you ", "Could you ", "Would you ", "Will you ", "I want you to ", "I would like you to ", "You should ", "Now ", "Can you please ", "Try to ", "I ask you to ", "Would you please ", "Quickly "]
    do = ["tell me", "give me", "name", "say", "show me", "find", "write down", "state", "remember", "look up", "tell us", "think of", "write", "mention", "answer with"]
    for w, d in itertools.product(will, do):
        mark = "?" if w.split(" ")[0] in ("Can", "Could", "Would", "Will") else "."
        yield cap(w + d) + " {x}" + mark


# Ways to ask for a thing.
FRAMES = list(_orders()) + 3 * _list("""What is {x}?|And what is {x}?|What could {x} be?|What might {x} be?|What's {x}?|Tell me, what is {x}?|What can {x} be?|{X}?|{X}, please.|{X} is what?|I need {x}.|I would like {x}.|Do you know {x}?|{X}: what is it?
I want to know {x}.|I would like to know {x}.|I am looking for {x}.|May I know {x}?|I forgot {x}.|I cannot remember {x}.|Remind me of {x}.|Help me with {x}.|I wonder about {x}.|My teacher asks for {x}.|Quick: {x}?|Well, what is {x}?
Answer this: what is {x}?|I have to write down {x}.|Do you remember {x}?|I ask for {x}.|What do you think is {x}?|Who knows {x}?|I am asking for {x}.|Let me hear {x}.|Let me have {x}.|What do people say is {x}?|I should know {x}, but I do not.
What was {x} again?|Is there a name for {x}?|The question is about {x}.|Please, {x}.|What do I write for {x}?|What do I answer if somebody asks for {x}?|What is it, {x}?|I need to find {x}.|Can I hear {x}?|How about {x}?|Which one is {x}?
So what is {x}?|Where do I read about {x}?|You know {x}, right?|{X} is missing here.|{X} would be what?|I must learn {x}.|On my list is {x}.""")

# Around a statement that may be true or not.
STATEMENTS = _list("""{s}, right?|{s}, isn't that so?|{s}. True?|{s}, true?|{s}. Is that right?|{s}. Is it so?|{s}. Is this correct?|{s}, correct?|{s}. Am I right?|{s}, yes?|{s}, no?|{s}. Yes or no?|{s}: yes or no?|{s}: true or false?
True or false: {s}.|True or false? {s}.|Yes or no: {s}?|Is it true that {s}?|Is it right that {s}?|Is it correct that {s}?|Is it a fact that {s}?|Is it so that {s}?|Can it be that {s}?|Is it possible that {s}?|Do you agree that {s}?|Do you believe that {s}?
Do you believe {s}?|Do you suppose {s}?|Do people think {s}?|Would you say {s}?|Would you say that {s}?|Would you agree that {s}?|Would you think that {s}?|Am I correct that {s}?|Am I right if I say {s}?|Am I right to say that {s}?|Am I wrong to think that {s}?
I think {s}. Is that right?|I believe {s}. Do you agree?|I say {s}. Am I right?|I heard that {s}. Is it true?|I read that {s}. Is that correct?|Somebody told me that {s}. True?|My brother thinks that {s}. Is he right?|My teacher said that {s}. Was that right?
In a book I read that {s}. Right?|They say {s}. Do they lie?|People say that {s}. Is it true?|Check this: {s}.|Please check: {s}.|Check if {s}.|Tell me if {s}.|Can you tell me if {s}?|Can you say if {s}?|Could you check if {s}?|I want to know if {s}.
I am not sure if {s}.|I wonder if {s}.|Does it hold that {s}?|Correct me if I am wrong: {s}.|Suppose I say {s}. Would that be true?|Here is a claim: {s}.|What about this claim: {s}?|Right or wrong: {s}?|Right or wrong? {s}.|Say yes or no: {s}.|Answer yes or no: {s}?
Do you know if {s}?|Let me guess: {s}.|I guess {s}.|I would say {s}. Right?|So {s}?|So {s}, right?|You mean {s}?|Really, {s}?|My sister is sure that {s}.|On the radio they said that {s}. Is that so?|Is this sentence true: {s}?|Are people right to say {s}?""")
# Around a question that begins with its verb ("is Paris the capital of France").
VERB_FIRST = _list("""{q}?|{q}?|{q}? Yes or no?|{q}, yes or no?|Tell me, {q}?|Yes or no: {q}?|{q} or not?|Now, {q}?|And {q}?|So {q}?|Please answer: {q}?|{q}, do you think?|What do you think, {q}?|{q}, what do you say?|Say, {q}?|In your opinion, {q}?
How do you see it: {q}?|Quick, {q}?|{q}? I think so.|{q}? I do not think so.|{q}? Tell me.|Look: {q}?|Let me ask: {q}?|{q} in fact?|{q} really?|{q}, do you know?|{q}? I am not sure.|The question is: {q}?|{q}, true or false?|{q}, maybe?""")


@lru_cache(None)
def old_claims(statements):
    """Questions whether something is so, from (statement, question) pairs."""
    return [cap(f.format(s=s)) for s, _ in statements for f in STATEMENTS] + [cap(f.format(q=q)) for _, q in statements for f in VERB_FIRST]


# ---- system prompts ----------------------------------------------------------------------

_WHEN = _list("always|from now on|please|in this chat|for each question|every time|as a rule|")


def _told(r, verb_phrases, nouns=()):
    """An instruction to do one of `verb_phrases`, or that the answers be as `nouns` say."""
    when = r.choice(_WHEN)
    if nouns and r.random() < 0.4:
        text = r.choice(["All answers are {x}", "Your answers must be {x}", "The answers should be {x}", "Make every answer {x}", "I want answers {x}", "Each answer must be {x}", "Every reply has to be {x}", "The user wants answers {x}", "What you write must be {x}",
                         "Keep your answers {x}", "You give answers that are {x}", "Replies should be {x}", "Let your replies be {x}"]).format(x=r.choice(nouns))
    else:
        text = r.choice(["{x}", "{x}", "You {x}", "You must {x}", "You should {x}", "You have to {x}", "I want you to {x}", "The user wants you to {x}", "Your task is to {x}", "You are an assistant. You {x}", "Remember to {x}", "Never forget to {x}", "Make sure to {x}",
                         "Your rule: {x}", "It is your job to {x}", "Do not forget to {x}", "You are told to {x}", "Be nice and {x}", "You are a model that has to {x}", "The rule is that you {x}"]).format(x=r.choice(verb_phrases))
    text = {0: f"{text}, {when}" if when else text, 1: f"{when}, {text}" if when in ("from now on", "in this chat", "please", "as a rule") else f"{when} {text}"}.get(r.randrange(4), text)
    return cap(text.strip()) + r.choice([".", ".", ".", "!", ""])


_SAY = _list("answer|reply|respond|write|speak|talk")


def _say(*tails):
    return [f"{v} {t}" for v in _SAY for t in tails]


TOLD = {
    "short": (_say("with one word", "in one word", "with a single word", "in a single word", "with exactly one word", "using one word only", "with one word and nothing else") + _list("use one word only|give one word|use a single word|use no more than one word|keep it to one word|say one word and stop"),
              _list("one word long|a single word|just one word|one word only|no longer than a word|only a word|of one word")),
    "upper": (_say("in upper case", "in capital letters", "in capitals", "with capital letters only", "only in capitals", "all in upper case", "in big letters") + _list("use capital letters|use only capitals|use upper case|shout|use upper case letters for everything"),
              _list("in upper case|in capital letters|in capitals|all capitals|written in capitals|upper case only")),
    "lower": (_say("in lower case", "in small letters", "without capital letters", "with small letters only", "only in lower case", "all in lower case") + _list("use small letters|use only lower case|use lower case|avoid capital letters|use no capitals"),
              _list("in lower case|in small letters|without capitals|all lower case|written in small letters|lower case only")),
    "begin": (_list("begin with {w}|start with {w}|begin each answer with {w}|start every reply with the word {w}|open each answer with {w}|put {w} at the beginning|put {w} first|write {w} in front of each answer|use {w} as the first word|say {w} at the start|let {w} come first|place {w} at the start of each reply"), ()),
    "end": (_list("end with {w}|finish with {w}|end each answer with {w}|close every reply with the word {w}|finish each answer with {w}|put {w} at the end|put {w} last|write {w} behind each answer|use {w} as the last word|say {w} at the end|let {w} come last|place {w} at the end of each reply"), ()),
}


def told(r, style):
    return _told(r, *TOLD[style])
