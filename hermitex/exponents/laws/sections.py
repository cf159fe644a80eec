"""y = g(u, v) at fixed u: the branches of v -> g(u, v) found on numbers, for averages over many u.

Switch arguments and the slope dg/dv are scanned on a grid in v and their zeros bracketed, so no symbolic work is done
inside the average. The average over u is adaptive, which shows in its error what a scan has missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from sympy import DiracDelta, Expr, S, Symbol, diff
from sympy.core.relational import Relational

from hermitex.exponents.laws.density import WINDOW, Index, Law, Monotone, array_function, distinct, merged, normal, pushed
from hermitex.exponents.laws.strips import zeros_on

_SCAN = 1600
_TABLE = 600
_FLAT = 1e-13


class Sections:
    """The laws of v -> g(u, v), u known; `place` is the index of v in the multi-indices."""

    def __init__(self, g: Expr, given: Sequence[Symbol], hidden: Symbol, place: int, drop: Sequence[Index] = ()) -> None:
        slope = smooth_slope(g, hidden)
        self.g, self.slope = (array_function(e, *given, hidden) for e in (g, slope))
        self.switches = [array_function(e, *given, hidden) for e in switch_arguments(g, hidden)]
        self.base = normal(place)
        self.keep = [n for n, a in enumerate(self.base.indices) if a not in drop]

    def law(self, u: Sequence[float]) -> Law:
        """The law of g(u, v) given u."""
        scan = np.linspace(-WINDOW, WINDOW, _SCAN + 1) + 1.23e-5
        kinks = zeros_on([lambda v, h=h: h(*u, v) for h in self.switches], scan)
        edges = distinct(np.array([-WINDOW, *kinks, WINDOW]))
        branches: list[Monotone] = []
        atoms: list[tuple[float, np.ndarray]] = []

        def g(v: np.ndarray) -> np.ndarray:
            return self.g(*u, v)

        def slope(v: np.ndarray) -> np.ndarray:
            return self.slope(*u, v)

        for a, b in pairwise(edges):
            if b - a < 1e-12:
                continue
            inside = a + (b - a) * (np.arange(64) + 0.5) / 64
            values = g(inside)
            if np.ptp(values) <= _FLAT * max(1.0, float(np.max(np.abs(values)))):
                atoms.append((float(np.median(values)), _mass(self.base, a, b)[self.keep]))
                continue
            steps = scan[(scan > a) & (scan < b)]
            steps = np.unique(np.concatenate([steps, inside]))
            for c, d in pairwise([a, *zeros_on([slope], steps), b]):
                branches.append(_monotone(g, slope, c, d))
        return pushed(self.base, branches, merged(atoms), self.keep)


@lru_cache(maxsize=128)
def smooth_slope(g: Expr, v: Symbol) -> Expr:
    """dg/dv off the kinks."""
    from sympy import Derivative, Subs, ceiling, floor, frac

    found = diff(g, v).replace(DiracDelta, lambda *_: S.Zero)
    if found.has(Subs, Derivative) or g.has(floor, ceiling, frac):
        from hermitex.errors import NoClosedForm

        raise NoClosedForm("alpha_c", f"the slope of {g} in {v} has no form", "Write the target with sign, Abs or Piecewise")
    return found


def switch_arguments(g: Expr, v: Symbol) -> list[Expr]:
    """What changes sign where g has a kink or a jump in v."""
    from sympy import Abs, Heaviside, Max, Min, Piecewise, sign

    found: list[Expr] = []
    for e in g.atoms(Abs, Heaviside, sign):
        found.append(e.args[0])
    for e in g.atoms(Max, Min):
        found += [a - b for n, a in enumerate(e.args) for b in e.args[n + 1:]]
    for e in g.atoms(Piecewise):
        found += [r.lhs - r.rhs for _, c in e.args for r in c.atoms(Relational)]
    return list(dict.fromkeys(e for e in found if e.has(v)))


def _monotone(g: Callable, slope: Callable, a: float, b: float) -> Monotone:
    t = (1 - np.cos(np.pi * (np.arange(_TABLE) + 0.5) / _TABLE)) / 2
    points = a + (b - a) * t
    labels = g(points)
    # One-sided limits: the ends may be jumps, so they are approached from inside.
    tiny = 1e-13 * (b - a)
    at = [float(x) for x in g(np.array([a + tiny, b - tiny]))]
    points, labels = np.concatenate([[a], points, [b]]), np.concatenate([[at[0]], labels, [at[1]]])
    good = np.isfinite(labels)
    points, labels = points[good], labels[good]
    table = (labels, points) if labels[-1] >= labels[0] else (labels[::-1], points[::-1])
    return Monotone(a, b, g, slope, at[0], at[1], table)


def _mass(base: Law, a: float, b: float) -> np.ndarray:
    """(P, E[v 1], E[(v^2 - 1) 1]) of an interval, in closed form."""
    from scipy.special import ndtr

    phi = np.exp(-np.array([a, b]) ** 2 / 2) / np.sqrt(2 * np.pi)
    return np.array([ndtr(b) - ndtr(a), phi[0] - phi[1], a * phi[0] - b * phi[1]])
