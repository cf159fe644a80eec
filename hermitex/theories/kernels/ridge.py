r"""bias + variance of `ridge_equivalent` at the spectrum of a kernel in d dimensions: kernel ridge regression, real data.

The eigenvalues of an inner-product kernel go by degree: N_l ~ d^l/l! of them, each ~ l! b_l/d^l, so that n = d^kappa samples learn
the degrees below kappa; between integer kappa the risk is the deterministic equivalent of [defilippis2024] (p = oo: [cui2021]).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hermitex.errors import BadInput
from hermitex.hints import Axes, Formula
from hermitex.show.columns import ridge
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.systems.system import System
from hermitex.theories.kernels.dual import DualKernel, dual_kernel
from hermitex.theories.kernels.harmonics import dimensions
from hermitex.theories.kernels.inner import MOST, InnerKernel, require_whole, t
from hermitex.theories.kernels.lengths import CLOSE, Lengths, lengths
from hermitex.theories.kernels.product import inner_product_kernel
from hermitex.theories.pointwise_parts import in_parts
from hermitex.theories.ridge_equivalent import RidgeEquivalent, ridge_equivalent
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.theory import Theory, numbers_latex

_STEPS = (12, 24, 48, 96, MOST)  # degrees with eigenvalues of their own: twice as many until the rest acts as lam does
_DERIVED = "derived, an effective ridge for each length |x| of the data; no theorem"
_LENGTHS = r"""\begin{align}
\tau(r) &= \lambda + \sum_k N_k A_k(r, r), \qquad A_k = (K_k^{-1} + D)^{-1}, \qquad D(r) = n P(r)/\tau(r) \\
e(r) &= \sum_k \left[(1 + K_k D)^{-1} g_k\right](r)^2 + \sum_s \frac{n P(s)}{\tau(s)^2} \sum_k N_k A_k(r, s)^2 (e(s) + \sigma^2) \\
\text{test error} &= \sum_r P(r)\, e(r), \qquad
\text{train error} = \sum_r P(r) \frac{\lambda^2}{\tau(r)^2} (e(r) + \sigma^2)
\end{align}"""
KINDS = ("features", "ntk", "product")


@dataclass(frozen=True, repr=False)
class KernelRidge(Theory):
    """Ridge regression with a kernel of inner products, on the sphere or on Gaussian data, in a given dimension."""

    kernel: InnerKernel
    g: Activation
    data: str = "sphere"

    name: ClassVar[str] = "kernel-ridge"
    axis: ClassVar[str] = "n"

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        """The papers: those of the deterministic equivalent, and the kernel's."""
        return (*ridge_equivalent().sources, *self.kernel.sources)

    @property
    def remark(self) -> str:
        """Where the equivalent neglects that lengths of Gaussian data differ; "" on the sphere."""
        return "" if self.data == "sphere" else (
            f"{self.name}: on Gaussian data K(x, x) varies between samples, which the equivalent takes in; with p features, "
            "or where lam = 0 and every mode is fitted, it does not, and is right up to terms of order 1/d")

    @property
    def system(self) -> System:
        """That of `ridge_equivalent`."""
        return ridge_equivalent().system

    order_parameters, errors = RidgeEquivalent.order_parameters, RidgeEquivalent.errors

    def letters(self) -> dict[str, Any]:
        """n, dimension, lam (not normalised); noise = 0; p = inf, the number of random features."""
        return {"n": self.REQUIRED, "dimension": self.REQUIRED, "lam": self.REQUIRED, "noise": 0.0, "p": np.inf}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked, with the spectrum where the dimension is one number."""
        found = self.checked(numbers, n="> 0", dimension="> 0", lam=">= 0", noise=">= 0", p="> 0 inf")
        if np.any(np.isfinite(found["p"])) and not (isinstance(self.kernel, DualKernel) and not self.kernel.trained):
            raise BadInput(f"{self.name}: {self.kernel} has no random features of one layer; leave p out")
        return found if found["dimension"].ndim else {**found, **self._at(float(found["dimension"]), found)[0]}

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """The deterministic equivalent, dimension by dimension."""
        def at(d: float) -> Any:
            def alike(here: Mapping[str, np.ndarray], **inner: Any) -> Solution:
                found = ridge_equivalent().run({k: v for k, v in here.items() if k != "dimension"}, **inner)
                if self.data == "sphere":
                    return found
                spread = self.kernel.on_gaussian_data(int(d))
                note = f"at d = {d:g} K(x, x) varies by {spread:.2g} of its mean between samples, which the equivalent neglects"
                return found.extended({}, notes=(*found.notes, note))

            def run(here: Mapping[str, np.ndarray], **inner: Any) -> Solution:
                spectrum, degrees = self._at(d, here)
                here = {**here, **spectrum}
                modes = np.inf if spectrum["tail"] > 0 else float(spectrum["multiplicity"][spectrum["eigenvalues"] > 0].sum())
                own = np.isinf(here["p"]) & ((here["lam"] > 0) | (here["n"] < modes)) & (self.data != "sphere")
                arrays = {k: here[k] for k in ridge_equivalent().arrays}
                points = {k: v for k, v in here.items() if k not in arrays}

                def apart(there: Mapping[str, np.ndarray], **_: Any) -> Solution:
                    return _by_lengths(lengths(self.kernel, self.g, int(d), degrees), there)

                if not own.any():
                    return alike(here, **inner)
                return in_parts([(own, apart), (~own, lambda there, **more: alike({**there, **arrays}, **more))], points, inner)

            return run

        d = numbers["dimension"]
        if d.ndim == 0:
            return at(float(d))(numbers, **options)  # type: ignore[no-any-return]
        return in_parts([(d == v, at(float(v))) for v in np.unique(d)], numbers, options)

    def _at(self, d: float, numbers: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
        """The spectrum with as many degrees as so many samples need, and the highest of them."""
        n, lam = float(np.max(numbers["n"])), float(np.min(numbers["lam"]))
        form = self.kernel.formula
        ends = int(form.as_poly(t).degree()) if form is not None and form.is_polynomial(t) else None
        enough = 10  # functions for each sample: what comes after them is learnt by nobody, and acts as lam does
        below = 1e-3  # of lam + tail: eigenvalues times n that are as small as that are not learnt either
        for degrees in _STEPS:
            found = _spectrum(self.kernel, self.g, self.data, d, degrees)
            own = found["eigenvalues"] > 0
            if (ends is not None and ends <= degrees) or found["multiplicity"][own].sum() >= enough*n:
                break
            least = found["eigenvalues"][found["degree"] == found["degree"].max()].max()
            if n*least <= below*(lam + float(found["tail"])):
                break
        else:
            raise BadInput(f"{self.name}: n = {n:g} samples in d = {d:g} dimensions learn degrees above {MOST} of {self.kernel}; "
                           "take fewer samples, more dimensions or a larger lam")
        return {k: v for k, v in found.items() if k != "degree"}, int(found["degree"].max())

    def spectrum(self, dimension: float) -> dict[str, np.ndarray]:
        """Eigenvalues, multiplicities, the target's coefficients and the tail, as `ridge_equivalent` takes them.

        >>> found = kernel_ridge("relu", "sign").spectrum(50)
        >>> (found["eigenvalues"]*found["multiplicity"])[:3].round(4)
        array([0.1608, 0.25  , 0.0787])
        """
        dimension = require_whole("the dimension", dimension, 3)
        return {k: v for k, v in _spectrum(self.kernel, self.g, self.data, dimension, _STEPS[0]).items() if k != "degree"}

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Kernel, target and data, then the numbers that stayed fixed."""
        own = {k: v for k, v in fixed.items() if k in self.letters()}
        return {"kernel": str(self.kernel), "target": self.g.name, "data": self.data, **own}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Kernel, data and the fixed numbers."""
        return ", ".join((str(self.kernel), self.data, *numbers_latex(numbers, n="n", dimension="d", p="p", lam=r"\lambda",
                                                                noise=r"\sigma^2")))

    def plot(self, ax: Axes | None = None, *, dimension: int = 30, lam: float = 1e-3, noise: float = 0.1) -> Axes:
        """The test error over n, with the sizes of the spaces of degree 1, 2, 3 as marks."""
        line = np.geomspace(2, 1.2*dimensions(3, dimension), 50)
        ax = self.curve(n=line, dimension=dimension, lam=lam, noise=noise).plot(ax)
        ax.set_xscale("log")
        for degree in (1, 2, 3):
            ax.axvline(dimensions(degree, dimension), color="0.7", linestyle=":", linewidth=1, zorder=0)
        return ax

    def latex(self) -> str:
        """The kernel, and the equations of the deterministic equivalent, on Gaussian data those of each length."""
        return f"\\[{self.kernel.latex()}\\]\n{_LENGTHS if self.data == 'gaussian' else self.system.latex()}"


class LengthsPoint(NamedTuple):
    """What such a Solution keeps: the kernel's parts, and the numbers n, lam and noise of each point."""

    parts: Lengths
    n: np.ndarray
    lam: np.ndarray
    noise: np.ndarray

    @property
    def system(self) -> System:
        """The equations with these letters."""
        return ridge_equivalent().system

    def points(self) -> Iterator[tuple[float, float, float]]:
        """One after another."""
        for one in zip(*(v.ravel() for v in self[1:]), strict=True):
            yield tuple(map(float, one))  # type: ignore[misc]

    def derivative(self, solution: Solution, name: str) -> dict[str, Any]:
        """By n, lam or noise."""
        by = "lam" if name == ridge("lam", (name,)) else name
        return self.shaped([self.parts.slopes(*one, by) for one in self.points()])

    def shaped(self, rows: list[dict[str, float]]) -> dict[str, Any]:
        """Numbers of each point as arrays over the points, or as numbers."""
        found = {name: np.array([row[name] for row in rows]).reshape(self.n.shape) for name in rows[0]}
        return found if self.n.shape else {name: v.item() for name, v in found.items()}


