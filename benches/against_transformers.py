"""libqwen35 and Hugging Face Transformers in one process, taking turns.

    .venv/bin/python benches/against_transformers.py MODEL [--runs 5] [--json FILE]

MODEL is a checkpoint folder, such as the full-size synthetic one that `make test-model` leaves in
tests/.cache/full-0.8b. Both compute in FP32 over the same weights. The environment is that of
`make test-model`; the library is build/libqwen35.so.0 (`make`).

    decode   19 tokens in, 32 out, greedy, one thread each: (32 - 1) / time from first to last
    prefill  512 tokens, two threads each: 512 / time to the logits of the last one

After one warm-up, rounds alternate; printed are medians with minimum and maximum, and the median
of the ratios round by round. Whether the 32 ids are equal is said too.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))

import torch  # noqa: E402

import reference  # noqa: E402

VOCABULARY = 50_000


class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("struct_size", "flags", "threads")] + [
        ("isa", ctypes.c_int32)
    ]


class Sampling(ctypes.Structure):
    """qwen_sampling_options; a preset needs only its beginning."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("set", ctypes.c_uint32),
        ("preset", ctypes.c_int32),
        ("rest", ctypes.c_uint8 * 60),
    ]


class Ours:
    """The library through its C ABI."""

    def __init__(self, folder, threads):
        self.lib = ctypes.CDLL(os.path.join(ROOT, "build", "libqwen35.so.0"))
        self.lib.qwen_last_error.restype = ctypes.c_char_p
        options = Options(ctypes.sizeof(Options), 0, threads, 0)
        self.model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        path = os.fsencode(folder)
        self.check(
            self.lib.qwen_model_open(
                path, ctypes.c_size_t(len(path)), ctypes.byref(options), ctypes.byref(self.model)
            )
        )
        self.check(self.lib.qwen_session_new(self.model, None, ctypes.byref(self.session)))
        sampling = Sampling(ctypes.sizeof(Sampling), 0, 1)
        self.check(self.lib.qwen_session_set_sampling(self.session, ctypes.byref(sampling)))

    def check(self, status):
        if status < 0:
            raise RuntimeError(self.lib.qwen_last_error().decode())

    def feed(self, ids):
        self.check(self.lib.qwen_session_reset(self.session))
        array = (ctypes.c_int32 * len(ids))(*ids)
        self.check(self.lib.qwen_session_feed(self.session, array, ctypes.c_size_t(len(ids))))

    def next(self):
        token = ctypes.c_int32()
        self.check(self.lib.qwen_session_next_token(self.session, ctypes.byref(token)))
        return token.value

    def decode(self, ids, count):
        self.feed(ids)
        out = [self.next()]
        start = time.perf_counter()
        out += [self.next() for _ in range(count - 1)]
        return out, (count - 1) / (time.perf_counter() - start)

    def prefill(self, ids):
        start = time.perf_counter()
        self.feed(ids)
        self.next()
        return len(ids) / (time.perf_counter() - start)


class Theirs:
    """Transformers with its own cache."""

    def __init__(self, folder):
        self.model = reference.load(folder)
        # Its default, and faster than the plain form that the comparisons of numbers use.
        self.model.config._attn_implementation = "sdpa"

    @torch.no_grad()
    def decode(self, ids, count):
        step = self.model(input_ids=torch.tensor([ids]), use_cache=True, logits_to_keep=1)
        out = [int(step.logits[0, -1].argmax())]
        start = time.perf_counter()
        while len(out) < count:
            step = self.model(
                input_ids=torch.tensor([[out[-1]]]),
                past_key_values=step.past_key_values,
                use_cache=True,
                logits_to_keep=1,
            )
            out.append(int(step.logits[0, -1].argmax()))
        return out, (count - 1) / (time.perf_counter() - start)

    @torch.no_grad()
    def prefill(self, ids):
        start = time.perf_counter()
        self.model(input_ids=torch.tensor([ids]), use_cache=True, logits_to_keep=1).logits.argmax()
        return len(ids) / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json")
    arguments = parser.parse_args()

    theirs = Theirs(arguments.model)
    results = []
    for what, threads, length in (("decode", 1, 19), ("prefill", 2, 512)):
        torch.set_num_threads(threads)
        ours = Ours(arguments.model, threads)
        ids = [(i * 7919 + 11) % VOCABULARY for i in range(length)]
        rates = {"ours": [], "theirs": []}
        same = None
        for run in range(arguments.runs + 1):
            for name, engine in (("ours", ours), ("theirs", theirs)):
                if what == "decode":
                    out, rate = engine.decode(ids, 32)
                    same = out if name == "ours" else same == out
                else:
                    rate = engine.prefill(ids)
                if run > 0:
                    rates[name].append(rate)
        ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates["theirs"]))
        for name in rates:
            low, high = min(rates[name]), max(rates[name])
            median = statistics.median(rates[name])
            print(f"{what:8} {threads} threads  {name:6} {median:8.2f} tok/s ({low:.2f} to {high:.2f})")
        note = "" if what == "prefill" else f"; the 32 ids are {'equal' if same else 'NOT equal'}"
        print(f"{what:8} {threads} threads  ratio  {ratio:8.2f}{note}", flush=True)
        results.append({"what": what, "threads": threads, "rates": rates, "ratio": ratio, "same": same})
    if arguments.json:
        with open(arguments.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
