"""`pytest --nbval-lax notebooks` as it is typed: the cells of a notebook stay with one worker, for each needs those before it."""

from __future__ import annotations

import sys
from functools import partial

import pytest
from nbval import kernel

if sys.platform != "win32":  # two kernels that start together may be given one TCP port; files are each kernel's own
    kernel.KernelManager = partial(kernel.KernelManager, transport="ipc")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give whole notebooks to the workers."""
    if getattr(config.option, "nbval", False) or getattr(config.option, "nbval_lax", False):
        config.option.dist = "loadfile"
