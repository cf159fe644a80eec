"""The symmetric plateau: students that are all alike, and how fast a difference between them grows: exp(rate t).

Teachers are orthogonal and of one norm. On the states Q_jj = Q, Q_jl = C, M_jr = M the flow stays; its fixed point there is the
plateau, and the largest growth rate of the whole flow at it says how long it lasts: differences of the order d^(-1/2) at the start
become of order 1 after log(d)/(2 rate). The equations are those of the theory; the length is heuristic, a linear estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, NotConverged
from hermitex.hints import Axes
from hermitex.show.display import Shown
from hermitex.theories.committees.rates import neurons, require_few

Array = np.ndarray
BEFORE, PLATEAU, STABLE = "before the plateau", "on the plateau", "symmetric for good"
APART, LEARNED = "students differ", "specialised"
NONE, DIVERGES, UNKNOWN = "no symmetric fixed point", "diverges", "not converged"
_NAMES = (LEARNED, APART, PLATEAU, STABLE, BEFORE, NONE, DIVERGES, UNKNOWN)


@dataclass(frozen=True, eq=False, repr=False)
class Plateau(Shown):
    """The plateau on which the students are alike: `values` (Q, C, M, risk), `rate` of the escape, `.length(dimension)`."""

    values: dict[str, float]
    rate: float
    numbers: dict[str, float]
    status: str = "derived (linear stability of the fixed point); the length heuristic"

    @property
    def escapes(self) -> bool:
        """Whether a difference between the students grows."""
        small = 1e-8  # a rate below is the error of its central differences with h = 1e-5: slopes are steep where C = Q
        return self.rate > small

    def length(self, dimension: float) -> float:
        """log(d)/(2 rate): the time from differences d^(-1/2) to order 1; inf where they do not grow."""
        return float(np.log(dimension)/(2*self.rate)) if self.escapes else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """The order parameters, the rate, the numbers."""
        return {**self.values, "rate": self.rate, "escapes": self.escapes, **self.numbers, "status": self.status}

    def plot(self, ax: Axes | None = None, *, dimension: tuple[float, float] = (1e2, 1e6), points: int = 60) -> Axes:
        """Its length over the dimension, between two of them."""
        from hermitex.show.plots import curves

        if not self.escapes:
            raise BadInput("committee: the plateau is stable; it has no length that could be drawn")
        line = np.geomspace(*dimension, points)
        ax = curves(line.tolist(), {rf"$\gamma = {self.numbers['gamma']:g}$": [self.length(d) for d in line]}, ax, xlabel="$d$",
                    ylabel="length of the plateau")
        ax.set_xscale("log")
        return ax

    def _summary(self) -> str:
        said = ", ".join(f"{n} = {v:.6g}" for n, v in self.values.items())
        return f"{said}; " + (f"rate {self.rate:.4g}" if self.escapes else "stable")

    def _html(self) -> str:
        from html import escape

        grow = "; the rate is that at which differences between the students grow" if self.escapes else ""
        return f"<p>{escape(self._summary() + grow)}</p>"


def plateau(theory: Any, *, gamma: float, Delta: float, norm: float) -> Plateau:
    """The fixed point among equal students, by the flow and then Newton's method; see `Committee.plateau`."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import root

    if theory.readout == "trained":
        raise BadInput("committee: the plateau is that of a fixed second layer")
    gamma, Delta, norm = _number("gamma", gamma), _number("Delta", Delta), _number("norm", norm)
    if norm == 0:
        raise BadInput("committee: norm is positive")
    rates, p, k = theory.rates, theory.students, theory.teachers
    P, a, v = norm*np.eye(k), np.ones(p), np.ones(k)
    numbers: dict[str, Any] = {"v": v, "gamma": float(gamma), "Delta": float(Delta)}

    def matrices(x: Array) -> tuple[Array, Array]:
        q, c, m = x if p > 1 else (x[0], 0.0, x[1])
        return (q - c)*np.eye(p) + c, np.full((p, k), m)

    def symmetric(x: Array) -> Array:
        Q, M = matrices(x)
        dQ, dM, _ = rates.rate(Q, M, a, P, nodes=nodes, **numbers)
        return np.array([dQ[0, 0], dQ[0, 1], dM[0, 0]]) if p > 1 else np.array([dQ[0, 0], dM[0, 0]])

    x0 = norm*np.array([0.5, 0.0, 0.3/np.sqrt(k)] if p > 1 else [0.5, 0.3/np.sqrt(k)])
    rough = 1e-6  # of the rates on other nodes
    nodes = rates.enough((*matrices(x0), a), P, rough, **numbers)
    big = 1e4  # times the norm: equal students that outgrow it reach no fixed point
    with np.errstate(all="ignore"):
        path = solve_ivp(lambda t, x: symmetric(x), (0, 300.0), x0, rtol=1e-7, atol=1e-9,
                         events=_ending(lambda t, x: big*norm - float(np.max(np.abs(x)))))
        if path.status == 0:
            nodes = rates.enough((*matrices(path.y[:, -1]), a), P, rough, **numbers)
        x = root(symmetric, path.y[:, -1], tol=1e-12).x
    Q, M = matrices(x)
    if not (path.success and path.status == 0 and np.max(np.abs(symmetric(x))) < 1e-8 and np.all(np.abs(x) < big*norm)):
        raise NotConverged(None, f"committee: at gamma = {gamma:g} equal students reach no fixed point; take a smaller gamma")
    state = rates.packed(Q, M, a)
    if not rates.held((Q, M, a), P, nodes, 10*rough, **numbers):
        raise NotConverged(None, f"committee: the averages at the plateau are not known to {10*rough:.0e}; take an "
                           "activation that is less steep, or a smaller norm")

    def whole(y: Array) -> Array:
        q, m, _ = rates.read(y, a)
        return rates.packed(*rates.rate(q, m, a, P, nodes=nodes, **numbers))

    h = 1e-5*norm
    J = np.array([(whole(state + h*e) - whole(state - h*e))/(2*h) for e in np.eye(len(state))]).T
    growth = float(np.max(np.linalg.eigvals(J).real))
    values = {"Q": float(Q[0, 0]), "C": float(Q[0, -1]) if p > 1 else float("nan"), "M": float(M[0, 0]),
              "risk": rates.risk(Q, M, a, P, v=v, nodes=nodes)}
    if p == 1:
        del values["C"]
    return Plateau(values, growth, {"gamma": float(gamma), "Delta": float(Delta), "norm": float(norm)})


