"""`bitnet serve`: GET /slots is compared with what the clients ask for and get; POST /backends/prefer by texts."""

import json
import threading

import support
import test_serve
from second_device import TwoDevices
from support import needs_backend
from test_serve import LONG, PROMPT

CONTEXT = 512
BUSY = {"id", "id_task", "choice", "n_ctx", "speculative", "is_processing", "state", "n_prompt_tokens",
        "n_prompt_tokens_processed", "n_prompt_tokens_cache", "next_token"}
IDLE = {"id", "n_ctx", "speculative", "is_processing", "state"}


class Stream:
    """A completion of which only as much is read as is asked for."""

    def __init__(self, server, **body):
        body = {"prompt": PROMPT, "temperature": 0, "ignore_eos": True, "stream": True, **body}
        self.connection, self.answer = server.send("POST", "/v1/completions", body)
        assert self.answer.status == 200, self.answer.read()

    def take(self, n=1):
        """The text of so many chunks, or of all with None."""
        out = ""
        while n is None or n > 0:
            line = self.answer.readline().decode()
            if not line or line == "data: [DONE]\n":
                return out
            if line.startswith("data: "):
                out += json.loads(line[len("data: "):])["choices"][0]["text"]
                n = None if n is None else n - 1
        return out

    def close(self):
        self.answer.close()
        self.connection.close()


