"""/openapi.json of `bitnet serve`, judged by jsonschema: real answers are as it says, and have no members that it does not name."""

import copy
import json
import re
import signal
import unittest

import test_serve
from support import needs_backend
from test_serve import CHAT, GREEDY, LONG, PROMPT, TOOLS
from test_serve_errors import exchange, head_of

try:
    import jsonschema
except ImportError:
    jsonschema = None
try:
    import openapi_spec_validator
except ImportError:
    openapi_spec_validator = None

CITY = {"type": "object", "properties": {"city": {"enum": ["Bonn"]}}, "required": ["city"], "additionalProperties": False}
CALL = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
KEY, ADMIN = {"Authorization": "Bearer key"}, {"Authorization": "Bearer admin"}


def closed(schema):
    """A schema whose objects have no other members than those that it names."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {name: closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        out["additionalProperties"] = False
    return out


@unittest.skipUnless(jsonschema, "jsonschema is not installed: scripts/setup makes build/venv")
@needs_backend
class OpenApi(test_serve.Serving):
    def setUp(self):
        cls = type(self)
        if "server" not in cls.__dict__:
            folder = test_serve.support.tempfile.TemporaryDirectory(prefix="bitnet-cli-", ignore_cleanup_errors=True)
            cls.addClassCleanup(folder.cleanup)
            with open(folder.name + "/admin", "w", encoding="ascii") as f:
                f.write("admin\n")
            cls.server = test_serve.Server(folder.name, "--api-key", "key", "--admin-key-file", f.name, "--alias", "tales")
            cls.addClassCleanup(cls.server.kill)
            cls.page = cls.server.ask("GET", "/openapi.json")[2]
        super().setUp()

    def validator(self, ref, strict=True):
        document = copy.deepcopy(self.page)
        if strict:
            document["components"]["schemas"] = closed(document["components"]["schemas"])
        return jsonschema.Draft202012Validator({**document, "$ref": ref})

    def response_of(self, method, path, status):
        """What the document says of an answer of this status."""
        for pattern, methods in self.page["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) and method.lower() in methods:
                all_of_them = methods[method.lower()]["responses"]
                one = all_of_them.get(str(status), all_of_them["default"])
                return one if "$ref" not in one else self.page["components"]["responses"][one["$ref"].split("/")[-1]]
        raise AssertionError(f"{method} {path} is not described")

    def check(self, method, path, body=None, status=200, fields=None, server=None):
        """Asks, and judges the answer."""
        server = server or self.server
        got, head, text = server.ask(method, path, body, {**KEY, **(fields or {})})
        self.assertEqual(got, status, text)
        kind = head["Content-Type"]
        content = self.response_of(method, path, status)["content"]
        self.assertIn(kind, content)
        ref = content[kind]["schema"]["$ref"]
        values = [text]
        if kind == "text/event-stream":
            values = [json.loads(line[6:]) for line in text.splitlines()
                      if line.startswith("data: ") and line != "data: [DONE]"]
            self.assertTrue(values)
        for value in values:
            self.validator(ref).validate(value)
        return values

    def test_the_document_uses_each_schema(self):
        schemas = self.page["components"]["schemas"]
        for name, schema in schemas.items():
            self.assertRegex(name, r"^[A-Za-z0-9._-]+$")
            jsonschema.Draft202012Validator.check_schema(schema)
        used, todo = set(), [self.page["paths"]]
        while todo:
            one = todo.pop()
            todo += one if isinstance(one, list) else one.values() if isinstance(one, dict) else []
            if isinstance(one, dict) and "$ref" in one and one["$ref"] not in used:
                used.add(one["$ref"])
                top, components, kind, name = one["$ref"].split("/")
                self.assertEqual((top, components), ("#", "components"))
                todo.append(self.page["components"][kind][name])
        self.assertEqual({x.split("/")[-1] for x in used if "/schemas/" in x}, set(schemas), "each is used")
        names = [of["operationId"] for methods in self.page["paths"].values() for of in methods.values()]
        self.assertEqual(len(names), len(set(names)))
        for path, methods in self.page["paths"].items():
            for method, of in methods.items():
                answers = of["responses"]
                self.assertTrue({"200", "503", "default"} <= set(answers), path)
                self.assertEqual("401" in answers, of["security"] != [])
                self.assertEqual("413" in answers, method == "post")
                if "application/json" in answers["200"]["content"]:
                    self.assertIn("$ref", answers["200"]["content"]["application/json"]["schema"], path)
                form = "AnthropicError" if "messages" in path else "Error"
                self.assertEqual(answers["default"], {"$ref": f"#/components/responses/{form}"})
        if openapi_spec_validator:
            openapi_spec_validator.validate(self.page)

    def test_answers_with_texts_follow_their_schemas(self):
        for more in ({}, {"n": 2, "temperature": 1}, {"logprobs": True, "top_logprobs": 2},
                     {"tools": CALL, "tool_choice": "required", "max_tokens": 100}, {"tools": TOOLS},
                     {"tools": [{"type": "function", "function": {"name": "feed", "parameters": {"type": "object", "not": {}}}}],
                      "tool_choice": "required"}):
            for way in ({}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}):
                self.check("POST", "/v1/chat/completions", {"messages": CHAT, **GREEDY, **more, **way})
        for more in ({}, {"logprobs": 2}, {"prompt": [PROMPT, "The"], "n": 2}):
            for way in ({}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}):
                self.check("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY, **more, **way})
        self.check("POST", "/v1/completions", {"prompt": PROMPT, "echo": True, "logprobs": 1, **GREEDY})
        for form in ("float", "base64"):
            self.check("POST", "/v1/embeddings", {"input": [PROMPT, "The"], "encoding_format": form})

    def test_answers_of_other_apis_follow_their_schemas(self):
        tool = {"name": "weather", "input_schema": CITY}
        for way in ({}, {"stream": True}):
            self.check("POST", "/v1/messages", {"messages": CHAT, "max_tokens": 4, **way})
            calls = self.check("POST", "/v1/messages", {"messages": CHAT, "max_tokens": 100, "tools": [
                tool, {"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "any"}, **way})
            self.assertIn("tool_use", json.dumps(calls))
            self.check("POST", "/v1/responses", {"input": PROMPT, "max_output_tokens": 4, "metadata": {"a": "b"}, **way})
            calls = self.check("POST", "/v1/responses", {"input": PROMPT, "max_output_tokens": 100, "tools": [
                {"type": "function", "name": "weather", "parameters": CITY}, {"type": "web_search"}],
                "tool_choice": "required", **way})
            self.assertIn("function_call", json.dumps(calls))
        self.check("POST", "/v1/messages/count_tokens", {"messages": CHAT})
        self.check("POST", "/v1/responses/input_tokens", {"input": PROMPT})
        self.check("POST", "/v1/chat/completions/input_tokens", {"messages": CHAT})

    def test_facts_follow_their_schemas(self):
        for path in ("/v1/models", "/v1/models/tales", "/props", "/slots", "/backends", "/health", "/ready", "/openapi.json"):
            self.check("GET", path)
        self.check("POST", "/tokenize", {"content": PROMPT + "\u00e4\U0001f600", "with_pieces": True})
        self.check("POST", "/tokenize", {"content": PROMPT})
        self.check("POST", "/detokenize", {"tokens": [1, 2, 3]})
        self.check("POST", "/apply-template", {"messages": CHAT})
        self.check("POST", "/backends/reload", {}, fields=ADMIN)
        self.check("POST", "/backends/prefer", {"device": "cpu"}, fields=ADMIN)
        self.check("POST", "/models/unload", {"model": "tales"}, fields=ADMIN)
        self.server.wait_for(lambda: self.check("GET", "/v1/models")[0]["data"][0]["status"]["value"] == "unloaded", "it goes")
        self.check("POST", "/models/load", {"model": "tales"}, fields=ADMIN)

    def test_errors_follow_their_schemas(self):
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions", "/tokenize"):
            self.check("POST", path, {}, 400)
            self.check("POST", path, {}, 401, {"Authorization": "Bearer wrong"})
            self.check("POST", path, b"[1]", 400)
        self.check("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a " * 2000}]}, 400)
        self.check("POST", "/v1/messages", {"messages": [{"role": "user", "content": "a " * 2000}], "max_tokens": 4}, 400)
        for path in ("/v1/messages", "/v1/completions"):
            status, _, body = exchange(self.server.port, head_of("POST", path, KEY, 17 << 20))
            self.assertEqual(status, 413)
            content = self.response_of("POST", path, 413)["content"]["application/json"]
            self.validator(content["schema"]["$ref"]).validate(body)
        self.check("GET", "/v1/models/absent", status=404)
        self.check("POST", "/backends/reload", {}, 401)

    def test_errors_at_the_end(self):
        server = self.start("--api-key", "key")
        connection, answer = server.send("POST", "/v1/completions", {"prompt": "Once", "stream": True, **LONG}, KEY)
        answer.readline()
        server.signal(signal.SIGTERM)
        server.wait_for(lambda: server.ask("GET", "/ready")[0] == 503, "the end begins")
        for path, body in (("/v1/messages", {"messages": CHAT, "max_tokens": 4}), ("/v1/completions", {"prompt": "a"})):
            self.check("POST", path, body, 503, server=server)
        self.check("GET", "/ready", status=503, server=server)
        connection.close()

    def test_the_validator_rejects_wrong_answers(self):
        of = self.check("GET", "/v1/models/tales")[0]
        ref = "#/components/schemas/Model"
        for wrong in ({**of, "new": 1}, {**of, "created": "now"}, {k: v for k, v in of.items() if k != "status"}):
            self.assertFalse(self.validator(ref).is_valid(wrong))
        self.assertTrue(self.validator(ref, strict=False).is_valid({**of, "new": 1}), "clients bear new members")


if __name__ == "__main__":
    test_serve.support.main()
