r"""Any convex loss on the features of one giant gradient step: stationarity of a free energy with a Moreau envelope."""

import numpy as np
from scipy import special
from sympy import (
    Derivative,
    Function,
    Max,
    Min,
    Piecewise,
    Rational,
    Subs,
    Symbol,
    cosh,
    erf,
    exp,
    lambdify,
    log,
    pi,
    sign,
    sin,
    sqrt,
    symbols,
)

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import Delta, V, alpha, beta, c, f, gamma, kappa, m, psitilde, z, z1, z2, z3, zeta, zetatilde
from hermitex.theories.losses.loss_equations import Structure, equations
from hermitex.theories.losses.loss_newton import members
from hermitex.theories.losses.pointwise import pointwise
from hermitex.theories.one_step import V1, V2, Vhat1, Vhat2, psi, q1, q2, qhat1, qhat2

mu_0, mu_1, mu_22, omega, s, t = symbols("mu_0 mu_1 mu_22 omega s t", real=True)
L, delta = symbols("L delta", positive=True)

page = Result(
    "A convex loss after one giant gradient step",
    "The readout that minimises the loss and a ridge penalty has order parameters whose conjugates are averages of the force "
    r"$s$ at the proximal point, of its square and of its slope: at fixed $\kappa$ and $z_1$, $#1$; the other equations are "
    "those of the square loss.",
    source="cui2024", place="Result 3.3, for a convex loss",
    assumptions=[r"the features are equivalent to Gaussian ones of the coefficients $\mu_0$, $\mu_1$, $\mu_2$ at fixed "
                 r"projection $\kappa$ on the spike (Result 3.2)",
                 r"the rows of $W$ are independent, of squared norm $c$; the target's direction has the part $\gamma$ along the "
                 "spike",
                 r"replica symmetry, which holds for convex problems"],
)
page.notation({"f": "an output, over which the proximal point minimises",
               "b": "the part of an output that is fixed",
               "W": "the rows, without the spike", "c": "their squared norm",
               (r"\hat V_1", r"\hat q_1"): "the conjugates of $V_1$ and $q_1$, and so on",
               "V_1": "the traces of the learning curve", (r"\tilde\zeta", r"\tilde\psi"): r"the conjugates of $\zeta$ and $\psi$",
               ("v_1", "v_2"): "the traces as functions of the conjugates",
               r"\Phi": "the distribution function of a standard normal", r"\mu_2": "the residual coefficient of a feature",
               omega: r"the output on a new sample, at fixed $\kappa$",
               "f^*": "the proximal point, the output on a training sample",
               r"M(\omega, V)": r"the Moreau envelope of the loss: the least of the loss and the squared distance from $\omega$ "
                                "over $2V$", s: r"the force, which is what $f^*$ lies above $\omega$, over $V$",
               z1: "the target's direction across the spike", gamma: "its overlap with the spike"})
B = mu_0*m + kappa*mu_1*zeta
mean_output = page.let(Symbol("B", real=True), B, shown=False)
shown_field = page.let(Symbol("omega_0", real=True), B + mu_1*psi*z1 + sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2)*z2, shown=False)
page.text("(i) Energy. On a new sample the output is $#1$ with $#2$; on a training sample it is the proximal point $f^*$, and "
          "the sample costs the envelope.", shown_field, mean_output)
page.step("independence", E(shown_field, z1, z2), mean_output, "Over both normals its mean is", points=2)
page.text(r"Because $f^*$ is a minimum, only what is explicit moves:")
ell, rest = Function("ell"), Function("f")
force_of, slope_of = hx.Derivative(rest), hx.Derivative(ell)
for x, explicit in ((omega, -(rest(omega) - omega)/V), (V, -(rest(V) - omega)**2/(2*V**2))):
    page.step("the chain rule", Derivative((rest(x) - omega)**2/(2*V) + ell(rest(x)), x),
              explicit + ((rest(x) - omega)/V + slope_of(rest(x)))*force_of(x))
page.text(r"The bracket vanishes at the minimum, and the proximal point is $\omega$ plus $V$ times the force $s$; so the "
          "derivatives are")
pulled = Symbol("s", real=True)
page.step("the force along omega", Subs(-(rest(omega) - omega)/V, rest(omega), omega + V*pulled), -pulled)
page.step("the force along V", Subs(-(rest(V) - omega)**2/(2*V**2), rest(V), omega + V*pulled), -pulled**2/2)
bent = Symbol("ell2", positive=True)   # the loss's curvature at f*
page.step("implicit differentiation", (1 - 1/(1 + V*bent))/V, bent/(1 + V*bent),
          r"Where the loss has the curvature $\ell_2$, the proximal point moves by the inverse of $1 + V\ell_2$, so that $s$ "
          "falls by")
