"""The package litellm: its providers of OpenAI's API and of Anthropic's, whole and as streams, tools, embeddings and errors."""

import json
import os
import warnings

from client_case import CHAT, KEY, PROMPT, SCHEMA, TOOL, Client, main, needs

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks another machine for prices
try:
    import litellm
    litellm.suppress_debug_info = True
    warnings.filterwarnings("ignore", module="pydantic|litellm")  # of types of providers that are not used here
except ModuleNotFoundError:
    litellm = None


@needs("litellm")
class LiteLlm(Client):
    def common(self, provider):
        base = self.url if provider == "anthropic" else self.url + "/v1"
        return {"model": provider + "/tales", "api_base": base, "api_key": KEY, "num_retries": 0, "timeout": 60}

    def ask(self, provider, **more):
        return litellm.completion(**self.common(provider), messages=CHAT, temperature=0, **{"max_tokens": 8, **more})

    def test_each_provider_gets_the_text_of_the_chat(self):
        for provider in ("openai", "anthropic", "hosted_vllm"):
            with self.subTest(provider):
                answer = self.ask(provider)
                self.assertEqual(answer.choices[0].message.content, self.chat_text())
                self.assertEqual((answer.choices[0].finish_reason, answer.usage.completion_tokens), ("length", 8))
                self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 8)

    def test_each_provider_streams_the_text_of_the_chat(self):
        for provider in ("openai", "anthropic", "hosted_vllm"):
            with self.subTest(provider):
                chunks = list(self.ask(provider, stream=True, stream_options={"include_usage": True}))
                text = "".join(x.choices[0].delta.content or "" for x in chunks if x.choices)
                self.assertEqual(text, self.chat_text())
                self.assertEqual([x.choices[0].finish_reason for x in chunks if x.choices and x.choices[0].finish_reason],
                                 ["length"])
                self.assertEqual([x.usage.completion_tokens for x in chunks if getattr(x, "usage", None)][-1], 8)

    def assert_fed(self, message):
        (call,) = message.tool_calls
        self.assertEqual(call.function.name, "feed")
        self.assertIn(json.loads(call.function.arguments)["animal"], ("fox", "cat"))

    def test_a_required_tool_is_called_by_each_provider(self):
        ask = {"tools": [{"type": "function", "function": TOOL}], "tool_choice": "required", "max_tokens": 100,
               "parallel_tool_calls": False}
        for provider in ("openai", "anthropic"):
            with self.subTest(provider):
                choice = self.ask(provider, **ask).choices[0]
                self.assertEqual(choice.finish_reason, "tool_calls")
                self.assert_fed(choice.message)
                joined = litellm.stream_chunk_builder(list(self.ask(provider, stream=True, **ask)), messages=CHAT)
                self.assertEqual(joined.choices[0].finish_reason, "tool_calls")
                self.assert_fed(joined.choices[0].message)

    def test_results_of_tools(self):
        called = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "feed", "arguments": '{"animal": "fox"}'}}]}
        turns = [*CHAT, called, {"role": "tool", "tool_call_id": "call_1", "content": "It ate."}]
        for provider in ("openai", "anthropic"):
            with self.subTest(provider):
                answer = litellm.completion(**self.common(provider), messages=turns, temperature=0, max_tokens=8,
                                            tools=[{"type": "function", "function": TOOL}])
                self.assertEqual(answer.usage.completion_tokens, 8)

    def test_answers_that_follow_a_schema(self):
        form = {"type": "json_schema", "json_schema": {"name": "animal", "schema": SCHEMA, "strict": True}}
        answer = self.ask("openai", response_format=form, max_tokens=100)
        self.assert_conforms(answer.choices[0].message.content)

    def test_a_completion_equals_the_text_of_run(self):
        common = self.common("text-completion-openai")
        answer = litellm.text_completion(**common, prompt=PROMPT, temperature=0, max_tokens=8)
        self.assertEqual(answer.choices[0].text, self.run_text())
        chunks = litellm.text_completion(**common, prompt=PROMPT, temperature=0, max_tokens=8, stream=True)
        self.assertEqual("".join(x.choices[0].text or "" for x in chunks), self.run_text())

    def test_a_response_has_the_text_of_the_chat(self):
        # 16 tokens: it raises fewer to that, which is OpenAI's least.
        want = self.chat_text(16)
        ask = {**self.common("openai"), "input": CHAT[0]["content"], "temperature": 0, "max_output_tokens": 16}
        self.assertEqual(litellm.responses(**ask).output[0].content[0].text, want)
        events = list(litellm.responses(**ask, stream=True))
        self.assertEqual("".join(x.delta for x in events if x.type == "response.output_text.delta"), want)

    def test_embeddings_equal_the_vectors_of_the_program(self):
        answer = litellm.embedding(**self.common("openai"), input=["the fox", "a cat"], encoding_format="float")
        self.assert_vector(answer.data[0]["embedding"], "the fox")
        self.assert_vector(answer.data[1]["embedding"], "a cat")
        self.assertGreater(answer.usage.prompt_tokens, 0)

    def test_errors_raise_the_classes_of_the_package(self):
        for provider in ("openai", "anthropic"):
            with self.subTest(provider):
                with self.assertRaises(litellm.AuthenticationError):
                    litellm.completion(**{**self.common(provider), "api_key": "wrong"}, messages=CHAT, max_tokens=8)
                with self.assertRaises(litellm.BadRequestError):
                    self.ask(provider, max_tokens=0)
                # Agents shorten a conversation at this one.
                with self.assertRaises(litellm.ContextWindowExceededError):
                    litellm.completion(**self.common(provider), max_tokens=8,
                                       messages=[{"role": "user", "content": "the fox " * 2000}])


if __name__ == "__main__":
    main()