def _by_lengths(parts: Lengths, at: Mapping[str, np.ndarray]) -> Solution:
    """Point by point."""
    shape = np.broadcast_shapes(*(v.shape for v in at.values()))
    points = LengthsPoint(parts, *(np.broadcast_to(at[k], shape) for k in ("n", "lam", "noise")))
    with np.errstate(all="ignore"):
        found = [parts.errors(*one) for one in points.points()]
    how = points.shaped([{"residual": r, "steps": k, "fine": r <= CLOSE} for _, r, k in found])
    reason = np.where(how["fine"], "", "the effective ridge of each length was not found").astype(object)
    return Solution(points.shaped([one for one, *_ in found]), how["residual"], how["fine"], iterations=how["steps"],
                    method="newton", reason=reason if shape else reason.item(), unknowns=("nu_2",), notes=(_DERIVED,), model=points)


@lru_cache(maxsize=64)
def _spectrum(kernel: InnerKernel, g: Activation, data: str, d: float, degrees: int) -> dict[str, np.ndarray]:
    return kernel.spectrum(d, g, data=data, degrees=degrees)  # type: ignore[arg-type]


def kernel_ridge(sigma: Formula, g: Formula, *, kernel: str | None = None, data: str = "sphere") -> KernelRidge:
    r"""What ridge regression with a kernel learns of g(<theta, x>) from n samples in d dimensions, between the plateaus, too.

    Minimise sum_i (y_i - f(x_i))^2 + lam |f|^2_K, y = g(<theta, x>) + sqrt(noise) Z, |theta| = 1; with p, on p random features.

    Parameters
    ----------
    sigma : activation; a formula h in t = <x, x'>/d for kernel="product"; or what `dual_kernel`, `inner_product_kernel` give
    g : target in z, square integrable
    kernel : "features" (default), E_w sigma sigma; "ntk", the tangent kernel of a two-layer network; "product", h(<x, x'>/d);
        nothing if the kernel is itself one
    data : "sphere", |x|^2 = d, or "gaussian", N(0, I_d): there K(x, x) varies from sample to sample, so each length |x| has a ridge
        tau(|x|) of its own (`theories.kernels.lengths`), and nu_1 = nu_2 = E tau/n. With p, or where lam = 0 and every mode is
        fitted, one ridge is taken for all: right up to terms of order 1/d, which the training error shows first

    Returns
    -------
    KernelRidge : `.solve(n=, dimension=, lam=, noise=0, p=inf)` -> bias, variance, test_error, train_error, nu_1, nu_2;
    `.curve(n=[...], ...)`, `.spectrum(d)`, `.plot()`.

    Raises
    ------
    BadInput : a dimension that is not a whole number of 3 or more, p with a kernel without random features, an unknown kind.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: defilippis2024; cui2021; cho2009, jacot2018.

    Examples
    --------
    >>> found = kernel_ridge("relu", "z", kernel="ntk").solve(n=[25, 100, 400], dimension=50, lam=0.01)
    >>> found["test_error"].round(4)
    array([0.6647, 0.1516, 0.0079])
    """
    if isinstance(sigma, InnerKernel) and kernel is not None:
        raise BadInput(f"kernel-ridge: {sigma} is a kernel of its own; leave kernel={kernel!r} out")
    kernel = "features" if kernel is None else kernel
    if not isinstance(kernel, str) or kernel not in KINDS:
        raise BadInput(f"kernel-ridge: kernel is {', '.join(KINDS)}, not {kernel!r}")
    if not isinstance(data, str) or data not in ("sphere", "gaussian"):
        raise BadInput(f"kernel-ridge: data is sphere or gaussian, not {data!r}")
    make = inner_product_kernel if kernel == "product" else lambda s: dual_kernel(s, kernel)
    made = sigma if isinstance(sigma, InnerKernel) else make(sigma)
    target = activation(g)
    require_numbers("kernel-ridge", "target", target)
    require_square_integrable("kernel-ridge", "target", target)
    return _made(made, target, data)


_made = lru_cache(KernelRidge)  # one object for one structure
