"""Runs the commands of one page of documentation, as a reader would type them.

run_page.py PAGE --source DIR --binary DIR [--prefix DIR]

A fenced block that starts with ```console holds commands on lines "$ ..." (continued by a final
backslash) and, below them, what they print. Where something is shown, it is compared with what is
printed, stdout and stderr, trailing space aside: "..." stands for any text within a line, and a
line "..." for any lines or none. A command below which nothing is shown may print what it likes.
Words after `console` say more:

    exit=N    the block's last command ends with N (the others with 0)
    quiet     a command below which nothing is shown must print nothing
    backend   needs a backend that computes; without one the page is skipped
    plugin=X  needs the folder plugins/X; without it the page is skipped
    program=X needs the program X; without it the page is skipped

A block that starts with ```sh is a script, which must end with 0; what it prints is not compared.
"```sh not run: REASON" is one that no test can run.

The commands of a page share one scratch folder that holds copies of docs/, plugins/ and
models/quality/ and is the current directory and, in its folder home/, $HOME. `bitnet` is the one of --binary; pkg-config and
CMake find the tree installed in --prefix.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = "```"
NOT_RUN = re.compile(r"sh not run: \S.{9,}")


def blocks(text):
    """(first line's number, words after the language, [(command, output)]) for each block."""
    lines, at = text.splitlines(), 0
    while at < len(lines):
        info = lines[at].strip().removeprefix(FENCE)
        words = info.split()
        if not lines[at].strip().startswith(FENCE) or not words:
            at += 1
            continue
        first, body = at + 1, []
        at += 1
        while not lines[at].strip().startswith(FENCE):
            body.append(lines[at])
            at += 1
        at += 1
        if words[0] == "console":
            yield first, words[1:], commands(body)
        elif words[0] == "sh" and not NOT_RUN.fullmatch(info):
            yield first, words[1:], [("set -euo pipefail\n" + "\n".join(body), [])]


def as_shown(printed, shown):
    """Whether lines are those that a page shows, with its placeholders."""
    rest = "".join(r"(?:.*\n)*?" if line.strip() == "..." else
                   ".*".join(re.escape(part) for part in line.split("...")) + r"\n" for line in shown)
    return re.fullmatch(rest, "".join(line + "\n" for line in printed)) is not None


def commands(body):
    found = []
    for line in body:
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1][0] += "\n" + line
        elif found:
            found[-1][1].append(line.rstrip())
    return found


def environment(scratch, binary, prefix):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("BITNET_", "XDG_", "LLAMA_")) and not k.endswith("SAN_OPTIONS")}
    # A compiler that its user installed lies in the real home folder.
    clean.setdefault("RUSTUP_HOME", str(pathlib.Path.home() / ".rustup"))
    clean["HOME"] = str(scratch / "home")
    clean["PATH"] = f"{binary}/bin:{clean['PATH']}"
    clean["LC_ALL"] = "C.UTF-8"
    if prefix:
        libraries = [p.parent for p in prefix.rglob("libbitnet.so")]
        clean["CMAKE_PREFIX_PATH"] = str(prefix)
        clean["PKG_CONFIG_PATH"] = ":".join(str(p / "pkgconfig") for p in libraries)
        clean["LD_LIBRARY_PATH"] = ":".join(str(p) for p in libraries)
    return clean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path)
    given = parser.parse_args()

    found = list(blocks(given.page.read_text(encoding="utf-8")))
    computes = any(given.binary.rglob("backends-*/libbitnet-backend-cpu.so"))
    if any("backend" in words for _, words, _ in found) and not computes:
        print("skip: the page needs a backend that computes, and none was built")
        return 77

    # The build says which backends it has: a folder of the tree may not have been asked for, or lack a compiler.
    built = (given.binary / "backends.txt").read_text(encoding="utf-8").split()
    for word in {w for _, words, _ in found for w in words if w.startswith("plugin=")}:
        if word[7:] not in built:
            print(f"skip: the page needs the backend {word[7:]}, which was not built")
            return 77
    for word in {w for _, words, _ in found for w in words if w.startswith("program=")}:
        if not shutil.which(word[8:]):
            print(f"skip: the page needs {word[8:]}, which is not installed")
            return 77

    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (scratch / "home").mkdir()
        for part in ("docs", "plugins", "models/quality"):
            if (given.source / part).is_dir():
                shutil.copytree(given.source / part, scratch / part)
        env = environment(scratch, given.binary, given.prefix)
        ran = 0
        for number, words, block in found:
            expected_end = next((int(w[5:]) for w in words if w.startswith("exit=")), 0)
            for index, (command, output) in enumerate(block):
                done = subprocess.run(["bash", "-c", command], cwd=scratch, env=env, check=False,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=1200)  # as ctest ends a test that hangs
                printed = done.stdout.decode(errors="replace")
                end = expected_end if index == len(block) - 1 else 0
                ran += 1
                if done.returncode != end:
                    failures += 1
                    print(f"{given.page}:{number}: $ {command}\nended with {done.returncode}, the "
                          f"page says {end}\n{printed}")
                shown = [line.rstrip() for line in printed.splitlines()]
                # A page may show an empty line before the next command.
                while output and output[-1] == "":
                    output.pop()
                while shown and shown[-1] == "":
                    shown.pop()
                if (output or "quiet" in words) and not as_shown(shown, output):
                    failures += 1
                    print(f"{given.page}:{number}: $ {command}\nprints\n{printed}\nthe page says\n"
                          + "\n".join(output))
    print(f"{given.page}: {ran} commands, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
