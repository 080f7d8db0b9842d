"""Model files that are broken in every way that a user's disk can produce: exit 3 and one line."""

import os
import random
import re
import struct

import gguf_bytes
import support


# Fields, their legal extremes (None: all), and the result of a run with them. Every other field at every
# other extreme makes the file damaged, impossible or unsupported.
LEGAL = [
    (r"general\.(quantization_version|file_type)", None, 0),  # texts for people: nothing depends on them
    (r"[^ ]*\.context_length", (1,), 1),  # which holds no prompt
    (r"[^ ]*\.(attention\.layer_norm_rms_epsilon|rope\.freq_base)", (3.0e38,), 0),  # positive, finite
    (r"tokenizer\.ggml\.(bos|eos|eot)_token_id", None, 0),  # 0 and 1 are tokens, 2^32 - 1 is none
    (r"tokenizer\.ggml\.add_[a-z_]+", None, 0),  # both values of a flag
]


@support.needs_model
class ModelFiles(support.Case):
    @classmethod
    def setUpClass(cls):
        with open(support.demo_model(), "rb") as f:
            cls.model = f.read()
        cls.layout = gguf_bytes.Layout(cls.model)

    def run_model(self, content):
        return self.bitnet("run", "-m", self.path("m.gguf", content), "-p", "Once", "-n", "1",
                           "-t", "1")

    def rejected_by_all(self, message, file):
        for words in (["run", "-m", file, "-p", "a"], ["inspect", file], ["inspect", "-m", file],
                      ["tokenize", "-m", file, "a"], ["detokenize", "-m", file, "1"],
                      ["logits", "-m", file, "-p", "a", "-o", self.path("o.npy")],
                      ["chat", "-m", file], ["run", file, "a"]):
            with self.subTest(words=words):
                self.rejected(3, message, *words)
        self.assertFalse(os.path.exists(self.path("o.npy")))

    def test_a_missing_file_is_rejected(self):
        self.rejected_by_all("does not exist", self.path("none.gguf"))

    def test_a_folder_is_rejected(self):
        os.makedirs(self.path("folder.gguf"))
        self.rejected_by_all("folder.gguf", self.path("folder.gguf"))

    def test_a_text_file_is_rejected(self):
        self.rejected_by_all("GGUF", self.path("m.gguf", "Once upon a time\n" * 100))

    def test_an_empty_file_is_rejected(self):
        self.rejected_by_all("m.gguf", self.path("m.gguf", b""))

    def test_prompt_where_the_model_belongs(self):
        self.rejected(3, "use -p", "run", "Once upon a time")

    def test_name_in_the_models_folder(self):
        self.path("data/bitnet/models/mine.gguf", self.model)
        for name in ("mine", "mine.gguf"):
            self.ok("tokenize", "-m", name, "a")

    def test_demo_model_is_found_by_its_name(self):
        self.path("models/TinyTales-9M-v2.0-I2_S.gguf", self.model)
        env = {"BITNET_MODEL": None, "BITNET_MODELS": self.path("models")}
        self.assertIn("TinyTales-9M", self.ok("inspect", "--json", env=env).json["file"])

    def test_a_missing_demo_model_ends_with_3(self):
        env = {"BITNET_MODEL": None, "BITNET_MODELS": self.path("nowhere")}
        self.rejected(3, "-m FILE", "run", "-p", "a", env=env)

    def test_a_file_that_was_cut_anywhere_is_rejected(self):
        seed = 20261120
        chance = random.Random(seed)
        ends = {chance.randrange(len(self.model)) for _ in range(40)}
        # Most bytes are weights, so the header is damaged separately.
        ends |= {chance.randrange(self.layout.data) for _ in range(8)} | {3, 23}
        for end in sorted(ends):
            with self.subTest(end=end, seed=seed):
                result = self.run_model(self.model[:end])
                self.assertEqual(result.code, 3, result)
                self.assertEqual(len(result.errors), 1, result)
                self.assertEqual(result.stdout, b"")

    @support.needs_backend
    def test_header_fields_at_their_extremes(self):
        """What LEGAL names runs; everything else is rejected in one line."""
        seen = set()
        for field in self.layout.fields:
            for value in self.layout.extremes(field):
                with self.subTest(field=field.name, value=value):
                    result = self.run_model(self.layout.with_value(field, value))
                    rule = next((r for r in LEGAL if re.fullmatch(r[0], field.name)
                                 and (r[1] is None or value in r[1])), None)
                    seen.add(rule)
                    self.assertEqual(result.code, rule[2] if rule else 3, result)
                    self.assertEqual(len(result.errors), 0 if result.code == 0 else 1, result)
                    if result.code == 1:
                        self.assertIn("context", result.errors[0], result)
        self.assertEqual(set(LEGAL) - seen, set(), "rules that met no field")

    def test_inspect_says_why_a_model_would_not_run(self):
        type_of = next(f for f in self.layout.fields if f.name.startswith("type of blk")
                       or f.name.startswith("type of token_embd") or "type of output" in f.name)
        file = self.path("m.gguf", self.layout.with_value(type_of, 10))  # Q2_K
        result = self.bitnet("inspect", file)
        self.assertEqual(result.code, 3, result)
        self.assertIn("cannot run", result.text)
        self.assertEqual(self.bitnet("run", "-m", file, "-p", "a").code, 3)

    def test_texts_need_a_tokenizer(self):
        file = self.path("m.gguf", self.layout.without_pairs("tokenizer."))
        self.rejected(3, "tokenizer", "run", "-m", file, "-p", "a")
        self.rejected(3, "tokenizer", "tokenize", "-m", file, "a")

    def test_inspect_counts_tensors_and_context(self):
        content = self.ok("inspect", "--json").json
        self.assertEqual(len(content["tensors"]), self.layout.n_tensors)
        self.assertEqual(content["problems"], [])
        shape = content["model"]
        token = shape["layers"] * shape["kv_heads"] * shape["head_dim"] * 4  # bytes, keys and values
        host = content["host"]
        room = host["memory_free_bytes"] - shape["weight_bytes"]
        self.assertEqual(host["max_context"], min(room // (64 * token) * 64, 1 << 20))
        text = self.ok("inspect").text
        self.assertRegex(text, r"(?m)^  max_context +\d+$")
        self.assertIn("This model can run", text)
        self.assertIn(content["architecture"], text)

    def test_seed_of_the_mutations_breaks_something(self):
        """The other tests cannot pass because the file was never right to begin with."""
        self.assertEqual(struct.unpack_from("<I", self.model, 4)[0], self.layout.version)
        self.ok("inspect", self.path("m.gguf", self.model))
        self.ok("inspect", self.path("m.gguf", self.layout.without_pairs("nothing.")))


if __name__ == "__main__":
    support.main()
