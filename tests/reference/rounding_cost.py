#!/usr/bin/env python3
"""What rounded activations cost a model that was trained on floats: the second table of docs/reference/models.md.

    rounding_cost.py --bitnet PATH [--minutes 10] [--seed 1] [--rotated] [--keep DIR]

Trains a small Qwen3 of transformers on the tales of models/: linear layers ternary with a scale for each 128
columns (gradients pass the rounding unchanged), activations in float32. Converts it to PQ2_0 and reads held-out
tales with each --activations; `float` is what the others are compared with. With --rotated each linear layer is trained
behind the rotation that docs/reference/models.md#rotated-weights describes. Wants torch and transformers.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch
import transformers
from torch.nn.utils import parametrize

import make_models
import reference
import run_e2e
import steadiness
import transformers_proof

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
sys.path[:0] = [str(MODELS), str(pathlib.Path(__file__).resolve().parents[1] / "cli")]
import corpus  # noqa: E402
import gguf_values  # noqa: E402
from bpe import Tokenizer  # noqa: E402
from tales import make  # noqa: E402

CONTEXT, ROWS, DOCUMENTS, HELD_OUT = 160, 8, 6000, 12
LAYERS, BETWEEN, BLOCK = 3, 512, 256
ROTATION = make_models.rotation(BLOCK, [f"blk.{n}.{name}" for n in range(LAYERS) for name in make_models.LINEARS],
                                widths=[transformers_proof.SHAPE["hidden_size"], BETWEEN])
CHOICES = ("row", "group128", "group64", "group32")


class TernaryGroups(torch.nn.Module):
    def forward(self, w):
        groups = w.view(w.shape[0], -1, transformers_proof.GROUP)
        d = groups.detach().abs().mean(-1, keepdim=True).clamp(min=1e-4).half().float()
        ternary = (groups.detach() / d).round().clamp(-1, 1) * d
        return w + (ternary.view_as(w) - w).detach()


class Rotation:
    """Before a linear layer: x becomes H(s x), each block of a row by itself."""

    def __init__(self):
        widths, values = (ROTATION[f"prism.hadamard.sign_{name}"] for name in ("widths", "values"))
        parts = torch.tensor(np.array(values, np.float32)).split(widths)
        self.signs = dict(zip(widths, parts))
        self.block = torch.from_numpy(reference.hadamard(BLOCK)).float()

    def __call__(self, layer, inputs):
        x, = inputs
        return (x * self.signs[x.shape[-1]]).unflatten(-1, (-1, BLOCK)).matmul(self.block).flatten(-2)


def documents(tokens, seed):
    """(rows of ids to train on, int64 [n, CONTEXT]; lists of ids that are held out)."""
    stream, held = [], []
    for record, is_held in make.documents(DOCUMENTS, seed, talk_share=0):
        ids = [tokens.bos] + tokens.encode(record["text"]) + [tokens.eos]
        if is_held:
            held.append(ids[:CONTEXT])
        else:
            stream += ids
    n = len(stream) // CONTEXT
    return torch.tensor(stream[:n * CONTEXT]).view(n, CONTEXT), held[:HELD_OUT]


def trained(n_vocab, data, minutes, seed, rotated):
    torch.manual_seed(seed)
    shape = transformers_proof.SHAPE | {"num_hidden_layers": LAYERS, "intermediate_size": BETWEEN}
    config = transformers.Qwen3Config(vocab_size=n_vocab, head_dim=64, tie_word_embeddings=True, **shape)
    model = transformers.Qwen3ForCausalLM(config)
    for layer in model.model.layers:
        for part in layer.modules():
            if isinstance(part, torch.nn.Linear):
                parametrize.register_parametrization(part, "weight", TernaryGroups())
                if rotated:
                    part.register_forward_pre_hook(Rotation())
    rate = 2e-3
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    begin, step, loss = time.time(), 0, None
    while (done := (time.time() - begin) / (60 * minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 50) * max(0.02, 1 - max(0, done - 0.4) / 0.6)
        ids = data[torch.randint(len(data), (ROWS,))]
        loss = model(ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}, loss {loss.item():.3f}", file=sys.stderr, flush=True)
    print(f"trained: {step} steps of {ROWS * CONTEXT} tokens, loss {loss.item():.3f}", flush=True)
    for part in model.modules():
        if parametrize.is_parametrized(part):
            parametrize.remove_parametrizations(part, "weight")
    return model


def metadata_of(tokens):
    """What transformers_proof.write_tokenizer wants to know."""
    normal = len(tokens.tokens) - 3
    return {"tokenizer.ggml.tokens": tokens.tokens, "tokenizer.ggml.token_type": [1] * normal + [3] * 3,
            "tokenizer.ggml.merges": [" ".join(m) for m in tokens.merges],
            "tokenizer.ggml.bos_token_id": tokens.bos, "tokenizer.ggml.eos_token_id": tokens.eos}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bitnet", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=10, help="of training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rotated", action="store_true", help="weights of rotated inputs")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the checkpoint and the GGUF file")
    args = parser.parse_args()
    tokens = Tokenizer.load(MODELS / "tokenizer.json")
    data, held = documents(tokens, args.seed)
    program = run_e2e.Program(args.bitnet.resolve(), [])
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        trained(len(tokens.tokens), data, args.minutes, args.seed, args.rotated).save_pretrained(folder / "checkpoint")
        transformers_proof.write_tokenizer(folder / "checkpoint", metadata_of(tokens))
        file = folder / "model.gguf"
        done = program.run("convert", folder / "checkpoint", file, "--type", "pq2_0", "--force")
        if done.returncode != 0:
            sys.exit(done.stderr.decode(errors="replace"))
        if args.rotated:
            plain = gguf_values.Model(file)
            signs = {"prism.hadamard.sign_values": [int(v) for v in ROTATION["prism.hadamard.sign_values"]]}
            gguf_values.write(file, plain.metadata | ROTATION | signs, plain.tensors)
        print("| activations | KL, mean | KL, largest | perplexity |\n|---|---|---|---|")
        logits = {}
        for choice in ("float", *CHOICES):
            logits[choice] = [program.logits(file, ids, ["--activations", choice], "f32")[0] for ids in held]
            kl = np.concatenate([steadiness.divergence(right.astype(float), ours)
                                 for right, ours in zip(logits["float"], logits[choice])])
            surprise = np.mean([steadiness.surprise(ours, ids) for ours, ids in zip(logits[choice], held)])
            print(f"| {choice} | {kl.mean():.1e} | {kl.max():.1e} | {np.exp(surprise):.4f} |")


if __name__ == "__main__":
    transformers.utils.logging.disable_progress_bar()
    main()
