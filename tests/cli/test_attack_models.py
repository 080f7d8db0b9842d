"""Model files that are cut short while they are read: an error that names the file, no signal."""

import os
import select
import shutil
import subprocess

import support
from support import demo_model, needs_backend, needs_model


class Shrinking(support.Case):
    def setUp(self):
        super().setUp()
        if demo_model():
            self.model = self.path("shrinking.gguf")
            shutil.copy(demo_model(), self.model)

    def start(self, *words):
        run = subprocess.Popen([support.PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=self.home, env=self.environment())
        self.addCleanup(run.kill)
        return run

    def read_line(self, run):
        out = b""
        while not out.endswith(b"\n"):
            ready, _, _ = select.select([run.stdout], [], [], support.TIMEOUT_S)
            self.assertTrue(ready, out)
            part = os.read(run.stdout.fileno(), 4096)
            self.assertTrue(part, out)
            out += part

    def ended(self, run):
        out, err = run.communicate(timeout=support.TIMEOUT_S)
        self.assertGreater(run.returncode, 0, (run.returncode, out, err))
        self.assertIn("shrinking.gguf", err.decode())
        self.assertIn("changed while in use", err.decode())
        return run.returncode

    @needs_backend
    def test_a_model_truncated_during_a_chat_ends_it_with_an_error(self):
        """The first answer shows that it is loaded; the second needs what is gone."""
        for left in (0, 4096, os.path.getsize(self.model) // 2):
            with self.subTest(left=left):
                shutil.copy(demo_model(), self.model)
                run = self.start("chat", "-m", self.model, "-n", "4", "--temp", "0")
                run.stdin.write(b"Hello\n")
                run.stdin.flush()
                self.read_line(run)
                os.truncate(self.model, left)
                run.stdin.write(b"And you, who are you and what do you do all the day?\n")
                self.ended(run)

    @needs_model
    def test_a_model_truncated_during_a_conversion_is_reported(self):
        """A pipe without a reader holds it up until the file is cut."""
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        run = self.start("quantize", self.model, pipe, "q8_0", "--force")
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        ready, _, _ = select.select([reader], [], [], support.TIMEOUT_S)
        self.assertTrue(ready, "nothing comes through the pipe")
        os.set_blocking(reader, True)
        os.truncate(self.model, 4096)
        with os.fdopen(reader, "rb") as rest:
            rest.read()
        self.ended(run)


if __name__ == "__main__":
    support.main()
