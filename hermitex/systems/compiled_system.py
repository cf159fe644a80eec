"""A System, compiled: tables once per point, then block after block, every formula from one generated module.

    tables(s, quad)      what no unknown enters
    block_k(s, quad)     right-hand sides and exact partial derivatives of block k, or its matrix and constant
    residuals(s, quad)   x - rhs of every equation: the verdict
    observables(s, quad)
    lawful(s, quad)      conditions of laws and assumptions on the parameters, see kernels.parameter_conditions

The text runs in the session and in a worker (it pickles); an exported file has all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from sympy import Expr, Mul, Sum, Symbol, numbered_symbols

from hermitex.kernels.adaptive import Quadratures, require_room
from hermitex.kernels.array_sums import Arrays
from hermitex.kernels.axis_records import accepts_table
from hermitex.kernels.cancellation import has_differences, magnitude
from hermitex.kernels.extended_precision import load_extended, widened
from hermitex.kernels.lowered import Lowered, NodeAxis, Statement
from hermitex.kernels.lowering import lower
from hermitex.kernels.parameter_conditions import LAW
from hermitex.kernels.recognition import recognise
from hermitex.kernels.sharp_places import Marks, find_marks
from hermitex.kernels.source import Writer, load
from hermitex.solvers.interval import Interval
from hermitex.symbolic import indexed_sums
from hermitex.symbolic.gaussian import Expectation
from hermitex.systems.blocks import Block, Equation
from hermitex.systems.derivatives import KeptNames, partials
from hermitex.systems.gradients import Factors
from hermitex.systems.scope import written_out

State = dict[str, Any]


def as_point_vector(value: Any, points: int) -> np.ndarray:
    """A number, or an array with the points along its first axis, as a vector over the points."""
    if isinstance(value, np.ndarray) and value.size == points:
        return value.reshape(-1)
    return np.full(points, np.asarray(value, dtype=float).item())


@dataclass(frozen=True)
class BlockCode:
    """A block for the solver: names only, no SymPy."""

    unknowns: tuple[str, ...]
    kind: str
    torn: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    positive: tuple[bool, ...] = ()
    explicit: tuple[bool, ...] = ()  # of the torn unknowns: residual is x - rhs


@dataclass
class DeferredProgram:
    """A program that is made on first use."""

    make: Callable[[], CompiledSystem]
    made: CompiledSystem | None = field(default=None, repr=False)

    def program(self) -> CompiledSystem:
        """Made once."""
        if self.made is None:
            self.made = self.make()
        return self.made


@dataclass(frozen=True, eq=False)
class CompiledSystem:
    """The generated module with its blocks and quadratures; pickles from its source."""

    source: str
    parameters: tuple[str, ...]
    unknowns: tuple[str, ...]
    blocks: tuple[BlockCode, ...]
    observables: tuple[str, ...]
    implicit: frozenset[str]
    axes: tuple[NodeAxis, ...]
    kinked: dict[str, int]  # the axes whose break points or scales are known, and how many break points
    grid: frozenset[str] = frozenset()  # the axes of averages that hold unknowns, if these have several
    notes: tuple[str, ...] = ()  # what the reader of a solution should know
    nested: tuple[tuple[str, ...], ...] = ()  # the axes of averages over three variables and more
    arrays: Arrays | None = None  # that are summed over
    given: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)  # their entries, where they are known: see `bound`
    positive: tuple[str, ...] = ()  # unknowns known to be
    domain: Mapping[str, Interval] = field(default_factory=dict)  # of the unknowns that live in an open interval
    start: Mapping[str, float] = field(default_factory=dict)  # the default start of the solvers
    closed: bool = False  # whether closed forms are among what cancels
    lawful: bool = False  # whether there is a function `lawful`
    later: DeferredProgram | None = field(default=None, repr=False)  # the same without closed forms whose terms may cancel
    fine: bool = False  # whether its rules reach far tails, and near to kinks
    whole: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the arrays, where they are known
    _loaded: dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"CompiledSystem({', '.join(self.unknowns)} of {', '.join(self.parameters)}; .source is its Python)"

    def quadratures(self) -> Quadratures:
        """The rules that the structure alone chooses: every solve begins with these, so the same input gives the same bits."""
        rules = Quadratures(self.axes, self.kinked, self.grid)
        return rules.finer() if self.fine else rules

    def call(self, name: str, s: State, quad: Mapping, average: Any = None, extended: bool = False) -> dict[str, Any]:
        """Run one of the generated functions; `average` replaces the plain one (to record quadrature errors).

        extended : in extended precision, as far as its functions allow
        """
        key = "extended" if extended else "traced" if average is not None else "plain"
        if key not in self._loaded:
            self._loaded[key] = load_extended(self.source) if extended else load(self.source)
        if average is not None:
            self._loaded[key]["average"] = accepts_table(average)
        if self.nested and quad:
            require_room(self.nested, quad, max((np.shape(v)[0] for v in s.values() if np.ndim(v)), default=1))
        s = {**self.given, **s} if self.given else s
        return self._loaded[key][name](*((widened(s), widened(quad)) if extended else (s, quad)))

    def bound(self, numbers: Mapping[str, Any], asking: str = "solve") -> tuple[CompiledSystem, dict[str, Any]]:
        """The program with the arrays among the numbers, and the other numbers.

        Raises BadInput for an array that is missing, of the wrong shape, or of another length than one it is summed with.
        """
        if self.arrays is None or self.given:
            return self, dict(numbers)
        given, rest = self.arrays.read(numbers, 1 + len(self.axes), asking)
        return replace(self, given=given, whole={n: numbers[n] for n in self.arrays.names}), rest

    def integrated(self, *, fine: bool) -> CompiledSystem | None:
        """The same system by quadrature where the terms of closed forms may cancel; None where they do not."""
        return None if self.later is None else replace(self.later.program().bound(self.whole)[0], fine=fine)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters and the arrays that are not yet known."""
        return (*self.parameters, *(self.arrays.names if self.arrays is not None else ()))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": {}}


