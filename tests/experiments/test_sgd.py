"""Spherical SGD at finite size beside its flow; a repeated sample; the staircases."""

import json
import subprocess
import sys

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.experiments.escapes import escapes
from hermitex.experiments.sgd_experiment import simulate
from hermitex.experiments.statistics import agreement


def test_both_models_follow_the_flow_with_its_step():
    """erf and sign, gamma d = 1/2: the cost of the step is 10 % of the drift, and is seen."""
    theory, t = hx.theories.sgd("erf", "sign"), [0, 0.5, 1, 2]
    flow = theory.curve(t=t, m0=0.3, step=0.5)
    for model in ("vectors", "overlaps"):
        found = simulate(theory, t, dimension=400, m0=0.3, step=0.5, seeds=24, model=model)
        assert agreement(flow, found).worst("m") < 4
        assert found["m"][0] == 0.3
    without = theory.curve(t=t, m0=0.3)
    assert abs(without["m"][-1] - found["m"][-1]) > 8*found.standard_error["m"][-1]


def test_same_seed_same_bits_and_seeds_do_not_disturb_each_other():
    theory = hx.theories.sgd("erf", "sign")
    one = simulate(theory, [0, 1], dimension=60, step=0.5, seeds=[3])
    again = simulate(theory, [0, 1], dimension=60, step=0.5, seeds=[3])
    assert one["m"].tolist() == again["m"].tolist()


def test_curve_with_experiment_and_its_json():
    curve = hx.curve("sgd", sigma="erf", target="sign", t=[0, 1], dimension=80, step=0.4, simulate={"seeds": 4})
    out = curve.to_dict()["simulation"]
    assert out["seeds"] == [0, 1, 2, 3]
    assert set(out["order_parameters"]) == {"m", "length"}
    assert out["parameters"]["dimension"] == 80
    curve.plot()


def test_refusals():
    theory = hx.theories.sgd("sign", "sign")
    with pytest.raises(BadInput, match="jumps"):
        simulate(theory, [0, 1], dimension=50)
    smooth = hx.theories.sgd("erf", "sign")
    with pytest.raises(UnknownName):
        simulate(smooth, [0, 1], dimension=50, model="clouds")
    with pytest.raises(BadInput, match="samples"):
        simulate(smooth, [0, 1e9], dimension=50)
    with pytest.raises(BadInput, match="dimension"):
        simulate(smooth, [0, 1], dimension=2)


def test_command_line():
    run = subprocess.run([sys.executable, "-m", "hermitex.face.cli", "curve", "sgd", "--sigma", "erf", "--target", "sign", "--t",
                          "0:2:3", "--dimension", "60", "--step", "0.5", "--simulate", "--seeds", "2", "--json"],
                         capture_output=True, text=True, check=True)
    out = json.loads(run.stdout)
    assert out["t"] == [0.0, 1.0, 2.0]
    assert len(out["order_parameters"]["m"]) == 3
    assert out["simulation"]["parameters"]["step"] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["correlation", "square"])
def test_third_order_follows_the_flow(loss):
    """-He3 and tanh (s_3 < 0) from an overlap of 0.4: small steps, d = 1000, within 4 standard errors for both losses."""
    theory, t = hx.theories.sgd("tanh", "-He3(z)", loss=loss), [0, 1, 2]
    found = simulate(theory, t, dimension=1000, step=0.02, seeds=24, m0=0.4, model="overlaps")
    assert agreement(theory.curve(t=t, m0=0.4, step=0.02), found).worst("m") < 4


@pytest.mark.slow
def test_repetition_learns_the_third_polynomial_where_plain_sgd_does_not():
    """60 000 samples at d = 512, about 20 d log d and a quarter of d^2; the exponents 3 and 2 (or less) say why."""
    theory = hx.theories.sgd("gelu(z + 1/2)", "He3")
    plain, twice = (simulate(theory, [0, 3, 6], dimension=512, step=0.05, seeds=12, model="overlaps", repetition=r)
                    for r in (0.0, 0.2))
    assert plain["length"][-1] < 0.2
    assert twice["length"][-1] > 0.8
    assert hx.theories.repetition("He3").exponent == 2 < theory.information_exponent


