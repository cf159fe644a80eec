"""E f -> its closed form, or nothing: which integrands are worth the exact engine, and in which letters it is asked.

    E f(r kappa + b + s z) is asked for as E f(D + s z): what the average does not touch is one letter
"""

from __future__ import annotations

from sympy import Add, Dummy, Expr, Function, Max, Min, Mul, Pow, Symbol, Tuple, hyper, preorder_traversal, tan, tanh

from hermitex.errors import Divergent, HermitexError
from hermitex.kernels.printers import HYPERGEOMETRIC
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.integrals import closed_form

_CLOSED_FORM_SECONDS = 5.0
_CLOSED_FORM_OPS = 150
_LONGEST = 3000  # operations of a closed form: one that is longer costs more than nodes do, and Python compiles no sum of 400 terms
_HOPELESS = (tanh, tan)


def exact_or_none(node: Expr) -> Expr | None:
    """The closed form, if the engine has one within its bounds.

    Raises Divergent where the expectation provably does not exist.
    """
    short, constants = _constants_named(node)
    try:
        with effort(_CLOSED_FORM_SECONDS):
            found = closed_form(short).xreplace(constants)
    except Divergent as error:
        if constants:
            raise Divergent(error.integral.xreplace(constants), error.reason) from error
        raise
    except HermitexError:
        checkpoint("searching for a closed form")  # the budget around it is over: that is no answer
        return None
    readable = all((len(h.ap), len(h.bq)) in HYPERGEOMETRIC for h in found.atoms(hyper))
    return found if readable and found.count_ops() <= _LONGEST else None


def _constants_named(node: Expr) -> tuple[Expr, dict[Symbol, Expr]]:
    """E f(r kappa + b + s z) as E f(D + s z): whatever the average does not touch is one letter for the exact engine."""
    if not isinstance(node, Expectation):  # a constant is its own average
        return node, {}
    letters: dict[Expr, Symbol] = {}
    body, variables = node.within()
    moving = set(variables)

    def letter(e: Expr) -> Expr:
        if e.is_Atom or e.is_number or not e.is_real:
            return e
        # sqrt(c) and 2*c stay: their signs and powers may cancel against others.
        if not any(isinstance(p, Add | Function) for p in preorder_traversal(e)):
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


def promising(body: Expr, variables: set[Symbol]) -> bool:
    """False for integrands that no rule will take: a quotient by a sum, tanh, a formula too long."""
    if body.count_ops() > _CLOSED_FORM_OPS:
        return False
    moving = [e for e in body.atoms(Pow, Function) if e.free_symbols & variables]
    return not any(isinstance(e, _HOPELESS) or (isinstance(e, Pow) and isinstance(e.base, Add) and e.exp.is_negative)
                   for e in moving)


def independent(node: Expectation) -> Expectation:
    """The same expectation over independent standard normals: u = L z, L the Cholesky factor of the covariance."""
    if node.independent:
        return node
    body, fresh = node.open()
    factor = node.covariance.cholesky(hermitian=False)
    white = [Dummy(v.name, real=True) for v in fresh]
    body = body.xreplace({v: sum(factor[i, j] * white[j] for j in range(i + 1)) for i, v in enumerate(fresh)})
    return Expectation(body, Tuple(*white))
