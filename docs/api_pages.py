"""One page per public name, in the Markdown of the site, from the docstrings that `help` shows.

A page has the signature with links to the types, the source, a table of the parameters with their types and defaults, and the
other sections of the docstring; that of a class also its methods and properties. `PLACES` says where each object is defined,
which the names of methods of base classes and of functions with a second name do not: the links to the sources need it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from sympy import latex

import hermitex as hx
from hermitex import hints
from hermitex.show.display import shorten

ROOMS = (("hx", hx), ("hx.theories", hx.theories))
ENTRY = re.compile(r"([*\w`\"][^:]{0,70}?) : +")
LISTED = ("Parameters", "Attributes", "Returns", "Raises")
PLACES: dict[tuple[str, str], tuple[str, str]] = {}  # (room, name there): (module, name there) of its definition
NAMES = {f"{prefix}.{name}": getattr(room, name) for prefix, room in ROOMS for name in room.__all__}
HINTS = Path(hints.__file__).read_text(encoding="utf-8")
TYPES = re.findall(r"^([A-Z]\w+): TypeAlias", HINTS, re.M)
KEYS = set(re.findall(r"^@\w+\{(\w+),", (Path(hx.__file__).parent/"show"/"references.bib").read_text(encoding="utf-8"), re.M))


def place(name: str) -> str:
    """The file of a name's page; Curve and curve are one file on some systems."""
    return f"{name}{'-class' if inspect.isclass(NAMES[name]) else ''}.md"


def linked(code: str) -> str:
    """A name or type as code, a link where it has a page."""
    where = next((place(n) for n in (code, f"hx.{code}", f"hx.theories.{code}") if n in NAMES), None)
    where = where or ("types.md" if code in TYPES else "hx.errors.md" if code in vars(hx.errors) else None)
    shown = "`" + code.replace("|", "\\|") + "`" if where is None else f"`{code}`"
    return f"[{shown}]({where})" if where else shown


def flowing(text: str) -> str:
    """Words of a docstring as Markdown: code and names as links, keys of papers as citations, every sign as it is."""
    parts = []
    for k, part in enumerate(re.split(r"(``.+?``|`[^`]+`)", " ".join(text.split()))):
        if k % 2:
            parts.append(linked(part.strip("`")))
        else:
            part = re.sub(r"([\\*_<>\[\]$|#~^{}&@])", r"\\\1", part).replace("docs/promise.md", "[the promise](../promise.md)")
            parts.append(re.sub(r"\b[a-z]+(?:19|20)\d\d[a-z]?\b", lambda m: f"{{cite:t}}`{m[0]}`" if m[0] in KEYS else m[0], part))
    return "".join(parts)


def paragraphs(lines: Sequence[str]) -> list[str]:
    """Paragraphs, with the line ends that the author chose, examples and displayed formulas."""
    out = []
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        if block.lstrip().startswith((">>>", "```")) or block.startswith("    "):
            out += [f"````{'pycon' if '>>>' in block else 'text'}", inspect.cleandoc(block), "````", ""]
        elif block.strip():
            kept, rest = block.split("\n"), []
            for line, following in zip(kept, [*kept[1:], ""], strict=True):  # 100: a word that still fitted began a new line
                chosen = following and len(line) + len(following.split(" ")[0]) < 100
                rest.append(flowing(line) + ("\\" if chosen else ""))
            out += [*rest, ""]
    return out


