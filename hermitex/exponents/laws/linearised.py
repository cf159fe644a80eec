"""1/alpha_c = lambda_max(E[G (x) G]), G(y) = E[zz^T - I|Y=y]: the eigenproblem on symmetric matrices.

The state evolution near M = 0 is M <- alpha F(M), F(M) = E[G M G] (Troiani et al. 2024). E[G_ij G_kl] comes from the
measures nu_a of `density`; a component that is exactly zero decouples its block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np

from hermitex.errors import NoClosedForm
from hermitex.exponents.laws.density import WINDOW, Index, Law
from hermitex.kernels.panel_rules import half_template
from hermitex.symbolic.budget import checkpoint

_DEEP, _SHALLOW, _SMOOTH = 24, {2: 8, 4: 5}, 4  # factors by which panels shrink towards a knot at 0, elsewhere, and towards a hint
_WIDEST = WINDOW**2  # |E[z_i z_j|y]| is at most this within the window
Couplings = dict[tuple[Index, Index], Any]  # E[E[He_a|Y] E[He_b|Y]], |a| = |b|
Kernels = Callable[[np.ndarray], Iterable[np.ndarray]]  # w -> the probabilities of the labels given w


@dataclass(frozen=True)
class LabelCouplings:
    """The couplings of orders one and two of a label, and their absolute error.

    scatter : the part of the error that is independent of those at other u, as that of random points is
    method : how the law of the label was found
    """

    couplings: Couplings
    error: float
    scatter: float = 0.0
    method: str = ""


def most_precise(found: Sequence[LabelCouplings], *, times: float = 3.0) -> LabelCouplings:
    """The one with the least error; if another contradicts it, the error is at least their distance.

    times : of their errors, from where on a distance is a contradiction. An error is an estimate: a rough answer that is as
        far off as it says does not take the digits of a fine one

    Examples
    --------
    >>> key = ((0, 0), (0, 0))
    >>> most_precise([LabelCouplings({key: 0.5}, 1e-3), LabelCouplings({key: 0.5004}, 1e-6)]).error
    1e-06
    >>> round(most_precise([LabelCouplings({key: 0.5}, 1e-3), LabelCouplings({key: 0.6}, 1e-6)]).error, 9)
    0.1
    """
    best = min(found, key=lambda f: f.error)
    apart = [(_distance(best, f), f.error) for f in found if f is not best]
    return replace(best, error=max([best.error, *(d for d, error in apart if d > times*(best.error + error))]))


def _distance(one: LabelCouplings, two: LabelCouplings) -> float:
    """Over the couplings of the orders that both know; what is not listed is zero."""
    orders = {len(a) for a, _ in one.couplings} & {len(a) for a, _ in two.couplings}
    return max((abs(float(one.couplings.get(key, 0.0)) - float(two.couplings.get(key, 0.0)))
                for key in {*one.couplings, *two.couplings} if len(key[0]) in orders), default=0.0)


def mix_couplings(parts: Iterable[tuple[float, LabelCouplings]]) -> LabelCouplings:
    """sum w c(u) over pairs (w, the couplings at u): errors add up, their independent parts in squares; the method of the worst.

    Examples
    --------
    >>> key = ((0, 0), (0, 0))
    >>> mix_couplings([(0.5, LabelCouplings({key: 1.0}, 0.2)), (0.5, LabelCouplings({key: 3.0}, 0.4))])
    LabelCouplings(couplings={((0, 0), (0, 0)): 2.0}, error=0.30000000000000004, scatter=0.0, method='')
    """
    total: Couplings = {}
    wrong = squares = worst = 0.0
    method = ""
    for weight, found in parts:
        wrong += weight*(found.error - found.scatter)
        squares += (weight*found.scatter)**2
        worst, method = max((worst, method), (weight*found.error, found.method))
        for key, value in found.couplings.items():
            total[key] = total.get(key, 0.0) + weight*value
    return LabelCouplings(total, wrong + squares**0.5, squares**0.5, method)


def label_couplings(law: Law, *, orders: tuple[int, int] = (23, 18), kernels: Kernels | None = None) -> LabelCouplings:
    """E[E[He_a|Y] E[He_b|Y]] = int nu_a nu_b/nu_0 dy + the sum over atoms.

    The error: two quadrature orders compared, and how far the measures miss nu_0(R) = 1 and nu_a(R) = E[He_a] = 0, which
    shows the errors of the densities' own convolutions.

    kernels : the probabilities of finitely many labels, or counts, that are drawn given the label of this law
    """
    (fine, missed), (coarse, _) = (_integral(law, order, kernels) for order in orders)
    error = max((float(abs(fine[key] - coarse[key])) for key in fine), default=0.0)
    return LabelCouplings(fine, max(error, missed))


def sample_law(law: Law, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and the measures nu_a at them, shape (k, n): the atoms, and the densities times their weights.

    Densities that do not count are left out; where labels run over many decades one counts over the range of the label itself.
    """
    points = [np.array([p for p, _ in law.atoms])]
    values = [np.array([v for _, v in law.atoms]).T.reshape(len(law.indices), -1)]
    negligible = 1e-18  # of a typical density: a smaller one has a negligible mass
    wide = 1e6  # labels over more than six decades, whose mass is compared by |y| nu_0, the density of log|y|
    if law.continuous:
        checkpoint("integrating over the labels")
        y, w = _labels(law, order)
        nu = law.density(y)
        reach = np.maximum(1.0, np.abs(y)) if law.hi - law.lo > wide else 1.0
        kept = nu[0] * reach > negligible * _scale(y, w * nu[0])
        points.append(y[kept])
        values.append((nu * w)[:, kept])
    return np.concatenate(points), np.concatenate(values, axis=1)


