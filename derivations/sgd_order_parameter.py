r"""One-pass SGD for one direction: dm/dt = (1 - m^2) sum_k c_k s_k m^(k-1)/(k-1)!, and what the information exponent decides."""

import numpy as np
from scipy import integrate, special
from sympy import Derivative as Derivative_
from sympy import Function, Rational, Subs, Symbol, exp, factorial, log, sqrt, symbols, tanh

import hermitex as hx
from hermitex import Derivative, E, He, Result
from hermitex.symbolic.activations import activation
from hermitex.symbols import m, z1, z2
from hermitex.theories.online.overlap_drift import Drift

sigma, g = Function("sigma"), Function("g")
law = {(z1, z2): m}
k, t, d, C = symbols("ell t d C", positive=True)

page = Result(
    "The order parameter of one-pass SGD",
    "A spherical student that follows the correlation loss of a target has an overlap $m$ that moves at the rate $#1$ for the "
    "two slopes. From the equator, where it is one over the root of $d$, it comes away after a time of order one, the logarithm "
    r"of $d$ or its power $\ell/2 - 1$ for the information exponent $\ell$ one, two, more.",
    source="benarous2021",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, fresh in every step; a learning rate small enough for the flow to hold",
                 r"$g$ is square integrable; at the first order $\ell$ with $c_\ell \ne 0$ the student's coefficient $s_\ell$ "
                 "has the same sign"],
)
page.notation({"w": "the student's direction", r"\theta": "the target's",
               ("s_k", "c_k"): "the coefficients of activation and target on Hermite polynomials",
               z1: "the student's field", z2: "the target's", m: "their covariance",
               sigma: "the student's activation, of coefficients $s_k$", g: "the target, of coefficients $c_k$",
               k: "the first order at which the target has a coefficient",
               C: r"the rate near the equator, over the power $\ell - 1$ of $m$", t: "time", d: "the dimension"})
page.text(r"The gradient of the mean product on the sphere is its part orthogonal to $w$. Along $\theta$ it is $\mathbb{E}[(z_2 "
          r"- m z_1)\,g\,\sigma']$. By Stein's lemma, in both variables,")
slope, target_slope = Derivative(sigma), Derivative(g)
stein = page.step("Stein", E(g(z2)*slope(z1)*(z2 - m*z1), z1, z2, cov=law),
                  (1 - m**2)*E(slope(z1)*target_slope(z2), z1, z2, cov=law),
          digits=10, points=2)
page.text("The mean product of the slopes is the derivative in $m$ of the mean product (Price), a series in the products of "
          "their coefficients (Mehler); order by order,")
for order in (2, 3, 4):
    page.step("Mehler", E(He(order, z1).diff(z1)*He(order, z2).diff(z2), z1, z2, cov=law),
              order*factorial(order)*m**(order - 1))
page.text("A Hermite polynomial $He_n$ has the coefficients $n!$, as in $#1$, so at the order $n$ the factorials of two "
          "coefficients are, over the one that is left,",
          (E(He(5, z1)**2, z1), factorial(5)))
n = Symbol("n", integer=True, positive=True)
page.step("algebra", factorial(n)*factorial(n)/factorial(n - 1), n*factorial(n))

page.text(r"(ii) Escape. Near the equator only the first order $\ell$ counts, with $C$ times the power $\ell - 1$ of $m$ for the "
          "rate; from one over the root of $d$ the solutions are")
start = 1/sqrt(d)
linear, quadratic, cubic = start + C*t, start*exp(C*t), start/(1 - C*t*start)
for solution, power in ((linear, 0), (quadratic, 1), (cubic, 2)):
    page.step(f"separation of variables, order {power + 1}", Derivative(solution, t), C*solution**power)
page.step("the time to one half, order 2", Subs(quadratic, t, log(sqrt(d)/2)/C), Rational(1, 2))
page.step("the time to one half, order 3", Subs(cubic, t, (sqrt(d) - 2)/C), Rational(1, 2))
page.text(r"and in general a time of the power $\ell/2 - 1$ of $d$. With steps of the size that the noise allows, the inverse of "
          r"the power $\ell/2$ for $\ell > 2$, this takes $d^{\ell-1}$ samples.")
