"""The optimal label map: formula, table, overlap and file against the derived values, samples and each other."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sympy import Abs, besselk

import hermitex as hx
from hermitex.errors import BadInput, NoClosedForm
from hermitex.exponents.channels import channel
from hermitex.exponents.label_formula import Y
from hermitex.exponents.label_map import _overlap, label_map

# Squared overlaps of the spectral estimator with T*, from the derivation sheet of multi-index models, part 2, section B2.
SHEET = {
    ("abs(z)", None): {.55: .020643282454, .6: .042327566570, .75: .111203594528, 1: .230697043751, 2: .638881278113,
                       5: .956954572491},
    ("z**2", "gaussian:1"): {.75: .030522025, 1: .108062970, 1.5: .257708483, 2: .385467122, 3: .568874766, 5: .751687983},
    ("z1*z2", None): {.55: 0, .6: .001986785031, .75: .052054145604, 1: .138805158701, 2: .432538633615, 5: .778906329069},
    ("sign(z1*z2)", None): {2.5: .013108290806, 3: .189503490935, 4: .429203673205, 6: .661752557946, 10: .820597997288}}


@pytest.mark.parametrize("asked", SHEET)
def test_overlaps_of_the_sheet(asked):
    found, reference = hx.exponents(*asked).label_map(), SHEET[asked]
    overlaps = found.squared_overlap(list(reference)).reshape(len(reference), -1)
    assert np.allclose(overlaps, np.array(list(reference.values()))[:, None], rtol=0, atol=2e-9)


@pytest.mark.parametrize("target, channel, onset", [("abs(z)", None, .4), ("z**2", "gaussian:1", .285383421659),
                                                    ("z1*z2", None, .317026359860)])
def test_the_slope_at_the_onset(target, channel, onset):
    found = hx.exponents(target, channel).label_map()
    step = 1e-4*found.alpha_c
    slopes = [np.ravel(found.squared_overlap(found.alpha_c + k*step))[0]/(k*step) for k in (1, 2)]
    assert abs(2*slopes[0] - slopes[1] - onset) < 1e-5


@pytest.mark.parametrize("target, channel", [("abs(z)", None), ("z**2", "gaussian:1"), ("z**2", "poisson"), ("sign(z1*z2)", None),
                                             ("z1*z2", None), ("z**2 - 1", "random_sign"),
                                             ("relu(abs(z) - 1)", None)])
def test_the_threshold_is_that_of_amp(target, channel):
    found = hx.exponents(target, channel)
    assert abs(found.label_map().alpha_c/float(found.alpha_c) - 1) < 1e-8


@pytest.mark.parametrize("target, channel, formula", [
    ("abs(z)", None, "1 - 1/y**2"), ("z**2", None, "1 - 1/y"), ("exp(z**2)", None, "1 - 1/log(y)"), ("sign(z)", None, "0"),
    ("tanh(z)", None, "1 - 1/atanh(y)**2"), ("z**2", "poisson", "1 - 1/(2*y/3 + 1/3)"),
    ("relu(z)", None, "Piecewise((0, Eq(y, 0)), (1 - 1/y**2, y > 0), (nan, True))")])
def test_formulas(target, channel, formula):
    assert str(hx.exponents(target, channel).label_map().formula) == formula


def test_the_matrix_of_a_product():
    found = hx.exponents("z1*z2").label_map()
    assert found.second_moment[0, 0] == Abs(Y)*besselk(1, Abs(Y))/besselk(0, Abs(Y)) and found.second_moment[0, 1] == Y
    y = np.array([-1.3, -.2, .4, 2.5])
    inverse = np.linalg.inv(np.eye(2) - found(y))
    assert np.allclose(inverse[:, 0, 1], y, atol=1e-9) and found(.4).shape == (2, 2)
    assert sorted(found.forms()) == ["z1 + z2", "z1 - z2"]
    with pytest.raises(BadInput):
        found.squared_overlap(0)


def test_one_direction_of_several_variables():
    found = hx.exponents("abs(z1 + 2*z2)", variables="z1,z2,z3").label_map()
    v = np.array([1, 2, 0])/5**.5
    assert np.allclose(found(3.0), (1 - 5/9)*np.outer(v, v)) and found.thresholds == pytest.approx([.5])


@pytest.mark.parametrize("target, channel, label", [
    ("tanh(2*z)", "gaussian:1/4", lambda z, e: np.tanh(2*z) + e/2), ("z**2", "multiplicative", lambda z, e: z**2*e),
    ("z**4 - z**2 + z/3", None, lambda z, e: z**4 - z**2 + z/3)])
def test_the_table_is_what_samples_show(target, channel, label):
    """E[z^2|y] over a cell of labels, as the mean over samples."""
    rng = np.random.default_rng(3)
    z, e = rng.standard_normal((2, 400_000))
    y = label(z, e)
    m = 1/(1 - hx.exponents(target, channel).label_map()(y))
    for low, high in ((.1, .3), (.4, .6), (.7, .9)):
        cell = (y > np.quantile(y, low)) & (y < np.quantile(y, high))
        off = z[cell]**2 - m[cell]
        assert abs(off.mean()) < 4*off.std()/cell.sum()**.5


def test_the_estimator_itself():
    """The top eigenvector of sum T*(y_i) x_i x_i^T at d = 400: its overlap and its eigenvalue 1/alpha."""
    found, rng, d, alpha = hx.exponents("abs(z)").label_map(), np.random.default_rng(1), 400, 2
    overlaps, values = [], []
    for _ in range(6):
        x = rng.standard_normal((alpha*d, d))
        values_of, vectors = np.linalg.eigh(x.T*found(np.abs(x[:, 0])) @ x/len(x))
        overlaps.append(vectors[0, -1]**2)
        values.append(values_of[-1])
    for seen, theory in ((overlaps, found.squared_overlap(alpha)), (values, 1/alpha)):
        assert abs(np.mean(seen) - theory) < 4*np.std(seen, ddof=1)/6**.5 + 4/d


def test_the_eigenvalue_is_one_over_alpha_and_a_planted_map_fails():
    """psi(l) = l (1/alpha + E[s/(l - s)]) at l = 1/(1 - R) is 1/alpha for T* alone."""
    found, alpha = hx.exponents("z**2", "gaussian:1").label_map(), 2.0
    gains, p = found._gains()
    R = _overlap(alpha, gains[0], p, False)

    def psi(s):
        return (1/alpha + np.sum(p*s/(1/(1 - R) - s)))/(1 - R)

    m = 1 + gains[0]
    assert abs(psi(1 - 1/m) - 1/alpha) < 1e-9
    assert abs(psi(1 - 1/(1.1*m)) - 1/alpha) > 1e-3


def test_directions_that_do_not_commute():
    """The largest of |v.z| over three v at 60 degrees: one overlap by symmetry, alpha_c = (pi/(3 sin(pi/3)))^2; section B2."""
    one, two, three = "abs(z1)", "abs(z1/2 + sqrt(3)/2*z2)", "abs(z1/2 - sqrt(3)/2*z2)"
    label = f"Heaviside({one} - {two})*Heaviside({one} - {three}) + 2*Heaviside({two} - {one})*Heaviside({two} - {three})"
    found = label_map(hx.parse(label), channel(), ("z1", "z2"))
    assert found.shared and found.alpha_c == pytest.approx(1.4621636, abs=1e-7)
    assert np.allclose(found.squared_overlap([2.5, 4]), [[.525663327605]*2, [.790800423844]*2], atol=1e-9)


def test_what_has_no_law_is_refused():
    with pytest.raises(NoClosedForm):
        label_map(hx.parse("sin(z1*z2 + z1 + z2**3)"), channel(), ("z1", "z2"))
    with pytest.raises(BadInput):
        hx.exponents("3").label_map()


def test_the_file_is_the_function(tmp_path):
    found = hx.exponents("z1*z2").label_map()
    path = found.export(tmp_path/"map.py")
    done = subprocess.run([sys.executable, "-I", path], capture_output=True, text=True, check=True)
    assert "difference 0.0e+00" in done.stdout
    space: dict = {}
    exec(compile((tmp_path/"map.py").read_text(), "map", "exec"), space)
    y = np.linspace(-5, 5, 40)
    assert np.array_equal(space["label_map"](y), found(y)) and "hermitex" not in str(space.get("look_up").__code__.co_names)
    with pytest.raises(BadInput):
        found.export(tmp_path/"map.txt")


def test_what_it_shows():
    found = hx.exponents("sign(z1*z2)").label_map()
    text = json.dumps(found.to_dict())
    assert "2*pi" in text and "Matrix" not in str(found) and "T^*" in found.latex()
    assert found.plot().get_ylabel() == "$T^*(y)$"
    assert "Bayes-AMP: alpha_c = pi**2/4" in str(found)
    several = hx.exponents("abs(z)").label_map().plot()
    assert several.get_ylim()[0] >= -4.3 and several.get_ylim()[1] < 1.5
