"""definitions of the package -> one flat text that needs NumPy alone: what an exported file shares with the session.

From a function one goes to all that it names, at any depth: constants, classes, functions of other modules. Of a class
only those methods are taken that something taken asks for; of a docstring its first paragraph; type hints stay behind.
"""

from __future__ import annotations

import ast
import builtins
import re
from functools import lru_cache
from importlib.util import find_spec
from symtable import symtable

from hermitex.errors import HermitexError

Key = tuple[str, str]  # module, name
_ALWAYS = {"__init__", "__post_init__", "__len__", "__getitem__", "__call__", "__missing__"}
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def bundle_sources(*groups: list[Key], rename: dict[Key, str] | None = None, taken: frozenset[str] = frozenset()
         ) -> tuple[list[str], list[str]]:
    """(import lines, one text for each group) of the definitions named and of everything that they use.

    rename : other names for some of them;  taken : names that none may have (it gets that of its module behind its own)

    Examples
    --------
    >>> lines, (text,) = bundle_sources([("hermitex.kernels.quadrature", "_density")])
    >>> print(lines, text)
    ['import numpy as np'] def _density(x):
        return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    """
    imports, texts = _texts(tuple(map(tuple, groups)), tuple((rename or {}).items()), taken)
    return list(imports), list(texts)


@lru_cache(maxsize=64)
def _texts(groups: tuple[tuple[Key, ...], ...], rename: tuple[tuple[Key, str], ...], taken: frozenset[str]
           ) -> tuple[tuple[str, ...], tuple[str, ...]]:
    wanted: frozenset[str] = frozenset()
    while True:  # what a method asks for is known when it is taken: until nothing new is
        work, texts = _SourceBundle(dict(rename), taken, wanted), []
        for group in groups:
            known = set(work.texts)
            for key in group:
                work.add(key)
            texts.append("\n\n\n".join(_group_constants([t for k, t in work.texts.items() if k not in known])))
        asked = wanted.union(*(_attributes(t) for t in work.texts.values()))
        if asked == wanted:
            break
        wanted = asked
    names = [work.name(k) for k in work.texts]
    assert len(set(names)) == len(names), f"two definitions have one name: {sorted(names)}"
    return tuple(sorted(work.imports)), tuple(texts)


class _SourceBundle:
    def __init__(self, rename: dict[Key, str], taken: frozenset[str], wanted: frozenset[str]) -> None:
        self.rename, self.taken, self.wanted = rename, taken, wanted
        self.imports: set[str] = set()
        self.texts: dict[Key, str] = {}
        self.pending: set[Key] = set()
        self.names: dict[Key, str] = {}

    def name(self, key: Key) -> str:
        """Its own name, or where another definition has that one, with that of its module."""
        if key not in self.names:
            name = self.rename.get(key, key[1])
            free = name not in self.taken and name not in self.names.values()
            self.names[key] = name if free else f"{name}_{key[0].rpartition('.')[2]}"
        return self.names[key]

    def add(self, key: Key) -> None:
        """Take a definition, after those that it uses."""
        if key in self.texts or key in self.pending:
            return
        self.pending.add(key)
        source = _source(key)
        text = _strip_hints(source, self.wanted if re.search("^class ", source, re.M) else frozenset())
        swap: dict[str, str] = {key[1]: self.name(key)}
        free = _free_names(text)
        known = {*(names := _names(key[0]))[0], *names[1], *dir(builtins), key[1]}
        assert free <= known, f"{key[1]} in {key[0]} names {sorted(free - known)}, which the module does not define"
        for found in _named(text):
            target = self._resolve(key[0], found, free)
            if target is None:
                continue
            written, other = target
            self.add(other)
            swap[written] = self.name(other)
        for written, new in swap.items():
            if written != new:
                text = re.sub(rf"(?<![\w.]){re.escape(written)}\b", new, text)
        self.texts[key] = text

    def _resolve(self, module: str, node: ast.AST, free: set[str]) -> tuple[str, Key] | None:
        """(the text that names it, what it names), for a name or `alias.name` of a definition of the package."""
        definitions, imported = _names(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in free:
            other = imported.get(node.value.id, ("", "", ""))
            path = f"{other[0]}.{other[1]}"
            if other[0].startswith("hermitex") and _is_module(path):
                return f"{node.value.id}.{node.attr}", (path, node.attr)
        if not isinstance(node, ast.Name) or node.id not in free:
            return None
        if node.id in definitions:
            return node.id, (module, node.id)
        if node.id in imported:
            source, name, line = imported[node.id]
            if not source.startswith("hermitex"):
                self.imports.add(line)
            elif not _is_module(f"{source}.{name}"):
                return node.id, (source, name)
        return None


@lru_cache(maxsize=512)
def _named(text: str) -> tuple[ast.AST, ...]:
    """The names and attributes in a text."""
    return tuple(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name | ast.Attribute))


@lru_cache(maxsize=512)
def _free_names(text: str) -> set[str]:
    """The names that a text takes from its module: not those that are local where they stand."""
    found: set[str] = set()
    tables = [symtable(text, "excerpt", "exec")]
    while tables:
        table = tables.pop()
        top = table.get_type() == "module"
        found |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (s.is_global() or top)}
        tables += table.get_children()
    return found


def _attributes(text: str) -> frozenset[str]:
    """Every x in a.x."""
    return frozenset(n.attr for n in _named(text) if isinstance(n, ast.Attribute))


