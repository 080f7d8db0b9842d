"""Several models behind one server: loaded when a request names them, unloaded for others. Texts are judged by those of `bitnet run`."""

import os
import signal
import threading

import support
from support import demo_model, needs_backend
from test_serve import CHAT, GREEDY, LONG, PROMPT, Serving

ADMIN = {"Authorization": "Bearer root"}


@needs_backend
class Models(Serving):
    """The demo model, and one whose embedding was rounded: they differ in their texts."""

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.home, "models")
        os.mkdir(self.folder)
        self.ok("convert", demo_model(), self.file("second"), "--token-embedding-type", "q4_0")
        os.symlink(demo_model(), self.file("first"))
        with open(self.file("broken"), "wb") as f:
            f.write(b"GGUF\x03\0\0\0 cut off")
        self.keys = self.path("keys", "root\n")

    def file(self, name):
        return os.path.join(self.folder, name + ".gguf")

    def serve(self, *words):
        self.server = self.start("--models-dir", self.folder, "--admin-key-file", self.keys, *words,
                                 env={"BITNET_MODEL": ""})

    def states(self):
        return {x["id"]: x["status"]["value"] for x in self.server.ask("GET", "/v1/models")[2]["data"]}

    def becomes(self, **wanted):
        self.server.wait_for(lambda: self.states() == wanted, f"{wanted}, not {self.states()}")

    def complete(self, model, **more):
        return self.server.post("/v1/completions", model=model, prompt=PROMPT, **{**GREEDY, **more})

    def test_are_loaded_when_they_are_named(self):
        self.serve()
        self.becomes(broken="unloaded", first="unloaded", second="unloaded")
        self.assertEqual(self.server.ask("GET", "/ready")[0], 200)
        self.assertEqual(self.server.ask("GET", "/props")[0], 404)
        wanted = {x: self.run_text("-m", self.file(x)) for x in ("first", "second")}
        self.assertNotEqual(wanted["first"], wanted["second"])
        for name, text in wanted.items():
            out = self.complete(name)
            self.assertEqual((out["model"], out["choices"][0]["text"]), (name, text))
        self.becomes(broken="unloaded", first="loaded", second="loaded")
        sizes = {x["id"]: x["meta"]["size"] for x in self.server.ask("GET", "/v1/models")[2]["data"] if "meta" in x}
        self.assertNotEqual(sizes["first"], sizes["second"])
        for name in sizes:
            self.assertEqual(self.server.ask("GET", "/props?model=" + name)[2]["model_alias"], name)
        self.assertEqual(set(self.server.ask("GET", "/backends")[2]["models"]), {"first", "second"})
        numbers = self.server.metrics()
        for name in sizes:
            self.assertEqual(numbers[f'vllm:generation_tokens_total{{model_name="{name}",engine="0"}}'], 8)

    def test_are_named_by_every_route(self):
        self.serve()
        loaded = iter(("second", "first", "second", "first", "second", "first"))
        for path, body in (("/v1/chat/completions", {"messages": CHAT, "max_tokens": 1}),
                           ("/v1/embeddings", {"input": "a"}),
                           ("/v1/responses", {"input": "a", "max_output_tokens": 1}),
                           ("/v1/messages", {"messages": CHAT, "max_tokens": 1}),
                           ("/tokenize", {"content": "a"}),
                           ("/v1/messages/count_tokens", {"messages": CHAT})):
            name = next(loaded)
            with self.subTest(path=path):
                self.server.ask("POST", "/models/unload", {"model": name}, ADMIN)
                self.server.wait_for(lambda: self.states()[name] == "unloaded", "it goes")
                out = self.server.post(path, model=name, **body)
                self.assertEqual(out.get("model", name), name)
                self.assertEqual(self.states()[name], "loaded")

    def test_make_room_for_each_other(self):
        self.serve("--models-max", "1")
        self.complete("first")
        self.complete("second")
        self.becomes(broken="unloaded", first="unloaded", second="loaded")
        # One that runs is not cut off by a request that wants its place.
        wanted = self.complete("second", **LONG)["choices"][0]["text"]
        got = {}
        running = threading.Thread(target=lambda: got.update(self.complete("second", **LONG)))
        running.start()
        self.server.wait_for(lambda: self.server.metrics()["vllm:num_requests_running"] == 1, "it runs")
        self.complete("first")
        running.join()
        self.assertEqual(got["choices"][0]["text"], wanted)
        self.becomes(broken="unloaded", first="loaded", second="unloaded")

    def test_are_rejected_where_memory_has_no_room(self):
        self.serve("--models-memory", "1")
        self.assert_error(503, "no_room_for_model", None, "/v1/completions", {"model": "first", "prompt": "a"},
                          "all models have 1 MiB together")

    def test_are_recognised_by_their_errors(self):
        self.serve()
        self.assert_error(404, "model_not_found", "model", "/v1/completions", {"model": "x\r\ny", "prompt": "a"},
                          "the models are 'broken', 'first', 'second'")
        error = self.assert_error(500, "model_load_failed", None, "/v1/completions", {"model": "broken", "prompt": "a"})
        self.assertIn("broken.gguf", error["message"])
        self.assertEqual(self.states()["broken"], "failed")
        self.assert_error(400, "invalid_type", "model", "/v1/completions", {"model": 5, "prompt": "a"})
        self.assert_error(400, "invalid_type", "model", "/tokenize", {"model": 5, "content": "a"})
        self.assert_error(404, "model_not_found", "model", "/v1/completions", {"prompt": "a"}, "names no model")
        self.complete("first")
        out = self.server.ask("POST", "/v1/messages", {"model": "x", "messages": CHAT, "max_tokens": 1})
        self.assertEqual((out[0], out[2]["type"], out[2]["error"]["type"]), (404, "error", "not_found_error"))

    def test_are_loaded_and_unloaded_by_an_administrator(self):
        self.serve("--no-models-autoload")
        self.assert_error(400, "model_not_loaded", "model", "/v1/completions", {"model": "first", "prompt": "a"})
        self.assertEqual(self.server.ask("POST", "/models/load", {"model": "first"})[0], 401)
        self.assertEqual(self.server.ask("POST", "/models/load", {"model": "first"}, ADMIN)[2],
                         {"success": True, "model": "first"})
        self.complete("first")
        self.assertEqual(self.server.ask("POST", "/models/load", {"model": "y"}, ADMIN)[0], 404)
        self.assertEqual(self.server.ask("POST", "/models/load", {}, ADMIN)[0], 400)
        self.assertEqual(self.server.ask("POST", "/models/unload", {"model": "first"}, ADMIN)[2],
                         {"success": True, "model": "first"})
        self.becomes(broken="unloaded", first="unloaded", second="unloaded")

    def test_come_with_their_files(self):
        self.serve()
        self.assertNotIn("third", self.states())
        os.symlink(demo_model(), self.file("third"))
        self.assertEqual(self.complete("third")["model"], "third")

    def test_models_of_the_command_line_load_first(self):
        server = self.start("-m", self.file("second"), "-m", self.file("first"))
        self.server = server
        self.becomes(second="loaded", first="unloaded")
        self.assertEqual(self.complete("")["model"], "second")
        self.assertEqual(self.complete("first")["model"], "first")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.end()[0], 0)

    def test_are_checked_before_the_server_listens(self):
        os.mkdir(self.path("other"))
        os.symlink(demo_model(), self.path("other") + "/first.gguf")
        self.rejected(2, "two models are named 'first'", "serve", "-m", self.file("first"), "-m", self.path("other") + "/first.gguf")
        self.rejected(2, "--models-dir", "serve", "--models-dir", self.path("none"))
        self.rejected(2, "--alias is for a server of one model", "serve", "--models-dir", self.folder, "--alias", "x")
        self.rejected(3, "does not exist", "serve", "-m", self.file("first"), "-m", "absent.gguf")
        self.rejected(3, "broken.gguf", "serve", "--port", "0", "-m", self.file("broken"))


if __name__ == "__main__":
    support.main()
