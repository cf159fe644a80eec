"""A certificate: the statement `quantity (order k) is zero / is not zero`, its exact value or enclosure, and the proof.

Zero is a claim: it is made only where a symmetry, an exact value, exact algebra or an identity between branches
proves it. Non-zero is shown by an exact value or by a ball that excludes 0. Anything else is undetermined, with the
bound reached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from sympy import Expr, S

from hermitex.errors import NoClosedForm
from hermitex.show.display import Shown, latex, math

Status = Literal["zero", "nonzero", "undetermined"]


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """One statement and its proof.

    Attributes: `quantity` (c_3 or lambda_1 in the letters of the field), `order` k, `status`, `how` the proof in words,
    `value` the exact value where it is known, `enclosure` a pair (low, high) of exact numbers that contains it.
    """

    quantity: str
    order: int | tuple[int, ...]
    status: Status
    how: str
    value: Expr | None = None
    enclosure: tuple[Any, Any] | None = None

    @classmethod
    def zero(cls, quantity: str, order: int, how: str) -> Certificate:
        """The quantity vanishes, by `how`."""
        return cls(quantity, order, "zero", how, S.Zero, (S.Zero, S.Zero))

    @classmethod
    def of(cls, expr: Expr, quantity: str, order: int, *, prefix: str = "", quick: bool = False) -> Certificate:
        """Decide whether the constant `expr` is zero; `prefix` says what it is (a label map, for instance).

        quick: a first rough enclosure may settle it, and no exact value is looked for then.
        """
        from hermitex.symbolic.zero import decide

        verdict = (_rough_verdict(expr) if quick else None) or decide(expr)
        how = f"{prefix}: {verdict.how}" if prefix else verdict.how
        return cls(quantity, order, verdict.status, how, verdict.value, verdict.enclosure)

    def __bool__(self) -> bool:
        """True if the statement was proved, one way or the other."""
        return self.status != "undetermined"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: the exact value as text that `hermitex.parse` reads back, the enclosure as numbers."""
        from hermitex.symbolic.parsing import to_text

        order = list(self.order) if isinstance(self.order, tuple) else self.order
        bounds = None if self.enclosure is None else [_round_outward(self.enclosure[0], -1), _round_outward(self.enclosure[1], +1)]
        return {"quantity": self.quantity, "order": order, "value": None if self.value is None else to_text(self.value),
                "enclosure": bounds, "status": self.status, "how": self.how}

    def renamed(self, names: Mapping[str, str]) -> Certificate:
        """The same certificate with other names of the variables."""
        return replace(self, quantity=renamed(self.quantity, names), how=renamed(self.how, names))

    def _summary(self) -> str:
        return str(self)

    def _html(self) -> str:
        quantity, relation, how = self.row
        return f"{quantity} {relation} ({how})"

    @property
    def row(self) -> tuple[str, str, str]:
        """The statement, its value and the proof, as HTML."""
        quantity, relation, known = self.formulas
        given = f" once {escape(known, quote=False)} is known" if known else ""
        return math(quantity), math(relation) + given, escape(self.how, quote=False)

    @property
    def formulas(self) -> tuple[str, str, str]:
        """The statement and its value as LaTeX, and in words the directions taken as known."""
        name, known = self.parts
        return _quantity_latex(name), _relation(self), known

    def __str__(self) -> str:
        relation = {"zero": "= 0", "nonzero": "!= 0", "undetermined": "undetermined"}[self.status]
        if self.status == "nonzero" and self.value is not None:
            from hermitex.symbolic.parsing import to_text

            relation = f"= {to_text(self.value)}"
        elif self.status != "zero" and self.enclosure is not None:
            low, high = (decimal_outward(v, s) for v, s in zip(self.enclosure, (-1, 1), strict=True))
            relation = f"in [{low}, {high}]" + ("" if self.status == "nonzero" else ", undetermined")
        name, known = self.parts
        return f"{name} {relation}{f' once {known} is known' if known else ''} ({self.how})"

    @property
    def parts(self) -> tuple[str, str]:
        """The quantity without what is taken as known in it, and that: C_1 and z1 + z2 of "C_1 given z1 + z2"."""
        name, _, known = self.quantity.partition(" given ")
        head, comma, _ = name.partition("], ")
        return (f"{head}]" if comma else name), known


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text with other names of the variables, as whole words.

    >>> renamed("z1 -> -z1, z10", {"z1": "w1"})
    'w1 -> -w1, z10'
    """
    return re.sub(r"\bz\d*\b", lambda found: names.get(found[0], found[0]), text)


def _quantity_latex(quantity: str) -> str:
    match = re.fullmatch(r"E\[(T\(Y\)|S\(u\)) (He_([\d(),]+)|H)\]", quantity)
    if match:
        return rf"\mathbb{{E}}[{match[1]}\, {'H' if match[3] is None else f'He_{{{match[3]}}}'}(z)]"
    name, _, order = quantity.partition("_")
    if not re.fullmatch(r"[\d(),]+", order) or name not in ("c", "C", "lambda", "Lambda"):
        return r"\text{" + quantity.replace("_", r"\_").replace("^", r"\^{}") + "}"
    name = {"lambda": "\\lambda", "Lambda": "\\Lambda"}.get(name, name)
    return name + f"_{{{order}}}"


def _relation(c: Certificate) -> str:
    if c.status == "nonzero" and c.value is not None:
        return f"= {latex(c.value)}"
    return {"zero": "= 0", "nonzero": r"\neq 0", "undetermined": r"\text{undetermined}"}[c.status]


def _rough_verdict(expr: Expr) -> Any:
    """The verdict of one enclosure in double precision if it excludes zero and no rule gives the value, else None."""
    from hermitex.symbolic.digits.enclosure import enclose
    from hermitex.symbolic.gaussian import Expectation
    from hermitex.symbolic.integrals import integrate_or_keep
    from hermitex.symbolic.zero import Verdict

    if not (kept := integrate_or_keep(expr)).has(Expectation):
        return None
    try:
        found = enclose(kept, bits=53)
    except NoClosedForm:
        return None
    return Verdict("nonzero", None, (found.low, found.high), found.how) if found.excludes_zero else None


def decimal_outward(bound: Any, direction: int, digits: int = 12) -> str:
    """An exact bound as a decimal that is rounded down (direction < 0) or up: what is printed still encloses.

    >>> decimal_outward(2**0.5, -1), decimal_outward(2**0.5, +1), decimal_outward(0.5, 1)
    ('1.41421356237', '1.41421356238', '0.5')
    """
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
    from fractions import Fraction

    context = Context(prec=digits, rounding=ROUND_FLOOR if direction < 0 else ROUND_CEILING, Emax=10**9, Emin=-(10**9))
    exact = (int(bound.p), int(bound.q)) if hasattr(bound, "p") else bound.as_integer_ratio() if bound == bound else (0, 1)
    found = context.divide(Decimal(exact[0]), Decimal(exact[1]))
    whole = Fraction(found) == Fraction(*exact)
    size = found.adjusted() if found else 0
    text = f"{found:.{digits - 1}e}" if not -5 <= size < digits else f"{found:f}"
    return text.rstrip("0").rstrip(".") if whole and "." in text and "e" not in text else text


def _round_outward(bound: Any, direction: int) -> float:
    """The float next to an exact bound on its outer side, so that the printed interval still contains the value."""
    from fractions import Fraction
    from math import inf, nextafter

    exact = Fraction(int(bound.p), int(bound.q)) if hasattr(bound, "p") else Fraction(bound)
    try:
        near = float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
    if near == exact:
        return near
    inside = near > exact if direction < 0 else near < exact
    return nextafter(near, direction * inf) if inside else near
