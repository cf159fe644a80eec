r"""V_1 = (D^{-1} + Mhat)^{-1}/beta,   D = beta diag(pi_k c_k V_{2,k}): one gradient step from a readout of K values.

The readout starts at a_i = u_k/sqrt(p) on a fraction pi_k of the neurons, so that the step gives the neurons of letter k
the spike r u_k and the bulk c_k: K kinds of features at once [cui2024, Appendix D, for orthonormal rows].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from sympy import Add, Eq, Expr, KroneckerDelta, Matrix, Rational, S, Symbol, diag, sqrt

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, alpha, beta, gamma, kappa, lamda, z
from hermitex.systems.system import System
from hermitex.theories.directions import DirectedTarget, Target, rho, target_of
from hermitex.theories.learned import OneStepSolution
from hermitex.theories.one_step import bias, epsilon, r, seen, slopes
from hermitex.theories.ridgeless import ridgeless
from hermitex.theories.spike import OneStepFamily, complete_numbers, free_parameters, own_letters, spike
from hermitex.theories.spike_span import LIFT, axes, letters_beside, seen_beside

_TOTAL = 1e-9  # how far from 1 the sum of the fractions may be, and gamma in the orthogonal case
_FAMILIES = ("m", "zeta", "psi", "q1_", "q2_", "V1_", "V2_", "Vhat1_", "Vhat2_", "qhat1_", "qhat2_", "zetatilde", "psitilde")


@dataclass(frozen=True, repr=False)
class VocabularyOneStep(OneStepFamily):
    r"""One gradient step from a readout with K values, square loss.

    Parameters
    ----------
    sigma, g : activation and target
    vocabulary : u_k, the K values of sqrt(p) a_i before the step; 0 is allowed
    fractions : pi_k > 0, their shares of the neurons, which sum to 1
    norms : c_k > 0, the bulk variance of each letter; by default that of Result 3.1 at the letter's own rate eta u_k where
        alpha0 and eta are given, else the common c
    biases : b_k, which shift the pre-activations of each letter, besides the common bias (default: 0)
    rows : "sphere" (independent rows, any beta and gamma) or "orthogonal" (W W^T diagonal: gamma = 1, beta <= 1)

    Order parameters, k and l counting letters from 1: m1, zeta1, psi1, zetatilde1, psitilde1 (one per letter k; psi1_2 of
    letter 1 along z2 where the target has several directions), the
    variances V2_1 and overlaps q2_1 = |a_k|^2/p with their conjugates Vhat2_1, qhat2_1, and for independent rows the
    matrices V1_12, q1_12 and conjugates Vhat1_12 (Mhat), qhat1_12, written for k <= l. Orthogonal rows have no matrices: V2_k
    is V_k = 1/(lamda + Vhat_k), and psi is absent.

    Raises
    ------
    BadInput : lists of different lengths, fractions that do not sum to 1, beta > 1 or gamma != 1 with orthogonal rows.

    Examples
    --------
    >>> two = VocabularyOneStep.of("tanh", "sin", [1, -1.5], [0.5, 0.5], rows="orthogonal")
    >>> round(two.solve(alpha=1.5, lam=0.05, r=1, c=1, gamma=1)["test_error"], 12)
    0.007915167197
    """

    vocabulary: tuple[float, ...] = (1.0,)
    fractions: tuple[float, ...] = (1.0,)
    norms: tuple[float, ...] | None = None
    rows: str = "sphere"
    biases: tuple[float, ...] | None = None

    loss: ClassVar[str] = "square"
    network: ClassVar[str] = "srf"

    @classmethod
    def of(cls, sigma: Any, g: Any, vocabulary: Any, fractions: Any = None, norms: Any = None, rows: str = "sphere",
           biases: Any = None) -> VocabularyOneStep:
        """From what a user types: names or formulas, and lists of numbers; equal fractions by default."""
        u = _listed("vocabulary", vocabulary)
        shares = (1/len(u),)*len(u) if fractions is None else _listed("fractions", fractions)
        c, b = (None if v is None else _listed(n, v) for n, v in (("norms", norms), ("biases", biases)))
        return cls(activation(sigma), target_of("one-step", g), u, shares, c, rows, b)

    def __post_init__(self) -> None:
        for name, given in (("fractions", self.fractions), ("norms", self.norms), ("biases", self.biases)):
            if given is not None and len(given) != len(self.vocabulary):
                raise BadInput(f"one-step: {name} has {len(given)} entries for {len(self.vocabulary)} letters of the vocabulary; "
                               "give one for each letter")
            if given is not None and name != "biases" and min(given) <= 0:
                raise BadInput(f"one-step: {name} holds {min(given):g}; every entry must be positive")
        if abs(sum(self.fractions) - 1) > _TOTAL:
            raise BadInput(f"one-step: the fractions of the vocabulary sum to {sum(self.fractions):.10g}, not to 1")
        if self.rows == "orthogonal" and (self.biases is not None or isinstance(self.g, DirectedTarget)):
            raise BadInput("one-step: rows='orthogonal' is for a target of one direction z, without biases; use rows='sphere'")
        if self.rows not in ("sphere", "orthogonal"):
            raise BadInput(f"one-step: with a vocabulary, rows is 'sphere' (independent rows) or 'orthogonal', not {self.rows!r}")

    @cached_property
    def system(self) -> System:
        """The equations in r, gamma and u_k, pi_k, c_k of every letter; epsilon = 1/d, which is 0 asymptotically."""
        return self._build()

    def _build(self, **how: bool) -> System:
        if self.rows == "orthogonal":
            return orthogonal_rows(self.sigma, self.g, len(self.vocabulary), **how)
        return independent_rows(self.sigma, self.g, len(self.vocabulary), self.biases is not None, **how)

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """Solve at complete numbers; lam = 0 is the limit lam -> 0+, which exists off n = p."""
        return OneStepSolution.of(ridgeless(super().run, lambda: self._build(interpolating=True), numbers, options), self)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """m1, m2, ..., zeta1, ...: the unknowns of the system, family by family."""
        names = [u.name for u in self.system.unknowns]
        families = {n: (n.split("_")[0] if n.startswith(("psi", "zeta")) else n).rstrip("0123456789") for n in names}
        return tuple(n for family in _FAMILIES for n in names if families[n] == family)

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with r, gamma, and u_k, pi_k, c_k; c is the mean of the c_k over the neurons."""
        alone = "alpha0" not in numbers and "eta" not in numbers
        if alone and self.norms is not None:
            numbers = {"c": np.asarray(np.dot(self.fractions, self.norms)), **numbers}
        residual = self._recentred()
        done = complete_numbers(self.name, self.sigma, residual, numbers)
        one = np.asarray(1.0)
        if self.rows == "orthogonal":
            self._require_orthogonal(done)
        cs = self.norms or (self._norms(residual, done) if not alone else [done["c"]]*len(self.vocabulary))
        done["c"] = sum(share*np.asarray(v) for share, v in zip(self.fractions, cs, strict=True))*one
        done["epsilon"] = one/done.get("dimension", np.inf*one)
        for k, (u, share, v) in enumerate(zip(self.vocabulary, self.fractions, cs, strict=True), start=1):
            done |= {f"u{k}": u*one, f"pi{k}": share*one, f"c{k}": np.asarray(v, dtype=float)}
        done |= {f"b{k}": b*one for k, b in enumerate(self.biases or (), start=1)}
        return done

    def _recentred(self) -> Target:
        """The target against which Result 3.1 has the right residual: the network starts at f^0 = sigma_0 sum_k pi_k u_k."""
        sigma_0 = spike(self.sigma, self.g).coefficients["sigma_0"]
        mean = Rational(sum(u*share for u, share in zip(self.vocabulary, self.fractions, strict=True)))
        if sigma_0 == 0:
            return self.g
        moved = self.g.expr + (1 - mean)*sigma_0
        return Activation(self.g.name, moved) if isinstance(self.g, Activation) else DirectedTarget(moved, self.g.variables)

    def _norms(self, residual: Target, done: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """c_k of Result 3.1: the gradient of a neuron is proportional to its own readout, so its rate is eta u_k."""
        made = spike(self.sigma, residual)
        at = {n: np.asarray(done.get(n, d), dtype=float) for n, d in (("alpha0", 0), ("eta", 0), ("beta", 1), ("Delta", 0))}
        own = tuple((n, float(done[n])) for n in free_parameters(self.sigma, self.g))
        return [np.asarray(made.features_at({**at, "eta": at["eta"]*u}, own)[1]) for u in self.vocabulary]

    def _require_orthogonal(self, done: Mapping[str, np.ndarray]) -> None:
        if np.any(done["beta"] > 1):
            raise BadInput("one-step: orthogonal rows need beta <= 1 (p rows in d dimensions), not beta = "
                           f"{np.max(done['beta']):g}; rows='sphere' takes any beta")
        gap = np.abs(np.abs(np.asarray(done["gamma"])) - 1)
        if np.any(gap > _TOTAL):
            raise BadInput("one-step: with orthogonal rows the equations are known at gamma = 1 (alpha0 = inf) only, not at "
                           f"gamma = {np.ravel(done['gamma'])[np.argmax(np.ravel(gap))]:g}; rows='sphere' takes any gamma")

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """sigma, target, vocabulary, fractions, norms (those in use) and rows, then the numbers that stayed fixed."""
        own = {f"{n}{k}" for k in range(1, len(self.vocabulary) + 1) for n in ("u", "pi", "c", "b")}
        norms = [fixed[f"c{k}"] for k in range(1, len(self.vocabulary) + 1) if f"c{k}" in fixed]
        rest = {k: v for k, v in fixed.items() if k not in own | {"epsilon"}}
        return {**super().described(rest), "vocabulary": list(self.vocabulary), "fractions": list(self.fractions),
                **({"norms": norms} if norms else {}), **({"biases": list(self.biases)} if self.biases else {}), "rows": self.rows}


def _listed(name: str, given: Any) -> tuple[float, ...]:
    try:
        found = tuple(float(v) for v in (given if isinstance(given, Sequence | np.ndarray) else [given]))
    except NO_NUMBER:
        raise BadInput(f"one-step: {name} = {brief(given)} is not a list of numbers") from None
    if not found or not np.all(np.isfinite(found)):
        raise BadInput(f"one-step: {name} = {given!r}; at least one number is needed, and every one finite")
    return found


# -- the equations ----------------------------------------------------------------------------------------------------
class Letters:
    """The symbols of K letters: one family a name, x(k), and symmetric matrices, X(k, l).

    rank : of the spikes U_k in R^rank, with kappa1, kappa2, ... along their axes; 0: r u_k along kappa.
    """

    def __init__(self, count: int, *, shifted: bool = False, rank: int = 0) -> None:
        self.each = range(1, count + 1)
        self.b = self.family("b") if shifted else dict.fromkeys(self.each, S.Zero)
        self.pairs = list(combinations_with_replacement(self.each, 2))
        self.u, self.pi, self.c = (self.family(n, positive=n != "u") for n in ("u", "pi", "c"))
        self.mu_0, self.mu_1, self.mu_22 = (self.family(f"{n}_") for n in ("mu0", "mu1", "mu22"))
        self.m, self.kappas = self.family("m"), axes(rank) or (kappa,)
        marks = [f"_{a}" for a in range(1, rank + 1)] or [""]
        self.zeta, self.zetatilde, U = ({k: [Symbol(f"{n}{k}{mark}", real=True) for mark in marks] for k in self.each}
                                        for n in ("zeta", "zetatilde", "U"))
        self.U = U if rank else {k: [r*self.u[k]] for k in self.each}
        self.spread = [*(v for row in U.values() for v in row)] if rank else [r, gamma, *self.u.values()]

    def family(self, name: str, *, positive: bool = False) -> dict[int, Symbol]:
        """{k: name followed by k}."""
        return {k: Symbol(f"{name}{k}", positive=True) if positive else Symbol(f"{name}{k}", real=True) for k in self.each}

    def matrix(self, name: str) -> Matrix:
        """A symmetric matrix of symbols, name_kl with k <= l."""
        return Matrix(len(self.each), len(self.each), lambda i, j: Symbol(f"{name}_{min(i, j) + 1}{max(i, j) + 1}", real=True))

    def parameters(self, functions: tuple[Target, ...], taken: Sequence[Symbol]) -> list[Symbol]:
        """The letters that get numbers, including the own u_k, pi_k, c_k."""
        own = [*self.spread, *self.pi.values(), *self.c.values(), *(b for b in self.b.values() if b != 0)]
        common = [alpha, beta, lamda, Delta, bias, epsilon, *own]
        return [*common, *own_letters(functions, (*taken, *common))]

    def field(self, k: int) -> Expr:
        """The pre-activation of a letter, U_k.kappa + bias + b_k + sqrt(c_k) z."""
        return Add(*(v*x for v, x in zip(self.U[k], self.kappas, strict=True)), bias, self.b[k], sqrt(self.c[k])*z)

    def coefficients(self, sigma: Activation) -> dict[Symbol, Expr]:
        """mu_0, mu_1 and mu_2^2 of every letter: those of (U_k, c_k)."""
        found: dict[Symbol, Expr] = {}
        for k in self.each:
            s = sigma(self.field(k))
            found[self.mu_0[k]] = E(s, z)
            found[self.mu_1[k]] = E(z*s, z)/sqrt(self.c[k])
            found[self.mu_22[k]] = E(s**2, z) - self.mu_0[k]**2 - self.c[k]*self.mu_1[k]**2
        return found


@cache
def independent_rows(sigma: Activation, g: Target, count: int, shifted: bool = False, rank: int = 0, *,
                     interpolating: bool = False) -> System:
    """The equations for rows that are independent and uniform on their spheres, |w_i|^2 = c_k; any beta and gamma, or a spike
    U_k in R^rank of each letter with overlaps Gamma.

    q_2 and q_1 are minus the derivatives of
    G = sum_k pi_k qhat_{2,k} V_{2,k} + tr(qhat_1 V_1)
        + (alpha^2/beta) (sum_k pi_k c_k V_{2,k} |zetatilde_k|^2 + sum_j psitilde_j^T V_1 psitilde_j)
    with respect to L_k = lamda + Vhat_{2,k} and Mhat; through V_{2,k}, which L and Mhat determine, they are linear in themselves.
    """
    a = Letters(count, shifted=shifted, rank=rank)
    pi, c, m, zeta, zetatilde, mu_0, mu_1, mu_22 = a.pi, a.c, a.m, a.zeta, a.zetatilde, a.mu_0, a.mu_1, a.mu_22
    V2, Vhat2, q2, qhat2 = (a.family(n, positive=n in ("V2_", "Vhat2_")) for n in ("V2_", "Vhat2_", "q2_", "qhat2_"))
    moments, h1 = seen_beside(g, rank) if rank else seen(g), slopes(g)
    names = [""] if isinstance(g, Activation) else [f"_{j}" for j in range(1, len(g.variables) + 1)]
    # of every direction the overlaps of all letters
    psi, psitilde = ([{k: Symbol(f"{n}{k}{name}", real=True) for k in a.each} for name in names] for n in ("psi", "psitilde"))
    V1, Mhat, q1, qhat1 = (a.matrix(n) for n in ("V1", "Vhat1", "q1", "qhat1"))
    h, h2, Q, B, e = (Symbol(n, real=True) for n in ("h", "h2", "Q", "B", "e"))
    mu = Matrix([mu_1[k] for k in a.each])
    tilted, tilde = ([Matrix([v[k] for k in a.each]) for v in family] for family in (psi, psitilde))
    # V_1 (qhat_1 + (alpha^2/beta) sum_j psitilde_j psitilde_j^T) V_1
    inner = V1*(qhat1 + sum((alpha**2/beta*v*v.T for v in tilde), 0*V1))*V1
    drop = V1*Mhat                                               # (pi_k c_k V_{2,k} [Mhat (I + D Mhat)^{-1}]_kl)_kl
    slope = diag(*(1/(pi[k]*c[k]*V2[k]) for k in a.each))*V1     # (I + Mhat D)^{-1}
    inverse, drops = responses(V2, Mhat, {k: pi[k]*c[k]*V2[k] for k in a.each})

    def K(x: Expr) -> Expr:
        """The average over the coordinates along the spikes."""
        return E(x, *a.kappas)

    equations: dict[Symbol, Any] = {V1[k - 1, l - 1]: inverse[k - 1, l - 1] for k, l in a.pairs}
    for k in a.each:
        equations[V2[k]] = 1/(lamda + Vhat2[k] + c[k]*drops[k - 1])
    for k in a.each:
        equations[Vhat2[k]] = alpha/beta*K(mu_22[k]*Q)
    for k, l in a.pairs:
        equations[Mhat[k - 1, l - 1]] = alpha/beta*K(mu_1[k]*mu_1[l]*Q)
    for k in a.each:
        equations[m[k]] = Eq(K(mu_0[k]*(h - B)*Q), m[k]*epsilon/(alpha*pi[k]*V2[k]))
    for k in a.each:
        for along, tilde_along, x in zip(zeta[k], zetatilde[k], a.kappas, strict=True):
            equations[along] = alpha*pi[k]*c[k]*V2[k]*tilde_along
            equations[tilde_along] = K(x*mu_1[k]*(h - B)*Q)
    for j, f in enumerate(h1):
        for k in a.each:
            equations[psi[j][k]] = alpha*(V1*tilde[j])[k - 1]
            equations[psitilde[j][k]] = K(mu_1[k]*f*Q)
    for j in a.each:
        through = sum(c[k]*(drop[k - 1, j - 1]/(pi[k]*c[k]*V2[k]))**2*q2[k] for k in a.each)
        weight = (pi[j]*qhat2[j] + alpha**2/beta*pi[j]*c[j]*Add(*(v**2 for v in zetatilde[j]))
                  + m[j]**2*epsilon/(beta*pi[j]*V2[j]**2))
        equations[q2[j]] = V2[j]**2*(weight + beta*pi[j]*c[j]*through) + inner[j - 1, j - 1]/(pi[j]*c[j])
    for k, l in a.pairs:
        through = sum(q2[j]*c[j]*slope[j - 1, k - 1]*slope[j - 1, l - 1] for j in a.each)
        equations[q1[k - 1, l - 1]] = beta*inner[k - 1, l - 1] + through
    for k in a.each:
        equations[qhat2[k]] = alpha/beta*K(mu_22[k]*e*Q**2)
    for k, l in a.pairs:
        equations[qhat1[k - 1, l - 1]] = alpha/beta*K(mu_1[k]*mu_1[l]*e*Q**2)

    where = {
        **({} if rank else {rho: 1 - gamma**2}), **a.coefficients(sigma), **moments.names,
        h: moments.h, **dict(zip(h1, (v - LIFT if rank else v for v in moments.h_1), strict=True)), h2: moments.squared + Delta,
        Q: 1/((0 if interpolating else 1) + _quadratic(V1, mu) + sum(pi[k]*V2[k]*mu_22[k] for k in a.each)),
        B: sum(mu_0[k]*m[k] + mu_1[k]*sum(x*v for x, v in zip(a.kappas, zeta[k], strict=True)) for k in a.each),
        e: (h2 - 2*B*h + B**2 - sum(2*f*(mu.T*v)[0] for f, v in zip(h1, tilted, strict=True))
            + _quadratic(q1, mu) + sum(mu_22[k]*q2[k] for k in a.each)),
    }
    # without a ridge nothing is left to be trained, and Q^2 grows too fast to be averaged
    trained = S.Zero if interpolating else K(e*Q**2)
    parameters = [*a.parameters((sigma, g), (*equations, *where)), *(letters_beside(moments) if rank else [])]
    return System(equations, where=where, parameters=parameters,
                  observables={"test_error": K(e) - Delta, "train_error": trained},
                  positive=[V1[k - 1, k - 1].name for k in a.each], name="Vocabulary, independent rows",
                  source="one-step learning with a vocabulary of readout values, independent rows")


def responses(V2: Mapping[int, Symbol], Mhat: Matrix, weight: Mapping[int, Expr]) -> tuple[Matrix, list[Expr]]:
    """V_1 = (D^{-1} + Mhat)^{-1}/beta and [c_k Mhat (I + D Mhat)^{-1}]_kk, D = beta diag(w), as quotients of determinants.

    Both are positive whatever the letters, for Mhat is a Gram matrix: no step of a solver leaves the range of V_1 and V_2.
    """
    count = len(weight)
    whole = Matrix(count, count, lambda i, j: KroneckerDelta(i, j) + beta*weight[i + 1]*Mhat[i, j])
    det = _determinant(whole)
    V1 = Matrix(count, count, lambda i, j: (-1)**(i + j)*_determinant(whole.minor_submatrix(j, i))*weight[j + 1]/det)
    drops = []
    for k in range(count):
        row = whole.copy()
        row[k, :] = Mhat[k, :]   # the numerator of Cramer's rule
        drops.append(_determinant(row)/det)
    return V1, drops


def _determinant(matrix: Matrix) -> Expr:
    return matrix.det(method="laplace") if matrix.rows else S.One


def _quadratic(matrix: Matrix, v: Matrix) -> Expr:
    return (v.T*matrix*v)[0].expand()


@cache
def orthogonal_rows(sigma: Activation, g: Activation, count: int, *, interpolating: bool = False) -> System:
    """The equations for orthogonal rows, w_i.w_j = c_k delta_ij, at gamma = 1 and beta <= 1 [cui2024, Appendix D.3].

    The terms -(kappa^2 - 1) and -(sum_k mu_1^k zeta_k)^2 take the spike's direction out of the bulk.
    """
    a = Letters(count)
    pi, c, m, mu_0, mu_1, mu_22 = a.pi, a.c, a.m, a.mu_0, a.mu_1, a.mu_22
    V, Vhat, q, qhat = (a.family(n, positive=n[0] == "V") for n in ("V2_", "Vhat2_", "q2_", "qhat2_"))
    s2 = a.family("s2_")
    Q, B, e = (Symbol(n, real=True) for n in ("Q", "B", "e"))
    h, lin = g(gamma*kappa), Symbol("linear", real=True)
    zeta, zetatilde = ({k: v for k, (v,) in family.items()} for family in (a.zeta, a.zetatilde))

    def K(x: Expr) -> Expr:
        return E(x, kappa)

    equations: dict[Symbol, Any] = {V[k]: 1/(lamda + Vhat[k]) for k in a.each}
    equations |= {Vhat[k]: alpha/beta*K(s2[k]*Q) for k in a.each}
    equations |= {m[k]: Eq(K(mu_0[k]*(h - B)*Q), m[k]*epsilon/(alpha*pi[k]*V[k])) for k in a.each}
    for k in a.each:
        equations[zeta[k]] = alpha*pi[k]*c[k]*V[k]*zetatilde[k]
        equations[zetatilde[k]] = K(mu_1[k]*Q*(kappa*(h - sum(mu_0[j]*m[j] for j in a.each)) - (kappa**2 - 1)*lin))
    for k in a.each:
        equations[q[k]] = (pi[k]*V[k]**2*(alpha**2/beta*c[k]*zetatilde[k]**2 + qhat[k])
                           + m[k]**2*epsilon/(beta*pi[k]))
    equations |= {qhat[k]: alpha/beta*K(s2[k]*e*Q**2) for k in a.each}
    where = {
        **a.coefficients(sigma),
        **{s2[k]: c[k]*mu_1[k]**2 + mu_22[k] for k in a.each},
        Q: 1/((0 if interpolating else 1) + sum(pi[k]*V[k]*s2[k] for k in a.each)),
        lin: sum(mu_1[k]*zeta[k] for k in a.each),
        B: sum(mu_0[k]*m[k] for k in a.each) + kappa*lin,
        e: (h - B)**2 + Delta - lin**2 + sum(s2[k]*q[k] for k in a.each),
    }
    return System(equations, where=where, parameters=a.parameters((sigma, g), (*equations, *where)),
                  observables={"test_error": K(e) - Delta, "train_error": S.Zero if interpolating else K(e*Q**2)},
                  name="Vocabulary, orthogonal rows", source="cui2024, Appendix D.3")

