r"""Learning on random features: stationarity of a free energy, down to the package's System."""

from sympy import Add, Function, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, Moreau, Result, System
from hermitex.symbols import Delta, alpha, f, gamma, lamda, z, z1
from hermitex.theories.losses.pointwise import pointwise

Vs, Vw, qs, qw, Vhats, Vhatw, qhats, qhatw = symbols("Vs Vw qs qw Vhat_s Vhat_w qhat_s qhat_w", positive=True)
ms, mhats, mu_1, mu_star, c_1, g_2, omega, y, V = symbols("ms mhat_s mu_1 mu_star c_1 g_2 omega y V", real=True)
L, D, h = symbols("L D h", positive=True)

page = Result(
    "Learning on random features",
    r"The readout that minimises a loss and a ridge penalty on samples of random features, $\alpha$ for each feature, whose "
    r"inputs have $\gamma$ dimensions for each feature, has the order parameters of the equations below; under the square loss "
    r"its test error is $g_2 - 2c_1\mu_1m_s + \mu_1^2q_s + \mu_\star^2q_w$.",
    source="gerace2020",
    assumptions=[r"the features are equivalent to Gaussian ones, $\mu_1$ times the field of a row of $W_0$ and $\mu_\star$ times "
                 r"noise (with a vanishing $\mu_0$, or the labels centred)",
                 r"$W_0$ has independent standard normal entries; a label is $g(\nu)$ with noise of variance $\Delta$",
                 r"replica symmetry, which holds for convex problems"],
)
page.notation({lamda: "the ridge",
               "W_0": "the rows of the first layer", "w": "the readout", "A": "the matrix of its quadratic form",
               "g": "the target's link",
               qs: "the mean square of the readout's image in the inputs", qw: "that of the readout",
               ms: "the overlap of the image with the target's direction", omega: "the output on a new sample",
               r"\nu": "the target's field",
               h: r"the trace, for one input, of the inverse of $L$ and $\hat V_s$ times the covariance of the rows",
               (Vs, Vw): "the traces of the inverse of $A$, for one input between the rows and for one neuron, where $A$ is $L$ "
                         r"and $\hat V_s$ times the rows' inner products"})
Q, M, Vall = mu_1**2*qs + mu_star**2*qw, mu_1*ms, mu_1**2*Vs + mu_star**2*Vw
page.text(r"On a new sample the output has the variance $#1$ and the covariance $#2$ with $\nu$, and its susceptibility is $#3$.",
          (symbols("Q"), Q), (symbols("M"), M), (V, Vall))

page.text("(i) Energy. The square loss relaxed in its field is the Moreau envelope; its mean needs the target's slope $c_1$ and "
          "second moment $g_2$, for signs $#1$ and $#2$:", (c_1, E(z*hx.sign(z), z)), (g_2, E(hx.sign(z)**2, z)))
relaxed = (omega + V*y)/(1 + V)
page.step("the envelope", ((f - omega)**2/(2*V) + (y - f)**2/2).subs(f, relaxed), (y - omega)**2/(2*(1 + V)))
error = g_2 + Delta - 2*M*c_1 + Q

page.text("(ii) Entropy. The conjugate fields act on $w$ through $A$, in which $#1$. With $h$, the root of the equation of "
          "Marchenko and Pastur,", (L, lamda + Vhatw))
b = L + (1 - gamma)*Vhats
root = 2/(b + sqrt(b**2 + 4*gamma*L*Vhats))
width = sqrt(b**2 + 4*gamma*L*Vhats)
page.name(D, width, "whose positive root is, in two steps,")
page.name(h, root)
page.step("Marchenko-Pastur", root, 1/(L + Vhats/(1 + gamma*Vhats*root)))
u = 1/(1 + gamma*Vhats*h)
v_s, v_w = root/(1 + gamma*Vhats*root), (1 - gamma)/L + gamma*root
page.text(r"the trace $V_s$ is $h$ over $1 + \gamma\hat V_s h$ and $V_w$ counts besides, if there are more neurons than inputs, "
          "an eigenvalue $1/L$ for each more:")
page.step("the trace of the identity", L*root + Vhats*v_s, 1)
page.step("the other trace", L*v_w + gamma*Vhats*v_s, 1)
page.step("a root without cancellation", v_w, 2/(L + (gamma - 1)*Vhats + width))
page.text("Their derivatives, all of which hold the trace of the inverse's square, the first:")
slope = h*(1 + gamma*Vhats*h)/D
written = {h: root, D: width}
first, second = slope*u**2, slope*u**2*(u + gamma*L*h)
third = Vw*(1 + Vhats*Vw)/D
page.step("differentiation", -Derivative(root, L), slope)
page.step("differentiation", -Derivative(v_s, L), first)
page.step("differentiation", -Derivative(v_w, Vhats), gamma*first)
page.step("differentiation", -Derivative(v_s, Vhats), second)
page.step("differentiation", -Derivative(v_w, L), third.subs(Vw, v_w))