def entries(lines: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs `name : meaning` of a section, several in a line if so written, and the lines that belong to none."""
    found: list[tuple[str, str]] = []
    free = []
    for piece in (p for line in lines for p in re.split(r"[;.]?\s{3,}(?=[^:]{1,60} : )", line)):
        entry = ENTRY.match(piece)
        if entry:
            found.append((entry[1], piece[entry.end():].strip()))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {piece.strip()}")
        else:
            free.append(piece)
    return found, free


def annotation(kind: Any) -> str:
    kind = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    return " \\| ".join(linked(part.strip()) for part in re.split(r" \| (?![^\[]*\])", kind))


def table(pairs: Sequence[tuple[str, str]], takes: dict[str, inspect.Parameter]) -> list[str]:
    rows = []
    for name, meaning in pairs:
        own = [takes[n.strip(" *`")] for n in re.split(r", | or ", name) if n.strip(" *`") in takes]
        kinds = dict.fromkeys(annotation(p.annotation) for p in own if p.annotation not in (p.empty, "Any"))
        given = dict.fromkeys("`" + shorten(repr(p.default)).replace("|", "\\|") + "`" for p in own if p.default is not p.empty
                              and "factory" not in repr(p.default))
        name = ", ".join(f"`{n}`" for n in name.replace("`", "").split(", "))
        rows.append((name, ", ".join(kinds), ", ".join(given), flowing(meaning)))
    heads = ("Name", "Type", "Default", "Meaning")
    kept = [k for k in range(4) if k in (0, 3) or any(row[k] for row in rows)]
    return ["| " + " | ".join(row[k] for k in kept) + " |" for row in (heads, ("---",)*4, *rows)] + [""]


def body(thing: Any, title: Callable[[str], str]) -> list[str]:
    """The sections of a docstring; `title` makes the line over each."""
    lines = inspect.cleandoc(thing.__doc__ or "").split("\n")  # its own: no docstring that SymPy wrote
    starts = [k for k in range(1, len(lines)) if re.fullmatch("-{3,}", lines[k])]
    try:
        takes = dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        takes = {}
    out = paragraphs(lines[:starts[0] - 1] if starts else lines)
    for start, end in zip(starts, [*starts, len(lines) + 1][1:], strict=True):
        name, inside = lines[start - 1], lines[start + 1:end - 1]
        pairs, free = entries(inside) if name in LISTED else ([], inside)
        out += [title(name), "", *(paragraphs(free) if free else [])]
        if pairs and name in LISTED[:2]:
            out += table(pairs, takes if name == "Parameters" else {})
        else:
            out += [f"- {', '.join(map(linked, names.replace('`', '').split(', ')))}: {flowing(told)}" for names, told in pairs]
            out.append("")
    own = {linked(n): f"`{n}`" for n in takes if n in NAMES or f"hx.{n}" in NAMES or f"hx.theories.{n}" in NAMES}
    return [reduce(lambda text, link: text.replace(link, own[link]), own, line) for line in out]


def described(kind: str, room: Any, name: str, thing: Any, inside: Sequence[str] = (), options: Sequence[str] = ()) -> list[str]:
    """The directive of the Python domain for an object: its signature, its links."""
    own = inspect.unwrap(thing.fget or thing if isinstance(thing, property) else getattr(thing, "func", thing))
    if getattr(own, "__module__", "").startswith("hermitex"):
        PLACES[room.__name__, name] = own.__module__, getattr(own, "__qualname__", name)
    signature = ""
    if not isinstance(thing, property) and not hasattr(thing, "func"):
        try:
            said = inspect.signature(thing)
            first = list(said.parameters)[:1] if "." in name else []
            said = said.replace(parameters=[p for n, p in said.parameters.items() if n not in ("self", "cls") or [n] != first])
            signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(said)).replace("<factory>", "...")
        except (TypeError, ValueError):
            pass
    second = [":no-index:"] if room is hx.theories and f"hx.{name.partition('.')[0]}" in NAMES else []  # links lead to the first
    return [f"``````{{py:{kind}}} {name}{signature}", f":module: {room.__name__}", *options, *second, "", *inside, "``````", ""]


def members(room: Any, name: str, kind: type) -> list[str]:
    out = []
    for member in (n for n in dir(kind) if not n.startswith("_")):
        found = inspect.getattr_static(kind, member)
        function = getattr(found, "fget", None) or getattr(found, "func", None) or getattr(found, "__func__", found)
        if inspect.isfunction(function) and function.__module__.startswith("hermitex"):
            made = not hasattr(found, "__func__") and function is not found
            returned = str(inspect.signature(function).return_annotation).strip("'")
            options = [f":type: {returned}"] if made else [":classmethod:"] if isinstance(found, classmethod) else [
                ":staticmethod:"] if isinstance(found, staticmethod) else []
            text = body(function, lambda title: f"**{title}**")
            out += described("property" if made else "method", room, f"{name}.{member}", found if made else function, text, options)
    return ["## Methods and properties", "", *out] if out else []


def page(full: str) -> str:
    """The page of a public name such as hx.theories.glm."""
    prefix, _, name = full.rpartition(".")
    room, thing = dict(ROOMS)[prefix], NAMES[full]
    sections = body(thing, "## {}".format)
    if name == "symbols":
        text = [*sections, "| Name | Letter | Assumed |", "|---|---|---|"]
        for letter, symbol in thing.FIELD.items():
            assumed = next(a for a in ("positive", "nonnegative", "real") if getattr(symbol, f"is_{a}"))
            text.append(f"| `{letter}` | ${thing.LATEX_NAMES.get(symbol) or latex(symbol)}$ | {assumed} |")
    elif name == "errors":
        text = sections
        for kind in (v for v in vars(thing).values() if inspect.isclass(v) and issubclass(v, thing.HermitexError)):
            above = f"A kind of {', '.join(b.__name__ for b in kind.__bases__)}."
            text += described("exception", thing, kind.__name__, kind, [above, "", *body(kind, "**{}**".format)])
    elif inspect.ismodule(thing):
        text = [*sections, *listing(f"{prefix}.{name}")]
    elif inspect.isclass(thing):
        text = [*described("class", room, name, thing), *sections, *members(room, name, thing)]
    elif inspect.isroutine(thing):
        text = [*described("function", room, name, thing), *sections]
    elif isinstance(thing, hx.Activation):
        text = [*described("data", room, name, thing), flowing(f"`{shorten(repr(thing))}`, an `Activation`."), "", *sections]
    else:  # the registry of theories
        text = [*described("data", room, name, thing), *sections, ", ".join(linked(n.replace("-", "_")) for n in thing)]
    return "\n".join([f"# {full}", "", *text]) + "\n"


def listing(prefix: str) -> list[str]:
    """The names of a room, each with the first line of its docstring."""
    names = sorted((n for n in NAMES if n.rpartition(".")[0] == prefix), key=str.lower)
    first = {n: flowing(shorten(repr(NAMES[n])) if isinstance(NAMES[n], hx.Activation) else
                        (inspect.getdoc(NAMES[n]) or "").partition("\n")[0]) for n in names}
    return ["| Name | |", "|---|---|", *(f"| [`{n}`]({place(n)}) | {first[n]} |" for n in names), ""]


def types() -> str:
    told = re.findall(r"#: (.*)\n((?:[A-Z]\w+: TypeAlias.*\n(?: .*\n)*)+)", HINTS)
    out = ["# Types", "", "The names of types in the signatures.", ""]
    for comment, code in told:
        for name in re.findall(r"^([A-Z]\w+): TypeAlias", code, re.M):
            out += [f"````{{py:class}} {name}", flowing(comment), "````", ""]
        out += ["```python", code.rstrip(), "```", ""]
    return "\n".join(out)


def pages() -> dict[str, str]:
    """{file name: text} of the index, the types and every public name."""
    index = ["# API", "", "Every public name of `hermitex` and of `hermitex.theories` has its page. [What an answer promises]"
             "(../promise.md) explains *Guarantee*.", ""]
    for prefix, _ in ROOMS:
        index += [f"## {prefix}", "", *listing(prefix)]
    index += ["```{toctree}", ":hidden:", "", "types", *(place(n)[:-3] for n in sorted(NAMES, key=str.lower)), "```", ""]
    return {"index.md": "\n".join(index), "types.md": types(), **{place(name): page(name) for name in NAMES}}
