"""A lean Qwen3.5 text model in plain torch, for training only.

Parameter names below a module are those of the published checkpoint
(`layers.0.linear_attn.in_proj_qkv.weight`, ...), so that exporting is a matter
of adding the prefix. `python model.py` proves that the logits equal those of
Transformers for random weights.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 16  # tokens per block of the chunked delta rule; row lengths are multiples of it

# Shapes of the demo. The tokenizer has 33 added tokens behind `base` ordinary ones;
# the embedding has a few more rows than there are tokens, as in the published model.
CONFIG = dict(
    vocab_size=3072,
    hidden_size=192,
    intermediate_size=384,
    num_hidden_layers=8,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=64,
    partial_rotary_factor=0.25,
    rope_theta=10000000,
    mrope_section=[3, 3, 2],
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    linear_key_head_dim=32,
    linear_value_head_dim=32,
    linear_conv_kernel_dim=4,
    full_attention_interval=4,
    rms_norm_eps=1e-6,
    max_position_embeddings=4096,
)


class Weight(nn.Module):
    """A bare tensor under the name `NAME.weight`."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(*shape))


class Norm(nn.Module):
    """RMS norm with the stored weight as an offset from one."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight)).to(x.dtype)


def unit(x, eps=1e-6):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)


def unit_lower_inverse(a):
    """(I + A)^-1 for strictly lower triangular A [..., n, n], n a power of two.

    Block recursion: exact in the same sense as forward substitution, but made of
    a few batched products instead of n dependent rows.
    """
    n = a.shape[-1]
    eye = torch.eye(8, dtype=a.dtype, device=a.device)
    # 8x8 diagonal blocks: (I + A)^-1 = (I - A)(I + A^2)(I + A^4), since A^8 = 0.
    blocks = a.unflatten(-1, (n // 8, 8)).unflatten(-3, (n // 8, 8))  # [.., bi, 8, bj, 8]
    diag = torch.diagonal(blocks, dim1=-4, dim2=-2).movedim(-1, -3)  # [.., n/8, 8, 8]
    d2 = diag @ diag
    d4 = d2 @ d2
    inv = (eye - diag) @ (eye + d2) @ (eye + d4)
    size = 8
    while size < n:
        count = n // (2 * size)
        pair = inv.unflatten(-3, (count, 2))
        top, bottom = pair[..., 0, :, :], pair[..., 1, :, :]
        view = a.unflatten(-1, (count, 2, size)).unflatten(-4, (count, 2, size))
        low = torch.diagonal(view[..., :, 1, :, :, 0, :], dim1=-4, dim2=-2).movedim(-1, -3)
        corner = -(bottom @ low @ top)
        zero = torch.zeros_like(corner)
        inv = torch.cat([torch.cat([top, zero], -1), torch.cat([corner, bottom], -1)], -2)
        size *= 2
    return inv.squeeze(-3)


def delta_rule(q, k, v, g, beta):
    """Gated delta rule, chunked. q, k [B, H, T, K], v [B, H, T, V], g, beta [B, H, T], all f32.

    g is the log of the decay. The state starts at zero.
    """
    b, h, t, dk = q.shape
    n = t // CHUNK
    q, k, v, g, beta = (x.unflatten(2, (n, CHUNK)) for x in (q, k, v, g, beta))
    decay = g.cumsum(-1)  # [B, H, N, C]
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    gap = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).masked_fill(~lower, -math.inf).exp()
    kb = k * beta.unsqueeze(-1)
    a = (kb @ k.transpose(-1, -2) * gap).tril(-1)
    inv = unit_lower_inverse(a)
    u = inv @ (v * beta.unsqueeze(-1))
    w = inv @ (kb * decay.exp().unsqueeze(-1))
    within = q @ k.transpose(-1, -2) * gap
    qd = q * decay.exp().unsqueeze(-1)
    last = decay[..., -1:]
    kd = (k * (last - decay).exp().unsqueeze(-1)).transpose(-1, -2)
    keep = last.exp().unsqueeze(-1)
    state = None
    out = []
    for i in range(n):
        if state is None:
            new = u[:, :, i]
            out.append(within[:, :, i] @ new)
            state = kd[:, :, i] @ new
        else:
            new = u[:, :, i] - w[:, :, i] @ state
            out.append(qd[:, :, i] @ state + within[:, :, i] @ new)
            if i + 1 < n:
                state = state * keep[:, :, i] + kd[:, :, i] @ new
    return torch.stack(out, 2).flatten(2, 3)


class LinearAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.kh, self.vh = c["linear_num_key_heads"], c["linear_num_value_heads"]
        self.dk, self.dv = c["linear_key_head_dim"], c["linear_value_head_dim"]
        self.eps = c["rms_norm_eps"]
        hidden, kw = c["hidden_size"], c["linear_conv_kernel_dim"]
        keys, values = self.kh * self.dk, self.vh * self.dv
        self.in_proj_qkv = Weight(2 * keys + values, hidden)
        self.in_proj_z = Weight(values, hidden)
        self.in_proj_b = Weight(self.vh, hidden)
        self.in_proj_a = Weight(self.vh, hidden)
        self.conv1d = Weight(2 * keys + values, 1, kw)
        self.dt_bias = nn.Parameter(torch.empty(self.vh))
        self.A_log = nn.Parameter(torch.empty(self.vh))
        self.norm = Weight(self.dv)
        self.out_proj = Weight(hidden, values)

    def forward(self, x):
        b, t, _ = x.shape
        keys, values = self.kh * self.dk, self.vh * self.dv
        w = torch.cat(
            [self.in_proj_qkv.weight, self.in_proj_z.weight, self.in_proj_b.weight, self.in_proj_a.weight]
        )
        mixed, z, beta, a = F.linear(x, w).split([2 * keys + values, values, self.vh, self.vh], -1)
        taps = self.conv1d.weight[:, 0]  # [channels, width]
        width = taps.shape[1]
        padded = F.pad(mixed.float(), (0, 0, width - 1, 0))
        conv = sum(padded[:, j : j + t] * taps[:, j] for j in range(width))
        conv = F.silu(conv)
        q, k, v = conv.split([keys, keys, values], -1)
        q = unit(q.view(b, t, self.kh, self.dk)) * self.dk**-0.5
        k = unit(k.view(b, t, self.kh, self.dk))
        group = self.vh // self.kh
        q = q.transpose(1, 2).repeat_interleave(group, 1)
        k = k.transpose(1, 2).repeat_interleave(group, 1)
        v = v.view(b, t, self.vh, self.dv).transpose(1, 2)
        beta = beta.float().sigmoid().transpose(1, 2)
        g = (-self.A_log.exp() * F.softplus(a.float() + self.dt_bias)).transpose(1, 2)
        with torch.autocast("cpu", enabled=False):
            o = delta_rule(q, k, v, g, beta).transpose(1, 2)  # [B, T, VH, DV]
        o = o * torch.rsqrt(o.square().mean(-1, keepdim=True) + self.eps) * self.norm.weight
        o = o * F.silu(z.float().view(b, t, self.vh, self.dv))
        return F.linear(o.flatten(2).to(x.dtype), self.out_proj.weight)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h, self.kv, self.d = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.rot = int(self.d * c["partial_rotary_factor"])
        self.theta = c["rope_theta"]
        hidden = c["hidden_size"]
        self.q_proj = Weight(2 * self.h * self.d, hidden)  # per head: query, then gate
        self.k_proj = Weight(self.kv * self.d, hidden)
        self.v_proj = Weight(self.kv * self.d, hidden)
        self.o_proj = Weight(hidden, self.h * self.d)
        self.q_norm = Norm(self.d, c["rms_norm_eps"])
        self.k_norm = Norm(self.d, c["rms_norm_eps"])

    def rope(self, x):
        t, half = x.shape[2], self.rot // 2
        inv = self.theta ** (-torch.arange(half, dtype=torch.float32) / half)
        angle = torch.arange(t, dtype=torch.float32)[:, None] * inv
        cos, sin = angle.cos(), angle.sin()
        a, b, rest = x.float().split([half, half, self.d - self.rot], -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1).to(x.dtype)

    def forward(self, x):
        b, t, _ = x.shape
        w = torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight])
        n = self.h * self.d
        qg, k, v = F.linear(x, w).split([2 * n, self.kv * self.d, self.kv * self.d], -1)
        q, gate = qg.view(b, t, self.h, 2 * self.d).chunk(2, -1)
        q = self.rope(self.q_norm(q).transpose(1, 2))
        k = self.rope(self.k_norm(k.view(b, t, self.kv, self.d)).transpose(1, 2))
        v = v.view(b, t, self.kv, self.d).transpose(1, 2)
        group = self.h // self.kv
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        # Written out: for rows this short it is quicker than the fused operation and its gradient.
        scores = q @ k.transpose(-1, -2) * self.d**-0.5
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        o = scores.masked_fill(future, -math.inf).softmax(-1).to(v.dtype) @ v
        o = o.transpose(1, 2) * gate.sigmoid()
        return F.linear(o.flatten(2), self.o_proj.weight)


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = Weight(c["intermediate_size"], c["hidden_size"])
        self.up_proj = Weight(c["intermediate_size"], c["hidden_size"])
        self.down_proj = Weight(c["hidden_size"], c["intermediate_size"])

    def forward(self, x):
        g, u = F.linear(x, torch.cat([self.gate_proj.weight, self.up_proj.weight])).chunk(2, -1)
        return F.linear(F.silu(g) * u, self.down_proj.weight)


class Block(nn.Module):
    def __init__(self, c, full):
        super().__init__()
        self.input_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])
        if full:
            self.self_attn = Attention(c)
        else:
            self.linear_attn = LinearAttention(c)
        self.post_attention_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = Mlp(c)
        self.full = full

    def forward(self, x):
        mixer = self.self_attn if self.full else self.linear_attn
        x = x + mixer(self.input_layernorm(x)).float()
        return x + self.mlp(self.post_attention_layernorm(x)).float()


class Trunk(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = Weight(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(
            Block(c, (i + 1) % c["full_attention_interval"] == 0) for i in range(c["num_hidden_layers"])
        )
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, ids):
        x = F.embedding(ids, self.embed_tokens.weight)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Mtp(nn.Module):
    """Predicts the token after next from the trunk's normed output and the next token."""

    def __init__(self, c):
        super().__init__()
        self.fc = Weight(c["hidden_size"], 2 * c["hidden_size"])
        self.pre_fc_norm_embedding = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.pre_fc_norm_hidden = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.layers = nn.ModuleList([Block(c, True)])
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, next_embedding, hidden):
        m = torch.cat([self.pre_fc_norm_embedding(next_embedding), self.pre_fc_norm_hidden(hidden)], -1)
        return self.norm(self.layers[0](F.linear(m, self.fc.weight).float()))


