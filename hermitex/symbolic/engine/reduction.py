"""E[z^n g(z)] = (n-1) E[z^(n-2) g(z)] + E[z^(n-1) g'(z)]: what has no closed form, over canonical irreducible nodes.

Every node is split by linearity and into independent factors, its exact terms are put in, logistic functions are
written by tanh, and powers of z are integrated by parts while the derivative brings in none. Equal irreducible parts
are then the same node, and cancel.
"""

from __future__ import annotations

from sympy import Add, Derivative, Dummy, Expr, Mul, Pow, S, Symbol, default_sort_key, diff, exp, tanh

from hermitex.errors import Divergent, HermitexError
from hermitex.symbolic.bounds.integrability import dangers
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.canonical import Diverges
from hermitex.symbolic.engine.node_integrals import answer, joined, may_cancel
from hermitex.symbolic.engine.one_variable import expectation, provably_finite
from hermitex.symbolic.engine.rational_tidying import depends, multiplied_out, root, tidy
from hermitex.symbolic.engine.several_variables import Matrix, independent_groups, linear_forms
from hermitex.symbolic.existence_check import kept_together
from hermitex.symbolic.formula_size import operations
from hermitex.symbolic.gaussian import Expectation, bind
from hermitex.symbolic.pieces import breakpoints


def normal_form(expr: Expr) -> Expr:
    """The expression over canonical irreducible nodes; equal expressions need not, but mostly do, become identical.

    Raises
    ------
    Divergent : a node does not exist.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> normal_form(E(z*tanh(z), z)) == normal_form(E(1 - tanh(z)**2, z)) == 1 - E(tanh(z)**2, z)
    True
    """
    if not expr.has(Expectation):
        return expr
    try:
        done = _walk(expr)
    except Diverges as no:
        raise Divergent(expr, str(no)) from no
    return _multiplied(done) if done.has(Expectation) else done


def _walk(expr: Expr) -> Expr:
    if not expr.args or not expr.has(Expectation):
        return expr
    if isinstance(expr, Expectation):
        return _node(expr)
    return expr.func(*(_walk(a) for a in expr.args))


def _multiplied(expr: Expr) -> Expr:
    """Multiply out what holds nodes, so that like terms meet."""
    longest = 3000  # operations of an expression that is multiplied out; chosen by trial
    return multiplied_out(expr) if operations(expr) < longest else expr


def _node(node: Expectation) -> Expr:
    checkpoint("reducing an expectation")
    body, variables = node.open()
    inner = logistic(_walk(body))
    again = node.with_body(_multiplied(inner) if inner.has(Expectation) else inner, variables)
    if not isinstance(again, Expectation):
        return again
    flat = joined(again)
    if flat is not None and flat != again:
        return _walk(flat)
    found = answer(again)
    try:
        return Add(found.value, *(_irreducible(n) for n, _ in found.rest))
    except Diverges:
        if may_cancel(again):
            return again
        raise


def _irreducible(node: Expr) -> Expr:
    """A coefficient times a node without closed form, in canonical parts."""
    factor, core = node.as_independent(Expectation, as_Add=False) if node.is_Mul else (S.One, node)
    if not isinstance(core, Expectation):
        return node
    body, variables = core.open()
    total = []
    for term in kept_together(Add.make_args(_multiplied(logistic(body))), variables, core.covariance):
        parts = [S.One]
        for group, names, cov in independent_groups(term, variables, core.covariance):
            parts.append(_group(group, names, cov))
        total.append(Mul(*parts))
    return factor * Add(*total)


