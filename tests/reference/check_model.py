"""Logits, layer outputs and greedy tokens against Transformers in FP32."""

import json
import os
import shutil

import numpy as np
import torch

import check_chat
import check_tokenizer
import engine
import reference
import synthetic
from engine import Failure

# Largest differences allowed, in units of the logits' own standard deviation (about 1 for an own
# head, 4.6 for the tied one of 0.8B). Transformers itself moves by up to 1.3e-4 when the same
# prompt is computed in other pieces.
TOLERANCE = 3e-4
# The same for the hidden state that one layer hands on, whose standard deviation is about 1.
LAYER_TOLERANCE = 2e-5
# Greedy ids must be equal up to the first step at which Transformers' two best logits are closer
# than this many standard deviations: from there on either continuation is right.
TIE = 1e-3

# One thread: PyTorch's workers wait for each other by spinning, which takes minutes instead of
# seconds where something else wants the processors too.
torch.set_num_threads(1)

SMALL = ["small-equal", "small-grouped", "small-odd", "small-flat", "small-mixed"]
LENGTHS = [1, 19, 63, 64, 65, 300]


def prompt(vocabulary, count):
    return [(7919 * i + 13) % vocabulary for i in range(count)]


def checkpoint(variant):
    """The folder of a synthetic checkpoint in the cache, written on first use."""
    folder = os.path.join(engine.CACHE, variant)
    if os.path.exists(os.path.join(folder, "complete")):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    name, layout = synthetic.VARIANTS[variant]
    config = synthetic.load_config(name)
    synthetic.write_checkpoint(folder, config, **layout)
    if variant == "full-0.8b":
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(os.path.join(check_tokenizer.folder(), file), os.path.join(folder, file))
    else:
        synthetic.write_tiny_tokenizer(folder, synthetic.text_config(config)["vocab_size"])
    open(os.path.join(folder, "complete"), "w").close()
    return folder


def read_rows(path, vocabulary):
    return np.memmap(path, dtype="<f4", mode="r").reshape(-1, vocabulary)


def worst(found, expected):
    """Largest |difference| in units of the expected rows' standard deviation."""
    largest, scale = 0.0, float(expected.std())
    for i in range(expected.shape[0]):
        difference = float(np.abs(np.asarray(found[i]) - expected[i].numpy()).max())
        if not difference <= float("inf"):
            raise Failure(f"row {i} holds values that are not finite")
        largest = max(largest, difference / scale)
    return largest


def within(found, expected, tolerance=TOLERANCE):
    largest = worst(found, expected)
    if largest > tolerance:
        raise Failure(f"differs by {largest:.2e} standard deviations, allowed are {tolerance:.0e}")
    return f"largest difference {largest:.1e} standard deviations, allowed {tolerance:.0e}"


def same_until_tie(found, expected, gaps, scale, what):
    """None if the ids are equal, else the step of the first difference, which must be a tie."""
    if len(found) != len(expected):
        raise Failure(f"{what}: {len(found)} ids, expected {len(expected)}")
    for step, (a, b) in enumerate(zip(found, expected)):
        if a != b:
            if gaps[step] < TIE * scale:
                return step
            raise Failure(f"{what}: step {step} gives {a}, expected {b} (ahead by {gaps[step]:.2e})")
    return None


class Rows:
    """Runs of one model in the job runner, and the files of logits they leave."""

    def __init__(self, jobs, folder, vocabulary, **options):
        self.jobs, self.vocabulary = jobs, vocabulary
        self.job = {"kind": "rows", "model": folder} | options

    def run(self, *runs):
        """[(ids, lengths of the feeds, greedy)] -> [(rows, greedy ids)]"""
        made, paths = [], []
        for ids, feeds, greedy in runs:
            paths.append(self.jobs.path(".bin"))
            made.append({"ids": ids, "feeds": feeds, "greedy": greedy, "out": paths[-1]})
        results = self.jobs.run_one(self.job | {"runs": made})["runs"]
        return [(read_rows(path, self.vocabulary), r["greedy"]) for path, r in zip(paths, results, strict=True)]


