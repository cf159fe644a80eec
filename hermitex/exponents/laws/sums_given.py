"""y = sum_b w_b(u, z_b), u known and the z_b independent: the laws of the terms at each u, convolved.

A term c(u) w(z_b) is a fixed law on another scale, one that u enters otherwise is cut into branches on numbers: at each u
there is no symbolic work. Where u is a pair that enters by factors of one degree, only its angle matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from sympy import Add, Dummy, Expr, S, Symbol

from hermitex.errors import HermitexError
from hermitex.exponents.laws.blocks import groups, law_of
from hermitex.exponents.laws.density import Index, Law, array_function, normal
from hermitex.exponents.laws.linearised import Second, second
from hermitex.exponents.laws.sections import Sections
from hermitex.exponents.laws.sums import added
from hermitex.exponents.laws.table import tabulated
from hermitex.kernels.panels import zeros_on
from hermitex.symbolic.budget import checkpoint

_SHORT = 60
_NEARLY = 1e-12
_STEP, _END, _HALVINGS, _CONVERGED = 0.34, 2.72, 5, 1e-11  # of a double-exponential rule
_ORDER, _LABELS = 12, 12  # of the quadrature in a convolution, and over labels
_MORE, _MOST, _CHECKED = 4, 16, 8
_SETTLED = 2e-12


class SumsGiven:
    """The law of a sum at given u.

    Parameters: `terms`: for each term a function of u that gives its law; `factors`: c(u) of every term, None where u enters
    a term otherwise; `drop`: indices that are zero.
    """

    def __init__(self, terms: Sequence[Callable[[Sequence[float]], Law]], factors: Sequence[Expr] | None,
                 drop: Sequence[Index]) -> None:
        self.terms, self.factors, self.drop = terms, factors, drop
        self.calls, self.worst, self.more = 0, 0.0, 0

    def law(self, u: Sequence[float], more: int = 0) -> Law:
        """The law of the sum at this u; `more`: of the order of its convolution."""
        laws = sorted((term(u) for term in self.terms), key=lambda a: (a.continuous, a.power, len(a.knots)))
        while len(laws) > 2:
            laws = [tabulated(added(laws[0], laws[1])), *laws[2:]]
        return added(*laws, drop=self.drop, order=_ORDER + more)

    def second(self, u: Sequence[float]) -> Second:
        """The couplings at this u: one u in eight by more nodes too; where that makes a difference, so many are kept."""
        found = self._with(u, self.more)
        while self.calls % _CHECKED == 0:
            other = self._with(u, self.more + _MORE)
            change = max((abs(v - found.couplings[k]) for k, v in other.couplings.items()), default=0.0)
            if change < _SETTLED or self.more + _MORE > _MOST:
                self.worst = max(self.worst, change)
                break
            self.more, found = self.more + _MORE, other
        self.calls += 1
        return replace(found, error=max(found.error, self.worst))

    def _with(self, u: Sequence[float], more: int) -> Second:
        return second(self.law(u, more), order=_LABELS + more, compared=False)


def sums_given(g: Expr, given: Sequence[Symbol], hidden: Sequence[Symbol], drop: Sequence[Index]) -> SumsGiven | None:
    """g as a sum of terms in different hidden variables, u in any of them; None if it is not one.

    Parameters: `given` and `hidden` are the known variables and the others; `drop`: indices known to be zero.
    """
    rest = g.as_independent(*hidden, as_Add=True)[1]
    used = [v for v in hidden if rest.has(v)]
    blocks = [Add(*b) for b in groups(Add.make_args(rest), used)]
    if len(blocks) < 2:
        return None
    place = {v: n for n, v in enumerate(hidden)}
    terms: list[Callable[[Sequence[float]], Law]] = []
    factors: list[Expr] = []
    for block in blocks:
        mine = [v for v in used if block.has(v)]
        factor, inner = _factor(block, mine) if block.has(*given) else (S.One, block)
        # What u tells, a constant times c(u), comes off: labels keep their digits next to knots at 0.
        inner = (inner.expand() if inner.count_ops() < _SHORT else inner).as_independent(*mine, as_Add=True)[1]
        try:
            if inner.has(*given):
                if len(mine) > 1:
                    return None
                terms.append(_cut(Sections(block, given, mine[0], normal(place[mine[0]]), drop)))
            else:
                factors.append(factor)
                terms.append(_stretched(tabulated(law_of(inner, place)), array_function(factor, *given)))
        except HermitexError:
            return None
    return SumsGiven(terms, factors if len(factors) == len(terms) else None, drop)


def _cut(sections: Sections) -> Callable[[Sequence[float]], Law]:
    return lambda u: tabulated(sections.law(u))


def _stretched(law: Law, c: Callable[..., np.ndarray]) -> Callable[[Sequence[float]], Law]:
    return lambda u: scaled(law, float(c(*(np.array(x) for x in u))))


def _factor(block: Expr, mine: Sequence[Symbol]) -> tuple[Expr, Expr]:
    """(c(u), w) with w free of u where the block shows it."""
    if isinstance(block, Add) and block.is_polynomial(*block.free_symbols):
        block = block.factor()
    return block.as_independent(*mine, as_Add=False)


def scaled(law: Law, c: float) -> Law:
    """The law of c w, c not zero."""
    if c == 1:
        return law
    ends = sorted((law.lo * c, law.hi * c))
    return replace(law, density=lambda y: law.density(y / c) / abs(c), lo=ends[0], hi=ends[1],
                   knots=tuple(sorted(k * c for k in law.knots)), hints=tuple(sorted(k * c for k in law.hints)),
                   atoms=tuple((p * c, v) for p, v in law.atoms), points=None)


# -- a pair of known variables -----------------------------------------------------------------------------------------
def over_angles(g: Expr, given: Sequence[Symbol], hidden: Sequence[Symbol], drop: Sequence[Index]) -> Second | None:
    """The mean of the couplings over u = (cos a, sin a), which is that over the plane; None if g is no sum of such terms.

    c_b(t u) = t^k c_b(u), k the same for all b: the label at t u is that at u but for a factor, and at -u but for its sign.
    """
    terms = sums_given(g, given, hidden, drop)
    if terms is None or terms.factors is None or not _of_one_degree(terms.factors, given):
        return None
    functions = [array_function(c, *given) for c in terms.factors]
    scan = np.linspace(-0.1, np.pi + 0.1, 1001) + 1e-5
    zeros = zeros_on([lambda a, c=c: c(np.cos(a), np.sin(a)) for c in functions], scan)
    cuts = [0.0, *sorted(a for a in zeros if _NEARLY < a < np.pi - _NEARLY), np.pi]
    keys = [k for k in terms.second((0.6, 0.8)).couplings if len(k[0]) == 2]
    total, error = np.zeros(len(keys)), 0.0
    for a, b in pairwise(cuts):
        checkpoint("averaging over the angle of what is known")
        value, wrong = _stretch(terms, keys, (a, b))
        total, error = total + value, error + wrong
    return Second(dict(zip(keys, (total / np.pi).tolist(), strict=True)), error / np.pi + terms.worst)


def _stretch(terms: SumsGiven, keys: Sequence[tuple[Index, Index]], ends: tuple[float, float]) -> tuple[np.ndarray, float]:
    """A double-exponential rule between two angles, halved until it settles (at a zero of a factor u has roots and logarithms)."""
    a, b = ends
    last, change, lost = np.zeros(len(keys)), float("inf"), float("inf")
    for level in range(_HALVINGS):
        step = _STEP / 2**level
        t = np.arange(-_END, _END + step / 4, step) if level == 0 else np.arange(-_END + step, _END, 2 * step)
        lean = np.pi / 2 * np.sinh(t)
        weight = (b - a) / 2 * step * np.pi / 2 * np.cosh(t) / np.cosh(lean) ** 2
        share = 1 / (1 + np.exp(2 * np.abs(lean)))  # of the way from the nearer end
        now = last / 2 if level else last
        for left, s, w in zip(lean < 0, share, weight, strict=True):
            checkpoint("averaging over the angle of what is known")
            angle = a + (b - a) * s if left else b - (b - a) * s
            found = terms.second((float(np.cos(angle)), float(np.sin(angle)))).couplings
            now = now + w * np.array([found.get(k, 0.0) for k in keys])
        before, change, last = change, float(np.abs(now - last).max()), now
        # A halving squares the error, or at least lessens it as the one before.
        lost = change * min(1.0, 2 * change / before) if np.isfinite(before) and before > 0 else change
        if level > 1 and lost < _CONVERGED:
            break
    return last, lost


def _of_one_degree(factors: Sequence[Expr], given: Sequence[Symbol]) -> bool:
    t = Dummy("t", positive=True)
    ratios = {(c.xreplace({x: t * x for x in given}) / c).cancel() for c in factors}
    return len(ratios) == 1 and not ratios.pop().has(*given)
