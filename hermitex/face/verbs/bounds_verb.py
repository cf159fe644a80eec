"""hermitex bounds --sigma S --target G: E(g - b_1 mu_0)^2 and E(g - b_0 mu_0 - b_1 kappa mu_1)^2, the risk bounds."""

from __future__ import annotations

import argparse
from typing import Any

from hermitex.face import cli, guard, output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = ("The upper bound is the risk at lam -> infinity: the risk at the best ridge is no larger, that at a given "
                     "ridge may be. The lower bound holds for every ridge.")
    add = parser.add_argument
    add("--sigma", required=True, metavar="S", help="activation: a name (tanh) or an expression in z")
    add("--target", required=True, metavar="G", help="target: a name (sin) or an expression in z")
    add("--r", metavar="R", help="scale of the spike")
    add("--c", metavar="C", help="variance of the bulk, positive (default: 1)")
    add("--gamma", metavar="G", help="overlap of spike and target, between -1 and 1 (default: 1)")
    add("--alpha0", metavar="A", help="or the gradient step: batch size over dimension (inf allowed)")
    add("--eta", metavar="H", help="learning rate over dimension (eta_tilde)")
    add("--beta", metavar="B", help="width over dimension (default: 1)")
    add("--Delta", default="0", metavar="D", help="variance of the label noise (default: 0)")
    add("--optimise", "--optimize", action="store_true", help="minimise each bound over the learning rate")
    add("--bias", action="store_true", help="minimise over a bias too")
    for name, said in (("vocabulary", "values u1,u2 of the first readout: letters with the spikes r u_k"),
                       ("norms", "squared row norms c1,c2 of the letters (default: c)"),
                       ("biases", "biases b1,b2 of the letters (default: 0)")):
        add(f"--{name}", metavar="LIST", help=said)
    add("--plot", metavar="F", help="draw the target and the functions that realise the bounds (.pdf, .svg, .png)")


def run(args: argparse.Namespace) -> int:
    """Print the bounds."""
    if not args.optimise and args.r is None and args.alpha0 is None and args.eta is None:
        raise cli.BadInput("give --r (and --c), or --alpha0, --eta and --beta, or --optimise")
    output.check_picture(args.plot)
    with guard.deadline(args.budget):
        answer = _answer(args)
        output.picture(args.plot, answer.plot)
    found = answer.to_dict()
    return cli.answer(args, found, lambda: "\n".join(_lines(found)), found["notes"])


def _answer(args: argparse.Namespace) -> Any:
    from hermitex.theories.bounds import bounds

    names = ("r", "c", "gamma", "alpha0", "eta", "beta", "Delta")
    for name in names:
        if len(several := output.grid(text := getattr(args, name) or "0", name)) > 1:
            values = ", ".join(f"{float(v):g}" for v in several[:3])
            raise cli.BadInput(f"--{name} takes one number, not {text[:40]!r}; run it for each number, or in Python for all: "
                               f"hx.bounds({args.sigma!r}, {args.target!r}, ..., {name}=[{values}])")
    numbers: dict[str, Any] = {**output.given_numbers(args, *names), **output.given_lists(args, "vocabulary", "norms", "biases")}
    return bounds(args.sigma, args.target, optimise=args.optimise, bias=args.bias, **numbers)


_NAMES = {"upper": "upper bound", "lower": "lower bound",
          "upper_bias": "upper bound, best bias", "b_upper": "  upper: at bias",
          "lower_bias": "lower bound, best bias", "b_lower": "  lower: at bias",
          "r_upper": "  upper: at r", "eta_over_beta_upper": "  upper: at eta/beta",
          "r_lower": "  lower: at r", "eta_over_beta_lower": "  lower: at eta/beta"}


def _lines(found: dict[str, Any]) -> list[str]:
    order = ("upper", "r_upper", "eta_over_beta_upper", "lower", "r_lower", "eta_over_beta_lower", "upper_bias", "b_upper",
             "lower_bias", "b_lower", "r", "c", "gamma")
    rows = [(_NAMES.get(n, n), found[n]) for n in order if found.get(n) is not None]
    size = max(len(n) for n, _ in rows)
    lines = [f"{n:<{size}}  {v:.12g}" for n, v in rows]
    for name, value in found["coefficients"].items():
        values = [value] if isinstance(value, float) else list(value)
        lines.append(f"{name:<{size}}  {', '.join(f'{v:.12g}' for v in values)}")
    return lines
