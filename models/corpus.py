"""From records of tales/ to token ids: the one place that knows the document and chat forms.

    tale:  <bos> text <eos>
    talk:  <bos> User: text <eot> Assistant: text <eot> ...
"""

import random

from bpe import Tokenizer

# Jinja. Same words as BitNet b1.58 2B-4T: "Role: text<|eot_id|>", and "Assistant: " to start.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] | capitalize }}: "
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}Assistant: {% endif %}")


def encode(tok: Tokenizer, record: dict, rng: random.Random) -> tuple:
    """Ids of one document and, for each, whether the model has to say it (it never speaks for the
    user). An answer is met in two forms at run time: generated after the prompt
    "Assistant: " (its blank is a token of its own) and, in later turns, as a part of the history
    (the blank belongs to the first word). Both are trained; the last answer has mostly the first."""
    if record["kind"] == "tale":
        ids = [tok.bos] + tok.encode(record["text"]) + [tok.eos]
        return ids, [True] * len(ids)
    ids, said = [tok.bos], [True]
    turns = record["turns"]
    for i, (role, text) in enumerate(turns):
        generated = role == "Assistant" and (i + 1 == len(turns) or rng.random() < 0.3)
        if generated and rng.random() < 0.85:
            turn, head = tok.encode("Assistant: ") + tok.encode(text), len(tok.encode("Assistant: "))
        else:
            turn, head = tok.encode(f"{role}: {text}"), len(tok.encode(f"{role}:"))
        own = role == "Assistant"
        ids += turn + [tok.eot]
        said += [False] * head + [own] * (len(turn) + 1 - head)
    return ids, said


def words(record: dict):
    """The texts of a record, as the tokenizer's trainer wants them."""
    if record["kind"] == "tale":
        yield record["text"]
    else:
        for role, text in record["turns"]:
            yield f"{role}: {text}"
            yield text
