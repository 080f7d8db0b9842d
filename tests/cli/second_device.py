"""A server on two devices with the same bits: the cpu, and one of the tests' own, `fragile`, which is slow, and lost when the test asks for it."""

import os
import shutil

import support
import test_serve


class TwoDevices(support.Case):
    def setUp(self):
        super().setUp()
        second = os.environ.get("BITNET_SECOND_PLUGIN", "")
        cpu = next((b for b in self.ok("backends", "--json").json["backends"] if b["name"] == "cpu"), None)
        if not os.path.exists(second) or cpu is None or "library" not in cpu:
            self.skipTest("there are no two devices here")
        for name, library in (("cpu", cpu["library"]), ("fragile", second)):
            copy = self.path(f"lib/libbitnet-backend-{name}.so", b"")
            shutil.copyfile(library, copy)
            os.chmod(copy, 0o755)
            self.path(f"manifests/50-{name}.yaml", f"schema: 1\nname: {name}\nversion: 0.1.0\nvendor: org.bitnet\n"
                      f"license: Apache-2.0\nlibrary: {copy}\nabi: {{major: 0, min: 1, max: 1}}\nclass: cpu\n")

    def serve(self, *words, env=None):
        self.server = test_serve.Server(self.home, "--backend-dir", self.path("manifests"), *words, env=env)
        self.addCleanup(self.server.kill)
        self.assertTrue(self.server.port, self.server.lines)
