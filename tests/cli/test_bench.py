"""bitnet bench: its numbers agree with each other; no test knows how fast this machine is."""

import csv
import io
import json
import signal
import subprocess
import time

import support

QUICK = ("-p", "8", "-n", "4", "-r", "2", "--ceiling-mb", "8")


@support.needs_backend
class Bench(support.Case):
    def rows(self, *words):
        return self.ok("bench", *QUICK, "-o", "json", *words).json

    def test_numbers_agree(self):
        prompt, gen = self.rows("-t", "1")
        self.assertEqual((prompt["test"], gen["test"]), ("pp8", "tg4"))
        for row, tokens in ((prompt, 8), (gen, 4)):
            self.assertEqual(len(row["samples_ns"]), 2)
            rates = [tokens * 1e9 / ns for ns in row["samples_ns"]]
            for found, expected in zip(row["samples_ts"], rates):
                self.assertAlmostEqual(found / expected, 1, 6)
            self.assertAlmostEqual(row["avg_ts"] / (sum(rates) / 2), 1, 6)
            self.assertAlmostEqual(row["median_ts"] / (sum(rates) / 2), 1, 6)
            self.assertAlmostEqual(row["avg_ns"] / (sum(row["samples_ns"]) / 2), 1, 6)
            self.assertAlmostEqual(row["stddev_ts"], abs(rates[0] - rates[1]) / 2 ** 0.5, 3)
            self.assertEqual(row["n_threads"], 1)
            self.assertEqual(row["backend"], "cpu")
        self.assertNotIn("gbps", prompt)
        ns = sum(gen["samples_ns"])
        self.assertAlmostEqual(gen["gbps"] * ns / (gen["bytes_per_token"] * 8), 1, 6)
        best = max(gen["stream"]["gbps_before"], gen["stream"]["gbps_after"])
        self.assertAlmostEqual(gen["pct_of_stream"] * best / (100 * gen["gbps"]), 1, 6)
        self.assertEqual(gen["stream"]["bytes"], 8_000_000)

    def test_bytes_are_those_of_the_file(self):
        tensors = {t["name"]: t for t in self.ok("inspect", "--json").json["tensors"]}
        embedding = tensors["token_embd.weight"]
        weights = sum(t["bytes"] for t in tensors.values()) - 32 * sum(
            t["type"] == "I2_S" for t in tensors.values())  # which carry their scale
        row = embedding["bytes"] // embedding["shape"][1]
        head = "output.weight" in tensors
        gen = self.rows("-p", "0", "--head", "full")[0]
        expected = weights + row - (embedding["bytes"] if head else 0)
        self.assertAlmostEqual(gen["bytes_per_token"] / expected, 1, 4)

    def test_kernels_say_which_head_ran(self):
        def heads(*words):
            return {k["id"].split(".")[0] for k in self.rows("-p", "0", *words)[0]["kernels"]
                    if "lm_head" in k["id"]}
        self.assertEqual(heads("--head", "top"), {"lm_head_top"})
        self.assertEqual(heads("--head", "full"), {"lm_head"})

    def test_forms(self):
        text = self.ok("bench", *QUICK, "-d", "0,16").text
        for name in ("| pp8 |", "| tg4 |", "| pp8 @ d16 |", "| tg4 @ d16 |", "stream read of 8 MB"):
            self.assertIn(name, text)
        lines = self.ok("bench", *QUICK, "-o", "jsonl").text.splitlines()
        self.assertEqual([json.loads(line)["test"] for line in lines], ["pp8", "tg4"])
        table = list(csv.DictReader(io.StringIO(self.ok("bench", *QUICK, "-o", "csv").text)))
        self.assertEqual([row["test"] for row in table], ["pp8", "tg4"])
        self.assertEqual(table[0]["gbps"], "")
        self.assertGreater(float(table[1]["gbps"]), 0)

    def test_without_a_ceiling(self):
        row = self.rows("-n", "2", "--ceiling-mb", "0", "-p", "0")[0]
        self.assertNotIn("pct_of_stream", row)
        self.assertNotIn("stream", row)
        self.assertIn("gbps", row)

    def test_what_cannot_be_measured(self):
        self.refused(2, "nothing to measure", "bench", "-p", "0", "-n", "0")
        for bad in ("x", "-1", "1,,2", "5 6", "9999999999", ""):
            self.refused(2, "--n-gen expects", "bench", f"--n-gen={bad}")
        self.refused(2, "repetitions", "bench", "-r", "0")
        self.refused(2, "one model", "bench", "a.gguf", "b.gguf")
        self.refused(3, "does not exist", "bench", "-m", self.path("none.gguf"))
        self.refused(4, "cuda", "bench", "--device", "no-such-cuda")

    def test_ctrl_c_prints_what_there_is(self):
        process = subprocess.Popen(
            [support.PROGRAM, "bench", "-p", "0", "-n", "2,1000000", "-r", "1", "--ceiling-mb", "8",
             "-o", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(), cwd=self.home)
        self.addCleanup(self.end, process)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 130, err)
        if out:  # else the first test was not done
            self.assertEqual([row["test"] for row in json.loads(out)], ["tg2"])

    def end(self, process):
        process.kill()
        process.communicate()


if __name__ == "__main__":
    support.main()
