r"""The learning curve after one giant gradient step (Result 3.3): stationarity of a free energy, down to the package's System."""

from sympy import Eq, Function, Lambda, Subs, Symbol, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, Result, System
from hermitex.symbols import Delta, alpha, beta, c, gamma, kappa, lamda, m, psitilde, z, z1, z2, z3, zeta, zetatilde
from hermitex.theories.one_step import V1, V2, Vhat1, Vhat2, bias, epsilon, psi, q1, q2, qhat1, qhat2, r

g = Function("g")
mu_0, mu_1, mu_22, h, h1, h2, e, rho, V = symbols("mu_0 mu_1 mu_22 h h1 h2 e rho V", real=True)
v, omega = symbols("V_2 omega", real=True)
L = Symbol("L", positive=True)
zetahat, psihat, mhat = symbols("zetahat psihat mhat", real=True)
WEIGHT = Symbol("Q", positive=True)

page = Result(
    "The learning curve after one giant gradient step",
    r"The ridge regression of fresh samples, $\alpha$ for each dimension, on the spiked features of one gradient step has order "
    r"parameters that solve thirteen equations; its test error is $\mathbb{E}_\kappa[e] - \Delta$ and its train error the mean "
    "of $e$ times the square of $Q$.",
    source="cui2024", place="Result 3.3",
    assumptions=[r"the features are equivalent to Gaussian ones of the coefficients $\mu_0$ and $\mu_1$ and the squared residual "
                 r"$\mu_\star^2$ at fixed projection $\kappa$ on the spike $v$ (Result 3.2)",
                 r"the rows of $W$ are independent, of squared norm $c$; the target's direction has the part $\gamma$ along the "
                 "spike",
                 r"replica symmetry, which holds for convex problems"],
)
page.notation({"y": "the label of a sample",
               "g": "the target's link",
               lamda: "the ridge",
               r: "the spike's size in the features",
               bias: "the shift of a pre-activation",
               "W": "the rows, without the spike", "v": "the direction of the spike",
               r"\theta_\perp": "the part of the target's direction across it", "A": "the matrix of the readout's quadratic form",
               m: "the mean of the readout: the sum of its entries over the root of their number",
               zeta: "its overlap with the spike, through the rows, likewise",
               psi: r"that with $\theta_\perp$, the rest of the target's direction",
               q1: "the square of its image across the spike, for one neuron", q2: "its mean square",
               epsilon: "one over the dimension",
               omega: r"the output on a new sample, at fixed projection $\kappa$ on the spike, a Gaussian field",
               z1: "the target's coordinate across the spike",
               v: r"the trace of the inverse of $A$ for one neuron, where $A$ is $L$ and $\hat V_1$ times the rows' covariance "
                  "across the spike", V1: "the same trace with that covariance before it"})
y, f = hx.symbols.y, hx.symbols.f
page.text("(i) Energy. The squared loss of a sample relaxed in its field, with $#1$, is the Moreau envelope, the least of $#2$ "
          "over $f$:", (V, mu_1**2*V1 + mu_22*V2), (f - omega)**2/(2*V) + (y - f)**2/2)
relaxed = (omega + V*y)/(1 + V)
page.step("stationarity in $f$", ((f - omega)/V - (y - f)).subs(f, relaxed), 0)
page.step("the envelope", Subs((f - omega)**2/(2*V) + (y - f)**2/2, f, relaxed), (y - omega)**2/(2*(1 + V)))
B = mu_0*m + kappa*mu_1*zeta
error = h2 - 2*B*h + B**2 - 2*mu_1*psi*h1 + mu_1**2*q1 + mu_22*q2
target = g(gamma*kappa + sqrt(1 - gamma**2)*z1)
field = B + mu_1*psi*z1 + sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2)*z2
written = {h: E(target, z1), h1: E(z1*target, z1), h2: E(target**2, z1) + Delta}
page.text(r"Its mean over the field and the label, the target with noise of variance $\Delta$, needs the target only through")
for name, value in written.items():
    page.let(name, value)
page.let(e, error, "This number is")
page.step("independence", E((target + sqrt(Delta)*z3 - field)**2, z1, z2, z3), e, "for", digits=6, points=1)
page.text(r"The energy of a neuron is half the mean of $e$ times $Q$ over $\kappa$, for each of its samples, with $#1$.",
          (WEIGHT, 1/(1 + V)))

