"""nu_a(y) = int p(y|w) nu_a(w in dw): the couplings E[G (x) G] of a label that is drawn through a channel.

Additive and multiplicative Gaussian noise are a block more that carries no direction; finitely many labels and Poisson
counts are sums over the law of g. A channel P(y|z) of the user's is integrated over a grid in z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Rational, S, Symbol, besselk, erf, exp, hessian, pi

from hermitex.errors import BudgetExceeded, NoClosedForm
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.label import visible_target
from hermitex.exponents.labels.quantities import inner_quantities
from hermitex.exponents.laws.block_laws import law_of, zeros_by_flips
from hermitex.exponents.laws.channel_couplings import ChannelCouplings
from hermitex.exponents.laws.density import Index, Law, array_function, noise_law
from hermitex.exponents.laws.discrete import Atoms, clean_classes, exact_atoms, indices
from hermitex.exponents.laws.law_table import tabulated
from hermitex.exponents.laws.linearised import Kernels, LabelCouplings, label_couplings, most_precise, rotate_couplings
from hermitex.exponents.laws.product_laws import product_law
from hermitex.exponents.laws.scattered_points import scattered
from hermitex.exponents.laws.strips import Strips, discrete_over_planes
from hermitex.exponents.laws.sum_laws import sum_law
from hermitex.exponents.laws.value import as_array
from hermitex.symbolic.budget import checkpoint, patient, remaining, unless_refused
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbolic.series.polynomials import He

_NEAR, _FAR = 12, 60  # binary orders that a noise may reach: to 4096 where it is added, to 1e18 where it multiplies
POINTS = "evenly spread points"
_BLOCKS = "law of the label: independent blocks"


def noisy_second(g: Expr, channel: NamedChannel | Channel, variables: Sequence[Symbol], *, sampling: bool = True) -> LabelCouplings:
    """The couplings of orders one and two, numerically, whatever the channel.

    sampling : whether points are spread where no structure is seen, or not in time

    Raises
    ------
    NoClosedForm : the structure of g is not recognised, or the channel is not one of the integrated ones.
    """
    fine = 1e-8  # error of a convolution that is not worth a second route
    if isinstance(channel, Channel):
        by_parts = noise_couplings(channel, variables)
        singular = _vanishing_scale(channel, variables)
        if by_parts is None and singular:
            raise NoClosedForm("alpha_c", "the scale on which the label is drawn vanishes, and its law is not known otherwise",
                               "Give a channel by name, or a scale that stays away from zero")
        if by_parts is not None and (singular or by_parts.error <= fine):
            return by_parts
        on_grid = replace(ChannelCouplings(channel, (), variables).second(), method="grid in z")
        return on_grid if by_parts is None else most_precise([on_grid, by_parts])
    if (form := _diagonal(g, variables)) is not None:
        over_axes = noisy_second(form[0], channel, variables, sampling=sampling)
        return replace(over_axes, couplings=rotate_couplings(over_axes.couplings, form[1].T))
    clean, place = visible_target(g, channel), {x: i for i, x in enumerate(variables)}

    def by_structure() -> LabelCouplings:
        try:
            law = _scaled(clean, place) if channel.name == "multiplicative" else _drawn(clean, place, channel)
            return replace(law, method=_BLOCKS)
        except NoClosedForm:
            if (planar := _strips_of(clean, variables)) is None:
                raise
            return replace(apply_channel(planar, channel), method="law of the label: strips between lines")

    def by_points() -> LabelCouplings:
        drop = zeros_by_flips(clean, [x for x in variables if clean.has(x)], place)
        return scattered(*noisy_label(clean, channel), ((), variables, drop))

    few = 3e-5  # error of evenly spread points with the work that is allowed; chosen by trial
    return prefer_structure(by_structure, by_points if sampling else None, few)


# -- a quadratic form over its axes: z^T Q z = sum_i q_i x_i^2, x = R z -------------------------------------------------
def _diagonal(g: Expr, names: Sequence[Symbol]) -> tuple[Expr, Any] | None:
    """(sum of squares, the rows R of its axes, shape (r, r)) of a quadratic form with mixed terms; None for anything else."""
    poly = g.as_poly(*names) if g.is_polynomial(*names) else None
    of_powers = isinstance(g, Mul) and all(len(f.free_symbols) <= 1 for f in g.args)  # z1 z2 has a law of its own
    if of_powers or poly is None or poly.total_degree() != 2 or not poly.is_homogeneous:
        return None
    q = hessian(poly.as_expr(), names) / 2
    if q.is_diagonal():
        return None
    axes = np.linalg.eigh(as_array(q))[1].T  # in the order of the eigenvalues, which rise
    return Add(*(c * x**2 for c, x in zip(_eigenvalues(q), names, strict=True))), axes


def _eigenvalues(q: Any) -> list[Expr]:
    """Exactly for two variables and short numbers; else to 15 digits, equal ones made equal (their squares are a radial block)."""
    longest = 8  # characters: longer roots are beyond the integers of arrays
    if q.rows == 2 and all(len(str(x)) < longest for x in q):
        (a, b), (_, d) = q.tolist()
        root = ((a - d) ** 2 + 4 * b**2) ** S.Half
        return [(a + d - root) / 2, (a + d + root) / 2]
    found: list[Expr] = []
    for v in np.linalg.eigvalsh(np.array(q.evalf(20).tolist(), dtype=float)):
        near = next((c for c in found if abs(float(c) - v) < 1e-12 * max(1.0, abs(v))), None)
        found.append(near if near is not None else Rational(f"{v:.15g}"))
    return found


# -- by structure, or by points --------------------------------------------------------------------------------------
def prefer_structure(by_structure: Callable[[], LabelCouplings], by_points: Callable[[], LabelCouplings] | None,
                     rough: float) -> LabelCouplings:
    """The couplings by what is seen of the structure of a label; by spread points too where that has no more digits than `rough`.

    Points always give some, and are spread where the structure is not seen, or not in time.
    """
    found: list[LabelCouplings] = []
    try:
        with precise_time_limit():
            found.append(by_structure())
    except (NoClosedForm, BudgetExceeded) as err:
        checkpoint("looking for the law of the label")
        if by_points is None:
            raise
        reason = err
    if by_points is not None and not any(f.error <= rough for f in found):
        try:
            found.append(replace(by_points(), method=POINTS))
        except (NoClosedForm, BudgetExceeded):
            if not found:
                raise reason from None
    return most_precise(found)


def precise_time_limit() -> AbstractContextManager[None]:
    """Bound what routes with many digits may take: so many seconds of the processor whatever the budget, but half of a small one.

    Then points are spread, which always give some.
    """
    half = remaining(1/2)
    seconds = 12.0  # of the processor, after which evenly spread points are taken; chosen by trial
    return attempt(seconds if half is None else min(seconds, half/patient(1.0)))


def noisy_label(g: Expr, channel: NamedChannel) -> tuple[Expr, Sequence[Symbol], Kernels | None]:
    """(a label of z and of normals that carry no direction, these, the probabilities of what is drawn given that label)."""
    xi = Dummy("xi", real=True)
    if channel.name in ("deterministic", "random_sign"):
        return g, (), None
    if channel.name == "gaussian":
        return g + channel.parameter**S.Half*xi, (xi,), None
    if channel.name == "multiplicative":
        return g*xi, (xi,), None
    return g, (), _probabilities(channel)


def _scaled(g: Expr, place: dict[Symbol, int]) -> LabelCouplings:
    """The couplings of y = g(z) xi: those of a product in one variable more, whose own direction is nobody's."""
    xi, k = Dummy("xi", real=True), len(place)
    found = label_couplings(law_of(g * xi, {**place, xi: k}))
    couplings = {key: v for key, v in found.couplings.items() if not any(k in a for a in key)}
    return replace(found, couplings=couplings)


