"""`bitnet serve`: /infill and `suffix` of completions. What fills a gap is what follows the tokens that such a prompt has,
put together here."""

import json

import gguf_values
import support
import test_serve
from support import demo_model, needs_backend

PREFIX, SUFFIX = "Once upon a time there was", " who lived in a big house."
FILES = [{"filename": "one.txt", "text": "A fox.\n"}, {"text": "A <|fim_suffix|> bear."}]
TAGS = {"pre": "<|fim_prefix|>", "suf": "<|fim_suffix|>", "mid": "<|fim_middle|>", "rep": "<|repo_name|>",
        "sep": "<|file_sep|>"}
WORDS = ("\u0120grandmother", "\u0120opposite", "\u0120squirrel", "\u0120umbrella", "\u0120kitchen")


def model_with(path, tags, keys=None, kind=3):
    """The demo model, some of whose words became these tokens; their ids. `keys`: metadata, by the names in `tags`."""
    model = gguf_values.Model(demo_model())
    tokens, types = (model.metadata["tokenizer.ggml." + x] for x in ("tokens", "token_type"))
    ids = {name: tokens.index(word) for name, word in zip(TAGS, WORDS) if name in tags}
    for name, id_ in ids.items():
        tokens[id_], types[id_] = tags[name], kind
    for key, name in (keys or {}).items():
        model.metadata["tokenizer.ggml." + key] = ids[name]
    gguf_values.write(path, model.metadata, model.tensors)
    return ids


