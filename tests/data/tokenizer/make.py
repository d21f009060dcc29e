#!/usr/bin/env python3
"""Make the tokenizer test data with Hugging Face `tokenizers` 0.23.3, the reference.

  make.py small          (re)write small/: a little tokenizer of the same kind as Qwen3.5's,
                         trained here, and the reference ids of many texts
  make.py real DIR       (re)write real_vectors.json: reference ids under the real vocabulary, whose
                         tokenizer.json and tokenizer_config.json are in DIR
  make.py fuzz DIR OUT [COUNT SEED]
                         write reference ids of COUNT random texts under the vocabulary in DIR,
                         and of every string of that vocabulary, to OUT (not to be committed)

A vectors file is a list of [text, ids with added tokens honoured, ids with added tokens as text].
"""
import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = QWEN35.replace(r"[\p{L}\p{M}]+", r"\p{L}+").replace(r"\p{L}\p{M}\p{N}]+", r"\p{L}\p{N}]+")
SMALL_TOKENS = 2600

SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\u00a0", "\u0085", "\u2028", "\u2029",
          "\u3000", "\u2009", "\u200b", "\u180e", "\ufeff", "\x0b", "\x0c", "\x1c", "\x1f", "\u1680"]
MARKS = [chr(c) for c in [*range(0x300, 0x370), *range(0x591, 0x5C8), *range(0x64B, 0x660),
                          *range(0x93C, 0x950), 0x9BE, 0x9D7, 0xE31, 0xE34, 0xE38, 0xE48, 0x3099,
                          0x309A, 0x20D0, 0x1DC0, 0xFE0F, 0x200D, 0x1D165, 0x1D16E, 0x94D, 0xBC0]]
JAMO = [chr(c) for c in [*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A7, 0x11C3)]]
JAMO += ["가", "각", "힣", "한", "\uac00", "\uac1c"]
APOSTROPHES = ["'s", "'S", "'t", "'re", "'RE", "'rE", "'ve", "'m", "'ll", "'LL", "'lL", "'d", "'\u017f",
               "'\u017fs", "\u2019s", "'x", "''", "'r", "'l", "'v", "I'm", "'K", "'\u212a", "'"]
DIGITS = ["0", "1", "9", "2024", "١", "٢", "३", "½", "Ⅷ", "²", "𝟘", "᠑", "〇", "一", "①", "๑"]
WORDS = ["hello", " the", "World", "Straße", "наука", " привет", "日本語", "漢字", "한국어", "हिन्दी", " में",
         "ภาษาไทย", "العربية", "שָׁלוֹם", "tiếng", " Việt", "naïve", "re\u0301sume\u0301", "fn main()", "self.x",
         "->", "==", "!=", "({[", "});", "//", "/*", "*/", "#include <", "std::", "é", "Å", "\u212b",
         "\u2126", "ﬁ", "ǆ", "𠮷", "👩‍👩‍👧‍👦", "🇯🇵", "﷽", "🤷🏽‍♂️", "\u0958", "\u09dc", "\u0344", "\u1e9b\u0323",
         "\uf900", "\U0001d15e", "\ufb1d", "antidisestablishmentarianism", " getElementById"]
CONTROLS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "<|endoftext|>",
            "<|im_", "end|>", "<", "<|", "<|fim_prefix|>", "</tool_response>", "<tts_pad>"]
PUNCTUATION = [*"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~…—“”。，！¿€™\0\x7f\x01"]
POOLS = [SPACES, MARKS, JAMO, APOSTROPHES, DIGITS, WORDS, PUNCTUATION]

# The texts of the known traps (wrong in some engine or other), and of ours.
CASES = [
    "", " ", "\n", "The capital of France is", "x->y (x):\r\n\r\n    if 1234567==0x1F{}", "\r", "a\r\nb",
    "  \n  x", "end   ", "I'LL we'Re", "١٢٣ ½ Ⅷ", "…!!!\n\n", "'ſ", "'ſs", "it'ſx", "a\u2028b\u0085c\u00a0d",
    "हिन्दी में लिखो", "ภาษาไทยน่ารักที่สุด", "مَرْحَبًا بِكُمْ", "שָׁלוֹם", "x̱ y̌1̈", "क्‍ष", "\u0301",
    "a" + "\u0301" * 200, "a\u0301\u0323" * 3, "Cafe\u0301", "\u1100\u1161\u11a8", "\u212b", "q\u0307\u0323",
    "\uf900", "\u1e9b\u0323", "\u0958", "<|im_start|>e\u0301", "<|im_end|>\u0301", "<|im_start|>\u0301x",
    "ok<|im_end|>\n<|im_start|>system\nobey<|im_end|>", "<think>x</think>", "<tool_call>\n</tool_call>",
    "<|endoftext|><|endoftext|>", "<|vision_start|>", "<|im_", "end|>", "<|im_<|im_end|>", "<|im_start|",
    " a ,b", ": ' x", "    .", " don 't", " leading", "\t\n ", "ab\0cd", "\0", "\0\0\0", "a\0", "abcdefg\0",
    "👩‍👩‍👧‍👦🇯🇵 똻 歪 𠮷 ﷽ é", "\t\tif x:\n\t\t\treturn\n", "word" * 40, " " * 300 + "x", "\n" * 300, "-" * 300,
    "ab" * 400, "中" * 200, "ก\u0e34" * 150, '[{"k":1},' * 60, "_" * 257, "a" * 4096, "=" * 65, "=" * 64,
    "aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0" * 30, "A" * 63, "lower" * 13, "\u00e9" * 40, "x" * 16, "y" * 17,
    "Hello, world! It's 12:30 -- isn't it? (No.)\n", "fn f(a: &[u8]) -> Option<usize> { a.len() }\n",
]


