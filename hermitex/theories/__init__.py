"""The theories by name: ``hermitex.theories.one_step(sigma, g)``; importing this computes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

# public name -> (module, its name there)
_PUBLIC: dict[str, tuple[str, str]] = {
    "one_step": ("one_step", "one_step"),
    "random_features": ("random_features", "random_features"),
    "spike": ("spike", "spike"),
    "glm": ("glm", "glm"),
    "multi_index": ("multi_index", "multi_index"),
    "mu": ("conditional", "mu"),
    "mu_star": ("conditional", "mu_star"),
    "target_moments": ("target", "target_moments"),
    "bounds": ("bounds", "bounds"),
    "Bounds": ("bounds", "Bounds"),
    "spectrum": ("spectrum", "spectrum"),
    "Spectrum": ("spectrum", "Spectrum"),
    "MarchenkoPastur": ("marchenko_pastur", "MarchenkoPastur"),
    "bounds_map": ("risks.plane", "bounds_map"),
    "sgd": ("sgd", "sgd"),
    "SGD": ("sgd", "SGD"),
    "repetition": ("repetition", "repetition"),
    "Repetition": ("repetition", "Repetition"),
    "kernel_limit": ("kernel_limit", "kernel_limit"),
    "KernelLimit": ("kernel_limit", "KernelLimit"),
    "source_capacity": ("source_capacity", "source_capacity"),
    "small_step": ("small_step", "small_step"),
    "tree": ("tree", "tree"),
    "Claims": ("claims", "Claims"),
    "Curve": ("curve", "Curve"),
    "Theory": ("theory", "Theory"),
}
# name on the command line and in a spec -> public name
_BY_NAME = {"one-step": "one_step", "random-features": "random_features", "sgd": "sgd", "bayes-amp": "multi_index",
            "kernel": "kernel_limit", "small-step": "small_step", "tree": "tree"}


class _Registry(Mapping[str, Any]):
    """Name on the command line -> the function that makes the theory; a module is imported when its theory is asked for."""

    def __getitem__(self, name: str) -> Any:
        return getattr(sys.modules[__name__], _BY_NAME[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_BY_NAME)

    def __len__(self) -> int:
        return len(_BY_NAME)


THEORIES: Mapping[str, Any] = _Registry()


def _lazy(name: str) -> property:
    module, attribute = _PUBLIC[name]
    # Importing hermitex.theories.one_step would put the module where the function of that name belongs.
    return property(lambda self: getattr(import_module(f"{__name__}.{module}"), attribute), lambda self, value: None)


class _Theories(ModuleType):
    def __dir__(self) -> list[str]:
        return sorted([*_PUBLIC, "THEORIES"])


for _name in _PUBLIC:
    setattr(_Theories, _name, _lazy(_name))
sys.modules[__name__].__class__ = _Theories
__all__ = [*_PUBLIC, "THEORIES"]  # pyright: ignore
