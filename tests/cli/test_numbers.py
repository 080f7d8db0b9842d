"""bitnet convert and quantize: every number that is written is one that its type holds."""

import json
import math
import os
import struct
import unittest

import gguf_values
import support
import tiny_checkpoint
from tiny_checkpoint import N

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
GATE = "model.layers.0.mlp.gate_proj.weight"
NORM = "model.layers.0.input_layernorm.weight"
HERE = 5 * N + 3  # an element: row 5, column 3
PLACE = f"element {HERE} (row 5, column 3)"
NAN, INF = math.nan, math.inf


class Numbers(tiny_checkpoint.Case):
    def convert(self, *more, type_="f32"):
        out = self.path("out.gguf")
        words = ["convert", self.save(), out, "--force", "--json", *more]
        return out, self.bitnet(*words, *(["--type", type_] if type_ else []))

    def read(self, path, name):
        """The tensor as numbers, of F32, F16 or BF16."""
        _, kind, content = gguf_values.Model(path).tensors[name]
        if kind == gguf_values.BF16:
            content = b"".join(b"\0\0" + content[i:i + 2] for i in range(0, len(content), 2))
        width, code = (2, "e") if kind == gguf_values.F16 else (4, "f")
        return struct.unpack(f"<{len(content) // width}{code}", content)

    # Tensor, its type, the number, the words of the command, what the message says, why the row is there.
    REJECTED = (
        (EMBEDDING, "F32", NAN, [], f"{PLACE} is NaN", "made F16"),
        (EMBEDDING, "F32", INF, [], f"{PLACE} is inf", "the other one that is none"),
        (EMBEDDING, "F16", NAN, [], f"{PLACE} is NaN", "copied as it is"),
        (EMBEDDING, "BF16", -INF, [], f"{PLACE} is -inf", "of the third type"),
        (HEAD, "F32", NAN, ["--output-tensor-type", "q8_0"], f"{PLACE} is NaN", "a scale of its block"),
        (HEAD, "F32", NAN, ["--output-tensor-type", "q4_0"], f"{PLACE} is NaN", "which a level would hide"),
        (HEAD, "F32", NAN, ["--output-tensor-type", "q6_k"], None, "rows of 128 are rejected before"),
        (HEAD, "F32", INF, ["--output-tensor-type", "pq2_0"], f"{PLACE} is inf", "made ternary in groups"),
        (GATE, "F32", NAN, [], f"{PLACE} is NaN", "a linear layer"),
        (GATE, "F16", INF, [], f"{PLACE} is inf", "f16 to f32"),
        (NORM, "F32", NAN, [], "element 3", "a vector is rejected when it is read"),
        (EMBEDDING, "F32", 100000.0, ["--token-embedding-type", "f16"], f"{PLACE} is 100000, more than f16 holds; choose "
         "f32 or bf16", "asked for by name"),
        (EMBEDDING, "F32", 1e7, ["--token-embedding-type", "q8_0"], f"{PLACE} is 10000000, more than q8_0 holds",
         "127 times what f16 holds is 8.3e6"),
        (HEAD, "F32", -6e5, ["--output-tensor-type", "q4_0"], f"{PLACE} is -600000, more than q4_0 holds",
         "8 times what f16 holds is 524032"),
        (HEAD, "F32", 3.4028234e38, ["--output-tensor-type", "bf16"], f"{PLACE} is 3.4028235e+38, more than bf16 holds; "
         "choose f32", "the last f32 rounds up to infinity"),
    )

    def test_numbers_out_of_range_are_rejected(self):
        for name, dtype, number, words, message, why in self.REJECTED:
            with self.subTest(why, name=name, number=number):
                self.setUp()
                element = 3 if name == NORM else HERE
                self.set(name, element, number, dtype)
                out, done = self.convert(*words)
                self.assertEqual(done.code, 3, done)
                self.assertEqual(len(done.errors), 1, done)
                ours = {EMBEDDING: "token_embd", HEAD: "output", GATE: "blk.0.ffn_gate", NORM: "blk.0.attn_norm"}[name]
                self.assertIn(f"'{ours}.weight'", done.stderr)
                self.assertIn(message or "needs a multiple of 256", done.stderr)
                self.assertNotIn("report", done.stderr)
                self.assertEqual(done.stdout, b"")
                self.assertEqual([n for n in os.listdir(self.home) if "out" in n], [], "nothing is left")

    def test_linear_layers_by_type(self):
        """100000 in a matrix: each type holds it, or is rejected by tensor, element and value."""
        for type_, message in (("f16", "is 100000, more than f16 holds"), ("bf16", None), ("f32", None),
                               ("q8_0", None), ("q4_0", None), ("i2_s", None)):
            with self.subTest(type_):
                self.set(GATE, HERE, 100000.0, "F32")
                out, done = self.convert("--verify", type_=type_)
                if message is None:
                    self.assertEqual(done.code, 0, done)
                    self.assertIs(done.json["verified"], True)
                    self.assertEqual(self.bitnet("inspect", "-m", out).code, 0)
                else:
                    self.assertEqual(done.code, 3, done)
                    self.assertIn(f"tensor 'blk.0.ffn_gate.weight': {PLACE} {message}", done.stderr)

    def test_the_largest_of_each_type_is_converted_and_the_next_rejected(self):
        """The last number that a type holds, and the next one."""
        for type_, holds, next_ in (("f16", 65519.996, 65520.0), ("q8_0", 127 * 65504.0, 127 * 65521.0),
                                    ("q4_0", 8 * 65504.0, 8 * 65521.0), ("bf16", 3.3895313e38, 3.4e38)):
            with self.subTest(type_):
                self.set(HEAD, HERE, holds, "F32")
                _, done = self.convert("--output-tensor-type", type_, "--verify")
                self.assertEqual(done.code, 0, done)
                self.set(HEAD, HERE, next_, "F32")
                _, done = self.convert("--output-tensor-type", type_)
                self.assertEqual(done.code, 3, done)
                self.assertIn("holds", done.stderr)

    def test_tables_stay_in_a_type_that_holds_them(self):
        """Unasked an embedding and a head become F16; not where that would make other numbers of them."""
        for name, ours in ((EMBEDDING, "token_embd.weight"), (HEAD, "output.weight")):
            for dtype in ("F32", "BF16"):
                with self.subTest(name, dtype=dtype):
                    self.setUp()
                    self.set(name, HERE, 98304.0, dtype)  # a number of BF16
                    out, done = self.convert("--verify", type_=None)
                    self.assertEqual(done.code, 0, done)
                    [kept] = done.json["kept"]
                    self.assertEqual((kept["tensor"], kept["type"]), (ours, dtype))
                    self.assertIn(f"{PLACE} is 98304, more than f16 holds", kept["why"])
                    self.assertEqual(self.read(out, ours)[HERE], 98304.0)
                    text = self.ok("convert", self.folder, out, "--force").text
                    self.assertIn(f"{ours} stays {dtype}: ", text)
        self.setUp()
        self.assertNotIn("kept", self.convert(type_=None)[1].json)

    def test_numbers_that_would_become_0_are_rejected(self):
        """What would all become 0 is no model any more."""
        for type_, code in (("f16", 3), ("q8_0", 3), ("q4_0", 3), ("bf16", 0), ("f32", 0)):
            with self.subTest(type_):
                self.tensors[HEAD] = ["F32", [tiny_checkpoint.VOCAB, N], [1e-9] * (tiny_checkpoint.VOCAB * N)]
                _, done = self.convert("--output-tensor-type", type_, "--verify")
                self.assertEqual(done.code, code, done)
                if code != 0:
                    self.assertIn("holds numbers so small that", done.stderr)
        out, done = self.convert(type_=None)  # unasked: as it is
        self.assertEqual(done.json["kept"][0]["type"], "F32")
        self.assertAlmostEqual(self.read(out, "output.weight")[7], 1e-9, delta=1e-15)
        self.setUp()
        self.tensors[GATE] = ["F32", [N, N], [1e-7 * (1 + i % 3) for i in range(N * N)]]
        for type_ in ("i2_s", "q2_0"):
            _, done = self.convert(type_=type_)
            self.assertEqual(done.code, 0 if type_ == "q2_0" else 3, done)
            if type_ == "i2_s":
                self.assertIn("all would become 0", done.stderr)

    def test_few_small_numbers_may_become_zeros(self):
        """Rounding of a few numbers that are nothing beside the others is what types do."""
        self.set(HEAD, HERE, 1e-9, "F32")
        for type_ in ("f16", "q8_0", "q4_0"):
            self.assertEqual(self.convert("--output-tensor-type", type_, "--verify")[1].code, 0)

    def test_an_unreadable_vocabulary_is_rejected_before_writing(self):
        """A vocabulary that cannot be read is rejected before anything is written."""
        self.save()
        with open(self.path("checkpoint/tokenizer.json"), encoding="utf-8") as file:
            tokenizer = json.load(file)
        tokenizer["model"]["merges"] = []
        self.write("tokenizer.json", tokenizer)
        self.rejected(3, "needs tokenizer.ggml.merges", "convert", self.folder, self.path("o.gguf"))
        self.assertFalse(os.path.exists(self.path("o.gguf")))


if __name__ == "__main__":
    support.main()
