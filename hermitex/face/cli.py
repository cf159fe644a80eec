"""hermitex VERB ARGUMENTS -> data on stdout, talk on stderr, exit 0 (answered), 1 (a check failed), 2 (bad input).

Nothing of the mathematics is imported before a verb runs, so that ``--help`` is instant.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from hermitex.errors import (
    DECLARING,
    BadInput,
    HermitexError,
    NoClosedForm,
    NotConverged,
    SelfTestFailed,
    UnknownName,
    both_ends,
)
from hermitex.face import guard, output, streams
from hermitex.show.escape import line
from hermitex.show.files import STDOUT, number_of
from hermitex.symbolic import deadline
from hermitex.symbolic.budget import DEFAULT_BUDGET
from hermitex.symbolic.interrupts import behind

ANSWERED, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # exit status: 0 and 2 as every command line has them, 130 = 128 + SIGINT

# verb -> its line in --help; the verb itself is hermitex.face.verbs.<verb>
VERBS: dict[str, str] = {
    "exponents": "every exponent of a target, its class, sample complexities, certificates",
    "hermite": "Hermite expansion of a function of one or several variables",
    "expect": "one Gaussian expectation, exact where it can be",
    "mu": "conditional coefficients mu_k(kappa) and the residual of an activation",
    "constants": "mu_0, mu_1, mu_star of activations and their closed forms, a table",
    "curve": "learning curve of a theory, with its experiment",
    "value": "numbers of a theory that are not a curve: the learned function, alpha_IT, free energy, escape time, floor",
    "check": "re-checks derivation files, step by step",
    "bounds": "closed-form risk bounds after one giant gradient step",
    "spectrum": "bulk density, edges and outlier of the feature covariance",
    "generate": "formulas -> a standalone solver, a file of its own",
    "report": "the sheet of a model: exponents, coefficients, learning curve, bounds, spectrum and papers on one page",
    "sweep": "formulas over a grid of parameters, on processes or a cluster",
    "cite": "BibTeX of the papers whose results are used",
    "completion": "shell script that completes verbs and options",
    "doctor": "versions, optional parts, a self-test",
}
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*\Z")
# argparse's complaints in this package's words
_COMPLAINTS = ((r"argument (\S+): invalid int value: (.*)", r"\1 is a whole number, not \2"),
               (r"argument (\S+): invalid choice: (.*) \(choose from (.*)\)", r"\1 is one of \3, not \2"),
               (r"the following arguments are required: ", "needed, and not given: "))
FILES = {"output", "plot", "csv", "bib", "latex", "markdown"}  # options that name a file to be written
OF_EXPERIMENT = "; of an experiment, where it is given"  # a budget; by default that takes as long as it takes


class Parser(argparse.ArgumentParser):
    """An argparse parser whose complaints are `BadInput`, and which lets an expression begin with a minus."""

    def error(self, message: str) -> NoReturn:
        for said, better in _COMPLAINTS:
            message = re.sub(said, better, message)
        raise BadInput(f"{message}; see {self.prog} --help")

    def split(self, argv: Sequence[str]) -> list[str]:
        """Put the options first and the expressions behind ``--``, so that a leading minus does not begin an option."""
        known = self._option_string_actions
        options: list[str] = []
        expressions: list[str] = []
        words = iter(argv)
        seen: set[str] = set()
        for word in words:
            name, equals, _ = word.partition("=")
            if name in known and known[name].nargs != 0:
                if known[name].dest in seen:
                    once = "give it once" + (", its values apart by commas" if "several" in (known[name].help or "") else "")
                    self.error(f"{name} is given twice; {once}")
                seen.add(known[name].dest)
            if word == f"{name}=--" and name in known:
                self.error(f"{name} needs a value")
            if word == "--":
                expressions.extend(words)
            elif name in known and (equals or known[name].nargs == 0):
                options.append(word)
            elif word in known:
                value = next(words, None)
                if value in (None, "--"):  # which argparse takes for no value, however it is joined to its option
                    self.error(f"{word} needs a value")
                # One word, so that a value may begin with a minus too.
                options.append(f"{word}={value}" if word.startswith("--") else word + value)
            elif name.startswith("--") and _OPTION.match(name):
                raise UnknownName(name, (k for k in known if k.startswith("--")), "option")
            else:
                expressions.append(word)
        return [*options, *(["--", *expressions] if expressions else [])]


def parser_of(verb: str, words: Sequence[str] = ()) -> Parser:
    """The parser of one verb: its own arguments, then the common ones; `words` may name the theory whose help is shown."""
    parser = Parser(prog=f"hermitex {verb}", description=VERBS[verb], allow_abbrev=False)
    module = import_module(f"hermitex.face.verbs.{verb}_verb")
    module.arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object (a list for several targets)")
    most = getattr(module, "BUDGET", DEFAULT_BUDGET)
    also = OF_EXPERIMENT if getattr(module, "EXPERIMENTS", False) else ""
    parser.add_argument("--budget", type=_seconds, metavar="SECONDS",
                        help=f"CPU seconds allowed for each answer, inf for all that it takes (default: {most:g}{also})")
    parser.set_defaults(usual_budget=most)
    if words and hasattr(module, "narrow"):
        module.narrow(parser, words)
    return parser


def usage() -> str:
    """What ``hermitex --help`` prints."""
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {line}" for verb, line in VERBS.items()]
    return "\n".join([
        "usage: hermitex VERB ...", "",
        "Derivation assistant for learning theory in high-dimensional Gaussian models.", "",
        *lines, "",
        "hermitex VERB --help shows the arguments of a verb; hermitex --version the version.",
        "Exit status: 0 answered, 1 a check failed or too few digits, 2 bad input, 130 interrupted.",
        "A file of derivations (check) and FILE.py:NAME (generate) are Python, and are run; a spec, an expression or any other",
        "text never is.",
    ])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; `argv` is ``sys.argv[1:]`` if not given.

    Examples
    --------
    >>> main(["--version"])
    hermitex 0.2.0
    0
    """
    printing = streams.prepare_streams()
    with guard.interrupts(ends=argv is None) as came:
        try:
            if not printing:
                raise BadInput("standard output is closed, so the answer cannot be printed")
            status = _dispatch(list(sys.argv[1:] if argv is None else argv))
            sys.stdout.flush()
            status = INTERRUPTED if came and status == ANSWERED else status  # a library swallowed it
        except KeyboardInterrupt:
            status = INTERRUPTED
        except BrokenPipeError:  # the reader (head, less) has what it wanted
            streams.give_up(sys.stdout)
            status = ANSWERED
        except deadline.Alarm:  # of a budget whose end it came too late for, as under load
            status = report(HermitexError("the budget ran out; allow more with --budget SECONDS"))
        except Exception as error:
            status = INTERRUPTED if came or isinstance(behind(error), KeyboardInterrupt) else report(error)
    if status == INTERRUPTED:
        print_err("interrupted")
    streams.flush_streams()
    return status


