"""Every derivation holds, from its first step to the formula that the package uses."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hermitex import Result
from hermitex.face.userfile import module_of
from hermitex.pages.conclusion import Conclusion
from hermitex.show.appendix import document

FOLDER = Path(__file__).parents[2]/"derivations"
FILES = sorted(p.name for p in FOLDER.glob("*.py") if not p.name.startswith("_"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_step_holds(name):
    pages = [v for v in vars(module_of(FOLDER/name)).values() if isinstance(v, Result)]
    assert pages, f"{name} defines no Result"
    for page in pages:
        found = page.check()
        assert found.passed, found
        assert len(found.steps) >= 3
        assert not page.unbound, f"{name}: {page.unbound}"
        assert not found.unnamed, f"{name}: {found.unnamed}"
        kinds = [kind for kind, _ in page.blocks()]
        assert kinds.index("notation") < min(kinds.index(k) for k in ("text", "align") if k in kinds) and "not shown" in kinds
        assert "$#" not in page.markdown()
        conclusions = [p for p in page.parts if isinstance(p, Conclusion)]
        assert page.source and (page.conclusion is not None or conclusions) and all(p.package or p.none for p in conclusions)
        assert page.latex().startswith(r"\section{") and page.markdown().startswith("## ")
        page.bibtex()  # every key is known


@pytest.mark.slow
def test_the_bibliography_holds_what_is_cited():
    from hermitex.show.cite import bibtex

    keys = [k for name in FILES for v in vars(module_of(FOLDER/name)).values() if isinstance(v, Result) for k in v.sources]
    assert (FOLDER/"references.bib").read_text() == bibtex(dict.fromkeys(keys))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex")
def test_all_pages_compile_as_an_appendix_and_stay_on_the_paper(tmp_path):
    pages = [v for name in FILES for v in vars(module_of(FOLDER/name)).values() if isinstance(v, Result)]
    (tmp_path/"all.tex").write_text(document([p.latex() for p in pages], [k for p in pages for k in p.sources]))
    for _ in range(2):   # for the references
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"], cwd=tmp_path,
                              capture_output=True, text=True, errors="replace", check=False, timeout=200)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path/"all.log").read_text(errors="replace")
    assert "undefined references" not in log and "undefined citations" not in log
    assert max(map(float, re.findall(r"Overfull .hbox \(([\d.]+)pt", log))) < 100
