"""c_k = E f(z) h_k(z), h_k = He_k/sqrt(k!), for all k <= K in one pass over the panels.

h_k(x) exp(-x^2/4) is bounded by 1.1 for all k and x (Cramer), and its recursion is stable; f exp(-x^2/4) has the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import sympy as sp
from sympy import Expr, Symbol

from hermitex.errors import BadInput
from hermitex.numbers.gauss import legendre
from hermitex.numbers.integrand import Integrand
from hermitex.numbers.panels import EPSILON, ORDERS, Chart, refined

HIGHEST = 500  # the order to which the panels resolve h_k


@dataclass(frozen=True)
class Coefficients:
    """`values` and absolute `errors`, arrays over k = 0 ... K (complex values for a complex f)."""

    values: np.ndarray
    errors: np.ndarray

    def known_nonzero(self) -> np.ndarray:
        """Which of them differ from 0 by more than their error."""
        return np.abs(self.values) > self.errors


def coefficients(f: Expr, z: Symbol, order: int) -> Coefficients:
    """c_0, ..., c_order on the orthonormal basis.

    Parameters
    ----------
    f, z : an expression in one variable
    order : at most 500

    Raises
    ------
    Divergent : f exp(-z^2/4) is not integrable: then each coefficient is an `average` of its own.
    BadInput : an order beyond 500.

    Guarantee
    ---------
    The errors are absolute: 1e-15 of int |f| exp(-x^2/4) dx as a rule. By symmetry exact zeros have the error 0.

    Examples
    --------
    >>> z = Symbol("z", real=True)
    >>> found = coefficients(sp.tanh(z), z, 3)
    >>> [round(float(c), 12) for c in found.values]
    [0.0, 0.605705509602, 0.0, -0.148437190787]
    """
    if not 0 <= order <= HIGHEST:
        raise BadInput(f"order must be between 0 and {HIGHEST}, got {order}")
    integrand = Integrand(f*sp.exp(z**2/4), z)
    if integrand.vanishes:
        return Coefficients(np.zeros(order + 1), np.zeros(order + 1))
    integrand.require_integrable_places(integrand.window)
    coarse, fine = np.zeros(order + 1, dtype=complex), np.zeros(order + 1, dtype=complex)
    size = 0.0
    for chart, edges in _fine_panels(integrand, order):
        parts = [_moments(chart, edges, integrand.window.top, order, points) for points in ORDERS]
        coarse += parts[0][0]
        fine += parts[1][0]
        size += parts[1][1]
    scale = math.exp(integrand.window.top)/math.sqrt(2*math.pi)
    # 4 EPSILON: the roundings of the recursion grow like sqrt(k) of a bounded function; 10^-18 of the mass is outside
    errors = (np.abs(fine - coarse) + 4*EPSILON*(1 + np.sqrt(np.arange(order + 1.0)))*size)*scale
    return _without_forbidden(f, z, Coefficients((fine if not integrand.real or np.any(fine.imag) else fine.real)*scale, errors))


def _fine_panels(integrand: Integrand, order: int) -> Iterator[tuple[Chart, np.ndarray]]:
    """Panels on which f is resolved and h_k makes at most three waves: its local frequency is below sqrt(k + 1/2)."""
    longest = min(1.0, 18/math.sqrt(order + 1))
    for chart, panels in refined(integrand, integrand.window, 15):
        x = chart.position(panels.edges)
        pieces = np.ceil(np.abs(np.diff(x, axis=1))[:, 0]/longest).astype(int).clip(1)
        yield chart, np.concatenate([_divided(low, high, n) for (low, high), n in zip(panels.edges, pieces, strict=True)])


def _divided(low: float, high: float, n: int) -> np.ndarray:
    ends = np.linspace(low, high, n + 1)
    return np.stack([ends[:-1], ends[1:]], axis=1)


def _moments(chart: Chart, edges: np.ndarray, top: float, order: int, points: int) -> tuple[np.ndarray, float]:
    """The sums over all nodes of F exp(x^2/4 - top) (h_k exp(-x^2/4)), and of |F exp(x^2/4 - top)|."""
    nodes, weights = legendre(points)
    half = np.diff(edges, axis=1)/2
    s = (edges.mean(axis=1, keepdims=True) + half*nodes).ravel()
    values = chart.floats(s)
    masses = values._replace(k=np.asarray(values.k - top)).plain()*(half*weights).ravel()
    masses = np.where(np.isnan(masses), 0.0, masses)
    x = chart.position(s)
    last, h = np.zeros_like(x), np.exp(-x*x/4)
    out = np.empty(order + 1, dtype=complex)
    for k in range(order + 1):
        out[k] = (h*masses).sum()
        last, h = h, (x*h - math.sqrt(k)*last)/math.sqrt(k + 1)
    return out, float(np.abs(masses).sum())


def _without_forbidden(f: Expr, z: Symbol, found: Coefficients) -> Coefficients:
    """Those that vanish by symmetry set to 0."""
    mirrored = f.xreplace({z: -z})
    forbidden = 0 if sp.expand(mirrored + f) == 0 else 1 if sp.expand(mirrored - f) == 0 else None
    if forbidden is not None:
        found.values[forbidden::2] = 0.0
        found.errors[forbidden::2] = 0.0
    return found
