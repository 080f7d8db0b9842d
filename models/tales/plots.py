"""Plot schemas: goal, obstacle, help, outcome. Each part lists ways to say the same thing.

Extra slots besides those of grammar.py: {dear} how one calls the friend to the face, {use} what the thing is for, {hide} {high} {water} where it
went, {food} {missing} for the kitchen, {fear} {calm} for the brave, {time} a beginning of a day.
`facts` are questions whose answers the tale contains; the talk module asks them.
"""

from typing import NamedTuple


class Plot(NamedTuple):
    topic: str            # "a story about <topic>"
    moral: str            # key into world.MORALS
    skill: str            # what the friend must be good at; "" for anybody
    has_thing: bool       # whether {T} occurs
    parts: tuple          # of tuples of alternatives, told in order
    facts: tuple          # of (question, answer)


WHO_HELPED = ("Who helped {H}?", "{F} helped {H}.")
WHERE = ("Where did {H} live?", "{H} lived {inP}.")
WHO_ABOUT = ("Who is the story about?", "The story is about {H}.")

INTRO = (
    "once upon a time, there was {aH}. {H} lived {inaP}.",
    "once upon a time, there was {aH}. {h} lived {inaP}.",
    "once upon a time, {inaP}, there lived {aH}.",
    "once upon a time, {aH} lived {inaP}.",
    "once upon a time there was {aH} who lived {inaP}.",
    "long ago, {inaP}, there lived {aH}.",
    "there once was {aH}. {H} lived {inaP}.",
)
OWNS = (
    "{H} had {aT}. {h} loved {T} very much.",
    "{H} had {aT}. With {T}, {h} could {use}.",
    "{H} loved to play with {aT}. With it, {h} could {use}.",
    "{H} had {aT} and took it everywhere.",
)

