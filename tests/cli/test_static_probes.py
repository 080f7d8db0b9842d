"""Static probes (USDT) of the library, as gdb reads them: their values are those that the program reports."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import support

NAMES = ("sequence_admitted", "sequence_ended", "step_begin", "step_end")
SCRIPT = """
set pagination off
set confirm off
set breakpoint pending on
handle SIGUSR1 SIGPIPE nostop noprint
{breaks}
{more}
run
"""
BREAK = """
break -probe-stap bitnet:{name}
commands
silent
printf "\\nprobe {name} %ld %ld %ld\\n", (long)$_probe_arg0, (long)$_probe_arg1, (long)$_probe_arg2
continue
end
"""
# The sixth step ends the program as Ctrl-C does.
INTERRUPT = """
handle SIGINT nostop noprint pass
break -probe-stap bitnet:step_begin
ignore $bpnum 5
commands
silent
disable $interrupting
signal SIGINT
end
set $interrupting = $bpnum
"""
CANCELLED = 10  # BITNET_CANCELLED of base.h


def library():
    folder = os.path.join(os.path.dirname(os.path.realpath(support.PROGRAM)), "..", "lib")
    return os.path.realpath(os.path.join(folder, "libbitnet.so"))


@support.needs_backend
class StaticProbes(support.Case):
    def setUp(self):
        super().setUp()
        # Every probe leaves a note of this owner in the file.
        if b"stapsdt\0" not in pathlib.Path(library()).read_bytes():
            self.skipTest("libbitnet was built without sys/sdt.h (systemtap-sdt-dev)")
        if not shutil.which("gdb"):
            self.skipTest("gdb is not installed")

    def seen(self, *args, names=NAMES, more="", ended="exited normally"):
        """[(name, [three numbers])] in the order in which they came, and what the program printed."""
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "probes.gdb")
            with open(script, "w") as file:
                file.write(SCRIPT.format(breaks="".join(BREAK.format(name=n) for n in names), more=more))
            out = os.path.join(folder, "out")
            with open(out, "w") as to:
                got = subprocess.run(["gdb", "-nx", "-q", "-batch", "-x", script, "--args", support.PROGRAM, *args],
                                     stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT, env=self.environment(),
                                     timeout=support.TIMEOUT_S)
            text = pathlib.Path(out).read_text(errors="replace")
        if "ptrace: Operation not permitted" in text:
            self.skipTest("processes may not be traced here")
        self.assertEqual(got.returncode, 0, text)
        self.assertIn(ended, text)
        found = re.findall(r"^probe (\w+) (-?\d+) (-?\d+) (-?\d+)$", text, re.M)
        return [(name, [int(n) for n in numbers]) for name, *numbers in found], text

    def test_probes_fire_for_steps_of_a_session(self):
        report = self.ok("run", "-p", "Once upon a time", "-n", "4", "--temp", "0", "--json", "--device", "cpu").json
        probes, text = self.seen("run", "-p", "Once upon a time", "-n", "4", "--temp", "0", "--device", "cpu", "-q")
        begins = [numbers for name, numbers in probes if name == "step_begin"]
        ends = [numbers for name, numbers in probes if name == "step_end"]
        self.assertEqual(len(begins), len(ends), text)
        for begin, end in zip(begins, ends):
            self.assertEqual(end, [*begin[:2], 0], "sequences, tokens and the status")
            self.assertEqual(begin[0], 1)
        n_prompt = len(report["tokens"]["prompt"])
        # The last token that is generated is not computed.
        self.assertEqual(sum(b[1] for b in begins), n_prompt + 3, text)
        self.assertEqual(sum(b[2] for b in begins), 4, "a row of logits for each token")

    def requests(self, max_tokens):
        body = {"prompt": "Once upon a time", "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
        return self.path("in.jsonl", "".join(
            json.dumps({"custom_id": name, "method": "POST", "url": "/v1/completions", "body": body}) + "\n"
            for name in ("a", "b")))

    def test_sequences_of_a_batch(self):
        target = self.path("out.jsonl")
        probes, text = self.seen("batch", self.requests(3), target, "--device", "cpu")
        lines = pathlib.Path(target).read_text().splitlines()
        answers = [json.loads(line)["response"]["body"]["usage"] for line in lines]
        admitted = {n[0]: n[1:] for name, n in probes if name == "sequence_admitted"}
        ended = {n[0]: n[1:] for name, n in probes if name == "sequence_ended"}
        self.assertEqual(len(admitted), 2, text)
        self.assertEqual(set(admitted), set(ended))
        for number, (tokens, _) in admitted.items():
            self.assertEqual(tokens, answers[0]["prompt_tokens"])
            self.assertEqual(ended[number], [answers[0]["total_tokens"], 0])

    def test_sequences_that_are_cancelled(self):
        probes, text = self.seen("batch", self.requests(300), self.path("out.jsonl"), "--device", "cpu",
                                 names=("sequence_ended",), more=INTERRUPT, ended="exited with code 0202")
        self.assertEqual(len({numbers[0] for _, numbers in probes}), 2, text)
        self.assertEqual([numbers[2] for _, numbers in probes], [CANCELLED, CANCELLED], text)


if __name__ == "__main__":
    support.main()
