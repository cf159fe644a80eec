"""name -> (formula, status, source): the answer of a theory that consists of exponents and constants.

A status is one of three words: a theorem of the source, derived (here, by exact algebra or by a heuristic that is checked by
simulation), heuristic (of the source, not proved).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sympy import And, Expr, Piecewise, Symbol, oo, simplify, sympify

from hermitex.errors import BadInput, UnknownName
from hermitex.hints import Axes
from hermitex.show.display import Shown, latex, letter, math
from hermitex.show.escape import tex
from hermitex.symbolic.parsing import expression
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import FIELD, standard

STATUSES = ("theorem", "derived", "heuristic")


@dataclass(frozen=True)
class Claim:
    """A formula (or text), its status, the BibTeX key of its source ("" if there is none) and words that belong to it."""

    value: Any
    status: str
    source: str = ""
    words: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise UnknownName(self.status, STATUSES, "status")

    def said(self) -> str:
        """The status, the source and the words on one line."""
        from hermitex.show.cite import cite

        return "; ".join(filter(None, (self.status + (f" ({cite(self.source)})" if self.source else ""), self.words)))


@dataclass(frozen=True, eq=False, repr=False)
class Claims(Shown, Mapping[str, Any]):
    """Formulas by name, `claims["rate"]`, each with its status: `claims.status["rate"]`, `claims.source["rate"]`.

    Guarantee
    ---------
    Each formula carries its status, and is promised no further than that. See docs/promise.md.

    Examples
    --------
    >>> found = Claims("an example", {"rate": Claim(exact("rate", "1/2"), "theorem", "mei2022hypercontractivity")})
    >>> found["rate"], found.status["rate"], found.source["rate"]
    (1/2, 'theorem', 'mei2022hypercontractivity')
    """

    title: str
    claims: Mapping[str, Claim]

    def __getitem__(self, name: str) -> Any:
        if name not in self.claims:
            raise UnknownName(name, self.claims, f"quantity of {self.title}")
        return self.claims[name].value

    def __contains__(self, name: object) -> bool:
        return name in self.claims

    def get(self, name: str, default: Any = None) -> Any:
        """The formula of that name, or the default."""
        return self.claims[name].value if name in self.claims else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.claims)

    def __len__(self) -> int:
        return len(self.claims)

    @property
    def status(self) -> dict[str, str]:
        """name -> theorem, derived or heuristic."""
        return {n: c.status for n, c in self.claims.items()}

    @property
    def source(self) -> dict[str, str]:
        """name -> BibTeX key, "" where there is none."""
        return {n: c.source for n, c in self.claims.items()}

    def to_dict(self) -> dict[str, Any]:
        """{name: {value, status, source, words}}; a formula as text that `hermitex.parse` reads, infinity as "inf"."""
        def written(value: Any) -> Any:
            return "inf" if value == oo else plain(value)

        return {n: {"value": written(c.value), "status": c.status, "source": c.source or None, "words": c.words}
                for n, c in self.claims.items()}

    def latex(self) -> str:
        """An align block, one quantity a line, its status at the right."""
        lines = [rf"  {quantity_latex(n)} &= {_latex(c.value)} && \text{{({c.status})}}" for n, c in self.claims.items()]
        return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"

    def _html(self) -> str:
        cell = '<td style="border:none;text-align:left">'
        rows = "".join(f"<tr style='background:none'>{cell}{math(quantity_latex(n))}</td>{cell}{math(_latex(c.value))}</td>"
                       f"{cell}{escape(c.said())}</td></tr>" for n, c in self.claims.items())
        return f'<table style="border:none"><caption style="text-align:left">{escape(self.title)}</caption>{rows}</table>'

    def _summary(self) -> str:
        brief = 20  # characters of a formula that one line of several holds
        known = [f"{n} = {c.value}" for n, c in self.claims.items() if len(str(c.value)) <= brief]
        formulas = [n for n, c in self.claims.items() if len(str(c.value)) > brief]
        return f"{self.title}: " + ", ".join([*known, *([f"formulas {', '.join(formulas)}"] if formulas else [])])

    def bibtex(self) -> str:
        """BibTeX of the sources."""
        from hermitex.show.cite import bibtex

        return bibtex([k for k in self.source.values() if k])


def quantity_latex(name: str) -> str:
    r"""The LaTeX of a quantity: a letter (ell, q, theta) as one, a word (rate, q_min) as words.

    >>> quantity_latex("ell"), quantity_latex("q_min"), quantity_latex("bias")
    ('\\ell', 'q_{min}', '\\text{bias}')
    """
    if len(name.split("_")[0]) == 1 or name in ("ell", "theta", "eta_c"):
        return letter(name)
    return rf"\text{{{name.replace('_', ' ')}}}"


def _latex(value: Any) -> str:
    return rf"\text{{{tex(value)}}}" if isinstance(value, str) else latex(value)


@dataclass(frozen=True)
class Regime:
    """A cell of a phase diagram: its name, the inequalities (each >= 0) that bound it, and the formulas that hold in it."""

    name: str
    inside: tuple[Expr, ...]
    values: Mapping[str, Expr]


@dataclass(frozen=True)
class Border:
    """Two regimes that meet on a line, and the line: {symbol: its value there}."""

    regimes: tuple[str, str]
    line: Mapping[Symbol, Expr]


@dataclass(frozen=True, eq=False, repr=False)
class Regimes(Shown):
    """Formulas that change from cell to cell; `.piecewise(name)`, `.at(numbers)`, `.continuity()`."""

    title: str
    regimes: tuple[Regime, ...]
    borders: tuple[Border, ...]
    source: str = ""

    def piecewise(self, name: str) -> Piecewise:
        """The formula as one Piecewise, a case for each regime in their order."""
        cases = ((sympify(r.values[name], strict=True), And(*(e >= 0 for e in r.inside))) for r in self.regimes)
        return Piecewise(*cases, evaluate=False)

    def at(self, numbers: Mapping[Symbol, Any]) -> Regime:
        """The (first) regime that holds at numbers."""
        for r in self.regimes:
            if all(e.subs(numbers).is_extended_nonnegative for e in r.inside):
                return r
        raise BadInput(f"{self.title}: no regime holds at {', '.join(f'{s} = {v}' for s, v in numbers.items())}")

    def continuity(self) -> dict[str, dict[str, Expr]]:
        """{"a | b": {name: difference of the two formulas on the line where a and b meet}}: continuous where all are 0."""
        by_name = {r.name: r for r in self.regimes}
        found = {}
        for border in self.borders:
            a, b = (by_name[n] for n in border.regimes)
            gaps = {n: sympify(a.values[n] - b.values[n], strict=True) for n in a.values}
            found[f"{a.name} | {b.name}"] = {n: simplify(gap.subs(border.line).expand()) for n, gap in gaps.items()}
        return found

    @property
    def continuous(self) -> bool:
        """True if every difference on every border was proved to be 0."""
        return all(gap == 0 for gaps in self.continuity().values() for gap in gaps.values())

    def to_dict(self) -> dict[str, Any]:
        """The regimes with their bounds and formulas, and what proves continuity."""
        cells = [{"name": r.name, "inside": [f"{plain(e)} >= 0" for e in r.inside], **{n: plain(v) for n, v in r.values.items()}}
                 for r in self.regimes]
        return {"title": self.title, "regimes": cells, "continuity": plain(self.continuity()), "continuous": self.continuous}

    def latex(self) -> str:
        """Every formula as a Piecewise, an align block."""
        lines = [rf"  {quantity_latex(n)} &= {latex(self.piecewise(n))}" for n in self.regimes[0].values]
        return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"

    def _summary(self) -> str:
        return f"{self.title}: {', '.join(r.name for r in self.regimes)}"

    def bibtex(self) -> str:
        """BibTeX of the source."""
        from hermitex.show.cite import bibtex

        return bibtex([self.source] if self.source else [])

    def plot(self, across: tuple[Symbol, Sequence[float]], up: tuple[Symbol, Sequence[float]], ax: Axes | None = None,
             rest: Mapping[Symbol, Any] | None = None) -> Axes:
        """The cells as colours over a grid of two symbols, each named where it is widest; `rest` fixes the other symbols."""
        from hermitex.show.plots import cells

        (x, xs), (y, ys) = across, up
        here = [(r.name, [_affine(e.subs(rest or {}), x, y) for e in r.inside]) for r in self.regimes]
        table = [[next((i for i, (_, bounds) in enumerate(here) if all(c + a*u + b*v >= -1e-12 for c, a, b in bounds)), -1)
                  for u in xs] for v in ys]
        return cells(xs, ys, table, [r.name for r in self.regimes], ax, xlabel=math_text(x), ylabel=math_text(y))


def exact(name: str, value: Any) -> Expr:
    """A number, a text or an expression as an exact expression: 0.3 is 3/10, "inf" is oo.

    >>> exact("ell", 0.3), exact("q", "2/3"), exact("q", float("inf"))
    (3/10, 2/3, oo)
    """
    if value is oo or (isinstance(value, float | str) and value in (float("inf"), "inf", "oo")):
        return oo
    if isinstance(value, str) and value.isidentifier() and value not in ("nan", "zoo"):
        return FIELD.get(value) or Symbol(value, positive=True)
    try:
        return standard(expression(value))
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def math_text(s: Symbol) -> str:
    """A symbol as a label of an axis."""
    return f"${latex(s)}$"


def _affine(e: Expr, x: Symbol, y: Symbol) -> tuple[float, float, float]:
    """c, a, b of an inequality c + a x + b y >= 0 that is linear in the two symbols of a picture."""
    e = e.expand()
    return float(e.subs({x: 0, y: 0})), float(e.coeff(x)), float(e.coeff(y))
