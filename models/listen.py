"""Counts how often the model tells what it was asked for.   python3 listen.py [-m FILE] [--fails]

Greedy, NumPy only, from the GGUF file. 200 requests that name an animal, a name, a thing or two of
them, and 100 conversations of two requests. All pairs are held out (tales/make.py): no tale and no
request of the training has them. Half of the phrasings are held out too: they stand only here.

A tale counts as what was asked for if it has an end of its own and at least four sentences, if the
animal is in its first sentence, as the hero, if its hero bears the name, and if the thing occurs.
"Shorter": fewer words than the tale before, and its hero. "Another one about ...": as above.
"""

import argparse
import random
import re
import sys

try:
    import gguf_file
    import sample
except ImportError as error:
    print(f"skip: {error}")
    sys.exit(77)
from tales import talk, world
from tales.grammar import with_article
from tales.make import is_held_pair

TOKENS = 260            # of an answer, at most; the longest tale has 172
NEW = ("My daughter wants a story about {w} tonight.", "Today I would like to hear something about {w}.",
       "Surprise me with {w}.", "Please invent a story about {w}.", "Would you tell the children a story about {w}?",
       "We need a story in which there is {w}.", "How does the story about {w} go?",
       "Story time! This time about {w}.", "Say, do you have one about {w}?", "Begin a tale about {w}.")
NEW_SHORTER = ("Can I have that in fewer words?", "Cut it down, please.", "Give me a shorter version.",
               "Please make this one shorter.", "Shorter version?", "Too long for me, shorter please.")
NEW_ANOTHER = ("Good. Another one, this time about {w}.", "I liked it! Another about {w}?",
               "Next, a story about {w}.", "Do you have another one about {w}?",
               "Let us have another one about {w}.", "And then one more story about {w}.")


def cases(rng: random.Random, count: int):
    """(words for the wish, animal, name, thing), '' for what is not named."""
    he_she = {n: p for p, names in world.NAMES.items() for n in names}
    beasts, things, names = list(world.BEASTS), list(world.THINGS), list(he_she)
    made = []
    while len(made) < count:
        b, n, t = rng.choice(beasts), rng.choice(names), rng.choice(things)
        if b in world.SHE_ONLY and he_she[n] == "he":
            continue
        a, kind = with_article(b), len(made) % 10
        pair = {0: (b, t), 1: (b, t), 2: (b, t), 3: (b, n), 4: (b, n), 5: (n, t)}.get(kind)
        if pair and not is_held_pair(*pair):
            continue
        if kind < 3:
            made.append((f"{a} and {with_article(t)}", b, "", t))
        elif kind < 5:
            made.append((f"{a} named {n}", b, n, ""))
        elif kind == 5:
            made.append((f"{n} and {with_article(t)}", "", n, t))
        elif kind < 8:
            made.append((a, b, "", ""))
        else:
            made.append((n, "", n, "") if kind == 8 else (with_article(t), "", "", t))
    return made


def phrased(new, known, wish: str, i: int) -> str:
    """Every second text has a phrasing that training does not know."""
    shapes = new if i % 2 else known
    text = shapes[i // 2 % len(shapes)].format(w=wish, s="story", x=f" about {wish}")
    return text[0].upper() + text[1:] + ("" if text.endswith(("?", "!", ".")) else ".")


def hero(text: str) -> tuple:
    """(first sentence, the name in it or '')."""
    first = re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]
    name = re.search(r"\bnamed (\w+)", first)
    return first, name[1] if name else ""


def has(text: str, word: str) -> bool:
    return re.search(rf"\b{word}\b", text) is not None


def kept(text: str, ended: bool, case, sentences: int = 4) -> bool:
    _, animal, name, thing = case
    first, called = hero(text)
    return (ended and len(re.findall(r"[.!?]", text)) >= sentences and (not animal or has(first, animal))
            and (not name or called == name) and (not thing or has(text, thing)))


def same_hero(a: str, b: str) -> bool:
    kinds = [*world.BEASTS, *world.PEOPLE]

    def who(text):
        first, name = hero(text)
        return next((m for m in re.findall(r"\w+", first) if m in kinds), None), name
    return who(a) == who(b) and who(a)[0] is not None


def answers(path, talks) -> list:
    """(text, whether it came to its own end) for each list of turns."""
    tok = sample.load_tokenizer(gguf_file.read(path)[0])
    return sample.generate_all(path, [sample.chat_ids(tok, turns) for turns in talks], tok, TOKENS)


def report(label: str, good: list, need: float = 0) -> bool:
    """Prints the share of `good`; True if it reaches `need`."""
    share = sum(good) / len(good)
    mark, asked = ("", "") if not need else ("ok  " if share >= need else "FAIL", f", {need:.0%} asked for")
    print(f"{mark:5} {label}: {sum(good)} of {len(good)}, {share:.1%}{asked}", flush=True)
    return share >= need


def show_failures(talks, good) -> None:
    for turns, fine in zip(talks, good):
        if not fine:
            print(*(f"    {'<>'[i % 2 == 0]} {turn}" for i, turn in enumerate(turns)), "", sep="\n")


def first_requests(args) -> bool:
    wanted = cases(random.Random(9), args.requests)
    asks = [phrased(NEW, talk.ASK, case[0], i) for i, case in enumerate(wanted)]
    told = answers(args.model, [[ask] for ask in asks])
    good = [kept(text, ended, case) for (text, ended), case in zip(told, wanted)]
    fine = report("requests", good, 0.95)
    report("  known phrasing", good[0::2])
    report("  held-out phrasing", good[1::2])
    if args.fails:
        show_failures([(ask, text) for ask, (text, _) in zip(asks, told)], good)
    return fine


def second_requests(args) -> bool:
    rng, half = random.Random(10), args.talks // 2
    before, wanted = cases(rng, args.talks), cases(rng, args.talks)
    asks = [phrased(NEW, talk.ASK, case[0], i) for i, case in enumerate(before)]
    told = [text for text, _ in answers(args.model, [[ask] for ask in asks])]
    again = [phrased(NEW_SHORTER, talk.SHORTER, "", i) if i < half else
             phrased(NEW_ANOTHER, talk.ANOTHER, wanted[i][0], i) for i in range(args.talks)]
    then = answers(args.model, [list(turns) for turns in zip(asks, told, again)])
    good = [ended and len(text.split()) < len(old.split()) and same_hero(old, text) if i < half else
            kept(text, ended, wanted[i], 2) for i, (old, (text, ended)) in enumerate(zip(told, then))]
    fine = report("second requests", good, 0.80)
    report("  shorter", good[:half])
    report("  another one about", good[half:])
    if args.fails:
        show_failures(list(zip(asks, told, again, (text for text, _ in then))), good)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default=sample.default_model())
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--talks", type=int, default=100)
    parser.add_argument("--fails", action="store_true", help="print what was not as asked for")
    args = parser.parse_args()
    return 0 if all([first_requests(args), second_requests(args)]) else 1


if __name__ == "__main__":
    sys.exit(main())
