#!/usr/bin/env python3
"""The independent implementation: a slow, plain forward pass of ternary language models in float64.

    reference.py logits MODEL --ids "1 2 3" [--all] -o F.npy

Written from the description of the formats and of the model alone; it shares no code with the core.

Shapes    logits float64 [positions, vocabulary]; hidden states float64 [positions, n_embd].
Exact     activation quantisation (float32 scale, float32 product, half to even, clamped to
          -128..127) and the integer sums; everything else is float64.
Linears   ternary weights (those of TERNARY) see quantised activations; weights of any other
          type are plain matrix products, in every architecture. Embeddings and norms never
          quantise activations, whatever their type.
Groups    of 32, 64 or 128 activations share a scale where a model was trained on floats: outside
          of the bitnet architectures, where ternary weights have several scales in a row.
Hybrids   qwen35: most layers keep a state that the gated delta rule changes token by token, the others attend.
Rejected   what the description does not cover: partial rotation elsewhere, biases, key and value
          heads of different size. A model of that kind ends with an error, never with numbers.
"""

import argparse
import pathlib
import re
import sys

import gguf
import numpy as np

I2_S = 36  # bitnet.cpp's number; the gguf package knows nothing under it
TQ1_0, TQ2_0 = 34, 35
Q1_0, Q2_0, STQ1_0, IQ1_BN, IQ2_BN, PQ2_0, PTQ1_0, IQ2_BN_R4 = 41, 42, 43, 134, 135, 142, 143, 335
TERNARY = (I2_S, TQ1_0, TQ2_0, Q1_0, Q2_0, STQ1_0, IQ1_BN, IQ2_BN, PQ2_0, PTQ1_0, IQ2_BN_R4)
GROUPED = {Q1_0: ((128, 18),), Q2_0: ((64, 18), (128, 34), (256, 42)), STQ1_0: ((256, 42),),
           PQ2_0: ((128, 34),), PTQ1_0: ((128, 28),)}  # elements and bytes of a block, where more than one fits

BITNET_ARCHITECTURES = ("bitnet", "bitnet-25", "bitnet-b1.58", "bitnet-b158")
ARCHITECTURES = BITNET_ARCHITECTURES + ("llama", "qwen3", "gemma3", "qwen35", "minicpm")


class Unsupported(Exception):
    """The model holds something that the description does not cover."""


# ---------------------------------------------------------------- file


class Reader(gguf.GGUFReader):
    """The public reader up to the tensor infos; their types stay numbers, so that 36 is legal."""

    def _build_tensors(self, start_offs, fields):
        self.infos = {}
        for field in fields:
            _, name, _, dims, kind, offset = field.parts
            self.infos[bytes(name).decode()] = (
                [int(d) for d in dims], int(kind[0]), start_offs + int(offset[0]))


class Tensor:
    """One tensor on disk. shape: [ne0, ne1, ...], ne0 = input width, contiguous."""

    def __init__(self, name, shape, kind, raw):
        self.name, self.shape, self.kind, self.raw = name, shape, kind, raw
        self.scale_last = False  # of groups of 128 under Q2_0: the file says so
        self.scales = None  # float64, of a tensor whose scales are a tensor beside it

    @property
    def cols(self):
        return self.shape[0]

    @property
    def rows(self):
        return int(np.prod(self.shape[1:], dtype=np.int64))


