"""packaging/deploy/slurm/bitnet-batch.sbatch, by the shell and the variables that Slurm would give it."""

import json
import os
import signal
import subprocess

import cluster
import support

SCRIPT = os.path.join(cluster.SOURCE, "packaging", "deploy", "slurm", "bitnet-batch.sbatch")
N_SHARDS = 3
PROMPTS = ["Once upon a time", "The fox said,", "One day, a small rabbit", "It was dark, and"]


class Slurm(support.Case):
    def setUp(self):
        super().setUp()
        self.requests = [{"custom_id": f"r{i}", "url": "/v1/completions",
                          "body": {"prompt": PROMPTS[i % 4], "temperature": 0, "max_tokens": 60 + i % 7, "ignore_eos": True}}
                         for i in range(120)]
        self.path("in.jsonl", "".join(json.dumps(x) + "\n" for x in self.requests))
        tools = self.path("tools/scontrol", '#!/bin/sh\necho "$@" >>"$0.log"\n')
        os.chmod(tools, 0o755)
        self.tools = os.path.dirname(tools)

    def start(self, shard, **more):
        env = self.environment({
            "BITNET": support.PROGRAM, "PATH": self.tools + ":" + os.environ["PATH"], "SLURM_ARRAY_JOB_ID": "77",
            "SLURM_ARRAY_TASK_ID": str(shard), "SLURM_ARRAY_TASK_COUNT": str(N_SHARDS), **more})
        return subprocess.Popen(["sh", SCRIPT, "in.jsonl", "out", "-np", "4"], cwd=self.home, env=env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def end(self, job):
        """Exit code and stderr."""
        err = job.communicate(timeout=support.TIMEOUT_S)[1]
        return job.returncode, err

    def lines(self, shard):
        """Whole lines of the shard's answers."""
        try:
            with open(self.path(f"out-{shard}.jsonl"), encoding="utf-8") as file:
                return [x for x in file if x.endswith("\n")]
        except FileNotFoundError:
            return []

    def scontrol(self):
        try:
            with open(os.path.join(self.tools, "scontrol.log"), encoding="ascii") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def assert_answered(self):
        answers = [json.loads(x) for i in range(N_SHARDS) for x in self.lines(i)]
        self.assertEqual(sorted(x["custom_id"] for x in answers), sorted(x["custom_id"] for x in self.requests))
        alone = self.path("alone.jsonl")
        self.ok("batch", self.path("in.jsonl"), alone)
        with open(alone, encoding="utf-8") as file:
            want = {x["custom_id"]: x["response"]["body"]["choices"] for x in map(json.loads, file)}
        self.assertEqual({x["custom_id"]: x["response"]["body"]["choices"] for x in answers}, want)

    @support.needs_backend
    def test_each_request_has_one_answer_whatever_ends_a_job(self):
        self.assertEqual(self.end(self.start(0))[0], 0)
        killed = self.start(1)
        cluster.wait_for(lambda: self.lines(1), "the second shard has answers")
        os.killpg(killed.pid, signal.SIGKILL)
        self.assertEqual(self.end(killed)[0], -signal.SIGKILL)
        told = self.start(2)  # its time ends
        cluster.wait_for(lambda: self.lines(2), "the third shard has answers")
        told.send_signal(signal.SIGTERM)
        code, err = self.end(told)
        self.assertEqual((code, self.scontrol()), (0, "requeue 77_2\n"), err)
        for shard in (1, 2):
            self.assertEqual(self.end(self.start(shard))[0], 0)
        self.assert_answered()

    def test_what_is_wrong_is_said(self):
        for more, message in (({"SLURM_ARRAY_TASK_ID": ""}, "expected a job of an array"),
                              ({"SLURM_ARRAY_TASK_ID": "3"}, "expected numbers from 0 on"),
                              ({"SLURM_ARRAY_TASK_ID": "3", "BITNET_SHARDS": "3"}, "expected numbers from 0 on")):
            code, err = self.end(self.start(0, **more))
            self.assertEqual(code, 2, err)
            self.assertIn(message, err)
        self.assertEqual(self.scontrol(), "")

    @support.needs_backend
    def test_a_failure_is_the_jobs(self):
        self.path("in.jsonl", b"\xff\n")
        os.mkdir(self.path("out-0.jsonl"))
        code, err = self.end(self.start(0))
        self.assertNotIn(code, (0, 130), err)
        self.assertEqual(self.scontrol(), "")


if __name__ == "__main__":
    support.main()
