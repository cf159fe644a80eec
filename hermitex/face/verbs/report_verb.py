"""hermitex report --sigma S --target G -o FILE: the sheet of a model, .html, .ipynb, .md or .tex by the file's ending."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from hermitex.face import cli, output

EXPERIMENTS = True


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("--sigma", required=True, metavar="S", help="activation: a name (tanh) or an expression in z; several: relu,tanh")
    add("--target", required=True, metavar="G", help="target: a name (sin) or an expression in z, or in z1, z2, ...")
    add("-o", "--output", metavar="FILE", help="where the sheet is written; its ending says how: .html, .ipynb, .md, .tex")
    add("--channel", metavar="C", help="law of the label given g(z): gaussian:V is noise of variance V in every part, "
        "any other (flip:1/10) is for the exponents and coefficients alone")
    add("--alpha", metavar="A", help="samples n/d of the learning curve: 0.2,0.9,3 or 0.2:3:50 (default: 0.1:5:50)")
    add("--alpha0", metavar="A", help="batch of the gradient step, n/d; inf is allowed (default: 5)")
    add("--eta", metavar="H", help="rate of the gradient step over d (default: 1)")
    add("--beta", metavar="B", help="width p/d (default: 1)")
    add("--lam", metavar="L", help="ridge (default: 0.1)")
    add("--Delta", metavar="D", help="variance of the label noise (default: 0)")
    add("--interactive", action="store_true", help="with sliders for the ridge, the rate and the noise (.html)")
    add("--simulate", action="store_true", help="also train networks, about a minute for each activation")
    add("--simulate-dimension", metavar="d", help="of the experiment (default: by cost)")
    add("--seeds", type=int, metavar="K", help="of the experiment (default: 16)")


def run(args: argparse.Namespace) -> int:
    """Compose the sheet, write it, and say which parts do not apply."""
    if args.output is None and not args.json:
        raise cli.BadInput("-o FILE is needed; its ending says how the sheet is written: .html, .ipynb, .md, .tex")
    from hermitex.face.model_sheet import check_ending, report

    if args.output is not None:
        check_ending(args.output)
    if args.interactive and not str(args.output).lower().endswith(".html"):
        raise cli.BadInput("--interactive is for a page; end it in .html: -o sheet.html")
    numbers: dict[str, Any] = output.given_numbers(args, "alpha0", "eta", "beta", "lam", "Delta")
    alpha = None if args.alpha is None else [float(a) for a in output.grid(args.alpha, "alpha")]
    sheet = report(output.split_expressions(args.sigma), args.target, channel=args.channel, simulate=_simulation(args),
                   budget=args.budget, patience=args.own_budget, alpha=alpha,
                   progress=sys.stderr.isatty() or None, interactive=args.interactive, **numbers)
    for title, why in sheet.absent.items():
        cli.print_err(f"{title}: {why}")
    if args.output is not None:
        sheet.save(args.output)
    print(output.dumps(sheet.to_dict()) if args.json else args.output)
    return cli.FAILED if sheet.unfinished else cli.ANSWERED


def _simulation(args: argparse.Namespace) -> dict[str, Any] | bool:
    given = {"dimension": args.simulate_dimension, "seeds": args.seeds}
    options = {k: v for k, v in given.items() if v is not None}
    if options and not args.simulate:
        raise cli.BadInput(f"--{'seeds' if 'seeds' in options else 'simulate-dimension'} belongs to --simulate; give both")
    if "dimension" in options:
        options["dimension"] = output.whole_number(options["dimension"], "simulate-dimension")
    return options if args.simulate and options else args.simulate
