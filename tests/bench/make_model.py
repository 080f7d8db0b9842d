#!/usr/bin/env python3
"""Writes a model in the shape of BitNet b1.58 2B-4T with random weights, for measuring.

    make_model.py FILE [--layers 30] [--vocabulary 128256] [--seed 1]

Ternary weights are I2_S (layout A), the embedding is f16 and the output matrix too. Norm weights and
scales are chosen so that activations stay in the range of a trained model's.
"""

import argparse
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
import gguf_file  # noqa: E402
import vocabulary  # noqa: E402

EMBEDDING, FEED_FORWARD, HEADS, KV_HEADS, HEAD_DIM = 2560, 6912, 20, 5, 128
F32, F16, I2_S = 0, 1, 36
CHUNK = 1 << 24  # random values at a time


def metadata(layers, size):
    arch = "bitnet-b1.58"
    vocab = vocabulary.gpt2()
    fillers = size - len(vocab["tokenizer.ggml.tokens"])
    if fillers < 0:
        raise SystemExit(f"--vocabulary must be at least {size - fillers}")
    vocab["tokenizer.ggml.tokens"] += [f"<filler {i}>" for i in range(fillers)]
    vocab["tokenizer.ggml.token_type"] += [1] * fillers
    return {
        "general.architecture": arch,
        "general.name": "random 2B-4T",
        "general.file_type": 40,
        f"{arch}.context_length": 4096,
        f"{arch}.embedding_length": EMBEDDING,
        f"{arch}.block_count": layers,
        f"{arch}.feed_forward_length": FEED_FORWARD,
        f"{arch}.attention.head_count": HEADS,
        f"{arch}.attention.head_count_kv": KV_HEADS,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{arch}.rope.freq_base": 500000.0,
        f"{arch}.rope.dimension_count": HEAD_DIM,
        f"{arch}.vocab_size": size,
    } | vocab


def ternary(rng, rows, columns, gain):
    """Codes 0, 1, 2 at random, then the scale: products with unit inputs are about `gain`."""
    codes = rng.integers(0, 256, rows * columns // 4, dtype=np.uint8)
    both = codes & (codes >> 1) & 0x55  # low bits of the codes that are 3
    scale = np.float32(gain / np.sqrt(columns / 2))
    return (codes & ~both).tobytes() + scale.tobytes() + bytes(28)


def halves(rng, rows, columns, size):
    out = bytearray()
    left = rows * columns
    while left:
        n = min(left, CHUNK)
        out += (rng.standard_normal(n, dtype=np.float32) * np.float32(size)).astype(np.float16).tobytes()
        left -= n
    return bytes(out)


def tensors(rng, layers, size):
    def norm(name, width):
        w = (1 + 0.1 * rng.standard_normal(width)).astype(np.float32)
        return name, [width], F32, w.tobytes()

    def linear(name, rows, columns, gain):
        return name, [columns, rows], I2_S, ternary(rng, rows, columns, gain)

    attention, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    out = [("token_embd.weight", [EMBEDDING, size], F16,
            halves(rng, size, EMBEDDING, 3 / np.sqrt(EMBEDDING)))]
    for n in range(layers):
        blk = f"blk.{n}."
        out += [norm(blk + "attn_norm.weight", EMBEDDING),
                linear(blk + "attn_q.weight", attention, EMBEDDING, 1.5),
                linear(blk + "attn_k.weight", keys, EMBEDDING, 1.5),
                linear(blk + "attn_v.weight", keys, EMBEDDING, 1),
                norm(blk + "attn_sub_norm.weight", attention),
                linear(blk + "attn_output.weight", EMBEDDING, attention, 1),
                norm(blk + "ffn_norm.weight", EMBEDDING),
                linear(blk + "ffn_gate.weight", FEED_FORWARD, EMBEDDING, 1),
                linear(blk + "ffn_up.weight", FEED_FORWARD, EMBEDDING, 1),
                norm(blk + "ffn_sub_norm.weight", FEED_FORWARD),
                linear(blk + "ffn_down.weight", EMBEDDING, FEED_FORWARD, 1)]
    return out + [norm("output_norm.weight", EMBEDDING)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--vocabulary", type=int, default=128256)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    gguf_file.write(options.file, metadata(options.layers, options.vocabulary),
                    tensors(rng, options.layers, options.vocabulary))


if __name__ == "__main__":
    main()
