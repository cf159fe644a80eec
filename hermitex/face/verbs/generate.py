"""hermitex generate SPEC: formulas -> a standalone solver, which carries its formulas and its own self-test."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hermitex.face import cli, guard, output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("spec", metavar="SPEC.toml|FILE.py:NAME",
                        help="a spec, or a System in a Python file, which is run")
    parser.add_argument("-o", "--output", metavar="FILE.py", help="where to write (default: NAME_solver.py, here)")


def run(args: argparse.Namespace) -> int:
    """Write the file and say what is in it."""
    from hermitex.face import spec

    with guard.deadline(args.budget):
        found = spec.load(args.spec)
        target = Path(args.output) if args.output else _default(args.spec)
        if target.exists() and not _ours(target):
            raise cli.BadInput(f"{target} exists and was not written by hermitex generate; name another file with -o")
        done, passed = _write(found, target)
    if args.json:
        print(output.dumps({"path": done.path, "equations": done.equations, "blocks": done.blocks, "lines": done.lines,
                            "selftest": {"points": done.points, "deviation": passed[1], "passed": passed[0],
                                         "residuals": done.checked}}))
    else:
        print(f"{done.path}: {done.equations} equations in {done.blocks} blocks, {done.lines} lines")
        print(f"selftest: {done.points} reference point{'s' * (done.points != 1)}, largest deviation {passed[1]:.1e}")
        print(f"residuals re-checked by {done.checked}")
    if not passed[0]:
        cli.say(f"the self-test of {done.path} fails")
    return cli.ANSWERED if passed[0] else cli.FAILED


def _default(text: str) -> Path:
    path, colon, name = text.rpartition(":")
    stem = Path(f"{path}_{name}" if colon and path.endswith(".py") else text)
    return Path(f"{stem.stem.replace('.py', '')}_solver.py")


def _ours(path: Path) -> bool:
    """True if a file there may be replaced: it is one of ours."""
    try:
        return "Written by hermitex" in path.read_text(encoding="utf-8")[:100_000]
    except (OSError, UnicodeDecodeError):
        return False


def _write(found: Any, target: Path) -> tuple[Any, tuple[bool, float]]:
    """Write, then run the self-test of the file as it stands on the disk."""
    from hermitex.systems import export

    reference = found.points() if found.complete() and (found.grid or found.parameters) else None
    done = export.write(found.formulas, target, reference=reference, tolerance=found.tolerance)
    module = ModuleType(f"written {target}")
    sys.modules[module.__name__] = module
    try:
        text = target.read_text(encoding="utf-8")
        exec(compile(text, str(target), "exec"), vars(module))  # our own text, written a moment ago
        worst = vars(module)["selftest"]()
    finally:
        del sys.modules[module.__name__]
    return done, (bool(worst <= 1e-9), worst)
