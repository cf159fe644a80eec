"""Newton: right numbers, few steps, honest about failure, and a batch is nothing but its points."""

from functools import partial

import mpmath
import numpy as np
import pytest
import saddles
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.solvers.newton import newton

ridge = partial(newton, saddles.ridge, saddles.ridge_jacobian, names=["V"], positive=True)
one_step = partial(newton, saddles.one_step, saddles.one_step_jacobian, names=saddles.FOUR, positive=True)


def exact_V(alpha, lam):
    """lam V^2 + (lam + alpha - 1) V - 1 = 0 at 30 digits."""
    with mpmath.workdps(30):
        a, b = mpmath.mpf(lam), mpmath.mpf(lam) + mpmath.mpf(alpha) - 1
        return (mpmath.sqrt(b * b + 4 * a) - b) / (2 * a)


@given(st.floats(0.05, 20), st.floats(-10, 1))
@settings(max_examples=60)
def test_reference_value_of_the_ridge_saddle_point(alpha, exponent):
    lam = 10.0**exponent
    s = ridge([1.0], {"alpha": alpha, "lam": lam})
    off = abs(s["V"] / exact_V(alpha, lam) - 1)
    assert off <= max(1e-10, 10 * s.error, 1e-14 / (1 - s.stability))
    assert s.iterations <= 40


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_power_law_is_linear_in_logarithms(seed):
    """x_i = c_i prod_j x_j^A_ij is solved by one step from anywhere near, log x = (1 - A)^-1 log c."""
    rng = np.random.default_rng(seed)
    A, c = rng.uniform(-0.3, 0.3, size=(3, 3)), rng.uniform(0.7, 1.4, size=(3, 1))

    def rhs(x):
        return c * np.exp(A @ np.log(x))

    s = newton(lambda x, p: x - rhs(x), lambda x, p: np.eye(3)[:, :, None] - A[:, :, None] * rhs(x)[:, None] / x[None],
               np.ones(3), names=list("abc"), positive=True)  # fmt: skip
    assert np.allclose(np.log(s.state), np.linalg.solve(np.eye(3) - A, np.log(c[:, 0])), atol=1e-12)
    assert s.iterations <= 3


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("positive", [True, False])
def test_beside_a_multiple_root_what_is_left_is_counted(m, positive):
    """There each step leaves 1 - 1/m of the distance: a step within the tolerance is not the distance."""
    s = newton(lambda x, p: np.sinh(x - p["c"])**m, lambda x, p: (m*np.sinh(x - p["c"])**(m - 1)*np.cosh(x - p["c"]))[None],
               [2.0], {"c": np.array([1.5, 1.9])}, names=["x"], positive=positive, rtol=1e-9)  # fmt: skip
    assert s.converged.all() and np.all(abs(s["x"]/[1.5, 1.9] - 1) <= 1.01*s.error) and s.error.max() <= 1e-9


@pytest.mark.parametrize(("alpha", "lam", "most"), [(0.9, 1e-1, 8), (0.9, 1e-3, 9), (0.9, 1e-6, 12), (1.0, 1e-9, 14)])
def test_the_one_step_block_takes_few_steps_down_to_interpolation(alpha, lam, most):
    s = one_step(np.ones(4), {"alpha": alpha, "beta": 1.0, "lam": lam})
    x = s.state[:, None]
    p = {"alpha": np.array([alpha]), "beta": 1.0, "lam": lam}
    assert s.iterations <= most
    assert np.abs(saddles.one_step(x, p) / x).max() <= 1e-9


@pytest.mark.parametrize(("F", "slope", "x0", "target"), [
    (lambda x, p: np.arctan(x), lambda x: 1 / (1 + x * x), 3.0, 0.0),  # full steps run away
    (lambda x, p: np.sign(x) * np.sqrt(np.abs(x)), lambda x: 0.5 / np.sqrt(np.abs(x)), 1.0, 0.0),  # and cycle 1, -1, 1
    (lambda x, p: np.log(x), lambda x: 1 / x, 9.0, 1.0),  # the first full step leaves the domain
])  # fmt: skip
def test_the_safeguard_where_full_steps_fail(F, slope, x0, target):
    s = newton(F, lambda x, p: slope(x)[None], [x0], names=["q"])
    assert s["q"] == pytest.approx(target, abs=1e-8) and abs(F(s["q"], None)) < 1e-8