page.text(r"The energy of a neuron is the mean envelope of its share of the samples. Through the width $\tau$ of a Gaussian "
          "field $M'$ is met as $M''$: by parts, for any function $s$,")
force, tau = Function("s"), Symbol("tau", positive=True)
b = Symbol("b", real=True)
spread = sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2)
by_parts = page.step("Stein", E(z2*force(b + spread*z2), z2), spread*E(hx.Derivative(force)(b + spread*z2), z2))
along = page.step("the chain rule", spread*Derivative(spread, q1), mu_1**2/2,
          r"and since the width moves by")
page.step("the chain rule", spread*Derivative(spread, psi), -mu_1**2*psi)
page.text(r"So $\hat V_i$, twice the derivative of the energy by $q_i$, is the mean fall of the force times the square of the "
          r"$i$-th coefficient; $\hat q_i$, by $V_i$, is that of the squared force; and by $m$, $\zeta$ and $\psi$ the means of "
          r"the force with its coefficient are zero, $\tilde\zeta$ and $\tilde\psi$. For the square loss the force is")
y = Symbol("y", real=True)
page.step("the square loss", ((omega + V*y)/(1 + V) - omega)/V, (y - omega)/(1 + V))

page.text("(ii) Entropy. The penalty is the same, so the entropy is that of the learning curve: $v_2$ is the root of Marchenko "
          "and Pastur, $v_1$ the trace beside it, and $q_1$, $q_2$ are their derivatives.")
half = L + c*Vhat1 - c*beta*Vhat1
root = 2/(half + sqrt(half**2 + 4*L*c*beta*Vhat1))
trace = c*root/(1 + c*beta*Vhat1*root)
entropy = qhat1*trace + qhat2*root + alpha**2/beta*(c*zetatilde**2*root + psitilde**2*trace)
norm = Symbol("norm", nonnegative=True)   # of m's conjugate, eps m^2/(beta V_2^2)
entropy += norm*root
entropic = {V2: root, V1: trace, zeta: alpha*c*root*zetatilde, psi: alpha*trace*psitilde,
            q1: -entropy.diff(Vhat1), q2: -entropy.diff(L)}


# -- the two kinds of labels -------------------------------------------------------------------------------------------
chained = {V: mu_1**2*V1 + mu_22*V2}


def conditions(derivative):
    """What is averaged over (kappa, z1), and the unknown that it gives with its factor; from the derivative of an envelope."""
    def mean(x, factor):
        return factor*derivative(x)

    ratio = alpha/beta
    return {Vhat1: mean(q1, 2*ratio), Vhat2: mean(q2, 2*ratio), qhat1: mean(V1, -2*ratio), qhat2: mean(V2, -2*ratio),
            m: mean(m, -1), zetatilde: mean(zeta, -1), psitilde: mean(psi, -1)}


S, a, s_0, P, dP_a, dP_0 = symbols("S a s_0 P dP_a dP_0", real=True)
forces, costs, relaxed = (symbols(f"{n}_plus {n}_minus", real=True) for n in ("s", "M", "f"))


def labels(aligned=False):
    """Labels sign(<theta, x> + noise) under the logistic loss: the output is B + S z1, and P = P(y = 1 | kappa, z1)."""
    width = sqrt(mu_1**2*q1 + mu_22*q2)
    tilt = mu_1*psi/width
    mean, rest = gamma*kappa + sqrt(1 - gamma**2)*tilt*z1, sqrt((1 - gamma**2)*(1 - tilt**2) + Delta)
    likely = (1 + sign(kappa))/2 if aligned else (1 + erf(a/(sqrt(2)*s_0)))/2

    def derivative(x):
        pull, size = (B + width*z1).diff(x), chained[V].diff(x)
        cost = sum(p*(-s_*pull - s_**2/2*size) for p, s_ in zip((P, 1 - P), forces, strict=True))
        return cost + (0 if aligned else (costs[0] - costs[1])*(dP_a*mean.diff(x) + dP_0*rest.diff(x)))

    loss = log(1 + exp(-f))
    names = {**chained, S: width, omega: B + S*z1}
    names |= {} if aligned else {a: mean, s_0: rest}
    names |= {P: likely, relaxed[0]: PROXIMAL(omega, V), relaxed[1]: -PROXIMAL(-omega, V)}   # labels -1 by reflection
    for x, s_, cost, y_ in zip(relaxed, forces, costs, (1, -1), strict=True):
        names |= {s_: (x - omega)/V, cost: (x - omega)**2/(2*V) + loss.subs(f, y_*x)}
    names |= {} if aligned else {dP_a: likely.diff(a), dP_0: likely.diff(s_0)}
    seen = {"train_error": P*loss.subs(f, relaxed[0]) + (1 - P)*loss.subs(f, -relaxed[1]),
            "test_loss": P*loss.subs(f, omega) + (1 - P)*loss.subs(f, -omega)}
    return conditions(derivative), names, seen


