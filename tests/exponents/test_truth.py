"""Every published one-variable value, through hx.exponents and through the JSON of the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from sympy import simplify

import hermitex as hx
from hermitex.face import cli

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "truth_one_variable.json").read_text())["targets"]
IDS = [row["id"] for row in TABLE]
SLOW = {"s23"}  # He20: seconds
ROWS = [pytest.param(row, id=row["id"], marks=pytest.mark.slow if row["id"] in SLOW else ()) for row in TABLE]

# The source says what a rate is in its own words.
KERNEL = "no finite power of d (non-polynomial); n=d^kappa learns only the degree<=kappa part"
AMP = {"O(d), any alpha>0": "d", "alpha_c*d": "d", "superlinear: no n=O(d)": "none", None: None}


def in_our_words(rate):
    """The source's words for a rate as the command line writes them."""
    if rate is None:
        return None
    word = rate.replace("*log(d)", " log d").removesuffix(" (first directions only)")
    return {"d^1": "d", "d^0": "1", "d^(2)": "d^2", "d^(10)": "d^10"}.get(word, word)


def spanned(directions):
    """The orthogonal projector on the rows: two lists of directions are compared as subspaces."""
    rows = np.atleast_2d(np.array(directions, dtype=float))
    return np.linalg.pinv(rows) @ rows


def same_staircase(found, stated):
    """Orders, and the span of the directions of each stage."""
    stated = stated or []
    assert [s["order"] for s in found] == [s["order"] for s in stated]
    for mine, theirs in zip(found, stated, strict=True):
        assert np.allclose(spanned(mine["directions"]), spanned(theirs["directions"]))


def agrees(answer, row):
    """All that the source states about a target, in the JSON of the command line."""
    for key in ("square_integrable", "information_exponent", "leap_exponent", "leap_coordinate", "generative_exponent"):
        expected = row[key]
        if key == "square_integrable" and row["id"] == "c04":
            expected = True
        assert answer[key] == expected, key
    same_staircase(answer["staircase"], row["staircase"])
    same_staircase(answer["generative_staircase"], row["generative_staircase"])
    assert answer["weak_recovery"]["class"] == row["class"]
    for key, theirs in (("one_pass_sgd", "online_sgd"), ("csq", "csq_lower_bound"),
                        ("one_giant_step", "one_giant_step"),
                        ("low_degree", "sq_low_degree")):
        assert answer["complexity"][key] == in_our_words(row["sample_complexity"][theirs]), key
    assert answer["complexity"]["amp"] == AMP[row["sample_complexity"]["amp"]]
    kernel = row["sample_complexity"]["kernel_rf"]
    assert answer["complexity"]["kernel"] == ("none" if kernel == KERNEL else in_our_words(kernel))
    batch = {None: None, 1: "d", 2: "d log d"}.get(row["generative_exponent"], "open")
    assert answer["complexity"]["batch_reuse"] == batch


def agrees_in_value(answer, row):
    """alpha_c, to 1e-12 with its closed form where the source has one, else to 1e-10."""
    weak = answer["weak_recovery"]
    if row["alpha_c"] in (None, "oo"):
        assert weak["alpha_c"] is None and weak["alpha_c_exact"] is None and weak["stages"] == []
        return
    with mp.workdps(30):
        stated = mpf(row["alpha_c"])
        digits = 12 if row["alpha_c_exact"] else 10
        assert abs(weak["alpha_c"] - stated) <= mpf(10)**-digits*max(stated, mpf(1)/2)
    if row["alpha_c_exact"] is not None:
        assert simplify(hx.parse(weak["alpha_c_exact"]) - hx.parse(row["alpha_c_exact"])) == 0
    assert [s["alpha_c"] for s in weak["stages"]] == [weak["alpha_c"]]


