"""E[f(z)] in closed form: the exact values of expectations, by the rules of `one_variable` and `several`.

`closed_form` answers or refuses with the reduced integral and the reason; `normal_form` goes as far as is exact and
writes the rest over canonical nodes, so that what is equal cancels.
"""

from __future__ import annotations

from typing import Any

from sympy import Abs, Add, Expr, Function, Max, Min, Mul, Pow, Symbol, preorder_traversal

from hermitex.errors import HermitexError, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.conditional_expectation import worked_out
from hermitex.symbolic.conditioning import sifted
from hermitex.symbolic.engine.node_integrals import answer, joined
from hermitex.symbolic.engine.one_variable import RULES
from hermitex.symbolic.engine.reduction import normal_form as reduce
from hermitex.symbolic.existence_check import settled
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.tails import tails
from hermitex.symbolic.undefined import slopes_done


def closed_form(expr: Expr) -> Expr:
    """The expression with every expectation in it replaced by its exact value.

    Parameters
    ----------
    expr : expression with E-nodes, nested as they may be.

    Returns
    -------
    Expr without a node, equal for all values of the parameters that their assumptions allow (symbols without
    assumptions are real).

    Raises
    ------
    NoClosedForm : carries the reduced integral and the reason. Divergent : the expectation does not exist.

    Guarantee
    ---------
    The result equals the average for all values that the assumptions allow, and is accurate in double precision. That a closed
    form is found is not promised. See docs/promise.md.

    Examples
    --------
    >>> from sympy import erf
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, kappa
    >>> closed_form(E(erf(z/2 + kappa), z))
    erf(sqrt(6)*kappa/3)
    >>> closed_form(E(z**3*abs(z + 1), z))
    -sqrt(2)*exp(-1/2)/sqrt(pi) + 3*erf(sqrt(2)/2)
    """
    expr = _read(expr)
    done = _replace(expr)
    if not done.has(Expectation):
        return tails(done)
    done = reduce(done)
    left = sorted(done.atoms(Expectation), key=lambda n: n.level)
    if left:
        raise NoClosedForm(left[0], _reason(left[0]))
    return tails(done)


def reason_of(node: Expr) -> str:
    """Why `closed_form` refuses a node, in one line; "" where it answers."""
    try:
        left = [n for n in _replace(_read(node)).atoms(Expectation) if reduce(n).has(Expectation)]
        return _reason(min(left, key=lambda n: n.level)) if left else ""
    except HermitexError as refused:
        return str(refused).splitlines()[0]
    return ""


def constants_named(node: Expr) -> tuple[Expr, dict[Symbol, Expr]]:
    """E f(r kappa + b + s z) as E f(D + s z): whatever the average does not touch is one letter for the exact engine."""
    if not isinstance(node, Expectation):  # a constant is its own average
        return node, {}
    letters: dict[Expr, Symbol] = {}
    body, variables = node.within()
    moving = set(variables)

    def letter(e: Expr) -> Expr:
        if e.is_Atom or e.is_number or not e.is_real:
            return e
        # sqrt(c), |c| and 2*c stay: their signs and powers may cancel against others.
        if not any(isinstance(p, Add | Function) and not isinstance(p, Abs) for p in preorder_traversal(e)):
            return e
        if e not in letters:
            # No user's name bears a prime; not a Dummy, so that the engine remembers its answers.
            letters[e] = Symbol(f"D{len(letters)}'", real=True, positive=True if e.is_positive else None)
        return letters[e]

    def named(e: Expr) -> Expr:
        if not e.free_symbols & moving:
            return letter(e)
        if isinstance(e, Add | Mul):
            stay = [a for a in e.args if not a.free_symbols & moving]
            return e.func(letter(e.func(*stay)), *(named(a) for a in e.args if a.free_symbols & moving))
        if isinstance(e, Pow | Function | Max | Min):
            return e.func(*map(named, e.args))
        return e

    short = named(body)
    if not letters:
        return node, {}
    return node.with_body(short, variables), {d: e for e, d in letters.items()}


def _read(expr: Any) -> Expr:
    return slopes_done(worked_out(hooks.formula(expr)))


def integrate_or_keep(node: Expr, deep: bool = True) -> Expr:
    """The exact value, or the node (with what is inside it done, if `deep`) where there is none.

    Raises
    ------
    Divergent : the expectation does not exist.
    """
    if not deep and isinstance(node, Expectation):
        found = answer(node)
        return node if found.rest else tails(found.value)
    return tails(_replace(_read(node)))


def normal_form(expr: Expr) -> Expr:
    """Closed forms put in; the rest over canonical irreducible nodes, so that equal parts cancel.

    See `hermitex.symbolic.engine.reduction`.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> normal_form(E(z*(tanh(z) - z*E(z*tanh(z), z)), z))
    0
    """
    return reduce(_read(expr))


def _replace(expr: Expr) -> Expr:
    """Inner nodes first; a node without closed form stays (its inside done)."""
    if not expr.args or not expr.has(Expectation):
        return expr
    if isinstance(expr, Expectation):
        if expr.body.has(Expectation):
            body, variables = expr.open()
            expr = expr.with_body(_replace(body), variables)
            if not isinstance(expr, Expectation):
                return expr
        found = answer(expr)
        if not found.rest:
            return found.value
        if (again := sifted(settled(expr))) != expr:
            return _replace(again)
        flat = joined(expr)
        done = expr if flat is None else _replace(flat)
        return expr if done.has(Expectation) else done
    return expr.func(*(_replace(a) for a in expr.args))


def _reason(node: Expectation) -> str:
    try:
        rest = answer(node).rest
    except HermitexError as no:
        return str(no)
    why = rest[0][1] if rest else "no rule applies"
    return f"{why} (tried {len(RULES)} rules)"
