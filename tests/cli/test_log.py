"""The log: files, their rotation, JSON lines, systemd's journal."""

import json
import os
import re
import resource
import signal
import subprocess
import sys

import support

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
TEXT = re.compile(rf"^{TIME} (error|warning|info|debug|trace) +\[\d+\] \S.*$")

# A stand-in for the journal: /run is an empty folder of this process and its children, and has the socket
# to which libsystemd sends if the test requests it. Prints the exit code, stderr and datagrams.
JOURNAL = """
import json, os, socket, subprocess, sys
listens, program, *words = sys.argv[1:]
to = None
if listens == "yes":
    os.makedirs("/run/systemd/journal")
    to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    to.bind("/run/systemd/journal/socket")
    to.setblocking(False)
done = subprocess.run([program, *words], capture_output=True)
got = []
while to is not None:
    try:
        got.append(to.recv(65536).decode())
    except BlockingIOError:
        break
print(json.dumps({"code": done.returncode, "stderr": done.stderr.decode(), "got": got}))
"""


class Log(support.Case):
    def lines(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read().splitlines()

    def test_text_beside_what_is_printed(self):
        words = ("inspect", "-m", "absent.gguf")
        plain = self.rejected(3, "absent.gguf", *words)
        logged = self.rejected(3, "absent.gguf", *words, "--log-file", "log.txt")
        self.assertEqual(logged.stderr, plain.stderr, "what is printed stays")
        lines = self.lines("log.txt")
        for line in lines:
            self.assertRegex(line, TEXT)
        self.assertRegex(lines[0], r" info +\[\d+\] bitnet \S+ begins: inspect$")
        self.assertRegex(lines[1], r" error +\[\d+\] model file 'absent.gguf' does not exist")
        self.assertRegex(lines[-1], r" info +\[\d+\] ends with exit code 3$")

    def test_json_lines_are_ascii_with_four_members(self):
        self.rejected(3, "absent", "inspect", "-m", "absent\u00e4\x1b\n.gguf", "--log-file", "log.json",
                     "--log-format", "json")
        for line in self.lines("log.json"):
            self.assertTrue(line.isascii(), line)
            one = json.loads(line)
            self.assertEqual(sorted(one), ["level", "message", "pid", "time"])
            self.assertRegex(one["time"], f"^{TIME}$")
        self.assertEqual([json.loads(line)["level"] for line in self.lines("log.json")],
                         ["info", "error", "info"])
        self.assertIn("absent\u00e4", json.loads(self.lines("log.json")[1])["message"])

    def test_names_forge_no_lines(self):
        forged = "x\n2026-01-01T00:00:00.000000Z error   [1] forged"
        for form in ("text", "json"):
            self.bitnet("inspect", "-m", forged, "--log-file", form, "--log-format", form)
            self.assertEqual(len(self.lines(form)), 3, self.lines(form))

    def test_in_place_of_what_is_printed(self):
        result = self.bitnet("inspect", "-m", "absent.gguf", "--log-file", "-", "--log-format", "json")
        self.assertEqual(result.code, 3)
        self.assertEqual([json.loads(line)["level"] for line in result.stderr.splitlines()],
                         ["info", "error", "info"])
        self.assertEqual(os.listdir(self.home), [], "no file of the name -")

    def test_quiet_is_of_the_terminal(self):
        self.ok("version", "-q", "--log-file", "all")
        self.assertEqual(len(self.lines("all")), 2)
        self.ok("version", "-v", "--log-file", "errors", "--log-level", "1")
        self.assertEqual(self.lines("errors"), [])

    @support.needs_backend
    def test_events_of_the_library_are_logged(self):
        words = ("run", "-p", "Once", "-n", "1", "--temp", "0")
        plain = self.ok(*words)
        logged = self.ok(*words, "--log-file", "log.txt")
        self.assertEqual(logged.text, plain.text)
        self.assertEqual(re.sub("[0-9.]+", "", logged.stderr), re.sub("[0-9.]+", "", plain.stderr))
        levels = {TEXT.match(line)[1] for line in self.lines("log.txt")}
        self.assertTrue({"info", "debug"} <= levels, levels)

    def test_from_files_and_variables(self):
        config = self.path("c.yaml", f"log-file: {self.path('log.txt')}\nlog-level: 3\n")
        self.ok("version", "--config", config, env={"BITNET_LOG_FORMAT": "json"})
        self.assertEqual(len([json.loads(line) for line in self.lines("log.txt")]), 2)

    def test_root_ignores_the_log_file_variable(self):
        for name in ("BITNET_LOG_FILE", "LLAMA_LOG_FILE"):
            file = self.path(name)
            result = self.ok("version", env={name: file})
            if os.geteuid() == 0:
                self.assertIn(f"'log-file' of {name} is ignored, as root does not let the user's places "
                              "decide which file is written", result.stderr)
            self.assertEqual(os.path.exists(file), os.geteuid() != 0)

    def test_rotation_cuts_no_line(self):
        for _ in range(60):
            self.ok("version", "--log-file", "log.txt", "--log-rotate", "1K,2")
        names = sorted(name for name in os.listdir(self.home) if name.startswith("log"))
        self.assertEqual(names, ["log.1.txt", "log.2.txt", "log.txt"])
        for name in names:
            self.assertLessEqual(os.path.getsize(self.path(name)), 1024)
            for line in self.lines(name):
                self.assertRegex(line, TEXT, "no line is cut")

    def test_invalid_log_options_are_rejected(self):
        os.mkfifo(self.path("pipe"))
        os.mkdir(self.path("folder"))
        for code, message, words, why in (
                (1, "no regular file", ("--log-file", "pipe"), "it would wait for a reader"),
                (1, "no regular file", ("--log-file", "folder"), "a folder"),
                (1, "there is no folder", ("--log-file", "absent/log.txt"), "no folder is made"),
                (2, "SIZE,COUNT", ("--log-file", "a", "--log-rotate", "12"), "hardly a line"),
                (2, "SIZE,COUNT", ("--log-file", "a", "--log-rotate", "1M,0"), "no older file"),
                (2, "only a file can be rotated", ("--log-rotate", "1M"), "no file"),
                (2, "only a file can be rotated", ("--log-file", "-", "--log-rotate", "1M"), "stderr"),
                (2, "one of text|json", ("--log-format", "xml"), "no such format"),
                (2, "from 1 to 5", ("--log-level", "9"), "no such level")):
            with self.subTest(why):
                self.rejected(code, message, "version", *words)

    def test_lines_that_are_lost_are_reported_once(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

        done = subprocess.run([support.PROGRAM, "version", "--log-file", "log.txt"], cwd=self.home,
                              capture_output=True, env=self.environment(), preexec_fn=small_files,
                              restore_signals=False, timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr.decode().count("bitnet: warning: the log misses lines: "), 1)

    def journal(self, listens, *words):
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh", sys.executable,
             "-c", JOURNAL, listens, support.PROGRAM, *words],
            cwd=self.home, env=self.environment(), capture_output=True, timeout=support.TIMEOUT_S)
        if done.returncode != 0:
            self.skipTest("nothing can be mounted here in place of /run")
        got = json.loads(done.stdout)
        if "built without systemd" in got["stderr"]:
            self.skipTest("this program was built without systemd")
        return got

    def test_the_journal_has_priority_and_name(self):
        got = self.journal("yes", "inspect", "-m", "absent\n.gguf", "--log-journal")
        self.assertEqual(got["code"], 3)
        fields = [dict(line.split("=", 1) for line in one.splitlines()) for one in got["got"]]
        self.assertEqual([one["PRIORITY"] for one in fields], ["6", "3", "6"])
        self.assertEqual({one["SYSLOG_IDENTIFIER"] for one in fields}, {"bitnet"})
        self.assertIn(r"absent\n.gguf", fields[1]["MESSAGE"])

    def test_a_missing_journal_is_reported(self):
        got = self.journal("no", "version", "--log-journal")
        self.assertEqual(got["code"], 1)
        self.assertIn("--log-journal: there is no journal of systemd here", got["stderr"])


if __name__ == "__main__":
    support.main()
