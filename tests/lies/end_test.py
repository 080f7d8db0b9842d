"""A backend that ends the program, or does not let it end: the exit code that the shell gets."""

import os
import re
import time

import support


class Planted(support.Case):
    """A copy of a backend, and its manifest, in folders of the test's own."""

    def plant(self, name, variable, device_class):
        with open(os.environ[variable], "rb") as file:
            library = self.path(f"lib/libbitnet-backend-{name}.so", file.read())
        os.chmod(library, 0o755)
        self.path(f"manifests/50-{name}.yaml", f"""\
schema: 1
name: {name}
version: 0.1.0
vendor: org.bitnet
license: Apache-2.0
library: {library}
abi: {{major: 0, min: 1, max: 1}}
class: {device_class}
""")
        return library


@support.needs_model
class End(Planted):
    def setUp(self):
        super().setUp()
        self.plant("liar", "BITNET_LIAR", "cpu")

    def run_with(self, lie, *more):
        return self.bitnet("run", *more, "-m", support.demo_model(), "-n", "20", "--temp", "0",
                           "--backend-dir", self.path("manifests"), "--device", "liar",
                           "-p", "Once upon a time", env={"BITNET_LIAR_LIE": lie})

    def test_exit_in_the_middle_of_a_text_is_no_success(self):
        whole = self.run_with("none")
        self.assertEqual(whole.code, 0, whole)
        cut = self.run_with("exits")
        self.assertEqual(cut.code, 1, cut)
        self.assertIn("called exit() before the work was done", cut.stderr)
        self.assertLess(len(cut.stdout), len(whole.stdout))

    def test_where_an_error_comes_from_is_shown_and_moves_no_cursor(self):
        for lie, words in (("fails", "the device fell off (vulkan -4)"),
                           ("fails-endless", "the device fell off (\\x1b[31mendless.... -4)"),
                           ("fails-nameless", "the device fell off (code -4)")):
            with self.subTest(lie):
                done = self.run_with(lie)
                self.assertEqual(done.code, 1, done)
                self.assertIn(words, done.stderr)
                self.assertNotIn("\x1b", done.stderr)

    def test_a_false_device_status_is_rejected_and_the_text_generated(self):
        whole = self.run_with("none", "--json")
        self.assertEqual(whole.json["device_status"]["health"], "good")
        lie = self.run_with("status-free", "--json")
        self.assertEqual(lie.code, 0, lie)
        self.assertEqual(lie.json["text"], whole.json["text"])
        self.assertEqual(lie.json["device_status"], {
            "asked": "now", "refused": "device_status() reports more free memory than there is"})

    def test_a_probe_continues_after_a_false_device_status(self):
        done = self.bitnet("backends", "info", "liar", "--fresh", "--json", "--device", "liar",
                           "--backend-dir", self.path("manifests"),
                           env={"BITNET_LIAR_LIE": "status-probed"})
        backend = done.json["backends"][0]
        self.assertEqual(backend["code"], "BN-OK", backend)
        status = backend["devices"][0]["status"]
        self.assertEqual(status["asked"], "probe")
        self.assertEqual(status["refused"],
                         "device_status() reports more free memory than there is")

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


class Quarantine(Planted):
    def test_the_hint_leads_out_of_it(self):
        self.plant("liar", "BITNET_LIAR", "cpu")  # is chosen, so that the choice needs no other
        library = self.plant("crash-enumerate", "BITNET_CRASHER", "gpu")
        where = ("--backend-dir", self.path("manifests"))

        def after(*words):
            self.bitnet("backends", "probe", *words, *where)
            why = self.ok("backends", "why", "--json", *where).json
            return next(b for b in why["backends"] if b["name"] == "crash-enumerate")

        self.assertEqual(after("--all")["code"], "BN-P-CRASH")
        os.utime(library, (1, 1))  # or it is not asked again within a minute
        second = after("--all")
        self.assertEqual(second["code"], "BN-P-QUARANTINE", second)
        command, = re.findall("`bitnet backends probe (.*)`", second["hint"])
        self.assertEqual(after(*command.split())["code"], "BN-P-CRASH", second["hint"])


if __name__ == "__main__":
    support.main()
