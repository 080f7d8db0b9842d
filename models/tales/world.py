"""The closed world of the tales: who lives in it, what lies about in it, and where.

Everything here is plain data. A word that is not in this package never reaches the corpus, which is
what lets a model of a few million weights learn it well.
"""

# kind -> what it is good at. A plot asks for a skill and gets somebody who really has it.
BEASTS = {
    "fox": (), "rabbit": ("dig",), "mouse": ("small",), "bear": ("strong",), "cat": ("climb",),
    "dog": ("dig",), "hen": (), "pig": (), "cow": ("strong",), "horse": ("strong",),
    "sheep": (), "goat": ("climb",), "donkey": ("strong",), "wolf": ("strong",),
    "hedgehog": ("small",), "squirrel": ("climb", "small"), "mole": ("dig", "small"),
    "badger": ("dig",), "deer": (), "lion": ("strong",), "monkey": ("climb",),
    "elephant": ("strong",), "frog": ("swim", "small"), "duck": ("swim", "fly"),
    "turtle": ("swim",), "otter": ("swim",), "beaver": ("swim",), "swan": ("swim", "fly"),
    "owl": ("fly", "wise"), "bird": ("fly", "small"), "crow": ("fly", "wise"),
    "eagle": ("fly", "strong"), "bee": ("fly", "small"), "butterfly": ("fly", "small"),
    "snail": ("small",), "dragon": ("fly", "strong"),
}

SHE_ONLY = ("hen", "cow")

# kind -> (pronoun, skills)
PEOPLE = {
    "boy": ("he", ("climb",)), "girl": ("she", ("climb",)), "farmer": (None, ("strong",)),
    "king": ("he", ()), "queen": ("she", ()), "baker": (None, ()), "sailor": (None, ("swim",)),
    "giant": ("he", ("strong",)), "wizard": ("he", ("wise",)), "princess": ("she", ()),
    "grandmother": ("she", ("wise",)), "knight": (None, ("strong",)),
}

NAMES = {
    "he": ("Pip", "Tom", "Max", "Ben", "Sam", "Leo", "Finn", "Otto", "Milo", "Gus", "Hugo",
           "Tim", "Jack", "Bruno", "Oscar"),
    "she": ("Mia", "Lily", "Rosa", "Nell", "Anna", "Ella", "Ruby", "Daisy", "Zoe", "Poppy",
            "Lulu", "Nora", "Tess", "Bella", "Ivy"),
}

HERO_ADJECTIVES = ("little", "small", "young", "happy", "kind", "shy", "clever", "brave", "funny",
                   "curious", "quiet", "cheerful")
HELPER_ADJECTIVES = ("old", "big", "kind", "wise", "friendly", "gentle", "clever", "cheerful")

# Of any thing: an adjective that fits only some would decide what comes after it, against the request.
THING_ADJECTIVES = ("little", "small", "old", "new", "pretty")
# thing -> what one can do with it: "With the lamp, Pip could ..."
THINGS = {
    "lamp": "see in the dark",
    "ball": "play all day",
    "kite": "run with the wind",
    "drum": "play a loud song",
    "bell": "call all the friends",
    "boat": "sail on the water",
    "hat": "stay warm in the cold wind",
    "book": "read a new story every night",
    "key": "open the little door",
    "cup": "drink warm milk",
    "basket": "carry many apples",
    "blanket": "sleep warm and well",
    "scarf": "stay warm in the snow",
    "flute": "play a sweet song",
    "mirror": "see a happy face",
    "ring": "feel like a king",
    "crown": "play king and queen",
    "coat": "walk in the rain",
    "umbrella": "stay dry in the rain",
    "rope": "climb the high hill",
    "box": "keep all the little stones",
    "wagon": "carry big things",
    "sled": "slide down the hill",
    "doll": "play house",
    "spoon": "eat hot soup",
    "pot": "make good soup",
    "map": "find the way",
    "stone": "make a wish",
    "shell": "hear the sea",
    "feather": "write a letter",
    "flower": "make the house pretty",
    "apple": "make a sweet pie",
    "cake": "have a party",
    "star": "see a light every night",
    "button": "close the old coat",
    "pillow": "have sweet dreams",
    "ladder": "reach the top of the tree",
    "bucket": "carry water",
    "broom": "clean the whole house",
    "clock": "wake up in time",
    "candle": "see at night",
    "chair": "sit by the fire",
    "ribbon": "look very pretty",
    "swing": "fly high in the air",
    "brush": "paint a big picture",
    "coin": "buy fresh bread",
    "sock": "keep one foot warm",
    "guitar": "play and sing",
    "train": "play on the floor",
    "puppet": "make everyone laugh",
}

