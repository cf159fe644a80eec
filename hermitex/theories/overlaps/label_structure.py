r"""g(z_1, ..., z_r) for a state evolution: which variables enter by steps only, and the places of the kinks of the others.

A variable enters by steps if g is constant in it between finitely many points: z2 in z1**2 + sign(z1*z2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from sympy import Dummy, Expr, Piecewise, Rational, S, Symbol
from sympy.core.relational import Relational

from hermitex.exponents.laws.density import array_function
from hermitex.exponents.laws.discrete import own_parts
from hermitex.kernels.normals import WINDOW
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.precise import evaluate
from hermitex.theories.overlaps.cell_grid import Array, LabelAxis

_SAME = 1e-12  # relative: cuts and labels that differ by less are one, found twice
_ENDS = (S(-9), S(9))  # beyond the window: floor(z) has its steps there too, without an end


class Pattern(NamedTuple):
    """f(x), the target as a function of its smooth variable while the others are in some of their cells."""

    f: Expr
    cells: Array  # indicator over the cells of the other variables


class LabelSections(NamedTuple):
    """g as one smooth variable and steps: `x`, its place, the other axes, the patterns."""

    x: Symbol
    place: int
    others: tuple[LabelAxis, ...]
    patterns: tuple[Pattern, ...]


def axis(g: Expr, x: Symbol) -> LabelAxis:
    """The axis of a variable: cuts at its steps, or at its kinks where it also enters smoothly."""
    cuts = step_cuts(g, x)
    return LabelAxis(cuts, True) if cuts is not None else LabelAxis(kinks(g, x))


def step_cuts(g: Expr, x: Symbol) -> Array | None:
    """The points between which g does not depend on x, or None without such points."""
    cuts: list[Expr] = []
    for part in _parts(g, x):
        found = unless_refused(partial(pieces, part, x, *_ENDS))
        if found is None or any(p.expr.has(x) for p in found):
            return None
        cuts += [p.hi for p in found[:-1]]
    return _numbers(cuts)


def _parts(g: Expr, x: Symbol) -> list[Expr]:
    """The largest parts of g that hold x alone; a condition on x that decides between parts which hold others is a step of its own.

    >>> from hermitex.symbols import z1, z2
    >>> _parts(Piecewise((z1, z2 > 0), (-z1, True)), z2)
    [Piecewise((1, z2 > 0), (0, True))]
    """
    mixed = [p for p in g.atoms(Piecewise) if p.free_symbols != {x}]
    own = {c for p in mixed for _, condition in p.args for c in condition.atoms(Relational) if c.free_symbols == {x}}
    rest = g.xreplace({c: Dummy("c", real=True) > 0 for c in own})
    return own_parts(rest, x) + [Piecewise((S.One, c), (S.Zero, True)) for c in sorted(own, key=str)]


def kinks(g: Expr, x: Symbol) -> Array:
    """Kinks of the parts of g that hold x alone; a part that mixes variables has no fixed kinks and is left to refinement."""
    cuts: list[Expr] = []
    for part in _parts(g, x):
        cuts += unless_refused(partial(breakpoints, part, x, _ENDS)) or ()
    found = _numbers(cuts)
    return found[np.abs(found) < WINDOW]


def _numbers(cuts: Sequence[Expr]) -> Array:
    points = np.sort([float(evaluate(c, 20)) for c in cuts])
    return points[np.concatenate([[True], np.diff(points) > _SAME])] if len(points) else points


def target_function(g: Expr, names: Sequence[Symbol]) -> Callable[[Sequence[Array]], Array]:
    """g as a function of arrays, one for each name; broadcasts."""
    f = array_function(g, *names)
    return lambda points: f(*points)


def find_sections(g: Expr, names: Sequence[Symbol]) -> LabelSections | None:
    """g as functions of one smooth variable, chosen by the cells of the others; None if no variable is alone in being smooth."""
    cuts = {x: step_cuts(g, x) for x in names}
    smooth = [x for x in names if cuts[x] is None]
    if len(smooth) != 1:
        return None
    x, others = smooth[0], [v for v in names if v is not smooth[0]]
    axes = tuple(LabelAxis(np.asarray(cuts[v]), True) for v in others)
    inside = [a.nodes(1.0)[0] for a in axes]
    shape = tuple(len(n) for n in inside)
    found: dict[Expr, Array] = {}
    for cell in np.ndindex(*shape):
        exact = {v: Rational(float(inside[i][c])) for i, (v, c) in enumerate(zip(others, cell, strict=True))}
        f = g.xreplace(exact)
        found.setdefault(f, np.zeros(shape))[cell] = 1.0
    return LabelSections(x, list(names).index(x), axes, tuple(Pattern(f, c) for f, c in found.items()))


def label_values(g: Expr, names: Sequence[Symbol], axes: Sequence[LabelAxis]) -> Array:
    """The labels that g takes over the cells of its steps."""
    table = target_function(g, names)(np.meshgrid(*(a.nodes(1.0)[0] for a in axes), indexing="ij", sparse=True))
    found = np.sort(table.ravel())
    return found[np.concatenate([[True], np.diff(found) > _SAME*max(1.0, float(np.max(np.abs(found))))])]


def indicator(g: Expr, names: Sequence[Symbol], labels: Array) -> Callable[[Sequence[Array]], Array]:
    """1{g(z) = y_k}, the label as the first axis."""
    of = target_function(g, names)

    def law(points: Sequence[Array]) -> Array:
        nearest = np.argmin(np.abs(of(points)[None] - labels.reshape(-1, *[1]*max(np.ndim(p) for p in points))), axis=0)
        return np.stack([nearest == k for k in range(len(labels))]).astype(float)

    return law
