"""Equations -> strongly connected blocks in order, each explicit, linear, one root, or a small nonlinear problem.

The unknown u depends on the letters of its equation. A component of that graph is *explicit* (one unknown, not in its
own right-hand side), *linear* (its Jacobian, computed symbolically, holds none of its unknowns), a *root* (one unknown)
or *nonlinear*: then as many of its explicit members as possible are torn out, so that they are computed from the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sympy import Expr, Float, S, Symbol
from sympy.utilities.iterables import strongly_connected_components

from hermitex.errors import NoClosedForm
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.systems.derivatives import KeptNames, partials


@dataclass(frozen=True)
class Equation:
    """One equation, written out: `unknown = rhs`, or `rhs = 0` if `implicit`."""

    unknown: Symbol
    rhs: Expr
    implicit: bool = False

    @property
    def residual(self) -> Expr:
        """unknown - rhs, or the implicit form: zero at the solution."""
        return self.rhs if self.implicit else self.unknown - self.rhs


@dataclass(frozen=True)
class Block:
    """Unknowns that are solved for together.

    Attributes: `kind` explicit | linear | root | nonlinear; `torn` the unknowns that are solved for, `members` the
    explicit ones in the order of their computation; `matrix`, `constant` of a linear block: A x + b = 0.
    """

    unknowns: tuple[Symbol, ...]
    kind: str
    torn: tuple[Symbol, ...] = ()
    members: tuple[Symbol, ...] = ()
    matrix: tuple[tuple[Expr, ...], ...] = field(default=(), repr=False)
    constant: tuple[Expr, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        names = ", ".join(u.name for u in self.unknowns)
        torn = f", torn to ({', '.join(u.name for u in self.torn)})" if self.kind == "nonlinear" and self.members else ""
        return f"({names}): {self.kind}{torn}"


def find_blocks(equations: Mapping[Symbol, Equation], names: KeptNames | None = None) -> tuple[Block, ...]:
    """The blocks in the order in which they are solved; `names` stay names in them."""
    unknowns, names = list(equations), names or KeptNames()
    reach = {u: names.reach(e.rhs) for u, e in equations.items()}
    place = {u: k for k, u in enumerate(unknowns)}
    depends = {u: sorted(reach[u] & place.keys(), key=place.__getitem__) for u in equations}
    components = strongly_connected_components((unknowns, [(u, v) for u in unknowns for v in depends[u]]))
    blocks = []
    for component in components:
        ordered = sorted(component, key=place.__getitem__)
        through = bool(names.definitions) and any(names.within(equations[u].rhs, v) for u in ordered for v in ordered)
        blocks.append(_classify(ordered, equations, depends, linear=not through, names=names))
    return tuple(blocks)


def _classify(component: list[Symbol], equations: Mapping[Symbol, Equation], depends: Mapping[Symbol, list[Symbol]], *,
              linear: bool, names: KeptNames) -> Block:
    if len(component) == 1 and not equations[component[0]].implicit and component[0] not in depends[component[0]]:
        return Block(tuple(component), "explicit")
    if linear:
        found = linear_form([equations[u] for u in component], component, names)
        if found is not None:
            torn = _tearing_unknowns(component, equations, depends)
            return Block(tuple(component), "linear", torn, _evaluation_order([u for u in component if u not in torn], depends),
                         *found)
    if len(component) == 1:
        return Block(tuple(component), "root", torn=tuple(component))
    torn = _tearing_unknowns(component, equations, depends)
    return Block(tuple(component), "nonlinear", torn, _evaluation_order([u for u in component if u not in torn], depends))


def linear_form(equations: list[Equation], unknowns: list[Symbol], names: KeptNames | None = None) -> tuple[tuple, tuple] | None:
    """(A, b) with residual = A x + b, if that is proved: no derivative holds an unknown."""
    inside = set(unknowns)
    rows = []
    most = 400  # operations of a derivative that is multiplied out to see whether its unknowns cancel
    for e in equations:
        row = dict.fromkeys(unknowns, S.Zero)
        try:
            for v, entry in partials(e.residual, unknowns, names):
                if entry.free_symbols & inside:
                    # an average that an unknown enters stays one: multiplying it out takes seconds and shows nothing
                    if entry.count_ops() > most or any(node.free_symbols & inside for node in entry.atoms(Expectation, ArraySum)):
                        return None
                    if _moves(entry, inside):
                        return None
                    entry = entry.expand()
                if entry.free_symbols & inside:
                    return None
                row[v] = entry
        except NoClosedForm:
            return None
        rows.append(tuple(row.values()))
    zero = dict.fromkeys(unknowns, S.Zero)
    return tuple(rows), tuple(e.residual.xreplace(zero) for e in equations)


def _moves(entry: Expr, unknowns: set[Symbol]) -> bool:
    """Do numbers show that an unknown moves it? To multiply out what nests quotients takes seconds."""
    nodes = sorted(entry.atoms(Expectation, ArraySum), key=str)
    plain = entry.xreplace({node: Float(3 + i)/17 for i, node in enumerate(nodes)})
    at = {s: Float(7 + 3*i)/11 for i, s in enumerate(sorted(plain.free_symbols, key=str))}
    moved = at | {s: Float("1.37")*v for s, v in at.items() if s in unknowns}
    one, other = (plain.xreplace(point).evalf(15) for point in (at, moved))
    return bool(one.is_Float and other.is_Float and abs(one - other) > Float("1e-6")*abs(one))


def _tearing_unknowns(component: list[Symbol], equations: Mapping[Symbol, Equation],
          depends: Mapping[Symbol, list[Symbol]]) -> tuple[Symbol, ...]:
    """Unknowns without which the rest is computed in order (implicit and self-dependent ones are among them)."""
    free = [u for u in component if not equations[u].implicit and u not in depends[u]]
    left = _acyclic_rest(free, depends)
    return tuple(u for u in component if u not in left)


def _acyclic_rest(free: list[Symbol], depends: Mapping[Symbol, list[Symbol]]) -> list[Symbol]:
    """The rest after tearing, as long as there is a cycle, the unknown on the largest number of paths of length two."""
    left = set(free)
    reads = {u: sum(v in left for v in depends[u]) for u in free}
    readers: dict[Symbol, list[Symbol]] = {u: [] for u in free}
    for u in free:
        for v in depends[u]:
            if v in left:
                readers[v].append(u)
    read_by = {u: len(readers[u]) for u in free}

    def leave(u: Symbol) -> None:
        left.discard(u)
        for v in depends[u]:
            if v in left:
                read_by[v] -= 1
        for v in readers[u]:
            reads[v] -= 1

    kept: set[Symbol] = set()
    while left:
        loose = [u for u in left if not reads[u] or not read_by[u]]  # on no cycle
        for u in loose:
            leave(u)
        kept.update(loose)
        if left and not loose:
            leave(max((u for u in free if u in left), key=lambda u: reads[u]*read_by[u]))
    return [u for u in free if u in kept]


def _evaluation_order(members: Iterable[Symbol], depends: Mapping[Symbol, list[Symbol]]) -> tuple[Symbol, ...]:
    """The unknowns that can be computed one after another, in rounds: each round needs only earlier ones."""
    members = list(members)
    inside = dict.fromkeys(members, 0)
    readers: dict[Symbol, list[Symbol]] = {u: [] for u in members}
    for u in members:
        for v in depends[u]:
            if v in inside:
                inside[u] += 1
                readers[v].append(u)
    done: list[Symbol] = []
    ready = [u for u in members if not inside[u]]
    while ready:
        done += ready
        coming: set[Symbol] = set()
        for u in ready:
            for v in readers[u]:
                inside[v] -= 1
                if not inside[v]:
                    coming.add(v)
        ready = [u for u in members if u in coming] if len(coming) > 1 else list(coming)
    return tuple(done)
