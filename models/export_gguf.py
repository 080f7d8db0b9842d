"""checkpoint.npz -> TinyTales-...-I2_S.gguf.   python3 export_gguf.py [--checkpoint F] [--out F]"""

import argparse
import json
import os

import numpy as np

import corpus
import gguf_file
from bpe import Tokenizer

ARCH = "bitnet-b1.58"
NAME = "TinyTales-2M-Instruct-v1.0-I2_S.gguf"
HERE = os.path.dirname(os.path.abspath(__file__))


def ternary(weight: np.ndarray) -> tuple:
    """(t, scale) with scale = mean|W|: the same rounding as in training."""
    scale = np.float32(max(np.abs(weight, dtype=np.float32).mean(dtype=np.float64), 1e-5))
    return np.clip(np.rint(weight / scale), -1, 1).astype(np.int8), float(scale)


def metadata(config: dict, tok: Tokenizer) -> dict:
    control = {tok.bos, tok.eos, tok.eot}
    head_dim = config["width"] // config["heads"]
    return {
        "general.architecture": ARCH,
        "general.name": "TinyTales 2M Instruct v1.0",
        "general.basename": "TinyTales",
        "general.size_label": "2M",
        "general.finetune": "Instruct",
        "general.version": "v1.0",
        "general.license": "CC0-1.0",
        "general.description": "A very small model of a very small world, made from its own grammar.",
        "general.quantization_version": 2,
        "general.file_type": 40,                       # I2_S
        f"{ARCH}.vocab_size": config["vocab"],
        f"{ARCH}.context_length": config["context"],
        f"{ARCH}.embedding_length": config["width"],
        f"{ARCH}.block_count": config["layers"],
        f"{ARCH}.feed_forward_length": config["ffn"],
        f"{ARCH}.attention.head_count": config["heads"],
        f"{ARCH}.attention.head_count_kv": config["kv_heads"],
        f"{ARCH}.attention.layer_norm_rms_epsilon": float(config["eps"]),
        f"{ARCH}.rope.dimension_count": head_dim,
        f"{ARCH}.rope.freq_base": float(config["theta"]),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": tok.tokens,
        "tokenizer.ggml.token_type": [3 if i in control else 1 for i in range(len(tok.tokens))],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tok.merges],
        "tokenizer.ggml.bos_token_id": tok.bos,
        "tokenizer.ggml.eos_token_id": tok.eos,
        "tokenizer.ggml.eot_token_id": tok.eot,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": corpus.CHAT_TEMPLATE,
    }


def tensors(arrays: dict):
    for name, array in arrays.items():
        array = array.astype(np.float32)
        if name == "token_embd":
            yield name + ".weight", array.shape, gguf_file.F16, array.astype("<f2").tobytes()
        elif array.ndim == 1:
            yield name + ".weight", array.shape, gguf_file.F32, array.astype("<f4").tobytes()
        else:
            packed = gguf_file.pack_i2s(*ternary(array))
            yield name + ".weight", array.shape, gguf_file.I2_S, packed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", default=os.path.join(HERE, "checkpoint.npz"))
    parser.add_argument("--tokenizer", default=os.path.join(HERE, "tokenizer.json"))
    parser.add_argument("--out", default=os.path.join(HERE, NAME))
    args = parser.parse_args()
    with np.load(args.checkpoint) as file:
        config, step = json.loads(str(file["config"])), int(file["step"])
        arrays = {k: file[k] for k in file.files if k not in ("config", "step")}
    written = list(tensors(arrays))
    gguf_file.write(args.out, metadata(config, Tokenizer.load(args.tokenizer)), written)
    weights = sum(a.size for a in arrays.values())
    print(f"{args.out}: step {step}, {weights} weights, {len(written)} tensors, "
          f"{os.path.getsize(args.out)} bytes")


if __name__ == "__main__":
    main()
