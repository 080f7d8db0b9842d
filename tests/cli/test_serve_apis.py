"""`bitnet serve`: the Responses API and Anthropic's Messages. Texts are judged by those of /v1/chat/completions."""

import json

import test_serve
from support import needs_backend

ASK = "Tell me a story."
CHAT = [{"role": "user", "content": ASK}]
CITY = {"type": "object", "properties": {"city": {"enum": ["Bonn"]}}, "required": ["city"],
        "additionalProperties": False}


def events_of(server, path, body, fields=None):
    """The objects of a stream of named events."""
    connection, answer = server.send("POST", path, {**body, "stream": True}, fields)
    assert answer.status == 200, (answer.status, answer.read())
    out = []
    for event in answer.read().decode().split("\n\n"):
        if not event or event.startswith(":"):
            continue
        name, data = event.split("\n")
        out.append(json.loads(data.removeprefix("data: ")))
        assert name == "event: " + out[-1]["type"], event
    connection.close()
    return out


@needs_backend
class Responses(test_serve.Serving):
    def chat(self, **more):
        return self.server.post("/v1/chat/completions", messages=CHAT, temperature=0, **more)["choices"][0]

    def test_text_is_that_of_a_chat(self):
        wanted = self.chat(max_tokens=12)["message"]["content"]
        body = {"input": ASK, "temperature": 0, "max_output_tokens": 12, "metadata": {"a": "b"}}
        out = self.server.post("/v1/responses", **body)
        self.assertEqual(out["output"][0]["content"][0]["text"], wanted)
        self.assertEqual((out["status"], out["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual((out["metadata"], out["temperature"], out["top_p"], out["store"]), ({"a": "b"}, 0, 0.95, False))
        events = events_of(self.server, "/v1/responses", body)
        self.assertEqual("".join(e["delta"] for e in events if e["type"].endswith(".delta")), wanted)
        self.assertEqual(events[-1]["type"], "response.incomplete")
        used = events[-1]["response"]["usage"]
        self.assertEqual(used["output_tokens"], 12)
        count = self.server.post("/v1/responses/input_tokens", input=ASK)
        self.assertEqual(count, {"object": "response.input_tokens", "input_tokens": used["input_tokens"]})
        self.assertEqual(self.server.post("/v1/chat/completions/input_tokens", messages=CHAT)["input_tokens"],
                         used["input_tokens"])

    def test_log_probabilities_are_those_of_a_chat(self):
        wanted = self.chat(max_tokens=12, logprobs=True, top_logprobs=2)["logprobs"]["content"]
        body = {"input": ASK, "temperature": 0, "max_output_tokens": 12, "top_logprobs": 2,
                "include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}
        part = self.server.post("/v1/responses", **body)["output"][0]["content"][0]
        self.assertEqual(part["logprobs"], wanted)
        self.assertEqual("".join(x["token"] for x in wanted), part["text"])
        events = events_of(self.server, "/v1/responses", body)
        of = {name: [x for e in events if e["type"] == f"response.output_text.{name}" for x in e["logprobs"]]
              for name in ("delta", "done")}
        self.assertEqual((of["delta"], of["done"]), (wanted, wanted))
        self.assertEqual(events[-1]["response"]["output"][0]["content"][0]["logprobs"], wanted)
        ended = self.server.post("/v1/responses", **{**body, "max_output_tokens": 400})["output"][0]["content"][0]
        self.assertEqual("".join(x["token"] for x in ended["logprobs"]).rstrip(), ended["text"].rstrip())

    def test_a_form_is_followed(self):
        out = self.server.post("/v1/responses", input=ASK, temperature=0,
                               text={"format": {"type": "json_schema", "name": "x", "schema": CITY}})
        self.assertEqual(json.loads(out["output"][0]["content"][0]["text"]), {"city": "Bonn"})
        self.assertEqual(out["status"], "completed")

    def test_a_conversation_goes_on_with_its_items(self):
        tools = [{"type": "function", "name": "weather", "parameters": CITY}, {"type": "web_search"}]
        first = self.server.post("/v1/responses", input=ASK, tools=tools, tool_choice="required", temperature=0,
                                 parallel_tool_calls=False)
        call = first["output"][0]
        self.assertEqual((call["type"], call["name"], json.loads(call["arguments"])),
                         ("function_call", "weather", {"city": "Bonn"}))
        self.assertEqual(first["ignored_tools"], ["tools[1]: web_search"])
        items = [{"role": "user", "content": ASK}, *first["output"],
                 {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}]
        second = self.server.post("/v1/responses", input=items, tools=tools, max_output_tokens=4)
        self.assertGreater(second["usage"]["input_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(second["output"][0]["type"], "message")

    def test_errors_have_the_member(self):
        self.assert_error(400, "unsupported_parameter", "previous_response_id", "/v1/responses",
                          {"input": "a", "previous_response_id": "r"}, "send the whole conversation")
        self.assert_error(400, "context_length_exceeded", "input", "/v1/responses", {"input": "a " * 2000})
        self.assert_error(400, "invalid_json", None, "/v1/responses", b"[1]")
        self.assert_error(400, "invalid_type", "input", "/v1/responses/input_tokens", {})


@needs_backend
class Messages(test_serve.Serving):
    BODY = {"max_tokens": 12, "temperature": 0, "messages": CHAT}

    def test_text_is_that_of_a_chat(self):
        wanted = self.server.post("/v1/chat/completions", messages=CHAT, temperature=0,
                                  max_tokens=12)["choices"][0]["message"]["content"]
        out = self.server.post("/v1/messages", **self.BODY)
        self.assertEqual(out["content"], [{"type": "text", "text": wanted, "citations": None}])
        self.assertEqual((out["type"], out["role"], out["stop_reason"]), ("message", "assistant", "max_tokens"))
        events = events_of(self.server, "/v1/messages", self.BODY,
                           {"x-api-key": "any", "anthropic-version": "2023-06-01"})
        self.assertEqual([e["type"] for e in events[:3]], ["message_start", "ping", "content_block_start"])
        self.assertEqual([e["type"] for e in events[-3:]], ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual("".join(e["delta"].get("text", "") for e in events if "delta" in e), wanted)
        count = self.server.post("/v1/messages/count_tokens", messages=CHAT)["input_tokens"]
        self.assertEqual(events[0]["message"]["usage"]["input_tokens"], count)
        used = events[-2]["usage"]
        self.assertEqual(used["input_tokens"] + used["cache_read_input_tokens"], count)

    def test_a_stop_sequence_is_named(self):
        whole = self.server.post("/v1/messages", **{**self.BODY, "max_tokens": 40})["content"][0]["text"]
        word = whole.split(" ")[6]
        out = self.server.post("/v1/messages", **{**self.BODY, "max_tokens": 40}, stop_sequences=["no such", word])
        self.assertEqual((out["stop_reason"], out["stop_sequence"]), ("stop_sequence", word))
        self.assertEqual(out["content"][0]["text"], whole[:whole.index(word)])

    def test_a_conversation_goes_on_with_its_blocks(self):
        tools = [{"name": "weather", "input_schema": CITY}, {"type": "web_search_20250305", "name": "web_search"}]
        first = self.server.post("/v1/messages", **{**self.BODY, "max_tokens": 200}, tools=tools,
                                 tool_choice={"type": "any", "disable_parallel_tool_use": True})
        call = first["content"][0]
        self.assertEqual((call["type"], call["name"], call["input"], first["stop_reason"]),
                         ("tool_use", "weather", {"city": "Bonn"}, "tool_use"))
        self.assertEqual(first["ignored_tools"], ["tools[1]: web_search_20250305"])
        talk = [*CHAT, {"role": "assistant", "content": first["content"]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "sun"}]}]
        second = self.server.post("/v1/messages", max_tokens=4, messages=talk, tools=tools)
        self.assertGreater(second["usage"]["cache_read_input_tokens"], 0)

    def ask_as_claude_code(self, server, turn, talk):
        """The usage of a turn, whose system prompt begins with a header of its own."""
        system = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.{turn}; cch={turn * 7919};"},
                  {"type": "text", "text": "You help with code. " * 30, "cache_control": {"type": "ephemeral"}}]
        return server.post("/v1/messages", max_tokens=4, temperature=0, system=system, messages=talk)["usage"]

    def test_a_header_of_each_request_leaves_the_prefix_known(self):
        first = self.ask_as_claude_code(self.server, 1, CHAT)
        talk = [*CHAT, {"role": "assistant", "content": "Once."}, {"role": "user", "content": "Go on."}]
        second = self.ask_as_claude_code(self.server, 2, talk)
        # Whole blocks of 64 tokens are known.
        n_first = first["input_tokens"] + first["cache_read_input_tokens"]
        self.assertEqual(second["cache_read_input_tokens"], n_first // 64 * 64)
        server = self.start("--keep-billing-header")
        self.ask_as_claude_code(server, 1, CHAT)
        self.assertEqual(self.ask_as_claude_code(server, 2, talk)["cache_read_input_tokens"], 0)
        server.kill()

    def test_errors_have_the_form_of_the_api(self):
        for body, param, part in (({"messages": CHAT}, "max_tokens", "at least 1"),
                                  ({**self.BODY, "messages": [{"role": "user", "content": "a " * 2000}]}, "messages",
                                   "prompt is too long: "),
                                  ({**self.BODY, "messages": [*CHAT, {"role": "assistant", "content": "a"}]},
                                   "messages", "end with a message of the user")):
            status, _, out = self.server.ask("POST", "/v1/messages", body)
            self.assertEqual((status, out["type"], out["error"]["type"], out["error"]["param"]),
                             (400, "error", "invalid_request_error", param), out)
            self.assertIn(part, out["error"]["message"])


@needs_backend
class Agents(test_serve.Serving):
    """System prompts of coding agents, whose first lines change from request to request or from day to day."""

    RULES = "You help with code. " * 55
    TALK = [*CHAT, {"role": "assistant", "content": "Once."}, {"role": "user", "content": "Go on."}]

    def known(self, server, path, system, talk):
        """Tokens that were known of the prompt of a chat, as this API counts them."""
        if path == "/v1/chat/completions":
            out = server.post(path, messages=[{"role": "system", "content": system}, *talk], max_tokens=2, temperature=0)
            return out["usage"]["prompt_tokens_details"]["cached_tokens"]
        if path == "/v1/responses":
            out = server.post(path, instructions=system, input=talk, max_output_tokens=2, temperature=0)
            return out["usage"]["input_tokens_details"]["cached_tokens"]
        out = server.post(path, system=system, messages=talk, max_tokens=2, temperature=0)
        return out["usage"]["cache_read_input_tokens"]

    def ids(self, server, system, talk):
        prompt = server.post("/apply-template", messages=[{"role": "system", "content": system}, *talk])["prompt"]
        return server.post("/tokenize", content=prompt)["tokens"]

    def common(self, *prompts):
        """Tokens that two prompts begin with."""
        return next(i for i, pair in enumerate(zip(*prompts)) if len(set(pair)) == 2)

    PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")

    def test_a_header_of_each_request(self):
        for path in self.PATHS:
            with self.subTest(path):
                rules = f"For {path}. {self.RULES}"  # not known from another path
                first, second = (f"x-anthropic-billing-header: cc_version=2.1.{i}; cch={i * 7919};\n{rules}"
                                 for i in (1, 2))
                n = len(self.ids(self.server, rules, CHAT))
                self.assertEqual(self.known(self.server, path, first, CHAT), 0)
                self.assertGreaterEqual(self.known(self.server, path, second, self.TALK), (n - 16) // 64 * 64)
        server = self.start("--keep-billing-header")
        for path in self.PATHS:
            for i in (1, 2):
                header = f"x-anthropic-billing-header: cch={path}{i * 7919};\n"
                self.assertLess(self.known(server, path, header + self.RULES, CHAT), 64)

    def test_moved_date_lines_keep_the_prefix_known(self):
        server = self.start("--move-date-lines")
        for path in self.PATHS:
            for line in ("Today's date: 2026-11-{}", "Today's date is Nov {}, 2026.", "Current date: {}.11.2026"):
                with self.subTest(f"{path}: {line}"):
                    rules = f"For {path} and {line.format('x')}. {self.RULES}"
                    first, second = (f"{line.format(day)}\n{rules}" for day in (28, 29))
                    # With the lines at the end, by hand, on the server that moves none.
                    shared = self.common(*(self.ids(self.server, f"{rules}\n{line.format(day)}", CHAT)
                                           for day in (28, 29)))
                    self.assertGreater(shared, 256)
                    self.assertEqual(self.known(server, path, first, CHAT), 0)
                    known = self.known(server, path, second, self.TALK)
                    self.assertGreaterEqual(known, 0.99 * (shared // 64 * 64))
                    # Without the switch nothing behind the first line is known.
                    self.assertEqual(self.known(self.server, path, first, CHAT), 0)
                    self.assertEqual(self.known(self.server, path, second, self.TALK), 0)

    def test_the_prompt_stays_without_the_switch(self):
        system = f"Today's date: 2026-11-28\n{self.RULES}"
        prompt = self.server.post("/apply-template",
                                  messages=[{"role": "system", "content": system}, *CHAT])["prompt"]
        self.assertIn(system.strip(), prompt)


if __name__ == "__main__":
    test_serve.support.main()