def compile_program(equations: Mapping[Symbol, Equation], blocks: tuple[Block, ...], *, parameters: tuple[Symbol, ...],
                    where: Mapping[Symbol, Expr], scalars: Sequence[Symbol], observables: Mapping[Symbol, Expr],
                    positive: frozenset[Symbol], doc: str = "", kept: KeptNames | None = None,
                    cancelling: bool = True, domain: Mapping[str, Interval] | None = None,
                    start: Mapping[str, float] | None = None, laws: Mapping[str, Expr] | None = None,
                    terms: bool = False) -> CompiledSystem:
    """Lower every formula of a system at once (so that all share their tables) and write the module.

    laws : {condition of a law: its parameter}
    cancelling : take closed forms whose terms may cancel, see `lower`
    terms : besides right-hand sides that cancel also the sums of their |terms|, for the error of a solution
    """
    unknowns = tuple(equations)
    members = {u: equations[u].rhs for b in blocks if b.kind == "nonlinear" for u in b.members}
    missing: list[str] = []
    taken = [s.name for s in (*parameters, *unknowns, *scalars)]
    inside = {s.name for s in indexed_sums.arrays(*(e.rhs for e in equations.values()), *where.values(), *observables.values())}
    parameters = tuple(p for p in parameters if p.name not in inside)
    share = Factors([*taken, *(s.name for s in (*where, *observables))])
    labels, exprs = _formulas(equations, blocks, observables, kept, missing, share)
    cancelling_sums = {("terms", u): magnitude(full) for u, e in equations.items() if terms and not e.implicit
                       and has_differences(full := recognise(written_out(e.rhs, where)))}
    labels, exprs = [*labels, *cancelling_sums], [*exprs, *cancelling_sums.values()]
    labels, exprs = [*labels, *(("law", LAW + n) for n in laws or {})], [*exprs, *(laws or {}).values()]
    early = {LAW + n for n, v in (laws or {}).items() if v.free_symbols <= set(parameters) and not v.has(Expectation, Sum)}
    lowered = lower(exprs, names={**where, **members, **share.definitions}, taken=taken, cancelling=cancelling)
    output = dict(zip(labels, lowered.outputs, strict=True))
    places = find_marks(lowered)
    known = _known_symbols(lowered, set(parameters))
    fixed, places = _fixed_targets(lowered, set(unknowns), places, known)
    fixed -= set(members)
    resting = {a.symbol for a in lowered.axes if not places.get(a.identifier, Marks()).moves - known
               and not places.get(a.identifier, Marks()).kinks}
    lowered, fixed = _hoist_fixed_products(lowered, fixed, set(parameters), resting)
    settled = fixed - lowered.along_axes()
    fixed -= lowered.along_indices  # that is computed again for every block of entries, however many there are
    writer = Writer(lowered, set(parameters) | settled | set(lowered.entries), places)
    writer.state, writer.still = set(unknowns), fixed | set(parameters) | resting
    for name in (*parameters, *unknowns, *where, *observables):
        writer.names(name)  # refuses texts that are not names
    _write(writer, lowered, output, blocks, fixed, tuple(observables), set(members), doc, set(unknowns), early)
    codes = tuple(_code(b, equations, positive) for b in blocks)
    return CompiledSystem(writer.source(), tuple(p.name for p in parameters), tuple(u.name for u in unknowns), codes,
                   tuple(o.name for o in observables), frozenset(u.name for u, e in equations.items() if e.implicit),
                   lowered.axes, {a: len(m.kinks) for a, m in places.items()}, _grid(lowered, fixed),
                   tuple(f"numerical derivative, {m} (the residual does not use it)" for m in dict.fromkeys(missing)),
                   nested=lowered.nested, arrays=lowered.arrays(), positive=tuple(u.name for u in unknowns if u in positive),
                   domain=domain or {}, start=start or {}, closed=lowered.closed, lawful=bool(early))


