"""bitnet quantize and convert: other types of weights, Hugging Face folders, and errors."""

import glob
import json
import math
import os
import signal
import struct
import subprocess
import unittest

import gguf_values
import support
from support import PROGRAM, TIMEOUT_S, demo_model, needs_backend, needs_model

TERNARY = ("i2_s", "tq1_0", "tq2_0", "iq2_bn", "q2_0", "pq2_0", "ptq1_0")


def bf16(x):
    return struct.unpack("<I", struct.pack("<f", x))[0] >> 16


class Quantize(support.Case):
    def quantize(self, type_, *more, source=None):
        out = os.path.join(self.home, f"{type_}.gguf")
        report = self.ok("quantize", source or demo_model(), out, type_, "--json", *more).json
        self.assertEqual(report["bytes"], os.path.getsize(out))
        return out, report

    def logits(self, model):
        out = self.path("logits.npy")
        self.ok("logits", "-m", model, "-p", "Once upon a time there was", "-o", out, "--all")
        with open(out, "rb") as f:
            return f.read()

    @needs_model
    def test_i2s_is_the_same_file_but_for_its_head(self):
        out, report = self.quantize("i2_s", "--verify")
        self.assertTrue(report["verified"])
        ours, theirs = gguf_values.Model(out), gguf_values.Model(demo_model())
        for name, (ne, kind, content) in theirs.tensors.items():
            found_ne, found_kind, found = ours.tensors[name]
            self.assertEqual((found_ne, found_kind), (ne, kind), name)
            end = len(content) - 28 if kind == gguf_values.I2_S else len(content)
            self.assertEqual(found[:end], content[:end], name)
        dropped = {"general.quantization_version", "general.file_type"}
        self.assertEqual({k: v for k, v in ours.metadata.items() if k not in dropped},
                         {k: v for k, v in theirs.metadata.items() if k not in dropped})

    @needs_backend
    def test_exact_scales_give_the_same_logits(self):
        wanted = self.logits(demo_model())
        for type_ in ("I2_S", "iq2_bn"):  # in any case
            out, _ = self.quantize(type_, "--verify")
            self.assertEqual(self.logits(out), wanted, type_)

    @needs_backend
    def test_chain_of_types_comes_back(self):
        """Each step keeps the ternary values; f32 keeps the scale too."""
        path, _ = self.quantize("iq2_bn")
        path, _ = self.quantize("f32", source=path)
        path, report = self.quantize("i2_s", "--verify", source=path)
        self.assertIn("ternary already", report["readings"][0]["as"])
        self.assertEqual(self.logits(path), self.logits(demo_model()))

    @needs_model
    def test_every_type_is_written_and_verified(self):
        for type_ in (*TERNARY, "f32", "f16", "bf16", "q8_0", "q4_0", "q6_k"):
            _, report = self.quantize(type_, "--verify")
            self.assertTrue(report["verified"], type_)
            short = type_.upper() if type_ != "q6_k" else "Q6_K"
            self.assertIn(short, [t["type"] for t in report["tensors"]], type_)

    @needs_backend
    def test_every_type_generates_the_same_text(self):
        """All but q4_0, whose blocks reach from -8 to 7: of two values of one size it rounds one."""
        story = lambda model: self.ok("run", "-m", model, "-p", "Once upon a time", "-n", "100",  # noqa: E731
                                     "--temp", "0").text
        wanted = story(demo_model())
        for type_ in (*TERNARY, "f32", "f16", "bf16", "q8_0", "q6_k"):
            with self.subTest(type_):
                self.assertEqual(story(self.quantize(type_)[0]), wanted)

    @needs_backend
    def test_types_with_groups_generate_the_same(self):
        """One scale, written for 256, 128 and 64 elements and read back as one."""
        path, _ = self.quantize("tq1_0")
        wanted = self.logits(path)
        for type_ in ("ptq1_0", "q2_0", "pq2_0", "tq2_0"):
            path, report = self.quantize(type_, "--verify", source=path)
            self.assertTrue(report["verified"])
            self.assertEqual(self.logits(path), wanted, type_)
            self.assertIn("This model can run.", self.ok("inspect", "-m", path).text)

    @needs_model
    def test_floats_get_a_scale_for_each_group(self):
        floats, _ = self.quantize("f32", source=self.quantize("q4_0")[0])  # of many sizes
        for type_, group, how in (("q2_0", 64, "Q2_0 in groups of 64, the scale first"),
                                  ("pq2_0", 128, "PQ2_0, by its type"), ("ptq1_0", 128, "PTQ1_0, by its type")):
            with self.subTest(type_):
                path, report = self.quantize(type_, "--verify", source=floats)
                self.assertIn(f"by the mean size of each {group}", report["readings"][0]["as"])
                found = self.ok("inspect", "-m", path, "--json").json
                self.assertIn(how, " ".join(r["as"] for r in found["readings"]))
                self.assertEqual(found.get("type_42"), {"layout": how, "recognised": "by the sizes of its tensors"}
                                 if type_ == "q2_0" else None)
        self.assertIn("by the sizes of its tensors", self.ok("inspect", "-m", self.path("q2_0.gguf")).text)
        self.rejected(3, "differ within 256 elements", "quantize", self.path("pq2_0.gguf"), self.path("x"), "tq2_0")
        self.rejected(3, "choose pq2_0", "quantize", self.path("pq2_0.gguf"), self.path("x"), "i2_s")
        self.rejected(3, "Q1_0 knows no zeros", "quantize", floats, self.path("x"), "q1_0")

    @needs_backend
    def test_two_bits_with_plus_two_are_dense(self):
        path, _ = self.quantize("pq2_0")
        name = "blk.0.ffn_up.weight"
        at = next(t["offset"] for t in self.ok("inspect", "-m", path, "--json").json["tensors"] if t["name"] == name)
        with open(path, "r+b") as f:
            f.seek(at)
            scale, first = struct.unpack("<eB", f.read(3))
            f.seek(at + 2)
            f.write(bytes([first | 3]))
        self.assertIn("holds the code 3, which is +2", self.ok("inspect", "-m", path).text)
        wanted = self.logits(path)
        floats, _ = self.quantize("f32", "--verify", source=path)
        self.assertEqual(struct.unpack_from("<f", gguf_values.Model(floats).tensors[name][2]), (2 * scale,))
        self.assertEqual(len(self.logits(floats)), len(wanted))
        self.rejected(3, "so it is not ternary", "quantize", path, self.path("x"), "q2_0")

    @needs_model
    def test_threads_make_no_difference(self):
        made = []
        for n in ("1", "3"):
            out, _ = self.quantize("tq2_0", "-t", n, "--token-embedding-type", "q6_k", "--force")
            with open(out, "rb") as f:
                made.append(f.read())
        self.assertEqual(made[0], made[1])

    @needs_model
    def test_each_embedding_type_is_close_to_its_source(self):
        for type_ in ("q8_0", "q6_k", "q4_0"):
            out = self.path(f"e-{type_}.gguf")
            report = self.ok("quantize", demo_model(), out, "i2_s", "--verify", "--json",
                             "--token-embedding-type", type_).json
            self.assertIn(type_.upper(), [t["type"] for t in report["tensors"]])
            self.assertLess(report["dense_error"], 0.12)

    @needs_model
    def test_an_embedding_in_groups_is_made_again_with_the_same_bytes(self):
        """Made of floats, and the same bytes again of the floats that it stands for."""
        for type_ in ("pq2_0", "q2_0", "ptq1_0"):
            with self.subTest(type_):
                first, back, again = (self.path(f"{n}-{type_}.gguf") for n in ("first", "back", "again"))
                report = self.ok("quantize", demo_model(), first, type_, "--verify", "--json",
                                 "--token-embedding-type", type_).json
                self.assertTrue(report["verified"])
                self.assertIn("by the mean size of each", " ".join(r["as"] for r in report["readings"]))
                self.ok("quantize", first, back, "f32", "--token-embedding-type", "f32", "--verify")
                self.ok("quantize", back, again, type_, "--token-embedding-type", type_, "--verify")
                made = gguf_values.Model(first).tensors
                self.assertEqual(gguf_values.Model(again).tensors["token_embd.weight"], made["token_embd.weight"])
                self.assertEqual(made["token_embd.weight"][1], made["blk.0.attn_q.weight"][1])
                self.assertIn("This model can run.", self.ok("inspect", "-m", first).text)
        lost = self.path("lost.gguf")
        self.ok("quantize", demo_model(), lost, "pq2_0", "--token-embedding-type", "q8_0")
        self.rejected(3, "has lost what ternary weights are made of", "quantize", lost, self.path("x"), "pq2_0",
                     "--token-embedding-type", "pq2_0")

    @needs_model
    def test_wrong_conversions_are_rejected(self):
        taken = self.path("taken.gguf", b"mine")
        rows = [
            (2, "expected IN OUT TYPE", ["quantize", demo_model(), "x"]),
            (2, "expected DIR OUT", ["convert", "x"]),
            (2, "no type 'i3'", ["quantize", demo_model(), self.path("x"), "i3"]),
            (2, "cannot be written as 'i2_s'",
             ["quantize", demo_model(), self.path("x"), "i2_s", "--token-embedding-type", "i2_s"]),
            (2, "--force", ["quantize", demo_model(), taken, "i2_s"]),
            (2, "is the model that is read", ["quantize", demo_model(), demo_model(), "i2_s", "--force"]),
            (2, "No such file", ["quantize", demo_model(), "/no/such/folder/x", "i2_s"]),
            (3, "does not exist", ["quantize", "no.gguf", self.path("x"), "i2_s"]),
            (3, "not a GGUF model", ["quantize", taken, self.path("x"), "i2_s"]),
            (3, "tile sizes", ["quantize", demo_model(), self.path("x"), "tl1"]),
        ]
        for code, message, words in rows:
            with self.subTest(words=words[-2:]):
                self.rejected(code, message, *words)
        self.assertEqual(os.listdir(self.home).count("x"), 0)
        with open(taken, "rb") as f:
            self.assertEqual(f.read(), b"mine")

    @needs_model
    def test_lost_precision_is_rejected(self):
        path, _ = self.quantize("q8_0")
        self.rejected(3, "has lost what ternary weights are made of", "quantize", path,
                     self.path("x.gguf"), "i2_s")

    @needs_model
    def test_force_replaces_and_keeps_no_other_file(self):
        out = self.path("x.gguf", b"old")
        self.ok("quantize", demo_model(), out, "i2_s", "--force")
        self.assertGreater(os.path.getsize(out), 1000)
        self.assertEqual(glob.glob(self.home + "/*part*"), [])

    @needs_model
    def test_killed_run_leaves_no_file(self):
        for sign in (signal.SIGINT, signal.SIGKILL):
            out = self.path("x.gguf")
            run = subprocess.Popen([PROGRAM, "quantize", demo_model(), out, "f32", "--verify"],
                                   env=self.environment(), cwd=self.home, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            run.send_signal(sign)
            run.wait(TIMEOUT_S)
            if run.returncode != 0:  # else it was faster than the signal
                self.assertFalse(os.path.exists(out))
            self.assertEqual([n for n in os.listdir(self.home) if "part" in n], [])

    @needs_model
    def test_a_full_disk_leaves_no_file(self):
        run = subprocess.run(["bash", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$0" "$@"', PROGRAM,
                              "quantize", demo_model(), self.path("x.gguf"), "f16"],
                             env=self.environment(), cwd=self.home, capture_output=True)
        self.assertEqual(run.returncode, 1, run)
        self.assertIn(b"cannot be written: File too large", run.stderr)
        self.assertFalse(os.path.exists(self.path("x.gguf")))


class Checkpoint(support.Case):
    """The demo model as a Hugging Face folder, packed: docs/reference/weights.md#checkpoints."""

    def setUp(self):
        super().setUp()
        if demo_model() is None:
            self.skipTest("models/ holds no TinyTales*.gguf")
        self.model = gguf_values.Model(demo_model())
        self.folder = os.path.join(self.home, "checkpoint")
        os.makedirs(self.folder)

    def write(self, name, content):
        return self.path("checkpoint/" + name, content if isinstance(content, bytes)
                         else json.dumps(content))

    def write_tensors(self, tensors, name="model.safetensors"):
        header, data = {}, b""
        for key, (dtype, shape, content) in tensors.items():
            header[key] = {"dtype": dtype, "shape": shape,
                           "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        self.write(name, struct.pack("<Q", len(text)) + text + data)

    def config(self, **more):
        get = lambda key: self.model.metadata[self.model.metadata["general.architecture"] + "." + key]
        config = {
            "model_type": "bitnet", "hidden_act": "relu2", "vocab_size": len(self.tokens()),
            "max_position_embeddings": get("context_length"), "hidden_size": get("embedding_length"),
            "num_hidden_layers": get("block_count"), "intermediate_size": get("feed_forward_length"),
            "num_attention_heads": get("attention.head_count"),
            "num_key_value_heads": get("attention.head_count_kv"),
            "rms_norm_eps": 1e-5, "rope_theta": self.model.metadata.get(
                self.model.metadata["general.architecture"] + ".rope.freq_base", 10000.0),
            "tie_word_embeddings": True,
            "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                    "quantization_mode": "offline"}}
        config.update(more)
        return config

    def tokens(self):
        return self.model.metadata["tokenizer.ggml.tokens"]

    def framing(self):
        """What puts the first token, as transformers 5 goes by nothing else."""
        if not self.model.metadata.get("tokenizer.ggml.add_bos_token", False):
            return None
        bos = self.model.metadata["tokenizer.ggml.bos_token_id"]
        text = self.tokens()[bos]
        return {"type": "TemplateProcessing", "pair": [],
                "single": [{"SpecialToken": {"id": text, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "special_tokens": {text: {"id": text, "ids": [bos], "tokens": [text]}}}

    def tokenizer(self):
        types = self.model.metadata["tokenizer.ggml.token_type"]
        split = {"type": "Split", "behavior": "Isolated", "pattern": {"Regex":
                 r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+"
                 r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"}}
        level = {"type": "ByteLevel", "use_regex": False}
        return {
            "added_tokens": [{"id": i, "content": t, "special": types[i] == 3}
                             for i, t in enumerate(self.tokens()) if types[i] != 1],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": self.framing(),
            "model": {"type": "BPE",
                      "vocab": {t: i for i, t in enumerate(self.tokens()) if types[i] == 1},
                      "merges": self.model.metadata["tokenizer.ggml.merges"]}}

    NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "attn_sub_norm": "self_attn.attn_sub_norm",
             "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
             "ffn_sub_norm": "mlp.ffn_sub_norm"}

    def name_of(self, ours):
        if ours == "token_embd.weight":
            return "model.embed_tokens.weight"
        if ours == "output_norm.weight":
            return "model.norm.weight"
        _, layer, part, _ = ours.split(".")
        return f"model.layers.{layer}.{self.NAMES[part]}.weight"

    def linear(self, name, ne, content, kind):
        codes, scale = gguf_values.i2s_codes(ne, content)
        k, m = ne
        if kind == "master":  # weights whose mean size is the scale: ternary values times it over
            nonzero = sum(len(row) - row.count(1) for row in codes)
            size = scale * k * m / nonzero
            flat = b"".join(struct.pack("<f", (c - 1) * size) for row in codes for c in row)
            return {name: ("F32", [m, k], flat)}
        quarter = m // 4
        packed = bytearray(quarter * k)
        for r, row in enumerate(codes):
            for c, code in enumerate(row):
                packed[r % quarter * k + c] |= code << 2 * (r // quarter)
        given = 1 / scale if kind == "inverse" else scale
        return {name: ("U8", [quarter, k], bytes(packed)),
                name + "_scale": ("F32", [1], struct.pack("<f", given))}

    def tensors(self, kind):
        out = {}
        for ours, (ne, type_, content) in self.model.tensors.items():
            name = self.name_of(ours)
            if type_ == gguf_values.I2_S:
                out.update(self.linear(name, ne, content, kind))
            else:
                dtype = {gguf_values.F32: "F32", gguf_values.F16: "F16"}[type_]
                out[name] = (dtype, ne[::-1], content)
        return out

    def checkpoint(self, kind="packed"):
        self.write("tokenizer.json", self.tokenizer())
        about = {"bos": "bos_token", "eos": "eos_token", "padding": "pad_token"}
        self.write("tokenizer_config.json", {
            theirs: self.tokens()[self.model.metadata[f"tokenizer.ggml.{ours}_token_id"]]
            for ours, theirs in about.items() if f"tokenizer.ggml.{ours}_token_id" in self.model.metadata}
            | {"add_bos_token": self.model.metadata.get("tokenizer.ggml.add_bos_token", False)})
        config = self.config()
        if kind == "inverse":
            config["quantization_config"]["linear_class"] = "bitlinear"
        if kind == "master":
            config["quantization_config"]["quantization_mode"] = "online"
        self.write("config.json", config)
        self.write_tensors(self.tensors(kind))

    def generated(self, model):
        return self.ok("run", "-m", model, "-p", "Once upon a time", "-n", "24", "--temp", "0").text

    def test_every_kind_of_weights_generates_the_same_text(self):
        wanted = self.generated(demo_model()) if support.report()["selected"] else None
        ids = self.ok("tokenize", "-m", demo_model(), "Tom said: it's 12345 o'clock!\n\n ok").text
        for kind in ("packed", "inverse", "master"):
            with self.subTest(kind=kind):
                self.checkpoint(kind)
                self.assertEqual(
                    self.ok("tokenize", "-m", self.folder, "Tom said: it's 12345 o'clock!\n\n ok").text, ids)
                out = self.path("out.gguf")
                report = self.ok("convert", self.folder, out, "--verify", "--force", "--json").json
                self.assertTrue(report["verified"])
                ours = gguf_values.Model(out)
                for name, (ne, type_, content) in self.model.tensors.items():
                    if type_ == gguf_values.I2_S:
                        n = ne[0] * ne[1] // 4
                        self.assertEqual(ours.tensors[name][2][:n], content[:n], name)
                if wanted:
                    self.assertEqual(self.generated(self.folder), wanted)
                    self.assertEqual(self.generated(out), wanted)
                self.assertIn("This model can run.", self.ok("inspect", "-m", self.folder).text)

    def qwen3(self, group=None):
        """The demo model's matrices as floats in a Qwen3 folder, with norms of heads for its own. With `group`
        each so many columns have a scale of their own."""
        self.checkpoint()
        config = self.config(model_type="qwen3", hidden_act="silu", head_dim=self.head_dim())
        del config["quantization_config"]
        self.write("config.json", config)
        tensors = {}
        for ours, (ne, type_, content) in self.model.tensors.items():
            if "sub_norm" in ours:
                continue
            name = self.name_of(ours)
            if type_ == gguf_values.I2_S:
                codes, scale = gguf_values.i2s_codes(ne, content)
                sizes = [scale * (1 + (c // group % 2 if group else 0)) for c in range(ne[0])]
                flat = b"".join(struct.pack("<e", (c - 1) * s) for row in codes for c, s in zip(row, sizes))
                tensors[name] = ("F16", ne[::-1], flat)
            else:
                tensors[name] = ({gguf_values.F32: "F32", gguf_values.F16: "F16"}[type_], ne[::-1], content)
        for layer in range(self.config()["num_hidden_layers"]):
            for part in ("q", "k"):
                norm = struct.pack(f"<{self.head_dim()}f", *(0.5 + 0.01 * i for i in range(self.head_dim())))
                tensors[f"model.layers.{layer}.self_attn.{part}_norm.weight"] = ("F32", [self.head_dim()], norm)
        self.write_tensors(tensors)
        return tensors

    def head_dim(self):
        config = self.config()
        return config["hidden_size"] // config["num_attention_heads"]

    def test_qwen3_becomes_its_keys_and_tensors(self):
        tensors = self.qwen3()
        about = self.ok("inspect", "-m", self.folder, "--json").json["model"]
        self.assertTrue(about["head_norms"])
        self.assertFalse(about["sub_norms"])
        out = self.path("out.gguf")
        self.ok("quantize", self.folder, out, "f16")
        ours = gguf_values.Model(out)
        self.assertEqual(ours.metadata["general.architecture"], "qwen3")
        for layer in (0, 1):  # halves of heads rotate: no row changes its place
            for part in ("q", "k"):
                wanted = tensors[f"model.layers.{layer}.self_attn.{part}_proj.weight"][2]
                self.assertEqual(ours.tensors[f"blk.{layer}.attn_{part}.weight"][2], wanted)
                norm = tensors[f"model.layers.{layer}.self_attn.{part}_norm.weight"][2]
                self.assertEqual(ours.tensors[f"blk.{layer}.attn_{part}_norm.weight"][2], norm)
        if support.report()["selected"]:
            self.assertEqual(self.generated(self.folder), self.generated(out))
        self.write("config.json", self.config(model_type="qwen3", hidden_act="silu", use_sliding_window=True))
        self.rejected(3, "use_sliding_window", "convert", self.folder, self.path("o.gguf"))

    def test_groups_that_are_ternary_keep_their_scales(self):
        """One scale for a matrix would make other weights of them."""
        for group, type_, wrong in ((128, "pq2_0", ("i2_s", "iq2_bn", "tq2_0")),
                                    (64, "q2_0", ("i2_s", "tq1_0", "pq2_0"))):
            with self.subTest(group):
                tensors = self.qwen3(group)
                out = self.path(f"{group}.gguf")
                report = self.ok("convert", self.folder, out, "--verify", "--json").json
                self.assertIn(type_.upper(), [t["type"] for t in report["tensors"]])
                self.assertEqual([r["as"] for r in report["readings"]],
                                 [f"weights that are ternary already: in each {group} all but zeros are of one size"])
                self.ok("quantize", out, self.path("back.gguf"), "f16", "--force")
                wanted = tensors["model.layers.0.self_attn.q_proj.weight"][2].replace(b"\0\x80", b"\0\0")
                self.assertEqual(gguf_values.Model(self.path("back.gguf")).tensors["blk.0.attn_q.weight"][2], wanted)
                for other in wrong:
                    self.rejected(3, f"choose {type_}", "convert", self.folder, self.path("x"), "--type", other)
                    self.rejected(3, f"choose {type_}", "quantize", self.folder, self.path("x"), other)
                report = self.ok("quantize", self.folder, self.path("x"), "i2_s", "--lossy", "--json", "--force").json
                self.assertIn("made ternary by their mean size", report["readings"][0]["as"])
        self.qwen3()  # one scale for a matrix
        report = self.ok("convert", self.folder, self.path("one.gguf"), "--verify", "--json").json
        self.assertIn("I2_S", [t["type"] for t in report["tensors"]])

    def gemma3(self):
        """The same as a Gemma folder: norms keep what they have above 1, and there are four to a layer."""
        tensors = {}
        for name, (dtype, shape, content) in self.qwen3().items():
            name = name.replace("post_attention_layernorm", "pre_feedforward_layernorm")
            if "norm" in name:
                content = struct.pack(f"<{shape[0]}f", *(x - 1 for x in struct.unpack(f"<{shape[0]}f", content)))
            tensors[name] = (dtype, shape, content)
        width = self.config()["hidden_size"]
        for layer in range(self.config()["num_hidden_layers"]):
            for part, kind, bits in (("attention", "BF16", 0x3e80), ("feedforward", "F16", 0x3400)):  # 0.25
                tensors[f"model.layers.{layer}.post_{part}_layernorm.weight"] = (
                    kind, [width], struct.pack("<H", bits) * width)
        self.write_tensors(tensors)
        self.write("config.json", self.gemma3_config())
        return tensors

    def gemma3_config(self, **more):
        layers = self.config()["num_hidden_layers"]
        config = self.config(
            model_type="gemma3_text", hidden_activation="gelu_pytorch_tanh", head_dim=self.head_dim(),
            query_pre_attn_scalar=self.head_dim(), sliding_window=8,
            layer_types=["full_attention" if layer % 2 else "sliding_attention" for layer in range(layers)],
            rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})
        for key in ("quantization_config", "hidden_act", "rope_theta", "tie_word_embeddings"):  # tied unless it says no
            del config[key]
        return config | more

    def test_gemma3_becomes_its_keys_and_tensors(self):
        tensors = self.gemma3()
        layers = self.config()["num_hidden_layers"]
        out = self.path("out.gguf")
        self.ok("quantize", self.folder, out, "f16")
        ours = gguf_values.Model(out)
        keys = {k[7:]: v for k, v in ours.metadata.items() if k.startswith("gemma3.")}
        self.assertEqual((keys["attention.sliding_window"], keys["attention.sliding_window_pattern"]), (8, 2))
        self.assertEqual((keys["rope.freq_base"], keys["rope.freq_base_swa"]), (1e6, 1e4))
        self.assertEqual((keys["rope.scaling.type"], keys["rope.scaling.factor"]), ("linear", 8.0))
        self.assertNotIn("attention.scale", keys)
        self.assertNotIn("output.weight", ours.tensors)
        as_f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
        for theirs, mine in (("model.norm", "output_norm"), ("model.layers.1.input_layernorm", "blk.1.attn_norm"),
                             ("model.layers.1.pre_feedforward_layernorm", "blk.1.ffn_norm"),
                             ("model.layers.0.self_attn.q_norm", "blk.0.attn_q_norm")):
            _, shape, content = tensors[theirs + ".weight"]
            wanted = [as_f32(1 + x) for x in struct.unpack(f"<{shape[0]}f", content)]
            _, type_, content = ours.tensors[mine + ".weight"]
            self.assertEqual(type_, gguf_values.F32)
            self.assertEqual(list(struct.unpack(f"<{shape[0]}f", content)), wanted, mine)
        for name in ("post_attention_norm", "post_ffw_norm"):
            self.assertEqual(set(struct.unpack("<4f", ours.tensors[f"blk.1.{name}.weight"][2][:16])), {1.25})
        for model in (self.folder, out):
            about = self.ok("inspect", "-m", model, "--json").json["model"]
            self.assertEqual(about["activation"], "gelu")
            self.assertTrue(about["post_norms"])
            self.assertEqual(about["window"], {"tokens": 8, "layers": (layers + 1) // 2, "rope_base": 10000.0})
        if support.report()["selected"]:
            self.assertEqual(self.generated(self.folder), self.generated(out))
            self.rejected(2, "computed with GELU", "run", "-m", out, "--activation", "silu", "-p", "x", "-n", "1")
        self.write("config.json", self.gemma3_config(
            layer_types=None, rope_parameters=None, rope_theta=5e5, rope_local_base_freq=2e4, sliding_window_pattern=3,
            query_pre_attn_scalar=4 * self.head_dim(), rope_scaling={"rope_type": "linear", "factor": 4.0}))
        self.ok("quantize", self.folder, out, "f16", "--force")
        keys = {k[7:]: v for k, v in gguf_values.Model(out).metadata.items() if k.startswith("gemma3.")}
        self.assertEqual((keys["attention.sliding_window_pattern"], keys["rope.scaling.factor"]), (3, 4.0))
        self.assertEqual((keys["rope.freq_base"], keys["rope.freq_base_swa"]), (5e5, 2e4))
        self.assertAlmostEqual(keys["attention.scale"], (4 * self.head_dim()) ** -0.5)
        for said, more in (("attn_logit_softcapping is set", {"attn_logit_softcapping": 50.0}),
                           ("final_logit_softcapping is set", {"final_logit_softcapping": 30.0}),
                           ("hidden_activation is", {"hidden_activation": "gelu"}),
                           ("use_bidirectional_attention", {"use_bidirectional_attention": True}),
                           ("attention_bias is true", {"attention_bias": True}),
                           ("'sliding_window'", {"sliding_window": None}),
                           ("layer_types is not", {"layer_types": ["full_attention"] + ["sliding_attention"] * 3}),
                           ("'full_attention' in rope_parameters", {"rope_parameters": {"rope_theta": 1e6}}),
                           ("in layers with a window", {"rope_parameters": {
                               "full_attention": {}, "sliding_attention": {"rope_type": "linear", "factor": 2.0}}}),
                           ("model_type is 'gemma3'", {"model_type": "gemma3"})):
            with self.subTest(said=said):
                self.write("config.json", self.gemma3_config(**more))
                self.rejected(3, said, "convert", self.folder, self.path("o.gguf"))

    def minicpm_config(self, **more):
        config = self.config(model_type="minicpm", hidden_act="silu", scale_emb=12, scale_depth=1.4, dim_model_base=64)
        for key in ("quantization_config", "tie_word_embeddings"):  # tied unless it says no
            del config[key]
        return config | more

    def test_minicpm_becomes_its_keys_and_tensors(self):
        tensors = {name: tensor for name, tensor in self.qwen3().items() if not name.endswith(("q_norm.weight",
                                                                                                "k_norm.weight"))}
        self.write_tensors(tensors)
        self.write("config.json", self.minicpm_config())
        out = self.path("out.gguf")
        self.ok("quantize", self.folder, out, "f16")
        ours = gguf_values.Model(out)
        config = self.config()
        for key, wanted in (("embedding_scale", 12), ("logit_scale", config["hidden_size"] / 64),
                            ("residual_scale", 1.4 / config["num_hidden_layers"] ** 0.5)):
            self.assertAlmostEqual(ours.metadata[f"minicpm.{key}"], wanted, places=6, msg=key)
        self.assertNotIn("output.weight", ours.tensors)
        # GGUF has the pairs of a head side by side.
        _, (rows, width), content = tensors["model.layers.0.self_attn.q_proj.weight"]
        half, row = self.head_dim() // 2, 2 * width
        mine = ours.tensors["blk.0.attn_q.weight"][2]
        self.assertEqual(mine[:row], content[:row])
        self.assertEqual(mine[row:2 * row], content[half * row:(half + 1) * row])
        if support.report()["selected"]:
            self.assertEqual(self.generated(self.folder), self.generated(out))
        for said, more in (("'scale_emb'", {"scale_emb": 0}), ("'scale_depth'", {"scale_depth": None}),
                           ("'dim_model_base'", {"dim_model_base": None}), ("sparse_config", {"sparse_config": {}}),
                           ("hidden_act is 'fatrelu'", {"hidden_act": "fatrelu"}),
                           ("attention_bias is true", {"attention_bias": True})):
            with self.subTest(said=said):
                self.write("config.json", self.minicpm_config(**more))
                self.rejected(3, said, "convert", self.folder, self.path("o.gguf"))

    def qwen35_config(self, **more):
        config = self.config(
            model_type="qwen3_5_text", hidden_act="silu", head_dim=32, num_attention_heads=2, num_key_value_heads=1,
            num_hidden_layers=3, intermediate_size=64, layer_types=["linear_attention", "full_attention",
                                                                    "linear_attention"],
            linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2,
            linear_num_value_heads=6, rope_parameters={
                "rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [3, 3, 2]})
        del config["quantization_config"], config["rope_theta"]
        return config | more

    def qwen35(self):
        """Two key heads, three value heads to each: every number of a tensor says where it stands."""
        self.checkpoint()
        width = self.config()["hidden_size"]
        norm = lambda n: ("F32", [n], struct.pack(f"<{n}f", *(i / 512 for i in range(n))))  # noqa: E731
        matrix = lambda m, k: ("F32", [m, k], b"".join(  # noqa: E731
            struct.pack(f"<{k}f", *(row + column / 512 for column in range(k))) for row in range(m)))
        tensors = {"model.embed_tokens.weight": self.tensors("packed")["model.embed_tokens.weight"],
                   "model.norm.weight": norm(width), "mtp.fc.weight": matrix(2, 2),
                   "model.visual.patch_embed.proj.bias": norm(3)}
        for layer in range(3):
            parts = {"input_layernorm": norm(width), "post_attention_layernorm": norm(width),
                     "mlp.gate_proj": matrix(64, width), "mlp.up_proj": matrix(64, width),
                     "mlp.down_proj": matrix(width, 64)}
            if layer == 1:
                parts |= {"self_attn.q_proj": matrix(128, width), "self_attn.k_proj": matrix(32, width),
                          "self_attn.v_proj": matrix(32, width), "self_attn.o_proj": matrix(width, 64),
                          "self_attn.q_norm": norm(32), "self_attn.k_norm": norm(32)}
            else:
                taps = b"".join(struct.pack("<4e", *(channel + tap / 4 for tap in range(4)))
                                for channel in range(160))
                parts |= {"linear_attn.in_proj_qkv": matrix(160, width), "linear_attn.in_proj_z": matrix(96, width),
                          "linear_attn.in_proj_a": matrix(6, width), "linear_attn.in_proj_b": matrix(6, width),
                          "linear_attn.out_proj": matrix(width, 96), "linear_attn.norm": norm(16),
                          "linear_attn.conv1d": ("F16", [160, 1, 4], taps)}
                vector = struct.pack("<6f", *(head / 8 for head in range(6)))
                tensors |= {f"model.layers.{layer}.linear_attn.{name}": ("F32", [6], vector)
                            for name in ("A_log", "dt_bias")}
            tensors |= {f"model.layers.{layer}.{name}.weight": tensor for name, tensor in parts.items()}
        self.write_tensors(tensors)
        self.write("config.json", self.qwen35_config())
        return tensors

    def predicting_further_tokens(self, model):
        """The same with a block behind its layers: it is left out, and named."""
        more = {f"blk.3.{name}.weight": ([32, 32], gguf_values.F32, bytes(4096))
                for name in ("attn_q", "nextn.eh_proj")}
        path = self.path("ahead.gguf")
        gguf_values.write(path, model.metadata | {"qwen35.block_count": 4, "qwen35.nextn_predict_layers": 1},
                          model.tensors | more)
        self.assertEqual(self.ok("quantize", path, self.path("f16.gguf"), "f16", "--json").json["left_out"], [*more])
        self.assertIn("left out: 2 tensors that predict further tokens or see images, blk.3.attn_q.weight to blk.3.nextn",
                      self.ok("quantize", path, self.path("f16.gguf"), "f16", "--force").text)
        if support.report()["selected"]:
            self.assertIn("not used: 2 tensors behind the 3 layers, which predict further tokens",
                          self.ok("run", "-v", "-m", path, "-p", "x", "-n", "1").stderr)
        self.assertNotIn("left_out", self.ok("quantize", self.path("f16.gguf"), path, "f16", "--force", "--json").json)

    def test_qwen35_becomes_its_keys_and_tensors(self):
        tensors = self.qwen35()
        width = self.config()["hidden_size"]
        out = self.path("out.gguf")
        left_out = ["model.visual.patch_embed.proj.bias", "mtp.fc.weight"]
        done = self.ok("convert", self.folder, out, "--type", "f32", "--verify", "--json")
        self.assertEqual(done.json["left_out"], left_out)
        self.assertIn("2 tensors that predict further tokens or see images, " + " to ".join(f"'{name}'" for name in left_out),
                      self.ok("inspect", self.folder, "--json").json["model"]["ignored"])
        ours = gguf_values.Model(out)
        keys = {k[7:]: v for k, v in ours.metadata.items() if k.startswith("qwen35.")}
        for key, wanted in (("full_attention_interval", 2), ("ssm.conv_kernel", 4), ("ssm.state_size", 16),
                            ("ssm.group_count", 2), ("ssm.time_step_rank", 6), ("ssm.inner_size", 96),
                            ("attention.key_length", 32), ("rope.dimension_count", 8), ("rope.freq_base", 1e7),
                            ("rope.dimension_sections", [3, 3, 2, 0]), ("block_count", 3)):
            self.assertEqual(keys[key], wanted, key)
        self.assertFalse([name for name in ours.tensors if "mtp" in name or "visual" in name])
        as_f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]  # noqa: E731
        numbers = lambda name: struct.unpack(f"<{len(ours.tensors[name][2]) // 4}f", ours.tensors[name][2])  # noqa: E731
        rows = lambda name, k: [int(x) for x in numbers(name)[::k]]  # noqa: E731
        # The first of each key head, then the second of each, then the third.
        heads = [0, 3, 1, 4, 2, 5]
        in_turn = [16 * head + i for head in heads for i in range(16)]
        self.assertEqual(rows("blk.2.attn_qkv.weight", width), [*range(64), *(64 + i for i in in_turn)])
        self.assertEqual(rows("blk.2.attn_gate.weight", width), in_turn)
        self.assertEqual(rows("blk.2.ssm_alpha.weight", width), heads)
        self.assertEqual(rows("blk.2.ssm_beta.weight", width), heads)
        self.assertEqual(rows("blk.2.ssm_out.weight", 96), [*range(width)])
        self.assertEqual(numbers("blk.2.ssm_out.weight")[96:192], tuple(1 + i / 512 for i in in_turn))
        self.assertEqual(ours.tensors["blk.2.ssm_conv1d.weight"][0], [4, 160])
        self.assertEqual(numbers("blk.2.ssm_conv1d.weight"), tuple(
            channel + tap / 4 for channel in [*range(64), *(64 + i for i in in_turn)] for tap in range(4)))
        self.assertEqual(numbers("blk.2.ssm_dt.bias"), tuple(head / 8 for head in heads))
        for mine, head in zip(numbers("blk.2.ssm_a"), heads):
            self.assertAlmostEqual(mine, -math.exp(head / 8), places=6)
        self.predicting_further_tokens(ours)
        self.assertEqual(ours.tensors["blk.2.ssm_norm.weight"][2],
                         tensors["model.layers.2.linear_attn.norm.weight"][2])
        self.assertEqual(ours.tensors["blk.1.attn_q.weight"][2],
                         tensors["model.layers.1.self_attn.q_proj.weight"][2])
        for name in ("output_norm", "blk.0.attn_norm", "blk.1.post_attention_norm", "blk.1.attn_q_norm"):
            self.assertEqual(numbers(name + ".weight")[:3], tuple(as_f32(1 + i / 512) for i in range(3)), name)
        for said, more in (("hidden_act is", {"hidden_act": "gelu"}),
                           ("attn_output_gate is false", {"attn_output_gate": False}),
                           ("attention_bias is true", {"attention_bias": True}),
                           ("'linear_num_key_heads'", {"linear_num_key_heads": None}),
                           ("is 0; expected 1 to", {"linear_value_head_dim": 0}),
                           ("6 value heads are shared by 4", {"linear_num_key_heads": 4}),
                           ("'linear_conv_kernel_dim'", {"linear_conv_kernel_dim": None}),
                           ("layer_types is not 'linear_attention'", {"layer_types": ["full_attention"] * 2 +
                                                                      ["linear_attention"]}),
                           ("'full_attention_interval'", {"layer_types": None, "full_attention_interval": 0}),
                           ("of a part of a head", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}),
                           ("elements of a head to rotate", {"rope_parameters": {"partial_rotary_factor": 1.5}}),
                           ("the heads in config.json ask for", {"linear_value_head_dim": 32}),
                           ("model_type is 'qwen3_5_moe_text'", {"model_type": "qwen3_5_moe_text"}),
                           ("save its text model by itself", {"model_type": "qwen3_5", "text_config": {}})):
            with self.subTest(said=said):
                self.write("config.json", self.qwen35_config(**more))
                self.rejected(3, said, "convert", self.folder, self.path("o.gguf"))

    def test_rope_scaling_becomes_keys_and_divisors(self):
        """Keys, divisors of some waves and growth of queries and keys are those of transformers 4.57.1,
        ROPE_INIT_FUNCTIONS, for heads of 64, a base of 10000 and 512 positions."""
        waves = (0, 3, 5, 6, 8, 12, 31)
        short, long = [1 + 0.02 * i for i in range(32)], [1 + 0.4 * i for i in range(32)]
        yarn = {"type": "yarn", "factor": 4.0}
        rows = [  # scaling, keys, {tensor: divisors}, magnitude
            ({"rope_type": "default"}, {}, {}, None),
            ({"type": "linear", "factor": 2.0}, {"type": "linear", "factor": 2.0}, {}, None),
            ({"rope_type": "dynamic", "factor": 2.0}, {"dynamic_factor": 2.0, "original_context_length": 512}, {},
             None),
            ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 64}, {},
             {"rope_freqs.weight": (1, 1, 1.85928, 2.76517, 7.66739, 8, 8)}, None),
            ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
             yarn | {"original_context_length": 64}, {}, 1.138629),
            ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16.0,
              "beta_slow": 2.0, "attention_factor": 1.5},
             yarn | {"original_context_length": 64, "yarn_beta_fast": 16.0, "yarn_beta_slow": 2.0,
                     "attn_factor": 1.5 / 1.138629}, {}, 1.5),
            ({"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 0.3},
             yarn | {"original_context_length": 512, "attn_factor": 1.0532377 / 1.138629}, {}, 1.0532377),
            ({"rope_type": "longrope", "short_factor": short, "long_factor": long,
              "original_max_position_embeddings": 128},
             {"type": "longrope", "original_context_length": 128, "attn_factor": 1.133893},
             {"rope_factors_short.weight": (1, 1.06, 1.1, 1.12, 1.16, 1.24, 1.62),
              "rope_factors_long.weight": (1, 2.2, 3, 3.4, 4.2, 5.8, 13.4)}, 1.133893),
        ]
        for scaling, keys, tensors, magnitude in rows:
            with self.subTest(scaling=scaling):
                self.checkpoint()
                self.write("config.json", self.config(rope_scaling=scaling))
                out = self.path("out.gguf")
                self.ok("convert", self.folder, out, "--verify", "--force")
                ours = gguf_values.Model(out)
                prefix = ours.metadata["general.architecture"] + ".rope.scaling."
                got = {k[len(prefix):]: v for k, v in ours.metadata.items() if k.startswith(prefix)}
                self.assertEqual(got.keys(), keys.keys())
                for key, value in keys.items():
                    if isinstance(value, str):
                        self.assertEqual(got[key], value)
                    else:
                        self.assertAlmostEqual(got[key], value, places=5, msg=key)
                self.assertEqual({n for n in ours.tensors if n.startswith("rope_")}, set(tensors))
                for name, wanted in tensors.items():
                    ne, _, content = ours.tensors[name]
                    self.assertEqual(ne, [32])
                    divisors = struct.unpack("<32f", content)
                    for wave, divisor in zip(waves, wanted):
                        self.assertAlmostEqual(divisors[wave], divisor, places=4, msg=f"{name}[{wave}]")
                for model in (self.folder, out):  # the checkpoint itself says the same as what it becomes
                    rope = self.ok("inspect", "-m", model, "--json").json["model"]["rope"]
                    self.assertAlmostEqual(rope.get("magnitude", 1), magnitude or 1, places=5)

    def test_shards_by_the_index(self):
        self.checkpoint()
        tensors = self.tensors("packed")
        os.remove(self.path("checkpoint/model.safetensors"))
        parts = {"model-1.safetensors": {}, "model-2.safetensors": {}}
        for i, (name, content) in enumerate(tensors.items()):
            parts[f"model-{i % 2 + 1}.safetensors"][name] = content
        for file, content in parts.items():
            self.write_tensors(content, file)
        self.write("model.safetensors.index.json",
                   {"weight_map": {n: f for f, c in parts.items() for n in c}})
        self.ok("convert", self.folder, self.path("out.gguf"), "--verify")
        self.write("model.safetensors.index.json", {"weight_map": {"x": "../secret"}})
        self.rejected(3, "no file of the folder", "convert", self.folder, self.path("o.gguf"))

    def test_wrong_checkpoints_are_rejected(self):
        self.checkpoint()
        good = {}
        for name in os.listdir(self.folder):
            with open(self.path("checkpoint/" + name), "rb") as f:
                good[name] = f.read()
        config = json.loads(good["config.json"])
        other = lambda **more: json.dumps(config | more).encode()
        rows = [
            ("config.json", b"[1", "config.json is no JSON object"),
            ("config.json", other(model_type="mamba"), "model_type is 'mamba'"),
            ("config.json", other(hidden_act="gelu"), "hidden_act is 'gelu'"),
            ("config.json", other(num_attention_heads=0), "head_count"),
            ("config.json", other(vocab_size=3), "the embedding has 3 rows"),
            ("config.json", other(attention_bias=True), "no biases"),
            ("config.json", other(rope_scaling={"type": "mrope", "factor": 2}), "'mrope'"),
            ("config.json", other(rope_scaling={"type": "yarn", "factor": 0}), "'yarn' without a factor"),
            ("config.json", other(rope_scaling={"rope_type": "linear"}), "'linear' without a factor"),
            ("config.json", other(rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                "high_freq_factor": 4.0}), "original_max_position_embeddings"),
            ("config.json", other(rope_scaling={"rope_type": "longrope", "short_factor": [1.0],
                                                "long_factor": [1.0]}), "for each pair of a head"),
            ("config.json", other(rope_parameters={"full_attention": {"rope_theta": 1e6}}), "kinds of layers"),
            ("config.json", other(partial_rotary_factor=0.5), "partial_rotary_factor"),
            ("config.json", other(quantization_config={"quant_method": "gptq"}), "'gptq'"),
            ("config.json", other(quantization_config={"quant_method": "bitnet"}), "the other linear_class"),
            ("tokenizer.json", b"{}", "of type ''; expected BPE"),
            ("tokenizer.json", b"\xff\xfe", "tokenizer.json is no JSON object"),
            ("tokenizer.json", None, "tokenizer.json is not in the folder"),
            ("model.safetensors", None, "model.safetensors is not in the folder"),
            ("model.safetensors", good["model.safetensors"][:5000], "cut off"),
            ("model.safetensors", b"abc", "at least 8"),
        ]
        for name, content, message in rows:
            with self.subTest(name=name, message=message):
                for file, original in good.items():
                    self.write(file, original)
                if content is None:
                    os.remove(self.path("checkpoint/" + name))
                else:
                    self.write(name, content)
                self.rejected(3, message, "convert", self.folder, self.path("out.gguf"))
                self.assertFalse(os.path.exists(self.path("out.gguf")))
        tokenizer = json.loads(good["tokenizer.json"])
        tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "a+"
        self.write("tokenizer.json", tokenizer)
        self.rejected(3, "splits text in a way", "convert", self.folder, self.path("out.gguf"))

    def test_splitting_rules_become_a_name_or_are_rejected(self):
        """The components of tokenizer.json become a name of tokenizer.ggml.pre, or are rejected."""
        self.checkpoint()
        tokenizer = self.tokenizer()
        cl100k, level = tokenizer["pre_tokenizer"]["pretokenizers"]
        words = {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}
        each = {"type": "Digits", "individual_digits": True}
        removed = {**cl100k, "behavior": "Removed", "invert": True}
        rows = [
            ([cl100k, level], {}, "llama-bpe", "older than ignore_merges"),
            ([cl100k, level], {"ignore_merges": True}, "llama-bpe", "Llama 3"),
            ([removed, level], {"ignore_merges": False}, "dbrx", "the same cuts, words by merges"),
            ([words], {}, "gpt-2", "GPT-2"),
            ([each, words], {}, "smollm", "single digits first"),
            ([{**cl100k, "behavior": "MergedWithNext"}, level], {}, None, "the same matches, other cuts"),
            ([{**words, "add_prefix_space": True}], {}, None, "a space in front"),
        ]
        for parts, model, pre, why in rows:
            with self.subTest(why):
                tokenizer["pre_tokenizer"]["pretokenizers"] = parts
                tokenizer["model"] = {**self.tokenizer()["model"], **model}
                self.write("tokenizer.json", tokenizer)
                if pre is None:
                    self.rejected(3, "splits text in a way", "tokenize", "-m", self.folder, "a")
                else:
                    found = self.ok("inspect", "-m", self.folder, "--json").json["metadata"]
                    self.assertEqual(found["tokenizer.ggml.pre"], pre)
        tokenizer["normalizer"] = {"type": "NFC"}
        tokenizer["pre_tokenizer"]["pretokenizers"] = [cl100k, level]
        self.write("tokenizer.json", tokenizer)
        found = self.ok("inspect", "-m", self.folder, "--json").json["metadata"]
        self.assertIs(found["tokenizer.ggml.normalizer.nfc"], True)
        tokenizer["normalizer"] = {"type": "NFKC"}
        self.write("tokenizer.json", tokenizer)
        self.rejected(3, "normalizer of type 'NFKC'", "tokenize", "-m", self.folder, "a")


if __name__ == "__main__":
    support.main()
