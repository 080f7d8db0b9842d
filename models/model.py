"""BitNet b1.58 for training: the forward pass of the `bitnet-b1.58` architecture, in torch.

    h = rms(x); q,k,v = BitLinear(h); RoPE (NEOX pairs i, i + head_dim/2); causal grouped attention
    x += BitLinear_o(rms(attention));   h = rms(x)
    x += BitLinear_down(rms(relu(BitLinear_gate(h))^2 * BitLinear_up(h)));  logits = E . rms(x)

BitLinear: W ~ ws * t with ws = mean|W|, t in {-1, 0, 1}; x ~ q / s with s = 127 / max|x| per token and
q an int8. Both roundings let gradients pass unchanged (straight-through).
Exact: t and q are whole numbers below 2^8, hence exact in bfloat16, and sums are kept in float32; only
the result of a product is rounded to bfloat16. Set `exact = True` for float32 throughout.
Source: arXiv:2402.17764 (weights, activations), arXiv:2504.12285 (sub-norms, squared ReLU).
"""

from dataclasses import dataclass, asdict

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 2048
    width: int = 256        # residual stream
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2       # each serves heads / kv_heads query heads
    ffn: int = 512
    context: int = 512
    theta: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    def as_dict(self) -> dict:
        return asdict(self)


class Ternary(torch.autograd.Function):
    """y = x W^T for several W that read the same x. x: (n, k); each W: (m_i, k); y: (n, sum m_i)."""

    exact = False

    @staticmethod
    def forward(ctx, x, *weights):
        kind = torch.float32 if Ternary.exact else torch.bfloat16
        scales = [w.abs().mean().clamp(min=1e-5) for w in weights]
        t = torch.cat([(w / s).round_().clamp_(-1, 1) for w, s in zip(weights, scales)]).to(kind)
        ws = torch.cat([s.expand(w.shape[0]) for w, s in zip(weights, scales)])
        s = 127.0 / x.abs().amax(-1, keepdim=True).clamp_(min=1e-5)
        q = (x * s).round_().clamp_(-128, 127).to(kind)
        ctx.save_for_backward(q, s, t, ws)
        ctx.rows = [w.shape[0] for w in weights]
        return (q @ t.t()).float().mul_(ws).div_(s)

    @staticmethod
    def backward(ctx, grad):
        q, s, t, ws = ctx.saved_tensors
        to_x = ((grad * ws).to(t.dtype) @ t).float()
        to_w = ((grad / s).to(q.dtype).t() @ q).float()
        return to_x, *to_w.split(ctx.rows)


class Layer(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        kv = c.kv_heads * c.head_dim

        def weight(rows, columns):
            return nn.Parameter(torch.randn(rows, columns) * 0.02)

        def norm(width):
            return nn.Parameter(torch.ones(width))

        self.c = c
        self.attn_norm, self.attn_sub_norm = norm(c.width), norm(c.width)
        self.ffn_norm, self.ffn_sub_norm = norm(c.width), norm(c.ffn)
        self.attn_q, self.attn_k = weight(c.width, c.width), weight(kv, c.width)
        self.attn_v, self.attn_output = weight(kv, c.width), weight(c.width, c.width)
        self.ffn_gate, self.ffn_up = weight(c.ffn, c.width), weight(c.ffn, c.width)
        self.ffn_down = weight(c.width, c.ffn)

    def forward(self, x, cos, sin):
        c, (b, n, _) = self.c, x.shape
        kv = c.kv_heads * c.head_dim
        h = rms(x, self.attn_norm, c.eps).view(b * n, -1)
        q, k, v = Ternary.apply(h, self.attn_q, self.attn_k, self.attn_v).split(
            (c.width, kv, kv), dim=-1)
        q = rotate(q.view(b, n, c.heads, c.head_dim).transpose(1, 2), cos, sin)
        k = rotate(k.view(b, n, c.kv_heads, c.head_dim).transpose(1, 2), cos, sin)
        v = v.view(b, n, c.kv_heads, c.head_dim).transpose(1, 2)
        a = attention(q, k, v).transpose(1, 2).reshape(b * n, -1)
        a = rms(a, self.attn_sub_norm, c.eps)
        x = x + Ternary.apply(a, self.attn_output).view_as(x)
        h = rms(x, self.ffn_norm, c.eps).view(b * n, -1)
        gate, up = Ternary.apply(h, self.ffn_gate, self.ffn_up).chunk(2, dim=-1)
        g = rms(F.relu(gate).square() * up, self.ffn_sub_norm, c.eps)
        return x + Ternary.apply(g, self.ffn_down).view_as(x)


class Model(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.token_embd = nn.Parameter(torch.randn(c.vocab, c.width) * 0.02)
        self.blk = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.output_norm = nn.Parameter(torch.ones(c.width))
        angle = torch.outer(torch.arange(c.context).float(),
                            c.theta ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, ids, targets=None, weights=None):
        """ids: (batch, n) -> logits (batch * n, vocab), or the (weighted) mean loss over targets."""
        n = ids.shape[1]
        x = F.embedding(ids, self.token_embd)
        for layer in self.blk:
            x = layer(x, self.cos[:n], self.sin[:n])
        x = rms(x, self.output_norm, self.c.eps).view(-1, self.c.width)
        kind = torch.float32 if Ternary.exact else torch.bfloat16
        logits = (x.to(kind) @ self.token_embd.to(kind).t()).float()
        if targets is None:
            return logits
        if weights is None:
            return F.cross_entropy(logits, targets.reshape(-1))
        loss = F.cross_entropy(logits, targets.reshape(-1), reduction="none")
        return (loss * weights.reshape(-1)).sum() / weights.sum()


def attention(q, k, v):
    """Causal. q: (batch, heads, n, head_dim); k, v: (batch, kv_heads, n, head_dim); float32 out.

    Written out, because torch's fused form for CPUs took a quarter of the training time."""
    b, heads, n, hd = q.shape
    kv, kind = k.shape[1], torch.float32 if Ternary.exact else torch.bfloat16
    q = q.reshape(b * kv, heads // kv * n, hd).to(kind)       # the query heads that share a kv head
    k, v = k.reshape(b * kv, n, hd).to(kind), v.reshape(b * kv, n, hd).to(kind)
    later = torch.full((n, n), float("-inf")).triu(1)
    score = torch.bmm(q, k.transpose(1, 2)).float().view(-1, n, n) * hd ** -0.5 + later
    weight = score.softmax(-1).to(kind).view(b * kv, -1, n)
    return torch.bmm(weight, v).float().view(b, heads, n, hd)


def rms(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rotate(x, cos, sin):
    """x: (batch, heads, n, head_dim); pairs are (i, i + head_dim / 2)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
