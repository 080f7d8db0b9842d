#!/usr/bin/env python3
"""What the driver's own copy from device memory to device memory reads and writes: the limit of what reads weights.

    copy_speed.py MEGABYTES ROUNDS

Prints JSON as the programs of tests/bench/gpu do. No code of the backend takes part.
"""

import ctypes
import json
import statistics
import sys
import time

COPIES = 8  # of which one waits for the next: the host's part is small beside them


class Driver:
    """Calls of libcuda.so.1, each of which must succeed."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*words):
            answer = function(*words)
            if answer != 0:
                sys.exit(f"{name} fails with {answer}")
        return call

    def made(self, kind, name, *words):
        """What a call writes through its first argument."""
        out = kind()
        getattr(self, name)(ctypes.byref(out), *words)
        return out


def seconds(cuda, stream, to, source, size):
    began = time.perf_counter()
    for _ in range(COPIES):
        cuda.cuMemcpyDtoDAsync_v2(to, source, size, stream)
    cuda.cuStreamSynchronize(stream)
    return (time.perf_counter() - began) / COPIES


def main():
    megabytes, rounds = int(sys.argv[1]), int(sys.argv[2])
    size = ctypes.c_size_t(megabytes * 1_000_000)
    cuda = Driver()
    cuda.cuInit(0)
    device = cuda.made(ctypes.c_int, "cuDeviceGet", 0)
    context = cuda.made(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", device)
    cuda.cuCtxPushCurrent_v2(context)
    stream = cuda.made(ctypes.c_void_p, "cuStreamCreate", 1)
    source, to = (cuda.made(ctypes.c_uint64, "cuMemAlloc_v2", size) for _ in range(2))
    seconds(cuda, stream, to, source, size)  # the first one makes pages
    samples = [2 * size.value / seconds(cuda, stream, to, source, size) / 1e9 for _ in range(rounds)]
    for memory in (source, to):
        cuda.cuMemFree_v2(memory)
    cuda.cuStreamDestroy_v2(stream)
    cuda.made(ctypes.c_void_p, "cuCtxPopCurrent_v2")
    cuda.cuDevicePrimaryCtxRelease_v2(device)
    print(json.dumps({"api": "cuda", "bytes": size.value, "ceilings": [
        {"name": "copy command", "unit": "GB/s", "median": statistics.median(samples), "least": min(samples),
         "most": max(samples), "samples": samples}]}))


if __name__ == "__main__":
    main()
