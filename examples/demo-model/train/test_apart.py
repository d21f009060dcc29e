"""Proves that the training text and the held-out set have nothing in common (plain Python, seconds).

    python test_apart.py [CONVERSATIONS]      (default 20000, drawn as the trainer draws them)
"""

import json
import random
import re
import sys

import corpus
import talk
import tools


def main():
    corpus.phrasings_apart()
    entries = json.loads(corpus.SETS["^"][0].read_text())["prompts"]
    assert len(entries) >= 400, len(entries)
    kept = corpus.Phrasings(sorted(corpus.phrasings()["^"]))

    # The set is made of its own phrasings: in the last question, or in a system prompt above it.
    for e in entries:
        users = [m["content"] for m in e["messages"] if m["role"] == "user"]
        others = [m["content"] for m in e["messages"] if m["role"] == "system"]
        assert any(kept.find(t) for t in users[-1:] + others), ("not of a held-out phrasing", e)

    def key(messages):
        return [(m["role"], corpus.plain(m["content"])) for m in messages]

    prompts = {json.dumps(key(e["messages"])) for e in entries}
    alone = {corpus.plain(e["messages"][-1]["content"]) for e in entries if e["kind"] not in corpus.ALONE_EXEMPT}
    names = set(talk.HELD_NAMES + tools.HELD_CITIES)
    r, wall = random.Random(4242), corpus.Wall()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    messages = 0
    for _ in range(n):
        t = corpus.draw(r, wall)
        for i, m in enumerate(t.messages):
            if m["role"] == "assistant":
                assert json.dumps(key(t.messages[:i])) not in prompts, t
            else:
                messages += 1
                text = m["content"]
                assert corpus.plain(text) not in alone, text
                assert m["role"] == "tool" or kept.find(text) is None, (kept.find(text), text)
                assert not names & set(re.findall(r"\w+", text)), text
    print(f"{len(entries)} held-out prompts; none of them, and none of their phrasings, names and cities in {messages} messages of {n} training conversations")


if __name__ == "__main__":
    main()
