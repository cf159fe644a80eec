"""E[f(z)] in closed form: the exact values of expectations, by the rules of `one_variable` and `several`.

`closed_form` answers or refuses with the reduced integral and the reason; `normal_form` goes as far as is exact and
writes the rest over canonical nodes, so that what is equal cancels.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from sympy import Add, Dummy, Expr, ImmutableDenseMatrix, Mul, Pow, Rational, S, Symbol, diag, exp, sqrt, sympify

from hermitex.errors import Divergent, HermitexError, NoClosedForm
from hermitex.symbolic.engine.canonical import Diverges
from hermitex.symbolic.engine.one_variable import RULES, Answer
from hermitex.symbolic.engine.tidy import multiplied_out, tidy
from hermitex.symbolic.existence import require_existence
from hermitex.symbolic.gaussian import Bound, Expectation, bind


def closed_form(expr: Expr) -> Expr:
    """The expression with every expectation in it replaced by its exact value.

    Parameters
    ----------
    expr : expression with E-nodes, nested as they may be.

    Returns
    -------
    Expr without a node, equal for all values of the parameters that their assumptions allow (symbols without
    assumptions are real).

    Raises
    ------
    NoClosedForm : carries the reduced integral and the reason. Divergent : the expectation does not exist.

    Examples
    --------
    >>> from sympy import erf
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, kappa
    >>> closed_form(E(erf(z/2 + kappa), z))
    erf(sqrt(6)*kappa/3)
    >>> closed_form(E(z**3*abs(z + 1), z))
    -sqrt(2)*exp(-1/2)/sqrt(pi) + 3*erf(sqrt(2)/2)
    """
    expr = _read(expr)
    done = _replace(expr)
    if not done.has(Expectation):
        return done
    from hermitex.symbolic.engine.reduction import normal_form as reduce

    done = reduce(done)
    left = sorted(done.atoms(Expectation), key=lambda n: n.level)
    if left:
        raise NoClosedForm(left[0], _reason(left[0]))
    return done


def _read(expr: Any) -> Expr:
    """A text by the grammar of `parse`; anything else must be a number or an expression already."""
    if isinstance(expr, str):
        from hermitex.symbolic.parsing import parse

        return parse(expr)
    return sympify(expr, strict=True)


def integrate_or_keep(node: Expr, deep: bool = True) -> Expr:
    """The exact value, or the node (with what is inside it done, if `deep`) where there is none.

    Raises
    ------
    Divergent : the expectation does not exist.
    """
    if not deep and isinstance(node, Expectation):
        found = _answer(node)
        return node if found.rest else found.value
    return _replace(_read(node))


def normal_form(expr: Expr) -> Expr:
    """Closed forms put in; the rest over canonical irreducible nodes, so that equal parts cancel.

    See `hermitex.symbolic.engine.reduction`.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> normal_form(E(z*(tanh(z) - z*E(z*tanh(z), z)), z))
    0
    """
    from hermitex.symbolic.engine.reduction import normal_form as reduce

    return reduce(_read(expr))


def answer(node: Expectation) -> Answer:
    """The exact part of one node and the terms that have none (inner nodes are parameters).

    Raises
    ------
    Divergent : a term is provably not integrable.
    """
    try:
        found = _answer(node)
    except Diverges as no:
        raise Divergent(node, _plain(str(no))) from no
    if len(node.bound) > 1:  # of all variables at once: an odd one may vanish where the whole does not exist
        require_existence(node)
    return found


def _replace(expr: Expr) -> Expr:
    """Inner nodes first; a node without closed form stays (its inside done)."""
    if not expr.args or not expr.has(Expectation):
        return expr
    if isinstance(expr, Expectation):
        if expr.body.has(Expectation):
            body, variables = expr.open()
            expr = expr.with_body(_replace(body), variables)
            if not isinstance(expr, Expectation):
                return expr
        found = answer(expr)
        if not found.rest:
            return found.value
        flat = joined(expr)
        done = expr if flat is None else _replace(flat)
        return expr if done.has(Expectation) else done
    return expr.func(*(_replace(a) for a in expr.args))


def joined(node: Expectation) -> Expr | None:
    """E_x[a(x) E_y f(x, y)] = E_xy[a f]: inner nodes that see the outer variables, under one node with them.

    None where there is no such node, or one that does not stand as a factor.
    """
    body, variables = node.open()
    if not any(n.free_symbols & set(variables) for n in body.atoms(Expectation)):
        return None
    total = []
    for term in Add.make_args(multiplied_out(body)):
        parts, names, blocks = [], list(variables), [node.covariance]
        for factor in Mul.make_args(term):
            base, power = factor.as_base_exp()
            if not (isinstance(base, Expectation) and base.free_symbols & set(variables)):
                parts.append(factor)
                continue
            if not (power.is_Integer and 0 < power <= 4):
                return None
            for _ in range(int(power)):
                inner, fresh = base.open()
                parts.append(inner)
                names += fresh
                blocks.append(base.covariance)
        flat = Mul(*parts)
        if any(n.free_symbols & set(names) for n in flat.atoms(Expectation)) and len(names) == len(variables):
            return None
        total.append(bind(flat, tuple(names), ImmutableDenseMatrix(diag(*blocks))))
    return Add(*total)


def _reason(node: Expectation) -> str:
    try:
        rest = answer(node).rest
    except HermitexError as no:
        return str(no)
    why = rest[0][1] if rest else "no rule applies"
    return f"{why} (tried {len(RULES)} rules)"


@lru_cache(maxsize=2048)
def _answer(node: Expectation) -> Answer:
    """The node's value over prepared symbols: real where nothing is said, squares where a root was taken."""
    from hermitex.symbolic.engine.several import expectation_of

    # The same symbols for every node, so that SymPy's caches know them; nothing inside this call opens a node.
    variables = tuple(_variable(b.name, i) for i, b in enumerate(node.bound))
    body = node.body.xreplace(dict(zip(node.bound, variables, strict=True)))
    cov = None if node.independent else node.covariance
    there, back = _prepared(body if cov is None else body + Add(*cov.free_symbols), variables)
    signed = _correlations(body, cov) - set(there)
    there |= {s: Dummy(s.name, real=True) for s in signed}
    back |= {there[s]: s for s in signed}
    if there:
        body = body.xreplace(there)
        cov = None if cov is None else cov.xreplace(there)
    found = expectation_of(body, variables, cov)
    if not back:
        return _closed(found, node, variables)
    free = found.value.xreplace({d: e for d, e in back.items() if e not in signed})
    value = free.xreplace(back)
    if value.xreplace({s: there[s] for s in signed}) != free and not _same(free, value, {there[s]: s for s in signed}):
        whole = (body.xreplace(back), "its form depends on the sign of a correlation")
        return _closed(Answer(S.Zero, (whole,)), node, variables)
    rest = tuple((t.xreplace(back), why) for t, why in found.rest)
    return _closed(Answer(value, rest), node, variables)


