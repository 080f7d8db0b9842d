"""Follows one thread of a kernel through its PTX and counts what it executes, outer loops too.

Numbers of the kernel's parameters and of memory that was placed are real, all else in memory is zeros, and what the
thread writes there is not kept. An exchange between lanes brings a lane its own value, and a barrier is passed. That is
enough wherever the way does not depend on what is computed, as in all kernels that walk over matrices. What is computed
with floats is not: their registers hold zeros.
"""

import collections
import re
import struct

WORD = re.compile(r"(@!?%p\d+\s+)?([a-z][\w.:]*)\s*(.*);")
# Widths of integers by PTX's types; predicates and floats are apart.
BITS = {"pred": 1, "u8": 8, "s8": 8, "b8": 8, "u16": 16, "s16": 16, "b16": 16, "u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64}
FLOATS = ("f16", "f32", "f64", "bf16", "f16x2")
# A word of PTX that becomes several of the machine's: how many, seen in what ptxas makes of it (sm_90).
LONG = {"div.rn.f32": 9, "sqrt.rn.f32": 8, "rcp.rn.f32": 7, "div.u32": 17, "rem.u32": 18, "div.s32": 20, "rem.s32": 21,
        "div.u64": 70, "rem.u64": 70, "mul.lo.s64": 3, "mad.lo.s64": 3, "add.s64": 2, "sub.s64": 2, "div.rn.f64": 30,
        "sqrt.rn.f64": 30, "mul.lo.u64": 3}
FREE = ("mov", "cvta", "ld.param", "ret", "bar.warp")  # become operands of others, mostly


class Kernel:
    """The text of one kernel: its words, labels and the names of its memory."""

    def __init__(self, name, text):
        self.name, self.words, self.labels = name, [], {}
        depth = 0
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("{") and not line.endswith(";"):
                depth += 1
                line = line[1:].strip()
            if label := re.match(r"(\$?\w+):", line):
                self.labels[label[1]] = len(self.words)
                line = line[label.end():].strip()
            if line and not line.startswith((".", "/", "}", "{", ")", "//")) and (word := WORD.match(line)):
                self.words.append((word[1].strip() if word[1] else "", word[2], operands(word[3])))


def operands(text):
    """What stands between commas, vectors in braces as lists."""
    out, at = [], 0
    for part in re.finditer(r"\{([^}]*)\}|\[([^\]]*)\]|[^,\s{}\[\]]+(?:\|[^,\s]+)?", text):
        at += 1
        if part[1] is not None:
            out.append([one.strip() for one in part[1].split(",")])
        elif part[2] is not None:
            out.append("[" + part[2] + "]")
        else:
            out.append(part[0])
    return out


def kernels(text):
    """The kernels of a file of PTX, by name."""
    out = {}
    for part in re.split(r"\.visible \.entry ", text)[1:]:
        name = re.match(r"\w+", part)[0]
        out[name] = Kernel(name, part[part.index("{"):])
    return out


class Memory:
    """Ranges of words that were placed; zeros elsewhere."""

    def __init__(self):
        self.placed = {}

    def place(self, address, words):
        self.placed.update({address + 4 * i: word for i, word in enumerate(words)})

    def read(self, address, bits):
        low = self.placed.get(address & ~3, 0) >> 8 * (address & 3)
        if bits == 64:
            low |= self.placed.get(address + 4, 0) << 32
        return low & (1 << bits) - 1


class Thread:
    """A thread of a kernel, with `param`, the bytes of its one argument, and numbers of special registers. `shared` is memory of
    the group; all of its variables begin at address 0.
    """

    most = 3_000_000  # words, after which it is thought to go in a circle

    def __init__(self, kernel, param, memory, special, shared=None):
        self.kernel, self.param, self.memory = kernel, param, memory
        self.special, self.registers, self.shared = special, {}, shared or Memory()
        self.counts = collections.Counter()

    def run(self):
        at, words = 0, self.kernel.words
        for _ in range(self.most):
            if at >= len(words):
                return self.counts
            guard, word, args = words[at]
            at += 1
            self.counts[word] += 1
            if guard:
                held = self.registers.get(guard.lstrip("@!"), 0)
                if bool(held) == guard.startswith("@!"):
                    continue
            if word.startswith("bra"):
                at = self.kernel.labels[args[0]]
            elif word.startswith(("ret", "exit")):
                return self.counts
            else:
                self.execute(word.split("."), args)
        raise RuntimeError(f"{self.kernel.name}: does not end")

    def value(self, text, bits=32):
        if text.startswith("%"):
            if text in self.special:
                return self.special[text]
            return self.registers.get(text, 0)
        if text in self.registers:  # that a block of inline PTX declares
            return self.registers[text]
        if text.startswith("0f") or text.startswith("0d"):
            return 0
        try:
            return int(text.rstrip("U"), 0) & (1 << bits) - 1
        except ValueError:
            return 0  # the name of a variable: the beginning of its memory

    def address(self, text):
        """Register and offset of what stands in brackets."""
        inner = text[1:-1]
        base, sign, offset = re.match(r"([^+\-]+)([+\-]?)(.*)", inner).groups()
        step = int(offset, 0) if offset else 0
        return base.strip(), (-step if sign == "-" else step)

    def execute(self, parts, args):
        name, kind = parts[0], parts[-1]
        if name in ("st", "bar", "barrier", "membar", "fence", "red", "cp", "prefetch", "mbarrier", "griddepcontrol", "wgmma", "setmaxnreg"):
            if "try_wait" in parts:  # a phase has always ended
                self.set(args[0], 1)
            return
        if name == "ld":
            self.load(parts, args)
            return
        if name in ("mma", "ldmatrix", "atom"):
            self.set(args[0], 0)
            return
        bits = BITS.get(kind, 32)
        if name == "setp":
            self.compare(parts, args, bits)
            return
        if kind in FLOATS or (name == "cvt" and any(part in FLOATS for part in parts)):
            self.set(args[0], 0)
            return
        self.set(args[0], self.integer(name, parts, [self.value(a, bits) if isinstance(a, str) else 0 for a in args[1:]], bits))

    def set(self, to, value):
        for one in to if isinstance(to, list) else to.split("|"):
            self.registers[one] = value

    def load(self, parts, args):
        base, offset = self.address(args[1])
        bits = BITS.get(parts[-1], 64 if parts[-1] == "f64" else 32)
        for i, one in enumerate(args[0] if isinstance(args[0], list) else [args[0]]):
            step = offset + i * bits // 8
            if "param" in parts:  # of the one argument, which begins at address 0
                step += self.value(base, 64) if base.startswith("%") else 0
                got = int.from_bytes(self.param[step:step + bits // 8], "little")
            elif "global" in parts:
                got = self.memory.read(self.value(base, 64) + step, bits)
            elif "shared" in parts:
                got = self.shared.read(self.value(base) + step, bits)
            else:
                got = 0
            self.registers[one] = 0 if parts[-1] in FLOATS else self.signed_load(got, parts[-1], bits)

    @staticmethod
    def signed_load(value, kind, bits):
        if kind.startswith("s") and bits < 32 and value >> bits - 1:
            return value - (1 << bits) & 0xffffffff
        return value

    def compare(self, parts, args, bits):
        how, kind = parts[1], parts[-1]
        if kind in FLOATS:
            a = b = 0
        else:
            a, b = (self.value(one, bits) & (1 << bits) - 1 for one in args[1:3])
            if kind.startswith("s"):
                a, b = signed(a, bits), signed(b, bits)
        held = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "lo": a < b, "ls": a <= b,
                "hi": a > b, "hs": a >= b, "neu": a != b, "equ": a == b, "ltu": a < b, "gtu": a > b, "leu": a <= b,
                "geu": a >= b, "nan": False, "num": True}[how]
        if len(parts) > 3 and parts[2] in ("and", "or", "xor"):
            other = bool(self.value(args[3])) if not args[3].startswith("!") else not self.value(args[3][1:])
            held = {"and": held and other, "or": held or other, "xor": held != other}[parts[2]]
        self.set(args[0], int(held))

    def integer(self, name, parts, a, bits):
        mask, sign = (1 << bits) - 1, parts[-1].startswith("s")
        if name in ("mul", "mad") and "wide" in parts:
            x, y = (signed(v & mask, bits) if sign else v & mask for v in a[:2])
            return x * y + (a[2] if name == "mad" else 0) & (1 << 2 * bits) - 1
        s = [signed(v & mask, bits) if sign else v & mask for v in a]
        if name in ("mul", "mad"):
            product = s[0] * s[1]
            if "hi" in parts:
                product >>= bits
            return product + (s[2] if name == "mad" else 0) & mask
        table = {
            "mov": lambda: s[0], "cvta": lambda: a[0], "not": lambda: ~s[0] if bits > 1 else 1 - s[0],
            "neg": lambda: -s[0], "abs": lambda: abs(s[0]), "add": lambda: s[0] + s[1], "sub": lambda: s[0] - s[1],
            "and": lambda: s[0] & s[1], "or": lambda: s[0] | s[1], "xor": lambda: s[0] ^ s[1],
            "shl": lambda: s[0] << s[1] if s[1] < bits else 0, "shr": lambda: s[0] >> min(s[1] & mask, 63),
            "min": lambda: min(s[0], s[1]), "max": lambda: max(s[0], s[1]),
            "div": lambda: int(s[0] / s[1]) if sign and s[1] else s[0] // s[1] if s[1] else 0,
            "rem": lambda: s[0] % s[1] if s[1] else 0, "selp": lambda: s[0] if a[2] else s[1],
            "popc": lambda: bin(a[0]).count("1"), "clz": lambda: bits - (a[0] & mask).bit_length(),
            "bfind": lambda: ((a[0] & mask).bit_length() - 1) & 0xffffffff,
            "brev": lambda: int(f"{a[0] & mask:0{bits}b}"[::-1], 2),
            "cvt": lambda: self.converted(parts, a[0]), "shfl": lambda: a[0], "activemask": lambda: mask,
            "bfe": lambda: s[0] >> (a[1] & 255) & (1 << (a[2] & 255)) - 1, "vote": lambda: mask if a[0] else 0,
            "dp4a": lambda: a[2] if len(a) > 2 else 0, "lop3": lambda: lop3(a), "prmt": lambda: 0, "match": lambda: mask,
            "shf": lambda: shf(parts, a), "bfi": lambda: bfi(a),
        }
        if name not in table:
            raise RuntimeError(f"{self.kernel.name}: '{'.'.join(parts)}' is not known")
        return table[name]() & (mask if bits > 1 else 1)

    @staticmethod
    def converted(parts, value):
        to, of = parts[-2], parts[-1]
        value &= (1 << BITS.get(of, 32)) - 1
        if of.startswith("s"):
            value = signed(value, BITS[of])
        return value & (1 << BITS.get(to, 32)) - 1


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 & 1 else value


def shf(parts, a):
    both, n = (a[1] << 32 | a[0]), a[2] & 31
    return both >> n & 0xffffffff if "r" in parts else both >> 32 - n & 0xffffffff


def bfi(a):
    mask = (1 << (a[3] & 255)) - 1 << (a[2] & 255)
    return a[1] & ~mask | a[0] << (a[2] & 255) & mask


def lop3(a):
    out, table = 0, a[3]
    for i in range(8):
        if table >> i & 1:
            terms = [a[j] if i >> 2 - j & 1 else ~a[j] for j in range(3)]
            out |= terms[0] & terms[1] & terms[2]
    return out & 0xffffffff


def weighed(counts):
    """Words of the machine that so many words of PTX become, about."""
    total = 0
    for word, n in counts.items():
        if not word.startswith(FREE):
            total += n * LONG.get(word, 1)
    return total


def launch(memory, constants, params):
    """The bytes of bitnet::kernels::launch (kernels/launch.hpp)."""
    fields = [*memory, *[0] * (16 - len(memory))]
    words = [*constants, *[0] * (5 - len(constants)), *params, *[0] * (32 - len(params))]
    return (struct.pack("<16Q37I", *fields, *words) + bytes(512))[:512]
