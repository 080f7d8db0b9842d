"""Output replaces no file but the one that was named for it, and that only when the new one is whole."""

import os
import resource
import signal
import stat
import subprocess
import threading
import unittest

import gguf_values
import support
from support import demo_model, needs_backend, needs_model

NOBODY = 65534


def content(path):
    with open(path, "rb") as f:
        return f.read()


class Outputs(support.Case):
    def reading(self, pipe):
        """A thread that reads the named pipe to its end, and the list that gets what it read."""
        got = []
        thread = threading.Thread(target=lambda: got.append(content(pipe)), daemon=True)
        thread.start()
        return thread, got

    def link_of_nobody(self, target, name):
        path = self.path(name)
        os.symlink(target, path)
        os.lchown(path, NOBODY, NOBODY)
        return path


@needs_backend
class Logits(Outputs):
    def test_a_pipe_is_written_and_stays(self):
        plain, pipe = self.path("plain.npy"), self.path("pipe")
        self.ok("logits", "--ids", "1 5", "-o", plain)
        os.mkfifo(pipe)
        reader, got = self.reading(pipe)
        self.ok("logits", "--ids", "1 5", "-o", pipe)
        reader.join(support.TIMEOUT_S)
        self.assertEqual(got, [content(plain)])
        self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode))

    def test_a_device_is_written_and_stays(self):
        device = self.path("null")
        try:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            os.close(os.open(device, os.O_WRONLY))
        except PermissionError:
            self.skipTest("device nodes cannot be made here")
        self.ok("logits", "--ids", "1 5", "-o", device)
        self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))

    def test_dev_stdout_is_standard_output(self):
        plain = self.path("plain.npy")
        self.ok("logits", "--ids", "1 5", "-o", plain)
        before = os.lstat("/dev/stdout")
        self.assertEqual(self.ok("logits", "--ids", "1 5", "-o", "/dev/stdout").stdout, content(plain))
        self.assertEqual(os.lstat("/dev/stdout").st_ino, before.st_ino)

    def test_an_old_file_keeps_its_mode(self):
        out = self.path("o.npy", b"old")
        os.chmod(out, 0o600)
        self.ok("logits", "--ids", "1 5", "-o", out)
        self.assertEqual(os.stat(out).st_mode & 0o7777, 0o600)

    def test_a_model_is_not_replaced(self):
        model = self.path("m.gguf", content(demo_model()))
        self.rejected(2, "is a model", "logits", "-m", model, "--ids", "1 5", "-o", model)
        self.assertEqual(content(model), content(demo_model()))

    @unittest.skipUnless(os.geteuid() == 0, "only root can make links for others")
    def test_links_of_others_are_not_followed(self):
        target = self.path("precious", b"old")
        link = self.link_of_nobody("precious", "link.npy")
        self.rejected(1, "is a link of uid 65534", "logits", "--ids", "1 5", "-o", link)
        self.assertEqual(content(target), b"old")
        self.assertTrue(os.path.islink(link))


class Models(Outputs):
    @needs_model
    def test_a_pipe_is_written_and_stays(self):
        plain, pipe = self.path("plain.gguf"), self.path("pipe")
        self.ok("quantize", demo_model(), plain, "i2_s")
        os.mkfifo(pipe)
        reader, got = self.reading(pipe)
        self.ok("quantize", demo_model(), pipe, "i2_s", "--force")
        reader.join(support.TIMEOUT_S)
        self.assertEqual(got, [content(plain)])
        self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode))

    @needs_model
    def test_an_old_file_keeps_its_mode(self):
        out = self.path("x.gguf", b"old")
        os.chmod(out, 0o600)
        self.ok("quantize", demo_model(), out, "i2_s", "--force")
        self.assertEqual(os.stat(out).st_mode & 0o7777, 0o600)

    @needs_model
    def test_no_part_of_the_input_is_replaced(self):
        parts = gguf_values.split(demo_model(), self.home)
        before = [content(part) for part in parts]
        other = self.path("other.gguf")
        os.symlink(os.path.basename(parts[1]), other)
        for out in (*parts, other):
            with self.subTest(os.path.basename(out)):
                self.rejected(2, "a part of it", "quantize", parts[0], out, "i2_s", "--force")
        self.assertEqual([content(part) for part in parts], before)
        self.ok("quantize", parts[0], self.path("whole.gguf"), "i2_s")

    @unittest.skipUnless(os.geteuid() == 0, "only root can make links for others")
    @needs_model
    def test_links_of_others_are_not_followed(self):
        os.mkdir(self.path("folder"))
        self.link_of_nobody("folder", "link")
        self.rejected(2, "is a link of uid 65534", "quantize", demo_model(), self.path("link/x"), "i2_s")
        self.assertEqual(os.listdir(self.path("folder")), [])


@needs_backend
class Conversations(Outputs):
    LONG = "word " * 20000

    def test_a_full_disk_leaves_the_older_file(self):
        saved = self.path("talk.json", b"the older conversation")

        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            # Less than the conversation, more than a probe's cache file of a backend.
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))

        done = subprocess.run(
            [support.PROGRAM, "chat", "-q"], input=f"/system {self.LONG}\n/save {saved}\n".encode(),
            capture_output=True, cwd=self.home, env=self.environment(), preexec_fn=no_room,
            restore_signals=False, timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"cannot write", done.stderr)
        self.assertEqual(content(saved), b"the older conversation")
        self.assertEqual([n for n in os.listdir(self.home) if "part" in n], [])

    def test_a_model_is_not_replaced(self):
        model = self.path("m.gguf", content(demo_model()))
        result = self.bitnet("chat", "-q", stdin=f"/save {model}\n".encode())
        self.assertEqual(result.code, 2, result)
        self.assertEqual(content(model), content(demo_model()))


if __name__ == "__main__":
    support.main()
