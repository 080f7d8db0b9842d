"""What differs between makers of GPUs, kernels have from wave.cuh, device.cuh and matrix.cuh alone; warps may have 64 lanes.

    waves_test.py TREE COMPILER...   COMPILER: of C++, for this machine

Exchanges of lanes, products of bytes and fragments of matrices have one name each there, so that the same texts can be
compiled for another maker's device. Those that makers share compile with 64 lanes.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import unittest

TREE, COMPILER = pathlib.Path(sys.argv[1]), sys.argv[2:]
KERNELS, SHARED = TREE / "plugins/cuda/kernels", TREE / "plugins/gpu-common/simt"
ROCM = TREE / "plugins/rocm/kernels"  # absent where that backend was taken out of the tree
BEHIND = {"wave.cuh", "device.cuh", "matrix.cuh"}
# Of CUDA's language, of its headers for products of matrices, and of clang for AMD's devices.
RAW = re.compile(r"\b(__(?:shfl|ballot|any|all|activemask|match|reduce|syncwarp|dp[24]a|clz|ffs|popc|brev|fns|vote|"
                 r"nanosleep|cvta|builtin_amdgcn|ocml|hip)\w*|asm|wmma|mma|ldmatrix|cooperative_groups|warpSize)\b")


def code_of(text):
    """Without comments and texts."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', " ", text, flags=re.DOTALL)


class Waves(unittest.TestCase):
    def test_a_raw_intrinsic_is_found(self):
        for text in ("x = __shfl_xor_sync(m, x, 1);", "asm volatile(\"\");", "__dp4a(a, b, c)", "wmma::fragment<>",
                     "__builtin_amdgcn_mfma_i32_16x16x16i8(a, b, c, 0, 0, 0)", "__ocml_exp_f32(x)"):
            self.assertTrue(RAW.search(code_of(text)), text)
        for text in ("// asm", "/* __clz\n */", 'const char* a = "asm";', "shuffle_xor(x, 1)", "multiply_f16(c, a, b)"):
            self.assertFalse(RAW.search(code_of(text)), text)

    def test_kernels_contain_no_raw_warp_intrinsics(self):
        found, files = [], 0
        for file in sorted([*KERNELS.iterdir(), *SHARED.iterdir(), *(ROCM.iterdir() if ROCM.is_dir() else [])]):
            if file.suffix in (".cu", ".cuh", ".hpp") and file.name not in BEHIND:
                files += 1
                found += [f"{file.name}: {word}" for word in RAW.findall(code_of(file.read_text(encoding="utf-8")))]
        self.assertGreater(files, 15, "kernels lie elsewhere now")
        self.assertEqual(found, [], "wave.cuh, device.cuh and matrix.cuh have these under names that kernels use")

    def test_warps_may_have_64_lanes(self):
        def compiled(name):
            words = [*COMPILER, "-fsyntax-only", "-std=c++20", "-xc++", "-include", "simt.hpp", "-include", "device.cuh", "-DBITNET_SIMT",
                     "-DBITNET_WARP_LANES=64", f"-I{TREE}/tests/simt", f"-I{KERNELS}", f"-I{TREE}", f"-I{TREE}/plugins",
                     f"-I{TREE}/abi/include", f"-I{TREE}/plugins/sdk/include", SHARED / f"{name}.cu"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            return f"{name}: {done.stderr}" if done.returncode else ""

        names = [file.stem for file in SHARED.glob("*.cu")]
        self.assertGreater(len(names), 5)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.assertEqual([said for said in pool.map(compiled, names) if said], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
