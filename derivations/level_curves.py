r"""State evolution of a label y = g(z1, z2) without noise: averages over its level curves, by the coarea formula."""

import numpy as np
from scipy import special
from sympy import Abs, Derivative, Integral, Subs, besseli, besselk, cos, exp, log, oo, pi, sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.experiments.denoisers import denoiser
from hermitex.symbols import z, z1, z2

V, y, r, t, beta, s1, s2, w = symbols("V y r t beta g_1 g_2 omega_r", positive=True)
a, o = symbols("z omega", real=True)

page = Result(
    "Labels seen through their level curves",
    r"A label $g(z_1, z_2)$ without noise has, at a field $\omega$ with $z \sim \mathcal{N}(\omega, V)$, a density $Z$ that is "
    "the integral of that law over its level curve, by arc length over the size of the gradient; $g_{out}$ is the slope of its "
    r"logarithm in $\omega$, and $F(M)$ the mean square of the slope of $Z$, over $Z$, summed over the labels. For the product "
    r"of the two fields these are Bessel functions at zero overlap, and the inverse of $\alpha_c$ is $#1$.",
    source="troiani2024", place="state evolution",
    assumptions=[r"$z \sim \mathcal{N}(0, I_2)$, $\omega \sim \mathcal{N}(0, M)$, and $V$ is what $M$ leaves of the unit matrix",
                 "$g$ is smooth off finitely many curves, and its gradient vanishes on almost no level curve; where $g$ is "
                 "constant on an open set, that label has a probability and counts as a discrete one"],
)
page.notation({"g": "the target", "F": r"the mean square of $g_{out}$ at the overlaps $M$",
               "M": "the matrix of overlaps", "g_{out}": r"the slope of the logarithm of $Z$ in $\omega$",
               r"\alpha_c": "the threshold of weak recovery",
               y: "a label", o: "the field", (s1, s2): "the partial derivatives of $g$", r: "the radius, on a circle",
               w: "the field's length", V: "the variance given the field", beta: "a weight that stretches the hyperbola"})
page.text("(i) The coarea formula. The part of the plane with labels in a small range is a ribbon along the level curve, as "
          "wide as the range over the size of the gradient. Where the curve is a graph over $z_1$, its slope is minus the ratio "
          "of the partial derivatives, and arc length and gradient leave one partial derivative:")
page.step("the slope of an implicit function", sqrt(1 + (s1/s2)**2)/sqrt(s1**2 + s2**2), 1/s2)
page.text(r"The field enters through the Gaussian only, whose derivative brings down $#1$ over $V$:", a - o)
gauss = exp(-(a - o)**2/(2*V))/sqrt(2*pi*V)
page.step("differentiation", Derivative(gauss, o), (a - o)/V*gauss)
page.text("so that $g_{out}$ is $V^{-1}$ times the mean of $z$ along the curve less the field. All that follows chooses a "
          "parameter on the curve.")
Z = page.let(symbols("Z", positive=True), exp(-(r**2 + w**2)/(2*V))*besseli(0, r*w/V)/(2*V), shown=False)
page.text("(ii) A circle. For the square $r^2$ of the radius the parameter is the angle, which counts half, and with $V$ a "
          r"multiple of the identity $#1$, the mean over the angle between point and field; its logarithmic slope is along "
          r"$\omega$:", Z)
page.step("Bessel's integral", Integral(exp(-(r**2 + w**2 - 2*r*w*cos(t))/(2*V))/(2*pi*V), (t, 0, pi)), Z, points=2)
page.step("differentiation", Derivative(log(Z), w), (r*besseli(1, r*w/V)/besseli(0, r*w/V) - w)/V)
page.text("(iii) A hyperbola. For a positive product $y$ the curve is the graph of $y$ divided by $z_1$, with $|g_2|$ the size "
          "of $z_1$; with the logarithm of $z_1$ for the parameter this is one. At zero overlap both branches give the same, "
          "and the density of the label is")
density_ = exp(-(y/z)**2/2)/(sqrt(2*pi)*Abs(z))
share_ = page.let(symbols("p", positive=True), besselk(0, y)/pi)
page.step("Basset's integral", E(density_, z), share_, points=1)
page.text(r"A weight $\beta$ on $z_1^2$ stretches the curve, to $#1$, and its derivative at the unit weight is the second "
          "moment:", besselk(0, sqrt(beta)*y))