page.step("counting samples", (d**(k/2 - 1)/d**(-k/2)), d**(k - 1))
page.test("the package's exponents", lambda: [hx.exponents(f"He{o}(z)").information_exponent for o in (1, 2, 3, 4)] == [1, 2, 3, 4])
page.test("the package's rates", lambda: [hx.exponents(f"He{o}(z)").complexity["one_pass_sgd"] for o in (1, 2, 3, 4)]
          == ["d", "d log d", "d^2", "d^3"])


def agreed(*pairs, enough=1e-8):
    """The digits to which numbers of the package agree with others."""
    return Result.numbers((("a number", b, a) for a, b in pairs), enough)


def drift():
    """(1 - m^2) E[sigma' g'] - m step/2 E[(dl/dh)^2] by quadrature, near the equator and far from it, for both losses."""
    (x, w), pairs = Result.normal_grid(), []
    for loss, aim in (("correlation", 0), ("square", 1)):
        package = Drift(activation("tanh"), activation("He3"), loss)
        for at in (0.1, 0.3, 0.7):
            h, h_star = x[:, None], at*x[:, None] + np.sqrt(1 - at**2)*x
            own = 1/np.cosh(h)**2
            flow = (1 - at**2)*(w @ (own*(3*h_star**2 - 3)) @ w)
            noise = w @ ((h_star**3 - 3*h_star - aim*np.tanh(h))*own)**2 @ w
            pairs += [(package([at])[0], flow), (package([at], 0.4)[0], flow - 0.2*at*noise)]
    jumping = Drift(activation("tanh"), activation("sign"))   # g' = 2 delta
    for at in (0.2, 0.6):
        far = np.sqrt(1 - at**2)
        pairs.append((jumping([at])[0], 2/np.sqrt(2*np.pi)*far**2*(w @ (1/np.cosh(far*x)**2))))
    return agreed(*pairs)


def travel():
    """The time from d^{-1/2} to a level is the integral of one over the drift; its solution arrives there."""
    theory, flow = hx.theories.sgd("tanh", "sin"), Drift(activation("tanh"), activation("sin"))
    times = theory.escape([1e4, 1e6], level=0.5).times
    direct = [integrate.quad(lambda v: 1/flow([v])[0], d0**-0.5, 0.5, epsabs=1e-13)[0] for d0 in (1e4, 1e6)]
    arrived = theory.solve(t=(0, direct[0]), dimension=1e4)["m"][-1]
    return agreed(*zip(times, direct, strict=True), (arrived, 0.5), enough=1e-6)


def formulas():
    """The rate as a formula and as a series, for students and targets with a closed form."""
    rate, series = hx.theories.sgd("erf", "sign").rate, hx.theories.sgd("He3", "He3").series(4)
    slope_ = rate.subs({s: Rational(1, 3) for s in rate.free_symbols})
    by_hand = Drift(activation("erf"), activation("sign"))([1/3])[0]
    return agreed((slope_, by_hand), (series.subs({s: Rational(1, 3) for s in series.free_symbols}), 18*Rational(1,
                                                                                                                 9)*Rational(8, 9)))


several = hx.theories.sgd("z**2/2 + z**3/6", "z1*z2 + z1**2*z2")
m1, m2 = (next(x for x in several.potential.free_symbols if x.name == n) for n in ("m1", "m2"))
z3 = hx.symbols.z3
h = m1*z1 + m2*z2 + sqrt(1 - m1**2 - m2**2)*z3
page.text(r"Several directions, here of a staircase seen by a student of the slope $#1$, have one overlap each:",
          (Derivative_(z1**2/2 + z1**3/6, z1), z1 + z1**2/2))
for name, own, direction in (("m1", m1, z1), ("m2", m2, z2)):
    page.step("Mehler", E((z1*z2 + z1**2*z2)*(h + h**2/2)*(direction - own*h), z1, z2, z3), several.rates[name])


