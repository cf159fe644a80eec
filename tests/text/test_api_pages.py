"""The pages of the API: one for every public name, reached from the index, with links that lead somewhere."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import hermitex as hx

DOCS = Path(__file__).parents[2]/"docs"


@pytest.fixture(scope="module")
def api():
    spec = importlib.util.spec_from_file_location("api_pages", DOCS/"api_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(api):
    return api.pages()


def test_every_public_name_has_its_page(api, pages):
    names = {f"hx.{n}" for n in hx.__all__} | {f"hx.theories.{n}" for n in hx.theories.__all__}
    listed = set(re.findall(r"\]\((hx\.\S+\.md)\)", pages["index.md"]))
    assert {api.place(n) for n in names} == listed == set(pages) - {"index.md", "types.md"}
    assert all(pages[api.place(n)].startswith(f"# {n}\n") for n in names)
    assert len({file.lower() for file in pages}) == len(pages) == len(names) + 2  # Curve and curve on a disk that ignores case


def test_links_lead_to_pages(pages):
    for name, text in pages.items():
        for link in re.findall(r"\]\(([^)]*\.md)\)", re.sub(r"````.*?````", "", text, flags=re.S)):
            assert link in pages or (DOCS/"api"/link).resolve().exists(), (name, link)


def test_every_documented_parameter_is_in_a_table(api, pages):
    for name, thing in api.NAMES.items():
        if inspect.isfunction(thing) and "Parameters\n" in (thing.__doc__ or ""):
            rows = " ".join(re.findall(r"^\| (.*?)(?<!\\) \|", pages[api.place(name)], flags=re.M))
            told = re.search(r"Parameters\s+-+\n(.*?)(?:\n\s*\n|\Z)", inspect.cleandoc(thing.__doc__), re.S)[1]
            known = [n for n in inspect.signature(thing).parameters if re.search(rf"^(?! )[^:\n]*\b{n}\b[^:\n]* : ", told, re.M)]
            assert known and not [n for n in known if not re.search(rf"\b{n}\b", rows)], name


def test_a_page_shows_types_defaults_and_the_place_of_the_source(api, pages):
    text = pages["hx.exponents.md"]
    assert "| `budget` | `float` \\| `None` | `60.0` | CPU seconds" in text and "[`Formula`](types.md)" in text
    assert "[`BadInput`](hx.errors.md)" in text and "````pycon\n>>> exponents(" in text
    assert api.PLACES["hermitex", "cite"] == ("hermitex.show.cite", "bibtex")
    assert "{py:method} System.solve(" in pages["hx.System-class.md"] and "(self" not in pages["hx.System-class.md"]


def test_signs_of_markdown_are_shown_as_they_are(api):
    assert api.flowing("E[z_1*z_2] | <a, b> $x$ `E(z*z)`") == r"E\[z\_1\*z\_2\] \| \<a, b\> \$x\$ `E(z*z)`"
    assert api.entries(["k : int;   alpha, beta : n/d", "    and p/d", "the rest"]) == (
        [("k", "int"), ("alpha, beta", "n/d and p/d the rest")], [])
