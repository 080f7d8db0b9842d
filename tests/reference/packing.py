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


def q1_0(signs, d):
    """Q1_0: per 128 columns f16 d, then a bit for each, set = +d. `signs` is -1 or +1."""
    bits = np.packbits((signs > 0).reshape(-1, 16, 8), axis=2, bitorder="little").reshape(-1, 16)
    return np.hstack([np.asarray(d, np.float16).reshape(-1, 1).view(np.uint8), bits]).tobytes()


def q2_0(codes, d, group=64, scale_last=False):
    """Q2_0: per `group` columns f16 d, then four codes to a byte, lowest first; worth (code - 1) d.

    Groups of 128 are PQ2_0, and what older programs wrote as Q2_0; one of them has d behind the codes.
    """
    u = codes.reshape(-1, group // 4, 4).astype(np.uint8)
    packed = u[..., 0] | u[..., 1] << 2 | u[..., 2] << 4 | u[..., 3] << 6
    scales = np.asarray(d, np.float16).reshape(-1, 1).view(np.uint8)
    return np.hstack([packed, scales] if scale_last else [scales, packed]).tobytes()


def ptq1_0(t, d):
    """PTQ1_0: per 128 columns 24 bytes of five trits and 2 of four, first trit highest, then f16 d."""
    out = bytearray()
    for block, scale in zip(t.reshape(-1, 128).astype(int) + 1, np.asarray(d).reshape(-1)):
        for first, width, trits in ((0, 16, 5), (80, 8, 5), (120, 2, 4)):
            for m in range(width):
                number = 0
                for n in range(5):
                    number = 3 * number + (int(block[first + width * n + m]) if n < trits else 0)
                out.append(-(-256 * number // 243))
        out += np.float16(scale).tobytes()
    return bytes(out)


def stq1_0(t, d):
    """STQ1_0: per 256 columns 32 bytes of nibbles, 8 of signs, f16 d; of each four weights one is 0.

    Four weights stand 16 apart: weight 64 c + 16 p + i is lane p of group 16 c + i.
    """
    out = bytearray()
    for block, scale in zip(t.reshape(-1, 4, 4, 16).astype(int), np.asarray(d).reshape(-1)):
        nibbles, signs = np.zeros(64, np.uint8), 0
        for g, lanes in enumerate(block.swapaxes(1, 2).reshape(64, 4)):
            (zero,), rest = np.flatnonzero(lanes == 0), lanes[lanes != 0]
            turned = rest * rest[0]  # the first of them as +1
            nibbles[g] = 4 * zero + (turned[1] < 0) + 2 * (turned[2] < 0)
            signs |= int(rest[0] < 0) << g
        out += (nibbles[0::2] | nibbles[1::2] << 4).tobytes() + signs.to_bytes(8, "little")
        out += np.float16(scale).tobytes()
    return bytes(out)


def iq1_bn(t, d):
    """IQ1_BN: per row f16 d, then per 64 columns 12 bytes of five trits and one of four."""
    out = bytearray()
    for row, scale in zip(t.astype(int) + 1, d):
        out += np.float16(scale).tobytes()
        for b in range(0, t.shape[1], 64):
            block, extra = row[b:b + 64], 0
            for g in range(4):
                for j in range(3):
                    five = block[16 * g + 5 * j:16 * g + 5 * j + 5]
                    out.append((256 * int(sum(v * 3**i for i, v in enumerate(five))) + 242) // 243)
                extra += int(block[16 * g + 15]) * 3**g
            out.append((256 * extra + 242) // 243)
    return bytes(out)


def iq2_bn(t, d):
    """IQ2_BN: per row f32 d, then per 64 columns 16 bytes: byte j holds j, j+16, j+32, j+48."""
    rows, cols = t.shape
    u = (t + 1).astype(np.uint8).reshape(rows, cols // 64, 4, 16)
    packed = u[:, :, 0] | u[:, :, 1] << 2 | u[:, :, 2] << 4 | u[:, :, 3] << 6
    head = np.asarray(d, np.float32).reshape(rows, 1).view(np.uint8)
    return np.hstack([head, packed.reshape(rows, -1)]).tobytes()


def iq2_bn_r4(t, d):
    """IQ2_BN_R4: four rows: their four f32 d, then per 64 columns 64 bytes they share."""
    rows, cols = t.shape
    out = bytearray()
    for r in range(0, rows, 4):
        out += np.asarray(d[r:r + 4], np.float32).tobytes()
        for b in range(0, cols, 64):
            block = bytearray(64)
            for k in range(4):
                for l in range(4):
                    for u in range(4):
                        for i in range(4):
                            code = int(t[r + k, b + 16 * l + 4 * u + i]) + 1
                            block[4 * k + i + 16 * l] |= code << 2 * u
            out += block
    return bytes(out)


def hf_u8(t):
    """Hugging Face: byte [r][c] of rows / 4 holds rows r, r + rows/4, ...; lowest bits first."""
    u = (t + 1).astype(np.uint8).reshape(4, t.shape[0] // 4, t.shape[1])
    return (u[0] | u[1] << 2 | u[2] << 4 | u[3] << 6).tobytes()


def split32(t):
    """The codes of BitNet-rs: t + 2, four to a byte, lowest first."""
    u = (t + 2).astype(np.uint8).reshape(-1, 4)
    return (u[:, 0] | u[:, 1] << 2 | u[:, 2] << 4 | u[:, 3] << 6).tobytes()


def bitnet32(t, d):
    """BitNet32-F16: per 32 flat elements eight bytes of those codes, then f16 d."""
    blocks = np.frombuffer(split32(t), np.uint8).reshape(-1, 8)
    return np.hstack([blocks, np.asarray(d, np.float16).reshape(-1, 1).view(np.uint8)]).tobytes()


def qk256(values):
    """QK256: values -2, -1, 1 and 2 as codes 0 to 3, lowest first; rows padded to blocks of 64 bytes."""
    rows, cols = values.shape
    codes = np.zeros((rows, -(-cols // 256) * 256), np.uint8)
    codes[:, :cols] = np.where(values < 0, values + 2, values + 1)
    u = codes.reshape(-1, 4)
    return (u[:, 0] | u[:, 1] << 2 | u[:, 2] << 4 | u[:, 3] << 6).tobytes()


def tl1(t, scale, bm, bk, rows):
    """TL1 in tiles of bm x bk and blocks of `rows` rows; payload, f32 scale, 28 zero bytes."""
    m, k = t.shape
    by, out = 256 // rows, bytearray(m * k // 4)
    for r in range(m):
        for c in range(0, k, 2):
            at = (r // bm) * (k // bk) + c // bk
            at = at * (bm // rows) + r % bm // rows
            at = at * (bk // by) + c % bk // by
            at = at * (rows // 16) + r % rows // 16
            at = at * (by // 4) + c % by // 4
            index = 3 * int(t[r, c]) + int(t[r, c + 1]) + 4
            out[at * 16 + r % 16] |= index << (4 if c % by // 2 % 2 == 0 else 0)
    return bytes(out) + np.float32(scale).tobytes() + bytes(28)


def tl2(t, scale, bm, bk):
    """TL2 in tiles of bm x bk: triples, their signs, pairs, the writer's gap, then the scale."""
    m, k = t.shape
    k3 = k - k % bk
    signs, pairs = m * k3 // 6, m * k3 // 6 + m * k3 // 24
    allocated = (k - 256) * m // 3 * 5 // 8 + 256 * m // 2 * 4 // 8
    out = bytearray((allocated + 31) // 32 * 32)
    for r in range(m):
        rt, rb, rr = r // bm, r % bm // 32, r % 32
        pos = [0, 2, 1, 3][rr // 8] * 8 + rr % 8
        for c in range(0, k3, 3):
            v = 9 * int(t[r, c]) + 3 * int(t[r, c + 1]) + int(t[r, c + 2])
            tile = rt * (k3 // bk) + c // bk
            at = ((tile * (bm // 32) + rb) * (bk // 6) + c % bk // 6) * 32 + pos
            out[at] |= abs(v) << (4 if c % 6 < 3 else 0)
            word = ((tile * (bm // 32) + rb) * (bk // 24) + c % bk // 24) * 16 + rr % 16
            bit = 15 - (2 * (c % 24 // 3) + rr // 16)
            if v < 0:
                out[signs + 2 * word + bit // 8] |= 1 << bit % 8
        for c in range(k3, k, 2):
            at = c - k3
            tile = rt * ((k - k3) // 32) + at // 32
            byte = pairs + ((tile * (bm // 32) + rb) * 8 + at % 32 // 4) * 32 + pos
            out[byte] |= 3 * int(t[r, c]) + int(t[r, c + 1]) + 4 << (4 if at % 4 < 2 else 0)
    return bytes(out) + np.float32(scale).tobytes() + bytes(28)