def along():
    """The flow of several overlaps integrates these rates."""
    found = several.solve(t=(0, 0.4), m0=0.3)

    def rates(_, x):
        return [float(several.rates[n].subs({m1: x[0], m2: x[1]})) for n in ("m1", "m2")]
    direct = integrate.solve_ivp(rates, (0, 0.4), [0.3, 0.3], rtol=1e-11, atol=1e-12).y[:, -1]
    # A step that is not small costs -m_i (step/2) E[g^2 sigma'^2], here by nodes.
    x, w = np.polynomial.hermite_e.hermegauss(10)
    z_ = np.stack(np.meshgrid(x, x, x, indexing="ij")).reshape(3, -1)
    share = np.prod(np.stack(np.meshgrid(w, w, w, indexing="ij")), axis=0).ravel()/w.sum()**3
    target = z_[0]*z_[1] + z_[0]**2*z_[1]

    def slowed(t_, v):
        h_ = v @ z_[:2] + np.sqrt(1 - v @ v)*z_[2]
        return np.array(rates(t_, v)) - v*0.05*(share @ (target*(h_ + h_**2/2))**2)

    noisy = several.solve(t=(0, 0.4), m0=0.3, step=0.1)
    by_hand = integrate.solve_ivp(slowed, (0, 0.4), [0.3, 0.3], rtol=1e-9, atol=1e-10).y[:, -1]
    return agreed((found["m1"][-1], direct[0]), (found["m2"][-1], direct[1]), (noisy["m1"][-1], by_hand[0]),
                  (noisy["m2"][-1], by_hand[1]), enough=1e-6)


def beyond():
    """sign(z1) + z2 seen by erf, s_{2j+1} = 2 (-2/3)^j (2j-1)!!/sqrt(3 pi): ||P_{>K} g|| (sum_k k^2 s_k^2 |m|^{2k-2}/k!)^{1/2}."""
    theory = hx.theories.sgd("erf", "sign(z1) + z2")
    found = theory.curve([0.5, 1.0], dimension=100)
    odd = {k_: special.eval_hermitenorm(k_ - 1, 0.0)**2*2/np.pi/special.factorial(k_) for k_ in range(1, theory.last + 1, 2)}
    j = np.arange(theory.last//2 + 1, 60)
    k_, s_ = 2*j + 1, 2*(2/3)**j*np.exp(special.gammaln(2*j + 1) - special.gammaln(j + 1) - j*np.log(2))/np.sqrt(3*np.pi)
    s_ = s_*np.exp(-special.gammaln(k_ + 1)/2)
    length = np.hypot(found["m1"], found["m2"])
    left = np.sqrt(1 - sum(odd.values()))*np.sqrt(np.sum((k_*s_*length[:, None]**(k_ - 1))**2, axis=1))
    return agreed(*zip(found.residual, left, strict=True), enough=1e-5)


page.test("several overlaps", along)
page.test("what the series leaves out", beyond, "A series up to some order is off by at most the norm of what it leaves of the "
                                                "target times that of the student's slope beyond it, by Cauchy and Schwarz; the "
                                                "package says so:")
page.test("the package's drift", drift,
          r"The package's drift, with its cost of a step that is not small, and its times:")
page.test("the package's times", travel)
page.test("the package's formulas", formulas)
page.misprint("the factorial forgotten", E(He(3, z1).diff(z1)*He(3, z2).diff(z2), z1, z2, cov=law), 9*m**2,
              "the square of the order is printed for unnormalised polynomials: a factorial is missing", source="wu2023slides",
              place="the gradient of a neuron", mended=18*m**2, change=lambda right: right/factorial(2))
page.variant("the samples of the lower bound", d**(k - 1), d**(k/2),
             r"a slide calls $d^{\ell-1}$ the lower bound of correlational statistical queries, which is $d^{\ell/2}$ from the "
             "second order on")
page.therefore(E(g(z2)*slope(z1)*(z2 - m*z1), z1, z2, cov=law), (1 - m**2)*E(slope(z1)*target_slope(z2), z1, z2, cov=law),
               r"The rate $\dot m$ for every student and target:", by=[stein],
               package={'hx.theories.sgd("tanh", "He3(z)").drift': lambda drift: (
                   {sigma: tanh, g: lambda x: He(3, x), m: 0.3}, [drift([0.3])[0]])})
page.not_shown("that SGD with a small rate follows the flow, and how large a rate may be; both are the source's.")
