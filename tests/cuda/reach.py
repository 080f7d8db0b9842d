"""How near to a device's limits whole models come by count, as the tables of docs/reference/kernel-counts-cuda.md have it.

    reach.py [PAGE]   prints the tables; with PAGE, fails where a line of a table is not in it

Words are those of weights.csv, devices those of weigh.py. A kernel of many groups takes the longer of two times: its
bytes by the rate of the memory, or its instructions on the multiprocessor that has the most groups. Nothing waits but
for launches, caches are not counted, and clocks are those of data sheets. Nothing here is a measurement.
"""

import math
import pathlib
import sys

import weigh

WEIGHTS = weigh.read(pathlib.Path(__file__).with_name("weights.csv"))
GROUPS = {(case.kernel, case.shape): case.groups for case in weigh.CASES}
LAUNCH = 0.7e-6  # s from one kernel of a graph to the next, with programmatic edges on sm_90: assumed
TENSOR = 4096  # products of bytes in a clock of a multiprocessor of sm_90
BLOCK = 128
# Launches of a token of 2B-4T that asks for few logits, as tests/parity/cuda/head_test.cpp counts them on the stand-in.
OF_LAYER, BESIDE = 6, 7
SEARCHES = 6300  # clocks of the searches of head_count and head_exact: rung 25
FOUND = 6.6e6 + 1.5e6  # bytes that they read where one row in a hundred is computed
# Devices of others' results, as weigh.DEVICES has them: from data sheets.
OTHERS = {"RTX 5060 Ti": weigh.DEVICES["RTX 5060 Ti"], "RTX 4070 Ti S": (66, 2.61, 672, 4, 2), "A100 40 GB": (108, 1.41, 1555, 4, 2)}


def seconds(kernel, shape, groups=None, device=weigh.DEVICES["H200"]):
    """Of a launch of a kernel of weights.csv, with as many groups as weigh.py has if none are given."""
    return max(seconds_of(WEIGHTS[kernel, shape], groups or GROUPS[kernel, shape], device))


def seconds_of(row, groups, device):
    """By memory, and by instructions."""
    processors, clock, rate, issued, whole = device
    clocks = math.ceil(groups / processors) * max(int(row["words"]) / issued, int(row["whole"]) / whole)
    return groups * int(row["bytes"]) / (rate * 1e9), clocks / (clock * 1e9)


def attention(heads, what=", last of 1", rows=4):
    return f"attn_token_f16_f16_{rows}", f"{heads}, a part{what}"


# Kernels beside the layers but for head_count and head_exact.
ENDS_2B = (("embed_gather", "2560 of f16"), ("gather_rows", "2560"), ("rms_norm_one", "2560"), ("head_state_one", "2560"),
           ("head_approximate_1", "128256x2560"))


def token_2b():
    """Parts of a token of 2B-4T on an H200 in seconds, with few positions and the head in two stages."""
    device, layers = weigh.DEVICES["H200"], 30
    clock, rate = device[1] * 1e9, device[2] * 1e9
    return {
        "q, k and v: `bit_linear_tiles_one`, 120 groups": layers * seconds("bit_linear_tiles_one", "2560x2560, 32 rows", 120),
        "attention of one part, 10 groups": layers * seconds(*attention("20 heads of 128")),
        "product behind attention: `bit_linear_tiles_one`, 80 groups": layers * seconds("bit_linear_tiles_one", "2560x2560, 32 rows", 80),
        "gate and up: `bit_linear_tiles_one`, 216 groups": layers * seconds("bit_linear_tiles_one", "6912x2560, 64 rows", 216),
        "`glu_quant_one`, one group": layers * seconds("glu_quant_one", "6912", 1),
        "down: `linear_ternary_tiles_one`, 160 groups": layers * seconds("linear_ternary_tiles_one", "2560x6912", 160),
        "embedding, norm and head in two stages": sum(map(lambda one: seconds(*one), ENDS_2B)) + SEARCHES / clock + FOUND / rate,
        f"{layers} * {OF_LAYER} + {BESIDE} launches": (layers * OF_LAYER + BESIDE) * LAUNCH,
    }


