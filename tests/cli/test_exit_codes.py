"""Every command exits with the codes of docs/reference/exit-codes.md."""

import os
import re
import shutil
import subprocess

import support
from support import PROGRAM, TIMEOUT_S, demo_model, needs_backend, needs_model

with open(os.path.join(support.SOURCE, "docs", "reference", "exit-codes.md"), encoding="utf-8") as page:
    DOCUMENTED = page.read()

NONE, DAMAGED, TAKEN = "no-such-model.gguf", "damaged.gguf", "taken"
NOWHERE = "/no/such/folder/x"
ABSENT = ["--device", "no-such-backend"]
CONFORMANCE = os.path.join(os.path.dirname(PROGRAM), "bitnet-backend-conformance")

# Command: [(code, words, what is wrong)]. Of `words` MODEL is the demo model. Codes that need a machine of
# their own (5, 22, 23, 130) have their tests in test_run, test_lint, test_backends and test_interrupt.
MODEL = object()
COMMON = [(2, ["--no-such-flag"], "a flag that there is none of"),
          (2, ["--color"], "a flag without its value"),
          (2, ["--config", NOWHERE], "a config file that is not there")]
GENERATING = [
    (2, ["-m", MODEL, "-p", "a", "-c", "x"], "a number that is none"),
    (2, ["-m", MODEL, "-p", "a", "--device", "cuda rocm"], "two names without a comma"),
    (2, ["-m", MODEL, "-p", "a", "--tensor-split", "1,x"], "a share that is none"),
    (3, ["-m", NONE, "-p", "a"], "no such model"),
    (3, ["-m", DAMAGED, "-p", "a"], "a damaged model"),
    (4, ["-m", MODEL, "-p", "a", *ABSENT], "a backend that is not installed")]
