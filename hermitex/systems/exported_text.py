"""A system and its reference points -> the text of a standalone .py.

The generated functions of the session, the text of its quadrature and solver (`excerpt`) and the formulas in words go into
the places of a page (`template`); names come from the identifier test, prose as literals, numbers by `repr`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Symbol

from hermitex.errors import UnknownName
from hermitex.kernels.generated_text import INTEGRATED, Names, comment_text, docstring_text, literal
from hermitex.systems.export_template import FILE, FLOW_FILE, FORMULAS, PLACES
from hermitex.systems.export_verification import verify_text
from hermitex.systems.source_bundle import bundle_sources
from hermitex.systems.trajectory import TIME

_STANDALONE, _ADAPTIVE, _LINEAR = "hermitex.systems.standalone", "hermitex.kernels.adaptive", "hermitex.solvers.linear"
_RENAME = {(_LINEAR, "solve"): "solve_linear", (_LINEAR, "step"): "solve_fast",
           ("hermitex.systems.compiled_system", "BlockCode"): "Block"}
_STANDARD = ("import argparse", "import json", "import os", "import sys")
_PAGE_NAMES = frozenset({"AXES", "CODE", "DOMAIN", "REFERENCE", "START", "main", "run", "selftest", "solve", "values"})
_WIDTH = 116  # characters of a line, so that it fits on a page of code

Numbers = Mapping[str, Any]
Point = tuple[dict[str, Any], dict[str, float]]  # parameters, solution


def render(system: Any, points: Sequence[Point], *, start: Numbers | None = None, how: Numbers, checked: str = "") -> str:
    """The text of the file, read again and compared with what was meant (`verify_text`)."""
    from hermitex import __version__

    program, parameters = system.compile(), parameters_of(system)
    imports, helpers, functions = _split_module(program.source)
    axes, other = program.axes, program.later.program() if program.later is not None else None
    every = (program, *([other] if other is not None else []))
    if other is not None:
        more, below, integrated = _split_module(_rename_functions(other.source))
        imports, helpers, functions = [*imports, *more], list(dict.fromkeys([*helpers, *below])), [*functions, *integrated]
    flow = system.is_flow
    template, runs = (FLOW_FILE, ("flow_all", "rows_of")) if flow else (FILE, ("solve_all",))
    averaged = any(p.axes for p in every)
    rules_of = (*(("Axis",) if averaged else ()), *(("Exact",) if not all(p.axes for p in every) else ()))
    own = [(_STANDALONE, n) for n in (*rules_of, "Code", "NotSolved", *runs)]
    own += [("hermitex.kernels.array_sums", n) for n in ("Entry", "Arrays")] if program.arrays is not None else []
    if flow:
        own += [("hermitex.solvers.sweep_grid", "check_size"), ("hermitex.systems.compiled_system", "BlockCode")]
    groups = [[(_ADAPTIVE, "Quadratures")] if averaged else [], own]
    taken = _PAGE_NAMES | set(re.findall(r"^def (\w+)", "\n".join([*helpers, *functions]), re.M))
    more, (quadrature, solving) = bundle_sources(*groups, rename=_RENAME, taken=taken)
    imports = _merge_imports([*imports, *more, *_STANDARD])
    rules = _rules(program, "AXES")
    own_page = {
        **dict.fromkeys(PLACES, ""), "start": "{}", "domain": "{}",
        "imports": "\n".join(_merge_imports([*more, *_STANDARD])), "tolerance": repr(how["tolerance"]),
        "method": literal(how.get("method", "newton")), "damping": repr(how.get("damping", 1.0)),
        "quadrature": quadrature, "solving": solving, "rules": rules, "version": __version__,
    }
    own_text = template.render(own_page)
    arguments = _arguments(parameters, own_text)
    said = {
        "title": " ".join(system.name.split()) or ("Flow" if flow else "Self-consistent equations"), "formulas": _formulas(system),
        "parameters": _documented(parameters, arguments, system.arrays), "returned": _returned(program, flow=flow),
        "needs": "NumPy and SciPy" if flow or any("scipy" in line for line in imports) else "NumPy", "version": __version__,
    }
    page = {
        **own_page, **{name: docstring_text(text) for name, text in said.items()}, "checked": comment_text(checked) or "no",
        "imports": "\n".join(imports), "signature": _folded("".join(f"{a}, " for a in arguments.values()), 10),
        "given": _folded(", ".join(f"{_name(n)}:\x00{a}" for n, a in arguments.items()), 15),
        "helpers": "\n\n\n".join(helpers), "functions": "\n\n\n".join(functions),
        "axes": "AXES = (" + " ".join(map(_axis, axes)) + ")\n" if axes else "",
        "code": _code(program) + _second_formulas(other), "start": f"{{{_values(start or {})}}}", "domain": _domain(system.domain),
        "reference": _points(points, arguments),
    }
    docs = template.docstrings({**page, **said})
    return verify_text(template.render(page), own_text, docs=docs, arguments=arguments)


def _arguments(parameters: Sequence[Symbol], own: str) -> dict[str, str]:
    """{parameter: keyword of `solve` and option of the command line}, which shadow nothing of either."""
    names = Names(_taken_names(own), first=[p.name for p in parameters], generated=False)
    return {p.name: names(p) for p in parameters}


@lru_cache(maxsize=16)
def _taken_names(own: str) -> frozenset[str]:
    """The names that stand in `solve`, and the options of the command line."""
    tree = ast.parse(own)
    solve = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "solve")
    used = {n.id for n in ast.walk(solve) if isinstance(n, ast.Name)} | {n.arg for n in ast.walk(solve) if isinstance(n, ast.arg)}
    options = {str(n.value)[2:] for n in ast.walk(tree) if isinstance(n, ast.Constant) and str(n.value).startswith("--")}
    return frozenset(used | options - {"lam"} | {"help"})


def _split_module(source: str) -> tuple[list[str], list[str], list[str]]:
    """Import lines, the helpers that are used at any remove, and the functions of a generated module."""
    tree, lines = ast.parse(source), source.split("\n")
    texts: dict[str, str] = {}
    for node in tree.body:
        names = [getattr(node, "name", ""), *(getattr(t, "id", "") for t in getattr(node, "targets", ()))]
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        texts |= {n: "\n".join(lines[first - 1:node.end_lineno]) for n in names if n}
    imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    results = [n for n in texts if n.removesuffix(INTEGRATED) in FORMULAS or n.startswith("block_")]
    used, left = set(results), list(results)
    while left:
        found = {n.id for n in ast.walk(ast.parse(texts[left.pop()])) if isinstance(n, ast.Name)} & set(texts) - used
        used |= found
        left += found
    return imports, [texts[n] for n in texts if n in used - set(results)], [texts[n] for n in results]


def _merge_imports(lines: Sequence[str]) -> list[str]:
    """Import lines, one for each module."""
    plain = sorted({line for line in lines if line.startswith("import ") and "numpy" not in line})
    names: dict[str, set[str]] = {}
    for line in lines:
        match = re.match(r"from (\S+) import (.+)", line)
        if match and match[1] != "__future__":
            names.setdefault(match[1], set()).update(n.strip() for n in match[2].split(","))
    whole = {m: f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(names.items())}
    own = [whole.pop(m) for m in list(whole) if not m.startswith("scipy")]
    return [*plain, *own, "", "import numpy as np", *whole.values()]


def _formulas(system: Any) -> str:
    from hermitex.symbolic.parsing import to_text

    def side(v: Any) -> str:
        return f"{to_text(v.lhs)} = {to_text(v.rhs)}" if hasattr(v, "lhs") else to_text(v)

    def line(name: str, v: Any) -> str:
        text = side(v) + f"     (for {name})" if hasattr(v, "lhs") else f"{name} = {side(v)}"
        return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="        ", break_long_words=False,
                             break_on_hyphens=False)

    flow = system.is_flow
    parts = ["\n".join(line(f"d{u.name}/dt" if flow else u.name, v) for u, v in system.equations.items())]
    for title, formulas in (("where", system.where), ("and, of the solution,", system.observables)):
        if formulas:
            parts += [title, "\n".join(line(k.name, v) for k, v in formulas.items())]
    parts.append("E(f, x, ...) is the mean of f over independent standard normals x, ...")
    if not flow:
        parts.append("The equations fall into blocks, solved in this order:\n\n" + "\n".join(
            f"    {k}. {b}" for k, b in enumerate(system.blocks, start=1)))
    if system.source:
        parts.append(_source(system.source))
    return "\n\n".join(parts)


def _source(key: str) -> str:
    from hermitex.show.cite import bibtex

    try:
        return "Source:\n\n" + textwrap.indent(bibtex([key]).strip(), "    ")
    except UnknownName:
        return f"Source: {key}"


def parameters_of(system: Any) -> tuple[Symbol, ...]:
    """The parameters in the order of the program's names, arrays last: the file's command line pairs the two by their places."""
    place = {name: i for i, name in enumerate(system.compile().names)}
    return tuple(sorted(system.parameters or (), key=lambda p: place.get(p.name, len(place))))


def _documented(parameters: Sequence[Symbol], arguments: Mapping[str, str], arrays: Mapping[Symbol, int]) -> str:
    inside = {a.name: depth for a, depth in arrays.items()}
    width = max([len(a) for a in arguments.values()] + [9])

    def line(p: Symbol) -> str:
        kind = next((f", {k}" for k in ("positive", "nonnegative", "negative") if getattr(p, f"is_{k}")), "")
        if p.name in inside:
            depth = f"{inside[p.name]} dimension{'s'*(inside[p.name] > 1)}"
            return f"    {arguments[p.name]:<{width}} : array of {depth}, summed over{kind}"
        return f"    {arguments[p.name]:<{width}} : number or array{kind}"

    return "\n".join(map(line, parameters))


def _returned(program: Any, *, flow: bool = False) -> str:
    if flow:
        names = ", ".join(n for n in (TIME, *program.unknowns, *program.observables) if n != TIME)
        return textwrap.fill(f"dict: t, {names}, and error (by which two integrations differ, relative), quadrature_error, "
                             "converged. Parameters broadcast; the times are the last axis.", _WIDTH, initial_indent="    ",
                             subsequent_indent="    ")
    text = f"dict: the unknowns {', '.join(program.unknowns)}"
    text += f"; {', '.join(program.observables)}" if program.observables else ""
    text += ("; residual (the largest |x - rhs|/|x|), stability (the spectral radius of the map x -> rhs(x); iteration leaves a "
             "solution where it exceeds 1; nan where an equation is implicit), quadrature_error, converged. Arrays have the "
             "common shape of the parameters, which broadcast; numbers give numbers.")
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _tuple(names: Iterable[Any]) -> str:
    items = [literal(n) if isinstance(n, str) else repr(n) for n in names]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _axis(a: Any) -> str:
    return f"Axis({literal(a.identifier)}, {a.depth}{_kind(a)}),"


def _kind(a: Any) -> str:
    return ", True" if a.summed else ", False, True" if a.counting else f", False, False, {a.fields}" if a.fields > 1 else ""


def _code(program: Any) -> str:
    def line(b: Any) -> str:
        fields = [_tuple(b.unknowns), f'"{b.kind}"']
        fields += [f"{n}={_tuple(getattr(b, n))}" for n in ("torn", "members", "positive", "explicit") if getattr(b, n)]
        whole = f"        Block({', '.join(fields)}),\n"
        return whole if len(whole) <= _WIDTH else whole.replace(", torn=", ",\n              torn=")

    blocks = "".join(map(line, program.blocks))
    notes = f"    notes=(\n{''.join(f'        {literal(n)},' + chr(10) for n in program.notes)}    ),\n" if program.notes else ""
    if program.arrays is not None:
        entries = "".join(f"        Entry({literal(e.letter)}, {literal(e.array)}, {_tuple(e.places)}, {_tuple(e.indices)}, "
                          f"{e.first}),\n" for e in program.arrays.entries)
        notes += f"    arrays=Arrays((\n{entries}    )),\n"
    if program.positive:
        notes += f"    positive={_tuple(program.positive)},\n"
    if program.domain:
        notes += f"    domain={_domain(program.domain)},\n"
    if program.lawful:
        notes += "    lawful=True,\n"
    if program.start:
        notes += f"    start={{{_values(program.start)}}},\n"
    return (f"    parameters={_tuple(program.parameters)},\n    unknowns={_tuple(program.unknowns)},\n"
            f"    observables={_tuple(program.observables)},\n"
            f"    implicit={_tuple(sorted(program.implicit))},\n    blocks=(\n{blocks}    ),\n{notes}")


def _rules(program: Any, axes: str) -> str:
    grid = f", frozenset({sorted(program.grid)})" if program.grid else ""
    return f"lambda: Quadratures({axes}, {program.kinked}{grid})" if program.axes else "Exact"


def _second_formulas(other: Any) -> str:
    """The second set of formulas, for points where the terms of closed forms cancel."""
    if other is None:
        return ""
    axes = f"({' '.join(map(_axis, other.axes))})"
    fields = f"    functions=globals(),\n{_code(other)}    quadratures={_rules(other, axes)},\n    behind={literal(INTEGRATED)},\n"
    return f"    later=lambda: Code(\n{textwrap.indent(fields, '    ')}    ),\n"


def _rename_functions(source: str) -> str:
    """The functions of a module under names of their own."""
    text = re.sub(r"(?m)^def (\w+)\(s, quad\)", rf"def \1{INTEGRATED}(s, quad)", source)
    first_number = 1000  # functions of sums and minimisers of the second set of formulas are numbered from there
    return re.sub(r"\b(prox|fields|sum)_(\d+)\b(?=\(|, )", lambda m: f"{m[1]}_{int(m[2]) + first_number}", text)


def _domain(domain: Mapping[str, tuple[float, float]]) -> str:
    return "{" + ", ".join(f"{literal(u)}: ({_number(a)}, {_number(b)})" for u, (a, b) in domain.items()) + "}"


def _points(points: Sequence[Point], arguments: Mapping[str, str]) -> str:
    return "".join(f"    ({{{_values({arguments.get(n, n): v for n, v in given.items()})}}},\n     {{{_values(values)}}}),\n"
                   for given, values in points)


def _values(values: Mapping[str, float]) -> str:
    return _folded(", ".join(f"{_name(n)}:\x00{_number(v)}" for n, v in values.items()), 6)


def _name(name: str) -> str:
    """A name as a literal that is not folded at its blanks."""
    return literal(name).replace(" ", "\x00")


def _folded(text: str, indent: int) -> str:
    """A list of items, folded at its blanks (a zero byte stands for a blank where it must not be)."""
    if not text:
        return text
    folded = textwrap.fill(text, _WIDTH - indent - 4, break_long_words=False, break_on_hyphens=False,
                           subsequent_indent=" "*indent)
    return folded.replace("\x00", " ") + (" " if text.endswith(" ") else "")


def _number(v: Any) -> str:
    if isinstance(v, list):
        return f"[{', '.join(map(_number, v))}]".replace(" ", "\x00")
    return repr(v) if np.isfinite(v) else f"float({str(v)!r})"
