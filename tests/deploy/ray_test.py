"""packaging/deploy/ray on a Ray cluster of this machine: workers are killed, and each request has one answer."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import cluster
import support

FOLDER = os.path.join(cluster.SOURCE, "packaging", "deploy", "ray")
sys.path.insert(0, FOLDER)
cluster.use_packages()
try:
    import ray
    from ray import serve
    import batch_bitnet
    import serve_bitnet
except ImportError as why:
    ray = None
    MISSING = f"there is no ray ({why.name}); pip install -r tests/deploy/requirements.txt"

PROMPTS = ["Once upon a time", "The fox said,", "One day, a small rabbit", "It was dark, and"]
N, SHARDS = 300, 3


def setUpModule():
    if ray is None:
        raise unittest.SkipTest(MISSING)
    if not support.demo_model():
        raise unittest.SkipTest("models/ holds no TinyTales*.gguf")
    home = tempfile.TemporaryDirectory(prefix="bitnet-ray-", ignore_cleanup_errors=True)
    unittest.addModuleCleanup(home.cleanup)
    for name, value in support.environment(home.name, {"BITNET_MODEL": support.demo_model()}).items():
        os.environ[name] = value
    os.environ.update(RAY_DEDUP_LOGS="0", RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", PYTHONPATH=FOLDER)
    ray.init(num_cpus=SHARDS, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False


def tearDownModule():
    if ray is not None:
        ray.shutdown()


def children_that(words):
    """Process ids whose command lines have all these words."""
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                line = file.read().replace("\0", " ")
        except OSError:
            continue
        if all(x in line for x in words):
            out.append(int(pid))
    return out


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])


@unittest.skipIf(ray is None, "no ray")
class Batch(support.Case):
    def test_each_request_has_one_answer_though_workers_are_killed(self):
        lines = [{"custom_id": f"r{i}", "url": "/v1/completions",
                  "body": {"prompt": PROMPTS[i % 4], "temperature": 0, "max_tokens": 150, "ignore_eos": True}}
                 for i in range(N)]
        source, folder = self.path("in.jsonl", "".join(json.dumps(x) + "\n" for x in lines)), self.path("out")
        killed = []

        def kill_workers():
            for shard in (0, 1):
                mine = []
                cluster.wait_for(lambda: mine.extend(children_that([source, f"--shard {shard}/"])) or mine, "it runs")
                part = os.path.join(folder, f"part-{shard}.jsonl")
                cluster.wait_for(lambda: os.path.exists(part) and os.path.getsize(part) > 3000, "it has answers")
                os.kill(parent_of(mine[0]), signal.SIGKILL)
                killed.append(shard)

        killer = threading.Thread(target=kill_workers)
        killer.start()
        answers = batch_bitnet.answer(source, folder, SHARDS, ["-np", "2"], support.PROGRAM)
        killer.join()
        self.assertEqual(killed, [0, 1])
        self.assertEqual(answers.count(), N)
        files = sorted(os.listdir(folder))
        self.assertEqual(files, [f"part-{i}.jsonl" for i in range(SHARDS)])
        got = []
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                got += map(json.loads, file)
        self.assertEqual(sorted(x["custom_id"] for x in got), sorted(x["custom_id"] for x in lines))
        texts = {}
        for one in got:
            texts.setdefault(int(one["custom_id"][1:]) % 4, set()).add(one["response"]["body"]["choices"][0]["text"])
        self.assertEqual([len(x) for x in texts.values()], [1] * 4, "each prompt has the text that it always has")

    def test_a_failure_of_the_program_is_shown(self):
        source = self.path("in.jsonl", "")
        with self.assertRaises(Exception) as why:
            batch_bitnet.answer(source, self.path("out"), 2, ["--no-such-option"], support.PROGRAM)
        self.assertIn("no-such-option", str(why.exception))


@unittest.skipIf(ray is None, "no ray")
class Serve(support.Case):
    def test_a_program_that_is_killed_costs_no_request(self):
        port = cluster.free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        app = serve_bitnet.Bitnet.bind(["-np", "4"], support.PROGRAM)
        serve.run(app)
        self.addCleanup(serve.shutdown)
        address = ("127.0.0.1", port)
        body = {"temperature": 0, "max_tokens": 60, "ignore_eos": True}
        want = {}
        for prompt in PROMPTS:
            status, text = cluster.ask(address, "POST", "/v1/completions", {"prompt": prompt, **body})
            self.assertEqual(status, 200, text)
            want[prompt] = json.loads(text)["choices"][0]["text"]
        load = cluster.Load(address, PROMPTS, want, body, 4)
        for _ in range(2):
            time.sleep(1)  # of load between two kills
            (program,) = children_that(["bitnet.sock", " serve "])
            os.kill(program, signal.SIGKILL)
            cluster.wait_for(lambda: [x for x in children_that(["bitnet.sock", " serve "]) if x != program],
                             "it is started again")
        time.sleep(1)  # of load after the last kill
        load.stop()
        self.assertEqual(load.failures, [])
        self.assertGreater(load.n_answers, 20)
        status, text = cluster.ask(address, "POST", "/v1/completions", {"prompt": "a", **body, "stream": True})
        self.assertEqual((status, text.rstrip().rpartition("\n")[2]), (200, "data: [DONE]"))
        status, text = cluster.ask(address, "POST", "/v1/completions", {})
        self.assertEqual((status, json.loads(text)["error"]["param"]), (400, "prompt"))

    def test_a_program_that_dies_behind_the_look_at_it_is_started_again(self):
        replica = serve_bitnet.Bitnet.func_or_class(["-np", "2"], support.PROGRAM)
        broken = serve_bitnet.Bitnet.func_or_class(["--no-such-option"], support.PROGRAM)

        async def kill_behind_the_look():
            await replica.be_ready()
            first, look, n_looks = replica.process, replica.process.poll, []

            def poll():
                n_looks.append(1)
                if len(n_looks) == 1:
                    os.kill(first.pid, signal.SIGKILL)  # kill() would look, too
                    return None
                first.wait()
                return look()

            first.poll = poll
            await replica.be_ready()
            self.assertIsNot(replica.process, first)
            with self.assertRaises(RuntimeError):
                await broken.be_ready()
            for one in (replica, broken):
                await one.client.close()

        asyncio.run(kill_behind_the_look())
        replica.process.kill()
        replica.process.wait()


if __name__ == "__main__":
    support.main()
