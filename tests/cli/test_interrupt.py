"""Ctrl-C: the first stops the generation, the second leaves at once."""

import array
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time

import support

F_SETPIPE_SZ = 1031  # fcntl has a name for it since Python 3.10
PROMPT = "Once upon a time"
ENDLESS = ("run", "-p", PROMPT, "-n", "-1", "--ignore-eos", "-c", "64k", "-q")


@support.needs_backend
class Interrupt(support.Case):
    def start(self, *words, **more):
        process = subprocess.Popen([support.PROGRAM, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                   env=self.environment(), cwd=self.home, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def read_until(self, stream, n_bytes):
        text = b""
        while len(text) < n_bytes:
            ready, _, _ = select.select([stream], [], [], support.TIMEOUT_S)
            self.assertTrue(ready, f"only {text!r} arrived")
            piece = os.read(stream.fileno(), 4096)
            self.assertTrue(piece, f"ended after {text!r}")
            text += piece
        return text

    def test_the_first_ctrl_c_keeps_the_text(self):
        process = self.start(*ENDLESS)
        text = self.read_until(process.stdout, len(PROMPT) + 20)
        support.send_signal(process, signal.SIGINT)
        rest, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertTrue((text + rest).startswith(PROMPT.encode()))
        self.assertTrue(rest.endswith(b"\n"))
        self.assertEqual(err, b"")

    def test_json_is_whole(self):
        trace = self.path("trace.json")
        process = self.start(*ENDLESS, "--json", "--trace", trace)
        support.wait_for_trace(process, trace, '"name":"sample"')  # it generates
        support.send_signal(process, signal.SIGINT)
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIsNone(support.SANITIZER.search(err.decode()), err)
        got = json.loads(out)
        self.assertEqual(got["stop"]["reason"], "cancelled")
        self.assertEqual(len(got["tokens"]["generated"]), got["timings"]["predicted_n"])

    def test_a_second_ctrl_c_exits_immediately(self):
        process = self.start(*ENDLESS)
        # The reader stops: the program ends up blocked in a write, where only the second one helps.
        fcntl.fcntl(process.stdout, F_SETPIPE_SZ, 4096)
        self.wait_until_stuck(process.stdout)
        support.send_signal(process, signal.SIGINT)
        support.send_signal(process, signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.TIMEOUT_S), 130)

    @staticmethod
    def wait_until_stuck(pipe):
        """Until no byte has come for two seconds since the first."""
        waiting, last, since = array.array("i", [0]), 0, time.monotonic()
        while last == 0 or time.monotonic() - since < 2:
            fcntl.ioctl(pipe, termios.FIONREAD, waiting)
            if waiting[0] != last:
                last, since = waiting[0], time.monotonic()
            time.sleep(0.1)

    def test_ctrl_c_at_the_prompt_exits_with_130(self):
        process = subprocess.Popen([support.PROGRAM, "run", "-q"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(), cwd=self.home)
        self.addCleanup(process.stdin.close)
        self.addCleanup(self.end, process)
        support.send_signal(process, signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.TIMEOUT_S), 130)
        self.assertEqual(process.stdout.read(), b"")


@support.needs_backend
class Terminal(support.Case):
    """The program on a terminal of its own."""

    def open(self, *words):
        pid, self.terminal = pty.fork()
        if pid == 0:
            env = self.environment({"TERM": "xterm"})
            os.chdir(self.home)
            os.execve(support.PROGRAM, [support.PROGRAM, *words], env)
        self.pid, self.seen = pid, ""
        self.addCleanup(self.close)

    def close(self):
        os.close(self.terminal)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def expect(self, text, after=0):
        """Reads until `text` is there; returns where it ends."""
        deadline = time.monotonic() + support.TIMEOUT_S
        while text not in self.seen[after:]:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.terminal], [], [], max(left, 0))
            self.assertTrue(ready, f"{text!r} did not come: {self.seen!r}")
            try:
                piece = os.read(self.terminal, 4096)
            except OSError:  # the other side is closed
                piece = b""
            self.assertTrue(piece, f"ended before {text!r}: {self.seen!r}")
            self.seen += piece.decode("utf-8", "replace")
        return self.seen.index(text, after) + len(text)

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait(self):
        while True:
            try:
                if not os.read(self.terminal, 4096):
                    break
            except OSError:
                break
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        self.assertTrue(os.WIFEXITED(status), self.seen)
        return os.WEXITSTATUS(status)

    def test_run_without_a_prompt_is_a_chat(self):
        self.open("run", "-n", "8")
        self.expect(">>> ")
        self.send("/bye\n")
        self.assertEqual(self.wait(), 0)
        self.assertIn("selected=", self.seen)

    def test_end_of_input_leaves(self):
        self.open("chat")
        self.expect(">>> ")
        self.send("\x04")
        self.assertEqual(self.wait(), 0)

    def test_end_of_input_before_the_prompt_quotes_nothing(self):
        self.open("chat")
        self.send("\x04")  # while the model is loaded: the terminal is not prepared yet
        self.expect(">>> ")
        self.send("\x04")
        self.assertEqual(self.wait(), 0)

    def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(self):
        self.open("chat", "-n", "-1", "--ignore-eos", "-c", "64k", "--temp", "0")
        at = self.expect(">>> ")
        self.send("Hello\n")
        at = self.expect("Hello\r\n", at - 4)
        while len(self.seen) < at + 40:  # some of the answer
            self.seen += os.read(self.terminal, 4096).decode("utf-8", "replace")
        self.send("\x03")
        at = self.expect(">>> ", at)
        self.send("/set temp 0.5\n")
        self.expect("temp 0.5", at)
        self.send("/bye\n")
        self.assertEqual(self.wait(), 0)

    def test_ctrl_c_at_the_prompt_clears_the_line(self):
        self.open("chat")
        at = self.expect(">>> ")
        self.send("half a mess")
        self.expect("half a mess")
        self.send("\x03")
        at = self.expect(">>> ", at)
        self.send("/backend\n")
        self.expect("selected=", at)
        self.send("/bye\n")
        self.assertEqual(self.wait(), 0)

    def test_history_is_private(self):
        self.open("chat", "-n", "1")
        self.expect(">>> ")
        self.send("/set\n")
        self.expect("temp 0.8")
        self.send("/bye\n")
        self.assertEqual(self.wait(), 0)
        file = self.path("state/bitnet/history")
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        with open(file, encoding="utf-8") as f:
            self.assertIn("/set", f.read())

    def test_bitnet_nohistory_writes_no_history(self):
        plain = self.environment
        self.environment = lambda extra=None: plain({**(extra or {}), "BITNET_NOHISTORY": "1"})
        self.open("chat")
        self.expect(">>> ")
        self.send("/bye\n")
        self.assertEqual(self.wait(), 0)
        self.assertFalse(os.path.exists(self.path("state")))

    def test_progress_bar_leaves_nothing_behind(self):
        self.open("run", "-p", "Once", "-n", "2", "-s", "1")
        self.expect("seed=1")
        line = self.seen[:self.seen.index("requested=")]
        if "loading" in line:
            self.assertTrue(line.endswith("\r\x1b[K"), line)


if __name__ == "__main__":
    support.main()
