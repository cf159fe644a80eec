"""The symmetric plateau: students that are all alike, and how fast a difference between them grows: exp(rate t).

Teachers are orthogonal and of one norm. On the states Q_jj = Q, Q_jl = C, M_jr = M the flow stays; its fixed point there is the
plateau, and the largest growth rate of the whole flow at it says how long it lasts: differences of the order d^(-1/2) at the start
become of order 1 after log(d)/(2 rate). The equations are those of the theory; the length is heuristic, a linear estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import BadInput, NotConverged
from hermitex.show.display import Shown

Array = np.ndarray
NONE, PLATEAU, STABLE, LEARNED = "no symmetric fixed point", "on the plateau", "symmetric for good", "specialised"
_NAMES = (LEARNED, PLATEAU, STABLE, NONE)
_LONG, _SMALL, _BIG = 1e6, 1e-9, 1e4


@dataclass(frozen=True, eq=False, repr=False)
class Plateau(Shown):
    """Where the students stand while they are alike: `values` (Q, C, M, risk), `rate` of the escape, `.length(dimension)`."""

    values: dict[str, float]
    rate: float
    numbers: dict[str, float]
    status: str = "derived (linear stability of the fixed point); the length heuristic"

    @property
    def escapes(self) -> bool:
        """Whether a difference between the students grows."""
        return self.rate > _SMALL

    def length(self, dimension: float) -> float:
        """log(d)/(2 rate): the time from differences d^(-1/2) to order 1; inf where they do not grow."""
        return float(np.log(dimension)/(2*self.rate)) if self.escapes else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """The order parameters, the rate, the numbers."""
        return {**self.values, "rate": self.rate, "escapes": self.escapes, **self.numbers, "status": self.status}

    def _summary(self) -> str:
        said = ", ".join(f"{n} = {v:.6g}" for n, v in self.values.items())
        return f"{said}; " + (f"differences grow at the rate {self.rate:.4g}" if self.escapes else "stable")

    def _html(self) -> str:
        from html import escape

        return f"<p>{escape(self._summary())}</p>"


def plateau(theory: Any, *, gamma: float, Delta: float, norm: float) -> Plateau:
    """The fixed point among equal students, by the flow and then Newton's method; see `Committee.plateau`."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import root

    if theory.readout == "trained":
        raise BadInput("committee: the plateau is that of a fixed second layer")
    if not (gamma >= 0 and Delta >= 0 and norm > 0):
        raise BadInput("committee: gamma and Delta are 0 or more, norm is positive")
    rates, p, k = theory.rates, theory.students, theory.teachers
    P, a, v = norm*np.eye(k), np.ones(p), np.ones(k)
    numbers: dict[str, Any] = {"v": v, "gamma": float(gamma), "Delta": float(Delta)}

    def matrices(x: Array) -> tuple[Array, Array]:
        q, c, m = x if p > 1 else (x[0], 0.0, x[1])
        return (q - c)*np.eye(p) + c, np.full((p, k), m)

    def symmetric(x: Array) -> Array:
        Q, M = matrices(x)
        dQ, dM, _ = rates.rate(Q, M, a, P, **numbers)
        return np.array([dQ[0, 0], dQ[0, 1], dM[0, 0]]) if p > 1 else np.array([dQ[0, 0], dM[0, 0]])

    x0 = norm*np.array([0.5, 0.0, 0.3/np.sqrt(k)] if p > 1 else [0.5, 0.3/np.sqrt(k)])
    with np.errstate(all="ignore"):
        path = solve_ivp(lambda t, x: symmetric(x), (0, 300.0), x0, rtol=1e-7, atol=1e-9,
                         events=_ending(lambda t, x: _BIG*norm - float(np.max(np.abs(x)))))
        found = root(symmetric, path.y[:, -1], tol=1e-12)
    x = found.x
    Q, M = matrices(x)
    if not (path.success and path.status == 0 and np.max(np.abs(symmetric(x))) < 1e-8 and np.all(np.abs(x) < _BIG*norm)):
        raise NotConverged(None, f"committee: at gamma = {gamma:g} equal students reach no fixed point; take a smaller gamma")
    state = rates.packed(Q, M, a)

    def whole(y: Array) -> Array:
        q, m, _ = rates.read(y, a)
        return rates.packed(*rates.rate(q, m, a, P, **numbers))

    h = 1e-5*norm
    J = np.array([(whole(state + h*e) - whole(state - h*e))/(2*h) for e in np.eye(len(state))]).T
    growth = float(np.max(np.linalg.eigvals(J).real))
    values = {"Q": float(Q[0, 0]), "C": float(Q[0, -1]) if p > 1 else float("nan"), "M": float(M[0, 0]),
              "risk": rates.risk(Q, M, a, P, v=v)}
    if p == 1:
        del values["C"]
    return Plateau(values, growth, {"gamma": float(gamma), "Delta": float(Delta), "norm": float(norm)})


