"""Other machines' compilers lay out the contract as it is recorded; nothing is linked or run.

layout_targets.py CLANG INCLUDE GOLDEN
"""

import re
import subprocess
import sys

TARGETS = ["x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu", "powerpc64le-linux-gnu",
           "s390x-linux-gnu"]  # the last one is big-endian


def main():
    clang, include, golden = sys.argv[1:]
    headers, asserts, name = set(), [], None
    with open(golden, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not line.startswith(" "):
                header, name, _, size, _, align = words
                headers.add(header)
                asserts.append(f'_Static_assert(sizeof({name}) == {size} && _Alignof({name}) == {align}, "{name}");')
            else:
                member, _, offset, _, size = words
                asserts.append(f'_Static_assert(offsetof({name}, {member}) == {offset} && '
                               f'sizeof((({name}*)0)->{member}) == {size}, "{name}.{member}");')
    if len(asserts) < 200:
        sys.exit(f"{golden} has only {len(asserts)} lines")
    program = "\n".join([f'#include "{header}"' for header in sorted(headers)] + asserts)
    # One recorded size is wrong on purpose: it must be seen.
    broken = re.sub(r"sizeof\(bitnet_error\) == \d+", "sizeof(bitnet_error) == 1", program)
    bad = 0
    for target in TARGETS:
        for text, wanted in ((program, True), (broken, False)):
            done = subprocess.run([clang, f"--target={target}", "-std=c11", "-ffreestanding", "-fsyntax-only",
                                   f"-I{include}", "-x", "c", "-"], input=text, text=True, check=False,
                                  capture_output=True)
            if (done.returncode == 0) != wanted:
                bad += 1
                print(f"{target}: {'differs' if wanted else 'a wrong size was not seen'}\n{done.stderr}")
    print(f"{len(asserts)} places on {len(TARGETS)} targets, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
