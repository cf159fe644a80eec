r"""dQ/dt and dM/dt of a committee that learns online: from one step of SGD, by Stein's lemma and Price's theorem."""

import numpy as np
from scipy import special
from sympy import Derivative as OfNode
from sympy import Function, Symbol, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, Result
from hermitex.symbols import z1, z2, z3, z4

sigma, f = Function("sigma"), Function("f")
theory = hx.theories.committee("z**2/2", "z**2/2 + z", students=2, teachers=1)
rates = {str(u): rate for u, rate in theory.flow.equations.items()}
letters = {str(x): x for rate in rates.values() for x in rate.free_symbols} | {str(u): u for u in theory.flow.equations}
Q11, Q12, Q22, M11, M21, P11, a1, a2, v1, gamma, Delta = (
    letters[n] for n in ("Q11", "Q12", "Q22", "M11", "M21", "P11", "a1", "a2", "v1", "gamma", "Delta"))
law = {(z1, z1): Q11, (z1, z2): Q12, (z2, z2): Q22, (z1, z3): M11, (z2, z3): M21, (z3, z3): P11}
pair = {(z1, z1): Q11, (z1, z3): M11, (z3, z3): P11}
A, B, u1, u2, left = symbols("A B u_1 u_2 delta", real=True)
d, p = symbols("d p", positive=True)

page = Result(
    "The flow of a committee",
    "Online SGD of several neurons against several moves their overlaps at rates that are Gaussian averages. For two students, "
    r"half a square each, of one teacher that has a linear part besides, with the residual $\delta$, the overlap with the "
    "teacher moves at the rate $#1$.",
    source="saadsolla1995", place="the equations of motion",
    assumptions=[r"every step sees a fresh input $x \sim \mathcal{N}(0, I_d)$; the loss is half the square of $\delta$, the "
                 "second layer fixed",
                 "the overlaps concentrate, so that a step may be averaged, and the squared norm of $x$ may be taken for $d$"],
)
page.notation({("f", r"\sigma"): "any functions of the fields; below the teacher's and the students' activations",
               (Symbol("dM_11"), Symbol("dQ_12")): "the rates of $M_{11}$ and $Q_{12}$",
               "d": "the dimension",
               (Q11, Q12): "the overlaps of the students' rows, over the dimension", M11: "that of the first with the teacher's",
               P11: "that of the teacher's with itself", (z1, z2, z3): "the fields of two students and of the teacher",
               left: "the residual of a sample without its noise",
               (A, B): "for two students, weight times residual times slope at its field", (u1, u2): "their fields",
               gamma: "the learning rate", p: "the students", (a1, v1): "the weights of the second layers",
               Delta: "the variance of the noise"})
move = gamma/(p*sqrt(d))
page.text("(i) One step. A student moves along the input by $A$ times the learning rate over the number of students and the root "
          "of the dimension, and time by that rate over the number of students and the dimension. The product of two students "
          "changes by two terms of the first order and one of the second, which counts because the squared norm of $x$ is $d$ "
          "and not 1:")
page.step("expanding the product", (move*sqrt(d)*(A*u2 + B*u1) + move**2*A*B*d)/d/(gamma/(p*d)), A*u2 + B*u1 + gamma/p*A*B)
page.step("independence", E((left + sqrt(Delta)*z4)**2, z4), left**2 + Delta, "The noise of the label enters the last term only:")
page.text("(ii) The averages. The first terms hold a field beside two functions of others. Stein's lemma moves it onto its two "
          "covariances, for any functions,")
slope, bend, other = Derivative(sigma), Derivative(Derivative(sigma)), Derivative(f)
page.step("Stein", E(slope(z1)*z2*f(z3), z1, z2, z3, cov=law),
          Q12*E(bend(z1)*f(z3), z1, z3, cov=pair) + M21*E(slope(z1)*other(z3), z1, z3, cov=pair), digits=8, points=1)
page.step("Price", OfNode(E(sigma(z1)*f(z3), z1, z3, cov=pair), M11), E(slope(z1)*other(z3), z1, z3, cov=pair),
          "and what is left are derivatives of one function of two fields,", digits=8, points=1)

page.text(r"(iii) A committee in full. Two students of weights $a_1$, $a_2$ and one teacher leave the residual")
delta = page.let(left, v1*(z3**2/2 + z3) - (a1*z1**2/2 + a2*z2**2/2)/2)
drive = E(delta*a1*z1*z3, z1, z2, z3, cov=law)
page.text(r"The definition's own averages, nothing done by parts, against the equations that the package integrates:")
toward = page.same("the overlap with the teacher", drive, rates["M11"], name=Symbol("dM_11"))
first = E(delta*(a1*z1*z2 + a2*z2*z1), z1, z2, z3, cov=law)
second = gamma/2*a1*a2*E((delta**2 + Delta)*z1*z2, z1, z2, z3, cov=law)
own = page.same("the overlap of the students", first + second, rates["Q12"], name=Symbol("dQ_12"))


def erf_by_nodes():
    """The rates of one student erf of one teacher erf by plain nodes over the two fields, against the closed forms."""
    flow = hx.theories.committee("erf(z/sqrt(2))", students=1, teachers=1).flow
    x, w = Result.normal_grid()
    at = {"Q11": 0.7, "M11": 0.3, "P11": 1.2, "a1": 0.9, "v1": 1.1, "gamma": 0.6, "Delta": 0.1}
    u = np.sqrt(at["Q11"])*x[:, None]
    v = at["M11"]/np.sqrt(at["Q11"])*x[:, None] + np.sqrt(at["P11"] - at["M11"]**2/at["Q11"])*x
    gap = at["v1"]*special.erf(v/np.sqrt(2)) - at["a1"]*special.erf(u/np.sqrt(2))
    bell = at["a1"]*np.sqrt(2/np.pi)*np.exp(-u**2/2)
    wanted = {"M11": w @ (gap*bell*v) @ w,
              "Q11": w @ (2*gap*bell*u + at["gamma"]*bell**2*(gap**2 + at["Delta"])) @ w}
    return Result.numbers({str(x): (wanted[x.name], rate.subs({s: at[s.name] for s in rate.free_symbols}))
                           for x, rate in flow.equations.items()})


page.test("one neuron erf, by nodes", erf_by_nodes, "For error functions the averages have closed forms:")
page.variant("the second order forgotten", (move*sqrt(d)*(A*u2 + B*u1) + move**2*A*B*d)/d/(gamma/(p*d)), A*u2 + B*u1,
             "right for a vanishing learning rate only, as gradient flow")
page.variant("one covariance in Stein's lemma", E(z1**2*z2*z3, z1, z2, z3, cov=law), Q12*E(2*z1*z3, z1, z3, cov=pair),
             "the other function moves too", mended=Q12*E(2*z1*z3, z1, z3, cov=pair) + M21*E(z1**2, z1, cov={(z1, z1): Q11}))
page.therefore([(Symbol("dM_11"), drive), (Symbol("dQ_12"), first + second)], words="The equations of motion of two students:",
               by=[toward, own], package={
                   f'hx.theories.committee("z**2/2", "z**2/2 + z", students=2, teachers=1).flow.equations[{k}]': rates[k]
                   for k in ("M11", "Q12")})
page.not_shown("that the overlaps concentrate on the flow as the dimension grows; that is a theorem of the sources for smooth "
               "functions.")
