"""Each number with its theorem, its hypotheses, its certificate and its source: an Exponents in words.

The statements are those of the sources: Ben Arous et al. (2021), Abbe et al. (2023), Dandi et al. (2023), Damian et al.
(2024, 2025), Troiani et al. (2024); the rates and their hypotheses are in `complexity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Expr

from hermitex.exponents.certificate import renamed
from hermitex.exponents.channels import channel
from hermitex.exponents.complexity import RATES
from hermitex.exponents.directions.direction_text import directions_words, normals_apart, staircase_words
from hermitex.exponents.findings import Findings
from hermitex.exponents.label import revealed
from hermitex.exponents.labels.families import what_labels_tell
from hermitex.exponents.stages import alpha_words, digits_that_hold, reached_text
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.parsing import to_text
from hermitex.symbols import normal

_ONE = (
    ("information exponent", "information_exponent", "l = min{k >= 1: c_k != 0}, c_k = E[Y He_k(z)]", "asks for E[Y|z] in L2",
     ("benarous2021",)),
    ("generative exponent", "generative_exponent",
     "k* = min{k >= 1: E[E[h_k(z)|Y]^2] != 0} = least information exponent of T(Y) over label maps T",
     "no moment of Y is asked for", ("damian2024",)),
)
_SEVERAL = (
    ("information exponent", "information_exponent", "l = min{k >= 1: C_k != 0}, C_k = E[Y He_k(z)] a symmetric tensor",
     "asks for E[Y|z] in L2", ("benarous2021",)),
    ("leap", "leap_exponent",
     "max over the stages of k = min{k >= 1: E[Y He_k(P z) | U] != 0}, P the projection off what is known; the tensor's "
     "span joins U", "rotation invariant: the largest coordinate leap over all bases", ("dandi2023giant", "abbe2023")),
    ("coordinate leap", "leap_coordinate",
     "min over orderings of max_i of the weight of a_i outside the supports before it, over all a with c_a != 0",
     "depends on the basis; irrelevant variables left out", ("abbe2023",)),
    ("generative leap", "generative_exponent",
     "the same recursion for E[He_k(P z) | Y, U]: what any label map T(Y) can show", "no moment of Y is asked for",
     ("damian2025",)),
)

_CLASSES = {
    "trivial": "trivial: order 1 at every stage, E[z|Y] != 0: some overlap at any alpha > 0",
    "easy": "easy: order 2 at most, and 2 at some stage: AMP leaves zero overlap above a finite alpha",
    "hard": "hard: order 3 or more at some stage, E[z|Y] = 0 and E[z z^T|Y] = 1 for its directions: AMP does not find them at "
            "any finite alpha",
}


def explain(found: Findings) -> str:
    """The whole account as plain text."""
    from hermitex.show.cite import cite

    several = len(found.variables) > 1
    lines = [f"target      {to_text(found.target)}   channel {found.channel}   variables {', '.join(found.variables)}",
             *([f"            {said}"] if (said := _domain(found)) else []), ""]
    for title, key, theorem, hypothesis, sources in _SEVERAL if several else _ONE:
        lines += [f"{title}: {_word(getattr(found, key))}",
                  f"  {theorem}; {hypothesis}  [{'; '.join(cite(k) for k in sources)}]"]
        of_mean = key != "generative_exponent"
        stairs = {"leap_exponent": found.staircase, "generative_exponent": found.generative_staircase}.get(key, ())
        if several and stairs:
            lines.append(f"  staircase: {staircase_words(stairs, found.variables, found.numbers)}")
        if not several or key in ("leap_exponent", "generative_exponent"):
            lines += [f"  {c}" for c in found.certificates if about_the_mean(c.quantity) == of_mean]
        lines.append("")
    lines += _weak_recovery(found, several)
    lines.append("sample complexities")
    for key, rate in RATES.items():
        lines.append(f"  {key:16s} {_word(found.complexity[key]):10s} {rate.statement}")
        lines += [f"  {'':27s} run time: {rate.time}"] if rate.time else []
        lines.append(f"  {'':27s} {rate.status}; hypotheses: {rate.hypotheses}  [{'; '.join(cite(k) for k in rate.sources)}]")
    if found.notes:
        lines += ["", "notes", *[f"  {n}" for n in found.notes]]
    return "\n".join(lines)


def _domain(found: Findings) -> str:
    """`label_map_domain` over the variables of the certificates."""
    of = found.over_normals
    if of is None:
        return label_map_domain(found.target, found.channel, found.variables)
    return renamed(label_map_domain(of.target, of.channel, of.variables), normals_apart(of.variables))


def label_map_domain(target: Expr, law: str, variables: Sequence[str]) -> str:
    """The argument of the certificates' label maps, if it is not the label itself: the reduction to a function of z."""
    # Of a law P(y|z) of the user's own its notes say what is to be said.
    labels = unless_refused(lambda: channel(law).labels(target))
    if labels is None or labels.levels is None:
        return ""
    letters = tuple(normal(v) for v in variables)
    if law == "random_sign":
        return f"{labels.why}: the label maps T in the certificates are maps of |y|, |g(z)| = {to_text(labels.levels)}"
    if law != "deterministic":
        return (f"{labels.why}: S(u) in the certificates is a function of u = {to_text(what_labels_tell(labels.levels, letters))}, "
                "before the noise; where some S(u) shows a direction, some map T(y) of the observed label does, too")
    known, plain = (revealed(labels.levels, letters), labels.levels) if len(letters) > 1 else (labels.levels, target)
    return "" if known == plain else f"y tells u = {to_text(known)} and nothing more: u(y) in the certificates is this u"


