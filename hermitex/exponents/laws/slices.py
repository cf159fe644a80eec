"""nu_(a,b)(y) = int nu_a(du) sum over {t: F(u, t) = y} of nu_b(t)/|dF/dt|: a label of two independent quantities.

At each y the range of u is cut where two solutions t meet, run off or pass a knot of the law of t; between the cuts
u = a + (b - a) sin(theta)^2 makes the inverse square roots analytic, and the panels in theta are halved, all labels at
once, until two orders agree. The labels at which the result is singular are the critical values of F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np
from sympy import Dummy, Expr, Symbol

from hermitex.exponents.directions.symmetry import sign_flips
from hermitex.exponents.laws.critical import critical, rounded
from hermitex.exponents.laws.density import Index, Law, array_function, distinct, normal
from hermitex.exponents.laws.inverse import Solution, solutions
from hermitex.exponents.laws.scanned import Scanned
from hermitex.exponents.laws.sections import smooth_slope, switch_arguments
from hermitex.exponents.laws.sums import pairs
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.budget import checkpoint

_CHUNK = 300
_ORDER = 15
_RELATIVE = 1e-12
_NEGLIGIBLE = 1e-19
_HALVINGS = 30
_NOISE = 1e-8
_DEEP = 10
_PANELS = 60
_SCAN = 140
_TAILS = (1e-16, 1e-11, 1e-7, 1e-4, 1e-2)
_GRID = 121
_BISECTIONS = 54


def sliced(form: Expr, names: tuple[Symbol, Symbol], laws: tuple[Law, Law], drop: Sequence[Index]) -> Law | None:
    """The law of F(w1, w2): by solutions in closed form if F is inverted in one of them, else by a scan.

    Parameters
    ----------
    form, names : F and its two variables
    laws : of w1 and w2, independent, without atoms
    drop : indices known to be exactly zero
    """
    if any(law.atoms or not law.continuous for law in laws):
        return None
    best: tuple[int, Callable[[], Law]] | None = None
    for one, two in ((0, 1), (1, 0)):
        y = Dummy("y", real=True)
        checkpoint("looking for level sets in closed form")
        found = solutions(form, names[one], names[two], y)
        if not found:
            continue
        cost = sum(1 + 2 * len(s.guards) for s in found)
        if best is None or cost < best[0]:
            best = cost, lambda a=one, b=two, s=found, y=y: Slices(
                form, (names[a], names[b], y), (laws[a], laws[b]), s, drop).law()
    if best is None and {laws[0].plain, laws[1].plain} == {True}:
        return Slices(form, (*names, Dummy("y", real=True)), laws, None, drop).law()
    return None if best is None else best[1]()


class Slices:
    """The integrals over u at given labels."""

    def __init__(self, form: Expr, names: tuple[Symbol, Symbol, Symbol], laws: tuple[Law, Law],
                 found: Sequence[Solution] | None, drop: Sequence[Index]) -> None:
        u, t, y = names
        self.laws = laws
        wanted = pairs(*laws, drop)
        self.indices = tuple(a for a, _, _ in wanted)
        self.left, self.right = [n for _, n, _ in wanted], [m for _, _, m in wanted]
        self.odd = _mirrored(form, (u, t), laws, self.indices)
        self.f = array_function(form, u, t)
        self.slope = array_function(smooth_slope(form, t), u, t)
        self.roots = [(array_function(s.t, u, y), [array_function(g, u, y) for g in s.guards]) for s in found or ()]
        turns = [array_function(g, u, y) for g in dict.fromkeys(g for s in found or () for g in s.guards) if g.has(u) and g.has(y)]
        self.turns = [lambda u, y, g=g: _side(g(u, y)) for g in turns]
        lines = (_lines(form, u, laws[0]), _lines(form, t, laws[1]))
        boxes = tuple((law.lo, law.hi) for law in laws)
        self.special = critical(form, (u, t), boxes, lines)
        own = [c for e in _poles(found or (), y) for c in _zeros_of(e, u, boxes[0])]
        labels = [float(v) for c in own for v in (self.f(np.array(c), np.array(0.0)),) if np.isfinite(v)]
        self.knots = rounded(np.array([*self.special.labels, *labels]))
        self.cuts = distinct(np.array([laws[0].lo, laws[0].hi, *_inside(laws[0], (
            *lines[0], *self.special.u, *own, *laws[0].hints))]))
        self.ends = distinct(np.array([laws[1].lo, laws[1].hi, *_inside(laws[1], (*lines[1], *self.special.t, *laws[1].hints))]))
        fine = [s * 10.0**-k for k in range(1, 16, 2) for s in (-1, 1)]
        self.scan = distinct(np.clip(np.concatenate([
            np.linspace(*boxes[0], _SCAN), self.cuts, *[self.cuts + d for d in fine]]), *boxes[0]))
        self.on_scan = self.f(self.scan[:, None], self.ends)
        self.numbers: Scanned | None = None
        if found is None:
            grid = distinct(np.array([*np.linspace(*boxes[1], _GRID), *self.ends]))
            marks = [smooth_slope(form, t), *switch_arguments(form, t)]
            self.numbers = Scanned(self.f, self.slope, [
                (array_function(e, u, t), array_function(smooth_slope(e, t), u, t)) for e in marks], (self.scan, grid))

    def law(self) -> Law:
        """The law of the label."""
        lo, hi, hints = self._range()
        return Law(self.indices, self.density, lo, hi, tuple(self.knots), tuple(hints), (), True, 4, False, _DEEP, 2)

    def _range(self) -> tuple[float, float, np.ndarray]:
        """The ends of the support, and labels that follow the scales of the law out into its tails."""
        sides, masses = [], []
        for law in self.laws:
            x = np.linspace(law.lo, law.hi, 601) + 1e-6 * (law.hi - law.lo)
            sides.append(x[:-1])
            masses.append(np.abs(law.density(x[:-1])[0]))
        y = self.f(sides[0][:, None], sides[1]).ravel()
        mass = (masses[0][:, None] * masses[1] / masses[0].sum() / masses[1].sum()).ravel()
        live = np.isfinite(y) & (mass > 1e-24)
        y, mass = y[live], mass[live]
        order = np.argsort(y)
        y, below = y[order], np.cumsum(mass[order])
        above = below[-1] - below
        hints = [y[np.searchsorted(below, q)] for q in (*_TAILS, 0.1, 0.5)] + [y[len(y) - 1 - np.searchsorted(above[::-1], q)]
                                                                              for q in (*_TAILS, 0.1)]
        lo, hi = float(min(y[0], *self.knots, np.inf)), float(max(y[-1], *self.knots, -np.inf))
        kept: list[float] = []
        if self.odd is not None:
            hints = [s * abs(h) for h in hints for s in (1, -1)]
            lo, hi = -max(-lo, hi), max(-lo, hi)
        for h in hints:
            # A hint next to a knot is of no use.
            if all(abs(h - k) > 1e-3 * (1 + abs(h)) for k in (*self.knots, *kept)):
                kept.append(float(h))
        # One hint for each two decades where labels run over many.
        kept += [s * 100.0**k for s in (-1, 1) for k in range(1, 12) if lo < s * 100.0**k < hi and hi - lo > 1e5]
        return lo, hi, distinct(np.array(kept)) if kept else np.array([])

    # -- the integral over u -------------------------------------------------------------------------------------------
    def density(self, y: np.ndarray) -> np.ndarray:
        """nu_a(y), shape (indices, labels)."""
        y = np.asarray(y, dtype=float)
        back = np.arange(len(y))
        labels = y
        if self.odd is not None:
            labels, back = np.unique(np.abs(y), return_inverse=True)
        parts = [self._chunk(labels[n:n + _CHUNK]) for n in range(0, len(labels), _CHUNK)]
        found = np.concatenate(parts, axis=1) if parts else np.zeros((len(self.indices), 0))
        found = found[:, back]
        return found if self.odd is None else np.where(y < 0, self.odd[:, None]*found, found)

    def _chunk(self, y: np.ndarray) -> np.ndarray:
        checkpoint("integrating over level sets")
        row, a, b = self._panels(y)
        low, high = np.zeros(len(a)), np.full(len(a), np.pi / 2)
        total = np.zeros((len(self.indices), len(y)))
        value = self._gauss(y[row], (a, b), (low, high))
        before = np.full(len(a), np.inf)
        for _ in range(_HALVINGS):
            checkpoint("integrating over level sets")
            size = np.zeros(len(y))
            np.add.at(size, row, np.abs(value).max(axis=0))
            size += np.abs(total).max(axis=0)
            middle = (low + high) / 2
            one = self._gauss(y[row], (a, b), (low, middle))
            two = self._gauss(y[row], (a, b), (middle, high))
            wrong = np.abs(one + two - value).max(axis=0)
            done = wrong <= np.maximum(_RELATIVE * size[row], _NEGLIGIBLE)
            # An error that is small and no longer falls is rounding.
            done |= (wrong <= _NOISE * size[row]) & (wrong > before / 4)
            for n in range(len(total)):
                np.add.at(total[n], row[done], (one + two)[n, done])
            left = ~done
            if not left.any():
                return total
            if left.sum() > _PANELS * len(y):
                # What does not settle is left as it is: the masses, and the two orders in y, show by how much.
                value = np.where(left, one + two, 0.0)
                break
            row, a, b = (np.concatenate([v[left], v[left]]) for v in (row, a, b))
            low, high = np.concatenate([low[left], middle[left]]), np.concatenate([middle[left], high[left]])
            value = np.concatenate([one[:, left], two[:, left]], axis=1)
            before = np.concatenate([wrong[left], wrong[left]])
        for n in range(len(total)):
            np.add.at(total[n], row, value[n])
        return total

    def _gauss(self, y: np.ndarray, ends: tuple[np.ndarray, np.ndarray], theta: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        x, w = np.polynomial.legendre.leggauss(_ORDER)
        half = (theta[1] - theta[0])[:, None] / 2
        at = theta[0][:, None] + half * (1 + x)
        a, b = (e[:, None] for e in ends)
        u = np.where(at < np.pi / 4, a + (b - a) * np.sin(at) ** 2, b - (b - a) * np.cos(at) ** 2)
        weight = half * w * (b - a) * np.sin(2 * at)
        label = np.broadcast_to(y[:, None], u.shape)
        law = self.laws[0].density(u.ravel())[self.left].reshape(-1, *u.shape) * weight
        total = np.zeros(law.shape)
        for t in self._solutions(u, label):
            live = np.isfinite(t) & (t >= self.laws[1].lo) & (t <= self.laws[1].hi)
            if not live.any():
                continue
            with np.errstate(all="ignore"):
                mine = self.laws[1].density(t[live])[self.right] / np.abs(self.slope(u[live], t[live]))
            total[:, live] += np.where(np.isfinite(mine), mine, 0.0)
        return np.sum(law * total, axis=2)

    def _solutions(self, u: np.ndarray, y: np.ndarray) -> Iterator[np.ndarray]:
        if self.numbers is not None:
            yield from self.numbers.solutions(u, y)
        for root, guards in self.roots:
            live = np.all([g(u, y) > 0 for g in guards], axis=0) if guards else True
            yield np.where(live, root(u, y), np.nan)

    def _panels(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(label, from, to) of the panels in u: cut at what is known beforehand and at the zeros of the turns."""
        functions: list[tuple[Callable, np.ndarray]] = [(lambda u, y, t=t: _side(self.f(u, np.full_like(u, t)) - y),
                                                         _side(self.on_scan[:, n] - y[:, None])) for n, t in enumerate(self.ends)]
        functions += [(g, g(self.scan[None, :], y[:, None])) for g in self.turns]
        if self.numbers is not None:
            functions.append((self.numbers.count, self.numbers.counts(self.scan, y)))
        rows, points = [np.repeat(np.arange(len(y)), len(self.cuts))], [np.tile(self.cuts, len(y))]
        for f, values in functions:
            row, column = np.nonzero(values[:, :-1] != values[:, 1:])
            a, b, low = self.scan[column], self.scan[column + 1], values[row, column]
            for _ in range(_BISECTIONS):
                m = (a + b) / 2
                before = f(m, y[row]) == low
                a, b = np.where(before, m, a), np.where(before, b, m)
            rows.append(row)
            points.append((a + b) / 2)
        row, point = np.concatenate(rows), np.concatenate(points)
        order = np.lexsort((point, row))
        row, point = row[order], point[order]
        a, b = point[:-1], point[1:]
        kept = (row[:-1] == row[1:]) & (b - a > 1e-15 * np.maximum(np.abs(a), np.abs(b)))
        return row[:-1][kept], a[kept], b[kept]


