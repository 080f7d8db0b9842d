"""The vulkan backend on drivers in software: the same text as cpu, and the truth about what ran."""

import glob
import json
import math
import os
import struct

import support
from test_logits import read_npy

PROMPT = "Once upon a time"
NOT_OURS = os.path.abspath(os.path.join(support.SOURCE, "tests", "drivers.tsan"))
WAIT = ("--probe-wait", "120000")  # ms: drivers compile, and the machine may be busy


class On:
    """What holds on every driver."""

    device = library = manifests = to_get_it = ""

    def environment(self, extra=None):
        drivers = sorted(glob.glob(self.manifests))
        driver = drivers[0] if drivers else ""
        leaks = self.path("leaks", f"leak:{self.library}\n")  # of the driver, under a sanitizer
        return super().environment({"VK_DRIVER_FILES": driver, "VK_ICD_FILENAMES": driver,
                                    "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + leaks,
                                    "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") +
                                                    ":suppressions=" + NOT_OURS,
                                    **(extra or {})})

    @support.needs_model
    def setUp(self):
        super().setUp()
        if not glob.glob(self.manifests):
            self.skipTest(f"no driver {self.manifests} ({self.to_get_it})")
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

    def test_nothing_fell_back(self):
        got = self.ok("run", "-p", PROMPT, "-n", "4", "--temp", "0", "--device", "vulkan",
                      "--json").json
        text = json.dumps(got)
        self.assertIn("linear_ternary", text)
        self.assertNotIn(".avx", text)
        self.assertNotIn(".scalar", text)
        self.assertIn(".vulkan", text)

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


class Lavapipe(On, support.Case):
    device, library = "llvmpipe", "libvulkan_lvp.so"
    manifests = "/usr/share/vulkan/icd.d/lvp_icd.*.json"
    to_get_it = "Debian: mesa-vulkan-drivers"


class SwiftShader(On, support.Case):
    """Has neither int8, fp16 nor 8-bit and 16-bit storage."""

    device, library = "SwiftShader", "libvk_swiftshader.so"
    manifests = os.path.join(support.SOURCE, "build", "swiftshader", "vk_swiftshader_icd.json")
    to_get_it = "scripts/setup fetches it"


if __name__ == "__main__":
    support.main()
