r"""F(s) = E_u[mu_0 m + kappa mu_1 zeta + mu_1 psi w],   kappa = gamma s + sqrt(rho) u,   w = sqrt(rho) s - gamma u.

The learned function: given kappa and the target's other coordinate w, the readout's output has the mean in the bracket and
the variance mu_1^2 (q_1 - psi^2) + mu_2^2 q_2, over everything else in x. Norms of the rows that fluctuate, those of a network
or of Gaussian rows, add chi d mu_0/dc to the mean. With several directions s = e.z, e = C_1/|C_1|, and
psi is the one along e. With a vocabulary each term is a sum over the letters, mu_1^T (q_1 - psi psi^T) mu_1 in the variance.
Figure 1 of cui2024 shows F.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Symbol, sqrt, symbols

from hermitex.errors import BadInput, NoValue
from hermitex.hints import Axes, Numbers
from hermitex.show.plots import curves
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import kappa, z
from hermitex.systems.system import System
from hermitex.theories.spike_span import axes, beside_numbers, seen_beside

shift, width, F, square, both, chi, nu = symbols("shift width F square both chi nu", real=True)


class Learned(NamedTuple):
    """Mean and standard deviation of the learned function, over everything in x that was not given."""

    mean: Any
    spread: Any


@dataclass(frozen=True, eq=False, repr=False)
class OneStepSolution(Solution):
    """A solution of `one_step`, with the function that was learned."""

    theory: Any = None

    @classmethod
    def of(cls, found: Solution, theory: Any) -> OneStepSolution:
        """The same numbers, with the theory they came from."""
        return cls(**{f.name: getattr(found, f.name) for f in fields(Solution)}, theory=theory)

    def learned(self, z: Numbers | None = None, kappa: Numbers | None = None) -> Learned:
        """Mean and spread of the learned function against the target's direction, against the spike's, or given both.

        Parameters
        ----------
        z : values of theta.x; of several directions those of e.x, e = C_1/|C_1|
        kappa : values of v.x, v the direction of the spike

        Returns
        -------
        Learned : `.mean` and `.spread` (standard deviation), numbers or arrays as z and kappa.

        Raises
        ------
        BadInput : neither is given; the solution holds several points (take `.point(k)`); both at gamma = 1 or -1.

        Guarantee
        ---------
        The limit of the sources, its mean square to ten digits; a spread below 1e-7 of the output is rounding. See
        docs/promise.md.

        Examples
        --------
        >>> from hermitex.theories import one_step
        >>> found = one_step("tanh", "sin").solve(alpha=2, lam=0.05, r=1.8, c=1.1, gamma=0.9)
        >>> round(found.learned(z=0.5).mean, 10), round(found.learned(z=0.5).spread, 10)
        (0.419255988, 0.2745113885)
        """
        if z is None and kappa is None:
            raise NoValue("learned", "z", "[-2, 0, 2]")
        at = self._at()
        gamma = float(at["gamma"])
        rho = (1 - gamma)*(1 + gamma)
        beside: Any  # psi w = psi (beside[0] + beside[1] u)
        if z is None:
            where, width, beside = _line("kappa", kappa), 0.0, None
        elif kappa is None:
            s = _line("z", z)
            where, width, beside = gamma*s, np.sqrt(rho), (np.sqrt(rho)*s, -gamma)
        else:
            s, where = np.broadcast_arrays(_line("z", z), _line("kappa", kappa))
            if rho == 0:
                raise BadInput("learned: at gamma = 1 or -1 the spike is the target's direction; give z or kappa, not both")
            width, beside = 0.0, ((s - gamma*where)/np.sqrt(rho), 0.0)
        shape = np.shape(where)
        numbers = {"shift": where, "width": width, **self._readout(at, beside)}
        numbers |= {v.name: float(at[v.name]) for v in self.theory.sigma.letters}
        if norms := "chi" in self.value:
            numbers["chi"] = self["chi"]
        system = law(self.theory.sigma, len(self._marks), norms)
        found = system.solve({n: np.broadcast_to(v, shape).ravel() for n, v in numbers.items()})
        mean = np.reshape(found["F"], shape)
        deviation = np.sqrt(np.maximum(np.reshape(found["both"] - found["square"], shape), 0))
        return Learned(mean, deviation) if shape else Learned(mean.item(), deviation.item())

    def plot_learned(self, ax: Axes | None = None, *, z: Numbers | None = None, kappa: Numbers | None = None) -> Axes:
        """The learned function and its spread as a band, with the target along z (default: -3 to 3), or along kappa -> axes."""
        line = np.ravel(_line("z", next((v for v in (z, kappa) if v is not None), np.linspace(-3, 3, 61))))
        along = z is not None or kappa is None
        found = self.learned(z=line) if along else self.learned(kappa=line)
        lines = {"learned": found.mean.tolist()}
        if along:
            lines["target"] = self._target(line).tolist()
        ax = curves(line.tolist(), lines, ax, xlabel=r"$\langle\theta, x\rangle$" if along else r"$\kappa$")
        band = ax.fill_between(line, found.mean - found.spread, found.mean + found.spread, alpha=0.2, linewidth=0)
        band.set_gid("spread")
        return ax

    def _at(self) -> dict[str, np.ndarray]:
        """The complete numbers of the one point."""
        if self.points is not None:
            raise BadInput(f"learned: the solution holds {self.points} points; take one, solution.point(0)")
        if hasattr(self.theory, "rank"):
            raise BadInput("learned: the law of the output is known for a spike along one direction, and these letters have a "
                           "table of them; take the order parameters")
        if getattr(self.theory, "rows", "sphere") == "orthogonal":
            raise BadInput("learned: the law of the output is not known for rows='orthogonal'")
        found: dict[str, np.ndarray] = self.theory.complete(self.theory.given(self.parameters))
        return found

    @property
    def _marks(self) -> list[str]:
        """What the names of the unknowns end in: a number for each letter of a vocabulary."""
        return [str(k) for k, _ in enumerate(getattr(self.theory, "vocabulary", ()), start=1)] or [""]

    def _readout(self, at: dict[str, np.ndarray], beside: Any) -> dict[str, Any]:
        """The numbers of `law` for each letter: its features, its part of the readout, and psi w where w is given."""
        found: dict[str, Any] = {}
        psi = self._along(at)
        for k, mark in enumerate(self._marks):
            u, b = (at.get(f"{n}{mark}", default) for n, default in (("u", 1.0), ("b", 0.0)))
            found |= {f"r{k}": at["r"]*u, f"b{k}": at["bias"] + b, f"c{k}": at[f"c{mark}"], f"m{k}": self[f"m{mark}"],
                      f"zeta{k}": self[f"zeta{mark}"], f"q{k}": self[f"q2_{mark}" if mark else "q2"]}
            found[f"tilt{k}"], found[f"slope{k}"] = (0.0, 0.0) if beside is None else (psi[k]*v for v in beside)
            for j, other in enumerate(self._marks[:k + 1]):
                found[f"left{j}_{k}"] = self[f"q1_{other}{mark}" if mark else "q1"] - (0 if beside is None else psi[j]*psi[k])
        return found

    def _along(self, at: dict[str, np.ndarray]) -> list[float]:
        """psi of each letter along the target's direction e."""
        if isinstance(self.theory.g, Activation):
            return [float(self[f"psi{mark}"]) for mark in self._marks]
        axis, names = self.theory.axis_of(at), [f"psi{mark}_" if mark else "psi" for mark in self._marks]
        return [sum(float(self[f"{name}{j}"])*e for j, e in enumerate(axis, start=1)) for name in names]

    def _target(self, line: np.ndarray) -> np.ndarray:
        """The target along its direction, averaged over the others."""
        from hermitex.kernels.compile import compile

        g, at = self.theory.g, self._at()
        if isinstance(g, Activation):
            body, variable, known = g(z), z, at
        else:  # h of a spike in that direction
            found, (variable,) = seen_beside(g, 1), axes(1)
            body, known = found.h.subs(found.names), beside_numbers(g, self.theory.axis_of(at)[:, None])
        numbers = {v.name: float(known[v.name]) for v in body.free_symbols - {variable}}
        return np.broadcast_to(np.asarray(compile(body)(**{variable.name: line}, **numbers)) if body.free_symbols else
                               float(body), line.shape)


