"""The log of `bitnet serve`: a reader that takes nothing costs lines and no answer; members of JSON; systemd's journal."""

import json
import os
import re
import signal
import socket
import subprocess
import time

import support
from support import PROGRAM, TIMEOUT_S, demo_model, needs_backend
from test_serve import GREEDY, PROMPT, Server

LONG_PATH = "/" + "x" * 190  # 404: each line of the log is some hundred bytes


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Mute:
    """A server whose standard error is a pipe that the test reads later."""

    def __init__(self, home, *words, env=None):
        self.port, self.n_answers = free_port(), 0
        self.pipe = os.path.join(home, "pipe")
        os.mkfifo(self.pipe)
        # Opened for both, so that neither end waits for the other, and read by no one.
        self.reader = os.open(self.pipe, os.O_RDWR)
        writer = os.open(self.pipe, os.O_WRONLY)
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", str(self.port), *words], stdin=subprocess.DEVNULL, stderr=writer,
            stdout=subprocess.DEVNULL, cwd=home,
            env=support.environment(home, {"BITNET_MODEL": demo_model(), **(env or {})}))
        os.close(writer)

    def ask(self, path, n=1, body=None):
        """The statuses of n answers on one connection, sent without waiting for each other."""
        method = "GET" if body is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        out, text = [], b""
        self.n_answers += n
        with socket.create_connection(("127.0.0.1", self.port), timeout=support.TIMEOUT_S) as one:
            for _ in range(n):
                one.sendall((head + "\r\n" + (body or "")).encode())
                while b"\r\n\r\n" not in text:
                    text += self.more(one)
                top, _, text = text.partition(b"\r\n\r\n")
                length = int(re.search(rb"Content-Length: (\d+)", top)[1])
                while len(text) < length:
                    text += self.more(one)
                self.body, text = text[:length].decode(), text[length:]
                out.append(int(top.split()[1]))
        return out

    @staticmethod
    def more(one):
        got = one.recv(65536)
        assert got, "the connection ended"
        return got

    def wait_until_ready(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if self.ask("/ready") == [200]:
                    return
            except OSError:
                self.n_answers -= 1
            time.sleep(0.05)
        raise AssertionError("the server does not become ready")

    def dropped(self):
        self.ask("/metrics")
        return int(float(re.search(r"^bitnet_log_lines_dropped_total (\S+)$", self.body, re.M)[1]))

    def drain(self, is_enough):
        """Reads lines until those say that it is enough, or for 20 seconds."""
        os.set_blocking(self.reader, False)
        text, end = b"", time.monotonic() + 20
        while time.monotonic() < end and not is_enough(text):
            try:
                text += os.read(self.reader, 65536)
            except BlockingIOError:
                time.sleep(0.01)
        return text

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.reader)


