#!/usr/bin/env python3
"""`bitnet eval` against the judge: on the program's own logits to twelve digits, and on the judge's logits.

    quality_test.py --bitnet build/release/bin/bitnet
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np

    import quality
    import reference
except ImportError as error:
    print(f"skip: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = next((ROOT / "models").glob("TinyTales*.gguf"))
TEXT = ROOT / "models/quality/held-out.txt"
PROGRAM = ""
N_CTX, N_CHUNKS = 64, 6


def bitnet(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, check=False,
                          env={**os.environ, "BITNET_MODEL": str(MODEL)})
    assert done.returncode == 0, (words, done.stderr.decode())
    return done.stdout


def ids_of(text, *more):
    return [int(i) for i in bitnet("tokenize", *more, text).split()]


def byte_sizes(metadata):
    """Of each token of a byte-level vocabulary: how many bytes it stands for. Control tokens stand for none."""
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    return np.array([0 if kind == 3 else len(token) for token, kind in zip(tokens, kinds)])


class Measures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = reference.Model(MODEL)
        cls.bos = int(cls.model.metadata["tokenizer.ggml.bos_token_id"])
        text = TEXT.read_text(encoding="utf-8").removesuffix("\n")
        cls.ids = ids_of(text, "--add-bos")
        cls.chunks = quality.chunks(cls.ids, N_CTX, cls.bos, N_CHUNKS)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def near(self, found, wanted, rel=1e-9, at_least=1e-12):
        self.assertLessEqual(abs(found - wanted), max(rel * abs(wanted), at_least), (found, wanted))

    def own_logits(self, ids, *more):
        file = self.folder / "own.npy"
        bitnet("logits", "--all", "-o", file, "--ids", " ".join(map(str, ids)), *more)
        return np.load(file)

    def nlls(self, logits_of):
        rows, targets = quality.scored(N_CTX)
        return np.concatenate([quality.nll_of(logits_of(chunk)[rows], np.array(chunk)[targets])
                               for chunk in self.chunks])

    def ppl(self, *more):
        return json.loads(bitnet("eval", "ppl", "-f", TEXT, "-c", N_CTX, "--chunks", N_CHUNKS, "--json", *more))

    def check_ppl(self, got, nll, rel):
        sizes = byte_sizes(self.model.metadata)
        scored = np.concatenate([np.array(c)[quality.scored(N_CTX)[1]] for c in self.chunks])
        self.assertEqual(got["n_scored"], len(nll))
        self.assertEqual(got["n_tokens"], len(self.ids))
        self.assertEqual(got["bytes"], sizes[scored].sum())
        for name, wanted in (("nll", quality.mean_and_error(nll)), ("ppl", quality.perplexity(nll)),
                             ("bits_per_byte", quality.bits_per_byte(nll, sizes[scored]))):
            self.near(got[name], wanted[0], rel)
            self.near(got[name + "_error"], wanted[1], rel)

    def test_perplexity_of_its_own_logits(self):
        self.check_ppl(self.ppl(), self.nlls(self.own_logits), 1e-9)

    def test_perplexity_of_the_judges_logits(self):
        """Here a value that falls to the other side of a rounding tie may show."""
        self.check_ppl(self.ppl("-ctk", "f32", "-ctv", "f32"), self.nlls(self.model.logits), 1e-3)

    def test_running_perplexity_equals_that_of_the_logits(self):
        nll = self.nlls(self.own_logits).reshape(N_CHUNKS, -1)
        for i, got in enumerate(self.ppl()["ppl_after_chunk"]):
            self.near(got, np.exp(nll[:i + 1].mean()))

    def test_divergence_from_saved_logits_equals_the_definition(self):
        file = self.folder / "base.logits"
        saved = json.loads(bitnet("eval", "kld", "-f", TEXT, "-c", N_CTX, "--chunks", N_CHUNKS, "--save-logits", file,
                                  "--json"))
        self.assertEqual(saved["ppl"], self.ppl()["ppl"])
        got = json.loads(bitnet("eval", "kld", "--compare", file, "--json", "-ctk", "q4_0", "-ctv", "q4_0"))
        name, tokens, base = quality.logits_file(file)
        self.assertEqual(name, MODEL.name)
        self.assertEqual(tokens.tolist(), self.chunks)
        rows, targets = quality.scored(N_CTX)
        own = np.concatenate([self.own_logits(c, "-ctk", "q4_0", "-ctv", "q4_0")[rows] for c in self.chunks])
        wanted = np.concatenate([np.array(c)[targets] for c in self.chunks])
        base = base.reshape(len(wanted), -1)
        self.check_divergence(got, base, own, wanted)
        same = json.loads(bitnet("eval", "kld", "--compare", file, "--json"))
        self.assertEqual((same["kld"]["value"], same["kld_max"], same["same_top"]["value"]), (0, 0, 1))

    def check_divergence(self, got, base, own, targets):
        kld, delta, same = quality.divergence(base, own, targets)
        nll_base, nll = quality.nll_of(base, targets), quality.nll_of(own, targets)
        squared, squared_error = quality.mean_and_error(delta**2)
        for name, (value, error) in {
                "kld": quality.mean_and_error(kld), "delta_p": quality.mean_and_error(delta),
                "rms_delta_p": (squared**0.5, squared_error / 2 / squared**0.5),
                "base_ppl": quality.perplexity(nll_base), "ppl": quality.perplexity(nll),
                "ln_ppl_ratio": quality.mean_and_error(nll - nll_base)}.items():
            self.near(got[name]["value"], value)
            self.near(got[name]["error"], error)
        self.assertEqual(got["same_top"]["n"], same.sum())
        low, high = quality.wilson(same.sum(), len(same))
        self.near(got["same_top"]["low"], low, 1e-7)
        self.near(got["same_top"]["high"], high, 1e-7)
        for field, values in (("kld", kld), ("delta_p", delta)):
            for one in got[field + "_quantiles"]:
                self.near(one["value"], quality.quantile(values, one["percent"]), 1e-9, 1e-11)
                self.assertLessEqual(one["low"], one["value"])
                self.assertGreaterEqual(one["high"], one["value"])

    def check_choice(self, items, *more):
        """items: context, endings and label of each, as the program's JSONL says them."""
        got = json.loads(bitnet("eval", "choice", "--json", *more))
        right, right_normalised = 0, 0
        for item, (context, endings, label) in zip(got["items"], items):
            sums = []
            for ending in endings:
                before = ids_of(context, "--add-bos")
                ids = ids_of(f"{context} {ending}", "--add-bos")
                n = next((i for i, (a, b) in enumerate(zip(before, ids)) if a != b), min(len(before), len(ids)))
                sums.append(-quality.nll_of(self.own_logits(ids)[n - 1:-1], ids[n:]).sum())
            for found, wanted in zip(item["logprobs"], sums):
                self.near(found, wanted)
            best, best_normalised = np.argmax(sums), np.argmax(np.array(sums) / [len(e) for e in endings])
            self.assertEqual((item["label"], item["chosen"], item["chosen_normalised"]), (label, best, best_normalised))
            right += best == label
            right_normalised += best_normalised == label
        self.assertEqual((got["accuracy"]["n"], got["accuracy_normalised"]["n"]), (right, right_normalised))
        low, high = quality.wilson(right, len(items))
        self.near(got["accuracy"]["low"], low, 1e-7, 1e-9)
        self.near(got["accuracy"]["high"], high, 1e-7, 1e-9)
        self.near(got["random"], np.mean([1 / len(endings) for _, endings, _ in items]))

    def first_lines(self, name, n):
        lines = (ROOT / "models/quality" / name).read_text(encoding="utf-8").splitlines()[:n]
        file = self.folder / name
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file, [json.loads(line) for line in lines]

    def test_choice_in_hellaswags_form(self):
        file, lines = self.first_lines("tiny-cloze.jsonl", 6)
        self.check_choice([(x["ctx"], x["endings"], x["label"]) for x in lines], "-f", file)

    def test_choice_in_arcs_form(self):
        file, lines = self.first_lines("tiny-recall.jsonl", 4)
        self.check_choice([(f"Question: {x['question']}\nAnswer:", x["choices"]["text"],
                            x["choices"]["label"].index(x["answerKey"])) for x in lines], "-f", file)


class Judge(unittest.TestCase):
    """Tests of tests/reference/quality.py, on numbers that can be computed by hand."""

    def test_log_softmax_of_logarithms_gives_their_shares(self):
        np.testing.assert_allclose(np.exp(quality.log_softmax(np.log([[1, 3], [2, 2]]))), [[.25, .75], [.5, .5]])

    def test_chunks_begin_with_bos_and_score_their_second_half(self):
        self.assertEqual(quality.chunks(range(9), 4, 99), [[99, 1, 2, 3], [99, 5, 6, 7]])
        self.assertEqual([part.tolist() for part in quality.scored(5)], [[2, 3], [3, 4]])

    def test_wilsons_interval_equals_known_bounds(self):
        np.testing.assert_allclose(quality.wilson(8, 10), (0.490162, 0.943318), atol=1e-6)

    def test_divergence_of_halves_equals_its_formula(self):
        kld, delta, same = quality.divergence(np.log([[.5, .5]]), np.log([[.25, .75]]), [0])
        np.testing.assert_allclose((kld[0], delta[0]), (.5 * np.log(4 / 3), -.25))
        self.assertFalse(same[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bitnet", required=True)
    args, rest = parser.parse_known_args()
    PROGRAM = args.bitnet
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
