"""A budget ends in time whatever runs inside it, in threads too, and once only."""

import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from itertools import chain, repeat

import pytest
from sympy import Float

import hermitex as hx
from hermitex.errors import BadInput, BudgetExceeded


def forever(seconds=20.0):
    """Work that asks no budget and lets no Exception through."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(Exception):
            sum(range(1000))


def bounded(seconds=0.1):
    """How long a runaway took within a budget."""
    start = time.monotonic()
    with pytest.raises(BudgetExceeded, match="does not check it"), hx.budget(seconds):
        forever()
    return time.monotonic() - start


def test_an_alarm_where_no_exception_can_pass_is_not_printed(monkeypatch):
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)

    class Garbage:
        def __del__(self):
            forever(0.6)

    with pytest.raises(BudgetExceeded), hx.budget(0.05):
        Garbage()
        forever()
    assert not printed


def test_a_library_that_ends_in_an_error_when_the_time_is_over():
    """The first step of Python behind it is the exit of the budget: the alarm broke that off, and rang for ever."""
    with pytest.raises(TypeError), hx.budget(0):
        max(chain(repeat(0, 10**7), [None]))
    time.sleep(0.15)
    assert not [t for t in threading.enumerate() if t.name == "hermitex deadline"]


@pytest.mark.parametrize("seconds", [1e12, float("inf")])
def test_a_budget_longer_than_a_clock_can_wait(monkeypatch, seconds):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    assert hx.exponents("sign(z)*z**2 + tanh(z)", budget=seconds).information_exponent == 1
    assert not failed


def test_a_runaway_ends_in_any_thread():
    took = []
    threads = [threading.Thread(target=lambda: took.append(bounded())) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(took) == 3 and max(took) < 8


def test_threads_have_budgets_of_their_own():
    done = []

    def patient():
        with hx.budget(60):
            forever(1.0)
            done.append(True)

    other = threading.Thread(target=patient)
    other.start()
    bounded()
    other.join()
    assert done == [True]


def test_what_is_left_in_time_is_left_alone():
    for _ in range(200):
        with hx.budget(0.001), suppress(BudgetExceeded):
            pass
    with ExitStack() as stack:
        stack.enter_context(hx.budget(0.05))
    start, rounds = time.monotonic(), 0
    while time.monotonic() < start + 0.8:  # whatever rang afterwards would end it
        rounds += sum(range(3)) == 3
    assert rounds > 1000 and time.monotonic() - start >= 0.8
    with pytest.raises(BudgetExceeded) as caught, hx.budget(0.1):
        forever()
    assert caught.value.seconds == 0.1  # the next budget is its own


def test_the_alarm_of_an_outer_budget_is_told_by_the_outer_one():
    start = time.monotonic()
    with pytest.raises(BudgetExceeded) as caught, hx.budget(0.2), hx.budget(30):
        forever()
    assert caught.value.seconds == 0.2 and time.monotonic() - start < 8


@pytest.mark.parametrize("body", ["(z1+z2+z3)**60*(z1-z2)**40", "(z1+z2+z3+z4)**31*sign(z1)", "exp(z1*z2/3)*(z1+z2)**40"])
@pytest.mark.parametrize("how", ["doit", "evalf"])
def test_an_expectation_ends_with_its_budget(body, how):
    node = hx.E(body)
    start = time.process_time()
    with suppress(BudgetExceeded), hx.budget(1):
        value = node.doit() if how == "doit" else node.evalf(20)
        assert value != 0 and isinstance(value.evalf(), Float)
    assert time.process_time() - start < 1.2*1 + 1


@pytest.mark.parametrize("how", ["doit", "evalf", "n"])
def test_a_budget_is_taken_where_it_is_typed(how):
    node = hx.E("abs(z1-z2)*max(" + ",".join(f"{k}*z1+z2/{k}+{k*k}/7" for k in range(1, 6)) + ")*tanh(z1*z2)**2*sign(z1-z2-1)")
    start = time.process_time()
    with suppress(BudgetExceeded):
        getattr(node, how)(budget=0.2)
    assert time.process_time() - start < 1.2*0.2 + 1
    with pytest.raises(BadInput, match="a number of seconds"):
        getattr(node, how)(budget=-1)


_BURN = "import time\nend = time.process_time() + 60\nwhile time.process_time() < end: pass"


@pytest.mark.slow
def test_a_budget_is_not_used_up_by_other_processes():
    """With as many busy processes as the machine has cores, and more, a budget still gives its CPU seconds."""
    others = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(4)]
    try:
        with subprocess.Popen([sys.executable, "-c", """
import time
import hermitex as hx
from hermitex.errors import BudgetExceeded
begun = time.process_time()
try:
    with hx.budget(0.4):
        while True:
            pass
except BudgetExceeded as over:
    print(time.process_time() - begun, over.used)
"""], stdout=subprocess.PIPE, text=True) as run:
            used, told = map(float, run.communicate(timeout=120)[0].split())
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert 0.4 <= used < 1.5 and told == pytest.approx(used, abs=0.3)


def test_children_count_and_the_step_is_named():
    with pytest.raises(BudgetExceeded, match=r"the budget of 0\.3 CPU seconds ran out") as caught, hx.budget(0.3):
        subprocess.run([sys.executable, "-c", _BURN], check=False, timeout=30)
        forever()
    assert caught.value.used >= 0.3 and "a step that does not check it" in caught.value.doing
    with pytest.raises(BudgetExceeded, match=r"in test_children_count\w+, a step that does not check it"), hx.budget(0.1):
        while True:  # no function inside in which the alarm might come
            pass


def test_what_uses_no_processor_ends_too(monkeypatch):
    from hermitex.symbolic import deadline

    monkeypatch.setattr(deadline, "PAUSE", 0.2)
    start = time.monotonic()
    with pytest.raises(BudgetExceeded), hx.budget(0.01):
        while time.monotonic() < start + 20:
            time.sleep(0.02)
    assert time.monotonic() - start < 5
