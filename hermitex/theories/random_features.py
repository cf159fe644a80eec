r"""Vhat = alpha E[(1 - d eta/d omega)/V],  qhat = alpha E[(eta - omega)^2/V^2],  V = mu_1^2 Vs + mu_star^2 Vw: random features.

w_hat = argmin sum l(y, f(x)) + lam/2 |w|^2, f = <w, sigma(W_0 x/sqrt(d))>/sqrt(p), whose features are mu_0 + mu_1 W_0 x/sqrt(d) +
mu_star z in effect (Gaussian equivalence); alpha = n/p, gamma = d/p [gerace2020]. At the square loss two scalars are left, the
closed form of [mei2022].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Eq, Max, Piecewise, Rational, S, sqrt, symbols

from hermitex.errors import BadInput, HermitexError, NoValue, brief
from hermitex.hints import Formula
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.precise import evaluate
from hermitex.symbols import Delta, Vhat, alpha, gamma, lamda, mhat, mu_0, mu_1, mu_star, qhat, rho, z
from hermitex.systems.solve import shape_solution
from hermitex.systems.system import System
from hermitex.theories.convex import flattened, solved
from hermitex.theories.losses import loss_equations as sample
from hermitex.theories.losses.classes import MEANS, clusters, fraction, word_of_link
from hermitex.theories.losses.loss_equations import V
from hermitex.theories.losses.loss_labels import of_signs
from hermitex.theories.losses.pointwise import HALF_SQUARE, Pointwise, pointwise
from hermitex.theories.ridgeless import ridgeless
from hermitex.theories.spike import free_parameters, functions
from hermitex.theories.theory import Theory

Vs, Vw, qs, qw, Q = symbols("Vs Vw qs qw Q", positive=True)
M, ms, b = symbols("M ms b", real=True)
# of the spectral law of W_0^T W_0/p: h = int dmu(s)/(v s + L), and what its slopes are made of
v, L, D, h, u, c_1, g_2, e = symbols("v L D h u c_1 g_2 e", real=True)
ORDER_PARAMETERS = ("V", "Q", "M", "Vs", "Vw", "qs", "qw", "ms", "Vhat", "qhat", "mhat")
_TAKEN = {*ORDER_PARAMETERS, "b", "v", "L", "D", "h", "u", "c_1", "g_2", "e", "alpha", "gamma", "lam", "lamda", "Delta", "mu_0",
          "mu_1", "mu_star", "S", "tau", "J", "J_z", "J_2", "J_s", "t_0", "B"}


@dataclass(frozen=True, repr=False)
class RandomFeatures(Theory):
    """Ridge-penalised learning on the features of an untrained layer.

    loss : a convex loss; the square loss is (y - f)^2/2. A target of +-1 under a loss that is not one of y - f has labels
    y = g(nu + sqrt(Delta) Z) of +-1 and `test_error` is the probability that sign f is not y; else y = g(nu) + sqrt(Delta) Z and
    `test_error` is E(g - f)^2. If mu_0 = E sigma is not 0 the features carry a constant, which acts as a free intercept b.
    """

    sigma: Activation
    g: Activation
    loss: Pointwise = HALF_SQUARE
    drawn: str = ""  # "logit" or "probit": labels of +-1 whose mean is g; "mixture": two clusters of the data

    name: ClassVar[str] = "random-features"
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(("rho", "fraction"), "labels='mixture' (--labels mixture)")
    ratio: ClassVar[str] = "n/p"

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        """The papers whose results are used."""
        return ("gerace2020", "mignacco2020") if self.mixed else ("gerace2020", "mei2022")

    # -- structure ---------------------------------------------------------------------------------------------------
    @property
    def mixed(self) -> bool:
        """True if the data are two clusters, x = y v/sqrt(d) + sqrt(Delta) z, |v|^2 = rho d, a share `fraction` of y = 1."""
        return self.drawn == "mixture"

    @property
    def square(self) -> bool:
        """True if the loss is (y - f)^2/2, whose averages are E g^2 and E z g(z)."""
        return self.loss == HALF_SQUARE and not self.drawn

    @cached_property
    def binary(self) -> bool:
        """True if the labels are +-1."""
        return bool(self.drawn) or (self.loss.of_residual is None and of_signs(self.g))

    @cached_property
    def intercept(self) -> bool:
        """True if E sigma is not 0, so that a constant is learned at no cost, and no symmetry makes it 0."""
        if self.mixed:  # E sigma(sqrt(Delta) z)
            return self.sigma.parity != -1
        symmetric = self._odd or (self.square and self.g.parity == -1)
        return not symmetric and not _vanishes(self.sigma)

    @cached_property
    def _odd(self) -> bool:
        """True if a reflection of the sample exchanges the labels."""
        return self.binary and not self.mixed and self.g.parity == -1 and self.loss.symmetric

    @cached_property
    def system(self) -> System:
        """The fixed-point equations in the order of the field's papers: the sample's side, then the features'."""
        return self._equations()

    @cached_property
    def interpolating(self) -> System:
        """The square loss at lam -> 0+ with n < p, in V lam, Vhat/lam, ...: the 1 of 1/(1 + V) falls away, lam counts as 1."""
        return self._equations(interpolating=True)

    def _equations(self, *, interpolating: bool = False) -> System:
        names, observables = self._squared(interpolating) if self.square else self._sample()
        J_s, J_2, J_z = sample.J_s, sample.J_2, sample.J_z
        b_1, b_2 = L + (1 - gamma)*v, L + (gamma - 1)*v
        # of clusters: E sigma'(sqrt(Delta) z) is the slope along their axis, whose squared length is rho
        width, tilt, norm = (sqrt(Delta), mu_1/sqrt(Delta), rho) if self.mixed else (S.One, mu_1, S.One)
        signal = norm*(tilt/gamma*mhat)**2 + mu_1**2/gamma*qhat
        slope = h*(1 + gamma*v*h)/D
        rest = E(self.sigma(width*z)**2, z) - mu_0**2 - mu_1**2
        right: dict[Any, Any] = {
            Vhat: alpha*J_s,
            qhat: alpha*J_2,
            mhat: alpha*J_z,
            Vs: h*u,
            Vw: Piecewise((2/(b_2 + D), b_2 > 0), ((D - b_2)/(2*L*v), True)),
            ms: norm*tilt/gamma*mhat*Vs,
            qs: signal*slope*u**2*(u + gamma*L*h) + mu_star**2*qhat*slope*u**2,
            qw: mu_star**2*qhat*Vw*(1 + v*Vw)/D + gamma*signal*slope*u**2,
            V: mu_1**2*Vs + mu_star**2*Vw,
            Q: mu_1**2*qs + mu_star**2*qw,
            M: tilt*ms,
        }
        if self.intercept:
            right[b] = E(self.g(z), z) if self.square else Eq(sample.J, 0, evaluate=False)
        where = {
            mu_0: E(self.sigma(width*z), z),
            mu_1: E(z*self.sigma(width*z), z),
            mu_star: sqrt(Max(rest, 0) if self.mixed else rest),  # at a number Delta rounding may take it below 0
            v: mu_1**2/gamma*Vhat,
            L: lamda + mu_star**2*Vhat,
            D: sqrt(b_1**2 + 4*gamma*L*v),
            h: Piecewise((2/(b_1 + D), b_1 > 0), ((D - b_1)/(2*gamma*L*v), True)),
            u: 1/(1 + gamma*v*h),
            **names,
        }
        observables |= {"train_objective": observables["train_error"] + lamda*qw/(2*alpha)}
        own = sorted({x for k in (self.sigma, self.g) for x in k(z).free_symbols} - {z}, key=str)
        own = [rho, fraction, *own] if self.mixed else own
        kept = [] if self.square else [k for k in (sample.S_, sample.tau, J_s, J_2, J_z) if k in where]
        return System(right, where=where, observables=observables, parameters=[alpha, gamma, lamda, Delta, *own],
                      positive=[Vhat, qhat, V], kept=kept,
                      source="gerace2020", name=f"random_features({self.sigma.name}, {self.g.name}, {self.loss})")

    def _squared(self, interpolating: bool) -> tuple[dict[Any, Any], dict[str, Any]]:
        """(y - f)^2/2: only E g^2 and c_1 = E z g(z) of the target enter; its other part acts as noise."""
        clean = self.g(z) - (b if self.intercept else 0)
        damped = 1/((0 if interpolating else 1) + V)
        names = {c_1: E(z*self.g(z), z), g_2: E(clean**2, z), e: g_2 + Delta - 2*M*c_1 + Q,
                 sample.J_s: damped, sample.J_2: e*damped**2, sample.J_z: c_1*damped}
        return names, {"test_error": e - Delta, "train_error": e*damped**2/2, "test_error_noisy": e}

    def _sample(self) -> tuple[dict[Any, Any], dict[str, Any]]:
        """Any convex loss: the averages over a sample of `losses.loss_equations` at one kappa, f = b + M z1 + sqrt(Q - M^2) z2."""
        if self.mixed:
            return clusters(self.loss, M, Q, V, b if self.intercept else S.Zero)
        kind = "labels" if self.binary else "residual" if self.loss.of_residual is not None else "values"
        st = sample.Structure(self.sigma, self.g, self.loss, kind, mirror=self._odd)
        return sample.without_spike(st, {sample.psi: M, sample.q1: Q, sample.rho: S.One, sample.gamma: S.Zero,
                                         sample.B: b if self.intercept else S.Zero})

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """V, Q, M, those of the two parts of the features, and the conjugates; b where there is an intercept."""
        return (*ORDER_PARAMETERS, "b") if self.intercept else ORDER_PARAMETERS

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors and losses of a curve, the test error first."""
        more = () if self.square or self.mixed else ("test_loss",)
        noisy = () if self.binary else ("test_error_noisy",)
        return ("test_error", "train_error", *more, *noisy, "train_objective")

    # -- numbers -----------------------------------------------------------------------------------------------------
    def letters(self) -> dict[str, Any]:
        """alpha = n/p, gamma = d/p, lam; Delta=0 (mixture: Delta=1, rho=1, fraction=1/2 of y = 1); parameters of sigma and g."""
        more = {"Delta": 1.0, "rho": 1.0, "fraction": 0.5} if self.mixed else {"Delta": 0.0}
        return {"alpha": self.REQUIRED, "gamma": self.REQUIRED, "lam": self.REQUIRED, **more,
                **dict.fromkeys(free_parameters(self.sigma, self.g), self.REQUIRED)}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        for name, default in self.letters().items():
            if name not in numbers:
                if default is not self.REQUIRED:
                    continue
                raise NoValue(self.name, name)
            at = np.asarray(numbers[name])
            may_vanish = (name == "Delta" and not self.mixed) or (name == "lam" and self.square)
            fine = np.isfinite(at) & ((at > 0) | ((at == 0) & may_vanish))
            if name in ("alpha", "gamma", "lam", "Delta", "rho", "fraction") and not np.all(fine):
                raise BadInput(f"{self.name}: {name} must be finite and {'0 or more' if may_vanish else 'positive'}")
        if self.mixed and np.any(np.asarray(numbers["fraction"]) >= 1):
            raise BadInput(f"{self.name}: fraction is the share of labels 1, between 0 and 1")
        if self.mixed and self.intercept and np.any(np.asarray(numbers["Delta"]) == 1) and _vanishes(self.sigma):
            raise BadInput(f"{self.name}: E sigma(sqrt(Delta) z) is 0 at Delta = 1, where the features contain no constant, and is "
                           "not 0 nearby; take another Delta, or an odd activation")
        return numbers

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """Solve at complete numbers; at the square loss lam = 0 is the limit lam -> 0+, which exists off n = p."""
        if not self.square:
            return self._convex(numbers, **options)
        return ridgeless(super().run, lambda: self.interpolating, numbers, options, excess=numbers["alpha"] - 1)

    def _convex(self, numbers: Mapping[str, np.ndarray], *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
                **options: Any) -> Solution:
        """All points in one batch, a small lam come to from lam = 1."""
        shape, flat, first = flattened(self.name, self.system, numbers, start)
        # the averages over a label that is drawn are held to what a grid of smooth ones is
        found = shape_solution(solved(self.system, flat, first, max(tolerance, 1e-10) if self.drawn else tolerance), shape)
        return found.require() if options.get("raise_on_failure") else found

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The functions, the loss and the numbers that stayed fixed."""
        names = {"sigma": self.sigma.name, "target": self.g.name, "loss": str(self.loss)}
        if self.mixed:
            return {"sigma": self.sigma.name, "labels": self.drawn, "loss": str(self.loss), **fixed}
        return {**names, **({"link": self.drawn} if self.drawn else {}), **fixed}


