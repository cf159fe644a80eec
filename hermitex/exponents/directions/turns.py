"""g(R z) = +-g(z) for R the rotation by 2 pi/m in a plane of two coordinates: Re (z1 + i z2)^3 and its like."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from sympy import Expr, Symbol, cos, eye, pi, sin

from hermitex.exponents.directions.symmetry import Symmetry, symmetry_of
from hermitex.symbolic.subspaces import Matrix

_PARTS = (3, 8)  # a turn by 2 pi/4 is a permutation with signs, one by 2 pi/6 is one by 2 pi/3 and z -> -z
_MOST = 4


def turns(g: Expr, variables: Sequence[Symbol]) -> tuple[Symmetry, ...]:
    """The rotations of finite order in coordinate planes that leave g alone up to a sign, each proved.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> [(s.matrix.tolist(), s.sign) for s in turns(z1**3 - 3*z1*z2**2, (z1, z2))]
    [([[-1/2, -sqrt(3)/2], [sqrt(3)/2, -1/2]], 1)]
    """
    found = []
    if len(variables) <= _MOST:
        for i, j in combinations(range(len(variables)), 2):
            for m in _PARTS:
                R = eye(len(variables))
                R[i, i] = R[j, j] = cos(2*pi/m)
                R[i, j], R[j, i] = -sin(2*pi/m), sin(2*pi/m)
                symmetry = symmetry_of(g, variables, Matrix(R))
                if symmetry is not None:
                    found.append(symmetry)
    return tuple(found)
