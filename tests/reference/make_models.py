#!/usr/bin/env python3
"""Makes small random models: every architecture, every weight type, every variant of a file.

    make_models.py OUTDIR

Deterministic: the name of a model seeds its generator (PCG64). Writes OUTDIR/models.json, a list of
    name         unique
    file         in OUTDIR; the first shard of a split set
    kind         "logits", or "vocabulary" for a file without tensors
    arch, weights, flags   flags: what the program needs besides -m, e.g. ["--i2s-layout", "b"]
    ids          token ids to run; chosen so that float32 rounding alone cannot change the answer
    may_reject   a clear rejection (exit code 3) is as good as right logits
    purpose      why it exists
"""

import argparse
import dataclasses
import json
import pathlib
import zlib

import gguf
import numpy as np

import gguf_file
import packing
import reference
import steadiness
import vocabulary

TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30,
         "TQ1_0": 34, "TQ2_0": 35, "I2_S": 36, "Q1_0": 41, "Q2_0": 42, "IQ1_BN": 134, "IQ2_BN": 135,
         "IQ2_BN_R4": 335, "BITNET32": 36, "SPLIT32": 36, "QK256": 36, "PQ2_0": 142, "PTQ1_0": 143, "STQ1_0": 43,
         # What is found under the number of Q2_0.
         "Q2_0_128": 42, "Q2_0_128_LAST": 42, "Q2_0_STQ": 42, "PQ2_0_TWO": 142}
PACKAGE_TYPES = 36  # ids from here on are unknown to the gguf package
TERNARY = ("I2_S", "BITNET32", "SPLIT32", "QK256", "TQ1_0", "TQ2_0", "Q1_0", "Q2_0", "IQ1_BN", "IQ2_BN", "IQ2_BN_R4",
           "PQ2_0", "PTQ1_0", "STQ1_0", "Q2_0_128", "Q2_0_128_LAST", "Q2_0_STQ", "PQ2_0_TWO")
CANDIDATES = 5000
# Where each search for steady ids ended last time. Only saves time: what it names is checked again.
STEADY_LISTS = pathlib.Path(__file__).with_name("steady_lists.json")


@dataclasses.dataclass
class Spec:
    name: str
    purpose: str
    arch: str = "bitnet-b1.58"
    weights: str = "I2_S"       # the seven linears of a layer; a dict overrides single ones
    weights_of: dict = dataclasses.field(default_factory=dict)
    layout: str = "a"
    embedding: str = "F16"
    output: str = ""            # empty: tied to the embedding
    n_embd: int = 128
    n_ff: int = 256
    n_layer: int = 2
    n_head: int = 2
    n_head_kv: int = 1
    head_size: int = 0          # 0: n_embd / n_head, and no key in the file
    n_rotated: int = 0          # elements of a head that rotate; 0: all
    # Of qwen35: each interval-th layer attends, the others keep a state of key_heads and value_heads.
    interval: int = 4
    key_heads: int = 2
    value_heads: int = 6
    state_size: int = 64        # of key heads and of value heads
    n_ahead: int = 0            # layers behind n_layer that predict further tokens
    vocab: str = "gpt2"
    theta: float = 10000.0
    rope: dict = dataclasses.field(default_factory=dict)  # rope.scaling.* keys
    rope_tensors: dict = dataclasses.field(default_factory=dict)  # name: divisors of a head's waves
    input_norms: bool = False   # of what each matrix of a layer reads; then all norms are F16
    scale_tensors: bool = False  # weights are -1, 0, 1; blk.N.<linear>.scale carries the scale
    keys: dict = dataclasses.field(default_factory=dict)  # more metadata
    version: int = 3
    split: bool = False
    flags: tuple = ()
    positions: int = 12         # token ids to run
    may_reject: bool = False


def rotation(block, names, tables=(), widths=()):
    """Keys of prism.hadamard.*, with random signs where there are widths."""
    rng = np.random.Generator(np.random.PCG64(block))
    keys = {"version": 1, "block_size": block, "transform": "normalized-sylvester-walsh-hadamard",
            "axis": "input-last-dimension", "sign_mode": "explicit" if widths else "identity",
            "weight_names": list(names)}
    if tables:
        keys["inverse_weight_names"] = list(tables)
    if widths:
        keys["sign_widths"] = list(widths)
        keys["sign_values"] = [np.int32(2 * sign - 1) for sign in rng.integers(0, 2, sum(widths))]
    return {f"prism.hadamard.{key}": value for key, value in keys.items()}


LINEARS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
STATE_LINEARS = ("attn_qkv", "attn_gate", "ssm_out", "ffn_gate", "ffn_up", "ffn_down")
TAPS = 4


def hybrid_names(n_layer, interval):
    """The matrices of the layers of a qwen35 model that are ternary in a rotated file."""
    return [f"blk.{n}.{name}.weight" for n in range(n_layer)
            for name in (STATE_LINEARS if (n + 1) % interval else LINEARS)]


def longrope_tensors(pairs):
    return {"rope_factors_short.weight": 1 + 0.02 * np.arange(pairs),
            "rope_factors_long.weight": 1 + 0.4 * np.arange(pairs)}


def minicpm_scales(embedding, parts, logits):
    return {"minicpm.embedding_scale": embedding, "minicpm.residual_scale": parts, "minicpm.logit_scale": logits}


