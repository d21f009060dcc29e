"""The training mix, the held-out set, and the wall between them.

`python corpus.py` writes ../eval/heldout.json unless it is there (`new`: always);
`python corpus.py show [N]` prints training conversations.
"""

import ast
import json
import random
import re
import sys
from pathlib import Path

import arithmetic as A
import skills as S
import talk as T
import tools as X

HELDOUT = Path(__file__).resolve().parent.parent / "eval" / "heldout.json"

# Share of conversations of each sort. May be changed between runs of the trainer.
MIX = [(T.questions, 48), (T.follow_up, 1), (T.small_talk, 5), (T.unknown, 6), (T.memory, 16), (T.obey, 19), (T.thinking, 9), (T.story, 4), (X.tools, 15), (X.no_tools, 1.5)]


def plain(text):
    return re.sub(r"[^a-z0-9+*/-]+", " ", text.lower()).strip()


def prompt_key(messages):
    """The conversation up to its last assistant turn, without case and punctuation."""
    last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
    return " | ".join(m["role"] + ": " + plain(m["content"]) for m in messages[:last])


# Kinds whose last question makes sense by itself: that question may not occur anywhere in training.
ALONE_EXEMPT = {"memory", "system prompt", "tool call", "tool result", "tools", "follow-up", "thinking"}


class Wall:
    """Knows every held-out prompt; `passes` is asked for each training conversation."""

    def __init__(self):
        entries = json.loads(HELDOUT.read_text())["prompts"] if HELDOUT.exists() else []
        self.prompts, self.asks = set(), set()
        for e in entries:
            self.prompts.add(prompt_key(e["messages"] + [{"role": "assistant", "content": ""}]))
            if e["kind"] not in ALONE_EXEMPT:
                self.asks.add(plain(e["messages"][-1]["content"]))

    def passes(self, t):
        for i, m in enumerate(t.messages):
            if m["role"] == "user" and plain(m["content"]) in self.asks:
                return False
            if m["role"] == "assistant" and prompt_key(t.messages[: i + 1]) in self.prompts:
                return False
        return True


def phrasings_apart():
    """Stops if a phrasing reserved for the held-out set ("~...") also stands among those for training."""
    held, given = set(), set()
    for name in ("skills", "arithmetic", "talk", "tools", "stories"):
        tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and S.same(node.value):
                (held if node.value.startswith("~") else given).add(S.same(node.value))
    if held & given:
        sys.exit(f"reserved phrasings among those for training: {sorted(held & given)}")
    print(f"{len(held)} reserved phrasings, none of them among those for training")


def draw(r, wall=None):
    makers, weights = zip(*MIX)
    while True:
        t = r.choices(makers, weights)[0](r, False)
        if wall is None or wall.passes(t):
            return t


def heldout(seed=20261129):
    """The held-out prompts: so many of each sort."""
    r = random.Random(seed)

    def one(maker, n):
        def make(r):
            it = T.item(r, True, [maker], [1])
            return T.Talk([T.user(it.ask), T.bot(it.full)], it.kind, T.check(it))
        return make, n

    plan = [one(S.capital, 30), one(S.capital_of, 12), one(S.capital_check, 8), one(S.continent, 10), one(S.language, 10), one(S.opposite, 30), one(S.plural, 14),
            one(S.past, 12), one(S.colour, 10), one(S.sound, 6), one(S.young, 6), one(S.category, 14), one(S.definition, 34), one(S.how_many, 10), one(S.sequence, 16),
            one(S.tomorrow, 8), one(S.position, 12), one(S.lists, 3), one(S.spell, 20), one(S.letters_in, 8), one(S.repeat, 12), one(A.arithmetic, 40), one(A.word_problem, 8),
            one(A.compare, 8), one(A.neighbour, 10), one(A.count, 12), one(A.number_words, 10), one(A.even, 6), one(A.sort, 6),
            (lambda r: T.follow_up(r, True), 8), (lambda r: T.small_talk(r, True), 24), (lambda r: T.unknown(r, True), 24), (lambda r: T.memory(r, True), 44), (lambda r: T.obey(r, True), 36),
            (lambda r: T.thinking(r, True), 24), (lambda r: T.story(r, True), 12), (lambda r: X.tools(r, True), 36), (lambda r: X.no_tools(r, True), 4), (lambda r: T.questions(r, True, 3), 16)]
    out, seen = [], set()
    for make, n in plan:
        done = 0
        for _ in range(2000):
            if done == n:
                break
            t = make(r)
            key = prompt_key(t.messages)
            if key in seen or not t.answers:
                continue
            seen.add(key)
            done += 1
            prompt = t.messages[:-1]
            entry = {"kind": t.kind, "messages": prompt, "answers": t.answers, "match": "exact" if t.kind == "system prompt" else "contains"}
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
    if HELDOUT.exists() and sys.argv[1:] != ["new"]:
        print("held-out prompts: the set in", HELDOUT.name, "stays (python corpus.py new: draw another)")
        return
    entries = heldout()
    HELDOUT.parent.mkdir(exist_ok=True)
    with HELDOUT.open("w") as f:
        f.write('{"about": "Held-out prompts of the demo model: never in its training text. answers: any of them, as whole words in the answer (contains) or as the whole answer without its final . or ! (exact).",\n"prompts": [\n')
        f.write(",\n".join(json.dumps(e, ensure_ascii=False) for e in entries))
        f.write("\n]}\n")
    print(len(entries), "held-out prompts")


if __name__ == "__main__":
    main()
