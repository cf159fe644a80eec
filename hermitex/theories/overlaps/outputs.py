r"""g, P(y|g) -> Output: how the Z(y, omega) of a target and its channel is integrated.

- finitely many labels: exact probabilities of intervals where the variables enter by steps, nodes where they do not;
- a smooth law P(y|z): nodes in y and z;
- y = g(z): the level sets of g in its smooth variable, or over the plane where there are two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Symbol, lambdify

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.laws.discrete import split_products
from hermitex.exponents.laws.noisy import effective
from hermitex.theories.overlaps.channel import FiniteOutput, Output
from hermitex.theories.overlaps.fibres import FibreOutput
from hermitex.theories.overlaps.grid import Array, Axis, Grid
from hermitex.theories.overlaps.levels import LevelOutput
from hermitex.theories.overlaps.products import ProductOutput
from hermitex.theories.overlaps.steps import StepOutput
from hermitex.theories.overlaps.structure import axis, indicator, label_values, sections, values

_LABELS = 6000
_MOST = 4e8  # labels times points that a quadrature may cost
_ROOT = np.sqrt(2*np.pi)


def output(g: Expr, law: Named | Channel, names: Sequence[Symbol], *, diagonal: bool) -> Output:
    """The output channel of a target; `diagonal`: its symmetries keep M diagonal.

    Raises
    ------
    NoClosedForm : three smooth variables and no noise, or a noise too small for its quadrature; says what to type instead.
    """
    names = tuple(names)
    if isinstance(law, Channel):
        return _custom(law, names)
    g = split_products(effective(g, law))
    axes = tuple(axis(g, x) for x in names)
    if law.name in ("deterministic", "random_sign"):
        if all(a.steps for a in axes):
            labels = label_values(g, names, axes)
            steps = StepOutput if 2 <= len(names) <= 3 else FiniteOutput
            return steps(Grid(axes, indicator(g, names, labels)), labels, r=len(names))
        if diagonal and (monomial := ProductOutput.of(g, names, law.name)) is not None:
            return monomial
        found = sections(g, names)
        if found is not None and (diagonal or len(names) == 1):
            return LevelOutput(found, len(names))
        return _implicit(g, names, axes)
    if law.name == "multiplicative" and diagonal and (monomial := ProductOutput.of(g, names, law.name)) is not None:
        return monomial
    return _drawn(g, law, names, axes)


def _implicit(g: Expr, names: tuple[Symbol, ...], axes: tuple[Axis, ...]) -> Output:
    """A label without noise that mixes several variables: discrete by its values, or the level curves over a plane."""
    labels = _few_values(g, names)
    if labels is not None:
        grid = Grid(axes, indicator(g, names, labels))
        return (FibreOutput.through(grid, labels, values(g, names), labels, np.eye(len(labels))) if len(names) == 2
                else FiniteOutput(grid, labels, r=len(names)))
    if len(names) == 2:
        from hermitex.theories.overlaps.contours import ContourOutput

        return ContourOutput.of(g, names)
    raise NoClosedForm(f"the state evolution of {g}", f"its level sets in {len(names)} variables are not integrated",
                       "Add noise: channel gaussian:1/4")


def _few_values(g: Expr, names: tuple[Symbol, ...]) -> Array | None:
    """The labels of a target that takes few values, seen at many points."""
    z = np.random.default_rng(0).standard_normal((len(names), 4000))
    found = np.unique(np.round(values(g, names)(list(z)), 10))
    return found if len(found) <= 40 else None


# -- labels that are drawn ----------------------------------------------------------------------------------------------
def _drawn(g: Expr, law: Named, names: tuple[Symbol, ...], axes: tuple[Axis, ...]) -> Output:
    """P(y | g(z)) of a named channel."""
    of = values(g, names)
    sample = of(_spread(len(names)))
    w = Dummy("w", real=True)
    few = law.labels(w).probabilities
    if few:
        laws = [lambdify(w, p, modules=["numpy", "scipy"]) for p in few]
        labels = np.array([1.0, 0.0] if law.name == "bernoulli" else [1.0, -1.0])

        def finite(points: Sequence[Array]) -> Array:
            at = of(points)
            return np.stack([np.broadcast_to(p(at), at.shape) for p in laws])

        if all(a.steps for a in axes) and len(names) > 1:
            return StepOutput(Grid(axes, finite), labels, r=len(names))
        levels = _few_values(g, names)
        if levels is not None and len(names) == 2:
            mixed = np.stack([np.broadcast_to(p(levels), levels.shape) for p in laws])
            return FibreOutput.through(Grid(axes, finite), labels, of, levels, mixed)
        return FiniteOutput(Grid(axes, finite), labels, r=len(names), smallest=_smallest(axes))
    if law.name == "gaussian":
        D = float(law.parameter or 0)
        y, dy = _uniform(sample.min() - 8*np.sqrt(D), sample.max() + 8*np.sqrt(D), 0.45*np.sqrt(D))
        density = partial(_gaussian, of, D)
        scale = np.sqrt(D)/_steepest(of, len(names))
    elif law.name == "poisson":
        top = float(sample.max())
        y, dy = np.arange(float(int((np.sqrt(top) + 7)**2) + 1)), np.ones(1)
        density, scale = partial(_poisson, of), 0.5/_steepest(lambda p: 2*np.sqrt(np.maximum(of(p), 0)), len(names))
    else:
        y = np.sinh(np.arange(-11.0, 11.0, 0.08))*1e-3*max(1.0, float(np.sqrt(np.mean(sample**2))))
        dy = np.gradient(y)
        density, scale = partial(_scaled, of), 0.1
    return _integrated(density, y, dy, axes, scale, f"a label {g} through {law}")


def _integrated(density: Any, y: Array, dy: Array, axes: tuple[Axis, ...], scale: float, what: str) -> Output:
    steps = np.broadcast_to(dy, y.shape)
    axes = tuple(a if a.steps else Axis(a.cuts, False, scale) for a in axes)
    cells = float(np.prod([len(a.nodes(a.rung(0.5))[0]) for a in axes]))
    if len(y) > _LABELS or cells*len(y) > _MOST:
        raise NoClosedForm(f"the state evolution of {what}", "its range is too large against its noise for a quadrature",
                           "Use a larger noise")
    from hermitex.theories.overlaps.channel import stepped

    return FiniteOutput(Grid(axes, partial(stepped, density, y, steps)), y, law=density, steps=steps, r=len(axes),
                        smallest=_smallest(axes))


def _smallest(axes: Sequence[Axis]) -> float:
    """The V that nodes resolve at a bearable cost: less where there are several smooth variables."""
    return {0: 4e-4, 1: 1e-3, 2: 1e-2, 3: 5e-2}[sum(not a.steps for a in axes)]


def _spread(r: int) -> list[Array]:
    """Points that fill the ball of radius 6.5."""
    z = np.random.default_rng(1).standard_normal((r, 20_000))
    z *= 6.5*np.linspace(0, 1, z.shape[1])**(1/r)/np.linalg.norm(z, axis=0)
    return list(z)


def _steepest(of: Any, r: int) -> float:
    """A typical large slope of the target, where most of the mass is."""
    z = np.random.default_rng(2).standard_normal((r, 4000))
    slope = np.zeros(z.shape[1])
    for i in range(r):
        step = np.zeros((r, 1))
        step[i] = 1e-4
        slope = np.maximum(slope, np.abs(of(list(z + step)) - of(list(z - step)))/2e-4)
    slope = slope[np.isfinite(slope) & (slope < 1e3)]
    return float(np.quantile(slope, 0.97)) + 1e-3 if len(slope) else 1.0


def _uniform(low: float, high: float, step: float) -> tuple[Array, Array]:
    if not np.isfinite([low, high]).all() or (high - low)/step > _LABELS:
        return np.zeros(_LABELS + 1), np.ones(1)
    y = np.arange(low, high + step, step)
    return y, np.full(1, step)


def _gaussian(of: Any, D: float, y: Array, points: Sequence[Array]) -> Array:
    return np.asarray(np.exp(-(y - of(points))**2/(2*D))/np.sqrt(2*np.pi*D))


def _poisson(of: Any, y: Array, points: Sequence[Array]) -> Array:
    from scipy.special import gammaln, xlogy

    rate = np.maximum(of(points), 0.0)
    return np.asarray(np.exp(xlogy(y, rate) - rate - gammaln(y + 1)))


def _scaled(of: Any, y: Array, points: Sequence[Array]) -> Array:
    size = np.maximum(np.abs(of(points)), 1e-12)
    return np.asarray(np.exp(-(y/size)**2/2)/(size*_ROOT))


def _custom(law: Channel, names: tuple[Symbol, ...]) -> Output:
    """P(y|z) of the user's: listed labels, counts, or a density on the line."""
    axes = tuple(axis(law.p, x) for x in names)
    f = lambdify((law.y, *names), law.p, modules=["numpy", "scipy"])

    def density(y: Array, points: Sequence[Array]) -> Array:
        with np.errstate(all="ignore"):
            shape = np.broadcast_shapes(np.shape(y), *(np.shape(p) for p in points))
            return np.nan_to_num(np.broadcast_to(np.asarray(f(y, *points), dtype=float), shape))

    if law.finite or law.support == "integers":
        y = np.array([float(v) for v in law.support]) if law.finite else np.arange(400.0)
        return _integrated(density, y, np.ones(1), axes, 0.5, "this channel")
    t = np.arange(-3.0, 3.0 + 1e-9, 1/32)
    y = np.sinh(np.pi/2*np.sinh(t))
    return _integrated(density, y, np.pi/2*np.cosh(t)*np.cosh(np.pi/2*np.sinh(t))/32, axes, 0.3, "this channel")


__all__ = ["output"]
