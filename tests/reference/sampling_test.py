"""The sampler against the judge in NumPy: which tokens each stage and all of them together keep, with what
probabilities, and that the random number of the seed picks the token that was taken."""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError as why:
    print(f"skipped: {why}; scripts/setup --for test makes build/venv, which has it")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sampling  # noqa: E402

PROGRAM = ""
# Of a probability p = e^(x/T) / sum: the sum of n <= 600 terms is off by n/2^53, x/T by a few units in the last place
# of T and of itself, which moves p by p |ln p| <= 1/e times that; T comes of another such sum. Twice, as the judge
# rounds as well, is below 1000 units of 2^-53, and ten times that is allowed.
TOLERANCE = 1e-12

# Each stage alone: everything else is off.
OFF = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
STAGES = {
    "sigma": dict(top_n_sigma=(0.05, 0.5, 1.0, 2.0)),
    "typical": dict(typical_p=(0.0, 0.1, 0.5, 0.9, 0.99)),
    "top-p": dict(top_p=(0.0, 0.3, 0.9)),
    "min-p": dict(min_p=(0.01, 0.3, 1.0)),
    "top-k": dict(top_k=(1, 3, 100)),
    "xtc": dict(xtc_probability=(1.0, 0.5), xtc_threshold=(0.0, 0.02, 0.1, 0.5)),
    "dynatemp": dict(dynatemp_range=(0.3, 1.0, 2.5), dynatemp_exponent=(0.0, 0.5, 1.0, 3.0)),
    "mirostat 1": dict(mirostat=(1,), mirostat_tau=(0.0, 1.0, 3.0, 5.0), mirostat_eta=(0.0, 0.1, 1.0)),
    "mirostat 2": dict(mirostat=(2,), mirostat_tau=(0.0, 1.0, 3.0, 5.0), mirostat_eta=(0.0, 0.1, 1.0)),
    "dry": dict(dry_multiplier=(0.5, 2.0), dry_base=(1.0, 1.75, 30.0), dry_allowed_length=(1, 2, 4),
                dry_penalty_last_n=(-1, 0, 5, 64)),
    "penalties": dict(repeat_penalty=(0.7, 1.3), presence_penalty=(0.0, 0.7), frequency_penalty=(0.0, 0.3),
                      repeat_last_n=(-1, 0, 3, 64)),
}


def rows_of(rng, n, shape):
    """Three rows: of any numbers, with many ties, or with tokens that are forbidden."""
    out = []
    for _ in range(3):
        row = [float(np.float32(rng.gauss(0, rng.choice((0.5, 2, 6))))) for _ in range(n)]
        if shape == "ties":
            row = [float(np.float32(round(2 * x) / 2)) for x in row]
        if shape == "forbidden":
            row = [x if rng.random() < 0.6 or i == 0 else None for i, x in enumerate(row)]
        if shape == "equal":
            row = [1.5] * n
        out.append(row)
    return out


def text_of(rng, n, length):
    """Few tokens, and pieces that come again."""
    out = []
    while len(out) < length:
        begin = rng.randrange(len(out) + 1)
        out += out[begin:begin + rng.randrange(12)] if rng.random() < 0.5 else [rng.randrange(min(n, 9))]
    return out[:length]


def case(rng, parameters, n, shape):
    return {"n_vocab": n, "parameters": {"seed": rng.randrange(2**32), **parameters},
            "biases": [[rng.randrange(n), rng.choice((-2.0, 1.0))]] if rng.random() < 0.2 else [],
            "breakers": [[rng.randrange(min(n, 9)), text_of(rng, n, rng.randrange(4))] for _ in range(rng.randrange(3))],
            "history": text_of(rng, n, rng.randrange(120)), "rows": rows_of(rng, n, shape)}


