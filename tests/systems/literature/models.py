"""Thirty systems as their authors print them, one to four lines each: name -> function without arguments that writes the System."""

from sympy import Abs, Eq, Max, Symbol, cos, cosh, diff, erf, erfc, exp, log, pi, sin, sqrt, symbols, tanh

import hermitex as hx
from hermitex import E, System
from hermitex.symbols import Delta, V, Vhat, alpha, beta, lamda, m, mhat, q, qhat, z, z1, z2

k, h, t, p, C, a, f, rho = symbols("k h t p C a f rho", real=True)
g, y, T, tau2, b, nu, S, c, eps, kappa, gamma2, s2, lam, lam1, lam2, delta, sigma2 = symbols(
    "g y T tau2 b nu S c eps kappa gamma2 s2 lam lam1 lam2 delta sigma2", positive=True)
r, x, u, v, sw2, sb2, width = symbols("r x u v sw2 sb2 width", positive=True)


def G(e):
    """The normal density."""
    return exp(-e**2/2)/sqrt(2*pi)


def H(e):
    """The tail of the normal law."""
    return erfc(e/sqrt(2))/2


def soft(e, edge):
    """The positive half of the soft threshold: both halves of an even average are alike."""
    return Max(0, e - edge)


# -- perceptrons -------------------------------------------------------------------------------------------------------
def gardner():
    """Gardner 1988: the capacity at margin k."""
    return System({alpha: 1/E(Max(0, z + k)**2, z)})


def gardner_gh():
    """Gardner 1988: the overlap of solutions below capacity."""
    w = (k + sqrt(q)*z)/sqrt(1 - q)
    return System({q: alpha*(1 - q)*E((G(w)/H(w))**2, z)})


def binary():
    """Krauth and Mezard 1989: where the entropy of binary weights vanishes."""
    w = sqrt(q/(1 - q))*z
    entropy = -qhat*(1 - q)/2 + E(log(2*cosh(sqrt(qhat)*z)), z) + alpha*E(log(H(w)), z)
    return System({q: E(tanh(sqrt(qhat)*z)**2, z), qhat: alpha/(1 - q)*E((G(w)/H(w))**2, z), alpha: Eq(entropy, 0)})


def noisy():
    """The Bayes-optimal perceptron with Gaussian noise before the sign."""
    w = sqrt(q/(1 - q + Delta))*z
    return System({q: qhat/(1 + qhat), qhat: 2*alpha/(1 - q + Delta)*E(G(w)**2/H(w), z)})


def margin():
    """Montanari, Ruan, Sohn and Yan 2019: the largest margin of noiseless labels; t is the angle to the teacher."""
    gap = sqrt(E(Max(0, k - cos(t)*Abs(z1) - sin(t)*z2)**2, z1, z2)) - sin(t)/sqrt(alpha)
    return System({k: Eq(gap, 0), t: Eq(diff(gap, t), 0)})


def mixture(name):
    """Mignacco, Krzakala, Lu, Urbani and Zdeborova 2020: two Gaussian clusters."""
    loss = {"square": (1 - f)**2/2, "hinge": Max(0, 1 - f), "logistic": log(1 + exp(-f))}[name]
    w = m + sqrt(q)*z
    d = (hx.Prox(loss, f, w, V) - w)/V
    return System({mhat: alpha*E(d, z), qhat: alpha*E(d**2, z), Vhat: -alpha*E(z*d, z)/sqrt(q),
                   m: mhat/(lamda + Vhat), q: (mhat**2 + qhat)/(lamda + Vhat)**2, V: 1/(lamda + Vhat)})


# -- glasses and memories ----------------------------------------------------------------------------------------------
def hopfield_cold():
    """Amit, Gutfreund and Sompolinsky 1985, T = 0."""
    return System({m: erf(m/sqrt(2*alpha*r)), C: sqrt(2/(pi*alpha*r))*exp(-m**2/(2*alpha*r)), r: 1/(1 - C)**2},
                  domain={C: (0, 1)}, start={m: 1, C: 0.1})


