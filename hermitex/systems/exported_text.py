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
from importlib.util import find_spec
from typing import Any

import numpy as np
from sympy import Symbol

from hermitex.errors import HermitexError, UnknownName
from hermitex.kernels.generated_text import Names, comment_text, docstring_text, literal
from hermitex.symbolic.gaussian import Expectation
from hermitex.systems.export_template import FILE, FLOW_FILE, PLACES
from hermitex.systems.export_verification import verify_text
from hermitex.systems.trajectory import TIME

_DRIVER = ("solving", "averaging", "integrating", "command")  # modules of systems.standalone, in the order of the file
_FORMULAS = ("tables", "right_hand_sides", "observables", "lawful")  # beside block_1, block_2, ...
_WIDTH = 116  # characters of a line, so that it fits on a page of code

Numbers = Mapping[str, Any]
Point = tuple[dict[str, Any], dict[str, float]]  # parameters, solution


def render(system: Any, points: Sequence[Point], *, start: Numbers | None = None, how: Numbers, checked: str = "") -> str:
    """The text of the file, read again and compared with what was meant (`verify_text`)."""
    from hermitex import __version__

    program, parameters, flow = _program(system), parameters_of(system), system.is_flow
    imports, helpers, functions = _split_module(program.source)
    # what returns nothing the driver does not miss, and rates need no blocks
    functions = [f for f in functions if not f.endswith("return {}") and not (flow and f.startswith("def block_"))]
    special = sorted({n.strip().rpartition(" as ")[2] for line in imports if "scipy.special" in line
                      for n in line.partition(" import ")[2].split(",")})
    template = FLOW_FILE if flow else FILE
    equations = f"EQUATIONS = Equations(\n    globals(),\n{_code(program, flow=flow)})\n"
    needed = {*_names_in(equations), *re.findall(r"\w+(?=\()", template.text), *(["extended"] if special else [])}
    below, driver = driver_text(needed | ({"average", "spread"} if "Averaged" in needed else set()))
    wrapped = f"\n\n\n{', '.join(special)}{','*(len(special) == 1)} = map(extended, ({', '.join(special)},))" if special else ""
    own_page = {
        **dict.fromkeys(PLACES, ""), "start": "{}", "imports": "\n".join(_merge_imports([*below, *imports])),
        "tolerance": repr(how["tolerance"]), "method": literal(how.get("method", "newton")),
        "damping": repr(how.get("damping", 1.0)), "driver": driver + wrapped, "version": __version__,
    }
    own_text = template.render(own_page)
    arguments = _arguments(parameters, own_text)
    said = {
        "title": " ".join(system.name.split()) or ("Flow" if flow else "Self-consistent equations"), "formulas": _formulas(system),
        "parameters": _documented(parameters, arguments, system.arrays), "returned": _returned(program, flow=flow),
        "needs": "NumPy and SciPy" if special else "NumPy", "version": __version__, "times": "--t 0:10:50 "*flow,
    }
    page = {
        **own_page, **{name: docstring_text(text) for name, text in said.items()}, "checked": comment_text(checked) or "no",
        "signature": _folded("".join(f"{a}, " for a in arguments.values()), 10),
        "given": _folded(", ".join(f"{_name(n)}:\x00{a}" for n, a in arguments.items()), 15),
        "functions": "\n\n\n".join([*helpers, *functions]), "equations": equations,
        "start": f"{{{_values(start or {})}}}", "reference": _points(points, arguments),
    }
    docs = template.docstrings({**page, **said})
    return verify_text(template.render(page), own_text, docs=docs, arguments=arguments)


@lru_cache(maxsize=32)
def _statements() -> tuple[tuple[str, ...], dict[str, str]]:
    """The import lines of the driver, and the text of each of its definitions."""
    imports, texts = [], {}
    for module in _DRIVER:
        spec = find_spec(f"hermitex.systems.standalone.{module}")
        get = getattr(spec and spec.loader, "get_source", None)  # of a file, or of a package in a zip
        source = get(spec.name) if spec is not None and get else None
        if source is None:
            raise HermitexError(f"export: the source of the driver ({module}) is not installed, and a file is made from it")
        lines = source.split("\n")
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += [ast.unparse(node)] if "hermitex" not in ast.unparse(node) else []
            elif not isinstance(node, ast.Expr):
                target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
                name = getattr(node, "name", "") or getattr(target, "id", "")
                texts[name] = "\n".join(lines[node.lineno - 1:node.end_lineno])
    return tuple(imports), texts


