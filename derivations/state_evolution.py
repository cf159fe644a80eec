r"""State evolution of Bayes-AMP: the overlap from the channel of one label, for signs, parities and squares."""

import numpy as np
from scipy import special
from sympy import Derivative, Limit, Subs, Symbol, erf, exp, pi, sqrt, symbols, tanh

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import alpha, z

omega = Symbol("omega", real=True)
V, q, P, b, hat = symbols("V q P b qhat", positive=True)
x = Symbol("x", real=True)

page = Result(
    "State evolution of Bayes-AMP",
    r"The overlap of the Bayes estimate with the target's direction is a fixed point of $#1$, where $\hat q$ is $\alpha F$ at "
    r"$q$ and $F(q)$ is the mean, over fields $\omega \sim \mathcal{N}(0, q)$ of $z \sim \mathcal{N}(\omega, 1 - q)$, of the "
    r"squared slope in $\omega$ of the label's law over that law, summed over the labels. For several directions $q$ and $F$ are "
    "matrices.",
    source="troiani2024", place="Eqs. of state evolution",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, a Gaussian prior, and the Bayes-optimal denoisers",
                 r"$\alpha$ samples for each dimension, $d \to \infty$"],
)
page.notation({"d": "the dimension",
               q: "the overlap", hat: "its conjugate, the precision", omega: "the field of a sample",
               V: "the variance given the field, $1 - q$", P: "the probability of a label", b: r"its slope in $\omega$",
               alpha: "samples for one dimension"})
page.text(r"(i) The prior. A Gaussian coordinate observed with precision $\hat q$ is known up to the variance $1/(1 + \hat q)$, "
          r"so that $q/((1 - q)F(q))$ is the $\alpha$ of every fixed point:")
page.step("a Gaussian prior", 1 - 1/(1 + hat), hat/(1 + hat))
F = Symbol("F", positive=True)
page.step("solving for $\\alpha$", Subs(alpha*F/(1 + alpha*F), alpha, q/((1 - q)*F)), q)
page.text("(ii) The sign. The label 1 has the probability that the normal $z$ is positive, whose derivative is a normal "
          "density; the other label has the rest:")
normal = (1 + erf(omega/sqrt(2*V)))/2
page.step("differentiation", Derivative(normal, omega), exp(-omega**2/(2*V))/sqrt(2*pi*V))
page.step("two labels", b**2/P + b**2/(1 - P), b**2/(P*(1 - P)), "and with $b$ for the slope of $P$ the two add to")
page.text(r"(iii) The parity of two. With $a_i$ for the mean sign of each field the label 1 has the probability $\frac12(1 + "
          r"a_1a_2)$, whose derivative is $a_2$ times the slope $\phi$ of a field's own, and the other label the rest; in "
          "$F_{11}$ stands the mean of")
slope, a1, a2 = symbols("phi a1 a2", positive=True)
page.step("two labels", (slope*a2)**2/((1 + a1*a2)/2) + (slope*a2)**2/((1 - a1*a2)/2), 4*slope**2*a2**2/(1 - (a1*a2)**2))
page.text("Near zero overlap, with the fields in units of the root of $q$ and the variance $1 - q$, the three factors of this "
          "number, divided by $q$, go to")
page.step("the limit of the slope", Limit((exp(-q*x**2/(2*(1 - q)))/sqrt(2*pi*(1 - q)))**2, q, 0), 1/(2*pi))
page.step("the limit of the mean label", Limit(erf(x*sqrt(q/(2*(1 - q))))**2/q, q, 0), 2/pi*x**2)
page.step("the limit of the variance", Limit(1 - erf(x*sqrt(q/(2*(1 - q))))**4, q, 0), 1)
page.step("the weak-recovery threshold", 1/E(4/(2*pi)*(2/pi*z**2), z), pi**2/4,
          "so that the overlap grows from nothing beyond the limit of $q$ over $F_{11}$,")
page.text(r"(iv) The square. A squared label leaves the two values $\pm s$ of $z$, with weights $e^{\pm s\omega/V}$; the mean is "
          r"below, and $F$ is the mean square of it less $\omega$, over the square of $V$.")
