#!/usr/bin/env python3
"""Writes tests/data/golden/judge.json: probabilities and embeddings by Transformers in FP32.

For each of VARIANTS (the checkpoints of make_golden.py, with the seeds in its files) and the
sequence t[i] = (7919 i + 13) mod vocabulary, it holds

  score      after CONTEXT tokens, the log-probability of each of the next COUNT tokens, in 64 bits
             from the logits (torch.log_softmax over all rows),
  top        the TOP most likely tokens after CONTEXT tokens, as [id, log-probability] pairs,
  mean, last the hidden states of the first COUNT tokens after the final norm, pooled; and the
             same normalized to length 1: mean_unit, last_unit.

Usage: make_judge.py   (some seconds; requirements.txt has the versions)
"""

import json
import os
import tempfile

import torch

import reference
import synthetic
from make_golden import FOLDER, prompt, short

VARIANTS = ["small-equal", "small-grouped", "small-odd"]
CONTEXT, COUNT, TOP = 19, 300, 8


def make(variant):
    with open(os.path.join(FOLDER, f"{variant}.json")) as f:
        seed = json.load(f)["seed"]
    name, layout = synthetic.VARIANTS[variant]
    config = synthetic.load_config(name)
    vocabulary = synthetic.text_config(config)["vocab_size"]
    with tempfile.TemporaryDirectory() as folder:
        synthetic.write_checkpoint(folder, config, seed=seed, **layout)
        model = reference.load(folder)
    ids = prompt(vocabulary, CONTEXT + COUNT)
    each = torch.log_softmax(reference.logits(model, ids).double(), dim=-1)
    rows = each[CONTEXT - 1 : CONTEXT + COUNT - 1]
    score = rows.gather(1, torch.tensor(ids[CONTEXT:])[:, None])[:, 0]
    best = rows[0].topk(TOP)
    hidden = model.model(input_ids=torch.tensor([ids[:COUNT]]), use_cache=False).last_hidden_state[0].double()
    pooled = {"mean": hidden.mean(dim=0), "last": hidden[-1]}
    pooled |= {f"{key}_unit": torch.nn.functional.normalize(value, dim=0) for key, value in pooled.items()}
    return {
        "context": CONTEXT,
        "score": [short(float(v)) for v in score],
        "top": [[int(i), short(float(v))] for i, v in zip(best.indices, best.values)],
        **{key: [short(float(v)) for v in value] for key, value in pooled.items()},
    }


def main():
    torch.set_num_threads(1)
    path = os.path.join(FOLDER, "judge.json")
    with open(path, "w") as f:
        lines = [f"{json.dumps(v)}: {json.dumps(make(v), separators=(',', ':'))}" for v in VARIANTS]
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
