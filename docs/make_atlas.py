"""The rows of `hx.atlas()`: python docs/make_atlas.py computes them anew and writes them into the package.

Each family names the papers that treat its targets; what they say of a target is not copied, every answer is the package's own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import hermitex as hx
from hermitex.exponents.atlas import of_activation, of_target

FILE = Path(__file__).parents[1]/"hermitex"/"exponents"/"atlas.json"

# family -> (papers that treat such targets, targets; a channel stands after a semicolon)
FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "one direction: polynomials": (("benarous2021", "damian2023"), (
        "z", "z**2", "z**3", "He3(z)", "He4(z)", "He5(z)", "He6(z)", "z**2 + He3(z)", "z + He2(z)", "z**3 - 3*z + z**2 - 1",
        "He8(z) + He4(z)/3", "z**6 - 3*z**4")),
    "one direction: activations": (("damian2024", "troiani2025"), (
        "relu(z)", "abs(z)", "sign(z)", "tanh(z)", "erf(z)", "sigmoid(z)", "softplus(z)", "gelu(z)", "silu(z)", "elu(z)", "sin(z)",
        "cos(z)", "exp(z)", "Heaviside(abs(z) - 1)", "tanh(z) - z*E(z*tanh(z))", "gelu(z) - z/2")),
    "one direction: generative exponent above 1": (("damian2024",), (
        "z*sin(z)", "z**2*exp(-z**2)", "log(cosh(z))", "sign(z**2 - 1)", "z**2 - z**4/6", "He4(z)**2")),
    "one direction: noise": (("damian2024", "troiani2025"), (
        "z**2; gaussian:1/4", "abs(z); gaussian:1/2", "He3(z); gaussian:1", "sign(z); flip:1/10", "sigmoid(z); bernoulli",
        "sigmoid(He3(z)); bernoulli", "z**2; poisson", "exp(z); poisson", "z; multiplicative", "z; random_sign", "z; sign:1/10")),
    "several directions: staircases": (("abbe2023", "dandi2023"), (
        "z1 + z1*z2", "z1 + z1*z2 + z1*z2*z3", "z1 + z1*z2 + z1*z2*z3 + z1*z2*z3*z4", "z1 + z1*z2*z3", "z1*z2 + z1*z2*z3*z4",
        "z1 + He3(z1)*z2 + He3(z2)*z3", "z1 + sign(z1*z2)", "He3(z1) + z2**2")),
    "several directions: products and parities": (("abbe2023", "troiani2025"), (
        "z1*z2", "z1*z2*z3", "z1*z2*z3*z4", "sign(z1*z2)", "sign(z1*z2*z3)", "sign(z1*z2*z3*z4)", "He2(z1)*He2(z2)", "abs(z1*z2)",
        "sign(z1*z2) + sign(z3*z4)", "z1**2 + sign(z1*z2*z3)", "He4(z1) + sign(z1*z2*z3)", "sign(z1*z2); flip:1/10",
        "z1*z2; gaussian:1/4")),
    "several directions: committees and sums": (("saadsolla1995", "goldt2019", "troiani2025"), (
        "z1**2 + z2**2", "z1**2 + z2**2 + z3**2", "abs(z1) + abs(z2)", "sign(z1) + sign(z2)", "sign(z1) + sign(z2) + sign(z3)",
        "relu(z1) + relu(z2)", "erf(z1) + erf(z2)", "tanh(z1) + tanh(z2)", "tanh(z1)*tanh(z2)", "relu(z1) - relu(z2)",
        "z1 + abs(z2)", "Max(z1, z2)", "z1**2 - z2**2", "exp(z1*z2/4)")),
}
ACTIVATIONS = ("relu", "leaky_relu", "abs", "sign", "Heaviside", "tanh", "erf", "Phi", "sigmoid", "softplus", "gelu", "silu", "elu",
               "selu", "relu6", "hardtanh", "hardsigmoid", "sin", "cos", "exp")


def rows() -> list[dict[str, Any]]:
    """An answer for each target, in order."""
    asked = [(family, papers, *map(str.strip, f"{text};".split(";")[:2]))
             for family, (papers, texts) in FAMILIES.items() for text in texts]
    made = []
    for i, (family, papers, target, channel) in enumerate(asked, 1):
        print(f"[{i} of {len(asked)}] {target} {channel}", file=sys.stderr, flush=True)
        made.append({"family": family, **of_target(target, hx.exponents(target, channel or None)), "treated_in": list(papers)})
    return made


def main() -> None:
    """Write the file, one row a line."""
    found = {"targets": rows(), "activations": [of_activation(name) for name in ACTIVATIONS]}
    text = ",\n".join(f' "{part}": [\n' + ",\n".join("  " + json.dumps(row) for row in listed) + "\n ]"
                      for part, listed in found.items())
    FILE.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    undecided = [row["target"] for row in found["targets"] if row["open"]]
    print(f"{len(found['targets'])} targets, {len(found['activations'])} activations; undecided: {', '.join(undecided) or 'none'}")


if __name__ == "__main__":
    main()
