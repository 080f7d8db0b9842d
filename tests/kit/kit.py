"""Runs bitnet-backend-conformance and reads its report."""

import json
import os
import pathlib
import subprocess
import tempfile

PROGRAM = os.environ["BITNET_CONFORMANCE"]
FAKES = pathlib.Path(os.environ["BITNET_FAKES"])
PLUGINS = pathlib.Path(os.environ["BITNET_PLUGINS"])
SABOTEUR = pathlib.Path(os.environ["BITNET_SABOTEUR"])
TIER0 = pathlib.Path(os.environ["BITNET_TIER0"])


def fake(name):
    return FAKES / f"libfake-{name}.so"


def run(*words):
    """(exit status, stdout, stderr)"""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=250)
    return done.returncode, done.stdout, done.stderr


def report(*words):
    """(exit status, the report)"""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json"
        status, out, err = run("--json", file, *words)
        if not file.exists():
            raise AssertionError(f"no report, exit status {status}: {out}{err}")
        return status, json.loads(file.read_text(encoding="utf-8"))


def by_status(content, status):
    return {row["test"] for row in content["tests"] if row["status"] == status}


def failed_suites(content):
    return {test.split(".")[0] for test in by_status(content, "failed")}
