"""int_0^oo x^p exp(-A x^2/2) dx = (2/A)^((p+1)/2) Gamma((p+1)/2)/2, p > -1: powers and logarithms of |z - a|.

Logarithms come by differentiating in p; a shift or an exponential factor exp(B x) gives Kummer's function (the
parabolic cylinder function in its even and odd part). Source: DLMF 5.2.1, 12.5.1, 13.2.39.
"""

from __future__ import annotations

from typing import NamedTuple

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Mul,
    Pow,
    S,
    Symbol,
    exp,
    expand,
    expand_func,
    expand_log,
    expand_power_base,
    factor_terms,
    gamma,
    hyper,
    log,
    lowergamma,
    oo,
    pi,
    sqrt,
    uppergamma,
)

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.canonical import Diverges, Refusal
from hermitex.symbolic.engine.canonical_reading import UNIT, NotCanonical, read
from hermitex.symbolic.engine.rational_tidying import depends, is_zero, root, tidy
from hermitex.symbolic.formula_size import operations


class Monomial(NamedTuple):
    """coefficient w^power log(w)^logs exp(quad w^2 + lin w + const), w > 0."""

    coefficient: Expr
    power: Expr
    logs: int
    exponent: tuple[Expr, Expr, Expr]


def integrate_powers(body: Expr, x: Symbol, span: tuple[Expr, Expr]) -> Expr | None:
    """int_lo^hi body(z) phi(z) dz where powers and logarithms have one branch point a: None if there is none.

    Examples
    --------
    >>> x = Symbol('x', real=True)
    >>> integrate_powers(log(x**2), x, (-oo, oo))
    -log(2) - EulerGamma
    """
    points = _branch_points(body, x)
    if not points:
        return None
    if len(points) > 1:
        raise Refusal("its powers and logarithms have several branch points")
    a, = points
    w = Dummy("w", positive=True)
    total = []
    for side in (1, -1):
        low, high = (span[0] - a, span[1] - a) if side == 1 else (a - span[1], a - span[0])
        low, high = tidy(low), tidy(high)
        if high.is_extended_nonpositive:
            continue
        if not (low.is_extended_nonpositive or low.is_extended_nonnegative):
            raise Refusal(f"the sign of {low} is not provable")
        low = S.Zero if low.is_extended_nonpositive else low
        inside = _resolved(body.xreplace({x: a + side * w}), w)
        terms = Add.make_args(expand(inside, power_base=False, log=False))
        for term in terms:
            checkpoint("integrating powers")
            one = _monomial(term, w, a + side * w)
            if low == 0 and (one.power + 1).is_nonpositive:
                if len(terms) > 1:  # they may cancel where they grow: (1 - cos z)/z**2
                    raise Refusal(f"its terms are not integrable one by one at {x} = {a}")
                raise Diverges(f"at {x} = {a} it grows like {Abs(x - a)**one.power}, which is not integrable")
            total.append(_one(one, (low, high)))
    value = Add(*total)
    if value.has(S.ImaginaryUnit) and not body.has(S.ImaginaryUnit):
        raise Refusal(f"{body} is not real on the whole interval")
    longest = 500  # operations of a form whose Gamma functions are combined; chosen by trial
    if operations(value) < longest and not value.has(hyper):
        # Gamma(p + 1) = p Gamma(p), so that the terms meet
        grown = expand(expand_log(expand_func(value)))
        value = min(value, grown, factor_terms(grown), key=operations)
    return value


def _branch_points(body: Expr, x: Symbol) -> set[Expr]:
    """The zeros of the arguments of logarithms and of powers that are not integers."""
    found: set[Expr] = set()
    for e in body.atoms(log, Pow):
        u = e.args[0]
        if not depends(u, x) or (e.is_Pow and (e.exp.is_integer and e.exp.is_nonnegative)) or isinstance(u, exp):
            continue
        found.add(_zero(u, x))
    return found


def _zero(u: Expr, x: Symbol) -> Expr:
    """The only zero of u = c (x - a)^n."""
    zeros = set()
    for factor in Mul.make_args(u):
        base = factor.as_base_exp()[0]
        base = base.args[0] if isinstance(base, Abs) else base
        if not depends(base, x):
            continue
        line = read(base, x) if not isinstance(base, Abs) else {}
        poly = line.get(UNIT, {})
        if set(line) != {UNIT} or max(poly) != 1:
            raise NotCanonical(u, "powers and logarithms are integrated for a linear argument only")
        zeros.add(tidy(-poly.get(0, S.Zero) / poly[1]))
    if len(zeros) != 1:
        raise NotCanonical(u, "powers and logarithms are integrated for one branch point only")
    return zeros.pop()


