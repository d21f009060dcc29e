"""Writes tests/data/sampling.json: what the logits processors of Transformers leave.

    python tests/reference/make_sampling.py

Each case holds logits, a sequence of tokens, options, and the probabilities that are left
after Transformers' processors for bias, repetition, temperature, top-k, top-p and min-p, in
the order in which `generate` applies them (0 is a removed token).
"""

import json
import pathlib
import random

import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

PATH = pathlib.Path(__file__).resolve().parents[1] / "data/sampling.json"
rng = random.Random(5)


def case():
    n = rng.choice([7, 20, 50])
    logits = [round(rng.gauss(0, rng.choice([0.3, 2, 6])), 4) for _ in range(n)]
    options = {
        "temperature": rng.choice([0.3, 0.7, 1.0, 1.0, 1.8]),
        "top_k": rng.choice([0, 0, 1, 3, 10, 100]),
        "top_p": rng.choice([1.0, 1.0, 0.95, 0.8, 0.5, 0.1, 0.0]),
        "min_p": rng.choice([0.0, 0.0, 0.05, 0.3, 1.0]),
        "repetition_penalty": rng.choice([1.0, 1.0, 1.3, 0.7]),
        "logit_bias": [[rng.randrange(n), rng.choice([-3.5, 2.25, 10.0])]] if rng.random() < 0.3 else [],
    }
    sequence = [rng.randrange(n) for _ in range(rng.randrange(1, 12))]
    ids, scores = torch.tensor([sequence]), torch.tensor([logits])
    steps = []
    if options["logit_bias"]:
        steps.append(SequenceBiasLogitsProcessor({(token,): bias for token, bias in options["logit_bias"]}))
    if options["repetition_penalty"] != 1.0:
        steps.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    steps.append(TemperatureLogitsWarper(options["temperature"]))
    if options["top_k"]:
        steps.append(TopKLogitsWarper(options["top_k"]))
    if options["top_p"] < 1:
        steps.append(TopPLogitsWarper(options["top_p"]))
    if options["min_p"]:
        steps.append(MinPLogitsWarper(options["min_p"]))
    for step in steps:
        scores = step(ids, scores)
    left = [float(f"{p:.6g}") for p in scores.double().softmax(-1)[0].tolist()]
    return {"logits": logits, "sequence": sequence, **options, "left": left}


cases = ",\n".join(json.dumps(case()) for _ in range(150))
PATH.write_text(f"[\n{cases}\n]\n", encoding="utf-8")
