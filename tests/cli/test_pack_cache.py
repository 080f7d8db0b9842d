"""Packed weights: kept, found again, made again when damaged; never another answer."""

import json
import os

import gguf_values
import support
from support import demo_model, needs_backend

N_VOCAB = 40000  # with rows of 256 enough for the copy of the head to be worth a file


def larger_model(path):
    """The demo model with tokens that no text has: a head of 20 MB."""
    model = gguf_values.Model(demo_model())
    more = N_VOCAB - len(model.metadata["tokenizer.ggml.tokens"])
    model.metadata["tokenizer.ggml.tokens"] += [f"[PAD{i}]" for i in range(more)]
    model.metadata["tokenizer.ggml.token_type"] += [5] * more
    model.metadata.pop("tokenizer.ggml.scores", None)
    key = model.metadata["general.architecture"] + ".vocab_size"
    if key in model.metadata:
        model.metadata[key] = N_VOCAB
    ne, kind, content = model.tensors["token_embd.weight"]
    model.tensors["token_embd.weight"] = ([ne[0], N_VOCAB], kind, content + bytes(2 * ne[0] * more))
    gguf_values.write(path, model.metadata, model.tensors)
    return path


def exchange_two_tokens(path):
    """In place: the rows of the embedding, and so of the head, of " a" and of " the"."""
    model = gguf_values.Model(path)
    tokens = model.metadata["tokenizer.ggml.tokens"]
    ne, _, content = model.tensors["token_embd.weight"]
    size = len(content) // ne[1]
    one, two = (content[size * i:size * (i + 1)] for i in map(tokens.index, ("\u0120a", "\u0120the")))
    with open(path, "r+b") as f:
        begin = f.read().index(content)
        for name, row in (("\u0120a", two), ("\u0120the", one)):
            f.seek(begin + size * tokens.index(name))
            f.write(row)


class PackCache(support.Case):
    def run_model(self, *more):
        done = self.ok("run", "-m", self.model, "-p", "Once upon a time", "-n", "16", "--temp", "0", *more)
        return done.stdout, done.stderr

    def files(self, tuning=False):
        """Of packed weights, or of settings that were measured, which are small."""
        folder = self.home + "/cache/bitnet/packed"
        found = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        found = [os.path.join(folder, name) for name in found]
        return [f for f in found if (os.stat(f).st_size < 8192) == tuning]

    @needs_backend
    def test_life_of_a_packed_head(self):
        self.model = larger_model(self.path("larger.gguf"))
        wanted, _ = self.run_model("--no-pack-cache")
        self.assertEqual(self.files(), [], "--no-pack-cache writes nothing")
        self.assertEqual(self.run_model("--low-memory")[0], wanted)
        self.assertEqual(self.files(), [], "nor does --low-memory")

        self.assertEqual(self.run_model()[0], wanted)
        if not self.files():
            self.skipTest("the selected backend packs nothing")
        [kept] = self.files()
        first = os.stat(kept)
        self.assertEqual(first.st_mode & 0o022, 0, "no other user may write it")
        self.assertEqual(self.run_model()[0], wanted)
        self.assertEqual(os.stat(kept).st_ino, first.st_ino, "used, not written again")

        with open(kept, "r+b") as f:
            f.seek(100000)
            old = f.read(1)
            f.seek(100000)
            f.write(bytes([old[0] ^ 1]))
        out, said = self.run_model()
        self.assertEqual(out, wanted)
        self.assertIn("a checksum is wrong", said)
        with open(kept, "rb") as f:
            f.seek(100000)
            self.assertEqual(f.read(1), old, "made again")
        self.assertNotIn("checksum", self.run_model()[1])

        os.utime(self.model, (1, 1))
        self.assertEqual(self.run_model()[0], wanted)
        self.assertEqual(len(self.files()), 2, "another file is another model")

    @needs_backend
    def test_model_that_was_written_over(self):
        """The same place, name, size and time of change, and other weights in it."""
        self.model = larger_model(self.path("larger.gguf"))
        before, _ = self.run_model()
        if not self.files():
            self.skipTest("the selected backend packs nothing")
        info = os.stat(self.model)
        exchange_two_tokens(self.model)
        os.utime(self.model, ns=(info.st_atime_ns, info.st_mtime_ns))
        now = os.stat(self.model)
        self.assertEqual((now.st_ino, now.st_size, now.st_mtime_ns),
                         (info.st_ino, info.st_size, info.st_mtime_ns))
        wanted, _ = self.run_model("--no-pack-cache")
        self.assertNotEqual(wanted, before, "the weights of a generated token are other ones")
        self.assertEqual(self.run_model()[0], wanted)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(self.run_model()[0], wanted, "from what was kept")

    @needs_backend
    def test_model_that_was_truncated(self):
        """What was kept of the whole file does not make up for what is missing of it."""
        self.model = larger_model(self.path("larger.gguf"))
        self.run_model()
        kept = self.files()
        size = os.path.getsize(self.model)
        for left in (size - 1, size // 2, 100):
            with self.subTest(left=left):
                os.truncate(self.model, left)
                self.rejected(3, "cut off", "run", "-m", self.model, "-p", "a", "-n", "1")
        self.assertEqual(self.files(), kept)

    @needs_backend
    def test_settings_are_measured_once(self):
        self.model = larger_model(self.path("larger.gguf"))

        def tuning(*more):
            report = self.ok("bench", "-m", self.model, "-p", "0", "-n", "1", "-r", "1", "--ceiling-mb",
                             "8", "-o", "json", "-lv", "4", *more)
            return json.loads(report.stdout)[0].get("tuning"), report.stderr

        found, said = tuning()
        if not found:
            self.skipTest("the selected backend has nothing to tune")
        self.assertIn("measured " + found, said)
        [kept] = self.files(tuning=True)
        again, said = tuning()
        self.assertEqual(again, found)
        self.assertNotIn("measured", said)
        with open(kept, "r+b") as f:
            f.seek(4096)
            f.write(b"X")
        self.assertIn("measured", tuning()[1])
        if "ahead=" in found:
            small, said = tuning("--hugepages", "off")
            self.assertIn(" pages=small", small)
            self.assertIn("measured " + small, said, "what suits other pages is kept by itself")
            self.assertEqual(len(self.files(tuning=True)), 2)
            self.assertNotIn("measured", tuning("--hugepages", "off")[1])
            self.assertNotIn("measured", tuning()[1])

    @needs_backend
    def test_cache_that_cannot_be_written(self):
        self.model = larger_model(self.path("larger.gguf"))
        self.path("cache", b"a file in the way")
        out, said = self.run_model()
        self.assertIn("packed weights are not kept", said)
        self.assertEqual(out, self.run_model("--no-pack-cache")[0])


if __name__ == "__main__":
    support.main()
