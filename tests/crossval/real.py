#!/usr/bin/env python3
"""Compares this engine with a real llama.cpp on small random models, and what must differ with what does.

    real.py PROGRAM LLAMA_CPP FOLDER

PROGRAM is bitnet, LLAMA_CPP a tree with its build, and the models are made in FOLDER. Prints a line for each model
and ends with 1 where one is not as it should be.
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MAKER = HERE.parent / "bench" / "make_model.py"
PROMPTS = ["Once upon a time there was a little girl", "The sun is warm.", "1 2 3 4 5 6 7 8 9 10", "a"]
SMALL = ["--layers", "2", "--vocabulary", "4096", "--embedding", "1024", "--heads", "8", "--kv-heads", "4"]
MADE = {"bitnet": ["--shape", "2b-4t", "--arch", "bitnet", "--feed-forward", "2816"],
        "qwen3": ["--shape", "1.7b", "--feed-forward", "3072"]}
# What is compared, how near it must be, and why: measured cosines are from 0.99999 on for rounded activations of
# either engine, and 1 - 1e-6 where scales of groups let both round alike.
ROWS = [
    ("bitnet", "tq2_0", [], 0.9999, True, "ternary weights, one scale to a matrix"),
    ("bitnet", "tq1_0", [], 0.9999, True, "the same in fewer bits"),
    ("qwen3", "q2_0", ["--token-embedding-type", "f16"], 0.9999, True, "ternary weights with scales of groups"),
    ("qwen3", "f16", ["--token-embedding-type", "f16", "--lossy"], 0.9999, True, "the architecture, no ternary weights"),
    ("bitnet", "tq2_0", [], 0.9999, False, "another activation must be seen"),
]


def run(*words, expected=(0,)):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode not in expected:
        raise SystemExit(f"{words[0]} {words[1]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done


def quantized(program, folder, arch, weights, options):
    source, target = folder / f"{arch}.gguf", folder / f"{arch}-{weights}.gguf"
    if not source.exists():
        run(sys.executable, MAKER, source, *MADE[arch], *SMALL)
    run(program, "quantize", source, target, weights, "--force", *options)
    return target


def compared(program, model, prompts, cosine, options):
    words = ["crossval", "-m", model, "--prompts", prompts, "-o", "json", "--min-cosine", cosine, *options]
    return json.loads(run(program, *words, expected=(0, 11)).stdout)


def main():
    program, llama_cpp, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["BITNET_CPP_DIR"] = llama_cpp
    prompts = folder / "prompts.txt"
    prompts.write_text("\n".join(PROMPTS) + "\n", encoding="utf-8")
    wrong = 0
    for arch, weights, options, cosine, same, why in ROWS:
        model = quantized(program, folder, arch, weights, options)
        report = compared(program, model, prompts, cosine, [] if same else ["--activation", "relu2"])
        found = report["prompts"]
        print(f"crossval: {arch} {weights} ({why}): {'agrees' if report['agrees'] else 'differs'}, least cosine"
              f" {min(p['min_cosine'] for p in found):.7f}, largest distance {max(p['max_abs'] for p in found):.4g},"
              f" same top token at {sum(p['same_top'] for p in found)} of {sum(p['positions'] for p in found)},"
              f" {report['other']['version']}")
        wrong += report["agrees"] != same
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
