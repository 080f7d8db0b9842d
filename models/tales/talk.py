"""Short conversations: requests for tales, questions about them, and a little small talk.

A conversation is a list of turns (role, text) with role "User" or "Assistant".
"""

import random

from . import story, world
from .grammar import finish, with_article
from .plots import PLOTS, WHO_ABOUT

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
           "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
           "eighteen", "nineteen", "twenty")
OPPOSITES = {"big": "small", "hot": "cold", "day": "night", "happy": "sad", "fast": "slow",
             "old": "young", "long": "short", "high": "low", "wet": "dry", "loud": "quiet",
             "hard": "soft", "good": "bad", "up": "down", "open": "closed", "dark": "bright",
             "strong": "weak", "full": "empty", "brave": "afraid", "first": "last",
             "left": "right", "yes": "no", "in": "out", "heavy": "light"}
COLOURS = {"the sky": "blue", "the sun": "yellow", "grass": "green", "snow": "white",
           "a lemon": "yellow", "a tomato": "red", "the night": "black", "a frog": "green",
           "milk": "white", "a carrot": "orange", "the sea": "blue", "a strawberry": "red",
           "a leaf": "green", "a crow": "black", "a swan": "white", "a fox": "red",
           "a mouse": "grey", "an elephant": "grey", "a bear": "brown", "a pig": "pink"}
SOUNDS = {"cow": "moo", "dog": "woof", "cat": "meow", "duck": "quack", "sheep": "baa",
          "pig": "oink", "owl": "hoot", "bee": "buzz", "frog": "croak", "lion": "roar",
          "mouse": "squeak", "hen": "cluck", "wolf": "howl", "crow": "caw", "bird": "tweet"}
LINES = {
    "rain": ("The rain sings softly on the roof.", "Small drops dance on the green leaves."),
    "snow": ("The snow lies white and quiet on the hill.", "Soft snow falls and the world is still."),
    "the sun": ("The sun comes up and warms the meadow.", "The golden sun smiles at the village."),
    "the moon": ("The moon shines bright over the quiet lake.", "The round moon keeps the night awake."),
    "the sea": ("The blue sea tells an old story to the beach.", "Big waves come and small waves go."),
    "the wind": ("The wind runs over the hill and plays with the kites.",
                 "A soft wind moves the long grass."),
    "a star": ("A little star looks down and makes a wish.", "One bright star shows the way home."),
    "a friend": ("A friend is a light in a dark night.", "A good friend stays when the rain comes."),
    "spring": ("In spring the flowers open their eyes.", "Spring brings green leaves and bird songs."),
    "winter": ("In winter the fire is warm and the nights are long.",
               "Winter puts a white coat on the trees."),
    "a tree": ("The old tree gives a home to every bird.", "A tall tree holds the wind in its arms."),
    "a river": ("The river runs to the sea and never gets tired.",
                "A long river carries the sky on its back."),
}
GREETINGS = {
    ("Hello!", "Hello", "Hi!", "Hi", "Good morning!", "Good day!"):
        ("Hello! Do you want to hear a story?", "Hello! I can tell you a story.",
         "Hello, my friend! What story do you want to hear?"),
    ("How are you?", "How are you today?", "Are you well?"):
        ("I am fine, thank you. Do you want to hear a story?",
         "I am very well, thank you. How are you?"),
    ("Who are you?", "What is your name?", "What are you?", "Tell me about you."):
        ("I am TinyTales, a very small model. I know little stories.",
         "My name is TinyTales. I am small, but I can tell stories."),
    ("What can you do?", "Can you help me?", "What do you know?", "Help me."):
        ("I can tell little stories. I also know colours, opposites, sounds and small sums.",
         "I can tell you a story about a fox and a lamp, or add two small numbers."),
    ("Thank you!", "Thank you", "Thanks!", "That was nice.", "What a nice story!", "Very good!"):
        ("You are welcome!", "You are welcome! Do you want to hear one more story?"),
    ("Goodbye!", "Goodbye", "Bye!", "Good night!", "See you soon."):
        ("Goodbye, my friend!", "Good night and sweet dreams!", "Goodbye! Come back soon."),
}
UNKNOWN = ("Who is the president?", "Write a program.", "What is the news today?",
           "How much is a house?", "What is the weather today?", "Explain physics to me.",
           "What time is it?", "Who won the game?", "How do I fix my car?", "Where is London?",
           "Tell me about history.", "What is the meaning of life?", "Write an email to my boss.",
           "How do computers work?", "What should I buy?", "Translate this for me.",
           "Give me money.", "What is the capital of France?", "How old is the world?",
           "Tell me the news.", "Write some code.", "Can you sing?", "What is a model?")
