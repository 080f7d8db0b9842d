"""`--trace FILE` of run, bench, chat, batch and serve: the file is valid for Perfetto, also after a kill."""

import json
import os
import signal
import subprocess
import time

import support
from support import needs_backend
from test_serve import Server

SPANS = {"step", "submit", "wait", "sample"}


def events_of(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def named(events, name, process=1):
    return [e for e in events if e["name"] == name and e["pid"] == process and e["ph"] == "X"]


@needs_backend
class Trace(support.Case):
    def check(self, path):
        """What holds for every whole trace; returns its events."""
        events = events_of(path)
        self.assertEqual(events[-1]["name"], "end of trace")
        self.assertEqual(events[-1]["args"]["dropped_events"], 0)
        self.assertEqual(events[-1]["args"]["events"], len(events) - 1)
        ends = {}  # of each track: spans lie in one another, or behind one another
        for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
            self.assertIn(e["name"], SPANS)
            open_until = ends.setdefault((e["pid"], e["tid"]), [])
            while open_until and open_until[-1] <= e["ts"] + 0.0005:
                open_until.pop()
            if open_until:
                self.assertLessEqual(e["ts"] + e["dur"], open_until[-1] + 0.001, e)
            open_until.append(e["ts"] + e["dur"])
        kernels = [e for e in events if e.get("cat") == "kernel"]
        self.assertTrue(kernels)
        for e in kernels:  # a sum has no duration
            self.assertEqual((e["ph"], e["args"]["sum_of"]), ("i", "step"))
            self.assertNotIn("dur", e)
            self.assertGreater(e["args"]["calls"], 0)
        tracks = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        self.assertLessEqual({(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}, tracks)
        return events

    def test_a_run_has_its_steps_and_kernels(self):
        path = self.path("t.json")
        done = self.ok("run", "-p", "Once upon a time", "-n", "6", "--temp", "0", "--json", "--perf", "--trace", path)
        events = self.check(path)
        steps = named(events, "step")
        self.assertEqual({e["args"]["ended"] for e in steps}, {"ok"})
        self.assertEqual({e["args"]["sequences"] for e in steps}, {1})
        self.assertEqual(len(named(events, "sample")), 6)
        self.assertEqual(len(named(events, "step", 2)), len(steps))
        counted, traced = {}, {}
        for k in done.json["kernels"]:
            if k["calls"]:
                counted[k["id"]] = (k["calls"], k.get("time_ns", 0))
        for e in events:
            if e.get("cat") == "kernel":
                calls, ns = traced.get(e["name"], (0, 0))
                traced[e["name"]] = (calls + e["args"]["calls"], ns + e["args"].get("time_ns", 0))
        self.assertEqual(traced, counted)

    def test_the_text_is_the_same(self):
        words = ("run", "-q", "-p", "Once upon a time", "-n", "12", "--temp", "0")
        self.assertEqual(self.ok(*words, "--trace", self.path("t.json")).text, self.ok(*words).text)

    def test_chat_bench_and_batch_have_one(self):
        requests = self.path("in.jsonl", json.dumps(
            {"custom_id": "a", "method": "POST", "url": "/v1/completions",
             "body": {"prompt": "Once", "max_tokens": 3}}) + "\n")
        for words, stdin in ((("chat", "-n", "4"), b"Hello\n"),
                             (("bench", "-p", "8", "-n", "4", "-r", "1"), b""),
                             (("batch", requests, self.path("out.jsonl")), b"")):
            with self.subTest(words[0]):
                path = self.path(words[0] + ".json")
                self.ok(*words, "--trace", path, stdin=stdin)
                self.assertTrue(named(self.check(path), "step"))

    def test_a_server_has_one(self):
        path = self.path("t.json")
        server = Server(self.home, "--trace", path)
        self.addCleanup(server.kill)
        self.assertTrue(server.address, server.lines)
        server.post("/v1/completions", prompt="Once", max_tokens=4)
        server.signal(signal.SIGTERM)
        code, lines = server.end()
        self.assertEqual(code, 0, lines)
        self.assertTrue(named(self.check(path), "sample"))

    def test_a_trace_is_readable_after_a_kill(self):
        path = self.path("t.json")
        with subprocess.Popen([support.PROGRAM, "run", "-q", "-p", "Once", "-n", "100000", "--ignore-eos", "--trace",
                               path], cwd=self.home, env=self.environment(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as program:
            end = time.monotonic() + support.TIMEOUT_S
            while time.monotonic() < end and (not os.path.exists(path) or os.path.getsize(path) < 100000):
                time.sleep(0.05)
            program.kill()
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.assertGreater(len(json.loads(text + "\n]")), 100)

    def test_a_full_trace_counts_dropped_events(self):
        path = self.path("t.json")
        self.ok("bench", "-p", "8", "-n", "256", "-r", "4", "--trace", path, "--trace-size", "1")
        self.assertLessEqual(os.path.getsize(path), 1 << 20)
        events = events_of(path)
        self.assertGreater(events[-1]["args"]["dropped_events"], 0)
        self.assertIn("events are dropped from here on", [e["name"] for e in events])

    def test_a_trace_does_not_replace_other_files(self):
        path = self.path("model.gguf", b"GGUF of worth")
        self.rejected(2, "is no trace", "run", "-p", "a", "-n", "1", "--trace", path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"GGUF of worth")
        path = self.path("t.json")
        for _ in range(2):
            self.ok("run", "-q", "-p", "a", "-n", "1", "--trace", path)
        self.check(path)

    def test_a_full_disk_is_reported(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        self.rejected(2, "no regular file", "run", "-p", "a", "-n", "1", "--trace", "/dev/full")


if __name__ == "__main__":
    support.main()
