"""Objects go in any order, at any time, also with the process."""

import gc
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import bitnet
from bitnet import _handles
from conftest import MODEL, PROMPT, environment


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("how", ["close", "forget"])
def test_objects_can_be_closed_in_any_order(order, how):
    things = [bitnet.Engine("cpu")]
    things.append(things[0].open_model(MODEL))
    things.append(things[1].session())
    things[2].generate(PROMPT, max_tokens=2)
    for i in order:
        if how == "close":
            things[i].close()
            things[i].close()
        else:
            things[i] = None
            gc.collect()


def test_a_session_outlives_its_closed_engine_and_model():
    engine = bitnet.Engine("cpu")
    model = engine.open_model(MODEL)
    session = model.session()
    engine.close()
    model.close()
    assert session.generate(PROMPT, max_tokens=2, temperature=0).text == ", there"
    session.close()


@pytest.mark.parametrize("use", [
    lambda e, m, s: e.selection_line, lambda e, m, s: e.open_model(MODEL), lambda e, m, s: e.backends(),
    lambda e, m, s: m.session(), lambda e, m, s: m.tokenize("a"), lambda e, m, s: m.generate("a"),
    lambda e, m, s: m.stream("a"), lambda e, m, s: s.generate("a"), lambda e, m, s: s.eval([1]),
    lambda e, m, s: s.truncate(0), lambda e, m, s: s.report(), lambda e, m, s: next(s.stream("a"))])
def test_calls_of_closed_objects_raise(use):
    with bitnet.Engine("cpu") as engine, engine.open_model(MODEL) as model, model.session() as session:
        pass
    assert engine.closed and model.closed and session.closed
    assert "closed" in repr(engine) + repr(model) + repr(session)
    with pytest.raises(bitnet.Closed, match="closed"):
        use(engine, model, session)
    session.cancel()


def test_closing_a_session_ends_its_stream(endless):
    model = bitnet.Model(MODEL)
    session = model.session()
    stream = session.stream(PROMPT, **endless)
    next(stream)
    session.close()
    model.close()
    assert stream.finish().stop_reason in ("cancelled", "context")


def test_closing_from_many_threads(model, endless):
    for _ in range(20):
        session = model.session()
        threads = [threading.Thread(target=session.close) for _ in range(3)]
        stream = session.stream(PROMPT, **endless)
        for one in threads:
            one.start()
        stream.finish()
        for one in threads:
            one.join()


def test_objects_released_in_a_callback_are_closed_later():
    """The library holds locks there."""
    closed = []
    parent = _handles.Handle("Engine", "engine", closed.append)
    parent.hold()
    child = _handles.Handle("Model", "model", closed.append, parent)
    with _handles.callback():
        parent.close()
        child.close()
        assert closed == [] and child.closed
    with _handles.Handle("Engine", "other", closed.append).used():
        assert closed == ["model", "engine"]


def test_repeated_use_leaks_no_memory(engine):
    def memory():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def round_trip():
        model = engine.open_model(MODEL)
        for _ in range(10):
            model.generate(PROMPT, max_tokens=2)

    for _ in range(3):
        round_trip()
    before = memory()
    for _ in range(20):
        round_trip()
    assert memory() - before < 20_000_000  # a model of 1.5 MB and 10 sessions each


def python(code, **how):
    return subprocess.run([sys.executable, "-X", "faulthandler", "-c", code, str(MODEL)], capture_output=True,
                          text=True, env=environment(), timeout=300, check=False, **how)


BEGIN = "import sys, bitnet; model = bitnet.Model(sys.argv[1])\n"


@pytest.mark.parametrize("code, words", [
    ("s = model.session(); print('end')", "end"),
    ("stream = model.stream('Once', ignore_eos=True); next(stream); print('end')", "end"),
    ("import threading; s = model.session()\n"
     "threading.Thread(target=lambda: s.generate('Once', ignore_eos=True), daemon=True).start()\n"
     "print('end')", "end"),
    ("import asyncio; engine = bitnet.AsyncEngine(model); request = engine.generate('Once', ignore_eos=True)\n"
     "async def first(): return await request.__anext__()\n"
     "asyncio.run(first()); print('end')", "end"),
    ("import atexit; atexit.register(lambda: print('end', model.closed))", "end False"),
    ("del bitnet; model.__class__ = model.__class__; print('end')", "end"),
])
def test_the_process_exits_cleanly_with_open_objects(code, words):
    done = python(BEGIN + code)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, words, "")


