r"""K(x, x') = sum_k b_k(r, r') t^k, t = cos(x, x'): the kernel of infinitely many neurons, from the Hermite series of sigma.

E_w sigma(<w, x>/sqrt(d)) sigma(<w, x'>/sqrt(d)), w ~ N(0, I_d), has b_k = a_k(r) a_k(r') with a_k(r) = E[sigma(r z/sqrt(d)) h_k(z)]
(Mehler); the tangent kernel of a two-layer network adds r r' t E[sigma' sigma']/d, which is k times that (Stein). A function of
the inner product, h(<x, x'>/d) = sum_k b_k (<x, x'>/d)^k, has a_k(r)^2 = b_k (r^2/d)^k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from sympy import DiracDelta, Expr, Symbol, asin, atan, simplify, sqrt

from hermitex.errors import BadInput, HermitexError
from hermitex.hints import Formula
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.series.expansion import expand
from hermitex.symbolic.tails import as_erf, tails
from hermitex.symbols import z, z1, z2
from hermitex.theories.kernels import harmonics
from hermitex.theories.kernels.half_angles import SINE, THETA, P, Q, in_half_angles, t
from hermitex.theories.kernels.inner import EXACT, ORDER, InnerKernel, interpolate_radii, numeric, require_whole
from hermitex.theories.spike import require_numbers, require_square_integrable

Array = np.ndarray
_U, _V = Symbol("r_1", positive=True), Symbol("r_2", positive=True)


@dataclass(frozen=True, repr=False)
class DualKernel(InnerKernel):
    """The kernel of an activation: of random features, or (trained) the tangent kernel of both layers."""

    sigma: Activation
    trained: bool = False

    sources: ClassVar[tuple[str, ...]] = ("cho2009", "jacot2018")

    def __str__(self) -> str:
        return f"{'ntk' if self.trained else 'features'}({self.sigma.name})"

    def _summary(self) -> str:
        return f"{self.sigma.name}, {'tangent kernel' if self.trained else 'random features'}"

    @cached_property
    def _raw(self) -> Expr | None:
        """The closed form in t and s = sqrt(1 - t^2); that of the slopes is added for the tangent kernel."""
        try:
            found = _mean_product(self.sigma)
            return found + t*_U*_V*_mean_product(self.sigma.weak_derivative) if self.trained else found
        except HermitexError:
            return None

    @cached_property
    def between(self) -> Expr | None:
        """E[sigma(r_1 u) sigma(r_2 v)], corr(u, v) = t, in closed form, r = |x|/sqrt(d); None where no rule applies."""
        if self._raw is None:
            return None
        return tails(_short(_short(self._raw.subs(SINE, sqrt(1 - t**2))).replace(
            lambda e: isinstance(e, atan), lambda e: asin(t) if e.args[0] == t/sqrt(1 - t**2) else e)))

    @cached_property
    def _function(self) -> Callable[..., Array]:
        """The closed form as a function of arrays t, p, q, theta, r_1, r_2."""
        return lambdify((t, P, Q, THETA, _U, _V), tails(in_half_angles(self._raw)), ["scipy", "numpy"])

    @cached_property
    def formula(self) -> Expr | None:
        """The kernel on the sphere |x|^2 = d."""
        return None if self.between is None else _short(self.between.subs({_U: 1, _V: 1}))

    def weight(self, degree: int) -> Expr:
        """b_k = E[sigma h_k]^2, (k + 1) times that for the tangent kernel.

        >>> dual_kernel("relu").weight(2), dual_kernel("relu", "ntk").weight(2)
        (1/(4*pi), 3/(4*pi))
        """
        if require_whole("degree", degree) > EXACT:
            raise BadInput(f"exact coefficients are available up to degree {EXACT}, not {degree}")
        found = expand(self.sigma(z), order=max(degree, 8), basis="orthonormal").coefficients[degree]**2
        return (degree + 1)*found if self.trained else found

    def require_moment(self, d: int) -> None:
        """sigma(r z) square integrable at every r: |x| has no bound."""
        far = 10**6  # a radius beyond all data
        if activation(self.sigma(far*z)).in_L2 is False:
            raise BadInput(f"{self}: K(x, x) = E sigma(r z)^2 is infinite for large r = |x|/sqrt(d), which Gaussian data reach; "
                           "take data='sphere'")

    @cached_property
    def _compiled(self) -> tuple[Callable[[Array], Array], Array]:
        return numeric(self.sigma)

    def coefficients(self, radius: Array, order: int = ORDER) -> Array:
        """a_k(r) = E[sigma(r z) h_k(z)]; sqrt(k + 1) times that for the tangent kernel."""
        f, kinks = self._compiled
        rows = []
        for r in radius:
            nodes, weights = harmonics.normal_rule(kinks/r)
            rows.append(harmonics.hermite(order, nodes) @ (weights*f(r*nodes)))
        return np.array(rows)*(np.sqrt(np.arange(order + 1) + 1) if self.trained else 1)

    def factors(self, degrees: int, radius: Array, d: int) -> list[Array]:
        """E_w of Funk and Hecke's E_s[sigma(|w| r s) Q_l(s)]; t Q_l is of the degrees l + 1 and l - 1."""
        norms, chance = self._norms(radius, d)
        plain = _by_degree(numeric(self.sigma), degrees, radius, d, norms)*np.sqrt(chance)
        if not self.trained:
            return list(plain)
        slope = _by_degree(numeric(self.sigma.weak_derivative), degrees + 1, radius, d, norms)*np.sqrt(chance)*radius[:, None]
        found = []
        for k in range(degrees + 1):
            up, down = np.sqrt(np.array([k + d - 2, k])/(2*k + d - 2))
            found.append(np.hstack([plain[k], up*slope[k + 1], *([down*slope[k - 1]] if k else [])]))
        return found

    def _norms(self, radius: Array, d: int) -> tuple[Array, Array]:
        """Nodes and weights of |w|/sqrt(d); E over |w| of E_s sigma(|w| r s)^2 has to be E sigma(r z)^2 with them."""
        parts = [numeric(f) for f in ((self.sigma, self.sigma.weak_derivative) if self.trained else (self.sigma,))]
        ends = np.concatenate([kinks for _, kinks in parts])
        norms, chance = harmonics.radii("gaussian", d)
        if radius.size == 1 and np.any(ends):  # beyond |w| r = |kink| the average over directions is another function
            norms, chance = harmonics.norms_rule(ends/radius/np.sqrt(d), d)
        gap = np.abs(radius**2 - 1)
        held = radius[gap < max(6*np.sqrt(2/d), 1.001*gap.min() + 1e-12)]  # beyond six deviations the data have next to no weight
        agree = 1e-5  # of E sigma^2: quadratures in different coordinates
        for value, kinks in parts:
            for r in (held.min(), held.max()):
                seen = 0.0
                for norm, weight in zip(norms, chance, strict=True):
                    scale = float(r*norm*np.sqrt(d))
                    nodes, weights = harmonics.sphere_rule(kinks/scale, d)
                    seen += weight*float(weights @ value(scale*nodes)**2)
                nodes, weights = harmonics.normal_rule(kinks/r)
                right = float(weights @ value(r*nodes)**2)
                if not abs(seen - right) <= agree*right:
                    raise BadInput(f"{self}: its average over the lengths of the weights in d = {d} dimensions is out of reach of "
                                   "the quadrature (the activation grows fast, or is 0 but far from 0); take more dimensions")
        return norms, chance

    def diagonal(self, radius: Array) -> Array:
        """E sigma(r z)^2; for the tangent kernel + r^2 E sigma'(r z)^2."""
        parts = [(0, numeric(self.sigma))]
        if self.trained:
            parts.append((2, numeric(self.sigma.weak_derivative)))

        def one(r: float) -> float:
            found = 0.0
            for power, (f, kinks) in parts:
                nodes, weights = harmonics.normal_rule(kinks/r)
                found += r**power*float(weights @ f(r*nodes)**2)
            return found

        if np.ptp(radius) < 1e-12:
            return np.full(radius.size, one(float(radius[0])))
        return interpolate_radii(lambda r: np.array([one(float(v)) for v in r]), radius)

    def _between(self, p: Array, q: Array, one: Array, two: Array) -> Array:
        """The closed form where there is one, in half-angles; else the series that the spectrum is made of."""
        if not (np.all(one > 0) and np.all(two > 0)):
            raise BadInput(f"{self}: a row of zeros has no direction; leave it out")
        if self._raw is None:
            return super()._between(p, q, one, two)
        least = 1e-150  # replaces 0 in quotients: its square is a float, and 1 - t differs by 1e-300
        theta = 2*np.arctan2(q, p)
        p, q = np.maximum(p, least), np.maximum(q, least)
        with np.errstate(all="ignore"):
            found = self._function((p - q)*(p + q), p, q, theta, one[:, None], two)
        return np.array(np.broadcast_to(found, p.shape))

    def features(self, x: Array, p: int, rng: np.random.Generator) -> Array:
        """sigma(X W/sqrt(d))/sqrt(p), W of standard normals."""
        if self.trained:
            raise BadInput("the tangent kernel has no random features of one layer here; leave p out, or take kind='features'")
        f, _ = self._compiled
        return f(x @ rng.standard_normal((x.shape[1], p))/np.sqrt(x.shape[1]))/np.sqrt(p)


