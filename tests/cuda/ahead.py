"""What kernels do before they wait for the kernels before them, in PTX and in the machine code of sm_90.

A kernel may begin while the kernel before it computes (docs/explain/kernel-ladder-cuda.md, rungs 16 and 28). Before its wait
it may request weights, and access no other memory. Kernels of a token request theirs there.
"""

import collections
import struct

import ptx

WAIT = "griddepcontrol.wait"
REQUESTS = ("cp.async.bulk.prefetch.L2", "prefetch.global.L2")
# Requests of kernels: rows of the matrix, the scale, and the weights of a norm or the factors of the rows.
AHEAD = {"linear_ternary_1": 2, "linear_ternary_tiles_one": 2, "bit_linear": 3, "bit_linear_tiles_one": 3, "linear_ternary_factored_one": 3}
AHEAD |= {f"{kernel}_joined": requests for kernel, requests in AHEAD.items()}
# First parts of words of PTX that neither access memory nor meet other threads.
HARMLESS = ("add", "and", "bra", "cvt", "cvta", "mad", "max", "min", "mov", "mul", "not", "or", "selp", "setp", "shf", "shl", "shr", "sub",
            "lop3", "xor", "div", "rem", "bfe", "prmt")
# The twelve lowest bits of instructions of sm_90, which have 16 bytes: ACQBULK (the wait), UBLKPF and CCTL (the requests), and LDC, which
# reads the launch. Nine bits of those that access memory.
WAITS, REQUEST_CODES, LAUNCH_CODE, OF_MEMORY = 0x82e, (0x3bc, 0x98f), 0xb82, range(0x180, 0x1c0)


def of_kernel(kernel):
    """What is wrong with a kernel of PTX."""
    words = [word for _, word, _ in kernel.words]
    if words.count(WAIT) != 1:
        return [f"{kernel.name} waits {words.count(WAIT)} times for the kernels before it"]
    wait = words.index(WAIT)
    before = words[:wait]
    wrong = [f"{kernel.name} has '{word}' before its wait" for word in before
             if word.split(".")[0] not in HARMLESS and not word.startswith(("ld.param", *REQUESTS))]
    wrong += [f"{kernel.name} jumps over its wait" for _, word, args in kernel.words[:wait]
              if word.startswith("bra") and kernel.labels[args[0]] > wait]
    return wrong + requests_of(kernel.name, sum(word.startswith(REQUESTS) for word in before), "PTX")


def requests_of(name, count, where):
    wanted = AHEAD.get(name, 0)
    return [] if count == wanted else [f"{name} has {count} requests before its wait in {where}; {wanted} are expected"]


def of_ptx(text):
    return [line for kernel in ptx.kernels(text).values() for line in of_kernel(kernel)]


def sections(cubin):
    """Bytes of the sections of an ELF file of 64 bits, by name."""
    begin, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, of_names = struct.unpack_from("<3H", cubin, 0x3a)
    rows = [struct.unpack_from("<2I4Q", cubin, begin + size * i) for i in range(count)]
    names = cubin[rows[of_names][4]:]
    return {names[row[0]:names.index(b"\0", row[0])].decode(): cubin[row[4]:row[4] + row[5]] for row in rows}


def of_code(cubin):
    """What is wrong with the kernels in a cubin for sm_90. The code stands in the order of its addresses."""
    wrong = []
    for section, code in sections(cubin).items():
        if not section.startswith(".text."):
            continue
        name = section.removeprefix(".text.")
        found = [low & 0xfff for low, _ in struct.iter_unpack("<2Q", code)]
        if WAITS not in found:
            wrong.append(f"{name} has no wait in its machine code")
            continue
        before = collections.Counter(found[:found.index(WAITS)])
        wrong += requests_of(name, sum(before[request] for request in REQUEST_CODES), "machine code")
        wrong += [f"{name} has the instruction {one:#x}, which accesses memory, before its wait"
                  for one in before if one & 0x1ff in OF_MEMORY and one not in (*REQUEST_CODES, LAUNCH_CODE)]
    return wrong
