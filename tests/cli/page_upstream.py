"""A server in place of `bitnet serve` for the page: the page's own files, and answers by a script of the test."""

import http.server
import json
import os
import threading

import support

FILES = os.path.join(support.SOURCE, "host", "src", "page")
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
TIMINGS = {"predicted_n": 9, "predicted_per_second": 21.5, "prompt_n": 3, "cache_n": 4}
PAUSE = object()  # until the client is gone, or the test says go_on


def event(**members):
    return f"data: {json.dumps(members)}\n\n".encode()


def chunk(finish=None, **delta):
    return event(model="fake", choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def answer(text, piece=7, finish="stop"):
    """The bytes of a stream that has `text` in pieces."""
    return [*(chunk(content=text[i:i + piece]) for i in range(0, len(text), piece)), chunk(finish),
            event(choices=[], usage={}, timings=TIMINGS),
            b"data: [DONE]\n\n"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Of a request to an Upstream."""

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", **fields):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def reject(self, status, message, **fields):
        self.reply(status, json.dumps({"error": {"message": message}}).encode(), **fields)

    def do_GET(self):
        name = {"/": "index.html"}.get(self.path, self.path.removeprefix("/page/"))
        path = os.path.join(FILES, name)
        if "/" not in name and os.path.exists(path):
            with open(path, "rb") as file:
                kind = TYPES[os.path.splitext(name)[1]]
                return self.reply(200, file.read(), kind, Content_Security_Policy=POLICY)
        found = self.server.upstream.routes.get(self.path)
        if found is None:
            return self.reject(404, "not here")
        if isinstance(found, str):
            return self.reply(200, found.encode(), "text/plain")
        return self.reply(200, json.dumps(found).encode())

    def do_POST(self):
        up = self.server.upstream
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.path == "/backends/reload":
            if key != "admin":
                return self.reject(401, "an admin key is needed")
            up.reloads += 1
            return self.reply(200, b"{}")
        if up.key is not None and key != up.key:
            return self.reject(401, "an API key is needed")
        up.requests.append(body)
        if isinstance(up.stream, tuple):
            status, fields, message = up.stream
            return self.reject(status, message, **fields)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.pour(up.stream)

    def pour(self, pieces):
        try:
            for piece in pieces:
                if piece is PAUSE:
                    while not self.server.upstream.go_on.wait(0.02):
                        self.wfile.write(b": ping\n\n")
                else:
                    self.wfile.write(piece)
        except OSError:
            self.server.upstream.gone.set()


class Upstream:
    """`stream`: pieces of bytes of the next answers, or (status, fields, body)."""

    def __init__(self):
        self.stream, self.requests, self.key = answer("Hello."), [], None
        self.routes = {"/v1/models": {"data": [{"id": "fake"}]}}
        self.reloads, self.go_on, self.gone = 0, threading.Event(), threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.upstream = self
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
