"""JSON schemas as the core follows them, judged by jsonschema and llguidance on random schemas.

  judge_test.py --walker PROGRAM [--schemas N] [--texts N] [--seed N]

Three things are shown. Each text that is written at random by a schema is valid by jsonschema, formats included. Of
values that differ a little from these, the core takes none that jsonschema rejects, and all that it accepts, where they
are in the form that bitnet writes. And behind each beginning of a text, the tokens that may come are those of
llguidance, of schemas whose form is the same.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

try:
    import jsonschema
    import llguidance
except ImportError as error:
    print(f"skip: {error}; scripts/setup installs tests/reference/requirements.txt into build/venv")
    sys.exit(77)

from random_schemas import Maker, near, written

CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")  # written only where nothing else may come


def pattern_of_ecma(validator, pattern, instance, schema):
    """As ECMA-262 has it: $ is the end, and classes are of ASCII."""
    if isinstance(instance, str) and not re.search(pattern.replace("$", r"\Z"), instance, re.ASCII):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def exact_multiple(validator, step, instance, schema):
    """Without rounding, whatever the exponent."""
    if isinstance(instance, (int, Decimal)) and not isinstance(instance, bool):
        if abs(Decimal(instance).adjusted()) > 5000:
            raise ArithmeticError("an exponent that would take too long")
        if Fraction(instance) % Fraction(step) != 0:
            yield jsonschema.ValidationError(f"{instance} is no multiple of {step}")


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator,
                                         {"pattern": pattern_of_ecma, "multipleOf": exact_multiple})


def exactly(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def is_valid(schema: Any, value: Any) -> bool:
    exact = exactly(json.dumps(schema))
    return Validator(exact, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).is_valid(value)


def all_texts(value: Any) -> Any:
    """The names and strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for one in itertools.chain(value, value.values() if isinstance(value, dict) else ()):
            yield from all_texts(one)