def smooth_part(x):
    """E (x + tau z)_+^2."""
    return (x**2 + tau**2)*(1 + erf(x/(sqrt(2)*tau)))/2 + x*tau*exp(-x**2/(2*tau**2))/sqrt(2*pi)


def huber(width, aligned=False):
    """Labels sin(<theta, x>) + noise under the Huber loss: y - omega has the mean `gap` and the variance tau^2 with the noise."""
    gap = Symbol("gap", real=True)
    level = huber_mean(gap, width)
    shift = sin(gamma*kappa + (0 if aligned else sqrt(1 - gamma**2)*z1)) - B - (0 if aligned else mu_1*psi*z1)
    narrow = sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2 + Delta)

    def derivative(x):
        return level.diff(gap)*shift.diff(x) + level.diff(tau)*narrow.diff(x) + level.diff(V)*chained[V].diff(x)

    seen = {"test_error": gap**2 + tau**2 - Delta, "test_error_noisy": gap**2 + tau**2,
            "train_error": level + V*level.diff(V), "test_loss": level.subs(V, 0)}
    return conditions(derivative), {**chained, gap: shift, tau: narrow}, seen


def huber_mean(gap, width):
    """The mean envelope over y - omega = gap + tau z."""
    edge = width*(1 + V)
    return (gap**2 + tau**2 - smooth_part(gap - edge) - smooth_part(-gap - edge))/(2*(1 + V))


page.text(r"(iii) Two losses in numbers. The envelope of the Huber loss of width $\delta$ is a parabola less what lies beyond "
          r"the edge $\delta(1 + V)$; its mean over $t$, which is $y - \omega$, needs a square cut off at zero:")
over = Piecewise((t, t > 0), (0, True))
edge = delta*(1 + V)
beyond = over.subs(t, t - edge)**2 + over.subs(t, -t - edge)**2
page.step("the envelope", (t**2 - (t - edge)**2)/(2*(1 + V)), delta*t - delta**2*(1 + V)/2)
page.step("Gaussian integration", E(over.subs(t, b + tau*z)**2, z), smooth_part(b), points=2, digits=15)
page.text("For labels that are the sign of the target's field with noise and the logistic loss, the output is $B$ and a "
          r"multiple of $z_1$. Given it, the field is normal, and the label is 1 with the probability $\Phi$ of its mean over "
          "its spread. The energy is the mean of the two labels' envelopes, and its derivatives run through the probability as "
          "well. At the package's solutions all of these conditions hold:")

numbers = {"beta": 0.8, "lam": 0.1, "r": 1.1, "c": 1.2, "gamma": 0.9, "Delta": 0.1, "alpha": 1.5, "bias": 0.2, "dimension": 100.0}
UNKNOWNS = (Vhat1, Vhat2, qhat1, qhat2, zetatilde, psitilde, m, V2, V1, zeta, psi, q1, q2)
PROXIMAL = Function("proximal")


def proximal(w, v):
    """argmin (f - w)^2/(2 v) + log(1 + exp(-f)): Newton from the left, where the slope is concave, and from the right."""
    x = w + v/2
    for _ in range(60):
        push = special.expit(-x)
        x = x - (x - w - v*push)/(1 + v*push*(1 - push))
    return x


