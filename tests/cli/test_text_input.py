"""Texts from other systems, in files and pipes, are read as docs/reference/text-input.md says."""

import json

import support
from support import needs_backend, needs_model

MARK = b"\xef\xbb\xbf"
LINUX = b"A fox\nand a bear\n"
WINDOWS = MARK + LINUX.replace(b"\n", b"\r\n")
NO_TEXT = [("UTF-16 of PowerShell", "Once\n".encode("utf-16"), "it is UTF-16"),
           ("UTF-16 without a mark", "Once\n".encode("utf-16-be"), "it is UTF-16"),
           ("UTF-32", "Once\n".encode("utf-32"), "it is UTF-32"),
           ("a byte 0", b"Once\0upon", "a byte 0 at offset 4")]


class Files(support.Case):
    def test_input_that_is_not_text_is_rejected_by_source(self):
        for why, content, says in NO_TEXT:
            file = self.path("no-text", content)
            for words, stdin in [(["run", "-f", file], None), (["run"], content), (["chat", "-f", file], None),
                                 (["embed", "-f", file], None), (["embed"], content),
                                 (["logits", "-f", file, "-o", "x.npy"], None),
                                 (["run", "-p", "x", "--grammar-file", file], None),
                                 (["run", "-p", "x", "--config", file], None),
                                 (["detokenize", "-f", file], None)]:
                with self.subTest(why, words=words):
                    result = self.bitnet(*words, stdin=stdin or b"")
                    self.assertEqual((result.code, len(result.errors)), (2, 1), result)
                    self.assertIn(says, result.errors[0])
                    self.assertIn("no-text" if stdin is None else "standard input", result.errors[0])

    def test_config_files_of_windows(self):
        for why, content in [("Windows", MARK + b"n-predict: 3\r\ntemp: 0\r\n"), ("Linux", b"n-predict: x\n")]:
            result = self.bitnet("run", "-p", "x", "--config", self.path("c.yaml", content), "-m", "none.gguf")
            self.assertEqual("n-predict" in result.stderr, why == "Linux", result)

    @needs_model
    def test_ids_with_the_line_ends_of_windows_are_read(self):
        ids = self.ok("tokenize", "Once upon").text
        file = self.path("ids.txt", MARK + ids.encode().replace(b"\n", b"\r\n"))
        self.assertEqual(self.ok("detokenize", "-f", file).text, self.ok("detokenize", stdin=ids.encode()).text)

    @needs_model
    def test_tokenize_takes_each_byte(self):
        exact = self.ok("tokenize", stdin=WINDOWS).text
        self.assertEqual(self.ok("tokenize", "-f", self.path("w.txt", WINDOWS)).text, exact)
        self.assertNotEqual(self.ok("tokenize", stdin=LINUX).text, exact)
        self.assertEqual(self.ok("detokenize", *exact.split()).stdout, WINDOWS)


@needs_backend
class Prompts(support.Case):
    def prompt(self, *words, stdin=None):
        return self.ok("run", "-n", "1", "--temp", "0", "--json", *words, stdin=stdin or b"").json["tokens"]["prompt"]

    def test_a_file_of_windows_has_the_tokens_of_linux(self):
        for words in ((), ("--chat-template", "auto")):
            expected = self.prompt(*words, "-f", self.path("linux.txt", LINUX))
            self.assertEqual(self.prompt(*words, "-f", self.path("windows.txt", WINDOWS)), expected)
            self.assertEqual(self.prompt(*words, stdin=WINDOWS), expected)
            self.assertEqual(self.prompt(*words, stdin=LINUX), expected)

    def test_an_explicit_carriage_return_is_kept(self):
        self.assertNotEqual(self.prompt("-p", "a\\r\\nb"), self.prompt("-p", "a\\nb"))
        self.assertNotEqual(self.prompt("-f", self.path("a", b"a\rb")), self.prompt("-f", self.path("b", b"ab")))

    def test_texts_to_embed(self):
        def embeddings(stdin):
            return [json.loads(line)["embedding"]
                    for line in self.ok("embed", "--format", "json", stdin=stdin).text.splitlines()]
        self.assertEqual(embeddings(WINDOWS), embeddings(LINUX))

    def test_grammars_with_the_line_ends_of_windows_are_read(self):
        grammar = b'root ::= "yes"\n  | "no"\n'
        for content in (grammar, MARK + grammar.replace(b"\n", b"\r\n")):
            words = ("run", "-q", "-n", "4", "--temp", "0", "-p", "Yes?", "--no-display-prompt", "--grammar-file",
                     self.path("g.gbnf", content))
            self.assertIn(self.ok(*words).text.strip(), ("yes", "no"))


if __name__ == "__main__":
    support.main()
