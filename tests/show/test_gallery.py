"""The gallery: every picture of it is made by the lines that stand over it, and make_figures.py runs these lines."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[2]/"docs"
PAGE = (DOCS/"gallery.md").read_text(encoding="utf-8")
PICTURES = re.findall(r"\(figures/(\w+)\.png\)", PAGE)


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("make_figures", DOCS/"make_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_has_its_lines(figures):
    assert list(figures.FIGURES) == PICTURES and len(set(PICTURES)) == len(PICTURES) >= 8
    assert {path.stem for path in (DOCS/"figures").glob("*.png")} == set(PICTURES)
    blocks = re.findall(r"```py\n(.*?)```", PAGE, re.S)
    assert [figures.FIRST, *figures.FIGURES.values()] == blocks, "no other lines stand on the page"


@pytest.mark.parametrize("name", PICTURES)
def test_the_lines_make_the_picture(figures, name, tmp_path):
    """The same pixels, or, with another release of Matplotlib than the one that the file names, the same size."""
    import matplotlib
    from matplotlib.image import imread

    matplotlib.use("agg")
    kept = DOCS/"figures"/f"{name}.png"
    made = imread(figures.save(figures.made(name), tmp_path/"made.png"))
    assert made.shape == imread(kept).shape
    if f"Matplotlib version{matplotlib.__version__},".encode() in kept.read_bytes():
        assert (abs(made - imread(kept)) > 0.1).mean() < 1e-3  # a line is a hundredth of the pixels
