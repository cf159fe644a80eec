r"""A readout that starts with two values: both sets of equations as the stationarity conditions of a free energy."""

import numpy as np
from sympy import Eq, Function, Matrix, Subs, Symbol, diag, eye, log, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, Result, System
from hermitex.symbols import Delta, alpha, beta, gamma, kappa, lamda, z
from hermitex.theories.one_step import bias, epsilon, r

EACH, PAIRS = (1, 2), ((1, 1), (1, 2), (2, 2))


def letters(name, **kind):
    """One symbol for each letter of the vocabulary."""
    return {k: Symbol(f"{name}{k}", **(kind or {"real": True})) for k in EACH}


def symmetric(name):
    """A symmetric matrix of symbols."""
    return Matrix(2, 2, lambda i, j: Symbol(f"{name}_{min(i, j) + 1}{max(i, j) + 1}", real=True))


positive = {"positive": True}
u, pi, c = letters("u"), letters("pi", **positive), letters("c", **positive)
m, mhat, zeta, zetahat, zetatilde = (letters(n) for n in ("m", "mhat", "zeta", "zetahat", "zetatilde"))
psi, psihat, psitilde = (letters(n) for n in ("psi", "psihat", "psitilde"))
q2, qhat2 = letters("q2_"), letters("qhat2_")
V2, Vhat2, L = letters("V2_", **positive), letters("Vhat2_", **positive), letters("L", **positive)
mu0, mu1, mu22 = letters("mu0_"), letters("mu1_"), letters("mu22_")
V1, Mhat, q1, qhat1 = (symmetric(n) for n in ("V1", "Vhat1", "q1", "qhat1"))
h, h1, h2, Q = symbols("h h1 h2 Q", real=True)
slope = Matrix([mu1[k] for k in EACH])


def total(terms):
    """The sum over the letters."""
    return sum(terms(k) for k in EACH)


def quadratic(matrix, v):
    """v^T matrix v."""
    return (v.T*matrix*v)[0].expand()


def weight(i, j):
    """A derivative by an entry of a symmetric matrix meets an entry off the diagonal twice."""
    return 1 if i == j else 2


def mean(x):
    """E over kappa."""
    return E(x, kappa)


def features(sigma):
    """mu_0, mu_1 and mu_2^2 of each letter, at the spike r u_k and the squared norm c_k."""
    found = {}
    for k in EACH:
        s = hx.parse(sigma).subs(z, r*u[k]*kappa + bias + sqrt(c[k])*z)
        found |= {mu0[k]: E(s, z), mu1[k]: E(z*s, z)/sqrt(c[k]),
                  mu22[k]: E(s**2, z) - E(s, z)**2 - E(z*s, z)**2}
    return found


SHARED = {   # by both pages
    pi[1]: "the fraction of neurons that start with the first value", u[1]: "that value", c[1]: "the squared norm of their rows",
    (alpha, beta): "samples and neurons for each dimension", gamma: "the overlap of the target's direction with the spike",
    Delta: "the variance of the label's noise", r: "the spike's size in the features of a neuron that starts at one",
    bias: "the shift of a pre-activation", lamda: "the ridge", epsilon: "one over the dimension",
    (h, h1, h2): r"at fixed $\kappa$, the target's mean, its slope across the spike, and its mean square with noise",
    (mu0[1], mu1[1]): r"mean and slope of a feature of the first letter at fixed $\kappa$",
    mu22[1]: "the mean square of what these two leave of it",
    m[1]: "the mean of the readout over these neurons: the sum of the entries over the root of the width",
    Q: "the weight of a sample, one over the sum of one and $V$"}


