"""The functions of a session's program -> those of a file: only what its solver reads, and only the lines that this needs.

    V = 1/t0      ->      V_again = 1/t0
                          V = s.get("V", V_again)

A block eliminates its members: its other equations hold their formulas. If `s` holds a member, its right-hand side
and those of the others are taken at the full state. So the blocks are the map x -> rhs(x), too: a file needs no other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermitex.kernels.generated_text import literal
from hermitex.kernels.parameter_conditions import LAW
from hermitex.kernels.sign_conditions import sign_of
from hermitex.kernels.source import read_lines, return_line


def shortened(functions: Mapping[str, str], members: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The functions without results that nothing reads, and without functions that then have no result.

    Parameters
    ----------
    functions : {name: text}, each of (s, quad)
    members : {name of a block: the unknowns that it eliminates}
    """
    found = {name: _Function(text, members.get(name, ())) for name, text in functions.items()}
    if "tables" in found:
        read = {label for name, f in found.items() if name != "tables" for label in f.reads.values()}
        found["tables"] = _Function(functions["tables"], (), read)
    return {name: f.text for name, f in found.items() if f.results}


class _Function:
    """One function: `reads`, {name: what it takes of `s`}, its `results` and its new `text`."""

    def __init__(self, text: str, members: Sequence[str], wanted: set[str] | None = None) -> None:
        node: Any = ast.parse(text).body[0]
        *body, last = node.body
        entries = {k.value: v for k, v in zip(last.value.keys, last.value.values, strict=True)}
        taken, again = _names([node]), dict[str, str]()
        for u in members:
            again[entries[u].id] = f"{entries[u].id}_again"
            while again[entries[u].id] in taken:
                again[entries[u].id] += "_"
        self.results = {k: again.get(getattr(v, "id", "")) or ast.get_source_segment(text, v) or "" for k, v in entries.items()
                        if k not in members and (k in wanted if wanted is not None else _is_read(k, v))}
        needed = _names(v for k, v in entries.items() if k in self.results)
        kept: list[str] = []
        reads: dict[str, str] = {}
        source = text.split("\n")
        for line in reversed(body):
            made = {n.id for n in ast.walk(line) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if isinstance(line, ast.Expr):
                kept.append("\n".join(source[line.lineno - 1:line.end_lineno]))
            elif read := _read(line):
                reads |= {n: label for n, label in read.items() if n in needed}
            elif made & needed:
                needed |= _names([line.value])
                kept += [f"    {n} = s.get({literal(u)}, {again[n]})" for u in members if (n := entries[u].id) in made]
                left, sign, right = "\n".join(source[line.lineno - 1:line.end_lineno]).partition(" = ")
                kept.append("".join(again.get(w, w) for w in _words(left)) + sign + right)
        self.reads = dict(sorted(reads.items()))
        lines = [*read_lines({n: literal(label) for n, label in self.reads.items()}), return_line(self.results)]
        given, end = ("\n".join("    " + row for line in part for row in line.split("\n")) for part in (lines[:-1], lines[-1:]))
        doc = [kept.pop()] if isinstance(body[0], ast.Expr) else []
        self.text = "\n".join(part for part in (source[0], *doc, given, *reversed(kept), end) if part)


def _is_read(label: str, value: ast.expr) -> bool:
    """Whether a solver reads a result: not the sizes of its terms, the zeros of a matrix, and signs, which it has as numbers."""
    zero = isinstance(value, ast.Constant) and value.value == 0 and label.startswith(("matrix/", "constant/", "d/"))
    return not (zero or label.startswith("terms/") or sign_of(label.removeprefix(LAW)))


def signs_of(lawful: str) -> dict[str, int]:
    """{parameter: 1 or -1}: the sign that the function of conditions requires of a parameter."""
    labels = (n.value for n in ast.walk(ast.parse(lawful)) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return {name: sign for label in labels for name, sign in sign_of(label.removeprefix(LAW)).items()}


def _read(line: ast.stmt) -> dict[str, str]:
    """{name: label} of a line a, b = s["a"], s["b"]; of another nothing."""
    if not isinstance(line, ast.Assign):
        return {}
    sides: list[list[Any]] = [[*n.elts] if isinstance(n, ast.Tuple) else [n] for n in (line.targets[0], line.value)]
    target, value = sides
    labels = [ast.literal_eval(n.slice) for n in value if isinstance(n, ast.Subscript) and getattr(n.value, "id", "") == "s"]
    return {n.id: label for n, label in zip(target, labels, strict=True)} if labels else {}


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _words(text: str) -> list[str]:
    return re.split(r"\b", text)
