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
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from hermitex.errors import NoClosedForm
from hermitex.theories.overlaps.branches import CLOSE, NEXT, SHARP, WHAT, Onset
from hermitex.theories.overlaps.path import OverlapPath
from hermitex.theories.overlaps.state_evolution import StateEvolution

Array = np.ndarray
_CHECK = (2, 4, 8)  # small overlaps of K from which the rate is extrapolated, beside those of `SHARP`
_BEFORE = 5  # points of the branch at which it could have turned
_BESIDE = 1.01  # alphas are told apart from this ratio on
_WORTH = 1e-2  # an alpha that is known to no better is none


@dataclass(frozen=True)
class Reached:
    """Where directions are reached: alpha, its error, and the mean overlap of what is known before them."""

    alpha: float
    error: float
    overlap: float


def reached(evolution: StateEvolution, known: Array, hidden: Array, alone: float) -> Reached:
    """Where the `hidden` directions leave zero while those that are `known` are so in part.

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
    P, K = _projector(known), _projector(hidden)
    branch, fine = (_Continued(evolution, P, K, f) for f in (coarse, 1.0 if coarse > 1 else min(output.beside)))
    q, resolved = branch.crossing(1 - 1.2*float(evolution.smallest.max()))
    places = np.linspace(0, q, _BEFORE + 2)[1:-1]
    alphas = [branch.alpha(p) for p in places]
    if not resolved:
        return _known_exactly(branch, [*alphas, branch.alpha(q)], alone)
    alpha, before, width = branch.alpha(q), int(np.argmax(alphas)), places[1] - places[0]
    if alphas[before] > alpha:  # the branch turned before, and AMP leaps over q from there
        p = float(places[before])
        moved = fine.alpha(p) - alphas[before]
        found = Reached(branch.turning(p - width, p + width) + moved, output.doubt*abs(moved), q)
    else:
        slope, rest = branch.slope(q), branch.excess(q, SHARP)
        moved = fine.alpha(q) - alpha - slope*(fine.excess(q) - branch.excess(q))
        found = Reached(alpha - slope*rest + moved, output.doubt*abs(moved) + abs(slope*(branch.excess(q, _CHECK) - rest)), q)
    if found.alpha + found.error < alone*(1 - _WORTH):
        raise NoClosedForm(WHAT, f"{found.alpha:.6g} came out, below {alone:.6g} of perfect knowledge", NEXT)
    if not found.error < _WORTH*found.alpha:
        raise NoClosedForm(WHAT, f"{found.alpha:.3g} is known to {found.error:.1e} only", NEXT)
    return found


class _Continued(Onset):
    """The rate of the hidden directions on the face of the known ones, by F of a fineness."""

    def __init__(self, evolution: StateEvolution, P: Array, K: Array, fineness: float = 1.0) -> None:
        path = OverlapPath(partial(evolution.on, fineness=fineness), P, P, P/np.trace(P), np.zeros_like(P),
                           float(evolution.smallest.max()))
        super().__init__(evolution, path, K)

    def slope(self, q: float) -> float:
        """d alpha/d log(alpha lambda) along the branch."""
        p = float(expit(logit(q) + 100*CLOSE))
        return (self.alpha(p) - self.alpha(q))/(self.excess(p) - self.excess(q))

    def turning(self, low: float, high: float) -> float:
        """The largest alpha between two overlaps."""
        found = minimize_scalar(lambda q: -self.alpha(float(q)), bounds=(low, high), method="bounded", options={"xatol": 1e-7})
        return float(-found.fun)


def _known_exactly(branch: _Continued, alphas: Sequence[float], alone: float) -> Reached:
    """What is not reached before the others come to be known exactly, at a finite alpha, is so at `alone`."""
    if branch.perfect and branch.path.line.edge == 1 and max(alphas)*_BESIDE < alone:
        return Reached(alone, 0.0, 1.0)
    raise NoClosedForm(WHAT, "the directions before are nearer to exact knowledge there than is resolved", NEXT)


def _projector(rows: Array) -> Array:
    """The projector on the span of some rows."""
    q, _ = np.linalg.qr(np.asarray(rows, dtype=float).T)
    return np.asarray(q @ q.T)
