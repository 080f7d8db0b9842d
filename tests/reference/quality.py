#!/usr/bin/env python3
"""The measures of `bitnet eval`, by their definitions, in NumPy float64 from logits.

Written from the definitions alone: it shares no code with the program. Rows are logits [positions, vocabulary];
targets are the tokens that follow each of them.
"""

import numpy as np

Z95 = 1.959963984540054


def log_softmax(rows):
    rows = np.asarray(rows, np.float64)
    top = rows.max(axis=1, keepdims=True)
    return rows - top - np.log(np.exp(rows - top).sum(axis=1, keepdims=True))


def chunks(ids, n_ctx, bos=None, most=None):
    """llama-perplexity's: whole chunks, begin-of-sequence in place of the first token of each."""
    n = len(ids) // n_ctx
    out = [list(ids[i * n_ctx:(i + 1) * n_ctx]) for i in range(n if most is None else min(n, most))]
    if bos is not None:
        for chunk in out:
            chunk[0] = bos
    return out


def scored(n_ctx):
    """Places of the rows that count in a chunk, and of the tokens that they score."""
    rows = np.arange(n_ctx // 2, n_ctx - 1)
    return rows, rows + 1


def mean_and_error(values):
    values = np.asarray(values, np.float64)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


def perplexity(nll):
    mean, error = mean_and_error(nll)
    return np.exp(mean), np.exp(mean) * error


def bits_per_byte(nll, sizes):
    """A ratio of sums; its error is that of the residuals (Cochran, Sampling Techniques, 2.11)."""
    nll, sizes = np.asarray(nll, np.float64), np.asarray(sizes, np.float64)
    ratio = nll.sum() / sizes.sum()
    rest = nll - ratio * sizes
    error = np.sqrt((rest**2).sum() / (len(nll) - 1) / len(nll)) / sizes.mean()
    return ratio / np.log(2), error / np.log(2)


def nll_of(rows, targets):
    return -log_softmax(rows)[np.arange(len(targets)), targets]


def divergence(base, own, targets):
    """Of each position: KL(base || own), the change of the target's probability, whether the best are the same."""
    p, q = log_softmax(base), log_softmax(own)
    at = np.arange(len(targets)), targets
    return ((np.exp(p) * (p - q)).sum(axis=1), np.exp(q[at]) - np.exp(p[at]),
            np.argmax(base, axis=1) == np.argmax(own, axis=1))


def quantile(values, percent):
    return np.quantile(values, percent / 100, method="inverted_cdf")


def wilson(n, of):
    """The roots of (p - n/of)^2 = z^2 p (1 - p) / of."""
    share = n / of
    return tuple(np.sort(np.roots([1 + Z95**2 / of, -2 * share - Z95**2 / of, share**2])))


def logits_file(path):
    """Name, chunks and rows [chunks, rows, vocabulary] of a file of --save-logits; its checksums are not looked at."""
    data = path.read_bytes()
    assert data[:8] == b"BNLOGITS", data[:8]
    version, n_vocab, n_ctx, n_chunks, n_name, reserved = np.frombuffer(data, "<u4", 6, 8)
    assert (version, reserved) == (1, 0)
    at = 32 + int(n_name)
    tokens = np.frombuffer(data, "<i4", n_chunks * n_ctx, at).reshape(n_chunks, n_ctx)
    at += 4 * tokens.size + 8
    n_rows = len(scored(int(n_ctx))[0])
    rows = np.empty((n_chunks, n_rows, n_vocab), np.float32)
    for i in range(n_chunks):
        rows[i] = np.frombuffer(data, "<f4", n_rows * int(n_vocab), at).reshape(n_rows, n_vocab)
        at += 4 * n_rows * int(n_vocab) + 8
    assert at == len(data)
    return data[32:32 + int(n_name)].decode(), tokens, rows