def of_masses(indices: Sequence[Index], nu: np.ndarray) -> Couplings:
    """The couplings of finitely many labels from nu_a({y}), shape (k, labels)."""
    nu = nu[:, nu[0] > 0]
    # |E[z_i z_j - delta_ij|y]| stays below the square of the window: rounding in a far tail must not exceed it.
    mean = np.clip(nu / nu[0], -_WIDEST, _WIDEST)
    return {(a, b): float(np.sum(mean[n] * mean[m] * nu[0]))
            for (n, a), (m, b) in combinations_with_replacement(enumerate(indices), 2) if len(a) == len(b) > 0}


def _integral(law: Law, order: int, kernels: Kernels | None) -> tuple[Couplings, float]:
    """The couplings, and what the masses that are missing take off them."""
    y, nu = sample_law(law, order)
    lost = _lost(np.abs(nu.sum(axis=1) - np.eye(len(nu))[0]))
    return of_masses(law.indices, nu if kernels is None else np.array([nu @ k for k in kernels(y)]).T), lost


def _lost(missing: np.ndarray) -> float:
    """The part of a coupling that is missing with the tails of nu_a: nu_a^2/nu_0, up to twice that where m grows."""
    tabulated = 1e-10  # the mass that tables of laws may lose
    mean = missing/max(missing[0], tabulated)  # less mass than that is what tables lose, not a tail
    return float(np.max(missing*np.where(mean > 2, np.minimum(2*mean, _WIDEST), 1.0)))


def _scale(y: np.ndarray, masses: np.ndarray) -> float:
    """A typical density: half the mass over the range that holds the middle half."""
    cumulative = np.cumsum(masses)
    low, high = np.interp([0.25 * cumulative[-1], 0.75 * cumulative[-1]], cumulative, y)
    return 0.5 * cumulative[-1] / max(high - low, 1e-300)


