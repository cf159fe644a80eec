"""hermitex doctor: versions, optional parts, and a self-test of one result of each layer."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import hermitex as hx
from hermitex.face import cli, guard

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
    lines = list(versions.items())
    for name, found in optional.items():
        _, extra, purpose = OPTIONAL[name]
        lines.append((name, (found or f"absent: pip install 'hermitex[{extra}]'") + f"  ({purpose})"))
    lines += [("passed" if right else "FAILED", name) for name, right in results.items()]
    return cli.answer(args, {"versions": versions, "optional": optional, "self_test": results, "passed": passed},
                      lambda: "\n".join(f"{name:<14}{said}" for name, said in lines), status=cli.ANSWERED if passed else cli.FAILED)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _exact() -> bool:
    return bool(hx.E("Max(z, 0)").doit() == hx.parse("1/sqrt(2*pi)"))


def _digits() -> bool:
    # E[tanh] = 0 by parity says nothing; Stein's lemma relates two different integrals.
    return bool(abs(hx.E("z*tanh(z)").evalf(30) - hx.E("1 - tanh(z)**2").evalf(30)) < 1e-28)


def _exponents() -> bool:
    answer = hx.exponents("z**3 - 3*z")
    return (answer.information_exponent, answer.generative_exponent) == (3, 1)


SELF_TEST: dict[str, Callable[[], bool]] = {
    "exact: E[max(z, 0)] = 1/sqrt(2 pi)": _exact,
    "digits: E[z tanh z] = E[tanh'(z)] to 28 digits": _digits,
    "proof: E[z tanh z] = E[tanh'(z)] by parts": lambda: hx.check("E(z*tanh(z))", "E(1 - tanh(z)**2)").status == "proved",
    "conditional: mu_1(0) of relu is 1/2": lambda: bool(abs(hx.mu("relu", 1)(0, r=1, c=1) - 0.5) < 1e-15),
    "exponents: He3 has information exponent 3, generative exponent 1": _exponents,
}
