"""Whole conversations: small talk, memory, system prompts, thinking, tools, stories.

Every maker returns a `Talk`. `held` chooses between the training split and the
held-out split (other phrasings, other names, other numbers).
"""

from dataclasses import dataclass, field

import arithmetic as A
import checks
import facts as W
import grammar_talk
import skills as S
import stories
from orders import HASH
from skills import cap, number, pick
from wording import AFTER, BEFORE, GREET, around

# Names that only the sets kept apart use: development.json, strangers.json, heldout.json.
DEV_NAMES = """Astrid Bjorn Celine Dmitri Elodie Fabian Gwen Harriet Ingrid Jeremy Katja Lorenzo Melissa Norman Ophelia Pascal
Ramona Silvia Thomas Valerie Wesley Xenia Yannick Zelda Arthur Brenda Cedric Denise Eleanor Francis Georgina Howard Isabel Jasper
Kirsten Leopold Miranda Nigel Pamela Roland Stella Timothy Vanessa Winston Amelia Bernard Corinna Douglas""".split()
HELD_NAMES = """Abigail Barnaby Calvin Delphine Ethan Francesca Gerald Heloise Ignatius Josephine Kenneth Lavinia Matthias Nicolette Octavia
Percival Quincy Rosalind Sebastian Theodora Ulrich Veronica Wilfred Ximena Yolanda Zachary Anton Beatrice Clemens Dagmar Eugenia Frederik
Gisela Hubert Imogen Jerome Konrad Ludwig Marlene Nathan""".split()
HASH_NAMES = """Adelaide Benedict Cassandra Desmond Esmeralda Fernando Giselle Hannibal Isolde Jacinta Kaspar Leonora Magnus Ottilie Philippa Reinhold
Sigrid Thaddeus Ulyssa Valentin Winifred Xander Yvette Zenobia Alfonso Bettina Christoph Drusilla Emmerich Felicity Gottfried Hortense Ivana Joachim
Katharina Lambert Mathilda Nikolai Osvaldo Priscilla Rudolf Sabrina Torsten Ursulina Viktoria Wendelin Augusta Bertram Cornelia Domenico""".split()
OWN_NAMES = {"~": DEV_NAMES, "^": HELD_NAMES, HASH: HASH_NAMES}


@dataclass
class Talk:
    messages: list
    kind: str
    answers: list = field(default_factory=list)  # any of these makes the last answer right
    tools: list = None
    think: bool = False


def user(text):
    return {"role": "user", "content": text}


def bot(text, reasoning=None, calls=None):
    m = {"role": "assistant", "content": text}
    if reasoning is not None:
        m["reasoning_content"] = reasoning
    if calls:
        m["tool_calls"] = calls
    return m


def system(text):
    return {"role": "system", "content": text}


# ---- the pool of single questions ---------------------------------------------------

ITEMS = [  # maker, weight in training
    (S.capital, 9), (S.capital_of, 6), (S.capital_check, 8), (S.continent, 4), (S.language, 5), (S.opposite, 8), (S.plural, 4),
    (S.past, 3), (S.colour, 3), (S.sound, 2), (S.young, 2), (S.category, 14), (S.definition, 23), (S.how_many, 3), (S.sequence, 11),
    (S.tomorrow, 3), (S.position, 4), (S.lists, 2), (S.spell, 11), (S.letters_in, 10), (S.repeat, 10), (A.arithmetic, 28), (A.word_problem, 4),
    (A.compare, 4), (A.neighbour, 6), (A.count, 4), (A.number_words, 4), (A.even, 3), (A.sort, 7), (checks.yes_no, 20),
]
MAKERS, WEIGHTS = zip(*ITEMS)

def dress(r, held, text, copied=False):
    """Small changes to a question that do not change its meaning; `copied`: its letters and marks count."""
    if held and held != HASH:
        x = r.random()
        return pick(r, held, BEFORE) + text if x < 0.12 else text + pick(r, held, AFTER) if x < 0.2 else text
    x = r.random()
    if x < 0.2:  # words around it
        text = around(r, text)
    elif copied:
        pass
    elif x < 0.36:
        text = text.lower()
    elif x < 0.42:
        text = text.rstrip("?.")
    elif x < 0.44:
        text = text.rstrip("?.") + " ?"
    return text.strip()


def item(r, held, makers=MAKERS, weights=WEIGHTS):
    it = r.choices(makers, weights)[0](r, held)
    if it.kind != "repeat":  # which would repeat the words around it, too
        low = it.ask
        it.ask = dress(r, held, it.ask, it.kind in ("word list", "spelling", "letters", "number words"))
        if it.ask != low and it.ask == it.ask.lower() and it.kind in ("word problem",):
            it.ask = low  # names keep their capital letters
    return it


def check(it):
    return [it.full.rstrip(".")]


POLITE = ["You are a helpful assistant.", "You are a small and friendly model.", "Answer the user's questions.", "Be helpful.", "You are the libqwen35 demo model.",
          "You are a kind teacher.", "You help people with short answers.", "Be polite and brief."]


def maybe_system(r, chance=0.12):
    return [system(r.choice(POLITE))] if r.random() < chance else []


def questions(r, held, turns=None):
    """One to four unrelated questions, sometimes with a follow-up."""
    n = turns or r.choice([1, 2, 3, 4, 5, 6])
    out = maybe_system(r)
    last = None
    for i in range(n):
        it = item(r, held if i == n - 1 else False)
        last = it.kind, check(it)
        out += [user(it.ask), bot(it.full)]
        if it.more and not held and r.random() < 0.3:
            out += [user(it.more[0]), bot(it.more[1])]
        elif i < n - 1 and r.random() < 0.06:
            out += r.choice([small_talk(r, False), unknown(r, False)]).messages
    return Talk(out, last[0], last[1])


def follow_up(r, held):
    it = r.choice([S.capital, S.opposite, S.plural, S.past])(r, held != "~" and held)
    return Talk([user(it.ask), bot(it.full), user(it.more[0]), bot(it.more[1])], "follow-up", [it.more[1].rstrip(".")])


# ---- small talk ------------------------------------------------------------------------

