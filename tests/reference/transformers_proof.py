#!/usr/bin/env python3
"""Compares the program with Hugging Face transformers, on checkpoints that transformers itself writes.

    transformers_proof.py --bitnet PATH [--only NAME]...

Each row is a class of transformers with random weights, ternary with a scale for each 128 columns of a row.
`bitnet convert` reads the checkpoint. The logits of transformers, in float64, are what is right:
  f32     all matrices converted as F32
  package the same state written by the public gguf package in place of the program: the same bits as f32
  float   ternary matrices (PQ2_0) and --activations float: the same weights, so the same logits
  rounded the default. May be as far off as the NumPy reference with the same rounding, times four; and another token
          may be first only where two are closer than twice what that reference is off by
  steps   the default, one token at a time: the same bits as all at once
Exit code 0: every row passed. 1: some did not. 77: packages are missing, which nothing installs: they take
gigabytes.
"""

import argparse
import json
import pathlib
import sys
import tempfile

try:
    import numpy as np
    import torch
    import transformers

    import compare
    import package_gguf
    import reference
    import run_e2e
    import steadiness
    import vocabulary
except ImportError as error:
    print(f"skip: {error}; torch, transformers and tests/reference/requirements.txt are wanted")
    sys.exit(77)

GROUP = 128
POSITIONS = 40
SHAPE = {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-6}
GEMMA_ROPE = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
              "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}}
PART_ROPE = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e6}


def rows(n_vocab):
    """name: (configuration, class)."""
    qwen3 = lambda **more: (transformers.Qwen3Config(vocab_size=n_vocab, **(SHAPE | {"head_dim": 64} | more)),
                            transformers.Qwen3ForCausalLM)
    llama = lambda **more: (transformers.LlamaConfig(vocab_size=n_vocab, **(SHAPE | more)),
                            transformers.LlamaForCausalLM)
    gemma3 = lambda **more: (transformers.Gemma3TextConfig(vocab_size=n_vocab, attn_implementation="eager", **(
        SHAPE | {"head_dim": 64, "query_pre_attn_scalar": 64, "num_hidden_layers": 7, "sliding_window": 16} | more)),
                             transformers.Gemma3ForCausalLM)
    # Three value heads to each key head; keys, and the part of a head that rotates, of other sizes than usual.
    qwen35 = lambda **more: (transformers.Qwen3_5TextConfig(vocab_size=n_vocab, attn_implementation="eager", **(
        SHAPE | {"head_dim": 64, "num_hidden_layers": 5, "linear_num_key_heads": 2, "linear_num_value_heads": 6,
                 "linear_key_head_dim": 64, "linear_value_head_dim": 128, "rope_parameters": PART_ROPE} | more)),
                             transformers.Qwen3_5ForCausalLM)
    return {
        "qwen3-tied": qwen3(tie_word_embeddings=True),
        "qwen3-wide-heads": qwen3(tie_word_embeddings=False, head_dim=128),
        "qwen3-yarn": qwen3(tie_word_embeddings=True, rope_parameters=YARN),
        "llama": llama(tie_word_embeddings=False),
        "llama-tied": llama(tie_word_embeddings=True),
        "gemma3": gemma3(),
        "gemma3-stretched": gemma3(tie_word_embeddings=False, query_pre_attn_scalar=100, rope_parameters=GEMMA_ROPE,
                                   layer_types=["sliding_attention", "full_attention"] * 3 + ["sliding_attention"]),
        "qwen3_5": qwen35(),
        "qwen3_5-tied": qwen35(tie_word_embeddings=True, num_hidden_layers=4, linear_num_key_heads=4,
                               linear_num_value_heads=12, linear_key_head_dim=32, linear_value_head_dim=32,
                               layer_types=["linear_attention", "full_attention"] * 2,
                               rope_parameters=PART_ROPE | {"partial_rotary_factor": 0.5}),
    }


def vector(key, shape, above_one, rng):
    """What is no matrix: norms, and what layers with a state have."""
    if key.endswith("A_log"):  # states that forget half within one to twenty tokens
        return rng.uniform(-3, 0, shape)
    if key.endswith("dt_bias"):
        return rng.uniform(-1, 1, shape)
    if "conv1d" in key:
        return 0.7 * rng.standard_normal(shape)
    usual = 0 if above_one and not key.endswith("linear_attn.norm.weight") else 1
    return usual + 0.1 * rng.standard_normal(shape)


