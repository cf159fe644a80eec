"""hermitex mu SIGMA: mu_k(kappa) = d^k/dm^k E sigma(m + sqrt(c) z) at m = r kappa, and the residual mu_star^2."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from hermitex.face import cli, guard, output
from hermitex.symbolic.budget import budget


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sigma", metavar="SIGMA", help="activation: a name (tanh, gelu, He3) or an expression in z")
    parser.add_argument("--order", type=int, default=1, metavar="K", help="mu_0 to mu_K (default: 1)")
    parser.add_argument("--r", metavar="R", help="scale of the spike (default for values: 1)")
    parser.add_argument("--c", metavar="C", help="variance of the bulk, positive (default for values: 1)")
    parser.add_argument("--kappa", metavar="K", help="evaluate there: 0.5 or 0,1,2 or -3:3:50")
    parser.add_argument("--plot", metavar="F", help="draw the coefficients over kappa (.pdf, .svg, .png)")


def run(args: argparse.Namespace) -> int:
    """Print the formulas, and their values where kappa is given."""
    if not 0 <= args.order <= 20:
        raise cli.BadInput(f"--order is between 0 and 20, not {args.order}")
    output.check_picture(args.plot)
    with guard.deadline(args.budget):
        answer = _answer(args)
        output.picture(args.plot, lambda: _drawn(args))
    return cli.answer(args, answer, lambda: _text(answer, [*(f"mu_{k}" for k in range(args.order + 1)), "mu_star_squared"]),
                      answer["notes"])


def _text(answer: dict[str, Any], names: list[str]) -> str:
    """The formulas, and a table of their values."""
    from hermitex.show.tables import text_table

    lines = [f"{name} = {output.plain(answer[name]) or 'no closed form'}" for name in names]
    if answer["kappa"] is not None:
        rows = zip(answer["kappa"], *(answer["values"][n] for n in names), strict=True)
        lines += ["", text_table([[f"{v:.12g}" for v in row] for row in rows], ["kappa", *names])]
    return "\n".join(lines)


def _drawn(args: argparse.Namespace) -> Any:
    """The coefficients over kappa, at r and c (default 1), on the same axes."""
    from hermitex.theories.conditional_coefficients import mu

    ax: Any = None
    at = output.given_numbers(args, "r", "c")
    for k in range(args.order + 1):
        ax = mu(args.sigma, k).plot(ax, label=rf"$\mu_{{{k}}}$", **at)
    ax.set_ylabel(r"$\mu_k$")
    return ax


def _answer(args: argparse.Namespace) -> dict[str, Any]:
    from hermitex.symbols import c, kappa, r, z

    points = output.grid(args.kappa, "kappa") if args.kappa is not None else None
    given = {s: _constant(text, name) for s, name, text in ((r, "r", args.r), (c, "c", args.c)) if text is not None}
    if c in given and not given[c].is_positive:
        raise cli.BadInput(f"--c is a variance, positive, not {args.c}")
    from hermitex.theories.conditional_coefficients import mu, mu_star

    formulas: dict[str, Any] = {f"mu_{k}": mu(args.sigma, k) for k in range(args.order + 1)}
    formulas["mu_star_squared"] = mu_star(args.sigma).squared
    notes: dict[str, list[str]] = {}  # reason -> the formulas that it holds for
    # A formula that takes too long to find leaves time for the numbers.
    with budget(args.budget/2):
        where = " with m = r*kappa, s = sqrt(c)"
        exact = {name: output.closed_or_none(partial(getattr, f, "expr"), name, notes, where) for name, f in formulas.items()}
    answer: dict[str, Any] = {"sigma": formulas["mu_0"].activation(z)}
    answer |= {name: None if e is None else e.subs(given) for name, e in exact.items()}
    at = {r: given.get(r, _constant("1", "r")), c: given.get(c, _constant("1", "c"))} if points else given
    answer |= {"r": at.get(r), "c": at.get(c), "kappa": None, "values": None}
    if points:
        if len(given) < 2:
            notes[f"values at r = {at[r]}, c = {at[c]}"] = []
        answer["kappa"] = [float(p) for p in points]
        answer["values"] = {name: _values(formula, exact[name], {**at, kappa: points})
                            for name, formula in formulas.items()}
    said = output.reasons(notes)
    if None in exact.values() and not points:
        said[-1] += "; for numbers add --kappa 0,1,2"
    return {**{k: _numeric(v) if k in ("r", "c") else v for k, v in answer.items()}, "notes": said}


def _values(formula: Any, exact: Any, at: dict[Any, Any]) -> list[float]:
    """From the closed form to 15 digits; where there is none, from one quadrature for all points."""
    from hermitex.symbols import c, kappa, r

    points = at[kappa]
    if exact is None:
        return list(formula([float(p) for p in points], r=float(at[r]), c=float(at[c])))
    from sympy import sympify

    from hermitex.symbolic.precise import evaluate

    return [float(evaluate(exact.subs({**at, kappa: sympify(p)}), digits=15)) for p in points]


def _constant(text: str, name: str) -> Any:
    from hermitex.symbolic.parsing import parse

    value = parse(text)
    if value.free_symbols:
        raise cli.BadInput(f"--{name} must be a number, not {text[:60]!r}")
    return value


def _numeric(value: Any) -> float | None:
    return None if value is None else float(value)
