"""`bitnet crossval`, with stand-ins for libllama.so (tests/crossval/stand_in.c) as the other engine.

What it prints is judged by arithmetic here: the stand-in's formula written a second time, and the logits
that `bitnet logits` writes.
"""

import array
import math
import os
import shutil
import struct
import unittest

import support
from support import demo_model, needs_backend

STAND_INS = os.environ.get("BITNET_STAND_INS", "")
PROMPTS = ["Once upon a time", "Tom had a red ball.", "The sun"]
TIER_2 = "build/3rdparty/llama.cpp/src"


def needs_stand_ins(test):
    return unittest.skipUnless(os.path.isdir(STAND_INS), "BITNET_STAND_INS names no folder of stand-ins")(test)


def formula(ids, n_vocab):
    """The stand-in's logits behind each of the ids."""
    rows, h = [], 1
    for token in ids:
        h = (h * 31 + token + 1) & 0xFFFFFFFF
        rows.append([((((h ^ (v * 2654435761)) & 0xFFFFFFFF) >> 16) & 0xFFF) / 256 - 8 for v in range(n_vocab)])
    return rows


def cosine(a, b):
    return math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


def largest_distance(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def top(row):
    return row.index(max(row))


@needs_stand_ins
class Crossval(support.Case):
    def setUp(self):
        super().setUp()
        self.prompts = self.path("prompts.txt", "\n".join(PROMPTS) + "\n\n")

    def variables(self, **more):
        return {"BITNET_CPP_DIR": os.path.join(STAND_INS, "2025"), **more}

    def crossval(self, code, *words, **variables):
        done = self.bitnet("crossval", *words, env=self.variables(**variables))
        self.assertEqual(done.code, code, done)
        return done

    def cannot(self, code, message, *words, **variables):
        done = self.crossval(code, *words, **variables)
        self.assertEqual((done.stdout, len(done.errors)), (b"", 1), done)
        self.assertIn(message, done.errors[0])
        return done


class Computed(Crossval):
    """With our logits, of `bitnet logits`, beside those of the stand-in."""

    def setUp(self):
        super().setUp()
        self.ids, self.rows = [], []
        for prompt in PROMPTS:
            self.ok("logits", "-p", prompt, "--all", "-o", "own.npy")
            with open(self.path("own.npy"), "rb") as file:
                data = file.read()
            start = 10 + struct.unpack("<H", data[8:10])[0]
            values = array.array("f", data[start:])
            # With the token for the beginning, which the command adds too.
            self.n_vocab = int(data[:start].decode("latin-1").split("(")[1].split(")")[0].split(",")[1])
            self.rows.append([list(values[i:i + self.n_vocab]) for i in range(0, len(values), self.n_vocab)])
            self.ids.append([int(i) for i in self.ok("tokenize", "--add-bos", prompt).text.split()])
            self.assertEqual(len(self.ids[-1]), len(self.rows[-1]), "tokens of both commands")
        self.tokens(self.ids)
        flat = array.array("f", [x for rows in self.rows for row in rows for x in row])
        self.same = self.path("same.bin", flat.tobytes())

    def tokens(self, ids):
        lines = [" ".join(map(str, i)) + "|" + text for i, text in zip(ids, PROMPTS)]
        self.path("tokens.txt", "\n".join(lines) + "\n")

    def variables(self, **more):
        return super().variables(**{"STAND_IN_VOCABULARY": str(self.n_vocab), "STAND_IN_TOKENS": self.path("tokens.txt"), **more})

    def compared(self, code, *words, **variables):
        return self.crossval(code, "--prompts", self.prompts, "-o", "json", *words, **variables).json

    @needs_backend
    def test_equal_libraries_agree(self):
        report = self.compared(0, STAND_IN_LOGITS=self.same)
        self.assertTrue(report["agrees"])
        self.assertEqual(report["n_vocab"], self.n_vocab)
        self.assertEqual(report["other"]["flavour"], "llama.cpp")
        self.assertEqual(report["other"]["model"], f"stand-in of {self.n_vocab} tokens")
        for ids, one in zip(self.ids, report["prompts"]):
            self.assertEqual(one["tokens"], {"ours": len(ids), "theirs": len(ids)})
            self.assertEqual((one["positions"], one["same_top"]), (len(ids), len(ids)))
            self.assertLess(one["max_abs"], 1e-3)
            self.assertIsNone(one["first_divergence"])
        text = self.crossval(0, "-p", PROMPTS[0], STAND_IN_LOGITS=self.same).text
        self.assertIn("1 of 1 prompts agree", text)

    @needs_backend
    def test_each_set_of_names_and_each_layout(self):
        for build in ("2024", "seed", "2025"):
            with self.subTest(build):
                report = self.compared(0, BITNET_CPP_DIR=os.path.join(STAND_INS, build), STAND_IN_LOGITS=self.same)
                self.assertEqual(report["other"]["version"], "API since 2025" if build == "2025" else "API of 2024")

    @needs_backend
    def test_other_logits_do_not_agree(self):
        report = self.compared(11)
        self.assertFalse(report["agrees"])
        for ids, ours, one in zip(self.ids, self.rows, report["prompts"]):
            theirs = formula(ids, self.n_vocab)
            cosines = [cosine(a, b) for a, b in zip(ours, theirs)]
            far = [largest_distance(a, b) for a, b in zip(ours, theirs)]
            self.assertAlmostEqual(one["min_cosine"], min(cosines), 4)
            self.assertEqual(one["min_cosine_at"], cosines.index(min(cosines)))
            self.assertAlmostEqual(one["max_abs"], max(far), 2)
            self.assertEqual(one["same_top"], sum(top(a) == top(b) for a, b in zip(ours, theirs)))
            self.assertEqual(one["first_divergence"], 0)

    @needs_backend
    def test_one_logit_beyond_a_bound_is_reported(self):
        """Of the second position of the second prompt, and only a bound of distances sees it."""
        row = len(self.ids[0]) + 1
        for code, words in ((0, []), (11, ["--max-abs", "0.25"]), (0, ["--max-abs", "1"])):
            report = self.compared(code, *words, STAND_IN_LOGITS=self.same, STAND_IN_SHIFT=f"{row}:7:0.5")
            one = report["prompts"][1]
            self.assertAlmostEqual(one["max_abs"], 0.5, 2)
            self.assertEqual(one["max_abs_at"], 1)
            self.assertEqual(one["first_divergence"], 1 if code else None)
            self.assertEqual([p["agrees"] for p in report["prompts"]], [True, code == 0, True])

    @needs_backend
    def test_positions_before_the_first_other_token_are_compared(self):
        """The positions before the first other token are compared."""
        others = [list(i) for i in self.ids]
        others[0][2] = 5 if others[0][2] != 5 else 6
        others[1].append(7)
        others[2][0] = 8 if others[2][0] != 8 else 9
        self.tokens(others)
        report = self.compared(11)
        self.assertEqual([p["first_other_token"] for p in report["prompts"]], [2, len(self.ids[1]), 0])
        self.assertEqual([p["positions"] for p in report["prompts"]], [2, len(self.ids[1]), 0])
        self.assertIsNone(report["prompts"][2]["min_cosine"])
        self.assertIn("0 of 3 prompts agree", self.crossval(11, "--prompts", self.prompts).text)

    @needs_backend
    def test_nan_logits_diverge(self):
        one = self.compared(11, STAND_IN_LOGITS=self.same, STAND_IN_DEFECT="nan")["prompts"][0]
        self.assertEqual((one["first_not_finite"], one["first_divergence"]), (1, 1))

    @needs_backend
    def test_a_defect_of_the_other_engine_is_reported(self):
        words = ("--prompts", self.prompts, "--engine-timeout", "2")
        for defect, message in (("crash-load", "signal 11"), ("crash-decode", "signal 6"), ("hang", "wrote nothing for 2 s"),
                                ("refuse", "unknown architecture 'x'"), ("fail-decode", "llama_decode gives 1 at position 0"),
                                ("close", "it closed its pipe and still runs"),
                                ("short", "while computing a token: it ended with exit status 0")):
            with self.subTest(defect):
                self.cannot(13, message, *words, STAND_IN_DEFECT=defect)

    @needs_backend
    def test_a_library_that_prints(self):
        self.compared(0, STAND_IN_LOGITS=self.same, STAND_IN_DEFECT="print")

    @needs_backend
    def test_receipts_have_the_comparison(self):
        """The bounds are gates: 3 where they were not met, whatever else is true."""
        row = len(self.ids[0]) + 1
        for code, judged, words in ((0, 0, ["--max-abs", "1"]), (11, 3, ["--max-abs", "0.25"])):
            self.compared(code, *words, "--receipt", "parity.json", STAND_IN_LOGITS=self.same,
                          STAND_IN_SHIFT=f"{row}:7:0.5")
            done = self.bitnet("verify-receipt", "parity.json", "--json", "--model", demo_model())
            self.assertEqual(done.code, judged, done)
            predicate = done.json["statement"]["predicate"]
            self.assertEqual(predicate["program"]["parity"]["agrees"], code == 0)
            gates = {gate["name"]: gate for gate in predicate["gates"]}
            self.assertEqual(sorted(gates), ["max-abs", "max-prompts-with-other-tokens", "min-cosine"])
            self.assertEqual([gates["max-abs"]["passed"], gates["min-cosine"]["passed"]], [code == 0, True])
        self.compared(11, "--receipt", "parity.json", STAND_IN_LOGITS=self.same, STAND_IN_DEFECT="nan")
        self.assertEqual(self.bitnet("verify-receipt", "parity.json").code, 3)

    @needs_backend
    def test_another_number_of_tokens_is_rejected(self):
        self.cannot(13, f"logits of 7 tokens for this model, bitnet has {self.n_vocab}", "-p", PROMPTS[0], STAND_IN_VOCABULARY="7")
        self.cannot(13, "a vocabulary of 0 tokens", "-p", PROMPTS[0], STAND_IN_VOCABULARY="")

    @needs_backend
    def test_builds_that_cannot_be_used(self):
        for build, message in (("cut", "has no llama_decode: supported are versions since February 2024"),
                               ("huge", "llama_context_default_params returns has another form")):
            with self.subTest(build):
                self.cannot(13, message, "-p", PROMPTS[0], BITNET_CPP_DIR=os.path.join(STAND_INS, build))

    @needs_backend
    def test_wrong_prompts_are_rejected(self):
        self.cannot(2, "one of both")
        self.cannot(2, "one of both", "-p", "a", "--prompts", self.prompts)
        self.cannot(2, "has no prompts", "--prompts", self.path("empty", "\n\n"))
        self.cannot(2, "found csv", "-p", "a", "-o", "csv")
        self.cannot(2, "unexpected 'b'", "a", "b")
        self.cannot(3, "no-such-model", "-m", "no-such-model.gguf", "-p", "a")


class Found(Crossval):
    """`bitnet crossval find`: which build counts."""

    def found(self, code=0, *words, **variables):
        return self.crossval(code, "find", "-o", "json", *words, **variables)

    def test_the_flavour_and_tier_of_a_library_are_reported(self):
        for build, flavour, tier, version in (("2025", "llama.cpp", 1, "API since 2025"),
                                              ("2024", "bitnet.cpp", 2, "API of 2024")):
            found = self.found(BITNET_CPP_DIR=os.path.join(STAND_INS, build)).json["found"]
            self.assertEqual((found["flavour"], found["tier"], found["version"], found["cuda"], found["problem"]),
                             (flavour, tier, version, False, None))

    def test_a_library_without_a_needed_symbol_is_rejected(self):
        report = self.found(13, BITNET_CPP_DIR=os.path.join(STAND_INS, "cut")).json
        self.assertIn("llama_decode", report["found"]["problem"])

    def test_a_missing_library_is_reported_with_advice(self):
        report = self.found(4, BITNET_CPP_DIR=self.home).json
        self.assertIsNone(report["found"])
        self.assertEqual({one["verdict"] for one in report["searched"]}, {"no such folder"})
        self.cannot(4, "by BITNET_CPP_DIR: set BITNET_CPP_DIR", "-p", "a", BITNET_CPP_DIR=self.home)

    def test_the_new_variable_comes_before_the_deprecated_one(self):
        here, there = os.path.join(STAND_INS, "2025"), os.path.join(STAND_INS, "2024")
        both = {"BITNET_CPP_DIR": here, "BITNET_CPP_PATH": there}
        done = self.found(**both)
        self.assertEqual((done.json["origin"], done.stderr), ("BITNET_CPP_DIR", ""), "BITNET_CPP_PATH is not looked at")
        done = self.found(**{**both, "BITNET_CPP_DIR": ""})
        self.assertEqual((done.json["origin"], done.json["found"]["flavour"]), ("BITNET_CPP_PATH", "bitnet.cpp"))
        self.assertEqual(done.stderr.count("BITNET_CPP_PATH is deprecated"), 1)
        self.assertEqual(self.found(0, "--cpp-dir", there, **both).json["origin"], "--cpp-dir")
        self.assertEqual(self.found(4, **{"BITNET_CPP_DIR": "", "BITNET_CPP_PATH": ""}).json["origin"], "the default")

    def test_the_folder_replaces_all_tiers(self):
        folder = os.path.join(STAND_INS, "2024", TIER_2)
        report = self.found(13, BITNET_CROSSVAL_LIBDIR=folder).json
        self.assertEqual([(one["folder"], one["tier"]) for one in report["searched"]], [(folder, 0)])
        self.assertIn("libggml.so", report["found"]["problem"], "ggml lies in another folder")
        self.assertEqual(self.found(4, BITNET_CROSSVAL_LIBDIR=self.home).json["found"], None, "BITNET_CPP_DIR has one")

    def test_an_empty_variable_leaves_the_default(self):
        shutil.copytree(os.path.join(STAND_INS, "2025"), self.path("cache/bitnet_cpp"))
        self.assertEqual(self.found(0, **{"BITNET_CPP_DIR": ""}).json["origin"], "the default")

    def test_a_library_writable_by_others_is_rejected(self):
        shutil.copytree(os.path.join(STAND_INS, "2025"), self.path("tree"))
        library = self.path("tree/build/bin/libllama.so")
        for path in (library, os.path.dirname(library)):
            mode = os.stat(path).st_mode
            os.chmod(path, mode | 0o002)
            verdicts = [one["verdict"] for one in self.found(4, BITNET_CPP_DIR=self.path("tree")).json["searched"]]
            self.assertTrue(any("other users may write to" in v for v in verdicts), verdicts)
            os.chmod(path, mode)
        self.found(0, BITNET_CPP_DIR=self.path("tree"))

    def test_the_doctor_names_it(self):
        library = os.path.join(STAND_INS, "2025/build/bin/libllama.so")
        report = self.ok("doctor", "--json", env=self.variables()).json
        self.assertEqual(report["other_engines"], [{"name": "llama.cpp", "library": library, "cuda": False}])
        self.assertIn(library + ", `bitnet crossval` compares with it", self.ok("doctor", env=self.variables()).text)
        self.assertEqual(self.ok("doctor", "--json").json["other_engines"], [])

    def test_the_text_says_what_was_found(self):
        text = self.crossval(0, "find").text
        self.assertIn("build/bin: found\n", text)
        self.assertIn("it can be used: API since 2025\n", text)


if __name__ == "__main__":
    support.main()
