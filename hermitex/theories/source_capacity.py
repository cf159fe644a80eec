r"""bias ~ n^-min(2 a m (r ^ 1), (2 a (r ^ 1/2) - 1) m + q), variance ~ n^-(1 - m), m = min(ell/a, q, 1): ridge under power laws.

Eigenvalues k^-a (capacity a > 1) and target coefficients k^(-a r - 1/2) (source r > 0); n samples, p = n^q random features, ridge
lam = n^-(ell - 1) in the objective sum (y - f)^2 + lam |w|^2 (n^-ell for the mean square); r ^ 1 = min(r, 1). Theorem for random
features [defilippis2024]; q = oo is the kernel [cui2021], its best rate that of [caponnetto2007]; the least width is derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Expr, Max, Min, Rational, Symbol, oo

from hermitex.errors import BadInput
from hermitex.show.display import Shown
from hermitex.symbols import alpha, r
from hermitex.theories.claims import Border, Claim, Claims, Regime, Regimes, exact

ELL, WIDTH = Symbol("ell", positive=True), Symbol("q", positive=True)
_PLATEAU = "ridge too small"


@dataclass(frozen=True, repr=False)
class SourceCapacity(Shown):
    """Rates of ridge regression under power laws: `.rates(ell, q)`, `.regime(ell, q)`, `.optimum()`, `.regimes`, `.plot()`."""

    capacity: Expr
    source: Expr

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
        if s == 1:  # the cells in which the width is felt beside the ridge are empty
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

    def plot(self, ax: Any = None, *, ells: tuple[float, float] | None = None, qs: tuple[float, float] | None = None) -> Any:
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
            raise BadInput(f"source_capacity: {', '.join(sorted(map(str, named)))} must be numbers here, for instance "
                           "source_capacity(2, 0.7)")

    def latex(self) -> str:
        """Both exponents as Piecewise of ell and q."""
        return self.regimes.latex()

    def to_dict(self) -> dict[str, Any]:
        """Capacity, source, the exponents, the optimum, the regimes and their continuity."""
        from hermitex.symbolic.text.plain import plain

        return {**plain({"capacity": self.capacity, "source": self.source}), "rates": self.rates().to_dict(),
                "optimum": self.optimum().to_dict(), **self.regimes.to_dict()}

    def bibtex(self) -> str:
        """BibTeX of the sources."""
        from hermitex.show.cite import bibtex

        return bibtex(["defilippis2024", "cui2021", "caponnetto2007"])


def source_capacity(capacity: Any = alpha, source: Any = r) -> SourceCapacity:
    """Ridge regression with eigenvalues k^-capacity and target coefficients k^(-capacity source - 1/2): its rates.

    Parameters
    ----------
    capacity : a number > 1, a text, or a symbol (default: alpha)
    source : a number > 0, a text, or a symbol (default: r)

    Returns
    -------
    SourceCapacity : `.rates(ell, q)` (`bias`, `variance`), `.optimum()` (`ell`, `rate`, `q_min`), `.regime(ell, q)`,
    `.continuity()`, `.plot()`.

    Raises
    ------
    BadInput : a capacity of 1 or less, a source of 0 or less.

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
