"""Starts the program in a clean environment and returns its output."""

import functools
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("BITNET_PROGRAM", "bitnet")
SOURCE = os.environ.get("BITNET_SOURCE_DIR",
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|"
                       r"terminate called|Assertion")
TIMEOUT_S = 300


def send_signal(process, number):
    """Sends it when the process has a handler for it, and returns when the handler has been called."""
    wait_for(lambda: process.poll() is not None or number in signals_of(process, "SigCgt"), f"a handler of {number!r}")
    process.send_signal(number)
    wait_for(lambda: process.poll() is not None or number not in signals_of(process, "ShdPnd"), f"{number!r} is delivered")


def signals_of(process, row):
    """The signals in a row of /proc/PID/status, which are bits."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        bits = int(re.search(rf"^{row}:\s*(\w+)$", file.read(), re.M)[1], 16)
    return {n for n in range(1, 65) if bits >> (n - 1) & 1}


def wait_for(is_so, what, more=lambda: ""):
    """`more` adds to the message what is known when the time is over."""
    end = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"not within {TIMEOUT_S} s: {what}{more()}")
        time.sleep(0.01)


def wait_for_trace(process, path, text):
    """Until the file of the process's --trace contains `text`, or the process has ended."""
    def is_there():
        if process.poll() is not None:
            return True
        try:
            with open(path, encoding="utf-8") as file:
                return text in file.read()
        except FileNotFoundError:
            return False

    wait_for(is_there, f"{text} in {path}")


class Result:
    """Exit code, bytes of stdout, and stderr as text."""

    def __init__(self, code, out, err):
        self.code, self.stdout, self.stderr = code, out, err.decode("utf-8", "replace")

    @property
    def text(self):
        return self.stdout.decode("utf-8")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def errors(self):
        """The lines that say what went wrong."""
        return [line for line in self.stderr.splitlines() if line.startswith("bitnet: ")
                and not line.startswith("bitnet: warning: ")]

    def __repr__(self):
        return f"exit {self.code}, stdout {self.stdout[:500]!r}, stderr {self.stderr[:2000]!r}"


def environment(home, extra=None):
    """Only the variables that a test sets, and those for the sanitizers and the loader."""
    keep = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
            "LSAN_OPTIONS", "GCOV_PREFIX", "GCOV_PREFIX_STRIP", "LLVM_PROFILE_FILE", "TMPDIR")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env.update(HOME=home, XDG_CONFIG_HOME=home + "/config", XDG_DATA_HOME=home + "/data",
               XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache",
               BITNET_PROBE_CACHE=home + "/cache/probe",
               # Probing them takes seconds in each new home.
               OCL_ICD_VENDORS=home + "/no-drivers/", VK_DRIVER_FILES=home + "/no-driver.json",
               VK_ICD_FILENAMES=home + "/no-driver.json",
               LANG="C.UTF-8")
    env.update(extra or {})
    return env


@functools.lru_cache
def demo_model():
    found = sorted(glob.glob(os.path.join(SOURCE, "models", "TinyTales*.gguf")))
    return found[-1] if found else None


class Case(unittest.TestCase):
    """A home folder of its own for each test."""

    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bitnet-cli-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def path(self, name, content=None):
        path = os.path.join(self.home, name)
        if content is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def environment(self, extra=None):
        env = {"BITNET_MODEL": demo_model()} if demo_model() else {}
        env.update(extra or {})
        return environment(self.home, {k: v for k, v in env.items() if v is not None})

    def bitnet(self, *words, stdin=b"", env=None, timeout=TIMEOUT_S):
        """Runs and checks what holds for every run: it ended by itself and without a defect."""
        done = subprocess.run([PROGRAM, *words], input=stdin, capture_output=True, cwd=self.home,
                              env=self.environment(env), timeout=timeout)
        result = Result(done.returncode, done.stdout, done.stderr)
        self.assertGreaterEqual(result.code, 0, f"killed by a signal: {result}")
        self.assertIsNone(SANITIZER.search(result.stderr), result)
        return result

    def ok(self, *words, **more):
        result = self.bitnet(*words, **more)
        self.assertEqual(result.code, 0, result)
        return result

    def why(self, *words, **more):
        """The report of `backends why`, whether or not a backend meets the request."""
        result = self.bitnet("backends", "why", *words, **more)
        self.assertIn(result.code, (0, 4, 22, 23), result)
        return result

    def rejected(self, code, message, *words, **more):
        """Exit code, exactly one line of error that contains `message`, nothing on stdout."""
        result = self.bitnet(*words, **more)
        self.assertEqual(result.code, code, result)
        self.assertEqual(len(result.errors), 1, result)
        self.assertIn(message, result.errors[0], result)
        self.assertEqual(result.stdout, b"", result)
        return result


@functools.lru_cache
def report():
    """The result of `backends why --json` on this machine."""
    with tempfile.TemporaryDirectory(prefix="bitnet-cli-", ignore_cleanup_errors=True) as home:
        done = subprocess.run([PROGRAM, "backends", "why", "--json"], capture_output=True,
                              env=environment(home), timeout=TIMEOUT_S)
    return json.loads(done.stdout)


def needs_model(test):
    return unittest.skipUnless(demo_model(), "models/ holds no TinyTales*.gguf")(test)


def needs_backend(test):
    """For tests that compute. Asked once; without a program at all they fail instead of skipping."""
    can = demo_model() is not None and report()["selected"] not in (None, "", "none")
    return unittest.skipUnless(can, "no backend is built, or there is no model")(test)


def main():
    """unittest.main, but exit code 77 if everything was skipped."""
    outcome = unittest.main(verbosity=2, exit=False).result
    for reason in sorted({reason for _, reason in outcome.skipped}):
        print(f"skip: {reason}", file=sys.stderr)  # scripts/test lists these
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.testsRun and len(outcome.skipped) == outcome.testsRun else 0)
