r"""G = 1/(1 + E[R^2/D]/omega),   D = 1 + R^2 G/(omega alpha0),   R = g(z) + sqrt(Delta) xi': the rows after one gradient step.

A row is a Gaussian of covariance C/d plus the spike, C = I + tau S, S = (1/n_B) sum_mu R_mu^2 x_mu x_mu^T, and the spike
v ~ sum_mu R_mu x_mu and the row norms are correlated with C. The equations need C through (I + delta C)^{-1} =
(I + S/omega)^{-1}/(1 + delta), 1/omega = delta tau/(1 + delta), between three vectors: theta and what is orthogonal to it in
b_j = (1/n_B) sum_mu R_mu^j x_mu, b_j = E[R^j z] theta + nu_j/sqrt(alpha0), j = 1, 3. With several directions theta is a basis
whose first vector is C_1/|C_1|, and g_theta the matrix (I + E[R^2 z z^T/D]/omega)^{-1}. G and g_theta are omega times the
resolvent's trace and its theta entry, so that all is regular where tau vanishes (alpha0 = inf).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Matrix, Mul, S, Symbol, diff, eye, sqrt

from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, beta, eta, gamma, z, z1
from hermitex.theories.directions import Target, rho

alpha0inv = Symbol("alpha0inv", nonnegative=True)  # 1/alpha0, 0 for the population gradient
t, tau, delta, omegainv, R, D, R_2, R_4, s_c2 = (
    Symbol(n, real=True) for n in ("t", "tau", "delta", "omegainv", "R", "D", "R_2", "R_4", "s_c2"))
sigma_3, g_1, g_3, k_0, k_3 = (Symbol(n, real=True) for n in ("sigma_3", "g_1", "g_3", "k_0", "k_3"))
xi_2, xi_22, xi_3, xi_4 = (Symbol(n, real=True) for n in ("xi_2", "xi_22", "xi_3", "xi_4"))
G, dG = Symbol("G", positive=True), Symbol("dG", real=True)


class BulkMoments:
    """The names M of E[R^j z^k/D] and N of E[R^(j+2) z^k/D^2] which the forms of theta and nu need, for J directions.

    Keys are (j, 0), and (j, 1, a), (2, 2, a, b) with the directions of their factors z.
    """

    def __init__(self, count: int) -> None:
        self.each = range(count)
        self.keys = ((2, 0), (4, 0), (6, 0), *((j, 1, a) for j in (3, 5) for a in self.each),
                     *((2, 2, a, b) for a in self.each for b in self.each if a <= b))
        self.M, self.N = ({key: self._name(x, key) for key in self.keys} for x in "MN")
        # omega times the resolvent between the directions, by name where it is a matrix
        self.T, self.dT = ({(a, b): Symbol(f"{x}_{a + 1}{b + 1}", real=True) for a in self.each for b in self.each if a <= b}
                           for x in ("T", "dT"))

    def _name(self, letter: str, key: tuple[int, ...]) -> Symbol:
        axes = "".join(str(a + 1) for a in key[2:])
        return Symbol("{}{}{}".format(letter, *key[:2]) + (f"_{axes}" if axes and len(self.each) > 1 else ""), real=True)

    def vector(self, j: int) -> Matrix:
        """E[R^j z/D]."""
        return Matrix([self.M[j, 1, a] for a in self.each])

    def square(self, names: Mapping[tuple[int, ...], Symbol]) -> Matrix:
        """E[R^2 z z^T/D], or the same of N."""
        return Matrix(len(self.each), len(self.each), lambda a, b: names[2, 2, min(a, b), max(a, b)])

    @property
    def single(self) -> bool:
        """Is there one direction only?"""
        return len(self.each) == 1

    @property
    def resolvent(self) -> Matrix:
        """omega times the resolvent between the directions: a formula of the paper where there is one."""
        if self.single:
            return Matrix([[1/(1 + omegainv*self.M[2, 2, 0, 0])]])
        return Matrix(len(self.each), len(self.each), lambda a, b: self.T[min(a, b), max(a, b)])

    def definitions(self) -> dict[Symbol, Expr]:
        """The values of T and dT."""
        if self.single:
            return {}
        whole, T = eye(len(self.each)) + omegainv*self.square(self.M), self.resolvent
        inverse = whole.adjugate()/whole.det(method="berkowitz")
        change = -T*(self.square(self.M) - omegainv*_in_D()*self.square(self.N))*T
        return {name: inverse[ab] for ab, name in self.T.items()} | {name: change[ab] for ab, name in self.dT.items()}

    def slope(self, e: Expr) -> Expr:
        """The total derivative in 1/omega: through G and T, and through D in every average."""
        found = diff(e, omegainv) + diff(e, G)*dG - _in_D()*sum(diff(e, self.M[key])*self.N[key] for key in self.keys)
        return found if self.single else found + sum(diff(e, self.T[ab])*self.dT[ab] for ab in self.T)


def _in_D() -> Expr:
    return alpha0inv*(G + omegainv*dG)   # d/d(1/omega) of G/(omega alpha0)


def constants(sigma: Activation, g: Target) -> dict[Symbol, Expr]:
    """The ingredients of the step: moments of xi = sigma'(z) - E sigma' and of R, and d Var |w_i|^2 = s_c^2."""
    s, slope = sigma(z), sigma.weak_derivative(z)
    xi = slope - E(z*s, z)
    a = alpha0inv
    mean: Callable[[Expr], Expr]
    if isinstance(g, Activation):
        y, mean, linear, cubed = g(z), _mean, E(z*g(z), z), {g_3: E(z*g(z)**3, z) + 3*Delta*g_1}
    else:
        y, mean, linear = g.expr, g.mean, sqrt(sum(v**2 for v in g.charged))
        thirds = g.basis.T*Matrix([mean(v*y**3) for v in g.variables])
        cubed = {name: e + (3*Delta*g_1 if k == 0 else 0) for k, (name, e) in enumerate(zip(thirds_of(g), thirds, strict=True))}
    return {
        t: eta/beta, rho: 1 - gamma**2,
        sigma_3: E((z**3 - 3*z)*s, z), g_1: linear,
        xi_2: E(xi**2, z), xi_22: E(xi**2*z**2, z), xi_3: E(xi**3, z), xi_4: E(xi**4, z),
        R_2: mean(y**2) + Delta, R_4: mean(y**4) + 6*Delta*mean(y**2) + 3*Delta**2,
        **cubed,
        tau: t**2*a*xi_2, k_0: 2*t*sigma_3*sqrt(g_1**2 + R_2*a), k_3: t**3*a**2*xi_3,
        s_c2: (4*t**2*(R_2*a*xi_22 + sigma_3**2*g_1**2) + 2*t**4*a**2*xi_2**2*(R_2**2 + R_4*a)
               + t**4*a**3*(xi_4 - 3*xi_2**2)*R_4),
    }


def _mean(e: Expr) -> Expr:
    return E(e, z)


def thirds_of(g: Target) -> tuple[Symbol, ...]:
    """g_3, the names of E[R^3 z] along each column of the target's basis."""
    return (g_3,) if isinstance(g, Activation) else tuple(Symbol(f"g_3{k}", real=True) for k in range(1, len(g.variables) + 1))