page.step("differentiation", -2*Subs(Derivative(besselk(0, sqrt(beta)*y), beta), beta, 1)/pi, y*besselk(1, y)/pi)
excess = page.let(symbols("G_11", real=True), y*besselk(1, y)/besselk(0, y) - 1)
page.step("the second moment", E(z**2*density_, z), share_*(1 + excess), points=1)
page.text("(iv) The threshold. The mean of $z$ given the label vanishes, and the matrix of its second moments less one has "
          "$G_{11}$ twice on its diagonal and $y$ beside it. To first order in the overlap $F$ is the overlap times the mean of "
          "its square:")
across = page.step("the off-diagonal part", E((z1*z2)**2, z1, z2), 1)
along = page.let(symbols("I_G", positive=True), Integral(share_*excess**2, (y, 0, oo)), "For the labels of one sign")
rate = page.let(symbols("a_c", positive=True), E((z1*z2)**2, z1, z2) + 2*along,
                r"Both signs of $y$ count, so that the inverse of $\alpha_c$ is")
page.text("(v) The package has no parameter on the curves of a general $g$. It replaces $g$ by a plane in each small cell, and a "
          "curve by its mean point in each cell that it meets: so $g_{out}$ has three digits. For $F$ it sums over bins of labels; "
          "what they hide falls as the square of their width, and bins in pairs and fours give the limit, to five digits. Here "
          "both are compared with the parameters of (ii) and (iii), with the graph of a hyperbolic tangent, and with the rays and "
          "the segment that are the levels of the sum of two rectifiers, whose plateau has the probability of a quadrant. The "
          "product alone has a way of its own, to more digits:")


def normal(points, at, v):
    """N(z; omega, V) and its slopes in omega, at all points and fields: arrays (3, fields, points)."""
    inverse = np.linalg.inv(v)
    away = points[None] - at[:, None]
    pull = away @ inverse
    k = np.exp(-np.sum(away*pull, axis=2)/2)*np.sqrt(np.linalg.det(inverse))/(2*np.pi)
    return np.stack([k, k*pull[..., 0], k*pull[..., 1]])


def fields(m, n=26):
    """Nodes and weights for omega ~ N(0, M)."""
    u, c = np.polynomial.hermite_e.hermegauss(n)
    values, R = np.linalg.eigh(m)
    u = u*np.sqrt(np.maximum(values, 0))[:, None]
    return np.stack(np.meshgrid(*u, indexing="ij"), axis=-1).reshape(-1, 2) @ R.T, np.outer(c, c).ravel()/c.sum()**2


def F(labels, steps, curve, m, rest=None):
    """int dy E[A A^T/Z] over curves that are given by points and weights; `rest`: the (Z, A) of a plateau."""
    at, chance = fields(m)
    parts = [(dy, np.einsum("ifp,p->if", normal(points, at, np.eye(2) - m), share))
             for dy, (points, share) in ((dy, curve(u)) for u, dy in zip(labels, steps, strict=True))]
    parts += [(1.0, rest(at, np.eye(2) - m))] if rest else []
    total = np.zeros((2, 2))
    for dy, (density, *slopes) in parts:
        share = np.where(density > 1e-150, dy*chance/np.where(density > 1e-150, density, 1.0), 0.0)
        total += [[np.sum(p*p_*share) for p_ in slopes] for p in slopes]
    return total


STEP = 0.125
LINE = np.arange(-6, 6 + STEP/2, STEP)


def hyperbola(u):
    """z1 z2 = u."""
    side = np.sqrt(abs(u))
    far = np.ceil(np.log(max(12/side, 1.0))/STEP)*STEP
    along = np.arange(-far, far + STEP/2, STEP)
    e = side*np.exp(np.stack([along, -along], axis=1))*np.array([1.0, np.sign(u)])
    return np.concatenate([e, -e]), np.full(2*len(e), STEP)


def moved(u):
    """z1 (z2 + 1) = u."""
    points, share = hyperbola(u)
    return points - np.array([0.0, 1.0]), share


def circle(u):
    """z1^2 + z2^2 = u."""
    angle = 2*np.pi*np.arange(64)/64
    return np.sqrt(u)*np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(64, np.pi/64)


def wave(u):
    """tanh(z1) + z2 = u."""
    return np.stack([LINE*1.3, u - np.tanh(LINE*1.3)], axis=1), np.full(len(LINE), 1.3*STEP)


NODE, SHARE = np.polynomial.legendre.leggauss(40)


def ramp(u):
    """relu(z1) + relu(z2) = u > 0: two rays and a segment."""
    low, middle = 4*(NODE - 1), u*(NODE + 1)/2
    rays = [np.stack(p, axis=1) for p in ((low, np.full(40, u)), (np.full(40, u), low), (middle, u - middle))]
    return np.concatenate(rays), np.concatenate([4*SHARE, 4*SHARE, u*SHARE/2])


