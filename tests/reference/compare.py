#!/usr/bin/env python3
"""Compares logits with the reference's, position by position. Exit code 1 if they differ too much.

    compare.py OURS.npy REFERENCE.npy [--noise NOISE.npy]

Rules, for every position
  * KL(reference || ours) <= 1e-5 nats;
  * the same top-1 token, unless the reference's own first and second are closer than twice the
    largest shift that a logit may take by float32 arithmetic alone. That shift is 2^-20 times the
    largest logit unless measured: a float32 sum of a few hundred products of one size loses about
    that much. Positions too close to call are counted; normally there are none.

NOISE.npy, float64 [2, positions] (steadiness.py), holds what float32 alone may do: the KL
divergence (row 0) and the shift of a logit (row 1). Where row 0 exceeds a hundredth of the bound,
an activation may fall to either side of a rounding tie, and measured bounds take the place of the
fixed ones: four times the divergence, twice the shift (the first grows with the square of the
second). Such positions are counted too.
"""

import argparse
import dataclasses
import sys

import numpy as np

import steadiness

KL_BOUND = 1e-5
SHIFT = 2.0**-20  # relative to the largest logit
# A few trials find the size of a step, not its largest possible effect.
SHIFT_FACTOR = 2.0
KL_FACTOR = SHIFT_FACTOR**2


@dataclasses.dataclass
class Verdict:
    positions: int = 0
    kl: float = 0.0          # largest over the steady positions
    kl_tied: float = 0.0     # largest over the positions on a rounding tie
    tied: int = 0
    close: int = 0           # positions where the reference's two best are too close to call
    top1_other: int = 0      # positions with another top-1 token, excused or not
    max_diff: float = 0.0
    nmse: float = 0.0
    faults: list = dataclasses.field(default_factory=list)

    @property
    def ok(self):
        return not self.faults

    def __str__(self):
        text = (f"positions {self.positions}  KL {self.kl:.1e}  max |diff| {self.max_diff:.1e}  NMSE {self.nmse:.1e}"
                f"  top-1 differs {self.top1_other}")
        if self.close:
            text += f"  too close to call {self.close}"
        if self.tied:
            text += f"  on a rounding tie {self.tied}: KL {self.kl_tied:.1e}"
        lines = [text]
        return "\n".join(lines + self.faults)


def compare(ours, wanted, noise=None):
    """ours, wanted: [positions, vocabulary]. noise: [2, positions] or None."""
    if ours.shape != wanted.shape:
        return Verdict(faults=[f"shape {ours.shape} instead of {wanted.shape}"])
    if not np.isfinite(ours).all():
        return Verdict(faults=[f"{(~np.isfinite(ours)).sum()} logits are no finite numbers"])
    ours, wanted = ours.astype(float), wanted.astype(float)
    kl = steadiness.divergence(wanted, ours)
    shift = SHIFT * np.abs(wanted).max(axis=1)
    bound = np.full(len(kl), KL_BOUND)
    tied = np.zeros(len(kl), bool)
    if noise is not None:
        tied = noise[0] > steadiness.STEADY
        shift = np.maximum(shift, SHIFT_FACTOR * noise[1])
        bound = np.where(tied, np.maximum(bound, KL_FACTOR * noise[0]), bound)
    best = np.sort(wanted, axis=1)
    close = best[:, -1] - best[:, -2] <= 2 * shift
    other = ours.argmax(axis=1) != wanted.argmax(axis=1)

    verdict = Verdict(len(kl), kl[~tied].max(initial=0), kl[tied].max(initial=0), int(tied.sum()), int(close.sum()),
                      int(other.sum()), np.abs(ours - wanted).max(), ((ours - wanted)**2).sum() / (wanted**2).sum())
    for p in np.flatnonzero(kl > bound):
        verdict.faults.append(f"position {p}: KL {kl[p]:.2e} exceeds {bound[p]:.2e}")
    for p in np.flatnonzero(other & ~close):
        verdict.faults.append(f"position {p}: top-1 token {ours[p].argmax()} instead of {wanted[p].argmax()}, "
                              f"gap {best[p, -1] - best[p, -2]:.3e}")
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours")
    parser.add_argument("reference")
    parser.add_argument("--noise", help="float64 [2, positions] of steadiness.py")
    args = parser.parse_args()
    verdict = compare(np.load(args.ours), np.load(args.reference), np.load(args.noise) if args.noise else None)
    print(verdict)
    sys.exit(0 if verdict.ok else 1)


if __name__ == "__main__":
    main()
