"""Replicas of `bitnet serve` behind HAProxy: each in a network of its own where that may be made, else at ports of 127.0.0.1."""

import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

SOURCE = os.environ.get("BITNET_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "cli"))
import support  # noqa: E402  beside the tests of the command line

PACKAGES = os.path.join(SOURCE, "build", "deploy-venv")
CONFIG = os.path.join(SOURCE, "packaging", "deploy", "haproxy.cfg")
CLONE_NEWNET = 0x40000000
WAIT_S = 20


def use_packages():
    """The script begins anew with the Python that has the packages of requirements.txt, where the lane made one."""
    python = os.path.join(PACKAGES, "bin", "python")
    if os.path.exists(python) and os.path.realpath(sys.prefix) != os.path.realpath(PACKAGES):
        os.execv(python, [python, "-B", *sys.argv])


def may_make_networks():
    """Moves this process, with its threads and children, into a new network namespace. False: not permitted."""
    if not all(shutil.which(x) for x in ("ip", "nsenter", "unshare")):
        return False
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return subprocess.run(["ip", "link", "add", "hub", "type", "bridge"], check=False).returncode == 0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_for(is_so, what):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {WAIT_S} s: {what}")


def ask(address, method, path, body=None, fields=None):
    """Status and body."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json", **(fields or {})})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Replica:
    def __init__(self, home, address, holder):
        self.home, self.address, self.holder, self.process = home, address, holder, None

    def start(self):
        enter = ["nsenter", "-t", str(self.holder.pid), "-n"] if self.holder else []
        host, port = self.address
        self.process = subprocess.Popen(
            [*enter, support.PROGRAM, "serve", "--host", host, "--port", str(port), "--allow-unauthenticated", "-np", "4"],
            env=support.environment(self.home, {"BITNET_MODEL": support.demo_model()}), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.is_ready, f"{self.address} is ready")

    def is_ready(self):
        try:
            return ask(self.address, "GET", "/ready")[0] == 200
        except OSError:
            return False

    def end(self, how):
        """Its exit code."""
        self.process.send_signal(how)
        return self.process.wait(WAIT_S * 3)

    def count(self, name):
        text = ask(self.address, "GET", "/metrics")[1]
        return sum(float(x) for x in re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.M))


class Cluster:
    """Three replicas; `haproxy` is started with the configuration that is shipped."""

    def __init__(self, home):
        self.home, self.proxy, self.holders, self.replicas = home, None, [], []
        self.has_networks = may_make_networks()
        with open(CONFIG, encoding="utf-8") as file:
            self.config = file.read()
        places = re.findall(r"^ *server \S+ ([\d.]+):(\d+)$", self.config, re.M)
        assert len(places) == 3, places
        self.address = ("127.0.0.1", int(re.search(r"bind :(\d+)", self.config)[1]))
        if self.has_networks:
            for command in ("addr add 10.0.0.1/24 dev hub", "link set hub up"):
                subprocess.run(["ip", *command.split()], check=True)
        else:
            self.address = ("127.0.0.1", free_port())
            self.config = self.config.replace("bind :", f"bind 127.0.0.1:{self.address[1]} #")
        for host, port in places:
            self.add(host, int(port))

    def add(self, host, port):
        if self.has_networks:
            holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
            self.holders.append(holder)
            own = os.readlink("/proc/self/ns/net")
            wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own, "it has a network")
            name = f"to-{len(self.holders)}"
            for command in (f"link add {name} type veth peer name eth0 netns {holder.pid}",
                            f"link set {name} master hub", f"link set {name} up"):
                subprocess.run(["ip", *command.split()], check=True)
            for command in (f"addr add {host}/24 dev eth0", "link set eth0 up", "link set lo up"):
                subprocess.run(["nsenter", "-t", str(holder.pid), "-n", "ip", *command.split()], check=True)
            self.replicas.append(Replica(self.home, (host, port), holder))
        else:
            here = ("127.0.0.1", free_port())
            self.config = self.config.replace(f"{host}:{port}", f"{here[0]}:{here[1]}")
            self.replicas.append(Replica(self.home, here, None))

    def start(self, change=lambda config: config):
        """`change` is given the configuration."""
        path = os.path.join(self.home, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(change(self.config))
        for one in self.replicas:
            if one.process is None or one.process.poll() is not None:
                one.start()
        self.proxy = subprocess.Popen(["haproxy", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.answers, "HAProxy answers")

    def answers(self):
        try:
            return ask(self.address, "GET", "/health")[0] == 200
        except OSError:
            return False

    def count(self, name):
        return sum(one.count(name) for one in self.replicas)

    def stop(self):
        """HAProxy and the replicas; the networks stay."""
        for process in [self.proxy, *(x.process for x in self.replicas)]:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def close(self):
        self.stop()
        for holder in self.holders:
            holder.kill()
            holder.wait()


class Load:
    """Clients that send one request after the other until they are stopped; `failures` has the errors."""

    def __init__(self, address, prompts, want, body, n_clients=8):
        self.address, self.prompts, self.want, self.body = address, prompts, want, body
        self.failures, self.n_answers, self.ends = [], 0, False
        self.clients = [threading.Thread(target=self.run, args=(i,)) for i in range(n_clients)]
        self.lock = threading.Lock()
        for one in self.clients:
            one.start()

    def run(self, client):
        for i in range(client, 1 << 30):
            if self.ends:
                return
            prompt = self.prompts[i % len(self.prompts)]
            try:
                status, text = ask(self.address, "POST", "/v1/completions", {"prompt": prompt, **self.body},
                                   {"X-Session-Id": f"session {i % 64}"})
                said = json.loads(text)["choices"][0]["text"] if status == 200 else text
                wrong = None if status == 200 and said == self.want[prompt] else (status, said)
            except (OSError, http.client.HTTPException, ValueError) as why:
                wrong = repr(why)
            with self.lock:
                self.n_answers += 1
                if wrong:
                    self.failures.append(wrong)

    def stop(self):
        self.ends = True
        for one in self.clients:
            one.join()
