r"""dM/dt = sum_a s_a I_3, dQ/dt = sum_a s_a (I_3 + I_3^T) + gamma/p (sum_ab s_a s_b I_4 + Delta J_2): SGD of a committee.

Student f = (1/p) sum_j a_j sigma(w_j.x/sqrt(d)), teacher y = (1/k) sum_r v_r g(w*_r.x/sqrt(d)) + sqrt(Delta) eps, one sample a
step, square loss delta^2/2: w_j += gamma/(p sqrt(d)) a_j delta sigma'(u_j) x, t = gamma n/(p d). Order parameters Q = W W^T/d,
M = W W*^T/d, P = W* W*^T/d. A trained second layer takes a_j += second gamma/(p d) delta sigma(u_j), so da_j/dt = second
E[delta sigma(u_j)] [saadsolla1995, goldt2019]. Status: the equations are a theorem of the sources for smooth bounded sigma; for
others, and for kinks, they are derived, and the experiment bears them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sympy import DiracDelta, Symbol

from hermitex.errors import BadInput, NotConverged, NoValue
from hermitex.hints import Axes, Formula
from hermitex.show.display import shorten
from hermitex.show.plots import new_axes
from hermitex.solvers.ode import TooManySteps, Trajectory, integrate
from hermitex.solvers.solve_limits import limit_time, require_tolerance
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.budget import budget as bounded
from hermitex.symbols import z
from hermitex.systems.flow import Flow
from hermitex.systems.names import read_start
from hermitex.systems.trajectory import at_end
from hermitex.theories.committees.formulas import flow
from hermitex.theories.committees.plateau import Phases, Plateau, phases, plateau
from hermitex.theories.committees.rates import Rates, finer_node_count, label, neurons, other_node_count, require_few
from hermitex.theories.curve import Curve
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.theory import Theory, numbers_latex

READOUTS = ("fixed", "trained")
Array = np.ndarray


@dataclass(frozen=True, repr=False)
class Committee(Theory):
    """p students and k teachers; `.curve(t=...)`, `.solve(...)`, `.flow`, `.plateau(...)`, `.phases(...)`, `.plot()`.

    Attributes
    ----------
    sigma, g : the student's and the teacher's function
    students, teachers : p and k
    readout : "fixed", or "trained" with the first layer
    """

    sigma: Activation
    g: Activation
    students: int
    teachers: int
    readout: str = "fixed"

    name: ClassVar[str] = "committee"
    axis: ClassVar[str] = "t"
    sources: ClassVar[tuple[str, ...]] = ("saadsolla1995", "goldt2019")
    arrays: ClassVar[tuple[str, ...]] = ("Q", "M", "P", "a", "v")
    status: ClassVar[str] = "theorem (saadsolla1995, goldt2019) for smooth bounded sigma, else derived"

    # -- what it holds -----------------------------------------------------------------------------------------------------
    @cached_property
    def rates(self) -> Rates:
        """The right-hand sides in numbers; `.rates.exact` says whether every average has a closed form."""
        return Rates(self.sigma.expr, self.g.expr, self.students, self.teachers, self.readout == "trained")

    @cached_property
    def flow(self) -> Flow:
        """The equations as a `Flow` of Q11, ..., M11, ..., its parameters gamma, Delta, P11, ..., a1, ..., v1, ...; for export.

        If averages of functions with kinks over several fields have no closed form, it only shows the equations.
        """
        return flow(self)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Q11, Q12, ..., M11, ..., and a1, ... where the second layer is trained."""
        p, k = self.students, self.teachers
        names = [label("Q", j, l) for j in range(p) for l in range(j, p)] + [label("M", j, r) for j in range(p) for r in range(k)]
        return (*names, *(f"a{j + 1}" for j in range(p) if self.readout == "trained"))

    errors = ("risk",)  # the risk E[(f - f*)^2]/2, noise not counted

    @property
    def symbols(self) -> dict[str, Any]:
        """Order parameters and numbers, by name."""
        return {n: Symbol(n, real=True) for n in (*self.order_parameters, "gamma", "Delta")}

    @property
    def system(self) -> Flow:
        """The flow."""
        return self.flow

    def letters(self) -> dict[str, Any]:
        """t, gamma, Delta; Q, M, P (default Q = 1, P = 1, M drawn at `dimension`, by `seed`); weights a and v (default 1)."""
        second = {"second": 1.0} if self.readout == "trained" else {}
        return {"t": self.REQUIRED, "gamma": self.REQUIRED, "Delta": 0.0, **second, "dimension": None, "seed": 0.0, "Q": None,
                "M": None, "P": None, "a": None, "v": None}

    @property
    def elsewhere(self) -> Mapping[str, str]:  # type: ignore[override]
        """The learning rate of a second layer that is trained."""
        return {"second": "readout='trained'"} if self.readout == "fixed" else {}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Checked numbers, with the start that was not given."""
        out = self.checked(numbers, gamma=">= 0", Delta=">= 0", seed=">= 0", **({"second": ">= 0"} if "second" in numbers else {}),
                           **{n: "" for n in ("dimension", *self.arrays) if n in numbers})
        out |= {n: np.asarray(x) for n, x in self.single(out, *(n for n in out if n not in ("t", *self.arrays))).items()}
        p, k = self.students, self.teachers
        shapes = {"Q": (p, p), "P": (k, k), "a": (p,), "v": (k,), "M": (p, k)}
        for n, shape in shapes.items():
            if n != "M":
                out.setdefault(n, np.eye(shape[0]) if len(shape) == 2 else np.ones(shape))
            if n in out and out[n].shape != shape:
                raise BadInput(f"committee: {n} has the shape {shape} for {p} students and {k} teachers, not {out[n].shape}")
        for n in ("Q", "P"):
            if not np.allclose(out[n], out[n].T, rtol=1e-9, atol=1e-12):
                raise BadInput(f"committee: {n} is symmetric")
            if _negative(out[n]):
                raise BadInput(f"committee: {n} is not a matrix of overlaps: it has a negative eigenvalue")
        if "M" in out:
            del out["seed"]
        else:
            if "dimension" not in out:
                raise NoValue("committee", "dimension", "1000: where does it start? Q = 1, M random at that d, or give Q, M")
            out["M"] = drawn(out["Q"], out["P"], float(out["dimension"]), float(out["seed"]))
        if _negative(self.rates.joint(out["Q"], out["M"], out["P"])):
            raise BadInput("committee: Q, M, P are not overlaps: their joint matrix [[Q, M], [M^T, P]] has a negative eigenvalue")
        return out

    def begins(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """M as it is drawn at the dimension."""
        return {} if numbers.get("M") is not None else {"M": self.complete(self.given(numbers))["M"]}

    def by_equations(self, numbers: dict[str, Array]) -> Mapping[str, Any]:
        """`recorded`, and the time."""
        return {**self.recorded(numbers), **{n: v for n, v in numbers.items() if n == "t"}}

    def recorded(self, given: Mapping[str, Array]) -> dict[str, float]:
        """Every number of a run by a name of its own: gamma, ..., P11, v1, start_Q11, start_M11, and a1 or start_a1."""
        found = {n: float(given[n]) for n in ("gamma", "Delta", "second", "dimension", "seed") if n in given}
        for n in self.arrays:
            moves = n in ("Q", "M") or (n == "a" and self.readout == "trained")
            for place in np.ndindex(given[n].shape):
                if n not in ("Q", "P") or place[0] <= place[1]:
                    own = label(n, *place) if len(place) == 2 else f"{n}{place[0] + 1}"
                    found[f"start_{own}" if moves else own] = float(given[n][place])
        return found

    # -- numbers -----------------------------------------------------------------------------------------------------------
    def solve(self, *, raise_on_failure: bool = True, start: Mapping[str, Any] | None = None, tolerance: float | None = None,
              budget: float | None = None, **numbers: Any) -> Trajectory:  # type: ignore[override]
        """The order parameters and the risk along t, by two integrations that must agree, the sharper of them -> Trajectory.

        Parameters
        ----------
        t : (0, end) for the integrator's own steps; the increasing times to report, the first of them the start; or the time to
            reach from 0, and then every value is that at its end
        gamma, Delta, Q, M, P, a, v, dimension, seed, second : as in `.letters()`; without M it is that of weights in random
            directions at `dimension`, drawn by `seed` (default 0); start : {"Q": matrix, "M": matrix} instead
        tolerance : that the two integrations agree to, relative to the largest order parameter (default 1e-8; 1e-6 where averages
            have no closed form). They have other steps, and other nodes; the risk is held to the same
        budget : CPU seconds; what was not integrated by then is missing, and the reason says so; where it ends in the search for
            closed forms, or within one average, BudgetExceeded
        """
        if tolerance is not None:
            require_tolerance(tolerance)
        given = self.complete(self.given({**numbers, **read_start(start, "'Q': [[1]], 'M': [[0.1]]")}))
        if "t" not in given:
            raise NoValue("committee", "t", "(0, 20)")
        times = self.times(given["t"], "an end, or increasing times to report, the first of them the start")
        closed = 1e-8  # tolerance of a run in closed form
        rough = 1e-6  # tolerance of a run by quadrature
        gained = 2.0  # logarithm of what finer nodes gain at least
        more_runs = 3  # sharper ones, where two differ
        with limit_time(budget), bounded(budget):
            asked = (closed if self.rates.exact else rough) if tolerance is None else float(tolerance)
            steps, begun = asked/25, (given["Q"], given["M"], given["a"])
            nodes = self.rates.enough(begun, given["P"], asked, **self._fixed(given))
            found = self._run(given, times, steps, nodes)
            times, apart = np.asarray(found["t"]), np.inf
            if found.converged:
                apart = self._apart(found, self._run(given, times, asked/5, other_node_count(nodes)))
            for _ in range(more_runs):  # the flow makes what a step and an average leave grow
                if not asked < apart < np.inf:
                    break
                steps *= max(min(asked/apart, 1.0)/4, 1e-4)
                for _ in range(int(np.ceil(np.log(apart/asked)/gained))):
                    nodes = finer_node_count(nodes)
                again = self._run(given, times, steps, nodes)
                found, apart = again, self._apart(again, found)
        held = bool(found.converged) and apart <= asked
        why = str(found.reason) or ("" if held else f"two integrations differ by {apart:.1e}; the flow makes errors grow, or an "
                                    "average needs more nodes; take a larger tolerance= or a shorter time")
        found = _replaced(found, found.value, held, apart, why).at_numbers(self.recorded(given))
        found = found if np.ndim(given["t"]) else at_end(found)
        if raise_on_failure and not held:
            raise NotConverged(found, f"committee: {why}")
        return found

    def _fixed(self, given: Mapping[str, Array]) -> dict[str, Any]:
        """What stays along a run, for `Rates.rate`."""
        return {"v": given["v"], "gamma": float(given["gamma"]), "Delta": float(given["Delta"]),
                "second_rate": float(given.get("second", 1.0))}

    def _apart(self, found: Trajectory, rougher: Trajectory) -> float:
        """How far the order parameters and risks of two runs are apart, of the largest; inf where one has no end."""
        if not (found.converged and rougher.converged):
            return float("inf")
        size = max(np.max(np.abs(found[n])) for n in self.order_parameters)
        apart = max(float(np.max(np.abs(found[n] - rougher[n])))/size for n in self.order_parameters)
        gap = np.max(np.abs(found["risk"] - rougher["risk"]))
        return max(apart, float(gap/max(size, np.max(found["risk"]))))

    def _run(self, given: Mapping[str, Array], times: Array, rtol: float, nodes: int) -> Trajectory:
        """A run with its risk."""
        rtol = max(rtol, 3e-14)
        rates, a, P, fixed = self.rates, given["a"], given["P"], self._fixed(given)

        def rate(t: float, x: Array, p: Any) -> Array:
            q, m, b = rates.read(x, a)
            return rates.packed(*rates.rate(q, m, b, P, nodes=nodes, **fixed))

        x0 = rates.packed(given["Q"], given["M"], a)
        with np.errstate(all="ignore"):
            first = rate(0.0, x0, None)
        if not np.all(np.isfinite(first)):
            raise BadInput("committee: the rates of this start are not finite; take smaller Q, P, a, v or gamma")
        grown = 1e6  # of an order parameter over its start: the flow diverges
        most = grown*max(1.0, float(np.max(np.abs(x0))))
        allowed = 50_000  # of one integration
        many = 30  # order parameters: from there on relaxation rates are many, and explicit steps short
        try:
            found = integrate(rate, x0, times if times.size > 1 else (0.0, float(times[0])), names=self.order_parameters,
                              events={"diverges": lambda t, x, p: float(np.max(np.abs(x))) - most}, terminal=("diverges",),
                              method="BDF" if x0.size > many else "DOP853",
                              rtol=rtol, atol=rtol*float(np.max(np.abs(x0))), most=allowed, raise_on_failure=False)
        except TooManySteps:
            raise BadInput(f"committee: more than {allowed} evaluations of the rates: they are stiff, or the time is long; take a "
                           "shorter time, smaller a, v or gamma, or a larger tolerance=") from None
        found = replace(found, value={**found.value, "risk": self._risks(given, found, nodes)})
        if (ends := found.events["diverges"]["t"]).size:
            return _replaced(found, found.value, False, float("nan"), f"the order parameters diverge at t = {ends[0]:.4g}: "
                             "the learning rate is too large")
        return found

    def _risks(self, given: Mapping[str, Array], path: Trajectory, nodes: int) -> Array:
        x = np.array([path[n] for n in self.order_parameters]).T
        return np.array([self.rates.risk(*self.rates.read(row, given["a"]), given["P"], v=given["v"], nodes=nodes) for row in x])

    def curve(self, t: Any = None, *, start: Mapping[str, Any] | None = None,  # type: ignore[override]
              tolerance: float | None = None, title: str = "", **numbers: Any) -> Curve:
        """The risk and the order parameters along `t`, an increasing list of times from 0 on -> Curve (its `axis` is t).

        >>> found = committee("erf(z/sqrt(2))", students=1, teachers=1).curve(t=[0, 5], gamma=1, Q=[[1]], M=[[0.5]])
        >>> found["risk"].round(5)
        array([0.17247, 0.01232])
        """
        line = self.times(t)
        whole = line if line[0] == 0 else np.concatenate([[0.0], line])
        whole = whole if whole.size > 1 else np.array([0.0, 1e-9])
        asked = dict(start=start, tolerance=tolerance, raise_on_failure=False, **numbers)
        found = self.solve(t=whole, **asked)
        held = found
        before = whole[whole <= found["t"][-1]]
        if before.size < whole.size and (found.events["diverges"]["t"].size or numbers.get("budget") is None):
            # it diverges; the values before that are valid
            held = self.solve(t=before if before.size > 1 else [0.0, 1e-9], **asked)
        good = np.isin(line, held["t"]) & bool(held.converged)
        values = {}
        for n in ("risk", *self.order_parameters):
            values[n] = np.full(line.shape, np.nan)
            values[n][good] = held[n][np.searchsorted(held["t"], line[good])]
        error, why = (np.where(good, x, y) for x, y in ((held.error, found.error), ("", found.reason)))
        return Curve(self.name, self.described(found.parameters), line, values, self.order_parameters, converged=good,
                     residual=error, reason=why, title=title or self.titled(found.parameters),
                     named=bool(title), axis="t", sources=self.sources)

    # -- plateaus ----------------------------------------------------------------------------------------------------------
    def plateau(self, *, gamma: float, Delta: float = 0.0, norm: float = 1.0) -> Plateau:
        """The symmetric plateau of equal students and orthogonal teachers of squared norm `norm`: where, and how unstable.

        >>> found = committee("erf(z/sqrt(2))", students=2, teachers=2).plateau(gamma=0.1)
        >>> found.escapes, round(found.values["M"], 4)
        (True, 0.4085)
        """
        return plateau(self, gamma=gamma, Delta=Delta, norm=norm)

    def phases(self, *, gamma: Any, students: Any, t: float, dimension: float = 1000.0, Delta: float = 0.0) -> Phases:
        """Over learning rate and width, what is reached by time t: diverges, on the plateau, specialised, ... -> Phases."""
        return phases(self, gamma=gamma, students=students, t=t, dimension=dimension, Delta=Delta)

    # -- showing -----------------------------------------------------------------------------------------------------------
    def plot(self, ax: Axes | None = None, *, gamma: tuple[float, ...] = (0.3, 1.0, 3.0), t: float = 20.0,
             dimension: float = 1000.0, Delta: float = 0.0, points: int = 80) -> Axes:
        """The risk over t for a few learning rates, from the start of `dimension`; dotted, the plateau of equal students."""
        ax = new_axes(ax)
        for rate in gamma:
            said: dict[str, Any] = {"gamma": rate, "dimension": dimension, "Delta": Delta, "title": rf"$\gamma = {rate:g}$"}
            ax = self.curve(np.linspace(0, t, points), **said).plot(ax)
            colour = ax.lines[-1].get_color()
            try:
                if self.readout == "fixed" and (flat := self.plateau(gamma=rate, Delta=Delta)).escapes:
                    ax.axhline(flat.values["risk"], color=colour, linestyle=":", linewidth=1.0, zorder=0)
            except NotConverged:
                pass  # equal students reach no plateau, so no level is drawn
        return ax

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, sizes and numbers."""
        return {"sigma": self.sigma.name, "target": self.g.name, "students": self.students, "teachers": self.teachers,
                "readout": self.readout, **fixed}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Sizes and learning rate."""
        sizes = {"students": self.students, "teachers": self.teachers}
        return ", ".join(numbers_latex({**numbers, **sizes}, students=r"\mathrm{students}", teachers=r"\mathrm{teachers}",
                                 gamma=r"\gamma"))

    def latex(self) -> str:
        """The equations, with the averages as they are defined."""
        return (r"\begin{align}" "\n"
                r"  \dot M_{jr} &= \sum_a s_a\, a_j\, \mathbb{E}[\sigma'(u_j)\, u^\star_r\, f_a(u_a)] \\" "\n"
                r"  \dot Q_{jl} &= \sum_a s_a \left(a_j\, \mathbb{E}[\sigma'(u_j)\, u_l\, f_a(u_a)] + "
                r"a_l\, \mathbb{E}[\sigma'(u_l)\, u_j\, f_a(u_a)]\right) + \frac{\gamma}{p} a_j a_l\, \mathbb{E}\left[\sigma'(u_j) "
                r"\sigma'(u_l) \left(\Delta + \left(\sum_a s_a f_a(u_a)\right)^2\right)\right]" "\n" r"\end{align}")

    _html = Theory._with_formula

    def _summary(self) -> str:
        target = "" if self.g == self.sigma else f", {self.g.name}"
        sizes = f"{self.students} students, {self.teachers} teachers"
        return shorten(f"{self.sigma.name}{target}; {sizes}, {self.readout} readout", 100)


def _negative(C: Array) -> bool:
    return bool(np.linalg.eigvalsh(C)[0] < -1e-10*np.max(np.abs(C)))


def drawn(Q: Array, P: Array, dimension: float, seed: float) -> Array:
    r"""M of weights in random directions in d dimensions: Q^(1/2) U P^(1/2), U the overlaps of two random orthonormal frames.

    U = (Z Z^T + L L^T)^(-1/2) Z, Z of p x k standard normals, L L^T the part of a p x d Gaussian matrix that is orthogonal to the
    teachers, a Wishart matrix of d - k degrees of freedom; so the entries of U are about N(0, 1/d).
    """
    p, k = len(Q), len(P)
    if not dimension > p + k:
        raise BadInput(f"committee: dimension is larger than {p + k}, the number of neurons, not {dimension:g}")
    if seed != int(seed):
        raise BadInput(f"committee: seed is an integer, 0 or more, not {seed:g}")
    rng = np.random.default_rng(int(seed))
    Z = rng.normal(size=(p, k))
    L = np.tril(rng.normal(size=(p, p)), -1) + np.diag(np.sqrt(rng.chisquare(dimension - k - np.arange(p))))
    found: Array = _root(Q) @ np.linalg.solve(_root(Z @ Z.T + L @ L.T), Z) @ _root(P)
    return found


def _root(C: Array) -> Array:
    """The symmetric root of a matrix without negative eigenvalues."""
    size, vectors = np.linalg.eigh(C)
    found: Array = vectors*np.sqrt(np.maximum(size, 0.0)) @ vectors.T
    return found


def _replaced(found: Trajectory, value: Mapping[str, Any], held: bool, error: float, why: str) -> Trajectory:
    return replace(found, value=dict(value), converged=held, error=error, residual=error, reason=why)


def committee(sigma: Formula, g: Formula | None = None, *, students: int = 2, teachers: int = 1, readout: str = "fixed"
              ) -> Committee:
    """Online SGD of a two-layer network with several neurons against a teacher of several: the flow of its overlaps.

    f = (1/p) sum_j a_j sigma(<w_j, x>/sqrt(d)), f* = (1/k) sum_r v_r g(<w*_r, x>/sqrt(d)), labels f* + sqrt(Delta) eps, one sample
    a step of rate gamma/p, t = gamma n/(p d); risk = E (f - f*)^2/2. Both networks are means over their neurons, not sums.

    Parameters
    ----------
    sigma : the student's activation, square integrable, without jumps: a name, text or expression in z
    g : the teacher's (default: the same); it may jump
    students, teachers : p and k, the number of neurons of each
    readout : "fixed", the second layer stays at a (default 1); "trained", it follows its own gradient

    Returns
    -------
    Committee : `.curve(t=[...], gamma=, Delta=0, Q=, M=, P=)` -> Curve with `risk`, Q11, ..., M11, ...; `.solve`, `.flow`,
    `.plateau(gamma=)`, `.phases(gamma=[...], students=[...], t=)`.

    Raises
    ------
    BadInput : a student that jumps, a function that is constant, not square integrable or holds parameters, sizes below 1
        or too large.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: saadsolla1995, goldt2019.

    Examples
    --------
    >>> committee("erf(z/sqrt(2))", students=3, teachers=2)
    Committee(erf(z/sqrt(2)); 3 students, 2 teachers, fixed readout)
    """
    student = activation(sigma)
    teacher = student if g is None else activation(g)
    for role, f in (("activation", student), ("target", teacher)):
        require_numbers("committee", role, f)
        if z not in f.expr.free_symbols:
            raise BadInput(f"committee: the {role} is a constant; it has no direction")
        require_square_integrable("committee", role, f)
    if student.weak_derivative.expr.has(DiracDelta):
        raise BadInput(f"committee: {student.name} jumps, and has no gradient on a sample")
    p, k = neurons("students", students), neurons("teachers", teachers)
    require_few(p, k)
    if readout not in READOUTS:
        raise BadInput(f"committee: readout is {' or '.join(READOUTS)}, not {readout!r}")
    return Committee(student, teacher, p, k, readout)
