"""A fact about a tensor of E[Y|z] is proved once: the information exponent and the generative leap see it, too."""

import pytest
from sympy import Symbol, exp, pi, sqrt

from hermitex import Channel
from hermitex.exponents.channels import channel
from hermitex.exponents.clock import take_turns
from hermitex.exponents.generative_leap import GenerativeSearch
from hermitex.exponents.leap import LeapSearch
from hermitex.exponents.report import exponents
from hermitex.symbolic.parsing import parse
from hermitex.symbols import z1, z2


def both(text: str, law: str | None = None):
    """(what the leap found, the generative staircase that was told of it)."""
    asked = channel(law)
    g = parse(text)
    variables = tuple(sorted(g.free_symbols, key=str))
    search = LeapSearch(asked.mean(g), variables)
    take_turns(*search.parts)
    return search.found(), GenerativeSearch(g, asked, variables, search.facts)()


def test_a_coefficient_alone_gives_the_information_exponent():
    """c_(1,0) != 0 since the label rises with z1; which direction C_1 charges is an integral that is not known."""
    g = parse("relu(relu(z1) - relu(z2))")
    search = LeapSearch(g, (z1, z2))
    take_turns(*search.parts)
    found = search.found()
    assert (found.first, found.order) == (1, None)
    assert any(c.quantity == "c_(1,0)" and c.status == "nonzero" for c in found.staircase.certificates)


@pytest.mark.parametrize("text", ["Max(z1, z2, z3)", "sigmoid(z1) + sigmoid(z2) + sigmoid(z3)"])
def test_the_label_map_y_charges_what_the_mean_does(text):
    leap, generative = both(text)
    assert [s["order"] for s in leap.staircase.stages] == [s["order"] for s in generative.stages] == [1, 2]
    assert any("label map T(y) = y" in c.how for c in generative.certificates)


def test_with_two_labels_the_leaps_are_equal():
    leap, generative = both("sigmoid(z1)*sigmoid(z2)", "bernoulli")
    assert leap.order == generative.leap == 2
    assert [s["directions"] for s in generative.stages] == [s["directions"] for s in leap.staircase.stages]


def test_a_zero_of_two_labels_has_its_reason():
    """P(|z| in the middle interval) does not see He_2: a exp(-a^2/2) takes one value at both ends."""
    found = exponents("sign((abs(z) - sqrt(log(4)/3))*(abs(z) - 2*sqrt(log(4)/3)))")
    (proof,) = [c for c in found.certificates if c.quantity == "lambda_2"]
    assert (found.generative_exponent, proof.status) == (4, "zero")
    assert "two labels" in proof.how and "exact integrals" in proof.how


def test_a_zero_of_the_mean_is_no_zero_of_a_label_with_more_values():
    """E[z^3 He_1] is not zero, but that of He3 is: its label map y^3 charges z at order 1."""
    leap, generative = both("z1**3 - 3*z1 + z2**2")
    assert [s["order"] for s in leap.staircase.stages] == [2, 3]
    assert [s["order"] for s in generative.stages] == [1, 2]


def test_facts_are_carried_over_other_coordinates():
    """The label of a product of forms is written over the forms: (z1 + z2)/sqrt(2) and (z1 - z2)/sqrt(2)."""
    leap, generative = both("Phi((z1 + z2)*(z1 - z2))", "bernoulli")
    assert leap.order == generative.leap == 2
    assert [s["directions"] for s in generative.stages] == [s["directions"] for s in leap.staircase.stages]


def test_facts_of_a_law_without_moments_are_not_shared():
    """E[|Y| He_k] may not exist for a law that is written out; the exponents are those without the facts."""
    y = Symbol("y", real=True)
    law = Channel(exp(-(y - z1**2)**2/2)/sqrt(2*pi), y)
    found = exponents(z1**2, law)
    assert (found.information_exponent, found.generative_exponent) == (2, 2)
