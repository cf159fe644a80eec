"""hermitex constants SIGMA...: mu_0 = E sigma(z), mu_1 = E[z sigma(z)], mu_star^2 = E[sigma(z)^2] - mu_0^2 - mu_1^2."""

from __future__ import annotations

import argparse
from contextlib import suppress
from functools import partial
from typing import Any

from hermitex.errors import Divergent
from hermitex.face import cli, guard, output
from hermitex.hints import Formula
from hermitex.symbolic.budget import DEFAULT_BUDGET, budget

NAMES = ("mu_0", "mu_1", "mu_star")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sigmas", nargs="+", metavar="SIGMA", help="activation: a name (tanh, gelu, He3) or an expression in z")
    parser.add_argument("--digits", type=int, metavar="D", help="significant digits of the values (default: 15)")


def run(args: argparse.Namespace) -> int:
    """Answer every activation; a failure is printed as a line on stderr and sets the exit status."""
    asked = output.digits(args.digits)
    answers: list[Any] = []
    status, several = cli.ANSWERED, len(args.sigmas) > 1
    for sigma in args.sigmas:
        about = sigma if len(sigma) <= 60 else f"{sigma[:57]}..."
        try:
            with guard.deadline(args.budget):
                answers.append(constants(sigma, asked, budget=args.budget))
        except Exception as error:
            answers.append(None)
            status = max(status, cli.report(error, about if several else ""))
            continue
        for note in answers[-1]["notes"]:
            cli.print_err(f"{about}: {note}" if several else note)
        if answers[-1]["digits"] < asked:
            cli.print_err(f"{about}: {answers[-1]['digits']} digits were reached, {asked} were asked")
            status = max(status, cli.FAILED)
    given = [(s, a) for s, a in zip(args.sigmas, answers, strict=True) if a is not None]
    if args.json and given:
        found = [None if a is None else _numbers(a, asked) for a in answers]
        print(output.dumps(found if several else found[0]))
    elif given:
        print(_table(given, asked))
    return status


def constants(sigma: Formula, digits: int = 15, *, budget: float | None = DEFAULT_BUDGET) -> dict[str, Any]:
    """The constants of random features: mu_0 = E sigma(z), mu_1 = E[z sigma(z)], mu_star^2 = E[sigma(z)^2] - mu_0^2 - mu_1^2.

    Parameters
    ----------
    sigma : activation: a name, a text or an expression in z, or a function of a SymPy symbol
    digits : significant digits of the values;  budget : seconds for the closed forms

    Returns
    -------
    {"sigma", "mu_0", "mu_1", "mu_star": closed forms or None, "values": {name: number}, "digits": reached, "notes"}

    Guarantee
    ---------
    The digits asked for, relative to each constant; an exact form equals the average. See docs/promise.md.

    Examples
    --------
    >>> found = constants("relu", 12)
    >>> found["mu_1"], round(float(found["values"]["mu_star"]), 12)
    (1/2, 0.301405137495)
    """
    from hermitex.symbols import z
    from hermitex.theories.conditional_coefficients import activation_of

    given, sigma = sigma, activation_of(sigma)
    if sigma.letters:
        raise cli.BadInput(f"{', '.join(map(str, sigma.letters))} in {str(given)[:60]!r} must be a number")
    half = None if budget is None else budget/2  # a formula that takes too long to find leaves time for the number
    exact, notes = _exact(sigma, half)
    values, reached = {}, []
    for name, node in _nodes(sigma).items():
        values[name], own = _value(node if exact[name] is None else exact[name], digits, name, notes)
        reached += [] if own is None else [own]
    return {"sigma": sigma(z), **exact, "values": values, "digits": min(reached), "notes": output.reasons(notes)}


def _nodes(sigma: Any) -> dict[str, Any]:
    """The constants by their definitions."""
    from sympy import sqrt

    from hermitex.symbolic.gaussian import E
    from hermitex.symbols import z

    mean, slope, second = (E(f, z) for f in (sigma(z), z*sigma(z), sigma(z)**2))
    return {"mu_0": mean, "mu_1": slope, "mu_star": sqrt(second - mean**2 - slope**2)}


def _exact(sigma: Any, seconds: float | None) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """({constant: closed form or None}, {reason: the constants that have none})."""
    from sympy import count_ops, expand, sqrt

    from hermitex.symbolic.integrals import closed_form

    exact: dict[str, Any] = dict.fromkeys(NAMES)
    notes: dict[str, list[str]] = {}
    with budget(seconds):
        for name, node in _nodes(sigma).items():
            with suppress(Divergent):  # its value says so
                root = name == "mu_star"
                found = output.closed_or_none(partial(closed_form, node**2 if root else node), name, notes)
                exact[name] = sqrt(min(found, expand(found), key=count_ops)) if root and found is not None else found
    return exact, notes


def _value(expr: Any, asked: int, name: str, notes: dict[str, list[str]]) -> tuple[Any, int | None]:
    """(number or None where it does not exist, digits reached)."""
    from hermitex.symbolic.precise import evaluate_with_error

    try:
        value, error = evaluate_with_error(expr, digits=asked)
    except Divergent as why:
        if name == "mu_0":  # without a mean there is nothing to answer
            raise
        notes.setdefault(f"does not exist: {why}", []).append(name)
        return None, None
    return value, output.digits_reached(value, error, asked)


def _numbers(answer: dict[str, Any], asked: int) -> dict[str, Any]:
    """The same with every value as a JSON number of that many digits."""
    values = {name: None if v is None else output.number(v, asked) for name, v in answer["values"].items()}
    return {**answer, "values": values}


def _table(given: list[tuple[str, dict[str, Any]]], asked: int) -> str:
    from hermitex.show.tables import text_table
    from hermitex.symbolic.arithmetic import mp

    rows = []
    for sigma, answer in given:
        for name in NAMES:
            value = answer["values"][name]
            round_number = answer[name] is not None and answer[name].is_Rational
            shown = None if value is None else mp.nstr(value, asked, strip_zeros=round_number)
            rows.append((sigma, name, output.plain(answer[name]), shown))
    return text_table(rows, ["activation", "constant", "exact", "value"], columns=None)
