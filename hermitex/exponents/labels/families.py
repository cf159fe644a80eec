"""E[T(Y) | z] for label maps T, in several variables: what a label reveals, as a family of functions of z.

A label with finitely many values has finitely many maps up to constants: powers of y, or the probabilities of its
values; a tensor that is zero for all of them is zero. Any other label has the maps tried here, powers and steps; one with a nonzero
tensor proves that, but all together do not prove a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sympy import Abs, Dummy, Expr, Heaviside, Symbol, cos, sin, tanh

from hermitex.exponents.channels import Channel, Labels, NamedChannel
from hermitex.exponents.label import revealed
from hermitex.exponents.labels.sign_and_size import finite_values
from hermitex.exponents.labels.sign_forms import cells_of, polynomial_of_signs, signs_of
from hermitex.exponents.mean import in_space
from hermitex.symbolic.bounds.quotients import HOELDER
from hermitex.symbolic.budget import Listed
from hermitex.symbolic.series.coefficient_fields import in_field, to_expr

if TYPE_CHECKING:
    from hermitex.exponents.labels.bounded_moments import Bounded

# the powers 1 to 8 span all label maps of nine values: as many powers as of a polynomial label
MOST_VALUES = 9
_WAVES = (sin, cos, tanh)
# T(y) = y, ..., y^4 of a label that is not a polynomial: each integral is longer than the one before; chosen by trial
_POWERS = 4


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
    `members` the means of label maps; `complete`: every label map is a combination of the members and 1;
        `text` the label in words where the members are the `label_maps` of `seen`.
    """

    seen: tuple[Expr, ...]
    members: Iterable[Member]
    complete: bool
    text: str = ""


def family(labels: Labels, law: NamedChannel | Channel, variables: Sequence[Symbol]) -> Family:
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
        u = what_labels_tell(labels.levels, variables)
        shown = "u" if law.name not in ("deterministic", "random_sign") else "y" if u == labels.levels else "u(y)"
        return family_of(u, variables, shown)
    if isinstance(law, Channel) and not law.finite:
        y = Dummy(law.y.name, integer=True, nonnegative=True) if law.support == "integers" else law.y  # z**(2*y) is even in z
        members = tuple(Member(f"the density at label {i}", p) for i, p in enumerate(labels.probabilities)
                        if p.free_symbols & set(variables))
        return Family((law.p.xreplace({law.y: y}),), members, False)
    if len(labels.probabilities) == 2:
        mean = 2*labels.probabilities[0] - 1  # +1 for the first label, -1 for the second
        return Family((mean,), (Member("+1, -1 for the two labels", mean),), True)
    members = tuple(Member(f"the indicator of label {i}", p) for i, p in enumerate(labels.probabilities[1:], start=2))
    return Family(tuple(m.mean for m in members), members, True)


def what_labels_tell(levels: Expr, variables: Sequence[Symbol]) -> Expr:
    """A simpler function with the same level sets."""
    u = revealed(levels, variables)
    if len(variables) > 1 and isinstance(u, Abs) and (u.args[0].is_polynomial(*variables) or isinstance(u.args[0], _WAVES)):
        return u.args[0]**2  # a polynomial, or smooth
    return u


def family_of(u: Expr, variables: Sequence[Symbol], text: str) -> Family:
    """The label maps of y = u(z), `text` in words."""
    used = signs_of(u, variables)
    if used is not None and not any(v.has(*used) for _, v in cells_of(u, used)):
        return _of_signs(u, used, text)
    values = finite_values(u)
    if values is not None and len(values) <= MOST_VALUES:
        powers = range(1, max(len(values), 2))
        return Family((u,), tuple(Member(_power(text, p), u**p) for p in powers), True)
    return Family((u,), Listed(lambda: label_maps(u, tuple(variables), text)), False, text)


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
    """T(u): powers, exact where anything is, and steps 1(u > c), which see every label."""
    if u.is_polynomial(*variables):
        yield from _polynomial_powers(u, variables, text)
        yield from _steps(u, variables, text)
    else:
        powers = _powers_in_space(u, variables, text)
        yield from islice(powers, 1 if len(variables) > 1 else _POWERS)  # of one variable there are rules for all of them
        yield from _steps(u, variables, text)
        yield from powers


def _powers_in_space(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    """The powers T of the label for which E[T(Y) He_a] exists: He_a is in every L^q, T(Y) must be in some L^p, p > 1."""
    for p in range(1, _POWERS + 1):
        if not in_space(u**p, variables, HOELDER):
            return
        yield Member(_power(text, p), u**p)


def _steps(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    """1(y > c), which has every moment, and asks for nothing but ranges of u over boxes."""
    from hermitex.exponents.labels.bounded_moments import MOST_VARIABLES, Bounded, thresholds

    if sum(1 for v in variables if u.has(v)) <= MOST_VARIABLES:
        for c in thresholds(u, variables):
            step = Heaviside(u - c)
            yield Member(f"1({text} > {c})", step, over_boxes=Bounded(step, variables))


def _polynomial_powers(u: Expr, variables: tuple[Symbol, ...], text: str) -> Iterator[Member]:
    p = in_field(u, variables)
    if p is None:
        yield from (Member(_power(text, n), u**n) for n in range(1, _POWERS + 1))
        return
    power = p
    most_powers = 8  # moments of a polynomial are exact and cheap, so that twice the powers of other labels are tried
    most_products = 10**5  # of terms in one multiplication of polynomials over Q, a tenth of it over other fields; chosen by trial
    shortest_power = 200  # terms up to which the power is written out, else it stays u^n; chosen by trial
    for n in range(1, most_powers + 1):
        yield Member(_power(text, n), to_expr(power) if len(power) <= shortest_power else u**n, power)
        if len(power)*len(p) > (most_products if p.ring.domain.is_QQ else most_products//10):
            return
        power = power*p
