r"""a = argmin sum_mu (y_mu - phi_mu.a)^2 + lam |a|^2, or argmin sum_mu l(y_mu, phi_mu.a) + lam/2 |a|^2: the second step.

Ridge keeps the smaller of the two Gram matrices, never more than p rows. A convex loss is minimised by Newton's method in
min(n, p) dimensions; one with kinks through its own Moreau envelope, which the method of multipliers makes exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from hermitex.errors import BadInput, NotConverged
from hermitex.experiments.feature_training import Array

_SMALL = 1e-6  # ridge below which a Gram matrix may lose half the digits


class Ridge:
    """Rows come in chunks and are folded into a p x p matrix once there are more than p of them.

    For lam < 1e-6 the matrix is the triangle of a QR decomposition, and the solution comes from its singular values: stable down
    to lam = 0, where it is the one of minimum norm.
    """

    def __init__(self, lam: float) -> None:
        self.lam, self.n = lam, 0
        self._rows: list[Array] = []  # [phi, y], not yet folded
        self._gram: Array | None = None

    def add(self, phi: Array, y: Array) -> None:
        """Take in n rows."""
        self.n += len(y)
        self._rows.append(np.column_stack([phi, y]))
        if self.n > phi.shape[1] + 1:
            self._fold()

    def _fold(self) -> None:
        if self.lam < _SMALL:
            self._rows = [np.asarray(linalg.qr(np.vstack(self._rows), mode="r")[0])[:self._rows[0].shape[1]]]
            return
        for part in self._rows:
            gram = part.T @ part
            self._gram = gram if self._gram is None else self._gram + gram
        self._rows = []

    def solve(self) -> tuple[Array, float]:
        """The readout, and the mean squared error on the rows taken in."""
        if self._gram is not None:
            gram, moment, square = self._gram[:-1, :-1], self._gram[:-1, -1], self._gram[-1, -1]
            a = linalg.solve(gram + self.lam*np.eye(len(moment)), moment, assume_a="pos")
            return a, float(square - 2*a @ moment + a @ gram @ a)/self.n
        table = np.vstack(self._rows)
        phi, y = table[:, :-1], table[:, -1]
        if self.lam < _SMALL:
            a = _by_singular_values(phi, y, self.lam)
            return a, float(np.sum((y - phi @ a)**2))/self.n
        dual = linalg.solve(phi @ phi.T + self.lam*np.eye(len(y)), y, assume_a="pos")
        return phi.T @ dual, float(self.lam**2*dual @ dual)/self.n


def _by_singular_values(phi: Array, y: Array, lam: float) -> Array:
    left, s, right = np.linalg.svd(phi, full_matrices=False)
    kept = s > max(phi.shape)*np.finfo(float).eps*s[0]
    s = s[kept]
    return right[kept].T @ (s/(s**2 + lam)*(left[:, kept].T @ y))


@dataclass(frozen=True)
class ConvexLoss:
    """l(y, f), convex in f, as functions of arrays, with its own derivatives.

    Attributes
    ----------
    value : (y, f) -> l
    slope, bend : (y, f) -> l', l''           where it is smooth
    prox, prox_slope : (y, omega, V) -> array where it has kinks: argmin (f - omega)^2/(2V) + l, and its derivative in omega
    """

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array] | None = None
    bend: Callable[[Array, Array], Array] | None = None
    prox: Callable[[Array, Array, float], Array] | None = None
    prox_slope: Callable[[Array, Array, float], Array] | None = None


def convex_loss(expr: Any) -> ConvexLoss:
    """The functions of a loss written in y and f; its derivatives are those of `hermitex.symbolic.losses`.

    Raises
    ------
    BadInput : it is not convex in f, or holds other letters than y and f.

    Examples
    --------
    >>> loss = convex_loss("log(1 + exp(-y*f))")
    >>> float(loss.slope(np.array([1.0]), np.array([0.0]))[0])
    -0.5
    """
    from sympy import Symbol

    from hermitex.kernels.compile import compile
    from hermitex.symbolic.losses import bind, put
    from hermitex.symbolic.moreau import Prox
    from hermitex.symbolic.parsing import parse
    from hermitex.symbols import V, f, y

    written = parse(expr, symbols={"y": y, "f": f}) if isinstance(expr, str) else expr
    if extra := written.free_symbols - {y, f}:
        raise BadInput(f"a loss is written in y and f; {', '.join(sorted(map(str, extra)))} is neither")
    loss, values = bind(written, f)
    omega = Symbol("omega", real=True)
    node = Prox(written, f, omega, V)  # refuses a loss that is not convex
    value = _of(compile(written, "y", "f"))
    if loss.smooth:
        slope, bend = (_of(compile(put(e, loss, f, values), "y", "f")) for e in (loss.slope, loss.curvature))
        return ConvexLoss(value, slope, bend)
    prox = compile(node, "y", "omega", "V")
    prox_slope = compile(node.doit().diff(omega), "y", "omega", "V")
    return ConvexLoss(value, prox=_of(prox), prox_slope=_of(prox_slope))


def _of(kernel: Any) -> Callable[..., Array]:
    return lambda *arguments: np.asarray(kernel(*arguments), dtype=float)


def minimise(phi: Array, y: Array, loss: ConvexLoss, lam: float, *, tolerance: float = 1e-10) -> tuple[Array, float]:
    """The readout that minimises sum l(y, phi.a) + lam/2 |a|^2, and the mean training loss; phi is held as a whole.

    Raises
    ------
    BadInput : lam is not positive (a separable sample has no minimum then).
    NotConverged : the gradient stays above `tolerance` (relative to the size of its terms); carries the last readout.
    """
    if not lam > 0:
        raise BadInput(f"a convex loss needs lam > 0 to have a minimiser, not {lam:g}")
    basis = None
    if phi.shape[0] < phi.shape[1]:  # the minimiser is in the span of the rows: n unknowns
        basis, triangle = np.linalg.qr(phi.T)
        phi = triangle.T
    b = _smooth(phi, y, loss, lam, tolerance) if loss.slope is not None else _kinked(phi, y, loss, lam, tolerance)
    train = float(np.mean(loss.value(y, phi @ b)))
    return (b if basis is None else basis @ b), train


def _smooth(phi: Array, y: Array, loss: ConvexLoss, lam: float, tolerance: float) -> Array:
    assert loss.slope is not None and loss.bend is not None
    slope, bend = loss.slope, loss.bend
    return _newton(phi, lambda w: (loss.value(y, w).sum(), slope(y, w), bend(y, w)), np.zeros(len(y)), np.zeros(phi.shape[1]), lam,
                   tolerance)


def _kinked(phi: Array, y: Array, loss: ConvexLoss, lam: float, tolerance: float) -> Array:
    """Multipliers s = l'(f) on f = phi.a: a round minimises Moreau envelopes, of slope (omega - prox)/V at omega = phi.a + V s."""
    assert loss.prox is not None and loss.prox_slope is not None
    prox, prox_slope = loss.prox, loss.prox_slope
    V, s, a = 1.0, np.zeros(len(y)), np.zeros(phi.shape[1])
    for _ in range(60):
        def envelope(w: Array, V: float = V) -> tuple[float, Array, Array]:
            f = prox(y, w, V)
            return (loss.value(y, f) + (w - f)**2/(2*V)).sum(), (w - f)/V, (1 - prox_slope(y, w, V))/V

        a = _newton(phi, envelope, V*s, a, lam, tolerance)
        w = phi @ a + V*s
        f = prox(y, w, V)
        gap = np.linalg.norm(phi @ a - f)
        s = (w - f)/V
        if gap <= 100*tolerance*(1 + np.linalg.norm(f)):
            return a
        V = max(V/2, 1e-3)
    raise NotConverged(a, f"the method of multipliers left a gap of {gap:.1e} after 60 rounds")


