"""aiperf, a generator of load, runs to its end without a failed request: chats, completions and messages, a sweep, embeddings."""

import glob
import json
import os
import subprocess
import sys

from client_case import KEY, Client, main, needs, support

N_REQUESTS = 24


@needs("aiperf")
class AiPerf(Client):
    OPTIONS = (*Client.OPTIONS, "-np", "8", "--temp", "0")

    def tokenizer(self):
        """The demo model's vocabulary in the form of Hugging Face, from which aiperf makes prompts and counts tokens."""
        with open(os.path.join(support.SOURCE, "models", "tokenizer.json"), encoding="utf-8") as file:
            ours = json.load(file)
        self.path("tokenizer/tokenizer.json", json.dumps({
            "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "truncation": None,
            "padding": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                                               "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
            "model": {"type": "BPE", "vocab": {x: i for i, x in enumerate(ours["tokens"])},
                      "merges": [x if isinstance(x, str) else " ".join(x) for x in ours["merges"]]}}).encode())
        return os.path.dirname(self.path("tokenizer/tokenizer_config.json", json.dumps({
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}).encode()))

    def load(self, endpoint, *words):
        """The reports of a run, one for each step of a sweep."""
        to = os.path.join(self.home, "report")
        done = subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), "aiperf"), "profile", "--url", self.url, "--api-key", KEY,
             "--model", "tales", "--endpoint-type", endpoint, "--tokenizer", self.tokenizer(), "--random-seed", "1",
             "--request-count", str(N_REQUESTS), "--num-dataset-entries", str(N_REQUESTS), "--workers-max", "2",
             "--prompt-input-tokens-mean", "60", "--request-timeout-seconds", "60", "--ui-type", "none",
             "--output-artifact-dir", to, "--no-gpu-telemetry", "--no-server-metrics", *words],
            capture_output=True, text=True, timeout=280, cwd=self.home,
            env={**os.environ, "HOME": self.home})
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-6000:])
        reports = []
        for path in sorted(glob.glob(to + "/**/profile_export_aiperf.json", recursive=True)):
            with open(path, encoding="utf-8") as file:
                reports.append(json.load(file))
        return reports

    def assert_answered(self, report):
        self.assertEqual(report["request_count"]["avg"], N_REQUESTS)
        self.assertEqual(report.get("error_request_count") or {"avg": 0}, {"avg": 0})
        self.assertEqual(report.get("error_summary") or [], [])
        self.assertFalse(report.get("was_cancelled"))

    def test_a_sweep_of_streamed_chats_fails_no_request(self):
        before = self.server.ask("GET", "/metrics", None, {"Authorization": "Bearer " + KEY})[2]
        reports = self.load("chat", "--streaming", "--concurrency", "1,8", "--prompt-output-tokens-mean", "16",
                            "--extra-inputs", "ignore_eos:true", "--use-server-token-count")
        self.assertEqual(len(reports), 2)
        for report in reports:
            self.assert_answered(report)
            self.assertGreater(report["time_to_first_token"]["p99"], 0)
            self.assertEqual(report["output_sequence_length"]["avg"], 16)
        after = self.server.ask("GET", "/metrics", None, {"Authorization": "Bearer " + KEY})[2]
        self.assertNotEqual(before, after)

    def test_completions_and_messages_at_a_rate(self):
        for endpoint in ("completions", "messages", "responses"):
            with self.subTest(endpoint):
                (report,) = self.load(endpoint, "--streaming", "--request-rate", "20", "--prompt-output-tokens-mean", "8")
                self.assert_answered(report)

    def test_requests_for_embeddings_are_all_answered(self):
        (report,) = self.load("embeddings", "--concurrency", "4")
        self.assert_answered(report)


if __name__ == "__main__":
    main()
