"""The answer tells which mechanism gave it, and which of its stages are lower bounds."""

import pytest

import hermitex as hx
from hermitex.exponents.laws.mechanisms import MECHANISMS

BY = [
    ("exp(z1) + exp(z2)", "deterministic", "two terms that tell their difference"),
    ("relu(z1) + relu(z2) + relu(z3)", "deterministic", "committee given its mean"),
    ("z1 + abs(z2)", "deterministic", "one variable: closed form"),
    ("z1**2 + z2**2", "deterministic", "sphere"),
    ("sign(z1*z2)", "deterministic", "finitely many labels"),
    ("z1 + relu(z1)*z2*z3", "deterministic", "known factor; law of the label: independent blocks"),
    ("sign(z1) + sign(z2)", "deterministic", "average over what is known"),
    ("z1*z2", "deterministic", "law of the label: independent blocks"),
    ("z1*z2 + z1**2", "multiplicative", None),
    ("cos(z)", "deterministic", "one variable: level sets"),
    ("z**2", "gaussian:1", "law of the label: independent blocks"),
    ("z", "deterministic", "E[z|Y] is not zero"),
]


@pytest.mark.parametrize(("text", "law", "method"), BY)
def test_the_mechanism_is_named(text, law, method):
    found = hx.exponents(text, law, budget=60)
    told = found.to_dict()["weak_recovery"]
    assert told["method"] and (method is None or told["method"] == method)
    assert told["method"] in found.explain()
    assert all(s["method"] for s in told["stages"])


def test_every_mechanism_says_what_it_gives_and_costs():
    assert len({m.name for m in MECHANISMS}) == len(MECHANISMS) and all(m.gives and m.cost for m in MECHANISMS)


@pytest.mark.parametrize(("text", "bounds"), [("sign(z1) + sign(z2)", [False, True]), ("z1 + abs(z2)", [False, True]),
                                              ("z1*z2", [False]), ("z1 + z1*z2", [False])])
def test_a_later_stage_is_a_lower_bound(text, bounds):
    found = hx.exponents(text, budget=60)
    assert [s["bound"] for s in found.to_dict()["weak_recovery"]["stages"]][:len(bounds)] == bounds
    assert (">=" in found.table_row()[5]) == any(bounds)
    assert ("a lower bound on the transition" in found.explain()) == any(bounds)


@pytest.mark.parametrize("text", ["sign(z1*z2)*exp(-z1**2)", "sign(z1)*sign(z2)*(2 + sign(z3))*exp(-z1**2)"])
def test_two_directions_may_be_told_below_one_half(text):
    """z itself has 1/(r + 1) in r directions: labels that tell several of them lie between that and 1/2."""
    found = hx.exponents(text, budget=60)
    assert found.alpha_c is not None and 1/3 < float(found.alpha_c) < 0.5
