"""One thread of BLAS for each process of the tests, and the same examples of Hypothesis at every run.

Two processes with two threads each wait for one another on two cores: small eigenvalue problems then take ten times
their CPU. `--hypothesis-profile=default` looks for new examples.
"""

import gc
import os
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported; the workers inherit it

gc.disable()  # until everything is collected: nothing is thrown away before, and the looking is a third of that time

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from hypothesis.internal.conjecture import junkdrawer  # noqa: E402

# The alarm of a budget is dropped where it rings in a callback of the collector, and hypothesis has one, which only counts.
junkdrawer._gc_initialized = True

# How long an example takes to be drawn depends on what else the machine does.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# -- cases that take long ----------------------------------------------------------------------------------------------
LISTS = {name: (Path(__file__).parent/f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in ("slow", "thorough")}


def pytest_collection_modifyitems(config, items):
    """Single cases of a test are marked by the lists in slow.txt and thorough.txt, as `pytest --durations` names them.

    What is `thorough` is slow, too, and one more case of what other slow ones test.
    """
    here = {item.nodeid for item in items}
    files = {name.partition("::")[0] for name in here}
    for mark, names in LISTS.items():
        listed = frozenset(names)
        for item in items:
            if item.nodeid in listed:
                item.add_marker(pytest.mark.slow)
                item.add_marker(getattr(pytest.mark, mark))
        gone = [name for name in names if name.partition("::")[0] in files and name not in here]
        partly = any("::" in arg for arg in config.args) or config.getoption("lf", False)
        if gone and not config.getoption("draws") and not partly:
            raise pytest.UsageError(f"tests/{mark}.txt names {gone[0]}, which is no case of that file")
        if sorted(listed) != names:
            raise pytest.UsageError(f"tests/{mark}.txt is not in order, or names a case twice")
    if config.getoption("draws"):
        kept = [item for item in items if "seed" in getattr(getattr(item, "callspec", None), "params", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_collection_finish(session):
    """What is imported and collected stays to the end: the collector need not walk it again and again, 5 % of the CPU."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


# -- other draws -------------------------------------------------------------------------------------------------------
def pytest_addoption(parser):
    parser.addoption("--draws", metavar="SEED:SIZE", help="the drawn tests alone, from SEED on, SIZE times as many")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    """`parametrize("seed", range(a, b))` draws other cases with --draws: those that follow (1 + SEED)*1000000 + a."""
    if not (asked := metafunc.config.getoption("draws")):
        return
    seed, _, size = asked.partition(":")
    marks = metafunc.definition.own_markers
    for k, mark in enumerate(marks):
        if mark.name == "parametrize" and mark.args[0] == "seed" and isinstance(mark.args[1], range):
            first, count = (1 + int(seed))*1_000_000 + mark.args[1].start, max(1, round(len(mark.args[1])*float(size or 1)))
            marks[k] = pytest.Mark(mark.name, ("seed", range(first, first + count), *mark.args[2:]), mark.kwargs, _ispytest=True)
