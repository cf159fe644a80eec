"""Solving a compiled system with NumPy alone: the text of this module is what an exported file runs.

    tables  ->  block 1, block 2, ...  ->  max |x - rhs(x)|/|x| over every equation,   undamped

A block is explicit, linear, or solved by Newton's method; the steps are those of the session, and so are the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hermitex.solvers import linear
from hermitex.systems.run import EXCUSED, FLOOR, SMALL, chain_of, rounding_of_rows

CHUNK = 512  # points solved at once
ROUNDING = 256 * float(np.finfo(float).eps)  # a residual below this is noise of the summation


class Block(NamedTuple):
    """Unknowns that are solved for together; `torn` those of Newton's method, `members` computed from them."""

    kind: str
    unknowns: tuple[str, ...]
    torn: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    positive: tuple[bool, ...] = ()  # torn unknowns that are solved for in logarithms
    explicit: tuple[bool, ...] = ()  # torn unknowns whose equation reads x = rhs


class Axis(NamedTuple):
    """An integration variable, and how deep its expectation stands within others."""

    identifier: str
    depth: int


class Code(NamedTuple):
    """The generated functions by name, and what they speak of."""

    functions: dict[str, Any]
    parameters: tuple[str, ...]
    unknowns: tuple[str, ...]
    observables: tuple[str, ...]
    implicit: tuple[str, ...]
    blocks: tuple[Block, ...]
    quadratures: Any  # called for fresh rules


class NotSolved(ArithmeticError):
    """Some points did not converge; `.values` holds the last state, `.converged` says which points are good."""


class Exact:
    """Takes the place of the quadratures where every expectation has a closed form."""

    ndim, error = 1, np.zeros(1)

    def arrays(self) -> dict[str, Any]:
        """No nodes."""
        return {}

    def examine(self, run: Any, tolerance: float) -> Any:
        """Run once; nothing can be refined."""
        run(None)
        return np.ones(1, dtype=bool)


def solve_all(code: Code, numbers: Mapping[str, Any], start: Mapping[str, Any], tolerance: float) -> dict[str, Any]:
    """Every unknown and observable in the common shape of the parameters."""
    given = {n: np.asarray(v, dtype=float) for n, v in numbers.items()}
    for n, v in given.items():
        if not np.isfinite(v).all():
            raise ValueError(f"{n} must be finite")
    shape = np.broadcast_shapes(*(v.shape for v in given.values()))
    flat = {n: np.broadcast_to(v, shape).ravel() if v.ndim else v for n, v in given.items()}
    points = int(np.prod(shape))
    runs = []
    for first in range(0, points, CHUNK):
        some = {n: v[first:first + CHUNK] if v.ndim else v for n, v in flat.items()}
        runs.append(Run(code, some, min(CHUNK, points - first), tolerance))
        runs[-1].solve(start)
    values = {n: np.concatenate([r.values[n] for r in runs]) for n in runs[0].values}
    if not values["converged"].all():
        bad = np.flatnonzero(~values["converged"])
        where = ", ".join(f"{n} = {np.broadcast_to(v, points)[bad[0]]:g}" for n, v in flat.items())
        residual, quadrature = (float(values[n][bad[0]]) for n in ("residual", "quadrature_error"))
        error = NotSolved(f"{bad.size} of {points} points did not converge, the first at {where}: the residual is "
                          f"{residual:.1e} and the quadrature error {quadrature:.1e}; try start={{unknown: value}} "
                          "from a neighbouring point, or a looser tolerance")
        error.values, error.converged = values, values["converged"]  # type: ignore[attr-defined]
        raise error
    return {n: v.reshape(shape) if shape else v[0] for n, v in values.items()}


