r"""dM/dt = sum_a s_a I_3, dQ/dt = sum_a s_a (I_3 + I_3^T) + gamma/p (sum_ab s_a s_b I_4 + Delta J_2): SGD of a committee.

Student f = (1/p) sum_j a_j sigma(w_j.x/sqrt(d)), teacher y = (1/k) sum_r v_r g(w*_r.x/sqrt(d)) + sqrt(Delta) eps, one sample a
step, square loss delta^2/2: w_j += gamma/(p sqrt(d)) a_j delta sigma'(u_j) x, t = gamma n/(p d). Order parameters Q = W W^T/d,
M = W W*^T/d, P = W* W*^T/d. A trained second layer takes a_j += second gamma/(p d) delta sigma(u_j), so da_j/dt = second
E[delta sigma(u_j)] [saadsolla1995, goldt2019]. Status: the equations are a theorem of the sources for smooth bounded sigma; for
others, and for kinks, they are derived, and the experiment bears them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sympy import DiracDelta, Symbol

from hermitex.errors import BadInput, NotConverged
from hermitex.show.display import shorten
from hermitex.solvers.limit import limited
from hermitex.solvers.ode import Trajectory, integrate
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbols import z
from hermitex.systems.flow import Flow
from hermitex.theories.committees.formulas import flow
from hermitex.theories.committees.plateau import Phases, Plateau, phases, plateau
from hermitex.theories.committees.rates import Rates, label
from hermitex.theories.curve import Curve
from hermitex.theories.spike import require_square_integrable
from hermitex.theories.theory import Theory

READOUTS = ("fixed", "trained")
_NODES, _FEWER = 30, 25   # a field of unit variance; of the run and of its check
_TOLERANCE, _ROUGH = 1e-8, 1e-6  # of a run in closed form, of one by quadrature
_GROWN = 1e6              # of an order parameter: the flow diverges
Array = np.ndarray


@dataclass(frozen=True, repr=False)
class Committee(Theory):
    """p students and k teachers; `.curve(t=...)`, `.solve(...)`, `.flow`, `.plateau(...)`, `.phases(...)`.

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
        """The equations as a `Flow` of Q11, ..., M11, ..., its parameters gamma, Delta, P11, ..., a1, ..., v1, ...; for export."""
        return flow(self)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Q11, Q12, ..., M11, ..., and a1, ... where the second layer is trained."""
        p, k = self.students, self.teachers
        names = [label("Q", j, l) for j in range(p) for l in range(j, p)] + [label("M", j, r) for j in range(p) for r in range(k)]
        return (*names, *(f"a{j + 1}" for j in range(p) if self.readout == "trained"))

    @property
    def errors(self) -> tuple[str, ...]:
        """The risk E[(f - f*)^2]/2, noise not counted."""
        return ("risk",)

    @property
    def symbols(self) -> dict[str, Any]:
        """Order parameters and numbers, by name."""
        return {n: Symbol(n, real=True) for n in (*self.order_parameters, "gamma", "Delta")}

    @property
    def system(self) -> Flow:
        """The flow."""
        return self.flow

    def letters(self) -> dict[str, Any]:
        """t, gamma, Delta; Q, M, P (default P = 1; M drawn at `dimension`, Q = 1); weights a and v (default 1)."""
        return {"t": self.REQUIRED, "gamma": self.REQUIRED, "Delta": 0.0, "second": 1.0, "dimension": None, "Q": None, "M": None,
                "P": None, "a": None, "v": None}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Checked numbers, with the start that was not given."""
        out = self.checked(numbers, gamma=">= 0", Delta=">= 0", second=">= 0")
        for n in ("gamma", "Delta", "second", "dimension"):
            if n in out and np.size(out[n]) != 1:
                raise BadInput(f"committee: along a curve only t varies; {n} has {np.size(out[n])} values")
        p, k = self.students, self.teachers
        out.setdefault("P", np.eye(k))
        if "M" not in out:
            if "dimension" not in out:
                raise BadInput("committee: where does it start? Give Q and M, or dimension (Q = 1, M of a random start at that d)")
            d = float(np.ravel(out["dimension"])[0])
            if not d > p + k:
                raise BadInput(f"committee: dimension is larger than {p + k}, the number of neurons, not {d:g}")
            out["M"] = np.random.default_rng(0).normal(size=(p, k))/np.sqrt(d)
        out.setdefault("Q", np.eye(p))
        out.setdefault("a", np.ones(p))
        out.setdefault("v", np.ones(k))
        shapes = {"Q": (p, p), "M": (p, k), "P": (k, k), "a": (p,), "v": (k,)}
        for n, shape in shapes.items():
            if out[n].shape != shape:
                raise BadInput(f"committee: {n} has the shape {shape} for {p} students and {k} teachers, not {out[n].shape}")
        for n in ("Q", "P"):
            if not np.allclose(out[n], out[n].T, rtol=1e-9, atol=1e-12):
                raise BadInput(f"committee: {n} is symmetric")
        C = self.rates.joint(out["Q"], out["M"], out["P"])
        if np.linalg.eigvalsh(C)[0] < -1e-10*max(1.0, np.max(np.abs(C))):
            raise BadInput("committee: Q, M and P are no overlaps: their joint matrix [[Q, M], [M^T, P]] has a negative eigenvalue")
        return out

    # -- numbers -----------------------------------------------------------------------------------------------------------
    def solve(self, *, raise_on_failure: bool = True, start: Mapping[str, Any] | None = None, tolerance: float | None = None,
              budget: float | None = None, **numbers: Any) -> Trajectory:  # type: ignore[override]
        """The order parameters and the risk along t, by two integrations that must agree -> Trajectory.

        Parameters
        ----------
        t : (0, end) for the integrator's own steps, or the increasing times to report, the first of them the start
        gamma, Delta, Q, M, P, a, v, dimension, second : as in `.letters()`; start : {"Q": matrix, "M": matrix} instead
        tolerance : that the two integrations agree to, relative to the largest order parameter (default 1e-8; 1e-6 where averages
            have no closed form). The second runs with other steps, and on fewer nodes
        budget : seconds; what was not integrated by then is missing, and the reason says so
        """
        given = self.complete(self.given({**numbers, **(start or {})}))
        asked = (_TOLERANCE if self.rates.exact else _ROUGH) if tolerance is None else float(tolerance)
        times = np.atleast_1d(np.asarray(given["t"], dtype=float))
        with limited(budget):
            found, apart, steps = self._twice(given, times, asked/5)
            if asked < apart < np.inf and self.rates.exact:  # the flow makes what a step leaves grow
                again, closer, _ = self._twice(given, times, steps*max(asked/apart/4, 1e-4))
                found, apart = (again, closer) if closer < apart else (found, apart)
        held = bool(found.converged) and apart <= asked
        why = str(found.reason) or ("" if held else f"two integrations differ by {apart:.1e}; the flow makes errors grow, or an "
                                    "average needs more nodes; take a larger tolerance= or a shorter time")
        model = self._risks(given, found)
        found = _replaced(found, {**found.value, "risk": model}, held, apart, why)
        if raise_on_failure and not held:
            raise NotConverged(found, f"committee: {why}")
        return found

    def _twice(self, given: Mapping[str, Array], times: Array, rtol: float) -> tuple[Trajectory, float, float]:
        """A run, how far another with longer steps and fewer nodes is from it, and the tolerance of the steps."""
        found = self._run(given, times, max(rtol/5, 3e-14), _NODES)
        if not found.converged:
            return found, float("inf"), rtol
        other = self._run(given, np.asarray(found["t"]), max(rtol, 1e-13), _FEWER)
        if not other.converged:
            return found, float("inf"), rtol
        size = max(np.max(np.abs(found[n])) for n in self.order_parameters)
        return found, max(float(np.max(np.abs(found[n] - other[n])))/size for n in self.order_parameters), rtol

    def _run(self, given: Mapping[str, Array], times: Array, rtol: float, nodes: int) -> Trajectory:
        rates, a, P, v = self.rates, given["a"], given["P"], given["v"]
        gamma, Delta, second = (float(np.ravel(given[n])[0]) for n in ("gamma", "Delta", "second"))

        def rate(t: float, x: Array, p: Any) -> Array:
            q, m, b = rates.read(x, a)
            return rates.packed(*rates.rate(q, m, b, P, v=v, gamma=gamma, Delta=Delta, second_rate=second, nodes=nodes))

        x0 = rates.packed(given["Q"], given["M"], a)
        far = {"diverges": lambda t, x, p: float(np.max(np.abs(x))) - _GROWN}
        found = integrate(rate, x0, times if times.size > 1 else (0.0, float(times[0])), names=self.order_parameters, events=far,
                          terminal=("diverges",), rtol=rtol, atol=rtol*float(np.max(np.abs(x0))), raise_on_failure=False)
        if found.events["diverges"]["t"].size:
            return _replaced(found, found.value, False, float("nan"), f"the order parameters diverge at t = {found['t'][-1]:.4g}: "
                             "the learning rate is too large")
        return found

    def _risks(self, given: Mapping[str, Array], path: Trajectory) -> Array:
        x = np.array([path[n] for n in self.order_parameters]).T
        return np.array([self.rates.risk(*self.rates.read(row, given["a"]), given["P"], v=given["v"], nodes=_NODES) for row in x])

    def curve(self, t: Any = None, *, start: Mapping[str, Any] | None = None,  # type: ignore[override]
              tolerance: float | None = None, title: str = "", **numbers: Any) -> Curve:
        """The risk and the order parameters along `t`, an increasing list of times from 0 on -> Curve (its `axis` is t).

        >>> found = committee("erf(z/sqrt(2))", students=1, teachers=1).curve(t=[0, 5], gamma=1, Q=[[1]], M=[[0.5]])
        >>> found["risk"].round(5)
        array([0.17247, 0.01232])
        """
        if t is None:
            raise BadInput("committee: t has no value; add t=np.linspace(0, 20, 100)")
        line = np.atleast_1d(np.asarray(self.given({"t": t})["t"], dtype=float))
        if line.ndim != 1 or np.any(line < 0) or np.any(np.diff(line) <= 0) or not np.all(np.isfinite(line)):
            raise BadInput("committee: t is an increasing list of times, none below 0")
        whole = line if line[0] == 0 else np.concatenate([[0.0], line])
        whole = whole if whole.size > 1 else np.array([0.0, 1e-9])
        found = self.solve(t=whole, start=start, tolerance=tolerance, raise_on_failure=False, **numbers)
        reached = np.isin(line, found["t"])
        good = reached & bool(found.converged)
        values = {}
        for n in ("risk", *self.order_parameters):
            values[n] = np.full(line.shape, np.nan)
            values[n][good] = found[n][np.searchsorted(found["t"], line[good])]
        fixed = {n: float(v) for n, v in self.given(numbers).items() if np.ndim(v) == 0}
        return Curve(self.name, self.described(fixed), line, values, self.order_parameters, converged=good,
                     residual=np.full(line.shape, found.error), reason=found.reason, title=title or self.titled(fixed), axis="t",
                     sources=self.sources)

    # -- plateaus ----------------------------------------------------------------------------------------------------------
    def plateau(self, *, gamma: float, Delta: float = 0.0, norm: float = 1.0) -> Plateau:
        """The symmetric plateau of equal students and orthogonal teachers of squared norm `norm`: where, and how unstable.

        >>> found = committee("erf(z/sqrt(2))", students=2, teachers=2).plateau(gamma=0.1)
        >>> found.escapes, round(found.values["M"], 4)
        (True, 0.4085)
        """
        return plateau(self, gamma=gamma, Delta=Delta, norm=norm)

    def phases(self, *, gamma: Any, students: Any, t: float, dimension: float = 1000.0, Delta: float = 0.0) -> Phases:
        """Over learning rate and width, what is reached by time t: diverges, on the plateau, or specialised -> Phases."""
        return phases(self, gamma=gamma, students=students, t=t, dimension=dimension, Delta=Delta)

    # -- showing -----------------------------------------------------------------------------------------------------------
    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, sizes and numbers."""
        return {"sigma": self.sigma.name, "target": self.g.name, "students": self.students, "teachers": self.teachers,
                "readout": self.readout, **fixed}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Sizes and learning rate."""
        said = f", $\\gamma = {numbers['gamma']:.4g}$" if "gamma" in numbers else ""
        return f"$p = {self.students}$, $k = {self.teachers}$" + said

    def latex(self) -> str:
        """The equations, with the averages as they are defined."""
        return (r"\begin{align}" "\n"
                r"  \dot M_{jr} &= \sum_a s_a\, a_j\, \mathbb{E}[\sigma'(u_j)\, u^\star_r\, f_a(u_a)] \\" "\n"
                r"  \dot Q_{jl} &= \sum_a s_a \left(a_j\, \mathbb{E}[\sigma'(u_j)\, u_l\, f_a(u_a)] + "
                r"a_l\, \mathbb{E}[\sigma'(u_l)\, u_j\, f_a(u_a)]\right) + \frac{\gamma}{p} a_j a_l\, \mathbb{E}\left[\sigma'(u_j) "
                r"\sigma'(u_l) \left(\Delta + \left(\sum_a s_a f_a(u_a)\right)^2\right)\right]" "\n" r"\end{align}")

    def _html(self) -> str:
        from html import escape

        return f"<p><code>{escape(repr(self))}</code></p>$${escape(self.latex(), quote=False)}$$"

    def _summary(self) -> str:
        target = "" if self.g == self.sigma else f", {self.g.name}"
        sizes = f"{self.students} students, {self.teachers} teachers"
        return shorten(f"{self.sigma.name}{target}; {sizes}, {self.readout} readout", 100)


