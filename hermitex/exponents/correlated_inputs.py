"""x ~ N(0, C), C = L L^T: x = L z, and g(x) is the target g(L z) of standard normals z; its exponents are those of g under C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from sympy import Expr, ImmutableDenseMatrix, Matrix

from hermitex import symbols
from hermitex.errors import DECLARING, BadInput, UnknownName
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.directions.direction_text import staircase_words
from hermitex.exponents.findings import Findings
from hermitex.symbolic.conditioning import cholesky
from hermitex.symbolic.covariance import by_pairs, matrix_of, require_law
from hermitex.symbolic.parsing import parse, real_expression
from hermitex.symbolic.subspaces import tidy
from hermitex.symbolic.text.plain_data import plain


def whitened(g: Expr, law: NamedChannel | Channel, names: Sequence[str],
             covariance: Any) -> tuple[Expr, NamedChannel | Channel, str]:
    """g(L z), the channel in z, and the note that says what z is; a letter of g is a field before and a standard normal after."""
    x = [symbols.normal(n) for n in names]
    lower = cholesky(_matrix(covariance, names))
    fields = dict(zip(x, lower*Matrix(x), strict=True))
    if isinstance(law, Channel):
        regression = None if law.regression is None else law.regression.xreplace(fields)
        law = replace(law, p=law.p.xreplace(fields), regression=regression)
    moved = ", ".join(f"{v.name} -> {plain(field)}" for v, field in fields.items() if field != v)
    note = f"covariance: written over standard normals by {moved}; directions are rows over these" if moved else ""
    return g.xreplace(fields), law, note


def in_own_variables(found: Findings, covariance: Any) -> list[str]:
    """The note with the staircases as linear forms of x, the variables as given: v.z is (v L^-1).x; [] where L is singular."""
    lower = cholesky(_matrix(covariance, found.variables))
    if lower.det() == 0 or lower.is_Identity:
        return []
    told = []
    for name, stages in (("staircase", found.staircase), ("generative staircase", found.generative_staircase)):
        rows = [{"order": s["order"], "directions": short_exact(Matrix(s["directions"])*lower.inv())} for s in stages]
        told += [f"{name} {staircase_words(rows, found.variables, found.numbers)}"] if rows else []
    return [f"in the variables as given, of that covariance: {'; '.join(told)}"] if told else []


def short_exact(rows: Matrix) -> list[list[Expr]]:
    """Each row up to a factor: its first entry that is not 0 is 1 there."""
    found = []
    for row in rows.applyfunc(tidy).tolist():
        first = next(x for x in row if x != 0)
        found.append([tidy(x/first) for x in row])
    return found


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
