r"""mu_k(kappa) = E[He_k(z) sigma(r kappa + sqrt(c) z)] / c^{k/2}, z ~ N(0, 1): the conditional coefficients.

Given its projection kappa on the spike, a pre-activation is r kappa + sqrt(c) z, and the feature is equivalent to
mu_0(kappa) + mu_1(kappa) sqrt(c) z + mu_star(kappa) xi with xi a fresh standard normal [cui2024, Result 3.2].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any

from sympy import (
    Add,
    Basic,
    DiracDelta,
    Dummy,
    Expr,
    Float,
    Function,
    Mul,
    Poly,
    Rational,
    S,
    Symbol,
    count_ops,
    diff,
    exp,
    expand,
    factor,
    factorial,
    sqrt,
)

from hermitex.errors import BadInput, NoClosedForm, UnknownName
from hermitex.hints import Axes, Formula
from hermitex.show.cite import Cited
from hermitex.show.display import WIDE, Shown, latex, shorten
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.parsing import expression
from hermitex.symbolic.series.polynomials import He
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import c, kappa, r, z

MEAN, DEVIATION = Symbol("m", real=True), Symbol("s", positive=True)
_HELD = Float("1e154")  # the root of the largest float
_LONG = 400  # operations beyond which a formula is left as it was derived; chosen by trial
_REACH = 48  # standard deviations within which a kink can matter


@dataclass(frozen=True, repr=False)
class Coefficient(Cited, Shown):
    """A function of (kappa, r, c) that an activation determines: a formula, and callable on arrays.

    kappa : array, O(1), the projection on the spike; r : the spike's scale in the pre-activation; c > 0 : the variance
    of its bulk. `.node` is the definition over an unevaluated expectation, `.expr` the closed form.
    """

    sources = ("cui2024",)

    activation: Any

    @property
    def name(self) -> str:
        """How the formula is called in print."""
        raise NotImplementedError

    @property
    def node(self) -> Expr:
        """The definition, over unevaluated expectations, in kappa, r, c."""
        raise NotImplementedError

    @cached_property
    def expr(self) -> Expr:
        """The closed form in kappa, r, c.

        Raises
        ------
        NoClosedForm : no rule applies; the message says how to get the number and the expansion.
        """
        raise NotImplementedError

    @cached_property
    def formula(self) -> Expr:
        """The closed form where there is one, else the definition."""
        try:
            return self.expr
        except NoClosedForm:
            return self.node

    def __call__(self, kappa: Any, *, r: Any = 1, c: Any = 1, bias: Any = 0, **parameters: float) -> Any:
        """Its values: an array for an array, a float for a number, the exact value for SymPy numbers or symbols.

        Parameters
        ----------
        kappa, r, c : numbers or arrays that broadcast; c > 0.
        bias : of every pre-activation, which is then r kappa + bias + sqrt(c) z.
        parameters : values of the activation's own parameters, by name.

        Raises
        ------
        BadInput : c is not positive, or the activation has parameters without values.
        Divergent : the average does not exist (exp(z**2) at c >= 1/2).
        """
        if any(isinstance(v, Basic) for v in (kappa, r, c, bias)):
            # The formulas know kappa and r through r kappa alone, to which a bias is added.
            kappa, r, c, bias = map(expression, (kappa, r, c, bias))
            return _substitute(self.formula, kappa if bias == 0 else r*kappa + bias, r if bias == 0 else 1, c)
        return values_at(self, (kappa, r, c, bias), parameters)

    def __repr__(self) -> str:
        return shorten(f"{self.name}(kappa) = {self.formula}", 2*WIDE)

    def latex(self) -> str:
        """The equation in LaTeX: the closed form where there is one, else the definition."""
        return f"{self._latex_name}(\\kappa) = {latex(self.formula)}"

    def to_dict(self) -> dict[str, Any]:
        """{"name", "sigma", "node", "expr"} as text that `hermitex.parse` reads; `expr` is None without a closed form."""
        try:
            expr = self.expr
        except NoClosedForm:
            expr = None
        return dict(plain({"name": self.name, "sigma": self.activation(z), "node": self.node, "expr": expr}))

    def plot(self, ax: Axes | None = None, *, kappa: Any = None, r: float = 1.0, c: float = 1.0, label: str | None = None,
             **numbers: float) -> Axes:
        """The coefficient over kappa, -4 to 4 where no values are given, as a line -> axes."""
        from numpy import linspace, ravel

        from hermitex.show.plots import learning_curve

        line = linspace(-4, 4, 161) if kappa is None else ravel(_numbers("kappa", kappa))
        said = rf"{getattr(self.activation, 'name', 'sigma')}, $r = {r:g}$, $c = {c:g}$" if label is None else label
        return learning_curve(line.tolist(), ravel(self(line, r=r, c=c, **numbers)).tolist(), ax, label=said, xlabel=r"$\kappa$",
                              ylabel=f"${self._latex_name}$")

    @property
    def _latex_name(self) -> str:
        raise NotImplementedError

    def statistic(self, values: Any, t: Any, weights: Any) -> Any:
        """The coefficient, up to `scaled`, from sigma's values at the nodes r kappa + sqrt(c) t of N(0, 1)."""
        raise NotImplementedError

    def scaled(self, value: Any, s: Any) -> Any:
        """The coefficient from its `statistic` at sqrt(c) = s."""
        return value


