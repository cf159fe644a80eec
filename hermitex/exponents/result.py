"""An Exponents shows itself: one line, a row of a table, the proofs in words, HTML in a notebook, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from hermitex.errors import BadInput, HermitexError
from hermitex.exponents.channels import channel
from hermitex.exponents.complexity import RATES
from hermitex.exponents.directions.direction_text import directions_words, normals_apart, staircase_words
from hermitex.exponents.explain import explain
from hermitex.exponents.findings import Findings
from hermitex.exponents.stages import Threshold, alpha_latex, alpha_text, alpha_words
from hermitex.hints import Axes, DataFrame
from hermitex.show.display import latex, math, shorten
from hermitex.symbolic.budget import DEFAULT_BUDGET
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.parsing import parse, to_text

if TYPE_CHECKING:
    from hermitex.exponents.label_map import LabelMap
    from hermitex.exponents.unlearned import Unlearned

_EXPONENTS = ("information", "leap", "generative")
_SHOWN = ("kernel", "one_pass_sgd", "batch_reuse", "amp")  # the rates of a table


@dataclass(frozen=True, repr=False)
class Exponents(Findings):
    """The exponents of a target g(z), its class and sample complexities, with the proof of each number.

    An exponent that does not exist, or that could not be decided, is None, and `notes` says which and why. The directions of
    the staircases are exact; `numbers` are those of their entries that are integrals without closed form.

    Guarantee: every exponent rests on proofs that coefficients are zero or not zero, or is None (undetermined). `alpha_c` is
    exact or has an error. A later direction's `>=` is a lower bound. See docs/promise.md.

    >>> from hermitex.face.exponents_with_stages import exponents
    >>> found = exponents("z**3 - 3*z")
    >>> found.information_exponent, found.generative_exponent, found.complexity["one_pass_sgd"]
    (3, 1, 'd^2')
    """

    HEADERS = ("target", "information", "leap", "generative", "class", "alpha_c", "kernel", "one-pass SGD", "reusing data",
               "AMP")

    def table_row(self, *, formulas: bool = False) -> tuple[str, ...]:
        """One line of the table of several targets; the columns are `HEADERS`. formulas: as a notebook typesets them."""
        t, absent = self.threshold, self.absent("class")
        if formulas:
            rates = [self.complexity[k] for k in _SHOWN]
            return (math(self.target), *self._three(), t.kind or self.absent("class"), _alpha_html(t, short=True, absent=absent),
                    *(rate or self.absent(k) if rate in (None, "none", "open") else math(power_latex(rate))
                      for k, rate in zip(_SHOWN, rates, strict=True)))
        return (to_text(self.target), *self._three(), t.kind or self.absent("class"), alpha_text(t, short=True, absent=absent),
                *(self.word(k, self.complexity[k]) for k in _SHOWN))

    def word(self, name: str, value: Any, *, long: bool = False) -> str:
        """A number in words; for None, the words of `absent`."""
        return self.absent(name, long=long) if value is None else str(value)

    def _three(self) -> list[str]:
        return [self.word(n, getattr(self, f"{n}_exponent")) for n in _EXPONENTS]

    def explain(self) -> str:
        """Each number with its theorem, its hypotheses, its certificate and its source, as plain text."""
        return explain(self)

    def label_map(self, *, budget: float | None = DEFAULT_BUDGET) -> LabelMap:
        """T*(y) = 1 - E[z z^T|y]^-1, y the label that is observed: the best label map of a spectral estimator -> `LabelMap`.

        It is a formula, a function of arrays, a picture (`.plot()`) and a file that needs NumPy alone (`.export("map.py")`);
        `.alpha_c` is where the estimator begins to find a direction, `.squared_overlap(alpha)` what it has found above.

        budget : CPU seconds, None for all that it takes.

        Raises
        ------
        NoClosedForm : the law of the label is not found. BadInput : the label does not depend on z. BudgetExceeded.

        >>> from hermitex.face.exponents_with_stages import exponents
        >>> found = exponents("abs(z)").label_map()
        >>> found.formula, [float(x) for x in found([1.0, 2.0]).round(9)], round(found.alpha_c, 9)
        (1 - 1/y**2, [0.0, 0.75], 0.5)
        """
        from hermitex.exponents.label_map import label_map

        of = self.over_normals or self
        with deadline(budget):
            law = channel(of.channel) if of.law is None else of.law
            found = label_map(of.target, law, of.variables, alpha_text(self.threshold, absent=""))
        return found if of is self else replace(found, target=self.target, variables=tuple(normals_apart(self.variables).values()))

    def unlearned(self, *, steps: int, budget: float | None = DEFAULT_BUDGET) -> Unlearned:
        """E Var(g|P_U z), g = E[Y|z], U what the first `steps` stages of the staircase find: what is missed if U alone is seen.

        It is a floor for readouts of P_U z (output weights of one size), not for ridge at n, p ~ d, which also fits the part linear
        in the remaining directions with coefficients that depend on P_U z: `sharp` is the floor of that.

        steps : 0, 1, ...: a stage of order k takes n ~ d^k samples. More stages than there are count as all of them.

        Raises
        ------
        BadInput : E[Y|z] is not known or not square integrable, or the staircase was not decided so far. NoClosedForm.

        >>> from hermitex.face.exponents_with_stages import exponents
        >>> found = exponents("z1 + z1*z2").unlearned(steps=1)
        >>> found.variance, found.sharp
        (1, 0)
        """
        from hermitex.exponents.unlearned import after_steps

        found = after_steps(self.over_normals or self, steps, budget)
        rows = tuple(tuple(row) for stage in self.staircase[:steps] for row in stage["directions"])
        return found if self.over_normals is None else replace(found, directions=rows)

    def bibtex(self) -> str:
        """BibTeX of the papers whose results were used."""
        from hermitex.show.cite import bibtex

        several = ["abbe2023", "dandi2023giant", "damian2025"] if len(self.variables) > 1 else []
        keys = ["benarous2021", *several, "damian2024", "troiani2025", *(s for r in RATES.values() for s in r.sources)]
        return bibtex(list(dict.fromkeys(keys)))

    def to_dataframe(self) -> DataFrame:
        """The certificates as a pandas DataFrame."""
        from hermitex.show.tables import to_dataframe

        rows = [c.to_dict() for c in self.certificates]
        return to_dataframe({k: [r[k] for r in rows] for k in ("quantity", "order", "status", "value", "how")})

    def plot(self, ax: Axes | None = None) -> Axes:
        """The staircases: over the directions in the order they are found, the order of the tensor that finds them -> axes.

        One line for the information exponent and leap (one pass over the data), one for the generative exponent (data used again).
        """
        from hermitex.show.mathtext import label
        from hermitex.show.plots import staircases

        brief = 28  # characters of a direction that fit next to a step of the picture
        def drawn(words: str) -> str:
            found = _formula(words) if len(words) <= brief else ""
            return label(found, words) if found else shorten(words, brief)

        lines = {"one pass over the data": self.staircase, "using the data again": self.generative_staircase}
        steps = {name: [(s["order"], drawn(directions_words([row], self.variables, self.numbers, most=brief)))
                        for s in stages for row in s["directions"]] for name, stages in lines.items() if stages}
        if not steps:
            raise BadInput("plot: no order was found for any direction; the notes say why")
        text = to_text(self.target)
        title = label(latex(self.target), text) if len(text) <= 60 else f"{text[:57]}..."
        return staircases(steps, ax, title=title)

    def __repr__(self) -> str:
        information, leap, generative = self._three()
        leap = f"leap {leap}, " if len(self.variables) > 1 else ""
        return (f"Exponents({to_text(self.target)}: information {information}, {leap}generative {generative}, "
                f"{self.threshold.kind or 'no class'}"
                f"{alpha_words(self.threshold)})")

    def _stairs(self) -> list[tuple[str, str]]:
        """The staircases in words, where there is more than one variable."""
        if len(self.variables) < 2:
            return []
        pairs = (("staircase", self.staircase), ("generative staircase", self.generative_staircase))
        return [(name, _climb(staircase_words(stages, self.variables, self.numbers))) for name, stages in pairs]

    def _html(self) -> str:
        unknown = self.absent("class", long=True)
        numbers = [*((f"{n} exponent", self.word(n, getattr(self, f"{n}_exponent"), long=True)) for n in _EXPONENTS),
                   *self._stairs(), ("weak recovery", self.threshold.kind or unknown),
                   (math(r"\alpha_c"), _alpha_html(self.threshold, absent=unknown))]
        rates = [(f"{escape(RATES[key].algorithm)}", math(power_latex(rate)) if rate else self.absent(key, long=True))
                 for key, rate in self.complexity.items()]
        proofs = [c.row for c in self.certificates]
        channel = "" if self.channel == "deterministic" else f", channel {escape(self.channel)}"
        parts = [_table([("target", f"{math(self.target)}{channel}"), *numbers]),
                 "<details><summary>samples asked for</summary>" + _table(rates) + "</details>"]
        if proofs:
            parts.append("<details><summary>certificates</summary>" + _table(proofs) + "</details>")
        if self.notes:
            parts.append("<ul>" + "".join(f"<li>{escape(n)}</li>" for n in self.notes) + "</ul>")
        return "".join(parts)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    cell = '<td style="border:none;text-align:left">'
    body = "".join("<tr style='background:none'>" + "".join(f"{cell}{c}</td>" for c in row) + "</tr>" for row in rows)
    return f'<table style="border:none"><tbody>{body}</tbody></table>'


def _alpha_html(t: Threshold, *, short: bool = False, absent: str = "-") -> str:
    """Every stage's threshold as a formula."""
    return math(found) if (found := alpha_latex(t, short=short)) else absent


def _climb(words: str) -> str:
    """1: z1, z2;  2: z3 as formulas: the directions, each stage with its order."""
    stages = []
    for stage in filter(None, words.split(";  ")):
        order, _, forms = stage.partition(": ")
        stages.append(f"{math(found) if (found := _formula(forms)) else escape(forms)} (order {escape(order)})")
    return ", then ".join(stages) or "-"


def _formula(forms: str) -> str:
    """Directions in words as LaTeX; nothing for those with rounded numbers: as a formula 0.652964 would be a fraction."""
    try:
        return "" if "." in forms else r",\; ".join(latex(parse(form)) for form in forms.split(", "))
    except HermitexError:
        return ""


def power_latex(rate: str) -> str:
    """A rate of `complexity` as LaTeX.

    >>> print(power_latex("d^(3/2)"), power_latex("d log d"))
    d^{3/2} d\\log d
    """
    if rate in ("none", "open"):
        return rf"\text{{{rate}}}"
    return rate.replace("^(", "^{").replace(")", "}").replace(" log ", r"\log ")

