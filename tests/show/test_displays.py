"""Every public result shows itself in a notebook, as formulas, in the order in which its equations were given."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from sympy import Function, sqrt, symbols

import hermitex as hx
from hermitex.show.display import letter, number
from hermitex.symbols import V, Vhat, alpha, c, kappa, lamda, m, r, z, z1, z2

f, sigma = Function("f"), Function("sigma")


def _system():
    mu1 = symbols("mu_1", real=True)
    return hx.System({Vhat: alpha*hx.E(mu1**2, kappa)/(1 + V), V: 1/(lamda + Vhat)}, observables={"test_error": V**2},
                     where={mu1: hx.E(z*hx.tanh(r*kappa + sqrt(c)*z), z)/sqrt(c)})


def _page():
    page = hx.Result("A slope", r"The mean slope is $\mu_1$.", source="cui2024", assumptions=["$z$ is standard normal"])
    page.step("Stein", hx.E(z*sigma(z), z), hx.E(hx.Derivative(sigma)(z), z))
    return page


RESULTS = {
    "Expansion": lambda: hx.expand("relu(z)", order=4, basis="orthonormal"),
    "Exponents": lambda: hx.exponents("z**3 - 3*z"),
    "Exponents, several": lambda: hx.exponents("z1 + z1*z2"),
    "Derivation": lambda: hx.stein(z*hx.tanh(kappa + z), z),
    "Check, proved": lambda: hx.check("E(z*tanh(z))", "E(1 - tanh(z)**2)"),
    "Check, refuted": lambda: hx.check(hx.E(z*f(2*z), z), hx.E(hx.Derivative(f)(2*z), z)),
    "System": _system,
    "Kernel": lambda: hx.compile(hx.E(z*hx.tanh(kappa + z), z)),
    "Solution": lambda: hx.theories.glm().solve(alpha=[1, 2], lam=0.1),
    "Curve": lambda: hx.curve("one-step", sigma="tanh", target="sin", alpha=[1, 2], r=1, c=1, gamma=1, lam=0.1),
    "Theory": lambda: hx.theories.one_step("tanh", "sin"),
    "Bounds": lambda: hx.theories.bounds("tanh", "sin", r=0.9),
    "Spectrum": lambda: hx.theories.spectrum("tanh", r=1, c=1, alpha=2, beta=1, points=50),
    "Spike": lambda: hx.theories.spike("tanh", "sign"),
    "Target": lambda: hx.theories.target_moments("sin"),
    "Result": _page,
    "mu": lambda: hx.mu(hx.gelu, 1),
    "mu, no closed form": lambda: hx.mu(hx.tanh, 1),
    "mu_star": lambda: hx.mu_star("erf"),
    "Activation": lambda: hx.tanh,
    "Expectation": lambda: hx.E("z*relu(z)"),
    "Tensor": lambda: hx.tensor("z1*z2", 2),
    "SGD": lambda: hx.theories.sgd("erf", "sign"),
}


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
    result = RESULTS[name]()
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


GOLDEN = [
    (hx.expand("relu(z)", order=4, basis="orthonormal").latex(),
     r"\max\left(0, z\right) = \frac{\sqrt{2}}{2 \sqrt{\pi}} + \frac{1}{2} h_{1}(z) + \frac{1}{2 \sqrt{\pi}} h_{2}(z)"
     r" - \frac{\sqrt{3}}{12 \sqrt{\pi}} h_{4}(z) + \cdots"),
    (hx.expand("1 - z", order=2, basis="monic").latex(), r"1 - z = 1 - \mathrm{He}_{1}(z) + \cdots"),
    (hx.mu("z**3", 0).latex(), r"\mu_{0}(\kappa) = 3 c \kappa r + \kappa^{3} r^{3}"),
    (hx.mu(hx.tanh, 1).latex(),
     r"\mu_{1}(\kappa) = \frac{\mathbb{E}_{z}\left[z \tanh{\left(\sqrt{c} z + \kappa r \right)}\right]}{\sqrt{c}}"),
    (hx.tensor(z1*z2, 2).latex(), r"C_{2} = \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix}"),
    (hx.tensor(z1**2*z2, 3).latex(), r"\langle C_{3},\, y^{\otimes 3}\rangle = 6 y_{1}^{2} y_{2}"),
    (hx.check("E(z*sign(z))", "2/sqrt(pi)").latex(),
     r"\mathbb{E}_{z}\left[z \operatorname{sign}{\left(z \right)}\right] \neq \frac{2}{\sqrt{\pi}}"),
    (hx.stein(z*f(z), z).latex(),
     "\\begin{align}\n\\mathbb{E}_{z}\\left[z f{\\left(z \\right)}\\right] "
     "&= \\mathbb{E}_{z}\\left[f^{\\prime}\\left(z\\right)\\right]"
     " && \\text{(Stein's lemma \\cite{stein1981})}\n\\end{align}"),
    (hx.compile(hx.E(z*hx.tanh(kappa + z), z)).latex(),
     r"(\kappa) \mapsto \mathbb{E}_{z}\left[z \tanh{\left(\kappa + z \right)}\right]"),
    (hx.theories.spike("tanh", "sign").latex().splitlines()[-2].strip(),
     r"\gamma &= \frac{\sqrt{2}}{\sqrt{\pi} \sqrt{\frac{2}{\pi} + \frac{\Delta + 1}{\alpha_0}}}"),
    (letter("qhat1"), r"\hat{q}_{1}"), (letter("test_error"), r"\varepsilon_{\mathrm{test}}"), (letter("lamda"), r"\lambda"),
    (number(9.8896e-6, 4), r"9.89 \cdot 10^{-6}"), (number(float("inf")), r"\infty"), (number(0.25), "0.25"),
]


@pytest.mark.parametrize("written, expected", GOLDEN, ids=range(len(GOLDEN)))
def test_golden_latex(written, expected):
    assert written == expected


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
    assert r"\neq" in shown and "the sides differ by the factor 2" in shown and "f = tanh" in shown
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


