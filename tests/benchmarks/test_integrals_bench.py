"""closed_form against sympy.integrate, as a ratio in one run; SymPy works in child processes under a cap."""

from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import sys
import time
from pathlib import Path

import sympy as sp

_path = Path(__file__).parents[1] / "symbolic" / "catalogue.py"
_spec = importlib.util.spec_from_file_location("catalogue", _path)
assert _spec is not None and _spec.loader is not None
catalogue = importlib.util.module_from_spec(_spec)
sys.modules.setdefault("catalogue", catalogue)
_spec.loader.exec_module(catalogue)

CAP = 6.0  # seconds for one integral
SAMPLE = ["u^3 - 3u", "u exp(-u/2)", "sin", "u sin", "cosh", "shifted Gaussian", "erf", "gelu", "erfc", "erf Gaussian",
          "relu", "leaky relu", "Abs", "sign", "band", "clip", "elu", "exp -Abs", "relu Gaussian", "sqrt Abs"]


def theirs(name: str, k: int, queue: multiprocessing.Queue) -> None:
    z = catalogue.z
    body = catalogue.He(k) * catalogue.BY_NAME[name].function(z)
    density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
    start = time.process_time()
    value = sp.integrate(sp.expand(body) * density, (z, -sp.oo, sp.oo))
    seconds = time.process_time() - start
    queue.put((seconds, not value.has(sp.Integral)))


def ours(name: str, k: int, queue: multiprocessing.Queue) -> None:
    from hermitex import E, closed_form

    node = E(catalogue.He(k) * catalogue.BY_NAME[name].function(catalogue.z), catalogue.z)
    start = time.process_time()
    closed_form(node)
    queue.put((time.process_time() - start, True))


def with_modules_imported():
    """One integral on either side, so that a fork finds what it needs imported; the caches of the others stay cold."""
    from hermitex import E, closed_form

    z = catalogue.z
    closed_form(E(sp.Max(z, 1)*sp.erf(z), z))
    sp.integrate(z*sp.exp(-(z**2) / 2), (z, -sp.oo, sp.oo))


def in_child(work, name: str, k: int) -> float | None:
    """CPU seconds in a fresh child (cold caches on both sides), or None."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(name, k, queue))
    child.start()
    child.join(CAP)
    if child.is_alive():
        child.kill()
        child.join()
        return None
    seconds, solved = queue.get() if child.exitcode == 0 else (0.0, False)
    return seconds if solved else None


def test_ratio_to_sympy(benchmark):
    with_modules_imported()
    tasks = [(name, i % 3) for i, name in enumerate(SAMPLE)]
    mine = benchmark.pedantic(lambda: [in_child(ours, *task) for task in tasks], rounds=1)
    others = [in_child(theirs, *task) for task in tasks]
    assert None not in mine
    ratios = [b/a for a, b in zip(mine, others, strict=True) if b is not None]
    benchmark.extra_info.update(median_ratio=round(statistics.median(ratios)), compared=len(ratios),
                                solved_here_only=others.count(None))
    assert statistics.median(ratios) >= 25
