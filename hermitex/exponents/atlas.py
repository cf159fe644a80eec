"""hx.atlas(): exponents, classes, thresholds and rates of the targets that papers use, coefficients of activations; kept answers.

The rows are answers of `hx.exponents` and `hx.expand`, computed when a version is made and kept next to this file; a test computes
them anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from hermitex.errors import UnknownName
from hermitex.exponents.result import Exponents, power_latex
from hermitex.exponents.stages import alpha_text
from hermitex.show.columns import Tabled
from hermitex.show.display import Shown, counted, latex
from hermitex.show.escape import tex
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parsing import parse, to_text
from hermitex.symbolic.series.expansion import EvaluatedCoefficient, expand

CERTIFIED = ("information_exponent", "leap_exponent", "generative_exponent")
_ORDER = 4  # of the last coefficient of an activation: beyond it nobody's hand computation goes
_READABLE = 120  # characters of a closed form in a cell of a table
_HEADS = ("target", "channel", "info", "leap", "gen", "class", "alpha_c", "SGD", "CSQ", "reuse", "AMP")


def of_target(text: str, answer: Exponents) -> dict[str, Any]:
    """What the atlas keeps of an answer: exponents, class, threshold (as a number, and with the digits that hold), rates, and how
    each exponent is shown.
    """
    found = answer.to_dict()
    kept = {"target": text, "channel": found["channel"], **{name: found[name] for name in CERTIFIED}}
    kept |= {name: found["weak_recovery"][name] for name in ("class", "alpha_c", "alpha_c_exact")}
    kept["threshold"] = alpha_text(answer.threshold, short=True, absent=answer.absent("class"))
    why = [f"{c['quantity']} {'= 0' if c['status'] == 'zero' else '!= 0'}: {c['how']}" for c in found["certificates"]]
    undecided = [name for name in CERTIFIED if found[name] is None and answer.absent(name.removesuffix("_exponent")) == "?"]
    return {**kept, "complexity": found["complexity"], "certificate": why, "open": undecided}


def of_activation(name: str) -> dict[str, Any]:
    """c_0, ..., c_4 = E sigma He_k and E sigma^2 of an activation: closed forms where there are any, and numbers."""
    text = "abs(z)" if name == "abs" else f"{name}(z)"
    found = expand(text, order=_ORDER, basis="monic")
    forms = {f"c_{k}": found.coefficients[k] for k in range(_ORDER + 1)} | {"norm": found.norm}
    said = {key: None if form.has(Expectation) else to_text(form) for key, form in forms.items()}
    return {"activation": name, **{key: {"exact": exact if exact and len(exact) <= _READABLE else None,
                                         "value": _number(found.numeric(forms[key]))} for key, exact in said.items()}}


@dataclass(frozen=True, repr=False)
class Atlas(Tabled, Shown, Sequence[Mapping[str, Any]]):
    """Kept answers, a row a target: `print(atlas)`, `atlas["sign(z1*z2)"]`, `.table()`, `.to_csv()`, `.to_latex()`, `.bibtex()`.

    targets : rows with `family`, `target`, `channel`, the three exponents, `class`, `alpha_c`, `complexity`, `certificate` and
        `treated_in`, the papers that treat such targets
    activations : rows with `activation`, c_0, ..., c_4 (monic) and the norm E sigma^2, each {"exact": text or None, "value": v}

    Guarantee: as of `hx.exponents` and `hx.expand`, whose answers the rows are. See docs/promise.md.
    """

    targets: tuple[Mapping[str, Any], ...]
    activations: tuple[Mapping[str, Any], ...]

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.targets[key]
        asked, _, channel = (part.strip() for part in key.partition(";"))
        wanted = parse(asked) if asked else None
        for row in self.targets:
            if parse(row["target"]) == wanted and channel in ("", row["channel"]):
                return row
        raise UnknownName(key[:60], [_named(row) for row in self.targets], "target of the atlas")

    def __len__(self) -> int:
        return len(self.targets)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.targets)

    def family(self, words: str) -> Atlas:
        """The rows whose family holds the words, as in `hx.atlas().family("committees")`."""
        chosen = tuple(row for row in self.targets if words in row["family"])
        if not chosen:
            raise UnknownName(words[:60], list(dict.fromkeys(row["family"] for row in self.targets)), "family")
        return Atlas(chosen, self.activations)

    def table(self) -> dict[str, list[Any]]:
        """Columns by name; None is what does not exist or was not decided, for the rates by `open`."""
        plain = [n for n in self.targets[0] if n not in ("complexity", "certificate", "open", "treated_in", "threshold")]
        columns = {name: [row[name] for row in self.targets] for name in plain}
        columns |= {name: [row["complexity"][name] for row in self.targets] for name in self.targets[0]["complexity"]}
        return {**columns, "treated_in": [", ".join(row["treated_in"]) for row in self.targets]}

    def to_dict(self) -> dict[str, Any]:
        """{"targets": rows, "activations": rows}."""
        return {"targets": [dict(row) for row in self.targets], "activations": [dict(row) for row in self.activations]}

    def __str__(self) -> str:
        from hermitex.show.tables import text_table

        return text_table([_cells(row) for row in self.targets], _HEADS, columns=None)

    def to_latex(self) -> str:
        """A tabular for a paper."""
        rows = [" & ".join((f"${latex(parse(r['target']))}$", *map(tex, _cells(r)[1:]))) + r" \\" for r in self.targets]
        return "\n".join([r"\begin{tabular}{" + "l"*len(_HEADS) + "}", " & ".join(map(tex, _HEADS)) + r" \\ \hline", *rows,
                          r"\end{tabular}"])

    def bibtex(self) -> str:
        """BibTeX of the papers that treat such targets."""
        from hermitex.show.cite import bibtex

        return bibtex(dict.fromkeys(key for row in self.targets for key in row["treated_in"]))

    def markdown(self) -> str:
        """The page of the documentation: a table for each family, with the certificates below it, and that of the activations."""
        parts = []
        for family in dict.fromkeys(row["family"] for row in self.targets):
            rows = [row for row in self.targets if row["family"] == family]
            parts += [f"## {family[0].upper()}{family[1:]}", _grid(_HEADS, [_shown(row) for row in rows]),
                      "Papers that treat such targets: " + ", ".join(f"{{cite:t}}`{key}`" for key in rows[0]["treated_in"]) + ".",
                      "<details><summary>How each exponent is shown</summary>", "\n".join(map(_proof, rows)), "</details>"]
        heads = ("activation", *(f"$c_{k}$" for k in range(_ORDER + 1)), r"$\mathbb{E}\,\sigma^2$")
        table = [[f"`{row['activation']}`", *(_form(v) for n, v in row.items() if n != "activation")] for row in self.activations]
        return "\n\n".join([*parts, "## Coefficients of activations",
                            r"$c_k = \mathbb{E}[\sigma(z)\,\mathrm{He}_k(z)]$, so that $\sigma = \sum_k c_k/k!\,\mathrm{He}_k$.",
                            _grid(heads, table)])

    def _summary(self) -> str:
        return f"{counted(len(self.targets), 'target')}, {counted(len(self.activations), 'activation')}"

    def _html(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f'<{tag} style="text-align:left;white-space:nowrap">{c}</{tag}>' for c in cells) + "</tr>"

        body = "".join(line([escape(c.strip("`"), quote=False) for c in _shown(row)], "td") for row in self.targets)
        return f"<table>{line(_HEADS, 'th')}{body}</table>"


def atlas() -> Atlas:
    """Exponents, classes, thresholds and rates of targets that papers use, and closed coefficients of activations, as a table.

    Nothing is computed: the rows are answers of `hx.exponents` that this version keeps. For another target ask `hx.exponents`.

    Returns
    -------
    Atlas : `print(atlas)`, `atlas["sign(z1*z2)"]`, `.family(words)`, `.table()`, `.to_dataframe()`, `.to_csv(path)`, `.to_latex()`,
    `.bibtex()`, `.activations`.

    Guarantee
    ---------
    As of `hx.exponents` and `hx.expand`, whose answers the rows are. See docs/promise.md.

    Examples
    --------
    >>> found = atlas()
    >>> row = found["sign(z1*z2)"]
    >>> row["generative_exponent"], row["class"], row["alpha_c_exact"]
    (2, 'easy', 'pi**2/4')
    """
    kept = json.loads(files("hermitex.exponents").joinpath("atlas.json").read_text(encoding="utf-8"))
    return Atlas(tuple(kept["targets"]), tuple(kept["activations"]))


def _number(found: EvaluatedCoefficient) -> float:
    return 0.0 if abs(found.value) <= found.error else float(found.value)


def _named(row: Mapping[str, Any]) -> str:
    return row["target"] if row["channel"] == "deterministic" else f"{row['target']}; {row['channel']}"


def _cells(row: Mapping[str, Any]) -> list[str]:
    """One line of the table in plain text: "-" is what does not exist, "?" what was not decided."""
    def number(name: str) -> str:
        return str(row[name]) if row[name] is not None else "?" if name in row["open"] else "-"

    rates = [row["complexity"][name] or "-" for name in ("one_pass_sgd", "csq", "batch_reuse", "amp")]
    channel = "" if row["channel"] == "deterministic" else row["channel"]
    return [row["target"], channel, *map(number, CERTIFIED), row["class"] or "-", row["threshold"], *rates]


def _shown(row: Mapping[str, Any]) -> list[str]:
    """The same with formulas between dollars."""
    target, channel, *numbers, kind, threshold, one_pass, csq, reuse, amp = _cells(row)
    if row["alpha_c_exact"]:
        threshold = f"${latex(parse(row['alpha_c_exact']))}$"
    rates = [r if r in ("-", "none", "open") else f"${power_latex(r)}$" for r in (one_pass, csq, reuse, amp)]
    return [f"`{target}`", channel, *numbers, kind, threshold, *rates]


def _proof(row: Mapping[str, Any]) -> str:
    return f"- `{_named(row)}`: " + "; ".join(row["certificate"])


def _form(entry: Mapping[str, Any]) -> str:
    return f"${latex(parse(entry['exact']))}$" if entry["exact"] else f"{entry['value']:.10g}"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without the columns that are empty."""
    held = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    lines = [[cells[i] for i in held] for cells in (heads, ["---"]*len(heads), *rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\vert ") for cell in one) + " |" for one in lines)
