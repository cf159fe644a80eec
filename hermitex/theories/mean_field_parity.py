r"""n ~ d^(1 - a), log N ~ d^(1 - a), log t ~ d^(1 - a): k-parity by a mean-field network under noisy gradient descent.

y = sign(prod_{i in I} x_i), |I| = k; the relevant coordinates are larger than the others by x_i/x_j ~ d^(a/2), 0 <= a <= 1. The
exponents do not depend on k; a correlational statistical query would need d^(k-1) samples. Status: theorem [nitanda2024], quoted,
not re-derived; the reading by the effective dimension d_eff = tr Sigma/|Sigma| ~ d^(1 - a) is derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Expr, Integer, Symbol

from hermitex.errors import BadInput
from hermitex.show.display import Shown, latex
from hermitex.theories.claims import Claim, Claims, exact

ALPHA = Symbol("alpha", nonnegative=True)


@dataclass(frozen=True, repr=False)
class MeanFieldParity(Shown):
    """Scalings of k-parity with anisotropic inputs: `.scalings(alpha)`, `.effective_dimension(...)`, `.plot()`."""

    k: int

    def scalings(self, alpha: Any = None) -> Claims:
        """Exponents of d: `samples` of n, `width` of log N, `time` of log t; `effective_dimension`, and `csq` for comparison.

        Examples
        --------
        >>> found = mean_field_parity(4).scalings("1/3")
        >>> found["samples"], found["width"], found["time"], found.status["samples"]
        (2/3, 2/3, 2/3, 'theorem')
        """
        a = ALPHA if alpha is None else exact("alpha", alpha)
        if a.is_number and not 0 <= float(a) <= 1:
            raise BadInput(f"mean-field-parity: alpha lies between 0 and 1, not {alpha}")
        e = 1 - a
        said = "quoted, not re-derived; up to powers of log d"
        return Claims(f"{self.k}-parity, mean field", {
            "samples": Claim(e, "theorem", "nitanda2024", f"n ~ d^samples; {said}"),
            "width": Claim(e, "theorem", "nitanda2024", f"log N ~ d^width; {said}"),
            "time": Claim(e, "theorem", "nitanda2024", f"log t ~ d^time; {said}"),
            "effective_dimension": Claim(e, "derived", "", "d_eff = tr Sigma/|Sigma| ~ d^effective_dimension, k fixed"),
            "csq": Claim(Integer(max(self.k - 1, 1)), "theorem", "nitanda2024",
                         "isotropic inputs: samples ~ d^csq of a correlational statistical query")})

    def effective_dimension(self, d: Any, alpha: Any) -> Expr:
        """tr Sigma/|Sigma| exactly, for k coordinates of variance d^alpha and d - k of variance 1.

        >>> mean_field_parity(2).effective_dimension(100, "1/2")
        59/5
        """
        size, a = exact("d", d), exact("alpha", alpha)
        if size.is_number and not float(size) >= self.k:
            raise BadInput(f"mean-field-parity: d is at least k = {self.k}, not {d}")
        return self.k + (size - self.k)/size**a

    def plot(self, ax: Any = None) -> Any:
        """The exponent of n over alpha, beside the k - 1 of a correlational query."""
        from hermitex.show.plots import curves

        line = [i/100 for i in range(101)]
        ax = curves(line, {"mean field: $n$, $\\log N$, $\\log t$": [1 - a for a in line]}, ax, xlabel=r"$\alpha$",
                    ylabel="exponent of $d$")
        ax.plot([0], [max(self.k - 1, 1)], "o", color="#D55E00", clip_on=False, label=f"correlational query, $k = {self.k}$")
        ax.legend(frameon=False, fontsize="small")
        ax.set_ylim(bottom=0)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """k and the scalings."""
        return {"k": self.k, **self.scalings().to_dict()}

    def latex(self) -> str:
        """The three scalings."""
        e = latex(1 - ALPHA)
        return rf"n = \Theta(d^{{{e}}}), \quad N = e^{{\Theta(d^{{{e}}})}}, \quad t = e^{{\Theta(d^{{{e}}})}}"

    def bibtex(self) -> str:
        """BibTeX of the source."""
        from hermitex.show.cite import bibtex

        return bibtex(["nitanda2024"])


def mean_field_parity(k: int) -> MeanFieldParity:
    """What k-parity costs a two-layer network of mean-field width under noisy gradient descent.

    n ~ d^(1 - alpha), log N and log t likewise, for inputs whose relevant coordinates are larger by d^(alpha/2), whatever k is.
    Theorem [nitanda2024], quoted.

    Parameters
    ----------
    k : how many coordinates the parity is of, an integer >= 1

    Returns
    -------
    MeanFieldParity : `.scalings(alpha)` -> samples, width, time, effective_dimension with their status; `.plot()`. The experiment,
    `hermitex.experiments.parity.simulate`, shows the trend for k = 2, not the exponents.

    References: nitanda2024.

    Examples
    --------
    >>> mean_field_parity(3).scalings()["samples"]
    1 - alpha
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise BadInput(f"mean-field-parity: k is an integer, 1 or more, not {k!r}")
    return MeanFieldParity(k)
