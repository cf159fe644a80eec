r"""Z(y, omega) = int_{g = y} N(z; omega, V) ds/|grad g|, F(M) = int dy E_omega[A A^T/Z], A = dZ/domega: labels y = g(z1, z2).

F is an integral over labels, cut at the critical ones, where Z has a logarithm (a saddle), a jump (an extremum) or a root (a
corner): y = y_c +- tau^2, panels in tau that shrink towards y_c and halve until halving them changes nothing. A label of
positive probability, a plateau of g, is summed beside them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, Symbol

from hermitex.errors import HermitexError, NoClosedForm
from hermitex.kernels.panels import on_panels
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.bins import BinnedOutput
from hermitex.theories.overlaps.channel import FiniteOutput, Output, outer
from hermitex.theories.overlaps.curves import REACH, Plane
from hermitex.theories.overlaps.fibres import FibreOutput
from hermitex.theories.overlaps.frames import Frame, field_nodes, frame_of
from hermitex.theories.overlaps.grid import Array, LabelAxis, LabelGrid, rung
from hermitex.theories.overlaps.steps import StepOutput

_FAR = 6.8  # P(|omega| > 6.8 sqrt(m)) < 1e-11
_FIELDS = 0.54  # of the step of the fields' nodes: F has poles in omega between the preimages of a label
_ORDER, _DEPTH = 10, 6
_NODE, _SHARE = (a[0] for a in on_panels(np.array([0.0, 1.0]), _ORDER))
_TOLERANCE, _SMALL = 3e-9, 1e-10
_ROUNDS = 9
_WIDE = 1.3  # of a cell, in units of sqrt(V)
_COARSER = 1.4
_ALL = 1e-3  # of the probability may lie off the curves
_BESIDE = 1e-9  # a cut
_NEAR = 7.0  # sqrt(V) away from a curve there is none of its label


class Panels(NamedTuple):
    """y = origin + side tau^2, start < tau < stop."""

    origin: Array
    side: Array
    start: Array
    stop: Array

    def nodes(self) -> tuple[Array, Array]:
        """Labels and weights, (panels, nodes)."""
        step = (self.stop - self.start)[:, None]
        tau = self.start[:, None] + step*_NODE
        return self.origin[:, None] + self.side[:, None]*tau**2, 2*tau*step*_SHARE

    def halves(self) -> Panels:
        """Both halves of each, one after the other."""
        middle = (self.start + self.stop)/2
        edges = np.stack([self.start, middle]), np.stack([middle, self.stop])
        return Panels(np.repeat(self.origin, 2), np.repeat(self.side, 2), *(e.T.ravel() for e in edges))

    def take(self, kept: Array) -> Panels:
        """Some of them."""
        return Panels(*(v[kept] for v in self))


@dataclass(frozen=True, eq=False)
class ContourOutput(Output):
    """The label of two smooth variables; V may be any matrix."""

    plane: Plane
    knots: tuple[float, ...]
    graded: tuple[float, ...]
    low: float
    high: float
    atoms: FiniteOutput | None = None
    even: tuple[Array, ...] = ()
    odd: tuple[Array, ...] = ()
    r: int = 2
    binned: BinnedOutput | None = None
    smallest: Any = 0.02
    perfect: Any = True
    nodes: int = 20
    beside: tuple[float, ...] = (1.5,)
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def smooth(self) -> Any:
        """g."""
        return self.plane.g

    @property
    def cheap(self) -> Output | None:
        """The label through its bins."""
        return None if self.binned is None else replace(self.binned, coarse=_COARSER, smallest=self.smallest, together=None)

    @classmethod
    def of(cls, g: Expr, names: Sequence[Symbol], even: Sequence[Array] = (), odd: Sequence[Array] = ()) -> ContourOutput:
        """From an expression; the knots are the critical labels, of its law where that is known, and of its critical points.

        even, odd : the R with g(R z) = g(z), with g(R z) = -g(z)
        """
        from hermitex.exponents.laws.blocks import law_of

        plane = Plane.of(g, names, even, odd)
        turn, size = np.linspace(0, 2*np.pi, 721)[:, None], np.linspace(0, 0.99*REACH, 155)
        sample = plane.g([size*np.cos(turn), size*np.sin(turn)])
        # a label may end at a jump, on one side of it
        line = np.linspace(-4.9, 4.9, 156)
        beside = [plane.g([np.full_like(line, c + e), line][::1 - 2*i]) for i, cuts in enumerate(plane.cuts)
                  for c in cuts[np.abs(cuts) < 5] for e in (-_BESIDE, _BESIDE)]
        both = (np.concatenate([part.ravel(), *beside]) for part in (sample, sample[:, size < 5]))
        seen, near = (part[np.isfinite(part)] for part in both)
        low, high = float(seen.min()), float(seen.max())
        try:
            knots = [float(k) for k in law_of(g, {x: i for i, x in enumerate(names)}).knots]
        except (HermitexError, ArithmeticError, ValueError):
            knots = []
        special = [critical_points(plane), np.array([(a, b) for a in plane.cuts[0] for b in plane.cuts[1]]).reshape(-1, 2)]
        knots += plane.g(list(np.concatenate(special).T)).tolist()
        inside = sorted(k for k in knots if np.isfinite(k) and low - 1e-9 <= k <= high + 1e-9)
        apart = [k for n, k in enumerate(inside) if not n or k - inside[n - 1] > 1e-9*(high - low)]
        z = np.random.default_rng(0).standard_normal((2, 400))
        # A label that saturates far out has a singular law there.
        ends = [e for e, n in ((low, near.min()), (high, near.max())) if abs(e - n) < 0.05*(high - low)]
        apart = apart or [0.0 if len(odd) else float(np.median(plane.g(list(z))))]
        return cls(plane, tuple(apart), (*apart, *ends), low, high, plateaus(plane, z), tuple(even), tuple(odd),
                   binned=BinnedOutput.of(g, names, even, odd))

    # -- labels ---------------------------------------------------------------------------------------------------------
    @cached_property
    def panels(self) -> Panels:
        """Between the critical labels, graded towards them."""
        t = np.concatenate([[0.0], 4.0**-np.arange(_DEPTH, -1, -1)])
        inside = sorted({*(k for k in self.knots if self.low < k < self.high), *([0.0] if self.odd else [])})
        ends = [self.low, *inside, self.high]
        found = []
        for a, b in pairwise(ends):
            if b - a < 1e-9*(self.high - self.low) or (self.odd and b <= 0):
                continue
            critical = [k for k in (a, b) if any(abs(k - c) < 1e-9*(self.high - self.low) for c in self.graded)] or [a]
            for k in critical:
                tau = np.sqrt((b - a)/len(critical))*t
                found += [(k, 1.0 if k == a else -1.0, p, q) for p, q in pairwise(tau)]
        if not found:
            raise self._too_far("no panel of labels is left")
        return Panels(*np.array(found).T)

    def labels(self, v: float, fineness: float) -> tuple[Array, list[tuple[Array, Array]]]:
        """(dy, level curves) for V >= v: panels are halved until their integrand is resolved. Those above zero, if g is odd."""
        s = float(rung(min(1.0, np.sqrt(v))))
        if (s, fineness) in self._kept:
            return self._kept[s, fineness]
        frame = Frame(np.full(2, max(0.0, 1 - s*s)), np.eye(2))
        curves: list[Any] = []
        steps: list[Array] = []
        panels, small = self.panels, 0.0
        for n in range(_ROUNDS):
            checkpoint("labels of a state evolution")
            y, dy = panels.nodes()
            wide, size = _WIDE*s*fineness, self.high - self.low
            found = self.plane.trace(y.ravel(), wide, _SMALL*fineness**4/size)
            parts = np.array([self._summed(d, [c], frame, 1.3*fineness)
                              for d, c in zip(dy.reshape(-1, 1), found, strict=True)])
            left = _unresolved(parts.reshape(*y.shape, 4))
            if not n:
                small = _TOLERANCE*fineness**6*max(float(np.trace(parts.sum(axis=0))), 1e-3)
            again = (left > small) & (n < _ROUNDS - 1)
            for k in np.flatnonzero(~again):
                curves += found[_ORDER*k:_ORDER*(k + 1)]
                steps.append(dy[k])
            if not again.any():
                break
            panels = panels.take(again).halves()
        self._require_all(np.concatenate(steps), curves)
        self._kept[s, fineness] = np.concatenate(steps), curves
        return self._kept[s, fineness]

    def _require_all(self, dy: Array, curves: Sequence[tuple[Array, Array]]) -> None:
        """Labels that reach over many orders of magnitude, as those of z1/z2 do, are not resolved: probability is missing."""
        normal = [float(w @ np.exp(-(points**2).sum(axis=1)/2)) for points, w in curves]
        seen = float(dy @ normal)/(2*np.pi)*(2 if self.odd else 1)
        if self.atoms is None and abs(seen - 1) > _ALL:
            raise self._too_far(f"its level curves hold {seen:.3g} of the probability, not 1")

    def _too_far(self, why: str) -> NoClosedForm:
        return NoClosedForm("the state evolution of this label", f"{why}: labels from {self.low:.1e} to {self.high:.1e} are not "
                            "resolved", "Take a function of g that grows less, such as log(1 + abs(g)) of one that is positive")

    # -- F --------------------------------------------------------------------------------------------------------------
    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M), in the frame of its eigenvectors."""
        frame = frame_of(M, self.even, self.odd)
        dy, curves = self.labels(float((1 - frame.m).min()), fineness)
        F = self._summed(dy, curves, frame, fineness)
        if frame.odd:
            F = 2*F
        elif self.odd:
            F += self._summed(dy, [(points @ self.odd[0].T, w) for points, w in curves], frame, fineness)
        F = frame.back(F*frame.shown)
        return np.asarray(F if self.atoms is None else F + self.atoms.second(M, 0.8*fineness))

    def _summed(self, dy: Array, curves: Sequence[tuple[Array, Array]], frame: Frame, fineness: float) -> Array:
        """sum over labels of dy E_omega[A A^T/Z], in the frame."""
        s = np.sqrt(1 - frame.m)
        (o1, w1), (o2, w2) = field_nodes(frame.m, _FIELDS*fineness, frame.halved, _FAR)
        F = np.zeros((2, 2))
        for (points, w), step in zip(curves, dy, strict=True):
            z, a = _moments(points @ frame.R, w, (o1, o2), s)
            F += step*outer(a, z, w1[:, None]*w2)
        return F


