"""How a solution moves with a parameter, by the implicit function theorem:  (1 - D) dx/dp = d rhs/dp,  D_uv = d rhs_u/d v.

Every partial derivative is a formula, taken as those of Newton's method are, and compiled with its averages; an observable o
moves by  do/dp = d o/dp + sum_v (d o/d v) dv/dp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, Symbol

from hermitex.errors import BadInput, UnknownName
from hermitex.show.columns import ridge
from hermitex.solvers.linear import least_singular_value
from hermitex.solvers.linear import solve as solve_linear
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.gaussian import Expectation
from hermitex.systems.blocks import Block, Equation
from hermitex.systems.compiled_system import compile_program
from hermitex.systems.derivatives import KeptNames, partials
from hermitex.systems.scope import depends_on, written_out
from hermitex.systems.state_evaluation import States


class SolvedPoint(NamedTuple):
    """The system of a Solution, and the numbers at which it was solved."""

    system: Any
    numbers: Mapping[str, Any]

    def derivative(self, solution: Any, name: str) -> dict[str, Any]:
        """See `Solution.derivative`."""
        return derivative(self.system, self.numbers, solution, name)


class Slopes:
    """The partial derivatives of a system by its unknowns and one parameter, compiled; `of(states)` gives them as arrays."""

    def __init__(self, system: Any, parameter: str) -> None:
        self.unknowns = tuple(u.name for u in system.unknowns)
        self.observables = tuple(o.name for o in system.observables)
        self.implicit = np.array([hasattr(v, "lhs") for v in system.equations.values()])
        p = next(s for s in system.parameters if s.name == parameter)
        write, names = _writer(system, p)
        rows = {u: write(e.lhs - e.rhs if hasattr(e, "lhs") else e) for u, e in system.equations.items()}
        formulas = {**rows, **{o: write(e) for o, e in system.observables.items()}}
        self.place: dict[Symbol, tuple[str, str]] = {}
        made: dict[Symbol, Expr] = {}
        for row, e in formulas.items():
            for v, slope in partials(e, (*system.unknowns, p), names):
                label = Symbol(f"slope_{len(made)}_", real=True)
                self.place[label], made[label] = (row.name, v.name), slope
        for u, e in rows.items():  # with their slopes: the averages of both are computed once
            label = Symbol(f"slope_{len(made)}_", real=True)
            self.place[label], made[label] = (u.name, ""), e
        equations = {u: Equation(u, e) for u, e in rows.items()}
        blocks = tuple(Block((u,), "explicit") for u in rows)
        where = {k: write(v) for k, v in system.where.items()}
        self.parameter = parameter
        self.program = compile_program(equations, blocks, parameters=system.parameters, where=where, scalars=(), observables=made,
                                       positive=frozenset(), kept=names)

    def of(self, states: States, x: Mapping[str, Any], points: int, nodes: Mapping[str, Any] | None = None
           ) -> tuple[np.ndarray, ...]:
        """(J, b, C, c, r) at the states x: J dx/dp = b for the unknowns, do/dp = C dx/dp + c for the observables.

        r are the right-hand sides, of implicit equations the left without the right. The averages are over `nodes`, or those in
        force.
        """
        found = states.call("observables", x, nodes)
        known = {self.place[s]: np.broadcast_to(found[s.name], (points,)) for s in self.place}

        def matrix(rows: tuple[str, ...], columns: tuple[str, ...]) -> np.ndarray:
            zero = np.zeros(points)
            return np.array([[known.get((r, c), zero) for c in columns] for r in rows]).reshape(len(rows), len(columns), points)

        D, by = matrix(self.unknowns, self.unknowns), matrix(self.unknowns, (self.parameter,))[:, 0]
        J = np.where(self.implicit[:, None, None], D, np.eye(len(self.unknowns))[:, :, None] - D)
        b = np.where(self.implicit[:, None], -by, by)
        return (J, b, matrix(self.observables, self.unknowns), matrix(self.observables, (self.parameter,))[:, 0],
                matrix(self.unknowns, ("",))[:, 0])


def compiled_slopes(system: Any, parameter: str) -> Slopes:
    """Those of a system, kept with it."""
    cache = system.__dict__.setdefault("_slopes", {})
    if parameter not in cache:
        cache[parameter] = Slopes(system, parameter)
    return cache[parameter]  # type: ignore[no-any-return]


def _writer(system: Any, p: Symbol) -> tuple[Any, KeptNames]:
    """e -> e with every name written out that an unknown or the parameter enters, but for the kept ones."""
    unknowns = depends_on(system.where, set(system.equations))
    kept = {k for k in system.kept if k in unknowns} | _moved_by(p, system, unknowns)
    moving = {k: v for k, v in depends_on(system.where, {*system.equations, p}).items() if k not in kept}
    letters = {s.name: s for v in system.where.values() for s in v.free_symbols if isinstance(s, Symbol)}

    def write(e: Expr) -> Expr:
        return written_out(e, moving, letters)

    return write, KeptNames({k: write(system.where[k]) for k in kept}, system._names.hides)


def _moved_by(p: Symbol, system: Any, unknowns: Mapping[Symbol, Expr]) -> set[Symbol]:
    """The names that p enters and no unknown: their slopes are taken once. None, where a switch moves under an average of them."""
    found = {k for k in depends_on(system.where, {p}) if k not in unknowns}
    formulas = (*system.equations.values(), *system.observables.values(), *system.where.values())
    nodes = {n for e in formulas for n in e.atoms(Expectation)}
    moved = {n for n in nodes if any(s.free_symbols & {p, *found} for s in n.body.atoms(*SWITCHES))}
    return set() if any(n.free_symbols & found for n in moved) else found


def parameter_of(system: Any, name: str) -> str:
    """The name of a parameter that is one number."""
    arrays = {a.name for a in system.arrays}
    names = [p.name for p in system.parameters if p.name not in arrays]
    found = ridge(str(name), names)
    if found in arrays:
        raise BadInput(f"{found} is an array; what varies is one number")
    if found not in names:
        raise UnknownName(str(name), names, "parameter")
    return found


def derivative(system: Any, numbers: Mapping[str, Any], solution: Any, name: str) -> dict[str, Any]:
    """{unknown or observable: its total derivative by the parameter}; NaN where there is none (a fold, a failed point).

    Beside a fold an error e of the equations is one of e/s in the solution, s the least singular value of 1 - D, along the
    derivative itself; where that changes s by more than 1e-6 of it, fewer than six digits hold and the derivative is NaN, too.
    """
    made = compiled_slopes(system, parameter_of(system, name))
    program, given = made.program.bound(numbers)
    shape = np.broadcast_shapes(*(np.shape(v) for v in given.values())) if given else ()
    x = {u: np.asarray(solution[u], dtype=float) for u in made.unknowns}
    if int(np.prod(shape)) == 1 and all(v.shape == () for v in x.values()):  # the only point of a batch of one
        given, shape = {n: np.asarray(v, dtype=float).reshape(()) for n, v in given.items()}, ()
    if any(v.shape != shape for v in x.values()):
        raise BadInput("derivative: this is one point of a batch; take .derivative of the batch, or solve at that point")
    points = int(np.prod(shape))
    flat = {n: np.broadcast_to(np.asarray(v, dtype=float), shape).ravel() if np.ndim(v) else float(v) for n, v in given.items()}
    rows = {u: v.ravel() if shape else v.reshape(1) for u, v in x.items()}
    states = States(program, flat, 1e-12)
    states.examine(rows, ("observables",))
    held = 1e-9  # the error of an average in a derivative that still counts
    digits = 1e-6  # relative: what the error of the solution may change in a derivative
    eps = 2.2e-16  # 2^-52, the rounding of a float
    with np.errstate(all="ignore"):
        J, b, C, c, _ = made.of(states, rows, points)
        good = np.ravel(np.asarray(solution.converged)) & np.isfinite(J).all(axis=(0, 1)) & np.isfinite(b).all(axis=0)
        good = good & _regular_points(J)
        dx = solve_linear(np.where(good, J, np.eye(len(J))[:, :, None]), np.where(good, b, 0.0))[0]
        do = np.einsum("ovb,vb->ob", C, dx) + c
        size = np.abs(np.array(list(rows.values())))
        error = np.maximum(eps, np.ravel(np.asarray(solution.residual)))
        size = np.where(size > error, size, 1.0)  # what is 0, to the error it has, has no size of its own
        terms = np.where(made.implicit[:, None], np.abs(J*size).max(axis=1)/size, 1.0)
        long = (np.abs(dx)/size).max(axis=0)
        errors = states.errors
        if np.any(errors > held):  # of an average of nothing but rounding, it counts whether it moves the derivative
            J2, b2, C2, c2, _ = made.of(states, rows, points, states.other)
            dx2 = solve_linear(np.where(good, J2, np.eye(len(J))[:, :, None]), np.where(good, b2, 0.0))[0]
            noise = 1e-14  # of the largest: the rounding of a sum over nodes
            gaps = [np.abs(dx2 - dx)/np.maximum(np.abs(dx), noise/held*size*long),
                    np.abs(np.einsum("ovb,vb->ob", C2, dx2) + c2 - do)/np.maximum(
                        np.abs(do), noise/held*(np.einsum("ovb,vb->ob", np.abs(C), np.abs(dx)) + np.abs(c)))]
            errors = np.minimum(errors, np.nan_to_num(np.concatenate(gaps), nan=np.inf).max(axis=0))
            good = good & (errors <= held)
        rounding = np.maximum(eps, errors)
        off = np.maximum(np.ravel(np.asarray(solution.residual)), rounding)/(least := least_singular_value(J/terms[:, None], size))
        beside = {u: v + off*d/np.where(long > 0, long, 1.0) for (u, v), d in zip(rows.items(), dx, strict=True)}
        there = least_singular_value(made.of(states, beside, points)[0]/terms[:, None], size)
        good = good & (np.abs(there - least) <= digits*least)
    found = {**dict(zip(made.unknowns, dx, strict=True)), **dict(zip(made.observables, do, strict=True))}
    whole = {n: np.where(good, v, np.nan).reshape(shape) for n, v in found.items()}
    return {n: v if shape else float(v) for n, v in whole.items()}


def _regular_points(J: np.ndarray) -> np.ndarray:
    """The points at which J, its rows and columns of one size, has an inverse."""
    M = np.where(np.isfinite(J), J, 0.0)
    M = M/np.maximum(np.abs(M).max(axis=1, keepdims=True), 1e-300)
    M = M/np.maximum(np.abs(M).max(axis=0, keepdims=True), 1e-300)
    sizes = np.linalg.svd(np.moveaxis(M, -1, 0), compute_uv=False)
    singular = 1e-13  # a reciprocal condition number below it: no derivative
    return np.asarray(sizes[:, -1] > singular*sizes[:, 0])
