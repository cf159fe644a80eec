r"""K(x, x') = sum_k b_k(r, r') t^k, t = cos(x, x'): the kernel of infinitely many neurons, from the Hermite series of sigma.

E_w sigma(<w, x>/sqrt(d)) sigma(<w, x'>/sqrt(d)), w ~ N(0, I_d), has b_k = a_k(r) a_k(r') with a_k(r) = E[sigma(r z/sqrt(d)) h_k(z)]
(Mehler); the tangent kernel of a two-layer network adds r r' t E[sigma' sigma']/d, which is k times that (Stein). A function of
the inner product, h(<x, x'>/d) = sum_k b_k (<x, x'>/d)^k, has a_k(r)^2 = b_k (r^2/d)^k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, Rational, S, Symbol, asin, atan, diff, factorial, gamma, pi, simplify, sqrt, sympify

from hermitex.errors import BadInput, HermitexError
from hermitex.kernels.arrays import lambdify
from hermitex.show.display import Shown, latex
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.parsing import parse
from hermitex.symbolic.series.expansion import expand
from hermitex.symbols import z, z1, z2
from hermitex.theories.kernels import harmonics
from hermitex.theories.spike import free_parameters, require_square_integrable

Array = np.ndarray
t = Symbol("t", real=True)
_SINE, _U, _V = Symbol("s", positive=True), Symbol("r_1", positive=True), Symbol("r_2", positive=True)
ORDER = 80  # of the series in t, where t stays off 1
_EXACT = 40  # the highest exact coefficient
_NOTHING = 1e-13  # of the whole: less is rounding
_LONG = 80
_MANY = 1e12  # harmonics of one degree: beyond, the rounding of so many eigenvalues would show


@dataclass(frozen=True, repr=False)
class Kernel(Shown):
    """What kernels of an activation and of the inner product share: a series in t with coefficients >= 0."""

    sources: ClassVar[tuple[str, ...]] = ()

    def coefficients(self, radius: Array, order: int = ORDER) -> Array:
        """a_k at the radii |x|/sqrt(d), a row each: K = sum_k a_k(r) a_k(r') t^k."""
        raise NotImplementedError

    def diagonal(self, radius: Array) -> Array:
        """K(x, x) at these radii |x|/sqrt(d)."""
        raise NotImplementedError

    def factors(self, degrees: int, radius: Array, d: int) -> list[Array]:
        """For each degree B with B B^T = E[K(r, r', t) Q_l(t)], rows along the radii."""
        raise NotImplementedError

    def weight(self, degree: int) -> Expr:
        """b_k on the sphere |x|^2 = d, exactly."""
        raise NotImplementedError

    @property
    def formula(self) -> Expr | None:
        """The kernel on the sphere |x|^2 = d as a formula of t = <x, x'>/d; None where it has no closed form."""
        raise NotImplementedError

    def eigenvalue(self, degree: int, d: Any) -> Expr:
        """E[K(t) Q_l(t)] on the sphere in d dimensions (number or symbol), exactly: for kernels that are polynomials of t.

        Its multiplicity is N_l; at large d it is l! b_l/d^l. Others: `.spectrum`.

        Examples
        --------
        >>> dual_kernel("He2(z)").eigenvalue(2, Symbol("d", positive=True))
        4/(d*(d + 2))
        """
        if self.formula is None or not self.formula.is_polynomial(t):
            raise BadInput(f"{self}: a series in t that does not end; its eigenvalues are numbers, from .spectrum(d)")
        half, found = sympify(d, strict=True)/2, S.Zero
        for (power,), b in self.formula.as_poly(t).terms():
            if power >= degree and (power - degree) % 2 == 0:
                ratio = gamma(Rational(power - degree + 1, 2))*gamma(half)/gamma(Rational(power + degree, 2) + half)
                found += b*factorial(power)/factorial(power - degree)*ratio/(2**degree*sqrt(pi))
        return found.gammasimp().factor()

    def spectrum(self, d: int, g: Any = None, *, data: str = "sphere", degrees: int = 8) -> dict[str, Array]:
        """Eigenvalues by degree, their multiplicities, the target on them, and the rest as a tail: for `ridge_equivalent`.

        Parameters
        ----------
        d : dimension of the data, 3 or more (gaussian: 8); data : "sphere" (|x|^2 = d) or "gaussian"
        g : target of <theta, x>, |theta| = 1 (default: none, coefficients 0)
        degrees : the highest degree with eigenvalues of its own (of no degree more than 1e12); those above it are the tail, and
            the target's part there has eigenvalue 0

        Returns
        -------
        {eigenvalues, multiplicity, coefficients, tail, degree}; degree is that of each eigenvalue, -1 for the rest of the target.
        """
        if data not in ("sphere", "gaussian"):
            raise BadInput(f"data is 'sphere' or 'gaussian', not {data!r}")
        least = 3 if data == "sphere" else 8  # few directions leave a long spectrum along the radius
        if not (np.isfinite(d) and int(d) == d and d >= least):
            raise BadInput(f"the dimension of a kernel's data ({data}) is a whole number of {least} or more, not {d:g}")
        if not 0 <= degrees <= _EXACT:
            raise BadInput(f"degrees is between 0 and {_EXACT}, not {degrees}")
        d = int(d)
        degrees = max(k for k in range(degrees + 1) if harmonics.dimensions(k, d) <= _MANY)
        radius, chance = harmonics.radii(data, d)
        blocks = self.factors(degrees, radius, d)
        aim, size = (np.zeros((degrees + 1, radius.size)), 0.0) if g is None else _aimed(activation(g), radius, d, degrees, chance)
        trace = float(chance @ self.diagonal(radius))
        rows: list[tuple[float, float, float, int]] = []
        for degree in range(degrees + 1):
            left, s, _ = np.linalg.svd(np.sqrt(chance)[:, None]*blocks[degree], full_matrices=False)
            many = harmonics.dimensions(degree, d)
            kept = many*s**2 > _NOTHING*trace
            seen = left.T @ (aim[degree]*np.sqrt(chance*many))
            rows += [(v**2, many, b, degree) for v, b in zip(s[kept], seen[kept], strict=True)]
        eta, full, beta, at = (np.array(c, dtype=float) for c in zip(*rows, (0.0, 1.0, 0.0, -1.0), strict=True))
        rest, tail = size - float(beta @ beta), trace - float(full @ eta)
        beta[-1] = np.sqrt(rest) if rest > _NOTHING*size else 0.0
        return {"eigenvalues": eta, "multiplicity": full, "coefficients": beta, "degree": at,
                "tail": np.asarray(tail if tail > _NOTHING*trace else 0.0)}

    def gram(self, x: Array, y: Array | None = None) -> Array:
        """K(x_i, y_j) of rows; with one argument K(x_i, x_j), whose diagonal is exact."""
        d, other = x.shape[1], x if y is None else y
        one, two = (np.sqrt((v**2).sum(axis=1)/d) for v in (x, other))
        cosine = np.clip(x @ other.T/d/one[:, None]/two, -1, 1)
        found = self._between(cosine, one, two)
        if y is None:
            np.fill_diagonal(found, self.diagonal(one))
        return found

    def _between(self, cosine: Array, one: Array, two: Array) -> Array:
        """The series, by Horner's rule; its coefficients on a grid of radii where there are many."""
        a, b = self._at_many(one), self._at_many(two)
        found = np.zeros_like(cosine)
        for k in range(ORDER, -1, -1):
            found *= cosine
            found += np.multiply.outer(a[:, k], b[:, k])
        return found

    def _at_many(self, radius: Array) -> Array:
        """The coefficients are smooth in the radius: Chebyshev interpolation."""
        low, high = float(radius.min()), float(radius.max())
        if high - low < 1e-12:
            return np.repeat(self.coefficients(radius[:1]), radius.size, axis=0)
        nodes = np.cos(np.pi*(np.arange(24) + 0.5)/24)
        series = np.polynomial.chebyshev.chebfit(nodes, self.coefficients((low + high)/2 + (high - low)/2*nodes), 23)
        return np.polynomial.chebyshev.chebval((2*radius - low - high)/(high - low), series).T

    def features(self, x: Array, p: int, rng: np.random.Generator) -> Array:
        """p random features of the rows whose mean product is the kernel."""
        raise BadInput(f"{self}: random features are those of an activation and of random weights; leave p out")

    def plot(self, ax: Any = None) -> Any:
        """The kernel on the sphere over t."""
        from hermitex.show.plots import curves

        at = np.linspace(-1, 1, 201)
        a = self.coefficients(np.ones(1))[0]**2
        values = (a*at[:, None]**np.arange(ORDER + 1)).sum(axis=1)
        values[-1] = self.diagonal(np.ones(1))[0]
        return curves(at.tolist(), {str(self): values.tolist()}, ax, xlabel=r"$t = \langle x, x'\rangle/d$", ylabel="$K(t)$")

    def latex(self) -> str:
        """The formula, or the series with its first coefficients."""
        if self.formula is not None:
            return f"K(t) = {latex(self.formula)}"
        return "K(t) = " + " + ".join(f"({latex(self.weight(k))})\\,t^{{{k}}}" for k in range(3)) + r" + \cdots"

    def to_dict(self) -> dict[str, Any]:
        """Its name, its formula and the first coefficients."""
        from hermitex.symbolic.text.plain import plain

        shown = {"kernel": str(self), "formula": self.formula, "weights": {str(k): self.weight(k) for k in range(5)}}
        return dict(plain(shown))

    def _html(self) -> str:
        from html import escape

        return f"<p><code>{escape(repr(self))}</code></p>$${escape(self.latex(), quote=False)}$$"


@dataclass(frozen=True, repr=False)
class DualKernel(Kernel):
    """The kernel of an activation: of random features, or (trained) the tangent kernel of both layers."""

    sigma: Activation
    trained: bool = False

    sources: ClassVar[tuple[str, ...]] = ("cho2009", "jacot2018")

    def __str__(self) -> str:
        return f"{'ntk' if self.trained else 'features'}({self.sigma.name})"

    def _summary(self) -> str:
        return f"{self.sigma.name}, {'tangent kernel' if self.trained else 'random features'}"

    @cached_property
    def between(self) -> Expr | None:
        """E[sigma(r_1 u) sigma(r_2 v)], corr(u, v) = t, in closed form, r = |x|/sqrt(d); None where no rule applies."""
        try:
            mean = closed_form(E(self.sigma(_U*z1)*self.sigma(_V*(t*z1 + _SINE*z2)), z1, z2))
        except HermitexError:
            return None
        there = _short(mean.subs(_SINE, sqrt(1 - t**2))).replace(
            lambda e: isinstance(e, atan), lambda e: asin(t) if e.args[0] == t/sqrt(1 - t**2) else e)
        return _short(there + t*diff(there, t)) if self.trained else there

    @cached_property
    def formula(self) -> Expr | None:
        """The kernel on the sphere |x|^2 = d."""
        return None if self.between is None else _short(self.between.subs({_U: 1, _V: 1}))

    def weight(self, degree: int) -> Expr:
        """b_k = E[sigma h_k]^2, (k + 1) times that for the tangent kernel.

        >>> dual_kernel("relu").weight(2), dual_kernel("relu", "ntk").weight(2)
        (1/(4*pi), 3/(4*pi))
        """
        if not 0 <= degree <= _EXACT:
            raise BadInput(f"an exact coefficient is asked for up to degree {_EXACT}, not {degree}")
        found = expand(self.sigma(z), order=max(degree, 8), basis="orthonormal").coefficients[degree]**2
        return (degree + 1)*found if self.trained else found

    @cached_property
    def _compiled(self) -> tuple[Callable[[Array], Array], Array]:
        return _function(self.sigma)

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
        norms, chance = harmonics.radii("gaussian", d)
        plain = _by_degree(_function(self.sigma), degrees, radius, d, norms)*np.sqrt(chance)
        if not self.trained:
            return list(plain)
        slope = _by_degree(_function(self.sigma.weak_derivative), degrees + 1, radius, d, norms)*np.sqrt(chance)*radius[:, None]
        found = []
        for k in range(degrees + 1):
            up, down = np.sqrt(np.array([k + d - 2, k])/(2*k + d - 2))
            found.append(np.hstack([plain[k], up*slope[k + 1], *([down*slope[k - 1]] if k else [])]))
        return found

    def diagonal(self, radius: Array) -> Array:
        """E sigma(r z)^2; for the tangent kernel + r^2 E sigma'(r z)^2."""
        parts = [(0, _function(self.sigma))]
        if self.trained:
            parts.append((2, _function(self.sigma.weak_derivative)))

        def one(r: float) -> float:
            found = 0.0
            for power, (f, kinks) in parts:
                nodes, weights = harmonics.normal_rule(kinks/r)
                found += r**power*float(weights @ f(r*nodes)**2)
            return found

        if radius.size <= 32:
            return np.array([one(float(r)) for r in radius])
        grid = np.linspace(radius.min(), radius.max(), 24) if np.ptp(radius) > 1e-12 else radius[:1]
        return np.interp(radius, grid, [one(float(r)) for r in grid]) if grid.size == 1 else np.polynomial.Polynomial.fit(
            grid, [one(float(r)) for r in grid], 12)(radius)

    def _between(self, cosine: Array, one: Array, two: Array) -> Array:
        """The closed form where there is one: another way than the series that the spectrum is made of."""
        if self.between is None:
            return super()._between(cosine, one, two)
        from hermitex.kernels.compile import compile

        inside = np.clip(cosine, -1 + 1e-12, 1 - 1e-12)  # 0/0 at t = 1, which is the diagonal
        letters = {"t": inside, "r_1": one[:, None], "r_2": two[None, :]}
        kernel = compile(self.between)
        return np.array(np.broadcast_to(kernel(**{n: v for n, v in letters.items() if n in kernel.parameters}), cosine.shape))

    def features(self, x: Array, p: int, rng: np.random.Generator) -> Array:
        """sigma(X W/sqrt(d))/sqrt(p), W of standard normals."""
        if self.trained:
            raise BadInput("the tangent kernel has no random features of one layer here; leave p out, or take kind='features'")
        f, _ = self._compiled
        return f(x @ rng.standard_normal((x.shape[1], p))/np.sqrt(x.shape[1]))/np.sqrt(p)


@dataclass(frozen=True, repr=False)
class InnerProduct(Kernel):
    """h(<x, x'>/d), a series with coefficients >= 0."""

    h: Expr

    sources: ClassVar[tuple[str, ...]] = ("MMM22",)

    def __str__(self) -> str:
        return str(self.h)

    def _summary(self) -> str:
        return str(self.h)

    @property
    def formula(self) -> Expr:
        """h itself."""
        return self.h

    def weight(self, degree: int) -> Expr:
        """b_k = h^(k)(0)/k!."""
        return simplify(self.h.diff(t, degree).subs(t, 0)/factorial(degree))

    @cached_property
    def _series(self) -> Array:
        from hermitex.symbolic.arithmetic import mp

        h = lambdify(t, self.h, modules=[mp.functions(), "mpmath"])
        with mp.workdps(30):
            try:
                return np.array([float(v.real) for v in mp.taylor(h, 0, ORDER)])
            except (ZeroDivisionError, ValueError, TypeError):
                return np.array([np.nan])

    def coefficients(self, radius: Array, order: int = ORDER) -> Array:
        """a_k(r) = sqrt(b_k) r^k."""
        return np.sqrt(np.maximum(self._series[:order + 1], 0))*radius[:, None]**np.arange(order + 1)

    def factors(self, degrees: int, radius: Array, d: int) -> list[Array]:
        """Its powers of t, by degree."""
        a = self.coefficients(radius)
        return [a*np.sqrt(harmonics.powers(k, ORDER, d)) for k in range(degrees + 1)]

    def diagonal(self, radius: Array) -> Array:
        """h(r^2)."""
        return self._of(radius**2)

    def _of(self, at: Array) -> Array:
        from hermitex.kernels.compile import compile

        return np.array(np.broadcast_to(compile(self.h, "t")(at), at.shape), dtype=float)

    def _between(self, cosine: Array, one: Array, two: Array) -> Array:
        return self._of(cosine*one[:, None]*two)


def _short(e: Expr) -> Expr:
    return simplify(e) if e.count_ops() < _LONG else e


def _function(f: Activation) -> tuple[Callable[[Array], Array], Array]:
    from hermitex.kernels.averages import compiled

    found = compiled(f(z), z, np.array([-30.0, 30.0]))
    if found is None:
        raise BadInput(f"kernel: {f.name} is no function of z alone that numbers can be put into")
    return found


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


def _aimed(g: Activation, radius: Array, d: int, degrees: int, chance: Array) -> tuple[Array, float]:
    """E[g(r sqrt(d) t) Q_l(t)] by degree and radius, and E g^2."""
    f, kinks = _function(g)
    rows, size = [], 0.0
    for r, weight in zip(radius, chance, strict=True):
        scale = float(r*np.sqrt(d))
        nodes, weights = harmonics.sphere_rule(kinks/scale, d)
        values = f(scale*nodes)
        rows.append(harmonics.gegenbauer(max(degrees, 1), d, nodes)[:degrees + 1] @ (weights*values))
        size += float(weight*(weights @ values**2))
    return np.array(rows).T, size


def dual_kernel(sigma: Any, kind: str = "features") -> DualKernel:
    r"""The kernel of infinitely many neurons with random weights w ~ N(0, I_d), as a formula and as a spectrum.

    "features": E_w sigma(<w, x>/sqrt(d)) sigma(<w, x'>/sqrt(d)) (for relu the arc-cosine kernel of [cho2009]); "ntk": the tangent
    kernel of a two-layer network, that + <x, x'>/d E_w sigma' sigma' [jacot2018], readout of variance 1.

    Parameters
    ----------
    sigma : activation: a name, text or expression in z; square integrable, and its derivative, too, for "ntk"

    Returns
    -------
    DualKernel : `.formula` (of t = <x, x'>/d on the sphere |x|^2 = d), `.weight(k)` (exact coefficient of t^k),
    `.eigenvalue(l, d)` (exact, for polynomials), `.spectrum(d, g, data=)` (numbers for `ridge_equivalent`), `.gram(X)`, `.plot()`.

    Raises
    ------
    BadInput : an unknown kind, a free parameter. Divergent : not square integrable.

    References: cho2009, jacot2018.

    Examples
    --------
    >>> dual_kernel("erf").formula
    2*atan(2*t/sqrt(9 - 4*t**2))/pi
    >>> dual_kernel("relu", "ntk").weight(1)
    1/2
    """
    if kind not in ("features", "ntk"):
        raise BadInput(f"kernel: its kind is features or ntk, not {kind!r}")
    made = activation(sigma)
    if extra := free_parameters(made):
        raise BadInput(f"kernel: the activation {made.name} holds {', '.join(extra)}; put numbers in")
    require_square_integrable("kernel", "activation", made)
    if kind == "ntk":
        if _jumps(made):
            raise BadInput(f"kernel: {made.name} jumps, so that its tangent kernel is infinite; take kind='features'")
        require_square_integrable("kernel", "derivative of the activation", made.weak_derivative)
    return _dual(made, kind == "ntk")


def _jumps(f: Activation) -> bool:
    """A jump leaves a difference of f's sides that does not vanish."""
    value, kinks = _function(f)
    return any(abs(float(value(np.array(k + 1e-9)) - value(np.array(k - 1e-9)))) > 1e-6 for k in kinks)


@lru_cache(maxsize=32)
def _dual(sigma: Activation, trained: bool) -> DualKernel:
    """One object for one kernel, so that its formula is derived once."""
    return DualKernel(sigma, trained)


def inner_product_kernel(h: Any) -> InnerProduct:
    """K(x, x') = h(<x, x'>/d) for a formula h in t, whose power series has no negative coefficient.

    Raises
    ------
    BadInput : another letter than t; a negative coefficient (no kernel in every dimension); a series that does not converge at 1.

    Examples
    --------
    >>> inner_product_kernel("exp(t)").weight(3)
    1/6
    """
    form = parse(h, symbols={"t": "real"}) if isinstance(h, str) else sympify(h, strict=True)
    form = form.subs({s: t for s in form.free_symbols if s.name == "t"})
    if form.free_symbols != {t}:
        raise BadInput(f"kernel: a formula in t = <x, x'>/d is needed, not {str(form)[:60]}")
    made = _inner(form)
    with np.errstate(all="ignore"):
        size = abs(float(made.diagonal(np.ones(1))[0]))
        series = made._series
    if not (np.isfinite(size) and np.isfinite(series).all()) or abs(series.sum() - made.diagonal(np.ones(1))[0]) > 1e-9*size:
        raise BadInput(f"kernel: the power series of {form} does not converge at t = 1, or not within {ORDER} terms")
    if np.any(series < -1e-12*size):
        k = int(np.flatnonzero(series < -1e-12*size)[0])
        raise BadInput(f"kernel: {form} has a negative coefficient at t^{k}: it is not a kernel in every dimension")
    return made


@lru_cache(maxsize=32)
def _inner(h: Expr) -> InnerProduct:
    return InnerProduct(h)


__all__ = ["DualKernel", "InnerProduct", "Kernel", "dual_kernel", "inner_product_kernel"]
