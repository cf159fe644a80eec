"""hermitex check PATH... re-checks derivation files, every step anew; hermitex check LHS RHS checks one equality.

What is wrong is named with a counter-example.
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from hermitex.errors import BudgetExceeded, HermitexError, UnknownName
from hermitex.face import cli, guard, output, streams
from hermitex.show.escape import line
from hermitex.show.files import check_place, write_whole

BUDGET = 600.0  # a page compiles and solves whole systems
_MARKS = {"proved": "proved", "agrees": "agrees", "tested": "tested", "refuted": "refuted",
          "fails": "FAILS", "undetermined": "OPEN"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = ("Re-check derivation files, step by step, or the equality of two formulas. A derivation is a Python "
                          "file, and it is run: check only files that you would run. What it prints goes to stderr. A formula "
                          "is never run.")
    parser.add_argument("paths", nargs="+", metavar="PATH | LHS RHS",
                        help='derivation files, or folders of them; their Python is run. Or the two sides of an equality: '
                             '"E(z*tanh(z))" "E(1 - tanh(z)**2)"')
    parser.add_argument("--let", default="", metavar="DECLARATIONS", help='letters of the two sides: "mu, s>0, f: function"')
    parser.add_argument("--workers", type=int, metavar="N", help="files checked side by side (default: one for each processor)")
    parser.add_argument("--latex", metavar="FILE.tex", help="write the pages as an appendix (numbered steps, rules in words)")
    parser.add_argument("--markdown", metavar="FILE.md", help="write the pages as Markdown")
    parser.add_argument("--bib", metavar="FILE.bib", help="write BibTeX of what they cite")
    parser.add_argument("--progress", action="store_true", help="report on stderr the files checked and the time")


@dataclass(frozen=True)
class _Page:
    """The result of one page, and its printed forms."""

    found: Any
    latex: str
    markdown: str
    keys: tuple[str, ...]


def run(args: argparse.Namespace) -> int:
    """Check, print a table, and write what was asked for."""
    from hermitex.show.display import counted
    from hermitex.show.progress import reporter

    if _are_sides(args.paths):
        return _equality(args)
    if args.let:
        raise cli.BadInput("--let declares the letters of an equality: hermitex check LHS RHS --let 'mu, s>0'")
    for place in (args.latex, args.markdown, args.bib):
        check_place(place)
    if args.workers is not None and args.workers < 1:
        raise cli.BadInput(f"--workers is 1 or more, not {args.workers}")
    status = cli.ANSWERED
    files = list(_files(args.paths))
    # written at the end in the order of the files, whichever is ready first
    made: dict[Path, list[_Page]] = {}
    tell = reporter("check", "files") if args.progress else None
    with streams.redirect_prints() as out:
        for i, (path, judged) in enumerate(_checked_files(files, args, None if args.json else out), 1):
            if tell is not None:
                tell(i, len(files))
            if isinstance(judged, HermitexError):
                late = f"{path}: running it" if isinstance(judged, BudgetExceeded) else ""
                status = cli.report(judged, late) if late else cli.report(judged)
            else:
                made[path] = judged
        pages = [page for path in files for page in made.get(path, ())]
        if not pages:
            return status
        written = _write(args, pages)
    found = [page.found for page in pages]
    if args.json:
        print(output.dumps({"derivations": [f.to_dict() for f in found], **written}))
    else:
        for place, name in written.items():
            print(f"{place}: {name}")
        bad = [f.name for f in found if not f.passed]
        checks = sum(len(f.steps) for f in found)
        said = f"{counted(len(found), 'derivation')}, {counted(checks, 'check')}"
        print(said + (f"; failed: {line(', '.join(bad))}" if bad else ", all hold"))
    return max(status, cli.ANSWERED if all(f.passed for f in found) else cli.FAILED)


def _are_sides(texts: list[str]) -> bool:
    """Two texts that name no file are the sides of an equality."""
    return len(texts) == 2 and not any(text.endswith(".py") or Path(text).exists() for text in texts)


def _equality(args: argparse.Namespace) -> int:
    """Print what is known of LHS = RHS; status 1 unless it is proved or agrees."""
    from hermitex.check.claim import check

    if extra := [f"--{name}" for name in ("latex", "markdown", "bib", "workers") if getattr(args, name) is not None]:
        raise cli.BadInput(f"{extra[0]} belongs to derivation files; for one equality: hermitex check LHS RHS [--let ...] [--json]")
    lhs, rhs = args.paths
    try:
        found = check(lhs, rhs, symbols=args.let or None, budget=args.budget)
    except UnknownName as error:
        raise cli.declared_by_let(error) from None
    print(output.dumps({"lhs": lhs, "rhs": rhs, **found.to_dict()}) if args.json else found)
    return cli.ANSWERED if found else cli.FAILED


def _checked_files(files: list[Path], args: argparse.Namespace, out: TextIO | None
            ) -> Iterator[tuple[Path, list[_Page] | HermitexError]]:
    """Each file with what came of it: one after the other as they are checked, or side by side as they are ready."""
    workers = min(args.workers or os.cpu_count() or 1, len(files))
    if workers <= 1:
        for path in files:
            yield path, _file(path, args.budget, out)
        return
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_one_thread) as crew:
        longest = sorted(files, key=_size, reverse=True)   # as far as can be told; the last to end starts first
        under_way = {crew.submit(_check_in_process, path, args.budget): path for path in longest}
        for i, one in enumerate(as_completed(under_way), 1):
            try:
                said, judged = one.result()
            except BrokenExecutor:
                said, judged = "", cli.BadInput(f"{under_way[one]}: the process that checked it died")
            if out is not None:
                print(f"[{i} of {len(files)}] {said}", end="", file=out, flush=True)
            yield under_way[one], judged


def _size(path: Path) -> int:
    """Of a file, 0 if there is none."""
    return path.stat().st_size if path.is_file() else 0


def _one_thread() -> None:
    """Each worker computes on one core."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _check_in_process(path: Path, budget: float) -> tuple[str, list[_Page] | HermitexError]:
    """The same in a process of its own, with what it has to say."""
    said = io.StringIO()
    with streams.redirect_prints():
        judged = _file(path, budget, said)
    return said.getvalue() or f"{line(path.name)}\n", judged


