#!/usr/bin/env python3
"""Tests a backend on the device that this machine has, and prints what was measured as Markdown.

    lane.py [--build build/release] [--device cuda] [--only STEP[,STEP...]] [--models build/gpu-lane]
            [--shapes 2b-4t,8b,10b,27b] [--variants FOLDER] [--sanitizer compute-sanitizer] [--seconds N] [--short]

The cpu backend is the judge. A step runs in a process of its own; one that fails stops no other one. Ends with 1 if
one failed, and with 77 and a line "skip: lane gpu: REASON" where the backend computes on nothing. Models are made
where they are missing (15 GB). --variants has other builds of the plugin, *.so, whose speed is measured in turns with
this one's. --short has small models and few steps: so a driver in software comes to an end.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from device import PROMPT, PROMPTS, SHAPES, TREE, Failed, Lane, Yard, must, parting, same_text, threads
import divergence  # of tests/cli

MOST_KL = 1e-5  # of one token, where no activation is rounded to a code
# Limit at the first different token, if its two largest logits are close. Activations between two codes cost up to
# 2e-4, a wrong kernel 1e-2 or more (tests/cli/divergence.py).
MOST_KL_OF_TIE = 1e-3
SKIP = 77


def row(what, command, figure, share=""):
    print(json.dumps([what, command, figure, share]), flush=True)


# ---- the steps, in their order

def conformance(lane):
    """The contract, to gold. What a plugin does not declare, such as that it can be unmapped, keeps it below."""
    report = lane.path("report.json")
    what = ("--suite", "abi") if lane.short else ("--level", "gold")
    facts, _ = lane.facts()
    excused = TREE / f"plugins/{lane.device}/{lane.device}.conformance"
    done = lane.call(lane.build / "bin/bitnet-backend-conformance", *what, "--json", report,
                     *(("--expectations", excused) if excused.exists() else ()), facts["library"])
    must(os.path.exists(report), "no report:", done.stdout[-2000:], done.stderr[-2000:])
    found = json.loads(pathlib.Path(report).read_text(encoding="utf-8"))
    counts = found["counts"]
    bad = [t["test"] for t in found["tests"] if t["status"] in ("failed", "known-failure")]
    must(not bad and counts["passed"] > 0, "not as the contract says:", bad or "nothing ran")
    level, lacks = f"level {found['level']}", found.get("missing", "")
    undeclared = re.search(r"of the suite unload nothing ran: it does not declare", lacks)
    must(lane.short or found["level"] == "gold" or undeclared, level + ";", lacks)
    row("conformance", f"bitnet-backend-conformance {' '.join(what)} {os.path.basename(facts['library'])}",
        "; ".join(filter(None, (level, f"{counts['passed']} passed, {counts['skipped']} skipped", lacks))))


# Programs of tests/<backend> that hold each kernel against its definition. Others there need the driver of the tests.
KERNEL_TESTS = {"cuda": ("states", "dense_rounded", "attention", "attention_rounded", "head", "ternary", "rows")}


def kernels(lane):
    """Each kernel against its definition: first without what can be switched off, which spoils nothing if it hangs."""
    for subject in KERNEL_TESTS.get(lane.device, ())[:lane.sizes.kernel_tests]:
        program = lane.build / f"tests/{lane.device}/test_{lane.device}_{subject}"
        must(program.exists(), program, "is missing: build the target `tests-gpu`")
        for value in ("off", "on"):
            settings = {name: value for name in SWITCHES.get(lane.device, ())}
            done = lane.call(program, "--gtest_brief=1", env={**settings, "BITNET_SOURCE_DIR": str(TREE)})
            passed = re.search(r"\[  PASSED  \] (\d+) test", done.stdout)
            must(done.returncode == 0 and passed, subject, f"with what can be switched off {value}: ends with "
                 f"{done.returncode}:", (done.stdout + done.stderr)[-4000:])
            row(f"kernels, {subject}, switches {value}", program.name, f"{passed[1]} tests, as defined")


def parity(lane):
    """Each op and format beside the reference, by kernels of which the probe's self-test disabled none."""
    facts, _ = lane.facts()
    must(not facts["disabled"], "the self-test found wrong:", facts["disabled"])
    done = lane.call(lane.program, "parity", "--backend", lane.device, "--json")
    must(done.stdout.startswith("{"), "bitnet parity ends with", f"{done.returncode}:", done.stderr)
    rows = [r for one in json.loads(done.stdout)["compared"] for r in one["rows"]]
    bad = [f"{r['kernel']} by {r['max_abs']:g}" for r in rows if not r["ok"]]
    must(rows and not bad, "off by more than its tolerance:", bad or "nothing was compared")
    must(done.returncode == 0, "bitnet parity ends with", f"{done.returncode}:", done.stderr)
    exact = sum(r["exact"] for r in rows)
    row("parity", f"bitnet parity --backend {lane.device}",
        f"{exact} of {len(rows)} kernels bit for bit, the others within {max(r['nmse'] for r in rows):.1e} (NMSE)")


