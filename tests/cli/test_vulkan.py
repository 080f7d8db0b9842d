"""The vulkan backend on Mesa's software driver: the same text as cpu, and the truth about what ran."""

import glob

import support
from divergence import divergences

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
        self.assertEqual(got["selection"]["selected"], "vulkan")
        ran = [kernel["id"] for kernel in got["kernels"]]
        self.assertTrue(any(kernel.startswith("linear_ternary") for kernel in ran), ran)
        self.assertTrue(any(kernel.startswith("attn_paged") for kernel in ran), ran)
        self.assertEqual([kernel for kernel in ran if not kernel.endswith(".vulkan")], [])

    def test_probabilities_are_those_of_cpu(self):
        found = divergences(self, ("cpu", "vulkan"), PROMPT + ", there was a little bird")
        self.assertGreater(len(found), 5)
        self.assertLess(max(found), 1e-5)


if __name__ == "__main__":
    support.main()
