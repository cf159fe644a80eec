"""hermitex doctor: versions, optional parts, and a self-test of one result of each layer."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from hermitex.face import cli, guard, output

CORE = ("sympy", "mpmath", "numpy", "scipy", "python-flint")
# library -> (its module, the extra that installs it, what it is for)
OPTIONAL = {
    "matplotlib": ("matplotlib", "plot", "figures"),
    "pandas": ("pandas", "data", "tables as data frames"),
    "distributed": ("distributed", "dask", "sweeps on a cluster"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none of its own."""


def run(args: argparse.Namespace) -> int:
    """Print the report; status 1 if the self-test fails."""
    versions = {"python": platform.python_version(), "hermitex": _version("hermitex"),
                **{name: _version(name) for name in CORE}}
    optional = {name: _version(name) if find_spec(module) else None for name, (module, _, _) in OPTIONAL.items()}
    results = {}
    for name, test in SELF_TEST.items():
        try:
            with guard.deadline(args.budget):
                results[name] = test()
        except Exception as error:
            cli.print_err(f"{name}: {type(error).__name__}: {error}")
            results[name] = False
    passed = all(results.values())
    if args.json:
        print(output.dumps({"versions": versions, "optional": optional, "self_test": results, "passed": passed}))
    else:
        for name, installed in versions.items():
            print(f"{name:<14}{installed}")
        for name, found in optional.items():
            _, extra, purpose = OPTIONAL[name]
            state = found or f"absent: pip install 'hermitex[{extra}]'"
            print(f"{name:<14}{state}  ({purpose})")
        for name, right in results.items():
            print(f"{'passed' if right else 'FAILED':<14}{name}")
    return cli.ANSWERED if passed else cli.FAILED


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _exact() -> bool:
    from sympy import pi, sqrt

    from hermitex.symbolic.gaussian import E
    from hermitex.symbolic.integrals import closed_form
    from hermitex.symbolic.parsing import parse

    return bool(closed_form(E(parse("Max(z, 0)"))) == 1/sqrt(2*pi))


def _digits() -> bool:
    from hermitex.symbolic.arithmetic import mp
    from hermitex.symbolic.parsing import parse
    from hermitex.symbolic.precise import evaluate

    # E[tanh] = 0 by parity says nothing; Stein's lemma relates two different integrals.
    left, right = evaluate(parse("E(z*tanh(z))"), digits=30), evaluate(parse("E(1 - tanh(z)**2)"), digits=30)
    return bool(abs(left - right) < mp.mpf(10)**-28)


def _exponents() -> bool:
    from hermitex.exponents.report import exponents

    answer = exponents("z**3 - 3*z").to_dict()
    return (answer["information_exponent"], answer["generative_exponent"]) == (3, 1)


def _conditional() -> bool:
    from sympy import Rational

    from hermitex.theories.conditional_coefficients import mu

    return bool(mu("relu", 1)(0, r=Rational(1), c=Rational(1)) == Rational(1, 2))


def _enclosure() -> bool:
    from hermitex.symbolic.parsing import parse
    from hermitex.symbolic.precise import enclose

    found = enclose(parse("E(z*tanh(z))"), digits=15)
    return bool(0 < found.low <= found.high and found.high - found.low < found.low/1000)


SELF_TEST: dict[str, Callable[[], bool]] = {
    "exact: E[max(z, 0)] = 1/sqrt(2 pi)": _exact,
    "digits: E[z tanh z] = E[tanh'(z)] to 28 digits": _digits,
    "enclosure: E[z tanh z] > 0": _enclosure,
    "conditional: mu_1(0) of relu is 1/2": _conditional,
    "exponents: He3 has information exponent 3, generative exponent 1": _exponents,
}
