"""Logits: their shape, and that threads, batches and instruction sets do not change them."""

import os
import re
import struct

from divergence import read_npy
import support

PROMPT = "Once upon a time"
N_GREEDY = 200


class Greedy(support.Case):
    def greedy(self, *words, **more):
        """(all ids, text) of N_GREEDY greedy tokens."""
        got = self.ok("run", "--json", "-p", PROMPT, "-n", str(N_GREEDY), "--temp", "0",
                      "--ignore-eos", *words, **more).json
        self.assertEqual(len(got["tokens"]["generated"]), N_GREEDY)
        return got["tokens"]["prompt"] + got["tokens"]["generated"], got["text"]


@support.needs_backend
class Logits(Greedy):
    def logits(self, *words, **more):
        file = self.path("o.npy")
        result = self.ok("logits", "-o", file, *words, **more)
        self.assertEqual(result.stdout, b"")
        with open(file, "rb") as f:
            return read_npy(f.read())

    def test_arrays_have_the_shape_of_what_was_asked(self):
        n_vocab = self.ok("run", "--json", "-p", "a", "-n", "0").json["model"]["n_vocab"]
        shape, last = self.logits("--ids", "1 5 9")
        self.assertEqual((shape, len(last)), ((n_vocab,), 4 * n_vocab))
        shape, rows = self.logits("--ids", "1,5,9", "--all")
        self.assertEqual((shape, len(rows)), ((3, n_vocab), 12 * n_vocab))
        self.assertEqual(rows[-4 * n_vocab:], last)

    def test_text_and_ids_agree(self):
        ids = self.ok("run", "--json", "-p", PROMPT, "-n", "0").json["tokens"]["prompt"]
        want = self.logits("--ids", " ".join(map(str, ids)), "--all")
        self.assertEqual(self.logits("-p", PROMPT, "--all"), want)
        self.assertEqual(self.logits("-f", self.path("p.txt", PROMPT), "--all"), want)

    def test_best_logit_is_the_greedy_token(self):
        token = self.ok("run", "--json", "-p", PROMPT, "-n", "1", "--temp",
                        "0").json["tokens"]["generated"][0]
        _, row = self.logits("-p", PROMPT)
        values = struct.unpack(f"<{len(row) // 4}f", row)
        self.assertEqual(values.index(max(values)), token)

    def test_standard_output_has_the_same_array(self):
        want = self.logits("-p", PROMPT)
        self.assertEqual(read_npy(self.ok("logits", "-p", PROMPT, "-o", "-").stdout), want)

    def test_old_file_survives_a_failure(self):
        file = self.path("o.npy", b"old")
        self.rejected(2, "vocabulary", "logits", "--ids", "1 99999999", "-o", file)
        with open(file, "rb") as f:
            self.assertEqual(f.read(), b"old")
        self.assertEqual(set(os.listdir(self.home)) - {"cache"}, {"o.npy"})

    def test_wrong_command_lines_are_rejected(self):
        out = self.path("o.npy")
        self.rejected(2, "token ids", "logits", "--ids", "1 x", "-o", out)
        self.rejected(2, "no tokens", "logits", "--ids", "", "-o", out)
        self.rejected(2, "either", "logits", "--ids", "1", "-p", "a", "-o", out)
        self.rejected(2, "needs a text", "logits", "-o", out)
        self.rejected(1, "No such file", "logits", "-p", "a", "-o", self.path("no/folder.npy"))
        self.rejected(1, "context of 64; use a larger -c", "logits", "-c", "64", "--ids", "1 " * 65, "-o", out)
        self.assertFalse(os.path.exists(out))

    def test_one_and_two_threads_give_the_same_bits(self):
        one, two = self.greedy("-t", "1"), self.greedy("-t", "2")
        self.assertEqual(one, two)
        ids = " ".join(map(str, one[0]))
        for batch in ("512", "1"):  # computed as a prompt, and token by token
            with self.subTest(batch=batch):
                self.assertEqual(self.logits("--ids", ids, "--all", "-t", "1", "-b", batch),
                                 self.logits("--ids", ids, "--all", "-t", "2", "-b", batch))

    def test_where_and_how_threads_wait_changes_nothing(self):
        want = self.greedy()
        cpus = sorted(os.sched_getaffinity(0))
        one, all_ = (f"{sum(1 << c for c in some):x}" for some in (cpus[:1], cpus))
        for words, env, why in (
                (("--poll", "0"), None, "threads that sleep at once"),
                (("--poll", "100"), None, "threads that spin long"),
                (("-C", one), None, "one CPU, and one thread for it"),
                (("-C", one, "-t", "3"), None, "more threads than CPUs"),
                (("--cpu-mask", "0x" + all_), None, "all CPUs"),
                (("--cpu-strict", "on"), None, "a CPU for each thread"),
                (("--cpu-strict", "1", "-C", one, "-t", "3"), None, "one CPU for three threads"),
                (("--hugepages", "off"), None, "small pages"),
                ((), {"BITNET_CPU_STRICT": "on", "BITNET_HUGEPAGES": "off"}, "both"),
                ((), {"BITNET_POLL": "0", "BITNET_CPU_MASK": one}, "the environment")):
            with self.subTest(why):
                self.assertEqual(self.greedy(*words, env=env), want)

    def test_a_mask_of_one_cpu_makes_one_thread(self):
        mask = f"{1 << min(os.sched_getaffinity(0)):x}"
        report = self.ok("bench", "-p", "2", "-n", "0", "-r", "1", "--ceiling-mb", "0", "-o", "json",
                         "-C", mask).json
        self.assertEqual(report[0]["n_threads"], 1)

    def test_batches_give_the_same_bits_when_deterministic(self):
        ids = " ".join(map(str, self.greedy()[0]))
        want = self.logits("--ids", ids, "--all", "--deterministic")
        for batch, why in (("7", "chunks that fit nothing"), ("64", "chunks of a KV block"),
                           ("1", "token by token")):
            with self.subTest(why):
                self.assertEqual(self.logits("--ids", ids, "--all", "--deterministic", "-b", batch),
                                 want)

    def test_chunked_prompts_continue_the_same(self):
        words = ("run", "-p", PROMPT * 8, "-n", "40", "--temp", "0", "--deterministic")
        want = self.ok(*words).stdout
        for batch in ("1", "5"):
            self.assertEqual(self.ok(*words, "-b", batch).stdout, want)
            self.assertEqual(self.ok(*words, "-ub", batch).stdout, want)


@support.needs_backend
class InstructionSets(Greedy):
    def test_each_instruction_set_writes_the_same_text(self):
        if support.report()["selected"] != "cpu":
            self.skipTest("the cpu backend is not the one selected")

        def info(form):
            return str(self.ok("backends", "info", "cpu", "--json", env={"BITNET_CPU_ISA": form}).json)

        # An unknown name of a form makes the report list the existing ones.
        named = re.search(r"set BITNET_CPU_ISA to one of: ([a-z0-9, -]*[a-z0-9])", info("none"))
        forms = [form for form in named.group(1).split(", ") if "BN-OK" in info(form)]
        if len(forms) < 2:
            self.skipTest("this CPU has only the scalar form")
        texts = {}
        for form in forms:
            env = {"BITNET_CPU_ISA": form}
            self.assertIn(form, info(form), "the report names the form that was asked for")
            texts[form] = self.greedy("-dev", "cpu", env=env)
        self.assertEqual(len(set(text for _, text in texts.values())), 1, texts)


if __name__ == "__main__":
    support.main()