# What a plot can do with a thing depends on what the thing is.
BULKY = {"ladder", "swing", "chair", "wagon", "sled"}
LIGHT = {"kite", "hat", "ball", "scarf", "ribbon", "feather", "umbrella", "crown", "star", "sock",
         "blanket", "map"}
UNBREAKABLE = {"hat", "blanket", "scarf", "coat", "ball", "ribbon", "pillow", "feather", "flower",
               "apple", "cake", "sock", "rope", "coin", "stone", "button", "map", "book"}
LEARNABLE = {"kite", "drum", "flute", "guitar", "brush", "boat", "sled", "rope", "book", "map",
             "puppet", "feather", "swing", "pot"}
ALL = set(THINGS)
THINGS_FOR = {
    "lost": ALL - BULKY, "found": ALL - BULKY, "magic": ALL - BULKY, "sick": ALL - BULKY,
    "high": LIGHT, "water": ALL - BULKY, "learn": LEARNABLE,
    "broken": ALL - UNBREAKABLE, "lie": ALL - UNBREAKABLE,
}

# place -> (preposition, adjectives). "in the green forest", "on the sunny hill".
PLACES = {
    "forest": ("in", ("green", "dark", "big", "quiet")),
    "garden": ("in", ("green", "pretty", "little", "sunny")),
    "village": ("in", ("small", "quiet", "happy", "old")),
    "valley": ("in", ("green", "deep", "sunny", "quiet")),
    "castle": ("in", ("old", "big", "tall", "white")),
    "town": ("in", ("small", "busy", "old", "happy")),
    "meadow": ("in", ("green", "sunny", "wide", "pretty")),
    "cave": ("in", ("warm", "dark", "deep", "little")),
    "barn": ("in", ("red", "old", "big", "warm")),
    "park": ("in", ("green", "big", "sunny", "pretty")),
    "hill": ("on", ("sunny", "high", "green", "round")),
    "farm": ("on", ("big", "little", "sunny", "old")),
    "island": ("on", ("small", "sunny", "green", "quiet")),
    "mountain": ("on", ("high", "cold", "white", "tall")),
    "beach": ("on", ("sunny", "wide", "white", "quiet")),
    "river": ("by", ("wide", "blue", "long", "deep")),
    "lake": ("by", ("blue", "quiet", "deep", "big")),
    "sea": ("by", ("blue", "wide", "deep", "cold")),
    "pond": ("by", ("little", "green", "quiet", "round")),
    "bridge": ("near", ("old", "wooden", "long", "stone")),
}

HIDING_PLACES = ("under a big leaf", "behind a tree", "behind a big rock", "in the long grass",
                 "under the bed", "behind the door", "under a bush", "in a deep hole",
                 "between two stones", "under the old chair")
HIGH_PLACES = ("in a tall tree", "on the roof", "on a high rock", "on top of the wall")
WATERS = ("river", "pond", "lake", "stream")
FOODS = ("bread", "soup", "cake", "pie", "apple pie", "honey cake")
MISSING = {"bread": ("flour", "salt"), "soup": ("salt", "carrots", "water"),
           "cake": ("sugar", "milk", "eggs"), "pie": ("apples", "butter", "flour"),
           "apple pie": ("apples", "butter", "sugar"), "honey cake": ("honey", "milk", "eggs")}
FEARS = {"the dark": "It is only the sky with its eyes closed",
         "the storm": "It is only the sky playing the drum",
         "the deep water": "It will hold you if you stay calm",
         "the big waves": "They only want to play with your feet",
         "high places": "Look at the sky and not at the ground",
         "loud noises": "They are only small sounds in big coats"}
WEATHER = ("sunny", "windy", "rainy", "cold", "warm", "bright")
TIMES = ("One day", "One morning", "One sunny day", "One evening", "One windy day",
         "One cold day", "One fine morning")
MORALS = {
    "help": ("It is good to ask for help.", "A good friend is always near.",
             "Friends help each other.", "Nothing is too hard when friends help."),
    "share": ("It is more fun to share.", "Sharing makes everyone happy.",
              "A thing is twice as nice when you share it."),
    "truth": ("It is always best to tell the truth.", "The truth makes the heart light.",
              "A true word keeps a friend."),
    "brave": ("Being brave means trying even when you are afraid.",
              "A small heart can be very brave.", "You are braver than you think."),
    "patience": ("Little by little, you can do big things.", "Slow and steady is good too.",
                 "If you try every day, you will learn."),
    "kind": ("A kind act always comes back.", "It costs nothing to be kind.",
             "Being kind makes new friends."),
}
ENDINGS = ("They all lived happily ever after.", "And they were friends forever.",
           "The end.", "And that was the best day of all.",
           "From that day on, they were best friends.", "That night, everyone slept well.")
