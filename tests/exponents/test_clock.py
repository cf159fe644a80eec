"""One clock: a budget decides how much is said, never what; turns go on where they were; nothing cut short is kept."""

import os
import subprocess
import sys
import time

import pytest

import hermitex as hx
from hermitex.errors import BudgetExceeded
from hermitex.exponents.clock import AnswerPart, take_turns
from hermitex.symbolic.budget import Store, checkpoint, patience
from hermitex.symbolic.deadline import attempt, deadline

BUDGETS = (0.1, 1, 6)  # seconds
TARGETS = ["(z1**2+z2**2+z3**2)**3*exp(-(z1**2+z2**2+z3**2))", "sign(z1*z2*z3) + He4(z1)", "Max(z1-1/2,z2)-sign(z1)",
           "tanh(z1*z2) + z3*sign(z1)", "floor(4*z**2*exp(-z**2))", "cos(z1) - cos(z2)*z1"]


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        checkpoint("being busy")


def said(found):
    """What is decided of an answer."""
    return {"information": found.information_exponent, "leap": found.leap_exponent, "coordinate": found.leap_coordinate,
            "generative": found.generative_exponent, "class": found.threshold.kind,
            "stages": tuple(s["order"] for s in found.staircase) or None}


@pytest.mark.slow
@pytest.mark.parametrize("text", TARGETS)
def test_a_budget_decides_how_much_is_said_never_what(text):
    answers = []
    for seconds in BUDGETS:
        try:
            answers.append(said(hx.exponents(text, budget=seconds)))
        except BudgetExceeded:
            continue
    last = answers[-1]
    for answer in answers[:-1]:
        for key, value in answer.items():
            if key == "stages":  # of a staircase that was cut short the first ones stand
                assert value is None or last[key][:len(value)] == value
            else:
                assert value is None or value == last[key], (text, key)


@pytest.mark.slow
def test_the_answer_is_that_of_every_hash_seed():
    script = (f"import hermitex as hx\nfor text in {TARGETS[1:3]}:\n    f = hx.exponents(text, budget=200)\n"
              "    print(f, f.leap_coordinate, f.generative_staircase)")
    out = {subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout for seed in (1, 6)}
    assert len(out) == 1 and next(iter(out)).count("Exponents(") == 2


def test_a_part_goes_on_where_it_was():
    done = []

    def work():
        while len(done) < 3:
            busy(0.1)
            done.append(len(done))
        return tuple(done)

    part, other = AnswerPart("steps", work, None), AnswerPart("other", lambda: "at once", None)
    part.turn(attempt(0.15))
    assert not part.done and len(done) == 1
    take_turns(part, other)
    assert part.value == (0, 1, 2) and other.value == "at once"


def test_a_part_that_fails_or_never_ends_takes_no_other_with_it():
    def fails():
        raise RuntimeError("Failed\nat once")

    def endless():
        while True:
            pass

    last = AnswerPart("last", lambda: 7, None)
    waits = AnswerPart("waits", lambda: 8, None, after=AnswerPart("never asked", endless, None))
    long = AnswerPart("long", endless, 0, so_far=lambda why: why)
    broken = AnswerPart("broken", fails, None)
    with deadline(20):
        long.turn(attempt(0.2))
        take_turns(broken, last, waits)
    assert last.value == 7 and waits.value is None
    assert broken.notes == ("broken: not reached, its computation failed (RuntimeError: Failed at once)",)
    long.closed(20)
    assert "the budget of 20 CPU seconds ran out" in long.value


def test_what_gave_a_way_up_is_tried_again_with_more_patience():
    store, tried = Store(), []

    def value():
        tried.append(1)
        try:
            with attempt(0.05):
                busy(0.1)
                return "dear"
        except BudgetExceeded:
            return "cheap"

    assert store.of("key", value) == store.of("key", value) == "cheap" and len(tried) == 1
    with patience(4.0):
        assert store.of("key", value) == "dear"
    assert store.of("key", value) == "dear" and len(tried) == 2


def test_nothing_is_kept_that_ended_with_the_time_around_it():
    store = Store()

    def weaker():
        try:
            busy(5)
        except BudgetExceeded:
            return "weaker"  # swallowed, as a rule that fails is
        return "whole"

    with attempt(0.05):
        assert store.of("key", weaker) == "weaker"
    assert "key" not in store


def test_processor_time_does_not_pass_while_others_work():
    reached = []
    with attempt(0.3):
        time.sleep(0.5)  # the machine does something else
        checkpoint("after a pause")
        reached.append("after the pause")
        with pytest.raises(BudgetExceeded):
            busy(2)
        reached.append("once its own time had passed")
    assert len(reached) == 2
