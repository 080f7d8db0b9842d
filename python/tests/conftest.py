import math
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


FLOAT_ROUNDING = 2**-24 * (1 + 2**-8)  # unit roundoff of float, with terms of its square and roundings in double


def logprob_tolerance(exact, n):
    """How far a log probability may be from `exact`, which a test computes in double from the same `n` logits: the
    float is rounded once. On both sides a sum of n terms is off by n * 2^-53 of itself, which is an absolute error of
    its logarithm. The 64 stands for the error of exp, the logarithm and the subtractions."""
    return FLOAT_ROUNDING * abs(exact) + 2 * (n + 64) * 2**-53


def mean_logprob_tolerance(found):
    """How far the mean of log probabilities may be from `found`, which a test computes from floats; the library sums
    doubles. The floats are rounded once, and so is the result. All terms have the same sign, so that the mean of their
    errors is at most one roundoff of the mean."""
    return 2 * FLOAT_ROUNDING * abs(found)


def probabilities_tolerance(n):
    """How far the sum of `n` probabilities may exceed 1, if each is exp() of a float p: a roundoff u of p changes it by
    u * |p| * exp(p), which is largest for p = -1."""
    return n * FLOAT_ROUNDING / math.e


def environment():
    """For a Python that is started: this one's bitnet."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def pytest_runtest_logreport(report):
    """In the words that scripts/skips reads."""
    if report.skipped and isinstance(report.longrepr, tuple):
        print(f"\nskip: {report.longrepr[2].removeprefix('Skipped: ')}")
