r"""E[g sigma'(h + gamma g sigma'(h)) h*] = sum_j gamma^j/j! E[g^{j+1} sigma'(h)^j sigma^{(j+1)}(h) h*]: seeing a sample twice.

A second gradient on the same sample contains powers of the label: the exponent falls to min_{p <= p_max} l(g^p), and over all
transformations of the label to the generative exponent [dandi2024reusing, arnaboldi2024, damian2024].
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

from sympy import Add, DiracDelta, Expr, Function, S, Subs, Wild, expand, factorial, sign
from sympy import Derivative as SymPyDerivative

from hermitex.errors import BadInput, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.complexity import complexity
from hermitex.exponents.labels.label_levels import constant_value
from hermitex.exponents.leap import leap
from hermitex.hints import DataFrame, Formula
from hermitex.show.cite import Cited
from hermitex.show.display import Shown, formula_table, latex
from hermitex.symbolic.activations import activation
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.derivation import Derivation, Step
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.parsing import to_text
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbolic.undefined import Derivative
from hermitex.symbolic.weak import weak_derivative
from hermitex.symbols import gamma, m, z, z1, z2
from hermitex.theories.directions import DirectedTarget, target_of
from hermitex.theories.spike import require_numbers


@dataclass(frozen=True)
class Power(Shown):
    """What the power g^p of the label shows: c_1 = E[g^p z], c_2 = E[g^p He_2], its information exponent and the proof.

    order None: g^p is constant, not square integrable, or undetermined; `note` says which.
    """

    power: int
    c_1: Expr | None
    c_2: Expr | None
    order: int | None
    certificates: tuple[Certificate, ...] = ()
    note: str = ""

    def _summary(self) -> str:
        return f"p = {self.power}: c_1 = {self.c_1}, c_2 = {self.c_2}, information exponent {self.order}"

    def latex(self) -> str:
        """c_1, c_2 and the information exponent of g^p."""
        g = rf"g^{{{self.power}}}"
        order = r"\text{none found}" if self.order is None else str(self.order)
        means = (("z", self.c_1), (r"\mathrm{He}_2", self.c_2))
        exact = [rf"\mathbb{{E}}[{g}\,{f}] = {latex(v)}" for f, v in means if v is not None]
        return r",\quad ".join([*exact, rf"\ell({g}) = {order}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values; exact numbers as text that `hermitex.parse` reads."""
        exact = {name: None if v is None else to_text(v) for name, v in (("c_1", self.c_1), ("c_2", self.c_2))}
        return {"power": self.power, **exact, "information_exponent": self.order,
                "certificates": [c.to_dict() for c in self.certificates], "note": self.note}


