"""What float32 alone may change: which questions have one right answer, and how far off others may be.

Activation quantisation rounds. Where a value lies within float32 error of a rounding tie, two
right engines fall to different sides; one such step moves the logits of a small ternary model by
about 1e-1, a KL divergence of 1e-4 to 1e-3, where float32 error elsewhere makes 1e-11. A question
of that kind has no single right answer in float32. So ids for the strict comparison are chosen
such that no activation comes near a tie (TieCounter); and where the ids cannot be chosen, the
reference is run several times with every stored value disturbed and every near tie decided by
chance, to see what that does to each position (measure).
"""

import argparse

import numpy as np

import reference

TRIALS = 8
# One unit in the last place of float32: more than a careful engine loses in one step.
RELATIVE = 2.0**-23
# The bound that is judged is 1e-5; float32 error without a changed rounding shows about 1e-10.
STEADY = 1e-7


def near_tie(x):
    """Scaled activations (-127..127) that float32 error may round to the other side.

    Keeping every intermediate value of the small models in float32 moves them by 4e-6 (root mean
    square), at most 1e-4, the larger the value the more.
    """
    return np.abs(x - np.floor(x) - 0.5) < 2.0**-19 * np.abs(x) + 4e-5


class Disturbed(reference.Model):
    def stored(self, x):
        noise = 1 + RELATIVE * self.rng.standard_normal(x.shape)
        return (x * noise).astype(np.float32).astype(float)

    def rounded(self, x):
        chance = np.floor(x) + self.rng.integers(0, 2, x.shape)
        return np.where(near_tie(x), chance, np.rint(x))


class Dithered(reference.Model):
    """Keys and values come back anywhere within half a step of the blocks: what these may cost, and no more."""

    def kept(self, x, kind):
        blocks, steps = {"q8_0": reference.q8_0_blocks, "q4_0": reference.q4_0_blocks}[kind](x)
        return (blocks + steps * (self.rng.random(blocks.shape) - 0.5)).reshape(x.shape).astype(float)


class TieCounter(reference.Model):
    def rounded(self, x):
        self.near += int(near_tie(x.astype(float)).sum())
        return np.rint(x)

    def is_steady(self, ids):
        """No activation comes near a tie: float32 can answer in one way only."""
        self.near = 0
        self.logits(ids)
        return self.near == 0


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


def surprise(logits, ids):
    """Mean of -log p of each id after those before it, in nats: the logarithm of the perplexity."""
    return -log_softmax(logits[:-1])[np.arange(len(ids) - 1), ids[1:]].mean()


def cost_of_blocks(path, ids, wanted, kind, trials=TRIALS, **options):
    """What errors of the size of the steps of `kind` in keys and values do: the largest KL divergence of a
    position, the largest mean of it, and the largest change of surprise, over the trials."""
    model = Dithered(path, kv=kind, **options)
    worst, mean, change = 0.0, 0.0, 0.0
    for trial in range(trials):
        model.rng = np.random.Generator(np.random.PCG64(trial))
        got = model.logits(ids)
        kl = divergence(wanted, got)
        worst, mean = max(worst, kl.max()), max(mean, kl.mean())
        change = max(change, abs(surprise(got, ids) - surprise(wanted, ids)))
    return worst, mean, change


def survives(disturbed, ids, trials=4):
    """No trial changes an answer. For lists without near ties: finds values that cancel, and so
    carry a larger error than near_tie() expects."""
    answers = []
    for trial in range(trials):
        disturbed.rng = np.random.Generator(np.random.PCG64(trial))
        answers.append(disturbed.logits(ids))
        if divergence(answers[0], answers[-1]).max() > STEADY:
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description="Measures what float32 alone may change in a model's logits.")
    parser.add_argument("model")
    parser.add_argument("--ids", required=True, help='token ids, e.g. "1 2 3"')
    parser.add_argument("-o", "--output", required=True,
                        help="NumPy file, float64 [2, positions]: KL divergence, largest shift of a logit")
    parser.add_argument("--i2s-layout", choices="abc", default="a")
    parser.add_argument("--activation", choices=["relu2", "silu"])
    parser.add_argument("--kv", choices=reference.KEPT, default="f32")
    args = parser.parse_args()
    ids = [int(i) for i in args.ids.split()]
    options = {"layout": args.i2s_layout, "activation": args.activation, "kv": args.kv}
    wanted = reference.Model(args.model, **options).logits(ids)
    np.save(args.output, np.stack(measure(args.model, ids, wanted, **options)))


if __name__ == "__main__":
    main()
