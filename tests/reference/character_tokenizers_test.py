#!/usr/bin/env python3
"""BPE over characters, in GGUF files and in checkpoints, against Hugging Face's tokenizers.

    character_tokenizers_test.py --bitnet PATH [--only NAME] [-v]

Vocabularies are trained here, with an alphabet that lacks some characters of the texts, which are those of
tokenizers_test.py. Exit code 77 if the library is not installed.
"""

import json
import math
import pathlib
import struct

import tokenizers_test
from tokenizers_test import (CONTROL, LISTED, NORMAL, PIECES, SEPARATOR, UNKNOWN, Both, Case, Tokenizer, metadata_of,
                             models, normalizers, pre_tokenizers, split, texts, trainers)

BYTE = 6


class Characters(Case):
    """BPE whose merges join characters, blanks written U+2581, and bytes for what is no token."""

    NAMED = ["<pad>", "<eos>", "<bos>", "<unk>"]

    def about(self, **model):
        """A tokenizer.json with merges as they were trained: one way for each token."""
        library = Tokenizer(models.BPE())
        library.normalizer = normalizers.Replace(" ", "\u2581")
        library.pre_tokenizer = split(r"\n+")  # no token of these models joins line ends with others
        library.train_from_iterator(LISTED + PIECES + texts(count=600, seed=12), trainers.BpeTrainer(
            vocab_size=2500, limit_alphabet=300, show_progress=False))
        trained = json.loads(library.to_str())["model"]
        pieces = sorted(trained["vocab"], key=trained["vocab"].get)
        order = [*self.NAMED, *(f"<0x{i:02X}>" for i in range(256)), *pieces]
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
                "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                                  "invert": False}, "post_processor": None,
                "decoder": {"type": "Sequence", "decoders": [
                    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                    {"type": "Fuse"}]},
                "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                          "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                          "vocab": {t: i for i, t in enumerate(order)}, "merges": trained["merges"], **model}}

    def check(self, keys, byte):
        about = self.about()
        library = Tokenizer.from_str(json.dumps(about))
        tokens = list(about["model"]["vocab"])
        types = [UNKNOWN if t == "<unk>" else CONTROL if t in self.NAMED else NORMAL for t in tokens]
        types[4:260] = [byte] * 256
        both = Both(self.folder, library, {
            **keys, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": [m if isinstance(m, str) else " ".join(m) for m in about["model"]["merges"]],
            "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.unknown_token_id": 3})
        asked = texts() + ["a\r\nb", "\n" * 40, "\n\u2581\n", "\U0001f98a\u0378\U000e0041", "<0x41>", "x" * 500]
        ids = self.compare(both, asked)
        self.assertEqual(both.complaints, "")
        self.assertTrue(any(4 <= i < 260 for one in ids for i in one), "no text needs bytes")
        self.assertEqual(both.text_of(sum(ids, [])), "".join(asked).replace("\u2581", " "))

    def test_gemma4_gives_the_ids_of_the_library(self):
        self.check({"tokenizer.ggml.model": "gemma4"}, BYTE)

    def test_granite_embed_multi_311m(self):
        self.check({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "granite-embed-multi-311m"}, NORMAL)

    def test_sarvam_moe_gives_the_ids_of_the_library(self):
        self.check({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "sarvam-moe"}, NORMAL)

    def check_words(self, keys, lowercase):
        library = Tokenizer(models.BPE(unk_token="<unk>"))
        library.normalizer = normalizers.Lowercase() if lowercase else None
        library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        library.train_from_iterator(LISTED + PIECES + texts(count=600, seed=12), trainers.BpeTrainer(
            vocab_size=2500, limit_alphabet=300, special_tokens=["<unk>"], show_progress=False))
        metadata = {**metadata_of(library, "whitespace"), **keys, "tokenizer.ggml.unknown_token_id": 0}
        metadata["tokenizer.ggml.token_type"][0] = UNKNOWN
        both = Both(self.folder, library, metadata)
        asked = texts() + ["\u0130I\u0131 \u00c9\u1e9e\u03a3", "a\u0378\u0378b", "a\u180eb"]
        ids = self.compare(both, asked)
        self.assertTrue(any(0 in one for one in ids), "no text needs the unknown token")
        for text, one in zip(asked, ids, strict=True):
            if 0 not in one:
                self.assertEqual(both.text_of(one), "".join((text.lower() if lowercase else text).split()))

    def test_whitespace_gives_the_ids_of_the_library(self):
        self.check_words({"tokenizer.ggml.model": "whitespace"}, False)

    def test_whitespace_in_small_letters(self):
        self.check_words({"tokenizer.ggml.normalizer.lowercase": True}, True)


