"""1/alpha_c = E[(E[z^2|Y] - 1)^2], y = g(z): nodes along the monotone branches of g, each with every preimage of its label.

E[h(z)|y] = sum_b w_b h(x_b)/sum_b w_b over the preimages x_b of y, w_b = phi(x_b)/|g'(x_b)|. An average over z in the place of
y has no inverse square roots at critical labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.density import WINDOW, Monotone, exact_point, merge_atoms, monotone_branches
from hermitex.kernels.panel_rules import distinct_sorted, half_template, split, zeros_on
from hermitex.numbers.gauss import legendre_on
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.precise import evaluate

Array = np.ndarray
_DEEP = 5  # halvings: deeper a critical label and the preimages next to it are no longer told apart in double precision


class LevelNodes(NamedTuple):
    """x (n,), phi(x) dx, the branch of each, the preimages of its label (n, branches), log |g'(x)|/|g'(x_b)| (-inf: none)."""

    x: Array
    weight: Array
    own: Array
    points: Array
    relative: Array


def branches_and_plateaus(f: Expr, x: Symbol, low: float, high: float) -> tuple[list[Monotone], list[tuple[float, float, float]]]:
    """(monotone branches, plateaus as (label, lo, hi)) of a function of one variable on [low, high]; beyond it plateaus go on."""
    branches: list[Monotone] = []
    flat: list[tuple[float, float, float]] = []
    for piece in pieces(f, x, exact_point(low), exact_point(high)):
        ends = [float(evaluate(e, 20)) for e in (piece.lo, piece.hi)]
        if not piece.expr.has(x):
            flat.append((float(evaluate(piece.expr, 20)), ends[0], ends[1]))
        else:
            branches += monotone_branches(piece.expr, x, ends[0], ends[1])
    return branches, flat


def _merged(branches: Sequence[Monotone]) -> list[Monotone]:
    """Labels at ends that are equal but for rounding (the maxima of a cosine) as one, or a branch would be missed next to them."""
    knots = distinct_sorted(np.array([v for b in branches for v in (b.at_lo, b.at_hi) if np.isfinite(v)]))

    def nearest(label: float) -> float:
        return float(knots[np.argmin(np.abs(knots - label))]) if np.isfinite(label) else label

    return [replace(b, at_lo=nearest(b.at_lo), at_hi=nearest(b.at_hi)) for b in branches]


def level_nodes(branches: Sequence[Monotone], order: int, *, analytic: bool) -> LevelNodes:
    """Nodes on all the branches, `order` on a graded panel; `analytic`: what is averaged is so at the turning points of g."""
    branches = _merged(branches)
    ends = np.array([v for b in branches for v in (b.at_lo, b.at_hi)])
    critical = np.unique(ends[np.isfinite(ends)])
    parts: list[tuple[Array, ...]] = []
    for n, b in enumerate(branches):
        checkpoint("integrating over the labels")
        x, w = _along(b, branches, critical, (order, analytic))
        points, logs = preimages(branches, b.f(x))
        points[:, n] = x
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.log(np.abs(b.slope(x)))[:, None] + logs
        relative[np.isnan(relative)] = -np.inf  # a flat point of two branches, in double precision
        relative = np.minimum(relative, 600.0)  # at the label of another's turning point that branch has all the weight
        relative[:, n] = 0.0
        parts.append((x, w, np.full(len(x), n), points, relative))
    found = [np.concatenate(v) for v in zip(*parts, strict=True)]
    unseen = 1e-20  # of a weight: with (z^2 - 1)^2 at the end of the window it adds 1e-16
    kept = (found[1] > unseen) & np.isfinite(found[0])
    return LevelNodes(*(v[kept] for v in found))


def _along(b: Monotone, branches: Sequence[Monotone], critical: Array, rule: tuple[int, bool]) -> tuple[Array, Array]:
    """Nodes and weights phi(x) dx on a branch, graded towards its ends and towards points with critical labels."""
    low, high = sorted((b.at_lo, b.at_hi))
    inner = critical[(critical > low) & (critical < high)]
    knots = distinct_sorted(np.concatenate([[b.lo, b.hi], b.preimage(inner), *_crossings(b, branches)]))
    side, (order, analytic) = 0.6, rule  # width next to a knot that is graded
    nodes = []
    for lo, hi in pairwise(knots):
        for end, other in ((lo, hi), (hi, lo)):
            width = min((hi - lo)/2, side)*np.sign(other - end)
            t, w = half_template(order, *(_grading(b, end, width) if analytic else (_DEEP, 2)))
            nodes.append((end + width*t, abs(width)*w))
        if hi - lo > 2*side:
            t, w = legendre_on(split(np.array([lo + side, hi - side]), 0.8), order - 2)
            nodes.append((t.ravel(), w.ravel()))
    x, w = (np.concatenate(v) for v in zip(*nodes, strict=True))
    return x, w*np.exp(-x*x/2)/np.sqrt(2*np.pi)


def _grading(b: Monotone, end: float, width: float) -> tuple[int, int]:
    """(halvings, power) next to an end: E[h(z)|y] has a root at the label of another turning point, and is analytic at its own.

    Nodes stay as far from a turning point of their own as one panel has them: next to it the label has no digits.
    """
    near, nearer = np.abs(b.slope(end + width*np.array([1e-3, 1e-4])))
    if end not in (b.lo, b.hi) or not near > 2*nearer:
        return 9, 2
    return 0, 1 if 9*nearer < near < 11*nearer else 2  # a slope that is linear there, or one of higher order


def _crossings(b: Monotone, branches: Sequence[Monotone]) -> list[Array]:
    """Where another function takes the same label at the same x."""
    found = []
    for other in branches:
        lo, hi = max(b.lo, other.lo), min(b.hi, other.hi)
        if other is not b and hi - lo > 1e-9:
            scan = np.linspace(lo, hi, 203)[1:-1]
            found.append(np.array(zeros_on([lambda x, o=other: b.f(x) - o.f(x)], scan)))
    return found


def preimages(branches: Sequence[Monotone], y: Array) -> tuple[Array, Array]:
    """x_b (n, branches) with g(x_b) = y, and log w_b = -log |g'(x_b)|, -inf where the branch does not reach y."""
    points = np.zeros((len(y), len(branches)))
    weight = np.full(points.shape, -np.inf)
    for n, b in enumerate(branches):
        inside = (y > min(b.at_lo, b.at_hi)) & (y < max(b.at_lo, b.at_hi))
        if inside.any():
            points[inside, n] = b.preimage(y[inside])
            with np.errstate(divide="ignore"):
                weight[inside, n] = -np.log(np.abs(b.slope(points[inside, n])))
    return points, weight


