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
from hermitex.kernels.parameter_conditions import LAW
from hermitex.symbolic.gaussian import Expectation
from hermitex.systems.export_template import FILE, FLOW_FILE, PLACES
from hermitex.systems.export_verification import verify_text
from hermitex.systems.exported_functions import shortened, signs_of
from hermitex.systems.trajectory import TIME

_DRIVER = ("solving", "averaging", "integrating", "command")  # modules of systems.standalone, in the order of the file
_KINDS = {"explicit": "explicit", "linear": "linear", "nonlinear": "nonlinear", "root": "nonlinear"}  # of a block, in a file
_WIDTH = 116  # characters of a line, so that it fits on a page of code

Numbers = Mapping[str, Any]
Point = tuple[dict[str, Any], dict[str, float]]  # parameters, solution


def render(system: Any, points: Sequence[Point], *, start: Numbers | None = None, how: Numbers, checked: str = "") -> str:
    """The text of the file, read again and compared with what was meant (`verify_text`)."""
    from hermitex import __version__

    program, parameters, flow = _program(system), parameters_of(system), system.is_flow
    imports, helpers, functions, signs = _split_module(program, flow=flow)
    named = {n.strip().rpartition(" as ")[2] for line in imports if "scipy.special" in line
             for n in line.partition(" import ")[2].split(",")}
    special = sorted(named & _names_in("\n\n".join([*helpers, *functions])))
    imports = ["import numpy as np", *([f"from scipy.special import {', '.join(special)}"] if special else [])]
    template = FLOW_FILE if flow else FILE
    equations = f"EQUATIONS = Equations(\n    globals(),\n{_code(program, signs, flow=flow)})\n"
    kinds = {_KINDS[b.kind] for b in program.blocks}
    has = {"axes": bool(program.axes), "arrays": program.arrays is not None, "flow": flow, "signs": bool(signs),
           "laws": any(f.startswith("def lawful") for f in functions), "late": any(map(_has_laws, functions)),
           "nonlinear": "nonlinear" in kinds, "linear": "linear" in kinds, "counting": any(a.counting for a in program.axes),
           "fields": any(a.fields > 1 for a in program.axes), "marks": any(map(_has_marks, functions))}
    needed = {*_names_in(equations), *re.findall(r"\w+(?=\()", template.text), *(["extended"] if special else []),
              *(["average", "spread", "follow"] if any(not a.summed for a in program.axes) else [])}
    below, driver = driver_text(needed, has)
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
def _statements(has: frozenset[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The import lines of the driver, and the text of each of its definitions, without what is marked for files of another kind."""
    imports, texts = [], {}
    for module in _DRIVER:
        spec = find_spec(f"hermitex.systems.standalone.{module}")
        get = getattr(spec and spec.loader, "get_source", None)  # of a file, or of a package in a zip
        source = get(spec.name) if spec is not None and get else None
        if source is None:
            raise HermitexError(f"export: the source of the driver ({module}) is not installed, and a file is made from it")
        lines = dict(enumerate(source.split("\n"), start=1))
        for node in (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.stmt)):
            mark = re.search(r"  # if (\w+)", lines.get(node.lineno, ""))
            for k in range(node.lineno, (node.end_lineno or 0) + 1) if mark and mark[1] not in has else ():
                lines.pop(k, None)
        lines = {k: re.sub(r"  # if \w+(: )?", lambda m: "  # " if m[1] else "", line) for k, line in lines.items()}
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += [ast.unparse(node)] if "hermitex" not in ast.unparse(node) else []
            elif not isinstance(node, ast.Expr):
                target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
                name = getattr(node, "name", "") or getattr(target, "id", "")
                texts[name] = "\n".join(lines[k] for k in range(node.lineno, node.end_lineno + 1) if k in lines)
    return tuple(imports), texts


def driver_text(needed: Iterable[str], has: Mapping[str, bool]) -> tuple[list[str], str]:
    """(import lines, text) of the definitions of the driver that are needed, directly or by another.

    A statement of the driver that ends with a comment "if WORD" is only in files that have that: {word: whether}.

    >>> driver_text({"nothing"}, {})[1].splitlines()[0]
    'def nothing(*given):'
    """
    imports, texts = _statements(frozenset(word for word, found in has.items() if found))
    words = {name: _names_in(text) for name, text in texts.items()}
    taken, left = set[str](), set(needed) & set(texts)
    while left:
        taken |= left
        left = set().union(*(words[n] for n in left)) & set(texts) - taken
    first = [t for n, t in texts.items() if n in taken and not t.startswith(("def ", "class "))]
    text = "\n\n\n".join(["\n".join(first), *(t for n, t in texts.items() if n in taken and t not in first)])
    used = set(re.findall(r"\w+", text)) | {"sys"}
    lines = [line for line in imports if set(re.findall(r"\w+", line.rpartition("import ")[2])) & {*used, "np"}]
    return lines, re.sub(r"  # (type: ignore|noqa)[^\n]*|\n(?=\n\n    def )", "", text).strip("\n")


def _has_marks(text: str) -> bool:
    """Whether break points or narrow places of an average shape its nodes."""
    return any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "spread" and {"()"} != {*map(ast.unparse, n.args[1:3])}
               for n in ast.walk(ast.parse(text)))


def _has_laws(text: str) -> bool:
    """Do the observables hold a law's condition on the unknowns?"""
    return text.startswith("def observables") and any(isinstance(n, ast.Constant) and str(n.value).startswith(LAW)
                                                      for n in ast.walk(ast.parse(text)))


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
    """The names in `solve`, and the options of the command line."""
    tree = ast.parse(own)
    solve = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "solve")
    used = {n.id for n in ast.walk(solve) if isinstance(n, ast.Name)} | {n.arg for n in ast.walk(solve) if isinstance(n, ast.arg)}
    options = {str(n.value)[2:] for n in ast.walk(tree) if isinstance(n, ast.Constant) and str(n.value).startswith("--")}
    return frozenset(used | options - {"lam"} | {"help"})


def _split_module(program: Any, *, flow: bool) -> tuple[list[str], list[str], list[str], dict[str, int]]:
    """Import lines, the helpers that are used at any remove, the functions of a generated module that a file needs, and signs."""
    tree, lines = ast.parse(program.source), program.source.split("\n")
    texts: dict[str, str] = {}
    for node in tree.body:
        names = [getattr(node, "name", ""), *(getattr(t, "id", "") for t in getattr(node, "targets", ()))]
        texts |= {n: "\n".join(lines[node.lineno - 1:node.end_lineno]) for n in names if n}
    imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    blocks = {f"block_{k}": _members(b) for k, b in enumerate(program.blocks, start=1)}
    wanted = {"tables", "lawful", "observables", *(["right_hand_sides"] if flow else blocks)}  # the blocks are the map, too
    functions = shortened({n: t for n, t in texts.items() if n in wanted}, blocks)
    used, left = set[str](), list(functions.values())
    while left:
        found = _names_in(left.pop()) & set(texts) - used
        used |= found
        left += [texts[n] for n in found]
    own = used - {"average", "spread"}  # which are those of the driver
    return imports, [texts[n] for n in texts if n in own], list(functions.values()), signs_of(texts.get("lawful", ""))


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
    text += "".join(f" Note: {note}." for note in program.notes)
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _tuple(names: Iterable[Any]) -> str:
    items = [literal(n) if isinstance(n, str) else repr(n) for n in names]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _code(program: Any, signs: Mapping[str, int], *, flow: bool) -> str:
    """The fields of `Equations`."""
    def block(b: Any) -> str:
        kind, members = _KINDS[b.kind], _members(b)
        fields = [f'"{kind}"', _tuple(b.torn if kind == "nonlinear" else b.unknowns), *([_tuple(members)] if members else [])]
        return f"        Block({', '.join(fields)}),\n"

    ends = dict.fromkeys(program.positive, (0.0, np.inf)) | dict(program.domain)
    axes = "".join(f"({literal(a.identifier)}, {literal(_kind(program, a))}), " for a in program.axes)
    fields = [f"    {_tuple(program.parameters)},\n    {_tuple(program.unknowns)},\n",
              f"    (\n{''.join(map(block, program.blocks))}    ),\n" if program.blocks and not flow else "",
              f"    implicit={_tuple(sorted(program.implicit))},\n" if program.implicit else "",
              f"    signs={{{', '.join(f'{literal(n)}: {v}' for n, v in signs.items())}}},\n" if signs else "",
              f"    axes=({axes.rstrip()}),\n" if axes else "",
              f"    ends={_domain(ends)},\n" if ends else "",
              f"    start={{{_values(program.start)}}},\n" if program.start else ""]
    if program.arrays is not None:
        rows = ((literal(e.letter), literal(e.array), _tuple(e.places), _tuple(e.indices), str(e.first), str(e.terms))
                for e in program.arrays.entries)
        entries = "".join(f"        ({', '.join(row)}),\n" for row in rows)
        fields += [f"    arrays=(\n{entries}    ),\n"]
    return "".join(fields)


def _members(block: Any) -> tuple[str, ...]:
    """The unknowns that a block eliminates."""
    return block.members if _KINDS[block.kind] == "nonlinear" else ()


def _kind(program: Any, axis: Any) -> str:
    """The kind of an axis's nodes: those of a sum, counted terms, equally spaced ones, or panels."""
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
    """A list of items, folded at its blanks (a zero byte means a blank where it must not be)."""
    if not text:
        return text
    folded = textwrap.fill(text, _WIDTH - indent - 4, break_long_words=False, break_on_hyphens=False,
                           subsequent_indent=" "*indent)
    return folded.replace("\x00", " ") + (" " if text.endswith(" ") else "")


def _number(v: Any) -> str:
    if isinstance(v, list):
        return f"[{', '.join(map(_number, v))}]".replace(" ", "\x00")
    return repr(v) if np.isfinite(v) else f"float({str(v)!r})"
