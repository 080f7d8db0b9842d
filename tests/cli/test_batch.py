"""`bitnet batch`: a file of requests in OpenAI's format, each answered exactly once, whatever interrupts it."""

import base64
import json
import math
import os
import random
import resource
import signal
import struct
import subprocess
import time

from divergence import read_npy
import support
from support import PROGRAM, TIMEOUT_S, demo_model, needs_backend

# How often a run is killed; 200 by hand.
KILLS = int(os.environ.get("BITNET_BATCH_KILLS", "10"))
GREEDY = {"temperature": 0, "max_tokens": 8}
TOOLS = [{"type": "function", "function": {"name": "feed", "parameters": {"type": "object", "properties": {}}}}]
PROMPTS = ["Once upon a time", "The fox said,", "One day, a small rabbit", "It was dark, and"]


def line(custom_id, url="/v1/completions", **body):
    if url == "/v1/completions":
        body = {"prompt": PROMPTS[0], **GREEDY, **body}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def chat(custom_id, text, **body):
    return line(custom_id, "/v1/chat/completions", messages=[{"role": "user", "content": text}], **{**GREEDY, **body})


def said(answer):
    """The members that do not depend on the time of the run."""
    return [c.get("text", c.get("message")) for c in answer["response"]["body"]["choices"]]