TABLE = {
    "run": GENERATING + [
        (2, ["-m", MODEL, "-p", "a", "--plan", TAKEN], "no plan"),
        (14, ["-m", MODEL, "-p", "a", "--plan", "other.yaml"], "a plan of another model"),
        (2, ["-m", MODEL, "-f", NOWHERE], "no prompt file"),
        (2, ["-m", MODEL, "-p", "a", "--grammar-file", NOWHERE], "no grammar file"),
        (2, ["-m", MODEL, "-p", "a", "--grammar", "root ::= ("], "a grammar that is none"),
        (9, ["-m", MODEL, "-p", "a", "-n", "2", "--min-tps", "1e8"], "too slow a machine"),
        (10, ["-m", MODEL, "-p", "a", "-n", "2", "--max-rss-mb", "1"], "too much memory"),
        (0, ["-m", MODEL, "-p", "a", "--skip-if-missing", *ABSENT], "a skip"),
        (77, ["-m", MODEL, "-p", "a", "--skip-exit", *ABSENT], "a skip that counts")],
    "chat": GENERATING + [(2, ["-m", MODEL, "--chat-template", NOWHERE, "-p", "a"], "no such chat form")],
    "logits": [(2, ["-p", "a"], "no file to write"), (2, ["-o", "o.npy"], "no text")] + [
        (code, [*words, "-o", "o.npy"], why) for code, words, why in GENERATING if "--tensor-split" not in words],
    "embed": GENERATING + [(2, ["-m", MODEL, "--ids", "x"], "ids that are none")],
    "batch": [(2, ["-m", MODEL], "no files"), (2, ["-m", MODEL, NOWHERE, "o.jsonl"], "no input"),
              (2, ["-m", MODEL, "empty.jsonl", NOWHERE], "an output in no folder"), (2, ["-m", MODEL, "empty.jsonl", TAKEN], "a file that is there"),
              (2, ["-m", MODEL, "empty.jsonl", "o.jsonl", "--shard", "1/1"], "no such part"),
              (3, ["-m", NONE, "empty.jsonl", "o.jsonl"], "no such model"), (3, ["-m", DAMAGED, "empty.jsonl", "o3.jsonl"], "a damaged model"),
              (4, ["-m", MODEL, "empty.jsonl", "o4.jsonl", *ABSENT], "a backend that is not installed"),
              (0, ["-m", MODEL, "empty.jsonl", "o0.jsonl"], "nothing to do")],
    "serve": [(2, ["-m", MODEL, "--port", "0", "-np", "x"], "a number that is none"), (2, [MODEL, MODEL], "two models of one name"),
              (2, ["-m", MODEL, "--host", "0.0.0.0", "--port", "0"], "no key for all of the world"),
              (2, ["-m", MODEL, "--port", "0", "--api-key-file", NOWHERE], "no file of keys"),
              (3, ["-m", NONE, "--port", "0"], "no such model"), (3, ["-m", DAMAGED, "--port", "0"], "a damaged model"),
              (4, ["-m", MODEL, "--port", "0", *ABSENT], "a backend that is not installed")],
    "bench": [(2, ["-m", MODEL, "-p", "x"], "a test that is none"), (2, ["a", "b"], "two models"),
              (3, ["-m", NONE], "no such model"), (3, ["-m", DAMAGED], "a damaged model"),
              (4, ["-m", MODEL, *ABSENT], "a backend that is not installed"),
              (2, ["compare", "a"], "one result"), (2, ["compare", TAKEN, TAKEN], "no results of bench"),
              (2, ["-m", MODEL, "--force"], "nothing that is forced"), (2, ["serve"], "no server"),
              (2, ["serve", "no-url"], "no address"), (1, ["serve", "http://127.0.0.1:1", "-r", "1"], "nothing listens there"),
              (2, ["-m", MODEL, "--report", MODEL], "a page in place of a model"), (77, ["-m", MODEL, "--skip-exit", *ABSENT], "a skip"),
              (4, ["--list", *ABSENT], "kernels of a backend that is not installed"),
              (4, ["--kernel", "x", *ABSENT], "a kernel of a backend that is not installed")],
    "eval": [(2, [], "no measure"), (2, ["frob"], "no such measure"), (2, ["ppl", "a", "b"], "two models"),
             (2, ["ppl"], "no text"), (2, ["ppl", "-f", NOWHERE], "no such text"), (2, ["kld"], "neither saved nor compared"),
             (2, ["kld", "--compare", TAKEN], "no file of logits"), (2, ["choice", "-f", "empty.jsonl"], "no questions"),
             (2, ["ppl", "-m", MODEL, "-f", TAKEN], "a text of less than two chunks"),
             (1, ["kld", "-m", MODEL, "-f", "long.txt", "-c", "8", "--save-logits", NOWHERE], "a folder that is not there"),
             (3, ["ppl", "-m", NONE, "-f", TAKEN], "no such model"), (3, ["ppl", "-m", DAMAGED, "-f", TAKEN], "a damaged model"),
             (4, ["ppl", "-m", MODEL, "-f", TAKEN, *ABSENT], "a backend that is not installed")],
    "tokenize": [(2, ["-m", MODEL, "-f", NOWHERE], "no such file"), (2, ["-m", MODEL, "a", "b"], "two texts"),
                 (3, ["-m", NONE, "a"], "no such model"), (3, ["-m", DAMAGED, "a"], "a damaged model")],
    "detokenize": [(2, ["-m", MODEL, "x"], "ids that are none"), (2, ["-m", MODEL, "99999999"], "no such token"),
                   (3, ["-m", NONE, "1"], "no such model"), (3, ["-m", DAMAGED, "1"], "a damaged model")],
    "inspect": [(2, ["a", "b"], "two files"), (3, ["-m", NONE], "no such model"),
                (3, ["-m", DAMAGED], "not a model at all"), (3, ["-m", "cut.gguf"], "a model that cannot run"),
                (3, ["-m", "cut.gguf", "--json"], "the same in JSON"), (0, ["-m", MODEL], "one that can")],
    "compat-check": [(2, ["a", "b"], "two files"), (3, ["-m", NONE], "no such model"), (3, [DAMAGED], "no model"),
                     (3, ["cut.gguf", "--strict"], "a model that cannot run"), (0, ["-m", MODEL, "--strict"], "one that can")],
    "analyze-library": [(2, [], "no library"), (2, ["a", "b"], "two libraries"), (2, [NOWHERE], "it is not there"),
                        (2, [DAMAGED], "no library at all"), (2, ["--symbols", "-1", "a"], "a number that is none")],
    "verify-receipt": [(2, [], "no receipt"), (2, ["a", "b"], "two receipts"), (2, ["a", "--path", "a"], "one, twice"),
                       (2, [NOWHERE], "it is not there"), (2, [DAMAGED], "no receipt at all"),
                       (2, [TAKEN, "--require-fused", "101"], "more than all")],
    "convert": [(2, ["x"], "one word"), (3, [NONE, "o.gguf"], "no such folder"), (3, ["empty", "o.gguf"], "no model in it"),
                (2, [MODEL, TAKEN], "a file that is there"), (2, [MODEL, "o.gguf", "--type", "i3"], "no such type"),
                (2, [MODEL, NOWHERE], "a folder that is not there"), (3, [MODEL, "o.gguf", "--type", "tl1"], "no such shape")],
    "quantize": [(2, ["x"], "one word"), (3, [NONE, "o.gguf", "i2_s"], "no such model"),
                 (3, [DAMAGED, "o.gguf", "i2_s"], "a damaged model"), (2, [MODEL, TAKEN, "i2_s"], "a file that is there"),
                 (2, [MODEL, "o.gguf", "i3"], "no such type"), (2, [MODEL, NOWHERE, "i2_s"], "a folder that is not there")],
    "backends": [
        (2, ["frob"], "no such subcommand"), (2, ["why", "x"], "a word too many"), (2, ["list", "x"], "a word too many"),
        (2, ["dir", "x"], "a word too many"), (2, ["probe", "x"], "a word too many"), (2, ["info", "a", "b"], "two names"),
        (2, ["why", "--device", "cuda rocm"], "two names without a comma"), (2, ["list", "--device", "a,,b"], "an empty name"),
        (4, ["why", *ABSENT], "the request is not met"), (4, ["why", "--json", *ABSENT], "the same in JSON"),
        (4, ["why", "--device", "none-such,no-such"], "nothing of a list is met"), (4, ["probe", *ABSENT], "nothing to ask"),
        (0, ["why", "--allow-fallback", *ABSENT], "another one may do"), (0, ["why", "--device", "no-such,cpu"], "one of a list"),
        (0, ["list", *ABSENT], "what is there, whatever is asked for"), (0, ["info", *ABSENT], "the same"),
        (0, ["dir", *ABSENT], "the same"), (4, ["info", "no-such-backend"], "no such backend"),
        (2, ["sign"], "no file"), (2, ["sign", "x"], "no key"), (1, ["sign", NOWHERE, "--key", NOWHERE], "neither is there"),
        (2, ["verify"], "no file"), (1, ["verify", NOWHERE], "it is not there")],
    "doctor": [(2, ["x"], "a word too many"), (0, [], "whatever it finds")],
    "preflight": [(2, ["x"], "a word too many"), (2, ["--backend"], "no name"), (1, ["--backend", "none-such"], "no such backend"),
                  (1, ["--backend", "none-such", "--allow-fallback"], "another one in its place"),
                  (0, ["--backend", "cpu"], "it can be used")],
    "parity": [(2, ["x"], "a word too many"),
               (4 if os.path.exists(CONFORMANCE) else 1, ["--backend", "no-such-backend"], "no such backend")],
    "crossval": [(2, [], "no prompts"), (2, ["a", "b", "-p", "a"], "two models"), (2, ["-p", "a", "-o", "sql"], "no such form"),
                 (2, ["--prompts", NOWHERE], "no such file"), (2, ["--prompts", "empty.jsonl"], "no prompts in it"),
                 (2, ["-p", "a", "--min-cosine", "2"], "no cosine"), (3, ["-m", NONE, "-p", "a"], "no such model"),
                 (4, ["-m", MODEL, "-p", "a"], "no other engine"), (4, ["find"], "no other engine")],
    "plan": [(2, ["a", "b"], "two models"), (2, ["-m", MODEL, "--plan", NOWHERE], "no such plan"), (2, ["-m", MODEL, "--plan", TAKEN], "no plan"),
             (2, ["-m", MODEL, "--save", MODEL], "a plan in place of a model"), (1, ["-m", MODEL, "--save", NOWHERE], "a folder that is not there"),
             (3, ["-m", NONE], "no such model"), (3, ["-m", DAMAGED], "a damaged model"),
             (14, ["-m", MODEL, "--plan", "other.yaml"], "a plan of another model"), (4, ["-m", MODEL, *ABSENT], "a backend that is not installed")],
    "version": [(2, ["x"], "a word too many")],
    "completion": [(2, [], "no shell"), (2, ["csh"], "another shell"), (2, ["bash", "zsh"], "two shells")],
    "man": [(2, ["rum"], "no such command"), (2, ["run", "chat"], "two commands")],
    "help": [(2, ["rum"], "no such command"), (2, ["run", "chat"], "two commands")],
}
NEEDS_A_BACKEND = {"--allow-fallback", "no-such,cpu"}
LINT = [(2, [], "no file"), (2, ["--no-such-flag"], "no such flag"), (2, ["--manifest"], "a flag without its value"),
        (1, [NOWHERE], "it cannot be read"), (22, ["taken"], "no plugin"), (0, ["--help"], "its text")]


