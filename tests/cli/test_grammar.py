"""--grammar and --grammar-file of bitnet run and chat: texts that keep to them, and the messages for wrong ones."""

import json
import os
import re
import threading

import support

PROMPT = "Once upon a time"
# Error messages for grammars; {0} stands for the grammar's file.
WRONG = [
    ("root ::= [a-z", "line 1, column 10: the class that begins here has no end"),
    ("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule 'root' is defined on line 1 already"),
    ("root ::= x\nx ::= root \"a\" | \"b\"", "can begin with itself (root -> x -> root)"),
    ("answer ::= \"yes\"", "there is no rule 'root'"),
    ("root ::= \"a\"{2", "expected ',' or '}' of a repetition, found the end of the grammar"),
    ("root ::= " + "(" * 5000, "groups lie more than 100 deep"),
    ("root ::= \"\x1b[31m\" \x1b", "found '\\x1b'"),
]


@support.needs_backend
class Grammars(support.Case):
    def written(self, *words, **more):
        result = self.ok("run", "-q", "--no-display-prompt", "-p", PROMPT, *words, **more)
        self.assertTrue(result.text.endswith("\n"))
        return result.text[:-1]

    def test_texts_keep_to_them(self):
        form = 'root ::= "{" member (", " member)* "}"\nmember ::= [a-z]{2,5} "=" ("0" | [1-9] [0-9]?)'
        file = self.path("form.gbnf", form)
        for seed in ("1", "2", "3"):
            text = self.written("--grammar", form, "-s", seed, "-n", "60")
            self.assertRegex(text, r"^\{[a-z]{2,5}=(0|[1-9][0-9]?)(, [a-z]{2,5}=(0|[1-9][0-9]?))*(\}$|,| |[a-z]*=?)")
            self.assertEqual(self.written("--grammar-file", file, "-s", seed, "-n", "60"), text)

    def test_escapes_are_the_grammars_own(self):
        self.assertEqual(self.written("--grammar", r'root ::= "a\tb\\n\x41"'), "a\tb\\nA")

    def test_why_it_ended(self):
        def stop(*words):
            return self.ok("run", "--json", "-p", PROMPT, *words).json["stop"]

        self.assertEqual(stop("--grammar", 'root ::= " yes"'), {"reason": "eos"})
        self.assertEqual(stop("--grammar", 'root ::= " yes"', "--ignore-eos"), {"reason": "grammar"})
        self.assertEqual(stop("--grammar", 'root ::= "aabbcc"', "-r", "bb"), {"reason": "string", "string": "bb"})
        self.assertEqual(stop("--grammar", "root ::= [a-z ]*", "-n", "3"), {"reason": "length"})

    def test_a_form_of_json_is_json(self):
        folder = os.path.join(support.SOURCE, "docs/how-to/answer-in-a-form")
        for seed in ("1", "2", "3"):
            got = json.loads(self.written("--grammar-file", os.path.join(folder, "fox.gbnf"), "-s", seed))
            self.assertEqual(list(got), ["animal", "name", "age"])
        # json.gbnf begins a text with an object, which 20 tokens need not complete.
        text = self.written("--grammar-file", os.path.join(folder, "json.gbnf"), "-n", "20", "-s", "4")
        self.assertTrue(text.startswith("{"))

    def test_in_a_chat_each_answer(self):
        said = self.ok("chat", "-q", "--grammar", 'root ::= "yes" | "no"', stdin=b"Are you there?\nSure?\n/bye\n")
        self.assertEqual([line in ("yes", "no") for line in said.text.splitlines()], [True, True], said)

    def test_a_pipe_is_read_once(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)

        def write():
            with open(pipe, "w", encoding="utf-8") as end:
                end.write('root ::= "yes" | "no"')

        writer = threading.Thread(target=write)
        writer.start()
        said = self.ok("chat", "-q", "--grammar-file", pipe, stdin=b"Are you there?\nSure?\n/bye\n")
        writer.join()
        self.assertEqual(len(re.findall(r"^(?:yes|no)$", said.text, re.MULTILINE)), 2, said)

    def test_an_option_comes_before_the_variable(self):
        self.assertEqual(self.written(env={"BITNET_GRAMMAR": 'root ::= " no"'}), " no")
        self.assertEqual(self.written("--grammar", 'root ::= " yes"', env={"BITNET_GRAMMAR": 'root ::= " no"'}), " yes")
        self.assertNotEqual(self.written("--grammar", "", "-n", "8", env={"BITNET_GRAMMAR": 'root ::= " no"'}), " no")


