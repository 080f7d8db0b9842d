"""The program on the cuda backend over a driver that computes here: the same text as the cpu backend."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # pylint: disable=wrong-import-position
import divergence  # pylint: disable=wrong-import-position

PROMPTS = ("Once upon a time", "A dog and a cat", "")


class Cuda(support.Case):
    def setUp(self):
        super().setUp()
        if not support.demo_model():
            self.skipTest("models/ holds no TinyTales*.gguf")
        report = self.ok("backends", "why", "--json", "--device", "cuda", "--probe-wait", "60000").json
        if "cpu" not in [b.get("name") for b in report["backends"]]:
            self.skipTest("the cpu backend is not built, and it is the judge")
        self.assertIn("cuda", report["detected"], report["backends"])

    def run_on(self, device, prompt, *words, n=40):
        result = self.ok("run", "--device", device, "--temp", "0", "-n", str(n), "--json", "-p", prompt,
                         *words).json
        self.assertEqual(result["selection"]["selected"], device)
        return result

    def test_same_text_as_cpu(self):
        for prompt in PROMPTS:
            with self.subTest(prompt):
                on_cpu, on_cuda = self.run_on("cpu", prompt), self.run_on("cuda", prompt)
                self.assertEqual(on_cuda["tokens"], on_cpu["tokens"])
                self.assertEqual(on_cuda["text"], on_cpu["text"])
                for kernel in on_cuda["kernels"]:
                    self.assertTrue(kernel["id"].endswith(".cuda"), kernel)
                    self.assertGreater(kernel["calls"], 0)

    def test_both_heads_give_the_same_text(self):
        sampled = ("--temp", "0.9", "--top-k", "40", "--seed", "7", "--repeat-penalty", "1.1")
        for words in ((), sampled):
            with self.subTest(words):
                both, full = (self.run_on("cuda", PROMPTS[0], *words, "--head", head) for head in ("exact", "full"))
                self.assertEqual(both["tokens"], full["tokens"])
                ids = [[k["id"] for k in one["kernels"] if k["id"].startswith("linear_dense")] for one in (both, full)]
                self.assertEqual(ids, [["linear_dense_top.i8+f16.cuda"], ["linear_dense.f16.cuda"]])

    def test_an_invalid_head_setting_is_rejected(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"BITNET_CUDA_HEAD": "half"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("setting head is 'half'; expected exact, fast or full", result.stderr)

    def test_kernels_that_overlap_change_nothing(self):
        words = ("run", "--device", "cuda", "--temp", "0", "-n", "12", "--json", "-p", PROMPTS[0])
        one_by_one = self.ok(*words, env={"BITNET_CUDA_OVERLAP": "off"}).json["tokens"]
        for env in ({}, {"BITNET_CUDA_OVERLAP": "on"}, {"BITNET_STAND_IN": "ready=801"}):
            with self.subTest(env):
                self.assertEqual(self.ok(*words, env=env).json["tokens"], one_by_one)

    def test_an_invalid_overlap_setting_is_rejected(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"BITNET_CUDA_OVERLAP": "yes"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("setting overlap is 'yes'; expected on or off", result.stderr)

    def test_warp_groups_change_nothing(self):
        prompt = "The bird and the dog went to the park. " * 8
        words = ("run", "--device", "cuda", "--temp", "0", "-n", "4", "--json", "-p", prompt)
        by_tiles = self.ok(*words, env={"BITNET_CUDA_WARP_GROUPS": "off"}).json["tokens"]
        all_of_them = {"linear_ternary_narrow", "linear_ternary_wide", "linear_ternary_factored_wide"}
        for setting, without, why in (
                ("", set(), ""), ("processors=132", set(), ""), ("wrong_groups=1", all_of_them, "has other bits"),
                ("lost_boxes=1", all_of_them, "has other bits"),
                ("wrong=linear_ternary_wide", {"linear_ternary_wide"}, "has other bits"),
                ("loses=linear_ternary_many", {"linear_ternary_many"}, "loses the device")):
            with self.subTest(setting):
                answer = self.ok(*words, "--probe-wait", "60000", env=self.driver(setting))
                self.assertEqual(answer.json["tokens"], by_tiles)
                said = re.findall(r"kernel (\w+)\.cuda is disabled: it failed the self-test: (.*)", answer.stderr)
                self.assertEqual({name for name, _ in said}, without, answer.stderr)
                for _, reason in said:
                    self.assertIn(why, reason)

    def test_a_wrong_kernel_is_disabled_alone(self):
        """Kernels that nothing stands in for alone: the self-test finds them, and a plan does without."""
        words = ("run", "--device", "cuda", "--temp", "0", "-n", "8", "--json", "-c", "1024", "-p", PROMPTS[0])
        whole = self.ok(*words).json["tokens"]
        for wrong, disabled in (("attn_merge", "attn_paged_parts.cuda"),
                                # Right for one part of the context, as tokens of the first position have.
                                ("attn_token_f16_f16_4,wrong_from=3", "rope_kv_write_attn_paged.cuda"),
                                ("head_exact_f16", "linear_dense_top.i8+f16.cuda")):
            with self.subTest(wrong):
                answer = self.ok(*words, "--probe-wait", "60000", env=self.driver(f"wrong={wrong}"))
                self.assertEqual(answer.json["tokens"], whole)
                self.assertIn(f"kernel {disabled} is disabled: it failed the self-test", answer.stderr)
                self.assertNotIn(disabled, [k["id"] for k in answer.json["kernels"]])

    def test_an_invalid_warp_groups_setting_is_rejected(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"BITNET_CUDA_WARP_GROUPS": "yes"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("setting warp_groups is 'yes'; expected on or off", result.stderr)

    def test_a_long_prompt_gives_the_tokens_of_the_cpu(self):
        prompt = "The bird and the dog went to the park. " * 8
        self.assertEqual(self.run_on("cuda", prompt, n=8)["tokens"], self.run_on("cpu", prompt, n=8)["tokens"])

    def test_a_context_in_parts(self):
        """A longer context could be, so that parts of it go to groups of their own, which one more kernel merges."""
        whole, cut = (self.run_on("cuda", PROMPTS[0], "-c", context) for context in ("256", "1024"))
        self.assertEqual(cut["tokens"], whole["tokens"])
        calls = [{k["id"]: k["calls"] for k in answer["kernels"]} for answer in (whole, cut)]
        self.assertEqual(calls[1]["attn_paged_parts.cuda"], 2 * calls[0]["attn_paged.cuda"])
        self.assertNotIn("attn_paged.cuda", calls[1])

    def test_probabilities_agree_with_the_cpu_backend(self):
        divergence.check(self, divergence.divergences(
            self, ("cpu", "cuda"), PROMPTS[0] + ", there was a little bird"))

    def test_rounding_kernels_run_on_request_and_are_listed(self):
        listed = self.ok("backends", "info", "cuda").text
        self.assertIn("linear_dense_f16.f16.cuda (optimised, rounds to f16)", listed)
        prompt = PROMPTS[0] + ", there was a little bird"
        measured = divergence.divergences(self, ("cuda", "cuda"), prompt, words=((), ("--precision", "f16")))
        self.assertGreater(max(measured), 1e-12, "something is rounded")
        self.assertLess(max(measured), 2e-4, "as divergence.check has it")
        for words in ((), ("--precision", "f16", "--deterministic")):
            same = divergence.divergences(self, ("cuda", "cuda"), prompt, words=(("--deterministic",), words))
            self.assertEqual(max(abs(d) for d in same), 0, "f32 stays f32")
        # A step of generation has one row of logits, so that nothing is rounded, and nothing says so.
        plain, permitted = (self.run_on("cuda", PROMPTS[0], "--head", "full", *words)
                            for words in ((), ("--precision", "f16")))
        self.assertEqual(permitted["tokens"], plain["tokens"])
        for answer in (plain, permitted):
            self.assertEqual([k for k in answer["kernels"] if "precision" in k], [])

    def driver(self, settings):
        """A stand-in with these settings in every process, so also in the child of the probe."""
        folder = tempfile.mkdtemp(dir=self.home)
        for place in os.environ["LD_LIBRARY_PATH"].split(":"):
            if os.path.exists(os.path.join(place, "libcuda.so.1")):
                os.symlink(os.path.join(place, "libcuda.so.1"), os.path.join(folder, "libcuda.so.1"))
                break
        with open(os.path.join(folder, "libcuda.settings"), "w", encoding="utf-8") as out:
            out.write(settings)
        return {"LD_LIBRARY_PATH": folder}

    @staticmethod
    def stand_in(settings):
        return {"BITNET_STAND_IN": ",".join(f"{k}={v}" for k, v in settings.items())} if settings else {}

    def cut(self, *words, device="cuda", n=8, **settings):
        """The line of layers, warnings, and the JSON answer."""
        answer = self.bitnet("run", "--device", device, "--temp", "0", "-n", str(n), "--json", "-p", PROMPTS[0],
                           *words, env=self.stand_in(settings))
        self.assertEqual(answer.code, 0, answer.stderr)
        lines = [line for line in answer.stderr.splitlines() if line.startswith("layers: ")]
        self.assertLessEqual(len(lines), 1)
        return lines[0].removeprefix("layers: ") if lines else "", answer.stderr, answer.json

    def test_cut_anywhere_it_generates_the_same(self):
        whole = self.run_on("cpu", PROMPTS[0], n=8)
        layers = whole["parts"][0]["layers"]["count"]
        for n in range(1, layers + 1):
            with self.subTest(n):
                line, _, answer = self.cut("-ngl", str(n))
                self.assertTrue(line.endswith(" and head on cuda:0"), line)
                self.assertTrue(line.startswith("embedding"), line)
                self.assertEqual(answer["tokens"], whole["tokens"])
                self.assertEqual([p["device"] for p in answer["parts"]], ["cpu:0", "cuda:0"])
                ids = {kernel["id"].endswith(".cuda") for kernel in answer["kernels"]}
                self.assertEqual(ids, {True, False} if n < layers else ids, "both have computed")
        for n in ("all", str(layers + 1), "999"):
            line, _, answer = self.cut("-ngl", n)
            self.assertEqual((line, answer["tokens"]), ("", whole["tokens"]))

    def test_shares_without_a_device_are_refused(self):
        result = self.bitnet("run", "--device", "cuda", "-ts", "1,1", "-p", "a")
        self.assertEqual(result.code, 4, result.stderr)
        self.assertIn("--tensor-split has 2 shares, and backend cuda has no device 1", result.stderr)

    def test_layers_that_do_not_fit_run_on_the_cpu(self):
        """By what the driver says is free, before a weight is uploaded."""
        whole = self.run_on("cpu", PROMPTS[0], n=8)
        room = ("-c", "1024", "-ub", "16")  # for keys and values of a layer as much as for its weights
        seen = []
        for memory in range(1, 6):  # MiB
            with self.subTest(memory):
                line, stderr, answer = self.cut("--allow-fallback", *room, memory=memory)
                self.assertEqual(answer["tokens"], whole["tokens"])
                devices = [p["device"] for p in answer["parts"]]
                seen.append((answer["parts"][-1]["layers"]["count"] if "cuda:0" in devices else 0, len(devices)))
                if len(devices) == 1:
                    continue
                needs, free, lacks = (int(n) for n in re.search(
                    r"cuda:0 needs (\d+) bytes .* and has (\d+) free: (\d+) are missing", stderr).groups())
                self.assertEqual(needs - free, lacks)
                self.assertLessEqual(free, memory << 20)
                for words in (("-ngl", "all"), ("-sm", "none")):
                    refused = self.bitnet("run", "--device", "cuda", "-p", "a", *room, *words,
                                          env=self.stand_in({"memory": memory}))
                    self.assertNotEqual(refused.code, 0)
                    self.assertIn(f"cuda:0 needs {needs} bytes", refused.stderr)
        self.assertEqual(seen[0], (0, 1), "not one layer fits, so all are on the cpu")
        self.assertEqual(seen[-1], (3, 1), "all fit")
        self.assertIn(2, [n for _, n in seen], "some fit")
        self.assertEqual(seen, sorted(seen, key=lambda one: one[0]), "with more memory never fewer layers")

    def test_a_missing_driver_is_reported(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"LD_LIBRARY_PATH": "/nonexistent"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("libcuda.so.1 is not installed", result.stderr)

    def test_an_old_driver_is_reported(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"BITNET_STAND_IN": "version=11040"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("speaks CUDA 11.4", result.stderr)


if __name__ == "__main__":
    support.main()
