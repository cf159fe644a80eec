"""`pytest --nbval-lax notebooks` as it is typed: the cells of a notebook stay with one worker, for each needs those before it."""

from __future__ import annotations

import atexit
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from nbval import kernel

if sys.platform != "win32":  # two kernels that start together may be given one TCP port; a file of its own is given to one alone
    sockets = tempfile.TemporaryDirectory()
    atexit.register(sockets.cleanup)
    kernel.KernelManager = partial(kernel.KernelManager, transport="ipc", ip=str(Path(sockets.name)/"kernel"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give whole notebooks to the workers."""
    if getattr(config.option, "nbval", False) or getattr(config.option, "nbval_lax", False):
        config.option.dist = "loadfile"
