"""d/dv of formulas with nodes: d E[f]/dv = E[df/dv], by the chain rule through the nodes; weak where v moves a switch."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Abs, Add, Basic, Dummy, Expr, Heaviside, Max, Min, Piecewise, S, Symbol, ceiling, diff, floor, sign

from hermitex.symbolic.gaussian import Expectation

_SWITCHES = (sign, Heaviside, Abs, Max, Min, Piecewise, floor, ceiling)


class Names:
    """Names that stay names while unknowns stand in their definitions: dF/dv = F_v + sum_n F_n dn/dv, each part taken once.

    definitions : {name: expression} in unknowns, parameters and each other, acyclic
        (where an average moves a switch with one of them, its integrand is continuous there)
    hides : {name: names of the random variables that stand in its definition}, of every name in use
    """

    def __init__(self, definitions: Mapping[Symbol, Expr] | None = None,
                 hides: Mapping[Symbol, frozenset[str]] | None = None) -> None:
        self.definitions, self.hides = dict(definitions or {}), dict(hides or {})
        self._slopes: dict[tuple[Symbol, Symbol], Expr] = {}
        self._parts: dict[tuple[Expr, Symbol], Expr] = {}
        self._reach: dict[Symbol, frozenset[Symbol]] = {}

    def reach(self, expr: Basic) -> set[Symbol]:
        """The free symbols of `expr` and of the names in it, at any remove."""
        free = set(expr.free_symbols)
        return free.union(*(self._of(n) for n in free if n in self.definitions))

    def _of(self, name: Symbol) -> frozenset[Symbol]:
        if name not in self._reach:
            self._reach[name] = frozenset(self.reach(self.definitions[name]))
        return self._reach[name]

    def within(self, expr: Basic, v: Symbol) -> list[Symbol]:
        """The names in `expr` that v enters."""
        return sorted((n for n in expr.free_symbols if n in self.definitions and v in self._of(n)), key=str)

    def slope(self, name: Symbol, v: Symbol) -> Expr:
        """d name/dv."""
        if (name, v) not in self._slopes:
            self._slopes[name, v] = through_names(self.definitions[name], v, self)
        return self._slopes[name, v]

    def partial(self, node: Expectation, n: Symbol) -> Expr:
        """d node/dn with the other names held, branch by branch: the integrand does not jump where n moves it."""
        if (node, n) not in self._parts:
            body, fresh = node.open()
            self._parts[node, n] = node.with_body(derivative(body, n), fresh, keep=True)
        return self._parts[node, n]

    def hidden(self, expr: Basic) -> set[str]:
        """Names of the random variables in `expr`, written or hidden in a name."""
        return {s.name for s in expr.free_symbols}.union(*(self.hides.get(s, ()) for s in expr.free_symbols))


def through_names(expr: Expr, v: Symbol, names: Names) -> Expr:
    """The derivative with respect to an unknown, by the chain rule through names."""
    if v not in names.reach(expr):
        return S.Zero
    nodes = [n for n in _outermost(expr) if v in names.reach(n)]
    stand = {n: Dummy(real=True) for n in nodes}
    flat = expr.xreplace(stand)
    parts = [diff(flat, v), *(diff(flat, n) * names.slope(n, v) for n in names.within(flat, v))]
    parts += [diff(flat, d) * _of_node(node, v, names) for node, d in stand.items()]
    return Add(*parts).xreplace({d: n for n, d in stand.items()})


def _of_node(node: Expectation, v: Symbol, names: Names) -> Expr:
    bound = {b.name for b in node.bound}
    inner = {n: names.slope(n, v) for n in names.within(node, v)}
    if not any(bound & (names.hidden(slope) | names.hidden(n)) for n, slope in inner.items()):
        # what does not depend on the variables of the node stands before it, so that unknowns share its averages
        return names.partial(node, v) + Add(*(names.partial(node, n) * slope for n, slope in inner.items()))
    body, fresh = node.open()
    inside = through_names(body, v, names)
    # a definition speaks of the bound variables by their names
    same = {s: w for s in inside.free_symbols for w in fresh if s.name == w.name}
    return node.with_body(inside.xreplace(same), fresh, keep=True)


def derivative(expr: Expr, v: Symbol, names: Names | None = None) -> Expr:
    """The derivative with respect to an unknown, through the names that stay names."""
    if names is not None and names.definitions:
        return through_names(expr, v, names)
    if v not in expr.free_symbols:
        return expr * 0
    nodes = [n for n in _outermost(expr) if v in n.free_symbols]
    stand = {n: Dummy(real=True) for n in nodes}
    flat = expr.xreplace(stand)
    back = {d: n for n, d in stand.items()}
    total = diff(flat, v)
    for node, d in stand.items():
        total += diff(flat, d) * _node_derivative(node, v)
    return total.xreplace(back)


def _outermost(expr: Expr) -> list[Expectation]:
    if isinstance(expr, Expectation):
        return [expr]
    found: list[Expectation] = []
    for a in expr.args:
        found += [n for n in _outermost(a) if n not in found]
    return found


def _node_derivative(node: Expectation, v: Symbol) -> Expr:
    if any(v in s.free_symbols for s in node.body.atoms(*_SWITCHES)) or not node.independent:
        return node.diff(v)
    body, fresh = node.open()
    return node.with_body(derivative(body, v), fresh, keep=True)  # mu_1 may stand for mu_1(kappa)
