"""Writes GGUF files that the gguf package's own writer cannot: I2_S tensors, version 2, such splits.

Metadata is a dict; a value's Python or NumPy type chooses its GGUF type (int -> u32, float -> f32,
bool, str, list of one of these, np.uint16 and np.int32 as they are). Tensors are (name, shape,
type id, bytes) with shape = [ne0, ne1, ...], ne0 contiguous.
"""

import pathlib
import struct

import numpy as np

ALIGNMENT = 32


def _text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _scalar(value):
    """(type id, encoded value)."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, np.uint16):
        return 2, struct.pack("<H", value)
    if isinstance(value, np.int32):
        return 5, struct.pack("<i", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _text(value)
    raise TypeError(f"no GGUF type for {type(value).__name__}")


def _value(value):
    if not isinstance(value, list):
        return _scalar(value)
    items = [_scalar(v) for v in value]
    return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join(data for _, data in items)


def _padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def write(path, metadata, tensors, version=3):
    out = bytearray(b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata)))
    for key, value in metadata.items():
        kind, data = _value(value)
        out += _text(key) + struct.pack("<I", kind) + data
    offset = 0
    for name, shape, kind, data in tensors:
        out += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", kind, offset)
        offset += len(data) + -len(data) % ALIGNMENT
    with open(path, "wb") as file:  # piece by piece: a model may take half of the memory
        file.write(_padded(bytes(out)))
        for _, _, _, data in tensors:
            file.write(data)
            file.write(bytes(-len(data) % ALIGNMENT))


def write_split(directory, prefix, metadata, tensors, count=2):
    """`count` shards; the first holds the full metadata. Returns the first one's file name."""
    names = [f"{prefix}-{i + 1:05d}-of-{count:05d}.gguf" for i in range(count)]
    cuts = [len(tensors) * i // count for i in range(count + 1)]
    for i, name in enumerate(names):
        split = {"split.no": np.uint16(i), "split.count": np.uint16(count),
                 "split.tensors.count": np.int32(len(tensors))}
        shard = {**(metadata if i == 0 else {}), **split}
        write(pathlib.Path(directory) / name, shard, tensors[cuts[i]:cuts[i + 1]])
    return names[0]
