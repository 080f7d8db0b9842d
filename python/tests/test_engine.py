import logging
import threading

import pytest

import bitnet
from conftest import MODEL, PROMPT


def test_the_selected_backend_is_reported(engine, model):
    assert "selected=" in engine.selection_line and "selected=none" not in engine.selection_line
    engine.probe()
    engine.wait_probes()
    by_name = {one.name: one for one in engine.backends()}
    assert by_name["cpu"].code == "BN-OK" and by_name["cpu"].report["devices"]
    assert engine.report()["selected"] in by_name


def test_the_backend_of_this_installation():
    with bitnet.Engine("cpu") as engine:
        engine.select()
        assert engine.selection_line == "requested=cpu detected=[cpu] selected=cpu"


def test_a_session_says_what_ran(session):
    session.generate(PROMPT, max_tokens=3)
    assert session.report()["kernels"] and session.report()["backend"]
    session.set_preference("cpu")
    assert session.report()["backend"] == "cpu"


def test_reload_while_a_session_generates(endless):
    with bitnet.Engine("cpu") as engine, engine.open_model(MODEL) as model, model.session() as session:
        with session.stream(PROMPT, **endless) as stream:
            next(stream)
            assert engine.reload("cpu")["changed"] is False
            report = engine.reload("cpu", force=True, policy="migrate")
            assert report["changed"] is True and report["backend"] == "cpu"
        with pytest.raises(bitnet.Error, match="rows"):  # nothing generates
            engine.reload("cpu", force=True, canary_rows=3, canary_wait_ms=1)
        session.truncate(0)
        again = session.generate(PROMPT, max_tokens=3, temperature=0)
        assert again.text == ", there was"


def test_messages_go_to_the_callback_or_the_logger(caplog):
    lines = []
    with bitnet.Engine("cpu", log=lambda level, text: lines.append((level, text)), log_level=logging.DEBUG) as one:
        one.select()
    assert lines and all(level in (10, 20, 30, 40) and text for level, text in lines)
    with caplog.at_level(logging.DEBUG, "bitnet"), bitnet.Engine("cpu", log_level=logging.DEBUG) as one:
        one.select()
    assert any(record.name == "bitnet" for record in caplog.records)


def test_a_log_callback_may_raise_call_or_close(model, caplog):
    """It raises, calls the library, and lets go of what only the library can close."""
    sessions = [model.session()]
    rejected = []

    def log(level, text):
        if sessions:
            sessions.pop().close()
        try:
            model.tokenize("a")
        except bitnet.InvalidArgument as why:
            rejected.append(str(why))
        raise KeyError("mine")

    with bitnet.Engine("cpu", log=log, log_level=logging.DEBUG) as one:
        one.select()
        assert any("log callback" in text for text in rejected)
        assert "the log callback of an Engine failed" in caplog.text
        assert one.open_model(MODEL).generate(PROMPT, max_tokens=2, temperature=0).text == ", there"


def test_log_from_several_threads():
    lines = []
    with bitnet.Engine("cpu", log=lambda level, text: lines.append(threading.get_ident()), log_level=10) as engine:
        with engine.open_model(MODEL) as model:
            threads = [threading.Thread(target=lambda: model.generate(PROMPT, max_tokens=3)) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
    assert lines
