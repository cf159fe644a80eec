"""What all kernels of inner products share: their spectrum by degree, their matrix, their picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sympy import Expr

from hermitex.errors import NO_NUMBER, BadInput
from hermitex.hints import Axes
from hermitex.show.display import Shown, latex
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import z
from hermitex.theories.kernels import harmonics
from hermitex.theories.kernels.half_angles import half_angles, t

Array = np.ndarray
ORDER = 80  # of the series in t, where t stays off 1: 0.6^80 is rounding
EXACT = 40  # the highest exact coefficient: its polynomial is evaluated in rationals
MOST = 200  # the highest degree of an eigenvalue of its own; what is beyond acts as a ridge
_SEEN = 1e-6  # of K(x, x): the largest part of a series that may be left out


@dataclass(frozen=True, repr=False)
class InnerKernel(Shown):
    """What kernels of an activation and of the inner product share: a series in t with coefficients >= 0."""

    sources: ClassVar[tuple[str, ...]] = ()

    def coefficients(self, radius: Array, order: int = ORDER) -> Array:
        """a_k at the radii |x|/sqrt(d), a row each: K = sum_k a_k(r) a_k(r') t^k."""
        raise NotImplementedError

    def diagonal(self, radius: Array) -> Array:
        """K(x, x) at these radii |x|/sqrt(d)."""
        raise NotImplementedError

    def on_gaussian_data(self, d: int) -> float:
        """The spread of K(x, x) over its mean for x ~ N(0, I_d); refused where E K(x, x)^2 is not known to be finite.

        The averages over |x| are quadratures: two with different nodes have to agree.
        """
        self.require_moment(d)
        means = []
        with np.errstate(all="ignore"):
            for nodes in (harmonics.RADII, 2*harmonics.RADII):
                radius, chance = harmonics.radii("gaussian", d, nodes)
                values = self.diagonal(radius)
                means.append((chance @ values, chance @ values**2))
        (mean, square), (again, other) = means
        agree = 1e-6  # two quadratures over the lengths
        if not (np.isfinite([mean, square]).all() and abs(square - other) <= agree*other and abs(mean - again) <= agree*again):
            raise BadInput(f"{self}: the mean of K(x, x)^2 over Gaussian data in d = {d} dimensions does not exist or is out of "
                           "reach of the quadrature; take more dimensions or data='sphere'")
        return float(np.sqrt(max(square - mean**2, 0.0))/mean)

    def require_moment(self, d: int) -> None:
        """Refuse, from the formula, a kernel whose K(x, x) has no second moment over Gaussian data."""
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
        d = require_whole(f"the dimension of a kernel's data ({data})", d, least)
        if require_whole("degrees", degrees) > MOST:
            raise BadInput(f"degrees is between 0 and {MOST}, not {degrees}")
        if data == "gaussian":
            self.on_gaussian_data(d)
        most = 1e12  # harmonics of one degree: beyond, the rounding of so many eigenvalues would show
        degrees = max(k for k in range(degrees + 1) if harmonics.dimensions(k, d) <= most)
        radius, chance = harmonics.radii(data, d)
        blocks = self.factors(degrees, radius, d)
        none = np.zeros((degrees + 1, radius.size)), np.zeros(radius.size)
        aim, sizes = none if g is None else target_coefficients(activation(g), radius, d, degrees)
        size = float(chance @ sizes)
        trace = float(chance @ self.diagonal(radius))
        rows: list[tuple[float, float, float, int]] = []
        nothing = 1e-13  # of the whole: less is rounding
        for degree in range(degrees + 1):
            left, s, _ = np.linalg.svd(np.sqrt(chance)[:, None]*blocks[degree], full_matrices=False)
            many = harmonics.dimensions(degree, d)
            kept = many*s**2 > nothing*trace
            seen = left.T @ (aim[degree]*np.sqrt(chance*many))
            rows += [(v**2, many, b, degree) for v, b in zip(s[kept], seen[kept], strict=True)]
        eta, full, beta, at = (np.array(c, dtype=float) for c in zip(*rows, (0.0, 1.0, 0.0, -1.0), strict=True))
        rest, tail = size - float(beta @ beta), trace - float(full @ eta)
        beta[-1] = np.sqrt(rest) if rest > nothing*size else 0.0
        return {"eigenvalues": eta, "multiplicity": full, "coefficients": beta, "degree": at,
                "tail": np.asarray(tail if tail > nothing*trace else 0.0)}

    def gram(self, x: Array, y: Array | None = None) -> Array:
        """K(x_i, y_j) of rows; with one argument K(x_i, x_j), whose diagonal is exact."""
        x = _rows(x)
        other = x if y is None else _rows(y)
        d = x.shape[1]
        if other.shape[1] != d:
            raise BadInput(f"{self}: rows of {d} and of {other.shape[1]} numbers")
        one, two = (np.sqrt((v**2).sum(axis=1)/d) for v in (x, other))
        with np.errstate(all="ignore"):
            rows, columns = (np.nan_to_num(v/np.sqrt((v**2).sum(axis=1))[:, None]) for v in (x, other))
        p, q = half_angles(rows, columns)
        one_row = 1e-14  # an angle as small as this between rows of equal lengths: one and the same row
        same = (q <= one_row) & np.isclose(one[:, None], two, rtol=one_row)
        if y is None:
            np.fill_diagonal(same, True)
        aside = np.sqrt(0.5)  # a right angle, where the value is not asked for
        found = self._between(np.where(same, aside, p), np.where(same, aside, q), one, two)
        found[same] = self.diagonal(one)[np.nonzero(same)[0]]
        return found

    def _between(self, p: Array, q: Array, one: Array, two: Array) -> Array:
        """K at half-angles p = cos(theta/2), q = sin(theta/2), shapes (n, m), of rows of radii `one` (n,) and `two` (m,).

        Here: the series, by Horner's rule; its coefficients on a grid of radii where there are many.
        The remainder is below |t|^81 times the roots of both rests K(x, x) - sum a_k^2; refused if that is too large.
        """
        cosine = (p - q)*(p + q)
        a, b = self._at_many(one), self._at_many(two)
        rest_one, rest_two = (np.sqrt(np.maximum(self.diagonal(r) - (c**2).sum(axis=1), 0)) for r, c in ((one, a), (two, b)))
        left = np.abs(cosine)**(ORDER + 1)*np.multiply.outer(rest_one, rest_two)
        if np.any(left > _SEEN*np.multiply.outer(*(np.sqrt(self.diagonal(r)) for r in (one, two)))):
            worst = float(cosine.flat[np.argmax(np.abs(cosine))])
            raise BadInput(f"{self}: no closed form, and {ORDER + 1} terms of its series are too few for rows as near as cosine = "
                           f"{worst:.4g}; take data of more dimensions, or a smooth activation")
        found = np.zeros_like(cosine)
        for k in range(ORDER, -1, -1):
            found *= cosine
            found += np.multiply.outer(a[:, k], b[:, k])
        return found

    def _at_many(self, radius: Array) -> Array:
        """The coefficients at the radii of many rows."""
        if np.ptp(radius) < 1e-12:
            return np.repeat(self.coefficients(radius[:1]), radius.size, axis=0)
        return interpolate_radii(self.coefficients, radius)

    def features(self, x: Array, p: int, rng: np.random.Generator) -> Array:
        """p random features of the rows whose mean product is the kernel."""
        raise BadInput(f"{self}: random features are those of an activation and of random weights; leave p out")

    def plot(self, ax: Axes | None = None) -> Axes:
        """The kernel on the sphere over t."""
        from hermitex.show.plots import curves

        at, one = np.linspace(-1, 1, 201), np.ones(1)
        top = self.diagonal(one)
        if self.formula is None:  # only where the series is exact to less than the width of the line, and at t = 1
            rest = top - (self.coefficients(one)**2).sum()
            at = at[np.abs(at)**(ORDER + 1)*rest <= _SEEN*top]
        at = at[np.abs(at) < 1] if self.formula is None else at[:-1]
        values = self._between(np.sqrt((1 + at)/2)[:, None], np.sqrt((1 - at)/2)[:, None], np.ones(at.size), one)[:, 0]
        at, values = np.append(at, 1.0), np.append(values, top)
        return curves(at.tolist(), {str(self): values.tolist()}, ax, xlabel=r"$t = \langle x, x'\rangle/d$", ylabel="$K(t)$")

    def latex(self) -> str:
        """The formula, or the series with its first coefficients."""
        if self.formula is not None:
            return f"K(t) = {latex(self.formula)}"
        return "K(t) = " + " + ".join(f"({latex(self.weight(k))})\\,t^{{{k}}}" for k in range(3)) + r" + \cdots"

    def to_dict(self) -> dict[str, Any]:
        """Its name, its formula and the first coefficients."""
        shown = {"kernel": str(self), "formula": self.formula, "weights": {str(k): self.weight(k) for k in range(5)}}
        return dict(plain(shown))

    def _html(self) -> str:
        from html import escape

        return f"<p><code>{escape(repr(self))}</code></p>$${escape(self.latex(), quote=False)}$$"


def require_whole(name: str, value: Any, least: int = 0) -> int:
    """The whole number, of at least `least`, that this is."""
    if not (isinstance(value, int | float | np.number) and np.isfinite(value) and int(value) == value and value >= least):
        shown = f"{value:g}" if isinstance(value, int | float | np.number) else repr(value)
        raise BadInput(f"{name} is a whole number of {least} or more, not {shown}")
    return int(value)


def interpolate_radii(f: Callable[[Array], Array], radius: Array) -> Array:
    """f at the radii; of many, by Chebyshev interpolation, as what is averaged over normals is smooth in the radius."""
    count = 48  # values of an interpolation that is exact to rounding for what is averaged over normals
    if radius.size <= 2*count:
        return f(radius)
    middle, half = (float(radius.max()) + float(radius.min()))/2, np.ptp(radius)/2
    nodes = np.cos(np.pi*(np.arange(count) + 0.5)/count)
    series = np.polynomial.chebyshev.chebfit(nodes, f(middle + half*nodes), count - 1)
    return np.polynomial.chebyshev.chebval((radius - middle)/half, series).T


def _rows(x: Any) -> Array:
    try:
        rows = np.asarray(x, dtype=float)
    except NO_NUMBER:
        rows = np.zeros(0)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise BadInput("a kernel's matrix is that of rows of finite numbers, of shape (n, d)")
    return rows


def numeric(f: Activation) -> tuple[Callable[[Array], Array], Array]:
    from hermitex.kernels.averages import compiled

    found = compiled(f(z), z, np.array([-30.0, 30.0]))
    if found is None:
        raise BadInput(f"kernel: {f.name} is not a function of z alone that can be evaluated at numbers")
    return found


def target_coefficients(g: Activation, radius: Array, d: int, degrees: int) -> tuple[Array, Array]:
    """E[g(r sqrt(d) t) Q_l(t)] by degree and radius, and E g(r sqrt(d) t)^2 by radius."""
    f, kinks = numeric(g)
    rows, sizes = [], []
    for r in radius:
        scale = float(r*np.sqrt(d))
        nodes, weights = harmonics.sphere_rule(kinks/scale, d)
        values = f(scale*nodes)
        rows.append(harmonics.gegenbauer(max(degrees, 1), d, nodes)[:degrees + 1] @ (weights*values))
        sizes.append(float(weights @ values**2))
    return np.array(rows).T, np.array(sizes)


__all__ = ["EXACT", "MOST", "ORDER", "InnerKernel", "interpolate_radii", "numeric", "require_whole", "t", "target_coefficients"]
