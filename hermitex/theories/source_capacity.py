r"""bias ~ n^-min(2 a m (r ^ 1), (2 a (r ^ 1/2) - 1) m + q), variance ~ n^-(1 - m), m = min(ell/a, q, 1): ridge under power laws.

Eigenvalues k^-a (capacity a > 1) and target coefficients k^(-a r - 1/2) (source r > 0); n samples, p = n^q random features, ridge
lam = n^-(ell - 1) in the objective sum (y - f)^2 + lam |w|^2 (n^-ell for the mean square); r ^ 1 = min(r, 1). Theorem for random
features [defilippis2024]; q = oo is the kernel [cui2021], its best rate that of [caponnetto2007]; the least width is derived here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import zeta
from sympy import Expr, Max, Min, Rational, Symbol, oo

from hermitex.errors import BadInput
from hermitex.hints import Axes
from hermitex.solvers.solution import Solution
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import alpha, r
from hermitex.theories.claims import Border, Claim, Claims, Regime, Regimes, exact
from hermitex.theories.ridge_equivalent import RidgeEquivalent, ridge_equivalent
from hermitex.theories.theory import Theory, numbers_latex

ELL, WIDTH = Symbol("ell", positive=True), Symbol("q", positive=True)
_PLATEAU = "ridge too small"
_MODES = 1_000_000  # of a curve at most: 8 MB


@dataclass(frozen=True, repr=False)
class SourceCapacity(Theory):
    """Rates of ridge regression under power laws: `.rates(ell, q)`, `.regime(ell, q)`, `.optimum()`, `.curve(n, ell=)`."""

    capacity: Expr
    source: Expr

    name: ClassVar[str] = "source-capacity"
    axis: ClassVar[str] = "n"
    sources: ClassVar[tuple[str, ...]] = ("defilippis2024", "cui2021", "caponnetto2007")

    @property
    def _sources(self) -> tuple[Expr, Expr]:
        """r ^ 1 and r ^ 1/2: the saturations of ridge, and of the sampling of features."""
        return Min(self.source, 1), Min(self.source, Rational(1, 2))

    @cached_property
    def regimes(self) -> Regimes:
        """The cells over (ell, q), the exponents in each, and the lines on which they meet.

        Which term of m is least: ell/a (the ridge), q (the width) or 1 (the samples: the variance stays O(1)); and
        which term of the bias, which is the first for q >= s m, s = 1 + 2 a (r ^ 1 - r ^ 1/2).
        """
        a, (one, half) = self.capacity, self._sources
        s = 1 + 2*a*(one - half)
        wide, narrow, few = "ridge, wide", "ridge, width felt", "width"
        plateau, felt = f"{_PLATEAU}, wide", f"{_PLATEAU}, width felt"

        ell, q = ELL, WIDTH

        def exponents(bias: Expr, m: Expr) -> dict[str, Expr]:
            return {"bias": bias, "variance": 1 - m}

        cells: tuple[Regime, ...] = (
            Regime(wide, (a - ell, a*q - s*ell), exponents(2*ell*one, ell/a)),
            Regime(narrow, (a - ell, s*ell - a*q, a*q - ell), exponents((2*half - 1/a)*ell + q, ell/a)),
            Regime(few, (1 - q, ell - a*q), exponents(2*a*half*q, q)),
            Regime(plateau, (ell - a, q - s), exponents(2*a*one, 1)),
            Regime(felt, (ell - a, s - q, q - 1), exponents(2*a*half - 1 + q, 1)))
        borders = [Border((wide, narrow), {q: s*ell/a}), Border((narrow, few), {q: ell/a}), Border((few, felt), {q: 1}),
                   Border((wide, plateau), {ell: a}), Border((narrow, felt), {ell: a}), Border((plateau, felt), {q: s})]
        if s == 1:  # no cell in which both the width and the ridge matter
            cells = (cells[0], cells[2], cells[3])
            borders = [Border((wide, few), {q: ell/a}), Border((few, plateau), {q: 1}), Border((wide, plateau), {ell: a})]
        return Regimes(f"source {self.source}, capacity {a}", cells, tuple(borders), "defilippis2024")

    def rates(self, ell: Any = None, q: Any = None) -> Claims:
        """The exponents at lam = n^-(ell - 1), p = n^q: excess risk ~ n^-bias + Delta n^-variance.

        Parameters
        ----------
        ell, q : numbers, texts or symbols; q = oo is the kernel; left out they stay symbols

        Returns
        -------
        Claims : `bias`, `variance`: a SymPy Piecewise of ell and q, or numbers. Theorem [defilippis2024], [cui2021] at q = oo.

        Examples
        --------
        >>> found = source_capacity("3/2", "3/10").rates("1/2", "4/5")
        >>> found["bias"], found["variance"]
        (3/10, 2/3)
        """
        at = self._at(ell, q)
        kernel = at.get(WIDTH) == oo
        source, words = ("cui2021", "the kernel") if kernel else ("defilippis2024", "random features")
        return Claims(f"ridge regression, source {self.source}, capacity {self.capacity}", {
            n: Claim(self.regimes.piecewise(n).subs(at), "heuristic" if kernel else "theorem", source,
                     f"{words}: excess risk ~ n^-bias + Delta n^-variance") for n in ("bias", "variance")})

    def regime(self, ell: Any, q: Any = oo) -> str:
        """The name of the regime at numbers.

        >>> source_capacity(2, "1/2").regime("1/3")
        'ridge, wide'
        """
        numbers = self._at(ell, q)
        self._need_numbers(*numbers.values())
        return self.regimes.at(numbers).name

    def optimum(self) -> Claims:
        """The best ridge with noise, its rate, and the least width that keeps it.

        >>> found = source_capacity(2, "1/2").optimum()
        >>> found["ell"], found["rate"], found["q_min"]
        (2/3, 2/3, 1/3)
        """
        a, (one, half) = self.capacity, self._sources
        whole = 1 + 2*a*one
        best = "the best exponent of the ridge with noise, where bias and variance balance"
        return Claims(f"the best ridge, source {self.source}, capacity {a}", {
            "ell": Claim(a/whole, "heuristic", "cui2021", best),
            "rate": Claim(2*a*one/whole, "theorem", "caponnetto2007",
                          "excess risk ~ n^-rate, no estimator does better for r <= 1"),
            "q_min": Claim((1 + 2*a*(one - half))/whole, "derived", "defilippis2024",
                           "p = n^q features keep the rate for q >= q_min")})

    def continuity(self) -> dict[str, dict[str, Expr]]:
        """{"a | b": {exponent: difference on the line where the regimes a and b meet}}; all are 0, which proves continuity.

        >>> source_capacity().regimes.continuous
        True
        """
        return self.regimes.continuity()

    # -- the errors themselves -----------------------------------------------------------------------------------------
    @property
    def system(self) -> Any:
        """That of `ridge_equivalent`."""
        return ridge_equivalent().system

    errors = RidgeEquivalent.errors
    # nu_1 and nu_2; minus the slopes of log bias and log variance over log n, which approach the exponents as n grows
    order_parameters = (*RidgeEquivalent.order_parameters, "bias_rate", "variance_rate")

    def letters(self) -> dict[str, Any]:
        """n; ell, lam = n^-(ell - 1); q = inf, p = n^q; noise = 0."""
        return {"n": self.REQUIRED, "ell": self.REQUIRED, "q": np.inf, "noise": 0.0}

    def given(self, numbers: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The numbers; ell and q as exact texts, too."""
        texts = {k: float(exact(k, v)) for k, v in numbers.items() if k in ("ell", "q") and isinstance(v, (str, Expr))
                 and not exact(k, v).free_symbols}
        return super().given({**numbers, **texts})

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked, with the ridge, the width and the spectrum that they mean.

        Eigenvalues k^-capacity and coefficients k^(-capacity source - 1/2): one by one down to 1e-4 of what is learnt (a
        million at most), the others by their sum as infinitesimal ones.
        """
        self._need_numbers()
        found = self.checked(numbers, n="> 0", ell="> 0", q="> 0 inf", noise=">= 0")
        if not np.all(found["n"] >= 1):
            raise BadInput(f"{self.name}: n is 1 or more, not {float(np.min(found['n'])):g}")
        a, r, n, ell, q = float(self.capacity), float(self.source), found["n"], found["ell"], found["q"]
        learnt = float(np.max(n**np.minimum(np.minimum(ell/a, q), 1.0)))
        below = 1e4  # a curve's modes reach down to nu_2/below
        k = np.arange(1, np.clip(learnt*below**(1/a), 1000, _MODES) + 1)
        return ridge_equivalent().complete({
            **found, "lam": n**(1 - ell), "p": _width(n, q), "tail": np.asarray(zeta(a, k.size + 1)),
            "eigenvalues": np.append(k**-a, 0.0), "coefficients": np.append(k**(-a*r - 0.5), np.sqrt(zeta(2*a*r + 1, k.size + 1)))})

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """The deterministic equivalent, and its slopes."""
        n, ell, q = (np.asarray(numbers[name]) for name in ("n", "ell", "q"))
        rest = {name: v for name, v in numbers.items() if name not in ("ell", "q")}
        theory = ridge_equivalent()
        found = theory.run(rest, **options)
        least, last = float(np.fmin.reduce(np.ravel(found["nu_2"]))), float(numbers["eigenvalues"][-2])
        close = 20.0  # a curve's modes reach down to nu_2/close at least
        if least < close*last:
            raise BadInput(f"{self.name}: at n = {float(n.max()):g} eigenvalues are learnt down to {least:.1e}, which takes more "
                           f"than {_MODES:,} modes; take a smaller n")
        sides = []
        half_step = 0.05  # of log n, to either side, from which a slope is taken
        for step in (-half_step, half_step):
            there = n*np.exp(step)
            sides.append(theory.run({**rest, "n": there, "lam": there**(1 - ell), "p": _width(there, q), "noise": np.asarray(1.0)},
                                    raise_on_failure=False))
        rates = {f"{name}_rate": (np.log(sides[0][name]) - np.log(sides[1][name]))/(2*half_step) for name in ("bias", "variance")}
        return found.extended(rates, notes=found.notes)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Capacity, source, the numbers that stayed fixed, and where they say them the exponents that the slopes approach."""
        own = {k: v for k, v in fixed.items() if k in self.letters()}
        rates = self.rates(own["ell"], own["q"]) if {"ell", "q"} <= set(own) else {}
        return {"capacity": float(self.capacity), "source": float(self.source), **own,
                **{f"{name}_exponent": float(v) for name, v in rates.items()}}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Capacity, source, and the numbers that are fixed."""
        return ", ".join((f"capacity = {self.capacity}", f"source = {self.source}", *numbers_latex(numbers, ell=r"\ell", q="q")))

    def minimise(self, objective: str, over: Any, bounds: Any = None, **rest: Any) -> Solution:
        """As `Theory.minimise`, by the noise; ell decides the spectrum's length too: its best exponent is `.optimum()`'s."""
        if {"ell", "q"} & {str(n) for n in ([over] if isinstance(over, str) else over)}:
            a, b = self.capacity, self.capacity*self.source + Rational(1, 2)
            raise BadInput(f"{self.name}: ell and q have best exponents, .optimum(); the best ridge at each n is sought where the "
                           f"spectrum is given: hermitex curve ridge --optimise lam --n 10,100 --noise 0.1 --eigenvalues "
                           f"'k**(-({a})), 1..10000' --coefficients 'k**(-({b})), 1..10000'")
        return super().minimise(objective, over, bounds, **rest)

    def plot(self, ax: Axes | None = None, *, ells: tuple[float, float] | None = None, qs: tuple[float,
             float] | None = None) -> Axes:
        """The regimes over ell and q, the optimum as a point, its least width where the line through it ends."""
        self._need_numbers()
        a, (one, half) = self.capacity, self._sources
        low, high = ells or (0.0, 1.6*float(a))
        bottom, top = qs or (0.0, 1.5*float(Max(1, 1 + 2*a*(one - half))))
        grid = ([low + (high - low)*(i + 0.5)/240 for i in range(240)], [bottom + (top - bottom)*(i + 0.5)/240 for i in range(240)])
        ax = self.regimes.plot((ELL, grid[0]), (WIDTH, grid[1]), ax)
        best = self.optimum()
        x, y = float(best["ell"]), float(best["q_min"])
        ax.plot([x, x], [y, top], color="black", linewidth=1.2, linestyle="--")
        ax.plot([x], [y], "k*", markersize=9)
        ax.annotate("best ridge, least width", (x, y), textcoords="offset points", xytext=(7, -3), fontsize="small")
        ax.set_ylim(bottom, top)
        return ax

    def _at(self, at_ell: Any, at_q: Any) -> dict[Symbol, Expr]:
        found = {}
        for symbol, given in ((ELL, at_ell), (WIDTH, at_q)):
            if given is not None and (value := exact(symbol.name, given)) != symbol:
                if value.is_extended_positive is False:
                    raise BadInput(f"source_capacity: {symbol.name} is positive, not {given}")
                if value == oo and symbol is ELL:
                    raise BadInput("source_capacity: ell is finite; any ell above the capacity means no ridge")
                found[symbol] = value
        return found

    def _need_numbers(self, *values: Expr) -> None:
        named = {s for e in (self.capacity, self.source, *values) for s in e.free_symbols}
        if named:
            letters = ", ".join(sorted(map(str, named)))
            raise BadInput(f"source_capacity: {letters} of capacity = {self.capacity}, source = {self.source} must be numbers, "
                           "for instance capacity = 2, source = 0.7")

    def latex(self) -> str:
        """Both exponents as Piecewise of ell and q."""
        return self.regimes.latex()

    def to_dict(self) -> dict[str, Any]:
        """Capacity, source, the exponents, the optimum, the regimes and their continuity."""
        return {**plain({"capacity": self.capacity, "source": self.source}), "rates": self.rates().to_dict(),
                "optimum": self.optimum().to_dict(), **self.regimes.to_dict()}


def _width(n: np.ndarray, q: np.ndarray) -> np.ndarray:
    """n^q; oo at q = oo for n <= 1, too: the kernel."""
    return np.where(np.isinf(q), np.inf, n**np.where(np.isinf(q), 1.0, q))


def source_capacity(capacity: str | float | Expr = alpha, source: str | float | Expr = r) -> SourceCapacity:
    """Ridge regression with eigenvalues k^-capacity and target coefficients k^(-capacity source - 1/2): its rates.

    Parameters
    ----------
    capacity : a number > 1, a text, or a symbol (default: alpha)
    source : a number > 0, a text, or a symbol (default: r)

    Returns
    -------
    SourceCapacity : `.rates(ell, q)` (`bias`, `variance`), `.optimum()` (`ell`, `rate`, `q_min`), `.regime(ell, q)`,
    `.continuity()`, `.plot()`; `.curve(n, ell=, q=oo, noise=0)`: the errors and their slopes at finite n, `.plot_rates(ell=)`.

    Raises
    ------
    BadInput : a capacity of 1 or less, a source of 0 or less.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. The exponents are those of the source, and hold as n grows. See
    docs/promise.md.

    References: defilippis2024 (random features), cui2021 (kernels), caponnetto2007 (the best rate).

    Examples
    --------
    >>> source_capacity().optimum()["rate"]
    2*alpha*Min(1, r)/(2*alpha*Min(1, r) + 1)
    """
    a, s = exact("capacity", capacity), exact("source", source)
    if (a - 1).is_positive is False or a.is_finite is False:
        raise BadInput(f"source_capacity: the capacity is a finite number above 1, not {capacity}")
    if s.is_positive is False or s.is_finite is False:
        raise BadInput(f"source_capacity: the source is a finite number above 0, not {source}")
    return SourceCapacity(a, s)
