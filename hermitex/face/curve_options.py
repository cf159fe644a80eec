"""What each theory takes on the command line: its functions, its structure and its numbers, each named once in `OPTIONS`."""

from __future__ import annotations

from typing import NamedTuple


class CurveEntry(NamedTuple):
    """The options of a theory on the command line; `OPTIONS` describes them."""

    functions: tuple[str, ...]
    structure: tuple[str, ...]
    numbers: tuple[str, ...]
    shown: tuple[str, ...]  # order parameters in the printed table; all are in --json and --csv
    axis: str = "alpha"  # the option that varies along the curve
    words: tuple[str, ...] = ()  # options that are a word here, a file elsewhere
    solved: bool = True  # whether it has an error that is solved at every point, which --optimise and --refine look at
    model: bool = False  # whether the experiment has a --model to choose
    baselines: bool = False  # whether it has reference lines
    experiment: bool = True  # whether there is one
    tolerance: str = "1e-11"  # the default


WORDS_OF_LABELS = ("linear", "sign", "logit", "probit", "mixture")  # what --labels says where it names no file

THEORIES: dict[str, CurveEntry] = {
    "one-step": CurveEntry(("sigma", "target"), ("loss", "network", "vocabulary", "fractions", "norms", "biases", "rows", "steps"),
                      ("beta", "lam", "Delta", "alpha0", "eta", "r", "c", "gamma", "bias", "dimension"),
                      ("m", "zeta", "psi", *(f"psi{i}" for i in range(1, 4)), "q1", "q2", *(f"Gamma{i}" for i in range(1, 4))),
                      model=True, baselines=True),
    "random-features": CurveEntry(("sigma", "target"), ("loss", "link", "labels"), ("gamma", "lam", "Delta", "rho", "fraction"),
                                  ("V", "Q", "M", "b"), words=("labels",)),
    "glm": CurveEntry((), ("loss", "labels", "link", "intercept"), ("lam", "Delta", "rho", "bias", "fraction"),
                      ("V", "q", "m", "b"), words=("labels",)),
    "sgd": CurveEntry(("sigma", "target"), ("loss",), ("dimension", "m0", "step", "repetition"),
                 ("m", *(f"m{i}" for i in range(1, 7))), "t", solved=False, model=True, tolerance="1e-10"),
    "bayes-amp": CurveEntry(("target",), ("channel", "branch"), (), tuple(f"M{i}{j}" for i in "123" for j in "123" if i <= j),
                            model=True, tolerance="1e-9"),
    "kernel": CurveEntry(("target",), (), ("kappa_p",), ("degree",), "kappa", experiment=False),
    "ridge": CurveEntry((), (), ("p", "lam", "noise", "tail", "eigenvalues", "coefficients", "multiplicity"),
                        ("bias", "variance", "nu_1", "nu_2"), "n"),
    "source-capacity": CurveEntry((), ("capacity", "source"), ("ell", "q", "noise"),
                                  ("bias", "variance", "bias_rate", "variance_rate"), "n"),
    "kernel-ridge": CurveEntry(("sigma", "target"), ("kernel", "data"), ("dimension", "lam", "noise", "p"),
                               ("bias", "variance", "nu_2"), "n"),
    "covariate": CurveEntry((), ("loss", "link", "features", "teacher", "labels"),
                            ("lam", "Delta", "Omega", "Psi", "Phi", "theta", "share"), ("V", "q", "m")),
    "giant-step": CurveEntry(("sigma", "target"), (), ("u", "Delta", "dimension"), ("cosine",), "samples", solved=False),
    "tree": CurveEntry(("target",), ("P", "epsilon1", "scenario"), (), ("degree",), "kappa"),
    "committee": CurveEntry(("sigma",), ("target", "students", "teachers", "readout"),
                            ("gamma", "Delta", "second", "dimension", "seed"),
                            ("risk", "Q11", "Q12", "Q22", "M11", "M21", "M12", "M22", "a1", "a2"), "t", solved=False,
                            tolerance="1e-8; 1e-6 for averages without a closed form"),
    "small-step": CurveEntry(("sigma", "target"), (), ("psi1", "psi2", "Delta"),
                        ("theta", "singular_value", "edge", "alignment_target", "alignment_readout"), "eta", solved=False),
    "small-step-ridge": CurveEntry(("sigma", "target"), (), ("psi1", "psi2", "lam", "eta", "Delta"), ()),
    "intermediate-step": CurveEntry(("sigma", "target"), (), ("s", "psi1", "psi2", "lam", "Delta"), ("outliers", "overlap")),
    "spectral": CurveEntry(("target",), ("channel", "T"), (), ("squared_overlap", "eigenvalue", "edge"), solved=False),
    "spiked-covariance": CurveEntry(("target",), ("sigma", "flow"), ("gamma_1", "gamma_2", "dimension", "m0", "a0"),
                                    ("omega", "cosine", "a"), "t",
                                    solved=False, tolerance="1e-7"),
    "mean-field-parity": CurveEntry((), ("k",), ("dimension",), ("samples", "width", "time",
                                                            "effective_dimension_exponent", "effective_dimension"),
                                    solved=False),
    "batch-reuse": CurveEntry(("sigma", "target"), ("loss",), ("eta", "steps"), ("cosine_1", "cosine_2", "overlap_2", "norm_2"),
                              solved=False),
}
# what varies along a curve -> (placeholder, help, an example); `own_words` says what of them one theory takes
AXES: dict[str, tuple[str, str, str]] = {
    "alpha": ("A", "samples n/d; random-features, covariate: samples n/p; mean-field-parity: relevant inputs larger by d^(A/2)",
              "0.2:3:50; mean-field-parity: 0:1:11"),
    "t": ("T", "sgd: times gamma n; committee: times gamma n/(p d); spiked-covariance: times of the flow", "0:20:50"),
    "samples": ("S", "giant-step: n/d^l, l the order of the target", "0.1,1,10"),
    "n": ("N", "ridge, kernel-ridge, source-capacity: numbers of samples; ridge: inf, too", "10,100,1000"),
    "kappa": ("K", "kernel, tree: log n/log d, n = d^kappa samples", "0:4:81"),
}
TEXT, LIST, NUMBER, WHOLE, ARRAY, SWITCH = "text", "list", "number", "whole number", "array", "switch"
# option -> (what it is, placeholder, help)
OPTIONS: dict[str, tuple[str, str, str]] = {
    "sigma": (TEXT, "S", "activation: a name (tanh, gelu) or an expression in z; several make a curve each: relu,tanh"),
    "target": (TEXT, "G", "target: a name or an expression in z (one-step, sgd, bayes-amp, spectral, kernel, giant-step: or in z1, "
               "z2, ...); several make a curve each; committee: the teacher's neuron (default: the activation)"),
    "loss": (TEXT, "L", "square (default), logistic, hinge, huber:DELTA, or an expression in y and f; "
             "several make a curve each: hinge,logistic (random-features, glm, covariate: square is half the squared difference, "
             "and train_error its mean); sgd: correlation (default) or square; batch-reuse: square or "
             "correlation"),
    "network": (TEXT, "srf|exact", "equivalent spiked features (default), or the trained network itself"),
    "channel": (TEXT, "C", "bayes-amp, spectral: law of the label, gaussian:V with noise of variance V, flip:P with a sign flipped "
                "with probability P, or another of `hermitex exponents --help` (default: deterministic)"),
    "branch": (TEXT, "uninformed|informed", "bayes-amp: from no overlap (default), or from perfect overlap"),
    "vocabulary": (LIST, "u1,u2", "values of the readout at initialisation"),
    "fractions": (LIST, "p1,p2", "their shares of the neurons (default: equal)"),
    "norms": (LIST, "c1,c2", "squared norms of their rows"),
    "biases": (LIST, "b1,b2", "shifts of their pre-activations, beside --bias (default: 0)"),
    "rows": (TEXT, "sphere|gaussian", "rows of the bulk; orthogonal with a vocabulary"),
    "beta": (NUMBER, "B", "width p/d (default: 1)"),
    "lam": (NUMBER, "L", "ridge"),
    "Delta": (NUMBER, "D", "variance of the label noise (default: 0; covariate --labels: what the fit leaves)"),
    "alpha0": (NUMBER, "A", "batch of the gradient step, n/d; inf is allowed"),
    "eta": (NUMBER, "H", "rate of the gradient step over d; batch-reuse: the rate; small-step: the size of the gradient step, a "
            "range for the curve: 0.5:5:50; small-step-ridge: the size of the gradient step, 0 for none"),
    "r": (NUMBER, "R", "scale of the spike, instead of --alpha0 --eta"),
    "c": (NUMBER, "C", "variance of the bulk"),
    "gamma": (NUMBER, "G", "overlap of spike and target; random-features: d/p, so that n/d = alpha/gamma; "
              "committee: the learning rate, t = gamma n/(p d)"),
    "bias": (NUMBER, "b", "shift of every pre-activation (default: 0); glm --intercept: of the teacher's field"),
    "rho": (NUMBER, "R", "glm: |theta|^2/d of the teacher, or of the clusters' centre (default: 1); random-features: "
            "|v|^2/d of the clusters' centre (default: 1)"),
    "fraction": (NUMBER, "F", "--labels mixture: the share of labels 1 (default: 1/2)"),
    "intercept": (SWITCH, "", "glm: an output with a constant, without penalty; labels of +-1 only"),
    "dimension": (NUMBER, "d", "adds the 1/d term of the theory; also the d of --simulate; sgd: the start is d^(-1/2); giant-step: "
                  "adds the terms of order d^(-1/2), for one direction; also the d of --simulate; "
                  "committee: a random start at that d; kernel-ridge, spiked-covariance: of the data; "
                  "mean-field-parity: of the effective dimension"),
    "m0": (NUMBER, "M", "sgd: every overlap at t = 0; spiked-covariance: <w, mu> (default: d^(-1/2))"),
    "steps": (WHOLE, "T", "one-step: giant steps, each on a batch of its own (default: 1); batch-reuse: full-batch steps, 1 or 2 "
              "(default: 2)"),
    "s": (NUMBER, "S", "intermediate-step: the gradient step is d^S, 1/2 < S < 1"),
    "T": (TEXT, "T", "spectral: the label map, an expression in y (default: the best, 1 - 1/E[z^2|y])"),
    "step": (NUMBER, "S", "sgd: the learning rate gamma times d (default: 0, the flow)"),
    "P": (TEXT, "q:p,..", "tree: the polynomial P_k by its Hermite coefficients, 2:1/2,3:1/6"),
    "epsilon1": (TEXT, "E", "tree: groups of d^E directions, 0 < E <= 1"),
    "scenario": (TEXT, "I|II|III", "tree: fixed features (default), first layer and readout, both layers"),
    "students": (TEXT, "P", "committee: neurons of the student (default: 2)"),
    "teachers": (TEXT, "K", "committee: neurons of the teacher (default: 1)"),
    "readout": (TEXT, "fixed|trained", "committee: the second layer stays (default), or follows its gradient"),
    "second": (NUMBER, "R", "committee: learning rate of the second layer over that of the first (default: 1)"),
    "seed": (NUMBER, "S", "committee: of the random start at --dimension (default: 0)"),
    "u": (NUMBER, "U", "giant-step: the step over d^((l-1)/2)"),
    "psi1": (NUMBER, "P", "small-step, small-step-ridge, intermediate-step: samples of the gradient step, n/d"),
    "psi2": (NUMBER, "P", "small-step, small-step-ridge, intermediate-step: width N/d"),
    "kappa_p": (NUMBER, "K", "kernel: log p/log d of random features (default: inf, the kernel)"),
    "link": (TEXT, "linear|sign|logit|probit", "how labels are made of the teacher's field (default: linear); --labels says "
             "the same. covariate: how labels are made of the teacher's field (default: linear), or a function G of it"),
    "features": (ARRAY, "F.csv", "covariate: samples of the student's features, a row each (or .npy)"),
    "teacher": (ARRAY, "F.csv", "covariate: of the teacher's (default: the same)"),
    "labels": (ARRAY, "F.csv", "covariate: one a sample; their linear fit is the teacher, the rest is noise, "
               "the default of --Delta; labels of +-1 with --link sign (default: a random teacher); or the word of "
               "--link. glm: linear (default), sign, logit, probit or mixture, two Gaussian clusters of variance --Delta "
               "(default: 1). random-features: the word of --link; or mixture, instead of --target"),
    "Omega": (ARRAY, "F", "covariate: instead of --features, E v v^T of the student, a matrix or its diagonal"),
    "Psi": (ARRAY, "F", "covariate: E u u^T of the teacher"),
    "Phi": (ARRAY, "F", "covariate: E u v^T"),
    "theta": (ARRAY, "F", "covariate: the teacher's weights"),
    "share": (ARRAY, "F", "covariate: of each entry of diagonals (default: equal)"),
    "kernel": (TEXT, "features|ntk|product", "kernel-ridge: of random features (default), of a trained two-layer network, or "
               "the formula --sigma of t = <x, x'>/d"),
    "data": (TEXT, "sphere|gaussian", "kernel-ridge: the law of x (default: sphere)"),
    "p": (NUMBER, "P", "ridge, kernel-ridge: random features (default: inf, the kernel itself)"),
    "noise": (NUMBER, "D", "ridge, kernel-ridge, source-capacity: variance of the label noise (default: 0)"),
    "capacity": (TEXT, "A", "source-capacity: eigenvalues k^-A, A > 1: 3/2"),
    "source": (TEXT, "R", "source-capacity: coefficients of the target k^(-A R - 1/2): 3/10"),
    "ell": (NUMBER, "L", "source-capacity: the ridge is n^-(L - 1); several make a curve each"),
    "q": (NUMBER, "Q", "source-capacity: n^Q random features (default: inf, the kernel itself)"),
    "tail": (NUMBER, "T", "ridge: the sum of infinitely many infinitesimal eigenvalues (default: 0)"),
    "eigenvalues": (ARRAY, "F", "ridge: of the kernel: a file (.npy, .csv, .txt) or a formula, \"k**(-3/2), 1..10000\""),
    "coefficients": (ARRAY, "F", "ridge: of the target on the eigenfunctions: likewise"),
    "multiplicity": (ARRAY, "F", "ridge: of each eigenvalue: likewise (default: 1)"),
    "flow": (TEXT, "preconditioned|rescaled|normalised|spherical", "spiked-covariance: a neuron sigma(<w, x>/s), s the size of its "
             "field, with its gradient times s^2 Sigma^(-1) (default), s^2 or 1; or sigma(<w, x>), |w| = 1"),
    "gamma_1": (NUMBER, "G", "spiked-covariance: the spike's overlap with the target is d^-G, 0 <= G <= 1/2 (default: 0)"),
    "a0": (NUMBER, "A", "spiked-covariance: the overlap with the target at t = 0, where gamma_1 > 0 (default: d^(-1/2))"),
    "gamma_2": (NUMBER, "G", "spiked-covariance: the spike is theta = d^G, 0 <= G < 1"),
    "k": (TEXT, "K", "mean-field-parity: of how many coordinates (default: 2)"),
    "repetition": (NUMBER, "R", "sgd: each sample is seen twice, first with a step of R/d (default: 0, once)"),
}
