"""E[z_i f(z)] = sum_j C_ij E[d_j f(z)]: the rules of the Gaussian calculus, each from one node to an expression.

A rule returns the rewritten node, or None where it does not apply; the derivatives are weak ones (sign' = 2 delta).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sympy import Add, Expr, Rational, S, Symbol

from hermitex.errors import NoClosedForm
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.conditioning import over, sifted
from hermitex.symbolic.conditioning import sift as sift
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.series.polynomials import He, index_factorial, to_hermite
from hermitex.symbolic.terms import by_core, linear, terms
from hermitex.symbolic.undefined import tidy

Rule = Callable[[Any], Expr | None]

# rule -> the key of its source in references.bib
SOURCES = {"Stein": "stein1981", "Hermite": "stein1981", "Price": "price1958", "Isserlis": "isserlis1918",
           "Mehler": "mehler1866"}


def weak(expr: Expr, x: Symbol, times: int = 1) -> Expr:
    """Return the weak derivative; f' of an undefined f becomes a function of its own."""
    from hermitex.symbolic.weak import weak_derivative

    for _ in range(times):
        expr = tidy(weak_derivative(expr, x))
    return expr


def linearity(node: Any) -> Expr | None:
    """E[a f + b g] = a E[f] + b E[g]."""
    after = linear(node)
    return None if after == node else after


def stein(node: Any) -> Expr | None:
    """E[z_i f(z)] = sum_j C_ij E[d_j f(z)], until every polynomial in front of a function is gone.

    So E[He_k(z) f(m + s z)] = s^k E[f^(k)(m + s z)]. Polynomials without a function in them are left to `isserlis`.

    Examples
    --------
    >>> from sympy import Function, tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, z1, z2, rho, kappa, r
    >>> f, g = Function("f"), Function("g")
    >>> stein(E(z*f(kappa + r*z), z))
    r*E(f'(kappa + r*z), z)
    >>> stein(E(z1*f(z1)*g(z2), z1, z2, cov={(z1, z2): rho}))
    rho*E(f(z1)*g'(z2), z1, z2, cov={(z1, z2): rho}) + E(g(z2)*f'(z1), z1, z2, cov={(z1, z2): rho})
    """
    if not isinstance(node, Expectation):
        return None
    body, variables = node.open()
    parts, changed = [], False
    for t in terms(body, variables):
        if t.core == 1 or not any(t.powers):
            parts.append(t.coefficient*node.with_body(t.body(variables), variables))
            continue
        changed = True
        reduced = by_parts(t.powers, t.core, variables, node.covariance)
        parts.append(t.coefficient*Add(*(c*_integrated(node.with_body(f, variables)) for c, f in reduced)))
    return Add(*parts) if changed else None


def _integrated(node: Any) -> Expr:
    """Constants out of the node; then the mass of a delta, where a jump was differentiated."""
    return sifted(linear(node))


def by_parts(powers: tuple[int, ...], core: Expr, variables: Sequence[Symbol], cov: Any) -> list[tuple[Expr, Expr]]:
    """E[z^p f] as sum of coefficient * E[derivative of f]: pairs (coefficient, derivative)."""
    derivative = cache(lambda f, j: weak(f, variables[j]))
    done: dict[Expr, Expr] = {}
    waiting: dict[tuple[tuple[int, ...], Expr], Expr] = {(powers, core): S.One}
    while waiting:
        checkpoint("integrating by parts")
        # Highest powers first, so that everything that leads to the same remainder is added up before it is expanded.
        key = max(waiting, key=lambda k: sum(k[0]))
        factor, (p, f) = waiting.pop(key), key
        if not any(p):
            done[f] = done.get(f, S.Zero) + factor
            continue
        i = next(n for n, k in enumerate(p) if k)
        left = tuple(k - (n == i) for n, k in enumerate(p))
        for j in range(len(variables)):
            if cov[i, j] == 0:
                continue
            if left[j]:
                lower = (tuple(k - (n == j) for n, k in enumerate(left)), f)
                waiting[lower] = waiting.get(lower, S.Zero) + factor*cov[i, j]*left[j]
            slope = derivative(f, j)
            if slope != 0:
                waiting[left, slope] = waiting.get((left, slope), S.Zero) + factor*cov[i, j]
    return [(c, f) for f, c in done.items() if c != 0]


def hermite(node: Any) -> Expr | None:
    """E[He_k(z) f(z)] = E[f^(k)(z)], and E[p(z) f] = sum_k p_k E[f^(k)] for p = sum p_k He_k; z standard.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> hermite(E((z**2 - 1)*Function("f")(z), z))
    E(f''(z), z)
    """
    if not isinstance(node, Expectation) or len(node.bound) > 1 or not node.independent:
        return None
    body, (v,) = node.open()
    parts, changed = [], False
    for core, polynomial in by_core(body, (v,)).items():
        if core == 1 or not polynomial.has_free(v):
            parts.append(linear(node.with_body(polynomial*core, (v,))))
            continue
        changed = True
        derivative, order = core, 0
        for k, p in sorted(_in_one(polynomial, v).items()):
            derivative, order = weak(derivative, v, k - order), k
            parts.append(p*_integrated(node.with_body(derivative, (v,))))
    return Add(*parts) if changed else None


