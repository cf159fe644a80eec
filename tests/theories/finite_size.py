"""2 m(2d) - m(d): a mean at d -> infinity, free of its term of order 1/d."""

import numpy as np


def extrapolated(run, d, seeds):
    """Mean and standard error of run(dimension, seed), an array, over the seeds at d and 2d."""
    small, large = (np.array([run(size, seed) for seed in seeds]) for size in (d, 2*d))
    spread = 4*np.var(large, axis=0, ddof=1) + np.var(small, axis=0, ddof=1)
    return 2*large.mean(axis=0) - small.mean(axis=0), np.sqrt(spread/len(seeds))
