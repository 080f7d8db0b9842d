"""The package llama-index-llms-openai-like: chats, completions and streams."""

from client_case import CHAT, KEY, PROMPT, Client, main, needs

try:
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike
except ModuleNotFoundError:
    ChatMessage = OpenAILike = None


@needs("llama_index.llms.openai_like")
class LlamaIndex(Client):
    def model(self, is_chat):
        return OpenAILike(model="tales", api_base=self.url + "/v1", api_key=KEY, is_chat_model=is_chat, temperature=0,
                          max_tokens=8, context_window=512, max_retries=0)

    def test_an_answer_and_its_stream_have_the_text_of_the_chat(self):
        message = ChatMessage(role="user", content=CHAT[0]["content"])
        self.assertEqual(self.model(True).chat([message]).message.content, self.chat_text())
        self.assertEqual("".join(x.delta for x in self.model(True).stream_chat([message])), self.chat_text())

    def test_a_completion_equals_the_text_of_run(self):
        self.assertEqual(self.model(False).complete(PROMPT).text, self.run_text())


if __name__ == "__main__":
    main()