def _drawn(g: Expr, place: dict[Symbol, int], channel: NamedChannel) -> LabelCouplings:
    """The couplings through the channel; where finitely many labels are drawn given g = F(w), from the law of w.

    Labels may crowd at a limit of F, and the probabilities are functions of w as well.
    """
    inside = inner_quantities(g, [x for x in place if g.has(x)]) if channel.labels(g).probabilities else ()
    for inner, outer, w in sorted(inside, key=lambda found: found[0].count_ops()):
        law = unless_refused(lambda inner=inner: tabulated(law_of(inner, place)))  # type: ignore[misc]
        if law is not None:
            kernels = [array_function(p, w) for p in channel.labels(outer).probabilities]
            return label_couplings(law, kernels=lambda y, kernels=kernels: (k(y) for k in kernels))  # type: ignore[misc]
    return apply_channel(law_of(g, place), channel)


def _strips_of(g: Expr, variables: Sequence[Symbol]) -> Law | None:
    """The law of a discrete label over a plane, if its switches are lines in one of the variables."""
    switches = discrete_over_planes(g, variables) if len(variables) == 2 else None
    return None if switches is None else Strips(g, switches, (), variables, zeros_by_flips(
        g, [x for x in variables if g.has(x)], {x: i for i, x in enumerate(variables)})).law(())


