"""How the label is drawn given g(z): P(y | z), its mean E[Y|z], and what of it the exponents depend on.

The generative exponent depends on the signed measures nu_k(dy) = E[He_k(z) P(dy|z)] only through their vanishing. Two
reductions follow, and every named channel is one of them:

- *level sets*: y = u(z), or a channel through which a signed measure on u can be read back. Additive Gaussian noise
  multiplies the Fourier transform of nu_k by a function without zeros; Poisson counts give all derivatives at 1 of its
  Laplace transform; a Gaussian scale mixture the Laplace transform in 1/u^2. So nu_k(noisy) = 0 iff nu_k(u) = 0.
  Any other noise that is added to u(z), or multiplies it, is of this kind where its Fourier or Mellin transform allows it
  (`labels.location`, `labels.scale`).
- *finitely many labels*, with probabilities p_j(z): nu_k = 0 iff every E[p_j He_k] = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sympy import Abs, Expr, Rational, S, Symbol, erf, exp, pi, sqrt

from hermitex import symbols
from hermitex.errors import BadInput, Divergent, HermitexError, NoClosedForm, UnknownName
from hermitex.exponents.drawn_laws import drawn_law, mean_of_a_power_law
from hermitex.show.display import Shown, latex
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.laws import is_random
from hermitex.symbolic.text.plain_data import plain

if TYPE_CHECKING:
    from hermitex.exponents.labels.location import Parted


@dataclass(frozen=True)
class Labels:
    """What a label depends on: `levels` u(z) (its level sets), or `probabilities` of finitely many labels."""

    levels: Expr | None = None
    probabilities: tuple[Expr, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Channel(Shown):
    """A law P(y|z) of the label, in the variables themselves: if the label is a noisy g(z), it contains g.

    Parameters
    ----------
    p : expression in y and z: the density (support "real"), the probability of the integer y, or of each listed value; or a law of
        `sympy.stats` whose parameters hold z, ``Channel(Weibull("Y", exp(z), 2))``, which needs nothing else.
    y : the symbol of the label
    support : "real", "integers" (y = 0, 1, 2, ...) or a list of values
    regression : E[Y|z], needed for the information exponent where it is not found from p

    Raises
    ------
    BadInput : p is negative somewhere, or does not integrate (sum) to one: the value found, and at which z.

    A named channel is its name, `hx.exponents(g, "gaussian:1/4")`; this class is for any other, here Cauchy noise:

    Guarantee
    ---------
    The law is used as given. Its mass is verified at numbers or by a closed form, and a law of another mass is refused. See
    docs/promise.md.

    >>> law = Channel("1/(pi*(1 + (y - z**2)**2))", "y")
    >>> law.support
    'real'
    """

    p: Expr
    y: Symbol = None  # type: ignore[assignment]  # which no law lacks: see __post_init__
    support: Any = "real"
    regression: Expr | None = None
    name: str = "custom"

    def __post_init__(self) -> None:
        from hermitex.exponents.labels.law_check import check_law
        from hermitex.symbolic.parsing import parse, real_expression

        if is_random(self.p):
            p, y, support, mean = drawn_law(self.p)
            given = {"p": p, "y": y, "support": support, "regression": self.regression or mean}
            for field_name, value in given.items():
                object.__setattr__(self, field_name, value)
        if self.y is None:
            name = self.p.partition(":")[0].strip() if isinstance(self.p, str) else ""
            raise BadInput(f"Channel: {str(self.p)[:40]} is the name of a channel, which is all that is needed: "
                           f"hx.exponents(g, channel={str(self.p)[:40]!r})" if name in _NAMED else
                           f"Channel: name the letter of the label too, Channel({str(self.p)!r}, 'y')")
        object.__setattr__(self, "y", Symbol(str(self.y), real=True))
        law = parse(self.p, symbols={self.y.name: "real"}) if isinstance(self.p, str) else real_expression(self.p)
        object.__setattr__(self, "p", law)
        if self.regression is not None:
            object.__setattr__(self, "regression", real_expression(self.regression))
        swap = {s: self.y for s in self.p.free_symbols if type(s) is Symbol and s.name == self.y.name}
        object.__setattr__(self, "p", self.p.xreplace(swap))
        if isinstance(self.support, str) and self.support not in ("real", "integers"):
            raise BadInput(f"Channel: support {self.support!r} is not 'real', 'integers' or a list of values")
        if not isinstance(self.support, str):
            object.__setattr__(self, "support", _listed(self.support))
        unknown = self.p.free_symbols - {self.y} - set(symbols.normals(self.p))
        if unknown:
            held = ", ".join(sorted(map(str, unknown)))
            raise BadInput(f"Channel: p holds {held}; only {self.y} and z, z1, ... may occur in it")
        check_law(self.p, self.y, self.support)

    def mean(self, g: Expr) -> Expr:
        """E[Y|z]: `regression` if given, else the sum, for counts by their recursion, or for a Gaussian-like density the integral.

        If the label is u(z) plus a symmetric noise with a mean, it is u(z).
        """
        if self.regression is not None:
            return self.regression
        if not isinstance(self.support, str):
            return sum((v * self.p.xreplace({self.y: v}) for v in self.support), S.Zero)
        if self.support == "integers":
            from hermitex.exponents.labels.counts import mean_count

            if (counted := mean_count(self.p, self.y)) is not None:
                return counted
            raise NoClosedForm(f"E[Y|z] of {self.p}", "a sum over infinitely many counts",
                               "Give it: Channel(p, y, 'integers', regression=...)")
        noise = self.added or self.scaled
        if noise is not None and noise.has_mean is False:
            raise Divergent("E[Y|z]", "the noise has no mean, E|Y| is infinite")
        if noise is not None and noise.has_mean and noise.symmetric:
            return noise.u if noise is self.added else S.Zero
        return self._integrated_mean()

    def _integrated_mean(self) -> Expr:
        from hermitex.symbolic.integrals import closed_form

        if (found := mean_of_a_power_law(self.p, self.y)) is not None:
            return found
        try:
            # int f(y) dy = E[f(y)/phi(y)]: the Gaussian engine integrates a density against y.
            return closed_form(E(self.y * self.p * sqrt(2 * pi) * exp(self.y**2 / 2), self.y))
        except (NoClosedForm, Divergent):  # whose words are about the rewritten integral
            raise NoClosedForm(f"E[Y|z] of {self.p}", "the integral over y is not done in closed form",
                               "Give it: Channel(p, y, regression=...)") from None

    @cached_property
    def added(self) -> Parted | None:
        """u(z) and the noise that is added to it, where P(y|z) is a density of y - u(z)."""
        from hermitex.exponents.labels.location import location

        return location(self.p, self.y) if self.support == "real" else None

    @cached_property
    def scaled(self) -> Parted | None:
        """S(z) and the noise that it multiplies, where P(y|z) is a density of y/S(z)."""
        from hermitex.exponents.labels.scale import scale

        return scale(self.p, self.y) if self.support == "real" and self.added is None else None

    @property
    def remark(self) -> str:
        """How the exponents were found, in words."""
        from hermitex.symbolic.parsing import to_text

        noise = self.added or self.scaled
        if noise is None or not noise.keeps:
            return ""
        how = "plus" if noise is self.added else "times"
        return (f"the label is u {how} a noise, u = {to_text(noise.u)}; {noise.keeps}, so it hides nothing of u: "
                "S(u) in the certificates is a function of u, and some map T(y) of the observed label shows what it shows")

    def labels(self, g: Expr) -> Labels:
        """What the generative exponent depends on."""
        noise = self.added or self.scaled
        if noise is not None and noise.keeps:
            return Labels(noise.u, why=f"y = u(z) {'+' if noise is self.added else '*'} noise: {noise.keeps}")
        if isinstance(self.support, str):
            return Labels(probabilities=tuple(self._at_points()), why="the law of the label at fixed values of y")
        return Labels(probabilities=tuple(self.p.xreplace({self.y: v}) for v in self.support),
                      why="finitely many labels")

    def _at_points(self) -> list[Expr]:
        points = range(6) if self.support == "integers" else [Rational(k, 2) for k in (0, 1, -1, 2, -2, 3, -3, 5, -5)]
        return [self.p.xreplace({self.y: S(v)}) for v in points]

    def latex(self) -> str:
        """P(y|z) = p, and what y is taken from."""
        letters = ", ".join(latex(s) for s in symbols.normals(self.p)) or "z"
        values = {"real": r"y \in \mathbb{R}", "integers": r"y \in \{0, 1, 2, \dots\}"}
        values_of = values.get(self.support) if isinstance(self.support, str) else None
        taken = values_of or rf"y \in \{{{', '.join(latex(v) for v in self.support)}\}}"
        return rf"P(y \mid {letters}) = {latex(self.p)}, \quad {taken}"

    def to_dict(self) -> dict[str, Any]:
        """p, y, the support and the regression, as text that `hermitex.parse` reads."""
        return dict(plain({"name": self.name, "p": self.p, "y": self.y, "support": self.support, "regression": self.regression}))

    @property
    def finite(self) -> bool:
        """True if the label takes finitely many listed values."""
        return not isinstance(self.support, str)


def _listed(support: Any) -> tuple[Expr, ...]:
    """The values of a label: distinct real numbers."""
    from hermitex.symbolic.parsing import real_expression

    try:
        values = tuple(real_expression(v) for v in support)
    except TypeError:
        raise BadInput(f"Channel: support {support!r} is not 'real', 'integers' or a list of values") from None
    if not values or any(v.free_symbols for v in values) or len(set(values)) < len(values):
        raise BadInput(f"Channel: support {list(values)} is not a list of distinct numbers; e.g. support=[-1, 1]")
    return values


@dataclass(frozen=True)
class NamedChannel:
    """A channel of the list: its name, its parameter, and its law as functions of g."""

    name: str
    parameter: Expr | None
    mean_of: Callable[[Expr, Any], Expr] = field(repr=False)
    labels_of: Callable[[Expr, Any], Labels] = field(repr=False)
    fits: Callable[[Expr], None] = field(repr=False)

    def __reduce__(self) -> Any:
        return channel, (str(self),)  # by its name: its functions do not travel between processes

    def mean(self, g: Expr) -> Expr:
        """E[Y|z]."""
        return self.mean_of(g, self.parameter)

    def labels(self, g: Expr) -> Labels:
        """What the generative exponent depends on."""
        return self.labels_of(g, self.parameter)

    def __str__(self) -> str:
        return self.name if self.parameter is None else f"{self.name}:{self.parameter}"


def _two(g: Expr) -> Labels:
    return Labels(probabilities=((1 + g) / 2, (1 - g) / 2), why="two labels")


def _smoothed_sign(g: Expr, variance: Any) -> Expr:
    return erf(g / sqrt(2 * variance))


def channel(spec: Any = None) -> NamedChannel | Channel:
    """A channel from its name (``"gaussian:1/4"``), or the `Channel` itself; None is deterministic.

    Raises
    ------
    BadInput : a parameter that is missing, not a number or out of range. UnknownName : a name not in the list.

    Examples
    --------
    >>> str(channel("flip:1/10"))
    'flip:1/10'
    """
    if isinstance(spec, (NamedChannel, Channel)):
        return spec
    if is_random(spec):
        return Channel(spec)
    name, _, text = ("deterministic" if spec is None else str(spec) or "deterministic").strip().partition(":")
    if name not in _NAMED:
        unknown = UnknownName(name, _NAMED, "channel")
        listed = f"there are {', '.join(sorted(_NAMED))}"
        unknown.args = (str(unknown) if listed in str(unknown) else f"{unknown}; {listed}",)
        raise unknown
    role, *law = _NAMED[name]
    return NamedChannel(name, _parameter(name, role, text), *law)


def _parameter(name: str, role: str | None, text: str) -> Expr | None:
    from hermitex.symbolic.parsing import parse

    example = f"{name}:1/10" if role == "probability" else f"{name}:1"
    if role is None:
        if text:
            raise BadInput(f"channel {name} takes no parameter, not {text!r}")
        return None
    if not text:
        raise BadInput(f"channel {name} needs its {role}, e.g. {example}")
    try:
        value = parse(text)
    except HermitexError as err:
        raise BadInput(f"channel {name}: {text!r} is not a number ({err}); type e.g. {example}") from None
    # next to 10^12 the rest of a label keeps four of its 16 digits: 1/alpha_c is below the rounding of its sums
    largest_noise = S(10)**12
    low, high = {"variance": (S.Zero, largest_noise), "probability": (S.Zero, S.One)}[role]
    inside = value.is_extended_real and (low <= value) is S.true and (value <= high) is S.true  # an average is not compared
    if value.free_symbols or not inside:
        bound = "in [0, 1]" if role == "probability" else "a positive number up to 10**12"
        raise BadInput(f"channel {name}: the {role} {text} is not {bound}")
    if role == "variance" and value == 0:
        raise BadInput(f"channel {name}: the variance is 0; use "
                       + ("deterministic" if name == "gaussian" else "the target sign(...) with channel deterministic"))
    return value


# -- which g fit -----------------------------------------------------------------------------------------------------
def _accepts_any(_: Expr) -> None:
    """Every g fits."""


def _signs(g: Expr) -> None:
    from hermitex.symbolic.pieces import pieces

    variables = symbols.normals(g)
    branches = unless_refused(lambda: pieces(g, variables[0])) if len(variables) == 1 else None
    values = [p.expr for p in branches] if branches else _samples(g) if variables else [g]
    if values and all(v in (1, -1) for v in values):
        return
    raise BadInput(f"channel flip: the target must be a sign, +1 or -1 everywhere; {g} is not. Try sign({g})")


def _nonnegative(g: Expr) -> None:
    if not g.is_nonnegative and any(v < 0 for v in _samples(g)):
        raise BadInput(f"channel poisson: the target is the rate and must not be negative; {g} is, somewhere. "
                       f"Try ({g})**2")


def _probability(g: Expr) -> None:
    if any(not 0 <= v <= 1 for v in _samples(g)):
        raise BadInput(f"channel bernoulli: the target is a probability, in [0, 1]; {g} is not. Try Phi({g})")


def _samples(g: Expr) -> list[Any]:
    """Values of g at fixed points of (-6, 6)^r: enough to refuse a g, never to prove that one fits."""
    from hermitex.symbolic.precise import evaluate_with_error

    variables = symbols.normals(g) or (symbols.z,)
    # Multiples of an irrational spread over the window without meeting the kinks of everyday functions.
    golden = (mpf(5) ** mpf("0.5") - 1) / 2
    points = [[12 * ((k * golden * (i + 1) ** mpf("0.5")) % 1) - 6 for i in range(len(variables))] for k in range(1,
                                                                                                                  200)]
    values = []
    for point in points:
        # A probability that rounds to 0 has no digits, and needs none here.
        value, _ = evaluate_with_error(g, 15, subs={v: Rational(str(x)) for v, x in zip(variables, point, strict=True)})
        values.append(round(value) if abs(value - round(value)) < mpf(10) ** -12 else value)
    return values


# name -> (what its parameter is, E[Y|z], what the exponents depend on, which g fit)
_NAMED: dict[str, tuple[str | None, Callable, Callable, Callable]] = {
    "deterministic": (None, lambda g, _: g, lambda g, _: Labels(g, why="y = g(z)"), _accepts_any),
    "gaussian": ("variance", lambda g, _: g,
                 lambda g, _: Labels(g, why="Gaussian noise: the Fourier transform of its law has no zero"), _accepts_any),
    "flip": ("probability", lambda g, p: (1 - 2 * p) * g, lambda g, p: _two((1 - 2 * p) * g), _signs),
    "sign": ("variance", _smoothed_sign, lambda g, v: _two(_smoothed_sign(g, v)), _accepts_any),
    "random_sign": (None, lambda g, _: S.Zero, lambda g, _: Labels(Abs(g), why="a fair sign leaves |g(z)| only"), _accepts_any),
    "poisson": (None, lambda g, _: g,
                lambda g, _: Labels(g, why="Poisson counts determine a signed measure of their rate"), _nonnegative),
    "bernoulli": (None, lambda g, _: g, lambda g, _: Labels(probabilities=(g, 1 - g), why="two labels"), _probability),
    "multiplicative": (None, lambda g, _: S.Zero,
                       lambda g, _: Labels(Abs(g), why="a Gaussian scale mixture determines the law of |g(z)|"), _accepts_any),
}
