"""hermitex spectrum --sigma S --r R --c C --alpha A --beta B: m(z) = (1/p) tr(Phi^T Phi/p - z)^{-1}, its density and outlier."""

from __future__ import annotations

import argparse
from typing import Any

from hermitex.face import cli, guard, output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("--sigma", required=True, metavar="S", help="activation: a name (tanh) or an expression in z")
    add("--r", required=True, metavar="R", help="scale of the spike")
    add("--c", default="1", metavar="C", help="variance of the bulk, positive (default: 1)")
    add("--alpha", required=True, metavar="A", help="n/d, positive")
    add("--beta", required=True, metavar="B", help="p/d, positive")
    add("--normalisation", "--normalization", choices=("p", "n"), default="p", help="Phi^T Phi/p or Phi^T Phi/n (default: p)")
    add("--at", metavar="Z..", help="evaluate m there: 0.5i, or 1+0.1i,2+0.1i; on the real axis its limit from above")
    add("--points", type=int, default=400, metavar="N", help="points of the density (default: 400)")
    add("--dimension", metavar="D", help="d, for the values of the outliers")
    for name, said in (("vocabulary", "values u1,u2 of the readout before the step: letters with the spikes r u_k"),
                       ("fractions", "their shares p1,p2 of the neurons (default: equal)"),
                       ("norms", "squared row norms c1,c2 (default: c)"), ("biases", "biases b1,b2 (default: 0)")):
        add(f"--{name}", metavar="LIST", help=said)
    add("--rows", choices=("sphere", "gaussian"), default="sphere", help="gaussian: squared norms fluctuate by sqrt(2/d) c")
    add("--simulate", action="store_true", help="eigenvalues of features at finite size, too, as a histogram in the picture")
    add("--simulate-dimension", metavar="d", default="400", help="d of these features (default: %(default)s)")
    add("--seeds", type=int, default=8, metavar="K", help="number of their samples (default: %(default)s)")
    add("--plot", metavar="F", help="draw the density (.pdf, .svg, .png)")


def run(args: argparse.Namespace) -> int:
    """Print the spectrum."""
    most = 10_000  # points of a density: more than a picture or table needs
    if args.points > most:
        raise cli.BadInput(f"--points is at most {most}")
    output.check_picture(args.plot)
    z = [_complex(part) for part in args.at.split(",")] if args.at is not None else []
    with guard.deadline(args.budget):
        from hermitex.theories.spectrum import spectrum

        numbers: dict[str, Any] = output.given_numbers(args, "r", "c", "alpha", "beta", "dimension")
        numbers |= output.given_lists(args, "vocabulary", "fractions", "norms", "biases")
        law = spectrum(args.sigma, normalisation=args.normalisation, points=args.points, rows=args.rows, **numbers)
        m = [law.stieltjes(v) for v in z]
    measured: dict[str, Any] | None = None
    if args.simulate:  # as long as it takes
        from hermitex.experiments.spectrum_experiment import simulate

        d = output.one_number(args.simulate_dimension, "simulate-dimension")
        measured = simulate(law, dimension=d, seeds=args.seeds)
    output.picture(args.plot, lambda: law.plot(histogram=None if measured is None else measured["eigenvalues"]))
    shown = {} if measured is None else {"simulation": {**measured, "eigenvalues": measured["eigenvalues"].tolist()}}
    found = {**law.to_dict(), **shown,
             "stieltjes": [{"z": [a.real, a.imag], "m": [b.real, b.imag]} for a, b in zip(z, m, strict=True)]}
    otherwise = "give --dimension" if law.lacking else "none"
    return cli.answer(args, found, lambda: "\n".join(_lines(found, otherwise)), found["notes"])


def _complex(text: str) -> complex:
    """1+0.1i, 0.5j, 2, (1+2i)."""
    plain = text.replace(" ", "").replace("*", "").replace("I", "j").replace("i", "j") if "inf" not in text else "?"
    try:
        return complex(plain[:100])
    except ValueError:
        raise cli.BadInput(f"--at: {text[:40]!r} is not a complex number; write 0.5i or 1+0.1i") from None


def _lines(found: dict[str, Any], otherwise: str) -> list[str]:
    lines = [f"bulk          [{low:.10g}, {high:.10g}]" for low, high in found["edges"]]
    lines.append(f"mass at zero  {found['mass_at_zero']:.10g}")
    if found["outlier"]:
        o = found["outlier"]
        at = f" = {o['value']:.10g}" if o["value"] is not None else f"; {otherwise} for its value"
        lines.append(f"outlier       {o['coefficient']:.10g} {o['times']} + {o['constant']:.10g}{at}")
    elif "vocabulary" not in found and "outliers" not in found:
        lines.append("outlier       none: mu_0 = 0")
    else:
        lines.append("outliers      " + (", ".join(f"{v:.10g}" for v in found.get("outliers", ())) or otherwise))
    lines.append(f"first moment  {found['first_moment']:.10g}")
    if s := found.get("simulation"):
        error = s["standard_error"]
        lines.append(f"experiment    d = {s['dimension']}, {len(s['seeds'])} seeds: largest {s['largest']:.6g} +- "
                     f"{error['largest']:.2g}; below {s['median']:.6g} a share of {s['below']:.4f} +- "
                     f"{error['below']:.2g}, of the law {s['expected']:.4f}")
    lines += [f"m({complex(*s['z']):.6g})  {complex(*s['m']):.12g}" for s in found["stieltjes"]]
    return lines
