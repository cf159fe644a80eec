"""Lines of parameters: branches are followed, told apart, and reached where a cold start fails."""

from functools import partial

import numpy as np
import pytest
import saddles

from hermitex.errors import NotConverged, UnknownName
from hermitex.solvers.chain import robust
from hermitex.solvers.continuation import follow
from hermitex.solvers.newton import newton


def ising(x, p):
    return x - np.tanh(p["beta"] * x + p["h"])


def ising_jacobian(x, p):
    return (1 - p["beta"] / np.cosh(p["beta"] * x + p["h"]) ** 2)[None]


solve_ising = partial(robust, names=["m"], residual=ising, jacobian=ising_jacobian, raise_on_failure=False)
solve_one_step = partial(robust, names=saddles.FOUR, residual=saddles.one_step, jacobian=saddles.one_step_jacobian,
                         positive=True, raise_on_failure=False)  # fmt: skip
FIELD = np.sqrt(0.5)  # at beta = 2 the lower branch ends at h = 2 m - atanh(m), m = sqrt(1/2)
SPINODAL = 2 * FIELD - np.arctanh(FIELD)


@pytest.mark.parametrize("skeleton", [None, 1, 4, 41])
def test_hysteresis_is_followed_to_the_spinodal(skeleton):
    h = np.linspace(-1, 1, 41)
    if skeleton == 1:
        skeleton = 41 - 1
    up = follow(solve_ising, [-1.0], {"beta": 2.0, "h": h}, along="h", names=["m"], skeleton=skeleton)
    down = follow(solve_ising, [1.0], {"beta": 2.0, "h": h[::-1]}, along="h", names=["m"], skeleton=skeleton)
    assert ((up["m"] < 0) == (h < SPINODAL)).all()
    assert np.allclose(down["m"], -up["m"], atol=1e-8)


@pytest.mark.parametrize("skeleton", [None, 0, 1, 3])
def test_following_gives_the_same_as_each_point_alone(skeleton):
    p = {"alpha": np.geomspace(0.2, 5, 23), "beta": 0.8, "lam": 1e-6}
    s = follow(solve_one_step, np.ones(4), p, along="alpha", names=saddles.FOUR, positive=True, skeleton=skeleton)
    cold = newton(saddles.one_step, saddles.one_step_jacobian, np.ones(4), p, names=saddles.FOUR, positive=True)
    assert s.all_converged and np.allclose(s.state, cold.state, rtol=1e-8)
    assert skeleton == 0 or s.iterations.sum() < cold.iterations.sum()


def test_a_point_that_a_cold_start_misses_is_reached_from_its_neighbours():
    """An equation that is defined only near its root: from afar there is nothing to go by."""
    def F(x, p):
        return np.where(np.abs(x - p["s"]) < 1, np.sin(x - p["s"]), np.nan)

    def J(x, p):
        return np.cos(x - p["s"])[None]

    solve = partial(newton, names=["q"], raise_on_failure=False)
    p = {"s": np.array([0.0, 0.5, 4.0, 9.0])}
    cold = solve(F, J, [0.0], p)
    assert cold.converged.tolist() == [True, True, False, False]
    led = follow(lambda x, q: solve(F, J, x, q), [0.0], p, along="s", names=["q"])
    assert led["q"] == pytest.approx(p["s"], abs=1e-9)


def test_the_chain_falls_back_and_says_which_method_ended_it():
    s = robust([1.0], {"alpha": np.array([0.5, 2.0]), "lam": 0.1}, names=["V"], residual=saddles.ridge,
               jacobian=lambda x, p: -saddles.ridge_jacobian(x, p), positive=True)  # fmt: skip
    assert s.all_converged and s.method.startswith("anderson")
    good = robust([1.0], {"alpha": np.array([0.5, 2.0]), "lam": 0.1}, names=["V"], residual=saddles.ridge,
                  jacobian=saddles.ridge_jacobian, positive=True)  # fmt: skip
    assert good.method == "newton" and np.allclose(good["V"], s["V"], rtol=1e-8)


def test_what_no_method_solves_is_a_failure_with_the_state():
    with pytest.raises(NotConverged) as caught:
        robust([1.0], names=["q"], residual=lambda x, p: x * x + 1, jacobian=lambda x, p: 2 * x[None], max_steps=10)
    assert np.isfinite(caught.value.solution["q"])


def test_an_unknown_parameter_is_named():
    with pytest.raises(UnknownName, match="alpha"):
        follow(solve_ising, [0.0], {"alpha": np.ones(3)}, along="alhpa", names=["m"])