def driver_text(needed: Iterable[str]) -> tuple[list[str], str]:
    """(import lines, text) of the definitions of the driver that are needed, directly or by another.

    >>> driver_text({"nothing"})[1].splitlines()[0]
    'def nothing(s, quad):'
    """
    imports, texts = _statements()
    words = {name: _names_in(text) for name, text in texts.items()}
    taken, left = set[str](), set(needed) & set(texts)
    while left:
        taken |= left
        left = set().union(*(words[n] for n in left)) & set(texts) - taken
    text = "\n\n\n".join(t for n, t in texts.items() if n in taken)
    used = set(re.findall(r"\w+", text)) | {"sys"}
    lines = [line for line in imports if set(re.findall(r"\w+", line.rpartition("import ")[2])) & {*used, "np"}]
    return lines, re.sub(r"  # (type: ignore|noqa)[^\n]*", "", text)


def _names_in(text: str) -> set[str]:
    """The names that a text of Python reads."""
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def _program(system: Any) -> Any:
    """The compiled system; where terms of its closed forms may cancel, that by quadrature in their place."""
    program = system.compile()
    return program if program.later is None else program.later.program()


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
    results = [n for n in texts if n in _FORMULAS or n.startswith("block_")]
    used, left = set(results), list(results)
    while left:
        found = _names_in(texts[left.pop()]) & set(texts) - used
        used |= found
        left += found
    own = used - set(results) - {"average", "spread"}  # which are those of the driver
    return imports, [texts[n] for n in texts if n in own], [texts[n] for n in results]


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
    if any(e.has(Expectation) for e in system._all()):
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
        return textwrap.fill(f"Returns a dict: t, {names}, error (by which two integrations differ, relative), converged; "
                             "in the common shape of the parameters, the times along the last axis.", _WIDTH,
                             initial_indent="    ", subsequent_indent="    ")
    text = f"Returns a dict: the unknowns {', '.join(program.unknowns)}"
    text += f"; {', '.join(program.observables)}" if program.observables else ""
    text += ("; error (how far a step on finer nodes in extended precision moves them, relative), stability (the spectral radius "
             "of x -> rhs(x); iteration leaves a solution where it exceeds 1), converged; in the common shape of the parameters.")
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _tuple(names: Iterable[Any]) -> str:
    items = [literal(n) if isinstance(n, str) else repr(n) for n in names]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _code(program: Any, *, flow: bool) -> str:
    """The fields of `Equations`."""
    def block(b: Any) -> str:
        kind = "nonlinear" if b.kind == "root" else b.kind
        torn = b.torn if kind == "nonlinear" else b.unknowns
        fields = [f'"{kind}"', _tuple(torn), _tuple(u not in program.implicit for u in torn)]
        return f"        Block({', '.join(fields + ([_tuple(b.members)] if kind == 'nonlinear' and b.members else []))}),\n"

    ends = dict.fromkeys(program.positive, (0.0, np.inf)) | dict(program.domain)
    axes = "".join(f"({literal(a.identifier)}, {literal(_kind(program, a))}), " for a in program.axes)
    fields = [f"    {_tuple(program.parameters)},\n    {_tuple(program.unknowns)},\n",
              f"    (\n{''.join(map(block, program.blocks))}    ),\n" if program.blocks and not flow else "",
              "    roots=nonlinear,\n" if any(b.kind in ("nonlinear", "root") for b in program.blocks) else "",
              f"    axes=({axes.rstrip()}),\n    chunk=Averaged,\n" if axes else "",
              f"    ends={_domain(ends)},\n" if ends else "",
              f"    start={{{_values(program.start)}}},\n" if program.start else "",
              f"    notes=(\n{''.join(f'        {literal(n)},' + chr(10) for n in program.notes)}    ),\n" if program.notes else ""]
    if program.arrays is not None:
        rows = ((literal(e.letter), literal(e.array), _tuple(e.places), _tuple(e.indices), str(e.first), str(e.terms))
                for e in program.arrays.entries)
        entries = "".join(f"        ({', '.join(row)}),\n" for row in rows)
        fields += [f"    arrays=(\n{entries}    ),\n    lay_out=lay_out,\n"]
    return "".join(fields)


def _kind(program: Any, axis: Any) -> str:
    """What nodes an axis has: those of a sum, terms that are counted, equally spaced ones, or panels."""
    kinks = program.kinked.get(axis.identifier)
    return ("summed" if axis.summed else "counting" if axis.counting else "fields" if axis.fields > 1 else
            "plain" if kinks is None else "broken" if kinks else "marked")


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