def told(derived, theory, at):
    """The digits to which the conditions, as sums over (kappa, z1) at a solution of the package, return that solution."""
    equations, names, observables = derived
    found = theory.solve(**at)
    k, wk = Result.normal_grid()
    u = at["r"]*k + at["bias"] + np.sqrt(at["c"])*k[:, None]   # (z, kappa)
    feature = np.tanh(u)
    first, slope = wk @ feature, (wk*k) @ feature/np.sqrt(at["c"])
    known = {kappa: k[:, None], z1: k[None, :], mu_0: first[:, None], mu_1: slope[:, None],
             mu_22: (wk @ (feature - first - np.sqrt(at["c"])*slope*k[:, None])**2)[:, None],
             alpha: at["alpha"], beta: at["beta"], gamma: at["gamma"], Delta: at["Delta"]}
    known |= {x: float(found[x.name]) for x in UNKNOWNS}

    def value(e):
        args = sorted(e.free_symbols, key=str)
        made = lambdify(args, e, [{"proximal": proximal, "erf": special.erf}, "numpy"])
        return made(*(known[x] for x in args))

    for name, e in names.items():
        known[name] = value(e)

    def mean(e):
        return wk @ np.broadcast_to(value(e), (k.size, k.size)) @ wk

    cost = float(found["m"])/(at["alpha"]*at["dimension"]*float(found["V2"]))
    pairs = {x.name: (mean(e), cost if x == m else float(found[x.name])) for x, e in equations.items()
             if x.name in found and not (x == psitilde and found["psitilde"] == 0)}
    pairs |= {o: (mean(e), float(found[o])) for o, e in observables.items()}
    ends = {x: float(found[x.name]) for x in (Vhat1, Vhat2, qhat1, qhat2, zetatilde, psitilde)}
    ends |= {alpha: at["alpha"], beta: at["beta"], c: at["c"], L: at["lam"] + float(found["Vhat2"]),
             norm: float(found["m"])**2/(at["dimension"]*at["beta"]*float(found["V2"])**2)}
    pairs |= {x.name: (float(e.subs(ends)), float(found[x.name])) for x, e in entropic.items()}
    if "test_error" not in observables:   # labels: P(y != sign omega), each half of the z1 axis on its own
        pairs["test_error"] = (misclassified(known, wk, at), float(found["test_error"]))
    return Result.numbers(pairs, 1e-8)


def misclassified(known, wk, at):
    """P(y != sign omega) = E[P 1(omega < 0) + (1 - P) 1(omega > 0)]."""
    x, w = np.polynomial.legendre.leggauss(120)
    k = known[kappa]
    turn = np.clip(-value_of(B, known)/known[S], -9, 9)
    total = 0.0
    for lo, hi, above in ((-9.0, turn, False), (turn, 9.0, True)):
        z_ = lo + (hi - lo)*(x[None, :] + 1)/2
        tilt = known[mu_1]*known[psi]/known[S]
        away = np.sqrt((1 - at["gamma"]**2)*(1 - tilt**2) + at["Delta"])
        with np.errstate(divide="ignore", invalid="ignore"):
            p = special.ndtr((at["gamma"]*k + np.sqrt(1 - at["gamma"]**2)*tilt*z_)/away)
        wrong = 1 - p if above else p
        total += wk @ np.sum((hi - lo)/2*w*wrong*np.exp(-z_**2/2)/np.sqrt(2*np.pi), axis=1)
    return float(total)


def value_of(e, known):
    """An expression in arrays."""
    args = sorted(e.free_symbols, key=str)
    return lambdify(args, e, "numpy")(*(known[x] for x in args))


def theory(sigma, g, loss):
    """The package's theory."""
    return hx.theories.one_step(sigma, g, loss=loss)


