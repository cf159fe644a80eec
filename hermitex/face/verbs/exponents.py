"""hermitex exponents TARGET...: information, leap and generative exponents, weak recovery, sample complexities."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from hermitex.face import cli, guard, output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="expression in z, or in z1, z2, ...")
    parser.add_argument("--channel", metavar="C", help="how the label is drawn: deterministic (default), gaussian:1/4, "
                        "flip:1/10, sign:1, random_sign, poisson, bernoulli, multiplicative")
    parser.add_argument("--variables", metavar="z1,z2", help="all variables, where a target does not use some")
    parser.add_argument("--explain", action="store_true", help="each number with its theorem, hypotheses, certificate")


def run(args: argparse.Namespace) -> int:
    """Answer every target; one that cannot be answered gets its line on stderr and makes the exit status."""
    answers: list[Any] = []
    status = cli.ANSWERED
    for target in args.targets:
        try:
            with guard.deadline(args.budget):
                answer = _answer(target, args)
                answers.append(answer.to_dict() if args.json else answer.explain() if args.explain else _row(answer))
        except Exception as error:
            answers.append(None)
            status = max(status, cli.report(error, _about(target) if len(args.targets) > 1 else ""))
    given = [a for a in answers if a is not None]
    if not given:
        return status
    if args.json:
        print(output.dumps(answers if len(args.targets) > 1 else answers[0]))
    elif args.explain:
        print("\n\n".join(given))
    else:
        from hermitex.show.tables import text_table

        print(text_table([list(row.values()) for row in given], list(given[0])))
    sys.stdout.flush()
    return status


def _answer(target: str, args: argparse.Namespace) -> Any:
    from hermitex.exponents.report import exponents

    variables = [v.strip() for v in args.variables.split(",")] if args.variables else None
    return exponents(target, channel=args.channel, variables=variables, budget=args.budget)


def _row(answer: Any) -> dict[str, str]:
    return dict(answer.table_row())


def _about(target: str) -> str:
    return target if len(target) <= 60 else f"{target[:57]}..."