# Beyond the world: shapes of questions times words, so that a refusal is learnt and not a list.
UNKNOWN_SHAPES = (
    ("Where is {}?", ("London", "Paris", "Berlin", "America", "China", "Africa", "Europe", "Rome",
                      "India", "Spain", "Japan", "Canada", "the station", "the office", "my phone")),
    ("What is the capital of {}?", ("France", "Spain", "Italy", "Germany", "India", "Japan", "Canada",
                                    "England", "Poland", "China", "Brazil", "Egypt")),
    ("Who is the {}?", ("president", "doctor", "teacher", "director", "minister", "manager", "boss",
                        "leader", "captain", "champion")),
    ("Who was {}?", ("Napoleon", "Einstein", "Newton", "Shakespeare", "Mozart", "Darwin",
                     "Washington", "Columbus", "Beethoven", "Caesar")),
    ("Explain {}.", ("physics", "chemistry", "history", "politics", "the economy", "mathematics",
                     "computers", "the internet", "biology", "electricity", "gravity", "quantum theory",
                     "machine learning", "neural networks", "philosophy", "democracy")),
    ("How does {} work?", ("a computer", "the internet", "a car", "an engine", "a phone", "a television",
                           "a camera", "the market", "a battery", "a rocket", "a radio")),
    ("Write {}.", ("a program", "some code", "an email", "a report", "an essay", "a function",
                   "a speech", "an article", "a letter to my boss", "a Python script")),
    ("What is {}?", ("love", "time", "money", "science", "energy", "the universe", "democracy",
                     "art", "language", "software", "a processor", "the meaning of life")),
    ("How many {} are there?", ("people", "countries", "planets", "languages", "cities", "oceans",
                                "universities", "elements", "religions")),
    ("When did {} begin?", ("the war", "the world", "the revolution", "the century", "the concert",
                            "the meeting", "the school year")),
    ("Translate {} into {}.", ("this", "this sentence", "the word", "my letter", "the question")),
    ("How do I {}?", ("fix my car", "find a job", "learn English", "lose weight", "buy a house",
                      "get rich", "install Linux", "write software", "cook rice", "pay my bills")),
)
TONGUES = ("French", "German", "Spanish", "Italian", "Chinese", "Latin", "Polish")
SORRY = ("I am sorry, I do not know that. I only know little stories.",
         "I do not know. I am very small. But I can tell you a story.",
         "I am sorry, that is too hard for me. Do you want to hear a story?")

# How one asks: {x} is " about a fox", {s} "story" or another word for it. Put together with the ways to
# open and to end a sentence below, a few thousand forms: what is asked for matters, not how.
ASK = ("tell me a {s}{x}", "tell me a {s}{x}", "tell me a {s}{x}", "tell a {s}{x}", "write a {s}{x}",
       "write me a {s}{x}", "can you tell me a {s}{x}?", "could you tell a {s}{x}?", "I want to hear a {s}{x}",
       "I want a {s}{x}", "a {s}{x}", "give me a {s}{x}", "read me a {s}{x}", "make a {s}{x}",
       "do you know a {s}{x}?", "I would like a {s}{x}", "let me hear a {s}{x}", "tell us a {s}{x}",
       "can I hear a {s}{x}?", "do you have a {s}{x}?", "I love a {s}{x}", "show me a {s}{x}")
BARE = ("{w}", "{w}", "tell me about {w}", "write about {w}", "something about {w}", "the story of {w}",
        "do you know {w}?", "tell me of {w}", "what happened to {w}?", "how about {w}?")
BEFORE = ("", "", "", "", "", "please ", "hello! ", "hi, ", "now ", "I am sad. ", "it is late. ")
AFTER = ("", "", "", "", "", "", ", please", " now", " for my son", " to sleep well", " for the night")
WORDS = ("story", "story", "story", "story", "tale", "little story", "new story", "good story", "nice tale")
SHORT_WORDS = ("short story", "short story", "very short story", "short tale", "short little story")
ABOUT = (" about {w}", " about {w}", " about {w}", " about {w}", " with {w}", " of {w}", " on {w}")