def bytes_2b():
    """That a token of 2B-4T must read: ternary matrices and the copy of the head."""
    return 2084e6 / 4 + 128256 * (2560 + 12)


# Ternary matrices of a layer, (rows, elements of a row, how many of them), as tests/bench/make_model.py has the shapes.
FEED = {"27b": ((17408, 5120, 2), (5120, 17408, 1)), "8b": ((12288, 4096, 2), (4096, 12288, 1))}
ATTENDS = {"27b": ((12288, 5120, 1), (1024, 5120, 2), (5120, 6144, 1)), "8b": ((4096, 4096, 2), (1024, 4096, 2))}
STATE = {"27b": ((10240, 5120, 1), (6144, 5120, 1), (5120, 6144, 1))}
LAYERS = {"27b": {"attends": 16, "state": 48}, "8b": {"attends": 36, "state": 0}}
HEAD = {"27b": (248320, 5120), "8b": (151669, 4096)}


def matrices(model):
    """(rows, elements of a row, how many) of all layers."""
    attends, state = LAYERS[model]["attends"], LAYERS[model]["state"]
    return ([(m, k, n * (attends + state)) for m, k, n in FEED[model]] + [(m, k, n * attends) for m, k, n in ATTENDS[model]]
            + [(m, k, n * state) for m, k, n in STATE.get(model, ())])


