"""d E[f]/dv = E[f_v] + sum_u E[delta(u) u_v (f(u+) - f(u-))]: derivatives of formulas with nodes, for the steps of a solver.

f_v is taken off the switches of f, u = 0 are the surfaces across which f jumps, and the delta is integrated over a variable
in which u is linear. A formula without such a derivative gets a difference quotient: the residual decides what is solved, a
derivative only how fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sympy import (
    Add,
    Basic,
    Derivative,
    DiracDelta,
    Dummy,
    Expr,
    Rational,
    S,
    Subs,
    Symbol,
    diff,
    exp,
    pi,
    sqrt,
)

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.kernels.closed_form_choice import over_independent_normals
from hermitex.symbolic.breaks.switches import STEPS, SWITCHES
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.gaussian import Expectation, bind
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.symbolic.moreau import has_nodes, resolve
from hermitex.symbolic.subexpressions import swapped
from hermitex.symbolic.surfaces import integrated, surfaces
from hermitex.symbolic.weak import off_the_breaks
from hermitex.systems.gradients import Factors, gradient

Node = Expectation | ArraySum
_UNTAKEN = (Derivative, Subs, DiracDelta)  # a derivative with one of these in it is a name and not a formula
_SECONDS = 10.0  # of processor time for one exact derivative; a difference quotient takes its place


class KeptNames:
    """Names that stay names while their definitions hold unknowns: dF/dv = F_v + sum_n F_n dn/dv, each part taken once.

    definitions : {name: expression} in unknowns, parameters and each other, acyclic
        (where an average moves a switch with one of them, its integrand is continuous there)
    hides : {name: names of the random variables in its definition}, of every name in use
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

    def partial(self, node: Expectation, n: Symbol, missing: list[str] | None = None) -> Expr:
        """d node/dn with the other names held, branch by branch: the integrand does not jump where n moves it."""
        if (node, n) not in self._parts:
            self._parts[node, n] = _with_integrand(node, lambda body: derivative(body, n, None, missing))
        return self._parts[node, n]

    def hidden(self, expr: Basic) -> set[str]:
        """Names of the random variables in `expr`, written or hidden in a name."""
        return {s.name for s in expr.free_symbols}.union(*(self.hides.get(s, ()) for s in expr.free_symbols))


def through_names(expr: Expr, v: Symbol, names: KeptNames, missing: list[str] | None = None) -> Expr:
    """The derivative with respect to an unknown, by the chain rule through names."""
    if v not in names.reach(expr):
        return S.Zero
    nodes = [n for n in _outermost_nodes(expr) if v in names.reach(n)]
    stand = {n: Dummy(real=True) for n in nodes}
    flat = swapped(expr, stand)
    parts = [_of_flat(flat, v, missing), *(_of_flat(flat, n, missing) * names.slope(n, v) for n in names.within(flat, v))]
    parts += [_of_flat(flat, d, missing) * _of_node(node, v, names, missing) for node, d in stand.items()]
    return swapped(Add(*parts), {d: n for n, d in stand.items()})


def _of_node(node: Node, v: Symbol, names: KeptNames, missing: list[str] | None) -> Expr:
    if isinstance(node, ArraySum):
        return ArraySum(through_names(node.body, v, names, missing), node.index)
    bound = {b.name for b in node.bound}
    inner = {n: names.slope(n, v) for n in names.within(node, v)}
    if not any(bound & (names.hidden(slope) | names.hidden(n)) for n, slope in inner.items()):
        # factors that do not depend on the variables of the node go before it, so that unknowns share its averages
        return names.partial(node, v, missing) + Add(*(names.partial(node, n, missing) * slope for n, slope in inner.items()))
    body, fresh = node.opened()
    inside = through_names(body, v, names, missing)
    # a definition speaks of the bound variables by their names
    same = {s: w for s in inside.free_symbols for w in fresh if s.name == w.name}
    return node.with_body(swapped(inside, same), fresh, keep=True)


def derivative(expr: Expr, v: Symbol, names: KeptNames | None = None, missing: list[str] | None = None) -> Expr:
    """The derivative with respect to an unknown, through the names that stay names.

    Parameters
    ----------
    missing : collects what has no exact derivative; its difference quotient is put in. Without it that is refused.

    Raises
    ------
    NoClosedForm : with the reason, without an exact derivative and a list to note that in.
    """
    if names is not None and names.definitions:
        return through_names(expr, v, names, missing)
    if v not in expr.free_symbols:
        return expr * 0
    nodes = [n for n in _outermost_nodes(expr) if v in n.free_symbols]
    stand = {n: Dummy(real=True) for n in nodes}
    flat = swapped(expr, stand)
    total = _of_flat(flat, v, missing)
    for node, d in stand.items():
        total += _of_flat(flat, d, missing) * _node_derivative(node, v, names, missing)
    return swapped(total, {d: n for n, d in stand.items()})


