"""E f -> its closed form, or nothing: which integrands are worth the exact engine, and in which letters they go to it.

    E f(r kappa + b + s z) is written as E f(D + s z): the part that the average leaves alone is one letter
"""

from __future__ import annotations

from sympy import Add, Dummy, Expr, Pow, Symbol, Tuple, cos, cot, erf, erfc, exp, hyper, log, sin, tan, tanh
from sympy.core.function import Application

from hermitex.errors import Divergent, HermitexError
from hermitex.kernels.printers import HYPERGEOMETRIC
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.formula_size import operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.moreau import Moreau, Prox

_HOPELESS = (tanh, tan, cot, Prox, Moreau)


def exact_or_none(node: Expr) -> Expr | None:
    """The closed form, if the engine has one within its bounds.

    Raises Divergent where the expectation provably does not exist.
    """
    from hermitex.symbolic.integrals import closed_form, constants_named  # equations without an average do without the engine

    short, constants = constants_named(node)
    seconds = 5.0  # of effort for one average, where quadrature takes milliseconds; chosen by trial
    try:
        with effort(seconds):
            found = closed_form(short).xreplace(constants)
    except Divergent as error:
        if constants:
            raise Divergent(error.integral.xreplace(constants), error.reason) from error
        raise
    except HermitexError:
        checkpoint("searching for a closed form")  # the budget around it is over, which is not an answer
        return None
    readable = all((len(h.ap), len(h.bq)) in HYPERGEOMETRIC for h in found.atoms(hyper))
    # operations of a closed form: a longer one costs more than nodes do, and Python cannot compile a sum of 400 terms
    longest = 3000
    return found if readable and operations(found) <= longest else None


def may_have_closed_form(body: Expr, variables: set[Symbol]) -> bool:
    """False where no rule will do: a quotient by a sum, tanh, exp(-Phi(z)^2), an implicit minimiser, a long formula, a quantile
    log(erfc(z)) in a function of another variable."""
    longest = 150  # operations of an integrand whose closed form is sought; chosen by trial
    if operations(body) > longest:
        return False

    def hopeless(e: Expr) -> bool:
        waves = isinstance(e, exp | sin | cos) and e.has(erf, erfc) and not e.has(log)
        quantile = len(e.free_symbols & variables) > 1 and any(g.has(erfc) for g in e.atoms(log))
        return waves or quantile or isinstance(e, _HOPELESS) or (
            isinstance(e, Pow) and isinstance(e.base, Add) and bool(e.exp.is_negative))

    return not any(hopeless(e) for e in body.atoms(Pow, Application) if e.free_symbols & variables)


def over_independent_normals(node: Expectation) -> Expectation:
    """The same expectation over independent standard normals: u = L z, L the Cholesky factor of the covariance."""
    if node.independent:
        return node
    body, fresh = node.open()
    factor = node.covariance.cholesky(hermitian=False)
    white = [Dummy(v.name, real=True) for v in fresh]
    body = body.xreplace({v: sum(factor[i, j] * white[j] for j in range(i + 1)) for i, v in enumerate(fresh)})
    return Expectation(body, Tuple(*white))
