r"""e_0 = -1/2 + (gamma_2 - gamma_1)_+ - (gamma_2 - 2 gamma_1)_+/2: the start beside a spike, and its continuity over all cells."""

from sympy import Limit, Max, Rational, Subs, exp, log, oo, symbols

import hermitex as hx
from hermitex import Result
from hermitex.theories.spiked_covariance import GAMMA_1, GAMMA_2, K

L = symbols("L", positive=True)
e_0 = symbols("e_0", real=True)
made = hx.theories.spiked_covariance(None)
cells = {regime.name: regime for regime in made.regimes.regimes}

page = Result(
    "Exponents beside a spike are continuous",
    r"A neuron that starts at random under the covariance with the spike $\mu$ has an overlap with the target $\beta$ of the "
    "order of the power $e_0$ of $d$, and asks for samples of the power $1 - 2(k - 1)e_0$ at the information exponent $k$. As "
    r"$\gamma_1$ and $\gamma_2$ vary the exponents run through three cells, and are continuous where these meet.",
    source="mousavi2023", place="partial alignment",
    assumptions=[r"the spike is of the power $\gamma_2$ of $d$ and its overlap with the target of the power $-\gamma_1$, $0 \le "
                 r"\gamma_1 \le 1/2$, $0 \le \gamma_2 < 1$",
                 r"of a sum of powers of $d$ the largest counts, and independent signs do not cancel",
                 "the number of samples for a start of the power $e_0$ is of the power $1 - 2(k - 1)e_0$"],
)
page.notation({symbols("x y", nonnegative=True): "how far inside a cell a point lies",
               r"\mu": "the direction of the spike", r"\beta": "that of the target", "d": "the dimension",
               L: "the logarithm of $d$", GAMMA_1: "how far the spike is turned from the target", GAMMA_2: "how strong it is",
               e_0: "the exponent of the overlap at the start", K: "the information exponent"})
page.text("(i) Power counting. The exponent of one and a power of $d$ is the larger of zero and that power's; at one half and "
          "at minus one half:")
for a in (Rational(1, 2), Rational(-1, 2)):
    page.step("the largest power", Limit(log(1 + exp(a*L))/L, L, oo), Max(0, a))
page.text(r"(ii) The overlap. A random unit vector has with $\beta$ and with $\mu$ products of the power $-1/2$, so its product "
          r"with the covariance of $\beta$ has two terms, of that power and of one that is higher by $\gamma_2 - \gamma_1$; the "
          r"target's field has a variance of one and of the power $\gamma_2 - 2\gamma_1$, the neuron's one of order one. So the "
          "exponent is")
start = page.let(e_0, -Rational(1, 2) + Max(0, GAMMA_2 - GAMMA_1) - Max(0, GAMMA_2 - 2*GAMMA_1)/2)
page.text(r"(iii) The cells. Where the spike is not felt, felt, and found, with a number $x \ge 0$ by which a border is passed:")
x, y = symbols("x y", nonnegative=True)
for name, at in (("spike not felt", {GAMMA_1: GAMMA_2 + x}), ("spike felt", {GAMMA_1: x + y, GAMMA_2: 2*x + y}),
                 ("spike found", {GAMMA_2: 2*GAMMA_1 + x})):
    page.step(name, Subs(page.definitions[start], tuple(at), tuple(at.values())), cells[name].values["start_exponent"].subs(at))
page.text(r"(iv) Continuity. Where two cells meet, their exponents agree; of the samples too, for every $k$:")
for border in made.regimes.borders:
    one, other = (cells[n] for n in border.regimes)
    for what in ("start_exponent", "sample_exponent"):
        page.step(f"{border.regimes[0]} and "
                  f"{border.regimes[1]}", Subs(one.values[what], tuple(border.line), tuple(border.line.values())),
                  other.values[what].subs(border.line))
page.variant("the target's variance forgotten", start, -Rational(1, 2) + Max(0, GAMMA_2 - GAMMA_1),
             r"right while $\gamma_2 < 2\gamma_1$")
samples = page.let(symbols("e", real=True), 1 - 2*(K - 1)*start, "The exponent of the samples is")
page.test("the package's cells", lambda: made.regimes.continuous)
page.therefore([(start, -Rational(1, 2) + Max(0, GAMMA_2 - GAMMA_1) - Max(0, GAMMA_2 - 2*GAMMA_1)/2),
                (samples, 1 - 2*(K - 1)*(-Rational(1, 2) + Max(0, GAMMA_2 - GAMMA_1) - Max(0, GAMMA_2 - 2*GAMMA_1)/2))],
               words="The two exponents as one formula each:", by=[start, samples],
               package={"hx.theories.spiked_covariance(None).start_exponent": made.start_exponent,
                        "hx.theories.spiked_covariance(None).sample_exponent": made.sample_exponent})
page.not_shown("that SGD reaches the target from such a start with so many samples, which is the source's theorem; that no "
               "algorithm does with fewer.")
