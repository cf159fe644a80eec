r"""alpha_c, where M = 0 becomes unstable; alpha_s, where a branch turns; the alphas at which further overlaps leave 0 or reach 1.

The transitions of a state evolution whose overlaps come one by one, located on its curves alpha(q), and the picture of both
branches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from hermitex.errors import HermitexError, UnknownName
from hermitex.exponents.laws.mechanisms import stage_value
from hermitex.hints import Axes, DataFrame
from hermitex.show.display import Shown, number, words_table
from hermitex.symbolic.subspaces import matrix


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Shown):
    """Where the state evolution changes.

    Attributes
    ----------
    weak_recovery : alpha at which the uninformed overlaps leave zero (0: at once; inf: never at n = O(d))
    spinodals : ((alpha, overlap, name), ...) turning points of alpha(overlap): the uninformed branch ends, the informed begins
    stages : ((alpha, names), ...) at which further overlaps leave zero along the uninformed branch
    alpha_IT : alpha at which the Bayes-optimal overlap jumps, None where it is continuous, and AMP is optimal; as ["alpha_IT"], too
    """

    theory: Any
    weak_recovery: float
    spinodals: tuple[tuple[float, float, str], ...]
    stages: tuple[tuple[float, tuple[str, ...]], ...]

    @cached_property
    def alpha_IT(self) -> float | None:
        """Where the largest value of the free entropy changes its place, computed at the first request."""
        found: float | None = self.theory.optimal_jump()
        return found

    def __getitem__(self, name: str) -> Any:
        """One of its quantities by name: "weak_recovery", "spinodals", "stages", "alpha_IT"."""
        known = ("weak_recovery", "spinodals", "stages", "alpha_IT")
        if name not in known:
            raise UnknownName(str(name), known, "transition")
        return getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and names."""
        return {"weak_recovery": self.weak_recovery, "spinodals": [list(s) for s in self.spinodals],
                "stages": [[a, list(n)] for a, n in self.stages]}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame, one row a transition: what happens, at which alpha, to which overlaps."""
        from hermitex.show.tables import to_dataframe

        rows = self._rows()
        return to_dataframe({"transition": [r[0] for r in rows], "alpha": [r[1] for r in rows],
                             "overlaps": [", ".join(r[2]) for r in rows], "at": [r[3] for r in rows]})

    def bibtex(self) -> str:
        """BibTeX of the papers whose results are used."""
        text: str = self.theory.bibtex()
        return text

    def _rows(self) -> list[tuple[str, float, tuple[str, ...], float | None]]:
        rows: list[tuple[str, float, tuple[str, ...], float | None]] = [("weak recovery", self.weak_recovery, (), None)]
        rows += [("turning point", a, (n,), q) for a, q, n in self.spinodals]
        return rows + [("further overlaps", a, n, None) for a, n in self.stages]

    def _html(self) -> str:
        rows, k = [], self.theory.output.digits
        for what, a, which, at in self._rows():
            said = re.sub(r"M(\d)(\d)", r"M_{\1\2}", ", ".join(which)) + ("" if at is None else f" = {number(at, k - 3)}")
            rows.append((what, rf"$\alpha = {number(a, k + 1)}$" + (f", ${said}$" if said else "")))
        return words_table(rows, title=f"State evolution of {self.theory.g}")

    def _summary(self) -> str:
        k = self.theory.output.digits
        said = [f"weak recovery at alpha = {self.weak_recovery:.{k}g}"]
        said += [f"{n} turns at alpha = {a:.{k - 1}g}, {n} = {q:.{k - 3}g}" for a, q, n in self.spinodals]
        said += [f"{', '.join(n)} at alpha = {a:.{k}g}" for a, n in self.stages]
        return "; ".join(said)

    def __repr__(self) -> str:
        # Whole: what a cut leaves of a number is another number.
        return f"{type(self).__name__}({self._summary()})"

    def plot(self, ax: Axes | None = None, *, alpha: Any = None, points: int = 60) -> Axes:
        """The overlaps along alpha: the uninformed branch drawn, the informed one dashed where it differs, thresholds dotted."""
        from hermitex.theories.overlaps.picture import overlaps

        marks = self.marks()
        if alpha is None:
            top = 1.6*max(marks) if marks else 3.0
            grid = np.linspace(0.02*top, top, points)
            alpha = np.unique(np.concatenate([grid, *([m*(1 - 1e-3), m*(1 + 1e-3)] for m in marks)]))
        low, high = (self.theory.curve(alpha, branch=b) for b in ("uninformed", "informed"))
        return overlaps(ax, low, high, marks)

    def marks(self) -> list[float]:
        """The alphas that are finite and not 0, in increasing order."""
        found = (self.weak_recovery, *(s[0] for s in self.spinodals), *(s[0] for s in self.stages))
        return sorted(float(a) for a in found if np.isfinite(a) and a > 0)


def transitions(theory: Any) -> Transitions:
    """The transitions of a multi-index theory.

    Examples
    --------
    >>> from hermitex.theories import multi_index
    >>> multi_index("sign(z1*z2)").transitions()
    Transitions(weak recovery at alpha = 2.4674011)

    For "sign(z1) + sign(z2)" weak recovery is at 0, and the two directions separate, M11/2 + M22/2 - M12, at 2.0523824.
    """
    evolution = theory.evolution
    along = evolution.by_branches and (evolution.n > 1 or not theory.space.diagonal)
    found = _along_branches(theory, evolution) if along else _entry_by_entry(theory, evolution)
    return replace(found, weak_recovery=_of_the_label(theory, found.weak_recovery))


def _of_the_label(theory: Any, alpha: float) -> float:
    """alpha_c, near `alpha`, by the law of the label where the exponents know it: F(M) is E[G M G] next to zero."""
    if not 0 < alpha < np.inf:
        return alpha
    try:
        known = stage_value(theory.label[0], theory.label[1], theory.reduced.names, matrix([], theory.output.r))
    except HermitexError:
        return alpha
    same = 1e-4  # two routes to a threshold
    sharp = known.error < alpha*10.0**-theory.output.digits and abs(known.alpha/alpha - 1) < max(same, 10.0**-theory.output.digits)
    return float(known.alpha) if sharp else alpha


def _along_branches(theory: Any, evolution: Any) -> Transitions:
    """The stages of the branches, and their turning points."""
    found = evolution.branches
    if not found:
        return Transitions(theory, float("inf"), (), ())
    spinodals = [(alpha, q, combination(path.K)) for _, path in found for alpha, q in path.line.spinodals()]
    stages = tuple((alpha, (combination(path.K),)) for alpha, path in found[1:])
    return Transitions(theory, found[0][0], tuple(spinodals), stages)


def combination(K: np.ndarray) -> str:
    """tr(K M)/tr(K) in words: M11 - M12 for the antisymmetric direction of two, where M11 = M22.

    >>> combination(np.array([[0.5, -0.5], [-0.5, 0.5]]))
    'M11/2 + M22/2 - M12'
    """
    weights = 2*K/np.trace(K) - np.diag(np.diag(K))/np.trace(K)
    said = ""
    for i, j in sorted(combinations_with_replacement(range(len(K)), 2), key=lambda e: e[0] != e[1]):
        size, name = abs(weights[i, j]), f"M{i + 1}{j + 1}"
        if size < 1e-6:
            continue
        near = Fraction(size).limit_denominator(12)
        if abs(float(near) - size) > 1e-7:
            text = f"{round(size, 4)} {name}"
        elif near.numerator == 1:
            text = name if near == 1 else f"{name}/{near.denominator}"
        else:
            text = f"{near} {name}"
        sign = "-" if weights[i, j] < 0 else "+"
        said += f" {sign} {text}" if said else f"{sign}{text}".removeprefix("+")
    return said


def _entry_by_entry(theory: Any, evolution: Any) -> Transitions:
    """The transitions of overlaps that come one by one, each on its curve alpha(q)."""
    x, spinodals, stages = np.zeros(evolution.n), [], []
    left = list(range(evolution.n))
    reached = 0.0
    while left:
        rate, moved = evolution.leaving_zero(x, left)
        if rate <= 0:
            break
        alpha = max(evolution.line(x, moved[0]).threshold if len(moved) == 1 else 1/rate, reached)
        stages.append((alpha, tuple(evolution.name(k) for k in moved)))
        if len(moved) > 1:
            break
        k = moved[0]
        line = evolution.line(x, k)
        spinodals += [(a, q, evolution.name(k)) for a, q in line.spinodals()]
        left.remove(k)
        if not evolution.can_be_one(k):
            break  # a later stage starts from an overlap that itself moves with alpha: it is on the curve
        x[k] = 1.0
        reached = max([stages[0][0], *(a for a, *_ in spinodals)])
    return Transitions(theory, float(stages[0][0] if stages else np.inf), tuple(spinodals), tuple(stages[1:]))
