r"""The law of Marchenko and Pastur by leaving one row out: its transform, the slope of that, and the residue of an outlier."""

from sympy import Derivative, Determinant, Inverse, Limit, MatMul, Matrix, Subs, Trace, diag, sqrt, symbols

from hermitex import Result
from hermitex.symbols import gamma

w, a1, a2, u1, u2, x, p, d = symbols("w a_1 a_2 u_1 u_2 x p d", positive=True)
m, M = symbols("m M", positive=True)   # the root, and a letter for it
theta, at, D1, D2, G = symbols("theta x_1 D_1 D_2 G", positive=True)

page = Result(
    "The law of Marchenko and Pastur",
    "For a matrix $W$ of $p$ rows and $d$ columns of independent standard normals the normalised trace of the resolvent of its "
    "covariance, the mean over the rows, at minus $w$ solves $#1$.",
    source="marchenko1967", place="the equation of the transform",
    assumptions=["leaving one out: the form of a row $u$, over the root of $p$, is the trace over $p$ up to what vanishes, for "
                 "every matrix $A$ of bounded norm that the row is independent of",
                 r"$d$ and $p$ grow together"],
)
page.notation({"W": "the matrix", "A": "a matrix of bounded norm", "u": "a row over the root of $p$",
               w: "minus the spectral parameter, left of the spectrum", gamma: "columns for one row",
               (a1, a2): "eigenvalues of the inverse of a resolvent, without one row",
               (u1, u2): "the row over the root of $p$, in their vectors", x: "its form with that resolvent",
               (p, d): "rows and columns", M: "the transform as a letter", G: "the transform at an outlier $x_1$ of one side",
               (D1, D2): r"the first two derivatives there of what a spike of the size $\theta$ brings to one"})
A, u = diag(a1, a2), Matrix([u1, u2])
page.text("(i) One row. With it the inverse of the resolvent is $A$ and the row's own square. In the vectors of $A$, here two "
          "of them, the determinant, the inverse and the trace of the inverse are those without it and a part of rank one:")
form = u1**2/a1 + u2**2/a2
page.step("the determinant lemma", Determinant(A + u*u.T), a1*a2*(1 + form))
page.step("Sherman-Morrison", Inverse(A + u*u.T), Matrix([[a2 + u2**2, -u1*u2], [-u1*u2, a1 + u1**2]])/(a1*a2*(1 + form)))
page.step("the trace", Trace(Inverse(A)) - Trace(Inverse(A + u*u.T)), (u1**2/a1**2 + u2**2/a2**2)/(1 + form),
          "so that one row counts for at most $1/w$ in the trace, where all eigenvalues exceed $w$, and")
page.step("its own form", MatMul(u.T, Inverse(A + u*u.T), u), Matrix([[form/(1 + form)]]))
page.text("(ii) All rows. The resolvent times its inverse has the trace $d$, which is the sum of the rows' forms and of $w$ "
          r"times the trace $dM$. Left out, a row has the form $\gamma M$:")
page.step("the sum over rows", Subs((p*x/(1 + x) + w*d*M)/d, (x, p), (gamma*M, d/gamma)), M/(1 + gamma*M) + w*M)
b = w + 1 - gamma
root = page.let(m, 2/(b + sqrt(b**2 + 4*gamma*w)), "A quadratic equation, with the positive root")
page.text("(iii) Its slope. The equation is explicit in $w$, and")
w_of = 1/M - 1/(1 + gamma*M)
page.step("the equation, solved", Subs(w_of, M, m), w)
slope = page.step("differentiation", Derivative(w_of, M), -(2/M - w_of - 1 + gamma)/(gamma*M**2 + M))
page.step("the width", Subs(2/M - w_of - 1 + gamma, M, m), sqrt(b**2 + 4*gamma*w), "where the numerator, without its sign, is")
page.text(r"(iv) An outlier. A spike of the size $\theta$ divides the transform along itself by one less $\theta^2$ times a "
          "function of the spectral parameter. Where this vanishes there is a pole, and the square of the overlap of its vector "
          "with the spike is the residue:")
near = theta**2*(1/theta**2 + D1*(x - at) + D2*(x - at)**2/2)
page.step("the residue", Limit((x - at)*G/(1 - near), x, at), -G/(theta**2*D1))


def solved(law):
    """m and its slope of the package."""
    return {m: float(law.m(0.7)), w: 0.7, gamma: 0.5}


def sloped(law):
    """The slope in w, with the other sign."""
    return {M: float(law.m(0.7)), gamma: 0.5}, [float(law.derivative(0.7))]


page.variant("the row counted in its own resolvent", Subs((p*x/(1 + x) + w*d*M)/d, (x, p), (gamma*M, d/gamma)), (1 + w)*M,
             "its form with the resolvent that holds it is less")
page.variant("the trace over rows", Subs(w_of, M, m), Subs(1/M - 1/(1 + M/gamma), M, m), "right for as many rows as columns only")
page.therefore(m/(1 + gamma*m) + w*m, 1, "The equation of the transform:", by=[root],
               package={"hx.theories.MarchenkoPastur(0.5)": solved})
page.therefore(-1/Derivative(w_of, M), (gamma*M**2 + M)/(2/M - w_of - 1 + gamma),
               "Its slope in $w$ with the other sign, by implicit differentiation:", by=[slope],
               package={"hx.theories.MarchenkoPastur(0.5)": sloped})
page.not_shown("that forms concentrate, which is the hypothesis of leaving one out, and that rows that are not normal have the "
               "same law.")
