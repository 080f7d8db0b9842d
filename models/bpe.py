"""Byte-level BPE as GGUF knows it: tokenizer.ggml.model = gpt2, tokenizer.ggml.pre = llama-bpe.

Vocabulary, in this order: the 256 bytes, one token per merge, three control tokens. Tokens are kept
as the printable strings of the GPT-2 byte table, merges as pairs of such strings.
"""

import collections
import json

import regex

PRE = (r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+"
       r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BOS, EOS, EOT = "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"
CONTROL = (BOS, EOS, EOT)


def byte_table() -> list:
    """byte -> printable character: 33-126, 161-172 and 174-255 stand for themselves."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, spare = [""] * 256, 256
    for byte in range(256):
        if byte in plain:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(spare)
            spare += 1
    return table


TABLE = byte_table()
UNTABLE = {c: b for b, c in enumerate(TABLE)}


def pieces(text: str):
    """Splits as llama-bpe does; every character of the text is in exactly one piece."""
    at = 0
    for match in regex.finditer(PRE, text):
        if match.start() > at:
            yield text[at:match.start()]
        yield match.group()
        at = match.end()
    if at < len(text):
        yield text[at:]


def _symbols(piece: str) -> tuple:
    return tuple(TABLE[b] for b in piece.encode("utf-8"))


def _merge(symbols, pair) -> tuple:
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


def train(texts, size: int) -> list:
    """The merges of a vocabulary of `size` tokens, most frequent pair first, ties by spelling."""
    counts = collections.Counter()
    for text in texts:
        counts.update(pieces(text))
    words = {_symbols(p): n for p, n in counts.items()}
    merges, made = [], set(TABLE)
    while len(merges) < size - 256 - len(CONTROL):
        pairs = collections.Counter()
        for symbols, n in words.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
        if not pairs:
            raise ValueError(f"text too poor: {len(merges)} merges, then nothing left to merge")
        best = min(pairs, key=lambda p: (-pairs[p], p))
        if "".join(best) not in made:        # two ways to spell one token would need one id twice
            made.add("".join(best))
            merges.append(best)
        fresh = collections.Counter()
        for symbols, n in words.items():
            fresh[_merge(symbols, best)] += n
        words = fresh
    return merges


class Tokenizer:
    def __init__(self, tokens: list, merges: list):
        self.tokens, self.merges = tokens, merges
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.ranks = {pair: i for i, pair in enumerate(merges)}
        self.bos, self.eos, self.eot = (self.ids[c] for c in CONTROL)
        self._cache = {}

    @classmethod
    def trained(cls, texts, size: int) -> "Tokenizer":
        merges = train(texts, size)
        return cls([*(TABLE[b] for b in sorted(range(256), key=lambda b: ord(TABLE[b]))),
                    *("".join(m) for m in merges), *CONTROL], merges)

    @classmethod
    def load(cls, path) -> "Tokenizer":
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return cls(data["tokens"], [tuple(m.split(" ")) for m in data["merges"]])

    def save(self, path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"tokens": self.tokens, "merges": [" ".join(m) for m in self.merges]},
                      file, ensure_ascii=True, indent=0)
            file.write("\n")

    def _piece(self, piece: str) -> list:
        whole = "".join(_symbols(piece))
        if whole in self.ids:                # llama-bpe: ignore_merges
            return [self.ids[whole]]
        symbols = _symbols(piece)
        while True:
            ranked = [(self.ranks[p], p) for p in zip(symbols, symbols[1:]) if p in self.ranks]
            if not ranked:
                return [self.ids[s] for s in symbols]
            symbols = _merge(symbols, min(ranked)[1])

    def encode(self, text: str) -> list:
        """Ids of plain text; names of control tokens in it are plain text too."""
        out = []
        for piece in pieces(text):
            if piece not in self._cache:
                self._cache[piece] = self._piece(piece)
            out += self._cache[piece]
        return out

    def decode(self, ids) -> str:
        text = "".join(self.tokens[i] for i in ids if self.tokens[i] not in CONTROL)
        return bytes(UNTABLE[c] for c in text).decode("utf-8", errors="replace")
