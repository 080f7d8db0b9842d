"""The rocm backend on the stand-in of tests/rocm: the same text as cpu, and true reasons where it cannot run."""

import os
import tempfile

import support
import divergence

PROMPT = "Once upon a time"
STAND_IN = os.environ.get("LD_LIBRARY_PATH", "").split(":")[0]
WAIT = ("--probe-wait", "120000")  # ms: the machine may be busy


def has_stand_in():
    return os.path.exists(os.path.join(STAND_IN, "libamdhip64.so.7"))


class WithStandIn(support.Case):
    probes = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="bitnet-rocm-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.probes = folder.name

    def environment(self, extra=None):
        return super().environment({"LD_LIBRARY_PATH": STAND_IN, "BITNET_PROBE_CACHE": self.probes, **(extra or {})})

    @support.needs_model
    def setUp(self):
        super().setUp()
        if not has_stand_in():
            self.skipTest("no stand-in of ROCm (tests/rocm makes one)")
        known = {b["name"]: b for b in self.why("--json", "--device", "rocm", *WAIT).json["backends"]}
        if not {"cpu", "rocm"} <= set(known):
            self.skipTest("the backends cpu and rocm are not both built")
        names = [d["name"] for d in known["rocm"].get("devices", [])]
        self.assertEqual(names, ["Stand-in 0 (no GPU)", "Stand-in 1 (no GPU)"], known["rocm"])

    def test_same_greedy_text_as_cpu(self):
        words = ("run", "-p", PROMPT, "-n", "32", "--temp", "0", "--device")
        want = self.ok(*words, "cpu")
        self.assertGreater(len(want.stdout), 60)
        for device in ("rocm:0", "rocm:1"):  # waves of 32 lanes, and of 64
            with self.subTest(device):
                got = self.ok(*words, device)
                self.assertIn("selected=rocm", got.stderr)
                self.assertEqual(got.stdout, want.stdout)

    def test_the_alias_selects_the_same_backend(self):
        got = self.ok("run", "-p", PROMPT, "-n", "2", "--temp", "0", "--device", "hip")
        self.assertIn("selected=rocm", got.stderr)

    def test_every_kernel_that_ran_is_of_rocm(self):
        got = self.ok("run", "-p", PROMPT, "-n", "4", "--temp", "0", "--device", "rocm", "--json").json
        self.assertEqual(got["selection"]["selected"], "rocm")
        ran = [kernel["id"] for kernel in got["kernels"]]
        self.assertTrue(any(kernel.startswith("attn_paged") for kernel in ran), ran)
        self.assertEqual([kernel for kernel in ran if not kernel.endswith(".rocm")], [])

    def test_probabilities_agree_with_the_cpu_backend(self):
        divergence.check(self, divergence.divergences(self, ("cpu", "rocm"), PROMPT + ", there was a little bird"))


class WithoutOne(support.Case):
    """Each reason says what to do."""

    def refusal(self, extra):
        env = {"BITNET_PROBE_CACHE": self.path("probes"), "LD_LIBRARY_PATH": STAND_IN, **extra}
        known = self.why("--json", "--device", "rocm", *WAIT, env=env).json["backends"]
        return next((str(b) for b in known if b["name"] == "rocm"), None) or self.skipTest("rocm is not built")

    def setUp(self):
        super().setUp()
        if not has_stand_in():
            self.skipTest("no stand-in of ROCm (tests/rocm makes one)")

    def test_a_target_without_code_is_rejected(self):
        said = self.refusal({"BITNET_STAND_IN": "targets=gfx1250"})
        self.assertIn("gfx1250 is not among those that this build has code for: ", said)
        self.assertIn("build with BITNET_ROCM_TARGETS=gfx1250", said)

    def test_a_runtime_without_devices_is_reported(self):
        said = self.refusal({"BITNET_STAND_IN": "targets="})
        self.assertIn("the ROCm runtime finds no device", said)

    def test_a_runtime_that_fails_to_start_is_reported(self):
        said = self.refusal({"BITNET_STAND_IN": "init=999"})
        self.assertIn("hipInit failed with STAND_IN_ERROR_999 (999)", said)

    def test_an_override_of_the_target_is_reported(self):
        env = {"BITNET_PROBE_CACHE": self.path("probes"), "LD_LIBRARY_PATH": STAND_IN, "HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
        said = str(self.ok("backends", "info", "rocm", "--json", *WAIT, env=env).json)
        self.assertIn("HSA_OVERRIDE_GFX_VERSION=10.3.0", said)


if __name__ == "__main__":
    support.main()
