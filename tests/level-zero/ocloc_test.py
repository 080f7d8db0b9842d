"""Intel's offline compiler takes each SPIR-V module that the level-zero plugin contains.

Usage: ocloc_test.py FOLDER OCLOC [DEVICE...]

FOLDER has the modules of a build. OCLOC is build/ocloc/ocloc, which scripts/setup unpacks with its libraries beside it; where that
is missing, the ocloc of PATH is taken. DEVICE is a name of `ocloc compile --help`; acm-g10 and pvc without any. Prints for each device
how many modules were compiled, the bytes of machine code, and which kernels have too few registers. Exits 1 if a module is rejected, or
calls a function that it does not contain: ocloc compiles such a call without an error.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

USUAL = ("acm-g10", "pvc")  # GPUs of Arc A and of the data centre: groups of 8 to 16 and of 16 to 32 threads


def missing_functions(module):
    """The names that a module imports, apart from the variables that every driver has."""
    data = module.read_bytes()
    words = struct.unpack_from(f"<{len(data) // 4}I", data)
    names, at = [], 5  # behind the header
    while at < len(words):
        count, instruction = words[at] >> 16, words[at] & 0xffff
        # OpDecorate <target> LinkageAttributes <name> Import
        if instruction == 71 and words[at + 2] == 41 and words[at + count - 1] == 1:
            names.append(data[(at + 3) * 4:(at + count - 1) * 4].rstrip(b"\0").decode())
        at += max(count, 1)
    return [name for name in names if not name.startswith("__spirv_BuiltIn")]


def compile_module(ocloc, module, device, folder):
    """The exit status of ocloc, its words, and the bytes of machine code that it wrote."""
    libraries = ocloc.parent / "lib"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)} if libraries.is_dir() else os.environ
    done = subprocess.run([ocloc, "compile", "-spirv_input", "-file", module, "-device", device, "-out_dir", folder, "-output", module.stem,
                           "-output_no_suffix", "-exclude_ir"], check=False, capture_output=True, text=True, env=environment)
    code = [file for file in pathlib.Path(folder).glob(module.stem + "*") if file.suffix != ".spv"]
    return done.returncode, done.stdout + done.stderr, sum(file.stat().st_size for file in code)


def rejected_on(ocloc, modules, device, folder):
    """The words of ocloc about each module that it rejects, by its name. Prints the summary of the device."""
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        found = list(workers.map(lambda module: compile_module(ocloc, module, device, folder), modules))
    rejected = {module.name: words for module, (status, words, size) in zip(modules, found) if status != 0 or size == 0}
    spilled = [module.stem for module, (_, words, _) in zip(modules, found) if re.search(r"\bspilled\b", words)]
    print(f"{device}: {len(modules) - len(rejected)} of {len(modules)} modules, {sum(size for _, _, size in found)} bytes;",
          f"spilled registers: {', '.join(spilled) or 'none'}")
    return rejected


def main(folder, ocloc, *devices):
    modules = sorted(pathlib.Path(folder).glob("*.spv"))
    ocloc = pathlib.Path(ocloc)
    if not ocloc.is_file():
        on_path = shutil.which("ocloc")
        if on_path is None:
            print("skip: there is no ocloc; scripts/setup --for test unpacks one into build/ocloc")
            return 77
        ocloc = pathlib.Path(on_path)
    if len(modules) < 100:
        print(f"{folder} has {len(modules)} modules; the target bitnet-backend-level-zero makes more than 100")
        return 1
    failed = False
    for module in modules:
        if missing := missing_functions(module):
            print(f"{module.name} calls functions that it does not contain: {', '.join(missing)}")
            failed = True
    with tempfile.TemporaryDirectory() as scratch:
        half = pathlib.Path(scratch) / "half.spv"
        whole = modules[0].read_bytes()
        half.write_bytes(whole[:len(whole) // 8 * 4])
        for device in devices or USUAL:
            made = pathlib.Path(scratch) / device  # of this device only, so that its files are those of its compilations
            made.mkdir(exist_ok=True)
            for name, words in rejected_on(ocloc, modules, device, made).items():
                print(f"{device} rejects {name}: {words.strip()}")
                failed = True
            status, words, size = compile_module(ocloc, half, device, made)
            if status == 0 and size != 0:
                print(f"{device} takes half of a module, so this test would find nothing: {words.strip()}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
