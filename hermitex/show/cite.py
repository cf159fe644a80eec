"""key -> BibTeX of the papers whose results are used; the entries are data, in references.bib next to this module.

An entry may have further keys (the field `ids`); `bibtex` prints it once, under its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from hermitex.errors import UnknownName


class Reference(NamedTuple):
    """One entry: its key, its text in the file, and its fields."""

    key: str
    text: str
    fields: dict[str, str]


_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", re.MULTILINE)
_ACCENTS = {r"{\'e}": "é", r"{\'a}": "á", r"{\'E}": "É", r'{\"u}': "ü", r"{\`a}": "à"}


@cache
def _references() -> dict[str, Reference]:
    text = files("hermitex.show").joinpath("references.bib").read_text(encoding="utf-8")
    found: dict[str, Reference] = {}
    for entry in re.split(r"\n(?=@)", text):
        match = re.match(r"@\w+\{([^,\s]+),", entry)
        if match:
            found[match[1]] = Reference(match[1], entry.strip(), dict(_FIELD.findall(entry)))
    return found


@cache
def _by_any_key() -> dict[str, Reference]:
    named = dict(_references())
    for reference in list(named.values()):
        for other in reference.fields.get("ids", "").split(","):
            if other.strip():
                named[other.strip()] = reference
    return named


def keys() -> list[str]:
    """The keys of all references, in order."""
    return sorted(_references(), key=str.lower)


def reference(key: str) -> Reference:
    """The entry of a key.

    Raises
    ------
    UnknownName : no paper has it; carries the closest known keys.
    """
    named = _by_any_key()
    if key not in named:
        raise UnknownName(str(key)[:60], named, what="reference")
    return named[key]


def is_known_key(key: str) -> bool:
    """True if a paper has this key.

    >>> is_known_key("troiani2025"), is_known_key("my notes")
    (True, False)
    """
    return key in _by_any_key()


def bibtex(keys: str | Iterable[str]) -> str:
    """The BibTeX entries of the keys, each once, in the order in which they are first named.

    Guarantee: the entries are those of the bibliography of this version. See docs/promise.md.

    >>> print(bibtex("troiani2025").splitlines()[0])
    @inproceedings{troiani2025,
    """
    wanted = [keys] if isinstance(keys, str) or not isinstance(keys, Iterable) else list(keys)
    entries = dict.fromkeys(reference(k).key for k in wanted)
    named = _references()
    return "".join(f"{_without_ids(named[k].text)}\n\n" for k in entries).rstrip("\n") + ("\n" if entries else "")


class Cited:
    """A result whose `sources` are keys of references."""

    def bibtex(self) -> str:
        """BibTeX of the papers whose results are used."""
        return bibtex(list(self.sources))  # type: ignore[attr-defined]


def _without_ids(text: str) -> str:
    return re.sub(r"\n\s*ids = \{[^}]*\},", "", text)


def cite(key: str) -> str:
    """A short text: authors and year.

    >>> cite("troiani2025"), cite("stein1981")
    ('Troiani et al. 2025', 'Stein 1981')
    """
    fields = reference(key).fields
    names = [_surname(a) for a in fields["author"].split(" and ")]
    who = names[0] if len(names) == 1 else f"{names[0]} and {names[1]}" if len(names) == 2 else f"{names[0]} et al."
    return f"{who} {fields['year']}"


def reference_list() -> str:
    """Every paper on a line: key, authors and year, title.

    >>> next(line for line in reference_list().splitlines() if line.startswith("troiani2025")).split("  ", 1)[1].lstrip()[:20]
    'Troiani et al. 2025 '
    """
    from hermitex.show.tables import text_table

    rows = [(key, cite(key), re.sub(r"[{}]", "", reference(key).fields.get("title", ""))) for key in keys()]
    return text_table(rows, columns=None)


def _surname(author: str) -> str:
    name = author.split(",")[0]
    for code, letter in _ACCENTS.items():
        name = name.replace(code, letter)
    return name.replace("{", "").replace("}", "").strip()
