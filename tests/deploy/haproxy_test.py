"""packaging/deploy/haproxy.cfg before three replicas: kill -9 and restarts that no request notices, and warm caches."""

import http.client
import json
import os
import shutil
import signal
import time
import unittest

import cluster
import support

PROMPTS = ["Once upon a time", "The fox said,", "One day, a small rabbit", "It was dark, and"]
BODY = {"temperature": 0, "max_tokens": 60, "ignore_eos": True}
WORDS = "the fox and the rabbit went home and saw a big red hat in the sun by the old tree".split()


def setUpModule():
    if not shutil.which("haproxy"):
        raise unittest.SkipTest("there is no haproxy; apt-get install haproxy")


@support.needs_backend
class Proxy(support.Case):
    @classmethod
    def setUpClass(cls):
        folder = support.tempfile.TemporaryDirectory(prefix="bitnet-deploy-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.cluster = cluster.Cluster(folder.name)
        cls.addClassCleanup(cls.cluster.close)
        print("networks of their own" if cls.cluster.has_networks else "ports of 127.0.0.1", flush=True)

    def start(self, change=lambda config: config):
        self.cluster.start(change)
        self.addCleanup(self.cluster.stop)
        first = self.cluster.replicas[0]
        self.want = {}
        for prompt in PROMPTS:
            text = cluster.ask(first.address, "POST", "/v1/completions", {"prompt": prompt, **BODY})[1]
            self.want[prompt] = json.loads(text)["choices"][0]["text"]

    def load(self):
        return cluster.Load(self.cluster.address, PROMPTS, self.want, BODY)

    def assert_undisturbed(self, load):
        load.stop()
        self.assertEqual(load.failures, [])
        self.assertGreater(load.n_answers, 30)

    def test_kill_9_fails_no_request(self):
        self.start()
        load = self.load()
        for victim in self.cluster.replicas[:2]:
            time.sleep(0.7)  # of load with all replicas
            cluster.wait_for(lambda: victim.count("vllm:num_requests_running") > 0, "it computes")
            self.assertEqual(victim.end(signal.SIGKILL), -signal.SIGKILL)
            time.sleep(0.7)  # of load without this one
            victim.start()
        self.assert_undisturbed(load)

    def test_a_rolling_restart_fails_no_request(self):
        self.start()
        load = self.load()
        for one in self.cluster.replicas:
            cluster.wait_for(lambda: one.count("vllm:request_success_total") > 20, "it is used again")
            self.assertEqual(one.end(signal.SIGTERM), 0)
            one.start()
        for one in self.cluster.replicas:
            cluster.wait_for(lambda: one.count("vllm:request_success_total") > 20, "all are used")
        self.assert_undisturbed(load)

    def test_a_stream_that_has_begun_is_not_sent_again(self):
        self.start()
        connection = http.client.HTTPConnection(*self.cluster.address, timeout=60)
        ask = {"prompt": PROMPTS[0], "n": 64, "max_tokens": 400, "stream": True, "ignore_eos": True}
        connection.request("POST", "/v1/completions", json.dumps(ask), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        begin = answer.read(100)
        (at,) = [x for x in self.cluster.replicas if x.count("vllm:num_requests_running")]
        at.end(signal.SIGKILL)
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)) as why:
            answer.read()
        rest = getattr(why.exception, "partial", b"")
        self.assertNotIn(b"[DONE]", begin + rest)
        connection.close()
        time.sleep(0.2)  # in which a request that is sent again would come
        others = [x for x in self.cluster.replicas if x is not at]
        self.assertEqual([x.count("bitnet_requests_accepted_total") for x in others],
                         [len(PROMPTS) if x is self.cluster.replicas[0] else 0 for x in others])

    def share_of_hits(self, by_header):
        """Of the tokens of conversations that grow, what was known where they came."""
        n_sessions, n_turns = 11, 5  # a number that three replicas do not divide
        texts = [f"Chat {i}. " for i in range(n_sessions)]
        for turn in range(n_turns):
            for i in range(n_sessions):
                texts[i] += " ".join(WORDS[(i + turn + j) % len(WORDS)] for j in range(70)) + ". "
                fields = {"X-Session-Id": f"chat-{i}"} if by_header else {}
                status, text = cluster.ask(self.cluster.address, "POST", "/v1/completions",
                                           {"prompt": texts[i], "max_tokens": 1, "temperature": 0}, fields)
                self.assertEqual(status, 200, text)
        asked = self.cluster.count("vllm:prefix_cache_queries_total")
        return self.cluster.count("vllm:prefix_cache_hits_total") / asked

    def test_sessions_find_their_prefixes(self):
        shares = {}
        for name, by_header, change in (
                ("by session", True, lambda x: x), ("by begin", False, lambda x: x),
                ("in turn", True, lambda x: x.replace("balance hash var(txn.session)", "balance roundrobin"))):
            self.start(change)
            shares[name] = self.share_of_hits(by_header)
            self.cluster.stop()
        print("known tokens:", ", ".join(f"{x} {y:.0%}" for x, y in shares.items()), flush=True)
        self.assertGreater(shares["by session"], shares["in turn"] + 0.1)
        self.assertGreater(shares["by begin"], shares["in turn"] + 0.1)


if __name__ == "__main__":
    support.main()
