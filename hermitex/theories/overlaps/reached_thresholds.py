r"""alpha(q) lambda(q) = 1, q = tr(P M)/tr(P): where hidden directions K leave zero while those before, P, are known in part.

Along the branch M = P M P that opens from zero lambda is the largest rate of K (dF/dM) K, in which nothing of K is known. Both F
and lambda rise with M. So AMP, which is at the least fixed point of each alpha, reaches K at the largest alpha(q') of all q' <= q.
Source: Troiani et al. (2024); the linearisation about partial knowledge is this package's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit

from hermitex.errors import NoClosedForm
from hermitex.theories.overlaps.channel import is_diagonal
from hermitex.theories.overlaps.overlap_branch import OverlapPath, compressed_basis
from hermitex.theories.overlaps.state_evolution import StateEvolution

Array = np.ndarray
_CLOSE = 1e-5  # of logit(q), by the slope from one small overlap
_SHARP = (1, 2, 4)  # the small overlaps of K from which the rate is extrapolated
_WHAT, _NEXT = "where the state evolution reaches the directions", "Follow the overlaps with hermitex curve bayes-amp"


@dataclass(frozen=True)
class Reached:
    """The threshold of some directions: alpha, its error, and the mean overlap of the directions known before them."""

    alpha: float
    error: float
    overlap: float


def reached_threshold(evolution: StateEvolution, known: Array, hidden: Array, alone: float) -> Reached:
    """The alpha at which the `hidden` directions leave zero while the `known` ones are known in part.

    Parameters
    ----------
    known, hidden : rows over the variables of the label, shapes (k, r), (h, r)
    alone : alpha at which they would be reached were the others known perfectly, which is less

    Raises
    ------
    NoClosedForm : the quadrature does not resolve it, and why. BudgetExceeded.
    """
    output = evolution.output
    # followed by the cheaper of two quadratures, the other moves the end: what they differ by is small, and the error
    coarse = max(1.0, *output.beside)
    branch = _Continued(evolution, _projector(known), _projector(hidden), coarse)
    fine = _Continued(evolution, branch.P, branch.K, 1.0 if coarse > 1 else min(output.beside))
    q, resolved = branch.crossing(1 - 1.2*evolution.least)
    looked_at = 5  # points of the branch at which it could have turned
    places = np.linspace(0, q, looked_at + 2)[1:-1]
    alphas = [branch.alpha(p) for p in places]
    if not resolved:
        return _known_exactly(branch, [*alphas, branch.alpha(q)], alone)
    alpha, before, width = branch.alpha(q), int(np.argmax(alphas)), places[1] - places[0]
    check = (2, 4, 8)  # others, to compare with
    if alphas[before] > alpha:  # the branch turned before, and AMP leaps over q from there
        p = float(places[before])
        moved = fine.alpha(p) - alphas[before]
        found = Reached(branch.turning(p - width, p + width) + moved, output.doubt*abs(moved), q)
    else:
        slope, rest = branch.slope(q), branch.excess(q, _SHARP)
        moved = fine.alpha(q) - alpha - slope*(fine.excess(q) - branch.excess(q))
        found = Reached(alpha - slope*rest + moved, output.doubt*abs(moved) + abs(slope*(branch.excess(q, check) - rest)), q)
    worth = 1e-2  # an alpha that is known to no better is none
    if found.alpha + found.error < alone*(1 - worth):
        raise NoClosedForm(_WHAT, f"{found.alpha:.6g} came out, below {alone:.6g} of perfect knowledge", _NEXT)
    if not found.error < worth*found.alpha:
        raise NoClosedForm(_WHAT, f"{found.alpha:.3g} is known to {found.error:.1e} only", _NEXT)
    return found


class _Continued:
    """alpha(q) and the rate of the hidden directions on the face of the known ones."""

    def __init__(self, evolution: StateEvolution, P: Array, K: Array, fineness: float = 1.0) -> None:
        self.evolution, self.P, self.K = evolution, P, K
        self.most = 1 - evolution.least
        F = partial(evolution.F_within, fineness=fineness)
        self.path = OverlapPath(F, P, P, P/np.trace(P), np.zeros_like(P), 1 - self.most)
        self.span = compressed_basis(evolution.space.basis, K)

    @property
    def perfect(self) -> bool:
        """Are the known directions variables that can be known exactly at a finite alpha?"""
        perfect = np.broadcast_to(self.evolution.output.perfect, (len(self.P),))
        return is_diagonal(np.round(self.P, 12)) and bool(perfect[np.diag(self.P) > 0].all())

    def alpha(self, q: float) -> float:
        """alpha at which the known directions have the mean overlap q."""
        M, alpha = self.path.at(float(q))
        settled = 1e-7  # |H(M) - M| of a point on the branch
        if not float(np.abs(self.path.held(M, q)[0] - M).max()) < settled:
            raise NoClosedForm(_WHAT, "the overlaps of the directions before do not settle", _NEXT)
        if np.linalg.eigvalsh(M)[-1] > self.most:
            raise NoClosedForm(_WHAT, "a direction before is nearer to exact knowledge than is resolved", _NEXT)
        return alpha

    def excess(self, q: float, seeds: Sequence[float] = (1,)) -> float:
        """log(alpha lambda) at a point that is on the branch."""
        self.alpha(q)
        return self.path.excess(q, self.K, self.span, seeds)

    def crossing(self, last: float) -> tuple[float, bool]:
        """q where alpha lambda = 1, or the last that is resolved and False where that comes beyond it."""
        def excess(x: float) -> float:
            return self.excess(float(expit(x)))

        first = 0.0  # logit(q) at q = 1/2
        low = high = first
        top = float(logit(last))
        far = -2.0  # log(alpha lambda) at q = 1/2 below which the end of the branch is looked at first
        if self.perfect and excess(first) < far and excess(top) < 0:
            return float(expit(top)), False
        step = 1.2  # of logit(q): alpha lambda rises about like q/(1 - q)
        while excess(high) < 0:
            if high == top:
                return float(expit(top)), False
            low, high = high, min(high - step*excess(high) + 1e-2, top)
        least = -6.0  # logit(q) below which no crossing is sought: q = 0.0025
        while excess(low) > 0:
            low, high = low - step*excess(low) - 1e-2, low
            if low < least:
                raise NoClosedForm(_WHAT, "the directions before are hardly known there", _NEXT)
        x = float(brentq(excess, low, high, xtol=_CLOSE))
        # from here the rate is extrapolated: one step more, and what is left is linear
        near = float(expit(x))
        steep = (excess(x + _CLOSE*100) - excess(x))/(_CLOSE*100)
        return float(expit(x - self.excess(near, _SHARP)/steep)), True

    def slope(self, q: float) -> float:
        """d alpha/d log(alpha lambda) along the branch."""
        p = float(expit(logit(q) + 100*_CLOSE))
        return (self.alpha(p) - self.alpha(q))/(self.excess(p) - self.excess(q))

    def turning(self, low: float, high: float) -> float:
        """The largest alpha between two overlaps."""
        found = minimize_scalar(lambda q: -self.alpha(float(q)), bounds=(low, high), method="bounded", options={"xatol": 1e-7})
        return float(-found.fun)


def _known_exactly(branch: _Continued, alphas: Sequence[float], alone: float) -> Reached:
    """Directions that are not reached before the others are known exactly, at a finite alpha, are reached at `alone`."""
    beside = 1.01  # alphas with a larger ratio count as different
    if branch.perfect and branch.path.line.edge == 1 and max(alphas)*beside < alone:
        return Reached(alone, 0.0, 1.0)
    raise NoClosedForm(_WHAT, "the directions before are nearer to exact knowledge there than is resolved", _NEXT)


def _projector(rows: Array) -> Array:
    """The projector on the span of some rows."""
    q, _ = np.linalg.qr(np.asarray(rows, dtype=float).T)
    return np.asarray(q @ q.T)
