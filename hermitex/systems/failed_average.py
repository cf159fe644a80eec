"""Which average of an equation has no finite value where a solver gave up: said in the reason of the failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from hermitex.errors import HermitexError, brief
from hermitex.solvers.solution import Solution
from hermitex.symbolic.budget import effort
from hermitex.symbolic.gaussian import Expectation

_LOST = "not finite"  # in the reasons of solutions with an equation that has no value


def name_failed_average(found: Solution, equations: Mapping[Symbol, Expr], numbers: Mapping[str, Any]) -> Solution:
    """The solution whose reason names the first average that is not finite at its last state; itself where there is none."""
    reasons = np.ravel(np.asarray(found.reason, dtype=object))
    lost = [k for k, why in enumerate(reasons) if _LOST in str(why)]
    if not lost:
        return found
    k = lost[0]
    state = {n: _at(v, k, reasons.size) for n, v in {**numbers, **found.value}.items() if np.ndim(v) in (0, np.ndim(found.reason))}
    first = next(_without_value(equations, state), None)
    if first is None:
        return found
    reasons = reasons.copy()
    reasons[k] = f"{reasons[k]}: {first}"
    return replace(found, reason=str(reasons[0]) if np.ndim(found.reason) == 0 else reasons.reshape(np.shape(found.reason)))


def _at(value: Any, k: int, points: int) -> float:
    row = np.ravel(value)
    return float(row[k if row.size == points else 0])


def _without_value(equations: Mapping[Symbol, Expr], state: Mapping[str, float]) -> Iterator[str]:
    """Of each average that has no finite value at the state, what it is, and where."""
    from hermitex.kernels.compile import compile  # of a solve that failed alone

    for node in dict.fromkeys(n for e in equations.values() for n in sorted(e.atoms(Expectation), key=str)):
        here = {s.name: state[s.name] for s in sorted(node.free_symbols, key=str) if s.name in state}
        if len(here) < len(node.free_symbols):
            continue
        try:
            with effort(2.0), np.errstate(all="ignore"):  # seconds for a message
                finite = bool(np.isfinite(compile(node)(**here)))
        except HermitexError:
            finite = False
        if not finite:
            at = ", ".join(f"{n} = {v:.6g}" for n, v in here.items())
            yield f"{brief(node)} has no finite value at {at}" if at else f"{brief(node)} has no finite value"


__all__ = ["name_failed_average"]
