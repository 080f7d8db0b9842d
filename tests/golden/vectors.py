#!/usr/bin/env python3
"""Makes the golden vectors of the weight formats and judges them by their published CRC-32.

    vectors.py          writes vectors.txt beside this file
    vectors.py --check  fails if vectors.txt is not what would be written

Lines of vectors.txt (a '#' starts a comment; fields are separated by one space):
    bytes  NAME SIZE CRC32 HEX     the whole vector
    ints   NAME COUNT V V ...      exact integers
    floats NAME COUNT V V ...      seven significant digits unless they are exact
"""

import argparse
import pathlib
import struct
import sys
import zlib

try:
    import numpy as np
except ImportError as error:
    print(f"skip: {error}; scripts/setup installs tests/reference/requirements.txt into build/venv")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "reference"))
import packing  # noqa: E402


def ternary(count):
    """The first `count` values of the generator: an LCG, its upper half modulo 3, minus 1."""
    out, x = np.empty(count, np.int8), 1
    for i in range(count):
        x = (1664525 * x + 1013904223) % 2**32
        out[i] = (x >> 16) % 3 - 1
    return out


def minimal_gguf():
    """One I2_S tensor "w" of 128 values, version 3, alignment 32: 192 bytes."""
    text = lambda s: struct.pack("<Q", len(s)) + s
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    head += text(b"general.architecture") + struct.pack("<I", 8) + text(b"bitnet")
    head += text(b"w") + struct.pack("<IQQIQ", 2, 128, 1, 36, 0)
    return head + bytes(-len(head) % 32) + packing.i2s(ternary(128)[None], 0.25)


def quantize_row(x):
    """Activation quantisation of float32 values: the float32 scale, the int8 values (half to even).

    The product is float32 too: only then do the decimal halves of the first row below meet a tie.
    """
    x = np.float32(x)
    s = np.float32(127 / max(np.abs(x.astype(float)).max(), 1e-5))
    return s, np.clip(np.rint(x * s), -128, 127).astype(int)


def rope(v, pos, base, neox):
    v = np.asarray(v, float)
    half = len(v) // 2
    angle = pos * base ** (-2 * np.arange(half) / len(v))
    first, second = (v[:half], v[half:]) if neox else (v[0::2], v[1::2])
    a = first * np.cos(angle) - second * np.sin(angle)
    b = first * np.sin(angle) + second * np.cos(angle)
    return np.concatenate([a, b]) if neox else np.stack([a, b], axis=1).reshape(-1)


class Vectors:
    """Vectors as (comment, kind, name, payload). Asserts every published number on the way."""

    def __init__(self):
        self.rows = []
        self.ternary = ternary(1024).reshape(4, 256)  # every vector of a format encodes 0.25 times it

    def note(self, why, kind, name, payload):
        """One that needs no check."""
        self.rows.append((why, kind, name, payload))

    def data(self, name, blob, size, crc, first, why, payload=None):
        judged = blob if payload is None else blob[:payload]
        assert len(blob) == size, (name, len(blob))
        assert zlib.crc32(judged) == crc, (name, hex(zlib.crc32(judged)))
        assert blob.hex().startswith(first), (name, blob[:16].hex())
        self.note(why, "bytes", name, blob)

    def ints(self, name, values, expected, why):
        assert list(values) == expected, (name, list(values))
        self.note(why, "ints", name, expected)

    def floats(self, name, values, expected, why):
        assert np.allclose(values, expected, rtol=0, atol=6e-8 * max(1, np.abs(expected).max())), (name, values)
        self.note(why, "floats", name, expected)

    def grouped(self, name, values, payload_crc, blob, size, crc, first, why):
        """`values` over d = 0.5, and their CRC as float32: what every reader must make of the bytes."""
        self.note(f"{why}; d = 0.5", "ints", f"{name}_ternary", values.tolist())
        assert zlib.crc32((0.5 * values).astype("<f4").tobytes()) == payload_crc, name
        self.data(name, blob, size, crc, first.replace(" ", ""), "")


