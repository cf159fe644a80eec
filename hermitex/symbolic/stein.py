"""E[z f(z)] = E[f'(z)]: Gaussian integration by parts carried through, with a trace; and d/ds of a node.

The single rules are in `rules`; here they are put in order: `stein` reduces, `differentiate_under` differentiates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import DiracDelta, Dummy, Expr, S, Symbol, expand

from hermitex import symbols
from hermitex.check import rules
from hermitex.errors import BadInput
from hermitex.hints import Formula
from hermitex.symbolic import hooks
from hermitex.symbolic.derivation import Derivation, Step
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.terms import linear, terms
from hermitex.symbolic.undefined import tidy

_ORDER: tuple[tuple[str, rules.Rule], ...] = (
    ("Hermite", rules.hermite), ("Stein", rules.stein), ("Dirac", rules.sift), ("Isserlis", rules.isserlis),
)


def stein(expr: Formula, *variables: str | Symbol) -> Derivation:
    """Integrate by parts until no power of a normal variable multiplies a function.

    E[z_i f(z)] = sum_j C_ij E[d_j f(z)], with weak derivatives: E[z sign(z)] = 2 E[delta(z)] = sqrt(2/pi).

    Parameters
    ----------
    expr : expression or text; nodes, or an integrand over `variables`
    variables : the normal variables of an integrand (default: the z, z1, z2, ... in it)

    Returns
    -------
    Derivation
        `.result` is the reduced expression, `.steps` how it came about; ``.check()`` checks each step anew.

    Guarantee
    ---------
    Both sides are equal for every function for which the averages exist. See docs/promise.md.

    Examples
    --------
    >>> from sympy import Function, sign
    >>> from hermitex.symbols import z, kappa, r
    >>> f = Function("f")
    >>> stein(z*f(kappa + r*z), z).result
    r*E(f'(kappa + r*z), z)
    >>> stein(z*sign(z), z).result
    sqrt(2)/sqrt(pi)
    """
    start = _as_nodes(expr, variables)
    current, steps = start, []
    for name, rule in _ORDER:
        after = rules.everywhere(rule, current)
        if after is not None:
            title = "Stein" if name == "Hermite" and _linear_only(current) else name
            steps.append(Step(title, current, after, rules.SOURCES.get(title)))
            current = after
    return Derivation((start, current), tuple(steps), name="Stein reduction")


def _as_nodes(expr: Any, variables: tuple[Any, ...]) -> Expr:
    expr = tidy(hooks.formula(expr))
    free = {s.name for s in expr.free_symbols}
    if expr.has(Expectation) and not (variables and free & {str(v) for v in variables}):
        return expr
    chosen = variables or symbols.normals(symbols.standard(expr))
    if not chosen:
        raise BadInput("stein: no standard normal (z, z1, z2, ...) occurs; name the variables: stein(expr, x)")
    return E(expr, *chosen)


def _linear_only(expr: Expr) -> bool:
    """True if no node has more than one power of its variable: then the rule is Stein's lemma itself."""
    return all(sum(t.powers) <= 1 for node in expr.atoms(Expectation)
               for t in terms(*node.open()) if t.core != 1)


def differentiate_under(node: Expectation, symbol: Symbol) -> Expr:
    """d/ds E[f]: the weak derivative under the expectation, and Price's rule where s is in the covariance.

    Where a jump depends on s, d/dm E[f(m + s z)] = E[z f(m + s z)]/s and d/ds E[f(m + s z)] = E[(z^2 - 1) f]/s need no
    delta; else the mass of the delta is taken.

    Examples
    --------
    >>> from sympy import Function, sign
    >>> from hermitex.symbols import z, z1, z2, kappa, r, rho
    >>> E(Function("f")(kappa + r*z), z).diff(kappa)
    E(f'(kappa + r*z), z)
    >>> E(sign(z1)*sign(z2), z1, z2, cov={(z1, z2): rho}).diff(rho)
    2/(pi*sqrt(1 - rho**2))
    """
    if symbol not in node.free_symbols:
        return S.Zero
    return _through_body(node, symbol) + (rules.price(node, symbol) or S.Zero)


def _through_body(node: Expectation, symbol: Symbol) -> Expr:
    body, variables = node.open()
    if symbol not in body.free_symbols:
        return S.Zero
    slope = rules.weak(body, symbol)
    if not slope.has(DiracDelta):
        return linear(node.with_body(slope, variables))
    if node.independent:
        for delta in sorted(slope.atoms(DiracDelta), key=str):
            shifted = _by_shift(body, symbol, delta.args[0], variables)
            if shifted is not None:
                return linear(node.with_body(shifted, variables))
    return _masses(linear(node.with_body(slope, variables)))


def _masses(expr: Expr) -> Expr:
    return rules.everywhere(rules.sift, expr) or expr


def _by_shift(body: Expr, symbol: Symbol, u: Expr, variables: Sequence[Symbol]) -> Expr | None:
    """m' v f/s + s' (v^2 - 1) f/s, where the parameter enters f only through u = m + s v, v standard."""
    for v in variables:
        scale = u.diff(v)
        if scale == 0 or scale.has_free(*variables):
            continue
        mean = expand(u - scale*v)
        if expand(body.subs(v, (Dummy("level", real=True) - mean)/scale)).has_free(symbol, v):
            continue
        return (mean.diff(symbol)*v + scale.diff(symbol)*(v**2 - 1))*body/scale
    return None