class Run:
    """One batch of points. Arrays have an axis for the points and one for each integration variable."""

    def __init__(self, code: Code, numbers: Mapping[str, Any], points: int, tolerance: float) -> None:
        self.code, self.points, self.tolerance = code, points, tolerance
        self.quad = code.quadratures()
        self.s = {n: self.column(v) if np.ndim(v) else float(v) for n, v in numbers.items()}
        self.start: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.rounding: dict[str, Any] = {}

    def column(self, v: Any) -> Any:
        return np.asarray(v, dtype=float).reshape(-1, *[1]*(self.quad.ndim - 1))

    def row(self, v: Any) -> Any:
        return np.broadcast_to(np.asarray(v, dtype=float).reshape(-1), (self.points,))

    def call(self, name: str, average: Any = None) -> dict[str, Any]:
        """Run a generated function, with another `average` (one that records its errors) if given."""
        functions, plain = self.code.functions, self.code.functions.get("average")
        try:
            if average is not None:
                functions["average"] = average
            return functions[name](self.s, self.quad.arrays())  # type: ignore[no-any-return]
        finally:
            functions["average"] = plain

    def solve(self, start: Mapping[str, Any]) -> None:
        """Solve, and refine the quadrature until every average in the solution holds its tolerance."""
        self.start = dict(start)
        quality = max(self.tolerance/3, 1e-15)
        with np.errstate(all="ignore"):
            for _ in range(40):
                self.settle_tables(quality)
                for k, block in enumerate(self.code.blocks, start=1):
                    self.block(f"block_{k}", block)
                out: dict[str, Any] = {}
                if self.quad.examine(self.into(out, "right_hand_sides", "observables"), quality).all():
                    break
                self.start = {u: np.array(self.row(self.s[u])) for u in self.code.unknowns}
            self.finish(out)

    def settle_tables(self, quality: float) -> None:
        """What no unknown enters is computed, and its quadrature refined, before anything is solved."""
        for _ in range(40):
            tables: dict[str, Any] = {}
            good = self.quad.examine(self.into(tables, "tables"), quality)
            self.s.update(tables)
            if good.all():
                return

    def into(self, out: dict[str, Any], *names: str) -> Any:
        """A function that runs generated functions with a given `average` and puts their results into `out`."""
        def run(average: Any) -> None:
            def absolute(values: Any, weights: Any, axis: int) -> Any:
                return average(values, weights, axis, floor=FLOOR)

            for name in names:
                out.update(self.call(name, absolute if average and name == "observables" else average))

        return run

    def block(self, name: str, block: Block) -> None:
        if block.kind == "explicit":
            found = {u: self.call(name)[f"rhs/{u}"] for u in block.unknowns}
        elif block.kind == "linear":
            found = self.linear(block, self.call(name))
        else:
            found = self.nonlinear(name, block)
        self.s.update({u: self.column(self.row(v)) for u, v in found.items()})

    def linear(self, block: Block, out: dict[str, Any]) -> dict[str, Any]:
        """A x = b, the explicit members eliminated first; the solution of least norm where the rest is singular."""
        A = np.array([[self.row(out[f"matrix/{u}/{v}"]) for v in block.unknowns] for u in block.unknowns])
        b = np.array([-self.row(out[f"constant/{u}"]) for u in block.unknowns])
        rows = A.copy(), b.copy()
        torn, members = ([block.unknowns.index(u) for u in names] for names in (block.torn, block.members))
        for k in members:  # row k reads x_k + sum_j A_kj x_j = b_k
            for i in (*torn, *(j for j in members if j != k)):
                factor = A[i, k].copy()
                A[i] -= factor*A[k]
                b[i] -= factor*b[k]
        x = b.copy()
        x[torn], _ = linear.solve(A[np.ix_(torn, torn)], b[torn])
        for k in members:
            x[k] = b[k] - np.einsum("jb,jb->b", A[k][torn], x[torn])
        self.rounding.update(zip(block.unknowns, rounding_of_rows(*rows, x, members), strict=True))
        return dict(zip(block.unknowns, x, strict=True))

    def nonlinear(self, name: str, block: Block) -> dict[str, Any]:
        def evaluate(x: Any) -> Any:
            self.s.update({u: self.column(v) for u, v in zip(block.torn, x, strict=True)})
            out = self.call(name)
            self.s.update({u: out[u] for u in block.members})
            return chain_of(block, out, x)  # type: ignore[arg-type]

        logs = np.array(block.positive)[:, None]
        x0 = np.array([self.first(u, positive) for u, positive in zip(block.torn, block.positive, strict=True)])
        x, solved = newton(evaluate, x0, logs, self.tolerance)
        if not solved.all() and all(block.explicit):
            near = damped(evaluate, x0, logs)
            again, better = newton(evaluate, np.where(solved, x, near), logs, self.tolerance)
            x = np.where(better & ~solved, again, x)
        evaluate(x)
        return {u: self.s[u] for u in block.unknowns}

    def first(self, u: str, positive: bool) -> Any:
        default = 1.0 if positive else 0.0
        v = self.row(self.start.get(u, default))
        return np.where(np.isfinite(v) & ((v > 0) | (not positive)), v, default)

    def finish(self, out: dict[str, Any]) -> None:
        """The verdict: the residual of every equation and the error of every average."""
        residual = np.zeros(self.points)
        for u in self.code.unknowns:
            x, rhs = self.row(self.s[u]), self.row(out[f"rhs/{u}"])
            size = np.maximum(np.abs(x), SMALL)
            gap = np.abs(rhs if u in self.code.implicit else x - rhs)
            gap = np.maximum(gap - np.minimum(self.rounding.get(u, 0.0), EXCUSED*size), 0.0)
            gap = gap if u in self.code.implicit else gap/size
            residual = np.maximum(residual, np.where(np.isfinite(gap), gap, np.inf))
            self.values[u] = x
        self.values.update({n: self.row(out[n]) for n in self.code.observables})
        good = (residual <= max(100*self.tolerance, 1e-9)) & (self.quad.error <= max(1e3*self.tolerance, 1e-9))
        self.values.update(residual=residual, quadrature_error=self.row(self.quad.error), converged=good)


