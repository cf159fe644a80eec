r"""omega = X W - g V,  g = g_out(y, omega, V),  W <- (X^T g + W Lambda)(1 + Lambda)^{-1}: Bayes-AMP at finite d.

X has entries N(0, 1/d), the truth W_0 orthonormal columns times d^(1/2), y_i ~ P(.|W_0^T x_i), V = (1 + Lambda)^{-1},
Lambda = -(1/d) sum dg/domega.
Overlaps are measured up to the symmetries of the label. Seed s draws its data from ``SeedSequence(s).spawn``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from hermitex.errors import BadInput, UnknownName
from hermitex.experiments.denoisers import Denoiser, denoiser
from hermitex.experiments.statistics import measured_curve, seeds_of
from hermitex.theories.curve import Curve
from hermitex.theories.overlaps.label_structure import target_function

Array = np.ndarray
STARTS = ("zero", "spectral", "informed")


def simulate(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16, model: str | None = None,
             test: int = 4096, progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    r"""Run Bayes-AMP on data of a multi-index theory -> Curve of overlaps with standard errors over the seeds.

    Parameters
    ----------
    theory : a multi-index theory; its g_out is the one of the state evolution
    alpha : numbers n/d, one list; n = round(alpha d)
    dimension : d (default 1000)
    seeds : how many (0, 1, ...), or which
    model : the start: "zero" where the label says something linear about z, else "spectral" (linearised AMP), or "informed", the
        truth seen through noise at overlap 0.95; default by the theory's branch
    test : fresh samples for the test error, at least; the next power of 2 is taken

    Returns
    -------
    Curve : M11, M12, ... modulo the symmetries of the label, test_error against the clean label, `standard_error`, `seeds`.
    Overlaps are below state evolution by a multiple of 1/d, large next to a transition: for sign(z1*z2) at alpha = 4.25 by 4/d,
    0.02 at d = 250 and 0.004, a standard error of 30 seeds, at d = 1000. A standard error of few seeds is itself uncertain.

    Raises
    ------
    BadInput : alpha d below 1; a `test` that is not a number of samples; a label that cannot be drawn (P(y|z) without a name).

    Examples
    --------
    >>> from hermitex.theories import multi_index
    >>> found = simulate(multi_index("sign(z)"), [2], dimension=200, seeds=2)
    >>> bool(0.5 < found["M11"][0] < 0.8)
    True
    """
    # 4096 samples of a test: their error is 1/64 of the spread of a loss.
    line = np.atleast_1d(theory.complete(theory.given({"alpha": alpha, **numbers}))["alpha"])
    chosen = seeds_of(seeds)
    d = _checked(dimension, line, theory)
    most_test = 2**20  # samples of a test: their error is 1/1024 of the spread of a loss
    if isinstance(test, bool) or not 2 <= test <= most_test:
        raise BadInput(f"bayes-amp: test is a number of samples from 2 to {most_test}, not {test!r}")
    start = _start(theory, model)
    return measured_curve(theory, {}, line, lambda seed: _run(theory, line, d, start, seed, test), chosen, progress,
                          theory.order_parameters, title=f"AMP, d = {d}", dimension=d, model=start)


def _checked(dimension: int | None, line: Array, theory: Any) -> int:
    default = 1000  # overlaps fluctuate by d^-1/2 = 3 %
    d = default if dimension is None else dimension
    if isinstance(d, bool) or not np.isfinite(d) or int(d) != d or d < 3:
        raise BadInput(f"the dimension of an experiment is an integer of 3 or more, not {dimension!r}")
    if np.rint(line.min()*d) < 1:
        raise BadInput(f"bayes-amp: at d = {d} there would be no samples; take a larger dimension")
    largest = 60_000_000  # numbers in X: 0.5 GB
    if line.max()*d*d > largest:
        raise BadInput(f"bayes-amp: at d = {d} and alpha = {line.max():g} the data would hold {8*line.max()*d*d/1e9:.1f} GB; "
                       "take a smaller dimension")
    if not hasattr(theory.law, "name") or theory.generalisation is None:
        raise BadInput("bayes-amp: labels of a channel P(y|z) without a name are not drawn; use a named channel of g(z)")
    return int(d)


def _start(theory: Any, model: str | None) -> str:
    if model is not None:
        if model not in STARTS:
            raise UnknownName(str(model)[:40], STARTS, "start of the experiment")
        return model
    if theory.branch == "informed":
        return "informed"
    trivial = np.abs(theory.output.second(np.zeros((theory.output.r,)*2))).max() > 1e-9
    return "zero" if trivial else "spectral"


def _run(theory: Any, line: Array, d: int, start: str, seed: int, test: int) -> dict[str, list[float]]:
    """Every quantity along alpha for one seed; the samples of a smaller alpha are the first of those of a larger one."""
    first, second, third, fourth = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(4))
    r = theory.output.r
    # W W^T = 1, as the theory has it: the norms of Gaussian columns would fluctuate by d^(-1/2).
    W0 = np.sqrt(d)*np.linalg.qr(first.standard_normal((d, r)))[0]
    n = np.rint(line*d).astype(int)
    X = second.standard_normal((int(n.max()), d))/np.sqrt(d)
    y = drawn(theory, X @ W0, third)
    columns: dict[str, list[float]] = {name: [] for name in (*theory.errors, *theory.order_parameters)}
    for k in n:
        label = denoiser(theory, y[:k])
        W, V = amp(label, X[:k], _first(label, start, X[:k], W0, fourth), full=label.full)
        S = aligned(W.T @ W0/d, theory.space.group)
        for name, value in theory.overlaps((S + S.T)/2).items():
            columns[name].append(value)
        columns["test_error"].append(_error(theory.generalisation, W, W0, V, test, fourth))
    return columns


def _error(rule: Any, W: Array, W0: Array, V: Array, test: int, rng: np.random.Generator) -> float:
    """The test error of an estimate W, given W: (z, omega) of a fresh sample are normal, of a covariance that is known.

    Drawn in these 2r dimensions, and evenly, its own error is far below the spread between seeds; drawn as `test` inputs x
    it would be the larger of the two.
    """
    r, d = W.shape[1], len(W)
    S, Q = W0.T @ W/d, W.T @ W/d
    spread, R = np.linalg.eigh(Q - S.T @ S)
    points = qmc.Sobol(2*r, seed=rng).random_base2(int(np.ceil(np.log2(test))))
    u = ndtri(np.clip(points, 1e-15, 1 - 1e-15))
    z = u[:, :r]
    omega = z @ S + (u[:, r:]*np.sqrt(np.maximum(spread, 0.0))) @ R.T
    truth = rule.clean(z)
    if rule.kind == "classification":
        return float(np.mean(rule.estimate(omega, V) != truth))
    return float(np.mean((_expected(rule, omega, V, rng) - truth)**2))


def _expected(rule: Any, omega: Array, V: Array, rng: np.random.Generator) -> Array:
    """E[g|omega] over points of N(0, V) that fill it evenly, the same for every omega; an error sees the square of what is left."""
    averaged = 9  # 2^(9 + 1) points
    half = ndtri(np.clip(qmc.Sobol(len(V), seed=rng).random_base2(averaged), 1e-15, 1 - 1e-15))
    away = np.concatenate([half, -half]) @ np.linalg.cholesky(V).T
    parts = [(o[:, None] + away).reshape(-1, len(V)) for o in np.array_split(omega, max(1, len(omega)//500))]
    return np.concatenate([rule.clean(z).reshape(-1, len(away)).mean(axis=1) for z in parts])


def amp(label: Denoiser, X: Array, W: Array, *, full: bool, steps: int = 150) -> tuple[Array, Array]:
    """The estimate W (d, r) and V at the end of Bayes-AMP from a start W, or after `steps` of it; V diagonal if not `full`.

    g and W Lambda are averaged over the steps with the same weights, so that V g stays the Onsager term of X W exactly: at finite d
    the plain map may end in a cycle of period two.
    """
    # 150 steps, chosen by trial: only near a threshold does Bayes-AMP take more.
    (n, d), r = X.shape, W.shape[1]
    g, Lambda, back = np.zeros((n, r)), np.zeros((r, r)), np.zeros((d, r))
    V = _variance(W.T @ W/d, full)
    still = 1e-4  # W has settled: far below its fluctuation d^(-1/2)
    exact = 1e-4  # V at which a direction is known: g_out has nothing left to say of it
    weight = 0.7  # of a step, against the earlier ones
    for step in range(steps):
        new = weight if step else 1.0
        now, slopes = label(X @ W - g @ V, V)
        slope = precision(slopes, full)/d
        g, Lambda, back = (new*a + (1 - new)*b for a, b in ((now, g), (slope, Lambda), (W @ slope, back)))
        v, R = np.linalg.eigh(np.linalg.inv(np.eye(r) + Lambda))
        W, last = (X.T @ g + back) @ (R*v) @ R.T, W
        V = (R*np.maximum(v, exact)) @ R.T  # a direction that is known waits for the others
        if np.linalg.norm(W - last)/np.sqrt(d) < still or v[-1] < exact:
            break
    return W, V


def precision(slopes: Array, full: bool) -> Array:
    """-sum dg/domega, or its diagonal, not below 0.

    On the Nishimori line its mean is that of sum g g^T; but where omega errs by more than V says, g is large, g g^T takes V
    further down, and the two run away to V = 0 at a wrong W. -dg/domega = V^{-1} - V^{-1} Cov V^{-1} stays below V^{-1}.
    The symmetries of the label hold for the mean: in a sample one direction may be known better than another, and an equal V
    would hold on to a direction of which nothing is known.
    """
    slope = -slopes.sum(axis=0)
    if not full:
        return np.diag(np.maximum(np.diag(slope), 0.0))
    values, R = np.linalg.eigh((slope + slope.T)/2)
    return np.asarray((R*np.maximum(values, 0.0)) @ R.T)


def _variance(M: Array, full: bool) -> Array:
    m, R = np.linalg.eigh(M)
    return np.asarray((R*(1 - np.clip(m, 0.0, 0.98))) @ R.T) if full else np.diag(1 - np.clip(np.diag(M), 0, 0.98))


def _first(label: Denoiser, start: str, X: Array, W0: Array, rng: np.random.Generator) -> Array:
    small = 1e-2  # overlap of the random part of a start at zero
    if start == "zero":
        # From W = 0 itself directions that the label may exchange would stay equal for ever.
        return np.zeros_like(W0) if W0.shape[1] == 1 else np.sqrt(small)*rng.standard_normal(W0.shape)
    if start == "informed":
        return 0.95*W0 + np.sqrt(0.95*0.05)*rng.standard_normal(W0.shape)
    # The overlap of the spectral estimate is not known to the algorithm: it starts at a moderate one and corrects itself.
    # Eigenvectors of one eigenvalue come with random weights, which would leave one direction behind: all get the same.
    left, _, right = np.linalg.svd(spectral_start(label, X, W0.shape[1], rng), full_matrices=False)
    return np.asarray(np.sqrt(0.1*len(W0))*(left @ right))


def spectral_start(label: Denoiser, X: Array, r: int, rng: np.random.Generator, steps: int = 150) -> Array:
    """W <- X^T g - ..., g_i = G(y_i) omega_i: at most `steps` of AMP linearised at M = 0, W (d, r) up to a common factor.

    With its Onsager term it is the power method of the matrix whose largest eigenvalue leaves its bulk at alpha_c; it finds the
    directions where the label says nothing linear about them.
    """
    n, d = X.shape
    G = label(np.zeros((n, r)), np.eye(r))[1]  # G(y_i) = E[zz^T - 1|y_i], the slope of g_out in omega at omega = 0, V = 1
    G = (G + G.transpose(0, 2, 1))/2
    W = rng.standard_normal((d, r))
    g, span = np.zeros((n, r)), np.linalg.qr(W)[0]
    still = 1e-3  # what a step takes out of the span of W: AMP itself goes on from there
    for _ in range(steps):
        omega = X @ W - g
        g = np.einsum("nij,nj->ni", G, omega)
        W = X.T @ g - W @ G.sum(axis=0)/d
        size = np.linalg.norm(W)/np.sqrt(d*r)
        # the map is linear: W and the g of its Onsager term shrink together
        W, g, before, span = W/size, g/size, span, np.linalg.qr(W)[0]
        if np.linalg.norm(span - before @ (before.T @ span)) < still:
            break
    return W


def aligned(S: Array, group: tuple[Array, ...]) -> Array:
    """S R for the symmetry R of the label under which the overlap is largest."""
    return max((S @ R for R in group), key=np.trace)


def drawn(theory: Any, z: Array, rng: np.random.Generator) -> Array:
    """Labels at z (n, r) through the channel of a theory, in the form that its g_out takes."""
    target, law = theory.label
    return labels_at(target, law, theory.reduced.names, z, rng)


def labels_at(target: Any, law: Any, names: Any, z: Array, rng: np.random.Generator) -> Array:
    """Labels at z (n, r), the values of `names`, through a named channel; of random_sign their size."""
    g = np.broadcast_to(target_function(target, names)(list(z.T)), len(z))
    level = float(law.parameter or 0)
    draw: dict[str, Callable[[], Array]] = {
        "deterministic": lambda: g,
        "gaussian": lambda: g + np.sqrt(level)*rng.standard_normal(len(g)),
        "flip": lambda: g*np.where(rng.random(len(g)) < level, -1.0, 1.0),
        "sign": lambda: np.where(g + np.sqrt(level)*rng.standard_normal(len(g)) > 0, 1.0, -1.0),
        "random_sign": lambda: np.abs(g),  # the sign is drawn at random: the rest is what there is to learn from
        "poisson": lambda: rng.poisson(np.maximum(g, 0)).astype(float),
        "bernoulli": lambda: (rng.random(len(g)) < g).astype(float),
        "multiplicative": lambda: g*rng.standard_normal(len(g)),
    }
    return draw[law.name]()