def _labels(law: Law, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes graded towards every knot: deep at 0, where labels have all their digits, and no deeper than they elsewhere."""
    nodes, weights = [], []
    for a, b in pairwise(law.breaks()):
        middle = (a + b) / 2
        for end, width in ((a, middle - a), (b, middle - b)):
            knot = any(abs(end - k) <= 1e-13 * max(1.0, abs(k)) for k in law.knots)
            depth = (_DEEP if end == 0 else _SHALLOW.get(law.power, 5)) if knot else _SMOOTH
            x, w = half_template(order, depth, law.power if knot else 2)
            nodes.append(end + width * x)
            weights.append(abs(width) * w)
    if not nodes:  # the ends are the same number, or none
        raise NoClosedForm("alpha_c", "its labels run beyond every number", "Write the target on another scale")
    y, w = np.concatenate(nodes), np.concatenate(weights)
    order_of = np.argsort(y, kind="stable")
    return y[order_of], w[order_of]


def operator(couplings: Couplings, variables: list[int], zero: Any = 0.0) -> tuple[list[Index], list[list[Any]]]:
    """F(M) = E[G M G] on symmetric matrices over the basis e_i e_i^T, (e_i e_j^T + e_j e_i^T)/sqrt2: (basis, matrix).

    In that basis the matrix is symmetric and its entries are polynomials of the couplings with rational coefficients
    after conjugation by the square roots, which are kept out: entry (ij, kl) is that of the unnormalised basis.
    """
    basis: list[Index] = list(combinations_with_replacement(variables, 2))

    def of(a: Index, b: Index) -> Any:
        a, b = tuple(sorted(a)), tuple(sorted(b))
        return couplings.get((a, b), couplings.get((b, a), zero))

    # (G M G)_ij = sum_kl G_ik M_kl G_lj
    rows = [[of((i, k), (p, j)) if k == p else of((i, k), (p, j)) + of((i, p), (k, j)) for k, p in basis]
            for i, j in basis]
    return basis, rows


def largest(couplings: Couplings, variables: list[int], within: float = 1e-9) -> tuple[float, np.ndarray]:
    """The largest eigenvalue of F, and its eigenspace (up to `within` of it) as symmetric matrices, shape (m, r, r)."""
    r = len(variables)
    F = tensor_of(couplings, r).transpose(0, 3, 1, 2)  # F(M)_ij = sum_kl E[G_ik G_lj] M_kl; it sends antisymmetric M to 0 below
    F = (F + F.swapaxes(2, 3))/2
    values, vectors = np.linalg.eigh(((F + F.swapaxes(0, 1))/2).reshape(r*r, r*r))
    return float(values[-1]), vectors.T[values >= values[-1] * (1 - within)].reshape(-1, r, r)


def supported_directions(couplings: Couplings, variables: list[int], within: float = 1e-9) -> tuple[np.ndarray, np.ndarray, float]:
    """(rows (k, r) that eigenvectors M of the largest eigenvalue charge, rows (m, r) left at zero, the eigenvalue on the latter).

    Rows are orthonormal; eigenvalues closer than `within`, their error, count as equal. F leaves the second rows at zero to
    first order; alone they have the last number for 1/alpha_c.
    """
    _, top = largest(couplings, variables, within)
    weights, vectors = np.linalg.eigh(sum(m @ m for m in top))
    silent = weights < max(1e-10, within**2) * weights[-1]
    first, rest = vectors[:, ~silent].T, vectors[:, silent].T
    if not len(rest):
        return first, rest, 0.0
    return first, rest, largest(rotate_couplings(couplings, rest), list(range(len(rest))))[0]


def rotate_couplings(couplings: Couplings, R: np.ndarray) -> Couplings:
    """Couplings of order two over the coordinates x = R z, R of shape (m, r) with orthonormal rows, from those over z.

    Examples
    --------
    >>> back = rotate_couplings({((0, 0), (0, 0)): 1.0}, np.array([[0.6, -0.8], [0.8, 0.6]]))
    >>> round(back[(0, 0), (0, 1)], 4), round(0.6**3*0.8, 4)
    (0.1728, 0.1728)
    """
    return couplings_of(np.einsum("ai,bj,ck,dm,ijkm->abcd", R, R, R, R, tensor_of(couplings, R.shape[1]), optimize=True))


def tensor_of(couplings: Couplings, r: int) -> np.ndarray:
    """E[m_ij m_kl] of the couplings of order two, shape (r, r, r, r)."""
    T = np.zeros((r,)*4)
    for (a, b), value in couplings.items():
        if len(a) == 2:
            for (i, j), (k, m) in ((a, b), (b, a)):
                T[i, j, k, m] = T[j, i, k, m] = T[i, j, m, k] = T[j, i, m, k] = value
    return T


def couplings_of(T: np.ndarray) -> Couplings:
    """The couplings in a tensor of shape (r, r, r, r), 0 where they are zero up to rounding."""
    pairs = list(combinations_with_replacement(range(len(T)), 2))
    couplings = {(a, b): round(float(T[a + b]), 15) for a, b in combinations_with_replacement(pairs, 2)}
    return {key: value for key, value in couplings.items() if value != 0}
