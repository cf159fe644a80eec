"""hermitex exponents TARGET...: information, leap, generative exponents, staircases, weak recovery, complexities."""

from __future__ import annotations

import argparse
from typing import Any

from hermitex.errors import BadInput, BudgetExceeded
from hermitex.face import cli, guard, output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="expression in z, or in z1, z2, ...")
    parser.add_argument("--channel", metavar="C", help="law of the label given g(z): deterministic (default); gaussian:V, "
                        "noise of variance V; flip:P, a sign flipped with probability P; sign:V, the sign of g(z) with noise of "
                        "variance V; random_sign, poisson, bernoulli, multiplicative")
    parser.add_argument("--variables", metavar="z1,z2", help="all variables, if the target does not contain some of them")
    parser.add_argument("--cov", metavar="COVARIANCES", help="covariances of variables that are not standard: "
                        '"z1,z2=1/2; z1,z1=2"; the others stay as they are')
    parser.add_argument("--label-map", metavar="FILE.py", help="write the label map T*(y) = 1 - 1/E[z^2|y] of the best spectral "
                        "estimator, a function of NumPy arrays, and add its threshold to the answer")
    parser.add_argument("--unlearned", metavar="STEPS", type=int, help="add what is not learned of the target once the first "
                        "stages of the staircase are known: E Var(g|P_U z), and the floor of ridge at n, p ~ d")
    parser.add_argument("--plot", metavar="F", help="draw the staircase of one target (.pdf, .svg, .png)")
    parser.add_argument("--explain", action="store_true", help="each number with its theorem, hypotheses, certificate")


def run(args: argparse.Namespace) -> int:
    """Answer every target; a failure is printed as a line on stderr and sets the exit status."""
    if args.plot and len(args.targets) > 1:
        raise BadInput("--plot: give one target, whose staircase is drawn")
    output.check_picture(args.plot)
    answers: list[Any] = []
    status, several = cli.ANSWERED, len(args.targets) > 1
    for target in args.targets:
        try:
            answers.append(_answer(target, args))
        except Exception as error:
            answers.append(None)
            status = max(status, cli.report(error, _about(target) if several else ""))
    given = [a for a in answers if a is not None]
    further: dict[str, list[Any]] = {}
    for name, answer in (("label_map", _label_map), ("unlearned", _unlearned)):
        try:
            if getattr(args, name) is not None:
                further[name] = answer(answers, args)
        except Exception as error:
            status = max(status, cli.report(error))
    if given:
        output.picture(args.plot, given[0].plot)
    if args.json and given:
        found = [None if a is None else a.to_dict() | {name: of[n].to_dict() for name, of in further.items()}
                 for n, a in enumerate(answers)]
        print(output.dumps(found if several else found[0]))
    elif args.explain and given:
        print("\n\n".join(a.explain() for a in given))
    elif several and given:
        from hermitex.show.tables import text_table

        # Each target as it was typed: He3(z), not z**3 - 3*z.
        rows = [(_about(t), *a.table_row()[1:]) for t, a in zip(args.targets, answers, strict=True) if a is not None]
        print(text_table(rows, given[0].HEADERS, columns=None))
    elif given:
        print(_sheet(given[0]))
    for name, told in further.items() if not args.json else ():
        for target, one in zip(args.targets, told, strict=True):
            about = f" of {_about(target)}" if several else ""
            print("\n".join([f"{name.replace('_', ' ')}{about}", *(f"  {line}" for line in str(one).splitlines())]))
    return status


def _unlearned(answers: list[Any], args: argparse.Namespace) -> list[Any]:
    """What is left of each target after so many steps."""
    if None in answers:
        raise BadInput("--unlearned: a target was not answered")
    return [a.unlearned(steps=args.unlearned, budget=args.budget) for a in answers]


def _label_map(answers: list[Any], args: argparse.Namespace) -> list[Any]:
    """The label map of the single target, written to its file."""
    if len(answers) > 1 or answers[0] is None:
        raise BadInput("--label-map: give one target, whose label map is written to the file")
    found = answers[0].label_map(budget=args.budget)
    cli.print_err(f"label map written to {found.export(args.label_map)}")
    return [found]


def _answer(target: str, args: argparse.Namespace) -> Any:
    """The exponents, or what is left of them when the time runs out: everything undetermined, and why."""
    from hermitex.exponents.report import standardised, undecided
    from hermitex.face.exponents_with_stages import exponents

    cov = output.covariances(args.cov) if args.cov is not None else None
    reading = 5.0  # seconds to read a target once more after its budget ran out
    try:
        with guard.deadline(args.budget):
            return exponents(target, channel=args.channel, variables=args.variables, covariance=cov, budget=args.budget)
    except BudgetExceeded as late:
        with guard.deadline(max(args.budget, reading)):
            if cov is not None:
                inner, channel, names, given = standardised(target, args.channel, args.variables, cov)
                found = undecided(inner, channel, variables=names, why=str(late))
                return found if given is None else given.restated(found)
            return undecided(target, args.channel, variables=args.variables, why=str(late))


def _sheet(answer: Any) -> str:
    """One target in full: each number on a line, then the certificates it rests on."""
    from hermitex.exponents.stages import alpha_text

    found = answer.to_dict()
    recovery = found["weak_recovery"]
    lines = [("target", found["target"]), ("channel", found["channel"])]
    numbers = ["information_exponent", "leap_exponent", "generative_exponent"]
    if len(answer.variables) > 1:
        lines.append(("variables", ", ".join(answer.variables)))
        numbers = ["information_exponent", "leap_exponent", "leap_coordinate", "staircase", "generative_exponent",
                   "generative_staircase"]
    lines += [(name.replace("_", " "), _stairs(answer, name) if name.endswith("staircase") else
               answer.word(name, found[name], long=True)) for name in numbers]
    lines += [("weak recovery", answer.word("class", recovery["class"], long=True)),
              ("alpha_c", alpha_text(answer.threshold, absent=answer.absent("class", long=True)))]
    open_always = ("absolute_loss", "spherical")  # what is known of them stands in --explain
    lines += [(f"{'' if name == 'run_time' else 'n, '}{name.replace('_', ' ')}", answer.word(name, rate, long=True))
              for name, rate in found["complexity"].items() if name not in open_always]
    width = max(len(name) for name, _ in lines)
    text = [f"{name:<{width}}  {value}" for name, value in lines]
    if answer.certificates:
        text += ["certificates: c, C of E[Y He_k(z)]; lambda, Lambda of E[He_k(z) | Y]", *(f"  {c}" for c in answer.certificates)]
    if found["notes"]:
        text += ["notes", *(f"  {n}" for n in found["notes"])]
    return "\n".join(text)


def _stairs(answer: Any, name: str) -> str:
    """The directions in the order in which they are found, each with the order of its tensor."""
    from hermitex.exponents.directions.direction_text import staircase_words

    return staircase_words(getattr(answer, name), answer.variables, answer.numbers) or "-"


def _about(target: str) -> str:
    return target if len(target) <= 60 else f"{target[:57]}..."