# -- independent rows --------------------------------------------------------------------------------------------------
page = Result(
    "A vocabulary of readout values, independent rows",
    r"If the readout starts at one of several values $u_k$, over the root of the width, on a fraction $\pi_k$ of the neurons, "
    "one gradient step gives these neurons a spike in proportion to $u_k$ and rows of squared norm $c_k$: several kinds of "
    r"features at once. For independent rows the order parameters are those of one kind with $V_1$, $\hat V_1$, $q_1$ and $\hat "
    "q_1$ turned into matrices.",
    source="cui2024", place="Appendix D, for independent rows",
    assumptions=[r"at fixed projection $\kappa$ on the spike the features are equivalent to Gaussian ones (Result 3.2 for each "
                 "letter)",
                 r"the rows of $W$ are independent; the target's direction has the part $\gamma$ along the spike",
                 r"replica symmetry, which holds for convex problems"],
)
B = total(lambda k: mu0[k]*m[k] + kappa*mu1[k]*zeta[k])
tilt = total(lambda k: mu1[k]*psi[k])
V = quadratic(V1, slope) + total(lambda k: pi[k]*V2[k]*mu22[k])
error = h2 - 2*B*h + B**2 - 2*h1*tilt + quadratic(q1, slope) + total(lambda k: mu22[k]*q2[k])
page.notation({**SHARED, "g": "the target's link",
               "s": "the spread of an output beside these",
               "W": "the rows, without the spikes",
               ("q_1", r"\hat q_1"): "the readout's mean square across the spike, and its conjugate",
               (r"\hat M", r"\hat M_{kl}"): "the matrix of the conjugates of $V_1$, and its entries",
               r"\zeta": "the readout's overlap with the spike",
               ("V_{2,k}", "V_{2,1}"): "the traces of the letters, and of the first",
               "H": "the matrix of second derivatives in the $V_{2,k}$",
               (r"\tilde\zeta", r"\tilde\psi"): r"the conjugates of $\zeta$ and $\psi$",
               q2[1]: "the square of the readout over the neurons of the first value, for one neuron",
               "A": r"the readout's matrix: $L_k$ on the diagonal, and $\hat M$ times the covariances of the rows across the "
                    "spike, block by block", V2[1]: "the trace of the inverse of $A$ over them, for one of them",
               V1[0, 0]: "the matrix of traces of that inverse with those covariances, for one neuron"})
page.text("(i) Energy. As for one kind of features, the relaxed loss of a sample is half of $e$ over the sum of one and $V$, "
          "now with $#1$, $#2$ and $#3$. This is the second moment of the gap between label and output, for the field has the "
          "variance that its part along the target leaves.", (Symbol("V"), V), (Symbol("B"), B), (Symbol("e"), error))
g = Function("g")
z1, z2, z3 = hx.symbols.z1, hx.symbols.z2, hx.symbols.z3
target = g(gamma*kappa + sqrt(1 - gamma**2)*z1)
spread = Symbol("s", positive=True)   # what is left of the field's variance
b, psi_ = Symbol("B", real=True), Symbol("psi", real=True)
page.step("independence", E((target + sqrt(Delta)*z3 - b - psi_*z1 - spread*z2)**2, z1, z2, z3),
          E(target**2, z1) + Delta - 2*b*E(target, z1) + b**2 - 2*psi_*E(z1*target, z1) + psi_**2 + spread**2,
          r"With $\psi$ for that part,", digits=6, points=1)
D = diag(*(beta*pi[k]*c[k]*V2[k] for k in EACH))
inside = eye(2) + D*Mhat
omega = log(inside.det())/beta + total(lambda k: pi[k]*(L[k]*V2[k] - log(V2[k])))
trace = Mhat*inside.adjugate()/inside.det()
page.name(Symbol("Omega"), omega,
          "(ii) Entropy. For independent rows the logarithmic determinant of $A$ a neuron is the stationary value, over the "
          "$V_{2,k}$, of a term of all rows and one of each letter,")
page.step("stationarity in $V_{2,1}$", Derivative(omega, V2[1]), pi[1]*(L[1] + c[1]*trace[0, 0] - 1/V2[1]),
          r"Its conditions and its derivatives, which are the entries of $V_1$:")
block = inside.adjugate()*D/inside.det()/beta   # (I + D Mhat)^{-1} D
for i, j in PAIRS:
    page.step(f"the derivative by $\\hat M_{{{i}{j}}}$", Derivative(omega, Mhat[i - 1, j - 1]),
              weight(i, j)*block[i - 1, j - 1])
page.step("the matrix of them", block, (D.inv() + Mhat).inv()/beta, "As a matrix they are", points=2)
page.text(r"With one letter these are the equations of the learning curve:")
one, v2, hat = symbols("c V_2 Vhat_1", positive=True)
single = {pi[2]: 0, pi[1]: 1, c[1]: one, V2[1]: v2, Mhat[0, 0]: hat}
page.step("one letter", Subs(c[1]*trace[0, 0], tuple(single), tuple(single.values())), one*hat/(1 + one*beta*hat*v2))
page.step("one letter", Subs(block[0, 0], tuple(single), tuple(single.values())), one*v2/(1 + one*beta*hat*v2))

page.text(r"(iii) The free energy. The vectors that $\hat\zeta_k$, $\hat\psi_k$ and $\hat m_k$ couple to, the rows along the "
          "spike and along the rest of the target, and the ones of a letter, have in the inverse of $A$ squared norms in "
          r"proportion to $V_{2,k}$, $V_1$ and $V_{2,k}$ over $\epsilon$; the entropy is half of")
