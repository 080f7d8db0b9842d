"""A backend that ends the program, or does not let it end: what the shell is told."""

import os
import time

import support


@support.needs_model
class End(support.Case):
    def setUp(self):
        super().setUp()
        with open(os.environ["BITNET_LIAR"], "rb") as file:
            library = self.path("lib/libbitnet-backend-liar.so", file.read())
        os.chmod(library, 0o755)
        self.path("manifests/50-liar.yaml", f"""\
schema: 1
name: liar
version: 0.1.0
vendor: org.bitnet
license: Apache-2.0
library: {library}
abi: {{major: 0, min: 1, max: 1}}
class: cpu
""")

    def run_with(self, lie):
        return self.bitnet("run", "-m", support.demo_model(), "-n", "20", "--temp", "0",
                           "--backend-dir", self.path("manifests"), "--device", "liar",
                           "-p", "Once upon a time", env={"BITNET_LIAR_LIE": lie})

    def test_exit_in_the_middle_of_a_text_is_no_success(self):
        whole = self.run_with("none")
        self.assertEqual(whole.code, 0, whole)
        cut = self.run_with("exits")
        self.assertEqual(cut.code, 1, cut)
        self.assertIn("called exit() before the work was done", cut.stderr)
        self.assertLess(len(cut.stdout), len(whole.stdout))

    def test_a_close_that_hangs_is_left_behind(self):
        begin = time.monotonic()
        done = self.run_with("close-hangs")
        self.assertEqual(done.code, 1, done)
        self.assertIn("closing the backends has not ended after 30 s", done.stderr)
        self.assertLess(time.monotonic() - begin, 200)

    def test_descriptors_that_were_closed_hang_nothing(self):
        done = self.run_with("closes-descriptors")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.stdout, self.run_with("none").stdout)


if __name__ == "__main__":
    support.main()
