r"""f(M) = (tr M + log det(1 - M))/2 + alpha Psi(M), Phi = sup_M f(M): the Bayes free entropy, and the information of the labels.

Psi(M) = E log Z_out has the gradient F(M)/2, F = E[g_out g_out^T]: Psi(M) - Psi(0) is an integral of F along a line, and the
stationary points of f are the fixed points of the state evolution. Psi(0) = E log P(y), Psi(1) = E log P(y|z), and
I(W; Y|X)/d = alpha Psi(1) - Phi. Along one overlap f = r [alpha P(q) + q + log(1 - q)]/2, P(q) = int_0^q F: the alphas at which its
largest value jumps are the slopes of the edges of a convex hull. Sources: barbier2019, aubin2018.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import e
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import dct

from hermitex.exponents.laws.density import Law
from hermitex.exponents.laws.linearised import sample_law
from hermitex.exponents.observed_law import ObservedLaw
from hermitex.theories.overlaps.cell_grid import LabelAxis
from hermitex.theories.overlaps.channel import FiniteOutput, full_points
from hermitex.theories.overlaps.fixed_point_line import OverlapLine

Array = np.ndarray


class Gain(NamedTuple):
    """Psi(M) - Psi(0) and its error."""

    value: float
    error: float


def gain_of_labels(F: Callable[[Array], Array], M: Array, tolerance: float) -> Gain:
    """Psi(M) - Psi(0) = (1/2) int_0^1 tr(F(t M) M) dt, by nested Clenshaw-Curtis rules in -log(1 - t |M|)/2.

    F grows like 1/V, V^(-1/2) or not at all as V -> 0: in the logarithm of V it is smooth in each case.
    """
    size = float(np.linalg.eigvalsh(M)[-1])
    if size <= 0:
        return Gain(0.0, 0.0)
    end = -np.log1p(-size)/2
    kept: dict[float, float] = {}

    def value(x: float) -> float:
        if x not in kept:
            v = end*(1 + x)/2  # 1 - t |M| = exp(-2 v)
            t = -np.expm1(-2*v)/size
            kept[x] = float(np.sum(F(t*M)*M))*np.exp(-2*v)/size
        return kept[x]

    found: list[float] = []
    n, most, least = 8, 128, 3  # nodes; rules to tell the rate of their convergence
    while True:
        x = np.round(np.cos(np.pi*np.arange(n + 1)/n), 15)
        found.append(end/2*float(_clenshaw_curtis(n) @ [value(float(a)) for a in x]))
        moves = np.abs(np.diff(found))
        # each doubling squares what is left, so that the last move times its ratio to the one before is more
        error = float(moves[-1]*min(1.0, moves[-1]/max(moves[-2], 1e-300))) if len(found) >= least else np.inf
        if error < tolerance or n == most:
            return Gain(found[-1], error)
        n *= 2


def _clenshaw_curtis(n: int) -> Array:
    """The weights at cos(pi j/n), j = 0 ... n, n even.

    >>> _clenshaw_curtis(2).round(12).tolist()
    [0.333333333333, 1.333333333333, 0.333333333333]
    """
    moments = np.zeros(n + 1)
    moments[::2] = 2/(1 - np.arange(0, n + 1, 2.0)**2)
    weights = dct(moments, type=1)/n
    weights[[0, -1]] /= 2
    return np.asarray(weights)


def entropic(M: Array) -> float:
    """(tr M + log det(1 - M))/2, the prior's part of f: -inf where a direction is known exactly."""
    v = 1 - np.linalg.eigvalsh(M)
    return float((np.sum(1 - v) + np.sum(np.log(v)))/2) if np.all(v > 0) else -np.inf


# -- the labels -----------------------------------------------------------------------------------------------------------
def label_entropy(found: ObservedLaw) -> float:
    """Psi(0) = E log P(y): with respect to dy where labels have a density, to counting where they have a mass of their own."""
    single = found.masses[0] if found.law is None else np.array([nu[0] for _, nu in found.atoms])
    at_zero = sum(float(nu[0]) for a, nu in found.atoms if a == 0)
    total = float(np.sum(single[single > 0]*np.log(single[single > 0])))
    if found.law is not None:
        total += _of_density(found.law)
    return total - (np.log(2)*(1 - at_zero) if found.folded else 0.0)  # y = +-|y|, each with half of the chance


def _of_density(law: Law) -> float:
    order = 23  # nodes of a panel, as those of the thresholds
    atoms = {a for a, _ in law.atoms}
    y, nu = sample_law(law, order)
    inside = np.array([label not in atoms for label in y])
    density = law.density(y[inside])[0]
    mass, positive = nu[0][inside], density > 0
    return float(np.sum(mass[positive]*np.log(density[positive])))


def continuous_mass(found: ObservedLaw) -> float:
    """The probability of labels that have a density."""
    return 0.0 if found.law is None else 1 - sum(float(nu[0]) for _, nu in found.atoms)