def run_small(report, jobs):
    for variant in SMALL:
        folder = checkpoint(variant)
        model = reference.load(folder)
        vocabulary = model.config.vocab_size
        ids = prompt(vocabulary, LENGTHS[-1])
        expected = reference.logits(model, ids)
        scale = float(expected.std())
        continuations = {n: reference.greedy(model, ids[:n], 32) for n in LENGTHS}
        for isa in engine.instruction_sets():
            rows = Rows(jobs, folder, vocabulary, isa=isa, threads=2)

            def logits():
                (single, _), *whole = rows.run((ids, [1] * len(ids), 0), *((ids[:n], [n], 0) for n in LENGTHS))
                for n, (row, _) in zip(LENGTHS, whole):
                    if row.tobytes() != single[n - 1].tobytes():
                        raise Failure(f"prefill of {n} tokens is not token by token, bit for bit")
                return within(single, expected)

            report.check(f"{variant} {isa}: logits at {len(ids)} positions, prefill as token by token", logits)

            def greedy():
                ties = []
                for n, (want, gaps, _) in continuations.items():
                    found = engine.greedy_ids(folder, ids[:n], 32, isa=isa, threads=2)
                    tie = same_until_tie(found, want, gaps, scale, f"after {n} tokens")
                    ties += [] if tie is None else [f"tie at step {tie} after {n}"]
                return ", ".join(["32 ids after " + ", ".join(map(str, LENGTHS)), *ties])

            report.check(f"{variant} {isa}: greedy ids by qwen-ids", greedy)


def one_layer(kind):
    """The full 0.8B shapes with one layer of `kind`, made so that the logits are its output.

    Token t's embedding is row t of the given input, lm_head is the identity and the final norm
    has gain one, so the logits are the layer's output divided by its root mean square. The last
    coordinate passes through the layer untouched (the rows of the projections that would write
    to it are zero) and is 1 in every input: dividing by it gives the output itself.
    """
    config = json.loads(json.dumps(synthetic.load_config("qwen3.5-0.8b")))
    text = config["text_config"]
    hidden = text["hidden_size"]
    text |= {"num_hidden_layers": 1, "layer_types": [kind], "vocab_size": hidden, "tie_word_embeddings": False}
    text |= {"eos_token_id": 0}
    text.pop("full_attention_interval")
    config["tie_word_embeddings"] = False
    folder = os.path.join(engine.CACHE, f"one-{kind}")
    prefix = synthetic.CANONICAL_PREFIX
    source = np.random.default_rng(35)
    inputs = source.standard_normal((hidden, hidden)).astype(np.float32)
    inputs[:, -1] = 1.0
    replace = {
        prefix + "embed_tokens.weight": inputs,
        prefix + "norm.weight": np.zeros(hidden),
        "lm_head.weight": np.eye(hidden),
    }
    shapes = synthetic.tensor_shapes(config)
    for name in shapes:
        if name.endswith(("out_proj.weight", "o_proj.weight", "down_proj.weight")):
            values = synthetic.values(name, shapes[name], 0, 0, int(np.prod(shapes[name])))
            replace[name] = values.reshape(shapes[name])
            replace[name][-1] = 0.0
    synthetic.write_checkpoint(folder, config, replace=replace)
    synthetic.write_tiny_tokenizer(folder, 512)
    return folder, hidden


def run_layers(report, jobs):
    for kind in ("linear_attention", "full_attention"):
        folder, hidden = one_layer(kind)
        model = reference.load(folder)
        ids = prompt(hidden, 300)
        expected = reference.layer_outputs(model, ids)[0].reshape(len(ids), hidden)
        if not bool((expected[:, -1] == 1.0).all()):
            raise SystemExit("the last coordinate did not pass through the layer")
        for isa in engine.instruction_sets():

            def output():
                rows = Rows(jobs, folder, hidden, isa=isa, threads=2)
                (found, _), (last, _) = rows.run((ids, [1] * len(ids), 0), (ids, [len(ids)], 0))
                if last.tobytes() != found[-1].tobytes():
                    raise Failure("prefill is not token by token, bit for bit")
                return within(found / found[:, -1:], expected, LAYER_TOLERANCE)

            report.check(f"0.8B shapes {isa}: output of a {kind} layer at {len(ids)} positions", output)


def run_long(report, jobs):
    """Long sequences, where wrong rotations, decays or scales show."""
    for variant in ("small-equal", "small-grouped"):
        folder = checkpoint(variant)
        model = reference.load(folder)
        vocabulary = model.config.vocab_size
        source = np.random.default_rng(7)
        passage = source.integers(0, vocabulary, 500).tolist()
        ids = (passage * 8 + source.integers(0, vocabulary, 60).tolist())[:4000]
        expected = reference.logits(model, ids)

        def logits():
            rows = Rows(jobs, folder, vocabulary, threads=2)
            (single, _), (whole, _) = rows.run((ids, [1] * len(ids), 0), (ids, [1000, 2999, 1], 0))
            if whole[-1].tobytes() != single[-1].tobytes():
                raise Failure("prefill is not token by token, bit for bit")
            note = within(single, expected)
            wanted = torch.tensor(ids[1:])
            means = [
                float(torch.nn.functional.cross_entropy(r[:-1].double(), wanted))
                for r in (torch.from_numpy(np.array(single)), expected)
            ]
            if abs(means[0] - means[1]) > 1e-5:
                raise Failure(f"mean loss {means[0]}, expected {means[1]}")
            return f"{note}, mean loss differs by {abs(means[0] - means[1]):.1e}"

        report.check(f"{variant}: a passage repeated to {len(ids)} tokens", logits)