def newton(evaluate: Any, x: Any, logs: Any, tolerance: float) -> tuple[Any, Any]:
    """Newton's method at every point, positive unknowns in logarithms: x, and which points are solved.

    A step is halved until the residual or, for the first steps, the next Newton step is smaller.
    """
    floor = np.where(logs, 0.0, 1e-14/tolerance)
    solved, active, singular = (np.full(x.shape[1], v) for v in (False, True, False))
    F, J = evaluate(x)
    for step in range(101):
        size = np.abs(x) + floor
        unit = np.where(logs, 1.0, size)
        terms = np.einsum("ijb,jb->ib", np.abs(J), size)  # the size of what each equation sums
        terms = np.where((terms > 0) & np.isfinite(terms.sum(axis=0)), terms, 1.0)
        R, G = in_logarithms(F, J, x, logs)
        d = linear.step(G, -R)
        lost = np.flatnonzero(active & ~((np.abs(d)/unit).max(axis=0) <= 1e6))
        if lost.size:  # singular there: the step of least norm
            d[:, lost], rank = linear.solve(G[..., lost], -R[:, lost])
            singular[lost[rank < len(x)]] = True
        backward, forward = (np.abs(F)/terms).max(axis=0), (np.abs(d)/unit).max(axis=0)
        enough = (forward <= tolerance) | (singular & (backward <= ROUNDING))
        done = (backward <= tolerance) & enough | (backward == 0)
        solved |= active & done
        active &= ~done & np.isfinite(d.sum(axis=0))
        if not active.any() or step == 100:
            return x, solved
        # Halve the step, point by point, until the residual falls.
        weight = np.where(logs, 1.0, terms)
        before = ((R/weight)**2).sum(axis=0)
        t = np.minimum(1.0, 4.0/np.maximum(np.where(logs, np.abs(d), 0.0).max(axis=0), 4.0))
        small = active & (backward <= ROUNDING)
        for _ in range(25):
            trial = np.where(active, np.where(logs, x*np.exp(np.where(logs, t*d, 0.0)), x + t*d), x)
            F_new, J_new = evaluate(trial)
            R_new = in_logarithms(F_new, J_new, trial, logs)[0]
            fine = ((R_new/weight)**2).sum(axis=0) <= (1 - 1e-4*t)*before
            if step < 25:
                fine |= np.abs(linear.step(G, R_new)).max(axis=0) <= (1 - t/4)*np.abs(d).max(axis=0)
            fine &= np.isfinite(J_new.sum(axis=(0, 1)))
            halve = active & ~fine & ~small
            if not halve.any():
                break
            t = np.where(halve, t/2, t)
        solved |= small & ~fine  # below the rounding of its terms a residual cannot be lowered
        active &= fine
        x = np.where(active, trial, x)
        F, J = np.where(active, F_new, F), np.where(active, J_new, J)
    return x, solved


def in_logarithms(F: Any, J: Any, x: Any, logs: Any) -> tuple[Any, Any]:
    """Rows and columns of positive unknowns for log x: R = log x - log rhs, continued by its tangent beyond F = x/2."""
    scaled = np.where(logs, F/np.where(logs, x, 1.0), 0.0)
    inside = np.minimum(scaled, 0.5)
    R = np.where(logs, 2*(scaled - inside) - np.log1p(-inside), F)
    G = J*np.where(logs, x, 1.0)
    G = G/np.where(logs, x, 1.0)[:, None] - np.eye(len(x))[:, :, None]*scaled[:, None]
    return R, G/np.where(logs, np.maximum(1 - scaled, 0.5), 1.0)[:, None]


def damped(evaluate: Any, x: Any, logs: Any) -> Any:
    """x <- (x + rhs)/2, or sqrt(x rhs) for positive unknowns: another start for Newton's method where it got lost."""
    for _ in range(500):
        rhs = x - evaluate(x)[0]
        rhs = np.where(np.isfinite(rhs) & ((rhs > 0) | ~logs), rhs, x)
        x = np.where(logs, np.sqrt(np.abs(x*rhs)), (x + rhs)/2)
    return x
