"""Domains, laws, sums, kinks that move, averages side by side, what cancels, flows: nothing wrong is called converged."""

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from judge import unlike, wrong
from test_generated import ALONE, HOW, solved, values
from wider import WIDER, flow, in_a_domain, seen, sums

from hermitex import Flow
from hermitex.errors import HermitexError
from hermitex.systems import export

QUICK, ALL, FILES = 2, 60, 5
CHEAP = (seen, in_a_domain, sums)
TIMES = (1e-3, 0.7, 5.0, 30.0)
by_kind = pytest.mark.parametrize("kind", WIDER, ids=lambda k: k.__name__)


@cache
def asked(kind, seed):
    """(draw, system, one solution a point); None for what was refused."""
    d = kind(np.random.default_rng([seed, 7]))
    try:
        system = d.system()
    except HermitexError:
        return d, None, [None]*len(d.points)
    return d, system, [solved(system, p, d.start) for p in d.points]


def mistakes(kind, seeds):
    """What is called converged and is no solution, or is seen otherwise than it is."""
    out = []
    for seed in seeds:
        d, _, found = asked(kind, seed)
        for point, f in zip(d.points, found, strict=True):
            if f is not None and f.converged and (why := wrong(d, point, values(d, f)) or unlike(d, point, f)):
                out.append(f"{seed}, {d.words} from {d.start}: {why}")
    return out


@pytest.mark.parametrize("kind", [k if k in CHEAP else pytest.param(k, marks=pytest.mark.slow) for k in WIDER],
                         ids=lambda k: k.__name__)
def test_no_quick_draw_is_wrong(kind):
    assert not mistakes(kind, range(QUICK))


@pytest.mark.slow
@by_kind
def test_no_draw_is_wrong_and_most_are_solved(kind):
    assert not mistakes(kind, range(ALL))
    done = [f is not None and bool(f.converged) for seed in range(ALL) for f in asked(kind, seed)[2]]
    assert sum(done) > 0.6*len(done)


@pytest.mark.slow
@by_kind
def test_a_file_is_its_session(kind, tmp_path):
    """The same numbers to 1e-10, observables too, and the same points without a solution."""
    wanted, here = {}, {}
    for seed in range(1000, 1000 + FILES):
        d, system, found = asked(kind, seed)
        if system is None or any(f is None for f in found):
            continue
        reference = [(p, {n: float(v) for n, v in f.value.items()}) for p, f in zip(d.points, found, strict=True)]
        (tmp_path/f"draw_{seed}.py").write_text(export.render(system, reference, start={**system.start, **d.start}, how=HOW))
        wanted[f"draw_{seed}"], here[f"draw_{seed}"] = d.points, (d, found)
    (tmp_path/"points.json").write_text(json.dumps(wanted))
    done = subprocess.run([sys.executable, "-I", "-c", ALONE, str(tmp_path/"points.json"), str(tmp_path)], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    differing = []
    for name, there in json.loads(done.stdout).items():
        d, found = here[name]
        for one, file in zip(found, there, strict=True):
            if bool(one.converged) != isinstance(file, dict):
                differing.append(f"{name}, {d.words}: session {bool(one.converged)} {one.value}, file {file}")
            elif one.converged:
                off = {n: abs(file[n] - v)/max(abs(v), 1e-6) for n, v in one.value.items()}
                differing += [f"{name}, {d.words}: {off}"] if not max(off.values()) < 1e-10 else []
    assert len(here) > FILES//2 and not differing


def astray(seed):
    """What a flow of known solutions gives that they have not, at a time; beyond their end it gives nothing."""
    rates, start, value, until = flow(np.random.default_rng([seed, 11]))
    for t in TIMES:
        found = Flow(rates, start=start).solve(t=t, raise_on_failure=False)
        if not found.converged:
            continue
        if until is not None and t >= until:
            yield f"{rates} from {start}: {found.value} at t = {t}, beyond {until}"
            continue
        for name, v in value(t).items():
            if not abs(float(found[name]) - v) < 1e-6*max(abs(v), 1e-3*max(map(abs, start.values()))):
                yield f"{rates} from {start}: {name} = {found[name]} at t = {t}, not {v}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_a_flow_is_where_its_solution_is(seed):
    assert not list(astray(seed))


@pytest.mark.slow
def test_the_judge_sees_an_error_in_the_fifth_digit():
    count = 0
    for kind in WIDER:
        for seed in range(QUICK):
            d, _, found = asked(kind, seed)
            for point, f in zip(d.points, found, strict=True):
                if f is not None and f.converged and all(abs(v) > 1e-3 for v in values(d, f)):
                    assert wrong(d, point, [v*(1 + 3e-5) for v in values(d, f)]), d.words
                    count += 1
    assert count > 8
