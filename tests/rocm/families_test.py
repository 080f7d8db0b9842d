"""What is compiled for the first target of a family is the same for the others (plugins/rocm/targets.cmake).

    families_test.py TREE LIBRARIES by=COMPILER FAMILY... [by=COMPILER FAMILY... ...]

LIBRARIES: AMD's device libraries; FAMILY: targets with commas, which the last COMPILER before it is for.

A part that has most kinds of instructions is compiled for each target by itself, and the bytes of its code compared.
"""

import concurrent.futures
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

TREE, LIBRARIES = pathlib.Path(sys.argv[1]), sys.argv[2]
PARTS = ("rows", "elements")


def read(words):
    """Families of several targets, and the compiler of each target."""
    found, compilers, compiler = [], {}, None
    for word in words:
        if word.startswith("by="):
            compiler = word[len("by="):]
        elif "," in word:
            found.append(word.split(","))
            compilers.update(dict.fromkeys(found[-1], compiler))
    return found, compilers


FAMILIES, COMPILERS = read(sys.argv[3:])


def sections(path, names):
    """The bytes of these sections of an ELF file."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 40)
    size, count, of_names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    text = rows[of_names][4]
    called = {data[text + row[0]:data.index(b"\0", text + row[0])].decode(): row for row in rows}
    return {name: data[called[name][4]:called[name][4] + called[name][5]] for name in names}


def compiled(target, part, scratch):
    out = pathlib.Path(scratch, f"{target}.{part}")
    plugins = TREE / "plugins"
    version = ["-mcode-object-version=5"] if target.startswith("gfx12") else []  # as plugins/rocm/CMakeLists.txt
    subprocess.run([COMPILERS[target], *version, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc",
                    f"--rocm-device-lib-path={LIBRARIES}", f"--offload-arch={target}", "-std=c++20", "-O3",
                    "-ffp-contract=off", "-fno-gpu-flush-denormals-to-zero", f"-I{plugins}/rocm/kernels", f"-I{plugins}",
                    f"-I{TREE}/abi/include", f"-I{plugins}/sdk/include", "-include", "device.cuh", "-o", out,
                    plugins / f"gpu-common/simt/{part}.cu"], check=True)
    return sections(out, (".text", ".rodata"))


class Families(unittest.TestCase):
    def test_have_the_same_code(self):
        with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = {(target, part): pool.submit(compiled, target, part, scratch)
                    for family in FAMILIES for target in family for part in PARTS}
            for family in FAMILIES:
                for target in family[1:]:
                    for part in PARTS:
                        self.assertEqual(made[target, part].result(), made[family[0], part].result(),
                                         f"{part} for {target} and for {family[0]}")


if __name__ == "__main__":
    if not FAMILIES:
        print("skip: no two targets of this build share their code")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