SHORTER = ("Shorter.", "shorter", "Shorter, please.", "Make it shorter.", "Can you make it shorter?",
           "That was too long.", "Tell it again, but shorter.", "The same story, but shorter.",
           "A shorter one, please.", "Now make it short.", "Too long!", "Please tell it shorter.",
           "In a few words, please.", "Tell me a shorter story.", "Could you tell it shorter?",
           "It was too long, tell it shorter.", "A short one, please.", "Make this story shorter.", "Shorter now.",
           "Please, a shorter tale.", "Short, please.", "Now shorter.", "I want it shorter.")
PRAISE = ("", "", "", "", "Good. ", "I liked it. ", "Thank you. ", "Nice! ", "Hm. ", "Yes. ")
LONGER = ("Longer.", "longer", "Longer, please.", "Make it longer.", "Can you make it longer?",
          "That was too short.", "Tell it again, but longer.", "A longer one, please.", "Tell me more.")
ANOTHER = ("Another one about {w}.", "Another one about {w}.", "another one about {w}", "Another story about {w}.",
           "Another one about {w}, please.", "Tell me another one about {w}.", "Now one about {w}.",
           "Now tell me a story about {w}.", "And one about {w}?", "One more about {w}.", "And now about {w}.",
           "Can you tell me another one about {w}?", "Another one, with {w}.", "One about {w}, please.",
           "I want another story about {w}.", "Now {w}.", "Tell me another story about {w}, please.")


def _beast(rng: random.Random, tale) -> str:
    """The hero without the name: "a fox", "the fox", "a brave fox"."""
    way = rng.random()
    if way < 0.75:
        return with_article(tale.hero.kind)
    return f"the {tale.hero.kind}" if way < 0.85 else with_article(f"{tale.hero.adjective} {tale.hero.kind}")


def _hero(rng: random.Random, tale, named: bool) -> str:
    if not named:
        return _beast(rng, tale)
    a, name = with_article(tale.hero.kind), tale.hero.name
    return rng.choice((f"{a} named {name}", f"{a} called {name}", f"{name}, {a}", f"{name} the {tale.hero.kind}"))


def _wish(rng: random.Random, tale) -> str:
    """What of the tale its listener asks for: "a fox named Pip and a lamp"."""
    way = rng.random()
    named = bool(tale.hero.name) and rng.random() < 0.5
    thing = rng.choice((with_article(tale.thing),) * 3 + (f"the {tale.thing}",)) if tale.thing else ""
    if way < 0.18 or (not thing and way < 0.72):
        return _hero(rng, tale, named)
    if way < 0.72:
        who = _hero(rng, tale, named) if way < 0.62 or not tale.hero.name else tale.hero.name
        return rng.choice((f"{who} and {thing}", f"{who} and {thing}", f"{who} with {thing}", f"{thing} and {who}",
                           f"{who} who has {thing}", f"{who} who finds {thing}"))
    if way < 0.84 and tale.hero.name:
        return tale.hero.name
    if way < 0.94 and thing:
        return thing
    return f"{_beast(rng, tale)} and {with_article(tale.friend.kind)}"


def _sentence(rng: random.Random, text: str, after: bool = True) -> str:
    """Sets a capital and an end as people do, mostly."""
    mark = "" if text.endswith("?") else rng.choice((".", ".", ".", "", "!"))
    text = rng.choice(BEFORE) + text + (rng.choice(AFTER) if mark and after else "") + mark
    return text if rng.random() < 0.2 else text[0].upper() + text[1:]


def _ask(rng: random.Random, tale, brief: bool) -> str:
    """A request that `tale` fulfils."""
    words = rng.choice(SHORT_WORDS if brief else WORDS)
    way = rng.random()
    if way < 0.05:
        return _sentence(rng, rng.choice(ASK).format(s=words, x=""))
    if way < 0.10:
        return _sentence(rng, rng.choice(ASK).format(s=words, x=f" about {PLOTS[tale.plot].topic}"))
    if way < 0.25 and not brief:
        return _sentence(rng, rng.choice(BARE).format(w=_wish(rng, tale)), False)
    about = rng.choice(ABOUT).format(w=_wish(rng, tale))
    return _sentence(rng, rng.choice(ASK).format(s=words, x=about))


def _told(rng: random.Random) -> story.Tale:
    """A tale of any hero, with as many beasts as people and things allow."""
    return story.tell(rng, hero=rng.choice([*world.BEASTS, *world.BEASTS, *world.PEOPLE]))


