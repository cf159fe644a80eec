"""g(x) under N(0, L L^T) is g(L z): orders and thresholds known otherwise, and covariances that are none."""

import re

import numpy as np
import pytest
from sympy import Matrix, Rational, asin, eye, pi

import hermitex as hx
from hermitex.errors import BadInput


@pytest.mark.parametrize("g, variance, information", [
    ("z**3 - 3*z", 2, 1), ("z**3 - 3*z", 1, 3), ("z**3 - 6*z", "2", 3), ("z**4 - 6*z**2", 1, 4), ("z**4 - 6*z**2", 1.5, 2)])
def test_a_variance_changes_the_information_exponent(g, variance, information):
    assert hx.exponents(g, covariance=variance).information_exponent == information


@pytest.mark.parametrize("covariance, rho", [
    (eye(2) + Matrix([1, 1])*Matrix([[1, 1]])/2, Rational(1, 3)), ({("z1", "z2"): -0.5}, Rational(-1, 2)),
    ([[4, 1], [1, 1]], Rational(1, 2))])
def test_the_sign_of_a_product_by_its_angle(covariance, rho):
    """y = 1 on two opposite wedges of angle b in the plane of z: 1/alpha_c = sin(b)^2/(b (pi - b))."""
    b = pi/2 + asin(rho)
    found = hx.exponents("sign(z1*z2)", covariance=covariance)
    assert (found.leap_exponent, found.generative_exponent) == (2, 2)
    assert float(found.threshold.alpha_c) == pytest.approx(float(b*(pi - b)/(1 - rho**2)), rel=1e-9)
    assert found.target == hx.parse("sign(z1*z2)") and any("linear forms of z1, z2" in n for n in found.notes)


def threshold_of_a_form(a, b):
    """alpha_c of y = a u^2 - b v^2, a, b > 0: where y is known, u, v lie on a hyperbola, (cosh t, sinh t)/sqrt(a), /sqrt(b)."""
    t = np.linspace(0, 12, 1201)
    sums = np.zeros(3)
    for s in (1, -1):
        for x in np.linspace(-40, 5, 1081):
            y = np.exp(x)
            near, far = np.cosh(t)**2, np.sinh(t)**2
            u2, v2 = (y/a*near, y/b*far) if s > 0 else (y/a*far, y/b*near)
            w = np.exp(-(u2 + v2)/2)
            w[0] /= 2
            z = w.sum()
            if z > 0:
                sums += y*z*np.array([1, (w @ u2/z - 1)**2, (w @ v2/z - 1)**2])
    return sums[0]/max(sums[1:])


@pytest.mark.parametrize("theta, mu", [(Rational(-1, 2), (Rational(3, 5), Rational(4, 5))), (2, (Rational(3, 5), Rational(4, 5))),
                                       (0, (1, 0))])
def test_a_product_of_fields_under_a_spike(theta, mu):
    """z1 z2 under 1 + theta mu mu^T is a form of signature (1, 1): by its eigenvalues, and a quadrature of its own."""
    spike = eye(2) + theta*Matrix(mu)*Matrix([mu])
    root = np.linalg.cholesky(np.array(spike, dtype=float))
    b, a = np.linalg.eigvalsh(root.T @ np.array([[0, 0.5], [0.5, 0]]) @ root)
    found = hx.exponents("z1*z2", covariance=spike)
    assert (found.leap_exponent, found.generative_exponent) == (2, 2)
    expected, error = threshold_of_a_form(a, -b), float(found.threshold.error or 0)
    assert abs(float(found.threshold.alpha_c) - expected) <= error + 1e-9 and error < 1e-10*expected


def test_products_of_floats_are_read_without_their_rounding():
    spike = [[0.6*0.6, 0.6*0.8], [0.6*0.8, 0.8*0.8]]  # of rank 1; its floats are not
    found = hx.exponents("z1*z2", covariance=spike)
    assert found.over_normals.target == hx.parse("(12/25)*z1**2") and found.target == hx.parse("z1*z2")


def test_fields_that_are_one_are_one():
    found = hx.exponents("z1*z2", covariance=[[1, 1], [1, 1]])
    assert found.staircase[0]["directions"] == [[1, 0]] and found.weak_recovery["alpha_c_exact"] == "1/2"


def test_a_channel_of_ones_own_reads_the_same_fields():
    law = hx.Channel("exp(-(y - z**2)**2/2)/sqrt(2*pi)", "y")
    plain = hx.exponents("2*z", channel=hx.Channel("exp(-(y - 4*z**2)**2/2)/sqrt(2*pi)", "y"))
    assert float(hx.exponents("z", law, covariance=4).threshold.alpha_c) == pytest.approx(float(plain.threshold.alpha_c), rel=1e-9)


