"""An error planted in a page of derivations/: does its check notice?

    python tests/derivations/planted.py --seed 1 --count 100

draws a line of a page (a step, a conclusion, the premises of one, a wrong form, a formula in words, a definition, a term typed in
words or in a premise), changes it in one place and checks that line again; of a definition, the lines that contain its letter.
Kinds are drawn evenly, or, with --lines, as often as there are lines of them. What nothing notices survives and is named.
Nothing is planted in words, in names, numbers and laws between dollars, and in the code of a test.
"""

from __future__ import annotations

import argparse
import random
import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from sympy import Equality as Equation
from sympy import MatrixBase, MatrixExpr

from hermitex import Result, System
from hermitex.face.userfile import module_of
from hermitex.pages.conclusion import Conclusion
from hermitex.pages.page_entries import Agreement, Equality, Fact, Inequality, Let, Words
from hermitex.pages.premises import Notation
from hermitex.pages.typed_terms import terms
from hermitex.pages.used_definitions import contents, enters, unused

PAGES = Path(__file__).parents[2]/"derivations"


def errors_of(page: Result) -> list[tuple[str, Any, Any]]:
    """(kind, part, how it is changed by a generator of chance) of every line that can bear an error."""
    found: list[tuple[str, Any, Any]] = []
    steps = [p for p in page.parts if isinstance(p, Equality) and not p.misprint]
    for part in page.parts:
        if isinstance(part, Equality) and part.misprint:
            found.append(("wrong form", part, lambda p, _: replace(p, rhs=p.mended if p.mended is not None else p.lhs)))
        if isinstance(part, Equality) and part.misprint and part.of_a_source:
            found.append(("misprint", part, lambda p, chance: replace(p, rhs=changed(p.rhs, chance))))
            found.append(("misprint mended", part, lambda p, chance: replace(p, mended=changed(p.mended, chance))))
        if isinstance(part, Agreement) and part.misprint:
            found.append(("wrong form", part, lambda p, _: replace(p, derived=p.used)))
        if isinstance(part, Agreement) and part.misprint and part.of_a_source:
            found.append(("misprint", part, lambda p, chance: replace(p, derived=another(p.derived, chance))))
            found.append(("misprint mended", part, lambda p, chance: replace(p, used=another(p.used, chance))))
        if isinstance(part, Equality) and not part.misprint:
            found.append(("expression", part, lambda p, chance: replace(p, rhs=changed(p.rhs, chance))))
        if isinstance(part, Inequality):
            found.append(("inequality", part, lambda p, _: replace(p, small=p.large, large=p.small)))
        if isinstance(part, Words):
            found += [("in words", part, in_words)]*bool(part.claims)
            found += [("term", part, lambda p, chance, i=i: in_terms(p, i, chance)) for i in range(len(part.terms))]
        if isinstance(part, Let) and not any(isinstance(p, Fact) and part.symbol in p.uses for p in page.parts):   # a test is run
            found.append(("definition", part, lambda p, chance: replace(p, value=changed(p.value, chance))))
        if isinstance(part, Agreement) and not part.misprint:
            found.append(("display", part, lambda p, chance: replace(p, derived=another(p.derived, chance))))
        if isinstance(part, Conclusion):
            found.append(("conclusion", part, concluded))
            found.append(("premise lost", part, lambda p, chance: replace(p, by=without(p.by, chance))))
            others = [s for s in steps if s not in part.by]
            if others:
                found.append(("premise added", part, lambda p, chance, o=others: replace(p, by=(*p.by, chance.choice(o)))))
    found += [("typed in words", t, mistyped) for some in page.words for t in terms(some)]
    found += [("typed in a premise", t, mistyped) for some in page.assumptions for t in terms(some)]
    found += [("declared", t, mistyped) for some in declared(page) for t in terms(f"${some}$")]
    if page.conclusion is not None:
        found.append(("conclusion", page, None))   # one without premises, which nothing checks
    return found


def declared(page: Result) -> list[str]:
    """The objects that a page names in its notation by their LaTeX."""
    return [x for p in page.parts if isinstance(p, Notation) for x in p.objects]


def changed(expr: Any, chance: random.Random) -> Any:
    """Another expression: a sign, a factor, a summand, one summand lost."""
    if isinstance(expr, MatrixBase | MatrixExpr):
        return 2*expr
    ways = [lambda e: 2*e + 1, lambda e: e + 1]
    if expr != 0:
        ways += [lambda e: -e, lambda e: 2*e, lambda e: e*(1 + e**2)]
    if expr.is_Add:
        ways += [lambda e: e - chance.choice(e.args), lambda e: e - 2*chance.choice(e.args)]*2
    return chance.choice(ways)(expr)


def in_words(part: Words, chance: random.Random) -> Words:
    """A changed formula among those of a paragraph."""
    claim = chance.choice(part.claims)
    made = [(f[0], changed(f[1], chance)) if f is claim else f for f in part.formulas]
    return replace(part, formulas=tuple(made))


