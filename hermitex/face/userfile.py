"""FILE.py -> the module that it is: the only place where a user's code is run, and only where he asked for it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from hermitex.errors import BadInput, HermitexError


def module_of(path: Path) -> ModuleType:
    """Run a user's Python file and return it as a module.

    Raises
    ------
    BadInput : no such file, or its code raised; one line that names the file and what was raised.
    """
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
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
        raise BadInput(f"{path}{line}: {type(error).__name__}: {error}") from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """The line of the user's file at which it happened, as ', line 12'."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    found, tb = "", error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == str(path):
            found = f", line {tb.tb_lineno}"
        tb = tb.tb_next
    return found
