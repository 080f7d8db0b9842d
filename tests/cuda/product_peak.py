#!/usr/bin/env python3
"""How many products of bytes the tensor cores of the first device can do in a second, by what its driver says of it.

Prints JSON: multiprocessors, clock in Hz, products of one in a clock, and products in a second. `{}` where this file does
not know the architecture. Nothing is measured.
"""

import ctypes
import json

from copy_speed import Driver

# Of a multiprocessor in a clock, by the vendor's data sheets: 312 * 10^12 products of 108 at 1.41 GHz (A100), 989 * 10^12
# of 132 at 1.83 (H100 SXM).
PRODUCTS = {80: 2048, 90: 4096}
CLOCK_KHZ, PROCESSORS, MAJOR, MINOR = 13, 16, 75, 76  # CU_DEVICE_ATTRIBUTE_*


def main():
    cuda = Driver()
    cuda.cuInit(0)
    device = cuda.made(ctypes.c_int, "cuDeviceGet", 0)
    clock, processors, major, minor = (
        cuda.made(ctypes.c_int, "cuDeviceGetAttribute", what, device).value for what in (CLOCK_KHZ, PROCESSORS, MAJOR, MINOR))
    each = PRODUCTS.get(10 * major + minor)
    out = {} if each is None else {"processors": processors, "clock_hz": clock * 1000, "products_in_a_clock": each,
                                   "products_in_a_second": processors * clock * 1000 * each}
    print(json.dumps(out))


if __name__ == "__main__":
    main()
