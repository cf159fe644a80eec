"""Every fixed point of maps that are built with known ones, told apart by what iteration does there."""

from itertools import product

import numpy as np
import pytest

from hermitex.solvers.restarts import solve_robustly
from hermitex.solvers.root_branches import consistent_states, find_branches


def central(F, x, p):
    """dF/dx by central differences, (n, n, B)."""
    columns = []
    for j in range(len(x)):
        h = 1e-6*np.maximum(np.abs(x[j]), 1e-3)
        up, down = x.copy(), x.copy()
        up[j] += h
        down[j] -= h
        columns.append((F(up, p) - F(down, p))/(up[j] - down[j]))
    return np.stack(columns, axis=1)


def solver(G, names, positive=None):
    """Newton on x - G(x), with the Jacobian by differences."""
    def residual(x, p):
        return x - G(x)

    def solve(x0):
        return solve_robustly(x0, {"point": np.arange(x0.shape[1])}, names=names, positive=positive, rtol=1e-10,
                              raise_on_failure=False,
                      residual=residual, both=lambda x, p: (residual(x, p), central(residual, x, p)))
    return solve


def scalar(roots, gain):
    """x -> x - gain prod(x - r)/(1 + x^2)^((n-1)/2): fixed points at the roots and nowhere else; its slope at each."""
    roots = np.asarray(roots, dtype=float)
    power = (len(roots) - 1)/2

    def G(x):
        return x - gain*np.prod([x - r for r in roots], axis=0)/(1 + x*x)**power

    slopes = [1 - gain*np.prod([r - s for s in roots if s != r])/(1 + r*r)**power for r in roots]
    return G, np.array(slopes)


def drawn_roots(rng, n, low=-3, high=3, apart=0.25):
    while True:
        roots = np.sort(rng.uniform(low, high, n))
        if n < 2 or np.diff(roots).min() > apart:
            return roots


@pytest.mark.parametrize("seed", range(30))
def test_all_fixed_points_of_a_scalar_map(seed):
    rng = np.random.default_rng(seed)
    roots = drawn_roots(rng, int(rng.integers(1, 5)))
    G, slopes = scalar(roots, rng.uniform(0.3, 1.5)*rng.choice([-1, 1]))
    found = find_branches(solver(G, ["x"]), {}, names=["x"], free=["x"], step=G)
    assert sorted(float(s["x"]) for s in found) == pytest.approx(roots, abs=1e-7)
    for s in found:
        slope = slopes[np.argmin(np.abs(roots - s["x"]))]
        assert s.stability == pytest.approx(abs(slope), abs=1e-6)
        if abs(slope) > 1:
            assert s.branch == "unstable"
        else:
            assert s.branch == ("unique" if len(roots) == 1 else "stable")


@pytest.mark.parametrize("seed", range(12))
def test_positive_ones_over_seven_decades(seed):
    rng = np.random.default_rng(seed)
    logs = drawn_roots(rng, int(rng.integers(1, 4)), -6, 1, 0.6)*np.log(10)
    H, slopes = scalar(logs/5, 0.8)

    def G(x):
        return np.exp(5*H(np.log(x)/5))

    found = find_branches(solver(G, ["q"], ["q"]), {}, names=["q"], free=["q"], positive=["q"], step=G)
    assert sorted(float(np.log(s["q"])) for s in found) == pytest.approx(logs, abs=1e-6)
    assert [s.branch == "unstable" for s in sorted(found, key=lambda s: s["q"])] == list(np.abs(slopes) > 1)


@pytest.mark.parametrize("seed", range(10))
def test_mixed_unknowns_have_all_combinations(seed):
    """x = M u with independent maps of u: fixed points are the images of the product, their stability the largest slope."""
    rng = np.random.default_rng(100 + seed)
    sizes = [int(rng.integers(1, 4)), int(rng.integers(1, 4))]
    roots = [drawn_roots(rng, n, -2, 2, 0.5) for n in sizes]
    maps = [scalar(r, rng.uniform(0.4, 0.9)) for r in roots]
    M = np.eye(2) + rng.uniform(-0.4, 0.4, (2, 2))

    def G(x):
        u = np.linalg.solve(M, x)
        return M @ np.stack([g(v) for (g, _), v in zip(maps, u, strict=True)])

    found = find_branches(solver(G, ["x", "y"]), {}, names=["x", "y"], free=["x", "y"], step=G)
    expected = {tuple(np.round(M @ np.array(u), 5)): max(abs(slope) for slope in s)
                for u, s in zip(product(*roots), product(*(s for _, s in maps)), strict=True)}
    assert {tuple(np.round([float(s["x"]), float(s["y"])], 5) + 0.0) for s in found} == {tuple(np.array(k) + 0.0) for k in expected}
    for s in found:
        at = min(expected, key=lambda k: abs(k[0] - s["x"]) + abs(k[1] - s["y"]))
        assert s.stability == pytest.approx(expected[at], abs=1e-5) and (s.branch == "unstable") == (expected[at] > 1)