def is_near_tie(want_row, got_row, want, got):
    """(whether two devices may choose these tokens of their rows of logits, the divergence of the rows, the gap between
    both tokens on the first device, the largest difference of the rows)."""
    p, q = divergence.log_softmax(want_row), divergence.log_softmax(got_row)
    far = sum(math.exp(a) * (a - b) for a, b in zip(p, q))
    most = max(abs(a - b) for a, b in zip(want_row, got_row))
    gap = want_row[want] - want_row[got]
    return far <= MOST_KL_OF_TIE and 0 <= gap <= 2 * most, far, gap, most


def same_or_tied(lane, name, file, mine, on_cpu):
    """How far two texts are the same. Where they part, both devices compute the logits behind the same tokens: another
    token is an error unless it is as near to the largest one as their logits are to each other's."""
    got, want = mine["generated"], on_cpu["generated"]
    at = parting(got, want)
    if got == want:
        return f"{len(want)} tokens as on the cpu"
    rows = []
    for device in ("cpu", lane.device):
        with Yard(lane).model(device, file) as (_, model), model.session(n_context=256, n_batch=32) as session:
            rows.append(session.eval(on_cpu["prompt"] + want[:at]).tolist())
    tied, far, gap, most = False, math.nan, math.nan, math.nan
    if at < min(len(got), len(want)):
        tied, far, gap, most = is_near_tie(*rows, want[at], got[at])
    if not tied:
        same_text(got, want, f"{name}, KL {far:.1e}, the cpu's logits of both {gap:.2g} apart, rows {most:.2g}")
    return f"{at} tokens as on the cpu, then a near tie: logits {gap:.2g} apart, rows {most:.2g}, KL {far:.1e}"


def models(lane):
    """The same greedy text as the cpu's, and the same probabilities where nothing is rounded to a code."""
    for name, file in lane.all_models():
        on_cpu, mine = (lane.answer(device, file) for device in ("cpu", lane.device))
        devices = {part["device"].partition(":")[0] for part in mine["parts"]}
        must(devices == {lane.device}, name, "was computed on", devices)
        same = same_or_tied(lane, name, file, mine["tokens"], on_cpu["tokens"])
        row(f"{name}: text", f"bitnet run {lane.of(file)} --temp 0 -n {lane.sizes.tokens}", same)
        for activations, limit in (("auto", None), ("float", MOST_KL)):
            far = divergence.divergences(lane, ("cpu", lane.device), PROMPT + ", there was a little bird",
                                         env={"BITNET_MODEL": file, "BITNET_ACTIVATIONS": activations})
            must(limit is None or max(far) <= limit, name, f"{activations}: KL is {max(far):.2e}, at most {MOST_KL}")
            row(f"{name}: KL, --activations {activations}", f"bitnet logits {lane.of(file)} --all",
                f"median {statistics.median(far):.1e}, largest {max(far):.1e}", f"at most {MOST_KL}" if limit else "")


def held(session):
    """Descriptors, threads, resident bytes of this process, and bytes of the device that are not free."""
    resident = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    status = session.report()["device_status"]
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")),
            "resident": resident, "device": status.get("memory_total_bytes", 0) - status.get("memory_free_bytes", 0)}


