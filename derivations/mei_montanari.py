r"""Random features at the square loss: from the fixed point of the replica method to the closed form of Mei and Montanari."""

import numpy as np
from sympy import Derivative, I, Subs, sqrt, symbols

import hermitex as hx
from hermitex import Result
from hermitex.symbols import Delta, alpha, gamma, lamda, mu_0
from hermitex.symbols import mu_star as mu

a_1, a_2, s, psi_1, psi_2, L, h, x, Vs = symbols("a_1 a_2 s psi_1 psi_2 L h V_w V_s", positive=True)
Vhats, V = symbols("Vhat_s V", positive=True)
mu_1, zeta, nu_1, nu_2, xi, chi, c_1, F, T = symbols("mu_1 zeta_r nu_1 nu_2 xi chi c_1 F T", real=True)

page = Result(
    "The closed form of random features",
    r"At the square loss the fixed point of random features is a pair of scalar equations of resolvents, those of $\nu_1$ and "
    r"$\nu_2$, and the test error is a rational function of their product $\chi$: with the slope $c_1$ of the target and "
    r"$F$ for the size of what is neither constant nor linear, it is given by three polynomials: $#1$.",
    source="mei2022", place="the precise asymptotics of ridge regression on random features",
    assumptions=[r"the fixed point of random features at the square loss (`random_features.py`): the traces, and the conditions "
                 r"that determine $q_s$, $q_w$ and $m_s$",
                 r"the labels are centred where $\mu_0$ is not zero (`intercept.py`)"],
)
page.notation({lamda: r"the ridge", alpha: "samples for one neuron", gamma: "inputs for one neuron",
               psi_1: "neurons for one input", psi_2: "samples for one input",
               (mu_0, mu_1, mu): "the coefficients of a feature: its mean, its linear part and the rest",
               zeta: r"the linear coefficient over the rest", s: r"the root of $\psi_1$ times the ridge, over $\mu_\star$",
               (nu_1, nu_2, xi): r"the two resolvents of the source, and its spectral parameter, on the imaginary axis",
               (a_1, a_2): "the same, which are imaginary, without the unit", chi: "the product of the two resolvents",
               x: "the trace of the inverse of $A$ for one neuron", "V_s": "that between the rows, for one input",
               "A": r"the matrix of the readout, $L$ and $\hat V_s$ times the rows' inner products",
               V: "the susceptibility", "R": "what the slope of $L$ leaves of one",
               c_1: "the mean of the target times its field", F: "the root of the mean square of the rest of the target",
               ("q_s", "q_w"): "the mean squares of the readout, through the rows and by itself",
               "m_s": "its overlap with the target",
               (r"\hat q_s", r"\hat q_w", r"\hat m_s"): "their conjugates",
               T: "the test error with the noise", Delta: "the variance of that noise"})

b = L + (1 - gamma)*Vhats
width = sqrt(b**2 + 4*gamma*L*Vhats)
root = 2/(b + width)
page.name(h, root, "(i) The traces. With the root of the equation of Marchenko and Pastur,")
neuron = gamma*root + (1 - gamma)/L
page.text("$V_w$ is $#1$ and $V_s$ is $#2$.", neuron, root/(1 + gamma*Vhats*root))
page.step("the trace of a neuron", neuron*(L + gamma*Vhats/(1 + Vhats*neuron)), 1,
          "The first solves an equation of its own,")
page.step("the trace between the rows", root/(1 + gamma*Vhats*root), neuron/(1 + Vhats*neuron), "and gives the other:")

letters = {alpha: psi_2/psi_1, gamma: 1/psi_1, mu_1: zeta*mu, lamda: s**2*mu**2/psi_1}
one, two = s*mu**2*x, psi_2/(s*(1 + V))
pull = alpha*mu_1**2/(gamma*(1 + V))
inside = lamda + alpha*mu**2/(1 + V)
page.text(r"(ii) Two letters. By stationarity $\hat V_s$ is $#1$ and $L$ is $#2$, and $V$ is the sum of both traces, each times "
          "the square of its coefficient. Put the source's letters for these, and", pull, inside)
page.let(a_1, one)
page.let(a_2, two)
product = 1 + zeta**2*a_1*a_2
for_one, for_two = a_1*(s + a_2 + zeta**2*a_2/product), a_2*(s + a_1 + zeta**2*a_1/product)
theirs = (tuple(letters), tuple(letters.values()))
page.step("the first trace", Subs(psi_1*x*(inside + gamma*pull/(1 + pull*x)), *theirs), for_one,
          r"Then $\psi_1$ times the equation of $V_w$, and $\psi_2$ over $1 + V$ times one and the susceptibility, are")
