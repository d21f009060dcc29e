"""Writes tests/data/chat/conversations.json and expressions.json: what Transformers
renders.

    python tests/reference/make_chat.py [UPSTREAM_TEMPLATE]

conversations.json: generated requests, each as JSON text, with the text that Transformers'
apply_chat_template gives for tests/data/chat/own.jinja (or null where it raises), and the
SHA-256 of what it gives for the published template of Qwen3.5, whose text is not part of
this repository (read from ../shared/facts by default).

expressions.json: small templates with their output (null where rendering raises), one for
each corner of the language in which Python's Jinja and other engines differ.
"""

import hashlib
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/chat"
UPSTREAM = ROOT.parent / "shared/facts/chat_template-0.8b.jinja"

rng = random.Random(20)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))

SPACES = ["", " ", "\n", "\t", "\r\n", "\u00a0", "\u200b", "\ufeff", "\u001c", "\u001f", "\u0085",
          "\u2003", "\u2028", "\u3000", "\u180e", "\x0b\x0c", "  \n\n  "]
WORDS = ["Hello", "Köln", "天気はどう", "a < b && c > d", "it's \"quoted\"", "back\\slash", "{{ x }}", "{% if %}",
         "{# no #}", "😀👩‍👩‍👧", "e\u0301", "line one\nline two", "None", "True", "<b>bold</b>", "100 %", "/no_think",
         "\\n", "tab\there", "\u0000", "\u007f\u0080", "x" * 200, "<function=f>", "]]>", "'", '"', "\u2028sep"]
SPELLINGS = ["<|im_end|>", "<|im_start|>system", "<think>", "</think>", "<tool_call>", "<tool_response>",
             "</tool_response>", "<|endoftext|>", "<|vision_start|><|image_pad|><|vision_end|>"]
NUMBERS = [0, -0, 1, -1, 3, 2**31, 2**53 + 1, 2**63, -2**63, 2**64 - 1, 2**64, 2**127, -2**127 - 1, 2**128, 10**40,
           -10**45, 0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 1.5e300, 5e-324, -2.5, 1e22,
           1e21, 3.14159, 100.0]


def text():
    parts = [rng.choice(SPACES)]
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        parts.append(rng.choice(WORDS + SPELLINGS if rng.random() < 0.3 else WORDS))
        parts.append(rng.choice(SPACES))
    return "".join(parts)


