"""Metadata and tensors of a GGUF file, and the ternary values of an I2_S tensor of layout A.

A second plain reader of docs/reference/gguf.md and docs/reference/weights.md#i2_s; it trusts its
input, which is our own model.
"""

import struct

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
F32, F16, BF16, I2_S = 0, 1, 30, 36
GROUPS = {42: (64, 18), 142: (128, 34), 143: (128, 28)}  # elements and bytes of Q2_0, PQ2_0 and PTQ1_0


class Model:
    """`metadata` {key: value}, `tensors` {name: (ne, type, bytes)}; I2_S bytes include the scale."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.content = f.read()
        self.at = 8
        n_tensors, n_pairs = self.scalar("<Q"), self.scalar("<Q")
        self.metadata = {}
        for _ in range(n_pairs):
            key = self.string()
            self.metadata[key] = self.value(self.scalar("<I"))
        infos = []
        for _ in range(n_tensors):
            name = self.string()
            ne = [self.scalar("<Q") for _ in range(self.scalar("<I"))]
            infos.append((name, ne, self.scalar("<I"), self.scalar("<Q")))
        data = -(-self.at // 32) * 32
        self.tensors = {}
        for name, ne, kind, offset in infos:
            n = 1
            for extent in ne:
                n *= extent
            elements, bytes_ = GROUPS.get(kind, (1, 0))
            size = {F32: 4 * n, F16: 2 * n, BF16: 2 * n, I2_S: n // 4 + 32}.get(kind, n // elements * bytes_)
            self.tensors[name] = (ne, kind, self.content[data + offset:data + offset + size])

    def scalar(self, kind):
        out = struct.unpack_from(kind, self.content, self.at)[0]
        self.at += struct.calcsize(kind)
        return out

    def string(self):
        size = self.scalar("<Q")
        self.at += size
        return self.content[self.at - size:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(inner) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def i2s_codes(ne, content):
    """Codes t + 1, a bytearray for each row, and the scale."""
    k, m = ne
    flat = bytearray(k * m)
    for g in range(k * m // 128):
        for p, byte in enumerate(content[32 * g:32 * g + 32]):
            for plane in range(4):
                flat[128 * g + 32 * plane + p] = byte >> (6 - 2 * plane) & 3
    return [flat[k * r:k * (r + 1)] for r in range(m)], struct.unpack_from("<f", content, k * m // 4)[0]


def text(s):
    data = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(data)) + data


def value(v):
    if isinstance(v, bool):
        return 7, struct.pack("<?", v)
    if isinstance(v, int):
        return (4, struct.pack("<I", v)) if v >= 0 else (5, struct.pack("<i", v))
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    if isinstance(v, (str, bytes)):
        return 8, text(v)
    kind = 5 if isinstance(v[0], int) else value(v[0])[0]
    items = b"".join(struct.pack("<i", x) if kind == 5 else value(x)[1] for x in v)
    return 9, struct.pack("<IQ", kind, len(v)) + items


def write(path, metadata, tensors):
    """A file of version 3 with the contents of Model. Texts may be bytes, for those that are not UTF-8."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for name, v in metadata.items():
        kind, data = value(v)
        out += text(name) + struct.pack("<I", kind) + data
    bodies = b""
    for name, (ne, kind, content) in tensors.items():
        out += text(name) + struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, len(bodies))
        bodies += content + bytes(-len(content) % 32)
    with open(path, "wb") as f:
        f.write(out + bytes(-len(out) % 32) + bodies)


def split(path, folder):
    """The model in two parts; their paths."""
    model = Model(path)
    names = list(model.tensors)
    parts = []
    for i, chosen in enumerate((names[:1], names[1:])):
        keys = {"split.no": i, "split.count": 2, "split.tensors.count": len(names)}
        parts.append(f"{folder}/part-{i + 1:05}-of-00002.gguf")
        write(parts[-1], {**(model.metadata if i == 0 else {}), **keys},
              {name: model.tensors[name] for name in chosen})
    return parts