def _grid(lowered: Lowered, fixed: set[Symbol]) -> frozenset[str]:
    """The axes over which averages with unknowns in them are taken, where one such average varies along several."""
    reach = lowered.reach()
    moving = [s for s in lowered.statements
              if s.axes and s.target not in fixed and not s.axes[0].summed]
    several = any(len((reach[s.target] | {a.symbol for a in s.axes}) - lowered.indices) > 1 for s in moving)
    return frozenset(a.identifier for s in moving for a in s.axes) if several else frozenset()


def _known_symbols(lowered: Lowered, parameters: set[Symbol]) -> set[Symbol]:
    """The parameters, and what follows from them without an average."""
    known = set(parameters)
    for s in lowered.statements:
        if not s.axes and s.needs <= known:
            known.add(s.target)
    return known


def _fixed_targets(lowered: Lowered, unknowns: set[Symbol], places: Mapping[str, Marks], known: set[Symbol]
           ) -> tuple[set[Symbol], dict[str, Marks]]:
    """What no unknown enters, not even through the nodes: those of an axis move with its break points. And the marks.

    Along an axis with tables only break points and what follows from parameters move the nodes: a table is taken once.
    """
    varying = set(unknowns)
    while True:
        fixed = lowered.independent_of(varying)
        moved = varying | {s.target for s in lowered.statements} - fixed
        nodes = {a.symbol for a in lowered.axes if any(p.free_symbols & moved for p in places.get(a.identifier, Marks()).kinks)}
        if nodes <= varying:
            break
        varying |= nodes
    reach = lowered.reach()
    tabled = {v for s in lowered.statements if s.target in fixed and s.axes
              for v in (*reach[s.target], *(a.symbol for a in s.axes))}
    names = {a.identifier for a in lowered.axes if a.symbol in tabled}
    places = {name: m.resting(known) if name in names else m for name, m in places.items()}
    moving = {a.symbol for a in lowered.axes if places.get(a.identifier, Marks()).moves & moved}
    return lowered.independent_of(varying | moving), places