def answers(cases):
    lines = "".join(json.dumps(one) + "\n" for one in cases)
    done = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Sampling(unittest.TestCase):
    def judge(self, cases):
        """How many rows were judged."""
        n = 0
        for one, answer in zip(cases, answers(cases), strict=True):
            with self.subTest(json.dumps({k: v for k, v in one.items() if k != "rows"})):
                self.assertIn("steps", answer)
                try:
                    n += self.judge_text(one, answer["steps"])
                except sampling.Doubt:
                    pass  # this row and those behind it, which go on from its state
        return n

    def judge_text(self, one, steps):
        judge = sampling.Judge(one["parameters"], one["n_vocab"], one["history"], one["biases"],
                               [(head, tuple(tail)) for head, tail in one["breakers"]])
        for row, step in zip(one["rows"], steps, strict=True):
            wanted = judge.distribution(row)
            got = dict(map(tuple, step["drawn"]))
            if judge.p["temperature"] <= 0:
                self.assertEqual([step["token"]], list(wanted))
            else:
                self.assertEqual(set(got), set(wanted))
                for token, probability in wanted.items():
                    self.assertLessEqual(abs(got[token] - probability), TOLERANCE, token)
                self.assert_drawn(judge, step)
            judge.accept(step["token"], wanted[step["token"]])
        return len(steps)

    def assert_drawn(self, judge, step):
        point, before = judge.random.unit(), 0.0
        for token, probability in step["drawn"]:
            if before - TOLERANCE <= point <= before + probability + TOLERANCE and token == step["token"]:
                return
            before += probability
        self.fail(f"{point} does not draw {step['token']} of {step['drawn']}")

    def test_each_stage_agrees_with_the_reference(self):
        rng = random.Random(1)
        for name, choices in STAGES.items():
            cases = []
            for i in range(100):
                n = rng.choice((1, 2, 7, 60, 400))
                parameters = {**OFF, **{key: rng.choice(values) for key, values in choices.items()}}
                cases.append(case(rng, parameters, n, ("any", "ties", "forbidden", "equal")[i % 4]))
            with self.subTest(name):
                self.assertGreater(self.judge(cases), 200)

    def test_all_stages_together_agree_with_the_reference(self):
        rng = random.Random(2)
        cases = []
        for i in range(350):
            parameters = {"temperature": rng.choice((0.0, 0.5, 1.0, 1.7)), "top_k": rng.choice((0, 5, 40))}
            for choices in rng.sample(list(STAGES.values()), rng.randrange(5)):
                parameters.update({key: rng.choice(values) for key, values in choices.items()})
            cases.append(case(rng, parameters, rng.choice((1, 30, 600)), ("any", "ties", "forbidden")[i % 3]))
        self.assertGreater(self.judge(cases), 900)

    def test_every_row_is_needed_where_a_stage_looks_at_all(self):
        rng = random.Random(3)
        row = {"top_k": 40, "temperature": 1.0}
        rows = (({}, 40), ({"typical_p": 0.5}, 40), ({"xtc_probability": 1.0}, 40), ({"dynatemp_range": 0.5}, 40),
                ({"top_n_sigma": 1.0}, 0), ({"mirostat": 1}, 0), ({"mirostat": 2}, 0),
                ({"top_n_sigma": 1.0, "mirostat": 2, "temperature": 0.0}, 1))
        cases = [{**case(rng, {**row, **more}, 400, "any"), "biases": []} for more, _ in rows]
        for (more, needed), answer in zip(rows, answers(cases), strict=True):
            self.assertEqual(answer["steps"][0]["needed"], needed, more)

    def test_invalid_parameters_and_rows_are_rejected(self):
        for parameters, row, words in (
                ({"typical_p": 1.5}, [0.0], "typical_p is 1.5; expected 0 to 1"),
                ({"typical_p": -0.1}, [0.0], "typical_p"),
                ({"xtc_probability": 2.0}, [0.0], "xtc_probability is 2; expected 0 (off) to 1"),
                ({"xtc_threshold": -1.0}, [0.0], "xtc_threshold"),
                ({"dynatemp_range": -1.0}, [0.0], "dynatemp_range"),
                ({"dynatemp_exponent": -1.0}, [0.0], "dynatemp_exponent"),
                ({"mirostat": 3}, [0.0], "mirostat is 3; expected 0 (off), 1 or 2"),
                ({"mirostat_tau": -1.0}, [0.0], "mirostat_tau"),
                ({"mirostat_eta": -1.0}, [0.0], "mirostat_eta"),
                ({"dry_multiplier": -1.0}, [0.0], "dry_multiplier"),
                ({"dry_base": 0.5}, [0.0], "dry_base is 0.5; expected 1 or more"),
                ({"dry_allowed_length": 0}, [0.0], "dry_allowed_length"),
                ({"dry_penalty_last_n": -2}, [0.0], "dry_penalty_last_n"),
                ({"mirostat": 2}, [0.0, "nan"], "logit of token 1 is NaN"),
                ({"top_n_sigma": 1.0}, ["inf", 0.0], "logit of token 0 is infinite"),
                ({"typical_p": 0.5}, [None, None], "logits are -infinite")):
            one = {"n_vocab": len(row), "parameters": parameters, "biases": [], "breakers": [], "history": [],
                   "rows": [row]}
            self.assertIn(words, answers([one])[0].get("error", "no error"), parameters)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    given, rest = parser.parse_known_args()
    PROGRAM = given.program
    unittest.main(argv=[sys.argv[0], *rest])