def scalar(rng):
    while True:
        top = rng.choices([0x80, 0x800, 0x3000, 0x10000, 0x110000], [4, 4, 4, 5, 3])[0]
        c = rng.randrange(top)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def random_text(rng):
    count = rng.choice([1, 2, 3, 5, 8, 13, 21, 40])
    kind = rng.random()
    pools = [rng.choice(POOLS) for _ in range(rng.choice([1, 2, 3, 4]))]
    pick = {
        0: lambda: rng.choice(rng.choice(pools)),
        1: lambda: scalar(rng),
        2: lambda: rng.choice(rng.choice(POOLS)) if rng.random() < 0.6 else scalar(rng),
        3: lambda: rng.choice("abcdefghijklmnopqrstuvwxyz" * 3 + "ABCXYZ "),
        4: lambda: rng.choice(CONTROLS if rng.random() < 0.4 else rng.choice(POOLS)),
    }[sum(kind >= limit for limit in (0.45, 0.65, 0.8, 0.9))]
    text = "".join(pick() for _ in range(count))
    return text * rng.choice([2, 5, 30]) if rng.random() < 0.05 else text


def load(directory):
    """The tokenizer as Transformers has it: with the added tokens of both files, and without."""
    with open(os.path.join(directory, "tokenizer.json"), encoding="utf-8") as f:
        document = json.load(f)
    plain = Tokenizer.from_str(json.dumps({**document, "added_tokens": []}))
    full = Tokenizer.from_str(json.dumps(document))
    with open(os.path.join(directory, "tokenizer_config.json"), encoding="utf-8") as f:
        listed = json.load(f)["added_tokens_decoder"]
    for key, token in sorted(listed.items(), key=lambda item: int(item[0])):
        if full.token_to_id(token["content"]) is None:
            full.add_tokens([AddedToken(**token)])
        assert full.token_to_id(token["content"]) == int(key), key
    return full, plain


def vectors(directory, texts):
    full, plain = load(directory)
    encode = lambda t: [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
    return [list(v) for v in zip(texts, encode(full), encode(plain))]


def write(path, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows)
                + "\n]\n")
    print(path, len(rows), "rows", os.path.getsize(path), "bytes")


def train_small():
    rng = random.Random(35)
    corpus = [random_text(rng) for _ in range(3000)] + CASES
    for name in ("make.py", "../../../scripts/unicode_tables.py"):
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            corpus += f.read().splitlines(keepends=True) * 3
    byte_level = lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN35), "isolated"), byte_level()])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=SMALL_TOKENS, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    document = json.loads(t.to_str())
    # Merges as strings, as in the published file; added tokens in two files, with a gap.
    document["model"]["merges"] = [" ".join(m) for m in document["model"]["merges"]]
    fields = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    tokens = [dict(id=SMALL_TOKENS + i, content=c, **fields, special=c.startswith("<|"))
              for i, c in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>",
                                     "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<tts_pad>"])]
    document["added_tokens"] = tokens[:-1]
    config = {"added_tokens_decoder": {str(t.pop("id")): t for t in json.loads(json.dumps(tokens))},
              "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
              "tokenizer_class": "Qwen2Tokenizer"}
    os.makedirs(os.path.join(HERE, "small"), exist_ok=True)
    for name, content in (("tokenizer.json", document), ("tokenizer_config.json", config)):
        with open(os.path.join(HERE, "small", name), "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False, indent=0)
    return document, config


def small():
    document, config = train_small()
    rng = random.Random(1)
    texts = CASES + [random_text(rng) for _ in range(900)]
    write(os.path.join(HERE, "small", "vectors.json"), vectors(os.path.join(HERE, "small"), texts))
    # The same tokenizer with the older pattern, which the test puts in place itself.
    import tempfile
    with tempfile.TemporaryDirectory() as d:
        document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = QWEN2
        for name, content in (("tokenizer.json", document), ("tokenizer_config.json", config)):
            with open(os.path.join(d, name), "w", encoding="utf-8") as f:
                json.dump(content, f)
        marked = [t for t in texts if any(m in t for m in MARKS)][:250]
        write(os.path.join(HERE, "small", "vectors_qwen2.json"), vectors(d, marked))


def fuzz(directory, out, count, seed):
    rng = random.Random(seed)
    full, _ = load(directory)
    alphabet = {}  # byte-level spelling -> byte
    extra = 256
    for b in range(256):
        printable = 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b
        alphabet[chr(b) if printable else chr(extra)] = b
        extra += not printable
    texts = CASES + [random_text(rng) for _ in range(count)]
    for token in full.get_vocab(with_added_tokens=False):
        try:
            texts.append(bytes(alphabet[c] for c in token).decode("utf-8"))
        except UnicodeDecodeError:
            pass  # a part of a character
    write(out, vectors(directory, texts))


def main():
    match sys.argv[1:]:
        case ["small"]:
            small()
        case ["real", directory]:
            rng = random.Random(2)
            texts = CASES + [random_text(rng) for _ in range(200)]
            write(os.path.join(HERE, "real_vectors.json"), vectors(directory, texts))
        case ["fuzz", directory, out, *rest]:
            fuzz(directory, out, *(int(r) for r in (rest + ["6000", "1"][len(rest):])))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
