"""Every frozen answer is still the answer; what is not yet met is still open, else it is time to renew."""

import pytest
from frozen import comparison
from frozen.catalogue import PARTS
from frozen.entries import RUNS, Part, always, outcome, written
from frozen.renewal import renewed

MARKS = {"quick": (), "slow": (pytest.mark.slow,), "all": (pytest.mark.slow, pytest.mark.thorough)}


def cases():
    """One case an entry, but for those that nothing can answer yet."""
    for part in PARTS.values():
        for entry in part.entries():
            if entry["run"] in MARKS:
                yield pytest.param(part, entry, id=f"{part.name}-{entry['name']}"[:70], marks=MARKS[entry["run"]])


@pytest.mark.parametrize("part, entry", list(cases()))
def test_the_answer_is_the_frozen_one(part, entry):
    found = outcome(part, entry)
    if found.kind == "open":
        pytest.xfail(f"issue {entry['issue']}: {found.said}")
    assert found.kind == "same", f"{found.kind}: {found.said or 'met now'}; python tests/golden --renew {part.name}"


@pytest.mark.parametrize("name", PARTS)
def test_the_data_are_in_order(name):
    """Names are unique, and the file is written as `--renew` writes it; what is not met names its issue."""
    part = PARTS[name]
    entries = part.entries()
    assert entries and len({entry["name"] for entry in entries}) == len(entries)
    assert part.path.read_text(encoding="utf-8") == "[\n" + ",\n".join(map(written, entries)) + "\n]\n"
    for entry in entries:
        assert entry["run"] in RUNS and ("source" in entry or part.name in ("documentation", "notebooks", "pages", "commands"))
        assert entry.get("met", True) or entry["issue"] >= 38, entry["name"]


# -- the comparison refuses what is wrong ------------------------------------------------------------------------------
@pytest.mark.parametrize("expected, found", [
    ("q = 0.6076947444", "q = 0.6076947455"), ("alpha_c  1/2", "alpha_c  1/3"), ("x = 2", "x = 3"), ("0.5", "0.4"), ("d^2", "d^3"),
    ("-1.25", "1.25"), ("converged", "not converged"), ("2.57e-8689", "2.57e-8688"), ("0.216346895938785", "0.216346895928785")])
def test_another_line_is_another_answer(expected, found):
    assert comparison.text([expected], [found], 15)


@pytest.mark.parametrize("expected, found", [
    ("q = 0.6076947444", "q  =  0.6076947443"), ("0.216346895938785", "0.21634689593878502"), ("0.5 of 2", "0.50 of 2"),
    ("z1 + 2*z2", "z1 + 2*z2")])
def test_the_digits_that_are_claimed_are_compared(expected, found):
    assert comparison.text([expected], [found], 15) is None


def test_json_values_are_compared_by_value():
    expected = {"alpha": [0.5, 1.0], "q": 0.25, "error": 1e-12, "exact": "sqrt(2)/2", "noise": 1e-17}
    assert comparison.value(expected, {**expected, "q": 0.25 + 1e-13, "error": 3e-9, "noise": 0.0, "more": 1}) is None
    for changed in ({"q": 0.2500001}, {"alpha": [0.5]}, {"exact": "sqrt(3)/2"}, {"q": None}, {"q": "0.25"}, {"noise": 1e-9}):
        assert comparison.value(expected, {**expected, **changed})
    assert comparison.value(expected, {"q": 0.25})
    assert comparison.value({"converged": True}, {"converged": 1})


# -- renewing ----------------------------------------------------------------------------------------------------------
def asked(answer, wrong=lambda entry, answer: False, **entry):
    """A part with one entry, and its outcome where today's answer is `answer`."""
    part = Part("n", "numbers", lambda entry: answer, lambda entry, answer: None if answer == entry["expected"] else "another",
                lambda entry, answer: "better" if answer > entry["expected"] else "worse", wrong)
    return part, outcome(part, {"name": "n", "run": "quick", **entry})


def test_better_answers_are_written_and_what_is_met_loses_its_mark():
    part, found = asked(3, expected=2)
    assert found.kind == "better" and renewed(part, found, None, None)["expected"] == 3
    part, found = asked(2, always, expected=2, met=False, issue=39, today=0)
    assert found.kind == "better" and renewed(part, found, None, None) == {"name": "n", "run": "quick", "expected": 2}


def test_worse_answers_need_a_reason_and_wrong_ones_an_issue():
    part, found = asked(1, expected=2)
    assert found.kind == "worse" and renewed(part, found, None, None) is None and renewed(part, found, None, 40) is None
    assert renewed(part, found, "cheaper", None) == {"name": "n", "run": "quick", "expected": 1, "reason": "cheaper"}
    part, found = asked(1, always, expected=2)
    assert renewed(part, found, "cheaper", None) is None
    assert renewed(part, found, None, 40) == {"name": "n", "run": "quick", "expected": 2, "met": False, "issue": 40, "today": 1}


def test_verdicts_and_words_are_judged():
    pages, claims, notebooks = PARTS["pages"], PARTS["claims"], PARTS["notebooks"]
    page = {"name": "p", "expected": {"p": [["Stein", "agrees", 30]]}}
    kinds = {"better": ["Stein", "proved", None], "changed": ["Stein's lemma", "agrees", 30], "worse": ["Stein", "agrees", 20]}
    for kind, line in kinds.items():
        assert pages.compare(page, {"p": [line]}) and pages.judge(page, {"p": [line]}) == kind
    assert pages.judge(page, {"p": [["Stein", "undetermined", None]]}) == "worse"
    claim = {"name": "c", "true": True, "expected": "agrees"}
    assert [claims.judge(claim, answer) for answer in ("proved", "undetermined", "fails")] == ["better", "worse", "worse"]
    assert claims.wrong(claim, "fails") and not claims.wrong(claim, "undetermined")
    assert claims.wrong({**claim, "true": False}, "agrees")
    cells = {"name": "n", "expected": [["error 0.25, converged"]]}
    assert notebooks.judge(cells, [["risk 0.25, converged"]]) == "changed" and notebooks.judge(cells, [["error 0.26"]]) == "worse"


def test_an_error_is_a_worse_answer_and_an_unmet_one_stays_open():
    _, found = asked(1, expected="a text")
    assert found.kind == "worse" and found.answer == "TypeError"
    assert asked(1, expected=2, met=False, issue=40)[1].kind == "open"
