#!/usr/bin/env python3
"""Compiles all kernels with NVRTC, for a release of CUDA of which no nvcc is at hand.

    nvrtc.py [--syntax] LIBRARY TREE [ARCH...]   LIBRARY: such as libnvrtc.so.12; TREE: the checkout; ARCH: such as 80 or 90a

Prints kernels, most registers and spilled bytes of each text and architecture. Without ARCH these are the architectures of
plugins/cuda/CMakeLists.txt that the library has. A text that does not compile without a warning is an error. --syntax compiles
no further than the front end, which judges types and static_assert: seconds in place of minutes.

NVRTC has the front end, the optimiser and ptxas of its release. Unlike nvcc it has no headers but those below, takes what has no
annotation as the device's, and computes addresses of shared memory in 64 bits. So some kernels take more registers than from nvcc
of the same release, and spilled bytes are no error here.
"""

import argparse
import ctypes
import pathlib
import re
import sys

from budget import OWN

# What kernels use of headers that nvcc finds in the system or includes by itself.
HEADERS = {
    "cstdint": """#pragma once
using int8_t = signed char; using int16_t = short; using int32_t = int; using int64_t = long;
using uint8_t = unsigned char; using uint16_t = unsigned short; using uint32_t = unsigned; using uint64_t = unsigned long;
using uintptr_t = unsigned long;
#define UINTPTR_MAX 0xffffffffffffffffu
#define UINT64_MAX 0xffffffffffffffffu
""",
    "stdint.h": "#include <cstdint>\n",
    "stddef.h": "",
    "cfloat": "#define FLT_MAX 0x1.fffffep127f\n",
    "type_traits": """#pragma once
namespace std {
template <class, class> inline constexpr bool is_same_v = false;
template <class T> inline constexpr bool is_same_v<T, T> = true;
}
""",
}
INFINITY = "-DINFINITY=__int_as_float(0x7f800000)"


class Compiler:
    def __init__(self, library, tree):
        self.nvrtc = ctypes.CDLL(library)
        self.kernels, self.shared = tree / "plugins/cuda/kernels", tree / "plugins/gpu-common/simt"
        self.build = (tree / "plugins/cuda/CMakeLists.txt").read_text(encoding="utf-8")
        options = re.search(r"set\(options ([^)]*)\)", self.build)[1].split()
        folders = (tree / "plugins/cuda", self.kernels, tree / "plugins", tree / "abi/include")
        self.options = [one for one in options if re.match("-std|-fmad|-prec|-ftz", one)] + [
            "--device-as-default-execution-space", "--ptxas-options=-v", INFINITY, "--pre-include=device.cuh",
            *(f"--include-path={one}" for one in folders)]
        if self.release() < (13, 0):
            self.options += re.findall(r'"(-DBITNET_DENSE_GROUPS=[^"]*)"', self.build)

    def texts(self):
        return sorted((*self.kernels.glob("*.cu"), *self.shared.glob("*.cu")), key=lambda one: one.stem)

    def archs(self):
        """Of the build, those that the library has; and those of files that only one has."""
        count = ctypes.c_int()
        self.nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self.nvrtc.nvrtcGetSupportedArchs(known)
        every = re.search(r'set\(every_arch "([0-9;]+)"\)', self.build)[1].split(";")
        return [one for one in every if int(one) in known] + sorted(set(OWN.values()))

    def release(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def compile(self, text, arch, more):
        """True if it compiles, and the log."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        headers = [strings(words) for words in (HEADERS.values(), HEADERS)]
        failed = self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.read_bytes(), str(text).encode(), len(HEADERS), *headers)
        if failed:
            sys.exit(f"NVRTC takes no text: {failed}")
        # Headers beside the text; nvcc finds them by itself.
        options = [*self.options, f"--include-path={text.parent}", f"--gpu-architecture=sm_{arch}", *more]
        failed = self.nvrtc.nvrtcCompileProgram(program, len(options), strings(options))
        self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetProgramLog(program, log)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return not failed, log.value.decode()


def strings(words):
    return (ctypes.c_char_p * len(words))(*(one.encode() for one in words))


def numbers(form, log):
    return [int(one) for one in re.findall(form, log)]


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--syntax", action="store_true")
    parser.add_argument("library")
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("archs", nargs="*")
    given = parser.parse_args(words)
    compiler = Compiler(given.library, given.tree.resolve())
    archs, more = given.archs or compiler.archs(), ["--fdevice-syntax-only"] if given.syntax else []
    wrong, compiled = [], 0
    for text in compiler.texts():
        own = OWN.get(text.stem)
        for arch in archs:
            if arch != own if own else arch in OWN.values():
                continue
            good, log = compiler.compile(text, arch, more)
            registers, spilled = numbers(r"Used (\d+) registers", log), sum(numbers(r"(\d+) bytes spill stores", log))
            found = f"{len(registers)} kernels, at most {max(registers, default=0)} registers, {spilled} bytes spilled"
            print(f"{text.stem} sm_{arch}: {'read' if given.syntax else found}", flush=True)
            compiled += 1
            if not good or "warning" in log or "Potential Performance Loss" in log:
                wrong.append(f"{text.stem} for sm_{arch}:\n{log}")
    print("NVRTC {}.{}: {} compiled, {} of them wrong".format(*compiler.release(), compiled, len(wrong)))
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
