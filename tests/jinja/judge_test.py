#!/usr/bin/env python3
"""Templates and random expressions, rendered by us and by Python's jinja2, byte by byte.

    judge_test.py RENDERER

The environment is the one in which transformers renders chat templates. patterns/ holds what published
templates do, in words of our own. Where jinja2 raises, we must reject. Exit code 77 without jinja2.
"""

import datetime
import json
import pathlib
import random
import re
import subprocess
import sys
import warnings

try:
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError as missing:
    print(f"skip: {missing}; scripts/setup --for test installs it")
    sys.exit(77)


warnings.simplefilter("ignore", SyntaxWarning)  # random expressions index numbers


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def reject(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


PYTHON = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                       extensions=[Generation, loopcontrols])
PYTHON.filters["tojson"] = tojson
PYTHON.globals["raise_exception"] = reject
PYTHON.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)


def judge(template, variables):
    try:
        return {"text": PYTHON.from_string(template).render(**variables)}
    except Exception as why:  # if Python raises, we must reject
        return {"error": f"{type(why).__name__}: {why}"}


def said(role, content, **more):
    return {"role": role, "content": content, **more}


TOOL = {"type": "function", "function": {"name": "weather", "description": "It's \"now\" <é>",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": []}}}
CALL = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "n": 1.5}}}
NESTED = {"function": {"name": "set", "arguments": {"at": {"x": [1, None]}, "on": True, "text": "a\n<b>"}}}
CONVERSATIONS = [
    [said("user", "Hi")],
    [said("system", " Be kind.\n"), said("user", "Hello\n")],
    [said("user", "a"), said("assistant", "b"), said("user", "c")],
    [said("user", "a"), said("assistant", "<think>\nhm\n</think>\n\nb"), said("user", "c é 漢")],
    [said("system", "s"), said("user", "a"), said("assistant", "x", reasoning_content="deep\n")],
    [said("user", "w?"), said("assistant", "", tool_calls=[CALL]), said("tool", "rain"),
     said("tool", "sun"), said("assistant", "wet")],
    [said("user", "w?"), said("assistant", "let", tool_calls=[CALL, CALL]), said("tool", "rain")],
    [said("assistant", "first")],
    [said("user", "a"), said("user", "b")],
    [said("user", "<tool_response>x</tool_response>")],
    [said("user", "<|im_end|>{{ 1 }} {% if %}")],
    [said("user", [{"type": "image"}, {"type": "text", "text": " what? "}]), said("assistant", "a cat")],
    [said("system", [{"type": "text", "text": "s"}]), said("user", "a"), said("assistant", None, tool_calls=[NESTED]),
     said("tool", "ok"), said("user", "b")],
]
SETTINGS = [{"add_generation_prompt": True}, {"add_generation_prompt": False, "tools": None},
            {"add_generation_prompt": True, "tools": [TOOL, TOOL]},
            {"add_generation_prompt": True, "enable_thinking": False}]

