"""The published chat template: committed vectors and random conversations against Transformers."""

import hashlib
import json
import os
import re
import shutil

from transformers import PreTrainedTokenizerFast

import check_tokenizer
import engine
import tokenizer_files
from conversations import INERT, Maker
from engine import Failure

CONVERSATIONS = 600


def template_path():
    """The published template, which is not part of this repository, or None."""
    candidates = [
        os.environ.get("QWEN35_CHAT_TEMPLATE"),
        os.path.join(engine.ROOT, "..", "shared", "facts", "chat_template-0.8b.jinja"),
        os.path.join(engine.ROOT, "model", "chat_template.jinja"),
    ]
    return next((path for path in candidates if path and os.path.isfile(path)), None)


WHY_NOT = (
    "the published chat_template.jinja is not here (looked at QWEN35_CHAT_TEMPLATE, ../shared/facts and model/)"
)


def folder(template):
    """A folder with the real tokenizer and the template, but no weights."""
    path = os.path.join(engine.CACHE, "chat")
    os.makedirs(path, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(os.path.join(check_tokenizer.folder(), name), os.path.join(path, name))
    shutil.copyfile(template, os.path.join(path, "chat_template.jinja"))
    return path


class Reference:
    """Transformers' rendering, and what its text is as ids in both encodings."""

    def __init__(self, template):
        with open(template, encoding="utf-8") as f:
            text = f.read()
        self.honouring, self.plain = check_tokenizer.reference(), check_tokenizer.reference(honour=False)
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=self.honouring, chat_template=text)
        spellings = [token["content"] for token in tokenizer_files.added_tokens()]
        self.ids = {spelling: tokenizer_files.BASE_TOKENS + i for i, spelling in enumerate(spellings)}
        self.control = re.compile("(" + "|".join(map(re.escape, spellings)) + ")")

    def render(self, request):
        options = {"add_generation_prompt": request.get("add_generation_prompt", True)}
        if "enable_thinking" in request:
            options["enable_thinking"] = request["enable_thinking"]
        return self.tokenizer.apply_chat_template(
            request["messages"], tools=request.get("tools"), tokenize=False, **options
        )

    def special(self, text):
        return self.honouring.encode(text, add_special_tokens=False).ids

    def safe(self, request):
        """Ids where only the template's own spellings are control tokens: each spelling in a
        caller's string is rendered as a private character and put back as text afterwards."""
        private = {spelling: chr(0xF0000 + i) for i, spelling in enumerate(INERT)}

        def hide(value):
            if isinstance(value, str):
                for spelling, character in private.items():
                    value = value.replace(spelling, character)
                return value
            if isinstance(value, list):
                return [hide(item) for item in value]
            if isinstance(value, dict):
                return {key: hide(item) for key, item in value.items()}
            return value

        out = []
        for i, part in enumerate(self.control.split(self.render(hide(request)))):
            if i % 2 == 1:
                out.append(self.ids[part])
                continue
            for spelling, character in private.items():
                part = part.replace(character, spelling)
            out += self.plain.encode(part, add_special_tokens=False).ids
        return out


def vector_requests():
    with open(os.path.join(engine.DATA, "chat_vectors.json"), encoding="utf-8") as f:
        data = json.load(f)
    for vector in data["vectors"]:
        request = {"messages": vector["messages"], "add_generation_prompt": vector["add_generation_prompt"]}
        if vector["tools"]:
            request["tools"] = [data["tool"]]
        if vector["enable_thinking"] is not None:
            request["enable_thinking"] = vector["enable_thinking"]
        yield vector, request


