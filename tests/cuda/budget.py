"""What the innermost loops of kernels may take, counted in PTX, against the table in budget.csv; and what whole kernels
take for a byte of what they read, against weights.csv beside it and what devices allow (weigh.py); and what kernels do before
they wait for those before them (ahead.py).

    budget.py [--write | --shares] TABLE SOURCES COMPILER...   SOURCES: folders of .cu files, with colons; COMPILER: command that takes -ptx

The counts are those that docs/explain/kernel-ladder-cuda.md has on paper, for all rows and tokens that a lane takes at
once. A loop that takes more of anything is an error, and so is one that takes less: what got better is written down,
with --write. A kernel that a token waits for and that needs more instructions than a device executes while its memory
brings the bytes is an error, unless weigh.py names the device. --shares prints the tables of
docs/reference/kernel-counts-cuda.md from weights.csv. Another release of the compiler than the table's counts otherwise, and is not judged.
"""

import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import ahead
import weigh

# What is counted, in this order; the rest is only in the sum.
CLASSES = (("wgmma", r"wgmma\.mma_async"), ("mma", r"mma\.sync"), ("dp4a", r"dp4a"), ("fma", r"fma\.rn\.f32"),
           ("multiply", r"mul\.(rn\.)?f32"), ("add", r"add\.(rn\.)?f32"), ("mask", r"(and|lop3)\.b32"),
           ("shift", r"sh[rl]\.[bus]32"), ("global", r"ld\.global"), ("shared", r"ld\.shared"), ("copy", r"cp\.async\.cg"))
PRODUCTS = ("wgmma", "mma", "dp4a", "fma", "multiply")  # one loop of a kernel is its hot one: with the most of the first of these
TENSOR = ("wgmma", "mma")  # among them
OWN = {"ternary_warp_groups": "90a", "ternary_warp_groups_factored": "90a"}  # architectures of files that only those have
COLUMNS = ("kernel", "all", *(name for name, _ in CLASSES))


def loops(lines, kind):
    """Those that have products of a kind, as lists of lines: from a label to a jump back to it. Loops within one may do anything
    but make such products.
    """
    labels, found = {}, []
    for i, line in enumerate(lines):
        if label := re.match(r"(\$L\w+):", line):
            labels[label[1]] = i
        elif (jump := re.search(r"\bbra(?:\.uni)?\s+(\$L\w+)", line)) and jump[1] in labels:
            found.append((labels[jump[1]], i))
    return [lines[a:b + 1] for a, b in found
            if not any((c, d) != (a, b) and a <= c and d <= b and multiplies(lines[c:d + 1], kind) for c, d in found)]


def multiplies(lines, kind):
    """Products on tensor cores are of one kind; of the others any counts."""
    found = count(lines)
    return sum(found[one] for one in ((kind,) if kind in TENSOR else PRODUCTS)) >= 2


def count(lines):
    out = collections.Counter()
    for line in lines:
        if not re.match(r"\t(@!?%p\d+ )?[a-z]", line):
            continue
        out["all"] += 1
        out[next((name for name, form in CLASSES if re.search(form, line)), "other")] += 1
    return out


def hot(lines):
    """Counts of the loop in which products are made; None where there is none with two of them."""
    for kind in PRODUCTS:
        found = [count(loop) for loop in loops(lines, kind)]
        best = max(found, key=lambda one: (one[kind], one["all"]), default=None)
        if best and best[kind] >= 2:
            return best
    return None


def measure(source, command, scratch):
    name, out = source.stem, pathlib.Path(scratch, source.stem + ".ptx")
    done = subprocess.run([*command, "-ptx", f"-arch=compute_{OWN.get(name, '90')}", "-o", out, source],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{source}: {done.stdout}{done.stderr}")
    rows, text = {}, out.read_text(encoding="utf-8")
    for kernel in text.split(".entry ")[1:]:
        if found := hot(kernel.splitlines()):
            rows[kernel.split("(")[0]] = {column: found[column] for column in COLUMNS[1:]}
    return rows, weigh.rows_of(text), ahead.of_ptx(text) + ahead_in_code(source, command, scratch, text)


def ahead_in_code(source, command, scratch, text):
    """Of files with kernels that request something before they wait."""
    if not any(request in text for request in ahead.REQUESTS):
        return []
    out = pathlib.Path(scratch, source.stem + ".cubin")
    subprocess.run([*command, "-cubin", "-arch=sm_90", "-o", out, source], capture_output=True, check=True)
    return ahead.of_code(out.read_bytes())


def differences(path, weighed):
    """Of what whole kernels take, from the table, and from what devices allow."""
    wanted = weigh.read(path)
    wrong = [f"{kernel} at {shape} is not in {path}" for kernel, shape in sorted(weighed.keys() - wanted)]
    wrong += [f"{kernel} at {shape} is in {path} and not among the kernels" for kernel, shape in sorted(wanted.keys() - weighed)]
    for key in sorted(weighed.keys() & wanted):
        wrong += [f"{key[0]} at {key[1]}: {weighed[key][column]} of '{column}'; {path} has {wanted[key][column]}"
                  for column in weigh.COLUMNS[2:] if str(weighed[key][column]) != wanted[key][column]]
    return wrong + weigh.over(weighed.values())


def files_of(folders):
    return sorted(file for folder in folders.split(":") for file in pathlib.Path(folder).glob("*.cu"))


def release(compiler):
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release (\S+),", said)[1]


def main(words):
    write, shares = words[:1] == ["--write"], words[:1] == ["--shares"]
    whole = pathlib.Path(words[write or shares]).with_name("weights.csv")
    if shares:
        print("\n".join(weigh.table(weigh.read(whole).values())))
        return 0
    table, sources, *command = words[write:]
    found, weighed, early, compiler = {}, {}, [], release(command[0])
    if not write:
        with open(table, encoding="utf-8", newline="") as file:
            judged = file.readline().split()[-1]
            wanted = {row["kernel"]: {column: int(row[column]) for column in COLUMNS[1:]} for row in csv.DictReader(file)}
        if compiler != judged:
            print(f"skip: the compiler is of release {compiler}, and {table} of {judged}")
            return 77
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for rows, of_file, wrong in pool.map(lambda source: measure(source, command, scratch), files_of(sources)):
            found.update(rows)
            weighed.update(of_file)
            early += wrong
    if write:
        with open(table, "w", encoding="utf-8", newline="") as file:
            file.write(f"# release {compiler}\n")
            out = csv.writer(file, lineterminator="\n")
            out.writerow(COLUMNS)
            out.writerows([kernel, *found[kernel].values()] for kernel in sorted(found))
        weigh.write(whole, [weighed[key] for key in sorted(weighed)])
        return 0
    wrong = early + [f"{kernel} is not in {table}" for kernel in sorted(found.keys() - wanted)]
    wrong += [f"{kernel} has no loop that multiplies" for kernel in sorted(wanted.keys() - found)]
    for kernel in sorted(found.keys() & wanted):
        wrong += [f"{kernel}: {got} of '{column}' in its loop; {table} has {wanted[kernel][column]}"
                  for column, got in found[kernel].items() if got != wanted[kernel][column]]
    wrong += differences(whole, weighed)
    print(f"{len(found)} loops, {len(weighed)} whole kernels, {len(wrong)} differences")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
