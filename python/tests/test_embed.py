import threading

import numpy as np
import pytest

import bitnet
from conftest import FLOAT_ROUNDING, MODEL, PROMPT


def test_a_text_is_a_vector_and_several_are_rows(model):
    width = model.info.n_embedding
    one = model.embed(PROMPT)
    assert one.shape == (width,) and one.dtype == np.float32
    rows = model.embed([PROMPT, "a fox"])
    assert rows.shape == (2, width) and (rows[0] == one).all() and (rows[1] != one).any()
    assert model.embed([]).shape == (0, width)
    # Each element is rounded once to float, by at most its roundoff; so is the length.
    assert np.linalg.norm(rows.astype(float), axis=1) == pytest.approx(1, rel=0, abs=FLOAT_ROUNDING)


@pytest.mark.parametrize("pooling", ["mean", "last", "cls"])
def test_depends_on_the_text_alone(model, pooling):
    text = PROMPT * 40
    rows = [model.embed(text, pooling=pooling, n_batch=size) for size in (1, 7, 512)]
    rows.append(model.embed(["a fox", text], pooling=pooling)[1])
    assert all((row == rows[0]).all() for row in rows)
    assert (rows[0] == model.embed(text)).all() == (pooling == "last"), "the demo model says nothing of it"


def test_a_session_of_embeddings(model):
    ids = model.tokenize(PROMPT, eos=True)
    assert ids == model.tokenize(PROMPT), "the demo model does not ask for an end"
    with model.session(embeddings=True, pooling="mean", n_context=64) as session:
        row = session.embed(ids)
        assert (row == model.embed(PROMPT, pooling="mean")).all()
        assert len(session) == 0 and session.tokens == [] and session.report()["pooling"] == "mean"
        with pytest.raises(bitnet.InvalidArgument, match="no tokens"):
            session.embed([])
        with pytest.raises(bitnet.ContextFull, match="65 tokens"):
            session.embed([5] * 65)
        with pytest.raises(bitnet.InvalidArgument, match="no logits"):
            session.eval(ids)
        with pytest.raises(bitnet.InvalidArgument, match="no logits"):
            session.generate(PROMPT)
        with pytest.raises(TypeError):
            session.embed(PROMPT)
        assert (session.embed(ids) == row).all()


def test_wrong_calls_are_rejected(model, session):
    with pytest.raises(bitnet.InvalidArgument, match="not opened for embeddings"):
        session.embed([5])
    with pytest.raises(ValueError, match="pooling is one of model, mean, cls, last, not 'max'"):
        model.embed(PROMPT, pooling="max")
    with pytest.raises(TypeError, match="a text"):
        model.embed([PROMPT, 5])
    with pytest.raises(TypeError):
        model.embed(5)
    with pytest.raises(bitnet.ContextFull):
        model.embed([PROMPT, PROMPT * 40], n_context=16)
    with bitnet.Model(MODEL, vocabulary_only=True) as words:
        with pytest.raises(bitnet.InvalidArgument, match="vocabulary_only"):
            words.embed(PROMPT)


def test_a_cancelled_embedding_raises(model):
    with model.session(embeddings=True, pooling="mean", n_context=16384, n_batch=1) as session:
        threading.Timer(0.1, session.cancel).start()
        with pytest.raises(bitnet.Cancelled):
            session.embed([5] * 16384)
        assert len(session) == 0 and session.embed([5]).any()