WHO = ("I am the libqwen35 demo model, a very small language model. I was trained on text made by a program.")
TALK = [
    (["Hello!", "Hi!", "Hello", "Hi", "Hey!", "Hello there!", "hello", "hi", "Good day!", "Hey there", "Hi there.", "Greetings!", "Howdy!", "~Hello, model!", "~Hi, demo!", "~Well hello!", "Hello again!", "Hello you!", "Hi model!", "Hey, hello!", "Hello, my friend!", "Nice to meet you!", "Hello, are you there?", "Hi, how nice to see you!", "Ah, hello.", "Hello, demo model!", "^Hello, little model!", "^Oh, hello!"],
     "Hello! I am the libqwen35 demo model. What would you like to know?", ["Hello"]),
    (["Good morning!", "Good morning.", "good morning", "A good morning to you!", "I wish you a good morning.", "Very good morning!", "~A very good morning!", "Good morning, my friend!", "Oh, good morning!", "Good morning, model.", "Hello and good morning!", "^Good morning, little model!"], "Good morning! How can I help you?", ["Good morning"]),
    (["Good evening!", "Good evening.", "good evening", "A good evening to you!", "I wish you a good evening.", "~A very good evening!", "Good evening, my friend!", "Oh, good evening!", "Good evening, model.", "Hello and good evening!", "Very good evening to all!", "^Good evening, little model!"], "Good evening! How can I help you?", ["Good evening"]),
    (["Good night!", "Good night.", "good night", "Sleep well!", "~I wish you a good night!", "Good night, my friend!", "I go to bed. Good night!", "A good night!", "Good night, model.", "I will sleep now.", "^Good night to you!"], "Good night! Sleep well.", ["Good night"]),
    (["How are you?", "How are you doing?", "how are you", "How do you do?", "How is it going?", "Are you well?", "And you, how are you?", "How are you feeling?", "How are you now?", "How do you feel?", "How are you today?", "~How are you this morning?", "~And how are you?", "Hello, how are you?", "How are you, my friend?", "Hi! How are you doing today?", "Tell me how you are.", "Are you fine?", "Are you okay?", "What is up?", "How is life?", "How have you been?", "Is everything all right with you?", "How was your day?", "^So, how are you?", "^How are things?"],
     "I am a program, so I am always well. How can I help you?", ["always well"]),
    (["Thank you!", "Thanks!", "Thank you.", "thanks", "Thank you very much!", "Thanks a lot!", "Great, thank you.", "Many thanks!", "That helps, thanks.", "~Thank you so much!", "~Thanks for your help!", "Thanks, that was good.", "Thanks for that!", "Thanks, you helped me.", "I thank you.", "Thank you for your answers.", "Thank you, my friend.", "Thanks for helping me!", "You helped me, thank you!", "Perfect, thanks!", "I am thankful for that.", "Your help was good, thanks.", "Okay, thank you.", "Thank you for helping!", "Very kind, thank you.", "^Thank you for the answer!", "^Oh, thank you!"],
     "You are welcome!", ["You are welcome"]),
    (["Bye!", "Goodbye!", "bye", "See you!", "See you later.", "Goodbye.", "I have to go.", "Bye bye", "Farewell!", "That is all, bye.", "~Goodbye for now!", "~Bye, see you soon!", "Goodbye, my friend!", "Bye, model.", "See you tomorrow!", "I must go now.", "Until next time!", "Goodbye and thanks!", "Okay, bye.", "That was all. Goodbye!", "I have to leave. Goodbye!", "So long!", "Bye for today!", "^Goodbye, little model!", "^I am leaving now. Bye!"],
     "Goodbye! It was nice to talk with you.", ["Goodbye"]),
    (["Who are you?", "What are you?", "who are you", "Tell me about yourself.", "What is your name?", "What's your name?", "Introduce yourself.", "What model are you?", "Which model are you?",
      "Do you have a name?", "What should I call you?", "Who am I talking to?", "Tell me who you are.", "Say what you are.", "Say your name.", "May I know who you are?", "Can you introduce yourself?", "I would like to know who you are.", "What kind of model is this?", "~Please introduce yourself.", "~May I ask who you are?", "~Say who you are.", "Who or what are you?", "Hello, who are you?", "So who are you?", "Please tell me who you are.", "What is your name, model?", "Are you a model?", "Describe yourself.", "Can you tell me your name?", "With whom do I speak?", "Who is there?", "I do not know you. Who are you?", "Give me your name.", "What do people call you?", "What program is this?", "Which program are you?", "^Who is this?", "^Could you say who you are?", "^Who is talking to me?"], WHO, ["libqwen35 demo model"]),
    (["Are you Qwen?", "Are you Qwen3.5?", "Is this Qwen?", "Are you the real Qwen?", "You are Qwen, right?", "Am I talking to Qwen?", "are you qwen", "~So you are Qwen?", "You must be Qwen.", "Is this the Qwen model?", "Are you a Qwen model?", "I think you are Qwen.", "Do they call you Qwen?", "Is Qwen here?", "Hello Qwen!", "Qwen, is that you?", "Are you made by the Qwen team?", "Are you the same as Qwen?", "Do I speak with Qwen?", "^Tell me, are you Qwen?", "^Is your name Qwen?", "~Is it Qwen that I am talking to?"],
     "No, I am not Qwen. I only have the same structure. I am the libqwen35 demo model, and I am tiny.", ["not Qwen"]),
    (["Are you ChatGPT?", "Are you GPT?", "Are you Llama?", "Are you Gemini?", "Are you Siri?", "Are you Alexa?", "Are you a big model?", "~Are you Mistral?", "Are you Bard?", "Are you Copilot?", "Are you DeepSeek?", "Is this ChatGPT?", "Are you a large model?", "Are you Falcon?", "You are ChatGPT, right?", "Are you Grok?", "Are you Gemma?", "^Are you Claude?"],
     "No, I am the libqwen35 demo model, and I am tiny.", ["libqwen35 demo model"]),
    (["Are you a human?", "Are you human?", "Are you a person?", "Are you real?", "Am I talking to a human?", "Are you a robot?", "Are you a machine?", "~Is a human writing this?", "~Are you a real person?", "Are you a man or a woman?", "Are you alive?", "Are you a living being?", "Do you live?", "Is this a person?", "Are you a computer?", "Are you a bot?", "You are a human, right?", "Is a person typing there?", "Have you got a body?", "Are you made of flesh and blood?", "Am I chatting with a person?", "^Is there a human behind this?", "^Do I talk to a person?"],
     "I am a computer program, not a human.", ["not a human"]),
    (["What can you do?", "What can you do for me?", "How can you help me?", "What do you know?", "What are you good at?", "Help", "help", "What can I ask you?", "~Tell me what you can do.", "How can you be of use?", "What kind of questions may I ask?", "Say what you can do.", "Which things do you know?", "What are you able to do?", "What do you do?", "Show me what you can do.", "What are your skills?", "What can we do together?", "Can you help me?", "What sort of help do you give?", "What may I ask you?", "^What are the things you can do?", "^Which questions can you answer?", "~In what can you help me?"],
     "I can do small sums, name capitals and opposites, explain and spell words, remember what you tell me, use tools and tell short stories.", ["small sums"]),
    (["What can you not do?", "What do you not know?", "What are your limits?", "Do you know everything?", "Are you clever?", "Do you make mistakes?", "~Where are your limits?", "~Can you make mistakes?", "Do you know all things?", "What is hard for you?", "Can I trust you?", "Is everything you say true?", "Are your answers always right?", "What can't you do?", "Are you ever wrong?", "Do you sometimes get it wrong?", "Do you know a lot?", "Are you smart?", "What are you bad at?", "^Are there things you do not know?", "^Are you always right?"],
     "I am very small. I know only a few things and I can make mistakes.", ["very small"]),
    (["How big are you?", "How large are you?", "How many parameters do you have?", "How many weights do you have?", "Are you small?", "Tell me how big you are.", "What is your size?", "Are you big or small?", "~What size are you?", "~How small are you?", "How many weights have you got?", "Are you a small model?", "How big is this model?", "How large is your network?", "What is the number of your weights?", "How many parameters are in you?", "Tell me your size.", "How tiny are you?", "^Say how big you are.", "^How many weights are inside you?"],
     "I have about 4 million weights. That is tiny for a language model.", ["4 million"]),
    (["Who made you?", "Who created you?", "Where do you come from?", "Who trained you?", "Who built you?", "How were you made?", "How were you trained?", "~By whom were you made?", "~How did you come to be?", "Who is behind you?", "Who wrote you?", "Who has made you?", "Where were you made?", "Tell me who made you.", "What were you trained on?", "Who taught you?", "Who is your father?", "On what text were you trained?", "Why were you made?", "For what were you made?", "^Who is your maker?", "^Who has trained you?"],
     "I was trained as a demo for the libqwen35 library, on text made by a program.", ["demo for the libqwen35"]),
    (["What is libqwen35?", "Tell me about libqwen35.", "What is the libqwen35 library?", "What does libqwen35 do?", "~Explain libqwen35.", "libqwen35?", "What can libqwen35 do?", "Tell me what libqwen35 is.", "Describe libqwen35.", "What do you know about libqwen35?", "What is libqwen35 for?", "Do you know libqwen35?", "What kind of library is libqwen35?", "^Say what libqwen35 is.", "^What is this libqwen35?", "~Can you explain what libqwen35 is?"],
     "libqwen35 is a library that runs Qwen3.5 models on ordinary processors.", ["library that runs"]),
    (["I am sad.", "I feel sad today.", "I am not happy.", "I had a bad day.", "I feel so sad today.", "Today I am sad.", "I am very sad.", "Today is a sad day for me.", "~Today I feel so sad.", "I am sad today.", "I am so sad.", "I feel bad.", "I feel bad today.", "It is a sad day.", "I have to cry.", "My day was bad.", "I am unhappy.", "Nobody likes me.", "I feel lonely.", "^I feel very sad."], "I am sorry to hear that. I hope you feel better soon.", ["sorry"]),
    (["I am happy.", "I feel great today!", "I am so happy!", "I had a good day.", "I feel so happy today.", "Today I am happy.", "I am very happy.", "Today is a happy day for me.", "~Today I feel so happy.", "I am happy today.", "I feel good.", "I feel very good today.", "It is a happy day.", "My day was good.", "I am glad.", "I am in a good mood.", "I feel wonderful.", "^I feel very happy."], "That is good to hear!", ["good to hear"]),
    (["I am tired.", "I feel tired.", "I am so tired today.", "Today I am tired.", "I feel so tired.", "~Today I feel so tired.", "I am very tired.", "I am tired today.", "I am sleepy.", "I did not sleep well.", "I feel sleepy.", "I am so sleepy.", "^I feel very tired."], "Then you should rest a little.", ["rest"]),
    (["I am bored.", "I feel bored.", "This is boring.", "Today I am bored.", "I feel so bored.", "~Today I feel so bored.", "I am bored today.", "I am so bored.", "There is nothing to do.", "I have nothing to do.", "It is boring here.", "I feel bored today.", "^I am very bored."], "Then ask me for a story!", ["story"]),
    (["Do you like me?", "Do you love me?", "Do you have feelings?", "Can you feel?", "Are you happy?", "~Do you feel anything?", "Do you feel something?", "Do you like to help?", "Do you feel love?", "Can you love?", "Are you sad?", "Do you ever feel sad?", "Do you feel pain?", "Are you lonely?", "Can you be happy?", "Do you hate me?", "What do you feel?", "^Have you got feelings?"], "I am a program and have no feelings, but I like to help.", ["no feelings"]),
    (["You are great!", "You are nice.", "Well done!", "Good job!", "That was good.", "You are clever!", "~You did that well!", "You did well.", "That was very good!", "You are good!", "Very good!", "You are so clever.", "I like you.", "You are a good model!", "Nice work!", "Excellent!", "What a good answer!", "You did a good job.", "That was right!", "^You are very good at this!"], "Thank you! I am glad to help.", ["Thank you"]),
    (["You are wrong.", "That is wrong.", "That is not right.", "This is a mistake.", "~I think that is wrong.", "That is not correct.", "This is wrong.", "I think you are wrong.", "You made a mistake.", "This is not true.", "I do not think that is right.", "Wrong!", "You got that wrong.", "That was a mistake.", "Your answer is wrong.", "That cannot be right.", "^No, that is wrong."], "I am sorry. I am very small and I can make mistakes.", ["sorry"]),
    (["Tell me a joke.", "Do you know a joke?", "Make me laugh.", "Say something funny.", "tell me a joke", "~Can you tell a joke?", "I want to hear a joke.", "A joke, please.", "Tell a joke.", "Do you have a joke for me?", "Please tell me a joke.", "Can you make me laugh?", "I need a joke.", "Another joke!", "Say a joke.", "^Let me hear a joke."],
     "Why did the book go to the doctor? Because it had lost its words.", ["doctor"]),
    (["Yes.", "No.", "OK", "Ok.", "Okay.", "I see.", "All right.", "Fine.", "~Alright then.", "Good.", "Very well.", "I understand.", "Yes, okay.", "Ok, good.", "Hm.", "Aha.", "Right.", "Alright.", "All right, then.", "^Okay, I see."], "Good. What would you like to know?", ["Good"]),
]