@needs_backend
class Slots(test_serve.Serving):
    OPTIONS = ("-np", "2", "-c", str(CONTEXT))

    def setUp(self):
        super().setUp()
        self.server.wait_for(lambda: not self.busy(), "all slots are free")

    def slots(self, query=""):
        status, _, out = self.server.ask("GET", "/slots" + query)
        self.assertEqual(status, 200, out)
        return out

    def busy(self):
        return [x for x in self.slots() if x["state"] != "idle"]

    def stream(self, **body):
        out = Stream(self.server, **body)
        self.addCleanup(out.close)
        return out

    def test_of_an_idle_server_are_free(self):
        self.assertEqual(self.slots(), [{"id": i, "n_ctx": CONTEXT, "speculative": False, "is_processing": False,
                                         "state": "idle"} for i in range(2)])
        self.assertEqual(self.server.ask("GET", "/v1/slots")[2], self.slots("?fail_on_no_slot=1"))

    def test_are_what_clients_asked_for(self):
        n_prompt = len(self.server.post("/tokenize", content=PROMPT, add_special=True)["tokens"])
        for _ in range(5):  # a machine may be busy until the answer is whole
            one = self.stream(max_tokens=450)
            one.take(2)  # by the second one the numbers of the first are known
            alone = self.busy()
            two = self.stream(max_tokens=450)
            two.take(2)
            both = self.busy()
            if len(alone) == 1 and len(both) == 2:
                break
        (slot,), (first, second) = alone, both
        self.assertEqual(set(slot), BUSY)
        self.assertEqual((slot["id"], slot["n_ctx"], slot["is_processing"], slot["state"], slot["choice"]),
                         (0, CONTEXT, True, "decoding", 0))
        self.assertEqual((slot["n_prompt_tokens"], slot["n_prompt_tokens_processed"] + slot["n_prompt_tokens_cache"]),
                         (n_prompt, n_prompt))
        (token,) = slot["next_token"]
        self.assertEqual(token["n_decoded"] + token["n_remain"], 450)
        self.assertGreaterEqual(token["n_decoded"], 1)
        self.assertIs(token["has_next_token"], True)
        self.assertEqual((first["id"], second["id"]), (0, 1))
        self.assertEqual(first["id_task"], slot["id_task"], "it keeps its slot")
        self.assertGreater(second["id_task"], first["id_task"])
        self.assertGreaterEqual(first["next_token"][0]["n_decoded"], token["n_decoded"])

    def unread(self, n):
        """A server of so many slots, all of which stand still for one client, and the states of its slots."""
        # The buffers of such a socket have a fixed size.
        server = self.start("--host", self.path("a.sock"), "-np", str(n), "-c", str(CONTEXT))
        one = Stream(server, n=n, max_tokens=450, logprobs=20)
        self.addCleanup(one.close)

        def states():
            return [x["state"] for x in server.ask("GET", "/slots")[2]]

        server.wait_for(lambda: set(states()) == {"paused"}, "it is paused")
        return server, one, states

    def test_slots_of_a_client_that_does_not_read_are_listed(self):
        server, one, states = self.unread(4)
        slots = server.ask("GET", "/slots")[2]
        self.assertEqual([(x["id"], x["choice"], x["is_processing"]) for x in slots], [(i, i, True) for i in range(4)])
        self.assertEqual({x["id_task"] for x in slots}, {slots[0]["id_task"]})
        self.assertGreater(min(x["next_token"][0]["n_remain"] for x in slots), 0)
        one.close()
        server.wait_for(lambda: states() == ["idle"] * 4, "its slots are free")

    def test_fail_on_no_slot_returns_503(self):
        server, one, states = self.unread(3)
        status, fields, out = server.ask("GET", "/slots?fail_on_no_slot=1")
        self.assertEqual((status, out["error"]["type"]), (503, "unavailable_error"), out)
        self.assertIn("Retry-After", fields)
        self.assertEqual(server.ask("GET", "/slots?fail_on_no_slot=0")[0], 200)
        got = []
        waits = threading.Thread(
            target=lambda: got.append(server.post("/v1/completions", prompt="The dog", max_tokens=3)))
        waits.start()
        server.wait_for(lambda: len(states()) == 4, "one more waits")
        last = server.ask("GET", "/slots")[2][3]
        self.assertEqual((last["id"], last["is_processing"], last["state"]), (3, False, "waiting"))
        self.assertEqual(last["next_token"], [{"has_next_token": True, "n_remain": 3, "n_decoded": 0}])
        self.assertEqual(last["n_prompt_tokens_processed"], 0)
        one.close()
        waits.join()
        self.assertEqual(last["n_prompt_tokens"], got[0]["usage"]["prompt_tokens"])
        server.wait_for(lambda: states() == ["idle"] * 3, "all are free")
        self.assertEqual(server.ask("GET", "/slots?fail_on_no_slot=1")[0], 200)

    def test_have_no_text(self):
        marker = "xylophone zebra quartz"
        one = self.stream(prompt=marker, max_tokens=450)
        said = one.take(20)
        text = json.dumps(self.server.ask("GET", "/slots")[2])
        for word in [*marker.split(), *(x for x in said.split() if len(x) > 6)]:
            self.assertNotIn(word, text)
        self.assertTrue(all(set(x) in (BUSY, IDLE) for x in json.loads(text)), text)
        self.assertNotIn('"tokens"', text)

    def test_slots_report_drafts(self):
        server = self.start("-np", "1", "--spec-type", "ngram")
        one = Stream(server, max_tokens=400)
        self.addCleanup(one.close)
        one.take(2)
        self.assertIs(server.ask("GET", "/slots")[2][0]["speculative"], True)

    def test_need_a_key(self):
        server = self.start("--api-key", "secret")
        for path in ("/slots", "/v1/slots"):
            self.assertEqual(server.ask("GET", path)[0], 401)
            self.assertEqual(server.ask("GET", path, fields={"Authorization": "Bearer secret"})[0], 200)
        self.assertEqual(server.ask("POST", "/slots", {}, {"x-api-key": "secret"})[0], 405)


