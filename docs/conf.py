"""Sphinx: sphinx-build -W docs build/docs. Copies notebooks and changelog, writes derivations and the API, then reads the pages."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT/"derivations"), str(HERE)]

import api_pages  # noqa: E402

import hermitex as hx  # noqa: E402

project, author, release = "hermitex", "The hermitex developers", hx.__version__
extensions = ["myst_nb", "sphinxcontrib.bibtex", "sphinx.ext.mathjax", "sphinx.ext.viewcode",
              "sphinx-mathjax-offline"]  # formulas need no network
html_theme = "furo"
html_title = "hermitex"
html_static_path, html_css_files = ["_static"], ["wide.css"]
html_show_copyright = False
smartquotes = False  # texts between quotes are copied into calls
bibtex_bibfiles = ["../hermitex/show/references.bib"]
nb_render_markdown_format = "myst"  # formulas between dollars, in an output that is Markdown
nb_execution_mode = "off"  # the notebooks hold their outputs, which the tests compute anew
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
# Formulas in the outputs of notebooks stand between dollars, in HTML of ours.
myst_mathjax_classes = "tex2jax_process|mathjax_process|math|output_area|text_html"
mathjax3_config = {"tex": {"inlineMath": [["\\(", "\\)"], ["$", "$"]]}}
exclude_patterns = ["build"]
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "myst.strikethrough"]


def _notebooks() -> None:
    shutil.rmtree(HERE/"notebooks", ignore_errors=True)
    (HERE/"notebooks").mkdir()
    for path in sorted((ROOT/"notebooks").glob("*.ipynb")):
        text = path.read_text(encoding="utf-8").replace("](../derivations/_template.py)", "](../checking.md)")
        for name in ("align*", "align"):  # Sphinx puts a formula of several lines into split, which holds no align
            text = text.replace(f"begin{{{name}}}", "begin{aligned}").replace(f"end{{{name}}}", "end{aligned}")
        (HERE/"notebooks"/path.name).write_text(text, encoding="utf-8")


def _derivations() -> None:
    shutil.rmtree(HERE/"derivations", ignore_errors=True)
    (HERE/"derivations").mkdir()
    names = []
    for path in sorted((ROOT/"derivations").glob("[a-z]*.py")):
        pages = [v for v in runpy.run_path(str(path)).values() if isinstance(v, hx.Result)]
        title = path.stem.replace("_", " ").capitalize()
        text = "\n\n".join(page.markdown() for page in dict.fromkeys(pages))
        (HERE/"derivations"/f"{path.stem}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
        names.append(path.stem)
    listed = "\n".join(names)
    (HERE/"derivations"/"index.md").write_text(
        "# Derivations\n\nThe published results behind the package, step by step; `hermitex check derivations` proves or tests "
        f"every line of them.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n", encoding="utf-8")


def _api() -> None:
    shutil.rmtree(HERE/"api", ignore_errors=True)
    (HERE/"api").mkdir()
    for name, text in api_pages.pages().items():
        (HERE/"api"/name).write_text(text, encoding="utf-8")


def _references() -> None:
    (HERE/"references.md").write_text("# References\n\nThe papers whose results the package uses; `hx.cite(key)` and `.bibtex()` "
                                      "of a result give them as BibTeX.\n\n```{bibliography}\n:all:\n```\n", encoding="utf-8")
    changelog = (ROOT/"CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")  # its links begin at the root
    (HERE/"changelog.md").write_text(changelog, encoding="utf-8")


def _atlas() -> None:
    (HERE/"atlas.md").write_text(
        "# Atlas\n\n"
        "Exponents, classes, thresholds and rates of targets that papers use, and coefficients of activations: the rows "
        "of `hx.atlas()`, each an answer of `hx.exponents`. *info*, *leap* and *gen* are the information exponent, the "
        "leap and the generative exponent; *SGD*, *CSQ*, *reuse* and *AMP* are the samples of one-pass SGD, of "
        "correlational queries, of SGD on a reused batch and of Bayes-optimal AMP. A dash is what does not exist. [The "
        "conventions](conventions.md) define the columns, [the promise](promise.md) says what a threshold holds.\n\n"
        f"{hx.atlas().markdown()}\n", encoding="utf-8")


for lay in (_notebooks, _derivations, _api, _references, _atlas):
    lay()


def _tags(app: Any, module: str) -> tuple[str, dict[str, Any]]:
    """The source of a module, with the lines of each object also under its public name, which the pages link."""
    found = ModuleAnalyzer.for_module(module)
    found.analyze()
    named = {name: found.tags[own] for (_, name), (there, own) in api_pages.PLACES.items() if there == module and own in found.tags}
    return found.code, found.tags | named


def setup(app: Any) -> None:
    app.connect("viewcode-follow-imported", lambda app, room, name: api_pages.PLACES.get((room, name), (None,))[0])
    app.connect("viewcode-find-source", _tags)
