r"""bias ~ n^-min(2 a m (r ^ 1), (2 a (r ^ 1/2) - 1) m + q), variance ~ n^-(1 - m), m = min(ell/a, q, 1): no jump between cells."""

from sympy import Integral, Min, Rational, Subs, oo, symbols, sympify

import hermitex as hx
from hermitex import Result
from hermitex.symbols import alpha, r
from hermitex.theories.source_capacity import ELL, WIDTH

K, k, x, y, v = symbols("K k x y v", positive=True)
m, bias, variance = symbols("m B V", real=True)
felt = symbols("t", positive=True)   # where the width stands between two borders
half = Rational(1, 2)

page = Result(
    "Rates under source and capacity are continuous",
    "Ridge regression on random features, with eigenvalues and coefficients that fall as powers, and the ridge and the number "
    r"of features powers of $n$, has a bias and a variance that fall as powers of $n$. As $\ell$ and $q$ vary their exponents "
    "run through five cells, and are continuous where these meet.",
    source="defilippis2024", place="source and capacity",
    assumptions=[r"$\alpha > 1$ and $r > 0$", r"of a sum of powers of $n$ the largest counts",
                 "the modes that are learnt are the first ones, as many as the power $m$ of $n$, with $m$ the least of "
                 r"$\ell/\alpha$, $q$ and one"],
)
page.assume(r"a width that is felt adds to the bias a term with the exponent $(2\alpha\min(r, 1/2) - 1)\,m + q$",
            quoted="defilippis2024", place="the rates of random features")
page.notation({"n": "the samples",
               alpha: "the capacity: eigenvalues fall as the inverse of this power of the mode",
               r: "the source: what the target has beyond a mode falls as the mode's eigenvalue to this power, in norm",
               ELL: "the exponent of the ridge", WIDTH: "that of the width", k: "a mode",
               K: "the number of modes that are learnt", (x, y, v, felt): "by how much a border is passed"})
page.text(r"(i) The bias is what is not learnt and what the ridge shrinks. The squared coefficients beyond the $K$-th are")
page.step("the tail", Integral(k**(-2*alpha*v - 1), (k, K, oo)), K**(-2*alpha*v)/(2*alpha*v), r"at the source $v$")
page.text("and a mode below it keeps the square of the eigenvalue at the cut over its own, which adds the same power as long as "
          r"the source is below one, at $v/(1 + v)$ say, and $K^{-2\alpha}$ beyond:")
below = v/(1 + v)
page.step("what is shrunk", K**(-2*alpha)*Integral(k**(2*alpha*(1 - below) - 1), (k, 0, K)),
          K**(-2*alpha*below)/(2*alpha*(1 - below)))
page.text(r"So the exponent of the bias is $2\alpha\min(r, 1)$ times that of $K$, or that of the width. Each mode costs the "
          "noise of one sample. With")
page.let(m, Min(ELL/alpha, WIDTH, 1), "as the exponent of $K$")
page.let(bias, Min(2*alpha*m*Min(r, 1), (2*alpha*Min(r, half) - 1)*m + WIDTH), "the exponents are")
page.let(variance, 1 - m)
made = hx.theories.source_capacity()
page.text(r"(ii) The cells. For a source $1/2 + v$, where all five are there, each is the formula on one side of its borders:")
above = hx.theories.source_capacity(alpha, half + v)
cells = {one.name: one for one in above.regimes.regimes}
slope = 1 + 2*alpha*(Min(half + v, 1) - half)

at = {"ridge, width felt": {ELL: alpha*x/(x + y), WIDTH: x/(x + y)*(1 + (slope - 1)*felt/(felt + 1))},
      "ridge too small, width felt": {ELL: alpha + x, WIDTH: 1 + (slope - 1)*felt/(felt + 1)},
      "ridge, wide": {ELL: alpha*x/(x + y), WIDTH: slope*x/(x + y) + v},
      "width": {WIDTH: x/(x + y), ELL: alpha*x/(x + y) + v},
      "ridge too small, wide": {ELL: alpha + x, WIDTH: slope + y}}
for name, place in at.items():
    for letter in (bias, variance):
        value = page.definitions[letter].xreplace({m: page.definitions[m], r: half + v})
        page.step(name, Subs(value, tuple(place), tuple(place.values())),
                  sympify(cells[name].values["bias" if letter is bias else "variance"]).subs(place), points=2)
page.text(r"(iii) Continuity. Where two cells meet their exponents agree, for every capacity and source:")
for border in made.regimes.borders:
    one, other = ({c.name: c for c in made.regimes.regimes}[n] for n in border.regimes)
    for what in ("bias", "variance"):
        if (here := sympify(one.values[what])).subs(border.line) != here or here != sympify(other.values[what]):
            page.step(f"{one.name} and {other.name}", Subs(here, tuple(border.line), tuple(border.line.values())),
                      sympify(other.values[what]).subs(border.line), points=2)
page.variant("no saturation", K**(-2*alpha)*Integral(k**(2*alpha*(1 - below) - 1), (k, 0, K)),
             K**(-2*alpha)/(2*alpha*(1 - below)), "the ridge saturates at the source one, not below it")


def solved(rates):
    """The package's exponents at a capacity of 2, a source of 7/10, where the width is felt."""
    found = rates("3/2", "4/5")
    return {alpha: 2.0, r: 0.7, ELL: 1.5, WIDTH: 0.8}, [float(found[n]) for n in ("bias", "variance")]


page.therefore([(bias, page.definitions[bias].xreplace({m: page.definitions[m]})), (variance, 1 - page.definitions[m])],
               words="The two exponents as one formula each:", by=[m, bias, variance],
               package={'hx.theories.source_capacity(2, "7/10").rates(...)': solved})
page.not_shown("the term of the width and that sums over modes may be taken for integrals, which are the source's theorem; that "
               "no method does better.")
