"""hx.exponents(g): information, leap and generative exponents, the weak-recovery threshold, rates, and their proofs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mpmath import mpf
from sympy import Expr, Symbol

from hermitex import symbols
from hermitex.errors import BadInput, BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.channels import channel as read_channel
from hermitex.exponents.complexity import RATES, complexity
from hermitex.exponents.generative import generative_exponent
from hermitex.exponents.information import Found, information_exponent
from hermitex.exponents.levels import constant_value, polynomial
from hermitex.exponents.weak_recovery import Threshold, weak_recovery
from hermitex.show.display import Shown
from hermitex.symbolic.budget import budget as time_budget

DEFAULT_BUDGET = 60.0
Stage = dict[str, Any]


@dataclass(frozen=True)
class Exponents(Shown):
    """What a target g(z) asks of an algorithm, with the proof of each number.

    An exponent that does not exist, or that could not be decided, is None, and `notes` says which and why.
    """

    target: Expr
    variables: tuple[str, ...]
    channel: str
    square_integrable: bool | None
    information_exponent: int | None
    leap_exponent: int | None
    leap_coordinate: int | None
    staircase: tuple[Stage, ...]
    generative_exponent: int | None
    generative_staircase: tuple[Stage, ...]
    threshold: Threshold
    complexity: dict[str, str | None]
    certificates: tuple[Certificate, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def weak_recovery(self) -> dict[str, Any]:
        """{class, alpha_c, alpha_c_exact, stages} as on the command line."""
        from hermitex.symbolic.parsing import to_text

        t = self.threshold
        alpha = None if t.alpha_c is None else float(t.alpha_c)
        exact = None if t.exact is None else to_text(t.exact)
        stages = [] if alpha is None else [
            {"alpha_c": alpha, "directions": stage["directions"], "conditional": False} for stage in self.generative_staircase]
        return {"class": t.kind, "alpha_c": alpha, "alpha_c_exact": exact, "stages": stages}

    @property
    def alpha_c(self) -> mpf | None:
        """The weak-recovery threshold to 20 digits or so; 0 if trivial, None if infinite or not known."""
        return self.threshold.alpha_c

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `hermitex exponents --json`."""
        from hermitex.symbolic.parsing import to_text

        return {
            "target": to_text(self.target), "variables": list(self.variables), "channel": self.channel,
            "square_integrable": self.square_integrable, "information_exponent": self.information_exponent,
            "leap_exponent": self.leap_exponent, "leap_coordinate": self.leap_coordinate,
            "staircase": list(self.staircase), "generative_exponent": self.generative_exponent,
            "generative_staircase": list(self.generative_staircase), "weak_recovery": self.weak_recovery,
            "complexity": dict(self.complexity), "certificates": [c.to_dict() for c in self.certificates],
            "notes": list(self.notes),
        }

    # -- for people ------------------------------------------------------------------------------------------------
    HEADERS = ("target", "information", "leap", "generative", "class", "alpha_c", "one-pass SGD", "reusing data")

    def table_row(self) -> tuple[str, ...]:
        """One line of the table of several targets; the columns are `HEADERS`."""
        t = self.threshold
        alpha = "-" if t.alpha_c is None else str(t.exact) if t.exact is not None and len(str(t.exact)) < 12 else f"{float(t.alpha_c):.10g}"
        if t.kind == "hard":
            alpha = "inf"
        return (str(self.target), _word(self.information_exponent), _word(self.leap_exponent), _word(self.generative_exponent),
                t.kind or "-", alpha, _word(self.complexity["one_pass_sgd"]), _word(self.complexity["batch_reuse"]))

    def explain(self) -> str:
        """Each number with its theorem, its hypotheses, its certificate and its source, as plain text."""
        from hermitex.show.cite import cite

        lines = [f"target      {self.target}   channel {self.channel}   variables {', '.join(self.variables)}", ""]
        for title, value, of_mean, theorem, keys in (
            ("information exponent", self.information_exponent, True,
             "l = min{k >= 1: E[Y He_k(z)] != 0}; asks for E[Y|z] in L2", ("BAJ21",)),
            ("generative exponent", self.generative_exponent, False,
             "k* = min{k >= 1: E[E[h_k(z)|Y]^2] != 0} = least information exponent of T(Y) over label maps T", ("DPLB24",)),
        ):
            lines.append(f"{title}: {_word(value)}")
            lines.append(f"  {theorem}  [{'; '.join(cite(k) for k in keys)}]")
            lines += [f"  {c}" for c in self.certificates if c.quantity.startswith("c_") == of_mean]
            lines.append("")
        t = self.threshold
        lines.append(f"weak recovery: {t.kind or 'undetermined'}" + _alpha_words(t))
        lines.append(f"  1/alpha_c = E[(E[z^2|Y] - 1)^2] where E[z|Y] = 0; n = alpha d, Bayes-optimal AMP  [{cite('T24')}]")
        lines.append("")
        lines.append("sample complexities")
        for key, rate in RATES.items():
            lines.append(f"  {key:15s} {_word(self.complexity[key]):10s} {rate.statement}")
            lines.append(f"  {'':26s} hypotheses: {rate.hypotheses}  [{'; '.join(cite(k) for k in rate.sources)}]")
        if self.notes:
            lines += ["", "notes", *[f"  {n}" for n in self.notes]]
        return "\n".join(lines)

    def bibtex(self) -> str:
        """BibTeX of the papers whose results were used."""
        from hermitex.show.cite import bibtex

        keys = ["BAJ21", "DPLB24", "T24", *(s for r in RATES.values() for s in r.sources)]
        return bibtex(list(dict.fromkeys(keys)))

    def to_dataframe(self) -> Any:
        """The certificates as a pandas DataFrame."""
        from hermitex.show.tables import to_dataframe

        rows = [c.to_dict() for c in self.certificates]
        return to_dataframe({k: [r[k] for r in rows] for k in ("quantity", "order", "status", "value", "how")})

    def __repr__(self) -> str:
        return (f"Exponents({self.target}: information {_word(self.information_exponent)}, generative "
                f"{_word(self.generative_exponent)}, {self.threshold.kind or 'no class'}{_alpha_words(self.threshold)})")

    def _html(self) -> str:
        from hermitex.show.display import formula_table, latex

        t = self.threshold
        alpha = "" if t.alpha_c is None else (latex(t.exact) if t.exact is not None else f"{float(t.alpha_c):.12g}")
        rows = [("g(z)", latex(self.target)), (r"\text{information exponent}", _word(self.information_exponent)),
                (r"\text{generative exponent}", _word(self.generative_exponent)),
                (r"\alpha_c", r"\infty" if t.kind == "hard" else alpha or "-"),
                *((r"\text{" + c.quantity.replace("_", r"\_") + "}", _certificate_latex(c)) for c in self.certificates)]
        return formula_table(rows)