def test_objects_are_closed_in_a_forked_child():
    done = python(BEGIN + """
import os
import asyncio
session, engine = model.session(), bitnet.AsyncEngine(model)
child = os.fork()
if child == 0:
    for use in (lambda: model.tokenize('a'), lambda: session.generate('a'), model.session, engine.report,
                lambda: asyncio.run(engine.complete('a'))):
        try:
            use()
        except bitnet.Closed as why:
            assert 'forked' in str(why)
        else:
            os._exit(3)
    session.close()
    engine.close()
    del session, model, engine
    with bitnet.Model(sys.argv[1]) as other:
        assert other.generate('Once upon a time', max_tokens=2, temperature=0).text == ', there'
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(session.generate('Once upon a time', max_tokens=2, temperature=0))
print(asyncio.run(engine.complete('Once upon a time', max_tokens=2, temperature=0)))
""")
    assert (done.returncode, done.stdout.strip()) == (0, ", there\n, there"), done.stderr


def cpu_seconds(pid):
    """The processor time of all threads, from the 14th and the 15th field of /proc/PID/stat."""
    after_name = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("call", [
    "session.generate(ids, ignore_eos=True)",
    "[piece for piece in session.stream(ids, ignore_eos=True)]",
    "[session.truncate(0) or session.eval(ids) for _ in range(10**6)]",
    "__import__('asyncio').run(session.agenerate(ids, ignore_eos=True))",
    "__import__('asyncio').run(bitnet.AsyncEngine(model, n_context=16384).complete(ids, ignore_eos=True))",
])
def test_an_interrupt_ends_the_call(call):
    # A background job of a shell ignores interrupts, and so do its children.
    code = BEGIN + f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
session = model.session(n_context=16384)
ids = model.tokenize('Once upon a time') * 100
print('ready', flush=True)
try:
    {call}
except KeyboardInterrupt:
    print('interrupted', len(session) < session.capacity, flush=True)
session.truncate(0)
print(session.generate('Once upon a time', max_tokens=2, temperature=0))
"""
    with subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", code, str(MODEL)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            begin, end = cpu_seconds(process.pid), time.monotonic() + 300
            while cpu_seconds(process.pid) < begin + 0.2:  # the call computes
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()  # otherwise the exit would wait for a running call
    assert (process.returncode, out) == (0, "interrupted True\n, there\n"), err


def test_interrupts_at_any_instruction():
    """Whatever an interrupt met, the session can be used, and nothing is left that holds it."""
    done = python(BEGIN + """
import random, signal, time
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
random.seed(1)
session = model.session()
ids = model.tokenize('Once upon a time')
met = 0
while met < 60:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.01))
        session.truncate(0)
        session.eval(ids)
        for piece in session.stream(ids, max_tokens=5):
            pass
        session.generate(ids, max_tokens=5)
        model.generate(ids, max_tokens=2)
        bitnet.Model(sys.argv[1], device='cpu').close()
    except KeyboardInterrupt:
        met += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    while True:
        try:
            session.truncate(0)
            break
        except bitnet.Busy:  # Python ignores what comes in a __del__: such a stream goes on to its end
            time.sleep(0.01)
    assert session.generate('Once upon a time', max_tokens=2, temperature=0).text == ', there'
print('end')
""")
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


@pytest.mark.parametrize("call", [
    pytest.param(lambda m: m.generate(PROMPT, max_tokens=2), id="generate"),
    pytest.param(lambda m: list(m.stream(PROMPT, max_tokens=2)), id="stream"),
])
def test_a_failed_thread_start_is_reported(model, call, monkeypatch):
    """The call fails in a sentence, nothing stays half done, and the next one works."""
    def reject(*_):
        raise RuntimeError("can't start new thread")

    running = len(_handles._running)
    with monkeypatch.context() as patched:
        patched.setattr(_handles._thread, "start_new_thread", reject)
        with pytest.raises(bitnet.errors.OutOfMemory, match="no further thread"):
            call(model)
    assert len(_handles._running) == running
    assert model.generate(PROMPT, max_tokens=2).text