s = Symbol("s", positive=True)
two = s*(exp(s*omega/V) - exp(-s*omega/V))/(exp(s*omega/V) + exp(-s*omega/V))
page.step("two values", two, s*tanh(s*omega/V))
page.text("In numbers, the fixed points and errors of the package against these averages:")

POINT, WEIGHT = Result.normal_grid()


def density(u):
    """The normal density."""
    return np.exp(-u*u/2)/np.sqrt(2*np.pi)


def signs():
    """sign(z): q and the probability of a wrong sign, arccos(sqrt q)/pi."""
    pairs, theory = [], hx.theories.multi_index("sign(z)")
    for at in (0.4, 1.5, 6.0):
        found = theory.solve(alpha=at)
        assert float(found.residual) < 1e-6, f"{found.residual} is left of the map at its fixed point"
        q_ = float(found["M11"])
        u = np.sqrt(q_/(1 - q_))*POINT
        F_ = WEIGHT @ np.exp(-u*u - np.log(2*np.pi) - special.log_ndtr(u) - special.log_ndtr(-u))/(1 - q_)
        pairs += [("q", at*F_/(1 + at*F_), q_), ("error", np.arccos(np.sqrt(q_))/np.pi, float(found["test_error"]))]
    return Result.numbers(pairs)


def parities():
    """sign(z1*z2): q and the probability of a wrong label."""
    pairs, theory = [], hx.theories.multi_index("sign(z1*z2)")
    for at in (2.7, 5.0):
        found = theory.solve(alpha=at)
        assert float(found.residual) < 1e-6, f"{found.residual} is left of the map at its fixed point"
        q_ = float(found["M11"])
        u = np.sqrt(q_/(1 - q_))*POINT
        a, rest = 2*special.ndtr(u) - 1, 2*special.ndtr(-np.abs(u))
        product, unsure = a[:, None]*a, rest[:, None] + rest - rest[:, None]*rest   # 1 - |a_1 a_2|
        F_ = WEIGHT @ (4*density(u)[:, None]**2*a**2/(unsure*(1 + np.abs(product)))) @ WEIGHT/(1 - q_)
        pairs += [("q", at*F_/(1 + at*F_), q_), ("error", (1 - WEIGHT @ np.abs(product) @ WEIGHT)/2, float(found["test_error"]))]
    return Result.numbers(pairs)


def squares():
    """z**2, at an alpha where the direction is found in part."""
    at = 0.55
    found = hx.theories.multi_index("z**2").solve(alpha=at)
    q_ = float(found["M11"])
    field, z_ = np.sqrt(q_)*POINT[:, None], np.sqrt(q_)*POINT[:, None] + np.sqrt(1 - q_)*POINT
    F_ = WEIGHT @ (np.abs(z_)*np.tanh(np.abs(z_)*field/(1 - q_)) - field)**2 @ WEIGHT/(1 - q_)**2
    assert 0.01 < q_ < 0.99, f"q = {q_}"
    return Result.numbers([("q", at*F_/(1 + at*F_), q_)])


def noise():
    """z + sqrt(Delta) xi with much noise: the label is normal, and F = 1/(1 - q + Delta) is that of a regression."""
    second = hx.theories.multi_index("z", "gaussian:4").output.second
    return Result.numbers([("F", 1/(1 - q_ + 4), second(np.array([[q_]]))[0, 0]) for q_ in (0.0, 0.3, 0.9)])