page.step("the susceptibility", Subs(psi_2/(1 + V)*(1 + mu**2*x + mu_1**2*x/(1 + pull*x)), *theirs), for_two)
page.text(r"so that these are $\psi_1$ and $\psi_2$. They are the source's equations, with $\psi_1$ and $\psi_2$ alone on one "
          "side:")
source = nu_1*(-xi - nu_2 - zeta**2*nu_2/(1 - zeta**2*nu_1*nu_2))
other = nu_2*(-xi - nu_1 - zeta**2*nu_1/(1 - zeta**2*nu_1*nu_2))
imaginary = ((nu_1, nu_2, xi), (I*a_1, I*a_2, I*s))
page.step("on the imaginary axis", Subs(source, *imaginary), for_one)
page.step("on the imaginary axis", Subs(other, *imaginary), for_two)


def named(letter, value, words=""):
    """The value, which is printed by its letter."""
    page.name(symbols(letter, real=True), value, words)
    return value


e = -zeta**2*chi   # Vhat_s V_w
more = named("j", 1 + e,
             r"(iii) Everything by $\chi$, which is minus the product of $a_1$ and $a_2$. One and the product of $\hat V_s$ and "
             "$V_w$ is")
page.step("the product", Subs(pull*x, *theirs), zeta**2*a_1*a_2, "for the product is")
u = named("u", psi_2 + chi*(1 + zeta**2/more),
          r"and by the second equation $a_2$ times $s$, which is $\psi_2$ over one and $V$, is")
kept, weight = u/psi_2, -chi/u
linear = zeta**2*weight/more
page.step("the second letter, times $s$", Subs(a_2*s, V, psi_2/u - 1), u)
page.text(r"The traces of the inverse's square are derivatives. The equation of $V_w$ is explicit in $L$, so that, with $R$ for "
          "what its slope leaves of one,")
L_of = 1/x - gamma*Vhats/(1 + Vhats*x)
by_x, by_hat = Derivative(L_of, x), Derivative(L_of, Vhats)
between = x/(1 + Vhats*x)
rest = 1 - gamma*(Vhats*x/(1 + Vhats*x))**2
R = page.name(symbols("R", positive=True), rest)
page.step("implicit differentiation, $V_w$ by $L$", -1/by_x, x**2/rest)
page.step(r"implicit differentiation, $V_w$ by $\hat V_s$", by_hat/by_x, gamma*x**2/(1 + Vhats*x)**2/rest)
page.step("implicit differentiation, $V_s$ by $L$", -Derivative(between, x)/by_x, x**2/(1 + Vhats*x)**2/rest)
page.step(r"implicit differentiation, $V_s$ by $\hat V_s$", -Derivative(between, Vhats) + Derivative(between, x)*by_hat/by_x,
          x**2/(1 + Vhats*x)**2*(1 + gamma/(1 + Vhats*x)**2/rest))

page.text(r"(iv) The error. By stationarity $\hat q_s$ is $\hat V_s$ times $T$ over $1 + V$, $\hat q_w$ the same of what $L$ has "
          r"beside the ridge, and $\hat m_s$ is $\hat V_s$ times $c_1$ over $\mu_1$; $q_w$ and $q_s$ are these, the last squared, "
          "times the slopes. In the units of the coefficients the slopes are")
left = named("R_chi", 1 - (e/more)**2/psi_1)
t_0 = named("t_0", weight**2/left)
t_1 = named("t_1", zeta**2*weight**2/more**2/left)
t_2 = named("t_2", zeta**4*weight**2/more**2*(1 + 1/(psi_1*more**2*left)))
share = psi_2*kept**2/psi_1
square = T*(t_0 + t_1) + (psi_2*c_1**2 + T)*(t_1 + psi_1*t_2)
energy = Delta + F**2 + c_1**2 - 2*c_1**2*psi_2*linear*kept + share*square
K = page.let(symbols("K", real=True), share*(t_0 + 2*t_1 + psi_1*t_2), "and $T$ holds itself, with the share")
N = page.let(symbols("N", real=True), Delta + F**2 + c_1**2 - 2*c_1**2*psi_2*linear*kept + share*psi_2*c_1**2*(t_1 + psi_1*t_2),
             "beside")
page.step("collecting", energy, N + K*T,
          "for the noise, the target's second moment, its covariance with the output and the output's square are together")
page.step("the solution", Subs(N + K*T, T, N/(1 - K)), N/(1 - K), "so that this is $T$ at")
page.text(r"The polynomials of the source are")
E_0 = page.let(symbols("E_0", real=True),
               -chi**5*zeta**6 + 3*chi**4*zeta**4 + (psi_1*psi_2 - psi_2 - psi_1 + 1)*chi**3*zeta**6 - 2*chi**3*zeta**4
               - 3*chi**3*zeta**2 + (psi_1 + psi_2 - 3*psi_1*psi_2 + 1)*chi**2*zeta**4 + 2*chi**2*zeta**2 + chi**2
               + 3*psi_1*psi_2*chi*zeta**2 - psi_1*psi_2)
