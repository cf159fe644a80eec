"""hx.exponents([...]): the exponents of several targets, a row each; as text, LaTeX, CSV, a DataFrame, HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from hermitex.exponents.result import Exponents
from hermitex.show.columns import Tabled
from hermitex.show.display import Shown, counted, latex
from hermitex.show.escape import tex

_KEYS = ("information_exponent", "leap_exponent", "generative_exponent")


@dataclass(frozen=True, repr=False)
class ExponentsTable(Tabled, Shown, Sequence[Exponents]):
    """The answers in the order asked: `table[0]` is an `Exponents`, `print(table)` the table of the command line.

    "-" is what does not exist, "?" what was not decided; the notes of the row say why.

    Guarantee: as of each `Exponents`. See docs/promise.md.

    >>> from hermitex.face.exponents_with_stages import exponents
    >>> table = exponents(["z", "z**2"])
    >>> len(table), table[1].information_exponent, table.table()["leap_exponent"]
    (2, 2, [1, 2])
    """

    rows: tuple[Exponents, ...]

    @overload
    def __getitem__(self, index: int) -> Exponents: ...
    @overload
    def __getitem__(self, index: slice) -> ExponentsTable: ...
    def __getitem__(self, index: int | slice) -> Exponents | ExponentsTable:
        return ExponentsTable(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Exponents]:
        return iter(self.rows)

    def __str__(self) -> str:
        from hermitex.show.tables import text_table

        return text_table([row.table_row() for row in self.rows], Exponents.HEADERS, columns=None)

    def table(self) -> dict[str, list[Any]]:
        """Columns by name; numbers are numbers, None what does not exist or was not decided."""
        found = [row.to_dict() for row in self.rows]
        columns: dict[str, list[Any]] = {"target": [f["target"] for f in found]}
        columns |= {k: [f[k] for f in found] for k in _KEYS}
        columns |= {k: [f["weak_recovery"][k] for f in found] for k in ("class", "alpha_c", "alpha_c_exact", "alpha_c_error")}
        columns |= {k: [f["complexity"][k] for f in found] for k in found[0]["complexity"]} if found else {}
        return columns

    def to_dict(self) -> dict[str, Any]:
        """{"targets": [the JSON of each]}."""
        return {"targets": [row.to_dict() for row in self.rows]}

    def to_latex(self) -> str:
        """A tabular for a paper: the target, its three exponents, the class, alpha_c, and four rates."""
        body = [" & ".join((f"${latex(row.target)}$", *map(_cell, row.table_row()[1:]))) + r" \\" for row in self.rows]
        head = " & ".join(tex(h) if h != "alpha_c" else r"$\alpha_c$" for h in Exponents.HEADERS) + r" \\ \hline"
        return "\n".join([r"\begin{tabular}{l" + "c"*(len(Exponents.HEADERS) - 1) + "}", head, *body, r"\end{tabular}"])

    def bibtex(self) -> str:
        """BibTeX of the papers whose results were used."""
        entries = [e for row in self.rows for e in row.bibtex().split("\n\n")]
        return "\n\n".join(dict.fromkeys(entries))

    def _summary(self) -> str:
        return counted(len(self.rows), "target")

    def _html(self) -> str:
        cell = '<td style="border:none;text-align:left;white-space:nowrap">'
        head = "".join(f'<th style="text-align:left">{h}</th>' for h in Exponents.HEADERS)
        body = "".join("<tr>" + "".join(f"{cell}{c}</td>" for c in row.table_row(formulas=True)) + "</tr>" for row in self.rows)
        return f'<table style="border:none"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(text: str) -> str:
    """A cell of the text table in LaTeX: powers of d and numbers as formulas."""
    if text == "inf":
        return r"$\infty$"
    if text.startswith("d"):
        return f"${text.replace('^(', '^{').replace(')', '}').replace(' log ', chr(92) + 'log ')}$"
    if text.replace(".", "").isdigit():
        return f"${text}$"
    return tex(text).replace(">=", r"$\ge$")