def _file(path: Path, budget: float, out: TextIO | None) -> list[_Page] | HermitexError:
    """Every page of a file, checked; or why the file cannot be read."""
    from hermitex.show.appendix import mark_doubted
    from hermitex.symbolic.derivation import Derivation

    try:
        with guard.deadline(budget):
            pages = _pages(path)
    except (cli.BadInput, BudgetExceeded) as error:
        return error
    made = []
    for name, page in pages:
        whole = _as_result(name, page) if isinstance(page, Derivation) else page
        found = _checked(path, whole, budget, out)
        bad = [s.rule for s in found.steps if not s]
        made.append(_Page(found, mark_doubted(whole.latex(), bad), mark_doubted(whole.markdown(), bad), tuple(whole.sources)))
    return made


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
    from hermitex.pages.result_page import Result
    from hermitex.symbolic.derivation import Derivation

    found = {id(v): (k, v) for k, v in vars(module_of(path)).items() if isinstance(v, Result | Derivation)}
    if not found:
        raise cli.BadInput(f"{path} defines no hermitex.Result and no Derivation at its top level; see derivations/_template.py")
    return list(found.values())


def _checked(path: Path, page: Any, budget: float, out: TextIO | None) -> Any:
    """Every check of a page within the budget; each is shown as it ends. A page without any establishes nothing."""
    from hermitex.pages.checked import Checked

    if out is not None:
        print(f"{line(path.name)}: {line(page.title)}", file=out)
    steps: list[Checked] = []

    def show(one: Checked) -> None:
        steps.append(one)
        if out is not None:
            digits = f" to {one.digits} digits" if one.status in ("agrees", "tested") and one.digits is not None else ""
            print(f"  {_MARKS[one.status]:8s}{line(one.rule)}{digits}", file=out)
            if not one:
                print(f"          {line(one.example or one.how)}", file=out)
            out.flush()

    try:
        with guard.deadline(budget):
            whole = page.check(show)
        if steps:
            if out is not None:
                print(f"  in all: {line(whole.tally())}", file=out)
            return whole
        show(Checked("the page", "undetermined", None, "it has no step that could be checked"))
    except BudgetExceeded as error:
        show(Checked("the rest", "undetermined", None, str(error)))
    return page.checked(steps)


def _as_result(name: str, derived: Any) -> Any:
    from hermitex.pages.result_page import Result

    page = Result(derived.name or name, derived.text)
    page.derivation(derived)
    page.step("claim", *derived.claim)
    return page


def _write(args: argparse.Namespace, pages: list[_Page]) -> dict[str, str]:
    """Write the requested files; a page with a failed check says so under its title."""
    from hermitex.show.appendix import document
    from hermitex.show.cite import bibtex

    keys = list(dict.fromkeys(k for p in pages for k in p.keys))
    written: dict[str, str] = {}
    if args.latex:
        written["latex"] = str(write_whole(args.latex, document([p.latex for p in pages], keys)))
    if args.markdown:
        written["markdown"] = str(write_whole(args.markdown, "\n\n".join(p.markdown for p in pages)))
    if args.bib:
        written["bib"] = str(write_whole(args.bib, bibtex(keys)))
    return written