@needs_backend
class Preference(TwoDevices):
    KEY = {"x-api-key": "root"}

    def setUp(self):
        super().setUp()
        self.serve("--device", "fragile", "-c", str(CONTEXT), "--admin-key-file", self.path("admin", "root\n"), "--deterministic")

    def prefer(self, body, key=None):
        return self.server.ask("POST", "/backends/prefer", body, self.KEY if key is None else key)

    def live(self):
        return self.server.ask("GET", "/backends")[2]["live"]

    def texts_of(self, prompts, meanwhile=lambda: None):
        """The texts of streams that go on together; `meanwhile` is called when each of them has begun."""
        streams = [Stream(self.server, prompt=x, max_tokens=LONG["max_tokens"]) for x in prompts]
        texts = [x.take(3) for x in streams]
        meanwhile()
        out = [text + x.take(None) for text, x in zip(texts, streams)]
        for one in streams:
            one.close()
        return out

    def test_changes_no_text(self):
        prompts = [PROMPT, "The fox said,", "One day a little girl", PROMPT + ", there was a cat"]
        wanted = [self.texts_of([x])[0] for x in prompts]
        self.assertEqual(self.live()["device"], "fragile:0")
        answers, running = [], []

        def change():
            for device in ("cpu", "none-such,fragile", "cpu,fragile"):
                status, _, out = self.prefer({"device": device})
                self.assertEqual(status, 200, out)
                answers.append((out["requested"], out["changed"], out["former_device"], out["live"]["device"]))
                running.append(out["live"]["running"])

        self.assertEqual(self.texts_of(prompts, change), wanted)
        self.assertEqual(answers, [("cpu", True, "fragile:0", "cpu:0"),
                                   ("none-such,fragile", True, "cpu:0", "fragile:0"),
                                   ("cpu,fragile", True, "fragile:0", "cpu:0")])
        self.assertEqual(running[0], 4)
        self.assertEqual((self.live()["device"], self.live()["moves"]), ("cpu:0", 3))
        self.assertEqual(self.texts_of(prompts), wanted)
        self.assertEqual(self.server.metrics()["bitnet_moves_total"], 3)
        self.server.signal(15)
        code, lines = self.server.end()
        self.assertEqual(code, 0, lines)
        self.assertIn("preference of an administrator: cpu: cpu:0, after fragile:0", lines)

    def test_of_embeddings_as_well(self):
        vectors = [self.server.post("/v1/embeddings", input=PROMPT)["data"][0]["embedding"]]
        self.assertEqual(self.prefer({"device": "cpu"})[0], 200)
        vectors.append(self.server.post("/v1/embeddings", input=PROMPT)["data"][0]["embedding"])
        self.assertEqual(vectors[0], vectors[1])

    def test_an_unavailable_device_is_rejected_without_a_move(self):
        status, _, out = self.prefer({"device": "none-such"})
        self.assertEqual((status, out["error"]["code"], out["error"]["param"]), (409, "device_unavailable", "device"))
        self.assertIn("none-such", out["error"]["message"])
        self.assertRegex(out["error"]["message"], "Detected: .*fragile")
        self.assertEqual((self.live()["device"], self.live()["moves"]), ("fragile:0", 0))
        status, _, out = self.prefer({"device": "fragile"})
        self.assertEqual((status, out["changed"], out["live"]["moves"]), (200, False, 0), out)

    def test_an_invalid_preference_is_rejected(self):
        for body in ({}, {"device": ""}, {"device": 1}, {"device": ["cpu"]}, {"device": ",,"}, {"device": "a\0b"},
                     {"device": "x" * 5000}, {"device": "cpu:x"}, {"device": None}):
            status, _, out = self.prefer(body)
            self.assertEqual((status, out["error"]["param"]), (400, "device"), (body, out))
        for body in (b"[1]", b"{", b"\xff"):
            self.assertEqual(self.prefer(body)[0], 400)
        self.assertEqual(self.live()["moves"], 0)
        self.assertEqual(self.server.ask("GET", "/backends/prefer")[0], 405)

    def test_needs_an_admin_key(self):
        self.assertEqual(self.prefer({"device": "cpu"}, {})[0], 401)
        self.assertEqual(self.prefer({"device": "cpu"}, {"x-api-key": "user"})[0], 401)
        self.assertEqual(self.live()["device"], "fragile:0")


@needs_backend
class WithoutAdminKeys(test_serve.Serving):
    def test_a_server_without_admin_keys_rejects_preferences(self):
        self.assertEqual(self.server.ask("POST", "/backends/prefer", {"device": "cpu"})[0], 403)


if __name__ == "__main__":
    support.main()
