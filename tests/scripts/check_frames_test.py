"""scripts/check-frames sees a function that takes too much of the stack, however it takes it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-frames"
COMPILER = sys.argv.pop(1)
SOURCE = """
void use(volatile char*);
void takes(void) { volatile char room[SIZE]; use(room); }
void use(volatile char* p) { *p = 1; }
"""


class Frames(unittest.TestCase):
    def test_a_frame_beyond_the_limit_fails(self):
        for size, flags, passes in [(1000, [], True), (50 << 10, [], True), (60 << 10, [], False),
                                    (600 << 10, ["-fstack-clash-protection"], False),
                                    (50 << 10, ["-fstack-clash-protection"], True)]:
            with self.subTest(size=size, flags=flags), tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "x.so"
                subprocess.run([COMPILER, "-O1", "-fPIC", "-shared", "-x", "c", "-", f"-DSIZE={size}", *flags,
                                "-o", out], input=SOURCE.encode(), check=True)
                done = subprocess.run([CHECK, out], capture_output=True, text=True, check=False)
                if done.returncode == 77:
                    print(done.stdout)
                    sys.exit(77)
                self.assertEqual(done.returncode, 0 if passes else 1, done.stdout + done.stderr)
                if not passes:
                    self.assertIn("takes", done.stdout)


if __name__ == "__main__":
    unittest.main()
