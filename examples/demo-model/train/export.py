"""Writes the checkpoint folder from the trainer's state: config.json, generation_config.json, the weights.

The file has the layout of the published one: tensor names, BF16, except that A_log and
the norm of the linear layers are F32; F32 tensors first, no metadata. Their values are
rounded to BF16 all the same, because Transformers loads them as BF16.
"""

import argparse
import json
import os
import struct
from pathlib import Path

import torch

from make_tokenizer import ADDED, BASE
from model import CONFIG, Model, hf_config

FOLDER = Path(__file__).resolve().parent.parent
WORK = Path(os.environ.get("DEMO_WORK", FOLDER / "train" / "work"))
WEIGHTS = "model.safetensors"
ID = {content: BASE + i for i, (content, _) in enumerate(ADDED)}


def config():
    text = hf_config()
    n = text["num_hidden_layers"]
    text.update(
        attention_bias=False, attention_dropout=0.0, attn_output_gate=True, dtype="bfloat16", eos_token_id=ID["<|endoftext|>"], hidden_act="silu", initializer_range=0.02,
        layer_types=["full_attention" if (i + 1) % text["full_attention_interval"] == 0 else "linear_attention" for i in range(n)], mlp_only_layers=[],
        model_type="qwen3_5_text", mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False, tie_word_embeddings=True, use_cache=True, mamba_ssm_dtype="float32",
    )
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "image_token_id": ID["<|image_pad|>"],
        "model_type": "qwen3_5",
        "text_config": dict(sorted(text.items())),
        "tie_word_embeddings": True,
        "transformers_version": "5.24.0",
        "video_token_id": ID["<|video_pad|>"],
        "vision_end_token_id": ID["<|vision_end|>"],
        "vision_start_token_id": ID["<|vision_start|>"],
    }


def f32(name):
    return name.endswith(("A_log", "linear_attn.norm.weight"))


def write_weights(path, model):
    tensors = dict(model.published_names())
    order = sorted(n for n in tensors if f32(n)) + sorted(n for n in tensors if not f32(n))
    header, data, at = {}, [], 0
    for n in order:
        t = tensors[n].detach().bfloat16()
        raw = (t.float() if f32(n) else t.view(torch.int16)).contiguous().numpy().tobytes()
        header[n] = {"dtype": "F32" if f32(n) else "BF16", "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    tmp = path.with_suffix(".tmp")
    with tmp.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(data)
    os.replace(tmp, path)
    return at


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out", nargs="?", type=Path, default=FOLDER)
    a = ap.parse_args()
    out, state = a.out, torch.load(WORK / "state.pt")
    model = Model(CONFIG)
    model.load_state_dict(state["model"])
    (out / "config.json").write_text(json.dumps(config(), indent=4) + "\n")
    generation = {"do_sample": False, "eos_token_id": [ID["<|im_end|>"], ID["<|endoftext|>"]], "pad_token_id": ID["<|endoftext|>"], "transformers_version": "5.24.0"}
    (out / "generation_config.json").write_text(json.dumps(generation, indent=4) + "\n")
    size = write_weights(out / WEIGHTS, model)
    print(f"{sum(p.numel() for p in model.parameters())} weights, {size} bytes, trainer at {state['at']}")


if __name__ == "__main__":
    main()