@lru_cache(maxsize=512)
def _is_module(path: str) -> bool:
    try:
        return find_spec(path) is not None
    except ModuleNotFoundError:
        return False


@lru_cache(maxsize=64)
def _text(module: str) -> str:
    spec = find_spec(module)
    get = getattr(spec and spec.loader, "get_source", None)  # of a file, or of a package in a zip
    source = get(module) if get else None
    if source is None:
        raise HermitexError(f"export: the source of {module} is not installed, and an exported file is made from it")
    return str(source)


@lru_cache(maxsize=64)
def _names(module: str) -> tuple[dict[str, ast.AST], dict[str, tuple[str, str, str]]]:
    """What a module defines at its top, and what it imports: {name: (module, name there, import line)}."""
    definitions: dict[str, ast.AST] = {}
    imported: dict[str, tuple[str, str, str]] = {}
    for node in ast.parse(_text(module)).body:
        if isinstance(node, ast.Import):
            for a in node.names:
                line = f"import {a.name}" + (f" as {a.asname}" if a.asname else "")
                imported[a.asname or a.name] = (a.name, "", line)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")[:-node.level] if node.level else []
            source = ".".join([*parts, *([node.module] if node.module else [])])
            for a in node.names:
                imported[a.asname or a.name] = (source, a.name, f"from {source} import {a.name}")
        elif isinstance(node, _DEFINITIONS):
            targets = [*getattr(node, "targets", []), getattr(node, "target", None)]
            for name in [t.id for t in targets if isinstance(t, ast.Name)] or [getattr(node, "name", "")]:
                definitions[name] = node
            for pair in (t for t in targets if isinstance(t, ast.Tuple)):
                definitions |= {n.id: node for n in pair.elts if isinstance(n, ast.Name)}
    return definitions, imported


def _source(key: Key) -> str:
    module, name = key
    definitions, imported = _names(module)
    if name not in definitions and name in imported:  # a name handed on
        return _source((imported[name][0], imported[name][1]))
    node = definitions[name]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):  # A, B = 1, 2: each by itself
        place = [getattr(n, "id", "") for n in node.targets[0].elts].index(name)
        return f"{name} = {ast.unparse(node.value.elts[place])}"  # type: ignore[attr-defined]
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    return "\n".join(_text(module).split("\n")[first - 1:node.end_lineno])  # type: ignore[attr-defined]


@lru_cache(maxsize=512)
def _strip_hints(text: str, wanted: frozenset[str]) -> str:
    """`text` without type hints (but for the fields of a class, which are its definition), methods that nothing wants,
    and what follows the first paragraph of a docstring.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()) + 1)
    cuts: list[tuple[int, int, bytes]] = []
    dropped: list[tuple[int, int]] = []

    def at(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    def end(node: ast.expr) -> int:
        return at(node.end_lineno, node.end_col_offset)

    raw = text.encode()
    tree = ast.parse(text)
    fields = {id(s) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for s in c.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and id(node) in fields and not _taken(node.name, wanted):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            dropped.append((at(first, 0), at(node.end_lineno, 0) + len(lines[(node.end_lineno or 1) - 1].encode()) + 1))
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            said = node.body[0].value  # type: ignore[attr-defined]
            begin, until = at(said.lineno, said.col_offset), end(said) - 3
            blank = raw.find(b"\n\n", begin, until)
            if blank > 0:
                cuts.append((blank, until, b""))
        if isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            defaults = dict(zip(reversed(positional), reversed(node.defaults), strict=False))
            defaults |= {a: d for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d is not None}
            for arg in [*positional, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]:
                if arg.annotation is not None:
                    begin = at(arg.lineno, arg.col_offset) + len(arg.arg.encode())
                    value = defaults.get(arg)
                    until = at(value.lineno, value.col_offset) if value else end(arg.annotation)
                    cuts.append((begin, until, b"=" if value else b""))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            begin = at(node.returns.lineno, node.returns.col_offset)
            cuts.append((raw.rindex(b"->", 0, begin) - 1, end(node.returns), b""))
        elif isinstance(node, ast.AnnAssign) and id(node) not in fields and node.value is not None:
            cuts.append((end(node.target), end(node.annotation), b""))
    cuts = [c for c in cuts if not any(begin <= c[0] < until for begin, until in dropped)]
    for begin, finish, put in sorted([*cuts, *((begin, until, b"") for begin, until in dropped)], reverse=True):
        raw = raw[:begin] + put + raw[finish:]
    return _tidied(raw.decode())


def _taken(method: str, wanted: frozenset[str]) -> bool:
    return method in wanted or method in _ALWAYS


def _tidied(text: str) -> str:
    text = re.sub(r"  # (type: ignore|noqa|fmt:)[^\n]*", "", text)
    text = re.sub(r'("""[^"\n]*)\n *"""', r'\1"""', text)
    return re.sub(r"\n\n\n+", "\n\n", text).rstrip("\n")


def _group_constants(texts: list[str]) -> list[str]:
    """Constants that follow each other stand together."""
    groups: list[str] = []
    for text in texts:
        constant = not text.startswith(("def ", "class ", "@"))
        if constant and groups and not groups[-1].startswith(("def ", "class ", "@")):
            groups[-1] += "\n" + text
        else:
            groups.append(text)
    return groups
