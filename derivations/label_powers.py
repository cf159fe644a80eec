r"""Seeing a sample twice: the extragradient step multiplies the label into the gradient again, and powers of it lower the "
r"exponent."""

import numpy as np
from sympy import Derivative as Derivative_
from sympy import Function, Subs, factorial, symbols
from sympy.stats import Poisson, Rademacher

import hermitex as hx
from hermitex import Derivative, E, He, Result
from hermitex.symbols import m, z, z1, z2

sigma, g = Function("sigma"), Function("g")
law = {(z1, z2): m}
step = symbols("gamma", positive=True)

page = Result(
    "Repetition of data and powers of the label",
    r"Two gradient steps on the same sample move the pre-activation by $\gamma$ times the label and the slope in between; the "
    "second step's gradient then sees the powers of the label, to the second order of the step $#1$, and the first of them with "
    "a lower information exponent decides.",
    source="dandi2024reusing",
    assumptions=["the step on one sample moves its own pre-activation by order one, the squared norm of the input is near $d$ "
                 "and the step of the order of one over $d$",
                 r"the target is bounded or a polynomial, so that every power is square integrable"],
)
page.notation({("g", r"\sigma"): "the target and the activation",
               r"\rho": "the overlap of student and teacher",
               ("h", r"h_\star"): "the fields of student and teacher", "d": "the dimension", r"\xi": "a fair sign",
               r"\nu": "a Poisson count of mean $c$", "G": "the second gradient on one sample",
               "J": "the rate at which the overlap grows",
               step: "the step on one sample", z1: "the student's pre-activation $h$", z2: r"the teacher's, $h_\star$",
               m: "their overlap"})
moved = Derivative(sigma)
first, second = Derivative(moved), Derivative(Derivative(moved))
series = moved(z1) + step*g(z2)*moved(z1)*first(z1) + step**2/2*g(z2)**2*moved(z1)**2*second(z1)
expanded = E(g(z2)*series*z2, z1, z2, cov=law)
terms = [E(g(z2)**(j + 1)*moved(z1)**j*f(z1)*z2, z1, z2, cov=law)/factorial(j)
         for j, f in enumerate((moved, first, second))]
taylor = page.step("Taylor", expanded, sum(step**j*term for j, term in enumerate(terms)),
                   "(i) The expansion in powers of the step, whose first terms are derivatives where it vanishes:", digits=8,
                   points=1)
student = z1**2/2 + z1**3/6
page.text(r"An instance in full, a student of the slope $#1$ and the label $He_2$, where the series ends by itself:",
          (Derivative_(student, z1), z1 + z1**2/2))
h2 = z2**2 - 1
slope = z1 + z1**2/2
point = z1 + step*h2*slope
whole = E(h2*(point + point**2/2)*z2, z1, z2, cov=law)
series = (E(h2*slope*z2, z1, z2, cov=law) + step*E(h2**2*slope*(1 + z1)*z2, z1, z2, cov=law)
          + step**2/2*E(h2**3*slope**2*z2, z1, z2, cov=law))
page.step("Taylor", whole, series)

page.text("(ii) What the powers see. $He_3$ has no coefficient below order three; its square has one of order two, its cube one "
          "of order one:")
for order, power, one, two in ((3, 1, 0, 0), (3, 2, 0, 36), (3, 3, 324, 0), (4, 2, 0, 192), (5, 2, 0, 1200), (5, 3, 216000, 0)):
    body = He(order, z)**power
    page.step("orthogonality", E(body*z, z), one)
    page.step("orthogonality", E(body*He(2, z), z), two)
page.text("So one repetition brings $He_3$ from the square of $d$ samples to $d$ and its logarithm; order one would need the "
          "cube of $g$, and over all transformations of the label the least exponent is the generative one. A parity gains "
          "nothing, since its square is constant.")
page.text(r"Noise does not take it away. With a fair sign $\xi$ or a Poisson count $\nu$ of mean $c$ added to the label $He_3$, "
          "the third power sees the direction as before, and the second does not:")
fair, mean = Rademacher("xi"), symbols("c", positive=True)
count = Poisson("nu", mean)
for noise in (fair, count):
    page.step("independence", E((He(3, z) + noise)**3*z, z, noise), 324)
    page.step("independence", E((He(3, z) + noise)**2*z, z, noise), 0)
page.test("the package's exponents of powers",
          lambda: [hx.exponents(f"He3(z)**{p}").information_exponent for p in (1, 2, 3)] == [3, 2, 1])
page.test("the package's generative exponents",
          lambda: [hx.exponents(f"He{o}(z)").generative_exponent for o in (3, 4, 5)] == [1, 2, 1])
page.derivation(hx.theories.repetition("He3", 3).derivation(2), r"The package's expansion, for every student and target:")
first_slope = student.diff(z1)
twice = first_slope.subs(z1, z1 + step*He(3, z2)*first_slope)
projected = E(He(3, z2)*twice*(z2 - m*z1), z1, z2, cov=law)
rate = hx.theories.repetition("He3", 3).drift("z**2/2 + z**3/6", order=12)
page.step("Mehler", projected, rate.subs({x: step for x in rate.free_symbols if x.name == "gamma"}),
          "and its drift across the sphere, for the same student and the label $He_3$, where the series ends by itself:")
page.text("(iii) How much a student sees of it. With $G$ for the whole second gradient small overlaps grow at the rate in $m$ "
          r"of its mean product with the part of $h_\star$ that is independent of $h$, which Stein's lemma writes without a "
          "derivative; for two students:")
rho = symbols("rho", real=True)
for first_slope, target in ((lambda u: u, He(4, z2)), (lambda u: u + u**2/2, He(3, z2))):
    second_look = target*first_slope(z1 + rho*target*first_slope(z1))
    growth = Subs(Derivative_(E(second_look*(z2 - m*z1), z1, z2, cov=law), m), m, 0)
    page.step("Stein", growth, E(second_look*z1*(z2**2 - 1), z1, z2))


def whole_average():
    """The package's growth of a sample seen twice, for a student whose expansion does not end, by plain quadrature."""
    twice = hx.theories.sgd("sqrt(1 + z**2)", "He3(z)").repeated(0.1)
    x, w = Result.normal_grid(64)
    u, y = x[:, None], (x**3 - 3*x)[None]
    seen = u + 0.1*y*u/np.sqrt(1 + u**2)
    second = y*seen/np.sqrt(1 + seen**2)
    growth, noise = w @ (second*u*(x**2 - 1)) @ w, w @ second**2 @ w
    worst = max(abs(twice.growth - growth), abs(twice.start[2]/noise - 1), abs(twice.step - growth/noise))
    assert worst < 1e-5
    return int(-np.log10(worst))


page.test("the package's growth and step", whole_average,
          "The noise costs half the step times $d$ and the mean square of $G$, so that with the rate $J$ the step of $J$ over "
          "that mean square takes the fewest samples:")
page.variant("a power too few", E(He(3, z)**2*z, z), 36, r"two repetitions of $He_3$ give exponent two: its square is even")
claimed = hx.theories.repetition("He3", 3).derivation(2).claim[1]
page.therefore(expanded, sum(step**j*term for j, term in enumerate(terms)),
               "What a sample seen twice gives, up to the second order of the step; the first new term sees the square of $g$:",
               by=[taylor], package={'hx.theories.repetition("He3", 3).derivation(2).claim[1]': claimed})
page.not_shown("that a network escapes after so many samples; the exponents are those of the first gradients.")