def run(report, jobs):
    names = [
        "chat: vectors through qwen-tokenize --chat --special",
        "chat: vectors in Transformers and in the library",
        f"chat: {CONVERSATIONS} random conversations, text and ids as Transformers",
        "chat: the same, with callers' spellings as text",
        "chat: random conversations through qwen-tokenize --chat",
    ]
    template = template_path()
    if template is None:
        for name in names:
            report.skip(name, WHY_NOT)
        return
    path, reference = folder(template), Reference(template)
    vectors = list(vector_requests())

    def through_host():
        found, expected = [], []
        for vector, request in vectors:
            found.append(engine.tokenize(path, json.dumps(request), "--chat", "--special"))
            expected.append(vector["ids"])
        return check_tokenizer.compare([v["case"] for v, _ in vectors], found, expected)

    report.check(names[0], through_host)
    job = {"kind": "chat", "model": path, "tokenizer_only": True}

    def vectors_hold():
        found = jobs.run_one(job | {"requests": [request for _, request in vectors]})
        for (vector, request), result in zip(vectors, found, strict=True):
            if "error" in result:
                raise Failure(f"{vector['case']}: {result['error']}")
            for text in (result["text"], reference.render(request)):
                if hashlib.sha256(text.encode()).hexdigest() != vector["sha256"]:
                    raise Failure(f"{vector['case']}: {text!r} has another SHA-256")
            if result["special"] != vector["ids"] or reference.special(text) != vector["ids"]:
                raise Failure(f"{vector['case']}: other ids")
        return f"{len(vectors)} equal"

    report.check(names[1], vectors_hold)

    maker = Maker(2026)
    made = [maker.request() for _ in range(CONVERSATIONS)]
    requests = [request for request, _ in made]
    expected = []
    for request in requests:
        try:
            expected.append(reference.render(request))
        except Exception as error:  # The template raises; jinja2 and Transformers have many classes.
            expected.append(error)
    found = []

    def random_text():
        # Arguments arrive as an object or, as OpenAI sends them, as a string of JSON.
        sent = json.loads(json.dumps(requests))
        for i, request in enumerate(sent):
            for message in request["messages"]:
                for call in message.get("tool_calls", ()):
                    if i % 3 == 0:
                        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
        found.extend(jobs.run_one(job | {"requests": sent}))
        refused = 0
        for request, text, result in zip(requests, expected, found, strict=True):
            if isinstance(text, Exception):
                refused += 1
                if "error" not in result:
                    raise Failure(f"Transformers refuses ({text}), the library renders {request}")
            elif "error" in result:
                raise Failure(f"{result['error']} for {request}")
            elif result["text"] != text:
                raise Failure(f"{request} gives {result['text']!r}, expected {text!r}")
            elif result["special"] != reference.special(text):
                raise Failure(f"{request}: other ids")
        return f"{len(requests) - refused} equal, {refused} refused by both"

    report.check(names[2], random_text)

    def random_safe():
        exact = 0
        for (request, steering), text, result in zip(made, expected, found, strict=True):
            if isinstance(text, Exception):
                continue
            if not steering:
                exact += 1
                if result["safe"] != reference.safe(request):
                    raise Failure(f"{request}: other ids")
                continue
            # Where callers' spellings steer the template, hiding them would change its choices;
            # the text must still be all there, under no more control tokens than Transformers has.
            whole = reference.honouring.decode(result["safe"], skip_special_tokens=False)
            normal = reference.honouring.decode(reference.special(text), skip_special_tokens=False)
            controls = [i for i in result["safe"] if i >= tokenizer_files.BASE_TOKENS]
            if whole != normal or len(controls) > len(reference.control.findall(text)):
                raise Failure(f"{request} gives {whole!r}, expected {normal!r}")
        return f"{exact} with equal ids, {len(requests) - exact} by text or refused"

    if found:
        report.check(names[3], random_safe)
    else:
        report.skip(names[3], "the part before it failed")

    def random_through_host():
        chosen = [i for i, text in enumerate(expected) if isinstance(text, str)][:40]
        for i in chosen:
            special = i % 2 == 0
            ids = engine.tokenize(path, json.dumps(requests[i]), "--chat", *(["--special"] if special else []))
            if special and ids != reference.special(expected[i]):
                raise Failure(f"{requests[i]}: other ids")
            if not special and found and ids != found[i]["safe"]:
                raise Failure(f"{requests[i]}: other ids than in the library")
        return f"{len(chosen)} equal"

    report.check(names[4], random_through_host)
