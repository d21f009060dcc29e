"""One engine in a process of its own, told by lines of JSON what to do; run.py starts it.

    {"do": "prefill", "tokens": 512}            -> {"rate": tokens per second}
    {"do": "decode", "depth": 19, "tokens": 32} -> {"rate": ..., "first_ms": ..., "ids": [...]}
    {"do": "memory"}                            -> {"resident_mb": ...}

The engines never compute at the same time, and none shares a runtime library with another.
"""

import json
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def prompt(length):
    return [(i * 7919 + 11) % 50_000 for i in range(length)]


class Engine:
    """What is measured: feed() empties the sequence and computes ids; next() gives a token."""

    def feed(self, ids):
        raise NotImplementedError

    def next(self):
        """The best next token; the one given before has been computed."""
        raise NotImplementedError

    def prefill(self, tokens):
        ids = prompt(tokens)
        start = time.perf_counter()
        self.feed(ids)
        self.next()
        return {"rate": tokens / (time.perf_counter() - start)}

    def decode(self, depth, tokens):
        ids = prompt(depth)
        start = time.perf_counter()
        self.feed(ids)
        out = [self.next()]
        middle = time.perf_counter()
        out += [self.next() for _ in range(tokens - 1)]
        end = time.perf_counter()
        return {
            "rate": (tokens - 1) / (end - middle),
            "first_ms": (middle - start) * 1e3,
            "ids": out,
        }


class Ours(Engine):
    """libqwen35 through its Python package."""

    def __init__(self, model, threads, weights, compute):
        sys.path.insert(0, os.path.join(ROOT, "examples", "python"))
        import qwen35

        qwen35.load(os.path.join(ROOT, "build", "libqwen35.so.0"))
        self.model = qwen35.Model(model, threads=threads, weights=weights, compute=compute)
        self.session = self.model.session(sampling=qwen35.Sampling("greedy"))

    def feed(self, ids):
        self.session.reset()
        self.session.feed(ids)

    def next(self):
        return self.session.next().token


class Transformers(Engine):
    """Hugging Face Transformers with its own cache and its fastest attention."""

    def __init__(self, model, threads, weights):
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch = torch
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[weights]
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=dtype).eval()

    def run(self, ids, cache):
        self.step = self.model(
            input_ids=self.torch.tensor([ids]),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.waiting = None

    def feed(self, ids):
        self.run(ids, None)

    def next(self):
        if self.waiting is not None:
            self.run([self.waiting], self.step.past_key_values)
        self.waiting = int(self.step.logits[0, -1].argmax())
        return self.waiting


class LlamaCpp(Engine):
    """llama.cpp through the library of llama-cpp-python."""

    def __init__(self, model, threads, context):
        import llama_cpp
        import numpy as np

        self.np, self.api = np, llama_cpp
        self.quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.quiet, None)
        llama_cpp.llama_backend_init()
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(os.fsencode(model), options)
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot open {model}")
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = context
        options.n_batch = options.n_ubatch = 512
        options.n_threads = options.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(vocabulary)

    def run(self, ids):
        for start in range(0, len(ids), 512):
            part = ids[start : start + 512]
            array = (self.api.llama_token * len(part))(*part)
            batch = self.api.llama_batch_get_one(array, len(part))
            if self.api.llama_decode(self.context, batch) != 0:
                raise RuntimeError("llama_decode failed")
        self.waiting = None

    def feed(self, ids):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        self.run(ids)

    def next(self):
        if self.waiting is not None:
            self.run([self.waiting])
        logits = self.api.llama_get_logits_ith(self.context, -1)
        values = self.np.ctypeslib.as_array(logits, shape=(self.vocabulary,))
        self.waiting = int(values.argmax())
        return self.waiting


class IkLlamaCpp(Engine):
    """ik_llama.cpp through the library of ik-llama-cpp-python, with the weights in its own order
    (repacked) and its flash attention."""

    def __init__(self, model, threads, context):
        import ik_llama_cpp._ctypes_api as api
        import numpy as np

        self.np, self.api = np, api
        # It tells hundreds of lines; errors are answers.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        api.llama_backend_init()
        options = api.llama_model_default_params()
        options.n_gpu_layers = 0
        options.repack_tensors = True
        self.model = api.llama_model_load_from_file(os.fsencode(model), options)
        if not self.model:
            raise RuntimeError(f"ik_llama.cpp cannot open {model}")
        options = api.llama_context_default_params()
        options.n_ctx = context
        options.n_batch = options.n_ubatch = 512
        options.n_threads = options.n_threads_batch = threads
        options.flash_attn = True
        self.context = api.llama_init_from_model(self.model, options)
        if not self.context:
            raise RuntimeError("ik_llama.cpp makes no context")
        self.vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))
        self.batch = api.llama_batch_init(512, 0, 1)
        self.position = 0

    def run(self, ids):
        for start in range(0, len(ids), 512):
            part = ids[start : start + 512]
            batch = self.batch
            batch.n_tokens = len(part)
            for n, token in enumerate(part):
                batch.token[n], batch.pos[n] = token, self.position + n
                batch.n_seq_id[n], batch.seq_id[n][0] = 1, 0
                batch.logits[n] = n + 1 == len(part)
            if self.api.llama_decode(self.context, batch) != 0:
                raise RuntimeError("llama_decode failed")
            self.position += len(part)
        self.waiting = None

    def feed(self, ids):
        self.api.llama_kv_cache_clear(self.context)
        self.position = 0
        self.run(ids)

    def next(self):
        if self.waiting is not None:
            self.run([self.waiting])
        logits = self.api.llama_get_logits_ith(self.context, -1)
        values = self.np.ctypeslib.as_array(logits, shape=(self.vocabulary,))
        self.waiting = int(values.argmax())
        return self.waiting


def resident_mb():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1e3 * 1.024


def make(spec):
    kind = spec.pop("kind")
    kinds = {"ours": Ours, "transformers": Transformers, "llama.cpp": LlamaCpp,
             "ik_llama.cpp": IkLlamaCpp}
    return kinds[kind](**spec)


def main():
    # Answers have a channel of their own: libraries print to standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        engine = make(json.loads(sys.argv[1]))
        answers.write("{}\n")
        answers.flush()
        for line in sys.stdin:
            request = json.loads(line)
            what = request.pop("do")
            if what == "memory":
                answer = {"resident_mb": resident_mb()}
            else:
                answer = getattr(engine, what)(**request)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    except Exception as error:
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
