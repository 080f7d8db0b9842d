"""The tests that bench runs: ranges, prompts with generation, several models and backends; and its columns."""

import csv
import io
import os
import re
import shutil
import sqlite3

import support

QUICK = ("-p", "8", "-n", "4", "-r", "2", "--ceiling-mb", "0")

# Fields of llama-bench, in its order, without those that have no meaning here.
LLAMA = ["cpu_info", "gpu_info", "backends", "model_filename", "model_type", "model_size", "model_n_params", "n_batch",
         "n_ubatch", "n_threads", "cpu_mask", "cpu_strict", "poll", "type_k", "type_v", "n_gpu_layers", "split_mode",
         "tensor_split", "use_mmap", "embeddings", "n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns",
         "avg_ts", "stddev_ts", "samples_ns", "samples_ts"]


def percentile(samples, percent):
    """Nearest rank."""
    return sorted(samples)[max(-(-len(samples) * percent // 100), 1) - 1]


@support.needs_backend
class Targets(support.Case):
    def rows(self, *words):
        return self.ok("bench", *QUICK, "-o", "json", *words).json

    def names(self, *words):
        return [row["test"] for row in self.ok("bench", "-r", "1", "--ceiling-mb", "0", "-o", "json", *words).json]

    def test_ranges_name_each_size(self):
        self.assertEqual(self.names("-p", "4-12+4", "-n", "0"), ["pp4", "pp8", "pp12"])
        self.assertEqual(self.names("-p", "0", "-n", "1-4*2"), ["tg1", "tg2", "tg4"])
        self.assertEqual(self.names("-p", "3,5", "-p", "7", "-n", "0"), ["pp7"], "the last one counts")
        self.assertEqual(self.names("-p", "4", "-n", "0", "-d", "0-8+8"), ["pp4", "pp4 @ d8"])
        for bad in ("4-", "8-4", "1-8*1", "0-4*2", "1-2000000"):
            self.rejected(2, "ranges such as", "bench", "-p", bad)

    def test_a_prompt_and_what_follows(self):
        words = ("-p", "0", "-n", "0", "-pg", "16,4", "-pg", "8,2", "-d", "0,8")
        self.assertEqual(self.names(*words), ["pp16+tg4", "pp8+tg2", "pp16+tg4 @ d8", "pp8+tg2 @ d8"])
        for head in ("exact", "full"):
            row, = self.rows("-p", "0", "-n", "0", "-pg", "16,4", "--head", head)
            self.assertEqual((row["n_prompt"], row["n_gen"]), (16, 4))
            for rate, ns in zip(row["samples_ts"], row["samples_ns"], strict=True):
                self.assertAlmostEqual(rate * ns / 20e9, 1, 6)
            self.assertNotIn("gbps", row)
            # One step of the prompt, and one for each token behind it.
            steps = {k["calls"] for k in row["kernels"] if k["id"].startswith("embed")}
            self.assertEqual(steps, {2 * 5} if steps else set(), row["kernels"])
        for bad in ("16", "16,", "16,4,2", "0,4", "4,0", "x,y"):
            self.rejected(2, "--prompt-gen expects two numbers", "bench", "-pg", bad)

    def test_columns_are_those_of_llama_bench_and_ours(self):
        # Long enough that the kernel counts ticks of the processors meanwhile.
        row = self.rows("-p", "0", "-n", "512")[0]
        keys = list(row)
        shared = [key for key in LLAMA if key in row]
        self.assertEqual([key for key in keys if key in LLAMA], shared, "llama-bench's order")
        self.assertEqual(keys[:len(shared)], shared, "ours come behind")
        self.assertEqual(set(LLAMA) - set(row), {"gpu_info"} if row["backend"] == "cpu" else {"n_threads"})
        for key in ("test", "backend", "backend_requested", "backend_selected", "abi", "median_ts", "p50_ns", "p95_ns",
                    "bytes_per_token", "gbps", "kernels", "n_cpus", "kernel_release", "load_begin", "stolen_pct", "others_pct"):
            self.assertIn(key, row)
        self.assertEqual(row["p50_ns"], percentile(row["samples_ns"], 50))
        self.assertEqual(row["p95_ns"], percentile(row["samples_ns"], 95))
        self.assertAlmostEqual(row["stddev_ns"], abs(row["samples_ns"][0] - row["samples_ns"][1]) / 2 ** 0.5, 0)
        self.assertRegex(row["test_time"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
        self.assertEqual((row["n_batch"], row["n_ubatch"], row["type_k"], row["backends"]), (2048, 512, "f16", row["backend"]))
        self.assertEqual(self.rows("-p", "0", "-ub", "64", "-ctk", "q8_0")[0]["n_ubatch"], 64)
        for what in ("stolen_pct", "others_pct"):
            self.assertTrue(0 <= row[what] <= 100, row[what])
        self.assertEqual(row["kernel_release"], os.uname().release)
        readable = os.access("/sys/class/powercap/intel-rapl:0/energy_uj", os.R_OK)
        self.assertEqual("energy_j" in row, readable)

    def test_the_table_has_the_machine(self):
        text = self.ok("bench", *QUICK).text
        self.assertRegex(text, r"(?m)^machine: .* CPUs, .*kernel ")
        self.assertRegex(text, r"(?m)^load: \d+\.\d\d at the begin, .* was stolen, .* other processes$")

    def test_sqlite_reads_what_the_json_has(self):
        """SQLite reads it, and has what the JSON has."""
        text = self.ok("bench", *QUICK, "-o", "sql").text
        data = sqlite3.connect(":memory:")
        data.executescript(text + text.partition(";")[2])  # twice as many rows
        data.row_factory = sqlite3.Row
        rows = data.execute("SELECT * FROM bitnet_bench").fetchall()
        self.assertEqual([row["test"] for row in rows], ["pp8", "tg4"] * 2)
        self.assertIsNone(rows[0]["gbps"])
        self.assertGreater(rows[1]["gbps"], 0)
        self.assertEqual(rows[1]["avg_ts"], rows[3]["avg_ts"])
        plain, = self.rows("-p", "0")
        self.assertEqual(sorted(rows[0].keys()), sorted(k for k, v in plain.items() if not isinstance(v, (list, dict))))
        self.assertIn("CREATE TABLE", self.ok("bench", "--parallel", "1", "-p", "4", "-n", "2", "-r", "1", "--ceiling-mb",
                                              "0", "-o", "sql").text)

    def test_several_models_are_measured_in_order(self):
        other = self.path("other.gguf")
        shutil.copy(support.demo_model(), other)
        rows = self.rows("-m", support.demo_model(), "-m", other)
        self.assertEqual([(os.path.basename(r["model_filename"]), r["test"]) for r in rows],
                         [(os.path.basename(name), test) for name in (support.demo_model(), other) for test in ("pp8", "tg4")])
        text = self.ok("bench", *QUICK, "-m", other, "-m", other).text
        self.assertEqual(len(re.findall(r"(?m)^\| .* \| tg4 \|", text)), 2)
        self.assertEqual(text.count("kernels: "), 2)
        self.rejected(3, "does not exist", "bench", *QUICK, "-m", other, "-m", "none.gguf")
        self.rejected(2, "several models", "bench", "-m", other, "-m", other, "--parallel", "2")

    def test_the_matrix_has_each_usable_backend(self):
        rows = self.rows("--matrix", "--device", "cpu,cpu")
        self.assertEqual([(r["backend"], r["test"], r["backend_requested"]) for r in rows],
                         [("cpu", "pp8", "cpu"), ("cpu", "tg4", "cpu")] * 2)
        usable = {b["name"] for b in self.ok("backends", "why", "--json").json["backends"]
                  for d in b.get("devices", []) if d.get("usable")}
        self.assertEqual({row["backend"] for row in self.rows("--matrix")}, usable)
        self.assertEqual(len(self.rows("--device", "cpu,no-such")), 2, "without it a list is by preference")
        self.rejected(2, "--matrix", "bench", "--matrix", "--parallel", "2")

    def test_a_backend_of_the_matrix_that_is_missing(self):
        words = ("bench", *QUICK, "-o", "csv", "--matrix", "--device", "no-such,cpu")
        done = self.bitnet(*words)
        self.assertEqual((done.code, len(done.errors)), (4, 1), done)
        self.assertIn("skipped (no no-such: ", done.stderr)
        self.assertEqual([row["backend"] for row in csv.DictReader(io.StringIO(done.text))], ["cpu", "cpu"])
        self.assertEqual(self.ok(*words, "--skip-if-missing").text.count("\n"), 3)
        done = self.bitnet("bench", *QUICK, "--matrix", "--device", "no-such,none-such", "--skip-exit")
        self.assertEqual(done.code, 77, done)
        self.assertTrue(done.text.startswith("skipped (no no-such,none-such: "), done)


if __name__ == "__main__":
    support.main()
