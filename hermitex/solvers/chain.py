"""The chain of last resorts:  Newton -> Anderson -> damped iteration, each only on the points still open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import BadInput
from . import fixed_point
from .batch import Array, Field, Params, positive_mask, start, take
from .newton import Both, newton
from .solution import Solution

Solver = Callable[[Array, Params], Solution]

_ARRAYS = ("residual", "converged", "iterations", "stability", "error", "method", "branch", "reason")


def robust(
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    residual: Field | None = None,
    jacobian: Field | None = None,
    both: Both | None = None,
    step: Field | None = None,
    positive: Any = None,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 100,
    raise_on_failure: bool = True,
) -> Solution:
    """Newton; where that fails Anderson; where that fails damped iteration. Each only on the points still open.

    Parameters
    ----------
    residual, jacobian, both : as in `newton.newton`; without them the first method is Anderson
    step : the right-hand sides G(x, p); taken as x - residual where it is not given
    max_steps : of Newton; Anderson has 5 times, the damped iteration 20 times as many

    A point that Anderson or the damped iteration has brought near is finished by Newton, so that all points reach the
    same accuracy. `.method` names the methods that each point took.

    Examples
    --------
    >>> F = lambda x, p: x - 1/(p["lam"] + 2/(1 + x))
    >>> s = robust([1.0], {"lam": 0.1}, names=["V"], residual=F, positive=True)
    >>> round(s["V"], 6), s.method
    (0.844289, 'anderson')
    """
    p, names = dict(p or {}), tuple(names)
    if residual is None and step is None:
        raise BadInput("robust needs residual= or step=")
    if step is None:
        function = residual
        assert function is not None
        step = lambda x, q: x - function(x, q)  # noqa: E731
    x, single = start(x0, p, names)
    common = {"names": names, "positive": positive, "rtol": rtol, "atol": atol, "raise_on_failure": False}
    exact = residual is not None and (jacobian is not None or both is not None)

    def polished(y: Array, q: Params) -> Solution:
        assert residual is not None
        return newton(residual, jacobian, y, q, both=both, max_steps=max_steps, **common)

    def slow(solve: Callable[..., Solution], steps: int, **options: Any) -> Solver:
        def run(y: Array, q: Params) -> Solution:
            found = solve(step, y, q, max_steps=steps, **options, **common)
            if not exact:
                return found
            last = polished(_usable(found.state, y, positive, names), q)
            return _better(found, replace(last, method=f"{found.method} + newton"))

        return run

    chain: list[Solver] = [polished] if exact else []
    chain += [slow(fixed_point.anderson, 5 * max_steps), slow(fixed_point.damped, 20 * max_steps, damping=0.5)]
    found = chain[0](x, p)
    for solve in chain[1:]:
        found = _mend(found, solve, x, p)
    found = found.point(0) if single else found
    return found.require() if raise_on_failure else found


def assemble(parts: Sequence[tuple[Array, Solution]], points: int, names: Sequence[str]) -> Solution:
    """Solutions of subsets of the points put together in order; a later one replaces an earlier one."""
    values: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for k, s in parts:
        for target, source in ((values, dict(s.value)), (fields, {f: getattr(s, f) for f in _ARRAYS})):
            for name, v in source.items():
                if name not in target:
                    kind = np.asarray(v).dtype
                    target[name] = np.empty(points, dtype=object if kind.kind in "OUS" else kind)
                target[name][k] = v
    method = fields.pop("method")
    return Solution(
        values,
        method=method[0] if len(set(method.tolist())) == 1 else method,
        unknowns=tuple(names),
        notes=tuple(dict.fromkeys(n for _, s in parts for n in s.notes)),
        origin=dict(parts[-1][1].origin),
        **fields,
    )


def _mend(found: Solution, solve: Solver, x: Array, p: Params) -> Solution:
    """Try `solve` on the points of `found` that are open; it counts where it converged or came nearer."""
    bad = np.flatnonzero(~np.asarray(found.converged))
    if not bad.size:
        return found
    every = np.arange(x.shape[1])
    second = _better(pick(found, bad), solve(x[:, bad], take(p, bad)))
    spent = np.array(found.iterations)
    spent[bad] += second.iterations
    return replace(assemble([(every, found), (bad, second)], every.size, found.unknowns), iterations=spent)


def _better(a: Solution, b: Solution) -> Solution:
    """Point by point b where it converged or has the smaller residual, else a."""
    near = np.nan_to_num(np.asarray(b.residual), nan=np.inf) <= np.nan_to_num(np.asarray(a.residual), nan=np.inf)
    use = np.flatnonzero(np.asarray(b.converged) | (~np.asarray(a.converged) & near))
    every = np.arange(np.size(a.converged))
    return a if not use.size else assemble([(every, a), (use, pick(b, use))], every.size, a.unknowns)


def pick(s: Solution, k: Array) -> Solution:
    """The points k of a batch."""
    fields = {f: v[k] if np.ndim(v := getattr(s, f)) else v for f in _ARRAYS}
    return replace(s, value={n: np.asarray(v)[k] for n, v in s.value.items()}, **fields)


def _usable(x: Array, fallback: Array, positive: Any, names: Sequence[str]) -> Array:
    bad = ~np.isfinite(x) | (positive_mask(positive, names)[:, None] & ~(x > 0))
    return np.where(bad.any(axis=0), fallback, x)


