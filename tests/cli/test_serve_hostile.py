"""`bitnet serve` against clients that are hostile, slow or gone: over sockets, judged by RFC 9112 and by what other clients see."""

import http.client
import json
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import support
from support import needs_backend
from test_serve import GREEDY, LONG, PROMPT, Serving

BODY = json.dumps({"content": "the fox"}).encode()
POST = b"POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
CHUNK = b"%x\r\n%s\r\n" % (len(BODY), BODY)
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
# A second request that must never be answered: where it is, the first one had two meanings.
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"

REJECTED = (
    ("both lengths", 400, POST + LENGTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("both lengths, the other way round", 400, POST + b"Transfer-Encoding: chunked\r\n" + LENGTH + b"\r\n0\r\n\r\n"),
    ("two lengths that differ", 400, POST + LENGTH + b"Content-Length: 0\r\n\r\n" + BODY),
    ("two lengths alike", 400, POST + LENGTH + LENGTH + b"\r\n" + BODY),
    ("a list of lengths", 400, POST + b"Content-Length: 5, 5\r\n\r\n" + BODY),
    ("a signed length", 400, POST + b"Content-Length: +5\r\n\r\n" + BODY),
    ("a hexadecimal length", 400, POST + b"Content-Length: 0x5\r\n\r\n" + BODY),
    ("a length past 64 bits", 400, POST + b"Content-Length: 18446744073709551621\r\n\r\n" + BODY),
    ("LF alone", 400, b"GET /health HTTP/1.1\nHost: a\n\n"),
    ("LF alone behind a field", 400, b"GET /health HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
    ("CR alone", 400, b"GET /health HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"),
    ("a folded field", 400, POST + b"X: a\r\n\tb\r\n" + LENGTH + b"\r\n" + BODY),
    ("a folded coding", 400, POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    ("a blank before the colon of a length", 400, POST + b"Content-Length : 5\r\n\r\n" + BODY),
    ("a blank before the colon of a coding", 400, POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("a control character before a coding", 400, POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    ("a NUL in a field", 400, b"GET /health HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    ("a coding twice", 501, POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    ("identity", 501, POST + b"Transfer-Encoding: identity\r\n" + b"\r\n" + BODY),
    ("a list of codings", 501, POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("a coding in quotes", 501, POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n'),
    ("almost the coding", 501, POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("a coding of HTTP/1.0", 400, CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + CHUNK + b"0\r\n\r\n"),
    ("an extension of a chunk", 400, CHUNKED + CHUNK.replace(b"\r\n", b";a=b\r\n", 1) + b"0\r\n\r\n"),
    ("an extension with LF", 400, CHUNKED + CHUNK.replace(b"\r\n", b";\n", 1) + b"0\r\n\r\n"),
    ("a chunk's line with LF", 400, CHUNKED + CHUNK.replace(b"\r\n", b"\n", 1) + b"0\r\n\r\n"),
    ("a chunk that is longer", 400, CHUNKED + CHUNK.replace(b"}", b"} ") + b"0\r\n\r\n"),
    ("a chunk's size with a sign", 400, CHUNKED + b"+" + CHUNK + b"0\r\n\r\n"),
    ("a chunk's size past 64 bits", 400, CHUNKED + b"1000000000000000f\r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("trailing fields", 400, CHUNKED + CHUNK + b"0\r\nContent-Length: 5\r\n\r\n"),
    ("no Host", 400, b"GET /health HTTP/1.1\r\n\r\n"),
    ("two Hosts", 400, b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("a path in Host", 400, b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("two blanks", 400, b"GET  /health HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a blank in the target", 400, b"GET /hea lth HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("HTTP/0.9", 400, b"GET /health\r\n\r\n"),
    ("HTTP/1.2", 505, b"GET /health HTTP/1.2\r\nHost: a\r\n\r\n"),
    ("the preface of HTTP/2", 505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("CONNECT", 400, b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a record of TLS", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 40 + b"\r\n\r\n"),
    ("a head past its bound", 431, b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000 + b"\r\n\r\n"),
    ("fields past their bound", 431, b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
    ("a length past the bound", 413, POST + b"Content-Length: 999999999\r\n\r\n"),
    ("a chunk past the bound", 413, CHUNKED + b"7fffffff\r\nabc"),
)

TAKEN = (
    ("a length", POST + LENGTH + b"\r\n" + BODY),
    ("chunks", CHUNKED + CHUNK + b"0\r\n\r\n"),
    ("chunks of one byte", CHUNKED + b"".join(b"1\r\n%c\r\n" % x for x in BODY) + b"0\r\n\r\n"),
    ("an absolute target", POST.replace(b"/tokenize", b"http://other:1/tokenize") + LENGTH + b"\r\n" + BODY),
    ("a field in other letters", POST + LENGTH.upper() + b"\r\n" + BODY),
    ("blanks around a value", POST + LENGTH.replace(b": ", b": \t ").replace(b"\r", b" \t\r") + b"\r\n" + BODY),
)


class Raw:
    """A connection whose bytes the test writes itself."""

    def __init__(self, server, sends=b""):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=support.TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(sends)

    def send(self, content):
        try:
            self.socket.sendall(content)
        except ConnectionError:
            pass  # the answer says why the server read no more

    def read_to_end(self):
        out = b""
        try:
            while piece := self.socket.recv(65536):
                out += piece
        except ConnectionError:
            pass
        self.close()
        return out

    def read_head(self):
        """Of the next answer; a client that shuts its half down may get none."""
        out = b""
        while b"\r\n\r\n" not in out:
            part = self.socket.recv(4096)
            if not part:
                break
            out += part
        return out

    def reset(self):
        """Ends it with RST in place of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.socket.close()


def statuses(answers):
    return [int(x) for x in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", answers)]


@needs_backend
class Framing(Serving):
    def test_with_two_meanings_is_rejected_and_ends_the_connection(self):
        for why, status, sent in REJECTED:
            with self.subTest(why):
                answers = Raw(self.server, sent + HIDDEN).read_to_end()
                self.assertEqual(statuses(answers), [status], answers[:500])
                self.assertIn("message", json.loads(answers.partition(b"\r\n\r\n")[2])["error"])

    def test_with_one_meaning_leaves_what_follows(self):
        for why, sent in TAKEN:
            with self.subTest(why):
                last = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                answers = Raw(self.server, sent + last).read_to_end()
                self.assertEqual(statuses(answers), [200, 404], answers[:500])
                self.assertIn(b"'/last'", answers)

    def test_that_comes_byte_by_byte_is_the_same(self):
        for sent, status in ((TAKEN[1][1], 200), (REJECTED[0][2], 400)):
            client = Raw(self.server)
            for at in range(len(sent)):
                client.send(sent[at:at + 1])
            self.assertEqual(statuses(client.read_head()), [status])
            client.close()


@needs_backend
class Ends(Serving):
    OPTIONS = ("-np", "2")

    def running(self):
        return self.server.metrics()["vllm:num_requests_running"]

    def aborted(self):
        return sum(v for k, v in self.server.metrics().items() if 'finished_reason="abort"' in k)

    def test_of_each_kind_free_the_request(self):
        def text(**ask):
            content = json.dumps(ask).encode()
            return (b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(content)) + content
        long_prompt = "the fox and the rabbit went home. " * 40
        kinds = (("RST", Raw.reset), ("FIN", Raw.close), ("half-close", lambda x: x.socket.shutdown(socket.SHUT_WR)))
        for why, end in kinds:
            for when, ask in (("while it decodes", {"prompt": PROMPT, "stream": True}),
                              ("before an answer", {"prompt": PROMPT, "stream": False}),
                              ("in its prompt", {"prompt": f"{why} {long_prompt}", "stream": True})):
                with self.subTest(why=why, when=when):
                    before = self.aborted()
                    client = Raw(self.server, text(n=2, **{**LONG, **ask}))
                    if when == "while it decodes":
                        self.assertIn(b" 200 ", client.socket.recv(200))
                    elif when == "before an answer":
                        self.server.wait_for(self.running, "it runs")
                    else:
                        time.sleep(0.002)  # nothing reports how far a prompt is
                    end(client)
                    self.server.wait_for(lambda: self.running() == 0, "nothing runs")
                    if when != "in its prompt":  # one that ended before its body was read was never begun
                        self.server.wait_for(lambda: self.aborted() > before, "it counts as aborted")
                    client.close()
        self.assertEqual(len(self.server.post("/v1/completions", prompt=PROMPT, **GREEDY)["choices"]), 1)

    def test_before_the_body_is_whole_begin_nothing(self):
        before = self.aborted()
        for _ in range(20):
            client = Raw(self.server, POST.replace(b"/tokenize", b"/v1/completions") + b"Content-Length: 1000\r\n\r\n{")
            client.reset()
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        self.assertEqual(self.aborted(), before)


@needs_backend
class Crowds(Serving):
    OPTIONS = ("-np", "1")

    def test_of_half_open_connections_leave_health_quick(self):
        half = [Raw(self.server, (b"", b"GET", POST, POST + b"Content-Length: 100\r\n\r\n{")[i % 4]) for i in range(400)]
        took = []
        for _ in range(20):
            begin = time.monotonic()
            self.assertEqual(self.server.ask("GET", "/health")[0], 200)
            took.append(time.monotonic() - begin)
        self.assertLess(sorted(took)[10], 5, took)
        self.assertEqual(len(self.server.post("/v1/completions", prompt=PROMPT, **GREEDY)["choices"]), 1)
        for client in half:
            client.close()

    def test_that_send_no_request_keep_no_client_out(self):
        """More than the server has connections for: those that have waited the longest go."""
        parts = b"", b"GET", POST, POST + b"Content-Length: 100\r\n\r\n{"
        half = [Raw(self.server, parts[i % 4]) for i in range(2500)]
        for _ in range(5):
            begin = time.monotonic()
            self.assertEqual(self.server.ask("GET", "/health")[0], 200)
            self.assertLess(time.monotonic() - begin, 5)
        self.assertLessEqual(self.server.metrics()["bitnet_connections"], 2048)
        for client in half:
            client.close()

    def test_past_the_bound_of_connections_are_rejected(self):
        server = self.start("-np", "1", "--max-connections", "4")
        body = json.dumps({"prompt": PROMPT, "stream": True, **LONG}).encode()
        ask = (b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
               b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        busy = [Raw(server, ask) for _ in range(4)]
        for client in busy:
            client.socket.settimeout(30)
            self.assertIn(b"200 OK", client.socket.recv(4096))
        late = Raw(server)
        late.socket.settimeout(5)
        self.assertEqual(statuses(late.read_to_end()), [503])
        for client in busy:
            client.close()

    def test_of_requests_get_503_once_the_queue_is_full(self):
        """1024 prompts wait at most, of which a body submits 32 at a time."""
        server, got, lock = self.start("-np", "1"), [], threading.Lock()
        def ask():
            try:
                status, fields, out = server.ask("POST", "/v1/completions", {"prompt": [PROMPT] * 32, **LONG})
            except (ConnectionError, OSError):
                return  # the test ended the server
            with lock:
                got.append((status, fields["Retry-After"], out))
        clients = [threading.Thread(target=ask) for _ in range(40)]
        for one in clients:
            one.start()
        server.wait_for(lambda: got, "one is rejected")
        self.assertEqual(server.ask("GET", "/health")[0], 200)
        server.kill()
        for one in clients:
            one.join()
        status, retry_after, out = got[0]
        self.assertEqual(status, 503, out)
        self.assertGreater(int(retry_after), 0)
        self.assertIn("message", out["error"])


@needs_backend
class Pages(Serving):
    OPTIONS = ("--cors-origin", "https://good.example", "--api-key", "k")

    def test_of_a_listed_origin_may_ask(self):
        origin = {"Origin": "https://good.example"}
        status, fields, _ = self.server.ask("OPTIONS", "/v1/completions", None, {
            **origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"})
        self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (204, "https://good.example"))
        self.assertIn("POST", fields["Access-Control-Allow-Methods"])
        self.assertIn("authorization", fields["Access-Control-Allow-Headers"])
        for key, want in (("k", 200), ("x", 401)):
            status, fields, out = self.server.ask("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY},
                                                  {**origin, "Authorization": "Bearer " + key})
            self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (want, "https://good.example"), out)
            self.assertEqual(fields["Vary"], "Origin")

    def test_of_another_origin_may_not(self):
        for origin in ("https://evil.example", "null", "http://good.example", "https://good.example:444",
                       "https://good.example.evil.example"):
            for method, path, body in (("OPTIONS", "/v1/completions", None), ("GET", "/health", None),
                                       ("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY})):
                status, fields, _ = self.server.ask(method, path, body,
                                                    {"Origin": origin, "Authorization": "Bearer k"})
                self.assertEqual(status, 403, (origin, method))
                self.assertIsNone(fields["Access-Control-Allow-Origin"])


@needs_backend
@support.unittest.skipUnless(shutil.which("openssl"), "there is no openssl; scripts/setup installs it")
class Tls(Serving):
    def certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", self.path("key.pem"), "-out", self.path("cert.pem")],
                       check=True, capture_output=True)
        return ("--ssl-cert-file", self.path("cert.pem"), "--ssl-key-file", self.path("key.pem"))

    def test_carries_answers_and_streams(self):
        server = self.start(*self.certificate())
        self.assertTrue(server.address.startswith("https://"), server.address)
        trusted = ssl.create_default_context(cafile=self.path("cert.pem"))
        def ask(body):
            connection = http.client.HTTPSConnection("localhost", server.port, timeout=support.TIMEOUT_S, context=trusted)
            connection.connect = lambda: setattr(connection, "sock", trusted.wrap_socket(
                socket.create_connection(("127.0.0.1", server.port), timeout=support.TIMEOUT_S), server_hostname="localhost"))
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            out = answer.status, answer.read().decode()
            connection.close()
            return out
        status, text = ask({"prompt": PROMPT, **GREEDY})
        self.assertEqual((status, json.loads(text)["choices"][0]["text"]), (200, self.run_text()))
        status, text = ask({"prompt": PROMPT, "stream": True, **GREEDY})
        self.assertTrue(status == 200 and text.endswith("data: [DONE]\n\n"), text[-200:])
        with self.assertRaises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", server.port)),
                                                     server_hostname="localhost")
        self.assertNotIn(b" 200 ", Raw(server, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n").read_to_end())
        server.signal(signal.SIGTERM)
        self.assertEqual(server.end()[0], 0)

    def test_a_new_certificate_is_for_new_connections(self):
        server = self.start(*self.certificate())

        def connect(trusted):
            return trusted.wrap_socket(socket.create_connection(("127.0.0.1", server.port), timeout=support.TIMEOUT_S),
                                       server_hostname="localhost")

        def health(of):
            of.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return of.recv(4096).split(b"\r\n")[0]
        old = ssl.create_default_context(cafile=self.path("cert.pem"))
        before = connect(old)
        self.assertEqual(health(before), b"HTTP/1.1 200 OK")
        self.certificate()
        new = ssl.create_default_context(cafile=self.path("cert.pem"))
        with self.assertRaises(ssl.SSLCertVerificationError):
            connect(new)
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: any("certificate was read again" in line for line in server.lines), "read again")
        self.assertEqual(health(connect(new)), b"HTTP/1.1 200 OK")
        self.assertEqual(health(before), b"HTTP/1.1 200 OK")
        self.path("cert.pem", "no certificate")
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: any("certificate stays as it was" in line for line in server.lines), "a warning")
        self.assertEqual(health(connect(new)), b"HTTP/1.1 200 OK")


if __name__ == "__main__":
    support.main()
