"""What does not fit into the time that is left is not begun."""

from time import process_time

import pytest

from hermitex.solvers.solve_limits import OutOfTime, is_time_up, limit_time, ran_out, run_if_time_allows


def busy(seconds=0.01):
    end = process_time() + seconds
    while process_time() < end:
        pass


def test_what_takes_longer_than_what_is_left_is_not_begun():
    with limit_time(60):
        assert run_if_time_allows("f", lambda: 1.0, lambda: busy() or "done") == "done"
        assert run_if_time_allows("f", lambda: 10.0, lambda: "larger") == "larger" and not is_time_up()
        run_if_time_allows("f", lambda: 10.0, lambda: busy())
        with pytest.raises(OutOfTime):
            run_if_time_allows("f", lambda: 1e6, lambda: pytest.fail("it was begun"))
        assert is_time_up() and ran_out() == "the budget of 60 CPU seconds ran out"
        with pytest.raises(OutOfTime):  # and nothing is, from there on
            run_if_time_allows("g", lambda: 1.0, lambda: pytest.fail("it was begun"))
    assert not is_time_up() and run_if_time_allows("f", lambda: 1e6, lambda: "no limit") == "no limit"


def test_a_limit_within_a_limit_ends_alone():
    with limit_time(60):
        with limit_time(0), pytest.raises(OutOfTime):
            run_if_time_allows("f", lambda: 1.0, lambda: pytest.fail("it was begun"))
        assert not is_time_up() and run_if_time_allows("f", lambda: 1.0, lambda: 1) == 1
