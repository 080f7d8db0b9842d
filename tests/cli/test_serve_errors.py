"""Errors of `bitnet serve` that are found before a body is read, by raw HTTP: each in the form of its route's or its client's API."""

import json
import signal
import socket
import unittest

import test_serve
from support import TIMEOUT_S, needs_backend
from test_serve import CHAT, LONG

KEY = {"Authorization": "Bearer key"}
VERSION = {"anthropic-version": "2023-06-01"}
MESSAGE = {"max_tokens": 4, "messages": CHAT}


def exchange(port, head, body=b""):
    """Status, fields in lower case and the JSON of the answer to these bytes, behind which none come."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as one:
        one.sendall(head.replace("\n", "\r\n").encode() + body)
        text = b""
        while b"\r\n\r\n" not in text:
            got = one.recv(65536)
            assert got, text
            text += got
        top, _, rest = text.partition(b"\r\n\r\n")
        first, *lines = top.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        while len(rest) < int(fields["content-length"]):
            got = one.recv(65536)
            assert got, rest
            rest += got
    return int(first.split()[1]), fields, json.loads(rest)


def head_of(method, path, fields=None, length=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{k}: {v}" for k, v in (fields or {}).items())]
    if length is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return "\n".join(lines) + "\n\n"


class Forms(unittest.TestCase):
    def assert_anthropic(self, got, status, kind):
        code, fields, body = got
        self.assertEqual(code, status, body)
        self.assertEqual(set(body), {"type", "error", "request_id"}, body)
        self.assertEqual((body["type"], body["error"]["type"]), ("error", kind), body)
        self.assertTrue(body["error"]["message"])
        # Where Anthropic's packages look for it, and where all others do.
        self.assertEqual((fields["request-id"], fields["x-request-id"]), (body["request_id"],) * 2)
        self.assertEqual(fields["content-type"], "application/json")

    def assert_openai(self, got, status, kind):
        code, fields, body = got
        self.assertEqual(code, status, body)
        self.assertEqual(set(body), {"error"}, body)
        self.assertEqual(set(body["error"]), {"message", "type", "param", "code"})
        self.assertEqual(body["error"]["type"], kind)
        self.assertNotIn("request-id", fields)


@needs_backend
class BeforeTheBody(test_serve.Serving, Forms):
    OPTIONS = ("--api-key", "key", "--timeout", "1")

    def test_rejections_have_the_form_of_their_api(self):
        port = self.server.port
        large = 17 << 20
        page = {"Origin": "https://elsewhere.example"}
        for method, path, fields, length, status, kind, why in (
                ("POST", "/v1/messages", {}, 10, 401, "authentication_error", "no key"),
                ("POST", "/messages", {"x-api-key": "wrong"}, 10, 401, "authentication_error", "a wrong key"),
                ("POST", "/v1/messages/count_tokens", {}, 10, 401, "authentication_error", "below it"),
                ("GET", "/v1/messages", KEY, None, 405, "invalid_request_error", "not with GET"),
                ("POST", "/v1/messages/batches", KEY, 10, 404, "not_found_error", "no such route below"),
                ("POST", "/v1/messages", KEY, large, 413, "request_too_large", "a body that is too large"),
                ("POST", "/v1/messages", {**KEY, **page}, 10, 403, "permission_error", "a page of elsewhere"),
                ("POST", "/v1/messages", {**KEY, "X-Request-Id": "mine"}, large, 413, "request_too_large", "its id"),
                ("GET", "/v1/absent", {**KEY, **VERSION}, None, 404, "not_found_error", "a client of Anthropic's"),
                ("GET", "/v1/models/absent", {**KEY, **VERSION}, None, 404, "not_found_error", "no such model"),
                ("POST", "/v1/chat/completions", VERSION, 10, 401, "authentication_error", "on another's route")):
            with self.subTest(why):
                got = exchange(port, head_of(method, path, fields, length))
                self.assert_anthropic(got, status, kind)
                if "X-Request-Id" in fields:
                    self.assertEqual(got[2]["request_id"], "mine")
        for method, path, fields, length, status, kind, why in (
                ("POST", "/v1/chat/completions", {}, 10, 401, "authentication_error", "no key"),
                ("POST", "/v1/responses", KEY, large, 413, "invalid_request_error", "a body that is too large"),
                ("GET", "/v1/messagesx", KEY, None, 404, "invalid_request_error", "a name that begins alike"),
                ("GET", "/v1/models/absent", KEY, None, 404, "invalid_request_error", "no such model")):
            with self.subTest(why):
                self.assert_openai(exchange(port, head_of(method, path, fields, length)), status, kind)

    def test_a_missing_body_times_out(self):
        port = self.server.port
        self.assert_anthropic(exchange(port, head_of("POST", "/v1/messages", KEY, 10), b"{"),
                              408, "timeout_error")
        self.assert_openai(exchange(port, head_of("POST", "/v1/responses", KEY, 10), b"{"),
                           408, "invalid_request_error")

    def test_errors_of_the_body_have_the_form_of_the_api(self):
        body = json.dumps({**MESSAGE, "max_tokens": 0}).encode()
        got = exchange(self.server.port, head_of("POST", "/v1/messages", KEY, len(body)), body)
        self.assertEqual(got[2]["error"].pop("param"), "max_tokens")
        self.assert_anthropic(got, 400, "invalid_request_error")
        got = exchange(self.server.port, head_of("POST", "/v1/messages", KEY, 3), b"[1]")
        self.assert_anthropic(got, 400, "invalid_request_error")
        got = exchange(self.server.port, head_of("POST", "/v1/messages/count_tokens", KEY, 2), b"{}")
        self.assert_anthropic(got, 400, "invalid_request_error")

    def test_errors_during_shutdown_have_the_form_of_the_api(self):
        server = self.start("--api-key", "key")
        connection, answer = server.send("POST", "/v1/completions", {"prompt": "Once", "stream": True, **LONG}, KEY)
        answer.readline()
        server.signal(signal.SIGTERM)
        server.wait_for(lambda: server.ask("GET", "/ready")[0] == 503, "the end begins")
        body = json.dumps(MESSAGE).encode()
        got = exchange(server.port, head_of("POST", "/v1/messages", KEY, len(body)), body)
        self.assert_anthropic(got, 503, "overloaded_error")
        self.assertGreater(int(got[1]["retry-after"]), 0)
        got = exchange(server.port, head_of("POST", "/v1/completions", KEY, len(body)), body)
        self.assert_openai(got, 503, "unavailable_error")
        connection.close()


if __name__ == "__main__":
    test_serve.support.main()
