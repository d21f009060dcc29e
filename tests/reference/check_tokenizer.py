"""The real vocabulary: committed vectors and random text against Hugging Face `tokenizers`."""

import json
import os
import random

from tokenizers import AddedToken, Tokenizer

import engine
import tokenizer_files
from engine import Failure

FOLDER = os.path.join(engine.CACHE, "tokenizer")
STRINGS = 8000


def folder():
    """The tokenizer's folder, written on first use."""
    if not os.path.exists(os.path.join(FOLDER, "tokenizer_config.json")):
        tokenizer_files.write(FOLDER)
    return FOLDER


def reference(honour=True):
    """The Hugging Face tokenizer, with all 33 added tokens or with none."""
    with open(os.path.join(folder(), "tokenizer.json"), encoding="utf-8") as f:
        data = json.load(f)
    if not honour:
        data["added_tokens"] = []
    made = Tokenizer.from_str(json.dumps(data))
    if honour:
        for token in tokenizer_files.added_tokens()[tokenizer_files.IN_TOKENIZER_JSON :]:
            added = AddedToken(token["content"], normalized=False, special=token["special"])
            made.add_special_tokens([added]) if token["special"] else made.add_tokens([added])
    return made


ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789\u0660\u0967\u00bd\u2460\uff11",
    " \t\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u2003\u2028\u2029\u3000\ufeff\u200b\u200d",
    "'\u2019.,;:!?-_()[]{}<>|/\\@#$%^&*+=~`\"",
    "áéíóúñçßøœſİıǆ\u212a",
    "\u0301\u0308\u0327\u0345\u05b0\u064b\u093f\u0bbf\u0e31\u20dd\u3099",
    "日本語中文漢字かなカナ한국어각ㄱ\u1100\u1161\u11a8",
    "привет мир ελληνικά עברית العربية हिन्दी தமிழ் ไทย",
    "😀👍🏽👨‍👩‍👧🇩🇪🏳️‍🌈\U0001f1e6\ufe0f\u20e3",
    "𝔘𝕟𝓲𝒸𐍈𠜎𐐷\U000e0041\U0010ffff",
]
PIECES = [
    "'s", "'S", "'ll", "'LL", "'re", "'\u017f", "don't", "  ", "\n\n", "\r\n", "    return x\n", "http://a.b/c?d=e",
    "def f(x):\n\t", "e\u0301", "\u1e9b\u0323", "\ufb01", "\u2126", "ﷺ", "{\"a\": [1, 2]}", "1234567890", "\u0000",
]


def random_string(source, spellings):
    parts = []
    for _ in range(source.randint(1, source.choice([2, 6, 24]))):
        kind = source.random()
        if kind < 0.12:
            parts.append(source.choice(PIECES))
        elif kind < 0.20 and spellings:
            token = source.choice(spellings)
            parts.append(token if source.random() < 0.8 else token[: source.randint(1, len(token))])
        elif kind < 0.26:
            # Any code point but surrogates, which no UTF-8 text holds.
            point = source.choice([source.randrange(0xD800), source.randrange(0xE000, 0x110000)])
            parts.append(chr(point))
        else:
            letters = source.choice(ALPHABETS)
            parts.append("".join(source.choice(letters) for _ in range(source.randint(1, 12))))
    return "".join(parts)


def compare(texts, found, expected):
    wrong = [i for i, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b]
    if wrong:
        i = wrong[0]
        raise Failure(f"{len(wrong)} of {len(texts)} differ; {texts[i]!r} gives {found[i]}, expected {expected[i]}")
    return f"{len(texts)} equal"


def run(report, jobs):
    path = folder()
    with open(os.path.join(engine.DATA, "tokenizer_vectors.json"), encoding="utf-8") as f:
        vectors = json.load(f)
    texts, expected = [v["text"] for v in vectors], [v["ids"] for v in vectors]
    honouring, plain = reference(), reference(honour=False)
    spellings = [token["content"] for token in tokenizer_files.added_tokens()]

    def through_host():
        found = [engine.tokenize(path, text, "--special") for text in texts]
        return compare(texts, found, expected)

    report.check("tokenizer: vectors through qwen-tokenize --special", through_host)

    def vectors_still_hold():
        return compare(texts, [honouring.encode(text).ids for text in texts], expected)

    report.check("tokenizer: vectors in `tokenizers`", vectors_still_hold)

    source = random.Random(35)
    strings = [random_string(source, spellings) for _ in range(STRINGS)]
    job = {"kind": "encode", "model": path, "tokenizer_only": True}
    for special, other in ((True, honouring), (False, plain)):
        word = "honoured" if special else "as text"

        def fuzz(special=special, other=other):
            found = jobs.run_one(job | {"special": special, "texts": strings})
            encoded = other.encode_batch(strings, add_special_tokens=False)
            return compare(strings, found, [e.ids for e in encoded])

        report.check(f"tokenizer: random text, added tokens {word}", fuzz)

    def default_is_plain():
        texts = [f"a{spelling}b" for spelling in spellings[:8]]
        found = [engine.tokenize(path, text) for text in texts]
        return compare(texts, found, [plain.encode(text).ids for text in texts])

    report.check("tokenizer: qwen-tokenize takes added tokens for text by default", default_is_plain)

    def whole_vocabulary():
        count = tokenizer_files.BASE_TOKENS + len(spellings)
        lists = [[i] for i in range(count)]
        lists += [[source.randrange(count) for _ in range(source.randint(2, 40))] for _ in range(2000)]
        for skip in (False, True):
            found = jobs.run_one(
                {"kind": "decode", "model": path, "tokenizer_only": True, "skip_special": skip, "lists": lists}
            )
            expected = honouring.decode_batch(lists, skip_special_tokens=skip)
            compare(lists, [f["whole"] for f in found], expected)
            compare(lists, [f["streamed"] for f in found], expected)
        return f"{count} tokens and {len(lists) - count} sequences, whole and streamed"

    report.check("tokenizer: decoding", whole_vocabulary)

    def host_decodes():
        ids = honouring.encode("Grüße, 世界 <think>x</think>\n").ids
        found = engine.host("qwen-tokenize", path, "--decode", stdin=" ".join(map(str, ids)).encode()).decode()
        text = honouring.decode(ids, skip_special_tokens=False)
        if found.rstrip("\n") != text.rstrip("\n"):
            raise Failure(f"{found!r}, expected {text!r}")

    report.check("tokenizer: qwen-tokenize --decode", host_decodes)