def _unresolved(parts: Array) -> Array:
    """What Gauss-Legendre leaves of each panel, from parts (panels, nodes, k) of its sum: its series goes on as it ends.

    The rule is exact for twice as many Legendre coefficients as it sees: from the n-th on they go on to fall as the last do.
    """
    grid = np.polynomial.legendre.legvander(2*_NODE - 1, _ORDER - 1).T*(2*np.arange(_ORDER)[:, None] + 1)
    c = np.abs(np.einsum("kn,pnj->pkj", grid, parts))
    last, before = c[:, -2:].max(axis=1), c[:, -4:-2].max(axis=1)
    fall = np.minimum(1.0, last/np.where(before > 0, before, 1.0))
    return np.asarray((2*last*fall**(_ORDER/2)).max(axis=1))


def _moments(points: Array, w: Array, fields: tuple[Array, Array], s: Array) -> tuple[Array, tuple[Array, Array]]:
    """Z and dZ/domega on the grid of fields, from points in the frame of V = diag(s^2); only near points count."""
    Z, A1, A2 = (np.zeros((len(fields[0]), len(fields[1]))) for _ in range(3))
    blocks = [slice(None)]
    if s[0] < 0.45 and len(points) > 64:
        size = 2*s
        grid = np.floor(points/size)
        order = np.lexsort(grid.T[::-1])
        points, w, cell = points[order], w[order], grid[order]
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(cell, axis=0) != 0).any(axis=1)]))
        blocks = [slice(a, b) for a, b in pairwise([*starts, len(points)])]
    for block in blocks:
        p, kernels, near = points[block], [], []
        for i, o in enumerate(fields):
            reach = slice(*np.searchsorted(o, [p[:, i].min(initial=0) - _NEAR*s[i], p[:, i].max(initial=0) + _NEAR*s[i]])) \
                if len(blocks) > 1 else slice(None)
            t = (p[:, i] - o[reach, None])/s[i]
            k = np.exp(-t*t/2)/(np.sqrt(2*np.pi)*s[i])
            kernels.append((k, k*t/s[i]))
            near.append(reach)
        (k1, d1), (k2, d2) = kernels
        checkpoint("labels of a state evolution", 3*k1.size*len(k2))
        Z[near[0], near[1]] += (k1*w[block]) @ k2.T
        A1[near[0], near[1]] += (d1*w[block]) @ k2.T
        A2[near[0], near[1]] += (k1*w[block]) @ d2.T
    return Z, (A1, A2)