def _asked(rng: random.Random):
    """A request and its answer: the turns, the tales told, and how the last one was told."""
    tale = _told(rng)
    form = "brief" if rng.random() < 0.5 else "text"
    turns = [("User", _ask(rng, tale, form == "brief")), ("Assistant", getattr(tale, form))]
    return turns, [tale], form


def _follow(rng: random.Random, turns, tales, form):
    """One more request and answer about the tale so far, or for another tale."""
    tale, way = tales[-1], rng.random()
    if way < 0.45:
        if form == "brief" and rng.random() < 0.2:
            form, ask = "text", rng.choice(LONGER)
        else:
            form, ask = "brief" if form == "text" else "tiny", rng.choice(SHORTER)
    else:
        tale = _told(rng)
        form = "brief" if rng.random() < (0.3 if form == "text" else 0.6) else "text"
        ask = rng.choice(ANOTHER).format(w=_wish(rng, tale))
        if rng.random() < 0.35:
            ask = _ask(rng, tale, form == "brief")
        if way > 0.95:
            ask = rng.choice(("Another one.", "Another one, please.", "One more!", "Tell me another one."))
        tales.append(tale)
    turns += [("User", rng.choice(PRAISE) + ask), ("Assistant", getattr(tale, form))]
    return form


def _small(rng: random.Random):
    """One short question and its answer."""
    way = rng.random()
    if way < 0.22:
        a, b = rng.randrange(11), rng.randrange(11)
        if rng.random() < 0.25 and a >= b:
            ask, left, right, result = "minus", a, b, a - b
        else:
            ask, left, right, result = "plus", a, b, a + b
        if rng.random() < 0.6:
            question = f"What is {NUMBERS[left]} {ask} {NUMBERS[right]}?"
            answer = f"{NUMBERS[left]} {ask} {NUMBERS[right]} is {NUMBERS[result]}."
        else:
            sign = "+" if ask == "plus" else "-"
            question = f"What is {left} {sign} {right}?"
            answer = f"{left} {sign} {right} is {result}."
        return question, finish(answer)
    if way < 0.37:
        a, b = rng.choice(list(OPPOSITES.items()))
        if rng.random() < 0.5:
            a, b = b, a
        return f"What is the opposite of {a}?", f"The opposite of {a} is {b}."
    if way < 0.52:
        what, colour = rng.choice(list(COLOURS.items()))
        word = rng.choice(("colour", "colour", "color"))
        return f"What {word} is {what}?", finish(f"{what} is {colour}.")
    if way < 0.64:
        beast, sound = rng.choice(list(SOUNDS.items()))
        ask = rng.choice((f"What does {with_article(beast)} say?",
                          f"What sound does {with_article(beast)} make?"))
        return ask, f"The {beast} says {sound}."
    if way < 0.76:
        what, lines = rng.choice(list(LINES.items()))
        return (rng.choice(("Write one line about {}.", "Write a line about {}.",
                            "Say something nice about {}.")).format(what), rng.choice(lines))
    if way < 0.90:
        asks, answers = rng.choice(list(GREETINGS.items()))
        return rng.choice(asks), rng.choice(answers)
    if rng.random() < 0.25:
        return rng.choice(UNKNOWN), rng.choice(SORRY)
    shape, words = rng.choice(UNKNOWN_SHAPES)
    return shape.format(rng.choice(words), rng.choice(TONGUES)), rng.choice(SORRY)


def _questions(rng: random.Random, turns, tale) -> None:
    hero = tale.hero.called
    facts = [*tale.facts, (WHO_ABOUT[0], WHO_ABOUT[1].format(H=hero))]
    for question, answer in rng.sample(facts, k=min(len(facts), rng.choice((1, 2, 3)))):
        turns += [("User", question), ("Assistant", answer)]


def converse(rng: random.Random):
    """One conversation: its turns and its tales."""
    way = rng.random()
    if way < 0.08:
        turns = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            question, answer = _small(rng)
            turns += [("User", question), ("Assistant", answer)]
        return turns, []
    turns, tales, form = _asked(rng)
    if way > 0.94 and form == "text":
        _questions(rng, turns, tales[0])
    elif way > 0.35:
        for _ in range(rng.choice((1, 1, 2))):
            form = _follow(rng, turns, tales, form)
    return turns, tales
