"""Random schemas of all supported keywords, and values near those that are valid by them."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

NAMES = ["a", "b", "name", "x-y", 'q"q', "é", "type", "zz top"]
PATTERNS = ["^[a-z]+$", "^[A-Z]{2}-[0-9]{1,4}$", "ab", "^a|b$", "[0-9]{2}", "^(foo|bar)*$", "^.{2,4}$", "^x?y{0,3}z+$",
            "é", "^[^a-c]$", "\\\\", "^\"q\"$", "^$", "(a|b)c{2}", "^\\w+\\.\\d $"]
FORMATS = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"]
TEXTS = ["", "a", "ab", "abc", "foo", "12", "AB-7", "é😀", 'a"b', "back\\slash", "line\nend", "\u0001", "x" * 9, "/"]
LITERALS: list[Any] = [None, True, False, 0, 1, -7, 12, 1.5, "a", "foo", "é", 'a"b\\', "\u0001", [], [1, "a"], {},
                       {"a": 1}, {"a": [True], "b": None}]
INTEGERS = [-1000, -120, -15, -9, -1, 0, 1, 7, 10, 99, 100, 12345, 2**40]
NUMBERS = [-99.5, -10, -1.25, -0.01, 0, 0.001, 0.5, 1, 3.75, 42, 1000.125]


class Maker:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.definitions: dict[str, Any] = {}

    def schema(self, depth: int = 0) -> Any:
        pick = self.random.random()
        if depth < 3 and pick < 0.28:
            return self.combined(depth)
        kinds = ["integer", "number", "string", "enum", "const", "simple"]
        if depth < 3:
            kinds += ["object", "object", "object", "array", "array"]
        return getattr(self, "make_" + self.random.choice(kinds))(depth)

    def root(self) -> Any:
        out = self.schema()
        if self.definitions and isinstance(out, dict):
            out["$defs"] = self.definitions
        return out

    def chance(self, p: float = 0.5) -> bool:
        return self.random.random() < p

    def make_simple(self, _: int) -> Any:
        return self.random.choice([{"type": "null"}, {"type": "boolean"}, {"type": ["null", "integer"]}, {}, True,
                                   {"type": ["string", "boolean"], "maxLength": 4}])

    def make_const(self, _: int) -> Any:
        return {"const": self.random.choice(LITERALS)}

    def make_enum(self, _: int) -> Any:
        out: dict[str, Any] = {"enum": self.random.sample(LITERALS, self.random.randint(1, 5))}
        if self.chance(0.2):
            out["type"] = ["string", "null", "integer", "object"]
        return out

    def number_bounds(self, numbers: list[Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        low, high = sorted(self.random.sample(numbers, 2))
        if self.chance():
            out[self.random.choice(["minimum", "exclusiveMinimum"])] = low
        if self.chance():
            out[self.random.choice(["maximum", "exclusiveMaximum"])] = high
        return out

    def make_integer(self, _: int) -> Any:
        out = {"type": "integer", **self.number_bounds(INTEGERS)}
        if self.chance(0.25):
            out["multipleOf"] = self.random.choice([1, 3, 5, 7, 10, 100])
        return out

    def make_number(self, _: int) -> Any:
        out = {"type": "number", **self.number_bounds(NUMBERS)}
        if self.chance(0.2):
            out["multipleOf"] = self.random.choice([0.1, 0.01, 1, 5])
        return out

    def make_string(self, _: int) -> Any:
        out: dict[str, Any] = {"type": "string"}
        kind = self.random.choice(["length", "pattern", "format", "both", "free"])
        if kind in ("pattern", "both"):
            out["pattern"] = self.random.choice(PATTERNS)
        if kind == "format":
            out["format"] = self.random.choice(FORMATS)
        if kind in ("length", "both"):
            least = self.random.randint(0, 4)
            out["minLength"] = least
            out["maxLength"] = least + self.random.randint(0, 8)
        return out

    def make_array(self, depth: int) -> Any:
        out: dict[str, Any] = {"type": "array"}
        if self.chance(0.3):
            out["prefixItems"] = [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]
        if self.chance(0.7):
            out["items"] = self.random.choice([False, self.schema(depth + 1), self.schema(depth + 1)])
        if self.chance(0.4):
            out["minItems"] = self.random.randint(0, 3)
        if self.chance(0.6):
            out["maxItems"] = self.random.randint(out.get("minItems", 0), 4)
        return out

    def make_object(self, depth: int) -> Any:
        names = self.random.sample(NAMES, self.random.randint(0, 4))
        out: dict[str, Any] = {"type": "object", "properties": {n: self.schema(depth + 1) for n in names}}
        if names and self.chance(0.7):
            out["required"] = self.random.sample(names, self.random.randint(0, len(names)))
        if self.chance(0.7):
            out["additionalProperties"] = self.random.choice([False, False, {"type": "integer"}, True])
        if self.chance(0.2):
            out["patternProperties"] = {self.random.choice(["^x", "a", "[0-9]$"]): self.schema(depth + 1)}
        if self.chance(0.15):
            out["propertyNames"] = {"maxLength": 4}
        if self.chance(0.2):
            out["maxProperties"] = self.random.randint(max(1, len(out.get("required", []))), 4)
        if self.chance(0.2):
            out["minProperties"] = 1
        return out

    def combined(self, depth: int) -> Any:
        kind = self.random.choice(["anyOf", "oneOf", "allOf", "$ref", "anyOf", "beside"])
        if kind == "$ref":
            name = f"d{len(self.definitions)}" if self.chance(0.7) or not self.definitions else \
                self.random.choice(list(self.definitions))
            if name not in self.definitions:
                self.definitions[name] = {}  # may be referred to from itself, below a member
                self.definitions[name] = self.schema(depth + 1)
            return {"$ref": f"#/$defs/{name}"}
        if kind == "oneOf":
            tag = self.random.choice(["type", "a"])
            return {"oneOf": [{"type": "null"}] + [
                {"type": "object", "properties": {tag: {"const": f"t{i}"}, "b": self.schema(depth + 2)},
                 "required": [tag], "additionalProperties": False} for i in range(2)]}
        if kind == "allOf":
            return {"allOf": [self.make_object(depth + 1), {"properties": {"a": self.schema(depth + 2)},
                                                            "required": self.random.sample(NAMES[:3], 1)}]}
        if kind == "beside":
            base = self.make_string(depth) if self.chance() else self.make_object(depth + 1)
            return {**base, "anyOf": [{"minLength": 2, "required": ["a"]}, {"maxLength": 5, "maxProperties": 2}]}
        return {"anyOf": [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]}


def numbers_near(value: Any, rng: random.Random) -> Any:
    exact = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
    if abs(exact.adjusted()) > 20:
        return 1
    if rng.random() < 0.5:  # a bound
        return rng.choice(INTEGERS + NUMBERS)
    near = exact + rng.choice([Decimal(1), Decimal(-1), Decimal("0.5"), Decimal("-0.001"), Decimal(10), -exact * 2])
    return int(near) if near == near.to_integral_value() and abs(near) < 10**30 else near


def near(value: Any, rng: random.Random) -> Any:
    """A value that differs a little, somewhere in it. Members keep their order."""
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        return rng.choice([value[:i] + value[i + 1:], value[:i] + [near(value[i], rng)] + value[i + 1:],
                           value + [value[i]]])
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        if rng.random() < 0.4:
            return {k: v for k, v in value.items() if k != name}
        if rng.random() < 0.2:
            return {**value, rng.choice(["zzz", "a", "x1", "n9"]): rng.choice(LITERALS)}
        return {k: near(v, rng) if k == name else v for k, v in value.items()}
    if isinstance(value, str) and rng.random() < 0.8:
        return rng.choice([value[:-1], value + rng.choice("a0é-"), value[1:], rng.choice(TEXTS)])
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and rng.random() < 0.8:
        return numbers_near(value, rng)
    return rng.choice(LITERALS)


def written(value: Any) -> str:
    """The JSON text of a value, as bitnet writes it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(k)}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        return f"{value:f}" if abs(value.adjusted()) < 50 else str(value)
    return json.dumps(value, ensure_ascii=False)
