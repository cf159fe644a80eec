"""E[f(u, v)] = E_u E_w[f(u, (C_vu/C_uu) u + sqrt(C_vv - C_vu^2/C_uu) w)]: correlated normals by conditioning.

The same factorisation v = L w puts every node over independent standard normals, and takes the mass of a Dirac delta:
E[delta(s z + m) f(z)] = phi(m/s) f(-m/s)/|s|.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    DiracDelta,
    Expr,
    Heaviside,
    ImmutableDenseMatrix,
    Matrix,
    Mul,
    Piecewise,
    S,
    Symbol,
    Tuple,
    cancel,
    exp,
    expand,
    pi,
    sign,
    sqrt,
    zeros,
)
from sympy.core.relational import Relational

from hermitex.errors import NoClosedForm
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.terms import linear, terms


def cholesky(covariance: Any) -> Matrix:
    """The lower triangular L with L L^T = C, symbols allowed; a semi-definite C gives zero columns.

    Examples
    --------
    >>> from sympy import Matrix
    >>> from hermitex.symbols import rho
    >>> cholesky(Matrix([[1, rho], [rho, 1]]))
    Matrix([
    [  1,                0],
    [rho, sqrt(1 - rho**2)]])
    """
    n = covariance.rows
    lower = zeros(n, n)
    for j in range(n):
        checkpoint("factorising a covariance")
        square = _short(covariance[j, j] - Add(*(lower[j, k]**2 for k in range(j))))
        lower[j, j] = sqrt(square)
        for i in range(j + 1, n):
            rest = _short(covariance[i, j] - Add(*(lower[i, k]*lower[j, k] for k in range(j))))
            lower[i, j] = S.Zero if lower[j, j] == 0 else rest/lower[j, j]
    return lower


def _short(expr: Expr) -> Expr:
    flat = expand(expr)
    return flat if flat.is_polynomial(*flat.free_symbols) or flat.count_ops() > 200 else cancel(flat)


def independent(node: Expectation) -> tuple[Expr, tuple[Symbol, ...]]:
    """The integrand over independent standard normals; a variable of variance s^2 becomes s times a standard one."""
    body, variables = node.open()
    if node.independent:
        return body, variables
    lower = cholesky(node.covariance)
    images = [Add(*(lower[i, k]*variables[k] for k in range(i + 1))) for i in range(len(variables))]
    return body.subs(dict(zip(variables, images, strict=True)), simultaneous=True), variables


def over(body: Expr, variables: Sequence[Symbol], covariance: Any = None) -> Expr:
    """The expectation over symbols that `open` gave (they keep their names); independent without a covariance."""
    kept = [i for i, v in enumerate(variables) if body.has_free(v)]
    if not kept:
        return body
    cov = None if covariance is None else ImmutableDenseMatrix(Matrix(covariance).extract(kept, kept))
    return Expectation(body, Tuple(*(variables[i] for i in kept)), cov)


def sift(node: Any) -> Expr | None:
    """Take the mass of the Dirac deltas of a node: E[delta(s z + m) f] = phi(m/s) f(-m/s)/|s|; None if there is none.

    Derivatives of delta are integrated by parts; in several variables the expectation over the others stays. A delta
    that sits on a jump of the rest, or whose argument is not affine, is left as it is; one at which a continuous factor of
    the rest vanishes has no mass.

    Examples
    --------
    >>> from sympy import cos
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> sift(E(DiracDelta(2*z)*cos(z), z))
    sqrt(2)/(4*sqrt(pi))
    """
    if not isinstance(node, Expectation) or not node.body.has(DiracDelta):
        return None
    body, variables = independent(node)
    kept = _massive(body, variables)
    parts, changed = [], kept != body
    for t in terms(kept, variables) if kept.has(DiracDelta) else ():
        rest = t.body(variables)
        value = _sift_product(rest, variables)
        changed = changed or value is not None
        parts.append(t.coefficient*(over(rest, variables) if value is None else value))
    return (Add(*parts) if parts else over(kept, variables)) if changed else None


def sifted(expr: Expr) -> Expr:
    """An expression with the masses of Dirac deltas taken in all its nodes, inner ones first.

    >>> from sympy import Heaviside
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> sifted(2*E((DiracDelta(z)*Abs(z) + Heaviside(z))**2, z))
    2*E(Heaviside(z)**2, z)
    """
    if not expr.has(DiracDelta):
        return expr
    return expr.replace(lambda e: isinstance(e, Expectation), lambda e: e if (found := sift(e)) is None else found)


def no_mass(expr: Expr) -> NoClosedForm:
    """Why a delta that `sifted` left has no value."""
    reason = ("a Dirac delta has no numeric form: it is integrated if its argument is linear in a normal "
              "and no other factor jumps there")
    return NoClosedForm(expr, reason, "Declare what is positive, Symbol('a', positive=True), or add the mass in its place")


def _massive(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """The integrand without the products of a delta and a continuous function that vanishes where it sits."""
    return body.replace(lambda e: isinstance(e, Mul) and any(isinstance(f, DiracDelta) for f in e.args),
                        lambda e: S.Zero if _massless(e, variables) else e)


def _massless(product: Mul, variables: Sequence[Symbol]) -> bool:
    """Does delta(s v + m) times bounded steps have a further factor that is continuous and 0 at v = -m/s?"""
    deltas = [f for f in product.args if isinstance(f, DiracDelta)]
    if len(deltas) > 1 or len(deltas[0].args) > 1:
        return False
    v, place = next(((v, at) for v in variables if (at := _place(deltas[0], v, variables)) is not None), (None, None))
    if v is None:
        return False
    rest = [f for f in product.args if f is not deltas[0] and not isinstance(f.as_base_exp()[0], sign | Heaviside)]
    return not jumps_at(Mul(*rest), v, place) and bool(Mul(*(f.subs(v, place) for f in rest)).is_zero)  # 0 times infinity is nan


def _place(delta: DiracDelta, v: Symbol, variables: Sequence[Symbol]) -> Expr | None:
    """The zero of the argument of a delta along v, if it is affine in v."""
    slope = delta.args[0].diff(v)
    return None if slope == 0 or slope.has_free(*variables) else expand(-delta.args[0].xreplace({v: S.Zero})/slope)


def _sift_product(body: Expr, variables: Sequence[Symbol]) -> Expr | None:
    deltas = [f for f in Mul.make_args(body) if isinstance(f, DiracDelta)]
    for delta in deltas:
        for v in variables:
            at = _place(delta, v, variables)
            value = None if at is None else _mass(delta, body/delta, v, at)
            if value is None:
                continue
            others = [u for u in variables if u != v]
            return sifted(linear(over(value, others)) if others else value)
    return None


def _mass(delta: DiracDelta, rest: Expr, v: Symbol, at: Expr) -> Expr | None:
    """int delta^(n)(s v + m) rest(v) phi(v) dv = (-1)^n (rest phi)^(n)(at) / (s^n |s|), at = -m/s."""
    order, slope = delta.args[1] if len(delta.args) > 1 else 0, delta.args[0].diff(v)
    density = exp(-v**2/2)/sqrt(2*pi)
    if jumps_at(rest, v, at):
        return None
    value = (rest*density).diff(v, order) if order else rest*density
    if order and jumps_at(value, v, at):  # the kink of an Abs or a Max
        return None
    there = value.subs(v, at)
    if there.has(S.NaN, S.ComplexInfinity, S.Infinity):  # |z|/z jumps at 0, too
        return None
    return (S.NegativeOne/slope)**order*there/_size(slope)


def _size(slope: Expr) -> Expr:
    """|s|; a square root is a standard deviation here and not negative."""
    if slope.is_Pow and slope.exp == S.Half:
        return slope
    return Mul(*map(_size, slope.args)) if slope.is_Mul else Abs(slope)


def jumps_at(expr: Expr, v: Symbol, at: Expr) -> bool:
    """True if a switch of `expr` changes over at v = at (its argument vanishes there, or cannot be told not to)."""
    switches = [e.args[0] for e in expr.atoms(sign, Heaviside, DiracDelta)]
    switches += [r.lhs - r.rhs for p in expr.atoms(Piecewise) for r in p.atoms(Relational)]
    return any(u.has_free(v) and expand(u.subs(v, at)).is_zero is not False for u in switches)