def _mean_product(f: Activation) -> Expr:
    """E[f(r_1 u) f(r_2 v)], corr(u, v) = t."""
    return as_erf(closed_form(E(f(_U*z1)*f(_V*(t*z1 + SINE*z2)), z1, z2)))  # half-angles are read from this form


def _short(e: Expr) -> Expr:
    longest = 80  # operations of a coefficient that is simplified; chosen by trial
    return simplify(e) if e.count_ops() < longest else e


def _by_degree(f: tuple[Callable[[Array], Array], Array], degrees: int, radius: Array, d: int, norms: Array) -> Array:
    """E[f(r |w| s) Q_l(s)] by degree, radius and norm |w|/sqrt(d)."""
    value, kinks = f
    found = np.empty((degrees + 1, radius.size, norms.size))
    for i, r in enumerate(radius):
        for j, norm in enumerate(norms):
            scale = float(r*norm*np.sqrt(d))
            nodes, weights = harmonics.sphere_rule(kinks/scale, d)
            found[:, i, j] = harmonics.gegenbauer(max(degrees, 1), d, nodes)[:degrees + 1] @ (weights*value(scale*nodes))
    return found


def dual_kernel(sigma: Formula, kind: str = "features") -> DualKernel:
    r"""The kernel of infinitely many neurons with random weights w ~ N(0, I_d), as a formula and as a spectrum.

    "features": E_w sigma(<w, x>/sqrt(d)) sigma(<w, x'>/sqrt(d)) (for relu the arc-cosine kernel of [cho2009]); "ntk": the tangent
    kernel of a two-layer network, that + <x, x'>/d E_w sigma' sigma' [jacot2018], readout of variance 1.

    Parameters
    ----------
    sigma : activation: a name, text or expression in z; square integrable, and its derivative, too, for "ntk"

    Returns
    -------
    DualKernel : `.formula` (of t = <x, x'>/d on the sphere |x|^2 = d), `.weight(k)` (exact coefficient of t^k),
    `.spectrum(d, g, data=)` (numbers for `ridge_equivalent`), `.gram(X)`, `.plot()`.

    Raises
    ------
    BadInput : an unknown kind, a free parameter. Divergent : not square integrable.

    Guarantee
    ---------
    The formula is exact, for infinite width; numbers keep double precision. See docs/promise.md.

    References: cho2009, jacot2018.

    Examples
    --------
    >>> dual_kernel("erf").formula
    2*atan(2*t/sqrt(9 - 4*t**2))/pi
    >>> dual_kernel("relu", "ntk").weight(1)
    1/2
    """
    if not isinstance(kind, str) or kind not in ("features", "ntk"):
        raise BadInput(f"kernel: its kind is features or ntk, not {kind!r}")
    made = activation(sigma)
    require_numbers("kernel", "activation", made)
    require_square_integrable("kernel", "activation", made)
    _require_averages(made)
    if kind == "ntk":
        if made.weak_derivative.expr.has(DiracDelta):
            raise BadInput(f"kernel: {made.name} jumps, so that its tangent kernel is infinite; take kind='features'")
        require_square_integrable("kernel", "derivative of the activation", made.weak_derivative)
        _require_averages(made.weak_derivative)
    return _dual(made, kind == "ntk")


def _require_averages(f: Activation) -> None:
    """Refuse what panels of Gauss nodes do not average: finer panels at the kinks may not change E f^2."""
    value, kinks = numeric(f)
    finer = np.concatenate([kinks, *(kinks + side*2.0**-j for side in (-1, 1) for j in range(3, 12, 2))])
    rules = [harmonics.normal_rule(ends) for ends in (kinks, finer)]
    with np.errstate(all="ignore"):
        one, two = (float(weights @ value(nodes)**2) for nodes, weights in rules)
    if not abs(one - two) <= 1e-9*abs(two):
        raise BadInput(f"kernel: {f.name} has a singularity that its averages do not reach by quadrature")


_dual = lru_cache(DualKernel)  # one object for one kernel, so that its formula is derived once