def _newton(phi: Array, function: Callable[[Array], tuple[float, Array, Array]], shift: Array, a: Array, lam: float,
            tolerance: float) -> Array:
    """min sum_mu h(phi_mu.a + shift_mu) + lam/2 |a|^2 by Newton's method with a line search; h -> value, slope, bend."""
    w = phi @ a + shift
    value, slope, bend = function(w)
    objective, idle = value + lam/2*a @ a, 0
    for _ in range(200):
        gradient = phi.T @ slope + lam*a
        size = float(np.linalg.norm(phi.T @ slope) + lam*np.linalg.norm(a))
        left = float(np.linalg.norm(gradient))/max(size, 1e-300)
        if left <= tolerance or (idle > 3 and left <= 1e3*tolerance):
            return a
        hessian = (phi*bend[:, None]).T @ phi + lam*np.eye(a.size)
        step = -linalg.solve(hessian, gradient, assume_a="pos")
        move, descent, t = phi @ step, gradient @ step, 1.0
        while True:
            trial = a + t*step
            value, slope, bend = function(w + t*move)
            # Next to the minimum the decrease drowns in rounding: the step is taken there.
            if value + lam/2*trial @ trial <= objective + 1e-4*t*descent + 1e-13*abs(objective) or t < 1e-10:
                break
            t /= 2
        before, objective = objective, value + lam/2*trial @ trial
        idle = idle + 1 if before - objective <= 1e-13*abs(before) else 0  # what is left is rounding
        a, w = trial, w + t*move
    raise NotConverged(a, f"Newton's method left a gradient of {left:.1e}, relative to its terms, after 200 steps")