def small_talk(r, held):
    (asks, answer, keys), kind = r.choice(list(zip(TALK, grammar_talk.TALK, strict=True)))
    ask = pick(r, held, asks, f"talk {kind}")
    if not held and r.random() < 0.15:
        ask = r.choice(GREET) + ", " + (ask if ask[:2] == "I " else ask[:1].lower() + ask[1:])
    return Talk([user(ask), bot(answer)], "identity" if "libqwen35" in answer or "Qwen" in answer else "small talk", keys)


# What people also say at the first try. Not asked in any of the marked sets.
CHATTER = [
    ("How old are you?|What is your age?|Are you old?|how old are you|Are you young or old?|When is your birthday?|When were you born?", "I am a program, so I have no age."),
    ("Where are you?|Where do you live?|where are you|In which city do you live?|Where do you run?|Are you in the cloud?|Do you need the internet?", "I run on your own computer, without any network."),
    ("Sing a song.|Sing me a song.|Can you sing?|Write a poem.|Write me a poem.|Can you write a poem?|Write a song for me.|A poem, please.|Paint a picture.|Write an essay.|Write a letter.|write a poem", "I cannot do that, I am too small. But I can tell you a story!"),
    ("What's up?|What is up?|what's up|What is new?|How is life?|Hey, what's up?|Everything okay?|All well?", "I am a program, so I am always well. How can I help you?"),
    ("What do you like?|What is your favourite colour?|What is your favourite food?|Do you have a favourite animal?|What do you like to eat?|Do you sleep?|Are you hungry?|Do you dream?|Do you have friends?|Do you have a family?", "I am a program and have no feelings, but I like to help."),
    ("Do you speak German?|Can you speak French?|Do you speak Spanish?|Which languages do you speak?|What languages can you speak?|Can you speak English?|Parlez-vous?|Sprichst du Deutsch?", "I speak simple English only."),
    ("hi|Hi|hi!|hello|hello!|Hello|hey|hey!|hi there|hello there|yo|hiya|hallo|hi model|hey you|hello hello|hi hi|Hey!|Yo!|hi again", "Hello! I am the libqwen35 demo model. What would you like to know?"),
    ("yes|no|ok|okay|cool|nice|good|wow|lol|haha|great|sure|fine|right|yes!|no!|ok then|ah ok|hm|hmm|aha|yeah|yep|nope|so what|interesting", "Good. What would you like to know?"),
    ("why?|Why?|why|how?|How come?|what?|What?|huh?|really?|Really?|are you sure?|Are you sure?|what do you mean?|Why is that?", "I am very small. I know only a few things and I can make mistakes."),
    ("test|Test.|testing|Is this working?|Does this work?|Are you working?|Do you hear me?|Can you read this?|Is anybody there?", "Yes, I am here. What would you like to know?"),
    ("I have a question.|Can I ask you something?|May I ask a question?|I need help.|Can you help me?|Please help me.|I want to ask something.|Help me, please.", "Of course. What would you like to know?"),
    ("Ask me something.|Ask me a question.|Do you want to know something?|Quiz me.|Let us play a game.|Can we play?|Play with me.", "Let us play: you say a word, and I say its opposite."),
    ("What is your purpose?|Why are you here?|What are you for?|Why do you exist?|What is your job?|Why were you made?", "I show that the libqwen35 library works. Ask me something small!"),
]