page.text("(ii) Entropy. The readout sees the conjugate fields through $A$, in which $#1$. For rows that are independent, "
          r"$V_2(L, \hat V_1)$ solves the quadratic equation of Marchenko and Pastur,", (L, lamda + Vhat2))
b = c*beta*Vhat1
half = L + c*Vhat1 - b
root = 2/(half + sqrt(half**2 + 4*L*b))
page.name(v, root, "whose positive root is")
page.step("Marchenko-Pastur", root, 1/(L + c*Vhat1/(1 + b*root)))
u = 1/(1 + b*v)
factor = page.let(Symbol("u", positive=True), u, shown=False)
page.text(r"and $V_1$ is $c\,u\,V_2$ with $#1$, for", factor)
page.step("the trace of $A A^{-1}$", L*v + Vhat1*c*v*factor, 1)
T0 = v**2/(1 - beta*(c*Vhat1*u*v)**2)
T1 = c*u**2*T0
T2 = c*u**2*T1 + beta*(c*v*u)**2
x = Symbol("V_2", positive=True)   # V_2 as a letter of its own
L_of = 1/x - c*Vhat1/(1 + b*x)
page.step("Marchenko-Pastur, solved for $L$", 1/v - c*Vhat1/(1 + b*v), L, "The equation is explicit in $L$,")
page.text(r"The traces of the inverse's square are the derivatives of $V_2$ and $V_1$ by $L$ and $\hat V_1$, with a minus. With "
          r"$L$ a function of $V_2$ and $\hat V_1$ a derivative of $V_2$ is a quotient of its derivatives, and that of $V_1$ "
          "runs through both:")
by_V, by_hat = Derivative(L_of, x), Derivative(L_of, Vhat1)
first = c*x/(1 + b*x)
for rule, slope, value in (("$T_0$", -1/by_V, T0), ("$T_1$", by_hat/by_V, T1), ("$T_1$ again", -Derivative(first, x)/by_V, T1),
                           ("$T_2$", -Derivative(first, Vhat1) + Derivative(first, x)*by_hat/by_V, T2)):
    page.step(f"implicit differentiation, {rule}", slope, value.xreplace({v: x}))

page.text("(iii) The free energy. The vectors of the rows' overlaps with the two directions, and the vector $1$, to which the "
          r"conjugates $\hat\zeta$, $\hat\psi$ and $\hat m$ couple, have in the inverse of $A$ the squared norms $c\beta v_2$, "
          r"$\beta v_1$ and $\beta v_2/\epsilon$, with $v_1$ and $v_2$ for the traces as functions of $L$ and $\hat V_1$. (So "
          "$m$ costs nothing in the limit; its term is the leading correction in one over the dimension.)")
v1, v2 = Function("v_1")(L, Vhat1), Function("v_2")(L, Vhat1)
Q = 1/(1 + mu_1**2*V1 + mu_22*V2)


def energy(body):
    """alpha/(2 beta) E over kappa."""
    return alpha/(2*beta)*E(body, kappa)


entropy = (qhat1*v1 + qhat2*v2 + (c*beta*zetahat**2 + beta/epsilon*mhat**2)*v2 + beta*psihat**2*v1)/2
coupling = (q1*Vhat1 + q2*Vhat2 - V1*qhat1 - V2*qhat2)/2 - m*mhat - zeta*zetahat - psi*psihat
letters = (mu_0, mu_1, mu_22, h, h1, h2)
along = dict(zip(letters, (Function(n)(kappa) for n in ("mu_0", "mu_1", "mu_22", "h", "h1", "h2")), strict=True))
weight, residual, shift = ((x_).xreplace(along) for x_ in (Q, error, h - B))
phi = coupling + entropy - energy(residual*weight)
page.name(Symbol("Phi"), phi, r"With the traces as functions of the conjugates and the coefficients as functions of $\kappa$, "
                              "whatever these are, it is")
