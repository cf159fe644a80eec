"""Sphinx: sphinx-build -W docs build/docs. Copies notebooks and changelog and writes derivations and the API before the pages are read."""

from __future__ import annotations

import inspect
import re
import runpy
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT/"derivations")]

import hermitex as hx  # noqa: E402
from hermitex.show.display import shorten  # noqa: E402

project, author, release = "hermitex", "The hermitex developers", hx.__version__
extensions = ["myst_nb", "sphinxcontrib.bibtex", "sphinx.ext.mathjax", "sphinx-mathjax-offline"]  # formulas need no network
html_theme = "furo"
html_title = "hermitex"
html_static_path, html_css_files = ["_static"], ["wide.css"]
html_show_copyright = False
bibtex_bibfiles = ["../hermitex/show/references.bib"]
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


def _bare(signature: str) -> str:
    """Remove the quotes around type names in a signature."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)


def _members(kind: type) -> list[str]:
    """The methods and properties of a class, with their types and the first line of each docstring."""
    lines = []
    for name in (n for n in dir(kind) if not n.startswith("_")):
        found = inspect.getattr_static(kind, name)
        function = getattr(found, "fget", None) or getattr(found, "func", None) or getattr(found, "__func__", found)
        if inspect.isfunction(function) and function.__module__.startswith("hermitex."):
            said = inspect.signature(function)
            shown = f" -> {said.return_annotation}" if function is not found and not hasattr(found, "__func__") else str(
                said.replace(parameters=list(said.parameters.values())[not isinstance(found, staticmethod):]))
            lines += [f".{name}{_bare(shown)}", f"    {(inspect.getdoc(function) or '').partition(chr(10))[0]}"]
    return lines


def _api() -> None:
    """Write each public name with its signature and docstring, as `help` shows them; for a class also its methods and properties."""
    types = (ROOT/"hermitex"/"hints.py").read_text(encoding="utf-8").partition("#:")
    parts = ["# API", "", "Every public name of `hermitex` and of `hermitex.theories`, as `help` shows it. A class also has the "
             "methods and properties of its objects. [What an answer promises](promise.md) explains *Guarantee*.", "", "```{raw} html", "<style>pre { white-space: pre-wrap; }</style>", "```", "", "## Types", "",
             "The names of types in the signatures below:", "", "````python", types[1] + types[2].rstrip(), "````"]
    for owner, prefix, names in ((hx, "hx", hx.__all__), (hx.theories, "hx.theories", hx.theories.__all__)):
        parts += ["", f"## {prefix}", ""]
        for name in sorted(set(names), key=str.lower):
            thing = getattr(owner, name)
            if inspect.ismodule(thing):
                continue
            try:
                signature = str(inspect.signature(thing)) if callable(thing) else ""
            except (TypeError, ValueError):
                signature = ""
            told = inspect.getdoc(thing) or shorten(repr(thing))
            told = told if inspect.isclass(thing) or inspect.isroutine(thing) else shorten(repr(thing))
            has = ["", "Methods and properties", "----------------------", *_members(thing)] if inspect.isclass(thing) else []
            parts += [f"### {prefix}.{name}", "", "````text", f"{name}{_bare(signature)}", "", told, *has, "````", ""]
    (HERE/"api.md").write_text("\n".join(parts), encoding="utf-8")


def _references() -> None:
    (HERE/"references.md").write_text("# References\n\nThe papers whose results the package uses; `hx.cite(key)` and `.bibtex()` "
                                      "of a result give them as BibTeX.\n\n```{bibliography}\n:all:\n```\n", encoding="utf-8")
    changelog = (ROOT/"CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")  # its links begin at the root
    (HERE/"changelog.md").write_text(changelog, encoding="utf-8")


def _atlas() -> None:
    (HERE/"atlas.md").write_text(
        "# Atlas\n\nExponents, classes, thresholds and rates of targets that papers use, and coefficients of activations: the rows "
        "of `hx.atlas()`, each an answer of `hx.exponents`. *info*, *leap* and *gen* are the information exponent, the leap and the "
        "generative exponent; *SGD*, *CSQ*, *reuse* and *AMP* are the samples of one-pass SGD, of correlational queries, of SGD on a "
        "reused batch and of Bayes-optimal AMP. A dash is what does not exist. [The conventions](conventions.md) define the columns, "
        "[the promise](promise.md) says what a threshold holds.\n\n"
        f"{hx.atlas().markdown()}\n", encoding="utf-8")


for lay in (_notebooks, _derivations, _api, _references, _atlas):
    lay()
