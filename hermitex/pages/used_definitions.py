"""Which definitions of a page enter what it checks, by letter or as an expression that a check contains; which of its words do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sympy import Basic, Expr, Symbol

from hermitex.pages.conclusion import Conclusion
from hermitex.pages.page_entries import Agreement, Equality, Fact, Let, Words
from hermitex.pages.premises import Notation
from hermitex.pages.typed_terms import Content
from hermitex.show.display import latex
from hermitex.systems.scope import written_out
from hermitex.systems.system import System


def formulas(part: Any) -> Iterator[Basic]:
    """The checked formulas of a part; for systems, the derived ones."""
    if isinstance(part, Equality):
        yield from (part.lhs, part.rhs)
    elif isinstance(part, Words | Conclusion):
        yield from (side for pair in (part.claims if isinstance(part, Words) else part.pairs) for side in pair)
    elif isinstance(part, Agreement):
        for some in (part.derived.equations, part.derived.where, part.derived.observables):
            yield from some.values()


def contents(parts: Sequence[Any]) -> Content:
    """What the formulas of these parts contain, with the definitions, systems and inequalities."""
    found: list[Any] = []
    for part in parts:
        found += formulas(part)
        found += [getattr(part, name, None) for name in ("symbol", "value", "small", "large", "mended")]
    for one in _systems(parts):
        found += [x for some in (one.equations, one.where, one.observables) for pair in some.items() for x in pair]
    return Content(f for f in found if isinstance(f, Basic))


def _systems(parts: Sequence[Any]) -> list[System]:
    """Those that parts compare or print."""
    return [one for part in parts for name in ("derived", "used", "system") if (one := getattr(part, name, None)) is not None]


def words_of(part: Any) -> list[str]:
    """The words of a part; for a notation, the meaning of its letters."""
    if isinstance(part, Notation):
        return [said for _, said in part.letters]
    return [getattr(part, kind, "") for kind in ("text", "words", "rule") if kind == "text" or not isinstance(part, Words)]


def loose(parts: Sequence[Any], words: Sequence[str]) -> list[str]:
    """Terms in words, typed or given, that no formula of the page contains and no notation declares."""
    within = contents(parts)
    declared = [x for p in parts if isinstance(p, Notation) for x in p.objects]
    return within.refused(words, declared) + [
        latex(t) for p in parts if isinstance(p, Words) for t in p.terms if not within.contain(t)]


def _declared(parts: Sequence[Any]) -> list[str]:
    """What notations declare, in LaTeX."""
    return [x for p in parts if isinstance(p, Notation) for x in p.names]


def strange(parts: Sequence[Any], words: Sequence[str]) -> list[str]:
    """Letters in words that nothing on the page introduces."""
    return contents(parts).strange(words, _declared(parts))


def unnamed(parts: Sequence[Any], words: Sequence[str]) -> list[str]:
    """Letters of printed formulas that no notation, no definition and no words of the page introduce."""
    printed = [p for p in parts if not (isinstance(p, Agreement) and not p.shown) and not getattr(p, "misprint", False)]
    given = _declared(parts) + [latex(p.symbol) for p in parts if isinstance(p, Let)]
    given += [latex(pair[0]) for p in parts if isinstance(p, Words) for pair in p.claims if isinstance(pair[0], Symbol)]
    given += [latex(x) for one in _systems(printed) for some in (one.where, one.observables) for x in some]
    return contents(printed).unnamed(words, given)


def enters(part: Any, symbol: Symbol, value: Expr, names: Mapping[Symbol, Expr]) -> bool:
    """True if a formula of this part contains the letter, directly or through another name, or contains its expression."""
    if isinstance(part, Fact):
        return symbol in part.uses
    found = list(formulas(part))
    seen = {x for e in found for x in e.free_symbols}
    while more := {x for name in seen & set(names) for x in names[name].free_symbols} - seen:
        seen |= more
    return symbol in seen or (bool(value.args) and any(e.has(value) for e in found))


def unused(parts: Sequence[Any], names: Mapping[Symbol, Expr]) -> list[Symbol]:
    """The names that no check has anything to do with."""
    return [x for x, value in names.items() if not any(enters(p, x, value, names) for p in parts)]


def adrift(part: Any, parts: Sequence[Any], names: Mapping[Symbol, Expr]) -> bool:
    """True for a wrong form without `mended` whose left side is not a side of a line of the page."""
    if not (isinstance(part, Equality) and part.misprint and part.mended is None):
        return False
    left = written_out(part.lhs, names)
    true = [p for p in parts if not getattr(p, "misprint", False) or getattr(p, "mended", None) is not None]
    sides = [e for p in true for e in ((p.value,) if isinstance(p, Let) else formulas(p))]
    return not any(isinstance(e, Expr) and (e == part.lhs or written_out(e, names) == left) for e in sides)
