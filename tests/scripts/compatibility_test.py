"""scripts/compatibility --check must see a stale page and unmeasured columns."""

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

# A stand-in for `bitnet`, whose answers are in a file beside it. With BITNET_<NAME>_ISA it answers like a
# backend with kernels for several instruction sets.
PROGRAM = """#!{python}
import json, os, pathlib, sys
answers = json.loads(pathlib.Path(__file__).with_name("answers.json").read_text())
info, parity = answers["info"], answers["parity"]
for name, sets in answers.get("sets", {{}}).items():
    isa = os.environ.get("BITNET_" + name.upper() + "_ISA")
    for one in info["backends"]:
        if isa and one["name"] == name and not sets.get(isa):
            one["devices"] = []
            one["reason"] = "no; set BITNET_" + name.upper() + "_ISA to one of: " + ", ".join(sets)
    for one in parity["compared"]:
        if isa and one["backend"] == name and sets.get(isa):
            for row in one["rows"]:
                row["exact"] = sets[isa] == "exact"
print(json.dumps(info if "info" in sys.argv else parity))
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

    def test_stale_cells_and_ops_are_found(self):
        some = BACKENDS[1:]
        for wrote, checks, end, why in (
                (answers(BACKENDS), answers(BACKENDS), 0, "what was measured is what is there"),
                (answers(BACKENDS), answers(BACKENDS, exact=False), 1, "another cell"),
                (answers(BACKENDS), answers(BACKENDS, ["add"]), 1, "an op less"),
                (answers(BACKENDS, ["add"]), answers(BACKENDS), 1, "an op more"),
                (answers(BACKENDS), answers(some), 77, "a backend that was not measured"),
                (answers(BACKENDS), answers(some, exact=False), 1, "and another that is stale"),
                (answers(BACKENDS), answers(some, ["add"]), 1, "an op that no backend has any more"),
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

    def test_the_reason_is_that_of_the_comparison(self):
        """The selection says of a backend that it did not need why it would not choose it."""
        for says, why in (({"problem": "no library; its last words: install one"}, "its last words: install one"),
                          ({"left_out": "the driver hangs"}, "the driver hangs")):
            with self.subTest(why):
                here = answers(BACKENDS)
                self.write(here)
                here["info"]["backends"][0]["reason"] = "not probed"
                row = here["parity"]["compared"].pop(0)
                if "problem" in says:
                    here["parity"]["compared"].append({**row, **says, "rows": []})
                else:
                    here["parity"]["left_out"] = [{"backend": BACKENDS[0], "reason": says["left_out"]}]
                done = self.run_it(here, "--check")
                self.assertEqual(done.returncode, 77, done.stderr)
                self.assertIn(f"{BACKENDS[0]} is left out of the comparison: ", done.stderr)
                self.assertIn(why, done.stderr)
                self.assertNotIn("not probed", done.stderr)

    def shown(self, column):
        """The cells of a column by row, of whichever table has it."""
        found, head = {}, []
        for line in self.page.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            if cells and not head:
                head = cells
            if column in head and cells and cells != head and not set("".join(cells)) <= set("-"):
                found[cells[0].strip("`")] = cells[head.index(column)]
            if not cells:
                head = []
        return found

    def test_the_measured_device_is_named(self):
        """A stand-in for a driver shows that the source computes, and no GPU."""
        says = answers(BACKENDS[:3], ["add"])
        for one, name, host in zip(says["info"]["backends"], ("Stand-in (no GPU)", "llvmpipe", "Xeon"),
                                   (False, False, True)):
            one.update(host_threads=host, devices=[{"class": "gpu" if not host and "no GPU" in name else "cpu",
                                                    "name": name}])
        self.write(says)
        for name, on, cell in zip(BACKENDS, ("stand-in", "driver in software", "processor"),
                                  ("exact, stand-in", "exact", "exact")):
            with self.subTest(on):
                shown = self.shown(name)
                self.assertEqual((shown["measured on"], shown["class"], shown["add"]), (on, "cpu", cell))
        says["info"]["backends"][0]["devices"] = [{"class": "gpu", "name": "NVIDIA H100"}]
        self.assertEqual(self.run_it(says, "--check").returncode, 1, "a device is no stand-in")
        self.write(says)
        self.assertEqual(self.shown(BACKENDS[0])["measured on"], "device")
        self.assertEqual(self.shown(BACKENDS[0])["add"], "exact")

    def test_columns_of_instruction_sets(self):
        says = {**answers(BACKENDS, ["add"]), "sets": {BACKENDS[0]: {"wide": "close", "narrow": "exact", "other": None}}}
        self.write(says)
        columns = [f"{BACKENDS[0]} {name}" for name in ("wide", "narrow", "other")]
        self.assertEqual([self.shown(c) for c in columns], [{"add": "close"}, {"add": "exact"}, {}],
                         "a set that this processor lacks has no column until it is measured")
        # Another processor has the third and lacks the first.
        says["sets"][BACKENDS[0]] = {"wide": None, "narrow": "exact", "other": "close"}
        done = self.run_it(says, "--check")
        self.assertEqual(done.returncode, 0, "a column without measurements names no machine to measure on")
        self.assertIn(f"no column {columns[2]} yet", done.stderr)
        self.write(says)
        self.assertEqual([self.shown(c) for c in columns], [{"add": "close"}, {"add": "exact"}, {"add": "close"}])
        self.assertEqual(self.run_it(says, "--check").returncode, 0, "what a processor lacks is no reason to skip")
        # One of another kind, as aarch64, names other sets: all columns stay.
        says["sets"][BACKENDS[0]] = {"neon": "exact"}
        self.write(says)
        self.assertEqual([self.shown(c) for c in columns + [f"{BACKENDS[0]} neon"]],
                         [{"add": "close"}, {"add": "exact"}, {"add": "close"}, {"add": "exact"}])
        says["sets"][BACKENDS[0]] = {"wide": "exact", "narrow": "exact"}
        self.assertEqual(self.run_it(says, "--check").returncode, 1, "another cell")

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
