"""Receipts of `bitnet serve`: each answer has a file, which verify-receipt accepts."""

import base64
import json
import os
import signal
import threading

import support
from support import demo_model, needs_backend
from test_serve import GREEDY, PROMPT, Serving


def predicates(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(base64.b64decode(json.loads(line)["payload"]))["predicate"] for line in lines]


class Receipts(Serving):
    def setUp(self):
        support.Case.setUp(self)  # each test has a server of its own
        self.folder = os.path.join(self.home, "receipts")
        os.mkdir(self.folder)

    def serve(self, *words):
        return self.start("--receipts-dir", self.folder, *words)

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".json"))

    def wait(self, server, n):
        server.wait_for(lambda: server.metrics()["bitnet_receipts_written_total"] == n, f"{n} receipts are written")

    def valid(self, name, *words):
        return self.ok("verify-receipt", os.path.join(self.folder, name), "-m", demo_model(), *words)

    @needs_backend
    def test_each_answer_has_one(self):
        server = self.serve()
        text = server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        chat = server.post("/v1/chat/completions", messages=[{"role": "user", "content": "hi"}], n=2, max_tokens=4)
        server.chunks("/v1/chat/completions", messages=[{"role": "user", "content": "ho"}], **GREEDY)
        server.ask("POST", "/v1/completions", {"prompt": 5})  # rejected: there is no answer
        self.wait(server, 3)
        self.assertEqual(len(self.files()), 3)
        self.assertIn(text["id"] + ".json", self.files())
        (one,) = predicates(os.path.join(self.folder, text["id"] + ".json"))
        self.assertEqual((one["program"]["command"], one["program"]["id"]), ("serve", text["id"]))
        self.assertEqual(one["output"]["tokens"], text["usage"]["completion_tokens"])
        self.assertNotIn("ids", one["output"])
        self.assertEqual(len(predicates(os.path.join(self.folder, chat["id"] + ".json"))), 2)
        for name in self.files():
            self.valid(name)
        self.assertEqual(server.metrics()["bitnet_receipts_dropped_total"], 0)

    @needs_backend
    def test_a_request_among_others_is_computed_again(self):
        server = self.serve("--receipt-tokens")
        clients = [threading.Thread(target=server.post, args=("/v1/completions",),
                                    kwargs={"prompt": [PROMPT, "The fox", "A"][i % 3], "max_tokens": 12, "seed": i})
                   for i in range(6)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.wait(server, 6)
        for name in self.files():
            self.assertIn("replay: byte-equal", self.valid(name, "--replay").text)

    @needs_backend
    def test_prompts_of_one_request_and_embeddings(self):
        server = self.serve("--receipt-key", "none")
        both = server.post("/v1/completions", prompt=[PROMPT, "The fox"], **GREEDY)
        server.post("/v1/embeddings", input="a fox")
        self.wait(server, 2)
        self.assertEqual(self.files(), sorted([both["id"] + ".json", both["id"] + "-1.json"]))
        for name in self.files():
            self.valid(name, "--allow-unsigned")

    @needs_backend
    def test_a_disconnected_client_leaves_a_receipt(self):
        server = self.serve()
        connection, answer = server.send("POST", "/v1/completions", {
            "prompt": PROMPT, "max_tokens": 100000, "ignore_eos": True, "stream": True})
        answer.read(200)
        answer.close()
        connection.close()
        self.wait(server, 1)
        (one,) = predicates(os.path.join(self.folder, *self.files()))
        self.assertEqual((one["status"], one["stop"]), ("cancelled", "cancelled"))
        self.assertGreater(one["output"]["tokens"], 0)

    @needs_backend
    def test_receipts_kept_removes_the_oldest(self):
        other = os.path.join(self.folder, "of-another-run.json")
        with open(other, "w", encoding="utf-8") as file:
            file.write("{}")
        server = self.serve("--receipts-kept", "2")
        ids = [server.post("/v1/completions", prompt=PROMPT, **GREEDY)["id"] for _ in range(4)]
        self.wait(server, 4)
        server.wait_for(lambda: len(self.files()) == 3, "two are gone")
        self.assertEqual(set(self.files()), {ids[2] + ".json", ids[3] + ".json", "of-another-run.json"})

    @needs_backend
    def test_unwritable_receipts_are_counted(self):
        server = self.serve()
        os.rmdir(self.folder)
        for _ in range(2):
            server.post("/v1/completions", prompt=PROMPT, **GREEDY)
        server.wait_for(lambda: server.metrics()["bitnet_receipts_dropped_total"] == 2, "both are dropped")
        self.assertIn("a receipt is dropped: cannot write", "".join(server.lines))

    @needs_backend
    def test_shutdown_waits_for_receipts(self):
        server = self.serve()
        clients = [threading.Thread(target=server.ask, args=("POST", "/v1/completions",
                                                             {"prompt": PROMPT, "max_tokens": 64, "ignore_eos": True}))
                   for _ in range(4)]
        for client in clients:
            client.start()
        server.wait_for(lambda: server.metrics()["vllm:num_requests_running"] == 4, "all run")
        server.signal(signal.SIGTERM)
        code, lines = server.end()
        for client in clients:
            client.join()
        self.assertEqual(code, 0, lines)
        self.assertEqual(len(self.files()), 4)

    def test_a_missing_folder_is_rejected(self):
        self.rejected(2, "is no folder; make it", "serve", "--receipts-dir", os.path.join(self.home, "none"), "--port", "0")
        self.rejected(2, "from 1 to", "serve", "--receipts-dir", self.folder, "--receipts-kept", "0", "--port", "0")


if __name__ == "__main__":
    support.main()
