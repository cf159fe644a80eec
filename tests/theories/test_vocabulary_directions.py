"""A vocabulary with biases, on targets of several directions: reference values, identities, planted errors."""

import json
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput

one_step = hx.theories.one_step
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_directions.json").read_text())
NAMES = {"test": "test_error", "train": "train_error", "m0": "m1", "m1": "m2", "zeta00": "zeta1", "zeta10": "zeta2",
         "psi00": "psi1_1", "psi01": "psi1_2", "psi10": "psi2_1", "psi11": "psi2_2",
         "q1_00": "q1_11", "q1_01": "q1_12", "q1_11": "q1_22", "q2_0": "q2_1", "q2_1": "q2_2"}
POINT = {"alpha": 2, "lam": 0.05, "r": 1.2, "c": 1.1, "gamma": 0.9}


def _theory(row, **more):
    return one_step(row["sigma"], row["g"], vocabulary=[u[0] for u in row["U"]], fractions=row["pi"], norms=row["c"],
                    **({"biases": row["b"]} | more))


def test_the_reference_values():  # theory sheet one_step_2, A2
    row = REFERENCE["A2_srf"][0]
    numbers = {n: row[n] for n in ("alpha", "beta", "lam", "Delta")}
    found = _theory(row).solve(**numbers, r=1, gamma=0.9, dimension=[np.inf, row["d"]])
    for k, at in enumerate(("values", "values_with_1_over_d")):
        for name, value in row[at].items():
            assert found[NAMES[name]][k] == pytest.approx(value, rel=1e-12, abs=1e-14), (at, name)
    without = _theory(row, biases=None).solve(**numbers, r=1, gamma=0.9)
    assert without["test_error"] != pytest.approx(row["values"]["test"], rel=1e-2)  # tooth: the biases are felt


def _marked(rows):
    return [pytest.param(x, id=str(k), marks=() if k == 2 else pytest.mark.slow) for k, x in enumerate(rows)]


@pytest.mark.parametrize("row", _marked([x for x in REFERENCE["A6_trained"] if "theory" in x]))
def test_a_bias_and_what_the_ridge_problem_would_train(row):  # theory sheet one_step_2, A6
    target = {"he1+he2/2": "He1(z) + He2(z)/2"}.get(row["g"], row["g"])
    theory = one_step(row["sigma"], target, vocabulary=row["us"], fractions=row["pi"], norms=row["cs"], biases=row["bs"])
    found = theory.solve(**{n: row[n] for n in ("alpha", "beta", "lam", "Delta", "r", "gamma")}, bias=row["b"],
                         dimension=[np.inf, row["d"]])
    ridge = row["lam"]*row["beta"]/row["alpha"]*sum(found[f"q2_{k}"] for k in range(1, len(row["us"]) + 1))
    for k, at in enumerate(("theory", "theory_1_over_d")):
        expected = row[at]
        assert found["test_error"][k] == pytest.approx(expected["test"], rel=1e-10)
        assert found["train_error"][k] == pytest.approx(expected["train"], rel=1e-10)
        assert (found["train_error"] + ridge)[k] == pytest.approx(expected["objective"], rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("group", [0, 5])
def test_the_bias_that_the_ridge_problem_trains(group):
    row, trained = REFERENCE["A6_trained"][group], REFERENCE["A6_trained"][group + 4]
    target = {"he1+he2/2": "He1(z) + He2(z)/2"}.get(row["g"], row["g"])
    theory = one_step(row["sigma"], target, vocabulary=row["us"], fractions=row["pi"], norms=row["cs"], biases=row["bs"])
    h, b = 1e-3, trained["trained_b"]
    found = theory.solve(**{n: row[n] for n in ("alpha", "beta", "lam", "Delta", "r", "gamma")}, bias=[b - h, b, b + h])
    ridge = row["lam"]*row["beta"]/row["alpha"]*sum(found[f"q2_{k}"] for k in range(1, len(row["us"]) + 1))
    objective = found["train_error"] + ridge
    assert objective[1] == pytest.approx(trained["objective"], rel=1e-9)
    assert objective[0] > objective[1] < objective[2]
    assert abs(objective[2] - objective[0]) < 1e-3*abs(objective[2] - 2*objective[1] + objective[0])  # flat: b is known to 1e-6
    assert found["test_error"][1] == pytest.approx(trained["risk_there"], rel=1e-9)


def test_equal_letters_are_one():
    one = one_step("relu", "z1 + z1*z2").solve(**POINT, bias=0.3)
    two = one_step("relu", "z1 + z1*z2", vocabulary=[1, 1], biases=[0.3, 0.3]).solve(**POINT)
    for name in ("test_error", "train_error"):
        assert two[name] == pytest.approx(one[name], rel=1e-10)
    assert two["psi1_2"] + two["psi2_2"] == pytest.approx(one["psi2"], rel=1e-9)


def test_a_bias_lets_an_odd_network_see_the_product():
    blind, seeing = (one_step("tanh", "z1 + z1*z2", vocabulary=[1, 1], biases=b).solve(**POINT) for b in ([0, 0], [0.5, -0.5]))
    assert abs(blind["psi1_2"]) < 1e-12 < abs(seeing["psi1_2"])


def test_without_a_ridge():
    found = one_step("tanh", "z1 + z1*z2", vocabulary=[1, 2]).solve(alpha=[0.5, 2], lam=0, alpha0=3, eta=1)
    assert found.all_converged and found["train_error"][0] == 0 and found["psitilde1_2"][0] == 0


@pytest.mark.parametrize("more, said", [
    ({"vocabulary": [1, 2], "biases": [1]}, "biases has 1 entries"),
    ({"biases": [1, 2]}, "belong to a vocabulary"),
    ({"vocabulary": [1, 2], "rows": "orthogonal"}, "one direction z, without biases"),
    ({"vocabulary": [1, 2], "steps": 2, "rows": "orthogonal"}, "leave rows out"),
])
def test_bad_input_is_one_line(more, said):
    with pytest.raises(BadInput, match=said) as error:
        one_step("tanh", "z1 + z1*z2", **more)
    assert "\n" not in str(error.value)
