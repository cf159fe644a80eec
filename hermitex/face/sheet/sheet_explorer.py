"""The explorer of a sheet: the learning curve with its bounds, and the spectrum, over a grid of ridge, rate and noise."""

from __future__ import annotations

import numpy as np

from hermitex.face.sheet.sheet_parts import Model
from hermitex.face.theory_and_experiment import thin_out
from hermitex.show.explorer_panels import Panel
from hermitex.show.interactive_page import block
from hermitex.symbolic.deadline import deadline
from hermitex.theories.bounds import bounds

# steps of each slider around the sheet's own number: a tenfold of the ridge in two, a twofold of the rate in one
_RIDGES, _RATES = 10.0**np.arange(-2, 2.1, 0.5), 2.0**np.arange(-2, 3)
_NOISES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
_POINTS = 30  # of a line that is 380 pixels wide
_BINS = 150  # of a density


def explorer(asked: Model) -> str:
    """The piece of the page, solved at every place of its sliders; a point that does not converge is left out of its line.

    Raises
    ------
    BadInput : the target has no theory of one step. BudgetExceeded : the grid needs more than the budget for each question.
    """
    own = {name: float(asked.numbers[name]) for name in ("lam", "eta", "Delta")}
    noises = sorted({*_NOISES, own["Delta"]})
    axes = {"lam": (own["lam"] or 0.1)*_RIDGES, "eta": (own["eta"] or 1.0)*_RATES, "Delta": np.array(noises)}
    line = thin_out(np.array(asked.alpha), _POINTS)
    with deadline(asked.budget):
        curves = {s: _errors(asked, s, line, axes) for s in asked.sigmas}
        limits = _bounds(asked, asked.sigmas[0], axes)
    densities, x = _spectra(asked, axes["eta"])
    grid = []
    for i, j, k in np.ndindex(*map(len, axes.values())):
        errors = {f"test error, {s}": (line, found["test_error"][:, i, j, k]) for s, found in curves.items()}
        errors |= {f"train error, {s}": (line, found["train_error"][:, i, j, k]) for s, found in curves.items()}
        errors |= {f"{name} bound, {asked.sigmas[0]}": (line, np.full(line.size, values[j, k])) for name, values in limits.items()}
        law = {s: (x, densities[s][j]) for s in asked.sigmas}
        grid.append([Panel("After one gradient step", "n/d", "error", errors),
                     Panel(f"Spectrum at n/d = {asked.middle:g}, Delta = {own['Delta']:g}", "eigenvalue", "density", law)])
    start = [len(_RIDGES)//2, len(_RATES)//2, noises.index(own["Delta"])]
    return block("Explore", {name: v.tolist() for name, v in axes.items()}, start, grid)


def _errors(asked: Model, sigma: str, line: np.ndarray, axes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Test and training error at (alpha, lam, eta, Delta); points of one spike are solved together, as their averages are one."""
    shape = (line.size, *map(len, axes.values()))
    made = {name: np.empty(shape) for name in ("test_error", "train_error")}
    for j, k in np.ndindex(*shape[2:]):
        found = asked.theory(sigma).solve(alpha=line[:, None], lam=axes["lam"], eta=axes["eta"][j], Delta=axes["Delta"][k],
                                          **asked.some("alpha0", "beta"), raise_on_failure=False)
        for name, values in made.items():
            values[:, :, j, k] = np.where(np.reshape(found.converged, shape[:2]), found[name], np.nan)
    return made


def _bounds(asked: Model, sigma: str, axes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The bounds at (eta, Delta); of labels without noise, which the errors here are measured against."""
    found = bounds(sigma, asked.target, eta=axes["eta"][:, None], Delta=axes["Delta"][None, :], **asked.some("alpha0", "beta"))
    shape = (len(axes["eta"]), len(axes["Delta"]))
    return {"upper": np.broadcast_to(found.upper, shape), "lower": np.broadcast_to(found.lower, shape)}


def _spectra(asked: Model, rates: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Densities at each rate and the sheet's noise, on one abscissa that holds every bulk."""
    laws = {s: [asked.spectrum(s, **asked.step(s, eta=float(eta))) for eta in rates] for s in asked.sigmas}
    x = np.linspace(0, max(high for listed in laws.values() for one in listed for _, high in one.edges), _BINS + 1)[1:]
    return {s: np.array([np.interp(x, one.x, one.density, left=0.0, right=0.0) for one in listed]) for s, listed in laws.items()}, x
