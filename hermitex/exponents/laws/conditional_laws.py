"""nu_a(y | u): the laws of a label at fixed u, found on numbers, for averages over many u.

One hidden variable v, or a quantity w(v): switch arguments and the slope dg/dv are scanned on a grid in v and their zeros
bracketed, so no symbolic work is done inside the average. The average over u is adaptive, which shows in its error what a scan
has missed. A discrete label over a plane (v1, v2): its switches are linear in v2, so at fixed (u, v1) the cells are intervals
between lines v2 = l_k(u, v1) and their moments exact; in v1 the integrand is analytic between the crossings of the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
from sympy import Abs, DiracDelta, Dummy, Expr, Heaviside, S, Symbol, diff, preorder_traversal, sign

from hermitex.errors import NoClosedForm
from hermitex.exponents.laws.density import WINDOW, Index, Law, mass, merge_atoms, push_through_branches
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.monotone_branches import Monotone, array_function
from hermitex.kernels.panel_rules import distinct_sorted, graded_nodes, split, zeros_on
from hermitex.symbolic.breaks.switches import STEPS, switch_arguments


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

    def law(self, u: Sequence[float]) -> Law:
        """The law of g(u, v) given u."""
        scan = self.scan
        kinks = zeros_on([lambda v, h=h: h(*u, v) for h in self.switches], scan)
        edges = distinct_sorted(np.array([*self.cuts, *kinks]))
        branches: list[Monotone] = []
        atoms: list[tuple[float, np.ndarray]] = []

        def g(v: np.ndarray) -> np.ndarray:
            return self.g(*u, v)

        def slope(v: np.ndarray) -> np.ndarray:
            return self.slope(*u, v)

        flat = 1e-13  # relative range of values that are equal but for rounding
        for a, b in pairwise(edges):
            if b - a < 1e-12:
                continue
            inside = a + (b - a) * (np.arange(64) + 0.5) / 64
            values = g(inside)
            if np.ptp(values) <= flat * max(1.0, float(np.max(np.abs(values)))):
                atoms.append((float(np.median(values)), mass(self.base, a, b)[self.keep]))
                continue
            steps = scan[(scan > a) & (scan < b)]
            steps = np.unique(np.concatenate([steps, inside]))
            for c, d in pairwise([a, *zeros_on([slope], steps), b]):
                branches.append(_monotone(g, slope, c, d))
        atoms += [(float(g(np.array([p]))[0]), value[self.keep]) for p, value in self.base.atoms]
        return push_through_branches(self.base, branches, merge_atoms(atoms), self.keep)


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


# -- strips between lines: committees given their mean, sign(u + v1 v2), and their like --------------------------------
def discrete_over_planes(g: Expr, hidden: Sequence[Symbol]) -> list[Expr] | None:
    """The switch arguments of a g that depends on the hidden variables through signs of forms linear in the last one."""
    found = {e for e in preorder_traversal(g) if isinstance(e, (sign, Heaviside))}
    marked = g.xreplace({e: Dummy() for e in found})
    if not found or marked.has(*hidden) or any(e.args[0].has(Abs, sign, Heaviside) for e in found):
        return None
    arguments = [e.args[0].expand() for e in found if e.args[0].has(*hidden)]
    last = hidden[-1]
    linear = all(a.is_polynomial(last) and a.as_poly(last).degree() <= 1 for a in arguments)
    return arguments if linear else None


class Strips:
    """The laws of a discrete label at fixed u: `switches` as `discrete_over_planes` gives them."""

    def __init__(self, g: Expr, switches: Sequence[Expr], given: Sequence[Symbol], hidden: Sequence[Symbol],
                 drop: Sequence[Index]) -> None:
        last = hidden[-1]
        self.g = array_function(g, *given, *hidden)
        self.lines = [tuple(array_function(a.coeff(last, k), *given, hidden[0]) for k in (0, 1)) for a in switches]
        self.indices = [a for a in indices(2) if a not in drop]

    def law(self, u: Sequence[float]) -> Law:
        """The law given u: atoms only."""
        labels, nu = self.masses(u)
        atoms = tuple((float(y), nu[:, n]) for n, y in enumerate(labels))
        return Law(tuple(self.indices), lambda y: np.zeros((len(self.indices), len(y))), 0.0, 0.0, (), (), atoms, False)

    def masses(self, u: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """The labels, and nu_a of each given u, shape (indices, labels)."""
        v1, w1 = self._nodes(u)
        with np.errstate(all="ignore"):
            lines = np.stack([-c(*u, v1) / b(*u, v1) for c, b in self.lines], axis=1)
        lines = np.where(np.isnan(lines), -WINDOW, lines)
        ends = np.full((len(v1), 1), WINDOW)
        edges = np.sort(np.clip(np.concatenate([lines, -ends, ends], axis=1), -WINDOW, WINDOW), axis=1)
        low, high = edges[:, :-1], edges[:, 1:]
        middle = (low + high) / 2
        label = self.g(*u, v1[:, None], middle)
        empty = high - low < 1e-15
        values = np.unique(np.round(label[~empty], 9))
        cells = [(np.abs(label - y) < 1e-8) & ~empty for y in values]
        return values, np.array([[np.sum(m[c]) for c in cells] for m in self._moments(low, high, v1, w1)])

    def _nodes(self, u: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Panels in v1 cut where two lines cross, or where a line runs along v2."""
        functions: list[Callable] = [lambda v, b=b: b(*u, v) for _, b in self.lines]
        functions += [lambda v, c=c: c(*u, v) for c, _ in self.lines]
        functions += [lambda v, p=p, q=q: p[0](*u, v) * q[1](*u, v) - q[0](*u, v) * p[1](*u, v)
                      for p, q in combinations(self.lines, 2)]
        points = 801  # 0.022 apart on the window; chosen by trial
        cuts = distinct_sorted(np.array([-WINDOW, 0.0, WINDOW, *zeros_on(functions, np.linspace(-WINDOW, WINDOW, points) + 1e-5)]))
        order = 16  # points of a panel: with a width of 1.5 exact to rounding for exp(-x^2/2)
        depth = 5  # halvings toward a cut
        width = 1.5  # of a panel
        nodes, w = graded_nodes(split(cuts, width), order, depth)
        return nodes, w * np.exp(-nodes**2 / 2) / np.sqrt(2 * np.pi)

    def _moments(self, low: np.ndarray, high: np.ndarray, v1: np.ndarray, w1: np.ndarray) -> list[np.ndarray]:
        from scipy.special import ndtr

        p, q = (np.exp(-e * e / 2) / np.sqrt(2 * np.pi) for e in (low, high))
        inner = (ndtr(high) - ndtr(low), p - q, low * p - high * q)
        outer = (w1, w1 * v1, w1 * (v1 * v1 - 1))
        return [outer[a.count(0)][:, None] * inner[a.count(1)] for a in self.indices]