def _certificate_latex(c: Certificate) -> str:
    from hermitex.show.display import latex

    relation = {"zero": "= 0", "nonzero": r"\neq 0", "undetermined": r"\;?"}[c.status]
    if c.status == "nonzero" and c.value is not None:
        relation = f"= {latex(c.value)}"
    return rf"{relation} \quad \text{{{c.how.replace('_', chr(92) + '_').replace('^', ' ')}}}"


def _word(value: Any) -> str:
    return "-" if value is None else str(value)


def _alpha_words(t: Threshold) -> str:
    if t.kind == "easy" and t.alpha_c is not None:
        return f", alpha_c = {t.exact} = {float(t.alpha_c):.12g}" if t.exact is not None else f", alpha_c = {float(t.alpha_c):.12g}"
    return ", alpha_c = 0" if t.kind == "trivial" else ""


def exponents(target: Any, channel: Any = None, *, variables: Any = None, budget: float | None = DEFAULT_BUDGET) -> Exponents:
    """Every exponent of a target g(z), its class, its sample complexities, and a certificate for each statement.

    information exponent l = min{k >= 1: E[Y He_k] != 0};  generative exponent k* = min{k >= 1: E[E[h_k|Y]^2] != 0};
    1/alpha_c = E[(E[z^2|Y] - 1)^2].

    Parameters
    ----------
    target : expression or text in one standard normal (z, or z1, ...)
    channel : how the label is drawn given g(z): None (y = g), "gaussian:1/4", "flip:1/10", "sign:1", "random_sign",
        "poisson", "bernoulli", "multiplicative", or a `Channel`
    variables : names that count as variables though the target may not depend on them
    budget : seconds of wall time; what it does not allow is reported undetermined

    Returns
    -------
    Exponents

    Raises
    ------
    BadInput : a target in several variables, with free parameters, or that does not fit the channel.

    References: Ben Arous et al. (2021); Damian et al. (2024); Troiani et al. (2024).

    Examples
    --------
    >>> exponents("z**3 - 3*z")
    Exponents(z**3 - 3*z: information 3, generative 1, trivial, alpha_c = 0)
    """
    from hermitex.symbolic.parsing import expression, parse

    declared = _declared(variables)
    g = parse(target, variables=declared or None) if isinstance(target, str) else expression(target)
    law = read_channel(channel)
    names, x = _variable(g, law, declared)
    with time_budget(budget):
        return _exponents(g, law, names, x)


def _declared(variables: Any) -> list[str]:
    if variables is None:
        return []
    names = variables.split(",") if isinstance(variables, str) else [str(v) for v in variables]
    names = [n.strip() for n in names]
    bad = [n for n in names if not symbols.is_normal_name(n)]
    if bad:
        raise BadInput(f"variables: {', '.join(bad)} is not a standard normal; they are named z, or z1, z2, ...")
    return names