def values(loss, slope, curvature):
    """Real labels under any smooth loss: the conditions as sums over (kappa, z1, z2, z3), nothing joined or done by parts."""
    label, x_ = symbols("y x", real=True)
    width = sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2)
    field, clean = B + mu_1*psi*z1 + width*z2, sin(gamma*kappa + sqrt(1 - gamma**2)*z1)
    found = hx.theories.one_step("tanh", "sin", loss=str(loss)).solve(**numbers)
    node, weight = np.polynomial.hermite_e.hermegauss(56)
    small, small_weight = np.polynomial.hermite_e.hermegauss(22)
    weight, small_weight = weight/weight.sum(), small_weight/small_weight.sum()
    k, wk = Result.normal_grid()
    rows = np.sqrt(numbers["c"])
    feature = np.tanh(numbers["r"]*node + numbers["bias"] + rows*k[:, None])   # (z, kappa)
    first, tilt = wk @ feature, (wk*k) @ feature/rows
    column = (slice(None), None, None, None)
    known = {kappa: node[column], z1: small[:, None, None], z2: small[:, None], z3: small, mu_0: first[column], mu_1: tilt[column],
             mu_22: (wk @ (feature - first - rows*tilt*k[:, None])**2)[column],
             **{q_: numbers[n] for q_, n in ((alpha, "alpha"), (beta, "beta"), (gamma, "gamma"), (Delta, "Delta"))}}
    known |= {u: float(found[u.name]) for u in UNKNOWNS}

    def mean(e):
        value = np.broadcast_to(value_of(e, known), (node.size, *(small.size,)*3))
        return np.einsum("abcd,a,b,c,d->", value, weight, small_weight, small_weight, small_weight)

    for name, e in ((V, chained[V]), (omega, field), (label, clean + sqrt(Delta)*z3)):
        known[name] = value_of(e, known)
    at = known[omega]
    for _ in range(40):
        at = at - (at - known[omega] + known[V]*slope(at, known[label]))/(1 + known[V]*curvature(at, known[label]))
    known |= {x_: at, s: (at - known[omega])/known[V]}
    equations_ = conditions(lambda v: -s*field.diff(v) - s**2/2*chained[V].diff(v))
    cost = float(found["m"])/(numbers["alpha"]*numbers["dimension"]*float(found["V2"]))
    pairs = {u.name: (mean(e), cost if u == m else float(found[u.name])) for u, e in equations_.items()}
    pairs |= {"train_error": (mean(loss.subs({f: x_, hx.symbols.y: label})), float(found["train_error"])),
              "test_loss": (mean(loss.subs({f: omega, hx.symbols.y: label})), float(found["test_loss"])),
              "test_error": (mean((clean - field)**2), float(found["test_error"])),
              "test_error_noisy": (mean((label - field)**2), float(found["test_error_noisy"]))}
    return Result.numbers(pairs)


def algebra():
    """The members that the package computes from the averages, against the derivatives of the entropy."""
    x = np.array([0.3, 0.2, 0.15, 0.1, 0.25, -0.2, 0.4])
    at = {"alpha": 1.5, "beta": 0.8, "lamda": 0.1, "c": 1.2, "epsilon": 0.01, "gamma": 0.9}
    made = members(x, at)
    ends = dict(zip((Vhat1, Vhat2, qhat1, qhat2, zetatilde, psitilde), x, strict=False))
    ends |= {alpha: 1.5, beta: 0.8, c: 1.2, L: 0.3, norm: 0.01*0.4**2/(0.8*made["V2"]**2)}
    pairs = {u.name: (float(e.subs(ends)), made[u.name]) for u, e in entropic.items()}
    return Result.numbers({**pairs, "T1": (-float(root.diff(Vhat1).subs(ends)), made["T1"]),
                           "rho": (1 - 0.9**2, made["rho"])}, 1e-8)


y_ = hx.symbols.y
page.test("the members of the averages", algebra)
page.test("a count's loss", lambda: values(exp(f) - y_*f, lambda x, v: np.exp(x) - v, lambda x, v: np.exp(x)))
page.test("a smooth loss of the residual", lambda: values(log(cosh(y_ - f)), lambda x, v: np.tanh(x - v),
                                                      lambda x, v: 1/np.cosh(x - v)**2))
page.test("logistic loss, tanh and sign", lambda: told(labels(), theory("tanh", "sign", "logistic"), numbers))
page.test("labels without noise, odd functions",
          lambda: told(labels(), theory("tanh", "sign", "logistic"), {**numbers, "Delta": 0.0, "bias": 0.0, "alpha": 0.7}))
page.test("the spike along the target",
          lambda: told(labels(True), theory("tanh", "sign", "logistic"), {**numbers, "Delta": 0.0, "gamma": 1.0}))
page.test("Huber loss, tanh and sin", lambda: told(huber(0.5), theory("tanh", "sin", "huber:1/2"), numbers))
page.test("Huber loss, the spike along the target",
          lambda: told(huber(0.5, True), theory("tanh", "sin", "huber:1/2"), {**numbers, "gamma": 1.0}))


