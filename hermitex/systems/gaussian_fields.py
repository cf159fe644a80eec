"""u_j = sum_i a_ji z_i: the Gaussian fields of an integrand, its derivative through their covariance, and its shortest form.

A field is a largest part of the integrand that is linear in the normals. With the fields as variables an integrand
is F(u), and a parameter enters through Cov(u) and, explicitly, through F.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import (
    Add,
    Basic,
    DiracDelta,
    Dummy,
    Expr,
    Ge,
    Gt,
    Heaviside,
    Le,
    Lt,
    Matrix,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    Tuple,
    cancel,
    default_sort_key,
    erf,
    exp,
    expand,
    pi,
    sign,
    sqrt,
    true,
)
from sympy.core.function import AppliedUndef

from hermitex.check import rules
from hermitex.errors import HermitexError
from hermitex.kernels.closed_form_choice import exact_or_none, may_have_closed_form
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.conditioning import cholesky, over
from hermitex.symbolic.conditioning import independent as standardised
from hermitex.symbolic.formula_size import DECIDED, EXPANDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Index
from hermitex.symbolic.moreau import has_nodes, resolve


class Fields:
    """An integrand over its fields: `body` in the symbols `names`, `rows[j]` the coefficients of field j."""

    def __init__(self, body: Expr, variables: Sequence[Symbol]) -> None:
        self.variables = tuple(variables)
        self.forms: dict[Expr, Symbol] = {}
        self.body = self._walk(body)
        self.names = tuple(self.forms.values())
        self.rows = Matrix([[form.coeff(v) for v in self.variables] for form in self.forms]) if self.forms else Matrix(0, 0, [])

    @property
    def covariance(self) -> Matrix:
        """Cov(u_j, u_l)."""
        return (self.rows * self.rows.T).applyfunc(_short)

    def written_out(self, expr: Expr) -> Expr:
        """An expression in the names of the fields, over the normals again."""
        return expr.xreplace({name: form for form, name in self.forms.items()})

    def _walk(self, e: Basic) -> Basic:
        """`e` with its largest linear parts named; proportional parts share a name."""
        if not e.free_symbols & set(self.variables):
            return e
        if isinstance(e, Add):
            linear: list[Expr] = []
            rest: list[Expr] = []
            for a in e.args:
                (linear if self._homogeneous(a) else rest).append(a)
            if linear:
                return self._named(Add(*linear)) + Add(*(self._walk(a) for a in rest))
        if self._homogeneous(e):
            return self._named(e)
        if isinstance(e, Mul):
            fixed, moving = e.as_independent(*self.variables, as_Add=False)
            return fixed * Mul(*(self._walk(a) for a in Mul.make_args(moving)))
        return e.func(*(self._walk(a) for a in e.args))

    def _homogeneous(self, e: Basic) -> bool:
        """Linear in the normals, without a constant term."""
        if e in self.variables:
            return True
        if isinstance(e, Mul):
            moving = [a for a in e.args if a.free_symbols & set(self.variables)]
            return len(moving) == 1 and self._homogeneous(moving[0])
        return isinstance(e, Add) and all(self._homogeneous(a) for a in e.args)

    def _named(self, form: Expr) -> Expr:
        form = expand(form)
        form = Add(*(_short(form.coeff(v)) * v for v in self.variables))
        if form == 0:
            return S.Zero
        for known, name in self.forms.items():
            ratio = _ratio(form, known, self.variables)
            if ratio is not None and not ratio.has(Index):  # which may be 0
                return ratio * name
        self.forms[form] = Dummy(f"u{len(self.forms) + 1}", real=True)
        return self.forms[form]


def _ratio(form: Expr, known: Expr, variables: Sequence[Symbol]) -> Expr | None:
    """form/known, if the two are proportional."""
    pairs = [(form.coeff(v), known.coeff(v)) for v in variables]
    if any((a == 0) != (b == 0) for a, b in pairs):
        return None
    a, b = next(p for p in pairs if p[0] != 0)
    if all(_short(c * b - a * d) == 0 for c, d in pairs):
        return _short(a / b)
    return None


def _short(e: Expr) -> Expr:
    e = expand(e)
    return cancel(e) if e.is_Add and operations(e) < DECIDED else e


# -- derivatives -------------------------------------------------------------------------------------------------------
def variation(phi: Expr, p: Symbol) -> tuple[Expr, str]:
    """d phi/dp, through the covariance of the fields in every expectation, and the name of the rule that was used."""
    nodes = sorted(_outermost(phi), key=default_sort_key)
    stand = {n: Dummy(real=True) for n in nodes}
    flat = phi.xreplace(stand)
    total, rule = flat.diff(p), "envelope theorem"
    for node, d in stand.items():
        if p in node.free_symbols:
            slope, own = _of_sum(node, p) if isinstance(node, ArraySum) else _of_node(node, p)
            total += flat.diff(d) * slope
            rule = own or rule
    return total.xreplace({d: n for n, d in stand.items()}), rule


def _outermost(expr: Basic) -> set[Expectation | ArraySum]:
    """The outermost averages and sums of averages."""
    if isinstance(expr, Expectation | ArraySum):
        return {expr} if expr.has(Expectation) else set()
    return {n for a in expr.args for n in _outermost(a)}


def _of_sum(node: ArraySum, p: Symbol) -> tuple[Expr, str]:
    slope, rule = variation(node.body, p)
    return ArraySum(slope, node.index), rule if rule == "Price" else ""


def _of_node(node: Expectation, p: Symbol) -> tuple[Expr, str]:
    checkpoint("differentiating a free energy")
    body, variables = standardised(node)
    if body.has(Expectation):  # fields do not reach into inner expectations
        return node.diff(p), ""
    body, variables = _reduce_variables(body, variables)
    fields = Fields(body, variables)
    moved = fields.covariance.diff(p).applyfunc(_short)
    total = rules.weak(fields.body, p) if p in fields.body.free_symbols else S.Zero
    moving = [(j, k) for j in range(len(fields.names)) for k in range(j, len(fields.names)) if moved[j, k] != 0]
    for j, k in moving:
        weight = moved[j, k] * (Rational(1, 2) if j == k else 1)
        total += weight * _resolvent(_second_derivative(fields, j, k))
    return Expectation(fields.written_out(total), Tuple(*variables)), "Price" if moving else ""


def _second_derivative(fields: Fields, j: int, k: int) -> Expr:
    """d_j d_k F, or (w.z) d_j F of the same expectation where F jumps with u_k."""
    first, second = sorted((fields.names[j], fields.names[k]), key=lambda u: _jumps(fields.body, u))
    slope = _weak_derivative(fields.body, first)
    if not _jumps(slope, second):
        return _weak_derivative(slope, second)
    gram = fields.covariance
    if gram.det().expand() == 0:
        return rules.weak(slope, second)
    unit = Matrix([int(u == second) for u in fields.names])
    weights = fields.rows.T * gram.inv() * unit
    return Add(*(_weight(_short(w)) * v for w, v in zip(weights, fields.variables, strict=True))) * slope


def _resolvent(e: Expr) -> Expr:
    """1 - 1/(1 + V l'') as V l''/(1 + V l'')."""
    def over_one(a: Add) -> Expr:
        bend = -1 / (a - 1)
        return (bend - 1) / bend if bend.is_Add and S.One in bend.args else a

    return e.replace(lambda a: isinstance(a, Add) and len(a.args) == 2 and S.One in a.args, over_one)


def _weight(w: Expr) -> Expr:
    """R sqrt(A) as (R A)/sqrt(A), where R A is the shorter."""
    for root in (a for a in Mul.make_args(w) if a.is_Pow and a.exp == S.Half):
        product = _short(cancel(w / root * root.base))
        if operations(product) < operations(w / root):
            return product / root
    return w


def _weak_derivative(f: Expr, u: Symbol) -> Expr:
    return rules.weak(f, u) if f.has(sign, Heaviside, Piecewise, AppliedUndef) else f.diff(u)


def _jumps(f: Expr, u: Symbol) -> bool:
    """Does a step of f turn with u? (An envelope or a prox is continuous in all that enters it, a derivative may jump.)"""
    if any(u in s.free_symbols for s in f.atoms(sign, Heaviside)):
        return True
    try:
        return any(u in s.free_symbols for s in f.atoms(Piecewise)) and rules.weak(f, u).has(DiracDelta)
    except HermitexError:
        return True


# -- the shortest form -------------------------------------------------------------------------------------------------
def shorten_expectations(expr: Expr) -> Expr:
    """Every expectation in its shortest form: exact, or over the fewest normals."""
    stand = {n: ArraySum(shorten_expectations(n.body), n.index) if isinstance(n, ArraySum) else _shorten_expectation(n)
             for n in _outermost(expr)}
    return expr.xreplace(stand)


def _shorten_expectation(node: Expectation) -> Expr:
    body, variables = standardised(node)
    if body.has(Expectation):
        return node
    if not body.has(sign):
        fields = Fields(body, variables)
        body = fields.written_out(_folded(resolve(fields.body)))
    parts = [_average_of_term(a, variables) for a in Add.make_args(_distributed(body))]
    return Add(*parts)


def _folded(f: Expr) -> Expr:
    """A formula of pieces with common conditions, branch by branch."""
    found = list(f.atoms(Piecewise))
    if not found:
        return f
    first = tuple(c for _, c in found[0].args)
    if any(tuple(c for _, c in p.args) != first for p in found):
        return f
    return Piecewise(*((_shortest_branch(f.xreplace({p: p.args[i][0] for p in found})), c) for i, c in enumerate(first)))


def _shortest_branch(e: Expr) -> Expr:
    """The shortest of a branch, multiplied out and factored."""
    if operations(e) > DECIDED or has_nodes(e):
        return e
    return min((e, e.expand(), e.factor()), key=operations)


def _distributed(body: Expr) -> Expr:
    """Sums split where that leaves each term simple."""
    return body if body.has(Piecewise) else expand(body, power_base=False, power_exp=False, log=False, basic=False, deep=False)


def _average_of_term(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """E of one term, its constant factors outside."""
    fixed, moving = body.as_independent(*variables, as_Add=False)
    if moving == 1:
        return fixed
    moving, normals = _reduce_variables(moving, variables)
    moving = _merge_mirrored(_integrate_switch(moving, normals), normals)
    outside, moving = moving.as_independent(*normals, as_Add=False)
    fixed = fixed * outside
    node = over(moving, normals)
    if not isinstance(node, Expectation):
        return fixed * node
    roots = _deviations(fixed * moving, normals)
    sought = not has_nodes(moving) and may_have_closed_form(moving, set(normals))
    exact = exact_or_none(Expectation(_rooted(moving, roots), Tuple(*normals))) if sought else None
    exact = None if exact is None else _printed(exact)
    longest = 100  # operations of a closed form that is printed, though it is longer than the integrand
    if exact is None or operations(exact) > max(longest, operations(moving)):  # what nobody prints, and cancels in floats
        return fixed * over(_split_steps(moving), normals)
    return fixed * (exact.xreplace({s: sqrt(a) for a, s in roots.items()}))


def _printed(e: Expr) -> Expr:
    """A closed form with the arguments of its error functions factored, and like terms together."""
    if operations(e) > EXPANDED:
        return e
    e = e.replace(lambda g: isinstance(g, erf), lambda g: erf(g.args[0].factor()))
    flat = {g: Dummy(real=True) for g in e.atoms(erf, exp)}
    outer = e.xreplace(flat)
    like = outer.expand().collect(list(flat.values()))
    forms = (outer, outer.expand(), outer.factor(), Add(*(a.factor() for a in Add.make_args(like))))
    return min(forms, key=operations).xreplace({d: g for g, d in flat.items()})


def _merge_mirrored(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """f(z) + f(-z) as 2 f(z): both labels alike."""
    if not body.is_Add or len(body.args) != 2:
        return body
    one, other = body.args
    back = other.xreplace({v: -v for v in variables})
    same = one == back or (_split_steps(one) - _split_steps(back)).expand() == 0
    return 2 * one if same else body


def _split_steps(e: Expr) -> Expr:
    """v_1 for w < t_1, v_2 for w < t_2, .., v_n as v_n + sum_i (v_i - v_n)(H(t_i - w) - H(t_{i-1} - w)), H(t_0 - w) = 0.

    A branch enters between its own ends only: in steps v_i - v_{i+1} a square that is large elsewhere would leave its rounding.
    """
    def steps(p: Piecewise) -> Expr:
        values, conditions = zip(*p.args, strict=True)
        if not all(c == true or isinstance(c, (Lt, Le, Gt, Ge)) for c in conditions) or conditions[-1] != true:
            return p
        gaps = [c.rhs - c.lhs if isinstance(c, (Lt, Le)) else c.lhs - c.rhs for c in conditions[:-1]]
        below = [Heaviside(g) for g in gaps]
        return values[-1] + Add(*(_shortest_branch(v - values[-1]) * (h - before)
                                  for v, h, before in zip(values, below, [S.Zero, *below], strict=False)))

    return e.replace(lambda p: isinstance(p, Piecewise), steps)


def _deviations(body: Expr, variables: Sequence[Symbol]) -> dict[Expr, Symbol]:
    """{A: a positive symbol for sqrt(A)}: a square root that multiplies a normal is a standard deviation."""
    bases = {p.base for p in body.atoms(Pow) if p.exp.is_Rational and p.exp.q == 2 and not p.base.is_positive
             and not p.base.free_symbols & set(variables)}
    return {a: Dummy(f"s{i}", positive=True) for i, a in enumerate(sorted(bases, key=default_sort_key))}


def _rooted(body: Expr, roots: dict[Expr, Symbol]) -> Expr:
    powers = {p: roots[p.base] ** (2 * p.exp) for p in body.atoms(Pow) if p.base in roots and p.exp.is_Rational}
    return body.xreplace(powers).xreplace({a: s**2 for a, s in roots.items()})


def _reduce_variables(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, tuple[Symbol, ...]]:
    """The integrand over as many independent normals as its fields span, if that is fewer; what decides a switch last."""
    used = tuple(v for v in variables if v in body.free_symbols)
    fields = Fields(body, used)
    switched = {u for s in fields.body.atoms(sign) for u in s.free_symbols}
    order = sorted(range(len(fields.names)), key=lambda j: fields.names[j] in switched)
    most_fields = 4  # of an integrand over their own covariance, a long formula for more; chosen by trial
    if not order or len(used) == 1 or len(order) > most_fields:
        return body, used
    lower = cholesky(fields.covariance.extract(order, order)).applyfunc(_drop_zero_roots)
    columns = [i for i in range(len(order)) if any(lower[j, i] != 0 for j in range(len(order)))]
    if len(columns) >= len(used):
        return body, used
    images = {fields.names[order[j]]: Add(*(lower[j, i] * used[n] for n, i in enumerate(columns))) for j in range(len(order))}
    return fields.body.xreplace(images), used[:len(columns)]


def _drop_zero_roots(e: Expr) -> Expr:
    """Zero where a square root of zero was not seen to be one."""
    return S.Zero if e.is_Pow and _short(e.base) == 0 else e


def _integrate_switch(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """A normal that only decides a switch: E_v[F(sign(a v + b))] = Phi(b/|a|) F(1) + Phi(-b/|a|) F(-1)."""
    for v in reversed(tuple(variables)):
        switches = {s for s in body.atoms(sign) if v in s.free_symbols}
        if len(switches) != 1:
            continue
        (switch,) = switches
        field = switch.args[0]
        slope = expand(field).coeff(v)
        level = expand(field - slope * v)
        if v in level.free_symbols or v in slope.free_symbols:
            continue
        moment = _conditional(body, switch, v, slope, level)
        if moment is not None:
            body = moment
    return body


def _conditional(body: Expr, switch: Expr, v: Symbol, slope: Expr, level: Expr) -> Expr | None:
    """E_v of terms v^n F(switch), n = 0 or 1: masses and the density at the switch."""
    if not (slope.is_positive or (slope.is_Pow and slope.exp in (S.Half, -S.Half))
            or all(a.is_positive or (a.is_Pow and abs(a.exp) == S.Half) for a in Mul.make_args(slope))):
        return None
    ratio = level / slope
    up = (1 + erf(ratio / sqrt(2))) / 2
    density = exp(-(ratio**2) / 2) / sqrt(2 * pi)
    terms = []
    for side, mass, mean in ((1, up, density), (-1, (1 - erf(ratio / sqrt(2))) / 2, -density)):
        lead, rest = body.xreplace({switch: S(side)}).as_independent(v, as_Add=False)
        if rest not in (S.One, v):
            return None
        terms.append((mean if rest == v else mass) * _folded(resolve(lead)))
    return Add(*terms)


__all__ = ["Fields", "shorten_expectations", "variation"]
