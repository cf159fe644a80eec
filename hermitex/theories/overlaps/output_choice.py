r"""g, P(y|g) -> Output: how the Z(y, omega) of a target and its channel is integrated.

- finitely many labels: exact probabilities of intervals where the variables enter by steps, nodes where they do not;
- a smooth law P(y|z): nodes in y and z;
- y = g(z): the level sets of g in its smooth variable, or bins of the label where there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy
from sympy import Dummy, Expr, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.label import split_products, visible_target
from hermitex.kernels.arrays import lambdify
from hermitex.kernels.normals import WINDOW
from hermitex.kernels.panel_rules import zeros_of
from hermitex.theories.overlaps.bins import BinnedOutput
from hermitex.theories.overlaps.cell_grid import Array, LabelAxis, LabelGrid
from hermitex.theories.overlaps.channel import FiniteOutput, Output, cell_probabilities
from hermitex.theories.overlaps.discrete_labels import FibreOutput, StepOutput, few_values
from hermitex.theories.overlaps.label_structure import axis, find_sections, indicator, label_values, target_function
from hermitex.theories.overlaps.output_levels import LevelOutput
from hermitex.theories.overlaps.overlap_space import OverlapSpace
from hermitex.theories.overlaps.product_labels import ProductOutput

_LABELS = 18_000  # of a quadrature over y: 144 kB at each field


def output(g: Expr, law: NamedChannel | Channel, names: Sequence[Symbol], space: OverlapSpace) -> Output:
    """The output channel of a target, whose symmetries leave the overlaps of `space`.

    Raises
    ------
    NoClosedForm : a noise too small for its quadrature; says what to type instead.
    """
    found = _of(g, law, tuple(names), space)
    if not isinstance(found, FiniteOutput):
        return found
    found = replace(found, alike=(*space.group, *space.odd))
    return replace(found, quick=space.diagonal or found.r < 3) if isinstance(found, StepOutput) else found


def _of(g: Expr, law: NamedChannel | Channel, names: tuple[Symbol, ...], space: OverlapSpace) -> Output:
    diagonal = space.diagonal
    if isinstance(law, Channel):
        return _custom(law, names)
    g = split_products(visible_target(g, law))
    axes = tuple(axis(g, x) for x in names)
    if law.name in ("deterministic", "random_sign"):
        if all(a.steps for a in axes):
            labels = label_values(g, names, axes)
            return listed_output(LabelGrid(axes, indicator(g, names, labels)), labels)
        if diagonal and (monomial := ProductOutput.of(g, names, law.name)) is not None:
            return monomial
        found = find_sections(g, names)
        if found is not None and (diagonal or len(names) == 1):
            return LevelOutput(found, len(names))
        return _implicit(g, names, axes, space, law.name == "deterministic")
    if law.name == "multiplicative" and diagonal and (monomial := ProductOutput.of(g, names, law.name)) is not None:
        return monomial
    return _drawn(g, law, names, axes)


def _implicit(g: Expr, names: tuple[Symbol, ...], axes: tuple[LabelAxis, ...], space: OverlapSpace, signed: bool) -> Output:
    """A label without noise that mixes several variables: a list by its values, or bins."""
    of = target_function(g, names)
    labels = few_values(of, len(names))
    if labels is not None:
        return listed_output(LabelGrid(axes, indicator(g, names, labels)), labels, (of, labels, np.eye(len(labels))))
    # where the sign is drawn g means |g|
    return BinnedOutput.of(g, names, space.group, space.odd if signed else ())


# -- labels that are drawn ----------------------------------------------------------------------------------------------
def _drawn(g: Expr, law: NamedChannel, names: tuple[Symbol, ...], axes: tuple[LabelAxis, ...]) -> Output:
    """P(y | g(z)) of a named channel."""
    of = target_function(g, names)
    sample = of(_spread(len(names)))
    w = Dummy("w", real=True)
    few = law.labels(w).probabilities
    if few:
        laws = [lambdify(w, p, modules=["numpy", "scipy"]) for p in few]
        labels = np.array([1.0, 0.0] if law.name == "bernoulli" else [1.0, -1.0])

        def finite(points: Sequence[Array]) -> Array:
            at = of(points)
            return np.stack([np.broadcast_to(p(at), at.shape) for p in laws])

        levels = few_values(of, len(names))
        curved = None if levels is None else (of, levels, np.stack([np.broadcast_to(p(levels), levels.shape) for p in laws]))
        return listed_output(LabelGrid(axes, finite), labels, curved, smallest=_smallest(axes))
    if law.name == "gaussian":
        D = float(law.parameter or 0)
        step, reach = (0.3 if len(names) == 1 else 0.45)*np.sqrt(D), 8*np.sqrt(D)  # A^2/Z has poles in y: 2e-11, 1e-15 at 0.3
        y, dy = _uniform(sample.min() - reach, sample.max() + reach, step)
        density = partial(_gaussian, of, D)
        scale = np.sqrt(D)/_steepest(of, len(names))
    elif law.name == "poisson":
        top = float(sample.max())
        y, dy = np.arange(float(int((np.sqrt(top) + 7)**2) + 1)), np.ones(1)
        density, scale = partial(_poisson, of), 0.5/_steepest(lambda p: 2*np.sqrt(np.maximum(of(p), 0)), len(names))
    else:
        if len(names) > 1 and not all(a.steps for a in axes):
            raise NoClosedForm(f"the state evolution of {g} through {law}", "this noise is integrated for one variable, or a "
                               "product of powers of several", "Use gaussian:1/4, or a target like z1*z2")
        # the label's density has a logarithm at 0 and is even: nodes in log y, for both signs
        u = np.arange(-56.0, np.log(8*np.abs(sample).max()), 0.08)
        y, dy = np.exp(u), 2*0.08*np.exp(u)
        density, scale = partial(_scaled, of), np.inf
        zeros = np.zeros(0) if axes[0].steps else zeros_of(lambda x: of([x]), np.linspace(-WINDOW - 0.01, WINDOW, 4001))
        axes = tuple(a if a.steps else LabelAxis(np.union1d(a.cuts, _graded(zeros))) for a in axes)
    return _integrated(density, y, dy, axes, scale, f"a label {g} through {law}", analytic=law.name in ("gaussian", "poisson"))


def _integrated(density: Any, y: Array, dy: Array, axes: tuple[LabelAxis, ...], scale: float, what: str, *,
                analytic: bool = False) -> Output:
    steps = np.broadcast_to(dy, y.shape)
    axes = tuple(a if a.steps else LabelAxis(a.cuts, False, scale, analytic and len(axes) > 1 and not a.cuts.size) for a in axes)
    grid = LabelGrid(axes, partial(cell_probabilities, density, y, steps),
                     lambda i, j: partial(cell_probabilities, density, y[i:j], steps[i:j]), len(y))
    most = 6e8  # labels times points that a quadrature may cost
    if len(y) > _LABELS or grid.size(np.full(len(axes), 0.25))*float(len(y)) > most:
        raise NoClosedForm(f"the state evolution of {what}", "its range is too large against its noise for a quadrature",
                           "Use a larger noise")
    return listed_output(grid, y, law=density, smallest=_smallest(axes), nodes=40 if len(axes) == 1 else 16)


def listed_output(grid: LabelGrid, labels: Array, curved: tuple[Any, Array, Array] | None = None, **more: Any) -> FiniteOutput:
    """Labels of a list: exact boxes where all variables enter by steps, lines where two of them have jumps elsewhere, else nodes.

    curved : (g, its levels, P(label | level)) of a target that takes few values
    """
    r = len(grid.axes)
    if all(a.steps for a in grid.axes):
        return (StepOutput if r > 1 else FiniteOutput)(grid, labels, r=r, **more)
    if r == 2 and curved is not None:
        of, levels, mixed = curved
        return FibreOutput(grid, labels, of=of, levels=levels, mixed=mixed)
    return FiniteOutput(grid, labels, r=r, **more)


def _graded(centres: Array) -> Array:
    """Cuts for a law that varies on the scale of the distance to some points: panels that grow by 3 away from them."""
    near = 3.0**-np.arange(30)
    return np.add.outer(centres, np.concatenate([-near, [0.0], near])).ravel()


def _smallest(axes: Sequence[LabelAxis]) -> float:
    """The V that nodes resolve at a bearable cost: less where there are several smooth variables."""
    return {0: 4e-4, 1: 1e-3, 2: 3e-2, 3: 8e-2}[sum(not a.steps for a in axes)]


def _spread(r: int) -> list[Array]:
    """Points that fill a ball: labels of points beyond it are left out, whose mass is 1e-15."""
    z = np.random.default_rng(1).standard_normal((r, 20_000))
    radius = 8.2  # points that fill a ball: the mass beyond is 1e-15
    z *= radius*np.linspace(0, 1, z.shape[1])**(1/r)/np.linalg.norm(z, axis=0)
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
    return step*np.arange(np.floor(low/step), np.ceil(high/step) + 1), np.full(1, step)  # with y also -y


def _gaussian(of: Any, D: float, y: Array, points: Sequence[Array]) -> Array:
    return np.asarray(np.exp(-(y - of(points))**2/(2*D))/np.sqrt(2*np.pi*D))


def _poisson(of: Any, y: Array, points: Sequence[Array]) -> Array:
    rate = np.maximum(of(points), 0.0)
    return np.asarray(np.exp(xlogy(y, rate) - rate - gammaln(y + 1)))


def _scaled(of: Any, y: Array, points: Sequence[Array]) -> Array:
    size = np.maximum(np.abs(of(points)), 1e-12)
    root = np.sqrt(2*np.pi)  # the normal density is exp(-t^2/2)/root
    return np.asarray(np.exp(-(y/size)**2/2)/(size*root))


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
