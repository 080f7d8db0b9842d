"""The level-zero backend on the stand-in of tests/level-zero: the same text as cpu, and true reasons where it cannot run."""

import os
import tempfile

import support
import divergence

PROMPT = "Once upon a time"
STAND_IN = os.environ.get("ZE_ENABLE_ALT_DRIVERS", "")
WAIT = ("--probe-wait", "120000")  # ms: PoCL compiles, and the machine may be busy


class WithStandIn(support.Case):
    probes = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="bitnet-level-zero-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.probes = folder.name

    def environment(self, extra=None):
        given = {name: os.environ[name] for name in ("ZE_ENABLE_ALT_DRIVERS", "OCL_ICD_VENDORS", "POCL_CACHE_DIR")
                 if name in os.environ}
        return super().environment({**given, "BITNET_PROBE_CACHE": self.probes, **(extra or {})})

    @support.needs_model
    def setUp(self):
        super().setUp()
        if not os.path.exists(STAND_IN):
            self.skipTest("no stand-in of a driver (tests/level-zero makes one)")
        known = {b["name"]: b for b in
                 self.why("--json", "--device", "level-zero", *WAIT).json["backends"]}
        if not {"cpu", "level-zero"} <= set(known):
            self.skipTest("the backends cpu and level-zero are not both built")
        names = [d["name"] for d in known["level-zero"].get("devices", [])]
        self.assertEqual(names, ["stand-in 0 (no GPU)"], known["level-zero"])

    def test_same_greedy_text_as_cpu(self):
        words = ("run", "-p", PROMPT, "-n", "32", "--temp", "0", "--device")
        want, got = self.ok(*words, "cpu"), self.ok(*words, "level-zero")
        self.assertIn("selected=level-zero", got.stderr)
        self.assertEqual(got.stdout, want.stdout)
        self.assertGreater(len(got.stdout), 60)

    def test_the_alias_selects_the_same_backend(self):
        got = self.ok("run", "-p", PROMPT, "-n", "2", "--temp", "0", "--device", "oneapi")
        self.assertIn("selected=level-zero", got.stderr)

    def test_every_kernel_that_ran_is_of_level_zero(self):
        got = self.ok("run", "-p", PROMPT, "-n", "4", "--temp", "0", "--device", "level-zero", "--json").json
        self.assertEqual(got["selection"]["selected"], "level-zero")
        ran = [kernel["id"] for kernel in got["kernels"]]
        self.assertTrue(any(kernel.startswith("attn_paged") for kernel in ran), ran)
        self.assertEqual([kernel for kernel in ran if not kernel.endswith(".level-zero")], [])

    def test_probabilities_agree_with_the_cpu_backend(self):
        divergence.check(self, divergence.divergences(self, ("cpu", "level-zero"),
                                                      PROMPT + ", there was a little bird"))


class WithoutOne(support.Case):
    """Each reason says what to do."""

    def refusal(self, extra):
        env = {"BITNET_PROBE_CACHE": self.path("probes"), **extra}
        known = self.why("--json", "--device", "level-zero", *WAIT, env=env).json["backends"]
        return next((str(b) for b in known if b["name"] == "level-zero"), None) or \
            self.skipTest("level-zero is not built")

    def setUp(self):
        super().setUp()
        if not os.path.exists(STAND_IN):
            self.skipTest("no stand-in of a driver (tests/level-zero makes one)")

    def test_a_missing_driver_is_reported(self):
        said = self.refusal({"ZE_ENABLE_ALT_DRIVERS": "/nowhere/libze.so"})
        self.assertIn("zeInit answers ZE_RESULT_ERROR", said)
        self.assertIn("intel-opencl-icd", said)

    def test_a_driver_that_fails_to_start_is_reported(self):
        said = self.refusal({"ZE_ENABLE_ALT_DRIVERS": STAND_IN, "BITNET_STAND_IN": "init=0x78000001"})
        self.assertIn("ZE_RESULT_ERROR_UNINITIALIZED", said)

    def test_unusable_devices_are_rejected_with_a_reason(self):
        for settings, reason in (("devices=0", "has no device"), ("type=4", "it is no GPU"),
                                 ("shared=16384", "memory of its work groups are 16384, 32768 are needed"),
                                 ("threads=32", "threads of its work groups are 32, 64 are needed"),
                                 ("spirv=65536", "SPIR-V 1.0, 1.1 is needed")):
            with self.subTest(settings):
                said = self.refusal({"ZE_ENABLE_ALT_DRIVERS": STAND_IN, "BITNET_STAND_IN": settings})
                self.assertIn(reason, said)


if __name__ == "__main__":
    support.main()