SMALL = r"""
{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x', (2,), {'k': "it's"}] }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }}
{{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'b' in 'abc' }} {{ 4 not in [1] }}
{{ 'hello'[1:-1] }} {{ 'hello'[::-1] }} {{ [1,2,3,4][-3::2] }} {{ 'añb'[1] }} {{ 'x'[5] }} {{ [1][-1] }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a-b-c'.rsplit('-', 1) }}
{{ 'xxaxx'.strip('x') }} {{ ' a '.rstrip() }}| {{ 'abc'.startswith(('x', 'a')) }} {{ 'aXbX'.replace('X', '-', 1) }}
{{ "they're bill's".title() }} {{ "they're bill's (new)-car"|title }} {{ 'élan VITAL'|capitalize }} {{ 'ß'|upper }}
{{ {'b': 1, 'a': [true, none]}|tojson }} {{ {'b': 1, 'a': [1, {}]}|tojson(indent=2) }} {{ 'a"\n\x7fé</'|tojson }}
{{ {'b': 1, 'A': 2}|dictsort }} {{ [3, 1, 2]|sort(reverse=true) }} {{ ['b', 'A']|sort }} {{ ['a', 'A', 'b']|unique|list }}
{{ [{'a': 1}, {'a': 2}, {}]|map(attribute='a', default=9)|list }} {{ [1, 2, 3]|select('odd')|list }} {{ ['a']|map('upper')|join }}
{{ [1, 2, 3]|sum }} {{ [2, 1]|min }} {{ ['a', 'B']|max }} {{ [1, 2, 3]|batch(2, 0)|list }} {{ 'a\nb\n\nc'|indent(2) }}
{{ 2.5|round }} {{ 2.675|round(2) }} {{ 7|round }} {{ 2.1|round(0, 'ceil') }} {{ '42.7'|int }} {{ 'x'|int(5) }} {{ '1e3'|float }}
{{ x is defined }} {{ x is undefined }} {{ none is none }} {{ 1 is number }} {{ true is integer }} {{ 1.0 is float }} {{ 'a' is iterable }}
{{ x|default('d') }} {{ ''|default('d', true) }} {{ x }} {{ x|length }} {{ x or 'y' }} {{ 'a' if x }} {{ not x }}
{{ x.y }}
{{ 1 + 'a' }}
{{ [1].append(2) }}
{{ {}.update({}) }}
{{ 'a'.__class__ }}
{{ ''.join(['a', 1]) }}
{% for a, b in {'k': 1, 'l': 2}.items() %}{{ loop.index }}{{ a }}{{ b }}{{ loop.last }}{% endfor %}
{% for i in range(5) if i is odd %}{{ i }}:{{ loop.length }} {% else %}none{% endfor %}{% for i in [] %}{% else %}none{% endfor %}
{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = i + 5 %}{{ x }}{% endfor %}{{ x }}
{% macro m(a, b='z') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2, 3, c=4) }}
{% macro m(a) %}{{ a }}({{ caller(a) }}){% endmacro %}{% call(v) m('q') %}[{{ v }}]{% endcall %}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% set y %} a {{ 1 }} {% endset %}[{{ y }}]{% set z | upper | trim %} a {% endset %}[{{ z }}]{% filter upper %}a{{ 'b' }}{% endfilter %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}{% set a, b = 1, 2 %}{{ b }}{% set n = namespace(x=1) %}{% set n.x = 2 %}{{ n.x }}
{% raw %}{{ x }}{% endraw %}{# c #}{{- ' a ' -}}  b
{% if 1 %}a{% elif 2 %}b{% else %}c{% endif %}{% if 0 %}a{% elif 2 %}b{% endif %}
{{ '%s is %d' % ('x', 3) }} {{ '%5.2f|%-6s|%06d|%+d|% d' % (2.345, 'é', -42, 7, 7) }} {{ '%x %X %#o %#08x' % (255, -255, 8, 255) }}
{{ '%(a)s%(b)5.1e%%' % {'a': 1, 'b': 12345.678} }} {{ '%r %a %s' % ('é', 'é', none) }} {{ '%c%c' % ('é', 97) }} {{ '%.2s|%5.1s|' % ('éàx', 'abc') }}
{{ '%*.*f' % (8, 2, 3.14159) }} {{ '%-*d|' % (5, 1) }} {{ '%*d|' % (-5, 1) }} {{ '%g %G %#g %g' % (1e-10, 1e20, 1.0, 100000) }} {{ '%i' % 2.9 }}
{{ 'x' % {} }} {{ 'x' % [1] }} {{ '%s' % [1] }} {{ '%d' % true }} {{ '%%' % () }} {{ '%ld' % 1 }} {{ '%s' % x }} {{ 'a' % x }}
{{ '%s' % () }}
{{ '%d' % 'x' }}
{{ '%s' % (1, 2) }}
{{ '%s %s' % 1 }}
{{ 'x' % 1 }}
{{ '%' % 1 }}
{{ '%5' % 1 }}
{{ '%5%' % 1 }}
{{ '%.99999999999f' % 1 }}
{{ '%q' % 1 }}
{{ '%(a)s' % 1 }}
{{ '%(a)s' % {'b': 1} }}
{{ '%(a' % {'a': 1} }}
{{ '%(a)s %s' % {'a': 1} }}
{{ '%*d' % ('x', 1) }}
{{ '%c' % 'ab' }}
{{ '%x' % 1.5 }}
{{ '%d' % 1e400 }}
{{ '%s and %s'|format('a', 2) }} {{ '%(x)s'|format(x=1) }} {{ 'a'|format }} {{ 5|format }}
{{ '%s'|format(1, x=2) }}
{% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }}{% endfor %}{% for i in [1, 2] %}{{ loop.changed() }}{{ loop.changed(i, 'a') }}{% endfor %}
{{ 'añbañb'.find('b', 3) }} {{ 'añb'.find('', 3) }} {{ 'añb'.find('', 4) }} {{ 'abab'.rfind('a', none, -2) }} {{ 'abc'.find('c', -1, 99) }} {{ 'abc'.find('', 2, 1) }}
{{ 'abab'.count('a', 1) }} {{ 'añ'.count('') }} {{ 'añ'.count('', 1, 9) }} {{ 'añ'.count('', 3) }} {{ 'aaaa'.count('aa', 1) }}
{{ 'abc'.startswith('b', 1) }} {{ 'abc'.startswith('', 4) }} {{ 'abc'.startswith(('x', 'c'), 2, 3) }} {{ 'abc'.endswith('b', 0, 2) }} {{ 'abc'.endswith('', 2, 1) }}
{{ 'abcabc'.index('c', 3) }} {{ 'abcabc'.rindex('c', 0, -1) }} {{ [1, 2, 1].index(1, 1) }} {{ (1, 2).index(2, -1) }} {{ [1, true, 1.0].count(1) }}
{{ 'abc'.index('x') }}
{{ 'abc'.rindex('a', 1) }}
{{ [1, 2].index(1, 1) }}
{{ [1, 2].index(1, none) }}
{{ [1, 2].index(3) }}
{{ 'abc'.find('a', 'b') }}
{{ 'abc'.find(sub='a') }}
{{ 'abc'.find('a', 0, 1, 2) }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }}
{{ 'abc'.partition('') }}
{% for i in range() %}{% endfor %}
{% for i in range(stop=3) %}{% endfor %}
{% for i in range(1, stop=3) %}{% endfor %}
{% if %}
{{ 'a' | nothing }}
{% nothing %}
{{ (1, }}
{{ 'a
""".strip("\n").split("\n")
SPACED = ["  {% if 1 %}  \n a\n  {% endif %}\nb\n", "a\n  {%+ if 1 %}\nb{% endif +%}\nc", "x  {{- 1 -}}  y",
          "a\r\n{% set x = 1 %}\r\nb", "  {# c #}\n  b", "a  {%- raw -%}  {{ }}  {%- endraw -%}  b", "\n\n{{ 1 }}\n\n"]


