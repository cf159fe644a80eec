r"""The free energy of ridge regression by replicas: determinants of symmetric blocks, n -> 0, and no temperature."""

from sympy import (
    Derivative,
    Determinant,
    Identity,
    Inverse,
    Limit,
    MatMul,
    Matrix,
    OneMatrix,
    Subs,
    Trace,
    exp,
    log,
    oo,
    sqrt,
    symbols,
)

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import Delta, V, Vhat, alpha, lamda, m, mhat, q, qhat, rho, z1, z2, z3

n, v, b, G = symbols("n v beta G", positive=True)
a, c = symbols("a c", positive=True)   # of a block matrix: beside the diagonal's own part, and everywhere
one, row = Identity(n), OneMatrix(1, n)


def block(own, everywhere):
    """The matrix of n replicas with these on the diagonal alone and everywhere."""
    return own*one + everywhere*OneMatrix(n, n)


def slope(value):
    """In the number of replicas, at none."""
    return Subs(Derivative(value, n), n, 0)



page = Result(
    "The free energy of ridge regression by replicas",
    "The mean logarithm of a partition function is the slope in $n$ at zero of the mean of its $n$-th power. With overlaps that "
    "are the same for all pairs of replicas, and at zero temperature, it is the free energy of ridge regression, whose "
    "derivatives are the six equations.",
    source="loureiro2021", place="the replica computation",
    assumptions=["the slope at zero is that of the formula at integers, and its order with the limit of many dimensions does "
                 "not matter", r"replica symmetry, which holds for convex problems", "an isotropic input and a ridge penalty"],
)
page.notation({alpha: "samples for each dimension",
               Delta: "the variance of the label's noise",
               n: "the number of replicas", "J_n": "the matrix of ones", r"\mathbf{1}_n": "the vector of ones",
               r"\mathbb{I}": "the unit matrix", b: "the inverse temperature",
               v: "the self-overlap less the overlap of two replicas",
               (a, c): "the entries of a block, on the diagonal alone and everywhere",
               G: "the variance of a residual that replicas share",
               (q, m, rho): "the overlaps of the estimate with itself and the teacher, and of the teacher",
               (V, Vhat, qhat, mhat): r"$\beta v$, and the conjugates"})
page.text(r"(i) Blocks. A matrix that is the same for all pairs is $a$ times the unit matrix $\mathbb{I}$ and $c$ times the "
          r"matrix $J_n$ of ones, of rank one, with $\mathbf{1}_n$ for one of its columns. By the determinant lemma, for any "
          "number of replicas,")
page.step("the determinant lemma", Determinant(block(a, c)), a**(n - 1)*(a + n*c))
page.step("Sherman-Morrison", Inverse(block(a, c)), block(1/a, -c/(a*(a + n*c))), "and by Sherman and Morrison its inverse is")
page.step("the sum of its entries", MatMul(row, Inverse(block(a, c)), row.T), Matrix([[n/(a + n*c)]]))
page.text(r"As a function of the size the logarithm of the determinant has at zero the slope")
page.step("no replicas", slope(log(Determinant(block(a, c)))), log(a) + c/a)
page.step("no replicas", slope(Trace(Inverse(block(a, c)))), 1/a - c/a**2, "the trace of the inverse")
page.step("no replicas", slope(n/(a + n*c)), 1/a, "and the sum of its entries")

page.text("(ii) Energy. The residuals of the replicas on one sample have the variance $G$ in common and $v$ for themselves. The "
          r"mean of the Boltzmann factors is one over the root of a determinant of such a block, with $1 + \beta v$ and $\beta "
          "G$:")
residual = [sqrt(G)*z3 + sqrt(v)*x for x in (z1, z2)]
page.step("closed form", E(exp(-b*(residual[0]**2 + residual[1]**2)/2), z1, z2, z3),
          1/sqrt((1 + b*v)*(1 + b*v + 2*b*G)), digits=12, points=2)
energy = -(log(1 + b*v) + b*G/(1 + b*v))/2
page.step("no replicas", -slope(log(Determinant(block(1 + b*v, b*G))))/2, energy,
          "Its logarithm has the slope")
gap = rho + Delta + q - 2*m
cold = page.step("no temperature", Limit(energy.subs(v, V/b)/b, b, oo), -G/(2*(1 + V)),
                 r"and where $V$ is $\beta v$, an inverse temperature,")
teacher = m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2 + sqrt(Delta)*z3
page.step("closed form", E((teacher - sqrt(q)*z1)**2, z1, z2, z3), gap, r"What the replicas share is label less the field,")

page.text(r"(iii) Entropy. A coordinate of the replicas is Gaussian, of the inverse covariance with $\beta(\lambda + \hat V)$ on "
          r"the diagonal less $\beta^2\hat q$ everywhere, and is pulled by $\beta\hat m$ times the teacher's. So the logarithm "
          "of its weight has the slope")
stiff = b*(lamda + Vhat)
entropy = -(log(stiff) - b**2*qhat/stiff)/2 + rho*(b*mhat)**2/(2*stiff)
page.step("no replicas", slope(-log(Determinant(block(stiff, -b**2*qhat)))/2 + rho*(b*mhat)**2*n/(stiff - n*b**2*qhat)/2), entropy)
free = page.step("no temperature", Limit(entropy.expand()/b, b, oo), (rho*mhat**2 + qhat)/(2*(lamda + Vhat)))

page.text(r"(iv) Coupling. The overlaps times their conjugates, $n$ on the diagonal and $n(n - 1)$ beside it, have the slope")
r = V/b + q   # the overlap of a replica with itself
page.step("no replicas", slope(n*b*Vhat*r - b**2*qhat*(n*r + n*(n - 1)*q) - 2*n*b*m*mhat)/2,
                    b*Vhat*(q + V/b)/2 - b*qhat*V/2 - b*m*mhat)
pairs = page.step("no temperature", Limit((Vhat*(q + V/b) - qhat*V)/2 - m*mhat, b, oo), (Vhat*q - qhat*V)/2 - m*mhat)

page.text("(v) The free energy is the sum of the three, with the energy of all samples:")
phi = (q*Vhat - V*qhat)/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2 - alpha*gap/(2*(1 + V))
whole = page.let(symbols("Phi"), phi)
page.step("collecting", pairs.lhs + free.lhs + alpha*Subs(cold.lhs, G, gap), whole)
used = hx.theories.glm("square").system
derived = hx.free_energy(phi, {V: Vhat, q: qhat, m: mhat}, parameters=[alpha, lamda, Delta, rho],
                         observables={"test_error": rho + q - 2*m})
agreed = page.same("stationarity", derived, used, "It is stationary where",
                   at=[{"alpha": 2.0, "lam": 0.1, "Delta": 0.25, "rho": 1.0}])
page.variant("one replica", slope(log(Determinant(block(a, c)))), log(a + c),
             "the mean of the partition function for that of its logarithm")
page.variant("the overlap of a replica with itself", cold.lhs, -(rho + Delta + q + V - 2*m)/(2*(1 + V)),
             "at no temperature a replica and another one overlap alike")
page.therefore(used, words="The equations of the package:", by=[agreed], package={'hx.theories.glm("square").system': used})
page.not_shown("that the limits may be exchanged, and replica symmetry: for convex problems both are theorems of the sources, "
               "by other means.")
