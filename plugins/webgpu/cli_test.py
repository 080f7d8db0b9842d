"""The webgpu backend on wgpu-native and a driver in software: the same text as cpu, and true reasons where it cannot run."""

import glob
import os
import tempfile

import support
import divergence

PROMPT = "Once upon a time"
LIBRARY = os.environ.get("BITNET_WEBGPU_LIBRARY", "")
DRIVERS = "/usr/share/vulkan/icd.d/lvp_icd.*.json"
WAIT = ("--probe-wait", "120000")  # ms: the driver compiles, and the machine may be busy


class WithLibrary(support.Case):
    probes = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="bitnet-webgpu-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.probes = folder.name

    def environment(self, extra=None):
        drivers = sorted(glob.glob(DRIVERS))
        driver = drivers[0] if drivers else ""
        return super().environment({"VK_DRIVER_FILES": driver, "VK_ICD_FILENAMES": driver,
                                    "BITNET_PROBE_CACHE": self.probes, "BITNET_WEBGPU_LIBRARY": LIBRARY,
                                    "XDG_RUNTIME_DIR": self.path("."),
                                    **(extra or {})})

    @support.needs_model
    def setUp(self):
        super().setUp()
        if not os.path.exists(LIBRARY):
            self.skipTest("no library of WebGPU (scripts/setup --for test installs one)")
        if not glob.glob(DRIVERS):
            self.skipTest(f"no driver {DRIVERS} (Debian: mesa-vulkan-drivers)")
        self.bitnet("run", "-p", PROMPT, "-n", "1", "--device", "webgpu")
        known = {b["name"]: b for b in self.ok("backends", "why", "--json", *WAIT).json["backends"]}
        if not {"cpu", "webgpu"} <= set(known):
            self.skipTest("the backends cpu and webgpu are not both built")
        names = [d["name"] for d in known["webgpu"].get("devices", [])]
        self.assertEqual(len(names), 1, known["webgpu"])
        self.assertIn("llvmpipe", names[0])

    def test_same_greedy_text_as_cpu(self):
        words = ("run", "-p", PROMPT, "-n", "48", "--temp", "0", "--device")
        want, got = self.ok(*words, "cpu"), self.ok(*words, "webgpu")
        self.assertIn("selected=webgpu", got.stderr)
        self.assertEqual(got.stdout, want.stdout)
        self.assertGreater(len(got.stdout), 60)

    def test_the_alias_selects_the_same_backend(self):
        got = self.ok("run", "-p", PROMPT, "-n", "2", "--temp", "0", "--device", "wgpu")
        self.assertIn("selected=webgpu", got.stderr)

    def test_every_kernel_form_generates_the_same_text(self):
        words = ("run", "-p", PROMPT, "-n", "16", "--temp", "0", "--device", "webgpu")
        want = self.ok(*words).stdout
        for setting in ("SUBGROUPS", "DOT_PRODUCT"):
            self.assertEqual(self.ok(*words, env={f"BITNET_WEBGPU_{setting}": "0"}).stdout, want, setting)

    def test_every_kernel_that_ran_is_of_webgpu(self):
        got = self.ok("run", "-p", PROMPT, "-n", "4", "--temp", "0", "--device", "webgpu", "--json").json
        self.assertEqual(got["selection"]["selected"], "webgpu")
        ran = [kernel["id"] for kernel in got["kernels"]]
        self.assertTrue(any(kernel.startswith("attn_paged") for kernel in ran), ran)
        self.assertEqual([kernel for kernel in ran if not kernel.endswith(".webgpu")], [])

    def test_probabilities_agree_with_the_cpu_backend(self):
        divergence.check(self, divergence.divergences(self, ("cpu", "webgpu"), PROMPT + ", there was a little bird"))


class WithoutOne(support.Case):
    """Each reason says what to do."""

    def refusal(self, library, extra=None):
        env = {"BITNET_PROBE_CACHE": self.path("probes"), "BITNET_WEBGPU_LIBRARY": library, **(extra or {})}
        known = self.why("--json", "--device", "webgpu", *WAIT, env=env).json["backends"]
        return next((str(b) for b in known if b["name"] == "webgpu"), None) or self.skipTest("webgpu is not built")

    def test_a_missing_library_is_reported(self):
        said = self.refusal("/nowhere/libwgpu_native.so")
        self.assertIn("BITNET_WEBGPU_LIBRARY", said)
        self.assertIn("/nowhere/libwgpu_native.so", said)

    def test_a_library_that_is_not_webgpu_is_rejected(self):
        self.assertIn("wgpuCreateInstance", self.refusal("libm.so.6"))

    def test_a_library_without_a_driver_is_reported(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("no library of WebGPU (scripts/setup --for test installs one)")
        said = self.refusal(LIBRARY, {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json",
                                      "__EGL_VENDOR_LIBRARY_FILENAMES": "/nowhere.json"})
        self.assertTrue("mesa-vulkan-drivers" in said or "devices" in said, said)


if __name__ == "__main__":
    support.main()
