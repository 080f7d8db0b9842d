"""The sampler's stages in NumPy, each as its paper or its author defines it; no code of the core.

A distribution is arrays of ids, logits (float64) and probabilities. Where a number comes so near to the bound that
decides about a candidate that rounding may decide, `Doubt` is raised and the case judges nothing.
"""

from __future__ import annotations

import fractions
import math

import numpy as np

# The defaults of llama.cpp, as `llama-server --help` has them.
DEFAULTS = dict(
    seed=0, temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, repeat_last_n=64, repeat_penalty=1.0, presence_penalty=0.0,
    frequency_penalty=0.0, top_n_sigma=-1.0, typical_p=1.0, xtc_probability=0.0, xtc_threshold=0.1, dynatemp_range=0.0,
    dynatemp_exponent=1.0, mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1, dry_multiplier=0.0, dry_base=1.75,
    dry_allowed_length=2, dry_penalty_last_n=64)
NEAR = 1e-10


class Doubt(Exception):
    """Rounding may decide."""


def apart(values, bound, scale=0.0):
    """Raises where a value is within rounding of the bound, unless it is the bound for a reason: they are equal.
    `scale`: of what both were computed from, where that is more than the bound."""
    off = np.abs(np.asarray(values, dtype=np.float64) - bound)
    if np.any((off < NEAR * max(scale, abs(bound))) & (off > 0)):
        raise Doubt


class Xoshiro:
    """xoshiro256**, seeded by splitmix64 (Blackman and Vigna)."""

    MASK = 2**64 - 1

    def __init__(self, seed):
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & self.MASK
            z = seed
            z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & self.MASK
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) & self.MASK
            self.state.append(z ^ z >> 31)

    def unit(self):
        s = self.state
        turn = lambda x, k: ((x << k) | (x >> (64 - k))) & self.MASK  # noqa: E731
        out = (turn(s[1] * 5 & self.MASK, 7) * 9) & self.MASK
        shifted = s[1] << 17 & self.MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = turn(s[3], 45)
        return (out >> 11) * 2.0**-53


def softmax(logits, temperature=1.0):
    """What is e^700 times less likely than the best counts as impossible."""
    exponents = (logits - logits.max()) / temperature
    apart(exponents, -700.0)
    weights = np.where(exponents > -700, np.exp(exponents), 0.0)
    return weights / weights.sum()


def ranked(ids, logits):
    """Indices: the higher logit first, of equals the lower id."""
    return np.lexsort((ids, -logits))


# ---- what changes logits ----

def penalised(p, logits, history):
    out = logits.astype(np.float32).copy()
    n = p["repeat_last_n"]
    seen = history if n < 0 else history[len(history) - min(n, len(history)):]
    one = np.float32
    for token in set(seen):
        l = out[token]
        l = l / one(p["repeat_penalty"]) if l > 0 else l * one(p["repeat_penalty"])
        out[token] = l - (one(seen.count(token)) * one(p["frequency_penalty"]) + one(p["presence_penalty"]))
    return out


def behind_last_breaker(window, breakers):
    """Tokens behind the breaker that begins last; the longest of those that begin there."""
    for at in range(len(window) - 1, -1, -1):
        ends = [at + 1 + len(tail) for head, tail in breakers
                if window[at] == head and window[at + 1:at + 1 + len(tail)] == list(tail)]
        if ends:
            return len(window) - max(ends)
    return len(window)


def dry(p, logits, history, breakers):
    """By the definition: for each earlier place, how long the text before it and the text's end are the same."""
    out = logits.copy()
    n = p["dry_penalty_last_n"]
    if p["dry_multiplier"] == 0 or n == 0:
        return out
    window = list(history if n < 0 else history[len(history) - min(n, len(history)):])
    most = behind_last_breaker(window, breakers)
    longest = {}
    for at in range(1, len(window)):
        same = 0
        while same < at and window[at - 1 - same] == window[-1 - same]:
            same += 1
        longest[window[at]] = max(longest.get(window[at], 0), min(same, most))
    for token, length in longest.items():
        if length < p["dry_allowed_length"] or (token, ()) in {(h, tuple(t)) for h, t in breakers}:
            continue
        exact = fractions.Fraction(float(np.float32(p["dry_multiplier"]))) * fractions.Fraction(
            float(np.float32(p["dry_base"]))) ** (length - p["dry_allowed_length"])
        out[token] -= np.float32(min(exact, fractions.Fraction(10**30)))
    return out


# ---- what leaves candidates out: each takes and gives (ids, logits) ----

def top_n_sigma(p, ids, logits):
    n = np.float32(p["top_n_sigma"])
    if n <= 0:
        return ids, logits
    bound = logits.max() - float(n) * np.std(logits)
    apart(logits, bound, 1.0)
    return ids[logits >= bound], logits[logits >= bound]


def top_k(p, ids, logits):
    order = ranked(ids, logits)[:p["top_k"] or None]
    return ids[order], logits[order]


def typical(p, ids, logits):
    share = float(np.float32(p["typical_p"]))
    if share >= 1:
        return ids, logits
    probabilities = softmax(logits)
    live = probabilities > 0
    ids, logits, probabilities = ids[live], logits[live], probabilities[live]
    information = -np.log(probabilities)
    off = np.abs(information - (probabilities * information).sum())
    order = sorted(range(len(ids)), key=lambda i: (off[i], -logits[i], ids[i]))
    for a, b in zip(order, order[1:]):
        if logits[a] != logits[b]:
            apart([off[a]], off[b], 1.0)
            if off[a] == off[b]:
                raise Doubt
    total, kept = 0.0, []
    for i in order:
        kept.append(i)
        total += probabilities[i]
        apart([total], share)
        if total > share:
            break
    return ids[kept], logits[kept]


