"""What whole kernels take for a byte of what they must read, outer loops and all, beside what devices allow; and for a product,
in prompts.

A case is a kernel at a shape of a model, with one token or a prompt. Every warp of one group is followed (ptx.py), by its
first lane; bytes are those of the matrix and its factors, or of what else is read once (of states also what is written), and
products those of the group's rows and tokens. Attention of one token is followed with what its group has in shared memory. Attention of prompts is followed over two contexts, of which one has 64 positions more: the difference is
what a tile of rows takes for 64 positions that all of its rows see. Words of the machine are counted from PTX, in which a
few stand for several. Nothing here is a measurement.
"""

import collections
import csv

import ptx

# From data sheets: multiprocessors, GHz (boost), GB/s, instructions that a multiprocessor issues in a clock, and how
# many of them may be of integers.
DEVICES = {"H200": (132, 1.98, 4800, 4, 2), "RTX 4090": (128, 2.52, 1008, 4, 2), "RTX 5060 Ti": (36, 2.57, 448, 4, 4), "T4": (40, 1.59, 320, 4, 2)}
# Products of bytes that the tensor cores of a multiprocessor make in a clock, without sparsity: TOPS of the data sheets by twice the
# multiprocessors and clocks of above. The tiles of a T4 are others than those counted here.
PRODUCTS = {"H200": 4096, "RTX 4090": 1024, "RTX 5060 Ti": 1024}
OF_SM_90 = ("linear_ternary_wide", "linear_ternary_narrow", "linear_ternary_factored_wide")  # kernels that only the H200 has
WHOLE = ("add", "sub", "and", "or", "xor", "not", "neg", "shl", "shr", "shf", "dp4a", "setp", "selp", "min", "max", "bfe", "bfi", "lop3", "prmt")
COLUMNS = ("kernel", "shape", "words", "whole", "bytes", "products")  # products 0: one token
LEAST = 0.8  # of the rate of memory, or in prompts of tensor cores, that hot kernels leave to it
HEADER = 0x1000  # the step's; the rest of memory is zeros

# `threads`: of a group; `tokens`: of the step; `of_group`: tokens that a group takes together; `placed`: words by binding;
# `shared`: words of the group's memory by address; `group`: which one is followed; `launched`: groups, if some have nothing to do.
Case = collections.namedtuple("Case", "kernel shape constants params groups bytes threads tokens of_group products placed shared group launched",
                              defaults=(128, 1, 1, 0, {}, {}, 0, 0))
Prompt = collections.namedtuple("Prompt", "kernel head_dim rows")  # rows of a tile: tokens times heads of a KV head


def ternary_words(k):
    return (k + 127) // 128 * 8


