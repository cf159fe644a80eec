"""A table keeps its cells, its widths and, as CSV, its last bit."""

from __future__ import annotations

import builtins
import csv
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import BadInput, MissingExtra
from hermitex.show.escape import cell
from hermitex.show.tables import csv_text, markdown_table, save_csv, text_table, to_dataframe, width

cells = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=12)


@settings(max_examples=40)
@given(st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=4))
def test_csv_is_read_back_by_any_reader(rows):
    columns = {name: [row[j] for row in rows] for j, name in enumerate("abc")}
    again = list(csv.reader(io.StringIO(csv_text(columns), newline="")))
    assert again == [["a", "b", "c"], *([cell(c) for c in row] for row in rows)]


@settings(max_examples=40)
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_csv_keeps_every_bit(values):
    lines = csv_text({"x": values}).split("\r\n")
    assert lines[0] == "x" and [float(v) for v in lines[1:-1]] == values and lines[-1] == ""


@settings(max_examples=40)
@given(st.lists(st.lists(st.one_of(cells, st.integers(), st.floats()), min_size=2, max_size=5), min_size=1, max_size=5)
       .filter(lambda rows: len({len(r) for r in rows}) == 1))
def test_a_table_fits_a_terminal_and_its_columns_stand_under_each_other(rows):
    lines = text_table(rows, columns=60).split("\n")
    assert len(lines) == len(rows) and max(map(width, lines)) <= 60


def test_columns_are_aligned_by_the_width_of_letters():
    table = text_table([["数学", 1], ["e\u0301", 22]], ["name", "n"])
    assert [width(line) for line in table.split("\n")] == [8, 8, 8]
    assert len({len(line) for line in table.split("\n")}) > 1  # the tooth: by characters they are not


def test_a_long_cell_is_cut_and_a_number_is_not():
    table = text_table([["x" * 300, 12345.678]], ["target", "value"])
    assert "..." in table and "12345.678" in table and max(map(len, table.split("\n"))) <= 100
    assert "x" * 300 in text_table([["x" * 300]], columns=None)


def test_a_line_break_in_a_cell_stays_on_its_line():
    assert text_table([["a\nb\x1b[31m", None]]) == "a b\\x1b[31m  -"
    assert text_table([]) == ""


def test_markdown_escapes_bars():
    assert "|P\\|" in markdown_table([["|P|", 1.5]], ["norm", "value"]).replace("\\|P", "|P")


def test_ragged_rows_and_columns_are_refused():
    for make in (lambda: text_table([[1], [1, 2]]), lambda: csv_text({"a": [1], "b": []}), lambda: to_dataframe(
            {"a": [1], "b": []})):
        with pytest.raises(BadInput):
            make()


def test_a_dataframe_or_the_extra_that_is_missing(monkeypatch):
    frame = to_dataframe({"k": [0, 1], "c": [0.5, None]}, index="k")
    assert list(frame.columns) == ["c"] and list(frame.index) == [0, 1]
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"hermitex\[data\]"):
        to_dataframe({"k": [0]})


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "curve.csv"
    save_csv({"alpha": [0.5]}, path)
    assert path.read_bytes() == b"alpha\r\n0.5\r\n"

    def broken(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(BadInput, match="no space") as caught:
        save_csv({"alpha": [1.0]}, path)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["curve.csv"] and path.read_bytes() == b"alpha\r\n0.5\r\n"


@pytest.mark.parametrize("place", ["missing/curve.csv", "", ".", "x" * 300 + ".csv", "a\x00b.csv"])
def test_a_bad_place_is_one_line(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="cannot write") as caught:
        save_csv({"a": [1]}, place)
    assert "\n" not in str(caught.value) and os.listdir(tmp_path) == []
