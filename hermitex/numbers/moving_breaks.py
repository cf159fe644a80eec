"""y with u(x, y) = 0: where an integrand is not smooth in one variable, as functions of the variables before it.

u is what a switch compares with 0, or the base of a root, a logarithm or a pole. Roots of polynomials in y are exact; others are
bracketed by changes of sign of u and of its slope on 200 points. Where two inner breaks meet, or one begins, the outer variable
has a break: a zero of a resultant, a discriminant or a leading coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import (
    Abs,
    Add,
    DiracDelta,
    Expr,
    Heaviside,
    Mul,
    Poly,
    Pow,
    S,
    Symbol,
    erf,
    exp,
    floor,
    resultant,
    sign,
    tanh,
)
from sympy.core.relational import Relational

from hermitex.numbers.program import Program
from hermitex.numbers.scaled_integrand import EPS

Array = NDArray[np.float64]
MONOTONE = (exp, tanh, erf)
JUMPS = (sign, Heaviside, Relational, floor)


class BreakMarks(NamedTuple):
    """What an integrand compares with 0, its singular bases, and the arguments of functions that may be steep."""

    switches: set[Expr]
    singular: set[Expr]
    steep: set[Expr]


def marks(program: Program) -> BreakMarks:
    """All places at which the formula shows that it is not smooth, or may change fast.

    Examples
    --------
    >>> from sympy import Abs, Max, log
    >>> from hermitex.symbols import z1, z2
    >>> marks(Program(Max(z1, z2)*log(Abs(z1)), (z1, z2)))[:2]
    ({z1 - z2}, {z1})
    """
    variables = program.variables
    singular = {v for u in program.singular for v in _plain(u, variables)}
    switches = {v for u in program.switches for v in _plain(u, variables)} - singular
    # panels already begin at the zeros of singular bases
    steep = {u for u in program.centres if u.free_symbols.intersection(variables) and not _plain(u, variables) & singular}
    return BreakMarks(switches, singular, steep)


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

    def __init__(self, found: BreakMarks, variables: Sequence[Symbol]) -> None:
        self.levels: list[list[tuple[Roots, bool]]] = []
        self.steep: list[list[MovingCentre]] = []
        singular, switches = set(found.singular), set(found.switches)
        for k in range(len(variables) - 1, -1, -1):
            y, outer = variables[k], tuple(variables[:k])
            mine = [(u, u in singular) for u in sorted(switches | singular, key=lambda u: _order(u, y)) if y in u.free_symbols]
            self.levels.append([(Roots(u, outer, y), root) for u, root in mine])
            steep = [u for u in sorted(found.steep, key=str) if y in u.free_symbols and u.is_polynomial(y)
                     and not u.free_symbols - {*outer, y}]
            self.steep.append([centre for u in steep for centre in _centres(u, outer, y)])
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
            inside = singular & (found > low) & (found < high)
            blurs.append(np.where(inside, EPS*np.maximum(np.abs(found), float(roots.moves)), -1.0))
            places = np.concatenate([places, found])
        for centre in self.steep[depth]:
            c = centre.roots.at(columns, owners, low, high, places)
            scale = centre.width(columns, c)
            for k in range(10):  # 1e-6 of the window
                s = scale*6.0**k
                soft += [np.where(s < 0.5, c - s, np.nan), np.where(s < 0.5, c + s, np.nan)]
            soft.append(np.where(scale < 0.5, c, np.nan))
        return places, np.concatenate(blurs), np.concatenate(soft)


class MovingCentre:
    """Where a function of u changes fast: at a zero over a width of 1/|u'|, at an extremum over (2 min(1, |u|)/|u''|)^(1/2)."""

    def __init__(self, u: Expr, outer: Sequence[Symbol], y: Symbol, *, extremum: bool) -> None:
        self.extremum = extremum
        self.roots = Roots(u.diff(y) if extremum else u, outer, y)
        self.value = Program(u, (*outer, y))

    def width(self, columns: Sequence[Array], places: Array) -> Array:
        """The widths at the places, 1e-7 at least."""
        at = [np.broadcast_to(c, places.shape).ravel() for c in columns]
        with np.errstate(all="ignore"):
            found = 1/np.abs(self.roots.slope.values(*at, places.ravel()))
            if self.extremum:
                found = np.sqrt(2*found*np.minimum(np.abs(self.value.values(*at, places.ravel())), 1.0))
            return np.asarray(np.maximum(found, 1e-7)).reshape(places.shape)


def _centres(u: Expr, outer: Sequence[Symbol], y: Symbol) -> list[MovingCentre]:
    """The zeros of a polynomial in y, and its extrema."""
    kinds = (False,) if Poly(u, y).degree() == 1 else (False, True)
    return [MovingCentre(u, outer, y, extremum=kind) for kind in kinds]


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
        self.slope = Program(u.diff(y).replace(DiracDelta, lambda *_: S.Zero), (*outer, y))
        if self.polynomial:
            self.coefficients = [Program(c, outer) if c.free_symbols else float(c) for c in Poly(u, y).all_coeffs()]
        else:
            self.value = Program(u, (*outer, y))

    def at(self, columns: Sequence[Array], owners: int, low: float, high: float, jumps: Array) -> Array:
        """(roots, points), nan where there is none; unsorted. At `jumps` u may jump."""
        if not self.polynomial:
            return self._bracketed(columns, owners, low, high, jumps)
        c = [np.full(owners, k) if isinstance(k, float) else k.values(*columns) for k in self.coefficients]
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
        value = np.sign(self.value.floats(*outer, cells).m).reshape(owners, n)
        slope = np.sign(self.slope.floats(*outer, cells).m).reshape(owners, n)
        crossed = value[:, 1:]*value[:, :-1] < 0
        turned = (slope[:, 1:]*slope[:, :-1] < 0) & ~crossed  # such a cell may hold two roots
        who, where = np.nonzero(turned)
        top = self._between(self.slope, columns, who, grid[who, where], grid[who, where + 1])
        beyond = np.sign(self.value.floats(*(c[who] for c in columns), top).m)*value[who, where] < 0
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
    def _between(f: Program, columns: Sequence[Array], owner: NDArray[np.intp], left: Array, right: Array) -> Array:
        """The zeros of f in y between brackets, each at the outer point of its owner."""
        if not len(owner):
            return np.empty(0)
        mine = tuple(c[owner] for c in columns)
        from scipy.optimize import elementwise

        found = elementwise.find_root(lambda y, *outer: f.values(*outer, y), (left, right), args=mine)
        return np.asarray(found.x)


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


__all__ = ["BreakMarks", "Breaks", "Roots", "marks", "projected"]