class Folder(Both):
    """A checkpoint of a small gemma3_text model of zeros with that tokenizer.json."""

    def __init__(self, folder, about):
        self.library, self.file = Tokenizer.from_str(json.dumps(about)), pathlib.Path(folder)
        self.separator = str(self.library.token_to_id(SEPARATOR))
        n, width = self.library.get_vocab_size(), 64
        (self.file / "tokenizer.json").write_text(json.dumps(about))
        (self.file / "tokenizer_config.json").write_text(json.dumps(
            {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"}))
        (self.file / "config.json").write_text(json.dumps({
            "model_type": "gemma3_text", "vocab_size": n, "hidden_size": width, "intermediate_size": width,
            "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": width,
            "query_pre_attn_scalar": width, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
            "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 8}))
        layer = "model.layers.0."
        shapes = {"model.embed_tokens": [n, width], "model.norm": [width]}
        shapes |= {layer + name: [width] for name in (
            "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm",
            "self_attn.q_norm", "self_attn.k_norm")}
        shapes |= {layer + name: [width, width] for name in (
            "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
            "mlp.up_proj", "mlp.down_proj")}
        header, end = {}, 0
        for name, shape in shapes.items():
            size = 2 * math.prod(shape)
            header[name + ".weight"] = {"dtype": "F16", "shape": shape, "data_offsets": [end, end + size]}
            end += size
        text = json.dumps(header).encode()
        (self.file / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


class Gemma(Case):
    """Pieces of SentencePiece as a tokenizer.json: blanks are replaced and nothing is split, unknown characters
    are bytes, and runs of lines are tokens that are no part of the merging."""

    NAMED = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    ADDED = ["<unused0>", "\n\n", "\n\n\n"]

    def about(self):
        library = Tokenizer(models.BPE())
        library.normalizer = normalizers.Replace(" ", "\u2581")
        library.train_from_iterator(LISTED + PIECES + texts(count=600, seed=12), trainers.BpeTrainer(
            vocab_size=1500, limit_alphabet=300, show_progress=False))
        found = json.loads(library.to_str())["model"]["vocab"]
        pieces = [t for t in sorted(found, key=found.get) if t not in self.ADDED]
        order = [*self.NAMED, *(f"<0x{i:02X}>" for i in range(256)), *self.ADDED, *pieces, SEPARATOR]
        ids = {t: i for i, t in enumerate(order)}
        # Of each piece all pairs that make it, as such files are made of scores.
        merges = [[t[:i], t[i:]] for t in pieces for i in range(1, len(t)) if t[:i] in ids and t[i:] in ids]
        added = [{"id": ids[t], "content": t, "special": t not in self.ADDED, "single_word": False, "lstrip": False,
                  "rstrip": False, "normalized": False} for t in (*self.NAMED, *self.ADDED, SEPARATOR)]
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
                "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                                  "invert": False},
                "post_processor": {"type": "TemplateProcessing", "single": [
                    {"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {"<bos>": {"id": "<bos>", "ids": [ids["<bos>"]], "tokens": ["<bos>"]}}},
                "decoder": {"type": "Sequence", "decoders": [
                    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                    {"type": "Fuse"}]},
                "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                          "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                          "vocab": ids, "merges": merges}}

    def test_a_checkpoint_gives_the_ids_of_the_library(self):
        self.check(self.about())

    def test_checkpoint_as_of_gemma_4(self):
        """Runs of lines are merged like other pieces."""
        self.ADDED = ["<unused0>"]
        self.check(self.about())

    def test_checkpoint_with_trained_merges(self):
        """Scores cannot say which pairs make a piece."""
        about = self.about()
        trained = Characters("about").about()["model"]["merges"]
        known = about["model"]["vocab"]
        about["model"]["merges"] = [m for m in trained if {m[0], m[1], m[0] + m[1]} <= set(known)]
        self.check(about)

    def check(self, about):
        both = Folder(self.folder, about)
        asked = [t for t in texts() + LISTED if t] + [
            " a", "a ", "  two  blanks", "one\ntwo\n\nthree\n\n\nfour\n\n\n\nfive", "<unused0>x", "\u2581x",
            "<start_of_turn>user\nhi <end_of_turn>\n", "<0x41>", "\U0001f98a\u0378\U000e0041", "\t\ttabs"]
        ids = self.compare(both, asked)
        self.assertTrue(any(i in range(6, 262) for one in ids for i in one), "no text needs bytes")
        for one in ids[::20]:
            self.assertEqual(both.text_of(one), both.library.decode(one))
        first = both.run("tokenize", "--add-bos", stdin=b"hi").decode().split()
        self.assertEqual([int(i) for i in first], both.library.encode("hi").ids)


if __name__ == "__main__":
    tokenizers_test.main(__doc__)
