"""f(s_1, ..., s_K) = sum_S c_S prod_{i in S} s_i, c_S = 2^-K sum_s f(s) prod_{i in S} s_i: equal forms that are integrated.

A function of the signs of the variables (a majority, a parity, a table) is a polynomial of them, whose moments are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import prod

from sympy import Add, Dummy, Expr, Function, Heaviside, Mul, Piecewise, Rational, S, Symbol, sign

from hermitex.exponents.labels.label_levels import constant_value
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbols import normals


def polynomial_in_signs(g: Expr, variables: Sequence[Symbol]) -> Expr:
    """The same function of z with functions of signs written as polynomials.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> polynomial_in_signs(sign(sign(z1) + sign(z2) + sign(z3)), (z1, z2, z3))
    -sign(z1)*sign(z2)*sign(z3)/2 + sign(z1)/2 + sign(z2)/2 + sign(z3)/2
    """
    return g.replace(lambda e: _nested(e, variables) is not None,
                     lambda e: polynomial_of_signs(e, _nested(e, variables) or []))


def without_constants(g: Expr) -> Expr:
    """g where terms that add up to a constant, such as cosh(a)**2 - sinh(a)**2, are that constant.

    Terms with the same variable, or the same function of several, are compared, with and without the terms that are
    polynomials of it.

    Examples
    --------
    >>> from sympy import cosh, sin, cos, sinh
    >>> from hermitex.symbols import z1, z2
    >>> without_constants(z1*z2 + cosh(z1**3)**2 - sinh(z1**3)**2), without_constants(z1*(sin(z1*z2)**2 + cos(z1*z2)**2) + z2)
    (z1*z2 + 1, z1 + z2)
    """
    if g.is_Atom or isinstance(g, (Piecewise, Expectation)) or not g.has(Function):
        return g
    if not isinstance(g, Add):
        return g.func(*(without_constants(a) if isinstance(a, Expr) else a for a in g.args))
    groups: dict[Expr, list[Expr]] = {}
    t = Dummy("t", real=True)
    rest = []
    for term in (without_constants(a) for a in g.args):
        one = _quantity(term)
        if one is None:
            rest.append(term)
        else:
            groups.setdefault(one, []).append(term.xreplace({one: t}))
    for quantity, terms in groups.items():
        whole, curved = Add(*terms), Add(*(e for e in terms if not e.is_polynomial(t)))
        for part in (whole, curved):
            value = constant_value(part, t) if isinstance(part, Add) and part.has(t) else None
            if value is not None:
                whole = whole - part + value
                break
        rest.append(whole.xreplace({t: quantity}))
    return Add(*rest)


def _quantity(term: Expr) -> Expr | None:
    """The one variable, or the one argument of functions, through which a term depends on the variables."""
    variables = normals(term)
    if len(variables) == 1:
        return variables[0]
    inner = {f.args[0] for f in term.atoms(Function) if f.args[0].free_symbols}
    if len(inner) != 1:
        return None
    (a,) = inner
    return None if term.xreplace({a: S.One}).free_symbols else a


def signs_of(e: Expr, variables: Sequence[Symbol]) -> list[Symbol] | None:
    """The variables of an expression that depends on their signs only, at least one of them and not more than six."""
    used = [x for x in variables if e.has(x)]
    most_signs = 6  # 2^6 = 64 evaluations and as many coefficients
    if not 0 < len(used) <= most_signs:
        return None
    marked = e.xreplace({head(x): S.Half for x in used for head in (sign, Heaviside)})
    return None if marked.has(*used) else used


def cells_of(e: Expr, used: Sequence[Symbol]) -> list[tuple[tuple[int, ...], Expr]]:
    """(signs, value) of a function of signs."""
    return [(cell, e.xreplace({sign(x): S(s) for x, s in zip(used, cell, strict=True)}
                              | {Heaviside(x): S((1 + s) // 2) for x, s in zip(used, cell, strict=True)}))
            for cell in product((1, -1), repeat=len(used))]


def polynomial_of_signs(e: Expr, used: Sequence[Symbol]) -> Expr:
    """sum_S c_S prod s_i of a function of the signs of these variables; e itself if its values are not numbers.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> polynomial_of_signs((sign(z1) + sign(z2))**2, [z1, z2])
    2*sign(z1)*sign(z2) + 2
    """
    cells = cells_of(e, used)
    if any(v.has(*used) or not v.is_number for _, v in cells):
        return e
    terms = []
    for size in range(len(used) + 1):
        for some in combinations(range(len(used)), size):
            weight = Add(*(v * prod(cell[i] for i in some) for cell, v in cells))
            terms.append(weight * Rational(1, len(cells)) * Mul(*(sign(used[i]) for i in some)))
    return Add(*terms)


def _nested(e: Expr, variables: Sequence[Symbol]) -> list[Symbol] | None:
    """The variables of a function of signs that is not one sign itself."""
    if not isinstance(e, (Function, Piecewise)) or (isinstance(e, (sign, Heaviside)) and isinstance(e.args[0], Symbol)):
        return None
    return signs_of(e, variables)