def committees():
    """g_out = V^-1 (E[z|y] - omega) for sums of two and three signs, V not diagonal, by nodes over half lines."""
    u, c = np.polynomial.legendre.leggauss(48)
    nodes, weights = np.concatenate([4.5*(u - 1), 4.5*(u + 1)]), np.tile(4.5*c, 2)
    V3 = np.array([[0.8, 0.15, -0.1], [0.15, 0.7, 0.2], [-0.1, 0.2, 0.9]])
    pairs = []
    for r_ in (2, 3):
        target = " + ".join(f"sign(z{i + 1})" for i in range(r_))
        z_ = np.stack(np.meshgrid(*[nodes]*r_, indexing="ij"), axis=-1).reshape(-1, r_)
        share = np.prod(np.stack(np.meshgrid(*[weights]*r_, indexing="ij")), axis=0).ravel()
        v = V3[:r_, :r_]
        for y_, field in ((r_ - 2.0, np.array([0.4, -0.7, 0.2])[:r_]), (-float(r_), np.array([-0.3, 0.9, 0.5])[:r_])):
            away = z_ - field
            mass = share*np.exp(-np.sum(away*np.linalg.solve(v, away.T).T, axis=1)/2)*(np.sign(z_).sum(axis=1) == y_)
            wanted = hx.theories.multi_index(target).output.g_out(np.array([y_]), field[None], v)[0]
            found = np.linalg.solve(v, mass @ away/mass.sum())
            pairs += [(f"g_out of {r_} signs", a, b_) for a, b_ in zip(found, wanted, strict=True)]
    # F of three signs where only their mean is known: M = m 1 1^T, fields along it, V^-1 = 1 + m/(1 - 3m) 1 1^T.
    m_, label = 0.15, np.sign(z_).sum(axis=1)
    x_, w_ = np.polynomial.hermite_e.hermegauss(24)
    diagonal = 0.0
    for t_, chance in zip(np.sqrt(m_)*x_, w_/w_.sum(), strict=True):
        away = z_ - t_
        pull = away + m_/(1 - 3*m_)*away.sum(axis=1)[:, None]
        mass = share*np.exp(-np.sum(away*pull, axis=1)/2)/np.sqrt((2*np.pi)**3*(1 - 3*m_))
        for y_ in (-3, -1, 1, 3):
            here = mass*(label == y_)
            diagonal += chance*(here @ pull[:, 0])**2/here.sum()
    wanted = hx.theories.multi_index(target).output.second(m_*np.ones((3, 3)))
    theory = hx.theories.multi_index("sign(z1) + sign(z2)")
    for at in (1.0, 2.4):   # before and after the two directions separate
        solved = theory.solve(alpha=at)
        M = np.array([[float(solved["M11"]), float(solved["M12"])], [float(solved["M12"]), float(solved["M22"])]])
        hat_ = at*theory.output.second(M)
        mapped = np.linalg.solve(np.eye(2) + hat_, hat_)
        pairs += [("M of two signs", a, b_) for a, b_ in zip(mapped.ravel(), M.ravel(), strict=True)]
    return Result.numbers([*pairs, ("F of three signs", diagonal, wanted[0, 0]), ("F of three signs", diagonal, wanted[0, 1])])


def solved(theory):
    """The package's fixed point for signs: M at its own Mhat = alpha F(M)."""
    found = float(theory.solve(alpha=1.5)["M11"])
    return {hat: 1.5*theory.output.second(np.array([[found]]))[0, 0]}, [found]


page.test("the sign", signs)
page.test("sums of signs", committees,
          r"A sum of signs keeps its off-diagonal overlaps: its averages are normal probabilities of boxes.")
page.test("the parity of two", parities)
page.test("the square", squares)
page.test("a line with much noise", noise)
page.test("the threshold of the parity", lambda: Result.numbers([
    ("alpha_c", np.pi**2/4, float(hx.exponents("sign(z1*z2)").alpha_c)),
    ("alpha_c of the square", 1/2, hx.theories.multi_index("z**2").transitions().weak_recovery)]))
page.variant("one label forgotten", b**2/(P*(1 - P)), b**2/P, "both labels inform the estimate")
map_ = page.let(Symbol("M", positive=True), 1 - 1/(1 + hat))
page.therefore(map_, hat/(1 + hat), r"The map that the package iterates, in one variable:", by=[map_],
               package={'hx.theories.multi_index("sign(z)")': solved})
page.not_shown("that state evolution describes the algorithm, and which fixed point is reached where there are several.")