def known_labels(name: str, level: float, found: ObservedLaw, output: Any) -> float:
    """Psi(1) = E log P(y|z); inf for labels with a density and no noise, nan where it is not computed."""
    if name in ("deterministic", "random_sign") and found.law is not None:
        return np.inf
    if name == "deterministic":
        return 0.0
    if name == "random_sign":
        return -np.log(2)*(1 - sum(float(nu[0]) for a, nu in found.atoms if a == 0))
    if name == "gaussian":
        return -0.5*float(np.log(2*np.pi*e*level))
    if name == "flip":
        return float(sum(p*np.log(p) for p in (level, 1 - level) if p > 0))
    return _averaged(output) if isinstance(output, FiniteOutput) and len(output.grid.axes) < 3 else np.nan


def _averaged(output: FiniteOutput) -> float:
    """E_z sum_k P(y_k|z) log P(y_k|z), on panels in z."""
    width = {1: 0.05, 2: 0.2}[output.r]  # of a panel, over 2.2: next to a rate or a chance that vanishes P log P is not smooth
    axes = [LabelAxis(np.union1d(a.cuts, [0.0])) for a in output.grid.axes]
    points, dz = full_points(axes, width, 1.0)
    weight = dz*np.exp(-np.sum(points**2, axis=1)/2)/(2*np.pi)**(output.r/2)
    total, chunk = 0.0, max(1, 4_000_000//len(output.labels))  # 32 MB
    for k in range(0, len(points), chunk):
        z = list(points[k:k + chunk].T)
        p = np.broadcast_to(np.asarray(output.grid.law(z), dtype=float), (len(output.labels), len(z[0])))
        density = p if output.law is None else np.asarray(output.law(output.labels[:, None], z), dtype=float)
        logs = np.log(np.where(density > 0, density, 1.0))
        total += float(np.sum(p*logs @ weight[k:k + chunk]))
    return total


# -- jumps of the largest value --------------------------------------------------------------------------------------------
def jumps(line: OverlapLine, recovered: float) -> list[tuple[float, float, float]]:
    """(alpha, q before, q after) where the largest value of f along one overlap jumps.

    recovered : the alpha from which f grows without bound as q -> 1; inf where it does not

    f = alpha P(q) - Q(q), Q = -q - log(1 - q): the q that count are those of the lower convex hull of (P, Q), its edges the jumps.
    """
    places = 6000  # in -log(1 - q): jumps by less than five of them are not told from rounding
    v = np.linspace(0, -2*np.log(line.t0), places + 1)[1:]
    q = -np.expm1(-v)
    rate = np.exp(line._gain(q, np.exp(-v/2)))*q  # F dq/dv
    P = np.concatenate([[0.0], rate[0]*v[0]/max(line.order + 1, 1) + np.concatenate(
        [[0.0], np.cumsum((rate[1:] + rate[:-1])/2*np.diff(v))])])
    Q, q = np.concatenate([[0.0], v - q]), np.concatenate([[0.0], q])
    hull: list[int] = []
    for k in range(len(q)):
        while len(hull) > 1 and _turns(P, Q, hull[-2], hull[-1], k) <= 0:
            hull.pop()
        hull.append(k)
    found: list[tuple[float, float, float]] = []
    least = 5  # places
    for a, b in pairwise(hull):
        slope = (Q[b] - Q[a])/(P[b] - P[a])
        if slope > recovered:
            return [*found, (recovered, float(q[a]), 1.0)]
        if b - a > least:
            found.append((float(slope), float(q[a]), float(q[b])))
    return found


def _turns(P: Array, Q: Array, a: int, b: int, c: int) -> float:
    """Positive where a, b, c turn to the left."""
    return float((P[b] - P[a])*(Q[c] - Q[a]) - (Q[b] - Q[a])*(P[c] - P[a]))


def polished_jump(line: OverlapLine, jump: tuple[float, float, float], gain: Callable[[float], float], r: int) -> float:
    """alpha at which both ends of a jump have the same f, by F itself; gain(q) = Psi(q 1) - Psi(0)."""
    alpha, *ends = jump
    if ends[1] == 1:
        return alpha
    steps, settled = 6, 1e-11  # Newton's: f is stationary in both ends, so that digits double
    for _ in range(steps):
        stable = [q for q, ok in line.fixed_points(alpha) if ok]
        low, high = (min(stable, key=lambda q, e=end: abs(q - e)) for end in ends)  # type: ignore[misc]
        if low == high:
            return alpha
        rise = gain(high) - gain(low)
        move = (entropic(high*np.eye(r)) - entropic(low*np.eye(r)))/rise + alpha
        alpha, ends = alpha - move, [low, high]
        if abs(move) < settled*alpha:
            break
    return float(alpha)
