r"""W <- W + (eta/p) u_i (1/n_B) sum_mu R_mu sigma'(w_i.x_mu) x_mu: one or more steps of gradient descent on a finite network.

The network is f(x) = a.sigma(Wx)/sqrt(p) with a = u/sqrt(p), eta = eta_tilde d, and R = y - f its residual. The result is
read as spiked features: v along (1/n_B) sum R x (after several steps along sum_i u_i times the change of row i), r the mean of
the rows along u v^T, c the mean square of what is left. After several steps of K letters the spike of each is the mean of its
rows in the span of the letters' mean changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.feature_training import Array, Features, groups_of, rows
from hermitex.symbolic.gaussian import E
from hermitex.symbols import z
from hermitex.theories.spike_span import Layer, measured_values, spanned


def chunks(n: int, width: int) -> list[int]:
    """Sizes that add up to n, each of about a million/width rows."""
    most = 1_000_000  # numbers in one array of pre-activations
    size = max(1, min(n, most//max(width, 1)))
    full, rest = divmod(n, size)
    return [size]*full + ([rest] if rest else [])


def trained(sigma: Callable[[Array], Array], slope: Callable[[Array], Array], g: Callable[[Array], Array], *, d: int, p: int,
            n: int, eta: float, Delta: float, rng: np.random.Generator, letters: tuple[float, ...] = (1.0,),
            fractions: tuple[float, ...] = (1.0,), directions: int = 1, steps: int = 1) -> Features:
    """The first layer after each step took n fresh samples, in the frame of its own spike.

    Parameters
    ----------
    sigma, slope, g : functions of an array: the activation, its derivative, the target
    d, p, n : dimension, width, batch of a step
    eta : eta_tilde; the step is eta_tilde d
    letters, fractions : the values u of sqrt(p) a_0 and their shares of the neurons
    directions : J; the target is a function of an array (n, J) where J > 1

    Raises
    ------
    BadInput : the step has no spike (the residual does not correlate with x at all).
    """
    groups, u, w = _start(letters, fractions, p, d, rng)
    mean, changes = np.zeros(d), np.zeros((p, d))
    for _ in range(steps):
        step = np.zeros((p, d))
        for size in chunks(n, max(p, d)):
            x = rng.standard_normal((size, d))
            field = x @ w.T
            teacher = x[:, :directions] if directions > 1 else x[:, 0]  # the first unit vectors, until the frame is chosen
            residual = g(teacher) + np.sqrt(Delta)*rng.standard_normal(size) - sigma(field) @ u/p
            mean += residual @ x
            step += (slope(field)*residual[:, None]).T @ x
        w += eta*d/p/n*u[:, None]*step
        changes += u[:, None]*step
    if steps == 1 or len(letters) == 1:
        return in_its_frame(sigma, w, u, mean if steps == 1 else u @ changes, groups, directions)
    return in_its_frame(sigma, w, u, np.array([changes[group].mean(axis=0) for group in groups]), groups, directions)


def population_step(sigma: Any, g: Any, function: Callable[[Array], Array], *, d: int, p: int, eta: float, rng: np.random.Generator,
                    letters: tuple[float, ...] = (1.0,), fractions: tuple[float, ...] = (1.0,)) -> Features:
    r"""The same after a step on infinitely many samples: the gradient's expectation, by Hermite series in the overlaps.

    E[h(a.x) s'(b.x) x] = sum_k omega^k/k! (h_{k+1} s_{k+1} a + h_k s_{k+2} b) for unit a, b at omega = a.b (Mehler and Stein); the
    overlaps between different rows are O(d^{-1/2}), so 16 terms are exact to rounding; a row with itself is taken exactly.
    """
    from math import factorial

    from hermitex.kernels.compile import compile
    from hermitex.numbers.hermite_coefficients import coefficients

    groups, u, w = _start(letters, fractions, p, d, rng)
    terms = 16  # of the series of a population step
    # E f He_k from the orthonormal polynomials, whose averages do not cancel
    s, h = ([c*factorial(k)**0.5 for k, c in enumerate(coefficients(f(z), z, terms + 1).values)] for f in (sigma, g))
    own = float(compile(E(z*sigma(z)*sigma.weak_derivative.expr, z))())
    overlaps = w @ w.T
    np.fill_diagonal(overlaps, 0)  # a row with itself is counted apart
    towards_theta, along, others, power, mixed = np.zeros(p), np.zeros(p), np.zeros((p, p)), np.ones(p), np.ones((p, p))
    scale = np.zeros(p)
    for k in range(terms):
        towards_theta += h[k + 1]*s[k + 1]/factorial(k)*power
        along += h[k]*s[k + 2]/factorial(k)*power
        others += s[k + 1]**2/factorial(k)*mixed
        scale += s[k]*s[k + 2]/factorial(k)*(mixed @ u - u*(k == 0))
        power *= w[:, 0]
        mixed *= overlaps
    np.fill_diagonal(others, 0)
    step = -(others @ (u[:, None]*w) + (scale + u*own)[:, None]*w)/p + along[:, None]*w
    step[:, 0] += towards_theta
    mean = -s[1]*(u @ w)/p
    mean[0] += h[1]
    return in_its_frame(function, w + eta*d/p*u[:, None]*step, u, mean, groups)


def _start(letters: tuple[float, ...], fractions: tuple[float, ...], p: int, d: int, rng: np.random.Generator
           ) -> tuple[tuple[slice, ...], Array, Array]:
    """The groups of neurons, u, and rows of W on the sphere."""
    groups = groups_of(np.asarray(fractions, dtype=float), p)
    u = np.concatenate([np.full(group.stop - group.start, letter) for group, letter in zip(groups, letters, strict=True)])
    return groups, u, rows("sphere", p, d, rng)


def in_its_frame(sigma: Callable[[Array], Array], w: Array, u: Array, along: Array, groups: tuple[slice, ...], directions: int = 1
                 ) -> Features:
    """Weights in which the target's directions are the first unit vectors -> features in which the axes of the spikes are.

    along : the direction of a spike r u_i of all rows; or one of each letter, array (K, d), whose spike is the mean of its rows
    """
    _, V = spanned(np.atleast_2d(along))
    if not np.all(np.isfinite(along)) or not len(V):
        raise BadInput("the gradient step has no spike: the residual vanishes, or is not finite")
    (m, d), J = V.shape, directions
    # Theta - V Gamma^T = A S B^T: its nearest orthonormal columns are A B^T, and any that do not if V is in the span
    left, sizes, turn = np.linalg.svd(np.eye(d)[:, :J] - V.T @ V[:, :J], full_matrices=False)
    kept = np.column_stack([V.T, left[:, sizes >= 1e-12]])
    frame, triangle = np.linalg.qr(kept, mode="complete")
    frame[:, :kept.shape[1]] *= np.sign(np.diag(triangle))
    frame[:, m:m + J] = frame[:, m:m + J] @ turn
    w = w @ frame
    spike = np.empty((u.size, m))
    for group in groups:
        spike[group] = w[group, :m].mean(axis=0)
    if along.ndim == 1:
        spike = u[:, None]*(u @ w[:, :1]/(u @ u))
    w[:, :m] -= spike
    norms = np.empty(u.size)
    for group in groups:
        norms[group] = np.mean(np.einsum("ij,ij->i", w[group], w[group]))
    return Features(sigma, w, spike, V[:, :J].T, norms, groups, tabled=along.ndim == 2)


def measured(features: Features, letters: tuple[float, ...] = (1.0,), axis: Array | None = None) -> dict[str, Any]:
    """r, c and gamma of the layer as measured; with several directions also Gamma1, Gamma2, ..., and gamma along the axis given.

    Of spikes with several axes overlap1_1, gram_11, c1, ... of each letter.
    """
    firsts = [group.start for group in features.groups]
    if features.tabled:
        layer = Layer(features.spike[firsts], features.overlaps, features.norms[firsts])
        return {n: float(v) for n, v in measured_values(layer).items()}
    largest = int(np.argmax(np.abs(letters)))
    overlaps = features.overlaps[:, 0]
    several = {} if axis is None else {f"Gamma{j}": float(v) for j, v in enumerate(overlaps, start=1)}
    return {"r": float(features.spike[firsts[largest], 0]/letters[largest]), "c": float(features.norms.mean()),
            "gamma": float(overlaps[0] if axis is None else overlaps @ axis), **several}