def tensor_bytes(shape, kind, name, room):
    """`room`: bytes up to the next tensor, by which the flavours of type 36 differ."""
    count = int(np.prod(shape, dtype=np.int64))
    if kind == I2_S:
        return next((size for size in (count // 4 + 32, bitnet32_bytes(count), count // 4)
                     if padded(size) == padded(room)), count // 4 + 32)
    if kind in GROUPED:
        sizes = [count // elements * size for elements, size in GROUPED[kind]]
        return next((size for size in sizes if padded(size) == padded(room)), sizes[0])
    if kind == IQ1_BN:
        return count // shape[0] * (2 + 13 * shape[0] // 64)
    if kind in (IQ2_BN, IQ2_BN_R4):
        return count // shape[0] * (4 + shape[0] // 4)
    try:
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    except ValueError:
        raise Unsupported(f"{name}: unknown weight type {kind}") from None
    if shape[0] % block:
        raise Unsupported(f"{name}: {shape[0]} columns are no multiple of the block size {block}")
    return count // block * size


def padded(size):
    return -(-size // 32) * 32


def bitnet32_bytes(count):
    return count // 32 * 10


def shard_paths(path):
    """All files of a split set, given its first; otherwise just the file itself."""
    match = re.fullmatch(r"(.*)-(\d{5})-of-(\d{5})\.gguf", path.name)
    if not match:
        return [path]
    prefix, _, count = match.groups()
    return [path.with_name(f"{prefix}-{i:05d}-of-{count}.gguf") for i in range(1, int(count) + 1)]


def read_file(path):
    """Metadata (of the first shard) and tensors (of all of them)."""
    metadata, tensors = {}, {}
    for n, shard in enumerate(shard_paths(pathlib.Path(path))):
        reader = Reader(shard)
        if n == 0:
            metadata = {key: field.contents() for key, field in reader.fields.items()}
        ends = sorted({offset for _, _, offset in reader.infos.values()} | {len(reader.data)})
        for name, (shape, kind, offset) in reader.infos.items():
            room = ends[ends.index(offset) + 1] - offset
            size = tensor_bytes(shape, kind, name, room)
            raw = np.asarray(reader.data[offset:offset + size])
            if raw.size != size:
                raise Unsupported(f"{name}: {size} bytes wanted, {raw.size} left in {shard.name}")
            tensors[name] = Tensor(name, shape, kind, raw)
            tensors[name].scale_last = "oxibonsai.quant_format" in metadata
    for name, tensor in tensors.items():
        beside = tensors.get(name.removesuffix(".weight") + ".scale")
        if beside and beside.kind == 0 and beside.raw.size == 4 * (tensor.rows * tensor.cols // 32):
            tensor.scales = beside.raw.view(np.float32).astype(float)
    return metadata, tensors


# ---------------------------------------------------------------- weights


def i2s_ternary(tensor, layout):
    """int8 [rows, cols] and the one scale of an I2_S tensor."""
    rows, cols, count = tensor.rows, tensor.cols, tensor.rows * tensor.cols
    packed = tensor.raw[:count // 4]
    planes = np.stack([packed >> 6, (packed >> 4) & 3, (packed >> 2) & 3, packed & 3])
    if layout == "a":    # plane, group, 32 bytes -> group, plane, byte
        codes = planes.reshape(4, -1, 32).swapaxes(0, 1).reshape(rows, cols)
    elif layout == "b":  # the same with 16-byte groups
        codes = planes.reshape(4, -1, 16).swapaxes(0, 1).reshape(rows, cols)
    elif layout == "c":  # plane = row within a group of four
        codes = planes.reshape(4, -1, cols).swapaxes(0, 1).reshape(rows, cols)
    else:
        raise ValueError(f"I2_S layout must be a, b or c, not {layout!r}")
    t = codes.astype(np.int8) - 1
    t[codes == 3] = 0  # never written by a real packer; harmless by decree
    return t, float(tensor.raw[count // 4:count // 4 + 4].view(np.float32)[0])


def tq2_ternary(tensor):
    """int8 [rows, cols] and float64 scales [rows, cols / 256] of a TQ2_0 tensor."""
    blocks = tensor.raw.reshape(-1, 66)
    qs = blocks[:, :64].reshape(-1, 2, 1, 32)
    codes = (qs >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)) & 3
    d = np.ascontiguousarray(blocks[:, 64:]).view(np.float16).astype(float)
    return codes.reshape(tensor.rows, tensor.cols).astype(np.int8) - 1, d.reshape(tensor.rows, -1)


def tq1_ternary(tensor):
    """int8 [rows, cols] and float64 scales [rows, cols / 256] of a TQ1_0 tensor."""
    blocks = tensor.raw.reshape(-1, 54).astype(int)

    def digits(part, count):  # [blocks, bytes] -> [blocks, count * bytes], digit-major
        return np.concatenate([((part * 3**n % 256) * 3) >> 8 for n in range(count)], axis=1)

    codes = np.concatenate([digits(blocks[:, :32], 5), digits(blocks[:, 32:48], 5),
                            digits(blocks[:, 48:52], 4)], axis=1)
    d = np.ascontiguousarray(tensor.raw.reshape(-1, 54)[:, 52:]).view(np.float16).astype(float)
    return codes.reshape(tensor.rows, tensor.cols).astype(np.int8) - 1, d.reshape(tensor.rows, -1)


def q_ternary(tensor):
    """Q1_0 (a sign for each of 128) and codes of two bits: int8 values -1 to 2 and scales of the blocks."""
    count = tensor.rows * tensor.cols
    elements, size = next(block for block in GROUPED[tensor.kind] if count // block[0] * block[1] == tensor.raw.size)
    blocks = tensor.raw.reshape(-1, size)
    head = size - 2 if tensor.scale_last and elements == 128 and tensor.kind == Q2_0 else 0
    d = np.ascontiguousarray(blocks[:, head:head + 2]).view(np.float16).astype(float)
    bits = np.unpackbits(blocks[:, :size - 2] if head else blocks[:, 2:], axis=1, bitorder="little").astype(np.int8)
    t = 2 * bits - 1 if tensor.kind == Q1_0 else bits[:, 0::2] + 2 * bits[:, 1::2] - 1
    return t.reshape(tensor.rows, tensor.cols), d.reshape(tensor.rows, -1)


def ptq1_ternary(tensor):
    """PTQ1_0: 16, 8 and 2 bytes, rounded up from a number of five digits, the highest first; d behind them."""
    blocks = tensor.raw.reshape(-1, 28)
    number = blocks[:, :26].astype(int) * 243 // 256

    def digits(part, count):
        return np.concatenate([part // 3**(4 - n) % 3 for n in range(count)], axis=1)

    codes = np.concatenate([digits(number[:, :16], 5), digits(number[:, 16:24], 5), digits(number[:, 24:], 4)], axis=1)
    d = np.ascontiguousarray(blocks[:, 26:]).view(np.float16).astype(float)
    return (codes - 1).astype(np.int8).reshape(tensor.rows, tensor.cols), d.reshape(tensor.rows, -1)


# The 32 fours that STQ1_0 knows, by sign and nibble: the lane that is zero, then two signs.
def stq1_table():
    table = np.zeros((2, 16, 4), np.int8)
    for nibble in range(16):
        signs = iter((1, -1 if nibble % 2 else 1, -1 if nibble // 2 % 2 else 1))
        for lane in range(4):
            if lane != nibble // 4:
                table[0, nibble, lane] = next(signs)
    table[1] = -table[0]
    return table


def stq1_ternary(tensor):
    blocks = tensor.raw.reshape(-1, 42)
    nibbles = np.stack([blocks[:, :32] & 15, blocks[:, :32] >> 4], axis=2).reshape(-1, 64)
    signs = np.unpackbits(blocks[:, 32:40], axis=1, bitorder="little")
    fours = stq1_table()[signs, nibbles].reshape(-1, 4, 16, 4)  # block, 64 weights, place among 16, lane
    d = np.ascontiguousarray(blocks[:, 40:]).view(np.float16).astype(float)
    return fours.swapaxes(2, 3).reshape(tensor.rows, tensor.cols), d.reshape(tensor.rows, -1)


def iq1_ternary(tensor):
    """IQ1_BN: rows of f16 d and 13-byte blocks of 64; digits come off lowest first."""
    rows = tensor.raw.reshape(tensor.rows, -1)
    blocks = rows[:, 2:].reshape(-1, 13).astype(int)
    number = blocks * 243 // 256  # the byte was rounded up from number * 256 / 243
    out = np.empty((len(blocks), 64), np.int8)
    for g in range(4):
        for j in range(15):
            out[:, 16 * g + j] = number[:, 3 * g + j // 5] // 3**(j % 5) % 3
        out[:, 16 * g + 15] = number[:, 12] // 3**g % 3
    d = np.ascontiguousarray(rows[:, :2]).view(np.float16).astype(float)
    return out.reshape(tensor.rows, tensor.cols) - np.int8(1), d


def iq2_ternary(tensor):
    """IQ2_BN: rows of f32 d and 16-byte blocks of 64, planes of 16 from the lowest bits up."""
    rows = tensor.raw.reshape(tensor.rows, -1)
    blocks = rows[:, 4:].reshape(-1, 1, 16)
    codes = blocks >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 4, 1) & 3
    d = np.ascontiguousarray(rows[:, :4]).view(np.float32).astype(float)
    return codes.reshape(tensor.rows, tensor.cols).astype(np.int8) - np.int8(1), d


def iq2_r4_ternary(tensor):
    """IQ2_BN_R4: four rows' f32 d, then per 64 columns bytes [l][row][i], planes u from below."""
    groups = tensor.raw.reshape(tensor.rows // 4, -1)
    blocks = groups[:, 16:].reshape(len(groups), -1, 4, 4, 4)  # group, block, l, row, i
    codes = np.stack([blocks >> 2 * u & 3 for u in range(4)], axis=4)  # ..., row, u, i
    t = codes.transpose(0, 3, 1, 2, 4, 5).reshape(tensor.rows, tensor.cols).astype(np.int8)
    d = np.ascontiguousarray(groups[:, :16]).view(np.float32).astype(float)
    return t - np.int8(1), d.reshape(tensor.rows, 1)


def low_first(packed, tensor):
    """int8 [rows, cols]: two-bit codes, the first in the lowest bits."""
    codes = packed.reshape(-1, 1) >> np.array([0, 2, 4, 6], np.uint8) & 3
    return codes.reshape(tensor.rows, -1)[:, :tensor.cols].astype(np.int8)


def qk256_values(tensor):
    return np.array([-2.0, -1.0, 1.0, 2.0])[low_first(tensor.raw, tensor)]


def ternary(tensor, layout):
    """int8 [rows, cols] and float64 scales [rows, blocks], the blocks being equal runs of columns."""
    if tensor.kind == TQ1_0:
        return tq1_ternary(tensor)
    if tensor.kind == TQ2_0:
        return tq2_ternary(tensor)
    if tensor.kind == PTQ1_0:
        return ptq1_ternary(tensor)
    if tensor.kind in (STQ1_0, Q2_0) and tensor.raw.size == tensor.rows * tensor.cols // 256 * 42:
        return stq1_ternary(tensor)
    if tensor.kind in GROUPED:
        return q_ternary(tensor)
    if tensor.kind == IQ1_BN:
        return iq1_ternary(tensor)
    if tensor.kind == IQ2_BN:
        return iq2_ternary(tensor)
    if tensor.kind == IQ2_BN_R4:
        return iq2_r4_ternary(tensor)
    count = tensor.rows * tensor.cols
    if tensor.raw.size == bitnet32_bytes(count):
        blocks = tensor.raw.reshape(-1, 10)
        d = np.ascontiguousarray(blocks[:, 8:]).view(np.float16).astype(float)
        return low_first(blocks[:, :8], tensor) - np.int8(2), d.reshape(tensor.rows, -1)
    if tensor.raw.size == count // 4:  # Split32: the scales stand beside it
        return low_first(tensor.raw, tensor) - np.int8(2), tensor.scales.reshape(tensor.rows, -1)
    t, scale = i2s_ternary(tensor, layout)
    return t, np.full((tensor.rows, 1), scale)


def dense(tensor, layout):
    """float64 [rows, cols] of a tensor of any known type."""
    if tensor.kind == I2_S and layout == "qk256":
        return qk256_values(tensor)
    if tensor.kind in TERNARY:
        t, scales = ternary(tensor, layout)
        return t * np.repeat(scales, tensor.cols // scales.shape[1], axis=1)
    values = gguf.quants.dequantize(tensor.raw, gguf.GGMLQuantizationType(tensor.kind))
    return values.reshape(tensor.rows, tensor.cols).astype(float)


# ---------------------------------------------------------------- arithmetic


def quantize_activations(x, rounded=np.rint):
    """Per row: float32 scale [n, 1] and whole numbers -128..127 [n, cols], held as float64."""
    x = x.astype(np.float32)
    largest = np.abs(x).max(axis=1, keepdims=True).astype(float)
    s = (127.0 / np.maximum(largest, 1e-5)).astype(np.float32)
    return s, np.clip(rounded(x * s), -128, 127).astype(float)


def quantize_groups(x, group, rounded=np.rint):
    """The same for each `group` columns: factors [n, cols / group], float32, and -127..127."""
    x = x.astype(np.float32).reshape(len(x), -1, group)
    largest = np.maximum(np.abs(x).max(axis=2, keepdims=True), np.float32(1e-30))
    codes = np.clip(rounded(x * (np.float32(127) / largest)), -127, 127).astype(float)
    return (largest / np.float32(127))[..., 0], codes.reshape(len(x), -1)


def hadamard(block):
    """[block, block]: the normalised matrix of Sylvester, from its definition."""
    i = np.arange(block)
    ones = np.array([[int(a & b).bit_count() % 2 for b in i] for a in i])
    return (1 - 2 * ones) / np.sqrt(block)


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight


def l2_norm(x, eps):
    """As transformers and llama.cpp since #28068: eps is added to the sum, not to the mean."""
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + eps)


def causal_convolution(x, taps):
    """x [n, channels]; taps [channels, width], the oldest position first. Before x[0] stand zeros."""
    width = taps.shape[1]
    padded = np.concatenate([np.zeros((width - 1, x.shape[1])), x])
    return sum(taps[:, i] * padded[i:i + len(x)] for i in range(width))


def delta_rule(q, k, v, decay, beta, stored=lambda x: x, state=0.0):
    """The gated delta rule: what it says [n, heads, dv], and the last state [heads, dk, dv]; `state`: the one before.

    q, k [n, heads, dk]; v [n, heads, dv]; decay, beta [n, heads].
    """
    state = np.zeros((k.shape[1], k.shape[2], v.shape[2])) + state
    out = np.empty(v.shape)
    for t in range(len(q)):
        state = state * decay[t][:, None, None]
        known = np.einsum("hk,hkv->hv", k[t], state)
        change = stored(beta[t][:, None] * (v[t] - known))
        state = stored(state + k[t][:, :, None] * change[:, None, :])
        out[t] = np.einsum("hk,hkv->hv", q[t], state)
    return stored(out), state


def rope_angles(positions, size, base, divisors=1.0):
    """[n, size / 2]: position times base^(-2i/size), over the divisor of that wave."""
    return positions[:, None] * base ** (-2.0 * np.arange(size // 2) / size) / divisors


def llama3_divisors(size, base, factor, low, high, original):
    """As transformers: by wave length, not by turns."""
    waves = 2 * np.pi * base ** (2.0 * np.arange(size // 2) / size)
    between = (original / waves - low) / (high - low)
    graded = 1 / ((1 - between) / factor + between)
    return np.where(waves < original / high, 1.0, np.where(waves > original / low, factor, graded))


def yarn_divisors(size, base, factor, original, fast=32.0, slow=1.0, extrapolation=1.0):
    """arXiv:2309.00071, with the whole-numbered corners of its reference code."""
    corner = lambda turns: size * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(base))  # noqa: E731
    low, high = max(np.floor(corner(fast)), 0), min(np.ceil(corner(slow)), size - 1)
    ramp = np.clip((np.arange(size // 2) - low) / max(high - low, 0.001), 0, 1)
    share = extrapolation * (1 - ramp)
    return 1 / (share + (1 - share) / factor)


def dynamic_base(base, size, factor, original, context):
    """NTK scaling by the length of the context."""
    if context <= original:
        return base
    return base * (factor * context / original - (factor - 1)) ** (size / (size - 2))


def rope(x, angles, neox):
    """x: [n, heads, size]. neox: pairs (i, i + size/2), otherwise (2i, 2i + 1)."""
    size = x.shape[-1]
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = (x[..., :size // 2], x[..., size // 2:]) if neox else (x[..., 0::2], x[..., 1::2])
    a, b = a * cos - b * sin, a * sin + b * cos
    return np.concatenate([a, b], axis=-1) if neox else np.stack([a, b], axis=-1).reshape(x.shape)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def silu(x):
    return x / (1.0 + np.exp(-x))


def gelu(x):
    """The form with tanh."""
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x ** 3)))


def relu2(x):
    return np.maximum(x, 0.0) ** 2


# ---------------------------------------------------------------- model


def q8_0_blocks(x):
    """x [..., size] cut into blocks of 32, and the float16 step of each: (blocks, steps)."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, 32)
    return blocks, (np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(127)).astype(np.float16)


def through_q8_0(x):
    """What is left of x [..., size] after it was kept as int8 with a float16 step for every 32."""
    blocks, steps = q8_0_blocks(x)
    steps = steps.astype(np.float32)
    inverse = np.divide(1, steps, out=np.zeros_like(steps), where=steps > 0)
    return (np.clip(np.rint(blocks * inverse), -127, 127) * steps).reshape(x.shape).astype(float)


def q4_0_blocks(x):
    """x [..., size] cut into blocks of 32, and the float32 step of each: a -8th of the first of the largest."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, 32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1)[..., None], axis=-1)
    return blocks, largest / np.float32(-8)


def through_q4_0(x):
    """What is left of x [..., size] after it was kept as 4 bits, -8 to 7, with a float16 step for every 32."""
    blocks, steps = q4_0_blocks(x)
    kept_steps = steps.astype(np.float16).astype(np.float32)
    inverse = np.divide(np.float32(1), steps, out=np.zeros_like(steps), where=kept_steps != 0)
    codes = np.floor(np.clip(blocks * inverse + np.float32(8.5), 0, 15)) - 8
    return (codes * kept_steps).reshape(x.shape).astype(float)


KEPT = {"f32": lambda x: x, "f16": lambda x: x.astype(np.float16).astype(float), "q8_0": through_q8_0,
        "q4_0": through_q4_0}


class Model:
    """A model file, ready to be run. `activation` overrides the rule. `kv` says how keys and values
    are kept: f32 (exact), f16, q8_0 or q4_0, or two of them with a comma between. With a window a position sees the last
    `window` positions, itself included, and the first `keep`."""

    def __init__(self, path, layout="a", activation=None, kv="f32", window=None, keep=0, context=None,
                 activations="auto"):
        self.metadata, self.tensors = read_file(path)
        self.layout = layout
        self.window, self.keep = window, keep
        self.kv_k, self.kv_v = kv.split(",") if "," in kv else (kv, kv)
        self.arch = self.metadata["general.architecture"]
        if self.arch not in ARCHITECTURES:
            raise Unsupported(f"architecture {self.arch!r} is none of {', '.join(ARCHITECTURES)}")
        self.is_bitnet = self.arch in BITNET_ARCHITECTURES
        self.n_embd = self.key("embedding_length")
        self.n_layer = self.key("block_count")
        self.n_ff = self.key("feed_forward_length")
        self.n_head = self.same_for_all_layers("attention.head_count")
        self.n_head_kv = self.same_for_all_layers("attention.head_count_kv", self.n_head)
        self.head_size = self.key("attention.key_length", self.n_embd // self.n_head)
        self.eps = self.key("attention.layer_norm_rms_epsilon")
        self.is_hybrid = self.arch == "qwen35"
        self.n_rotated = self.key("rope.dimension_count", self.head_size)
        self.rope_base = self.key("rope.freq_base", 10000.0)
        self.rope_factor, self.divisors, self.magnitude = 1.0, 1.0, 1.0
        self.stretch_rope(context or self.key("context_length"))
        self.activation = {"relu2": relu2, "silu": silu, "gelu": gelu}[activation or self.usual_activation()]
        # Of BitNet's embedding models: each matrix of a layer reads a norm of its own.
        self.input_norms = any(name.endswith("_norm_in.weight") for name in self.tensors)
        if self.input_norms and self.arch not in ("qwen3", "gemma3"):
            raise Unsupported(f"norms of inputs in {self.arch}")
        self.is_gemma = self.arch == "gemma3"
        if self.is_gemma:
            self.read_windows()
        if self.is_hybrid:
            self.read_states()
        self.is_minicpm = self.arch == "minicpm"
        self.reject_the_uncovered()
        self.ready = {}  # decoded weights by name and decoder
        self.neox = self.is_bitnet or self.arch in ("qwen3", "gemma3", "qwen35")
        self.float_activations = activations == "float"
        self.group = {"row": 0, "group32": 32, "group64": 64, "group128": 128}.get(activations)
        self.read_rotation()
        if self.group is None:
            grouped = any(self.weights(name, ternary)[1].shape[1] > 1 for name in self.tensors if self.is_ternary(name))
            self.group = (128 if self.rotated else 32) if grouped and not self.is_bitnet else 0

    def read_windows(self):
        """Which layers see a window, and what else Gemma has of its own. Files of its embedding models name none."""
        if self.input_norms and "gemma3.attention.sliding_window" not in self.metadata:
            self.windowed = [False] * self.n_layer
            return
        self.layer_window = self.key("attention.sliding_window")
        pattern = self.key("attention.sliding_window_pattern", 6)
        self.windowed = (list(pattern) if isinstance(pattern, (list, tuple, np.ndarray)) else
                         [layer % pattern < pattern - 1 for layer in range(self.n_layer)])
        self.local_base = self.key("rope.freq_base_swa", 10000.0)

    def read_states(self):
        """Which layers keep a state, and its sizes. The last layers of a file may predict further tokens: no part of
        this pass. A window is for those that attend: a state keeps what it keeps."""
        self.n_layer -= self.key("nextn_predict_layers", 0)
        self.interval = self.key("full_attention_interval", 4)
        self.key_size, self.n_key_heads = self.key("ssm.state_size"), self.key("ssm.group_count")
        self.n_value_heads = self.key("ssm.time_step_rank")
        self.value_size = self.key("ssm.inner_size") // self.n_value_heads
        self.taps = self.key("ssm.conv_kernel")

    def read_rotation(self):
        """Which weights were rotated before they were rounded, and by what."""
        def key(name, default=()):
            return self.metadata.get(f"prism.hadamard.{name}", default)
        self.rotated = {name.removesuffix(".weight") for name in key("weight_names")}
        self.rotated_tables = {name.removesuffix(".weight") for name in key("inverse_weight_names")}
        self.values_grouped = bool(key("gdn_v_grouped", False))
        if not self.rotated | self.rotated_tables:
            return
        if "output.weight" not in self.tensors:
            self.rotated |= self.rotated_tables  # tied
        self.block_matrix = hadamard(key("block_size"))
        ends = np.cumsum(key("sign_widths", []), dtype=int)
        self.signs = {len(part): part for part in np.split(np.array(key("sign_values", []), float), ends[:-1])}

    def turned(self, x):
        """x [n, width], each block of a row times H."""
        return (x.reshape(-1, len(self.block_matrix)) @ self.block_matrix).reshape(x.shape)

    def input_of(self, x, name):
        """What the matrix `name`, without ".weight", multiplies."""
        if name not in self.rotated:
            if self.values_grouped and name.endswith(".ssm_out"):
                raise Unsupported("grouped value heads without rotation")
            return x
        if self.values_grouped and name.endswith(".ssm_out"):
            # From those of all key heads in turn to those of one key head after another.
            heads = x.reshape(len(x), -1, self.n_key_heads, self.value_size)
            x = heads.swapaxes(1, 2).reshape(x.shape)
        return self.stored(self.turned(x * self.signs.get(x.shape[1], 1.0)))

    def stretch_rope(self, context):
        """What RoPE scaling makes of a context of that length."""
        scaling = self.key("rope.scaling.type", "none")
        factor = float(self.key("rope.scaling.factor", 1.0))
        original = float(self.key("rope.scaling.original_context_length", self.key("context_length")))
        size, base = self.n_rotated, float(self.rope_base)
        if scaling == "linear":
            self.rope_factor = factor
        elif scaling == "yarn":
            self.divisors = yarn_divisors(size, base, factor, original,
                                          float(self.key("rope.scaling.yarn_beta_fast", 32.0)),
                                          float(self.key("rope.scaling.yarn_beta_slow", 1.0)),
                                          float(self.key("rope.scaling.yarn_ext_factor", 1.0)))
            self.magnitude = (1 + 0.1 * np.log(factor)) * float(self.key("rope.scaling.attn_factor", 1.0))
        elif scaling == "longrope":
            which = "long" if context > original else "short"
            self.divisors = dense(self.tensors[f"rope_factors_{which}.weight"], self.layout).reshape(-1)
            self.magnitude = float(self.key("rope.scaling.attn_factor", 1.0))
        elif scaling != "none":
            raise Unsupported(f"rope.scaling.type {scaling!r}")
        if "rope_freqs.weight" in self.tensors:
            self.divisors = dense(self.tensors["rope_freqs.weight"], self.layout).reshape(-1)
        if f"{self.arch}.rope.scaling.dynamic_factor" in self.metadata:
            self.rope_base = dynamic_base(base, size, float(self.key("rope.scaling.dynamic_factor")), original,
                                          context)

    def key(self, name, default=None):
        value = self.metadata.get(f"{self.arch}.{name}", default)
        if value is None:
            raise Unsupported(f"metadata key {self.arch}.{name} is missing")
        return value

    def same_for_all_layers(self, name, default=None):
        values = np.unique(self.key(name, default))
        if len(values) != 1:
            raise Unsupported(f"{name} differs between layers")
        return int(values[0])

    def usual_activation(self):
        if self.arch == "bitnet-25":
            return "relu2"
        if self.arch == "gemma3":
            return "gelu"
        if self.arch in ("bitnet-b1.58", "bitnet-b158"):
            return "relu2" if self.metadata.get("tokenizer.ggml.model") == "gpt2" else "silu"
        return "silu"

    def reject_the_uncovered(self):
        if self.n_rotated != self.head_size and not self.is_hybrid:
            raise Unsupported("rotation of a part of the head")
        if self.key("attention.value_length", self.head_size) != self.head_size:
            raise Unsupported("value heads of another size than key heads")
        for name in self.tensors:
            if name.endswith(".bias") and not (self.is_hybrid and name.endswith(".ssm_dt.bias")):
                raise Unsupported(f"tensor {name}")

    # Two hooks for steadiness.py, which overrides them to learn what float32 alone may change:
    # every value that an engine would keep in float32, and every rounding of an activation.
    def stored(self, x):
        return x

    def rounded(self, x):
        return np.rint(x)

    def kept(self, x, kind):
        """Keys or values [n, heads, size] as they come back from the cache."""
        return KEPT[kind](x)

    def is_ternary(self, name):
        """QK256 has values of two sizes and no zero: its activations are not quantised."""
        tensor = self.tensors[name]
        if tensor.kind in (Q2_0, PQ2_0) and ternary(tensor, self.layout)[0].max() > 1:
            return False  # with +2 it is no ternary weight
        return tensor.kind in TERNARY and not (tensor.kind == I2_S and self.layout == "qk256")

    def weights(self, name, decode):
        if (name, decode) not in self.ready:
            if name not in self.tensors:
                raise Unsupported(f"tensor {name} is missing")
            self.ready[name, decode] = decode(self.tensors[name], self.layout)
        return self.ready[name, decode]

    def matrix(self, name):
        return self.weights(name, dense)

    def norm(self, x, name):
        return self.stored(rms_norm(x, self.matrix(name).reshape(-1), self.eps))

    def bit_linear(self, x, name):
        """y = (integer sums, weighted by their block scales) / s, for ternary weights."""
        if self.float_activations:
            return x @ self.matrix(name).T
        t, scales = self.weights(name, ternary)
        if group := self.group_for(t.shape[1], scales.shape[1]):
            d, q = quantize_groups(x, group, self.rounded)
            return (q * np.repeat(d.astype(float), group, axis=1)) @ self.matrix(name).T
        s, q = quantize_activations(x, self.rounded)
        blocks = scales.shape[1]
        width = t.shape[1] // blocks
        y = np.zeros((len(x), len(t)))
        for b in range(blocks):
            run = slice(b * width, (b + 1) * width)
            y += (q[:, run] @ t[:, run].T.astype(float)) * scales[:, b]  # whole numbers: exact
        return y / s.astype(float)

    def group_for(self, width, blocks):
        """The largest group up to the wanted one that fills a row and fits the weights' own."""
        own = width // blocks
        fits = [g for g in (32, 64, 128) if g <= self.group and width % g == 0 and (own % g == 0 or g % own == 0)]
        return max(fits, default=0)

    def linear(self, x, name):
        """x: [n, cols] -> [n, rows]. name: without ".weight"."""
        weight = f"{name}.weight"
        if self.input_norms:
            x = self.norm(x, f"{name}_norm_in.weight")
        x = self.input_of(x, name)
        if weight in self.tensors and self.is_ternary(weight):
            y = self.bit_linear(x, weight)
        else:
            y = x @ self.matrix(weight).T
        if f"{name}.scale" in self.tensors and self.tensors[weight].scales is None:
            y = y * self.matrix(f"{name}.scale").reshape(-1)
        return self.stored(y)

    def hidden(self, n, own_window):
        """[n, n]: 0 where row i sees column j, minus infinity elsewhere."""
        i, j = np.arange(n)[:, None], np.arange(n)
        sees = j <= i
        if self.window is not None:
            sees &= (i - j < self.window) | (j < self.keep)
        if own_window is not None:
            sees &= i - j < own_window
        return np.where(sees, 0, -np.inf)

    def attention(self, h, layer):
        n = len(h)
        local = self.is_gemma and self.windowed[int(layer.split(".")[1])]
        if local:
            angles = self.stored(rope_angles(np.arange(n), self.head_size, self.local_base, 1.0))
        else:
            angles = self.stored(rope_angles(np.arange(n) / self.rope_factor, self.n_rotated, self.rope_base,
                                             self.divisors))
        q = self.linear(h, f"{layer}.attn_q").reshape(n, self.n_head, (1 + self.is_hybrid) * self.head_size)
        q, gate = q[..., :self.head_size], q[..., self.head_size:]
        k = self.linear(h, f"{layer}.attn_k").reshape(n, self.n_head_kv, self.head_size)
        v = self.linear(h, f"{layer}.attn_v").reshape(n, self.n_head_kv, self.head_size)
        if self.arch in ("qwen3", "gemma3", "qwen35"):
            q = self.norm(q, f"{layer}.attn_q_norm.weight")
            k = self.norm(k, f"{layer}.attn_k_norm.weight")
        q, k = self.stored(self.rotate(q, angles)), self.stored(self.rotate(k, angles))
        k, v = self.kept(k, self.kv_k), self.kept(v, self.kv_v)
        out = np.empty_like(q)
        hidden = self.hidden(n, self.layer_window if local else None)
        magnitude = self.magnitude if self.n_rotated == self.head_size else 1.0
        scale = magnitude ** 2 * float(self.key("attention.scale", 0.0) or self.head_size ** -0.5)
        for head in range(self.n_head):
            shared = head // (self.n_head // self.n_head_kv)
            scores = scale * q[:, head] @ k[:, shared].T + hidden
            out[:, head] = softmax(scores) @ v[:, shared]
        if self.is_hybrid:
            out = self.stored(out) * sigmoid(gate)
        return self.stored(out.reshape(n, -1))

    def rotate(self, x, angles):
        """Heads, rotated by their positions: all of them, or their first n_rotated elements."""
        if self.n_rotated == self.head_size:
            return rope(x, angles, self.neox)
        first = self.magnitude * rope(x[..., :self.n_rotated], angles, self.neox)
        return np.concatenate([first, x[..., self.n_rotated:]], axis=-1)

    def recurrence(self, h, layer):
        """What a layer with a state says: its value heads side by side."""
        n, keys = len(h), self.n_key_heads * self.key_size
        raw = self.linear(h, f"{layer}.attn_qkv")
        taps = self.matrix(f"{layer}.ssm_conv1d.weight")
        if taps.shape != (raw.shape[1], self.taps):
            raise Unsupported(f"{layer}.ssm_conv1d.weight: {taps.shape} instead of {(raw.shape[1], self.taps)}")
        mixed = self.stored(silu(self.stored(causal_convolution(raw, taps))))
        q, k = (mixed[:, start:start + keys].reshape(n, self.n_key_heads, -1) for start in (0, keys))
        v = mixed[:, 2 * keys:].reshape(n, self.n_value_heads, self.value_size)
        q, k = self.stored(l2_norm(q, self.eps)), self.stored(l2_norm(k, self.eps))
        q = self.stored(q * self.key_size ** -0.5)
        # Value head h goes with key head h % n_key_heads, not with its neighbours as in attention.
        q, k = (np.tile(x, (1, self.n_value_heads // self.n_key_heads, 1)) for x in (q, k))
        beta = self.stored(sigmoid(self.linear(h, f"{layer}.ssm_beta")))
        step = np.logaddexp(0, self.linear(h, f"{layer}.ssm_alpha") + self.matrix(f"{layer}.ssm_dt.bias").reshape(-1))
        decay = self.stored(np.exp(self.stored(self.matrix(f"{layer}.ssm_a").reshape(-1) * step)))
        out, _ = delta_rule(q, k, v, decay, beta, self.stored)
        z = self.linear(h, f"{layer}.attn_gate").reshape(out.shape)
        out = self.norm(out, f"{layer}.ssm_norm.weight") * self.stored(silu(z))
        return self.stored(out.reshape(n, -1))

    def mix(self, h, layer):
        """What a layer makes of this position and those before it."""
        if self.is_hybrid and (int(layer.split(".")[1]) + 1) % self.interval:
            return self.linear(self.recurrence(h, layer), f"{layer}.ssm_out")
        a = self.attention(h, layer)
        if self.is_bitnet:
            a = self.norm(a, f"{layer}.attn_sub_norm.weight")
        return self.behind(self.linear(a, f"{layer}.attn_output"), f"{layer}.post_attention_norm")

    def behind(self, y, norm):
        """What a part of a layer adds."""
        if self.is_minicpm:
            return self.stored(y * self.key("residual_scale"))
        return self.norm(y, f"{norm}.weight") if self.is_gemma else y

    def feed_forward(self, h, layer):
        gate = self.stored(self.activation(self.linear(h, f"{layer}.ffn_gate")))
        return self.stored(gate * self.linear(h, f"{layer}.ffn_up"))

    def states(self, ids):
        """float64 [len(ids), n_embd]: what is behind the last norm."""
        x = self.matrix("token_embd.weight")[list(ids)]
        if self.is_gemma:
            x = self.stored(x * np.sqrt(self.n_embd))
        if self.is_minicpm:
            x = self.stored(x * self.key("embedding_scale"))
        if "token_embd" in self.rotated_tables:
            x = self.stored(self.turned(x) * self.signs.get(x.shape[1], 1.0))
        for n in range(self.n_layer):
            layer = f"blk.{n}"
            x = self.stored(x + self.mix(self.norm(x, f"{layer}.attn_norm.weight"), layer))
            # qwen35 calls it after what stands before it.
            before = "post_attention_norm" if self.is_hybrid else "ffn_norm"
            g = self.feed_forward(self.norm(x, f"{layer}.{before}.weight"), layer)
            if self.is_bitnet:
                g = self.norm(g, f"{layer}.ffn_sub_norm.weight")
            x = self.stored(x + self.behind(self.linear(g, f"{layer}.ffn_down"), f"{layer}.post_ffw_norm"))
        return self.norm(x, "output_norm.weight")

    def embedding(self, ids, pooling):
        """float64 [n_embd], of length 1."""
        states = self.states(ids)
        pooled = {"mean": states.mean(axis=0), "cls": states[0], "last": states[-1]}[pooling]
        return pooled / np.linalg.norm(pooled)

    def logits(self, ids):
        """float64 [len(ids), vocabulary]; row i holds the scores of the token after ids[i]."""
        head = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        x = self.states(ids)
        if self.is_minicpm:
            x = self.stored(x / self.key("logit_scale"))
        x = self.input_of(x, head.removesuffix(".weight"))
        return self.bit_linear(x, head) if self.is_ternary(head) else x @ self.matrix(head).T


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["logits"])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--ids", required=True, help='token ids, e.g. "1 2 3"')
    parser.add_argument("--all", action="store_true", help="every position, not only the last")
    parser.add_argument("-o", "--output", required=True, help="NumPy file, float64 [positions, vocabulary]")
    parser.add_argument("--i2s-layout", choices="abc", default="a")
    parser.add_argument("--activation", choices=["relu2", "silu"])
    parser.add_argument("--kv", choices=KEPT, default="f32", help="how keys and values are kept")
    args = parser.parse_args()
    try:
        model = Model(args.model, args.i2s_layout, args.activation, args.kv)
        logits = model.logits([int(i) for i in args.ids.split()])
    except (Unsupported, ValueError, OSError) as error:
        sys.exit(f"{args.model}: {error}")
    np.save(args.output, logits if args.all else logits[-1:])


if __name__ == "__main__":
    main()
