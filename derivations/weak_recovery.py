r"""alpha_c by linearising state evolution at zero overlap: 1/alpha_c = E[(E[z^2 | Y] - 1)^2], and its eigenproblem in several "
r"variables."""

from sympy import Derivative, Function, MatMul, Matrix, Rational, Subs, eye, log, pi, sign, sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import q, z, z1, z2

p = Function("p")
alpha, omega = symbols("alpha omega", real=True)

page = Result(
    "The weak-recovery threshold",
    r"Bayes-optimal message passing on $\alpha d$ samples leaves zero overlap for $\alpha > \alpha_c$, where $1/\alpha_c$ is "
    r"$\mathbb{E}\,(\mathbb{E}[z^2\,|\,Y] - 1)^2$ for one direction whose mean given the label vanishes, and the largest "
    r"eigenvalue of $M \mapsto \mathbb{E}[G(Y)\,M\,G(Y)]$ for several. For $z^2$ this is $#1$.",
    source="T24",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, $Y \sim P(\cdot\,|\,z)$, $z = W_\star x$ with orthonormal rows",
                 r"state evolution: $\hat M = \alpha\,\mathbb{E}[g_{out}g_{out}^\top]$, $M \leftarrow \hat M(I "
                 r"+ \hat M)^{-1}$, "
                 r"$g_{out} = \nabla_\omega\log Z$, $Z(y, \omega) = \mathbb{E}\,P(y\,|\,\omega + \sqrt{V}z)$, $V = I - M$"],
)
page.notation({alpha: "samples for one dimension", q: "the overlap", omega: "the field of a sample, its mean given the estimate",
               r"G(y)": r"the matrix $\mathbb{E}[zz^\top - I\,|\,y]$; in one dimension $\mathbb{E}[z^2\,|\,y] - 1$",
               p: "the probability of one label as a function of the field"})
page.text(r"(i) One direction. Expand $Z$ at zero field and unit variance; $P(y\,|\,z)$ at one label is any function $p(z)$. "
          r"Stein's "
          r"lemma gives the derivatives in $\omega$:")
Z = E(p(omega + z), z)
page.step("Stein", Z.diff(omega), E(z*p(omega + z), z), points=2)
page.step("Stein", Z.diff(omega, 2), E((z**2 - 1)*p(omega + z), z), points=2)
page.text(r"So $g_{out}$ is the mean of $z$ given the label, plus $\omega$ times its variance less one, for, with "
          r"$Z_0$, $Z_1$, $Z_2$ the numbers $Z$, $Z'$, $Z''$ at zero field,")
z_0, a1, a2, a3 = symbols("Z_0 Z_1 Z_2 Z_3", positive=True)
logarithm = z_0 + a1*omega + a2*omega**2/2 + a3*omega**3/6
page.step("Taylor", Subs(Derivative(log(logarithm), omega, 2), omega, 0), a2/z_0 - (a1/z_0)**2)
page.text(r"If the mean of $z$ vanishes for all labels, $\hat q$ is $\alpha$ times the mean of $g_{out}^2$ over "
          r"$\omega \sim \mathcal{N}(0, q)$, linear in $q$ at first, and $q \leftarrow \hat q/(1 + \hat q)$: zero is unstable as "
          r"soon as the slope exceeds one.")
G_y, A, B = symbols("G A B", positive=True)
page.step("the mean square", E((G_y*sqrt(q)*z)**2, z), q*G_y**2,
          r"Over fields of variance $q$ at one label,")
page.step("the slope at zero", Subs(Derivative(alpha*(A*q + B*q**2)/(1 + alpha*(A*q + B*q**2)), q), q, 0), alpha*A,
          r"and with $A$ for its mean over the labels and any second order $B q^2$ of $\hat q/\alpha$,")
page.text(r"An even injective label reveals $z^2$, so the mean is that of $He_2^2$:")
square = page.step("orthogonality", E((z**2 - 1)**2, z), 2)

page.text(r"(ii) Several directions. The linear map $M \mapsto \mathbb{E}[GMG]$ is self-adjoint and preserves the cone of positive "
          r"matrices, so its largest eigenvalue belongs to a positive $M$ (Krein and Rutman) and decides. For the sign of "
          r"$z_1z_2$ both labels have the same probability, and $G$ at the label 1 has the entries")
page.step("closed form", E(z1*z2*sign(z1*z2), z1, z2), 2/pi)
page.step("closed form", E((z1**2 - 1)*sign(z1*z2), z1, z2), 0)
G = 2/pi*Matrix([[0, 1], [1, 0]])
page.step("the eigenvalue", MatMul(G, eye(2), G), 4/pi**2*eye(2), r"The map takes the unit matrix to")
page.text(r"so that $\alpha_c$ is $#1$. A flip with probability $f$ multiplies $G$ by $1 - 2f$, $1/\alpha_c$ by its square: at "
          r"one in "
          r"ten, $#2$.", (1/(E(z1*z2*sign(z1*z2), z1, z2)**2), pi**2/4),
          (1/((1 - 2*Rational(1, 10))*E(z1*z2*sign(z1*z2), z1, z2))**2, 25*pi**2/64))
page.text("(iii) The package's thresholds:")
page.test("even injective labels",
          lambda: [hx.exponents(t).threshold.exact for t in ("z**2", "abs(z)", "exp(z**2)")] == [Rational(1, 2)]*3)
page.test("the sign of a product", lambda: hx.exponents("sign(z1*z2)").threshold.exact == pi**2/4)
page.test("a flipped label", lambda: (hx.exponents("sign(z1*z2)", "flip:1/10").threshold.exact
                                      - pi**2/(4*(1 - 2*Rational(1, 10))**2)).simplify() == 0)
page.misprint("the square inside", E((z**2 - 1)**2, z), E((E(z, z)**2 - 1)**2, z),
              r"$\mathbb{E}[H|Y]^2$ is printed in $1/\alpha_c$, which is then 1 for every even target; it is $\mathbb{E}[H^2|Y]$ "
              r"that gives $1/2$ and $\pi^2/4$", source="krzakala2024slides", place="the threshold of weak recovery",
              mended=2, change=lambda right: right/2)
page.therefore(1/E((z**2 - 1)**2, z), Rational(1, 2), r"For the square of $z$, $\alpha_c$ is", by=[square],
               package={'hx.exponents("z**2").threshold.exact': hx.exponents("z**2").threshold.exact})
page.not_shown(r"that state evolution describes the algorithm, and that no algorithm of polynomial time does better below "
               r"$\alpha_c$ (open).")
