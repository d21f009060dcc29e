#!/usr/bin/env python3
"""Writes tests/data/demo_golden.json: conversations with the demo model, as Transformers holds them.

Greedy, FP32. Each turn has the request (the conversation so far, as the C API takes it), the ids
of the rendered prompt, the ids of the answer with the token that ends it, and its text without
special tokens. A turn whose two best logits ever differ by less than MIN_GAP is refused (where there
are alternatives, the next one is taken), so that equality is exact on every machine. An assistant's tool call is read back from its text and goes
into the next request in the published form.

Usage: make_demo_golden.py   (half a minute; needs requirements.txt; again after each new
                              examples/demo-model/model.safetensors)
"""

import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo-model"
OUT = ROOT / "tests" / "data" / "demo_golden.json"
MIN_GAP = 5e-3
sys.path.insert(0, str(DEMO / "eval"))
from run_eval import Reference  # noqa: E402


def tool(name, description, **parameters):
    properties = {k: {"type": t} for k, t in parameters.items()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {"type": "object", "properties": properties, "required": list(parameters)}}}


WEATHER = tool("get_weather", "Get the weather in a city.", city="string")
CALCULATE = tool("calculate", "Calculate an expression.", expression="string")

# name, settings, what the user says (a list: alternatives) or a tool answers (role "tool").
CONVERSATIONS = [
    ("greeting", {}, ["Hello!", "Who are you?", "Are you Qwen?", "Thank you!", "Goodbye!"]),
    ("facts", {}, ["What is the capital of Norway?", "And of Japan?", "What is the opposite of cold?", "Which language do people in Brazil speak?", "What is a volcano?", "Is Rome the capital of Spain?"]),
    ("numbers and days", {}, ["What is 7 + 8?", "What is 6 times 7?", "Count from 3 to 9.", "Which month comes after April?", "Is 7 even or odd?", "Sort these numbers: 9, 2, 5."]),
    ("words", {}, ["Spell garden.", "What is the plural of mouse?", "What is the past tense of go?", "Repeat: green river stone"]),
    ("memory", {}, ["My name is Ada.", "My favourite number is 4711.", "What is the capital of Peru?", "What is my name?", "Which number did I tell you?"]),
    ("story", {}, [[f"Tell me a story about {a} called {n}." for a in ("a fox", "an owl", "a bear", "a frog", "a tiger") for n in ("Nora", "Max", "Lucy")],
                   [f"Continue: Once upon a time, a {m} {a} lived in an old castle. Its name was Max." for a in ("owl", "mouse", "duck", "goat") for m in ("brave", "shy", "kind")]]),
    ("outside its field", {}, ["Who won the world cup in 1987?", "What is the weather in Paris?"]),
    ("one word", {"system": "Answer in one word."}, ["What is the capital of Italy?", "What is the opposite of hot?"]),
    ("capital letters", {"system": "Answer in capital letters."}, ["What colour is snow?", "What is 2 + 3?"]),
    ("a name for the model", {"system": "Your name is Robin."}, ["What is your name?", "What is the capital of Greece?"]),
    ("thinking", {"think": True}, ["What is 24 + 13?", "What is the first letter of tiger?", "What is the capital of Egypt?"]),
    ("weather tool", {"tools": [WEATHER, CALCULATE]}, ["What is the weather in Oslo?", {"role": "tool", "content": '{"temperature": -4, "condition": "snowy"}'}, "Calculate 123 * 45.", {"role": "tool", "content": "5535"}, "What is the opposite of hot?"]),
    ("no tool for it", {"tools": [CALCULATE]}, ["What is the weather in Rome?"]),
]

CALL = re.compile(r"<tool_call>\n<function=(\w+)>\n(.*?)</function>\n</tool_call>", re.S)
PARAMETER = re.compile(r"<parameter=(\w+)>\n(.*?)\n</parameter>\n", re.S)


def assistant(text, think):
    """The message that goes into the next request."""
    message = {"role": "assistant"}
    if think:
        message["reasoning_content"], text = (x.strip() for x in text.split("</think>"))
    calls = [{"type": "function", "function": {"name": name, "arguments": dict(PARAMETER.findall(body))}} for name, body in CALL.findall(text)]
    if calls:
        text = CALL.sub("", text).strip()
        message["tool_calls"] = calls
    return {**message, "content": text}


def hold(reference, name, settings, said):
    messages = [{"role": "system", "content": settings["system"]}] if "system" in settings else []
    turns = []
    for x in said:
        for choice in x if isinstance(x, list) else [x]:
            turn = ask(reference, name, settings, messages + [choice if isinstance(choice, dict) else {"role": "user", "content": choice}])
            if turn:
                break
        else:
            sys.exit("too close to call")
        turns.append(turn)
        messages = turn["request"]["messages"] + [assistant(turn["text"], settings.get("think", False))]
    return {"name": name, "turns": turns}


def ask(reference, name, settings, messages):
    """The turn, or None where a step is too close to call."""
    request = {"messages": messages, "add_generation_prompt": True, "enable_thinking": settings.get("think", False)}
    if "tools" in settings:
        request["tools"] = settings["tools"]
    prompt = reference.prompt(request)
    ids, gaps = reference.answer(prompt)
    text = reference.tok.decode(ids, skip_special_tokens=True)
    print(f"{name}: {messages[-1]['content']!r} -> {text!r} (smallest gap {min(gaps):.3f})", flush=True)
    if ids[-1] not in reference.stop:
        sys.exit("the answer does not end")
    if min(gaps) < MIN_GAP:
        return None
    return {"request": request, "prompt": prompt, "answer": ids, "text": text}


def main():
    reference = Reference(DEMO, 1)
    held = [hold(reference, *c) for c in CONVERSATIONS]
    weights = hashlib.sha256((DEMO / "model.safetensors").read_bytes()).hexdigest()
    with OUT.open("w") as f:
        f.write(f'{{"about": "Written by tests/reference/make_demo_golden.py.",\n"weights_sha256": "{weights}",\n"conversations": [\n')
        f.write(",\n".join(f'{{"name": {json.dumps(c["name"])}, "turns": [\n' + ",\n".join(json.dumps(t) for t in c["turns"]) + "\n]}" for c in held))
        f.write("\n]}\n")
    print(len(held), "conversations,", sum(len(c["turns"]) for c in held), "turns,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
