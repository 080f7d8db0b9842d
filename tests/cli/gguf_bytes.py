"""Where every field of a GGUF file lies, to break files field by field.

A deliberately plain reader of docs/reference/gguf.md; it trusts its input, which is our own model.
"""

import struct

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


class Field:
    """`size` bytes at `offset`; `kind` is a struct format."""

    def __init__(self, name, offset, kind):
        self.name, self.offset, self.kind = name, offset, kind

    @property
    def size(self):
        return struct.calcsize(self.kind)


class Layout:
    """`fields` of the header, `pairs` {key: (begin, end)}, `tensors` (begin, end), `data` offset."""

    def __init__(self, content):
        self.content, self.at = content, 0
        self.fields, self.pairs = [], {}
        assert content[:4] == b"GGUF"
        self.at = 4
        self.version = self.scalar("version", "<I")
        self.n_tensors = self.scalar("tensor count", "<Q")
        n_pairs = self.scalar("pair count", "<Q")
        self.pairs_begin = self.at
        for _ in range(n_pairs):
            self.pair()
        self.tensors_begin = self.at
        for i in range(self.n_tensors):
            self.tensor(i)
        self.tensors_end = self.at
        self.alignment = 32
        self.data = -(-self.at // self.alignment) * self.alignment

    def scalar(self, name, kind):
        field = Field(name, self.at, kind)
        self.fields.append(field)
        self.at += field.size
        return struct.unpack_from(kind, self.content, field.offset)[0]

    def string(self, name):
        size = self.scalar(f"length of {name}", "<Q")
        text = self.content[self.at:self.at + size]
        self.at += size
        return text.decode("utf-8", "replace")

    def pair(self):
        begin = self.at
        n_fields = len(self.fields)
        key = self.string("key")
        self.fields[n_fields].name = f"length of key {key}"
        self.value(key, self.scalar(f"type of {key}", "<I"))
        self.pairs[key] = (begin, self.at)

    def value(self, key, kind):
        if kind == STRING:
            self.string(key)
        elif kind == ARRAY:
            inner = self.scalar(f"item type of {key}", "<I")
            count = self.scalar(f"item count of {key}", "<Q")
            kept = len(self.fields)
            if inner in SCALARS:
                self.at += count * struct.calcsize(SCALARS[inner])
            else:
                for _ in range(count):
                    self.value(key, inner)
                del self.fields[kept + 1:]  # the first item stands for all
        else:
            self.scalar(key, SCALARS[kind])

    def tensor(self, index):
        kept = len(self.fields)
        name = self.string("tensor name")
        for i in range(self.scalar(f"dimensions of {name}", "<I")):
            self.scalar(f"extent {i} of {name}", "<Q")
        self.scalar(f"type of {name}", "<I")
        self.scalar(f"offset of {name}", "<Q")
        if index not in (0, 1, self.n_tensors - 1):
            del self.fields[kept:]

    def extremes(self, field):
        """Values at the ends of the field's type, other than the one that is there."""
        if field.kind == "<f":
            values = [0.0, float("inf"), float("nan"), -1.0, 3.0e38]
        elif field.kind == "<d":
            values = [0.0, float("inf"), float("nan"), -1.0, 1.0e308]
        elif field.kind == "<?":
            values = [False, True]
        else:
            bits = 8 * field.size
            signed = field.kind[-1].islower()
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
            values = sorted({low, 0, 1, high})
        there = self.content[field.offset:field.offset + field.size]
        return [v for v in values if struct.pack(field.kind, v) != there]

    def with_value(self, field, value):
        broken = bytearray(self.content)
        struct.pack_into(field.kind, broken, field.offset, value)
        return bytes(broken)

    def without_pairs(self, prefix):
        """The same model without the keys that start with `prefix`."""
        kept = [self.content[b:e] for key, (b, e) in self.pairs.items()
                if not key.startswith(prefix)]
        head = self.content[:4] + struct.pack("<IQQ", self.version, self.n_tensors, len(kept))
        head += b"".join(kept) + self.content[self.tensors_begin:self.tensors_end]
        return head + b"\0" * (-len(head) % self.alignment) + self.content[self.data:]

    def vocabulary_only(self):
        """The metadata without a single tensor."""
        head = self.content[:4] + struct.pack("<IQQ", self.version, 0, len(self.pairs))
        return head + self.content[self.pairs_begin:self.tensors_begin]