def _vanishes(sigma: Activation) -> bool:
    """Is E sigma(z) = 0? By parity, by its closed form, or to 13 digits where it has none."""
    if sigma.parity == -1:
        return True
    mean = E(sigma(z), z)
    try:
        return bool(closed_form(mean).simplify() == 0)
    except HermitexError:
        return not free_parameters(sigma) and abs(evaluate(mean, 17)) <= Rational(1, 10**13)


def random_features(sigma: Formula, g: Formula | None = None, *, loss: Formula = "square", link: str | None = None,
                    labels: str | None = None) -> RandomFeatures:
    """The theory of random features: an untrained first layer and a ridge-penalised readout, n, p, d -> oo together.

    w_hat = argmin sum l(y, f(x)) + lam/2 |w|^2 with f = <w, sigma(W_0 x/sqrt(d))>/sqrt(p), x ~ N(0, I_d), rows of W_0 ~ N(0, I_d),
    y = g(nu) + sqrt(Delta) Z (labels of +-1 under a margin loss: g(nu + sqrt(Delta) Z)), nu = <theta, x>/sqrt(d) ~ N(0, 1).

    Parameters
    ----------
    sigma, g : activation and target: a name, text or expression in z, or `Activation`; square integrable
    loss : "square", which is (y - f)^2/2 here, or "logistic", "hinge", "huber:1", a convex expression in y and f
    link : "linear" (the default), the labels above; labels of +-1: "sign", that of u = g(nu + sqrt(Delta) Z); "logit", "probit",
        P(y = 1) = 1/(1 + exp(-u)) or Phi(u)
    labels : the same as `link`; or "mixture", instead of g: x = y v/sqrt(d) + sqrt(Delta) z, |v|^2 = rho d, a share
        `fraction` of y = 1; then M is the mean output of a sample over its label, Q its variance

    Returns
    -------
    Theory : ``.system``, ``.solve(alpha=, gamma=, lam=, Delta=0)`` -> Solution, ``.curve(alpha=[...], ...)`` -> Curve; alpha = n/p
    and gamma = d/p, so n/d = alpha/gamma. Order parameters V, Q = E f^2, M = E nu f and those of the linear (s) and the other
    (w) part of the features. The one-step theory at r = 0, c = 1 and (alpha, beta, lam) is this one at (alpha/beta, 1/beta, lam),
    with twice its training error.

    Raises
    ------
    BadInput : sigma or g is not square integrable; the loss asks for labels of +-1 and the target is real.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: gerace2020; mei2022 (square loss); mignacco2020 (mixtures).

    Examples
    --------
    >>> theory = random_features("erf", "z")
    >>> round(theory.solve(alpha=1.5, gamma=0.5, lam=0.01, Delta=0.1)["test_error"], 10)
    0.2554511257
    """
    mixed = isinstance(labels, str) and labels == "mixture"
    if g is None and not mixed:
        raise BadInput("random-features: target has no value; give it, for instance target='tanh', or labels='mixture'")
    if mixed and not (g is None and link is None):
        raise BadInput("random-features: a mixture has its labels from the clusters; leave the target and link out")
    word = "mixture" if mixed else word_of_link("random-features", labels, link)
    if not (mixed or (isinstance(word, str) and word in ("linear", *MEANS))):
        raise BadInput(f"random-features: link is linear, sign, logit or probit, and labels that or mixture, not {brief(word)}")
    made = functions("random-features", sigma, MEANS["sign"] if g is None else g, _TAKEN)
    if z not in made[0](z).free_symbols:
        raise BadInput(f"random-features: sigma = {made[0].name} is constant: its features tell no sample from another")
    plain = isinstance(loss, str) and loss.strip() == "square"
    if word in MEANS and isinstance(made[1], Activation):
        made = made[0], Activation(f"{word}({made[1].name})", MEANS[word].subs(z, made[1](z)))
    return _made(*made, HALF_SQUARE if plain else pointwise(loss), word if word in ("mixture", "logit", "probit") else "")


@lru_cache(maxsize=64)
def _made(sigma: Activation, g: Activation, loss: Pointwise, drawn: str) -> RandomFeatures:
    """One object for one structure, so that its system is compiled once."""
    found = RandomFeatures(sigma, g, loss, drawn)
    loss.require_labels("random-features", g, found.binary)
    return found
