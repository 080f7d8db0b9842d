"""Bounds of thinking: of `bitnet serve`, `run` and `chat`. What a bounded answer thinks is what the unbounded one has thought
when it has had as many tokens, judged by `max_tokens`."""

import json

import test_serve
from support import needs_backend
from test_serve_apis import events_of

# The form writes the messages as they are: this one opens the thinking, which the model does not end by itself.
OPEN = [{"role": "user", "content": "Once upon a time <think>\n"}]
BUDGET = 6
MOST = 24


@needs_backend
class Thinking(test_serve.Serving):
    OPTIONS = ("--chat-template", "raw")

    def chat(self, **more):
        return self.server.post("/v1/chat/completions", messages=OPEN, temperature=0, **more)["choices"][0]["message"]

    def thought(self, n):
        """What the model thinks in its first `n` tokens."""
        return self.chat(max_tokens=n)["reasoning_content"]

    def test_chats_are_bounded_by_each_name(self):
        wanted = self.thought(BUDGET)
        self.assertNotEqual(wanted, self.thought(MOST))
        for name in ("reasoning_budget", "thinking_budget_tokens"):
            said = self.chat(max_tokens=MOST, **{name: BUDGET})
            self.assertEqual(said["reasoning_content"], wanted, name)
            self.assertTrue(said["content"], name)
            self.assertNotIn("</think>", said["content"])
        self.assertEqual(self.chat(max_tokens=MOST, reasoning_budget=-1)["reasoning_content"], self.thought(MOST))
        none = self.chat(max_tokens=MOST, reasoning_budget=0)
        self.assertNotIn("reasoning_content", none)
        self.assertTrue(none["content"])

    def test_a_stream_has_the_same_parts(self):
        body = {"messages": OPEN, "temperature": 0, "max_tokens": MOST, "reasoning_budget": BUDGET}
        deltas = [x["choices"][0]["delta"] for x in self.server.chunks("/v1/chat/completions", **body)]
        whole = self.server.post("/v1/chat/completions", **body)["choices"][0]["message"]
        for part in ("reasoning_content", "content"):
            self.assertEqual("".join(x.get(part) or "" for x in deltas), whole[part])

    def test_choices_are_bounded_each(self):
        out = self.server.post("/v1/chat/completions", messages=OPEN, n=3, seed=3, temperature=1, max_tokens=MOST,
                               reasoning_budget=BUDGET, logprobs=True)
        self.assertEqual(len(out["choices"]), 3)
        for choice in out["choices"]:
            text = "".join(x["token"] for x in choice["logprobs"]["content"])
            self.assertEqual(text.count("</think>"), 1, text)
            n, so_far = 0, ""
            for one in choice["logprobs"]["content"]:
                so_far += one["token"]
                if "</" in so_far:
                    break
                n += 1
            self.assertLessEqual(n, BUDGET + 1, text)

    def test_messages_bind_the_budget(self):
        wanted = self.thought(BUDGET)
        body = {"messages": OPEN, "max_tokens": MOST, "temperature": 0,
                "thinking": {"type": "enabled", "budget_tokens": BUDGET}}
        out = self.server.post("/v1/messages", **body)["content"]
        self.assertEqual([x["type"] for x in out], ["thinking", "text"])
        self.assertEqual(out[0]["thinking"], wanted)
        deltas = [e["delta"] for e in events_of(self.server, "/v1/messages", body) if e["type"] == "content_block_delta"]
        self.assertEqual("".join(x.get("thinking", "") for x in deltas), wanted)
        self.assertEqual("".join(x.get("text", "") for x in deltas), out[1]["text"])

    def test_responses_count_thinking_tokens(self):
        out = self.server.post("/v1/responses", input=OPEN[0]["content"], max_output_tokens=MOST, temperature=0,
                               reasoning={"max_tokens": BUDGET})
        self.assertEqual([x["type"] for x in out["output"]], ["reasoning", "message"])
        self.assertEqual(out["output"][0]["content"][0]["text"], self.thought(BUDGET))
        # With the tokens of the tag, which are 1 to 8.
        n = out["usage"]["output_tokens_details"]["reasoning_tokens"]
        self.assertTrue(BUDGET < n <= BUDGET + 8, n)

    def test_log_probabilities_cover_the_answer_without_thinking(self):
        out = self.server.post("/v1/responses", input=OPEN[0]["content"], max_output_tokens=MOST, temperature=0,
                               reasoning_budget=BUDGET, include=["message.output_text.logprobs"])
        part = out["output"][1]["content"][0]
        self.assertEqual("".join(x["token"] for x in part["logprobs"]).strip(), part["text"].strip())

    def test_a_grammar_excludes_thinking(self):
        said = self.chat(max_tokens=200, reasoning_budget=1, response_format={"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"enum": ["Bonn"]}}})
        self.assertEqual(json.loads(said["content"]), "Bonn")
        self.assertNotIn("reasoning_content", said)

    def test_a_demanded_call_comes_behind_the_thinking(self):
        tools = [{"type": "function", "function": {"name": "feed", "parameters": {
            "type": "object", "properties": {}, "additionalProperties": False}}}]
        said = self.chat(max_tokens=400, reasoning_budget=BUDGET, tools=tools, tool_choice="required")
        self.assertEqual(said["tool_calls"][0]["function"]["name"], "feed")

    def test_the_server_has_a_budget_for_all(self):
        server = self.start(*self.OPTIONS, "--reasoning-budget", str(BUDGET))
        body = {"messages": OPEN, "temperature": 0, "max_tokens": MOST}
        def thought(**more):
            return server.post("/v1/chat/completions", **body, **more)["choices"][0]["message"]["reasoning_content"]
        self.assertEqual(thought(), self.thought(BUDGET))
        self.assertEqual(thought(reasoning_budget=2), self.thought(2))

    def test_wrong_budgets_are_rejected_by_member(self):
        self.assert_error(400, "invalid_type", "reasoning_budget", "/v1/chat/completions",
                          {"messages": OPEN, "reasoning_budget": -2})
        status, _, out = self.server.ask("POST", "/v1/messages", {
            "messages": OPEN, "max_tokens": 4, "thinking": {"type": "enabled", "budget_tokens": 0}})
        self.assertEqual((status, out["error"]["param"]), (400, "thinking.budget_tokens"), out)

    def test_run_and_chat_are_bounded(self):
        words = ("--temp", "0", "--chat-template", "raw", "-n", str(MOST), "--reasoning-budget", str(BUDGET))
        said = self.ok("run", *words, "-p", OPEN[0]["content"], "--json").json["message"]
        self.assertEqual(said["reasoning_content"], self.thought(BUDGET))
        self.assertTrue(said["content"])
        self.assertEqual(self.ok("chat", *words, stdin=b"Once upon a time <think>\n").code, 0)
        drafted = self.ok("run", *words, "--spec-type", "ngram", "-p", OPEN[0]["content"], "--json").json["message"]
        self.assertEqual(drafted, said)


if __name__ == "__main__":
    test_serve.support.main()
