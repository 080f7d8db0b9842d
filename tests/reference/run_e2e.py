#!/usr/bin/env python3
"""Runs the bitnet program on small random models and compares its logits with the reference's.

    run_e2e.py --bitnet PATH [--models DIR] [--only NAME]... [--demo FILE]...

Kinds of row:
  f32   logits of a small model with float32 keys and values, judged by compare.py
  f16   the same with float16 keys and values, against the reference with the same rounding
  q8_0  the same with int8 keys or values, or both
  q4_0  the same with keys or values of 4 bits, or both
  cost  logits with int8 keys and values, or those of 4 bits, against those of exact ones: no further apart than
        errors of half a step make the reference itself
  demo  models/*.gguf: a few ids that nothing can move, and texts that the reference itself generates
  view  logits with a sliding window, against the reference with the same mask
  step  logits of a text that is read some tokens at a time: what layers keep goes from step to step
  no    int8 keys or values, or those of 4 bits, where a head is no whole number of blocks: rejected, with what to do
  last  without --all: the last position of the same run, bit for bit
  same  the same weights in other types that keep all of them, made by quantize: the same bits
  embd  embeddings against the reference's, of each pooling; steps of one token give the same bits
  end   the embedding of a text is that of its tokens and the end token that the file asks for
  text  tokenize on a file without tensors; `logits` on it has to end with exit code 3
Exit code 0: every row passed. 1: some did not. 77: the Python packages or the device are missing.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np

    import compare
    import make_models
    import reference
    import steadiness
    import vocabulary
except ImportError as error:
    print(f"skip: {error}; scripts/setup installs tests/reference/requirements.txt into build/venv")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
SECONDS = 300  # for one run of the program; a sanitized debug build needs a few
INVALID_MODEL = 3  # the program's exit code for a model it cannot run
NO_BACKEND = 4  # and where the backend that was asked for is not available
# Few rows: what they add is the rounding of keys and values, not another weight type.
F16_ROWS = ("b158-i2s", "b158-i2s-long", "llama-tq2", "llama-f16", "llama-f16-long", "llama-q8_0", "gemma3-f16",
            "qwen35-f32")
Q8_0_ROWS = {"b158-i2s": "q8_0", "b158-i2s-long": "q8_0", "llama-tq2": "f32,q8_0", "llama-f16-long": "q8_0,f32",
             "llama-q8_0": "q8_0", "qwen35-f32": "q8_0"}
# What they add is another rounding; a type alone, and beside each of the others.
Q4_0_ROWS = {"b158-i2s": "q4_0", "b158-i2s-long": "q4_0,f16", "llama-tq2": "f32,q4_0", "llama-f16-long": "q4_0",
             "llama-q8_0": "q8_0,q4_0", "qwen35-f32": "q4_0"}
NO_BLOCKS_ROW = "llama-hd80"
# (window, kept, tokens of a step): within, on and across blocks of 64; steps longer and shorter than the window.
WINDOW_ROWS = {"llama-f16-long": ((1, 0, 512), (64, 0, 64), (70, 5, 512), (100, 70, 7), (199, 0, 512), (4000, 0, 512)),
               "b158-i2s-long": ((20, 0, 512), (20, 3, 1)),
               # Of layers that attend: states keep what they keep.
               "qwen35-f32": ((1, 0, 512), (5, 0, 1), (20, 3, 7)),
               # Layers with a window of five: within it, beyond it, and what is kept lies half in it.
               "gemma3-f16": ((3, 0, 512), (3, 4, 7), (4, 20, 1), (12, 2, 512), (24, 0, 512))}
STEP_ROWS = {"qwen35-f32": (1, 7, 64), "qwen35-pq2": (1, 3)}  # tokens of a step
COST_ROWS = ("b158-i2s-long", "llama-f16-long")
SAME_ROWS = {"b158-tl-shapes": ("tl1", "tl2", "iq2_bn"), "qwen35-pq2": ("ptq1_0",), "qwen35-rotated": ("ptq1_0",),
             "qwen35-ahead": ("f16",)}
# Embeddings, by each pooling: of models made for them, which the file of the first says (last) and that of the second
# does not; of plain matrices, with a window in most layers and with states; and of a ternary head, which has no part.
EMBEDDING_ROWS = ("qwen3-embedding", "gemma3-embedding", "qwen3-f16", "gemma3-f16", "qwen35-f16-tied", "minicpm-q2")
COSINE = 1 - 1e-6
LAST_ROWS = ("b158-i2s-long", "llama-q4_k")
STORIES, STORY_POSITIONS = 2, 24
COST_POSITIONS = 64
# The demo model has learnt something: its surprise at its own stories may grow by a hundredth of a nat, with 4 bits by
# a tenth.
SURPRISE = {"q8_0": 0.01, "q4_0": 0.1}
# A mean over the positions varies less from trial to trial than the worst of them.
MEAN_FACTOR = 1.5
# So short that some lists are steady even in a model with thousands of activations per position.
STEADY_LISTS, STEADY_POSITIONS = 4, 3


def cached_models(directory):
    """Makes the models unless `directory` holds those of these very scripts. Returns the manifest."""
    scripts = ("make_models.py", "packing.py", "gguf_file.py", "vocabulary.py", "reference.py", "steadiness.py")
    key = hashlib.sha256(b"".join((HERE / s).read_bytes() for s in scripts)).hexdigest()
    stamp, manifest = directory / "made-by.txt", directory / "models.json"
    if not (stamp.exists() and stamp.read_text() == key and manifest.exists()):
        make_models.make_all(directory)
        stamp.write_text(key)
    return json.loads(manifest.read_text())


def options_of(flags):
    given = dict(zip(flags[::2], flags[1::2]))
    window = given.get("--sliding-window")
    return {"layout": given.get("--i2s-layout", "a"), "activation": given.get("--activation"),
            "window": window and int(window), "keep": int(given.get("--keep", 0)),
            "context": int(given.get("-c", 0)) or None, "activations": given.get("--activations", "auto")}


class Program:
    def __init__(self, path, extra):
        self.path, self.extra, self.lacks = path, extra, set()  # types of keys and values

    def run(self, *args):
        return subprocess.run([str(self.path), *map(str, args)], capture_output=True, timeout=SECONDS)

    def logits(self, model, ids, flags, kv, positions="--all"):
        """(array or None, exit code, last line of stderr)."""
        with tempfile.TemporaryDirectory() as scratch:
            out = pathlib.Path(scratch) / "logits.npy"
            k, v = kv.split(",") if "," in kv else (kv, kv)
            done = self.run("logits", "-m", model, "--ids", " ".join(map(str, ids)), "-o", out,
                            "-ctk", k, "-ctv", v, *([positions] if positions else []), *flags, *self.extra)
            said = done.stderr.decode(errors="replace").strip().splitlines() or [""]
            values = np.load(out) if done.returncode == 0 and out.exists() else None
            return values, done.returncode, said[-1]


    def keeps(self, model, kind):
        _, code, said = self.logits(model, [0], [], kind)
        return code != 1 or f"not as {kind}" not in said


def judge(program, model, ids, flags, kv="f32", steady=True, may_reject=False):
    """One comparison: (passed, text of the row).

    Ids that are not steady may miss the strict bounds for no fault of the program: then, and only
    then, the bounds are measured.
    """
    ours, code, said = program.logits(model, ids, flags, kv)
    if ours is None:
        if may_reject and code == INVALID_MODEL and said:
            return True, f"rejected: {said[:100]}"
        return False, f"exit code {code}: {said[:300]}"
    if ours.dtype != np.float32:
        return False, f"logits are {ours.dtype} instead of float32"
    options = options_of(flags) | {"kv": kv}
    wanted = reference.Model(model, **options).logits(ids)
    verdict = compare.compare(ours, wanted)
    if not verdict.ok and not steady:
        # The worst position stands for all: which one meets a tie is luck, the size of it is not.
        noise = np.stack(steadiness.measure(model, ids, wanted, **options)).max(axis=1, keepdims=True)
        verdict = compare.compare(ours, wanted, np.repeat(noise, len(ids), axis=1))
    return verdict.ok, str(verdict)


def judge_cost(program, model, ids, flags, kind, surprise_bound=np.inf):
    """What keys and values in blocks cost, against the reference with exact ones.

    A broken scale, order of blocks or rounding costs many times what errors of half a step do.
    """
    ours, code, said = program.logits(model, ids, flags, kind)
    if ours is None:
        return False, f"exit code {code}: {said[:300]}"
    wanted = reference.Model(model, **options_of(flags)).logits(ids)
    worst, mean, change = steadiness.cost_of_blocks(model, ids, wanted, kind, **options_of(flags))
    kl = steadiness.divergence(wanted, ours)
    more = steadiness.surprise(ours, ids) - steadiness.surprise(wanted, ids)
    cosine = ((ours * wanted).sum(axis=1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(wanted, axis=1)).min()
    passed = (kl.max() <= compare.KL_FACTOR * worst and kl.mean() <= MEAN_FACTOR * mean
              and abs(more) <= min(compare.KL_FACTOR * change, surprise_bound))
    return passed, (f"{kind}: KL {kl.max():.1e} (half a step: {worst:.1e})  mean {kl.mean():.1e} ({mean:.1e})"
                    f"  surprise {more:+.1e} ({change:.1e})  cosine {cosine:.6f}")


def judge_rejection(program, model, ids, flags):
    for kv, advice in (("q8_0,f16", "--cache-type-k f16"), ("f16,q8_0", "--cache-type-v f16"),
                       ("q4_0,f16", "--cache-type-k f16"), ("f16,q4_0", "--cache-type-v f16")):
        _, code, said = program.logits(model, ids, flags, kv)
        if code != 1 or "32" not in said or advice not in said:
            return False, f"{kv}: exit code {code}: {said[:300]}"
    return True, f"rejected: {said}"


def judge_last(program, model, ids, flags):
    every, code, said = program.logits(model, ids, flags, "f32")
    last, last_code, last_said = program.logits(model, ids, flags, "f32", positions=None)
    if every is None or last is None:
        return False, f"exit codes {code}, {last_code}: {said or last_said}"
    if last.size != every.shape[1] or last.dtype != np.float32:
        return False, f"{last.dtype} {last.shape} instead of float32 with {every.shape[1]} values"
    return np.array_equal(last.ravel(), every[-1]), f"max |diff| {np.abs(last.ravel() - every[-1]).max():.1e}"


def judge_embedding(program, model, ids, flags):
    """Each pooling, and the file's own; steps of one token give the same bits as steps of all."""
    given = ["--ids", " ".join(map(str, ids)), "--format", "npy", "-ctk", "f32", "-ctv", "f32", *flags, *program.extra]
    judged = reference.Model(model, **options_of(flags))
    worst, files = 1.0, {}
    for pooling in ("mean", "cls", "last", "auto"):
        for step in ("512", "1"):
            done = program.run("embed", "-m", model, "--pooling", pooling, "-ub", step, *given)
            if done.returncode:
                return False, f"{pooling}: exit code {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"
            if files.setdefault(pooling, done.stdout) != done.stdout:
                return False, f"{pooling}: steps of one token give another embedding"
        if pooling == "auto":
            continue
        ours = np.load(io.BytesIO(files[pooling]))
        if ours.dtype != np.float32 or ours.shape != (1, judged.n_embd):
            return False, f"{pooling}: {ours.dtype} {ours.shape} instead of float32 (1, {judged.n_embd})"
        length = np.linalg.norm(ours.astype(float))
        if abs(length - 1) > 1e-6:
            return False, f"{pooling}: a length of {length}"
        worst = min(worst, float(ours[0].astype(float) @ judged.embedding(ids, pooling)) / length)
    if files["auto"] != files["last"]:
        return False, "auto is not last"
    return worst >= COSINE, f"cosine 1 - {1 - worst:.1e}"