def growth(seen):
    """What is held at the least in the last three readings, beyond the least of the three behind the first two, in
    which memory is still taken: what flickers is at its least in one of three, what grows is never again."""
    early, late = seen[2:5], seen[-3:]
    return {key: min(one[key] for one in late) - min(one[key] for one in early) for key in seen[0]}


def soak(lane):
    """One session for many steps, which sees a window of its text; nothing grows."""
    # Threads start and end; the allocator and the driver round up. A leak in each of five pieces is detected.
    yard, pieces, room = Yard(lane), 10, {"descriptors": 0, "threads": 1, "resident": 16 << 20, "device": 1 << 20}
    each = lane.sizes.soak // pieces
    options = {"n_context": lane.sizes.soak + 64, "window": 16, "window_keep": 2}

    def story(device):
        text, seen = "", []
        with yard.model(device) as (_, model), yard.session(model, **options) as session:
            for i in range(pieces):
                text += yard.generate(session, "" if i else PROMPT, each)
                seen.append(held(session) if device != "cpu" else None)
        return text, seen

    text, seen = story(lane.device)
    same_text(text, story("cpu")[0], "soak")
    grown = growth(seen)
    must(all(grown[key] <= room[key] for key in room), "what is held grows:", grown, "of", room)
    row("soak", "tests/gpu/lane.py --only soak", f"{each * pieces} steps as on the cpu; since step {3 * each} resident "
        f"{grown['resident']:+}, device {grown['device']:+} bytes")


def parallel(lane):
    """Sessions beside each other generate what each generates alone."""
    yard, prompts = Yard(lane), PROMPTS[:lane.sizes.sessions]
    want = yard.of_cpu(prompts)
    with yard.model() as (_, model):
        began = time.monotonic()
        alone = yard.texts(model, prompts)
        between = time.monotonic()
        together = threads(lambda prompt: yard.texts(model, [prompt])[0], prompts)
        ended = time.monotonic()
    for i, prompt in enumerate(prompts):
        same_text(alone[i], want[i], prompt)
        same_text(together[i], want[i], f"{prompt}, beside others")
    all_tokens = len(prompts) * lane.sizes.tokens
    row("parallel sessions", "tests/gpu/lane.py --only parallel", f"{len(prompts)} sessions as on the cpu; together "
        f"{all_tokens / (ended - between):.0f} t/s, one after the other {all_tokens / (between - began):.0f}")


def reload(lane):
    """The plugin is replaced while sessions generate; they move with their keys and values."""
    yard, prompts = Yard(lane), PROMPTS[:lane.sizes.sessions]
    want = yard.of_cpu(prompts)
    with yard.model() as (engine, model), contextlib.ExitStack() as open_ones:
        sessions = [open_ones.enter_context(yard.session(model)) for _ in prompts]
        ends = []

        def talk(i):
            texts = []
            while not ends or not texts:
                sessions[i].truncate(0)
                texts.append(yard.generate(sessions[i], prompts[i]))
            return texts

        with concurrent.futures.ThreadPoolExecutor(len(sessions)) as pool:
            talking = [pool.submit(talk, i) for i in range(len(sessions))]
            try:
                for _ in range(lane.sizes.reloads):
                    yard.upgrade()
                    report = engine.reload(lane.device, policy="migrate", most_old_copies=lane.sizes.reloads)
                    must(report["changed"], "the new copy was not taken:", report)
                    time.sleep(0.2)  # sessions come to speak
            finally:
                ends.append(True)
            for i, texts in enumerate(one.result() for one in talking):
                for text in texts:
                    same_text(text, want[i], f"{prompts[i]}, under reloads")
        moves = [move for one in sessions for move in one.report().get("moves", [])]
    must(moves and {move["method"] for move in moves} == {"migrate"}, "sessions moved so:", moves)
    pauses = [move["pause_ms"] for move in moves]
    row("hot reload under load", "tests/gpu/lane.py --only reload", f"{lane.sizes.reloads} reloads, {len(moves)} "
        f"moves; pause {statistics.median(pauses):.1f} ms, at most {max(pauses):.1f}")


