"""A Solution answers by name, says honestly whether it converged, and never fails to show itself."""

import json
import pickle

import numpy as np
import pytest

from hermitex import Solution
from hermitex.errors import NotConverged, UnknownName
from hermitex.solvers.batch import merge_solutions, select_points
from hermitex.solvers.solution import combine_solutions, trend_text


def batch(**changes):
    fields = {"residual": np.array([1e-12, 0.5]), "converged": np.array([True, False]), "iterations": np.array([3, 9]),
              "stability": np.array([0.5, 1.2]), "method": "newton",
              "reason": np.array(["", "q oscillates"], dtype=object), "unknowns": ("q",)} | changes  # fmt: skip
    return Solution({"q": np.array([1.0, 2.0]), "V": np.array([3.0, 4.0])}, **fields)


def test_numbers_are_asked_for_by_name_and_a_wrong_name_gets_the_near_one():
    s = Solution({"qhat": 1.5}, 0.0, True)
    assert s["qhat"] == 1.5 and "qhat" in s and s.names == ("qhat",)
    with pytest.raises(UnknownName, match="qhat"):
        s["qht"]


def test_a_failure_names_the_point_what_it_did_and_carries_the_state():
    with pytest.raises(NotConverged) as caught:
        batch().require()
    text = str(caught.value)
    assert "1 of 2 points" in text and "point 1" in text and "q oscillates" in text and "1.2" in text
    assert "damping" in text  # what to try
    assert caught.value.solution["q"][1] == 2.0


def test_one_point_of_a_batch_is_plain_numbers():
    one = batch().point(0)
    assert one.converged is True and one["q"] == 1.0 and isinstance(one["V"], float) and one.points is None


def test_the_state_is_a_warm_start_of_the_unknowns_only():
    assert batch().state.tolist() == [[1.0, 2.0]]


def test_dict_frame_and_pickle_carry_the_same_numbers():
    pd = pytest.importorskip("pandas")
    s = batch()
    d = json.loads(json.dumps(s.to_dict()))
    assert d["value"]["q"] == [1.0, 2.0] and d["converged"] == [True, False] and "numpy" in d["provenance"]
    frame = s.to_dataframe()
    assert isinstance(frame, pd.DataFrame) and frame["reason"].tolist() == ["", "q oscillates"]
    assert pickle.loads(pickle.dumps(s))["q"].tolist() == [1.0, 2.0]


def test_blocks_combine_to_the_worst_of_them():
    a = Solution({"V": np.ones(2)}, np.array([1e-12, 1e-3]), np.array([True, False]), np.array([4, 5]),
                 stability=np.array([0.1, 0.2]), method="newton", reason=np.array(["", "lost"], dtype=object),
                 unknowns=("V",))  # fmt: skip
    b = Solution({"m": 2.0}, 0.0, True, 1, method="linear", unknowns=("m",), notes=("singular",))
    s = combine_solutions([a, b], {"error": np.zeros(2)})
    assert s.unknowns == ("V", "m") and s.converged.tolist() == [True, False] and s.iterations.tolist() == [5, 6]
    assert s.stability.tolist() == [0.1, 0.2] and s.reason[1] == "lost" and s.notes == ("singular",)


def test_shows_itself_even_when_broken():
    assert "1 of 2 points converged" in repr(batch())
    assert "<table" in batch()._repr_html_()
    assert "<code>" in batch(residual=np.zeros(3))._repr_html_()  # columns that do not fit: no exception


@pytest.mark.parametrize(("path", "said"), [
    ([1, -1, 1, -1], "oscillates"), ([1, 2, 4, 8], "diverges"), ([1, 1.5, 1.75, 1.875], "still moves"),
    ([1, 2, 4, np.inf], "infinite"),
])  # fmt: skip
def test_trend_says_what_the_iterates_did(path, said):
    assert said in trend_text([np.array([v], dtype=float) for v in path], ["q"])


@pytest.mark.parametrize("last, worst", [([1, 2], 1e-7), ([0, 1, 2], 1e-9)])
def test_what_is_put_together_has_the_worst_quadrature_of_what_is_left(last, worst):
    """A part of which no point is left says nothing of the whole."""
    def part(points, error):
        whole = batch(origin={"tolerance": 1e-6, "quadrature_error": error})
        return np.array(points), select_points(whole, np.zeros(len(points), dtype=int))

    found = merge_solutions([part([0, 1], 1e-7), part(last, 1e-9)], 3, ["q", "V"])
    assert found.origin == {"tolerance": 1e-6, "quadrature_error": worst}
    assert merge_solutions([part(last, 1e-9)], 3, ["q", "V"], {"nodes": 5}).origin == {"nodes": 5, "quadrature_error": 1e-9}
