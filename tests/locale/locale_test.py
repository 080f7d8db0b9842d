"""What libbitnet keeps and prints is the same in a process whose locale writes 31,4.

Usage: locale_test.py EMBEDDER PROGRAM FOLDER_OF_LIBBITNET PYTHON MODEL

Makes the locale itself, in a folder of its own; without localedef and its sources it exits with 77.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

EMBEDDER, PROGRAM, LIBRARIES, PYTHON, MODEL = sys.argv[1:6]
GERMAN = "de_DE.UTF-8"
PYTHON_PACKAGE = str(pathlib.Path(__file__).resolve().parents[2] / "python/src")
TIMEOUT_S = 600

IN_PYTHON = """
import locale, sys
locale.setlocale(locale.LC_ALL, sys.argv[1])
import bitnet
print("point", locale.localeconv()["decimal_point"])
for _ in range(2):
    with bitnet.Model(sys.argv[2], pack_cache=sys.argv[3], tune=True) as model:
        print("text", model.generate("Once upon a time", max_tokens=12, temperature=0).text)
print("numbers", [round(float(x), 3) for x in bitnet.Model(sys.argv[2]).embed("once")[:4]])
"""


class Locale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="bitnet-locale-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = cls.scratch.name
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{cls.folder}/{GERMAN}"],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            print(f"skip: localedef makes no {GERMAN}: {made.stderr.strip()[:100]}")
            sys.exit(77)

    def environment(self, name, language):
        home = f"{self.folder}/{name}"
        os.makedirs(home, exist_ok=True)
        return {"PATH": os.environ["PATH"], "HOME": home, "LOCPATH": self.folder, "LC_ALL": language,
                "BITNET_BACKENDS": "cpu", "LD_LIBRARY_PATH": LIBRARIES, "PYTHONPATH": PYTHON_PACKAGE,
                "PYTHONDONTWRITEBYTECODE": "1"}

    def run_in(self, name, language, *words):
        done = subprocess.run(words, env=self.environment(name, language), capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        return done.stdout

    def check_kept(self, cache):
        """The measurement in the folder: there, with points."""
        kept = b"".join(p.read_bytes() for p in pathlib.Path(cache).rglob("*") if p.is_file())
        found = re.findall(rb"ahead=\d+ tile_rows=\d+[ -~]*", kept)
        self.assertTrue(found, "the backend's settings are kept")
        for text in found:
            self.assertNotIn(b",", text)
            self.assertRegex(text, rb"=\d+\.\d+~")

    def lines(self, text, word):
        return [line[len(word) + 1:] for line in text.splitlines() if line.startswith(word + " ")]

    def test_embedded(self):
        """A C program after setlocale(LC_ALL): what is kept is taken at the next start."""
        outputs = {}
        for language, point in (("C", "."), (GERMAN, ",")):
            cache = f"{self.folder}/cache-{point}"
            out = self.run_in(f"c{point}", language, EMBEDDER, language, MODEL, cache)
            self.assertEqual(self.lines(out, "point"), [point])
            self.assertFalse("measured again" in out, "what was kept is taken")
            logs = " ".join(self.lines(out, "log"))
            self.assertNotRegex(logs, r"\d,\d")
            self.check_kept(cache)
            for word in ("runtime", "session"):
                first, second = (json.loads(text) for text in self.lines(out, word))
                self.assertEqual(first.keys(), second.keys())
            session = json.loads(self.lines(out, "session")[1])
            self.assertTrue(session.get("tuning"), session.keys())
            outputs[language] = out
        same = lambda word: [self.lines(out, word) for out in outputs.values()]
        ours, theirs = same("tokens")
        self.assertEqual(ours, theirs)
        ours, theirs = ([json.loads(text) for text in found] for found in same("inspect"))
        for one in (*ours, *theirs):
            one.pop("host", None)  # how much memory is free at the moment
        self.assertEqual(ours, theirs)

    def test_json_of_the_program_is_valid_in_a_german_locale(self):
        """LC_ALL of its environment, and what it prints for machines."""
        for words in (["inspect", "-m", MODEL, "--json"], ["backends", "info", "--json"],
                      ["run", "-m", MODEL, "-p", "Once", "-n", "4", "--temp", "0.7", "--seed", "1", "--json"],
                      ["bench", "-m", MODEL, "-p", "8", "-n", "4", "-r", "1", "-o", "jsonl"]):
            for language in ("C", GERMAN):
                out = self.run_in("program", language, PROGRAM, *words)
                for line in out.splitlines():
                    json.loads(line)
        out = self.run_in("program", GERMAN, PROGRAM, "run", "-m", MODEL, "-p", "Once", "-n", "4", "-v")
        self.assertFalse("measured again" in out, "what was kept is taken")

    def test_python_gives_the_same_texts_in_a_german_locale(self):
        has = subprocess.run([PYTHON, "-c", "import cffi, numpy"], capture_output=True, check=False).returncode == 0
        if not has:
            self.skipTest("Python has no cffi and NumPy")
        texts = []
        for language, point in (("C", "."), (GERMAN, ",")):
            cache = f"{self.folder}/python-{point}"
            out = self.run_in(f"python{point}", language, PYTHON, "-c", IN_PYTHON, language, MODEL, cache)
            self.assertEqual(self.lines(out, "point"), [point])
            self.check_kept(cache)
            texts.append(self.lines(out, "text") + self.lines(out, "numbers"))
        self.assertEqual(*texts)


if __name__ == "__main__":
    if shutil.which("localedef") is None:
        print("skip: there is no localedef; apt-get install locales")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