def _variable(g: Expr, law: Named | Channel, declared: list[str]) -> tuple[tuple[str, ...], Symbol]:
    """The names over which directions are written, and the one variable the label depends on."""
    used = list(symbols.normals(g))
    if isinstance(law, Channel):
        used += [s for s in symbols.normals(law.p) if s not in used]
    free = {s for s in g.free_symbols if s not in used}
    if free:
        raise BadInput(f"exponents: {', '.join(sorted(map(str, free)))} has no value; put a number in, the target must hold z only")
    if len(used) > 1:
        raise BadInput(f"exponents: the target holds {', '.join(map(str, used))}; one variable is answered, z or one of z1, z2, ...")
    names = tuple(declared) or tuple(s.name for s in used) or ("z",)
    x = used[0] if used else symbols.normal(names[0])
    if x.name not in names:
        raise BadInput(f"exponents: the target holds {x.name}, which is not among the variables {', '.join(names)}")
    return names, x


def _exponents(g: Expr, law: Named | Channel, names: tuple[str, ...], x: Symbol) -> Exponents:
    notes: list[str] = []
    if isinstance(law, Named):
        law.fits(g)
    mean, unknown_mean = _mean(g, law)
    labels = law.labels(g)
    parts = (labels.levels,) if labels.levels is not None else labels.probabilities
    trivial = all(constant_value(p, x) is not None for p in parts)
    degree = _degree(mean, x)
    integrable = _square_integrable(mean, x, notes)
    if unknown_mean:
        notes.append(unknown_mean)
    information = _information(mean, x, integrable, trivial, notes)
    notes += information.notes
    if trivial:
        notes.append("the label does not depend on z: no exponent exists")
        generative, threshold = Found(None), Threshold(None)
    else:
        generative = _generative(g, law, labels, information, x)
        threshold = weak_recovery(g, law, x, generative.order)
    notes += [*generative.notes, *threshold.notes]
    _hint_flint(notes, (*information.certificates, *generative.certificates))
    direction = [[int(n == x.name) for n in names]]
    first = information.order
    rates = complexity(degree=degree, square_integrable=integrable, first=first, leap=first, generative=generative.order)
    return Exponents(
        target=g, variables=names, channel=str(law) if isinstance(law, Named) else law.name, square_integrable=integrable,
        information_exponent=first, leap_exponent=first, leap_coordinate=first, staircase=_staircase(first, direction),
        generative_exponent=generative.order, generative_staircase=_staircase(generative.order, direction),
        threshold=threshold, complexity=rates, certificates=(*information.certificates, *generative.certificates),
        notes=tuple(notes))


def _staircase(order: int | None, direction: list[list[int]]) -> tuple[Stage, ...]:
    return () if order is None else ({"order": order, "directions": direction},)


def _mean(g: Expr, law: Named | Channel) -> tuple[Expr | None, str]:
    try:
        return law.mean(g), ""
    except BudgetExceeded:
        raise
    except HermitexError as err:
        return None, f"information exponent: E[Y|z] is not known ({' '.join(str(err).split())})"


def _degree(mean: Expr | None, x: Symbol) -> int | None:
    if mean is None:
        return None
    poly = polynomial(mean, x)
    if poly is not None:
        return max(poly.degree(), 0) if not poly.is_zero else 0
    return 0 if constant_value(mean, x) is not None else None


def _square_integrable(mean: Expr | None, x: Symbol, notes: list[str]) -> bool | None:
    from hermitex.symbolic.growth import integrable

    if mean is None:
        return None
    if constant_value(mean, x) is not None:
        return True
    found = integrable(mean, x, 2)
    if found is False:
        first = integrable(mean, x, 1)
        where = "in L1 but not in L2" if first else "not in L1" if first is False else "not in L2"
        notes.append(f"information exponent: the target is {where} of the Gaussian, so none exists")
    elif found is None:
        notes.append("information exponent: undetermined, square integrability of the target was not decided")
    return found


def _information(mean: Expr | None, x: Symbol, integrable: bool | None, trivial: bool, notes: list[str]) -> Found:
    if mean is None or not integrable:
        return Found(None)
    if constant_value(mean, x) is not None:
        if not trivial:
            notes.append("information exponent: E[Y|z] is constant, so none exists (the label itself does depend on z)")
        return Found(None)
    return information_exponent(mean, x)


def _generative(g: Expr, law: Named | Channel, labels: Any, information: Found, x: Symbol) -> Found:
    # y itself is a label map in L2 where E[Y|z] has an information exponent.
    known = next((c for c in information.certificates if c.status == "nonzero"), None)
    conditional = law.p if isinstance(law, Channel) and not law.finite else None
    return generative_exponent(labels, x, known=known, law=conditional)


def _hint_flint(notes: list[str], certificates: tuple[Certificate, ...]) -> None:
    from importlib.util import find_spec

    if find_spec("flint") is None and any(c.status == "undetermined" for c in certificates):
        notes.append("rigorous enclosures need python-flint: pip install 'hermitex[flint]'")
