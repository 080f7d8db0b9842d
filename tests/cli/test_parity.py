"""Each backend beside the reference, and the level that a backend claims."""

import json
import os
import shutil
import subprocess

import support

REPORT = {"schema": 1, "suite_version": "1.0", "backend": "cpu", "level": "silver"}

# (text of the report, what is shown, why)
CLAIMS = [
    (json.dumps(REPORT), "silver, suite 1.0, self-reported, of another build", "a plain one"),
    (json.dumps(dict(REPORT, level="platinum")), "no level", "a level that does not exist"),
    (json.dumps(dict(REPORT, level="gold\u001b[2J")), "no level", "an escape sequence"),
    (json.dumps(dict(REPORT, level=["gold"])), "no level", "a list in place of a word"),
    (json.dumps(dict(REPORT, suite_version="1.0.0")), "no suite version", "three numbers"),
    (json.dumps(dict(REPORT, suite_version="1" * 4000)), "no suite version", "endless digits"),
    (json.dumps(dict(REPORT, backend="vulkan")), "another backend", "a report of another backend"),
    (json.dumps([REPORT]), "no JSON object", "a list"),
    ("{", "no JSON object", "cut short"),
    ("", "no JSON object", "empty"),
    ("[" * 1_000_000, "no JSON object", "nested without end"),
    ("\x00\xff" * 100, "no JSON object", "no text at all"),
    (" " * (5 << 20), "cannot be read", "longer than any report"),
]


class Parity(support.Case):
    def setUp(self):
        super().setUp()
        self.kit = os.path.join(os.path.dirname(support.PROGRAM), "bitnet-backend-conformance")
        if not os.access(self.kit, os.X_OK):
            self.skipTest("bitnet-backend-conformance is not beside the program")
        if "cpu" not in support.report()["detected"]:
            self.skipTest("no cpu backend")

    def test_each_row_is_within_its_tolerance(self):
        got = self.ok("parity", "--backend", "cpu", "--json").json
        self.assertEqual([(one["backend"], one["device"]) for one in got["compared"]], [("cpu", 0)])
        rows = {(r["op"], r["format"]): r for r in got["compared"][0]["rows"]}
        self.assertTrue(rows["linear_ternary", "ternary2"]["exact"])
        self.assertTrue(all(r["ok"] for r in rows.values()))
        self.assertGreater(len(rows), 20)
        text = self.ok("parity", "--backend", "cpu").text
        self.assertRegex(text, r"(?m)^cpu:0 +linear_ternary\.ternary2 +\w+ +exact")
        self.assertRegex(text, r"(?m)^cpu:0 +rms_norm\.f32 +\w+ +close +[0-9.e+-]+")

    def test_backends_without_a_device_are_left_out(self):
        left = {one["backend"] for one in self.ok("parity", "--json").json["left_out"]}
        if "null" in [b["name"] for b in support.report()["backends"]]:
            self.assertIn("null", left)

    def test_settings_of_the_environment_apply(self):
        """The kit's process gets those that the device was listed with."""
        got = self.ok("parity", "--backend", "cpu", "--json", env={"BITNET_CPU_ISA": "scalar"}).json
        self.assertIn("add.scalar", {row.get("kernel") for row in got["compared"][0]["rows"]})

    def test_a_comparison_that_ends_early_has_its_last_words(self):
        library = [b["library"] for b in support.report()["backends"] if b["name"] == "cpu"][0]
        done = subprocess.run([self.kit, "--parity", "--set", "isa=none-of-them", library], capture_output=True,
                              env=self.environment(), timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(json.loads(done.stdout)["problem"], "its last words: .*set BITNET_CPU_ISA to one of: ")

    def test_invalid_requests_are_rejected(self):
        self.rejected(4, "was not found", "parity", "--backend", "none-such")
        self.rejected(2, "takes no 'cpu'", "parity", "cpu")


class Alone(support.Case):
    """The program, and what compares is not beside it or is no program here."""

    def run_alone(self):
        done = subprocess.run([self.path("bin/bitnet"), "parity"], capture_output=True,
                              env=self.environment(), timeout=support.TIMEOUT_S)
        return done.returncode, (done.stdout + done.stderr).decode()

    def test_a_missing_comparison_program_is_reported(self):
        with open(support.PROGRAM, "rb") as f:
            os.chmod(self.path("bin/bitnet", f.read()), 0o755)
        code, said = self.run_alone()
        self.assertEqual(code, 1, said)
        self.assertIn("bitnet-backend-conformance, which compares, is not beside this program", said)
        self.assertIn("install the component conformance", said)
        if not support.report()["detected"]:
            self.skipTest("no backend that computes")
        os.chmod(self.path("bin/bitnet-backend-conformance", "#!/nowhere/interpreter\n"), 0o755)
        code, said = self.run_alone()
        self.assertEqual(code, 1, said)
        self.assertIn("bin/bitnet-backend-conformance cannot be started", said)


class Claim(support.Case):
    def test_reports_beside_the_manifest(self):
        report = support.report()
        cpu = [b for b in report["backends"] if b["name"] == "cpu"]
        if not cpu:
            self.skipTest("no cpu backend")
        folder = self.path("backends.d")
        os.makedirs(folder, mode=0o755)
        with open(cpu[0]["manifest"], encoding="utf-8") as file:
            text = file.read().replace("libbitnet-backend-cpu.so", cpu[0]["library"])
        with open(os.path.join(folder, "50-cpu.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        claim = os.path.join(folder, "cpu.conformance.json")
        info = ("backends", "info", "cpu", "--backend-dir", folder)

        self.assertNotIn("conformance", self.ok(*info, "--json").json["backends"][0])
        for content, shown, why in CLAIMS:
            with self.subTest(why):
                with open(claim, "w", encoding="latin-1") as file:
                    file.write(content)
                got = self.ok(*info, "--json").json["backends"][0]["conformance"]
                self.assertIn(shown, got)
                self.assertLess(len(got), 200)
        mine = dict(REPORT, build_id=cpu[0]["build_id"])
        with open(claim, "w", encoding="utf-8") as file:
            json.dump(mine, file)
        self.assertRegex(self.ok(*info).text,
                         r"(?m)^  conformance +silver, suite 1\.0, self-reported$")
        os.remove(claim)
        os.mkfifo(claim)  # no writer: it must not be waited for
        self.assertIn("no regular file", self.ok(*info, "--json").json["backends"][0]["conformance"])
        shutil.rmtree(folder)


if __name__ == "__main__":
    support.main()
