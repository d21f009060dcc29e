"""Writes the weights of a Qwen3.5 checkpoint folder as a GGUF file, to measure llama.cpp on them.

    python benches/peers/export_gguf.py CHECKPOINT OUT.gguf --type bf16|q8_0|q4_0

All matrices get the type, the tied embedding too, so that sizes compare; vectors, convolutions and
the two gate projections (16 rows each at 0.8B) stay F32. The file holds no tokenizer: it is fed
with token ids. Quantization is that of the PyPI package gguf, the reference of the format.
"""

import argparse
import glob
import json
import os

import gguf
import numpy as np
from safetensors import safe_open

TYPES = {
    "bf16": gguf.GGMLQuantizationType.BF16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}
FILE_TYPES = {
    "bf16": gguf.LlamaFileType.MOSTLY_BF16,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
}

# Ours to theirs; {} is the layer.
NAMES = {
    "embed_tokens.weight": "token_embd.weight",
    "lm_head.weight": "output.weight",
    "norm.weight": "output_norm.weight",
    "input_layernorm.weight": "blk.{}.attn_norm.weight",
    "post_attention_layernorm.weight": "blk.{}.post_attention_norm.weight",
    "mlp.gate_proj.weight": "blk.{}.ffn_gate.weight",
    "mlp.up_proj.weight": "blk.{}.ffn_up.weight",
    "mlp.down_proj.weight": "blk.{}.ffn_down.weight",
    "self_attn.q_proj.weight": "blk.{}.attn_q.weight",
    "self_attn.k_proj.weight": "blk.{}.attn_k.weight",
    "self_attn.v_proj.weight": "blk.{}.attn_v.weight",
    "self_attn.o_proj.weight": "blk.{}.attn_output.weight",
    "self_attn.q_norm.weight": "blk.{}.attn_q_norm.weight",
    "self_attn.k_norm.weight": "blk.{}.attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "blk.{}.attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "blk.{}.attn_gate.weight",
    "linear_attn.in_proj_a.weight": "blk.{}.ssm_alpha.weight",
    "linear_attn.in_proj_b.weight": "blk.{}.ssm_beta.weight",
    "linear_attn.A_log": "blk.{}.ssm_a",
    "linear_attn.dt_bias": "blk.{}.ssm_dt.bias",
    "linear_attn.conv1d.weight": "blk.{}.ssm_conv1d.weight",
    "linear_attn.norm.weight": "blk.{}.ssm_norm.weight",
    "linear_attn.out_proj.weight": "blk.{}.ssm_out.weight",
}
WIDE = ("in_proj_a.weight", "in_proj_b.weight", "conv1d.weight")


def values(tensor_file, name):
    """One tensor in FP32. Read by hand: numpy has no BF16."""
    import torch

    return tensor_file.get_tensor(name).to(torch.float32).numpy()


def theirs(name):
    """(their name, our name without prefix), or None for tensors that are not of the text model."""
    for prefix in ("model.language_model.", "language_model.model.", "model."):
        name = name.removeprefix(prefix)
    if name.startswith("layers."):
        _, layer, part = name.split(".", 2)
        return (NAMES[part].format(layer), part) if part in NAMES else None
    return (NAMES[name], name) if name in NAMES else None


def transformed(part, value):
    """What the format stores where it differs from the checkpoint."""
    if part.endswith("A_log"):
        return -np.exp(value)
    if part.endswith("conv1d.weight"):
        return value.squeeze(1)
    if part.endswith("norm.weight") and part != "linear_attn.norm.weight":
        return value + 1
    return value


def write(folder, out, kind):
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    config = config.get("text_config", config)
    if config["linear_num_key_heads"] != config["linear_num_value_heads"]:
        raise SystemExit("export_gguf: only shapes with as many value heads as key heads")
    rope = config.get("rope_parameters", config)
    writer = gguf.GGUFWriter(out, "qwen35")
    writer.add_file_type(FILE_TYPES[kind])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(float(rope["rope_theta"]))
    writer.add_rope_dimension_sections([*rope["mrope_section"], 0])
    writer.add_rope_dimension_count(int(config["head_dim"] * rope["partial_rotary_factor"]))
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    inner = config["linear_value_head_dim"] * config["linear_num_value_heads"]
    writer.add_ssm_inner_size(inner)
    writer.add_full_attention_interval(config.get("full_attention_interval", 4))
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                found = theirs(name)
                if found is None or name.startswith("mtp."):
                    continue
                new, part = found
                value = np.ascontiguousarray(transformed(part, values(file, name)))
                wanted = gguf.GGMLQuantizationType.F32
                if value.ndim == 2 and not part.endswith(WIDE):
                    wanted = TYPES[kind]
                data = gguf.quants.quantize(value, wanted)
                writer.add_tensor(new, data, raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("out")
    parser.add_argument("--type", choices=TYPES, required=True)
    arguments = parser.parse_args()
    # Whole under its name or not there.
    partial = arguments.out + ".partial"
    write(arguments.checkpoint, partial, arguments.type)
    os.replace(partial, arguments.out)


if __name__ == "__main__":
    main()
