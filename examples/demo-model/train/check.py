"""Marks the trainer's present state (or the exported weights) with the training model,
and measures the draft head: how often its guess of the token after next is what the
model then says. Quicker than ../eval/run_eval.py, for a look while training runs.

    python check.py [--every N] [--wrong] [--state] [--set strangers]     (--state: the last save, not the export)
"""

import argparse
import json
import sys
import time
from collections import defaultdict

import torch
import torch.nn.functional as F

from export import FOLDER, ID, WEIGHTS
from model import CHUNK, CONFIG, Model
from render import pieces
from train import WORK, rounded, tokenizer

sys.path.insert(0, str(FOLDER / "eval"))
from run_eval import LIMIT, right  # noqa: E402


def prompt_text(e):
    """The rendered prompt with the generation header."""
    thinking = e.get("enable_thinking", False)
    last = {"role": "assistant", "content": "@"}
    if thinking:
        last["reasoning_content"] = "@"
    messages = e["messages"] + [last]
    out = pieces(messages, e.get("tools"))
    return "".join(p for p, _ in out[:-2])


def load(state):
    model = Model(CONFIG)
    if state:
        s = torch.load(WORK / "state.pt")
        print("state:", s["at"])
        model.load_state_dict(s["model"])
        rounded(model)
    else:
        from safetensors.torch import load_file

        tensors = load_file(FOLDER / WEIGHTS)
        model.load_state_dict({n.removeprefix("model."): t.float() for n, t in tensors.items()})
    return model.eval()


@torch.no_grad()
def answers(model, prompts):
    """Greedy answers for prompts of similar length, all at once; everything is recomputed at each step."""
    rows = [list(p) for p in prompts]
    live, stop = set(range(len(rows))), {ID["<|im_end|>"], ID["<|endoftext|>"]}
    while live:
        index = sorted(live)
        longest = max(len(rows[i]) for i in index)
        x = torch.zeros(len(index), -(-longest // CHUNK) * CHUNK, dtype=torch.long)
        for j, i in enumerate(index):
            x[j, : len(rows[i])] = torch.tensor(rows[i])
        h = model.language_model(x)
        h = torch.stack([h[j, len(rows[i]) - 1] for j, i in enumerate(index)])
        for i, t in zip(index, model.logits(h).argmax(-1).tolist()):
            rows[i].append(t)
            if t in stop or len(rows[i]) - len(prompts[i]) >= LIMIT:
                live.discard(i)
    return [r[len(p):] for r, p in zip(rows, prompts)]


@torch.no_grad()
def draft_hits(model, prompt, answer):
    """(tokens of the answer after its first that the draft head guessed, how many there are)"""
    ids = prompt + answer
    x = torch.zeros(1, -(-len(ids) // CHUNK) * CHUNK, dtype=torch.long)
    x[0, : len(ids)] = torch.tensor(ids)
    hidden = model.language_model(x)
    e = F.embedding(x[:, 1:], model.language_model.embed_tokens.weight)
    e = F.pad(e, (0, 0, 0, 1))
    guess = model.logits(model.mtp(e, hidden))[0].argmax(-1).tolist()
    hits = sum(guess[p - 2] == ids[p] for p in range(len(prompt) + 1, len(ids)))
    return hits, len(answer) - 1


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--wrong", action="store_true")
    ap.add_argument("--state", action="store_true")
    ap.add_argument("--set", choices=("development", "strangers", "heldout"), default="development")
    a = ap.parse_args()
    torch.set_num_threads(1)
    start = time.time()
    entries = json.loads((FOLDER / "eval" / f"{a.set}.json").read_text())["prompts"][:: a.every]
    tok, model = tokenizer(), load(a.state)
    prompts = [tok.encode(prompt_text(e)).ids for e in entries]
    order = sorted(range(len(entries)), key=lambda i: len(prompts[i]))
    score, draft = defaultdict(lambda: [0, 0]), [0, 0]
    for at in range(0, len(order), 32):
        some = order[at : at + 32]
        for i, out in zip(some, answers(model, [prompts[i] for i in some])):
            e, text = entries[i], tok.decode(out)
            ok = right(text, e) and len(out) < LIMIT
            score[e["kind"]][0] += ok
            score[e["kind"]][1] += 1
            h, n = draft_hits(model, prompts[i], out)
            draft[0] += h
            draft[1] += n
            if a.wrong and not ok:
                print(f"[{e['kind']}] {e['messages'][-1]['content']!r} -> {text!r}, wanted {e['answers'][0]!r}")
    for k, (r, n) in sorted(score.items()):
        print(f"| {k} | {r} | {n} |")
    r, n = (sum(x[j] for x in score.values()) for j in (0, 1))
    print(f"| all | {r} ({100 * r / n:.1f}%) | {n} |")
    print(f"draft head: {draft[0]} of {draft[1]} guesses accepted ({100 * draft[0] / draft[1]:.1f}%); {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
