"""d phi/dx = 0 for every order parameter x and conjugate: a replica-symmetric free energy -> the System that papers print.

    d/dp E[F(u_1, .., u_k)] = 1/2 sum_jl dC_jl/dp E[d_j d_l F],    C = Cov(u)                        (Price)
    E[d_l G] = E[w.z G]  with Cov(w.z, u_j) = delta_jl                                              (Stein, where F jumps)

so the square roots that correlate the fields are never differentiated. The result is written with as few normals as
its fields span, a normal that only decides a switch becomes a probability, and what has a closed form gets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from sympy import Add, Dummy, Eq, Expr, Matrix, Mul, S, Sum, Symbol, erf, exp

from hermitex.check.rules import SOURCES
from hermitex.errors import BadInput, brief
from hermitex.hints import Formula
from hermitex.show.display import latex
from hermitex.symbolic.derivation import Derivation, Step
from hermitex.symbolic.formula_size import operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import over_numbers
from hermitex.symbolic.moreau import has_nodes
from hermitex.symbolic.parsing import expression, parse
from hermitex.symbolic.text.text_names import declared
from hermitex.symbols import FIELD, is_normal_name
from hermitex.systems.alike_terms import joined_sums
from hermitex.systems.derivatives import derivative
from hermitex.systems.gaussian_fields import shorten_expectations, variation
from hermitex.systems.system import System


def free_energy(phi: Formula, pairs: Mapping[Any, Any], *, parameters: Iterable[Any] | None = None,
                observables: Mapping[Any, Any] | None = None, source: str = "", **options: Any) -> System:
    """The stationarity conditions of a replica-symmetric free energy, as a System.

    Parameters
    ----------
    phi : expression or text in the order parameters, their conjugates and parameters, with E(...) nodes and
        `Moreau` envelopes; its overall sign and factor do not matter
    pairs : {order parameter: its conjugate}, the conjugate None where it has none: {"q": "r", "m": None}
    parameters, observables, source, and further options : as in `System`

    Returns
    -------
    System
        Stationarity in the conjugates gives the order parameters and the reverse; an order parameter without a conjugate
        has the condition d phi/dx = 0 of its own. Conditions in which the unknowns of
        their side occur linearly, with coefficients without unknowns, are solved for; others by the linear term of the
        unknown they belong to, or, if they have none, are left implicit under it. ``.derivation`` holds the steps.

    Raises
    ------
    BadInput : phi does not depend on a member of a pair; a name is in two pairs.

    Guarantee
    ---------
    The equations are the stationarity conditions of phi as written. That the replica-symmetric saddle point is right for the
    model is not promised. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import V, Vhat, alpha, lamda
    >>> from sympy import log
    >>> system = free_energy(V*Vhat/2 - log(lamda + Vhat)/2 - alpha*log(1 + V)/2, {V: Vhat})
    >>> for unknown, rhs in system.equations.items():
    ...     print(unknown, "=", rhs)
    Vhat = alpha/(V + 1)
    V = 1/(Vhat + lamda)
    """
    letters = options.get("symbols")
    given, couples = _read(phi, pairs, letters)
    # V >= 0 is V > 0 almost everywhere, and the exact engine need not ask about V = 0
    loose = [s for s in sorted(given.free_symbols, key=str) if s.is_nonnegative and not s.is_positive]
    generic = {s: Dummy(s.name, positive=True) for s in loose}
    back = {d: s for s, d in generic.items()}
    form, couples = given.xreplace(generic), [(generic.get(x, x), generic.get(c, c)) for x, c in couples]
    order, conjugates = [x for x, c in couples if c is not None], [c for _, c in couples if c is not None]
    alone = [x for x, c in couples if c is None]
    unknowns = {*order, *conjugates, *alone}
    raw = {v: variation(form, v) for v in (*order, *conjugates, *alone)}
    slopes = {v: shorten_expectations(slope) for v, (slope, _) in raw.items()}
    equations = {u: e for of, under in ((order, conjugates), (conjugates, order), (alone, alone))
                 for u, e in _solved([slopes[v] for v in of], under, unknowns).items()}
    equations = {back.get(u, u): e.xreplace(back) for u, e in equations.items()}
    system = System(equations, parameters=parameters, observables=dict(observables or {}), source=source, **options)
    held = {s for n in form.atoms(Expectation) for s in n.free_symbols}
    taken = tuple((v, raw[v][1], slope) for v, slope in slopes.items() if v in held)
    object.__setattr__(system, "derived", partial(_derivation, form, taken, back))
    return system


def _read(phi: Any, pairs: Mapping[Any, Any], letters: Any) -> tuple[Expr, list[tuple[Symbol, Symbol | None]]]:
    if not isinstance(pairs, Mapping):
        raise BadInput("free_energy: pairs are {order parameter: its conjugate, or None}, as {'V': 'Vhat', 'm': None}, "
                       f"not {brief(pairs)}")
    form = parse(phi, {s.name: s for s in _declared(phi, pairs)} | declared(letters)) if isinstance(phi, str) else expression(
        _sums_kept(phi))
    by_name = {s.name: s for s in form.free_symbols}
    named = [str(v) for x, c in pairs.items() for v in ((x,) if c is None else (x, c))]
    for name in named:
        if name not in by_name:
            raise BadInput(f"free_energy: phi does not depend on {name}; it holds {', '.join(sorted(by_name))}; "
                           f"leave {name} out of the pairs")
    if len(set(named)) < len(named):
        raise BadInput(f"free_energy: a name occurs in two pairs: {', '.join(named)}")
    return form, [(by_name[str(x)], None if c is None else by_name[str(c)]) for x, c in pairs.items()]


def _sums_kept(phi: Any) -> Any:
    """A sum of averages between numbers, or an average of such a sum, stays one, with one derivative for all of its terms."""
    if not isinstance(phi, Expr):
        return phi
    outside = phi.replace(lambda e: isinstance(e, Expectation) and e.body.has(Sum), _sums_outside)
    return joined_sums(outside.replace(lambda e: isinstance(e, Sum) and e.has(Expectation), over_numbers))


def _sums_outside(node: Expectation) -> Expr:
    """E sum_k f_k as sum_k E f_k, for sums of finitely many terms."""
    body, variables = node.open()

    def average(term: Expr) -> Expr:
        sums = (f for f in Mul.make_args(term) if isinstance(f, Sum))
        one = next((f for f in sums if all(len(ends) == 3 and ends[2].is_Integer for ends in f.limits)), None)
        if one is None:
            return node.with_body(term, variables, keep=True)
        before, along = (term/one).as_independent(*variables)
        return before*Sum(average(along*one.function), *one.limits)

    return Add(*map(average, Add.make_args(body)))


def _declared(text: str, pairs: Mapping[Any, Any]) -> list[Symbol]:
    """The field's symbols and the members of the pairs in a text."""
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    known = {n: s for n, s in FIELD.items() if not is_normal_name(n)}
    known |= {str(v): FIELD.get(str(v)) or Symbol(str(v), real=True) for couple in pairs.items() for v in couple}
    return [s for n, s in known.items() if n in words]


