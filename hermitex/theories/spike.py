r"""r = (eta/beta) sigma_1 N_v,   gamma = g_1/N_v,   c = (1 + (eta/beta) sigma_2 Rbar)^2 + (eta/beta)^2 (R_2/alpha_0) Var sigma'(z)

One giant gradient step turns random weights into a spike of size r along a direction of overlap gamma with the target's,
on a bulk of variance c [cui2024, Result 3.1]. The step is eta d (eta is eta_tilde), the batch alpha_0 d, the width beta d;
R = y - f^0 is the residual at the start, Rbar = g_0 - sigma_0 its mean, R_2 its mean square, N_v = sqrt(g_1^2 + R_2/alpha_0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sympy import Basic, DiracDelta, Expr, Rational, S, Symbol, oo, sqrt, sympify
from sympy.core.function import AppliedUndef

from hermitex.errors import NO_NUMBER, BadInput, Divergent, NoClosedForm, NoValue, UnknownName
from hermitex.hints import Formula
from hermitex.show.cite import Cited
from hermitex.show.display import WIDE, Shown, latex, shorten
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbolic.undefined import tidy
from hermitex.symbols import Delta, alpha0, beta, eta, z
from hermitex.theories.conditional_coefficients import in_floats
from hermitex.theories.curve import Curve
from hermitex.theories.directions import DirectedTarget, Target, target_of
from hermitex.theories.optimum import featureless
from hermitex.theories.theory import Theory


class Spiked(NamedTuple):
    """The equivalent spiked random features: W = W_bulk + spike."""

    r: Any
    c: Any
    gamma: Any


@dataclass(frozen=True, repr=False)
class Spike(Cited, Shown):
    """(r, c, gamma) of an activation and a target, as formulas of (alpha0, eta, beta, Delta); callable on numbers."""

    sources = ("cui2024",)

    sigma: Activation
    g: Target

    # -- the constants -----------------------------------------------------------------------------------------------
    @cached_property
    def coefficients(self) -> dict[str, Expr]:
        """sigma_0, sigma_1, sigma_2, g_0, g_1, E g^2: exact where there is a closed form, else E(...) nodes; g_1 may be |C_1|."""
        s, g = self.sigma(z), self.g.expr
        found = {f"sigma_{k}": _mean(he*s) for k, he in enumerate((S.One, z, z**2 - 1))}
        if isinstance(self.g, DirectedTarget):
            return {**found, "g_0": self.g.mean(g), "g_1": sqrt(sum(v**2 for v in self.g.charged)), "g_squared": self.g.mean(g**2)}
        return {**found, "g_0": _mean(g), "g_1": _mean(z*g), "g_squared": _mean(g**2)}

    @cached_property
    def slope_variance(self) -> Expr:
        """Var sigma'(z) = E sigma'^2 - sigma_1^2; raises BadInput where sigma jumps, for sigma' is then not square integrable."""
        slope = self.sigma.weak_derivative.expr
        if slope.has(DiracDelta):
            raise BadInput(f"{self.sigma.name} jumps: sigma' is not square integrable, and the bulk's variance c after a gradient "
                           "step is infinite; give r, c and gamma instead of alpha0 and eta")
        return _mean(slope**2) - self.coefficients["sigma_1"]**2

    @property
    def R_2(self) -> Expr:
        """E R^2 = E g^2 - 2 g_0 sigma_0 + sigma_0^2 + Delta, the residual's mean square before the step."""
        k = self.coefficients
        return k["g_squared"] - 2*k["g_0"]*k["sigma_0"] + k["sigma_0"]**2 + Delta

    @property
    def N_v(self) -> Expr:
        """sqrt(g_1^2 + R_2/alpha0), the norm of the gradient's direction (1/n_B) sum R x."""
        return sqrt(self.coefficients["g_1"]**2 + self.R_2/alpha0)

    @property
    def r(self) -> Expr:
        """(eta/beta) sigma_1 N_v, the size of the spike in a pre-activation."""
        return eta/beta*self.coefficients["sigma_1"]*self.N_v

    @property
    def c(self) -> Expr:
        """(1 + (eta/beta) sigma_2 Rbar)^2 + (eta/beta)^2 (R_2/alpha0) Var sigma', the variance of the bulk."""
        k = self.coefficients
        return (1 + eta/beta*k["sigma_2"]*(k["g_0"] - k["sigma_0"]))**2 + (eta/beta)**2*self.R_2/alpha0*self.slope_variance

    @property
    def gamma(self) -> Expr:
        """g_1/N_v, the overlap of the spike with the target's direction; 0 if g_1 = 0."""
        g_1 = self.coefficients["g_1"]
        return g_1/self.N_v if g_1 != 0 else S.Zero

    @property
    def Gamma(self) -> tuple[Expr, ...]:
        """The overlaps with each direction of the target, C_1/N_v: (gamma,) of a target of one variable."""
        return tuple(v/self.N_v for v in self.g.linear) if isinstance(self.g, DirectedTarget) else (self.gamma,)

    @property
    def limit(self) -> Spiked:
        """The formulas at alpha0 = oo (the population gradient): gamma = sign(g_1)."""
        return Spiked(*(e.subs(alpha0, oo) for e in (self.r, self.c, self.gamma)))

    # -- numbers -----------------------------------------------------------------------------------------------------
    def __call__(self, alpha0: Any, eta: Any, beta: Any = 1, Delta: Any = 0, **parameters: Any) -> Spiked:
        """(r, c, gamma): floats for numbers, arrays for arrays, exact for SymPy arguments.

        Parameters
        ----------
        alpha0 : batch size n_B/d > 0, inf allowed    eta : step size/d >= 0    beta : width p/d > 0    Delta : noise >= 0
        parameters : one number for each parameter of sigma and g

        Raises
        ------
        BadInput : a number out of its range; sigma jumps.
        """
        if any(isinstance(v, Basic) for v in (alpha0, eta, beta, Delta)):
            rule = dict(zip(_LETTERS, map(sympify, (alpha0, eta, beta, Delta)), strict=True))
            return Spiked(*(e.subs(rule, simultaneous=True) for e in (self.r, self.c, self.gamma)))
        given = {"alpha0": alpha0, "eta": eta, "beta": beta, "Delta": Delta}
        given = {k: np.asarray(v, dtype=float) for k, v in given.items()}
        for name, v in given.items():
            _within("spike", name, v)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.features_at(given, _parameters(self, parameters))
        if not all(np.all(np.isfinite(v)) for v in found):
            raise BadInput("spike: r or c of such a step is beyond what a float holds; take less extreme alpha0, eta, beta, Delta")
        return Spiked(*(v if v.ndim else v.item() for v in np.broadcast_arrays(*found)))

    def features_at(self, at: Mapping[str, np.ndarray], parameters: tuple[tuple[str, float], ...]) -> tuple[np.ndarray, ...]:
        k = _constants(self, parameters)
        t, batch = at["eta"]/at["beta"], 1/at["alpha0"]
        bar, R_2 = k["g_0"] - k["sigma_0"], k["rest"] + at["Delta"]
        N_v = np.sqrt(k["g_1"]**2 + R_2*batch)
        gamma = np.divide(k["g_1"], N_v, out=np.zeros_like(N_v), where=N_v > 0)  # without a gradient the direction is undefined
        c = (1 + t*k["sigma_2"]*bar)**2 + t**2*R_2*batch*k["slope"]
        return t*k["sigma_1"]*N_v, c, np.clip(gamma, -1, 1)

    def c_bias(self, *, alpha0: Any, eta: Any, beta: Any = 1) -> Any:
        """lim d (E c_d - c): the mean bulk variance at dimension d is c + c_bias/d, for an odd sigma and labels without noise.

        With t = eta/beta, xi = sigma' - sigma_1 and sigma_3 = E[xi He_2], the average over u and z standard normal is

            (t^2 E[sigma^2 - R_2] E xi^2/alpha0 - 2 t E[sigma xi u])/beta + t^2 g_1^2 sigma_3^2
            + (t^2/alpha0) (E[g^2 (z^2 - 1)] E xi^2 + R_2 E[xi^2 (u^2 - 1)]).

        The overlap gamma has a term of order 1/d as well, for which no formula is known. Derived, checked by simulation.

        Raises
        ------
        BadInput : sigma is not odd or jumps, the target has several directions or a parameter, a number out of range.

        >>> round(spike("tanh", "sin").c_bias(alpha0=20, eta=3), 6)
        1.574723
        """
        if self.sigma.parity != -1 or isinstance(self.g, DirectedTarget):
            raise BadInput(f"spike: the 1/d term of c is known for an odd activation and a target of one direction z, "
                           f"not for {self.sigma.name} and {self.g.name}")
        require_numbers("spike", "activation", self.sigma)
        require_numbers("spike", "target", self.g)
        batches, rate, width = (np.asarray(v, dtype=float) for v in (alpha0, eta, beta))
        for name, value in (("alpha0", batches), ("eta", rate), ("beta", width)):
            _within("spike", name, value)
        t, batch, k = rate/width, 1/batches, _constants(self, ())
        xi, act, g = self.sigma.weak_derivative.expr - self.coefficients["sigma_1"], self.sigma(z), self.g.expr
        own, field, curved, label, product, third = (float(evaluate(E(f, z), digits=17)) for f in (
            act**2, act*xi*z, xi**2*(z**2 - 1), g**2*(z**2 - 1), xi**2, xi*(z**2 - 1)))
        R_2 = k["rest"]
        found = ((t**2*batch*(own - R_2)*product - 2*t*field)/width + t**2*k["g_1"]**2*third**2
                 + t**2*batch*(label*product + R_2*curved))
        return found if found.ndim else float(found)

    # -- showing -----------------------------------------------------------------------------------------------------
    def _rows(self) -> dict[str, Any]:
        try:
            c = self.c
        except BadInput:
            c = oo
        return {"r": self.r, "c": c, "gamma": self.gamma}

    def __repr__(self) -> str:
        return shorten(f"Spike({self.sigma.name}, {self.g.name}): " + ", ".join(f"{k} = {v}" for k, v in self._rows().items()),
                       3*WIDE)

    def latex(self) -> str:
        """The three formulas, an align block."""
        lines = [rf"  {latex(Symbol(k))} &= {latex(v)}" for k, v in self._rows().items()]
        return "\\begin{align}\n" + " \\\\\n".join(lines) + "\n\\end{align}"

    def to_dict(self) -> dict[str, Any]:
        """{"sigma", "target", "r", "c", "gamma", "coefficients"} as text that `hermitex.parse` reads."""
        return dict(plain({"sigma": self.sigma(z), "target": self.g.expr, **self._rows(), "coefficients": self.coefficients}))