def _ending(event: Any) -> Any:
    event.terminal = True
    return event


@dataclass(frozen=True, eq=False, repr=False)
class Phases(Shown):
    """Over learning rate and width: the risk at time t and what has become of the students; `.plot()`.

    specialised: the risk is below half the plateau's; symmetric for good: the plateau is stable, which is all that students can do
    for a single teacher or at a large rate; no symmetric fixed point: the learning rate is too large for equal students to settle.
    """

    gamma: Array
    students: tuple[int, ...]
    risk: Array  # (widths, gammas)
    plateau_risk: Array
    phase: Array
    numbers: dict[str, float]
    status: str = "numerical: trajectories of the flow, sorted by the plateau's risk"

    def to_dict(self) -> dict[str, Any]:
        """Grids, risks and phases; what diverges has no risk."""
        def table(v: Array) -> list[list[float | None]]:
            return [[float(x) if np.isfinite(x) else None for x in row] for row in v]

        return {"gamma": self.gamma.tolist(), "students": list(self.students), "risk": table(self.risk),
                "plateau_risk": table(self.plateau_risk), "phase": self.phase.tolist(), **self.numbers, "status": self.status}

    def plot(self, ax: Any = None) -> Any:
        """The phases as colours over gamma and p."""
        from hermitex.show.plots import cells

        table = [[_NAMES.index(x) for x in row] for row in self.phase]
        ax = cells(self.gamma.tolist(), list(self.students), table, _NAMES, ax, xlabel=r"$\gamma$", ylabel="students $p$")
        ax.set_yticks(list(self.students))
        return ax

    def _summary(self) -> str:
        counts = {n: int(np.sum(self.phase == n)) for n in _NAMES}
        return ", ".join(f"{c} {n}" for n, c in counts.items() if c)

    def _html(self) -> str:
        from html import escape

        return f"<p>{escape(self._summary())}</p>"


def phases(theory: Any, *, gamma: Any, students: Any, t: float, dimension: float, Delta: float) -> Phases:
    """Trajectories over a grid, each from the start of `dimension`; see `Committee.phases`."""
    from dataclasses import replace

    rates, widths = np.atleast_1d(np.asarray(gamma, dtype=float)), tuple(int(n) for n in np.atleast_1d(students))
    if rates.ndim != 1 or np.any(rates <= 0) or min(widths) < 1 or not t > 0:
        raise BadInput("committee: gamma is a list of positive numbers, students one of sizes, t a time")
    risk, flat = np.full((len(widths), len(rates)), np.nan), np.full((len(widths), len(rates)), np.nan)
    phase = np.full(risk.shape, NONE, dtype=object)
    for i, p in enumerate(widths):
        one = replace(theory, students=p)
        for j, g in enumerate(rates):
            found = one.solve(t=[0.0, t], gamma=g, Delta=Delta, dimension=dimension, raise_on_failure=False)
            if np.asarray(found["t"])[-1] < t:
                continue
            risk[i, j] = found["risk"][-1]
            try:
                equal = plateau(one, gamma=g, Delta=Delta, norm=1.0)
            except NotConverged:
                continue
            flat[i, j] = equal.values["risk"]
            phase[i, j] = LEARNED if risk[i, j] < flat[i, j]/2 else PLATEAU if equal.escapes else STABLE
    return Phases(rates, widths, risk, flat, phase, {"t": float(t), "dimension": float(dimension), "Delta": float(Delta)})