def matrix(v):
    """The matrix itself."""
    t = v.ternary
    v.note("the 4 x 256 ternary matrix, row major; every vector below encodes 0.25 times it",
           "ints", "ternary", t.reshape(-1).tolist())
    v.ints("ternary_row_counts", [int((t[r] == code).sum()) for r in range(4) for code in (-1, 0, 1)],
           [78, 94, 84, 86, 81, 89, 93, 83, 80, 104, 91, 61], "counts of -1, 0, +1 for rows 0..3")


def ternary_types(v):
    """Types whose scale is one for all, for a row or for a block."""
    t = v.ternary
    d = np.full((4, 1), 0.25)
    v.data("i2s_a", packing.i2s(t, 0.25, "a"), 288, 0x57422E46, "52896a4a1925a22129400594902905a8",
           "I2_S layout A; the CRC in this file covers scale and zero padding too", 256)
    assert zlib.crc32(packing.i2s(t, 0.25, "a")) == 0x4FCA33E8
    v.data("i2s_b", packing.i2s(t, 0.25, "b"), 288, 0xA04CAA5D, "56a16a60051a880a2940108686281098",
           "I2_S layout B (64-groups)", 256)
    v.data("i2s_c", packing.i2s(t, 0.25, "c"), 288, 0x5630EFB8, "628162480a25912504690a85a0210092",
           "I2_S layout C (four rows per byte)", 256)
    tq1, tq2 = packing.tq1_0(t, d), packing.tq2_0(t, d)
    assert tq1[50:54].hex() == "2a7f0034" and tq2[62:66].hex() == "59460034"
    v.data("tq1_0", tq1, 216, 0xB06B1FAA, "7bc2a86f3547ec3f51580ed1c8500ef7", "TQ1_0, d = 0.25")
    v.data("tq2_0", tq2, 264, 0x2B11A99F, "8562a9a164588a48680150160668502a", "TQ2_0, d = 0.25")
    # These three are not published: their bytes are what packing.py makes, read back by reference.py.
    groups = [0.25] * 16
    v.data("q2_0_example", packing.q2_0(t + 1, groups), 288, 0xCB8F51A4, "", "Q2_0, d = 0.25")
    v.data("pq2_0_example", packing.q2_0(t + 1, groups[:8], 128), 272, 0x6D8ABC50, "", "PQ2_0, d = 0.25")
    v.data("ptq1_0_example", packing.ptq1_0(t, groups[:8]), 224, 0xE4953F2A, "", "PTQ1_0, d = 0.25")
    one = np.full(4, 0.25)
    v.data("iq1_bn", packing.iq1_bn(t, one), 216, 0xDB3AB946, "00342e5c1a543a906a55466e321a19fd3a93", "IQ1_BN")
    v.data("iq2_bn", packing.iq2_bn(t, one), 272, 0x4CE9EF31, "0000803e954aa90950a422a06801049292280426", "IQ2_BN")
    v.data("iq2_bn_r4", packing.iq2_bn_r4(t, one), 272, 0x15AE541B,
           "0000803e" * 4 + "811209a182a80648182420160a552694", "IQ2_BN_R4")
    v.data("hf_u8", packing.hf_u8(t), 256, 0xDE3AA198, "89428921a05846581069a0520a480086",
           "packed U8 [1, 256] of Hugging Face checkpoints, without its scale")
    v.data("bitnet32", packing.bitnet32(t, np.full(32, 0.25)), 320, 0xFC26B6C5, "ae75d9d7fe5967ad0034",
           "BitNet32-F16 of BitNet-rs")


