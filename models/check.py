"""Checks what is committed here; takes seconds, needs numpy and regex.   python3 check.py

Prints one line per check and exits 1 if one fails. Where torch and a checkpoint are at hand
(--checkpoint F), it also compares the logits of the file with those of the training code.
"""

import argparse
import json
import os
import subprocess
import sys

try:
    import numpy as np

    import corpus
    import gguf_file
    import sample
    from bpe import CONTROL, Tokenizer, pieces
    from export_gguf import ARCH, HERE, NAME
except ImportError as error:
    print(f"skip: {error}")
    sys.exit(77)

# Of the first 300 documents with seed 1. Changes only together with the generator.
CORPUS_SHA256 = "0181102e3f923f1820f20ce2cd233fa95d59ad8485321edeb676bd127c766090"

TEXTS = (
    "Once upon a time, there was a little fox named Pip.",
    "\"Thank you!\" said the owl. It's 12345 + 7, isn't it?",
    "  blanks,\ttabs\n\n and lines \r\n",
    "Grüße, 世界! Ωmega 🦊 e\u0301",
    "<|eot_id|> as plain text",
    "",
)


def corpus_digest(seed: str) -> str:
    """In a fresh process with its own hash seed, so that no set or dict order can leak in."""
    script = ("import hashlib, json; from tales import make\n"
              "text = ''.join(json.dumps(d) + str(h) for d, h in make.documents(300, 1))\n"
              "print(hashlib.sha256(text.encode()).hexdigest())")
    return subprocess.run([sys.executable, "-c", script], cwd=HERE, check=True, text=True,
                          env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE
                          ).stdout.strip()


def check_corpus():
    first, second = corpus_digest("1"), corpus_digest("2")
    assert first == second, "the same seed gave two different texts"
    assert first == CORPUS_SHA256, f"the generator writes other text than the model was trained on: {first}"


def check_golden_packing():
    """The 4 x 256 matrix of the format sheet: 0.25 t, t from a linear congruential generator."""
    x, t = 1, []
    for _ in range(1024):
        x = (1664525 * x + 1013904223) % 2 ** 32
        t.append((x >> 16) % 3 - 1)
    data = gguf_file.pack_i2s(np.array(t, np.int8).reshape(4, 256), 0.25)
    assert data[:16].hex() == "52896a4a1925a22129400594902905a8", data[:16].hex()
    assert len(data) == 288 and data[256:260].hex() == "0000803e"


def check_tokenizer(meta):
    tok = sample.load_tokenizer(meta)
    assert len(tok.tokens) == len(set(tok.tokens)) == 2048, "tokens must be 2048 and unique"
    assert len(tok.tokens) == 256 + len(tok.merges) + len(CONTROL)
    stored = Tokenizer.load(os.path.join(HERE, "tokenizer.json"))
    assert (stored.tokens, stored.merges) == (tok.tokens, tok.merges), "tokenizer.json differs"
    for text in TEXTS:
        assert "".join(pieces(text)) == text, f"the splitter lost something of {text!r}"
        assert tok.decode(tok.encode(text)) == text, f"no round trip: {text!r}"
    for name, key in zip(CONTROL, ("bos", "eos", "eot")):
        index = meta[f"tokenizer.ggml.{key}_token_id"]
        assert meta["tokenizer.ggml.tokens"][index] == name
        assert meta["tokenizer.ggml.token_type"][index] == 3
    assert meta["tokenizer.ggml.token_type"].count(3) == len(CONTROL)


def check_metadata(meta):
    assert meta["general.architecture"] == ARCH and meta["general.file_type"] == 40
    assert meta["tokenizer.ggml.model"] == "gpt2" and meta["tokenizer.ggml.pre"] == "llama-bpe"
    assert meta["tokenizer.chat_template"] == corpus.CHAT_TEMPLATE
    for key in ("embedding_length", "feed_forward_length", "vocab_size"):
        assert meta[f"{ARCH}.{key}"] % 128 == 0, key
    heads, kv = meta[f"{ARCH}.attention.head_count"], meta[f"{ARCH}.attention.head_count_kv"]
    assert 0 < kv < heads and heads % kv == 0, "grouped attention is part of what this file shows"


