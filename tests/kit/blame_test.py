"""The op that is wrong is the one that is blamed: by the kit, and by the self-test of the core."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import kit

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

    def test_kernels(self):
        # An earlier program for the product alone lacked rows 100 and 383.
        for fault, blamed in [("linear_ternary:rows:100", "linear_ternary.ternary2.reference"),
                              ("linear_ternary:rows:383", "linear_ternary.ternary2.reference"),
                              ("rope:tokens:3", "rope.reference")]:
            env = dict(os.environ, BITNET_SABOTEUR_FAULT=fault,
                       XDG_CACHE_HOME=str(self.folder / "cache"))
            done = subprocess.run([PROGRAM, "backends", "info", "saboteur", "--backend-dir",
                                   self.folder], capture_output=True, text=True, check=False,
                                  timeout=120, env=env)
            self.assertIn(f"its reference kernel {blamed} gives wrong results",
                          done.stdout + done.stderr, fault)


if __name__ == "__main__":
    unittest.main()
