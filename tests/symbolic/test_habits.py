"""What people write on paper or in Python, and what a text answers: it is read, or the one line says what to type."""

import pytest
from sympy import Symbol

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.symbols import kappa, z, z1


def test_the_python_spelling_of_a_hermite_polynomial_is_read():
    assert hx.parse("He(3, z1)*2") == hx.parse("He3(z1)*2") and hx.parse("He(3, z1)").expand() == z1**3 - 3*z1


@pytest.mark.parametrize("text, told", [
    ("|z1|", "write abs(z1)"), ("z2*|z1|", "write abs(z1)"), ("|z1|*|z2|", "write abs(z1)"), ("1{z1*z2>0}", "write Heaviside(z)"),
    ("indicator(z>0)", "write Heaviside(z)"), ("He(z,3)", "He(3, z)"), ("(lambda: 1)()", "a formula is written"),
])
def test_habits_of_paper_are_told_what_to_type(text, told):
    with pytest.raises(BadInput) as refused:
        hx.parse(text)
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_an_or_is_no_bar():
    assert hx.parse("Piecewise((1, (z > 1) | (z < -1)), (0, True))").has(z)


def test_the_derivative_of_a_named_function_is_a_function():
    s = Symbol("s", positive=True)
    f = hx.tanh
    assert not hx.check(hx.E(s*z*f(kappa + s*z), z), hx.E(hx.Derivative(f)(kappa + s*z), z))
    assert hx.check(hx.E(s*z*f(kappa + s*z), z), s**2*hx.E(hx.Derivative(f)(kappa + s*z), z))
    with pytest.raises(BadInput, match=r"a function such as hx\.tanh"):
        hx.Derivative(3j)


def test_few_choices_are_listed():
    with pytest.raises(BadInput, match="there are informed, uninformed"):
        hx.theories.multi_index("z1*z2", branch="foo")
    with pytest.raises(BadInput, match="start is uninformed or informed"):
        hx.theories.multi_index("z1*z2").solve(alpha=3, start=[[1, 0], [0, 1]])
