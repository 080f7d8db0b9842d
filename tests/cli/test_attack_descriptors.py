"""The parent process may have closed standard input, output and error."""

import os
import subprocess

import support
from support import needs_backend


class Closed(support.Case):
    def started(self, words, closed):
        def close():
            for fd in closed:
                os.close(fd)

        return subprocess.run([support.PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              cwd=self.home, env=self.environment(), preexec_fn=close,
                              timeout=support.TIMEOUT_S)

    def test_lost_output_is_a_failure(self):
        for words in (["version"], ["help"], ["man"], ["inspect"], ["backends", "list"]):
            for closed in ([1], [0, 1]):
                with self.subTest(words=words, closed=closed):
                    done = self.started(words, closed)
                    self.assertEqual(done.returncode, 1, done)
                    self.assertIn(b"cannot write to standard output", done.stderr)
        self.assertEqual(self.started(["version"], [0, 1, 2]).returncode, 1)

    @needs_backend
    def test_a_lost_story_is_a_failure(self):
        for closed in ([1], [0, 1], [0, 1, 2]):
            with self.subTest(closed):
                done = self.started(["run", "-p", "Once", "-n", "4"], closed)
                self.assertEqual(done.returncode, 1, done)

    @needs_backend
    def test_a_chat_without_input_ends(self):
        for closed in ([0], [0, 2]):
            with self.subTest(closed):
                self.assertEqual(self.started(["chat"], closed).returncode, 0)

    @needs_backend
    def test_a_file_gets_its_own_bytes_only(self):
        plain, other = self.path("plain.npy"), self.path("other.npy")
        self.ok("logits", "--ids", "1 5", "-o", plain)
        self.assertEqual(self.started(["logits", "--ids", "1 5", "-o", other], [0, 1, 2]).returncode, 0)
        with open(plain, "rb") as one, open(other, "rb") as two:
            self.assertEqual(one.read(), two.read())

    @needs_backend
    def test_closed_errors_lose_no_text(self):
        words = ["run", "-p", "Once", "-n", "4", "--temp", "0"]
        done = self.started(words, [2])
        self.assertEqual((done.returncode, done.stdout), (0, self.ok(*words).stdout))

    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([support.PROGRAM, "help"], stdout=full, stderr=subprocess.PIPE,
                                  env=self.environment(), timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)


if __name__ == "__main__":
    support.main()
