"""Ranges that the program on the cuda backend gives to a profiler, one that tests bring."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # pylint: disable=wrong-import-position

PROFILER = os.environ["BITNET_TEST_PROFILER_LIBRARY"]
PROMPT = "Once upon a time"


class Ranges(support.Case):
    def setUp(self):
        super().setUp()
        if not support.demo_model():
            self.skipTest("models/ holds no TinyTales*.gguf")
        self.file = self.path("ranges")

    def run_with(self, library, n=4, **more):
        env = {"BITNET_TEST_RANGES": self.file, "NVTX_INJECTION64_PATH": library, **more}
        return self.ok("run", "--device", "cuda", "--temp", "0", "-n", str(n), "--json", "-p", PROMPT, env=env)

    def log_lines(self):
        """(process, thread, words) of each line."""
        if not os.path.exists(self.file):
            return []
        with open(self.file, encoding="utf-8") as f:
            return [tuple(line.rstrip("\n").split(" ", 2)) for line in f]

    def paths(self):
        """Each range with those around it, checking that what was begun last ends first."""
        open_now, found = {}, []
        for process, thread, words in self.log_lines():
            around = open_now.setdefault((process, thread), [])
            if words.startswith("begin "):
                around.append(words.removeprefix("begin "))
                found.append(tuple(around))
            elif words == "end":
                self.assertTrue(around, "an end without a begin")
                around.pop()
            else:
                self.assertEqual((words, around), ("attached", []))
        self.assertEqual([names for names in open_now.values() if names], [], "all have ended")
        return found

    def test_steps_and_what_is_in_them(self):
        self.run_with(PROFILER)
        paths = self.paths()
        outer = [path[0] for path in paths if len(path) == 1]
        self.assertEqual(outer[0], "open Stand-in (no GPU)")
        self.assertEqual(outer.count("prepare 1 tokens, 1 outputs"), 1)
        self.assertEqual(len([name for name in outer if re.fullmatch(r"upload blk\.\d\.attn_q\.weight, \d+ bytes", name)]), 3)
        steps = [name for name in outer if name.startswith("step ")]
        alone = "step 1 tokens, 1 sequences, 1 outputs"
        self.assertRegex(steps[0], r"^step \d+ tokens, 1 sequences, 1 outputs$")
        self.assertNotEqual(steps[0], alone, "the prompt is one step")
        self.assertEqual(steps[1:], [alone] * 3, "and the fourth token ends the text")
        inner = [path[1:] for path in paths if path[0].startswith("step ")]
        self.assertEqual(inner.count(("submit, largest logits",)), 4)
        self.assertEqual(outer.count("wait"), 4)

    def test_one_process_attaches_and_generates_the_same(self):
        with_tool, without = self.run_with(PROFILER).json, self.run_with(None).json
        self.assertEqual(with_tool["tokens"], without["tokens"])
        attached = [line for line in self.log_lines() if line[2] == "attached"]
        self.assertEqual(len(attached), 1, "not the child that probes, and once")
        self.assertEqual(len({line[0] for line in self.log_lines()}), 1)

    def test_without_the_variable_nothing_is_noted(self):
        for library in (None, ""):
            with self.subTest(library):
                self.assertNotIn("NVTX", self.run_with(library).stderr)
                self.assertEqual(self.log_lines(), [])

    def test_a_library_that_is_not_a_tool_is_reported(self):
        for library, mode in ((self.path("absent.so"), ""), ("libm.so.6", ""), (self.path("text.so", "no library"), ""),
                              (PROFILER, "refuse"), (PROFILER, "no-domains")):
            with self.subTest(library=library, mode=mode):
                result = self.run_with(library, n=1, BITNET_TEST_PROFILER=mode)
                self.assertIn(f"NVTX_INJECTION64_PATH is '{library}', which is not the library of a tool", result.stderr)
                self.assertEqual([line for line in self.log_lines() if line[2] != "attached"], [])


if __name__ == "__main__":
    support.main()
