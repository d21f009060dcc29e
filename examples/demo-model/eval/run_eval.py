"""Asks the held-out prompts (or those of another set) and marks the answers.

    python run_eval.py                               # with Transformers, FP32
    python run_eval.py --host ../../../build         # with the C hosts qwen-tokenize and qwen-ids
    python run_eval.py --host ... --compare          # both; ids must agree (ties below 1e-3 excepted)

Needs torch and transformers (see ../train/requirements.txt), with --host alone only `tokenizers`.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 120  # tokens in an answer
TIE = 1e-3


def right(text, entry):
    """Whether a decoded answer is one of the accepted ones."""
    text = text.strip()
    if entry.get("enable_thinking"):
        if "</think>" not in text:
            return False
        text = text.split("</think>")[-1].strip()
    for a in map(str.strip, entry["answers"]):
        if entry["match"] == "exact":
            if text.rstrip(".! ") == a.rstrip(".! "):
                return True
        elif re.search(r"(?<![\w])" + re.escape(a) + r"(?![\w])", text):
            return True
    return False


class Reference:
    """Transformers, one prompt after another."""

    def __init__(self, folder, threads):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(threads)
        self.torch = torch
        self.tok = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.stop = set(self.model.generation_config.eos_token_id)

    def prompt(self, entry):
        return self.tok.apply_chat_template(entry["messages"], tools=entry.get("tools"), add_generation_prompt=True, enable_thinking=entry.get("enable_thinking", False), tokenize=True, return_dict=False)

    def answer(self, ids):
        """(answer ids with the stop token, at each step the gap between the two best logits)"""
        torch = self.torch
        out, gaps, cache, feed = [], [], None, ids
        with torch.no_grad():
            while len(out) < LIMIT:
                r = self.model(torch.tensor([feed]), past_key_values=cache, use_cache=True)
                cache = r.past_key_values
                best = torch.topk(r.logits[0, -1], 2)
                out.append(int(best.indices[0]))
                gaps.append(float(best.values[0] - best.values[1]))
                if out[-1] in self.stop:
                    break
                feed = [out[-1]]
        return out, gaps


class Host:
    """The C hosts, one process a prompt, as a person would run them."""

    def __init__(self, build, folder):
        self.build, self.folder = Path(build), str(folder)
        config = json.loads((Path(folder) / "generation_config.json").read_text())
        self.stop = set(config["eos_token_id"])

    def run(self, name, *args, text=None):
        p = subprocess.run([str(self.build / name), *args], input=text, capture_output=True, text=True)
        if p.returncode:
            sys.exit(f"{name} {args[1:]} failed: {p.stderr.strip()}")
        return p.stdout

    def prompt(self, entry):
        request = {"messages": entry["messages"], "add_generation_prompt": True, "enable_thinking": entry.get("enable_thinking", False)}
        if entry.get("tools"):
            request["tools"] = entry["tools"]
        return [int(x) for x in re.findall(r"\d+", self.run("qwen-tokenize", self.folder, "--chat", text=json.dumps(request)))]

    def answer(self, ids):
        out = [int(x) for x in self.run("qwen-ids", self.folder, ",".join(map(str, ids)), str(LIMIT)).split()]
        for i, x in enumerate(out):
            if x in self.stop:
                return out[: i + 1], None
        return out, None


def decoder(folder):
    from tokenizers import AddedToken, Tokenizer

    tok = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    config = json.loads((Path(folder) / "tokenizer_config.json").read_text())
    tok.add_tokens([AddedToken(t["content"], normalized=False, special=t["special"]) for t in config["added_tokens_decoder"].values()])
    return lambda ids: tok.decode(ids, skip_special_tokens=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--model", default=HERE.parent)
    ap.add_argument("--host", help="folder with qwen-tokenize and qwen-ids")
    ap.add_argument("--compare", action="store_true", help="with --host: ask Transformers too and compare the ids")
    ap.add_argument("--set", choices=("heldout", "strangers", "development"), default="heldout")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--every", type=int, default=1, help="ask only one prompt in so many")
    ap.add_argument("--first", type=int, default=0, help="with --every: begin with the prompt of this number")
    ap.add_argument("--wrong", action="store_true", help="show the wrong answers")
    a = ap.parse_args()
    entries = json.loads((HERE / f"{a.set}.json").read_text())["prompts"][a.first :: a.every]
    decode = decoder(a.model)
    host = Host(a.host, a.model) if a.host else None
    reference = Reference(a.model, a.threads) if not host or a.compare else None
    score, differ, ties, start = defaultdict(lambda: [0, 0]), 0, 0, time.time()
    for i, e in enumerate(entries):
        engine = host or reference
        ids = engine.prompt(e)
        out, _ = engine.answer(ids)
        if host and reference:
            if reference.prompt(e) != ids:
                differ += 1
                print("prompt ids differ:", e["messages"][-1]["content"])
            theirs, gaps = reference.answer(ids)
            for mine, other, gap in zip(out, theirs, gaps):
                if mine != other:
                    if gap < TIE:
                        ties += 1
                    else:
                        differ += 1
                        print(f"answers differ (gap {gap:.4f}):", e["messages"][-1]["content"])
                    break
        text = decode(out)
        ok = right(text, e) and out[-1] in engine.stop
        score[e["kind"]][0] += ok
        score[e["kind"]][1] += 1
        if a.wrong and not ok:
            print(f"[{e['kind']}] {e['messages'][-1]['content']!r} -> {text!r}, wanted {e['answers'][0]!r}", flush=True)
        elif sys.stderr.isatty():
            print(f"\r{i + 1}/{len(entries)}", end="", file=sys.stderr)
    print(f"\n| kind | right | asked |\n|---|---|---|")
    for k, (r, n) in sorted(score.items()):
        print(f"| {k} | {r} | {n} |")
    r, n = sum(x[0] for x in score.values()), sum(x[1] for x in score.values())
    print(f"| all | {r} ({100 * r / n:.1f}%) | {n} |")
    print(f"{'C hosts' if host else 'Transformers'}, {time.time() - start:.0f} s")
    if host and reference:
        print(f"compared with Transformers: {differ} differ, {ties} part at a tie below {TIE}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
