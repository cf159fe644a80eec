"""lhs = e_1 = e_2 = ... = rhs: a derivation as an object; each step bears its rule and source, and can be re-checked.

A `Step` is one application of a rule. A `Derivation` prints as an align block, checks itself anew, and cites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sympy import Expr

from hermitex.show.display import counted, latex, words_table

if TYPE_CHECKING:
    from hermitex.check.claim import Check


# Words for a reader of the appendix; a rule that is not here is printed under its own name.
WORDS = {
    "Stein": r"Stein's lemma",
    "Hermite": r"integrating by parts $k$ times, $\mathbb{E}[\mathrm{He}_k(z) f(z)] = \mathbb{E}[f^{(k)}(z)]$",
    "Price": r"Price's theorem",
    "Isserlis": r"Isserlis' theorem",
    "Mehler": r"Mehler's formula",
    "Dirac": r"the mass of the delta function",
    "linearity": r"linearity",
    "tower": r"conditioning",
    "closed form": r"Gaussian integration",
}


@dataclass(frozen=True)
class Step:
    """One application of a rule: before = after, by `rule`, from `source` (a key of the bibliography, or None).

    `shown` : LaTeX printed in place of `before`, which may be long when written out (d phi/dV).

    Guarantee: none by itself; `.check()` tests the equality without trusting the rule. See docs/promise.md.

    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> Step("Isserlis", E(z**4, z), 3*E(z**2, z)**2).check().status
    'proved'
    """

    rule: str
    before: Expr
    after: Expr
    source: str | None = None
    shown: str | None = None

    def check(self, **options: Any) -> Check:
        """Check the equality anew, without trusting the rule."""
        from hermitex.check.claim import check  # a system holds its derivation, and is solved without proofs

        return check(self.before, self.after, **options)

    def latex(self) -> str:
        """before = after, as LaTeX without dollars."""
        return f"{self.left()} = {latex(self.after)}"

    def left(self) -> str:
        """The left side in print."""
        return self.shown or latex(self.before)

    def _repr_latex_(self) -> str | None:
        try:
            return f"$\\displaystyle {self.latex()}$"
        except Exception:  # a notebook must show something else rather than fail
            return None

    def words(self) -> str:
        """The rule in words, as LaTeX text."""
        return WORDS.get(self.rule, self.rule)

    def to_dict(self) -> dict[str, Any]:
        """Rule, both sides as text, source."""
        return {"rule": self.rule, "before": str(self.before), "after": str(self.after), "source": self.source}

    def __repr__(self) -> str:
        return f"{self.rule}: {self.before} = {self.after}"


@dataclass(frozen=True)
class DerivationCheck:
    """What came of re-checking a derivation: true if every step holds and they lead from one side to the other."""

    name: str
    steps: tuple[tuple[str, Check], ...]
    claim: Check | None = None  # of the claim itself, where the steps do not form a chain from side to side

    @property
    def passed(self) -> bool:
        """True if nothing failed or stayed open."""
        return all(bool(c) for _, c in self.steps) and (self.claim is None or bool(self.claim))

    def __bool__(self) -> bool:
        return self.passed

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``hermitex check --json``."""
        rows = [{"rule": rule, "status": c.status, "digits": c.digits} for rule, c in self.steps]
        if self.claim is not None:
            rows.append({"rule": "claim", "status": self.claim.status, "digits": self.claim.digits})
        return {"name": self.name, "passed": self.passed, "steps": rows}

    def _repr_html_(self) -> str | None:
        """Each step with what came of it."""
        try:
            rows = [(rule, repr(c).splitlines()[0]) for rule, c in self.steps]
            if self.claim is not None:
                rows.append(("claim", repr(self.claim).splitlines()[0]))
            return words_table(rows, title=repr(self).splitlines()[0])
        except Exception:  # a notebook must show something else rather than fail
            return None

    def __repr__(self) -> str:
        bad = [f"{rule}: {c!r}" for rule, c in self.steps if not c]
        if self.claim is not None and not self.claim:
            bad.append(f"claim: {self.claim!r}")
        head = f"{self.passed}: {self.name or 'derivation'}, {counted(len(self.steps), 'step')}"
        return "\n".join([head, *bad])


@dataclass(frozen=True)
class Derivation:
    """A claim lhs = rhs and the steps that lead from one side to the other.

    Guarantee
    ---------
    The steps are the ones applied; `.check()` tests each anew, without trusting its rule. See docs/promise.md.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbolic.stein import stein
    >>> from hermitex.symbols import z
    >>> d = stein(z*tanh(z), z)
    >>> d.result
    1 - E(tanh(z)**2, z)
    >>> [s.rule for s in d.steps]
    ['Stein']
    """

    claim: tuple[Expr, Expr]
    steps: tuple[Step, ...]
    name: str = ""
    text: str = ""

    @property
    def result(self) -> Expr:
        """The right-hand side of the claim."""
        return self.claim[1]

    def check(self, **options: Any) -> DerivationCheck:
        """Check every step anew; and the claim, if the steps are not a chain from its one side to the other."""
        found = tuple((step.rule, step.check(**options)) for step in self.steps)
        claim = None if self._is_chain() else Step("claim", *self.claim).check(**options)
        return DerivationCheck(self.name, found, claim)

    def _is_chain(self) -> bool:
        ends = [self.claim[0], *(e for s in self.steps for e in (s.before, s.after)), self.claim[1]]
        return all(a == b for a, b in zip(ends[::2], ends[1::2], strict=True))

    def latex(self) -> str:
        """The derivation as an align block: numbered lines, each with its rule in words and its source cited."""
        return "\n".join([r"\begin{align}", " \\\\\n".join(self._lines()), r"\end{align}"])

    def _lines(self) -> Iterator[str]:
        if not self.steps:
            yield rf"{latex(self.claim[0])} &= {latex(self.claim[1])}"
            return
        chained = self._is_chain()
        for i, step in enumerate(self.steps):
            left = step.left() if i == 0 or not chained else ""
            cite = rf" \cite{{{step.source}}}" if step.source else ""
            yield rf"{left} &= {latex(step.after)} && \text{{({step.words()}{cite})}}".lstrip()

    def _repr_latex_(self) -> str | None:
        from hermitex.show.cite import cite

        one_line = 260  # characters of LaTeX that fit on a line with their rule
        try:
            text = re.sub(r"\\cite\{(\w+)\}", lambda m: f"[{cite(m[1])}]", self.latex())
            if max(map(len, text.splitlines())) > one_line:  # the rule under its formula, where a reader need not scroll
                text = text.replace(" && \\text{(", r" \\ & \qquad \text{(")
            return "$$" + text.replace("{align}", "{aligned}") + "$$"
        except Exception:  # a notebook must show something else rather than fail
            return None

    def to_dict(self) -> dict[str, Any]:
        """Name, claim and steps as text."""
        return {"name": self.name, "claim": [str(e) for e in self.claim], "steps": [s.to_dict() for s in self.steps]}

    def bibtex(self) -> str:
        """The references of the rules that were used."""
        from hermitex.show.cite import bibtex

        return bibtex(sorted({s.source for s in self.steps if s.source}))

    def __repr__(self) -> str:
        rules = ", ".join(s.rule for s in self.steps) or "nothing to do"
        return f"{self.claim[0]} = {self.claim[1]}  ({rules})"
