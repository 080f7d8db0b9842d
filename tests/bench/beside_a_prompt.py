#!/usr/bin/env python3
"""Measures how long running sequences wait while a long prompt comes in.

Usage: tests/bench/beside_a_prompt.py MODEL|URL [--streams 8] [--prompt 4096] [--tokens 4000] [--rounds 3] [--threads N]

Each round computes the prompt alone, then generates with all streams, and submits another prompt of that length in
the midst of them. It prints a median over the rounds of the gaps between the tokens of a stream, before, beside and
behind the prompt (p50, p99, the longest, in ms), and of the prompt's time to its first token, alone and beside the
streams. Streams grow meanwhile, and their gaps with them: beside a long prompt, those behind it are to compare with. A URL, http://127.0.0.1:8080, is one of a server of OpenAI's API that takes tokens as a prompt and has room for
them; a gap is then one between two pieces of text. MODEL needs the Python package (PYTHONPATH=python/src,
LD_LIBRARY_PATH=build/release/lib). The machine should be idle otherwise.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
import urllib.parse


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def prompt_of(length, seed):
    chance = random.Random(seed)
    return [chance.randrange(1000, 8000) for _ in range(length)]


class InProcess:
    """The engine of the Python package."""

    def __init__(self, model, how):
        import bitnet
        self.engine = bitnet.AsyncEngine(model, n_context=how.prompt + how.tokens + 200, max_sequences=how.streams + 1)

    async def tokens(self, prompt, most):
        async with self.engine.generate(prompt, max_tokens=most, temperature=0, ignore_eos=True,
                                        logprobs=most > 1) as request:
            async for token in request:
                yield token
            await request.finish()

    async def close(self):
        await self.engine.aclose()


class OverHttp:
    """A server of OpenAI's API."""

    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)

    async def tokens(self, prompt, most):
        reader, writer = await asyncio.open_connection(self.url.hostname, self.url.port)
        body = json.dumps({"prompt": prompt, "max_tokens": most, "temperature": 0, "ignore_eos": True, "stream": True}).encode()
        writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: {self.url.netloc}\r\nContent-Type: application/json\r\n"
                     f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            status = await reader.readline()
            if b" 200 " not in status:
                raise SystemExit(status + await reader.read())
            async for line in reader:
                if line.startswith(b"data: {"):
                    yield line
        finally:
            writer.close()

    async def close(self):
        pass


async def first_token(client, prompt):
    """Seconds until the first token of the answer comes."""
    began, took = time.perf_counter(), None
    async for _ in client.tokens(prompt, 1):
        took = took or time.perf_counter() - began
    return took or time.perf_counter() - began


async def stream(client, seed, most, times, stop):
    """Appends the time at which each token came, until `stop` is set."""
    async for _ in client.tokens(prompt_of(16, seed), most):
        times.append(time.perf_counter())
        if stop.is_set():
            return


def gaps_within(streams, begin, end):
    """Gaps in ms that ended within that time, of all streams."""
    return [1e3 * (b - a) for times in streams for a, b in zip(times, times[1:]) if begin < b <= end]


async def one_round(make_client, how, seed):
    client = make_client()
    try:
        alone_s = await first_token(client, prompt_of(how.prompt, seed))
        streams, stop = [[] for _ in range(how.streams)], asyncio.Event()
        tasks = [asyncio.create_task(stream(client, seed + 1 + i, how.tokens, times, stop))
                 for i, times in enumerate(streams)]
        while min(len(times) for times in streams) < 8:
            await asyncio.sleep(0.01)
        begin = time.perf_counter()
        await asyncio.sleep(how.seconds)
        submitted = time.perf_counter()
        beside_s = await first_token(client, prompt_of(how.prompt, seed + 1000))
        end = time.perf_counter()
        await asyncio.sleep(how.seconds)
        stop.set()
        await asyncio.gather(*tasks)
    finally:
        await client.close()
    if min(len(times) for times in streams) >= how.tokens:
        raise SystemExit(f"the streams ended before the measurement, after {how.tokens} tokens: give more with --tokens")
    rows = [gaps_within(streams, *span) for span in ((begin, submitted), (submitted, end), (end, end + how.seconds))]
    return [[percentile(gaps, 0.5), percentile(gaps, 0.99), max(gaps)] for gaps in rows], alone_s, beside_s


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL|URL")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=4096, help="tokens")
    parser.add_argument("--tokens", type=int, default=4000, help="of a stream at most; it is ended before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of the streams before the prompt comes, and behind it")
    parser.add_argument("--threads", type=int, default=0)
    how = parser.parse_args()
    if how.model.startswith("http://"):
        rounds = [asyncio.run(one_round(lambda: OverHttp(how.model), how, 10000 * i)) for i in range(how.rounds)]
    else:
        import bitnet
        with bitnet.Engine("cpu", n_threads=how.threads) as engine, \
                bitnet.Model(how.model, engine=engine) as model:
            rounds = [asyncio.run(one_round(lambda: InProcess(model, how), how, 10000 * i)) for i in range(how.rounds)]
    for name, at in (("before the prompt", 0), ("beside it", 1), ("behind it", 2)):
        p50, p99, longest = (statistics.median(r[0][at][k] for r in rounds) for k in range(3))
        print(f"{how.streams} streams {name}: gaps p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {longest:.1f} ms")
    alone, beside = (statistics.median(r[k] for r in rounds) for k in (1, 2))
    print(f"a prompt of {how.prompt} tokens: first token after {alone:.2f} s alone, {beside:.2f} s beside the streams, "
          f"{beside / alone:.2f} times as long")


if __name__ == "__main__":
    main()
