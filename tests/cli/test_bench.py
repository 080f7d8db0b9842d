"""bitnet bench: its numbers agree with each other. No test depends on the speed of the machine."""

import csv
import io
import json
import pathlib
import platform
import signal
import subprocess

import support

QUICK = ("-p", "8", "-n", "4", "-r", "2", "--ceiling-mb", "8")


@support.needs_backend
class Bench(support.Case):
    def rows(self, *words):
        return self.ok("bench", *QUICK, "-o", "json", *words).json

    def test_rates_follow_from_times(self):
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
            self.assertTrue(row["cpu_info"])
            self.assertGreaterEqual(row["max_context"], 64)
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
            t["type"] == "I2_S" for t in tensors.values())  # these types contain their scale
        row = embedding["bytes"] // embedding["shape"][1]
        head = "output.weight" in tensors
        gen = self.rows("-p", "0", "--head", "full")[0]
        expected = weights + row - (embedding["bytes"] if head else 0)
        self.assertAlmostEqual(gen["bytes_per_token"] / expected, 1, 4)

    def test_kernels_say_which_head_ran(self):
        def heads(*words):
            return {k["id"].split("+")[0].split(".f")[0]
                    for k in self.rows("-p", "0", *words)[0]["kernels"] if "lm_head" in k["id"]}
        exact = heads()
        self.assertIn(exact, ({"lm_head_top.i8"}, {"lm_head_top.i6"}))  # by the instruction set
        self.assertEqual(heads("--head", "exact"), exact)
        self.assertEqual(heads("--head", "fast"), {"lm_head_top.i4"})
        self.assertEqual(heads("--head", "full"), {"lm_head"})

    def test_a_fast_head_gives_the_same_text(self):
        texts = {self.ok("run", "-p", "Once upon a time", "-n", "24", "--temp", "0", "--head",
                         head).text for head in ("exact", "fast", "full")}
        self.assertEqual(len(texts), 1)

    def test_each_output_form_has_the_same_tests(self):
        text = self.ok("bench", *QUICK, "-d", "0,16").text
        for name in ("| pp8 |", "| tg4 |", "| pp8 @ d16 |", "| tg4 @ d16 |", "stream read of 8 MB"):
            self.assertIn(name, text)
        lines = self.ok("bench", *QUICK, "-o", "jsonl").text.splitlines()
        self.assertEqual([json.loads(line)["test"] for line in lines], ["pp8", "tg4"])
        table = list(csv.DictReader(io.StringIO(self.ok("bench", *QUICK, "-o", "csv").text)))
        self.assertEqual([row["test"] for row in table], ["pp8", "tg4"])
        self.assertEqual(table[0]["gbps"], "")
        self.assertGreater(float(table[1]["gbps"]), 0)

    def test_without_times_of_kernels(self):
        timed, = self.rows("-p", "0")
        plain, = self.rows("-p", "0", "--no-kernel-times")
        self.assertTrue(all("time_ns" in k for k in timed["kernels"]))
        self.assertFalse(any("time_ns" in k for k in plain["kernels"]))
        for what in ("id", "calls", "bytes"):
            self.assertEqual([k[what] for k in plain["kernels"]],
                             [k[what] for k in timed["kernels"]])

    def test_ceiling_mb_0_omits_the_stream_rate(self):
        row = self.rows("-n", "2", "--ceiling-mb", "0", "-p", "0")[0]
        self.assertNotIn("pct_of_stream", row)
        self.assertNotIn("stream", row)
        self.assertIn("gbps", row)

    def test_invalid_measurements_are_rejected(self):
        self.rejected(2, "nothing to measure", "bench", "-p", "0", "-n", "0")
        for bad in ("x", "-1", "1,,2", "5 6", "9999999999", ""):
            self.rejected(2, "--n-gen expects", "bench", f"--n-gen={bad}")
        self.rejected(2, "repetitions", "bench", "-r", "0")
        self.rejected(2, "one model", "bench", "a.gguf", "b.gguf")
        self.rejected(3, "does not exist", "bench", "-m", self.path("none.gguf"))
        self.rejected(4, "cuda", "bench", "--device", "no-such-cuda")

    KERNEL = ("bench", "--kernel", "matmul_i2s", "--shape", "64x256", "-r", "3", "--ceiling-mb", "8")

    def test_one_kernel_is_measured_for_each_batch(self):
        rows = self.ok(*self.KERNEL, "--n", "1,7", "-o", "json").json
        self.assertEqual([(r["shape"], r["n"]) for r in rows], [("64x256", 1), ("64x256", 7)])
        for row in rows:
            self.assertTrue(row["kernel"].startswith("linear_ternary.ternary2"), row)
            self.assertEqual(len(row["samples_ns"]), 3)
            median = sorted(row["samples_ns"])[1]
            self.assertAlmostEqual(row["median_ns"], median, 6)
            self.assertEqual(row["weight_bytes"], 64 * 256 // 4)
            self.assertEqual(row["matrices"], -(-8_000_000 // (64 * 256 // 4)))
            self.assertAlmostEqual(row["gbps"] * median / row["weight_bytes"], 1, 6)
            self.assertAlmostEqual(row["gmacs"] * median / (64 * 256 * row["n"]), 1, 6)
            best = max(row["stream"]["gbps_before"], row["stream"]["gbps_after"])
            self.assertAlmostEqual(row["pct_of_stream"] * best / (100 * row["gbps"]), 1, 6)
            self.assertEqual(row["timed_by"], "backend")

    def test_scale_groups_run_a_kernel_of_their_own(self):
        for group, kernel, n_bytes in (("32", "linear_ternary_tiles.ternary2.", 64 * (64 + 4 * 8)),
                                       ("128", "linear_ternary_tiles.ternary2.", 64 * (64 + 4 * 2)),
                                       ("256", "linear_ternary.ternary2.", 64 * (64 + 4)),
                                       ("16", "linear_ternary_ref.ternary2.scalar", 64 * (64 + 4 * 16))):
            row, = self.ok(*self.KERNEL, "--n", "1", "-r", "1", "--scale-group", group, "-o", "json").json
            if row["backend"] != "cpu":
                self.skipTest("how weights are multiplied is the backend's own affair")
            self.assertTrue(row["kernel"].startswith(kernel), row)
            self.assertEqual(row["scale_group"], int(group))
            self.assertEqual(row["weight_bytes"], n_bytes)
        self.rejected(2, "do not divide", *self.KERNEL, "--scale-group", "48")
        self.rejected(2, "has scales of its own", "bench", "--kernel", "linear_dense.f16", "--shape", "8x64",
                     "--scale-group", "32")
        self.rejected(2, "scale-group", *self.KERNEL, "--scale-group", "-1")

    def test_settings_are_measured_on_request(self):
        text = self.ok("bench", "--tune").text
        for part in ("| setting |", "| ahead | 3072 |", "| tile_rows | 64 |", "tuned: ahead=", " stream="):
            self.assertIn(part, text)
        rows = self.ok("bench", "--tune", "-o", "json").json
        if rows[-1]["setting"] == "fives":  # where the processor has them, and the text has room
            self.assertIn("avx512_vbmi", pathlib.Path("/proc/cpuinfo").read_text())
            self.assertEqual(rows.pop()["value"], "1")
        self.assertEqual([(r["setting"], r["value"]) for r in rows],
                         [("ahead", str(n)) for n in (2048, 3072, 4096, 8192, 16384)]
                         + [("tile_rows", str(16 << i)) for i in range(4)])
        for setting in ("ahead", "tile_rows"):
            used, = [r for r in rows if r["setting"] == setting and r["used"]]
            usual, = [r for r in rows if r["setting"] == setting and r["value"] in ("3072", "64")]
            self.assertGreater(used["figure"], 0)
            # Never slower than the default one, except for the rounding of printed figures.
            self.assertGreaterEqual(used["figure"] * 1.01, usual["figure"])

    def test_kernel_forms_of_output(self):
        text = self.ok(*self.KERNEL).text
        for part in ("| linear_ternary.ternary2.", "| 64x256 | 1 |", "| 64x256 | 512 |",
                     "stream read of 8 MB"):
            self.assertIn(part, text)
        lines = self.ok(*self.KERNEL, "--n", "1", "-o", "jsonl").text.splitlines()
        self.assertEqual([json.loads(line)["n"] for line in lines], [1])
        table = list(csv.DictReader(io.StringIO(
            self.ok(*self.KERNEL, "--shape", "32x128,16x128", "-n", "2", "-o", "csv").text)))
        self.assertEqual([(row["shape"], row["n"]) for row in table],
                         [("32x128", "2"), ("16x128", "2")])

    def test_names_of_bitnet_rs(self):
        """Its names of kernels are aliases, also in `backends info`; what is no kernel here says so."""
        quick = ("--shape", "64x256", "-r", "1", "-n", "1", "--ceiling-mb", "8", "--device", "cpu", "-o", "json")
        with_isa = {"BITNET_CPU_ISA": "scalar"}
        for name in ("I2S_QK256_Scalar", "i2s_qk256_scalar"):
            row, = self.ok("bench", "--kernel", name, *quick, env=with_isa).json
            self.assertEqual(row["kernel"], "linear_ternary.ternary2.scalar")
        for name, said in (("I2S_QK256_AVX2", "try BITNET_CPU_ISA=avx2"), ("I2S_QK256_CUDA", "try --device cuda"),
                           ("TL1_ARM_NEON", "try BITNET_CPU_ISA=neon"), ("IQ2S_GGML_CPU", "does not read weights of type IQ2_S"),
                           ("Llama_CUDA", "measures a model on it"), ("I2S_QK256_AVX", "has no kernel 'I2S_QK256_AVX'")):
            self.rejected(2, said, "bench", "--kernel", name, *quick, env=with_isa)
        cpu, = self.ok("backends", "info", "cpu", "--json", env=with_isa).json["backends"]
        known = {kernel["id"]: kernel["aliases"] for kernel in cpu["kernels"] if "aliases" in kernel}
        self.assertEqual(known["linear_ternary.ternary2.scalar"], ["I2S_QK256_Scalar"])
        self.assertTrue(all(id.startswith("linear_ternary.ternary2.") for id in known), known)
        text = self.ok("backends", "info", "cpu", env=with_isa).text
        self.assertIn("linear_ternary.ternary2.scalar (reference, in BitNet-rs I2S_QK256_Scalar)", text)
        if platform.machine() == "x86_64" and "avx2" in open("/proc/cpuinfo", encoding="utf-8").read():
            row, = self.ok("bench", "--kernel", "TL1_X86_AVX2", *quick, env={"BITNET_CPU_ISA": "avx2"}).json
            self.assertEqual(row["kernel"], "linear_ternary.ternary2.avx2")

    def test_kernels_are_selected_by_name(self):
        quick = ("--shape", "16x256", "--n", "1", "-r", "1", "--ceiling-mb", "0", "-o", "json")
        rows = self.ok("bench", "--kernel", "linear_dense,matmul_i2s", *quick).json
        names = [row["kernel"].split(".")[1] for row in rows]
        self.assertEqual(sorted(names), sorted({"f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q6_k",
                                                "ternary2"}))
        self.assertNotIn("pct_of_stream", rows[0])
        self.assertEqual(rows[0]["matrices"], 1)
        whole = rows[0]["kernel"]
        row, = self.ok("bench", "--kernel", whole, *quick).json
        self.assertEqual(row["kernel"], whole)

    def test_the_kernel_is_the_one_of_the_setting(self):
        row, = self.ok(*self.KERNEL, "--n", "1", "-o", "json", env={"BITNET_CPU_ISA": "scalar"}).json
        self.assertEqual(row["kernel"], "linear_ternary.ternary2.scalar")

    def test_the_list_has_each_form_of_this_cpu_once(self):
        rows = self.ok("bench", "--list", "-o", "json").json
        listed = {row["kernel"] for row in rows}
        # Every form that this CPU can run is listed once, and one of an op and format runs.
        self.assertEqual(len(listed), len(rows))
        ternary = [row for row in rows if row["kernel"].startswith("linear_ternary.")]
        self.assertIn("linear_ternary.ternary2.scalar", listed)
        self.assertEqual([row["runs"] for row in ternary], [True] + [False] * (len(ternary) - 1))
        forced = self.ok("bench", "--list", "-o", "json", env={"BITNET_CPU_ISA": "scalar"}).json
        self.assertEqual({row["kernel"] for row in forced}, listed)
        self.assertEqual([row["kernel"] for row in forced if row["runs"]
                          and row["kernel"].startswith("linear_ternary.")],
                         ["linear_ternary.ternary2.scalar"])
        self.assertIn("| linear_ternary.ternary2.scalar |", self.ok("bench", "--list").text)

    def test_unknown_and_unmeasurable_kernels_are_rejected(self):
        self.rejected(2, "has no kernel 'matmul_x'", "bench", "--kernel", "matmul_x")
        self.rejected(2, "has no kernel ''", "bench", "--kernel", "matmul_i2s,")
        self.rejected(2, "attn_paged cannot be measured alone", "bench", "--kernel", "attn_paged")
        for bad in ("", "6912", "6912x", "x2560", "0x2560", "axb", "1x2x3", "64x256,", "-1x2"):
            self.rejected(2, "--shape expects", "bench", "--kernel", "matmul_i2s", f"--shape={bad}")
        self.rejected(2, "not between", "bench", "--kernel", "matmul_i2s", "--shape", "2000000x64")
        self.rejected(2, "blocks of 32", "bench", "--kernel", "linear_dense.q8_0", "--shape", "8x33")
        self.rejected(2, "--n-gen expects", "bench", "--kernel", "matmul_i2s", "--n", "x")
        self.rejected(2, "--n is 0", "bench", "--kernel", "matmul_i2s", "--n", "0")
        self.rejected(2, "needs no model", "bench", "a.gguf", "--kernel", "matmul_i2s")
        self.rejected(2, "measures a model", "bench", "-p", "8", "--kernel", "matmul_i2s")
        if len(self.ternary_forms()) > 1:
            self.rejected(2, "does not run here", "bench", "--kernel",
                         "linear_ternary.ternary2.scalar")
        self.rejected(4, "cuda", "bench", "--kernel", "matmul_i2s", "--device", "no-such-cuda")

    def ternary_forms(self):
        return [row for row in self.ok("bench", "--list", "-o", "json").json
                if row["kernel"].startswith("linear_ternary.")]

    MANY = ("--parallel", "1,3", "-p", "70", "--shared-prefix", "66", "-n", "4")

    def test_many_requests_agree(self):
        """The prefix has one whole block of 64 tokens, which the run that does not count computes."""
        rows = self.rows(*self.MANY)
        self.assertEqual([(r["n_parallel"], r["test"]) for r in rows],
                         [(1, "pp70+tg4 shared 66"), (3, "pp70+tg4 shared 66")])
        for row in rows:
            n = row["n_parallel"]
            self.assertEqual((row["n_prompt"], row["n_gen"], row["n_shared_prefix"]), (70, 4, 66))
            self.assertEqual(len(row["samples_ns"]), 2)
            rates = [4 * n * 1e9 / ns for ns in row["samples_ns"]]
            for found, expected in zip(row["samples_ts"], rates, strict=True):
                self.assertAlmostEqual(found / expected, 1, 6)
            self.assertAlmostEqual(row["avg_ts"] / (sum(rates) / 2), 1, 6)
            self.assertAlmostEqual(row["median_ts"] / (sum(rates) / 2), 1, 6)
            self.assertAlmostEqual(row["avg_ns"] / (sum(row["samples_ns"]) / 2), 1, 6)
            self.assertEqual(row["prompt_tokens"], 70 * n * 2)
            self.assertEqual(row["cached_tokens"], 64 * n * 2)
            self.assertEqual((row["preemptions"], row["recomputed_tokens"]), (0, 0))
            for what in ("first_token", "between_tokens"):
                p50, p95, p99 = (row[f"{what}_ms_{p}"] for p in ("p50", "p95", "p99"))
                self.assertTrue(0 <= p50 <= p95 <= p99 <= max(row["samples_ns"]) / 1e6, row)
            # Alone, each token has a step of its own, and so has the end of the prompt.
            self.assertGreaterEqual(row["steps"], 2 * 4)
            self.assertLessEqual(row["steps_ns"], sum(row["samples_ns"]))
            self.assertGreater(row["bytes_per_step"], 0)
            self.assertGreater(row["max_context"], 0)
        alone, _ = rows
        self.assertEqual(alone["steps"], 2 * 4)
        for row in rows:
            if "median_decode_ts" not in row:  # a machine so busy that tokens were read late
                continue
            steps = row["median_decode_ts"] / row["n_parallel"]
            self.assertAlmostEqual(row["gbps"] * 1e9 / (steps * row["bytes_per_step"]), 1, 6)
            best = max(row["stream"]["gbps_before"], row["stream"]["gbps_after"])
            self.assertAlmostEqual(row["pct_of_stream"] * best / (100 * row["gbps"]), 1, 6)

    def test_a_step_of_many_is_counted_as_one_of_one(self):
        many, = self.rows("--parallel", "2")
        alone, = self.rows("-p", "0")
        self.assertAlmostEqual(many["bytes_per_step"] / alone["bytes_per_token"], 1, 1)  # heads look at likely rows

    def test_prompts_are_new_each_time(self):
        row, = self.rows("--parallel", "2", "-p", "130", "-n", "1")
        self.assertEqual((row["test"], row["cached_tokens"]), ("pp130+tg1", 0))
        self.assertNotIn("between_tokens_ms_p50", row)  # a single token has no time since the last one
        self.assertNotIn("median_decode_ts", row)
        self.assertNotIn("gbps", row)
        row, = self.rows("--parallel", "2", "-p", "64", "--shared-prefix", "64", "-n", "1", "--no-warmup", "-r", "1")
        self.assertLessEqual(row["cached_tokens"], 64)  # it was not known before the first of them

    def test_forms_of_many_requests(self):
        names = ("-npl", "2", "-npp", "8,9", "-ntg", "4", "-r", "1", "--ceiling-mb", "0")  # llama-batched-bench's
        text = self.ok("bench", *names).text
        for part in ("| 2 | pp8+tg4 |", "| 2 | pp9+tg4 |", "| first token, ms: p50 p95 p99 |", "| 0% |", "device: "):
            self.assertIn(part, text)
        lines = [json.loads(line) for line in self.ok("bench", *names, "-o", "jsonl").text.splitlines()]
        self.assertEqual([(row["n_parallel"], row["n_prompt"]) for row in lines], [(2, 8), (2, 9)])
        table = list(csv.DictReader(io.StringIO(self.ok("bench", *names, "-o", "csv").text)))
        self.assertEqual([row["test"] for row in table], ['pp8+tg4', 'pp9+tg4'])
        for column in ("avg_ts", "first_token_ms_p99", "between_tokens_ms_p50"):
            self.assertGreater(float(table[0][column]), 0, column)
        self.assertNotIn("pct_of_stream", table[0])

    def test_invalid_options_of_parallel_requests_are_rejected(self):
        for bad in ("0", "x", "-1", "1,,2", "1 2", "1025", "9999999999", ""):
            self.rejected(2, "--parallel expects numbers of requests from 1 to 1024", "bench", f"--parallel={bad}")
        for words, message in ((("-p", "8", "--shared-prefix", "9"), "longer than a prompt of 8 tokens"),
                               (("-p", "64,8", "--shared-prefix", "9"), "longer than a prompt of 8 tokens"),
                               (("--shared-prefix", "x"), "whole number"), (("--shared-prefix", "-1"), "from 0 to"),
                               (("-p", "0"), "at least 1"), (("-n", "4,0"), "at least 1"), (("-d", "16"), "--n-depth"),
                               (("--kernel-times",), "--kernel-times"), (("-p", "x"), "--n-prompt expects"),
                               (("--kernel", "matmul_i2s"), "--parallel measures a model")):
            self.rejected(2, message, "bench", "--parallel", "2", *words)
        self.rejected(2, "give --parallel", "bench", "--shared-prefix", "8")
        self.rejected(3, "does not exist", "bench", "--parallel", "2", "-m", self.path("none.gguf"))

    def test_a_small_budget_lets_requests_wait(self):
        """Room for one of three at a time: each of them ends all the same."""
        row, = self.rows("--parallel", "3", "-p", "600", "-n", "2", "-r", "1", "--no-warmup", "--kv-budget", "1")
        self.assertEqual(row["prompt_tokens"], 1800)
        self.assertGreaterEqual(row["steps"], 3 * 3)  # of at most 512 tokens each
        self.assertNotIn("median_decode_ts", row)

    def test_ctrl_c_prints_what_there_is(self):
        self.interrupt_a_long_test("tg2", "-p", "0")

    def test_ctrl_c_among_many_requests(self):
        self.interrupt_a_long_test("pp8+tg2", "-p", "8", "--parallel", "3")

    def interrupt_a_long_test(self, done, *words):
        trace = self.path("trace.json")
        process = subprocess.Popen(
            [support.PROGRAM, "bench", *words, "-n", "2,1000000", "-r", "1", "--ceiling-mb", "8",
             "-o", "json", "--trace", trace],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(), cwd=self.home)
        self.addCleanup(self.end, process)
        # The first test, with its warm-up, has at most 2 * 3 * (8 + 2) tokens, and a step has at least one.
        support.wait_for_trace(process, trace, '"step":61,')
        support.send_signal(process, signal.SIGINT)
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual([row["test"] for row in json.loads(out)], [done])

    def end(self, process):
        process.kill()
        process.communicate()


if __name__ == "__main__":
    support.main()
