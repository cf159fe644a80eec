"""hermitex sweep SPEC.toml -o DIR: every point of a grid, on processes or a Dask cluster, resumed after a kill."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermitex.errors import MissingExtra
from hermitex.face import cli, guard, output
from hermitex.show.files import check_place


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("spec", metavar="SPEC.toml", help="formulas, [parameters] and [grid]")
    parser.add_argument("-o", "--output", metavar="DIR", required=True,
                        help="finished chunks are appended there as they come (journal.jsonl); at the end table.csv")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each processor)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster, tcp://head:8786")
    parser.add_argument("--resume", action="store_true", help="go on with the sweep that DIR holds")
    parser.add_argument("--plot", metavar="F", help="draw the error over one swept number, or two (.pdf, .svg, .png)")
    parser.add_argument("--progress", action="store_true", help="report progress on stderr (always on a terminal)")


def run(args: argparse.Namespace) -> int:
    """Sweep, write the table, and say how it went; status 1 if a point failed."""
    from hermitex.face import spec

    if args.workers is not None and args.workers < 1:
        raise cli.BadInput(f"--workers is 1 or more, not {args.workers}")
    output.check_picture(args.plot)
    with guard.deadline(args.budget):  # the budget is for the formulas; a sweep takes as long as it takes
        found = spec.load(args.spec)
        if not found.grid:
            raise cli.BadInput(f"{args.spec}: [grid]: a sweep needs it, for instance alpha = \"0.2:3:50\"")
        if found.formulas is not found.system and not found.is_path:
            found.formulas.compile()
    path = Path(args.output) / "table.csv"
    if path.parent.is_dir():
        check_place(path)
    table = _sweep(found, args)
    table.to_csv(path)
    output.picture(args.plot, table.plot)
    failed = int((~table.converged).sum())
    counts = {"points": len(table), "converged": len(table) - failed, "failed": failed}
    cli.answer(args, {**counts, "path": str(path)}, lambda: f"{path}: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    if failed:
        first = table.failed[0]
        where = ", ".join(f"{n} = {first[n]:g}" for n in table.axes)
        cli.print_err(f"{failed} of {len(table)} points failed; the first, {where}: {first['reason']}")
    return cli.FAILED if failed else cli.ANSWERED


def _sweep(found: Any, args: argparse.Namespace) -> Any:
    import os

    from hermitex.systems.sweep import sweep

    progress = args.progress or sys.stderr.isatty()
    with _client(args.scheduler) as client:
        workers = None if client else args.workers or os.cpu_count() or 1
        numbers = {**found.parameters, **found.arrays}
        return sweep(found.system, found.grid, client, parameters=numbers, workers=workers, progress=progress,
                     checkpoint=args.output, resume=args.resume, chunk=found.chunk, tolerance=found.tolerance, **found.how)


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    """A client of the cluster at that address, closed at the end; None without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("distributed", "dask", "a sweep on a cluster") from None
    try:
        client = Client(address, timeout=20)
    except (OSError, TimeoutError, ValueError) as error:
        raise cli.BadInput(f"--scheduler: no Dask cluster answers at {address} ({str(error)[:120]})") from None
    try:
        yield client
    finally:
        client.close()
