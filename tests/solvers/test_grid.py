"""Every point of the grid is in exactly one chunk, and the chunks are those of the grid alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import BadInput
from hermitex.solvers.sweep_grid import concatenate_pieces, grid


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 20))
@settings(max_examples=80)
def test_the_chunks_are_the_product_in_order(sizes, chunk):
    axes = {f"a{i}": np.arange(n) + 10.0 * i for i, n in enumerate(sizes)}
    g = grid(axes, chunk)
    pieces = [p for k in range(g.chunks) for p in g.pieces(k)]
    table = concatenate_pieces(pieces)
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    expected = [np.moveaxis(m, 0, -1).ravel() for m in mesh]  # the first key runs fastest
    assert all((table[n] == e).all() for n, e in zip(axes, expected, strict=True))
    for p in pieces:
        assert len(p["a0"]) <= chunk
        assert all(len(set(v)) == 1 for n, v in p.items() if n != "a0")  # a piece never leaves its line
    assert all(sum(len(p["a0"]) for p in g.pieces(k)) <= chunk for k in range(g.chunks))


@pytest.mark.parametrize(("axes", "chunk", "what"), [
    ({}, 5, "empty"), ({"a": []}, 5, "grid of a"), ({"a": [1, np.nan]}, 5, "a contains NaN"),
    ({"a": ["x"]}, 5, "numbers"),
    ({"a": [[1, 2]]}, 5, "shape"), ({"a": [1]}, 0, "chunk"),
])  # fmt: skip
def test_a_wrong_grid_is_named(axes, chunk, what):
    with pytest.raises(BadInput, match=what):
        grid(axes, chunk)


def test_the_signature_sees_values_order_and_chunk():
    base = grid({"a": [1, 2], "b": [3]}, 5).signature
    others = [grid({"a": [1, 2.0000000000000004], "b": [3]}, 5), grid({"b": [3], "a": [1, 2]}, 5),
              grid({"a": [1, 2], "b": [3]}, 6)]  # fmt: skip
    assert grid({"a": (1.0, 2.0), "b": 3}, 5).signature == base
    assert base not in {g.signature for g in others}