def _replaced(found: Trajectory, value: Mapping[str, Any], held: bool, error: float, why: str) -> Trajectory:
    from dataclasses import replace

    return replace(found, value=dict(value), converged=held, error=error, residual=error, reason=why)


def committee(sigma: Any, g: Any = None, *, students: Any = 2, teachers: Any = 1, readout: str = "fixed") -> Committee:
    """Online SGD of a two-layer network with several neurons against a teacher of several: the flow of its overlaps.

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
    BadInput : a student that jumps, a function that is not square integrable or holds parameters, sizes below 1.

    References: saadsolla1995, goldt2019.

    Examples
    --------
    >>> committee("erf(z/sqrt(2))", students=3, teachers=2)
    Committee(erf(z/sqrt(2)); 3 students, 2 teachers, fixed readout)
    """
    student = activation(sigma)
    teacher = student if g is None else activation(g)
    for role, f in (("activation", student), ("target", teacher)):
        if extra := f.expr.free_symbols - {z}:
            raise BadInput(f"committee: the {role} {f.name} holds {', '.join(sorted(map(str, extra)))}; put numbers in")
        require_square_integrable("committee", role, f)
    if student.weak_derivative.expr.has(DiracDelta):
        raise BadInput(f"committee: {student.name} jumps, and has no gradient on a sample")
    sizes = []
    for name, n in (("students", students), ("teachers", teachers)):
        try:
            sizes.append(int(str(n)))
        except ValueError:
            raise BadInput(f"committee: {name} is a number of neurons, 1 or more, not {n!r}") from None
        if sizes[-1] < 1:
            raise BadInput(f"committee: {name} is 1 or more, not {n}")
    if readout not in READOUTS:
        raise BadInput(f"committee: readout is {' or '.join(READOUTS)}, not {readout!r}")
    return Committee(student, teacher, sizes[0], sizes[1], readout)
