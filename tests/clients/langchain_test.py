"""The package langchain-openai: chats, streams, tools, schemas, embeddings and errors."""

from client_case import CHAT, KEY, SCHEMA, TOOL, Client, main, needs

try:
    import langchain_openai
    import openai
except ModuleNotFoundError:
    langchain_openai = openai = None


@needs("langchain_openai")
class LangChain(Client):
    def chat(self, **more):
        return langchain_openai.ChatOpenAI(base_url=self.url + "/v1", api_key=more.pop("key", KEY), model="tales",
                                           temperature=0, max_retries=0, **{"max_tokens": 8, **more})

    def test_an_answer_has_the_text_of_the_chat(self):
        answer = self.chat().invoke(CHAT[0]["content"])
        self.assertEqual(answer.content, self.chat_text())
        self.assertEqual(answer.usage_metadata["output_tokens"], 8)

    def test_a_stream_has_the_text_of_the_chat(self):
        self.assertEqual("".join(x.content for x in self.chat().stream(CHAT[0]["content"])), self.chat_text())

    def test_a_required_tool_is_called(self):
        tool = {"type": "function", "function": TOOL}
        bound = self.chat(max_tokens=100).bind_tools([tool], tool_choice="required", parallel_tool_calls=False)
        (call,) = bound.invoke(CHAT[0]["content"]).tool_calls
        self.assertEqual(call["name"], "feed")
        self.assertIn(call["args"]["animal"], ("fox", "cat"))

    def test_answers_that_follow_a_schema(self):
        asking = self.chat(max_tokens=100).with_structured_output({"title": "animal", **SCHEMA}, method="json_schema")
        got = asking.invoke(CHAT[0]["content"])
        self.assertEqual(set(got), {"animal", "is_big"})

    def test_an_embedding_equals_the_vector_of_the_program(self):
        asking = langchain_openai.OpenAIEmbeddings(base_url=self.url + "/v1", api_key=KEY, model="tales",
                                                   check_embedding_ctx_length=False)
        self.assert_vector(asking.embed_query("the fox"), "the fox")

    def test_a_wrong_key_raises_an_authentication_error(self):
        with self.assertRaises(openai.AuthenticationError):
            self.chat(key="wrong").invoke("a")


if __name__ == "__main__":
    main()
