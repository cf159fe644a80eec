"""The pictures of the README and of the gallery, made by the package: python docs/make_figures.py [NAME...]"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import hermitex as hx
from hermitex.show.plots import new_axes, save

HERE = Path(__file__).parent/"figures"


def learning_curves() -> Any:
    """Theory as lines, two-layer networks trained at d = 500 as points: what one large gradient step brings."""
    ax = new_axes(size=(6.0, 3.8))
    alpha = np.geomspace(0.25, 4, 40)
    for sigma in ("tanh", "relu"):
        hx.curve("one-step", sigma=sigma, target="tanh", alpha=alpha, lam=0.1, alpha0=5, eta=1,
                 simulate={"dimension": 500, "seeds": 6, "model": "network", "alpha": [0.3, 0.6, 1.2, 2.4]}).plot(ax)
    hx.curve("one-step", sigma="tanh", target="tanh", alpha=alpha, lam=0.1, r=0, c=1, gamma=0,
             title="no gradient step (random features)").plot(ax)
    return ax


def staircase() -> Any:
    """Which directions of a target are found together, and at which order."""
    return hx.exponents("z1 + z2**2 + z2*(z3**3 - 3*z3)").plot(new_axes(size=(5.0, 3.2)))


def overlaps() -> Any:
    """State evolution of Bayes-optimal AMP on both branches, with the thresholds dotted."""
    return hx.curve("bayes-amp", target="z1*z2", alpha=np.linspace(0.3, 3, 40)).plot(new_axes(size=(5.0, 3.4)))


def heat_map() -> Any:
    """Double descent and its cure: the test error of ridge regression over samples and ridge."""
    grid = {"alpha": np.linspace(0.3, 3, 40), "lam": np.geomspace(1e-3, 1, 30)}
    return hx.sweep(hx.theories.glm(), grid, parameters={"Delta": 0.25}).plot(new_axes(size=(5.0, 3.6)))


def spectrum() -> Any:
    """The bulk of the feature covariance after the step."""
    return hx.theories.spectrum("tanh", r=1.2, c=1.1, alpha=1.5, beta=1).plot(new_axes(size=(5.0, 3.2)))


def conditional() -> Any:
    """mu_1(kappa): the slope that a spiked feature has left at a projection kappa."""
    ax = new_axes(size=(5.0, 3.2))
    for name in ("relu", "gelu", "tanh", "erf"):
        hx.mu(name, 1).plot(ax, label=name)
    return ax


def coefficients() -> Any:
    """How fast the Hermite coefficients of two activations decay; negative ones are hollow."""
    figure = Figure(figsize=(7.5, 3.0), layout="constrained")
    for ax, name in zip(figure.subplots(1, 2), ("relu", "tanh"), strict=True):
        hx.expand(f"{name}(z)", order=12, basis="orthonormal").plot_coefficients(ax)
        ax.set_title(name)
    return figure


def two_variables() -> Any:
    """The levels of a target of two variables in grey, and the lines of its partial sums at the same levels."""
    return hx.expand("Max(z1, z2)", order=5, basis="orthonormal").plot(new_axes(size=(4.6, 3.6)), orders=[2, 5])


_ALL = (learning_curves, staircase, overlaps, heat_map, spectrum, conditional, coefficients, two_variables)
FIGURES: dict[str, Callable[[], Any]] = {f.__name__: f for f in _ALL}


def main(names: list[str]) -> None:
    """Make the pictures named, or all."""
    HERE.mkdir(exist_ok=True)
    for name in names or FIGURES:
        print(save(FIGURES[name](), HERE/f"{name}.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
