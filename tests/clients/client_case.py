"""One `bitnet serve` with the demo model for the test of one client, whose texts are judged by `bitnet run`."""

import importlib
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

import support  # noqa: E402
from test_serve import CHAT, GREEDY, PROMPT, Serving  # noqa: E402

KEY = "key-of-the-clients"
TOOL = {"name": "feed", "description": "Gives an animal food",
        "parameters": {"type": "object", "properties": {"animal": {"enum": ["fox", "cat"]}}, "required": ["animal"],
                       "additionalProperties": False}}
SCHEMA = {"type": "object", "properties": {"animal": {"enum": ["fox", "cat"]}, "is_big": {"type": "boolean"}},
          "required": ["animal", "is_big"], "additionalProperties": False}

__all__ = ["CHAT", "GREEDY", "KEY", "PROMPT", "SCHEMA", "TOOL", "Client", "main", "needs", "support"]


def needs(*modules):
    """Skips a class where a package of requirements.txt is not installed."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            return unittest.skip(f"there is no Python package {name}; scripts/test --lane clients installs it")
    return lambda case: support.needs_backend(case)


class Client(Serving):
    OPTIONS = ("--alias", "tales", "--api-key", KEY)

    @property
    def url(self):
        return self.server.address

    def needs_route(self, path):
        if path not in self.server.ask("GET", "/openapi.json")[2]["paths"]:
            self.fail(f"this server has no route {path}")

    def chat_text(self, n_tokens=8):
        """What the demo model answers to CHAT, by `bitnet run`."""
        done = self.ok("run", "-cnv", "-p", CHAT[0]["content"], "-n", str(n_tokens), "--temp", "0", "--no-display-prompt")
        return done.text[:-1]

    def assert_conforms(self, text):
        import jsonschema
        jsonschema.validate(json.loads(text), SCHEMA)

    def assert_vector(self, vector, text):
        want = json.loads(self.ok("embed", "-p", text).text)["embedding"]
        self.assertEqual(len(vector), len(want))
        for mine, alone in zip(vector, want):
            self.assertAlmostEqual(mine, alone, places=6)


main = support.main
