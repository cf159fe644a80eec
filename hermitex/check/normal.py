"""E[f(m + L z)] = E_v[f(m + v)], v ~ N(0, L C L^T): one form for all nodes that are equal by Stein, tower and rotation.

Expressions over undefined functions are brought to sum of coefficient * E_v[product of functions of m + v]: products
and nests of nodes become one node, powers of z are integrated by parts, and the arguments become the variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import permutations, product
from math import comb, prod
from typing import Any

import sympy
from sympy import (
    Add,
    DiracDelta,
    Dummy,
    Expr,
    ImmutableDenseMatrix,
    KroneckerDelta,
    Matrix,
    Mul,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    cancel,
    combsimp,
    diag,
    exp,
    expand,
    factorial,
    ilcm,
    together,
    zeros,
)
from sympy.core.function import AppliedUndef

from hermitex.check.orders import settled
from hermitex.check.rules import by_parts, everywhere, mehler, sift
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.conditioning import over
from hermitex.symbolic.existence_check import exists_for_most
from hermitex.symbolic.formula_size import EXPANDED, MANY, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.series.polynomials import HermiteOfOrder
from hermitex.symbolic.terms import terms, top_nodes
from hermitex.symbolic.undefined import tidy

_DEGREE = 10**4  # of polynomials in exponentials
_POWER = 10**5  # of exp(1/q), or of a letter; of several exp(1/q) together
_EXCHANGED = 4  # variables that are exchanged


def stein_form(expr: Expr) -> Expr:
    """A form in which Stein-equal expressions are the same expression.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, kappa, r
    >>> f = Function("f")
    >>> stein_form(E(z*f(kappa + r*z), z)/r) == stein_form(E(f(kappa - r*z), z).diff(kappa))
    True
    """
    expr = tidy(expr.replace(lambda e: isinstance(e, sympy.Derivative) and e.has(Expectation), lambda e: e.doit()))
    if expr.has(DiracDelta):
        expr = everywhere(sift, expr) or expr
    expr = settled(expr)
    tops = top_nodes(expr)
    names = {node: Dummy(f"n{i}", commutative=True) for i, node in enumerate(tops)}
    back = {v: k for k, v in names.items()}
    parts: dict[Expr, list[Expr]] = {}
    if is_long(expr.xreplace(names)):
        return expr
    for t in terms(expr.xreplace(names), tuple(back)):
        if t.core != 1:
            return expr  # a node inside a function: nothing is known of it
        nodes = [back[d] for d, n in zip(back, t.powers, strict=True) for _ in range(n)]
        open_ones = [n for n in nodes if n.has(AppliedUndef)]
        known = Mul(t.coefficient, *(_evaluated(n) for n in nodes if not n.has(AppliedUndef)))
        for coefficient, node in _merged(open_ones):
            parts.setdefault(node, []).append(known*coefficient)
    return _orders_met(Add(*(short(Add(*coefficients))*node for node, coefficients in parts.items())))


def _orders_met(form: Expr) -> Expr:
    """The rules of He_k once more, of the variables that the form has, with factorials as products."""
    return combsimp(settled(form)) if form.has(HermiteOfOrder, KroneckerDelta) else form


def short(expr: Expr) -> Expr:
    """Multiplied out, unless it has too many terms then; and over one denominator, if it is small."""
    if is_long(expr):
        return expr
    flat = expand(expr)
    if flat == 0 or flat.is_number or operations(flat) > EXPANDED or finely_graded(flat):
        return flat
    sums = {e: Dummy("s") for e in flat.atoms(Sum)}   # one of averages of undefined functions has no number, which SymPy asks for
    cancelled = cancel(together(flat.xreplace(sums))).xreplace({letter: e for e, letter in sums.items()})
    return cancelled if cancelled == 0 or cancelled.count_ops() < flat.count_ops() else flat


def is_long(expr: Expr) -> bool:
    """Has it too many terms to be multiplied out?"""
    return any(_terms_of(e) > MANY for e in expr.atoms(Add, Mul, Pow))


@lru_cache(maxsize=20000)
def _terms_of(expr: Expr) -> int:
    """How many terms it has multiplied out, before any meet; about, where there are very many."""
    if isinstance(expr, Add):
        return sum(map(_terms_of, expr.args))
    if isinstance(expr, Mul):
        return prod(map(_terms_of, expr.args))
    if isinstance(expr, Pow) and expr.exp.is_Integer:
        n, k = abs(int(expr.exp)), _terms_of(expr.base)
        return 1 if k == 1 else comb(n + min(k, MANY) - 1, min(n, MANY))
    return 1


def finely_graded(expr: Expr) -> bool:
    """Would exp(z/10^40) and exp(z) be powers of one letter, the one the 10^40-th of the other, or is exp(p/q) a high power?

    SymPy's gcd puts a number in for each letter, after the first one with as many digits as the powers of those before it have.
    """
    powers = [e for e in expr.atoms(exp, Pow) if e.exp.is_Rational]
    if max(prod(abs(e.exp.p) for e in powers if isinstance(e, exp)), *(abs(e.exp.p) for e in powers), 0) > _POWER:
        return True
    rates = [c for e in expr.atoms(exp, Pow) if e.exp.free_symbols for c in e.exp.atoms(Rational)]
    return bool(rates) and int(ilcm(1, *(c.q for c in rates)))*max(abs(c) for c in rates) > _DEGREE


def one_body(expr: Expr) -> tuple[Expr, tuple[Symbol, ...], ImmutableDenseMatrix] | None:
    """f, its variables and their covariance, of c_0 + c_1 E f_1 + ... = E f, if each E f_i exists; else None.

    >>> from sympy import sech, tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> one_body(E(tanh(z)**2, z) - 1 + E(sech(z)**2, z))[:2]
    (tanh(_z)**2 + sech(_z)**2 - 1, (_z,))
    """
    nodes = top_nodes(expr)
    if len({node.covariance for node in nodes}) != 1:
        return None
    variables = tuple(nodes[0].open()[1])
    bodies = {}
    for node in nodes:
        body, own = node.open()
        bodies[node] = body.xreplace(dict(zip(own, variables, strict=True)))
    names = {node: Dummy("n") for node in nodes}
    if is_long(expr.xreplace(names)):
        return None
    flat = expand(expr.xreplace(names))
    if any(flat.diff(a).has(*names.values()) for a in names.values()) or not all(
            node.has(AppliedUndef) or exists_for_most(node) for node in nodes):  # averages of an undefined f are taken to exist
        return None
    joined = flat.xreplace({names[node]: body for node, body in bodies.items()})
    return None if joined.has(Expectation) else (joined, variables, nodes[0].covariance)


def symmetrised(body: Expr, variables: Sequence[Symbol], covariance: ImmutableDenseMatrix,
                joined: Callable[[Expr], Expr] | None = None) -> Expr:
    """The sum of f(S z) over the exchanges and the changes of sign S that leave the law as it is: E f is 0 where that is.

    joined : how the summands are brought together (default: `short`)

    >>> from hermitex.symbols import z1, z2
    >>> symmetrised(z1**2/(z1**2 + z2**2) - Rational(1, 2), (z1, z2), ImmutableDenseMatrix([[1, 0], [0, 1]]))
    0
    """
    n = len(variables)
    if n > _EXCHANGED or operations(body) > EXPANDED//factorial(n) or body.has(sympy.Derivative, sympy.Subs):
        return body
    flips = [diag(*signs) for signs in product((1, -1), repeat=n)]
    exchanges = [Matrix(n, n, lambda i, j, order=order: int(j == order[i])) for order in permutations(range(n))]
    for group in (flips, exchanges):
        keep = [move for move in group if move*covariance*move.T == covariance]
        body = (joined or short)(Add(*(body.xreplace(dict(zip(variables, move*Matrix(variables), strict=True))) for move in keep)))
    return body


def _evaluated(node: Expectation) -> Expr:
    """The normal form; of p(u) g(v), by projection on v first."""
    from hermitex.symbolic.integrals import normal_form

    return normal_form(everywhere(mehler, node) or node)


def _merged(nodes: Sequence[Expectation]) -> list[tuple[Expr, Expr]]:
    """The product of nodes as sum of coefficient * canonical node (powers are independent copies)."""
    body: Expr = S.One
    variables: list[Symbol] = []
    blocks: list[Any] = []
    for node in nodes:
        inside, fresh = node.open()
        body, blocks = body*inside, [*blocks, node.covariance]
        variables += fresh
    if not nodes:
        return [(S.One, S.One)]
    return _flat(body, variables, ImmutableDenseMatrix(diag(*blocks)))


def _flat(body: Expr, variables: Sequence[Symbol], cov: ImmutableDenseMatrix) -> list[tuple[Expr, Expr]]:
    checkpoint("comparing expectations")
    inner = [n for n in top_nodes(body) if n.has(AppliedUndef) or n.has_free(*variables)]
    names = {node: Dummy("n") for node in inner}
    back = {v: k for k, v in names.items()}
    found = []
    for t in terms(body.xreplace(names), (*back, *variables)):
        powers, core = t.powers[len(back):], t.core
        nested = [back[d] for d, n in zip(back, t.powers, strict=False) for _ in range(n)]
        if core.has_free(*back):
            core, nested = core.xreplace(back), []
            core *= Mul(*(back[d]**n for d, n in zip(back, t.powers, strict=False)))
        if nested:
            wider, blocks, rest = list(variables), [cov], core
            for node in nested:
                inside, fresh = node.open()
                wider, blocks, rest = [*wider, *fresh], [*blocks, node.covariance], rest*inside
            rest *= Mul(*(v**n for v, n in zip(variables, powers, strict=True)))
            found += [(t.coefficient*c, n) for c, n in _flat(rest, wider, ImmutableDenseMatrix(diag(*blocks)))]
            continue
        for factor, reduced in by_parts(powers, core, variables, cov):
            c, node = _over_arguments(reduced, variables, cov)
            found.append((t.coefficient*factor*c, node))
    return found


def _over_arguments(core: Expr, variables: Sequence[Symbol], cov: ImmutableDenseMatrix) -> tuple[Expr, Expr]:
    """(coefficient, node): the affine arguments of the functions become the variables, in an order of their own."""
    constant, core = core.as_independent(*variables, as_Add=False)
    if not core.has_free(*variables):
        return constant*core, S.One
    if core.has(sympy.Derivative, sympy.Subs):  # a derivative is taken by a letter, which must keep its name
        return constant, over(core, variables, cov)
    forms: list[Expr] = []
    slots: list[Symbol] = []

    def walk(e: Any) -> Any:
        if not e.has_free(*variables):
            return e
        if isinstance(e, Expr) and e.is_polynomial(*variables) and all(not e.diff(v).has_free(*variables) for v in variables):
            mean = e.subs(dict.fromkeys(variables, 0))
            form = expand(e - mean)
            for known, slot in zip(forms, slots, strict=True):
                if _covariance(known - form, known - form, variables, cov) == 0:
                    return mean + slot
            forms.append(form)
            slots.append(Dummy(f"v{len(slots) + 1}", real=True))
            return mean + slots[-1]
        return e.func(*(walk(a) for a in e.args))

    body = walk(core)
    matrix = zeros(len(forms), len(forms))
    for i, a in enumerate(forms):
        for j, b in enumerate(forms):
            matrix[i, j] = _covariance(a, b, variables, cov)
    return constant, _ordered(body, slots, matrix)


def _covariance(a: Expr, b: Expr, variables: Sequence[Symbol], cov: ImmutableDenseMatrix) -> Expr:
    left, right = [a.diff(v) for v in variables], [b.diff(v) for v in variables]
    pairs = product(range(len(variables)), repeat=2)
    return short(Add(*(left[i]*cov[i, j]*right[j] for i, j in pairs)))


def _ordered(body: Expr, slots: list[Symbol], matrix: Any) -> Expr:
    """The node with its variables in an order that depends on the functions alone."""
    this, other = Symbol("this"), Symbol("other")
    role = [str(body.xreplace({s: this if s is t else other for s in slots})) for t in slots]
    ranks = sorted(set(role))
    groups = [[i for i, r in enumerate(role) if r == rank] for rank in ranks]
    candidates = []
    for choice in product(*(permutations(g) for g in groups)):
        order = [i for group in choice for i in group]
        names = {slots[i]: Dummy(f"z{n + 1}" if len(order) > 1 else "z", real=True) for n, i in enumerate(order)}
        fresh = [names[slots[i]] for i in order]
        candidates.append(over(body.xreplace(names), fresh, matrix.extract(order, order)))
        if len(candidates) >= 24:  # more alike functions than that: one of the orders, proof may be missed
            break
    return min(candidates, key=lambda n: str(n.args)) if candidates else body
