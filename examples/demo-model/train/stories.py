"""Short stories put together from parts."""

import facts as W
from skills import article, cap, pick

PLACES = ["in a deep forest", "by a wide river", "in a small village", "on a green hill", "near the sea", "in an old castle", "on a farm", "in a quiet valley", "under a big oak tree", "on a small island"]
MOODS = ["little", "brave", "clever", "shy", "hungry", "curious", "kind", "lazy", "old", "young"]
WANTS = [
    ("wanted to find a friend", "asked every animal on the way", "met {b}, who was lonely too", "From then on they were the best of friends"),
    ("wanted to see the sea", "walked for three days", "met {b}, who knew the way", "Together they looked at the blue waves"),
    ("lost a golden key", "looked under every stone", "met {b}, who had found it", "They opened the old box and it was full of honey"),
    ("was afraid of the dark", "sat awake every night", "met {b}, who carried a lamp", "After that the night was not so dark any more"),
    ("wanted to learn to sing", "practised every morning", "met {b}, who could sing well", "Soon they sang together and everyone listened"),
    ("wanted to bake a cake", "had no flour", "met {b}, who brought some", "They ate the cake together and were happy"),
    ("found an old map", "followed it over the hills", "met {b}, who had the other half", "At the end of the way they found a garden full of flowers"),
    ("wanted to touch the moon", "climbed the highest tree", "met {b}, who laughed kindly", "They watched the moon together until the morning"),
    ("was very cold in winter", "went from door to door", "met {b}, who made a warm fire", "They told each other stories until spring came"),
    ("wanted to build a boat", "gathered wood for a week", "met {b}, who had a strong rope", "They sailed down the river and saw the world"),
]
ENDS = ["The end.", "And they lived happily.", "That was a good day.", "They never forgot that day.", "And if you listen, you can still hear them laugh."]

ASKS = [
    "Tell me a story about {a}.", "Tell me a short story about {a}.", "Can you tell me a story about {a}?", "I want a story about {a}.", "Please tell a story about {a}.", "Write a story about {a}.",
    "Make up a story about {a}.", "story about {a}", "Do you know a story about {a}?", "I would like to hear a story about {a}.", "Think of a story about {a}.", "Could you make up a story about {a}?", "Let me hear a story with {a}.", "Tell me a little story about {a}.",
    "~Invent a short story about {a}.", "A story about {a}, please.", "A story with {a}, please.", "I love stories about {a}.", "Give me a story about {a}.", "Tell us a story of {a}.", "Can you think of a story about {a}?", "Now a story about {a}.", "Tell a tale about {a}.", "Would you tell a story about {a}?", "I am in the mood for a story about {a}.", "Story time: {a}!", "Tell me what happened to {a}.", "Write something about {a}.", "Read me a story about {a}.", "^Entertain me with a story about {a}.", "^My child wants a story about {a}.", "^There should be {a} in the story. Please tell it.", "~Could you tell me a little story about {a}?", "~Let me hear a story about {a}.",
]
NAMED_ASKS = ["Tell me a story about {a} called {n}.", "Tell me a story about {a} named {n}.", "Write a story about {a} whose name is {n}.", "Can you tell a story about {a} named {n}?", "Make up a story about {a} called {n}.", "I want a story about {a} called {n}.", "Tell me about {a} whose name is {n}.",
              "~Invent a story about {a} called {n}.", "A story about {a} called {n}, please.", "Give me a story about {a} named {n}.", "Tell us a story of {a} with the name {n}.", "Write about {a}. Its name is {n}.", "Tell a tale about {a} called {n}.", "Can you think of a story about {a} with the name {n}?", "The story should be about {a} called {n}.", "Please tell me a story about {a} named {n}.", "Now a story about {a} named {n}.", "I would like a story about {a} whose name is {n}.", "^My child wants a story about {a} called {n}.", "^Entertain me with a story about {a} named {n}.", "~I want to hear about {a} whose name is {n}."]
ANY = ["Tell me a story.", "Tell me a short story.", "Can you tell a story?", "I want to hear a story.", "tell me a story", "Do you know a story?", "A story, please.", "~Would you tell me a story?", "Tell us a story.", "Another story, please.", "Give me a story.", "I love stories.", "Tell me any story.", "Please tell me a story.", "Can I hear a story?", "Read me a story.", "Story!", "Make up a story.", "It is story time.", "I would like a story.", "^Now I want a story.", "^Entertain me with a story."]


def story(r, held):
    from talk import name_of

    a = r.choice(W.ANIMALS)
    b = r.choice([x for x in W.ANIMALS if x != a])
    n = name_of(r, held)
    mood, place, end = r.choice(MOODS), r.choice(PLACES), r.choice(ENDS)
    wish, effort, meeting, result = r.choice(WANTS)
    opening = f"Once upon a time, {article(mood)} {a} lived {place}."
    call = f" Its name was {n}."
    rest = f" {n} {wish}. So {n} {effort}. One day {n} {meeting.format(b=article(b))}. {result}. {end}"
    style = r.random()
    if style < 0.3:
        return pick(r, held, ASKS, "story about").format(a=article(a)), opening + call + rest, [f" {a} lived"]
    if style < 0.55:
        return pick(r, held, NAMED_ASKS, "story named").format(a=article(a), n=n), opening + call + rest, [f"{a} lived {p}. Its name was {n}." for p in PLACES]
    if style < 0.7:
        return pick(r, held, ANY, "story any"), opening + call + rest, ["Once upon a time"]
    cont = pick(r, held, ["Continue this story: {t}", "Go on: {t}", "Finish the story: {t}", "What happens next? {t}", "Continue: {t}", "Please continue: {t}", "How does the story go on? {t}", "What comes next? {t}", "Please finish this story: {t}", "~Please go on with this story: {t}", "~How does it end? {t}", "Go on with the story: {t}", "Tell me more: {t}", "And then? {t}", "Keep going: {t}", "What happened then? {t}", "Carry on: {t}", "Continue the tale: {t}", "Write how the story goes on: {t}", "Complete this story: {t}", "My story begins like this: {t}", "Can you finish this? {t}", "^Here is how a story begins. Go on with it. {t}", "^Tell me the rest of this story: {t}"], "story on")
    if r.random() < 0.5:
        return cont.format(t=opening + call), rest[1:], [f"{n} {w[0]}" for w in WANTS]
    return cont.format(t=opening + call + f" {n} {wish}."), f"So {n} {effort}. One day {n} {meeting.format(b=article(b))}. {result}. {end}", [f"So {n} {effort}"]
