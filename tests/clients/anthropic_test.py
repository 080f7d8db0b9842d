"""The package anthropic: messages, streams, tools, counts of tokens and errors, where the server has /v1/messages."""

from client_case import CHAT, KEY, TOOL, Client, main, needs

try:
    import anthropic
except ModuleNotFoundError:
    anthropic = None


@needs("anthropic")
class Anthropic(Client):
    def setUp(self):
        super().setUp()
        self.needs_route("/v1/messages")
        self.client = anthropic.Anthropic(base_url=self.url, api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.client.close)
        self.ask = {"model": "tales", "messages": CHAT, "max_tokens": 8, "extra_body": {"temperature": 0}}

    def test_a_message_has_the_text_of_the_chat(self):
        answer = self.client.messages.create(**self.ask)
        self.assertEqual(answer.content[0].text, self.chat_text())
        self.assertEqual((answer.stop_reason, answer.usage.output_tokens), ("max_tokens", 8))

    def test_a_stream_has_the_text_of_the_chat(self):
        with self.client.messages.stream(**self.ask) as stream:
            self.assertEqual("".join(stream.text_stream), self.chat_text())
            self.assertEqual(stream.get_final_message().stop_reason, "max_tokens")

    def test_a_forced_call_of_a_tool_is_answered_and_goes_on(self):
        tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
        answer = self.client.messages.create(**{**self.ask, "max_tokens": 100}, tools=[tool],
                                             tool_choice={"type": "any", "disable_parallel_tool_use": True})
        self.assertEqual(answer.stop_reason, "tool_use")
        (call,) = [x for x in answer.content if x.type == "tool_use"]
        self.assertEqual(call.name, "feed")
        self.assertIn(call.input["animal"], ("fox", "cat"))
        # The answer's own blocks come back as they are.
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "It ate."}
        turns = [*CHAT, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
        second = self.client.messages.create(**{**self.ask, "messages": turns}, tools=[tool])
        self.assertEqual(second.usage.output_tokens, 8)

    def test_text_comes_back_as_it_is(self):
        first = self.client.messages.create(**self.ask)
        turns = [*CHAT, {"role": "assistant", "content": first.content}, {"role": "user", "content": "And then?"}]
        self.assertEqual(self.client.messages.create(**{**self.ask, "messages": turns}).usage.output_tokens, 8)

    def test_counts_of_tokens(self):
        self.needs_route("/v1/messages/count_tokens")
        counted = self.client.messages.count_tokens(model="tales", messages=CHAT).input_tokens
        self.assertEqual(counted, self.client.messages.create(**self.ask).usage.input_tokens)

    def test_errors_raise_the_classes_of_the_package(self):
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(**{**self.ask, "messages": []})
        with anthropic.Anthropic(base_url=self.url, api_key="wrong", max_retries=0) as other:
            with self.assertRaises(anthropic.AuthenticationError):
                other.messages.create(**self.ask)

    def test_errors_have_types_and_ids(self):
        wrong = anthropic.Anthropic(base_url=self.url, api_key="wrong", max_retries=0)
        self.addCleanup(wrong.close)
        large = [{"role": "user", "content": "a" * (17 << 20)}]
        for call, status, kind in (
                (lambda: wrong.messages.create(**self.ask), 401, "authentication_error"),
                (self.client.messages.batches.list, 404, "not_found_error"),
                (lambda: self.client.models.retrieve("absent"), 404, "not_found_error"),
                (lambda: self.client.messages.create(**{**self.ask, "messages": large}), 413, "request_too_large"),
                (lambda: self.client.messages.create(**{**self.ask, "max_tokens": 0}), 400, "invalid_request_error")):
            with self.assertRaises(anthropic.APIStatusError) as caught:
                call()
            why = caught.exception
            self.assertEqual((why.status_code, why.body["type"], why.body["error"]["type"]), (status, "error", kind))
            self.assertTrue(why.request_id)
            self.assertEqual(why.body["request_id"], why.request_id)


@needs("anthropic")
class Thinking(Client):
    OPTIONS = (*Client.OPTIONS, "--chat-template", "raw")

    def test_is_bounded_by_its_budget(self):
        client = anthropic.Anthropic(base_url=self.url, api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(client.close)
        ask = {"model": "tales", "messages": [{"role": "user", "content": "Once upon a time <think>\n"}],
               "extra_body": {"temperature": 0}}
        thought = client.messages.create(max_tokens=6, **ask).content
        answer = client.messages.create(max_tokens=24, thinking={"type": "enabled", "budget_tokens": 6}, **ask).content
        self.assertEqual([x.type for x in answer], ["thinking", "text"])
        self.assertEqual(answer[0].thinking, thought[0].thinking)
        with client.messages.stream(max_tokens=24, thinking={"type": "enabled", "budget_tokens": 6}, **ask) as stream:
            self.assertEqual([x.type for x in stream.get_final_message().content], ["thinking", "text"])


if __name__ == "__main__":
    main()
