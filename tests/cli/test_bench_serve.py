"""bench serve against a server whose delays are known, against hostile ones, and against `bitnet serve`."""

import http.server
import json
import re
import signal
import socket
import subprocess
import threading
import time

import support

FIRST_S, GAP_S, N_TOKENS = 0.15, 0.03, 6


class Slow(http.server.BaseHTTPRequestHandler):
    """Text after FIRST_S, further ones GAP_S apart, each times the server's `scale`; its `form` changes that."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps({"data": [{"id": "known-model"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.seen.append((self.path, self.headers.get("Authorization"),
                                 json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        number = len(self.server.seen)
        with self.server.lock:
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
        self.answer(number)

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def answer(self, number):
        form = self.server.form
        if form == "full" and number % 2 == 0:
            body = b'{"error": {"message": "no room"}}'
            self.send_response(429)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        scale = self.server.scale
        time.sleep(scale * FIRST_S * (4 if form == "late" and number % 2 == 0 else 1))
        for i in range(N_TOKENS):
            if i:
                time.sleep(scale * GAP_S)
            text = {"delta": {"content": f"t{i}"}} if "chat" in self.path else {"text": f"t{i}"}
            self.chunk(f"data: {json.dumps({'choices': [text]})}\n\n")
            if form == "cut" and i == 2:
                self.close_connection = True
                return
            if form == "error" and i == 2:
                self.chunk('data: {"error": {"message": "lost the device"}}\n\n')
        self.chunk('data: {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": %d}}\n\n' % N_TOKENS)
        self.chunk("data: [DONE]\n\n")
        with self.server.lock:  # before the client knows that it may send the next
            self.server.running -= 1
        self.chunk("")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client that left is what some tests are about."""