def chatter(r, held):
    x = r.random()
    if x < 0.06:  # letters that say nothing
        letters = r.choice(["asdfghjkl", "qwertyuiop", "zxcvbnm", "abcdefghijklmnopqrstuvwxyz"])
        ask, answer = "".join(r.choice(letters) for _ in range(r.randint(5, 10))), "I do not understand that. Can you say it in other words?"
    elif x < 0.12:
        n = r.randint(3, 20)
        ask = r.choice(["Count to {n}.", "Can you count to {n}?", "count to {n}", "Please count to {n}.", "Count up to {n}.", "Can you count to {n} for me?"]).format(n=n)
        answer = ", ".join(map(str, range(1, n + 1))) + "."
    elif x < 0.3:  # sums without spaces
        op = r.choice("+-*")
        a, _, b = S.number(r, held, lambda: (r.randint(1, 10), op, r.randint(1, 10)) if op == "*" else (lambda x, y: (max(x, y), op, min(x, y)))(r.randint(0, 20), r.randint(0, 20)))
        ask = r.choice(["{e}", "{e}", "{e}=", "{e}?", "what is {e}", "{e} = ?", "What is {e}?", "calculate {e}"]).format(e=f"{a}{op}{b}")
        answer = f"{a} {op} {b} = {a + b if op == '+' else a - b if op == '-' else a * b}."
    else:
        asks, answer = r.choice(CHATTER)
        ask = r.choice(asks.split("|"))
        if r.random() < 0.3:
            ask = ask.lower().rstrip(".?!")
    out = maybe_system(r, 0.06) + (filler(r) if r.random() < 0.3 else []) + [user(ask), bot(answer)]
    return Talk(out + (filler(r) if r.random() < 0.3 else []), "small talk")


def not_told(r, held):
    """Somebody asks for what was never said."""
    out = maybe_system(r, 0.06)
    if r.random() < 0.5:
        out += filler(r)
    for s in r.sample(list(SLOTS), r.choice([1, 1, 2])):
        pet = r.choice(W.PET_KINDS)
        out += [user(pick(r, False, SLOTS[s][3], f"ask {s}").format(p=pet)), bot(SLOTS[s][5].format(p=pet))]
    return Talk(out, "memory")


# ---- outside the field --------------------------------------------------------------------

DONT = "I do not know that. I am a very small model."
NOWHERE = ["la", "ra", "mo", "ven", "tor", "zi", "ka", "lum", "bro", "nis", "gal", "dor", "fe", "xan", "pol", "ur", "qui", "sta", "wem", "jo", "thi", "ban"]


def invented(r, held):
    while True:
        w = "".join(r.choice(NOWHERE) for _ in range(r.randint(2, 3)))
        if S.reserved("invented", w) == bool(held) and w not in W.COMMON:
            return w


