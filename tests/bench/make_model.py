#!/usr/bin/env python3
"""Writes a model with random weights in the shape of a known one, for measuring.

    make_model.py FILE [--shape 2b-4t|1.7b|4b|8b|10b|27b] [--layers N] [--vocabulary N] [--embedding N]
                       [--feed-forward N] [--heads N] [--kv-heads N] [--arch NAME] [--seed 1]
                       [--chain SHARE]

2b-4t is BitNet b1.58 2B-4T: I2_S (layout A), embedding and output f16; 10b is Falcon3 10B in the same types. The
others are those of Qwen3 with ternary weights and a scale for 128 of them (type 142), embedding and output too; 27b
is that of Qwen3.5, whose layers keep a state but for each fourth. --arch is another name for the architecture:
llama.cpp knows that of 2b-4t as bitnet. Numbers beside --shape take the place of the shape's. With --chain the likeliest next token depends on
the last one alone, by one fixed permutation of the vocabulary for a SHARE of the tokens, 1 for all, and by another
for the rest: two such models, of any shapes and seeds, agree about the shares' product. Norm weights and scales
are chosen so that activations stay in the range of a trained model's.
"""

import argparse
import dataclasses
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
import gguf_file  # noqa: E402
import vocabulary  # noqa: E402

F32, F16, I2_S, PQ2_0 = 0, 1, 36, 142
CHUNK = 1 << 24  # random values at a time


@dataclasses.dataclass
class Shape:
    embedding: int
    feed_forward: int
    heads: int
    kv_heads: int
    layers: int
    vocabulary: int
    head_dim: int = 128
    arch: str = "qwen3"
    base: float = 1e6
    tied: bool = True
    rope_dims: int = 0  # 0: all of a head
    key_heads: int = 0  # of layers with a state; 0: all layers attend
    value_heads: int = 0
    state: int = 128  # elements of a head of keys, and of values

    @property
    def is_hybrid(self):
        return self.key_heads != 0

    @property
    def is_grouped(self):  # weights, scales of 128; else one scale to a matrix
        return self.arch.startswith("qwen3")

    @property
    def has_sub_norms(self):
        return self.arch.startswith("bitnet")


SHAPES = {
    "2b-4t": Shape(2560, 6912, 20, 5, 30, 128256, arch="bitnet-b1.58", base=500000.0),
    "1.7b": Shape(2048, 6144, 16, 8, 28, 151669),
    "4b": Shape(2560, 9728, 32, 8, 36, 151669),
    "8b": Shape(4096, 12288, 32, 8, 36, 151669, tied=False),
    "10b": Shape(3072, 23040, 12, 4, 40, 131072, head_dim=256, arch="llama", base=1000042.0, tied=False),
    "27b": Shape(5120, 17408, 24, 4, 64, 248320, head_dim=256, arch="qwen35", base=1e7, tied=False, rope_dims=64,
                 key_heads=16, value_heads=48),
}
NUMBERS = ("layers", "vocabulary", "embedding", "feed_forward", "heads", "kv_heads")


def metadata(name, shape):
    arch = shape.arch
    vocab = vocabulary.gpt2()
    fillers = shape.vocabulary - len(vocab["tokenizer.ggml.tokens"])
    if fillers < 0:
        raise SystemExit(f"--vocabulary must be at least {shape.vocabulary - fillers}")
    vocab["tokenizer.ggml.tokens"] += [f"<filler {i}>" for i in range(fillers)]
    types = vocab["tokenizer.ggml.token_type"] + [1] * fillers
    vocab["tokenizer.ggml.token_type"] = [np.int32(t) for t in types]  # llama.cpp reads no others
    states = {
        f"{arch}.full_attention_interval": 4,
        f"{arch}.ssm.conv_kernel": 4,
        f"{arch}.ssm.state_size": shape.state,
        f"{arch}.ssm.group_count": shape.key_heads,
        f"{arch}.ssm.time_step_rank": shape.value_heads,
        f"{arch}.ssm.inner_size": shape.value_heads * shape.state,
    } if shape.is_hybrid else {}
    return {
        "general.architecture": arch,
        "general.name": f"random {name}",
        "general.file_type": 141 if shape.is_grouped else 40,
        f"{arch}.context_length": 4096,
        f"{arch}.embedding_length": shape.embedding,
        f"{arch}.block_count": shape.layers,
        f"{arch}.feed_forward_length": shape.feed_forward,
        f"{arch}.attention.head_count": shape.heads,
        f"{arch}.attention.head_count_kv": shape.kv_heads,
        f"{arch}.attention.key_length": shape.head_dim,
        f"{arch}.attention.value_length": shape.head_dim,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{arch}.rope.freq_base": shape.base,
        f"{arch}.rope.dimension_count": shape.rope_dims or shape.head_dim,
        f"{arch}.vocab_size": shape.vocabulary,
    } | states | vocab


