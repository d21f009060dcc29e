#!/usr/bin/env python3
"""Checkpoints with reproducible random weights.

The values come from a counter-based generator that depends on nothing but the tensor's name, the
element's index and a seed, so that this file and tests/support/synthetic.rs write the same bytes
without sharing any data. The formula:

    h      = fnv1a64(canonical name) ^ seed
    bits_i = splitmix64_finalise(h + (i + 1) * 0x9E3779B97F4A7C15)
    u      = (bits_i >> 40) * 2^-24                          in [0, 1)
    value  = offset + scale * (2 u - 1)                      in float32, in this order

rounded to the type that the file holds. The canonical name is the published spelling
(`model.language_model.layers.0.mlp.up_proj.weight`, `lm_head.weight`), whatever prefix the file
uses, so that the same model can be written in every layout. Scale and offset depend on the kind
of the tensor (see `scale_and_offset`); they keep the residual stream of a 24-layer network near
one and give the recurrent layers decays from almost none to almost full.
"""

import argparse
import json
import os
import struct
import sys

import numpy as np

CANONICAL_PREFIX = "model.language_model."
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
CHUNK = 1 << 22


def fnv1a64(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def uniform(name: str, seed: int, start: int, count: int) -> np.ndarray:
    """Elements start .. start + count of the stream of `name`, as float32 in [0, 1)."""
    base = np.uint64(fnv1a64(name.encode()) ^ seed)
    with np.errstate(over="ignore"):
        z = np.arange(start + 1, start + 1 + count, dtype=np.uint64)
        z *= GOLDEN
        z += base
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def scale_and_offset(name: str, shape):
    """(scale, offset) of a tensor, by what it is."""
    if name.endswith("embed_tokens.weight"):
        return np.float32(0.25), np.float32(0.0)
    if name.endswith("linear_attn.norm.weight"):
        return np.float32(0.3), np.float32(1.0)
    if name.endswith("norm.weight"):
        return np.float32(0.3), np.float32(0.0)
    if name.endswith("A_log"):
        return np.float32(3.0), np.float32(-1.0)
    if name.endswith("dt_bias"):
        return np.float32(1.0), np.float32(0.0)
    if name.endswith("conv1d.weight"):
        return np.float32(0.8), np.float32(0.0)
    return np.float32(1.7) / np.sqrt(np.float32(shape[-1])), np.float32(0.0)


def values(name: str, shape, seed: int, start: int, count: int) -> np.ndarray:
    scale, offset = scale_and_offset(name, shape)
    u = uniform(name, seed, start, count)
    return offset + scale * (np.float32(2.0) * u - np.float32(1.0))


def to_bytes(x: np.ndarray, dtype: str) -> bytes:
    if dtype == "F32":
        return x.astype("<f4").tobytes()
    if dtype == "F16":
        return x.astype("<f2").tobytes()
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype("<u2").tobytes()


SIZE = {"F32": 4, "F16": 2, "BF16": 2}


def text_config(config: dict) -> dict:
    return config.get("text_config", config)


def layer_kinds(text: dict):
    if text.get("layer_types"):
        return text["layer_types"]
    every = text["full_attention_interval"]
    return [
        "full_attention" if (i + 1) % every == 0 else "linear_attention"
        for i in range(text["num_hidden_layers"])
    ]


def tied(config: dict) -> bool:
    text = text_config(config)
    return bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False)))


def tensor_shapes(config: dict) -> dict:
    """Canonical name -> shape, for every tensor the text model needs."""
    c = text_config(config)
    hidden, ffn, head = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
    key = c["linear_num_key_heads"] * c["linear_key_head_dim"]
    value = c["linear_num_value_heads"] * c["linear_value_head_dim"]
    out = {"embed_tokens.weight": [c["vocab_size"], hidden]}
    for i, kind in enumerate(layer_kinds(c)):
        layer = {
            "input_layernorm.weight": [hidden],
            "post_attention_layernorm.weight": [hidden],
            "mlp.gate_proj.weight": [ffn, hidden],
            "mlp.up_proj.weight": [ffn, hidden],
            "mlp.down_proj.weight": [hidden, ffn],
        }
        if kind == "linear_attention":
            layer |= {
                "linear_attn.in_proj_qkv.weight": [2 * key + value, hidden],
                "linear_attn.in_proj_z.weight": [value, hidden],
                "linear_attn.in_proj_a.weight": [c["linear_num_value_heads"], hidden],
                "linear_attn.in_proj_b.weight": [c["linear_num_value_heads"], hidden],
                "linear_attn.conv1d.weight": [2 * key + value, 1, c["linear_conv_kernel_dim"]],
                "linear_attn.A_log": [c["linear_num_value_heads"]],
                "linear_attn.dt_bias": [c["linear_num_value_heads"]],
                "linear_attn.norm.weight": [c["linear_value_head_dim"]],
                "linear_attn.out_proj.weight": [hidden, value],
            }
        else:
            layer |= {
                "self_attn.q_proj.weight": [2 * heads * head, hidden],
                "self_attn.k_proj.weight": [kv_heads * head, hidden],
                "self_attn.v_proj.weight": [kv_heads * head, hidden],
                "self_attn.o_proj.weight": [hidden, heads * head],
                "self_attn.q_norm.weight": [head],
                "self_attn.k_norm.weight": [head],
            }
        out |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    out["norm.weight"] = [hidden]
    out = {CANONICAL_PREFIX + name: shape for name, shape in out.items()}
    if not tied(config):
        out["lm_head.weight"] = [c["vocab_size"], hidden]
    return out


