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

ASK = ("Tell me a story{x}.", "Tell me a story{x}.", "Please tell me a story{x}.",
       "Write a story{x}.", "Write a short story{x}.", "Can you tell me a story{x}?",
       "I want to hear a story{x}.", "Tell a story{x}.", "Tell me a short story{x}, please.",
       "A story{x}, please.", "tell me a story{x}")
ABOUT_WHOM = ("{A} named {N}", "{A} called {N}", "{N}, {A}")


def _tale(rng: random.Random):
    """A request and a tale that obeys it."""
    way = rng.random()
    hero = rng.choice([*world.BEASTS, *world.BEASTS, *world.PEOPLE])
    thing = rng.choice(list(world.THINGS))
    if way < 0.50:
        tale = story.tell(rng, hero=hero, thing=thing)
        wish = f" about {with_article(hero)} and {with_article(thing)}"
        if rng.random() < 0.1:
            wish = f" with {with_article(hero)} and {with_article(thing)}"
    elif way < 0.65:
        tale = story.tell(rng, hero=hero)
        wish = f" about {with_article(hero)}"
    elif way < 0.75:
        name = rng.choice(world.NAMES["he"] + world.NAMES["she"])
        tale = story.tell(rng, hero=hero, name=name)
        if tale.hero.name != name:        # a king is no Lily
            return _tale(rng)
        wish = " about " + rng.choice(ABOUT_WHOM).format(A=with_article(hero), N=name)
    elif way < 0.82:
        tale = story.tell(rng, thing=thing)
        wish = f" about {with_article(thing)}"
    elif way < 0.92:
        plot = rng.choice(list(PLOTS))
        tale = story.tell(rng, plot=plot)
        wish = f" about {PLOTS[plot].topic}"
    else:
        tale = story.tell(rng)
        wish = ""
    return rng.choice(ASK).format(x=wish), tale


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


def converse(rng: random.Random):
    """One conversation: its turns, and the (hero, thing) pair of its tale or None."""
    way = rng.random()
    if way < 0.30:
        turns = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            question, answer = _small(rng)
            turns += [("User", question), ("Assistant", answer)]
        return turns, None
    request, tale = _tale(rng)
    turns = [("User", request), ("Assistant", tale.text)]
    if way > 0.55:
        facts = list(tale.facts)
        hero = tale.hero.called
        facts.append((WHO_ABOUT[0], WHO_ABOUT[1].format(H=hero)))
        for question, answer in rng.sample(facts, k=min(len(facts), rng.choice((1, 2, 3)))):
            turns += [("User", question), ("Assistant", answer)]
    return turns, (tale.hero.kind, tale.thing)
