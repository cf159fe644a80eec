"""FILE.py -> the module that it is: the only place where a user's code is run, and only where he asked for it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.show.files import check_source


def module_of(path: Path) -> ModuleType:
    """Run a user's Python file and return it as a module.

    Raises
    ------
    BadInput : no such file, or its code raised; one line that names the file and what was raised.
    """
    check_source(path)
    if not path.exists():
        raise BadInput(f"{path}: no such file{_near(path)}")
    name = f"_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass in the file looks its module up
    try:
        spec.loader.exec_module(module)
    except HermitexError as error:
        raise BadInput(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        line = _line(error, path)
        said = error.msg if isinstance(error, SyntaxError) else error  # whose text names the file and the line again
        raise BadInput(f"{path}{line}: {type(error).__name__}: {said}") from error
    return module


def system_of(path: Path, name: str) -> Any:
    """The System named `name` in a user's file, or what a function of that name returns; runs the file."""
    from hermitex.systems.system import System

    module = module_of(path)
    if not hasattr(module, name):
        raise BadInput(f"{path}: {UnknownName(name, _names(vars(module)), 'name')}")
    found = getattr(module, name)
    try:
        found = found() if callable(found) and not isinstance(found, System) else found
    except HermitexError as error:
        raise BadInput(f"{path}: {name}(): {error}") from error
    except Exception as error:
        raise BadInput(f"{path}: {name}(): {type(error).__name__}: {error}") from error
    inner = getattr(found, "system", found)
    if not isinstance(inner, System):
        raise BadInput(f"{path}: {name} is a {type(found).__name__}, not a System or a function that returns one")
    return inner


def _near(path: Path) -> str:
    """Files in its folder with a similar name, or else all files there."""
    if not path.parent.is_dir():
        return f"; the folder {path.parent} does not exist"
    there = sorted(p.name for p in path.parent.glob("*.py") if not p.name.startswith("_"))
    near = get_close_matches(path.name, there, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    more = f" and {len(there) - 8} more" if len(there) > 8 else ""
    return f"; {path.parent} holds {', '.join(there[:8])}{more}" if there else f"; {path.parent} holds no Python file"


def _line(error: BaseException, path: Path) -> str:
    """The line of the user's file at which it happened, as ', line 12'."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    found, tb = "", error.__traceback__
    while tb is not None:
        if Path(tb.tb_frame.f_code.co_filename).resolve() == path.resolve():
            found = f", line {tb.tb_lineno}"
        tb = tb.tb_next
    return found


def _names(names: Iterable[str]) -> list[str]:
    return [n for n in names if not n.startswith("_")]
