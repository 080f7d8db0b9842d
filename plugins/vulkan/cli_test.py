"""The vulkan backend on drivers in software: the same text as cpu, and the truth about what ran."""

import glob
import os
import tempfile

import support
import divergence

PROMPT = "Once upon a time"
NOT_OURS = os.path.abspath(os.path.join(support.SOURCE, "tests", "drivers.tsan"))
WAIT = ("--probe-wait", "120000")  # ms: drivers compile, and the machine may be busy


class On:
    """What is looked at on every driver."""

    device = library = manifests = to_get_it = probes = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Probed once: the driver compiles the kernels of the self-test.
        folder = tempfile.TemporaryDirectory(prefix="bitnet-vulkan-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.probes = folder.name

    def environment(self, extra=None):
        drivers = sorted(glob.glob(self.manifests))
        driver = drivers[0] if drivers else ""
        leaks = self.path("leaks", f"leak:{self.library}\n")  # of the driver, under a sanitizer
        return super().environment({"VK_DRIVER_FILES": driver, "VK_ICD_FILENAMES": driver,
                                    "BITNET_PROBE_CACHE": self.probes,
                                    "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + leaks,
                                    "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") +
                                                    ":suppressions=" + NOT_OURS,
                                    **(extra or {})})

    @support.needs_model
    def setUp(self):
        super().setUp()
        if not glob.glob(self.manifests):
            self.skipTest(f"no driver {self.manifests} ({self.to_get_it})")
        # If it is requested, its probe runs at the caller's priority; in the background, at a lower
        # one.
        self.bitnet("run", "-p", PROMPT, "-n", "1", "--device", "vulkan")
        known = {b["name"]: b for b in self.ok("backends", "why", "--json", *WAIT).json["backends"]}
        if not {"cpu", "vulkan"} <= set(known):
            self.skipTest("the backends cpu and vulkan are not both built")
        names = [d["name"] for d in known["vulkan"].get("devices", [])]
        self.assertEqual(len(names), 1, known["vulkan"])
        self.assertIn(self.device, names[0])

    def test_same_greedy_text_as_cpu(self):
        words = ("run", "-p", PROMPT, "-n", "48", "--temp", "0", "--device")
        want, got = self.ok(*words, "cpu"), self.ok(*words, "vulkan")
        self.assertIn("selected=vulkan", got.stderr)
        self.assertEqual(got.stdout, want.stdout)
        self.assertGreater(len(got.stdout), 60)

    def test_every_kernel_that_ran_is_of_vulkan(self):
        got = self.ok("run", "-p", PROMPT, "-n", "4", "--temp", "0", "--device", "vulkan",
                      "--json").json
        self.assertEqual(got["selection"]["selected"], "vulkan")
        ran = [kernel["id"] for kernel in got["kernels"]]
        self.assertTrue(any(kernel.startswith("linear_ternary") for kernel in ran), ran)
        self.assertTrue(any(kernel.startswith("attn_paged") for kernel in ran), ran)
        self.assertEqual([kernel for kernel in ran if not kernel.endswith(".vulkan")], [])


class Lavapipe(On, support.Case):
    device, library = "llvmpipe", "libvulkan_lvp.so"
    manifests = "/usr/share/vulkan/icd.d/lvp_icd.*.json"
    to_get_it = "Debian: mesa-vulkan-drivers"

    def test_bench_shows_no_ceiling_of_the_host(self):
        for words in (("-p", "0", "-n", "2"), ("--kernel", "matmul_i2s", "--shape", "64x256",
                                                "--n", "1")):
            words = ("bench", "-r", "1", "--ceiling-mb", "8", *words)
            row, = self.ok(*words, "--device", "vulkan", "-o", "json").json
            self.assertIn(self.device, row.get("gpu_info", row.get("device_name")))
            self.assertGreater(row["gbps"], 0)
            # Neither the host's threads nor its memory are what limits this device. (cpu_info is a
            # column of llama-bench, which names the processor of every machine.)
            for key in ("stream", "pct_of_stream", "n_threads"):
                self.assertNotIn(key, row)
            self.assertNotIn("stream read", self.ok(*words, "--device", "vulkan").text)
            row, = self.ok(*words, "--device", "cpu", "-o", "json").json
            self.assertIn("pct_of_stream", row)
            self.assertGreater(row["n_threads"], 0)

    def test_a_model_split_at_any_layer_generates_the_same(self):
        words = ("run", "--temp", "0", "-n", "24", "--json", "-p", PROMPT)
        whole = self.ok(*words, "--device", "cpu").json
        for n in range(1, whole["parts"][0]["layers"]["count"] + 1):
            answer = self.ok(*words, "--device", "vulkan", "-ngl", str(n))
            self.assertEqual(answer.json["tokens"], whole["tokens"], n)
            self.assertEqual([p["device"] for p in answer.json["parts"]], ["cpu:0", "vulkan:0"])
            self.assertIn(" and head on vulkan:0", answer.stderr)

    def test_probabilities_agree_with_the_cpu_backend(self):
        divergence.check(self, divergence.divergences(self, ("cpu", "vulkan"),
                                                      PROMPT + ", there was a little bird"))


class SwiftShader(On, support.Case):
    """Has neither int8, fp16 nor 8-bit and 16-bit storage."""

    device, library = "SwiftShader", "libvk_swiftshader.so"
    manifests = os.path.join(support.SOURCE, "build", "swiftshader", "vk_swiftshader_icd.json")
    to_get_it = "scripts/setup fetches it"

    def test_layers_are_divided_over_two_devices(self):
        other = glob.glob(Lavapipe.manifests)
        if not other:
            self.skipTest(f"no driver {Lavapipe.manifests} ({Lavapipe.to_get_it})")
        both = ":".join((other[0], glob.glob(self.manifests)[0]))
        env = {"VK_DRIVER_FILES": both, "VK_ICD_FILENAMES": both, "BITNET_PROBE_CACHE": self.path("both")}
        words = ("run", "--temp", "0", "-n", "24", "--json", "-p", PROMPT)
        whole = self.ok(*words, "--device", "cpu").json
        for more, devices, counts in ((("-ts", "2,1"), ["vulkan:0", "vulkan:1"], [2, 1]),
                                      (("-ts", "0,1"), ["vulkan:1"], [3]),
                                      (("-ts", "1,1", "-ngl", "2"), ["cpu:0", "vulkan:0", "vulkan:1"], [1, 1, 1])):
            answer = self.ok(*words, "--device", "vulkan", *WAIT, *more, env=env).json
            self.assertEqual(answer["tokens"], whole["tokens"], more)
            self.assertEqual([p["device"] for p in answer["parts"]], devices)
            self.assertEqual([p["layers"]["count"] for p in answer["parts"]], counts)


if __name__ == "__main__":
    support.main()
