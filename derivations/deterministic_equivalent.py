r"""df_1 = n - lam/nu: ridge regression on a kernel with any spectrum, as the saddle point of the free energy with that spectrum."""

from sympy import Derivative, Subs, symbols

import hermitex as hx
from hermitex import Result
from hermitex.symbols import Delta, V, Vhat, lamda, m, mhat, q, qhat, rho

n, nu, T = symbols("n nu T", positive=True)
eta, beta, g = (symbols(f"{name}1:3", positive=True) for name in ("eta", "beta", "g"))
MODES = range(2)

page = Result(
    "The deterministic equivalent of kernel ridge regression",
    r"Ridge regression on $n$ samples with a kernel of eigenvalues $\eta_k$ learns what lies above one number $\nu$, at which "
    r"the degrees of freedom are $n - \lambda/\nu$: for two groups of modes $#1$. The error with the noise, less the share that "
    "it holds of itself, is that of the modes left over.",
    source="defilippis2024", place="kernel ridge regression",
    assumptions=[r"the features are equivalent to Gaussian ones of variances $\eta_k$",
                 r"replica symmetry, which holds for convex problems"],
)
page.notation({Delta: "the variance of the label's noise",
               r"\nu_1": "the cut of the spectrum",
               (eta[0], eta[1]): "the eigenvalues of two groups of modes", (g[0], g[1]): "how many modes there are in each",
               (beta[0], beta[1]): "the norm of the target in each", n: "the number of samples",
               q: "the mean square of the estimate", m: "its product with the target", rho: "the mean square of the target",
               V: "the susceptibility", nu: r"the ridge over $\hat V$, below which an eigenvalue is not learnt",
               T: "the error with the noise"})
seen = [lamda + Vhat*e for e in eta]
spectral = sum((g[k]*eta[k]*qhat + eta[k]*beta[k]**2*mhat**2)/seen[k] for k in MODES)
phi = (q*Vhat - V*qhat)/2 - m*mhat + spectral/2 - n*(rho + Delta + q - 2*m)/(2*(1 + V))
page.name(symbols("Phi"), phi, r"The free energy of ridge regression, with one term for each group of modes:")
page.text("Its derivatives, each of which determines one unknown:")
susceptible = sum(g[k]*eta[k]/seen[k] for k in MODES)
product = sum(mhat*eta[k]*beta[k]**2/seen[k] for k in MODES)
square = sum((g[k]*eta[k]**2*qhat + eta[k]**2*beta[k]**2*mhat**2)/seen[k]**2 for k in MODES)
for letter, factor, unknown, slope in (
        ("q", 2, q, Vhat - n/(1 + V)), ("V", -2, V, qhat - n*(rho + Delta + q - 2*m)/(1 + V)**2), ("m", -1, m, mhat - n/(1 + V)),
        (r"\hat q", 2, qhat, susceptible - V), (r"\hat V", 2, Vhat, q - square), (r"\hat m", 1, mhat, product - m)):
    page.step(f"stationarity in ${letter}$", factor*Derivative(phi, unknown), slope)
page.text(r"(i) The root. By the first condition $\hat V$ is $n/(1 + V)$; with $\nu$ for the ridge over $\hat V$ both sides of "
          r"the fourth, times $\hat V$, are")
freedom = sum(g[k]*eta[k]/(eta[k] + nu) for k in MODES)
page.name(symbols("df_1"), freedom, "the degrees of freedom,")
dof = page.step("the degrees of freedom", Subs(Vhat*susceptible, Vhat, lamda/nu), freedom, "that are seen")
rest = page.step("the samples that are left", Subs(Subs(Vhat*V, V, n/Vhat - 1), Vhat, lamda/nu), n - lamda/nu, "and")
page.text(r"(ii) The error. At stationarity $\hat m$ is $\hat V$ and $\hat q$ is $\lambda^2T/(n\nu^2)$; so the error with the "
          "noise, which holds the estimate's square, holds itself:")
curved = sum(g[k]*eta[k]**2/(eta[k] + nu)**2 for k in MODES)
missed = sum((nu*beta[k]/(eta[k] + nu))**2 for k in MODES)
at = {mhat: lamda/nu, qhat: (lamda/nu)**2*T/n, Vhat: lamda/nu, rho: beta[0]**2 + beta[1]**2}
balance = page.step("collecting", Subs(rho + Delta + square - 2*product, tuple(at), tuple(at.values())),
                    Delta + missed + T*curved/n)
NUMBERS = {"eta": (1.0, 0.2), "beta": (1.0, 0.7), "g": (3.0, 40.0), "n": 25.0, "lam": 0.3, "noise": 0.1}


def package(solve):
    """The package's solution for two groups of modes."""
    return solve(n=NUMBERS["n"], lam=NUMBERS["lam"], noise=NUMBERS["noise"], eigenvalues=NUMBERS["eta"],
                 coefficients=NUMBERS["beta"], multiplicity=NUMBERS["g"])


def by_free_energy():
    """The same from the free energy alone, solved as any System."""
    system = hx.free_energy(phi.subs(rho, beta[0]**2 + beta[1]**2), {V: Vhat, q: qhat, m: mhat}, parameters=[
        n, lamda, Delta, *eta, *beta, *g], observables={"test_error": beta[0]**2 + beta[1]**2 + q - 2*m})
    numbers = {"n": NUMBERS["n"], "lam": NUMBERS["lam"], "Delta": NUMBERS["noise"]}
    numbers |= {f"{name}{k + 1}": NUMBERS[name][k] for name in ("eta", "beta", "g") for k in MODES}
    gap = abs(float(system.solve(numbers)["test_error"])/float(package(hx.theories.ridge_equivalent().solve)["test_error"]) - 1)
    return Result.digits(gap)


def solved(solve):
    """nu of the package, its n - lam/nu, and its error with the noise less the share that it holds of itself."""
    found = package(solve)
    root, error = float(found["nu_2"]), float(found["test_error_noisy"])
    letters = {nu: root, Delta: NUMBERS["noise"], **dict(zip((*eta, *beta, *g), (*NUMBERS["eta"], *NUMBERS["beta"], *NUMBERS["g"]),
                                                            strict=True))}
    own = sum(c*e**2/(e + root)**2 for c, e in zip(NUMBERS["g"], NUMBERS["eta"], strict=True))
    return letters, [NUMBERS["n"] - NUMBERS["lam"]/root, error*(1 - own/NUMBERS["n"])]


page.test("the free energy, solved as a System", by_free_energy)
page.variant("the degrees of freedom mistaken", Subs(Vhat*susceptible, Vhat, lamda/nu),
             sum(g[k]*eta[k]/(eta[k] + nu)**2 for k in MODES),
             "the square belongs to the variance")
page.therefore([(dof.lhs, freedom), (balance.lhs - T*curved/n, Delta + missed)],
               words="The degrees of freedom, which are $n - \\lambda/\\nu$, and the error:", by=[dof, balance],
               package={"hx.theories.ridge_equivalent().solve(...)": solved})
page.not_shown(r"random features, whose second root $\nu_1$ is that of the features' own deterministic equivalent; and that "
               "features of a kernel may be taken for Gaussian.")