def judge_end_token(program, model):
    """A text is its tokens and, as its file asks for them, the one before and the one that ends texts."""
    text = "The fox sang."
    ids = program.run("tokenize", "-m", model, "--add-bos", text).stdout.decode().split()
    end = reference.read_file(model)[0]["tokenizer.ggml.eos_token_id"]
    of_ids = program.run("embed", "-m", model, "--ids", " ".join([*ids, str(end)]), *program.extra)
    of_text = program.run("embed", "-m", model, "-p", text, *program.extra)
    return of_text.returncode == 0 and of_text.stdout == of_ids.stdout, f"{len(ids)} tokens and {end}"


def judge_same(program, model, ids, flags, kind):
    wanted, code, said = program.logits(model, ids, flags, "f32")
    with tempfile.TemporaryDirectory() as scratch:
        other = pathlib.Path(scratch) / f"{kind}.gguf"
        made = program.run("quantize", model, other, kind, "--verify")
        if made.returncode:
            return False, f"quantize: exit code {made.returncode}: {made.stderr.decode(errors='replace')[-300:]}"
        ours, other_code, other_said = program.logits(other, ids, flags, "f32")
    if wanted is None or ours is None:
        return False, f"exit codes {code}, {other_code}: {said or other_said}"
    return np.array_equal(ours, wanted), f"{kind}: max |diff| {np.abs(ours - wanted).max():.1e}"