@dataclass(frozen=True, repr=False)
class Conditional(Coefficient):
    """mu_k(kappa) = d^k/dm^k E sigma(m + sqrt(c) z) at m = r kappa; monic: divide by sqrt(k!) for orthonormal."""

    order: int

    @property
    def name(self) -> str:
        return f"mu_{self.order}"

    @property
    def node(self) -> Expr:
        return E(He(self.order, z)*self.activation(r*kappa + sqrt(c)*z), z)/sqrt(c)**self.order

    @cached_property
    def expr(self) -> Expr:
        # One integral and k derivatives: He_k is never multiplied out, and no jump of sigma is differentiated.
        smoothed = closed_form_or_refusal(self, E(self.activation(MEAN + DEVIATION*z), z))
        return _in_place(collect_terms(diff(smoothed, MEAN, self.order) if self.order else smoothed))

    @property
    def _latex_name(self) -> str:
        return rf"\mu_{{{self.order}}}"

    def statistic(self, values: Any, t: Any, weights: Any) -> Any:
        from numpy import ones_like

        before, he = 0*t, ones_like(t)
        for k in range(self.order):
            before, he = he, t*he - k*before  # He_{k+1} = t He_k - k He_{k-1}
        return (weights*he*values).sum(axis=-1)

    def scaled(self, value: Any, s: Any) -> Any:
        return value/s**self.order


@dataclass(frozen=True, repr=False)
class SquaredResidual(Coefficient):
    """mu_star^2(kappa) = E[sigma(u)^2] - mu_0(kappa)^2 - c mu_1(kappa)^2 >= 0, u = r kappa + sqrt(c) z."""

    name, _latex_name = "mu_star_squared", r"\mu_\star^2"

    @property
    def node(self) -> Expr:
        mu_0, mu_1 = (Conditional(self.activation, k) for k in (0, 1))
        return E(self.activation(r*kappa + sqrt(c)*z)**2, z) - mu_0.node**2 - c*mu_1.node**2

    @cached_property
    def expr(self) -> Expr:
        mu_0, mu_1 = (Conditional(self.activation, k) for k in (0, 1))
        second = collect_terms(closed_form_or_refusal(self, E(self.activation(MEAN + DEVIATION*z)**2, z)))
        left = _in_place(second) - mu_0.expr**2 - c*mu_1.expr**2
        return min(left, expand(left), key=count_ops) if count_ops(left) < _LONG else left

    def statistic(self, values: Any, t: Any, weights: Any) -> Any:
        # The mean square of what is left, and not a difference of large numbers: never negative, no cancellation.
        constant = (weights*values).sum(axis=-1, keepdims=True)
        slope = (weights*t*values).sum(axis=-1, keepdims=True)
        return (weights*(values - constant - slope*t)**2).sum(axis=-1)


