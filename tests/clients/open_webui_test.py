"""Open WebUI's requests, as it sends them to a server of OpenAI's API: its own members in bodies, titles and tags as JSON."""

import json

from client_case import CHAT, KEY, Client, main, needs

# A chat with these has gone through a proxy or a filter that passes the page's own members on.
OF_THE_PAGE = {
    "chat_id": "6a5f1c0e-9c1b-4a53-8a0e-2f1f9d6f3b11", "id": "0d0c5c52-53ec-4b0e-8a50-1a2b3c4d5e6f",
    "session_id": "jx0Yk3o7tqWQmZbMAAAB", "parent_id": None,
    "features": {"image_generation": False, "code_interpreter": False, "web_search": False, "memory": False},
    "variables": {"{{USER_NAME}}": "Ada", "{{CURRENT_DATE}}": "2026-11-28"},
    "background_tasks": {"title_generation": True, "tags_generation": True, "follow_up_generation": True},
    "model_item": {"id": "tales", "name": "tales", "object": "model", "owned_by": "openai", "openai": {"id": "tales"},
                   "urlIdx": 0, "connection_type": "external", "tags": [], "actions": [], "filters": []},
    "tool_ids": [], "tool_servers": [], "files": [], "filter_ids": [],
    "metadata": {"user_id": "5b1c", "chat_id": "6a5f1c0e", "task": "title_generation", "features": {"memory": False}},
    "params": {"temperature": 1.7, "max_tokens": 1, "function_calling": "native"},  # those of the page, in a member
}
TASK = """### Task:
Generate {what} for the chat.

### Output:
JSON format: {form}

### Chat History:
<chat_history>
USER: Tell me a story.
ASSISTANT: Once upon a time there was a fox.
</chat_history>"""


