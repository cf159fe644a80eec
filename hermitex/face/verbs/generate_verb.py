"""hermitex generate SPEC: formulas -> a standalone solver, which carries its formulas and its own self-test."""

from __future__ import annotations

import argparse
from pathlib import Path

from hermitex.face import cli, guard, streams
from hermitex.show.display import counted
from hermitex.show.escape import line
from hermitex.show.files import check_place


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = ("Formulas -> a standalone solver, a file of its own. A spec is read and nothing in it is run; "
                          "FILE.py:NAME is a Python file, and it is run.")
    parser.add_argument("spec", metavar="SPEC.toml|FILE.py:NAME",
                        help="a spec, or a System in a Python file, which is run")
    parser.add_argument("-o", "--output", metavar="FILE.py",
                        help="where to write (default: NAME_solver.py, here); a file that hermitex wrote is replaced")


def run(args: argparse.Namespace) -> int:
    """Write the file and say what is in it; a file that fails its self-test is not written."""
    from hermitex.face import spec
    from hermitex.systems import export
    from hermitex.systems.trajectory import OF_A_FLOW

    if args.output:
        check_place(args.output)
    with guard.deadline(args.budget):
        with streams.redirect_prints():
            found = spec.load(args.spec)
        if spec.is_theory(found.formulas):
            raise cli.BadInput(f"{args.spec}: {found.system.name} is not a system of equations here, so no solver can be written; "
                               f"solve it with hermitex curve {found.system.name}, or over its [grid] with hermitex sweep")
        target = Path(args.output) if args.output else _default(args.spec)
        if target.is_file() and target.parent != Path("/dev") and not _is_generated_file(target):
            raise cli.BadInput(f"{str(target)[:80]} exists and was not written by hermitex generate; name another file with -o")
        reference = found.points() if found.complete() and (found.grid or found.parameters) else None
        done = export.write(found.formulas, target, reference=reference, start=found.start(),
                            tolerance=OF_A_FLOW if found.tolerance is None else found.tolerance, **found.how)
    for why in done.left_out:
        cli.print_err(why)
    return cli.answer(args, {
        "path": done.path, "equations": done.equations, "blocks": done.blocks, "lines": done.lines,
        "selftest": {"points": done.points, "deviation": done.deviation, "passed": True, "residuals": done.checked}}, lambda: (
        f"{line(done.path)}: {counted(done.equations, 'equation')} in {counted(done.blocks, 'block')}, {done.lines} lines\n"
        f"selftest: {counted(done.points, 'reference point')}, largest deviation {done.deviation:.1e}\n"
        f"residuals re-checked by {done.checked}"))


def _default(text: str) -> Path:
    path, colon, name = text.rpartition(":")
    stem = Path(f"{path}_{name}" if colon and path.endswith(".py") else text)
    return Path(f"{stem.stem.replace('.py', '')}_solver.py")


def _is_generated_file(path: Path) -> bool:
    """True if a file there may be replaced: it is one of ours."""
    try:
        with open(path, "rb") as file:
            return b"Written by hermitex" in file.read(100_000)
    except OSError:
        return False