def _derivation(phi: Expr, taken: tuple[tuple[Symbol, str, Expr], ...], back: Mapping[Symbol, Symbol]) -> Derivation:
    """Each condition (v, rule, d phi/dv) as the derivative of phi in its shortest form, which is another way to it."""
    short = shorten_expectations(phi)
    steps = tuple(Step(rule, derivative(short, v).xreplace(back), slope.xreplace(back), SOURCES.get(rule),
                       rf"\frac{{\partial \phi}}{{\partial {latex(v)}}}") for v, rule, slope in taken)
    claim = (steps[-1].before, steps[-1].after) if steps else (phi, phi)
    return Derivation(claim, steps, name="stationarity of the free energy")


# -- solving the conditions --------------------------------------------------------------------------------------------
def _solved(conditions: list[Expr], unknowns: list[Symbol], everything: set[Symbol]) -> dict[Symbol, Any]:
    """Equations for `unknowns`: all at once if they are linear, else one by one, else by their linear terms, else implicit."""
    joint = _linear(conditions, unknowns, everything)
    if joint is not None:
        return joint
    found: dict[Symbol, Any] = {}
    left = list(conditions)
    for u in unknowns:  # each takes a condition that is linear in it, its own first
        own = conditions[unknowns.index(u)]
        for c in sorted(left, key=lambda c: c is not own):
            solved = _linear([c], [u], everything)
            if solved is not None:
                found[u] = solved[u]
                left.remove(c)
                break
    for u in (u for u in unknowns if u not in found):
        own = conditions[unknowns.index(u)]
        c = own if own in left else left[0]
        left.remove(c)
        # d phi/dm = beta J (m - tanh(beta (J m + h))): m by its linear term
        factors = [t.coeff(u) for t in Add.make_args(c.expand()) if not has_nodes(t)]
        slope = Add(*(a for a in factors if not a.free_symbols & everything))
        found[u] = shortest((u*slope - c).expand()/slope) if slope.is_nonzero else Eq(c, 0, evaluate=False)
    return {u: found[u] for u in unknowns}


def _linear(conditions: list[Expr], unknowns: list[Symbol], everything: set[Symbol]) -> dict[Symbol, Expr] | None:
    rows = []
    for c in conditions:
        if any(u in n.free_symbols for n in c.atoms(Expectation) for u in unknowns):
            return None
        row = [c.diff(u).expand() for u in unknowns]
        if any(e.free_symbols & everything or has_nodes(e) for e in row):
            return None
        rows.append(row)
    matrix = Matrix(rows)
    if matrix.det() == 0:
        return None
    rest = Matrix([c.subs(dict.fromkeys(unknowns, S.Zero)) for c in conditions])
    return {u: shortest(-e) for u, e in zip(unknowns, matrix.inv() * rest, strict=True)}


def shortest(expr: Expr) -> Expr:
    """The shorter of a right-hand side and its factored form, bodies of expectations left alone; a long one unchanged."""
    nodes = {n: Symbol(f"node{i}", real=True) for i, n in enumerate(sorted(expr.atoms(Expectation), key=str))}
    outer = expr.xreplace(nodes)
    if operations(outer) > 150:  # multiplied out, roots of a quadratic equation have thousands of terms
        return expr.expand() if nodes else expr
    if outer.has(Expectation):
        return expr.expand()
    forms = [outer, outer.expand()] if outer.has(exp, erf) else [outer, outer.expand(), outer.factor()]
    return min([*forms, *map(_unsigned, forms)], key=operations).xreplace({s: n for n, s in nodes.items()})


def _unsigned(expr: Expr) -> Expr:
    """-a (-b + c - d) as a (b - c + d)."""
    number, factors = expr.as_coeff_mul()
    inner = next((x for x in factors if x.is_Add), None)
    if inner is None or not number.is_negative:
        return expr
    return Mul(-number, *(-x if x is inner else x for x in factors))