def plateaus(plane: Plane, z: Array) -> FiniteOutput | None:
    """The labels of positive probability, seen as points where the gradient vanishes; exact boxes where the cuts border them."""
    grid = np.meshgrid(np.linspace(-4.03, 4.01, 80), np.linspace(-4.02, 4.03, 80))
    points = [np.concatenate([x, np.ravel(p)]) for x, p in zip(z, grid, strict=True)]
    flat = plane.g(points)[(plane.gradient(points) == 0).all(axis=1)]
    labels, counts = np.unique(np.round(flat, 12), return_counts=True)
    labels = labels[counts > 3]
    if not len(labels):
        return None

    def which(points: Sequence[Array]) -> Array:
        """The place of the label, and one more for all the others."""
        value = np.asarray(plane.g(points))
        found = np.full(value.shape, float(len(labels)))
        for n, k in enumerate(labels):
            found[np.abs(value - k) <= 1e-12*(1 + abs(k))] = n
        return found

    def law(points: Sequence[Array]) -> Array:
        at = which(points)
        return np.stack([at == k for k in range(len(labels))]).astype(float)

    steps = StepOutput(LabelGrid(tuple(LabelAxis(c, True) for c in plane.cuts), law), labels, r=2)
    inside = steps.grid.law(np.meshgrid(*(a.nodes(1.0)[0] for a in steps.grid.axes), indexing="ij"))
    cell = [np.searchsorted(c, x) for c, x in zip(plane.cuts, points, strict=True)]
    if np.array_equal(inside[:, cell[0], cell[1]], law(points)):
        return steps
    return FibreOutput(LabelGrid(tuple(LabelAxis(c) for c in plane.cuts), law), labels, of=which,
                       levels=np.arange(len(labels) + 1.0), mixed=np.eye(len(labels), len(labels) + 1))


