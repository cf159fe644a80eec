"""hermitex: a symbolic-numeric derivation assistant for learning theory in high-dimensional Gaussian models.

The public names are imported when they are first used (PEP 562); importing the package computes nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a type checker and an editor read; a test holds it to the table below
    from hermitex import errors as errors
    from hermitex import symbols as symbols
    from hermitex import theories as theories
    from hermitex.check.claim import check as check
    from hermitex.experiments.own_experiment import experiment as experiment
    from hermitex.exponents.atlas import atlas as atlas
    from hermitex.exponents.channels import Channel as Channel
    from hermitex.exponents.exponents_table import ExponentsTable as ExponentsTable
    from hermitex.exponents.report import Exponents as Exponents
    from hermitex.face.exponents_with_stages import exponents as exponents
    from hermitex.face.model_sheet import Report as Report
    from hermitex.face.model_sheet import report as report
    from hermitex.face.theory_and_experiment import baselines as baselines
    from hermitex.face.theory_and_experiment import curve as curve
    from hermitex.face.verbs.constants_verb import constants as constants
    from hermitex.kernels.compile import Kernel as Kernel
    from hermitex.kernels.compile import compile as compile
    from hermitex.pages.result_page import Result as Result
    from hermitex.show.cite import bibtex as cite  # noqa: F401
    from hermitex.solvers.ode import Trajectory as Trajectory
    from hermitex.solvers.result_files import load as load
    from hermitex.solvers.solution import Solution as Solution
    from hermitex.solvers.sweep_table import Sweep as Sweep
    from hermitex.symbolic.activations import Activation as Activation
    from hermitex.symbolic.deadline import deadline as budget  # noqa: F401
    from hermitex.symbolic.derivation import Derivation as Derivation
    from hermitex.symbolic.derivation import Step as Step
    from hermitex.symbolic.gaussian import E as E
    from hermitex.symbolic.gaussian import Expectation as Expectation
    from hermitex.symbolic.hermite_tensors import tensor as tensor
    from hermitex.symbolic.integrals import closed_form as closed_form
    from hermitex.symbolic.moreau import Moreau as Moreau
    from hermitex.symbolic.moreau import Prox as Prox
    from hermitex.symbolic.parsing import parse as parse
    from hermitex.symbolic.series.coefficients import coefficient as coefficient
    from hermitex.symbolic.series.expansion import Expansion as Expansion
    from hermitex.symbolic.series.expansion import expand as expand
    from hermitex.symbolic.series.polynomials import He as He
    from hermitex.symbolic.stein import stein as stein
    from hermitex.symbolic.undefined import Derivative as Derivative
    from hermitex.systems.flow import Flow as Flow
    from hermitex.systems.follow import Branch as Branch
    from hermitex.systems.free_energy import free_energy as free_energy
    from hermitex.systems.sweep import sweep as sweep
    from hermitex.systems.system import System as System
    from hermitex.theories.bounds import bounds as bounds
    from hermitex.theories.conditional_coefficients import mu as mu
    from hermitex.theories.conditional_coefficients import mu_star as mu_star
    from hermitex.theories.curve import Curve as Curve
    from hermitex.theories.curves import Curves as Curves
    from hermitex.theories.spectrum import spectrum as spectrum

    tanh = erf = relu = leaky_relu = gelu = sign = sigmoid = softplus = silu = elu = Phi = Activation("tanh", "tanh(z)")

__version__ = "0.2.0"

# public name -> (module, its name there)
_PUBLIC: dict[str, tuple[str, str]] = {
    "E": ("symbolic.gaussian", "E"),
    "Expectation": ("symbolic.gaussian", "Expectation"),
    "closed_form": ("symbolic.integrals", "closed_form"),
    "parse": ("symbolic.parsing", "parse"),
    "He": ("symbolic.series.polynomials", "He"),
    "coefficient": ("symbolic.series.coefficients", "coefficient"),
    "expand": ("symbolic.series.expansion", "expand"),
    "tensor": ("symbolic.hermite_tensors", "tensor"),
    "Expansion": ("symbolic.series.expansion", "Expansion"),
    "stein": ("symbolic.stein", "stein"),
    "check": ("check.claim", "check"),
    "Derivation": ("symbolic.derivation", "Derivation"),
    "Step": ("symbolic.derivation", "Step"),
    "Activation": ("symbolic.activations", "Activation"),
    "Prox": ("symbolic.moreau", "Prox"),
    "Moreau": ("symbolic.moreau", "Moreau"),
    "free_energy": ("systems.free_energy", "free_energy"),
    "mu": ("theories.conditional_coefficients", "mu"),
    "mu_star": ("theories.conditional_coefficients", "mu_star"),
    "Derivative": ("symbolic.undefined", "Derivative"),
    "compile": ("kernels.compile", "compile"),
    "Kernel": ("kernels.compile", "Kernel"),
    "System": ("systems.system", "System"),
    "Flow": ("systems.flow", "Flow"),
    "Trajectory": ("solvers.ode", "Trajectory"),
    "Branch": ("systems.follow", "Branch"),
    "Result": ("pages.result_page", "Result"),
    "Solution": ("solvers.solution", "Solution"),
    "Sweep": ("solvers.sweep_table", "Sweep"),
    "load": ("solvers.result_files", "load"),
    "ExponentsTable": ("exponents.exponents_table", "ExponentsTable"),
    "sweep": ("systems.sweep", "sweep"),
    "bounds": ("theories.bounds", "bounds"),
    "spectrum": ("theories.spectrum", "spectrum"),
    "cite": ("show.cite", "bibtex"),
    "constants": ("face.verbs.constants_verb", "constants"),
    "curve": ("face.theory_and_experiment", "curve"),
    "baselines": ("face.theory_and_experiment", "baselines"),
    "experiment": ("experiments.own_experiment", "experiment"),
    "Curve": ("theories.curve", "Curve"),
    "Curves": ("theories.curves", "Curves"),
    "exponents": ("face.exponents_with_stages", "exponents"),
    "report": ("face.model_sheet", "report"),
    "Report": ("face.model_sheet", "Report"),
    "Exponents": ("exponents.report", "Exponents"),
    "Channel": ("exponents.channels", "Channel"),
    "atlas": ("exponents.atlas", "atlas"),
    "budget": ("symbolic.deadline", "deadline"),
}
_ACTIVATIONS = ("tanh", "erf", "relu", "leaky_relu", "gelu", "sign", "sigmoid", "softplus", "silu", "elu", "Phi")
_MODULES = ("errors", "symbols", "theories")

__all__ = [*_PUBLIC, *_ACTIVATIONS, *_MODULES]  # pyright: ignore

# The functions `exponents` and `check` bear the names of their folders. Python binds a folder to its name when it is first
# imported: that is done now, and undone, so that no later import hides the functions.
for _folder in ("exponents", "check"):
    import_module(f"hermitex.{_folder}")
    globals().pop(_folder, None)


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
