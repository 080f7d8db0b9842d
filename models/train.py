"""Trains TinyTales:   nice -n 19 python3 train.py --minutes 60          (run in models/)

README.md has the runs that made the committed file. Makes the corpus and, where it is missing, the tokenizer; writes checkpoint.npz (float32 master
weights and the shape of the model) and loss.csv. Stages as in the BitNet b1.58 recipe: warm-up, then
a cosine; weight decay in the first half only. Rows are half as long for the first 70 %.
"""

import argparse
import csv
import json
import math
import os
import random
import time

import numpy as np
import torch

import corpus
from bpe import Tokenizer
from model import Config, Model
from tales import make

RECALLED = 1 << 15          # flag on an id: a rare token that its document has already said
TOKENIZER_SEED, TOKENIZER_DOCUMENTS, VOCAB = 7, 12000, 2048


def tokenizer(path: str) -> Tokenizer:
    if not os.path.exists(path):
        docs = [d for d, held in make.documents(TOKENIZER_DOCUMENTS, TOKENIZER_SEED) if not held]
        Tokenizer.trained((w for d in docs for w in corpus.words(d)), VOCAB).save(path)
    return Tokenizer.load(path)


def encoded(tok: Tokenizer, count: int, seed: int, requests: bool):
    """(training documents, held-out documents), each a list of uint16 arrays. With `requests`, most
    documents that ask for no particular tale are left out."""
    rng = random.Random(seed)
    split = ([], [])
    for record, held in make.documents(count, seed, 0.8 if requests else 0.5):
        asks = record["kind"] == "talk" and "stor" in record["turns"][0][1] and len(record["turns"][1][1]) > 200
        if requests and not asks and not held and rng.random() < 0.75:
            continue
        split[held].append(np.array(corpus.encode(tok, record, rng), np.uint16))
    return split


def mark_recalled(docs) -> None:
    """Sets RECALLED where a tale names its hero, friend or thing again: what is rare in the corpus (in
    less than a tenth of the documents) but known in the document. Just this has to be looked up."""
    seen_in = np.zeros(1 << 15, np.int64)
    for doc in docs:
        seen_in[np.unique(doc)] += 1
    rare = seen_in < 0.1 * len(docs)
    for doc in docs:
        first = np.zeros(len(doc), bool)
        first[np.unique(doc, return_index=True)[1]] = True
        doc[rare[doc] & ~first] |= RECALLED


def rows(docs, order, context: int):
    """Packs documents into rows of context + 1 ids that start with a document; the tail is cut."""
    row, length = [], 0
    for index in order:
        row.append(docs[index])
        length += len(docs[index])
        if length > context:
            yield np.concatenate(row)[:context + 1]
            row, length = [], 0


def batches(docs, context: int, batch: int, rng):
    held = []
    while True:
        for row in rows(docs, rng.permutation(len(docs)), context):
            held.append(row)
            if len(held) == batch:
                yield torch.from_numpy(np.stack(held).astype(np.int64))
                held = []


def save(path: str, model: Model, step: int) -> None:
    arrays = {k: v.detach().float().numpy() for k, v in model.state_dict().items()}
    with open(path + ".part", "wb") as file:
        np.savez(file, config=json.dumps(model.c.as_dict()), step=step, **arrays)
    os.replace(path + ".part", path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60,
                        help="the schedule ends after so many minutes or --steps, what comes first")
    parser.add_argument("--steps", type=int, default=10 ** 9)
    parser.add_argument("--documents", type=int, default=80000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=4, help="rows of `context` tokens per step")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--init", help="start with the weights of this checkpoint; no decay then")
    parser.add_argument("--requests", action="store_true", help="mostly tales that somebody asked for")
    parser.add_argument("--recall", type=float, default=1.0,
                        help="weight in the loss of a name or thing that comes again")
    parser.add_argument("--layers", type=int, default=Config.layers)
    parser.add_argument("--width", type=int, default=Config.width)
    parser.add_argument("--ffn", type=int, default=Config.ffn)
    parser.add_argument("--out", default=".", help="folder of checkpoint.npz and loss.csv")
    parser.add_argument("--tokenizer", default="tokenizer.json")
    parser.add_argument("--save-every", type=float, default=120, help="seconds")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    tok = tokenizer(args.tokenizer)
    train, heldout = encoded(tok, args.documents, args.seed, args.requests)
    print(f"{len(train)} documents, {sum(map(len, train))} tokens; held out {len(heldout)}", flush=True)
    if args.recall > 1:
        mark_recalled(train)
    model = Model(Config(layers=args.layers, width=args.width, ffn=args.ffn))
    if args.init:
        with np.load(args.init) as file:
            model.load_state_dict({k: torch.from_numpy(file[k]) for k in model.state_dict()})
    c = model.c
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    test = torch.from_numpy(np.stack(
        list(rows(heldout, range(len(heldout)), c.context))[:16]).astype(np.int64))
    # Attention costs grow with the row; every document fits into half a row.
    short = batches(train, c.context // 2, 2 * args.batch, np.random.default_rng(args.seed))
    full = batches(train, c.context, args.batch, np.random.default_rng(args.seed + 1))
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": plain, "weight_decay": 0.0}],
                                  lr=args.lr, betas=(0.9, 0.95), fused=False, foreach=True)
    begun = saved = time.monotonic()
    mean, count = 0.0, 0
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
                    held_loss = model(test[:, :-1], test[:, 1:]).item()
                row = (step, step * args.batch * c.context, round(now - begun),
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
            warm = min(1.0, (step + 1) / 40)
            for group in optimizer.param_groups:
                group["lr"] = args.lr * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
            optimizer.param_groups[0]["weight_decay"] = 0.1 if done < 0.5 and not args.init else 0.0
            ids = next(short if done < 0.7 else full)
            weights = 1 + (args.recall - 1) * (ids[:, 1:] >= RECALLED).float()
            ids = ids & RECALLED - 1
            loss = model(ids[:, :-1], ids[:, 1:], weights)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            mean, count, step = mean + loss.item(), count + 1, step + 1


if __name__ == "__main__":
    main()
