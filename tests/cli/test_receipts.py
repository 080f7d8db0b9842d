"""`--receipt` and `bitnet verify-receipt`: what a receipt says, and that two judges of different code agree on
receipts that are right and on such that were forged in one field and signed all the same."""

import base64
import copy
import hashlib
import json
import os
import random
import stat
import subprocess
import sys
import time

import support

sys.path.insert(0, os.path.join(support.SOURCE, "tests", "reference"))
import receipts as judge  # noqa: E402: it lies there

try:
    import jsonschema
except ImportError:
    jsonschema = None

# RFC 8410, section 10.3: the key, and its 32 secret bytes.
PRIVATE = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n" \
          "-----END PRIVATE KEY-----\n"
PUBLIC = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n" \
         "-----END PUBLIC KEY-----\n"
SECRET = base64.b64decode(PRIVATE.splitlines()[1])[-32:]
KEY = judge.key_in(PUBLIC)
PROMPT = "Once upon a time"
GREEDY = ("run", "-q", "-p", PROMPT, "-n", "8", "--temp", "0")


def point_bytes(p):
    inverse = pow(p[2], judge.P - 2, judge.P)
    x, y = p[0] * inverse % judge.P, p[1] * inverse % judge.P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def signed(message):
    """RFC 8032, section 5.1.6."""
    h = hashlib.sha512(SECRET).digest()
    a = int.from_bytes(h[:32], "little") & ((1 << 254) - 8) | 1 << 254
    r = int.from_bytes(hashlib.sha512(h[32:] + message).digest(), "little") % judge.ORDER
    point = point_bytes(judge.multiply(r, judge.BASE))
    k = int.from_bytes(hashlib.sha512(point + KEY + message).digest(), "little") % judge.ORDER
    return point + ((r + k * a) % judge.ORDER).to_bytes(32, "little")


def envelope_of(statement, sign=True):
    payload = json.dumps(statement, separators=(",", ":"), ensure_ascii=False).encode()
    message = f"DSSEv1 {len(judge.PAYLOAD_TYPE)} {judge.PAYLOAD_TYPE} {len(payload)} ".encode() + payload
    signatures = [{"keyid": KEY.hex(), "sig": base64.b64encode(signed(message)).decode()}] if sign else []
    return json.dumps({"payloadType": judge.PAYLOAD_TYPE, "payload": base64.b64encode(payload).decode(),
                       "signatures": signatures})


def statement_in(text):
    return json.loads(base64.b64decode(json.loads(text)["payload"]))


def salted(predicate, what):
    text = bytes.fromhex(predicate["salt"]) + what.encode() + b"\n"
    return hashlib.sha256(text + b"".join(i.to_bytes(4, "little") for i in predicate[what]["ids"])).hexdigest()


class Receipts(support.Case):
    def setUp(self):
        super().setUp()
        self.key = self.path("key.pem", PRIVATE)
        os.chmod(self.key, 0o600)
        self.signer = ("--receipt-key", self.path("key.pub.pem", PUBLIC))

    def receipt(self, *words, name="answer.json", code=0):
        """The statement of a run's receipt, which is at self.path(name)."""
        done = self.bitnet(*words, "--receipt", name, "--receipt-key", self.key)
        self.assertEqual(done.code, code, done)
        with open(self.path(name), encoding="utf-8") as file:
            return statement_in(file.read())

    def verified(self, name, *words, code=0):
        done = self.bitnet("verify-receipt", name, "--json", *self.signer, *words)
        self.assertEqual(done.code, code, done)
        return done.json

    def agreed(self, text, *words, **asked):
        """What both judges find: {(level, rule, field)}."""
        done = self.bitnet("verify-receipt", self.path("one.json", text), "--json", *self.signer, *words)
        self.assertIn(done.code, (0, 1, 3), done)
        found = {(f["level"], f["rule"], f["field"]) for f in done.json["findings"]}
        with open(self.path("one.json"), "rb") as file:
            second = set(judge.judge(file.read(), [KEY], **asked))
        self.assertEqual(found, second)
        levels = {level for level, _, _ in found}
        self.assertEqual(done.code, 1 if "error" in levels else 3 if "gate" in levels else 0, done)
        return found


