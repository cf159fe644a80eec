"""The sheet of a model: parts that apply and parts that say why not, calls that give the same numbers, files that are whole."""

from __future__ import annotations

import json
import random
import re
import shlex
import time
from html import unescape
from html.parser import HTMLParser

import pytest

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.face import cli
from hermitex.face.sheet.sheet_page import Literal, Prose, Section, Tabular
from hermitex.face.sheet.sheet_writers import WRITERS, Sheet

FORMATS = tuple(WRITERS)
TITLES = {"What the target asks of an algorithm", "Coefficients", "Without feature learning", "After one gradient step",
          "Bounds and the best rate", "Spectrum of the features"}
PARTS = len(TITLES)
NASTY = r"<script>a$x$ \end{document} | *b* _c_ `d` #e {f} \cite{T24} & % ~ ^"


@pytest.fixture(scope="module")
def sheet():
    return hx.report(["erf", "z"], "He3", alpha=[0.5, 1, 2], lam=0.2)


class _Page(HTMLParser):
    """What a page loads, and whether its tags match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "path", "br"):
            self.open.append(tag)
        self.loads += [(tag, v[:20]) for k, v in attrs if k in ("src", "href")] + ([(tag, "")] if tag in ("script", "link") else [])

    def handle_endtag(self, tag):
        if tag not in ("path", "img"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def _whole(place, ending):
    """The file is what its ending says, and needs nothing but itself and its pictures."""
    text = place.read_text(encoding="utf-8")
    if ending == ".html":
        page = _Page(text)
        assert not page.open and all(kind == "img" and at.startswith("data:image/png") for kind, at in page.loads)
    elif ending == ".ipynb":
        nbformat = pytest.importorskip("nbformat")
        nbformat.validate(nbformat.reads(text, 4))
    elif ending == ".tex":
        opened = []
        text = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
        body = text.split(r"\makeatother", 1)[1].split(r"\ifdefined", 1)[0]
        for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
            assert kind == "begin" or opened.pop() == name
            opened += [name] if kind == "begin" else []
        assert not opened and text.isascii() and re.sub(r"\\.", "", body).count("{") == re.sub(r"\\.", "", body).count("}")
        assert re.sub(r"\\.", "", body).count("$") % 2 == 0
    else:
        assert all(row.count("|") - row.count(r"\|") >= 3 for row in text.splitlines() if row.startswith("| "))
    for picture in re.findall(r"(?:\]\(|\]\{)([^)}]+_files/[^)}]+)", text):
        assert (place.parent/picture).stat().st_size > 1000
    return text


def test_the_parts_and_their_numbers(sheet):
    assert len(sheet.sections) == PARTS and not sheet.absent
    data = {s.title: s.data for s in sheet.sections}
    found = data["What the target asks of an algorithm"]["exponents"]
    assert (found["information_exponent"], found["generative_exponent"]) == (3, 1)
    curve = data["After one gradient step"]["erf"]
    alone = hx.theories.one_step("erf", "He3").curve(alpha=[0.5, 1, 2], lam=0.2, alpha0=5, eta=1)
    assert curve["test_error"] == pytest.approx(alone.test_error, rel=1e-9)
    assert data["Without feature learning"]["z"]["best_linear"] == pytest.approx(6)
    assert "cui2024" in sheet.bibtex() and "3 parts" not in repr(sheet)


@pytest.mark.slow
def test_every_call_gives_the_numbers_beside_it(sheet):
    names: dict = {}
    exec(sheet.shared, names)
    given = {s.title: [eval(line, names) for line in s.code.splitlines()] for s in sheet.sections}
    data = {s.title: list(s.data.values()) for s in sheet.sections}
    for title in TITLES - {"Coefficients"}:
        assert len(data[title]) == len(given[title])
        for kept, again in zip(data[title], given[title], strict=True):
            assert json.dumps(hx_plain(again.to_dict())) == json.dumps(hx_plain(kept)), title
    expansions, constants = data["Coefficients"]
    assert [e.to_dict() for e in given["Coefficients"][:3]] == list(expansions.values())
    assert [{k: float(v) for k, v in c["values"].items()} for c in given["Coefficients"][3:]] == list(constants.values())


def hx_plain(value):
    from hermitex.face.output import plain

    return plain(value)


@pytest.mark.slow
def test_every_command_line_is_answered(sheet, capsys):
    for section in sheet.sections:
        for command in section.shell:
            program, *words = shlex.split(command)
            assert program == "hermitex" and cli.main(words) == 0, command
    capsys.readouterr()


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_is_whole(sheet, ending, tmp_path):
    place = sheet.save(tmp_path/f"a b%_1{ending}")
    text = _whole(place, ending)
    assert "He3" in text and "erf" in text
    assert {p.name for p in tmp_path.iterdir()} == {place.name, *(["a-b-_1_files"] if ending in (".md", ".tex") else [])}
    before = place.read_bytes()
    assert sheet.save(place).read_bytes() == before  # the same sheet, the same bytes


@pytest.mark.parametrize("ending", [".md", ".tex"])
def test_a_failure_leaves_nothing(sheet, ending, tmp_path, monkeypatch):
    from hermitex.face import model_sheet
    from hermitex.show.files import write_whole

    def full(path, content):
        if str(path).endswith(ending):
            raise BadInput("no space left on device")
        return write_whole(path, content)

    monkeypatch.setattr(model_sheet, "write_whole", full)
    with pytest.raises(BadInput, match="no space"):
        sheet.save(tmp_path/f"sheet{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", FORMATS)
def test_a_text_of_a_user_is_itself_in_every_format(ending, tmp_path):
    words = Literal(NASTY)
    section = Section(NASTY, [Prose(("$x_1$: ", words)), Tabular((words, "$y$"), ((words, "1"),))], "1", [NASTY], {}, ["T24"])
    text, _ = WRITERS[ending](Sheet(NASTY, [], "import hermitex", [section, Section("b", absent=NASTY)]))
    place = tmp_path/f"n{ending}"
    place.write_text(text, encoding="utf-8")
    _whole(place, ending)
    if ending == ".html":
        page = _Page(text)
        assert page.words.count(NASTY) >= 4 and "script" not in page.open
    elif ending == ".tex":
        outside = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
        assert outside.count(r"\end{document}") == 1 and text.count(r"\textless{}script\textgreater{}") >= 4
    else:
        cells = [] if ending == ".md" else json.loads(text)["cells"]
        said = text if ending == ".md" else "".join(x for c in cells if c["cell_type"] == "markdown" for x in c["source"])
        outside = re.sub(r"```.*?```", "", said, flags=re.DOTALL)
        assert "<script" not in outside.replace(r"\<", "") and r"\*b\*" in outside and r"\$x\$" in outside


@pytest.mark.parametrize("wrong", [{"eta": [1, 2]}, {"lam": 1, "lamda": 2}, {"channel": "foo"}, {"lam": -1}, {"beta": 0},
                                   {"alpha": [-1]}, {"budget": -1}], ids=str)
def test_what_no_part_could_use_is_refused_before_all(wrong):
    with pytest.raises((BadInput, UnknownName)) as told:
        hx.report("tanh", "sin", **{"alpha": [1.0], **wrong})
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("sigma", "target", "there"), [
    ("relu", "sign(z1*z2)", {"What the target asks of an algorithm", "Coefficients"}),
    ("sign", "He2", TITLES - {"After one gradient step", "Bounds and the best rate", "Spectrum of the features"}),  # sigma' is none
    ("tanh", "exp(z**2/2)", {"What the target asks of an algorithm"})])
def test_a_part_that_does_not_apply_says_why_in_a_line(sigma, target, there, tmp_path):
    found = hx.report(sigma, target, alpha=[1])
    assert TITLES - set(found.absent) == there
    assert all(why and "\n" not in why and "Traceback" not in why for why in found.absent.values())
    for ending in FORMATS:
        text = _letters(_whole(found.save(tmp_path/f"s{ending}"), ending))
        assert all(_letters(why)[:20] in text for why in found.absent.values())


def _letters(text):
    return re.sub("[^a-z]", "", unescape(text))


def test_no_time_is_said_in_every_part(tmp_path, capsys):
    found = hx.report("z*tanh(z)", "cos(z)*tanh(z)", alpha=[1], budget=1e-6)
    assert len(found.sections) == PARTS and found.sections[0].data["exponents"]["generative_exponent"] is None
    assert all("budget" in why for why in found.absent.values()) and len(found.absent) >= 3
    for ending in (".html", ".ipynb", ".md", ".tex"):  # a report with a missing part says so before anything else
        text = found.save(tmp_path/f"sheet{ending}").read_text(encoding="utf-8")
        assert "(not complete)" in text and "This report is not complete" in text
    assert found.unfinished == found.absent == found.to_dict()["unfinished"]
    command = ["report", "--sigma", "z*tanh(z)", "--target", "cos(z)*tanh(z)", "--alpha", "1", "--budget", "1e-6"]
    assert cli.main([*command, "-o", str(tmp_path/"cut.md")]) == cli.FAILED and "CPU seconds" in capsys.readouterr().err


@pytest.mark.parametrize(("sigma", "target", "said"), [
    ("tanhh", "sin", "tanhh"), ("tanh", "sinn", "sinn"), ("tanh", "a*z", "'a'"), (["tanh", "a*z"], "sin", "'a'"),
    ([], "sin", "activation")])
def test_what_is_no_function_is_one_line(sigma, target, said):
    with pytest.raises(BadInput, match=said) as error:
        hx.report(sigma, target)
    assert "\n" not in str(error.value)


def test_numbers_and_options_are_checked():
    for wrong in ({"alfa0": 1}, {"alpha": []}, {"alpha": ["x"]}, {"lam": "x"}, {"simulate": {"seed": 1}}, {"simulate": 3},
                  {"channel": 3}, {"alpha0": float("nan")}):
        with pytest.raises(BadInput):
            hx.report("tanh", "sin", **wrong)


@pytest.mark.slow
def test_command_line(capsys, tmp_path):
    place = tmp_path/"s.html"
    asked = ["report", "--sigma", "erf, Max(z, 0)", "--target", "tanh"]
    assert cli.main([*asked, "--alpha", "0.5,1", "-o", str(place)]) == 0
    out = capsys.readouterr().out
    assert out.strip() == str(place) and "Max(z, 0)" in _whole(place, ".html")
    assert cli.main([*asked, "--alpha", "0.5,1", "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert len(parts) == PARTS and parts[3]["numbers"]["erf"]["alpha"] == [0.5, 1]


@pytest.mark.parametrize("wrong", [[], ["-o", "x.pdf"], ["-o", "/nowhere/x.html"], ["-o", "x.html", "--seeds", "3"],
                                   ["-o", "x.html", "--alpha", "a"], ["-o", "x.html", "--simulate", "--simulate-dimension", "2.5"]])
def test_a_bad_command_is_one_line_and_no_file(wrong, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "--sigma", "erf", "--target", "-z", *wrong]) == cli.BAD_INPUT
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "Traceback" not in err and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_experiment_stands_beside_the_theory(tmp_path):
    found = hx.report("tanh", "tanh", alpha=[0.5, 2], simulate={"dimension": 30, "seeds": 2})
    part = found.sections[3]
    measured = part.data["tanh"]["simulation"]
    assert measured["parameters"]["dimension"] == 30 and len(measured["test_error"]) == 2
    assert "simulate={'dimension': 30, 'seeds': 2}" in part.code and "--simulate-dimension 30" in part.shell[0]
    assert r"\pm" in _whole(found.save(tmp_path/"s.tex"), ".tex")


def test_an_experiment_that_a_budget_ends_leaves_the_rest_of_the_sheet(monkeypatch):
    from hermitex.face import theory_and_experiment as face
    from hermitex.face.sheet.sheet_parts import Model, learning_curve
    from hermitex.symbolic import deadline

    monkeypatch.setattr(deadline, "PAUSE", 0.1)
    monkeypatch.setattr(face, "experiment", lambda *args, **numbers: time.sleep(10))
    numbers = {"beta": 1.0, "lam": 0.1, "Delta": 0.0, "alpha0": 5.0, "eta": 1.0}
    part = learning_curve(Model(("z",), "z", None, (0.5, 2.0), numbers, {}, 60.0, patience=0.1))
    assert len(part.data["z"]["test_error"]) == 2
    assert any("z: the experiment is left out: the budget of 0.1 CPU seconds ran out" in str(b) for b in part.blocks)
    assert part.unfinished.startswith("z: the experiment is left out") and not part.absent


def test_functions_of_python_and_formulas_are_named_so_that_calls_repeat_them():
    from hermitex.symbols import z1, z2

    found = hx.report(lambda x: x**3 - x, z1*z2 + z1, alpha=[1])
    assert found.title == "z**3 - z for z1*z2 + z1"
    assert found.sections[1].code.splitlines()[:2] == [
        "hx.expand('z1*z2 + z1', order=6, basis=\"orthonormal\")", "hx.expand('z**3 - z', order=8, basis=\"orthonormal\")"]


def _drawn(seed):
    """An activation and a target of a class: polynomials, sums and products of functions, jumps, several variables, too large."""
    draw = random.Random(seed)
    names = ["tanh", "erf", "relu", "gelu", "sin", "sign", "He3", "softplus"]

    def one():
        return draw.choice([f"{draw.choice(names)}({draw.choice(['z', '2*z', 'z - 1'])})", "Piecewise((z, z > 1), (0, True))",
                            f"{draw.randint(1, 3)}*He{draw.randint(1, 4)}(z)", "z*exp(-z**2)"])

    sigma = draw.choice([draw.choice(names[:5]), f"{one()} + {one()}"])
    target = draw.choice([one(), f"{one()}*{one()}", "sign(z1*z2)", "He2(z1) + z2*z3", "exp(z**2/3)"])
    return sigma, target


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_drawn_models(seed, tmp_path):
    sigma, target = _drawn(seed)
    found = hx.report(sigma, target, alpha=[0.5, 1.5], budget=8)
    assert len(found.sections) == PARTS
    for section in found.sections:
        assert section.absent or (section.code and section.data), section.title
        for number in re.findall(r"-?nan|inf", json.dumps(hx_plain(dict(section.data)))):
            assert number == "inf", (sigma, target, section.title)
    for ending in FORMATS:
        _whole(found.save(tmp_path/f"s{ending}"), ending)
    names: dict = {}
    exec(found.shared, names)
    for section in found.sections[2:4]:
        for line, kept in zip(section.code.splitlines(), section.data.values(), strict=True):
            again = eval(line, names).to_dict()
            assert hx_plain(again) == hx_plain(kept)


def test_a_gaussian_channel_is_noise_in_every_part():
    found = hx.report("tanh", "sin", channel="gaussian:1/4", alpha=[1])
    known = hx.report("tanh", "sin", Delta=0.25, alpha=[1])
    assert not found.absent
    for one, two in zip(found.sections[1:], known.sections[1:], strict=True):
        assert one.data == two.data and one.code == two.code
    with pytest.raises(BadInput, match="two noises"):
        hx.report("tanh", "sin", channel="gaussian:1/4", Delta=1, alpha=[1])


def test_another_channel_says_which_parts_it_leaves_out():
    found = hx.report("tanh", "sign", channel="flip:1/10", alpha=[1])
    assert TITLES - set(found.absent) == {"What the target asks of an algorithm", "Coefficients"}
    assert all("flip:1/10" in why for why in found.absent.values()) and "4 parts left out" in repr(found)
    assert "by the channel" in found._repr_html_()