@dataclass(frozen=True, repr=False)
class Repetition(Cited, Shown):
    r"""A target under repetition of its samples: a row for each power of the label, the exponents, the expansion.

    Attributes
    ----------
    g : the target, in z
    repetitions : p_max, how often a sample is seen
    powers : rows p = 1, ..., p_max
    generative_exponent : over all transformations of the label; None if it does not exist or is undetermined
    notes : what could not be decided

    Guarantee
    ---------
    Exponents are proved or None; the rates are those of the sources. See docs/promise.md.

    >>> found = repetition("He3")
    >>> found.generative_exponent, [p.order for p in found.powers]
    (1, [3, 2])
    """

    sources = ("dandi2024reusing", "arnaboldi2024", "damian2024")

    g: Expr
    repetitions: int
    powers: tuple[Power, ...]
    generative_exponent: int | None
    generative_certificates: tuple[Certificate, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def information_exponent(self) -> int | None:
        """That of the target itself: each sample seen once."""
        return self.powers[0].order

    @property
    def exponent(self) -> int | None:
        """min_{p <= p_max} l(g^p): the exponent that decides with this many repetitions."""
        return min((p.order for p in self.powers if p.order is not None), default=None)

    @property
    def power(self) -> int | None:
        """The first power that reaches it."""
        return next((p.power for p in self.powers if p.order is not None and p.order == self.exponent), None)

    @property
    def samples(self) -> str | None:
        """The rate of one-pass SGD at this exponent: d, d log d, d^(l-1)."""
        return complexity(degree=None, square_integrable=True, first=self.exponent, leap=self.exponent,
                          generative=None)["one_pass_sgd"]

    def derivation(self, order: int | None = None) -> Derivation:
        """The expansion in the inner step, term by term, for arbitrary functions; ``.check()`` checks each term.

        The j-th step is d^j/dgamma^j E[g sigma'(h + gamma g sigma'(h)) h*] at gamma = 0.
        """
        return extragradient(self.repetitions - 1 if order is None else order)

    def drift(self, sigma: Any, order: int = 3) -> Expr:
        r"""The drift of a student: dm/dt = (1 - m^2) sum_{j<p_max} gamma^j/j! sum_{k<order} c_{k+1}(g^{j+1}) f_{j,k}/k! m^k.

        f_{j,k} = E[sigma'^j sigma^(j+1) He_k], exact where it is known; gamma is the inner step times d. A term with f = 0 does not
        act on this student, whatever the exponent of the power. For a first step that is not small the whole average is
        given by ``hx.theories.sgd(sigma, g).repeated(size)``.

        >>> repetition("He3").drift("z**2/2", order=2)
        36*gamma*m*(1 - m**2)
        """
        student = activation(sigma).expr
        slope = weak_derivative(student, z)
        terms, last = [], slope
        for j in range(self.repetitions):
            if j and (slope*last).has(DiracDelta):
                raise BadInput(f"repetition: the expansion to this order needs derivatives of the student up to order "
                               f"{self.repetitions}, and one of them is a jump's; take a smooth student or fewer repetitions")
            label = expand(self.g**(j + 1))
            for k in range(order):
                seen = coefficient(label, k + 1, z)
                if seen != 0:
                    terms.append(gamma**j*m**k*seen*coefficient(slope**j*last, k, z)/(factorial(j)*factorial(k)))
            last = weak_derivative(last, z)
        return (1 - m**2)*Add(*terms)

    def table(self) -> dict[str, list[Any]]:
        """Columns power, E[g^p z], E[g^p He_2], information exponent."""
        rows = self.powers
        return {"power": [r.power for r in rows], "c_1": [r.c_1 for r in rows], "c_2": [r.c_2 for r in rows],
                "information_exponent": [r.order for r in rows]}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame, one row a power."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe({k: [v if isinstance(v, int) or v is None else str(v) for v in column]
                             for k, column in self.table().items()})

    def to_dict(self) -> dict[str, Any]:
        """Target, rows, exponents, certificates."""
        return {"target": to_text(self.g), "repetitions": self.repetitions, "powers": [p.to_dict() for p in self.powers],
                "information_exponent": self.information_exponent, "exponent": self.exponent, "power": self.power,
                "samples": self.samples, "generative_exponent": self.generative_exponent,
                "generative_certificates": [c.to_dict() for c in self.generative_certificates], "notes": list(self.notes)}

    def latex(self) -> str:
        """min_p l(g^p) as an equation."""
        value = r"\infty" if self.exponent is None else str(self.exponent)
        return rf"\min_{{p \le {self.repetitions}}} \ell\bigl(({latex(self.g)})^p\bigr) = {value}"

    def _html(self) -> str:
        def cell(v: Any) -> Any:
            return "" if v is None else v if isinstance(v, Expr) else str(v)

        rows = [[cell(p.power), cell(p.c_1), cell(p.c_2), cell(p.order)] for p in self.powers]
        heads = ["$p$", r"$\mathbb{E}[g^p z]$", r"$\mathbb{E}[g^p\,\mathrm{He}_2]$", r"information exponent $\ell(g^p)$"]
        said = f"Powers of the label $g = {latex(self.g)}$; generative exponent {self.generative_exponent or 'undetermined'}"
        return formula_table(rows, heads, title=said)

    def _summary(self) -> str:
        rows = ", ".join(f"l(g^{p.power}) = {'-' if p.order is None else p.order}" for p in self.powers)
        return f"{self.g}: {rows}; generative {self.generative_exponent}"


