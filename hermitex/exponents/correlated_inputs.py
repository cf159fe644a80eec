"""x ~ N(0, C), C = L L^T: x = L z, and g(x) is the target g(L z) of standard normals z; its exponents are those of g under C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

from sympy import Add, Expr, Float, ImmutableDenseMatrix, Matrix, S, Symbol

from hermitex import symbols
from hermitex.errors import DECLARING, BadInput, UnknownName
from hermitex.exponents.certificate import renamed
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.directions.direction_text import normals_apart
from hermitex.exponents.findings import with_directions
from hermitex.exponents.thresholds import direction_notes
from hermitex.symbolic.conditioning import cholesky
from hermitex.symbolic.covariance import by_pairs, matrix_of, require_law
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parsing import parse, real_expression
from hermitex.symbolic.subspaces import matrix, span, tidy
from hermitex.symbolic.text.plain_data import plain

if TYPE_CHECKING:
    from hermitex.exponents.result import Exponents


@dataclass(frozen=True)
class GivenVariables:
    """A target g(x), x ~ N(0, L L^T), as it was given: x = L w with standard normals w, and v.w = (v L^-1).x."""

    target: Expr
    names: tuple[str, ...]
    lower: Matrix

    def over_normals(self, law: NamedChannel | Channel) -> tuple[Expr, NamedChannel | Channel]:
        """g(L w), and the channel in w; a letter of g is a field before and a standard normal after."""
        x = [symbols.normal(n) for n in self.names]
        fields = dict(zip(x, self.lower*Matrix(x), strict=True))
        if isinstance(law, Channel):
            regression = None if law.regression is None else law.regression.xreplace(fields)
            law = replace(law, p=law.p.xreplace(fields), regression=regression)
        return self.target.xreplace(fields), law

    def restated(self, found: Exponents) -> Exponents:
        """The answer of `over_normals` with its directions as linear forms of x; its certificates keep w, named w1, w2, ..."""
        numbers, own = dict(found.numbers), normals_apart(self.names)
        words = {n: Symbol(w) for n, w in own.items()}
        stages = found.threshold.stages
        told = dict(zip(direction_notes(stages, self.names), direction_notes(stages, self.names, self._numeric), strict=True))
        forms = zip(self.names, self.lower*Matrix(list(words.values())), strict=True)
        fields = ", ".join(f"{n} = {plain(form)}" for n, form in forms)
        note = (f"covariance: directions are linear forms of {', '.join(self.names)}; the certificates are over standard normals, "
                f"{fields}")
        over_x = with_directions(found, lambda rows: self._forms(rows, numbers))
        return replace(
            over_x, target=self.target, numbers=numbers, over_normals=found,
            certificates=tuple(c.renamed(own) for c in found.certificates),
            notes=(*(told.get(n) or renamed(n, own) for n in found.notes), note))

    def _forms(self, rows: Sequence[Sequence[Any]], numbers: dict[Expr, float | None]) -> list[list[Expr]]:
        """Rows over w as rows over x, made short; the numbers of entries that are integrals join `numbers`."""
        before = [[S(x) for x in row] for row in rows]
        after = self._numeric(before)
        known = {x: numbers.get(x) for row in before for x in row if x.has(Expectation)}
        if not known:
            return after if any(x.has(Float) for row in after for x in row) else span(matrix(after, len(self.names))).tolist()
        value = {node: None if n is None else Float(n) for node, n in known.items()}
        for x in (x for row in after for x in row if x.has(Expectation)):
            held = {node: n for node, n in value.items() if x.has(node)}
            numbers[x] = None if None in held.values() else float(x.xreplace(held))
        return after

    def _numeric(self, rows: Any) -> list[list[Expr]]:
        """v L^-1 for each row v over w."""
        at, columns = self._inverse
        return [[Add(*(S(row[k])*x for k, x in zip(at, columns[i], strict=True))) if i in columns else S.Zero
                 for i in range(len(row))] for row in rows]

    @cached_property
    def _inverse(self) -> tuple[list[int], dict[int, list[Expr]]]:
        """The places of L^-1, and its column at each; a column of L that is zero belongs to a w that does not enter the target."""
        at = [i for i in range(self.lower.rows) if self.lower[i, i] != 0]
        inverse = self.lower.extract(at, at).inv().applyfunc(tidy)
        return at, {i: list(inverse.col(n)) for n, i in enumerate(at)}


def given_variables(g: Expr, names: Sequence[str], covariance: Any) -> GivenVariables | None:
    """The variables of a target with their covariance; None where they are standard normals."""
    lower = cholesky(_matrix(covariance, names))
    return None if lower.is_Identity else GivenVariables(g, tuple(names), lower)


def _matrix(covariance: Any, names: Sequence[str]) -> ImmutableDenseMatrix:
    """The covariance as exact numbers: a matrix, pairs, or one number for one variable."""
    given = covariance.tolist() if hasattr(covariance, "tolist") else covariance
    if len(names) == 1 and not isinstance(given, dict | list | tuple):
        given = [[given]]
    pairs = {k: _number(v) for k, v in by_pairs(given, names, "covariance").items()}
    matrix = matrix_of(names, pairs, "covariance")
    require_law(matrix, "covariance:")
    return matrix


def _number(value: Any) -> Expr:
    """An exact finite number; of a float fifteen digits, so that a product of floats is not known by its rounding."""
    text = f"{value:.15g}" if isinstance(value, float) and isfinite(value) else value
    try:
        found = parse(text) if isinstance(text, str) else real_expression(text)
    except UnknownName as error:
        told, _, declaring = str(error).partition(DECLARING)
        raise BadInput(f"covariance: {told}{'; put a number in' if declaring else ''}") from None
    except BadInput as error:
        raise BadInput(f"covariance: {error}") from None
    if found.free_symbols:
        raise BadInput(f"covariance: {plain(found)} has no value; put numbers in, [[2, 1], [1, 2]] or {{('z1', 'z2'): 1/2}}")
    if not found.is_finite:
        raise BadInput(f"covariance: {plain(found)} is not a finite number; give numbers, [[2, 1], [1, 2]]")
    return found