def _mirrored(form: Expr, names: tuple[Symbol, Symbol], laws: tuple[Law, Law], wanted: Sequence[Index]) -> np.ndarray | None:
    """The signs with nu_a(-y) = +-nu_a(y), if F(s z) = -F(z) for signs s of two normals; else None."""
    if not all(len(law.indices) == 3 and _is_normal(law) for law in laws):
        return None
    for s in sign_flips(form, names):
        if s.sign == -1 and s.flips is not None:
            own = {law.indices[1][0]: e for law, e in zip(laws, s.flips, strict=True)}
            return np.array([prod(own[i] for i in a) for a in wanted], dtype=float)
    return None


def _is_normal(law: Law) -> bool:
    """Is this the law of a variable itself?"""
    points = np.array([-2.1, -0.3, 0.7, 1.9])
    return bool(np.array_equal(law.density(points), normal(law.indices[1][0]).density(points)))


def _side(values: np.ndarray) -> np.ndarray:
    """The sign; a number of its own where there is no value."""
    return np.nan_to_num(np.sign(values), nan=7.0)


def _inside(law: Law, points: Sequence[float]) -> list[float]:
    return [float(p) for p in points if law.lo < p < law.hi]


def _lines(form: Expr, x: Symbol, law: Law) -> list[float]:
    """Where F has a kink in x alone, and the knots of the law of x."""
    found = [c for e in switch_arguments(form, x) if e.free_symbols == {x} for c in _zeros_of(e, x, (law.lo, law.hi))]
    return [float(p) for p in distinct(np.array([*found, *law.knots]))] if found or law.knots else []