def spike(sigma: Formula, g: Formula) -> Spike:
    """The effect of one giant gradient step on random weights: (r, c, gamma) as formulas.

    r = t sigma_1 N_v,   c = (1 + t sigma_2 Rbar)^2 + t^2 (R_2/alpha0) Var sigma',   gamma = g_1/N_v,   t = eta/beta
    with s_k = E[s(z) He_k(z)], Rbar = g_0 - sigma_0, R_2 = E g^2 - 2 g_0 sigma_0 + sigma_0^2 + Delta,
    N_v = sqrt(g_1^2 + R_2/alpha0); for odd sigma c = 1 + t^2 (E g^2 + Delta)/alpha0 Var sigma'.

    Parameters
    ----------
    sigma : activation: a name, text or expression in z, or `Activation`
    g : target, likewise, or in z1, z2, ...: g_1 is then |C_1|, C_1 = E[g z]; square integrable

    Returns
    -------
    Spike : `.r`, `.c`, `.gamma` in alpha0 (batch n_B/d), eta (step/d), beta (width p/d), Delta (label noise); `.Gamma`, the
    overlaps with z1, z2, ...; `.limit` at alpha0 = oo; ``spike(sigma, g)(alpha0, eta, beta, Delta)`` the numbers.

    Raises
    ------
    BadInput : sigma or g is not square integrable; from `.c` and the numbers, sigma jumps.

    Guarantee
    ---------
    Exact formulas where closed forms exist, else digits of double precision. This is the limit of the sources; accuracy at
    finite dimension is not promised. See docs/promise.md.

    References: cui2024 (Result 3.1; non-odd sigma adds the terms in sigma_0 and sigma_2).

    Examples
    --------
    >>> spike("erf", "sign").gamma
    sqrt(2)/(sqrt(pi)*sqrt(2/pi + (Delta + 1)/alpha0))
    >>> [round(v, 10) for v in spike("tanh", "sin")(alpha0=20, eta=3)]
    [1.1340555093, 1.0189732005, 0.9718544445]
    """
    return _made(activation(sigma), target_of("spike", g))


