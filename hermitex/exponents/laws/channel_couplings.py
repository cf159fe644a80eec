"""nu_a(y|u) = int p(y|u, v) He_a(v) phi(v) dv: the couplings of a user's channel P(y|z), over a grid in what is hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations_with_replacement
from math import prod

import numpy as np
from sympy import Rational, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel
from hermitex.exponents.labels.law_check import DrawnLaw
from hermitex.exponents.laws.block_laws import zeros_by_flips
from hermitex.exponents.laws.coupling_averages import next_change, over_all_known
from hermitex.exponents.laws.density import WINDOW, without_guard
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.linearised import LabelCouplings
from hermitex.kernels.panel_rules import zeros_on
from hermitex.numbers.gauss import legendre_on
from hermitex.symbolic.breaks.switches import switch_arguments
from hermitex.symbolic.budget import checkpoint, unless_refused
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbols import normals

_PANELS = {1: (140, 280), 2: (8, 12), 3: (2, 4)}  # in each hidden variable: for comparison, and for the result


class ChannelCouplings:
    """The couplings given u, by a product grid in the hidden variables, and by a coarser one.

    At each label the line of a single hidden variable is cut where a switch of P(y|.) jumps or bends.

    Raises
    ------
    NoClosedForm : more than three hidden variables enter P(y|z).
    """

    def __init__(self, channel: Channel, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> None:
        self.channel, p = channel, channel.p
        used = [x for x in hidden if p.has(x)]
        if len(used) > 3:
            raise NoClosedForm("alpha_c", "a channel P(y|z) of more than three variables is not integrated",
                               "Write it as a named channel of g(z)")
        names = (*given, *used)
        self.law = DrawnLaw(p, channel.y, names)
        self.switches = [without_guard(e, channel.y, *names) for e in switch_arguments(p)
                         if e.has(used[0])] if len(used) == 1 else []
        self.spots = {list(hidden).index(v): n for n, v in enumerate(used)}
        drop = zeros_by_flips(p, used, {v: i for i, v in enumerate(hidden)})
        self.indices = [a for a in indices(len(hidden)) if set(a) <= set(self.spots) and a not in drop]
        self.keys = [(a, b) for a, b in combinations_with_replacement(self.indices, 2) if len(a) == len(b) > 0]
        self.pairs = np.array([[self.indices.index(a) for a in key] for key in self.keys]).reshape(-1, 2).T
        self.edges = [np.linspace(-WINDOW, WINDOW, count + 1) for count in _PANELS.get(len(used), ())]
        self.grids = [self._grid(edges) for edges in self.edges]

    def _grid(self, edges: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The points, and He_a of them with the weights of the normal law, shape (indices, points)."""
        order = 10  # points of a panel; the two counts of panels in _PANELS are chosen for it
        x, w = (a.ravel() for a in legendre_on(edges, order))
        w = w*np.exp(-x*x/2)/np.sqrt(2*np.pi)
        z = [g.ravel() for g in np.meshgrid(*[x]*len(self.spots), indexing="ij")]
        weight = prod(np.meshgrid(*[w]*len(self.spots), indexing="ij"), start=np.ones(())).ravel()
        return z, np.stack([prod([(z[n], z[n]**2 - 1)[a.count(i) - 1] for i, n in self.spots.items() if i in a], start=weight)
                            for a in self.indices])

    def second(self, u: Sequence[float] = ()) -> LabelCouplings:
        """The couplings of orders one and two at u; the error of the grids in z and in the labels, and of what is beyond."""
        if not self.keys:
            return LabelCouplings({}, 0.0)

        def terms(labels: np.ndarray) -> np.ndarray:
            return np.stack([self._of_labels(u, labels, n) for n in range(2)], axis=1)

        support = self.channel.support
        if self.channel.finite:
            (coarse, fine), lost = terms(np.array([float(v) for v in support])).sum(axis=0), 0.0
        else:
            (coarse, fine), lost = (_counted if support == "integers" else _integrated)(terms, self.grids[-1][1].shape[1])
        missing = abs(fine[0] - 1)
        if missing > 1e-12:  # E[z_i^2 - 1|y] of the labels that are left out is at most the square of the window
            lost += missing*WINDOW**2
        size = float(np.max(np.abs(fine[1:]), initial=0.0))
        lost += _rounding(size)
        return LabelCouplings(dict(zip(self.keys, fine[1:].tolist(), strict=True)),
                      float(np.max(np.abs(fine - coarse)[1:], initial=0.0)) + lost)

    def _of_labels(self, u: Sequence[float], labels: np.ndarray, n: int) -> np.ndarray:
        """nu_0, and what each label adds to each coupling, by the n-th grid: shape (labels, 1 + couplings)."""
        nu = self.measures(labels, u, n)
        with np.errstate(all="ignore"):
            return np.vstack([nu[:1], np.where(nu[0] > 0, nu[self.pairs[0]]*nu[self.pairs[1]]/nu[0], 0.0)]).T

    def fixed_knots(self, window: tuple[float, float]) -> tuple[float, ...]:
        """The labels at which P(y|z) jumps or bends whatever z is: those of two points z."""
        lo, hi = (Rational(end).limit_denominator() for end in window)
        found = []
        for point in (Rational(1, 3), Rational(-5, 7)):
            at = self.channel.p.xreplace({v: point*(n + 1) for n, v in enumerate(normals(self.channel.p))})
            cuts = unless_refused(partial(breakpoints, at, self.channel.y, (lo, hi)))
            found.append({round(float(k), 12) for k in cuts or ()})
        return tuple(sorted(found[0] & found[1]))

    def measures(self, labels: np.ndarray, u: Sequence[float] = (), n: int = -1) -> np.ndarray:
        """nu_a at each label, given u, by the n-th grid: shape (indices, labels)."""
        parts = []
        with np.errstate(all="ignore"):
            for some in self._in_parts(labels, n):
                checkpoint("integrating over the labels")
                z, he = self._cut(u, float(some[0]), n) if self.switches else self.grids[n]
                parts.append(he @ np.nan_to_num(np.broadcast_to(self.law(some[:, None], (*u, *z)), (len(some), he.shape[1]))).T)
        return np.concatenate(parts, axis=1)

    def _in_parts(self, labels: np.ndarray, n: int) -> list[np.ndarray]:
        """So many labels that their points fill no memory; one by one where each has a grid of its own."""
        chunk = 200_000  # points at once: arrays of 1.6 MB stay in the cache
        points = len(labels)*(self.grids[n][1].shape[1] if not self.switches else chunk)
        return np.array_split(labels, min(len(labels), -(-points//chunk)))

    def _cut(self, u: Sequence[float], label: float, n: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The n-th grid, cut where a switch of P(y|.) jumps or bends at this label."""
        edges = self.edges[n]
        cuts = zeros_on([lambda v, f=f: f(np.full_like(v, label), *(np.full_like(v, x) for x in u), v)
                         for f in self.switches], edges)
        return self._grid(np.unique([*edges, *cuts])) if cuts else self.grids[n]


def _rounding(size: float, *, epsilon: float = 1e-15) -> float:
    """An error e sqrt(B) in each A changes sum A^2/B by that (Cauchy): a small value is what cancellation left."""
    # epsilon: of E[He_a K(v)] in units of E[|He_a| K(v)]: rounding, and the part outside the window
    return 2*epsilon*np.sqrt(2*size) + 2*epsilon**2


def _counted(terms: Callable[[np.ndarray], np.ndarray], size: int) -> tuple[np.ndarray, float]:
    """The sum over the counts 0, 1, 2, ..., until many in a row add nothing, or there are too many: then their mass is missing."""
    total, quiet = np.zeros_like(terms(np.zeros(1))[0]), 0
    most_work = 10**8  # counts times points: seconds of NumPy
    quiet_end = 40  # counts in a row that add nothing: a law with a longer gap would be cut off there
    for first in range(0, max(most_work//size, 1), quiet_end):
        for value in terms(np.arange(first, first + quiet_end, dtype=float)):
            total = total + value
            quiet = quiet + 1 if total[-1, 0] > 1/2 and np.max(np.abs(value)) <= 1e-17*np.max(np.abs(total[:, 1:])) else 0
        if quiet >= quiet_end:
            break
    return total, 0.0


def _integrated(terms: Callable[[np.ndarray], np.ndarray], size: int, *, tolerance: float = 1e-12) -> tuple[np.ndarray, float]:
    """(value, error) over the labels y = sinh(pi/2 sinh t): the trapezoid rule in t (double exponential) while it converges.

    If the integrand bends it does not; then panels are halved about the bends (Gauss-Kronrod), fewer the larger the grids are.
    """
    from scipy.integrate import quad_vec

    def moved(t: np.ndarray) -> np.ndarray:
        slope = np.pi/2*np.cosh(t)*np.cosh(np.pi/2*np.sinh(t))
        return terms(np.sinh(np.pi/2*np.sinh(t)))*slope[:, None, None]

    reach = 4.5  # of t, y = sinh(pi/2 sinh t): to |y| = exp(70)
    h, places = 1/4, np.arange(-reach, reach + 1e-9, 1/4)
    first = moved(places)
    light = 1e-25  # a density that does not count: far below the rounding of one of size 1
    heavy = places[first[:, -1, 0] > light]
    low, high = (float(heavy[0]) - h, float(heavy[-1]) + h) if len(heavy) else (-reach, reach)
    value: np.ndarray = first.sum(axis=0)*h
    changes: list[float] = []
    halvings = 4  # of the first step
    most_halvings = 8  # while changes fall fast
    faster = 20  # the quotient of changes that fall fast: a double-exponential rule doubles its digits at each halving
    # tolerance: relative, where alpha_c claims ten digits
    while len(changes) < most_halvings:
        finer = value/2 + h/2*moved(np.arange(low + h/2, high, h)).sum(axis=0)
        changes.append(float(np.max(np.abs(finer - value)[-1, 1:])))  # the grid to compare with may be too coarse for it
        h, value = h/2, finer
        error, reached = next_change(changes), float(np.max(np.abs(value[:, 1:])))
        if error <= max(tolerance*reached, _rounding(reached)):
            return value, error
        if len(changes) >= halvings and changes[-1] > changes[-2]/faster:  # by a bend it falls fourfold
            break
    most_work = 800_000  # points times panels in the label; chosen by trial
    adapted, rough = quad_vec(lambda t: moved(np.array([t]))[0], low, high, epsabs=1e-13, epsrel=1e-11, norm="max",
                              limit=max(8, most_work//size))
    return (adapted, float(rough)) if rough < error else (value, error)


def later_stage(channel: Channel, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> LabelCouplings:
    """The couplings of the hidden variables once the given ones are perfectly known; P(y|z) is written over both."""
    known = [u for u in given if channel.p.has(u)]
    return over_all_known(ChannelCouplings(channel, known, hidden).second, channel.p, known, hidden)