def tensor_dtypes(names, mix: str) -> dict:
    """Canonical name -> stored type.

    "published" keeps A_log and linear_attn.norm.weight in F32 and the rest in BF16, as the
    published files do. "F32", "F16" and "BF16" store everything alike. "mixed" cycles through
    BF16, F16 and F32 over the sorted names, so that every kind of tensor meets every type.
    """
    if mix in SIZE:
        return {name: mix for name in names}
    if mix == "mixed":
        return {name: ("BF16", "F16", "F32")[i % 3] for i, name in enumerate(sorted(names))}
    if mix == "published":
        keep = (".A_log", ".linear_attn.norm.weight")
        return {name: "F32" if name.endswith(keep) else "BF16" for name in names}
    raise ValueError(f"unknown mix of types {mix!r}")


def file_name(canonical: str, prefix: str) -> str:
    """The name in the file: `prefix` in place of the canonical one. lm_head stays at the top,
    except in the `language_model.model.` layout, where it becomes `language_model.lm_head`."""
    if canonical.startswith(CANONICAL_PREFIX):
        return prefix + canonical[len(CANONICAL_PREFIX) :]
    if prefix == "language_model.model.":
        return "language_model." + canonical
    return canonical


def write_safetensors(path, tensors):
    """Writes [(name, dtype, shape, iterator of byte blocks)], in this order, to `path`."""
    header, offset = {}, 0
    for name, dtype, shape, _ in tensors:
        size = SIZE[dtype] * int(np.prod(shape))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = f"{path}.partial"
    with open(partial, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for _, _, _, blocks in tensors:
            for block in blocks:
                f.write(block)
    os.replace(partial, path)


def blocks_of(name, shape, dtype, seed):
    total = int(np.prod(shape))
    for start in range(0, total, CHUNK):
        count = min(CHUNK, total - start)
        yield to_bytes(values(name, shape, seed, start, count), dtype)


def write_checkpoint(folder, config, seed=0, mix="published", prefix=CANONICAL_PREFIX, shards=1, replace=None):
    """Writes config.json and the weights of `config` into `folder`.

    `replace` gives other values for some tensors: canonical name -> float32 array. With several
    shards the tensors are dealt out in turn and an index is written.
    """
    os.makedirs(folder, exist_ok=True)
    shapes = tensor_shapes(config)
    dtypes = tensor_dtypes(shapes, mix)
    # The published order: F32 tensors first, then the rest, each by name.
    order = sorted(shapes, key=lambda name: (dtypes[name] != "F32", name))
    entries = []
    for name in order:
        dtype, shape = dtypes[name], shapes[name]
        if replace and name in replace:
            array = np.ascontiguousarray(replace[name], dtype=np.float32)
            assert list(array.shape) == list(shape), name
            blocks = [to_bytes(array.reshape(-1), dtype)]
        else:
            blocks = blocks_of(name, shape, dtype, seed)
        entries.append((file_name(name, prefix), dtype, shape, blocks))
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), entries)
    else:
        weight_map = {}
        for i in range(shards):
            file = f"model.safetensors-{i + 1:05}-of-{shards:05}.safetensors"
            part = entries[i::shards]
            write_safetensors(os.path.join(folder, file), part)
            weight_map |= {entry[0]: file for entry in part}
        total = sum(SIZE[d] * int(np.prod(s)) for _, d, s, _ in entries)
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
            json.dump(index, f)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2)


def tiny_tokenizer(size):
    """tokenizer.json of the published pipeline with `size` tokens: bytes, pairs of letters with
    their merges and, where there is room, three control tokens. As tests/support/tiny_tokenizer.rs.
    """
    from tokenizer_files import PATTERN, alphabet

    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] if size >= 259 else []
    letters = "abcdefghijklmnopqrstuvwxyz"
    pairs = [(a, b) for a in letters for b in letters][: size - len(control) - 256]
    tokens = sorted(alphabet().values()) + [a + b for a, b in pairs]
    assert len(tokens) + len(control) == size
    added = [
        {"id": len(tokens) + i, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for i, content in enumerate(control)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [f"{a} {b}" for a, b in pairs],
        },
    }


def write_tiny_tokenizer(folder, size):
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(tiny_tokenizer(size), f, ensure_ascii=False)


CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "configs")


def load_config(name: str) -> dict:
    with open(os.path.join(CONFIGS, f"{name}.json")) as f:
        return json.load(f)


# name -> (config, how it is written). Together they cover every kind of checkpoint: tied and own
# head, as many or more value heads than key heads, nested and flat configs, the three prefixes,
# one file and shards, the published mix of types and others.
VARIANTS = {
    "small-equal": ("small-equal", {}),
    "small-grouped": ("small-grouped", {"prefix": "model.", "shards": 3}),
    "small-odd": ("small-odd", {"mix": "F32", "prefix": "language_model.model."}),
    "small-flat": ("small-flat", {"mix": "F16", "prefix": "model."}),
    "small-mixed": ("small-equal", {"mix": "mixed", "shards": 2}),
    "layer-linear": ("layer-linear", {}),
    "layer-attention": ("layer-attention", {}),
    "full-0.8b": ("qwen3.5-0.8b", {}),
}


def main():
    parser = argparse.ArgumentParser(description="Write a checkpoint with random weights.")
    parser.add_argument("variant", choices=sorted(VARIANTS))
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    config, layout = VARIANTS[args.variant]
    config = load_config(config)
    write_checkpoint(args.folder, config, seed=args.seed, **layout)
    vocabulary = text_config(config)["vocab_size"]
    if vocabulary < 1000:
        write_tiny_tokenizer(args.folder, vocabulary)


if __name__ == "__main__":
    sys.exit(main())
