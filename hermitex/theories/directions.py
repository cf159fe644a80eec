r"""z = gamma kappa e + S zeta,   S = I - (1 - sqrt(rho)) e e^T,   e = C_1/|C_1|,   C_1 = E[g z]: a target of several directions.

After one giant gradient step the spike overlaps with the target's span along e alone, Gamma = gamma e. Given s = e.z the other
coordinates w of an orthonormal basis are fresh normals, so that the target enters through functions of one variable,

    G(s) = E[g | s],   G_w(s) = E[w g | s],   G_2(s) = E[g^2 | s],

averaged over s = gamma kappa + sqrt(rho) z. The square loss knows nothing else of it: E[g | kappa, zeta] to first order in zeta.
For an activation that is not odd a step also adds t sigma_2 W E[g (z z^T - 1)] to the rows, which spiked features leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from sympy import Add, Expr, ImmutableMatrix, S, Symbol, expand, eye, sign, sqrt

from hermitex.errors import BadInput, NoClosedForm
from hermitex.hints import Formula
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.coefficients import coefficient, target
from hermitex.symbolic.subspaces import tidy
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import gamma, kappa, normal, z

rho = Symbol("rho", real=True)  # 1 - gamma^2
_s = Symbol("s", real=True)


class Seen(NamedTuple):
    """h, h_1 (one entry for each direction) and E g^2 given kappa, over expectations in z; and the meanings of their letters."""

    h: Expr
    h_1: tuple[Expr, ...]
    squared: Expr
    names: Mapping[Symbol, Expr]


@dataclass(frozen=True, repr=False)
class DirectedTarget:
    """A target of z1, z2, ...: its first Hermite coefficient C_1 and what is seen of it from kappa.

    >>> found = DirectedTarget.of("z1 + z1*z2")
    >>> found.linear, found.seen().h
    ((1, 0), E(gamma*kappa + sqrt(rho)*z, z))
    """

    expr: Expr
    variables: tuple[Symbol, ...]

    @classmethod
    def of(cls, g: Formula) -> DirectedTarget:
        """From a text or an expression in z1, z2, ..."""
        return cls(*target(g))

    @property
    def name(self) -> str:
        """The target as text."""
        return str(plain(self.expr))

    @property
    def letters(self) -> tuple[Symbol, ...]:
        """Its parameters: none."""
        return ()

    @property
    def parity(self) -> int | None:
        """0 where it is zero."""
        return 0 if self.expr == 0 else None

    @cached_property
    def in_L2(self) -> bool | None:
        """Is E g^2 finite? None if neither was proved."""
        return integrable(self.expr, self.variables, power=2)

    def mean(self, of: Expr) -> Expr:
        """E of a function of the variables: exact where each of its terms has a closed form, else with nodes."""
        return term_by_term(of, self.variables)

    @cached_property
    def linear(self) -> tuple[Expr, ...]:
        """C_1 = E[g z], one entry for each variable."""
        each = range(len(self.variables))
        return tuple(coefficient(self.expr, tuple(int(i == j) for i in each), self.variables) for j in each)

    @cached_property
    def axis(self) -> tuple[Expr, ...]:
        """e = C_1/|C_1|: exact, or the letters e1, e2, ... of `names` where an entry has no closed form; zeros where C_1 = 0."""
        found = self.charged
        if self.names:
            return tuple(Symbol(f"e{j}", real=True) if v != 0 else S.Zero for j, v in enumerate(found, start=1))
        norm = sqrt(sum(v**2 for v in found))
        return tuple(tidy(v/norm) if v != 0 else S.Zero for v in found)

    @cached_property
    def names(self) -> dict[Symbol, Expr]:
        """The values of e1, e2, ... if the axis is written in them."""
        if not any(v.has(Expectation) for v in self.charged):
            return {}
        norm = sqrt(sum(v**2 for v in self.charged))
        return {Symbol(f"e{j}", real=True): v/norm for j, v in enumerate(self.charged, start=1) if v != 0}

    @cached_property
    def charged(self) -> tuple[Expr, ...]:
        """C_1, where an entry without a closed form is 0 if it is so to rounding."""
        if not any(v.has(Expectation) for v in self.linear):
            return self.linear
        vanishes = 1e-13  # of sqrt(E g^2): a coefficient that small is a zero that was not proved
        least = vanishes*float(evaluate(self.mean(self.expr**2), digits=14))**0.5
        return tuple(v if abs(evaluate(v, digits=14)) > least else S.Zero for v in self.linear)

    @cached_property
    def basis(self) -> ImmutableMatrix:
        """Columns: e first, then an orthonormal basis of what is orthogonal to it, the user's variables where they can stay."""
        mixed = [j for j, v in enumerate(self.axis) if v != 0] or [0]
        rows = [list(row) for row in eye(len(self.variables)).tolist()]
        first = self.axis[mixed[0]] or S.One
        turn = sign(self.linear[mixed[0]].evalf(5)) or S.One
        for i in mixed:
            rows[i][mixed[0]] = self.axis[i] or S.One
            for j in mixed[1:]:   # a reflection that takes e to its first variable
                rows[i][j] = (-turn*self.axis[j] if i == mixed[0] else turn*first if len(mixed) == 2
                              else tidy(int(i == j) - self.axis[i]*self.axis[j]/(1 + turn*first)))
        order = [mixed[0], *(j for j in range(len(rows)) if j != mixed[0])]
        return ImmutableMatrix([[row[j] for j in order] for row in rows])

    @property
    def across(self) -> tuple[Symbol, ...]:
        """The coordinates along the further columns of the basis."""
        return tuple(normal(f"w{j}") for j in range(1, len(self.variables)))

    def at(self, coordinates: Sequence[Expr]) -> Expr:
        """The target in the coordinates of the basis."""
        place = self.basis*ImmutableMatrix(coordinates)
        return self.expr.subs(dict(zip(self.variables, place, strict=True)), simultaneous=True)

    @cached_property
    def given_axis(self) -> tuple[Expr, tuple[Expr, ...], Expr]:
        """G(s), (G_w(s) of each further column of the basis), G_2(s)."""
        w, body = self.across, self.at((_s, *self.across))
        return term_by_term(body, w), tuple(term_by_term(v*body, w) for v in w), term_by_term(body**2, w)

    def seen(self, aligned: int = 0) -> Seen:
        """The conditional moments; `aligned` is gamma where that is 1 or -1."""
        at = aligned*kappa if aligned else gamma*kappa + sqrt(rho)*z
        G, across, G_2 = (self.given_axis[0], *self.given_axis[1:])

        def mean(f: Expr, factor: Expr = S.One) -> Expr:
            return E(factor*f.subs(_s, at), z) if factor != 0 else S.Zero

        parts = [mean(G, S.Zero if aligned else z), *map(mean, across)]
        along = tuple(Add(*(b*p for b, p in zip(row, parts, strict=True))) for row in self.basis.tolist())
        return Seen(mean(G), along, mean(G_2), self.names)


