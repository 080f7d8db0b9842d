"""/metrics of `bitnet serve` under a known load: each number is compared with what the load must make of it.

A row that nothing here expects fails the test, and so does one that docs/reference/metrics.md does not list.
"""

import json
import math
import os
import re
import resource
import shutil
import subprocess
import threading
import time

import support
import test_serve
from support import SOURCE, needs_backend

PROMPT = "Once upon a time"
REPEATS = "The fox ran. The fox ran. The fox"
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
BLOCK, CONTEXT = 64, 512

# As vLLM has them.
REQUEST_S = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
FIRST_S = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
           2560]
BETWEEN_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
TOKENS = [1, 2, 5, 10, 20, 50, 100, 200, 500]  # up to the context
STEP_TOKENS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
REJECTIONS = ("closed", "invalid", "no_device", "requests_waiting", "tokens_waiting", "too_large", "too_long")
ENDS = ("cancelled", "context", "eos", "expired", "failed", "grammar", "length", "stalled", "string", "token")


def samples_of(text):
    """{(name, labels): number}, labels without the two that every row of the engine has."""
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = SAMPLE.match(line)
        assert found, f"no sample: {line!r}"
        labels = tuple(x for x in LABEL.findall(found[2] or "") if x[0] not in ("model_name", "engine"))
        assert (found[1], labels) not in out, f"twice: {line}"
        out[found[1], labels] = float(found[3])
    return out


def families_of(text):
    """[(name, type, names of labels, help)], in the order in which they come."""
    labels = {}
    for name, of in samples_of(text):
        for plain in {name, re.sub("_(bucket|sum|count)$", "", name)}:
            labels.setdefault(plain, []).extend(x for x, _ in of if x != "le" and x not in labels[plain])
    pairs = re.findall(r"^# HELP (\S+) (.*)\n# TYPE (\S+) (\w+)$", text, re.M)
    assert all(a == b for a, _, b, _ in pairs), pairs
    return [(name, kind, labels.get(name, []), what) for name, what, _, kind in pairs]


