r"""test_error = ||P_{>l} g||^2, l = floor(min(kappa, kappa_p)): what fixed features learn of g from n = d^kappa samples.

P_k projects on the Hermite polynomials of total degree k, ||P_k g||^2 = sum_{|a| = k} E[g He_a]^2/a!; p = d^kappa_p features
[mei2022hypercontractivity]. Status: theorem, for kernels of inner products and for random features, kappa and kappa_p no integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Add, Expr, Symbol

from hermitex.errors import BadInput
from hermitex.hints import Formula
from hermitex.show.display import latex, shorten
from hermitex.symbolic.series.coefficients import target
from hermitex.symbolic.series.expansion import Expansion, expand
from hermitex.symbolic.summands import split
from hermitex.theories.plateaus import Plateaus, steps_below


@dataclass(frozen=True, repr=False)
class KernelLimit(Plateaus):
    """The error of kernels and random features over kappa; `.weights`, `.weight(k)`, `.tail(k)`.

    Guarantee: exact up to the degree that `.tail` leaves. See docs/promise.md.

    >>> kernel_limit("z**2").curve(kappa=[0.5, 1.5, 2.5]).test_error
    array([2., 2., 0.])
    """

    g: Expr
    variables: tuple[Symbol, ...]

    name: ClassVar[str] = "kernel"
    sources: ClassVar[tuple[str, ...]] = ("mei2022hypercontractivity",)
    status: ClassVar[str] = "test_error: theorem (mei2022hypercontractivity), up to what vanishes as d grows; kappa not an integer"

    def letters(self) -> dict[str, Any]:
        """kappa = log n/log d; kappa_p = log p/log d, the width of random features (default: inf, the kernel)."""
        return {"kappa": self.REQUIRED, "kappa_p": np.inf}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        return self.checked(numbers, kappa=">= 0", kappa_p=">= 0 inf")

    @cached_property
    def _seen(self) -> tuple[Expr, tuple[Symbol, ...]]:
        """g over its relevant directions alone, which have the same weights: tanh((z1 + z2)/2) is tanh(s/sqrt(2))."""
        parts = split(self.g, self.variables)
        if parts.polynomial == 0 and len(parts.summands) == 1 and 0 < len(parts.summands[0].names) < len(self.variables):
            return parts.summands[0].expr, parts.summands[0].names
        return self.g, self.variables

    def expansion(self, order: int) -> Expansion:
        """The orthonormal Hermite series up to a total order; the longest requested one is kept."""
        known: Expansion | None = self.__dict__.get("_known")
        if known is None or known.order < order:
            g, variables = self._seen
            known = expand(g, variables, order=order, basis="orthonormal")
            object.__setattr__(self, "_known", known)
        return known

    def weight(self, degree: int) -> Expr:
        """||P_k g||^2, exactly (over unevaluated averages where they have no closed form).

        >>> kernel_limit("sign").weight(3)
        1/(3*pi)
        """
        found = self.expansion(max(degree, 8)).coefficients
        return Add(*(c**2 for a, c in found.items() if (a if isinstance(a, int) else sum(a)) == degree))

    @property
    def weights(self) -> dict[int, Expr]:
        """{k: ||P_k g||^2} for k = 0, ..., 8."""
        return {k: self.weight(k) for k in range(9)}

    def tail(self, degree: int) -> float:
        """||P_{>k} g||^2 to 15 digits; `.expansion(k).tail(k)` is the formula.

        >>> round(kernel_limit("relu").tail(2), 10)
        0.0112675854
        """
        expansion = self.expansion(max(degree, 8))
        return max(0.0, float(expansion.numeric(expansion.tail(degree)).value))

    def reached(self, numbers: Any) -> tuple[float, float]:
        """l = floor(min(kappa, kappa_p)), below it and there."""
        return steps_below(min(numbers["kappa"], numbers["kappa_p"]))

    def described(self, fixed: Any) -> dict[str, Any]:
        """The target, and the width where it is finite."""
        return {"target": str(self.g), **{k: v for k, v in fixed.items() if v != np.inf}, "status": self.status}

    def latex(self) -> str:
        """The first weights, exactly."""
        rows = [rf"  \|P_{{{k}}} g\|^2 &= {latex(w)}" for k, w in self.weights.items() if k <= 4]
        return "\\begin{align}\n" + " \\\\\n".join(rows) + "\n\\end{align}"

    _html = Plateaus._with_formula

    @property
    def _label(self) -> str:
        return f"kernel, ${latex(self.g)}$"

    def _summary(self) -> str:
        return shorten(str(self.g), 60)


def kernel_limit(g: Formula) -> KernelLimit:
    r"""What a kernel learns of g from n = d^kappa samples: its part of degree <= kappa, and nothing else.

    test_error = ||P_{>l} g||^2, l = floor(min(kappa, kappa_p)), ||P_k g||^2 = sum_{|a| = k} E[g He_a]^2/a!. Theorem
    [mei2022hypercontractivity], for kappa and kappa_p that are not integers: at an integer the part of that degree is
    fitted in part.

    Parameters
    ----------
    g : target in z, or in z1, z2, ...; square integrable

    Returns
    -------
    KernelLimit : `.weights` {k: ||P_k g||^2}, `.weight(k)`, `.tail(k)`, `.solve(kappa=, kappa_p=inf)`, `.curve(kappa=[...])`,
    `.plot()`.

    Raises
    ------
    BadInput : g holds free parameters. Divergent : it is not square integrable.

    Guarantee
    ---------
    The weights are exact where a closed form exists, else digits of double precision. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: mei2022hypercontractivity.

    Examples
    --------
    >>> kernel_limit("sign").weights[1], kernel_limit("z1*z2 + z1").weights[2]
    (2/pi, 1)
    >>> kernel_limit("relu").curve(kappa=[0.5, 1.5, 2.5]).test_error.round(6)
    array([0.340845, 0.090845, 0.011268])
    """
    body, variables = target(g)
    if extra := body.free_symbols - set(variables):
        raise BadInput(f"kernel: the target holds {', '.join(sorted(map(str, extra)))}; put numbers in")
    return _made(body, variables)


@lru_cache(maxsize=32)
def _made(g: Expr, variables: tuple[Symbol, ...]) -> KernelLimit:
    """One object for one target, so that what is known of its series is kept."""
    made = KernelLimit(g, variables)
    made.expansion(0)  # a target that is not square integrable is refused here
    return made
