#!/usr/bin/env python3
"""The loss of the demo model by the types of keys and values: a table of docs/reference/models.md.

    kv_cost.py --bitnet PATH [--model FILE] [--tales 200] [--extra FLAGS]

Held-out tales, whole, are read once with each pair of types; f16 is what the others are compared with. Each logit
is the program's own, so that the figures are of what it runs. Wants NumPy.
"""

import argparse
import pathlib
import sys

import numpy as np

import run_e2e
import steadiness

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
sys.path.insert(0, str(MODELS))
from bpe import Tokenizer  # noqa: E402
from tales import make  # noqa: E402

# What is held out says each tale by its pairs of names and things, whatever the seed (models/tales/make.py).
SEED, DOCUMENTS = 20261124, 2000
EXACT = "f16,f16"
PAIRS = ("q8_0,f16", "f16,q8_0", "q8_0,q8_0", "q4_0,f16", "f16,q4_0", "q4_0,q8_0", "q8_0,q4_0", "q4_0,q4_0")


def held_out_tales(tokens, count):
    """Ids of whole tales, from the token that begins them to the one that ends them."""
    out = []
    for record, is_held in make.documents(DOCUMENTS, SEED, talk_share=0):
        if is_held and len(out) < count:
            out.append([tokens.bos] + tokens.encode(record["text"]) + [tokens.eos])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bitnet", required=True, type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=next(MODELS.glob("*.gguf"), None))
    parser.add_argument("--tales", type=int, default=200)
    parser.add_argument("--extra", default="", help='further flags for the program, e.g. "-t 2"')
    args = parser.parse_args()
    program = run_e2e.Program(args.bitnet.resolve(), args.extra.split())
    tales = held_out_tales(Tokenizer.load(MODELS / "tokenizer.json"), args.tales)

    def logits(kv):
        read = [program.logits(args.model, ids, [], kv) for ids in tales]
        if wrong := [said for values, _, said in read if values is None]:
            sys.exit(wrong[0])
        return [values.astype(float) for values, _, _ in read]

    def perplexity(read):
        known = [len(ids) - 1 for ids in tales]
        return np.exp(np.average([steadiness.surprise(ours, ids) for ours, ids in zip(read, tales)], weights=known))

    exact = logits(EXACT)
    print(f"{len(tales)} tales, {sum(map(len, tales))} tokens, at most {max(map(len, tales))} each")
    print("| K, V | KL, mean | KL, largest | another likeliest token | perplexity |\n|---|---|---|---|---|")
    print(f"| {EXACT} | | | | {perplexity(exact):.4f} |")
    for kv in PAIRS:
        ours = logits(kv)
        kl = np.concatenate([steadiness.divergence(a, b) for a, b in zip(exact, ours)])
        other = np.concatenate([a.argmax(axis=1) != b.argmax(axis=1) for a, b in zip(exact, ours)])
        print(f"| {kv} | {kl.mean():.1e} | {kl.max():.1e} | {100 * other.mean():.1f} % | {perplexity(ours):.4f} |",
              flush=True)


if __name__ == "__main__":
    main()