hats = Matrix([psihat[k] for k in EACH])
G = total(lambda k: pi[k]*V2[k]*(qhat2[k] + beta*c[k]*zetahat[k]**2 + beta/epsilon*mhat[k]**2))
G += (qhat1*block).trace() + beta*quadratic(block, hats)
page.name(Symbol("G", real=True), G)
page.step("the derivative by $\\hat m_1$", Derivative(G, mhat[1]), 2*beta/epsilon*pi[1]*V2[1]*mhat[1], "so that, for instance,")
fields = {zetahat[k]: alpha/beta*zetatilde[k] for k in EACH} | {psihat[k]: alpha/beta*psitilde[k] for k in EACH}
fields |= {mhat[k]: m[k]*epsilon/(beta*pi[k]*V2[k]) for k in EACH}
page.text(r"A derivative of it by $L_k$ or $\hat M_{kl}$ runs through the $V_{2,k}$ too, whose slopes follow from their "
          "conditions by the matrix of second derivatives $H$.")
at = [V2[k] for k in EACH]
curvature = symmetric("H")
names = {curvature[i - 1, j - 1]: omega.diff(V2[i], V2[j]) for i, j in PAIRS}


def slopes(x):
    """{the name of dV_2/dx: its value} for both letters."""
    moved = -curvature.adjugate()*Matrix([omega.diff(v, x) for v in at])/curvature.det()
    return {Symbol(f"d{v}_by_{x}", real=True): dv for v, dv in zip(at, moved, strict=True)}


def entropic(x):
    """-dG/dx, through V_2 as well."""
    return -(G.diff(x) + sum(G.diff(v)*name for v, name in zip(at, slopes(x), strict=True))).subs(fields)


def energetic(x):
    """alpha/beta E of the derivative of e Q, twice the energy's."""
    return alpha/beta*mean(((error/(1 + V)).diff(x)).subs(1/(1 + V), Q))


def derived(sigma, target):
    """The stationarity conditions for given functions, as a System."""
    t = gamma*kappa + sqrt(1 - gamma**2)*z
    g = hx.parse(target).subs(z, t)
    equations = {V2[k]: 1/(L[k] + c[k]*trace[k - 1, k - 1]) for k in EACH}
    equations |= {V1[i - 1, j - 1]: block[i - 1, j - 1] for i, j in PAIRS}
    equations |= {Vhat2[k]: energetic(q2[k]) for k in EACH}
    equations |= {Mhat[i - 1, j - 1]: energetic(q1[i - 1, j - 1])/weight(i, j) for i, j in PAIRS}
    for k in EACH:
        equations |= {m[k]: Eq(energetic(m[k])/2 + G.diff(mhat[k]).coeff(mhat[k])**-1*2*m[k], 0, evaluate=False),
                      zeta[k]: G.diff(zetahat[k]).subs(fields)/2, zetatilde[k]: -beta/alpha*energetic(zeta[k])/2,
                      psi[k]: (beta*block*hats)[k - 1].subs(fields), psitilde[k]: -beta/alpha*energetic(psi[k])/2,
                      q2[k]: entropic(L[k]), qhat2[k]: -energetic(V2[k])/pi[k]}
    for i, j in PAIRS:
        x, y = q1[i - 1, j - 1], qhat1[i - 1, j - 1]
        equations |= {x: entropic(Mhat[i - 1, j - 1])/weight(i, j), y: -energetic(V1[i - 1, j - 1])/weight(i, j)}
    moved = [v for x in (*L.values(), *(Mhat[i - 1, j - 1] for i, j in PAIRS)) for v in slopes(x).items()]
    return System(equations, where={**features(sigma), **{L[k]: lamda + Vhat2[k] for k in EACH}, Q: 1/(1 + V), **names,
                                    **dict(moved), h: E(g, z), h1: E(z*g, z), h2: E(g**2, z) + Delta,
                                    Symbol("V", real=True): V, Symbol("B", real=True): B, Symbol("e", real=True): error},
                  observables={"test_error": mean(Symbol("e", real=True)) - Delta, "train_error": mean(error*Q**2)})


numbers = {"beta": 0.8, "lam": 0.1, "r": 1.1, "gamma": 0.9, "Delta": 0.1, "u1": 1.0, "u2": -0.6, "pi1": 0.4, "pi2": 0.6,
           "c1": 1.2, "c2": 0.9}
points = [{**numbers, "alpha": 1.7, "bias": 0.2, "epsilon": 0.01},
          {**numbers, "alpha": 0.5, "beta": 1.6, "bias": 0.3, "epsilon": 0.02}]
