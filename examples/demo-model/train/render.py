"""Conversations as text in the turn format, cut into pieces with a loss weight.

The chat template is what counts; `python render.py` checks that the pieces put
together are exactly what the template renders.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent

ANSWER, GIVEN = 1, 0  # whether a piece is to be learned or only read


def write_call(call):
    f = call["function"]
    args = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in f["arguments"].items())
    return f"<tool_call>\n<function={f['name']}>\n{args}</function>\n</tool_call>"


def pieces(messages, tools=None):
    """[(text, kind)]; the texts joined are the rendered conversation."""
    out = []
    first = messages[0]
    if tools:
        text = "<|im_start|>system\n# Tools\n\n<tools>" + "".join("\n" + json.dumps(t, ensure_ascii=False) for t in tools)
        text += "\n</tools>\n\nCall a tool like this:\n<tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>"
        if first["role"] == "system":
            text += "\n\n" + first["content"]
        out.append((text + "<|im_end|>\n", GIVEN))
    elif first["role"] == "system":
        out.append((f"<|im_start|>system\n{first['content']}<|im_end|>\n", GIVEN))
    question = max(i for i, m in enumerate(messages) if m["role"] == "user")
    for i, m in enumerate(messages):
        if m["role"] == "user":
            out.append((f"<|im_start|>user\n{m['content']}<|im_end|>\n", GIVEN))
        elif m["role"] == "tool":
            out.append((f"<|im_start|>user\n<tool_response>\n{m['content']}\n</tool_response><|im_end|>\n", GIVEN))
        elif m["role"] == "assistant":
            text = m["content"] + "".join(write_call(c) for c in m.get("tool_calls", []))
            if i > question:
                if "reasoning_content" in m:
                    out.append(("<|im_start|>assistant\n<think>\n", GIVEN))
                    text = m["reasoning_content"] + "\n</think>\n\n" + text
                else:
                    out.append(("<|im_start|>assistant\n<think>\n\n</think>\n\n", GIVEN))
            else:
                out.append(("<|im_start|>assistant\n", GIVEN))
            out.append((text + "<|im_end|>", ANSWER))
            out.append(("\n", GIVEN))
    return out


def main():
    import random

    from jinja2 import nodes  # noqa: F401  (fails early where jinja2 is missing)
    from transformers.utils.chat_template_utils import render_jinja_template

    import corpus

    template = (FOLDER / "chat_template.jinja").read_text()
    r = random.Random(5)
    for i in range(400):
        t = corpus.draw(r)
        want = render_jinja_template([t.messages], tools=t.tools, chat_template=template)[0][0]
        got = "".join(p for p, _ in pieces(t.messages, t.tools))
        assert got == want, (got, want)
    print("400 conversations: pieces equal the template")


if __name__ == "__main__":
    main()
