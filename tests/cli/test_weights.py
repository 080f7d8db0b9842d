"""Checks of weights: `inspect --stats`, strict mode, and `compat-check`. Each file breaks just one rule.

The numbers of the report are computed here a second time, from the bytes.
"""

import math
import struct

import gguf_values
import support
from gguf_values import F16, F32, I2_S, Model

# docs/reference/weight-checks.md, by hand.
I2S_NORMS = [("attn_norm", 0.01, 2), ("ffn_norm", 0.5, 2), ("output_norm", 0.5, 2), ("norm", 0.25, 2)]


def part(name):
    return name.removesuffix(".weight").rsplit(".", 1)[-1]


def bounds_of(name):
    return next(((low, high) for ending, low, high in I2S_NORMS if part(name).endswith(ending)), None)


def floats(kind, content):
    code = {F32: "f", F16: "e"}[kind]
    return struct.unpack(f"<{len(content) // struct.calcsize(code)}{code}", content)


def rms(values):
    return math.sqrt(math.fsum(x * x for x in values) / len(values))


def codes(content, n):
    counts = [0, 0, 0, 0]
    for byte in content[:n // 4]:
        for shift in (0, 2, 4, 6):
            counts[byte >> shift & 3] += 1
    return counts


class Weights(support.Case):
    @classmethod
    def setUpClass(cls):
        if support.demo_model():
            cls.model = Model(support.demo_model())

    def setUp(self):
        super().setUp()
        if not support.demo_model():
            self.skipTest("models/ holds no TinyTales*.gguf")

    def changed(self, name, change, metadata=None):
        """The demo model with other bytes of one tensor."""
        tensors = dict(self.model.tensors)
        if name:
            ne, kind, content = tensors[name]
            content = bytearray(content)
            change(content, ne)
            tensors[name] = (ne, kind, bytes(content))
        path = self.path("changed.gguf")
        gguf_values.write(path, {**self.model.metadata, **(metadata or {})}, tensors)
        return path

    def scaled(self, name, factor):
        def change(content, _):
            values = floats(self.model.tensors[name][1], bytes(content))
            content[:] = struct.pack(f"<{len(values)}f", *(x * factor for x in values))
        self.assertEqual(self.model.tensors[name][1], F32)
        return self.changed(name, change)

    def first(self, kind, ending=""):
        return next(name for name, (_, k, _) in self.model.tensors.items() if k == kind and part(name).endswith(ending))

    def suspicious(self, path, *words):
        report = self.ok("inspect", path, "--stats", "--json", *words).json["weights"]
        found = {row["name"]: row["why"] for row in report["tensors"] if row["status"] != "ok"}
        self.assertEqual(report["suspicious"], len(found))
        return found

    def breaks(self, path, name, why):
        """One tensor is suspicious for one reason: exit code 8 in strict mode, 0 else."""
        found = self.suspicious(path)
        self.assertEqual(list(found), [name])
        self.assertEqual(len(found[name]), 1, found)
        self.assertRegex(found[name][0], why)
        for words, env in ((["--strict-mode"], {}), ([], {"BITNET_STRICT_MODE": "1"})):
            done = self.bitnet("inspect", path, *words, env=env)
            self.assertEqual(done.code, 8, done)
            self.assertIn(name, done.text)
            self.assertIn("This model can run.", done.text)
            self.assertEqual(done.errors, [], "the report says it")
        self.assertEqual(self.ok("compat-check", path).text.split()[3], "compatible")
        done = self.bitnet("compat-check", path, "--strict", "--json")
        self.assertEqual((done.code, done.json["status"]), (8, "suspicious"))

    def test_the_demo_model_is_not_suspicious(self):
        report = self.ok("inspect", "--stats", "--json").json["weights"]
        self.assertEqual((report["rules"], report["suspicious"]), ("bitnet-b1.58:i2_s", 0), report)
        expected = set()
        for row in report["tensors"]:
            ne, kind, content = self.model.tensors[row["name"]]
            expected.add(row["name"])
            with self.subTest(row["name"]):
                if row["kind"] == "ternary":
                    n = ne[0] * ne[1]
                    counts = codes(content, n)
                    self.assertEqual(sum(counts), n)
                    self.assertEqual(row["code_3"], counts[3])
                    self.assertAlmostEqual(row["zero_fraction"], counts[1] / n, places=12)
                    self.assertEqual(row["scale"], struct.unpack_from("<f", content, n // 4)[0])
                else:
                    self.assertAlmostEqual(row["rms"] / rms(floats(kind, content)), 1, places=9)
                    self.assertEqual((row["lowest"], row["highest"]), bounds_of(row["name"]))
        self.assertEqual(expected, {name for name, (ne, kind, _) in self.model.tensors.items()
                                    if kind == I2_S or (len(ne) == 1 and "norm" in name)})
        self.ok("inspect", "--strict-mode")
        self.ok("compat-check", "--strict")
        self.assertIn("weights, by the rules bitnet-b1.58:i2_s:", self.ok("inspect", "--stats").text)

    def test_norms_outside_of_their_bounds_are_reported(self):
        for ending in ("attn_norm", "ffn_norm", "attn_sub_norm", "output_norm"):
            name = self.first(F32, ending)
            low, high = bounds_of(name)
            now = rms(floats(F32, self.model.tensors[name][2]))
            for to in (0, 1e4, low * 0.99, high * 1.01):
                with self.subTest(name, rms=to):
                    self.breaks(self.scaled(name, to / now), name, r"^rms .* is outside of ")
            for to in (low * 1.01, high * 0.99):
                with self.subTest(name, rms=to):
                    self.assertEqual(self.suspicious(self.scaled(name, to / now)), {})

    def test_scales_outside_of_their_bounds_are_reported(self):
        name = self.first(I2_S)

        def scale(value):
            return self.changed(name, lambda c, ne: struct.pack_into("<f", c, ne[0] * ne[1] // 4, value))
        self.breaks(scale(0.0), name, "^scale 0 is not a finite positive number$")
        self.breaks(scale(1e30), name, "^scale 1e.30 is outside of ")
        self.breaks(scale(9e-6), name, "^scale 9e-06 is outside of ")
        self.assertEqual(self.suspicious(scale(1.0)), {})
        for value in (-1.0, math.inf, math.nan):  # the model does not load at all
            with self.subTest(value=value):
                path = scale(value)
                self.assertEqual(self.bitnet("inspect", path, "--strict-mode").code, 3)
                self.assertEqual(self.bitnet("compat-check", path, "--strict").code, 3)

    def test_code_3_is_reported(self):
        name = self.first(I2_S)

        def change(content, _):
            content[0] |= 3
        was = self.model.tensors[name][2][0]
        self.assertNotEqual(was & 3, 3)
        self.breaks(self.changed(name, change), name, "^code 3, which no writer makes, is there 1 times$")

    def test_a_wrong_fraction_of_zeros_is_reported(self):
        name = self.first(I2_S)

        def filled(byte):
            def change(content, ne):
                content[:ne[0] * ne[1] // 4] = bytes([byte]) * (ne[0] * ne[1] // 4)
            return self.changed(name, change)
        self.breaks(filled(0b01010101), name, "^the fraction of zeros 1 is outside of ")
        self.breaks(filled(0b10001000), name, "^the fraction of zeros 0 is outside of ")

    def test_rules_by_name(self):
        name = self.first(F32, "attn_norm")
        now = rms(floats(F32, self.model.tensors[name][2]))
        path = self.scaled(name, 0.1 / now)  # fine for I2_S, not for the others
        self.assertEqual(self.suspicious(path), {})
        self.assertIn(name, self.suspicious(path, "--gate", "f16"))
        self.assertIn(name, self.suspicious(path, "--gate", "generic"))
        self.assertEqual(self.suspicious(self.scaled(name, 1e4), "--gate", "none"), {})
        self.ok("inspect", self.scaled(name, 1e4), "--strict-mode", "--gate", "none")
        self.rejected(2, "--gate", "inspect", path, "--stats", "--gate", "f17")

    def test_rules_by_the_file(self):
        for kind, rules in ((0, "f16"), (1, "f16"), (32, "f16"), (40, "i2_s"), (36, "i2_s")):
            path = self.changed(None, None, {"general.file_type": kind})
            report = self.ok("inspect", path, "--stats", "--json").json["weights"]
            self.assertEqual(report["rules"], f"bitnet-b1.58:{rules}")

    def test_projections_in_f16_have_their_own_bounds(self):
        """Linear layers in F16 have a range of their own."""
        name = next(n for n, (_, kind, _) in self.model.tensors.items() if kind == I2_S)
        ne = self.model.tensors[name][0]
        for size, rules, fine in ((0.05, 1, True), (0.39, 1, True), (0.5, 1, False), (0.005, 1, False),
                                  (0.005, 40, True), (0.39, 40, False)):
            tensors = {**self.model.tensors, name: (ne, F16, struct.pack("<e", size) * (ne[0] * ne[1]))}
            path = self.path("f16.gguf")
            gguf_values.write(path, {**self.model.metadata, "general.file_type": rules}, tensors)
            report = self.bitnet("inspect", path, "--stats", "--json").json["weights"]
            row = next(row for row in report["tensors"] if row["name"] == name)
            self.assertEqual((row["kind"], row["status"] == "ok"), ("projection", fine), row)
            self.assertAlmostEqual(row["rms"], struct.unpack("<e", struct.pack("<e", size))[0], places=9)

    def test_compat_check_counts_tensors_and_keys(self):
        done = self.ok("compat-check", "--json").json
        self.assertEqual((done["status"], done["version"], done["problems"]), ("compatible", 3, []))
        self.assertEqual(done["n_tensors"], len(self.model.tensors))
        self.assertEqual(done["n_kv"], len(self.model.metadata))
        self.assertNotIn("weights", done)
        self.assertNotIn("metadata", done)
        shown = self.ok("compat-check", "--json", "--show-kv", "--kv-limit", "3").json["metadata"]
        self.assertEqual(sorted(shown), sorted(self.model.metadata)[:3])
        self.assertIn("\nmetadata\n", self.ok("compat-check", "--show-kv").text)
        with open(support.demo_model(), "rb") as file:
            content = file.read()
        newer = self.path("newer.gguf", content[:4] + struct.pack("<I", 9) + content[8:])
        cut = self.path("cut.gguf", content[:len(content) - 4096])
        self.rejected(3, "version", "compat-check", newer)
        self.rejected(3, "", "compat-check", self.path("short.gguf", b"GGUF"))
        self.rejected(3, "", "compat-check", self.path("text.gguf", b"hello"))
        done = self.bitnet("compat-check", cut, "--json", "--strict")
        self.assertEqual((done.code, done.json["status"]), (3, "incompatible"))
        self.assertTrue(done.json["problems"])
        self.rejected(2, "found also", "compat-check", "a", "b")


if __name__ == "__main__":
    support.main()
