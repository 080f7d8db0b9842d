"""Writes the corpus: one JSON object per line, {"kind": "tale", "text": ...} or
{"kind": "talk", "turns": [[role, text], ...]}.

    python3 -m tales.make --count 1000 --seed 1 --out corpus          (run in models/)

writes corpus.train.jsonl and corpus.heldout.jsonl. The same seed gives the same bytes with every
Python since 3.9. A tale is held out if its pair (hero kind, thing) is: about 4 % of the pairs never
occur in training, so the held-out loss asks for new combinations and not for remembered ones.
"""

import argparse
import hashlib
import json
import random

from . import story, talk


def held_out(pair) -> bool:
    """Decided by a hash of the pair alone, so that it is the same for every seed and size."""
    digest = hashlib.sha256("/".join(pair).encode()).digest()
    return digest[0] < 10


def documents(count: int, seed: int, talk_share: float = 0.5):
    """Yields `count` different documents as (record, is_held_out)."""
    rng = random.Random(seed)
    seen, made = set(), 0
    while made < count:
        if rng.random() < talk_share:
            turns, pair = talk.converse(rng)
            record = {"kind": "talk", "turns": turns}
            key = json.dumps(turns)
            # Small talk is short and few: it may repeat, or it would be crowded out.
            repeats_allowed = pair is None
        else:
            tale = story.tell(rng)
            pair = (tale.hero.kind, tale.thing)
            record, key, repeats_allowed = {"kind": "tale", "text": tale.text}, tale.text, False
        mark = hashlib.blake2b(key.encode(), digest_size=8).digest()
        if mark in seen and not repeats_allowed:
            continue
        seen.add(mark)
        made += 1
        yield record, pair is not None and pair[1] != "" and held_out(pair)


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
