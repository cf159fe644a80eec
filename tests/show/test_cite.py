"""Every paper that the package names has an entry, and every entry is whole."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import hermitex
from hermitex.errors import UnknownName
from hermitex.show.cite import bibtex, cite, keys, reference

NEEDED = {"article": {"author", "title", "journal", "year"}, "inproceedings": {"author", "title", "booktitle", "year"},
          "misc": {"author", "title", "howpublished", "year"}}


@pytest.mark.every_case
@pytest.mark.parametrize("key", keys())
def test_an_entry_is_whole(key):
    entry = reference(key)
    kind = re.match(r"@(\w+)\{", entry.text)[1]
    assert NEEDED[kind] <= set(entry.fields)
    assert re.fullmatch(r"(1[89]|20)\d\d", entry.fields["year"])
    assert entry.text.count("{") == entry.text.count("}") and entry.text.endswith("}")
    assert all("," in author for author in entry.fields["author"].split(" and "))
    if "eprint" in entry.fields:
        assert re.fullmatch(r"\d{4}\.\d{4,5}", entry.fields["eprint"])


def test_no_entry_is_lost_in_reading():
    text = files("hermitex.show").joinpath("references.bib").read_text(encoding="utf-8")
    assert len(re.findall(r"^@", text, re.MULTILINE)) == len(keys())


def test_every_source_named_in_the_package_has_an_entry():
    named = set()
    for path in Path(hermitex.__file__).parent.rglob("*.py"):
        named |= set(re.findall(r"""["'\[ ]([a-z]{3,}(?:18|19|20)\d\d)[,\] "'(]""", path.read_text(encoding="utf-8")))
    for key in named:
        reference(key)
    assert "cui2024" in named


def test_keys_are_of_one_style():
    """Author and year, and a word where that is not enough; what papers are called elsewhere is understood too."""
    assert not [k for k in keys() if not re.fullmatch(r"[a-z]+\d{4}[a-z]*", k)]
    assert reference("T24").key == reference("troiani2024").key == "troiani2025" and reference("DKLPS").key == "dandi2023giant"


def test_entries_come_once_in_the_order_named():
    text = bibtex(["stein1981", "T24", "troiani2024", "stein1981"])
    assert re.findall(r"@\w+\{(\w+),", text) == ["stein1981", "troiani2025"]
    assert "ids =" not in text and bibtex([]) == "" and text.endswith("}\n")


def test_short_texts():
    assert cite("hu2023") == "Hu and Lu 2023"
    assert cite("T24").startswith("Troiani et al.")
    assert cite("BAJ21") == "Ben Arous et al. 2021"


def test_an_unknown_key_is_answered_with_the_closest():
    with pytest.raises(UnknownName) as caught:
        bibtex(["stein1891"])
    assert caught.value.close_matches[0] == "stein1981"
