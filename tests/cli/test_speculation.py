"""--spec-type and --model-draft of bitnet run: the same text, the counts of drafts, and the messages for wrong values."""

import json

import support

PROMPT = "The fox ran. The fox ran. The fox ran. The fox"


@support.needs_backend
class Speculation(support.Case):
    def answer(self, *words):
        result = self.ok("run", "--json", "-p", PROMPT, "-n", "24", "-s", "5", *words)
        return json.loads(result.text)

    def test_a_text_is_the_same_with_drafts(self):
        for temperature in ("0", "1"):
            plain = self.answer("--temp", temperature)
            self.assertNotIn("speculation", plain)
            for words in (["--spec-type", "ngram"], ["--spec-type", "auto", "--draft-max", "3"],
                          ["--spec-type", "ngram", "--spec-ngram-size-n", "1"]):
                drafted = self.answer("--temp", temperature, *words)
                self.assertEqual(drafted["tokens"], plain["tokens"], words)
                about = drafted["speculation"]
                self.assertEqual(about["type"], "ngram")
                self.assertLessEqual(about["accepted"], about["drafted"])

    def test_invalid_draft_options_are_rejected(self):
        for words, says in ((["--spec-type", "draft"], "--spec-type draft expects a draft model"),
                            (["--spec-type", "ngram", "--draft-min", "20"], "--draft-min expects at most"),
                            (["--spec-type", "much"], "none|ngram|draft|auto")):
            self.rejected(2, says, "run", "-p", PROMPT, *words)
