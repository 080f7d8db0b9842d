"""Writers of the weight formats, one formula each.

Used by the golden vectors and by the maker of test models. The reference never imports this file:
it decodes with formulas of its own, so that a slip here shows up as a mismatch there.

Shapes: `t` is int8 [rows, cols] in {-1, 0, +1}; every function returns bytes.
"""

import numpy as np


def _place(codes, byte_index, shift, size):
    """ORs `codes << shift` into a fresh array of `size` bytes."""
    out = np.zeros(size, np.uint8)
    np.bitwise_or.at(out, byte_index, (codes << shift).astype(np.uint8))
    return out


def i2s(t, scale, layout="a"):
    """I2_S: n/4 bytes of codes, the float32 scale, 28 zero bytes."""
    rows, cols = t.shape
    assert t.size % 128 == 0, "the flat tensor must be whole groups of 128"
    assert layout != "c" or rows % 4 == 0, "layout C packs four rows per byte"
    codes = (t + 1).reshape(-1).astype(np.int64)
    i = np.arange(t.size)
    if layout == "a":
        where, shift = (i // 128) * 32 + i % 32, 6 - 2 * ((i % 128) // 32)
    elif layout == "b":
        where, shift = (i // 64) * 16 + i % 16, 6 - 2 * ((i % 64) // 16)
    elif layout == "c":
        r, c = i // cols, i % cols
        where, shift = (r // 4) * cols + c, 6 - 2 * (r % 4)
    else:
        raise ValueError(f"I2_S layout must be a, b or c, not {layout!r}")
    payload = _place(codes, where, shift, t.size // 4).tobytes()
    return payload + np.float32(scale).tobytes() + bytes(28)


def tq2_0(t, d):
    """TQ2_0: per 256 columns 64 bytes of 2-bit codes, then f16 d. `d` is [rows, cols / 256]."""
    rows, cols = t.shape
    e = np.arange(256)
    where, shift = (e // 128) * 32 + e % 32, 2 * ((e % 128) // 32)
    out = bytearray()
    for r in range(rows):
        for b in range(cols // 256):
            codes = t[r, b * 256:(b + 1) * 256].astype(np.int64) + 1
            out += _place(codes, where, shift, 64).tobytes() + np.float16(d[r, b]).tobytes()
    return bytes(out)


def tq1_0(t, d):
    """TQ1_0: per 256 columns 48 + 4 bytes of base-3 digits, then f16 d. `d` is [rows, cols / 256]."""
    rows, cols = t.shape
    e = np.arange(256)
    where = np.where(e < 160, e % 32, np.where(e < 240, 32 + (e - 160) % 16, 48 + (e - 240) % 4))
    digit = np.where(e < 160, e // 32, np.where(e < 240, (e - 160) // 16, (e - 240) // 4))
    weight = 3 ** (4 - digit)  # the last four bytes hold four digits: their lowest place stays 0
    out = bytearray()
    for r in range(rows):
        for b in range(cols // 256):
            q = np.zeros(52, np.int64)
            np.add.at(q, where, (t[r, b * 256:(b + 1) * 256].astype(np.int64) + 1) * weight)
            out += ((q * 256 + 242) // 243).astype(np.uint8).tobytes()
            out += np.float16(d[r, b]).tobytes()
    return bytes(out)


def q8_0(w):
    """Q8_0: per 32 values f16 d = max|w| / 127, then int8 round-half-away(w / d)."""
    x = w.reshape(-1, 32).astype(np.float32)
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    ratio = np.divide(x, d, out=np.zeros_like(x), where=d != 0)
    q = np.trunc(ratio + np.copysign(np.float32(0.5), ratio)).astype(np.int8)
    return np.hstack([d.astype(np.float16).view(np.uint8), q.view(np.uint8)]).tobytes()


def q4_0(w):
    """Q4_0: per 32 values f16 d = (signed largest) / -8, then 16 bytes, low nibble first half."""
    x = w.reshape(-1, 32).astype(np.float32)
    largest = np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1)
    d = largest / np.float32(-8)
    ratio = np.divide(x, d, out=np.zeros_like(x), where=d != 0)
    q = np.clip(np.trunc(ratio + np.float32(8.5)), 0, 15).astype(np.uint8)
    packed = q[:, :16] | (q[:, 16:] << 4)
    return np.hstack([d.astype(np.float16).view(np.uint8), packed]).tobytes()


def bf16(w):
    """BF16: the upper half of each float32, rounded to nearest even. Finite input only."""
    bits = np.ascontiguousarray(w, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def q4_k(d, dmin, sc, mn, q):
    """Q4_K blocks of 256: d, dmin float [n]; sc, mn in 0..63 [n, 8]; q in 0..15 [n, 256]."""
    sc, mn, q = sc.astype(np.uint8), mn.astype(np.uint8), q.astype(np.uint8)
    low = (sc[:, :4] & 63) | ((sc[:, 4:] >> 4) << 6)
    mid = (mn[:, :4] & 63) | ((mn[:, 4:] >> 4) << 6)
    high = (sc[:, 4:] & 15) | ((mn[:, 4:] & 15) << 4)
    chunks = q.reshape(-1, 4, 2, 32)
    nibbles = (chunks[:, :, 0] | (chunks[:, :, 1] << 4)).reshape(-1, 128)
    head = np.stack([d, dmin], axis=1).astype(np.float16).view(np.uint8)
    return np.hstack([head, low, mid, high, nibbles]).tobytes()


def q6_k(d, sc, q):
    """Q6_K blocks of 256: d float [n]; sc int8 [n, 16]; q in 0..63 (value + 32) [n, 256]."""
    u = q.astype(np.uint8).reshape(-1, 2, 4, 32)  # block, half, quarter, l
    ql = np.stack([(u[:, :, 0] & 15) | ((u[:, :, 2] & 15) << 4),
                   (u[:, :, 1] & 15) | ((u[:, :, 3] & 15) << 4)], axis=2).reshape(-1, 128)
    qh = sum((u[:, :, k] >> 4) << (2 * k) for k in range(4)).astype(np.uint8).reshape(-1, 64)
    tail = np.asarray(d).astype(np.float16)[:, None].view(np.uint8)
    return np.hstack([ql, qh, sc.astype(np.int8).view(np.uint8), tail]).tobytes()
