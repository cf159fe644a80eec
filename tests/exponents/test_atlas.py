"""hx.atlas(): the kept rows are the answers of today, and can be looked up, shown and cited."""

import json
import re

import pytest

import hermitex as hx
from hermitex.errors import UnknownName
from hermitex.exponents.atlas import of_activation, of_target
from hermitex.show.cite import is_known_key

ATLAS = hx.atlas()
ROWS = {f"{row['target']}; {row['channel']}": row for row in ATLAS}


@pytest.fixture(autouse=True)
def thresholds_alone():
    """In place of that of this folder: the rows hold where later stages are reached, too."""


def test_each_row_has_its_exponents_certificate_and_papers():
    assert len(ROWS) == len(ATLAS) == 80 and len(ATLAS.activations) == 20
    for row in ATLAS:
        assert not row["open"] and row["certificate"] and row["generative_exponent"] is not None
        assert row["treated_in"] and all(map(is_known_key, row["treated_in"]))
        assert (row["class"] == "hard") == (row["alpha_c"] is None)
        assert row["channel"] in ("multiplicative", "random_sign") or row["leap_exponent"] >= row["generative_exponent"]


def test_a_target_is_found_by_any_spelling():
    assert ATLAS["z**3 - 3*z"] is ATLAS["He3(z)"] and ATLAS["sign(z2*z1)"]["class"] == "easy"
    assert ATLAS["He3(z); gaussian:1"]["channel"] == "gaussian:1" and ATLAS["He3(z)"]["channel"] == "deterministic"
    with pytest.raises(UnknownName, match="unknown target of the atlas"):
        ATLAS["z1*z9"]
    assert {row["family"] for row in ATLAS.family("committees")} == {"several directions: committees and sums"}
    with pytest.raises(UnknownName, match="unknown family"):
        ATLAS.family("kernels")


def test_it_shows_itself():
    assert len(str(ATLAS).splitlines()) == 81 and len(ATLAS.to_csv().splitlines()) == 81
    assert len(ATLAS.to_latex().splitlines()) == 83 and "benarous2021" in ATLAS.bibtex()
    assert ATLAS._repr_html_().count("<tr>") == 81 and json.dumps(ATLAS.to_dict())
    assert set(ATLAS.table()) >= {"target", "information_exponent", "alpha_c", "one_pass_sgd", "treated_in"}
    page = ATLAS.markdown()
    assert all(f"`{row['target']}`" in page for row in ATLAS) and "{cite:t}`abbe2023`" in page


@pytest.mark.parametrize("activation", ATLAS.activations, ids=lambda row: row["activation"])
def test_coefficients_are_those_of_today(activation):
    found = of_activation(activation["activation"])
    assert found == {**activation, **{n: {**v, "value": pytest.approx(v["value"], rel=1e-13, abs=1e-300)}
                                      for n, v in activation.items() if n != "activation"}}


def any_cut(certificate):
    """The certificate with label maps 1(y > c) written alike: each c proves the same, and seconds decide which is first."""
    return [re.sub(r"> -?[\d/]+\)", "> c)", line) for line in certificate]


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_the_answers_of_today(name):
    row = ROWS[name]
    found = of_target(row["target"], hx.exponents(row["target"], None if row["channel"] == "deterministic" else row["channel"]))
    threshold, known = found.pop("alpha_c"), row["alpha_c"]
    assert any_cut(found.pop("certificate")) == any_cut(row["certificate"])
    assert found == {key: row[key] for key in found}
    assert threshold == (None if known is None else pytest.approx(known, rel=1e-9))
