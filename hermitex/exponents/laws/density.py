"""nu_a(dy) = E[He_a(z) 1{w(z) in dy}], |a| <= 2: the law of a scalar label, with the weights that 1/alpha_c needs.

A `Law` holds the densities of nu_a in double precision, the labels at which they are not analytic (critical values,
kinks, ends) and the atoms. A multi-index a that is missing is exactly zero, by symmetry or by an exact value: a zero is
never read off a number. `push_through_formula` carries a law through a function of one variable, branch by branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sympy import Expr, Float, Symbol

from hermitex.exponents.laws.monotone_branches import Monotone, exact_point, modules_for, monotone_branches
from hermitex.kernels.arrays import lambdify
from hermitex.kernels.panel_rules import distinct_sorted, graded_nodes
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.precise import evaluate

WINDOW = 8.9  # P(|z| > 8.9) < 6e-19: below the rounding of a sum of size one
Index = tuple[int, ...]  # the variables of He_a with multiplicity: () for 1, (i,) for z_i, (i, i) for z_i^2 - 1, (i, j)


@dataclass(frozen=True)
class Law:
    """Densities of nu_a on [lo, hi], and atoms.

    Attributes
    ----------
    indices : the multi-indices a that may be non-zero; () first
    density : labels, shape (n,) -> array, shape (len(indices), n); zero outside [lo, hi]
    lo, hi : ends of the support, up to a mass below 1e-17
    knots : labels where a density is not analytic;  hints : labels around which it varies on its smallest scale
    atoms : pairs (label, values over the indices)
    continuous : whether there is a density at all
    power : of the grading that its knots need: 2 (inverse square roots, jumps), 4 (also logarithms), m for x^m
    plain : the density is a cheap formula, so that nothing is won by tabulating it
    rooted : after a root of order `power` the densities are analytic at every knot but 0, so that nothing is graded there
    """

    indices: tuple[Index, ...]
    density: Callable[[np.ndarray], np.ndarray]
    lo: float
    hi: float
    knots: tuple[float, ...] = ()
    hints: tuple[float, ...] = ()
    atoms: tuple[tuple[float, np.ndarray], ...] = ()
    continuous: bool = True
    power: int = 2
    plain: bool = True
    rooted: bool = False

    def breaks(self) -> np.ndarray:
        """The ends and every knot and hint between them, shape (n,)."""
        inside = [p for p in (*self.knots, *self.hints) if self.lo < p < self.hi]
        return distinct_sorted(np.array([self.lo, *inside, self.hi]))


# -- one variable ------------------------------------------------------------------------------------------------------
def normal_law(i: int) -> Law:
    """The law of z_i itself."""

    def density(y: np.ndarray) -> np.ndarray:
        phi = np.where(np.abs(y) <= WINDOW, np.exp(-y * y / 2) / np.sqrt(2 * np.pi), 0.0)
        return np.stack([phi, y * phi, (y * y - 1) * phi])

    return Law(((), (i,), (i, i)), density, -WINDOW, WINDOW, hints=(0.0,))


def noise_law(scale: float) -> Law:
    """A Gaussian of the given standard deviation that carries no direction."""
    base = normal_law(0)
    return Law(((),), lambda y: base.density(y / scale)[:1] / scale, -WINDOW * scale, WINDOW * scale, hints=(0.0,))


def radius_law(variables: Sequence[int]) -> Law:
    """The law of rho = sum z_i^2 over the variables: E[z_i z_j - delta_ij | rho] = delta_ij (rho/k - 1)."""
    from scipy.special import gammaln

    k = len(variables)
    top = (WINDOW + np.sqrt(k)) ** 2

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        inside = (y > 0) & (y <= top)
        s = np.where(inside, y, 1.0)
        chi = np.where(inside, np.exp((k / 2 - 1) * np.log(s) - s / 2 - k / 2 * np.log(2) - gammaln(k / 2)), 0.0)
        return np.stack([chi, *[(s / k - 1) * chi] * k])

    return Law(((), *[(i, i) for i in variables]), density, 0.0, float(top), knots=(0.0,))


# -- through a function ------------------------------------------------------------------------------------------------
def push_through_formula(law: Law, expr: Expr, x: Symbol, *, drop: Sequence[Index] = ()) -> Law:
    """The law of F(w), w of the given law; `drop`: indices known to be exactly zero for the new label."""
    if not expr.has(x):
        raise ValueError(f"{expr} does not depend on {x}")
    keep = [n for n, a in enumerate(law.indices) if a not in drop]
    expr = expr.xreplace({node: Float(evaluate(node, 20), 20) for node in expr.atoms(Expectation)})
    cuts = [p for p in law.knots if law.lo < p < law.hi]
    lo, hi = exact_point(law.lo), exact_point(law.hi)
    branches: list[Monotone] = []
    atoms: list[tuple[float, np.ndarray]] = []
    for piece in pieces(expr, x, lo, hi) if law.continuous else ():
        checkpoint("cutting a block into branches")
        ends = [float(piece.lo), float(piece.hi)]
        if not piece.expr.has(x):
            atoms.append((float(evaluate(piece.expr, 20)), mass(law, *ends)[keep]))
            continue
        inner = [c for c in cuts if ends[0] < c < ends[1]]
        branches += [b for a, c in pairwise(distinct_sorted(np.array([ends[0], *inner, ends[1]])))
                     for b in monotone_branches(piece.expr, x, a, c)]
    f = lambdify(x, expr, modules=modules_for(expr)) if law.atoms else None
    atoms += [(float(f(point)), value[keep]) for point, value in law.atoms] if f else []
    return push_through_branches(law, branches, merge_atoms(atoms), keep)


def push_through_branches(law: Law, branches: list[Monotone], atoms: list[tuple[float, np.ndarray]], keep: list[int]) -> Law:
    """The law of a function of the label, from its monotone branches; `keep`: the rows of nu that stay."""
    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(keep), *y.shape))
        for b in branches:
            inside = (y > min(b.at_lo, b.at_hi)) & (y < max(b.at_lo, b.at_hi))
            if inside.any():
                x = b.preimage(y[inside])
                steep = np.abs(b.slope(x))
                with np.errstate(all="ignore"):
                    value = law.density(x)[keep] / steep
                total[:, inside] += np.where(np.isfinite(value), value, 0.0)
        return total

    ends = [v for b in branches for v in b.reach()]
    window = {law.lo, law.hi} - set(law.knots)
    singular = [v for b in branches for p, v in ((b.lo, b.at_lo), (b.hi, b.at_hi))
                if np.isfinite(v) and (p not in window or _crowded(b, p))]
    rooted = not law.knots and not any(v and p in window and _crowded(b, p) for b in branches
                                       for p, v in ((b.lo, b.at_lo), (b.hi, b.at_hi)) if np.isfinite(v))
    finite = [v for v in ends if np.isfinite(v)] or [0.0]
    lo, hi = (min(finite), max(finite)) if branches else (0.0, 0.0)
    return Law(tuple(law.indices[n] for n in keep), density, lo, hi, tuple(distinct_sorted(np.array(singular))),
               _decades(lo, hi), tuple(atoms), bool(branches),
               common_power(law.power, *[n for b in branches for n in b.orders()]),
               law.plain and all(b.closed for b in branches), rooted)


def _crowded(b: Monotone, end: float) -> bool:
    """Do labels crowd at an end of the window, as those of a bounded F do? Their density is singular there."""
    still = 1e-5  # part of the mean slope below which labels crowd at an end; chosen by trial
    return bool(abs(b.slope(np.array([end]))[0]) < still * abs(b.at_hi - b.at_lo))


def common_power(*powers: int) -> int:
    """A power of the grading that makes all these roots analytic, if it is not too large."""
    largest = 12  # lcm(3, 4) = 12: from the end of a panel a higher power puts nodes below rounding
    return min(math.lcm(*powers), largest)


def _decades(lo: float, hi: float) -> tuple[float, ...]:
    """Labels that lead out to a far tail (next to a pole), one for each factor of 30."""
    far = [s * 30.0**k for s in (-1, 1) for k in range(3, 14) if lo < s * 30.0**k < hi]
    return tuple(far) if max(abs(lo), abs(hi)) > 1e6 else ()


def mass(law: Law, lo: float, hi: float) -> np.ndarray:
    """nu_a([lo, hi]) over the indices, shape (indices,): the continuous part."""
    inside = [p for p in law.breaks() if lo < p < hi]
    nodes, weights = graded_nodes(distinct_sorted(np.array([lo, *inside, hi])), 20, 12)
    return law.density(nodes) @ weights


def merge_atoms(atoms: list[tuple[float, np.ndarray]]) -> list[tuple[float, np.ndarray]]:
    """Atoms with equal labels added: (label, masses of shape (indices,))."""
    found: list[tuple[float, np.ndarray]] = []
    for label, value in sorted(atoms, key=lambda a: a[0]):
        if found and abs(found[-1][0] - label) <= 1e-12 * max(1.0, abs(label)):
            found[-1] = (found[-1][0], found[-1][1] + value)
        else:
            found.append((label, value))
    return found
