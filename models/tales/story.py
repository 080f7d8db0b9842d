"""Casts a plot: chooses hero, friend, thing and place, and tells the tale."""

import functools
import random
from typing import NamedTuple

from . import world
from .grammar import FORMS, finish, with_article
from .plots import BRIEF, INTRO, PLOTS, TINY

BRIEF_END = ("The end.", "And they were friends forever.", "They all lived happily ever after.")


class Being(NamedTuple):
    kind: str        # "fox"
    pronoun: str     # "he" or "she"
    name: str        # "" if it is just "the fox"
    adjective: str

    @property
    def called(self) -> str:
        return self.name or f"the {self.kind}"

    @property
    def introduced(self) -> str:
        base = with_article(f"{self.adjective} {self.kind}")
        return f"{base} named {self.name}" if self.name else base


class Tale(NamedTuple):
    plot: str
    hero: Being
    friend: Being
    thing: str
    place: str
    text: str
    facts: tuple     # of (question, answer)
    brief: str       # the same tale in three or four sentences
    tiny: str        # in two


def _skills(kind: str) -> tuple:
    return world.BEASTS[kind] if kind in world.BEASTS else world.PEOPLE[kind][1]


@functools.cache
def _mentions(shape, word: str) -> bool:
    """True if the plot's own text already has this king or this box; a second one would confuse."""
    return any(f" {word}" in text for part in shape.parts for text in part)


def _suits(plot: str, hero: str, thing: str) -> bool:
    shape = PLOTS[plot]
    if hero and (set(shape.skill.split()) & set(_skills(hero)) or _mentions(shape, hero)):
        return False                      # a swimmer needs no help to swim
    if not thing:
        return True
    return (shape.has_thing and thing in world.THINGS_FOR.get(plot, world.ALL)
            and not _mentions(shape, thing))


def _being(rng: random.Random, kind: str, adjectives, named: float, taken: str = "") -> Being:
    fixed = "she" if kind in world.SHE_ONLY else world.PEOPLE.get(kind, (None,))[0]
    pronoun = fixed or rng.choice(("he", "she"))
    names = [n for n in world.NAMES[pronoun] if n != taken]
    name = rng.choice(names) if rng.random() < named else ""
    return Being(kind, pronoun, name, rng.choice(adjectives))


def _friend_kind(rng: random.Random, hero: str, shape) -> str:
    wanted = set(shape.skill.split())
    fit = [k for k in (*world.BEASTS, *world.PEOPLE)
           if k != hero and not _mentions(shape, k) and (not wanted or wanted & set(_skills(k)))]
    return rng.choice(fit)


def tell(rng: random.Random, plot: str = "", hero: str = "", thing: str = "", name: str = "") -> Tale:
    """One tale. Whatever is given is kept: tell(rng, hero="fox", thing="lamp")."""
    plot = plot or rng.choice([p for p in PLOTS if _suits(p, hero, thing)])
    shape = PLOTS[plot]
    if not hero:
        kinds = [*world.BEASTS, *world.BEASTS, *world.PEOPLE]     # beasts are the better heroes
        hero = rng.choice([k for k in kinds if _suits(plot, k, "")])
    if not thing:
        thing = rng.choice([t for t in world.THINGS if not shape.has_thing or _suits(plot, "", t)])
    h = _being(rng, hero, world.HERO_ADJECTIVES, 1)
    if name:
        pronoun = next(p for p in FORMS if name in world.NAMES[p])
        h = h._replace(name=name, pronoun=pronoun)
    f = _being(rng, _friend_kind(rng, hero, shape), world.HELPER_ADJECTIVES, 0)

    place = rng.choice(list(world.PLACES))
    near, looks = world.PLACES[place]
    a_place = with_article(f"{rng.choice(looks)} {place}")
    food = rng.choice(world.FOODS)
    fear = rng.choice(list(world.FEARS))
    slots = {
        "H": h.called, "F": f.called, "aH": h.introduced, "aF": f.introduced,
        **FORMS[h.pronoun], **{("f" if k == "h" else "f" + k): v for k, v in FORMS[f.pronoun].items()},
        "dear": f.name or f.kind, "T": f"the {thing}", "t": thing,
        "aT": with_article(f"{rng.choice(world.THING_ADJECTIVES)} {thing}"),
        "use": world.THINGS[thing],
        "P": f"the {place}", "inP": f"{near} the {place}", "inaP": f"{near} {a_place}",
        "hide": rng.choice(world.HIDING_PLACES), "high": rng.choice(world.HIGH_PLACES),
        "water": rng.choice(world.WATERS), "food": food,
        "missing": rng.choice(world.MISSING[food]), "fear": fear, "calm": world.FEARS[fear],
        "time": rng.choice(world.TIMES),
    }
    chosen = [rng.choice(INTRO)] + [rng.choice(part) for part in shape.parts]
    end = rng.random()
    if end < 0.45:
        chosen.append(rng.choice(world.MORALS[shape.moral]))
    if end > 0.3:
        chosen.append(rng.choice(world.ENDINGS))
    text = finish(" ".join("^" + s.format_map(slots) for s in chosen))
    start = f"once upon a time, there was {slots['aH']}."
    brief = finish(" ".join("^" + t for t in (start, BRIEF[plot].format_map(slots), rng.choice(BRIEF_END))))
    tiny = finish(" ".join("^" + t for t in (start, TINY[shape.has_thing].format_map(slots), "The end.")))
    # A question can be asked only if its answer was told in these very words or is plainly meant.
    facts = tuple((finish(q.format_map(slots)), finish(a.format_map(slots)))
                  for q, a in shape.facts
                  if not ("{hide}" in a and slots["hide"] not in text))
    return Tale(plot, h, f, thing if shape.has_thing else "", place, text, facts, brief, tiny)
