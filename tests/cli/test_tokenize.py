"""Text to ids and back, on whole models and on files with a vocabulary only."""

import support
import gguf_bytes

TEXTS = [
    ("Once upon a time", "plain words"),
    ("  leading and trailing  ", "blanks"),
    ("tab\tline\n\nempty line\n", "control characters"),
    ("naïve café — “quotes”", "two and three byte characters"),
    ("\U0001f600 \U0001f469\u200d\U0001f680", "four byte characters and joiners"),
    ("1234567890 3.14 0x1F", "digits"),
    ("\\n stays two characters", "no escapes here"),
    ("don't we'll I'VE", "contractions"),
    ("日本語 العربية हिन्दी", "other scripts"),
]


@support.needs_model
class Tokenize(support.Case):
    def ids(self, *words, **more):
        line = self.ok("tokenize", *words, **more).text
        self.assertEqual(line.count("\n"), 1, line)
        return [int(word) for word in line.split()]

    def test_detokenize_inverts_tokenize(self):
        for text, why in TEXTS:
            with self.subTest(why):
                ids = self.ids("--", text)
                self.assertTrue(ids)
                back = self.ok("detokenize", *map(str, ids))
                self.assertEqual(back.stdout, text.encode())
                self.assertEqual(back.stderr, "")

    def test_every_way_in_gives_the_same(self):
        text = "Once upon a time\n"
        want = self.ids("--", text)
        self.assertEqual(self.ids("-f", self.path("t.txt", text)), want)
        self.assertEqual(self.ids(stdin=text.encode()), want)
        got = self.ok("tokenize", "--json", text).json
        self.assertEqual((got["ids"], got["count"]), (want, len(want)))
        self.assertEqual("".join(got["pieces"]), text)

    def test_every_way_back_gives_the_same(self):
        ids = self.ids("Once upon a time")
        line = " ".join(map(str, ids))
        want = b"Once upon a time"
        self.assertEqual(self.ok("detokenize", line).stdout, want)
        self.assertEqual(self.ok("detokenize", line.replace(" ", ",")).stdout, want)
        self.assertEqual(self.ok("detokenize", str(ids)).stdout, want)
        self.assertEqual(self.ok("detokenize", stdin=line.encode()).stdout, want)
        self.assertEqual(self.ok("detokenize", "-f", self.path("i.txt", line)).stdout, want)
        self.assertEqual(self.ok("detokenize", "--json", line).json["text"], want.decode())

    def test_an_empty_text_has_no_tokens(self):
        self.assertEqual(self.ids(""), [])
        self.assertEqual(self.ids(stdin=b""), [])

    def test_add_bos_adds_a_token_without_text(self):
        plain = self.ids("Once")
        with_bos = self.ids("--add-bos", "Once")
        self.assertEqual(with_bos[1:], plain)
        # The begin of a sequence is no text.
        self.assertEqual(self.ok("detokenize", *map(str, with_bos)).text, "Once")

    def test_only_parse_special_reads_control_tokens(self):
        bos = self.ids("--add-bos", "")[0]
        name = self.ok("detokenize", "--special", str(bos)).text
        self.assertTrue(name)
        self.assertEqual(self.ids("--parse-special", name), [bos])
        self.assertNotEqual(self.ids(name), [bos])
        self.assertEqual(self.ok("detokenize", *map(str, self.ids(name))).text, name)

    def test_a_vocabulary_only_file_gives_the_same_tokens(self):
        with open(support.demo_model(), "rb") as f:
            content = gguf_bytes.Layout(f.read()).vocabulary_only()
        file = self.path("vocabulary.gguf", content)
        want = self.ids("Once upon a time")
        self.assertEqual(self.ids("-m", file, "Once upon a time"), want)
        self.assertEqual(self.ok("detokenize", "-m", file, *map(str, want)).text,
                         "Once upon a time")

    def test_needs_no_backend(self):
        self.assertEqual(self.ok("tokenize", "a", env={"BITNET_DEVICE": "none-such"}).stderr, "")

    def test_bytes_that_are_not_utf8_are_rejected(self):
        for bad, why in ((b"\xff\xfe", "never in UTF-8"), (b"abc\xc3", "cut in a character"),
                         (b"\xed\xa0\x80", "a surrogate"), (b"\xc0\xaf", "an overlong form")):
            with self.subTest(why):
                self.rejected(2, "UTF-8", "tokenize", stdin=bad)

    def test_invalid_token_ids_are_rejected(self):
        self.rejected(2, "99999999", "detokenize", "99999999")
        self.rejected(2, "token ids", "detokenize", "one")

    def test_a_long_text_comes_back(self):
        text = "Once upon a time there was a cat. " * 3000
        self.assertEqual(self.ok("detokenize", stdin=" ".join(map(str, self.ids(stdin=text.encode())))
                                 .encode()).text, text)


if __name__ == "__main__":
    support.main()