@pytest.mark.parametrize("start", [3.0, 9.0])
def test_a_row_that_is_no_difference_of_the_unknown_and_a_map_is_ordinary(start):
    """F/x of a bounded F vanishes at infinity: in its logarithm the steps lead there."""
    F, J = (lambda x, p: np.tanh(x - 2)), (lambda x, p: (1/np.cosh(x - 2)**2)[None])
    ordinary = newton(F, J, [start], names=["q"], positive=True, bent=[False], raise_on_failure=False)
    assert ordinary.converged and ordinary["q"] == pytest.approx(2, rel=1e-10)
    bent = newton(F, J, [9.0], names=["q"], positive=True, raise_on_failure=False)
    assert not bent.converged and bent["q"] > 1e3


def test_a_minimum_of_the_residual_is_not_a_root():
    """x**3 - 2 x + 2 from 0: downhill ends at sqrt(2/3), where F is 0.91."""
    def F(x, p):
        return x**3 - 2 * x + 2

    s = newton(F, lambda x, p: (3 * x * x - 2)[None], [0.0], names=["q"], raise_on_failure=False)
    assert not s.converged and s.reason


def test_third_route_scipy():
    from scipy.optimize import root as scipy_root

    p = {"alpha": np.array([0.3, 1.5, 4.0]), "beta": 0.7, "lam": 1e-2}
    s = one_step(np.ones(4), p)
    for k, alpha in enumerate(p["alpha"]):
        q = {"alpha": np.array([alpha]), "beta": 0.7, "lam": 1e-2}

        def in_logs(y, q=q):
            return y - np.log(saddles.one_step_map(np.exp(y)[:, None], q))[:, 0]

        assert np.allclose(np.log(s.state[:, k]), scipy_root(in_logs, np.zeros(4), tol=1e-13).x, atol=1e-9)


def test_plain_iteration_agrees():
    p = {"alpha": np.array([0.9]), "beta": 1.0, "lam": 0.1}
    x = np.ones((4, 1))
    for _ in range(400):
        x = saddles.one_step_map(x, p)
    assert np.allclose(one_step(np.ones(4), p).state, x, rtol=1e-10)


def test_contraction_is_that_of_plain_iteration():
    s = ridge([1.0], {"alpha": 2.0, "lam": 0.1})
    V = float(exact_V(2.0, 0.1))
    x, gaps = V * 1.1, []
    for _ in range(12):
        x = 1 / (0.1 + 2 / (1 + x))
        gaps.append(abs(x - V))
    assert s.stability == pytest.approx(gaps[-1] / gaps[-2], rel=1e-3)


def test_batch_equals_point_by_point():
    p = {"alpha": np.geomspace(0.2, 5, 17), "beta": 0.8, "lam": 10.0 ** -np.arange(17) + 1e-8}
    s = one_step(np.ones(4), p)
    for k in range(17):
        one = one_step(np.ones(4), {"alpha": p["alpha"][k], "beta": 0.8, "lam": p["lam"][k]})
        assert one.state == pytest.approx(s.state[:, k], rel=1e-8) and one.iterations == s.iterations[k]


def test_same_input_same_bits():
    p = {"alpha": np.geomspace(0.2, 5, 33), "beta": 0.8, "lam": 1e-5}
    assert one_step(np.ones(4), p).state.tobytes() == one_step(np.ones(4), p).state.tobytes()


def test_only_unconverged_points_are_evaluated():
    seen = []

    def counted(x, p):
        seen.append(x.shape[1])
        return saddles.ridge(x, p)

    p = {"alpha": np.linspace(0.2, 5, 40), "lam": 10.0 ** -np.linspace(0, 9, 40)}
    s = newton(counted, saddles.ridge_jacobian, [1.0], p, names=["V"], positive=True)
    assert seen[-1] < 40 and sum(seen) < 1.3 * (s.iterations.sum() + 40)


def test_residual_and_jacobian_may_come_together():
    p = {"alpha": np.geomspace(0.2, 5, 9), "beta": 0.8, "lam": 1e-3}
    s = newton(saddles.one_step, None, np.ones(4), p, names=saddles.FOUR, positive=True,
               both=lambda x, q: (saddles.one_step(x, q), saddles.one_step_jacobian(x, q)))  # fmt: skip
    assert s.state.tobytes() == one_step(np.ones(4), p).state.tobytes()


def test_tooth_a_jacobian_of_the_wrong_sign_does_not_converge():
    with pytest.raises(NotConverged, match="does not decrease"):
        newton(saddles.ridge, lambda x, p: -saddles.ridge_jacobian(x, p), [5.0], {"alpha": 2.0, "lam": 0.1},
               names=["V"])  # fmt: skip


