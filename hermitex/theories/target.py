r"""h(kappa) = E g(u),   h_1(kappa) = E z g(u),   h_2(kappa) = E g(u)^2 + Delta,   u = gamma kappa + sqrt(1 - gamma^2) z.

What the target looks like from its projection kappa on the spike, at overlap gamma [cui2024, Result 3.3]; the averages
are over z alone. At gamma = +-1 nothing is averaged: h = g(gamma kappa), h_1 = 0, h_2 = g^2 + Delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sympy import Basic, Expr, S, sqrt, sympify

from hermitex.errors import BadInput, NoClosedForm
from hermitex.hints import Formula
from hermitex.show.cite import Cited
from hermitex.show.display import WIDE, Shown, latex, shorten
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import Delta, c, gamma, kappa, r, z
from hermitex.theories.conditional_coefficients import (
    DEVIATION,
    MEAN,
    Coefficient,
    closed_form_or_refusal,
    collect_terms,
    values_at,
)


class MomentValues(NamedTuple):
    """h, h_1, h_2."""

    h: Any
    h_1: Any
    h_2: Any


@dataclass(frozen=True, repr=False)
class _Moment(Coefficient):
    """E z^k g(m + s z)^n as a function of m = r kappa and s = sqrt(c)."""

    k: int
    n: int

    @property
    def name(self) -> str:
        return "h" if (self.k, self.n) == (0, 1) else "h_1" if self.k else "h_2"

    @property
    def node(self) -> Expr:
        return E(z**self.k*self.activation(r*kappa + sqrt(c)*z)**self.n, z)

    @cached_property
    def expr(self) -> Expr:
        found = collect_terms(closed_form_or_refusal(self, E(z**self.k*self.activation(MEAN + DEVIATION*z)**self.n, z)))
        return found.xreplace({MEAN: r*kappa, DEVIATION: sqrt(c)})

    def statistic(self, values: Any, t: Any, weights: Any) -> Any:
        return (weights*t**self.k*values**self.n).sum(axis=-1)


@dataclass(frozen=True, repr=False)
class TargetMoments(Cited, Shown):
    """h, h_1, h_2 of a target: formulas of (kappa, gamma, Delta), callable on arrays."""

    sources = ("cui2024",)

    g: Activation

    @cached_property
    def _moments(self) -> tuple[_Moment, _Moment, _Moment]:
        return _Moment(self.g, 0, 1), _Moment(self.g, 1, 1), _Moment(self.g, 0, 2)

    def _formula(self, k: int) -> Expr:
        moment = self._moments[k]
        try:
            found = moment.expr
        except NoClosedForm:
            found = moment.node
        return found.subs({r: gamma, c: 1 - gamma**2}, simultaneous=True)

    @property
    def h(self) -> Expr:
        """E g(gamma kappa + sqrt(1 - gamma^2) z), exact where there is a closed form; |gamma| < 1."""
        return self._formula(0)

    @property
    def h_1(self) -> Expr:
        """E z g(gamma kappa + sqrt(1 - gamma^2) z)."""
        return self._formula(1)

    @property
    def h_2(self) -> Expr:
        """E g(gamma kappa + sqrt(1 - gamma^2) z)^2 + Delta."""
        return self._formula(2) + Delta

    def __call__(self, at_kappa: Any, *, gamma: Any, Delta: Any = 0, **parameters: float) -> MomentValues:
        """Their values; kappa, gamma and Delta broadcast, |gamma| <= 1. SymPy numbers or symbols give formulas.

        Raises
        ------
        BadInput : |gamma| > 1, Delta < 0 or a number that is not finite; a parameter of g without a value.
        """
        if any(isinstance(v, Basic) for v in (at_kappa, gamma, Delta)):
            return self._exact(*(sympify(v, strict=True) for v in (at_kappa, gamma, Delta)))
        ks, gs, noise = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (at_kappa, gamma, Delta)))
        if not (np.all(np.abs(gs) <= 1) and np.all(noise >= 0) and np.all(np.isfinite(ks)) and np.all(np.isfinite(noise))):
            raise BadInput("target_moments: gamma must be between -1 and 1, Delta 0 or more, and kappa finite")
        rho = (1 - gs)*(1 + gs)
        found = [self._numbers(m, ks.ravel(), gs.ravel(), rho.ravel(), parameters).reshape(ks.shape) for m in self._moments]
        found[2] = found[2] + noise
        return MomentValues(*(v if v.ndim else v.item() for v in found))

    def _exact(self, at_kappa: Expr, at_gamma: Expr, noise: Expr) -> MomentValues:
        if at_gamma**2 == 1:
            g = self.g(at_gamma*at_kappa)
            return MomentValues(g, S.Zero, g**2 + noise)
        rule = {kappa: at_kappa, gamma: at_gamma, Delta: noise}
        return MomentValues(*(e.subs(rule, simultaneous=True) for e in (self.h, self.h_1, self.h_2)))

    @staticmethod
    def _numbers(moment: _Moment, ks: np.ndarray, gs: np.ndarray, rho: np.ndarray, parameters: dict[str, float]) -> np.ndarray:
        inside = rho > 0
        out = np.zeros(ks.shape)
        if inside.any():
            out[inside] = values_at(moment, (ks[inside], gs[inside], rho[inside], 0.0), parameters)
        if not inside.all() and not moment.k:
            # Nothing is averaged at gamma = +-1; the function of an array is that of the kernels.
            from hermitex.kernels.compile import compile

            u = gs[~inside]*ks[~inside]
            out[~inside] = compile(moment.activation(kappa)**moment.n)(kappa=u, **parameters)
        return out

    def __repr__(self) -> str:
        return shorten(f"TargetMoments({self.g.name}): h = {self.h}, h_1 = {self.h_1}, h_2 = {self.h_2}", 3*WIDE)

    def latex(self) -> str:
        """The three formulas, an align block."""
        rows = {"h": self.h, "h_1": self.h_1, "h_2": self.h_2}
        lines = [f"  {name}(\\kappa) &= {latex(e)}" for name, e in rows.items()]
        return "\\begin{align}\n" + " \\\\\n".join(lines) + "\n\\end{align}"

    def to_dict(self) -> dict[str, Any]:
        """{"target", "h", "h_1", "h_2"} as text that `hermitex.parse` reads."""
        return dict(plain({"target": self.g(z), "h": self.h, "h_1": self.h_1, "h_2": self.h_2}))


def target_moments(g: Formula) -> TargetMoments:
    """The target seen from its projection on the spike: h, h_1, h_2 as formulas of (kappa, gamma, Delta).

    h = E g(u),   h_1 = E z g(u),   h_2 = E g(u)^2 + Delta,   u = gamma kappa + sqrt(1 - gamma^2) z,   z ~ N(0, 1)

    Parameters
    ----------
    g : target: a name, text or expression in z, or `Activation`

    Returns
    -------
    TargetMoments : `.h`, `.h_1`, `.h_2` the formulas; ``target_moments(g)(kappa, gamma=0.9, Delta=0)`` their values
    (arrays broadcast, gamma from -1 to 1; absolute error about 1e-12 times the size of g).

    Guarantee
    ---------
    An exact formula equals the average for all kappa and gamma; a call on arrays keeps its tolerance at each point. See
    docs/promise.md.

    References: cui2024 (Result 3.3).

    Examples
    --------
    >>> target_moments("sin").h
    exp(gamma**2/2 - 1/2)*sin(gamma*kappa)
    >>> target_moments("sign")(0.5, gamma=1.0)
    MomentValues(h=1.0, h_1=0.0, h_2=1.0)
    """
    return TargetMoments(activation(g))
