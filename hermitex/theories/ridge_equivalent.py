r"""df_1 = n - lam/nu_1 = p (1 - nu_1/nu_2),   df_1 = sum_k eta_k/(eta_k + nu_2): ridge regression on a kernel with any spectrum.

n samples of y = sum_k beta_k psi_k(x) + sqrt(noise) Z, psi_k orthonormal, eta_k the kernel's eigenvalues; minimise sum (y - f)^2 +
lam |a|^2 over f = sum_j a_j phi(x, w_j)/sqrt(p), p random features whose kernel E_w[phi phi] has that spectrum; p = oo is kernel
ridge regression itself. bias + variance is the deterministic equivalent of the test error, at any n and p [defilippis2024].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sympy import Eq, Idx, IndexedBase, Piecewise, Sum, Symbol, sqrt, symbols

from hermitex.errors import BadInput
from hermitex.hints import Axes
from hermitex.kernels.compile import Kernel, compile
from hermitex.show.plots import curves
from hermitex.solvers.solution import Solution
from hermitex.symbols import lamda
from hermitex.systems.system import System
from hermitex.theories.pointwise_parts import in_parts
from hermitex.theories.theory import Theory, numbers_latex

n, p, nu_2 = symbols("n p nu_2", positive=True)
noise, tail = symbols("noise tail", nonnegative=True)
df_1, df_2, D, r, s, chi, Upsilon = symbols("df_1 df_2 D r s chi Upsilon", real=True)
_STATUS = "theorem for test_error at finite p (defilippis2024); derived otherwise"
_DIVERGES = "lam = 0 at n = p, or at as many samples as modes: the test error diverges; take lam > 0"


@dataclass(frozen=True, repr=False)
class RidgeEquivalent(Theory):
    """Ridge regression with a kernel, or with p random features of it: `.solve(n=, p=, lam=, ...)`, `.curve(n=[...])`."""

    name: ClassVar[str] = "ridge"
    axis: ClassVar[str] = "n"
    arrays: ClassVar[tuple[str, ...]] = ("eigenvalues", "coefficients", "multiplicity")
    sources: ClassVar[tuple[str, ...]] = ("defilippis2024", "cui2021")

    @cached_property
    def system(self) -> System:
        """One root nu_2, and what follows from it; s = nu_1/nu_2 = 1 - df_1/p and r = lam/(n nu_1) = 1 - df_1/n."""
        eta, beta, g = (IndexedBase(name) for name in self.arrays)
        k = Idx("k", Symbol("N", integer=True))
        seen = eta[k] + nu_2
        # Of the two roots of (n - df_1)(1 - df_1/p) = lam/nu_2 the one below n and p; r s = lam/(n nu_2) gives the small one of
        # r and s without cancellation.
        product, gap = lamda/(n*nu_2), 1/n - 1/p
        first, second = n*(D + gap)/2, p*(D - gap)/2
        where = {
            df_1: Sum(g[k]*eta[k]/seen, k) + tail/nu_2,
            df_2: Sum(g[k]*eta[k]**2/seen**2, k),
            D: sqrt(gap**2 + 4*product/(n*p)),
            s: Piecewise((first, n <= p), (product/second, True)),
            r: Piecewise((product/first, n <= p), (second, True)),
            chi: (Sum(g[k]*eta[k]/seen**2, k) + tail/nu_2**2)/(p - df_2),
            Upsilon: 1 - r - s + r*s + s**2*df_2/(n*(1 - df_2/p)),
        }
        missed = (nu_2*beta[k]/seen)**2
        unlearnt = Sum(missed, k) + chi*Sum(eta[k]*missed, k)
        left = r + s - r*s - s**2*df_2/(n*(1 - df_2/p))  # 1 - Upsilon
        bias, variance = unlearnt/left, noise*Upsilon/left
        return System({nu_2: Eq(df_1, 2*(1 - product)/(1/n + 1/p + D))}, where=where, observables={
            "nu_1": s*nu_2, "bias": bias, "variance": variance, "test_error": bias + variance,
            "test_error_noisy": bias + variance + noise, "train_error": r**2*(bias + variance + noise),
        }, parameters=[n, p, lamda, noise, tail, eta, beta, g], source="defilippis2024", name="ridge_equivalent")

    order_parameters = ("nu_1", "nu_2")  # below nu_2 an eigenvalue is not learnt

    # test_error = bias + variance against the clean target, with the noise, and the mean square on the samples
    errors = ("test_error", "train_error", "bias", "variance", "test_error_noisy")

    def letters(self) -> dict[str, Any]:
        """n, p = inf, lam, noise = 0; the arrays eigenvalues, coefficients and multiplicity (default 1); tail = 0."""
        return {"n": self.REQUIRED, "p": np.inf, "lam": self.REQUIRED, "noise": 0.0, "tail": 0.0, "eigenvalues": self.REQUIRED,
                "coefficients": self.REQUIRED, "multiplicity": None}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        found = self.checked(numbers, n="> 0 inf", p="> 0 inf", lam=">= 0", noise=">= 0", tail=">= 0", eigenvalues=">= 0",
                             coefficients="")
        eta = found["eigenvalues"]
        if eta.ndim != 1:
            raise BadInput(f"{self.name}: the eigenvalues are one list of numbers, not an array of shape {eta.shape}")
        found.setdefault("multiplicity", np.broadcast_to(1.0, eta.shape))
        self.checked(found, multiplicity="> 0")
        for name in self.arrays[1:]:
            if found[name].shape != eta.shape:
                raise BadInput(f"{self.name}: there are {eta.size} eigenvalues, and {name} of shape {found[name].shape}: one for "
                               "each is needed")
        if not eta.any() and np.any(found["tail"] == 0):
            raise BadInput(f"{self.name}: every eigenvalue is 0, and so is the tail: there is nothing to learn with")
        return found

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """The root; where lam = 0, or n = oo, and there are modes for fewer than n and p, the limit of least squares."""
        arrays = {name: numbers[name] for name in self.arrays}
        points = {name: v for name, v in numbers.items() if name not in arrays}
        modes = float(arrays["multiplicity"][arrays["eigenvalues"] > 0].sum())
        every = np.where(points["tail"] > 0, np.inf, modes)
        size, width, plain = points["n"], points["p"], points["lam"] == 0
        peak = plain & np.isfinite(size) & (((size == width) & (size <= every)) | ((size == every) & (width >= size)))
        exact = ~peak & (((plain | np.isinf(size)) & (np.minimum(size, width) >= every)) | (np.isinf(size) & np.isinf(width)))

        def rooted(at: Mapping[str, np.ndarray], **inner: Any) -> Solution:
            return self._rooted({**at, **arrays}, **inner)

        def limit(at: Mapping[str, np.ndarray], **inner: Any) -> Solution:
            lost = float((arrays["coefficients"][arrays["eigenvalues"] == 0]**2).sum())
            return _least_squares(at, modes, lost)

        found = in_parts([(~peak & ~exact, rooted), (exact, limit), (peak, _diverging)], points, options)
        found = found.extended({}, notes=tuple(dict.fromkeys((*found.notes, _STATUS))))
        return found.require() if options.get("raise_on_failure") else found

    def _rooted(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        infinite = 1e100  # replaces oo as n and p: 1/n and 1/p are then far below rounding
        at = {**numbers, "n": np.minimum(numbers["n"], infinite), "p": np.minimum(numbers["p"], infinite)}
        given = options.get("start") or {}
        return super().run(at, **{**options, "start": {"nu_2": self._near(at), **given}})

    @cached_property
    def _excess(self) -> Kernel:
        """df_1 - n + lam/nu_1, which falls as nu_2 grows."""
        equation, where = self.system.equations[nu_2], self.system.where
        return compile((equation.lhs - equation.rhs).xreplace({name: where[name] for name in (df_1, D)}))

    def _near(self, at: Mapping[str, np.ndarray]) -> np.ndarray:
        """The root by brackets, with the eigenvalues of a long spectrum in bins: where Newton's method begins."""
        from scipy.optimize.elementwise import bracket_root, find_root  # which no other theory needs

        arrays = dict(zip(("eigenvalues", "multiplicity"), (at["eigenvalues"], at["multiplicity"]), strict=True))
        long = 4096  # eigenvalues of a spectrum whose first root is taken as it is
        if np.count_nonzero(at["eigenvalues"]) > long:
            arrays = _binned(**arrays)
        own = {name: at["lam" if name == "lamda" else name] for name in ("n", "p", "lamda", "tail")}
        shape = np.broadcast_shapes(*(v.shape for v in own.values()))
        points = {name: np.broadcast_to(v, shape).ravel() for name, v in own.items()}
        trace = (arrays["multiplicity"]*arrays["eigenvalues"]).sum() + points["tail"] + points["lamda"]

        def excess(log: np.ndarray, *numbers: np.ndarray) -> np.ndarray:
            return self._excess(nu_2=np.exp(log), **dict(zip(own, numbers, strict=True)), **arrays)

        with np.errstate(all="ignore"):
            at_trace, args = np.log(trace/points["n"]), tuple(points.values())
            bracket = bracket_root(excess, at_trace - 0.5, at_trace + 0.5, args=args, maxiter=60).bracket
            found = find_root(excess, bracket, args=args, tolerances={"xatol": 1e-9})
            near = np.where(found.success, np.exp(found.x), np.nan).reshape(shape)
        return np.where(np.isfinite(near) & (near > 0), near, 1.0)

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Samples, width, ridge, noise and tail, as far as they are fixed."""
        tail = {"tail": r"\mathrm{tail}"} if numbers.get("tail") else {}
        return ", ".join(numbers_latex(numbers, n="n", p="p", lam=r"\lambda", noise=r"\sigma^2", **tail))

    def plot(self, ax: Axes | None = None, *, capacity: float = 2.0, source: float = 0.5, noise: float = 0.1,
             modes: int = 2000) -> Axes:
        """Bias and variance of kernel ridge regression over n under power laws, for two sizes of the ridge."""
        k = np.arange(1, modes + 1.0)
        line = np.geomspace(5, modes/4, 40)
        at: dict[str, Any] = {"eigenvalues": k**-capacity, "coefficients": k**(-capacity*source - 0.5), "noise": noise}
        lines: dict[str, Any] = {}
        for lam in (1e-3, 1e-1):
            found = self.solve(n=line, lam=lam, **at)
            lines |= {f"{name}, $\\lambda = {lam:g}$": found[name].tolist() for name in ("bias", "variance")}
        ax = curves(line.tolist(), lines, ax, xlabel="$n$", ylabel="error")
        ax.set_xscale("log")
        ax.set_yscale("log")
        return ax


def _binned(eigenvalues: np.ndarray, multiplicity: np.ndarray) -> dict[str, np.ndarray]:
    """The spectrum with neighbouring eigenvalues put together: their multiplicities add up."""
    there = eigenvalues > 0
    y, g = np.log(eigenvalues[there]), multiplicity[there]
    bins = 512  # of a longer spectrum the first root is that of its eigenvalues in so many bins
    place = ((y - y.min())*(bins - 1)/max(float(np.ptp(y)), 1e-300)).astype(int)
    many = np.bincount(place, g, bins)
    full = many > 0
    return {"eigenvalues": np.bincount(place, g*eigenvalues[there], bins)[full]/many[full], "multiplicity": many[full]}


def _least_squares(at: Mapping[str, np.ndarray], modes: float, lost: float) -> Solution:
    """nu_1 = nu_2 = 0: every mode is fitted, at Upsilon = modes/n; the target's part without eigenvalue counts as noise."""
    shape = np.broadcast_shapes(*(v.shape for v in at.values()))
    full = {name: np.broadcast_to(v, shape) for name, v in at.items()}
    part = np.where(np.isinf(full["n"]), 0.0, modes/full["n"])
    bias, variance = lost/(1 - part), full["noise"]*part/(1 - part)
    noisy, nothing = bias + variance + full["noise"], np.zeros(shape)
    return _explicit({"nu_2": nothing, "nu_1": nothing, "bias": bias, "variance": variance, "test_error": bias + variance,
                      "test_error_noisy": noisy, "train_error": noisy*(1 - part)**2}, shape)