page.text("Its derivatives, each of which determines one unknown:")
one, two = along[mu_1], along[mu_22]
for letter, sign, x_, value in (
        ("q_1", 2, q1, Vhat1 - alpha/beta*E(one**2*weight, kappa)), ("q_2", 2, q2, Vhat2 - alpha/beta*E(two*weight, kappa)),
        ("m", 1, m, -mhat + alpha/beta*E(along[mu_0]*shift*weight, kappa)),
        (r"\zeta", 1, zeta, -zetahat + alpha/beta*E(kappa*one*shift*weight, kappa)),
        (r"\psi", 1, psi, -psihat + alpha/beta*E(one*along[h1]*weight, kappa)),
        ("V_1", -2, V1, qhat1 - alpha/beta*E(one**2*residual*weight**2, kappa)),
        ("V_2", -2, V2, qhat2 - alpha/beta*E(two*residual*weight**2, kappa)),
        (r"\hat q_1", 2, qhat1, v1 - V1), (r"\hat q_2", 2, qhat2, v2 - V2), (r"\hat m", 1, mhat, beta/epsilon*mhat*v2 - m),
        (r"\hat\zeta", 1, zetahat, c*beta*zetahat*v2 - zeta), (r"\hat\psi", 1, psihat, beta*psihat*v1 - psi)):
    page.step(f"stationarity in ${letter}$", sign*Derivative(phi, x_), value)
pull_1, pull_2 = qhat1 + beta*psihat**2, qhat2 + c*beta*zetahat**2 + beta/epsilon*mhat**2
page.step(r"stationarity in $\hat V_1$", 2*Derivative(phi, Vhat1), q1 + pull_1*v1.diff(Vhat1) + pull_2*v2.diff(Vhat1))
page.step(r"stationarity in $\hat V_2$", 2*Derivative(phi, Vhat2) + 2*Derivative(phi, L),
          q2 + pull_1*v1.diff(L) + pull_2*v2.diff(L), r"and, as $L$ holds $\hat V_2$,")
names = symbols("T0 T1 T2", real=True)


def stationarity():
    """The conditions, each solved for the unknown it determines; v1, v2 and their derivatives under their names."""
    slopes = {v1.diff(Vhat1): -names[2], v2.diff(Vhat1): -names[1], v1.diff(L): -names[1], v2.diff(L): -names[0]}

    def entropic(x):
        """The derivative of the entropy; L = lamda + Vhat2 carries that in Vhat2."""
        return entropy.diff(L if x == Vhat2 else x).subs(slopes).subs({v1: V1, v2: V2})

    def energetic(x):
        return energy((error*Q).diff(x)).xreplace({Q: WEIGHT})

    fields = {zetahat: alpha/beta*zetatilde, psihat: alpha/beta*psitilde, mhat: m*epsilon/(beta*V2)}
    return {
        Vhat1: 2*energetic(q1), Vhat2: 2*energetic(q2),
        m: Eq(energetic(m) + entropic(mhat).coeff(mhat)**-1*m, 0, evaluate=False),
        zeta: entropic(zetahat).subs(fields), zetatilde: -beta/alpha*energetic(zeta),
        psi: entropic(psihat).subs(fields), psitilde: -beta/alpha*energetic(psi),
        qhat1: -2*energetic(V1), qhat2: -2*energetic(V2),
        q1: -2*entropic(Vhat1).subs(fields), q2: -2*entropic(Vhat2).subs(fields),
    }


def derived(sigma, target):
    """The stationarity conditions for given functions, as a System."""
    sigma, target = hx.parse(sigma), hx.parse(target)
    s, t = r*kappa + bias + sqrt(c)*z, gamma*kappa + sqrt(1 - gamma**2)*z
    inverse = 1/(L + c*Vhat1/(1 + c*beta*Vhat1*V2))
    u_now = 1/(1 + c*beta*Vhat1*V2)
    t0 = V2**2/(1 - beta*(c*Vhat1*u_now*V2)**2)
    conditions = stationarity()
    return System({
        Vhat1: conditions.pop(Vhat1), Vhat2: conditions.pop(Vhat2), V1: c*V2*u_now, V2: inverse, **conditions,
    }, where={
        mu_0: E(sigma.subs(z, s), z), mu_1: E(z*sigma.subs(z, s), z)/sqrt(c),
        mu_22: E(sigma.subs(z, s)**2, z) - mu_0**2 - c*mu_1**2,
        h: E(target.subs(z, t), z), h1: E(z*target.subs(z, t), z), h2: E(target.subs(z, t)**2, z) + Delta,
        V: mu_1**2*V1 + mu_22*V2, WEIGHT: 1/(1 + V), L: lamda + Vhat2, names[0]: t0, names[1]: c*u_now**2*t0,
                                             names[2]: c**2*u_now**4*t0 + beta*V1**2,
    }, observables={"test_error": E(error, kappa) - Delta, "train_error": E(error*Q**2, kappa)})


