"""run_page.py must see a command that fails and an output that changed."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent / "run_page.py"

# page, exit code, why
ROWS = [
    ("```console\n$ true\n```\n", 0, "a command that works"),
    ("```console\n$ echo a\n```\n", 0, "output that is not shown"),
    ("```console quiet\n$ echo a\n```\n", 1, "output where none is shown, and none must be"),
    ("```console quiet\n$ true\n```\n", 0, "no output"),
    ("```console\n$ true\nanything\n```\n", 1, "output that there is not"),
    ("```console\n$ false\n```\n", 1, "a command that fails"),
    ("```console\n$ true\n$ false\n$ true\n```\n", 1, "in the middle"),
    ("```console exit=4\n$ exit 4\n```\n", 0, "the exit code that the page names"),
    ("```console exit=4\n$ true\n```\n", 1, "another one"),
    ("```console\n$ echo a; echo b >&2\na\nb\n```\n", 0, "the output that the page shows"),
    ("```console\n$ echo a\nb\n```\n", 1, "another output"),
    ("```console\n$ echo a; echo b\na\n```\n", 1, "a line more than is shown"),
    ("```console\n$ echo a \\\n  b\na b\n```\n", 0, "a continued line"),
    ("```console\n$ echo took 12 ms\ntook ... ms\n```\n", 0, "a number that varies"),
    ("```console\n$ echo took 12 s\ntook ... ms\n```\n", 1, "with another unit"),
    ("```console\n$ seq 9\n1\n...\n9\n```\n", 0, "lines that vary"),
    ("```console\n$ seq 8\n1\n...\n9\n```\n", 1, "with another end"),
    ("```console\n$ echo 'a.c'\na+c\n```\n", 1, "a page is no pattern"),
    ("```sh\ntrue\nfalse\n```\n", 1, "a script that fails"),
    ("```sh\nfalse | true\n```\n", 1, "in a pipe"),
    ("```sh\nif true; then\n  echo a\nfi\n```\n", 0, "a script of several lines"),
    ("```sh not run: it takes an hour\nfalse\n```\n", 0, "a script that says why it is not run"),
    ("```sh not run:\nfalse\n```\n", 1, "a script that does not say why"),
    ("```console\n$ touch x\n```\n\n```console\n$ test -e x\n```\n", 0, "blocks share a folder"),
    ("```console backend\n$ false\n```\n", 77, "no backend, no run"),
    ("```console plugin=unbuilt\n$ false\n```\n", 77, "in the tree and not built, no run"),
    ("```console plugin=built\n$ false\n```\n", 1, "the plugin was built"),
    ("```console program=no-such-program\n$ false\n```\n", 77, "no such program, no run"),
    ("```console program=sh\n$ false\n```\n", 1, "the program is there"),
]


class Runner(unittest.TestCase):
    def test_each_page_ends_with_the_status_of_its_row(self):
        for text, end, why in ROWS:
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                for part in ("docs", "plugins/unbuilt", "build"):
                    pathlib.Path(folder, part).mkdir(parents=True)
                pathlib.Path(folder, "build/backends.txt").write_text("built\n", encoding="utf-8")
                page = pathlib.Path(folder, "page.md")
                page.write_text(text, encoding="utf-8")
                done = subprocess.run(
                    [sys.executable, RUNNER, page, "--source", folder, "--binary", f"{folder}/build"],
                    capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, end, why + "\n" + done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
