"""(lam, alpha) -> test_error: several curves along one axis, one for each value of what they differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, overload

from hermitex.errors import HermitexError
from hermitex.hints import Axes
from hermitex.show.cite import Cited
from hermitex.show.columns import Tabled
from hermitex.show.display import Shown, counted
from hermitex.theories.curve import Curve


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Cited, Tabled, Shown, Sequence[Curve]):
    """Curves in the order asked: `curves[0]` is a `Curve`; one picture, whose legend says what differs, and one table.

    curves : the curves;  each : names of what they differ in

    Guarantee: as of each `Curve`. See docs/promise.md.

    >>> from hermitex.theories import glm
    >>> both = Curves(tuple(glm().curve(alpha=[1, 2], lam=lam) for lam in (0.1, 1)), ("lam",))
    >>> len(both), both.table()["lam"], both[1].test_error.round(4)
    (2, [0.1, 0.1, 1.0, 1.0], array([0.4472, 0.2071]))
    """

    curves: tuple[Curve, ...]
    each: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Curve: ...
    @overload
    def __getitem__(self, index: slice) -> Curves: ...
    def __getitem__(self, index: int | slice) -> Curve | Curves:
        return Curves(self.curves[index], self.each) if isinstance(index, slice) else self.curves[index]

    def __len__(self) -> int:
        return len(self.curves)

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves)

    def table(self) -> dict[str, list[Any]]:
        """The columns of every curve, one curve below the other; first those in which they differ, so that `hx.load` knows them."""
        tables = [one.table() for one in self.curves]
        names = dict.fromkeys((*(n for n in self.each if any(n in t for t in tables)), *(n for t in tables for n in t)))
        return {n: [v for t, one in zip(tables, self.curves, strict=True) for v in t.get(n, [None]*len(one))] for n in names}

    def to_dict(self) -> dict[str, Any]:
        """{"curves": [the JSON of each]}."""
        return {"curves": [one.to_dict() for one in self.curves]}

    @property
    def sources(self) -> list[str]:
        """The papers whose results were used."""
        return [k for one in self.curves for k in one.sources]

    def plot(self, ax: Axes | None = None, **how: Any) -> Axes:
        """Every curve on the same axes, the keywords those of `Curve.plot`; the legend says what differs between them."""
        from hermitex.show.plots import new_axes

        ax = new_axes(ax)
        for one in self.curves:
            ax = one.plot(ax, **how)
        return ax

    def _html(self) -> str:
        from hermitex.show.plots import embedded

        try:
            picture = embedded(self.plot())
        except (HermitexError, ValueError):  # no matplotlib, or nothing that can be drawn
            picture = ""
        heads = [", ".join(f"{n} = {one.parameters[n]}" for n in self.each if n in one.parameters) for one in self.curves]
        return picture + "".join(f"<p>{escape(f'{head}: {one!r}')}</p>" for head, one in zip(heads, self.curves, strict=True))

    def _summary(self) -> str:
        of = f", one for each {' and '.join(self.each)}" if self.each else ""
        first = self.curves[0]
        return f"{counted(len(self.curves), 'curve')} of {first.theory} along {first.axis}{of}"
