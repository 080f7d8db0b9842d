"""Writes the corpus: one JSON object per line, {"kind": "tale", "text": ...} or
{"kind": "talk", "turns": [[role, text], ...]}.

    python3 -m tales.make --count 1000 --seed 1 --out corpus          (run in models/)

writes corpus.train.jsonl and corpus.heldout.jsonl. The same seed gives the same bytes with every
Python since 3.9. A document is held out if a tale in it has a pair (of hero, name and thing) that is:
about 4 % of the pairs never occur in training, so that new combinations are asked for there.
"""

import argparse
import hashlib
import json
import random

from . import story, talk


def held_out(tale) -> bool:
    """Decided by hashes of the pairs hero and thing, hero and name, name and thing alone, so that it
    is the same for every seed and size."""
    hero, name, thing = tale.hero.kind, tale.hero.name, tale.thing
    return any(is_held_pair(*pair) for pair in ((hero, thing), (hero, name), (name, thing)) if all(pair))


def is_held_pair(a: str, b: str) -> bool:
    return hashlib.sha256(f"{a}/{b}".encode()).digest()[0] < 10


def documents(count: int, seed: int, talk_share: float = 0.5):
    """Yields `count` different documents as (record, is_held_out)."""
    rng = random.Random(seed)
    seen, made = set(), 0
    while made < count:
        if rng.random() < talk_share:
            turns, tales = talk.converse(rng)
            record = {"kind": "talk", "turns": turns}
            key = json.dumps(turns)
            # Small talk is short and few: it may repeat, or it would be crowded out.
            repeats_allowed = not tales
        else:
            tale = story.tell(rng)
            tales = [tale]
            record, key, repeats_allowed = {"kind": "tale", "text": tale.text}, tale.text, False
        mark = hashlib.blake2b(key.encode(), digest_size=8).digest()
        if mark in seen and not repeats_allowed:
            continue
        seen.add(mark)
        made += 1
        yield record, any(map(held_out, tales))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="documents to write")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same text")
    parser.add_argument("--out", default="corpus", help="prefix of the two files")
    args = parser.parse_args()
    with open(args.out + ".train.jsonl", "w", encoding="utf-8") as train, \
         open(args.out + ".heldout.jsonl", "w", encoding="utf-8") as rest:
        for record, is_held_out in documents(args.count, args.seed):
            (rest if is_held_out else train).write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
