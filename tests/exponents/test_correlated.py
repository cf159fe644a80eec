"""g(x) under N(0, L L^T) is g(L z): orders and thresholds known otherwise, and covariances that are none."""

import re

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
    assert any("over standard normals" in n for n in found.notes)


def test_products_of_floats_are_read_without_their_rounding():
    spike = [[0.6*0.6, 0.6*0.8], [0.6*0.8, 0.8*0.8]]  # of rank 1; its floats are not
    assert hx.exponents("z1*z2", covariance=spike).target == hx.parse("(12/25)*z1**2")


def test_fields_that_are_one_are_one():
    found = hx.exponents("z1*z2", covariance=[[1, 1], [1, 1]])
    assert found.target == hx.parse("z1**2") and found.weak_recovery["alpha_c_exact"] == "1/2"


def test_a_channel_of_ones_own_reads_the_same_fields():
    law = hx.Channel("exp(-(y - z**2)**2/2)/sqrt(2*pi)", "y")
    plain = hx.exponents("2*z", channel=hx.Channel("exp(-(y - 4*z**2)**2/2)/sqrt(2*pi)", "y"))
    assert float(hx.exponents("z", law, covariance=4).threshold.alpha_c) == pytest.approx(float(plain.threshold.alpha_c), rel=1e-9)


@pytest.mark.parametrize("covariance, told", [
    ([[1, 2], [2, 1]], "not positive semi-definite"), ([[1, 0], [1, 1]], "not symmetric"), ([[1]], "a row for each of z1, z2"),
    ({("z1", "z3"): 1}, "names z3"), ([["theta", 0], [0, 1]], "put a number in"),
    ([[float("nan"), 0], [0, 1]], "not a finite number"),
    ({"z1": 2}, "pairs of variables")])
def test_what_is_no_covariance_is_refused_in_a_line(covariance, told):
    with pytest.raises(BadInput, match=re.escape(told)) as error:
        hx.exponents("z1*z2", covariance=covariance)
    assert "\n" not in str(error.value) and str(error.value).startswith("covariance")