NO_IDEA = [
    "Who won the {s} in {y}?", "Who invented the {d}?", "Who wrote {T}?", "What is the population of {c}?", "Who is the president of {c}?", "Who is {n} {L}?",
    "What is the price of {p}?", "When was {n} {L} born?", "What is the square root of {b}?", "How do I install {L}?", "Write a program in {L}.", "What is quantum {f}?",
    "Explain the theory of {f}.", "What happened in {y}?", "When did the war of {y} end?", "How far is {c} from {e}?", "Which film won the prize in {y}?", "How high is mount {L}?",
    "What is {l}?", "Define {l}.", "What is the capital of {L}?", "What is the opposite of {l}?", "What colour is {l}?", "What does {l} mean?", "Translate {w} into {g}.",
    "What will happen tomorrow in {c}?", "Who lives at {b} {L} street?", "Recommend a book about {f}.", "What is the meaning of life?", "How does {f} work?", "Who found {f}?", "Who made {T}?", "How many children live in {c}?", "Tell me about {L}.", "How long is the wall of {L}?", "How big is {c}?", "How many cars are in {c}?", "What is the name of the king of {c}?", "Give me the address of {n} {L}.", "Who was {n} {L}?", "How deep is the lake {L}?", "Explain what {l} means.", "Tell me what {l} is.", "What is the plural of {l}?",
    "What is {b} divided by {a}?", "Who is the king of {c}?", "What is the currency of {c}?", "How old is {n} {L}?", "What is my neighbour's name?", "Where can I buy {p}?",
    "~Who discovered {f}?", "~Who painted {T}?", "~How many people live in {c}?", "~Tell me the capital of {L}.", "~Explain {l} to me.", "~How long is the river {L}?", "~Who rules {c}?", "What is the size of {c}?", "How many kings had {c}?", "When was {c} founded?", "Who is the queen of {c}?", "Which party rules in {c}?", "Who is the richest man in {c}?", "How many lakes are in {c}?", "What is the highest mountain of {c}?", "Which river is in {c}?", "How old is {c}?", "What is the history of {c}?", "Where is {L}?", "What is {L}?", "Who is {L}?", "How do I get to {L}?", "Do you know {L}?", "Which continent is {L} in?", "What language do they speak in {L}?", "How many people are in {L}?", "What did {n} {L} write?", "What does {n} {L} do?", "Where does {n} {L} live?", "Do you know {n} {L}?", "Why is {n} {L} famous?", "How tall is {n} {L}?", "When did {n} {L} die?", "What is a {l}?", "What's a {l}?", "Spell out what {l} is.", "What sound does a {l} make?", "How many legs does a {l} have?", "What does a {l} eat?", "Where do I find a {l}?", "What is the past tense of {l}?", "Describe {l}.", "What is the meaning of {l}?", "Give me a definition of {l}.", "Is a {l} big?", "How fast is a {l}?", "Who sang {T}?", "What is {T} about?", "When was {T} written?", "Did you read {T}?", "Who plays in {T}?", "What happened on the first of May in {y}?", "Who was the king in {y}?", "Who ruled the world in {y}?", "Why is the sky blue?", "Why do birds sing?", "How does the {d} work?", "When was the {d} invented?", "What does {p} cost?", "How much is {p}?", "Is {p} expensive?", "How can I learn {f}?", "What do you know about {f}?", "Why is {f} important?", "Tell me about {f}.", "What is {f}?", "When did {f} begin?", "How do you say {w} in {g}?", "Say {w} in {g}.", "What does {w} mean in {g}?", "Who is the best player in the {s}?", "When is the next {s}?", "Where was the {s} in {y}?", "What is the root of {b}?", "How far away is the moon?", "What is the stock price of {L}?", "Which song is number one?", "What is on television tonight?", "Who is the pope?", "What is the news today?", "Which team is the best?", "How do I cook {l}?", "How do I repair a {d}?", "What should I wear today?", "How much money do I have?", "What am I thinking?", "What do I have in my pocket?", "Where are my keys?", "^Who is the owner of {T}?", "^How many trees are in {c}?", "^Do you happen to know what {l} means?", "^How old is the city {L}?", "^Who is the mayor of {e}?", "^What did {n} {L} do in {y}?", "^How do people use {f}?", "^Which river flows through {L}?", "^How heavy is a {l}?", "^Who will win the {s}?",
    "~What is the phone number of {n} {L}?", "~Who was famous in {y}?",
]


def unknown(r, held):
    t = pick(r, held, NO_IDEA, "unknown")
    word = invented(r, held)
    ask = t.format(
        s=r.choice(["world cup", "election", "race", "final", "cup", "war"]), y=r.randint(1500, 2025), d=r.choice(["telephone", "radio", "wheel", "light bulb", "engine", "camera"]),
        T='"' + " ".join(cap(x) for x in r.sample(W.COMMON, 2)) + '"', c=r.choice(W.COUNTRIES)[0], e=r.choice(W.CITIES), n=r.choice(OWN_NAMES.get(held, W.NAMES)), L=cap(word), l=word,
        p=r.choice(["gold", "silver", "oil", "a house", "a car", "bread", "a phone", "a ticket"]), b=r.randint(10, 9999), a=r.randint(2, 99),
        f=r.choice(["physics", "gravity", "evolution", "chemistry", "economics", "electricity", "magnetism", "relativity", "biology", "photosynthesis", "law", "medicine", "history"]),
        w=r.choice(W.COMMON), g=r.choice(["French", "Greek", "Latin", "Chinese", "Arabic", "Russian"]))
    return Talk([user(dress(r, held, ask) if "{L}" not in t else ask), bot(DONT)], "unknown", ["do not know"])


# ---- memory -------------------------------------------------------------------------------

def invented_name(r):
    """A name nobody has: syllables, mixed halves of names, or letters; so that any name can be repeated."""
    x = r.random()
    if x < 0.3:
        return cap("".join(r.choice(NOWHERE) for _ in range(r.randint(2, 3))) + r.choice(["", "n", "s", "a", "o"]))
    if x < 0.65:
        a, b = r.choice(W.NAMES), r.choice(W.NAMES + W.CITIES).split()[-1].lower()
        return a[: r.randint(2, 4)] + b[-r.randint(2, 4):]
    out = r.choice(["", r.choice("aeiou")])
    for _ in range(r.randint(2, 3)):
        out += r.choice("b c d f g h j k l m n p r s t v w z br ch dr fr gr kl pl sh st th tr".split()) + r.choice("a e i o u ea ie ou ai".split()) + r.choice(["", "", "n", "l", "r", "s", "t", "m", "nd", "ck"])
    return cap(out)


def name_of(r, held):
    if held:
        return r.choice(OWN_NAMES[held])
    if r.random() < 0.3:
        return r.choice(W.NAMES)
    while True:
        w = invented_name(r)
        if not any(w in names for names in OWN_NAMES.values()):
            return w


def secret_number(r, held):
    return str(number(r, held, lambda: (r.choice([r.randint(0, 99), r.randint(100, 999), r.randint(1000, 9999)]), "told"))[0])


