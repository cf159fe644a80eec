"""G = F(G) of an unknown declared complex, as equations of its real and imaginary part: G_re and G_im.

    {G: 1/(-w - I*eps - G/2)}   ->   {G_re: Re(..), G_im: Im(..)},   G = Symbol("G", complex=True)

All other letters are real. A solution gives the number back, solution["G"].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Basic, Dummy, Eq, Expr, I, S, Symbol, arg, conjugate, erfc, im, re

from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum

Parts = tuple[Expr, Expr]


def write_by_parts(equations: Mapping[Symbol, Any], where: Mapping[Symbol, Any], observables: Mapping[Symbol, Any],
                   ) -> tuple[dict[Symbol, Any], dict[Symbol, Any], dict[Symbol, Any]]:
    """Equations, where names and observables, with the complex ones split into their parts.

    Raises
    ------
    BadInput : a formula that is not split into its parts.

    Examples
    --------
    >>> from sympy.abc import w
    >>> G = Symbol("G", complex=True)
    >>> write_by_parts({G: 1/(I - G)}, {}, {})[0]
    {G_re: -G_re/(G_re**2 + (1 - G_im)**2), G_im: (G_im - 1)/(G_re**2 + (1 - G_im)**2)}
    """
    given = {u for u in equations if _is_complex(u)}
    if not given:
        return dict(equations), dict(where), dict(observables)
    split = {u: u_re + I*u_im for u in given for u_re, u_im in [_names(u)]}
    names: dict[Symbol, Any] = {}
    for name, formula in where.items():
        parts = _parts(formula, split, name)
        if parts[1] == 0:
            names[name] = parts[0]
            continue
        both = _names(name)
        split[name] = both[0] + I*both[1]
        names |= dict(zip(both, parts, strict=True))
    return _apart(equations, split, given), names, _apart(observables, split, set())


def complex_start(start: Mapping[Any, Any], names: set[str]) -> dict[Any, Any]:
    """A start with complex numbers, {"G": 1j}, as one of parts."""
    found: dict[Any, Any] = {}
    for key, value in start.items():
        both = [f"{key}_re", f"{key}_im"]
        if str(key) in names or not names.issuperset(both):
            found[key] = value
            continue
        try:
            number = complex(value)
        except (TypeError, ValueError):
            raise BadInput(f"start: {key} is complex, and its start is one number, {{'{key}': 1j}}") from None
        found |= {both[0]: number.real, both[1]: number.imag}
    return found


def _is_complex(u: Symbol) -> bool:
    return bool(u.is_complex) and u.is_extended_real is None


def _names(u: Symbol) -> tuple[Symbol, Symbol]:
    return Symbol(f"{u.name}_re", real=True), Symbol(f"{u.name}_im", real=True)


def _apart(formulas: Mapping[Symbol, Any], split: Mapping[Symbol, Expr], given: set[Symbol]) -> dict[Symbol, Any]:
    found: dict[Symbol, Any] = {}
    for name, formula in formulas.items():
        implicit = isinstance(formula, Eq)
        sides = formula.lhs - formula.rhs if implicit else formula
        if name not in given and not sides.has(*split, I):
            found[name] = formula
            continue
        both = _parts(sides, split, name)
        places = (name,) if name not in given and both[1] == 0 else _names(name)
        found |= {place: Eq(part, 0, evaluate=False) if implicit else part for place, part in zip(places, both, strict=False)}
    return found


def _parts(formula: Expr, split: Mapping[Symbol, Expr], name: Symbol) -> Parts:
    """(Re, Im) of a formula in real letters and the names that are split; averages and sums are split inside."""
    if not formula.has(*split, I):
        return formula, S.Zero
    real = {s: Dummy(s.name, real=True) for s in formula.free_symbols if s not in split and s.is_extended_real is None}
    nodes: dict[Basic, Basic] = {}

    def split_inside(node: Expr) -> Expr:
        # of a law's quantile -log(erfc(u)/2) SymPy does not know that it is real
        tails = {f: Dummy(positive=True) for f in node.args[0].atoms(erfc) if f.args[0].is_extended_real}
        inside = {**nodes, **{d: f for f, d in tails.items()}}
        both = [node.func(part.xreplace(inside), *node.args[1:]) for part in node.args[0].xreplace(tails).as_real_imag()]
        names = [Dummy("E", real=True) for _ in both]
        nodes.update(zip(names, both, strict=True))
        return names[0] + I*names[1]

    whole = formula.xreplace(real).xreplace(dict(split)).replace(lambda e: isinstance(e, Expectation | ArraySum), split_inside)
    found = [part.xreplace(nodes) for part in whole.as_real_imag()]
    if any(part.has(re, im, arg, conjugate) for part in found):
        raise BadInput(f"System: the equation of {name} is not split into its real and imaginary part")
    back: dict[Basic, Basic] = {d: s for s, d in real.items()}
    return found[0].xreplace(back), found[1].xreplace(back)


__all__ = ["complex_start", "write_by_parts"]
