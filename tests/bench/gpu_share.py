#!/usr/bin/env python3
"""Puts the time that a GPU backend takes for a token beside what the same driver reaches on plain loops.

    gpu_share.py [--build build/release] [--device vulkan,opencl] [--rounds 3] [--tokens 8]
                 [--megabytes 512] [--json] [MODEL...]

In each round bench_<device>_ceilings measures the driver, then `bitnet bench` generates tokens with
every MODEL (the demo model by default). All figures are medians over the rounds; beside them stand
the least and the most. Which driver is measured is the environment's choice, such as VK_DRIVER_FILES
and OCL_ICD_VENDORS. Prints Markdown.

The bound of a token is the longer of two times: that of reading its weights at the speed of the plain
read, and that of its products at the speed of the plain dot products, of int8 for ternary weights and of
f32 for the others. No loop that reads all weights and multiplies them with these instructions is
faster; one that knows that weights are ternary may be.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

SMALL_BYTES = 4e6  # weights that stay in a cache: their limit is reading there
SKIP = 77  # what the measuring programs return without a driver
# Products for each byte of weights. Blocks of q8_0 and the like carry scales.
PRODUCTS = {"ternary2": 4, "f32": 1 / 4, "f16": 1 / 2, "bf16": 1 / 2, "q8_0": 32 / 34,
            "q4_0": 32 / 18, "q4_k": 256 / 144, "q6_k": 256 / 210}


def run(words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode == SKIP:
        print(f"{words[0]}: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(SKIP)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} fails: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure(options, device):
    """Samples of each ceiling, and rows of `bitnet bench` for each model."""
    found = {"ceilings": {}, "models": {}}
    for _ in range(options.rounds):
        limits = run([options.build / f"tests/bench/gpu/bench_{device}_ceilings", "--json", "--rounds", 3,
                      "--megabytes", options.megabytes])
        found["name"], found["driver"] = limits["device"], limits["driver"]
        for one in limits["ceilings"]:
            found["ceilings"].setdefault((one["name"], one["unit"]), []).extend(one["samples"])
        for model in options.models:
            bench = [options.build / "bin/bitnet", "bench", *(["-m", model] if model else []),
                     "--device", device, "-p", 0, "-n", options.tokens, "-r", 1, "-o", "json"]
            row, = run(bench)
            # Looking at the clock between kernels takes time that a user does not spend.
            plain, = run([*bench, "--no-kernel-times"])
            if row.get("gpu_info") != limits["device"]:
                sys.exit(f"{device}: the backend computes on {row.get('gpu_info')}, the plain loops on "
                         f"{limits['device']}; leave one driver with VK_DRIVER_FILES or "
                         "OCL_ICD_VENDORS")
            row["plain_ns"] = plain["avg_ns"]
            found["models"].setdefault(row["model_type"], []).append(row)
    return found


def spread(values, digits=1):
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f} to {max(values):.{digits}f})")


def products_of(kernel):
    """Of the weights that it read, and of which kind."""
    name, *rest = kernel["id"].split(".")
    if "linear" not in name:
        return 0, "int8"
    return (kernel.get("bytes", 0) * PRODUCTS[rest[0]],
            "f32" if name.startswith("linear_dense") else "int8")


class Share:
    """What one model takes for a token, and of it each kernel."""

    def __init__(self, found, rows):
        limit = {name: statistics.median(samples)
                 for (name, _), samples in found["ceilings"].items()}
        self.dot = {"int8": limit["dot int8"] * 1e9, "f32": limit["dot f32"] * 1e9}
        self.token_ms = [row["plain_ns"] / row["n_gen"] / 1e6 for row in rows]
        self.timed_ms = statistics.median(row["avg_ns"] / row["n_gen"] / 1e6 for row in rows)
        self.ms = statistics.median(self.token_ms)
        self.bytes = sum(k["bytes"] for k in rows[0]["kernels"]) / rows[0]["n_gen"]
        self.read = 1e9 * limit["read" if self.bytes > SMALL_BYTES else "read of 2 MB"]
        self.kernels = [self.kernel(rows, k["id"]) for k in rows[0]["kernels"]]
        self.kernels.sort(key=lambda k: -k["ms"])
        self.read_ms = self.bytes / self.read * 1e3
        self.dot_ms = sum(k["dot_ms"] for k in self.kernels)
        self.bound_ms = max(self.read_ms, self.dot_ms)
        self.dispatches = sum(k["calls"] for k in self.kernels)
        self.empty_ms = self.dispatches * limit["empty dispatch"] / 1e3

    def kernel(self, rows, name):
        """Of one token."""
        mine = [next(k for k in row["kernels"] if k["id"] == name) for row in rows]
        tokens = rows[0]["n_gen"]
        one = {"name": name, "calls": mine[0]["calls"] / tokens,
               "bytes": mine[0]["bytes"] / tokens,
               "ms": statistics.median(k.get("time_ns", 0) for k in mine) / tokens / 1e6}
        products, kind = products_of(mine[0])
        one["products"] = products / tokens
        one["dot_ms"] = one["products"] / self.dot[kind] * 1e3
        one["bound_ms"] = max(one["bytes"] / self.read * 1e3, one["dot_ms"])
        return one


def print_ceilings(device, found):
    print(f"| {device}: {found['name']}, {found['driver']} | median (least to most) |\n|---|---:|")
    for (name, unit), samples in found["ceilings"].items():
        print(f"| {name} | {spread(samples)} {unit} |")
    print()


def print_models(all_shares):
    print("| model | device | ms a token (least to most) | t/s | MB read | read, ms | products, ms "
          "| share of the bound |\n|---|---|---:|---:|---:|---:|---:|---:|")
    for device, model, s in all_shares:
        print(f"| {model} | {device} | {spread(s.token_ms, 2)} | {1e3 / s.ms:.1f} | {s.bytes / 1e6:.1f} | "
              f"{s.read_ms:.2f} | {s.dot_ms:.2f} | {100 * s.bound_ms / s.ms:.0f} % |")
    print()


def print_kernels(model, s):
    print(f"| {model}: kernel | calls | ms a token | % of the token | GB/s | Gproducts/s "
          "| share of its bound |\n|---|---:|---:|---:|---:|---:|---:|")
    whole = s.timed_ms
    for k in s.kernels:
        speeds = [f"{k[what] / k['ms'] / 1e6:.1f}" if k["products"] and k["ms"] else ""
                  for what in ("bytes", "products")]
        share = f"{100 * k['bound_ms'] / k['ms']:.0f} %" if k["products"] and k["ms"] else ""
        print(f"| `{k['name']}` | {k['calls']:.0f} | {k['ms']:.2f} | {100 * k['ms'] / whole:.0f} | "
              f"{speeds[0]} | {speeds[1]} | {share} |")
    rest = whole - sum(k["ms"] for k in s.kernels)
    print(f"| between kernels | | {rest:.2f} | {100 * rest / whole:.0f} | | | |")
    print(f"\nThis token took {whole:.2f} ms with the kernels timed, {s.ms:.2f} ms without. As many "
          f"empty dispatches, {s.dispatches:.0f}, take {s.empty_ms:.2f} ms.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     epilog="\n".join(__doc__.splitlines()[5:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--device", default="vulkan,opencl")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=512, help="that the plain loops read")
    parser.add_argument("--json", action="store_true", help="what was measured, without tables")
    parser.add_argument("models", metavar="MODEL", nargs="*", default=[None],
                        help="model file; the demo model if there is none")
    options = parser.parse_args()
    everything = {device: measure(options, device) for device in options.device.split(",")}
    if options.json:
        for found in everything.values():
            found["ceilings"] = {name: samples for (name, _), samples in found["ceilings"].items()}
        print(json.dumps(everything, indent=1))
        return
    for device, found in everything.items():
        print_ceilings(device, found)
    all_shares = [(device, model, Share(found, rows)) for device, found in everything.items()
                  for model, rows in found["models"].items()]
    print_models(all_shares)
    for device, model, s in all_shares:
        print_kernels(f"{model}, {device}", s)


if __name__ == "__main__":
    main()
