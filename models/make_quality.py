"""Writes the small sets of quality/ that measure the demo model: for `bitnet eval`.

    python3 make_quality.py [--check] [--count 200]

  held-out.txt       tales, for perplexity
  tiny-cloze.jsonl   how a tale goes on: one sentence of four (HellaSwag's form)
  tiny-agree.jsonl   he or she: one sentence of two, which differ in pronouns alone (HellaSwag's form)
  tiny-recall.jsonl  whom a tale was about: one name of four (ARC's form)

All come from the grammar of tales/. Each tale is held out: the model's training had no tale with one of its
pairs of hero, name and thing. Plots and sentences are those of the training, so the sets measure the demo
model and say nothing of English; they are no replacement for the public sets whose forms they have. The same
count gives the same bytes with every Python since 3.9. --check compares with what is there.
"""

import argparse
import json
import pathlib
import random
import re
import sys

from tales import story, world
from tales.make import held_out

HERE = pathlib.Path(__file__).resolve().parent / "quality"
SENTENCE = re.compile(r'(?<=[.!?]) (?=[A-Z])|(?<=[.!?]") (?=[A-Z])')
SWAPPED = {"he": {"he": "she", "his": "her", "him": "her", "himself": "herself"},
           "she": {"she": "he", "herself": "himself"}}  # "her" has two forms: such sentences are left out


def tales(rng: random.Random):
    """Held-out tales, each once."""
    seen = set()
    while True:
        tale = story.tell(rng)
        if held_out(tale) and tale.text not in seen:
            seen.add(tale.text)
            yield tale


def sentences(text: str) -> list:
    return SENTENCE.split(text)


def is_whole(sentence: str) -> bool:
    """False for a part of what somebody says."""
    return sentence.count('"') % 2 == 0


def shuffled(rng: random.Random, right: str, wrong: list) -> tuple:
    """All endings in some order, and where the right one is."""
    endings = [right, *wrong]
    rng.shuffle(endings)
    return endings, endings.index(right)


def cloze(rng: random.Random, count: int):
    """What comes next, against what comes at that place in three other tales of the same hero and thing."""
    made = 0
    for tale in tales(rng):
        parts = sentences(tale.text)
        at = len(parts) // 2
        if not is_whole(parts[at]):
            continue
        wrong = []
        plots = [p for p in story.PLOTS if p != tale.plot]
        rng.shuffle(plots)
        for plot in plots:
            if not story._suits(plot, tale.hero.kind, tale.thing):
                continue
            other = story.tell(rng, plot, tale.hero.kind, tale.thing, tale.hero.name)
            there = sentences(other.text.replace(other.friend.kind, tale.friend.kind))
            sentence = there[min(at, len(there) - 1)]
            if is_whole(sentence) and sentence not in (parts[at], *wrong):
                wrong.append(sentence)
            if len(wrong) == 3:
                break
        if len(wrong) < 3:
            continue
        endings, label = shuffled(rng, parts[at], wrong)
        yield {"ctx": " ".join(parts[:at]), "endings": endings, "label": label}
        made += 1
        if made == count:
            return


def swapped(sentence: str, pronoun: str) -> str:
    """The sentence with the other pronouns; "" where it has none that can be exchanged."""
    if pronoun == "she" and re.search(r"\bher\b", sentence, re.IGNORECASE):
        return ""

    def other(match):
        word = SWAPPED[pronoun].get(match[0].lower())
        return match[0] if word is None else word.capitalize() if match[0][0].isupper() else word

    changed = re.sub(r"\w+", other, sentence)
    return "" if changed == sentence else changed


def agree(rng: random.Random, count: int):
    """The first sentence that says he or she of the hero, before there is anybody else in the tale."""
    made = 0
    for tale in tales(rng):
        parts = sentences(tale.text)
        for at in range(1, len(parts)):
            if tale.friend.kind in " ".join(parts[:at + 1]):
                break
            wrong = swapped(parts[at], tale.hero.pronoun)
            if wrong:
                endings, label = shuffled(rng, parts[at], [wrong])
                yield {"ctx": " ".join(parts[:at]), "endings": endings, "label": label}
                made += 1
                break
        if made == count:
            return


def recall(rng: random.Random, count: int):
    """A short tale, then whom it was about; the wrong names have the pronoun of the right one."""
    names = {p: list(of) for p, of in world.NAMES.items()}
    for number, tale in zip(range(count), tales(rng)):
        wrong = rng.sample([n for n in names[tale.hero.pronoun] if n != tale.hero.name], 3)
        endings, label = shuffled(rng, tale.hero.name, wrong)
        yield {"id": f"tiny-recall-{number}", "question": f"{tale.brief} Who is the story about?",
               "choices": {"text": endings, "label": list("ABCD")}, "answerKey": "ABCD"[label]}


def lines(items) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def files(count: int) -> dict:
    """Content by name. Each set has a seed of its own."""
    texts = tales(random.Random(101))
    return {"held-out.txt": "".join(next(texts).text + "\n" for _ in range(40)),
            "tiny-cloze.jsonl": lines(cloze(random.Random(102), count)),
            "tiny-agree.jsonl": lines(agree(random.Random(103), count)),
            "tiny-recall.jsonl": lines(recall(random.Random(104), count))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is another one")
    parser.add_argument("--count", type=int, default=200, help="questions of each set")
    args = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    other = []
    for name, text in files(args.count).items():
        if not args.check:
            (HERE / name).write_text(text, encoding="utf-8")
        elif (HERE / name).read_text(encoding="utf-8") != text:
            other.append(name)
    if other:
        sys.exit(f"quality/ has other text than make_quality.py writes: {', '.join(other)}")


if __name__ == "__main__":
    main()
