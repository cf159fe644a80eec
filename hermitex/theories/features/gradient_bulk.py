r"""G = 1/(1 + E[R^2/D]/omega),   D = 1 + R^2 G/(omega alpha0),   R = g(z) + sqrt(Delta) xi': the rows after one gradient step.

A row is a Gaussian of covariance C/d plus the spike, C = I + tau S, S = (1/n_B) sum_mu R_mu^2 x_mu x_mu^T, and the spike
v ~ sum_mu R_mu x_mu and the row norms are correlated with C. The equations need C through (I + delta C)^{-1} =
(I + S/omega)^{-1}/(1 + delta), 1/omega = delta tau/(1 + delta), between three vectors: theta and what is orthogonal to it in
b_j = (1/n_B) sum_mu R_mu^j x_mu, b_j = E[R^j z] theta + nu_j/sqrt(alpha0), j = 1, 3. G and g_theta are omega times the resolvent's
trace and its theta entry, so that all is regular where tau vanishes (alpha0 = inf).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sympy import Expr, Matrix, S, Symbol, diff, erf, exp, pi, sqrt

from hermitex.errors import HermitexError
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.pieces import pieces
from hermitex.symbols import Delta, beta, eta, gamma, z, z1

alpha0inv = Symbol("alpha0inv", nonnegative=True)  # 1/alpha0, 0 for the population gradient
t, tau, delta, omegainv, R, D, R_2, R_4, s_c2 = (
    Symbol(n, real=True) for n in ("t", "tau", "delta", "omegainv", "R", "D", "R_2", "R_4", "s_c2"))
sigma_3, g_1, g_3, k_0, k_3 = (Symbol(n, real=True) for n in ("sigma_3", "g_1", "g_3", "k_0", "k_3"))
xi_2, xi_22, xi_3, xi_4 = (Symbol(n, real=True) for n in ("xi_2", "xi_22", "xi_3", "xi_4"))
G, dG = Symbol("G", positive=True), Symbol("dG", real=True)
rho = Symbol("rho", real=True)
_MOMENTS = ((2, 0), (4, 0), (6, 0), (3, 1), (5, 1), (2, 2))  # the powers (j, k) that the forms of theta and nu need
M = {jk: Symbol("M{}{}".format(*jk), real=True) for jk in _MOMENTS}   # E[R^j z^k / D]
N = {jk: Symbol("N{}{}".format(*jk), real=True) for jk in _MOMENTS}   # E[R^(j+2) z^k / D^2]


def constants(sigma: Activation, g: Activation) -> dict[Symbol, Expr]:
    """What the step is made of: moments of xi = sigma'(z) - E sigma' and of R, and d Var |w_i|^2 = s_c^2."""
    s, slope, y = sigma(z), sigma.weak_derivative(z), g(z)
    xi = slope - E(z*s, z)
    a = alpha0inv
    return {
        t: eta/beta, rho: 1 - gamma**2,
        sigma_3: E((z**3 - 3*z)*s, z), g_1: E(z*y, z),
        xi_2: E(xi**2, z), xi_22: E(xi**2*z**2, z), xi_3: E(xi**3, z), xi_4: E(xi**4, z),
        R_2: E(y**2, z) + Delta, R_4: E(y**4, z) + 6*Delta*E(y**2, z) + 3*Delta**2,
        g_3: E(z*y**3, z) + 3*Delta*g_1,
        tau: t**2*a*xi_2, k_0: 2*t*sigma_3*sqrt(g_1**2 + R_2*a), k_3: t**3*a**2*xi_3,
        s_c2: (4*t**2*(R_2*a*xi_22 + sigma_3**2*g_1**2) + 2*t**4*a**2*xi_2**2*(R_2**2 + R_4*a)
               + t**4*a**3*(xi_4 - 3*xi_2**2)*R_4),
    }


class BulkAverages:
    """E[R^j z^k/D^n] over (z, xi'), D = 1 + R^2 G/(omega alpha0).

    Where g is piecewise constant the average over z is a sum over its values: a quadrature over xi' is left, or none.
    """

    def __init__(self, g: Activation, noisy: bool) -> None:
        self.noise = sqrt(Delta)*z1 if noisy else S.Zero
        self.variables = (z, z1) if noisy else (z,)
        self.g, self.levels = g, _levels(g)

    def __call__(self, j: int, k: int, n: int) -> Expr:
        """E[R^j z^k/D^n]; an odd power of z averages to nothing where g is even."""
        if k % 2 and self.g.parity in (0, 1):
            return S.Zero
        if self.levels is None:
            return E(R**j*z**k/D**n, *self.variables)
        ratios = [r**j/d**n for r, d in self.names]
        return sum((share[k]*(E(e, z1) if self.noise else e) for (_, share), e in zip(self.levels, ratios, strict=True)), S.Zero)

    @property
    def names(self) -> list[tuple[Symbol, Symbol]]:
        """R and D on each piece of a piecewise constant target."""
        return [(Symbol(f"R_on{i}", real=True), Symbol(f"D_on{i}", real=True)) for i in range(1, len(self.levels or []) + 1)]

    def definitions(self) -> dict[Symbol, Expr]:
        """The names under which the averages are written."""
        found = {omegainv: delta*tau/(1 + delta)}
        values = [((R, D), self.g(z))] if self.levels is None else zip(self.names, (v for v, _ in self.levels), strict=True)
        for (r, d), value in values:
            found |= {r: value + self.noise, d: 1 + r**2*G*omegainv*alpha0inv}
        return found


def _levels(g: Activation) -> list[tuple[Expr, tuple[Expr, ...]]] | None:
    """(value, E[z^k on that piece] for k = 0, 1, 2) of a piecewise constant target; None for another one."""
    try:
        found = pieces(g(z), z)
    except HermitexError:
        return None
    most_levels = 6  # values of a piecewise constant target for which sums are written
    if len(found) > most_levels or any(z in piece.expr.free_symbols for piece in found):
        return None

    def density(x: Expr, k: int) -> Expr:
        return x**k*exp(-x**2/2)/sqrt(2*pi) if x.is_finite else S.Zero

    levels = []
    for lo, hi, value in found:
        mass = (erf(hi/sqrt(2)) - erf(lo/sqrt(2)))/2
        levels.append((value, (mass, density(lo, 0) - density(hi, 0), mass + density(lo, 1) - density(hi, 1))))
    return levels


def trace(mean: BulkAverages) -> dict[Symbol, Expr]:
    """G, and E[R^2/D] which it needs."""
    return {M[2, 0]: mean(2, 0, 1), G: 1/(1 + omegainv*M[2, 0])}


def averages(mean: BulkAverages) -> dict[Symbol, Expr]:
    """E[R^j z^k/D] and E[R^(j+2) z^k/D^2], and dG = dG/d(1/omega) by implicit differentiation."""
    found: dict[Symbol, Expr] = {M[j, k]: mean(j, k, 1) for j, k in _MOMENTS[1:]}
    found |= {N[j, k]: mean(j + 2, k, 2) for j, k in _MOMENTS}
    found[dG] = (-G**2*(M[2, 0] - omegainv*G*alpha0inv*N[2, 0])
                 / (1 - (omegainv*G)**2*alpha0inv*N[2, 0]))
    return found


@dataclass(frozen=True)
class Form:
    """A symmetric bilinear form in the coordinates (theta, nu_1, nu_3), name_jk with 0 for theta, and its derivative in 1/omega."""

    name: str
    entries: Mapping[tuple[int, int], Expr]

    def matrix(self, prefix: str = "") -> Matrix:
        """The matrix of names; with the prefix d that of their derivatives."""
        def entry(i: int, j: int) -> Expr:
            key = tuple(sorted((_AXES[i], _AXES[j])))
            return Symbol("{}{}_{}{}".format(prefix, self.name, *key), real=True) if key in self.entries else S.Zero

        return Matrix(3, 3, entry)

    def definitions(self) -> dict[Symbol, Expr]:
        """What the names stand for."""
        place = {key: (_AXES.index(key[0]), _AXES.index(key[1])) for key in self.entries}
        return ({self.matrix()[place[key]]: e for key, e in self.entries.items()}
                | {self.matrix("d")[place[key]]: slope(e) for key, e in self.entries.items()})

    def between(self, x: Matrix, y: Matrix) -> tuple[Expr, Expr]:
        """(form(x, y), its derivative)."""
        return (x.T*self.matrix()*y)[0].expand(), (x.T*self.matrix("d")*y)[0].expand()


_AXES = (0, 1, 3)  # the vectors theta, nu_1 and nu_3 by their power
_G_THETA = 1/(1 + omegainv*M[2, 2])  # a formula of the paper: the resolvent along theta


def plain() -> Form:
    """x^T (I + S/omega)^{-1} y; the entries with nu_j are those of b_j with rho_j - E[R^j z] = -E[R^(j+2) z/D]/(omega alpha0) G."""
    lost = {j: omegainv*_cross(j) for j in (1, 3)}
    entries = {(0, 0): _G_THETA, **{(0, j): -lost[j]*_G_THETA for j in (1, 3)}}
    return Form("A", entries | {(i, j): G*M[i + j, 0] + lost[i]*lost[j]*_G_THETA for i, j in ((1, 1), (1, 3), (3, 3))})


def weighted() -> Form:
    """x^T S (I + S/omega)^{-1} y = omega x^T (1 - (I + S/omega)^{-1}) y for theta and nu_1, without the cancellation."""
    nu = G*(M[2, 0]**2 + alpha0inv*M[4, 0]) - omegainv*_cross(1)**2*_G_THETA
    return Form("S", {(0, 0): M[2, 2]*_G_THETA, (0, 1): _cross(1)*_G_THETA, (1, 1): nu})


def _cross(j: int) -> Expr:
    return G*M[j + 2, 1]*sqrt(alpha0inv)


def slope(e: Expr) -> Expr:
    """The total derivative in 1/omega: through G, and through D in every average."""
    in_D = alpha0inv*(G + omegainv*dG)   # d/d(1/omega) of G/(omega alpha0)
    return diff(e, omegainv) + diff(e, G)*dG - in_D*sum(diff(e, M[jk])*N[jk] for jk in _MOMENTS)


def directions() -> tuple[Matrix, Matrix, Matrix]:
    """v, theta_perp and a = k_0 v + k_3 b_3 (the covariance of a row with its norm) in the coordinates (theta, nu_1, nu_3)."""
    v = Matrix([gamma, sqrt(rho/R_2), 0])
    perp = Matrix([sqrt(rho), -gamma/sqrt(R_2), 0])
    b_3 = Matrix([g_3, 0, sqrt(alpha0inv)])
    return v, perp, k_0*v + k_3*b_3