PLOTS = {
    "lost": Plot("a lost thing", "help", "", True, (
        OWNS,
        ("{time}, {T} was gone. {H} looked everywhere, but {h} could not find it.",
         "{time}, {H} could not find {T}. {h} looked and looked, but it was not there.",
         "{time}, {h} lost {T}. {h} looked all day and felt very sad."),
        ("Then {aF} came by. \"Why are you so sad?\" asked {F}. \"I lost my {t},\" said {H}.",
         "{H} sat down and cried. {aF} heard {him}. \"What is wrong?\" asked {F}. \"My {t} is gone,\" said {H}.",
         "{H} met {aF}. \"Have you seen my {t}?\" asked {H}. \"No,\" said {F}, \"but I can help you look.\""),
        ("They looked together. At last, {F} found {T} {hide}.",
         "{F} helped {H} look. They looked here and there, and then {F} saw {T} {hide}.",
         "\"Let us look together,\" said {F}. Soon they found {T} {hide}."),
        ("\"Thank you!\" said {H}. {h} was very happy.",
         "{H} hugged {F}. \"Thank you, my friend,\" {h} said.",
         "{H} jumped with joy and thanked {F}."),
    ), (WHO_HELPED, ("What did {H} lose?", "{H} lost {T}."),
        ("Where was {T}?", "{T} was {hide}."), WHERE)),

    "high": Plot("something up high", "help", "fly climb", True, (
        OWNS,
        ("{time}, a strong wind came and took {T}. Now it was {high}.",
         "{time}, {H} played outside. The wind took {T} up, up, up. It landed {high}."),
        ("{H} jumped and jumped, but {h} was too small. \"I cannot reach it,\" {h} said.",
         "{H} tried to get it, but it was too high. {h} began to cry."),
        ("{aF} saw {him}. \"Do not cry,\" said {F}. \"I can go up there.\"",
         "Just then, {aF} came along. \"I can help you,\" said {F}."),
        ("{F} went up and came back with {T}.",
         "Up went {F}, and down came {T}. It was safe."),
        ("\"You are so kind!\" said {H}. Then they played together until the sun went down.",
         "{H} smiled a big smile. \"Thank you, {dear}!\" {h} said."),
    ), (WHO_HELPED, ("Where was {T}?", "{T} was {high}."), WHERE)),

    "water": Plot("something in the water", "help", "swim", True, (
        OWNS,
        ("{time}, {H} walked by the {water}. Oh no! {T} fell into the water.",
         "{time}, {H} ran too fast near the {water}, and {T} fell in. Splash!"),
        ("{H} could not swim. {h} did not know what to do.",
         "The water was deep and cold, and {H} was afraid to go in."),
        ("\"Help! Help!\" cried {H}. {aF} heard {him} and came at once.",
         "{aF} was swimming there. \"Do not worry,\" said {F}. \"I am a good swimmer.\""),
        ("{F} swam down and found {T}. Soon {H} had it back.",
         "{F} jumped into the water and brought {T} back. It was wet, but it was safe."),
        ("\"Thank you!\" said {H}. {h} gave {F} a big hug.",
         "{H} was so glad. They sat in the sun until {T} was dry."),
    ), (WHO_HELPED, ("Where did {T} fall?", "{T} fell into the {water}."), WHERE)),

    "broken": Plot("something broken", "help", "", True, (
        OWNS,
        ("{time}, {H} dropped {T} and it broke.",
         "{time}, {H} fell over a stone. Crack! {T} was broken."),
        ("{H} looked at the pieces and felt sad. \"I cannot fix it,\" {h} said.",
         "{H} tried to fix it, but the pieces did not stay together. {h} began to cry."),
        ("{aF} saw this. \"I have some glue,\" said {F}. \"Let us fix it.\"",
         "{h} took it to {aF}. \"Can you fix my {t}?\" asked {H}. \"We can fix it together,\" said {F}."),
        ("They worked slowly, piece by piece. In the evening, {T} was whole again.",
         "{H} held the pieces and {F} used the glue. Soon {T} was as good as new."),
        ("\"It looks even better now,\" said {H}. {F} laughed.",
         "{H} thanked {F} and gave {fhim} some bread with honey."),
    ), (WHO_HELPED, ("What broke?", "{T} broke."), WHERE)),

    "share": Plot("sharing", "share", "", True, (
        ("{H} had {aT}. With {T}, {h} could {use}.", "{H} got {aT}. {h} was very proud of it."),
        ("{time}, {aF} came to play. \"May I try your {t}?\" asked {F}.",
         "{time}, {aF} saw {T}. \"It is so nice,\" said {F}. \"Can we use it together?\""),
        ("\"No,\" said {H}. \"It is mine!\" ^{F} went away and was sad.",
         "\"No! It is only for me,\" said {H}. So {F} walked home with {fhis} head down."),
        ("{H} played alone all day, but it was no fun. {h} began to feel lonely.",
         "But soon {H} was bored. It was not nice to be alone, even with {T}."),
        ("So {h} went to {F}. \"I am sorry,\" said {H}. \"Let us share it.\"",
         "{H} ran to the house of {F}. \"Please come and play,\" {h} said. \"We can share my {t}.\""),
        ("They played together and laughed until the evening.",
         "{F} was happy again, and they had a lot of fun."),
    ), (("Who wanted to use {T}?", "{F} wanted to use {T}."),
        ("What did {H} learn?", "{H} learned to share."), WHERE)),

    "way": Plot("finding the way home", "help", "", False, (
        ("{time}, {H} went for a long walk. {h} looked at the flowers and the trees.",
         "{time}, {H} wanted to see the world. {h} walked and walked."),
        ("When it got dark, {h} did not know the way home. \"I am lost,\" {h} said.",
         "Then {h} looked around. Everything looked strange. {H} was lost."),
        ("{h} sat under a tree and was afraid. Then a voice said, \"Who is there?\" It was {aF}.",
         "{H} began to cry. {aF} heard {him} and came closer. \"Why do you cry?\" asked {F}."),
        ("\"I cannot find my home,\" said {H}. \"I know the way,\" said {F}. \"Come with me.\"",
         "\"I want to go home,\" said {H}. \"Follow me,\" said {F}. \"I will show you the way.\""),
        ("They walked together under the stars. Soon {H} saw {his} home.",
         "{F} went first and {H} went after {fhim}. At last, they saw a light. It was the home of {H}."),
        ("\"Thank you, {dear},\" said {H}. \"You are a good friend.\"",
         "{H} gave {F} warm soup, and they talked by the fire."),
    ), (WHO_HELPED, ("What happened to {H}?", "{H} got lost, and {F} showed the way home."), WHERE)),

    "gift": Plot("a gift", "kind", "", True, (
        ("{H} had a good friend. It was {aF}.", "{H} had a friend, {aF}. They played every day."),
        ("{time}, it was the birthday of {F}. {H} wanted to give {fhim} {aT}, but {h} had no money.",
         "Soon it was the birthday of {F}. \"I want to give {fhim} {aT},\" thought {H}, but {h} did not have one."),
        ("So {H} worked for the baker all week. {h} carried wood and cleaned the floor.",
         "So {H} went to the old farmer and worked in the field for five days."),
        ("At the end, {h} got {T}. {h} put it in a box with a ribbon.",
         "For this work, {h} got {T}. {h} was tired but happy."),
        ("\"Happy birthday!\" said {H}. {F} opened the box and smiled. \"Now I can {use}!\"",
         "{H} gave {T} to {F}. \"It is the best gift of all,\" said {F}. \"Now I can {use}!\""),
    ), (("What did {H} give to {F}?", "{H} gave {F} {aT}."),
        ("Whose birthday was it?", "It was the birthday of {F}."), WHERE)),

    "afraid": Plot("being brave", "brave", "", False, (
        ("{H} was afraid of {fear}.", "There was one thing {h} did not like. {H} was afraid of {fear}."),
        ("{time}, {his} friends wanted to play outside, but {H} stayed at home.",
         "{H} hid under a blanket and did not come out."),
        ("{aF} came to see {him}. \"Why do you hide?\" asked {F}. \"I am afraid of {fear},\" said {H}.",
         "\"Come out,\" said {aF}. \"I cannot,\" said {H}. \"I am afraid of {fear}.\""),
        ("\"Do not be afraid,\" said {F}. \"{calm}.\" ^{F} took {his} hand.",
         "{F} sat down next to {him}. \"I was afraid too,\" said {F}. \"{calm}.\""),
        ("{H} took a deep breath. {h} made one step, then one more. It was not so bad!",
         "Together they went out. {H} looked, and listened, and smiled. \"I can do it!\" {h} said."),
        ("From that day on, {H} was not afraid of {fear}.",
         "Now {H} was brave, and {F} was proud of {him}."),
    ), (("What was {H} afraid of?", "{H} was afraid of {fear}."), WHO_HELPED, WHERE)),

    "found": Plot("telling the truth", "truth", "", True, (
        ("{H} had no friends and was lonely.", "{H} lived alone and often felt lonely."),
        ("{time}, {h} found {aT} {hide}. \"How nice!\" {h} said. \"With this, I can {use}.\"",
         "{time}, {H} saw {aT} {hide}. \"I want to keep it,\" {h} thought."),
        ("Then {aF} came by and cried. \"I lost my {t},\" said {F}. \"Have you seen it?\"",
         "But soon {h} heard somebody cry. It was {aF}. \"Where is my {t}?\" cried {F}."),
        ("{H} wanted to keep {T}. But {h} said, \"Yes, I found it. Here it is.\"",
         "{H} thought for a long time. Then {h} told the truth. \"I found it. It is yours,\" {h} said."),
        ("\"Thank you for telling the truth,\" said {F}. \"Do you want to play with me?\"",
         "{F} was so happy. \"You are honest,\" {f} said. \"Will you be my friend?\""),
        ("Now {H} was not lonely anymore.", "\"Yes!\" said {H}. And they played together every day."),
    ), (("What did {H} find?", "{H} found {aT}."), ("Who lost {T}?", "{F} lost {T}."), WHERE)),

    "bake": Plot("cooking together", "help", "", False, (
        ("{H} loved to cook. {time}, {h} wanted to make {food}.",
         "{time}, {H} was hungry. \"I will make {food},\" {h} said."),
        ("{h} looked in the kitchen, but there was no {missing}.",
         "But, oh no, {h} had no {missing}."),
        ("So {H} went to {aF}. \"Do you have some {missing}?\" {h} asked.",
         "{H} asked {aF}, \"Can you give me some {missing}, please?\""),
        ("\"Yes,\" said {F}. \"Take it, and let me help you.\"",
         "\"I have a lot of {missing},\" said {F}. \"Let us make {food} together.\""),
        ("They worked in the warm kitchen. Soon there was a sweet smell in the house.",
         "They mixed everything and waited by the fire. It smelled so good!"),
        ("The {food} was ready. They ate it all, and it was very good.",
         "They sat at the table and ate the {food}. \"This is the best {food} of all!\" said {F}."),
    ), (("What did {H} make?", "{H} made {food}."), WHO_HELPED,
        ("What did {H} need?", "{H} needed {missing}."), WHERE)),

    "race": Plot("a race", "patience", "", True, (
        ("{H} was slow, and the others laughed at {him}.", "{H} wanted to run fast, but {h} was slow."),
        ("{time}, there was a big race. The prize was {aT}.",
         "{time}, the king said, \"There will be a race, and the winner will get {aT}.\""),
        ("\"I will never win,\" said {H}. But {aF} said, \"Try every day. I will help you.\"",
         "{H} was sad, but {aF} came to {him}. \"I will teach you,\" said {F}."),
        ("Every morning, {H} ran up the hill and down again. {F} ran with {him}.",
         "They ran in the sun and in the rain. Each day {H} was a little faster."),
        ("On the day of the race, {H} ran like the wind. {h} came first and won {T}!",
         "Then the race began. {H} ran and ran and did not stop. {h} won!"),
        ("\"Now you can {use},\" said {F}. {H} laughed.",
         "The king gave {him} {T}. {H} shared the joy with {F}."),
    ), (("What was the prize?", "The prize was {aT}."), ("Who won the race?", "{H} won the race."),
        WHO_HELPED, WHERE)),

    "treasure": Plot("a treasure", "share", "dig strong", True, (
        ("{time}, {H} found an old map. There was a red cross on it.",
         "{time}, the wind brought a piece of paper to {H}. It was a map!"),
        ("\"A treasure!\" said {H}. {h} followed the map to a big rock, but the ground was too hard.",
         "{H} went over the hill and to the old tree. {h} tried to dig, but {h} was too weak."),
        ("{h} called {aF}. \"Will you help me?\" asked {H}. \"Of course,\" said {F}.",
         "{aF} saw {him} and said, \"I can dig. Let me help you.\""),
        ("They worked together, and at last they found a box.",
         "{F} worked hard, and soon there was a deep hole. In the hole was a box."),
        ("They opened it. Inside was {aT}! \"Now we can {use},\" said {H}.",
         "In the box was {aT}. \"It is for both of us,\" said {H}."),
        ("They took {T} home and used it together.", "{F} was very happy, and so was {H}."),
    ), (("What was in the box?", "There was {aT} in the box."), WHO_HELPED, WHERE)),

    "sick": Plot("a sick friend", "kind", "", True, (
        ("{H} had a friend, {aF}. {time}, {F} did not come to play.",
         "{H} often played with {aF}. {time}, {h} waited, but {F} did not come."),
        ("{H} went to see {fhim}. {F} was in bed and was sick.",
         "\"Where is {F}?\" thought {H}. {h} went to the house and found {fhim} sick in bed."),
        ("\"I will help you,\" said {H}. {h} made hot soup and told a funny story.",
         "\"Do not be sad,\" said {H}. {h} brought tea with honey and sat by the bed."),
        ("Then {h} gave {fhim} {aT}. \"With this, you can {use},\" {h} said.",
         "{h} also brought {aT}. {F} looked at it and smiled."),
        ("The next day, {F} felt better. \"You are a good friend,\" {f} said.",
         "After three days, {F} was well again. \"Thank you for {T},\" {f} said."),
        ("Then they went out to play.", "They danced in the sun and sang a song."),
    ), (("Who was sick?", "{F} was sick."), ("What did {H} bring?", "{H} brought {aT}."), WHERE)),

    "lie": Plot("saying sorry", "truth", "", True, (
        ("{H} had a friend, {aF}. {F} had {aT} and loved it.",
         "{H} often played with {aF}. {F} had {aT}."),
        ("{time}, {H} played with {T} and broke it. {h} was afraid and hid it.",
         "{time}, {H} dropped {T}, and it broke. {h} put it {hide}."),
        ("\"Where is my {t}?\" asked {F}. \"I do not know,\" said {H}.",
         "\"Have you seen my {t}?\" asked {F}. \"No,\" said {H}."),
        ("But that night, {H} could not sleep. {his} heart felt heavy.",
         "{F} was sad, and {H} felt bad. {h} could not eat and could not play."),
        ("In the morning, {h} went to {F}. \"I broke it,\" said {H}. \"I am sorry.\"",
         "So {h} told the truth. \"I broke your {t},\" said {H}. \"I am very sorry.\""),
        ("\"Thank you for telling me,\" said {F}. \"Let us fix it.\" And they did.",
         "{F} was quiet for a moment. Then {f} smiled. \"I forgive you,\" {f} said."),
    ), (("What did {H} break?", "{H} broke {T}."), ("Who was sad?", "{F} was sad."), WHERE)),

    "magic": Plot("a wish", "kind", "", True, (
        ("{time}, {H} found {aT} {hide}. It began to talk!",
         "{time}, {h} saw {aT} {hide}. \"Hello,\" said {T}. \"I am magic.\""),
        ("\"I can give you one wish,\" said {T}. {H} thought and thought.",
         "\"You have one wish,\" said {T}. \"Think well.\""),
        ("{H} wanted a big house and a lot of cake. But then {h} saw {aF}, who was cold and hungry.",
         "Just then, {aF} came by. {F} had no home and was sad."),
        ("\"I wish for a warm home for {F},\" said {H}.",
         "\"I wish that {F} will be happy,\" said {H}."),
        ("There was a bright light. Now {F} had a warm little house with a red door.",
         "The magic began. Suddenly there was a house with a warm fire and a lot of food."),
        ("\"Thank you!\" said {F}. \"Come and live with me.\"",
         "\"You have a kind heart,\" said {T}. {F} hugged {H}."),
    ), (("What did {H} find?", "{H} found {aT}."), ("Who got a home?", "{F} got a home."), WHERE)),

    "trap": Plot("helping a stranger", "kind", "", True, (
        ("{time}, {H} heard a voice. \"Help! Help!\" It was {aF} in a deep hole.",
         "{time}, {h} went for a walk and saw {aF}. {F} was in a hole and could not get out."),
        ("\"Do not worry,\" said {H}. \"I will help you.\" {h} tried to pull, but it was too hard.",
         "\"Wait,\" said {H}. \"I will get you out.\" But {h} could not reach {fhim}."),
        ("{H} thought hard. Then {h} had an idea. {h} ran home and got a long rope.",
         "\"What can I do?\" thought {H}. {h} looked around and found a long branch."),
        ("{H} pulled and pulled. At last, {F} was free!",
         "{F} held on, and {H} pulled. One, two, three, and {F} was out!"),
        ("\"Thank you,\" said {F}. \"You helped me. This is for you.\" It was {aT}.",
         "{F} was very thankful and gave {H} {aT}. \"With this, you can {use},\" said {F}."),
        ("{H} took {T} home and was happy.", "From then on, {H} and {F} met every day."),
    ), (("Who was in the hole?", "{F} was in the hole."),
        ("What did {F} give to {H}?", "{F} gave {H} {aT}."), WHERE)),

    "learn": Plot("learning something new", "patience", "", True, (
        ("{H} had {aT}, but {h} did not know how to use it.",
         "{H} got {aT}. \"What can I do with it?\" {h} asked."),
        ("{h} tried again and again, but it did not work. \"It is too hard,\" {h} said.",
         "{time}, {H} tried it alone. Everything went wrong, and the others laughed."),
        ("{h} went to {aF}. \"Can you teach me?\" asked {H}.",
         "{aF} saw this. \"Do not give up,\" said {F}. \"I will teach you.\""),
        ("\"Yes,\" said {F}. \"But you must try every day.\" So {H} tried every day.",
         "{F} showed {him} how to do it, slowly, step by step."),
        ("After one week, {H} could {use}.", "After many days, it worked. Now {H} could {use}!"),
        ("\"Well done!\" said {F}. {H} was very proud.", "Everyone was surprised, and {H} thanked {F}."),
    ), (("Who taught {H}?", "{F} taught {H}."), ("What did {H} have?", "{H} had {aT}."), WHERE)),

    "storm": Plot("a new home", "help", "strong", False, (
        ("{H} had a little house made of wood.", "{H} built a small house and was proud of it."),
        ("{time}, a big storm came. The wind blew and blew, and the house fell down.",
         "One night, there was a storm. In the morning, the house was gone."),
        ("\"Now I have no home,\" cried {H}. {h} was cold and wet.",
         "{H} sat in the rain and did not know what to do."),
        ("{aF} came by. \"Stay with me tonight,\" said {F}. \"Tomorrow we will build a new house.\"",
         "\"Come in,\" said {aF}. \"You can sleep here, and I will help you build.\""),
        ("They carried stones and wood all day. {F} was very strong.",
         "The next day they began to work. {F} carried the stones, and {H} made the roof."),
        ("Soon there was a new house. It was bigger than the old one.",
         "In the evening, the new house was ready. They had tea and cake inside."),
    ), (WHO_HELPED, ("What happened to the house?", "A storm came, and the house fell down."), WHERE)),
}

