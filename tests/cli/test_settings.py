"""Built-in default < config files < environment < flags, pair by pair; and what is wrong with them.

`backends why --json` shows a setting without needing a backend: `requested` is --device, and
`requested_by` where it came from.
"""

import os
import stat
import unittest

import support


class Precedence(support.Case):
    def device(self, *words, env=None):
        found = self.why("--json", *words, env=env).json
        return found["requested"], found["requested_by"]

    def user_config(self, text):
        return self.path("config/bitnet/bitnet.yaml", text)

    def test_without_settings_the_default_is_used(self):
        self.assertEqual(self.device(), ("auto", "default"))

    def test_user_config_beats_default(self):
        file = self.user_config("# first\ndevice: alpha\n")
        self.assertEqual(self.device(), ("alpha", f"{file}:2"))

    def test_config_flag_beats_user_config(self):
        self.user_config("device: alpha\n")
        other = self.path("other.yaml", "device: beta\n")
        self.assertEqual(self.device("--config", other), ("beta", f"{other}:1"))

    def test_user_config_stays_where_the_config_flag_says_nothing(self):
        self.user_config("device: alpha\n")
        other = self.path("other.yaml", "temp: 1\n")
        self.assertEqual(self.device("--config", other)[0], "alpha")

    def test_named_config_replaces_the_usual_ones(self):
        self.user_config("device: alpha\n")
        only = self.path("only.yaml", "temp: 1\n")
        self.assertEqual(self.device(env={"BITNET_CONFIG": only}), ("auto", "default"))

    def test_llama_variable_beats_config(self):
        self.user_config("device: alpha\n")
        result = self.why("--json", env={"LLAMA_ARG_DEVICE": "beta"})
        self.assertEqual(result.json["requested"], "beta")
        notices = [line for line in result.stderr.splitlines() if "LLAMA_ARG_DEVICE" in line]
        self.assertEqual(len(notices), 1, result)
        self.assertIn("BITNET_DEVICE", notices[0])

    def test_environment_beats_llama_variable(self):
        result = self.why("--json",
                         env={"LLAMA_ARG_DEVICE": "beta", "BITNET_DEVICE": "gamma"})
        self.assertEqual(result.json["requested"], "gamma")
        self.assertNotIn("LLAMA", result.stderr)

    def test_environment_beats_config(self):
        self.user_config("device: alpha\n")
        self.assertEqual(self.device(env={"BITNET_DEVICE": "gamma"}), ("gamma", "BITNET_DEVICE"))

    def test_environment_beats_config_flag(self):
        other = self.path("other.yaml", "device: beta\n")
        self.assertEqual(self.device("--config", other, env={"BITNET_DEVICE": "gamma"})[0], "gamma")

    def test_flag_beats_environment(self):
        self.assertEqual(self.device("--device", "delta", env={"BITNET_DEVICE": "gamma"}),
                         ("delta", "--device"))

    def test_flag_beats_config(self):
        self.user_config("device: alpha\n")
        self.assertEqual(self.device("-dev", "delta")[0], "delta")

    def test_last_flag_wins(self):
        self.assertEqual(self.device("-dev", "delta", "--device=epsilon")[0], "epsilon")

    def test_empty_variable_is_unset(self):
        self.assertEqual(self.device(env={"BITNET_DEVICE": ""}), ("auto", "default"))

    @support.needs_model
    def test_booleans_in_all_their_words(self):
        count = lambda *words, **more: self.ok("tokenize", "--json", "a", *words, **more).json["count"]
        without = count()
        for word in ("1", "true", "on", "yes", "enabled"):
            self.assertEqual(count(env={"BITNET_ADD_BOS": word}), without + 1, word)
        for word in ("0", "false", "off", "no", "disabled"):
            self.assertEqual(count(env={"BITNET_ADD_BOS": word}), without, word)
        self.assertEqual(count("--no-add-bos", env={"BITNET_ADD_BOS": "1"}), without)
        self.assertEqual(count("--add-bos", env={"BITNET_ADD_BOS": "0"}), without + 1)
        self.user_config("add-bos: on\n")
        self.assertEqual(count(), without + 1)
        self.assertEqual(count(env={"BITNET_ADD_BOS": "off"}), without)


# (content, part of the message, line, why)
BROKEN = [
    ("ctx-size: many\n", "whole number", 1, "wrong type"),
    ("temp: 1\nctx-size: [1]\n", "found a list", 2, "a list where one value belongs"),
    ("temp:\n", "found none", 1, "no value"),
    ("temp: 1\ntemp: 2\n", "set twice", 2, "the same key again"),
    ("temp: {a: 1}\n", "nested", 1, "a mapping inside"),
    ("- temp\n", "key: value", 1, "a list instead of a mapping"),
    ("just words\n", "key: value", 1, "a scalar instead of a mapping"),
    ("temp: &a 1\n", "anchors", 1, "an anchor"),
    ("temp: *a\n", "", 1, "an alias"),
    ("temp: !!float 1\n", "tags", 1, "a tag"),
    ("temp: 1\n---\ntemp: 2\n", "one document", 2, "two documents"),
    ("temp: [\n", "", 2, "not YAML"),
    ("#" * 70000, "64 KiB", 1, "too long"),
    ("a: " + "[" * 5000, "", 1, "nested deeply"),
]


class ConfigFile(support.Case):
    def test_broken_files_are_rejected_with_their_line(self):
        for content, message, line, why in BROKEN:
            with self.subTest(why):
                file = self.path("bad.yaml", content)
                result = self.rejected(2, message, "version", "--config", file)
                if line:
                    self.assertIn(f"{file}:", result.errors[0])
                if message:
                    self.assertIn(f"{file}:{line}: ", result.errors[0])

    def test_unknown_key_is_a_warning_with_its_line(self):
        file = self.path("c.yaml", "temp: 1\ndevcie: cpu\n")
        result = self.ok("version", "--config", file)
        self.assertIn(f"bitnet: warning: {file}:2: unknown key 'devcie'", result.stderr)
        self.assertIn("did you mean 'device'", result.stderr)

    def test_key_of_another_command_is_fine(self):
        file = self.path("c.yaml", "temp: 1\n")
        self.assertEqual(self.ok("version", "--config", file).stderr, "")

    def test_any_long_name_is_a_key(self):
        file = self.path("c.yaml", "predict: x\n")
        self.rejected(2, "'n-predict' expects", "version", "--config", file)

    def test_empty_file_is_fine(self):
        self.assertEqual(self.ok("version", "--config", self.path("c.yaml", "")).stderr, "")

    def test_bad_variable_is_named(self):
        self.rejected(2, "BITNET_CTX_SIZE expects", "run", "-p", "a",
                     env={"BITNET_CTX_SIZE": "many"})

    def test_a_folder_as_config_is_rejected(self):
        os.makedirs(self.path("folder"))
        self.rejected(2, "directory", "version", "--config", self.path("folder"))

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_unreadable_config_of_the_user_is_a_warning(self):
        file = self.path("config/bitnet/bitnet.yaml", "temp: 1\n")
        os.chmod(file, 0)
        self.addCleanup(os.chmod, file, stat.S_IRWXU)
        self.assertIn("warning", self.ok("version").stderr)


if __name__ == "__main__":
    support.main()