def inverse_threshold(g: Expr, x: Symbol, *, even: bool) -> tuple[float, float]:
    """(1/alpha_c, its error) of the label g(x), x ~ N(0, 1), with E[x|Y] = 0; `even`: g is, so that the half line is enough.

    Raises NoClosedForm if the kinks are not found.
    """
    branches, flat = branches_and_plateaus(g, x, 0.0 if even else -WINDOW, WINDOW)
    value, error = square_of_mean(branches, flat)
    return (2*value, 2*error) if even else (value, error)


def square_of_mean(branches: Sequence[Monotone], flat: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """(the sum over the branches and plateaus of E[z^2 - 1|y]^2 with its weight, its error)."""
    atoms = sum(moment**2/mass for _, (mass, moment) in merge_atoms([(y, _plateau(a, b)) for y, a, b in flat]) if mass > 0)
    fine, gap = _two_orders(branches, analytic=True) if branches else (0.0, 0.0)
    settled = 1e-12  # relative: Gauss nodes converge at once if the labels of turning points are well apart, else slowly
    if gap > settled*fine:
        fine, gap = min((fine, gap), _two_orders(branches, analytic=False), key=lambda found: found[1])
    value = float(atoms + fine)
    slow = 8.0  # where nodes converge slowly the difference of two orders is a fifth of the error
    rounding = 1e-14  # of E[z^2|y], of size 1: its square counts, so that a small value is known better (Cauchy)
    return value, slow*gap + 2*rounding*(np.sqrt(2*value) + rounding)


def _two_orders(branches: Sequence[Monotone], *, analytic: bool) -> tuple[float, float]:
    """The average by nodes of one order, and how far it is from that of a lower one."""
    fine, coarse = (_mean_square(level_nodes(branches, order, analytic=analytic)) for order in (20, 15))
    return fine, abs(fine - coarse)


def _plateau(a: float, b: float) -> Array:
    """P and E[z^2 - 1] on the interval, from its side of 0, where its probability keeps its digits."""
    from scipy.special import ndtr

    low, high = (a, b) if a + b < 0 else (-b, -a)
    return np.array([ndtr(high) - ndtr(low), (a*np.exp(-a*a/2) - b*np.exp(-b*b/2))/np.sqrt(2*np.pi)])


def _mean_square(nodes: LevelNodes) -> float:
    share = np.exp(nodes.relative - (nodes.points**2 - nodes.x[:, None]**2)/2)
    mean = np.sum(share*(nodes.points**2 - 1), axis=1)/np.sum(share, axis=1)
    return float(nodes.weight @ mean**2)
