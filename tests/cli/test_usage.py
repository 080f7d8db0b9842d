"""Help, version, and everything that is wrong with a command line."""

import os
import re
import subprocess

import support

# As the reference page lists them, which is written by hand.
with open(os.path.join(support.SOURCE, "docs", "reference", "cli.md"), encoding="utf-8") as page:
    COMMANDS = re.findall(r"^\| `([a-z][a-z-]*)`", page.read(), re.MULTILINE)

# (arguments, part of the message, why)
WRONG = [
    (["rum"], "did you mean 'run'", "a typing error gets a suggestion"),
    (["frobnicate"], "unknown command", "nothing near: no suggestion, still clear"),
    (["-m", "x"], "a command comes first", "llama.cpp's habit of starting with flags"),
    (["run", "--tmep", "1"], "did you mean '--temp'", "typing error in a flag"),
    (["run", "--ctx"], "unknown flag --ctx", "prefixes are not guessed"),
    (["run", "-xyz"], "unknown flag -xyz", "single dash, several letters"),
    (["version", "-c", "3"], "has no flag -c", "a flag of another command"),
    (["run", "-p"], "needs a value", "value missing at the end"),
    (["run", "-c", "abc"], "whole number", "not a number"),
    (["run", "-c", "4x"], "whole number", "unknown suffix"),
    (["run", "-c", "1.5"], "whole number", "a fraction"),
    (["run", "-c", "-1"], "from 0 to", "below the range"),
    (["run", "-c", "99999999999999999999"], "whole number", "beyond 64 bits"),
    (["run", "-c", "9999999999999G"], "whole number", "beyond 64 bits by its suffix"),
    (["run", "--ctx-size="], "found ''", "an empty value"),
    (["run", "--temp", "nan"], "a number", "not a number at all"),
    (["run", "--temp", "-1"], "from 0 to", "negative temperature"),
    (["run", "--top-p", "1.01"], "from 0 to 1", "no probability"),
    (["run", "-s", "4294967296"], "from -1 to", "seeds have 32 bits"),
    (["run", "-ctk", "q5_1"], "one of f32|f16|q8_0|q4_0", "no such cache type"),
    (["run", "--i2s-layout", "d"], "one of a|b|c|qk256", "no such layout"),
    (["run", "--no-json=1"], "takes no value", "both negated and given"),
    (["run", "--json=maybe"], "true or false", "no boolean"),
    (["run", "-t", "99999"], "from -1 to", "more threads than any machine has"),
    (["run", "--poll", "101"], "from 0 to 100", "more than 100 of 100"),
    (["run", "--poll", "-1"], "from 0 to 100", "less than nothing"),
    (["bench", "-C", "xyz"], "no hexadecimal number", "a mask that is no number"),
    (["bench", "-C", "0"], "names a CPU", "a mask without CPUs"),
    (["bench", "--cpu-mask", "1" + 1024 * "0"], "names CPU 4096", "a CPU that is not there"),
    (["run", "--cpu-strict", "maybe"], "one of on|off|1|0", "neither on nor off"),
    (["run", "--cpu-strict"], "needs a value", "no value"),
    (["run", "--hugepages", "on"], "one of auto|off", "large pages are a wish"),
    (["run", "-b", "0"], "from 1 to", "a batch of nothing"),
    (["run", "-l", "x+1", "-p", "a"], "ID+NUMBER", "bias without an id"),
    (["run", "-l", "1", "-p", "a"], "ID+NUMBER", "bias without a value"),
    (["run", "-l", "1+x", "-p", "a"], "ID+NUMBER", "bias without a number"),
    (["run", "--stop-id", "x", "-p", "a"], "token ids", "no token id"),
    (["run", "-r", "", "-p", "a"], "expects a text", "an empty stop string would stop at once"),
    (["run", "-m", "m", "a", "b"], "quote it", "a prompt of two words without quotes"),
    (["run", "-m", "m", "-p", "a", "-f", "b"], "once", "two prompts"),
    (["run", "-f", "/nonexistent/file"], "No such file", "prompt file missing"),
    (["run", "-f", "/"], "directory", "prompt file is a folder"),
    (["run", "--config", "/nonexistent.yaml"], "No such file", "config file missing"),
    (["logits", "-p", "a"], "-o FILE", "nowhere to write"),
    (["backends", "frob"], "list, info, why, probe, dir, sign or verify", "no such subcommand"),
    (["parity", "--backend"], "needs a value", "no name"),
    (["backends", "why", "x"], "takes no 'x'", "one word too many"),
    (["inspect", "a", "b"], "one file", "two files"),
    (["tokenize", "a", "b"], "quote it", "two texts"),
    (["tokenize", "a", "-f", "b"], "once", "a text twice"),
    (["detokenize", "1", "-2"], "token ids", "negative id"),
    (["detokenize", "1x"], "token ids", "letters in an id"),
    (["detokenize", "99999999999"], "token ids", "beyond 32 bits"),
    (["help", "rum"], "did you mean 'run'", "help for a typing error"),
    (["version", "--json", "--qiet"], "did you mean '--quiet'", "each command checks its flags"),
]


