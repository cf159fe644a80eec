r"""E[He_k(u) g(v)] = rho^k E[He_k(v) g(v)], E[He_j He_k] = k! delta_jk of orders that are letters, and sums over them.

    sum_k t^k/k! E[He_k f] E[He_k g] = E[f(u) g(v)], u and v of correlation t        sum_k t^k/k! E[He_k f] = E[f(z + t)]

for square integrable functions and |t| <= 1 (Mehler 1866); a power of k under the sum takes derivatives of both functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import (
    Add,
    Dummy,
    Expr,
    I,
    Integer,
    KroneckerDelta,
    Mul,
    Poly,
    Pow,
    S,
    Sum,
    Symbol,
    combsimp,
    cos,
    cosh,
    exp,
    expand,
    factorial,
    nan,
    oo,
    powsimp,
    sin,
    sinh,
    sqrt,
    zoo,
)
from sympy.core.function import AppliedUndef

from hermitex.check.rules import everywhere, weak
from hermitex.symbolic.conditioning import over
from hermitex.symbolic.existence_check import exists_for_most
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import added_up
from hermitex.symbolic.series.polynomials import HermiteOfOrder, to_hermite
from hermitex.symbolic.terms import linear, terms

_MOST = 20   # terms at which a sum begins later


def settled(expr: Expr) -> Expr:
    """Averages with He_k by its rules, brought to the lowest order of each letter that the expression holds.

    Examples
    --------
    >>> from hermitex import E, He
    >>> from hermitex.symbols import z1, z2, rho
    >>> k = Symbol("k", integer=True, nonnegative=True)
    >>> settled(E(He(k, z1)*He(k, z2), z1, z2, cov={(z1, z2): rho}))
    rho**k*factorial(k)
    """
    if expr.has(HermiteOfOrder):
        for rule in (_orthogonal, lambda node, whole=expr: _lowered(node, whole)):
            after = everywhere(rule, expr)
            expr = expr if after is None else after
    return _met(expr) if expr.has(KroneckerDelta) else expr


def _orthogonal(node: Expectation) -> Expr | None:
    """Average over a variable that the integrand holds in one He_k alone, in two of them, or in He_k times a polynomial."""
    body, variables = node.open()
    found = [_term(t.coefficient, t.body(variables), variables, node) for t in terms(body, variables)]
    if all(one is None for one in found):
        return None
    parts = [t.coefficient*node.with_body(t.body(variables), variables) for t in terms(body, variables)]
    return Add(*(part if one is None else one for one, part in zip(found, parts, strict=True)))


def _term(coefficient: Expr, body: Expr, variables: Sequence[Symbol], node: Expectation) -> Expr | None:
    cov = node.covariance
    held = [i for i, v in enumerate(variables) if body.has_free(v)]
    for i in held:
        u, others = variables[i], [j for j in held if j != i]
        rest, mine = body.as_independent(u, as_Add=False)
        if cov[i, i] != 1 or not _orders(mine):
            continue
        if not others:
            value = _one_variable(mine, u)
            if value is not None:
                return coefficient*rest*value
        elif len(others) == 1 and isinstance(mine, HermiteOfOrder) and mine.args[1] == u:
            v, spread = variables[others[0]], sqrt(cov[others[0], others[0]])
            after = over(HermiteOfOrder(mine.args[0], v)*rest.xreplace({v: spread*v}), (v,))
            return coefficient*(cov[i, others[0]]/spread)**mine.args[0]*settled(linear(after))
    return None


def _orders(expr: Expr) -> list[Expr]:
    return [h.args[0] for h in expr.atoms(HermiteOfOrder)]


def _one_variable(body: Expr, z: Symbol) -> Expr | None:
    """E[He_j He_k] = k! delta_jk; E[He_k p] = k! p_k for a polynomial p = sum_j p_j He_j."""
    factors = [f for base, n in body.as_powers_dict().items() for f in [base]*(int(n) if n.is_Integer and n > 0 else 1)]
    if Mul(*factors) != body:
        return None
    named = [f for f in factors if isinstance(f, HermiteOfOrder) and f.args[1] == z]
    rest = Mul(*(f for f in factors if f not in named))
    if len(named) == 2 and rest == 1:
        j, k = sorted((f.args[0] for f in named), key=lambda n: bool((n + 1).is_positive))
        return factorial(k)*KroneckerDelta(j, k) if (k + 1).is_positive else None   # at -1 it is 0
    if len(named) == 1 and rest.is_polynomial(z):
        k = named[0].args[0]
        return Add(*(factorial(j)*p*KroneckerDelta(Integer(j), k) for j, p in to_hermite(rest, z).items() if isinstance(j, int)))
    return None


def _lowered(node: Expectation, expr: Expr) -> Expr | None:
    """E[He_{k+n}(z) f] = E[He_k(z) f^(n)], down to the lowest order in the expression that is not negative."""
    if len(node.bound) > 1 or node.covariance[0, 0] != 1:
        return None
    body, (z,) = node.open()
    named = [f for f in Mul.make_args(body) if isinstance(f, HermiteOfOrder) and f.args[1] == z]
    if len(named) != 1 or (body/named[0]).has(HermiteOfOrder):
        return None
    order = named[0].args[0]
    below = [n for k in _orders(expr) if (n := order - k).is_Integer and n > 0 and (k + 1).is_positive]
    if not below:
        return None
    slope = weak(body/named[0], z, int(max(below)))
    return settled(linear(over(HermiteOfOrder(order - max(below), z)*slope, (z,))))


def _met(expr: Expr) -> Expr:
    """a_jk delta_jk = a_kk delta_jk."""
    flat = expand(expr)
    out = []
    for term in Add.make_args(flat):
        for delta in sorted(term.atoms(KroneckerDelta), key=str):
            gap = delta.args[0] - delta.args[1]
            letter = max((s for s in gap.free_symbols if gap.coeff(s) in (1, -1)), key=str, default=None)
            if letter is not None and term.has(delta):
                value = expand(letter - gap*gap.coeff(letter))
                rest, canonical = term/delta, KroneckerDelta(letter, value)
                term = rest.xreplace({letter: value})*canonical if not rest.has(delta) else term
        out.append(term)
    return Add(*out)


def summed(node: Sum) -> Expr:
    """Sum over the orders of one or two averages with He_k by Mehler's formula, or of He_k(x) itself; the sum if neither applies.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex import E, He
    >>> from hermitex.symbols import z, rho
    >>> k, f, g = Symbol("k", integer=True, nonnegative=True), Function("f"), Function("g")
    >>> summed(Sum(rho**k/factorial(k)*E(He(k, z)*f(z), z)*E(He(k, z)*g(z), z), (k, 0, oo)))
    E(f(z1)*g(z2), z1, z2, cov={(z1, z2): rho})
    """
    if len(node.limits) != 1 or len(node.limits[0]) != 3 or not node.has(HermiteOfOrder):
        return node
    k, first, last = node.limits[0]
    if last is not oo:
        return added_up(node)
    done = node.function.doit()
    if done.has(HermiteOfOrder) and not done.has(Expectation):
        return _generated(Sum(done, *node.limits))
    if not (first.is_Integer and 0 <= first <= _MOST and k.is_integer and k.is_nonnegative):
        return node
    body = expand(settled(node.function))
    found = [_over_orders(term, k, int(first)) for term in Add.make_args(body)]
    return node if any(one is None for one in found) else Add(*(one for one in found if one is not None))


def _generated(node: Sum) -> Expr:
    """sum_k c_k He_k(x) = E[S(x + i z)], where S(w) = sum_k c_k w^k is a sum of exponentials: He_k(x) = E[(x + i z)^k]."""
    order, x = node.atoms(HermiteOfOrder).pop().args
    w, z = Dummy("w"), Dummy("z", real=True)
    rest = node.function/HermiteOfOrder(order, x)
    if rest.has(HermiteOfOrder):
        return node
    value = expand(Sum(rest*w**order, *node.limits).doit())
    waves = [e for e in value.atoms(exp, cos, sin, cosh, sinh) if not e.args[0].diff(w).has(w)]
    if value.has(Sum) or not value.xreplace({e: Dummy() for e in waves}).is_polynomial(w):
        return node
    found = over(value.xreplace({w: x + I*z}), (z,)).doit()
    return node if found.has(Expectation) else found


def _over_orders(term: Expr, k: Symbol, first: int) -> Expr | None:
    """The sum of one term over the orders from the first on."""
    for delta in (d for d in term.atoms(KroneckerDelta) if d.has_free(k)):
        gap = delta.args[0] - delta.args[1]
        order = expand(k - gap*gap.coeff(k))   # of the coefficient 1 or -1
        if not order.is_Integer:
            return None
        return _at(term.xreplace({delta: S.One}), k, int(order)) if order >= first else S.Zero
    nodes: list[Expectation | None] = []
    coefficient = S.One
    for base, n in term.as_powers_dict().items():
        if isinstance(base, Expectation) and base.has_free(k):
            nodes += [base]*int(n) if n.is_Integer and 0 < n <= 2 else [None]
        else:
            coefficient *= base**n
    opened = [one for node in nodes if node is not None and (one := _projection(node, k)) is not None]
    if not 1 <= len(opened) <= 2 or len(opened) < len(nodes):
        return None
    shift = min(n for _, _, n in opened)   # the sum goes over the lowest order itself; those below 0 are nothing
    power = _power(coefficient.xreplace({k: k - shift}), k)
    given = [_at(term, k, i) for i in range(-shift, first)]   # the orders that are not summed over
    if power is None or any(one is None for one in [*given, *(_at(coefficient, k, i) for i in range(first, -shift))]):
        return None
    slope, rest = power
    z = Symbol("z", real=True)
    functions = [weak(f.xreplace({v: z}), z, n - shift) for f, v, n in opened]
    if not all(f.has(AppliedUndef) or exists_for_most(over(f**2, (z,))) for f in functions):
        return None
    parts = [factor*slope**n*_correlated([weak(f, z, n) for f in functions], z, slope) for n, factor in enumerate(rest)]
    return Add(*parts, *(-one for one in given if one is not None))


def _projection(node: Expectation, k: Symbol) -> tuple[Expr, Symbol, int] | None:
    """f, z and n of E[He_{k+n}(z) f(z)]."""
    body, variables = node.open()
    named = [f for f in Mul.make_args(body) if isinstance(f, HermiteOfOrder) and f.args[1] == variables[0]]
    if len(variables) > 1 or node.covariance[0, 0] != 1 or len(named) != 1:
        return None
    rest, n = body/named[0], named[0].args[0] - k
    return (rest, variables[0], int(n)) if n.is_Integer and not rest.has_free(k) else None


def _power(coefficient: Expr, k: Symbol) -> tuple[Expr, list[Expr]] | None:
    """t and a_n of t^k/k! sum_n a_n k(k - 1)...(k - n + 1)."""
    slope, polynomial = S.One, S.One
    for factor in Mul.make_args(powsimp(combsimp(coefficient*factorial(k)))):
        if isinstance(factor, Pow) and not factor.base.has_free(k) and factor.exp.is_polynomial(k) and factor.exp.has_free(k):
            rate = factor.exp.diff(k)
            if rate.has_free(k):
                return None
            slope, polynomial = slope*factor.base**rate, polynomial*factor.base**expand(factor.exp - rate*k)
        else:
            polynomial *= factor
    if not polynomial.is_polynomial(k) or (slope.is_number and not abs(slope) <= 1):
        return None
    found: list[Expr] = []
    left = Poly(polynomial, k)
    while left != 0:   # Newton's form, by division by k, k - 1, ...
        left, value = left.div(Poly(k - len(found), k))
        found.append(value.as_expr())
    return slope, found


def _correlated(functions: Sequence[Expr], z: Symbol, slope: Expr) -> Expr:
    """E[f(u) g(v)] of variables of that correlation; E[f(z + t)] of one function."""
    if len(functions) == 1:
        return over(functions[0].xreplace({z: z + slope}), (z,))
    one, other = functions
    if slope in (1, -1):
        return over(one*other.xreplace({z: slope*z}), (z,))
    u, v = Symbol("z1", real=True), Symbol("z2", real=True)
    return over(one.xreplace({z: u})*other.xreplace({z: v}), (u, v), [[1, slope], [slope, 1]])


def _at(term: Expr, k: Symbol, order: int) -> Expr | None:
    """A term of a sum at one order, if it has a value."""
    value = term.xreplace({k: Integer(order)})
    return None if value.has(zoo, nan, oo) else value
