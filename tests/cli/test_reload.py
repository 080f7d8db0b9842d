"""A backend's file is replaced while `bitnet chat` runs: --watch, /backend reload, and what they say."""

import os
import subprocess
import threading
import time

import support

GNU_BUILD_ID = bytes([4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0]) + b"GNU\0"
PATIENCE_S = 60  # of a busy machine


def rebuilt(plugin, serial):
    """The same plugin under another build id."""
    at = plugin.index(GNU_BUILD_ID) + len(GNU_BUILD_ID)
    return plugin[:at] + serial.to_bytes(4, "little") + plugin[at + 4:]


@support.needs_backend
class Reload(support.Case):
    def setUp(self):
        super().setUp()
        cpu = next((b for b in self.ok("backends", "--json").json["backends"]
                    if b["name"] == "cpu"), None)
        if cpu is None or "library" not in cpu:
            self.skipTest("no cpu backend")
        with open(cpu["library"], "rb") as f:
            self.plugin = f.read()
        self.library = self.path("lib/libbitnet-backend-cpu.so", self.plugin)
        self.manifest = self.path("manifests/50-cpu.yaml", f"""\
schema: 1
name: cpu
version: 0.1.0
vendor: org.bitnet
license: Apache-2.0
library: {self.library}
abi: {{major: 0, min: 0, max: 0}}
class: cpu
""")
        os.chmod(self.library, 0o755)

    def install(self, content):
        fresh = self.path("lib/fresh", content)
        os.chmod(fresh, 0o755)
        os.replace(fresh, self.library)

    def chat(self, *words):
        """A running chat whose stderr is collected in self.said."""
        process = subprocess.Popen(
            [support.PROGRAM, "chat", "-m", support.demo_model(), "-n", "8", "--temp", "0",
             "--deterministic", "--backend-dir", os.path.dirname(self.manifest), *words],
            env=support.environment(self.home), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.said = b""

        def collect():
            while piece := process.stderr.read1(4096):
                self.said += piece

        reader = threading.Thread(target=collect)
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(process.kill)
        return process

    def tell(self, process, line):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()

    def await_words(self, *words):
        end = time.monotonic() + PATIENCE_S
        while not all(word.encode() in self.said for word in words):
            self.assertLess(time.monotonic(), end, f"{words} never came: {self.said.decode()}")
            time.sleep(0.02)

    def test_backend_reload(self):
        chat = self.chat("--reload-policy", "migrate")
        self.tell(chat, "Hello")
        self.tell(chat, "/backend reload")
        self.await_words("cpu: nothing to do")
        self.install(rebuilt(self.plugin, 7))
        self.tell(chat, "/backend reload cpu")
        self.await_words("cpu: reloaded, generation 2, build id 07000000", "1 session moves to it")
        self.tell(chat, "Who are you?")
        self.tell(chat, "/backend")
        self.await_words("cpu generation 2 active")
        self.install(b"hello")
        self.tell(chat, "/backend reload")
        self.await_words("nothing changed", "BN-I-FORMAT")
        self.tell(chat, "/backend eject")
        self.await_words("/backend eject is no command")
        out, _ = chat.communicate(b"/bye\n", timeout=PATIENCE_S)
        undisturbed = self.ok("chat", "-q", "-m", support.demo_model(), "-n", "8", "--temp", "0",
                              "--deterministic", stdin=b"Hello\nWho are you?\n")
        self.assertEqual(out, undisturbed.stdout)

    def test_watch(self):
        chat = self.chat("--watch", "--reload-policy", "recompute")
        self.tell(chat, "Hello")
        self.tell(chat, "/backend")
        self.await_words("cpu generation 1 active")  # the folders are watched before it reads
        self.install(rebuilt(self.plugin, 9))
        self.await_words("cpu: reloaded, generation 2, build id 09000000")
        # Broken files come and go; a good one is found by itself.
        self.install(self.plugin[:1000])
        self.await_words("nothing changed")
        self.install(rebuilt(self.plugin, 10))
        self.await_words("build id 0a000000")
        self.tell(chat, "Who are you?")
        chat.communicate(b"/bye\n", timeout=PATIENCE_S)
        self.assertEqual(chat.returncode, 0)

    def test_watch_ends_with_the_program(self):
        result = self.ok("run", "--watch", "-n", "4", "--backend-dir",
                         os.path.dirname(self.manifest), "-p", "Once upon a time")
        self.assertGreater(len(result.stdout), 10)

    def test_policies_are_checked(self):
        self.refused(2, "finish", "run", "--reload-policy", "pray", "-p", "x")


if __name__ == "__main__":
    support.main()