def _poles(found: Sequence[Solution], y: Symbol) -> list[Expr]:
    """Denominators of the solutions that do not depend on the label: there t runs off to infinity."""
    from sympy import Pow

    return list(dict.fromkeys(p.base for s in found for e in (s.t, *s.guards) for p in e.atoms(Pow)
                              if p.exp.is_negative and not p.has(y)))


def _zeros_of(e: Expr, x: Symbol, box: tuple[float, float]) -> list[float]:
    from scipy.optimize import brentq

    if e.free_symbols != {x}:
        return []
    f = lambdify(x, e, modules=["numpy", "scipy"])
    grid = np.linspace(max(box[0], -50.0), min(box[1], 50.0), 2001) + 1.3e-4
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(f(grid), dtype=float), grid.shape)
    found = [0.0] if box[0] < 0 < box[1] and abs(float(f(0.0))) < 1e-300 else []
    for n in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        found.append(float(brentq(f, grid[n], grid[n + 1], xtol=1e-15)))
    touching = np.flatnonzero((np.abs(values[1:-1]) < np.abs(values[:-2])) & (np.abs(values[1:-1]) < np.abs(values[2:])))
    for n in touching:
        if np.sign(values[n]) == np.sign(values[n + 2]):
            from scipy.optimize import minimize_scalar

            at = minimize_scalar(lambda v: abs(float(f(v))), bounds=(grid[n], grid[n + 2]), method="bounded",
                                 options={"xatol": 1e-12})
            if at.fun < 1e-12:
                found.append(float(at.x))
    return [float(v) for v in distinct(np.array([0.0 if abs(v) < 1e-9 else v for v in found]))] if found else []
