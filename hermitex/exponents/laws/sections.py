"""y = g(u, v) at fixed u: the branches of v -> g(u, v) found on numbers, for averages over many u; v may be a quantity w(v).

Switch arguments and the slope dg/dv are scanned on a grid in v and their zeros bracketed, so no symbolic work is done
inside the average. The average over u is adaptive, which shows in its error what a scan has missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from sympy import DiracDelta, Expr, S, Symbol, diff

from hermitex.errors import NoClosedForm
from hermitex.exponents.laws.density import WINDOW, Index, Law, Monotone, array_function, mass, merge_atoms, push_through_branches
from hermitex.exponents.laws.level_nodes import square_of_mean
from hermitex.kernels.panel_rules import distinct_sorted, zeros_on
from hermitex.symbolic.breaks.switches import STEPS, switch_arguments
from hermitex.symbolic.parity import parity


class Sections:
    """The laws of v -> g(u, v), u known; `base` is the law of v, a hidden variable or a quantity of several of them."""

    def __init__(self, g: Expr, given: Sequence[Symbol], hidden: Symbol, base: Law, drop: Sequence[Index] = ()) -> None:
        slope = smooth_slope(g, hidden)
        self.g, self.slope = (array_function(e, *given, hidden) for e in (g, slope))
        self.switches = [array_function(e, *given, hidden) for e in switch_arguments(g) if e.has(hidden)]
        self.base = base
        self.keep = [n for n, a in enumerate(base.indices) if a not in drop]
        self.cuts = distinct_sorted(np.array([base.lo, *[k for k in base.knots if base.lo < k < base.hi], base.hi]))
        self.scan = _scan(base)
        self.even = parity(g, hidden) == 1

    def law(self, u: Sequence[float]) -> Law:
        """The law of g(u, v) given u."""
        branches, flat = self.branches(u, self.cuts)
        atoms = [(y, mass(self.base, a, b)[self.keep]) for y, a, b in flat]
        atoms += [(float(self.g(*u, np.array([p]))[0]), value[self.keep]) for p, value in self.base.atoms]
        return push_through_branches(self.base, branches, merge_atoms(atoms), self.keep)

    def second(self, u: Sequence[float]) -> tuple[float, float]:
        """(E[E[v^2 - 1|g(u, v)]^2], its error) of a standard normal v."""
        value, error = square_of_mean(*self.branches(u, np.append(0.0, self.cuts[self.cuts > 0]) if self.even else self.cuts))
        return (2*value, 2*error) if self.even else (value, error)

    def branches(self, u: Sequence[float], cuts: np.ndarray) -> tuple[list[Monotone], list[tuple[float, float, float]]]:
        """The monotone branches of v -> g(u, v) from the first cut to the last, and its plateaus as (label, low, high)."""
        scan = self.scan[max(int(np.searchsorted(self.scan, cuts[0])) - 1, 0):]  # from before the first cut: kinks next to it count
        kinks = [v for v in zeros_on([lambda v, h=h: h(*u, v) for h in self.switches], scan) if v > cuts[0]]
        branches: list[Monotone] = []
        flat: list[tuple[float, float, float]] = []

        def g(v: np.ndarray) -> np.ndarray:
            return self.g(*u, v)

        def slope(v: np.ndarray) -> np.ndarray:
            return self.slope(*u, v)

        equal = 1e-13  # relative range of values that are equal but for rounding
        for a, b in pairwise(distinct_sorted(np.array([*cuts, *kinks]))):
            if b - a < 1e-12:
                continue
            inside = a + (b - a) * (np.arange(64) + 0.5) / 64
            values = g(inside)
            if np.ptp(values) <= equal * max(1.0, float(np.max(np.abs(values)))):
                flat.append((float(np.median(values)), a, b))
                continue
            steps = np.unique(np.concatenate([scan[(scan > a) & (scan < b)], inside]))
            branches += [_monotone(g, slope, c, d) for c, d in pairwise([a, *zeros_on([slope], steps), b])]
        return branches, flat


def _scan(base: Law) -> np.ndarray:
    """Places on which signs are compared: even over the window, and close together next to the knots."""
    size = 1600  # places 0.011 apart on the window; chosen by trial
    even = np.linspace(base.lo, base.hi, size + 1) + 1.23e-5 * (base.hi - base.lo) / (2 * WINDOW)
    steps = 10.0 ** np.arange(-12.0, 1.0, 0.25) * (base.hi - base.lo) / 10
    near = [k + s * steps for k in base.knots for s in (-1, 1)]
    points = np.concatenate([even, *near])
    return even if not near else np.unique(points[(points > base.lo) & (points < base.hi)])


@lru_cache(maxsize=128)
def smooth_slope(g: Expr, v: Symbol) -> Expr:
    """dg/dv off the kinks."""
    from sympy import Derivative, Subs

    found = diff(g, v).replace(DiracDelta, lambda *_: S.Zero)
    if found.has(Subs, Derivative) or g.has(*STEPS):
        raise NoClosedForm("alpha_c", f"the slope of {g} in {v} has no form", "Write the target with sign, Abs or Piecewise")
    return found


def _monotone(g: Callable, slope: Callable, a: float, b: float) -> Monotone:
    size = 600  # of the table that brackets an inverse, smaller than that of a single law: one is made at each u
    t = (1 - np.cos(np.pi * (np.arange(size) + 0.5) / size)) / 2
    points = a + (b - a) * t
    labels = g(points)
    # One-sided limits: the ends may be jumps, so they are approached from inside.
    tiny = 1e-13 * (b - a)
    inside = np.array([a + tiny, b - tiny])
    step = slope(inside) * np.array([tiny, -tiny])
    # The last step by the slope: an end that is another knot too must not miss it.
    at = [float(x) for x in g(inside) - np.where(np.isfinite(step), step, 0.0)]
    points, labels = np.concatenate([[a], points, [b]]), np.concatenate([[at[0]], labels, [at[1]]])
    good = np.isfinite(labels)
    points, labels = points[good], labels[good]
    table = (labels, points) if labels[-1] >= labels[0] else (labels[::-1], points[::-1])
    return Monotone(a, b, g, slope, at[0], at[1], table)