@cache
def law(sigma: Activation, letters: int, norms: bool = False) -> System:
    """F and the variance at kappa = shift + width u and psi w = tilt + slope u; the u of the average is written kappa.

    norms : whether those of the rows fluctuate, which moves the one letter's output by chi d mu_0/dc
    """
    each, k = range(letters), Symbol("k", real=True)

    def family(name: str, **known: bool) -> list[Symbol]:
        return [Symbol(f"{name}{j}", **(known or {"real": True})) for j in each]

    mu_0, mu_1, mu_22 = (family(n) for n in ("mu0_", "mu1_", "mu22_"))
    r, b, m, zeta, tilt, slope, q2 = (family(n) for n in ("r", "b", "m", "zeta", "tilt", "slope", "q"))
    c = family("c", positive=True)
    left = {(j, i): Symbol(f"left{j}_{i}", real=True) for i in each for j in range(i + 1)}
    output = Add(*[chi*nu][:norms], *(mu_0[j]*m[j] + k*mu_1[j]*zeta[j] + mu_1[j]*(tilt[j] + slope[j]*kappa) for j in each))
    # The variance is known to digits of the mean square: if it is 0, only rounding is left, and finer rules do not help.
    spread = (output - F)**2 + Add(*((1 + (i != j))*mu_1[j]*mu_1[i]*v for (j, i), v in left.items()),
                                   *(mu_22[j]*q2[j] for j in each))
    where = {k: shift + width*kappa}
    for j in each:
        s = sigma(r[j]*k + b[j] + sqrt(c[j])*z)
        where |= {mu_0[j]: E(s, z), mu_1[j]: E(z*s, z)/sqrt(c[j]), mu_22[j]: E(s**2, z) - mu_0[j]**2 - c[j]*mu_1[j]**2}
        where |= {nu: E(s*(z**2 - 1), z)/(2*c[j])} if norms else {}
    return System({F: E(output, kappa), square: E(output**2, kappa), both: E(output**2 + spread, kappa)}, where=where,
                  parameters=[shift, width, *r, *b, *c, *m, *zeta, *tilt, *slope, *q2, *left.values(), *([chi] if norms else []),
                              *sigma.letters], name="The learned function")


def _line(name: str, given: Any) -> np.ndarray:
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise BadInput(f"learned: {name} is numbers, not {str(given)[:40]}") from None
    if not found.size or not np.all(np.isfinite(found)):
        raise BadInput(f"learned: {name} is empty, or not finite")
    return found
