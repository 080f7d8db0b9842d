"""Words of model files and manifests reach the terminal escaped, and JSON as UTF-8."""

import json
import os
import resource
import struct
import subprocess

import gguf_values
import support
from support import demo_model, needs_backend, needs_model

EVIL = b"\x1b]0;owned\x07\x1b[2J \xc2\x9b31m \xe2\x80\xae \x7f \xff end"
OBEYED = (b"\x1b", b"\x07", b"\x7f", b"\xc2\x9b", b"\xe2\x80\xae", b"\xff")


class Escapes(support.Case):
    def evil_model(self):
        model = gguf_values.Model(demo_model())
        metadata = {**model.metadata, "general.name": EVIL.replace(b"\xff", b""),
                    "bytes.no.utf8": EVIL, "key\x1b[2J": EVIL, "line": "one\ntwo"}
        path = self.path("evil.gguf")
        gguf_values.write(path, metadata, model.tensors)
        return path

    def quiet(self, result):
        for one in OBEYED:
            self.assertNotIn(one, result.stdout, result)
            self.assertNotIn(one.decode("utf-8", "replace"), result.stderr, result)

    @needs_model
    def test_inspect_escapes_texts_of_the_model(self):
        model = self.evil_model()
        result = self.bitnet("inspect", model)
        self.quiet(result)
        self.assertIn("\\x1b]0;owned", result.text)
        self.assertIn("one\\ntwo", result.text)
        json.loads(self.bitnet("inspect", model, "--json").stdout.decode("utf-8", "strict"))

    @needs_backend
    def test_run_and_bench_print_no_control_characters_of_a_model(self):
        model = self.evil_model()
        for words in (["run", "-p", "Once", "-n", "1"], ["run", "-lv", "5", "-p", "Once", "-n", "1"],
                      ["bench", "-p", "0", "-n", "1", "-r", "1", "--ceiling-mb", "8"]):
            with self.subTest(words):
                result = self.bitnet(*words, "-m", model)
                self.quiet(result)
        result = self.bitnet("run", "-p", "Once", "-n", "1", "--json", "-m", model)
        if result.code == 0:
            json.loads(result.stdout.decode("utf-8", "strict"))

    def test_file_names_in_messages_are_escaped(self):
        for name in (EVIL.decode("latin-1").encode()[:100], b"\xff\xfe", b"a\x1b[2Jb"):
            path = os.path.join(self.home.encode(), name.replace(b"/", b"-"))
            for words in (["inspect"], ["run", "-p", "x", "-m"], ["backends", "lint"]):
                with self.subTest(name=name, words=words):
                    done = subprocess.run([support.PROGRAM, *words, path], capture_output=True,
                                          env=self.environment(), cwd=self.home,
                                          timeout=support.TIMEOUT_S)
                    self.assertNotEqual(done.returncode, 0)
                    for one in OBEYED:
                        self.assertNotIn(one, done.stdout + done.stderr)

    def test_texts_of_manifests_are_escaped(self):
        """Of a plugin: its name, description and errors."""
        folder = self.path("backends.d")
        os.makedirs(folder)
        with open(folder + "/50-evil.yaml", "wb") as f:
            f.write(b'schema: 1\nname: evil\ndescription: "\\x1b[2J"\nlibrary: "/\\x1b[2J\\x9b.so"\n')
        with open(os.path.join(folder.encode(), b"60-\x1b[2J\xff.yaml"), "wb") as f:
            f.write(b"schema: 1\n")
        for words in (["list"], ["why"], ["probe"], ["why", "--json"]):
            with self.subTest(words):
                result = self.bitnet("backends", *words, "--backend-dir", folder)
                for one in OBEYED:
                    self.assertNotIn(one, result.stdout, result)
                self.assertNotIn("\x1b", result.stderr)


def cpu_seconds(words, env):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([support.PROGRAM, *words], capture_output=True, env=env,
                          timeout=support.TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Work(support.Case):
    def test_inspection_is_linear(self):
        """Four times the keys are four times the work: sixteen times where each is looked for."""
        seconds = []
        for n in (25000, 100000):
            path = self.path(f"{n}.gguf")
            with open(path, "wb") as f:
                f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, n))
                for i in range(n):
                    key = f"some.longer.key.of.the.file.{i:08}".encode()
                    f.write(struct.pack("<Q", len(key)) + key + struct.pack("<IB", 0, 1))
            done, spent = cpu_seconds(["inspect", path, "--json"], self.environment())
            self.assertEqual(done.returncode, 3, done.stderr)  # the file is not a model, but its metadata are printed
            self.assertEqual(len(json.loads(done.stdout)["metadata"]), n)
            seconds.append(spent)
        self.assertLess(seconds[1], 8 * seconds[0] + 1, seconds)

    def test_manifests_are_bounded(self):
        folder = self.path("backends.d")
        os.makedirs(folder)
        for i in range(1025):
            with open(f"{folder}/{i:05}-backend{i}.yaml", "wb") as f:
                f.write(b"schema: 1\n")
        result = self.why("--json", "--backend-dir", folder)
        self.assertEqual(result.json["searched"], [
            {"directory": folder, "result": "not used: it has more than 1024 manifests"}])
        os.remove(f"{folder}/01024-backend1024.yaml")
        result = self.why("--json", "--backend-dir", folder)
        self.assertEqual(result.json["searched"][0]["result"], "1024 manifests")
        self.assertEqual(len(result.json["backends"]), 1024)


if __name__ == "__main__":
    support.main()
