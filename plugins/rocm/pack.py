"""Packs code objects of kernels into the archive that the plugin carries, which code_objects.cpp reads.

    pack.py ARCHIVE by=CLANG TARGET,TARGET... [by=CLANG TARGET,TARGET... ...] -- <target>.<part>.hsaco...

Files are of the first target of each list; the others of a list have the same instructions, and get the same bytes. The machine's number
that the ELF header of each has is what CLANG, the last one before the list, writes for it.

The archive: "BNROCM2\\0", the number of entries and a word of zeros; entries; then the code objects. An entry is the names of
target, base and part (16, 16 and 24 bytes), the machine's number, a word of zeros, and offset and bytes as 64-bit
numbers. All are little-endian. Nothing is compressed here: packages compress the plugin as a whole.
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

FLAGS = 48  # e_flags in Elf64_Ehdr; its lowest byte is EF_AMDGPU_MACH


def machine_of(clang, target, scratch):
    out = pathlib.Path(scratch, target)
    subprocess.run([clang, "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-x", "assembler", "-c", "-o", out, "-"],
                   input=b"", check=True)
    return out.read_bytes()[FLAGS]


def main(archive, *words):
    entries, blobs, clang = [], {}, None
    families, files = words[:words.index("--")], [pathlib.Path(word) for word in words[words.index("--") + 1:]]
    with tempfile.TemporaryDirectory() as scratch:
        for family in families:
            if family.startswith("by="):
                clang = family[len("by="):]
                continue
            targets = family.split(",")
            if len({len(target) for target in targets}) != 1:
                sys.exit(f"pack.py: {family}: names of one list are of one length, since they are written over each other")
            machines = {target: machine_of(clang, target, scratch) for target in targets}
            for file in files:
                target, part, _ = file.name.split(".")
                if target != targets[0]:
                    continue
                code = file.read_bytes()
                if code[FLAGS] != machines[target]:
                    sys.exit(f"pack.py: {file} is for another machine")
                blobs[targets[0], part] = code
                entries += [(target, targets[0], part, machines[target]) for target in targets]
    form = struct.Struct("<16s16s24sII2Q")
    offset, places, body = 16 + form.size * len(entries), {}, b""
    for key, code in blobs.items():
        places[key] = (offset + len(body), len(code))
        body += code
    head = struct.pack("<8sII", b"BNROCM2\0", len(entries), 0)
    for target, base, part, machine in entries:
        head += form.pack(target.encode(), base.encode(), part.encode(), machine, 0, *places[base, part])
    pathlib.Path(archive).write_bytes(head + body)


if __name__ == "__main__":
    main(*sys.argv[1:])
