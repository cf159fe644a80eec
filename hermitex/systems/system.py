"""System: self-consistent equations as a paper prints them, with E(...) nodes, and the methods that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from sympy import Basic, Derivative, Eq, Expr, Function, S, Subs, Sum, Symbol
from sympy.core.function import UndefinedFunction

from hermitex import symbols
from hermitex.errors import BadInput, Divergent, UnknownName, brief
from hermitex.hints import Letters, Place, Variables
from hermitex.kernels.residual_squares import square_residuals
from hermitex.kernels.sign_conditions import signs
from hermitex.show.columns import ridge
from hermitex.show.display import Shown, formula_table, latex
from hermitex.solvers.interval import interval_text
from hermitex.solvers.solution import Solution
from hermitex.symbolic.derivation import Derivation
from hermitex.symbolic.divergence import needed_far_out
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import arrays, read_sums, unsummed
from hermitex.symbolic.integral_averages import read_integrals
from hermitex.symbolic.law_constraints import Condition, apart
from hermitex.symbolic.laws import refuse_loose
from hermitex.symbolic.parsing import expression, to_text
from hermitex.systems.alike_terms import joined_sums
from hermitex.systems.blocks import Block, Equation, find_blocks
from hermitex.systems.compiled_system import CompiledSystem, DeferredProgram, compile_program
from hermitex.systems.complex_unknowns import write_by_parts
from hermitex.systems.derivatives import KeptNames
from hermitex.systems.domain import domains, starts
from hermitex.systems.equation_text import assumption_text, letters_of_texts, read_condition, read_formulas, with_tanh
from hermitex.systems.failed_average import name_failed_average
from hermitex.systems.indexed_unknowns import write_indexed
from hermitex.systems.iterate import require_method, solved_by
from hermitex.systems.matrices import flat_start, is_list_of_pairs, write_entrywise
from hermitex.systems.moving_ends import moving_ends, start_by_place, write_by_place
from hermitex.systems.names import by_name, check_distinct, names_list, read_start
from hermitex.systems.scope import depends_on, free_names, require_acyclic, written_out
from hermitex.systems.sensitivity import SolvedPoint, parameter_of

if TYPE_CHECKING:
    from hermitex.systems.export import Exported
    from hermitex.systems.follow import Branch

_FORMULAS = ("equations", "where", "observables")


@dataclass(frozen=True, eq=False, repr=False)
class System(Shown):
    """Equations that are solved together, in the order and the letters of their author.

    Parameters
    ----------
    equations : {unknown: right-hand side, or Eq(lhs, rhs)}, expressions or texts ("lhs = rhs"); an implicit equation belongs to
        the unknown under which it is given. An unknown may be a matrix of symbols (an ImmutableMatrix or a MatrixSymbol, or pairs
        [(Matrix, right-hand side)]): its entries are unknowns, repeated entries are stored once, and solution["Q"] gives
        the matrix of Q11, Q12, .... D[k] with k = Idx("k", 3) means D0, D1, D2. An unknown declared complex,
        Symbol("G", complex=True), is solved for in its parts G_re and G_im, and solution["G"] gives the number; all other
        letters are real then.
    where : {name: sub-expression}: names that stay in print; their standard normals are those of the expectation around
    parameters : names or symbols that get numbers later (default: all other letters of the equations)
    observables : {name: expression} computed from the solution
    positive : further positive unknowns whose symbol does not say so; they are solved for in logarithms
    source : where the equations come from
    domain : {unknown: (lo, hi)}, open intervals, or texts "0 < q < 1": such an unknown is sought in a coordinate of its interval,
        so that no step leaves it, and is in it, or at an end of it, which is then said, where a solution converged. Where an
        end is a parameter, "0 < q < rho", q is solved for by its place between the ends, the unknown q_part
    start : {unknown: number}: where the solvers begin, as good as one given to `.solve`; kept by sweeps, files and specs. 0 for a
        positive unknown asks whether it is 0, a boundary towards which iteration contracts, before anything else
    kept : `where` names that stay names in derivatives too, which are taken through them by the chain rule: for long averages
        that depend on unknowns through a few quantities only, and do not jump where these move. Their random variables are
        those of outermost expectations.
    conditions : what the parameters of laws must satisfy at every point that is solved; those of the averages in the formulas
        are found there. Each a Condition, or as `to_dict` gives it, ["Bernoulli", "b", "[0 1]"]
    symbols : further letters of formulas given as texts: "a, b>0" or {"a": "real"}

    Raises
    ------
    BadInput : an equation contains a name that is neither unknown, `where` name nor parameter; a standard normal occurs
        outside of every expectation; `where` runs in a circle.

    Guarantee
    ---------
    The equations are solved as written; `solve` says what a solution promises. That they describe the model is not promised.
    See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import V, Vhat, alpha, lamda
    >>> ridge = System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
    >>> [str(b) for b in ridge.blocks]
    ['(Vhat, V): nonlinear, torn to (Vhat)']
    >>> round(ridge.solve(alpha=2, lamda=0.1)["V"], 6)
    0.844289
    """

    equations: Mapping[Any, Any]
    where: Mapping[Any, Any] = field(default_factory=dict)
    parameters: Any = None
    observables: Mapping[Any, Any] = field(default_factory=dict)
    positive: Any = ()
    source: str = ""
    name: str = ""
    kept: Any = ()
    domain: Mapping[Any, Any] = field(default_factory=dict)
    start: Mapping[Any, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    symbols: InitVar[Letters | None] = None

    is_flow: ClassVar[bool] = False  # whether the right-hand sides are rates
    known: ClassVar[tuple[str, ...]] = ()  # letters that no text need declare

    def __post_init__(self, declared: Any) -> None:
        put = object.__setattr__
        if not isinstance(self.equations, Mapping) and not is_list_of_pairs(self.equations):
            raise BadInput(f"System: equations are {{unknown: right side}}, {{'q': 'kappa*q'}}, not {brief(self.equations)}")
        if not self.equations:
            raise BadInput("System: no equation was given")
        entrywise = write_entrywise(self.equations, self.where, self.observables)
        for part, found in zip(_FORMULAS, write_indexed(*entrywise), strict=True):
            put(self, part, found)
        put(self, "parameters", None if self.parameters is None else names_list(self.parameters))
        self._check_names()
        known = self._letters(declared)
        for part in _FORMULAS:
            read = read_formulas(getattr(self, part), known, equations=part == "equations")
            put(self, part, {k: read_integrals(v) for k, v in read.items()})
        put(self, "equations", {_symbol(u): _right(u, v) for u, v in self.equations.items()})
        put(self, "where", {_symbol(k): expression(read_sums(v, part=True)) for k, v in self.where.items()})
        put(self, "observables", {_symbol(k): expression(v) for k, v in self.observables.items()})
        for part, found in zip(_FORMULAS, write_by_parts(self.equations, self.where, self.observables), strict=True):
            put(self, part, found)
        same = symbols.one_name(*(e for part in _FORMULAS for pair in getattr(self, part).items() for e in pair))
        for part in _FORMULAS:
            put(self, part, {k.xreplace(same): with_tanh(joined_sums(v.xreplace(same))) for k, v in getattr(self, part).items()})
        if ends := moving_ends(self.domain, known):
            self._place({u: (lo.xreplace(same), hi.xreplace(same)) for u, (lo, hi) in ends.items()})
        self._take_conditions(same, declared)
        put(self, "positive", frozenset(self._unknown(v) for v in names_list(self.positive))
            | frozenset(u for u in self.equations if u.is_positive or u.is_nonnegative))
        put(self, "kept", frozenset(self._where_name(n) for n in names_list(self.kept)))
        put(self, "parameters", self._parameters())
        self._check_names()
        names = {u.name: u.is_positive or u.is_nonnegative or u in self.positive for u in self.equations}
        put(self, "domain", domains(type(self).__name__, self.domain, tuple(names)))
        put(self, "start", starts(type(self).__name__, flat_start(self.start, names), self.domain, names))

    def _place(self, ends: Mapping[str, Any]) -> None:
        """Seek the unknowns between ends that are parameters by their places."""
        if self.is_flow:
            raise BadInput(f"Flow: the domain of {next(iter(ends))} ends at a parameter; that of a flow is between numbers")
        if stray := [k for k in flat_start(self.start, ()) if str(k) in ends]:
            raise BadInput(f"System: the domain of {stray[0]} ends at a parameter, so its start is given to solve, or here as that "
                           f"of its place, {stray[0]}_part, between 0 and 1")
        *formulas, places = write_by_place(self.equations, self.where, self.observables, ends)
        others = {k: v for k, v in self.domain.items() if str(k) not in ends}
        for part, found in zip((*_FORMULAS, "domain", "positive"), (*formulas, {**others, **places}, [
                v for v in names_list(self.positive) if str(v) not in ends]), strict=True):
            object.__setattr__(self, part, found)

    def _letters(self, declared: Any) -> dict[str, Any]:
        return letters_of_texts((*self.equations, *self.where, *self.observables, *(self.parameters or ()), *self.known), declared)

    def _take_conditions(self, same: Mapping[Any, Any], declared: Any) -> None:
        """The conditions of laws, from the formulas and as given."""
        found = dict.fromkeys(c if isinstance(c, Condition) else read_condition(c, self._letters(declared))
                              for c in self.conditions)
        for part in _FORMULAS:
            bare = {}
            for k, v in getattr(self, part).items():
                *sides, needed = apart(*((v.lhs, v.rhs) if isinstance(v, Eq) else (v,)))
                bare[k] = Eq(*sides, evaluate=False) if isinstance(v, Eq) else sides[0]
                found |= dict.fromkeys([*needed, *(c for e in sides for c in needed_far_out(e))])
            object.__setattr__(self, part, bare)
        object.__setattr__(self, "conditions", tuple(dict.fromkeys(c.xreplace(same) for c in found)))

    # -- reading -----------------------------------------------------------------------------------------------------
    @cached_property
    def derivation(self) -> Derivation:
        """The derivation of the equations from their free energy, made on first use."""
        made = self.__dict__.get("derived")
        if made is None:
            raise AttributeError(f"{type(self).__name__}: only a system made by free_energy has a derivation")
        return made()

    @property
    def unknowns(self) -> tuple[Symbol, ...]:
        """The unknowns in the order of their equations."""
        return tuple(self.equations)

    @property
    def arrays(self) -> dict[Symbol, int]:
        """The parameters that are arrays, with the number of their indices."""
        return arrays(*self._all())

    def _check_names(self) -> None:
        check_distinct({"an unknown": self.equations, "a where name": self.where, "an observable": self.observables,
                        "a parameter": self.parameters or ()})

    def _unknown(self, name: Any) -> Symbol:
        found = next((u for u in self.equations if u.name == str(name)), None)
        if found is None:
            raise UnknownName(str(name), [u.name for u in self.equations], "unknown of the system")
        return found

    def _where_name(self, name: Any) -> Symbol:
        found = next((k for k in self.where if k.name == str(name)), None)
        if found is None:
            raise UnknownName(str(name), [k.name for k in self.where], "where name in kept")
        return found

    def _parameters(self) -> tuple[Symbol, ...]:
        memo: dict[Any, Any] = {}
        used: dict[str, tuple[Symbol, str]] = {}
        sides = [(u.name, e) for u, v in self.equations.items() for e in ((v.lhs, v.rhs) if isinstance(v, Eq) else (v,))]
        for place, e in [*sides, *((o.name, e) for o, e in self.observables.items())]:
            for name, s in sorted(free_names(e, self.where, memo).items()):
                if s not in self.equations:
                    used.setdefault(name, (s, place))
        require_acyclic(self.where)
        self._check_sums(sides)
        integrated = {b.name for e in self._all() for node in e.atoms(Expectation) for b in node.bound}
        declared = None if self.parameters is None else [str(p) for p in self.parameters]
        for name, (_, place) in used.items():
            if symbols.is_normal_name(name):
                raise BadInput(f"System: the standard normal {name} occurs outside of every expectation in the equation of {place}")
            if declared is None and name in integrated:
                raise BadInput(f"System: {name} is integrated over in one place and occurs outside of every expectation in the "
                               f"equation of {place}; if it is a parameter there, declare it in parameters=")
            if declared is not None and name not in declared:
                raise BadInput(f"System: {name}, in the equation of {place}, is neither an unknown, a where name nor a parameter; "
                               "give its equation or declare it in parameters=")
        if declared is None:
            return tuple(s for s, _ in sorted(used.values(), key=lambda v: v[0].name))
        return tuple(used[n][0] if n in used else Symbol(n, real=True) for n in declared)

    def _check_sums(self, sides: list[tuple[str, Expr]]) -> None:
        """Refuse an array entry outside of every sum, after substituting the where names; a name is only one kind of thing."""
        everything = self._all()
        found = arrays(*everything)
        if not found and not any(unsummed(e) for e in everything):
            return
        for place, e in [*sides, *((o.name, e) for o, e in self.observables.items())]:
            if loose := unsummed(written_out(e, self.where)):
                raise BadInput(f"System: {loose[0]} occurs outside of every sum over its index in the equation of {place}")
        names = {a.name for a in found}
        numbers = {s.name for e in everything for s in _numbers_in(e)}
        if clash := sorted(names & (numbers | {u.name for u in (*self.equations, *self.where, *self.observables)})):
            raise BadInput(f"System: {clash[0]} is an array that is summed over, and a number elsewhere; give one another name")

    @cached_property
    def _moving(self) -> dict[Symbol, Expr]:
        """The where names that an unknown enters; the others stay names, for nothing is differentiated in them."""
        return {k: v for k, v in depends_on(self.where, set(self.equations)).items() if k not in self.kept}

    @cached_property
    def _names(self) -> KeptNames:
        """The names that stay names though unknowns enter them."""
        moving = depends_on(self.where, set(self.equations))
        own = {s.name for s in (*self.equations, *self.parameters)}
        memo: dict[Any, Any] = {}
        hides = {k: frozenset(set(free_names(k, self.where, memo)) - own) for k in self.where}
        return KeptNames({k: self._write(self.where[k]) for k in self.where if k in self.kept and k in moving}, hides)

    def _write(self, e: Expr) -> Expr:
        named = {s.name: s for v in self.where.values() for s in v.free_symbols if isinstance(s, Symbol)}
        return written_out(e, self._moving, named)

    def _stable(self, definition: Expr) -> Expr:
        """A definition for the kernels: a residual E f^2 - (E f)^2 - ... that no unknown enters is computed as a square."""
        written = self._write(definition)
        if self._names.reach(written) & set(self.equations) or not written.has(Expectation):
            return written
        full = written_out(definition, self.where)
        square = square_residuals(full)
        return written if square == full else square

    @cached_property
    def written(self) -> dict[Symbol, Equation]:
        """Every equation with the where names that an unknown enters written out."""
        found = {}
        for u, right in self.equations.items():
            if isinstance(right, Eq):
                found[u] = Equation(u, self._write(right.lhs - right.rhs), implicit=True)
            else:
                found[u] = Equation(u, self._write(right))
        return found

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The strongly connected blocks in the order in which they are solved."""
        self._closed_functions()
        return find_blocks(self.written, names=self._names)

    def _closed_functions(self) -> None:
        loose = {type(f).__name__ for e in self._all() for f in e.atoms(Function) if isinstance(type(f), UndefinedFunction)}
        if loose:
            raise BadInput(f"System: the function {', '.join(sorted(loose))} is not defined; "
                           f"put it in by .substitute({sorted(loose)[0]}=...)")

    # -- changing ----------------------------------------------------------------------------------------------------
    def _mapped(self, change: Any, **fields: Any) -> System:
        def right(v: Any) -> Any:
            return Eq(change(v.lhs), change(v.rhs), evaluate=False) if isinstance(v, Eq) else change(v)

        equations, where = {u: right(v) for u, v in self.equations.items()}, {k: change(v) for k, v in self.where.items()}
        observables = {k: change(v) for k, v in self.observables.items()}
        memo: dict[Any, Any] = {}
        names = {n for e in (*equations.values(), *observables.values()) for n in free_names(e, where, memo)}
        return type(self)(equations, where=where, parameters=sorted(names - {u.name for u in self.equations}),
                          observables=observables, positive=[u.name for u in self.positive], kept=[k.name for k in self.kept],
                          domain=self.domain, start=self.start,
                          conditions=tuple(c.at(change(c.value)) for c in self.conditions),
                          **{"source": self.source, "name": self.name, **fields})

    def subs(self, *args: Any, **kwargs: Any) -> System:
        """A new System with parameters replaced (numbers or expressions); unknowns are not substituted."""
        given: Any = {} if not args else args[0] if len(args) == 1 else [args]
        known = {p.name: p for p in self.parameters}
        old = by_name("subs", dict(given), kwargs, parameters=known)
        inside = {a.name for a in self.arrays}
        for k in old:
            if k not in known:
                raise UnknownName(k, known, "parameter")
            if k in inside:
                raise BadInput(f"subs: {k} is an array that is summed over; its entries are given to solve")
        rule = {known[k]: expression(v) for k, v in old.items()}
        for p, v in rule.items():
            if (p.is_nonnegative and v.is_negative) or (p.is_nonpositive and v.is_positive):
                raise BadInput(f"subs: {next(iter(signs([p]))).partition('] ')[2]}, not {v}")
        return self._mapped(lambda e: e.subs(rule, simultaneous=True))

    def substitute(self, **functions: Any) -> System:
        """A new System with named functions put in: ``system.substitute(sigma="tanh", g="sign")``."""
        from hermitex.symbolic.activations import activation

        known = {type(f).__name__ for e in self._all() for f in e.atoms(Function) if isinstance(type(f), UndefinedFunction)}
        system = self
        for name, sigma in functions.items():
            if name not in known:
                raise UnknownName(name, known, "function of the system")
            put = activation(sigma)
            for e in self._all():
                check_calls(e, name, put)
            system = system._mapped(lambda e, name=name, put=put: _put_in(e, name, put) if e.atoms(Function) else e)
        return system

    def _all(self) -> list[Expr]:
        sides = [x for v in self.equations.values() for x in ((v.lhs, v.rhs) if isinstance(v, Eq) else (v,))]
        return [*sides, *self.where.values(), *self.observables.values()]

    def diff(self, other: System) -> dict[str, tuple[Any, Any]]:
        """Which equations, where names and observables differ: {name: (here, there)}; None where one is missing."""
        changed = {}
        for mine, theirs in ((self.equations, other.equations), (self.where, other.where), (self.observables, other.observables)):
            names = {k.name: k for k in (*theirs, *mine)}
            here, there = {k.name: v for k, v in mine.items()}, {k.name: v for k, v in theirs.items()}
            for n in names:
                if here.get(n) != there.get(n):
                    changed[n] = (here.get(n), there.get(n))
        return changed

    def _laws(self) -> dict[str, Expr]:
        """The conditions on parameters and unknowns, with the where names substituted."""
        own = {s.name for s in (*self.equations, *self.parameters)}
        values = {c.key: written_out(c.value, self.where) for c in self.conditions}
        numbers = [p for p in self.parameters if p not in self.arrays]
        formulas = [e for part in _FORMULAS for e in getattr(self, part).values()]
        return {k: v for k, v in values.items() if {s.name for s in v.free_symbols} <= own} | signs(numbers, formulas)

    # -- numbers -----------------------------------------------------------------------------------------------------
    def compile(self) -> CompiledSystem:
        """The compiled `CompiledSystem`, made once."""
        if "_program" not in self.__dict__:
            own = {s.name for s in (*self.equations, *self.parameters)}
            memo: dict[Any, Any] = {}
            scalars = [k for k in self.where if set(free_names(k, self.where, memo)) <= own
                       and not unsummed(written_out(k, self.where))]
            where = {k: self._stable(v) for k, v in self.where.items()}
            observables = {**{k: self._write(k) for k in scalars}, **{o: self._write(e) for o, e in self.observables.items()}}
            try:
                make = partial(compile_program, self.written, self.blocks, parameters=self.parameters, where=where, scalars=scalars,
                               observables=observables, positive=self.positive, doc=self.source, kept=self._names,
                               domain=self.domain, start=self.start, laws=self._laws(), terms=True)
                made = make()
                later = DeferredProgram(partial(make, cancelling=False)) if made.closed else None
                self.__dict__["_program"] = replace(made, later=later)
            except Divergent as error:
                places = {**self.where, **self.equations, **self.observables}
                at = next((k.name for k, e in places.items() if e.has(error.integral)), "")
                place = f" in the equation of {at}" if at else ""
                raise BadInput(f"System: {error.integral}{place} does not exist: {error.reason}") from error
        found: CompiledSystem = self.__dict__["_program"]
        return found

    def solve(self, numbers: Mapping[str, Any] | None = None, *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
              budget: float | None = None, raise_on_failure: bool = True, method: str = "newton", damping: float = 1.0,
              **keywords: Any) -> Solution:
        """Solve for the unknowns at given parameters (numbers or arrays, broadcast together) -> Solution.

        method : "newton", with further methods behind it; or "iterate": x <- x + damping (rhs(x) - x) from the start, which
            ends at stable points only; `solution.history` holds its path.

        `budget` CPU seconds: what is not solved by then is not converged, its last state is kept and its reason says so.
        Raises BadInput for a parameter that is missing, unknown or not finite; NotConverged with the last state.

        Guarantee: where `converged` is true, `error` bounds the distance to a solution of the equations as written. That it is
        the only solution is not promised. See docs/promise.md.
        """
        require_method("solve", method, damping)
        names = by_name("solve", numbers, keywords, parameters=[p.name for p in self.parameters])
        found = solved_by(method, damping, self.compile(), names, start=self._begin(start, names), tolerance=tolerance,
                          budget=budget)
        found = found.at_numbers(names, (k.name for k in self.where))
        found = replace(found, notes=(*found.notes, *self._zeros(found)))
        if raise_on_failure:
            if not found.all_converged:
                found = name_failed_average(found, {u: e.rhs for u, e in self.written.items()}, names)
            found.require("damping=0.5 or smaller, or method='newton'" if method == "iterate" else "")
        return replace(found, model=SolvedPoint(self, names))

    def _zeros(self, found: Solution) -> list[str]:
        """The unknowns that are 0 and stable wherever it converged: there may be other solutions."""
        import numpy as np

        solved = [u.name for b in self.blocks if b.kind in ("root", "nonlinear") for u in b.torn]
        calm = np.ravel(found.converged).astype(bool)
        zero = [u for u in solved if calm.any() and np.all(np.ravel(found[u])[calm] == 0)]
        if not zero or not np.all(np.ravel(found.stability)[calm] < 1):
            return []
        return [f"{', '.join(zero)} = 0 is stable under iteration; .branches(...) looks for other solutions beside it"]

    def _begin(self, start: Any, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """A start as {unknown: where it begins}, that of a matrix by its entries, of one between moving ends by its place."""
        flat = read_start(flat_start(start, [u.name for u in self.unknowns]), "'V': 1")
        return start_by_place(flat, self.observables, self.unknowns, numbers)

    def minimise(self, objective: str | Symbol, over: Variables,
                 bounds: Sequence[float] | Mapping[str, Sequence[float]] | None = None, *,
                 start: Mapping[str, Any] | None = None, tolerance: float = 1e-11, **numbers: Any) -> Solution:
        """The parameters at which an unknown or observable is least -> Solution; `solution["lam"]` is the best value.

        Parameters
        ----------
        over : a parameter, or several (three at most);  bounds : (lo, hi), or {parameter: (lo, hi)}
        numbers : the other parameters, one number each

        The whole interval is scanned, in log p where p is positive; in the lowest valley the derivative, which is exact, is 0.
        If the least value is at an end of the bounds, or the derivative there is not 0, the notes say so.

        Raises
        ------
        BadInput, UnknownName : one line. NotConverged : nothing between the bounds could be solved.

        Guarantee
        ---------
        The lowest minimum that a scan of `bounds` leads to. A minimum narrower than the scan can be missed. See
        docs/promise.md.

        Examples
        --------
        >>> from sympy import symbols
        >>> x, a = symbols("x a", positive=True)
        >>> best = System({x: a + 1/a}).minimise("x", over="a", bounds=(0.01, 50))
        >>> round(best["a"], 9), round(best["x"], 9)
        (1.0, 2.0)
        """
        from hermitex.systems.minimise import minimise  # with the scan, which solving does not need

        names = [p.name for p in self.parameters]
        given = by_name("minimise", numbers, parameters=names)
        wanted = [over] if isinstance(over, str) or not isinstance(over, list | tuple) else list(over)
        for name in wanted:
            if (own := parameter_of(self, str(name))) in given:
                raise BadInput(f"minimise: {own} is sought and has a value, too")
        inside = {a.name for a in self.arrays}
        if several := [n for n, v in given.items() if n not in inside and not isinstance(v, str) and getattr(v, "__len__", None)]:
            raise BadInput(f"minimise: {several[0]} has several values; minimise at one point after the other")
        known = [s.name for s in (*self.equations, *self.observables)]
        if str(objective) not in known:
            raise UnknownName(str(objective), known, "quantity to minimise")
        how = {"start": start, "tolerance": tolerance, "raise_on_failure": False}
        return minimise(lambda **p: self.solve(given, **{**how, **p}), str(objective), [str(n) for n in wanted], bounds)

    def follow(self, parameter: str | Symbol, bounds: Sequence[float], *, start: Mapping[str, Any] | None = None,
               tolerance: float = 1e-10, **numbers: Any) -> Branch:
        """A branch of solutions along a parameter by its arc length, through folds -> Branch.

        It begins at the solution that `start` leads to at the first of the bounds, or at the other one if there is none or
        another solution, which `.notes` say, and ends where the curve leaves them: behind a fold it comes back. `.folds` are
        located to the tolerance.

        Raises
        ------
        BadInput, UnknownName : one line. NotConverged : from this start, no solution was found at either end.

        Guarantee
        ---------
        Each point that is returned is converged. Other branches are not promised. See docs/promise.md.

        Examples
        --------
        >>> from sympy import Eq, Symbol
        >>> x, a = Symbol("x", real=True), Symbol("a", real=True)
        >>> branch = System({x: x + a - x**2}).follow("a", (-1, 1), start={"x": 1})     # x^2 = a
        >>> [{n: round(v, 6) + 0.0 for n, v in fold.items()} for fold in branch.folds]
        [{'a': 0.0, 'x': 0.0}]
        """
        from hermitex.systems.follow import follow  # with the arc length, which solving does not need

        given = by_name("follow", numbers, parameters=[p.name for p in self.parameters])
        return follow(self, str(parameter), bounds, given, self._begin(start, given), tolerance)

    def accepted(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the numbers that are parameters of this system, under their names."""
        names = {p.name for p in self.parameters}
        return by_name("solve", {k: v for k, v in numbers.items() if ridge(k, names) in names}, parameters=names)

    def export(self, path: Place, *, reference: Any = None, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
               check: bool = True, method: str = "newton", damping: float = 1.0, **numbers: Any) -> Exported:
        """Write a standalone solver with the formulas, NumPy alone and its own self-test; see `systems.export.write`.

        reference : the point of the self-test, {"alpha": 2}, or several; one may be given as in `solve`, alpha=2
        method, damping : the defaults of the file's `solve`; as in `solve` here

        Guarantee: the file gives the digits of the session, and is written only if its self-test passes. See docs/promise.md.
        """
        from hermitex.systems.export import write

        if numbers and reference is not None:
            raise BadInput(f"export: reference= and {next(iter(numbers))}= are both points of the self-test; give one of them")
        return write(self, path, reference=numbers or reference, start=start, tolerance=tolerance, check=check, method=method,
                     damping=damping)

    def branches(self, starts: Mapping[str, Mapping[str, Any]] | None = None, numbers: Mapping[str, Any] | None = None, *,
                 tolerance: float = 1e-11, **keywords: Any) -> tuple[Solution, ...]:
        """The solutions at given parameters: from named starts, {"informed": {"m": 1}, "uninformed": {"m": 1e-3}}, and from
        starts over many scales, along the directions that unstable solutions are left by, and between stable ones.

        Returns
        -------
        tuple of Solution : `.branch` of each is the name of the starts from which iteration of the equations, undamped, ends
            there ("informed, uninformed" if both do); "unstable" where iteration leaves it; "stable" where it is stable and no
            named start ends there; "unique" where nothing else was found. For implicit equations, which have no map, it is the
            start from which Newton's method came, or "other". At points where a branch does not exist its numbers are NaN.

        Every solution that is found is returned.

        Guarantee
        ---------
        Each solution that is returned is converged. Others may exist. See docs/promise.md.

        Examples
        --------
        >>> from sympy import symbols
        >>> q, lamda = symbols("q lamda", positive=True)
        >>> hill = System({q: lamda*q**2/(1 + lamda*q**2)})
        >>> [(s.branch, round(s["q"], 4)) for s in hill.branches({"informed": {"q": 1}}, lamda=8) if s["q"] > 1e-9]
        [('informed', 0.8536), ('unstable', 0.1464)]
        """
        from hermitex.systems.branches import branches

        names = by_name("branches", numbers, keywords, parameters=[p.name for p in self.parameters])
        if not isinstance(starts or {}, Mapping):
            raise BadInput(f"branches: starts have names, {{'informed': {{'m': 1}}}}, not {brief(starts)}")
        return branches(self.compile(), {str(k): self._begin(s, names) for k, s in (starts or {}).items()}, names,
                        tolerance=tolerance)

    # -- showing -----------------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        title = self.name or type(self).__name__
        given = f"; parameters {', '.join(p.name for p in self.parameters)}" if self.parameters else ""
        return f"{title}({', '.join(u.name for u in self.unknowns)}{given})"

    def rows(self) -> list[tuple[Basic, Basic]]:
        """(left, right) of each line as the author wrote it: equations, where names, observables."""
        lines: list[tuple[Basic, Basic]] = []
        for u, v in self.equations.items():
            lines.append((v.lhs, v.rhs) if isinstance(v, Eq) else (u, v))
        return [*lines, *self.where.items(), *self.observables.items()]

    def latex(self) -> str:
        """An align block, one equation a line, in the order given."""
        lines = [rf"  {latex(a)} &= {latex(b)}" for a, b in self.rows()]
        return "\\begin{align}\n" + " \\\\\n".join(lines) + "\n\\end{align}"

    def _html(self) -> str:
        return formula_table([(rf"\displaystyle {latex(a)}", rf"\displaystyle = {latex(b)}") for a, b in self.rows()])

    def bibtex(self) -> str:
        """BibTeX of its source, where it is one of the references; nothing where it has none."""
        from hermitex.show.cite import bibtex, is_known_key

        return bibtex([k for k in [self.source] if k and is_known_key(k)])

    def to_dict(self) -> dict[str, Any]:
        """The formulas as text that `hermitex.parse` reads back; `System` takes these parts under the same names."""
        def text(v: Any) -> str:
            return f"Eq({to_text(v.lhs)}, {to_text(v.rhs)})" if isinstance(v, Eq) else to_text(v)

        return {"equations": {u.name: text(v) for u, v in self.equations.items()},
                "where": {k.name: text(v) for k, v in self.where.items()},
                "observables": {k.name: text(v) for k, v in self.observables.items()},
                "parameters": [p.name for p in self.parameters], "positive": sorted(u.name for u in self.positive),
                "domain": {u: interval_text(u, d) for u, d in self.domain.items()}, "start": dict(self.start),
                "symbols": {s.name: assumption_text(s) for s in (*self.equations, *self.parameters) if s not in self.arrays},
                "conditions": [[c.law, to_text(c.value), str(c.args[2])] for c in self.conditions],
                "blocks": [str(b) for b in self.blocks], "source": self.source}


def _numbers_in(expr: Basic) -> set[Symbol]:
    """The symbols of numbers, without those of arrays."""
    return {s for s in expr.atoms(Symbol) if type(s) is Symbol}


def _put_in(e: Expr, name: str, put: Any) -> Expr:
    """`e` with a function put in for its name; its derivatives are taken, expectations stay as they are written."""
    e = e.replace(lambda f: isinstance(f, Function) and type(f).__name__ == name, lambda f: put(*f.args))
    return e.replace(lambda d: isinstance(d, Derivative | Subs), lambda d: d.doit(deep=False))


def check_calls(e: Expr, name: str, put: Any) -> None:
    """Refuse a function of one variable for a name that `e` uses with several arguments."""
    for f in e.atoms(Function):
        if type(f).__name__ == name and not 1 <= len(f.args) <= 1 + len(put.parameters):
            raise BadInput(f"System: {f} has {len(f.args)} arguments, and {put.name} takes one")


def _symbol(name: Any) -> Symbol:
    if isinstance(name, Symbol):
        return name
    if isinstance(name, str) and name.isidentifier():
        return symbols.FIELD.get(name) or Symbol(name, real=True)
    more = ": D[k] is written with SymPy, D = IndexedBase('D') and k = Idx('k', 8)" if isinstance(name, str) and "[" in name else ""
    raise BadInput(f"System: {name!r} is not a symbol or a name{more}")


def _right(unknown: Any, value: Any) -> Any:
    if isinstance(value, Eq):
        refuse_loose(value)
        return Eq(read_sums(value.lhs), read_sums(value.rhs), evaluate=False) if value.has(Sum) else value
    if isinstance(value, bool | type(S.true) | type(S.false)):
        says = "always true: it says nothing of its unknown" if value == True else "never true"  # noqa: E712 - SymPy's true
        raise BadInput(f"System: the equation of {unknown} is {says}")
    return expression(value)