class BulkAverages:
    """E[R^j z^k/D^n] over (z, xi'), D = 1 + R^2 G/(omega alpha0)."""

    def __init__(self, g: Target, noisy: bool) -> None:
        self.noise = sqrt(Delta)*z1 if noisy else S.Zero
        self.place = (z,) if isinstance(g, Activation) else (z, *g.across)
        self.variables = (*self.place, z1) if noisy else self.place
        self.g, self.moments = g, BulkMoments(len(self.place))

    def __call__(self, key: tuple[int, ...], more: int = 0) -> Expr:
        """E[R^j z^k/D] at a key of `BulkMoments`, E[R^(j+2) z^k/D^2] at more = 2; odd k gives nothing where g is even."""
        j, k, n = key[0] + more, key[1], 1 + more//2
        if k % 2 and self.g.parity in (0, 1):
            return S.Zero
        return E(R**j*Mul(*(self.place[a] for a in key[2:]))/D**n, *self.variables)

    def definitions(self) -> dict[Symbol, Expr]:
        """The names under which the averages are written."""
        whole = self.g(z) if isinstance(self.g, Activation) else self.g.at(self.place)
        return {omegainv: delta*tau/(1 + delta), R: whole + self.noise, D: 1 + R**2*G*omegainv*alpha0inv}


def trace(mean: BulkAverages) -> dict[Symbol, Expr]:
    """G, and E[R^2/D] which it needs."""
    M = mean.moments.M
    return {M[2, 0]: mean((2, 0)), G: 1/(1 + omegainv*M[2, 0])}


