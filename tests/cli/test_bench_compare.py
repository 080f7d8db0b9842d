"""bench compare: exit codes, output, and rejected files. host.bench_compare tests the statistics."""

import json

import support


def row(test="pp512", samples=(100, 100.1, 100.2, 100.3, 100.4), **more):
    return {"test": test, "model_type": "m", "backend": "cpu", "cpu_info": "a chip", "n_threads": 2,
            "samples_ts": list(samples), "version": "0.1.0", **more}


FAST = (110, 110.1, 110.2, 110.3, 110.4)
WIDE = (80, 90, 100, 110, 120)


class Compare(support.Case):
    def files(self, a, b):
        return self.path("a.json", json.dumps(a)), self.path("b.jsonl", "".join(json.dumps(r) + "\n" for r in b))

    def compare(self, a, b, *more):
        return self.bitnet("bench", "compare", *self.files(a, b), *more)

    def test_slower_ends_with_12_and_incomparable_with_13(self):
        self.assertEqual(self.compare([row()], [row(samples=FAST)]).code, 0)
        self.assertEqual(self.compare([row()], [row()]).code, 0)
        self.assertEqual(self.compare([row(samples=FAST)], [row()]).code, 12)
        self.assertEqual(self.compare([row(), row("tg128", FAST)], [row(samples=FAST), row("tg128")]).code, 12)
        self.assertEqual(self.compare([row()], [row("tg128")]).code, 13)
        self.assertEqual(self.compare([row()], [row(samples=WIDE)]).code, 13)
        self.assertEqual(self.compare([row()], [row(cpu_info="other")]).code, 13)

    def test_the_table_has_ratio_interval_and_verdict(self):
        done = self.compare([row()], [row(samples=FAST, version="0.2.0")])
        self.assertIn("| pp512, m, cpu, 2 threads | 100.20 | 110.20 | 1.100 | 1.097 to 1.103 (96.8 %) | 0.0079 | "
                      "faster |", done.text)
        self.assertIn("version: 0.1.0 in A, 0.2.0 in B", done.text)
        self.assertIn("Mann-Whitney", done.text)

    def test_json_has_the_exact_probability(self):
        (got,) = self.compare([row()], [row(samples=FAST)], "-o", "json").json
        self.assertEqual((got["verdict"], got["u"], got["p_exact"]), ("faster", 25, True))
        self.assertAlmostEqual(got["p"], 2 / 252)
        self.assertAlmostEqual(got["ratio"], 110.2 / 100.2)

    def test_incomparable_results_are_rejected_unless_forced(self):
        for other, why in ((row(samples=WIDE), "the samples of B spread by 15.8 %, more than 5 %"),
                           (row(samples=FAST, cpu_info="other"), "cpu_info differs: a chip in A, other in B"),
                           (row(samples=FAST, driver="2"), "driver differs: 1 in A, 2 in B")):
            done = self.compare([row(driver="1")], [other])
            self.assertEqual((done.code, done.stdout), (13, b""), done)
            self.assertIn(why, done.stderr)
            forced = self.compare([row(driver="1")], [other], "--force")
            self.assertEqual(forced.code, 0)
            self.assertIn(why, forced.stderr)
            self.assertIn("| pp512", forced.text)

    def test_rows_of_one_file_only_are_reported(self):
        done = self.compare([row(), row("tg128")], [row(samples=FAST), row("pp32")])
        self.assertRegex(done.stderr, r"only in \S+a\.json: tg128")
        self.assertRegex(done.stderr, r"only in \S+b\.jsonl: pp32")

    def test_files_that_cannot_be_compared_are_rejected(self):
        a, b = self.files([row()], [row()])
        self.rejected(2, "two files", "bench", "compare", a)
        self.rejected(2, "two files", "bench", "compare", a, b, b)
        self.rejected(2, "no-file", "bench", "compare", a, self.path("no-file"))
        self.rejected(2, "line 1: it is no JSON", "bench", "compare", a, self.path("t.md", "| model |"))
        self.rejected(2, "line 2: it has neither", "bench", "compare", a, self.path("t.jsonl", json.dumps(row()) + "\n{}"))
        self.rejected(2, "has no results", "bench", "compare", a, self.path("e.json", "[]"))
        self.rejected(2, "--force belongs", "bench", "--force")


@support.needs_backend
class OwnResults(support.Case):
    def test_results_of_bench_are_read(self):
        quick = ("-p", "8", "-n", "4", "-r", "5", "--ceiling-mb", "0")
        a = self.path("a.json", self.ok("bench", *quick, "-o", "json").stdout)
        b = self.path("b.jsonl", self.ok("bench", *quick, "-o", "jsonl").stdout)
        done = self.bitnet("bench", "compare", a, b, "--force", "-o", "json")
        self.assertIn(done.code, (0, 12), done)
        self.assertEqual([(r["a_samples"], r["b_samples"]) for r in done.json], [(5, 5), (5, 5)])
        kernel = self.ok("bench", "--kernel", "matmul_i2s", "--shape", "64x256", "--n", "1", "-r", "5", "--ceiling-mb",
                         "0", "-o", "json").stdout
        done = self.bitnet("bench", "compare", self.path("k.json", kernel), self.path("k.json"), "--force")
        self.assertEqual(done.code, 0, done)


if __name__ == "__main__":
    support.main()
