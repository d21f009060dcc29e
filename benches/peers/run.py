"""libqwen35 beside Transformers, llama.cpp and ik_llama.cpp (if the package is installed), in one
run, taking turns: `make bench-peers`.

    python benches/peers/run.py MODEL [--only ours,llama.cpp] [--runs 5] [--threads 2]
        [--prefill 512] [--depth 19] [--output 32] [--small] [--gguf FOLDER] [--json FILE]

MODEL is a checkpoint folder, such as the synthetic one of the full 0.8B shapes. All engines get
the same weights and the same token ids and decode greedily; GGUF files for llama.cpp are written
from MODEL once, into the folder --gguf names. Rounds alternate over the engines, after one warm-up round; printed
are medians with minimum and maximum, and the median over the rounds of ours / theirs.

Before, the files are dropped from the page cache (where nobody has them mapped) and read anew,
for all engines into large pages: a file that was written a moment ago lies in small ones, which
cost every reader of it a tenth.

    prefill   tokens fed / time until the next token is chosen
    decode    (output - 1) / time from the first to the last output token

--small is the protocol of one thread, 19 tokens in, 32 out against Transformers in FP32 alone.
The ids are compared where both compute exactly: BF16 weights, FP32 arithmetic.
"""

import argparse
import importlib.util
import json
import mmap
import os
import statistics
import subprocess
import sys
import time

# Of Linux; Python has no name for it.
MADV_POPULATE_READ = 22

HERE = os.path.dirname(os.path.abspath(__file__))


class Worker:
    def __init__(self, name, spec):
        self.name, self.spec = name, spec
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "worker.py"), json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended without an answer")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def gguf(model, folder, kind):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{os.path.basename(os.path.abspath(model))}-{kind}.gguf")
    if not os.path.exists(path):
        print(f"writing {path}", file=sys.stderr)
        command = [sys.executable, os.path.join(HERE, "export_gguf.py"), model, path]
        subprocess.run([*command, "--type", kind], check=True)
    return path


def read_anew(path):
    """Drops the weight files at `path`, a file or a folder, from the page cache, and has them
    read into large pages, where the file system has such."""
    names = [path]
    if os.path.isdir(path):
        names = [os.path.join(path, name) for name in os.listdir(path)]
    for name in names:
        if not name.endswith((".safetensors", ".gguf", ".qwen")):
            continue
        with open(name, "rb") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as whole:
                try:
                    whole.madvise(mmap.MADV_HUGEPAGE)
                    whole.madvise(MADV_POPULATE_READ)
                except OSError as error:
                    print(f"note: {name} is read in small pages: {error}", file=sys.stderr)


def candidates(arguments):
    """(name, what makes it), those that are compared with each other beside each other."""
    threads, model = arguments.threads, arguments.model
    context = max(arguments.prefill, arguments.depth) + 2 * arguments.output + 64

    def ours(weights, compute):
        return {"kind": "ours", "model": model, "threads": threads, "weights": weights,
                "compute": compute}

    def transformers(weights):
        return {"kind": "transformers", "model": model, "threads": threads, "weights": weights}

    if arguments.small:
        return [("libqwen35 bf16 exact", ours("bf16", "exact")),
                ("Transformers f32", transformers("f32"))]
    found = [("Transformers f32", transformers("f32")),
             ("Transformers bf16", transformers("bf16"))]
    engines = ["llama.cpp"]
    if importlib.util.find_spec("ik_llama_cpp"):
        engines.append("ik_llama.cpp")
    pairs = [("bf16", "exact", None), ("bf16", "fast", "bf16"),
             ("int8", "fast", "q8_0"), ("int4", "fast", "q4_0")]
    for weights, compute, kind in pairs:
        found.append((f"libqwen35 {weights} {compute}", ours(weights, compute)))
        for engine in engines if kind else []:
            spec = {"kind": engine, "threads": threads, "context": context}
            found.append((f"{engine} {kind}", (spec, kind)))
    only = arguments.only.split(",") if arguments.only else None
    found = [(n, s) for n, s in found if only is None or any(part in n for part in only)]
    # Only those asked for need a file.
    return [(n, s if isinstance(s, dict) else {**s[0], "model": gguf(model, arguments.gguf, s[1])})
            for n, s in found]


