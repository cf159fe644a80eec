r"""E[x_i G] = sum_j C_ij E[dG/dx_j], d sign(u)/du = 2 delta(u): polynomials times signs of three correlated normals and more.

Every delta fixes a form at 0 and leaves one sign less; what is left is a normal of the conditional covariance, whose entries are
minors of C: C_kl given J is det C[Jk, Jl]/det C[J]. It ends in E[1] = 1, E[sign sign] = (2/pi) asin rho, zero by parity, and in
the signs of four, which have no closed form. Ramps and moduli are signs: max(0, u) = u (1 + sign u)/2 [sheppard1899].
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Poly,
    PolynomialError,
    S,
    Symbol,
    atan,
    expand,
    pi,
    sign,
    sqrt,
)
from sympy import ImmutableDenseMatrix as Matrix

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.rational_tidying import depends, tidy

SWITCHES = (sign, Heaviside, Abs, Max, Min)
MOST = 4  # signs in a product: the average of more has no closed form but in pairs
_WHY = "the signs of four correlated normals have no closed form"
Row = tuple[Expr, ...]


def moments_of_signs(body: Expr, variables: tuple[Symbol, ...], cov: Matrix) -> tuple[Expr, tuple[tuple[Expr, str], ...]] | None:
    """(what is exact, the products of four signs that are left, with why); None of anything but polynomials and such switches.

    None, too, where the four are forms of three normals.

    Examples
    --------
    >>> from sympy import Rational, symbols
    >>> x, y, w = symbols("x y w", real=True)
    >>> moments_of_signs(sign(x)*Max(0, y)*w, (x, y, w), Matrix([[1, 0, 0], [0, 1, Rational(1, 2)], [0, Rational(1, 2), 1]]))
    (0, ())
    """
    forms: dict[Row, Symbol] = {}
    switches = {e for e in body.atoms(*SWITCHES) if any(depends(e, v) for v in variables)}
    swap = {}
    signs: dict[Symbol, Symbol] = {}
    for e in sorted(switches, key=str):
        found = _read(e, variables, forms, signs)
        if found is None:
            return None
        swap[e] = found
    for v in variables:
        forms.setdefault(_unit(v, variables), v)
    letters = list(forms.values())
    try:
        terms = Poly(expand(body.xreplace(swap)), *letters, *signs.values()).terms()
    except PolynomialError:
        return None
    turned = {u: i for i, u in enumerate(letters)}
    places = [turned[u] for u in signs]
    rows = Matrix(list(forms))
    moment = _SignMoments((rows*cov*rows.T).applyfunc(tidy))
    values, rest = [], []
    degree = 8  # of the polynomial that multiplies them
    for powers, c in terms:
        own, odd = powers[:len(letters)], frozenset(p for p, n in zip(places, powers[len(letters):], strict=True) if n % 2)
        if any(depends(c, v) for v in variables) or sum(own) > degree or len(odd) > MOST:
            return None
        part, left = moment(own, odd, frozenset())
        values.append(c*part)
        if left != 0:
            rest.append((c*left*Mul(*(sign(_written(k, forms, variables)) for k in sorted(odd))), _WHY))
    if rest and len(signs) > len(variables):  # four forms of three normals: those may have a closed form
        return None
    return (Add(*values), tuple(rest)) if all(_finite(v) for v in values) else None


def _finite(value: Expr) -> bool:
    return not value.has(S.ComplexInfinity, S.NaN, S.Infinity, S.NegativeInfinity)


def _unit(v: Symbol, variables: tuple[Symbol, ...]) -> Row:
    return tuple(S.One if w == v else S.Zero for w in variables)


def _written(k: int, forms: dict[Row, Symbol], variables: tuple[Symbol, ...]) -> Expr:
    """The k-th form over the variables."""
    return Add(*map(Mul, list(forms)[k], variables))


def _read(e: Expr, variables: tuple[Symbol, ...], forms: dict[Row, Symbol], signs: dict[Symbol, Symbol]) -> Expr | None:
    """A switch of a linear form without a shift, over the letters of the form and of its sign."""
    if isinstance(e, Max | Min):
        if len(e.args) != 2:
            return None
        a, b = e.args
        half = _of_form(a - b, variables, forms, signs)
        if half is None or any(_row(x, variables) is None for x in (a, b)):
            return None
        size, (u, s) = half
        return (a + b)/2 + (1 if isinstance(e, Max) else -1)*abs(size)*u*s/2
    found = _of_form(e.args[0], variables, forms, signs)
    if found is None:
        return None
    size, (u, s) = found
    side = sign(size)
    return abs(size)*u*s if isinstance(e, Abs) else side*s if isinstance(e, sign) else (1 + side*s)/2


def _of_form(e: Expr, variables: tuple[Symbol, ...], forms: dict[Row, Symbol], signs: dict[Symbol, Symbol]
             ) -> tuple[Expr, tuple[Symbol, Symbol]] | None:
    """e = size u, the letter of the form u, and that of its sign."""
    row = _row(e, variables)
    size = None if row is None else next((c for c in row if c != 0), None)
    if row is None or size is None or not (size.is_positive or size.is_negative):
        return None
    key = tuple(tidy(c/size) for c in row)
    if key not in forms:
        alone = [v for v in variables if key == _unit(v, variables)]
        forms[key] = alone[0] if alone else Dummy("u", real=True)
    u = forms[key]
    signs.setdefault(u, Dummy("s", real=True))
    return size, (u, signs[u])


def _row(e: Expr, variables: tuple[Symbol, ...]) -> Row | None:
    """The coefficients of a linear form; None of anything else, and of one with a shift."""
    if e.has(*SWITCHES) or not e.is_polynomial(*variables):
        return None
    grown = expand(e)
    row = tuple(grown.coeff(v) for v in variables)
    plain = not any(depends(c, v) for c in row for v in variables)
    return row if plain and expand(grown - Add(*map(Mul, row, variables))) == 0 else None


class _SignMoments:
    """E[prod u_i^(n_i) prod sign(u_j) | u_J = 0] of the forms u of covariance C, as (exact, times E of the four signs)."""

    def __init__(self, C: Matrix) -> None:
        self.C, n = C, C.rows
        self.places = range(n)
        self.minor = cache(self._minor)
        self.known: dict[Any, tuple[Expr, Expr]] = {}

    def _minor(self, J: frozenset[int], k: int | None = None, l: int | None = None) -> Expr:
        """det C[Jk, Jl]; det C[J] without k and l."""
        own = sorted(J)
        rows, columns = (own if i is None else [*own, i] for i in (k, l))
        return tidy(self.C.extract(rows, columns).det(method="berkowitz")) if rows else S.One

    def covariance(self, k: int, l: int, J: frozenset[int]) -> Expr:
        """C_kl given u_J = 0."""
        return self.minor(J, k, l)/self.minor(J)

    def __call__(self, powers: tuple[int, ...], odd: frozenset[int], J: frozenset[int]) -> tuple[Expr, Expr]:
        if (sum(powers) + len(odd)) % 2:
            return S.Zero, S.Zero
        if not any(powers):
            return self._signs(odd, J)
        key = powers, odd, J
        if key not in self.known:
            checkpoint("integrating signs by parts")
            i = next(k for k, n in enumerate(powers) if n)
            less = _lowered(powers, i)
            exact, left = [], []
            for j in self.places:
                c = S.Zero if j in J else self.covariance(i, j, J)
                if c == 0:
                    continue
                if less[j]:
                    part = self(_lowered(less, j), odd, J)
                    exact.append(c*less[j]*part[0])
                    left.append(c*less[j]*part[1])
                elif j in odd:
                    size = self.minor(J | {j})/self.minor(J)
                    exact.append(c*2/sqrt(2*pi)/sqrt(size)*self(less, odd - {j}, J | {j})[0])
            self.known[key] = Add(*exact), Add(*left)
        return self.known[key]

    def _signs(self, odd: frozenset[int], J: frozenset[int]) -> tuple[Expr, Expr]:
        if len(odd) == MOST:
            return S.Zero, S.One
        if not odd:
            return S.One, S.Zero
        k, l = sorted(odd)
        across = self.minor(J, k, l)
        if across == 0:
            return S.Zero, S.Zero
        gap = self.minor(J)*self.minor(J | odd)  # C_kk C_ll - C_kl^2 given u_J = 0, times (det C[J])^2
        return 2*atan(across/sqrt(gap))/pi, S.Zero


def _lowered(powers: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*powers[:i], powers[i] - 1, *powers[i + 1:])


__all__ = ["MOST", "moments_of_signs"]