class Walker:
    def __init__(self, program: str, vocabulary: str | None = None):
        self.process = subprocess.Popen([program] + ([vocabulary] if vocabulary else []), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, encoding="utf-8")

    def ask(self, schema: Any, **more: Any) -> dict[str, Any]:
        self.process.stdin.write(json.dumps({"schema": json.dumps(schema), **more}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the walker ended at {json.dumps(schema)}")
        return json.loads(line)


def orders(value: Any) -> Any:
    """The same value with its members in other orders; those of the outermost object only."""
    if isinstance(value, dict) and len(value) <= 4:
        for order in itertools.permutations(value.items()):
            yield dict(order)
    else:
        yield value


def judge_texts(walker: Walker, schema: Any, seed: int, n: int, count: Counter) -> list[str]:
    answer = walker.ask(schema, sample=n, seed=seed)
    if "error" in answer:
        count["rejected: " + re.sub(r".*?: ", "", answer["error"], count=1)[:60]] += 1
        return []
    wrong = []
    values = []
    for text in answer.get("sample", []):
        if text is None:
            count["too long"] += 1
            continue
        count["texts"] += 1
        try:
            value = exactly(text)
            valid = is_valid(schema, value)
        except ArithmeticError:  # an exponent that Python's decimal numbers do not have
            count["too large an exponent"] += 1
            continue
        values.append(value)
        if not valid:
            wrong.append(f"written, and not valid: {text}")
    rng = random.Random(seed)
    others = [near(v, rng) for v in values for _ in range(3)]
    if not others:
        return wrong
    taken = walker.ask(schema, accept=[written(v) for v in others])["accept"]
    for value, is_taken in zip(others, taken):
        try:
            valid = is_valid(schema, exactly(written(value)))
        except ArithmeticError:
            continue
        count["valid" if valid else "not valid"] += 1
        if is_taken and not valid:
            wrong.append(f"taken, and not valid: {written(value)}")
        if valid and not is_taken and not narrower(schema, value):
            if not any(walker.ask(schema, accept=[written(v) for v in orders(value)])["accept"]):
                wrong.append(f"valid, and not taken: {written(value)}")
    return wrong


def narrower(schema: Any, value: Any) -> bool:
    """Whether the form that bitnet writes leaves this out: see docs/reference/json-schema.md."""
    text = json.dumps(schema)
    return '"format"' in text or any(CONTROL.search(t) for t in all_texts(value)) or nested(value)


def nested(value: Any) -> bool:
    """Members of inner objects may be in another order than the one in which they are written."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, dict) and len(one) > 1 or nested(one) for one in inner)


# Of the same form in both: no free strings and no control characters, which llguidance also writes as \\u000a.
MASKED = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y\\", 'q"']}},
     "required": ["a"], "additionalProperties": False},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    {"type": "integer", "minimum": 17, "maximum": 1234},
    {"type": "integer", "minimum": -30, "maximum": -7},
    {"type": "number"},
    {"type": "array", "prefixItems": [{"type": "null"}, {"const": "no \\ tab"}], "items": False, "minItems": 2},
    {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"],
                                  "additionalProperties": False}]},
    {"type": "object", "properties": {n: {"type": "boolean"} for n in "abcd"}, "additionalProperties": False},
    {"type": "string", "pattern": "^[a-z]{2,5}-[0-9]+$"},
    {"type": "string", "pattern": "^(foo|bar|[x-z]{3})$"},
    {"enum": ["red", "green", 12, None, True, {"a": [1, 2]}]},
    {"type": "integer", "exclusiveMinimum": 99, "maximum": 100000},
    {"type": "array", "items": {"type": "array", "items": {"const": 7}, "maxItems": 2}},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
    {"type": ["null", "boolean", "integer"]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
               {"properties": {"b": {"type": "boolean"}}}],
     "additionalProperties": False, "properties": {"a": True, "b": True}},
    {"$defs": {"t": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}},
                     "required": ["n"], "additionalProperties": False}}, "$ref": "#/$defs/t"},
]


class Vocabulary:
    """All bytes, and longer tokens as they stand in JSON; for llguidance."""

    def __init__(self) -> None:
        more = ['":', '": ', '", "', '"}', '"]', "{}", "[]", '{"a', '{"', "[1", "1,", ", ", "true", "fal", "null", "nul",
                "12", "123", "-1", "0.", "e+", "ab", "foo", "bar", "-7", "red",
                "}}", "]}", '"b":', "\\n"]
        self.tokens = [bytes([i]) for i in range(256)] + [m.encode() for m in more] + [b"<end>"]
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text: Any) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)

    def save(self, file: str) -> None:
        with open(file, "w", encoding="utf-8") as to:
            json.dump([t.decode("latin-1") for t in self.tokens[:-1]], to)


def judge_masks(program: str, n: int, seed: int, count: Counter) -> list[str]:
    import os
    import tempfile
    words = Vocabulary()
    tokens = llguidance.LLTokenizer(llguidance.TokenizerWrapper(words))
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "vocabulary.json")
        words.save(file)
        walker = Walker(program, file)
        for number, schema in enumerate(MASKED):
            grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides={
                "whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"})
            for text in walker.ask(schema, sample=n, seed=seed + number)["sample"]:
                encoded = text.encode()
                begins = [encoded[:i] for i in range(len(encoded) + 1)]
                ours = walker.ask(schema, masks=[b.decode("latin-1") for b in begins])["masks"]
                matcher = llguidance.LLMatcher(tokens, grammar)
                for begin, mask, byte in itertools.zip_longest(begins, ours, encoded):
                    theirs = [i for i, v in enumerate(matcher.compute_logit_bias()) if v and i != words.eos_token_id]
                    # Where the text is the same for all, llguidance gives the one token that its vocabulary
                    # would have for it.
                    fixed = matcher.compute_ff_bytes()
                    count["masks, of a fixed text" if fixed else "masks"] += 1
                    if fixed:
                        same = set(theirs) <= set(mask) and all(
                            fixed.startswith(words.tokens[i][:len(fixed)]) for i in mask)
                    else:
                        same = theirs == mask
                    if not same:
                        differ = [words.tokens[i] for i in set(theirs) ^ set(mask)]
                        wrong.append(f"{json.dumps(schema)} behind {begin!r}: only one has {differ[:5]}")
                        break
                    if byte is not None:
                        matcher.consume_token(byte)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walker", required=True)
    parser.add_argument("--schemas", type=int, default=250)
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    count: Counter = Counter()
    wrong = 0
    walker = Walker(given.walker)
    for seed in range(given.seed, given.seed + given.schemas):
        schema = Maker(seed).root()
        for what in judge_texts(walker, schema, seed, given.texts, count):
            wrong += 1
            print(f"seed {seed}: {what[:300]}\n  by {json.dumps(schema)[:600]}")
    for what in judge_masks(given.walker, 3, given.seed, count):
        wrong += 1
        print("masks:", what)
    for what, n in count.most_common():
        print(f"{n:7} {what}")
    if count["texts"] < given.schemas or count["masks"] < 100:
        print("too little was judged")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
