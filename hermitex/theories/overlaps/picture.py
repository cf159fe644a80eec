r"""M_ij(alpha) on both branches and where they change: the picture of a state evolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hermitex.errors import HermitexError
from hermitex.hints import Axes
from hermitex.theories.curve import Curve


@dataclass(frozen=True, eq=False, repr=False)
class OverlapCurve(Curve):
    """A curve of overlaps, which draws them on both branches; `model` is the theory it comes from."""

    model: Any = None

    @classmethod
    def of(cls, curve: Curve, model: Any) -> OverlapCurve:
        """The same curve."""
        return cls(**{f.name: getattr(curve, f.name) for f in fields(curve) if f.name != "model"}, model=model)

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None, label: str | None = None,
             log: tuple[bool, bool] | None = None) -> Axes:
        """The overlaps: the branch of the curve drawn, the other dashed where it differs, transitions dotted, AMP as points.

        quantity : one quantity alone, "test_error" or an overlap, as of any curve
        """
        if quantity is not None or self.model is None:
            return super().plot(ax, quantity=quantity, label=label, log=log)
        branch = str(self.parameters.get("branch", "uninformed"))
        other = "informed" if branch == "uninformed" else "uninformed"
        beside = self.model.curve(self.alpha, branch=other) if len(self) > 1 else None
        try:
            evolution = self.model.evolution
            quick = len(self) > 1 and (evolution.output.quick or evolution.n == 1 or not evolution.by_branches)
            found = self.model.transitions() if quick else None
            marks = () if found is None else found.marks()
        except (HermitexError, ArithmeticError):
            marks = ()  # the overlaps are the picture; what could not be located is not drawn
        ax = overlaps(ax, self, beside, marks, other)
        ax.set_title(label or self.title, fontsize="medium")
        return ax


def overlaps(ax: Any, curve: Curve, beside: Curve | None, marks: Sequence[float], other: str = "informed") -> Any:
    """Draw the overlaps of a curve, another branch where it differs, and the alphas at which they change."""
    from hermitex.show.plots import COLOURS, new_axes

    ax = new_axes(ax)
    low, high = float(curve.alpha.min()), float(curve.alpha.max())
    apart_somewhere = False
    for i, (name, label) in enumerate(_distinct(curve, beside).items()):
        colour = COLOURS[i % len(COLOURS)]
        ax.plot(curve.alpha, curve[name], color=colour, linewidth=1.6, label=label, marker="o" if len(curve) == 1 else None)
        if beside is not None:
            apart = np.abs(beside[name] - curve[name]) > 1e-6
            near = apart | np.roll(apart, 1) | np.roll(apart, -1)  # from where the branches meet
            near[[0, -1]] = apart[[0, -1]]
            if apart.any():
                apart_somewhere = True
                ax.plot(curve.alpha, np.where(near, beside[name], np.nan), color=colour, linewidth=1.6, linestyle="--")
        if curve.simulation is not None and name in curve.simulation:
            s = curve.simulation
            ax.errorbar(s.alpha, s[name], yerr=s.standard_error.get(name), color=colour, fmt="o", markersize=4, capsize=2)
    if apart_somewhere:
        ax.plot([], [], color="0.4", linewidth=1.6, linestyle="--", label=other)
    if curve.simulation is not None:
        ax.plot([], [], color="0.4", marker="o", linestyle="", markersize=4, label=curve.simulation.title or "AMP")
    inside = [m for m in marks if low < m < high]
    for m in inside:
        ax.axvline(m, color="0.6", linestyle=":", linewidth=1.1, zorder=0)
    if inside:
        said = ", ".join(f"{m:.4g}" for m in inside)
        ax.plot([], [], color="0.6", linestyle=":", linewidth=1.1, label=rf"change at $\alpha = {said}$")
    ax.set_xlabel(r"$\alpha = n/d$")
    ax.set_ylabel("overlap")
    shown = np.concatenate([np.nan_to_num(curve[n]) for n in curve.order_parameters])
    ax.set_ylim(min(-0.03, 1.1*float(shown.min())), 1.03)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize="small", framealpha=0.9, edgecolor="none")
    return ax


def _distinct(curve: Curve, beside: Curve | None) -> dict[str, str]:
    """One name for overlaps that agree on both branches; vanishing ones come last, as one, or not at all if off the diagonal."""
    found: dict[str, list[str]] = {}
    both = [c for c in (curve, beside) if c is not None]
    for name in curve.order_parameters:
        zero = all(np.all(np.abs(np.nan_to_num(c[name])) < 1e-9) for c in both)
        if zero and name[1] != name[2]:
            continue
        same = next((k for k in found if all(np.allclose(c[k], c[name], atol=1e-9, equal_nan=True) for c in both)), None)
        found.setdefault(same or name, []).append(name)
    return {k: " = ".join(f"$M_{{{n[1:]}}}$" for n in v) for k, v in found.items()}