def seconds_with_groups(products, device):
    """Bytes of products with a factor to 128 weights and to 32 activations, and seconds by the shares of weights.csv: rows of
    less than 10240 elements as those of 5120, others as those of 17408."""
    short, long = (weigh.share_of(WEIGHTS["linear_ternary_factored_one", f"{shape} by 128/32"], device)
                   for shape in ("17408x5120", "5120x17408"))
    total = time = 0
    for m, k, n in products:
        size = n * m * (k // BLOCK) * 36
        total += size
        time += size / (device[2] * 1e9) / (short if k < 10240 else long)
    return total, time


def share_27b():
    total, time = seconds_with_groups(matrices("27b"), weigh.DEVICES["H200"])
    return total / (weigh.DEVICES["H200"][2] * 1e9) / time


def clocks_of_tile(kernel, shapes, wanted, tensor):
    """Of a tile by warp groups with `wanted` blocks: what tensor cores take in its loop, and then the words that are not in the
    loop. `shapes` are two cases and their blocks; they differ by turns of the loop alone."""
    (short, few), (long, many) = shapes
    words = [int(WEIGHTS[kernel, shape]["words"]) for shape in (short, long)]
    of_block = (words[1] - words[0]) / (many - few)
    return wanted * max(tensor, of_block / 4) + (words[0] - few * of_block) / 4


def prompt_2b(tokens=2048):
    """Share of the int8 peak of an H200 in the ternary products of 2B-4T."""
    processors = weigh.DEVICES["H200"][0]
    wide = (("6912x2560, 512 tokens", 20), ("2560x6912, 512 tokens", 54))
    clocks = products = 0
    for m, k, n in ((2560, 2560, 2), (640, 2560, 2), (6912, 2560, 2), (2560, 6912, 1)):
        products += n * m * k * tokens
        groups = math.ceil(m / 256) * math.ceil(tokens / 128)
        if 2 * groups >= processors:
            clocks += n * math.ceil(groups / processors) * clocks_of_tile("linear_ternary_wide", wide, k // BLOCK, 1024)
        else:  # two groups share a multiprocessor
            groups = math.ceil(m / 128) * math.ceil(tokens / 64)
            words = int(WEIGHTS["linear_ternary_narrow", "640x2560, 512 tokens"]["words"])
            clocks += n * math.ceil(groups / processors) * (k // BLOCK * 256 + words / 4)
    return products / (processors * TENSOR * clocks)


def prompt_27b():
    """The same of 27B, by instructions alone."""
    products = clocks = 0
    for m, k, n in matrices("27b"):
        row = WEIGHTS["linear_ternary_factored_wide", f"{'5120x17408' if k >= 10240 else '17408x5120'} by 128/32, 512 tokens"]
        products += n * m * k
        clocks += n * m * k / int(row["products"]) * max(int(row["words"]) / 4, int(row["whole"]) / 2)
    return products / (TENSOR * clocks)


# Launches of a token with factors of groups: what, how many, kernel, shape, groups if they are not those of weigh.py. Launches of
# several products have the groups of all. Of 8B as tests/parity/cuda/head_test.cpp counts them on the stand-in; of 27B, without
# rotated activations, by the graph of core/src/model/architectures/qwen35.cpp.
ONE = "linear_ternary_factored_one"
OF_GROUPS = {
    "8b": (
        ("norms with quantisation", 73, "norm_quant_groups_one", "4096"),
        ("q, k and v", 36, ONE, "4096x4096 by 128/32", 384),
        ("attention of one part", 36, *attention("32 heads of 128")),
        ("quantisation behind attention", 36, "act_quant_groups", "4096"),
        ("product behind attention", 36, ONE, "4096x4096 by 128/32", 256),
        ("gate and up", 36, ONE, "4096x4096 by 128/32", 1536),
        ("activation with quantisation", 36, "glu_quant_groups", "12288"),
        ("down", 36, ONE, "4096x12288 by 128/32", 256),
        ("head", 1, ONE, "4096x4096 by 128/32", 9480),
        ("embedding", 1, "embed_gather", "5120 of ternary2"), ("row that is asked for", 1, "gather_rows", "4096"),
    ),
    "27b": (
        ("norms with quantisation", 81, "norm_quant_groups_one", "5120"),
        ("queries and gates", 16, ONE, "17408x5120 by 128/32", 768), ("keys and values", 16, ONE, "17408x5120 by 128/32", 128),
        ("parting of queries and gates", 32, "columns", "24 heads of 256"),
        ("attention of one part", 16, *attention("24 heads of 256", rows=8)),
        ("gates of attention: sigmoid", 16, "elementwise", "6144, sigmoid"), ("and product", 16, "elementwise", "6144, mul"),
        ("norms before a state", 48, "rms_norm_one", "5120"), ("and quantisation", 48, "act_quant_groups", "5120"),
        ("q, k and v of a state", 48, ONE, "17408x5120 by 128/32", 640), ("gate of a state", 48, ONE, "17408x5120 by 128/32", 384),
        ("dense products of a state", 96, "linear_dense_f16_1", "48x5120"),
        ("short convolution", 48, "short_conv", "10240 by 4"), ("and activation", 48, "elementwise", "10240, silu"),
        ("gates of the delta rule", 48, "delta_gates", "48"),
        ("delta rule", 48, "delta_rule_128", "48 heads of 128x128"),
        ("norms of heads", 48, "rms_norm", "48 heads of 128"),
        ("activation of the gate", 48, "elementwise", "6144, silu"), ("and product", 48, "elementwise", "6144, mul"),
        ("quantisation behind attention or state", 64, "act_quant_groups", "6144"),
        ("product behind attention or state", 64, ONE, "5120x6144 by 128/32", 320),
        ("gate and up", 64, ONE, "17408x5120 by 128/32", 2176),
        ("activation with quantisation", 64, "glu_quant_groups", "17408"),
        ("down", 64, ONE, "5120x17408 by 128/32", 320),
        ("head", 1, ONE, "17408x5120 by 128/32", 15520),
        ("embedding", 1, "embed_gather", "5120 of ternary2"), ("row that is asked for", 1, "gather_rows", "5120"),
    ),
}


def parts_with_groups(model):
    """Names, launches, kernels, and seconds of all launches on an H200 by memory and by instructions."""
    for what, n, kernel, shape, *groups in OF_GROUPS[model]:
        both = seconds_of(WEIGHTS[kernel, shape], groups[0] if groups else GROUPS[kernel, shape], weigh.DEVICES["H200"])
        yield what, n, kernel, *(n * one for one in both)


def table_with_groups(model):
    out = [f"| part of a token of {model.upper()}, H200 | kernel | launches | us by memory | us by instructions |", "|---|---|---:|---:|---:|"]
    total = launches = 0
    for what, n, kernel, memory, words in parts_with_groups(model):
        total += max(memory, words)
        launches += n
        out.append(f"| {what} | `{kernel}` | {n} | {1e6 * memory:.0f} | {1e6 * words:.0f} |")
    return out + [f"| launches | | {launches} | | {1e6 * launches * LAUNCH:.0f} |",
                  f"| sum of the longer ones, and of launches | | | | {1e6 * (total + launches * LAUNCH):.0f} |"]


def met(share, least):
    return "yes" if share >= least else "no"


def table_of_reach():
    total = sum(token_2b().values())
    end = bytes_2b() / (weigh.DEVICES["H200"][2] * 1e9) / total
    ternary, first, second = share_27b(), prompt_2b(), prompt_27b()
    return [
        "| measure, on an H200 | aim | by count | met by count |", "|---|---:|---:|---|",
        f"| 27B, one token: share of the memory's rate in the ternary products | 80% | {ternary:.0%} | {met(ternary, .8)} |",
        f"| 2B-4T, one token: share of the memory's rate, end to end | 45% | {end:.0%} | {met(end, .45)} |",
        f"| prompt of 2048: share of the int8 peak in the ternary products, 2B-4T | 45% | {first:.0%} | {met(first, .45)} |",
        f"| the same, 27B | 25% | {second:.0%} | {met(second, .25)} |",
    ]


def table_of_token():
    parts = token_2b()
    out = ["| part of a token of 2B-4T, H200 | us |", "|---|---:|"]
    out += [f"| {name} | {1e6 * time:.0f} |" for name, time in parts.items()]
    return out + [f"| sum | {1e6 * sum(parts.values()):.0f} |"]


def tokens_a_second(model, device):
    return 1 / seconds_with_groups([*matrices(model), (*HEAD[model], 1)], OTHERS[device])[1]


def table_between():
    out = ["| kernel, one token | shape | groups | words of a group | us by memory | us by instructions |", "|---|---|---:|---:|---:|---:|"]
    for case in weigh.BETWEEN:
        row = WEIGHTS[case.kernel, case.shape]
        memory, words = seconds_of(row, case.groups, weigh.DEVICES["H200"])
        out.append(f"| `{case.kernel}` | {case.shape} | {case.groups} | {row['words']} | {1e6 * memory:.2f} | {1e6 * words:.2f} |")
    return out


def table_of_others():
    pull = "https://github.com/PrismML-Eng/Bonsai-demo/pull"
    out = ["| what | device | of others, measured | our limit by count |", "|---|---|---:|---:|"]
    for model, device, theirs, number in (("27b", "RTX 5060 Ti", 44.4, 98), ("27b", "RTX 4070 Ti S", 69.6, 117), ("8b", "RTX 4070 Ti S", 216, 117)):
        out.append(f"| {model.upper()}, one token | {device} | [{theirs} tokens/s]({pull}/{number}) | {tokens_a_second(model, device):.0f} tokens/s |")
    ours = seconds("bit_linear_tiles_one", "6912x2560, 64 rows", 13824 // 64, OTHERS["A100 40 GB"])
    source = "https://github.com/microsoft/BitNet/blob/main/gpu/README.md"
    return out + [f"| product of 13824x2560, one token | A100 40 GB | [18.75 us]({source}) | {1e6 * ours:.1f} us |"]


def main(words):
    of_kernels = weigh.table(WEIGHTS.values())
    prompts = of_kernels.index("") + 1
    tables = {"kernels of a token": of_kernels[:prompts - 1], "kernels of prompts": of_kernels[prompts:], "reach": table_of_reach(),
              "token": table_of_token(), "between": table_between(), **{f"token of {model}": table_with_groups(model) for model in OF_GROUPS},
              "others": table_of_others()}
    if not words:
        print("\n\n".join("\n".join(lines) for lines in tables.values()))
        return 0
    page = pathlib.Path(words[0]).read_text(encoding="utf-8")
    wrong = [f"{words[0]} has no such table ({name}):\n" + "\n".join(lines) for name, lines in tables.items() if "\n".join(lines) + "\n\n" not in page]
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
