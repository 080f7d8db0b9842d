#!/usr/bin/env python3
"""Measures what a probe costs a program that computes beside it.

Usage: tests/bench/beside_a_probe.py [--build DIR] [--model FILE] [--rounds N] [--tokens N]
                                     [--lowest SHARE]

Generates with the model, the demo model if none is named, alone and beside a backend whose probe takes
all CPUs, and one that takes 10 s, in turn. Prints the medians, the middle half of the rounds and the shares, of
generation (`bitnet bench`) and of a whole `bitnet run`, its start included; exits 1 if a share of generation is
below the lowest one (0.95), 77 where there is no model or no such backend. Needs an otherwise idle machine.
"""

import argparse
import ctypes
import glob
import json
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


def is_probing():
    return any(name.startswith("bitnet-backend") for name in descendants().values())


class Place:
    """A folder with the cpu backend, one fake, and a memory of their own."""

    def __init__(self, folder, build, fake, model):
        self.build, self.folder, self.fake, self.model = build, folder, fake, model
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
        """What it prints."""
        return subprocess.run([self.build + "/bin/bitnet", *words, "--backend-dir",
                               self.folder + "/backends.d", "--probe-cache", self.folder + "/probe"],
                              check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def beside(self, work):
        """What `work` returns, the fake's probe being under way from before its beginning to its end."""
        self.bitnet("run", "--device", "cpu", "-m", self.model, "-p", "Once", "-n", "1")
        if not self.fake:
            return work()
        self.bitnet("backends", "--probe-wait", "0", "--fresh")
        while not is_probing():
            time.sleep(0.01)
        time.sleep(0.5)
        try:
            out = work()
            if not is_probing():
                raise RuntimeError(f"the probe of {self.fake} ended before what was measured")
            return out
        finally:
            end_probes()

    def generation(self, tokens):
        """Tokens per second."""
        return self.beside(lambda: json.loads(self.bitnet(
            "bench", self.model, "--device", "cpu", "-p", "0", "-n", str(tokens), "-r", "5", "-o",
            "json"))[0]["median_ts"])

    def run(self, tokens):
        """Tokens per second, start included."""
        def work():
            begin = time.monotonic()
            self.bitnet("run", "--device", "cpu", "-m", self.model, "-p", "Once upon a time", "-n",
                        str(tokens), "--ignore-eos", "--temp", "0")
            return tokens / (time.monotonic() - begin)
        return self.beside(work)


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
        places = {name: Place(f"{folder}/{name}", os.path.abspath(arguments.build), fake,
                              models[-1] if models else None)
                  for name, fake in (("alone", None), ("burns", "burns"),
                                     ("takes-long", "takes-long"))}
        if not models or not all(place.ready for place in places.values()):
            print("skip: no demo model, no cpu backend, or tests/fakes are not built")
            return 77
        speeds = {"generation": {name: [] for name in places},
                  "run, start included": {name: [] for name in places}}
        for _ in range(arguments.rounds):
            for name, place in places.items():
                speeds["generation"][name].append(place.generation(arguments.tokens))
                speeds["run, start included"][name].append(place.run(arguments.tokens))
    status = 0
    for what, of_places in speeds.items():
        for name, all_of in of_places.items():
            low, median, high = statistics.quantiles(all_of, n=4, method="inclusive")
            share = median / statistics.median(of_places["alone"])
            print(f"{what:20} {name:12} {median:8.1f} tok/s ({low:.1f} to {high:.1f}); "
                  f"{share:6.1%} of alone")
            status = status or int(what == "generation" and share < arguments.lowest)
    return status


if __name__ == "__main__":
    sys.exit(main())