@pytest.mark.parametrize("covariance, told", [
    ([[1, 2], [2, 1]], "not positive semi-definite"), ([[1, 0], [1, 1]], "not symmetric"), ([[1]], "a row for each of z1, z2"),
    ({("z1", "z3"): 1}, "names z3"), ([["theta", 0], [0, 1]], "put a number in"),
    ([[float("nan"), 0], [0, 1]], "not a finite number"),
    ({"z1": 2}, "pairs of variables"), ({("z1", "z2"): 0, ("z2", "z1"): "1/2"}, "is 0 and 1/2; give it once")])
def test_what_is_no_covariance_is_refused_in_a_line(covariance, told):
    with pytest.raises(BadInput, match=re.escape(told)) as error:
        hx.exponents("z1*z2", covariance=covariance)
    assert "\n" not in str(error.value) and str(error.value).startswith("covariance")


def test_staircases_are_forms_of_the_variables_as_given():
    """z2 of the covariance 1/2 is (w1 + sqrt(3) w2)/2 of standard normals w."""
    half = {("z1", "z2"): "1/2"}
    found = hx.exponents("z1 + z2**2 - 1", covariance=half)
    assert [s["directions"] for s in found.staircase] == [[[1, 0]], [[1, -2]]]  # z2 - z1/2, what z2 adds to z1
    assert found.to_dict()["staircase"][1] == {"order": 1, "directions": [[1, -2]]}
    alone = hx.exponents("He3(z2)", covariance=half, variables="z1,z2")
    assert alone.staircase[0]["directions"] == [[0, 1]]  # not z1 + sqrt(3)*z2, its form over the standard normals
    assert "covariance" not in " ".join(hx.exponents("z1*z2", covariance=[[1, 0], [0, 1]]).notes)


def test_certificates_name_the_standard_normals_apart():
    found = hx.exponents("z1*z2 + He3(z1 + z2)", covariance={("z1", "z2"): "1/2"})
    told = " ".join([*map(str, found.certificates), *found.notes])
    assert "w1 + sqrt(3)*w2/3 is known" in told and "z2 = w1/2 + sqrt(3)*w2/2" in told
    assert not re.search(r"\bz\d", " ".join(map(str, found.certificates)))
    first = " ".join(hx.exponents("z1*z2", covariance={("z1", "z2"): "1/2"}).notes)
    assert "alpha_c is where z1 + z2 is found; z1 - z2 later" in first


@pytest.mark.parametrize("rho", [0.3, -0.7])
def test_the_first_direction_of_a_product_is_the_sum_of_fields_of_positive_correlation(rho):
    """g = z1 z2 over u = z1 + z2, v = z1 - z2 is (u^2 - v^2)/4, and the variance of u is larger where rho > 0."""
    notes = " ".join(hx.exponents("z1*z2", covariance={("z1", "z2"): rho}).notes)
    assert f"alpha_c is where z1 {'+' if rho > 0 else '-'} z2 is found" in notes


@pytest.mark.parametrize("g, told", [
    ("(z1 + z2)*(z1 - z2)", [[1, -1], [1, 1]]), ("z1**2 - z2**2", [[1, 0], [0, 1]]), ("z1*tanh(z1 + 2*z2)", [[1, 0], [1, 2]]),
    ("He2(z1 + z2) - He2(z1 - z2)", [[1, -1], [1, 1]])])
def test_directions_are_the_forms_that_the_target_is_written_in(g, told):
    found = hx.exponents(g)
    assert [row for stage in found.staircase for row in stage["directions"]] == told


def test_what_is_unlearned_is_of_the_same_forms():
    found = hx.exponents("z1 + He2(z1 - z2)", covariance={("z1", "z2"): "1/2"}).unlearned(steps=1)
    given = [list(row) for row in found.directions]
    x = np.linalg.cholesky(np.array([[1, 0.5], [0.5, 1]])) @ np.random.default_rng(1).standard_normal((2, 400_000))
    u = np.array(given, dtype=float) @ x
    y = x[0] + (x[0] - x[1])**2 - 1
    fit = np.polynomial.polynomial.polyval(u[0], np.polynomial.polynomial.polyfit(u[0], y, 4))
    assert np.var(y - fit) == pytest.approx(found.values["variance"], rel=0.02)
