"""The result of lowering: array statements, each of which reads only earlier ones.

    target = expr     or     target = sum_j w_j expr_j over the axes of an expectation
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from sympy import Expr, Symbol

from hermitex.errors import HermitexError
from hermitex.kernels.array_sums import Arrays, Entry
from hermitex.symbolic.indexed_sums import Element


@dataclass(frozen=True)
class NodeAxis:
    """An integration variable as an array axis: its symbol is the array of the nodes of its rule.

    The axis of a sum over arrays (`summed`) is its index: the symbol is the array of places, `first`, `first` + 1, ...,
    `count` of them, or as many as an array has.
    """

    name: str
    depth: int
    symbol: Symbol = field(compare=False)
    beside: tuple[str, ...] = ()  # the variables that its break points move with
    summed: bool = False
    first: int = 0
    count: int = 0
    counting: bool = False  # its nodes are 0, 1, 2, ..., as many as a sum over them needs
    fields: int = 1  # along how many axes its nodes are laid out, see `correlated`

    @property
    def identifier(self) -> str:
        """The name of the axis in generated code."""
        return self.symbol.name


@dataclass(frozen=True)
class Statement:
    """`target = expr`, or `target` = the contraction of `expr` over `axes` (an expectation)."""

    target: Symbol
    expr: Expr
    axes: tuple[NodeAxis, ...] = ()

    @cached_property
    def needs(self) -> frozenset[Symbol]:
        """The symbols it reads."""
        return frozenset(self.expr.free_symbols)


@dataclass(frozen=True)
class Lowered:
    """Statements, each of which reads only earlier ones, and the outputs as formulas of their targets.

    `temporaries` are the targets that no one named; `notes` say what the expectations average.
    """

    statements: tuple[Statement, ...]
    outputs: tuple[Expr, ...]
    axes: tuple[NodeAxis, ...]
    temporaries: frozenset[Symbol] = frozenset()
    notes: Mapping[Symbol, Callable[[], str]] = field(default_factory=dict)
    closed: bool = False  # whether it holds parts that may cancel: closed forms, or averages taken term by term
    divided: bool = False  # whether closed forms that divide by what may be 0 do
    entries: Mapping[Symbol, Element] = field(default_factory=dict)  # the symbols that replace entries of arrays

    @cached_property
    def indices(self) -> frozenset[Symbol]:
        """The symbols of the axes that are summed over."""
        return frozenset(a.symbol for a in self.axes if a.summed)

    @cached_property
    def along_indices(self) -> frozenset[Symbol]:
        """The targets that vary along an array: they are computed block by block, where they are summed."""
        reach = self.reach()
        return frozenset(s.target for s in self.statements if reach[s.target] & self.indices)

    @cached_property
    def _places(self) -> dict[Symbol, int]:
        return {s.target: k for k, s in enumerate(self.statements)}

    def arrays(self) -> Arrays | None:
        """How arrays are laid out for the generated code."""
        place = {a.name: k for k, a in enumerate(self.axes, start=1) if a.summed}
        found = [Entry(s.name, e.array.name, tuple(place[i.name] for i in e.indices), tuple(i.name for i in e.indices))
                 for s, e in self.entries.items() if all(i.name in place for i in e.indices)]
        found += [Entry(a.identifier, "", (place[a.name],), (a.name,), a.first, a.count) for a in self.axes if a.summed]
        return Arrays(tuple(found)) if found else None

    def needed(self, outputs: Iterable[Expr], *known: AbstractSet[Symbol], own: AbstractSet[Symbol] = frozenset()
               ) -> list[Statement]:
        """The statements that compute `outputs` from what is known, in order; `own` are computed though they are known."""
        found: set[int] = set()
        left = list(set().union(*(e.free_symbols for e in outputs)))
        while left:
            v = left.pop()
            k = self._places.get(v)
            if k is not None and k not in found and (v in own or not any(v in names for names in known)):
                found.add(k)
                left += self.statements[k].needs
        return [self.statements[k] for k in sorted(found)]

    def independent_of(self, varying: set[Symbol]) -> set[Symbol]:
        """The targets that do not depend, at any remove, on `varying`."""
        moved, fixed = set(varying), set()
        for s in self.statements:
            if s.needs & moved:
                moved.add(s.target)
            else:
                fixed.add(s.target)
        return fixed

    def reach(self) -> dict[Symbol, frozenset[Symbol]]:
        """The axes along which each target varies, and each axis itself."""
        found = {a.symbol: frozenset([a.symbol]) for a in self.axes}
        index = {a.name: a.symbol for a in self.axes if a.summed}
        found |= {s: frozenset(index[i.name] for i in e.indices if i.name in index) for s, e in self.entries.items()}
        for s in self.statements:
            found[s.target] = frozenset().union(*(found.get(v, frozenset()) for v in s.needs)) - {a.symbol for a in s.axes}
        return found

    @property
    def nested(self) -> tuple[tuple[str, ...], ...]:
        """The axes of every array along three and more, sums over arrays aside."""
        reach, nodes = self.reach(), {a.symbol: a.identifier for a in self.axes if not (a.summed or a.counting)}
        along = (reach[s.target] | {a.symbol for a in s.axes} for s in self.statements if s.axes)
        more = {a.symbol: a.fields for a in self.axes}
        found = (sorted(nodes[v] for v in symbols if v in nodes for _ in range(more[v])) for symbols in along)
        return tuple(dict.fromkeys(tuple(names) for names in found if len(names) > 2))

    def along_axes(self) -> set[Symbol]:
        """The targets whose value varies along an integration variable."""
        reach = self.reach()
        return {s.target for s in self.statements if reach[s.target]}


def topological_order(statements: list[Statement]) -> list[Statement]:
    """Topological order, stable: by the length of the longest chain of statements that each needs, then as given."""
    places = {s.target: k for k, s in enumerate(statements)}
    reads = [[places[v] for v in s.needs if v in places] for s in statements]
    readers: list[list[int]] = [[] for _ in statements]
    for k, below in enumerate(reads):
        for j in below:
            readers[j].append(k)
    missing, level = [len(below) for below in reads], [0] * len(statements)
    ready, done = [k for k, count in enumerate(missing) if not count], 0
    while ready:
        j = ready.pop()
        done += 1
        for k in readers[j]:
            level[k] = max(level[k], level[j] + 1)
            missing[k] -= 1
            if not missing[k]:
                ready.append(k)
    if done < len(statements):
        raise HermitexError("the named sub-expressions refer to each other in a circle")
    return [statements[k] for k in sorted(range(len(statements)), key=lambda k: (level[k], k))]
