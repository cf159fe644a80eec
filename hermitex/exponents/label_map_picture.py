"""The picture of T*(y) against the label: lines where labels have a density, points where they have a mass of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from hermitex.show.plots import curves, new_axes


def draw(found: Any, ax: Any = None) -> Any:
    """The lines of `LabelMap.plot`: T* along each common eigenvector, or its entries."""
    ax = new_axes(ax)
    law, most = found.law, 24  # single labels that can be told apart in a picture
    order = np.argsort(law.labels)
    cumulative = np.cumsum(law.masses[0][order])/np.sum(law.masses[0])
    low, high = law.labels[order][np.minimum(np.searchsorted(cumulative, [1e-3, 1 - 1e-3]), len(order) - 1)]
    if law.law is not None:
        y = np.linspace(low, high, 601)[1:-1]
        y = np.concatenate([-y[::-1], y]) if law.folded else y
        ax = curves(y.tolist(), {name: values.tolist() for name, values in _lines(found, y).items()}, ax, xlabel="label $y$",
                    ylabel="$T^*(y)$")
        shown = np.concatenate(list(_lines(found, y).values()))
        # T* falls to -inf where E[z^2|y] vanishes: the picture ends at -4
        ax.set_ylim(max(float(np.nanmin(shown)), -4.0) - 0.2, float(np.nanmax(shown)) + 0.2)
    atoms = np.array([a for a, nu in law.atoms if low <= a <= high])[:most]
    if len(atoms):
        for n, (name, values) in enumerate(_lines(found, atoms).items()):
            line = ax.plot(atoms, values, "o", color=f"C{n}", markersize=5, label=None if law.law is not None else name)
            line[0].set_gid("atoms")
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        ax.set(xlabel="label $y$", ylabel="$T^*(y)$")
        if law.law is None and len(_lines(found, atoms)) > 1:
            ax.legend(frameon=False, fontsize="small")
    return ax


def _lines(found: Any, y: np.ndarray) -> dict[str, np.ndarray]:
    values = found(y)
    if len(found.variables) == 1:
        return {"$T^*$": values}
    if len(found.directions) and not found.shared:
        return {f"along {form}": np.einsum("i,nij,j->n", row, values, row)
                for form, row in zip(found.forms(), found.directions, strict=True)}
    r = len(found.variables)
    return {f"$T^*_{{{i + 1}{j + 1}}}$": values[:, i, j] for i in range(r) for j in range(i, r)}
