"""alpha_c of every stage, by the public name, against values found by several routes of earlier versions (13 digits)."""

import pytest

import hermitex as hx

ROWS = [
    ("z1**2 - 2*z2**2", "deterministic", [0.5385362677305922], 1e-09, True),
    ("z1**2 + z1*z2 + z2**2", "deterministic", [0.550551943733768], 1e-09, True),
    ("z1**2*z2**2 + z1**2", "deterministic", [0.6932721039702497], 1e-09, True),
    ("cos(z1) + cos(z2)", "deterministic", [1.0588882809176567], 1e-09, False),
    ("z1**4 + z2**4", "deterministic", [1.0281662327696184], 1e-09, True),
    ("cos(z1)*cos(z2)", "deterministic", [1.3404843985935135], 1e-09, False),
    ("abs(z1) - abs(z2)", "deterministic", [0.7469542192217253], 1e-09, True),
    ("Max(abs(z1) - 1, 0)*z2", "deterministic", [0.0, 0.5139913950700014], 1e-09, False),
    ("Max(z1**2 - 1, 0) + z2**2", "deterministic", [0.8375231233994924], 1e-09, True),
    ("Heaviside(abs(z1) - 1)*z2**2", "deterministic", [0.9249580392589081], 1e-09, False),
    ("sin(z1**2 + z2**2)", "deterministic", [2.650382660213343], 1e-09, False),
    ("z1*z2 + z1**2*z2**2", "deterministic", [0.81553325804388], 1e-09, True),
    ("exp(-z1**2 - z2**2/2)", "deterministic", [0.6157200148874659], 1e-09, True),
    ("sign(z1*z2)*Max(abs(z1), 1)", "deterministic", [0.47241888701539453], 1e-09, False),
    ("z1**4 - 6*z1**2*z2**2 + z2**4", "deterministic", [1.1837762728647676], 1e-05, False),
    ("sign(z1*z2) + sign(abs(z1) - 1)", "deterministic", [0.9771619449959579], 1e-09, False),
    ("z1*z2", "gaussian:1/4", [0.7492495051061083], 1e-09, True),
    ("abs(z1) + abs(z2)", "gaussian:1/10", [1.1923203688858344], 1e-09, True),
    ("Max(abs(z1), abs(z2))", "deterministic", [1.0679875403752408], 1e-05, False),
    ("Max(z1**2, z2**2, z3**2)", "deterministic", [1.6955623866871299], 1e-05, False),
    ("sin(z1) + sin(z2)", "deterministic", [0.0, 0.5000554463565781], 1e-09, False),
    ("tanh(z1)+tanh(z2)+tanh(z3)", "deterministic", [0.0, 1.429263016282393], 0.001, False),
    ("relu(z1)*relu(z2)*relu(z3)", "deterministic", [0.0, 8.693881408960127], 1e-02, False),
    ("z1*relu(z2) + z3*relu(-z2)", "deterministic", [0.0, 0.6143204459783158], 1e-09, False),
    ("sign(z1*z2)*exp(-z1**2)", "deterministic", [0.4575722824950313], 1e-09, False),
    ("softplus(z1)+softplus(z2)", "deterministic", [0.0, 0.5], 1e-09, False),
    ("z1*z2/(z1**2 + z2**2)", "deterministic", [2.0], 1e-06, False),
    ("relu(z1)+relu(z2)+relu(z3)", "deterministic", [0.0, 1.1176240687927155], 1e-09, False),
    ("exp(z1)+exp(z2)", "deterministic", [0.0, 0.5], 1e-09, False),
    ("tanh(z1)*tanh(z2)", "deterministic", [0.6556670129712908], 1e-09, False),
    ("relu(z1)*relu(z2)", "deterministic", [0.0, 2.4206855257935045], 1e-09, False),
    ("z1*z2", "multiplicative", [2.5651804019229156], 1e-09, True),
    ("z1+relu(z1)*z2*z3", "deterministic", [0.0, 1.187502196444536], 1e-09, False),
    ("abs(z1)*z2**2+z1**2", "deterministic", [0.7246929721886405], 1e-05, False),
    ("z1**2*z2**2*z3**2", "deterministic", [2.5651804019229054], 1e-09, True),
    ("Max(z1,z2,z3)", "deterministic", [0.0, 1.2105875087493727], 1e-05, False),
    ("sign(z1)+sign(z2)+sign(z3)+sign(z4)", "deterministic", [0.0, 7.892211044187642], 1e-09, True),
    ("sign(z1)+sign(z2)+sign(z3)", "random_sign", [1.8505508252042548], 1e-09, False),
    ("sign(z1)+sign(z2)+sign(z3)", "gaussian:1/4", [0.0, 4.383384379187866], 1e-09, False),
    ("abs(z1)+abs(z2)+abs(z3)", "deterministic", [1.6378683918446362], 1e-09, True),
    ("abs(z1-z2) + z1*z2", "deterministic", [0.5502471496055725], 1e-09, True),
    ("z1**2*z2+z3*z1", "deterministic", [0.0, 0.6317916178502684], 1e-09, False),
    ("relu(z1)+relu(z2)+relu(z3)+relu(z4)", "deterministic", [0.0, 1.6956955337322328], 1e-09, False),
]


@pytest.mark.parametrize(("text", "law", "stages", "within"), [
    pytest.param(*row[:4], id=f"{row[0]} {row[1]}", marks=() if row[4] else pytest.mark.slow) for row in ROWS])
def test_every_stage(text, law, stages, within):
    """To the digits that are asked for, and no further from the value than the error that is claimed."""
    found = hx.exponents(text, law, budget=120).threshold
    assert len(found.stages) == len(stages)
    for mine, value in zip(found.stages, stages, strict=True):
        apart = abs(float(mine["alpha_c"]) - value)
        assert apart <= within*value and apart <= 3*float(mine["error"]) + 1e-11*value