def test_no_root_is_not_convergence_and_carries_the_state():
    F, J = (lambda x, p: x * x + p["a"]), (lambda x, p: 2 * x[None])
    s = newton(F, J, [1.0], {"a": np.array([-4.0, 1.0])}, names=["q"], raise_on_failure=False)
    assert s.converged.tolist() == [True, False] and s["q"][0] == pytest.approx(2.0) and s.reason[1]
    with pytest.raises(NotConverged, match="1 of 2 points") as caught:
        newton(F, J, [1.0], {"a": np.array([-4.0, 1.0])}, names=["q"])
    assert np.isfinite(caught.value.solution["q"]).all()


def test_a_singular_jacobian_takes_the_least_step_and_says_so():
    def F(x, p):
        return np.stack([x[0] + x[1] - 2, 2 * (x[0] + x[1] - 2)])

    def J(x, p):
        return np.broadcast_to(np.array([[1.0, 1.0], [2.0, 2.0]])[:, :, None], (2, 2, x.shape[1]))

    s = newton(F, J, [0.5, 0.0], names=["a", "b"])
    assert (s["a"], s["b"]) == pytest.approx((1.25, 0.75)) and "singular Jacobian" in s.notes[0]


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_singular_to_rounding_is_singular(seed):
    rng = np.random.default_rng(seed)
    A, x0 = rng.normal(size=(4, 3)) @ rng.normal(size=(3, 4)), rng.normal(size=4)
    b = A @ rng.normal(size=4)
    s = newton(lambda x, p: A @ x - b[:, None], lambda x, p: A[:, :, None], x0, names=list("abcd"))
    nearest = x0 + np.linalg.pinv(A, rcond=1e-12) @ (b - A @ x0)
    assert np.allclose(s.state, nearest, atol=1e-8) and s.converged and s.iterations <= 3


def test_a_singular_block_without_a_root_is_not_called_converged():
    """The least-norm step is zero there; the residual is not."""
    def F(x, p):
        return np.stack([x[0] + x[1] - 2, x[0] + x[1] - 4])

    s = newton(F, lambda x, p: np.ones((2, 2, x.shape[1])), [1.5, 1.5], names=["a", "b"], raise_on_failure=False)
    assert not s.converged and s.residual > 0.1


@pytest.mark.parametrize(("x0", "p", "what"), [
    ([-1.0], {"alpha": 1.0, "lam": 1.0}, "start of V is -1"),
    ([np.nan], {"alpha": 1.0, "lam": 1.0}, "start of V is nan"),
    ([1.0], {"alpha": np.nan, "lam": 1.0}, "parameter alpha is NaN"),
    ([1.0, 2.0], {"alpha": 1.0, "lam": 1.0}, "1 unknowns"),
    ([1.0], {"alpha": np.ones(3), "lam": np.ones(2)}, "lam has 2 points but alpha has 3"),
])  # fmt: skip
def test_bad_input_is_named(x0, p, what):
    with pytest.raises(BadInput, match=what):
        ridge(x0, p)


def test_an_unknown_positive_name_is_named():
    with pytest.raises(UnknownName, match="unknown 'W'"):
        newton(saddles.ridge, saddles.ridge_jacobian, [1.0], {"alpha": 1.0, "lam": 1.0}, names=["V"], positive=["W"])


def test_an_equation_that_is_undefined_at_the_start_is_named():
    with pytest.raises(NotConverged, match="equation of q is not finite at the start"):
        newton(lambda x, p: np.log(x - 5), lambda x, p: 1 / (x - 5)[None], [1.0], names=["q"])


def test_a_jacobian_that_is_not_finite_is_said():
    """An infinite slope makes Newton's step zero: not convergence."""
    s = newton(lambda x, p: np.cbrt(x) - 1, lambda x, p: 1 / (3 * np.cbrt(x * x))[None], np.array([[0.5, 0.0]]),
               names=["q"], raise_on_failure=False)  # fmt: skip
    assert s.converged.tolist() == [True, False] and "Jacobian is not finite" in s.reason[1]


def test_the_last_step_is_taken():
    """It was only looked at: with it the roots of all points are good to its square."""
    def residual(x, p):
        return x - p["a"]/x

    def jacobian(x, p):
        return (1 + p["a"]/x**2)[None]

    a = np.linspace(2, 90, 50)
    for positive in (True, False):
        found = newton(residual, jacobian, [3.0], {"a": a}, names=["V"], positive=positive, rtol=1e-5)
        assert np.max(np.abs(found["V"]/np.sqrt(a) - 1)) < 1e-10 and np.all(found.error < 1e-9)