@pytest.mark.slow
def test_a_repeated_sample_follows_its_flow():
    """He4 and sqrt(1 + z^2) from an overlap of 0.3: both models within 4 standard errors of the whole average."""
    theory, numbers = hx.theories.sgd("sqrt(1 + z**2)", "He4(z)/sqrt(24)"), {"step": 0.2, "repetition": 5.0}
    t = [0, 2, 4]
    flow = theory.curve(t=t, m0=0.3, **numbers)
    for model, d in (("overlaps", 1000), ("vectors", 400)):
        found = simulate(theory, t, dimension=d, m0=0.3, seeds=16, model=model, **numbers)
        assert agreement(flow, found).worst("m") < 4
    assert flow["m"][-1] > 0.5
    assert theory.curve(t=t, m0=0.3, step=0.2)["m"][-1] < 0.3


@pytest.mark.slow
def test_escapes_are_counted_and_refused():
    theory = hx.theories.sgd("z**2/2", "He2(z)/sqrt(2)")
    found = escapes(theory, [32, 64], step=0.2, seeds=4)
    assert found.to_dict()["law"] == "d log d"
    assert list(found.to_dataframe()["dimension"]) == [32, 64]
    assert "predicted" in found.to_dict()
    found.plot()
    again = escapes(theory, [32, 64], step=0.2, seeds=4)
    assert again.samples.tolist() == found.samples.tolist()
    for bad, says in (((theory, [32]), "two dimensions"), ((hx.theories.sgd("He2", "z1*z2"), [32, 64]), "one direction"),
                      ((hx.theories.sgd("tanh", "He3"), [32, 64]), "does not reach")):
        with pytest.raises(BadInput, match=says):
            escapes(*bad)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "g", "dimensions", "numbers"), [
    ("z**2/2", "He2(z)/sqrt(2)", [64, 128, 256, 512, 1024], {"step": 0.1}),
    ("sqrt(1 + z**2)", "He4(z)/sqrt(24)", [64, 128, 256, 512, 1024], {"step": 0.2, "repetition": 5.0}),
    ("He3(z)/sqrt(6)", "He3(z)/sqrt(6)", [16, 32, 64, 128], {"step": 0.05}),
])
def test_the_samples_grow_as_predicted(sigma, g, dimensions, numbers):
    """d log d at order two and for He4 seen twice, d^2 for He3: the slopes lie within 3 standard errors of the flow's."""
    found = escapes(hx.theories.sgd(sigma, g), dimensions, seeds=32, **numbers)
    measured, error, predicted = found.slopes
    assert abs(measured - predicted) < 3*error
    assert error < 0.25*predicted


@pytest.mark.slow
def test_repetition_learns_the_fourth_polynomial():
    """d = 512, d log d/signal = 10 000 samples times three; seen once they leave the overlap where it was."""
    theory = hx.theories.sgd("sqrt(1 + z**2)", "He4(z)/sqrt(24)")
    assert hx.theories.repetition("He4").exponent == 2 < theory.information_exponent == 4
    plain, twice = (simulate(theory, [0, 8, 16], dimension=512, step=0.3, seeds=12, model="overlaps", repetition=r)
                    for r in (0.0, 5.0))
    assert plain["length"][-1] < 0.15
    assert twice["length"][-1] > 0.7


@pytest.mark.slow
def test_staircase_follows_the_flow_and_the_order():
    """He2(z1) + sign(z1 z2 z3) from overlaps of 0.2: first z1, then z2 and z3 together."""
    theory, t = hx.theories.sgd("He2(z)/10 + He3(z)/2", "He2(z1) + sign(z1*z2*z3)"), [0, 2, 4, 6]
    found = simulate(theory, t, dimension=1000, step=0.04, seeds=16, m0=0.2, model="overlaps")
    assert agreement(theory.curve(t=t, m0=0.2, step=0.04), found).worst("m1", "m2", "m3") < 4
    assert found["m1"][1] > found["m2"][1] + 3*found.standard_error["m2"][1]


