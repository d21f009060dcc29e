"""The engine from outside: the C hosts in build/ and the Rust job runner."""

import itertools
import json
import os
import subprocess
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CACHE = os.path.join(ROOT, "tests", ".cache")
# Where the C hosts are; `make BUILD=...` can put them elsewhere.
BUILD = os.path.abspath(os.environ.get("QWEN_BUILD", os.path.join(ROOT, "build")))
DATA = os.path.join(ROOT, "tests", "data")


class Failure(Exception):
    """A comparison that did not come out as it must."""


class Report:
    """Counts and prints what passed, failed and could not be run."""

    def __init__(self):
        self.passed, self.failures, self.skips = 0, [], []
        self.started = time.monotonic()

    def _line(self, word, name, note):
        elapsed = time.monotonic() - self.started
        print(f"[{elapsed:6.1f} s] {word:7} {name}{': ' if note else ''}{note}", flush=True)

    def check(self, name, body):
        """Runs `body`, which returns a note about what it measured or raises."""
        try:
            note = body()
        except Failure as failure:
            self.failures.append(name)
            self._line("FAILED", name, failure)
        except (subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as failure:
            self.failures.append(name)
            self._line("FAILED", name, f"{type(failure).__name__}: {failure}")
        else:
            self.passed += 1
            self._line("passed", name, note or "")

    def skip(self, name, reason):
        self.skips.append(name)
        self._line("NOT RUN", name, reason)

    def finish(self):
        for title, names in (("failed", self.failures), ("not run", self.skips)):
            for name in names:
                print(f"{title}: {name}")
        print(f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped")
        return 1 if self.failures else 0


def host(name, *arguments, stdin=b""):
    """Runs build/NAME and returns its standard output; a failure carries its standard error."""
    path = os.path.join(BUILD, name)
    done = subprocess.run([path, *map(str, arguments)], input=stdin, capture_output=True, timeout=900)
    if done.returncode != 0:
        error = done.stderr.decode(errors="replace").strip()[-2000:]
        raise Failure(f"{name} {' '.join(map(str, arguments))[:200]} ended with {done.returncode}: {error}")
    return done.stdout


def greedy_ids(model, ids, count, **options):
    """Greedy ids by the C host qwen-ids."""
    arguments = [model, ",".join(map(str, ids)), count]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    return [int(line) for line in host("qwen-ids", *arguments).split()]


def tokenize(model, text, *options):
    return [int(word) for word in host("qwen-tokenize", model, *options, stdin=text.encode()).split()]


def instruction_sets():
    with open("/proc/cpuinfo") as f:
        flags = set(next((line for line in f if line.startswith("flags")), "").split())
    out = ["scalar"]
    if {"avx2", "fma"} <= flags:
        out.append("avx2")
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags:
        out.append("avx512")
    return out


class Jobs:
    """Has tests/parity_jobs.rs do jobs, see there for their kinds."""

    def __init__(self):
        self.numbers = itertools.count()
        self.folder = os.path.join(CACHE, f"jobs-{os.getpid()}")
        os.makedirs(self.folder, exist_ok=True)
        build = ["cargo", "test", "--release", "--test", "parity_jobs", "--no-run", "--message-format=json"]
        done = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit("building tests/parity_jobs.rs failed")
        messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        self.binary = [m["executable"] for m in messages if m.get("executable")][-1]

    def path(self, suffix):
        return os.path.join(self.folder, f"{next(self.numbers)}{suffix}")

    def run(self, *jobs):
        """The results of `jobs`, one a job."""
        path = self.path(".json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(jobs, f)
        environment = os.environ | {"QWEN35_PARITY_JOBS": path}
        arguments = [self.binary, "--ignored", "--exact", "answer_jobs"]
        done = subprocess.run(arguments, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=1200)
        if done.returncode != 0:
            raise Failure(f"the job runner failed: {(done.stdout + done.stderr)[-2000:]}")
        with open(path + ".out", encoding="utf-8") as f:
            return json.load(f)

    def run_one(self, job):
        return self.run(job)[0]

    def close(self):
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        os.rmdir(self.folder)
