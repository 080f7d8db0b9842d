"""Gates of run, bench and batch: their measurements, and the exit codes 9, 10, 11 and 77."""

import json
import time

import support

RUN = ("run", "-p", "Once upon a time", "-n", "6", "--temp", "0")
BENCH = ("bench", "-p", "4", "-n", "4", "-r", "2", "--ceiling-mb", "0")
ALL = ("--min-tps", "0.001", "--max-wall-ms", "1e9", "--max-rss-mb", "1e6", "--check-determinism", "2")
NAMES = ["min-tps", "max-wall-ms", "max-rss-mb", "check-determinism"]


def by_name(rows):
    return {row["name"]: row for row in rows}


@support.needs_backend
class Gates(support.Case):
    def failed(self, code, gate, *words, env=None):
        done = self.bitnet(*words, env=env)
        self.assertEqual(done.code, code, done)
        self.assertEqual(len(done.errors), 1, done)
        self.assertIn(f"gate {gate}: ", done.errors[0])
        self.assertIn(": failed", done.errors[0])
        return done

    def test_passed_gates_change_no_text(self):
        done = self.ok(*RUN, *ALL)
        lines = [line for line in done.stderr.splitlines() if line.startswith("gate ")]
        self.assertEqual([line.split()[1].rstrip(":") for line in lines], NAMES, done)
        self.assertTrue(all(line.endswith(": passed") for line in lines), done)
        self.assertEqual(done.text, self.ok(*RUN).text, "gates change no text")
        self.assertNotIn("gate ", self.ok(*RUN, *ALL, "-q").stderr)

    def test_run_measures_what_its_report_says(self):
        begun = time.monotonic()
        out = self.ok(*RUN, *ALL, "--json").json
        took_ms = (time.monotonic() - begun) * 1000
        gates = by_name(out["gates"])
        self.assertEqual(list(gates), NAMES)
        self.assertTrue(all(gate["passed"] for gate in gates.values()), gates)
        self.assertAlmostEqual(gates["min-tps"]["measured"] / out["timings"]["predicted_per_second"], 1, 6)
        in_calls = out["timings"]["prompt_ms"] + out["timings"]["predicted_ms"]
        self.assertLess(in_calls, gates["max-wall-ms"]["measured"])
        self.assertLess(gates["max-wall-ms"]["measured"], took_ms)
        self.assertEqual((gates["check-determinism"]["limit"], gates["check-determinism"]["measured"]), (2, 2))
        self.assertGreater(gates["max-rss-mb"]["measured"], 5)  # the program and a model of some megabytes
        self.assertNotIn("gates", self.ok(*RUN, "--json").json)

    def test_each_fails_with_its_code(self):
        for words in (RUN, BENCH):
            with self.subTest(words[0]):
                self.failed(9, "min-tps", *words, "--min-tps", "1e8")
                self.failed(9, "max-wall-ms", *words, "--max-wall-ms", "0.5")
                self.failed(10, "max-rss-mb", *words, "--max-rss-mb", "1")
        done = self.failed(10, "min-tps", *RUN, "--min-tps", "1e8", "--max-rss-mb", "1")
        self.assertIn("gate max-rss-mb: ", done.errors[0], "the highest code, and all that failed")
        done = self.failed(9, "min-tps", *RUN, "--json", "--min-tps", "1e8")
        self.assertFalse(done.json["gates"][0]["passed"], "the report is printed all the same")
        self.failed(9, "min-tps", *RUN, "-n", "0", "--min-tps", "0")  # nothing was measured

    def test_a_random_text_is_the_same_again(self):
        out = self.ok("run", "-p", "Once", "-n", "12", "--check-determinism", "3", "--json", "--temp", "1").json
        self.assertEqual(out["gates"][0]["measured"], 3)
        out = self.ok("run", "-p", "Once", "-n", "12", "--check-determinism", "2", "--json", "--seed", "3",
                      "--spec-type", "ngram", "--sliding-window", "8").json
        self.assertEqual(out["gates"][0]["measured"], 2)

    def test_bench_judges_its_measurements(self):
        rows = self.ok(*BENCH, *ALL, "-d", "0,9", "-o", "json").json
        self.assertEqual(len(rows), 4)
        for row in rows:
            gates = by_name(row["gates"])
            self.assertEqual(list(gates), NAMES)
            self.assertAlmostEqual(gates["min-tps"]["measured"] / min(r["median_ts"] for r in rows), 1, 6)
            self.assertEqual(gates["check-determinism"]["measured"], 2)
            self.assertGreater(gates["max-wall-ms"]["measured"], sum(sum(r["samples_ns"]) for r in rows) / 1e6)
        text = self.failed(9, "min-tps", *BENCH, "--min-tps", "1e8").text
        self.assertIn("| tg4 |", text, "the table is printed all the same")
        rows = self.ok("bench", "--parallel", "2", "-p", "4", "-n", "4", "-r", "1", "--ceiling-mb", "0", "-o", "json",
                       *ALL[:6]).json
        self.assertEqual(list(by_name(rows[0]["gates"])), NAMES[:3])

    def test_batch_judges_its_measurements(self):
        self.path("in.jsonl", "".join(json.dumps(
            {"custom_id": str(i), "method": "POST", "url": "/v1/completions",
             "body": {"prompt": "Once", "max_tokens": 4}}) + "\n" for i in range(3)))
        self.failed(9, "min-tps", "batch", "in.jsonl", "a.jsonl", "--min-tps", "1e8")
        self.ok("batch", "in.jsonl", "b.jsonl", *ALL[:6])
        done = self.failed(9, "min-tps", "batch", "in.jsonl", "b.jsonl", "--min-tps", "0")
        self.assertIn("nothing was measured", done.errors[0])
        self.rejected(2, "check-determinism", "batch", "in.jsonl", "c.jsonl", "--check-determinism", "2")

    def test_variables_set_gates(self):
        self.failed(9, "min-tps", *RUN, env={"BITNET_MIN_TPS": "1e8"})
        for name in ("BITNET_MAX_WALL_MS", "BITNET_MAX_MS"):
            self.failed(9, "max-wall-ms", *RUN, env={name: "0.5"})
        self.failed(10, "max-rss-mb", *RUN, env={"BITNET_MAX_RSS_MB": "1"})
        self.ok(*RUN, "--min-tps", "0.001", env={"BITNET_MIN_TPS": "1e8"})
        out = self.ok(*RUN, "--json", env={"BITNET_CHECK_DETERMINISM": "1"}).json
        self.assertEqual(out["gates"][0]["measured"], 1)
        self.rejected(2, "BITNET_MIN_TPS expects a number", *RUN, env={"BITNET_MIN_TPS": "fast"})

    def test_where_there_is_nothing_to_judge(self):
        self.rejected(2, "--min-tps has nothing to judge", "run", "-cnv", "--min-tps", "1")
        self.rejected(2, "--max-rss-mb has nothing to judge", "bench", "--list", "--max-rss-mb", "1")
        self.ok("bench", "--list", env={"BITNET_MIN_TPS": "1"})
        self.rejected(2, "--check-determinism is of one session", *BENCH, "--parallel", "2", "--check-determinism", "1")
        for bad in (("--min-tps", "x"), ("--max-wall-ms", "-1"), ("--check-determinism", "1.5"), ("--max-rss-mb", "nan")):
            self.rejected(2, f"{bad[0]} expects", *RUN, *bad)