def report(error: BaseException, about: str = "") -> int:
    """Print an error as one line on stderr and return its exit status."""
    if os.environ.get("HERMITEX_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, RecursionError | MemoryError):
        text = f"the expression is too large or too deeply nested ({type(error).__name__})"
    elif isinstance(error, UnknownName):
        text = str(error).partition(DECLARING)[0].partition(", or give hx.parse(")[0]  # as one does in Python
    elif isinstance(error, HermitexError):
        text = str(error).splitlines()[0] if isinstance(error, NoClosedForm) else str(error)  # its advice is Python
        text = text.partition("\n  The last state is in .solution")[0]
    elif isinstance(error, OverflowError):
        text = f"a number is too large: {error}; a float ends at 1.8e308"
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror.lower() + (f": {error.filename}" if error.filename else " (standard output)")
    else:
        text = f"{type(error).__name__}: {error} (HERMITEX_TRACEBACK=1 shows where)"
    print_err(f"{about}: {text}" if about else text)
    return FAILED if isinstance(error, NotConverged | SelfTestFailed) else BAD_INPUT


def answer(args: argparse.Namespace, found: Any, text: Callable[[], str], notes: Iterable[str] = (), status: int = ANSWERED) -> int:
    """Print an answer and return its status: `found` as JSON where that was asked, else `text()`, and its notes on stderr."""
    print(output.dumps(found) if args.json else text())
    for note in notes if not args.json else ():
        print_err(note)
    return status


def declared_by_let(error: UnknownName) -> UnknownName:
    """The error about an unknown letter, for a verb where --let declares it."""
    error.args = (str(error).replace(f"it, symbols={{{error.name!r}: 'real'}}", f"it: --let {error.name}"),)
    return error


def print_err(text: str) -> None:
    """One line on stderr, whatever the text holds."""
    longest = 600  # characters: some lines of a terminal; what a user typed may be longer than the screen
    said = both_ends(line(text), longest)
    with contextlib.suppress(OSError, ValueError):  # a closed or full stderr: there is nobody to be told
        print(f"hermitex: {said}", file=sys.stderr or io.StringIO(), flush=True)


def _dispatch(argv: list[str]) -> int:
    if not argv:
        raise BadInput(f"name a verb: {', '.join(VERBS)}; see hermitex --help")
    verb, *rest = argv
    if verb in ("-h", "--help", "help"):
        print(usage())
        return ANSWERED
    if verb == "--version":
        from hermitex import __version__

        print(f"hermitex {__version__}")
        return ANSWERED
    if verb not in VERBS:
        if verb.startswith("-"):
            raise UnknownName(verb, ("--help", "--version"), "option")
        raise UnknownName(verb[:80], VERBS, "verb")
    parser = parser_of(verb, rest if {"-h", "--help"} & set(rest) else ())
    try:
        args = parser.parse_args(parser.split(rest))
    except SystemExit as done:  # --help of the verb
        return int(done.code or 0)
    args.own_budget = args.budget  # None where none was asked for
    args.budget = args.usual_budget if args.budget is None else args.budget
    verb_itself = import_module(f"hermitex.face.verbs.{verb}_verb").run
    with contextlib.redirect_stdout(sys.stderr) if _writes_there(args) else contextlib.nullcontext():
        return int(verb_itself(args))


def _writes_there(args: argparse.Namespace) -> bool:
    """True if an output file is the standard output (also called -); every other message then goes to stderr."""
    there = False
    for name in FILES & vars(args).keys():
        place = getattr(args, name)
        if place == "-":
            setattr(args, name, STDOUT)
        there |= place == "-" or (place is not None and number_of(place) == 1)
    return there


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"a positive number of seconds is needed, inf for no bound, not {text!r}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
