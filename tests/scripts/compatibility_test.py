"""scripts/compatibility --check must see a page that is stale, and what nobody measured."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/compatibility"
BACKENDS = sorted(file.parent.name for file in ROOT.glob("plugins/*/*.yaml")
                  if file.parent.name != "null")

# What answers as `bitnet` does, from a file beside it.
PROGRAM = """#!{python}
import json, pathlib, sys
answers = json.loads(pathlib.Path(__file__).with_name("answers.json").read_text())
print(json.dumps(answers["info" if "info" in sys.argv else "parity"]))
"""


def answers(measured, ops=("add", "relu2"), exact=True):
    """Of a machine where the backends `measured` compute `ops`, all of them exactly or not."""
    return {"info": {"backends": [{"name": name, "license": "Apache-2.0",
                                   "devices": [{"class": "cpu"}]} for name in measured]},
            "parity": {"compared": [{"backend": name, "device": 0,
                                     "rows": [{"op": op, "format": "", "ok": True, "exact": exact}
                                              for op in ops]} for name in measured]}}


class Compatibility(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "page.md"
        program = self.folder / "bitnet"
        program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)

    def run_it(self, says, *more):
        (self.folder / "answers.json").write_text(json.dumps(says), encoding="utf-8")
        return subprocess.run([sys.executable, SCRIPT, "--program", self.folder / "bitnet", "--page",
                               self.page, *more], capture_output=True, text=True, check=False)

    def write(self, says):
        done = self.run_it(says)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_check(self):
        some = BACKENDS[1:]
        for wrote, checks, end, why in (
                (answers(BACKENDS), answers(BACKENDS), 0, "what was measured is what is there"),
                (answers(BACKENDS), answers(BACKENDS, exact=False), 1, "another cell"),
                (answers(BACKENDS), answers(BACKENDS, ["add"]), 1, "an op less"),
                (answers(BACKENDS, ["add"]), answers(BACKENDS), 1, "an op more"),
                (answers(BACKENDS), answers(some), 77, "a backend that was not measured"),
                (answers(BACKENDS), answers(some, exact=False), 1, "and another that is stale"),
                (answers(BACKENDS), answers(some, ["add"]), 1, "an op that nobody has any more"),
                (answers(BACKENDS), answers([]), 77, "no backend at all")):
            with self.subTest(why):
                self.write(wrote)
                before = self.page.read_text(encoding="utf-8")
                done = self.run_it(checks, "--check")
                self.assertEqual(done.returncode, end, done.stderr)
                self.assertEqual(self.page.read_text(encoding="utf-8"), before, "it changes nothing")
                if end == 77:
                    self.assertIn("skip: ", done.stderr)
                    if checks["info"]["backends"]:
                        self.assertIn(BACKENDS[0], done.stderr)

    def test_cells_of_what_cannot_run_here_are_kept_while_their_op_is_there(self):
        self.write(answers(BACKENDS))
        self.write(answers(BACKENDS[1:], ["add", "silu"]))
        rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]]
                for line in self.page.read_text(encoding="utf-8").splitlines() if "`" in line
                and line.startswith("|")}
        others = len(BACKENDS) - 1
        self.assertEqual(rows, {"`add`": ["exact"] * len(BACKENDS),
                                "`silu`": ["-"] + ["exact"] * others})


if __name__ == "__main__":
    unittest.main()
