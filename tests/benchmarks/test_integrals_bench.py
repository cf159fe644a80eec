"""closed_form against sympy.integrate, as a ratio in one run; SymPy works in child processes under a cap.

Run with ``pytest tests/benchmarks/test_integrals_bench.py -m slow``.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import sys
import time
from pathlib import Path

import pytest
import sympy as sp

_path = Path(__file__).parents[1] / "symbolic" / "catalogue.py"
_spec = importlib.util.spec_from_file_location("catalogue", _path)
assert _spec is not None and _spec.loader is not None
catalogue = importlib.util.module_from_spec(_spec)
sys.modules.setdefault("catalogue", catalogue)
_spec.loader.exec_module(catalogue)

CAP = 20.0
SAMPLE = ["u^3 - 3u", "u exp(-u/2)", "sin", "u sin", "cosh", "shifted Gaussian", "erf", "gelu", "erfc", "erf Gaussian",
          "relu", "leaky relu", "Abs", "sign", "band", "clip", "elu", "exp -Abs", "relu Gaussian", "sqrt Abs"]


def theirs(name: str, k: int, queue: multiprocessing.Queue) -> None:
    z = catalogue.z
    body = catalogue.He(k) * catalogue.BY_NAME[name].function(z)
    density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
    start = time.perf_counter()
    value = sp.integrate(sp.expand(body) * density, (z, -sp.oo, sp.oo))
    seconds = time.perf_counter() - start
    queue.put((seconds, not value.has(sp.Integral)))


def ours(name: str, k: int, queue: multiprocessing.Queue) -> None:
    from hermitex.symbolic.gaussian import E
    from hermitex.symbolic.integrals import closed_form

    node = E(catalogue.He(k) * catalogue.BY_NAME[name].function(catalogue.z), catalogue.z)
    start = time.perf_counter()
    closed_form(node)
    queue.put((time.perf_counter() - start, True))


def in_child(work, name: str, k: int) -> float | None:
    """Seconds in a fresh child (cold caches on both sides), or None."""
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


@pytest.mark.slow
def test_ratio_to_sympy():

    ratios, only_ours, neither = [], 0, 0
    for i, name in enumerate(SAMPLE):
        k = i % 3
        mine, other = in_child(ours, name, k), in_child(theirs, name, k)
        if mine is None:
            neither += 1
        elif other is None:
            only_ours += 1
        else:
            ratios.append(other / mine)
    median = statistics.median(ratios)
    print(f"median {median:.0f}x over {len(ratios)}, {only_ours} solved here only, {neither} not here")
    assert neither == 0
    assert median >= 25