def _ending(event: Any) -> Any:
    event.terminal = True
    return event


@dataclass(frozen=True, eq=False, repr=False)
class Phases(Shown):
    """Over learning rate and width: the risk at time t and what has become of the students; `.plot()`.

    The plateau has Q, C, M; s is the largest of |Q|, |C|, |M|, and students differ where some M_jr is further than |M|/2 from the
    mean of them all. specialised: they differ and the risk is below half the plateau's; students differ: the risk is not;
    on the plateau: the means of Q_jj, Q_jl, M_jr are within s/5 of Q, C, M; symmetric for good: so, the plateau is stable, which
    is all that students can do for a single teacher or at a large rate; before the plateau: the means are further from it; no
    symmetric fixed point: the learning rate is too large for equal students to settle; diverges: an order parameter grows beyond
    bounds before t; not converged: two integrations of the trajectory differ by
    more than 1e-4 of the largest order parameter. The last two have no risk.
    """

    gamma: Array
    students: tuple[int, ...]
    risk: Array  # (widths, gammas)
    plateau_risk: Array
    phase: Array
    numbers: dict[str, float]
    status: str = "numerical: trajectories of the flow to 1e-4 of the largest order parameter, sorted by the plateau"

    def to_dict(self) -> dict[str, Any]:
        """Grids, risks and phases; what diverges has no risk."""
        def table(v: Array) -> list[list[float | None]]:
            return [[float(x) if np.isfinite(x) else None for x in row] for row in v]

        return {"gamma": self.gamma.tolist(), "students": list(self.students), "risk": table(self.risk),
                "plateau_risk": table(self.plateau_risk), "phase": self.phase.tolist(), **self.numbers, "status": self.status}

    def plot(self, ax: Axes | None = None) -> Axes:
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


def phases(theory: Any, *, gamma: Any, students: Any, t: float, dimension: float, Delta: float, tolerance: float = 1e-4) -> Phases:
    """Trajectories over a grid, each from the start of `dimension`; see `Committee.phases`."""
    from dataclasses import replace

    rates = np.array([_number("gamma", g) for g in _list(gamma)])
    widths = tuple(neurons("students", n) for n in _list(students))
    t, Delta = _number("t", t), _number("Delta", Delta)
    if not (rates.size and widths and np.all(rates > 0) and t > 0):
        raise BadInput("committee: gamma is a list of positive numbers, students one of sizes, t a time")
    for p in widths:
        require_few(p, theory.teachers)
    risk, flat = np.full((len(widths), len(rates)), np.nan), np.full((len(widths), len(rates)), np.nan)
    phase = np.full(risk.shape, NONE, dtype=object)
    # tolerance: of the trajectories that are sorted, relative to the largest order parameter
    for i, p in enumerate(widths):
        one = replace(theory, students=p)
        for j, g in enumerate(rates):
            found = one.solve(t=[0.0, t], gamma=g, Delta=Delta, dimension=dimension, tolerance=tolerance,
                              raise_on_failure=False)
            if not found.converged:
                phase[i, j] = DIVERGES if found.events["diverges"]["t"].size else UNKNOWN
                continue
            risk[i, j] = found["risk"][-1]
            try:
                equal = plateau(one, gamma=g, Delta=Delta, norm=1.0)
            except NotConverged:
                continue
            flat[i, j] = equal.values["risk"]
            x = np.array([found[n][-1] for n in one.order_parameters])
            Q, M, _ = one.rates.read(x, np.ones(p))
            phase[i, j] = _phase(Q, M, float(risk[i, j]), equal)
    return Phases(rates, widths, risk, flat, phase, {"t": float(t), "dimension": float(dimension), "Delta": float(Delta)})


def _phase(Q: Array, M: Array, risk: float, equal: Plateau) -> str:
    """The phase of students at Q, M; see `Phases`."""
    p, at = len(Q), equal.values
    if np.max(np.abs(M - M.mean())) > abs(at["M"])/2:
        return LEARNED if risk < at["risk"]/2 else APART
    means = {"Q": np.trace(Q)/p, "M": M.mean(), **({"C": (Q.sum() - np.trace(Q))/(p*(p - 1))} if p > 1 else {})}
    size = max(abs(at[n]) for n in means)
    near = 0.2  # of the plateau's largest order parameter: its neighbourhood
    if max(abs(means[n] - at[n]) for n in means) > near*size:
        return BEFORE
    return PLATEAU if equal.escapes else STABLE


def _list(values: Any) -> list[Any]:
    return [values] if isinstance(values, str) or not np.iterable(values) else list(values)


def _number(name: str, value: Any) -> float:
    """One number, 0 or more."""
    try:
        found = float("nan" if isinstance(value, bool) else value)
    except NO_NUMBER:
        found = float("nan")
    if not 0 <= found < np.inf:
        raise BadInput(f"committee: {name} is a finite number, 0 or more, not {value!r}")
    return found
