#!/usr/bin/env python3
"""Measure Hugging Face `tokenizers` as benches/tokenizer.rs measures this library.

usage: cargo bench --bench tokenizer -- --write DIR
       python benches/tokenizer_hf.py TOKENIZER_DIR DIR   (pip install tokenizers==0.23.3)

One thread, wall time, best of 3, MB (1,000,000 bytes) per second: `encode` also makes offsets,
`encode_batch_fast` makes none and is the fastest call. Texts that spell added tokens have fewer
tokens here: `tokenizers` honours those of tokenizer.json, the bench of this library takes user
text, where they are plain text.
"""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402


def best(call, rounds=3):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def main():
    folder, texts = sys.argv[1:]
    path = os.path.join(folder, "tokenizer.json")
    seconds, tokenizer = best(lambda: Tokenizer.from_file(path))
    print(f"load: best {seconds * 1e3:.0f} ms")
    print(f"{'text':<16}{'bytes':>9}{'tokens':>9}{'encode':>9}{'fast':>9}  MB/s")
    for name in sorted(os.listdir(texts)):
        with open(os.path.join(texts, name), encoding="utf-8", newline="") as f:
            text = f.read()
        size = len(text.encode())
        plain, ids = best(lambda: tokenizer.encode(text).ids)
        fast, _ = best(lambda: tokenizer.encode_batch_fast([text]))
        print(f"{name[:-4]:<16}{size:>9}{len(ids):>9}{size / 1e6 / plain:>9.2f}{size / 1e6 / fast:>9.2f}")


if __name__ == "__main__":
    main()
