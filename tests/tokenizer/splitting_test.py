#!/usr/bin/env python3
"""Every splitting rule, piece by piece, against Python's regex.

    splitting_test.py SPLITTER

The rules are those of tests/reference/tokenizers_test.py, as the models publish them; here each part is
an expression, and pieces are compared, where a vocabulary forgives a cut that none of its merges
crosses. Texts are mixed at random from the same words (fixed seed). Exit code 77 without the libraries.
"""

import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "reference"))
try:
    import regex

    import tokenizers_test as published
except ImportError as missing:
    print(f"skip: {missing}; scripts/setup --for test installs it")
    sys.exit(77)

MIXED = 3000  # texts for each rule
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# The library's rule is for letters that stand for bytes; this is the rule of readers of GGUF files.
FALCON = [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]"]
# The library's engine does not end a number at a numeral of Latin-1.
THOUSANDS = r"\d{1,3}(?=(?:\d{3})*(?![\w\xb2\xb3\xb9\xbc-\xbe]))"


def expression(part):
    """(expression, whether a match begins a piece) of a component of the library; None: bytes."""
    if isinstance(part, str):
        return part, False
    made = json.loads(part.__getstate__())
    kind = made["type"]
    if kind == "ByteLevel":
        return (GPT2, False) if made["use_regex"] else None
    if kind == "Digits":
        return (r"\p{N}" if made["individual_digits"] else r"\p{N}+"), False
    if kind == "Punctuation":
        return r"[\p{P}!-/:-@\[-`{-~]" + ("+" if made["behavior"] == "Contiguous" else ""), False
    assert kind == "Split", kind
    return made["pattern"]["Regex"], made["behavior"] == "MergedWithNext"


def steps_of(name):
    parts = FALCON if name == "falcon" else published.RULES[name]
    out = []
    for one in filter(None, map(expression, parts)):
        text = THOUSANDS if one[0].endswith(r"\b)") else one[0]
        out.append((regex.compile(text, regex.V1), one[1]))
    return out


def split(steps, text):
    pieces = [text] if text else []
    for compiled, begins in steps:
        finer = []
        for piece in pieces:
            cuts = {0, len(piece)}
            for match in compiled.finditer(piece):
                cuts.add(match.start())
                if not begins:
                    cuts.add(match.end())
            cuts = sorted(cuts)
            finer += [piece[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
        pieces = finer
    return pieces


def main():
    generator = random.Random(7)
    texts = published.LISTED + published.PIECES + [published.mixture(generator) for _ in range(MIXED)]
    names = list(published.RULES)
    asked = "".join(json.dumps({"pre": name, "texts": texts}) + "\n" for name in names)
    done = subprocess.run([sys.argv[1]], input=asked.encode(), capture_output=True, check=True)
    wrong = 0
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        steps = steps_of(name)
        differ = [(text, got, split(steps, text)) for text, got in zip(texts, json.loads(line), strict=True)
                  if got != split(steps, text)]
        if differ:
            text, got, want = min(differ, key=lambda one: len(one[0]))
            print(f"{name}: {len(differ)} texts differ, for one {text!a}\n  regex {want!a}\n  ours  {got!a}")
            wrong += len(differ)
    print(f"{len(names)} rules, {len(texts)} texts each, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
