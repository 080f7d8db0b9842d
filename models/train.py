"""Trains TinyTales:   nice -n 19 python3 train.py --minutes 60          (run in models/)

README.md has the runs that made the committed file. Makes the corpus and, where it is missing, the
tokenizer; writes checkpoint.npz (float32 master weights and the shape of the model) and loss.csv. The
rate warms up, stays, and falls to almost nothing in the last part of the time; weights decay in the
first half only, and not where another run is continued.
"""

import argparse
import csv
import json
import os
import random
import time

import numpy as np
import torch

import corpus
import gguf_file
from bpe import Tokenizer
from model import Config, Model, Ternary
from tales import make

# Flags on an id: a rare token that its document has already said; one that the model need not say; a
# rare one that the last request named and that its answer says for the first time.
RECALLED, GIVEN, ASKED = 1 << 15, 1 << 14, 1 << 13
IDS = ASKED - 1
POOL = 512                  # documents that are sorted by length together
TOKENIZER_SEED, TOKENIZER_DOCUMENTS, VOCAB = 7, 12000, 2048


def tokenizer(path: str) -> Tokenizer:
    if not os.path.exists(path):
        docs = [d for d, held in make.documents(TOKENIZER_DOCUMENTS, TOKENIZER_SEED) if not held]
        Tokenizer.trained((w for d in docs for w in corpus.words(d)), VOCAB).save(path)
    return Tokenizer.load(path)


def encoded(tok: Tokenizer, count: int, seed: int, talk: float):
    """(training documents, held-out documents), each a list of uint16 arrays of ids and flags."""
    rng = random.Random(seed)
    split = ([], [])
    for record, held in make.documents(count, seed, talk):
        ids, said = corpus.encode(tok, record, rng)
        split[held].append(np.array(ids, np.uint16) | np.where(said, 0, GIVEN).astype(np.uint16))
    return split


def mark(docs) -> None:
    """Sets RECALLED and ASKED where a tale names its hero, friend or thing again: what is rare in the
    corpus (in less than a tenth of the documents) but known in the document. Just this has to be
    looked up."""
    seen_in = np.zeros(IDS + 1, np.int64)
    for doc in docs:
        seen_in[np.unique(doc & IDS)] += 1
    rare = seen_in < 0.1 * len(docs)
    for doc in docs:
        ids = doc & IDS
        first = np.zeros(len(doc), bool)
        first[np.unique(ids, return_index=True)[1]] = True
        given, asked = doc & GIVEN != 0, set()
        for i, token in enumerate(ids.tolist()):
            if given[i]:
                asked = asked | {token} if given[i - 1] else {token}
            elif rare[token] and token in asked:
                doc[i] |= ASKED
                asked.remove(token)
        doc[rare[ids] & ~first] |= RECALLED


def opening(doc, rng):
    """The document up to shortly after what was asked for is said, or after the tale has begun: who and
    what it is about is decided there, and a few openings cost what one tale costs."""
    given, asked = (np.flatnonzero(doc & flag) for flag in (GIVEN, ASKED))
    begun = (given[-1] if len(given) else 0) + rng.randrange(30, 45)
    return doc[:max(begun, asked[-1] + 10 if len(asked) else 0)]


def batches(docs, tokens: int, rng):
    """Batches of at most `tokens` ids: documents of about one length, one per row, so that nobody looks
    at the neighbour's. Shorter ones are filled up with GIVEN. Yields (documents, longest) for ever."""
    while True:
        order = rng.permutation(len(docs))
        for at in range(0, len(order), POOL):
            groups = [[]]
            for index in sorted(order[at:at + POOL], key=lambda i: len(docs[i])):
                if (len(groups[-1]) + 1) * len(docs[index]) > tokens and groups[-1]:
                    groups.append([])
                groups[-1].append(docs[index])
            for index in rng.permutation(len(groups)):
                yield filled(groups[index])


def filled(group):
    ids = np.full((len(group), max(map(len, group))), GIVEN, np.int64)
    for row, doc in zip(ids, group):
        row[:len(doc)] = doc
    return torch.from_numpy(ids)


def loss_of(model, ids, recall: float, asked: float):
    """Mean over what the model has to say; tokens that are RECALLED or ASKED count more."""
    target = ids[:, 1:]
    weights = torch.ones(target.shape)
    weights[target & RECALLED != 0] = recall
    weights[target & ASKED != 0] = asked
    weights[target & GIVEN != 0] = 0
    return model(ids[:, :-1] & IDS, target & IDS, weights)


def masters(codes, rng):
    """Numbers that round to codes - 1 where their mean size is 1; normal, as training leaves them."""
    size = np.abs(rng.normal(0, 1.25, (4, *codes.shape)))
    small = np.where(size[0] < 0.5, size[0], rng.uniform(0, 0.5, codes.shape))
    large = np.select([draw > 0.55 for draw in size], size, 0.75)
    value = np.where(codes == 1, small * rng.choice((-1, 1), codes.shape), large * (codes.astype(int) - 1))
    sure = codes != 1
    value[sure] *= (codes.size - np.abs(value[~sure]).sum()) / np.abs(value[sure]).sum()
    return value


