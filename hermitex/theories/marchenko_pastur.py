"""m(z) = int dmu(s)/(s + z) = 2/(b + D), b = z + 1 - gamma, D = sqrt(b^2 + 4 gamma z): Marchenko and Pastur.

mu is the spectral law of W^T W/p for W of p x d independent standard normals, gamma = d/p: mean 1, an atom 1 - 1/gamma
at zero if gamma > 1. The form above does not cancel where b > 0; elsewhere m = (D - b)/(2 gamma z) does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hermitex.errors import BadInput, brief
from hermitex.hints import Axes, Value
from hermitex.show.display import Shown

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MarchenkoPastur(Shown):
    """The law of W^T W/p (d x d) at gamma = d/p; its transforms at z > 0 (z off the support -s, complex, is allowed).

    Guarantee
    ---------
    Exact formulas of the limit, evaluated in double precision. See docs/promise.md.

    Examples
    --------
    >>> law = MarchenkoPastur(0.5)
    >>> round(float(law.m(1.0)), 12), [round(edge, 12) for edge in law.edges]
    (0.561552812809, [0.085786437627, 2.914213562373])
    """

    gamma: float

    def __post_init__(self) -> None:
        if not isinstance(self.gamma, Real) or not 0 < self.gamma < np.inf:
            raise BadInput(f"the aspect ratio gamma = d/p is positive and finite, not {brief(self.gamma)}")

    @property
    def edges(self) -> tuple[float, float]:
        """(1 - sqrt(gamma))^2 and (1 + sqrt(gamma))^2."""
        root = float(np.sqrt(self.gamma))
        return (1 - root)**2, (1 + root)**2

    @property
    def mass_at_zero(self) -> float:
        """1 - 1/gamma if gamma > 1, else 0."""
        return max(0.0, 1 - 1/self.gamma)

    def density(self, s: Value) -> Array:
        """The continuous part, sqrt((s - a)(b - s))/(2 pi gamma s) between the edges a and b, 0 outside."""
        s = np.asarray(s, dtype=float)
        low, high = self.edges
        inside = (s > low) & (s < high)
        safe = np.where(inside, s, 1.0)
        return np.where(inside, np.sqrt(np.maximum((safe - low)*(high - safe), 0))/(2*np.pi*self.gamma*safe), 0.0)

    def m(self, z: Any) -> Any:
        """int dmu(s)/(s + z)."""
        b, D = self._parts(z)
        # Of the two forms of the root, the one whose terms have one sign.
        with np.errstate(all="ignore"):
            return np.where(np.real(b) > 0, 2/(b + D), (D - b)/(2*self.gamma*np.asarray(z)))[()]

    def derivative(self, z: Any) -> Any:
        """g'(-z) = int dmu(s)/(s + z)^2 = (gamma m^2 + m)/D."""
        _, D = self._parts(z)
        m = self.m(z)
        return (self.gamma*m*m + m)/D

    def moments(self, z: Any) -> tuple[Any, Any, Any]:
        """A = int s/(s + z), B = int s/(s + z)^2, C = int s^2/(s + z)^2.

        A = 1 - z m = m/(1 + gamma m), by the equation of m, and B = -dA/dz cancel nothing.
        """
        z = np.asarray(z)
        m, slope = self.m(z), self.derivative(z)
        A = m/(1 + self.gamma*m)
        B = slope/(1 + self.gamma*m)**2
        return A, B, A - z*B

    def latex(self) -> str:
        """The law: its density between the edges, and its atom where there is one."""
        low, high = (f"{edge:.6g}" for edge in self.edges)
        atom = rf"{self.mass_at_zero:.6g}\,\delta(s) + " if self.mass_at_zero else ""
        return (rf"\rho(s) = {atom}\frac{{\sqrt{{(s - a)(b - s)}}}}{{2 \pi \gamma s}}, \quad "
                rf"\gamma = {self.gamma:.6g}, \quad [a, b] = [{low}, {high}]")

    def to_dict(self) -> dict[str, Any]:
        """gamma, the edges and the mass at zero."""
        return {"gamma": float(self.gamma), "edges": list(self.edges), "mass_at_zero": self.mass_at_zero}

    def plot(self, ax: Axes | None = None, *, points: int = 400) -> Axes:
        """The density between the edges."""
        from hermitex.show.plots import learning_curve

        low, high = self.edges
        s = low + (high - low)*np.sin(np.linspace(0, np.pi/2, points))**2  # closer together where it rises like a root
        s = s[s > 1e-3*high] if low < 1e-3*high else s  # at gamma = 1 it is infinite at zero
        label = rf"$\gamma = {self.gamma:g}$"
        return learning_curve(s.tolist(), self.density(s).tolist(), ax, label=label, xlabel="$s$", ylabel="density")

    def _parts(self, z: Any) -> tuple[Any, Any]:
        z = np.asarray(z)
        b = z + 1 - self.gamma
        if not np.iscomplexobj(z):
            return b, np.sqrt(b*b + 4*self.gamma*z)
        low, high = self.edges
        # The product of two roots has its cut on the support alone: (z + low)(z + high) = b^2 + 4 gamma z.
        return b, np.sqrt(z + low)*np.sqrt(z + high)