def generations(lane):
    """Two copies of the plugin serve at once."""
    yard, prompts = Yard(lane), PROMPTS[:2]
    want = yard.of_cpu(prompts)
    with yard.model() as (engine, model), yard.session(model) as old:
        yard.upgrade()
        report = engine.reload(lane.device, policy="finish")
        with yard.session(model) as new:
            mine = next(b for b in engine.report()["backends"] if b["name"] == lane.device)
            states = [g["state"] for g in mine["generations"]]
            must(states == ["draining", "active"], "generations are", states)
            texts = threads(lambda i: yard.generate((old, new)[i], prompts[i]), [0, 1])
            must("moves" not in old.report(), "the older session moved")
    for text, wanted in zip(texts, want):
        same_text(text, wanted, "two generations")
    row("two generations at once", "tests/gpu/lane.py --only generations",
        f"both as on the cpu; logits of the two differ by {report['compared']['difference']:g}")


def failover(lane):
    """The device is lost in the middle of a text, which the cpu goes on with."""
    yard = Yard(lane, lane.build / f"tests/gpu/liblosing_{lane.device}.so")
    want = lane.answer("cpu", lane.demo)
    pauses = []
    for steps in (1, lane.sizes.tokens // 2):
        settings = {"WRAPPED": yard.plugin, "STEPS": str(steps)}
        got = lane.answer(f"{lane.device},cpu", lane.demo, "--backend-dir", yard.manifests,
                          env={f"BITNET_{lane.device.upper()}_{key}": value for key, value in settings.items()})
        must(got["selection"]["selected"] == lane.device, "it began elsewhere:", got["selection"])
        same_text(got["tokens"]["generated"], want["tokens"]["generated"], f"lost after {steps} steps")
        moves = [(m["from"], m["to"], m["method"]) for m in got.get("moves", [])]
        must(moves == [(f"{lane.device}:0", "cpu:0", "recompute")], f"lost after {steps} steps, it moved so:", moves)
        pauses.append(got["moves"][0]["pause_ms"])
    row("fail-over to the cpu", "tests/gpu/lane.py --only failover",
        f"{len(pauses)} losses, the text as on the cpu; pause at most {max(pauses):.1f} ms")


def sanitizer(lane):
    """The vendor's checker of memory and races, where it is installed."""
    program = shutil.which(lane.sanitizer)
    if program is None:
        print(f"skip: there is no {lane.sanitizer} on PATH", file=sys.stderr)
        return
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        words = ("--tool", tool, "--error-exitcode", 9, "--target-processes", "application-only")
        done = lane.call(program, *words, lane.program, "run", "--device", lane.device, "--temp", "0", "-n", "4", "-p",
                         PROMPT)
        must(done.returncode == 0, tool, "finds:", (done.stdout + done.stderr)[-4000:])
        row(f"{lane.sanitizer}, {tool}", f"{lane.sanitizer} --tool {tool} bitnet run --device {lane.device} -n 4",
            "no error")


# Variables that switch off optional parts of a backend.
SWITCHES = {"cuda": ("BITNET_CUDA_WARP_GROUPS", "BITNET_CUDA_OVERLAP")}


def limit(lane):
    """GB/s read and written where the driver copies: of its own program, or of the backend's folder of tests."""
    own = lane.build / f"tests/bench/gpu/bench_{lane.device}_ceilings"
    words = [own, "--json", "--megabytes", max(lane.sizes.megabytes, 8), "--rounds", lane.sizes.rounds]
    if not own.exists():
        words = [sys.executable, TREE / f"tests/{lane.device}/copy_speed.py", lane.sizes.megabytes, lane.sizes.rounds]
    done = lane.call(*words)
    must(done.returncode == 0, *words, "fails:", done.stderr)
    copies, = (one for one in json.loads(done.stdout)["ceilings"] if one["name"] == "copy command")
    row("limit: the driver's own copy", " ".join(str(w).replace(f"{TREE}/", "") for w in words if w != sys.executable),
        f"{copies['median']:.0f} GB/s read and written")
    return copies["median"]


def products_of(lane, file):
    """Of a token in the layers, one for each weight; the head takes only the last one of a prompt."""
    tensors = json.loads(lane.ok("inspect", "-m", file, "--json"))["tensors"]
    return sum(math.prod(t["shape"]) for t in tensors if t["name"].startswith("blk.") and len(t["shape"]) == 2)


def peak(lane):
    """Products of bytes in a second by the device's data, where they are known; nothing is measured."""
    program = TREE / f"tests/{lane.device}/product_peak.py"
    if not program.exists():
        return None
    done = lane.call(sys.executable, program)
    must(done.returncode == 0, program, "fails:", done.stderr)
    known = json.loads(done.stdout)
    if not known:
        return None
    row("limit: products of bytes", f"tests/{lane.device}/product_peak.py",
        f"{known['products_in_a_second'] / 1e12:.3g} * 10^12 in a second: {known['processors']} multiprocessors * "
        f"{known['clock_hz'] / 1e9:.3g} GHz * {known['products_in_a_clock']}, by the data sheet")
    return known["products_in_a_second"]


@contextlib.contextmanager
def all_variants(lane):
    """(name, environment, words) of what is measured in turns: as it is, without each thing that can be switched off,
    and other builds of the plugin."""
    out = [("", {}, ())]
    out += [(f"without {setting}", {setting: "off"}, ()) for setting in SWITCHES.get(lane.device, ())]
    with contextlib.ExitStack() as folders:
        for file in sorted(lane.variants.glob("*.so")) if lane.variants else ():
            folder = folders.enter_context(tempfile.TemporaryDirectory(prefix="bitnet-variant-"))
            yard = Yard(lane, file, folder)
            out.append((f"variant {file.stem}", {}, ("--backend-dir", yard.manifests)))
        yield out


def in_turns(lane, file, words, variants):
    """What `bitnet bench` says of each test of each variant, with the samples of all rounds. A round has one of each
    variant and begins with another one than the last, so that a change of the device's clock concerns all of them."""
    found = [{} for _ in variants]
    for turn in range(lane.sizes.rounds):
        for i in range(len(variants)):
            at = (turn + i) % len(variants)
            _, env, own = variants[at]
            done = lane.ok("bench", "-m", file, "--device", lane.device, *words, "-r", 1, "-o", "json", *own, env=env)
            for test in json.loads(done):
                known = found[at].setdefault(test["test"], {**test, "samples_ts": []})
                known["samples_ts"] += test["samples_ts"]
    for tests in found:
        for test in tests.values():
            test["median_ts"] = statistics.median(test["samples_ts"])
    return found


def speed(lane):
    """Prompts and generation of every model, beside what the driver copies in the same minute; and in turns with that,
    without what can be switched off, and by other builds of the plugin."""
    products_limit = peak(lane)
    with all_variants(lane) as variants:
        for name, file in lane.all_models():
            most, products = limit(lane), products_of(lane, file)
            words = ["--no-kernel-times", "-p", lane.sizes.prompts, "-n", lane.sizes.tokens]
            command = f"bitnet bench {lane.of(file)} {' '.join(map(str, words))} -r {lane.sizes.rounds}"
            measured, *others = in_turns(lane, file, words, variants)
            for test in measured.values():
                samples = test["samples_ts"]
                figure = f"{test['median_ts']:.1f} t/s ({min(samples):.1f} to {max(samples):.1f})"
                share = ""
                if test["n_gen"]:
                    read = test["bytes_per_token"] * test["median_ts"] / 1e9
                    figure, share = figure + f", {read:.1f} GB/s", f"{100 * read / most:.0f} %"
                else:
                    figure += f", first token after {1e3 * test['n_prompt'] / test['median_ts']:.1f} ms"
                    if products_limit:
                        share = f"{100 * products * test['median_ts'] / products_limit:.0f} %"
                row(f"{name}: {test['test']}", command, figure, share)
            for (variant, env, _), tests in zip(variants[1:], others):
                setting = "".join(f"{key}={value} " for key, value in env.items())
                figures = ", ".join(f"{key} {now:.1f} ({now / measured[key]['median_ts']:.2f})"
                                    for key, now in ((key, one["median_ts"]) for key, one in tests.items()))
                row(f"{name}: {variant}", setting + command, f"{figures} t/s (of what it is with all)")


STEPS = (kernels, conformance, parity, models, soak, parallel, reload, generations, failover, sanitizer, speed)


def run_steps(lane, names, seconds):
    """Prints the rows of all of them as they come; the names of those that failed, and of those that there was no time for.
    A step that is under way when the time is over is ended."""
    failed, left_out, end = [], [], time.monotonic() + seconds
    for name in names:
        patience = min(lane.sizes.patience_s, end - time.monotonic())
        if patience <= 0:
            left_out.append(name)
            continue
        print(f"{name}: begins at {datetime.datetime.now():%H:%M:%S}", file=sys.stderr, flush=True)
        with subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--step", name], stdout=subprocess.PIPE,
                              text=True, env=lane.environment(), stdin=subprocess.DEVNULL) as step:
            late = threading.Timer(patience, step.kill)
            late.start()
            for line in step.stdout:
                if line.startswith("["):
                    what, command, figure, share = json.loads(line)
                    print(f"| {what} | `{command}` | {figure} | {share} |", flush=True)
            status = step.wait()
            late.cancel()
        if status != 0:
            failed.append(name)
            why = f"ends with {status}" if status >= 0 else f"signal {-status}, {patience:.0f} s at most"
            print(f"{name}: FAILED, {why}", file=sys.stderr, flush=True)
    return failed, left_out


