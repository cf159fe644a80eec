"""hermitex completion SHELL: the lines that complete verbs and options there; they belong into the shell's own start file."""

from __future__ import annotations

import argparse

from hermitex.errors import MissingExtra
from hermitex.face import cli

SHELLS = ("bash", "zsh")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}; "
                        'in bash: eval "$(hermitex completion bash)"')


def run(args: argparse.Namespace) -> int:
    """Print the completion of a shell."""
    text = script(args.shell)
    return cli.answer(args, {"shell": args.shell, "script": text}, lambda: text)


def script(shell: str) -> str:
    """The completion of a shell as text.

    Raises
    ------
    MissingExtra : shtab is not installed.
    """
    try:
        import shtab
    except ImportError:
        raise MissingExtra("shtab", "completion", "completion") from None
    whole = argparse.ArgumentParser(prog="hermitex", description="learning theory in high-dimensional Gaussian models")
    verbs = whole.add_subparsers()
    for verb, line in cli.VERBS.items():
        one = cli.parser_of(verb)
        for action in one._actions:
            if action.dest == "theory":
                from hermitex.face.curve_options import THEORIES

                action.choices = list(THEORIES)
            if action.dest in cli.FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        verbs.add_parser(verb, help=line, parents=[one], add_help=False, conflict_handler="resolve")
    return str(shtab.complete(whole, shell=shell))