def grouped_types(v):
    """Types with a scale for 64, 128 or 256: one row of 256 values of another rule, d = 0.5."""
    i = np.arange(256)
    g = ((7 * i + 5 * (i // 16) + i // 128) % 3 - 1).astype(np.int8)

    for name, blob, size, crc, first, why in (
            ("q2_0_64", packing.q2_0(g + 1, [0.5] * 4), 72, 0x695C753C, "0038 2449 9224 2449", "Q2_0"),
            ("q2_0_128", packing.q2_0(g + 1, [0.5] * 2, 128), 68, 0x388B1B66, "0038 2449 9224 2449",
             "PQ2_0, and older Q2_0: groups of 128"),
            ("q2_0_128_last", packing.q2_0(g + 1, [0.5] * 2, 128, True), 68, 0x696C8222,
             "2449 9224 2449 9224", "Q2_0 of groups of 128 with the scale behind them"),
            ("ptq1_0", packing.ptq1_0(g, [0.5] * 2), 56, 0x2D55481A,
             "0080ff" * 5 + "00" + "4060e0 4060e0 4060 ce43 0038", "PTQ1_0")):
        v.grouped(name, g, 0x28CEDD49, blob, size, crc, first, why)
    signs = np.where(g > 0, 1, -1).astype(np.int8)
    v.grouped("q1_0", signs, 0x949D6F12, packing.q1_0(signs.reshape(-1, 128), [0.5] * 2), 36, 0x17B6208F,
              "0038 2449 2449", "Q1_0")
    sherry = np.zeros(256, np.int8)
    for group in range(64):
        for lane in range(4):
            sign = 1 if (3 * group + 5 * lane) // 2 % 2 == 0 else -1
            sherry[group // 16 * 64 + 16 * lane + group % 16] = 0 if lane == group % 4 else sign
    v.grouped("stq1_0", sherry, 0xD0ADD82C, packing.stq1_0(sherry, [0.5]), 42, 0x87229AFA,
              "53fa" * 16 + "66" * 8 + "0038", "STQ1_0")


def tables(v):
    """TL1 and TL2."""
    for m, k, bm, bk, high, size, crc, first in (
            (128, 128, 64, 64, 32, 4096, 0xDB2838C2, "54706613020276188384553356223516"),
            (128, 256, 128, 64, 64, 8192, 0x6F276D20, "54660276835556358575737226374778")):
        blob = packing.tl1(ternary(m * k).reshape(m, k), 0.25, bm, bk, high)
        v.data(f"tl1_{m}x{k}", blob, size + 32, crc, first,
               f"TL1, tiles of {bm} x {bk}, blocks of {high} rows; scale 0.25", size)
    for m, k, bm, bk, size, crc, first in (
            (128, 352, 64, 96, 10752, 0x1BC6CD71, "3420a9bc399b77c9c8d3aabbb28a7cb0"),
            (64, 288, 32, 96, 4522, 0xFB676A0E, "")):
        blob = packing.tl2(ternary(m * k).reshape(m, k), 0.25, bm, bk)
        v.data(f"tl2_{m}x{k}", blob, (size + 31) // 32 * 32 + 32, crc, first,
               f"TL2, tiles of {bm} x {bk}; scale 0.25", size)


def dense_types(v):
    """Types of dense weights, and a whole file."""
    w = (0.25 * v.ternary).astype(np.float32)
    v.data("q8_0", packing.q8_0(w), 1088, 0xDEC106B4, "0818007f000081817f818100817f7f81", "Q8_0")
    v.data("q4_0", packing.q4_0(w), 576, 0xC99B7DBA, "00a888000808ff8ff0ff0ff88ff0f00f", "Q4_0")
    v.data("f16", w.astype("<f2").tobytes(), 2048, 0x18EE99CB, "", "F16")
    v.data("bf16", packing.bf16(w), 2048, 0xE64D8320, "", "BF16")
    v.data("minimal_gguf", minimal_gguf(), 192, 0x47890927, "474755460300000001",
           "the smallest model file: one I2_S tensor w [128, 1] holding the first 128 values")


def products(v):
    """Integer sums of a row and activations."""
    t = v.ternary
    q = (37 * np.arange(256)) % 255 - 127
    v.ints("matvec_q", q.tolist(), q.tolist(), "int8 activations q[k] = (37 k mod 255) - 127")
    v.ints("matvec_sum_q", [q.sum()], [-127], "")
    v.ints("matvec_sum_tq", t.astype(int) @ q, [1383, -1165, 870, -226], "sum of t * q per row")
    v.ints("matvec_sum_codeq", (t.astype(int) + 1) @ q, [1256, -1292, 743, -353], "sum of (t + 1) * q per row")
    v.ints("matvec_all127", t.astype(int) @ np.full(256, 127), [762, 381, -1651, -5461], "q = 127 everywhere")


def quantised_rows(v):
    """Activations as int8."""
    for name, x, scale, expected, why in (
            ("half_even", [1.27, .005, .015, .025, -.005, -.015], 100, [127, 0, 2, 2, 0, -2],
             "float32 products on exact halves go to the even neighbour"),
            ("no_clamp", [.5, -1, 2, -4, 3.99], 31.75, [16, -32, 64, -127, 127], "15.875 rounds up"),
            ("zeros", [0, 0, 0, 0], 12700000, [0, 0, 0, 0], "the floor of 1e-5 keeps the scale finite"),
            ("tiny", [1e-7, -2e-7, 3e-6, 0], 12700000, [1, -3, 38, 0], "below the floor")):
        s, values = quantize_row(x)
        assert abs(s - scale) <= 1e-7 * scale
        v.note(why, "floats", f"quant_{name}_x", x)
        v.note("", "floats", f"quant_{name}_s", [scale])
        v.ints(f"quant_{name}_q", values.tolist(), expected, "")


def other_rows(v):
    """Norm, rotation, activation, and an order of rows."""
    x, weight = np.array([1., -2, 3, -4]), np.array([1, .5, 2, 1])
    v.note("eps = 1e-5", "floats", "rmsnorm_x", x.tolist())
    v.note("", "floats", "rmsnorm_w", weight.tolist())
    v.floats("rmsnorm_y", x / np.sqrt((x * x).mean() + 1e-5) * weight,
             [.3651481, -.3651481, 2.1908889, -1.4605925], "")
    v.note("position 3, base 10000, head size 4", "floats", "rope_x", [1, 2, 3, 4])
    v.floats("rope_neox_y", rope([1, 2, 3, 4], 3, 1e4, True), [-1.4133525, 1.8791181, -2.8288575, 4.0581911],
             "pairs (i, i + 2)")
    v.floats("rope_norm_y", rope([1, 2, 3, 4], 3, 1e4, False), [-1.2722325, -1.8388650, 2.8786681, 4.0881866],
             "pairs (2 i, 2 i + 1)")
    gate, up = np.array([-1, .5, 2]), np.array([3., 4, -1])
    v.note("", "floats", "relu2_gate", gate.tolist())
    v.note("", "floats", "relu2_up", up.tolist())
    v.floats("relu2_y", np.maximum(gate, 0) ** 2 * up, [0, 1, -4], "relu(gate) squared, times up")
    order = np.arange(8).reshape(2, 2, 2).swapaxes(1, 2).reshape(-1)
    v.ints("qk_permutation", order.tolist(), [0, 2, 1, 3, 4, 6, 5, 7],
           "rows of Q or K for interleaved rotation: two heads of size 4")


def build():
    """All vectors, in the order of the file."""
    v = Vectors()
    for part in (matrix, ternary_types, grouped_types, tables, dense_types, products, quantised_rows, other_rows):
        part(v)
    return v.rows


def render(rows):
    lines = ["# Golden vectors of the weight formats. Written by vectors.py; do not edit.",
             "# bytes NAME SIZE CRC32 HEX | ints NAME COUNT V... | floats NAME COUNT V..."]
    for why, kind, name, payload in rows:
        if why:
            lines.append(f"# {why}")
        if kind == "bytes":
            lines.append(f"bytes {name} {len(payload)} {zlib.crc32(payload):08x} {payload.hex()}")
        else:
            shown = " ".join(str(v) if kind == "ints" else f"{v:.9g}" for v in payload)
            lines.append(f"{kind} {name} {len(payload)} {shown}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with vectors.txt, write nothing")
    args = parser.parse_args()
    text, path = render(build()), HERE / "vectors.txt"
    if args.check:
        if path.read_text() != text:
            sys.exit(f"{path.name} is not what vectors.py makes; run vectors.py and look at the difference")
    else:
        path.write_text(text)
    print(f"{path.name}: {sum(1 for l in text.splitlines() if not l.startswith('#'))} vectors, every CRC-32 as published")


if __name__ == "__main__":
    main()
