r"""dm_i/dt = E[G (z_i - m_i h)] - m_i step/2 E[G^2],  G = dl(h + rho dl(h)): the flow of SGD that looks at each sample twice.

h = <m, z> + (1 - |m|^2)^(1/2) x with x normal, dl(h) = y sigma'(h) (correlation) or (y - sigma(h)) sigma'(h) (square), y = g(z);
rho = `repetition` is the first step times d, kept whole and not expanded. Near m = 0 the overlaps obey dm/dt = E[G z] + J m,

    J = E[G x (z z^T - 1)],   step = lambda_max(J)/E[G^2],   n = E[G^2]/lambda_max(J)^2 d log d,

the step with the fewest samples where E[G z] = 0. By Cauchy and Schwarz lambda_max(J)^2/E[G^2] <= |E[(E[z z^T|y] - 1)^2]|, in one
direction 1/alpha_c: no student and no rho make more of the label than its weak recovery. Source: Dandi et al. (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import DiracDelta, Expr, Symbol

from hermitex.errors import BadInput
from hermitex.kernels.averages import compiled
from hermitex.kernels.normals import panels
from hermitex.numbers.gauss import legendre
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.weak import weak_derivative
from hermitex.symbols import z

Array = np.ndarray[Any, Any]
REACH = 7.0  # P(|z| > 7) = 3e-12
_ROOT = np.sqrt(2*np.pi)  # the normal density is exp(-x^2/2)/_ROOT


@dataclass(frozen=True, eq=False)
class Repeated:
    """Averages over a sample that is seen twice, at overlaps m (r,).

    Attributes
    ----------
    student, slope : sigma and sigma' as functions of arrays;  label : g of the columns of z (n, r), shape (n,)
    cuts : for each direction the points at which g is not smooth;  steps : whether g is constant between them
    loss : "correlation" or "square";  repetition : the first step times d
    """

    student: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    label: Callable[[Array], Array]
    cuts: tuple[Array, ...]
    loss: str
    repetition: float
    fineness: float = 1.0
    steps: tuple[bool, ...] = ()

    def gradient(self, y: Array, h: Array) -> Array:
        """dl(h + rho dl(h))."""
        with np.errstate(over="ignore", invalid="ignore"):
            first = self._dl(y, h)
            found = first if not self.repetition else self._dl(y, h + self.repetition*first)
        if not np.all(np.isfinite(found)):
            raise BadInput("sgd: the student overflows at the pre-activation after the first use of the sample; "
                           "take one that does not (sqrt(1 + z**2) for log(cosh(z))), or a smaller repetition")
        return found

    def _dl(self, y: Array, h: Array) -> Array:
        return (y if self.loss == "correlation" else y - self.student(h))*self.slope(h)

    @cached_property
    def _nodes(self) -> tuple[Array, Array, Array, Array]:
        """z (n, r), its weights and labels, and the points h: as fine as three million points allow."""
        steps = self.steps or (False,)*len(self.cuts)
        smooth = len(steps) - sum(steps)
        inner = {0: 400, 1: 400, 2: 120}.get(smooth, 56)
        width = {1: 0.4, 2: 1.2}.get(smooth, 3.5)*self.fineness
        # Gauss-Legendre nodes of a panel; between two steps of the label, where only the field moves, one panel has ten digits.
        axes = [panels(c, *((REACH, 16) if flat else (width, 8)), reach=REACH) for c, flat in zip(self.cuts, steps, strict=True)]
        points = np.stack([a.ravel() for a in np.meshgrid(*(a for a, _ in axes), indexing="ij")], axis=1)
        weights: Any = 1.0
        for x, w in axes:
            weights = np.multiply.outer(weights, w*np.exp(-x*x/2))
        weights = weights.ravel()
        keep = weights > 1e-11*weights.max()
        points, weights = points[keep], weights[keep]/weights.sum()
        most = 3_000_000  # points of one average
        # The second look is sharp or oscillates in h where the label is large; a trapezoid shifted off 0 has no favoured place.
        size = max(24, min(int(inner/self.fineness), most//len(points)))
        return points, weights, np.asarray(self.label(points), dtype=float), (np.arange(size) + 0.5)*(2*REACH/size) - REACH

    @cached_property
    def _second(self) -> Array:
        """G on the grid of labels and h."""
        _, _, y, h = self._nodes
        return self.gradient(y[:, None], h)

    def averages(self, m: Array) -> tuple[Array, float, float]:
        """E[G z] (r,), E[G h] and E[G^2] at overlaps m."""
        points, weights, y, grid = self._nodes
        field, rest, spacing = points @ m, np.sqrt(max(0.0, 1 - float(m @ m))), grid[1] - grid[0]
        first, along, square = np.zeros(len(m)), 0.0, 0.0
        for at in _blocks(len(points), len(grid)):
            if rest > 1.2*spacing:  # the density moves over a fixed G: small overlaps lose nothing to its sharp places
                h, G = grid, self._second[at]
                own = np.exp(-((grid - field[at, None])/rest)**2/2)*(spacing/(rest*_ROOT))
            else:
                h = field[at, None] + rest*grid
                G, own = self.gradient(y[at, None], h), np.exp(-grid**2/2)*(spacing/_ROOT)
            seen = own*G
            first += (weights[at]*seen.sum(axis=1)) @ points[at]
            along += float(weights[at] @ (seen*h).sum(axis=1))
            square += float(weights[at] @ (seen*G).sum(axis=1))
        return first, along, square

    def rate(self, m: Any, step: float = 0.0) -> Array:
        """dm/dt at overlaps m (r,)."""
        x = np.asarray(m, dtype=float)
        x = x/max(1.0, float(np.linalg.norm(x)))
        first, along, square = self.averages(x)
        return np.asarray(first - x*(along + step/2*square))

    @cached_property
    def start(self) -> tuple[Array, Array, float]:
        """E[G z], J = E[G x (z z^T - 1)] and E[G^2] at m = 0."""
        points, weights, _, x = self._nodes
        own = np.exp(-x**2/2)*((x[1] - x[0])/_ROOT)
        seen = weights*(self._second @ (own*x))
        J = (points.T*seen) @ points - seen.sum()*np.eye(points.shape[1])
        return (weights*(self._second @ own)) @ points, J, float(weights @ (self._second**2 @ own))

    @property
    def growth(self) -> float:
        """lambda_max(J), the rate at which small overlaps grow."""
        return float(np.linalg.eigvalsh((self.start[1] + self.start[1].T)/2)[-1])

    @property
    def step(self) -> float:
        """gamma d = lambda_max(J)/E[G^2], at which the noise takes half of the growth; 0 where nothing grows."""
        return max(0.0, self.growth)/self.start[2]

    @property
    def signal(self) -> float:
        """lambda_max(J)^2/E[G^2]: d log d over the samples that the escape takes; at most the inverse threshold 1/alpha_c."""
        return max(0.0, self.growth)**2/self.start[2]

    def error(self, m: Any) -> float:
        """How far the rate at m moves when its nodes are fewer by half: an estimate of its error."""
        coarse = Repeated(self.student, self.slope, self.label, self.cuts, self.loss, self.repetition, 2*self.fineness,
                          self.steps)
        return float(np.max(np.abs(self.rate(m) - coarse.rate(m))))


@lru_cache(maxsize=32)
def repeated(sigma: Activation, target: Expr, variables: tuple[Symbol, ...], loss: str, repetition: float) -> Repeated:
    r"""The averages of a student and a target in one or several variables.

    >>> from hermitex.symbolic.activations import activation
    >>> twice = repeated(activation("sqrt(1 + z**2)"), activation("He4(z)/sqrt(24)").expr, (z,), "correlation", 5.0)
    >>> [round(v, 3) for v in (twice.growth, twice.step, twice.signal)]
    [0.525, 0.61, 0.321]
    """
    from hermitex.exponents.label import split_products
    from hermitex.kernels.compile import compile
    from hermitex.theories.overlaps.label_structure import axis

    if not np.isfinite(repetition):
        raise BadInput(f"sgd: repetition is a finite number, not {repetition!r}")
    slope = weak_derivative(sigma.expr, z)
    if slope.has(DiracDelta):
        raise BadInput(f"sgd: {sigma.name} jumps, and has no gradient on a sample that could be repeated; take repetition=0")
    kernel = compile(target, *(v.name for v in variables))
    axes = [axis(split_products(target), v) for v in variables]
    student, steep = (function_of("sgd", e, 50.0) for e in (sigma.expr, slope))
    return Repeated(student, steep, lambda points: np.asarray(kernel(*points.T)),
                    tuple(a.cuts for a in axes), loss, float(repetition), steps=tuple(a.steps and bool(a.cuts.size) for a in axes))


def escape_times_repeated(twice: Repeated, d: Array, level: float, step: float) -> Array:
    """From m = d^(-1/2) to the overlap `level` in one direction; inf where the flow does not arrive."""
    if not (0 < level < 1) or not np.all(d > 1/level**2):
        raise BadInput(f"sgd: the level must be between d^(-1/2) and 1, not {level:g} at d = {d.min():g}")
    count = 40  # nodes of the integral of dm/(dm/dt) over log m
    nodes, weights = legendre(count)
    times = []
    for low in 1/np.sqrt(d):
        half = np.log(level/low)/2
        at = low*np.exp(half*(1 + nodes))
        speed = np.array([twice.rate([v], step)[0] for v in at])
        times.append(half*float(np.sum(weights*at/speed)) if np.all(speed > 0) else np.inf)
    return np.array(times)


def function_of(asking: str, expr: Expr, reach: float) -> Callable[[Array], Array]:
    """The expression as a function of arrays of z, |z| up to `reach`."""
    made = compiled(expr, z, np.array([-reach, reach]))
    if made is None:
        raise BadInput(f"{asking}: {expr} holds more than the variable z; give its parameters numbers")
    return made[0]


def _blocks(n: int, width: int) -> list[slice]:
    block = 250_000  # numbers at once: 2 MB an array stays in the cache
    size = max(1, block//width)
    return [slice(k, k + size) for k in range(0, n, size)]


__all__ = ["REACH", "Repeated", "escape_times_repeated", "function_of", "repeated"]
