r"""V = tr Omega (lam + Vhat Omega)^-1/p,  m = mhat |Phi^T theta|^2_(lam + Vhat Omega)^-1/k: the Gaussian covariate model.

w_hat = argmin sum l(y, f) + lam/2 |w|^2, f = <w, v>/sqrt(p), on labels of nu = <theta, u>/sqrt(k); teacher and student features u
and v are jointly Gaussian with covariances Psi = E u u^T, Omega = E v v^T, Phi = E u v^T; alpha = n/p [loureiro2021]. Only the
spectrum of Omega enters, and the components of Phi^T theta along its eigenvectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Idx, IndexedBase, S, Sum, Symbol, sign, sqrt, symbols

from hermitex.errors import NO_NUMBER, BadInput
from hermitex.hints import Formula
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, V, Vhat, alpha, lamda, m, mhat, q, qhat, rho, z
from hermitex.systems.names import read_start
from hermitex.systems.solve import shape_solution
from hermitex.systems.system import System
from hermitex.theories.convex import solved
from hermitex.theories.losses import loss_equations as sample
from hermitex.theories.losses.classes import mean_label, word_of_link
from hermitex.theories.losses.loss_labels import of_signs
from hermitex.theories.losses.pointwise import HALF_SQUARE, Pointwise, pointwise
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.theory import Theory, numbers_latex

c_1, g_2, e, norm = symbols("c_1 g_2 e norm", real=True)


@dataclass(frozen=True, eq=False)
class FeatureCovariance:
    """The part of the features that enters the equations: eigenvalues of Omega, the target's components, E nu^2.

    signal : p <e_k, Phi^T theta>^2/k for the eigenvector e_k; share : of each eigenvalue, which add up to 1
    noise : variance of the labels that theta was fitted to around nu; 0 without labels
    """

    omega: np.ndarray
    signal: np.ndarray
    share: np.ndarray
    rho: float
    noise: float = 0.0

    def __repr__(self) -> str:  # by its numbers: a sweep tells theories apart by it
        numbers = np.concatenate([self.omega, self.signal, self.share, [self.rho, self.noise]])
        return f"Spectrum({self.omega.size} features, {hashlib.sha256(numbers.tobytes()).hexdigest()})"


@dataclass(frozen=True, repr=False)
class Covariate(Theory):
    """Learning on Gaussian features with any covariances: `.solve(alpha=, lam=, Omega=, ...)`, `.from_features(X, Y)`."""

    loss: Pointwise
    g: Activation
    drawn: str = ""  # "logit" or "probit": the label is +-1 with the mean g
    features: FeatureCovariance | None = field(default=None, repr=False)

    name: ClassVar[str] = "covariate"
    arrays: ClassVar[tuple[str, ...]] = ("Omega", "Psi", "Phi", "theta", "share")
    sources: ClassVar[tuple[str, ...]] = ("loureiro2021",)
    ratio: ClassVar[str] = "n/p"

    @property
    def binary(self) -> bool:
        """True if the labels are +-1 and the test error is that of classification."""
        return bool(self.drawn) or (self.loss.of_residual is None and of_signs(self.g))

    @property
    def system(self) -> System:
        """The six equations; sums over the spectrum."""
        return _equations(self.loss, self.g, self.drawn)

    order_parameters = ("V", "q", "m", "Vhat", "qhat", "mhat")  # V, q = E f^2, m = E nu f and their conjugates

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors and losses of a curve, the test error first."""
        return ("test_error", "train_error", *(() if self.binary else ("test_error_noisy",)), "train_objective")

    def letters(self) -> dict[str, Any]:
        """alpha = n/p, lam, Delta = 0 or that of the labels; unless from features Omega, Psi, Phi, theta, share of diagonals."""
        own: dict[str, Any] = {"alpha": self.REQUIRED, "lam": self.REQUIRED,
                               "Delta": 0.0 if self.features is None else self.features.noise}
        if self.features is None:
            own |= {**dict.fromkeys(("Omega", "Psi", "Phi", "theta"), self.REQUIRED), "share": None}
        return own

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked, and the spectrum."""
        found = self.checked(numbers, alpha="> 0", lam="> 0", Delta=">= 0")
        seen = self.features
        if seen is None:
            self.checked(found, Omega="", Psi="", Phi="", theta="")
            seen = spectrum(**{name: found[name] for name in self.arrays if name in found})
        return {**found, "omega": seen.omega, "signal": seen.signal, "share": seen.share, "rho": np.asarray(seen.rho)}

    def run(self, numbers: Mapping[str, np.ndarray], *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
            **options: Any) -> Solution:
        """All points in one batch, a small lam come to from lam = 1."""
        inside = {name: numbers[name] for name in ("omega", "signal", "share")}
        points = {name: v for name, v in numbers.items() if name not in self.arrays and name not in inside}
        shape = np.broadcast_shapes(*(v.shape for v in points.values()))

        def flat(value: Any) -> np.ndarray:
            """A point of its own keeps its derivatives; others go as one batch."""
            wide = np.asarray(value, dtype=float)
            return np.broadcast_to(wide, shape).ravel() if shape else wide

        here = {("lamda" if name == "lam" else name): flat(v) for name, v in points.items()}
        found = solved(self.system, {**here, **inside}, {name: flat(v) for name, v in read_start(start, "'V': 1").items()},
                       tolerance)
        found = shape_solution(found, shape) if shape else found
        return found.require() if options.get("raise_on_failure") else found

    @property
    def link(self) -> str:
        """The name of the link."""
        return self.drawn or self.g.name

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Loss, link and the numbers that stayed fixed."""
        return {"loss": str(self.loss), "link": self.link, **fixed}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Loss, link, samples, ridge and noise, as far as they are fixed."""
        return ", ".join((str(self.loss), self.link, *numbers_latex(numbers, alpha=r"\alpha", lam=r"\lambda", Delta=r"\Delta")))

    def from_features(self, teacher: Any, student: Any = None, *, theta: Any = None, labels: Any = None) -> Covariate:
        """The same theory with covariances measured on samples of features, one row each: X^T X/N, without centring.

        Parameters
        ----------
        teacher, student : arrays (N, k) and (N, p), or one for both
        theta : the teacher's k weights; with neither theta nor labels the target is that of a teacher drawn at random, N(0, I)
        labels : N real numbers; theta is their least-squares fit, and what no linear function of u gives counts as noise: the
            mean of (y - <theta, u>/sqrt(k))^2 is the default of Delta, and a Delta that is given replaces it. Take N well above
            k, or the fit takes up the noise. Labels of +-1, sign(nu + sqrt(Delta) Z), under the link "sign" and a loss of
            such labels: the fit is theta up to its length, and explains (2/pi) rho/(rho + Delta) of them, which gives Delta. For
            another link give theta

        Returns
        -------
        Covariate : its `.solve(alpha=, lam=)`, `.curve(alpha=[...], lam=)` need no matrices.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((500, 20))
        >>> covariate("square").from_features(np.tanh(X)).curve(alpha=[1, 2], lam=0.1).all_converged
        True
        """
        u = _matrix("teacher features", teacher)
        v = u if student is None else _matrix("student features", student)
        if len(u) != len(v):
            raise BadInput(f"covariate: {len(u)} samples of the teacher's features, and {len(v)} of the student's; one for each")
        if theta is not None and labels is not None:
            raise BadInput("covariate: theta or the labels it is fitted to, not both")
        noise = 0.0
        if labels is not None:
            signs = self.binary and self.g(z) == sign(z)
            if self.drawn or not (signs or self.g(z) == z):
                raise BadInput(f"covariate: labels are fitted by a linear function, and the link is {self.link}; give theta= "
                               "instead, or take the link 'linear', or 'sign' with a loss of labels of +-1")
            y = _vector("labels", labels, len(u))
            if signs and np.any(np.abs(y) != 1):
                raise BadInput(f"covariate: under the link sign labels are 1 and -1, not {y[np.abs(y) != 1][0]:g}")
            fit = np.linalg.lstsq(u, y, rcond=None)[0]
            theta, noise = np.sqrt(u.shape[1])*fit, float(np.mean((y - u @ fit)**2))
            if signs:  # at this length of theta, rho is the share explained: 2/pi - rho = Delta
                noise = max(0.0, noise - (1 - 2/np.pi))
        Omega, Phi, Psi = v.T @ v/len(v), u.T @ v/len(v), u.T @ u/len(u)
        return replace(self, features=replace(spectrum(Omega, Psi, Phi, theta), noise=noise))


def spectrum(Omega: Any, Psi: Any, Phi: Any, theta: Any = None, share: Any = None) -> FeatureCovariance:
    """The spectrum of Omega and the target in it, from matrices, or from their diagonals in a common basis.

    Without theta: the mean over theta ~ N(0, I).

    Raises
    ------
    BadInput : shapes that do not fit; matrices that are not a joint covariance along theta (other directions are not tested).
    """
    Omega, Psi, Phi = (np.asarray(v, dtype=float) for v in (Omega, Psi, Phi))
    if not (Omega.ndim and Psi.ndim and Phi.ndim):
        raise BadInput("covariate: Omega, Psi and Phi are matrices or their diagonals, not single numbers")
    if Omega.ndim == 1:
        p = k = Omega.size
        part = np.full(p, 1/p) if share is None else np.asarray(share, dtype=float)
        weights = np.ones(p) if theta is None else np.asarray(theta, dtype=float)
        if not Omega.shape == Psi.shape == Phi.shape == weights.shape == part.shape:
            raise BadInput("covariate: diagonals are of one length: " + ", ".join(
                f"{n} {v.shape}" for n, v in (("Omega", Omega), ("Psi", Psi), ("Phi", Phi), ("theta", weights), ("share", part))))
        if np.any(part <= 0):
            raise BadInput("covariate: every share is positive")
        part = part/part.sum()
        omega, signal, size = Omega, (Phi*weights)**2, float(part @ (Psi*weights**2))
    else:
        if share is not None:
            raise BadInput("covariate: shares belong to diagonals, not to matrices")
        p, k = Omega.shape[0], Psi.shape[0]
        if Omega.shape != (p, p) or Psi.shape != (k, k) or Phi.shape != (k, p) or (theta is not None and np.shape(theta) != (k,)):
            raise BadInput(f"covariate: Omega (p, p), Psi (k, k), Phi (k, p) and theta (k,) are required, not {Omega.shape}, "
                           f"{Psi.shape}, {Phi.shape}" + ("" if theta is None else f" and {np.shape(theta)}"))
        if not (np.allclose(Omega, Omega.T) and np.allclose(Psi, Psi.T)):
            raise BadInput("covariate: Omega and Psi are symmetric")
        omega, vectors = np.linalg.eigh(Omega)
        seen = Phi @ vectors
        signal = p/k*(((np.asarray(theta, dtype=float) @ seen)**2) if theta is not None else (seen**2).sum(axis=0))
        size = float(np.trace(Psi) if theta is None else theta @ Psi @ np.asarray(theta, dtype=float))/k
        part = np.full(p, 1/p)
    top = float(np.abs(omega).max())
    rounding = 1e-8  # of a covariance: an eigenvalue or an overlap beyond its bound by no more is at the bound
    if np.any(omega < -rounding*top) or top == 0:
        raise BadInput("covariate: Omega has a negative eigenvalue, or is 0")
    omega = np.maximum(omega, 0.0)
    there = omega > 1e-12*top
    if not size > 0 or float((part[there]*signal[there]/omega[there]).sum()) > size*(1 + rounding) or (
            np.any(signal[~there] > 1e-6*max(float(signal.max()), 1e-300))):
        raise BadInput("covariate: Omega, Psi, Phi are not the covariances of one Gaussian: the student knows more of the target "
                       "than there is, <theta, Phi Omega^-1 Phi^T theta> > <theta, Psi theta>")
    return FeatureCovariance(omega, np.where(there, signal, 0.0), part, size)


@lru_cache(maxsize=32)
def _equations(loss: Pointwise, g: Activation, drawn: str) -> System:
    omega, signal, share = (IndexedBase(name) for name in ("omega", "signal", "share"))
    k = Idx("k", Symbol("N", integer=True))
    seen = lamda + Vhat*omega[k]
    power = share[k]*(mhat**2*signal[k] + qhat*omega[k])/seen**2
    if loss == HALF_SQUARE and not drawn:
        damped = 1/(1 + V)
        names: dict[Any, Any] = {c_1: E(z*g(sqrt(rho)*z), z), g_2: E(g(sqrt(rho)*z)**2, z),
                                 e: g_2 + Delta - 2*m*c_1/sqrt(rho) + q, sample.J_s: damped, sample.J_2: e*damped**2,
                                 sample.J_z: c_1*damped}
        observables = {"test_error": e - Delta, "train_error": e*damped**2/2, "test_error_noisy": e}
    else:
        labels = bool(drawn) or (loss.of_residual is None and of_signs(g))
        kind = "labels" if labels else "residual" if loss.of_residual is not None else "values"
        mirror = labels and g.parity == -1 and loss.symmetric
        # a sample's first normal is nu/sqrt(rho); without a spike, features of the second kind do not exist
        here = {sample.psi: m/sqrt(rho), sample.q1: q, sample.rho: rho, sample.gamma: S.Zero, sample.B: S.Zero}
        names, observables = sample.without_spike(sample.Structure(g, g, loss, kind, mirror=mirror), here)
    kept = [n for n in (sample.S_, sample.tau, sample.J_s, sample.J_2, sample.J_z) if n in names and loss != HALF_SQUARE]
    return System({
        Vhat: alpha*sample.J_s,
        qhat: alpha*sample.J_2,
        mhat: alpha*sample.J_z/sqrt(rho),
        V: Sum(share[k]*omega[k]/seen, k),
        q: Sum(power*omega[k], k),
        m: mhat*Sum(share[k]*signal[k]/seen, k),
    }, where={**names, norm: Sum(power, k)}, observables={
        **observables, "train_objective": observables["train_error"] + lamda*norm/(2*alpha)},
        parameters=[alpha, lamda, Delta, rho, omega, signal, share], positive=[Vhat, qhat, V, q], kept=kept,
        source="loureiro2021", name=f"covariate({loss}, {drawn or g.name})")


def _matrix(name: str, value: Any) -> np.ndarray:
    try:
        found = np.asarray(value, dtype=float)
    except NO_NUMBER:
        raise BadInput(f"covariate: the {name} are not an array of numbers") from None
    if found.ndim != 2 or len(found) < 2 or not np.isfinite(found).all():
        raise BadInput(f"covariate: the {name} are finite numbers, a row for each of several samples, not of shape {found.shape}")
    return found


def _vector(name: str, value: Any, size: int) -> np.ndarray:
    found = np.asarray(value, dtype=float)
    if found.shape != (size,) or not np.isfinite(found).all():
        raise BadInput(f"covariate: {size} finite {name} are needed, one for each sample, not {found.shape}")
    return found


def covariate(loss: Formula = "square", link: Formula | None = None, *, features: np.ndarray | None = None,
              teacher: np.ndarray | None = None, labels: np.ndarray | str | None = None) -> Covariate:
    r"""Ridge-penalised learning on Gaussian features: a student whose features are not the teacher's.

    Vhat = alpha E[-d s/d omega], qhat = alpha E[s^2], mhat = alpha E[d P/d nu s], s = (f* - omega)/V, f* the proximal operator;
    V = tr Omega R/p, q = tr (mhat^2 tau tau^T + qhat Omega) Omega R^2/p, m = mhat <tau, R tau>/p, R = (lam + Vhat Omega)^-1,
    tau = sqrt(p/k) Phi^T theta [loureiro2021]. Theorem there, for Gaussian features and a convex loss.

    Parameters
    ----------
    loss : "square" ((y - f)^2/2), "logistic", "hinge", "huber:1", or a convex expression in y and f
    link : "linear" (the default); "sign"; "logit", "probit": P(y = 1) = 1/(1 + exp(-nu)) or Phi(nu); or g in z, which makes
        y = g(nu) + sqrt(Delta) Z. Labels of +-1 under a loss that is not one of y - f are
        g(nu + sqrt(Delta) Z), as for `random_features`; with "logit" and "probit" the noise is added to nu, too

    Returns
    -------
    Covariate : `.solve(alpha=n/p, lam=, Delta=0, Omega=, Psi=, Phi=, theta=)` -> V, q, m, Vhat, qhat, mhat, test_error (clean, or
    of classification), train_error (of half squares), train_objective; `.curve(alpha=[...], ...)`. Matrices (p, p), (k, k), (k, p)
    and a vector (k,), or their diagonals in a common basis (k = p), with `share=` of each entry;
    `.from_features(X_teacher, X_student)` measures them.

    features, teacher, labels : samples of the student's and (default: the same) the teacher's features, a row each, and labels that
        give theta and, by what is left of them, the default of Delta: short for `.from_features`. A word as `labels` is the `link`

    Raises
    ------
    BadInput : matrices that are not a joint covariance along theta, shapes that do not fit, a loss that needs other labels.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: loureiro2021.

    Examples
    --------
    >>> import numpy as np
    >>> k = np.arange(1, 101.0)
    >>> at = {"Omega": k**-1.5, "Psi": k**-1.5, "Phi": k**-1.5, "theta": np.full(100, 3.0)}
    >>> round(covariate("square").solve(alpha=1, lam=0.01, Delta=0.1, **at)["test_error"], 8)
    0.03543531
    """
    if isinstance(labels, str):
        link, labels = word_of_link("covariate", labels, link), None
    link = "linear" if link is None else link
    words = {"linear": "z", "sign": "sign"}
    drawn = link.strip() if isinstance(link, str) and link.strip() in ("logit", "probit") else ""
    g = mean_label(drawn) if drawn else activation(words.get(link, link) if isinstance(link, str) else link)
    require_numbers("covariate", "link", g)
    require_square_integrable("covariate", "link", g)
    found = HALF_SQUARE if isinstance(loss, str) and loss.strip() == "square" else pointwise(loss)
    made = Covariate(found, g, drawn)
    found.require_labels("covariate", g, made.binary)
    if features is None:
        if teacher is not None or labels is not None:
            raise BadInput("covariate: a teacher's features and labels belong to features=, those of the student")
        return made
    return made.from_features(features if teacher is None else teacher, features, labels=labels)