@needs()
class OpenWebUi(Client):
    OPTIONS = (*Client.OPTIONS, "-c", "512")
    FIELDS = {"Authorization": "Bearer " + KEY, "X-OpenWebUI-User-Name": "Ada%20L", "X-OpenWebUI-User-Id": "5b1c",
              "X-OpenWebUI-User-Email": "ada@example.org", "X-OpenWebUI-User-Role": "admin",
              "X-OpenWebUI-Chat-Id": "6a5f1c0e", "Accept": "*/*", "User-Agent": "Python/3.11 aiohttp/3.11.11"}

    def ask(self, method, path, body=None):
        status, fields, out = self.server.ask(method, path, body, self.FIELDS)
        self.assertEqual(status, 200, out)
        self.assertEqual(fields["Content-Type"], "application/json")
        return out

    def stream(self, body):
        connection, answer = self.server.send("POST", "/v1/chat/completions", body, self.FIELDS)
        self.addCleanup(connection.close)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/event-stream"))
        lines = answer.read().decode().split("\n\n")
        self.assertEqual(lines[-2:], ["data: [DONE]", ""])
        return [json.loads(x.removeprefix("data: ")) for x in lines[:-2]]

    def test_lists_the_models(self):
        # Its list of models shows `id`, and its settings ask the same without a body of their own.
        out = self.ask("GET", "/v1/models")
        self.assertEqual(out["object"], "list")
        self.assertEqual([(x["id"], x["object"]) for x in out["data"]], [("tales", "model")])
        self.assertIsInstance(out["data"][0]["created"], int)
        self.assertIsInstance(out["data"][0]["owned_by"], str)

    def test_chats_as_the_page_does(self):
        # Members that are none of the API change nothing, not even those of `params` and of `metadata`.
        body = {"stream": True, "model": "tales", "messages": CHAT, "stream_options": {"include_usage": True},
                "temperature": 0, "max_tokens": 8, **OF_THE_PAGE}
        chunks = self.stream(body)
        text = "".join(x["choices"][0]["delta"].get("content") or "" for x in chunks if x["choices"])
        self.assertEqual(text, self.chat_text())
        usage = [x["usage"] for x in chunks if x.get("usage")]
        self.assertEqual([x["completion_tokens"] for x in usage], [8])
        self.assertEqual({x["id"] for x in chunks}, {chunks[0]["id"]})

    def test_settings_of_a_chat_are_followed(self):
        # "Advanced params" as the page sends them; those of Ollama that are none of ours are ignored.
        settings = {"temperature": 0, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 42, "stop": ["zzzz"],
                    "frequency_penalty": 0, "presence_penalty": 0, "repeat_penalty": 1, "repeat_last_n": 64, "mirostat": 0,
                    "mirostat_eta": 0.1, "mirostat_tau": 5, "tfs_z": 1, "num_ctx": 2048, "num_batch": 512, "num_keep": 24,
                    "num_thread": 2, "use_mmap": True, "use_mlock": False, "keep_alive": "5m", "logit_bias": {},
                    "max_tokens": 8}
        out = self.ask("POST", "/v1/chat/completions", {"stream": False, "model": "tales", "messages": CHAT, **settings})
        self.assertEqual(out["choices"][0]["message"]["content"], self.chat_text())

    def test_text_in_parts_is_text(self):
        body = {"stream": False, "model": "tales", "temperature": 0, "max_tokens": 8,
                "messages": [{"role": "user", "content": [{"type": "text", "text": CHAT[0]["content"]}]}]}
        out = self.ask("POST", "/v1/chat/completions", body)
        self.assertEqual(out["choices"][0]["message"]["content"], self.chat_text())

    def test_a_turn_with_a_system_prompt(self):
        turns = [{"role": "system", "content": "You tell tales to Ada."}, *CHAT,
                 {"role": "assistant", "content": "Once upon a time there was a fox."},
                 {"role": "user", "content": "And then?"}]
        out = self.ask("POST", "/v1/chat/completions", {"stream": False, "model": "tales", "messages": turns,
                                                        "temperature": 0, "max_tokens": 8, **OF_THE_PAGE})
        self.assertEqual(out["usage"]["completion_tokens"], 8)

    def test_titles_and_tags(self):
        # A task is one message, whole, with `max_completion_tokens` of 1000 and more than this context has. Its
        # answer is text from which the page takes the JSON; a small model need not have written any.
        for what, form in (("a concise title", '{ "title": "your concise title here" }'),
                           ("1-3 broad tags", '{ "tags": ["tag1", "tag2"] }'),
                           ("3-5 follow-up questions", '{ "follow_ups": ["Question 1?"] }')):
            body = {"model": "tales", "stream": False, "max_completion_tokens": 1000, "temperature": 0,
                    "messages": [{"role": "user", "content": TASK.format(what=what, form=form)}],
                    "metadata": {**OF_THE_PAGE["metadata"], "task_body": {"model": "tales", "messages": CHAT}}}
            (choice,) = self.ask("POST", "/v1/chat/completions", body)["choices"]
            self.assertIn(choice["finish_reason"], ("stop", "length"))
            self.assertIsInstance(choice["message"]["content"], str)

    def test_titles_that_must_be_json(self):
        schema = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 20}},
                  "required": ["title"], "additionalProperties": False}
        task = TASK.format(what="a concise title", form='{ "title": "your concise title here" }')
        for form in ({"type": "json_object"},
                     {"type": "json_schema", "json_schema": {"name": "title", "schema": schema, "strict": True}}):
            out = self.ask("POST", "/v1/chat/completions", {
                "model": "tales", "stream": False, "max_tokens": 200, "temperature": 0, "response_format": form,
                "messages": [{"role": "user", "content": task}]})
            (choice,) = out["choices"]
            if choice["finish_reason"] == "stop":
                got = json.loads(choice["message"]["content"])
                self.assertIsInstance(got, dict)
                if form["type"] == "json_schema":
                    self.assertEqual(set(got), {"title"})
                    self.assertLessEqual(len(got["title"]), 20)
            else:
                self.assertEqual((choice["finish_reason"], form["type"]), ("length", "json_object"))

    def test_tools_that_the_page_calls_itself(self):
        # "Native" calls: a stream whose pieces the page joins by `index`, then the turn with the result.
        tools = [{"type": "function", "function": {
            "name": "get_current_time", "description": "The time", "parameters": {
                "type": "object", "properties": {"zone": {"type": "string", "enum": ["UTC"], "description": "where"}},
                "required": ["zone"], "additionalProperties": False}}}]
        chunks = self.stream({"stream": True, "model": "tales", "messages": CHAT, "tools": tools, "max_tokens": 100,
                              "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0, **OF_THE_PAGE})
        call = {"id": "", "name": "", "arguments": ""}
        for chunk in chunks:
            for piece in chunk["choices"][0]["delta"].get("tool_calls") or []:
                self.assertEqual(piece["index"], 0)
                call["id"] += piece.get("id") or ""
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"].get("arguments") or ""
        self.assertEqual((call["name"], json.loads(call["arguments"])), ("get_current_time", {"zone": "UTC"}))
        turns = [*CHAT, {"role": "assistant", "content": "", "tool_calls": [
            {"id": call["id"], "index": 0, "type": "function",
             "function": {"name": call["name"], "arguments": call["arguments"]}}]},
            {"role": "tool", "tool_call_id": call["id"], "content": "12:00"}]
        out = self.ask("POST", "/v1/chat/completions", {"stream": False, "model": "tales", "messages": turns,
                                                        "tools": tools, "temperature": 0, "max_tokens": 8})
        self.assertEqual(out["usage"]["completion_tokens"], 8)

    def test_documents_become_vectors(self):
        texts = ["the fox", "a small rabbit"]
        out = self.ask("POST", "/v1/embeddings", {"input": texts, "model": "tales"})
        for i, text in enumerate(texts):
            self.assert_vector(out["data"][i]["embedding"], text)

    def test_an_error_is_shown_by_its_message(self):
        status, _, out = self.server.ask("POST", "/v1/chat/completions",
                                         {"stream": True, "model": "tales", "messages": "text"}, self.FIELDS)
        self.assertEqual(status, 400)
        self.assertIsInstance(out["error"]["message"], str)
        self.assertEqual(self.server.ask("GET", "/v1/models", None, {**self.FIELDS, "Authorization": "Bearer x"})[0], 200)
        self.assertEqual(self.server.ask("POST", "/v1/chat/completions", {"model": "tales", "messages": CHAT},
                                         {"Authorization": "Bearer x"})[0], 401)


if __name__ == "__main__":
    main()