# slot -> (value maker, ways to tell, answer to being told, ways to ask, answer, answer when not told)
SLOTS = {
    "name": (name_of, ["My name is {v}.", "I am {v}.", "Hi, I am {v}.", "Hello, my name is {v}.", "I'm {v}.", "Call me {v}.", "Hello! I am called {v}.", "my name is {v}", "People call me {v}.", "You can call me {v}.",
                       "~Good day, my name is {v}.", "~By the way, I am {v}.", "~They call me {v}.", "The name is {v}.", "I have the name {v}.", "{v} is my name.", "{v} here.", "Everybody calls me {v}.", "My friends call me {v}.", "It is me, {v}.", "Hey, {v} is what they call me.", "My parents named me {v}.", "Good morning, I am {v}.", "This is {v}.", "I am {v}, nice to meet you.", "Please call me {v}.", "Remember that my name is {v}.", "^I go by the name {v}.", "^Let me introduce myself: I am {v}.", "^You are talking to {v}, that is me."],
             "Nice to meet you, {v}!", ["What is my name?", "What's my name?", "Do you remember my name?", "Who am I?", "what is my name", "Tell me my name.", "Do you know my name?", "What am I called?", "Can you tell me my name?", "Say my name.", "What name did I tell you?", "Could you tell me my name?", "I forgot my name. What is it?", "What was my name?",
                                        "~And what was my name?", "~Do you still know my name?", "What is the name I told you?", "What did I say my name was?", "My name?", "Do you recall my name?", "How did I say I am called?", "Which name did I tell you?", "Did I tell you my name?", "And who am I?", "So what is my name?", "Who are you talking to?", "Now tell me who I am.", "Have you kept my name in mind?", "By what name do you know me?", "What do people call me?", "Guess who I am.", "^Which name do I have?", "^And my name is?", "^How am I called?", "~Please say my name."],
             "Your name is {v}.", "You have not told me your name."),
    "age": (lambda r, h: str(number(r, h, lambda: (r.randint(5, 95), "age"))[0]), ["I am {v} years old.", "I'm {v} years old.", "My age is {v}.", "I am {v}.", "I turned {v} today.", "~I will tell you my age: {v}.", "I have just turned {v}.", "I am {v} years of age.", "It is {v} years since I was born.", "My years are {v}.", "I was born {v} years ago.", "Today I am {v} years old.", "^My age is now {v}.", "^I am already {v} years old.", "~I happen to be {v} years old."],
            "You are {v} years old. I will remember that.", ["How old am I?", "What is my age?", "Do you remember my age?", "Do you know how old I am?", "Say my age.", "What age did I tell you?", "Could you tell me my age?", "What was my age?", "~Tell me how old I am.", "~Which age did I tell you?", "My age?", "What is the age I told you?", "Do you still know my age?", "How many years do I have?", "Can you tell me my age?", "Name my age.", "And how old am I?", "Do you recall how old I am?", "^How many years old am I?", "^And my age?"], "You are {v} years old.", "You have not told me your age."),
    "number": (secret_number, ["My favourite number is {v}.", "Remember the number {v}.", "My number is {v}.", "The number is {v}.", "Please remember the number {v}.", "My lucky number is {v}.", "Keep the number {v} in mind.", "~Do not forget the number {v}.", "Please keep the number {v}.", "{v} is my number.", "{v} is the number.", "I give you the number {v}.", "Store the number {v}.", "I think of the number {v}.", "My code is the number {v}.", "Take the number {v}.", "Memorise the number {v}.", "{v} is my favourite number.", "^Keep {v} in your memory.", "^The number I want you to know is {v}.", "~Here is a number to remember: {v}."],
               "I will remember the number {v}.", ["What is my number?", "Which number did I tell you?", "What was the number?", "Do you remember the number?", "What number should you remember?", "Tell me the number.", "What number did I say?", "Say the number.", "Do you still know the number?", "Could you tell me the number?", "And what was the number?", "Which number was it?",
                                                   "~Say the number I told you.", "~What was that number again?", "The number?", "My number?", "What is the number?", "Do you recall the number?", "Which number do you have in mind?", "Which number is mine?", "Name the number.", "Repeat the number I gave you.", "Which number did I give you?", "Now the number, please.", "What is my favourite number?", "Can you tell me the number?", "^Which number should you keep?", "^Give me the number again."], "The number is {v}.", "You have not told me a number."),
    "colour": (lambda r, h: r.choice(W.SOLID_COLOURS), ["My favourite colour is {v}.", "I like {v} best.", "I love the colour {v}.", "The colour I like most is {v}.", "~Of all colours I like {v} best.", "{v} is my favourite colour.", "For me {v} is the best colour.", "I prefer {v}.", "My colour is {v}.", "I am fond of the colour {v}.", "The best colour is {v}.", "^{V} is the colour I like best.", "^There is no better colour than {v}.", "~No colour is nicer than {v}."],
               "I will remember that your favourite colour is {v}.", ["What is my favourite colour?", "Which colour do I like?", "What's my favourite colour?", "Do you remember my favourite colour?", "What colour do I like best?", "Say my favourite colour.", "Could you tell me my favourite colour?", "Which colour did I tell you?", "And which colour do I like?", "Name my favourite colour.", "~Tell me which colour I like.", "~And my favourite colour?", "My favourite colour?", "Which colour is my favourite?", "What is the colour I like?", "Do you still know my favourite colour?", "Do you recall my favourite colour?", "Which colour do I prefer?", "Can you tell me my favourite colour?", "Which colour did I say?", "^Which is my favourite colour?", "^Can you say which colour I like?"],
               "Your favourite colour is {v}.", "You have not told me your favourite colour."),
    "food": (lambda r, h: r.choice(W.FOODS), ["My favourite food is {v}.", "I like to eat {v}.", "I love {v}.", "The food I like most is {v}.", "~I could eat {v} every day.", "{v} is my favourite food.", "The best food is {v}.", "I am hungry for {v}.", "I enjoy {v} most of all.", "Nothing tastes better than {v}.", "I like {v} a lot.", "^What I like to eat most is {v}.", "^For dinner I always want {v}.", "~Of all food I like {v} best."],
             "I will remember that your favourite food is {v}.", ["What is my favourite food?", "What do I like to eat?", "Which food do I like?", "Do you remember my favourite food?", "Say my favourite food.", "Which food do I like best?", "Could you tell me what I like to eat?", "And what do I like to eat?", "Name my favourite food.", "~Tell me my favourite food.", "My favourite food?", "Which food is my favourite?", "What is the food I like?", "Do you still know what I like to eat?", "What food did I tell you about?", "Can you tell me my favourite food?", "What do I like best to eat?", "^Which is my favourite food?", "^Can you say what I like to eat?", "~What food do I like best?"],
             "Your favourite food is {v}.", "You have not told me your favourite food."),
    "city": (lambda r, h: r.choice(W.CITIES), ["I live in {v}.", "I come from {v}.", "My home is {v}.", "I am from {v}.", "My city is {v}.", "~My house is in {v}.", "{v} is my home.", "{v} is where I live.", "I am at home in {v}.", "I have lived in {v} for years.", "My family lives in {v}, and so do I.", "My flat is in {v}.", "The city I live in is {v}.", "^{V} is the city where I live.", "^I have a home in {v}.", "~I moved to {v} last year."],
             "I will remember that you live in {v}.", ["Where do I live?", "Which city do I live in?", "Where is my home?", "Do you remember where I live?", "Say where I live.", "Which city do I come from?", "Could you tell me where I live?", "Name the city I live in.", "And where do I live?", "~In which city do I live?", "My city?", "Which city is my home?", "What city am I from?", "Where am I from?", "Where am I at home?", "Do you still know where I live?", "Can you tell me where I live?", "Do you recall where I live?", "What city do I live in?", "^Can you say where I live?", "^What is my home city?", "~Tell me where I live."], "You live in {v}.", "You have not told me where you live."),
    "job": (lambda r, h: r.choice(W.JOBS), ["I am a {v}.", "I work as a {v}.", "My job is {v}.", "I'm a {v}.", "~My work is that of a {v}.", "As for my job, I am a {v}.", "I earn my money as a {v}.", "I have worked as a {v} for years.", "My profession is {v}.", "In my job I am a {v}.", "^Every day I work as a {v}.", "^For a living I am a {v}.", "~I have a job as a {v}."],
            "I will remember that you work as a {v}.", ["What is my job?", "What do I do for work?", "What do I work as?", "Do you remember my job?", "Say my job.", "What job do I have?", "Could you tell me my job?", "And what is my job?", "~Tell me my job.", "~Which job do I have?", "My job?", "What job did I tell you?", "Which work do I do?", "Do you still know my job?", "What is my profession?", "Can you tell me my job?", "As what do I work?", "How do I earn my money?", "^Can you say what my job is?", "^What is it that I work as?"], "You work as a {v}.", "You have not told me your job."),
    "pet": (None, ["I have a {p} called {v}.", "My {p} is called {v}.", "My {p}'s name is {v}.", "I have a {p}. Its name is {v}.", "I have a {p} named {v}.", "There is a {p} at home called {v}.", "My {p} has the name {v}.", "We have a {p} and it is called {v}.", "My {p} is named {v}.", "~At home I have a {p} named {v}.", "My {p} listens to the name {v}.", "We call our {p} {v}.", "I call my {p} {v}.", "I got a {p} and named it {v}.", "{v} is my {p}.", "My dear {p} is {v}.", "I have a {p}, it is called {v}.", "We named our {p} {v}.", "^I gave my {p} the name {v}.", "^I own a {p} called {v}.", "~The name of my {p} is {v}."],
            "{v} is a nice name for a {p}.", ["What is my {p} called?", "What is the name of my {p}?", "What is my {p}'s name?", "Do you remember the name of my {p}?", "Say the name of my {p}.", "What name does my {p} have?", "Could you tell me what my {p} is called?", "And what is my {p} called?", "~Tell me the name of my {p}.", "~How is my {p} called?", "The name of my {p}?", "My {p}'s name?", "What do I call my {p}?", "What did I name my {p}?", "Do you still know the name of my {p}?", "Who is my {p}?", "How did I call my {p}?", "Can you tell me the name of my {p}?", "Which name did I give my {p}?", "^Which name does my {p} have?", "^And the name of my {p}?"],
            "Your {p} is called {v}.", "You have not told me about a {p}."),
    "word": (lambda r, h: S.number(r, h, lambda: (r.choice(W.COMMON), "word"))[0], ["The secret word is {v}.", "Remember the word {v}.", "The password is {v}.", "My secret word is {v}.", "~Keep this word for me: {v}.", "{v} is the secret word.", "{v} is the password.", "Store the word {v}.", "I give you the word {v}.", "The magic word is {v}.", "Memorise the word {v}.", "My word is {v}.", "Please keep the word {v} in mind.", "^The word I want you to know is {v}.", "^Keep {v} in your memory as the secret word.", "~Do not forget the word {v}."],
             "I will remember the word {v}.", ["What is the secret word?", "Which word did I tell you?", "What was the word?", "Do you remember the word?", "Say the word.", "What word did I tell you?", "Could you tell me the word?", "And what was the word?", "Which word was it?", "Do you still know the word?", "~Say the word I told you.", "~What was that word again?", "The word?", "What is the password?", "The secret word?", "Do you recall the word?", "Name the word.", "Can you tell me the word?", "Which word did I give you?", "What is my word?", "Now the word, please.", "Repeat the word I gave you.", "^Which word should you keep?", "^Give me the word again."], "The word is {v}.", "You have not told me a word."),
}


