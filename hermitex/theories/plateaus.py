"""test_error(kappa) = sum_{D > l(kappa)} P_D: an error that falls in steps, where n = d^kappa suffices for one more degree.

P_D is the weight of the target at degree D and l(kappa) the degree that is fitted; a subclass gives both. At a step
itself its degree is fitted only in part: the error is between the values on the two sides, and the reason of the point says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, oo

from hermitex.errors import BadInput
from hermitex.hints import Axes
from hermitex.solvers.solution import Solution
from hermitex.theories.theory import Theory


class Plateaus(Theory):
    """What theories whose error falls in steps of kappa = log n/log d share."""

    axis: ClassVar[str] = "kappa"
    ratio: ClassVar[str] = r"\log n/\log d"
    status: ClassVar[str] = ""  # of the test error: theorem, derived or heuristic, and whose

    order_parameters = ("degree",)  # the degree that is fitted

    errors = ("test_error",)  # the test error against the clean target

    def letters(self) -> dict[str, Any]:
        """kappa = log n/log d."""
        return {"kappa": self.REQUIRED}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        return self.checked(numbers, kappa=">= 0")

    def weight(self, degree: int) -> Expr:
        """P_D, exactly."""
        raise NotImplementedError

    def tail(self, degree: int) -> float:
        """sum_{D > degree} P_D, to 15 digits."""
        raise NotImplementedError

    def reached(self, numbers: Mapping[str, float]) -> tuple[float, float]:
        """The degrees that are fitted just below the point and from it on (oo: all); they differ at a step."""
        raise NotImplementedError

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """test_error and degree, point by point; nothing is solved."""
        names = list(numbers)
        arrays = np.broadcast_arrays(*numbers.values())
        points = [self.reached(dict(zip(names, p, strict=True))) for p in zip(*(a.ravel().tolist() for a in arrays), strict=True)]
        highest = max((k for _, k in points if k < np.inf), default=0)
        most = 60  # the highest degree of a curve
        if highest > most:
            raise BadInput(f"{self.name}: degrees up to {most} are computed; kappa = {float(np.max(numbers['kappa'])):g} needs "
                           f"degree {int(highest)}")
        tails = {k: 0.0 if k == np.inf else self.tail(int(k)) for point in points for k in point}
        shape = arrays[0].shape
        reason = np.array([_at_a_step(*p) if tails[p[0]] > tails[p[1]] else "" for p in points], dtype=object).reshape(shape)
        value = {"test_error": np.array([tails[k] for _, k in points]).reshape(shape),
                 "degree": np.array([k for _, k in points], dtype=float).reshape(shape)}
        notes = tuple(dict.fromkeys(r for r in reason.ravel() if r))
        one = shape == ()
        return Solution({n: v.item() if one else v for n, v in value.items()}, 0.0 if one else np.zeros(shape),
                        True if one else np.full(shape, True), method="explicit", reason=reason.item() if one else reason,
                        unknowns=("degree",), notes=(*notes, self.status))

    def plot(self, ax: Axes | None = None, *, kappa: tuple[float, float] = (0.0, 4.0), points: int = 801,
             label: str | None = None) -> Axes:
        """The plateaus of the error over kappa, and the target's norm as the level above them."""
        line = np.linspace(*kappa, points)
        ax = self.curve(line, title=self.name).plot(ax, label=self._label if label is None else label)
        ax.set_ylim(bottom=0)
        return ax

    @property
    def _label(self) -> str:
        return self.name


def _at_a_step(before: float, degree: float) -> str:
    above = f"above degree {before:.0f}"
    words = (f"the part {above} is" if degree == np.inf else f"the part of degree {degree:.0f} is" if degree == before + 1 else
             f"the parts {above} up to {degree:.0f} are")
    return f"at a step: {words} fitted in part only, and the error is between the values on the two sides"


def steps_below(x: float) -> tuple[float, float]:
    """The last whole number below x >= 0 and the last that is not above it (to rounding); of 0 both are 0.

    >>> steps_below(2.5), steps_below(3)
    ((2.0, 2.0), (2.0, 3.0))
    """
    if x == np.inf or x is oo:
        return np.inf, np.inf
    nearest = round(x)
    same = 1e-9  # a kappa this close to a step is at it
    if abs(x - nearest) <= same*max(1.0, abs(x)):
        return float(max(nearest - 1, 0)), float(nearest)
    return float(np.floor(x)), float(np.floor(x))
