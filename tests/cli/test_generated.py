"""Completions and manual pages, as shells and man read them."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import support


def commands(case):
    return re.findall(r"^  ([a-z][a-z-]*)  ", case.ok("help").text, re.MULTILINE)


def flags_of(case, command):
    """As the help prints them: one name per option is enough to find it."""
    return set(re.findall(r"(--[a-z0-9-]+)", "\n".join(
        line for line in case.ok(command, "--help").text.splitlines() if re.match(r"  (-|    --)", line))))


class Generated(support.Case):
    def script(self, shell):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder()))
        file = folder / ("_bitnet" if shell == "zsh" else "bitnet")
        file.write_text(self.ok("completion", shell).text, encoding="utf-8")
        return file

    def folder(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def completed_by_bash(self, script, *words):
        """What bash offers for the last of words."""
        setup = " ".join(f"'{w}'" for w in words)
        done = subprocess.run(
            ["bash", "--norc", "-c",
             f"set -eu; source '{script}'; COMP_WORDS=({setup}); COMP_CWORD={len(words) - 1}; "
             "_bitnet; printf '%s\\n' \"${COMPREPLY[@]}\""],
            capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return set(done.stdout.split())

    def test_bash_completes_commands_and_options(self):
        script = self.script("bash")
        subprocess.run(["bash", "-n", script], check=True)
        self.assertEqual(self.completed_by_bash(script, "bitnet", ""), set(commands(self)))
        self.assertEqual(self.completed_by_bash(script, "bitnet", "tok"), {"tokenize"})
        self.assertEqual(self.completed_by_bash(script, "bitnet", "run", "--color", "a"),
                         {"auto", "always"})
        self.assertEqual(self.completed_by_bash(script, "bitnet", "backends", "w"), {"why"})
        self.assertEqual(self.completed_by_bash(script, "bitnet", "run", "--ctx-size", ""), set())
        self.assertIn("/usr", self.completed_by_bash(script, "bitnet", "run", "-m", "/us"))

    def test_bash_knows_every_flag(self):
        script = self.script("bash")
        for command in commands(self):
            with self.subTest(command):
                self.assertLessEqual(flags_of(self, command),
                                     self.completed_by_bash(script, "bitnet", command, "--"))

    def test_zsh_completes_each_option(self):
        if shutil.which("zsh") is None:
            self.skipTest("there is no zsh; scripts/setup installs it")
        script = self.script("zsh")
        subprocess.run(["zsh", "-n", script], check=True)
        # _arguments itself needs a terminal; this one prints its arguments.
        answer = subprocess.run(
            ["zsh", "-fc", f"compdef() {{ :; }}; _describe() {{ print -l ${{(P)2}}; }}; "
             f"_arguments() {{ print -l -- $@; }}; source '{script}'; "
             "words=(bitnet run --); CURRENT=3; _bitnet"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        for flag in flags_of(self, "run"):
            self.assertRegex(answer.stdout, rf"(?m)\){flag}\[|^\*{flag}\[")
        self.assertIn(":(auto always never)", answer.stdout)

    def test_fish_completes_each_option(self):
        if shutil.which("fish") is None:
            self.skipTest("there is no fish; scripts/setup installs it")
        script = self.script("fish")
        ask = lambda line: {  # noqa: E731
            entry.split("\t")[0] for entry in subprocess.run(
                ["fish", "--no-config", "-c", f"source '{script}'; complete -C '{line}'"],
                check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()}
        self.assertEqual(ask("bitnet "), set(commands(self)))
        self.assertEqual(ask("bitnet run --color "), {"auto", "always", "never"})
        for command in commands(self):
            with self.subTest(command):
                self.assertLessEqual(flags_of(self, command), ask(f"bitnet {command} --"))

    def test_manual_pages_are_well_formed_and_complete(self):
        mandoc = shutil.which("mandoc")
        if mandoc is None:
            self.skipTest("there is no mandoc; scripts/setup installs it")
        for words in ([], ["bitnet.yaml"], *([c] for c in commands(self))):
            with self.subTest(words):
                page = self.ok("man", *words).stdout
                done = subprocess.run([mandoc, "-T", "lint", "-W", "warning"], input=page,
                                      capture_output=True, timeout=60)
                # A page that is generated for every version has no date.
                complaints = [l for l in done.stdout.decode().splitlines() if "missing date" not in l]
                self.assertEqual(complaints, [])
                if words and words != ["bitnet.yaml"]:
                    shown = subprocess.run([mandoc, "-T", "ascii", "-O", "width=200"], input=page,
                                           check=True, capture_output=True, timeout=60).stdout
                    shown = re.sub(rb".\x08", b"", shown).decode()
                    for flag in flags_of(self, words[0]):
                        self.assertIn(flag, shown)

    def test_manual_pages_of_backends(self):
        mandoc = shutil.which("mandoc")
        if mandoc is None:
            self.skipTest("there is no mandoc; scripts/setup installs it")
        source = pathlib.Path(support.SOURCE)
        pages = [source / "host/bitnet-backends.7", *sorted(source.glob("plugins/*/*.7"))]
        for page in pages:
            with self.subTest(page):
                done = subprocess.run([mandoc, "-T", "lint", "-W", "warning", page], capture_output=True,
                                      timeout=60)
                complaints = [l for l in done.stdout.decode().splitlines() if "missing date" not in l]
                self.assertEqual(complaints, [])
                name = page.stem if page.parent.name == "host" else f"bitnet-backend-{page.stem}"
                self.assertIn("\n" + name.replace("-", "\\-") + " \\- ", page.read_text(encoding="utf-8"),
                              "its NAME is not that of the page")

    def test_page_of_settings(self):
        """Every key of it is understood in a config file, and is what no command line alone may say."""
        keys = re.findall(r"^\.TP\n\\fB([a-z0-9\\-]+)\\fR: \\fI.*\n.*\n\.br\nVariable: ([A-Z0-9_]+)",
                          self.ok("man", "bitnet.yaml").text, re.MULTILINE)
        keys = {key.replace("\\-", "-"): variable for key, variable in keys}
        self.assertGreater(len(keys), 40)
        self.assertLessEqual({"ctx-size", "device", "precision", "hugepages", "require-signature"}, set(keys))
        self.assertNotIn("json", keys)
        for key, variable in keys.items():
            self.assertEqual(variable, "BITNET_" + key.upper().replace("-", "_"))
            self.rejected(2, f"'{key}' expects a value", "tokenize", "a", "--config",
                         self.path("one.yaml", f"{key}:\n"))

    def test_unknown_shells_and_commands_are_rejected(self):
        self.rejected(2, "there is one for bash, zsh, fish", "completion", "tcsh")
        self.rejected(2, "did you mean 'bash'", "completion", "bsah")
        self.rejected(2, "expected one shell", "completion")
        self.rejected(2, "did you mean 'run'", "man", "rum")
        self.rejected(2, "expected one command", "man", "run", "chat")


if __name__ == "__main__":
    support.main()