@dataclass(frozen=True, repr=False)
class Residual(Coefficient):
    """mu_star(kappa) = sqrt(E[sigma^2] - mu_0^2 - c mu_1^2) >= 0: the size of what is neither constant nor linear."""

    name, _latex_name = "mu_star", r"\mu_\star"

    @property
    def squared(self) -> SquaredResidual:
        """mu_star^2(kappa), which is what equations hold."""
        return SquaredResidual(self.activation)

    @property
    def node(self) -> Expr:
        return sqrt(self.squared.node)

    @cached_property
    def expr(self) -> Expr:
        return sqrt(self.squared.expr)

    def statistic(self, values: Any, t: Any, weights: Any) -> Any:
        return self.squared.statistic(values, t, weights)

    def scaled(self, value: Any, s: Any) -> Any:
        return value**0.5


def mu(sigma: Formula, k: int) -> Conditional:
    """Conditional Gaussian-equivalence coefficient of order k, as a formula of (kappa, r, c).

    mu_k(kappa) = E[He_k(z) sigma(r kappa + sqrt(c) z)] / c^{k/2},   z ~ N(0, 1);   d mu_0/d kappa = r mu_1

    Parameters
    ----------
    sigma : activation: a name, text or expression in z, a SymPy function class, an undefined Function, or `Activation`
    k : int >= 0    order; monic (divide by sqrt(k!) for the orthonormal basis)

    Returns
    -------
    A formula: `.expr` exact, `.node` the definition, ``mu(sigma, k)(kappa, r=1, c=1, bias=0)`` its values
    (kappa, r, c, bias broadcast; absolute error about 1e-12 times the size of sigma, estimated by doubling the rule).

    Raises
    ------
    UnknownName, ParseError : sigma is not a function.
    NoClosedForm : from `.expr`, where no rule applies (tanh); the values are there all the same.

    Guarantee
    ---------
    An exact formula equals the average for all kappa, r and c > 0. A call on arrays keeps its tolerance at each point, or
    raises. See docs/promise.md.

    References: cui2024 (Result 3.2), dandi2023.

    Examples
    --------
    >>> import numpy as np
    >>> mu("relu", 1)(np.array([0, 1, 2]), r=1, c=1).round(8)
    array([0.5       , 0.84134475, 0.97724987])
    >>> mu("z**3", 0).expr
    3*c*kappa*r + kappa**3*r**3
    """
    highest = 60  # He_60 has coefficients of 1e40: beyond it doubles have no digits of a sum over nodes
    if isinstance(k, bool) or not isinstance(k, Real | Expr) or k % 1 != 0 or not 0 <= k <= highest:
        raise BadInput(f"mu: the order k is an integer between 0 and {highest}, not {k!r}")
    return Conditional(activation_of(sigma), int(k))


def mu_star(sigma: Formula) -> Residual:
    """The residual of the conditional equivalence, as a formula of (kappa, r, c).

    mu_star(kappa) = sqrt(E[sigma(u)^2] - mu_0(kappa)^2 - c mu_1(kappa)^2),   u = r kappa + sqrt(c) z

    Parameters
    ----------
    sigma : activation, as in `mu`

    Returns
    -------
    A formula like that of `mu`; ``mu_star(sigma).squared`` is mu_star^2, without the root. At r = 0, c = 1 it is the
    constant mu_star (kappa_star) of the Gaussian equivalence of random features.

    Raises
    ------
    As `mu`.

    Guarantee
    ---------
    An exact formula equals the residual for all kappa, r and c > 0. A call on arrays keeps its tolerance at each point, or
    raises. See docs/promise.md.

    References: cui2024 (Result 3.2), goldt2022.

    Examples
    --------
    >>> round(mu_star("relu")(0, r=0, c=1), 12)
    0.301405137495
    """
    return Residual(activation_of(sigma))


