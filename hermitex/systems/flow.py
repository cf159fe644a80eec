"""Flow: dx/dt = rhs(t, x), order parameters over time, with E(...) nodes, as a paper prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from sympy import Eq, S, Symbol

from hermitex.errors import BadInput, Divergent, brief
from hermitex.hints import Numbers, Place
from hermitex.show.display import latex
from hermitex.solvers.ode import Trajectory
from hermitex.solvers.solve_limits import limit_time
from hermitex.symbolic.parsing import expression, parse
from hermitex.symbols import is_normal_name
from hermitex.systems.blocks import Block, Equation
from hermitex.systems.compiled_system import CompiledSystem, compile_program
from hermitex.systems.names import by_name, names_list
from hermitex.systems.scope import free_names
from hermitex.systems.system import System
from hermitex.systems.trajectory import OF_A_FLOW, TIME, many

if TYPE_CHECKING:
    from hermitex.systems.export import Exported

_ADVICE = "a looser tolerance=, a shorter time, or method='Radau'"
_NOT_HERE = "a Flow has no fixed-point equations: {0} is for a System; .solve(t=...) integrates it"


@dataclass(frozen=True, eq=False, repr=False)
class Flow(System):
    r"""Ordinary differential equations of order parameters: {m: dm/dt}, compiled as a System is.

        dx_i/dt = rhs_i(t, x, parameters),    x(t_0) = start

    Parameters
    ----------
    equations : {variable: its rate}; the letter t in it is the time
    where, observables, parameters, source : as of a `System`
    domain : {variable: (lo, hi)}, where its rate is defined; a flow that leaves it has not converged, and says when
    start : {variable: number}: kept by sweep, export and specs; `.solve(start=...)` replaces it

    Raises
    ------
    BadInput : an implicit equation, a variable named t, a start outside of the domain, and what a `System` refuses.

    Guarantee
    ---------
    The right sides are evaluated as those of a System; the integration keeps its tolerance at the times reported. See
    docs/promise.md.

    Examples
    --------
    >>> from sympy import erf, sqrt
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import m, z, z1
    >>> learning = Flow({m: (1 - m**2)*E(z*erf(m*z + sqrt(1 - m**2)*z1), z, z1)}, domain={m: (-1, 1)})
    >>> path = learning.solve(t=[0, 1, 2], start={m: 0.1})
    >>> path["m"].round(9)
    array([0.1       , 0.18931573, 0.34689669])
    >>> round(path.at(1.0)["m"], 8)
    0.18931573

    `events={name: expression}` reports the times at which the expression is 0; `terminal=[name]` ends the flow at the first.

    >>> escape = learning.solve(t=10, start={m: 0.1}, events={"escape": "m - 1/2"}, terminal=["escape"])
    >>> escape.events["escape"]["t"].round(6), round(escape["m"], 9)
    (array([2.683552]), 0.5)
    """

    is_flow: ClassVar[bool] = True
    known: ClassVar[tuple[str, ...]] = (TIME,)

    def __post_init__(self, declared: Any) -> None:
        if self.parameters is not None and TIME not in map(str, names_list(self.parameters)):
            object.__setattr__(self, "parameters", [*names_list(self.parameters), TIME])
        super().__post_init__(declared)
        for u, v in self.equations.items():
            if isinstance(v, Eq):
                raise BadInput(f"Flow: the equation of {u} is implicit; give its rate d{u}/dt alone, {{{u}: rate}}")
        if TIME in {s.name for s in (*self.equations, *self.where, *self.observables)}:
            raise BadInput(f"Flow: {TIME} is the time; call the variable or the observable otherwise")
        object.__setattr__(self, "parameters", tuple(p for p in self.parameters if p.name != TIME))

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        """Every rate by itself: nothing is solved for."""
        self._closed_functions()
        return tuple(Block((u,), "explicit") for u in self.equations)

    @property
    def _time(self) -> Symbol:
        memo: dict[Any, Any] = {}
        found = (s for e in self._all() for n, s in free_names(e, self.where, memo).items() if n == TIME)
        return next(found, Symbol(TIME, real=True))

    @property
    def _rates(self) -> dict[Symbol, Equation]:
        """The rates, and dt/dt = 1, so that averages that depend on t are not tabulated."""
        return {**self.written, self._time: Equation(self._time, S.One)}

    # -- numbers -----------------------------------------------------------------------------------------------------
    def compile(self, events: Mapping[str, Any] | None = None) -> CompiledSystem:
        """The compiled `CompiledSystem` of the rates and observables; `events` become further observables."""
        more = {Symbol(n, real=True): self._read(e) for n, e in (events or {}).items()}
        cache = self.__dict__.setdefault("_programs", {})
        key = tuple(more.items())
        if key not in cache:
            if more:
                read = replace(self, observables={**self.observables, **more}, parameters=[p.name for p in self.parameters])
                cache[key] = read.compile()
                return cache[key]
            letters = {s.name for s in (*self.equations, *self.parameters)} | {TIME}
            memo: dict[Any, Any] = {}
            scalars = [k for k in self.where if set(free_names(k, self.where, memo)) <= letters]
            where = {k: self._stable(v) for k, v in self.where.items()}
            observables = {**{k: self._write(k) for k in scalars}, **{o: self._write(e) for o, e in self.observables.items()}}
            try:
                blocks_and_time = (*self.blocks, Block((self._time,), "explicit"))
                cache[key] = compile_program(self._rates, blocks_and_time, parameters=self.parameters, where=where, scalars=scalars,
                                             observables=observables, positive=frozenset(), doc=self.source, kept=self._names,
                                             laws=self._laws())
            except Divergent as error:
                raise BadInput(f"Flow: {error.integral} does not exist: {error.reason}") from error
        return cache[key]

    def _read(self, e: Any) -> Any:
        """An expression, or a text in the letters of the flow."""
        if not isinstance(e, str):
            return expression(e)
        own = {s.name: s for s in (*self.equations, *self.where, *self.observables, *self.parameters, self._time)}
        return parse(e, symbols=own).xreplace(self.observables)

    def solve(self, numbers: Mapping[str, Any] | None = None, *, t: Numbers | None = None,  # type: ignore[override]
              start: Mapping[str, Any] | None = None, tolerance: float = OF_A_FLOW, method: str = "auto",
              events: Mapping[str, Any] | None = None, terminal: str | Sequence[str] = (), budget: float | None = None,
              progress: bool = False, raise_on_failure: bool = True, **keywords: Any) -> Trajectory:
        """Integrate from the start over time -> Trajectory.

        Parameters
        ----------
        t : times to report, the first of them where the flow starts; (t0, t1) for the integrator's own steps; or the time to
            reach from 0, and then every value is that at its end
        start : {variable: number}, in addition to the start of the flow itself
        tolerance : relative, of every variable at every time reported: a second integration on other nodes and with other
            steps must give the same (a variable counts as no smaller than a thousandth of its largest value)
        method : of scipy.integrate.solve_ivp; "auto" is DOP853, and Radau where that takes too many steps
        events : {name: expression in variables, observables, parameters and t}: `.events[name]` is where it passes through 0
            (a touch is not seen); those named in `terminal` end the integration, and are its last row
        budget : CPU seconds; a flow that is not done by then has not converged, and says so
        progress : write on stderr how much of the time is integrated; the averages are checked by a second integration, or more
        numbers, keywords : parameters; arrays broadcast, and the times are then the last axis of every value

        Raises
        ------
        BadInput : a parameter, a start or t is missing, unknown or not finite. NotConverged with what was reached.
        Guarantee
        ---------
        Each step keeps `tolerance`, relative to the state. A flow that leaves its domain ends there and says so. See
        docs/promise.md.
        """
        parameters = [p.name for p in self.parameters]
        given = by_name("solve", numbers, keywords, parameters=parameters)
        if not isinstance(events or {}, Mapping):
            raise BadInput(f"solve: events is {{name: expression that is 0 then}}, {{'half': 'm - 1/2'}}, not {brief(events)}")
        own = {str(k): self._read(v) for k, v in (events or {}).items()}
        taken = {s.name for s in (*self.equations, *self.where, *self.observables, *self.parameters, self._time)}
        for name, e in own.items():
            if name in taken or is_normal_name(name):
                raise BadInput(f"solve: {name} is a letter of the flow; give the event another name")
            if e.is_number:
                raise BadInput(f"solve: the event {name} is the number {e}: it is 0 always or never, and no event")
        program = self.compile(events=own)
        with limit_time(budget):
            found = many(program, given, {**self.start, **self._begin(start, given)}, t, domain=self.domain, tolerance=tolerance,
                         method=method, events=tuple(own), terminal=tuple(map(str, names_list(terminal))), progress=progress)
        found = found.at_numbers(given, (k.name for k in self.where))
        advice = "a looser tolerance= or a shorter time" if "Radau" in np.ravel(found.method) else _ADVICE
        return found.require(advice) if raise_on_failure else found  # type: ignore[return-value]

    def export(self, path: Place, *, reference: Any = None, start: Mapping[str, Any] | None = None,  # type: ignore[override]
               tolerance: float = OF_A_FLOW, **numbers: Any) -> Exported:
        """Write a standalone integrator with the formulas and its own self-test; it needs NumPy, and SciPy for special functions.

        reference : {parameter: number, "t": the time to reach}, one point or several, for the self-test; or as in `solve`
        """
        return super().export(path, reference=reference, start=start, tolerance=tolerance, **numbers)

    def branches(self, *args: Any, **keywords: Any) -> NoReturn:
        """Not of a flow."""
        raise BadInput(_NOT_HERE.format("branches"))

    def follow(self, *args: Any, **keywords: Any) -> NoReturn:
        """Not of a flow."""
        raise BadInput(_NOT_HERE.format("follow"))

    def minimise(self, *args: Any, **keywords: Any) -> NoReturn:
        """Not of a flow."""
        raise BadInput(_NOT_HERE.format("minimise"))

    # -- showing -----------------------------------------------------------------------------------------------------
    def latex(self) -> str:
        """An align block, one rate a line, in the order given."""
        rates = [rf"  \frac{{d {latex(u)}}}{{dt}} &= {latex(v)}" for u, v in self.equations.items()]
        rest = [rf"  {latex(a)} &= {latex(b)}" for a, b in (*self.where.items(), *self.observables.items())]
        return "\\begin{align}\n" + " \\\\\n".join([*rates, *rest]) + "\n\\end{align}"

    def to_dict(self) -> dict[str, Any]:
        """The formulas as text that `hermitex.parse` reads back; the rates are under "flow"."""
        found = super().to_dict()
        return {"flow": found.pop("equations"), **{k: v for k, v in found.items() if k not in ("blocks", "positive")}}