def _resolved(body: Expr, w: Symbol) -> Expr:
    """With w > 0, powers of products come apart and logarithms expand."""
    flat = body.replace(lambda e: isinstance(e, Pow | log) and depends(e.args[0], w),
                        lambda e: e.func(expand(e.args[0]), *e.args[1:]))
    return expand_power_base(expand_log(flat), force=False)


def _monomial(term: Expr, w: Symbol, z: Expr) -> Monomial:
    coefficient, power, logs, quad, lin, const = [S.One], S.Zero, 0, -S.Half, S.Zero, S.Zero
    # the Gaussian of z = a +- w
    shift, side = z.subs(w, 0), z.coeff(w, 1)
    lin, const = -side * shift, -(shift**2) / 2
    for factor in Mul.make_args(term):
        base, n = factor.as_base_exp()
        if not depends(factor, w):
            coefficient.append(factor)
        elif base == w and not depends(n, w):
            power += n
        elif base == log(w) and n.is_Integer and n.is_positive:
            logs += int(n)
        else:
            form = read(factor, w)
            (law, poly) = next(iter(form.items()))
            if len(form) > 1 or law.erfs or set(poly) != {0}:
                raise NotCanonical(factor, "beside powers and logarithms only exponentials are integrated")
            coefficient.append(poly[0])
            quad, lin, const = quad + law.quad, lin + law.lin, const + law.const
    return Monomial(Mul(*coefficient), tidy(power), logs, (tidy(quad), tidy(lin), tidy(const)))


def _one(term: Monomial, span: tuple[Expr, Expr]) -> Expr:
    """int_low^high of one monomial / sqrt(2 pi)."""
    quad, lin, const = term.exponent
    A, p = tidy(-2 * quad), term.power
    if not A.is_positive:
        if A.is_nonpositive and span[1] == oo and is_zero(lin):
            raise Diverges(f"it grows like exp(a*x**2) with a = {(1 - A) / 2}; the Gaussian allows a < 1/2")
        raise Refusal(f"it needs {A} > 0, which is not provable")
    if span[0] == 0 and not (p + 1).is_positive:
        raise Refusal(f"it needs {p} > -1, which is not provable")
    front = term.coefficient * exp(const) / sqrt(2 * pi)
    if span != (0, oo):
        return front * _incomplete(A, term, span)
    if is_zero(lin):
        return front * _log_derivative(A, p, term.logs)
    if term.logs:
        raise Refusal("a logarithm with a shift has no closed form in the rule table")
    return _shifted(A, term)


def _log_derivative(A: Expr, p: Expr, logs: int) -> Expr:
    """d^k/dp^k of (2/A)^((p+1)/2) Gamma((p+1)/2)/2."""
    t = Dummy("p", positive=True)
    value = (2 / A) ** ((t + 1) / 2) * gamma((t + 1) / 2) / 2
    for _ in range(logs):
        value = value.diff(t)
    return value.subs(t, p)


def _incomplete(A: Expr, term: Monomial, span: tuple[Expr, Expr]) -> Expr:
    """The same between finite ends: incomplete Gamma functions, DLMF 8.2.1."""
    if term.logs or not is_zero(term.exponent[1]):
        raise Refusal("a power on an interval is integrated without logarithms and exponentials only")
    s, (low, high) = (term.power + 1) / 2, span
    front = (2 / A) ** s / 2
    if high == oo:
        return front * uppergamma(s, A * low**2 / 2)
    lower = lowergamma(s, A * low**2 / 2) if low != 0 else S.Zero
    return front * (lowergamma(s, A * high**2 / 2) - lower)


def _shifted(A: Expr, term: Monomial) -> Expr:
    """int_0^oo w^p exp(-A w^2/2 + B w): Kummer's function of -B^2/(2A) (its exponential merged in), DLMF 13.2.39."""
    _, B, const = term.exponent
    p, half = term.power, S.Half
    y = tidy(B**2 / (2 * A))
    even = gamma((p + 1) / 2) * hyper((-p / 2,), (half,), -y)
    odd = B * sqrt(2) / root(A) * gamma(p / 2 + 1) * hyper(((1 - p) / 2,), (3 * half,), -y)
    return term.coefficient * exp(tidy(const + y)) * (2 / A) ** ((p + 1) / 2) / 2 * (even + odd) / sqrt(2 * pi)
