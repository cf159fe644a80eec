"""Formulas with E(...) nodes -> a straight list of array statements: the middle of the compiler.

    closed forms first; every node left becomes a contraction sum_j w_j F_j over the axes of its variables;
    what nodes share is computed once (common subexpressions over all bodies and outputs together).

Every array has one axis for the points of a batch and one for each integration variable, in a fixed order; what does
not depend on a variable has length 1 there, so an inner expectation that no unknown enters is a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from sympy import (
    Add,
    Dummy,
    Expr,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    cse,
    default_sort_key,
    exp,
    numbered_symbols,
)

from hermitex.errors import BadInput
from hermitex.kernels.cancellation import may_cancel, may_divide_by_zero
from hermitex.kernels.closed_form_choice import exact_or_none, may_have_closed_form, over_independent_normals
from hermitex.kernels.common_factors import factor_common
from hermitex.kernels.correlated_fields import Conditioned, correlated
from hermitex.kernels.far_modes import around_modes
from hermitex.kernels.lowered import Lowered, NodeAxis, Statement, topological_order
from hermitex.kernels.recognition import recognise
from hermitex.kernels.separate_terms import separate_terms
from hermitex.kernels.singular import behind_switches, through_powers
from hermitex.kernels.squares import drawn_wider
from hermitex.kernels.temperature import move_temperature_inward
from hermitex.symbolic.breaks.switches import JUMPS, SWITCHES, compared
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.conditioning import sifted
from hermitex.symbolic.dimension_reduction import four_signs, over_fewer
from hermitex.symbolic.existence_check import require_falling_terms
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Element, Index, elements, said, unsummed
from hermitex.symbolic.moreau import resolve
from hermitex.symbolic.subexpressions import parts, swapped


def lower(exprs: Sequence[Expr], *, names: Mapping[Symbol, Expr] | None = None, taken: Iterable[str] = (),
          exact: bool = True, cancelling: bool = True) -> Lowered:
    """Lower formulas to statements.

    Parameters
    ----------
    exprs : the formulas, with nodes as deep as they may be
    names : sub-expressions that keep their name in the generated code ({Q: 1/(1 + V)}), fully expanded
    taken : names of parameters and unknowns, which no axis may bear
    exact : try closed forms first
    cancelling : take closed forms whose terms may cancel, and averages term by term; else the whole is integrated
    """
    names, taken = {s: _take_exact_parts(e) for s, e in (names or {}).items()}, frozenset(taken)
    exprs = [_take_exact_parts(e) for e in exprs]
    for e in (*names.values(), *exprs) if exact else ():
        require_falling_terms(e)
    roots = radical_symbols([*names.values(), *exprs], taken)
    work = _Lowering(exact, taken | {s.name for s in roots.values()}, names, {base: s**2 for base, s in roots.items()})
    work.cancelling = cancelling
    named = {s: base ** Rational(1, 2) for base, s in roots.items()}
    named |= {s: work.definition(_without(e, roots)) for s, e in names.items()}
    outputs = [work.flat(_without(e, roots), ()) for e in exprs]
    return replace(work.schedule(outputs, named), closed=bool(work.forms) or work.parted, divided=work.divided)


def _take_exact_parts(expr: Expr) -> Expr:
    """Parts without values at points are taken exactly beforehand: masses of deltas, envelopes, logarithms over a temperature."""
    return move_temperature_inward(resolve(sifted(expr)))


def radical_symbols(exprs: Iterable[Expr], taken: frozenset[str]) -> dict[Expr, Symbol]:
    """{A: a positive symbol for sqrt(A)} for square roots of parameters whose sign SymPy does not know.

    sqrt(1 - gamma**2) is real where the formula is used at all; as a positive symbol it lets the exact engine work. One with which
    a jump's argument vanishes is none: sign(sqrt(n) z) is sign(z) for every positive root, and 0 at n = 0.
    """
    found: dict[Expr, Symbol] = {}
    for e in exprs:
        jumping = [u for jump in parts(e) if isinstance(jump, JUMPS) for u in compared(jump)]
        for power in sorted(_roots(e), key=default_sort_key):
            base = power.base
            plain = base.free_symbols and {s.name for s in base.free_symbols} <= taken and not base.has(Expectation, ArraySum)
            # sqrt(1 - rho**2) stays: that it is one tells the engine that rho may be negative, whatever is declared
            circle = any(base == 1 - s**2 and s.is_extended_nonnegative for s in base.free_symbols)
            if plain and not (base.is_positive or circle or base in found
                              or any(u.has(base) and u.xreplace({base: S.Zero}) == 0 for u in jumping)):
                name = f"root{len(found) + 1}"
                found[base] = Symbol(f"{name}_" if name in taken else name, positive=True)
    return found


def _without(e: Expr, roots: Mapping[Expr, Symbol]) -> Expr:
    swap = {p: roots[p.base] ** (2 * p.exp) for p in _roots(e) if p.base in roots} if roots else {}
    return swapped(e, swap) if swap else e


def _roots(e: Expr) -> Iterator[Pow]:
    """The powers of half-integers."""
    return (p for p in parts(e) if isinstance(p, Pow) and p.exp.is_Rational and p.exp.q == 2)


def write_out_forms(e: Expr, forms: Mapping[Symbol, Expr]) -> Expr:
    """A formula with the symbols of closed forms written out."""
    return swapped(e, forms) if forms and not forms.keys().isdisjoint(e.free_symbols) else e


class _Lowering:
    def __init__(self, exact: bool, taken: frozenset[str], definitions: Mapping[Symbol, Expr],
                 squares: Mapping[Expr, Expr]) -> None:
        names = set(definitions)
        self.squares = squares  # {a radicand: the square of the symbol for its root}
        self.roots = {square.base for square in squares.values()}
        self.exact = exact
        self.taken = taken
        self.names = names
        # A name whose definition holds a random variable hides it: no closed form is sought around such a name.
        self.hiding = {s for s in names if s.name not in taken}
        self.holding = _holding(definitions)  # and which of them hold entries of arrays
        self.axes: dict[tuple[str, int, tuple[str, ...]], NodeAxis] = {}  # by name, depth and the other symbols of its switches
        self.fresh = numbered_symbols("E", start=1, real=True)
        self.nodes: dict[tuple[Expr, tuple[NodeAxis, ...]], Symbol] = {}  # flat body with its axes -> the symbol of its value
        self.contractions: list[tuple[Symbol, Expr, tuple[NodeAxis, ...]]] = []
        self.values: set[Symbol] = set()
        self.memo: dict[tuple, Expr] = {}
        self.cancelling = True  # whether such closed forms are taken
        self.forms: dict[Symbol, Expr] = {}  # {a symbol: such a closed form}: they are written out when all is flat
        self.form_symbols: dict[Expr, Symbol] = {}
        self.parted = False  # whether an average is taken term by term
        self.divided = False  # whether a closed form divides by what may be 0
        self.letters: dict[Symbol, Symbol] = {}  # an entry of an array, or an index -> the symbol of its array along the axis

    def definition(self, expr: Expr) -> Expr:
        """A named sub-expression; its own random variables become axes of the expectations that use it."""
        expr = self._lettered(expr)
        known = self.taken | {s.name for s in self.letters.values()}
        free = [s for s in sorted(expr.free_symbols - self.names, key=lambda s: s.name) if s.name not in known]
        outer = tuple(self._axis(s.name, 0) for s in free)
        return self.flat(expr.xreplace({s: a.symbol for s, a in zip(free, outer, strict=True)}), outer)

    # -- nodes -> symbols ------------------------------------------------------------------------------------------
    def flat(self, expr: Expr, outer: tuple[NodeAxis, ...]) -> Expr:
        """`expr` with every node replaced by its closed form or the symbol of its contraction; `outer`: the axes around."""
        if not expr.has(Expectation, ArraySum):
            return expr
        key = (expr, outer)
        if key not in self.memo:
            if isinstance(expr, Expectation):
                self.memo[key] = self._node(expr, outer)
            elif isinstance(expr, ArraySum):
                self.memo[key] = self._sum(expr, outer)
            else:
                self.memo[key] = expr.func(*(self.flat(a, outer) for a in expr.args))
        return self.memo[key]

    def _sum(self, node: ArraySum, outer: tuple[NodeAxis, ...]) -> Expr:
        """The symbol of a sum over arrays; of one over a countable law its closed form, where it has one.

        An average around it may not exist, through terms that no kernel would come to: E exp(P z) over a Poisson law.
        """
        if node.index.endless and not isinstance(whole := node.closed(), ArraySum):
            return self.flat(whole, outer)
        axis = self._index(node.index)
        return self._contracted(self.flat(self._lettered(node.body), outer), (axis,))

    def _index(self, index: Index) -> NodeAxis:
        range_ = (str(index.first), str(index.count)) if index.count else ()
        key = (index.name, -2 if index.endless else -1, range_)
        if key not in self.axes:
            printed = self._free(index.name if index.endless else f"{index.name}_place")
            self.axes[key] = NodeAxis(printed if range_ else index.name, 0, Symbol(printed, integer=True, nonnegative=True),
                                      summed=not index.endless, first=index.first, count=index.count, counting=index.endless)
        if self.axes[key].first != index.first:
            raise BadInput(f"a sum over {index.name} begins at 0 and another one at 1; give one of them another index")
        return self.axes[key]

    def _lettered(self, expr: Expr) -> Expr:
        """Entries of arrays, and indices used as numbers, as plain symbols that vary along the axis of the index."""
        for s in (*sorted(expr.atoms(Index), key=str), *elements(expr)):
            if s not in self.letters:
                if isinstance(s, Index):
                    self.letters[s] = self._index(s).symbol
                else:
                    for i in s.indices:
                        self._index(i)
                    name = self._free("_".join([s.array.name, *(i.name for i in s.indices)]))
                    self.letters[s] = Symbol(name, real=True, **said(s))
        return _replace_outside_sums(expr, self.letters)

    def _free(self, name: str) -> str:
        taken = self.taken | {s.name for s in self.letters.values()} | {a.identifier for a in self.axes.values()}
        while name in taken:
            name += "_"
        return name

    def _contracted(self, body: Expr, axes: tuple[NodeAxis, ...]) -> Symbol:
        """The symbol of a sum or an average of `body` over axes."""
        if (body, axes) not in self.nodes:
            symbol = next(s for s in self.fresh if s.name not in self.taken)
            self.nodes[body, axes] = symbol
            self.values.add(symbol)
            self.contractions.append((symbol, body, axes))
        return self.nodes[body, axes]

    def _node(self, node: Expectation, outer: tuple[NodeAxis, ...]) -> Expr:
        checkpoint("lowering an expectation")
        if (signs := four_signs(node)) is not None:
            return self.flat(signs, outer)
        given, node = node, over_independent_normals(node)
        if far := _split_exponential_terms(node):
            return Add(*(self.flat(e, outer) for e in far))
        if not node.free_symbols & self.hiding:  # what does not depend on an axis around it is shared with other places
            outer = tuple(a for a in outer if a.symbol in node.free_symbols)
        depth, index = len(outer), self._along(node)
        order = _solvable_last(node)
        coupled = [index]*len(order) if index else self._coupled(node, order, outer)
        axes = tuple(self._axis(b.name, depth, beside) for b, beside in zip(order, coupled, strict=True))
        # The nodes' symbols go in directly, so that what is equal inside two expectations stays equal.
        inside = swapped(node.body, {b: a.symbol for b, a in zip(order, axes, strict=True)})
        body = self.flat(inside, (*outer, *axes))
        whole = write_out_forms(body, self.forms)
        if self.exact and not whole.free_symbols & (self.values | self.hiding) and may_have_closed_form(whole,
                                                                                                        {a.symbol for a in axes}):
            done = self._closed(node if whole == inside else E(whole, *(a.symbol for a in axes)))
            if done is not None:
                self.divided = self.divided or may_divide_by_zero(done, self.roots)
                if not may_cancel(done):
                    return done
            if done is not None and self.cancelling:
                return self._form(done)
        if not node.free_symbols & self.hiding and not node.body.has(ArraySum) and (short := over_fewer(node)) is not None:
            return self.flat(short, outer)
        if self.exact and self.cancelling and not node.free_symbols & self.hiding and not node.body.has(
                Expectation, ArraySum) and (apart := separate_terms(node, self._has_form)):
            self.parted = True
            return Add(*(self.flat(e, outer) for e in apart))
        if not outer and not given.free_symbols & self.hiding and (product := correlated(given)) is not None:
            before, factors = product
            axis = self._axis("u", 1, fields=len(factors.functions) - 1)
            law = [self.flat(given.covariance[i, j], outer) for i in range(len(given.bound)) for j in range(i + 1)]
            return self.flat(before, outer)*self._contracted(Conditioned(factors, axis.symbol, *law), (axis,))
        if not whole.free_symbols & self.hiding:
            drawn = [a.symbol for a in axes], [a.symbol for a in outer]
            if self._vary(whole, set(drawn[0])):  # averages inside are drawn so, too
                whole = node.body.xreplace({b: a.symbol for b, a in zip(order, axes, strict=True)})
            wider = through_powers(behind_switches(around_modes(drawn_wider(whole, *drawn), *drawn)), *drawn)
            body = body if wider == whole else self.flat(wider, (*outer, *axes))
        return self._contracted(body, axes)

    def _vary(self, e: Expr, variables: set[Symbol]) -> bool:
        """Do averages inside, which are symbols by now, vary with variables? A change of variables would pass them by."""
        inner = e.free_symbols & self.values
        return any(self._vary(body, variables) or not body.free_symbols.isdisjoint(variables)
                   for body in (write_out_forms(body, self.forms) for symbol, body, _ in self.contractions if symbol in inner))

    def _form(self, done: Expr) -> Symbol:
        """The symbol of a closed form whose terms may cancel."""
        if done not in self.form_symbols:
            above = all(t.is_positive for t in Add.make_args(done))  # of the whole SymPy would try much in vain
            symbol = Symbol(f"C{len(self.forms)}'", real=True, positive=above or None)  # no user's name bears a prime
            self.form_symbols[done], self.forms[symbol] = symbol, done
        return self.form_symbols[done]

    def _closed(self, node: Expr) -> Expr | None:
        """The closed form of an average. A square root in the integrand says that its radicand is positive.

        It does not say so of other averages, nor where it stands under a condition; and where the closed form holds no root
        any more, nothing would show that the radicand is negative after all.
        """
        plain = node.replace(Piecewise, lambda *pairs: Dummy()).free_symbols if self.squares else set()
        told = {base: square for base, square in self.squares.items() if square.free_symbols <= plain and node.has(base)}
        if told:
            done = exact_or_none(node.xreplace(told))
            if done is None or all(square.free_symbols <= done.free_symbols for square in told.values()):
                return done
        return exact_or_none(node)

    def _has_form(self, term: Expectation) -> bool:
        return may_have_closed_form(term.body, set(term.bound)) and self._closed(term) is not None

    def _along(self, node: Expectation) -> tuple[str, ...]:
        """The indices of arrays along which an average varies: its nodes serve no average that does not."""
        entries = {e for e, s in self.letters.items() if s in node.body.free_symbols}
        entries |= set().union(*(self.holding[s] for s in node.body.free_symbols & self.holding.keys()))
        return tuple(sorted({i.name for e in entries for i in getattr(e, "indices", (e,))}))

    def _coupled(self, node: Expectation, order: Sequence[Symbol], outer: tuple[NodeAxis, ...]) -> list[tuple[str, ...]]:
        """For each variable in order, those outside of it with which it shares a switch: its break points move with them.

        Such nodes serve no average that does not vary with the others; a name that hides a variable speaks of the common ones.
        """
        if node.body.free_symbols & self.hiding:
            return [()] * len(order)
        switches = [s.free_symbols for s in node.body.atoms(*SWITCHES)]
        around = {a.symbol: a.identifier for a in outer}
        found = []
        for b in order:
            found.append(tuple(name for v, name in around.items() if any({b, v} <= s for s in switches)))
            around[b] = b.name
        return found

    def _axis(self, name: str, depth: int, beside: tuple[str, ...] = (), fields: int = 1) -> NodeAxis:
        name = name if fields == 1 else f"{name}{fields}"
        if (name, depth, beside) not in self.axes:
            printed = name if depth == 0 else f"{name}_{depth}"
            while printed in self.taken or any(printed == a.identifier for a in self.axes.values()):
                printed += "_"
            self.axes[name, depth, beside] = NodeAxis(name, depth, Symbol(printed, real=True), beside, fields=fields)
        return self.axes[name, depth, beside]

    # -- statements ------------------------------------------------------------------------------------------------
    def schedule(self, outputs: list[Expr], named: dict[Symbol, Expr]) -> Lowered:
        """Common subexpressions over everything at once, then an order that respects every dependence."""
        named = {s: write_out_forms(e, self.forms) for s, e in named.items()}
        bodies = [write_out_forms(body, self.forms) for _, body, _ in self.contractions]
        exprs = [recognise(e) for e in (*named.values(), *bodies, *(write_out_forms(e, self.forms) for e in outputs))]
        exprs[len(named): len(named) + len(bodies)] = map(factor_common, exprs[len(named): len(named) + len(bodies)])
        given = {s.name for e in exprs for s in e.free_symbols} | self.taken
        fresh = (s for s in numbered_symbols("t", real=True) if s.name not in given)
        shared, reduced = cse(exprs, symbols=fresh, order="canonical", list=True)
        statements = [Statement(s, e) for s, e in shared]
        temporaries, rename = {s for s, _ in shared}, {}
        for symbol, e in zip(named, reduced[: len(named)], strict=True):
            if e in temporaries and e not in rename:
                rename[e] = symbol
            else:
                statements.append(Statement(symbol, e))
        short = reduced[len(named): len(named) + len(bodies)]
        for (target, _, axes), body in zip(self.contractions, short, strict=True):
            statements.append(Statement(target, body, axes))
        statements = [Statement(rename.get(s.target, s.target), s.expr.xreplace(rename), s.axes) for s in statements]
        used = {a for _, _, axes in self.contractions for a in axes}
        axes = tuple(a for a in self.axes.values() if a in used)
        results = tuple(e.xreplace(rename) for e in reduced[len(named) + len(bodies):])
        known = {e: s for s, e in named.items() if not e.is_Atom}

        def note(body: Expr, over: tuple[NodeAxis, ...]) -> str:
            return f"{'Sum' if over[0].summed else 'E'}({body.xreplace(known)}, {', '.join(a.identifier for a in over)})"

        notes = {target: cache(partial(note, body, over))  # several functions need each
                 for (target, _, over), body in zip(self.contractions, bodies, strict=True)}
        entries = {s: e for e, s in self.letters.items() if isinstance(e, Element)}
        return Lowered(tuple(topological_order(statements)), results, axes, frozenset(temporaries - set(rename)), notes,
                       entries=entries)


def _holding(definitions: Mapping[Symbol, Expr]) -> dict[Symbol, set[Symbol]]:
    """{name: the entries of arrays, and indices, over which its definition takes no sum}, at any remove."""
    found = {s: set(unsummed(e)) for s, e in definitions.items()}
    while True:
        wider = {s: own.union(*(found[n] for n in definitions[s].free_symbols & found.keys())) for s, own in found.items()}
        if wider == found:
            return {s: own for s, own in found.items() if own}
        found = wider


def _solvable_last(node: Expectation) -> list[Symbol]:
    """The variables of an average in the order of its axes: those last in which all that turns its switches is linear.

    The panels of an axis end where a switch turns at fixed values of the axes before it, which is solved for where it is linear.
    """
    turning = [u for s in node.body.atoms(*SWITCHES) for u in compared(s)] if len(node.bound) > 1 else []

    def solvable(b: Symbol) -> bool:
        return all(b not in u.free_symbols or (_algebraic(u, b) and u.diff(b, 2) == 0) for u in turning)

    return sorted(node.bound, key=solvable)


def _split_exponential_terms(node: Expectation) -> list[Expr]:
    """The averages of the terms of a sum, if exp(b z - b^2/2) moves some of them; each moved term has nodes of its own."""
    if not isinstance(node.body, Add) or not node.body.has(exp):
        return []
    body, variables = node.within()

    def moved(t: Expr) -> bool:
        exponents = [f.args[0] for f in Mul.make_args(t) if isinstance(f, exp)]
        return any(_algebraic(u, v) and u.diff(v) != 0 and u.diff(v, 2) == 0 for u in exponents for v in variables)

    far = [t for t in body.args if moved(t) and drawn_wider(t, variables) != t]
    near = [t for t in body.args if t not in far]
    return [node.with_body(t, variables, keep=True) for t in ([*far, Add(*near)] if near else far)] if far else []


def _algebraic(e: Expr, v: Symbol) -> bool:
    """Does v occur in sums and products only? Derivatives of other functions of it are long."""
    return all(_algebraic(a, v) for a in e.args) if isinstance(e, Add | Mul) else e == v or v not in e.free_symbols


def _replace_outside_sums(expr: Any, swap: Mapping[Symbol, Symbol]) -> Any:
    """`xreplace` that keeps the indices of sums, inside of these sums, too: the sums are searched for closed forms."""
    if not expr.has(ArraySum):
        return expr.xreplace(swap)
    if isinstance(expr, ArraySum):
        return ArraySum(_replace_outside_sums(expr.body, {k: v for k, v in swap.items() if k != expr.index}), expr.index)
    return expr.func(*(_replace_outside_sums(a, swap) for a in expr.args))
