"""F_U(M) = E_u[E[G_U M G_U | u]]: the couplings of the hidden directions, averaged over the known ones.

At each u the label is a target in the hidden variables alone; `known` takes the average. One hidden variable is done on
numbers (`sections`), a discrete label over planes by strips, anything else through the structure of the target with the
numbers of u put in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import cos, erf, pi, sin, sqrt

import numpy as np
from sympy import Dummy, Expr, Symbol

from hermitex.exponents.channels import NamedChannel
from hermitex.exponents.labels.label_levels import indicator_moment
from hermitex.exponents.labels.quantities import one_quantity
from hermitex.exponents.laws.block_laws import law_of, zeros_by_flips
from hermitex.exponents.laws.coupling_averages import beyond_known, even_part, mirror_signs, over_all_known, over_known
from hermitex.exponents.laws.density import Index, Law, array_function, exact_point, normal_law
from hermitex.exponents.laws.discrete import indices, intervals
from hermitex.exponents.laws.law_table import tabulated
from hermitex.exponents.laws.linearised import LabelCouplings, label_couplings, mix_couplings
from hermitex.exponents.laws.noisy import apply_channel, noisy_label, noisy_second, prefer_structure
from hermitex.exponents.laws.scattered_points import Spaces, invariant_forms, scattered
from hermitex.exponents.laws.sections import Sections
from hermitex.exponents.laws.strips import Strips, discrete_over_planes
from hermitex.symbolic.breaks.switches import switch_arguments
from hermitex.symbolic.budget import checkpoint, unless_refused
from hermitex.symbolic.pieces import Piece
from hermitex.symbolic.precise import evaluate


def averaged_over(g: Expr, law: NamedChannel, given: Sequence[Symbol], hidden: Sequence[Symbol],
                  turns: Sequence[np.ndarray] = ()) -> LabelCouplings:
    """The couplings of the hidden variables averaged over u, a finite sum over what enters by its steps alone.

    turns : orthogonal matrices R over the hidden variables with g(u, R v) = g(u, v), as far as they are known

    Raises
    ------
    NoClosedForm : neither its structure nor spread points give them.
    """
    given = [u for u in given if g.has(u)]
    for u in given:
        sides = intervals(g, u)
        if sides is not None:
            return _mixed(g, law, (u, sides), [x for x in given if x != u], (hidden, turns))
    if not given and not g.has(*hidden):
        return LabelCouplings({}, 0.0)
    if not given:
        return noisy_second(g, law, hidden)
    spaces = given, hidden, conditional_zeros(g, hidden, turns)
    rough = 1e-3  # error of a threshold; points at each u reach hardly less
    return prefer_structure(lambda: _by_structure(g, law, spaces), lambda: scattered(*noisy_label(g, law), spaces, turns), rough)


def _by_structure(g: Expr, law: NamedChannel, spaces: Spaces) -> LabelCouplings:
    """The couplings averaged over one or two known variables, by what the label shows of its structure."""
    given, hidden, drop = spaces
    base = _base(g, given, hidden)
    at = _at(g, law, (given, hidden, drop), base)
    if len(given) == 2 and law.name in ("deterministic", "random_sign", "multiplicative") and scales(g, given):
        return _over_angles(at, g, given, hidden)
    return over_all_known(at, beyond_known(g, hidden) if law.name in ("deterministic", "gaussian") else g, given, hidden)


def scales(g: Expr, given: Sequence[Symbol]) -> bool:
    """Is g(c u, v) = c^k g(u, v) for the known u, and g(-u, v) = +-g(u, v)? So their length, being known, tells nothing.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> scales(z1**2*z2 - 3*z3, (z2, z3)), scales(z1**2*z2 + z3**2, (z2, z3))
    (True, False)
    """
    c = Dummy("c", positive=True)
    longer = g.xreplace({u: c*u for u in given})
    turned = g.xreplace({u: -u for u in given})
    beyond = 7  # degrees of homogeneity 1 to 6 are tried; chosen by trial
    return ((turned - g).expand() == 0 or (turned + g).expand() == 0) and any(
        (longer - c**k*g).expand() == 0 for k in range(1, beyond))


def _over_angles(at: Callable[[Sequence[float]], LabelCouplings], g: Expr, given: Sequence[Symbol],
                 hidden: Sequence[Symbol]) -> LabelCouplings:
    """The average over two known variables on whose length the couplings do not depend: over half a circle."""
    signs = mirror_signs(g, given, hidden, 1)

    def turned(t: float) -> LabelCouplings:
        angle = pi*erf(t/sqrt(2))/2
        found = at((cos(angle), sin(angle)))
        return found if signs is None else even_part(found, signs)

    return over_known(turned, signs is not None)[0]


def _mixed(g: Expr, law: NamedChannel, steps: tuple[Symbol, list[Piece]], given: Sequence[Symbol],
           of_hidden: tuple[Sequence[Symbol], Sequence[np.ndarray]]) -> LabelCouplings:
    """g depends on u through the interval that holds u: the sum over intervals with their masses."""
    u, sides = steps
    weights: dict[Expr, float] = {}
    for side in sides:
        form = g.xreplace({u: side.expr})
        weights[form] = weights.get(form, 0.0) + float(evaluate(indicator_moment([side], 0), 20))
    # Not independent where they are found by points: these are the same for every form.
    return mix_couplings((weight, replace(averaged_over(form, law, given, *of_hidden), scatter=0.0)) for form,
                         weight in weights.items())


def conditional_zeros(g: Expr, hidden: Sequence[Symbol], turns: Sequence[np.ndarray] = ()) -> tuple[Index, ...]:
    """Indices that symmetries of the hidden variables alone prove to be zero, and all of the first order.

    At a stage of order two E[z_perp | y, u] is zero: the first order does not enter.
    """
    second: list[Index] = [a for a in indices(len(hidden)) if len(a) == 2]
    forms = invariant_forms(second, turns)
    found = [a for n, a in enumerate(second) if not forms[:, n].any()]
    if len(forms) > 1:  # a single form has its zeros already, and the flips are proved one by one
        place = {v: i for i, v in enumerate(hidden)}
        found += zeros_by_flips(g, [v for v in hidden if g.has(v)], place)
    return tuple(dict.fromkeys([*found, *[(i,) for i in range(len(hidden))]]))


def _at(g: Expr, law: NamedChannel, spaces: Spaces,
        base: tuple[Expr, Symbol, Law] | None) -> Callable[[Sequence[float]], LabelCouplings]:
    """The couplings at one u, by the cheapest route that applies."""
    given, hidden, drop = spaces
    if base is not None:
        form, v, law_of_v = base
        if (few := law.labels(form).probabilities) and not switch_arguments(form):  # the nodes of v serve every u
            kernels = [array_function(p, *given, v) for p in few]
            return lambda u: label_couplings(law_of_v, kernels=lambda y: (k(*u, y) for k in kernels))
        sections = unless_refused(lambda: Sections(form, given, v, law_of_v, drop))
        if sections is not None and v in hidden and law.name in ("deterministic", "random_sign"):
            square = (list(hidden).index(v),)*2

            def of_one(u: Sequence[float]) -> LabelCouplings:
                value, error = sections.second(u)
                return LabelCouplings({} if square in drop else {(square, square): value}, error)

            return of_one
        if sections is not None:
            return lambda u: apply_channel(sections.law(u), law)
    if len(hidden) == 2 and (switches := discrete_over_planes(g, hidden)) is not None:
        strips = Strips(g, switches, given, hidden, drop)
        return lambda u: apply_channel(strips.law(u), law)

    def general(u: Sequence[float]) -> LabelCouplings:
        checkpoint("averaging over what is known")
        form = g.xreplace({x: exact_point(float(v)) for x, v in zip(given, u, strict=True)})
        if not form.has(*hidden):  # at a u that rounds to zero
            return LabelCouplings({}, 0.0)
        return noisy_second(form, law, hidden, sampling=False)

    return general


def _base(g: Expr, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> tuple[Expr, Symbol, Law] | None:
    """(F, w, the law of w) with g = F(u, w), w a hidden variable or a quantity of several."""
    used = [v for v in hidden if g.has(v)]
    if len(used) == 1:
        return g, used[0], normal_law(list(hidden).index(used[0]))
    found = one_quantity(g, given, used)
    if found is None:
        return None
    form, quantity, w = found
    law = unless_refused(lambda: tabulated(law_of(quantity, {v: i for i, v in enumerate(hidden)})))
    return None if law is None else (form, w, law)