def _hoist_fixed_products(lowered: Lowered, fixed: set[Symbol], parameters: set[Symbol], nodes: set[Symbol]
             ) -> tuple[Lowered, set[Symbol]]:
    """mu_1**4 in an average that is taken again at every step becomes a table: products of what stays fixed are taken once."""
    still, reach = fixed | parameters | nodes, lowered.reach()
    given = {v.name for s in lowered.statements for v in (s.target, *s.needs)} | {p.name for p in parameters}
    names = (v for v in numbered_symbols("g", start=1, real=True) if v.name not in given)
    tables: dict[Expr, Symbol] = {}
    statements: list[Statement] = []

    def product(e: Expr) -> Expr:
        stay = [f for f in e.args if f.free_symbols and f.free_symbols <= still]
        move = [f for f in e.args if f.free_symbols - still]
        body = Mul(*stay)
        along = frozenset().union(*(reach.get(v, frozenset()) for v in body.free_symbols))
        along_axis = along and not along & lowered.indices
        if not move or body.is_Symbol or not along_axis or body.count_ops() < 1:
            return e
        if body not in tables:
            tables[body] = next(names)
            statements.append(Statement(tables[body], body))
        return Mul(*(f for f in e.args if f not in stay), tables[body])

    for s in lowered.statements:
        if s.needs <= still:
            statements.append(s)
        else:
            statements.append(replace(s, expr=s.expr.replace(lambda e: isinstance(e, Mul), product)))
    return replace(lowered, statements=tuple(statements)), fixed | set(tables.values())


def _formulas(equations: Mapping[Symbol, Equation], blocks: tuple[Block, ...], observables: Mapping[Symbol, Expr],
              kept: KeptNames | None, missing: list[str], share: Factors) -> tuple[list[tuple], list[Expr]]:
    """Every formula that is to be computed, with a label; `missing` collects what has no exact derivative."""
    found: dict[tuple, Expr] = {("observable", o): e for o, e in observables.items()}
    for e in equations.values():
        found["rhs", e.unknown] = e.rhs
    for block in blocks:
        if block.kind == "linear":
            for i, row in enumerate(block.matrix):
                found["constant", block.unknowns[i]] = block.constant[i]
                for j, entry in enumerate(row):
                    found["matrix", block.unknowns[i], block.unknowns[j]] = entry
        elif block.kind in ("nonlinear", "root"):
            found |= {("terms", u): magnitude(equations[u].rhs) for u in block.torn if equations[u].implicit}
            inside = (*block.torn, *block.members)
            for u in inside:
                slopes = dict(partials(equations[u].rhs, inside, kept, missing, share))
                found |= {("d", u, v): slopes[v] for v in inside if v in slopes}
    return list(found), list(found.values())


def _code(block: Block, equations: Mapping[Symbol, Equation], positive: frozenset[Symbol]) -> BlockCode:
    def names(symbols: tuple[Symbol, ...]) -> tuple[str, ...]:
        return tuple(s.name for s in symbols)

    return BlockCode(names(block.unknowns), block.kind, names(block.torn), names(block.members),
                     tuple(u in positive for u in block.torn), tuple(not equations[u].implicit for u in block.torn))