def tokens_as_bytes(path, ids):
    """The text of the ids, by the file's own vocabulary."""
    metadata, _ = reference.read_file(path)
    tokens = [metadata["tokenizer.ggml.tokens"][i] for i in ids]
    if metadata["tokenizer.ggml.model"] == "gpt2":
        letters = {c: b for b, c in enumerate(vocabulary.byte_letters())}
        return bytes(letters[c] for t in tokens for c in t)
    kinds = metadata["tokenizer.ggml.token_type"]
    out = b"".join(bytes([int(t[3:5], 16)]) if kinds[i] == vocabulary.BYTE else t.encode()
                   for i, t in zip(ids, tokens))
    return out.replace(vocabulary.SPACE.encode(), b" ").removeprefix(b" ")


def judge_vocabulary(program, model):
    text = "The fox sang \u00e9 42 times."
    done = program.run("tokenize", "-m", model, text)
    if done.returncode:
        return False, f"tokenize: exit code {done.returncode}: {done.stderr.decode(errors='replace').strip()[-300:]}"
    ids = [int(i) for i in done.stdout.split()]
    if tokens_as_bytes(model, ids) != text.encode():
        return False, f"tokenize: ids {ids} do not spell {text!r}"
    _, code, said = program.logits(model, [1, 2], [], "f32")
    if code != INVALID_MODEL or not said:
        return False, f"logits without tensors: exit code {code} instead of {INVALID_MODEL}: {said[:300]}"
    return True, f"{len(ids)} tokens spell the text; logits rejected: {said[:80]}"


