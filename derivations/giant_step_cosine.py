r"""cos = |s|/sqrt(s^2 + 1 + u^2 tau^2): how far one giant step turns a neuron towards the target, at n = samples d^l."""

from sympy import Abs, Function, Subs, Symbol, factorial, pi, sqrt, symbols
from sympy.core.function import Derivative as OfNode

import hermitex as hx
from hermitex import Derivative, E, He, Result
from hermitex.symbols import Delta, z, z1, z2, z3

sigma, g = Function("sigma"), Function("g")
u, m = symbols("u m", real=True)
d, ell, kappa_, A, Z = symbols("d ell kappa A Z", positive=True)   # kappa_: samples for d^ell
made = hx.theories.giant_step("relu", "z**2")
noise = next(p for p in made.system.parameters if p.name == "noise")

page = Result(
    "The cosine after a giant step",
    r"A neuron of norm one that takes the step $u\,d^{(\ell - 1)/2}$ along its gradient on $n$ fresh examples, of the order of "
    r"$d^\ell$ at the information exponent $\ell$, turns towards the target. For the square as target and relu the mean cosine "
    "over neurons is $#1$.",
    source="dandi2023giant", place="one giant step",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, one direction; the labels are centred and have noise of variance $\Delta$",
                 r"a neuron that starts at random has the overlap $Z/\sqrt d$ with it, $Z \sim \mathcal{N}(0, 1)$",
                 "the noise of the gradient is nearly orthogonal to the direction and to the neuron"],
)
page.notation({("g", r"\sigma"): "the target's link and the activation",
               Symbol("cosine"): "the mean cosine between a neuron and the direction",
               "n": "the samples",
               m: "the overlap of the neuron with the direction", u: "the size of the step", ell: "the information exponent",
               kappa_: r"samples for $d^\ell$",
               A: r"the product of the coefficients of order $\ell$ of activation and target, over the factorial of $\ell - 1$",
               noise: r"$1/\kappa$", Z: r"the overlap at the start, times $\sqrt d$"})
page.text("(i) The signal is the derivative in the overlap of the correlation of label and feature. By Price's theorem each "
          "derivative is an average of derivatives, at no overlap a product of two Hermite coefficients; the first order whose "
          "product is not zero drives the step:")
pair = E(g(z1)*sigma(z2), z1, z2, cov={(z1, z2): m})
page.step("Price", OfNode(pair, m), E(Derivative(g)(z1)*Derivative(sigma)(z2), z1, z2, cov={(z1, z2): m}), digits=8, points=1)
page.step("Stein", E(Derivative(g, 2)(z), z), E(He(2, z)*g(z), z), "and for the second order")
for order in (2, 3):
    page.step("Mehler", OfNode(E(He(order, z1)*He(order, z2), z1, z2, cov={(z1, z2): m}), m),
              factorial(order)**2*m**(order - 1)/factorial(order - 1),
              "An instance of each order, where both coefficients are factorials:" if order == 2 else "")
page.text(r"(ii) Counting powers of $d$. At the overlap of the start the signal is of order one:")
page.step("the signal", u*d**((ell - 1)/2)*A*(Z/sqrt(d))**(ell - 1), u*A*Z**(ell - 1))
page.text(r"The gradient's noise is a sum of independent examples, each of norm $\sqrt d$; its square over that many samples, "
          "times that of the step, has no power of $d$ left:")
spread = symbols("S", positive=True)
page.step("the noise", (u*d**((ell - 1)/2))**2*d*spread/(kappa_*d**ell), u**2*spread/kappa_)
page.text(r"with $S$ the mean square of the centred label, noise included, times that of the slope. Here")
page.step("the label and the slope", E((z1**2 - 1 + sqrt(Delta)*z2)**2*hx.parse("Heaviside(z3)**2"), z1, z2, z3), (2 + Delta)/2)
page.text(r"(iii) The numbers of this target and of relu, both of the second order:")
page.step("the target's tensor", E(z**2*He(2, z), z), 2)
page.step("the activation's coefficient", E(hx.relu(z)*He(2, z), z), 1/sqrt(2*pi))
s = 2*u/sqrt(2*pi)*Z
page.text(r"(iv) The neuron's own part has norm one, beside signal and noise; the cosine is the signal over the norm of all three:")
tau = noise*(2 + Delta)/2
start = page.step("the neuron", Abs(s)/sqrt(s**2 + 1 + u**2*tau), Abs(u)*Z/sqrt(u**2*Z**2 + (1 + u**2*tau)*pi/2))
cosine, = made.system.equations
page.let(cosine, E(Subs(Abs(s)/sqrt(s**2 + 1 + u**2*tau), Z, Abs(z1)).doit(), z1), "and its mean over neurons")
law = page.step("the mean over the start", cosine, E(Abs(u*z1)/sqrt(u**2*z1**2 + (1 + u**2*tau)*pi/2), z1), "is")
page.variant("the noise of the labels alone", cosine, E(Abs(u*z1)/sqrt(u**2*z1**2 + (1 + u**2*noise*Delta/2)*pi/2), z1),
             "the spread of the target itself is noise of the gradient, too", digits=10)
page.therefore(cosine, law.rhs, "The mean cosine:", by=[law],
               package={f'hx.theories.giant_step("relu", "z**2").system.equations[{cosine}]': made.system.equations[cosine]})
page.not_shown(r"that the parts of higher order in $1/\sqrt d$ vanish and the sums concentrate; the orders and the span of "
               "several directions, which are the source's theorems.")