def comparable(ours, theirs):
    """Whether two have weights of about the same bytes, or compute in the same precision."""
    like = {"bf16": ("f32", "bf16"), "int8": ("q8_0",), "int4": ("q4_0",)}
    return theirs.split()[-1] in like[ours.split()[1]]


def figure(name, what, tokens, threads, unit, values):
    return {"engine": name, "what": what, "tokens": tokens, "threads": threads, "unit": unit,
            "median": round(statistics.median(values), 3), "min": round(min(values), 3),
            "max": round(max(values), 3), "runs": len(values)}


def machine(model):
    with open("/proc/cpuinfo") as f:
        lines = f.read().splitlines()
    def field(key):
        return next((line.split(": ", 1)[1] for line in lines if line.startswith(key)), "")
    flags = field("flags").split()
    isa = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "scalar"
    return {"cpu": field("model name"), "isa": isa, "processors": os.cpu_count(),
            "load_before": round(os.getloadavg()[0], 2), "unix_time": int(time.time()),
            "model": os.path.basename(os.path.abspath(model))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--only", help="parts of names, separated by commas")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--depth", type=int, default=19)
    parser.add_argument("--output", type=int, default=32)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--gguf", default=os.path.join(HERE, "..", "..", "tests", ".cache", "gguf"))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.threads is None:
        arguments.threads = 1 if arguments.small else 2
    head = machine(arguments.model)
    if head["load_before"] > 0.5:
        print(f"note: the load was {head['load_before']} before the start", file=sys.stderr)

    specs = candidates(arguments)
    for model in sorted({spec["model"] for _, spec in specs}):
        read_anew(model)
    workers = [Worker(name, spec) for name, spec in specs]
    tasks = [("decode", arguments.depth)]
    if not arguments.small:
        tasks.append(("prefill", arguments.prefill))
    rates = {(w.name, what): [] for w in workers for what, _ in tasks}
    first = {w.name: [] for w in workers}
    ids = {}
    for what, length in tasks:
        for run in range(arguments.runs + 1):
            for worker in workers:
                if what == "decode":
                    answer = worker.ask(do=what, depth=length, tokens=arguments.output)
                    ids[worker.name] = answer["ids"]
                else:
                    answer = worker.ask(do=what, tokens=length)
                if run > 0:
                    rates[worker.name, what].append(answer["rate"])
                    if what == "decode":
                        first[worker.name].append(answer["first_ms"])

    results = []
    ours = [w.name for w in workers if w.name.startswith("libqwen35")]
    for what, length in tasks:
        for worker in workers:
            values = rates[worker.name, what]
            results.append(figure(worker.name, what, length, arguments.threads, "tok/s", values))
            print(f"{what} {length:<6} {arguments.threads} threads  {worker.name:22}"
                  f"{statistics.median(values):9.2f} tok/s ({min(values):.2f} to {max(values):.2f})")
        for theirs in (w.name for w in workers if w.name not in ours):
            for name in (name for name in ours if comparable(name, theirs)):
                ratios = [a / b for a, b in zip(rates[name, what], rates[theirs, what])]
                print(f"{what} {length:<6} {name} / {theirs}: {statistics.median(ratios):.2f}"
                      f" ({min(ratios):.2f} to {max(ratios):.2f})")
    for worker in workers:
        values = first[worker.name]
        results.append(
            figure(worker.name, "first token", arguments.depth, arguments.threads, "ms", values))
        print(f"first token after {arguments.depth}: {worker.name:22}"
              f"{statistics.median(values):9.1f} ms ({min(values):.1f} to {max(values):.1f})")
        resident = worker.ask(do="memory")["resident_mb"]
        results.append(
            figure(worker.name, "resident", arguments.depth, arguments.threads, "MB", [resident]))
        worker.close()
    if {"libqwen35 bf16 exact", "Transformers f32"} <= set(ids):
        same = ids["libqwen35 bf16 exact"] == ids["Transformers f32"]
        print(f"the {arguments.output} ids of libqwen35 bf16 exact and Transformers f32 are "
              + ("equal" if same else "NOT equal"))
    if arguments.json:
        with open(arguments.json, "w") as f:
            json.dump({"machine": head, "results": results}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
