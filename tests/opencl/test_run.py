"""The program on an OpenCL device: the same text as the cpu backend, by kernels of this backend."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # pylint: disable=wrong-import-position
import divergence  # pylint: disable=wrong-import-position

DRIVER = {name: os.environ[name] for name in ("OCL_ICD_VENDORS",) if name in os.environ}
PROMPTS = ("Once upon a time", "A dog and a cat", "")


class Opencl(support.Case):
    @classmethod
    def setUpClass(cls):
        # Probed once, and kernels kept: compiling them takes the driver seconds.
        folder = tempfile.TemporaryDirectory(prefix="bitnet-opencl-",
                                             ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.probes = folder.name

    def setUp(self):
        super().setUp()
        if not support.demo_model():
            self.skipTest("models/ holds no TinyTales*.gguf")
        self.env = dict(DRIVER, BITNET_OPENCL_CACHE=self.probes + "/kernels",
                        BITNET_PROBE_CACHE=self.probes)
        if "POCL_CACHE_DIR" in os.environ:
            self.env["POCL_CACHE_DIR"] = os.environ["POCL_CACHE_DIR"]
        # Asked for by name it is not probed at idle class, which other tests would keep waiting.
        self.bitnet("backends", "probe", "--device", "opencl", env=self.env)
        report = self.ok("backends", "why", "--json", "--device", "auto", "--probe-wait", "240000",
                         env=self.env).json
        if "cpu" not in report["detected"]:
            self.skipTest("the cpu backend is not built, and it is the judge")
        if "opencl" not in report["detected"]:
            why = [b for b in report["backends"] if b.get("name") == "opencl"]
            self.skipTest(f"no OpenCL device: {why}")

    def run_on(self, device, prompt, *words):
        result = self.ok("run", "--device", device, "--temp", "0", "-n", "40", "--json", "-p", prompt,
                         *words, env=self.env).json
        self.assertEqual(result["selection"]["selected"], device)
        return result

    def test_same_text_as_cpu(self):
        for prompt in PROMPTS:
            with self.subTest(prompt):
                on_cpu, on_opencl = self.run_on("cpu", prompt), self.run_on("opencl", prompt)
                self.assertEqual(on_opencl["tokens"], on_cpu["tokens"])
                self.assertEqual(on_opencl["text"], on_cpu["text"])
                for kernel in on_opencl["kernels"]:
                    self.assertTrue(kernel["id"].endswith(".opencl"), kernel)
                    self.assertGreater(kernel["calls"], 0)

    def test_a_long_prompt_gives_the_tokens_of_the_cpu(self):
        prompt = "The bird and the dog went to the park. " * 8
        self.assertEqual(self.run_on("opencl", prompt)["tokens"], self.run_on("cpu", prompt)["tokens"])

    def test_probabilities_are_those_of_cpu(self):
        divergence.check(self, divergence.divergences(
            self, ("cpu", "opencl"), PROMPTS[0] + ", there was a little bird", env=self.env))

    def test_kernels_are_kept(self):
        self.env["BITNET_OPENCL_CACHE"] = self.home + "/kernels"
        self.run_on("opencl", "a")
        kept = os.listdir(self.home + "/kernels")
        self.assertTrue(kept)
        self.assertTrue(all(name.endswith(".clbin") for name in kept), kept)
        self.run_on("opencl", "a")
        self.assertEqual(sorted(os.listdir(self.home + "/kernels")), sorted(kept))


if __name__ == "__main__":
    support.main()
