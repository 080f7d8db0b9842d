"""packaging/deploy/slurm/bitnet-batch.sbatch: by the shell and the variables that Slurm gives it, and by Slurm itself."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

import cluster
import support

SCRIPT = os.path.join(cluster.SOURCE, "packaging", "deploy", "slurm", "bitnet-batch.sbatch")
N_SHARDS = 3
PROMPTS = ["Once upon a time", "The fox said,", "One day, a small rabbit", "It was dark, and"]


# One machine is all of the cluster. What a job is allowed expires at once, so that it can come again at once.
CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/ctld.pid
SlurmdPidFile={home}/d.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldLogFile={home}/ctld.log
SlurmdLogFile={home}/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Requests(support.Case):
    N = 120

    def setUp(self):
        super().setUp()
        self.requests = [{"custom_id": f"r{i}", "url": "/v1/completions",
                          "body": {"prompt": PROMPTS[i % 4], "temperature": 0, "max_tokens": 60 + i % 7, "ignore_eos": True}}
                         for i in range(self.N)]
        self.path("in.jsonl", "".join(json.dumps(x) + "\n" for x in self.requests))

    def lines(self, shard):
        """Whole lines of the shard's answers."""
        try:
            with open(self.path(f"out-{shard}.jsonl"), encoding="utf-8") as file:
                return [x for x in file if x.endswith("\n")]
        except FileNotFoundError:
            return []

    def assert_answered(self):
        answers = [json.loads(x) for i in range(N_SHARDS) for x in self.lines(i)]
        self.assertEqual(sorted(x["custom_id"] for x in answers), sorted(x["custom_id"] for x in self.requests))
        alone = self.path("alone.jsonl")
        self.ok("batch", self.path("in.jsonl"), alone)
        with open(alone, encoding="utf-8") as file:
            want = {x["custom_id"]: x["response"]["body"]["choices"] for x in map(json.loads, file)}
        self.assertEqual({x["custom_id"]: x["response"]["body"]["choices"] for x in answers}, want)


class Shell(Requests):
    def setUp(self):
        super().setUp()
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

    def scontrol(self):
        try:
            with open(os.path.join(self.tools, "scontrol.log"), encoding="ascii") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    @support.needs_backend
    def test_each_request_has_one_answer_whatever_ends_a_job(self):
        self.assertEqual(self.end(self.start(0))[0], 0)
        killed = self.start(1)
        cluster.wait_for(lambda: self.lines(1), "the second shard has answers")
        os.killpg(killed.pid, signal.SIGKILL)
        self.assertEqual(self.end(killed)[0], -signal.SIGKILL)
        ended = self.start(2)  # its time ends
        cluster.wait_for(lambda: self.lines(2), "the third shard has answers")
        ended.send_signal(signal.SIGTERM)
        code, err = self.end(ended)
        self.assertEqual((code, self.scontrol()), (0, "requeue 77_2\n"), err)
        for shard in (1, 2):
            self.assertEqual(self.end(self.start(shard))[0], 0)
        self.assert_answered()

    def test_invalid_environments_are_rejected(self):
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


@support.needs_backend
@unittest.skipUnless(all(map(shutil.which, ("slurmctld", "slurmd", "munged", "sbatch"))) and os.geteuid() == 0,
                     "there is no Slurm that root could start; apt-get install slurm-wlm munge")
class Cluster(Requests):
    N = 1500

    def run_tool(self, *words):
        done = subprocess.run(words, cwd=self.home, env=self.env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def setUp(self):
        super().setUp()
        os.chmod(self.home, 0o755)
        for name in ("munge/key", "state/x", "spool/x"):
            self.path(name, os.urandom(64))
        os.chmod(self.path("munge/key"), 0o600)
        text = CONF.format(home=self.home, host=socket.gethostname().partition(".")[0], cpus=os.cpu_count(),
                           ports=(cluster.free_port(), cluster.free_port()))
        self.env = self.environment({"SLURM_CONF": self.path("slurm.conf", text), "BITNET": support.PROGRAM})
        at = self.path("munge")
        self.run_tool("munged", f"--key-file={at}/key", f"--socket={at}/socket", f"--pid-file={at}/pid",
                      f"--log-file={at}/log", f"--seed-file={at}/seed", "--force")
        self.addCleanup(self.end_by, "munge/pid")
        for tool, pid in (("slurmctld", "ctld.pid"), ("slurmd", "d.pid")):
            self.run_tool(tool, "-f", self.path("slurm.conf"))
            self.addCleanup(self.end_by, pid)
        cluster.wait_for(lambda: "idle" in self.run_tool("sinfo", "-h"), "the cluster is there")

    def end_by(self, name):
        with open(self.path(name), encoding="ascii") as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGTERM)
        cluster.wait_for(lambda: not os.path.exists(f"/proc/{pid}"), f"{name} ends")

    def states(self):
        return dict(x.split() for x in self.run_tool("squeue", "-r", "-h", "-o", "%K %T").splitlines())

    def test_a_job_that_is_asked_to_end_comes_again(self):
        said = self.run_tool("sbatch", f"--array=0-{N_SHARDS - 1}", SCRIPT, "in.jsonl", "out", "-np", "4")
        job = said.split()[-1]
        cluster.wait_for(lambda: self.states().get("0") == "RUNNING" and self.lines(0), "the first job answers")
        self.run_tool("scancel", "--signal=TERM", "--batch", f"{job}_0")
        cluster.wait_for(lambda: self.states().get("0") == "PENDING", "it is in the queue again")
        n_first = len(self.lines(0))
        end = time.monotonic() + 120
        while self.states() and time.monotonic() < end:
            time.sleep(0.5)
        self.assertEqual(self.states(), {})
        self.assertLess(n_first, len(self.lines(0)))
        self.assert_answered()


if __name__ == "__main__":
    support.main()
