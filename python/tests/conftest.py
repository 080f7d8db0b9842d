import os
import pathlib
import sys

import pytest

import bitnet

# Software drivers, which other tests may need on this machine, take a minute to report their abilities.
os.environ["BITNET_BACKENDS"] = "cpu"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's threads in processes that tests start: they spin
TREE = pathlib.Path(__file__).resolve().parents[2]
MODEL = next(TREE.glob("models/*.gguf"))
PROMPT = "Once upon a time"
# The begin of the README's text that the tests generate.
STORY = ", there was a small rabbit named Ella. Ella lived in a green park."


@pytest.fixture(scope="session")
def engine():
    with bitnet.Engine() as one:
        yield one


@pytest.fixture(scope="session")
def model(engine):
    with engine.open_model(MODEL) as one:
        yield one


@pytest.fixture
def session(model):
    with model.session() as one:
        yield one


@pytest.fixture
def large(model):
    """A session whose context takes seconds to fill."""
    with model.session(n_context=16384) as one:
        yield one


@pytest.fixture
def endless(model):
    """Arguments of a generation that goes on until the context is full."""
    return {"temperature": 1.0, "seed": 1, "ignore_eos": True}


def environment():
    """For a Python that is started: this one's bitnet."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def pytest_runtest_logreport(report):
    """In the words that scripts/skips reads."""
    if report.skipped and isinstance(report.longrepr, tuple):
        print(f"\nskip: {report.longrepr[2].removeprefix('Skipped: ')}")
