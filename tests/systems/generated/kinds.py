"""The kinds of random systems with their weights, and the draw of a seed."""

import numpy as np
from averages import coupled_averages, divergent, divergent_at_the_unknown, narrow, singular
from draws import (
    at_infinity,
    batch,
    coupled,
    coupled_at_infinity,
    finite_and_infinite,
    implicit,
    known_root,
    linear,
    rootless,
    unstable,
)

KINDS = [
    (known_root, 13),
    (implicit, 12),
    (linear, 5),
    (coupled, 12),
    (rootless, 9),
    (at_infinity, 9),
    (coupled_at_infinity, 4),
    (finite_and_infinite, 7),
    (unstable, 9),
    (narrow, 11),
    (coupled_averages, 3),
    (divergent, 3),
    (divergent_at_the_unknown, 2),
    (singular, 2),
    (batch, 5),
]


def draw(seed):
    """The draw of a seed: its kind by weight, then its numbers."""
    rng = np.random.default_rng(seed)
    weights = np.array([w for _, w in KINDS], dtype=float)
    return KINDS[rng.choice(len(KINDS), p=weights / weights.sum())][0](rng)