@cache
def _made(sigma: Activation, g: Target) -> Spike:
    for role, f in (("activation", sigma), ("target", g)):
        require_square_integrable("spike", role, f)
    return Spike(sigma, g)


def require_square_integrable(asking: str, role: str, f: Target) -> None:
    """Raise one clear line if f is complex, E f(z)^2 was proved to be infinite, or is beyond what a float holds."""
    if f.expr.has(S.ImaginaryUnit) and f.expr.is_real is not True:
        raise BadInput(f"{asking}: the {role} {shorten(f.name, 60)} is complex; give a real function")
    in_floats(f)
    if f.in_L2 is False:
        raise BadInput(f"{asking}: the {role} {shorten(f.name, 60)} is not square integrable: E[f(z)^2] = oo for z ~ N(0, 1)")


def explain_missing_moment(found: Solution, sigma: Activation, numbers: Mapping[str, np.ndarray]) -> Solution:
    """The same solution, with a reason if the features have no second moment; tested at the widest failed points."""
    shape = np.broadcast_shapes(*(np.shape(v) for v in numbers.values()))
    at = {n: np.broadcast_to(numbers.get(n, np.asarray(0.0)), shape).ravel() for n in ("r", "c", "bias")}
    failed = ~np.asarray(found.converged, dtype=bool).ravel()
    width = np.where(failed, at["r"]**2 + at["c"], -np.inf)
    worst = int(np.argmax(width))
    spread, shift = Rational(float(width[worst])), Rational(float(at["bias"][worst]))
    if free_parameters(sigma) or activation(sigma(sqrt(spread)*z + shift)).in_L2 is not False:
        return found
    why = f"the features have no second moment: E sigma(u)^2 = oo at Var u = r^2 + c = {float(spread):g}; take r and c smaller"
    reason = np.where(width == width[worst], why, np.ravel(np.asarray(found.reason, dtype=object))).astype(object)
    return replace(found, reason=reason if np.ndim(found.converged) else why)


