"""E f(A z) = E f((A A^T)^(1/2) u), and E f = 2^(a/2) Gamma(1 + a/2)/(2 pi) int f(s) ds for f(r s) = r^a f(s) in two:
averages over several normals as averages over fewer.

Factors without a common variable have averages of their own. A function of k linear forms is averaged over these k; a
function of the length, over it; a homogeneous one, over the circle; the signs of four, along the way from independent ones.
The circle is taken as the edge of a square, which keeps algebraic functions algebraic: ds = dt/(1 + t^2).
"""

from __future__ import annotations

from itertools import combinations

from sympy import Add, And, Expr, Mul, Piecewise, S, Symbol, atan, exp, eye, pi, sign, sqrt

from hermitex.symbolic.conditioning import cholesky
from hermitex.symbolic.engine.several_variables import Matrix, linear_forms
from hermitex.symbolic.gaussian import Expectation, bind
from hermitex.symbolic.radial import over_circle, over_directions
from hermitex.symbolic.terms import connected


def over_fewer(node: Expectation) -> Expr | None:
    """The average over fewer independent standard normals, or None where nothing of this applies.

    Parameters
    ----------
    node : an average over independent standard normals that exists, without averages inside

    Examples
    --------
    >>> from sympy import cos
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2
    >>> over_fewer(E(exp(cos(3*z1 + 4*z2)), z1, z2))
    E(exp(cos(5*z1)), z1)
    >>> over_fewer(E(exp(cos(z1) + cos(z2)), z1, z2))
    E(exp(cos(z1)), z1)**2
    >>> over_fewer(E(z1**4/(z1**2 + z2**2)**2 - cos(z1), z1, z2)) is None
    True
    """
    if len(node.bound) < 2 or node.body.has(Expectation):
        return None
    body, variables = node.open()
    groups = connected(_factors(body), variables)
    if len(groups) > 1:
        return Mul(*(bind(Mul(*factors), variables, None) for factors in groups))
    if (seen := linear_forms(body, variables, Matrix(eye(len(variables))))) is not None:
        inside, names, law, _ = seen
        fresh, lower = variables[:len(names)], cholesky(law)
        swap = {v: Add(*(lower[i, j]*fresh[j] for j in range(i + 1))) for i, v in enumerate(names)}
        return bind(inside.xreplace(swap), fresh, None)
    if (along := over_directions(body, variables)) is not None:
        return bind(along[0], along[1:], None)
    return _over_circle(body, variables)


def four_signs(node: Expectation) -> Expr | None:
    """E sign(u_1) ... sign(u_4), u ~ N(0, C), as an average over one variable; None of any other node.

    dE/dC_ij = 4 phi_2(0, 0; C_ij) E[sign sign of the others | u_i = u_j = 0] from independent signs on, C(t) = D + t (C - D),
    D the diagonal of C [plackett1954]: sum_ij C_ij (2/pi)^2 int_0^1 dt atan(b/sqrt(a c))/sqrt(a), a = det C[ij],
    b = det C[ijk, ijl], c = det C, all at t.
    """
    if len(node.bound) != 4:
        return None
    body, u = node.open()
    factor, rest = body.as_independent(*u, as_Add=False)
    if rest != Mul(*map(sign, u)):
        return None
    C, t = node.covariance, u[0]
    at = Matrix(4, 4, lambda i, j: C[i, j]*(1 if i == j else t))

    def minor(rows: list[int], columns: list[int]) -> Expr:
        return at.extract(rows, columns).det(method="berkowitz")

    slopes = []
    for i, j in combinations(range(4), 2):
        k, l = (m for m in range(4) if m not in (i, j))
        if C[i, j] != 0:
            gap = minor([i, j], [i, j])
            slopes.append(C[i, j]/sqrt(gap)*atan(minor([i, j, k], [i, j, l])/sqrt(gap*minor([0, 1, 2, 3], [0, 1, 2, 3]))))
    flat = sqrt(2*pi)*exp(t**2/2)
    return factor*4/pi**2*bind(Piecewise((flat*Add(*slopes), And(t > 0, t < 1)), (S.Zero, True)), (t,), None)


def _factors(body: Expr) -> list[Expr]:
    """The factors of a product, exp(a + b) as two."""
    return [exp(a) if isinstance(f, exp) else a for f in Mul.make_args(body)
            for a in (Add.make_args(f.exp) if isinstance(f, exp) else (f,))]


def _over_circle(body: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """The circle's integral over (-1, 1) as an average."""
    circle = over_circle(body, variables)
    if circle is None:
        return None
    g, t = circle
    return bind(Piecewise((sqrt(2*pi)*exp(t**2/2)*g, And(t > -1, t < 1)), (S.Zero, True)), (t,), None)


__all__ = ["four_signs", "over_fewer"]
