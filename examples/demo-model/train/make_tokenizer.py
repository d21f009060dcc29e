"""Trains the byte-level BPE tokenizer on the corpus and writes tokenizer.json and
tokenizer_config.json in the form of the published model (smaller vocabulary)."""

import json
import random
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus
import render

FOLDER = Path(__file__).resolve().parent.parent
BASE = 3000  # ordinary tokens, 256 of them single bytes
SAMPLE = 50_000  # conversations

# The published pre-tokenizer pattern.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The published spellings in their order; True: special. The last seven stand only in tokenizer_config.json.
ADDED = [
    ("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<|object_ref_start|>", True), ("<|object_ref_end|>", True), ("<|box_start|>", True),
    ("<|box_end|>", True), ("<|quad_start|>", True), ("<|quad_end|>", True), ("<|vision_start|>", True), ("<|vision_end|>", True), ("<|vision_pad|>", True),
    ("<|image_pad|>", True), ("<|video_pad|>", True), ("<tool_call>", False), ("</tool_call>", False), ("<|fim_prefix|>", False), ("<|fim_middle|>", False),
    ("<|fim_suffix|>", False), ("<|fim_pad|>", False), ("<|repo_name|>", False), ("<|file_sep|>", False), ("<tool_response>", False), ("</tool_response>", False),
    ("<think>", False), ("</think>", False), ("<|audio_start|>", True), ("<|audio_end|>", True), ("<tts_pad>", True), ("<tts_text_bos>", True),
    ("<tts_text_eod>", True), ("<tts_text_bos_single>", True), ("<|audio_pad|>", True),
]
IN_TOKENIZER_JSON = 26


def texts():
    r = random.Random(77)
    wall = corpus.Wall()
    spellings = [a for a, _ in ADDED]
    for _ in range(SAMPLE):
        t = corpus.draw(r, wall)
        text = "".join(p for p, _ in render.pieces(t.messages, t.tools))
        for s in spellings:
            text = text.replace(s, "\x00")
        yield from (p for p in text.split("\x00") if p)


def main():
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    byte_level = dict(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=BASE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tok.train_from_iterator(texts(), trainer)
    trained = json.loads(tok.to_str())["model"]
    vocab = trained["vocab"]
    assert len(vocab) == BASE and sorted(vocab.values()) == list(range(BASE)), len(vocab)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", **byte_level}
    doc = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": BASE + i, "content": c, **flags, "special": s} for i, (c, s) in enumerate(ADDED[:IN_TOKENIZER_JSON])],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False, "vocab": dict(sorted(vocab.items(), key=lambda kv: kv[1])), "merges": [m if isinstance(m, str) else " ".join(m) for m in trained["merges"]],
        },
    }
    (FOLDER / "tokenizer.json").write_text(json.dumps(doc, ensure_ascii=False, indent=1) + "\n")
    config = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {str(BASE + i): {"content": c, **{k: flags[k] for k in ("lstrip", "normalized", "rstrip", "single_word")}, "special": s} for i, (c, s) in enumerate(ADDED)},
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 4096,
        "pad_token": "<|endoftext|>",
        "pretokenize_regex": PATTERN,
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    (FOLDER / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n")
    print(len(vocab), "tokens,", len(doc["model"]["merges"]), "merges")


if __name__ == "__main__":
    main()
