"""E[f(z)] ~ sum_j w_j f(z_j), with two coarser sets of weights on the same nodes: the error estimate is free.

Analytic integrands: the trapezoid rule on [-L, L], which converges exponentially and is nested (every second node).
Kinks, jumps and near-singular integrands: panels between break points, Fejer's second rule of 31 nodes on each, whose
odd nodes are the rule of 15. Both are open at break points, so a jump is never evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from hermitex.numbers.gauss import extended_legendre

WINDOW = 10.0  # P(|z| > 10) < 2e-23: room for integrands that are concentrated in the tail
BOUND = 9.0  # the same where panels end: P(|z| > 9) < 3e-19
_FEJER = 31  # nodes of a panel: 31 contain those of the rules of 15 and 7, whose differences give the error
_SHIFT = 0.381966011250105  # the golden section: no few steps add up to a whole number of others


@dataclass(frozen=True, eq=False)
class Rule:
    """Nodes and three sets of weights for the standard normal: `weights` (used), `coarse` and `coarser`.

    The error is estimated as |fine - coarse| times the rate |fine - coarse|/|coarse - coarser| at which it shrinks.

    kind "trapezoid" has a `step`, and a `shift` by that part of it where a node must be moved; kind "panels" has `edges`, and
    its nodes are ordered by panels, 31 on each; kind "unit" has panels of [0, 1] without the density, to be laid between moving
    break points.
    """

    nodes: np.ndarray
    weights: np.ndarray
    coarse: np.ndarray
    coarser: np.ndarray
    kind: str
    window: float
    step: float = 0.0
    edges: np.ndarray | None = None
    shift: float = 0.0
    grades: int = 0  # the number of panels graded toward each end

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def levels(self) -> np.ndarray:
        """The three sets of weights as columns, shape (nodes, 3)."""
        return np.ascontiguousarray(np.stack([self.weights, self.coarse, self.coarser], axis=1))

    @cached_property
    def ratios(self) -> np.ndarray:
        """The three sets of weights relative to `weights`, shape (3, nodes): 1, coarse/weights, coarser/weights."""
        safe = np.where(self.weights > 0, self.weights, 1.0)
        return np.stack([np.ones_like(safe), self.coarse / safe, self.coarser / safe])

    def refine(self, suspects: np.ndarray | None = None) -> Rule:
        """A finer rule. Trapezoid: half the step (then panels); panels: those in `suspects` (a mask) are halved; more terms."""
        if self.kind == "counting":  # what falls like a power is seen to the end in blocks; what is not smooth is counted on
            each = 8192  # terms, by then nothing that falls like an exponential is left
            if self.edges is not None:
                return counting(2 * each)
            return blocks() if len(self) == each else counting(2 * len(self))
        finest = 1 / 64  # step of a trapezoid rule, which has 1,281 nodes on the window; panels adapt better from there on
        nodes = 10  # of a trapezoid rule that is given up for panels
        if self.kind == "trapezoid":
            if self.step / 2 >= finest:
                return trapezoid(self.step / 2, self.window, self.shift)
            return panels(np.linspace(-self.window, self.window, max(37, int(2 * self.window / (nodes * self.step)))))
        assert self.edges is not None
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        chosen = middle if suspects is None else middle[suspects]
        return panels(np.union1d(self.edges, chosen))

    def widen(self, window: float) -> Rule:
        """The same rule on a larger window, for integrands that grow."""
        if self.kind == "counting":
            return self
        if self.kind == "trapezoid":
            return trapezoid(self.step, window, self.shift)
        if self.kind == "unit":
            return replace(self, window=window)
        assert self.edges is not None
        return panels(np.union1d(self.edges, [-window, window]))

    def shifted(self) -> Rule:
        """A trapezoid rule with other nodes, for what is 0/0 at one of them."""
        apart = 0.2763932022500210  # a shift that is none of the others: (1 - 1/sqrt 5)/2
        return trapezoid(self.step, self.window, apart)

    @cached_property
    def closer(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of another rule on the same window, or the same panels, that shares no node with this one.

        They are extended numbers: the rounding of nodes moves a fast integrand as much in one rule as in another.
        Trapezoid: shifted, with a shorter step. Panels: each in two unequal parts, so that no symmetry about 0 is left
        (an odd pole must not cancel).
        """
        if self.kind == "counting":  # further terms, or other blocks
            more = counting(len(self) + len(self) // 2 + 7) if self.edges is None else blocks(3001, 28)
            return more.nodes.astype(np.longdouble), more.weights.astype(np.longdouble)
        ratio = 0.786151377757423  # in no simple relation to the other step: the root of the golden section
        if self.kind == "trapezoid":
            return _shifted(self.step * ratio, self.window)
        assert self.edges is not None
        x, w = _gauss() if self.kind == "unit" else _crowded()
        if self.kind == "unit":
            nodes, half = _from_ends(_parted(self.edges), x)
            return nodes, (half * w).ravel()
        edges = np.sort(np.concatenate([self.edges, self.edges[:-1] + _SHIFT * np.diff(self.edges)]))
        half = np.diff(edges)[:, None] / 2
        nodes, weights = (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
        return nodes, weights * _density(nodes)

    @cached_property
    def wider(self) -> tuple[np.ndarray, np.ndarray]:
        """The same with a longer step, where that of this rule is short enough by far."""
        ratio = 1.557377045  # in no simple relation to the other step: about tan(1)
        return _shifted(self.step * ratio, self.window) if self.kind == "trapezoid" else self.closer

    @property
    def full(self) -> bool:
        """True if refining further is refused."""
        most_terms = 65_536  # of a sum over counts: half a megabyte of doubles
        if self.kind == "counting":
            return self.edges is None and len(self) >= most_terms
        most_panels = 4096  # 127,000 nodes of one axis
        return self.kind == "panels" and self.edges is not None and len(self.edges) > most_panels

    def panel_errors(self, integrand: np.ndarray) -> np.ndarray:
        """|fine - coarse| of each panel, for integrands of shape (..., nodes): shape (..., panels)."""
        difference = integrand * (self.weights - self.coarse)
        return np.abs(difference.reshape(*difference.shape[:-1], -1, _FEJER).sum(axis=-1))


def counting(terms: int = 64) -> Rule:
    """0, 1, 2, ..., `terms` of them, each counted once: sums over countable laws, whose summands contain the probabilities.

    The coarser sets leave out the last quarter, and the last half.

    >>> counting(8).coarser
    array([1., 1., 1., 1., 0., 0., 0., 0.])
    """
    places = np.arange(terms, dtype=float)
    one = np.ones(terms)
    return Rule(places, one, np.where(places < 3*terms/4, one, 0.0), np.where(places < terms/2, one, 0.0), "counting", np.inf)


@lru_cache(maxsize=4)
def blocks(first: int = 2048, order: int = 32) -> Rule:
    """The same to 2^240, for terms that are smooth in their number: beyond `first` in blocks [a, 2a), `order` terms of each.

    Their weights add up polynomials over the whole block exactly. On it k^-s is one to 5.8^-order; its last places are far below
    where k^4 overflows. The coarser sets have every second and fourth of these terms, and end by a quarter and a half sooner.

    >>> rule = blocks()
    >>> bool(abs(rule.weights @ (rule.nodes + 1)**-1.5 - 2.612375348685488) < 1e-14)
    True
    """
    count, n = int(np.floor(240 - np.log2(first))), np.arange(order)
    slope = np.where(n % 2 == 0, n*(n + 1.0), 0.0)  # P_n'(1) - P_n'(-1) of Legendre polynomials
    nodes, levels = [np.arange(first, dtype=float)], [[np.ones(first)] for _ in range(3)]
    for j in range(count):
        start = first*2.0**j  # as many terms as the number of its first one
        places = np.round((start - 1)*(1 - np.cos(np.pi*(np.arange(order) + 0.5)/order))/2)
        sums = np.where(n == 0, start, -slope*2/start/24)  # an integral, and the first term of Euler and Maclaurin
        nodes.append(start + places)
        for k, level in enumerate(levels):
            w, kept = np.zeros(order), slice(2**k//2, None, 2**k)
            table = np.polynomial.legendre.legvander(_on_block(places[kept], start), order//2**k - 1)
            w[kept] = np.linalg.solve(table.T, sums[:order//2**k])
            level.append(w if j < count*(1 - k/4) else 0*w)
    fine, coarse, coarser = map(np.concatenate, levels)
    return Rule(np.concatenate(nodes), fine, coarse, coarser, "counting", np.inf, edges=first*2.0**np.arange(count + 1))


def _on_block(places: np.ndarray, terms: float) -> np.ndarray:
    """Places 0, ..., terms - 1 of a block on (-1, 1), each in the middle of its own part."""
    return (2*places + 1)/terms - 1


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-x * x / 2) / np.sqrt(8*np.arctan(np.ones(1, x.dtype)))


@lru_cache(maxsize=64)
def trapezoid(step: float = 0.15, window: float = WINDOW, shift: float = 0.0) -> Rule:
    """The trapezoid rule on [-window, window], its nodes `shift` steps off the multiples of the step.

    >>> rule = trapezoid(0.15)
    >>> bool(abs(rule.weights @ rule.nodes**4 - 3) < 1e-12)
    True
    """
    half = 4 * int(np.ceil(window / step / 4))
    nodes = step * (np.arange(-half, half + 1) + shift)
    weights = step * _density(nodes)
    place = np.arange(len(nodes))
    coarse, coarser = (np.where(place % k == 0, k * weights, 0.0) for k in (2, 4))
    return Rule(nodes, weights, coarse, coarser, "trapezoid", window, step=step, shift=shift)


def panels(edges: Sequence[float] | np.ndarray) -> Rule:
    """Fejer's second rule with 31 nodes on each panel between consecutive edges.

    >>> rule = panels([-9, -3, 0, 3, 9])
    >>> bool(abs(rule.weights @ np.abs(rule.nodes) - np.sqrt(2/np.pi)) < 1e-9)
    True
    """
    edges = np.unique(np.asarray(edges, dtype=float))
    x, *levels = fejer()
    half = np.diff(edges)[:, None] / 2
    nodes = edges[:-1, None] + half * (1 + x)
    density = half * _density(nodes)
    weights, coarse, coarser = ((density * w).ravel() for w in levels)
    return Rule(nodes.ravel(), weights, coarse, coarser, "panels", float(np.max(np.abs(edges))), edges=edges)


def unit(count: int, grades: int = 0, window: float = BOUND) -> Rule:
    """`count` equal panels on [0, 1], the outer ones graded, without density: moving intervals are laid over them.

    The last of the graded ones is 4**-20 of the first, whatever their number: 20 are by quarters.
    Edges and nodes beyond 1/2 are given as t - 1 < 0, from the nearer end: next to a kink at 0 they keep their digits.
    """
    x, *levels = fejer()
    last_grade = 0.25**20  # distance of the last panel from an end, in panels: 20 grades of a quarter
    ends = last_grade ** (np.arange(grades, 0, -1) / max(grades, 1)) / count
    inner = np.linspace(0.0, 1.0, count + 1)[1:-1]
    edges = np.concatenate([[0.0], ends, np.where(inner > 1/2, inner - 1, inner), -ends[::-1], [-0.0]])
    nodes, half = _from_ends(edges, x)
    weights, coarse, coarser = ((half * w).ravel() for w in levels)
    return Rule(nodes, weights, coarse, coarser, "unit", window, edges=edges, grades=grades)


def _from_ends(edges: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes x on panels of [0, 1], and half the widths of these; edges and nodes beyond 1/2 are stored as t - 1."""
    low, high, half = edges[:-1, None], edges[1:, None], _widths(edges)[:, None] / 2
    return _nearer(np.where(np.signbit(high), high - half * (1 - x), low + half * (1 + x))).ravel(), half


def _widths(edges: np.ndarray) -> np.ndarray:
    """The panels between edges that are stored as t - 1 beyond 1/2."""
    low, high = edges[:-1], edges[1:]
    return np.where(np.signbit(high) & ~np.signbit(low), 1 + high - low, high - low)


def _nearer(t: np.ndarray) -> np.ndarray:
    """The same places, from the nearer end of [0, 1]."""
    return np.where(t > 1/2, t - 1, np.where(t < -1/2, t + 1, t))


def _parted(edges: np.ndarray) -> np.ndarray:
    """Each panel in two unequal parts."""
    low, high, width = edges[:-1], edges[1:], _widths(edges)
    between = _nearer(np.where(np.signbit(high), high - (1 - _SHIFT) * width, low + _SHIFT * width))
    return np.append(np.stack([low, between], axis=1).ravel(), high[-1])


def split(kinks: Sequence[float] | np.ndarray, window: float = WINDOW) -> Rule:
    """Panels of width at most 1/2 between the kinks, for piecewise analytic integrands."""
    kinks = np.asarray([k for k in np.ravel(kinks) if np.isfinite(k) and abs(k) < window])
    return panels(np.union1d(np.linspace(-window, window, 25), kinks))


@lru_cache(maxsize=1)
def fejer() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes on [-1, 1], the weights of the rule of 31, and those of its nested rules of 15 and 7 on the same nodes."""
    x, fine = _fejer_rule(_FEJER)
    coarse, coarser = np.zeros(_FEJER), np.zeros(_FEJER)
    coarse[1::2] = _fejer_rule(15)[1]
    coarser[3::4] = _fejer_rule(7)[1]
    return x, fine, coarse, coarser


def _shifted(step: float, window: float) -> tuple[np.ndarray, np.ndarray]:
    reach = int(window / step)
    nodes = np.longdouble(step) * (np.arange(-reach, reach) + np.longdouble(_SHIFT))
    return nodes, step * _density(nodes)


@lru_cache(maxsize=1)
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    return extended_legendre(18)  # nodes of each part of a panel in verification


@lru_cache(maxsize=1)
def _crowded() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (-1, 1) that crowd at the ends as u^2, so that a jump near the end of a panel is between two nodes."""
    crowded = 24  # nodes of each part of a panel in verification
    x, w = extended_legendre(crowded)
    return x*(3 - x**2)/2, w*3*(1 - x**2)/2


def _fejer_rule(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes -cos(k pi/(n+1)) and weights 4 sin(t)/(n+1) sum_j sin((2j-1) t)/(2j-1), k = 1..n."""
    t = np.pi * np.arange(1, n + 1) / (n + 1)
    odd = np.arange(1, n + 1, 2)
    weights = 4 * np.sin(t) / (n + 1) * (np.sin(np.outer(t, odd)) / odd).sum(axis=1)
    return -np.cos(t), weights
