"""Every public result shows itself in a notebook, as formulas, in the order in which its equations were given."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sympy import Basic, Function, sqrt, symbols

import hermitex
import hermitex as hx
import hermitex.experiments
from hermitex.show.display import Shown, letter, number
from hermitex.show.plots import heat_map
from hermitex.symbols import V, Vhat, alpha, c, kappa, lamda, m, r, y, z, z1, z2
from hermitex.theories import glm, random_features

f, sigma = Function("f"), Function("sigma")


def _system():
    mu1 = symbols("mu_1", real=True)
    return hx.System({Vhat: alpha*hx.E(mu1**2, kappa)/(1 + V), V: 1/(lamda + Vhat)}, observables={"test_error": V**2},
                     where={mu1: hx.E(z*hx.tanh(r*kappa + sqrt(c)*z), z)/sqrt(c)})


def _page():
    page = hx.Result("A slope", "The mean slope in $z$.", source="cui2024", assumptions=["$z$ is standard normal"])
    page.step("Stein", hx.E(z*sigma(z), z), hx.E(hx.Derivative(sigma)(z), z))
    return page


@cache
def _sgd():
    return hx.theories.sgd("erf", "sign")


@cache
def _measured():
    from hermitex.experiments.one_step_experiment import simulate

    return simulate(hx.theories.one_step("tanh", "sin"), [1, 2], r=1, c=1, gamma=1, lam=0.1, dimension=30, seeds=2)


@cache
def _predicted():
    return hx.curve("one-step", sigma="tanh", target="sin", alpha=[1, 2], r=1, c=1, gamma=1, lam=0.1)


def _agreement():
    from hermitex.experiments.statistics import agreement

    return agreement(_predicted(), _measured())


def _escapes():
    from hermitex.experiments.escapes import escapes

    return escapes(hx.theories.sgd("z**2/2", "He2(z)/sqrt(2)"), [32, 64], step=0.2, seeds=4)


def _refuted():
    return hx.check(hx.E(z*f(2*z), z), hx.E(hx.Derivative(f)(2*z), z))


def _exported():
    with TemporaryDirectory() as folder:
        return _system().export(Path(folder)/"solver.py")


def _gaussian():
    return hx.Channel(hx.parse("exp(-(y - z)**2/2)/sqrt(2*pi)", symbols="y"), "y")


RESULTS = {
    "Atlas": hx.atlas,
    "SmallStepRidge": lambda: hx.theories.small_step("tanh", "sin").ridge,
    "IntermediateStep": lambda: hx.theories.intermediate_step("tanh", "sin"),
    "BatchReuse": lambda: hx.theories.batch_reuse("relu", "He3"),
    "SeveralSteps": lambda: hx.theories.one_step("softplus", "z1 + z1*z2", steps=2),
    "SpikedLetters": lambda: hx.theories.one_step("relu", "z1 + z1*z2", spikes=[[1.2, 0], [0, 1.5]], overlaps=[[0.9, 0], [0, 0.8]]),
    "StepsOfLetters": lambda: hx.theories.one_step("erf", "z1 + z1*z2", vocabulary=[1, -1.5], steps=2),
    "Expansion": lambda: hx.expand("relu(z)", order=4, basis="orthonormal"),
    "Expansion, several": lambda: hx.expand("z1*relu(z2)", order=3, basis="monic"),
    "Exponents": lambda: hx.exponents("z**3 - 3*z"),
    "Exponents, several": lambda: hx.exponents("z1 + z1*z2"),
    "LabelMap": lambda: hx.exponents("z**2").label_map(),
    "Unlearned": lambda: hx.exponents("z1 + z1*z2").unlearned(steps=1),
    "ExponentsTable": lambda: hx.exponents(["z**3 - 3*z", "z**2"]),
    "Certificate": lambda: hx.exponents("z**3 - 3*z").certificates[-1],
    "Threshold": lambda: hx.exponents("z**2").threshold,
    "Threshold, hard": lambda: hx.exponents("z**2*exp(-z**2)").threshold,
    "Channel": _gaussian,
    "Derivation": lambda: hx.stein(z*hx.tanh(kappa + z), z),
    "Step": lambda: hx.stein(z*hx.tanh(kappa + z), z).steps[0],
    "DerivationCheck": lambda: hx.stein(z*hx.tanh(kappa + z), z).check(),
    "Check, proved": lambda: hx.check("E(z*tanh(z))", "E(1 - tanh(z)**2)"),
    "Check, refuted": _refuted,
    "CounterExample": lambda: _refuted().counter_example,
    "System": _system,
    "Exported": _exported,
    "Kernel": lambda: hx.compile(hx.E(z*hx.tanh(kappa + z), z)),
    "Solution": lambda: hx.theories.glm().solve(alpha=[1, 2], lam=0.1),
    "Solution, one point": lambda: hx.theories.glm().solve(alpha=1, lam=0.1),
    "Flow": lambda: _sgd().flow,
    "Flow, formulas alone": lambda: hx.theories.committee("abs(z)*tanh(z)", students=2).flow,
    "Branch": lambda: hx.System({m: m + alpha - m**2}).follow("alpha", (0.1, 1), start={"m": 1}),
    "Trajectory": lambda: _sgd().solve(t=[0, 1], dimension=100),
    "Sweep": lambda: hx.sweep(hx.theories.glm(), {"alpha": [1, 2], "lam": [0.1, 1]}),
    "Curve": _predicted,
    "Curve, measured": _measured,
    "Curve, both": lambda: _predicted().with_simulation(_measured()),
    "Agreement": _agreement,
    "Baselines": lambda: hx.baselines("one-step", sigma="tanh", target="sign", alpha=[1, 2], lam=0.1),
    "Theory": lambda: hx.theories.one_step("tanh", "sin"),
    "Theory, convex loss": lambda: hx.theories.one_step("tanh", "sign", loss="logistic"),
    "Theory, trained network": lambda: hx.theories.one_step("tanh", "sin", network="exact"),
    "Theory, vocabulary": lambda: hx.theories.one_step("tanh", "sin", vocabulary=[1, -1], fractions=[0.5, 0.5]),
    "Theory, random features": lambda: hx.theories.random_features("tanh", "sin"),
    "Theory, regression": lambda: hx.theories.glm(),
    "Theory, several directions": lambda: hx.theories.multi_index("sign(z1*z2)"),
    "Transitions": lambda: hx.theories.multi_index("sign(z1*z2)").transitions(),
    "Report": lambda: hx.report("erf", "z1*z2"),
    "Bounds": lambda: hx.theories.bounds("tanh", "sin", r=0.9),
    "Bounds, several": lambda: hx.theories.bounds("tanh", "sin", r=[0.5, 0.9]),
    "Bounds, optimised": lambda: hx.theories.bounds("relu", "sin", optimise=True),
    "BoundsMap": lambda: hx.theories.bounds_map("erf", "sin", r=[0.5, 1.0, 1.5], c=[1.0, 2.0]),
    "BoundsMap, rates": lambda: hx.theories.bounds_map("erf", "sin", eta=[0.5, 1.0], alpha0=5),
    "Spectrum": lambda: hx.theories.spectrum("tanh", r=1, c=1, alpha=2, beta=1, points=50),
    "MarchenkoPastur": lambda: hx.theories.MarchenkoPastur(2.0),
    "Spike": lambda: hx.theories.spike("tanh", "sign"),
    "Target": lambda: hx.theories.target_moments("sin"),
    "Result": _page,
    "ResultCheck": lambda: _page().check(),
    "Checked": lambda: _page().check().steps[0],
    "mu": lambda: hx.mu(hx.gelu, 1),
    "mu, no closed form": lambda: hx.mu(hx.tanh, 1),
    "mu_star": lambda: hx.mu_star("erf"),
    "mu_star squared": lambda: hx.mu_star("erf").squared,
    "Activation": lambda: hx.tanh,
    "Expectation": lambda: hx.E("z*relu(z)"),
    "Moreau": lambda: hx.Moreau(y**2/2, y, z1, V),
    "Prox": lambda: hx.Prox(y**2/2, y, z1, V),
    "Tensor": lambda: hx.tensor("z1*z2", 2),
    "SGD": _sgd,
    "SGD, several directions": lambda: hx.theories.sgd("erf", "sign(z1) + z2"),
    "Curves": lambda: hx.curve("random-features", each="lam", lam=[0.1, 1], sigma="tanh", target="sin", alpha=[1, 2], gamma=1),
    "Curve, overlaps": lambda: hx.theories.multi_index("sign(z1*z2)").curve(alpha=[2, 3, 4]),
    "Curve, sgd": lambda: _sgd().curve([0, 1, 2], dimension=100),
    "EscapeTimes": lambda: _sgd().escape([100, 1000, 10000]),
    "Escapes": _escapes,
    "Theory, kernels": lambda: hx.theories.kernel_limit("sign"),
    "Theory, small step": lambda: hx.theories.small_step("tanh", "relu"),
    "Theory, spectral": lambda: hx.theories.spectral("abs(z)"),
    "WeightSpectrum": lambda: hx.theories.small_step("tanh", "relu").spectrum(psi1=4, psi2=0.8, eta=4),
    "Theory, ridge": lambda: hx.theories.ridge_equivalent(),
    "Theory, kernel ridge": lambda: hx.theories.kernel_ridge("relu", "z"),
    "DualKernel": lambda: hx.theories.dual_kernel("relu"),
    "InnerProduct": lambda: hx.theories.inner_product_kernel("exp(t)"),
    "Theory, committee": lambda: hx.theories.committee("erf", students=2, teachers=1),
    "Plateau": lambda: hx.theories.committee("erf", students=2, teachers=2).plateau(gamma=0.5),
    "Phases": lambda: hx.theories.committee("erf", students=1, teachers=1).phases(gamma=[0.5], students=[1], t=1),
    "Theory, covariate": lambda: hx.theories.covariate(),
    "Theory, tree": lambda: hx.theories.tree("tanh", P={2: 1, 3: 1}, epsilon1="1/2"),
    "Theory, giant step": lambda: hx.theories.giant_step("relu", "z**2"),
    "MeanFieldParity": lambda: hx.theories.mean_field_parity(3),
    "SpikedCovariance": lambda: hx.theories.spiked_covariance("He3"),
    "SourceCapacity": lambda: hx.theories.source_capacity(2, "1/3"),
    "Regimes": lambda: hx.theories.source_capacity(2, "1/3").regimes,
    "Claims": lambda: hx.theories.source_capacity().rates(),
    "Repetition": lambda: hx.theories.repetition("He3(z)", 3),
    "Power": lambda: hx.theories.repetition("He3(z)", 2).powers[1],
}
NODES = ("Expectation", "Moreau", "Prox")  # expressions: SymPy shows them
PICTURES = ("Expansion", "Curve", "Bounds", "BoundsMap", "Spectrum", "MarchenkoPastur", "EscapeTimes", "Escapes", "Baselines",
            "Transitions", "SourceCapacity", "WeightSpectrum", "Trajectory")
FRAMES = ("Expansion", "Exponents", "Solution", "Sweep", "Curve", "Bounds", "BoundsMap", "Spectrum", "EscapeTimes", "Baselines",
          "Transitions", "Agreement", "Repetition", "Trajectory", "Escapes", "WeightSpectrum")
CITED = ("Exponents", "Derivation", "Result", "Curve", "Theory", "Bounds", "BoundsMap", "Spectrum", "Spike", "Target", "mu",
         "mu_star", "SGD", "EscapeTimes", "Repetition", "Transitions", "Baselines", "System", "Claims", "SourceCapacity",
         "Regimes", "WeightSpectrum")
FORMULAS = ("Flow", "Expansion", "Threshold", "Channel", "Derivation", "Step", "Check", "System", "Kernel", "Theory",
            "MarchenkoPastur",
            "Spike", "Target", "Result", "mu", "mu_star", "Tensor", "SGD", "Repetition", "Power", "CounterExample", "Claims",
            "SourceCapacity", "Regimes")


@cache
def _made(name):
    return RESULTS[name]()


def _kind(name):
    return name.split(",")[0].removesuffix(" squared")


class _Balance(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shows_itself(name):
    result = _made(name)
    shown = {kind: getattr(result, f"_repr_{kind}_", lambda: None)() for kind in ("latex", "html", "markdown")}
    shown = {kind: text for kind, text in shown.items() if text}
    assert shown, f"a notebook would show {name} as text only"
    for kind, text in shown.items():
        without = text.replace(r"\{", "").replace(r"\}", "")
        assert without.count("{") == without.count("}")
        assert len(re.findall(r"\\left(?![a-z])", text)) == len(re.findall(r"\\right(?![a-z])", text))
        assert "mu_star" not in text and "mu_2" not in text and "+ -" not in text and "lamda" not in text
        if kind == "html":
            reader = _Balance()
            reader.feed(text)
            assert not reader.open and text.count("$") % 2 == 0
            formulas = re.findall(r"\$([^$]*)\$", text.replace("$$", "$"))
            assert not [s for s in formulas if "<" in s], "a browser reads < before MathJax does"
    first = repr(result).splitlines()[0]
    assert len(first) <= 400 and "object at 0x" not in first


@pytest.mark.parametrize("name", [n for n in RESULTS if _kind(n) not in NODES])
def test_a_result_is_data_too(name):
    result, kind = _made(name), _kind(name)
    assert json.loads(json.dumps(result.to_dict()))
    assert len(repr(result).splitlines()) == 1 or kind == "Check"
    if kind in FORMULAS:
        assert result.latex().strip()
    if kind in CITED:
        assert result.bibtex().startswith("@") or kind == "System"
    if kind in FRAMES:
        assert len(result.to_dataframe()) >= 1


@pytest.mark.parametrize("name", [n for n in RESULTS if _kind(n) in PICTURES
                                  and n not in ("Expansion, several", "Bounds, several")])
def test_a_result_is_a_picture_on_given_axes(name):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert _made(name).plot(ax) is ax and ax.has_data() and ax.get_xlabel() and ax.get_ylabel()


def test_no_public_class_is_left_out():
    shown = {cls for name in RESULTS for cls in type(_made(name)).__mro__}
    public = [getattr(place, name) for place in (hx, hx.theories) for name in place.__all__]
    classes = {cls for cls in public if isinstance(cls, type) and not issubclass(cls, Basic)}
    assert classes and classes <= shown | {type(hx)}
    for place in map(import_module, ("hermitex.theories", "hermitex.experiments", "hermitex.exponents")):
        for module in walk_packages(place.__path__, f"{place.__name__}."):
            import_module(module.name)
    here = {cls for cls in _subclasses(Shown) if cls.__module__.startswith("hermitex.") and not cls.__name__.startswith("_")}
    assert {cls.__name__ for cls in here - shown} <= {"Shown"}, "every result has an instance above"


def _subclasses(cls):
    return {cls}.union(*map(_subclasses, cls.__subclasses__()))


def test_a_display_that_fails_does_not_raise(monkeypatch):
    import hermitex.show.display as display

    made = [_made(name) for name in ("Agreement", "Baselines", "EscapeTimes", "BoundsMap", "Transitions", "Repetition")]

    def broken(*args, **kwargs):
        raise ValueError

    for name in ("letter", "number", "words_table", "number_table", "formula_table", "latex"):
        monkeypatch.setattr(display, name, broken)
    for result in made:
        result._repr_html_()
        assert repr(result)


def test_a_long_table_is_summarised():
    chart = hx.theories.bounds_map("erf", "sin", r=[0.1*k for k in range(1, 20)], c=[0.2*k for k in range(1, 20)])
    assert len(chart._repr_html_()) < 1000 and "361 points" in chart._repr_html_() and len(chart.to_dataframe()) == 361
    several = hx.theories.bounds("erf", "sin", r=[0.1*k for k in range(1, 40)])
    assert "first 12 of 39 rows" in several._repr_html_()


GOLDEN = [
    (lambda: hx.expand("relu(z)", order=4, basis="orthonormal").latex(),
     r"\max\left(0, z\right) = \frac{\sqrt{2}}{2 \sqrt{\pi}} + \frac{1}{2} h_{1}(z) + \frac{1}{2 \sqrt{\pi}} h_{2}(z)"
     r" - \frac{\sqrt{3}}{12 \sqrt{\pi}} h_{4}(z) + \cdots"),
    (lambda: hx.expand("1 - z", order=2, basis="monic").latex(), r"1 - z = 1 - \mathrm{He}_{1}(z) + \cdots"),
    (lambda: hx.mu("z**3", 0).latex(), r"\mu_{0}(\kappa) = 3 c \kappa r + \kappa^{3} r^{3}"),
    (lambda: hx.mu(hx.tanh, 1).latex(),
     r"\mu_{1}(\kappa) = \frac{\mathbb{E}_{z}\left[z \tanh{\left(\sqrt{c} z + \kappa r \right)}\right]}{\sqrt{c}}"),
    (lambda: hx.tensor(z1*z2, 2).latex(), r"C_{2} = \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix}"),
    (lambda: hx.tensor(z1**2*z2, 3).latex(), r"\langle C_{3},\, y^{\otimes 3}\rangle = 6 y_{1}^{2} y_{2}"),
    (lambda: hx.check("E(z*sign(z))", "2/sqrt(pi)").latex(),
     r"\mathbb{E}_{z}\left[z \operatorname{sign}{\left(z \right)}\right] \neq \frac{2}{\sqrt{\pi}}"),
    (lambda: hx.stein(z*f(z), z).latex(),
     "\\begin{align}\n\\mathbb{E}_{z}\\left[z f{\\left(z \\right)}\\right] "
     "&= \\mathbb{E}_{z}\\left[f^{\\prime}\\left(z\\right)\\right]"
     " && \\text{(Stein's lemma \\cite{stein1981})}\n\\end{align}"),
    (lambda: hx.compile(hx.E(z*hx.tanh(kappa + z), z)).latex(),
     r"(\kappa) \mapsto \mathbb{E}_{z}\left[z \tanh{\left(\kappa + z \right)}\right]"),
    (lambda: hx.theories.spike("tanh", "sign").latex().splitlines()[-2].strip(),
     r"\gamma &= \frac{\sqrt{2}}{\sqrt{\pi} \sqrt{\frac{2}{\pi} + \frac{\Delta + 1}{\alpha_0}}}"),
    (lambda: hx.check(hx.E(z*f(2*z), z), hx.E(hx.Derivative(f)(2*z), z)).counter_example.latex(),
     r"f = \text{tanh}: \quad 0.7294775315 \neq 0.3647387657"),
    (lambda: hx.exponents("sign(z1*z2)").threshold.latex(), r"\alpha_c = \frac{\pi^{2}}{4} = 2.46740110027"),
    (lambda: hx.exponents("z**2*exp(-z**2)").threshold.latex(), r"\alpha_c = \infty"),
    (lambda: hx.exponents("z").threshold.latex(), r"\alpha_c = 0"),
    (lambda: _gaussian().latex(), r"P(y \mid z) = \frac{\sqrt{2} e^{- \frac{\left(y - z\right)^{2}}{2}}}{2 \sqrt{\pi}}, "
     r"\quad y \in \mathbb{R}"),
    (lambda: hx.theories.MarchenkoPastur(0.25).latex(),
     r"\rho(s) = \frac{\sqrt{(s - a)(b - s)}}{2 \pi \gamma s}, \quad \gamma = 0.25, "
     r"\quad [a, b] = [0.25, 2.25]"),
    (lambda: hx.theories.repetition("He3(z)", 3).latex(), r"\min_{p \le 3} \ell\bigl((z^{3} - 3 z)^p\bigr) = 1"),
    (lambda: hx.theories.repetition("He3(z)", 2).powers[1].latex(),
     r"\mathbb{E}[g^{2}\,z] = 0,\quad \mathbb{E}[g^{2}\,\mathrm{He}_2] = 36,"
     r"\quad \ell(g^{2}) = 2"),
    (lambda: hx.stein(z*f(z), z).steps[0].latex(), r"\mathbb{E}_{z}\left[z f{\left(z \right)}\right] = "
     r"\mathbb{E}_{z}\left[f^{\prime}\left(z\right)\right]"),
    (lambda: hx.theories.target_moments("He2").latex().splitlines()[1].strip(),
     r"h(\kappa) &= \gamma^{2} \kappa^{2} - \gamma^{2} \\"),
    (lambda: letter("qhat1"), r"\hat{q}_{1}"),
    (lambda: letter("test_error"), r"\varepsilon_{\mathrm{test}}"),
    (lambda: letter("noise"), r"\mathrm{noise}"),
    (lambda: letter("Lambda1"), r"\Lambda_{1}"),
    (lambda: letter("alphabar"), r"\bar{\alpha}"),
    (lambda: letter("lamda"), r"\lambda"),
    (lambda: number(9.8896e-6, 4), r"9.89 \cdot 10^{-6}"),
    (lambda: number(float("inf")), r"\infty"),
    (lambda: number(0.25), "0.25"),
]


@pytest.mark.parametrize("written, expected", GOLDEN, ids=range(len(GOLDEN)))
def test_golden_latex(written, expected):
    assert written() == expected


def test_equations_stand_in_the_order_given():
    system = _system()
    assert system.latex() == (
        "\\begin{align}\n"
        "  \\hat{V} &= \\frac{\\alpha \\mathbb{E}_{\\kappa}\\left[\\mu_{1}^{2}\\right]}{V + 1} \\\\\n"
        "  V &= \\frac{1}{\\hat{V} + \\lambda} \\\\\n"
        "  \\mu_{1} &= \\frac{\\mathbb{E}_{z}\\left[z \\tanh{\\left(\\sqrt{c} z + \\kappa r \\right)}\\right]}{\\sqrt{c}} \\\\\n"
        "  \\varepsilon_{\\mathrm{test}} &= V^{2}\n"
        "\\end{align}")
    shown = system._repr_html_()
    places = [shown.index(text) for text in (r"\hat{V}$", r"$\displaystyle V$", r"$\displaystyle \mu_{1}$", r"\varepsilon")]
    assert places == sorted(places)


def test_the_theory_prints_in_the_order_of_the_paper():
    lines = hx.theories.one_step("tanh", "sin").latex().splitlines()
    left = [line.split("&=")[0].strip() for line in lines[1:9]]
    assert left[:4] == [r"\hat{V}_{1}", r"\hat{V}_{2}", "V_{1}", "V_{2}"]
    assert left[5:8] == [r"\zeta", r"\tilde{\zeta}", r"\psi"]
    assert any(line.strip().startswith(r"\mu_\star^2 &=") for line in lines), "the residual is no mu_2"


def test_a_refuted_claim_says_what_is_missing():
    shown = hx.check(hx.E(z*f(2*z), z), hx.E(hx.Derivative(f)(2*z), z))._repr_html_()
    assert r"\neq" in shown and "the sides differ by the factor $2$" in shown and "f = tanh" in shown
    assert r"2 \mathbb{E}_{z}\left[f^{\prime}\left(2 z\right)\right]" in shown.split("Stein")[1]


def test_a_curve_of_failed_points_is_shown():
    curve = hx.curve("one-step", sigma="tanh", target="sin", alpha=[1], r=1, c=1, gamma=1, lam=0.1)
    lost = {"test_error": curve.test_error*float("nan")}
    broken = hx.Curve(curve.theory, curve.parameters, curve.alpha, lost, converged=False)
    assert r"\text{nan}" in broken._repr_html_()


def test_a_derived_equation_has_no_sign_that_its_bracket_undoes():
    from hermitex.symbols import Delta, f, mhat, q, qhat, rho

    loss = hx.Moreau(f**2/2, f, sqrt(rho + q - 2*m + Delta)*z1, V)
    phi = (q*Vhat - V*qhat)/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2 - alpha*hx.E(loss, z1)
    assert str(hx.free_energy(phi, {V: Vhat, q: qhat, m: mhat}).equations[qhat]) == "alpha*(Delta - 2*m + q + rho)/(V + 1)**2"


def test_a_long_rule_stands_under_its_formula():
    short, long = (hx.stein(e, z)._repr_latex_() for e in (z*f(z), z**2*f(r*kappa + sqrt(c)*z)))
    assert r"&& \text{(Stein's lemma [" in short and r"\\ & \qquad \text{(" in long and r"\cite" not in short + long




def test_curves_of_two_ratios_say_which():
    """The label of the last curve stood under both: n/d of what runs along n/p."""
    ax = random_features("relu", "tanh").curve(alpha=[0.5, 1], lam=0.1, gamma=0.5).plot()
    assert ax.get_xlabel() == r"$\alpha = n/p$"
    glm().curve(alpha=[0.5, 1], lam=0.1).plot(ax)
    assert ax.get_xlabel() == r"$\alpha$"
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert r"$\alpha = n/p$" in said[0] and r"$\alpha = n/d$" in said[1]


def test_a_curve_without_a_step_is_called_random_features():
    found = hx.curve("one-step", sigma="tanh", target="sin", alpha=[1, 2], lam=0.1, r=0, c=1, gamma=0)
    assert found.label == "random features" == hx.theories.one_step("tanh", "sin").curve(alpha=1, lam=0.1, r=0, c=1, gamma=0).label


def test_cells_of_a_heat_map_on_a_logarithmic_axis_have_one_height():
    ax = heat_map(("alpha", [1, 2, 3]), ("lam", [0.01, 0.1, 1, 10]), [[1, 2, 3]]*4, "test_error")
    edges = ax.collections[0].get_coordinates()[:, 0, 1]
    assert np.allclose(np.diff(np.log10(edges)), 1) and np.allclose(ax.get_ylim(), (10**-2.5, 10**1.5))


def test_a_table_without_a_path_is_a_text():
    found = glm().curve(alpha=[1, 2], lam=0.1)
    assert found.to_csv().splitlines()[0].startswith("alpha,test_error,train_error") and len(found.to_csv().splitlines()) == 3


def test_a_zero_on_a_logarithmic_axis_is_left_out_and_no_error():
    assert heat_map(("alpha", [1, 2]), ("lam", [0, 0.1, 1]), [[1, 2]]*3, "test_error", log=(False, True)).get_yscale() == "log"