package = hx.theories.one_step("tanh", "sin", vocabulary=[1, -0.6], fractions=[0.4, 0.6])
mixed = derived("tanh(z)", "sin(z)")
agreed = page.same("stationarity for tanh and sin", mixed, package.system,
          r"Stationarity, the fields in units of $\frac\alpha\beta$ as $\tilde\zeta$ and $\tilde\psi$, gives a system whose "
          "solutions are those of the package's:", at=points, shown=False)
page.therefore([(x, v) for x, v in package.system.equations.items() if x in (Vhat2[1], zeta[1], zetatilde[1], psitilde[1],
                                                                            qhat2[1])],
              words=r"The equations that the package solves; those of one letter and without matrices:", by=[agreed],
               package={'hx.theories.one_step("tanh", "sin", vocabulary=[1, -0.6], fractions=[0.4, 0.6]).system': package.system})



def after_the_step():
    """Letters of mean 0.04 and features with a mean: r and each c_k by Result 3.1 with f^0 = sigma_0 sum_k pi_k u_k."""
    x, w = Result.normal_grid()
    target, readout, shares = np.sin(x) + x**2/2, np.array([1, -0.6]), np.array([0.4, 0.6])
    given = {"alpha": 1.5, "lam": 0.1, "beta": 0.7, "Delta": 0.1, "bias": 0.0}
    alpha0, rate = 2.0, 0.8/given["beta"]
    # relu: E relu = E relu'' = 1/sqrt(2 pi), E relu' = 1/2, Var relu' = 1/4
    start = 1/np.sqrt(2*np.pi)
    left = target - start*shares @ readout
    spread, along = w @ left**2 + given["Delta"], w @ (x*left)
    size = np.sqrt(along**2 + spread/alpha0)
    norms = (1 + rate*readout*start*(w @ left))**2 + (rate*readout)**2*spread/alpha0/4
    names = ("relu", "sin(z) + z**2/2")
    kinds = {"vocabulary": readout.tolist(), "fractions": shares.tolist()}
    one = hx.theories.one_step(*names, **kinds).solve(alpha0=alpha0, eta=0.8, **given)
    other = hx.theories.one_step(*names, **kinds, norms=norms.tolist()).solve(r=rate/2*size, gamma=along/size, **given)
    return Result.numbers({n: (one[n], other[n]) for n in ("test_error", "train_error", "m1", "m2", "V2_1")})


page.test("the features of each letter", after_the_step,
          "The step itself: the network starts at the mean of the $u_k$ times that of the activation, and the rate of a neuron "
          "is in proportion to $u_k$, so that $c_k$ is that of Result 3.1 with this residual and this rate.")
page.not_shown(r"replica symmetry, and that the logarithmic determinant is that stationary value (quoted).")

# -- orthogonal rows ---------------------------------------------------------------------------------------------------
orthogonal = Result(
    "A vocabulary of readout values, orthogonal rows",
    r"For rows that are orthogonal, of squared norm $c_k$, which needs $p \le d$, and a spike along the target, the order "
    r"parameters are one $V_k$, the inverse of the sum of $\lambda$ and its conjugate, with $m_k$, $\zeta_k$, $q_k$ and their "
    "conjugates for each letter.",
    source="cui2024", place="Appendix D.3",
    assumptions=[r"the overlap $\gamma$ is one: the spike is the target's direction",
                 "the spike's direction is not in the bulk, so that $A$ is diagonal up to rank one",
                 r"replica symmetry, which holds for convex problems"],
)
s2 = letters("s2_")
lin = total(lambda k: mu1[k]*zeta[k])
gap = (h - B)**2 + Delta - lin**2 + total(lambda k: s2[k]*q2[k])
Vo = total(lambda k: pi[k]*V2[k]*s2[k])
orthogonal.notation({**SHARED, Symbol("linear", real=True): "the slopes of all letters, each times its projection on the spike",
                     (V2[1], Vhat2[1]): "the trace of the inverse of $A$ over them, for one of them, and its conjugate",
                     (zetahat[1], mhat[1], qhat2[1]): "the conjugates in the entropy",
                     (zetatilde[1], psitilde[1]): r"in units of $\frac\alpha\beta$, those of the overlaps with the spike and with "
                                                  "the rest of the target's direction",
                     "p": "the neurons", "d": "the dimension", "A": "the readout's matrix",
                     r"\zeta": "the readout's projection on the spike",
                     s2[1]: "the variance of a feature of the first letter",
                     zeta[1]: "the readout's projection on the spike, over them", q2[1]: "its mean square"})
