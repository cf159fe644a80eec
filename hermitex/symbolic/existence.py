"""E f exists if E|f| is finite over all variables of the node at once; else the node is refused, whatever is asked of it.

Integrated one by one, the variables may hide it: E[z1/z2] is no number, though E_z1[z1/z2] = 0 for every z2.
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
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.integers import RoundFunction
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from hermitex.errors import Divergent, HermitexError, NoClosedForm, brief
from hermitex.symbolic import hooks
from hermitex.symbolic.bounds.asymptotics import expand_at_infinity
from hermitex.symbolic.bounds.existence import rays
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.bounds.quotients import without_bounded_quotients
from hermitex.symbolic.bounds.transseries import Undecided
from hermitex.symbolic.budget import kept
from hermitex.symbolic.conditioning import independent
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.lawful import Condition
from hermitex.symbolic.special import LogFactorial
from hermitex.symbolic.sums import ArraySum, Element, Index

_FAR = 1000  # the term of a sum from which on it is asked for: before it no integral tells what is summed


def require_existence(node: Expectation) -> None:
    """Raise `Divergent` where the average of |f| is known to be infinite.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2
    >>> require_existence(E(z1*z2, z1, z2))
    >>> require_existence(E(z1/z2, z1, z2))
    Traceback (most recent call last):
    ...
    hermitex.errors.Divergent: E(z1/z2, z1, z2) does not exist: the integrand is not absolutely integrable
    """
    if exists(node) is False:
        raise Divergent(node, "the integrand is not absolutely integrable")


def require_falling_terms(formula: Expr) -> None:
    """Raise `Divergent` where an average over a countable law in a formula is known to be infinite."""
    if not formula.has(ArraySum):
        return
    for average in formula.atoms(Expectation):
        if average.body.has(ArraySum) and not average.free_symbols:
            require_existence(average)
    masses = _masses(formula)
    for node in formula.atoms(ArraySum) - masses:
        if not node.free_symbols and _infinite_far_out(node, (), masses):
            raise Divergent(node, "its terms do not fall far out")


def exists(node: Expectation) -> bool | None:
    """Is the average of |f| finite? None where that is not known, as where inner nodes may cancel what would be infinite.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> exists(E((1 - 1/(1 + z**2))/z**2, z)), exists(E(1/(z**2 + z**4), z))
    (True, False)
    """
    found = exists_for_most(node)
    if found is not False or not any(a.has(Expectation) for a in node.args):
        return found
    try:
        again = settled(node)
        if not isinstance(again, Expectation):
            return None if again.has(Expectation) else True
        if any(len(n.bound) > 1 or n.body.has(Expectation) for n in again.body.atoms(Expectation)):
            return exists_for_most(again) or None  # a number of one over several variables takes seconds
        body, variables = independent(again)
        return integrable(body, variables)
    except HermitexError:
        return None


def exists_on_line(node: Expectation) -> bool | None:
    """The same for a node over one variable, of which inner nodes may depend.

    Raises
    ------
    NoClosedForm : whether it exists hangs on inner nodes, and they are not known to cancel, nor not to.
    """
    found = exists_for_most(node)
    if found is None:
        body, (x,) = node.opened()
        return integrable(body, x)
    found = found or exists(node)
    if found is None:
        raise NoClosedForm(node, "whether it exists hangs on averages inside it, which may cancel")
    return found


def settled(node: Expr) -> Expr:
    """The average with those inside it in their normal form, in which related ones meet and may cancel.

    Only where it hangs on them whether it exists; what exists for all their values stays as it is.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, z1
    >>> from sympy import tanh
    >>> settled(E((E(tanh(z1)**2) - 1 + E(z1*tanh(z1)))/z**2, z))
    0
    """
    if not isinstance(node, Expectation) or not node.body.has(Expectation) or exists_for_most(node) is True:
        return node
    body, variables = node.open()
    return node.with_body(hooks.normal_form(body), variables)


@kept(1024)
def exists_for_most(node: Expectation) -> bool | None:
    """The same with any numbers for the inner nodes: True holds for all of them, False not where they cancel."""
    if node.body.has(AppliedUndef) or any(n.free_symbols & set(node.bound) for n in node.body.atoms(Expectation)):
        return None
    try:
        body, variables = node.opened() if node.independent else independent(node)
        body = body.xreplace({n: Dummy(real=True) for n in body.atoms(Expectation)})
        if body.has(ArraySum):
            return False if _infinite_far_out(body, variables, _masses(body)) else None
        found = integrable(body, variables[0] if len(variables) == 1 else variables)
        if found is None and len(variables) > 1:  # z1^2/(z1^2 + z2^2) is bounded, though it has no value at 0
            rests = (without_bounded_quotients(t, variables) for t in Add.make_args(body))
            return all(integrable(g, variables) is True for g in rests) or None
        return found
    except HermitexError:
        return None


def _masses(formula: Expr) -> set[ArraySum]:
    """The sums of probabilities by which averages over countable laws are divided."""
    return {p.base for p in formula.atoms(Pow) if isinstance(p.base, ArraySum)}


def _infinite_far_out(body: Expr, variables: Sequence[Symbol], masses: set[ArraySum]) -> bool:
    """Is an average proved infinite by the far terms of the sums over countable laws in it? (False: not found to be.)

    Only exponentials beside those of the probabilities are slow enough at first not to show in the terms that are summed.
    sum_n f(n), n > N, is about int_0^oo f(N + x^2/2) x dx, in which exp(x^2/2) brings one more normal.
    """
    if not _fast(body) - set().union(*map(_fast, masses)):
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

    What grows as exp(a z^2), a > 1/2, is large at the end of every window; exp(z^3/1000) is not.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import m, z
    >>> [c.says for c in needed_far_out(E(exp(m*z**4), z))]
    ['E(exp(m*z**4), z) needs -m >= 0']
    """
    found: dict[Condition, None] = {}
    probabilities = set[Expr]().union(*map(_fast, _masses(formula)))
    for node in formula.atoms(Expectation, ArraySum):
        if node.free_symbols.isdisjoint(node.atoms(Bound, Index, Element)) and _steep(_fast(node) - probabilities):
            with suppress(HermitexError):
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
            except Undecided:
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
