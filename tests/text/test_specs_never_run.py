"""A hostile text in every field of a spec: it is prose, or refused in one line that names the file; nothing runs."""

import contextlib
import json

import pytest
from hostile import assert_nothing_ran, texts

from hermitex.errors import BadInput
from hermitex.face import cli, spec

FIELDS = {
    "name": "name = {t}\n[equations]\nV = '1/(1 + V)'\n",
    "source": "source = {t}\n[equations]\nV = '1/(1 + V)'\n",
    "theory": "theory = {t}\n",
    "a section": "[{t}]\na = 1\n",
    "a key": "{t} = 1\n[equations]\nV = '1/(1 + V)'\n",
    "a function": "theory = 'one-step'\n[functions]\nsigma = {t}\ntarget = 'sin'\n",
    "structure": "theory = 'one-step'\n[functions]\nsigma = 'tanh'\ntarget = 'sin'\n[structure]\nloss = {t}\n",
    "a key of structure": "theory = 'one-step'\n[functions]\nsigma = 'tanh'\ntarget = 'sin'\n[structure]\n{t} = 'a'\n",
    "an unknown": "[equations]\n{t} = '1'\n",
    "an equation": "[equations]\nV = {t}\n",
    "a symbol": "[symbols]\n{t} = 'real'\n[equations]\nV = '1'\n",
    "an assumption": "[symbols]\na = {t}\n[equations]\nV = '1/(a + V)'\n",
    "where": "[where]\na = {t}\n[equations]\nV = '1/(a + V)'\n",
    "a where name": "[where]\n{t} = '1'\n[equations]\nV = '1'\n",
    "an observable": "[equations]\nV = '1/(1 + V)'\n[observables]\no = {t}\n",
    "an observable's name": "[equations]\nV = '1/(1 + V)'\n[observables]\n{t} = 'V'\n",
    "a function put in": "[symbols]\nf = 'function'\n[functions]\nf = {t}\n[equations]\nV = 'f(V)'\n",
    "a parameter": "[equations]\nV = '1/(1 + V)'\n[parameters]\n{t} = 1\n",
    "a number": "[equations]\nV = '1/(alpha + V)'\n[parameters]\nalpha = {t}\n",
    "an axis": "[equations]\nV = '1/(1 + V)'\n[grid]\n{t} = [1]\n",
    "a grid": "[equations]\nV = '1/(alpha + V)'\n[grid]\nalpha = {t}\n",
    "a grid's value": "[equations]\nV = '1/(alpha + V)'\n[grid]\nalpha = [{t}]\n",
    "an option": "[equations]\nV = '1/(1 + V)'\n[sweep]\nchunk = {t}\n",
    "an option's name": "[equations]\nV = '1/(1 + V)'\n[sweep]\n{t} = 1\n",
    "an array": "[arrays]\neta = {t}\n[equations]\nV = '1/(1 + Sum(eta[k]*V, k))'\n",
    "an array's name": "[arrays]\n{t} = [1, 2]\n[equations]\nV = '1/(1 + V)'\n",
    "an array's number": "[arrays]\neta = [{t}, 1]\n[equations]\nV = '1/(1 + Sum(eta[k]*V, k))'\n",
    "a law": "[laws]\nx = {t}\n[equations]\nV = 'E(tanh(V + x), x) + 1'\n",
    "a law's name": "[laws]\n{t} = 'Rademacher()'\n[equations]\nV = '1/(1 + V)'\n",
    "a law's number": "[laws]\nx = 'Poisson({q})'\n[equations]\nV = 'E(tanh(V + x), x) + 1'\n",
    "a domain": "[domain]\nV = {t}\n[equations]\nV = '1/(1 + V)'\n",
    "a domain's name": "[domain]\n{t} = '0 < V < 1'\n[equations]\nV = '1/(1 + V)'\n",
    "a start": "[start]\nV = {t}\n[equations]\nV = '1/(1 + V)'\n",
    "a start's name": "[start]\n{t} = 1\n[equations]\nV = '1/(1 + V)'\n",
    "a flow": "[flow]\nV = {t}\n",
    "a flow's name": "[flow]\n{t} = '-V'\n",
}
TEXTS = [t for t in texts(21, 8) if not any("\ud800" <= c <= "\udfff" for c in t)]  # TOML has no half characters


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_a_spec_is_prose_or_refused(field):
    for text in TEXTS:
        quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
        written = FIELDS[field].replace("'Poisson({q})'", quoted[:1] + "Poisson(" + quoted[1:-1] + ")\"").replace("{t}", quoted)
        try:
            found = spec.from_toml(written, "s.toml")
        except BadInput as error:
            assert str(error).startswith("s.toml"), error
        else:
            with contextlib.suppress(BadInput):
                found.formulas.compile()
            if field in ("name", "source"):
                assert getattr(found.system, field) == text
        assert_nothing_ran()


def test_prose_in_a_spec_is_generated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(t for t in TEXTS if t)
    written = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    (tmp_path / "s.toml").write_text(f"name = {written}\nsource = {written}\n[equations]\nV = '1/(1 + V)'\n", encoding="utf-8")
    assert cli.main(["generate", "s.toml", "-o", "out.py"]) == 0
    assert "reference point" in capsys.readouterr().out and (tmp_path / "out.py").exists()
    assert_nothing_ran()
