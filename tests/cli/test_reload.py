"""A backend's file is replaced while `bitnet chat` runs: --watch, /backend reload, and their messages."""

import os

import reloading
import support


@support.needs_backend
class Reload(reloading.Case):
    def test_a_chat_moves_to_the_reloaded_backend(self):
        chat = self.chat("--reload-policy", "migrate")
        self.send(chat, "Hello")
        self.send(chat, "/backend reload")
        self.await_words("cpu: nothing to do")
        self.install(reloading.rebuilt(self.plugin, 7))
        self.send(chat, "/backend reload cpu")
        self.await_words("cpu: reloaded, generation 2, build id 07000000", "1 session moves to it")
        self.send(chat, "Who are you?")
        self.send(chat, "/backend")
        self.await_words("cpu generation 2 active")
        self.install(b"hello")
        self.send(chat, "/backend reload")
        self.await_words("nothing changed", "BN-I-FORMAT")
        self.send(chat, "/backend eject")
        self.await_words("/backend eject is no command")
        out, _ = chat.communicate(b"/bye\n", timeout=reloading.PATIENCE_S)
        undisturbed = self.ok("chat", "-q", "-m", support.demo_model(), "-n", "8", "--temp", "0",
                              "--deterministic", stdin=b"Hello\nWho are you?\n")
        self.assertEqual(out, undisturbed.stdout)

    def test_watch_reloads_a_replaced_backend(self):
        chat = self.chat("--watch", "--reload-policy", "recompute")
        self.send(chat, "Hello")
        self.send(chat, "/backend")
        self.await_words("cpu generation 1 active")  # the folders are watched before it reads
        self.install(reloading.rebuilt(self.plugin, 9))
        self.await_words("cpu: reloaded, generation 2, build id 09000000")
        # Broken files come and go; a good one is found by itself.
        self.install(self.plugin[:1000])
        self.await_words("nothing changed")
        self.install(reloading.rebuilt(self.plugin, 10))
        self.await_words("build id 0a000000")
        self.send(chat, "Who are you?")
        chat.communicate(b"/bye\n", timeout=reloading.PATIENCE_S)
        self.assertEqual(chat.returncode, 0)

    def test_watch_ends_with_the_program(self):
        result = self.ok("run", "--watch", "-n", "4", "--backend-dir",
                         os.path.dirname(self.manifest), "-p", "Once upon a time")
        self.assertGreater(len(result.stdout), 10)

    def test_policies_are_checked(self):
        self.rejected(2, "finish", "run", "--reload-policy", "pray", "-p", "x")


if __name__ == "__main__":
    support.main()
