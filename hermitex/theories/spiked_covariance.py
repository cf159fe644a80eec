r"""Sigma = 1 + theta mu mu^T, theta = d^gamma_2, <mu, beta> = d^(-gamma_1): learning g(<beta, x>) with one strong direction.

The target's field is of unit variance, k is its information exponent. A neuron that starts at random has overlap d^(e_0) with it
in the geometry of Sigma, e_0 = -1/2 + (gamma_2 - gamma_1)_+ - (gamma_2 - 2 gamma_1)_+/2, and asks for n ~ d^(1 + e) samples,
e = -2 (k - 1) e_0 [mousavi2023]; 0 <= gamma_1 <= 1/2, 0 <= gamma_2 < 1. A kernel learns degree l of the part along mu (aligned,
gamma_1 = 0) iff l < kappa/(1 - gamma_2) at n = d^kappa [ba2023]. Status: the exponents are theorems of the sources; the one formula
for e_0, the kernel's degree for kappa other than 1 and the integral of the run time are derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any, ClassVar

from sympy import Add, Expr, Integer, Max, Rational, Symbol, ceiling, log

from hermitex.errors import BadInput
from hermitex.exponents.leap import leap
from hermitex.hints import Axes, Formula
from hermitex.show.display import shorten
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import rho, z
from hermitex.theories.claims import Border, Claim, Claims, Regime, Regimes, exact
from hermitex.theories.directions import DirectedTarget, target_of
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.spiked_flow import FLOWS, SpikedFlow

GAMMA_1, GAMMA_2 = (Symbol(n, nonnegative=True) for n in ("gamma_1", "gamma_2"))
K, D = Symbol("k", positive=True, integer=True), Symbol("d", positive=True)
SMALL, PARTLY, LARGE = "spike not felt", "spike felt", "spike found"


@dataclass(frozen=True, repr=False)
class SpikedCovariance(SpikedFlow):
    """A target of one direction under a spiked covariance; its exponents as Piecewise of gamma_1, gamma_2 (and k), its flows."""

    g: Activation | None
    k: Expr
    sigma: Activation | None = None
    kind: str = "preconditioned"

    sources: ClassVar[tuple[str, ...]] = ("mousavi2023", "ba2023")

    # -- partial alignment -------------------------------------------------------------------------------------------------
    @cached_property
    def regimes(self) -> Regimes:
        """The three cells over (gamma_1, gamma_2), `start_exponent` and `sample_exponent` in each, and where they meet."""
        a, b = GAMMA_1, GAMMA_2
        starts = {SMALL: Integer(-1)/2, PARTLY: b - a - Rational(1, 2), LARGE: (b - 1)/2}
        inside = {SMALL: (a - b,), PARTLY: (b - a, 2*a - b), LARGE: (b - 2*a,)}
        cells = tuple(Regime(n, inside[n], {"start_exponent": e, "sample_exponent": (1 - 2*(self.k - 1)*e).expand()})
                      for n, e in starts.items())
        return Regimes("spiked covariance, partial alignment", cells,
                       (Border((SMALL, PARTLY), {b: a}), Border((PARTLY, LARGE), {b: 2*a})), "mousavi2023")

    @property
    def start_exponent(self) -> Expr:
        """e_0, the exponent of the overlap at the start: -1/2, gamma_2 - gamma_1 - 1/2 or (gamma_2 - 1)/2."""
        return self.regimes.piecewise("start_exponent")

    @property
    def sample_exponent(self) -> Expr:
        """1 + e, the exponent of d in n: 1 + (k-1), 1 + (k-1)(1 - 2 (gamma_2 - gamma_1)) or 1 + (k-1)(1 - gamma_2)."""
        return self.regimes.piecewise("sample_exponent")

    @property
    def start_formula(self) -> Expr:
        """e_0 as one formula, -1/2 + (gamma_2 - gamma_1)_+ - (gamma_2 - 2 gamma_1)_+/2."""
        return -Rational(1, 2) + Max(0, GAMMA_2 - GAMMA_1) - Max(0, GAMMA_2 - 2*GAMMA_1)/2

    @property
    def run_time(self) -> Expr:
        """tau_k(d^e_0): 1, log(1/delta_0) or delta_0^(-(k-2)) for k = 1, 2, > 2; needs a known k.

        >>> spiked_covariance("He2").run_time.subs({GAMMA_1: 0, GAMMA_2: 0})
        log(d)/2
        """
        if not self.k.is_number:
            raise BadInput("spiked-covariance: the run time needs k as a number; give the target")
        e = self.start_exponent
        return Integer(1) if self.k == 1 else -e*log(D) if self.k == 2 else D**(-(self.k - 2)*e)

    def exponents(self, gamma_1: Any = None, gamma_2: Any = None) -> Claims:
        """start_exponent, sample_exponent and run_time at numbers, or as formulas, with their status.

        >>> spiked_covariance("He3").exponents("1/4", "3/8")["sample_exponent"]
        5/2
        """
        at = self._at(gamma_1, gamma_2)
        found = {"start_exponent": Claim(self.start_exponent.subs(at), "theorem", "mousavi2023", "delta_0 ~ d^start_exponent"),
                 "sample_exponent": Claim(self.sample_exponent.subs(at), "theorem", "mousavi2023",
                                          "n ~ d^sample_exponent, the leading factor d included")}
        if self.k.is_number:
            found["run_time"] = Claim(self.run_time.subs(at), "theorem", "mousavi2023",
                                      "T ~ run_time + log(1/epsilon); int dc/(k c^(k-1) (1 - c^2)) from delta_0")
        return Claims(f"{self._summary()}, partial alignment", found)

    def regime(self, gamma_1: Any, gamma_2: Any) -> str:
        """The name of the regime at numbers."""
        return self.regimes.at(self._at(gamma_1, gamma_2)).name

    def continuity(self) -> dict[str, dict[str, Expr]]:
        """{"a | b": {exponent: difference where a and b meet}}; all are 0, for every k, which proves continuity.

        >>> spiked_covariance(None).regimes.continuous
        True
        """
        return self.regimes.continuity()

    # -- kernels, aligned --------------------------------------------------------------------------------------------------
    def kernel_degree(self, gamma_2: Any, kappa: Any = 1) -> Expr:
        """The degree along the spike that a kernel learns at n = d^kappa: the largest l < kappa/(1 - gamma_2), gamma_1 = 0.

        The component of degree l has eigenvalue (theta/d)^l, and is learned iff n (theta/d)^l >> 1. Theorem at kappa = 1 [ba2023],
        derived for others. At equality the degree is fitted in part, and not counted.

        >>> [spiked_covariance("sign").kernel_degree(g) for g in ("3/10", "3/5", "18/25", "17/20")]
        [1, 2, 3, 6]
        """
        b, size = self._at(None, gamma_2)[GAMMA_2], exact("kappa", kappa)
        if size.is_number and not float(size) > 0:
            raise BadInput(f"spiked-covariance: kappa is positive, not {kappa}")
        return ceiling(size/(1 - b)) - 1

    def aligned(self, gamma_2: Any = None, degree: Any = None) -> Claims:
        """The costs of a target along mu, gamma_1 = 0: for a kernel, for one gradient step, for the spherical flow.

        degree : l, of the part that a kernel is to learn (default: the information exponent k)

        >>> found = spiked_covariance("He3").aligned("1/2")
        >>> found["kernel_samples"], found["one_step_spike"], found["spherical_fails"]
        (3/2, 2/3, 1/2)
        """
        ell, b = self.k if degree is None else exact("degree", degree), self._at(None, gamma_2).get(GAMMA_2, GAMMA_2)
        if ell.is_number and not (ell.is_integer and ell > 0):
            raise BadInput(f"spiked-covariance: degree is a whole number, 1 or more, not {degree}")
        found = {"kernel_samples": Claim((1 - b)*ell, "derived", "ba2023", "n >> d^kernel_samples for degree l; theorem at n ~ d"),
                 "one_step_spike": Claim(1 - 1/self.k, "theorem", "ba2023",
                                         "theta >> d^one_step_spike is enough for a network with one gradient step at n ~ d")}
        if not self.k.is_number or self.k > 2:
            found["spherical_fails"] = Claim(1 - 1/(self.k - 1), "theorem", "mousavi2023",
                                             "the spherical flow fails for gamma_2 below it, k > 2 (derived, of He_k: always)")
        return Claims(f"{self._summary()}, aligned", found)

    # -- one gradient ------------------------------------------------------------------------------------------------------
    def slope_series(self, sigma: Any, order: int = 6) -> Expr:
        r"""E[g' sigma'] = sum_i (i + 1)^2 i! a_(i+1) a*_(i+1) rho^i, a_i = E[. He_i]/i!, for unit normals of correlation rho.

        With orthonormal coefficients the factor is i + 1; the (i + 1)^2 of one source is right in neither convention.

        >>> spiked_covariance("He3").slope_series("He3")
        18*rho**2
        """
        if self.g is None:
            raise BadInput("spiked-covariance: the series needs the target; give it")
        student = activation(sigma)
        terms = [coefficient(student, i + 1)*coefficient(self.g, i + 1)/factorial(i)*rho**i for i in range(order)]
        return Add(*terms)

    # -- showing -----------------------------------------------------------------------------------------------------------
    def plot(self, ax: Axes | None = None, *, points: int = 240) -> Axes:
        """The regimes over gamma_1 and gamma_2, with lines of equal sample exponent where k is known."""
        xs, ys = ([top*(i + 0.5)/points for i in range(points)] for top in (0.5, 1.0))
        ax = self.regimes.plot((GAMMA_1, xs), (GAMMA_2, ys), ax)
        if self.k.is_number and self.k > 1:
            start = [[-0.5 + max(0, b - a) - max(0, b - 2*a)/2 for a in xs] for b in ys]
            values = [[float(1 - 2*(int(self.k) - 1)*e) for e in row] for row in start]
            lines = ax.contour(xs, ys, values, levels=6, colors="0.25", linewidths=0.8)
            ax.clabel(lines, fontsize="x-small", fmt="%.2f")
            if legend := ax.get_legend():
                legend.set_title("lines: exponent of $d$ in $n$", prop={"size": "small"})  # type: ignore[arg-type]
        return ax

    def _at(self, gamma_1: Any, gamma_2: Any) -> dict[Symbol, Expr]:
        found = {}
        for symbol, given, top in ((GAMMA_1, gamma_1, Rational(1, 2)), (GAMMA_2, gamma_2, Integer(1))):
            if given is None:
                continue
            value = exact(symbol.name, given)
            if value.is_number and not (0 <= value <= top and (symbol is GAMMA_1 or value < 1)):
                raise BadInput(f"spiked-covariance: {symbol.name} must be between 0 and {top}, not {given}")
            found[symbol] = value
        return found

    def to_dict(self) -> dict[str, Any]:
        """The target, k, the exponents and the proof of continuity."""
        return {"target": None if self.g is None else self.g.name, "k": plain(self.k), **self.exponents().to_dict(),
                **self.regimes.to_dict()}

    def latex(self) -> str:
        """Both exponents as Piecewise."""
        return self.regimes.latex()

    def _html(self) -> str:
        html: str = self.exponents()._html()
        return html

    def _summary(self) -> str:
        return shorten(f"{'any target' if self.g is None else self.g.name}, k = {self.k}", 60)


def spiked_covariance(g: Formula | None = None, sigma: Formula | None = None, *, flow: str = "preconditioned") -> SpikedCovariance:
    """Learning one direction from data with one strong direction: kernels, samples and time of a neuron.

    n ~ d^(1 - 2 (k - 1) e_0), e_0 = -1/2 + (gamma_2 - gamma_1)_+ - (gamma_2 - 2 gamma_1)_+/2. Theorem [mousavi2023].

    Parameters
    ----------
    g : target in z, square integrable; None: k stays a symbol
    sigma : the neuron of the flows (default: the target's function)
    flow : "preconditioned", sigma(<w, x>/|Sigma^(1/2) w|) with the gradient times |Sigma^(1/2) w|^2 Sigma^(-1), the flow of the
        theorem; "rescaled", without Sigma^(-1); "normalised", the plain gradient; "spherical", sigma(<w, x>), |w| = 1

    Returns
    -------
    SpikedCovariance : `.start_exponent`, `.sample_exponent`, `.run_time` (Piecewise of gamma_1, gamma_2),
    `.exponents(gamma_1, gamma_2)` with their status, `.kernel_degree(gamma_2, kappa=1)`, `.aligned(gamma_2)`,
    `.slope_series(sigma)`, `.flow(kind, partial=False)`, `.curve(gamma_1=, gamma_2=, dimension=)`,
    `.escape_time(dimension=, gamma_1=, gamma_2=, preconditioned=True)`, `.continuity()`, `.plot()`.

    Raises
    ------
    BadInput : a target that is not square integrable, holds parameters, has several directions (no formula is known: the
        exponents of its fields are ``hx.exponents(g, covariance=...)``), or whose information exponent is not proved.

    Guarantee
    ---------
    Each formula carries its status. This is the limit of the sources; accuracy at finite dimension is not promised. See
    docs/promise.md.

    References: mousavi2023, ba2023.

    Examples
    --------
    >>> found = spiked_covariance("He3")
    >>> found.sample_exponent.subs({GAMMA_1: 0, GAMMA_2: 0}), found.kernel_degree("1/2", kappa="3/2")
    (3, 2)
    """
    if not isinstance(flow, str) or flow not in FLOWS:
        raise BadInput(f"spiked-covariance: the flow is {' or '.join(FLOWS)}, not {flow!r}")
    student = None if sigma is None else activation(sigma)
    if student is not None:
        require_numbers("spiked-covariance", "activation", student)
    if g is None:
        return SpikedCovariance(None, K, student, flow)
    made = target_of("spiked-covariance", g)
    if isinstance(made, DirectedTarget):
        one, other = made.variables[:2]
        raise BadInput("spiked-covariance: the theory has no formula for a target of several directions; its exponents, from the "
                       f"covariance of its fields: hx.exponents('{made.name}', covariance={{('{one}', '{other}'): "
                       "'1/2'})")
    require_numbers("spiked-covariance", "target", made)
    require_square_integrable("spiked-covariance", "target", made)
    if not made.expr.has(z):
        raise BadInput("spiked-covariance: the target is a constant; it has no direction")
    order = leap(made.expr, (z,)).first
    if order is None:
        raise BadInput(f"spiked-covariance: the information exponent of {made.name} could not be proved")
    return SpikedCovariance(made, Integer(order), student, flow)
