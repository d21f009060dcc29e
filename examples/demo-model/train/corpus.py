"""The training mix, the three sets of prompts kept out of it, and the wall between them.

The held-out set (../eval/heldout.json) is for the final marks alone: word orders, names and
numbers that the hash of orders.py keeps out of training. The two others have phrasings written
by hand; what goes wrong in them shows which kinds need more practice: ../eval/development.json,
and ../eval/strangers.json, which shows how the model takes phrasings unlike its training text.

`python corpus.py` writes the sets unless they are there (`new NAME`: that one again);
`python corpus.py show [N]` prints training conversations.
"""

import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

import arithmetic as A
import checks
import skills as S
import talk as T
import tools as X
from orders import HASH, phrasings, same

EVAL = Path(__file__).resolve().parent.parent / "eval"
# Mark of the set's phrasings in the sources -> (file, seed, what it is).
SETS = {
    HASH: (EVAL / "heldout.json", 20261202, "Held-out prompts of the demo model: word orders, names and numbers of the text generator that a hash keeps out of training."),
    "^": (EVAL / "strangers.json", 20261130, "Prompts in hand-written phrasings that the text generator does not make; never in the training text, but looked at before the last round."),
    "~": (EVAL / "development.json", 20261129, "Development prompts of the demo model in hand-written phrasings: never in its training text, but looked at while its training text was written."),
}

# Share of conversations of each sort. May be changed between runs of the trainer.
MIX = [(T.questions, 48), (T.follow_up, 1), (T.small_talk, 8), (T.unknown, 8), (T.chatter, 10), (T.not_told, 2), (T.memory, 15), (T.obey, 34), (T.thinking, 12), (T.story, 5), (X.tools, 15), (X.no_tools, 1.5)]


def plain(text):
    return re.sub(r"[^a-z0-9+*/-]+", " ", text.lower()).strip()


def prompt_key(messages):
    """The conversation up to its last assistant turn, without case and punctuation."""
    last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
    return " | ".join(m["role"] + ": " + plain(m["content"]) for m in messages[:last])


# Kinds whose last question makes sense by itself: that question may not occur anywhere in training.
ALONE_EXEMPT = {"memory", "system prompt", "tool call", "tool result", "tools", "follow-up", "thinking"}


class Phrasings:
    """Finds phrasings in text; a phrasing with three words of its own or more also among other words.

    A gap takes anything; with `narrow`, in a phrasing of fewer than five words of its own, at most three words."""

    def __init__(self, given, narrow=False):
        texts = {p: plain(re.sub(r"\{\w+\}", " 0gap0 ", p)) for p in given}
        words = {p: [w for w in t.split() if w != "0gap0"] for p, t in texts.items()}
        often = Counter(w for ws in words.values() for w in ws)
        self.by_word = {}  # rarest word of a phrasing -> phrasings
        for p, t in texts.items():
            gap = r"\S+(?: \S+){0,2}" if narrow and len(words[p]) < 5 else ".+"
            e = re.sub(r"\b(?<!')a\\ 0gap0", r"an?\\ 0gap0", re.escape(t)).replace("0gap0", gap)
            e = rf"(?:^| ){e}(?: |$)" if len(words[p]) >= 3 else f"^{e}$"
            self.by_word.setdefault(min(words[p], key=lambda w: (w == "a", often[w], w)), []).append((re.compile(e), p))

    def find(self, text):
        text = plain(text).replace(" was yesterday", " is yesterday")  # as skills.tomorrow changes it
        for w in set(text.split()):
            for expression, p in self.by_word.get(w, ()):
                if expression.search(text):
                    return p
        return None


def held_orders():
    """The word orders of the held-out set."""
    file = SETS[HASH][0]
    return {o for e in json.loads(file.read_text())["prompts"] for o in e["orders"]} if file.exists() else set()


class Wall:
    """Knows every prompt and phrasing kept apart; `passes` is asked for each training conversation."""

    def __init__(self):
        self.prompts, self.asks = set(), set()
        self.strangers, self.held = Phrasings(sorted(phrasings()["^"])), Phrasings(sorted(held_orders()), narrow=True)
        entries = [e for file, _, _ in SETS.values() if file.exists() for e in json.loads(file.read_text())["prompts"]]
        for e in entries:
            self.prompts.add(prompt_key(e["messages"] + [{"role": "assistant", "content": ""}]))
            if e["kind"] not in ALONE_EXEMPT:
                self.asks.add(plain(e["messages"][-1]["content"]))

    def passes(self, t):
        for i, m in enumerate(t.messages):
            if m["role"] == "user" and plain(m["content"]) in self.asks:
                return False
            if m["role"] in ("user", "system") and (self.strangers.find(m["content"]) or self.held.find(m["content"])):
                return False
            if m["role"] == "assistant" and prompt_key(t.messages[: i + 1]) in self.prompts:
                return False
        return True