def test_a_name_is_where_iteration_ends_and_not_where_newton_went():
    """From 0.1 beside the unstable 0 Newton's method ends at 0; iteration goes to the upper solution."""
    def G(x):
        return np.tanh(2*x)

    found = find_branches(solver(G, ["m"]), {"small": np.array([0.1]), "down": np.array([-1.0]), "left": np.array([-0.2])},
                     names=["m"], free=["m"], step=G)
    assert {s.branch: round(float(s["m"]), 4) + 0.0 for s in found} == {"small": 0.9575, "down, left": -0.9575, "unstable": 0.0}


def test_a_start_from_which_iteration_never_ends_names_nothing():
    def G(x):
        return 3.5*x*(1 - x)  # a cycle of four; both fixed points are unstable

    found = find_branches(solver(G, ["x"]), {"start": np.array([0.3])}, names=["x"], free=["x"], step=G)
    assert [s.branch for s in found] == ["unstable", "unstable"]
    assert any("iteration from the start start reaches none" in n for n in found[0].notes)


@pytest.mark.parametrize("r, roots", [(0.04, [-0.2, 0.2]), (1e-6, [-1e-3, 1e-3]), (-0.01, [])])
def test_a_saddle_and_a_node(r, roots):
    def G(x):
        return x + r - x*x

    found = find_branches(solver(G, ["x"]), {"up": np.array([0.5])}, names=["x"], free=["x"], step=G)
    good = [s for s in found if s.converged]
    assert sorted(float(s["x"]) for s in good) == pytest.approx(roots, rel=1e-5)
    assert [s.branch for s in good] == (["up", "unstable"] if roots else [])
    assert len(found) == max(len(roots), 1)  # where there is none, the failure


@pytest.mark.parametrize("r", [-0.5, -0.01, 0.01, 0.5])
def test_an_exchange_of_stability(r):
    """x -> x + r x - x^2: 0 and r, of which the larger is stable."""
    def G(x):
        return x + r*x - x*x

    found = find_branches(solver(G, ["x"]), {"start": np.array([0.6])}, names=["x"], free=["x"], step=G)
    assert {s.branch: float(s["x"]) for s in found} == pytest.approx({"start": max(r, 0), "unstable": min(r, 0)}, abs=1e-8)


def test_a_double_root_is_one_solution():
    def G(x):
        return x - (x - 1)**2/2

    found = find_branches(solver(G, ["x"]), {}, names=["x"], free=["x"], step=G)
    assert all(float(s["x"]) == pytest.approx(1, abs=1e-3) for s in found) and len(found) == 1


def test_what_is_not_resolved_is_not_called_unique():
    """Near -1 the equation holds, but the solver does not stand for it: the other solution is not the only one."""
    def G(x):
        return x - 0.5*(x - 1)*(x + 1)/(1 + x*x)

    plain = solver(G, ["x"])

    def solve(x0):
        s = plain(x0)
        away = np.abs(s["x"] + 1) < 1e-3
        reason = np.where(away, "the average is not known", s.reason).astype(object)
        from dataclasses import replace
        return replace(s, converged=s.converged & ~away, reason=reason)

    (one,) = find_branches(solve, {}, names=["x"], free=["x"], step=G)
    assert one.branch == "stable" and any("there may be a further solution near x = -1" in n for n in one.notes)


def test_a_start_in_some_unknowns_is_one_of_all():
    def step(x):
        return np.stack([np.tanh(x[1]), 2*x[0], x[1] + 1])

    x = consistent_states(step, np.array([[0.3], [1.0], [7.0]]), np.array([True, False, False]))
    assert x[:, 0] == pytest.approx([0.3, 0.6, 1.6])