def isserlis(node: Any) -> Expr | None:
    """E[z_i z_j z_k z_l] = C_ij C_kl + C_ik C_jl + C_il C_jk, and so on: the sum over pairings.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2, rho
    >>> isserlis(E(z1**2*z2**2, z1, z2, cov={(z1, z2): rho}))
    2*rho**2 + 1
    """
    if not isinstance(node, Expectation):
        return None
    body, variables = node.open()
    cov = node.covariance
    split = terms(body, variables)
    if not any(t.core == 1 for t in split):
        return None

    @cache
    def moment(p: tuple[int, ...]) -> Expr:
        checkpoint("summing over pairings")
        if sum(p) % 2:
            return S.Zero
        i = next((n for n, k in enumerate(p) if k), None)
        if i is None:
            return S.One
        left = tuple(k - (n == i) for n, k in enumerate(p))
        return Add(*(cov[i, j]*left[j]*moment(tuple(k - (n == j) for n, k in enumerate(left)))
                     for j in range(len(p)) if left[j] and cov[i, j] != 0)).expand()

    rest = (t.coefficient*node.with_body(t.body(variables), variables) for t in split if t.core != 1)
    return Add(*(t.coefficient*moment(t.powers) for t in split if t.core == 1), *rest)


def mehler(node: Any) -> Expr | None:
    """E[He_k(u) g(v)] = rho^k E[He_k(v) g(v)], so E[He_j(u) He_k(v)] = delta_jk k! rho^k; u, v of unit variance.

    Applies to a product p(u) g(v) with p a polynomial.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2, rho
    >>> mehler(E(He(2, z1)*He(2, z2), z1, z2, cov={(z1, z2): rho}))
    2*rho**2
    >>> mehler(E(z1*tanh(z2), z1, z2, cov={(z1, z2): rho}))
    rho*E(z2*tanh(z2), z2)
    """
    if not isinstance(node, Expectation) or len(node.bound) != 2:
        return None
    body, (u, v) = node.open()
    cov = node.covariance
    if cov[0, 0] != 1 or cov[1, 1] != 1 or body.is_Add:
        return None
    for a, b in ((u, v), (v, u)):
        rest, p = body.as_independent(a, as_Add=False)
        if p.is_polynomial(a) and not p.has_free(b) and p.has_free(a):
            return Add(*(c*_projected(rest, b, k)*cov[0, 1]**k for k, c in _in_one(p, a).items()))
    return None


def _projected(rest: Expr, v: Symbol, k: int) -> Expr:
    """E[He_k(v) g(v)], a polynomial g by orthogonality."""
    if rest.is_polynomial(v):
        return _in_one(rest, v).get(k, S.Zero)*index_factorial(k)
    return over(rest*He(k, v), (v,))


def _in_one(polynomial: Expr, v: Symbol) -> dict[int, Expr]:
    return {k: p for k, p in to_hermite(polynomial, v).items() if isinstance(k, int)}


def price(node: Any, symbol: Symbol) -> Expr | None:
    """d/ds E[f] = sum_{i<j} C_ij' E[d_i d_j f] + 1/2 sum_i C_ii' E[d_i^2 f]; None if s is in no covariance.

    So d/drho E[f(u) g(v)] = E[f'(u) g'(v)].

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2, rho
    >>> f, g = Function("f"), Function("g")
    >>> price(E(f(z1)*g(z2), z1, z2, cov={(z1, z2): rho}), rho)
    E(f'(z1)*g'(z2), z1, z2, cov={(z1, z2): rho})
    """
    if not isinstance(node, Expectation) or node.independent or not node.covariance.has_free(symbol):
        return None
    body, variables = node.open()
    parts = []
    for i in range(len(variables)):
        for j in range(i, len(variables)):
            slope = node.covariance[i, j].diff(symbol)
            if slope != 0:
                second = weak(weak(body, variables[i]), variables[j])
                parts.append((Rational(1, 2) if i == j else 1)*slope*_integrated(node.with_body(second, variables)))
    return Add(*parts)


def closed(node: Any) -> Expr | None:
    """The exact value, where `integrals` has one."""
    from hermitex.symbolic.integrals import closed_form

    try:
        return closed_form(node) if isinstance(node, Expectation) else None
    except NoClosedForm:
        return None


def everywhere(rule: Rule, expr: Expr) -> Expr | None:
    """The rule applied to every node of an expression, inner ones first; None if it applies to none."""
    after = expr.replace(lambda e: isinstance(e, Expectation), lambda e: _or_same(rule(e), e))
    return None if after == expr else after


def _or_same(after: Expr | None, before: Expr) -> Expr:
    return before if after is None else after