def hopfield_fold():
    """The largest load at T = 0."""
    load = (erf(y)/y - 2/sqrt(pi)*exp(-y**2))**2/2
    return System({y: Eq(diff(load, y), 0)}, observables={alpha: load, m: erf(y)})


def hopfield():
    """Amit, Gutfreund and Sompolinsky 1987."""
    w = tanh(beta*(m + sqrt(alpha*r)*z))
    return System({m: E(w, z), q: E(w**2, z), r: q/(1 - beta*(1 - q))**2}, start={m: 1, q: 0.99})


def sk():
    """Sherrington and Kirkpatrick 1975."""
    return System({q: E(tanh(beta*(sqrt(q)*z + h))**2, z)})


def almeida_thouless():
    """de Almeida and Thouless 1978."""
    w = tanh(beta*(sqrt(q)*z + h))
    return System({q: E(w**2, z), beta: Eq(beta**2*E((1 - w**2)**2, z), 1)})


def sk_one_step():
    """Parisi 1979: one step of replica symmetry breaking, no field."""
    w = 2*cosh(beta*sqrt(q)*z)
    free = -beta/4*(1 + (1 - x)*q**2 - 2*q) - log(E(w**x, z))/(beta*x)
    return System({q: E(w**x*tanh(beta*sqrt(q)*z)**2, z)/E(w**x, z), x: Eq(diff(free, x), 0)}, observables={"energy": free})


def p_spin_static():
    """Crisanti and Sommers 1992: the spherical p-spin model at its static transition."""
    return System({y: Eq(-2*y*(1 - y + log(y))/(1 - y)**2, 2/p), q: 1 - y, T: sqrt(p/2*q**(p - 2)*(1 - q))})


def p_spin_cold():
    """Crisanti and Sommers 1992: below it, one step of replica symmetry breaking."""

    return System({q: Eq(p/(2*T**2)*q**(p - 2)*(1 - q)*(1 - q + x*q), 1), x: Eq(diff(_cold(), x), 0)})


def _cold():
    """2 phi of the spherical p-spin model, q0 = 0: beta^2/2 (1 - (1 - x) q^p) + (x - 1)/x log(1 - q) + log(1 - q + x q)/x."""
    return (1 - (1 - x)*q**p)/(2*T**2) + (x - 1)/x*log(1 - q) + log(1 - q + x*q)/x


# -- regression --------------------------------------------------------------------------------------------------------
def lasso():
    """Bayati and Montanari 2012: state evolution at the threshold a tau; X = 0 or a random sign."""
    tau, edge = sqrt(tau2), a*sqrt(tau2)
    def error(X):
        w = X + tau*z
        return E((Max(0, w - edge) - Max(0, -w - edge) - X)**2, z)

    kept = (1 - eps)*erfc(a/sqrt(2)) + eps*(H(a - 1/tau) + H(a + 1/tau))
    return System({tau2: sigma2 + ((1 - eps)*error(0) + eps*error(1))/delta}, observables={"lamda": edge*(1 - kept/delta)})


def lasso_prox():
    """The same by the proximal operator of |f|."""
    tau = sqrt(tau2)
    def error(X):
        return E((hx.Prox(Abs(f), f, X + tau*z, a*tau) - X)**2, z)

    kept = (1 - eps)*erfc(a/sqrt(2)) + eps*(H(a - 1/tau) + H(a + 1/tau))
    return System({tau2: sigma2 + ((1 - eps)*error(0) + eps*error(1))/delta}, observables={"lamda": a*tau*(1 - kept/delta)})


def donoho_maleki_montanari():
    """Donoho, Maleki and Montanari 2009: the line of perfect recovery, max over t of rho(t)."""
    worst = (1 + t**2)*H(t) - t*G(t)
    line = (1 - 2*worst/delta)/(1 + t**2 - 2*worst)
    return System({t: Eq(diff(line, t), 0)}, observables={rho: line})