def check_tensors(meta, tensors):
    width, ffn = meta[f"{ARCH}.embedding_length"], meta[f"{ARCH}.feed_forward_length"]
    kv = width * meta[f"{ARCH}.attention.head_count_kv"] // meta[f"{ARCH}.attention.head_count"]
    expected = {"token_embd": (meta[f"{ARCH}.vocab_size"], width), "output_norm": (width,)}
    for n in range(meta[f"{ARCH}.block_count"]):
        expected.update({f"blk.{n}.{k}": v for k, v in {
            "attn_norm": (width,), "attn_sub_norm": (width,), "ffn_norm": (width,),
            "ffn_sub_norm": (ffn,), "attn_q": (width, width), "attn_k": (kv, width),
            "attn_v": (kv, width), "attn_output": (width, width), "ffn_gate": (ffn, width),
            "ffn_up": (ffn, width), "ffn_down": (width, ffn)}.items()})
    assert {n.removesuffix(".weight"): s for n, (_, s, _) in tensors.items()} == expected
    for name, (kind, shape, data) in tensors.items():
        if name == "token_embd.weight":
            assert kind == gguf_file.F16 and np.isfinite(np.frombuffer(data, "<f2")).all()
        elif len(shape) == 1:
            assert kind == gguf_file.F32 and np.isfinite(np.frombuffer(data, "<f4")).all()
        else:
            assert kind == gguf_file.I2_S and all(d % 128 == 0 for d in shape), (name, shape)
            codes, scale = gguf_file.unpack_i2s(data, shape)
            assert codes.max() <= 2, f"{name} has code 3"
            assert np.isfinite(scale) and scale > 0, f"{name} has scale {scale}"
            assert not any(data[-28:]), f"{name}: the padding is not zero"
            assert set(np.unique(codes)) == {0, 1, 2}, f"{name} does not use all three values"


def check_story(path, meta):
    tok = sample.load_tokenizer(meta)
    prompt = "Once upon a time"
    text, ended = sample.generate_all(path, [[tok.bos, *tok.encode(prompt)]], tok, 200, np.float64)[0]
    assert ended and text.endswith((".", "!", '"')) and len(text.split()) > 40, f"no story: {prompt + text}"


def check_against_training(path, meta, checkpoint):
    import torch
    from model import Config, Model, Ternary
    with np.load(checkpoint) as file:
        model = Model(Config(**json.loads(str(file["config"]))))
        model.load_state_dict({k: torch.from_numpy(file[k]) for k in file.files
                               if k not in ("config", "step")})
    model.token_embd.data = model.token_embd.data.half().float()
    Ternary.exact = True
    tok = sample.load_tokenizer(meta)
    ids = [tok.bos, *tok.encode(TEXTS[0])]
    runner = sample.Runner(path)
    mine = np.concatenate([runner.step(i) for i in ids])
    with torch.no_grad():
        theirs = model(torch.tensor([ids])).numpy()
    # One int8 step more or less, after a rounding at .5, is all that may differ.
    worst = np.abs(mine - theirs).max() / np.abs(theirs).max()
    assert worst < 0.02 and (mine.argmax(1) == theirs.argmax(1)).all(), f"logits differ by {worst}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default=os.path.join(HERE, NAME))
    parser.add_argument("--checkpoint", help="the checkpoint that the file was made of")
    args = parser.parse_args()
    meta, tensors = gguf_file.read(args.model)
    checks = [("corpus is deterministic", check_corpus),
              ("I2_S packing matches the golden vector", check_golden_packing),
              ("tokenizer round-trips", lambda: check_tokenizer(meta)),
              ("metadata", lambda: check_metadata(meta)),
              ("tensors are ternary and complete", lambda: check_tensors(meta, tensors)),
              ("greedy text is a story with an end", lambda: check_story(args.model, meta)),
              ("file is at most 3 MB", lambda: _at_most(args.model, 3_000_000))]
    if args.checkpoint:
        checks.append(("file computes what was trained",
                       lambda: check_against_training(args.model, meta, args.checkpoint)))
    failed = 0
    for name, check in checks:
        try:
            check()
            print(f"ok    {name}")
        except AssertionError as error:
            failed += 1
            print(f"FAIL  {name}: {error}")
    return 1 if failed else 0


def _at_most(path, size):
    assert os.path.getsize(path) <= size, os.path.getsize(path)


if __name__ == "__main__":
    sys.exit(main())
