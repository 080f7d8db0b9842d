"""The program on the cuda backend over a driver that computes here: the same text as the cpu backend."""

import os
import sys

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

    def test_long_prompt(self):
        prompt = "The bird and the dog went to the park. " * 8
        self.assertEqual(self.run_on("cuda", prompt, n=8)["tokens"], self.run_on("cpu", prompt, n=8)["tokens"])

    def test_probabilities_are_those_of_cpu(self):
        divergence.check(self, divergence.divergences(
            self, ("cpu", "cuda"), PROMPTS[0] + ", there was a little bird"))

    def test_without_a_driver_it_is_said(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"LD_LIBRARY_PATH": "/nonexistent"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("libcuda.so.1 is not installed", result.stderr)

    def test_an_old_driver_is_said(self):
        result = self.bitnet("run", "--device", "cuda", "-p", "a", env={"BITNET_STAND_IN": "version=11040"})
        self.assertNotEqual(result.code, 0)
        self.assertIn("speaks CUDA 11.4", result.stderr)


if __name__ == "__main__":
    support.main()