Target: TypeAlias = Activation | DirectedTarget


def term_by_term(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """The average over the variables; each term of the sum in closed form where it has one, else over what no power takes out."""
    if not variables:
        return body
    try:
        return closed_form(E(body, *variables))
    except NoClosedForm:
        return Add(*(_closed_or_node(term, sorted(term.free_symbols & set(variables), key=str))
                     for term in Add.make_args(expand(body))))


def _closed_or_node(term: Expr, variables: Sequence[Symbol]) -> Expr:
    try:
        return closed_form(E(term, *variables)) if variables else term
    except NoClosedForm:
        pass
    left = []
    for v in variables:
        rest, own = term.as_independent(v, as_Add=False)
        base, power = own.as_base_exp()
        if base == v and power.is_Integer and power > 0:
            term = rest*closed_form(E(own, v))
        else:
            left.append(v)
    return E(term, *left) if left and term != 0 else term


def target_of(asking: str, g: Any) -> Target:
    """A target of one variable as `Activation`, one of several as `DirectedTarget`; its parameters must have numbers."""
    if isinstance(g, Activation | DirectedTarget):
        return g
    try:
        body, variables = target(g)
    except BadInput:
        return activation(g)
    if len(variables) < 2:
        return activation(g)
    if extra := body.free_symbols - set(variables):
        raise BadInput(f"{asking}: the target holds {', '.join(sorted(map(str, extra)))}; put numbers in")
    return DirectedTarget(body, variables)