def _weak_recovery(found: Findings, several: bool) -> list[str]:
    from hermitex.show.cite import cite

    t = found.threshold
    if t.kind is None and any(n.startswith("the label does not depend on z:") for n in found.notes):
        return ["weak recovery: none, there is nothing to recover", ""]
    lines = [f"weak recovery: {t.kind or 'undetermined'}{alpha_words(t)}"]
    lines += [f"  {_CLASSES[t.kind]}"] if t.kind in _CLASSES else []
    if not several:
        lines.append("  1/alpha_c = E[(E[z^2|Y] - 1)^2] where E[z|Y] = 0; n = alpha d, Bayes-optimal AMP  "
                     f"[{cite('troiani2025')}]")
        return [*lines, *([f"  found by: {t.method}"] if t.method else []), ""]
    lines.append("  1/alpha_c = largest eigenvalue of E[G (x) G], G = E[z z^T - 1 | Y, U] off what is known, where E[z|Y, U] = 0; "
                 f"n = alpha d, Bayes-optimal AMP  [{cite('troiani2025')}]")
    for stage in t.stages:
        alpha = "not reached" if stage["alpha_c"] is None else digits_that_hold(stage["alpha_c"], stage.get("error"))
        form = "" if stage.get("exact") is None else to_text(stage["exact"])
        alpha = f"{form} = {alpha}" if form not in ("", alpha) else alpha
        alpha = "infinite" if t.kind == "hard" and stage is t.stages[-1] else alpha
        given = " once the directions before are known" if stage["conditional"] else ""
        given += ", a lower bound on the transition" if stage.get("bound") else ""
        given += f", which is reached at alpha = {told}" if (told := reached_text(stage)) else ""
        given += f"  (by: {stage['method']})" if stage.get("method") else ""
        lines.append(f"  stage {directions_words(stage['directions'], found.variables, found.numbers)}: alpha_c = {alpha}{given}")
    return [*lines, ""]


def about_the_mean(quantity: str) -> bool:
    """Is this certificate about E[Y|z] (c_k, C_k) and not about the label (lambda_k, E[T(Y) ...])?"""
    return quantity[:1] in ("c", "C")


def _word(value: Any) -> str:
    return "-" if value is None else str(value)
