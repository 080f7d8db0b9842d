#!/usr/bin/env python3
"""Measures `bitnet serve`: beside the engine in process, with idle streams, slow clients and many prompts.

Usage: tests/bench/serve_reach.py MODEL [--only engine,idle,slow,soak] [--streams 16] [--rounds 5] [--prompts 10000]

engine  tokens/s and time to the first token of all streams at once, from the engine in process and over HTTP, in turn
idle    memory that 1 000 streams take which wait for their turn
slow    time of GET /health beside 10 000 connections that never send a whole request
soak    memory behind each tenth of prompts of which none is like another, and of prompts with a common begin

Needs BITNET_PROGRAM, the Python package (PYTHONPATH=python/src, LD_LIBRARY_PATH=build/release/lib) and an otherwise idle
machine. Prints JSON lines.
"""

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import statistics
import subprocess
import time

PROGRAM = os.environ.get("BITNET_PROGRAM", "bitnet")
N_PROMPT, N_TOKENS = 64, 128


def ids(seed, n, vocabulary):
    chance = random.Random(seed)
    return [chance.randrange(vocabulary // 8, vocabulary) for _ in range(n)]


class Server:
    def __init__(self, model, *options):
        self.process = subprocess.Popen([PROGRAM, "serve", "-m", model, "--port", "0", *options], text=True,
                                        stderr=subprocess.PIPE)
        for line in self.process.stderr:
            if found := re.match(r"listening on http://127.0.0.1:(\d+)", line):
                self.port = int(found[1])
                return
        raise SystemExit("the server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()

    def resident(self):
        """Bytes of memory."""
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def post(port, path, body):
    """A reader of the answer, behind its head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = json.dumps(body).encode()
    writer.write(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: close\r\n"
                 b"Content-Length: %d\r\n\r\n%s" % (path.encode(), len(content), content))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise SystemExit(head + await reader.read())
    return reader, writer


async def by_server(port, prompt, began):
    reader, writer = await post(port, "/v1/completions", {
        "prompt": prompt, "max_tokens": N_TOKENS, "temperature": 0, "ignore_eos": True, "stream": True})
    await reader.readuntil(b"data: ")
    first = time.perf_counter() - began
    while await reader.read(65536):
        pass
    writer.close()
    return first


async def by_engine(engine, prompt, began):
    first = None
    async with engine.generate(prompt, max_tokens=N_TOKENS, temperature=0, ignore_eos=True) as request:
        async for _ in request:
            first = first or time.perf_counter() - began
    return first


async def together(call, prompts):
    """Tokens/s of all, and the median of times to the first token."""
    began = time.perf_counter()
    firsts = await asyncio.gather(*(call(x, began) for x in prompts))
    return len(prompts) * N_TOKENS / (time.perf_counter() - began), statistics.median(firsts) * 1000


async def beside_the_engine(args):
    import bitnet
    model = bitnet.Model(args.model)
    rows = {"engine": [], "server": []}
    async with bitnet.AsyncEngine(model) as engine:
        with Server(args.model) as server:
            for i in range(args.rounds + 1):
                prompts = [ids(1000 * i + k, N_PROMPT, args.vocabulary) for k in range(args.streams)]
                for name, call in (("engine", lambda p, t: by_engine(engine, p, t)),
                                   ("server", lambda p, t: by_server(server.port, p, t))):
                    row = await together(call, prompts)
                    if i:  # the first round warms both up
                        rows[name].append(row)
    out = {name: [round(statistics.median(x), 2) for x in zip(*found)] for name, found in rows.items()}
    print(json.dumps({"measure": "engine", "streams": args.streams, "tokens_per_s_and_first_token_ms": out,
                      "server_share": round(out["server"][0] / out["engine"][0], 3)}), flush=True)


async def idle_streams(args, n=1000):
    with Server(args.model, "-np", "1") as server:
        body = {"prompt": ids(1, 4, args.vocabulary), "max_tokens": 400, "temperature": 0, "ignore_eos": True, "stream": True}
        await post(server.port, "/v1/completions", body)
        before = server.resident()
        streams = [await post(server.port, "/v1/completions", body) for _ in range(n)]
        print(json.dumps({"measure": "idle", "streams": len(streams),
                          "mib": round((server.resident() - before) / 2**20, 1)}), flush=True)
        for _, writer in streams:
            writer.close()


def health(port):
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
        one.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := one.recv(4096):
            answer += part
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(answer)
    return (time.perf_counter() - began) * 1000


def slow_clients(args, n=10_000):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Server(args.model) as server:
        before, clients, took = server.resident(), [], []
        for i in range(n):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.sendall((b"G", b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")[i % 2])
            clients.append(client)
            if i % 100 == 99:
                took.append(health(server.port))
        print(json.dumps({"measure": "slow", "connections": n, "health_ms": {
            "median": round(statistics.median(took), 2), "longest": round(max(took), 2)},
            "mib": round((server.resident() - before) / 2**20, 1)}), flush=True)
        for client in clients:
            client.close()


async def soak(args):
    with Server(args.model, "--kv-budget", "64") as server:
        common = ids(5, 48, args.vocabulary)
        for name, prompt_of in (("unique", lambda i: ids(i, 64, args.vocabulary)),
                                ("shared", lambda i: common + ids(i, 16, args.vocabulary))):
            resident = []
            for tenth in range(10):
                each = asyncio.Semaphore(32)

                async def one(i):
                    async with each:
                        reader, writer = await post(server.port, "/v1/completions",
                                                    {"prompt": prompt_of(i), "max_tokens": 1, "temperature": 0})
                        await reader.read()
                        writer.close()
                n = args.prompts // 10
                await asyncio.gather(*(one(tenth * n + i) for i in range(n)))
                resident.append(round(server.resident() / 2**20, 1))
            print(json.dumps({"measure": "soak", "prompts": name, "n": args.prompts, "resident_mib": resident}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--only", default="engine,idle,slow,soak")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--vocabulary", type=int, default=4096, help="token ids below this")
    args = parser.parse_args()
    for name in args.only.split(","):
        if name == "slow":
            slow_clients(args)
        else:
            asyncio.run({"engine": beside_the_engine, "idle": idle_streams, "soak": soak}[name](args))


if __name__ == "__main__":
    main()
