#!/usr/bin/env python3
"""Measures what a probe costs whoever computes beside it.

Usage: tests/bench/beside_a_probe.py [--build DIR] [--model FILE] [--rounds N] [--tokens N]
                                     [--lowest SHARE]

Generates with the model, the demo model if none is named, alone and beside a backend whose probe takes
all CPUs, and one that takes 10 s, in turn. Prints the medians and the shares; exits 1 if a share is below the lowest one
(0.95), 77 where there is no model or no such backend. Needs an otherwise idle machine.
"""

import argparse
import ctypes
import glob
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PR_SET_CHILD_SUBREAPER = 36
MANIFEST = """schema: 1
name: {name}
version: 1.2.3
vendor: org.example
license: CC0-1.0
library: {library}
abi: {{major: 0, min: 1, max: 1}}
class: {device_class}
"""


def descendants():
    """{process: its name} of all below this one; what outlives its parent comes to us."""
    parents, names = {}, {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        pid = int(text.split(" ", 1)[0])
        names[pid] = text[text.index("(") + 1:text.rindex(")")]
        parents[pid] = int(text[text.rindex(")") + 1:].split()[1])

    def is_ours(pid):
        while pid > 1:
            pid = parents.get(pid, 0)
            if pid == os.getpid():
                return True
        return False
    return {pid: names[pid] for pid in parents if is_ours(pid)}


def end_probes():
    for pid, name in descendants().items():
        if name.startswith("bitnet-backend"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    try:
        while os.waitpid(-1, 0):
            pass
    except ChildProcessError:
        pass


class Place:
    """A folder with the cpu backend, one fake, and a memory of their own."""

    def __init__(self, folder, build, fake):
        self.build, self.folder, self.fake = build, folder, fake
        os.makedirs(folder + "/backends.d")
        backends = glob.glob(build + "/lib/**/libbitnet-backend-cpu.so", recursive=True)
        self.ready = bool(backends)
        if self.ready:
            self.install("cpu", os.path.abspath(backends[0]), "cpu")
        if fake:
            library = os.path.abspath(f"{build}/tests/fakes/libfake-{fake}.so")
            self.ready = self.ready and os.path.exists(library)
            self.install(fake, library, "gpu")

    def install(self, name, library, device_class):
        with open(f"{self.folder}/backends.d/50-{name}.yaml", "w", encoding="utf-8") as file:
            file.write(MANIFEST.format(name=name, library=library, device_class=device_class))

    def bitnet(self, *words):
        subprocess.run([self.build + "/bin/bitnet", *words, "--backend-dir",
                        self.folder + "/backends.d", "--probe-cache", self.folder + "/probe"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def seconds(self, model, tokens):
        """That generation takes, with the fake's probe under way."""
        self.bitnet("run", "--device", "cpu", "-m", model, "-p", "Once", "-n", "1")
        if self.fake:
            self.bitnet("backends", "--probe-wait", "0", "--fresh")
            while not any(name.startswith("bitnet-backend") for name in descendants().values()):
                time.sleep(0.01)
            time.sleep(0.5)
        begin = time.monotonic()
        self.bitnet("run", "--device", "cpu", "-m", model, "-p", "Once upon a time", "-n",
                    str(tokens), "--ignore-eos", "--temp", "0")
        out = time.monotonic() - begin
        end_probes()
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(SOURCE, "build/release"))
    parser.add_argument("--model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--lowest", type=float, default=0.95)
    arguments = parser.parse_args()
    models = [arguments.model] if arguments.model else sorted(
        glob.glob(os.path.join(SOURCE, "models", "TinyTales*.gguf")))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="bitnet-beside-") as folder:
        places = {name: Place(f"{folder}/{name}", os.path.abspath(arguments.build), fake)
                  for name, fake in (("alone", None), ("burns", "burns"),
                                     ("takes-long", "takes-long"))}
        if not models or not all(place.ready for place in places.values()):
            print("skip: no demo model, no cpu backend, or tests/fakes are not built")
            return 77
        seconds = {name: [] for name in places}
        for _ in range(arguments.rounds):
            for name, place in places.items():
                seconds[name].append(place.seconds(models[-1], arguments.tokens))
    median = {name: statistics.median(all_of) for name, all_of in seconds.items()}
    status = 0
    for name, value in median.items():
        share = median["alone"] / value
        print(f"{name:12} {arguments.tokens / value:8.1f} tok/s, start included; "
              f"{share:6.1%} of alone")
        status = status or int(share < arguments.lowest)
    return status


if __name__ == "__main__":
    sys.exit(main())
