r"""One gradient step of size eta d makes W = spike + bulk: r, gamma and c for every activation and target (Result 3.1)."""

from sympy import Function, Limit, Subs, oo, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, He, Result
from hermitex.symbols import Delta, alpha0, beta, eta, z, z1, z2

sigma, g = Function("sigma"), Function("g")
slope = Derivative(sigma)
sigma_0, sigma_1, sigma_2, g_0, g_1, R_2, N_v, Rbar, t = symbols("sigma_0 sigma_1 sigma_2 g_0 g_1 R_2 N_v Rbar t", real=True)

page = Result(
    "One giant gradient step",
    r"After one gradient step of size $\eta$ times the dimension on $\alpha_0 d$ samples every row of the first layer is a spike "
    r"of size $r$ along one direction $v$, which has the overlap $\gamma$ with the target, and a bulk of squared norm $c$: $#1$, "
    "$#2$ and $#3$.",
    source="cui2024", place="Result 3.1",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, labels $g(z_1) + \sqrt{\Delta}\,z_2$, with $z_1$ the projection of $x$ on a "
                 r"unit vector $\theta$",
                 r"rows $w_i$ uniform on the unit sphere, $p$ neurons, $\beta$ for each dimension; every entry of the readout is "
                 "one over their root",
                 "the output is the sum of the features with the readout's entries, over the root of $p$ once more, and the "
                 "loss half the mean square of label less output"],
)
page.notation({r"\theta": "the target's direction", "w_i": "a row of the first layer", "p": "the neurons",
               t: "the rate of a neuron", alpha0: "samples of the step for one dimension", beta: "neurons for one dimension",
               (z1, z2): "the target's direction and the noise, of the label",
               "b": "the mean of residual times input over the samples"})
page.text("At the start the network's output is the mean of its features, which concentrates; the residual of the label is what "
          "drives the step. Its numbers:")
page.let(sigma_0, E(sigma(z), z))
page.let(g_0, E(g(z), z))
page.let(g_1, E(z*g(z), z))
residual = g(z1) + sqrt(Delta)*z2 - sigma_0
page.let(Rbar, g_0 - sigma_0, "the mean,")
page.step("independence", E(residual, z1, z2), Rbar, digits=10, points=2)
page.let(R_2, E(g(z)**2, z) - 2*g_0*sigma_0 + sigma_0**2 + Delta, "the mean square,")
page.step("expanding the square", E(residual**2, z1, z2), R_2, digits=10, points=2)
page.step("independence", E(z1*residual, z1, z2), g_1, "and its overlap with the target's direction:", digits=10, points=2)

page.text("The step adds to a row $t$ times the mean, over the samples, of residual times slope times input. Expand the slope "
          "in Hermite polynomials of the pre-activation. Its mean and its linear part are")
page.let(sigma_1, E(z*sigma(z), z))
page.let(sigma_2, E(He(2, z)*sigma(z), z))
page.step("Stein", E(slope(z), z), sigma_1)
page.step("Stein", E(z*slope(z), z), sigma_2)
page.text(r"(i) The mean gives every row the same vector, $t\sigma_1$ times $b$: the spike. The square of $b$ has terms of one "
          r"sample, of the mean $R_2d$, and of two, of the squared mean of residual times input, which is $g_1$ along $\theta$:")
page.let(N_v, sqrt(g_1**2 + R_2/alpha0))
n, d = symbols("n d", positive=True)
page.step("counting pairs", Limit(((n*R_2*d + n*(n - 1)*g_1**2)/n**2).subs(n, alpha0*d), d, oo), N_v**2)
page.text(r"so the length of $b$ goes to $N_v$, and its overlap with $\theta$ is $g_1$, that of its direction $g_1/N_v$.")
page.text(r"(ii) The linear part multiplies the row by $1 + t\sigma_2\bar R$: the samples' mean of residual times input times "
          r"pre-activation is $\bar R$ times the row and a part along $\theta$ that leaves the three numbers unchanged; its "
          "fluctuation belongs to (iii).")
page.text(r"(iii) What is left of the slope, $\sigma' - \sigma_1$, has independent signs on the samples and adds a vector in a "
          "random direction. Its squared norm is a sum over the samples, with the square of $t$ over their number, of which "
          "each term has the mean $R_2d$ times the variance $v$ of the slope:")
v = symbols("v", positive=True)
page.step("counting samples", Subs((t/n)**2*n*R_2*d*v, n, alpha0*d), t**2*R_2/alpha0*v)
spread = page.step("expanding the square", E((slope(z) - sigma_1)**2, z), E(slope(z)**2, z) - sigma_1**2)

made = hx.theories.spike(sigma, g)
page.text("These are the package's formulas, which hold for every activation and target:")
page.let(t, eta/beta)
as_r = page.same("the package's $r$", t*sigma_1*N_v, made.r, name=symbols("r"))
as_gamma = page.same("the package's $\\gamma$", g_1/N_v, made.gamma, name=hx.symbols.gamma)
as_c = page.same("the package's $c$",
                 (1 + t*sigma_2*Rbar)**2 + t**2*R_2/alpha0*E((slope(z) - sigma_1)**2, z), made.c, name=hx.symbols.c)
page.therefore([(symbols("r"), t*sigma_1*N_v), (hx.symbols.gamma, g_1/N_v),
                (hx.symbols.c, (1 + t*sigma_2*Rbar)**2 + t**2*R_2/alpha0*(E(slope(z)**2, z) - sigma_1**2))],
               words="The spiked features:", by=[as_r, as_gamma, as_c, spread],
               package={f"hx.theories.spike(sigma, g).{k}": getattr(made, k) for k in ("r", "gamma", "c")})
page.misprint("the square forgotten", N_v**2, g_1 + R_2/alpha0, "the coefficient is printed under the root for its square",
              source="loureiro2024slides", place="Result 3.1", mended=g_1**2 + R_2/alpha0,
              change=lambda right: right.subs(g_1**2, g_1))
page.misprint("the slope mistaken", E((slope(z) - sigma_1)**2, z), E((z*sigma(z) - sigma_1)**2, z),
              "the number in $c$, which is printed with a spurious square of a coefficient besides", source="loureiro2024slides",
              place="Result 3.1", mended=E(slope(z)**2, z) - sigma_1**2,
              change=lambda right: right + E((z*sigma(z) - sigma_1)**2 - (slope(z) - sigma_1)**2, z))
page.not_shown(r"that the sums concentrate, and the corrections of order $1/d$ to the three numbers.")