def say_noise(found: Solution, numbers: Mapping[str, np.ndarray]) -> Solution:
    """The same solution, with a note where a gradient step was asked for and the target has no linear part to point at."""
    if "alpha0" not in numbers or np.any(numbers["gamma"]) or not np.any(numbers["eta"]):
        return found
    return replace(found, notes=(*found.notes, "C_1 = E[g z] = 0: the spike is pure noise (gamma = 0); the step finds no "
                                 "direction, and of g the readout learns the mean alone"))


_LETTERS = (alpha0, eta, beta, Delta)


def _mean(e: Expr) -> Expr:
    """E e(z): the closed form, or the node that evaluates."""
    if e.atoms(AppliedUndef):
        return E(tidy(e), z)  # for every function at once, as in a derivation
    node = E(e, z)
    try:
        return closed_form(node)
    except NoClosedForm:
        return node


@cache
def _constants(asked: Spike, parameters: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """The constants of the formulas in double precision, each from 17 digits."""
    k = asked.coefficients
    wanted = {**{n: k[n] for n in ("sigma_0", "sigma_1", "sigma_2", "g_0", "g_1")}, "rest": asked.R_2.subs(Delta, 0),
              "slope": asked.slope_variance}
    subs = dict(parameters)
    digits = 17 if isinstance(asked.g, Activation) else 14  # an average over several variables has fewer
    try:
        found = {n: float(evaluate(e, digits=digits, subs=subs)) for n, e in wanted.items()}
    except Divergent as error:
        raise BadInput(f"spike: {error}") from error
    size = float(evaluate(k["g_squared"], digits=digits, subs=subs))**0.5
    vanishes = 1e-15  # of sqrt(E g^2): a coefficient that small is a zero that was not proved
    if abs(found["g_1"]) <= vanishes*size:
        found["g_1"] = 0.0
    return {**found, "slope": max(found["slope"], 0.0), "rest": max(found["rest"], 0.0)}


def _parameters(asked: Spike, given: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The values of the parameters of sigma and g, by name."""
    known = free_parameters(asked.sigma, asked.g)
    for name in given:
        if name not in known:
            raise UnknownName(name, [*known, "alpha0", "eta", "beta", "Delta"], "keyword of spike")
    if missing := [n for n in known if n not in given]:
        raise BadInput(f"spike: {missing[0]}, a parameter of sigma or g, has no value; add {missing[0]}=...")
    try:
        return tuple((n, float(given[n])) for n in known)
    except NO_NUMBER:
        raise BadInput("spike: a parameter of sigma or g is one number") from None


def free_parameters(*functions: Target) -> tuple[str, ...]:
    """Names of the letters other than z in the functions, sorted."""
    return tuple(sorted({s.name for f in functions for s in f.letters}))


def require_numbers(asking: str, role: str, f: Target) -> None:
    """Raise one clear line if the function holds a letter other than z."""
    if extra := free_parameters(f):
        raise BadInput(f"{asking}: the {role} {f.name} holds {', '.join(extra)}; put numbers in")


def functions(asking: str, sigma: Any, g: Any, taken: set[str]) -> tuple[Activation, Target]:
    """Activation and target as a theory takes them: square integrable, their parameters not called like its own letters."""
    made = activation(sigma), g if isinstance(g, DirectedTarget) else activation(g)
    for role, f in zip(("activation", "target"), made, strict=True):
        require_square_integrable(asking, role, f)
    if clash := sorted({*free_parameters(*made)} & taken):
        raise BadInput(f"{asking}: {clash[0]} is a letter of the theory; call the parameter of sigma or g otherwise")
    return made


def own_letters(functions: Sequence[Target], taken: Iterable[Any]) -> tuple[Symbol, ...]:
    """The letters other than z in the functions, as parameters of a system whose other names are `taken`.

    Raises BadInput where a function has given a letter of the equations to a parameter of its own.
    """
    found = sorted({v for f in functions for v in f.letters}, key=str)
    clash = sorted({v.name for v in found} & {str(v) for v in taken})
    if clash:
        raise BadInput(f"one-step: sigma or g has a parameter {clash[0]}, which is a letter of the equations; name it otherwise")
    return tuple(found)


# -- what the whole one-step family shares ----------------------------------------------------------------------------
_POSITIVE: tuple[str, Callable] = ("positive and finite", lambda v: (v > 0) & np.isfinite(v))
_NONNEGATIVE: tuple[str, Callable] = ("0 or more, and finite", lambda v: (v >= 0) & np.isfinite(v))
_LARGE: tuple[str, Callable] = ("positive (inf is allowed)", lambda v: v > 0)
_FINITE: tuple[str, Callable] = ("finite", np.isfinite)
#: letter -> what must hold; the others are finite
_RANGES = {"alpha": _POSITIVE, "beta": _POSITIVE, "lam": _NONNEGATIVE, "Delta": _NONNEGATIVE, "alpha0": _LARGE, "eta": _NONNEGATIVE,
           "c": _POSITIVE, "gamma": ("between -1 and 1", lambda v: abs(v) <= 1), "dimension": _LARGE}


def _within(asking: str, name: str, v: np.ndarray) -> None:
    must, test = _RANGES.get(name, _FINITE)
    if not (good := test(v)).all():
        raise BadInput(f"{asking}: {name} = {v[~good].flat[0]:g}; it must be {must}")


def require_ranges(asking: str, numbers: Mapping[str, np.ndarray], *, needed: tuple[str, ...] = ("alpha", "lam")) -> None:
    """Raise one clear line if a number is missing or out of its range."""
    for name in needed:
        if name not in numbers:
            raise NoValue(asking, name)
    for name, v in numbers.items():
        _within(asking, name, v)


def complete_numbers(asking: str, sigma: Activation, g: Target, numbers: Mapping[str, np.ndarray],
              *, spiked: tuple[str, ...] = ("r", "c", "gamma")) -> dict[str, np.ndarray]:
    """The numbers of a one-step theory, checked, with r, c, gamma from (alpha0, eta) where these were given.

    Parameters
    ----------
    asking : the theory's name, for messages
    numbers : float arrays by name; alpha, lam and either alpha0 and eta or all of `spiked`
    spiked : which of r, c, gamma must be given where alpha0 and eta are not

    Raises
    ------
    BadInput : one line: a number out of its range or missing, both ways given, or neither.
    """
    require_ranges(asking, numbers)
    step, direct = ([n for n in names if n in numbers] for names in (("alpha0", "eta"), ("r", "c", "gamma")))
    ways = f"alpha0 and eta (one gradient step), or {', '.join(spiked[:-1])} and {spiked[-1]} (the spiked features themselves)"
    if step and direct:
        raise BadInput(f"{asking}: {', '.join(step)} and {', '.join(direct)} were given; give either {ways}")
    if len(step) == 1 or (not step and not set(direct) >= set(spiked)):
        said = f"only {', '.join(step or direct)} was given" if step or direct else "the features are missing"
        raise BadInput(f"{asking}: {said}; give {ways}")
    if not step and isinstance(g, DirectedTarget) and not any(g.charged) and np.any(numbers["gamma"]):
        raise BadInput(f"{asking}: gamma is the overlap with C_1 = E[g z], which is 0 for {shorten(g.name, 50)}; give gamma = 0")
    if not step:
        return dict(numbers)
    own = free_parameters(sigma, g)
    for name in own:
        if np.ndim(numbers.get(name, 0)):
            raise BadInput(f"{asking}: with alpha0 and eta, {name} is one number; solve once for each value")
    inputs = {n: numbers.get(n, np.asarray(d, dtype=float)) for n, d in (("alpha0", 0), ("eta", 0), ("beta", 1), ("Delta", 0))}
    found = spike(sigma, g)(**inputs, **{n: numbers[n] for n in own if n in numbers})
    made = {n: np.asarray(v, dtype=float) for n, v in found._asdict().items()}
    if not np.all(made["c"] > 0):
        raise BadInput(f"{asking}: the step makes the bulk vanish, c = 0 (1 + (eta/beta) sigma_2 (g_0 - sigma_0) = 0); change eta")
    return {**numbers, **made}


@dataclass(frozen=True, repr=False)
class OneStepFamily(Theory):
    """The letters, their completion and the description that every one-step theory shares."""

    sigma: Activation
    g: Target

    name: ClassVar[str] = "one-step"
    sources: ClassVar[tuple[str, ...]] = ("cui2024",)
    has_network: ClassVar[bool] = False  # True where network='exact' solves the same structure for odd sigma
    NUMBERS: ClassVar[tuple[str, ...]] = ("alpha", "beta", "lam", "Delta", "alpha0", "eta", "r", "c", "gamma", "bias", "dimension")

    def letters(self) -> dict[str, Any]:
        """alpha, beta=1, lam, Delta=0; alpha0 and eta, or r, c and gamma; bias=0; dimension=None; parameters of sigma and g."""
        defaults = {"alpha": self.REQUIRED, "lam": self.REQUIRED, "beta": 1.0, "Delta": 0.0, "bias": 0.0}
        return {n: defaults.get(n) for n in self.NUMBERS} | dict.fromkeys(free_parameters(self.sigma, self.g), self.REQUIRED)

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with r, c, gamma of the gradient step."""
        return complete_numbers(self.name, self.sigma, self.g, numbers)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """sigma and target as text, then the numbers that stayed fixed."""
        return {"sigma": self.sigma.name, "target": self.g.name, **{k: v for k, v in fixed.items() if k != "epsilon"}}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """The words "random features" if r = 0, as no gradient step was made; else none."""
        return "random features" if numbers.get("r") == 0 else ""

    def at_size_of(self, measured: Curve) -> dict[str, Any]:
        """The dimension, if the experiment is made with spiked features: the 1/d term is their whole correction of that order."""
        return {"dimension": measured.parameters["dimension"]} if measured.parameters["model"] == "features" else {}

    def of_experiment(self, theory: Curve, measured: Curve) -> str:
        """Which line it is next to a network, and how far it is from the experiment."""
        if measured.parameters["model"] == "features":
            return ""
        if getattr(self, "network", "") != "exact":
            return ("the line is that of spiked features, d -> infinity, 1 to 6 % off the network"
                    + ("; network='exact' is its own theory" if self.has_network and self.sigma.parity == -1 else ""))
        if theory.parameters.get("dimension") is not None:
            return "the 1/d term is not the whole correction of a network: errors lie between this line and that of d -> infinity"
        return "the line is d -> infinity; errors of a network are about 2 % off it at d = 200, 1.5 % at d = 400"

    def of_optimum(self, found: Solution) -> str:
        """That the best step learns no features, where that is so."""
        return featureless(self, found)

    def axis_of(self, at: Mapping[str, Any]) -> np.ndarray:
        """The direction in the target's span that the spike has at these numbers: e = C_1/|C_1|."""
        g = self.g
        return np.array([1.0] if isinstance(g, Activation) else [float(evaluate(g.names.get(e, e), digits=14)) for e in g.axis])

    @property
    def spike(self) -> Spike:
        """(r, c, gamma) as formulas of (alpha0, eta, beta, Delta)."""
        return spike(self.sigma, self.g)