def quadrant(at, v):
    """P(z1 < 0, z2 < 0) at V = v 1 and its slopes."""
    s = np.sqrt(v[0, 0])
    below, density = special.ndtr(-at/s), np.exp(-at**2/(2*s*s))/np.sqrt(2*np.pi)/s
    return below[:, 0]*below[:, 1], -density[:, 0]*below[:, 1], -below[:, 0]*density[:, 1]


def spread_out(high, n=40):
    """Labels from 0 to `high`, as squares."""
    u, c = np.polynomial.legendre.leggauss(n)
    tau = np.sqrt(high)*(u + 1)/2
    return tau**2, np.sqrt(high)*c*tau


STRAIGHT, TILTED = 0.1*np.eye(2), np.array([[0.07, 0.03], [0.03, 0.05]])


def output(target):
    """The label as the state evolution uses it."""
    return hx.theories.multi_index(target).output


def estimates():
    """g_out at a few labels and fields, V not diagonal."""
    v, at = np.eye(2) - TILTED, np.array([[0.4, -0.7], [-1.1, 0.3]])
    pairs = []
    for target, curve, labels in (("z1*z2 + z1", moved, (0.8, -0.3)), ("z1**2 + z2**2", circle, (0.5, 3.0)),
                                  ("tanh(z1) + z2", wave, (-0.6, 1.2)), ("relu(z1) + relu(z2)", ramp, (0.4, 1.7))):
        wanted = denoiser(hx.theories.multi_index(target), np.array(labels))(at, v)[0]
        for u, o_, g_ in zip(labels, at, wanted, strict=True):
            points, share = curve(u)
            density, *slopes = normal(points, o_[None], v)[:, 0] @ share
            pairs.append((f"g_out of {target}", np.array(slopes)/density, g_))
    # The plateau of the last: nodes over z1 < 0, and below zero z2 given z1 is a normal tail.
    low = 4*(NODE - 1)
    for o_ in at:
        tail, spread = o_[1] + v[0, 1]/v[0, 0]*(low - o_[0]), np.sqrt(v[1, 1] - v[0, 1]**2/v[0, 0])
        mass = 4*SHARE*np.exp(-(low - o_[0])**2/(2*v[0, 0]))*special.ndtr(-tail/spread)
        mean = np.stack([low, tail - spread*np.exp(-(tail/spread)**2/2 - special.log_ndtr(-tail/spread))/np.sqrt(2*np.pi)])
        pairs.append(("g_out on the plateau", np.linalg.solve(v, mean @ mass/mass.sum() - o_),
                      denoiser(hx.theories.multi_index("relu(z1) + relu(z2)"), np.zeros(1))(o_[None], v)[0][0]))
    return Result.numbers(pairs, 1e-3) >= 3


def products():
    """g_out and F of z1*z2, in whose coordinates V is diagonal."""
    labels, at, v, pairs = (0.8, -0.3), np.array([[0.4, -0.7], [-1.1, 0.3]]), np.diag([0.9, 0.8]), []
    for y_, o_, g_ in zip(labels, at, denoiser(hx.theories.multi_index("z1*z2"), np.array(labels))(at, v)[0], strict=True):
        points, share = hyperbola(y_)
        density, *slopes = normal(points, o_[None], v)[:, 0] @ share
        pairs.append(("g_out", np.array(slopes)/density, g_))
    return Result.numbers([*pairs, ("F", F(*logarithms(), hyperbola, STRAIGHT), output("z1*z2").second(STRAIGHT))])


def logarithms():
    """Labels of both signs, evenly spread in their logarithms."""
    u = np.arange(-24, 4.2, 0.3)
    return np.concatenate([np.exp(u), -np.exp(u)]), np.tile(0.3*np.exp(u), 2)


def off_the_origin():
    """F of z1*z2 + z1, the same hyperbola moved, M not diagonal."""
    return Result.numbers([("F", F(*logarithms(), moved, TILTED), output("z1*z2 + z1").second(TILTED))], 1e-5) >= 5


def circles():
    """F of z1**2 + z2**2."""
    labels, steps = spread_out(60)
    return Result.numbers([("F", F(labels, steps, circle, m), output("z1**2 + z2**2").second(m)) for m in (STRAIGHT, TILTED)],
                          1e-5) >= 5


def waves():
    """F of tanh(z1) + z2."""
    u, c = np.polynomial.legendre.leggauss(50)
    return Result.numbers([("F", F(7.6*u, 7.6*c, wave, TILTED), output("tanh(z1) + z2").second(TILTED))], 1e-5) >= 5


