"""A run opens no file of a backend that was not requested, as strace shows."""

import os
import re
import subprocess
import unittest

import support

# Prefixes of driver libraries, and files in /dev that are not devices of a backend.
VENDOR = re.compile(r"/lib(cuda|cudart|nvidia|nvrtc|cublas|amdhip64|hsa|rocm|OpenCL|ze_loader|ze_intel|"
                    r"vulkan|MoltenVK|webgpu|dawn|mkl|sycl)[^/]*\.so")
PLAIN_DEVICES = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
OPENED = re.compile(r'\b(?:open|openat|openat2|creat)\((?:[^",]*, )?"([^"]*)".* = \d+')
TOUCHED = re.compile(r'"(/dev/[^"]*)"')


def can_trace():
    try:
        return subprocess.run(["strace", "-f", "-o", os.devnull, "true"], check=False,
                              capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@unittest.skipUnless(can_trace(), "strace is missing or may not trace; scripts/setup installs it")
@support.needs_backend
class Opens(support.Case):
    def trace(self, *words):
        log = self.path("trace")
        done = subprocess.run(["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o", log,
                               support.PROGRAM, *words], capture_output=True, cwd=self.home,
                              # A search for leaks traces the process, which strace does already.
                              env=self.environment({"ASAN_OPTIONS": "detect_leaks=0"}),
                              timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def test_a_run_on_the_cpu_opens_no_other_backend(self):
        text = self.trace("run", "-p", "a", "-n", "2", "--device", "cpu", "--no-pack-cache")
        opened = set(OPENED.findall(text))
        plugins = {os.path.basename(path) for path in opened if "libbitnet-backend-" in path}
        # The walk opens names relative to the folder before: the plugin itself must be among them.
        self.assertEqual(plugins, {"libbitnet-backend-cpu.so"}, opened)
        self.assertEqual({p for p in opened if VENDOR.search(p)}, set())
        devices = {path for path in TOUCHED.findall(text) if path not in PLAIN_DEVICES
                   and not path.startswith(("/dev/pts/", "/dev/shm/"))}
        self.assertEqual(devices, set())
        mine = [p for p in opened if p.startswith(self.home) and "backend" in p]
        self.assertEqual(mine, [])

    def test_the_trace_would_show_it(self):
        """All backends are looked at by `backends`, so that the other test can fail."""
        others = {b["name"] for b in support.report()["backends"]} - {"cpu"}
        if not others:
            self.skipTest("no second backend was built")
        text = self.trace("backends", "list")
        for name in others:
            self.assertIn(f"libbitnet-backend-{name}.so", text)


if __name__ == "__main__":
    support.main()
