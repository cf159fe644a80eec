r"""W_1 = W_0 + eta X^T[(y - f) a^T o sigma'(X W_0)]/n: one gradient step on the first layer of a finite network.

W_0 is d x N with entries N(0, 1/d), a ~ N(0, 1/N), f = N^(-1/2) a^T sigma(W_0^T x), n = psi1 d fresh samples, N = psi2 d. Measured:
the largest singular value, the squared overlaps of its vectors with the target's direction and with the readout; and the
error of ridge on the features after the step. At eta = d^s spikes are infinitely strong: powers of kappa are features of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import columns, measured_curve, seeds_of
from hermitex.experiments.training import Ridge
from hermitex.symbols import z
from hermitex.theories.curve import Curve

Array = np.ndarray
_NAMES = ("singular_value", "alignment_target", "alignment_readout")


def simulate(theory: Any, eta: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 8,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """One step on networks of finite size, for several sizes of the step -> Curve along eta, standard errors over seeds.

    Parameters
    ----------
    theory : ``small_step(sigma, g)``; eta : sizes of the step
    dimension : d (default 600); seeds : how many networks, or which
    numbers : psi1, psi2, Delta

    Examples
    --------
    >>> from hermitex.theories import small_step
    >>> simulate(small_step("tanh", "z"), [2.0], psi1=2, psi2=1, dimension=30, seeds=2).seeds
    (0, 1)
    """
    chosen, d = seeds_of(seeds), _size(dimension)
    at = theory.complete(theory.given({**numbers, "eta": eta}))
    line = np.atleast_1d(at["eta"])
    fixed = theory.single(at, "psi1", "psi2", "Delta")

    def run(seed: int) -> dict[str, Array]:
        W, step, a = network(theory, d, fixed["psi1"], fixed["psi2"], fixed["Delta"], seed)
        return columns(_NAMES, [_measured(W + e*step, a) for e in line])

    return measured_curve(theory, fixed, line, run, chosen, progress, _NAMES, dimension=d)


def simulate_ridge(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16, test: int = 2**13,
                   progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Ridge on the features of networks after one step -> Curve along alpha, standard errors over seeds.

    Parameters
    ----------
    theory : ``small_step(sigma, g).ridge``, whose step is taken as it is; or ``intermediate_step(sigma, g)``: the features of the
        untrained layer, and kappa^k for every power that the theory counts, kappa = <v, x> along the gradient
    alpha : numbers n/d, one list;  dimension : d (default 600);  seeds : how many networks, or which;  test : fresh samples
    numbers : psi1 (finite), psi2, lam, Delta and eta or s

    Examples
    --------
    >>> from hermitex.theories import small_step
    >>> simulate_ridge(small_step("tanh", "z").ridge, [1], psi1=2, psi2=1, lam=0.1, eta=1, dimension=30, seeds=2).seeds
    (0, 1)
    """
    from hermitex.kernels.compile import compile

    chosen, d = seeds_of(seeds), _size(dimension)
    at = theory.complete(theory.given({**numbers, "alpha": alpha}))
    line, fixed = np.atleast_1d(at["alpha"]), theory.single(at, "psi1", "psi2", "lam", "Delta", theory.step)
    if not np.isfinite(fixed["psi1"]) or round(min(line)*d) < 1:
        raise BadInput(f"{theory.name}: a network has psi1 d and alpha d samples; take finite numbers above 1/d for both")
    powers = [k for k in theory.visible(fixed["s"]) if k] if theory.step == "s" else []
    sigma, g = compile(theory.sigma(z)), compile(theory.g(z))

    def run(seed: int) -> dict[str, Array]:
        W, step, a = network(theory, d, fixed["psi1"], fixed["psi2"], fixed["Delta"], seed)
        W = W + fixed.get("eta", 0.0)*step
        v = step @ a/np.linalg.norm(step @ a)  # the step is theta v a^T/|a|, up to what vanishes
        rng = np.random.default_rng([seed, 1])

        def drawn(n: int) -> tuple[Array, Array]:
            x = rng.standard_normal((n, d))
            seen = np.broadcast_to(sigma(z=x @ W), (n, W.shape[1]))/np.sqrt(W.shape[1])
            return np.column_stack([seen, *((x @ v)**k for k in powers)]), np.broadcast_to(g(z=x[:, 0]), n)

        def errors(n: int) -> tuple[float, ...]:
            ridge, (phi, clean) = Ridge(fixed["lam"]), drawn(n)
            ridge.add(phi, clean + np.sqrt(fixed["Delta"])*rng.standard_normal(n))
            w, train = ridge.solve()
            phi, clean = drawn(test)
            error = float(np.mean((clean - phi @ w)**2))
            return error, train/2, error + fixed["Delta"]

        return columns(theory.errors, [errors(round(n*d)) for n in line])

    return measured_curve(theory, fixed, line, run, chosen, progress, axis="alpha", dimension=d)


def singular_values(theory: Any, *, psi1: float, psi2: float, eta: float, Delta: float = 0.0, dimension: int | None = None,
                    seeds: int | Iterable[int] = 4) -> Array:
    """Every singular value of W_1, of all networks together: what `theory.spectrum(..., simulated=...)` draws."""
    d = _size(dimension)
    found = []
    for seed in seeds_of(seeds):
        W, step, _ = network(theory, d, float(psi1), float(psi2), float(Delta), seed)
        found.append(np.linalg.svd(W + float(eta)*step, compute_uv=False))
    return np.concatenate(found)


def network(theory: Any, d: int, psi1: float, psi2: float, Delta: float, seed: int) -> tuple[Array, Array, Array]:
    """W_0, the step for eta = 1, the readout; the target's direction is the first unit vector."""
    from hermitex.kernels.compile import compile

    n, N = round(psi1*d), round(psi2*d)
    if min(n, N) < 1:
        raise BadInput(f"small-step: n = {n} samples and N = {N} neurons; take a larger dimension")
    sigma, slope, g = (compile(e) for e in (theory.sigma(z), theory.sigma.weak_derivative.expr, theory.g(z)))
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((d, N))/np.sqrt(d)
    a = rng.standard_normal(N)/np.sqrt(N)
    X = rng.standard_normal((n, d))
    field = X @ W
    residual = g(z=X[:, 0]) + np.sqrt(Delta)*rng.standard_normal(n) - sigma(z=field) @ a/np.sqrt(N)
    step = X.T @ (residual[:, None]*np.broadcast_to(slope(z=field), field.shape))*a/n
    return W, step, a


def _measured(W: Array, a: Array) -> tuple[float, float, float]:
    """s_1, <u_1, e_1>^2, <v_1, a>^2/|a|^2, from the smaller Gram matrix."""
    from scipy.linalg import eigh

    d, N = W.shape
    gram = W @ W.T if d <= N else W.T @ W
    (square,), vectors = eigh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])
    s = float(np.sqrt(square))
    u, v = (vectors[:, 0], W.T @ vectors[:, 0]/s) if d <= N else (W @ vectors[:, 0]/s, vectors[:, 0])
    return s, float(u[0]**2), float((v @ a)**2/(a @ a))


def _size(dimension: int | None) -> int:
    default = 600  # errors fluctuate by d^-1/2 = 4 % a seed
    d = default if dimension is None else dimension
    if not (np.isfinite(d) and d >= 2 and int(d) == d):
        raise BadInput(f"small-step: dimension is an integer >= 2, not {dimension}")
    return int(d)
