"""The structs that the Rust template wrote down by hand lie in memory as the contract's do.

rust_layout.py RUSTC ABI_RS_FOLDER GOLDEN SCRATCH.
"""

import pathlib
import subprocess
import sys


def structs(text):
    """{name: [its lines]} of a layout as tests/abi/layout.c prints it."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            members = found[line.split()[1]] = []
        members.append(line)
    return found


def main():
    rustc, folder, golden, scratch = sys.argv[1:]
    program = pathlib.Path(scratch) / "rust_layout"
    subprocess.run([rustc, "--edition", "2021", "-D", "warnings", f"{folder}/layout.rs", "-o", program],
                   check=True)
    printed = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    ours, theirs = structs(printed), structs(pathlib.Path(golden).read_text(encoding="utf-8"))
    if len(ours) < 20 or "bitnet_backend_v0" not in ours:
        sys.exit(f"only {len(ours)} structs were printed")
    wrong = 0
    for name, lines in ours.items():
        if lines != theirs.get(name):
            wrong += 1
            print(f"{name}: abi.rs has", *lines, "the contract has", *theirs.get(name, ["no such struct"]),
                  sep="\n")
    print(f"{len(ours)} structs, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