def specs():
    s = Spec
    rows = [
        # One graph, four spellings.
        s("bitnet-i2s", "oldest architecture: SiLU, SPM vocabulary, every head its own keys", "bitnet",
          vocab="spm", n_head_kv=2),
        s("bitnet-25-i2s", "ReLU2 with an output matrix of its own", "bitnet-25", output="F16", theta=500000.0,
          n_embd=256, n_head=4, n_head_kv=2),
        s("b158-i2s", "the common case: ReLU2, tied, grouped queries, heads of 128", n_embd=256, theta=500000.0),
        s("b158-i2s-spm", "the same architecture means SiLU when the vocabulary is SPM", vocab="spm"),
        s("b158-spelled-without-dot", "architecture and key prefix spelled bitnet-b158", "bitnet-b158"),
        # Layouts of I2_S.
        s("b158-i2s-b", "layout B: groups of 64", layout="b", flags=("--i2s-layout", "b")),
        s("b158-i2s-c", "layout C: four rows per byte", layout="c", flags=("--i2s-layout", "c")),
        s("llama-i2s-b", "layout B with interleaved rotation", "llama", layout="b", output="F16",
          flags=("--i2s-layout", "b")),
        s("llama-i2s-c", "layout C with interleaved rotation", "llama", layout="c", output="F16",
          flags=("--i2s-layout", "c")),
        # Ternary types of llama.cpp.
        s("b158-tq1", "TQ1_0, scales differ between blocks of a row", weights="TQ1_0", n_embd=256, output="Q8_0",
          n_head=4, n_head_kv=2),
        s("b158-tq2", "TQ2_0, two blocks per row of ffn_down", weights="TQ2_0", n_embd=256, n_ff=512, n_layer=1),
        s("bitnet-25-tq2", "TQ2_0 with a Q6_K embedding, tied", "bitnet-25", weights="TQ2_0", embedding="Q6_K",
          n_embd=256, theta=500000.0),
        s("bitnet-tq1-scale", "weights of -1, 0, 1; blk.N.<linear>.scale carries the scale", "bitnet",
          weights="TQ1_0", n_embd=256, n_head=4, n_head_kv=4, vocab="spm", scale_tensors=True),
        s("bitnet-tq2-scale", "the same with TQ2_0", "bitnet", weights="TQ2_0", n_embd=256, n_head=4, n_head_kv=1,
          vocab="spm", scale_tensors=True),
        s("bitnet-i2s-scale", "an I2_S scale and a scale tensor multiply", "bitnet", vocab="spm", scale_tensors=True),
        # Other programs' ternary types.
        s("b158-iq1", "IQ1_BN: rows with scales of their own, five values to a byte", weights="IQ1_BN"),
        s("b158-iq2", "IQ2_BN, rows of 192 columns", weights="IQ2_BN", n_embd=192, n_ff=320),
        s("llama-iq2-r4", "IQ2_BN_R4: four rows interleaved", "llama", weights="IQ2_BN_R4", output="F16"),
        s("b158-q1", "Q1_0: no zeros, a scale for 128", weights="Q1_0", n_layer=1),
        s("b158-q2", "Q2_0: a scale for 64", weights="Q2_0", n_layer=1),
        s("b158-q2-128", "Q2_0 in groups of 128, recognised by its blocks; the embedding too, tied", weights="Q2_0_128",
          embedding="Q2_0_128", n_layer=1),
        s("llama-q2-last", "the same with the scale last, recognised by a key", "llama", weights="Q2_0_128_LAST",
          output="F16", n_layer=1, keys={"oxibonsai.quant_format": "TQ2_0_g128"}),
        s("llama-q2-stq", "STQ1_0 under the number of Q2_0", "llama", weights="Q2_0_STQ", output="F16", n_embd=256,
          n_layer=1),
        s("b158-stq1", "STQ1_0: of four weights one is zero", weights="STQ1_0", n_embd=256, n_layer=1),
        s("llama-pq2", "PQ2_0, embedding and head too", "llama", weights="PQ2_0", embedding="PQ2_0", output="PQ2_0",
          n_layer=1),
        s("llama-pq2-two", "PQ2_0 with +2: a dense product", "llama", weights="PQ2_0_TWO", output="F16", n_layer=1),
        s("b158-ptq1", "PTQ1_0, embedding and head too", weights="PTQ1_0", embedding="PTQ1_0", output="PTQ1_0",
          n_layer=1),
        s("b158-bitnet32", "I2_S of BitNet-rs with a scale for 32 inside", weights="BITNET32", n_layer=1),
        s("llama-split32", "the same with the scales in a tensor beside it", "llama", weights="SPLIT32", output="F16",
          n_layer=1),
        s("b158-qk256", "I2_S of BitNet-rs without scales: -2, -1, 1, 2", weights="QK256", n_layer=1, layout="qk256",
          n_embd=256, flags=("--i2s-layout", "qk256")),
        # Shapes for which tiles of TL1 and TL2 were published; run_e2e.py makes both of it.
        s("b158-tl-shapes", "one layer of the shapes of the 0.7B model", n_embd=1536, n_ff=4096, n_layer=1,
          n_head=16, n_head_kv=16, positions=3),
        # Shapes.
        s("bitnet-i2s-hd96", "heads of 96, the size of the 0.7B model", "bitnet", n_embd=384, n_ff=384, n_layer=1,
          n_head=4, n_head_kv=4, vocab="spm", embedding="Q8_0"),
        s("b158-i2s-deep", "six layers: errors between layers add up", n_layer=6, n_ff=128, embedding="Q8_0",
          positions=8),
        s("b158-i2s-long", "72 positions: more than one block of a paged cache", n_layer=1, n_ff=128, positions=66),
        s("llama-f16-long", "200 positions: four blocks, large angles", "llama", weights="F16", n_ff=96, n_layer=1,
          output="Q8_0", positions=200),
        s("b158-rope-linear", "rope.scaling: linear, factor 2", rope={"type": "linear", "factor": 2.0}),
        s("llama-rope-linear", "rope.scaling: linear, factor 2, interleaved", "llama",
          rope={"type": "linear", "factor": 2.0}, output="F16"),
        s("b158-rope-yarn", "YaRN: waves stretched one by one, larger queries and keys", theta=500000.0,
          rope={"type": "yarn", "factor": 4.0, "original_context_length": 64}),
        s("llama-rope-yarn", "YaRN with corners and a factor of its own, interleaved", "llama", output="F16",
          rope={"type": "yarn", "factor": 8.0, "original_context_length": 32, "attn_factor": 0.75,
                "yarn_beta_fast": 16.0, "yarn_beta_slow": 2.0}),
        s("b158-rope-dynamic", "dynamic NTK: the context decides the base",
          rope={"dynamic_factor": 2.0, "original_context_length": 64}),
        s("b158-rope-dynamic-short", "dynamic NTK within the original context: nothing happens", flags=("-c", "64"),
          rope={"dynamic_factor": 2.0, "original_context_length": 64}),
        s("llama-rope-long", "LongRoPE beyond the original context", "llama", output="F16", positions=8,
          rope={"type": "longrope", "original_context_length": 128, "attn_factor": 1.1902},
          rope_tensors=longrope_tensors(32)),
        s("llama-rope-long-short", "LongRoPE within the original context", "llama", output="F16", positions=8,
          flags=("-c", "128"), rope={"type": "longrope", "original_context_length": 128, "attn_factor": 1.1902},
          rope_tensors=longrope_tensors(32)),
        s("llama-rope-freqs", "rope_freqs.weight: Llama 3's stretched waves", "llama", output="F16", theta=500000.0,
          rope_tensors={"rope_freqs.weight": reference.llama3_divisors(64, 500000.0, 8.0, 1.0, 4.0, 32)}),
        s("b158-i2s-output", "the output head is I2_S: it reads quantised activations", output="I2_S"),
        s("b158-i2s-tied", "embedding and head are one I2_S matrix", embedding="I2_S"),
        s("llama-i2s", "plain llama graph with ternary weights", "llama", output="F16", theta=500000.0),
        s("llama-i2s-spm-mha", "llama, SPM vocabulary, every head its own keys", "llama", vocab="spm", output="F16",
          n_head_kv=2),
        s("llama-tq1", "llama with TQ1_0", "llama", weights="TQ1_0", n_embd=256, output="F16", n_layer=1),
        s("llama-tq2", "llama with TQ2_0, tied", "llama", weights="TQ2_0", n_embd=256, n_head=4, n_head_kv=2),
        s("llama-key-length", "attention.key_length: heads narrower than n_embd / n_head", "llama", n_embd=256,
          head_size=64, n_ff=128, output="Q8_0", embedding="Q8_0"),
        s("llama-hd96-q8_0", "rows of 192 and 160 columns: no multiple of 128", "llama", weights="Q8_0", n_embd=192, n_layer=1,
          n_ff=160, output="Q8_0", embedding="Q8_0"),
        s("llama-hd80", "heads of 80: int8 keys and values need whole blocks of 32", "llama", weights="F16", n_embd=160,
          n_layer=1, n_ff=160, output="F16"),
        s("llama-i2s-k192", "I2_S rows of 192 columns: groups of 128 straddle rows", "llama", n_embd=192, n_ff=256,
          output="F16", may_reject=True),
        s("llama-mixed", "one layer, five weight types", "llama", weights="Q4_K", n_embd=256, n_ff=256, n_layer=1,
          weights_of={"attn_q": "TQ2_0", "attn_k": "F16", "attn_v": "TQ1_0", "ffn_down": "Q6_K"}, output="BF16"),
        s("b158-i2s-embedding", "the embedding itself is I2_S, the head is not", embedding="I2_S", output="F16"),
        # Models that were trained on floats: groups of activations have scales.
        s("qwen3-q2", "norms of heads, groups of 64 in weights and of 32 in activations, tied", "qwen3", weights="Q2_0",
          embedding="Q2_0", n_embd=256, n_ff=320, n_head=4, n_head_kv=2, theta=1000000.0, positions=6),
        s("qwen3-q2-yarn", "YaRN, heads wider than n_embd / n_head, a head of its own", "qwen3", weights="Q2_0",
          embedding="Q2_0", output="Q2_0", head_size=128, n_ff=256, theta=1000000.0, positions=5, n_layer=1,
          rope={"type": "yarn", "factor": 4.0, "original_context_length": 64}),
        s("qwen3-q1", "Q1_0: groups of 128 in weights", "qwen3", weights="Q1_0", embedding="F16", n_layer=1,
          positions=6),
        s("qwen3-tq2-128", "groups of 256 in weights, of 128 in activations", "qwen3", weights="TQ2_0", n_embd=256,
          n_layer=1, positions=6, flags=("--activations", "group128")),
        s("qwen3-q2-128", "groups of 64 in weights, of 128 in activations", "qwen3", weights="Q2_0", n_layer=1,
          n_embd=128, n_ff=256, positions=6, flags=("--activations", "group128")),
        s("qwen3-i2s", "one scale for each matrix: a row of activations has one, too", "qwen3", output="F16"),
        s("qwen3-i2s-group", "one scale for each matrix, groups of 64 in activations", "qwen3", n_layer=1, positions=6,
          flags=("--activations", "group64")),
        s("llama-q2-row", "groups in weights, a row of activations", "llama", weights="Q2_0", output="F16", n_layer=1,
          flags=("--activations", "row")),
        s("rotated-pq2", "all rotated in blocks of 128 with signs, the embedding and its tied head too", "qwen3",
          weights="PQ2_0", embedding="PQ2_0", n_embd=256, n_ff=384, positions=5,
          keys=rotation(128, [f"blk.{n}.{name}.weight" for n in (0, 1) for name in LINEARS],
                        ["token_embd.weight"], [256, 384])),
        s("rotated-q2-some", "some rotated, without signs; readers of one input differ", "qwen3",
          weights="Q2_0", output="F16", n_layer=1, positions=6,
          keys=rotation(64, ["blk.0.attn_q", "blk.0.attn_v", "blk.0.ffn_up", "blk.0.ffn_down", "output"])),
        s("qwen3-q2-float", "nothing is rounded: weights become Q8_0", "qwen3", weights="Q2_0", output="F16", n_layer=1,
          flags=("--activations", "float")),
        s("b158-i2s-float", "nothing is rounded: weights become F32", n_layer=1, flags=("--activations", "float")),
        s("qwen3-f16", "plain matrices", "qwen3", weights="F16", output="Q8_0"),
        # Windows in most layers, norms behind each part of a layer.
        s("gemma3-f16", "seven layers, a window of five: one layer sees all 24", "gemma3", weights="F16", n_ff=160,
          n_layer=7, theta=1000000.0, positions=24, keys={"gemma3.attention.sliding_window": 5}),
        s("gemma3-q2", "groups of 64 in weights, of 32 in activations, a window of three", "gemma3", weights="Q2_0",
          n_ff=128, n_layer=7, theta=1000000.0, positions=5, keys={"gemma3.attention.sliding_window": 3}),
        s("gemma3-i2s-linear", "each third layer sees all and stretches RoPE, the local base is another", "gemma3",
          vocab="spm", head_size=128, n_layer=3, n_head=3, n_head_kv=1, positions=8, theta=500000.0, output="F16",
          rope={"type": "linear", "factor": 8.0}, weights_of={"ffn_gate": "F16", "ffn_up": "F16", "ffn_down": "F16"},
          keys={"gemma3.attention.sliding_window": 4, "gemma3.attention.sliding_window_pattern": 3,
                "gemma3.rope.freq_base_swa": 5000.0}),
        s("gemma3-q2-odd", "each layer says by itself whether it has a window; queries times another scale", "gemma3",
          weights="Q2_0", embedding="Q2_0", n_embd=192, n_ff=192, n_head=3, n_head_kv=3, n_layer=3, positions=6,
          keys={"gemma3.attention.sliding_window": 1, "gemma3.attention.sliding_window_pattern": [True, False, True],
                "gemma3.attention.scale": 0.08}),
        # BitNet's embedding models, in the forms of their published files.
        s("qwen3-embedding", "a norm of what each matrix reads, heads wider than n_embd / n_head, F16 norms", "qwen3",
          input_norms=True, head_size=128, n_ff=384, theta=1000000.0, positions=9,
          keys={"qwen3.pooling_type": 3, "tokenizer.ggml.add_eos_token": True}),
        s("gemma3-embedding", "such norms beside Gemma's, no layer has a window", "gemma3", input_norms=True,
          vocab="spm", head_size=128, n_layer=3, n_ff=128, theta=500000.0, positions=5),
        # What is looked up, what each part of a layer adds and what the head reads are scaled.
        s("minicpm-f16", "plain matrices, scales of the published models", "minicpm", weights="F16", output="F16",
          n_ff=160, n_layer=3, positions=24, vocab="spm", keys=minicpm_scales(12.0, 1.4 / 3**0.5, 4.0)),
        s("minicpm-q2", "groups in weights and in activations, tied, a ternary head", "minicpm", weights="Q2_0",
          embedding="Q2_0", positions=6, keys=minicpm_scales(4.0, 2.0, 0.25)),
        s("minicpm-i2s-long", "one scale for each matrix; LongRoPE beyond the original context", "minicpm",
          output="F16", positions=8, keys=minicpm_scales(12.0, 1.4 / 2**0.5, 0.5),
          rope={"type": "longrope", "original_context_length": 128, "attn_factor": 1.1902},
          rope_tensors=longrope_tensors(32)),
        # States in most layers, gated attention in each fourth.
        s("qwen35-f32", "plain matrices, 72 positions: more than a block of a paged cache", "qwen35", weights="F32",
          embedding="F32", output="F32", head_size=64, n_head=4, n_head_kv=2, n_rotated=16, n_layer=5, n_ff=160,
          state_size=32, theta=1e7, positions=72, vocab="spm"),
        s("qwen35-f16-tied", "each second layer attends, as many value heads as key heads", "qwen35", weights="F16",
          head_size=32, n_rotated=8, n_layer=4, interval=2, n_ff=160, key_heads=3, value_heads=3, state_size=32,
          theta=1e7, positions=24),
        s("qwen35-pq2", "groups of 128 in weights, of 32 in activations; decay and beta of BF16", "qwen35",
          weights="PQ2_0", embedding="PQ2_0", output="PQ2_0", head_size=64, n_head=4, n_head_kv=2, n_rotated=16,
          n_layer=5, n_ff=128, theta=1e7, positions=7),
        s("qwen35-q2-tied", "every matrix is ternary, those of decay and beta too", "qwen35", weights="Q2_0",
          embedding="Q2_0", head_size=64, n_rotated=16, n_layer=4, n_ff=128, value_heads=4, theta=1e7, positions=7,
          weights_of={"ssm_alpha": "Q2_0", "ssm_beta": "Q2_0"}),
        s("qwen35-rotated", "all rotated, value heads grouped by key heads before they are", "qwen35", weights="PQ2_0",
          embedding="PQ2_0", output="PQ2_0", head_size=64, n_head=4, n_head_kv=2, n_rotated=16, n_layer=5, n_ff=128,
          theta=1e7, positions=6,
          keys=rotation(128, hybrid_names(5, 4) + ["output.weight"], ["token_embd.weight"], [128, 256, 384]) |
          {"prism.hadamard.gdn_v_grouped": True}),
        s("qwen35-ahead", "the last layer predicts further tokens: no part of the graph", "qwen35", weights="F16",
          output="F16", head_size=64, n_head=4, n_head_kv=2, n_rotated=16, n_layer=4, n_ahead=1, n_ff=96,
          state_size=32, theta=1e7),
        s("qwen35-pq2-float", "nothing is rounded: weights become Q8_0", "qwen35", weights="PQ2_0", output="F16",
          head_size=64, n_rotated=16, n_layer=4, n_ff=128, theta=1e7, flags=("--activations", "float")),
        # The container.
        s("b158-v2", "GGUF version 2", version=2),
        s("b158-split", "two shards with an I2_S model", split=True),
        s("llama-tq2-split", "two shards written by the gguf package", "llama", weights="TQ2_0", n_embd=256,
          n_layer=1, output="F16", split=True),
    ]
    # Every companion type as embedding and head of a ternary model, and as every matrix of a llama.
    for kind in ("F32", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"):
        wide = kind.endswith("_K")
        rows.append(s(f"b158-embedding-{kind.lower()}", f"{kind} embedding that is the output head too",
                      embedding=kind, n_embd=256 if wide else 128, n_ff=128 if wide else 256))
        rows.append(s(f"b158-output-{kind.lower()}", f"{kind} output head, F16 embedding",
                      output=kind, n_embd=256 if wide else 128, n_ff=128, n_layer=1))
    for kind in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"):
        wide = kind.endswith("_K")
        rows.append(s(f"llama-{kind.lower()}", f"{kind} everywhere: no activation quantisation", "llama",
                      weights=kind, embedding=kind, output=kind, n_embd=256 if wide else 128,
                      n_ff=256 if wide else 160, n_head=4 if wide else 2, vocab="spm", n_layer=1 if wide or kind == "F32" else 2))
    rows.append(dataclasses.replace(
        next(r for r in rows if r.name == "b158-i2s"), name="b158-i2s-silu", flags=("--activation", "silu"),
        purpose="the b158-i2s file with the activation overridden"))
    rows.append(dataclasses.replace(
        next(r for r in rows if r.name == "b158-i2s-spm"), name="b158-i2s-spm-relu2",
        flags=("--activation", "relu2"), purpose="the b158-i2s-spm file with the activation overridden"))
    return rows


# ---------------------------------------------------------------- one model


def random_ternary(rng, rows, cols):
    return rng.integers(-1, 2, (rows, cols)).astype(np.int8)


def ternary_tensor(rng, spec, kind, rows, cols, gain):
    """Bytes of random ternary weights whose product with unit inputs has about `gain` as its size."""
    t = random_ternary(rng, rows, cols)
    scale = gain / np.sqrt(cols * 2 / 3)
    if kind == "I2_S":
        return packing.i2s(t, scale, spec.layout)
    if kind.startswith("IQ"):
        pack = {"IQ1_BN": packing.iq1_bn, "IQ2_BN": packing.iq2_bn, "IQ2_BN_R4": packing.iq2_bn_r4}[kind]
        return pack(t, scale * rng.uniform(0.75, 1.25, rows))
    if kind == "Q1_0":
        return packing.q1_0(2 * (t >= 0) - 1, scale * 0.8 * rng.uniform(0.75, 1.25, rows * cols // 128))
    if kind == "Q2_0":
        return packing.q2_0(t + 1, scale * rng.uniform(0.75, 1.25, rows * cols // 64))
    if kind in ("PQ2_0", "PQ2_0_TWO", "Q2_0_128", "Q2_0_128_LAST", "PTQ1_0"):
        d = scale * rng.uniform(0.75, 1.25, rows * cols // 128)
        if kind == "PTQ1_0":
            return packing.ptq1_0(t, d)
        if kind == "PQ2_0_TWO":
            t = np.where(rng.uniform(size=t.shape) < 0.05, 2, t)
        return packing.q2_0(t + 1, d, 128, kind == "Q2_0_128_LAST")
    if kind in ("STQ1_0", "Q2_0_STQ"):
        fours = 2 * rng.integers(0, 2, (rows * cols // 64, 16, 4)).astype(np.int8) - 1
        np.put_along_axis(fours, rng.integers(0, 4, (rows * cols // 64, 16, 1)), 0, axis=2)
        t = fours.swapaxes(1, 2).reshape(rows, cols)
        return packing.stq1_0(t, scale * rng.uniform(0.75, 1.25, rows * cols // 256))
    if kind == "BITNET32":
        return packing.bitnet32(t, scale * rng.uniform(0.75, 1.25, rows * cols // 32))
    if kind == "SPLIT32":
        return packing.split32(t)
    if kind == "QK256":  # -2 to 2 without a zero; a norm behind each makes the size of no account
        return packing.qk256(np.where(t == 0, 2 * rng.choice((-1, 1), t.shape), t))
    d = scale * rng.uniform(0.75, 1.25, (rows, cols // 256))
    if spec.scale_tensors:
        d = np.ones_like(d)
    return (packing.tq1_0 if kind == "TQ1_0" else packing.tq2_0)(t, d)


def dense_tensor(rng, kind, rows, cols, size):
    """Bytes of random values with standard deviation `size`."""
    blocks = rows * cols // 256
    if kind == "Q4_K":  # value = d * sc * q - dmin * mn; q averages 7.5, so mn = 7.5 sc centres it
        sc = rng.integers(20, 64, (blocks, 8))
        mn = rng.integers(20, 64, (blocks, 8))
        d = rng.uniform(0.8, 1.2, blocks) * size / (4.6 * 42)
        return packing.q4_k(d, 7.5 * d, sc, mn, rng.integers(0, 16, (blocks, 256)))
    if kind == "Q6_K":
        sc = rng.integers(-127, 128, (blocks, 16))
        d = rng.uniform(0.8, 1.2, blocks) * size / (18.5 * 73)
        return packing.q6_k(d, sc, rng.integers(0, 64, (blocks, 256)))
    w = (size * rng.standard_normal((rows, cols))).astype(np.float32)
    if kind == "F32":
        return w.tobytes()
    return gguf.quants.quantize(w, gguf.GGMLQuantizationType(TYPES[kind])).tobytes()


def make_tensor(rng, spec, name, kind, rows, cols, size, gain):
    if kind in TERNARY:
        data = ternary_tensor(rng, spec, kind, rows, cols, gain)
    else:
        data = dense_tensor(rng, kind, rows, cols, size)
    return (name, [cols, rows], TYPES[kind], data)


def make_hybrid_layer(rng, spec, layer, attends, norm, linear, out):
    """A layer of qwen35."""
    def vector(name, values):
        values = np.asarray(values, np.float32)
        out.append((f"{layer}.{name}", list(values.shape[::-1]), TYPES["F32"], values.tobytes()))

    norm(f"{layer}.attn_norm.weight", spec.n_embd)
    if attends:
        heads, keys = spec.n_head * spec.head_size, spec.n_head_kv * spec.head_size
        linear(layer, "attn_q", 2 * heads, spec.n_embd, 1.5)
        linear(layer, "attn_k", keys, spec.n_embd, 1.5)
        linear(layer, "attn_v", keys, spec.n_embd, 1)
        norm(f"{layer}.attn_q_norm.weight", spec.head_size)
        norm(f"{layer}.attn_k_norm.weight", spec.head_size)
        linear(layer, "attn_output", spec.n_embd, heads, 2)
    else:
        keys, values = spec.key_heads * spec.state_size, spec.value_heads * spec.state_size
        linear(layer, "attn_qkv", 2 * keys + values, spec.n_embd, 1)
        linear(layer, "attn_gate", values, spec.n_embd, 1.5)
        linear(layer, "ssm_alpha", spec.value_heads, spec.n_embd, 1)
        linear(layer, "ssm_beta", spec.value_heads, spec.n_embd, 1)
        # Channels differ in how they weigh positions; states forget half within one to twenty tokens.
        vector("ssm_conv1d.weight", 0.7 * rng.standard_normal((2 * keys + values, TAPS)))
        vector("ssm_dt.bias", rng.uniform(-1, 1, spec.value_heads))
        vector("ssm_a", -np.exp(rng.uniform(-3, 0, spec.value_heads)))
        norm(f"{layer}.ssm_norm.weight", spec.state_size)
        linear(layer, "ssm_out", spec.n_embd, values, 1.5)
    norm(f"{layer}.post_attention_norm.weight", spec.n_embd)
    linear(layer, "ffn_gate", spec.n_ff, spec.n_embd, 1)
    linear(layer, "ffn_up", spec.n_ff, spec.n_embd, 1)
    linear(layer, "ffn_down", spec.n_embd, spec.n_ff, 2.5)


def make_dense_layer(spec, layer, norm, linear):
    """A layer of attention and feed-forward, of every architecture but qwen35."""
    head = spec.head_size or spec.n_embd // spec.n_head
    heads, keys = spec.n_head * head, spec.n_head_kv * head
    is_bitnet = spec.arch in reference.BITNET_ARCHITECTURES
    down = 1.0 if is_bitnet else 2.5  # without a sub-norm the gated values are small
    norm(f"{layer}.attn_norm.weight", spec.n_embd)
    linear(layer, "attn_q", heads, spec.n_embd, 1.5)
    linear(layer, "attn_k", keys, spec.n_embd, 1.5)
    linear(layer, "attn_v", keys, spec.n_embd, 1)
    if spec.arch in ("qwen3", "gemma3"):
        norm(f"{layer}.attn_q_norm.weight", head)
        norm(f"{layer}.attn_k_norm.weight", head)
    if is_bitnet:
        norm(f"{layer}.attn_sub_norm.weight", heads)
    linear(layer, "attn_output", spec.n_embd, heads, 1)
    if spec.arch == "gemma3":
        norm(f"{layer}.post_attention_norm.weight", spec.n_embd)
    norm(f"{layer}.ffn_norm.weight", spec.n_embd)
    linear(layer, "ffn_gate", spec.n_ff, spec.n_embd, 1)
    linear(layer, "ffn_up", spec.n_ff, spec.n_embd, 1)
    if is_bitnet:
        norm(f"{layer}.ffn_sub_norm.weight", spec.n_ff)
    linear(layer, "ffn_down", spec.n_embd, spec.n_ff, down)
    if spec.arch == "gemma3":
        norm(f"{layer}.post_ffw_norm.weight", spec.n_embd)


def make_tensors(rng, spec, n_vocab):
    # Logits spread over about three units: they are sums of n_embd products with unit inputs.
    size = 3 / np.sqrt(spec.n_embd)
    out = []

    def norm(name, width):
        w = (1 + 0.1 * rng.standard_normal(width)).astype(np.float16 if spec.input_norms else np.float32)
        out.append((name, [width], TYPES["F16" if spec.input_norms else "F32"], w.tobytes()))

    def linear(layer, name, rows, cols, gain):
        usual = spec.weights if name not in ("ssm_alpha", "ssm_beta") or spec.weights not in TERNARY else "BF16"
        kind = spec.weights_of.get(name, usual)
        if spec.input_norms:
            norm(f"{layer}.{name}_norm_in.weight", cols)
        own = 1.0 if spec.scale_tensors and kind != "I2_S" else gain
        out.append(make_tensor(rng, spec, f"{layer}.{name}.weight", kind, rows, cols, gain / np.sqrt(cols), own))
        if kind == "SPLIT32":
            scales = gain / np.sqrt(cols * 2 / 3) * rng.uniform(0.75, 1.25, rows * cols // 32)
            out.append((f"{layer}.{name}.scale", [scales.size], TYPES["F32"], scales.astype(np.float32).tobytes()))
        if spec.scale_tensors:
            scale = 1.25 if kind == "I2_S" else gain / np.sqrt(cols * 2 / 3)
            out.append((f"{layer}.{name}.scale", [1], TYPES["F32"], np.float32(scale).tobytes()))

    # Gemma's rows are scaled up: small ones leave room for what layers add, or each token would repeat itself.
    spread = 1 if spec.arch == "gemma3" else 3 / spec.keys.get("minicpm.embedding_scale", 1.0)
    out.append(make_tensor(rng, spec, "token_embd.weight", spec.embedding, n_vocab, spec.n_embd, size * spread / 3,
                           spread))
    if spec.arch == "qwen35":
        for n in range(spec.n_layer + spec.n_ahead):
            attends = n >= spec.n_layer or (n + 1) % spec.interval == 0
            make_hybrid_layer(rng, spec, f"blk.{n}", attends, norm, linear, out)
        for n in range(spec.n_layer, spec.n_layer + spec.n_ahead):
            for name in ("enorm", "hnorm", "shared_head_norm"):
                norm(f"blk.{n}.nextn.{name}.weight", spec.n_embd)
            linear(f"blk.{n}", "nextn.eh_proj", spec.n_embd, 2 * spec.n_embd, 1)
    for n in range(spec.n_layer if spec.arch != "qwen35" else 0):
        make_dense_layer(spec, f"blk.{n}", norm, linear)
    norm("output_norm.weight", spec.n_embd)
    for name, divisors in spec.rope_tensors.items():
        out.append((name, [len(divisors)], TYPES["F32"], np.array(divisors, np.float32).tobytes()))
    if spec.output:
        out.append(make_tensor(rng, spec, "output.weight", spec.output, n_vocab, spec.n_embd,
                               size * spec.keys.get("minicpm.logit_scale", 1.0), 3))
    return out


def make_metadata(spec, vocab):
    a = spec.arch
    metadata = {
        "general.architecture": a,
        "general.name": spec.name,
        "general.file_type": {"I2_S": 40, "TQ1_0": 36, "TQ2_0": 37}.get(spec.weights, 0),
        f"{a}.context_length": 256,
        f"{a}.embedding_length": spec.n_embd,
        f"{a}.block_count": spec.n_layer + spec.n_ahead,
        f"{a}.feed_forward_length": spec.n_ff,
        f"{a}.attention.head_count": spec.n_head,
        f"{a}.attention.head_count_kv": spec.n_head_kv,
        f"{a}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{a}.rope.freq_base": spec.theta,
        f"{a}.rope.dimension_count": spec.n_rotated or spec.head_size or spec.n_embd // spec.n_head,
        f"{a}.vocab_size": len(vocab["tokenizer.ggml.tokens"]),
    }
    if spec.head_size:
        metadata[f"{a}.attention.key_length"] = spec.head_size
        metadata[f"{a}.attention.value_length"] = spec.head_size
    if a == "gemma3" and not spec.input_norms:
        metadata[f"{a}.attention.sliding_window"] = 4
    if a == "minicpm":
        metadata |= minicpm_scales(1.0, 1.0, 1.0)
    if a == "qwen35":
        metadata |= {f"{a}.full_attention_interval": spec.interval, f"{a}.ssm.conv_kernel": TAPS,
                     f"{a}.ssm.state_size": spec.state_size, f"{a}.ssm.group_count": spec.key_heads,
                     f"{a}.ssm.time_step_rank": spec.value_heads,
                     f"{a}.ssm.inner_size": spec.value_heads * spec.state_size,
                     f"{a}.rope.dimension_sections": [11, 11, 10, 0]}
        if spec.n_ahead:
            metadata[f"{a}.nextn_predict_layers"] = spec.n_ahead
    for key, value in spec.rope.items():
        metadata[f"{a}.rope.scaling.{key}"] = value
    return metadata | spec.keys | vocab


def write_with_package(path, arch, metadata, tensors, split):
    """The same through gguf.GGUFWriter: a second opinion on the container."""
    writer = gguf.GGUFWriter(path, arch, split_max_tensors=(len(tensors) + 1) // 2 if split else 0)
    for key, value in metadata.items():
        if key == "general.architecture":
            continue  # the writer has put it there
        add = (writer.add_array if isinstance(value, list) else writer.add_bool if isinstance(value, bool)
               else writer.add_uint32 if isinstance(value, int) else writer.add_float32
               if isinstance(value, float) else writer.add_string)
        add(key, value)
    for name, shape, kind, data in tensors:
        kind = gguf.GGMLQuantizationType(kind)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        raw = np.frombuffer(data, np.uint8).reshape(*shape[:0:-1], shape[0] // block * size)
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(directory, spec):
    """Writes the files of one model; returns the name of its (first) file."""
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(spec.name.encode())))
    vocab = vocabulary.gpt2() if spec.vocab == "gpt2" else vocabulary.spm()
    metadata = make_metadata(spec, vocab)
    tensors = make_tensors(rng, spec, len(vocab["tokenizer.ggml.tokens"]))
    path = directory / f"{spec.name}.gguf"
    own = spec.version != 3 or any(kind >= PACKAGE_TYPES for _, _, kind, _ in tensors)
    if not own:
        write_with_package(path, spec.arch, metadata, tensors, spec.split)
        return f"{spec.name}-00001-of-00002.gguf" if spec.split else path.name
    if spec.split:
        return gguf_file.write_split(directory, spec.name, metadata, tensors)
    gguf_file.write(path, metadata, tensors, spec.version)
    return path.name


def token_ids(path, spec, vocab, start):
    """Random ids (no fixed BOS: it might not be steady) and the number of the list that was taken:
    the first steady one from list `start` on."""
    flags = dict(zip(spec.flags[::2], spec.flags[1::2]))
    options = {"layout": spec.layout, "activation": flags.get("--activation"),
               "context": int(flags.get("-c", 0)) or None, "activations": flags.get("--activations", "auto")}
    counter, disturbed = steadiness.TieCounter(path, **options), steadiness.Disturbed(path, **options)
    n_vocab = len(vocab["tokenizer.ggml.tokens"])
    for n in range(start, start + CANDIDATES):
        rng = np.random.Generator(np.random.PCG64(zlib.crc32(f"{spec.name} ids {n}".encode())))
        ids = rng.integers(0, n_vocab, spec.positions).tolist()
        if counter.is_steady(ids) and steadiness.survives(disturbed, ids):
            return ids, n
    raise RuntimeError(f"{spec.name}: none of {CANDIDATES} lists of ids is steady; ask for fewer positions")


def make_all(directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    manifest, written, taken = [], {}, {}
    starts = json.loads(STEADY_LISTS.read_text()) if STEADY_LISTS.exists() else {}
    for spec in specs():
        shared = spec.name.removesuffix("-silu").removesuffix("-relu2")
        written[spec.name] = written[shared] if shared in written else write_model(directory, spec)
        vocab = vocabulary.gpt2() if spec.vocab == "gpt2" else vocabulary.spm()
        ids, taken[spec.name] = token_ids(directory / written[spec.name], spec, vocab, starts.get(spec.name, 0))
        kinds = sorted({spec.weights, *spec.weights_of.values()})
        manifest.append({
            "name": spec.name, "file": written[spec.name], "kind": "logits", "arch": spec.arch,
            "weights": "+".join(kinds) + (f" {spec.layout.upper()}" if "I2_S" in kinds else ""),
            "embedding": spec.embedding, "output": spec.output or "tied", "flags": list(spec.flags),
            "ids": ids,
            "may_reject": spec.may_reject, "purpose": spec.purpose})
    for name, vocab in (("vocabulary-gpt2", vocabulary.gpt2("gpt-2")), ("vocabulary-spm", vocabulary.spm())):
        gguf_file.write(directory / f"{name}.gguf",
                        {"general.architecture": "llama", "general.name": name} | vocab, [])
        manifest.append({"name": name, "file": f"{name}.gguf", "kind": "vocabulary", "arch": "llama",
                         "weights": "none", "flags": [], "ids": [], "may_reject": False,
                         "purpose": "metadata and vocabulary without tensors: tokenize works, logits cannot"})
    (directory / "models.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest, taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--remember", action="store_true", help=f"write {STEADY_LISTS.name}")
    args = parser.parse_args()
    manifest, taken = make_all(args.outdir)
    if args.remember:
        STEADY_LISTS.write_text(json.dumps(taken, indent=1) + "\n")
    print(f"{len(manifest)} models described in {args.outdir / 'models.json'}")


if __name__ == "__main__":
    main()
