"""test_error(kappa) = sum_{D > l(kappa)} P_D: an error that falls in steps, where n = d^kappa suffices for one more degree.

P_D is the weight of the target at degree D and l(kappa) the degree that is fitted; a subclass gives both. At a step itself the
degree is fitted in part only: the error lies between its values on the two sides, and the reason of that point says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, oo

from hermitex.errors import BadInput
from hermitex.solvers.solution import Solution
from hermitex.theories.theory import Theory

HIGHEST = 60    # the last degree that a curve asks for
_SAME = 1e-9    # a kappa this close to a step is at it


class Plateaus(Theory):
    """What theories whose error falls in steps of kappa = log n/log d share."""

    axis: ClassVar[str] = "kappa"
    ratio: ClassVar[str] = r"\log n/\log d"
    status: ClassVar[str] = ""  # of the test error: theorem, derived or heuristic, and whose

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """The degree that is fitted."""
        return ("degree",)

    @property
    def errors(self) -> tuple[str, ...]:
        """The test error against the clean target."""
        return ("test_error",)

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

    def reached(self, numbers: Mapping[str, float]) -> tuple[float, bool]:
        """The degree that is fitted (oo: all), and whether the point is at a step."""
        raise NotImplementedError

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """test_error and degree, point by point; nothing is solved."""
        names = list(numbers)
        arrays = np.broadcast_arrays(*numbers.values())
        points = [self.reached(dict(zip(names, p, strict=True))) for p in zip(*(a.ravel().tolist() for a in arrays), strict=True)]
        highest = max((k for k, _ in points if k < np.inf), default=0)
        if highest > HIGHEST:
            raise BadInput(f"{self.name}: degrees up to {HIGHEST} are computed; kappa = {float(np.max(numbers['kappa'])):g} asks "
                           f"for degree {int(highest)}")
        tails = {k: 0.0 if k == np.inf else self.tail(int(k)) for k, _ in points}
        shape = arrays[0].shape
        reason = np.array([self._said(k) if at and self._changes(k) else "" for k, at in points], dtype=object).reshape(shape)
        value = {"test_error": np.array([tails[k] for k, _ in points]).reshape(shape),
                 "degree": np.array([k for k, _ in points], dtype=float).reshape(shape)}
        notes = tuple(dict.fromkeys(r for r in reason.ravel() if r))
        one = shape == ()
        return Solution({n: v.item() if one else v for n, v in value.items()}, 0.0 if one else np.zeros(shape),
                        True if one else np.full(shape, True), method="explicit", reason=reason.item() if one else reason,
                        unknowns=("degree",), notes=(*notes, self.status))

    def _changes(self, degree: float) -> bool:
        """Whether the error steps down where this degree is reached."""
        return degree == np.inf or self.tail(int(degree) - 1) > self.tail(int(degree))

    def _said(self, degree: float) -> str:
        words = "the rest of the target is" if degree == np.inf else f"the part of degree {int(degree)} is"
        return f"at a step: {words} fitted in part only, the error lies between those on the two sides"

    def plot(self, ax: Any = None, *, kappa: tuple[float, float] = (0.0, 4.0), points: int = 801, label: str | None = None) -> Any:
        """The plateaus of the error over kappa, and the target's norm as the level above them."""
        line = np.linspace(*kappa, points)
        ax = self.curve(line, title=self.name).plot(ax, label=self._label if label is None else label)
        ax.set_ylim(bottom=0)
        return ax

    @property
    def _label(self) -> str:
        return self.name


def steps_below(x: float) -> tuple[float, bool]:
    """The last whole number that is reached at x >= 0, and whether x is that number (to rounding), which 0 is not."""
    if x == np.inf or x is oo:
        return np.inf, False
    nearest = round(x)
    at = abs(x - nearest) <= _SAME*max(1.0, abs(x))
    return float(nearest if at else np.floor(x)), bool(at and nearest > 0)
