"""What ptxas says of each kernel on each architecture, as a table.

    resources.py [--write] FOLDER TABLE   of the .ptxas files in FOLDER

Fails where a kernel spills, where an architecture of its file lacks it, and where fewer threads are on a multiprocessor
by its registers than TABLE has, which --write writes.
"""

import csv

import pathlib
import re
import sys

THREADS = 128  # of a group, of most kernels
OTHERS = {"linear_ternary_factored_wide": 384, "linear_ternary_narrow": 288, "linear_ternary_wide": 384,
          **dict.fromkeys(("rms_norm_one", "act_quant_one", "norm_quant_one", "norm_quant_groups_one", "glu_quant_one", "glu_quant_one_long",
                           "head_state_one"), 512)}
REGISTERS = 65536  # of a multiprocessor, on every architecture so far
MOST = {"sm_75": 1024, "sm_86": 1536, "sm_89": 1536, "sm_110": 1536, "sm_120": 1536}  # threads of one; others 2048

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def read(text):
    """(kernel, architecture): (registers, shared, stack, spilled). sm_90a is sm_90's own code."""
    out, name, spills = {}, None, (0, 0, 0)
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            name = (entry[1], entry[2].rstrip("a"))
        elif found := SPILLS.search(line):
            spills = tuple(int(n) for n in found.groups())
        elif (used := USED.search(line)) and name:
            shared = SHARED.search(line)
            out[name] = (int(used[1]), int(shared[1]) if shared else 0, spills[0], spills[1] + spills[2])
            name = None
    return out


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["kernel"]: {arch: int(n) for arch, n in row.items() if arch != "kernel" and n}
                for row in csv.DictReader(file)}


def write_table(path, threads, architectures):
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["kernel", *architectures])
        out.writerows([kernel, *(of.get(arch, "") for arch in architectures)] for kernel, of in sorted(threads.items()))


def main(folder, table, write=False):
    found, wanted = {}, {}
    for file in sorted(pathlib.Path(folder).glob("*.ptxas")):
        of_file = read(file.read_text(encoding="utf-8"))
        found.update(of_file)
        wanted.update({kernel: {arch for _, arch in of_file} for kernel, _ in of_file})
    architectures = sorted({arch for _, arch in found}, key=lambda a: int(a.split("_")[1]))
    kernels = sorted({kernel for kernel, _ in found})
    print("registers (most threads of a multiprocessor by them), shared bytes where there are some\n")
    print("| kernel | " + " | ".join(architectures) + " |")
    print("|---|" + "---:|" * len(architectures))
    least, most = {} if write else read_table(table), {kernel: {} for kernel in kernels}
    wrong = [f"{kernel} is in {table} and not compiled" for kernel in least if kernel not in kernels and "sm_90" in architectures]
    wrong += [f"{kernel} is not in {table}" for kernel in kernels if not write and kernel not in least]
    for kernel in kernels:
        cells = []
        for arch in architectures:
            if arch not in wanted[kernel]:
                cells.append("")
                continue
            if (kernel, arch) not in found:
                wrong.append(f"{kernel} is not compiled for {arch}")
                cells.append("missing")
                continue
            registers, shared, stack, spilled = found[kernel, arch]
            if spilled or stack:
                wrong.append(f"{kernel} on {arch} has {stack} bytes of stack, {spilled} spilled")
            threads = OTHERS.get(kernel, THREADS)
            groups = REGISTERS // (threads * ((registers + 7) // 8 * 8))
            most[kernel][arch] = min(groups * threads, MOST.get(arch, 2048))
            if most[kernel][arch] < least.get(kernel, {}).get(arch, 0):
                wrong.append(f"{kernel} on {arch} has {most[kernel][arch]} threads; {table} has {least[kernel][arch]}")
            cells.append(f"{registers} ({most[kernel][arch]})" + (f" {shared}" if shared else ""))
        print(f"| {kernel} | " + " | ".join(cells) + " |")
    if not kernels:
        wrong.append("there is no report in " + folder)
    if write:
        write_table(table, most, architectures)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[-2:], write=sys.argv[1:-2] == ["--write"]))