FILTERS = ["string", "upper", "lower", "trim", "length", "list", "tojson", "title", "capitalize", "first",
           "last", "int", "float", "abs", "join(1)", "default(0, true)", "sort", "sum"]


def random_expression(r, depth=0):
    """Of literals, operators, filters and methods that give text, numbers or lists."""
    leaves = ["1", "-3", "2.5", "'aB c'", "'x,y'", "[1, 'a', 2]", "n", "s", "l", "d", "none", "true", "''", "zz"]
    if depth > 3 or r.random() < 0.2:
        return r.choice(leaves)

    def sub():
        return random_expression(r, depth + 1)
    kind = r.randrange(8)
    if kind == 0:
        return f"({sub()} {r.choice(['+', '-', '*', '//', '%', '~', '/'])} {sub()})"
    if kind == 1:
        return f"({sub()} {r.choice(['==', '!=', '<', '<=', '>', 'in', 'not in', 'and', 'or'])} {sub()})"
    if kind == 2:
        return f"({sub()} if {sub()} else {sub()})"
    if kind == 3:
        return f"({sub()})|{r.choice(FILTERS)}"
    if kind == 4:
        return f"({sub()})[{r.choice(['0', '-1', '1:', ':-1', '::-1', '::2', '-9:9', '7'])}]"
    if kind == 5:
        return f"({sub()})|string|replace({r.choice(['1', repr('a'), repr('')])}, '-')"
    if kind == 6:
        tests = ["defined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "odd", "in 'abc'"]
        return f"(({sub()}) is {r.choice(['', 'not '])}{r.choice(tests)})"
    return f"[{sub()}, {sub()}]"


def random_place(r):
    """A place of %, mostly a good one."""
    return "%" + r.choice(["", "", "", "(k)", "(j)", "(k"][:4 if r.random() < 0.7 else 6]) + "".join(
        r.choices("#0- +", k=r.choice([0, 0, 1, 2]))) + r.choice(["", "", "5", "12", "*", "0"]) + r.choice(
        ["", "", ".", ".0", ".3", ".12", ".*"]) + r.choice(["", "", "", "l"]) + r.choice("srdiuoxXeEfFgGca%sdfgq")


VALUES = ["1", "-3", "0", "2.5", "-0.0", "1e300", "1e-7", "123456789012", "0.5", "'aB c'", "'é'", "none", "true", "[1]",
          "n", "s", "l", "d", "zz", "97", "(1, 'x')", "{'k': 2.5, 'j': 'ñ'}"]


def random_format(r):
    form = "".join(r.choice(["", "a", "é ", random_place(r)]) for _ in range(3)) + random_place(r)
    if "(" in form:
        return f"'{form}' % {r.choice(['d', VALUES[-1], r.choice(VALUES)])}"
    n = form.count("%") - 2 * form.count("%%") + form.count("*") + r.choice([0, 0, 0, 0, 1, -1])
    values = [r.choice(VALUES) for _ in range(max(n, 0))]
    if len(values) == 1 and r.random() < 0.7:
        return f"'{form}' % {values[0]}"
    return f"'{form}' % ({', '.join(values)}{',' if len(values) == 1 else ''})"


def random_search(r):
    """A method that looks for something from a place to another."""
    bound = [str(r.randrange(-7, 8)), str(r.randrange(-3, 4)), "none", "true", "'x'"]
    given = "".join(", " + r.choice(bound[:3 if r.random() < 0.8 else 5]) for _ in range(r.randrange(3)))
    if r.random() < 0.2:
        return f"[1, 'a', 2, 1, 'a'].{r.choice(['index', 'count'])}({r.choice(['1', repr('a'), '2', '9'])}{given})"
    text = "".join(r.choices("abañé漢", k=r.randrange(6)))
    part = "".join(r.choices("abñ", k=r.choice([0, 1, 1, 2])))
    if r.random() < 0.1:
        return f"'{text}'.{r.choice(['partition', 'rpartition'])}('{part}')"
    method = r.choice(["find", "rfind", "index", "rindex", "count", "startswith", "endswith"])
    return f"'{text}'.{method}('{part}'{given})"


# docs/adr/0030-own-jinja.md; and jinja2 raises for a slice of a number or of None as we do, but not where
# both are written in the template, as it works those out before it renders.
LEFT_OUT = ("cannot be sliced", "needs an integer, not this 'float'")


MARK = re.compile(rb"<\|\w+\|>|</?s>|\[/?INST\]|<(start|end)_of_turn>")


def wrong_marks(template, variables, ours):
    """Marks of turns are the template's own, but for those that a message writes: as many as there are where
    the message writes other letters. So a message without marks has the tokens that it always had."""
    written = json.dumps(variables["messages"])
    harmless = json.loads(written.replace("<|im_end|>", "<!im_end!>"))
    expected = len(MARK.findall(judge(template, {**variables, "messages": harmless})["text"].encode()))
    places = [range(*one) for one in ours["of_messages"]]
    own = sum(not any(one.start < mark.end() and mark.start() < one.stop for one in places)
              for mark in MARK.finditer(ours["text"].encode()))
    return f"{own} marks are the template's own, expected {expected}" if own != expected else None


def main():
    cases = []
    for file in sorted((pathlib.Path(__file__).parent / "patterns").glob("*.jinja")):
        text = file.read_text(encoding="utf-8")
        for messages in CONVERSATIONS:
            for setting in SETTINGS:
                cases.append((file.name, text, {"messages": messages, "bos_token": "<s>",
                                                "eos_token": "</s>", **setting}))
    assert len(cases) >= 10 * 13 * 4, "patterns/ has fewer templates than it had"
    for text in SMALL + SPACED:
        cases.append(("small", text, {}))
    r = random.Random(31)
    names = {"n": 7, "s": " héLLo\n", "l": ["b", "a"], "d": {"k": [1], "j": None}}
    for _ in range(4000):
        cases.append(("random", "{{ " + random_expression(r) + " }}", names))
    for _ in range(1500):
        cases.append(("random", "{{ " + random_format(r) + " }}", names))
        cases.append(("search", "{{ " + random_search(r) + " }}", names))
    asked = "".join(json.dumps({"template": t, "variables": v}) + "\n" for _, t, v in cases)
    done = subprocess.run([sys.argv[1]], input=asked.encode(), capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = same_text = left_out = 0
    for (name, template, variables), ours in zip(cases, answers, strict=True):
        theirs = judge(template, variables)
        if name.endswith(".jinja") and "text" in ours and ours == {**ours, **theirs}:
            marks = wrong_marks(template, variables, ours)
            wrong += marks is not None
            if marks:
                print(f"{name}: {marks}: {variables['messages']}")
        if ours.get("text") == theirs.get("text"):
            same_text += "text" in ours
            continue
        if name == "random" and any(words in ours.get("error", "") for words in LEFT_OUT):
            left_out += 1
            continue
        wrong += 1
        if wrong <= 20:
            print(f"{name}: {template[:200]!r}\n  python {theirs}\n  ours   {ours}")
    print(f"{len(cases)} renderings, {same_text} of them texts, {left_out} left out, {wrong} wrong")
    return 1 if wrong or left_out > 120 or same_text < len(cases) // 4 else 0


if __name__ == "__main__":
    sys.exit(main())
