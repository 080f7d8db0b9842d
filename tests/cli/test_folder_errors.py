"""Folders without a complete model: the message names the file, the problem, and the remedy."""

import json
import os
import struct
import unittest

import support
import tiny_checkpoint

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 1845370112\n"
PULL = "is a pointer of Git LFS to a file of 1845370112 bytes; run `git lfs pull`"
SHARDS = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
INDEX = "model.safetensors.index.json"


class Folder(tiny_checkpoint.Case):
    def says(self, *parts, target=None):
        """`convert` rejects with the message; `inspect`, `run` and `tokenize` say the same, with the same code."""
        target = target or self.folder
        done = self.rejected(3, parts[0], "convert", target, self.path("out.gguf"))
        for part in parts[1:]:
            self.assertIn(part, done.stderr)
        for words in (["inspect", "-m", target], ["run", "-m", target, "-p", "x", "-n", "1"], ["tokenize", "-m", target, "x"]):
            self.rejected(3, parts[0], *words)

    def remove(self, name):
        os.remove(os.path.join(self.folder, name))

    def in_shards(self):
        self.save()
        self.remove("model.safetensors")
        halves = [dict(list(self.tensors.items())[i::2]) for i in (0, 1)]
        for name, half in zip(SHARDS, halves):
            self.write_tensors(half, name)
        self.write(INDEX, {"metadata": {}, "weight_map": {t: n for n, half in zip(SHARDS, halves) for t in half}})

    def test_the_folder_itself_is_fine(self):
        self.assertEqual(self.bitnet("inspect", "-m", self.save()).code, 0)
        self.in_shards()
        self.assertEqual(self.bitnet("inspect", "-m", self.folder).code, 0)

    def test_pointers_of_lfs(self):
        """A clone without git-lfs has them in place of every large file."""
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            with self.subTest(name):
                self.save()
                self.write(name, LFS)
                self.says(f"{name} {PULL}")
        self.in_shards()
        self.write(SHARDS[1], LFS)
        self.says(f"'{SHARDS[1]}' (file 2 of 2 in {INDEX}) {PULL}")
        self.says(f"is no GGUF model: it {PULL}", target=self.path("m.gguf", LFS))

    def test_web_pages_in_place_of_files_are_rejected(self):
        for page in (b"<!doctype html><title>x", b"\n<html><body>Sign in"):
            self.save()
            self.write("model.safetensors", page)
            self.says("model.safetensors is a web page; download the file itself")
        self.says("is a web page", target=self.path("m.gguf", b"<!DOCTYPE html>"))

    def test_weights_in_other_forms(self):
        rows = (("pytorch_model.bin", b"PK", "in 'pytorch_model.bin', which can hold code"),
                ("pytorch_model.bin.index.json", b"{}", "in 'pytorch_model.bin.index.json'"),
                ("consolidated.00.pth", b"PK", "in 'consolidated.00.pth'"),
                ("flax_model.msgpack", b"x", "in 'flax_model.msgpack'"),
                ("tf_model.h5", b"x", "in 'tf_model.h5'"),
                ("model-q4.gguf", b"GGUF", "is a folder with 1 GGUF file; name the file, 'model-q4.gguf'"),
                (SHARDS[0], b"x", f"a part of the weights, but no {INDEX}"))
        for name, content, message in rows:
            with self.subTest(name):
                self.save()
                self.remove("model.safetensors")
                self.write(name, content)
                self.says(message)
                self.remove(name)
        self.save()
        self.remove("model.safetensors")
        self.says("model.safetensors is not in the folder; download")

    def test_missing_and_broken_shards(self):
        self.in_shards()
        self.remove(SHARDS[1])
        self.says(f"'{SHARDS[1]}' (file 2 of 2 in {INDEX}) is not in the folder")
        self.write(SHARDS[1], b"")
        self.says(f"'{SHARDS[1]}' (file 2 of 2 in {INDEX}) is empty; download it again")
        self.in_shards()
        path = os.path.join(self.folder, SHARDS[0])
        os.truncate(path, os.path.getsize(path) - 100)
        self.says(SHARDS[0], "it is cut off; download it again")
        os.truncate(path, 20)
        self.says(SHARDS[0], "announces a header of", "cut off")
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", 5) + b'{"a":')
        self.says(SHARDS[0], "the header is no JSON object: line 1, column 6: it ends there")
        os.remove(path)
        os.symlink("../../blobs/4d7a2146", path)
        self.says(f"'{SHARDS[0]}' (file 1 of 2 in {INDEX}) is a link to a file that is not there")

    def test_tokenizers_that_cannot_be_read_are_rejected(self):
        for name in ("tokenizer.model", "vocab.json"):
            self.save()
            self.remove("tokenizer.json")
            self.write(name, b"x")
            self.says(f"has no tokenizer.json, and {name} is not read")
            self.remove(name)
        self.says("tokenizer.json is not in the folder")

    def test_wrong_json_is_rejected_with_its_place(self):
        """Where it is none: file, line, column, and what stands there."""
        self.save()
        good = json.dumps(self.config)
        rows = ((good.replace("1e-05", "NaN").replace(", ", ",\n"), "config.json is no JSON object: line 11, column 17: NaN, "
                 "which JSON does not have", "Python's json writes it"),
                (good.replace("10000.0", "Infinity"), ": Infinity, which JSON", "the other one"),
                (good.replace("10000.0", "-Infinity"), ": Infinity, which JSON", "with a sign"),
                (good[:-1], "it ends there, cut off", "a download that broke off"),
                (good.replace('"hidden_size"', "hidden_size"), "'hidden_size", "a key without quotes"),
                (good[:-1] + ",}", "'}' was not expected there", "a comma too many"),
                ("[1]", "config.json is no JSON object: it holds something else", "a list"),
                ("", "config.json is empty; download it again", "nothing"))
        for content, message, why in rows:
            with self.subTest(why):
                self.write("config.json", content)
                self.says(message)
        self.save()
        for name in ("tokenizer.json", "tokenizer_config.json"):
            self.write(name, '{"a": NaN}')
            self.says(f"{name} is no JSON object: line 1, column 7: NaN")
            self.save()
        self.in_shards()
        self.write(INDEX, '{\n"weight_map": Infinity}')
        self.says(f"{INDEX} is no JSON object: line 2, column 15: Infinity")

    def test_members_that_must_be_there(self):
        for key in ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads"):
            with self.subTest(key):
                self.save()
                config = {k: v for k, v in self.config.items() if k != key}
                self.write("config.json", config)
                self.says("config.json: ", f"'{key}'")

    def test_folders_without_a_config(self):
        """By what the folder holds instead."""
        rows = ((["x/"], "is a folder without a config.json", "nothing known"),
                ([], "is an empty folder", "nothing"),
                ([".git/"], "is a git repository without files; run `git checkout", "clone --no-checkout"),
                (["a.gguf", "b.gguf"], "is a folder with 2 GGUF files; name one of them, 'a.gguf'", "several models"),
                ([f"m-0000{i}-of-00003.gguf" for i in (2, 3, 1)], "with 3 GGUF files; name the first part, "
                 "'m-00001-of-00003.gguf'", "one model in parts"),
                (["snapshots/4d7a2146/"], "name the folder of a revision below it, ", "the cache of hf"),
                (["adapter_config.json", "adapter_model.safetensors"], "is an adapter (LoRA)", "peft"),
                (["model.safetensors"], "has weights in safetensors but no config.json", "half a download"),
                (["pytorch_model.bin"], "has no config.json, and its weights are in 'pytorch_model.bin'", "both"))
        for i, (names, message, why) in enumerate(rows):
            with self.subTest(why):
                folder = os.path.join(self.home, f"folder{i}")
                os.makedirs(folder)
                for name in names:
                    if name.endswith("/"):
                        os.makedirs(os.path.join(folder, name))
                    else:
                        self.path(f"folder{i}/{name}", b"x")
                self.says(message, target=folder)

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_files_that_may_not_be_read_are_rejected(self):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            with self.subTest(name):
                self.save()
                os.chmod(os.path.join(self.folder, name), 0)
                self.says(f"{name}: cannot be opened: Permission denied; check who may read it")
                os.chmod(os.path.join(self.folder, name), 0o600)
        os.chmod(self.folder, 0)
        self.says("cannot be read: Permission denied; check who may read it")
        os.chmod(self.folder, 0o700)


if __name__ == "__main__":
    support.main()