numbers = {"beta": 0.8, "lam": 0.1, "r": 1.1, "c": 1.2, "gamma": 0.9, "Delta": 0.1}
plain = {**numbers, "alpha": 1.7, "bias": 0.0, "epsilon": 0.0}
page.text(r"Stationarity, the fields in units of $\frac{\alpha}{\beta}$ as $\tilde\zeta$ and $\tilde\psi$, gives a system; for "
          "several pairs of functions its solutions are those of the package's:")
right = derived("tanh(z)", "sin(z)")
used = hx.theories.one_step("tanh", "sin").system
agreed = page.same("stationarity for tanh and sin", right, used,
          at=[plain, {**numbers, "alpha": 0.4, "bias": 0.3, "epsilon": 0.01}, {**plain, "beta": 2.0}])
page.same("stationarity for relu and sign", derived("relu(z)", "sign(z)"), hx.theories.one_step("relu", "sign").system,
          at=[plain, {**numbers, "alpha": 0.4, "bias": 0.3, "epsilon": 0.01}], shown=False)
inside = {x_: right.where[x_] for x_ in letters}
inside[mu_22] = inside[mu_22].xreplace(inside)
traces = {v2: root, v1: (c*u*v).xreplace({v: root})}
page.same("the printed free energy, with the traces written out, under hx.free_energy", hx.free_energy(
    phi.xreplace(traces).subs(L, lamda + Vhat2), {q1: Vhat1, q2: Vhat2, V1: qhat1, V2: qhat2, m: mhat, zeta: zetahat, psi: psihat},
    ).substitute(**{x_.name: Lambda(kappa, inside[x_]) for x_ in letters}), used,
          "The package's own stationarity of the printed free energy, for any functions, has for tanh and sin the same solutions.",
          at=[{**numbers, "alpha": 0.4, "bias": 0.3, "epsilon": 0.01}], shown=False)


def changed(**equations):
    """The derived system with some of its equations put differently."""
    by_name = {u.name: rhs for u, rhs in right.equations.items()} | equations
    return System({u: by_name[u.name] for u in right.equations}, where=right.where, observables=right.observables)


now = right.equations
page.misprint_in("the zero modes dropped", changed(V2=root - (1 - 1/beta)/L), right,
                 r"a sum over the eigenvalues that are not zero leaves the zero modes out, which shows for $\beta > 1$",
                 at=[{**plain, "beta": 2.0}], source="loureiro2024slides", place="Result 3.3",
                 change={V2: lambda right: right.subs(V2, root) - (1 - 1/beta)/L})
scaled = changed(Vhat1=(1 - gamma**2)*now[Vhat1], Vhat2=(1 - gamma**2)*now[Vhat2])
page.misprint_in(r"$\rho$ multiplies $\hat V_1$ and $\hat V_2$", scaled, right,
                 r"right only if $\theta_\perp$ is a unit vector and $\rho$ is put to one", at=[{**plain, "gamma": 0.5}],
                 source="loureiro2024slides", place="Result 3.3",
                 change={x: lambda right: right - gamma**2*right for x in (Vhat1, Vhat2)})
flipped = E((mu_1**2*(h2 - 2*B*h + B**2 - 2*mu_1*psi*h1 + mu_1**2*q1 + mu_22*q2 + 2*mu_1**2*psi**2)*Q**2), kappa)
page.variant(r"the sign of $\mu_1^2\psi^2$", changed(qhat1=alpha/beta*flipped), right,
             r"the field's variance is $\mu_1^2(q_1 - \psi^2) + \mu_\star^2q_2$", at=[plain])
page.therefore(used, words="The equations that the package solves, here for tanh and sin:", by=[agreed],
               package={'hx.theories.one_step("tanh", "sin").system': used})
page.not_shown("replica symmetry; that the traces solve the quadratic equation, for which see `marchenko_pastur.py`; and the "
               "equivalence of Result 3.2.")
