"""Formulas: SymPy, mpmath and flint in, SymPy out; no NumPy, no float64.

The floors, each using any before it: budget, special -> node (gaussian) -> line (breaks, pieces) -> growth (bounds)
-> closed forms (engine, integrals) -> digits, zero -> text -> series. A question of a lower floor to a higher one
is a hook, filled here: whoever imports a floor alone, or unpickles a node in another process, passes through here first.
"""

from __future__ import annotations

from typing import Any

from hermitex.symbolic import hooks


def _parse(text: str, symbols: Any = None, letters: bool = False) -> Any:
    from hermitex.symbolic.parsing import parse, parse_with_letters

    return parse_with_letters(text, symbols) if letters else parse(text, symbols=symbols)


def _formula(x: Any) -> Any:
    from hermitex.symbolic.parsing import formula

    return formula(x)


def _expression(x: Any) -> Any:
    from hermitex.symbolic.parsing import expression

    return expression(x)


def _differentiate(node: Any, symbol: Any) -> Any:
    from hermitex.symbolic.stein import differentiate_under

    return differentiate_under(node, symbol)


def _integrate(node: Any, deep: bool = True) -> Any:
    from hermitex.symbolic.integrals import integrate_or_keep

    return integrate_or_keep(node, deep=deep)


def _reason(node: Any) -> str:
    from hermitex.symbolic.integrals import reason_of

    return reason_of(node)


def _evaluate(node: Any, prec: int) -> Any:
    from hermitex.symbolic.precise import evaluate_to_precision

    return evaluate_to_precision(node, prec)


def _total(node: Any, digits: int) -> Any:
    from hermitex.check.countable import total

    return total(node, digits)


def _measure(expr: Any) -> tuple[Any, Any]:
    from hermitex.symbolic.precise import evaluate_with_error

    return evaluate_with_error(expr, 15, against_cancellation=60)


def _normal_form(expr: Any) -> Any:
    from hermitex.symbolic.integrals import normal_form

    return normal_form(expr)


def _numeric(expr: Any, variables: Any) -> Any:
    from hermitex.numbers.program import Program

    return Program(expr, variables).digits


def _conditional(expr: Any, variables: Any, condition: Any, cov: Any) -> Any:
    from hermitex.symbolic.conditional_expectation import conditional

    return conditional(expr, variables, condition, cov)


hooks.parse, hooks.formula, hooks.expression = _parse, _formula, _expression
hooks.differentiate, hooks.integrate, hooks.reason, hooks.evaluate = _differentiate, _integrate, _reason, _evaluate
hooks.total, hooks.conditional = _total, _conditional
hooks.measure, hooks.normal_form, hooks.numeric = _measure, _normal_form, _numeric