class Model(nn.Module):
    def __init__(self, c=CONFIG, seed=1):
        super().__init__()
        self.c = c
        self.language_model = Trunk(c)
        self.mtp = Mtp(c)
        self.reset(seed)

    def reset(self, seed):
        gen = torch.Generator().manual_seed(seed)
        depth = (2 * self.c["num_hidden_layers"]) ** -0.5
        for name, p in self.named_parameters():
            with torch.no_grad():
                if name.endswith("embed_tokens.weight"):
                    p.normal_(0, 0.02, generator=gen)
                elif name.endswith("linear_attn.norm.weight"):
                    p.fill_(1)
                elif "norm" in name:
                    p.zero_()
                elif name.endswith("A_log"):
                    # Heads from long to short memory: decay rates about 0.01 to 0.5 a token.
                    p.copy_(torch.linspace(0.5, 8, p.numel()).log())
                elif name.endswith("dt_bias"):
                    dt = torch.linspace(math.log(0.01), math.log(0.06), p.numel()).exp()
                    p.copy_(dt.expm1().log())
                elif "conv1d" in name:
                    p.normal_(0, 0.2, generator=gen)
                    p[:, 0, -1] += 0.7
                else:
                    scale = p.shape[-1] ** -0.5
                    if name.endswith(("down_proj.weight", "o_proj.weight", "out_proj.weight")):
                        scale *= depth * 1.5
                    p.normal_(0, scale, generator=gen)

    def logits(self, hidden):
        return F.linear(hidden, self.language_model.embed_tokens.weight)

    def published_names(self):
        """(published tensor name, parameter) in a fixed order."""
        for name, p in self.named_parameters():
            yield (name if name.startswith("mtp.") else "model." + name), p