def apply_channel(law: Law, channel: NamedChannel) -> LabelCouplings:
    """The couplings of a label that is drawn through the channel from a quantity with this law."""
    if channel.name in ("deterministic", "random_sign"):
        return label_couplings(law)
    if channel.name == "gaussian":
        return label_couplings(sum_law(tabulated(law), noise_law(float(channel.parameter or 0) ** 0.5)))
    if channel.name == "multiplicative":
        return label_couplings(product_law(tabulated(law), noise_law(1.0)))
    kernels = _probabilities(channel)
    roots = 40  # hints at k^2, k < 40: rates to 1,521
    if channel.name == "poisson":
        # A count resolves sqrt(rate) to about 1: the nodes must too, as far as there is mass.
        law = replace(law, hints=(*law.hints, *[float(k * k) for k in range(1, roots)]))
    return label_couplings(law, kernels=kernels)


@lru_cache(maxsize=32)
def _probabilities(channel: NamedChannel) -> Kernels:
    """The probabilities of the labels given the values of g."""
    if channel.name == "poisson":
        return _counts
    w = Dummy("w", real=True)
    kernels = [array_function(p, w) for p in channel.labels(w).probabilities]
    return lambda y: (k(y) for k in kernels)


def noise_couplings(channel: Channel, variables: Sequence[Symbol]) -> LabelCouplings | None:
    """The couplings of u(z) + noise, or u(z) times a noise, from the laws of the two; None where one of them is not seen."""
    found = channel.added or channel.scaled
    if found is None:
        return None
    place = {x: i for i, x in enumerate(variables)}
    try:
        if found is channel.scaled and (found.f.diff(found.s) / (found.f * found.s)).simplify().is_number:
            return _scaled(found.u, place)  # f = C exp(-k s^2): one normal factor more
        drawn, law = density_of(found.f, found.s, _FAR if found is channel.scaled else _NEAR), law_of(found.u, place)
    except NoClosedForm:
        return None
    combined = sum_law if found is channel.added else product_law
    return None if drawn is None else replace(label_couplings(combined(tabulated(law), drawn)), method=_BLOCKS)


def _vanishing_scale(channel: Channel, variables: Sequence[Symbol]) -> bool:
    """Is a label drawn on a scale that comes near zero? Its law is singular there, and no grid in z resolves it."""
    if channel.scaled is None:
        return False
    z = np.random.default_rng(0).standard_normal((len(variables), 4000))
    size = np.abs(array_function(channel.scaled.u, *variables)(*z))
    return bool(np.min(size) < 0.02 * np.median(size))


def density_of(f: Expr, s: Symbol, reach: int = _NEAR) -> Law | None:
    """The law of a noise, which carries no direction, if its mass beyond 2^reach is below 1e-17; else None."""
    given = array_function(f, s)

    def values(y: np.ndarray) -> np.ndarray:
        return np.nan_to_num(given(y))

    sizes = 2.0**np.arange(-8, reach)
    tail = 1e-17  # mass below rounding of the sum
    low, high = (next((float(r) for r in sizes if np.max(np.abs(values(sign*np.linspace(r, 2*r, 9))))*r < tail), None)
                 for sign in (-1, 1))
    if low is None or high is None:
        return None
    window = (-Rational(low), Rational(high))
    kinks = tuple(float(p) for p in breakpoints(f, s, window))
    return Law(((),), lambda y: np.where((y >= -low) & (y <= high), values(y), 0.0)[None], -low, high, knots=kinks, hints=(0.0,))