@pytest.mark.slow
def test_a_staircase_of_order_one_follows_the_flow():
    """z1 + He3(z1) z2 + He3(z2) z3, each step linear given the last: the overlaps leave in that order."""
    theory, t = hx.theories.sgd("z + He4(z)/4", "z1 + He3(z1)*z2 + He3(z2)*z3"), [0, 0.1, 0.2, 0.4]
    found = simulate(theory, t, dimension=1000, step=0.005, seeds=16, m0=0.2, model="overlaps")
    assert agreement(theory.curve(t=t, m0=0.2, step=0.005), found).worst("m1", "m2", "m3") < 4
    assert list(theory.learned(1e4, level=0.05)) == ["m1", "m2", "m3"]


@pytest.mark.slow
def test_second_order_staircase_from_the_equator_seen_once():
    """He2(z1) + sign(z1 z2 z3) has leap two: d log d samples, z1 first; d = 256, 170 000 samples."""
    theory = hx.theories.sgd("He2(z)/10 + He3(z)/2", "He2(z1) + sign(z1*z2*z3)")
    found = simulate(theory, [0, 5, 20], dimension=256, step=0.03, seeds=12, model="overlaps")
    assert found["length1"][1] > 2*found["length2"][1]
    flow = theory.curve(t=[20], dimension=256, step=0.03)
    for i in "123":
        assert abs(found[f"length{i}"][-1] - flow[f"m{i}"][-1]) < 0.1


@pytest.mark.slow
def test_repetition_climbs_the_staircase_of_the_fourth_polynomial():
    """He4(z1) + sign(z1 z2 z3) as it stands: leap three seen once, generative leap two; seen twice it is climbed, z1 first.

    The label is neither scaled nor clipped, its size bounds the step instead: E[G^2] = 12.4 takes gamma d = 0.008, a third of the
    best `.step`, and 30 d/step = 360 000 samples at d = 96. A bounded student bears the labels up to 100. Its phase makes the
    overlap with z1 stop at 0.89, where its pull vanishes: at 1 the parity, a fifth of the label's size, could not move one neuron.
    """
    theory = hx.theories.sgd("cos(z + 11/4)", "He4(z1) + sign(z1*z2*z3)")
    numbers = {"dimension": 96, "step": 0.008}
    assert theory.repeated(0.9).step/2 > 0.008
    flow = theory.curve(t=[0, 10, 30], repetition=0.9, **numbers)
    found = simulate(theory, [0, 10, 30], seeds=8, model="overlaps", repetition=0.9, **numbers)
    assert flow["m1"][1] > 10*flow["m2"][1]
    assert found["length1"][1] > 3*found["length2"][1]
    for i in "123":
        assert abs(found[f"length{i}"][-1] - flow[f"m{i}"][-1]) < 4*found.standard_error[f"length{i}"][-1] + flow.residual[-1]
    assert min(found[f"length{i}"][-1] for i in "23") > 2.5*96**-0.5
    assert found["length1"][-1] > 0.85
    once = simulate(theory, [10], seeds=8, model="overlaps", **numbers)
    assert once["length"][-1] < 0.35
    exponents = hx.exponents("He4(z1) + sign(z1*z2*z3)")
    assert (exponents.leap_exponent, exponents.generative_exponent) == (3, 2)


def test_averages_over_a_sample_seen_twice_by_sampling():
    """He4(z1) + sign(z1 z2 z3), whose second look oscillates: dm/dt by 400 000 samples, 4 standard errors."""
    twice = hx.theories.sgd("cos(z + 11/4)", "He4(z1) + sign(z1*z2*z3)").repeated(0.9)
    m, rng = np.array([0.88, 0.1, 0.1]), np.random.default_rng(0)
    z, x = rng.standard_normal((400_000, 3)), rng.standard_normal(400_000)
    h = z @ m + np.sqrt(1 - m @ m)*x
    y = z[:, 0]**4 - 6*z[:, 0]**2 + 3 + np.sign(z.prod(axis=1))
    G = -y*np.sin(h - y*np.sin(h + 11/4)*0.9 + 11/4)
    samples = G[:, None]*(z - m*h[:, None]) - 0.004*m*G[:, None]**2
    error = samples.std(axis=0)/np.sqrt(len(samples))
    assert np.all(np.abs(twice.rate(m, 0.008) - samples.mean(axis=0)) < 4*error)