class Between:
    """Equal to numbers within bounds."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __eq__(self, other):
        return self.low <= other <= self.high

    def __repr__(self):
        return f"{self.low} to {self.high}"


class Expected:
    """The expected rows, by name and labels."""

    def __init__(self):
        self.rows = {}

    def set(self, name, value, **labels):
        self.rows[name, tuple(labels.items())] = value

    def histogram(self, name, bounds, values):
        for bound in bounds:
            self.set(name + "_bucket", sum(x <= bound for x in values), le=f"{bound:g}")
        self.set(name + "_bucket", len(values), le="+Inf")
        self.set(name + "_sum", sum(values))
        self.set(name + "_count", len(values))

    def times(self, name, bounds, n, total):
        """Of `n` values that are not known, none above `total` seconds; their sum is `total` or a range."""
        most = total.high if isinstance(total, Between) else total
        for bound in bounds:
            self.set(name + "_bucket", n if bound >= most else Between(0, n), le=f"{bound:g}")
        self.set(name + "_bucket", n, le="+Inf")
        self.set(name + "_sum", total)
        self.set(name + "_count", n)


class Load:
    """The requests that were sent, and their counts of tokens."""

    def __init__(self, server):
        self.server = server
        self.answers = []  # (prompt tokens, known ones, tokens, finish, most) of each choice of a text
        self.prompts = []  # (tokens, known ones) of each prompt of a text
        self.embedded = []  # tokens of each
        self.params_n = []
        self.recomputed = self.n_begun_again = 0
        self.gauges = {}  # while it ran

    def note(self, usage, finishes, tokens, most):
        known = usage["prompt_tokens_details"]["cached_tokens"]
        self.prompts.append((usage["prompt_tokens"], known))
        self.params_n.append(len(finishes))
        self.answers += [(usage["prompt_tokens"], known, n, finish, most) for n, finish in zip(tokens, finishes)]

    def complete(self, most, **body):
        out = self.server.post("/v1/completions", temperature=0, **({"max_tokens": most} if most else {}), **body)
        self.note(out["usage"], [x["finish_reason"] for x in out["choices"]], [out["usage"]["completion_tokens"]], most)
        return out["choices"][0]["text"]

    def chat_by_stream(self, most, n):
        chunks = self.server.chunks("/v1/chat/completions", messages=test_serve.CHAT, max_tokens=most, n=n,
                                    temperature=0, ignore_eos=True, stream_options={"include_usage": True})
        self.note(chunks[-1]["usage"], ["length"] * n, [most] * n, most)
        assert chunks[-1]["usage"]["completion_tokens"] == most * n
        # One place: the other choices wait, and what no whole block has is computed again for each.
        self.recomputed += (n - 1) * (self.prompts[-1][0] % BLOCK)
        self.n_begun_again += n - 1

    def embed(self, text):
        self.embedded.append(self.server.post("/v1/embeddings", input=text)["usage"]["prompt_tokens"])

    def leave_the_queue(self):
        """A client that goes while its request waits behind others, which use the one place that there is."""
        prompts, most = [f"The {x} " for x in "fox cat dog sun boy hat bee cow owl pig hen box".split()], 450
        alone = [self.server.post("/tokenize", content=x, add_special=True)["tokens"] for x in prompts]
        got = []
        ask = {"prompt": prompts, "max_tokens": most, "temperature": 0, "ignore_eos": True}
        long = threading.Thread(target=lambda: got.append(self.server.post("/v1/completions", **ask)))
        long.start()
        self.server.wait_for(lambda: self.number("vllm:num_requests_running") == 1, "the first runs")
        connection = self.server.connect()
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "It", "max_tokens": 5}),
                           {"Content-Type": "application/json"})
        self.server.wait_for(lambda: self.number("bitnet_requests_accepted_total") == len(self.prompts) + 13, "it waits")
        self.server.wait_for(self.has_gauges, "one runs, others wait, and those clients are all that there are")
        connection.close()
        self.server.wait_for(
            lambda: self.number("vllm:request_success_total", finished_reason="abort") == 1, "it is given up")
        long.join()
        (out,) = got
        for one, choice in zip(alone, out["choices"]):
            # Shorter than a block: nothing is known of them.
            self.note({"prompt_tokens": len(one), "prompt_tokens_details": {"cached_tokens": 0}},
                      [choice["finish_reason"]], [most], most)
        assert out["usage"]["completion_tokens"] == most * len(prompts)
        assert out["usage"]["prompt_tokens"] == sum(map(len, alone))

    def has_gauges(self):
        """Not between the end of a choice and the begin of the next one, which has no block before its first step."""
        self.gauges = samples_of(self.server.ask("GET", "/metrics")[2])
        return (self.gauges["vllm:num_requests_running", ()] == 1 and self.gauges["vllm:num_requests_waiting", ()] > 0
                and self.gauges["vllm:kv_cache_usage_perc", ()] > 0 and self.gauges["bitnet_connections", ()] == 3)

    def number(self, name, **labels):
        return samples_of(self.server.ask("GET", "/metrics")[2])[name, tuple(labels.items())]


@needs_backend
class Metrics(support.Case):
    OPTIONS = ("--alias", "tales", "-np", "1", "-c", str(CONTEXT), "--spec-type", "ngram")

    def load(self):
        self.began = time.time()
        self.server = test_serve.Server(self.home, *self.OPTIONS)
        self.addCleanup(self.server.kill)
        self.assertTrue(self.server.port, self.server.lines)
        out = Load(self.server)
        text = out.complete(8, prompt=PROMPT)
        for _ in range(2):
            self.assertEqual(out.complete(8, prompt=PROMPT), text)
        out.complete(None, prompt=PROMPT, stop=[text.split()[1]])
        out.complete(60, prompt=REPEATS, ignore_eos=True)
        out.complete(2, prompt="the fox and the rabbit went home " * 20)
        out.complete(2, prompt="the fox and the rabbit went home " * 20)
        out.chat_by_stream(6, 3)
        out.embed("the fox")
        out.embed("a rabbit was here")
        out.leave_the_queue()
        for body in ({}, {"prompt": "fox " * 2000}, {"prompt": "a", "temperature": "hot"}):
            self.assertEqual(self.server.ask("POST", "/v1/completions", body)[0], 400)
        return out

    def expect_load(self, to, load):
        finishes = [x[3] for x in load.answers]
        n_stop, n_length = finishes.count("stop"), finishes.count("length") + len(load.embedded)
        for reason, n in (("stop", n_stop), ("length", n_length), ("abort", 1), ("error", 0)):
            to.set("vllm:request_success_total", n, finished_reason=reason)
        for reason in ENDS:  # of the scheduler of texts
            n = {"string": n_stop, "length": n_length - len(load.embedded), "cancelled": 1}.get(reason, 0)
            to.set("bitnet_choices_ended_total", n, reason=reason)
        prompt, known = (sum(x[i] for x in load.prompts) for i in (0, 1))
        generated = sum(x[2] for x in load.answers)
        to.set("vllm:prompt_tokens_total", prompt)
        to.set("vllm:prompt_tokens_cached_total", known)
        to.set("vllm:prompt_tokens_by_source_total", prompt - known, source="local_compute")
        to.set("vllm:prompt_tokens_by_source_total", known, source="local_cache_hit")
        to.set("vllm:prefix_cache_queries_total", prompt)
        to.set("vllm:prefix_cache_hits_total", known)
        to.set("vllm:generation_tokens_total", generated)
        to.set("bitnet_requests_accepted_total", len(load.prompts) + 1)
        to.set("bitnet_requests_refused_total", 3, status="400")
        each = [x[0] for x in load.answers] + load.embedded
        to.histogram("vllm:request_prompt_tokens", TOKENS, each)
        to.histogram("vllm:request_prefill_kv_computed_tokens", TOKENS,
                     [x[0] - x[1] for x in load.answers] + load.embedded)
        to.histogram("vllm:request_generation_tokens", TOKENS, [x[2] for x in load.answers])
        to.histogram("vllm:request_params_max_tokens", TOKENS, [x[4] for x in load.answers if x[4]])
        to.histogram("vllm:request_params_n", [1, 2, 5, 10, 20], load.params_n)
        to.set("bitnet_recomputed_tokens_total", load.recomputed)
        # Computed in steps: prompts, all tokens but the last of each choice, and what was computed again.
        return prompt - known + load.recomputed, generated - len(load.answers)

    def expect_times(self, to, load):
        passed = time.time() - self.began
        n, n_all = len(load.answers), len(load.answers) + len(load.embedded)
        some = Between(1e-6 * n, passed * n_all)
        to.times("vllm:time_to_first_token_seconds", FIRST_S, n, some)
        to.times("vllm:inter_token_latency_seconds", BETWEEN_S, sum(x[2] - 1 for x in load.answers), some)
        to.times("vllm:request_time_per_output_token_seconds", BETWEEN_S, n, some)
        for phase in ("e2e_request_latency", "request_queue_time", "request_prefill_time", "request_decode_time",
                      "request_inference_time"):
            to.times(f"vllm:{phase}_seconds", REQUEST_S, n_all, some)
        to.set("bitnet_step_seconds_total", Between(1e-6 * n, passed))
        to.set("bitnet_model_load_seconds", Between(1e-4, passed))
        to.set("vllm:lora_requests_info", Between(self.began, self.began + passed), max_lora="0",
               running_lora_adapters="", waiting_lora_adapters="")

    def expect_rest(self, to, got, why):
        idle = {"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0,
                "bitnet_requests_paused": 0, "bitnet_waiting_tokens": 0, "bitnet_kv_reserved_blocks": 0,
                "bitnet_connections": 1, "vllm:num_preemptions_total": 0, "bitnet_failed_steps_total": 0, "bitnet_devices_lost_total": 0, "bitnet_moves_total": 0}
        for name, value in idle.items():
            to.set(name, value)
        for reason in ("capacity", "deferred"):
            to.set("vllm:num_requests_waiting_by_reason", 0, reason=reason)
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            to.set("vllm:admission_rejections_total", 0, reason=reason)
        for reason in REJECTIONS:
            to.set("bitnet_admission_rejections_total", 0, reason=reason)
        to.set("vllm:cache_config_info", 1, block_size=str(BLOCK), num_gpu_blocks=str(CONTEXT // BLOCK))
        to.set("bitnet_kv_cached_blocks", Between(1, CONTEXT // BLOCK))  # of what ran last
        to.set("bitnet_evicted_blocks_total", Between(1, 100))
        about = json.loads(self.ok("version", "--json").text)
        version = self.ok("version").text.split()[1]
        to.set("bitnet_build_info", 1, version=version, abi=f"{about['abi_major']}.{about['abi_minor']}",
               compiler=about["compiler"])
        for result in ("equal", "same_top", "differs", "dropped"):
            to.set("bitnet_shadow_rows_total", 0, result=result)
        for name in ("running", "kl_mean", "kl_max", "offering_seconds_total"):
            to.set("bitnet_shadow_" + name, 0)
        to.set("bitnet_log_lines_dropped_total", 0)
        to.set("bitnet_spans_sent_total", 0)
        to.set("bitnet_spans_dropped_total", 0)
        to.set("bitnet_receipts_written_total", 0)
        to.set("bitnet_receipts_dropped_total", 0)
        to.set("bitnet_selection_info", 1, requested="auto", detected=",".join(why["detected"]),
               selected=why["selected"])
        for one in why["backends"]:
            to.set("bitnet_backend_usable", int(one["code"] == "BN-OK"), backend=one["name"], code=one["code"])
        (device,) = {dict(of)["device"] for name, of in got if name == "bitnet_backend_info"}
        self.assertTrue(device.startswith(why["selected"]), device)
        to.set("bitnet_backend_info", 1, backend=why["selected"], device=device, version=version)
        for name, of in got:
            if name == "bitnet_backend_reloads_total":
                to.set(name, 0, backend=dict(of)["backend"])

    def expect_drafts(self, to, got, n_prompt, n_decoded, n_begun_again):
        """What was drafted is the drafts' own affair; but all of it is in the steps, and nothing else."""
        drafted = got["vllm:spec_decode_num_draft_tokens_total", ()]
        accepted = got["vllm:spec_decode_num_accepted_tokens_total", ()]
        drafts = got["vllm:spec_decode_num_drafts_total", ()]
        to.set("vllm:spec_decode_num_drafts_total", Between(1, n_decoded))
        to.set("vllm:spec_decode_num_draft_tokens_total", Between(drafts, drafts * 16))
        to.set("vllm:spec_decode_num_accepted_tokens_total", Between(1, drafted))
        name, before, places = "vllm:spec_decode_num_accepted_tokens_per_pos_total", drafts, []
        for key in sorted((x for x in got if x[0] == name), key=lambda x: int(dict(x[1])["position"])):
            to.set(name, Between(1, before), position=str(len(places)))
            before = got[key]
            places.append(before)
        self.assertEqual(sum(places), accepted)
        steps, computed = got["bitnet_steps_total", ()], n_prompt + n_decoded + drafted - accepted
        to.set("bitnet_steps_total", Between(n_decoded - accepted + 1, computed))
        name, before = "vllm:iteration_tokens_total", 0
        for bound in STEP_TOKENS:
            to.set(name + "_bucket", Between(before, steps), le=f"{bound:g}")
            before = got.get((name + "_bucket", (("le", f"{bound:g}"),)), 0)
        alone = n_decoded - n_begun_again - drafts - accepted  # tokens that had a step of their own
        self.assertGreaterEqual(got[name + "_bucket", (("le", "1"),)], alone)
        to.set(name + "_bucket", steps, le="+Inf")
        to.set(name + "_sum", computed)
        to.set(name + "_count", steps)

    def expect_process(self, to):
        pid = self.server.process.pid
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            size, resident = (int(x) * resource.getpagesize() for x in file.read().split()[:2])
        n_open = len(os.listdir(f"/proc/{pid}/fd"))
        to.set("process_virtual_memory_bytes", Between(size * 0.5, size * 2))
        to.set("process_resident_memory_bytes", Between(resident * 0.5, resident * 2))
        to.set("process_open_fds", Between(n_open - 2, n_open + 2))
        to.set("process_max_fds", resource.prlimit(pid, resource.RLIMIT_NOFILE)[0])
        to.set("process_start_time_seconds", Between(self.began - 2, time.time()))
        to.set("process_cpu_seconds_total", Between(0.01, (time.time() - self.began + 1) * os.cpu_count()))

    def check_gauges(self, of):
        """Of the time at which twelve requests and another one shared one place."""
        waiting = of["vllm:num_requests_waiting", ()]
        self.assertEqual(Between(1, 12), waiting)
        self.assertEqual(waiting, sum(of["vllm:num_requests_waiting_by_reason", (("reason", x),)]
                                      for x in ("capacity", "deferred")))
        self.assertEqual(Between(1 / (CONTEXT // BLOCK), 1), of["vllm:kv_cache_usage_perc", ()])
        self.assertEqual(of["vllm:kv_cache_usage_perc", ()] * (CONTEXT // BLOCK) % 1, 0)
        self.assertEqual(Between(waiting, 4 * waiting), of["bitnet_waiting_tokens", ()])

    def backends(self):
        of = self.server.ask("GET", "/backends")[2]
        return {"selected": of["selected"], "detected": of["detected"],
                "backends": [{"name": b["name"], "code": b["code"]} for b in of["backends"]]}

    def test_of_a_known_load_equal_what_was_sent(self):
        load = self.load()
        self.check_gauges(load.gauges)
        self.server.wait_for(lambda: load.number("bitnet_connections") == 1, "others than this one have ended")
        time.sleep(0.05)
        # Backends that were not asked for are probed meanwhile.
        why, after, text = None, self.backends(), ""
        while why != after:
            why, text, after = after, self.server.ask("GET", "/metrics")[2], self.backends()
        got, want = samples_of(text), Expected()
        n_prompt, n_decoded = self.expect_load(want, load)
        self.expect_times(want, load)
        self.expect_rest(want, got, why)
        self.expect_drafts(want, got, n_prompt, n_decoded, load.n_begun_again)
        self.expect_process(want)
        self.assertEqual(sorted(set(got) - set(want.rows)), [], "rows of which this test knows nothing")
        self.assertEqual(sorted(set(want.rows) - set(got)), [], "rows that are missing")
        wrong = {key: (number, want.rows[key]) for key, number in got.items() if not (
            want.rows[key] == number or isinstance(want.rows[key], float) and math.isclose(want.rows[key], number))}
        self.assertEqual(wrong, {}, "rows with what they are and what they should be")
        self.assertGreater(sum(x[1] for x in load.prompts), 0, "something was known")
        self.check_page(text)
        self.check_lint(text)

    def check_page(self, text):
        """The table of the reference is what the server says of itself."""
        path = os.path.join(SOURCE, "docs", "reference", "metrics.md")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        rows = [f"| `{name}` | {kind} | {', '.join(f'`{x}`' for x in labels)} | {what} |"
                for name, kind, labels, what in families_of(text)]
        table = "\n".join(rows)
        self.assertIn(table, page, f"{path} is to have these rows:\n{table}\n")
        listed = set(re.findall(r"^\| `([a-z0-9_:]+)` \|", page, re.M))
        self.assertEqual(listed, {x[0] for x in families_of(text)})

    def check_lint(self, text):
        if not shutil.which("promtool"):
            return
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        complaints = (done.stdout + done.stderr).splitlines()
        # What vLLM's names have by their nature, on which its readers rely.
        allowed = re.compile(r"vllm:\S+ metric names should not contain ':'$|"
                             r'vllm:iteration_tokens_total non-counter metrics should not have "_total" suffix$')
        self.assertEqual([x for x in complaints if not allowed.match(x)], [])
        self.assertIn(done.returncode, (0, 3))

    def test_promtool_finds_no_fault(self):
        if not shutil.which("promtool"):
            self.skipTest("there is no promtool; test_of_a_known_load_equal_what_was_sent checks with it where it is")


@needs_backend
class Keys(test_serve.Serving):
    OPTIONS = ("--api-key", "secret")

    def test_are_asked_for(self):
        self.assertEqual(self.server.ask("GET", "/metrics")[0], 401)
        status, fields, _ = self.server.ask("GET", "/metrics", fields={"Authorization": "Bearer secret"})
        self.assertEqual((status, fields["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))


if __name__ == "__main__":
    support.main()
