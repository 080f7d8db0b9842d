"""One backend of a GPU that was built here generates the text of the cpu backend, on the driver that its tests run on.

Usage: smoke.py BACKEND [VARIABLE...], in the environment of a test in tests/cli and that of the driver, whose variables
are named. For the lane `gpu-smoke`: the least that shows that what was compiled is found, loaded, probed and computes.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # pylint: disable=wrong-import-position # of another folder

BACKEND, DRIVER = (sys.argv[1:2] or [""])[0], sys.argv[2:]
del sys.argv[1:]
PROMPT = ("-p", "Once upon a time", "-n", "24", "--temp", "0", "--json")
WAIT = ("--probe-wait", "120000")  # ms: drivers in software compile first, and the machine may be busy


class Smoke(support.Case):
    def environment(self, extra=None):
        driver = {name: value for name, value in os.environ.items() if name in DRIVER}
        return super().environment({**driver, **(extra or {})})

    def setUp(self):
        super().setUp()
        if not support.demo_model():
            self.skipTest("models/ holds no TinyTales*.gguf")

    def test_found_probed_and_computes(self):
        listed = self.ok("backends", "why", "--json", "--device", BACKEND, *WAIT).json
        listed_backends = {one.get("name"): one for one in listed["backends"]}
        self.assertIn(BACKEND, listed_backends, "it was built and is not found")
        self.assertIn(BACKEND, listed["detected"], listed_backends[BACKEND])
        ours = self.ok("run", "--device", BACKEND, *PROMPT, *WAIT).json
        self.assertEqual(ours["selection"]["selected"], BACKEND)
        computed = [kernel for kernel in ours["kernels"] if kernel["id"].endswith(f".{BACKEND}")]
        self.assertGreater(sum(kernel["calls"] for kernel in computed), 0, ours["kernels"])
        if "cpu" not in listed_backends:
            self.skipTest("the cpu backend is not built, and it is the judge")
        judge = self.ok("run", "--device", "cpu", *PROMPT).json
        self.assertEqual((ours["text"], ours["tokens"]), (judge["text"], judge["tokens"]))


if __name__ == "__main__":
    support.main()