def revision():
    """Of the tree; a bundle has it in a file, and needs no git."""
    kept = TREE / "REVISION"
    if kept.exists():
        return kept.read_text(encoding="utf-8").strip()
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=TREE, capture_output=True, text=True,
                              check=False).stdout.strip()
    except FileNotFoundError:
        return "revision unknown: there is no git"


def print_head(facts):
    module = pathlib.Path("/sys/module/nvidia/version")
    kernel = f", kernel module {module.read_text(encoding='ascii').strip()}" if module.exists() else ""
    print(f"**{facts['name']}** ({facts.get('arch', '')}), {facts.get('driver_version', 'driver unknown')}{kernel}, "
          f"{datetime.date.today()}, {revision()}\n")
    print("| what | command | figure | of the limit |\n|---|---|---|---|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[5:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TREE / "build/release")
    parser.add_argument("--device", default="cuda", metavar="BACKEND")
    parser.add_argument("--only", default=",".join(step.__name__ for step in STEPS), metavar="STEP,...",
                        help="of %(default)s")
    parser.add_argument("--models", type=pathlib.Path, default=TREE / "build/gpu-lane", metavar="FOLDER")
    parser.add_argument("--shapes", default=",".join(SHAPES), metavar="SHAPE,...", help="of models: %(default)s")
    parser.add_argument("--variants", type=pathlib.Path, metavar="FOLDER", help="of other builds of the plugin, *.so")
    parser.add_argument("--sanitizer", default="compute-sanitizer", metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="in which steps may run; others are left out")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = {step.__name__: step for step in STEPS}
    names = [options.step] if options.step else options.only.split(",")
    for name in names:
        if name not in known:
            parser.error(f"there is no step '{name}'; expected some of {', '.join(known)}")
    for shape in options.shapes.split(","):
        if shape not in SHAPES:
            parser.error(f"there is no shape '{shape}'; expected some of {', '.join(SHAPES)}")
    os.umask(0o022)  # plugins that a group may write to are rejected
    lane = Lane(options)
    if options.step:
        try:
            known[options.step](lane)
        except (Failed, AssertionError, subprocess.TimeoutExpired) as why:
            sys.exit(f"{options.step}: {why}")
        return
    facts, why = lane.facts("--fresh")
    if facts is None:
        print(f"skip: lane gpu: {why}")
        sys.exit(SKIP)
    lacks = [module for module in ("cffi", "numpy") if importlib.util.find_spec(module) is None]
    if lacks:
        sys.exit(f"{sys.executable} has no {' and no '.join(lacks)}; take build/venv/bin/python, of scripts/setup, or in "
                 "a bundle ./run, and install numpy")
    print_head(facts)
    failed, left_out = run_steps(lane, names, options.seconds)
    if left_out:
        print(f"there was no time for {', '.join(left_out)}", file=sys.stderr)
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")


if __name__ == "__main__":
    main()
