"""What does not fit into the time that is left is not begun."""

from time import process_time

import pytest

from hermitex.solvers.solve_limits import OutOfTime, limited, over, ran_out, timed


def busy(seconds=0.01):
    end = process_time() + seconds
    while process_time() < end:
        pass


def test_what_takes_longer_than_what_is_left_is_not_begun():
    with limited(60):
        assert timed("f", lambda: 1.0, lambda: busy() or "done") == "done"
        assert timed("f", lambda: 10.0, lambda: "larger") == "larger" and not over()
        timed("f", lambda: 10.0, lambda: busy())
        with pytest.raises(OutOfTime):
            timed("f", lambda: 1e6, lambda: pytest.fail("it was begun"))
        assert over() and ran_out() == "the budget of 60 CPU seconds ran out"
        with pytest.raises(OutOfTime):  # and nothing is, from there on
            timed("g", lambda: 1.0, lambda: pytest.fail("it was begun"))
    assert not over() and timed("f", lambda: 1e6, lambda: "no limit") == "no limit"


def test_a_limit_within_a_limit_ends_alone():
    with limited(60):
        with limited(0), pytest.raises(OutOfTime):
            timed("f", lambda: 1.0, lambda: pytest.fail("it was begun"))
        assert not over() and timed("f", lambda: 1.0, lambda: 1) == 1
