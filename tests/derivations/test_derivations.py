"""Every derivation holds, from its first step to the formula that the package uses."""

from pathlib import Path

import pytest

from hermitex import Result
from hermitex.face.userfile import module_of
from hermitex.systems.conclusion import Conclusion

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
        kinds = [kind for kind, _ in page.blocks()]
        assert kinds.index("notation") < min(kinds.index(k) for k in ("text", "align") if k in kinds) and "not shown" in kinds
        assert "$#" not in page.markdown()
        assert page.source and (page.conclusion is not None or any(isinstance(p, Conclusion) for p in page.parts))
        assert page.latex().startswith(r"\section{") and page.markdown().startswith("## ")
        page.bibtex()  # every key is known


@pytest.mark.slow
def test_the_bibliography_holds_what_is_cited():
    from hermitex.show.cite import bibtex

    keys = [k for name in FILES for v in vars(module_of(FOLDER/name)).values() if isinstance(v, Result) for k in v.sources]
    assert (FOLDER/"references.bib").read_text() == bibtex(dict.fromkeys(keys))
