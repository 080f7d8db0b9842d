#!/usr/bin/env python3
"""What `bitnet quantize` takes: megabytes of the source a second, and memory.

    quantize_cost.py MODEL... [--type tq2_0] [--threads 1,2] [--rounds 3] [--out FILE]

For each model and number of threads the median of the rounds, by the clock and by the time that
processors spent, which a busy machine changes less; and the largest that any round had in memory: of its own (anonymous), which has to be there, and in all with the pages of mapped files, which
the system takes back when it needs them. Both are sampled every 5 ms from /proc/PID/status. The file that is
written is removed after each round.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import time

PROGRAM = os.environ.get("BITNET_PROGRAM", "build/release/bin/bitnet")


def in_memory(pid):
    """Bytes (anonymous, all) of a process that runs; zeros when it has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines
             if line.startswith(("RssAnon:", "VmHWM:"))}
    return found.get("RssAnon", 0), found.get("VmHWM", 0)


def one_round(model, out, kind, threads):
    command = [PROGRAM, "quantize", str(model), str(out), kind, "--threads", str(threads), "--force",
               "-q"]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    own = everything = 0
    while True:
        now = in_memory(process.pid)
        own, everything = max(own, now[0]), max(everything, now[1])
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        if ended != 0:
            break
        time.sleep(0.005)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    out.unlink(missing_ok=True)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return seconds, used.ru_utime + used.ru_stime, own, everything


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--type", default="tq2_0")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("quantized.gguf"))
    args = parser.parse_args()
    print("| model | MB | type | threads | MB/s | s | processors' s | own memory, MB | "
          "with mapped files, MB |\n|---|---:|---|---:|---:|---:|---:|---:|---:|")
    for model in args.models:
        size = model.stat().st_size / 1e6
        for threads in args.threads.split(","):
            rounds = [one_round(model, args.out, args.type, threads) for _ in range(args.rounds)]
            seconds, used = (statistics.median(r[i] for r in rounds) for i in (0, 1))
            own, everything = (max(r[i] for r in rounds) / 1e6 for i in (2, 3))
            print(f"| {model.name} | {size:.0f} | {args.type} | {threads} | {size / seconds:.0f} | "
                  f"{seconds:.2f} | {used:.2f} | {own:.0f} | {everything:.0f} |", flush=True)


if __name__ == "__main__":
    main()