def ramps():
    """F of relu(z1) + relu(z2), with its plateau."""
    labels, steps = spread_out(10.9)
    return Result.numbers([("F", F(labels, steps, ramp, STRAIGHT, quadrant), output("relu(z1) + relu(z2)").second(STRAIGHT))],
                          1e-5) >= 5


def threshold():
    """alpha_c of products: the exponents, and alpha = q/((1 - q) F) at a small overlap."""
    pairs = []
    for r_, target in ((2, "z1*z2"), (3, "z1*z2*z3")):
        near, middle, far = (p/((1 - p)*output(target).second(p*np.eye(r_))[0, 0]) for p in (1e-4, 2e-4, 4e-4))
        pairs.append(("alpha(0)", (8*near - 6*middle + far)/3, float(hx.exponents(target).alpha_c)))
    return Result.numbers(pairs)


def errors():
    """E(g - E[g|omega])^2 of the product: E[z1 z2|omega] = omega_1 omega_2 + V_12."""
    found = hx.theories.multi_index("z1*z2").generalisation
    # E omega_1^2 omega_2^2 = M_11 M_22 + 2 M_12^2, V_12 = -M_12, so that E(omega_1 omega_2 + V_12)^2 = M_11 M_22 + M_12^2.
    pairs = [("error", 1 - m[0, 0]*m[1, 1] - m[0, 1]**2, found(m)) for m in (STRAIGHT, TILTED)]
    at = np.array([[0.4, -0.7], [-1.1, 0.3]])
    return Result.numbers([*pairs, ("estimate", at[:, 0]*at[:, 1] - TILTED[0, 1], found.estimate(at, np.eye(2) - TILTED))])


def sides():
    """g_out of sign(z1*z2 - 1): over z1 the label asks z2 to lie beyond 1/z1, on the side of z1; V not diagonal."""
    v = np.array([[0.8, 0.25], [0.25, 0.7]])
    u, c = np.polynomial.legendre.leggauss(200)
    first, share = np.concatenate([4.5*(u - 1), 4.5*(u + 1)]), np.tile(4.5*c, 2)
    spread, pairs = np.sqrt(v[1, 1] - v[0, 1]**2/v[0, 0]), []
    for o_ in np.array([[0.4, -0.7], [1.3, 0.6]]):
        middle = o_[1] + v[0, 1]/v[0, 0]*(first - o_[0])
        t_ = np.sign(first)*(1/first - middle)/spread
        p = share*np.exp(-(first - o_[0])**2/(2*v[0, 0]))
        bell = spread*np.sign(first)*np.exp(-t_**2/2)/np.sqrt(2*np.pi)
        for y_, mass, tail in ((1.0, special.ndtr(-t_), bell), (-1.0, special.ndtr(t_), -bell)):
            mean = np.array([p @ (mass*first), p @ (mass*middle + tail)])/(p @ mass)
            pairs.append(("g_out", np.linalg.solve(v, mean - o_),
                          output("sign(z1*z2 - 1)").g_out(np.array([y_]), o_[None], v)[0]))
    return Result.numbers(pairs)


for rule, fact in (("g_out along curves", estimates), ("a label that is constant between its curves", sides),
                   ("the product", products), ("the hyperbola off the origin", off_the_origin),
                   ("the square of the radius", circles), ("a graph", waves), ("a plateau", ramps),
                   ("the threshold of the product", threshold), ("what is not explained", errors)):
    page.test(rule, fact)
page.variant("arc length without the gradient", sqrt(1 + (s1/s2)**2), 1/s2, "the width of the ribbon is forgotten",
             mended=sqrt(s1**2 + s2**2)/s2)
page.variant("one branch of the hyperbola", E(density_, z), besselk(0, y)/(2*pi), "the label has preimages in two quadrants")


def solved(inverse):
    """The package's threshold of the product, and the integral in log y."""
    u, h = np.linspace(-30, 4.2, 4000, retstep=True)
    v = np.exp(u)
    k = special.k0(v)
    return {along: np.sum(k/np.pi*(v*special.k1(v)/k - 1)**2*v)*h}, [float(inverse)]


page.therefore(rate, 1 + 2*along,
               r"For the product the state evolution leaves zero at $\alpha_c$, whose inverse is", by=[across, rate],
               package={'1/hx.exponents("z1*z2").alpha_c': solved})
page.not_shown(r"state evolution itself, and the thresholds of targets whose level curves have no parameter: those are numbers.")