@needs_backend
class Infill(test_serve.Serving):
    def serve(self, tags, keys=None, kind=3):
        file = self.path("fills.gguf")
        ids = model_with(file, tags, keys, kind)
        return self.start("-m", file), ids

    def ids_of(self, server, text):
        return server.post("/tokenize", content=text, add_special=False, parse_special=False)["tokens"]

    def wanted(self, server, ids, files=(), in_repository=False, **more):
        """The answer to the prompt that these are."""
        prompt = server.post("/tokenize", content="", add_special=True)["tokens"]
        if in_repository and "rep" in ids:
            prompt += [ids["rep"], *self.ids_of(server, "myproject\n")]
        for one in files:
            if "sep" in ids:
                prompt += [ids["sep"], *self.ids_of(server, one.get("filename", "tmp") + "\n")]
            else:
                prompt += self.ids_of(server, "\n\n--- snippet ---\n\n")
            prompt += self.ids_of(server, one["text"])
        if in_repository and "sep" in ids:
            prompt += [ids["sep"], *self.ids_of(server, "filename\n")]
        prompt += [ids["pre"], *self.ids_of(server, PREFIX), ids["suf"], *self.ids_of(server, SUFFIX), ids["mid"]]
        out = server.post("/v1/completions", prompt=prompt, temperature=0, **more)
        return out["choices"][0]["text"], out["usage"]

    def test_tokens_are_found_by_their_texts(self):
        server, ids = self.serve(TAGS)
        text, used = self.wanted(server, ids, FILES, True, max_tokens=5)
        out = server.post("/infill", input_prefix=PREFIX, input_suffix=SUFFIX, input_extra=FILES, n_predict=5,
                          temperature=0)
        self.assertEqual((out["content"], out["tokens_evaluated"], out["tokens_predicted"]), (text, used["prompt_tokens"], 5))
        self.assertEqual((out["stop"], out["stop_type"], out["stopping_word"], out["truncated"]), (True, "limit", "", False))
        self.assertEqual(out["timings"]["predicted_n"], 5)
        begun = server.post("/infill", input_prefix=PREFIX[:9], prompt=PREFIX[9:], input_suffix=SUFFIX, input_extra=FILES,
                            n_predict=5, temperature=0)
        self.assertEqual(begun["content"], text)

    def test_a_stream_is_the_same_text(self):
        server, ids = self.serve(TAGS)
        body = {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 12, "temperature": 0}
        connection, answer = server.send("POST", "/infill", {**body, "stream": True})
        events = [json.loads(x.removeprefix("data: ")) for x in answer.read().decode().split("\n\n") if x.startswith("data")]
        connection.close()
        text, used = self.wanted(server, ids, (), True, max_tokens=12)
        self.assertEqual("".join(x["content"] for x in events), text)
        self.assertEqual([x["stop"] for x in events], [False] * (len(events) - 1) + [True])
        self.assertEqual(events[-1]["tokens_predicted"], used["completion_tokens"])

    def test_words_stop_it_and_members_are_picked(self):
        server, _ = self.serve(TAGS)
        body = {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 40, "temperature": 0}
        whole = server.post("/infill", **body)["content"]
        word = whole.strip().split(" ")[3]
        out = server.post("/infill", **body, stop=["no such", word],
                          response_fields=["content", "stop_type", "stopping_word", "timings/prompt_n", "nosuch/x"])
        self.assertIsInstance(out.pop("timings/prompt_n"), int)
        self.assertEqual(out, {"content": whole[:whole.index(word)], "stop_type": "word", "stopping_word": word})

    def test_a_prompt_is_computed_before_its_answer_is_asked_for(self):
        server, _ = self.serve(TAGS)
        body = {"input_prefix": PREFIX * 20, "input_suffix": SUFFIX, "temperature": 0}
        out = server.post("/infill", **body, n_predict=0)
        self.assertEqual((out["content"], out["tokens_predicted"], out["tokens_cached"]), ("", 0, 0))
        n_prompt = out["tokens_evaluated"]
        out = server.post("/infill", **body, n_predict=4)
        self.assertEqual((out["tokens_evaluated"], out["tokens_cached"]), (n_prompt, n_prompt // 64 * 64))

    def test_tokens_are_found_by_keys(self):
        names = dict(zip(TAGS, ("<a>", "<b>", "<c>")))
        for form in ("fim_{}_token_id", "{}_token_id"):
            older = {"pre": "prefix", "suf": "suffix", "mid": "middle"}
            keys = {form.format(x if form.startswith("fim") else older[x]): x for x in names}
            server, ids = self.serve(names, keys)
            text, used = self.wanted(server, ids, FILES, True, max_tokens=8)
            out = server.post("/infill", input_prefix=PREFIX, input_suffix=SUFFIX, input_extra=FILES, n_predict=8,
                              temperature=0)
            self.assertEqual((out["content"], out["tokens_evaluated"]), (text, used["prompt_tokens"]), form)
            server.kill()

    def test_completions_have_a_suffix(self):
        server, ids = self.serve(TAGS)
        text, _ = self.wanted(server, ids, max_tokens=8)
        out = server.post("/v1/completions", prompt=PREFIX, suffix=SUFFIX, max_tokens=8, temperature=0)
        self.assertEqual(out["choices"][0]["text"], text)
        both = server.post("/v1/completions", prompt=[PREFIX, PREFIX],
                           suffix=SUFFIX, max_tokens=8, temperature=0)
        self.assertEqual([x["text"] for x in both["choices"]], [text, text])
        status, _, why = server.ask("POST", "/v1/completions", {"prompt": PREFIX, "suffix": SUFFIX, "echo": True})
        self.assertEqual((status, why["error"]["param"]), (400, "suffix"))

    def test_a_model_without_infill_tokens_is_reported(self):
        for member, path, body in (("input_suffix", "/infill", {"input_prefix": "a", "input_suffix": "b"}),
                                   ("suffix", "/v1/completions", {"prompt": "a", "suffix": "b"})):
            self.assert_error(400, "unsupported_parameter", member, path, body,
                              "has no tokenizer.ggml.fim_pre_token_id, tokenizer.ggml.fim_suf_token_id, "
                              "tokenizer.ggml.fim_mid_token_id")
        server, _ = self.serve({name: TAGS[name] for name in ("pre", "suf")})
        status, _, out = server.ask("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"})
        self.assertEqual(status, 400)
        self.assertIn("has no tokenizer.ggml.fim_mid_token_id,", out["error"]["message"])
        text, _ = self.serve(TAGS, kind=1)
        status, _, out = text.ask("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"})
        self.assertEqual(status, 400, "words that are spelled like such tokens are words")

    def test_wrong_bodies_are_rejected_by_member(self):
        for body, member in (({"input_suffix": "b"}, "input_prefix"), ({"input_prefix": "a"}, "input_suffix"),
                             ({"input_prefix": 1, "input_suffix": "b"}, "input_prefix"),
                             ({"input_prefix": "a", "input_suffix": "b", "input_extra": "c"}, "input_extra"),
                             ({"input_prefix": "a", "input_suffix": "b", "input_extra": [1]}, "input_extra[0]"),
                             ({"input_prefix": "a", "input_suffix": "b", "input_extra": [{"text": 1}]},
                              "input_extra[0].text"),
                             ({"input_prefix": "a", "input_suffix": "b", "response_fields": [1]}, "response_fields")):
            self.assert_error(400, "invalid_type", member, "/infill", body)


if __name__ == "__main__":
    support.main()