def product(kernel, m, k, own=0, given=0, rows=16):
    factored = own or given
    constants = (128, 1 if factored else 32, 1, 4, given)
    factors = k // own if own else 0
    shape = f"{m}x{k}" + (f" by {own}/{given}" if factored else "")
    return Case(kernel, shape, constants, (0, k, m, ternary_words(k), 0, m, own, 0), m // rows, rows * 4 * (ternary_words(k) + factors))


def prompt(kernel, m, k, rows, of_group, own=0, given=0, threads=128, tokens=512):
    """A product of many tokens: a group takes so many rows and tokens."""
    one = product(kernel, m, k, own, given, rows)
    factors = k // given if given else 1
    return one._replace(shape=f"{one.shape}, {tokens} tokens", constants=(128, one.constants[1], 4, 4, given), threads=threads, tokens=tokens,
                        of_group=of_group, bytes=one.bytes + of_group * (k + 4 * factors), products=rows * of_group * k)


def bit_linear(m, k):
    return Case("bit_linear", f"{m}x{k}", (128, 32, 1, 4, (k + 127) // 128 * 32), (0, k, m, ternary_words(k), 0, m, 0, 0), m // 16,
                16 * 4 * ternary_words(k))


def bit_linear_tiles(m, k, rows):
    """A group quantises the row once and takes so many rows of the matrix."""
    one = bit_linear(m, k)
    return one._replace(kernel="bit_linear_tiles_one", shape=f"{m}x{k}, {rows} rows", groups=m // rows, bytes=rows * 4 * ternary_words(k))


def dense(form, m, k):
    elements, words = ROW_WORDS[form]
    words *= k // elements
    return Case(f"linear_dense_{form}_1", f"{m}x{k}", (128, 32, 1, 1), (0, k, m, words, 0, m), m // 4, 4 * 4 * words)


def approximate(m, k):
    return Case("head_approximate_1", f"{m}x{k}", (128, 0, 1), (1, k, m), (m + 127) // 128, 128 * (k + 12))


def row(kernel, k, read, constants=(128,), threads=128):
    """A group that takes a row: `read` rows of f32, with weights. The third parameter is eps, the fourth a number of heads."""
    return Case(kernel, f"{k}", (*constants, *(0,) * (5 - len(constants))), (0, k, 0, 1), 1, 4 * k * read, threads)


def rows(kernel, k, read, constants=(128,), one="_one"):
    """By the plain kernel, and by that for few rows."""
    return row(kernel, k, read, constants), row(kernel + one, k, read, constants, 512)


def in_groups(k):
    """A row that is normed, with a factor to each 32 elements: these have the place of the number of heads."""
    return tuple(one._replace(params=(0, k, 0, 32)) for one in rows("norm_quant_groups", k, 2))


def attention(rows, heads, kv_heads, head_dim, norms, parts, mine, rotated=None):
    """A group of the first KV head, which takes part `mine` of the visible ones. The group of the last part first writes the
    token's key and value, and here it is also the last to end, so it merges all parts. The context has up to 64 parts. If there is
    only one, two groups share the KV head."""
    # Before this group as many took a ticket as others have parts.
    shared = {0: [parts - 1 if mine == parts - 1 else 0]}
    what = "" if mine != parts - 1 else ", last of 1" if parts == 1 else f", last of {parts}"
    return Case(f"attn_token_f16_f16_{rows}", f"{heads} heads of {head_dim}, a part{what}", (128, F16, F16, rows, head_dim),
                (0, heads, kv_heads, head_dim, BLOCK, 64, 0, 0, 64, (rotated or head_dim) // 2, 1, norms),
                kv_heads * (parts if mine != parts - 1 else 2 if parts == 1 else 1), 2 * 2 * PART * head_dim, placed={5: [PART * parts - 1]}, shared=shared,
                group=mine, launched=kv_heads * 64)


def attentions(*shape, **more):
    """Groups of a long context, the last of them, and that of a short one."""
    return tuple(attention(*shape, parts, mine, **more) for parts, mine in ((64, 0), (64, 63), (1, 0)))


def elements(kernel, shape, constants, params, groups, bytes_of_thread, placed=None):
    """A thread takes an element, or some."""
    return Case(kernel, shape, (128, *constants), params, groups, 128 * bytes_of_thread, placed=placed or {})


def elementwise(what, op, k, inputs):
    return elements("elementwise", f"{k}, {what}", (op,), (0, k), k // 128, 4 * inputs)


def of_states(n_k, n_v, d, taps):
    """Kernels of a layer with a state, whose bytes are read and written: 2 * n_k + n_v heads of d."""
    k, placed = (2 * n_k + n_v) * d, {3: [5]}  # a position that is not the first
    return (
        elements("short_conv", f"{k} by {taps}", (taps,), (0, k, 0, 1, 0, 1), k // 128, 4 * (1 + taps + 2 * (taps - 1)), placed),
        Case("delta_gates", f"{n_v}", (128,), (0, n_v), 1, 4 * n_v * 4),
        Case("delta_rule_128", f"{n_v} heads of {d}x{d}", (128, d), (0, 0, 1, n_k, n_v, d, 1, 1, 0, 0, 0, 1), n_v, 2 * 4 * d * d, placed=placed),
        row("rms_norm", d, 2)._replace(shape=f"{n_v} heads of {d}", params=(0, d, 0, n_v), groups=n_v),
    )


def quants_of_groups(k):
    return elements("act_quant_groups", f"{k}", (), (0, k, 32), k // 512, 16)


def gated_quants_of_groups(k):
    return elements("glu_quant_groups", f"{k}", (SILU,), (0, k, 32), k // 512, 32)


PART, BLOCK, F16 = 64, 64, 2  # positions of a part and of a block of the pool; BITNET_DTYPE_F16
SILU, MUL, SIGMOID = 12, 10, 20  # BITNET_OP_*
TERNARY2 = 8  # BITNET_FORMAT_*
# Elements and words of a piece of a row, by formats of matrices: row_words() of kernels.hpp.
ROW_WORDS = {"f32": (1, 1), "f16": (2, 1), "bf16": (2, 1), "q8_0": (32, 9), "q4_0": (32, 5), "q4_k": (256, 36), "q6_k": (256, 53)}
RELU2_NORM = (128, 11, 1)  # of glu_quant: BITNET_OP_RELU2, and a norm
# Shapes of BitNet b1.58 2B-4T, of 8B with groups of 128, and of 27B. Kernels between the products of one token, most of them with fewer
# groups than a device has multiprocessors:
BETWEEN = (
    *attentions(4, 20, 5, 128, 0), *attentions(4, 32, 8, 128, 1), *attentions(8, 24, 4, 256, 1, rotated=64),
    *of_states(16, 48, 128, 4),
    elementwise("silu", SILU, 10240, 1), elementwise("silu", SILU, 6144, 1), elementwise("sigmoid", SIGMOID, 6144, 1),
    elementwise("mul", MUL, 6144, 2),
    elements("columns", "24 heads of 256", (), (0, 12288, 6144, 256, 0, 24, 512, 0), 48, 4),
    *(elements("hadamard", f"{k} by 1024", (1024,), (0, k, 1, 1024, 1, 0), k // 1024, 64) for k in (5120, 6144, 17408)),
    *map(quants_of_groups, (4096, 5120, 6144)), *map(gated_quants_of_groups, (12288, 17408)),
    elements("embed_gather", "2560 of f16", (F16,), (0, 2560, 1280, 0, 128256, 0), 2, 32),
    elements("embed_gather", "5120 of ternary2", (TERNARY2,), (0, 5120, 320, 0, 248320, 128), 3, 4),
    *(elements("gather_rows", f"{k}", (), (1, k), k // 128, 4) for k in (2560, 4096, 5120)),
    dense("f16", 48, 5120), dense("bf16", 48, 5120),
)
CASES = (
    product("linear_ternary_1", 2560, 6912), product("linear_ternary_1", 5120, 17408),
    product("linear_ternary_tiles_one", 2560, 6912), product("linear_ternary_tiles_one", 5120, 17408),
    bit_linear(6912, 2560), bit_linear(2560, 2560), bit_linear_tiles(6912, 2560, 64), bit_linear_tiles(2560, 2560, 32),
    product("linear_ternary_factored_one", 17408, 5120, 128, 32), product("linear_ternary_factored_one", 5120, 17408, 128, 32),
    product("linear_ternary_factored_one", 12288, 4096, 128), product("linear_ternary_factored_one", 4096, 12288, 128),
    product("linear_ternary_factored_one", 4096, 12288, 256),
    product("linear_ternary_factored_one", 4096, 4096, 128, 32), product("linear_ternary_factored_one", 4096, 12288, 128, 32),
    product("linear_ternary_factored_one", 5120, 6144, 128, 32),
    product("linear_ternary_factored", 4096, 4096, 128, 32, rows=4),
    *(dense(form, 128256, 2560) for form in ROW_WORDS), approximate(128256, 2560), *BETWEEN,
    *rows("rms_norm", 2560, 2), *rows("rms_norm", 5120, 2), *rows("act_quant", 2560, 1), *rows("norm_quant", 2560, 2),
    *in_groups(4096), *in_groups(5120),
    *rows("glu_quant", 6912, 3, RELU2_NORM), *rows("glu_quant", 17408, 3, RELU2_NORM, "_one_long"),
    *rows("head_state", 2560, 1), *rows("head_state", 5120, 1),
    prompt("linear_ternary_wide", 6912, 2560, 256, 128, threads=384), prompt("linear_ternary_wide", 2560, 6912, 256, 128, threads=384),
    prompt("linear_ternary_narrow", 640, 2560, 128, 64, threads=288), prompt("linear_ternary_many", 6912, 2560, 256, 32),
    prompt("linear_ternary_factored_many", 12288, 4096, 128, 16, 128),
    prompt("linear_ternary_factored_many", 17408, 5120, 128, 16, 128, 32),
    prompt("linear_ternary_factored_many", 4096, 4096, 128, 16, 128, 128),
    *(prompt("linear_ternary_factored_wide", m, k, 128, 128, 128, given, threads=384)
      for m, k, given in ((17408, 5120, 32), (5120, 17408, 32), (12288, 4096, 0), (4096, 4096, 128))),
)
# Kernels of rows: one group at a time, so that no share of a device says anything.
OF_ROWS = ("rms_norm", "act_quant", "norm_quant", "glu_quant", "head_state")
# Attention of prompts in f32, and with factors of f16: 20 heads share 5 KV heads, keys and values are f16.
PROMPTS = tuple(Prompt(f"attn_prompt_{form}{head_dim}", head_dim, rows) for form, rows in (("", 32), ("f16_", 64)) for head_dim in (64, 128, 256))
# Kernels that steps wait for, and devices on which they are known to need more time than memory or tensor cores.
HOT = {"linear_ternary_1": (), "linear_ternary_factored_one": (), "head_approximate_1": (), "linear_dense_f16_1": (),
       "linear_dense_f32_1": (), "linear_dense_bf16_1": (), **{f"linear_dense_{form}_1": ("H200",) for form in ("q8_0", "q4_0", "q4_k", "q6_k")},
       "bit_linear": ("H200",), "bit_linear_tiles_one": (), "linear_ternary_tiles_one": (), "linear_ternary_wide": (),
       "linear_ternary_narrow": ("H200",), "linear_ternary_many": ("H200",),
       "linear_ternary_factored_many": ("H200", "RTX 4090", "RTX 5060 Ti"), "linear_ternary_factored_wide": ()}
# Of the rate, where roundings whose order is fixed leave less than LEAST.
LEAST_OF = {("linear_ternary_factored_wide", f"{shape} by 128/{given}, 512 tokens"): least
            for shape, given, least in (("17408x5120", 32, 0.25), ("5120x17408", 32, 0.25), ("12288x4096", 0, 0.6), ("4096x4096", 128, 0.5))}


def follow(kernel, case, grid):
    """Counts of the words of a group's warps."""
    memory, shared = ptx.Memory(), ptx.Memory()
    memory.place(HEADER, [case.tokens, case.tokens, 0, 0, 0, 0])
    bindings = [HEADER, *((i + 1) << 34 for i in range(15))]
    for binding, words in case.placed.items():
        memory.place(bindings[binding], words)
    for address, words in case.shared.items():
        shared.place(address, words)
    param = ptx.launch(bindings, case.constants, case.params)
    counts = collections.Counter()
    for warp in range(case.threads // 32):
        special = {"%tid.x": 32 * warp, "%ctaid.x": case.group, "%ctaid.y": 0, "%nctaid.x": grid[0], "%nctaid.y": grid[1],
                   "%ntid.x": case.threads}
        counts += ptx.Thread(kernel, param, memory, special, shared).run()
    return counts


def of_case(case, kernel):
    return follow(kernel, case, (case.launched or case.groups, case.tokens // case.of_group))


def weigh(counts):
    """Words of the machine, and those of whole numbers among them."""
    return ptx.weighed(counts), sum(n for word, n in counts.items()
                                    if word.split(".")[0] in WHOLE and word.split(".")[-1] not in ptx.FLOATS)


def part_of(prompt, kernel):
    """Counts of the words of a group's warps for a part of the context that all rows of its tile see."""
    constants, params = (128, F16, F16, 16, prompt.head_dim), (0, 20, 5, prompt.head_dim, 16, 256, 0, 0, 0)
    tokens = prompt.rows // 4
    longer, shorter = (follow(kernel, Case(prompt.kernel, "", constants, params, 5, 0, tokens=tokens,
                                           placed={2: range(parts * PART, parts * PART + tokens)}), (5, tokens)) for parts in (9, 8))
    longer.subtract(shorter)  # keeps what is fewer, for a step of the loop may be left out where the loop ends
    return longer


def rows_of(text):
    """Of all cases whose kernel is in a file of PTX, by kernel and shape."""
    found = ptx.kernels(text)
    rows = [(case.kernel, case.shape, *weigh(of_case(case, found[case.kernel])), case.bytes, case.products)
            for case in CASES if case.kernel in found]
    rows += [(prompt.kernel, f"{prompt.rows} rows by {PART} positions", *weigh(part_of(prompt, found[prompt.kernel])),
              2 * 2 * PART * prompt.head_dim, 0) for prompt in PROMPTS if prompt.kernel in found]
    return {row[:2]: dict(zip(COLUMNS, row)) for row in rows}


def is_prompt(row):
    return int(row["products"]) != 0


def share(row, device):
    """What instructions allow of the rate of a device's memory, or in prompts of its tensor cores; None if it has no such kernel."""
    if is_prompt(row) and (device not in PRODUCTS or (row["kernel"] in OF_SM_90 and device != "H200")):
        return None
    return share_of(row, DEVICES[device], PRODUCTS.get(device))


def share_of(row, numbers, products=None):
    """The same of a device with these numbers, as DEVICES and PRODUCTS have them."""
    processors, clock, rate, issued, whole = numbers
    clocks = int(row["products"]) / products if is_prompt(row) else int(row["bytes"]) / (rate * 1e9) * (processors * clock * 1e9)
    return min(1.0, clocks / max(int(row["words"]) / issued, int(row["whole"]) / whole))


def over(rows):
    """What hot kernels need that a device does not allow, and is not known to; and what is known and no longer true."""
    rows = list(rows)
    shares = [(row, device, share(row, device), LEAST_OF.get((row["kernel"], row["shape"]), LEAST)) for row in rows if row["kernel"] in HOT for device in DEVICES]
    short = {(row["kernel"], device) for row, device, one, least in shares if one is not None and one < least}
    stale = [f"{kernel} leaves enough to an {device} at all shapes: weigh.py need not name it"
             for kernel in sorted({row["kernel"] for row in rows} & HOT.keys()) for device in HOT[kernel] if (kernel, device) not in short]
    return stale + [f"{row['kernel']} at {row['shape']}: its instructions allow {one:.0%} of the rate of "
            f"{'tensor cores' if is_prompt(row) else 'memory'} of an {device}"
            for row, device, one, least in shares if one is not None and one < least and device not in HOT[row["kernel"]]]


def table(rows):
    """As docs/reference/kernel-counts-cuda.md has it: a table of one token, and one of prompts."""
    out = []
    other = (*OF_ROWS, *(prompt.kernel for prompt in PROMPTS))
    few = {(case.kernel, case.shape) for case in BETWEEN}
    for kind, unit, devices, prompts in (("one token", "byte", list(DEVICES), False), ("prompt", "1000 products", list(PRODUCTS), True)):
        out += [f"| kernel, {kind} | shape | words {'for ' if prompts else 'a '}{unit} | " + " | ".join(devices) + " |",
                "|---|---|---:|" + "---:|" * len(devices)]
        for row in (row for row in rows if is_prompt(row) == prompts and not row["kernel"].startswith(other)
                    and (row["kernel"], row["shape"]) not in few):
            shares = " | ".join("" if share(row, device) is None else f"{share(row, device):.0%}" for device in devices)
            words = int(row["words"]) / (int(row["products"]) / 1000 if prompts else int(row["bytes"]))
            out.append(f"| `{row['kernel']}` | {row['shape']} | {words:.2f} | {shares} |")
        out.append("")
    return out[:-1]


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {(row["kernel"], row["shape"]): row for row in csv.DictReader(file)}


def write(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        out.writerows([row[column] for column in COLUMNS] for row in rows)