@support.needs_backend
class Written(Receipts):
    def test_a_receipt_has_the_facts_of_the_run(self):
        done = self.ok("run", "--json", "-p", PROMPT, "-n", "8", "-s", "7", "--receipt", "a.json", "--receipt-key", self.key)
        with open(self.path("a.json"), encoding="utf-8") as file:
            statement = statement_in(file.read())
        p, said = statement["predicate"], done.json
        self.assertEqual((p["status"], p["compute_path"], p["seed"], p["tokens_generated"]), ("ok", "real", 7, 8))
        self.assertEqual(p["selection"]["selected"], said["selection"]["selected"])
        counted = {(k["id"], k["op"], k["device"]): k["calls"] for k in said["kernels"]}
        self.assertEqual({(k["id"], k["op"], k["device"]): k["calls"] for k in p["kernel_stats"]}, counted)
        self.assertGreater(p["coverage"]["fused"] + p["coverage"]["optimised"], 0)
        with open(support.demo_model(), "rb") as file:
            model = hashlib.sha256(file.read())
        self.assertEqual(p["model_sha"], model.hexdigest())
        self.assertEqual(p["model"]["digest"], hashlib.sha256(model.digest()).hexdigest())
        self.assertEqual(statement["subject"][0]["digest"]["sha256"], p["model"]["digest"])
        for plugin in p["plugins"]:
            with open(plugin["path"], "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), plugin["sha256"])
        self.assertAlmostEqual(p["timings"]["generate_ms"], said["timings"]["predicted_ms"], places=3)
        self.assertEqual(p["prompt"]["tokens"], len(said["tokens"]["prompt"]))
        self.verified("a.json", "--model", support.demo_model())

    def test_a_receipt_does_not_contain_texts(self):
        p = self.receipt(*GREEDY)["predicate"]
        self.assertNotIn(PROMPT, json.dumps(p))
        self.assertNotIn("ids", p["prompt"])
        with_tokens = self.receipt(*GREEDY, "--receipt-tokens")["predicate"]
        self.assertEqual([len(with_tokens[w]["ids"]) for w in ("prompt", "output")],
                         [with_tokens[w]["tokens"] for w in ("prompt", "output")])
        self.assertNotEqual(p["prompt_sha256"], with_tokens["prompt_sha256"], "each has a salt of its own")

    def test_the_schema_is_kept_to(self):
        if jsonschema is None:
            self.skipTest("jsonschema is not installed: scripts/setup makes build/venv")
        with open(judge.SCHEMA, encoding="utf-8") as file:
            schema = json.load(file)
        for words in (GREEDY, (*GREEDY, "--receipt-tokens"), (*GREEDY, "-l", "5-inf", "--stop-id", "3")):
            jsonschema.validate(self.receipt(*words)["predicate"], schema)

    def test_ids_of_tokenizers_have_one_sum(self):
        one, two = (self.receipt(*GREEDY)["predicate"]["tokenizer"] for _ in range(2))
        self.assertEqual(one, two)

    def test_a_receipt_of_a_chat_covers_all_turns(self):
        self.ok("chat", "-q", "-n", "4", "--temp", "0", "--receipt", "c.json", "--receipt-key", self.key,
                "--receipt-tokens", stdin=b"Hello there.\nTell me more.\n")
        with open(self.path("c.json"), encoding="utf-8") as file:
            p = statement_in(file.read())["predicate"]
        self.assertEqual(p["program"]["command"], "chat")
        self.assertGreater(p["prompt"]["tokens"], p["timings"]["prompt_tokens"], "the first turn was known")
        self.verified("c.json")

    def test_a_measurement_keeps_its_samples(self):
        p = self.receipt("bench", "-q", "-p", "4", "-n", "4", "-r", "2", "--ceiling-mb", "0")["predicate"]
        self.assertEqual([(t["test"], len(t["samples_ns"])) for t in p["program"]["tests"]], [("pp4", 2), ("tg4", 2)])
        self.verified("answer.json")
        for words in (("--list",), ("--head", "full"), ("--parallel", "2")):
            self.rejected(2, "--receipt is of one session", "bench", *words, "--receipt", "b.json")

    def test_a_failed_run_has_a_receipt_of_the_failure(self):
        p = self.receipt("run", "-q", "-m", "no-such.gguf", "-p", "a", code=3)["predicate"]
        self.assertEqual((p["status"], p["compute_path"], p["kernels"]), ("failed", "none", []))
        self.assertIn("no-such.gguf", p["failure"]["message"])
        found = self.verified("answer.json", code=1)["findings"]
        self.assertEqual([f["field"] for f in found], ["status"])
        p = self.receipt("run", "-q", "-p", PROMPT * 50, "-c", "8", code=1)["predicate"]
        self.assertEqual(p["status"], "failed")
        self.assertIn("model", p)

    def test_a_receipt_that_cannot_be_written_is_a_failure(self):
        self.assertEqual(self.bitnet(*GREEDY, "--receipt", "no/such/folder/a.json", "--receipt-key", self.key).code, 1)
        os.chmod(self.key, 0o644)
        done = self.bitnet(*GREEDY, "--receipt", "a.json", "--receipt-key", self.key)
        self.assertEqual(done.code, 1, done)
        self.assertIn("may be read by others", done.stderr)

    def test_a_key_is_made_at_first_use(self):
        self.ok(*GREEDY, "--receipt", "a.json")
        key = self.path("data/bitnet/receipt-key.pem")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        with open(key, "rb") as file:
            first = file.read()
        self.ok(*GREEDY, "--receipt", "b.json")
        with open(key, "rb") as file:
            self.assertEqual(file.read(), first)
        self.assertIn("valid", self.ok("verify-receipt", "b.json").text)
        self.assertEqual(self.bitnet("verify-receipt", "b.json", *self.signer).code, 1, "another one's key")

    def test_an_unusable_key_is_rejected(self):
        self.ok(*GREEDY, "--receipt", "a.json", "--receipt-key", self.key)
        advice = "name a file with an ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` writes it"
        for key, says in (("no-key.pem", "No such file or directory; "), (self.home, "not a regular file; ")):
            for words in ((*GREEDY, "--receipt", "b.json"), ("verify-receipt", "a.json")):
                done = self.bitnet(*words, "--receipt-key", key)
                self.assertIn(says + advice, done.stderr, words)
                self.assertNotEqual(done.code, 0, done)

    def test_no_trusted_key_rejects_all_signatures(self):
        self.ok(*GREEDY, "--receipt", "a.json", "--receipt-key", "none")
        self.assertEqual(self.bitnet("verify-receipt", "a.json").code, 1)
        self.assertIn("not signed", self.ok("verify-receipt", "--path", "a.json", "--allow-unsigned").text)


@support.needs_backend
class Judged(Receipts):
    FORGED = [  # (field, how)
        ("compute_path", lambda p: p.update(compute_path="mock")),
        ("backend", lambda p: p.update(backend="other")),
        ("kernels", lambda p: p["kernels"].append("cuda_gemm")),
        ("kernel_stats[0].device", lambda p: p["kernel_stats"][0].update(device="gpu:0")),
        ("kernel_stats[0].calls", lambda p: p["kernel_stats"][0].update(calls=0)),
        ("coverage.fused", lambda p: p["coverage"].update(fused=p["coverage"]["fused"] + 1)),
        ("coverage.ops_total", lambda p: p["kernel_stats"][0].update(calls=p["kernel_stats"][0]["calls"] + 1)),
        ("devices[0].plugin", lambda p: p["plugins"][0].update(name="other")),
        ("plugins[0].sha256", lambda p: p["plugins"][0].update(sha256="0" * 64)),
        ("selection.detected", lambda p: p["selection"].update(detected=[])),
        ("selection.fake", lambda p: p["selection"].update(fake=True)),
        ("backend_summary", lambda p: p.update(backend_summary="selected=cpu")),
        ("status", lambda p: p.update(status="failed", failure={"status": 3, "message": "x"})),
        ("failure", lambda p: p.update(failure={"status": 3, "message": "x"})),
        ("tokens_generated", lambda p: p.update(tokens_generated=99)),
        ("tokens_per_second", lambda p: p.update(tokens_per_second=8500)),
        ("tokens_per_sec", lambda p: p.update(tokens_per_sec=8500)),
        ("timings.wall_ms", lambda p: p["timings"].update(wall_ms=0)),
        ("prompt_sha256", lambda p: p.update(prompt_sha256="0" * 64)),
        ("output.ids", lambda p: p["output"]["ids"].append(1)),
        ("output.ids", lambda p: p["output"]["ids"].__setitem__(0, p["output"]["ids"][0] ^ 1)),
        ("prompt.ids", lambda p: p.update(salt="0" * 64)),
        ("model.digest", lambda p: p["model"]["files"][0].update(sha256="0" * 64)),
        ("model_sha", lambda p: p.update(model_sha="0" * 64)),
        ("gates[0].passed", lambda p: p.update(gates=[{"name": "min-tps", "limit": 9, "measured": 8, "passed": True}])),
        ("cuda_version", lambda p: p.update(cuda_version="12.8")),
        ("sm_arch", lambda p: p.update(sm_arch="sm_90")),
        ("schema_version", lambda p: p.update(schema_version="3.0")),
        ("kernels", lambda p: p.update(kernels={})),
        ("host.threads", lambda p: p["host"].pop("threads")),
        ("sampling.dry_breakers", lambda p: p["sampling"].update(dry_breakers=[1])),
        ("model.files[0].bytes", lambda p: p["model"]["files"][0].update(bytes=-1)),
        ("seed", lambda p: p.pop("seed")),
    ]

    def test_both_judges_find_the_forged_field(self):
        good = self.receipt(*GREEDY, "--receipt-tokens")
        self.assertEqual(self.agreed(envelope_of(good)), set())
        for field, forge in self.FORGED:
            with self.subTest(field):
                other = copy.deepcopy(good)
                forge(other["predicate"])
                if "model" in field:
                    pass  # the subject is judged beside it
                found = self.agreed(envelope_of(other))
                self.assertIn(field, {f for level, _, f in found if level == "error"})

    def test_both_judges_see_the_signing_key(self):
        good = self.receipt(*GREEDY)
        self.assertEqual(self.agreed(envelope_of(good, sign=False)), {("error", "signature", "signatures")})
        self.assertEqual(self.agreed(envelope_of(good, sign=False), "--allow-unsigned", allow_unsigned=True),
                         {("note", "signature", "signatures")})
        with open(self.path("answer.json"), encoding="utf-8") as file:
            envelope = json.load(file)
        good["predicate"]["seed"] += 1
        forged = dict(envelope, payload=base64.b64encode(json.dumps(good).encode()).decode())
        self.assertEqual(self.agreed(json.dumps(forged)), {("error", "signature", "signatures[0].sig")})
        self.assertIn(("error", "statement", "payloadType"), self.agreed(json.dumps(dict(envelope, payloadType="x"))))
        stranger = dict(envelope, signatures=[dict(envelope["signatures"][0], keyid="0" * 64)])
        self.assertEqual(self.agreed(json.dumps(stranger)), {("error", "signature", "signatures[0].keyid")})

    def test_both_judges_know_the_frame(self):
        good = self.receipt(*GREEDY)
        for name in ("_type", "predicateType"):
            self.assertEqual(self.agreed(envelope_of(dict(good, **{name: "x"}))), {("error", "statement", name)})
        self.assertEqual(self.agreed(envelope_of(dict(good, subject=[]))), {("error", "subject", "subject[0]")})
        without = {name: value for name, value in good.items() if name != "predicate"}
        self.assertEqual(self.agreed(envelope_of(without)), {("error", "statement", "predicate")})

    def test_both_judges_ask_for_more(self):
        text = envelope_of(self.receipt(*GREEDY))
        classes = {d["class"] for d in statement_in(text)["predicate"]["devices"]}
        found = self.agreed(text, "--require-gpu-kernels", gpu=True)
        self.assertEqual(found, set() if "gpu" in classes else {("gate", "gpu-kernels", "kernel_stats")})
        self.agreed(text, "--require-fused", "1", fused=1)
        self.assertEqual(self.agreed(text, "--require-fused", "100", fused=100), {("gate", "fused", "coverage.fused")})
        self.assertEqual(self.agreed(text, "--model", support.demo_model(), model=support.demo_model()), set())
        other = self.path("other.gguf", b"x")
        self.assertEqual(self.agreed(text, "--model", other, model=other), {("error", "model", "model.files[0].sha256")})

    def test_a_missed_gate_is_a_gate_finding(self):
        good = self.receipt(*GREEDY)
        good["predicate"]["gates"] = [{"name": "max-wall-ms", "limit": 1, "measured": 8, "passed": False}]
        self.assertEqual(self.agreed(envelope_of(good)), {("gate", "gates", "gates[0].passed")})

    def test_input_that_is_not_a_receipt_is_rejected(self):
        good = envelope_of(self.receipt(*GREEDY))
        twice = good.replace('"payloadType"', '"payload": "", "payloadType"')
        for text in ("", "{}", "[]", "nothing", good[:-5], twice, good.replace("=", ""), "{" * 1000):
            with self.subTest(text[:20]):
                self.rejected(2, "receipt", "verify-receipt", self.path("bad.json", text), *self.signer)
                with self.assertRaises(judge.Unreadable):
                    judge.judge(text.encode(), [KEY])


@support.needs_backend
class Replayed(Receipts):
    def replayed(self, name, *words, code=0):
        return self.verified(name, "--replay", *words, code=code)["replay"]

    def test_a_replay_generates_the_same_tokens(self):
        self.receipt(*GREEDY, "--receipt-tokens")
        self.assertEqual(self.replayed("answer.json"), {"verdict": "byte-equal"})
        self.receipt("run", "-q", "-p", PROMPT, "-n", "12", "-s", "5", "--temp", "1.1", "--top-k", "7",
                     "--repeat-penalty", "1.2", "-l", "9-3.5", "--receipt-tokens", name="drawn.json")
        self.assertEqual(self.replayed("drawn.json"), {"verdict": "byte-equal"})

    def test_a_replay_without_the_prompt_is_not_comparable(self):
        self.receipt(*GREEDY)
        unknown = self.replayed("answer.json", code=13)
        self.assertEqual(unknown["verdict"], "not comparable")
        self.assertIn("-p, -f or --ids", unknown["why"])
        self.assertEqual(self.replayed("answer.json", "-p", PROMPT), {"verdict": "byte-equal"})
        self.assertEqual(self.replayed("answer.json", "-p", PROMPT + "s", code=13)["verdict"], "not comparable")

    def test_another_answer_is_found_at_its_first_token(self):
        good = self.receipt(*GREEDY, "--receipt-tokens")
        p = good["predicate"]
        was = p["output"]["ids"][3]
        p["output"]["ids"][3] = was + 1
        p["output"]["sha256"] = p["output_token_sha256"] = salted(p, "output")
        self.path("forged.json", envelope_of(good))
        found = self.replayed("forged.json", code=1)
        self.assertEqual((found["verdict"], found["first_different"]),
                         ("different", {"place": 3, "was": was + 1, "is": was}))
        del p["output"]["ids"]
        self.path("forged.json", envelope_of(good))
        found = self.replayed("forged.json", code=1)
        self.assertEqual(found["verdict"], "different")
        self.assertNotIn("first_different", found)

    def test_a_constrained_answer_is_not_comparable(self):
        self.receipt(*GREEDY, "--receipt-tokens", "--grammar", 'root ::= "a" [a-z ]*')
        self.assertEqual(self.replayed("answer.json", code=13)["verdict"], "not comparable")


@support.needs_backend
class OfBatches(Receipts):
    """`bitnet batch --receipts`: a receipt for each answer, of a request that ran among others."""

    def setUp(self):
        super().setUp()
        self.out, self.lines = self.path("out.jsonl"), self.path("receipts.jsonl")
        self.words = ("--receipts", self.lines, "--receipt-key", self.key)

    def input(self, *bodies):
        """Completions of these bodies, named c0, c1 and so on."""
        def one(i, body):
            return json.dumps({"custom_id": f"c{i}", "method": "POST", "url": "/v1/completions",
                               "body": {"prompt": PROMPT, "max_tokens": 8, **body}})
        return self.path("in.jsonl", "".join(one(i, body) + "\n" for i, body in enumerate(bodies)))

    def predicates(self):
        """By custom_id, prompt and choice."""
        with open(self.lines, encoding="utf-8") as file:
            all_of_them = [statement_in(line)["predicate"] for line in file]
        out = {tuple(p["program"][name] for name in ("custom_id", "prompt", "choice")): p for p in all_of_them}
        self.assertEqual(len(out), len(all_of_them), "each once")
        return out

    def texts(self):
        with open(self.out, encoding="utf-8") as file:
            return {x["custom_id"]: x["response"]["body"] for x in map(json.loads, file)}

    def test_are_valid_and_replayed_byte_for_byte(self):
        bodies = [{"prompt": f"{PROMPT}, number {i}", "seed": i, "temperature": 1.1, "max_tokens": 3 + 3 * i} for i in range(5)]
        self.ok("batch", self.input(*bodies), self.out, *self.words, "--receipt-tokens")
        got, bodies = self.predicates(), self.texts()
        self.assertEqual(sorted(got), [(f"c{i}", 0, 0) for i in range(5)])
        for (custom_id, _, _), p in got.items():
            usage = bodies[custom_id]["usage"]
            self.assertEqual((p["prompt"]["tokens"], p["tokens_generated"]), (usage["prompt_tokens"], usage["completion_tokens"]))
            self.assertEqual(p["program"]["command"], "batch")
            self.assertLessEqual(p["batch"]["tokens"], p["batch"]["step_tokens"])
        self.assertGreater(max(p["batch"]["sequences"] for p in got.values()), 1, "they shared steps")
        done = self.ok("verify-receipt", self.lines, *self.signer, "--replay")
        self.assertEqual(done.text, "valid: 5 receipts\n")

    def test_both_judges_agree_on_them(self):
        self.ok("batch", self.input({}, {"seed": 3}), self.out, *self.words, "--receipt-tokens")
        with open(self.lines, encoding="utf-8") as file:
            good = statement_in(file.readline())
        self.assertEqual(self.agreed(envelope_of(good)), set())
        if jsonschema is not None:
            with open(judge.SCHEMA, encoding="utf-8") as file:
                jsonschema.validate(good["predicate"], json.load(file))
        for field, forge in [("batch.tokens", lambda b: b.update(tokens=b["step_tokens"] + 1)),
                             ("batch.steps", lambda b: b.update(steps=b["tokens"] + 1)),
                             ("batch.mean_sequences", lambda b: b.update(mean_sequences=b["sequences"] + 0.5)),
                             ("batch.step_tokens", lambda b: b.update(sequences=1, mean_sequences=1,
                                                                      step_tokens=b["tokens"] + 1))]:
            with self.subTest(field):
                other = copy.deepcopy(good)
                forge(other["predicate"]["batch"])
                self.assertEqual(self.agreed(envelope_of(other)), {("error", "answer", field)})

    def test_are_one_for_each_answer(self):
        self.ok("batch", self.input({"prompt": ["a fox", "a wolf"], "n": 2, "seed": 4}, {"prompt": ""}, {"n": "x"}),
                self.out, *self.words)
        got = self.predicates()
        self.assertEqual([key for key in sorted(got) if key[0] == "c0"],
                         [("c0", prompt, choice) for prompt in (0, 1) for choice in (0, 1)])
        self.assertEqual({got["c0", 0, choice]["seed"] for choice in (0, 1)}, {4, 5})
        self.assertNotIn("c2", {key[0] for key in got}, "it was rejected")
        self.assertNotIn("a wolf", json.dumps(list(got.values())))

    def test_name_the_first_line_that_is_wrong(self):
        self.ok("batch", self.input({}, {}, {}), self.out, *self.words)
        with open(self.lines, encoding="utf-8") as file:
            lines = file.read().splitlines()
        forged = statement_in(lines[1])
        forged["predicate"]["seed"] += 1
        bad = dict(json.loads(lines[1]), payload=base64.b64encode(json.dumps(forged).encode()).decode())
        self.path("bad.jsonl", "\n".join([lines[0], json.dumps(bad), "nothing", lines[2]]) + "\n")
        done = self.bitnet("verify-receipt", "bad.jsonl", *self.signer)
        self.assertEqual(done.code, 1, done)
        self.assertIn("line 2: error signature: signatures[0].sig", done.text)
        self.assertIn("line 3: error form", done.text)
        self.assertNotIn(": : ", done.text)
        self.assertIn("2 of 4 receipts are not as they should be; the first is in line 2", done.text)
        done = self.bitnet("verify-receipt", "bad.jsonl", "--json", *self.signer)
        self.assertEqual([(v["line"], v["valid"]) for v in map(json.loads, done.text.splitlines())],
                         [(1, True), (2, False), (3, False), (4, True)])
        self.assertEqual(done.code, 1)

    def start(self, *words):
        return subprocess.Popen([support.PROGRAM, "batch", *words], cwd=self.home, env=self.environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_are_exactly_one_after_kills(self):
        n = 24
        source = self.input(*({"max_tokens": 20, "ignore_eos": True} for _ in range(n)))
        began = time.monotonic()
        self.ok("batch", source, self.out, *self.words, "-np", "4")
        whole_s = time.monotonic() - began
        draw = random.Random()
        for name in (self.out, self.lines):
            os.remove(name)
        for _ in range(4):
            process = self.start(source, self.out, *self.words, "-np", "4")
            time.sleep(draw.uniform(whole_s / 2, whole_s))  # killed at any point of the second half
            process.kill()
            process.communicate()
            with open(self.lines, "ab") as file:
                file.write(b'{"payload":"e30')  # as a kill in the middle of a write leaves it
        self.ok("batch", source, self.out, *self.words)
        self.assertEqual(sorted(self.predicates()), sorted((f"c{i}", 0, 0) for i in range(n)))
        self.assertEqual(sorted(self.texts()), sorted(f"c{i}" for i in range(n)))
        for (custom_id, _, _), p in self.predicates().items():
            self.assertEqual(p["tokens_generated"], self.texts()[custom_id]["usage"]["completion_tokens"])

    def test_go_with_the_answer_that_was_removed(self):
        source = self.input({}, {}, {})
        self.ok("batch", source, self.out, *self.words, "-np", "1")
        before = self.predicates()
        with open(self.out, encoding="utf-8") as file:
            lines = file.readlines()
        self.path("out.jsonl", lines[0] + lines[2])
        removed = json.loads(lines[1])["custom_id"]
        done = self.ok("batch", source, self.out, *self.words)
        self.assertIn("removed 1 receipts without an answer", done.stderr)
        after = self.predicates()
        self.assertEqual(sorted(after), sorted(before))
        self.assertEqual([key[0] for key in after if after[key]["receipt_id"] != before[key]["receipt_id"]], [removed])

    def test_reject_other_files(self):
        source = self.input({})
        mine = self.path("mine", "my thesis\n")
        self.rejected(2, "no receipt of a batch", "batch", source, self.out, "--receipts", mine)
        self.rejected(2, "no receipts of a batch", "batch", source, self.out, "--receipts", self.path("mine2", "my thesis"))
        self.rejected(2, "is the input too", "batch", source, self.out, "--receipts", source)
        self.rejected(2, "is the output too", "batch", source, self.out, "--receipts", self.out)
        with open(mine, encoding="utf-8") as file:
            self.assertEqual(file.read(), "my thesis\n")
        self.rejected(1, "no receipt: ", "batch", source, self.out, "--receipts", self.lines, "--receipt-key", self.path("none.pem"))


if __name__ == "__main__":
    support.main()
