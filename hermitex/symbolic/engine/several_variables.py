"""E[f(u, v)] = E_u E_w[f(u, rho u + s w)], s = sqrt(1 - rho^2): several normals by conditioning, one after the other.

Before conditioning: polynomials by Isserlis' theorem, products of independent factors one by one, and an integrand
of fewer linear forms than variables over the law of these forms. A symbolic s is kept as a positive
symbol, with the relation rho^2 = 1 - s^2, until the end.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import permutations
from math import prod
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Function,
    Heaviside,
    Max,
    Min,
    Mul,
    Poly,
    PolynomialError,
    Rational,
    S,
    Symbol,
    asin,
    atan2,
    expand,
    eye,
    factor_terms,
    factorial2,
    fraction,
    pi,
    sign,
    sqrt,
    together,
    zeros,
)
from sympy import ImmutableDenseMatrix as Matrix

from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.breaks.switches import JUMPS, SWITCHES, orders, ranked
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.correlated_signs import MOST, moments_of_signs
from hermitex.symbolic.engine.gaussian_tilt import tilted, waves
from hermitex.symbolic.engine.indicators import steps
from hermitex.symbolic.engine.one_variable import Answer, expectation, summed, with_zero
from hermitex.symbolic.engine.rational_tidying import depends, multiplied_out, relations, root, tidy
from hermitex.symbolic.formula_size import operations, polynomial_size
from hermitex.symbolic.indexed_sums import HIDDEN, hidden
from hermitex.symbolic.radial import over_directions
from hermitex.symbolic.subexpressions import at_numbers

_DEGREE = 200  # total degree up to which a polynomial is expanded; chosen by trial


def expectation_of(body: Expr, variables: tuple[Symbol, ...], cov: Any = None) -> Answer:
    """E[body] over normals of mean zero with covariance `cov` (None: independent, standard), as far as it is exact.

    Examples
    --------
    >>> u, v = Dummy('u', real=True), Dummy('v', real=True)
    >>> rho = Symbol('rho', real=True)
    >>> expectation_of(sign(u)*sign(v), (u, v), Matrix([[1, rho], [rho, 1]])).value
    2*asin(rho)/pi
    """
    kept = [i for i, v in enumerate(variables) if depends(body, v)]
    if len(kept) < len(variables):
        cov = None if cov is None else Matrix(cov.extract(kept, kept))
        variables = tuple(variables[i] for i in kept)
    if not variables:
        return Answer(body)
    cov = Matrix(eye(len(variables))) if cov is None else cov
    if hidden(body, variables):
        return summed(_terms(body), lambda term: Answer(S.Zero, ((term, HIDDEN),)) if hidden(term, variables) else
                      expectation_of(term, variables, cov), variables, cov)
    if len(variables) == 1:
        return _alone(body, variables[0], cov[0, 0])
    checkpoint("integrating over several variables")
    moment = _isserlis(body, variables, cov)
    if moment is not None:
        return Answer(moment)
    along = over_directions(body, variables) if cov == eye(len(variables)) else None
    if along is not None:
        found = expectation(*along)
        if not found.rest:
            return Answer(tidy(found.value))
    if (fewer := linear_forms(body, variables, cov)) is not None:
        found = _over_forms(*fewer, body)
        if not found.rest:
            return found
    body = _by_signs(_signs_apart(steps(body, variables), variables, cov), variables)
    return summed(_terms(body), lambda term: _product(term, variables, cov), variables, cov)


def _alone(body: Expr, x: Symbol, variance: Expr) -> Answer:
    if variance == 1:
        return expectation(body, x)
    if variance == 0:
        return Answer(body.subs(x, 0))
    t = Dummy(x.name, real=True)
    scale = root(variance)
    known = scale if scale.is_positive else Dummy("s", positive=True)
    found = expectation(body.xreplace({x: known * t}), t)
    value = found.value
    if body.has(*JUMPS) and not found.rest:
        value = with_zero(value, known, scale, Answer(at_numbers(body, {x: S.Zero})))
    return Answer(value.xreplace({known: scale}),
                  tuple((e.xreplace({t: x / scale, known: scale}), why) for e, why in found.rest))


# -- polynomials -----------------------------------------------------------------------------------------------------
def _isserlis(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Expr | None:
    """E[x_i m] = sum_j C_ij E[dm/dx_j]. Source: Isserlis 1918."""
    if not body.is_polynomial(*variables):
        return None
    terms = 1000  # of a polynomial, from which one asks for its powers of linear forms first
    if polynomial_size(body, variables)[0] > terms:
        products = [_of_forms(term, variables, cov) for term in Add.make_args(body)]
        if None not in products:
            return Add(*(p for p in products if p is not None))
    try:
        poly = Poly(body, *variables)
    except PolynomialError:
        return None
    if poly.total_degree() > _DEGREE:
        return None
    if cov.is_diagonal():  # E[z^n] = (n - 1)!!
        moments = [{n: cov[i, i]**(n//2)*factorial2(n - 1) for n in {m[i] for m in poly.monoms()}} for i in range(len(variables))]
        return Add(*(c * Mul(*(moments[i][n] for i, n in enumerate(powers)))
                     for powers, c in poly.terms() if not any(n % 2 for n in powers)))
    known: dict[tuple[int, ...], Expr] = {}
    return Add(*(c * _moment(powers, cov, known) for powers, c in poly.terms()))


def _moment(powers: tuple[int, ...], cov: Matrix, known: dict[tuple[int, ...], Expr]) -> Expr:
    if sum(powers) % 2:
        return S.Zero
    if not any(powers):
        return S.One
    if powers not in known:
        checkpoint("summing the pairings of a moment")
        i = next(k for k, n in enumerate(powers) if n)
        less = _lowered(powers, i)
        known[powers] = expand(Add(*(cov[i, j] * n * _moment(_lowered(less, j), cov, known)
                                     for j, n in enumerate(less) if n and cov[i, j] != 0)))
    return known[powers]


def _of_forms(term: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Expr | None:
    """E prod u_i^n_i of linear forms u_i with numbers for coefficients, over their own law: nothing is multiplied out."""
    coefficient: Expr = S.One
    powers: dict[Expr, int] = {}
    for factor in Mul.make_args(term):
        base, n = factor.as_base_exp() if factor.is_Pow else (factor, S.One)
        if any(depends(factor, v) for v in variables):
            powers[base] = powers.get(base, 0) + int(n)
        else:
            coefficient *= factor
    rows = [_affine(u, variables) for u in powers]
    states = 100_000  # moments on the way to one
    if any(row is None or row[1] != 0 for row in rows) or (
            prod(n + 1 for n in powers.values()) > states or sum(powers.values()) > 2*_DEGREE):
        return None
    forms = Matrix([row[0] for row in rows if row is not None])
    law = (forms*cov*forms.T).applyfunc(expand)
    if not all(e.is_Rational for e in law):
        return None
    numbers = [[Fraction(int(e.p), int(e.q)) for e in law.row(i)] for i in range(law.rows)]
    value = _pairings(tuple(powers.values()), numbers)
    return coefficient*Rational(value.numerator, value.denominator)


def _pairings(powers: tuple[int, ...], law: list[list[Fraction]]) -> Fraction:
    """The moment by Isserlis' recursion in the first variable that is left."""
    @cache
    def moment(left: tuple[int, ...]) -> Fraction:
        if sum(left) % 2:
            return Fraction(0)
        if not any(left):
            return Fraction(1)
        i = next(k for k, n in enumerate(left) if n)
        less = _lowered(left, i)
        return sum((law[i][j]*n*moment(_lowered(less, j)) for j, n in enumerate(less) if n and law[i][j]), Fraction(0))

    return moment(powers)


