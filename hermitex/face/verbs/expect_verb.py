"""hermitex expect EXPR: E[f(z)] over every z, z1, z2, ... in f, exact where a rule applies, else to D digits."""

from __future__ import annotations

import argparse
import re
from typing import Any

from hermitex.errors import AssumptionNeeded, BudgetExceeded, NoClosedForm, UnknownName
from hermitex.face import cli, guard, output
from hermitex.symbolic.budget import budget

_VALUE = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.+?)\s*\Z", re.ASCII)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("expression", metavar="EXPR", help="expression in z, or in z1, z2, ... and parameters")
    parser.add_argument("--let", default="", metavar="DECLARATIONS",
                        help='parameters: "mu, s>0" (declared), "s=1/2" (given its value)')
    parser.add_argument("--cov", default="", metavar="COVARIANCES",
                        help='covariances that are not the identity: "z1,z2=1/2; z1,z1=2"')
    parser.add_argument("--digits", type=int, metavar="D", help="significant digits of the value (default: 15)")


def run(args: argparse.Namespace) -> int:
    """Print the expectation; status 1 if fewer digits than asked were reached."""
    asked = output.digits(args.digits)
    with guard.deadline(args.budget):
        node = _node(args.expression, args.let, args.cov)
        with budget(args.budget/2):  # what takes too long to find exactly leaves time for the number
            exact = _exact(node)
        value, error, reached = _value(node if exact is None else exact, asked)
    found = {"expression": node, "exact": exact, "value": None if value is None else output.number(value, asked),
             "digits": reached, "error": None if error is None else float(error)}
    cli.answer(args, found, lambda: _sentence(node, exact, value, reached))
    if value is None and exact is None:
        cli.print_err(f"no closed form: {node.why()}; a number needs a value for each parameter: --let 's=1/2'")
    short = reached is not None and reached < asked
    if short:
        cli.print_err(f"{reached} digits were reached, {asked} were asked")
    return cli.FAILED if short else cli.ANSWERED


def _node(text: str, let: str, cov: str) -> Any:
    from hermitex.symbolic.gaussian import E
    from hermitex.symbolic.parsing import parse
    from hermitex.symbols import normals

    declared, values = _declarations(let)
    try:
        expr = parse(text, symbols=declared or None)
    except UnknownName as error:
        raise cli.declared_by_let(error) from None
    for name, value in values.items():
        expr = expr.subs({s: value for s in expr.free_symbols if s.name == name})
    covariance = _covariance(cov, declared, values)
    names = {name for pair in covariance for name in pair}
    chosen = sorted({s.name for s in normals(expr)} | names)
    return E(expr, *chosen, cov=covariance or None)


def _declarations(text: str) -> tuple[str, dict[str, Any]]:
    """("mu, s>0", {"s": 1/2}): what is declared, and the values of what is given one."""
    from hermitex.symbolic.parsing import parse

    declared, values = [], {}
    for part in filter(str.strip, text.split(",")):
        given = _VALUE.match(part)
        if given is None:
            declared.append(part.strip())
            continue
        name, value = given[1], parse(given[2])
        if value.free_symbols:
            raise cli.BadInput(f"--let: the value of {name} must be a number, not {given[2]}")
        values[name] = value
        # Its sign is known, and so may be used (sqrt(s) is real).
        declared.append(f"{name}>0" if value.is_positive else name)
    return ", ".join(declared), values


def _covariance(text: str, declared: str, values: dict[str, Any]) -> dict[tuple[str, str], Any]:
    from hermitex.symbolic.parsing import parse

    found = {}
    for pair, value in output.covariances(text).items():
        entry = parse(value, symbols=declared or None)
        found[pair] = entry.subs({s: values[s.name] for s in entry.free_symbols if s.name in values})
    return found


def _exact(node: Any) -> Any:
    from hermitex.symbolic.integrals import closed_form

    try:
        return closed_form(node)
    except NoClosedForm:
        return None
    except (AssumptionNeeded, BudgetExceeded):
        if node.free_symbols:
            raise
        return None


def _value(expr: Any, asked: int) -> tuple[Any, Any, int | None]:
    """(value, error, digits reached); nothing where a parameter has no value."""
    from hermitex.symbolic.precise import evaluate_with_error

    if expr.free_symbols:
        return None, None, None
    value, error = evaluate_with_error(expr, digits=asked)
    return value, error, output.digits_reached(value, error, asked)


def _sentence(node: Any, exact: Any, value: Any, reached: int | None) -> str:
    from hermitex.symbolic.arithmetic import mp

    parts = [output.plain(node)]
    if exact is not None and exact != node:
        parts.append(output.plain(exact))
    if value is not None and not (exact is not None and exact.is_Integer):
        parts.append(str(mp.nstr(value, max(reached or 1, 1))))
    return " = ".join(parts)