def hf_config(c=CONFIG):
    """The same shapes as keyword arguments of Transformers' Qwen3_5TextConfig."""
    out = {k: v for k, v in c.items() if k not in ("partial_rotary_factor", "rope_theta", "mrope_section")}
    out["rope_parameters"] = dict(
        mrope_interleaved=True,
        mrope_section=c["mrope_section"],
        rope_type="default",
        rope_theta=c["rope_theta"],
        partial_rotary_factor=c["partial_rotary_factor"],
    )
    return out


def check_against_transformers():
    from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextModel

    torch.manual_seed(0)
    mine = Model()
    with torch.no_grad():
        for p in mine.parameters():  # make every term count, norms included
            p.add_(torch.randn_like(p) * 0.1)
    cfg = hf_config()
    cfg["tie_word_embeddings"] = True
    theirs = Qwen3_5TextModel(Qwen3_5TextConfig(**cfg)).eval()
    missing, unexpected = theirs.load_state_dict(mine.language_model.state_dict(), strict=False)
    print("missing", missing, "unexpected", unexpected)
    ids = torch.randint(0, 3000, (3, 160))
    with torch.no_grad():
        a = mine.logits(mine.language_model(ids))
        b = mine.logits(theirs(ids).last_hidden_state)
    print("largest logit", float(b.abs().max()), "largest difference", float((a - b).abs().max()))


if __name__ == "__main__":
    n = sum(p.numel() for p in Model().parameters())
    e = Model().language_model.embed_tokens.weight.numel()
    print(f"{n} parameters, {n - e} beside the embedding")
    check_against_transformers()
