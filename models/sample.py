"""Continues a prompt with NumPy alone, from the GGUF file. Slow and plain: for a look, not for use.

    python3 sample.py "Once upon a time"
    python3 sample.py --chat "Tell me a story about a fox and a lamp."
"""

import argparse
import os

import numpy as np

import gguf_file
from bpe import Tokenizer
from export_gguf import ARCH, HERE, NAME


def load_tokenizer(metadata: dict) -> Tokenizer:
    return Tokenizer(metadata["tokenizer.ggml.tokens"],
                     [tuple(m.split(" ")) for m in metadata["tokenizer.ggml.merges"]])


class Runner:
    """`rows` sequences of equal length. step(ids) returns the logits (rows, vocabulary) after these
    tokens; keys and values are kept."""

    def __init__(self, path, rows: int = 1, kind=np.float64):
        self.meta, tensors = gguf_file.read(path)
        self.w = {}
        for name, (form, shape, data) in tensors.items():
            if form == gguf_file.I2_S:
                codes, scale = gguf_file.unpack_i2s(data, shape)
                self.w[name] = (codes.astype(kind) - 1, kind(scale))
            else:
                dtype = "<f4" if form == gguf_file.F32 else "<f2"
                self.w[name] = np.frombuffer(data, dtype).reshape(shape).astype(kind)
        get = lambda key: self.meta[f"{ARCH}.{key}"]
        self.heads, self.kv_heads = get("attention.head_count"), get("attention.head_count_kv")
        self.eps, self.layers = get("attention.layer_norm_rms_epsilon"), get("block_count")
        self.head_dim = get("embedding_length") // self.heads
        half = np.arange(0, self.head_dim, 2) / self.head_dim
        self.frequency = get("rope.freq_base") ** -half
        self.at, self.kind = 0, kind
        shape = (self.layers, rows, self.kv_heads, get("context_length"), self.head_dim)
        self.keys, self.values = np.zeros(shape, kind), np.zeros(shape, kind)

    def keep(self, rows) -> None:
        """Goes on with these rows only."""
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]

    def _rms(self, x, name):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.eps) * self.w[name + ".weight"]

    def _linear(self, x, name):
        t, scale = self.w[name + ".weight"]
        s = (127.0 / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-5)).astype(np.float32)
        q = np.clip(np.rint(x * s), -128, 127)
        return (q @ t.T) / s * scale

    def _rotate(self, x):
        a, b = np.split(x, 2, axis=-1)
        c, s = np.cos(self.at * self.frequency), np.sin(self.at * self.frequency)
        return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)

    def _attention(self, h, n, b):
        """h: (rows, width). Softmax over all positions so far, each kv head for its query heads."""
        rows, hd = len(h), self.head_dim
        q = self._rotate(self._linear(h, b + "attn_q").reshape(rows, self.heads, hd))
        self.keys[n, :, :, self.at] = self._rotate(self._linear(h, b + "attn_k").reshape(rows, -1, hd))
        self.values[n, :, :, self.at] = self._linear(h, b + "attn_v").reshape(rows, -1, hd)
        k, v = self.keys[n, :, :, :self.at + 1], self.values[n, :, :, :self.at + 1]
        q = q.reshape(rows, self.kv_heads, -1, hd).astype(self.kind)
        score = q @ k.swapaxes(-1, -2) / self.kind(np.sqrt(hd))
        score = np.exp(score - score.max(-1, keepdims=True))
        return (score / score.sum(-1, keepdims=True) @ v).reshape(rows, -1)

    def step(self, ids) -> np.ndarray:
        x = self.w["token_embd.weight"][np.atleast_1d(ids)]
        for n in range(self.layers):
            b = f"blk.{n}."
            a = self._attention(self._rms(x, b + "attn_norm"), n, b)
            x = x + self._linear(self._rms(a, b + "attn_sub_norm"), b + "attn_output")
            h = self._rms(x, b + "ffn_norm")
            g = np.maximum(self._linear(h, b + "ffn_gate"), 0) ** 2 * self._linear(h, b + "ffn_up")
            x = x + self._linear(self._rms(g, b + "ffn_sub_norm"), b + "ffn_down")
        self.at += 1
        return self._rms(x, "output_norm") @ self.w["token_embd.weight"].T


def generate(path, ids, tok: Tokenizer, count: int = 250) -> str:
    """Greedy. `ids` hold the prompt with its control tokens; the text stops before the next one."""
    return generate_all(path, [ids], tok, count, np.float64)[0][0]


def generate_all(path, prompts, tok: Tokenizer, count: int, kind=np.float32) -> list:
    """Greedy, side by side: (text, whether it came to its own end) for each prompt."""
    runner = Runner(path, len(prompts), kind)
    out, ended, rows = [[] for _ in prompts], [False] * len(prompts), np.arange(len(prompts))
    ids = np.array([p[0] for p in prompts])
    context = runner.meta[f"{ARCH}.context_length"]
    while len(rows) and runner.at < context:
        best = runner.step(ids).argmax(-1)
        going = []
        for i, row in enumerate(rows):
            if runner.at < len(prompts[row]):
                best[i] = prompts[row][runner.at]
            elif best[i] in (tok.eos, tok.eot, tok.bos):
                ended[row] = True
                continue
            else:
                out[row].append(int(best[i]))
                if len(out[row]) >= count:
                    continue
            going.append(i)
        if len(going) < len(rows):
            runner.keep(going)
        ids, rows = best[going], rows[going]
    return [(tok.decode(ids), end) for ids, end in zip(out, ended)]


def chat_ids(tok: Tokenizer, turns) -> list:
    """Ids of a conversation whose next word is the model's. turns: user, assistant, user, ..."""
    ids = [tok.bos]
    for i, text in enumerate(turns):
        ids += tok.encode(f"{'Assistant' if i % 2 else 'User'}: {text}") + [tok.eot]
    return ids + tok.encode("Assistant: ")


def default_model() -> str:
    return os.path.join(HERE, NAME)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt", nargs="+", help="with --chat: the user's turns and, between them, "
                                                  "the answers so far")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("-m", "--model", default=default_model())
    parser.add_argument("-n", type=int, default=250, help="tokens at most")
    args = parser.parse_args()
    tok = load_tokenizer(gguf_file.read(args.model)[0])
    if args.chat:
        print(generate(args.model, chat_ids(tok, args.prompt), tok, args.n))
    else:
        prompt = " ".join(args.prompt)
        print(prompt + generate(args.model, [tok.bos, *tok.encode(prompt)], tok, args.n))


if __name__ == "__main__":
    main()
