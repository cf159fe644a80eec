r"""dw/dt = -eta P grad L on the sphere: a neuron learns g(<beta, x>/sqrt(kappa)) in data with a spike, Sigma = 1 + theta mu mu^T.

omega = <w, mu> and a = <w, beta> of the unit vector w, rho = <mu, beta>, kappa = 1 + theta rho^2, N^2 = <w, Sigma w> =
1 + theta omega^2, and c = (a + theta rho omega)/(N sqrt(kappa)) is the correlation of the neuron's field with the target's.
Source: mousavi2023; the flows of two overlaps are derived.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, Integer, Symbol, sqrt

from hermitex.errors import BadInput, NotConverged, NoValue
from hermitex.kernels.compile import compile
from hermitex.numbers.gauss import legendre_on
from hermitex.solvers.ode import Trajectory
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import rho, z, z1, z2
from hermitex.systems.flow import Flow
from hermitex.systems.names import read_start
from hermitex.theories.curve import Curve
from hermitex.theories.spike import require_square_integrable
from hermitex.theories.theory import Theory

FLOWS = ("preconditioned", "rescaled", "normalised", "spherical")
OMEGA, A, THETA = Symbol("omega", real=True), Symbol("a", real=True), Symbol("theta", nonnegative=True)
_S, _C = Symbol("s", positive=True), Symbol("c", real=True)


def start_correlation(d: Any, gamma_1: Any, gamma_2: Any, m0: Any = None, a0: Any = None) -> Any:
    """c_0 = (a_0 + theta rho m_0)/sqrt((1 + theta m_0^2)(1 + theta rho^2)), theta = d^gamma_2, rho = d^(-gamma_1).

    m0, a0 : overlaps of the unit vector w with the spike and with the target (default: d^(-1/2), those of a random start)

    >>> round(float(start_correlation(1e4, 0.2, 0.3)), 9)
    0.029677434
    """
    theta, r = np.asarray(d, dtype=float)**gamma_2, np.asarray(d, dtype=float)**-np.asarray(gamma_1, dtype=float)
    m, a = (np.asarray(d, dtype=float)**-0.5 if x is None else x for x in (m0, a0))
    return (a + theta*r*m)/np.sqrt((1 + theta*m**2)*(1 + theta*r**2))


class SpikedFlow(Theory):
    """A target g, a student sigma and the kind of its flow: the formulas, and the curve along t at theta = d^gamma_2."""

    g: Activation | None
    sigma: Activation | None
    kind: str

    name: ClassVar[str] = "spiked-covariance"
    axis: ClassVar[str] = "t"

    # -- formulas ----------------------------------------------------------------------------------------------------------
    def flow(self, kind: str | None = None, sigma: Any = None, *, partial: bool = False) -> Flow:
        r"""The flow of one neuron on the sphere, square loss; parameter theta, the spike's strength.

            dw/dt = -(1 - w w^T) eta P grad L,   s^2 = N^2 = 1 + theta omega^2,   c = (a + theta rho omega)/(N sqrt(kappa))

        "preconditioned": the neuron is sigma(<w, x>/N), eta P = N^2 Sigma^(-1), which gives dc/dt = h'(c) (1 - c^2), h(c) =
        E[sigma(z1) g(z2)] at correlation c; the flow of the theorem. "rescaled": P = 1, eta = N^2; "normalised": P = eta = 1.
        "spherical": the neuron is sigma(<w, x>), whose variance s^2 grows with the overlap, P = eta = 1. For k >= 3 the last is
        pushed back to omega = 0 from omega ~ d^(-1/2), the others learn. Status: derived.
        Times are those of half the square, L = E(f - y)^2/2; of the whole square they are half as long.
        Observables: `cosine`, which is c, and `test_error`, E(f - y)^2.

        kind, sigma : the flow and the student (default: the theory's own; the student is the target if it has none)
        partial : False, the spike is the target's direction (rho = 1, one overlap omega); True, omega and a, parameter rho

        >>> from hermitex.theories import spiked_covariance
        >>> spiked_covariance("He2").flow("normalised").equations[OMEGA].subs(THETA, 0).factor()
        -4*omega*(omega - 1)*(omega + 1)
        """
        kind = kind or self.kind
        if kind not in FLOWS:
            raise BadInput(f"spiked-covariance: the flow is {' or '.join(FLOWS)}, not {kind!r}")
        gain, cost = self._losses(kind, sigma)
        off, across = rho - A*OMEGA, (1 - A**2)*(1 + THETA*rho**2) + THETA*(OMEGA - A*rho)**2
        both = {OMEGA: _drift(kind, gain, cost, off, (1 + THETA)*off, THETA*OMEGA*(1 - OMEGA**2)),
                A: _drift(kind, gain, cost, 1 - A**2, across, THETA*OMEGA*off)}
        at = _places()
        assert self.g is not None
        seen = {"cosine": at[_C], "test_error": (2*cost - 2*gain + E(self.g.expr**2, z).doit()).subs(at).doit()}
        aligned = {A: OMEGA, rho: Integer(1)}
        if not partial:
            both = {OMEGA: both[OMEGA].subs(aligned)}
            seen = {n: e.subs(aligned) for n, e in seen.items()}
        return Flow(both, domain=dict.fromkeys(both, (-1, 1)), source="mousavi2023", observables=seen,
                    name=f"{kind} flow of {self.g.name}")

    def _losses(self, kind: str, sigma: Any = None) -> tuple[Expr, Expr]:
        """(E[sigma(s z1) g(z2)] at correlation c, E sigma(s z)^2/2); s = 1 but for the spherical flow."""
        if self.g is None:
            raise BadInput("spiked-covariance: the flow needs the target; give it")
        student = self.student if sigma is None else activation(sigma)
        require_square_integrable("spiked-covariance", "activation", student)
        scale = _S if kind == "spherical" else Integer(1)
        gain = E(student.expr.xreplace({z: scale*z1})*self.g.expr.xreplace({z: z2}), z1, z2, cov={(z1, z2): _C}).doit()
        return gain, E(student.expr.xreplace({z: scale*z})**2, z).doit()/2

    @property
    def system(self) -> Flow:
        """The flow of its own kind and student, with a spike along the target."""
        return self.flow()

    @property
    def student(self) -> Activation:
        """The neuron's function: the target where none was given."""
        found = self.g if self.sigma is None else self.sigma
        if found is None:
            raise BadInput("spiked-covariance: the flow needs the target; give it")
        return found

    def escape_time(self, *, dimension: Any, gamma_1: Any = 0, gamma_2: Any = 0, preconditioned: bool = True, level: float = 0.5,
                    m0: Any = None, a0: Any = None, tolerance: float = 1e-9) -> Any:
        r"""T = int_(c_0)^level dc/(2 h'(c) (1 - c^2)): the time at which the correlation c of the fields reaches `level`.

        h(c) = E[sigma(z1) g(z2)] at correlation c; the spike enters through c_0 alone (`start_correlation`). The clock is that of
        the theorem, the flow of E(f - y)^2; the flows of `.curve` are those of its half, and reach `level` at 2 T.

        Parameters
        ----------
        dimension, gamma_1, gamma_2 : d, <mu, beta> = d^(-gamma_1), theta = d^gamma_2; arrays broadcast
        preconditioned : False: the flow without Sigma^(-1), faster by d^A at its start, by integration of its two overlaps
        level : the correlation that counts as learned, between 0 and 1
        m0, a0 : overlaps at the start with the spike and the target (default: d^(-1/2)); a0 is m0 where gamma_1 = 0

        Returns
        -------
        float or array : T; 0 where c_0 is at `level` already, inf where the correlation never reaches it

        >>> from hermitex.theories import spiked_covariance
        >>> theory = spiked_covariance("He3(z)/sqrt(6)")
        >>> round(theory.escape_time(dimension=1e4, gamma_1=0.2, gamma_2=0.3, preconditioned=True), 7)
        5.3692092
        """
        if not isinstance(level, (int, float)) or not 0 < level < 1:
            raise BadInput(f"spiked-covariance: level must be between 0 and 1, not {level!r}")
        numbers = {"dimension": dimension, "gamma_1": gamma_1, "gamma_2": gamma_2, "m0": m0, "a0": a0, "t": 0.0}
        given = self.complete(self.given(numbers))
        letters = ("dimension", "gamma_1", "gamma_2", "m0", "a0")
        shape = np.broadcast_shapes(*(given[n].shape for n in letters))
        points = zip(*(np.broadcast_to(given[n], shape).ravel().tolist() for n in letters), strict=True)
        found = [self._escape(dict(zip(letters, at, strict=True)), preconditioned, float(level), tolerance) for at in points]
        return np.array(found).reshape(shape) if shape else found[0]

    def _escape(self, at: Mapping[str, float], preconditioned: bool, level: float, tolerance: float) -> float:
        d = at["dimension"]
        first = float(start_correlation(d, at["gamma_1"], at["gamma_2"], at["m0"], at["a0"]))
        if first >= level:
            return 0.0
        if preconditioned:
            return self._integral(first, level)
        flow = self.flow("rescaled", partial=True)
        # Sigma >= 1, so that it is never slower than the preconditioned flow, which takes 2 T on this clock
        if not np.isfinite(longest := 4*self._integral(first, level)):
            return np.inf
        found = flow.solve(t=(0.0, longest), start={"omega": at["m0"], "a": at["a0"]}, theta=d**at["gamma_2"],
                           rho=d**-at["gamma_1"], tolerance=tolerance, events={"learned": f"cosine - {level!r}"},
                           terminal=["learned"], raise_on_failure=False)
        if not np.size(reached := found.events["learned"]["t"]):
            raise NotConverged(found, f"spiked-covariance: {found.reason or 'the level is not reached'}")
        return float(np.ravel(reached)[0])/2

    def _integral(self, first: float, level: float) -> float:
        """int dc/(2 h'(c) (1 - c^2)) from `first` to `level`, inf where h' is not positive on the way."""
        if not first > 0:
            raise BadInput(f"spiked-covariance: the neuron starts at correlation {first:.3g} with the target, which is not "
                           "positive; take other m0 and a0")
        # c = tanh(exp(u)): the integrand is smooth at both ends; 8 panels of 24 nodes have twelve digits for monomials
        low, high = np.log(np.arctanh([first, level]))
        u, w = legendre_on(np.linspace(low, high, 9), 24)
        v = np.exp(u)
        kernel = self._slope
        rate = np.broadcast_to(kernel(**({"c": np.tanh(v)} if kernel.parameters else {})), v.shape)
        return float(np.sum(w*v/(2*rate))) if np.all(rate > 0) else np.inf

    @cached_property
    def _slope(self) -> Any:
        """h'(c), compiled."""
        return compile(self._losses("preconditioned")[0].diff(_C))

    # -- numbers -----------------------------------------------------------------------------------------------------------
    order_parameters = ("omega", "cosine")  # omega, and the correlation of the two fields

    errors = ("test_error",)  # E(f - y)^2

    def letters(self) -> dict[str, Any]:
        """t; gamma_1, gamma_2 and dimension: rho = d^-gamma_1, theta = d^gamma_2; m0, a0: overlaps at t = 0 (default: d^(-1/2))."""
        return {"t": self.REQUIRED, "gamma_2": self.REQUIRED, "dimension": self.REQUIRED, "gamma_1": 0.0, "m0": None, "a0": None}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked, with m0 and a0."""
        out = self.checked(numbers, gamma_2=">= 0", gamma_1=">= 0", dimension="> 0")
        for name, top in (("gamma_2", 1.0), ("gamma_1", 0.5)):
            if (beyond := out[name][(out[name] > top) | ((out[name] == 1) & (top == 1))]).size:
                raise BadInput(f"spiked-covariance: {name} must be between 0 and {top:g}, not {beyond[0]:g}")
        if not np.all(out["dimension"] >= 2):
            raise BadInput(f"spiked-covariance: dimension is 2 or more, not {np.min(out['dimension']):g}")
        random = np.asarray(out["dimension"])**-0.5
        out["m0"] = out.get("m0", random)
        out["a0"] = out.get("a0", np.where(out["gamma_1"] == 0, out["m0"], random))
        aligned, r = out["gamma_1"] == 0, np.asarray(out["dimension"])**-np.asarray(out["gamma_1"])
        if np.any(aligned & (np.abs(out["a0"] - out["m0"]) > 0)):
            raise BadInput("spiked-covariance: at gamma_1 = 0 the spike is the target's direction, and a0 is m0; leave a0 out")
        for name in ("m0", "a0"):
            begins = np.ravel(out[name])
            if not np.all(good := (np.abs(begins) < 1) & (begins != 0)):
                raise BadInput(f"spiked-covariance: {name} must be between -1 and 1 and different from 0, not {begins[~good][0]:g}")
        outside = (out["m0"]**2 + out["a0"]**2 - 2*r*out["m0"]*out["a0"] > 1 - r**2) & ~aligned
        if np.any(outside):
            raise BadInput("spiked-covariance: no unit vector has these overlaps m0 and a0 with two directions of overlap "
                           "d^-gamma_1; take smaller ones")
        return out

    def by_equations(self, numbers: dict[str, np.ndarray]) -> Mapping[str, Any]:
        """theta, where omega starts, and the time: the equations of `system`, with a spike along the target."""
        if np.any(numbers["gamma_1"] != 0):
            raise BadInput("spiked-covariance: the equations that are written to a file are those at gamma_1 = 0; of others take "
                           ".flow(partial=True).export(...)")
        return {"theta": numbers["dimension"]**numbers["gamma_2"], "start_omega": numbers["m0"],
                **{n: v for n, v in numbers.items() if n == "t"}}

    def solve(self, *, t: Any = None, raise_on_failure: bool = True, start: Mapping[str, Any] | None = None,
              tolerance: float = 1e-7, budget: float | None = None, **numbers: Any) -> Trajectory:
        """omega, cosine and test_error along t, from 0 on -> Trajectory; a, too, where gamma_1 > 0.

        t : increasing times, or the time to reach, and then every value is that at its end
        start : {"omega": number} instead of m0; {"omega": , "a": } where gamma_1 > 0
        """
        line = self.times(t)
        given = self.complete(self.given(numbers))
        at = self.single(given, *given)
        whole = np.unique(np.concatenate([[0.0], line]))
        partial = at["gamma_1"] != 0
        first = {"omega": at["m0"], **({"a": at["a0"]} if partial else {}), **read_start(start, "'omega': 0.1")}
        times = float(line[0]) if np.ndim(t) == 0 else whole if whole.size > 1 else [0.0, 1e-9]
        spike = {"theta": at["dimension"]**at["gamma_2"], **({"rho": at["dimension"]**-at["gamma_1"]} if partial else {})}
        return self.flow(partial=partial).solve(t=times, start=first, tolerance=tolerance, budget=budget,
                                                raise_on_failure=raise_on_failure, **spike)

    def curve(self, t: Any = None, *, start: Mapping[str, Any] | None = None,  # type: ignore[override]
              tolerance: float = 1e-7, title: str = "", **numbers: Any) -> Curve:
        """test_error, omega and cosine along `t`, an increasing list of times -> Curve (its `axis` is t); a where gamma_1 > 0.

        Without t: 200 times until the correlation of the fields is 0.99, of the preconditioned flow.

        >>> from hermitex.theories import spiked_covariance
        >>> found = spiked_covariance("He3", flow="normalised").curve(t=[0, 1], gamma_2=0.5, dimension=1000)
        >>> found["omega"].round(4)
        array([0.0316, 0.9196])
        """
        given = self.complete(self.given(numbers)) if t is None else {}
        line = self.times(self._until_learned(given) if t is None else t)
        found = self.solve(t=line, start=start, tolerance=tolerance, raise_on_failure=False, **numbers)
        given = given or self.complete(self.given(numbers))
        at = self.single(given, *given)
        at |= {letter: float(start[n]) for n, letter in (("omega", "m0"), ("a", "a0")) if start and n in start}
        good = np.isin(line, found["t"]) & bool(found.converged)
        names = (*self.order_parameters, *(("a",) if at["gamma_1"] else ()))
        values = {n: np.full(line.shape, np.nan) for n in (*self.errors, *names)}
        for n, v in values.items():
            v[good] = found[n][np.searchsorted(found["t"], line[good])]
        return Curve(self.name, self.described(at), line, values, names, converged=good,
                     residual=np.full(line.shape, found.error), reason=found.reason, title=title or f"{self.kind} flow",
                     named=bool(title), axis="t", sources=("mousavi2023",))

    def _until_learned(self, given: Mapping[str, Any]) -> np.ndarray:
        if self.kind != "preconditioned":
            raise NoValue(self.name, "t", "np.linspace(0, 20, 100)")
        at = self.single(given, *given)
        end = 2*self._escape(at, True, 0.99, 1e-9)
        if not 0 < end < np.inf:
            raise NoValue(self.name, "t", "np.linspace(0, 20, 100)")
        return np.linspace(0, end, 200)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, the flow, the numbers and the spike."""
        theta = fixed["dimension"]**fixed["gamma_2"]
        aligned = not fixed.get("gamma_1")  # the one overlap is omega, and its start m0
        return {"sigma": self.student.name, "target": "" if self.g is None else self.g.name, "flow": self.kind,
                **{n: v for n, v in fixed.items() if not (aligned and n in ("gamma_1", "a0"))}, "theta": theta, "status": "derived"}


def _places() -> dict[Symbol, Expr]:
    """s and c in the overlaps."""
    size = sqrt(1 + THETA*OMEGA**2)
    return {_S: size, _C: (A + THETA*rho*OMEGA)/(size*sqrt(1 + THETA*rho**2))}


def _drift(kind: str, gain: Expr, cost: Expr, whitened: Expr, plain: Expr, norm: Expr) -> Expr:
    """d<w, v>/dt of a direction v.

    whitened : <v, (1 - w w^T) beta>;  plain : N^2 <v, Sigma beta> - sqrt(kappa) N c <v, Sigma w>, by which c grows without a
    preconditioner;  norm : <v, (1 - w w^T) Sigma w>, by which the norm s of the field does. Each is written without a difference
    of large terms.
    """
    along, root = gain.diff(_C), sqrt(1 + THETA*rho**2)
    pull = _S*whitened if kind == "preconditioned" else plain/_S**(1 if kind == "rescaled" else 3)
    return (along*pull/root + (gain - cost).diff(_S)*norm/_S).subs(_places()).doit()