def _lowered(powers: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*powers[:i], powers[i] - 1, *powers[i + 1:])


# -- terms and factors -----------------------------------------------------------------------------------------------
def _terms(body: Expr) -> tuple[Expr, ...]:
    grown = multiplied_out(body) if operations(body) < 400 else body
    return Add.make_args(grown)


def _signs_apart(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Expr:
    """sign(u v) = sign(u) sign(v), the same for Abs, and Max, Min, Heaviside of a product through it."""
    def product(e: Expr) -> bool:
        return isinstance(e, Mul) and sum(any(depends(f, v) for v in variables) for f in e.args) > 1

    def signs(e: Expr) -> Expr:
        return Mul(*(sign(f.base) ** f.exp if f.is_Pow and f.exp.is_Integer else sign(f) for f in e.args))

    body = body.replace(lambda e: isinstance(e, sign) and product(e.args[0]), lambda e: signs(e.args[0]))
    body = body.replace(lambda e: isinstance(e, Abs) and product(e.args[0]),
                        lambda e: Mul(*(Abs(f) for f in e.args[0].args)))
    body = body.replace(lambda e: isinstance(e, Heaviside) and product(e.args[0]),
                        lambda e: (1 + signs(e.args[0])) / 2)
    body = body.replace(lambda e: isinstance(e, Max | Min) and len(e.args) == 2, lambda e: _larger_size(e, variables, cov) or (
        _extreme(e) if any(map(product, e.args)) else e))
    return _by_largest(body, variables)


def _by_largest(e: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """f(Max(u_1, ..., u_n)) = sum_i f(u_i) prod_{j != i} H(u_i - u_j) for linear forms; Max(u, w) = w + Max(0, u - w).

    So for a nest of Max and Min, as a median is one: a product for each way in which its value is u_i.
    """
    found = e.atoms(Max, Min)
    extremes = [m for m in found if len(m.args) > 1 and not any(m != o and o.has(m) for o in found)
                and all(_is_field(u, variables) for u in ranked(m))]
    if len(extremes) == 1 and len(ranked(extremes[0])) <= MOST:
        (m,), place = extremes, Dummy("m", real=True)
        if e == m and len(ranked(m)) == 2:
            u, w = m.args
            return w + m.func(S.Zero, u - w)
        outer = e.xreplace({m: place})
        if not any(depends(outer, v) for v in variables):
            return Add(*(outer.xreplace({place: u})*Mul(*(Heaviside(u - w) for w in below), *(Heaviside(w - u) for w in above))
                         for u, below, above in orders(m)))
    return e.func(*(_by_largest(a, variables) for a in e.args)) if extremes and isinstance(e, Add | Mul) else e


def _is_field(e: Expr, variables: tuple[Symbol, ...]) -> bool:
    return any(depends(e, v) for v in variables) and _affine(e, variables) is not None


def _by_signs(body: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """H(u) = (1 + sign u)/2 in products of three switches and more: an odd number of signs averages to 0 [sheppard1899]."""
    found = {e for e in body.atoms(Heaviside, sign) if any(depends(e, v) for v in variables)}
    if len(found) < 3 or any(len(e.args) > 1 and e.args[1] != S.Half for e in found):
        return body
    return body.xreplace({e: (1 + sign(e.args[0]))/2 for e in found if isinstance(e, Heaviside)})


def _larger_size(e: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Expr | None:
    """Max(|p|, |q|) = (|p + q| + |p - q|)/2 and Max(p^2, q^2) = (p^2 + q^2 + |p + q| |p - q|)/2 of affine forms, Min likewise.

    Min is the rest of |p| + |q|, which has no digits if one of them is much smaller than the other: their ratio must be known.
    """
    found = [size for a in e.args if (size := _size_of_form(a, variables)) is not None]
    if len(found) < 2 or found[0][1] != found[1][1]:
        return None
    (p, power), (q, _) = found
    if isinstance(e, Min):
        one, other = ((Matrix([row])*cov*Matrix(row))[0] for form in (p, q) for row in [[form.diff(v) for v in variables]])
        if not tidy(one/other).is_number:
            return None
    far, near = Abs(p + q), Abs(p - q)
    largest = (far + near)/2 if power == 1 else (p**2 + q**2 + far*near)/2
    return largest if isinstance(e, Max) else Add(*e.args) - largest


def _size_of_form(e: Expr, variables: tuple[Symbol, ...]) -> tuple[Expr, int] | None:
    """(p, 1) of |p| and (p, 2) of p^2, for an affine form p."""
    before, f = e.as_independent(*variables, as_Add=False)
    form, power = (f.args[0], 1) if isinstance(f, Abs) else f.as_base_exp()
    if power not in (1, 2) or f == form or not before.is_positive or not _is_field(form, variables):
        return None
    return before**Rational(1, power)*form, int(power)


def _extreme(e: Expr) -> Expr:
    a, b = e.args
    if a.is_Number or b.is_Number:
        gap = a - b
        if isinstance(gap, Mul):
            half = Mul(*(Abs(f) for f in gap.args))
            return (a + b + half) / 2 if isinstance(e, Max) else (a + b - half) / 2
    return e


def _product(term: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Answer:
    """A product of factors in independent groups of variables is the product of their expectations."""
    found = [(_connected(*group), group[0]) for group in independent_groups(term, variables, cov)]
    if not any(a.rest for a, _ in found):
        return Answer(Mul(*(a.value for a, _ in found)))
    if any(not a.rest and a.value == 0 for a, _ in found):
        return Answer(S.Zero)
    # An exact part is a factor of the inexact one.
    exact = Mul(*(a.value for a, _ in found if not a.rest))
    left = [(a, body) for a, body in found if a.rest]
    if len(left) == 1:
        (a, _), = left
        return Answer(exact*a.value, tuple((exact*e, why) for e, why in a.rest))
    return Answer(S.Zero, ((exact*Mul(*(body for _, body in left)), left[0][0].rest[0][1]),))


def independent_groups(
    term: Expr, variables: tuple[Symbol, ...], cov: Matrix
) -> list[tuple[Expr, tuple[Symbol, ...], Matrix]]:
    """The factors of a product gathered by the independent groups of variables that they see."""
    groups: list[tuple[set[int], list[Expr]]] = []
    for factor in Mul.make_args(term):
        mine = {i for i, v in enumerate(variables) if depends(factor, v)}
        joined, rest = (mine, [factor]), []
        for seen, factors in groups:
            if seen & mine or any(cov[i, j] != 0 for i in seen for j in mine) or not (seen or mine):
                joined = (seen | joined[0], factors + joined[1])
            else:
                rest.append((seen, factors))
        groups = [*rest, joined]
    return [(Mul(*factors), tuple(variables[i] for i in sorted(mine)), _part(cov, mine)) for mine, factors in groups]


def _part(cov: Matrix, kept: set[int]) -> Matrix:
    order = sorted(kept)
    return Matrix(cov.extract(order, order))


def _connected(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Answer:
    used = [i for i, v in enumerate(variables) if depends(body, v)]
    if len(used) < len(variables):
        variables, cov = tuple(variables[i] for i in used), Matrix(cov.extract(used, used))
    if len(variables) < 2:
        return expectation_of(body, variables, cov) if variables else Answer(body)
    moment = _isserlis(body, variables, cov)
    if moment is not None:
        return Answer(moment)
    fewer = linear_forms(body, variables, cov)
    if fewer is not None:
        return _over_forms(*fewer, body)
    if _odd(body, variables):
        return Answer(S.Zero)
    if (sizes := _two_sizes(body, variables, cov)) is not None:
        return Answer(sizes)
    if (apart := waves(body, variables)) is not None:
        return expectation_of(apart, variables, cov)
    if (regressed := _regressed(body, variables, cov)) is not None:
        return regressed
    if len(variables) > 2 and (found := moments_of_signs(body, variables, cov)) is not None:
        return Answer(*found)
    moved = tilted(body, variables, cov, expectation_of)
    return _conditioned(body, variables, cov) if moved is None else moved


def _two_sizes(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Expr | None:
    """E|u v| = (2/pi) (D + C atan(C/D)), C = E[u v], D^2 = E[u^2] E[v^2] - C^2, of two linear forms.

    Source: Price's theorem, dE/dC = E[sign u sign v].
    """
    before, rest = body.as_independent(*variables, as_Add=False)
    factors = Mul.make_args(rest)
    rows = [_affine(f.args[0], variables) for f in factors if isinstance(f, Abs)]
    if len(variables) != 2 or len(factors) != 2 or len(rows) != 2 or any(row is None or row[1] != 0 for row in rows):
        return None
    forms = Matrix([row[0] for row in rows if row is not None])
    law = (forms*cov*forms.T).applyfunc(tidy)
    C, D = law[0, 1], Abs(tidy(forms.det()))*sqrt(factor_terms(tidy(cov.det())))
    if law[0, 0] == law[1, 1] == 1:
        return before*2*sqrt(1 - C**2)/pi + before*2*C*asin(C)/pi
    return before*2*D/pi + before*2*(C*atan2(C, D) if C != 0 else 0)/pi  # atan2: finite at D = 0


# -- linear forms ----------------------------------------------------------------------------------------------------
def linear_forms(
    body: Expr, variables: tuple[Symbol, ...], cov: Matrix
) -> tuple[Expr, tuple[Symbol, ...], Matrix, Any] | None:
    """The integrand over the linear forms that it depends on, if they are fewer than its variables."""
    found: dict[tuple[Expr, ...], tuple[Symbol, list[Expr], Expr]] = {}  # by direction: a name, a vector, and its first entry
    swap: dict[Expr, Expr] = {}
    if not _collect(body, variables, (found, swap)) or len(found) >= len(variables):
        return None
    rows = Matrix([row for _, row, _ in found.values()])
    law = Matrix((rows * cov * rows.T).applyfunc(tidy))
    names = tuple(name for name, _, _ in found.values())
    new = _swapped(body, swap)
    return (new, names, law, swap) if not any(depends(new, v) for v in variables) else None


def _collect(e: Expr, variables: tuple[Symbol, ...], into: tuple[dict, dict]) -> bool:
    """Register every maximal affine sub-expression; False once there are as many directions as variables."""
    found, swap = into
    if not any(depends(e, v) for v in variables) or e in swap:
        return True
    affine = _affine(e, variables)
    if affine is None:
        return bool(e.args) and all(_collect(a, variables, into) for a in e.args)
    row, shift = affine
    lead = next(c for c in row if c != 0)
    key = tuple(tidy(c / lead) for c in row)
    if key not in found:
        if len(found) + 1 >= len(variables):
            return False
        # nothing is divided by a letter that may be 0
        found[key] = (Dummy("u", real=True), *((list(key), S.One) if lead.is_nonzero else (row, lead)))
    name, _, unit = found[key]
    times = tidy(lead / unit)
    swap[e] = times * name + shift
    return bool(fraction(times)[1].is_nonzero)


def _affine(e: Expr, variables: tuple[Symbol, ...]) -> tuple[list[Expr], Expr] | None:
    # next to a jump of a Piecewise its derivative is 0, which would pass for a slope
    if not (e.is_Add or e.is_Mul or e.is_Symbol) or not e.is_polynomial(*variables):
        return None
    row = [e.diff(v) for v in variables]
    if any(depends(c, v) for c in row for v in variables):
        return None
    return row, e.subs(dict.fromkeys(variables, S.Zero))


def _swapped(e: Expr, swap: dict[Expr, Expr]) -> Expr:
    """Outermost first, so that a form inside a form is not torn."""
    if e in swap:
        return swap[e]
    return e.func(*(_swapped(a, swap) for a in e.args)) if e.args else e


def _regressed(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Answer | None:
    """E[p(x) f(u)] for a polynomial p and one linear form u = a.x: x = (C a/a.C.a) u + r with a remainder r independent of u.

    E[p | u] is a polynomial of u (Isserlis over the covariance of r). None if f depends on more than one linear form.
    """
    factors = Mul.make_args(body)
    polynomial = [f for f in factors if f.is_polynomial(*variables)]
    rest = Mul(*(f for f in factors if not f.is_polynomial(*variables)))
    if not any(depends(f, v) for f in polynomial for v in variables):
        return None
    found: dict[tuple[Expr, ...], tuple[Symbol, list[Expr], Expr]] = {}
    swap: dict[Expr, Expr] = {}
    if not _collect(rest, variables, (found, swap)) or len(found) != 1:
        return None
    (u, row, _), = found.values()
    whole = S.One  # times this the form has no denominator, as a letter in it may be 0
    for c in row:
        whole *= fraction(together(c*whole))[1]
    row, swap = [tidy(c*whole) for c in row], {e: form.xreplace({u: u/whole}) for e, form in swap.items()}
    along = (cov*Matrix(row)).applyfunc(tidy)
    variance = tidy((Matrix([row])*along)[0])
    alone = _swapped(rest, swap)
    if variance.is_zero or any(depends(alone, v) for v in variables):
        return None
    remainder = Matrix(len(variables), len(variables), lambda i, j: tidy(cov[i, j] - along[i]*along[j]/variance))
    moved = Mul(*polynomial).xreplace({v: v + along[i]/variance*u for i, v in enumerate(variables)})
    given_u = _isserlis(expand(moved), variables, remainder)
    if given_u is None:
        return None
    known = _alone(expand(given_u)*alone, u, variance)
    return known if not known.rest else None  # the rest would be a function of u, which the caller does not bind


def _over_forms(new: Expr, names: tuple[Symbol, ...], law: Matrix, swap: dict, body: Expr) -> Answer:
    found = expectation_of(new, names, law)
    return found if not found.rest else Answer(S.Zero, ((body, found.rest[0][1]),))


def _odd(body: Expr, variables: tuple[Symbol, ...]) -> bool:
    if operations(body) > 100 or body + body.xreplace({v: -v for v in variables}) != 0:
        return False
    return integrable(body, variables) is True


# -- conditioning ----------------------------------------------------------------------------------------------------
def _conditioned(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> Answer:
    why = "no order of integration succeeds"
    n = len(variables)
    # The variable that is integrated first (the last of the factorisation) should be simple: a power, then a smooth function.
    start = sorted(range(n), key=lambda i: _entanglement(body, variables[i]), reverse=True)
    orders = 6  # of integration that are tried
    for count, order in enumerate(permutations(start)):
        if count >= orders:
            break
        checkpoint("conditioning")
        law = Matrix(cov.extract(list(order), list(order)))
        lower, found, back = cholesky(law)
        fresh = tuple(Dummy(variables[i].name, real=True) for i in order)
        forms = {variables[i]: Add(*(lower[k, j] * fresh[j] for j in range(k + 1))) for k, i in enumerate(order)}
        with relations(found):
            inner = _last_out(body.xreplace(forms), fresh)
        if not inner.rest:
            return Answer(_restored(inner.value, back))
        why = inner.rest[0][1] if count == 0 else why
    return Answer(S.Zero, ((body, why),))


def _entanglement(body: Expr, x: Symbol) -> tuple[int, int]:
    """How many switches, and how many functions, hold x."""
    functions = [f for f in body.atoms(Function) if depends(f, x)]
    return sum(isinstance(f, SWITCHES) for f in functions), len(functions)


def _last_out(body: Expr, fresh: tuple[Symbol, ...]) -> Answer:
    """Integrate the last variable, then the rest."""
    x = fresh[-1]

    def one(term: Expr) -> Answer:
        factor, core = term.as_independent(x, as_Add=False)
        found = expectation(core, x)
        return Answer(factor * found.value, tuple((factor * e, why) for e, why in found.rest))

    found = summed(_terms(body), one, (x,))
    return Answer(S.Zero, found.rest) if found.rest else expectation_of(found.value, fresh[:-1])


def cholesky(cov: Matrix) -> tuple[Any, tuple[tuple[Expr, Expr], ...], dict[Expr, Expr]]:
    """The lower triangular L with L L^T = C; a pivot of unknown sign is a positive symbol s.

    Returns L, the relations (rho**2, 1 - s**2), and the meaning of each s.
    """
    n = cov.rows
    lower = zeros(n, n)
    found: list[tuple[Expr, Expr]] = []
    back: dict[Expr, Expr] = {}
    for j in range(n):
        square = tidy(cov[j, j] - Add(*(lower[j, k] ** 2 for k in range(j))))
        if square.is_positive or square.is_zero:
            lower[j, j] = root(square) if square.is_positive else S.Zero
        else:
            s = Dummy("s", positive=True)
            lower[j, j], back[s] = s, sqrt(square.xreplace(back))
            if not found:  # one relation at a time: two may undo each other
                found += _relation(square, s)
        for i in range(j + 1, n):
            rest = tidy(cov[i, j] - Add(*(lower[i, k] * lower[j, k] for k in range(j))))
            lower[i, j] = S.Zero if lower[j, j] == 0 else tidy(rest / lower[j, j])
    return lower, tuple(found), back


def _relation(square: Expr, s: Symbol) -> list[tuple[Expr, Expr]]:
    """square = s^2 solved for the square of one symbol in it (or for the symbol, if it is linear in it)."""
    num, den = square.as_numer_denom()
    for y in sorted(square.free_symbols, key=str):
        try:
            poly = Poly(num - s**2 * den, y)
        except PolynomialError:
            continue
        terms = dict(poly.terms())
        degrees = {k[0] for k in terms}
        if max(degrees) <= 2 and 1 not in degrees and max(degrees) == 2:
            return [(y**2, tidy(-terms.get((0,), S.Zero) / terms[2,]))]
        if max(degrees) == 1:
            return [(y, tidy(-terms.get((0,), S.Zero) / terms[1,]))]
    return []


def _restored(value: Expr, back: dict[Expr, Expr]) -> Expr:
    for s, stands in reversed(list(back.items())):
        value = value.subs(s, stands)
    return value
