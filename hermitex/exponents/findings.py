"""The findings about a target as data: the numbers, their directions, their proofs; JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sympy import Expr

from hermitex.exponents.certificate import Certificate
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.stages import Threshold
from hermitex.show.display import Shown
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parsing import to_text
from hermitex.symbolic.precise import evaluate

Stage = dict[str, Any]
Found = TypeVar("Found", bound="Findings")
_OF_THE_MEAN = ("information", "leap", "kernel", "one_pass_sgd", "csq", "smoothed_sgd", "one_giant_step",
                "small_step_reuse", "absolute_loss")  # of E[Y|z], not of the label


@dataclass(frozen=True, repr=False)
class Findings(Shown):
    """The fields of an `Exponents`; `silent`: it is proved that "the label" does not depend on z, or that "its mean" does not.

    `law`: the channel itself, `channel`: its name. `over_normals`: for variables with a covariance the answer over
    standard normals, which this one restates; None for standard normals.
    """

    target: Expr
    variables: tuple[str, ...]
    channel: str
    square_integrable: bool | None
    information_exponent: int | None
    leap_exponent: int | None
    leap_coordinate: int | None
    staircase: tuple[Stage, ...]
    generative_exponent: int | None
    generative_staircase: tuple[Stage, ...]
    threshold: Threshold
    complexity: dict[str, str | None]
    certificates: tuple[Certificate, ...]
    notes: tuple[str, ...] = field(default=())
    numbers: dict[Expr, float | None] = field(default_factory=dict, repr=False)
    silent: str = ""
    law: NamedChannel | Channel | None = field(default=None, repr=False)
    over_normals: Findings | None = field(default=None, repr=False)

    @property
    def weak_recovery(self) -> dict[str, Any]:
        """{class, alpha_c, alpha_c_exact, alpha_c_error, method, stages} as on the command line.

        `alpha_c_error` bounds how far off the number may be; it is 0 where alpha_c is exact. Each stage has its own.
        A stage with `bound` holds once the directions before are perfectly known: a lower bound on the transition. Where AMP,
        which knows them in part, reaches it is `reached`, None where that was not found; `reached_error` is how far off that may
        be, None where it is alpha_c itself.
        """
        t = self.threshold
        alpha = _number(t.alpha_c)
        exact = None if t.exact is None else to_text(t.exact)
        stages = [{"alpha_c": _number(stage["alpha_c"]), "alpha_c_error": _error(stage["alpha_c"], stage.get("error")),
                   "directions": self._rows(stage["directions"]), "conditional": stage["conditional"],
                   "bound": stage.get("bound", False), "reached": _number(stage.get("reached")),
                   "reached_error": _number(stage.get("reached_error")) or None,
                   "method": stage.get("method") or None} for stage in t.stages]
        if not t.stages and alpha is not None:
            stages = [{"alpha_c": alpha, "alpha_c_error": _error(alpha, t.error), "directions": self._rows(stage["directions"]),
                       "conditional": False, "bound": False, "reached": alpha, "reached_error": None, "method": t.method or None}
                      for stage in self.generative_staircase]
        return {"class": t.kind, "alpha_c": alpha, "alpha_c_exact": exact, "alpha_c_error": _error(alpha, t.error),
                "method": t.method or None, "stages": stages}

    def absent(self, name: str, *, long: bool = False) -> str:
        """The text for a number that is None: "-" if it does not exist, "?" if it was not decided; in words if `long`."""
        of_mean = name.startswith(_OF_THE_MEAN) and (self.square_integrable is False or self.silent == "its mean")
        none = self.silent == "the label" or of_mean
        return ("does not exist" if long else "-") if none else "undetermined" if long else "?"

    @property
    def alpha_c(self) -> mpf | None:
        """The weak-recovery threshold, to 20 digits where it is exact; 0 if trivial, None if infinite or not known."""
        return self.threshold.alpha_c

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `hermitex exponents --json`."""
        return {
            "target": to_text(self.target), "variables": list(self.variables), "channel": self.channel,
            "square_integrable": self.square_integrable, "information_exponent": self.information_exponent,
            "leap_exponent": self.leap_exponent, "leap_coordinate": self.leap_coordinate,
            "staircase": [{**s, "directions": self._rows(s["directions"])} for s in self.staircase],
            "generative_exponent": self.generative_exponent,
            "generative_staircase": [{**s, "directions": self._rows(s["directions"])} for s in self.generative_staircase],
            "weak_recovery": self.weak_recovery,
            "complexity": dict(self.complexity), "certificates": [c.to_dict() for c in self.certificates],
            "notes": list(self.notes),
        }

    def _rows(self, rows: Sequence[Sequence[Any]]) -> list[list[int | float | None]]:
        """Exact rows as JSON numbers; null for an integral whose number was not found."""
        return [[x if isinstance(x, int | float) else int(x) if x.is_Integer else self.numbers.get(x) if x.has(Expectation)
                 else float(evaluate(x, 20)) for x in row] for row in rows]


def with_directions(found: Found, changed: Callable[[Any], Any]) -> Found:
    """The same answer with the directions of each stage as `changed` gives them."""
    staircase, generative, stages = (
        tuple({**s, "directions": changed(s["directions"])} for s in old)
        for old in (found.staircase, found.generative_staircase, found.threshold.stages))
    return replace(found, staircase=staircase, generative_staircase=generative, threshold=replace(found.threshold, stages=stages))


def _error(value: Any, error: Any) -> float | None:
    """The error of a threshold: 0 if it is exact, None without a number."""
    return None if value is None else float(error or 0)


def _number(x: Any) -> float | None:
    return None if x is None else float(x)
