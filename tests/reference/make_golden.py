#!/usr/bin/env python3
"""Writes tests/data/golden/*.json: what Transformers computes in FP32 for the small checkpoints.

Each file names the config, seed and layout, from which both sides make the same weights
(synthetic.py here, tests/support/synthetic.rs there), so that no weights are committed. It holds,
for the prompt t[i] = (7919 i + 13) mod vocabulary of 130 tokens,

  best     the eight largest logits at every position, as [id, value] pairs,
  rows     whole rows of logits at the positions that end a prompt of a length in LENGTHS,
  loss     the mean next-token loss of the first n tokens of the same sequence, for n in LOSSES,
  greedy   32 greedy tokens after the first n tokens, for n in LENGTHS. The seed is the first one
           for which the two best logits always differ by MIN_GAP, so that equality is exact.

Usage: make_golden.py [VARIANT ...]   (about a minute; requirements.txt has the versions)
"""

import json
import os
import sys
import tempfile

import torch

import reference
import synthetic

LENGTHS = [1, 3, 4, 19, 63, 64, 65, 130]
LOSSES = [256, 4096]
STEPS = 32
MIN_GAP = 2e-3
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden")
VARIANTS = ["small-equal", "small-grouped", "small-odd", "small-flat", "small-mixed", "layer-linear", "layer-attention"]


def prompt(vocabulary, count):
    return [(7919 * i + 13) % vocabulary for i in range(count)]


def short(value):
    """Nine digits hold a float32 exactly."""
    return float(f"{value:.9g}")


def losses(model, vocabulary):
    ids = torch.tensor(prompt(vocabulary, LOSSES[-1]))
    rows = reference.logits(model, ids.tolist())[:-1].double()
    each = torch.nn.functional.cross_entropy(rows, ids[1:], reduction="none")
    return {str(n): short(float(each[: n - 1].mean())) for n in LOSSES}


def continuations(model, vocabulary):
    """Greedy ids for every length, or None where a step is too close to call or ends the turn."""
    ends = {vocabulary - 3}
    out = []
    for n in LENGTHS:
        ids, gaps, _ = reference.greedy(model, prompt(vocabulary, n), STEPS)
        if min(gaps) < MIN_GAP or ends & set(ids):
            return None
        out.append({"prompt": n, "ids": ids, "smallest_gap": short(min(gaps))})
    return out


def make(variant):
    name, layout = synthetic.VARIANTS[variant]
    config = synthetic.load_config(name)
    vocabulary = synthetic.text_config(config)["vocab_size"]
    for seed in range(100):
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write_checkpoint(folder, config, seed=seed, **layout)
            model = reference.load(folder)
        # One layer has no recurrent and attention caches side by side, which Transformers wants
        # for a continuation; there the logits are the test.
        greedy = [] if variant.startswith("layer-") else continuations(model, vocabulary)
        if greedy is not None:
            break
    logits = reference.logits(model, prompt(vocabulary, LENGTHS[-1]))
    best = logits.topk(8)
    return {
        "made_by": "tests/reference/make_golden.py",
        "versions": {"torch": torch.__version__, "transformers": __import__("transformers").__version__},
        "config": name,
        "seed": seed,
        "mix": layout.get("mix", "published"),
        "prefix": layout.get("prefix", synthetic.CANONICAL_PREFIX),
        "shards": layout.get("shards", 1),
        "prompt": {"multiplier": 7919, "offset": 13, "count": LENGTHS[-1]},
        "loss": losses(model, vocabulary),
        "greedy": greedy,
        "best": [
            [[int(i), short(float(v))] for i, v in zip(ids, row)] for ids, row in zip(best.indices, best.values)
        ],
        "rows": {str(n - 1): [short(float(v)) for v in logits[n - 1]] for n in LENGTHS},
    }


def main():
    # The sums below depend on how PyTorch splits them; one thread keeps the files reproducible.
    torch.set_num_threads(1)
    os.makedirs(FOLDER, exist_ok=True)
    for variant in sys.argv[1:] or VARIANTS:
        data = make(variant)
        path = os.path.join(FOLDER, f"{variant}.json")
        with open(path, "w") as f:
            # One key a line: readable differences, and no line break for every number.
            lines = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in data.items()]
            f.write("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{path}: seed {data['seed']}, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