def averages(mean: BulkAverages) -> dict[Symbol, Expr]:
    """E[R^j z^k/D] and E[R^(j+2) z^k/D^2], and dG = dG/d(1/omega) by implicit differentiation."""
    M, N = mean.moments.M, mean.moments.N
    found: dict[Symbol, Expr] = {M[key]: mean(key) for key in mean.moments.keys[1:]}
    found |= {N[key]: mean(key, 2) for key in mean.moments.keys}
    found[dG] = (-G**2*(M[2, 0] - omegainv*G*alpha0inv*N[2, 0])
                 / (1 - (omegainv*G)**2*alpha0inv*N[2, 0]))
    return found


@dataclass(frozen=True)
class Form:
    """A symmetric bilinear form in the coordinates (theta, nu_1, nu_3), name_jk with 0 for theta, and its derivative in 1/omega.

    Several directions replace theta by t1, t2, ....
    """

    name: str
    entries: Mapping[tuple[Any, Any], Expr]
    moments: BulkMoments

    def matrix(self, prefix: str = "") -> Matrix:
        """The matrix of names; with the prefix d that of their derivatives."""
        axes = _axes(self.moments)

        def entry(i: int, j: int) -> Expr:
            key = (axes[min(i, j)], axes[max(i, j)])
            return Symbol("{}{}_{}{}".format(prefix, self.name, *key), real=True) if key in self.entries else S.Zero

        return Matrix(len(axes), len(axes), entry)

    def definitions(self) -> dict[Symbol, Expr]:
        """The values of the names."""
        axes = _axes(self.moments)
        place = {key: (axes.index(key[0]), axes.index(key[1])) for key in self.entries}
        return ({self.matrix()[place[key]]: e for key, e in self.entries.items()}
                | {self.matrix("d")[place[key]]: self.moments.slope(e) for key, e in self.entries.items()})

    def between(self, x: Matrix, y: Matrix) -> tuple[Expr, Expr]:
        """(form(x, y), its derivative)."""
        return (x.T*self.matrix()*y)[0].expand(), (x.T*self.matrix("d")*y)[0].expand()


def _axes(moments: BulkMoments) -> list[Any]:
    """The vectors theta, nu_1 and nu_3 by their power."""
    return [0, 1, 3] if moments.single else [*(f"t{a + 1}" for a in moments.each), 1, 3]


def plain(moments: BulkMoments) -> Form:
    """x^T (I + S/omega)^{-1} y; the entries with nu_j are those of b_j with rho_j - E[R^j z] = -E[R^(j+2) z/D]/(omega alpha0) G."""
    axes, T, M = _axes(moments), moments.resolvent, moments.M
    lost = {j: omegainv*_cross(moments, j) for j in (1, 3)}
    entries: dict[tuple[Any, Any], Expr] = {(axes[a], axes[b]): T[a, b] for a in moments.each for b in moments.each if a <= b}
    entries |= {(axes[a], j): -(T*lost[j])[a] for j in (1, 3) for a in moments.each}
    return Form("A", entries | {(i, j): G*M[i + j, 0] + (lost[i].T*T*lost[j])[0] for i, j in ((1, 1), (1, 3), (3, 3))}, moments)


def weighted(moments: BulkMoments) -> Form:
    """x^T S (I + S/omega)^{-1} y = omega x^T (1 - (I + S/omega)^{-1}) y for theta and nu_1, without the cancellation."""
    axes, T, M, cross = _axes(moments), moments.resolvent, moments.M, _cross(moments, 1)
    nu = G*(M[2, 0]**2 + alpha0inv*M[4, 0]) - omegainv*(cross.T*T*cross)[0]
    inside = moments.square(M)*T
    return Form("S", {**{(axes[a], axes[b]): inside[a, b] for a in moments.each for b in moments.each if a <= b},
                      **{(axes[a], 1): (T*cross)[a] for a in moments.each}, (1, 1): nu}, moments)


def _cross(moments: BulkMoments, j: int) -> Matrix:
    return G*sqrt(alpha0inv)*moments.vector(j + 2)


def directions(g: Target) -> tuple[Matrix, list[Matrix], Matrix]:
    """v, theta_perp (of each direction) and a = k_0 v + k_3 b_3 (the covariance of a row with its norm) in those coordinates."""
    thirds = thirds_of(g)
    others = [S.Zero]*(len(thirds) - 1)
    v = Matrix([gamma, *others, sqrt(rho/R_2), 0])
    perp = [Matrix([sqrt(rho), *others, -gamma/sqrt(R_2), 0]),
            *(Matrix([int(i == k) for i in range(len(thirds) + 2)]) for k in range(1, len(thirds)))]
    b_3 = Matrix([*thirds, 0, sqrt(alpha0inv)])
    return v, perp, k_0*v + k_3*b_3
