"""bitnet eval: what it prints, that it is the same each time, and what it rejects. tests/reference judges its numbers."""

import json
import os
import re

import support
import tiny_checkpoint

TEXT = os.path.join(support.SOURCE, "models", "quality", "held-out.txt")
AGREE = os.path.join(support.SOURCE, "models", "quality", "tiny-agree.jsonl")
SHORT = ("-c", "32", "--chunks", "3")
ITEM = {"ctx": "Once upon a time, there was a fox named Pip.", "endings": ["He was sad.", "She was sad."], "label": 0}


@support.needs_backend
class Perplexity(support.Case):
    def test_text_and_json_agree(self):
        text = self.ok("eval", "ppl", "-f", TEXT, *SHORT).text
        got = self.ok("eval", "ppl", "-f", TEXT, *SHORT, "--json").json
        self.assertEqual(text, f"PPL = {got['ppl']:.4f} +/- {got['ppl_error']:.5f} (45 tokens in 3 chunks of 32)\n"
                               f"bits per byte = {got['bits_per_byte']:.5f} +/- {got['bits_per_byte_error']:.5f} "
                               f"({got['bytes']} bytes)\n")
        self.assertEqual((got["measure"], got["n_ctx"], got["n_chunks"], got["n_scored"]), ("ppl", 32, 3, 45))
        self.assertEqual(len(got["ppl_after_chunk"]), 3)
        self.assertEqual(got["ppl_after_chunk"][-1], got["ppl"])

    def test_steps_and_threads_change_nothing(self):
        want = self.ok("eval", "ppl", "-f", TEXT, *SHORT, "--json").stdout
        for words in (("-t", "1"), ("-ub", "5"), ("-ub", "1")):
            self.assertEqual(self.ok("eval", "ppl", "-f", TEXT, *SHORT, "--json", *words).stdout, want, words)

    def test_the_default_is_every_chunk_of_512_tokens(self):
        got = self.ok("eval", "ppl", "-f", TEXT, "--json").json
        self.assertEqual(got["n_ctx"], 512)
        self.assertEqual(got["n_chunks"], got["n_tokens"] // 512)
        self.assertEqual(got["n_scored"], 255 * got["n_chunks"])

    def test_text_like_the_training_text_has_fewer_bits_per_byte(self):
        other = self.path("other.txt", "Quarterly revenue exceeded expectations despite currency headwinds. " * 20)
        tale = self.ok("eval", "ppl", "-f", TEXT, *SHORT, "--json").json
        self.assertLess(tale["bits_per_byte"], 1.5)
        self.assertGreater(self.ok("eval", "ppl", "-f", other, *SHORT, "--json").json["bits_per_byte"], 3)

    def test_the_last_newline_is_no_part_of_the_text(self):
        with open(TEXT, encoding="utf-8") as f:
            short = f.read(600).rstrip()
        sizes = {self.ok("eval", "ppl", "-c", "16", "-f", self.path("t", short + end), "--json").json["n_tokens"]
                 for end in ("", "\n")}
        self.assertEqual(len(sizes), 1)

    def test_wrong_command_lines_are_rejected(self):
        self.rejected(2, "needs a measure", "eval")
        self.rejected(2, "found 'pplx'", "eval", "pplx")
        self.rejected(2, "needs a text: -f FILE", "eval", "ppl")
        self.rejected(2, "unexpected 'more'", "eval", "ppl", "a.gguf", "more", "-f", TEXT)
        self.rejected(2, "needs a text", "eval", "ppl", "-c", "8")
        self.rejected(2, "at least 4 tokens", "eval", "ppl", "-f", TEXT, "-c", "3")
        self.rejected(2, "--chunks", "eval", "ppl", "-f", TEXT, "--chunks", "0")
        self.rejected(2, "ppl takes no --compare", "eval", "ppl", "-f", TEXT, "--compare", "x")
        self.rejected(2, "choice takes no --chunks", "eval", "choice", "-f", AGREE, "--chunks", "1")
        self.rejected(2, "chunks of 512 need at least 1024", "eval", "ppl", "-f", self.path("t.txt", "Once upon a time"))
        self.rejected(2, "no-file", "eval", "ppl", "-f", self.path("no-file"))
        self.rejected(3, "no.gguf", "eval", "ppl", "-m", self.path("no.gguf"), "-f", TEXT)

    def test_a_context_longer_than_the_training_is_reported(self):
        self.assertIn("was trained for 512 tokens", self.ok("eval", "ppl", "-f", TEXT, "-c", "1024").stderr)


@support.needs_backend
class Divergence(support.Case):
    def save(self, *words):
        file = self.path("base.logits")
        self.ok("eval", "kld", "-f", TEXT, *SHORT, "--save-logits", file, *words)
        return file

    def test_a_model_has_no_divergence_from_itself(self):
        got = self.ok("eval", "kld", "--compare", self.save(), "--json").json
        self.assertEqual((got["kld"], got["delta_p"], got["same_top"]["value"]),
                         ({"value": 0, "error": 0}, {"value": 0, "error": 0}, 1))
        self.assertEqual(got["ppl"], got["base_ppl"])

    def test_text_and_json_agree(self):
        file = self.save()
        other = ("-ctk", "q4_0", "-ctv", "q4_0")
        got = self.ok("eval", "kld", "--compare", file, "--json", *other).json
        text = self.ok("eval", "kld", "--compare", file, *other).text
        self.assertGreater(got["kld"]["value"], 0)
        self.assertTrue(text.startswith(f"45 positions, against {os.path.basename(support.demo_model())}\n"), text)
        self.assertRegex(text, rf"mean KLD +{re.escape(format(got['kld']['value'], '.6g'))} \+/- ")
        self.assertRegex(text, rf"same top token +{100 * got['same_top']['value']:.4f} %")
        self.assertEqual(self.ok("eval", "kld", "--compare", file, *other).text, text)

    def test_chunks_limits_what_is_compared(self):
        got = self.ok("eval", "kld", "--compare", self.save(), "--chunks", "1", "--json").json
        self.assertEqual((got["n_chunks"], got["n_scored"]), (1, 15))

    def test_wrong_command_lines_are_rejected(self):
        file = self.save()
        self.rejected(2, "one of both", "eval", "kld", "-f", TEXT)
        self.rejected(2, "one of both", "eval", "kld", "--compare", file, "--save-logits", file)
        self.rejected(2, "leave --file", "eval", "kld", "--compare", file, "-f", TEXT)
        self.rejected(2, "leave --ctx-size", "eval", "kld", "--compare", file, "-c", "64")
        self.rejected(2, "needs a text", "eval", "kld", "--save-logits", file)
        self.rejected(2, "no file of `bitnet eval kld --save-logits`", "eval", "kld", "--compare", TEXT)
        self.rejected(2, "cannot be opened", "eval", "kld", "--compare", self.path("none"))
        self.rejected(1, "cannot write", "eval", "kld", "-f", TEXT, *SHORT, "--save-logits", self.path("no/folder"))
        self.rejected(2, "m.gguf", "eval", "kld", "-f", TEXT, "--save-logits", self.path("m.gguf", b"GGUF"))

    def test_damaged_files_of_logits_are_rejected(self):
        with open(self.save(), "rb") as f:
            good = f.read()
        self.rejected(2, "it was cut or damaged", "eval", "kld", "--compare", self.path("cut", good[:-1]))
        at = len(good) - 100
        bad = good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
        self.rejected(2, "checksum of chunk 3 is wrong", "eval", "kld", "--compare", self.path("bad", bad))

    def test_a_failure_leaves_the_old_file(self):
        file = self.path("base.logits", b"old")
        self.rejected(2, "chunks of 512", "eval", "kld", "-f", self.path("t", "short"), "--save-logits", file)
        with open(file, "rb") as f:
            self.assertEqual(f.read(), b"old")


@support.needs_backend
class OtherVocabulary(tiny_checkpoint.Case):
    def test_logits_of_another_vocabulary_are_rejected(self):
        model, file = self.path("small.gguf"), self.path("base.logits")
        self.save()
        self.ok("convert", self.folder, model)
        self.ok("eval", "kld", "-f", TEXT, *SHORT, "--save-logits", file)
        self.rejected(2, "logits of 2048 tokens, the model has 260: they have different vocabularies", "eval", "kld",
                     "-m", model, "--compare", file)


@support.needs_backend
class Choice(support.Case):
    def items(self, *items):
        return self.path("items.jsonl", "".join(json.dumps(i) + "\n" for i in items))

    def agree(self, n):
        with open(AGREE, encoding="utf-8") as f:
            return self.path("agree.jsonl", "".join(f.readlines()[:n]))

    def test_text_and_json_agree(self):
        file = self.agree(12)
        got = self.ok("eval", "choice", "-f", file, "--json").json
        text = self.ok("eval", "choice", "-f", file).text
        right = sum(i["label"] == i["chosen"] for i in got["items"])
        self.assertEqual(got["accuracy"]["n"], right)
        self.assertIn(f"accuracy             {100 * right / 12:6.2f} %, 95 % interval", text)
        self.assertIn("random                50.00 %\n12 questions\n", text)

    def test_the_demo_model_chooses_the_right_pronoun(self):
        got = self.ok("eval", "choice", "-f", self.agree(60), "--json").json
        self.assertGreater(got["accuracy"]["low"], got["random"])

    def test_steps_and_threads_change_nothing(self):
        file = self.agree(10)
        want = self.ok("eval", "choice", "-f", file, "--json").stdout
        for words in (("-t", "1"), ("-ub", "16"), ("-ub", "1")):
            self.assertEqual(self.ok("eval", "choice", "-f", file, "--json", *words).stdout, want, words)

    def test_a_file_of_windows_and_blank_lines(self):
        file = self.path("w.jsonl", b"\xef\xbb\xbf" + json.dumps(ITEM).encode() + b"\r\n\r\n" + json.dumps(ITEM).encode())
        got = self.ok("eval", "choice", "-f", file, "--json").json
        self.assertEqual([i["line"] for i in got["items"]], [1, 3])
        self.assertEqual(got["items"][0]["logprobs"], got["items"][1]["logprobs"])

    def test_a_context_is_no_part_of_a_score(self):
        """Endings with the same words have the same score, and another order of them changes nothing."""
        twice = {**ITEM, "endings": ["He was sad.", "She was sad.", "He was sad."]}
        turned = {**ITEM, "endings": ["She was sad.", "He was sad."], "label": 1}
        one, two, three = (i["logprobs"] for i in self.ok("eval", "choice", "--json", "-f", self.items(
            ITEM, twice, turned)).json["items"])
        self.assertEqual(two, [*one, one[0]])
        self.assertEqual(three, one[::-1])

    def test_bad_lines_have_their_number(self):
        for bad, why in (({"ctx": "a"}, "'endings'"), ({**ITEM, "label": 2}, "'label'"), ({"a": 1}, "neither"),
                         ({"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}}, "'answerKey'")):
            result = self.rejected(2, why, "eval", "choice", "-f", self.items(ITEM, ITEM, bad))
            self.assertIn("items.jsonl:3: ", result.errors[0])
        broken = self.path("broken.jsonl", json.dumps(ITEM) + "\n{\"ctx\": \n")
        self.assertIn("broken.jsonl:2: ", self.bitnet("eval", "choice", "-f", broken).errors[0])
        deep = self.path("deep.jsonl", '{"ctx":' + "[" * 100000 + "\n")
        self.assertIn("deep.jsonl:1: ", self.bitnet("eval", "choice", "-f", deep).errors[0])
        long = {**ITEM, "ctx": "a fox and " * 600}
        self.assertIn("items.jsonl:2: ", self.rejected(2, "no room", "eval", "choice", "-f",
                                                      self.items(ITEM, long)).errors[0])

    def test_wrong_questions_are_rejected(self):
        self.rejected(2, "-f FILE.jsonl", "eval", "choice")
        self.rejected(2, "no questions", "eval", "choice", "-f", self.path("empty", ""))
        self.rejected(2, "takes no --compare", "eval", "choice", "-f", AGREE, "--compare", "x")
        self.rejected(2, "no-file", "eval", "choice", "-f", self.path("no-file"))


if __name__ == "__main__":
    support.main()
