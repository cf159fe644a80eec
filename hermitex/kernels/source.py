"""Statements -> the source of one NumPy function: the last stage of the compiler.

    def block(s, quad):                 s: numbers by name, each of shape (points, 1, ..., 1) or a plain number
        V = s["V"]                      quad: nodes and weights by axis
        kappa, w_kappa = quad["kappa"]
        t1 = 1/(1 + V*kappa*kappa)
        E1 = average(t1, w_kappa, 1)
        return {"q": E1}

The text is all there is: an in-memory kernel, a pickled one and an exported module run the same source.
"""

from __future__ import annotations

import textwrap
from ast import Module
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from sympy import Add, Expr, Function, Mul, Pow, S, Symbol, atan, erf, erfc, exp, expand_mul, fraction, tanh

from hermitex.errors import HermitexError
from hermitex.kernels.cancellation import magnitude
from hermitex.kernels.generated_text import Names, comment_text, docstring_text, literal
from hermitex.kernels.helpers import HELPERS, used_helpers
from hermitex.kernels.layout import inline_single_reads
from hermitex.kernels.lowered import Lowered, NodeAxis, Statement
from hermitex.kernels.printers import SPECIAL, NumPyPrinter
from hermitex.kernels.proximal import SOLVER
from hermitex.kernels.sharp_places import Marks
from hermitex.kernels.whitelist import check_source

_WIDTH = 116  # characters of a line of generated code


#: functions that no longer change from +-1e50 on: there a quotient by 0 means its limit
_SETTLES = (exp, erf, erfc, tanh, atan)


def divisions(expr: Expr, fixed: set[Symbol], from_above: Callable[[Expr], bool]) -> Expr:
    """Divisions, in the arguments of functions, by what may vanish: erf(n/x) at x = 0 is a limit, n/x alone is none.

    Everywhere else 1/0 is inf, and 0/0 is nan: no number that looks like an answer.

    fixed : symbols that are parameters, or follow from parameters alone
    from_above : whether an expression that vanishes is the limit of positive ones, so that n/x has a sign
    """
    def quotient(e: Expr) -> Expr:
        below = [f for f in Mul.make_args(e) if isinstance(f, Pow) and f.exp.is_Rational and f.exp.is_negative
                 and f.base.free_symbols and f.base.free_symbols <= fixed]
        over = Mul(*(f for f in Mul.make_args(e) if f not in below))
        safe = [Pow(_NONZERO(p.base, over if from_above(p.base) else S.Zero), p.exp) for p in below]
        return Mul(over, *safe) if below else e

    def inside(e: Expr) -> Expr:
        if isinstance(e, Mul | Pow) and (found := quotient(e)) != e:
            return found
        return e.func(*map(inside, e.args)) if isinstance(e, Add | Mul) else e

    return expr.replace(lambda e: isinstance(e, _SETTLES), lambda e: e.func(*map(inside, e.args)))


_NONZERO = Function("nonzero", real=True)  # or the size of a function of it is written with its imaginary part


def length(axis: NodeAxis) -> str:
    """Under what name the state holds the number of entries of an axis that is summed over."""
    return f"{axis.identifier}_length"


