"""left = right, as authors claim it in appendices: true ones, and ones with a slip."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy

import hermitex as hx

from .entries import Entry, Part

BUDGET = 60  # seconds of CPU: the default of the command line
RANK = ("undetermined", "agrees", "proved")  # verdicts on a true claim, from weak to strong


@cache
def names() -> dict[str, Any]:
    """What a claim may use: all of SymPy, the functions of hermitex, the letters and abbreviations of the source."""
    space: dict[str, Any] = {}
    exec("from sympy import *", space)  # claims are typed as a user types them
    z, z1, z2, z3 = (getattr(hx.symbols, name) for name in ("z", "z1", "z2", "z3"))
    kappa, r, c, rho = (getattr(hx.symbols, name) for name in ("kappa", "r", "c", "rho"))
    space |= {"hx": hx, "E": hx.E, "D": hx.Derivative, "He": hx.He, "z": z, "z1": z1, "z2": z2, "z3": z3,
              "kap": kappa, "r": r, "c": c, "rho": rho, "R": sympy.Rational}
    space |= {letter: sympy.Function(name) for letter, name in (("f", "f"), ("g", "g"), ("s", "sigma"), ("h", "h"))}
    space |= {name: sympy.Symbol(name, positive=True) for name in ("a", "b", "t", "u", "q", "V", "A")}
    space |= {"lam": sympy.Symbol("lamda", positive=True), "al": sympy.Symbol("alpha", positive=True),
              "Del": sympy.Symbol("Delta", positive=True), "k": sympy.Symbol("k", integer=True, nonnegative=True)}
    space |= {letter: sympy.Symbol(name, real=True) for letter, name in (("mu", "mu"), ("om", "omega"), ("x", "x"), ("B", "B"))}
    a, b = space["a"], space["b"]
    space |= {"cov": {(z1, z2): rho}, "covs": {(z1, z2): rho, (z1, z1): a, (z2, z2): b},
              "n": sympy.Symbol("n", integer=True, nonnegative=True)}
    size = sympy.Symbol("n", integer=True, positive=True)
    a0, b0 = sympy.symbols("a_0 b_0", positive=True)
    return space | {
        "nn": size, "qa": a0, "qb": b0,
        "H": lambda w: sympy.erfc(w/sympy.sqrt(2))/2,
        "BG": lambda A, B: rho*B/(1 + A)/(rho + (1 - rho)*sympy.sqrt(1 + A)*sympy.exp(-B**2/2/(1 + A))),
        "Zbg": lambda A, B: 1 - rho + rho/sympy.sqrt(1 + A)*sympy.exp(B**2/2/(1 + A)),
        "S": lambda: sympy.exp(z1) + sympy.exp(z2) + sympy.exp(z3),
        "M": lambda: a0*sympy.Identity(size) + b0*sympy.OneMatrix(size, size),
    }


def ask(entry: Entry) -> Any:
    """proved, agrees, fails or undetermined."""
    left, right = (eval(entry[side], names()) for side in ("left", "right"))  # data of this folder, no user's text
    return hx.check(left, right, budget=BUDGET).status


def compare(entry: Entry, answer: Any) -> str | None:
    return None if answer == entry["expected"] else f"{entry['name']}: {entry['expected']} was expected, {answer} came"


def judge(entry: Entry, answer: Any) -> str:
    """Better: a true claim is proved where it only agreed, or agrees where nothing was known."""
    known = entry["true"] and {answer, entry["expected"]} <= set(RANK)
    return "better" if known and RANK.index(answer) > RANK.index(entry["expected"]) else "worse"


def wrong(entry: Entry, answer: Any) -> bool:
    """A true claim is refuted, or a false one holds."""
    return answer == "fails" if entry["true"] else answer in ("agrees", "proved")


PART = Part("claims", "verdicts on claims of appendices", ask, compare, judge, wrong)