def memory(r, held):
    slots = r.sample(list(SLOTS), r.choice([1, 1, 2, 2, 3]))
    values, out = {}, maybe_system(r, 0.06)
    told = []
    pet = r.choice(W.PET_KINDS)
    for s in slots:
        make, tell, ack, _, _, _ = SLOTS[s]
        v = name_of(r, held) if s == "pet" else make(r, held)
        if s == "age" and "name" in slots:
            tell = [t for t in tell if t != "I am {v}."]
        values[s] = dict(v=v, V=cap(v), p=pet)
        told.append((pick(r, held, tell, f"tell {s}").format(**values[s]), ack.format(**values[s])))
    if len(told) > 1 and r.random() < 0.45:  # all in one message: the answer takes up each
        out += [user(" ".join(t for t, _ in told)), bot(" ".join(a for _, a in told))]
    else:
        for t, a in told:
            out += [user(t), bot(a)]
            if r.random() < 0.3 and len(told) < 3:
                out += filler(r)
    for _ in range(r.choice([0, 1, 1, 2])):
        out += filler(r)
    asked = r.sample(slots, r.randint(1, len(slots)))
    if not held and r.random() < 0.2:
        other = r.choice([s for s in SLOTS if s not in slots])
        asked.insert(r.randrange(len(asked) + 1), other)
    if held and r.random() < 0.1:
        asked = [r.choice([s for s in SLOTS if s not in slots])]
    if held:
        asked = asked[-1:]
    for s in asked:
        ask = pick(r, held, SLOTS[s][3], f"ask {s}").format(p=pet)
        answer = SLOTS[s][4].format(**values[s]) if s in values else SLOTS[s][5].format(p=pet)
        out += [user(ask), bot(answer)]
    return Talk(out, "memory", [answer.rstrip(".")])


def filler(r):
    it = item(r, False)
    return [user(it.ask), bot(it.full)] if r.random() < 0.8 else small_talk(r, False).messages


# ---- system prompts -----------------------------------------------------------------------

