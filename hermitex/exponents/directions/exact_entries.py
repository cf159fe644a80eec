"""E[f] to double precision, after what rules give over single variables: numbers of directions.

An entry of a direction that is an integral without closed form is exact; a reader wants a number. Rules of
the Gaussian engine over one variable after the other take kinks away; what is left then is a kernel.
"""

from __future__ import annotations

from typing import Any

from sympy import Add, Basic, Dummy, Expr, Float, Mul, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.kernels.compile import compile
from hermitex.symbolic.budget import checkpoint, effort, kept
from hermitex.symbolic.digits.iterated_averages import whitened
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.precise import evaluate

_DIGITS = 17  # 17 digits determine a double


@kept(256)
def entry_number(x: Expr) -> float | None:
    """The value of an entry of a direction in double precision; None if it is not had within some seconds of work.

    Raises
    ------
    BudgetExceeded : the budget in force ran out.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> from sympy import Abs
    >>> f"{entry_number(1/E(z2**2*Abs(z1 + z2*z3), z1, z2, z3)):.12f}"
    '0.652964467126'
    """
    if not x.has(Expectation):
        return float(evaluate(x, _DIGITS))
    # of processor time, for one number: a whole answer should take ten
    seconds = 6.0
    try:
        with effort(seconds):
            nodes = x.atoms(Expectation)
            outer = [n for n in nodes if not any(other != n and other.has(n) for other in nodes)]
            values = {node: Float(_mean(node), _DIGITS) for node in outer}
            return float(evaluate(x.xreplace(values), _DIGITS))
    except BudgetExceeded:
        checkpoint("finding the number of a direction")
    except (HermitexError, ArithmeticError, NotImplementedError, RecursionError, TypeError, ValueError):
        pass  # no rule for such an integrand
    return None


def _mean(node: Expectation) -> Any:
    """E[f]: over single variables by rules as far as they go, then by quadrature."""
    f, variables = whitened(node)
    if f.has(Expectation):
        return evaluate(node, _DIGITS)
    while len(variables) > 1 and (less := _over_one(f, variables)) is not None:
        f = less
        variables = tuple(v for v in variables if f.has(v))
    if len(variables) > 1:
        return float(compile(E(f, *variables))())
    return evaluate(E(f, *variables) if variables else f, _DIGITS)


def _over_one(f: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """E[f | all but one] for a variable over which a rule gives it, or None."""
    seconds = 1.0  # of processor time, for one integral in closed form: quadrature takes less than a longer one, chosen by trial
    for v in variables:
        checkpoint("integrating over one variable")
        held: dict[Expr, Dummy] = {}
        try:
            with effort(seconds):
                inner = E(_hold_out_variable(f, v, set(variables), held), v).doit()
        except BudgetExceeded:
            checkpoint("integrating over one variable")
            continue
        except (HermitexError, NotImplementedError):
            continue
        if not inner.has(Expectation):
            return inner.xreplace({d: e for e, d in held.items()})
    return None


def _hold_out_variable(e: Basic, v: Symbol, inside: set[Symbol], held: dict[Expr, Dummy]) -> Any:
    """The expression with what does not hold v put into parameters, each as large as it can be: sign(z1 - z2 z3)."""
    if v not in e.free_symbols:
        return held.setdefault(e, Dummy("c", real=True)) if e.free_symbols & inside else e  # type: ignore[arg-type]
    if not isinstance(e, (Add, Mul)):
        return e.func(*(_hold_out_variable(a, v, inside, held) for a in e.args)) if e.args else e
    fixed = [a for a in e.args if v not in a.free_symbols and a.free_symbols & inside]
    rest = [a if v not in a.free_symbols else _hold_out_variable(a, v, inside, held) for a in e.args if a not in fixed]
    return e.func(*rest, *([held.setdefault(e.func(*fixed), Dummy("c", real=True))] if fixed else []))
