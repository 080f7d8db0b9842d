"""Agreement: articles, pronouns, capitals. Plots write slots, this module makes English of them.

Slots of a plot text (braces):
  {H} {F}        the hero, the friend: a name, or "the fox"
  {h} {him} {his} {himself}   pronouns of the hero;  {f} {fhim} {fhis} of the friend
  {aH} {aF}      "a little fox named Pip": introduces somebody
  {T} {aT}       "the lamp", "a golden lamp";   {P} {aP} {inP} {inaP}  a place, with its preposition
A '^' before a slot forces a capital. Sentence starts get theirs without it.
"""

import re

FORMS = {
    "he": {"h": "he", "him": "him", "his": "his", "himself": "himself"},
    "she": {"h": "she", "him": "her", "his": "her", "himself": "herself"},
}


def with_article(noun: str) -> str:
    """'owl' -> 'an owl'. Vowel letters decide; the closed vocabulary holds no exception."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def finish(text: str) -> str:
    """Squeezes blanks, obeys '^', and writes a capital at each start of a sentence or a quote."""
    text = " ".join(text.split())
    text = re.sub(r"\^(\W*)([a-z])", lambda m: m[1] + m[2].upper(), text).replace("^", "")
    # After [.!?] narration starts afresh; after ." too. After !" and ?" it may go on ("said Pip").
    text = re.sub(r'(^|[.!?] |\." )([a-z])', lambda m: m[1] + m[2].upper(), text)
    return re.sub(r'(^|[ ])"([a-z])', lambda m: m[1] + '"' + m[2].upper(), text)
