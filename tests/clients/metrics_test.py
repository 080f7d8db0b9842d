"""Prometheus' own tool reads what /metrics says; curl and wrk, where they are, load the server within a bound."""

import re
import shutil
import subprocess
import unittest

from client_case import GREEDY, KEY, PROMPT, Client, main, needs


def needs_program(name, package):
    return unittest.skipUnless(shutil.which(name), f"there is no {name}; apt-get install {package}")


@needs()
class Metrics(Client):
    @needs_program("promtool", "prometheus")
    def test_are_clean_to_promtool(self):
        fields = {"Authorization": "Bearer " + KEY}
        self.server.ask("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY}, fields)
        text = self.server.ask("GET", "/metrics", None, fields)[2]
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
        # The names are vLLM's, whose colon the tool would leave to rules, and one of whose histograms is called
        # a total; it finds nothing else.
        of_vllm = (r"vllm:\w+ metric names should not contain ':'|vllm:iteration_tokens_total non-counter metrics should "
                   r'not have "_total" suffix')
        others = [x for x in done.stderr.splitlines() if not re.fullmatch(of_vllm, x)]
        self.assertEqual(others, [], done.stderr)
        self.assertIn(done.returncode, (0, 3))  # 3: found as above; 1: the text cannot be read

    @needs_program("wrk", "wrk")
    def test_a_load_of_wrk_is_answered(self):
        done = subprocess.run(["wrk", "-t1", "-c16", "-d2s", self.url + "/health"], capture_output=True, text=True,
                              timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Non-2xx", done.stdout)
        self.assertNotIn("Socket errors", done.stdout)
        self.assertGreater(float(re.search(r"Requests/sec: +([\d.]+)", done.stdout)[1]), 100, done.stdout)

    @needs_program("curl", "curl")
    def test_curl_gets_a_stream(self):
        done = subprocess.run(["curl", "-sSN", "--fail", "--max-time", "30", "-H", "Authorization: Bearer " + KEY, "-H",
                               "Content-Type: application/json", self.url + "/v1/completions", "-d",
                               '{"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0, "stream": true}'],
                              capture_output=True, text=True, timeout=40)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith("data: [DONE]\n\n"), done.stdout)


if __name__ == "__main__":
    main()