def elastic_net():
    """The convex replica-symmetric equations, a Bernoulli-Gauss signal, |w| and w^2 as penalties."""
    s0, s1 = sqrt(qhat), sqrt(qhat + Vhat**2)
    def mixed(e):
        return 2*((1 - eps)*e(s0) + eps*e(s1))

    return System({Vhat: alpha/(1 + V), qhat: alpha*(eps + Delta + q - 2*m)/(1 + V)**2,
                   V: mixed(lambda s: H(lam1/s))/(lam2 + Vhat), m: 2*eps*Vhat*H(lam1/s1)/(lam2 + Vhat),
                   q: mixed(lambda s: E(soft(s*z, lam1)**2, z))/(lam2 + Vhat)**2})


def huber():
    """Donoho and Montanari 2016: contaminated noise, the score clipped at b c."""
    def mixed(e):
        return (1 - eps)*e(sqrt(1 + tau2)) + eps*e(sqrt(100 + tau2))

    def score(w):
        edge = c*(1 + b)
        return b/(1 + b)*(Max(-edge, w) - Max(0, w - edge))

    return System({tau2: delta*mixed(lambda s: E(score(s*z)**2, z)), b: Eq(mixed(lambda s: E(z*score(s*z), z)/s), 1/delta)})


def huber_prox():
    """The same by the proximal operator of Huber's loss."""
    from sympy import Piecewise

    loss = Piecewise((f**2/2, Abs(f) <= c), (c*Abs(f) - c**2/2, True))
    def mixed(e):
        return (1 - eps)*e(sqrt(1 + tau2)) + eps*e(sqrt(100 + tau2))

    def score(w):
        return w - hx.Prox(loss, f, w, b)

    return System({tau2: delta*mixed(lambda s: E(score(s*z)**2, z)), b: Eq(mixed(lambda s: E(z*score(s*z), z)/s), 1/delta)})


def sur_candes():
    """Sur and Candes 2019: logistic regression at p/n = kappa and signal strength gamma^2."""
    w1 = sqrt(gamma2)*z1
    w2 = -a*w1 + sqrt(kappa*s2)*z2
    rate = 1/(1 + exp(-w1))
    step = w2 - hx.Prox(log(1 + exp(f)), f, w2, lam)
    return System({s2: 2/kappa**2*E(rate*step**2, z1, z2), a: Eq(E(rate*w1*step, z1, z2), 0),
                   lam: Eq(2*E(rate*z2*step, z1, z2)/sqrt(kappa*s2), kappa)})


def anisotropic():
    """Ridge regression, a log-normal population spectrum (Dobriban and Wager 2018, in the words of Hastie et al. 2022)."""
    eta = exp(width*z)
    ratio = E((eta/(eta + nu))**2, z)/alpha
    return System({nu: lamda + nu/alpha*E(eta/(eta + nu), z)},
                  observables={"test_error": (nu**2*E(eta/(eta + nu)**2, z) + Delta)/(1 - ratio)})


# -- estimation --------------------------------------------------------------------------------------------------------
def bernoulli_gauss():
    """Krzakala, Mezard, Sausset, Sun and Zdeborova 2012: the noise S that AMP sees, with the right prior."""
    def square(s):
        w = s*z
        odds = (1 - eps)/eps*sqrt((1 + S)/S)*exp(-w**2/(2*S*(1 + S)))
        return E((w/(1 + S)/(1 + odds))**2, z)

    return System({S: Delta + (eps - (1 - eps)*square(sqrt(S)) - eps*square(sqrt(1 + S)))/alpha})


def phase_retrieval():
    """Barbier, Krzakala, Macris, Miolane and Zdeborova 2019: y = |nu|, a real Gaussian signal."""
    return System({q: qhat/(1 + qhat), qhat: alpha*(_seen() - q)/(1 - q)**2})


def _seen():
    omega = sqrt(q)*z1
    w = omega + sqrt(1 - q)*z2
    return E(w**2*tanh(w*omega/(1 - q))**2, z1, z2)


def phase_fold():
    """Where its branch of partial recovery ends."""
    load = q*(1 - q)/(_seen() - q)
    return System({q: Eq(diff(load, q), 0)}, observables={alpha: load})


