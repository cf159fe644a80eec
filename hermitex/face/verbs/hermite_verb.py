"""hermitex hermite G --order N --basis B: g = sum_k c_k/k! He_k (monic) or sum_k c_k h_k (orthonormal)."""

from __future__ import annotations

import argparse
from typing import Any

from hermitex.face import cli, guard, output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("function", metavar="G", help="expression in z, or in z1, z2, ...")
    parser.add_argument("--order", type=int, required=True, metavar="N", help="highest (total) order")
    parser.add_argument("--basis", choices=("monic", "orthonormal"), required=True,
                        help="monic: c_k = E[g He_k]; orthonormal: c_k = E[g He_k]/sqrt(k!)")
    parser.add_argument("--digits", type=int, metavar="D", help="digits of the numeric values (default: 15)")
    parser.add_argument("--plot", metavar="F", help="draw the sizes of the coefficients (.pdf, .svg, .png)")


def run(args: argparse.Namespace) -> int:
    """Expand, and print the coefficients."""
    output.check_picture(args.plot)
    if args.order < 0:
        raise cli.BadInput(f"--order is 0 or more, not {args.order}")
    digits = output.digits(args.digits)
    from hermitex.symbolic.series.expansion import expand

    with guard.deadline(args.budget):
        expansion = expand(args.function, order=args.order, basis=args.basis)
        answer = _numbers(expansion.to_dict(digits), digits)
        output.picture(args.plot, expansion.plot_coefficients)
    from hermitex.show.tables import text_table

    rows = [[_index(c["order"]), _cell(c["exact"]), _cell(c["value"])] for c in answer["coefficients"]]
    norm = f"E[g^2] = {_cell(answer['norm'])}, beyond order {args.order}: {_cell(answer['tail'])}"
    return cli.answer(args, answer, lambda: f"{text_table(rows, ['order', 'exact', 'value'])}\n{norm}")


def _numbers(value: Any, digits: int) -> Any:
    """The same with every mpmath number as a JSON number of that many digits."""
    if isinstance(value, dict):
        return {k: _numbers(v, digits) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v, digits) for v in value]
    return output.number(value, digits) if hasattr(value, "_mpf_") else value


def _index(order: Any) -> str:
    return ",".join(map(str, order)) if isinstance(order, list | tuple) else str(order)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) and not output.is_number(value) else output.dumps(value)