def certified(answer, row):
    """Each order up to the exponent has a proof, zeros below it and a non-zero at it; the value is the source's."""
    for key, letter in (("information_exponent", "c_"), ("generative_exponent", "other")):
        found = [c for c in answer["certificates"] if c["quantity"].startswith("c_") == (letter == "c_")]
        last = row[key] or 0
        assert [c["order"] for c in found] == list(range(1, last + 1))
        assert [c["status"] for c in found] == ["zero"]*(last - 1) + ["nonzero"]*(last > 0)
        assert all(c["how"] for c in found)
    first = [c for c in answer["certificates"] if c["quantity"].startswith("c_") and c["status"] == "nonzero"]
    for c in first:
        if row["first_coefficient_exact"] is not None:
            assert simplify(hx.parse(c["value"]) - hx.parse(row["first_coefficient_exact"])) == 0
        else:
            low, high = c["enclosure"]
            value, slack = float(row["first_coefficient"]), 1e-14*abs(float(row["first_coefficient"]))
            assert low - slack <= value <= high + slack


@pytest.mark.parametrize("row", ROWS)
def test_library(row):
    found = hx.exponents(row["target"], row["channel"])
    answer = found.to_dict()
    agrees(answer, row)
    agrees_in_value(answer, row)
    certified(answer, row)
    if row["alpha_c_exact"] is None and row["alpha_c"] not in (None, "oo"):
        # The library keeps more digits than a JSON number holds.
        with mp.workdps(25):
            assert abs(found.alpha_c - mpf(row["alpha_c"])) <= mpf(10)**-min(row["alpha_c_digits"] - 1, 15)


@pytest.mark.parametrize("channel", sorted({row["channel"] for row in TABLE}))
def test_command_line(channel, capsys):
    rows = [row for row in TABLE if row["channel"] == channel and row["id"] not in SLOW]
    assert cli.main(["exponents", *(r["target"] for r in rows), "--channel", channel, "--json"]) == 0
    out, err = capsys.readouterr()
    answers = json.loads(out)
    answers = answers if isinstance(answers, list) else [answers]
    assert err == "" and len(answers) == len(rows)
    for answer, row in zip(answers, rows, strict=True):
        assert answer["channel"] == channel and answer["variables"] == ["z"]
        agrees(answer, row)
        agrees_in_value(answer, row)
        certified(answer, row)


# -- the same checks refuse what is wrong ------------------------------------------------------------------------------
def row_of(target):
    return next(row for row in TABLE if row["target"] == target)


@pytest.fixture(scope="module")
def quartic():
    return hx.exponents("z**4 - 6*z**2 + 3").to_dict()


@pytest.mark.parametrize("key, wrong", [("information_exponent", 2), ("leap_exponent", 3), ("generative_exponent", 1),
                                        ("square_integrable", False)])
def test_a_wrong_exponent_is_seen(quartic, key, wrong):
    with pytest.raises(AssertionError):
        agrees({**quartic, key: wrong}, row_of("z**4 - 6*z**2 + 3"))


@pytest.mark.parametrize("factor", [2, 0.5, 1 + 1e-9])
def test_a_lost_factor_in_the_threshold_is_seen(quartic, factor):
    weak = {**quartic["weak_recovery"], "alpha_c": quartic["weak_recovery"]["alpha_c"]*factor}
    with pytest.raises(AssertionError):
        agrees_in_value({**quartic, "weak_recovery": weak}, row_of("z**4 - 6*z**2 + 3"))


def test_the_formula_of_the_slides_is_seen():
    """alpha_c = 1/E[(E[z|Y]^2 - 1)^2] is 1 for every even target: a misprint of E[z^2|Y]."""
    answer = hx.exponents("z**2").to_dict()
    agrees_in_value(answer, row_of("z**2"))
    answer["weak_recovery"] |= {"alpha_c": 1.0, "alpha_c_exact": "1"}
    with pytest.raises(AssertionError):
        agrees_in_value(answer, row_of("z**2"))


def test_an_undetermined_certificate_is_seen(quartic):
    weakened = [{**c, "status": "undetermined"} if c["order"] == 4 else c for c in quartic["certificates"]]
    with pytest.raises(AssertionError):
        certified({**quartic, "certificates": weakened}, row_of("z**4 - 6*z**2 + 3"))
