"""F(x) = f(x) exp(-|x|^2/2)/(2 pi)^(n/2) in units of its largest value: where it has its mass, whether it falls off, how it rounds.

The largest value is looked for on a grid of [-40, 40]^n, and beyond it along rays out to 2^46. An integrand that does not fall off
along a ray has no average.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Symbol

from hermitex.errors import Divergent, NotConverged
from hermitex.numbers.program import Program
from hermitex.symbolic.budget import checkpoint

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


class ScaledIntegrand:
    """Values of F over exp(`top`), of size 1 at most nearly, on arrays of points.

    Parameters
    ----------
    body : integrand in `variables`
    variables : independent standard normals
    box : (lower, upper) ends where F is an ordinary integrand on a box, without the Gaussian weight (polar coordinates)

    Attributes
    ----------
    low, high : the box that holds all but 1e-18 of the mass of F
    evaluations, most : how many values were computed, and how many may be
    """

    def __init__(self, body: Expr, variables: Sequence[Symbol], box: tuple[Array, Array] | None = None) -> None:
        self._begin(body, variables)
        self.weighted = box is None
        if box is None:
            self.low, self.high = self._region()
            self._require_decay()
        else:
            self.low, self.high = box
            self.top = float(np.max(self.level(self._grid(33))[1], initial=-np.inf))
        if not np.isfinite(self.top):
            raise NotConverged(None, f"{body} is zero or undefined wherever it was evaluated")

    def _begin(self, body: Expr, variables: Sequence[Symbol], names: Sequence[Symbol] = (), most: int = 20_000_000) -> None:
        """Compile the body, in the names if it holds others than the variables; nothing is evaluated yet."""
        self.body, self.variables, self.n = body, tuple(variables), len(variables)
        self.weighted, self.evaluations, self.most, self.top = True, 0, most, 0.0
        self._moved = self._size = 0.0
        self.program = Program(body, tuple(names) or self.variables)

    def level(self, points: Array) -> tuple[Array, Array]:
        """(points, log |F|) at the rows of an array; -inf where F vanishes or has no value."""
        with np.errstate(all="ignore"):
            found = self.program.floats(*points.T).logarithm() - self._exponent(points)
        return points, np.where(np.isfinite(found), found, -np.inf)

    def __call__(self, *columns: Array, weights: Array | None = None) -> Array:
        """The values F/exp(top), 65,536 points at a time; nan where f has no value. The weights are those of the sum."""
        out = np.empty(len(columns[0]))
        for start in range(0, len(out), 65536):
            part = np.stack([c[start:start + 65536] for c in columns], axis=1)
            checkpoint("integrating over several normals", cells=len(part))
            out[start:start + len(part)] = self._values(part)
            some = slice(start, start + len(part), 97)
            self._round(part[::97], out[some], 1.0 if weights is None else weights[some])
        self.evaluations += len(out)
        return out

    def _values(self, points: Array) -> Array:
        m, e = self.program.floats(*points.T)
        with np.errstate(all="ignore"):
            return np.asarray(np.real(m)*np.exp(np.clip(e - self._exponent(points) - self.top, -745, 700)))

    def _exponent(self, points: Array) -> Array | float:
        return (points*points).sum(axis=1)/2 + self.n*np.log(2*np.pi)/2 if self.weighted else 0.0

    def _round(self, points: Array, values: Array, weights: Array | float) -> None:
        """Add up what one rounding of each coordinate changes, at some of the points."""
        turned = points*(1 + EPS*np.where(np.arange(points.size).reshape(points.shape) % 2, 1, -1))
        with np.errstate(all="ignore"):
            change = np.minimum(np.abs(self._values(turned) - values), np.abs(values))*weights
            size = np.abs(values)*weights
        good = np.isfinite(change) & np.isfinite(size)
        self._moved += float(change[good].sum())
        self._size += float(size[good].sum())

    @property
    def rounding(self) -> float:
        """The relative error that rounding makes in a sum of values."""
        # The roundings of nodes are independent: a quarter of their worst case is 4 standard deviations for 256 nodes. Those of
        # operations too; that of the largest exponent is the same for all nodes, and is at most half of its last digit.
        moved = self._moved/self._size/4 if self._size else 0.0
        return EPS*(2 + len(self.program.operations)**0.5/2 + abs(self.top)/8) + moved

    @property
    def left(self) -> float:
        """How many evaluations are left."""
        return self.most - self.evaluations

    # -- where the mass is ---------------------------------------------------------------------------------------------
    def _grid(self, steps: int) -> Array:
        axes = [np.linspace(a, b, steps + 2)[1:-1] for a, b in zip(self.low, self.high, strict=True)]
        return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)

    def _region(self) -> tuple[Array, Array]:
        """The box of the cells with mass above 1e-18 of the largest; sets `top`."""
        points = self._places()
        found = np.concatenate([self.level(points[s:s + 65536])[1] for s in range(0, len(points), 65536)])
        self.top = float(found.max())
        if not np.isfinite(self.top):
            raise NotConverged(None, f"{self.body} is zero or undefined wherever it was evaluated")
        kept = points[found > self.top - 18*np.log(10)]
        low, high = kept.min(axis=0), kept.max(axis=0)
        if (np.abs([low, high]) > 38).any():
            self.low, self.high = low, high
            self._require_decay()
            raise NotConverged(None, f"the mass of {self.body} does not end within 38 of the origin")
        # a region between two points of the grid may hold mass: the box contains all of [-8.5, 8.5]
        return np.minimum(low - 2, -8.5), np.maximum(high + 2, 8.5)

    def _places(self) -> Array:
        """A grid of 10^4 points in two variables and 10^5 in three, coarser beyond 8; in more, normal points of three widths."""
        if self.n > 3:
            from scipy.special import ndtri
            from scipy.stats import qmc  # half a second, which few answers need

            points = ndtri(qmc.Sobol(self.n, seed=11).random(2**14))
            return np.concatenate([width*points for width in (1.0, 2.0, 4.0)])
        inner, outer = {1: (0.05, 0.5), 2: (0.25, 1.0), 3: (0.5, 2.0)}[self.n]
        beyond = np.arange(8 + outer, 40 + outer, outer)
        axis = np.concatenate([-beyond[::-1], np.arange(-8, 8 + inner/2, inner), beyond]) + 0.0123
        return np.stack([g.ravel() for g in np.meshgrid(*[axis]*self.n, indexing="ij")], axis=1)

    def _require_decay(self) -> None:
        """Raise Divergent where |F| stays within exp(6) of its largest value, or grows, along a ray to 2^46."""
        corners = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=min(self.n, 4)) if any(d)])
        corners = np.pad(corners, ((0, 0), (0, self.n - corners.shape[1])))
        turns = np.random.default_rng(7).normal(size=(64, self.n))
        rays = np.concatenate([corners, turns])
        rays /= np.linalg.norm(rays, axis=1)[:, None]
        radii = 40*2.0**(np.arange(1, 81)/2)
        found = self.level((rays[:, None, :]*radii[:, None]).reshape(-1, self.n))[1].reshape(len(rays), -1)
        if (found[:, :8].max(axis=1) > self.top - 6).any() or (found[:, -8:].max(axis=1) > self.top - 6).any():
            raise Divergent(self.body, "the integrand does not fall off in every direction")


__all__ = ["EPS", "ScaledIntegrand"]