def load(path: str, model: Model) -> None:
    """The weights of a checkpoint or of a GGUF file, whose masters are lost and drawn anew."""
    if not path.endswith(".gguf"):
        with np.load(path) as file:
            model.load_state_dict({k: torch.from_numpy(file[k]) for k in model.state_dict()})
        return
    rng, state = np.random.default_rng(0), {}
    for name, (kind, shape, data) in gguf_file.read(path)[1].items():
        if kind == gguf_file.I2_S:
            codes, scale = gguf_file.unpack_i2s(data, shape)
            value = masters(codes, rng) * scale
        else:
            value = np.frombuffer(data, "<f4" if kind == gguf_file.F32 else "<f2").reshape(shape)
        state[name.removesuffix(".weight")] = torch.from_numpy(value.astype(np.float32))
    model.load_state_dict(state)


def save(path: str, model: Model, step: int) -> None:
    arrays = {k: v.detach().float().numpy() for k, v in model.state_dict().items()}
    with open(path + ".part", "wb") as file:
        np.savez(file, config=json.dumps(model.c.as_dict()), step=step, **arrays)
    os.replace(path + ".part", path)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60,
                        help="the schedule ends after so many minutes or --steps, what comes first")
    parser.add_argument("--steps", type=int, default=10 ** 9)
    parser.add_argument("--documents", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1024, help="tokens per step")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--init", help="checkpoint or GGUF file to start with; no decay of weights then")
    parser.add_argument("--talk", type=float, default=0.85, help="share of conversations")
    parser.add_argument("--openings", type=float, default=0.0, help="share of tales that are cut short")
    parser.add_argument("--decay", type=float, default=0.5, help="share of the time in which the rate falls")
    parser.add_argument("--float32", action="store_true", help="for a CPU without bfloat16 products")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--recall", type=float, default=1.0,
                        help="weight in the loss of a name or thing that comes again")
    parser.add_argument("--asked", type=float, default=1.0,
                        help="weight in the loss of what was asked for, where it is first told")
    parser.add_argument("--layers", type=int, default=Config.layers)
    parser.add_argument("--width", type=int, default=Config.width)
    parser.add_argument("--ffn", type=int, default=Config.ffn)
    parser.add_argument("--out", default=".", help="folder of checkpoint.npz and loss.csv")
    parser.add_argument("--tokenizer", default="tokenizer.json")
    parser.add_argument("--save-every", type=float, default=120, help="seconds")
    return parser.parse_args()


def optimizer_of(model: Model, rate: float) -> torch.optim.Optimizer:
    """Matrices decay, the factors of norms do not."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                              {"params": plain, "weight_decay": 0.0}],
                             lr=rate, betas=(0.9, 0.95), fused=False, foreach=True)


def adjust(optimizer: torch.optim.Optimizer, args: argparse.Namespace, step: int, done: float) -> None:
    """Rate and decay where `done` of the time has gone."""
    warm = min(1.0, (step + 1) / 40)
    for group in optimizer.param_groups:
        group["lr"] = args.lr * warm * max(0.02, min(1.0, (1 - done) / args.decay))
    optimizer.param_groups[0]["weight_decay"] = 0.1 if done < 0.5 and not args.init else 0.0


def train(model: Model, stream, test, args: argparse.Namespace) -> None:
    optimizer = optimizer_of(model, args.lr)
    begun = saved = time.monotonic()
    mean, count, tokens = 0.0, 0, 0
    with open(os.path.join(args.out, "loss.csv"), "w", newline="", encoding="utf-8") as file:
        log = csv.writer(file)
        log.writerow(("step", "tokens", "seconds", "learning_rate", "train_loss", "heldout_loss"))
        step = 0
        while True:
            now = time.monotonic()
            done = max(step / args.steps, (now - begun) / 60 / args.minutes)
            last = done >= 1
            if step % 100 == 0 or last:
                with torch.no_grad():
                    held_loss = np.mean([loss_of(model, ids, 1, 1).item() for ids in test])
                row = (step, tokens, round(now - begun),
                       f"{optimizer.param_groups[0]['lr']:.6f}", f"{mean / max(count, 1):.4f}",
                       f"{held_loss:.4f}")
                log.writerow(row)
                file.flush()
                print(*row, flush=True)
                mean, count = 0.0, 0
            if last or now - saved > args.save_every:
                save(os.path.join(args.out, "checkpoint.npz"), model, step)
                saved = now
            if last:
                break
            adjust(optimizer, args, step, done)
            ids = next(stream)
            tokens += ids.numel()
            loss = loss_of(model, ids, args.recall, args.asked)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            mean, count, step = mean + loss.item(), count + 1, step + 1


def main() -> None:
    args = parsed()
    torch.manual_seed(args.seed)
    Ternary.exact = args.float32
    if args.threads:
        torch.set_num_threads(args.threads)
    tok = tokenizer(args.tokenizer)
    told, heldout = encoded(tok, args.documents, args.seed, args.talk)
    print(f"{len(told)} documents, {sum(map(len, told))} tokens; held out {len(heldout)}", flush=True)
    mark(told)
    rng = random.Random(args.seed)
    told = [opening(doc, rng) if rng.random() < args.openings else doc for doc in told]
    model = Model(Config(layers=args.layers, width=args.width, ffn=args.ffn))
    if args.init:
        load(args.init, model)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    test = [filled(sorted(heldout[at:at + 16], key=len)) for at in range(0, 64, 16)]
    stream = batches(told, args.batch, np.random.default_rng(args.seed))
    train(model, stream, test, args)


if __name__ == "__main__":
    main()
