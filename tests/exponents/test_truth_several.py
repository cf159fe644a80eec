"""Every published value for several variables, through hx.exponents and through the JSON of the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from sympy import simplify

import hermitex as hx
from hermitex.face import cli

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "truth_several_variables.json").read_text())["targets"]

# Quick: one row of each kind; the rest with the slow tests.
QUICK = {"m05", "m07", "m13", "m17", "m20", "m24", "m29", "m32", "t02", "t06", "t07", "t10", "q03"}
ROWS = [pytest.param(row, id=row["id"], marks=() if row["id"] in QUICK else pytest.mark.slow) for row in TABLE]

# The source says what a rate is in its own words.
KERNEL = "no finite power of d (non-polynomial); n=d^kappa learns only the degree<=kappa part"
AMP = {"O(d), any alpha>0": "d", "alpha_c*d": "d", "superlinear: no n=O(d)": "none"}


def in_our_words(rate):
    """The source's words for a rate as the command line writes them."""
    if rate is None:
        return None
    word = rate.replace("*log(d)", " log d").removesuffix(" (first directions only)")
    return {"d^1": "d", "d^0": "1", "d^(2)": "d^2"}.get(word, word)


def projector(directions):
    """The orthogonal projector on the rows: directions are compared as subspaces."""
    rows = np.atleast_2d(np.array(directions, dtype=float))
    return np.linalg.pinv(rows) @ rows


def same_staircase(found, stated):
    """The same orders, and the same span of all directions up to each stage and in each."""
    assert [s["order"] for s in found] == [s["order"] for s in stated]
    for mine, theirs in zip(found, stated, strict=True):
        assert np.allclose(projector(mine["directions"]), projector(theirs["directions"]))


def agrees(answer, row):
    """Exponents, staircases, class and rates."""
    for key in ("square_integrable", "information_exponent", "leap_exponent", "leap_coordinate", "generative_exponent",
                "variables"):
        assert answer[key] == row[key], key
    same_staircase(answer["staircase"], row["staircase"])
    same_staircase(answer["generative_staircase"], row["generative_staircase"])
    assert answer["weak_recovery"]["class"] == row["class"]
    stated = row["sample_complexity"]
    for key, theirs in (("one_pass_sgd", "online_sgd"), ("csq", "csq_lower_bound"), ("one_giant_step", "one_giant_step"),
                        ("low_degree", "sq_low_degree")):
        assert answer["complexity"][key] == in_our_words(stated[theirs]), key
    assert answer["complexity"]["amp"] == AMP[stated["amp"]]
    assert answer["complexity"]["kernel"] == ("none" if stated["kernel_rf"] == KERNEL else in_our_words(stated["kernel_rf"]))
    assert answer["complexity"]["batch_reuse"] == {1: "d", 2: "d log d"}.get(row["generative_exponent"], "open")


def agrees_in_value(answer, row):
    """alpha_c of the last stage and of every stage that is stated, to 1e-9; the closed form where there is one."""
    weak = answer["weak_recovery"]
    if row["alpha_c"] == "oo":
        assert weak["alpha_c"] is None and weak["alpha_c_exact"] is None
        return
    with mp.workdps(30):
        assert abs(weak["alpha_c"] - mpf(row["alpha_c"])) <= mpf(10)**-9*max(mpf(row["alpha_c"]), 1)
        for mine, stated in zip(weak["stages"], row["alpha_sequence"] or (), strict=bool(row["alpha_sequence"])):
            assert abs(mine["alpha_c"] - mpf(stated)) <= mpf(10)**-9
    if row["alpha_c_exact"] is not None:
        stated = row["alpha_c_exact"].replace("Rational(1,4)", "1/4")
        exact = hx.parse(weak["alpha_c_exact"]) - hx.parse(stated)
        assert simplify(exact) == 0 or abs(exact.evalf(30)) < 1e-25
    assert [s["directions"] for s in weak["stages"]] == [s["directions"] for s in answer["generative_staircase"]]


def certified(answer, row):
    """A proof stands for the mean and for the label; nothing is left undetermined; the first coefficient is right."""
    mean = [c for c in answer["certificates"] if c["quantity"][0] in "cC"]
    label = [c for c in answer["certificates"] if c["quantity"][0] not in "cC"]
    assert bool(mean) == (row["information_exponent"] is not None) and label
    assert all(c["status"] in ("zero", "nonzero") and c["how"] for c in answer["certificates"])
    first = row["first_coefficient"]
    if first is None or not mean:
        return
    same = [c for c in mean if c["order"] == first["multi_index"]]
    for c in same:
        value = float(first["unnormalised"])
        if c["value"] is not None:
            assert abs(float(hx.parse(c["value"])) - value) < 1e-12*abs(value)
        elif c["enclosure"] is not None:
            assert c["enclosure"][0] - 1e-13 <= value <= c["enclosure"][1] + 1e-13


@pytest.mark.parametrize("row", ROWS)
def test_library(row):
    found = hx.exponents(row["target"], row["channel"], variables=row["variables"])
    answer = found.to_dict()
    agrees(answer, row)
    agrees_in_value(answer, row)
    certified(answer, row)


@pytest.mark.parametrize("channel", [pytest.param(c, marks=pytest.mark.slow if c == "deterministic" else ())
                                     for c in sorted({row["channel"] for row in TABLE})])
def test_command_line(channel, capsys):
    rows = [row for row in TABLE if row["channel"] == channel and row["id"] != "m24"]
    rows = rows[::3] if len(rows) > 12 else rows  # the library answers all of them
    assert cli.main(["exponents", *(r["target"] for r in rows), "--channel", channel, "--json"]) == 0
    out, err = capsys.readouterr()
    answers = json.loads(out)
    answers = answers if isinstance(answers, list) else [answers]
    assert err == "" and len(answers) == len(rows)
    for answer, row in zip(answers, rows, strict=True):
        agrees(answer, row)
        agrees_in_value(answer, row)
        certified(answer, row)


def test_a_variable_that_is_declared_and_not_used(capsys):
    row = next(r for r in TABLE if r["id"] == "m24")
    assert cli.main(["exponents", row["target"], "--variables", ",".join(row["variables"]), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    agrees(answer, row)
    agrees_in_value(answer, row)
    assert any("does not depend on z2" in n for n in answer["notes"])


# -- the same checks refuse what is wrong ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def committee():
    return hx.exponents("sign(z1) + sign(z2)").to_dict()


@pytest.mark.parametrize("key, wrong", [("leap_exponent", 1), ("leap_coordinate", 2), ("generative_exponent", 1),
                                        ("staircase", [{"order": 1, "directions": [[1, 1]]},
                                                       {"order": 2, "directions": [[1, 0]]}])])
def test_a_wrong_leap_is_seen(committee, key, wrong):
    row = next(r for r in TABLE if r["id"] == "m20")
    agrees(committee, row)
    with pytest.raises(AssertionError):
        agrees({**committee, key: wrong}, row)