def wigner():
    """Deshpande, Abbe and Montanari 2017: a spiked Wigner matrix, signs."""
    return System({q: E(tanh(lamda*q + sqrt(lamda*q)*z), z)})


def wishart():
    """A spiked Wishart matrix, signs times normals."""
    return System({u: E(tanh(lamda*v + sqrt(lamda*v)*z), z), v: lamda*alpha*u/(1 + lamda*alpha*u)})


def wishart_normal():
    """A spiked Wishart matrix, normals times normals."""
    return System({u: lamda*v/(1 + lamda*v), v: lamda*alpha*u/(1 + lamda*alpha*u)})


def tensor():
    """Lesieur et al. 2017: tensor PCA of order 3, a normal signal."""
    return System({q: lamda*q**2/(1 + lamda*q**2)})


def tensor_signs():
    """The same with signs."""
    return System({q: E(tanh(lamda*q**2 + sqrt(lamda)*q*z), z)})


# -- networks ----------------------------------------------------------------------------------------------------------
def edge_of_chaos():
    """Poole et al. 2016, Schoenholz et al. 2017: the critical variance of the weights."""
    w = tanh(sqrt(q)*z)
    return System({q: sw2*E(w**2, z) + sb2, sw2: Eq(sw2*E((1 - w**2)**2, z), 1)})


def c_map():
    """Poole et al. 2016: the correlation that two inputs end at."""
    s = sqrt(q)
    pair = E(tanh(s*z1)*tanh(s*(c*z1 + sqrt(1 - c**2)*z2)), z1, z2)
    return System({q: sw2*E(tanh(s*z)**2, z) + sb2, c: (sw2*pair + sb2)/q}, domain={c: (0, 1)})


def nngp():
    """Lee et al. 2018, Cho and Saul 2009: three layers of relu as averages over a correlated pair."""
    lines, k, K = {}, Symbol("c", real=True), 1
    for layer in (1, 2, 3):
        pair = E(Max(0, sqrt(K)*z1)*Max(0, sqrt(K)*z2), z1, z2, cov={(z1, z2): k/K})
        square = E(Max(0, sqrt(K)*z)**2, z)
        k, K = Symbol(f"k{layer}", real=True), Symbol(f"K{layer}", positive=True)
        lines |= {k: 2*pair + sb2, K: 2*square + sb2}
    return System(lines)


def chaotic():
    """Sompolinsky, Crisanti and Sommers 1988: the static variance of a chaotic network."""
    D = Symbol("D", positive=True)
    F = log(cosh(sqrt(D)*z))
    return System({D: Eq(g**2*(E(F**2, z) - E(F, z)**2), D**2/2)})


MODELS = {
    "Gardner, margin": gardner, "Gardner, G/H": gardner_gh, "binary perceptron": binary, "noisy perceptron": noisy,
    "largest margin": margin, "Gaussian mixture, square": lambda: mixture("square"),
    "Gaussian mixture, hinge": lambda: mixture("hinge"), "Gaussian mixture, logistic": lambda: mixture("logistic"),
    "Hopfield, T = 0": hopfield_cold, "Hopfield, fold": hopfield_fold, "Hopfield, T > 0": hopfield, "SK": sk,
    "SK, AT line": almeida_thouless, "SK, 1RSB": sk_one_step, "p-spin, static": p_spin_static, "p-spin, cold": p_spin_cold,
    "LASSO": lasso, "LASSO by Prox": lasso_prox, "Donoho-Maleki-Montanari": donoho_maleki_montanari, "elastic net": elastic_net,
    "Huber": huber, "Huber by Prox": huber_prox, "Sur-Candes": sur_candes, "anisotropic ridge": anisotropic,
    "Bernoulli-Gauss": bernoulli_gauss, "phase retrieval": phase_retrieval, "phase retrieval, fold": phase_fold,
    "spiked Wigner": wigner, "spiked Wishart": wishart, "spiked Wishart, normal": wishart_normal, "tensor PCA": tensor,
    "tensor PCA, signs": tensor_signs, "edge of chaos": edge_of_chaos, "c map": c_map, "NNGP": nngp, "chaotic network": chaotic,
}
