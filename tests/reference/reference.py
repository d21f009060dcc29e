"""Hugging Face Transformers in FP32, on a checkpoint folder of any layout.

The weights are read from the file as stored and widened to float32, so nothing is rounded on the
way: `from_pretrained` would round A_log and linear_attn.norm.weight, which the published files
hold in F32, to the type that the config names.
"""

import json
import os

import torch
from safetensors import safe_open
from transformers import logging as hf_logging
from transformers.models.qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

import synthetic

# Notes about kernels that are not installed; the plain PyTorch code is what is wanted here.
hf_logging.set_verbosity_error()


def hf_config(config: dict) -> Qwen3_5TextConfig:
    text = dict(synthetic.text_config(config))
    text["tie_word_embeddings"] = synthetic.tied(config)
    text["layer_types"] = synthetic.layer_kinds(text)
    if "rope_parameters" not in text:
        text["rope_parameters"] = {
            "rope_type": "default",
            "rope_theta": text.pop("rope_theta"),
            "partial_rotary_factor": text.pop("partial_rotary_factor"),
            "mrope_section": text.pop("mrope_section"),
            "mrope_interleaved": True,
        }
    for key in ("architectures", "model_type", "dtype"):
        text.pop(key, None)
    made = Qwen3_5TextConfig(**text)
    made._attn_implementation = "eager"
    return made


def stored_tensors(folder: str) -> dict:
    """Name without prefix -> float32 tensor, for every tensor of the text model."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        with open(index) as f:
            files = sorted(set(json.load(f)["weight_map"].values()))
    else:
        files = ["model.safetensors"]
    out = {}
    for file in files:
        with safe_open(os.path.join(folder, file), framework="pt") as f:
            for name in f.keys():
                if ".visual." in name or name.startswith("mtp."):
                    continue
                short = name
                for prefix in (synthetic.CANONICAL_PREFIX, "language_model.model.", "language_model.", "model."):
                    if short.startswith(prefix):
                        short = short[len(prefix) :]
                        break
                out[short] = f.get_tensor(name).float()
    return out


def load(folder: str) -> Qwen3_5ForCausalLM:
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    made = hf_config(config)
    with torch.device("meta"):
        model = Qwen3_5ForCausalLM(made)
    tensors = stored_tensors(folder)
    state = {name if name == "lm_head.weight" else f"model.{name}": t for name, t in tensors.items()}
    if synthetic.tied(config):
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    # The rotary frequencies are a buffer that no file holds: made again, off the meta device.
    model.model.rotary_emb = type(model.model.rotary_emb)(made)
    model.requires_grad_(False)
    return model.eval()


@torch.no_grad()
def logits(model, ids, keep=None) -> torch.Tensor:
    """Logits at every position of one prompt in one pass: [len(ids), vocabulary]. `keep` gives
    the positions wanted where the whole matrix would be large."""
    hidden = model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    if keep is not None:
        hidden = hidden[keep]
    return model.lm_head(hidden)


@torch.no_grad()
def greedy(model, ids, count, stop=(), known=None):
    """Greedy continuation: (ids, top-two gap at each step, largest |logit| at each step).

    Ids from `known` on (rows of the matrix that have no text) are never chosen. Ends after an id
    of `stop`, which is part of the result.
    """
    cache, feed = None, torch.tensor([ids])
    out, gaps, sizes = [], [], []
    while len(out) < count:
        result = model(input_ids=feed, cache=cache, use_cache=True, logits_to_keep=1)
        cache = result.past_key_values
        row = result.logits[0, -1, :known]
        best = row.topk(2)
        out.append(int(best.indices[0]))
        gaps.append(float(best.values[0] - best.values[1]))
        sizes.append(float(row.abs().max()))
        if out[-1] in stop:
            break
        feed = torch.tensor([[out[-1]]])
    return out, gaps, sizes


@torch.no_grad()
def layer_outputs(model, ids):
    """What each decoder layer hands on, [layers][len(ids), hidden]."""
    seen = []
    hooks = [
        layer.register_forward_hook(
            lambda _, __, result: seen.append((result[0] if isinstance(result, tuple) else result)[0])
        )
        for layer in model.model.layers
    ]
    try:
        model.model(input_ids=torch.tensor([ids]), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return [h if h.dim() == 2 else h.unsqueeze(0) for h in seen]