class Usage(support.Case):
    def test_wrong_command_lines(self):
        for words, message, why in WRONG:
            with self.subTest(why, words=words):
                self.rejected(2, message, *words)

    def test_alone_it_prints_usage_on_stderr(self):
        result = self.bitnet()
        self.assertEqual((result.code, result.stdout), (2, b""))
        self.assertIn("Usage: bitnet COMMAND", result.stderr)

    def test_help_goes_to_stdout(self):
        for words in (["help"], ["--help"], ["-h"]):
            result = self.ok(*words)
            self.assertEqual(result.stderr, "")
            listed = re.findall(r"^  ([a-z][a-z-]*)  ", result.text, re.MULTILINE)
            self.assertEqual(sorted(listed), sorted(COMMANDS), "the program and docs/reference/cli.md")

    def test_every_command_has_help(self):
        for command in COMMANDS:
            for words in ([command, "--help"], [command, "-h"], ["help", command]):
                result = self.ok(*words)
                self.assertTrue(result.text.startswith(f"Usage: bitnet {command}"), result)
                self.assertEqual(result.stderr, "")
                self.assertLessEqual(max(map(len, result.text.splitlines())), 100)

    def test_help_does_not_look_at_the_rest(self):
        self.ok("run", "--help", env={"BITNET_CTX_SIZE": "rubbish"})

    def test_version_is_three_numbers(self):
        self.assertRegex(self.ok("version").text, r"^bitnet \d+\.\d+\.\d+ ")
        self.assertEqual(self.ok("--version").stdout, self.ok("version").stdout)
        info = self.ok("version", "--json").json
        self.assertRegex(info["version"], r"^\d+\.\d+\.\d+$")
        self.assertIn("abi_major", info)

    def test_quiet_still_prints_errors(self):
        self.rejected(3, "does not exist", "inspect", "/nonexistent", "-q")

    def test_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([support.PROGRAM, "help"], stdout=full, stderr=subprocess.PIPE,
                                  env=self.environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)

    def test_a_reader_that_left_is_no_crash(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([support.PROGRAM, "help"], stdout=write, stderr=subprocess.PIPE,
                              env=self.environment())
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (1, b""))

    def test_colour_only_when_wanted(self):
        plain = self.bitnet("inspect", "/nonexistent")
        self.assertNotIn("\x1b", plain.stderr)
        self.assertIn("\x1b[31m", self.bitnet("inspect", "/nonexistent", "--color", "always").stderr)
        self.assertIn("\x1b[31m",
                      self.bitnet("inspect", "/nonexistent", env={"CLICOLOR_FORCE": "1"}).stderr)

    def test_control_characters_do_not_reach_the_terminal(self):
        result = self.bitnet("inspect", "/nonexistent\x1b[2J")
        self.assertNotIn("\x1b", result.stderr)


if __name__ == "__main__":
    support.main()