def _counts(rate: np.ndarray) -> Any:
    from scipy.special import gammaln, xlogy

    top = float(np.max(rate))
    most = int((np.sqrt(top) + 7) ** 2)
    most_counts = 20_000  # a table of their probabilities at 1,000 nodes is 160 MB
    if most > most_counts:
        raise NoClosedForm("alpha_c", "the rate is too large for its sum over counts", "Use a bounded rate")
    rate = np.maximum(rate, 0.0)
    for y in range(most + 1):
        if y % 200 == 0:
            checkpoint("summing over the counts")
        yield np.exp(xlogy(y, rate) - rate - gammaln(y + 1))


# -- exact: finitely many labels ---------------------------------------------------------------------------------------
def exact_mixture(g: Expr, channel: NamedChannel | Channel, variables: Sequence[Symbol]) -> Atoms | None:
    """The exact moments of finitely many noisy labels: mixed from those of a discrete g, or integrated one by one."""
    if isinstance(channel, NamedChannel):
        w = Dummy("w", real=True)
        laws = channel.labels(w).probabilities
        clean = exact_atoms(g, variables) if laws else None
        if clean is not None:
            return clean_classes([(S(j), _mixed(clean, p, w)) for j, p in enumerate(laws)])
        laws = channel.labels(g).probabilities
    else:
        laws = channel.labels(g).probabilities if channel.finite else ()
    return unless_refused(lambda: clean_classes([(S(j), _integrated(p, variables)) for j, p in enumerate(laws)])) if laws else None


def _mixed(clean: Atoms, p: Expr, w: Symbol) -> dict[Index, Expr]:
    found: dict[Index, Expr] = {}
    for label, nu in clean:
        for a, v in nu.items():
            found[a] = found.get(a, S.Zero) + p.xreplace({w: label}) * v
    return found


def _integrated(p: Expr, variables: Sequence[Symbol]) -> dict[Index, Expr]:
    used = [x for x in variables if p.has(x)]
    drop = zeros_by_flips(p, used, {x: i for i, x in enumerate(variables)})
    found: dict[Index, Expr] = {}
    for a in indices(len(variables)):
        checkpoint("integrating the law of a label")
        if a in drop or any(not p.has(variables[i]) for i in a):
            continue
        found[a] = _moment(p, Mul(*(He(a.count(i), variables[i]) for i in set(a))), used)
    return found


def _moment(p: Expr, weight: Expr, used: list[Symbol]) -> Expr:
    """E[p He_a]; of an error function of c z_i z_j by the Bessel form, which is exact."""
    constant, rest = p.expand().as_independent(*used, as_Add=True)
    factor, core = rest.as_independent(*used, as_Add=False)
    argument = core.args[0] if isinstance(core, erf) else None
    if argument is not None and len(used) == 2:
        c, product = argument.as_independent(*used, as_Add=False)
        if product == used[0] * used[1]:
            if weight == used[0] * used[1]:
                return factor * _bessel(c)
            if weight == 1:
                return constant
            if weight in (He(2, used[0]), He(2, used[1])):
                return S.Zero  # odd in the other variable
    mean = E(p * weight, *used)
    try:
        return closed_form(mean)
    except NoClosedForm:
        if len(used) > 1:
            raise
        return mean  # of one variable it has all the digits that are needed


def _bessel(c: Expr) -> Expr:
    """E[z1 z2 erf(c z1 z2)] = D/(2 pi) e^(D/4) (K_1(D/4) - K_0(D/4)), 1/D = 2 c^2 (Stein in z1, then one integral)."""
    d = (1 / (2 * c**2)).simplify()
    sign = S.One if c.is_positive else -S.One
    return sign * d * exp(d / 4) * (besselk(1, d / 4) - besselk(0, d / 4)) / (2 * pi)