def run_full(report, jobs):
    folder = checkpoint("full-0.8b")
    model = reference.load(folder)
    vocabulary, known = model.config.vocab_size, 248077
    ids = [id % 248044 for id in prompt(248044, LENGTHS[-1])]
    # Every position up to 65, then every fifth: the output matrix takes most of the time.
    feeds = [1] * 65 + [5] * 47
    ends = np.cumsum(feeds)
    expected = reference.logits(model, ids, keep=ends - 1)
    scale = float(expected.std())
    name = "full 0.8B shapes"

    def logits():
        rows = Rows(jobs, folder, vocabulary, threads=2)
        (pieces, _), *whole = rows.run((ids, feeds, 0), *((ids[:n], [n], 0) for n in LENGTHS))
        note = within(pieces, expected)
        for n, (row, _) in zip(LENGTHS, whole):
            if row.tobytes() != pieces[list(ends).index(n)].tobytes():
                raise Failure(f"prefill of {n} tokens is not the same in pieces, bit for bit")
        return note

    report.check(f"{name}: logits at {len(ends)} positions up to {len(ids)}, prefill as in pieces", logits)

    def scalar():
        rows = Rows(jobs, folder, vocabulary, isa="scalar", threads=2)
        ((single, _),) = rows.run((ids[:19], [1, 2, 16], 0))
        return within(single, expected[[0, 2, 18]])

    report.check(f"{name}: logits of the scalar kernels", scalar)

    for n in LENGTHS:

        def greedy():
            want, gaps, _ = reference.greedy(model, ids[:n], 32, known=known)
            notes = [f"smallest lead of the best {min(gaps) / scale:.1e} standard deviations"]
            for threads in (1, 2) if n == 19 else (2,):
                found = engine.greedy_ids(folder, ids[:n], 32, threads=threads)
                tie = same_until_tie(found, want, gaps, scale, f"{threads} threads")
                notes += [] if tie is None else [f"tie at step {tie}"]
            return ", ".join(notes)

        report.check(f"{name}: 32 greedy ids after {n} tokens by qwen-ids", greedy)


TURNS = ["Name a fruit and say why.", "And a metal? Antworte kurz, bitte: 你好 😀"]
ANSWER = 24


def run_conversation(report, jobs):
    """Two turns on the full shapes, with the real vocabulary and the published template."""
    names = ["conversation: both answers", "conversation: both answers by the host qwen"]
    template = check_chat.template_path()
    if template is None:
        for name in names:
            report.skip(name, check_chat.WHY_NOT)
        return
    full = checkpoint("full-0.8b")
    folder = os.path.join(engine.CACHE, "conversation")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for file in os.listdir(full):
        os.link(os.path.join(full, file), os.path.join(folder, file))
    shutil.copyfile(template, os.path.join(folder, "chat_template.jinja"))
    model, chat = reference.load(folder), check_chat.Reference(template)

    messages, expected = [], []
    for turn in TURNS:
        messages.append({"role": "user", "content": turn})
        ids = chat.special(chat.render({"messages": messages}))
        answer, gaps, sizes = reference.greedy(model, ids, ANSWER, stop=(248044, 248046), known=248077)
        text = chat.honouring.decode(answer, skip_special_tokens=True)
        expected.append((ids, answer, gaps, text))
        messages.append({"role": "assistant", "content": text})

    def in_library():
        answers = jobs.run_one({"kind": "converse", "model": folder, "turns": TURNS, "count": ANSWER})
        for i, ((ids, answer, gaps, text), found) in enumerate(zip(expected, answers, strict=True)):
            if found["prompt"] != ids:
                raise Failure(f"turn {i}: the prompt has other ids")
            tie = same_until_tie(found["ids"], answer, gaps, 4.6, f"turn {i}")
            if tie is not None:
                return f"equal up to a tie at step {tie} of turn {i}"
            if found["text"] != text:
                raise Failure(f"turn {i}: {found['text']!r}, expected {text!r}")
        reused = answers[1]["total"] - answers[1]["computed"]
        return f"{len(answers)} answers, {reused} tokens of the second prompt not computed again"

    report.check(names[0], in_library)

    def by_host():
        typed = "".join(turn + "\n" for turn in TURNS).encode()
        out = engine.host("qwen", folder, "--chat", ANSWER, 0, 1, stdin=typed).decode()
        want = "".join(text + "\n" for _, _, _, text in expected)
        if out != want:
            raise Failure(f"{out!r}, expected {want!r}")
        return f"{len(out)} characters equal"

    report.check(names[1], by_host)
