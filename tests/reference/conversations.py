"""Random conversations in the OpenAI form, to render with a chat template."""

import random

WORDS = (
    "the a rain in Spain falls mainly on plain Straße naïve 東京 天気 ¿qué? Привет 😀 👩‍🔬 e\u0301 x=1 <b>bold</b> "
    "&amp; \"quoted\" 'single' \\n back\\slash tab\there {braces} {{ double }} {% tag %} 3.14 -7 null True"
).split(" ")
SPACES = ["", " ", "\n", "\n\n", "\t", "  \r\n", "\u00a0", "\u3000", "\x1c"]
# Spellings that the published template never looks for in what a caller wrote.
INERT = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>", "<|image_pad|>", "<|fim_prefix|>", "<tts_pad>"]
# Spellings that steer it.
STEERING = ["<think>", "</think>", "<tool_response>", "</tool_response>", "<tool_call>", "</tool_call>"]
VALUES = [
    0, 1, -7, 2**53, 2**63 - 1, 0.5, 1e-5, 1e16, -0.0, 123456789.125, True, False, None, "", "text", "a\nb", "<b>&'\"", "é",
    [], {}, [1, "two", None], {"k": [True, {"deep": 1.5}]}, "\u2028", "\x7f", "\x01",
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather for a <place> & \"time\"",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "größe", "description": "Ünïcödé 漢字\n\ttabs", "parameters": {"z": 1, "a": [1.0, 1e-7]}}},
]


class Maker:
    def __init__(self, seed):
        self.source = random.Random(seed)

    def chance(self, probability):
        return self.source.random() < probability

    def text(self, spellings=()):
        parts = [self.source.choice(SPACES)]
        for _ in range(self.source.randint(0, 8)):
            parts.append(self.source.choice(WORDS))
            parts.append(self.source.choice([" ", " ", " ", "\n"]))
            if spellings and self.chance(0.15):
                parts.append(self.source.choice(spellings))
        return "".join(parts) + self.source.choice(SPACES)

    def content(self, spellings):
        text = self.text(spellings)
        if self.chance(0.12):
            return [{"type": "text", "text": part} for part in (text, self.text(spellings))]
        return text

    def tool_call(self, spellings):
        keys = self.source.sample(["city", "days", "größe", "a b", "x"], self.source.randint(0, 3))
        arguments = {
            key: self.text(spellings) if self.chance(0.3) else self.source.choice(VALUES) for key in keys
        }
        function = {"name": self.source.choice(["get_weather", "noop", "größe"]), "arguments": arguments}
        return {"id": f"call_{self.source.randrange(1000)}", "type": "function", "function": function}

    def assistant(self, spellings):
        message = {"role": "assistant", "content": self.content(spellings)}
        if self.chance(0.3):
            message["reasoning_content"] = self.text(spellings)
        elif self.chance(0.2):
            message["content"] = f"<think>\n{self.text()}</think>{self.text()}"
        if self.chance(0.3):
            message["tool_calls"] = [self.tool_call(spellings) for _ in range(self.source.randint(1, 3))]
            if self.chance(0.4):
                message["content"] = ""
        return message

    def request(self):
        """(request, whether it holds spellings that steer the template)"""
        kind = self.source.choice(["clean", "clean", "inert", "steering"])
        spellings = {"clean": (), "inert": INERT, "steering": STEERING}[kind]
        messages = []
        if self.chance(0.4):
            messages.append({"role": "system", "content": self.content(spellings)})
        for _ in range(self.source.randint(1, 4)):
            messages.append({"role": "user", "content": self.content(spellings)})
            if self.chance(0.8):
                messages.append(self.assistant(spellings))
                for _ in range(len(messages[-1].get("tool_calls", ()))):
                    messages.append({"role": "tool", "content": self.content(spellings)})
                if messages[-1]["role"] == "tool" and self.chance(0.7):
                    messages.append(self.assistant(spellings))
        # Some that the template must refuse.
        if self.chance(0.05):
            messages.insert(self.source.randint(1, len(messages)), {"role": "system", "content": "late"})
        if self.chance(0.03):
            messages.append({"role": "developer", "content": "x"})
        if self.chance(0.03):
            messages = [m for m in messages if m["role"] != "user"] or [{"role": "assistant", "content": "x"}]
        request = {"messages": messages}
        if self.chance(0.35):
            request["tools"] = self.source.sample(TOOLS, self.source.randint(1, len(TOOLS)))
        if self.chance(0.6):
            request["enable_thinking"] = self.chance(0.5)
        if self.chance(0.8):
            request["add_generation_prompt"] = self.chance(0.75)
        return request, kind == "steering" or any("<think>" in str(m.get("content")) for m in messages)
