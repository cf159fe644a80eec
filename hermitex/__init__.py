"""hermitex: a symbolic-numeric derivation assistant for learning theory in high-dimensional Gaussian models.

The public names are imported when they are first used (PEP 562); importing the package computes nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> (module, its name there)
_PUBLIC: dict[str, tuple[str, str]] = {
    "E": ("symbolic.gaussian", "E"),
    "Expectation": ("symbolic.gaussian", "Expectation"),
    "closed_form": ("symbolic.integrals", "closed_form"),
    "parse": ("symbolic.parsing", "parse"),
    "He": ("symbolic.hermite", "He"),
    "coefficient": ("symbolic.hermite", "coefficient"),
    "expand": ("symbolic.hermite", "expand"),
    "tensor": ("symbolic.hermite", "tensor"),
    "Expansion": ("symbolic.hermite", "Expansion"),
    "stein": ("symbolic.stein", "stein"),
    "check": ("symbolic.derivation", "check"),
    "Derivation": ("symbolic.derivation", "Derivation"),
    "Step": ("symbolic.derivation", "Step"),
    "Activation": ("symbolic.activations", "Activation"),
    "Prox": ("symbolic.moreau", "Prox"),
    "Moreau": ("symbolic.moreau", "Moreau"),
    "free_energy": ("systems.free_energy", "free_energy"),
    "mu": ("theories.conditional", "mu"),
    "mu_star": ("theories.conditional", "mu_star"),
    "Derivative": ("symbolic.undefined", "Derivative"),
    "compile": ("kernels.compile", "compile"),
    "Kernel": ("kernels.compile", "Kernel"),
    "System": ("systems.system", "System"),
    "Flow": ("systems.flow", "Flow"),
    "Trajectory": ("solvers.ode", "Trajectory"),
    "Branch": ("systems.follow", "Branch"),
    "Result": ("pages.result", "Result"),
    "Solution": ("solvers.solution", "Solution"),
    "Sweep": ("solvers.table", "Sweep"),
    "load": ("solvers.load", "load"),
    "ExponentsTable": ("exponents.table", "ExponentsTable"),
    "sweep": ("systems.sweep", "sweep"),
    "bounds": ("theories.bounds", "bounds"),
    "spectrum": ("theories.spectrum", "spectrum"),
    "cite": ("show.cite", "bibtex"),
    "constants": ("face.verbs.constants", "constants"),
    "curve": ("face.curve", "curve"),
    "baselines": ("face.curve", "baselines"),
    "experiment": ("experiments.own", "experiment"),
    "Curve": ("theories.curve", "Curve"),
    "Curves": ("theories.curves", "Curves"),
    "exponents": ("face.exponents", "exponents"),
    "report": ("face.report", "report"),
    "Report": ("face.report", "Report"),
    "Exponents": ("exponents.report", "Exponents"),
    "Channel": ("exponents.channels", "Channel"),
    "budget": ("symbolic.deadline", "deadline"),
}
_ACTIVATIONS = ("tanh", "erf", "relu", "leaky_relu", "gelu", "sign", "sigmoid", "softplus", "silu", "elu", "Phi")
_MODULES = ("errors", "symbols", "theories")

__all__ = [*_PUBLIC, *_ACTIVATIONS, *_MODULES]  # pyright: ignore

# The function `exponents` bears the name of its folder. Python binds a folder to its name when it is first imported: that is
# done now, and undone, so that no later import hides the function.
import_module("hermitex.exponents")
globals().pop("exponents", None)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"hermitex.{name}")
    if name in _PUBLIC:
        from hermitex.errors import public

        module, attribute = _PUBLIC[name]
        value = public(getattr(import_module(f"hermitex.{module}"), attribute), "hermitex", name)
    elif name in _ACTIVATIONS:
        value = import_module("hermitex.symbolic.activations").NAMED[name]
    else:
        from hermitex.errors import no_attribute

        raise no_attribute("hermitex", name, __all__, {"theories": import_module("hermitex.theories").__all__})
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