def critical_points(plane: Plane) -> Array:
    """Points (k, 2) near the origin at which the gradient vanishes: their labels are critical."""
    from scipy.optimize import fsolve

    line = np.linspace(-3.1, 3.1, 63)
    grid = np.array(np.meshgrid(line, line, indexing="ij"))
    size = np.nan_to_num(np.hypot(*np.moveaxis(plane.gradient(list(grid)), -1, 0)), nan=1e300)
    inner = size[1:-1, 1:-1]
    least = (inner < 1.0) & (inner > 0)
    for i, j in ((0, 1), (2, 1), (1, 0), (1, 2)):
        least &= inner <= size[i:i + inner.shape[0], j:j + inner.shape[1]]
    found: list[Array] = [np.zeros(2)] if size[31, 31] == 0 else []
    for i, j in np.argwhere(least)[:40]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start from which nothing is found is no loss
            z, _, ok, _ = fsolve(lambda z: plane.gradient(list(z)), [line[i + 1], line[j + 1]], full_output=True)
        if ok == 1 and np.abs(z).max() < 3.3 and not any(np.abs(z - old).max() < 1e-4 for old in found):
            found.append(np.where(np.abs(z) < 1e-7, 0.0, z))
    return np.array(found[:12]).reshape(-1, 2)
