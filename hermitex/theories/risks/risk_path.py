"""inf over eta of the bounds: r(t) = t sigma_1 N_v, c(t) = (1 + t sigma_2 Rbar)^2 + ..., t = eta/beta  [cui2024, Eq. (28)].

At alpha0 = oo and for an odd activation c = 1 and gamma = 1, and the spike r runs over a half line. In general the bounds
are followed along Result 3.1; c may also be held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hermitex import symbols
from hermitex.errors import BadInput, brief
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.precise import evaluate
from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.bias import RATES, best_bias, bounds_at
from hermitex.theories.risks.minimum import Infimum, find_infimum
from hermitex.theories.risks.projection import Projection, Target, conditional_target
from hermitex.theories.risks.risk_bounds import Bounds, as_numbers

Array = np.ndarray[Any, Any]


def optimise_bounds(smoothed: Smoothed, g: Any, given: Mapping[str, Any], bias: bool) -> Bounds:
    """Each bound minimised over the learning rate.

    Parameters
    ----------
    given : alpha0 (default inf), Delta, gamma and c as in `bounds`; a c that is given stays fixed; r and eta may not be given.

    Raises
    ------
    BadInput : r or eta is given, or a number is out of range.
    """
    for name in ("r", "eta"):
        if given[name] is not None:
            raise BadInput(f"bounds: {name} is what optimise minimises over; leave it out")
    path, c, gamma, notes = _path(smoothed, g, given)
    target = conditional_target(g, gamma)
    unit = path.unit
    known: dict[bytes, Projection] = {}
    quick = smoothed.tabulated(c, 14*float(RATES[-1])*4) if c is not None else smoothed

    sound = 1e-9  # a bound whose quadrature did not come to that is none

    def values(which: str, t: Array) -> Array:
        key = np.asarray(t).tobytes()
        if key not in known:
            known[key] = bounds_at(quick, target, *path(np.asarray(t)))
        return np.where(known[key].error <= sound, getattr(known[key], which), np.inf)

    optimum: dict[str, Any] = {}
    coefficients: dict[str, Any] = {}
    value: dict[str, float] = {}
    for which in ("upper", "lower"):
        found: Infimum = find_infimum(lambda t, w=which: values(w, t), RATES*unit)  # type: ignore[misc]
        value[which] = found.value
        optimum[f"r_{which}"] = optimum[f"eta_over_beta_{which}"] = None
        if found.at is None:
            end = "0, r -> 0" if found.end == 0 else "infinity, r -> infinity"
            notes.append(f"{which} bound: the infimum is at eta -> {end}; its limit is {found.said}")
            continue
        at_r, at_c = path(np.array([found.at]))
        exact = bounds_at(smoothed, target, at_r, at_c)
        value[which] = float(getattr(exact, which)[0])
        optimum[f"r_{which}"] = float(at_r[0])
        optimum[f"eta_over_beta_{which}"] = float(found.at) if path.physical else None
        optimum[f"c_{which}"] = float(at_c[0])
        coefficients |= {"b1": float(exact.b1[0, 0])} if which == "upper" else {"b": exact.b[0], "psi": _one(exact.psi[0, :, 0])}
    biased = _with_bias(smoothed, target, optimum, notes) if bias else {}
    return Bounds(smoothed.activation, target.activation, value["upper"], value["lower"], None, c, gamma, coefficients,
                  optimum=optimum, notes=tuple(notes), **biased)


def _one(psi: Array) -> Any:
    """The number of one direction, the array of several."""
    return psi if psi.size > 1 else psi.item()


def _with_bias(smoothed: Smoothed, target: Target, optimum: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Each bound minimised over the bias at the learning rate where it is least without."""
    out: dict[str, Any] = {}
    for which in ("upper", "lower"):
        if optimum[f"r_{which}"] is None:
            continue
        found = best_bias(smoothed, target, optimum[f"r_{which}"], optimum[f"c_{which}"])[which]
        out |= {f"{which}_bias": found.value, f"b_{which}": found.at}
    notes.append("the bias is minimised over at the learning rate that is best without one")
    return out


