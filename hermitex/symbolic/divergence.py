"""What of an average grows only far beyond every window: in far terms of countable laws, and at letters that make it infinite.

    E exp(X^2/5000) of a geometric X,    E exp(t z^3) at t = 1/1000
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from sympy import (
    Abs,
    Add,
    Dummy,
    Eq,
    Expr,
    Heaviside,
    Interval,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    cos,
    cosh,
    erf,
    erfc,
    erfi,
    exp,
    expand_mul,
    factorial,
    gamma,
    log,
    oo,
    pi,
    sign,
    sin,
    sinh,
    tanh,
)
from sympy.functions.elementary.integers import RoundFunction
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from hermitex.errors import HermitexError, brief
from hermitex.symbolic.bounds.asymptotics import expand_at_infinity
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.bounds.line_existence import rays
from hermitex.symbolic.bounds.transseries import IncomparableScales
from hermitex.symbolic.budget import effort
from hermitex.symbolic.conditioning import independent
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Element, Index
from hermitex.symbolic.law_constraints import Condition
from hermitex.symbolic.special import LogFactorial

_FAR = 1000  # the first term of the remainder of a sum: before it an integral is not close to the sum


def masses(formula: Expr) -> set[ArraySum]:
    """The sums of probabilities by which averages over countable laws are divided."""
    return {p.base for p in formula.atoms(Pow) if isinstance(p.base, ArraySum)}


def infinite_far_out(body: Expr, variables: Sequence[Symbol], probabilities: set[ArraySum]) -> bool:
    """Is an average proved infinite by the far terms of the sums over countable laws in it? (False: not found to be.)

    Only exponentials other than the probabilities' own start so slowly that the summed terms do not show them.
    sum_n f(n), n > N, is about int_0^oo f(N + x^2/2) x dx, in which exp(x^2/2) brings one more normal.
    """
    if not _fast(body) - set().union(*map(_fast, probabilities)):
        return False
    continued = _continued(body, variables)
    return continued is not None and integrable(*continued) is False


def _continued(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, list[Symbol]] | None:
    """The far terms of the sums over countable laws, as an average over normals; None where they are not linear in the sums."""
    terms, normals, left = list[Expr](), list(variables), [[f] for f in Add.make_args(body)]
    while left:
        factors, todo = list[Expr](), left.pop()
        while todo:
            f = todo.pop()
            if isinstance(f, ArraySum) and f.index.endless and not _periodic(f):
                x = Dummy(f.index.name, real=True)
                normals.append(x)
                todo += Mul.make_args(x*exp(x**2/2)*f.body.xreplace({f.index: _FAR + x**2/2}))
            elif isinstance(f, Expectation):
                inner, more = independent(f)
                normals += more
                todo += Mul.make_args(inner)
            elif f.is_Mul:
                todo += f.args
            elif not f.has(ArraySum, Expectation):
                factors.append(f)
            elif not f.free_symbols.isdisjoint(normals):
                return None
        terms.append(Mul(*factors))
    return Add(*terms), normals


def needed_far_out(formula: Expr) -> list[Condition]:
    """What the letters of averages must satisfy for these to exist, where their exponentials outgrow exp(x^2/2) by a power.

    A function that grows as exp(a z^2), a > 1/2, is large at the end of every window; exp(z^3/1000) is not.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import m, z
    >>> [c.says for c in needed_far_out(E(exp(m*z**4), z))]
    ['E(exp(m*z**4), z) needs -m >= 0']
    """
    found: dict[Condition, None] = {}
    probabilities = set[Expr]().union(*map(_fast, masses(formula)))
    for node in formula.atoms(Expectation, ArraySum):
        if isinstance(node, ArraySum) and node.index.count:
            continue
        if node.free_symbols.isdisjoint(node.atoms(Bound, Index, Element)) and _steep(_fast(node) - probabilities):
            with suppress(HermitexError), effort(1.0):  # seconds; a condition is seen in a tenth of that
                found |= dict.fromkeys(c for c in _of_node(node) if not c.holds)
    return list(found)


def _of_node(node: Expectation | ArraySum) -> Iterator[Condition]:
    continued = _continued(node, ())
    if continued is None:
        return
    body, normals = continued
    if body.has(cosh, sinh):
        body = expand_mul(body.replace(lambda f: isinstance(f, cosh | sinh), lambda f: f.rewrite(exp)))
    for term in Add.make_args(body):
        for line, t in rays(term, normals):
            try:
                scale = expand_at_infinity(line, t).top
            except IncomparableScales:
                continue
            found = _falling([(power, rate) for (power, _), rate in (scale.exponents if scale else ())])
            if found.free_symbols:
                yield Condition(brief(node), found, Interval(0, oo))


def _falling(rates: Sequence[tuple[Expr, Expr]]) -> Expr:
    """-a_k, k the largest power above 2 whose a_k is not 0: negative where exp(sum a_k t^k) outgrows all exp(c t^2)."""
    found: Expr = S.Zero
    for power, rate in reversed(rates):
        if (power - 2).is_positive:
            size, letters = rate.as_coeff_Mul()
            here = -sign(size)*letters
            found = Piecewise((found, Eq(letters, 0)), (here, True)) if found != 0 else here
    return found


def _steep(exponentials: set[Expr]) -> bool:
    """Does an exponential with a letter hold more than squares of normals? The index of a sum is one."""
    exponents = [f.args[0] if not f.is_Pow or isinstance(f, exp) else f.exp for f in exponentials]
    return any(u.free_symbols - u.atoms(Bound, Index) and _degree(u) > 2 for u in exponents)


def _degree(u: Expr, logarithm: bool = False) -> Expr:
    """A power of the normals that u, or log|u|, grows no faster than; oo where none is known."""
    if not u.has(Bound, Index):
        return S.Zero
    if logarithm and isinstance(u, exp | erfc):
        return _degree(u.args[0])*(2 if isinstance(u, erfc) else 1)
    if u.is_Symbol:
        return S.Zero if logarithm else S(2 if isinstance(u, Index) else 1)
    if u.is_Pow and u.exp.is_Rational:
        return _degree(u.base, logarithm)*(1 if logarithm else Max(u.exp, 0))
    degrees = [_degree(a, logarithm) for a in u.args]
    if u.is_Mul and not logarithm:
        return Add(*degrees)
    if u.is_Add or u.is_Mul or isinstance(u, Max | Min | Abs | RoundFunction):
        return Max(*degrees)
    if isinstance(u, log):
        return _degree(u.args[0], logarithm=True)
    return S.Zero if isinstance(u, tanh | erf | erfc | sin | cos | sign | Heaviside) else oo


def _fast(e: Expr) -> set[Expr]:
    """What of an expression may grow as an exponential."""
    return {f for f in e.atoms(Pow, exp, cosh, sinh, erfi, gamma, factorial, LogFactorial) if not f.is_Pow or f.exp.free_symbols}


def _periodic(node: ArraySum) -> bool:
    """Does its summand turn with n, or go by steps, so that it may be something else between whole numbers?"""
    return any(f.has(node.index) for f in node.body.atoms(RoundFunction)) or any(
        f.has(node.index) and f.has(pi) for f in node.body.atoms(TrigonometricFunction))
