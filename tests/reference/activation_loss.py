#!/usr/bin/env python3
"""The error of ternary products by 8-bit activations: the table of docs/reference/models.md.

    activation_loss.py
"""

import numpy as np

import reference

COLUMNS, ROWS, VECTORS, WEIGHT_GROUP = 4096, 512, 64, 128


def kinds(rng):
    normal = rng.standard_normal((VECTORS, COLUMNS))
    outliers = np.where(rng.random(normal.shape) < 0.001, 30 * normal, normal)
    gated = reference.silu(rng.standard_normal(normal.shape)) * rng.standard_normal(normal.shape)
    return {"normal": normal, "0.1 % of them thirty times as large": outliers, "SiLU times up": gated}


def quantised(x, group):
    if group == COLUMNS:
        s, q = reference.quantize_activations(x)
        return q / s.astype(float)
    d, q = reference.quantize_groups(x, group)
    return q * np.repeat(d.astype(float), group, axis=1)


def main():
    rng = np.random.Generator(np.random.PCG64(1))
    scales = rng.uniform(0.75, 1.25, (ROWS, COLUMNS // WEIGHT_GROUP))
    w = rng.integers(-1, 2, (ROWS, COLUMNS)) * np.repeat(scales, WEIGHT_GROUP, axis=1)
    groups = (32, 64, 128, COLUMNS)
    print("| activations | 32 | 64 | 128 | row |\n|---|---|---|---|---|")
    for name, x in kinds(rng).items():
        exact = x @ w.T
        losses = [np.sqrt(np.mean((quantised(x, g) @ w.T - exact) ** 2) / np.mean(exact**2)) for g in groups]
        print(f"| {name} | " + " | ".join(f"{loss:.4f}" for loss in losses) + " |")


if __name__ == "__main__":
    main()