def make_ternary(w, rng, whole_rows=False):
    """Random -1, 0, +1 of the shape of w, with a scale in float16 for each GROUP columns, or for each row."""
    t = rng.integers(-1, 2, w.shape)
    scales = (rng.uniform(0.75, 1.25, (w.shape[0], w.shape[1] // GROUP)) * 1.2 / np.sqrt(w.shape[1])).astype(np.float16)
    if whole_rows:
        scales[:] = scales[:, :1]
    return torch.from_numpy(t * np.repeat(scales.astype(np.float32), GROUP, axis=1))


def draw(name, config, kind):
    rng = np.random.Generator(np.random.PCG64(sum(name.encode())))
    model = kind(config).float().eval()
    above_one = "gemma" in config.model_type or "qwen3_5" in config.model_type  # what norms are kept as
    with torch.no_grad():
        for key, w in model.named_parameters():
            if "in_proj_a" in key or "in_proj_b" in key:  # what decides on states is rarely ternary
                w.copy_(torch.from_numpy(rng.standard_normal(w.shape) / np.sqrt(w.shape[1])))
            elif w.ndim == 2:
                # Powers of two: embeddings become F16, which has to hold them as they are. Gemma scales them up, and
                # with larger ones each token would repeat itself whatever the layers do.
                usual = 0.5 if "gemma" in config.model_type and "embed" in key else 2
                # Where GGUF has other heads side by side, a group must not hold several.
                split = "linear_attn.out_proj" in key and config.linear_value_head_dim % GROUP != 0
                w.copy_(make_ternary(w, rng, split) * (usual if "embed" in key or "lm_head" in key else 1))
            else:
                w.copy_(torch.from_numpy(vector(key, w.shape, above_one, rng)))
    return model


def write_tokenizer(folder, vocab):
    tokens, types = vocab["tokenizer.ggml.tokens"], vocab["tokenizer.ggml.token_type"]
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    (folder / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": i, "content": t, "special": True} for i, t in enumerate(tokens) if types[i] == 3],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": pattern}},
            {"type": "ByteLevel", "use_regex": False}]},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens) if types[i] == 1},
                  "merges": vocab["tokenizer.ggml.merges"]}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "bos_token": tokens[vocab["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[vocab["tokenizer.ggml.eos_token_id"]]}))


def top_1(wanted, ours, known):
    """How many positions have the same token first, and whether the others are explained by the rounding: there the
    two tokens are as close to each other as twice what the reference is off by, at most."""
    first, mine = wanted.argmax(-1), ours.argmax(-1)
    at = np.arange(len(first))
    gap = wanted[at, first] - wanted[at, mine]
    return int((first == mine).sum()), bool((gap <= 2 * np.abs(known - wanted).max(-1)).all())


def judge_row(program, folder, model, vocab, ids):
    """(what, passed, text) of each comparison."""
    model.save_pretrained(folder / "checkpoint")
    write_tokenizer(folder / "checkpoint", vocab)
    tied = model.config.tie_word_embeddings
    state = {name: w.numpy().copy() for name, w in model.state_dict().items() if not (tied and "lm_head" in name)}
    with torch.no_grad():
        wanted = model.double()(torch.tensor([ids])).logits[0].numpy()

    def logits(type_, *flags):
        file = folder / f"{type_}.gguf"
        if type_ == "package":
            package_gguf.write(file, model.config, state, vocab)
        elif not file.exists():
            done = program.run("convert", folder / "checkpoint", file, "--type", type_)
            if done.returncode != 0:
                raise SystemExit(f"convert --type {type_}: {done.stderr.decode(errors='replace')}")
        values, code, said = program.logits(file, ids, list(flags), "f32")
        if values is None:
            raise SystemExit(f"logits of {type_} {flags}: exit code {code}: {said}")
        return values

    f32 = logits("f32")
    package = np.array_equal(logits("package"), f32)
    yield "package", package, "the same bits" if package else "other bits"
    for what, ours in (("f32", f32), ("float", logits("pq2_0", "--activations", "float"))):
        verdict = compare.compare(ours, wanted)
        yield what, verdict.ok, str(verdict)
    rounded = logits("pq2_0")
    kl = steadiness.divergence(wanted, rounded)
    numpy_logits = reference.Model(folder / "pq2_0.gguf").logits(ids)
    known = steadiness.divergence(wanted, numpy_logits)
    same, allowed = top_1(wanted, rounded, numpy_logits)
    yield "rounded", kl.max() <= 4 * known.max() and allowed, (
        f"KL {kl.max():.1e} (NumPy {known.max():.1e})  mean {kl.mean():.1e}  top-1 {same} of {len(ids)}")
    steps = logits("pq2_0", "--batch-size", "1", "--ubatch-size", "1")
    yield "steps", np.array_equal(steps, rounded), "the same bits" if np.array_equal(steps, rounded) else "other bits"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bitnet", required=True, type=pathlib.Path, help="the program to judge")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="rows whose name holds NAME")
    parser.add_argument("--extra", default="", help='further flags for the program, e.g. "--device cpu"')
    args = parser.parse_args()
    program = run_e2e.Program(args.bitnet.resolve(), args.extra.split())
    vocab = vocabulary.gpt2()
    n_vocab = len(vocab["tokenizer.ggml.tokens"])
    total = failed = 0
    for name, (config, kind) in rows(n_vocab).items():
        if args.only and not any(part in name for part in args.only):
            continue
        ids = np.random.Generator(np.random.PCG64(len(name))).integers(0, n_vocab, POSITIONS).tolist()
        with tempfile.TemporaryDirectory() as scratch:
            for what, passed, text in judge_row(program, pathlib.Path(scratch), draw(name, config, kind), vocab, ids):
                total += 1
                failed += not passed
                print(f"{'ok  ' if passed else 'FAIL'} {name:18} {what:8} {text}", flush=True)
    print(f"{total - failed} of {total} rows passed, transformers {transformers.__version__}, torch {torch.__version__}")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    transformers.utils.logging.disable_progress_bar()
    sys.exit(main())
