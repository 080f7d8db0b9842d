"""Shared by tests that replace a backend while `bitnet chat` runs."""

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


class Case(support.Case):
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
abi: {{major: 0, min: 1, max: 1}}
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

    def send(self, process, line):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()

    def await_words(self, *words):
        end = time.monotonic() + PATIENCE_S
        while not all(word.encode() in self.said for word in words):
            self.assertLess(time.monotonic(), end, f"{words} never came: {self.said.decode()}")
            time.sleep(0.02)
