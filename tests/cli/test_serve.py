"""`bitnet serve`: OpenAI's API over HTTP, by a client of the standard library. Texts are judged by those of `bitnet run`."""

import base64
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading

import support
from support import PROGRAM, TIMEOUT_S, demo_model, needs_backend

PROMPT = "Once upon a time"
GREEDY = {"temperature": 0, "max_tokens": 8}
LONG = {"temperature": 0, "max_tokens": 400, "ignore_eos": True}
CHAT = [{"role": "user", "content": "Tell me a story."}]
TOOLS = [{"type": "function", "function": {"name": "feed", "parameters": {"type": "object", "properties": {}}}}]
METRIC = re.compile(r"^([a-zA-Z0-9_:]+)(?:\{(.*)\})? (\S+)$", re.M)


class Server:
    """The program, until it listens; what it wrote on stderr is in `lines`."""

    def __init__(self, home, *words, port="0", env=None):
        more = {"BITNET_MODEL": demo_model(), **(env or {})}
        words = ["serve", "--port", port, *words]
        self.process = subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd=home, env=support.environment(home, more))
        self.lines, self.port, self.address = [], 0, ""
        for raw in self.process.stderr:
            self.lines.append(raw.decode())
            found = re.match(r"listening on (\S+)", self.lines[-1])
            if found:
                self.address = found[1]
                self.port = int(self.address.rpartition(":")[2]) if "//" in self.address else 0
                break
        self.reader = threading.Thread(target=lambda: self.lines.extend(x.decode() for x in self.process.stderr))
        self.reader.start()

    def connect(self):
        if self.port:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=support.TIMEOUT_S)
        out = http.client.HTTPConnection("localhost", timeout=support.TIMEOUT_S)
        out.sock = socket.socket(socket.AF_UNIX)
        out.sock.connect(self.address.removeprefix("unix:"))
        return out

    def send(self, method, path, body=None, fields=None):
        """The answer, whose body is not read yet."""
        connection = self.connect()
        text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, text, {"Content-Type": "application/json", **(fields or {})})
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, fields=None):
        """Status, fields and body, of JSON where it is such."""
        connection, answer = self.send(method, path, body, fields)
        text = answer.read().decode()
        connection.close()
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status, answer.headers, json.loads(text) if is_json and text else text

    def post(self, path, **body):
        status, _, out = self.ask("POST", path, body)
        assert status == 200, (status, out)
        return out

    def chunks(self, path, **body):
        """The objects of a stream, whose end was as it has to be."""
        connection, answer = self.send("POST", path, {**body, "stream": True})
        assert answer.status == 200, (answer.status, answer.read())
        assert answer.headers["Content-Type"] == "text/event-stream", answer.headers
        events = answer.read().decode().split("\n\n")
        connection.close()
        assert events[-2:] == ["data: [DONE]", ""], events[-3:]
        return [json.loads(x.removeprefix("data: ")) for x in events[:-2] if not x.startswith(":")]

    def metrics(self):
        out = {}
        for name, labels, value in METRIC.findall(self.ask("GET", "/metrics")[2]):
            out[name] = out[name + "{" + labels + "}"] = float(value)
        return out

    def wait_for(self, is_so, what):
        support.wait_for(is_so, what, lambda: f"; {''.join(self.lines[-5:])}")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Exit code and all of stderr."""
        code = self.process.wait(TIMEOUT_S)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, "".join(self.lines)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.end()


class Serving(support.Case):
    """One server for all tests of a class."""

    OPTIONS = ()

    def setUp(self):
        super().setUp()
        cls = type(self)
        if "server" not in cls.__dict__:
            folder = support.tempfile.TemporaryDirectory(prefix="bitnet-cli-", ignore_cleanup_errors=True)
            cls.addClassCleanup(folder.cleanup)
            cls.server = Server(folder.name, *cls.OPTIONS)
            cls.addClassCleanup(cls.server.kill)

    def start(self, *words, **more):
        out = Server(self.home, *words, **more)
        self.addCleanup(out.kill)
        self.assertTrue(out.address, out.lines)
        return out

    def run_text(self, *words):
        return self.ok("run", "-p", PROMPT, "-n", "8", "--temp", "0", "--no-display-prompt", *words).text[:-1]

    def assert_error(self, status, code, param, path, body, message="", fields=None):
        got, _, out = self.server.ask("POST", path, body, fields)
        self.assertEqual(got, status, out)
        self.assertEqual(set(out["error"]) & {"message", "type", "param", "code"}, {"message", "type", "param", "code"})
        self.assertEqual((out["error"]["code"], out["error"]["param"]), (code, param), out)
        self.assertIn(message, out["error"]["message"])
        return out["error"]


@needs_backend
class Texts(Serving):
    def test_are_those_of_run(self):
        body = self.server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        self.assertEqual(body["choices"][0]["text"], self.run_text())
        self.assertEqual((body["object"], body["choices"][0]["finish_reason"]), ("text_completion", "length"))
        self.assertEqual(body["model"], os.path.basename(demo_model())[:-len(".gguf")])
        self.assertEqual(body["usage"]["completion_tokens"], 8)
        self.assertEqual(body["timings"]["predicted_n"], 8)
        same = self.server.post("/completions", prompt=PROMPT, model="of any name", **GREEDY)
        self.assertEqual((same["choices"], same["model"]), (body["choices"], "of any name"))

    def test_of_chats_are_those_of_run(self):
        alone = self.ok("run", "-cnv", "-p", CHAT[0]["content"], "-n", "8", "--temp", "0", "--no-display-prompt")
        body = self.server.post("/v1/chat/completions", messages=CHAT, **GREEDY)
        self.assertEqual(body["choices"][0]["message"]["content"], alone.text[:-1])
        self.assertEqual((body["object"], body["choices"][0]["message"]["role"]), ("chat.completion", "assistant"))

    def test_are_the_same_in_a_stream(self):
        ask = {"prompt": [PROMPT, "The fox said,"], "n": 2, "logprobs": 2, "seed": 7, "temperature": 1, "max_tokens": 12}
        whole = self.server.post("/v1/completions", **ask)["choices"]
        self.assertEqual([x["index"] for x in whole], [0, 1, 2, 3])
        got = [{"text": "", "tokens": [], "offsets": [], "logprobs": []} for _ in whole]
        for chunk in self.server.chunks("/v1/completions", **ask):
            for choice in chunk["choices"]:
                to = got[choice["index"]]
                to["text"] += choice["text"]
                if choice["logprobs"]:
                    to["tokens"] += choice["logprobs"]["tokens"]
                    to["offsets"] += choice["logprobs"]["text_offset"]
                    to["logprobs"] += choice["logprobs"]["token_logprobs"]
                to["finish_reason"] = choice["finish_reason"]
        for mine, all_of_it in zip(got, whole):
            self.assertEqual(mine["text"], all_of_it["text"])
            self.assertEqual(mine["finish_reason"], all_of_it["finish_reason"])
            for key, name in (("tokens", "tokens"), ("offsets", "text_offset"), ("logprobs", "token_logprobs")):
                self.assertEqual(mine[key], all_of_it["logprobs"][name], name)

    def test_that_are_known_are_not_computed_again(self):
        prompt = " ".join(["the fox and the rabbit went home"] * 20)
        first = self.server.post("/v1/completions", prompt=prompt, **GREEDY)
        again = self.server.post("/v1/completions", prompt=prompt, **GREEDY)
        cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(cached, 64)
        self.assertEqual(cached, again["timings"]["cache_n"])
        self.assertEqual(again["timings"]["prompt_n"] + cached, again["usage"]["prompt_tokens"])
        self.assertEqual(again["choices"], first["choices"])

    def test_are_those_of_run_for_many_clients_at_once(self):
        want, got = self.run_text(), []
        def ask():
            got.append(self.server.post("/v1/completions", prompt=PROMPT, **GREEDY)["choices"][0]["text"])
        clients = [threading.Thread(target=ask) for _ in range(24)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        self.assertEqual(got, [want] * 24)


@needs_backend
class Streams(Serving):
    def test_have_the_order_that_clients_expect(self):
        chunks = self.server.chunks("/v1/chat/completions", messages=CHAT, stream_options={"include_usage": True}, **GREEDY)
        first, *texts, last, usage = chunks
        self.assertEqual(first["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual(last["choices"][0]["delta"], {})
        self.assertEqual(last["choices"][0]["finish_reason"], "length")
        self.assertEqual(usage["choices"], [])
        whole = self.server.post("/v1/chat/completions", messages=CHAT, **GREEDY)
        self.assertEqual({**usage["usage"], "prompt_tokens_details": 0}, {**whole["usage"], "prompt_tokens_details": 0})
        self.assertEqual("".join(x["choices"][0]["delta"]["content"] for x in texts), whole["choices"][0]["message"]["content"])
        for chunk in chunks[:-1]:
            self.assertEqual((chunk["id"], chunk["object"]), (first["id"], "chat.completion.chunk"))
            self.assertIsNone(chunk["usage"])
        for chunk in [first, *texts]:
            self.assertIn("finish_reason", chunk["choices"][0])
            self.assertIsNone(chunk["choices"][0]["finish_reason"])

    def test_have_no_usage_that_was_not_asked_for(self):
        chunks = self.server.chunks("/v1/completions", prompt=PROMPT, **GREEDY)
        self.assertTrue(chunks)
        for chunk in chunks:
            self.assertNotIn("usage", chunk)
            self.assertEqual(len(chunk["choices"]), 1)

    def test_give_calls_of_tools_in_pieces(self):
        for n, reason in ((200, "tool_calls"), (20, "length")):
            ask = {"messages": [{"role": "user", "content": "Feed the fox."}], "tools": TOOLS, "tool_choice": "required",
                   "parallel_tool_calls": False, "temperature": 0, "max_tokens": n}
            whole = self.server.post("/v1/chat/completions", **ask)["choices"][0]
            call = {"id": "", "type": "", "function": {"name": "", "arguments": ""}}
            content = ""
            for chunk in self.server.chunks("/v1/chat/completions", **ask):
                choice = chunk["choices"][0]
                content += choice["delta"].get("content") or ""
                for piece in choice["delta"].get("tool_calls", []):
                    self.assertEqual(piece["index"], 0)
                    call["id"] += piece.get("id", "")
                    call["type"] += piece.get("type", "")
                    for key in ("name", "arguments"):
                        call["function"][key] += piece["function"].get(key, "")
            self.assertEqual((choice["finish_reason"], whole["finish_reason"]), (reason, reason))
            self.assertEqual(content, whole["message"]["content"] or "")
            if reason == "length":  # half a call is text
                self.assertEqual(call["id"], "")
                continue
            self.assertEqual(call["function"], whole["message"]["tool_calls"][0]["function"])
            self.assertEqual((call["type"], call["function"]["name"]), ("function", "feed"))
            self.assertRegex(call["id"], "^call_")
            self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)


@needs_backend
class Errors(Serving):
    OPTIONS = ("-c", "128")

    def test_an_error_names_the_field_of_the_body(self):
        chat, text = "/v1/chat/completions", "/v1/completions"
        for path, body, code, param in (
                (text, {}, "invalid_type", "prompt"),
                (text, {"prompt": ""}, None, None),
                (text, {"prompt": 7}, "invalid_type", "prompt"),
                (text, {"prompt": [1, -4]}, "invalid_type", "prompt[1]"),
                (text, {"prompt": "a", "temperature": "hot"}, "invalid_type", "temperature"),
                (text, {"prompt": "a", "max_tokens": 0}, "invalid_type", "max_tokens"),
                (text, {"prompt": "a", "n": 1000}, "invalid_type", "n"),
                (text, {"prompt": "a", "stream": 1}, "invalid_type", "stream"),
                (text, {"prompt": "a", "stream": True, "stream_options": []}, "invalid_type", "stream_options"),
                (text, {"prompt": "a", "stop": [""]}, "invalid_type", "stop"),
                (text, {"prompt": "a", "seed": "x"}, "invalid_type", "seed"),
                (text, {"prompt": "a", "grammar": "root ::= ("}, "invalid_value", "grammar"),
                (text, {"prompt": "a", "model": "m" * 300}, "invalid_value", "model"),
                (text, {"prompt": ["a"] * 100, "n": 100}, "invalid_value", "n"),
                (chat, {}, "invalid_type", "messages"),
                (chat, {"messages": []}, "invalid_type", "messages"),
                (chat, {"messages": [{"role": "nobody", "content": "a"}]}, "invalid_value", "messages[0].role"),
                (chat, {"messages": CHAT, "top_logprobs": 3}, "invalid_value", "top_logprobs"),
                ("/v1/embeddings", {"input": ""}, "invalid_value", "input"),
                ("/tokenize", {}, "invalid_type", "content"),
                ("/detokenize", {"tokens": [1 << 40]}, "invalid_type", "tokens")):
            if code is not None:
                with self.subTest(body=str(body)[:80]):
                    self.assert_error(400, code, param, path, body)
        for body in (b"", b"{", b"[]", b'{"prompt": "\xff"}', b"[" * 100000):
            with self.subTest(body=body[:20]):
                self.assert_error(400, "invalid_json", None, text, body)

    def test_that_a_stream_has_before_its_begin_have_their_status(self):
        self.assert_error(400, "invalid_type", "temperature", "/v1/completions",
                          {"prompt": "a", "stream": True, "temperature": "hot"})

    def test_of_a_context_that_is_too_small_have_both_numbers(self):
        for path, member, more in (("/v1/completions", "prompt", {}), ("/v1/completions", "prompt", {"stream": True}),
                                   ("/v1/embeddings", "input", {})):
            why = self.assert_error(400, "context_length_exceeded", member, path,
                                    {member: "the fox said hello " * 200, **more}, "maximum context length is 128 tokens")
            self.assertEqual(why["n_ctx"], 128)
            self.assertGreater(why["n_prompt_tokens"], 128)

    def test_of_routes_and_methods(self):
        for method, path, status in (("GET", "/nowhere", 404), ("GET", "/v1/completions", 405), ("POST", "/health", 405),
                                     ("GET", "/v1/models/other", 404)):
            got, _, out = self.server.ask(method, path, b"" if method == "POST" else None)
            self.assertEqual(got, status, out)
            self.assertIn("message", out["error"])

    def test_leave_the_server_as_it_was(self):
        self.server.ask("POST", "/v1/completions", b"\x00" * 1000)
        self.assertEqual(len(self.server.post("/v1/completions", prompt=PROMPT, **GREEDY)["choices"]), 1)


@needs_backend
class Facts(Serving):
    OPTIONS = ("--alias", "tales", "-np", "3", "--temp", "0", "-n", "5")

    def test_the_routes_of_a_model_report_its_facts(self):
        (model,) = self.server.ask("GET", "/v1/models")[2]["data"]
        self.assertEqual((model["id"], model["object"]), ("tales", "model"))
        self.assertGreater(model["meta"]["n_vocab"], 100)
        self.assertEqual(self.server.ask("GET", "/v1/models/tales")[2], model)
        props = self.server.ask("GET", "/props")[2]
        self.assertEqual((props["total_slots"], props["model_alias"]), (3, "tales"))
        params = props["default_generation_settings"]["params"]
        self.assertEqual((params["n_predict"], params["temperature"], params["top_p"]), (5, 0, 0.95))
        self.assertEqual(props["modalities"], {"vision": False, "audio": False})

    def test_props_have_the_options_of_sampling(self):
        server = self.start("--dry-multiplier", "0.5", "--xtc-probability", "0.25", "--repeat-last-n", "17")
        params = server.ask("GET", "/props")[2]["default_generation_settings"]["params"]
        self.assertEqual((params["mirostat"], params["dry_multiplier"], params["xtc_probability"]), (0, 0.5, 0.25))
        self.assertEqual((params["repeat_last_n"], params["ignore_eos"]), (17, False))
        server.kill()

    def test_the_routes_of_the_service_report_its_state(self):
        for path, status in (("/health", "ok"), ("/v1/health", "ok"), ("/ready", "ready")):
            self.assertEqual(self.server.ask("GET", path)[2], {"status": status})
        page = self.server.ask("GET", "/openapi.json")[2]
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/tokenize", "/metrics", "/props"):
            self.assertIn(path, page["paths"])
        self.assertRegex("".join(self.server.lines), r"requested=auto detected=\[.*\] selected=\w+")

    def test_options_are_the_defaults_of_requests(self):
        body = self.server.post("/v1/completions", prompt=PROMPT)
        self.assertEqual(body["usage"]["completion_tokens"], 5)
        self.assertTrue(self.run_text().startswith(body["choices"][0]["text"]))
        self.assertEqual(body["model"], "tales")

    def test_drafts_do_not_change_the_text(self):
        server = self.start("--spec-type", "ngram")
        ask = {"prompt": "The fox ran. The fox ran. The fox", "max_tokens": 60, "temperature": 0, "ignore_eos": True}
        self.assertEqual(server.post("/v1/completions", **ask)["choices"][0]["text"],
                         self.server.post("/v1/completions", **ask)["choices"][0]["text"])
        got = server.metrics()
        self.assertGreater(got["vllm:spec_decode_num_drafts_total"], 0)
        self.assertGreaterEqual(got["vllm:spec_decode_num_draft_tokens_total"],
                                got["vllm:spec_decode_num_accepted_tokens_total"])
        self.assertEqual(self.server.metrics()["vllm:spec_decode_num_drafts_total"], 0)

    def test_tools_that_no_schema_binds_are_named(self):
        tool = {"type": "function", "function": {"name": "feed", "parameters": {"type": "object", "not": {}}}}
        ask = {"messages": CHAT, "tools": [tool], "tool_choice": "required", "max_tokens": 2}
        whole = self.server.post("/v1/chat/completions", **ask)
        self.assertIn("feed: tools[0].function.parameters#/not", whole["unbound_tools"][0])
        for chunk in self.server.chunks("/v1/chat/completions", **ask):
            self.assertEqual(chunk["unbound_tools"], whole["unbound_tools"])
        plain = self.server.post("/v1/chat/completions", messages=CHAT, max_tokens=2)
        self.assertNotIn("unbound_tools", plain)

    def test_tokens_and_texts(self):
        ids = self.server.post("/tokenize", content=PROMPT)["tokens"]
        self.assertEqual(ids, [int(x) for x in self.ok("tokenize", PROMPT).text.split()])
        self.assertEqual(self.server.post("/detokenize", tokens=ids)["content"], PROMPT)
        pieces = self.server.post("/tokenize", content=PROMPT, with_pieces=True)["tokens"]
        self.assertEqual("".join(x["piece"] for x in pieces), PROMPT)
        prompt = self.server.post("/apply-template", messages=CHAT)["prompt"]
        self.assertIn(CHAT[0]["content"], prompt)
        self.assertNotEqual(prompt, CHAT[0]["content"])

    def test_embeddings_are_those_of_embed(self):
        texts = ["the fox", "a rabbit was here"]
        want = [json.loads(self.ok("embed", "-p", x).text)["embedding"] for x in texts]
        got = self.server.post("/v1/embeddings", input=texts)
        self.assertEqual([x["index"] for x in got["data"]], [0, 1])
        for mine, alone in zip(got["data"], want):
            self.assertEqual([struct.pack("<f", x) for x in mine["embedding"]], [struct.pack("<f", x) for x in alone])
        coded = self.server.post("/embeddings", input=texts[0], encoding_format="base64")["data"][0]["embedding"]
        self.assertEqual(base64.b64decode(coded), struct.pack(f"<{len(want[0])}f", *want[0]))
        many = self.server.post("/v1/embeddings", input=["the fox"] * 100)["data"]
        self.assertEqual([x["embedding"] for x in many], [got["data"][0]["embedding"]] * 100)


@needs_backend
class Life(Serving):
    def stream(self, server, **more):
        """A stream that has begun, with its first bytes."""
        connection, answer = server.send("POST", "/v1/completions", {"prompt": PROMPT, "stream": True, **LONG, **more})
        return connection, answer, answer.read(20)

    def test_counts_a_load(self):
        before = self.server.metrics()
        n_prompt = 0
        for _ in range(3):
            n_prompt += self.server.post("/v1/completions", prompt=PROMPT, **GREEDY)["usage"]["prompt_tokens"]
        self.server.ask("POST", "/v1/completions", {})
        after = self.server.metrics()
        def grown(name):
            (key,) = [x for x in after if x == name or x.startswith(name + "{")][-1:] or [name]
            return after[key] - before.get(key, 0)
        def labelled(name, part):
            (key,) = [x for x in after if x.startswith(name + "{") and part in x]
            return after[key] - before.get(key, 0)
        self.assertEqual(labelled("vllm:request_success_total", 'finished_reason="length"'), 3)
        self.assertEqual(labelled("bitnet_requests_refused_total", 'status="400"'), 1)
        self.assertEqual(grown("vllm:generation_tokens_total"), 24)
        self.assertEqual(grown("vllm:prompt_tokens_total"), n_prompt)
        self.assertEqual(grown("vllm:time_to_first_token_seconds_count"), 3)
        self.assertEqual(grown("vllm:inter_token_latency_seconds_count"), 21)
        self.assertEqual(grown("vllm:e2e_request_latency_seconds_count"), 3)

    def test_a_client_that_goes_ends_its_request(self):
        server = self.start()
        running = lambda: server.metrics()["vllm:num_requests_running"]
        aborted = lambda: [v for k, v in server.metrics().items() if 'finished_reason="abort"' in k][0]
        for more in ({}, {"stream": False}):
            before = aborted()
            if more:  # no byte of the answer has come
                connection = server.connect()
                connection.request("POST", "/v1/completions", json.dumps({"prompt": PROMPT, "n": 8, **LONG, **more}),
                                   {"Content-Type": "application/json"})
                server.wait_for(running, "it runs")
            else:
                connection, answer, _ = self.stream(server, n=8)
                answer.close()
            connection.close()
            server.wait_for(lambda: aborted() >= before + 8, "its choices are aborted")
            self.assertEqual(running(), 0)
        self.assertEqual(len(server.post("/v1/completions", prompt=PROMPT, **GREEDY)["choices"]), 1)

    def test_sigterm_ends_it_behind_what_runs(self):
        server = self.start()
        connection, answer, begin = self.stream(server)
        server.signal(signal.SIGTERM)
        server.wait_for(lambda: any("asked to end" in x for x in server.lines), "the drain begins")
        try:
            status, fields, _ = server.ask("POST", "/v1/completions", {"prompt": PROMPT})
            self.assertEqual(status, 503)
            self.assertGreater(int(fields["Retry-After"]), 0)
        except ConnectionError:
            pass  # the stream was at its end already
        events = (begin + answer.read()).decode().split("\n\n")
        self.assertEqual(events[-2:], ["data: [DONE]", ""])
        self.assertEqual(json.loads(events[-3].removeprefix("data: "))["choices"][0]["finish_reason"], "length")
        connection.close()
        code, text = server.end()
        self.assertEqual(code, 0, text)
        self.assertIn("all requests are answered", text)

    def test_a_second_signal_ends_it_at_once(self):
        server = self.start()
        streams = [self.stream(server, n=16) for _ in range(2)]
        server.signal(signal.SIGTERM)
        server.wait_for(lambda: any("asked to end" in x for x in server.lines), "the drain begins")
        server.signal(signal.SIGTERM)
        code, text = server.end()
        self.assertEqual(code, 130, text)
        for connection, answer, _ in streams:
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
            connection.close()

    def test_sigint_without_work_ends_it(self):
        server = self.start()
        server.signal(signal.SIGINT)
        self.assertEqual(server.end()[0], 0)


@needs_backend
class Backends(Serving):
    def test_what_runs_and_why_is_reported(self):
        status, _, out = self.server.ask("GET", "/backends")
        self.assertEqual(status, 200, out)
        self.assertEqual(out["line"], self.server.lines[0].strip())
        self.assertIn(out["selected"], out["detected"])
        chosen = next(b for b in out["backends"] if b["name"] == out["selected"])
        self.assertEqual((chosen["code"], chosen["generations"][-1]["state"]), ("BN-OK", "active"))
        self.assertEqual((out["live"]["backend"], out["live"]["n_context"]), (out["selected"], 512))

    def test_a_reload_needs_an_admin_key(self):
        status, _, out = self.server.ask("POST", "/backends/reload", {})
        self.assertEqual(status, 403)
        self.assertIn("--admin-key-file", out["error"]["message"])
        server = self.start("--admin-key-file", self.path("admin", "root\n"), "--api-key", "user")
        for key, wanted in ((None, 401), ("user", 401), ("root", 200)):
            fields = {"Authorization": f"Bearer {key}"} if key else {}
            self.assertEqual(server.ask("POST", "/backends/reload", {}, fields)[0], wanted, key)
        self.assertEqual(server.ask("GET", "/backends", fields={"x-api-key": "root"})[0], 200)
        for body, param in (({"backend": "none"}, "backend"), ({"policy": "later"}, "policy"), ({"force": 1}, "force"),
                            ({"canary_rows": -1}, "canary_rows"), ({"canary_rows": 1.5}, "canary_rows"),
                            ({"canary_wait_ms": 600001}, "canary_wait_ms")):
            status, _, out = server.ask("POST", "/backends/reload", body, {"x-api-key": "root"})
            self.assertEqual((status, out["error"]["param"]), (400, param), out)
        server.kill()

    def test_a_new_copy_is_compared_with_running_requests_first(self):
        server = self.start("--admin-key-file", self.path("admin", "root\n"))
        how = {"force": True, "canary_rows": 5}
        status, _, out = server.ask("POST", "/backends/reload", {**how, "canary_wait_ms": 200}, {"x-api-key": "root"})
        self.assertEqual((status, out["reloads"][0]["changed"]), (409, False), "nothing runs")
        ended = threading.Event()
        def generate():
            while not ended.is_set():
                server.post("/v1/completions", prompt=PROMPT, **LONG)
        threads = [threading.Thread(target=generate) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            status, _, out = server.ask("POST", "/backends/reload", how, {"x-api-key": "root"})
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertEqual((status, out["reloads"][0]["changed"]), (200, True), out)
        canary = out["reloads"][0]["canary"]
        self.assertGreaterEqual(canary["rows"], 5)
        self.assertEqual((canary["same_top"], canary["difference"]), (canary["rows"], 0), canary)
        server.kill()

    def test_a_reload_changes_no_text(self):
        server = self.start("--admin-key-file", self.path("admin", "root\n"))
        wanted = server.post("/v1/completions", prompt=PROMPT, **LONG)["choices"][0]["text"]
        texts, threads = [], []
        for _ in range(4):
            threads.append(threading.Thread(target=lambda: texts.append(
                server.post("/v1/completions", prompt=PROMPT, **LONG)["choices"][0]["text"])))
            threads[-1].start()
        for _ in range(3):
            status, _, out = server.ask("POST", "/backends/reload", {"force": True}, {"x-api-key": "root"})
            self.assertEqual((status, out["reloads"][0]["changed"]), (200, True), out)
        for thread in threads:
            thread.join()
        self.assertEqual(texts, [wanted] * 4)
        now = server.ask("GET", "/backends")[2]
        self.assertGreaterEqual(max(g["number"] for g in now["backends"][0]["generations"]), 4)
        server.signal(signal.SIGTERM)
        code, lines = server.end()
        self.assertEqual(code, 0, lines)
        self.assertIn("reload by an administrator: ", lines)


@needs_backend
class Access(Serving):
    def test_needs_a_key_of_the_file_which_sighup_reads_again(self):
        keys = self.path("keys", "# of clients\nfirst\n")
        server = self.start("--api-key-file", keys)
        def status(key, path="/v1/completions"):
            fields = {"Authorization": "Bearer " + key} if key else {}
            body = {"prompt": PROMPT, **GREEDY} if path == "/v1/completions" else None
            return server.ask("POST" if body else "GET", path, body, fields)[0]
        self.assertEqual([status(x) for x in ("", "second", "first")], [401, 401, 200])
        for path, want in (("/health", 200), ("/ready", 200), ("/v1/models", 200), ("/metrics", 401), ("/props", 401)):
            self.assertEqual(status("", path), want, path)
        self.path("keys", "second\n")
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: status("second") == 200, "the new key is known")
        self.assertEqual(status("first"), 401)
        self.path("keys", "# none\n")
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: any("the keys stay" in x for x in server.lines), "the warning")
        self.assertEqual(status("second"), 200)

    def test_a_public_address_needs_a_key_or_consent(self):
        self.rejected(2, "key", "serve", "--host", "0.0.0.0", "--port", "0")
        self.assertTrue(self.start("--host", "0.0.0.0", "--allow-unauthenticated").port)

    def test_a_unix_socket_serves_and_is_removed_at_the_end(self):
        server = self.start("--host", self.path("bitnet.sock"))
        self.assertEqual(server.address, "unix:" + self.path("bitnet.sock"))
        self.assertEqual(server.post("/v1/completions", prompt=PROMPT, **GREEDY)["choices"][0]["text"], self.run_text())
        server.signal(signal.SIGTERM)
        self.assertEqual(server.end()[0], 0)
        self.assertFalse(os.path.exists(self.path("bitnet.sock")))


class Usage(support.Case):
    def test_by_the_name_of_the_service_it_is_the_same(self):
        name = self.path("bitnet-server")
        os.symlink(PROGRAM, name)

        def output(*words):
            done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                                  env=support.environment(self.home))
            return done.returncode, done.stdout, done.stderr
        for ours, usual in (("--help", ("serve", "--help")), ("--version", ("--version",)),
                            ("nosuch.gguf", ("serve", "nosuch.gguf")), ("--nosuch", ("serve", "--nosuch"))):
            self.assertEqual(output(name, ours), output(PROGRAM, *usual), ours)

    def test_errors_are_reported_before_a_model_is_loaded(self):
        self.rejected(2, "--parallel expects", "serve", "-np", "0", "--port", "0")
        self.rejected(2, "--n-predict expects", "serve", "-n", "0", "--port", "0")
        self.rejected(2, "names the model", "serve", "-m", "a.gguf", "b.gguf")
        self.rejected(3, "nosuch", "serve", "nosuch.gguf", "--port", "0")

    @support.needs_model
    def test_an_address_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.rejected(2, str(other.getsockname()[1]), "serve", "--port", str(other.getsockname()[1]))
        self.rejected(2, "ssl", "serve", "--port", "0", "--ssl-key-file", self.path("key", "no key"))


if __name__ == "__main__":
    support.main()