def top_p(p, ids, logits):
    share = float(np.float32(p["top_p"]))
    if share >= 1:
        return ids, logits
    order = ranked(ids, logits)
    ids, logits = ids[order], logits[order]
    sums = np.cumsum(softmax(logits))
    apart(sums, share)
    n = int(np.searchsorted(sums, share)) + 1
    return ids[:n], logits[:n]


def min_p(p, ids, logits):
    probabilities = softmax(logits)
    bound = float(np.float32(p["min_p"])) * probabilities.max()
    apart(probabilities, bound)
    live = (probabilities >= bound) & (probabilities > 0)
    return ids[live], logits[live]


def xtc(p, ids, logits, random):
    threshold = float(np.float32(p["xtc_threshold"]))
    if p["xtc_probability"] == 0 or threshold > 0.5:
        return ids, logits
    if random.unit() >= float(np.float32(p["xtc_probability"])):
        return ids, logits
    order = ranked(ids, logits)
    ids, logits = ids[order], logits[order]
    probabilities = softmax(logits)
    apart(probabilities, threshold)
    n = int((probabilities >= threshold).sum())
    return (ids[n - 1:], logits[n - 1:]) if n > 1 else (ids, logits)


def temperature(p, logits):
    """The dynamic one of llama.cpp: by the entropy, as a part of the largest that so many candidates can have."""
    base, around = float(np.float32(p["temperature"])), float(np.float32(p["dynatemp_range"]))
    if around == 0 or len(logits) < 2:
        return base
    probabilities = softmax(logits)
    live = probabilities[probabilities > 0]
    share = min(max(float(-(live * np.log(live)).sum()) / math.log(len(logits)), 0.0), 1.0)
    low, high = max(0.0, base - around), base + around
    return low + (high - low) * share ** float(np.float32(p["dynatemp_exponent"]))


class Mirostat:
    def __init__(self, p, n_vocab):
        self.p, self.n_vocab, self.mu = p, n_vocab, 2 * float(np.float32(p["mirostat_tau"]))

    def keep(self, ids, logits):
        at = float(np.float32(self.p["temperature"]))
        order = ranked(ids, logits)
        ids, logits = ids[order], logits[order]
        live = softmax(logits, at) > 0
        ids, logits = ids[live], logits[live]
        probabilities = softmax(logits, at)
        n = self._zipf(probabilities) if self.p["mirostat"] == 1 else self._surprise(probabilities)
        return ids[:n], logits[:n]

    def _surprise(self, probabilities):
        surprise = -np.log2(probabilities)
        apart(surprise, self.mu, 1.0)
        return max(int((surprise <= self.mu).sum()), 1)

    def _zipf(self, probabilities):
        """Algorithm 1 of the paper, with m = 100."""
        m = min(100, len(probabilities))
        if m < 2:
            return 1
        ranks = np.arange(1, m)
        t = np.log((ranks + 1) / ranks)
        b = np.log(probabilities[:m - 1] / probabilities[1:m])
        s = (t * b).sum() / (t * t).sum()
        if s < NEAR or abs(s - 1) < 1e-6:
            raise Doubt
        e = s - 1
        ln_k = (math.log(e / (1 - self.n_vocab ** -e)) + self.mu * math.log(2)) / s
        if ln_k >= math.log(len(probabilities)):
            apart([ln_k], math.log(len(probabilities)))
            return len(probabilities)
        k = math.exp(ln_k)
        apart([k], round(k))
        return min(max(int(k), 1), len(probabilities))

    def learn(self, probability):
        self.mu -= float(np.float32(self.p["mirostat_eta"])) * (
            -math.log2(probability) - float(np.float32(self.p["mirostat_tau"])))


class Judge:
    """One text: distribution() says what a row leaves to be drawn from, accept() what was drawn."""

    def __init__(self, parameters, n_vocab, history=(), biases=(), breakers=()):
        self.p = {**DEFAULTS, **parameters}
        self.history, self.biases, self.breakers = list(history), biases, breakers
        self.random = Xoshiro(self.p["seed"])
        self.mirostat = Mirostat(self.p, n_vocab)

    def distribution(self, row):
        """{id: probability}; of temperature 0 the one that is taken."""
        logits = np.array([-np.inf if l is None else l for l in row], dtype=np.float32)
        for token, bias in self.biases:
            logits[token] += np.float32(bias)
        logits = dry(self.p, penalised(self.p, logits, self.history), self.history, self.breakers)
        ids = np.flatnonzero(logits > -np.inf)
        logits = logits[ids].astype(np.float64)
        if self.p["temperature"] <= 0:
            return {int(ids[ranked(ids, logits)[0]]): 1.0}
        if self.p["mirostat"]:
            ids, logits = self.mirostat.keep(ids, logits)
            at = float(np.float32(self.p["temperature"]))
        else:
            ids, logits = top_n_sigma(self.p, ids, logits)
            ids, logits = top_k(self.p, ids, logits)
            for stage in (typical, top_p, min_p):
                ids, logits = stage(self.p, ids, logits)
            ids, logits = xtc(self.p, ids, logits, self.random)
            at = temperature(self.p, logits)
        if at == 0:
            return {int(ids[ranked(ids, logits)[0]]): 1.0}
        return {int(i): float(x) for i, x in zip(ids, softmax(logits, at)) if x > 0}

    def accept(self, token, probability):
        self.history.append(token)
        if self.p["mirostat"]:
            self.mirostat.learn(probability)
