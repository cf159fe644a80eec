"""hermitex check PATH...: re-checks derivation files, every step anew; a planted error is named with a counter-example."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from hermitex.errors import BudgetExceeded
from hermitex.face import cli, guard, output, streams
from hermitex.show.escape import line

BUDGET = 600.0  # a page compiles and solves whole systems
_MARKS = {"proved": "proved", "agrees": "agrees", "tested": "tested", "refuted": "refuted",
          "fails": "FAILS", "undetermined": "OPEN"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = ("Re-check derivation files, step by step. A derivation is a Python file, and it is run: check only files "
                          "that you would run. What it prints goes to stderr.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="derivation files, or folders of them; their Python is run")
    parser.add_argument("--latex", metavar="FILE.tex", help="write the pages as an appendix (numbered steps, rules in words)")
    parser.add_argument("--markdown", metavar="FILE.md", help="write the pages as Markdown")
    parser.add_argument("--bib", metavar="FILE.bib", help="write BibTeX of what they cite")


def run(args: argparse.Namespace) -> int:
    """Check, print a table, and write what was asked for."""
    from hermitex.show.files import check_place

    for place in (args.latex, args.markdown, args.bib):
        check_place(place)
    with streams.aside() as out:
        pages, status = _read(_files(args.paths), args.budget)
        if not pages:
            return status
        found = [_checked(path, name, page, args, out) for path, name, page in pages]
        written = _write(args, [page for _, _, page in pages], found)
    if args.json:
        print(output.dumps({"derivations": [f.to_dict() for f in found], **written}))
    else:
        for place, path in written.items():
            print(f"{place}: {path}")
        bad = [f.name for f in found if not f.passed]
        checks = sum(len(f.steps) for f in found)
        from hermitex.show.display import counted

        said = f"{counted(len(found), 'derivation')}, {counted(checks, 'check')}"
        print(said + (f"; failed: {line(', '.join(bad))}" if bad else ", all hold"))
    return max(status, cli.ANSWERED if all(f.passed for f in found) else cli.FAILED)


def _read(paths: Iterator[Path], seconds: float) -> tuple[list[tuple[Path, str, Any]], int]:
    """The pages of all files; one that cannot be read gets its line on stderr and makes the exit status."""
    pages: list[tuple[Path, str, Any]] = []
    status = cli.ANSWERED
    for path in paths:
        try:
            with guard.deadline(seconds):
                pages += [(path, name, page) for name, page in _pages(path)]
        except cli.BadInput as error:
            status = cli.report(error)
        except BudgetExceeded as error:
            status = cli.report(error, f"{path}: running it")
    return pages, status


def _files(paths: list[str]) -> Iterator[Path]:
    for text in paths:
        path = Path(text)
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.py") if not any(s.startswith(("_", ".")) for s in p.relative_to(path).parts))
            if not inside:
                raise cli.BadInput(f"{path} holds no derivation file (*.py)")
            yield from inside
        elif path.suffix == ".py" or not path.exists():
            yield path
        else:
            raise cli.BadInput(f"{path} is not a Python file; a derivation is written as one, see derivations/_template.py")


def _pages(path: Path) -> list[tuple[str, Any]]:
    """The results and derivations that a file defines at its top, in order."""
    from hermitex.face.userfile import module_of
    from hermitex.symbolic.derivation import Derivation
    from hermitex.systems.result import Result

    found = {id(v): (k, v) for k, v in vars(module_of(path)).items() if isinstance(v, Result | Derivation)}
    if not found:
        raise cli.BadInput(f"{path} defines no hermitex.Result and no Derivation at its top level; see derivations/_template.py")
    return list(found.values())


def _checked(path: Path, name: str, page: Any, args: argparse.Namespace, out: TextIO) -> Any:
    """Every check of a page within the budget; each is shown as it ends. A page without any establishes nothing."""
    from hermitex.symbolic.derivation import Derivation
    from hermitex.systems.checked import Checked

    if isinstance(page, Derivation):
        page = _as_result(name, page)
    talk = not args.json
    if talk:
        print(f"{line(path.name)}: {line(page.title)}", file=out)
    steps: list[Checked] = []

    def show(one: Checked) -> None:
        steps.append(one)
        if talk:
            digits = f" to {one.digits} digits" if one.status in ("agrees", "tested") and one.digits is not None else ""
            print(f"  {_MARKS[one.status]:8s}{line(one.rule)}{digits}", file=out)
            if not one:
                print(f"          {line(one.example or one.how)}", file=out)
            out.flush()

    try:
        with guard.deadline(args.budget):
            whole = page.check(show)
        if steps:
            if talk:
                print(f"  in all: {line(whole.tally())}", file=out)
            return whole
        show(Checked("the page", "undetermined", None, "it has no step that could be checked"))
    except BudgetExceeded as error:
        show(Checked("the rest", "undetermined", None, str(error)))
    return page.checked(steps)


def _as_result(name: str, derived: Any) -> Any:
    from hermitex.systems.result import Result

    page = Result(derived.name or name, derived.text)
    page.derivation(derived)
    page.step("claim", *derived.claim)
    return page


def _write(args: argparse.Namespace, pages: list[Any], found: list[Any]) -> dict[str, str]:
    """The files asked for; a page of which a check did not hold says so under its title."""
    from hermitex.show.appendix import document, doubted
    from hermitex.show.cite import bibtex
    from hermitex.show.files import write_whole
    from hermitex.symbolic.derivation import Derivation

    if not (args.latex or args.markdown or args.bib):
        return {}
    pages = [_as_result("derivation", p) if isinstance(p, Derivation) else p for p in pages]
    open_steps = [[s.rule for s in f.steps if not s] for f in found]
    keys = list(dict.fromkeys(k for p in pages for k in p.sources))
    written: dict[str, str] = {}
    if args.latex:
        text = document([doubted(p.latex(), bad) for p, bad in zip(pages, open_steps, strict=True)], keys)
        written["latex"] = str(write_whole(args.latex, text))
    if args.markdown:
        text = "\n\n".join(doubted(p.markdown(), bad) for p, bad in zip(pages, open_steps, strict=True))
        written["markdown"] = str(write_whole(args.markdown, text))
    if args.bib:
        written["bib"] = str(write_whole(args.bib, bibtex(keys)))
    return written