class Batch(support.Case):
    def setUp(self):
        super().setUp()
        self.out = self.path("out.jsonl")

    def input(self, lines, name="in.jsonl"):
        return self.path(name, "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))

    def lines(self, out=None):
        with open(out or self.out, encoding="utf-8") as file:
            return [json.loads(x) for x in file]

    def answers(self, lines, *words, **more):
        """The answers by custom_id, and the end of stderr."""
        done = self.ok("batch", self.input(lines), self.out, *words, **more)
        return {x["custom_id"]: x for x in self.lines()}, done

    def assert_each_once(self, lines, out=None):
        ids = [x["custom_id"] for x in self.lines(out)]
        self.assertEqual(sorted(ids), sorted(x["custom_id"] for x in lines))


@needs_backend
class Answers(Batch):
    def test_are_those_of_run(self):
        got, done = self.answers([line(f"p{i}", prompt=p) for i, p in enumerate(PROMPTS)])
        for i, prompt in enumerate(PROMPTS):
            alone = self.ok("run", "-p", prompt, "-n", "8", "--temp", "0", "--no-display-prompt").text[:-1]
            answer = got[f"p{i}"]
            self.assertEqual(said(answer), [alone])
            self.assertEqual(answer["response"]["status_code"], 200)
            self.assertIsNone(answer["error"])
            body = answer["response"]["body"]
            self.assertEqual(body["object"], "text_completion")
            self.assertEqual(body["model"], os.path.basename(demo_model())[:-len(".gguf")])
        body = got["p0"]["response"]["body"]
        self.assertEqual((body["choices"][0]["finish_reason"], body["usage"]["completion_tokens"]), ("length", 8))
        self.assertEqual(got["p1"]["response"]["body"]["choices"][0]["finish_reason"], "stop", "it ended by itself")
        self.assertIn("4 answered, 0 errors, 0 skipped", done.stderr)
        self.assertRegex(done.stderr, r"requested=auto detected=\[.*\] selected=\w+")

    def test_of_chats_are_those_of_run(self):
        got, _ = self.answers([chat("a", "Tell me a story.", model="mine")])
        alone = self.ok("run", "--chat-template", "auto", "-p", "Tell me a story.", "-n", "8", "--temp", "0", "--json").json
        body = got["a"]["response"]["body"]
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["model"], "mine", "the name that was asked for")
        self.assertEqual(body["choices"][0]["message"]["content"].strip(), alone["message"]["content"])

    def test_of_embeddings_are_those_of_embed(self):
        texts = ["a fox", "a wolf"]
        lines = [line("a", "/v1/embeddings", input=texts), line("b", "/v1/embeddings", input=texts[0], encoding_format="base64"),
                 line("c")]
        got, _ = self.answers(lines)
        alone = [json.loads(x)["embedding"] for x in
                 self.ok("embed", stdin="\n".join(texts).encode()).text.splitlines()]
        body = got["a"]["response"]["body"]
        self.assertEqual([x["embedding"] for x in body["data"]], alone)
        self.assertEqual(body["usage"]["prompt_tokens"], body["usage"]["total_tokens"])
        raw = base64.b64decode(got["b"]["response"]["body"]["data"][0]["embedding"])
        self.assertEqual(struct.pack(f"<{len(alone[0])}f", *alone[0]), raw)
        self.assertEqual(got["c"]["response"]["status_code"], 200, "texts and embeddings in one file")

    def test_have_choices_in_the_order_of_prompts(self):
        got, _ = self.answers([line("a", prompt=PROMPTS[:2], n=2), line("b", prompt=PROMPTS[1])])
        first, second = said(got["a"])[0::2]
        self.assertEqual(said(got["a"]), [first, first, second, second], "greedy choices are alike")
        self.assertEqual([second], said(got["b"]))
        self.assertEqual([c["index"] for c in got["a"]["response"]["body"]["choices"]], [0, 1, 2, 3])

    def test_follow_what_is_asked(self):
        ids = [int(x) for x in self.ok("tokenize", "--add-bos", PROMPTS[0]).text.split()]
        got, _ = self.answers([line("plain"), line("ids", prompt=ids), line("one", max_tokens=1), line("stop", stop=" was"),
                               chat("json", "JSON!", response_format={"type": "json_object"}, max_tokens=64),
                               line("form", grammar='root ::= " yes" | " no"'),
                               line("seed", temperature=1, seed=5), line("seed again", temperature=1, seed=5)])
        plain, = said(got["plain"])
        self.assertEqual(said(got["ids"]), [plain], "tokens are the prompt")
        self.assertEqual(got["one"]["response"]["body"]["usage"]["completion_tokens"], 1)
        self.assertEqual(said(got["stop"]), [plain.split(" was")[0]])
        self.assertEqual(got["stop"]["response"]["body"]["choices"][0]["finish_reason"], "stop")
        self.assertTrue(said(got["json"])[0]["content"].startswith("{"))
        self.assertIn(said(got["form"])[0], (" yes", " no"))
        self.assertEqual(said(got["seed"]), said(got["seed again"]))

    def test_answers_call_tools(self):
        lines = [chat(f"n{n}", "Feed the fox.", tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=n)
                 for n in (4, 400)]
        lines.append(chat("none", "Feed the fox.", tools=TOOLS, tool_choice="none"))
        got, _ = self.answers(lines)
        choice, = got["n400"]["response"]["body"]["choices"]
        self.assertEqual(choice["finish_reason"], "tool_calls", choice)
        call, = choice["message"]["tool_calls"]
        self.assertEqual((call["type"], call["function"]["name"]), ("function", "feed"))
        self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)
        self.assertEqual(got["n4"]["response"]["body"]["choices"][0]["finish_reason"], "length", "half a call is none")
        self.assertNotIn("tool_calls", said(got["none"])[0])

    def test_say_which_tool_no_schema_binds(self):
        tool = {"name": "feed", "parameters": {"type": "object", "not": {}}}
        lines = [chat(name, "Feed the fox.", tools=[{"type": "function", "function": {**tool, **more}}],
                      tool_choice="required", max_tokens=2) for name, more in (("loose", {}), ("strict", {"strict": True}))]
        got, done = self.answers(lines)
        self.assertIn("loose: the arguments of tools may be anything: feed: tools[0].function.parameters#/not", done.stderr)
        self.assertEqual(got["loose"]["response"]["status_code"], 200)
        why, = got["loose"]["response"]["body"]["unbound_tools"]
        self.assertTrue(why.startswith("feed: tools[0].function.parameters#/not"), why)
        self.assertEqual(got["strict"]["response"]["status_code"], 400)
        self.assertIn("parameters#/not", got["strict"]["error"]["message"])

    def test_have_log_probabilities(self):
        got, _ = self.answers([line("a", logprobs=2), chat("b", "Hello", logprobs=True, top_logprobs=2)])
        choice, = got["a"]["response"]["body"]["choices"]
        logprobs = choice["logprobs"]
        self.assertEqual("".join(logprobs["tokens"]), choice["text"])
        self.assertEqual(logprobs["text_offset"], [len("".join(logprobs["tokens"][:i])) for i in range(8)])
        for token, logprob, top in zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]):
            self.assertEqual(max(top.values()), logprob, "greedy")
            self.assertEqual((top[token], len(top)), (logprob, 2))
        for row in got["b"]["response"]["body"]["choices"][0]["logprobs"]["content"]:
            self.assertEqual(bytes(row["bytes"]).decode(), row["token"])
            self.assertEqual(row["top_logprobs"][0]["logprob"], row["logprob"])

    def test_repeat_the_prompt_with_its_log_probabilities(self):
        ids = [int(x) for x in self.ok("tokenize", "--add-bos", PROMPTS[0]).text.split()]
        lines = [line("score", echo=True, logprobs=2, max_tokens=0), line("ids", prompt=ids, echo=True, logprobs=2, max_tokens=0),
                 line("both", echo=True, logprobs=1, n=2), line("text", echo=True), line("plain", logprobs=1)]
        got, _ = self.answers(lines)
        plain, = got["plain"]["response"]["body"]["choices"]
        self.assertEqual(said(got["text"]), [PROMPTS[0] + plain["text"]])
        score, = got["score"]["response"]["body"]["choices"]
        self.assertEqual((score["text"], score["finish_reason"]), (PROMPTS[0], "length"))
        self.assertEqual(got["score"]["response"]["body"]["usage"]["completion_tokens"], 0)
        scores = score["logprobs"]
        self.assertEqual(got["ids"]["response"]["body"]["choices"][0]["logprobs"]["token_logprobs"], scores["token_logprobs"])
        self.assertIsNone(scores["token_logprobs"][0])
        self.assertIsNone(scores["top_logprobs"][0])
        self.assertEqual(len(scores["tokens"]), len(ids))
        file = self.path("logits.npy")
        self.ok("logits", "-p", PROMPTS[0], "--all", "-o", file)
        with open(file, "rb") as f:
            (_, n_vocab), values = read_npy(f.read())
        for i, logprob in enumerate(scores["token_logprobs"][1:]):
            row = struct.unpack_from(f"<{n_vocab}f", values, 4 * n_vocab * i)
            self.assertAlmostEqual(logprob, row[ids[i + 1]] - math.log(sum(map(math.exp, row))), places=4)
        for both in got["both"]["response"]["body"]["choices"]:
            self.assertEqual(both["text"], PROMPTS[0] + plain["text"])
            for name in ("tokens", "token_logprobs"):
                self.assertEqual(both["logprobs"][name], scores[name] + plain["logprobs"][name])
            offsets = both["logprobs"]["text_offset"]
            self.assertEqual(offsets[len(ids):], [len(PROMPTS[0]) + x for x in plain["logprobs"]["text_offset"]])
            for token, begin, end in zip(both["logprobs"]["tokens"], offsets, [*offsets[1:], len(both["text"])]):
                self.assertIn(both["text"][begin:end], (token, token.lstrip(" "), ""))

    def test_are_the_best_of_several(self):
        how = {"temperature": 1, "seed": 3, "logprobs": 0}
        got, _ = self.answers([line("best", best_of=4, n=2, **how), line("all", n=4, **how)])

        def mean(choice):
            scores = choice["logprobs"]["token_logprobs"]
            return sum(scores) / len(scores)

        ranked = sorted(got["all"]["response"]["body"]["choices"], key=mean, reverse=True)
        self.assertEqual(said(got["best"]), [x["text"] for x in ranked[:2]])
        self.assertNotEqual(ranked[0]["text"], ranked[3]["text"])

    def test_answers_follow_schemas(self):
        schema = {"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"enum": ["x", "y"]}}, "required": ["z", "a"],
                  "additionalProperties": False}
        ways = {"named": {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}},
                "object": {"response_format": {"type": "json_object", "schema": schema}}, "member": {"json_schema": schema}}
        got, _ = self.answers([chat(name, "JSON!", max_tokens=100, **way) for name, way in ways.items()] +
                              [line("text", max_tokens=100, **ways["named"])])
        for name in (*ways, "text"):
            text = said(got[name])[0]
            value = json.loads(text if name == "text" else text["content"])
            self.assertEqual(list(value), ["z", "a"], "in the order of the schema")
            self.assertIsInstance(value["z"], bool)
            self.assertIn(value["a"], ("x", "y"))

    def test_are_sampled_as_asked(self):
        base = {"temperature": 1.5, "seed": 5, "ignore_eos": True, "max_tokens": 40}
        dry = {"dry_multiplier": 9.0, "dry_allowed_length": 1, "dry_penalty_last_n": -1}
        ways = [{}, {"top_n_sigma": 0.5}, {"typical_p": 0.8}, {"xtc_probability": 1, "xtc_threshold": 0.05},
                {"dynatemp_range": 1.4}, {"mirostat": 1, "mirostat_tau": 8}, {"mirostat": 2, "mirostat_tau": 2},
                {**dry, "dry_sequence_breakers": []}, {**dry, "dry_sequence_breakers": ["a", "e"]}]
        got, _ = self.answers([line(f"{i}", **base, **way) for i, way in enumerate(ways)])
        options = {"top_n_sigma": "top-nsigma", "typical_p": "typical", "mirostat_tau": "mirostat-ent"}
        for i, way in enumerate(ways):
            words = []
            for name, value in way.items():
                if name == "dry_sequence_breakers":
                    words += [x for one in value or ["none"] for x in ("--dry-sequence-breaker", one)]
                else:
                    words += [f"--{options.get(name, name.replace('_', '-'))}", f"{value}"]
            alone = self.ok("run", "-p", PROMPTS[0], "-n", "40", "--temp", "1.5", "--seed", "5", "--ignore-eos",
                            "--no-display-prompt", *words).text[:-1]
            self.assertEqual(said(got[f"{i}"]), [alone], way)
        texts = [said(got[f"{i}"])[0] for i in range(len(ways))]
        self.assertEqual(len(set(texts[:-1])), len(texts) - 1, "each changes the text")
        self.assertNotEqual(texts[-1], texts[-2], "what ends a repetition counts")

    def test_are_the_same_with_drafts(self):
        lines = [line(f"p{i}", prompt=p, max_tokens=60, ignore_eos=True) for i, p in enumerate(PROMPTS)]
        plain, done = self.answers(lines)
        self.assertNotIn("speculation", done.stderr)
        os.remove(self.out)
        for words in (("--spec-type", "ngram"), ("-md", demo_model())):
            drafted, done = self.answers(lines, *words)
            os.remove(self.out)
            self.assertIn("speculation: ", done.stderr)
            self.assertEqual({k: said(x) for k, x in drafted.items()}, {k: said(x) for k, x in plain.items()})
        self.rejected(2, "--spec-type draft expects a draft model", "batch", "in.jsonl", "out", "--spec-type", "draft")

    def test_of_defaults_by_options(self):
        lines = [line("a", temperature=None, max_tokens=None), line("b", temperature=None, max_tokens=None)]
        got, _ = self.answers(lines, "-n", "4", "--seed", "7", "-np", "2")
        self.assertEqual(said(got["a"]), said(got["b"]), "the same seed")
        self.assertEqual(got["a"]["response"]["body"]["usage"]["completion_tokens"], 4)

    def test_come_from_a_pipe(self):
        lines = [line("a"), line("b")]
        with open(self.input(lines), "rb") as file:
            self.ok("batch", "-", self.out, stdin=file.read())
        self.assert_each_once(lines)


