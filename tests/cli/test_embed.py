"""Embeddings: their form, that they depend only on the text, and rejected requests."""

import ast
import json
import math
import os
import struct

import support

TEXT = "Once upon a time, there was a small rabbit named Ella."


def rows_of(content):
    """Rows of float32 of a .npy file."""
    size = struct.unpack("<H", content[8:10])[0]
    rows, columns = ast.literal_eval(content[10:10 + size].decode())["shape"]
    numbers = struct.unpack(f"<{rows * columns}f", content[10 + size:])
    return [list(numbers[n * columns:(n + 1) * columns]) for n in range(rows)]


def as_float32(numbers):
    return list(struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers)))


@support.needs_backend
class Embed(support.Case):
    def embed(self, *words, **more):
        return [json.loads(line) for line in self.ok("embed", *words, **more).text.splitlines()]

    def bits(self, *words, **more):
        return self.ok("embed", "--format", "npy", *words, **more).stdout

    def test_formats_say_the_same(self):
        one, = self.embed("-p", TEXT)
        self.assertEqual(sorted(one), ["embedding", "index", "tokens"])
        ids = self.ok("run", "--json", "-p", TEXT, "-n", "0").json["tokens"]["prompt"]
        self.assertEqual((one["index"], one["tokens"]), (0, len(ids)))
        self.assertAlmostEqual(math.fsum(x * x for x in one["embedding"]), 1, places=6)
        row, = rows_of(self.bits("-p", TEXT))
        self.assertEqual(as_float32(one["embedding"]), row, "every bit is printed")
        text = self.ok("embed", "-p", TEXT, "--format", "text").text
        self.assertEqual(text.count("\n"), 1)
        self.assertEqual(as_float32([float(x) for x in text.split()]), row)
        file = self.path("rows.npy")
        self.assertEqual(self.bits("-p", TEXT, "-o", file), b"")
        with open(file, "rb") as f:
            self.assertEqual(rows_of(f.read()), [row])

    def test_head_has_no_part_in_it(self):
        """Its options are none of this command's."""
        for option in ("--head", "--low-memory", "--no-pack-cache", "--deterministic"):
            self.assertEqual(self.bitnet("embed", "-p", TEXT, option).code, 2, option)

    def test_lines_are_texts(self):
        texts = ["a fox", TEXT, "a fox", "a cake"]
        # The line end is not part of a line, and the last line may have none.
        got = self.embed(stdin="\n".join(texts).replace("fox\n", "fox\r\n", 1).encode())
        self.assertEqual([one["index"] for one in got], [0, 1, 2, 3])
        self.assertEqual(got[0]["embedding"], got[2]["embedding"])
        self.assertNotEqual(got[0]["embedding"], got[3]["embedding"])
        for text, one in zip(texts, got):
            alone, = self.embed("-p", text)
            self.assertEqual(alone["embedding"], one["embedding"], text)
        self.assertEqual(len(rows_of(self.bits(stdin="\n".join(texts).encode() + b"\n"))), 4)

    def test_a_file_is_one_text(self):
        whole = "a fox\na wolf"
        self.assertEqual(self.bits("-f", self.path("t.txt", whole + "\n")), self.bits("-p", whole))
        self.assertEqual(self.bits(whole), self.bits("-p", whole))

    def test_ids_are_taken_as_they_are(self):
        ids = self.ok("run", "--json", "-p", TEXT, "-n", "0").json["tokens"]["prompt"]
        self.assertEqual(self.bits("--ids", " ".join(map(str, ids))), self.bits("-p", TEXT))

    def test_steps_and_threads_change_nothing(self):
        """Nor do settings for all commands that speak of the head."""
        text = " ".join([TEXT] * 9)
        of_head = ("--config", self.path("settings.yaml", "head: full\nlow-memory: true\n"))
        for pooling in ("mean", "last", "cls"):
            want = self.bits("-p", text, "--pooling", pooling)
            for words in (("-ub", "1"), ("-ub", "7"), ("-b", "64", "-t", "1"), of_head):
                self.assertEqual(self.bits("-p", text, "--pooling", pooling, *words), want, words)

    def test_each_pooling_gives_another_vector(self):
        got = {name: self.bits("-p", TEXT, "--pooling", name) for name in ("mean", "last", "cls", "auto")}
        self.assertEqual(len(set(got.values())), 3)
        self.assertEqual(got["auto"], got["last"], "the demo model says nothing of it")
        self.assertEqual(self.bits("-p", TEXT, env={"BITNET_POOLING": "mean"}), got["mean"])

    def test_perf_counts_texts_and_tokens(self):
        said = self.ok("embed", "--perf", stdin=b"a fox\na wolf\n").stderr
        self.assertRegex(said, r"2 texts of \d+ tokens in [\d.]+ ms")

    def test_old_file_survives_a_failure(self):
        file = self.path("o.npy", b"old")
        self.rejected(1, "do not fit", "embed", "-p", TEXT, "-c", "4", "--format", "npy", "-o", file)
        with open(file, "rb") as f:
            self.assertEqual(f.read(), b"old")
        self.assertEqual(set(os.listdir(self.home)) - {"cache"}, {"o.npy"})

    def test_requests_without_a_text_are_rejected(self):
        self.rejected(2, "the text is empty", "embed", "-p", "")
        self.rejected(2, "the text is empty", "embed", "-f", self.path("empty.txt", "\n"))
        self.rejected(2, "no text on standard input", "embed")
        self.rejected(2, "line 2 of standard input is empty", "embed", stdin=b"a\n\nb\n")
        self.rejected(1, "text 2: ", "embed", "-c", "8", stdin=b"a\n" + TEXT.encode())
        self.rejected(2, "UTF-8", "embed", stdin=b"\xff\n")
        self.rejected(2, "--pooling", "embed", "-p", "a", "--pooling", "max")
        self.rejected(2, "--format", "embed", "-p", "a", "--format", "yaml")
        self.rejected(2, "-o is for --format npy", "embed", "-p", "a", "-o", self.path("o.npy"))
        self.rejected(2, "either", "embed", "-p", "a", "--ids", "1")
        self.rejected(2, "once", "embed", "-p", "a", "b")
        self.rejected(2, "no tokens", "embed", "--ids", "")
        self.rejected(2, "token ids", "embed", "--ids", "1 x")
        self.rejected(2, "vocabulary", "embed", "--ids", "1 99999999")
        self.rejected(1, "No such file", "embed", "-p", "a", "--format", "npy", "-o",
                     self.path("no/folder.npy"))
        model = self.path("m.gguf", b"GGUF")
        self.rejected(2, "m.gguf", "embed", "-p", "a", "--format", "npy", "-o", model)
        self.rejected(3, "no.gguf", "embed", "-m", self.path("no.gguf"), "-p", "a")
        self.rejected(3, "not a GGUF model", "embed", "-m", self.path("text.gguf", "once"), "-p", "a")


if __name__ == "__main__":
    support.main()