orthogonal.text(r"With the variance $#1$ of a feature, for either letter, the output has at fixed $\kappa$ the mean $B$ and the "
                r"variance of all letters' $q_k$, each with that of its features, less the square of their $\zeta_k$, each with "
                r"its slope, for the projection $\zeta$ on the spike is not random any more. So the relaxation is $#2$ and the "
                "error is below. The two terms that the projection brings:",
                (s2[1], c[1]*mu1[1]**2 + mu22[1]), (Symbol("V"), Vo))
rest = total(lambda k: mu0[k]*m[k])
orthogonal.name(Symbol("e"), gap)
orthogonal.step("the derivative by $\\zeta_1$", -Derivative(gap, zeta[1])/2, mu1[1]*(kappa*(h - rest) - (kappa**2 - 1)*lin))
ridge = {k: Symbol(f"Lambda{k}", positive=True) for k in EACH}
Go = total(lambda k: pi[k]/ridge[k]*(qhat2[k] + beta*c[k]*zetahat[k]**2 + beta/epsilon*mhat[k]**2))
back = {ridge[k]: 1/V2[k] for k in EACH}
orthogonal.name(Symbol("G"), Go, r"With $\Lambda_k$ for the inverse of $V_k$, and the conjugates where they are, the entropy is "
                                 "half of")
held = Subs(Derivative(Go, ridge[1]), tuple(fields), tuple(fields.values()))
first = -Subs(held, tuple(back), tuple(back.values()))
orthogonal.step("the derivative by $\\Lambda_1$", first,
                pi[1]*V2[1]**2*(alpha**2/beta*c[1]*zetatilde[1]**2 + qhat2[1]) + epsilon*m[1]**2/(beta*pi[1]))


def orthonormal(sigma, target):
    """The stationarity conditions, as a System."""
    def energy(x):
        return alpha/beta*mean(((gap/(1 + Vo)).diff(x)).subs(1/(1 + Vo), Q))

    equations = {V2[k]: 1/(lamda + Vhat2[k]) for k in EACH} | {Vhat2[k]: energy(q2[k]) for k in EACH}
    for k in EACH:
        equations |= {m[k]: Eq(energy(m[k])/2 + 2*m[k]/Go.diff(mhat[k], 2).subs(back), 0, evaluate=False),
                      zeta[k]: Go.diff(zetahat[k]).subs(fields).subs(back)/2, zetatilde[k]: -beta/alpha*energy(zeta[k])/2,
                      q2[k]: -Go.diff(ridge[k]).subs(fields).subs(back), qhat2[k]: -energy(V2[k])/pi[k]}
    return System(equations, where={**features(sigma), **{s2[k]: c[k]*mu1[k]**2 + mu22[k] for k in EACH}, Symbol("V",
                  real=True): Vo, Q: 1/(1 + Symbol("V", real=True)),
                                    h: hx.parse(target).subs(z, gamma*kappa)},
                  observables={"test_error": mean(gap) - Delta, "train_error": mean(gap*Q**2)})


aligned = [{**p, "gamma": 1.0, "beta": 0.7} for p in points]
flat = hx.theories.one_step("tanh", "sin", vocabulary=[1, -0.6], fractions=[0.4, 0.6], rows="orthogonal")
square = orthonormal("tanh(z)", "sin(z)")
agreed = orthogonal.same("stationarity for tanh and sin", square, flat.system,
                         "The solutions are those of the package's equations:",
                at=aligned, shown=False)


def without(**changed):
    """The derived system with some names put differently."""
    now = {x: changed.get(x.name, v) for x, v in square.equations.items()}
    return System(now, where=square.where, observables=square.observables)


bulk = {f"zetatilde{k}": mean(mu1[k]*Q*kappa*(h - B)) for k in EACH}
orthogonal.variant(r"the spike's direction left in the bulk", without(**bulk), square,
                   r"$\kappa^2$ instead of $\kappa^2 - 1$: $\zeta$ would be counted in $B$ and in the variance", at=aligned[:1])
orthogonal.therefore([(x, v) for x, v in flat.system.equations.items() if x in (V2[1], Vhat2[1], zeta[1], zetatilde[1], q2[1],
                                                                               qhat2[1])],
                    words=r"The equations that the package solves, those of the first letter:", by=[agreed],
                     package={'hx.theories.one_step("tanh", "sin", vocabulary=[1, -0.6], fractions=[0.4, 0.6], '
                              'rows="orthogonal").system': flat.system})
orthogonal.not_shown("replica symmetry, and more neurons than dimensions.")