def phrasings_apart():
    """Stops if a phrasing of one set also stands in another."""
    sets = {k: {same(p) for p in v} for k, v in phrasings().items()}
    for a, b in ((False, "~"), (False, "^"), ("~", "^")):
        if sets[a] & sets[b]:
            sys.exit(f"phrasings in two sets ({a}, {b}): {sorted(sets[a] & sets[b])}")
    print(f"{len(sets['~'])} phrasings for development, {len(sets['^'])} held out, {len(sets[False])} other texts, none in two sets")


def draw(r, wall=None):
    makers, weights = zip(*MIX)
    while True:
        S.USED.clear()
        t = r.choices(makers, weights)[0](r, False)
        if wall is None or wall.passes(t):
            return t


def prompts(held, seed):
    """The prompts of a set: so many of each sort."""
    r = random.Random(seed)

    def one(maker, n):
        def make(r):
            it = T.item(r, held, [maker], [1])
            return T.Talk([T.user(it.ask), T.bot(it.full)], it.kind, T.check(it))
        return make, n

    plan = [one(S.capital, 30), one(S.capital_of, 12), one(S.capital_check, 8), one(S.continent, 10), one(S.language, 10), one(S.opposite, 30), one(S.plural, 14),
            one(S.past, 12), one(S.colour, 10), one(S.sound, 6), one(S.young, 6), one(S.category, 14), one(S.definition, 34), one(S.how_many, 10), one(S.sequence, 16),
            one(S.tomorrow, 8), one(S.position, 12), one(S.lists, 3), one(S.spell, 20), one(S.letters_in, 8), one(S.repeat, 12), one(A.arithmetic, 40), one(A.word_problem, 8),
            one(A.compare, 8), one(A.neighbour, 10), one(A.count, 12), one(A.number_words, 10), one(A.even, 6), one(A.sort, 6), one(checks.yes_no, 24 if held == HASH else 0),
            (lambda r: T.follow_up(r, held), 8), (lambda r: T.small_talk(r, held), 24), (lambda r: T.unknown(r, held), 24), (lambda r: T.memory(r, held), 44), (lambda r: T.obey(r, held), 36),
            (lambda r: T.thinking(r, held), 24), (lambda r: T.story(r, held), 12), (lambda r: X.tools(r, held), 36), (lambda r: X.no_tools(r, held), 4), (lambda r: T.questions(r, held, 3), 16)]
    out, seen = [], set()
    for make, n in plan:
        done = 0
        for _ in range(2000):
            if done == n:
                break
            S.USED.clear()
            t = make(r)
            key = prompt_key(t.messages)
            if key in seen or not t.answers:
                continue
            seen.add(key)
            done += 1
            prompt = t.messages[:-1]
            entry = {"kind": t.kind, "messages": prompt, "answers": t.answers, "match": "exact" if t.kind == "system prompt" else "contains"}
            if held == HASH:
                found = " ".join(plain(m["content"]) for m in prompt if m["role"] in ("user", "system"))
                entry["orders"] = [o for o, h in S.USED if h == HASH and Phrasings([o]).find(found)]
                assert entry["orders"], (t, S.USED)
            if t.kind == "tool call":
                entry["match"] = "exact"
            if t.tools:
                entry["tools"] = t.tools
            if t.think:
                entry["enable_thinking"] = True
                for m in prompt:
                    if m["role"] == "assistant":
                        m.setdefault("reasoning_content", "")
            out.append(entry)
    return out


def main():
    if sys.argv[1:2] == ["show"]:
        r = random.Random(random.random() if len(sys.argv) > 3 else 1)
        from render import pieces

        wall = Wall()
        for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
            t = draw(r, wall)
            print("".join(("[[" + p + "]]" if k else p) for p, k in pieces(t.messages, t.tools)))
        return
    phrasings_apart()
    EVAL.mkdir(exist_ok=True)
    for held, (file, seed, about) in SETS.items():
        if file.exists() and sys.argv[1:] != ["new", file.name]:
            print(f"{file.name} stays (python corpus.py new {file.name}: draw it anew)")
            continue
        entries = prompts(held, seed)
        with file.open("w") as f:
            f.write(json.dumps({"about": about + " answers: any of them, as whole words in the answer (contains) or as the whole answer without its final . or ! (exact)."}, ensure_ascii=False)[:-1] + ',\n"prompts": [\n')
            f.write(",\n".join(json.dumps(e, ensure_ascii=False) for e in entries))
            f.write("\n]}\n")
        print(len(entries), "prompts in", file.name)


if __name__ == "__main__":
    main()