class Writer:
    """Collects functions into one module source."""

    def __init__(self, lowered: Lowered, parameters: set[Symbol], marks: Mapping[str, Marks] | None = None) -> None:
        self.lowered, self.axes = lowered, lowered.axes
        self.reach = lowered.reach()
        self.marks = dict(marks or {})
        self.parameters = parameters
        self.loose = lowered.temporaries - {v for m in self.marks.values() for v in m.needs}
        self.definitions = {s.target: s.expr for s in lowered.statements if not s.axes}
        self.order = {v: k for k, v in enumerate(self.definitions)}  # in which they are computed
        self.out: dict[Expr, Expr] = {}  # written out once: every function needs the same break points
        formulas = [*(s.expr for s in lowered.statements), *lowered.outputs]
        self.roots = {self._written(p.base).as_coeff_Mul()[1] for e in formulas for p in e.atoms(Pow)
                      if p.exp.is_Rational and p.exp.q == 2 and p.base.free_symbols <= parameters}
        every = {v.name for st in lowered.statements for v in (st.target, *st.needs)} | {p.name for p in parameters}
        self.names = Names(SPECIAL, first=every | {a.symbol.name for a in self.axes})
        self.weights = {a: self.names.fresh(f"w_{self.names(a.symbol)}") for a in self.axes if not a.summed}
        self.sizes = {a: Symbol(length(a), integer=True, positive=True) for a in self.axes if a.summed}
        self.parts = 0
        self.printer = NumPyPrinter(self.names)
        self.printer.width = self._width
        self.state: set[Symbol] = set()  # unknowns: `s` holds them unless they are declared absent
        self.still: AbstractSet[Symbol] = frozenset()  # what no unknown enters, nodes too: such a factor weighs the nodes
        self.functions: list[str] = []
        self.docs: dict[str, str] = {}

    def function(self, name: str, statements: Sequence[Statement], results: Mapping[str, Expr], *, doc: str = "",
                 absent: AbstractSet[Symbol] = frozenset()) -> None:
        """Write one function of (s, quad) that returns {label: value}; `absent` are the symbols that `s` does not hold."""
        statements, results = inline_single_reads(statements, results, loose=self.loose, reach=self.reach)
        made = {s.target for s in statements}
        mine = {a.symbol: a for a in self.axes if not a.summed}
        reads = {v for e in (*(s.expr for s in statements), *results.values()) for v in e.free_symbols}
        reads |= {self.sizes[a] for s in statements for a in s.axes if a.summed}
        used = {mine[v] for v in reads if v in mine} | {a for s in statements for a in s.axes if not a.summed}
        if any(a.identifier in self.marks for a in used):
            known = self.parameters | made | {a.symbol for a in used}
            absent = (absent - made) | (({s.target for s in self.lowered.statements} | set(mine)) - known - self.state)
        marks = {a: self._there(self.marks[a.identifier], absent) if a.identifier in self.marks else Marks() for a in used}
        reads |= {v for m in marks.values() for v in m.needs}
        given = sorted(reads - made - set(mine), key=lambda v: v.name)
        lines = _read({self.names(v): literal(v.name) for v in given})
        known = set(reads) - made - set(mine)
        lines += self._lines(statements, set(results.values()), known, marks, clipped=name == "tables")
        lines.append(_returned({label: self._text(e) for label, e in results.items()}))
        self.docs[name] = doc.replace("\n", "\n    ")
        head = f"def {name}(s, quad):\n" + (f'    """{docstring_text(self.docs[name])}"""\n' if doc else "")
        self.functions.append(head + textwrap.indent("\n".join(lines), "    "))

    def _lines(self, statements: Sequence[Statement], results: AbstractSet[Expr], known: AbstractSet[Symbol],
               marks: dict[NodeAxis, Marks], *, clipped: bool = False, block: frozenset[Symbol] = frozenset()) -> list[str]:
        """The lines that compute the statements from what is known, along a block of the arrays whose axes are `block`."""
        outside = self.lowered.indices - block
        deep = [s for s in statements if self.reach.get(s.target, frozenset()) & outside]
        sums = [s for s in statements if s not in deep and any(a.symbol in outside for a in s.axes)] if outside else []
        own = [s for s in statements if s not in deep and s not in sums] if outside else list(statements)
        mine = {a.symbol: a for a in marks}
        reads = {v for e in (*(s.expr for s in own), *results) for v in e.free_symbols}
        inner = {a for s in deep for a in s.axes if not a.summed}
        here = {mine[v] for v in reads if v in mine and v not in known} | {a for s in own for a in s.axes if a in marks}
        here |= {mine[v] for s in (*deep, *sums) for v in s.needs if v in mine and v not in known and mine[v] not in inner}
        lines: list[str] = []
        pending = sorted(here, key=self.axes.index)
        # An axis is laid out before the first statement that needs it, and after the ones that its break points need.
        done = set(known)
        rest = deque(own)
        while pending or rest or sums:
            ready = next((a for a in pending if marks[a].needs <= done), None)
            if ready is not None:
                pending.remove(ready)
                done.add(ready.symbol)
                lines.append(self._axis_line(ready, marks[ready]))
                continue
            step = next((s for s in rest if s.needs <= done and all(a.symbol in done for a in s.axes if not a.summed)), None)
            if step is not None:
                rest.remove(step)  # the first, but where an axis waits for its break points
                done.add(step.target)
                lines.append(self._line(step, clipped=clipped))
                continue
            if group := self._group(sums, deep, done, marks):
                sums = [s for s in sums if s not in group[0]]
                done |= {s.target for s in group[0]}
                lines.append(self._part(*group, marks, block))
                continue
            if not pending:
                raise HermitexError("a sum over arrays stands in its own summand")
            # what is computed along an axis cannot shape it
            marks[pending[0]] = marks[pending[0]].known(marks[pending[0]].needs - done)
        return lines

    def _group(self, sums: Sequence[Statement], deep: Sequence[Statement], done: AbstractSet[Symbol],
               marks: Mapping[NodeAxis, Marks]) -> tuple[list[Statement], list[Statement]] | None:
        """Sums over one axis that can be taken now, and the statements along it that they need."""
        bodies = {s.target: s for s in deep}
        inner = {a.symbol for s in deep for a in s.axes if not a.summed}
        found: list[Statement] = []
        needed: set[Symbol] = set()
        for s in sums:
            if found and s.axes != found[0].axes:
                continue
            mine, left, reads = set[Symbol](), list(s.needs), set[Symbol]()
            while left:
                v = left.pop()
                if v in bodies and v not in mine:
                    mine.add(v)
                    left += bodies[v].needs
                    left += [w for a in bodies[v].axes if a in marks for w in marks[a].needs]
                elif v not in bodies:
                    reads.add(v)
            if all(v in done or v in inner for v in reads):
                found.append(s)
                needed |= mine
        return (found, [s for s in deep if s.target in needed]) if found else None

    def _part(self, sums: Sequence[Statement], deep: Sequence[Statement], marks: dict[NodeAxis, Marks], block: frozenset[Symbol]
              ) -> str:
        """Write the function that sums along one axis, block by block, and the line that calls it."""
        (axis,) = sums[0].axes
        self.parts += 1
        name = f"sum_{self.parts}"
        rules = sorted({a for s in deep for a in s.axes if not a.summed}, key=self.axes.index)
        made = {s.target for s in (*deep, *sums)}
        reads = {v for s in (*deep, *sums) for v in s.needs} | {v for a in rules for v in marks[a].needs}
        reads |= {self.sizes[a] for s in deep for a in s.axes if a.summed}
        values = sorted(reads - made - {a.symbol for a in rules}, key=lambda v: v.name)
        targets = [s.target for s in sums]
        lines = self._lines([*deep, *sums], set(targets), set(values), {a: m for a, m in marks.items() if a in rules},
                            block=block | {axis.symbol})
        lines.append(f"return {_tuple(map(self.names, targets))}")
        arguments = ", ".join(["quad", "block_size", *map(self.names, values)])
        self.functions.append(f"def {name}({arguments}):\n" + textwrap.indent("\n".join(lines), "    "))
        along = frozenset().union(*(self.reach.get(v, frozenset()) for v in values)) | {a.symbol for a in rules}
        names = [literal(a.identifier) for a in self.axes if not a.summed and a.symbol in along]
        others = ["0", *(str(1 + k) for k, a in enumerate(self.axes) if a.symbol in block)]
        given = [name, self.names(self.sizes[axis]), str(1 + self.axes.index(axis)), _tuple(others), _tuple(names), "quad",
                 *map(self.names, values)]
        return f"{', '.join(map(self.names, targets))}{',' if len(targets) == 1 else ''} = summed({', '.join(given)})"

    def _text(self, e: Expr) -> str:
        return self.printer.doprint(divisions(e, self.parameters, self._from_above))

    def _width(self, e: Expr) -> float:
        """Along how many axes an expression varies; half a one more where it does from point to point."""
        along, nodes = set[Symbol](), {a.symbol: a for a in self.axes}
        for v in e.free_symbols:
            along |= self.reach.get(v, frozenset()) | ({v} & nodes.keys())
            if v in nodes and v not in self.still and nodes[v].identifier in self.marks:
                along |= frozenset().union(*(self.reach.get(w, frozenset()) for w in self.marks[nodes[v].identifier].needs))
        return len(along) + 0.5*(not e.free_symbols <= self.still)

    def _there(self, marks: Marks, absent: AbstractSet[Symbol]) -> Marks:
        """The marks that can be computed; a break point is written out in what is there."""
        kinks = tuple(self._written(p) if p.free_symbols & absent else p for p in marks.kinks)
        return marks._replace(kinks=kinks).known(absent)

    def _written(self, e: Expr) -> Expr:
        """An expression of parameters with the temporaries in it written out."""
        if e not in self.out:
            needed, left = set[Symbol](), [e]
            while left:
                here = left.pop().free_symbols & self.definitions.keys() - needed - self.out.keys()
                needed |= here
                left += [self.definitions[v] for v in here]
            for v in sorted(needed, key=self.order.__getitem__):
                self.out[v] = self.definitions[v].xreplace(self.out)
            self.out[e] = e.xreplace(self.out)
        return self.out[e]

    def _from_above(self, base: Expr) -> bool:
        """True if it is a square root, is rooted somewhere, or has the sign of what is: at 0 it comes from above."""
        number, rest = self._written(base).as_coeff_Mul()
        if not number.is_positive:
            return False
        if isinstance(rest, Pow) and rest.exp.is_Rational and rest.exp.is_positive:
            return rest.exp.q == 2 or rest.exp.p % 2 == 0 or self._from_above(rest.base)
        return rest in self.roots or bool(rest.is_nonnegative)

    def _axis_line(self, axis: NodeAxis, marks: Marks) -> str:
        rule = f"quad[{literal(axis.identifier)}]"
        names = f"{self.names(axis.symbol)}, {self.weights[axis]}"
        if axis.identifier not in self.marks:
            return f"{names} = {rule}"
        printed = self.printer.doprint
        narrow = [f"({printed(k)}, {self._centre(k, b)})" for k, b in marks.narrow]
        given = (_tuple(map(printed, marks.kinks)), _tuple(narrow), _tuple(map(printed, marks.fast)))
        return f"{names} = spread({rule}, {', '.join(given)})"

    def _centre(self, k: Expr, b: Expr) -> str:
        """-b/k, with what both have in common gone: at T = 0, the centre of (h + z)/T is still -h."""
        above, below = map(self.printer.doprint, fraction(expand_mul(-b/k)))
        return above if below == "1" else f"np.divide({above}, {below})"

    def _line(self, s: Statement, *, clipped: bool) -> str:
        moving, table = self._parted(s)
        text = self._text(moving)
        # A value known to be nonnegative must not become negative by rounding: its root is taken further on.
        if clipped and s.target.is_nonnegative and not s.target.is_positive and not s.axes:
            text = f"not_negative({text}, {self._text(magnitude(s.expr))})"
        # A number of Python raises where it is divided by; one of NumPy gives inf.
        text = f"np.float64({float(s.expr)!r})" if s.expr.is_Rational and not s.axes else text
        for axis in reversed(s.axes):
            place = 1 + self.axes.index(axis)
            weighed = f", {self._text(table)}" if table != 1 else ""
            text = f"total({text}, {place}, block_size)" if axis.summed else (
                f"average({text}, {self.weights[axis]}, {place}{weighed})")
        line = f"{self.names(s.target)} = {text}"
        least_note = 16  # characters that the note of an average takes at least
        if not s.axes or len(line) > _WIDTH - least_note or s.target not in self.lowered.notes:
            return line
        note = comment_text(self.lowered.notes[s.target]())
        return f"{line}  # {note}" if len(line) + len(note) <= _WIDTH - 8 else line

    def _parted(self, s: Statement) -> tuple[Expr, Expr]:
        """The integrand over one axis, and its factor that is a table along that axis, as it does not depend on the unknowns."""
        if len(s.axes) != 1 or s.axes[0].summed:
            return s.expr, S.One
        along = s.axes[0].symbol
        moving = [f for f in Mul.make_args(s.expr) if f.free_symbols and not (
            f.free_symbols <= self.still and any(v == along or along in self.reach.get(v, ()) for v in f.free_symbols))]
        table = Mul(*(f for f in Mul.make_args(s.expr) if f not in moving))
        return (Mul(*moving), table) if moving and table.free_symbols else (s.expr, S.One)

    def source(self) -> str:
        """The module text: imports, helpers, functions."""
        solvers = self.printer.solvers
        minimises = any(name.startswith("prox_") for name, _ in solvers.values())
        bodies = [*([SOLVER] if minimises else []), *(text for _, text in solvers.values()), *self.functions]
        helpers = used_helpers("\n".join(bodies))
        self.printer.special.update(n for name in helpers for n in HELPERS[name][0])
        parts = [HELPERS[name][1] for name in helpers] + bodies
        text = "\n".join(self.printer.imports()) + "\n\n\n" + "\n\n\n".join(p.strip("\n") for p in parts) + "\n"
        docs = check_source(text)[1]
        if any(docs.get(name) != doc for name, doc in self.docs.items()):
            raise HermitexError("the source that was generated does not read as it was meant; nothing is computed with it")
        return text


