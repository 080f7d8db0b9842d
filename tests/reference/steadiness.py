"""What float32 alone may change: the same forward pass with every stored value slightly disturbed.

Activation quantisation rounds. Where a value lies within float32 error of a rounding tie, two
right engines fall to different sides; one such step moves the logits of a small ternary model by
about 1e-2, a KL divergence of 1e-4 to 1e-3, a hundred million times more than float32 error moves
them elsewhere (1e-12). A question of that kind has no single right answer in float32, so the
judge has to know which questions they are: it asks itself first, several times, disturbed.
"""

import numpy as np

import reference

TRIALS = 8
# Twice the distance of neighbouring float32 numbers: more than a careful engine loses in one step.
RELATIVE = 2.0**-22
# A hundredth of the bound that is judged (1e-5), and far above what undisturbed rounding shows (1e-10).
STEADY = 1e-7


class Disturbed(reference.Model):
    def stored(self, x):
        noise = 1 + RELATIVE * self.rng.standard_normal(x.shape)
        return (x * noise).astype(np.float32).astype(float)


def log_softmax(x):
    x = x.astype(float)
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def divergence(wanted, got):
    """KL(wanted || got) per position, in nats."""
    p, q = log_softmax(wanted), log_softmax(got)
    return np.maximum((np.exp(p) * (p - q)).sum(axis=-1), 0)  # rounding may leave -1e-17


def measure(path, ids, wanted, trials=TRIALS, **options):
    """Per position, the largest KL divergence and logit shift over the trials: two arrays [n]."""
    model = Disturbed(path, **options)
    kl, shift = np.zeros(len(ids)), np.zeros(len(ids))
    for trial in range(trials):
        model.rng = np.random.Generator(np.random.PCG64(trial))
        got = model.logits(ids)
        kl = np.maximum(kl, divergence(wanted, got))
        shift = np.maximum(shift, np.abs(got - wanted).max(axis=-1))
    return kl, shift


def is_steady(path, ids, trials=TRIALS, **options):
    """No trial changes any position: the ids ask nothing that float32 could answer in two ways."""
    wanted = reference.Model(path, **options).logits(ids)
    model = Disturbed(path, **options)
    for trial in range(trials):
        model.rng = np.random.Generator(np.random.PCG64(trial))
        if divergence(wanted, model.logits(ids)).max() > STEADY:
            return False
    return True
