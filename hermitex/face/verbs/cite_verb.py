"""hermitex cite KEY...: the BibTeX entries of the papers whose results hermitex uses; --list names them all."""

from __future__ import annotations

import argparse

from hermitex.errors import UnknownName
from hermitex.face import cli


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("keys", nargs="*", metavar="KEY", help="as shown by --list and --explain")
    parser.add_argument("--list", action="store_true", help="all keys, one a line, each with authors, year and title")


def run(args: argparse.Namespace) -> int:
    """Print BibTeX."""
    if not args.keys and not args.list:
        raise cli.BadInput("cite: give keys, or --list to see them")
    from hermitex.show.cite import bibtex, keys, reference_list

    if args.list:
        return cli.answer(args, list(keys()), reference_list)
    try:
        text = bibtex(args.keys)
    except UnknownName as error:
        raise cli.BadInput(f"{error}; hermitex cite --list names all keys") from None
    return cli.answer(args, {"keys": args.keys, "bibtex": text}, text.rstrip)
