"""What ``hermitex spectrum`` answers: its keys, values of m, one line for what cannot be."""

import json

import pytest

from hermitex.face import cli

AT = ["--sigma", "tanh", "--r", "1.2", "--c", "1.1", "--alpha", "1.5", "--beta", "1"]


def ask(capsys, *argv):
    assert cli.main(["spectrum", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_keys_and_values(capsys):
    found = ask(capsys, *AT, "--at", "0.5i,1+0.1i,-1", "--points", "20", "--dimension", "400")
    assert set(found) >= {"x", "density", "edges", "outlier", "stieltjes"} and len(found["x"]) == len(found["density"]) == 20
    assert found["stieltjes"][0]["m"] == pytest.approx([0.5309589736949135, 1.413821938319404], rel=1e-9)
    assert found["stieltjes"][1]["m"] == pytest.approx([-0.9676219971169329, 0.6971255453432754], rel=1e-9)
    assert found["stieltjes"][2]["m"][1] == 0 and found["outlier"]["constant"] == pytest.approx(0.69, abs=1e-3)


def test_normalisation_n(capsys):
    p, n = (ask(capsys, *AT, "--normalisation", v, "--points", "4") for v in "pn")
    assert n["edges"][0][1] == pytest.approx(p["edges"][0][1]/1.5, rel=1e-9)


def test_text(capsys, tmp_path):
    picture = tmp_path / "spectrum.png"
    assert cli.main(["spectrum", *AT, "--plot", str(picture)]) == 0
    assert "bulk          [0.004363873" in capsys.readouterr().out and picture.stat().st_size > 10_000


@pytest.mark.parametrize("wrong", [["--r", "nan"], ["--c", "-1"], ["--alpha", "0"], ["--beta", "inf"], ["--at", "foo"],
                                   ["--normalisation", "q"], ["--points", "0"], ["--sigma", "exp(z**2)"], ["--dimension", "0"]])
def test_hostile_numbers_get_one_line(capsys, wrong):
    assert cli.main(["spectrum", *AT, *wrong]) == cli.BAD_INPUT
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "Traceback" not in err