class _StepPath:
    """t = eta/beta -> (r, c)."""

    def __init__(self, slope: float, bulk: Callable[[Array], Array], physical: bool) -> None:
        self.slope, self.bulk, self.physical = slope, bulk, physical
        self.unit = 1/abs(slope)  # the t at which |r| = 1

    def __call__(self, t: Array) -> tuple[Array, Array]:
        return self.slope*t, self.bulk(t)


def _path(smoothed: Smoothed, g: Any, given: Mapping[str, Any]) -> tuple[_StepPath, float | None, float, list[str]]:
    """The path, the constant c along it (or None), gamma, and notes."""
    from hermitex.theories.spike import spike

    wanted = {"alpha0": np.inf if given["alpha0"] is None else given["alpha0"], "Delta": given["Delta"]}
    checked = {n: as_numbers(n, v) for n, v in wanted.items()}
    if wrong := next((n for n, v in checked.items() if np.ndim(v)), None):
        raise BadInput(f"bounds: {wrong} is one number along a path, not {brief(wanted[wrong])}")
    alpha0, Delta = float(checked["alpha0"]), float(checked["Delta"])
    if not alpha0 > 0 or not 0 <= Delta < np.inf:
        raise BadInput("bounds: alpha0 is positive (inf is allowed) and Delta non-negative")
    fixed = None if given["c"] is None else float(as_numbers("c", given["c"]))
    if fixed is not None and not 0 < fixed < np.inf:
        raise BadInput("bounds: c is a variance, positive and finite")
    asked = spike(smoothed.activation, g)
    digits = 17 if isinstance(asked.g, Activation) else 14  # an average over several variables has fewer
    k = {n: float(evaluate(e, digits=digits)) for n, e in asked.coefficients.items()}
    bar = k["g_0"] - k["sigma_0"]
    R_2 = max(float(evaluate(asked.R_2.subs(symbols.Delta, 0), digits=digits)), 0.0) + Delta
    N_v = np.sqrt(k["g_1"]**2 + R_2/alpha0)
    size = np.sqrt(k["g_squared"])
    slope = k["sigma_1"]*N_v
    notes: list[str] = []
    zero = 1e-13  # relative: a coefficient below is rounding
    if gamma_given := given["gamma"] is not None:
        gamma = float(as_numbers("gamma", given["gamma"]))
    else:
        gamma = float(np.clip(k["g_1"]/N_v, -1, 1)) if N_v > zero*size else 1.0
    if not abs(gamma) <= 1:
        raise BadInput("bounds: gamma is an overlap, between -1 and 1")
    if abs(slope) <= zero*max(size, 1e-300):
        notes.append("no learning rate makes a spike: sigma_1 or the mean gradient is zero; the minimum is over r > 0 itself")
        still = _StepPath(1.0, lambda t: np.full(t.shape, fixed or 1.0), False)
        return still, fixed or 1.0, 1.0 if not gamma_given else gamma, notes
    tilt = k["sigma_2"]*bar
    spread = 0.0
    if np.isfinite(alpha0) and fixed is None:
        spread = R_2/alpha0*float(evaluate(asked.slope_variance, digits=17))
    constant = fixed if fixed is not None else 1.0 if abs(tilt) < zero and spread == 0 else None
    if constant is None:
        notes.append(f"along the way c = (1 {'+' if tilt >= 0 else '-'} {abs(tilt):.6g} eta/beta)^2"
                     + (f" + {spread:.6g} (eta/beta)^2" if spread else "") + "; give c to hold it fixed")
    physical = fixed is None or (fixed == 1.0 and abs(tilt) < zero and spread == 0)

    def bulk(t: Array) -> Array:
        if constant is not None:
            return np.full(t.shape, constant)
        return np.maximum((1 + tilt*t)**2 + spread*t*t, 1e-12)

    return _StepPath(float(slope), bulk, physical), constant, gamma, notes