def in_terms(part: Words, i: int, chance: random.Random) -> Words:
    """Another term among those of a paragraph."""
    return replace(part, formulas=tuple(changed(f, chance) if f is part.terms[i] else f for f in part.formulas))


def mistyped(term: str, chance: random.Random) -> str:
    """Another term, as it might be typed: a root lost, an exponent, a sign, a factor."""
    ways = [lambda t: f"2{t}" if not t.startswith("-") else f"3 {t[1:]}", lambda t: t[1:] if t.startswith("-") else f"-{t}"]
    if r"\sqrt" in term:
        ways += [lambda t: t.replace(r"\sqrt", "", 1)]*3
    if "^" in term:
        ways += [lambda t: re.sub(r"\^(\d|\{)", lambda f: "^3" if f[1] == "2" else "^2" if f[1] != "{" else "^{3", t, count=1)]*3
    if " + " in term or " - " in term:
        ways += [lambda t: re.sub(r" ([+-]) ", lambda f: " - " if f[1] == "+" else " + ", t, count=1)]*3
    return chance.choice([made for way in ways if (made := way(term)) != term])


def another(system: System, chance: random.Random) -> System:
    """The system with one of its equations changed."""
    equations = dict(system.equations)
    letter = chance.choice([u for u, v in equations.items() if not isinstance(v, Equation)])
    equations[letter] = changed(equations[letter], chance)
    return System(equations, where=system.where, observables=system.observables, parameters=system.parameters)


def concluded(part: Conclusion, chance: random.Random) -> Conclusion:
    """A changed equation among those of a conclusion."""
    if part.system is not None:
        return replace(part, system=another(part.system, chance))
    i = chance.randrange(len(part.pairs))
    pairs = list(part.pairs)
    pairs[i] = (pairs[i][0], changed(pairs[i][1], chance))
    return replace(part, pairs=tuple(pairs))


def without(by: tuple[Any, ...], chance: random.Random) -> tuple[Any, ...]:
    """All premises but one."""
    i = chance.randrange(len(by))
    return by[:i] + by[i + 1:]


def noticed(page: Result, kind: str, part: Any, change: Any, chance: random.Random) -> bool:
    """Does the check of the changed line fail?"""
    if change is None:
        return False
    made = change(part, chance)
    if isinstance(made, str):
        words, names = [*page.words, *page.assumptions], declared(page)
        if kind == "declared":
            return bool(contents(page.parts).refused(words, [made if x == part else x for x in names]))
        return bool(contents(page.parts).refused([*words, f"${made}$"], names))
    if made is not part and isinstance(made, Words) and made.terms != part.terms:
        return not all(map(contents(page.parts).contain, made.terms))
    if not isinstance(part, Let):
        return not made.checked(page.definitions, *((systems(page),) if isinstance(part, Words) else ()))
    where = {**page.definitions, part.symbol: made.value}
    if part.symbol in unused(page.parts, where):   # an expression that stands nowhere
        return True
    return any(not p.checked(where, *((systems(page),) if isinstance(p, Words) else ()))
               for p in page.parts if isinstance(p, Equality | Conclusion | Words) and enters(p, part.symbol, made.value, where))


def systems(page: Result) -> list[System]:
    """Those whose names its words may use."""
    return [p.derived for p in page.parts if isinstance(p, Agreement) and not p.misprint]


def pages(*names: str) -> list[tuple[str, Result]]:
    """The pages of these files, or of all."""
    files = [PAGES/n for n in names] if names else sorted(p for p in PAGES.glob("*.py") if not p.name.startswith("_"))
    return [(f.name, v) for f in files for v in vars(module_of(f)).values() if isinstance(v, Result)]


def plant(found: list[tuple[str, Result]], count: int, chance: random.Random, *, by_lines: bool = False
          ) -> tuple[Counter, list[tuple[str, str, str]]]:
    """({kind: how many were drawn}, [(file, kind, line) of those that survive])."""
    lines = [(name, page, *one) for name, page in found for one in errors_of(page)]
    kinds = sorted({line[2] for line in lines})
    drawn, survivors = Counter(), []
    for i in range(count):
        name, page, kind, part, change = chance.choice([line for line in lines if by_lines or line[2] == kinds[i % len(kinds)]])
        drawn[kind] += 1
        if not noticed(page, kind, part, change, chance):
            survivors.append((name, kind, str(getattr(part, "rule", getattr(part, "symbol", part)))))
    return drawn, survivors


def main() -> None:
    """Print what survives, and the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--lines", action="store_true", help="kinds as often as there are lines of them")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    drawn, survivors = plant(pages(*args.files), args.count, random.Random(args.seed), by_lines=args.lines)
    for one in survivors:
        print("SURVIVES", *one, sep="  ")
    lost = Counter(kind for _, kind, _ in survivors)
    print("; ".join(f"{k}: {n - lost[k]} of {n}" for k, n in sorted(drawn.items())),
          f"| {args.count - len(survivors)} of {args.count} caught")


if __name__ == "__main__":
    main()