def activation_of(sigma: Any) -> Any:
    from hermitex.symbolic.activations import activation

    made = activation(sigma)
    clash = {s.name for s in made(z).free_symbols} & {"kappa", "r", "c", "bias"}
    if clash:
        raise BadInput(f"the activation uses {', '.join(sorted(clash))}, which mean the spike, the bulk and the bias here; "
                       "name its parameters otherwise")
    return made


def in_floats(f: Any) -> Any:
    """The same function, if the square of each number in it fits into a float.

    >>> in_floats(activation_of("z/10"))
    z/10: z -> z/10
    """
    parts = [f.expr]
    while parts:
        e = parts.pop()
        if e.free_symbols:
            parts.extend(e.args)
        elif isinstance(e, Expr) and not e.has(Expectation):
            size = abs(e.evalf(5))
            if size.is_Float and size and not 1/_HELD < size < _HELD:
                raise BadInput(f"{shorten(f.name, 60)} holds the number {shorten(str(e), 30)}, whose square is beyond what a float "
                               "holds, 2.2e-308 to 1.8e308; measure in another unit")
    return f


def closed_form_or_refusal(asked: Coefficient, node: Expr) -> Expr:
    """The closed form of an average over z, or the refusal in the terms of what was asked."""
    from hermitex.symbolic.integrals import closed_form

    try:
        return closed_form(node)
    except NoClosedForm as error:
        call = f"hx.{asked.name.replace('_squared', '')}(sigma)" if "star" in asked.name else "hx.mu(sigma, k)"
        advice = (f"Number: {call}(kappa, r=1, c=1)   Any formula at N digits: .node.subs(...).evalf(30)   "
                  f"Expansion: hx.expand(sigma, order=12, basis='orthonormal')")
        raise NoClosedForm(asked.node, error.reason, advice) from error


def collect_terms(expr: Expr) -> Expr:
    """The same with one term for each product of special functions, which derivatives and products repeat."""
    if count_ops(expr) > _LONG:
        return expr
    expr = expr.replace(lambda e: isinstance(e, exp), lambda e: exp(factor(e.args[0])))
    names = {e: Dummy() for e in expr.atoms(Function)}
    if not names:
        return expr
    terms = Poly(expr.xreplace(names), *names.values()).terms()
    back = {dummy: e for e, dummy in names.items()}
    parts = [factor(coefficient)*Mul(*(back[d]**n for d, n in zip(names.values(), powers, strict=True)))
             for powers, coefficient in terms]
    return min(Add(*parts), expr, key=count_ops)


def _in_place(expr: Expr) -> Expr:
    return expr.xreplace({MEAN: r*kappa, DEVIATION: sqrt(c)})


def _substitute(formula: Expr, at_kappa: Any, at_r: Any, at_c: Any) -> Expr:
    return formula.subs({kappa: at_kappa, r: at_r, c: at_c}, simultaneous=True)


def values_at(asked: Coefficient, at: tuple[Any, Any, Any, Any], parameters: Mapping[str, float]) -> Any:
    """Numbers for arrays: one vectorised rule for all points, mpmath for those it does not settle."""
    import numpy as np

    points = np.broadcast_arrays(*(_numbers(n, v) for n, v in zip(("kappa", "r", "c", "bias"), at, strict=True)))
    shape = points[0].shape
    ks, rs, cs, bs = (p.ravel() for p in points)
    means = rs*ks + bs
    if not (np.all(cs > 0) and np.all(np.isfinite(cs)) and np.all(np.isfinite(means))):
        raise BadInput("the variance c must be positive, and kappa, r, c, bias finite")
    body = _given(asked.activation(z), parameters)
    value = _on_nodes(asked, body, means, np.sqrt(cs))
    for i in np.flatnonzero(np.isnan(value)):
        value[i] = _by_mpmath(asked, (means[i], 1.0, cs[i]), parameters)
    return value.reshape(shape) if shape else float(value[0])