def ternary(rng, rows, columns, gain):
    """Codes 0, 1, 2 at random, then the scale: products with unit inputs are about `gain`."""
    codes = rng.integers(0, 256, rows * columns // 4, dtype=np.uint8)
    both = codes & (codes >> 1) & 0x55  # low bits of the codes that are 3
    scale = np.float32(gain / np.sqrt(columns / 2))
    return (codes & ~both).tobytes() + scale.tobytes() + bytes(28)


def grouped(rng, rows, columns, gain):
    """Blocks of 128: an f16 scale, then codes 0, 1, 2 at random."""
    codes = rng.integers(0, 256, (rows * columns // 128, 32), dtype=np.uint8)
    codes &= ~(codes & (codes >> 1) & 0x55)
    scales = gain / np.sqrt(columns / 2) * rng.uniform(0.75, 1.25, len(codes))
    return np.concatenate([scales.astype(np.float16)[:, None].view(np.uint8), codes], axis=1).tobytes()


def halves(rng, rows, columns, size):
    out = bytearray()
    left = rows * columns
    while left:
        n = min(left, CHUNK)
        out += (rng.standard_normal(n, dtype=np.float32) * np.float32(size)).astype(np.float16).tobytes()
        left -= n
    return bytes(out)


def recurrent(rng, shape, blk, norm, linear):
    """What a layer with a state has in place of attention."""
    values = shape.value_heads * shape.state
    channels = 2 * shape.key_heads * shape.state + values
    floats = lambda name, ne, data: (blk + name, ne, F32, data.astype(np.float32).tobytes())
    dense = lambda name: (blk + name, [shape.embedding, shape.value_heads], F16, halves(
        rng, shape.value_heads, shape.embedding, 1 / np.sqrt(shape.embedding)))
    return [linear(blk + "attn_qkv.weight", channels, shape.embedding, 1),
            linear(blk + "attn_gate.weight", values, shape.embedding, 1),
            dense("ssm_alpha.weight"), dense("ssm_beta.weight"),
            floats("ssm_conv1d.weight", [4, channels], rng.uniform(-1, 1, 4 * channels)),
            floats("ssm_a", [shape.value_heads], -rng.uniform(0.01, 1, shape.value_heads)),
            floats("ssm_dt.bias", [shape.value_heads], rng.uniform(-4, 0, shape.value_heads)),
            norm(blk + "ssm_norm.weight", shape.state),
            linear(blk + "ssm_out.weight", shape.embedding, values, 1)]


def successors(shape, share, seed):
    """The next token of each one, of the vocabulary: by the permutation that all chains have, or by this seed's."""
    common = np.random.default_rng(0)
    order = common.permutation(shape.vocabulary)
    own = common.random(shape.vocabulary) >= share
    out = np.empty_like(order)
    out[order] = np.roll(order, 1)  # one cycle
    out[own] = np.random.default_rng(seed).permutation(out[own])
    return out


def chained(name, embedding, shape, share, seed):
    """The output matrix under which the next token is successors(): its row of one is the embedding of the other."""
    _, ne, kind, data = embedding
    rows = np.frombuffer(data, np.uint8)[:len(data) // shape.vocabulary * shape.vocabulary].reshape(shape.vocabulary, -1)
    out = np.empty_like(rows)
    out[successors(shape, share, seed)] = rows
    return name, ne, kind, out.tobytes()


def tensors(rng, shape, chain=None, seed=0):
    into_sum = 1 if chain is None else 1e-3  # gain of what a layer adds

    def norm(name, width):
        w = (1 + 0.1 * rng.standard_normal(width)).astype(np.float32)
        return name, [width], F32, w.tobytes()

    def linear(name, rows, columns, gain):
        kind, make = (PQ2_0, grouped) if shape.is_grouped else (I2_S, ternary)
        return name, [columns, rows], kind, make(rng, rows, columns, gain)

    def end(name):
        if shape.is_grouped:
            return linear(name, shape.vocabulary, shape.embedding, 3)
        return name, [shape.embedding, shape.vocabulary], F16, halves(
            rng, shape.vocabulary, shape.embedding, 3 / np.sqrt(shape.embedding))

    attention, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    out = [end("token_embd.weight")]
    for n in range(shape.layers):
        blk = f"blk.{n}."
        out.append(norm(blk + "attn_norm.weight", shape.embedding))
        attends = not shape.is_hybrid or n % 4 == 3
        if attends:  # a hybrid's with a gate beside each head
            out += [linear(blk + "attn_q.weight", attention * (2 if shape.is_hybrid else 1), shape.embedding, 1.5),
                    linear(blk + "attn_k.weight", keys, shape.embedding, 1.5),
                    linear(blk + "attn_v.weight", keys, shape.embedding, 1),
                    linear(blk + "attn_output.weight", shape.embedding, attention, into_sum)]
        else:
            out += recurrent(rng, shape, blk, norm, linear)
        out += [norm(blk + ("post_attention_norm" if shape.is_hybrid else "ffn_norm") + ".weight", shape.embedding),
                linear(blk + "ffn_gate.weight", shape.feed_forward, shape.embedding, 1),
                linear(blk + "ffn_up.weight", shape.feed_forward, shape.embedding, 1),
                linear(blk + "ffn_down.weight", shape.embedding, shape.feed_forward, into_sum)]
        if shape.has_sub_norms:
            out += [norm(blk + "attn_sub_norm.weight", attention),
                    norm(blk + "ffn_sub_norm.weight", shape.feed_forward)]
        elif shape.is_grouped and attends:
            out += [norm(blk + "attn_q_norm.weight", shape.head_dim),
                    norm(blk + "attn_k_norm.weight", shape.head_dim)]
    if chain is not None:
        out.append(chained("output.weight", out[0], shape, chain, seed))
    elif not shape.tied:
        out.append(end("output.weight"))
    return out + [norm("output_norm.weight", shape.embedding)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--shape", choices=SHAPES, default="2b-4t")
    for number in NUMBERS:
        parser.add_argument("--" + number.replace("_", "-"), type=int)
    parser.add_argument("--arch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chain", type=float, metavar="SHARE")
    options = parser.parse_args()
    given = {key: getattr(options, key) for key in (*NUMBERS, "arch") if getattr(options, key)}
    shape = dataclasses.replace(SHAPES[options.shape], **given)
    rng = np.random.default_rng(options.seed)
    gguf_file.write(options.file, metadata(options.shape, shape), tensors(rng, shape, options.chain, options.seed))


if __name__ == "__main__":
    main()