def _tuple(parts: Iterable[str]) -> str:
    inside = ", ".join(parts)
    return f"({inside},)" if inside else "()"


def _read(names: Mapping[str, str]) -> list[str]:
    """The lines by which a function reads `s`: one a line, or as many as fit on a line if they are many."""
    parts = list(names.items())
    reads = 20  # names that a function reads, from which on a line holds as many as fit
    size = 1 if len(parts) <= reads else (_WIDTH - 4)//max(len(f"{n}, s[{key}], ") for n, key in parts)
    lines = [parts[k:k + max(1, size)] for k in range(0, len(parts), max(1, size))]
    return [", ".join(n for n, _ in line) + " = " + ", ".join(f"s[{key}]" for _, key in line) for line in lines]


def _returned(items: Mapping[str, str]) -> str:
    """The return statement: one line, or one line for each formula and as many names as fit on a line; many are all packed."""
    parts = [f"{literal(label)}: {text}" for label, text in items.items()]
    line = f"return {{{', '.join(parts)}}}"
    if len(line) <= _WIDTH - 4:
        return line
    packed_from = 100  # formulas in one return statement, from which on a line holds as many as fit
    packed = len(parts) > packed_from or all(text.isidentifier() for text in items.values())
    lines = [""]
    for part in parts:
        together = f"{lines[-1]}, {part}" if lines[-1] else part
        fits = packed and len(together) <= _WIDTH - 8
        lines[-1:] = [together] if fits or not lines[-1] else [lines[-1], part]
    return "return {\n" + "".join(f"    {line},\n" for line in lines) + "}"


def load(source: str, rewritten: Callable[[Module], Module] | None = None) -> dict[str, Any]:
    """Run generated source and give its namespace; `rewritten` makes another tree of the checked one.

    Raises BadInput if it holds anything but formulas, see `whitelist`: it may come from a file or a pickle.
    """
    namespace: dict[str, Any] = {}
    np.empty(4_000_000)  # free at once: from then on glibc keeps the pages of what is freed for the next arrays
    exec(check_source(source, rewritten)[0], namespace)
    return namespace


def place(values: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """A vector along one axis of an array with `ndim` axes."""
    shape = [1] * ndim
    shape[axis] = -1
    return np.asarray(values).reshape(shape)
