"""E[T(Y) | z] for label maps T, in several variables: what a label reveals, as a family of functions of z.

A label with finitely many values has finitely many maps up to constants: powers of y, or the probabilities of its
values; what all of them leave at zero is zero. Any other label has the maps tried here, powers first, then bounded maps
in the scale of the label; one that charges a tensor proves it, all together prove no zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Rational,
    S,
    Symbol,
    ceiling,
    cos,
    exp,
    floor,
    fraction,
    sign,
    sin,
    tanh,
)

from hermitex.errors import HermitexError
from hermitex.exponents.channels import Channel, Labels, Named
from hermitex.exponents.label import same_level_sets
from hermitex.exponents.labels.forms import cells_of, polynomial_of_signs, signs_of
from hermitex.exponents.labels.sizes import finite_values
from hermitex.exponents.mean import HOELDER, in_space
from hermitex.symbolic.series.fields import in_field, to_expr

if TYPE_CHECKING:
    from hermitex.exponents.labels.bounded import Bounded

MOST_VALUES = 9
_POWERS, _POLYNOMIAL_POWERS, _TERMS, _SHORT = 4, 8, 10**5, 200


@dataclass(frozen=True)
class Member:
    """E[T(Y)|z] as an expression in z, and T in words.

    `element` is the same as an element of K[z], if it is one, `over_boxes` the same with moments box by box.
    """

    words: str
    mean: Expr
    element: Any = None
    over_boxes: Bounded | None = None


@dataclass(frozen=True)
class Family:
    """What the law of a label given z depends on.

    Attributes: `seen` expressions in z that determine the law of the label (a symmetry of them is one of the label);
    `members` the means of label maps, read once; `complete`: every label map is a combination of the members and 1;
        `text` the label in words where the members are the `label_maps` of `seen`.
    """

    seen: tuple[Expr, ...]
    members: Iterable[Member]
    complete: bool
    text: str = ""


def family(labels: Labels, law: Named | Channel, variables: Sequence[Symbol]) -> Family:
    """The label maps of y = u(z), of finitely many probabilities, or of a law P(y|z).

    Examples
    --------
    >>> from hermitex.exponents.channels import channel
    >>> from hermitex.symbols import z1, z2
    >>> from sympy import sign
    >>> law = channel()
    >>> found = family(law.labels(sign(z1) + sign(z2)), law, (z1, z2))
    >>> [m.words for m in found.members], found.complete
    (['y', 'y**2'], True)
    """
    if labels.levels is not None:
        u = same_level_sets(labels.levels, variables)
        return family_of(u, variables, "y" if u == labels.levels else "u(y)")
    if isinstance(law, Channel) and not law.finite:
        return Family((law.p,), tuple(Member(f"the density at label {i}", p) for i, p in enumerate(labels.probabilities)
                                      if p.free_symbols & set(variables)), False)
    if len(labels.probabilities) == 2:
        mean = 2*labels.probabilities[0] - 1  # +1 for the first label, -1 for the second
        return Family((mean,), (Member("+1, -1 for the two labels", mean),), True)
    members = tuple(Member(f"the indicator of label {i}", p) for i, p in enumerate(labels.probabilities[1:], start=2))
    return Family(tuple(m.mean for m in members), members, True)


def family_of(u: Expr, variables: Sequence[Symbol], text: str) -> Family:
    """The label maps of y = u(z), `text` in words."""
    used = signs_of(u, variables)
    if used is not None and not any(v.has(*used) for _, v in cells_of(u, used)):
        return _of_signs(u, used, text)
    values = finite_values(u)
    if values is not None and len(values) <= MOST_VALUES:
        powers = range(1, max(len(values), 2))
        return Family((u,), tuple(Member(_power(text, p), u**p) for p in powers), True)
    return Family((u,), label_maps(u, tuple(variables), text), False, text)


def _of_signs(u: Expr, used: Sequence[Symbol], text: str) -> Family:
    """Powers of a function of signs, as polynomials of them: a power that is constant, or seen before, adds no map."""
    values = {v for _, v in cells_of(u, used)}
    members: dict[Expr, Member] = {}
    for p in range(1, max(len(values), 2)):
        mean = polynomial_of_signs(u**p, used)
        if mean.free_symbols:
            members.setdefault(mean, Member(_power(text, p), mean))
    return Family((polynomial_of_signs(u, used),), tuple(members.values()), True)


def _power(text: str, p: int) -> str:
    return text if p == 1 else f"{text}**{p}"


# -- label maps --------------------------------------------------------------------------------------------------------
def label_maps(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    """T(u): powers, exact where anything is; then maps that factorise over sums or are bounded, in the scale of u."""
    if isinstance(u, (Max, Min)):
        yield from _below(u, variables, text)
    if isinstance(u, (floor, ceiling)):
        yield from (Member(f"1({text} > {n} - 1/2)", Heaviside(u.args[0] - (n if isinstance(u, floor) else n - 1)))
                    for n in (0, 1, 2, -1))
    if u.is_polynomial(*variables):
        yield from _polynomial_powers(u, variables, text)
    else:
        powers = _powers_in_space(u, variables, text)
        yield from islice(powers, 1)
        yield from _steps(u, variables, text)
        yield from powers
    yield from _bounded(u, variables, text)


def _powers_in_space(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    """The powers of the label of which E[T(Y) He_a] exists: He_a is in every L^q, T(Y) must be in some L^p, p > 1."""
    for p in range(1, _POWERS + 1):
        if not in_space(u**p, variables, HOELDER):
            return
        yield Member(_power(text, p), u**p)


def _steps(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    """1(y > c), which has every moment, and asks for nothing but ranges of u over boxes."""
    from hermitex.exponents.labels.bounded import MOST_VARIABLES, Bounded, thresholds

    if sum(1 for v in variables if u.has(v)) <= MOST_VARIABLES:
        for c in thresholds(u, variables):
            step = Heaviside(u - c)
            yield Member(f"1({text} > {c})", step, over_boxes=Bounded(step, variables))


def _below(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    """1(max <= c) = prod 1(a <= c): the indicators that factorise over the arguments of an extremum."""
    centre, spread = _scale(u, variables)
    for c in dict.fromkeys((S.Zero, centre, centre + spread)):
        if isinstance(u, Max):
            yield Member(f"1({text} < {c})", Mul(*(Heaviside(c - a) for a in u.args)))
        else:
            yield Member(f"1({text} > {c})", Mul(*(Heaviside(a - c) for a in u.args)))


def _polynomial_powers(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    p = in_field(u, variables)
    if p is None:
        yield from (Member(_power(text, n), u**n) for n in range(1, _POWERS + 1))
        return
    power = p
    for n in range(1, _POLYNOMIAL_POWERS + 1):
        yield Member(_power(text, n), to_expr(power) if len(power) <= _SHORT else u**n, power)
        if len(power)*len(p) > (_TERMS if p.ring.domain.is_QQ else _TERMS//10):
            return
        power = power*p


def _bounded(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    centre, spread = _scale(u, variables)
    if (size := _modulus(u)/abs(spread)) != Abs(u)/abs(spread):  # even maps, without the signs they do not see
        text_of = str(Symbol(text)/spread)
        yield Member(f"1/(1 + w**2), w = {text_of}", 1/(1 + size**2))
        yield Member(f"cos(w), w = {text_of}", cos(size))
        yield Member(f"sign({text})", Mul(*(f if isinstance(f, sign) else sign(f) for f in Mul.make_args(u))))
    for c in dict.fromkeys((S.Zero, centre)):
        w = (u - c)/spread
        label = str((Symbol(text) - c)/spread)
        if c == 0:
            yield from _in_space([Member(f"exp(-w), w = {label}", exp(-w)), Member(f"exp(w), w = {label}", exp(w))], variables)
        yield Member(f"sin(w), w = {label}", _apart(sin(w)))
        yield Member(f"cos(w), w = {label}", _apart(cos(w)))
        above, below = fraction(w.together())
        yield Member(f"w/(1 + w**2), w = {label}", above*below/(above**2 + below**2))
        yield Member(f"1/(1 + w**2), w = {label}", below**2/(above**2 + below**2))
        yield Member(f"tanh(w), w = {label}", tanh(w))
        yield Member(f"exp(-w**2), w = {label}", exp(-w**2))
    quarter = _modulus(u)**Rational(-1, 4)
    yield from _in_space([Member(f"Abs(w)**(-1/4), w = {text}", quarter),
                          Member(f"sign(w)*Abs(w)**(-1/4), w = {text}", sign(u)*quarter)], variables)


def _modulus(u: Expr) -> Expr:
    """|u|, the signs among its factors left out."""
    return Mul(*(Abs(f) for f in Mul.make_args(u) if not isinstance(f, sign))).powsimp()


def _in_space(members: Iterable[Member], variables: tuple[Symbol, ...]) -> Iterator[Member]:
    """Those of which E[T(Y) He_a] is known to exist."""
    return (m for m in members if in_space(m.mean, variables, HOELDER))


def _apart(e: Expr) -> Expr:
    """sin(a + b), cos(a + b) as sums of products where a and b share no variable, so that expectations factorise."""
    if not isinstance(e, (sin, cos)):  # sin(-a) is -sin(a) at once
        factor, wave = e.as_coeff_Mul()
        return e if wave == e else factor*_apart(wave)
    (w,) = e.args
    w = w.expand() if w.count_ops() < 60 else w
    if not isinstance(w, Add):
        return e.func(w)
    groups = _independent(w)
    if len(groups) == 1:
        return e.func(w)
    a, b = groups[0], Add(*groups[1:])
    if isinstance(e, sin):
        return sin(a)*_apart(cos(b)) + cos(a)*_apart(sin(b))
    return cos(a)*_apart(cos(b)) - sin(a)*_apart(sin(b))


def _independent(w: Add) -> list[Expr]:
    """The terms of a sum, gathered into parts that share no variable."""
    groups: list[Expr] = []
    for term in w.args:
        touching = [g for g in groups if g.free_symbols & term.free_symbols]
        groups = [g for g in groups if g not in touching] + [Add(term, *touching)]
    return groups


def _scale(u: Expr, variables: tuple[Symbol, ...]) -> tuple[Expr, Expr]:
    """A rational centre and spread of the label, of one digit: any value is right, a good one makes the test sharp."""
    from hermitex.symbolic.arithmetic import nstr
    from hermitex.symbolic.precise import evaluate

    values = []
    for k in range(12):
        point = {v: Rational((37*k + 29*i + 11) % 83, 31) - Rational(13, 10) for i, v in enumerate(variables)}
        try:
            values.append(evaluate(u, 20, subs=point))
        except (HermitexError, ZeroDivisionError, ValueError):
            continue
    if len(values) < 4:
        return S.Zero, S.One
    values.sort()
    spread = Rational(nstr(values[-3] - values[2], 1))
    return Rational(nstr(values[len(values)//2], 1)), spread or S.One
