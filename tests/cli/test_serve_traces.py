"""Traces of `bitnet serve`: spans that a collector takes, rejects, takes late or not at all."""

import http.server
import json
import re
import signal
import threading
import time

import support
from support import needs_backend
from test_serve import GREEDY, PROMPT, Serving

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(http.server.ThreadingHTTPServer):
    """Stores its requests; answers with the given statuses in turn, then always with the last one."""

    def __init__(self, *statuses):
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses, self.bodies = list(statuses), []
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def url(self, path=""):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def spans(self):
        return [span for body in self.bodies for resource in body["resourceSpans"]
                for scope in resource["scopeSpans"] for span in scope["spans"]]

    def wait(self, n, seconds=30):
        end = time.monotonic() + seconds
        while len(self.spans()) < n and time.monotonic() < end:
            time.sleep(0.02)
        return self.spans()

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        statuses = self.server.statuses
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        if status == 200:
            self.server.bodies.append(body)
        self.server.path = self.path, self.headers["Content-Type"]
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def attributes(span):
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


class Traces(Serving):
    def setUp(self):
        support.Case.setUp(self)  # each test has a server of its own

    def serve(self, url, *words):
        return self.start("--otlp-traces-endpoint", url, *words)

    @staticmethod
    def stop(server):
        server.signal(signal.SIGTERM)
        return server.end()

    def collector(self, *statuses):
        out = Collector(*statuses)
        self.addCleanup(out.close)
        return out

    @needs_backend
    def test_a_request_is_a_span(self):
        collector = self.collector(200)
        server = self.serve(collector.url())
        before = time.time_ns()
        done = server.ask("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY},
                          {"traceparent": f"00-{TRACE}-{PARENT}-01"})[2]
        server.chunks("/v1/chat/completions", messages=[{"role": "user", "content": "hi"}], **GREEDY)
        server.ask("POST", "/v1/completions", {"prompt": 5})
        server.ask("GET", "/health")
        server.ask("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY},
                   {"traceparent": f"00-{TRACE}-{PARENT}-00"})
        spans = collector.wait(3)
        self.assertEqual([(s["name"], s["kind"]) for s in spans], [
            ("POST /v1/completions", 2), ("POST /v1/chat/completions", 2), ("POST /v1/completions", 2)])
        self.assertEqual(collector.path, ("/v1/traces", "application/json"))
        first, stream, wrong = spans
        self.assertEqual((first["traceId"], first["parentSpanId"]), (TRACE, PARENT))
        self.assertRegex(stream["traceId"], "^[0-9a-f]{32}$")
        self.assertNotIn("parentSpanId", stream)
        self.assertLess(before, int(first["startTimeUnixNano"]))
        self.assertLess(int(first["startTimeUnixNano"]), int(first["endTimeUnixNano"]))
        self.assertLess(int(first["endTimeUnixNano"]), time.time_ns())
        got, usage = attributes(first), done["usage"]
        self.assertEqual(
            (got["gen_ai.usage.input_tokens"], got["gen_ai.usage.output_tokens"], got["http.response.status_code"]),
            (str(usage["prompt_tokens"]), str(usage["completion_tokens"]), "200"))
        took = (int(first["endTimeUnixNano"]) - int(first["startTimeUnixNano"])) / 1e9
        parts = [got["gen_ai.latency.time_in_" + part] for part in ("queue", "model_prefill", "model_decode")]
        self.assertLessEqual(sum(parts), took)
        self.assertGreater(got["gen_ai.latency.time_to_first_token"], 0)
        self.assertLessEqual(got["gen_ai.latency.time_to_first_token"], took)
        self.assertGreater(attributes(stream)["gen_ai.latency.time_to_first_token"], 0)
        self.assertEqual(attributes(wrong)["http.response.status_code"], "400")
        self.assertNotIn("gen_ai.usage.input_tokens", attributes(wrong))
        self.assertNotIn(PROMPT, json.dumps(collector.bodies), "no text of a request")
        # They are counted behind the collector's answer, which the collector sends after it kept them.
        server.wait_for(lambda: server.metrics()["bitnet_spans_sent_total"] == 3, "the spans are counted")
        counts = server.metrics()
        self.assertEqual((counts["bitnet_spans_sent_total"], counts["bitnet_spans_dropped_total"]), (3, 0))

    @needs_backend
    def test_shutdown_sends_the_remaining_spans(self):
        collector = self.collector(200)
        server = self.serve(collector.url("/other"))
        server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        self.assertEqual(self.stop(server)[0], 0)
        self.assertEqual(len(collector.spans()), 1)
        self.assertEqual(collector.path[0], "/other")

    @needs_backend
    def test_spans_are_sent_again_after_503_and_429(self):
        collector = self.collector(503, 429, 200)
        server = self.serve(collector.url())
        server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        self.assertEqual(len(collector.wait(1)), 1)
        text = self.stop(server)[1]
        self.assertEqual(len(re.findall(r"takes no spans \(status 503\); they are kept and sent again", text)), 1, text)
        self.assertIn("answers again", text)

    @needs_backend
    def test_spans_are_dropped_after_400(self):
        collector = self.collector(400)
        server = self.serve(collector.url())
        server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        server.wait_for(lambda: server.metrics()["bitnet_spans_dropped_total"] == 1, "the span is dropped")
        self.assertIn("rejects 1 spans with status 400; does /v1/traces take OTLP in JSON?", self.stop(server)[1])

    @needs_backend
    def test_without_a_collector_requests_are_answered(self):
        collector = Collector(200)
        url = collector.url()
        collector.close()
        server = self.serve(url)
        for _ in range(3):
            server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        began = time.monotonic()
        self.assertEqual(self.stop(server)[0], 0)
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn("takes no spans (connecting: Connection refused)", "".join(server.lines))

    def test_an_invalid_collector_address_is_rejected(self):
        for url in ("collector:4318", "https://collector", "http://a:99999"):
            self.rejected(2, "expected http://HOST[:PORT][/PATH]", "serve", "--otlp-traces-endpoint", url)


if __name__ == "__main__":
    support.main()