def _write(writer: Writer, lowered: Lowered, output: Mapping[tuple, Expr], blocks: tuple[Block, ...], fixed: set[Symbol],
           observables: tuple[Symbol, ...], members: set[Symbol], doc: str, unknowns: set[Symbol],
           early: set[str]) -> None:
    """The functions of the module, each with only what it needs."""
    of: dict[Symbol, dict[tuple, Expr]] = {}  # the outputs of each equation
    for label, target in output.items():
        of.setdefault(label[1], {})[label] = target
    parts: list[tuple[str, dict[str, Expr], set[Symbol], str]] = []
    for k, block in enumerate(blocks, start=1):
        results = {"/".join((label[0], *(s.name for s in label[1:]))): target for u in block.unknowns
                   for label, target in of[u].items() if label[0] in _RESULTS[block.kind]}
        own = set(block.members) & members
        results |= {u.name: u for u in block.members if u in own}
        parts.append((f"block_{k}", results, own, f"Block {k}, {block}."))
    # Torn members are computed again under another name: from the state that is given, and so that their averages are examined.
    taken = {v.name for s in lowered.statements for v in (s.target, *s.needs)}
    again = {m: Symbol(_unused_name(f"{m.name}_again", taken), real=True) for m in sorted(members, key=str)}
    everything = {f"rhs/{u.name}": output["rhs", u] if output["rhs", u] != u else again.get(u, u)
                  for b in blocks for u in b.unknowns}
    everything |= {f"terms/{u.name}": output["terms", u] for b in blocks for u in b.unknowns
                   if ("terms", u) in output}
    parts.append((_MAP, everything, set(), "Every right-hand side (or implicit form), at a full state."))
    named = {o.name: output["observable", o] for o in observables}
    laws = {label[1]: target for label, target in output.items() if label[0] == "law"}
    named |= {n: target for n, target in laws.items() if n not in early}
    parts.append(("observables", named, set(), "Observables, at a full state."))
    # Parts without unknowns are computed once per point; the boundary is the values that the other functions read.
    made = {s.target: replace(s, target=again[s.target]) for s in lowered.statements if s.target in members}
    bodies, boundary = [], set()
    for name, results, own, title in parts:
        later = [made[m] for m in again] if name == _MAP else []
        statements = [*lowered.needed([*results.values(), *(s.expr for s in later)], fixed, members, own=own), *later]
        reads = {v for e in (*(s.expr for s in statements), *results.values()) for v in e.free_symbols}
        boundary |= (reads | _node_requirements(lowered, statements, writer.marks)) & fixed
        bodies.append((name, statements, results, title))
    targets = {s.target for s in lowered.statements}
    boundary &= targets
    writer.function("tables", lowered.needed(boundary), {b.name: b for b in sorted(boundary, key=str)},
                    doc=(doc + "\n\n" if doc else "") + "What no unknown enters, once per point.", absent=unknowns)
    if early:  # before anything is solved
        known = {n: laws[n] for n in sorted(early)}
        writer.function("lawful", lowered.needed(known.values()), known, doc="What is asked of the parameters.", absent=unknowns)
    left = set(unknowns)  # what blocks further down solve for is not there yet
    for (name, statements, results, title), block in zip_longest(bodies, blocks):
        left -= set(block.unknowns) if block is not None else left
        given = set(block.torn) if block and block.kind in ("root", "nonlinear") else set()
        absent = left | (set(block.unknowns) - given if block else set())
        writer.function(name, statements, results, doc=title, absent=absent)


def _node_requirements(lowered: Lowered, statements: Sequence[Statement], places: Mapping[str, Marks]) -> set[Symbol]:
    """The names that the nodes of their axes need."""
    reads = {v for s in statements for v in s.needs}
    axes = (a for a in lowered.axes if a.symbol in reads or any(a in s.axes for s in statements))
    return {v for a in axes for v in places.get(a.identifier, Marks()).needs}


def _unused_name(name: str, taken: set[str]) -> str:
    """The name, with underscores behind it until nothing bears it."""
    while name in taken:
        name += "_"
    return name


_MAP = "right_hand_sides"
_RESULTS = {"explicit": ("rhs",), "linear": ("matrix", "constant"), "root": ("rhs", "d", "terms"),
            "nonlinear": ("rhs", "d", "terms")}