def story(model, first, positions):
    """Ids from `first` on, continued by the reference's own best tokens: text as the model knows it."""
    ids = [first]
    while len(ids) < positions:
        ids.append(int(model.logits(ids)[-1].argmax()))
    return ids


def demo_rows(program, path):
    model, counter = reference.Model(path), steadiness.TieCounter(path)
    rng = np.random.Generator(np.random.PCG64(1))
    firsts = iter(rng.permutation(model.tensors["token_embd.weight"].rows).tolist())
    for n in range(STEADY_LISTS):
        for first in firsts:
            ids = story(model, first, STEADY_POSITIONS)
            if counter.is_steady(ids):
                yield f"{path.stem} {ids}", judge(program, path, ids, [])
                break
    for n in range(STORIES):
        ids = story(model, next(firsts), STORY_POSITIONS)
        for kv in [k for k in reference.KEPT if k not in program.lacks]:
            yield f"{path.stem} story {n} {kv}", judge(program, path, ids, [], kv, steady=False)
        ids = story(model, next(firsts), COST_POSITIONS)
        for kind, bound in SURPRISE.items():
            if kind in program.lacks:
                continue
            yield f"{path.stem} cost of {kind} {n}", judge_cost(program, path, ids, [], kind, bound)


def need_device(program, model):
    _, code, said = program.logits(model, [0], [], "f32")
    if code == NO_BACKEND:
        print(f"skip: {said}")
        sys.exit(77)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bitnet", required=True, type=pathlib.Path, help="the program to judge")
    parser.add_argument("--models", type=pathlib.Path, default=REPOSITORY / "build" / "reference-models",
                        help="where the small models are kept (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="rows whose name holds NAME")
    parser.add_argument("--demo", action="append", type=pathlib.Path, metavar="FILE",
                        help="model to generate texts with (default: models/*.gguf of this repository)")
    parser.add_argument("--backend", metavar="NAME", help="what computes; exits with 77 if it has no device")
    parser.add_argument("--extra", default="", help='further flags for the program, e.g. "-t 2"')
    return parser.parse_args()


class Report:
    """A line for each row that is judged, and how many passed."""

    def __init__(self):
        self.total = self.failed = 0

    def judge(self, kind, name, judged):
        """judged() is (passed, text): what is wrong, or how near it is."""
        since = time.time()
        self.add(kind, name, judged(), since)

    def add(self, kind, name, result, since):
        passed, text = result
        self.total, self.failed = self.total + 1, self.failed + (not passed)
        first, *rest = text.splitlines()
        print(f"{'ok  ' if passed else 'FAIL'} {kind:4} {name:30} {time.time() - since:5.1f} s  {first}", flush=True)
        for line in rest[:5]:
            print(f"          {line}")


def judge_row(report, program, model, row):
    """One small model in all the ways that its name is listed for."""
    name, ids, flags = row["name"], row["ids"], row["flags"]
    report.judge("f32", name, lambda: judge(program, model, ids, flags, may_reject=row["may_reject"]))
    for kind in SAME_ROWS.get(name, ()):
        report.judge("same", name, lambda: judge_same(program, model, ids, flags, kind))
    if name in EMBEDDING_ROWS:
        report.judge("embd", name, lambda: judge_embedding(program, model, ids, flags))
    if name == EMBEDDING_ROWS[0]:
        report.judge("end", name, lambda: judge_end_token(program, model))
    if name in LAST_ROWS:
        report.judge("last", name, lambda: judge_last(program, model, ids, flags))
    if name in F16_ROWS:
        report.judge("f16", name, lambda: judge(program, model, ids, flags, "f16", steady=False))
    if name in Q8_0_ROWS:
        report.judge("q8_0", name, lambda: judge(program, model, ids, flags, Q8_0_ROWS[name], steady=False))
    if name in Q4_0_ROWS and "q4_0" not in program.lacks:
        report.judge("q4_0", name, lambda: judge(program, model, ids, flags, Q4_0_ROWS[name], steady=False))
    for window, keep, step in WINDOW_ROWS.get(name, ()):
        windowed = [*flags, "--sliding-window", str(window), "--keep", str(keep), "-ub", str(step)]
        report.judge("view", f"{name} {window}+{keep}", lambda: judge(program, model, ids, windowed, steady=False))
    for step in STEP_ROWS.get(name, ()):
        report.judge("step", f"{name} {step}", lambda: judge(program, model, ids, [*flags, "-ub", str(step)],
                                                             may_reject=row["may_reject"]))
    if name == NO_BLOCKS_ROW:
        report.judge("no", name, lambda: judge_rejection(program, model, ids, flags))
    if name in COST_ROWS:
        for kind in sorted({"q8_0", "q4_0"} - program.lacks):
            report.judge("cost", name, lambda: judge_cost(program, model, ids, flags, kind))


def main():
    args = parsed()
    if not os.access(args.bitnet, os.X_OK):
        sys.exit(f"{args.bitnet} is no program; build it first and pass its path with --bitnet")
    program = Program(args.bitnet.resolve(), args.extra.split())
    rows = cached_models(args.models)
    if args.backend:
        program.extra += ["--device", args.backend]
        need_device(program, args.models / rows[0]["file"])
        probe = next(row["file"] for row in rows if row["name"] in Q4_0_ROWS)
        program.lacks = {kind for kind in ("q8_0", "q4_0") if not program.keeps(args.models / probe, kind)}
    wanted = lambda name: not args.only or any(part in name for part in args.only)
    report = Report()
    for row in rows:
        model = args.models / row["file"]
        if not wanted(row["name"]):
            continue
        if row["kind"] == "vocabulary":
            report.judge("text", row["name"], lambda: judge_vocabulary(program, model))
        else:
            judge_row(report, program, model, row)
    demos = args.demo or sorted((REPOSITORY / "models").glob("*.gguf"))
    if not demos:
        print("no model in models/*.gguf: no story was judged")
    for path in demos:
        if wanted(path.name):
            since = time.time()
            for name, result in demo_rows(program, path):
                report.add("demo", name, result, since)
                since = time.time()
    print(f"{report.total - report.failed} of {report.total} rows passed")
    sys.exit(1 if report.failed or not report.total else 0)


if __name__ == "__main__":
    main()