def _group(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Expr:
    if not variables:
        return body
    if len(variables) == 1:
        x = variables[0]
        t = Dummy(x.name, real=True)
        return _one(body.xreplace({x: root(cov[0, 0]) * t}) if cov[0, 0] != 1 else body.xreplace({x: t}), t)
    fewer = linear_forms(body, variables, cov)
    if fewer is not None:
        new, names, law, _ = fewer
        return Mul(*(_group(*g) for g in independent_groups(new, names, law)))
    factor, core = body.as_independent(*variables, as_Add=False)
    return factor * bind(core, variables, cov)


def _one(body: Expr, x: Symbol) -> Expr:
    """The reduced form of E[body] over one standard normal."""
    done: dict[Expr, Expr] = {}
    todo: dict[tuple[int, Expr], Expr] = {}
    _split(body, x, todo)
    while todo:
        checkpoint("integrating by parts")
        n, core = max(todo, key=lambda k: (k[0], default_sort_key(k[1])))
        c = todo.pop((n, core))
        if c == 0:
            continue
        lowered = by_parts(n, core, x)
        if lowered is None:
            done[x**n * core] = done.get(x**n * core, S.Zero) + c
        else:
            _split(lowered, x, todo, c)
    total = []
    for term, c in done.items():
        found = expectation(term, x)
        total.append(c * found.value)
        total += [c * _mirrored(rest, x, bind) for rest, _ in found.rest]
    return Add(*total)


def _split(body: Expr, x: Symbol, into: dict[tuple[int, Expr], Expr], c: Expr = S.One) -> None:
    for term in kept_together(Add.make_args(_multiplied(body)), (x,)):
        factor, core = term.as_independent(x, as_Add=False)
        n = 0
        rest = []
        for f in Mul.make_args(core):
            base, power = f.as_base_exp()
            if base == x and power.is_Integer and power.is_positive:
                n += int(power)
            else:
                rest.append(f)
        key = (n, Mul(*rest))
        into[key] = tidy(into.get(key, S.Zero) + c * factor)


def by_parts(n: int, core: Expr, x: Symbol) -> Expr | None:
    """(n-1) z^(n-2) g + z^(n-1) g', less what g' brings back of z g; None where g' brings in other powers of z.

    None too where g is not proved absolutely continuous: atan(1/z) and sin(tan(z)) jump or whirl at a pole inside.
    """
    if n == 0 or core.has(*SWITCHES) or core.has(Expectation) or not depends(core, x):
        return None
    slope: dict[tuple[int, Expr], Expr] = {}
    _split(logistic(diff(core, x)), x, slope)
    back = slope.pop((1, core), S.Zero)
    size = tidy(1 - back)
    if size == 0 or any(power for power, _ in slope):
        return None
    rest = Add(*(c * e for (_, e), c in slope.items()))
    if not (_smooth(core, x) and provably_finite(core, x) and provably_finite(rest, x)):
        return None
    return ((n - 1) * x ** (n - 2) * core + x ** (n - 1) * rest) / size if n > 1 else rest / size


def _smooth(core: Expr, x: Symbol) -> bool:
    if not dangers(core, (x,), rough=True):
        return True
    try:
        return not breakpoints(core, x)
    except HermitexError:
        return False


def _mirrored(body: Expr, x: Symbol, close: object) -> Expr:
    """E[f(-z)] = E[f(z)]: the first of the two in SymPy's order; constants outside."""
    factor, core = body.as_independent(x, as_Add=False)
    if core.has(Derivative):   # by x, of a function that is not known
        return factor * close(core, (x,), None)  # type: ignore[operator]
    other = core.xreplace({x: -x})
    sign, other = (S.NegativeOne, -other) if other.could_extract_minus_sign() else (S.One, other)
    if (operations(other), default_sort_key(other)) < (operations(core), default_sort_key(core)):
        factor, core = sign * factor, other
    return factor * close(core, (x,), None)  # type: ignore[operator]


def logistic(e: Expr) -> Expr:
    """1/(1 + exp(u)) = (1 - tanh(u/2))/2, also to powers and times exp(k u)."""
    if not e.has(exp):
        return e
    # From the outside in: exp(u)/(1 + exp(u)) is seen whole.
    found = _logistic(e) if isinstance(e, Mul | Pow) else e
    if found != e:
        return logistic(found)
    return e.func(*(logistic(a) for a in e.args)) if not isinstance(e, Expectation) else e


def _logistic(e: Expr) -> Expr:
    for factor in Mul.make_args(e):
        base, n = factor.as_base_exp()
        if not (isinstance(base, Add) and n.is_Integer and n.is_negative and len(base.args) == 2):
            continue
        numbers = [a for a in base.args if not a.has(exp)]
        grown = [a for a in base.args if a.has(exp)]
        if len(numbers) != 1 or len(grown) != 1 or not isinstance(grown[0] / numbers[0], exp):
            continue
        u = (grown[0] / numbers[0]).args[0]
        rest = e / factor
        power, k = S.Zero, -n
        for f in Mul.make_args(rest):
            if isinstance(f, exp):
                power += f.args[0] / u
                rest = rest / f
        power = tidy(power)
        if not (power.is_Integer and 0 <= power <= k):
            continue
        half = tanh(u / 2)
        return rest * numbers[0] ** n * ((1 - half) / 2) ** (k - power) * ((1 + half) / 2) ** power
    return e
