"""The vulkan backend on Mesa's software driver: the same text as cpu, and the truth about what ran."""

import glob
import json
import math
import struct

import support
from test_logits import read_npy

DRIVERS = sorted(glob.glob("/usr/share/vulkan/icd.d/lvp_icd.*.json"))
PROMPT = "Once upon a time"


class Vulkan(support.Case):
    def environment(self, extra=None):
        driver = DRIVERS[0] if DRIVERS else ""
        leaks = self.path("leaks", "leak:libvulkan_lvp.so\n")  # of the driver, under a sanitizer
        return super().environment({"VK_DRIVER_FILES": driver, "VK_ICD_FILENAMES": driver,
                                    "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + leaks,
                                    **(extra or {})})

    @support.needs_model
    def setUp(self):
        super().setUp()
        if not DRIVERS:
            self.skipTest("no lavapipe (Debian: mesa-vulkan-drivers)")
        known = self.ok("backends", "why", "--json").json
        if not {"cpu", "vulkan"} <= set(known["detected"]):
            self.skipTest("the backends cpu and vulkan are not both built")

    def test_same_greedy_text_as_cpu(self):
        words = ("run", "-p", PROMPT, "-n", "48", "--temp", "0", "--device")
        want, got = self.ok(*words, "cpu"), self.ok(*words, "vulkan")
        self.assertIn("selected=vulkan", got.stderr)
        self.assertEqual(got.stdout, want.stdout)
        self.assertGreater(len(got.stdout), 60)

    def test_nothing_fell_back(self):
        got = self.ok("run", "-p", PROMPT, "-n", "4", "--temp", "0", "--device", "vulkan",
                      "--json").json
        text = json.dumps(got)
        self.assertIn("linear_ternary", text)
        self.assertNotIn(".avx", text)
        self.assertNotIn(".scalar", text)
        self.assertIn(".vulkan", text)

    def test_bench_shows_no_ceiling_of_the_host(self):
        for words in (("-p", "0", "-n", "2"), ("--kernel", "matmul_i2s", "--shape", "64x256",
                                                "--n", "1")):
            words = ("bench", "-r", "1", "--ceiling-mb", "8", *words)
            row, = self.ok(*words, "--device", "vulkan", "-o", "json").json
            self.assertIn("llvmpipe", row.get("gpu_info", row.get("device_name")))
            self.assertGreater(row["gbps"], 0)
            # Neither the host's threads nor its memory are what limits this device.
            for key in ("stream", "pct_of_stream", "n_threads", "cpu_info"):
                self.assertNotIn(key, row)
            self.assertNotIn("stream read", self.ok(*words, "--device", "vulkan").text)
            row, = self.ok(*words, "--device", "cpu", "-o", "json").json
            self.assertIn("pct_of_stream", row)
            self.assertGreater(row["n_threads"], 0)

    def test_probabilities_are_those_of_cpu(self):
        rows = {}
        for device in ("cpu", "vulkan"):
            file = self.path(device + ".npy")
            self.ok("logits", "-o", file, "-p", PROMPT + ", there was a little bird", "--all",
                    "--device", device)
            with open(file, "rb") as f:
                shape, values = read_npy(f.read())
            rows[device] = shape, struct.unpack(f"<{len(values) // 4}f", values)
        (shape, want), (same, got) = rows["cpu"], rows["vulkan"]
        self.assertEqual(shape, same)
        width = shape[-1]

        def log_softmax(row):
            most = max(row)
            total = math.log(sum(math.exp(v - most) for v in row))
            return [v - most - total for v in row]

        for at in range(0, len(want), width):
            p, q = log_softmax(want[at:at + width]), log_softmax(got[at:at + width])
            divergence = sum(math.exp(a) * (a - b) for a, b in zip(p, q))
            self.assertLess(divergence, 1e-5)


if __name__ == "__main__":
    support.main()