def _diverging(at: Mapping[str, np.ndarray], **options: Any) -> Solution:
    """No solution, with the reason."""
    shape = np.broadcast_shapes(*(v.shape for v in at.values()))
    names = ("nu_2", "nu_1", "bias", "variance", "test_error", "test_error_noisy", "train_error")
    return _explicit({name: np.full(shape, np.nan) for name in names}, shape, _DIVERGES)


def _explicit(values: dict[str, np.ndarray], shape: tuple[int, ...], why: str = "") -> Solution:
    one = shape == ()
    fine, reason = np.full(shape, not why), np.full(shape, why, dtype=object)
    residual = np.where(fine, 0.0, np.inf)
    return Solution({k: v.item() if one else v for k, v in values.items()}, residual.item() if one else residual,
                    fine.item() if one else fine, iterations=0 if one else np.zeros(shape, dtype=int), method="explicit",
                    reason=reason.item() if one else reason, unknowns=("nu_2",))


_THEORY = RidgeEquivalent()


def ridge_equivalent() -> RidgeEquivalent:
    r"""Ridge regression with a kernel, or with p random features of it, for any spectrum and target.

    Minimise sum_i (y_i - f(x_i))^2 + lam |a|^2 over f = sum_j a_j phi(x, w_j)/sqrt(p), where E_w[phi(x, w) phi(x', w)] =
    sum_k eta_k psi_k(x) psi_k(x') and y = sum_k beta_k psi_k(x) + sqrt(noise) Z, E psi_j psi_k = delta_jk [defilippis2024]:

        df_1 = n - lam/nu_1 = p (1 - nu_1/nu_2),   df_1 = Tr S/(S + nu_2) + tail/nu_2,   df_2 = Tr S^2/(S + nu_2)^2,
        Upsilon = p/n [(1 - nu_1/nu_2)^2 + (nu_1/nu_2)^2 df_2/(p - df_2)],   chi = [Tr S/(S + nu_2)^2 + tail/nu_2^2]/(p - df_2),
        bias = nu_2^2/(1 - Upsilon) <beta, (1 + chi S)/(S + nu_2)^2 beta>,   variance = noise Upsilon/(1 - Upsilon).

    Returns
    -------
    RidgeEquivalent : `.solve(n=, p=inf, lam=, noise=0, eigenvalues=array, coefficients=array, tail=0)` -> nu_1, nu_2, bias,
    variance, test_error = bias + variance (clean), test_error_noisy, train_error (mean square on the samples);
    `.curve(n=[...], ...)`, `.minimise("test_error", over="lam", bounds=(lo, hi), ...)`, `.plot()`. All of n, p, lam, noise, tail
    may be arrays that broadcast. lam is not normalised: lam = n times that of a mean square. lam = 0 is the limit lam -> 0+.

    tail : the sum of infinitely many infinitesimal eigenvalues; what the target has there is given with an eigenvalue 0
    multiplicity : array, of each eigenvalue (default 1); its coefficient is then the norm of the target in that eigenspace

    Raises
    ------
    BadInput : arrays of different lengths, a number out of range.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: defilippis2024; cui2021 (p = oo).

    Examples
    --------
    >>> import numpy as np
    >>> k = np.arange(1, 1001.0)
    >>> found = ridge_equivalent().solve(n=100, lam=0.01, noise=0.1, eigenvalues=k**-2, coefficients=k**-1.5)
    >>> round(found["bias"], 8), round(found["variance"], 8)
    (0.00032776, 0.06285344)
    """
    return _THEORY