class ExitCodes(support.Case):
    def setUp(self):
        super().setUp()
        self.path(DAMAGED, b"no model")
        self.path(TAKEN, b"mine")
        self.path("other.yaml", "bitnet-plan: 1\nmodel: {architecture: x, layers: 1, parameters: 1}\n"
                  "parts: [{device: cpu:0, embedding: true, layers: 0, head: true}]\n")
        self.path("empty.jsonl", b"")
        self.path("long.txt", "Once upon a time " * 20)
        os.makedirs(self.path("empty"))
        if demo_model():
            shutil.copy(demo_model(), self.path("cut.gguf"))
            os.truncate(self.path("cut.gguf"), os.path.getsize(demo_model()) - 4096)

    @needs_backend
    def test_each_command_ends_with_its_code(self):
        for command, rows in TABLE.items():
            if command == "parity" and not os.path.exists(CONFORMANCE):
                continue
            for code, words, why in [*COMMON, *rows]:
                words = [demo_model() if w is MODEL else w for w in words]
                with self.subTest(command, words=words, why=why):
                    done = self.bitnet(command, *words)
                    self.assertEqual(done.code, code, done)
                    if code and not done.stdout:
                        self.assertEqual(len(done.errors), 1, done)

    def test_the_table_has_every_command(self):
        listed = re.findall(r"^  ([a-z][a-z-]*)  ", self.ok("help").text, re.MULTILINE)
        self.assertEqual(sorted(listed), sorted(TABLE))

    def test_the_page_has_every_code(self):
        """The program's own list of codes, and the page's."""
        with open(os.path.join(support.SOURCE, "host/src/basic/result.hpp"), encoding="utf-8") as file:
            ours = re.findall(r"inline constexpr int \w+ = (\d+);", file.read())
        self.assertEqual(re.findall(r"^\| (\d+) \|", DOCUMENTED, re.MULTILINE), ours)

    def test_output_that_cannot_be_written(self):
        for words in (["help"], ["version"], ["man"], ["completion", "bash"], ["backends", "dir"], ["backends", "list"]):
            with self.subTest(words), open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, cwd=self.home,
                                      env=self.environment(), timeout=TIMEOUT_S, check=False)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn(b"No space left", done.stderr)

    def test_lint_ends_with_its_code(self):
        lint = os.path.join(os.path.dirname(PROGRAM), "bitnet-backend-lint")
        if not os.path.exists(lint):
            self.skipTest("bitnet-backend-lint is not built")
        for code, words, why in LINT:
            with self.subTest(why):
                done = subprocess.run([lint, *words], capture_output=True, cwd=self.home, env=self.environment(),
                                      timeout=TIMEOUT_S, check=False)
                self.assertEqual(done.returncode, code, done)

    @needs_model
    def test_inspect_prints_its_report_all_the_same(self):
        done = self.bitnet("inspect", "-m", "cut.gguf", "--json")
        self.assertEqual((done.code, done.errors), (3, []), done)
        self.assertTrue(done.json["problems"])
        self.assertIn("This model cannot run:", self.bitnet("inspect", "-m", "cut.gguf").text)

    @needs_backend
    def test_why_prints_its_report_all_the_same(self):
        done = self.bitnet("backends", "why", "--device", "cuda", "--json")
        if done.json["selected"] not in (None, "", "none"):
            self.skipTest("there is a cuda")
        self.assertEqual((done.code, done.errors), (4, []), done)
        self.assertIn("cuda", done.json["problem"])