@needs_backend
class Errors(Batch):
    def test_an_error_names_the_member_of_the_body(self):
        rows = {"temperature": line("a", temperature="hot"), "stream": line("b", stream=True), "suffix": line("c", suffix="x"),
                "response_format.json_schema": line("d", response_format={"type": "json_schema"}),
                "json_schema": line("h", json_schema={"properties": {"a": {"minimun": 1}}}),
                "response_format": line("i", json_schema={}, response_format={"type": "json_object"}),
                "tools[0].name": chat("e", "a", tools=[{"type": "function"}]),
                "messages[0].role": line("f", "/v1/chat/completions", messages=[{"role": "king", "content": "a"}]),
                "tool_choice": chat("g", "a", tools=TOOLS, tool_choice="required", grammar='root ::= "a"')}
        got, done = self.answers(list(rows.values()))
        for param, asked in rows.items():
            answer = got[asked["custom_id"]]
            error = answer["response"]["body"]["error"]
            self.assertEqual((answer["response"]["status_code"], error["param"]), (400, param))
            self.assertEqual(error["type"], "invalid_request_error")
            self.assertEqual(answer["error"], {k: error[k] for k in ("code", "message", "param")})
            self.assertIn(param, error["message"])
        self.assertIn("#/properties/a/minimun", got["h"]["error"]["message"])
        self.assertIn("'grammar'", got["g"]["error"]["message"], "both are named")
        self.assertIn("0 answered, 9 errors, 0 skipped", done.stderr)

    def test_of_a_context_have_both_numbers(self):
        got, _ = self.answers([line("a", prompt=[5] * 300), line("b", prompt=[5] * 255), line("c", "/v1/embeddings", input=[5] * 257)],
                              "-c", "256")
        error = got["a"]["response"]["body"]["error"]
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertEqual((error["n_prompt_tokens"], error["n_ctx"], error["param"]), (300, 256, "prompt"))
        self.assertIn("256", error["message"])
        self.assertIn("300", error["message"])
        self.assertEqual(got["b"]["response"]["body"]["usage"]["completion_tokens"], 1)
        self.assertEqual(got["c"]["error"]["code"], "context_length_exceeded")

    def test_of_lines_are_written_once(self):
        lines = [line("a"), "no json", line("a"), json.dumps({"custom_id": 5}), {**line("b"), "url": "/v1/files"}, "", "[" * 1000]
        for skipped in (0, 6):
            done = self.ok("batch", self.input(lines), self.out)
            self.assertIn(f"{0 if skipped else 5} errors, {skipped} skipped", done.stderr)
            by_line = {x["error"]["line"]: x for x in self.lines() if x["error"]}
            self.assertEqual(len(self.lines()), 6)
            self.assertEqual({n: (x["custom_id"], x["error"]["code"]) for n, x in by_line.items()},
                             {2: (None, "invalid_json"), 3: (None, "duplicate_custom_id"), 4: (None, "invalid_type"),
                              5: ("b", "invalid_type"), 7: (None, "invalid_json")})
            self.assertIn("'a'", by_line[3]["error"]["message"])

    def test_in_a_command_line_are_rejected(self):
        self.input([line("a")])
        for words in ((), ("in.jsonl",), ("in.jsonl", "out", "x")):
            self.rejected(2, "two files", "batch", *words)
        self.rejected(2, "No such file", "batch", "none", "out")
        self.rejected(2, "is a folder", "batch", ".", "out")
        self.rejected(2, "is the input too", "batch", "in.jsonl", "in.jsonl")
        self.rejected(2, "No such file", "batch", "in.jsonl", "no/such/folder/out")
        self.rejected(2, "no output of a batch", "batch", "in.jsonl", self.path("mine", "my thesis"))
        for shard in ("2/2", "x", "1", "-1/2"):
            self.rejected(2, "--shard expects I/N", "batch", "in.jsonl", "out", f"--shard={shard}")
        for n in ("0", "1,2", "x", "1025"):
            self.rejected(2, "--parallel expects one number", "batch", "in.jsonl", "out", "-np", n)
        self.rejected(2, "UTF-16", "batch", self.path("wide", "{}\n".encode("utf-16")), "out")
        self.rejected(2, "--n-predict expects", "batch", "in.jsonl", "out", "-n", "0")


