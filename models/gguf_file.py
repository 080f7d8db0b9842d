"""A small GGUF v3 reader and writer that knows type 36 (I2_S), which the public package rejects.

I2_S here is layout A: 128 weights per 32 bytes, byte p of a group holding elements p, p+32, p+64, p+96
from its high bit pair to its low one, as codes t + 1; then a float32 scale at byte n/4 and zeros up to
n/4 + 32 bytes. It is for the files of this folder; it trusts them and is no parser for strangers' files.
"""

import struct

import numpy as np

F32, F16, I2_S = 0, 1, 36
ALIGNMENT = 32
U32, F32_VALUE, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
INT32 = 5


def pack_i2s(ternary: np.ndarray, scale: float) -> bytes:
    """ternary: (rows, columns) of -1, 0, 1 with rows * columns a multiple of 128."""
    codes = (ternary.reshape(-1, 4, 32) + 1).astype(np.uint8)
    packed = codes[:, 0] << 6 | codes[:, 1] << 4 | codes[:, 2] << 2 | codes[:, 3]
    return packed.tobytes() + struct.pack("<f", scale) + bytes(28)


def unpack_i2s(data: bytes, shape) -> tuple:
    """(codes in 0..3 of `shape`, scale)"""
    n = int(np.prod(shape))
    packed = np.frombuffer(data, np.uint8, n // 4).reshape(-1, 32)
    codes = np.stack([packed >> s & 3 for s in (6, 4, 2, 0)], axis=1).reshape(shape)
    return codes, struct.unpack_from("<f", data, n // 4)[0]


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(value) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32_VALUE, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _string(value)
    if isinstance(value[0], str):
        return (struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_string, value)))
    return struct.pack("<IIQ", ARRAY, INT32, len(value)) + struct.pack(f"<{len(value)}i", *value)


def _padding(size: int) -> bytes:
    return bytes(-size % ALIGNMENT)


def write(path, metadata: dict, tensors: list) -> None:
    """tensors: (name, shape with rows first, type, bytes), written in this order without gaps."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += _string(key) + _value(value)
    offset = 0
    for name, shape, kind, data in tensors:
        head += _string(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *reversed(shape))      # GGUF names the input width first
        head += struct.pack("<IQ", kind, offset)
        offset += len(data) + len(_padding(len(data)))
    with open(path, "wb") as file:
        file.write(head + _padding(len(head)))
        for *_, data in tensors:
            file.write(data + _padding(len(data)))


class _Cursor:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, form: str):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def string(self) -> str:
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8")

    def value(self, kind: int):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, n = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(n)]
        return self.take({U32: "I", INT32: "i", F32_VALUE: "f", BOOL: "?"}[kind])


def read(path) -> tuple:
    """(metadata, {name: (type, shape with rows first, bytes)})"""
    with open(path, "rb") as file:
        cursor = _Cursor(file.read())
    magic, version, n_tensors, n_kv = cursor.take("4sIQQ")
    if magic != b"GGUF" or version != 3:
        raise ValueError(f"{path}: expected GGUF v3, found {magic!r} v{version}")
    metadata = {}
    for _ in range(n_kv):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.take("I"))
    infos = []
    for _ in range(n_tensors):
        name, n_dims = cursor.string(), cursor.take("I")
        shape = tuple(cursor.take("Q") for _ in range(n_dims))[::-1]
        infos.append((name, shape, cursor.take("I"), cursor.take("Q")))
    begin = cursor.at + len(_padding(cursor.at))
    tensors = {}
    for name, shape, kind, offset in infos:
        n = int(np.prod(shape))
        size = {F32: 4 * n, F16: 2 * n, I2_S: n // 4 + 32}[kind]
        data = cursor.data[begin + offset:begin + offset + size]
        if len(data) != size:
            raise ValueError(f"{path}: tensor {name} is cut off")
        tensors[name] = (kind, shape, data)
    return metadata, tensors