class Lists(support.Case):
    """How options with several values are split, on the command line, in variables and in config files."""

    @needs_backend
    def test_devices_need_commas_between_them(self):
        for text, code, why in (("cpu", 0, "one"), (" cpu ", 0, "blanks around it"), ("no-such , cpu", 0, "blanks around the comma"),
                                ("no-such cpu", 2, "a blank is no comma"), ("cpu,", 2, "an empty item")):
            with self.subTest(why):
                self.assertEqual(self.bitnet("backends", "why", "--device", text).code, code)
                self.assertEqual(self.bitnet("backends", "why", env={"BITNET_DEVICE": text}).code, code)
                self.path("config/bitnet/bitnet.yaml", f"device: '{text}'\n")
                self.assertEqual(self.bitnet("backends", "why").code, code)
                os.remove(self.path("config/bitnet/bitnet.yaml"))
        done = self.rejected(2, "'cuda rocm' is no backend name", "backends", "why", "--device", "cuda rocm")
        self.assertIn("or a comma list", done.stderr)

    def test_fakes_need_commas_between_them(self):
        """BITNET_GPU_FAKE had "cuda rocm" for one backend, cudarocm."""
        words = ("backends", "why", "--allow-fake")
        self.rejected(2, "'cuda rocm' is no backend name", *words, env={"BITNET_GPU_FAKE": "cuda rocm"})
        listed = self.bitnet("backends", "list", "--allow-fake", env={"BITNET_GPU_FAKE": " one , two:2"}).text
        self.assertIn("two:1", listed)
        self.assertNotIn("onetwo", listed)

    def test_allowed_backends_need_commas_between_them(self):
        self.rejected(2, "has 'cpu cuda'", "backends", "why", "--allow-backends", "cpu cuda")

    @needs_model
    def test_numbers_need_commas_between_them(self):
        self.rejected(2, "found '3 1'", "run", "-p", "a", "--tensor-split", "3 1")
        self.rejected(2, "found '8 16'", "bench", "-p", "8 16")
        self.rejected(2, "found '1x2 3x4'", "bench", "--kernel", "x", "--shape", "1x2 3x4")

    @needs_backend
    def test_texts_in_variables_stay_whole(self):
        """A stop text as people write them, "User:", lost its colon."""
        words = ("run", "-p", "Once upon a time", "-n", "24", "--temp", "0")
        whole = self.ok(*words).text
        self.assertIn(" was a", whole)
        stopped = self.ok(*words, "-r", " was a").text
        self.assertNotEqual(stopped, whole)
        self.assertEqual(self.ok(*words, env={"BITNET_REVERSE_PROMPT": " was a"}).text, stopped)
        self.assertEqual(self.ok(*words, env={"BITNET_REVERSE_PROMPT": "there: was a"}).text, whole, "no list of two")
        self.path("config/bitnet/bitnet.yaml", "reverse-prompt: ['never: this', ' was a']\n")
        self.assertEqual(self.ok(*words).text, stopped)

    @needs_backend
    def test_ids_and_biases_in_variables(self):
        words = ("run", "-p", "Once upon a time", "-n", "8", "--temp", "0", "--seed", "1")
        ids = self.ok("tokenize", " there was").text.split()
        by_flags = self.ok(*words, *(w for i in ids for w in ("-l", f"{i}-inf"))).text
        self.assertEqual(self.ok(*words, env={"BITNET_LOGIT_BIAS": ", ".join(f"{i}-inf" for i in ids)}).text, by_flags)
        by_flags = self.ok(*words, *(w for i in ids for w in ("--stop-id", i))).text
        self.assertEqual(self.ok(*words, env={"BITNET_STOP_ID": " ".join(ids)}).text, by_flags)

    def test_folders_in_variables_are_listed_first(self):
        if os.geteuid() == 0:
            self.skipTest("root does not search folders of a variable")
        found = self.bitnet("backends", "dir", env={"BITNET_BACKEND_DIR": "/no/a b:/no/c"}).text.split("\n")
        self.assertEqual(found[:2], ["/no/a b", "/no/c"])


if __name__ == "__main__":
    support.main()
