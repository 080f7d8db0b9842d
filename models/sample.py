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
    """One sequence. step(id) returns the logits after that token; keys and values are kept."""

    def __init__(self, path):
        self.meta, tensors = gguf_file.read(path)
        self.w = {}
        for name, (kind, shape, data) in tensors.items():
            if kind == gguf_file.I2_S:
                codes, scale = gguf_file.unpack_i2s(data, shape)
                self.w[name] = (codes.astype(np.float64) - 1, scale)
            else:
                dtype = "<f4" if kind == gguf_file.F32 else "<f2"
                self.w[name] = np.frombuffer(data, dtype).reshape(shape).astype(np.float64)
        get = lambda key: self.meta[f"{ARCH}.{key}"]
        self.heads, self.kv_heads = get("attention.head_count"), get("attention.head_count_kv")
        self.eps, self.layers = get("attention.layer_norm_rms_epsilon"), get("block_count")
        self.head_dim = get("embedding_length") // self.heads
        half = np.arange(0, self.head_dim, 2) / self.head_dim
        self.frequency = get("rope.freq_base") ** -half
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def _rms(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.w[name + ".weight"]

    def _linear(self, x, name):
        t, scale = self.w[name + ".weight"]
        s = np.float32(127.0 / max(np.abs(x).max(), 1e-5))
        q = np.clip(np.rint(x * s), -128, 127)
        return (t @ q) / s * scale

    def _rotate(self, x, position):
        a, b = np.split(x, 2, axis=-1)
        c, s = np.cos(position * self.frequency), np.sin(position * self.frequency)
        return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)

    def step(self, token: int) -> np.ndarray:
        x = self.w["token_embd.weight"][token]
        position, hd = len(self.keys[0]), self.head_dim
        for n in range(self.layers):
            b = f"blk.{n}."
            h = self._rms(x, b + "attn_norm")
            q = self._rotate(self._linear(h, b + "attn_q").reshape(self.heads, hd), position)
            k = self._rotate(self._linear(h, b + "attn_k").reshape(self.kv_heads, hd), position)
            self.keys[n].append(k)
            self.values[n].append(self._linear(h, b + "attn_v").reshape(self.kv_heads, hd))
            group = self.heads // self.kv_heads
            k = np.repeat(np.stack(self.keys[n], 1), group, axis=0)      # (heads, positions, hd)
            v = np.repeat(np.stack(self.values[n], 1), group, axis=0)
            score = np.einsum("hd,hpd->hp", q, k) / np.sqrt(hd)
            score = np.exp(score - score.max(1, keepdims=True))
            a = np.einsum("hp,hpd->hd", score / score.sum(1, keepdims=True), v).reshape(-1)
            x = x + self._linear(self._rms(a, b + "attn_sub_norm"), b + "attn_output")
            h = self._rms(x, b + "ffn_norm")
            g = np.maximum(self._linear(h, b + "ffn_gate"), 0) ** 2 * self._linear(h, b + "ffn_up")
            x = x + self._linear(self._rms(g, b + "ffn_sub_norm"), b + "ffn_down")
        return self.w["token_embd.weight"] @ self._rms(x, "output_norm")


def generate(path, ids, tok: Tokenizer, count: int = 250) -> str:
    """Greedy. `ids` hold the prompt with its control tokens; the text stops before the next one."""
    runner = Runner(path)
    for token in ids:
        logits = runner.step(token)
    out = []
    while len(out) < count:
        token = int(np.argmax(logits))
        if token in (tok.eos, tok.eot, tok.bos):
            break
        out.append(token)
        logits = runner.step(token)
    return tok.decode(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt", nargs="+", help="with --chat: the user's turns and, between them, "
                                                  "the answers so far")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("-m", "--model", default=os.path.join(HERE, NAME))
    parser.add_argument("-n", type=int, default=250, help="tokens at most")
    args = parser.parse_args()
    tok = load_tokenizer(gguf_file.read(args.model)[0])
    if args.chat:
        ids = [tok.bos]
        for i, text in enumerate(args.prompt):
            ids += tok.encode(f"{'Assistant' if i % 2 else 'User'}: {text}") + [tok.eot]
        print(generate(args.model, ids + tok.encode("Assistant: "), tok, args.n))
    else:
        prompt = " ".join(args.prompt)
        print(prompt + generate(args.model, [tok.bos, *tok.encode(prompt)], tok, args.n))


if __name__ == "__main__":
    main()
