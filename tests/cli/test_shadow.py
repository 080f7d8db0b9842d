"""--shadow of run, chat, batch and serve: unchanged texts, the counts, and the messages for wrong values."""

import json
import os
import re
import shutil

import support
import test_serve

PROMPT = "Once upon a time"
LINE = re.compile(r"^shadow (\S+): (\d+) of (\d+) rows compared, (\d+) with the same top token, (\d+) byte-equal; "
                  r"KL mean \S+, max \S+; (\d+) dropped(.*)$", re.M)


def counts(result):
    """Device, compared, seen, same top, byte-equal, dropped, and what follows, of the line on standard error."""
    found = LINE.findall(result.stderr)
    assert len(found) == 1, result
    return (found[0][0], *(int(x) for x in found[0][1:6]), found[0][6])


@support.needs_backend
class Shadow(support.Case):
    ALL = ("--device", "cpu", "--deterministic", "--shadow", "cpu,share=1,waiting=4096")

    def answer(self, *words):
        done = self.ok("run", "--json", "-p", PROMPT, "-n", "24", *words)
        return done, done.json

    def test_a_text_is_the_same_with_a_shadow(self):
        for sampling in (["--temp", "0"], ["--temp", "1", "-s", "7"]):
            _, plain = self.answer("--device", "cpu", "--deterministic", *sampling)
            self.assertNotIn("shadow", plain)
            done, shadowed = self.answer(*self.ALL, *sampling)
            self.assertEqual(shadowed["text"], plain["text"])
            self.assertEqual(shadowed["tokens"], plain["tokens"])
            about = shadowed["shadow"]
            n = about["rows"]["compared"]
            self.assertGreaterEqual(n, len(plain["tokens"]["generated"]) - 1)
            self.assertEqual(about["rows"], {"seen": n, "offered": n, "compared": n, "dropped": 0, "waiting": 0})
            self.assertEqual((about["same_bytes"], about["same_top"], about["kl"]["max"]), (n, n, 0))
            self.assertEqual(about["device"]["selected"], "cpu:0")
            self.assertNotIn("first_op", about)
            self.assertEqual(counts(done), ("cpu:0", n, n, n, n, 0, ""))

    def test_a_share_of_the_rows_is_compared(self):
        _, shadowed = self.answer("--device", "cpu", "--temp", "0", "--shadow", "cpu,share=0.25,waiting=4096")
        rows = shadowed["shadow"]["rows"]
        self.assertEqual(rows["offered"], rows["seen"] // 4)
        self.assertEqual(rows["compared"], rows["offered"])

    def test_chat_and_batch_print_a_line_of_the_comparison(self):
        plain = self.ok("chat", "-n", "8", "--temp", "0", "--device", "cpu", "--deterministic", stdin=b"Hello\nWho?\n")
        chat = self.ok("chat", "-n", "8", "--temp", "0", *self.ALL, stdin=b"Hello\nWho?\n")
        self.assertEqual(chat.stdout, plain.stdout)
        device, compared, _, _, same, _, _ = counts(chat)
        self.assertEqual((device, compared), ("cpu:0", same))
        self.assertGreater(compared, 8)
        body = {"prompt": PROMPT, "max_tokens": 8, "temperature": 0}
        lines = [json.dumps({"custom_id": x, "method": "POST", "url": "/v1/completions", "body": body}) for x in "abc"]
        batch = self.ok("batch", self.path("in.jsonl", "\n".join(lines) + "\n"), self.path("out.jsonl"), *self.ALL)
        _, compared, seen, _, same, dropped, _ = counts(batch)
        self.assertEqual(compared + dropped, seen)
        self.assertEqual(same, compared)
        self.assertGreaterEqual(seen, 3 * 7)

    def test_invalid_shadow_options_are_rejected(self):
        for text, says in (("", "expects the name of a backend or device first"),
                           ("share=1", "expects the name of a backend or device first"),
                           ("cpu,share=0", "share of the rows above 0 and at most 1"),
                           ("cpu,share=2", "share of the rows above 0 and at most 1"),
                           ("cpu,waiting=0", "from 1 to 4096 waiting rows"), ("cpu,tolerance=-1", "a tolerance from 0"),
                           ("cpu,speed=1", "share=S, waiting=N or tolerance=T")):
            for command in (["run", "-p", PROMPT], ["chat"], ["batch", "in", "out"], ["serve", "--port", "0"]):
                self.rejected(2, says, *command, "--shadow", text)
        self.rejected(4, "no-such-backend", "run", "-p", PROMPT, "--shadow", "no-such-backend")

    def test_shadow_is_rejected_for_several_models(self):
        self.rejected(2, "--shadow is for a server of one model", "serve", "--port", "0", "--shadow", "cpu",
                     "-m", support.demo_model(), "-m", self.other_model())

    def other_model(self):
        copy = self.path("other.gguf", b"")
        shutil.copyfile(support.demo_model(), copy)
        return copy

    def test_a_server_counts_what_it_compares(self):
        plain = self.ok("run", "-q", "--no-display-prompt", "-p", PROMPT, "-n", "8", "--temp", "0", "--device", "cpu")
        server = test_serve.Server(self.home, *self.ALL)
        self.addCleanup(server.kill)
        self.assertTrue(server.port, server.lines)
        for _ in range(3):
            said = server.post("/v1/completions", prompt=PROMPT, **test_serve.GREEDY)
            self.assertEqual(said["choices"][0]["text"], plain.text.rstrip("\n"))

        def shadow():
            return server.ask("GET", "/backends")[2]["live"]["shadow"]

        support.wait_for(lambda: shadow()["rows"]["compared"] == shadow()["rows"]["offered"], "all rows are compared")
        about = shadow()
        n = about["rows"]["compared"]
        self.assertGreaterEqual(n, 3 * 7)
        self.assertEqual(about["same_bytes"], n)
        self.assertEqual(next(iter(server.ask("GET", "/backends")[2]["models"].values()))["shadow"]["state"], "running")
        text = server.ask("GET", "/metrics")[2]
        rows = dict(re.findall(r'^bitnet_shadow_rows_total\{.*result="(\w+)"\} (\S+)$', text, re.M))
        self.assertEqual(rows, {"equal": str(n), "same_top": "0", "differs": "0", "dropped": "0"})
        self.assertRegex(text, r"(?m)^bitnet_shadow_running\{.*\} 1$")
        self.assertRegex(text, r"(?m)^bitnet_shadow_kl_max\{.*\} 0$")


class WrongBackend(support.Case):
    """The second backend scales what attention gives, behind the first position."""

    def setUp(self):
        super().setUp()
        wrong = os.environ.get("BITNET_WRONG_PLUGIN", "")
        cpu = next((b for b in self.ok("backends", "--json").json["backends"] if b["name"] == "cpu"), None)
        if not os.path.exists(wrong) or cpu is None or "library" not in cpu:
            self.skipTest("there are no two devices here")
        for name, library in (("cpu", cpu["library"]), ("wrong", wrong)):
            copy = self.path(f"lib/libbitnet-backend-{name}.so", b"")
            shutil.copyfile(library, copy)
            os.chmod(copy, 0o755)
            self.path(f"manifests/50-{name}.yaml", f"schema: 1\nname: {name}\nversion: 0.1.0\nvendor: org.bitnet\n"
                      f"license: Apache-2.0\nlibrary: {copy}\nabi: {{major: 0, min: 1, max: 1}}\nclass: cpu\n")

    @support.needs_model
    def test_the_first_op_that_differs_is_named(self):
        words = ("run", "--json", "-p", PROMPT, "-n", "12", "--temp", "0", "--device", "cpu", "--backend-dir",
                 self.path("manifests"))
        plain = self.ok(*words).json
        done = self.ok(*words, "--shadow", "wrong,share=1,waiting=4096")
        self.assertEqual(done.json["tokens"], plain["tokens"])
        about = done.json["shadow"]
        self.assertEqual(about["same_bytes"], 0)
        self.assertGreater(about["kl"]["max"], 0)
        self.assertEqual((about["first_op"]["op"], about["first_op"]["at"]), ("attn_out", "layer 0"))
        self.assertIn("; the first op that differs is attn_out (layer 0), number ", counts(done)[-1])


if __name__ == "__main__":
    support.main()
