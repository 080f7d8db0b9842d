"""llm-comply asks the three APIs, and compares each answer and event with their published descriptions."""

import http.client
import http.server
import json
import subprocess
import sys
import threading

from client_case import KEY, Client, main, needs

# The demo model ends no string by itself: these tokens, `"`, `}` and the ends of a turn, are made likely in calls.
BIAS = {"1": 100, "92": 60, "2046": 50, "2047": 50}
# What the server does not do, by the reference: it sees no images, and a body without `model` means the first one.
NOT_OURS = {"chat-image-input", "image-input", "anth-image-input", "chat-error-handling", "error-handling"}


class Biased(http.server.BaseHTTPRequestHandler):
    """Passes requests on to the server; those with tools get the bias."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):  # noqa: N802  the name is of the standard library
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body.get("tools"):
            body["logit_bias"] = BIAS
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        fields = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "connection")}
        connection.request("POST", self.path, json.dumps(body), fields)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@needs("llm_comply")
class Descriptions(Client):
    OPTIONS = (*Client.OPTIONS, "--temp", "0")

    def setUp(self):
        super().setUp()
        self.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Biased)
        self.proxy.behind = self.server.port
        thread = threading.Thread(target=self.proxy.serve_forever)
        thread.start()
        self.addCleanup(self.proxy.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.proxy.shutdown)

    def comply(self, form, *words):
        done = subprocess.run(
            [sys.executable, "-m", "llm_comply.cli", "-u", f"http://127.0.0.1:{self.proxy.server_port}/v1", "-k", KEY,
             "-m", "tales", "--json", "-v", "--format", form, *words], capture_output=True, text=True, timeout=280)
        results = json.loads(done.stdout)["results"]
        self.assertGreater(len(results), 7, done.stderr)
        passed = 0
        for one in results:
            with self.subTest(one["id"]):
                if one["id"] in NOT_OURS:
                    self.assertEqual(one["status"], "failed", "the server does it by now; it is no exception any more")
                elif one["status"] != "skipped":
                    self.assertEqual((one["status"], one.get("errors", [])), ("passed", []))
                    passed += 1
        return passed

    def test_chats_pass_each_check(self):
        self.assertEqual(self.comply("openai-chat"), 6)

    def test_responses_pass_each_check(self):
        self.assertEqual(self.comply("open-responses"), 10)

    def test_messages_pass_each_check(self):
        self.assertEqual(self.comply("anthropic", "--auth-header", "x-api-key", "--no-bearer", "-H",
                                     "anthropic-version:2023-06-01"), 7)


if __name__ == "__main__":
    main()
