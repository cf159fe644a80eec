"""E[f] = sum_i f(h i) phi(h i) h^r to double precision, after what rules give over single variables: numbers of directions.

An entry of a direction that is an integral without closed form is exact as it stands; who reads it wants a number. Of a
smooth f the trapezoid rule on the whole space converges faster than any power of h; where it does not, a variable is
integrated by the rules of the Gaussian engine first, which takes kinks away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Add, Basic, Dummy, Expr, Float, Mul, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.laws.density import array_function
from hermitex.symbolic.budget import checkpoint, effort, kept
from hermitex.symbolic.digits.panels import whitened
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.precise import evaluate

_DIGITS = 17
_FAR = 12.0           # where a standard normal is given up
_POINTS = 2_000_000
_AGREE = 1e-12        # two grids, against the sum of moduli
_SECONDS = 6.0        # of processor time, of one number
_RULE = 1.0           # and of one integral in closed form


@kept(256)
def number(x: Expr) -> float | None:
    """The value of an entry of a direction in double precision; None if it is not had within some seconds of work.

    Raises
    ------
    BudgetExceeded : the budget in force ran out.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> from sympy import Abs
    >>> f"{number(1/E(z2**2*Abs(z1 + z2*z3), z1, z2, z3)):.12f}"
    '0.652964467126'
    """
    if not x.has(Expectation):
        return float(evaluate(x, _DIGITS))
    try:
        with effort(_SECONDS):
            values = {node: Float(_mean(node), _DIGITS) for node in x.atoms(Expectation) if not _inside(node, x)}
            return float(evaluate(x.xreplace(values), _DIGITS))
    except BudgetExceeded:
        checkpoint("finding the number of a direction")
    except (HermitexError, ArithmeticError, NotImplementedError, RecursionError, TypeError, ValueError):
        pass  # no rule for such an integrand
    return None


def _inside(node: Expectation, x: Expr) -> bool:
    """Does it stand within another one?"""
    return any(other != node and other.has(node) for other in x.atoms(Expectation))


def _mean(node: Expectation) -> Any:
    """E[f]: over single variables by rules, then by a grid, else by panels."""
    f, variables = whitened(node)
    if f.has(Expectation):
        return evaluate(node, _DIGITS)
    while len(variables) > 1:
        value = _by_grid(f, variables)
        if value is not None:
            return value
        less = _over_one(f, variables)
        if less is None:
            break
        f = less
        variables = tuple(v for v in variables if f.has(v))
    return evaluate(E(f, *variables) if variables else f, _DIGITS)


def _over_one(f: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """E[f | all but one] for a variable over which a rule gives it, or None."""
    for v in variables:
        checkpoint("integrating over one variable")
        held: dict[Expr, Dummy] = {}
        try:
            with effort(_RULE):
                inner = E(_holding(f, v, set(variables), held), v).doit()
        except BudgetExceeded:
            checkpoint("integrating over one variable")
            continue
        except (HermitexError, NotImplementedError):
            continue
        if not inner.has(Expectation):
            return inner.xreplace({d: e for e, d in held.items()})
    return None


def _holding(e: Basic, v: Symbol, inside: set[Symbol], held: dict[Expr, Dummy]) -> Any:
    """The expression with what does not hold v put into parameters, each as large as it can be: sign(z1 - z2 z3)."""
    if v not in e.free_symbols:
        return held.setdefault(e, Dummy("c", real=True)) if e.free_symbols & inside else e  # type: ignore[arg-type]
    if not isinstance(e, (Add, Mul)):
        return e.func(*(_holding(a, v, inside, held) for a in e.args)) if e.args else e
    fixed = [a for a in e.args if v not in a.free_symbols and a.free_symbols & inside]
    rest = [a if v not in a.free_symbols else _holding(a, v, inside, held) for a in e.args if a not in fixed]
    return e.func(*rest, *([held.setdefault(e.func(*fixed), Dummy("c", real=True))] if fixed else []))


def _by_grid(f: Expr, variables: tuple[Symbol, ...]) -> float | None:
    """The trapezoid rule, its step halved until two agree; None if they do not, or if f counts where the grid ends."""
    of, last = array_function(f, *variables), None
    n = 24
    while (2*n + 1)**len(variables) <= _POINTS:
        checkpoint("summing over a grid")
        x = np.linspace(-_FAR, _FAR, 2*n + 1)
        grid = np.meshgrid(*[x]*len(variables), indexing="ij", sparse=True)
        weight = np.exp(-sum(g*g for g in grid)/2)*(x[1] - x[0])**len(variables)/(2*np.pi)**(len(variables)/2)
        terms = np.where(weight > 0, of(*grid), 0.0)*weight
        if not np.isfinite(terms).all():
            return None
        size, edge = np.abs(terms).sum(), max(np.abs(np.moveaxis(terms, i, 0)[[0, -1]]).max() for i in range(len(variables)))
        value = float(terms.sum())
        if edge*terms.size > _AGREE*size:
            return None
        if last is not None and abs(value - last) <= _AGREE*size:
            return value
        last, n = value, 2*n
    return None
