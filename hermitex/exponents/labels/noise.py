"""1/alpha_c = int (E[He_2 p(y|z)])^2 / E[p(y|z)] dy of a user's P(y|z) in one variable, in double precision with an error.

The grid in z is cut where the support of the law, or a branch of it, begins at each label. Noise that is added or multiplies
goes through the law of what it is added to (`laws.noisy`), as in several variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.labels.law_check import DrawnLaw
from hermitex.exponents.laws.density import unguarded
from hermitex.exponents.laws.sections import switch_arguments
from hermitex.kernels.panels import on_panels, zeros_on
from hermitex.symbolic.budget import checkpoint

_WINDOW = 8.6  # P(|z| > 8.6) < 1e-17
_ORDER = 10
_TOLERANCE = 1e-12
_EPSILON = 1e-15  # of E[He_2 K(v)] in units of E[|He_2| K(v)]: rounding, and what lies outside the window


def rounding(value: float) -> float:
    """The error of sum A^2/B with an error _EPSILON sqrt(B) in each A (Cauchy): a small value is what cancellation left."""
    return 2*_EPSILON*float(np.sqrt(2*abs(value))) + 2*_EPSILON**2


def custom(p: Expr, y: Symbol, x: Symbol, support: Any) -> tuple[float, float]:
    """(1/alpha_c, error) of any P(y|z) with a density on the real line or on the counts 0, 1, 2, ...

    At each label the line is cut where a switch of P(y|.) jumps or bends.
    """
    law, switches = DrawnLaw(p, y, (x,)), [unguarded(e, y, x) for e in switch_arguments(p, x)]
    results = []
    for level in range(2):
        grid = np.linspace(-_WINDOW, _WINDOW, 140 * 2**level + 1)

        def moments(label: float, grid: np.ndarray = grid) -> float:
            checkpoint("integrating over the labels")
            z, weight = _nodes(_cut(grid, label, switches))
            mass = weight * np.nan_to_num(law(label, (z,)))
            b, a = float(mass.sum()), float(mass @ (z * z - 1))
            return a * a / b if b > 0 else 0.0

        results.append(_sum_counts(moments) if support == "integers" else _integrate(moments))
    (coarse, _), (value, slack) = results
    return value, abs(value - coarse) + slack + rounding(value)


def _cut(grid: np.ndarray, label: float, switches: list[Callable]) -> np.ndarray:
    """The grid, shape (k,), with the zeros of the switches at this label."""
    with np.errstate(all="ignore"):
        return np.unique([*grid, *zeros_on([lambda z, f=f: f(np.full_like(z, label), z) for f in switches], grid)])


def _nodes(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, weights) of the normal law on panels, both flat."""
    z, w = (a.ravel() for a in on_panels(edges, _ORDER))
    return z, w * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def _sum_counts(term: Callable[[float], float]) -> tuple[float, float]:
    """(sum, error) over the counts 0, 1, 2, ..., until forty in a row add nothing."""
    total, quiet, count = 0.0, 0, 0
    while quiet < 40 and count < 100_000:
        value = term(count)
        total += value
        quiet = quiet + 1 if value <= 1e-17 * total else 0
        count += 1
    return total, 0.0 if quiet >= 40 else float("inf")


def _integrate(f: Callable[[float], float]) -> tuple[float, float]:
    """(value, error) over the labels y = sinh(pi/2 sinh t): the trapezoid rule in t (double exponential) while it converges.

    Where the integrand bends it does not; then panels are halved about the bends (Gauss-Kronrod).
    """
    from scipy.integrate import quad

    def moved(t: float) -> float:
        return f(np.sinh(np.pi / 2 * np.sinh(t))) * np.pi / 2 * np.cosh(t) * np.cosh(np.pi / 2 * np.sinh(t))

    h, value = 1 / 4, sum(map(moved, np.arange(-4.5, 4.6, 1 / 4))) / 4
    for _ in range(4):
        finer = value / 2 + h / 2 * sum(map(moved, np.arange(-4.5 + h / 2, 4.5, h)))
        h, value, gap = h / 2, finer, abs(finer - value)
        if gap <= _TOLERANCE * abs(value):
            return value, gap
    value, error, *_ = quad(moved, -4.5, 4.5, epsabs=1e-13, epsrel=1e-11, limit=300, full_output=1)
    return value, error