vs, vw = Function("v_s")(L, Vhats), Function("v_w")(L, Vhats)
slopes = {vs.diff(L): -first, vs.diff(Vhats): -second, vw.diff(L): -third, vw.diff(Vhats): -gamma*first}


def free(energy):
    """The free energy of a neuron; energy is the mean envelope as a function of the order parameters."""
    coupling = (qw*(L - lamda) - Vw*qhatw)/2 + gamma*(qs*Vhats - Vs*qhats)/2 - gamma*ms*mhats
    return coupling + (qhatw*vw + gamma*(qhats + mhats**2)*vs)/2 - alpha*energy


square = error/(1 + Vall)/2
page.text("(iii) The free energy of a neuron is the coupling of the order parameters to their conjugates, the entropy, with the "
          r"traces as functions $v_s$, $v_w$ of the conjugates, and the energy of $\alpha$ samples:")
phi = free(square)
page.name(symbols("Phi"), phi)
page.text("It is stationary where each of its derivatives vanishes, which determines one unknown:")
hats = qhats + mhats**2
for letter, factor, x, value in (
        ("q_w", 2, qw, L - lamda - alpha*mu_star**2/(1 + Vall)), ("q_s", 2/gamma, qs, Vhats - alpha*mu_1**2/gamma/(1 + Vall)),
        ("m_s", -1/gamma, ms, mhats - alpha*mu_1*c_1/gamma/(1 + Vall)),
        ("V_w", -2, Vw, qhatw - alpha*mu_star**2*error/(1 + Vall)**2),
        ("V_s", -2/gamma, Vs, qhats - alpha*mu_1**2/gamma*error/(1 + Vall)**2),
        (r"\hat q_w", 2, qhatw, vw - Vw), (r"\hat q_s", 2/gamma, qhats, vs - Vs), (r"\hat m_s", 1/gamma, mhats, mhats*vs - ms),
        ("L", 2, L, qw + qhatw*vw.diff(L) + gamma*hats*vs.diff(L)),
        (r"\hat V_s", 2, Vhats, gamma*qs + qhatw*vw.diff(Vhats) + gamma*hats*vs.diff(Vhats))):
    page.step(f"stationarity in ${letter}$", factor*Derivative(phi, x), value)
page.text("The derivatives of the traces are those of (ii).")
BELONGS = {qw: L, qs: Vhats, ms: mhats, Vw: qhatw, Vs: qhats, qhatw: Vw, qhats: Vs, mhats: ms, L: qw, Vhats: qs}


def conditions(energy):
    """Stationarity, each condition solved for its unknown; the traces and their derivatives under their names."""
    solved = {}
    for x, unknown in BELONGS.items():
        gap = free(energy).diff(x).subs(slopes)
        # in the conditions of the traces they stand for themselves
        gap = gap.subs({vs: h*u, vw: 1/(L + gamma*Vhats/(1 + Vhats*Vw))} if x in (qhatw, qhats) else {vs: Vs, vw: Vw})
        slope_ = gap.expand().coeff(unknown)
        value = sum(-term/slope_ for term in Add.make_args(gap.expand(deep=False) - slope_*unknown))
        solved[Vhatw if unknown == L else unknown] = value - lamda if unknown == L else value
    return solved


def derived(sigma, target, energy):
    """The stationarity conditions for given functions, as a System."""
    sigma, target = hx.parse(sigma), hx.parse(target)
    mean = E(sigma, z)
    names = {mu_1: E(z*sigma, z), mu_star: sqrt(E(sigma**2, z) - mean**2 - E(z*sigma, z)**2), c_1: E(z*target, z),
             g_2: E(target**2, z), L: lamda + Vhatw, D: width, h: root}
    return System(conditions(energy), where=names, observables={"test_error": error - Delta, "Q": Q, "M": M, "V": Vall},
                  parameters=[alpha, gamma, lamda, Delta])


at = [{"alpha": 1.5, "gamma": 0.5, "lam": 0.01, "Delta": 0.1}, {"alpha": 0.6, "gamma": 1.4, "lam": 0.1, "Delta": 0.0},
      {"alpha": 3.0, "gamma": 0.4, "lam": 0.3, "Delta": 0.2}]