def shown(g, loss, kind, at, aligned=0, mirror=False):
    """The System that the package shows, solved as every other, against the package's own solution of it."""
    from hermitex.symbolic.activations import activation

    structure = Structure(activation("tanh"), activation(g), pointwise(loss), kind, aligned=aligned, mirror=mirror)
    found, system = theory("tanh", g, loss).solve(**at), equations(structure)
    given = {**{k: v for k, v in at.items() if k != "dimension"}, "epsilon": 1/at["dimension"]}
    now = system.solve(given, start={x.name: float(found[x.name]) for x in system.unknowns}, tolerance=1e-9)
    names = [x.name for x in system.unknowns if found["psi"] or x not in (psi, psitilde)]
    names += [o.name for o in system.observables if o.name in found]
    return Result.numbers({x: (float(now[x]), float(found[x])) for x in names}, 1e-8)


def ridge(kind, aligned=0):
    """The package's equations of one kind, for (y - f)^2/2, at its solution for ridge regression."""
    from hermitex.symbolic.activations import activation

    structure = Structure(activation("tanh"), activation("sin"), pointwise("(y - f)**2/2"), kind, aligned=aligned)
    system = equations(structure)
    at = {**numbers, "gamma": 1.0 if aligned else 0.9, "Delta": 0.1}
    found = hx.theories.one_step("tanh", "sin").solve(**at)
    given = {**{k: v for k, v in at.items() if k != "dimension"}, "epsilon": 1/at["dimension"]}
    now = system.solve(given, start={x.name: float(found[x.name]) for x in system.unknowns}, tolerance=1e-9)
    pairs = {x.name: (float(now[x.name]), float(found[x.name])) for x in system.unknowns
             if found["psi"] or x not in (psi, psitilde)}
    error = float(found["test_error"])
    return Result.numbers({**pairs, "test_error": (float(now["test_error"]), error),
                           "test_error_noisy": (float(now["test_error_noisy"]), error + at["Delta"])}, 1e-8)


def wide():
    """A Huber loss that is never left: its solution and its errors are those of ridge regression, here with more rows than d."""
    at = {**numbers, "beta": 3.0}
    found, square = (hx.theories.one_step("tanh", "sin", loss=k).solve(**at) for k in ("huber:60", "square"))
    names = ("m", "zeta", "psi", "q1", "q2", "V1", "V2", "test_error")
    return Result.numbers({n: (float(found[n]), float(square[n])) for n in names}, 1e-8)


page.test("a wide Huber loss", wide, "A Huber loss whose width no residual reaches is the square loss, solved as any other loss:")
page.test("a loss of the residual, at ridge", lambda: ridge("residual"),
          "The square loss is ridge regression; so the package's equations for a loss of the residual and for any other loss "
          "must hold at the solutions of the learning curve:")
page.test("any other loss, the spike along the target", lambda: ridge("values", 1))
page.test("the System for labels", lambda: shown("sign", "logistic", "labels", numbers),
          r"The System below, solved like any other, has the same solutions:")
page.test("the System for labels, odd functions", lambda: shown("sign", "logistic", "labels", {**numbers, "bias": 0.0},
                                                                mirror=True))
page.test("the System for labels, the spike along the target",
          lambda: shown("sign", "logistic", "labels", {**numbers, "Delta": 0.0, "gamma": 1.0}, 1))
page.test("the System for a loss of the residual", lambda: shown("sin", "huber:1/2", "residual", numbers))
page.variant("the width forgotten", bent/(1 + V*bent), bent, "the fall of the force is the curvature of the envelope, not of "
                                                             "the loss")

def solved(where):
    """-mu_1^2 E s' of Huber's loss by the slope in the package's System, at numbers of its letters."""
    at = {q1: 0.9, q2: 0.4, psi: 0.3, mu_1: 0.7, mu_22: 0.2, b: 0.3}
    width, relaxed_ = spread.subs(at), 0.6
    letters = {"t_0": -at[b], "V": relaxed_, "tau": width}
    mean = next(v for k, v in where.items() if k.name == "p_slope")
    mean = mean.subs({x: letters[x.name] for x in mean.free_symbols})
    return {**at, force: lambda x: -Max(-Rational(1, 2), Min(Rational(1, 2), x/(1 + relaxed_)))}, [at[mu_1]**2*mean]


page.therefore(-2*Derivative(spread, q1)*E(z2*force(b + spread*z2), z2), -mu_1**2*E(hx.Derivative(force)(b + spread*z2), z2),
               words=r"What the energy gives for $\hat V_1$, at fixed $\kappa$ and $z_1$: twice its derivative by $q_1$,",
               by=[by_parts, along],
               package={'hx.theories.one_step("tanh", "sin", loss="huber:1/2").system.where': solved})
page.not_shown("that the replica-symmetric free energy is that of the sample; for convex losses it is quoted, not derived.")