class ServeLog(support.Case):
    def mute(self, *words, **more):
        out = Mute(self.home, *words, **more)
        self.addCleanup(out.kill)
        out.wait_until_ready()
        return out

    def start(self, *words, **more):
        out = Server(self.home, *words, **more)
        self.addCleanup(out.kill)
        self.assertTrue(out.address, out.lines)
        return out

    def objects(self, name="log.json"):
        with open(self.path(name), encoding="ascii") as f:
            return [json.loads(line) for line in f.read().splitlines()]

    @needs_backend
    def test_a_blocked_log_reader_does_not_delay_answers(self):
        server = self.mute("--log-file", "-", "--log-format", "json")
        n = 6000
        began = time.monotonic()
        self.assertEqual(set(server.ask(LONG_PATH, n)), {404})
        self.assertLess(time.monotonic() - began, 120)
        self.assertEqual(server.ask("/v1/completions", body=json.dumps({"prompt": PROMPT, **GREEDY})), [200])
        self.assertGreater(server.dropped(), 0)

        # The reader takes lines again: what is left comes, and the number of those that do not.
        text = server.drain(lambda text: b'"dropped":' in text and text.count(b"/metrics") == 1)
        lines = [json.loads(line) for line in text.decode().splitlines()]
        reported = [one for one in lines if "dropped" in one]
        dropped = sum(one["dropped"] for one in reported)
        self.assertEqual({one["level"] for one in reported}, {"warning"})
        self.assertIn("begins: serve", lines[0]["message"], "what was written before stays")
        # Each answer is in a line or in the number.
        answers = [one for one in lines if one["message"] == "answered"]
        self.assertEqual(len(answers) + dropped, server.n_answers)
        self.assertEqual(server.dropped(), dropped)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(TIMEOUT_S), 0)

    @needs_backend
    def test_shutdown_does_not_wait_for_the_log_reader(self):
        for words in (("--log-file", "-"), ("-v",)):
            with self.subTest(words):
                home = self.path(words[0])
                os.mkdir(home)
                server = Mute(home, *words)
                self.addCleanup(server.kill)
                server.wait_until_ready()
                self.assertEqual(set(server.ask(LONG_PATH, 1000)), {404})
                began = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(60), 0)
                self.assertLess(time.monotonic() - began, 20)

    def members_of(self, end_by):
        server = self.start("--log-file", "log.json", "--log-format", "json")
        for i in range(50):
            server.ask("GET", f"/absent/{i}")
        server.ask("GET", "/health")  # an answer is logged before the next one is made
        server.signal(end_by)
        server.end()
        return [one["path"] for one in self.objects() if "path" in one][:50]

    @needs_backend
    def test_no_line_is_lost_at_sigterm(self):
        self.assertEqual(self.members_of(signal.SIGTERM), [f"/absent/{i}" for i in range(50)])
        self.assertEqual(self.objects()[-1]["message"], "ends with exit code 0")

    @needs_backend
    def test_no_line_is_lost_in_a_crash(self):
        self.assertEqual(self.members_of(signal.SIGSEGV), [f"/absent/{i}" for i in range(50)])

    @needs_backend
    def test_members_of_json(self):
        server = self.start("--log-file", "log.json", "--log-format", "json", "--alias", "tiny")
        secret = "a secret of the user"
        _, fields, _ = server.ask("POST", "/v1/completions?key=hidden",
                                  {"prompt": secret, "model": "tiny\u2028\x1b[2J\r\nforged", **GREEDY},
                                  {"X-Request-Id": "of-the-client", "X-Odd": "odd"})
        server.ask("GET", "/%1b%0d%0aabsent")
        server.signal(signal.SIGTERM)
        server.end()
        with open(self.path("log.json"), encoding="ascii") as f:
            text = f.read()
        for hidden in (secret, "hidden", "odd"):
            self.assertNotIn(hidden, text)
        self.assertNotRegex(text, "[^\x20-\x7e\n]")
        first, second = [one for one in self.objects() if one["message"] == "answered"]
        self.assertEqual(set(first), {"time", "level", "pid", "message", "client", "method", "path", "status",
                                      "bytes", "duration_ms", "request_id", "model"})
        self.assertRegex(first["client"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual((first["method"], first["path"], first["status"]), ("POST", "/v1/completions", 200))
        self.assertEqual(first["bytes"], int(fields["Content-Length"]))
        self.assertGreater(first["duration_ms"], 0)
        self.assertEqual(first["request_id"], "of-the-client")
        self.assertEqual(first["model"], "tiny\u2028\x1b[2J\r\nforged")
        self.assertEqual((second["path"], second["status"]), ("/%1b%0d%0aabsent", 404))
        self.assertNotIn("model", second)

    @needs_backend
    def test_text_forges_no_line(self):
        server = self.start("--log-file", "log.txt")
        server.post("/v1/completions", prompt=PROMPT, model="x\r\n\x1b[2J forged", **GREEDY)
        server.signal(signal.SIGTERM)
        server.end()
        with open(self.path("log.txt"), "rb") as f:
            text = f.read()
        self.assertNotRegex(text, rb"[^\x20-\x7e\n]")
        line = [one for one in text.decode().splitlines() if " POST " in one]
        self.assertEqual(len(line), 1)
        self.assertTrue(line[0].endswith(r" model=x\x0d\x0a\x1b[2J\x20forged"), line)

    def stderr_in_journal(self, *words):
        """The lines of a run whose standard error is what JOURNAL_STREAM names."""
        reader, writer = os.pipe()
        about = os.fstat(writer)
        env = self.environment({"JOURNAL_STREAM": f"{about.st_dev}:{about.st_ino}"})
        done = subprocess.run([PROGRAM, "inspect", "-m", "absent\n.gguf", *words], stderr=writer,
                              stdout=subprocess.DEVNULL, env=env, cwd=self.home, timeout=TIMEOUT_S)
        os.close(writer)
        with os.fdopen(reader, "rb") as f:
            lines = f.read().decode().splitlines()
        self.assertEqual(done.returncode, 3)
        # Another descriptor than that of the variable is no journal.
        other = subprocess.run([PROGRAM, "inspect", "-m", "absent\n.gguf", *words], capture_output=True,
                               env=env, cwd=self.home, timeout=TIMEOUT_S)
        self.assertNotRegex(other.stderr.decode(), r"(?m)^<\d>")
        return lines

    def test_lines_in_the_journal(self):
        printed = self.stderr_in_journal()
        self.assertEqual(len(printed), 1, printed)
        self.assertRegex(printed[0], r"^<3>bitnet: model file 'absent\\n\.gguf' does not exist")
        text = self.stderr_in_journal("--log-file", "-")
        self.assertEqual([one[:3] for one in text], ["<6>", "<3>", "<6>"])
        self.assertRegex(text[1], r"^<3>model file 'absent\\n\.gguf' does not exist")
        self.assertEqual(text[2], "<6>ends with exit code 3")
        of_json = self.stderr_in_journal("--log-file", "-", "--log-format", "json")
        self.assertEqual([one[:3] for one in of_json], ["<6>", "<3>", "<6>"])
        for one in of_json:
            self.assertEqual(set(json.loads(one[3:])), {"level", "pid", "message"})


if __name__ == "__main__":
    support.main()