def repetition(g: Formula, repetitions: int = 2) -> Repetition:
    r"""What seeing each sample `repetitions` times makes of a target: min_{p <= p_max} l(g^p), with exact numbers.

    Parameters
    ----------
    g : the target in one variable: a name, text or expression in z, or `Activation`
    repetitions : p_max, 1 to 12

    Returns
    -------
    Repetition : `.powers` (rows p, E[g^p z], E[g^p He_2], information exponent, certificates), `.exponent`,
    `.generative_exponent` (over all label transformations), `.derivation()`, `.drift(sigma)`, `.to_dict()`.

    Raises
    ------
    BadInput : a target in several variables or with free parameters; a number of repetitions that is none.

    Guarantee
    ---------
    Exponents are proved or undetermined, as those of `hx.exponents`; the rates are those of the sources. See docs/promise.md.

    References: dandi2024reusing; arnaboldi2024; damian2024.

    Examples
    --------
    >>> found = repetition("He3", 3)
    >>> [(p.power, p.c_1, p.c_2, p.order) for p in found.powers]
    [(1, 0, 0, 3), (2, 0, 36, 2), (3, 324, 0, 1)]
    >>> repetition("He3").samples
    'd log d'
    """
    from hermitex.exponents.report import exponents

    most = 12  # repetitions: the target's powers to 12 are exact averages, each longer than the one before
    if isinstance(repetitions, bool) or not isinstance(repetitions, Real) or repetitions % 1 != 0 or not 1 <= repetitions <= most:
        raise BadInput(f"repetition: a sample is seen between 1 and {most} times, not {repetitions!r}")
    target = target_of("repetition", g)
    if isinstance(target, DirectedTarget):
        raise BadInput("repetition: the target has one direction; hx.exponents(g) knows the generative leap of several")
    require_numbers("repetition", "target", target)
    body = target.expr
    rows = tuple(_power(body, p) for p in range(1, int(repetitions) + 1))
    whole = exponents(body)
    proofs = tuple(c for c in whole.certificates if c.quantity.startswith(("lambda", "E[T")))
    notes = tuple(f"g^{r.power}: {r.note}" for r in rows if r.note)
    return Repetition(body, int(repetitions), rows, whole.generative_exponent, proofs, notes)


def _power(body: Expr, p: int) -> Power:
    label = _powered(body, p)
    if constant_value(label, z) is not None:
        return Power(p, S.Zero, S.Zero, None, (), "it is constant and shows nothing")
    if integrable(label, z, power=2) is False:
        return Power(p, None, None, None, (), "it is not square integrable")
    try:
        first, second = coefficient(label, 1, z), coefficient(label, 2, z)
        found = leap(label, (z,))
    except HermitexError as err:
        return Power(p, None, None, None, (), f"undetermined: {' '.join(str(err).split())}")
    return Power(p, first, second, found.first, found.staircase.certificates, "; ".join(found.notes))


def _powered(body: Expr, p: int) -> Expr:
    """g^p, with sign(u)^2 = 1 almost everywhere."""
    label = body**p
    if body.is_polynomial(z):
        return expand(label)
    u = Wild("u")
    return label.replace(sign(u)**2, S.One)


def extragradient(order: int = 1, sigma: Any = None, g: Any = None) -> Derivation:
    r"""E[g sigma'(h + gamma g sigma'(h)) h*] = sum_{j <= order} gamma^j/j! E[g^{j+1} sigma'^j sigma^(j+1) h*] + O(gamma^{order+1}).

    Parameters
    ----------
    order : the last j
    sigma, g : functions; default: undefined ones, so that the expansion is proved for all smooth sigma

    Returns
    -------
    Derivation : step j does the j-th derivative in gamma at 0, which is the j-th term; h = z1 and h* = z2 have covariance m.
    """
    student, target = (Function(n) if f is None else activation(f) for n, f in (("sigma", sigma), ("g", g)))
    derivatives = [_derivative(student, 1)]
    for _ in range(order):
        derivatives.append(_derivative(student, len(derivatives) + 1))
    law, y = {(z1, z2): m}, target(z2)
    steps, whole, claimed = [], [], []
    body = E(y*derivatives[0](z1 + gamma*y*derivatives[0](z1))*z2, z1, z2, cov=law)
    for j in range(order + 1):
        before = Subs(SymPyDerivative(body, (gamma, j)) if j else body, gamma, 0)
        after = E(y**(j + 1)*derivatives[0](z1)**j*derivatives[j](z1)*z2, z1, z2, cov=law)
        steps.append(Step("Taylor", before, after, "dandi2024reusing"))
        whole.append(gamma**j/factorial(j)*before)
        claimed.append(gamma**j/factorial(j)*after)
    return Derivation((Add(*whole), Add(*claimed)), tuple(steps), name="repetition of a sample, in powers of the inner step")


def _derivative(f: Any, order: int) -> Any:
    """f^(order) as something that can be called."""
    for _ in range(order):
        f = f.weak_derivative if hasattr(f, "weak_derivative") else Derivative(f)
    return f
