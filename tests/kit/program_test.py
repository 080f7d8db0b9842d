"""The program's own behaviour: options, expectations, levels, reports."""

import datetime
import json
import pathlib
import shutil
import tempfile
import unittest

import kit


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def expectations(self, *lines):
        file = pathlib.Path(self.folder.name) / "x.conformance"
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return file

    def test_wrong_arguments_are_rejected(self):
        for words, said in [
                ([], "the plugin is missing"),
                (["--suite", "frob", "x.so"], "no suite 'frob'"),
                (["--level", "lead", "x.so"], "bronze, silver or gold"),
                (["--level", "gold", "--suite", "abi", "x.so"], "leave --suite and --test out"),
                (["--device", "-1", "x.so"], "a number from 0"),
                (["--timeout", "0", "x.so"], "a number from 1"),
                (["--set", "x", "x.so"], "KEY=VALUE"),
                (["--test", "rope", "x.so"], "--test takes SUITE.TEST"),
                (["--frob=1", "x.so"], "unknown option --frob"),
                (["--json"], "takes a value"),
                (["a.so", "b.so"], "one FILE.so"),
                (["/nowhere.so"], "is no file")]:
            status, _, err = kit.run(*words)
            self.assertEqual(status, 2, words)
            self.assertIn(said, err)
        for word in ["--help", "--list"]:
            status, out, _ = kit.run(word)
            self.assertEqual(status, 0)
            self.assertIn("lifecycle" if word == "--list" else "--expectations", out)

    def test_the_report_of_a_good_backend_has_level_gold(self):
        status, content = kit.report(kit.TIER0)
        self.assertEqual(status, 0)
        self.assertEqual(content["schema"], 1)
        self.assertEqual((content["backend"], content["version"], content["level"]),
                         ("tier0", "0.1.0", "gold"))
        self.assertRegex(content["build_id"], r"^[0-9a-f]{40}$")
        self.assertRegex(content["suite_version"], r"^\d+\.\d+$")
        self.assertNotIn("missing", content)
        self.assertEqual(content["counts"]["failed"], 0)
        self.assertEqual(content["counts"]["passed"], len(kit.by_status(content, "passed")))
        self.assertEqual({t.split(".")[0] for t in kit.by_status(content, "passed")},
                         {"lint", "abi", "ops", "sizes", "program", "sequences", "robustness", "hygiene", "threads",
                          "lifecycle", "unload"})

    def test_the_report_replaces_a_file_and_nothing_else(self):
        folder = pathlib.Path(self.folder.name)
        old, link = folder / "old.json", folder / "link.json"
        old.write_text("old", encoding="utf-8")
        beside = folder / "same.json"
        beside.hardlink_to(old)
        self.assertEqual(kit.run("--suite", "abi", "--json", old, kit.TIER0)[0], 0)
        self.assertEqual(beside.read_text(encoding="utf-8"), "old", "it was written in place")
        self.assertEqual(json.loads(old.read_text(encoding="utf-8"))["backend"], "tier0")
        link.symlink_to("/dev/full")
        status, _, err = kit.run("--suite", "abi", "--json", link, kit.TIER0)
        self.assertEqual(status, 1)
        self.assertIn("No space left", err)
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())
        status, _, err = kit.run("--suite", "abi", "--json", folder / "no/x.json", kit.TIER0)
        self.assertEqual(status, 1)
        self.assertIn("No such file", err)

    def test_one_suite_is_no_level(self):
        status, content = kit.report("--suite", "abi", kit.TIER0)
        self.assertEqual((status, content["level"]), (0, "none"))
        self.assertIn("lint", content["missing"])

    def test_one_test_is_no_level(self):
        status, content = kit.report("--test", "ops.rope*", "--test", "abi.info*", kit.TIER0)
        self.assertEqual((status, content["level"]), (0, "none"))
        self.assertEqual({t["test"] for t in content["tests"]},
                         {"abi.opens", "ops.rope", "abi.info_names_the_backend"})

    def test_the_report_says_how_weights_were_kept(self):
        _, content = kit.report("--test", "ops.linear_ternary*",
                                "--test", "program.weights_in_place*", kit.TIER0)
        kept = {t["test"]: t.get("weights") for t in content["tests"]}
        self.assertIn("copied: host/ternary2-rows/1", kept["ops.linear_ternary_ternary2"])
        self.assertIn("in place: host/ternary2-rows/1",
                      kept["program.weights_in_place_give_the_same"])

    def test_the_report_says_how_a_second_form_was_packed(self):
        cpu = kit.PLUGINS / "libbitnet-backend-cpu.so"
        if not cpu.exists():
            self.skipTest("no cpu backend")
        _, content = kit.report("--test", "program.packed_weights*", cpu)
        # Of 6 bits where the instruction set has a kernel for them.
        packed = "second form packed by the plugin: cpu/"
        self.assertTrue({packed + "i8-rows+errors/1", packed + "i6-row-pairs+errors/1"}
                        & set(content["tests"][-1]["weights"]), content["tests"][-1])

    def test_level_must_be_reached(self):
        # It computes five ops only: no program runs.
        status, content = kit.report("--level", "bronze", kit.fake("computes"))
        self.assertEqual((status, content["level"]), (1, "none"))
        self.assertIn("program", content["missing"])

    def test_a_backend_without_the_device_is_unavailable(self):
        status, content = kit.report(kit.PLUGINS / "libbitnet-backend-null.so")
        self.assertEqual((status, content["level"]), (77, "none"))
        self.assertEqual(content["unavailable"], "the backend has no device here")
        self.assertIn("abi.info_names_the_backend", kit.by_status(content, "passed"))
        status, content = kit.report("--device", 7, kit.TIER0)
        self.assertEqual((status, content["unavailable"]),
                         (77, "there is no device 7: the backend has 1"))

    def test_settings_reach_the_backend(self):
        cpu = kit.PLUGINS / "libbitnet-backend-cpu.so"
        if not cpu.exists():
            self.skipTest("no cpu backend")
        status, content = kit.report("--set", "isa=neon9", "--suite", "ops", cpu)
        self.assertEqual(status, 77)
        self.assertIn("neon9", content["unavailable"])

    def test_parity_has_the_error_of_each_op(self):
        status, out, _ = kit.run("--parity", kit.TIER0)
        self.assertEqual(status, 0)
        rows = {(r["op"], r["format"]): r for r in json.loads(out)["rows"]}
        ternary = rows["linear_ternary", "ternary2"]
        self.assertEqual((ternary["exact"], ternary["ok"], ternary["max_ulp"]), (True, True, 0))
        self.assertGreater(ternary["numbers"], 1000)
        self.assertFalse(rows["rms_norm", "f32"]["exact"])
        self.assertLess(rows["rms_norm", "f32"]["nmse"], 1e-12)
        status, out, _ = kit.run("--parity", kit.fake("wrong-kernel"))
        self.assertEqual(status, 1)
        rows = {(r["op"], r["format"]): r for r in json.loads(out)["rows"]}
        self.assertFalse(rows["linear_ternary", "ternary2"]["ok"])
        self.assertNotIn("ok", rows["silu", ""])

    def wrong(self, *lines):
        return kit.report("--suite", "ops", "--expectations", self.expectations(*lines),
                          kit.fake("wrong-kernel"))

    def test_expected_failures_are_accepted_until_their_date(self):
        ternary = "ops.linear_ternary_ternary2"
        later = (datetime.date.today() + datetime.timedelta(days=40)).isoformat()
        status, content = self.wrong(f"known-failure {ternary} {later} the third row is off")
        self.assertEqual(status, 0)
        self.assertEqual(kit.by_status(content, "known-failure"), {ternary})
        status, content = self.wrong(f"unsupported {ternary} the third row is off")
        self.assertEqual(status, 0)
        self.assertEqual(kit.by_status(content, "unsupported"), {ternary})
        status, content = self.wrong(f"known-failure {ternary} 2020-01-01 the third row is off")
        self.assertEqual((status, kit.by_status(content, "failed")), (1, {ternary}))
        status, content = self.wrong("# nothing", "", f"known-failure {ternary} {later} off",
                                     "unsupported ops.gather_rows it gathers nothing")
        self.assertEqual((status, kit.by_status(content, "failed")), (1, {"ops.gather_rows"}))
        for line, said in [("frob a.b c", "expected unsupported"),
                           ("unsupported ops.silu", "reason is missing"),
                           ("unsupported silu why", "expected SUITE.TEST"),
                           ("known-failure ops.silu tomorrow why", "YYYY-MM-DD"),
                           ("known-failure ops.silu 2030-13-01 why", "YYYY-MM-DD"),
                           ("unsupported a.b c\nunsupported a.b c", "a line already")]:
            status, _, err = kit.run("--suite", "abi", "--expectations", self.expectations(line),
                                     kit.TIER0)
            self.assertEqual(status, 2, line)
            self.assertIn(said, err)

    def test_known_failures_are_no_level(self):
        later = (datetime.date.today() + datetime.timedelta(days=40)).isoformat()
        status, content = kit.report(
            "--expectations",
            self.expectations(f"known-failure ops.linear_ternary_ternary2 {later} x"),
            kit.fake("wrong-kernel"))
        self.assertEqual(content["level"], "none")
        self.assertIn("is known to fail", content["missing"])

    def test_expectations_beside_the_plugin(self):
        file = pathlib.Path(self.folder.name) / "some.so"
        shutil.copy(kit.TIER0, file)
        (file.parent / "tier0.conformance").write_text("unsupported ops.silu it is not\n",
                                                       encoding="utf-8")
        status, content = kit.report("--suite", "ops", file)
        self.assertEqual((status, kit.by_status(content, "failed")), (1, {"ops.silu"}))

    def test_expectations_about_no_test(self):
        status, content = kit.report("--expectations", self.expectations("unsupported ops.frob x"),
                                     kit.fake("computes"))
        self.assertEqual((status, kit.by_status(content, "failed")), (1, {"ops.frob"}))


if __name__ == "__main__":
    unittest.main(verbosity=2)
