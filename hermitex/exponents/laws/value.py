"""alpha_c = (1/alpha_c)^-1 with what is known of it: its closed form, its error, and the directions that it is not about."""

from __future__ import annotations

from typing import Any, NamedTuple

from sympy import Expr, S

from hermitex.errors import NoClosedForm
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.precise import evaluate


class Value(NamedTuple):
    """alpha_c of one stage: exact where it has a closed form, and an absolute error."""

    alpha: mpf
    exact: Expr | None
    error: mpf
    notes: tuple[str, ...] = ()
    remaining: LaterDirections | None = None
    method: str = ""


class LaterDirections(NamedTuple):
    """Directions of the stage (rows over its variables) that alpha_c does not concern: they are found at a larger alpha."""

    first: Any
    rows: Any
    alpha: Any
    exact: Expr | None = None
    error: mpf = mpf(0)

    def over(self, rows: Any) -> LaterDirections:
        """The same over other variables, in which the coordinates here are `rows`."""
        import numpy as np

        return self._replace(first=np.asarray(self.first) @ rows, rows=np.asarray(self.rows) @ rows)


def threshold_from_number(inverse: float, error: float) -> Value:
    """alpha_c from a number for 1/alpha_c, with a note where it has less than ten digits.

    Raises
    ------
    NoClosedForm : zero, or an error of more than half of the number.
    """
    if not (inverse > 0 and 2*error <= inverse):
        raise NoClosedForm("alpha_c", f"1/alpha_c is {float(inverse):.1e} with an error of {float(error):.1e}",
                           "Give the target in another form, or less noise")
    alpha, relative = 1 / mpf(inverse), mpf(error) / mpf(inverse) + mpf(10) ** -13
    claimed = mpf(10) ** -10  # relative: ten digits are shown without a note
    notes = () if relative < claimed else (f"alpha_c: {float(relative):.1e} relative accuracy reached",)
    return Value(alpha, None, alpha * relative, notes)


def as_array(rows: Any) -> Any:
    """Exact rows in double precision."""
    import numpy as np

    return np.array([[float(evaluate(S(x), 20)) for x in row] for row in rows.tolist()])
