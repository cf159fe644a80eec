"""d E[prod sign(x_i + h_i)]/dC_ij = 4 phi_2(h_i, h_j; C_ij) E[the others | x_i = -h_i, x_j = -h_j]: signs of correlated normals.

From independent ones, C(t) = 1 + t (C - 1), one integral over t leads to C; two signs fewer are left in it, and those have a
closed form where two are left. Heavisides are (1 + sign)/2. [plackett1954]
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from sympy import Add, Expr, Heaviside, Integer, Mul, Poly, Symbol, expand, sign, sqrt
from sympy import ImmutableDenseMatrix as SquareMatrix
from sympy.polys.polyerrors import PolynomialError

from hermitex.errors import NotConverged
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.digits.mp_backend import MPMath
from hermitex.symbolic.digits.series_summation import Sum, double_exponential
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.special import sign_correlation

_FEWEST, _MOST = 3, 4  # signs in a product; of two there are closed forms, of five an integral within an integral
_NEARLY = 1e-4  # a determinant
_BACKEND = MPMath()

Matrix = list[list[Any]]


def signs_of(node: Expectation, bits: int) -> Sum | None:
    """E of a sum of products of signs and Heavisides of linear forms, at most four a product; None of anything else.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2, z3
    >>> half = {(z1, z2): Integer(1)/2, (z1, z3): Integer(1)/2, (z2, z3): Integer(1)/2}
    >>> found = signs_of(E(Heaviside(z1)*Heaviside(z2)*Heaviside(z3), z1, z2, z3, cov=half), 60)
    >>> mp.nstr(found.value, 15)
    '0.25'
    """
    body, variables = node.open()
    switches = {e for e in body.atoms(sign, Heaviside) if e.free_symbols & set(variables)}
    if len(switches) < _FEWEST:
        return None
    rows = {u: _row(u, variables) for u in {e.args[0] for e in switches}}
    letters = {u: Symbol(f"s{i}") for i, u in enumerate(rows)}
    flat = body.xreplace({e: letters[e.args[0]] if isinstance(e, sign) else (1 + letters[e.args[0]])/2 for e in switches})
    if None in rows.values() or flat.free_symbols - set(letters.values()):
        return None
    try:
        terms = Poly(flat, *letters.values()).terms()
    except PolynomialError:
        return None
    forms = list(rows.values())
    total = Sum(mpf(0), mpf(0), mpf(0))
    for powers, coefficient in terms:
        odd = [forms[i] for i, n in enumerate(powers) if n % 2]
        if len(odd) > _MOST:
            return None
        part = _term(odd, node.covariance, bits)
        if part is None:
            return None
        front = _number(coefficient)
        total += Sum(front*part.value, abs(front)*part.error, abs(front)*part.scale)
    return total


def _row(u: Expr, variables: tuple[Symbol, ...]) -> tuple[list[Expr], Expr] | None:
    """u as (coefficients, shift), where it is linear."""
    row = [expand(u).coeff(v) for v in variables]
    rest = expand(u - Add(*map(Mul, row, variables)))
    return None if any(e.free_symbols for e in (*row, rest)) else (row, rest)


def _term(forms: list[Any], covariance: Any, bits: int) -> Sum | None:
    """E of the product of the signs of the forms, each brought to variance 1."""
    size = len(forms)
    rows = SquareMatrix([row for row, _ in forms]) if forms else SquareMatrix(0, 0, [])
    law = [[expand(e) for e in line] for line in (rows*covariance*rows.T).tolist()] if forms else []
    if any(not law[i][i].is_positive for i in range(size)):
        return None
    correlations = [[law[i][j]/sqrt(law[i][i]*law[j][j]) for j in range(size)] for i in range(size)]
    nearly = size > 2 and abs(_number(SquareMatrix(correlations).det())) < _NEARLY
    with mp.workprec((2 if nearly else 1)*mp.prec + 20):  # what is nearly singular loses digits by subtraction
        C = [[_number(e) for e in row] for row in correlations]
        h = [_number(shift/sqrt(law[i][i])) for i, (_, shift) in enumerate(forms)]
        return _product(C, h, mpf(2)**-bits)


def _number(e: Expr) -> Any:
    return StraightLine(e + Integer(0), [], _BACKEND)()


def _product(C: Matrix, h: list[Any], tolerance: Any) -> Sum:
    """E prod sign(x_i + h_i), x normal with unit variances and correlations C."""
    size = len(h)
    if size < _FEWEST:
        return _exact(C, h)
    start = mpf(1)
    for shift in h:
        start *= mp.erf(shift/mp.sqrt(2))
    if size % 2 and not any(h):
        return Sum(mpf(0), mpf(0), mpf(0))

    def slope(s: Any, *, from_end: bool) -> Any:
        checkpoint("integrating signs of correlated normals")
        t = 1 - s if from_end else s
        at = [[mpf(1) if i == j else t*C[i][j] for j in range(size)] for i in range(size)]
        return sum((C[i][j]*_slope(at, h, i, j) for i, j in combinations(range(size), 2) if C[i][j]), mpf(0))

    found = double_exponential(lambda s: slope(s, from_end=False), lambda s: slope(s, from_end=True), mpf(1),
                               lambda scale: tolerance, reach=mp.prec)
    if found is None:
        raise NotConverged(None, "the integral over the correlations of the signs did not settle")
    return Sum(start + found.value, found.error + tolerance*abs(start), mpf(1))


def _slope(C: Matrix, h: list[Any], i: int, j: int) -> Any:
    """4 phi_2 times E of the other signs where x_i = -h_i and x_j = -h_j."""
    r = C[i][j]
    gap = 1 - r*r
    density = 4*mp.exp(-(h[i]**2 - 2*r*h[i]*h[j] + h[j]**2)/(2*gap))/(2*mp.pi*mp.sqrt(gap))
    others = [k for k in range(len(h)) if k not in (i, j)]

    def weights(k: int) -> tuple[Any, Any]:
        a, b = C[k][i], C[k][j]
        return (a - r*b)/gap, (b - r*a)/gap

    def left(k: int, m: int) -> Any:
        w = weights(k)
        return C[k][m] - w[0]*C[m][i] - w[1]*C[m][j]

    sizes = {k: mp.sqrt(max(left(k, k), mp.eps)) for k in others}
    shifts = [(h[k] - weights(k)[0]*h[i] - weights(k)[1]*h[j])/sizes[k] for k in others]
    law = [[mpf(1) if k == m else max(min(left(k, m)/(sizes[k]*sizes[m]), mpf(1)), mpf(-1)) for m in others] for k in others]
    return density*_exact(law, shifts).value


def _exact(C: Matrix, h: list[Any]) -> Sum:
    """Of two signs at most: E sign(x + h) = erf(h/sqrt 2), and `sign_correlation`."""
    if not h:
        value = mpf(1)
    elif len(h) == 1:
        value = mp.erf(h[0]/mp.sqrt(2))
    elif abs(C[0][1]) == 1:  # the second is the first or its mirror image: they differ between the places
        side = C[0][1]
        value = side*(1 - abs(mp.erf(h[0]/mp.sqrt(2)) - mp.erf(side*h[1]/mp.sqrt(2))))
    else:
        value = sign_correlation(h[0], h[1], C[0][1])
    return Sum(value, abs(value)*mp.eps*4, abs(value))


__all__ = ["signs_of"]
