#!/usr/bin/env python3
"""Runs these tests on the package as it lies in the tree: run.py FOLDER, where libbitnet.so.0 is.

Exits 77 with a line "skip: ..." where Python lacks what they need. The tests of adapters, which need
the frameworks, and those of an installed wheel are started with pytest itself."""

import importlib.util
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
for module in ("cffi", "numpy", "pytest"):
    if importlib.util.find_spec(module) is None:
        print(f"skip: {sys.executable} has no {module}; scripts/setup makes build/venv, which has it")
        sys.exit(77)
os.environ.update(LD_LIBRARY_PATH=sys.argv[1], PYTHONPATH=str(HERE.parent / "src"), PYTHONDONTWRITEBYTECODE="1")
os.execv(sys.executable, [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-s", "--ignore",
                          str(HERE / "adapters"), str(HERE)])