@needs_backend
class Goes(Batch):
    """On, after whatever ended a run before."""

    def many(self, n=40):
        draw = random.Random(1)
        return [chat(f"c{i}", draw.choice(PROMPTS)) if i % 3 == 0 else line(f"t{i}", prompt=draw.choice(PROMPTS), max_tokens=1 + i % 9)
                for i in range(n)]

    def start(self, *words):
        return subprocess.Popen([PROGRAM, "batch", *words], cwd=self.home, env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def test_killed_runs_go_on_and_give_the_same_answers(self):
        lines = self.many()
        source = self.input(lines)
        began = time.monotonic()
        self.ok("batch", source, self.path("whole.jsonl"))
        whole_s = time.monotonic() - began
        draw = random.Random()
        for _ in range(KILLS):
            process = self.start(source, self.out)
            time.sleep(draw.uniform(0, whole_s))  # killed at any point
            process.kill()
            process.communicate()
            if os.path.exists(self.out) and len(self.lines_whole()) == len(lines):
                os.remove(self.out)
            elif draw.random() < 0.5:
                self.cut_a_line()
        self.cut_a_line()
        self.ok("batch", source, self.out)
        self.assert_each_once(lines)
        whole = {x["custom_id"]: said(x) for x in self.lines(self.path("whole.jsonl"))}
        self.assertEqual({x["custom_id"]: said(x) for x in self.lines()}, whole)

    def cut_a_line(self):
        """As a kill in the middle of a write leaves it."""
        with open(self.out, "ab") as file:
            file.write(b'{"id":"batch_req_0123","custom_')

    def lines_whole(self):
        with open(self.out, "rb") as file:
            return file.read().split(b"\n")[:-1]

    def test_a_signal_ends_a_run_that_can_go_on(self):
        lines = [line(f"a{i}", max_tokens=200, ignore_eos=True) for i in range(64)]
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start(self.input(lines), self.out, "-np", "4")
            while not (os.path.exists(self.out) and os.path.getsize(self.out) > 0):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            support.send_signal(process, number)
            _, err = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn(b"the same command goes on", err)
            self.assertTrue(0 < len(self.lines()) < len(lines), err)
            os.remove(self.out)

    def test_after_a_full_disk_the_same_command_completes_the_output(self):
        lines = self.many(12)
        source = self.input(lines)
        done = subprocess.run([PROGRAM, "batch", source, self.out], cwd=self.home, env=self.environment(), capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)), check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"the same command goes on where", done.stderr)
        with open(self.out, "rb") as file:
            self.assertTrue(file.read().endswith(b"\n"), "the part of a line is gone")
        self.assertLess(len(self.lines()), len(lines))
        self.ok("batch", source, self.out)
        self.assert_each_once(lines)

    def test_where_it_was_done(self):
        lines = self.many(6)
        self.ok("batch", self.input(lines), self.out)
        with open(self.out, "rb") as file:
            before = file.read()
        done = self.ok("batch", self.input(lines), self.out)
        self.assertIn("0 answered, 0 errors, 6 skipped", done.stderr)
        with open(self.out, "rb") as file:
            self.assertEqual(file.read(), before)
        more = [*lines, line("more")]
        self.assertIn("1 answered, 0 errors, 6 skipped", self.ok("batch", self.input(more), self.out).stderr)
        self.assert_each_once(more)
        done = self.ok("batch", self.input([line("other")]), self.out)
        self.assertIn("7 answers of the output are to requests that", done.stderr)

    def test_a_second_process_that_writes_the_output_is_rejected(self):
        lines = [line(f"a{i}", max_tokens=200, ignore_eos=True) for i in range(64)]
        process = self.start(self.input(lines), self.out)
        while not os.path.exists(self.out) or os.path.getsize(self.out) == 0:
            time.sleep(0.01)
        self.rejected(1, "another process writes", "batch", "in.jsonl", "out.jsonl")
        process.kill()
        process.communicate()

    def test_by_another_model_is_rejected(self):
        self.ok("batch", self.input([line("a")]), self.out)
        with open(self.out, encoding="utf-8") as file:
            text = file.read()
        self.path("out.jsonl", text.replace('"system_fingerprint":"fp_', '"system_fingerprint":"fp_x'))
        self.rejected(2, "another model", "batch", "in.jsonl", "out.jsonl")


@needs_backend
class Shards(Batch):
    def test_have_each_request_once(self):
        lines = [line(f"r{i}", max_tokens=1) for i in range(40)] + ["no json", line("r1")]
        source = self.input(lines)
        outs = [self.path(f"out-{i}.jsonl") for i in range(3)]
        for i, out in enumerate(outs):
            self.ok("batch", source, out, "--shard", f"{i}/3")
        got = [x for out in outs for x in self.lines(out)]
        self.assertEqual(sorted(x["custom_id"] for x in got if x["custom_id"]), sorted(f"r{i}" for i in range(40)))
        self.assertEqual(sorted(x["error"]["line"] for x in got if not x["custom_id"]), [41, 42])
        for out in outs:
            self.assertGreater(len(self.lines(out)), 4)
        self.rejected(2, "another --shard", "batch", source, outs[0], "--shard", "1/3")
        self.rejected(2, "another --shard", "batch", source, outs[0], "--shard", "0/4")


if __name__ == "__main__":
    support.main()
