"""1/alpha_c = E[s^2], s = E[(|x|^2 - 2)/2 | y, u], y = f(z_1) + f(z_2) + f(z_3), u = (z_1 + z_2 + z_3)/sqrt3 known.

x are the coordinates of the plane: permutations of the terms leave no other second moment (`symmetric`). The average over u
is cut where critical labels meet, or meet the label of a direction in which f is bounded, and refined where the end of a
Legendre series asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sympy import Add, Expr, Integer, Poly, Symbol

from hermitex.exponents.labels.levels import peel
from hermitex.exponents.laws.brackets import changes
from hermitex.exponents.laws.density import distinct
from hermitex.exponents.laws.level_curves import LevelCurves
from hermitex.exponents.laws.slopes import REACH, Term
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import pieces

_SUM = 7.5  # of u: P < 1e-13
_FAR = 4.7   # beyond what happens there is refined where it counts
_SCAN, _BISECTIONS = 90, 30
_ORDER = 14
_BATCH = 14
_ROUNDS = 7
_LEAST = 2e-5
_ACCURACY = 2e-12
_CHECKED, _MORE = 9, 4
_NEGLIGIBLE = 1e-17
_ALGEBRAIC, _GEOMETRIC = 0.9, 1.5
_SHORT, _BRANCHES = 30, 9


def summands(g: Expr, used: Sequence[Symbol]) -> list[Expr] | None:
    """f_i with level sets of g those of sum f_i(z_i), each in its own variable; None if g is no such sum."""
    parts: dict[Symbol, list[Expr]] = {x: [] for x in used}
    for term in Add.make_args(peel(g, *used)):
        mine = [x for x in used if term.has(x)]
        if len(mine) > 1:
            return None
        if mine:
            parts[mine[0]].append(term)
    return [Add(*parts[x]) for x in used]


def straightened(f: Expr, x: Symbol) -> tuple[Expr, bool]:
    """(f, even but for a line, without that line; whether it is even or odd): a line is known with the sum."""
    odd = (f - f.xreplace({x: -x})).expand()
    if odd.has(x) and not odd.is_polynomial(x) and odd.count_ops() < _SHORT:
        odd = odd.simplify()
    if odd.is_polynomial(x) and Poly(odd, x).degree() <= 1:
        return (f - odd / 2).expand() if odd.has(x) else f, True
    return f, parity(f, x) == -1


def three_smooth(f: Expr, x: Symbol) -> tuple[float, float] | None:
    """1/alpha_c and an error for y = sum f(z_i) given the sum of the three z_i; None if f is not smooth, or waves too much."""
    if not _smooth(f, x):
        return None
    straight, mirror = straightened(f, x)
    terms = ThreeTerms(straight - straight.subs(x, 0), x, mirror=mirror)
    return terms.squares() if len(terms.term.branches) <= _BRANCHES else None


def _smooth(f: Expr, x: Symbol) -> bool:
    """One analytic piece, finite with its slopes on the window."""
    if not f.has(x) or len(pieces(f, x, Integer(-int(REACH)), Integer(int(REACH)))) > 1:
        return False
    z = np.linspace(-REACH, REACH, 2001) + 1e-4 / 3
    term = Term(f, x, 1.0)
    with np.errstate(all="ignore"):
        values = np.array([term.f(z), term.slope(z), term.bend(z)])
    jumps = np.abs(np.diff(values[0])) > 0.1 * (1 + np.abs(values[0][1:]) + np.abs(values[1][1:]))
    return bool(np.isfinite(values).all() and not jumps.any() and np.ptp(values[1]) > 0)


class ThreeTerms:
    """Parameters: `f` an expression of `x`; `mirror`: the law at -u is that at u."""

    def __init__(self, f: Expr, x: Symbol, *, mirror: bool = False) -> None:
        self.term, self.mirror = Term(f, x, 3**-0.5), mirror
        self.curves = LevelCurves(self.term)
        self.count, self.changed = 0, 0.0

    def squares(self) -> tuple[float, float]:
        """E[s^2], s = E[(|x|^2 - 2)/2 | y, u], and an error.

        The error: the series in u, what the measures miss of their masses, and finer quadratures at one u in nine.
        """
        panels = [(a, b, 0.0, np.pi / 2) for a, b in zip(self.knots[:-1], self.knots[1:], strict=True)]
        total, error = 0.0, 0.0
        for n in range(_ROUNDS):
            found = self._panels(panels)
            worst = _ACCURACY * max(1e-3, total + sum(v for v, _, _ in found))
            again = []
            for (a, b, p, q), (value, series, lost) in zip(panels, found, strict=True):
                if series > worst and n + 1 < _ROUNDS:
                    again += [(a, b, p, (p + q) / 2), (a, b, (p + q) / 2, q)]
                else:
                    total, error = total + value, error + series + lost
            panels = again
            if not panels:
                break
        twice = 2 if self.mirror else 1
        return twice * total, twice * (error + self.changed)

    @property
    def knots(self) -> np.ndarray:
        """u at which critical labels change in number or in order."""
        low = 0.0 if self.mirror else -_SUM
        grid = np.linspace(low, _SUM, _SCAN + 1) + 1.3e-5
        with np.errstate(all="ignore"):
            inner = changes(self._heard, grid, _BISECTIONS)
        return distinct(np.array([low, 0.0, _SUM, *(u for u in inner if abs(u) < _FAR)]))

    def _heard(self, u: float) -> tuple:
        checkpoint("looking for the sums at which critical labels meet")
        return self.curves.signature(u)

    def _panels(self, panels: Sequence[tuple[float, float, float, float]]) -> list[tuple[float, float, float]]:
        """The integral over each panel, the end of its series, and what is lost there; u = a + (b - a) sin^2."""
        x, w = np.polynomial.legendre.leggauss(_ORDER)
        to_series = np.polynomial.legendre.legvander(x, _ORDER - 1) * w[:, None] * (np.arange(_ORDER) + 0.5)
        a, b, p, q = (np.array(v)[:, None] for v in zip(*panels, strict=True))
        angle = (p + q) / 2 + (q - p) / 2 * x
        u = np.where(angle < np.pi / 4, a + (b - a) * np.sin(angle) ** 2, b - (b - a) * np.cos(angle) ** 2)
        rate = (b - a) * np.sin(2 * angle) * (q - p) / 2
        # Next to 0 critical labels are apart by u^3 only; the integrand has come to rest before.
        values, lost = self._given(np.where(np.abs(u) < _LEAST, _LEAST, u).ravel(), (rate * w).ravel())
        values, lost = values.reshape(u.shape) * rate, lost.reshape(u.shape) * rate
        found = []
        for value, miss in zip(values, lost, strict=True):
            series = _missed(np.abs(value @ to_series))
            found.append((float(value @ w), series, float(miss @ w)))
        return found

    def _given(self, u: np.ndarray, du: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """int nu_1^2/nu_0 dy at each u, and what the measures miss; `du`: the weights of the u."""
        values, lost = [], []
        for start in range(0, len(u), _BATCH):
            checkpoint("integrating along level curves")
            part = u[start:start + _BATCH]
            found = self.curves.many(part, scalar)
            for v, (nu, w) in zip(part, found, strict=True):
                value, missed = _products(nu, w, float(v))
                values.append(value)
                lost.append(missed)
            self.count += len(part)
            if self.count % _CHECKED < len(part):
                # With more nodes: the difference at one u in so many stands for those of the others.
                nu, w = self.curves.many(part[:1], scalar, -_MORE)[0]
                change = abs(_products(nu, w, float(part[0]))[0] - values[-len(part)])
                self.changed += _CHECKED * change * float(du[start])
        return np.array(values), np.array(lost)


def scalar(z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """1 and (|x|^2 - 2)/2, x the coordinates of z in the plane of u."""
    return np.stack([np.ones(z.shape[1:]), ((z**2).sum(axis=0) - u * u) / 2 - 1])


def _missed(series: np.ndarray) -> float:
    """What Gauss misses, from the sizes of the coefficients: it is exact for twice their degree, which is worth more where
    they fall off geometrically (at a kink that was not seen they do not)."""
    first, middle, last = series.max() + 1e-300, series[_ORDER // 2 - 1:_ORDER // 2 + 1].max(), series[-2:].max()
    return float(last * min(1.0, last / first) ** (_GEOMETRIC if last < 2 * middle**2 / first else _ALGEBRAIC))


def _products(nu: np.ndarray, w: np.ndarray, u: float) -> tuple[float, float]:
    """int nu_1^2/nu_0 dy, and how far int nu_0 and int nu_1 are from the density of u and from 0."""
    live = nu[0] > _NEGLIGIBLE
    missed = nu @ w - [np.exp(-u * u / 2) / np.sqrt(2 * np.pi), 0.0]
    return float(np.sum(w[live] * nu[1, live] ** 2 / nu[0, live])), float(np.abs(missed).sum())
