"""Small vocabularies made from a few sentences: byte-level BPE ("gpt2") and SPM ("llama").

Each function returns the tokenizer's metadata as a dict.
"""

import collections

TEXT = """Once upon a time a small fox lived near the river. The fox was kind and the river was cold.
One day the fox found a red stone under the old tree. The stone was warm, and the fox took the stone home.
Then the rain came, and the river grew, and the tree sang a song to the fox."""

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
SPACE = "\u2581"  # SPM's visible space


def byte_letters():
    """The 256 letters of byte-level BPE: printable Latin-1 stands for itself, the rest is U+0100.."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(b) if b in own else chr(next(rest)) for b in range(256)]


def train(words, count):
    """The first `count` merges of the most frequent neighbours; ties in alphabetical order."""
    words, merges = [list(w) for w in words], []
    while len(merges) < count:
        pairs = collections.Counter(p for w in words for p in zip(w, w[1:]))
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def gpt2(pre="llama-bpe", merges=68):
    letters = byte_letters()
    words = ["".join(letters[b] for b in (" " * (i > 0) + w).encode())
             for i, w in enumerate(TEXT.split())]
    learned = train(words, merges)
    tokens = letters + ["".join(m) for m in learned]
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens + special,
        "tokenizer.ggml.token_type": [NORMAL] * len(tokens) + [CONTROL] * len(special),
        "tokenizer.ggml.merges": [f"{a} {b}" for a, b in learned],
        "tokenizer.ggml.bos_token_id": len(tokens),
        "tokenizer.ggml.eos_token_id": len(tokens) + 1,
        "tokenizer.ggml.eot_token_id": len(tokens) + 2,
        "tokenizer.ggml.add_bos_token": True,
    }


def spm(merges=45):
    words = [SPACE + w for w in TEXT.split()]
    pieces = ["".join(m) for m in train(words, merges)]
    letters = sorted({c for w in words for c in w})
    pieces += [c for c in letters if c not in pieces]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + pieces
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * 259 + [-float(i) for i in range(len(pieces))],
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": True,
    }
