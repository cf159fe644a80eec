"""E[T(Y) H(z)] = sum_a p_a E[f He_a], f = E[T(Y)|z], H = sum_a p_a He_a: one number of a conditional tensor, enclosed.

Polynomials give exact rationals at once; anything else goes through the Gaussian engine, exactly or by an enclosure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Add, Expr, S, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.certificate import Certificate, Status
from hermitex.exponents.directions.intervals import ZERO, interval_of, scale_interval
from hermitex.exponents.labels.families import Member
from hermitex.exponents.labels.mean_signs import nonzero_mean
from hermitex.exponents.labels.monotone_labels import sign_by_rise
from hermitex.exponents.mean import in_space
from hermitex.symbolic.budget import Store, checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.series.coefficient_fields import in_field, moment
from hermitex.symbolic.series.polynomials import He
from hermitex.symbolic.subspaces import tidy

Index = tuple[int, ...]


class Moments:
    """Moments of one label map, each computed once. None: not known within the time of one moment."""

    def __init__(self, member: Member, variables: Sequence[Symbol]) -> None:
        self.member, self.variables = member, tuple(variables)
        self._square: bool | None = None if member.over_boxes is None else True
        self._signs: dict[int, int] = {}
        self.known = Store()
        self.poly: Any = member.element if member.element is not None else in_field(member.mean, self.variables)

    def certificate(self, form: Mapping[Index, Expr], name: str) -> Certificate | None:
        """The evidence for E[T(Y) sum_a p_a He_a]."""
        key = tuple(sorted(form.items(), key=lambda entry: entry[0]))
        return self.known.of(key, lambda: self._found(form, name))

    def _found(self, form: Mapping[Index, Expr], name: str) -> Certificate | None:
        checkpoint(f"trying the label map {self.member.words}")
        quantity, order = _quantity(form, name)
        prefix = f"label map T(y) = {self.member.words}"
        if self.poly is not None:
            value = tidy(Add(*(c*self._moment(a) for a, c in form.items())))
            if value == 0:
                return Certificate.zero(quantity, order, f"{prefix}: exact value")  # type: ignore[arg-type]
            if value.is_Rational:
                return Certificate(quantity, order, "nonzero", f"{prefix}: exact value", value, (value, value))
            return Certificate.of(value, quantity, order, prefix=prefix)  # type: ignore[arg-type]
        if self.member.over_boxes is not None:
            return self._over_boxes(form, (quantity, order, prefix))
        if len(form) > 1 and not all(c.is_Rational for c in form.values()):
            found = self._combined(form, name)
            if any(c.has(Expectation) for c in form.values()) or (found is not None and (found or _is_narrow(found))):
                return found
        if all(any((-1)**n != self._parity(i) != 0 for i, n in enumerate(a)) for a in form):
            return Certificate.zero(quantity, order, f"{prefix}: odd in a variable")  # type: ignore[arg-type]
        integrand = self.member.mean*Add(*(c*He(a, self.variables) for a, c in form.items()))
        return nonzero_mean(integrand, self.variables, (quantity, order, prefix))

    def rise(self, f: Expr, variables: Sequence[Symbol], a: Index) -> str | None:
        """Why E[f He_a] is not zero, for f the label map over some coordinates, where it rises or falls with them."""
        found = sign_by_rise(f, variables, a)
        if found is None:
            return None
        if self._square is None:
            self._square = bool(in_space(self.member.mean, self.variables, 2))
        return found[1] if self._square else None

    def _over_boxes(self, form: Mapping[Index, Expr], named: tuple[str, Any, str]) -> Certificate | None:
        """The moment of a bounded label map, enclosed box by box."""
        quantity, order, prefix = named
        try:
            size = self.member.over_boxes.moment(form)  # type: ignore[union-attr]
        except NoClosedForm:
            return None
        status: Status = "nonzero" if size.excludes_zero else "undetermined"
        return Certificate(quantity, order, status, f"{prefix}: enclosed box by box", None, tuple(size))

    def _moment(self, a: Index) -> Expr:
        return self.poly.ring.domain.to_sympy(moment(self.poly, a))

    def _parity(self, i: int) -> int:
        """+1 or -1 where E[T(Y)|z] is seen to be even or odd in z_i, else 0."""
        if i not in self._signs:
            f = self.member.mean
            mirrored = f.subs(self.variables[i], -self.variables[i])
            self._signs[i] = 1 if mirrored == f else -1 if mirrored == -f or (mirrored + f).expand() == 0 else 0
        return self._signs[i]

    def _combined(self, form: Mapping[Index, Expr], name: str) -> Certificate | None:
        """Entry by entry, where the coefficients of these are not short: the entries are those of other forms too."""
        total = ZERO
        for a, c in form.items():
            proof = self.certificate({a: S.One}, name)
            size = interval_of(proof) if proof is not None else None
            if size is None:
                return None
            total = total.plus(scale_interval(size, c))
        quantity, order = _quantity(form, name)
        status: Status = "nonzero" if total.excludes_zero else "undetermined"
        return Certificate(quantity, order, status, f"label map T(y) = {self.member.words}: its entries enclosed",
                           None, (total.low, total.high))


def _is_narrow(found: Certificate, *, narrow: float = 1e-8) -> bool:
    """About zero to many digits: no other enclosure would tell more."""
    # narrow: from an interval of this width about 0 another route would hardly exclude 0; chosen by trial
    return found.enclosure is not None and found.enclosure[1] - found.enclosure[0] < narrow


def _quantity(form: Mapping[Index, Expr], name: str) -> tuple[str, Any]:
    return entry(next(iter(form))) if len(form) == 1 else (f"E[T(Y) H], {name}", next(iter(form)))


def entry(a: Index) -> tuple[str, Any]:
    """The quantity E[T(Y) He_a] and its order in words; of one variable they are those of a number."""
    return (f"E[T(Y) He_({','.join(map(str, a))})]", a) if len(a) > 1 else (f"E[T(Y) He_{a[0]}]", a[0])