def partials(expr: Expr, unknowns: Sequence[Symbol], names: KeptNames | None = None, missing: list[str] | None = None,
             share: Factors | None = None) -> Iterator[tuple[Symbol, Expr]]:
    """The nonzero (v, d expr/dv): in one walk if the formula has neither nodes nor switches, else one by one.

    `missing` and what is raised: as of `derivative`; `share`: as of `gradient`.
    """
    found = None
    if (names is None or not names.definitions) and not expr.has(Expectation, *SWITCHES):
        found = gradient(expr, frozenset(unknowns), share)
    if found is not None and not any(d.has(*_UNTAKEN, S.NaN, S.ComplexInfinity) for d in found.values()):
        yield from found.items()
        return
    inside = names.reach(expr) if names is not None else expr.free_symbols
    for v in unknowns:
        if v in inside:
            slope = derivative(expr, v, names, missing)
            if slope != 0:
                yield v, slope


def _outermost_nodes(expr: Basic) -> list[Node]:
    """The outermost nodes: averages and sums over arrays."""
    if isinstance(expr, Expectation | ArraySum):
        return [expr]
    found: list[Node] = []
    for a in expr.args:
        found += [n for n in _outermost_nodes(a) if n not in found]
    return found


def _of_flat(flat: Expr, v: Symbol, missing: list[str] | None) -> Expr:
    """The derivative of what holds no node."""
    return flat * 0 if v not in flat.free_symbols else _derivative_or_quotient(lambda: diff(flat, v), flat, v, missing)


def _node_derivative(node: Node, v: Symbol, names: KeptNames | None, missing: list[str] | None) -> Expr:
    if isinstance(node, ArraySum):
        return ArraySum(derivative(node.body, v, names, missing), node.index)
    if node.independent and not has_nodes(node.body) and not any(v in s.free_symbols for s in node.body.atoms(*SWITCHES)):
        return _with_integrand(node, lambda body: derivative(body, v, names, missing))  # mu_1 may mean mu_1(kappa)
    return _derivative_or_quotient(lambda: _with_jumps(node, v, names), node, v, missing)


def _with_integrand(node: Expectation, made: Callable[[Expr], Expr]) -> Expr:
    """The average of what is made of the integrand; it is opened if it holds nodes, whose nesting may change."""
    body, variables = node.within()
    return node.with_body(made(body), variables, keep=True)


def _with_jumps(node: Expectation, v: Symbol, names: KeptNames | None) -> Expr:
    """E[f_v] and the masses of the jumps that v moves."""
    if not node.independent and v in node.covariance.free_symbols:
        return node.diff(v)
    body, fresh = over_independent_normals(node).open()
    body = resolve(body)
    stand = {n: Dummy(real=True) for n in _outermost_nodes(body) if v in n.free_symbols}
    back = {d: n for n, d in stand.items()}
    flat = swapped(body, stand)
    if any({v, *back} & s.free_symbols for s in flat.atoms(*STEPS)):
        raise NoClosedForm(node, f"a step function moves with {v}")
    slopes = {d: derivative(n, v, names) for n, d in stand.items()}

    def total(e: Expr) -> Expr:
        parts = [off_the_breaks(e, v), *(off_the_breaks(e, d) * slope for d, slope in slopes.items())]
        return swapped(Add(*parts), back)

    hides = names.hides if names is not None else {}
    hidden = set().union(*(hides.get(s, ()) for s in flat.free_symbols))  # a name may hold what it would be integrated over
    jumps = [(u.xreplace(back), jump.xreplace(back), total(u)) for u, jump in surfaces(flat, v, *back)]
    masses = integrated(jumps, tuple(w for w in fresh if w.name not in hidden), _density)
    inner = [bind(mass, tuple(w for w in fresh if w != taken), None, keep=True) for mass, taken in masses]
    return bind(total(flat), fresh, None, keep=True) + Add(*inner)


def _density(w: Symbol) -> Expr:
    return exp(-w**2/2)/sqrt(2*pi)


# -- without a formula -------------------------------------------------------------------------------------------------
def _derivative_or_quotient(take: Callable[[], Expr], expr: Expr, v: Symbol, missing: list[str] | None) -> Expr:
    """The result of `take` if it is a formula; else the difference quotient of `expr`, which is noted."""
    try:
        with effort(_SECONDS):
            found = take()
        if not found.has(*_UNTAKEN, S.NaN, S.ComplexInfinity):
            return found
        reason = "it holds a derivative that is not known"
    except (HermitexError, NotImplementedError, ValueError, TypeError, RecursionError) as error:
        checkpoint("differentiating")  # the user's own budget is not ours to spend
        if missing is None and isinstance(error, HermitexError):
            raise
        reason = getattr(error, "reason", "") or str(error).split("\n")[0] or type(error).__name__
        if isinstance(error, BudgetExceeded):
            reason = f"it takes more than {_SECONDS:g} s"
    if missing is None:
        raise NoClosedForm(expr, reason)
    text = str(expr)
    missing.append(f"{text if len(text) <= 80 else text[:77] + '...'} by {v}: {reason}")
    return difference_quotient(expr, v)


def difference_quotient(expr: Expr, v: Symbol) -> Expr:
    """(f(v) - f(v - h))/h, the step toward 0 where v cannot be negative.

    >>> from hermitex.symbols import alpha
    >>> round(float(difference_quotient(alpha**3, alpha).subs(alpha, 2)), 3)
    12.0
    """
    step = Rational(1, 2**18)  # of a difference quotient: five digits of the derivative, and rounding leaves as many
    h = step*v if v.is_nonnegative else step*sqrt(v**2 + Rational(1, 10**4))
    return (expr - expr.xreplace({v: v - h}))/(h + Rational(1, 10**250))