used = hx.theories.random_features("erf", "sign").system
right = derived("erf(z)", "sign(z)", square)
agreed = page.same("stationarity for erf and sign", right, used,
          "For several pairs of functions its solutions are those of the package's:", at=at)
page.same("stationarity for tanh and sin", derived("tanh(2*z)", "sin(z)", square),
          hx.theories.random_features("tanh(2*z)", "sin").system,
          at=at, shown=False)
traces = {vs: v_s, vw: 2/(L + (gamma - 1)*Vhats + width)}
page.same("the printed free energy, with the traces written out, under hx.free_energy", hx.free_energy(
    phi.xreplace(traces).subs(L, lamda + Vhatw), {qw: Vhatw, Vw: qhatw, qs: Vhats, Vs: qhats, ms: mhats},
    where={x: right.where[x] for x in (mu_1, mu_star, c_1, g_2)}, parameters=[alpha, gamma, lamda, Delta]), used,
          "The package's own stationarity of the printed free energy has the same solutions.", at=at, shown=False)


def printed(*, where=(), **changed):
    """The derived system with some equations, or names, as they are printed."""
    return System({x: changed.get(x.name, e) for x, e in right.equations.items()}, where={**right.where, **dict(where)},
                  observables=right.observables, parameters=right.parameters)


source = {"at": at[:1], "source": "loureiro2024slides", "place": "the fixed point of random features"}
by_loss = 1/((1 + Vall)*Vall)   # the slope of the proximal point is 1/(1 + V)
page.misprint_in("the slope of the proximal point for one less it",
                 printed(Vhat_w=alpha*mu_star**2*by_loss, Vhat_s=alpha/gamma*mu_1**2*by_loss), right, **source,
                 change={Vhatw: lambda right: right/Vall, Vhats: lambda right: right/Vall})
page.misprint_in(r"$\hat V_s$ for $\hat V_s^2$", printed(qs=Vhats*hats*second + qhatw*first), right, **source,
                 change={qs: lambda right: right + (Vhats - 1)*hats*second})
page.misprint_in(r"a sign and $\gamma$", printed(qw=qhatw*third - hats*first), right, **source,
                 change={qw: lambda right: right - (1 + gamma)*hats*first})
page.misprint_in(r"$\mu_\star$ without its root", printed(where=[(mu_star, right.where[mu_star]**2)]), right,
                 **source, change={mu_star: lambda right: right**2})

whole = {h: gamma*h + (1 - gamma)/L, slope: gamma*slope + (1 - gamma)/L**2}   # the traces over neurons for those over inputs
shrunk, left = (1 - L*whole[h])/Vhats, (whole[h] - L*whole[slope])/Vhats
page.misprint_in("the spectrum of the neurons for that of the inputs",
                 printed(Vs=shrunk, Vw=(1 - gamma + gamma*L*whole[h])/L, ms=mhats*shrunk,
                         qs=hats*(1 - 2*L*whole[h] + L**2*whole[slope])/Vhats**2 + qhatw*left,
                         qw=qhatw*(1 - gamma + gamma*L**2*whole[slope])/L**2 + gamma*hats*left), right,
                 "it has other zero modes", **source, change={
                     Vs: lambda right: gamma*right, ms: lambda right: gamma*right.subs(Vs, v_s), qs: lambda right: gamma*right,
                     Vw: lambda right: right.subs(Vw, v_w) + gamma*(1 - gamma)*(1/L - h),
                     qw: lambda right: right.subs(Vw, v_w) + gamma*(1 - gamma)*(qhatw*(1/L**2 - slope) - hats*first)})

page.text("(iv) Another loss changes the energy alone. A loss of the residual under a linear target sees its field through $y - "
          r"\omega \sim \mathcal{N}(0, 1 + \Delta + Q - 2M)$:")
huber = E(Moreau(pointwise("huber:1/2").of_residual, f, sqrt(1 + Delta + Q - 2*M)*z1, Vall), z1)
page.same("stationarity for Huber's loss", derived("erf(z)", "z", huber),
          hx.theories.random_features("erf", "z", loss="huber:1/2").system,
          at=at[:1], shown=False)
page.therefore(used, words="The equations of the package, for erf and sign:", by=[agreed],
               package={'hx.theories.random_features("erf", "sign").system': used})
page.not_shown("replica symmetry; the equation of Marchenko and Pastur, and the intercept of features with a mean, which have "
               "pages of their own.")
