"""Errors and their messages."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import bitnet
from conftest import MODEL, TREE


@pytest.mark.parametrize("make, kind, also, words", [
    (lambda p: p / "none.gguf", bitnet.NotFound, FileNotFoundError, "check the path"),
    (lambda p: cut(p), bitnet.BadData, ValueError, "is cut off"),
    (lambda p: p, bitnet.BadData, ValueError, "is an empty folder"),
    (lambda p: text_file(p), bitnet.Error, Exception, "GGUF"),
], ids=["none", "truncated", "folder", "text"])
def test_wrong_model_files_raise_their_error(engine, tmp_path, make, kind, also, words):
    with pytest.raises(kind, match=words) as caught:
        engine.open_model(make(tmp_path))
    assert isinstance(caught.value, also) and isinstance(caught.value, bitnet.Error)
    assert caught.value.status == kind.status or kind is bitnet.Error
    assert caught.value.where == "bitnet_model_open"
    with pytest.raises(bitnet.Error):
        bitnet.inspect(make(tmp_path))


@pytest.mark.parametrize("call, kind, retryable, user_fixable", [
    (lambda m: bitnet.Model("no-such.gguf"), bitnet.NotFound, False, True),
    (lambda m: bitnet.Model(MODEL, device="no-such"), bitnet.Unavailable, False, True),
    (lambda m: m.generate([10**6]), bitnet.InvalidArgument, False, False),
    (lambda m: m.generate("Once " * 5000), bitnet.ContextFull, False, True),
], ids=["file", "device", "argument", "context"])
def test_errors_have_the_flags_of_their_cause(model, call, kind, retryable, user_fixable):
    with pytest.raises(kind) as caught:
        call(model)
    assert (caught.value.retryable, caught.value.user_fixable) == (retryable, user_fixable)


def test_classes_have_the_flags_of_their_status():
    header = (TREE / "abi/include/bitnet/abi/base.h").read_text()
    listed = header[header.index("Flags of an error"):header.index("#define BITNET_ERROR_RETRYABLE")]
    retryable, user_fixable = listed[listed.index("retryable "):].split("user fixable")
    for kind in bitnet.errors.BY_STATUS.values():
        name = re.search(rf"^#define BITNET_(\w+) {kind.status}\b", header, re.MULTILINE)[1]
        assert kind.retryable == (re.search(rf"\b{name}\b", retryable) is not None), name
        assert kind.user_fixable == (re.search(rf"\b{name}\b", user_fixable) is not None), name


def cut(folder):
    (folder / "cut.gguf").write_bytes(MODEL.read_bytes()[:100_000])
    return folder / "cut.gguf"


def text_file(folder):
    (folder / "text.gguf").write_text("This is no model.\n" * 100)
    return folder / "text.gguf"


@pytest.mark.parametrize("call, kind, words", [
    (lambda m: bitnet.Model(3), TypeError, "a str or a path, not int"),
    (lambda m: bitnet.Model(None), TypeError, "a str or a path"),
    (lambda m: bitnet.Model("a\0b"), ValueError, "NUL"),
    (lambda m: bitnet.Model(MODEL, engine="cpu"), TypeError, "bitnet.Engine"),
    (lambda m: bitnet.Model(MODEL, kv_eviction="none"), ValueError, "lru, fifo, lfu"),
    (lambda m: bitnet.Model(MODEL, n_gpu_layers="many"), ValueError, "auto, all or a number"),
    (lambda m: bitnet.Model(MODEL, n_gpu_layers=-1), OverflowError, "an integer from 0"),
    (lambda m: bitnet.Model(MODEL, split_mode="row"), ValueError, "layer, none"),
    (lambda m: bitnet.Model(MODEL, tensor_split=[0.0, 0.0]), bitnet.InvalidArgument, "are 0"),
    (lambda m: bitnet.Model(MODEL, load_mode="none"), ValueError, "auto, mapped, copied"),
    (lambda m: bitnet.Model(MODEL, progress=3), TypeError, "function"),
    (lambda m: bitnet.Model(MODEL, device="no-such"), bitnet.Unavailable, "no-such"),
    (lambda m: bitnet.Engine(n_threads=-1), OverflowError, "n_threads is an integer from 0"),
    (lambda m: bitnet.Engine(n_threads="two"), TypeError, "n_threads is an integer"),
    (lambda m: bitnet.Engine(n_threads=10**6), bitnet.InvalidArgument, "threads"),
    (lambda m: bitnet.Engine(device=4), TypeError, "device is a str"),
    (lambda m: bitnet.Engine(log="x"), TypeError, "function"),
    (lambda m: bitnet.Engine(backend_params={"nonsense": "1"}), bitnet.InvalidArgument, "NAME.KEY=VALUE"),
    (lambda m: bitnet.Session("x"), TypeError, "bitnet.Model"),
    (lambda m: m.session(n_contxt=3), TypeError, "n_contxt"),
    (lambda m: m.session(kv_k="f64"), ValueError, "f16, f32, q8_0, q4_0"),
    (lambda m: m.session(n_context=10**9), bitnet.Error, "."),
    (lambda m: m.tokenize(3), TypeError, "str, not int"),
    (lambda m: m.tokenize("\ud800"), ValueError, "surrogate"),
    (lambda m: m.detokenize("abc"), TypeError, "list of ids"),
    (lambda m: m.detokenize([10**6]), bitnet.InvalidArgument, "1000000"),
    (lambda m: m.detokenize([2**40]), OverflowError, "list of ids"),
    (lambda m: m.detokenize([-1]), bitnet.InvalidArgument, "."),
    (lambda m: m.format_chat("hi"), TypeError, "messages"),
    (lambda m: m.format_chat([{"role": "user"}]), TypeError, "role and content"),
    (lambda m: m.format_chat([{"role": "user", "content": 3}]), TypeError, "str, not int"),
    (lambda m: m.generate(b"bytes"), TypeError, "a prompt is"),
    (lambda m: m.generate(3), TypeError, "."),
    (lambda m: m.generate([]), bitnet.InvalidArgument, "."),
    (lambda m: m.generate([10**6]), bitnet.InvalidArgument, "1000000"),
    (lambda m: m.generate(["a"]), TypeError, "list of ids"),
    (lambda m: m.generate([1.5]), TypeError, "list of ids"),
    (lambda m: m.generate("a", temprature=1), TypeError, "temprature"),
    (lambda m: m.generate("a", temperature="hot"), TypeError, "temperature is a number, not 'hot'"),
    (lambda m: m.generate("a", top_p=7.0), bitnet.InvalidArgument, "top_p"),
    (lambda m: m.generate("a", seed=-1), OverflowError, "seed"),
    (lambda m: m.generate("a", stop=[3]), TypeError, "stop is a str"),
    (lambda m: m.generate("a", stop_tokens="a"), TypeError, "list of ids"),
    (lambda m: m.generate("a", grammar=3), TypeError, "grammar is a str, not int"),
    (lambda m: m.generate("a", grammar=""), bitnet.InvalidArgument, "there is no rule 'root'"),
    (lambda m: m.generate("a", grammar="root ::= \"\ud800\""), ValueError, "surrogate"),
    (lambda m: m.stream("a", grammar="root ::= [b-a]"), bitnet.InvalidArgument, "line 1, column 11: the range"),
    (lambda m: m.generate("a", grammar="root ::= " + "(" * 200), bitnet.Unsupported, "100 deep"),
    (lambda m: m.generate("a", json_schema={"not": {}}), bitnet.Unsupported, "#/not: not is not supported"),
    (lambda m: m.generate("a", json_schema="{"), bitnet.InvalidArgument, "is no JSON at line 1"),
    (lambda m: m.generate("a", json_schema={}, grammar='root ::= "a"'), bitnet.InvalidArgument, "give one of them"),
    (lambda m: bitnet.check_json_schema({"type": "text"}), bitnet.InvalidArgument, "#/type"),
    (lambda m: bitnet.check_grammar("root ::= root"), bitnet.InvalidArgument, "has no end"),
    (lambda m: m.generate("a", logit_bias=3), TypeError, "logit_bias"),
    (lambda m: m.generate("a", logit_bias={"a": 1}), TypeError, "logit_bias"),
    (lambda m: m.generate("a", logit_bias={10**6: 1.0}), bitnet.InvalidArgument, "."),
    (lambda m: m.session().truncate(7), bitnet.InvalidArgument, "7"),
    (lambda m: m.session().truncate(-1), ValueError, "how many"),
    (lambda m: m.session().eval([10**6]), bitnet.InvalidArgument, "1000000"),
    (lambda m: m.session().set_preference("no-such"), bitnet.Unavailable, "no-such"),
    (lambda m: bitnet.Engine().reload("no-such"), bitnet.Error, "no-such"),
    (lambda m: bitnet.Engine().reload("cpu", policy="never"), ValueError, "finish, migrate, recompute"),
    (lambda m: __import__("copy").copy(m), TypeError, "copied"),
    (lambda m: __import__("pickle").dumps(m), TypeError, "pickled"),
])
def test_misuse_raises_its_error(model, call, kind, words):
    with pytest.raises(kind, match=words):
        call(model)


def test_a_session_works_after_a_failed_call(model):
    with model.session() as session:
        for how in ({"top_p": 7.0}, {"stop": 3}, {"no_such": 1}):
            with pytest.raises((TypeError, bitnet.Error)):
                session.generate("a", **how)
        assert session.generate("Once", max_tokens=2, ignore_eos=True).stop_reason == "length"


def test_opening_reports_progress_and_stops_on_an_exception(engine):
    shares = []
    with engine.open_model(MODEL, progress=lambda done, total: shares.append(done / total)):
        assert shares[-1] == 1.0

    def fails(done, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        engine.open_model(MODEL, progress=fails)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_reported(engine, tmp_path):
    (tmp_path / "locked.gguf").write_bytes(b"GGUF")
    (tmp_path / "locked.gguf").chmod(0)
    with pytest.raises(bitnet.Error, match="[Pp]ermission"):
        engine.open_model(tmp_path / "locked.gguf")


def test_a_missing_library_is_reported(tmp_path):
    """What an import says where nothing brings libbitnet."""
    package = pathlib.Path(bitnet.__file__).parent
    shutil.copytree(package, tmp_path / "bitnet", ignore=shutil.ignore_patterns("lib", "share", "__pycache__"))
    for header in ("bitnet.h", "abi/base.h", "abi/host.h"):
        (tmp_path / "bitnet/native/include/bitnet" / header).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / "abi/include/bitnet" / header, tmp_path / "bitnet/native/include/bitnet" / header)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import bitnet"
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False,
                          env={name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"})
    assert done.returncode == 1 or "libbitnet" in subprocess.check_output(["/sbin/ldconfig", "-p"], text=True)
    assert done.returncode == 0 or "ImportError: libbitnet.so.0 cannot be loaded" in done.stderr
