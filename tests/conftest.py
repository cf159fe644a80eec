"""One thread of BLAS for each process of the tests, and the same examples of Hypothesis at every run.

Two processes with two threads each wait for one another on two cores: small eigenvalue problems then take ten times
their CPU. `--hypothesis-profile=default` looks for new examples.
"""

import gc
import os
from collections import defaultdict
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

# -- which cases run when ----------------------------------------------------------------------------------------------
LISTS = {name: (Path(__file__).parent/f"{name}.txt").read_text(encoding="utf-8").splitlines()
         for name in ("slow", "thorough", "beyond")}
QUICK_CASES = 3  # of one test, in the README's command: some 3,500 cases in two minutes on two cores; CI runs the others
SLOW_CASES = 3  # further ones of one test, in CI; the others are thorough, and so is what takes over two seconds
OWN_CHOICE = "tests/golden/"  # the frozen answers say themselves which of them are quick


def listed(lines):
    """The names in a list, group by group: a line that begins with # says why those below it are there."""
    groups = [[]]
    for line in lines:
        if line.startswith("#"):
            groups.append([])
        else:
            groups[-1].append(line)
    return groups


def pytest_collection_modifyitems(config, items):
    """Marks the cases that slow.txt, thorough.txt and beyond.txt name, and what is one case too many for the quick run.

    A line names a test with all of its cases, or one case, as `pytest --durations` does. What is `thorough` is slow, too,
    and one more case of what other slow ones test. What is `beyond` holds an answer that nothing promises. A rule of the
    whole house, as that on imports, is no rule if it is asked of three files: `every_case` is quick.
    """
    here = {item.nodeid for item in items} | {item.nodeid.partition("[")[0] for item in items}
    files = {name.partition("::")[0] for name in here}
    partly = any("::" in arg for arg in config.args) or config.getoption("lf", False)
    for mark, lines in LISTS.items():
        groups = listed(lines)
        names = [name for group in groups for name in group]
        known = frozenset(names)
        for item in items:
            if item.nodeid in known or item.nodeid.partition("[")[0] in known:
                item.add_marker(getattr(pytest.mark, mark))
        gone = [name for name in names if name.partition("::")[0] in files and name not in here]
        if gone and not config.getoption("draws") and not partly:
            raise pytest.UsageError(f"tests/{mark}.txt names {gone[0]}, which is no case of that file")
        if any(sorted(group) != group for group in groups) or len(known) < len(names):
            raise pytest.UsageError(f"tests/{mark}.txt is not in order, or names a case twice")
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.slow)
    unmarked = [item for item in items if not any(item.get_closest_marker(mark) for mark in (*LISTS, "every_case"))
                and not item.nodeid.startswith(OWN_CHOICE)]
    further = list(beyond_some(unmarked, QUICK_CASES))
    for item in further:
        item.add_marker(pytest.mark.slow)
    for item in beyond_some(further, SLOW_CASES):
        item.add_marker(pytest.mark.thorough)
    if config.getoption("draws"):
        kept = [item for item in items if "seed" in getattr(getattr(item, "callspec", None), "params", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def beyond_some(items, most):
    """The cases of each test but for `most` of them, which are spread over all."""
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        step = max(1, (len(found) - 1)/(most - 1))
        taken = {round(k*step) for k in range(most)}
        yield from (item for place, item in enumerate(found) if place not in taken)


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
