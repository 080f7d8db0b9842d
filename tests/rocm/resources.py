"""What kernels take of AMD's devices, read from their code objects, against the table in resources.csv.

    resources.py [--write] TABLE FOLDER COMPILER...   FOLDER: with <target>.<part>.hsaco

Of each kernel the most that any target of its kind takes: vector registers, those that are kept in memory (spills),
bytes of memory of a thread, and bytes of memory of a group of fixed size. Kinds are targets with waves of 64 lanes, of 32,
gfx11, for which clang 15 uses 128 registers at most, and gfx12, which another compiler may be for. What takes more is an
error, and what takes less is written down, with --write. Other releases of the compilers than the table's are not judged.
"""

import collections
import csv
import pathlib
import re
import struct
import subprocess
import sys

COLUMNS = ("vgpr_count", "vgpr_spill_count", "private_segment_fixed_size", "group_segment_fixed_size")
FIXED_SHARED = 256  # bytes that the host leaves to kernels (plugins/rocm/CMakeLists.txt)


def unpack(data, at=0):
    """One value of MessagePack, and where it ends."""
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind < 0x90 or kind in (0xde, 0xdf):
        count, at = (kind & 15, at) if kind < 0x90 else number(data, at, 2 if kind == 0xde else 4)
        out = {}
        for _ in range(count):
            key, at = unpack(data, at)
            out[key], at = unpack(data, at)
        return out, at
    if kind < 0xa0 or kind in (0xdc, 0xdd):
        count, at = (kind & 15, at) if kind < 0xa0 else number(data, at, 2 if kind == 0xdc else 4)
        out = []
        for _ in range(count):
            value, at = unpack(data, at)
            out.append(value)
        return out, at
    if kind < 0xc0 or 0xd9 <= kind <= 0xdb:
        size, at = (kind & 31, at) if kind < 0xc0 else number(data, at, 1 << (kind - 0xd9))
        return data[at:at + size].decode(), at + size
    if kind in (0xc2, 0xc3):
        return kind == 0xc3, at
    if 0xcc <= kind <= 0xcf:
        return number(data, at, 1 << (kind - 0xcc))
    raise ValueError(f"kind {kind:#x} of MessagePack")


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "big"), at + size


def kernels(path):
    """The metadata of each kernel: LLVM, "User Guide for AMDGPU Backend", code object V3 and later."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for i in range(count):
        kind, _, _, begin, length = struct.unpack_from("<IQQQQ", data, offset + i * size + 4)
        if kind != 7:  # SHT_NOTE
            continue
        name, desc, note = struct.unpack_from("<III", data, begin)
        if note == 32 and length:  # NT_AMDGPU_METADATA
            at = begin + 12 + (name + 3) // 4 * 4
            return unpack(data[at:at + desc])[0]["amdhsa.kernels"]
    sys.exit(f"{path} has no note with metadata")


def measure(folder):
    found = collections.defaultdict(lambda: [0] * len(COLUMNS))
    targets = set()
    for path in sorted(pathlib.Path(folder).glob("*.*.hsaco")):
        target = path.name.split(".")[0]
        targets.add(target)
        for kernel in kernels(path):
            kind = target[:5] if re.fullmatch("gfx1[12]..", target) else str(kernel[".wavefront_size"])
            row = found[kernel[".name"], kind]
            for i, column in enumerate(COLUMNS):
                row[i] = max(row[i], kernel[f".{column}"])
    return found, targets


def release(compiler):
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"version ([0-9.]+)", said)[1]


def main(words):
    write = words[:1] == ["--write"]
    table, folder, *compilers = words[write:]
    found, targets = measure(folder)
    if not found:
        sys.exit(f"{folder} has no code objects")
    now = f"# version {' and '.join(map(release, compilers))}, targets {' '.join(sorted(targets))}"
    rows = dict(found)
    if write:
        with open(table, "w", encoding="utf-8", newline="") as file:
            file.write(now + "\n")
            out = csv.writer(file, lineterminator="\n")
            out.writerow(("kernel", "kind", *COLUMNS))
            out.writerows((name, kind, *rows[name, kind]) for name, kind in sorted(rows))
        return 0
    with open(table, encoding="utf-8", newline="") as file:
        judged = file.readline().strip()
        wanted = {(row["kernel"], row["kind"]): [int(row[column]) for column in COLUMNS]
                  for row in csv.DictReader(file)}
    wrong = [f"{name} of {kind} takes {values[3]} bytes of memory of a group; the host leaves {FIXED_SHARED}"
             for (name, kind), values in rows.items() if values[3] > FIXED_SHARED]
    if judged != now and not wrong:
        print(f"skip: the compiler is of {now[2:]}, and {table} of {judged[2:]}")
        return 77
    wrong += [f"{key} is in one of {table} and the code objects" for key in sorted(rows.keys() ^ wanted.keys())]
    for key in sorted(rows.keys() & wanted.keys()):
        wrong += [f"{key[0]} of {key[1]}: {got} of {column}; {table} has {before}"
                  for column, got, before in zip(COLUMNS, rows[key], wanted[key]) if got != before]
    print(f"{len(rows)} kernels of {len(targets)} targets, {len(wrong)} differences")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
