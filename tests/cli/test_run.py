"""bitnet run: its output on stdout and stderr, and that the same request gives the same text."""

import os
import re
import subprocess

import support

PROMPT = "Once upon a time"
GREEDY = ("--temp", "0")


def chosen_device():
    """Of the report, the first device of the backend that computes."""
    return next(d for b in support.report()["backends"] if b["name"] == support.report()["selected"]
                for d in b["devices"])


@support.needs_backend
class Run(support.Case):
    def generated(self, *words, **more):
        """The text after the prompt, without the line end that run adds."""
        result = self.ok("run", "--no-display-prompt", *words, **more)
        self.assertTrue(result.text.endswith("\n"))
        return result.text[:-1]

    def test_the_story_is_on_stdout_and_all_else_on_stderr(self):
        result = self.ok("run", "-p", PROMPT, "-n", "20", "-s", "1")
        self.assertTrue(result.text.startswith(PROMPT), result)
        self.assertGreater(len(result.text), len(PROMPT) + 10)
        lines = result.stderr.splitlines()
        self.assertRegex(lines[0], r"^requested=auto detected=\[[a-z0-9,-]+\] selected=[a-z0-9-]+$")
        self.assertIn("seed=1", lines)
        self.assertNotIn("requested=", result.text)

    def test_quiet_prints_no_message(self):
        self.assertEqual(self.ok("run", "-q", "-p", PROMPT, "-n", "3").stderr, "")

    def test_each_source_of_a_prompt_gives_the_same_text(self):
        want = self.generated("-p", PROMPT, "-n", "12", *GREEDY)
        model = support.demo_model()
        for words, more, why in [
            (["-m", model, PROMPT], {}, "positional after -m"),
            ([model, PROMPT], {}, "model and prompt as positionals"),
            (["-f", self.path("p.txt", PROMPT + "\n")], {}, "a file; its last line end is dropped"),
            ([], {"stdin": PROMPT.encode()}, "standard input"),
            (["-p", "Once\\x20upon a time"], {}, "escapes are read"),
            (["-p", PROMPT, "--no-escape"], {}, "nothing to escape"),
        ]:
            with self.subTest(why):
                self.assertEqual(self.generated(*words, "-n", "12", *GREEDY, **more), want)
        self.assertNotEqual(self.generated("-p", "Once\\x20upon a time", "--no-escape", "-n", "12",
                                           *GREEDY), want)

    def test_prompt_changes_the_text(self):
        self.assertNotEqual(self.generated("-p", PROMPT, "-n", "30", *GREEDY),
                            self.generated("-p", "The little dog", "-n", "30", *GREEDY))

    def test_json_says_everything(self):
        result = self.ok("run", "--json", "-p", PROMPT, "-n", "16", "-s", "7", "--ignore-eos")
        got = result.json
        self.assertEqual(result.stdout.count(b"\n"), 1)
        self.assertEqual((got["prompt"], got["seed"]), (PROMPT, 7))
        self.assertEqual(len(got["tokens"]["generated"]), 16)
        self.assertEqual(got["stop"], {"reason": "length"})
        self.assertEqual(got["timings"]["prompt_n"], len(got["tokens"]["prompt"]))
        self.assertEqual(got["timings"]["predicted_n"], 16)
        for name in ("prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second"):
            self.assertGreater(got["timings"][name], 0, name)
        self.assertEqual(got["selection"]["requested"], "auto")
        self.assertIn(got["selection"]["selected"], got["selection"]["detected"])
        self.assertGreater(sum(kernel["calls"] for kernel in got["kernels"]), 0)
        self.assertTrue(got["model"]["file"].endswith(".gguf"))
        # The ids are the text.
        back = self.ok("detokenize", *map(str, got["tokens"]["generated"]))
        self.assertEqual(back.text, got["text"])
        self.assertEqual(got["text"], self.generated("-p", PROMPT, "-n", "16", "-s", "7",
                                                     "--ignore-eos"))

    def test_equal_seeds_give_equal_texts(self):
        text = lambda seed: self.generated("-p", PROMPT, "-n", "40", "-s", seed, "--temp", "1.5")
        self.assertEqual(text("1"), text("1"))
        self.assertGreater(len({text(str(seed)) for seed in range(1, 5)}), 1)

    def test_random_seed_is_printed_and_repeats_the_text(self):
        first = self.ok("run", "--json", "-p", PROMPT, "-n", "20").json
        again = self.ok("run", "--json", "-p", PROMPT, "-n", "20", "-s", str(first["seed"])).json
        self.assertEqual(first["text"], again["text"])

    def test_greedy_needs_no_seed(self):
        result = self.ok("run", "-p", PROMPT, "-n", "3", *GREEDY)
        self.assertNotIn("seed=", result.stderr)

    def test_n_0_prints_the_prompt_alone(self):
        self.assertEqual(self.ok("run", "-p", PROMPT, "-n", "0").text, PROMPT + "\n")

    def test_stop_string_is_held_back(self):
        whole = self.generated("-p", PROMPT, "-n", "40", *GREEDY)
        # A stop text that begins and ends inside tokens.
        stop = whole[13:19]
        at = whole.index(stop)
        got = self.ok("run", "--json", "-p", PROMPT, "-n", "40", *GREEDY, "--stop", stop).json
        self.assertEqual(got["text"], whole[:at])
        self.assertEqual(got["stop"], {"reason": "string", "string": stop})
        self.assertEqual(self.generated("-p", PROMPT, "-n", "40", *GREEDY, "-r", "never there",
                                        "-r", stop), whole[:at])

    def test_a_stop_id_ends_the_text(self):
        ids = self.ok("run", "--json", "-p", PROMPT, "-n", "20", *GREEDY).json["tokens"]["generated"]
        got = self.ok("run", "--json", "-p", PROMPT, "-n", "20", *GREEDY,
                      "--stop-id", str(ids[5])).json
        self.assertEqual(got["stop"], {"reason": "token", "token": ids[5]})
        self.assertEqual(got["tokens"]["generated"], ids[:ids.index(ids[5]) + 1])

    def test_a_logit_bias_forbids_and_forces_tokens(self):
        ids = self.ok("run", "--json", "-p", PROMPT, "-n", "1", *GREEDY).json["tokens"]["generated"]
        other = self.ok("run", "--json", "-p", PROMPT, "-n", "1", *GREEDY,
                        "-l", f"{ids[0]}-inf").json["tokens"]["generated"]
        self.assertNotEqual(ids, other)
        forced = self.ok("run", "--json", "-p", PROMPT, "-n", "3", *GREEDY, "--ignore-eos",
                         "-l", "300+1000").json["tokens"]["generated"]
        self.assertEqual(forced, [300, 300, 300])
        self.rejected(2, "99999999", "run", "--json", "-p", PROMPT, "-l", "99999999+1", *GREEDY)

    def test_each_sampler_changes_the_text(self):
        words = ("run", "--json", "-p", PROMPT, "-n", "40", "-s", "5", "--ignore-eos", "--temp", "1.2", "--top-k", "0",
                 "--top-p", "1", "--min-p", "0")
        texts = {self.ok(*words, *more).json["text"] for more in (
            (), ("--top-nsigma", "0.5"), ("--typical", "0.3"), ("--xtc-probability", "1", "--xtc-threshold", "0.05"),
            ("--dynatemp-range", "1", "--dynatemp-exp", "2"), ("--mirostat", "1", "--mirostat-ent", "2"),
            ("--mirostat", "2", "--mirostat-ent", "2", "--mirostat-lr", "0.5"))}
        self.assertEqual(len(texts), 7)
        self.assertEqual(self.ok(*words, "--typical-p", "1", "--top-n-sigma", "-1").json["text"],
                         self.ok(*words).json["text"])
        for words, said in ((("--typical", "2"), "--typical"), (("--mirostat", "3"), "--mirostat"),
                            (("--dry-base", "0.5"), "--dry-base"),
                            (("--dry-multiplier", "1", "--dry-sequence-breaker", "x" * 41), "expected 1 to 40")):
            self.rejected(2, said, "run", "--json", "-p", PROMPT, *words)

    def test_repetitions_end_at_breakers(self):
        def text(*more):
            return self.ok("run", "--json", "-p", "the cat the cat the", "-n", "12", *GREEDY, "--ignore-eos", *more).json["text"]
        dry = ("--dry-multiplier", "50", "--dry-allowed-length", "1", "--dry-penalty-last-n", "-1")
        none = text(*dry, "--dry-sequence-breaker", "none")
        self.assertNotEqual(none, text())
        words = none.split()
        self.assertEqual(len(words), len(set(zip(words, words[1:]))) + 1, "no pair of words comes twice")
        self.assertEqual(text(*dry, "--dry-sequence-breaker", "\\x20", "--dry-sequence-breaker", "e"),
                         text(*dry, "--dry-sequence-breaker", " ", "--dry-sequence-breaker", "e"), "escapes")

    def test_a_full_context_ends_a_text_unless_it_shifts(self):
        words = ("run", "--json", "-p", PROMPT, "-n", "100", "-c", "64", "-s", "1", "--ignore-eos", "-ub", "64")
        full = self.ok(*words).json
        self.assertEqual(full["stop"], {"reason": "context"})
        shifted = self.ok(*words, "--context-shift", "--keep", "4").json
        self.assertEqual((shifted["stop"]["reason"], len(shifted["tokens"]["generated"])), ("length", 100))
        self.assertEqual((shifted["kv"]["window"], shifted["kv"]["keep"]), (64, 4))
        self.assertEqual(shifted["tokens"]["generated"][:40], full["tokens"]["generated"][:40])
        by_window = self.ok("run", "--json", "-p", PROMPT, "-n", "100", "-s", "1", "--ignore-eos", "-ub", "64",
                            "--sliding-window", "64", "--keep", "4").json
        self.assertEqual(by_window["text"], shifted["text"])

    def test_perf_is_on_stderr(self):
        result = self.ok("run", "-p", PROMPT, "-n", "4", "--perf", "-q")
        self.assertRegex(result.stderr, r"prompt \d+ tokens in .* generated \d+ tokens")
        self.assertNotIn("tokens in", result.text)

    def test_each_kv_type_of_the_device_is_used(self):
        for kind in ("f16", "f32", "q8_0", "q4_0"):
            if kind not in chosen_device()["kv_types"]:
                self.rejected(1, f"not as {kind}", "run", "-p", PROMPT, "-n", "4", "-ctv", kind)
                continue
            got = self.ok("run", "--json", "-p", PROMPT, "-n", "4", "-ctk", kind, "-ctv", kind).json
            self.assertEqual((got["kv"]["dtype_k"], got["kv"]["dtype_v"]), (kind, kind))

    def test_the_longest_context_that_free_memory_has_room_for(self):
        words = ("run", "--json", "-p", PROMPT, "-n", "1", *GREEDY)
        if chosen_device()["class"] != "cpu":
            self.assertNotIn("max_context", self.ok(*words).json["kv"])
            return
        # A MiB holds so many tokens whatever else is free; no block of 64 is cut.
        shape = self.ok("inspect", "--json").json["model"]
        token = shape["layers"] * shape["kv_heads"] * shape["head_dim"] * 4  # bytes in f16
        small = self.ok(*words, "--kv-budget", "1").json["kv"]["max_context"]
        self.assertEqual(small, (1 << 20) // (64 * token) * 64)
        self.assertGreater(self.ok(*words).json["kv"]["max_context"], small)
        self.assertGreater(self.ok(*words, "--kv-budget", "1", "-ctk", "q8_0", "-ctv",
                                   "q8_0").json["kv"]["max_context"], small)
        self.assertNotIn("max_context", self.ok(*words, "--sliding-window", "64").json["kv"])
        text = self.ok("run", "-p", PROMPT, "-n", "1", *GREEDY, "--verbose").stderr
        self.assertRegex(text, r"free memory: a context of \d+ tokens")

    def test_verbose_prints_the_placement_of_threads_and_weights(self):
        cpus = sorted(os.sched_getaffinity(0))
        words = ("run", "-p", PROMPT, "-n", "1", *GREEDY, "--verbose", "-t", "2")
        self.assertRegex(self.ok(*words).stderr, r"threads: 2(, kept to NUMA nodes:| on CPUs) [0-9]")
        mask = f"{1 << cpus[-1]:x}"
        self.assertIn(f"threads: 2, kept to CPUs {cpus[-1]}, {cpus[-1]} in this order",
                      self.ok(*words, "-C", mask, "--cpu-strict", "on").stderr)

    def test_verbose_prints_large_pages(self):
        words = ("run", "-p", PROMPT, "-n", "1", *GREEDY, "--verbose", "-t", "2")

        def pages(text):
            return re.search(r"large pages: (\d+) MB of memory, \d+ MB of files", text)
        if not pages(self.ok(*words).stderr):
            self.skipTest("the system counts no large pages")
        small = pages(self.ok(*words, "--device", "cpu", "--hugepages", "off").stderr)
        self.assertIsNotNone(small)
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
            if "[madvise]" in file.read():  # nothing else in the process asks for any
                self.assertEqual(small[1], "0")

    def test_a_wrong_setting_of_large_pages_is_reported(self):
        got = self.bitnet("run", "-p", PROMPT, "-n", "1", "--device", "cpu",
                          env={"BITNET_CPU_HUGEPAGES": "2MB"})
        self.assertEqual(got.code, 4, got)
        self.assertIn("setting hugepages is '2MB'; expected auto or off", got.stderr)

    def test_memory_for_keys_and_values_can_be_bounded(self):
        words = ("run", "--json", "-p", PROMPT, "-n", "4", *GREEDY)
        plain = self.ok(*words).json
        kept = self.ok(*words, "--sliding-window", "64", "--keep", "2", "-ub", "64", "-ctv", "q8_0").json
        self.assertEqual((kept["kv"]["window"], kept["kv"]["keep"]), (64, 2))
        self.assertLess(kept["kv"]["bytes"], plain["kv"]["bytes"])
        budget = self.ok(*words, "--kv-budget", "1", "--kv-eviction", "lfu").json
        self.assertEqual(budget["text"], plain["text"])
        self.assertEqual(budget["kv"]["budget"], 1 << 20)
        self.assertLessEqual(budget["kv"]["bytes"], 1 << 20)
        self.rejected(5, "--kv-budget", "run", "-p", PROMPT, "--kv-budget", "1", "-c", "4096")
        self.rejected(2, "--sliding-window", "run", "-p", PROMPT, "--keep", "4")

    def test_library_errors_name_flags(self):
        for code, part, words in (
                (2, "give --sliding-window too", ("--keep", "4")),
                (5, "use a larger --kv-budget", ("--kv-budget", "1", "-c", "4096")),
                (2, "choose another --ctx-size", ("-c", "9999999")),
        ):
            with self.subTest(part):
                said = self.rejected(code, part, "run", "-p", PROMPT, *words).stderr
                self.assertNotRegex(said, r"\b(n_context|kv_[a-z]+|window_keep|set window)\b")

    def test_system_prompt_makes_a_chat_turn(self):
        plain = self.ok("run", "--json", "-p", "Hello", "-n", "1").json["tokens"]["prompt"]
        words = ("run", "-p", "Hello", "-n", "8", "-sys", "Be kind", *GREEDY)
        chat = self.ok(*words, "--json").json
        self.assertGreater(len(chat["tokens"]["prompt"]), len(plain))
        self.assertEqual(self.ok(*words).text, chat["text"] + "\n", "only the answer is printed")
        self.rejected(2, "template", "run", "--json", "-p", "Hello", "--chat-template", "none-such")

    def test_a_prompt_longer_than_the_context_is_rejected(self):
        result = self.bitnet("run", "-p", "a b c d " * 50, "-c", "64", "-n", "1")
        self.assertEqual((result.code, len(result.errors)), (1, 1), result)
        self.assertIn("64", result.errors[0])

    def test_context_fills_up(self):
        result = self.ok("run", "-p", PROMPT, "-c", "64", "-n", "-1", "--ignore-eos", "-s", "1")
        self.assertIn("context of 64 tokens is full", result.stderr)
        got = self.ok("run", "--json", "-p", PROMPT, "-c", "64", "--ignore-eos").json
        self.assertEqual(got["stop"]["reason"], "context")

    def test_prompt_that_is_no_text(self):
        self.rejected(2, "UTF-8", "run", "--no-display-prompt", "-n", "1", stdin=b"\xff\xfe bad")

    def test_a_closed_pipe_stops_generation(self):
        done = subprocess.Popen([support.PROGRAM, "run", "-p", PROMPT, "-n", "-1", "--ignore-eos",
                                 "-c", "16k"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment(), cwd=self.home)
        done.stdout.read(30)
        done.stdout.close()
        err = done.stderr.read().decode()
        done.stderr.close()
        self.assertEqual(done.wait(support.TIMEOUT_S), 1, err)
        self.assertIsNone(support.SANITIZER.search(err), err)
        self.assertNotIn("bitnet: ", err)

    def test_an_empty_prompt_begins_with_bos(self):
        # The begin-of-sequence token is enough to start from.
        self.assertTrue(self.generated("-p", "", "-n", "5", "--ignore-eos", *GREEDY))

    def test_only_caches_are_written_to_the_home(self):
        self.ok("run", "-p", PROMPT, "-n", "1")
        self.assertEqual(set(os.listdir(self.home)) - {"cache"}, set())


if __name__ == "__main__":
    support.main()
