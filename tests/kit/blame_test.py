"""The op that is wrong is the one that is blamed: by the kit, and by the self-test of the core."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import kit

GROUPED = "linear_ternary_grouped.ternary2.reference"
PROGRAM = os.environ.get("BITNET_PROGRAM", "")
MANIFEST = """schema: 1
name: saboteur
version: 0.1.0
vendor: org.bitnet.test
license: Apache-2.0
library: {library}
abi: {{major: 0, min: 0, max: 0}}
class: cpu
priority: 0
"""


class Kit(unittest.TestCase):
    def report(self, fault, *words):
        return kit.report("--set", f"fault={fault}", *words, kit.SABOTEUR)[1]

    def test_products_and_codes(self):
        # Only the product shows the quantiser's codes, and only such codes are the product's input.
        for fault, blamed in [("linear_ternary:rows:3", "ops.linear_ternary_ternary2"),
                              ("linear_ternary:tokens:2", "ops.linear_ternary_ternary2"),
                              ("act_quant_i8:tokens:2", "ops.act_quant_i8"),
                              ("gather_rows:outputs:2", "ops.gather_rows")]:
            content = self.report(fault, "--suite", "ops")
            self.assertEqual(kit.by_status(content, "failed"), {blamed}, fault)
            # A composite with it as its body is not blamed either, since it is not tested.
            self.assertIn("ops.qkv_rope_kv", kit.by_status(content, "skipped"), fault)

    def test_programs_name_the_op(self):
        for op in ["linear_ternary", "act_quant_i8", "kv_write", "rope"]:
            content = self.report(f"{op}:tokens:2", "--test", "program.computes_what*")
            text = content["tests"][-1]["text"]
            self.assertIn("wrong by itself is " + op, text)


class SelfTest(unittest.TestCase):
    def setUp(self):
        if not PROGRAM or not pathlib.Path(PROGRAM).exists():
            self.skipTest("the program was not built")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        library = self.folder / "libbitnet-backend-saboteur.so"
        shutil.copyfile(kit.SABOTEUR, library)
        library.chmod(0o644)
        manifest = self.folder / "50-saboteur.yaml"
        manifest.write_text(MANIFEST.format(library=library), encoding="utf-8")
        manifest.chmod(0o644)

    def test_a_wrong_kernel_is_blamed(self):
        for fault, blamed, program in [
                # An earlier program for the product alone lacked rows 100 and 383.
                ("linear_ternary:rows:100", "linear_ternary.ternary2.reference", "linear_ternary.ternary2"),
                ("linear_ternary:rows:383", "linear_ternary.ternary2.reference", "linear_ternary.ternary2"),
                ("rope:tokens:3", "rope.reference", "rope"),
                # Rows that only the program with a sum has.
                ("linear_ternary_grouped:rows:40", GROUPED, "linear_ternary_grouped.ternary2"),
                ("linear_ternary_grouped:rows:350", GROUPED, "linear_ternary_grouped.ternary2, added"),
                # Codes show in products only, and the product is blamed first.
                ("act_quant_i8_grouped:tokens:2", GROUPED, "linear_ternary_grouped.ternary2"),
                ("embed_gather:formats:4", "embed_gather.reference", "embed_gather.q8_0"),
                ("embed_gather:formats:5", "embed_gather.reference", "embed_gather.q4_0"),
                ("embed_gather:formats:6", "embed_gather.reference", "embed_gather.q4_k"),
                ("embed_gather:formats:7", "embed_gather.reference", "embed_gather.q6_k"),
                ("linear_dense:formats:4", "linear_dense", "linear_dense.q8_0"),
                ("linear_dense:formats:5", "linear_dense", "linear_dense.q4_0"),
                ("linear_dense:formats:6", "linear_dense", "linear_dense.q4_k"),
                ("linear_dense:formats:7", "linear_dense", "linear_dense.q6_k"),
                # Positions that only a second step reaches.
                ("short_conv:positions:9", "short_conv.reference", "short_conv"),
                ("delta_rule:positions:9", "delta_rule.reference", "delta_rule"),
                ("delta_rule:heads:3", "delta_rule.reference", "delta_rule"),
                ("delta_gates:tokens:2", "delta_gates.reference", "delta_gates"),
                ("rms_norm_heads:heads:3", "rms_norm_heads.reference", "rms_norm_heads"),
                ("silu:tokens:2", "silu", "silu"),
                ("gelu:tokens:2", "gelu", "gelu"),
                ("sigmoid:tokens:2", "sigmoid", "sigmoid"),
                ("scale:tokens:2", "scale.reference", "scale"),
                ("columns:tokens:2", "columns.reference", "columns"),
                ("hadamard:columns:300", "hadamard.reference", "hadamard")]:
            self.blames("FAULT", fault, blamed, program)

    def test_kernels_that_differ_little(self):
        # The next larger factor; curves, parts, inputs and heads of others.
        for defect, blamed, program in [("scale", "scale.reference", "scale"), ("gelu", "silu", "gelu"),
                                        ("sigmoid", "silu", "sigmoid"), ("columns", "columns.reference", "columns"),
                                        ("gates", "delta_gates.reference", "delta_gates"),
                                        ("delta-heads", "delta_rule.reference", "delta_rule"),
                                        ("fresh", "short_conv.reference", "short_conv")]:
            self.blames("DEFECT", defect, blamed, program)

    def blames(self, kind, fault, blamed, program):
        with self.subTest(fault), tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, f"BITNET_SABOTEUR_{kind}": fault, "XDG_CACHE_HOME": cache}
            done = subprocess.run([PROGRAM, "backends", "info", "saboteur", "--backend-dir", self.folder],
                                  capture_output=True, text=True, check=False, timeout=120, env=env)
            said = done.stdout + done.stderr
            self.assertIn(f"its reference kernel {blamed} gives wrong results", said)
            self.assertRegex(said, rf"[;:] {re.escape(program)}: row \d+ of token \d+ of \d+ is ")


if __name__ == "__main__":
    unittest.main()
