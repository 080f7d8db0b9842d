"""The example at the top of bitnet.h compiles without a warning, continues a text, and reports an error.

header_example.py HEADER COMPILER LIBRARY_FOLDER; BITNET_SOURCE_DIR has the demo model. HEADER lies in an include
folder with its own headers."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")
MOST_LINES = 40


def example_of(header):
    """The lines of the header's first comment from an #include on, without their margin."""
    first = header[header.index("/* bitnet/bitnet.h"):]
    lines = first[:first.index("\n */")].splitlines()
    begin = lines.index(" *   #include <bitnet/bitnet.h>")
    return "\n".join(line[5:] for line in lines[begin:]) + "\n"


def run(*command, **settings):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **settings)


def faults_of(example, compiler, include, library, model):
    if example.count("\n") > MOST_LINES:
        yield f"the example has {example.count(chr(10))} lines, at most {MOST_LINES} expected"
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "example.c"), pathlib.Path(folder, "example")
        source.write_text(example, encoding="utf-8")
        built = run(compiler, *FLAGS, source, f"-I{include}", f"-L{library}", f"-Wl,-rpath,{library}", "-lbitnet",
                    "-o", program)
        if built.returncode != 0:
            yield f"it does not compile:\n{built.stderr}"
            return
        told = run(program, model)
        if told.returncode != 0 or len(told.stdout.split()) < 5:
            yield f"it ended with {told.returncode} and the text {told.stdout!r}: {told.stderr}"
        failed = run(program, pathlib.Path(folder, "none.gguf"))
        if failed.returncode == 0 or "none.gguf" not in failed.stderr:
            yield f"without a model it ended with {failed.returncode} and the message {failed.stderr!r}"


def main():
    header, compiler, library = sys.argv[1:]
    models = sorted(pathlib.Path(os.environ["BITNET_SOURCE_DIR"], "models").glob("*.gguf"))
    if not models:
        print("skip: there is no demo model")
        return 77
    example = example_of(pathlib.Path(header).read_text(encoding="utf-8"))
    faults = list(faults_of(example, compiler, pathlib.Path(header).parents[1], library, models[0]))
    print("\n".join(faults) or example)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
