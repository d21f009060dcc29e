"""Proves that the training text and the sets kept apart have nothing in common (plain Python, seconds).

    python test_apart.py [CONVERSATIONS]      (default 20000, drawn as the trainer draws them)

For the held-out set: no word order of it, also within other words, no name, no city, no pair of
numbers of its sums, no number to be remembered. For the two others: no phrasing, no name, no city.
"""

import json
import random
import re
import sys

import corpus
import skills
import talk
import tools
from orders import HASH, held_out, same


def sums(text):
    """The sums in an answer, word problems apart: [(a, sign, b, whether it is a word problem)]"""
    return {(a, s, b, bool(t)) for a, s, b, t in re.findall(r"(\d+) ([+-]) (\d+) = \d+(, so the answer)?", text)}


def numbers_to_remember(text):
    return set(re.findall(r"(?:remember the number|The number is) (\d+)", text))


def main():
    corpus.phrasings_apart()
    sets = {mark: json.loads(file.read_text())["prompts"] for mark, (file, _, _) in corpus.SETS.items()}
    held = sets[HASH]
    assert len(held) >= 400, len(held)
    finders = {mark: corpus.Phrasings(sorted(corpus.phrasings()[mark])) for mark in "~^"}
    finders[HASH] = corpus.Phrasings(sorted(corpus.held_orders()), narrow=True)

    # Each prompt is made of what its set has for itself: in the last question, or in a system prompt above it.
    for mark, entries in sets.items():
        own = {same(o) for e in entries for o in e.get("orders", [])}
        for e in entries:
            users = [m["content"] for m in e["messages"] if m["role"] == "user"]
            others = [m["content"] for m in e["messages"] if m["role"] == "system"]
            if mark == HASH:
                assert e["orders"] and all(same(o) in own for o in e["orders"]), e
            elif mark == "^":
                assert any(finders[mark].find(t) for t in users[-1:] + others), (f"not of a phrasing of the set {mark}", e)
    whole = sum(held_out(o) for o in corpus.held_orders())

    def key(messages):
        return json.dumps([(m["role"], corpus.plain(m["content"])) for m in messages])

    prompts = {key(e["messages"]) for entries in sets.values() for e in entries}
    alone = {corpus.plain(e["messages"][-1]["content"]) for entries in sets.values() for e in entries if e["kind"] not in corpus.ALONE_EXEMPT}
    names = {n for mark in sets for n in talk.OWN_NAMES[mark] + tools.OWN_CITIES[mark]}
    orders = {same(o) for o in corpus.held_orders()}
    pairs = {s for e in held for a in e["answers"] for s in sums(a)}
    told = {n for e in held for a in e["answers"] for n in numbers_to_remember(a)}
    assert len(pairs) > 30 and len(told) > 1, (pairs, told)
    r, wall = random.Random(4242), corpus.Wall()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    messages = 0
    for _ in range(n):
        t = corpus.draw(r, wall)
        for order, mark in skills.USED:
            assert not mark and not held_out(order) and same(order) not in orders, order
        for i, m in enumerate(t.messages):
            text = m["content"]
            if m["role"] == "assistant":
                assert key(t.messages[:i]) not in prompts, t
                assert not pairs & sums(text), text
                assert not told & numbers_to_remember(text), text
                continue
            messages += 1
            assert corpus.plain(text) not in alone, text
            assert not names & set(re.findall(r"\w+", text)), text
            for mark in (HASH, "^"):
                assert m["role"] == "tool" or finders[mark].find(text) is None, (finders[mark].find(text), text)
    print(f"{len(held)} held-out prompts; none of them, and none of their {len(orders)} word orders ({whole} held out as a whole, the others for their core), names, cities and {len(pairs)} pairs of numbers in {messages} messages of {n} training conversations; none of the {sum(map(len, sets.values())) - len(held)} prompts of the other sets")


if __name__ == "__main__":
    main()
