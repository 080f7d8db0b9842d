"""The package openai: chats, streams, tools, schemas, embeddings, models, errors, and responses where they are served."""

import json

from client_case import CHAT, GREEDY, KEY, PROMPT, SCHEMA, TOOL, Client, main, needs

try:
    import openai
except ModuleNotFoundError:
    openai = None


@needs("openai", "jsonschema")
class OpenAi(Client):
    def setUp(self):
        super().setUp()
        self.client = openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.client.close)

    def test_an_answer_has_the_text_of_the_chat(self):
        answer = self.client.chat.completions.create(model="tales", messages=CHAT, **GREEDY)
        self.assertEqual(answer.choices[0].message.content, self.chat_text())
        self.assertEqual((answer.choices[0].finish_reason, answer.model), ("length", "tales"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 8)

    def test_a_stream_has_the_text_of_the_chat(self):
        stream = self.client.chat.completions.create(model="tales", messages=CHAT, stream=True,
                                                     stream_options={"include_usage": True}, **GREEDY)
        chunks = list(stream)
        text = "".join(x.choices[0].delta.content or "" for x in chunks if x.choices)
        self.assertEqual(text, self.chat_text())
        self.assertEqual(chunks[-1].usage.completion_tokens, 8)

    def test_streams_by_the_helper(self):
        with self.client.chat.completions.stream(model="tales", messages=CHAT, **GREEDY) as stream:
            events = list(stream)
            done = stream.current_completion_snapshot
        self.assertEqual("".join(x.delta for x in events if x.type == "content.delta"), self.chat_text())
        self.assertEqual(done.choices[0].message.content, self.chat_text())

    def test_a_completion_equals_the_text_of_run(self):
        answer = self.client.completions.create(model="tales", prompt=PROMPT, **GREEDY)
        self.assertEqual(answer.choices[0].text, self.run_text())

    def test_a_required_tool_is_called(self):
        ask = {"model": "tales", "messages": CHAT, "tools": [{"type": "function", "function": TOOL}],
               "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0, "max_tokens": 100}
        choice = self.client.chat.completions.create(**ask).choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        (call,) = choice.message.tool_calls
        self.assertEqual((call.type, call.function.name), ("function", "feed"))
        self.assertIn(json.loads(call.function.arguments)["animal"], ("fox", "cat"))
        pieces = [x.choices[0].delta.tool_calls[0] for x in self.client.chat.completions.create(stream=True, **ask)
                  if x.choices and x.choices[0].delta.tool_calls]
        self.assertEqual("".join(x.function.arguments or "" for x in pieces), call.function.arguments)
        follow = [*CHAT, choice.message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "It ate."}]
        more = self.client.chat.completions.create(model="tales", messages=follow, **GREEDY)
        self.assertEqual(more.usage.completion_tokens, 8)

    def test_answers_that_follow_a_schema(self):
        form = {"type": "json_schema", "json_schema": {"name": "animal", "schema": SCHEMA, "strict": True}}
        answer = self.client.chat.completions.create(model="tales", messages=CHAT, response_format=form, temperature=0,
                                                     max_tokens=100)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assert_conforms(answer.choices[0].message.content)

    def test_embeddings_equal_the_vectors_of_the_program(self):
        got = self.client.embeddings.create(model="tales", input=["the fox", "a cat"])  # the package asks for base64
        self.assertEqual(len(got.data), 2)
        for one, text in zip(got.data, ("the fox", "a cat")):
            self.assert_vector(one.embedding, text)

    def test_the_list_of_models_has_the_one_that_is_served(self):
        self.assertEqual([x.id for x in self.client.models.list()], ["tales"])
        self.assertEqual(self.client.models.retrieve("tales").owned_by, "bitnet")

    def test_errors_raise_the_classes_of_the_package(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="tales", messages=CHAT, temperature="hot")
        self.assertEqual((caught.exception.param, caught.exception.code), ("temperature", "invalid_type"))
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("other")
        with openai.OpenAI(base_url=self.url + "/v1", api_key="wrong", max_retries=0) as other:
            with self.assertRaises(openai.AuthenticationError):
                other.chat.completions.create(model="tales", messages=CHAT, **GREEDY)

    def test_a_response_and_its_stream_have_the_text_of_the_chat(self):
        self.needs_route("/v1/responses")
        ask = {"model": "tales", "input": CHAT[0]["content"], "temperature": 0, "max_output_tokens": 8}
        self.assertEqual(self.client.responses.create(**ask).output_text, self.chat_text())
        events = list(self.client.responses.create(stream=True, **ask))
        text = "".join(x.delta for x in events if x.type == "response.output_text.delta")
        self.assertEqual(text, self.chat_text())

    def test_log_probabilities_of_responses(self):
        self.needs_route("/v1/responses")
        ask = {"model": "tales", "input": CHAT[0]["content"], "temperature": 0, "max_output_tokens": 8,
               "include": ["message.output_text.logprobs"], "top_logprobs": 2}
        part = self.client.responses.create(**ask).output[0].content[0]
        self.assertEqual("".join(x.token for x in part.logprobs), part.text)
        for one in part.logprobs:
            self.assertEqual((bytes(one.bytes).decode(), len(one.top_logprobs)), (one.token, 2))
            self.assertEqual(one.logprob, max(x.logprob for x in one.top_logprobs))
        events = list(self.client.responses.create(stream=True, **ask))
        deltas = [x for e in events if e.type == "response.output_text.delta" for x in e.logprobs]
        done = events[-1].response.output[0].content[0]
        self.assertEqual([(x.token, x.logprob) for x in deltas], [(x.token, x.logprob) for x in part.logprobs])
        self.assertEqual(done.logprobs, part.logprobs)


if __name__ == "__main__":
    main()
