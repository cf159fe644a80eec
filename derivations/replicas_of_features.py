r"""The free energy of features after one giant step by replicas: blocks with matrices for entries, n -> 0, no temperature."""

from sympy import (
    Derivative,
    Determinant,
    Function,
    Identity,
    Inverse,
    KroneckerProduct,
    Limit,
    MatMul,
    Matrix,
    OneMatrix,
    Subs,
    diag,
    exp,
    eye,
    log,
    oo,
    sqrt,
    symbols,
)

from hermitex import E, Result
from hermitex.symbols import V, z, z1

n, b, v, L = symbols("n beta v L", positive=True)
k = symbols("k_1:3", positive=True)
V1, V2, Vhat1, Vhat2, q1, q2, qhat1, qhat2 = symbols("V_1 V_2 Vhat_1 Vhat_2 q_1 q_2 qhat_1 qhat_2", positive=True)
h = symbols("h_1:3", real=True)
rest = symbols("R", real=True)
g = Function("g")


def blocks(own, everywhere):
    """The matrix of n replicas of several coordinates, with these matrices on the diagonal alone and everywhere."""
    return KroneckerProduct(Identity(n), own) + KroneckerProduct(OneMatrix(n, n), everywhere)


def slope(value):
    """In the number of replicas, at none."""
    return Subs(Derivative(value, n), n, 0)


page = Result(
    "The free energy of features after one giant step, by replicas",
    "The readout of features that are equivalent to Gaussian ones is replicated with all its coordinates, so that the blocks of "
    "replicas have matrices for entries. At no replicas and no temperature the entropy and the cost of a sample are those of the "
    "learning curve.",
    source="cui2024", place="the replica computation",
    assumptions=["the slope at zero is that of the formula at integers, and its order with the limit of many dimensions does "
                 "not matter", "replica symmetry, which holds for convex problems",
                 "the features are equivalent to Gaussian ones at a fixed projection of the input on the spike (Result 3.2)"],
)
page.notation({n: "the number of replicas", b: "the inverse temperature",
               k: "the squared sizes of the rows' images, in directions of the readout in which these are orthogonal",
               L: r"the ridge and $\hat V_2$", h: "the pull of the conjugates of the linear overlaps along these directions",
               v: "the variance that the output of a replica has beside what is shared",
               V: "the susceptibility, which is that times the inverse temperature",
               g: "the residual of a sample that all replicas share, as a function of the normals in it",
               rest: "a value of it",
               (q1, V1): r"the overlap of two replicas between the rows, and $\beta$ times what that of one with itself has more",
               (q2, V2): "the same of the readout",
               (Vhat1, qhat1, Vhat2, qhat2): "their conjugates"})
size, tied = L*eye(2) + Vhat1*diag(*k), qhat2*eye(2) + qhat1*diag(*k)
page.text("(i) Blocks. The readout enters by its square and by that of its image in the rows, with a matrix between the neurons. "
          "So all replicas together have an inverse covariance of blocks, one matrix in each place of the diagonal and another one "
          "everywhere; here are two directions of many. By the determinant lemma, for any number of replicas,")
page.step("the determinant lemma", Determinant(blocks(size, diag(*k))), size.det()**(n - 1)*(size + n*diag(*k)).det())
stiff, all_ = b*size, -b**2*tied
form = (Matrix([h])*(stiff + n*all_).inv()*Matrix(h))[0]
page.text("and the form of a vector that is the same for all replicas, as the linear overlaps pull them, is by Sherman and "
          "Morrison")
page.step("Sherman-Morrison", MatMul(KroneckerProduct(OneMatrix(1, n), Matrix([h])), Inverse(blocks(stiff, all_)),
                                     KroneckerProduct(OneMatrix(n, 1), Matrix(h))), Matrix([[n*form]]))
page.text(r"(ii) Entropy. A replica is held by $\beta$ times $L$ and $\hat V_1$ times the squares, two replicas by minus the "
          r"square of $\beta$ times the other conjugates. At no replicas the logarithm of the determinant has the slope")
volume = page.step("no replicas", slope(log(Determinant(blocks(stiff, all_)))),
                   sum(log(stiff[i, i]) + all_[i, i]/stiff[i, i] for i in range(2)))
pulled = page.step("no replicas", slope(n*form), sum(h[i]**2/stiff[i, i] for i in range(2)), "and the form")
entropy = sum((tied[i, i] + h[i]**2)/size[i, i] for i in range(2))/2
whole = (-volume.rhs + b**2*pulled.rhs)/2
page.step("no temperature", Limit(whole/b, b, oo), entropy,
          r"Half the second, times the square of $\beta$, less half the first is the entropy; over the inverse temperature it "
          "tends to")
page.text("(iii) Energy. The residual of a replica on a sample is what all of them share and a normal of its own. Given the "
          "former, the mean of a Boltzmann factor is")
page.step("Gaussian integration", E(exp(-b*(rest - sqrt(v)*z1)**2/2), z1), exp(-b*rest**2/(2*(1 + b*v)))/sqrt(1 + b*v))
shared = E(exp(-n*b*g(z)**2/(2*(1 + b*v))), z)*(1 + b*v)**(-n/2)
energy = -log(1 + b*v)/2 - b*E(g(z)**2, z)/(2*(1 + b*v))
loss = page.step("no replicas", slope(shared), energy,
                 "and the mean over what is shared, whatever its law, of the product over replicas has the slope")
cold = page.step("no temperature", Limit(Subs(energy, v, V/b)/b, b, oo), -E(g(z)**2, z)/(2*(1 + V)),
                 "Over the inverse temperature, with the susceptibility $V$, it tends to")
page.text("(iv) Coupling. Both pairs of overlaps, times their conjugates, have the slope")
page.step("no replicas", slope(sum(n*b*hat*(q + w/b) - b**2*s*(n*(q + w/b) + n*(n - 1)*q) for q, w, hat, s in (
    (q1, V1, Vhat1, qhat1), (q2, V2, Vhat2, qhat2)))/2), b*sum(hat*(q + w/b) - s*w for q, w, hat, s in (
        (q1, V1, Vhat1, qhat1), (q2, V2, Vhat2, qhat2)))/2)
page.variant("one replica", volume.lhs, sum(log(stiff[i, i] + all_[i, i]) for i in range(2)),
             "the mean of the partition function for that of its logarithm")
page.variant("the variance of a replica in what is shared", cold.lhs, -(E(g(z)**2, z) + v)/(2*(1 + V)),
             "at no temperature a replica and another one overlap alike")
page.therefore((b**2*pulled.lhs - volume.lhs)/2, b*entropy - sum(log(x) for x in (stiff[0, 0], stiff[1, 1]))/2,
               "The entropy, of which what is in proportion to the inverse temperature stays:", by=[volume, pulled], package=None)
page.not_shown("the sums over many directions, which `marchenko_pastur.py` has, the mean square of the residual and the "
               "derivatives of the free energy, which `learning_curve.py` has.")