E_1 = page.let(symbols("E_1", real=True), psi_2*chi**3*zeta**4 - psi_2*chi**2*zeta**2 + psi_1*psi_2*chi*zeta**2 - psi_1*psi_2)
E_2 = page.let(symbols("E_2", real=True),
               chi**5*zeta**6 - 3*chi**4*zeta**4 + (psi_1 - 1)*chi**3*zeta**6 + 2*chi**3*zeta**4 + 3*chi**3*zeta**2
               - (psi_1 + 1)*chi**2*zeta**4 - 2*chi**2*zeta**2 - chi**2)
closed = c_1**2*E_1/E_0 + (Delta + F**2)*E_2/E_0 + F**2


def iterated(ratio, samples, size):
    """a_1 a_2 of the source's two equations at zeta_r = ratio[0] and s = ratio[1], by bisection for a_1 s."""
    zeta_, s_ = ratio
    low, high = max(0.0, size - samples), size
    for _ in range(200):
        u = (low + high)/2   # a_1 s, so that psi_1 - u is the part that both equations share
        pair = u*(samples - size + u)/s_**2
        low, high = (u, high) if u + pair*(1 + zeta_**2/(1 + zeta_**2*pair)) < size else (low, u)
    return pair


AT = [{"alpha": 1.5, "gamma": 0.5, "lam": 0.01, "Delta": 0.1}, {"alpha": 0.6, "gamma": 1.4, "lam": 0.1, "Delta": 0.0},
      {"alpha": 3.0, "gamma": 0.4, "lam": 0.3, "Delta": 0.2}]


def numbers(activation, target, at):
    """The letters of a pair of functions, by their own averages on a grid."""
    z_, w_ = Result.normal_grid()
    f, g = (np.broadcast_to(hx.compile(hx.parse(text))(z=z_), z_.shape) for text in (activation, target))
    mean, slope = w_ @ f, w_ @ (z_*f)
    size = np.sqrt(w_ @ f**2 - mean**2 - slope**2)
    known, offset = w_ @ (z_*g), (w_ @ g if abs(mean) > 1e-9 else 0.0)
    return {zeta: slope/size, c_1: known, F: np.sqrt(max(w_ @ g**2 - offset**2 - known**2, 0)), Delta: at["Delta"],
            psi_1: 1/at["gamma"], psi_2: at["alpha"]/at["gamma"], s: np.sqrt(at["lam"]/at["gamma"])/size}


def in_numbers():
    """The source's formulas, their two equations solved here, against the package."""
    pairs = {}
    formula = closed.subs({x_: page.definitions[x_] for x_ in (E_0, E_1, E_2)})
    for activation, target in (("erf(z)", "sign(z)"), ("tanh(2*z)", "z + z**2 - 1"), ("Max(0, z)", "Max(0, z)")):
        theory = hx.theories.random_features(activation, target)
        for at in AT:
            known = numbers(activation, target, at)
            pair = iterated((known[zeta], known[s]), known[psi_2], known[psi_1])
            pairs[f"{activation}, {target} at {at}"] = (float(formula.subs({**known, chi: -pair})),
                                                        float(theory.solve(**at)["test_error"]))
    return Result.numbers(pairs, floor=0.0)


def solved(solve):
    """chi of the package, from its V and V_w, with the numbers of erf and sign; its test error."""
    at = AT[0]
    found, known = solve(**at), numbers("erf(z)", "sign(z)", at)
    del known[s]
    pair = known[psi_2]*float(found["mu_star"])**2*float(found["Vw"])/(1 + float(found["V"]))
    return {**known, chi: -pair}, [float(found["test_error"])]


page.test("the package's test error", in_numbers, "The source's two equations, solved by bisection, and its formula in numbers:")
page.variant("the rest of the target forgotten", N/(1 - K) - Delta, c_1**2*E_1/E_0 + Delta*E_2/E_0 + F**2,
             "what the features cannot see of the target acts as noise besides, of the variance $F^2$")
page.therefore(N/(1 - K) - Delta, closed, "The test error without the noise, the solution $N/(1 - K)$ of (iv) less the noise:",
               by=[K, N, E_0, E_1, E_2],
               package={'hx.theories.random_features("erf", "sign").solve': solved})
page.not_shown("the fixed point itself, for which see `random_features.py`; the source proves these asymptotics by resolvents.")