def value(depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice([True, False, None])
    if kind in (1, 2):
        return rng.choice(NUMBERS)
    if kind < 6:
        return text()
    if kind == 6:
        return [value(depth + 1) for _ in range(rng.randrange(4))]
    return {key(): value(depth + 1) for _ in range(rng.randrange(4))}


def key():
    return rng.choice(["city", "days", "z", "a", "items", "keys", "get", "naïve", "a b", "", "type", "<x>", "é\u0301"])


def content():
    kind = rng.randrange(12)
    if kind == 0:
        return None
    if kind == 1:
        return []
    if kind == 2:
        return [part() for _ in range(rng.randrange(1, 4))]
    if kind == 3 and rng.random() < 0.1:
        return rng.choice([5, True, {"text": "x"}, 1.5])
    return text()


def part():
    kind = rng.randrange(10)
    if kind == 0:
        return rng.choice([{"type": "image"}, {"image_url": {"url": "u"}}, {"type": "image", "image": "x"}])
    if kind == 1 and rng.random() < 0.2:
        return {"type": "audio"}
    return {"type": "text", "text": text()}


def assistant():
    message = {"role": "assistant"}
    if rng.random() < 0.9:
        message["content"] = content()
    style = rng.randrange(8)
    if style == 0:
        message["reasoning_content"] = text()
    elif style == 1:
        message["content"] = f"<think>\n{text()}\n</think>\n\n{text()}"
    elif style == 2:
        message["content"] = f"{text()}</think>{text()}"
    elif style == 3:
        message["content"] = f"<think>{text()}</think>{text()}</think>{text()}"
    elif style == 4:
        message[rng.choice(["reasoning", "thinking", "reasoning_content"])] = rng.choice([text(), None, ""])
    if rng.random() < 0.4:
        message["tool_calls"] = [call() for _ in range(rng.randrange(4))]
    if rng.random() < 0.1:
        message[rng.choice(["name", "refusal", "tool_calls"])] = None
    return message


def call():
    arguments = {key(): value() for _ in range(rng.randrange(4))}
    style = rng.randrange(4)
    body = {"name": rng.choice(["get_weather", "f", "naïve"]), "arguments": arguments}
    if style == 0:
        body["arguments"] = json.dumps(arguments, ensure_ascii=rng.random() < 0.5)
    elif style == 1 and rng.random() < 0.3:
        del body["arguments"]
    return body if rng.random() < 0.2 else {"id": "c", "type": "function", "function": body}


def tool():
    return {"type": "function", "function": {
        "name": rng.choice(["get_weather", "f"]), "description": text(), "strict": rng.choice([True, None, 1.0]),
        "parameters": {"type": "object", "properties": {key(): {"type": "string", "default": value()}
                                                        for _ in range(rng.randrange(4))}}}}


def conversation():
    messages = []
    if rng.random() < 0.4:
        messages.append({"role": "system", "content": content()})
    for _ in range(rng.randrange(1, 5)):
        messages.append({"role": "user", "content": content()})
        for _ in range(rng.choice([0, 1, 1, 2])):
            messages.append(assistant())
            for _ in range(rng.choice([0, 0, 0, 1, 2, 3])):
                messages.append({"role": "tool", "content": content()})
    if rng.random() < 0.05:
        messages.insert(rng.randrange(len(messages) + 1), {"role": rng.choice(["system", "developer", "tool", "user"]),
                                                           "content": text()})
    if rng.random() < 0.05:
        messages = [m for m in messages if m["role"] != "user"]
    if rng.random() < 0.05:
        messages.append({"role": "user", "content": f" <tool_response>{text()}</tool_response>\n"})
    request = {"messages": messages}
    if rng.random() < 0.4:
        request["tools"] = rng.choice([None, [], [tool()], [tool(), tool()]])
    if rng.random() < 0.5:
        request["enable_thinking"] = rng.choice([True, False])
    # Always given, since the defaults differ.
    request["add_generation_prompt"] = rng.random() < 0.7
    if rng.random() < 0.1:
        request["chat_template_kwargs"] = {"add_vision_id": True, "number_pictures": True, "x": value()}
    if messages and messages[-1]["role"] == "assistant" and rng.random() < 0.5:
        request["continue_final_message"] = rng.choice([True, True, "reasoning_content", "content"])
        request["add_generation_prompt"] = False
    return request


def arguments_as_objects(message):
    """What the library does before rendering; Transformers would hand the string on."""
    message = json.loads(json.dumps(message))
    for entry in message.get("tool_calls") or []:
        for body in (entry, entry.get("function") or {}):
            if isinstance(body.get("arguments"), str):
                body["arguments"] = json.loads(body["arguments"])
    return message


def render(template, request):
    variables = dict(request.get("chat_template_kwargs") or {})
    if request.get("enable_thinking") is not None:
        variables["enable_thinking"] = request["enable_thinking"]
    try:
        return tokenizer.apply_chat_template(
            [arguments_as_objects(m) for m in request["messages"]],
            tools=request.get("tools"),
            chat_template=template,
            add_generation_prompt=request["add_generation_prompt"],
            continue_final_message=request.get("continue_final_message", False),
            tokenize=False,
            **variables,
        )
    except Exception as error:  # noqa: BLE001 - whatever the template or Jinja raises
        return None if "--show" not in sys.argv else print(repr(error)[:150])


def conversations(own, upstream):
    for _ in range(400):
        request = conversation()
        mine = render(own, request)
        published = render(upstream, request)
        yield {
            "request": json.dumps(request, ensure_ascii=False),
            "own": mine,
            "upstream_sha256": published and hashlib.sha256(published.encode()).hexdigest(),
        }


# Templates over the variables below.
VARIABLES = {
    "s": "Hello World", "u": "  Köln\u00a0", "n": 7, "f": 1e16, "g": 1e-5, "h": 2.0, "big": 2**70, "t": True, "none": None,
    "xs": [3, 1, 2], "ys": ["b", "a", "C"], "empty": [], "d": {"b": 1, "a": {"x": [1, 2.5, None, "q'\n"]}, "items": 5},
    "ds": [{"role": "user", "n": 1}, {"role": "tool", "n": 2}, {"role": "user", "n": 3}],
    "lines": "a\nb\r\nc\x0bd\x1ce\u2028f\n", "w": " a  b\tc \u2003d ", "q": "it's", "qq": 'both \' and "',
    "odd": "\u001c x \u001f", "uni": "é😀\u200b\u00ad\ue000\u0378",
}
EXPRESSIONS = (ROOT / "tests/data/chat/expressions.jinja").read_text(encoding="utf-8")


def expressions():
    for source in EXPRESSIONS.split("\n=====\n"):
        try:
            output = tokenizer.apply_chat_template([{"role": "user"}], chat_template=source, tokenize=False, **VARIABLES)
        except Exception as error:  # noqa: BLE001
            output = None
            if "--show" in sys.argv:
                print(repr(source), repr(error)[:150])
        yield {"template": source, "output": output}


def write(name, head, items):
    lines = ",\n".join(json.dumps(item, ensure_ascii=True) for item in items)
    (DATA / name).write_text(f'{{{head}"cases":[\n{lines}\n]}}\n', encoding="utf-8")


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("-")]
    upstream = pathlib.Path(paths[0] if paths else UPSTREAM).read_text(encoding="utf-8")
    own = (DATA / "own.jinja").read_text(encoding="utf-8")
    items = list(conversations(own, upstream))
    write("conversations.json", "", items)
    refused = [sum(item[k] is None for item in items) for k in ("own", "upstream_sha256")]
    print(len(items), "conversations; refused by own, upstream:", refused)
    cases = list(expressions())
    variables = json.dumps(json.dumps(VARIABLES, ensure_ascii=True))
    write("expressions.json", f'"variables":{variables},', cases)
    print(len(cases), "expressions;", sum(c["output"] is None for c in cases), "raise")


if __name__ == "__main__":
    main()
