"""E f(z_1, ..., z_n) = c E g(y_1, ..., y_r), r < n: an average over several normals as averages over fewer, exactly.

Each reduction takes an integrand and its variables, independent standard normals unless a law is given, and returns None where
it does not apply. The average on either side exists exactly when the other does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

from sympy import (
    Add,
    Dummy,
    Expr,
    Matrix,
    Max,
    Min,
    Mul,
    Poly,
    S,
    Symbol,
    cosh,
    erf,
    exp,
    eye,
    sinh,
    sqrt,
)

from hermitex.numbers.invariant_directions import Directions, Row, images, orthonormal, product, vanishes
from hermitex.symbolic.breaks.switches import orders, ranked
from hermitex.symbolic.radial import over_directions
from hermitex.symbolic.terms import factorwise


class Reduced(NamedTuple):
    """The average is factor E body, over independent standard normals `variables`."""

    factor: Expr
    body: Expr
    variables: tuple[Symbol, ...]


def in_fewest(body: Expr, variables: Sequence[Symbol], law: Matrix) -> Reduced:
    """The average over N(0, law) in as few independent standard normals as the integrand has directions that it depends on.

    Examples
    --------
    >>> from sympy import exp, eye
    >>> from hermitex.symbols import z1, z2
    >>> in_fewest(exp(z1)/(exp(z1) + exp(z2)), (z1, z2), eye(2))[1].free_symbols
    {_y0}
    >>> in_fewest(exp(z1), (z1, z2), eye(2))[:2]
    (exp(1/2), 1)
    """
    seen = Directions(factorwise(body), variables)
    basis = orthonormal(seen.rows, law)
    names = tuple(Dummy(f"y{i}", real=True) for i in range(len(basis)))
    inside = substituted(body, dict(zip(variables, images(basis, law, names), strict=True)))
    if seen.kind == "weight" and any(seen.row):
        hidden = product(seen.row, law, seen.row) - sum(product(seen.row, law, q)**2 for q in basis)
        return Reduced(exp(hidden/2), inside, names)
    return Reduced(S.One, inside, names)


def substituted(e: Any, swap: dict[Symbol, Expr]) -> Any:
    """The expression after a linear substitution, with its polynomials expanded: what cancels in them is gone."""
    if not e.free_symbols.intersection(swap):
        return e
    if not e.args:
        return swap[e]
    if isinstance(e, Expr) and e.is_polynomial(*swap):
        return e.xreplace(swap).expand()
    return e.func(*(substituted(a, swap) for a in e.args))


def factors(body: Expr) -> list[Expr]:
    """The factors of an integrand, exp(a + b) being two."""
    flat = [a for f in Mul.make_args(factorwise(body)) for a in Mul.make_args(f)]
    return [exp(a) for f in flat if isinstance(f, exp) for a in Add.make_args(f.args[0].expand())] + [
        f for f in flat if not isinstance(f, exp)]


def without_quadratic_exponent(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, Expr, Matrix] | None:
    """E exp(z.Q.z/2 + a.z + c) g(z) = exp(c + a.K.a/2)/sqrt(det(1 - Q)) E g(K a + N(0, K)), K = (1 - Q)^-1: (factor, g, K).

    None if no such exponent exists, 1 - Q is not positive definite, or other exponentials may cancel this one.
    """
    inside = factors(body)
    exponents = [f.args[0] for f in inside if isinstance(f, exp) and f.args[0].is_polynomial(*variables)
                 and Poly(f.args[0], *variables).total_degree() <= 2]
    if not exponents:
        return None
    rest = Mul(*(f for f in inside if not (isinstance(f, exp) and f.args[0] in exponents)))
    if rest.has(exp, cosh, sinh):
        return None
    q, n = Add(*exponents).expand(), len(variables)
    at0 = dict.fromkeys(variables, S.Zero)
    a = Matrix([q.diff(v).xreplace(at0) for v in variables])
    Q = Matrix(n, n, lambda i, j: q.diff(variables[i]).diff(variables[j]))
    kept = eye(n) - Q
    if not all(kept[:k, :k].det(method="berkowitz").evalf(30) > S(10)**-25 for k in range(1, n + 1)):
        return None
    K = kept.inv()
    mean = K*a
    moved = substituted(rest, {v: v + m for v, m in zip(variables, mean, strict=True)})
    return exp(q.xreplace(at0) + (a.T*mean)[0]/2)/sqrt(kept.det(method="berkowitz")), moved, K


def independent_factors(body: Expr, variables: Sequence[Symbol]) -> list[Expr]:
    """The factors of an integrand, joined if they share a direction: E of the product is the product of their averages."""
    groups: list[tuple[list[Row], list[Expr]]] = []
    law = eye(len(variables))
    front, rest = body.as_independent(*variables, as_Add=False)
    for f in factors(rest):
        rows, mine = Directions(f, variables).spanned(), [f]
        for group in [g for g in groups if any(not vanishes(product(a, law, b)) for a in rows for b in g[0])]:
            groups.remove(group)
            rows, mine = rows + group[0], group[1] + mine
        groups.append((rows, mine))
    parts = [Mul(*mine) for _, mine in groups if any(f.free_symbols for f in mine)]
    constants = [f for _, mine in groups for f in mine if not f.free_symbols]
    return [Mul(front, *constants, parts[0]), *parts[1:]]


def summands(body: Expr, variables: Sequence[Symbol]) -> list[Expr]:
    """The terms of a sum, together where the directions of one contain those of another; [body] unless each depends on fewer."""
    law, groups = eye(len(variables)), list[tuple[list[Row], list[Expr]]]()
    for term in Add.make_args(body):
        span, mine = orthonormal(Directions(term, variables).spanned(), law), [term]
        for group in list(groups):
            both = orthonormal(span + group[0], law)
            if len(both) <= max(len(span), len(group[0])):
                groups.remove(group)
                span, mine = both, mine + group[1]
        groups.append((span, mine))
    return [Add(*mine) for _, mine in groups] if all(len(s) < len(variables) for s, _ in groups) else [body]


def is_odd(body: Expr, variables: Sequence[Symbol]) -> bool:
    """Decide if f changes its sign with the signs of some of the variables; at most six are tried."""
    some = list(variables)[:6]
    flips = [{v: -v for v in chosen} for k in range(len(some), 0, -1) for chosen in combinations(some, k)]
    return any(body.xreplace(flip) == -body for flip in flips)


# -- lengths -----------------------------------------------------------------------------------------------------------
def by_length(body: Expr, variables: Sequence[Symbol]) -> Reduced | None:
    """E p(z) f(|z|^2) as an average over |z| for m of the variables, the most that allow it; p is a polynomial.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> by_length(1/(1 + z1**2 + z2**2), (z1, z2)).body
    sqrt(2)*sqrt(pi)*Abs(_length)/(2*(_length**2 + 1))
    """
    for m in range(len(variables), 1, -1):
        for chosen in combinations(variables, m):
            if (found := over_directions(body, chosen)) is not None:
                return Reduced(S.One, found[0], (*(v for v in variables if v not in chosen), found[1]))
    return None


def by_conditional_form(body: Expr, variables: Sequence[Symbol]) -> Reduced | None:
    """E f(a(x).y, x) = E f(|a(x)| w, x) for variables y in one linear form, whose coefficients may depend on the others.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2, z3, z4
    >>> by_conditional_form(tanh(z1*z2 + z3*z4), (z1, z2, z3, z4)).body
    tanh(_w*sqrt(z2**2 + z4**2))
    """
    for m in range(len(variables) - 1, 1, -1):
        for chosen in combinations(variables, m):
            rows = Directions(body, chosen)
            if len({_direction(r) for r in rows.rows}) != 1 or any(rows.row):
                continue
            a = rows.rows[0]
            w = Dummy("w", real=True)
            square = Add(*(c**2 for c in a)).expand()
            if square.is_zero is not False and not square.free_symbols:
                continue
            inside = _of_form(body, dict(zip(chosen, a, strict=True)), square, w)
            return Reduced(S.One, inside, (*(v for v in variables if v not in chosen), w))
    return None


def _direction(row: Row) -> Row:
    """The row over its first entry that is not 0."""
    first = next(c for c in row if c != 0)
    return tuple((c/first).cancel() for c in row)


def _of_form(e: Any, swap: dict[Symbol, Expr], square: Expr, w: Symbol) -> Any:
    """The expression with sqrt(square) w for the linear form a.y; `swap` maps y to a."""
    if not e.free_symbols.intersection(swap):
        return e
    if isinstance(e, Expr) and e.is_polynomial(*swap):
        p = Poly(e.xreplace({v: c*w for v, c in swap.items()}), w)  # where a.y is square w
        return Add(*((c/square**k).cancel()*sqrt(square)**k*w**k for (k,), c in p.terms()))
    return e.func(*(_of_form(a, swap, square, w) for a in e.args))


# -- the largest of several --------------------------------------------------------------------------------------------
def linear_forms(us: Sequence[Expr], variables: Sequence[Symbol]) -> list[tuple[Row, Expr]] | None:
    """(coefficients, constant) of each of several affine forms; None if one is not affine."""
    if not all(u.is_polynomial(*variables) and Poly(u, *variables).total_degree() <= 1 for u in us):
        return None
    polys = [Poly(u, *variables) for u in us]
    return [(tuple(p.coeff_monomial(v) for v in variables), p.coeff_monomial(1)) for p in polys]


def by_largest(body: Expr, variables: Sequence[Symbol], law: Matrix) -> list[Reduced] | None:
    """E h(max u_i) = sum_i E[h(u_i); u_j < u_i for all j], each over one variable, where the u_i are independent.

    So for the median and other nests of Max and Min of three forms and more. The mean depends on the variances of the differences
    only: with h linear, forms with Var(u_i - u_j) = s_i^2 + s_j^2 (equal correlations) count as independent.
    """
    found = {e for e in body.atoms(Max, Min) if e.free_symbols.intersection(variables)}
    outermost = [e for e in found if not any(e != o and o.has(e) for o in found)]
    most = 6  # forms of a nest, as each of its subsets is tried for being smaller
    if len(outermost) != 1:
        return None
    top, nested = outermost[0], len(found) > 1
    names = ranked(top)
    if len(names) < 3 or (nested and len(names) > most):
        return None
    M, z = Dummy("M", real=True), Dummy("z", real=True)
    h = body.xreplace({top: M})
    forms = linear_forms(names, variables)
    if forms is None or h.free_symbols.intersection(variables):
        return None
    sizes = variances([row for row, _ in forms], law, differences_only=h.is_polynomial(M) and Poly(h, M).degree() == 1)
    if sizes is None:
        return None
    laws = {name: (mean, size) for name, (_, mean), size in zip(names, forms, sizes, strict=True)}
    parts = []
    for chosen, below, above in orders(top):
        u = laws[chosen][0] + sqrt(laws[chosen][1])*z
        sides = [*((w, 1) for w in below), *((w, -1) for w in above)]
        chances = [(1 + side*erf((u - laws[w][0])/sqrt(2*laws[w][1])))/2 for w, side in sides]
        parts.append(Reduced(S.One, h.xreplace({M: u})*Mul(*chances), (z,)))
    return _alike_together(parts)


def variances(rows: Sequence[Row], law: Matrix, *, differences_only: bool) -> list[Expr] | None:
    """The variances of independent normals with the law of these forms, or of their differences; None where there are none."""
    def covariance(i: int, j: int) -> Expr:
        return product(rows[i], law, rows[j])

    if all(vanishes(covariance(i, j)) for i, j in combinations(range(len(rows)), 2)):
        sizes = [covariance(i, i) for i in range(len(rows))]
    elif differences_only:
        d = {pair: covariance(pair[0], pair[0]) + covariance(pair[1], pair[1]) - 2*covariance(*pair)
             for pair in combinations(range(len(rows)), 2)}
        first, second = (d[0, 1] + d[0, 2] - d[1, 2])/2, (d[0, 1] + d[1, 2] - d[0, 2])/2
        sizes = [first, second, *(d[0, k] - first for k in range(2, len(rows)))]
        if any(not vanishes(d[i, j] - sizes[i] - sizes[j]) for i, j in d):
            return None
    else:
        return None
    return sizes if all(s.evalf(30) > S(10)**-25 for s in sizes) else None


def _alike_together(parts: list[Reduced]) -> list[Reduced]:
    """Equal averages once, with their number as factor."""
    counted: dict[Expr, int] = {}
    for p in parts:
        counted[p.body] = counted.get(p.body, 0) + 1
    return [Reduced(S(n), body, parts[0].variables) for body, n in counted.items()]


__all__ = ["Reduced", "by_conditional_form", "by_largest", "by_length", "factors", "in_fewest", "independent_factors",
           "is_odd", "linear_forms", "substituted", "summands", "variances", "without_quadratic_exponent"]
