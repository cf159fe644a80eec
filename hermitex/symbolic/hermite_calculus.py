"""g = sum_k c_k/k! He_k, c_k = E[g He_k]: the Hermite calculus by name; its parts are in four files.

`polynomials` holds He_k and its algebra, `coefficients` what g projects to, `expansion` the series as an object,
`tensors` what g projects to in several variables.
"""

from hermitex.symbolic.hermite_tensors import SymmetricTensor, tensor
from hermitex.symbolic.series.coefficients import coefficient, coefficients
from hermitex.symbolic.series.expansion import Expansion, expand
from hermitex.symbolic.series.polynomials import He, multi_indices, to_hermite

__all__ = [
    "Expansion",
    "He",
    "SymmetricTensor",
    "coefficient",
    "coefficients",
    "expand",
    "multi_indices",
    "tensor",
    "to_hermite",
]
