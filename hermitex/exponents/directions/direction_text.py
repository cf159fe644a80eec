"""[[1, 0, 0], [0, 1, 2]] is z1, z2 + 2*z3: directions and staircases in words, numerical rows as short fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from sympy import Add, Expr, Float, Matrix, Rational, S, Symbol

from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.subspaces import contains, orthogonal, rank


def staircase_words(stages: Sequence[dict[str, Any]], variables: Sequence[str],
                    numbers: Mapping[Expr, float | None] | None = None) -> str:
    """Orders and directions in a line; `numbers` as in `directions_words`.

    >>> staircase_words([{"order": 1, "directions": [[1, 1]]}, {"order": 2, "directions": [[1, -1]]}], ("z1", "z2"))
    '1: z1 + z2;  2: z1 - z2'
    """
    return ";  ".join(f"{s['order']}: {directions_words(s['directions'], variables, numbers)}" for s in stages)


def directions_words(rows: Sequence[Sequence[Any]], variables: Sequence[str],
                     numbers: Mapping[Expr, float | None] | None = None, *, most: float = inf) -> str:
    """The linear forms of some rows; `numbers` are those of integrals without closed form, as far as they were found.

    most : characters of a form, beyond which its coefficients are rounded

    >>> directions_words([[1, 0, 0], [0, 1, 2]], ("z1", "z2", "z3"))
    'z1, z2 + 2*z3'
    """
    letters = [Symbol(v, real=True) for v in variables]
    forms = [Add(*(S(x)*v for x, v in zip(row, letters, strict=True))) for row in rows]
    from hermitex.symbolic.parsing import to_text

    return ", ".join(said if f.count_ops() < 30 and not f.has(Expectation) and len(said := to_text(f)) <= most else
                     _short(row, variables, numbers) for f, row in zip(forms, rows, strict=True))


def _short(row: Sequence[Any], variables: Sequence[str], numbers: Mapping[Expr, float | None] | None) -> str:
    """Coefficients that are long, or integrals without closed form, as numbers; those whose number is not had, as they are."""
    from hermitex.exponents.directions.exact_entries import entry_number
    from hermitex.symbolic.parsing import to_text

    found = [numbers.get(x) if numbers is not None and S(x).has(Expectation) else entry_number(S(x)) for x in row]
    terms = ((to_text(x) if n is None else _few_digits(n), v) for x, n, v in zip(row, found, variables, strict=True) if x != 0)
    return " + ".join(v if c == "1" else f"{c}*{v}" for c, v in terms).replace("+ -", "- ")


def _few_digits(x: Any) -> str:
    """Six digits, or as many more as it takes not to pass for a whole number."""
    return next((s for n in (6, 9, 12) if "." in (s := f"{float(x):.{n}g}") or float(x) == float(s)), f"{float(x):.12g}")


def normals_apart(names: Sequence[str], letter: str = "w") -> dict[str, str]:
    """Names for standard normals next to variables of these names: z1 -> w1.

    >>> normals_apart(("z1", "z2"), "v")
    {'z1': 'v1', 'z2': 'v2'}
    """
    return {n: letter + n[1:] for n in names}


def in_written_forms(rows: list[list[Any]], forms: Sequence[Sequence[Expr]]) -> list[list[Any]]:
    """Rows of the same span among the linear forms that a target is written in; the rows as they are where these do not span it.

    >>> in_written_forms([[1, 0], [0, 1]], [(1, -1), (1, 1)])
    [[1, -1], [1, 1]]
    """
    exact = [[S(x) for x in row] for row in rows]
    if any(x.has(Expectation, Float) for row in exact for x in row):
        return rows
    found: list[list[Any]] = []
    for form in forms:
        more = [*found, list(form)]
        if contains(Matrix(exact), Matrix([form])) and rank(Matrix(more)) == len(more):
            found = more
    return found if len(found) == len(rows) else rows


def written_forms(g: Expr, variables: Sequence[Symbol]) -> list[tuple[Expr, ...]]:
    """The linear forms of the variables that a target is written in, made short: the variables first, each form once.

    The linear terms of a sum count together if they are a form that occurs elsewhere, else one by one.

    >>> from hermitex.symbols import z1, z2
    >>> written_forms((z1 + z2)**3 - 3*z1 - 3*z2 + (z1 - z2)**2, (z1, z2))
    [(1, -1), (1, 1)]
    """
    found: set[tuple[Expr, ...]] = set()
    loose: list[list[Expr]] = []
    seen, todo = {g}, [g]
    while todo:
        node = todo.pop()
        row = _linear(node, variables)
        if row is not None:
            found |= {_short_form(row)} if any(row) else set()
            continue
        terms = {t: _linear(t, variables) for t in node.args}
        if node.is_Add:
            linear = [row for row in terms.values() if row is not None]
            loose += [row] if any(row := [Add(*column) for column in zip(*linear, strict=True)]) else []
        inner = [t for t, row in terms.items() if row is None or not node.is_Add]
        todo += [t for t in inner if t not in seen]
        seen.update(inner)
    units = Matrix.eye(len(variables)).tolist()
    for row in loose:
        if _short_form(row) not in found:
            found |= {tuple(unit) for unit, x in zip(units, row, strict=True) if x != 0}
    places = {form: [i for i, x in enumerate(form) if x != 0] for form in found}
    return sorted(found, key=lambda form: (len(places[form]), places[form], str(form)))


def _short_form(row: list[Expr]) -> tuple[Expr, ...]:
    """Up to a factor: coprime integers if it is rational, the first entry that is not zero positive."""
    return tuple(orthogonal(Matrix([row])).row(0))


def _linear(node: Expr, variables: Sequence[Symbol]) -> list[Expr] | None:
    """The coefficients of a linear form, a constant aside; None for what is not linear as it is written."""
    if not node.free_symbols & set(variables):
        return [S.Zero]*len(variables)
    if node.is_Symbol:
        return [S(int(node == v)) for v in variables]
    if node.is_Mul:
        factor, rest = node.as_independent(*variables)
        inner = None if rest == node or rest.is_Mul else _linear(rest, variables)
        return None if inner is None or factor.has(Float) else [factor*x for x in inner]
    terms = [_linear(t, variables) for t in node.args] if node.is_Add else [None]
    return None if None in terms else [Add(*column) for column in zip(*terms, strict=True)]  # type: ignore[arg-type]


def short_rows(rows: Any) -> list[list[Expr]]:
    """A reduced basis of the span of numerical rows: small fractions where they are near, else six digits.

    >>> short_rows([[0.7071067811865476, 0.7071067811865476]])
    [[1, 1]]
    """
    import numpy as np

    rest = [np.array(row, dtype=float) for row in rows]
    done: list[tuple[int, Any]] = []
    while rest:
        at = max(range(len(rest)), key=lambda i: np.abs(rest[i]).max())
        row = rest.pop(at)
        size = np.abs(row).max()
        if size < 1e-8:
            break
        pivot = int(np.flatnonzero(np.abs(row) > size * (1 - 1e-6))[0])
        row = row / row[pivot]
        rest = [r - r[pivot] * row for r in rest]
        done = [*((p, r - r[pivot] * row) for p, r in done), (pivot, row)]
    return oriented([[_short_number(float(x)) for x in row] for _, row in sorted(done, key=lambda d: d[0])])


def oriented(rows: list[list[Any]], numbers: dict[Expr, float | None] | None = None) -> list[list[Any]]:
    """Each direction with its first nonzero component positive: v and -v are one direction.

    numbers : the values of entries that are integrals without closed form; those of entries that change their sign join them

    >>> oriented([[0, -1, 2], [1, -1, 0]])
    [[0, 1, -2], [1, -1, 0]]
    """
    known = {} if numbers is None else numbers

    def value(x: Any) -> float:
        return (known.get(x) or 0.0) if S(x).has(Expectation) else float(x)

    turned = []
    for row in rows:
        backwards = next((size for x in row if x != 0 and (size := value(x))), 0.0) < 0
        turned.append([-x for x in row] if backwards else row)
        for x in row if backwards else ():
            if x in known:
                number = known[x]
                known[-x] = None if number is None else -number
    return turned


def _short_number(x: float) -> Expr:
    near = Rational(x).limit_denominator(24)
    return near if abs(float(near) - x) < 1e-7 else Float(f"{x:.6g}", 6)  # rounded: not to be read as a fraction