SHORT = ["Answer in one word.", "Reply with one word only.", "Use one word for each answer.", "Give one-word answers.", "Answer with a single word.", "Keep every answer to one word.", "~Your answers are one word long.", "~Reply with just one word.", "^Only one word per answer, please.", "^Say just a single word each time."]
UPPER = ["Reply in upper case.", "Answer in capital letters.", "Write everything in upper case.", "Use only capital letters.", "Always shout: use capital letters.", "~Your answers are in upper case.", "~Please write in capital letters only.", "^All your text is in capital letters.", "^Give your answers in upper case."]
LOWER = ["Reply in lower case.", "Answer in lower case.", "Write everything in lower case.", "Use no capital letters.", "~Your answers are in lower case.", "~Please write in lower case only.", "^All your text is in lower case.", "^Give your answers in lower case."]
BEGIN = ["Begin every answer with {w}.", "Start each answer with the word {w}.", "Always begin with {w}.", "Every answer starts with {w}.", "~Let each answer begin with {w}.", "~Put {w} before every answer.", "^The first word of each answer is {w}.", "^Say {w} first, then answer."]
END = ["End every answer with {w}.", "Finish each answer with the word {w}.", "Always end with {w}.", "Every answer ends with {w}.", "~Let each answer end with {w}.", "~Put {w} after every answer.", "^The last word of each answer is {w}.", "^Answer first, then say {w}."]
NAMED = ["Your name is {v}.", "You are {v}.", "You are called {v}.", "You are an assistant named {v}.", "Your name is {v}. You are helpful.", "~The user calls you {v}.", "~From now on your name is {v}.", "Your new name is {v}.", "You have the name {v}.", "They call you {v}.", "{v} is your name.", "You act as {v}.", "Here you are called {v}.", "You are the assistant {v}.", "You are {v}, a small model.", "If asked, say that your name is {v}.", "Play the role of {v}.", "You answer to the name {v}.", "^In this talk you are {v}.", "^People know you as {v}."]
USER_IS = ["The user is called {v}.", "The user's name is {v}.", "You are talking to {v}.", "The name of the user is {v}.", "~The person who talks to you is {v}.", "The user has the name {v}.", "You speak with {v}.", "You are helping {v}.", "Your user is {v}.", "You work for {v}.", "The user you talk to is named {v}.", "You serve {v}.", "You are in a chat with {v}.", "{v} is talking to you.", "The person here is {v}.", "Remember that the user is {v}.", "^{v} is the user.", "^The one who asks you is {v}.", "~Your user goes by the name {v}."]

ONE_WORD = [S.capital, S.capital, S.capital_of, S.continent, S.language, S.opposite, S.opposite, S.plural, S.past, S.colour, S.sound, S.young, S.sequence, S.tomorrow, A.compare, A.even, A.neighbour, A.arithmetic, A.arithmetic, S.category, S.how_many, S.position]
CASED = [S.capital, S.capital, S.opposite, S.opposite, S.colour, S.plural, S.sequence, S.continent, S.definition, S.language, S.past, S.sound, S.young, S.category, S.how_many, S.position, S.tomorrow, A.arithmetic, A.arithmetic, A.compare, A.neighbour]


def obey(r, held):
    style = r.choice(["short", "short", "upper", "lower", "begin", "end", "named", "user"] + ([] if held else ["upper", "upper", "begin", "end"]))
    n = 1 if held else r.choice([1, 2, 3, 4])
    out, answer = [], ""
    if style in ("named", "user"):
        v = name_of(r, held)
        out.append(system(pick(r, held, NAMED if style == "named" else USER_IS, f"system {style}").format(v=v)))
        for i in range(n):
            if i < n - 1 and r.random() < 0.6:
                out += filler_not_identity(r)
                continue
            if style == "named":
                ask, answer = pick(r, held, ["What is your name?", "Who are you?", "What's your name?", "What are you called?", "Tell me your name.", "Do you have a name?", "who are you", "~Please say your name.", "~How should I call you?", "What do people call you?", "Your name?", "Say your name.", "May I know your name?", "Can you tell me your name?", "Hello, who are you?", "Who am I talking to?", "What should I call you?", "And your name is?", "^What name do you have?"], "own name"), f"My name is {v}."
            else:
                ask, answer = pick(r, held, SLOTS["name"][3], "ask name"), f"Your name is {v}."
            out += [user(ask), bot(answer)]
        if not answer:
            out += [user("What is your name?" if style == "named" else "What is my name?"), bot(f"My name is {v}." if style == "named" else f"Your name is {v}.")]
            answer = out[-1]["content"]
        return Talk(out, "system prompt", [answer.rstrip(".")])
    words = ["Arr", "Meow", "Indeed", "Sir", "Friend", "Well", "Beep", "Captain", "Over", "Madam", "Yes", "Ho", "Listen", "Look", "Hurray", "Master", "Amen", "Hello", "Thanks", "Right"]
    w = r.choice(words) if r.random() < 0.5 and not held else cap(number(r, held, lambda: (r.choice(W.COMMON), "prefix"))[0])
    prompts, makers = {"short": (SHORT, ONE_WORD), "upper": (UPPER, CASED), "lower": (LOWER, CASED), "begin": (BEGIN, MAKERS), "end": (END, MAKERS)}[style]
    prompt = S.instruct(r, held, prompts, style).format(w=w)
    if not held and r.random() < 0.2:
        prompt = r.choice(POLITE) + " " + prompt
    out.append(system(prompt))
    for i in range(n):
        drawn = len(S.USED)
        it = item(r, False if held == "~" and r.random() < 0.5 else held, makers, [1] * len(makers))
        while style == "short" and (not it.short or " " in it.short and it.kind != "capital" and len(it.short.split()) > 2):
            del S.USED[drawn:]
            it = item(r, held, makers, [1] * len(makers))
        answer = {"short": it.short, "upper": it.full.upper(), "lower": it.full.lower(), "begin": f"{w}! {it.full}", "end": f"{it.full} {w}!"}[style]
        if style == "short":
            answer = cap(answer)
        out += [user(it.ask), bot(answer)]
    return Talk(out, "system prompt", [answer.rstrip(".!")])


def filler_not_identity(r):
    it = item(r, False)
    return [user(it.ask), bot(it.full)]


# ---- thinking -------------------------------------------------------------------------------

def thinking(r, held):
    out = maybe_system(r, 0.08)
    for _ in range(0 if held else r.choice([0, 0, 0, 1])):
        out += filler(r)
    if r.random() < 0.2:
        t = r.choice([unknown, small_talk])(r, held)
        t.messages[-1]["reasoning_content"] = "This is outside what I know." if t.kind == "unknown" else "The user is just talking to me."
        return Talk(out + t.messages, "thinking", t.answers, think=True)
    makers = [m for m in MAKERS if m not in (S.lists, S.repeat)] + [A.arithmetic] * 2 + [A.arithmetic_wide] * 10 + [A.word_problem] * 3 + [S.letters_in] * 2
    it = item(r, held, makers, [1] * len(makers))
    return Talk(out + [user(it.ask), bot(it.full, it.think)], "thinking", check(it), think=True)


def story(r, held):
    ask, text, keys = stories.story(r, held)
    out = maybe_system(r, 0.05) + [user(ask), bot(text)]
    if not held and r.random() < 0.15:
        out += filler(r)
        return Talk(out, "story", [])
    return Talk(out, "story", keys)
