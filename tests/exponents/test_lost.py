"""What a law is known to have lost is passed on to sums, products, maxima, functions and tables of it."""

from dataclasses import replace

import pytest

from hermitex.exponents.laws.density import normal, push
from hermitex.exponents.laws.linearised import second
from hermitex.exponents.laws.products import multiplied
from hermitex.exponents.laws.sums import added
from hermitex.exponents.laws.table import tabulated
from hermitex.symbols import z


@pytest.mark.parametrize("rule", [added, multiplied])
def test_both_blocks_count(rule):
    one, two = (replace(normal(n), lost=lost) for n, lost in ((0, 1e-5), (1, 2e-6)))
    assert rule(one, two).lost == pytest.approx(1.2e-5)


def test_functions_and_tables():
    law = tabulated(push(replace(normal(0), lost=1e-5), z**2, z))
    assert law.lost == 1e-5
    assert second(law, order=12).error >= 1e-5
