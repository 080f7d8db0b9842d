"""`bitnet serve` as a deployment of Ray Serve: each replica starts the program and passes requests on to it.

    serve run serve_bitnet:app                             # the demo model
    BITNET_MODEL=/models/m.gguf serve run serve_bitnet:app

A program that ends is started again by its replica, and the requests that had no byte of an answer yet are sent
again. Where a whole replica dies, Ray Serve starts another one, and clients ask again, as for any deployment.
"""

import asyncio
import ctypes
import os
import shlex
import signal
import subprocess
import tempfile
import time

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

PR_SET_PDEATHSIG = 1
START_S = 600  # a large model takes minutes
TRIES = 5
# Headers of one connection, which the server in front replaces.
HOP_FIELDS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"}


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@serve.deployment(max_ongoing_requests=256, health_check_period_s=5, graceful_shutdown_timeout_s=60)
class Bitnet:
    def __init__(self, options=(), program="bitnet"):
        self.folder = tempfile.TemporaryDirectory(prefix="bitnet-")
        self.socket = os.path.join(self.folder.name, "bitnet.sock")
        self.command = [program, "serve", "--host", self.socket, "--drain-timeout", "45", *options]
        self.process, self.turn, self.client = None, asyncio.Lock(), None

    async def be_ready(self):
        """Starts the program, unless it runs, and waits until it takes requests."""
        async with self.turn:
            if self.client is None:
                connector = aiohttp.UnixConnector(path=self.socket, limit=0)
                self.client = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
            end, n_starts = time.monotonic() + START_S, 0
            while time.monotonic() < end:
                if self.process is None or self.process.poll() is not None:
                    # A process that ends before it is ready cannot run; one that was killed is started again.
                    if n_starts > 0 and (self.process.returncode >= 0 or n_starts == TRIES):
                        break
                    self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)
                    n_starts += 1
                try:
                    async with self.client.get("http://bitnet/ready") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)
            raise RuntimeError(f"{' '.join(self.command)}: it is not ready; its log says why")

    async def check_health(self):
        await self.be_ready()

    async def __call__(self, request: Request):
        body = await request.body()
        fields = {x: y for x, y in request.headers.items() if x not in HOP_FIELDS}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        for _ in range(TRIES):
            await self.be_ready()
            try:
                answer = await self.client.request(request.method, "http://bitnet" + path, data=body, headers=fields)
                first = await answer.content.readany()
            except aiohttp.ClientError:
                continue  # no byte of the answer came, so the request can be sent again
            return StreamingResponse(self.pieces(answer, first), answer.status,
                                     {x: y for x, y in answer.headers.items() if x.lower() not in HOP_FIELDS})
        return JSONResponse({"error": {"message": "the server does not answer; try again", "type": "unavailable_error",
                                       "param": None, "code": None}}, 503, {"Retry-After": "1"})

    @staticmethod
    async def pieces(answer, first):
        async with answer:
            while first:
                yield first
                first = await answer.content.readany()

    def __del__(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()  # it answers running requests first
            self.process.wait()


app = Bitnet.options(num_replicas=int(os.environ.get("BITNET_REPLICAS", "1"))).bind(
    shlex.split(os.environ.get("BITNET_OPTIONS", "")), os.environ.get("BITNET_PROGRAM", "bitnet"))