def _numbers(name: str, value: Any) -> Any:
    """An array of floats, or one line."""
    from hermitex.solvers.sweep_grid import real_array

    try:
        return real_array(value)
    except (TypeError, ValueError):
        raise BadInput(f"{name} is a number or an array of numbers, not {str(value)[:60]!r}") from None


def _given(body: Expr, parameters: Mapping[str, float]) -> Expr:
    """The activation with its parameters' values put in."""
    free = {p.name: p for p in body.free_symbols if p != z}
    for name in parameters:
        if name not in free:
            raise UnknownName(name, [*free, "kappa", "r", "c", "bias"], "keyword")
    if missing := sorted(set(free) - set(parameters)):
        raise BadInput(f"the activation's {', '.join(missing)} must be given a value: {missing[0]}=...")
    return body.subs({free[name]: Rational(value) for name, value in parameters.items()})


def _on_nodes(asked: Coefficient, body: Expr, m: Any, s: Any) -> Any:
    """The coefficient at m = r kappa and s = sqrt(c) by the vectorised rule; nan where it does not settle."""
    import numpy as np

    from hermitex.kernels.averages import averages, compiled

    found = compiled(body, z, np.concatenate([m - _REACH*s, m + _REACH*s]))
    if found is None:
        return np.full(m.shape, np.nan)
    ends = np.union1d(found[1], _turns(body, 2.0**np.ceil(np.log2(s.max()))))
    value, _ = averages(found[0], m, s, statistic=asked.statistic, kinks=ends)
    value = asked.scaled(value, s)
    if not (k := getattr(asked, "order", 0)):
        return value
    rounding = 1e-16  # of the values of sigma
    holds = 1e-12  # relative error of a coefficient, or absolute where it is below 1
    # Rounding of sigma stays in E[He_k sigma], and 1/s^k makes it large.
    with np.errstate(all="ignore"):
        size = np.max(np.abs(found[0](m + np.multiply.outer((-1, 0, 1), s))), axis=0)
        rough = ~(rounding*np.sqrt(float(factorial(k)))*size <= holds*s**k*np.maximum(1, np.abs(value)))
    value[rough] = np.nan
    resolved = 1e-10  # of the mean: deviations within which floats are many, so that rounding of a derivative shows
    away = np.all(np.abs(found[1][:, None] - m) > _REACH*s, axis=0) & (s > resolved*np.abs(m))
    by_parts = 8  # derivatives of sigma that are taken
    if k <= by_parts and np.any(rough & away):
        slope = body.diff(z, k).replace(DiracDelta, lambda *_: S.Zero)  # E[He_k(z) sigma(u)] = s^k E[sigma^(k)(u)]
        value[rough & away] = _on_nodes(Conditional(asked.activation, 0), slope, m[rough & away], s[rough & away])
    return value


@lru_cache(maxsize=256)
def _turns(body: Expr, s: float) -> tuple[float, ...]:
    """The places where a formula of z changes over much less than s, which would pass between evenly spaced nodes."""
    from hermitex.symbolic.scales import scales

    unit = Rational(s)
    narrow = scales(body.xreplace({z: unit*z}), z).narrow
    return tuple(float(-unit*b/k) for k, b in narrow if not (k.free_symbols | b.free_symbols))


def _by_mpmath(asked: Coefficient, at: tuple[float, float, float], parameters: Mapping[str, float]) -> float:
    from hermitex.symbolic.precise import evaluate

    numbers = dict(zip((kappa, r, c), map(Rational, at), strict=True))
    free = {p.name: p for p in asked.node.free_symbols}
    numbers |= {free[name]: Rational(value) for name, value in parameters.items()}
    return float(evaluate(asked.node.subs(numbers), digits=15))