SCHEMA = {"type": "object", "properties": {"animal": {"enum": ["fox", "owl"]}, "age": {"type": "integer", "minimum": 1,
                                                                                      "maximum": 99}},
          "required": ["animal", "age"], "additionalProperties": False}


@support.needs_backend
class Schemas(support.Case):
    def test_texts_are_valid(self):
        file = self.path("form.json", json.dumps(SCHEMA))
        for seed in ("1", "2", "3"):
            run = ("run", "-q", "--no-display-prompt", "-p", PROMPT, "-s", seed, "-n", "60")
            text = self.ok(*run, "--json-schema", json.dumps(SCHEMA)).text
            got = json.loads(text)
            self.assertEqual(list(got), ["animal", "age"])
            self.assertIn(got["animal"], ("fox", "owl"))
            self.assertTrue(1 <= got["age"] <= 99)
            self.assertEqual(self.ok(*run, "--json-schema-file", file).text, text)
            self.assertEqual(self.ok(*run, env={"BITNET_JSON_SCHEMA": json.dumps(SCHEMA)}).text, text)

    def test_in_a_chat_each_answer(self):
        said = self.ok("chat", "-q", "--json-schema", '{"enum": [true, false]}', stdin=b"Are you there?\nSure?\n/bye\n")
        self.assertEqual([line in ("true", "false") for line in said.text.splitlines()], [True, True], said)


class Wrong(support.Case):
    def test_schemas_are_rejected_in_words(self):
        words = "the JSON schema, at #/properties/a/not: not is not supported"
        wrong = '{"properties": {"a": {"not": {}}}}'
        for command in ("run", "chat"):
            self.rejected(2, "--json-schema: " + words, command, "-p", PROMPT, "--json-schema", wrong)
        file = self.path("wrong.json", wrong)
        run = ("run", "-p", PROMPT)
        self.rejected(2, f"{file}: {words}", *run, "--json-schema-file", file)
        self.rejected(2, "none.json: No such file or directory", *run, "--json-schema-file", self.path("none.json"))
        self.rejected(2, "give the JSON schema once", *run, "--json-schema-file", file, "--json-schema", "{}")
        both = ("--grammar", 'root ::= "a"', "--json-schema", "{}")
        self.rejected(2, "give a grammar or a JSON schema, not both", *run, *both)

    def test_grammars_are_rejected_in_words(self):
        for grammar, words in WRONG:
            with self.subTest(words):
                for command in ("run", "chat"):
                    self.rejected(2, words, command, "-p", PROMPT, "--grammar", grammar)
                file = self.path("wrong.gbnf", grammar)
                self.rejected(2, f"{file}: the grammar, line", "run", "-p", PROMPT, "--grammar-file", file)
        bad = self.path("bad.gbnf", b'root ::= "\xff"')
        self.rejected(2, "the grammar is no UTF-8 at byte 10", "run", "-p", PROMPT, "--grammar-file", bad)

    def test_grammar_files_that_cannot_be_used_are_rejected(self):
        run = ("run", "-p", PROMPT)
        self.rejected(2, "none.gbnf: No such file or directory", *run, "--grammar-file", self.path("none.gbnf"))
        self.rejected(2, "Is a directory", *run, "--grammar-file", self.home)
        self.rejected(2, "there is no rule 'root'", *run, "--grammar-file", self.path("empty.gbnf", ""))
        self.rejected(2, "File too large", *run, "--grammar-file", self.path("zeros", bytes(20 << 20)))
        self.rejected(2, "give the grammar once", *run, "--grammar-file", self.path("x", "x"), "--grammar", "x")
        large = self.path("large.gbnf", 'root ::= "' + "a" * (1 << 20) + '"')
        self.rejected(2, "at most 1048576 are possible", *run, "--grammar-file", large)


if __name__ == "__main__":
    support.main()