# The same plots in a breath, for who wants it short. One way to say each, hero first.
BRIEF = {
    "lost": "{time}, {H} lost {aT}. {aF} found it {hide}. {H} was very happy.",
    "high": "{H} had {aT}. The wind took it, and it was {high}. {aF} came and brought it back.",
    "water": "{H} had {aT}, but it fell into the {water}. {aF} swam down and brought it back.",
    "broken": "{time}, {H} broke {aT}. {aF} had some glue, and soon it was as good as new.",
    "share": "{H} had {aT}. It was no fun to play alone. So {h} went to {aF}, and they played together.",
    "way": "{time}, {H} was lost. {aF} knew the way and took {him} home.",
    "gift": "{H} wanted to give {aT} to {aF}. {h} worked all week and got it. {F} was very happy.",
    "afraid": "{H} was afraid of {fear}. \"{calm},\" said {aF}. Now {H} was brave.",
    "found": "{time}, {H} found {aT} {hide}. {h} gave it back to {aF}, and they played together.",
    "bake": "{H} wanted to make {food}, but there was no {missing}. {aF} had some. They ate it all.",
    "race": "{H} was slow, but {aF} ran with {him} every day. Then {H} won a race and got {aT}.",
    "treasure": "{H} found an old map. {aF} helped {him} dig. In a box they found {aT}!",
    "sick": "{aF} was sick in bed. {H} brought {fhim} {aT}. Soon {F} was well again.",
    "lie": "{H} broke {aT} of a friend, {aF}. {h} told the truth, and they fixed it together.",
    "magic": "{time}, {H} found {aT}. It was magic and gave {him} one wish. {H} gave it to {aF}.",
    "trap": "{aF} was in a deep hole. {H} pulled and pulled. Then {F} was free and gave {him} {aT}.",
    "learn": "{H} had {aT}. {aF} showed {him} how to use it. Soon {H} could {use}.",
    "storm": "{time}, a storm took the house of {H}. {aF} helped {him} build a new one.",
}
# Shorter than that.
TINY = {True: "{H} had {aT}, and {aF} was {his} friend.", False: "{aF} was {his} best friend."}