def merged_exponentials(e: Expr) -> Expr:
    """exp(a) exp(b) = exp(a + b): one exponential a term, lest a large one meets a small one in floats."""
    if not e.args or not e.has(exp):
        return e
    e = e.func(*(merged_exponentials(a) for a in e.args))
    if not isinstance(e, Mul):
        return e
    exponents = [f.args[0] for f in e.args if isinstance(f, exp)]
    if len(exponents) < 2:
        return e
    return Mul(exp(tidy(Add(*exponents))), *(f for f in e.args if not isinstance(f, exp)))


def _closed(found: Answer, node: Expectation, variables: tuple[Symbol, ...]) -> Answer:
    return Answer(merged_exponentials(found.value), tuple((node.with_body(t, variables), _plain(why))
                                                               for t, why in found.rest))


def _plain(text: str) -> str:
    """The user's names for the symbols that stood in for them."""
    return re.sub(r"\b_(?=[A-Za-z])", "", text)


@lru_cache(maxsize=256)
def _variable(name: str, position: int) -> Symbol:
    return Dummy(name, real=True)


def _correlations(body: Expr, cov: Any) -> set[Symbol]:
    """Symbols that are declared to have a sign and stand for a correlation, which may have the other one: rho, in (-1, 1).

    Those of a covariance between two variables, and those in sqrt(1 - rho^2); a variance keeps its sign.
    """
    sized: set[Symbol] = set() if cov is None else set().union(*(cov[i, i].free_symbols for i in range(cov.rows)))
    between: set[Symbol] = set() if cov is None else cov.free_symbols - sized
    halves = [p.base for p in body.atoms(Pow) if p.exp.is_Rational and p.exp.q == 2]
    between |= {s for b in halves if b.is_Add for s in b.free_symbols if b == 1 - s**2} - sized
    return {s for s in between if s.is_extended_nonnegative or s.is_extended_nonpositive}


def _same(free: Expr, value: Expr, signed: dict[Symbol, Symbol]) -> bool:
    """Do they agree where the correlations have the other sign? Where |rho| became rho they do not."""
    others = sorted(free.free_symbols - set(signed), key=str)
    point = {s: Rational(k + 3, k + 5) for k, s in enumerate(others)}
    for r in (Rational(-2, 7), Rational(3, 11)):
        here = {s: (r if s.is_extended_nonnegative else -r) for s in signed.values()}
        sides = (free.xreplace({**point, **{d: here[s] for d, s in signed.items()}}), value.xreplace({**point, **here}))
        try:
            left, right = (complex(e.evalf(15)) for e in sides)
        except (TypeError, ValueError):
            return False
        if not abs(left - right) <= 1e-10*(abs(left) + abs(right)):
            return False
    return True


def _prepared(body: Expr, variables: tuple[Symbol, ...]) -> tuple[dict[Expr, Expr], dict[Expr, Expr]]:
    """Substitutions there and back: undeclared symbols are real; sqrt(c) is d with d > 0, c = d^2; nodes are atoms."""
    there: dict[Expr, Expr] = {}
    back: dict[Expr, Expr] = {}
    bound = set(variables)
    for n in body.atoms(Expectation):
        if not (n.free_symbols & bound):
            there[n] = Dummy("E", real=True)
            back[there[n]] = n
    under = {p.base for p in body.atoms(Pow) if p.base.is_Symbol and p.exp.is_Rational and p.exp.q == 2}
    under |= {f for p in body.atoms(Pow) if isinstance(p.base, Mul) and p.exp.is_Rational and p.exp.q == 2
              for f in p.base.args if f.is_Symbol}
    for s in body.free_symbols - bound:
        if isinstance(s, Bound) and s.is_real:
            continue
        if s.is_positive and s in under:
            d = Dummy(s.name, positive=True)
            there[s], back[d] = d**2, sqrt(s)
        elif s.is_extended_real is None and s.is_complex is None and s.is_commutative:
            d = Dummy(s.name, real=True)
            there[s], back[d] = d, s
    return there, back