class Known(support.Case):
    def serve(self, form="", scale=1):
        server = Server(("127.0.0.1", 0), Slow)
        server.scale, server.form, server.seen, server.lock = scale, form, [], threading.Lock()
        server.running = server.most = 0
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    # Bounds of time that a busy machine keeps, for tests of something else.
    IN_TIME = ("--slo-first-token", "60000", "--slo-per-token", "60000")

    def bench(self, server, *words, env=None):
        return self.bitnet("bench", "serve", f"http://127.0.0.1:{server.server_port}", "-p", "5", "-n", str(N_TOKENS),
                           "--no-warmup", "-o", "json", *words, env=env)

    def at_one_pace(self, check):
        """Runs `check(scale)`; again with twice the delays, where a busy machine added more than they allow."""
        for scale in (1, 2, 4, 8):
            try:
                return check(scale)
            except AssertionError:
                if scale == 8:
                    raise

    def test_known_delays_are_measured(self):
        self.at_one_pace(self.delays_are_known)

    def delays_are_known(self, scale):
        server = self.serve(scale=scale)
        done = self.bench(server, "-np", "1,3", "-r", "2", *self.IN_TIME)
        self.assertEqual(done.code, 0, done)
        for row, streams in zip(done.json, (1, 3), strict=True):
            self.assertEqual((row["n_parallel"], row["requests"], row["failed"]), (streams, 2 * streams, 0))
            self.assertEqual((row["model_type"], row["test"]), ("known-model", f"serve pp5+tg{N_TOKENS}"))
            self.assertEqual((row["prompt_tokens"], row["generated_tokens"]), (22 * streams, 2 * streams * N_TOKENS))
            first, gap = scale * FIRST_S * 1e3, scale * GAP_S * 1e3
            for found, least in ((row["first_token_ms_p50"], first), (row["between_tokens_ms_p50"], gap),
                                 (row["per_token_ms_p50"], gap), (row["request_ms_p50"], first + gap * (N_TOKENS - 1))):
                self.assertTrue(least <= found <= 2 * least + 150, (found, least, row))
            # Each stream has two requests, one after the other.
            alone_s = scale * (FIRST_S + GAP_S * (N_TOKENS - 1))
            self.assertTrue(2 * alone_s <= row["wall_s"] <= 4 * alone_s + 0.5, row)
            self.assertAlmostEqual(row["generated_ts"] * row["wall_s"], row["generated_tokens"], 3)
            self.assertAlmostEqual(row["requests_per_s"] * row["wall_s"], row["requests"], 3)
            self.assertEqual(len(row["samples_first_token_ms"]), row["requests"])
            self.assertEqual(row["goodput_pct"], 100)
        self.assertEqual(server.most, 3)

    def test_goodput_counts_those_in_time(self):
        """Every other request is four times as late."""
        self.at_one_pace(self.half_are_in_time)
        row, = self.bench(self.serve(), "-np", "1", "-r", "2", "--slo-per-token", str(GAP_S * 500)).json
        self.assertEqual(row["goodput_pct"], 0)
        self.assertEqual(row["failed"], 0)

    def half_are_in_time(self, scale):
        row, = self.bench(self.serve("late", scale), "-np", "1", "-r", "4", "--slo-first-token", str(scale * FIRST_S * 2.5e3),
                          "--slo-per-token", "60000").json
        self.assertEqual(row["goodput_pct"], 50)
        self.assertAlmostEqual(row["goodput_per_s"] * 2, row["requests_per_s"], 6)

    def test_requests_have_the_path_key_and_prompt(self):
        server = self.serve()
        self.bench(server, "-np", "2", "-r", "2", "--api-key", "secret")
        path, key, body = server.seen[0]
        self.assertEqual((path, key), ("/v1/completions", "Bearer secret"))
        self.assertEqual(len(body["prompt"].split()), 5)
        self.assertEqual((body["max_tokens"], body["stream"], body["temperature"], body["model"]), (N_TOKENS, True, 0, "known-model"))
        self.assertNotIn("ignore_eos", body)
        self.assertEqual(len({seen[2]["prompt"] for seen in server.seen}), 4, "prompts are new")
        before = {seen[2]["prompt"] for seen in server.seen}
        self.bench(server, "-np", "2", "-r", "2", "-m", "mine", "--endpoint", "chat", "--ignore-eos", "--shared-prefix", "4",
                   "--api-key-file", self.path("keys", "first\nsecond\n"))
        path, key, body = server.seen[-1]
        self.assertEqual((path, key, body["model"], body["ignore_eos"]), ("/v1/chat/completions", "Bearer first", "mine", True))
        prompts = [seen[2]["messages"][0]["content"].split() for seen in server.seen[4:]]
        self.assertEqual(len({tuple(words[:4]) for words in prompts}), 1)
        self.assertFalse({" ".join(words) for words in prompts} & before, "also in the next run")

    def test_a_warm_up_does_not_count(self):
        server = self.serve()
        done = self.bitnet("bench", "serve", f"http://127.0.0.1:{server.server_port}", "-np", "2", "-r", "1", "-p", "3", "-n",
                           "6", "-o", "jsonl")
        self.assertEqual(done.json["requests"], 2)
        self.assertEqual(len(server.seen), 4)

    def test_requests_that_fail(self):
        for form, why, n in (("full", "status 429: .*no room", 2), ("cut", "closed the connection before the end", 4),
                             ("error", "lost the device", 4)):
            with self.subTest(form):
                done = self.bench(self.serve(form), "-np", "1", "-r", "4", *self.IN_TIME)
                self.assertEqual((done.code, len(done.errors)), (1, 1), done)
                self.assertRegex(done.errors[0], f"{n} failed: .*{why}")
                row, = done.json
                self.assertEqual((row["failed"], row["requests"]), (n, 4))
                self.assertEqual(row["goodput_pct"], 100 * (4 - n) / 4)

    def test_each_output_form_has_the_same_run(self):
        server = self.serve()
        words = ("bench", "serve", f"http://127.0.0.1:{server.server_port}/v1/", "-np", "2", "-r", "1", "-p", "3", "-n", "6",
                 "--no-warmup")
        text = self.ok(*words, "--report", "page.html").text
        self.assertRegex(text, r"\| known-model \| serve pp3\+tg6 \| 2 \| 2 \| 0 \| ")
        self.assertIn("goodput: requests with a first token within 1000 ms", text)
        with open(self.path("page.html"), encoding="utf-8") as page:
            self.assertIn("<h2>Time to the first token</h2>", page.read())
        self.assertIn("serve pp3+tg6", self.ok(*words, "-o", "csv").text)
        for name in ("a.json", "b.json"):
            self.path(name, self.ok(*words, "-o", "json", "-r", "4").stdout)
        done = self.bitnet("bench", "compare", "a.json", "b.json", "--force")
        self.assertIn(done.code, (0, 12), done)
        self.assertIn("serve pp3+tg6", done.text)

    def test_invalid_options_are_rejected(self):
        for words, message in (((), "the address of one server"), (("a", "b"), "the address of one server"),
                               (("a",), "expected http://HOST:PORT"), (("https://a",), "TLS"),
                               (("http://127.0.0.1:1", "-np", "0"), "numbers of streams"),
                               (("http://127.0.0.1:1", "-n", "0"), "numbers of tokens"),
                               (("http://127.0.0.1:1", "-np", "500"), "smaller -r"),
                               (("http://127.0.0.1:1", "--min-tps", "1"), "nothing to judge"),
                               (("http://127.0.0.1:1", "--api-key", "a\r\nX: y"), "the key has"),
                               (("http://127.0.0.1:1", "--api-key-file", "none"), "none")):
            with self.subTest(words):
                self.rejected(2, message, "bench", "serve", *words)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
        self.rejected(1, "Connection refused", "bench", "serve", f"http://127.0.0.1:{port}")
        self.rejected(1, "no-such-host.invalid", "bench", "serve", "http://no-such-host.invalid:1")

    def hostile(self, answer):
        """The first bytes of each answer; whether the connection is closed then."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def run():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(65536)
                    client.sendall(answer)
        threading.Thread(target=run, daemon=True).start()
        return listener.getsockname()[1]

    def test_hostile_answers_count_as_failures(self):
        head = b"HTTP/1.1 200 OK\r\n"
        for answer in (b"", b"\0" * 1000, b"HTTP/1.1 200", head + b"Content-Length: 99999999999999999999\r\n\r\n",
                       head + b"Content-Length: 10\r\n\r\nshort", head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                       head + b"X: " + b"a" * 100_000 + b"\r\n\r\n", head + b"\r\ndata: {\"choices\": 3}\n\n",
                       head + b"\r\ndata: " + b"[" * 100_000 + b"\n\n", head + b"\r\ndata: " + b"x" * (2 << 20),
                       b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"):
            with self.subTest(answer[:60]):
                port = self.hostile(answer)
                done = self.bitnet("bench", "serve", f"http://127.0.0.1:{port}", "-m", "x", "-np", "1", "-r", "1", "-p", "3", "-n",
                                   "3", "--no-warmup", "-o", "json")
                self.assertEqual((done.code, len(done.errors)), (1, 1), done)
                self.assertEqual(done.json[0]["failed"], 1)
        port = self.hostile(head + b"Content-Length: 2\r\n\r\n{}")
        self.rejected(1, "names no model", "bench", "serve", f"http://127.0.0.1:{port}")

    def test_ctrl_c_ends_with_130_and_no_result(self):
        server = self.serve()
        process = subprocess.Popen([support.PROGRAM, "bench", "serve", f"http://127.0.0.1:{server.server_port}", "-np", "1,2",
                                    "-r", "400", "-p", "3", "-n", "6", "--no-warmup"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(), cwd=self.home)
        self.addCleanup(process.kill)
        support.wait_for(lambda: server.seen, "the first request")
        support.send_signal(process, signal.SIGINT)
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual((process.returncode, out), (130, b""), err)


@support.needs_backend
class Real(support.Case):
    def test_our_own_server_is_measured(self):
        server = subprocess.Popen([support.PROGRAM, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True,
                                  env=self.environment(), cwd=self.home)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        port = next(found[1] for line in server.stderr if (found := re.match(r"listening on http://127.0.0.1:(\d+)", line)))
        for endpoint in ("completions", "chat"):
            rows = self.ok("bench", "serve", f"http://127.0.0.1:{port}", "-np", "1,4", "-r", "2", "-p", "8", "-n", "8",
                           "--ignore-eos", "--endpoint", endpoint, "-o", "json").json
            self.assertEqual([(row["n_parallel"], row["requests"], row["failed"]) for row in rows], [(1, 2, 0), (4, 8, 0)])
            for row in rows:
                self.assertEqual(row["generated_tokens"], 8 * row["requests"], "the server counts all that were asked for")
                self.assertGreaterEqual(row["prompt_tokens"], 8 * row["requests"])


if __name__ == "__main__":
    support.main()
