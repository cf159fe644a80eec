r"""d omega/dt = -(1 - omega^2) dL/d omega: a neuron on the sphere learns g(<mu, x>/sqrt(1 + theta)), Sigma = 1 + theta mu mu^T.

omega = <w, mu>, s^2 = <w, Sigma w> = 1 + theta omega^2, and c = sqrt(1 + theta) omega/s is the correlation of the neuron's field
with the target's. The neuron is sigma(<w, x>) or sigma(<w, x>/s): the spherical and the normalised flow [mousavi2023].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sympy import Integer, Symbol, sqrt

from hermitex.errors import BadInput
from hermitex.solvers.ode import Trajectory
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import z, z1, z2
from hermitex.systems.flow import Flow
from hermitex.systems.names import read_start
from hermitex.theories.curve import Curve
from hermitex.theories.spike import require_square_integrable
from hermitex.theories.theory import Theory

FLOWS = ("spherical", "normalised")
OMEGA, THETA = Symbol("omega", real=True), Symbol("theta", nonnegative=True)


class SpikedFlow(Theory):
    """A target g, a student sigma and the kind of its flow: the formulas, and the curve along t at theta = d^gamma_2."""

    g: Activation | None
    sigma: Activation | None
    kind: str

    name: ClassVar[str] = "spiked-covariance"
    axis: ClassVar[str] = "t"

    # -- formulas ----------------------------------------------------------------------------------------------------------
    def flow(self, kind: str | None = None, sigma: Any = None) -> Flow:
        r"""d omega/dt of one neuron on the sphere, omega = <w, mu>, beta = mu, square loss; parameter theta, the spike's strength.

            s^2 = 1 + theta omega^2,   c = sqrt(1 + theta) omega/s,   d omega/dt = -(1 - omega^2) dL/d omega

        "spherical": the neuron is sigma(<w, x>), whose variance s^2 grows with the overlap, L = E sigma(s z)^2/2 - E[sigma(s z1)
        g(z2)]; "normalised": it is sigma(<w, x>/s), L = -E[sigma(z1) g(z2)] at correlation c. Status: derived. For k >= 3 the
        first is pushed back to omega = 0 from omega ~ d^(-1/2), the second learns.
        Times are those of half the square, E(f - y)^2/2; of the whole square they are half as long.
        Observables: `cosine`, which is c, and `test_error`, E(f - y)^2.

        kind, sigma : the flow and the student (default: the theory's own; the student is the target if it has none)

        >>> from hermitex.theories import spiked_covariance
        >>> spiked_covariance("He2").flow().equations[OMEGA].subs(THETA, 0)
        4*omega*(1 - omega**2)
        """
        if self.g is None:
            raise BadInput("spiked-covariance: the flow needs the target; give it")
        kind = kind or self.kind
        if kind not in FLOWS:
            raise BadInput(f"spiked-covariance: the flow is {' or '.join(FLOWS)}, not {kind!r}")
        student = self.student if sigma is None else activation(sigma)
        require_square_integrable("spiked-covariance", "activation", student)
        s, c = Symbol("s", positive=True), Symbol("c", real=True)
        scale = s if kind == "spherical" else Integer(1)
        gain = E(student.expr.xreplace({z: scale*z1})*self.g.expr.xreplace({z: z2}), z1, z2, cov={(z1, z2): c}).doit()
        cost = E(student.expr.xreplace({z: scale*z})**2, z).doit()/2
        size = sqrt(1 + THETA*OMEGA**2)
        at = {s: size, c: sqrt(1 + THETA)*OMEGA/size}
        slope = ((gain - cost).diff(s).subs(at)*size.diff(OMEGA) + gain.diff(c).subs(at)*at[c].diff(OMEGA)).doit()
        square = E(self.g.expr**2, z).doit()
        return Flow({OMEGA: (1 - OMEGA**2)*slope}, domain={OMEGA: (-1, 1)}, source="mousavi2023",
                    observables={"cosine": at[c], "test_error": (2*cost - 2*gain + square).subs(at)},
                    name=f"{kind} flow of {self.g.name}")

    @property
    def system(self) -> Flow:
        """The flow of its own kind and student."""
        return self.flow()

    @property
    def student(self) -> Activation:
        """The neuron's function: the target where none was given."""
        found = self.g if self.sigma is None else self.sigma
        if found is None:
            raise BadInput("spiked-covariance: the flow needs the target; give it")
        return found

    # -- numbers -----------------------------------------------------------------------------------------------------------
    order_parameters = ("omega", "cosine")  # omega, and the correlation of the two fields

    errors = ("test_error",)  # E(f - y)^2

    def letters(self) -> dict[str, Any]:
        """t; gamma_2 and dimension, theta = d^gamma_2; m0, the overlap at t = 0 (default: d^(-1/2))."""
        return {"t": self.REQUIRED, "gamma_2": self.REQUIRED, "dimension": self.REQUIRED, "m0": None}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked, with m0."""
        out = self.checked(numbers, gamma_2=">= 0", dimension="> 0")
        if not np.all(out["gamma_2"] < 1):
            raise BadInput(f"spiked-covariance: gamma_2 must be between 0 and 1, not {np.max(out['gamma_2']):g}")
        if not np.all(out["dimension"] >= 2):
            raise BadInput(f"spiked-covariance: dimension is 2 or more, not {np.min(out['dimension']):g}")
        out["m0"] = out.get("m0", np.asarray(out["dimension"])**-0.5)
        begins = np.ravel(out["m0"])
        if not np.all(good := (np.abs(begins) < 1) & (begins != 0)):
            raise BadInput(f"spiked-covariance: m0 must be between -1 and 1 and different from 0, not {begins[~good][0]:g}")
        return out

    def by_equations(self, numbers: dict[str, np.ndarray]) -> Mapping[str, Any]:
        """theta, where omega starts, and the time."""
        return {"theta": numbers["dimension"]**numbers["gamma_2"], "start_omega": numbers["m0"],
                **{n: v for n, v in numbers.items() if n == "t"}}

    def solve(self, *, t: Any = None, raise_on_failure: bool = True, start: Mapping[str, Any] | None = None,
              tolerance: float = 1e-7, budget: float | None = None, **numbers: Any) -> Trajectory:
        """omega, cosine and test_error along t, from 0 on -> Trajectory; start : {"omega": number} instead of m0.

        t : increasing times, or the time to reach, and then every value is that at its end
        """
        line = self.times(t)
        given = self.complete(self.given(numbers))
        at = self.single(given, *given)
        whole = np.unique(np.concatenate([[0.0], line]))
        first = {"omega": at["m0"], **read_start(start, "'omega': 0.1")}
        times = float(line[0]) if np.ndim(t) == 0 else whole if whole.size > 1 else [0.0, 1e-9]
        return self.flow().solve(t=times, start=first, theta=at["dimension"]**at["gamma_2"],
                                 tolerance=tolerance, budget=budget, raise_on_failure=raise_on_failure)

    def curve(self, t: Any = None, *, start: Mapping[str, Any] | None = None,  # type: ignore[override]
              tolerance: float = 1e-7, title: str = "", **numbers: Any) -> Curve:
        """test_error, omega and cosine along `t`, an increasing list of times -> Curve (its `axis` is t).

        >>> from hermitex.theories import spiked_covariance
        >>> spiked_covariance("He3").curve(t=[0, 1], gamma_2=0.5, dimension=1000)["omega"].round(4)
        array([0.0316, 0.9196])
        """
        line = self.times(t)
        found = self.solve(t=line, start=start, tolerance=tolerance, raise_on_failure=False, **numbers)
        given = self.complete(self.given(numbers))
        at = {**self.single(given, *given), **({"m0": float(start["omega"])} if start else {})}
        good = np.isin(line, found["t"]) & bool(found.converged)
        values = {n: np.full(line.shape, np.nan) for n in (*self.errors, *self.order_parameters)}
        for n, v in values.items():
            v[good] = found[n][np.searchsorted(found["t"], line[good])]
        return Curve(self.name, self.described(at), line, values, self.order_parameters, converged=good,
                     residual=np.full(line.shape, found.error), reason=found.reason, title=title or f"{self.kind} flow",
                     named=bool(title), axis="t", sources=("mousavi2023",))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, the flow, the numbers and the spike."""
        theta = fixed["dimension"]**fixed["gamma_2"]
        return {"sigma": self.student.name, "target": "" if self.g is None else self.g.name, "flow": self.kind, **fixed,
                "theta": theta, "status": "derived"}
