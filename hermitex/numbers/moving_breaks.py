"""y with u(x, y) = 0: where an integrand is not smooth in one variable, as functions of the variables before it.

u is what a switch compares with 0, or the base of a root, a logarithm or a pole. Roots of polynomials in y are exact; others are
bracketed by changes of sign of u and of its slope on 200 points. Where two inner breaks meet, or one begins, the outer variable
has a break: a zero of a resultant, a discriminant or a leading coefficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import elementwise
from sympy import (
    Abs,
    Add,
    DiracDelta,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Poly,
    Pow,
    S,
    Symbol,
    erf,
    erfc,
    exp,
    floor,
    log,
    pi,
    resultant,
    sign,
    sin,
    tanh,
)
from sympy.core.relational import Relational

from hermitex.numbers.scaled_integrand import EPS
from hermitex.numbers.scaled_values import ScaledValues

Array = NDArray[np.float64]
MONOTONE = (exp, tanh, erf)
JUMPS = (sign, Heaviside, Relational, floor)


class Marks(NamedTuple):
    """What an expression compares with 0, its singular bases, and the arguments of functions that may be steep."""

    switches: set[Expr]
    singular: set[Expr]
    steep: set[Expr]


def marks(body: Expr, variables: Sequence[Symbol]) -> Marks:
    """All places at which the formula shows that it is not smooth, or may change fast.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> marks(Max(z1, z2)*log(Abs(z1)), (z1, z2))[:2]
    ({z1 - z2}, {z1})
    """
    found = Marks(set(), set(), set())
    for e in body.atoms(Abs, sign, Heaviside, Max, Min, Relational, floor, Pow, log, tanh, erf, erfc, exp):
        if not e.free_symbols.intersection(variables):
            continue
        if isinstance(e, Pow | log):
            base, smooth = (e.base, e.exp.is_Integer and e.exp > 0) if isinstance(e, Pow) else (e.args[0], False)
            if not smooth and not _positive(base):
                found.singular.update(_plain(base, variables))
            if not smooth and base.is_Add:
                found.steep.add(base)
        elif isinstance(e, tanh | erf | erfc | exp):
            found.steep.add(e.args[0])
        elif isinstance(e, Max | Min):
            found.switches.update(v for a, b in combinations(e.args, 2) for v in _plain(a - b, variables))
        else:
            u = e.lhs - e.rhs if isinstance(e, Relational) else sin(pi*e.args[0]) if isinstance(e, floor) else e.args[0]
            found.switches.update(_plain(u, variables))
    found.switches.difference_update(found.singular)
    return found


def _positive(e: Expr) -> bool:
    """Positive for all real values, as sums of exponentials and of squares with a positive constant are."""
    return e.is_positive is True or (isinstance(e, Add) and any(a.is_positive for a in e.args) and
                                     all(a.is_nonnegative for a in e.args))


def _plain(u: Expr, variables: Sequence[Symbol]) -> set[Expr]:
    """Simpler expressions with the same zeros: the factors of a product, a - b for tanh(a) - tanh(b), u for |u|."""
    if not u.free_symbols.intersection(variables) or u.is_positive:
        return set()
    if isinstance(u, Abs) or (isinstance(u, Pow) and u.exp.is_positive):
        return _plain(u.args[0], variables)
    if isinstance(u, Mul):
        return {v for a in u.args for v in _plain(a, variables)}
    if isinstance(u, Add) and len(u.args) == 2:
        (c, a), (d, b) = (t.as_coeff_Mul() for t in u.args)
        if c == -d and a.func == b.func and isinstance(a, MONOTONE):
            return _plain(a.args[0] - b.args[0], variables)
        if {Abs} == {type(a), type(b)} and c == -d:
            return _plain(a.args[0] - b.args[0], variables) | _plain(a.args[0] + b.args[0], variables)
    return {_signed(u.expand() if u.is_polynomial(*variables) else u)}


def _signed(u: Expr) -> Expr:
    return -u if u.could_extract_minus_sign() else u


def _order(u: Expr, y: Symbol) -> tuple[bool, int, str]:
    """Polynomials first, then those without jumps: the bracketing of roots uses the places found before."""
    return not u.is_polynomial(y), len(u.atoms(*JUMPS)), str(u)


class Breaks:
    """The breaks of each variable, given those before it.

    Parameters
    ----------
    found : from `marks`
    variables : the outermost first
    """

    def __init__(self, found: Marks, variables: Sequence[Symbol]) -> None:
        self.levels: list[list[tuple[Roots, bool]]] = []
        self.steep: list[list[Roots]] = []
        singular, switches = set(found.singular), set(found.switches)
        for k in range(len(variables) - 1, -1, -1):
            y, outer = variables[k], tuple(variables[:k])
            mine = [(u, u in singular) for u in sorted(switches | singular, key=lambda u: _order(u, y)) if y in u.free_symbols]
            self.levels.append([(Roots(u, outer, y), root) for u, root in mine])
            steep = {v for u in found.steep for v in _centres(u, y) if y in u.free_symbols and not u.free_symbols - {*outer, y}}
            self.steep.append([Roots(u, outer, y) for u in sorted(steep, key=str)])
            rest = {u for u in switches | singular if y not in u.free_symbols}
            meet = projected([u for u, _ in mine if u.is_polynomial(y)], y, outer)
            # where inner breaks meet, the outer integrand may have an algebraic singularity
            singular, switches = (singular & rest) | meet, switches & rest
        self.levels.reverse()
        self.steep.reverse()

    def at(self, depth: int, columns: Sequence[Array], owners: int, low: float, high: float) -> tuple[Array, Array, Array]:
        """(places, how well a singular one is known, or -1 at others; places for graded panels), a column for each outer point."""
        places, blurs, soft = np.empty((0, owners)), [np.empty((0, owners))], [np.empty((0, owners))]
        for roots, singular in self.levels[depth]:
            found = roots.at(columns, owners, low, high, places)
            # a root that moves with the outer point is rounded with the coefficients, of size 1 or more
            blurs.append(np.maximum(np.abs(found), float(roots.moves)) if singular else np.full(found.shape, -1.0))
            places = np.concatenate([places, found])
        for roots in self.steep[depth]:
            c = roots.at(columns, owners, low, high, places)
            scale = roots.scale(columns, c)
            for k in range(10):  # 1e-6 of the window
                s = scale*6.0**k
                soft += [np.where(s < 0.5, c - s, np.nan), np.where(s < 0.5, c + s, np.nan)]
            soft.append(np.where(scale < 0.5, c, np.nan))
        return places, EPS*np.concatenate(blurs), np.concatenate(soft)


def _centres(u: Expr, y: Symbol) -> Iterable[Expr]:
    """Where a function of u changes fastest: at zeros of u, and at its extrema."""
    if not u.is_polynomial(y):
        return ()
    return (u,) if Poly(u, y).degree() == 1 else (u, u.diff(y))


def projected(us: Sequence[Expr], y: Symbol, outer: Sequence[Symbol]) -> set[Expr]:
    """Polynomials in the outer variables that vanish where roots in y of the given ones meet, begin or go to infinity."""
    if not outer:
        return set()
    found: set[Expr] = set()
    polys = [Poly(u, y) for u in us]
    for p in polys:
        found.add(p.LC())
        if 1 < p.degree() <= 4:
            found.add(p.discriminant())
    for p, q in combinations(polys, 2):
        if p.degree()*q.degree() <= 4:
            found.add(resultant(p.as_expr(), q.as_expr(), y))
    rational = {e: not any(p.base.is_number for p in e.atoms(Pow)) and e.is_polynomial(*outer) for e in map(S, found)}
    return {v for e, plain in rational.items() for f in Mul.make_args(e.factor() if plain else e) for v in _plain(f, outer)}


class Roots:
    """The roots in y of u(outer, y) = 0, for arrays of outer points."""

    def __init__(self, u: Expr, outer: Sequence[Symbol], y: Symbol) -> None:
        self.polynomial, self.moves = bool(u.is_polynomial(y)), bool(u.free_symbols - {y})
        self.slope = ScaledValues(u.diff(y).replace(DiracDelta, lambda *_: S.Zero), (*outer, y))
        if self.polynomial:
            self.coefficients = [ScaledValues(c, outer) if c.free_symbols else float(c) for c in Poly(u, y).all_coeffs()]
        else:
            self.value = ScaledValues(u, (*outer, y))

    def at(self, columns: Sequence[Array], owners: int, low: float, high: float, jumps: Array) -> Array:
        """(roots, points), nan where there is none; unsorted. At `jumps` u may jump."""
        if not self.polynomial:
            return self._bracketed(columns, owners, low, high, jumps)
        c = [np.full(owners, k) if isinstance(k, float) else _plainly(k(*columns)) for k in self.coefficients]
        with np.errstate(all="ignore"):
            if len(c) == 2:
                return np.asarray(-c[1]/c[0])[None]
            if len(c) == 3:
                q = -(c[1] + np.copysign(np.sqrt(c[1]**2 - 4*c[0]*c[2]), c[1]))/2
                return np.stack([q/c[0], np.where(q == 0, 0.0, c[2]/q)])
        return _companion(np.stack(c, axis=1))

    def _bracketed(self, columns: Sequence[Array], owners: int, low: float, high: float, jumps: Array) -> Array:
        beside = np.concatenate([jumps - 1e-13, jumps + 1e-13]).T  # either side of a jump, a hundred roundings away
        even = np.broadcast_to(np.linspace(low, high, 200), (owners, 200))
        grid = np.sort(np.concatenate([even, np.clip(np.nan_to_num(beside, nan=high), low, high)], axis=1), axis=1)
        n = grid.shape[1]
        cells, outer = grid.ravel(), [np.repeat(c, n) for c in columns]
        value = np.sign(_plainly(self.value(*outer, cells))).reshape(owners, n)
        slope = np.sign(_plainly(self.slope(*outer, cells))).reshape(owners, n)
        crossed = value[:, 1:]*value[:, :-1] < 0
        turned = (slope[:, 1:]*slope[:, :-1] < 0) & ~crossed  # two roots may lie in such a cell
        who, where = np.nonzero(turned)
        top = self._between(self.slope, columns, who, grid[who, where], grid[who, where + 1])
        beyond = np.sign(_plainly(self.value(*(c[who] for c in columns), top)))*value[who, where] < 0
        who, where, top = who[beyond], where[beyond], top[beyond]
        first, cell = np.nonzero(crossed)
        owner = np.concatenate([first, who, who])
        left = np.concatenate([grid[first, cell], grid[who, where], top])
        right = np.concatenate([grid[first, cell + 1], top, grid[who, where + 1]])
        found = self._between(self.value, columns, owner, left, right)
        order = np.argsort(owner, kind="stable")
        counts = np.bincount(owner, minlength=owners)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        out = np.full((int(counts.max(initial=0)), owners), np.nan)
        out[rank, owner[order]] = found[order]
        return out

    @staticmethod
    def _between(f: ScaledValues, columns: Sequence[Array], owner: NDArray[np.intp], left: Array, right: Array) -> Array:
        """The zeros of f in y between brackets, each at the outer point of its owner."""
        if not len(owner):
            return np.empty(0)
        mine = tuple(c[owner] for c in columns)
        found = elementwise.find_root(lambda y, *outer: _plainly(f(*outer, y)), (left, right), args=mine)
        return np.asarray(found.x)

    def scale(self, columns: Sequence[Array], places: Array) -> Array:
        """1/|du/dy| at the roots, or where that vanishes 1e-7: the width of a step of tanh(u)."""
        rows, owners = places.shape
        outer = [np.broadcast_to(c, (rows, owners)).ravel() for c in columns]
        with np.errstate(all="ignore"):
            slope = np.abs(_plainly(self.slope(*outer, places.ravel()))).reshape(rows, owners)
            return np.asarray(np.maximum(1/slope, 1e-7))


def _plainly(found: tuple[Array, Array]) -> Array:
    m, e = found
    with np.errstate(all="ignore"):
        return np.asarray(m*np.exp(np.clip(e, -700, 700)))


def _companion(c: Array) -> Array:
    """The real roots of the rows of polynomials of degree three and more."""
    n = c.shape[1] - 1
    matrices = np.zeros((len(c), n, n))
    matrices[:, np.arange(1, n), np.arange(n - 1)] = 1
    with np.errstate(all="ignore"):
        first = -c[:, 1:]/c[:, :1]
    good = np.isfinite(first).all(axis=1)
    matrices[good, 0, :] = first[good]
    roots = np.linalg.eigvals(matrices)
    real = np.abs(roots.imag) < 1e-8*(1 + np.abs(roots.real))
    return np.where(real & good.reshape(-1, 1), roots.real, np.nan).T


__all__ = ["Breaks", "Marks", "Roots", "marks", "projected"]