@support.needs_backend
class Skips(support.Case):
    ABSENT = ("--device", "no-such")

    def test_a_missing_backend_skips_the_run(self):
        for words in (RUN, BENCH):
            with self.subTest(words[0]):
                self.assertEqual(self.bitnet(*words, *self.ABSENT).code, 4)
                for flags, code in ((("--skip-if-missing",), 0), (("--skip-exit",), 77), (("--skip-if-missing", "--skip-exit"), 77)):
                    done = self.bitnet(*words, *self.ABSENT, *flags)
                    self.assertEqual((done.code, done.errors), (code, []), done)
                    self.assertRegex(done.text, r"\Askipped \(no no-such: .*\)\n\Z")
        done = self.bitnet(*RUN, *self.ABSENT, env={"BITNET_SKIP_IF_MISSING": "1"})
        self.assertEqual(done.code, 0, done)
        self.assertIn("no backend for NPUs", self.ok(*RUN, "--device", "npu", "--skip-if-missing").text)
        self.path("in.jsonl", b"")
        self.assertIn("skipped (no no-such: ", self.ok("batch", "in.jsonl", "o.jsonl", *self.ABSENT, "--skip-if-missing").text)

    def test_a_backend_that_is_installed_says_why(self):
        for name in [row["name"] for row in self.ok("backends", "list", "--json").json["backends"]]:
            why = self.bitnet("backends", "why", "--device", name, "--json")
            reason = next(row["reason"] for row in why.json["backends"] if row["name"] == name)
            if why.code == 4 and reason:
                done = self.ok(*RUN, "--device", name, "--skip-if-missing")
                self.assertEqual(done.text, f"skipped (no {name}: {reason})\n")
                return
        self.skipTest("every backend of this build computes")

    def test_programs_read_it(self):
        for words in ((*RUN, "--json"), (*BENCH, "-o", "json"), (*BENCH, "-o", "jsonl")):
            out = self.ok(*words, *self.ABSENT, "--skip-if-missing").json
            self.assertEqual((out["skipped"], out["requested"]), (True, "no-such"))
            self.assertTrue(out["reason"])
        done = self.ok(*BENCH, "-o", "csv", *self.ABSENT, "--skip-if-missing")
        self.assertEqual(done.text, "")
        self.assertIn("skipped (no no-such: ", done.stderr)

    def test_other_failures_are_not_skipped(self):
        for code, words in ((3, ("-m", "none.gguf")), (2, ("-c", "x"))):
            self.assertEqual(self.bitnet(*RUN, *words, "--skip-if-missing").code, code)
        self.assertNotIn("skipped", self.ok(*RUN, "--skip-if-missing").text)


if __name__ == "__main__":
    support.main()
