"""A notebook opened in a real JupyterLab, in headless Chromium: its formulas are typeset, its pictures are drawn.

It needs jupyterlab, selenium, Chromium and its driver, and is skipped where one of them is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import hermitex as hx

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")]

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(p.stem for p in FOLDER.glob("*.ipynb"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
TOKEN, PATIENCE = "open", 120

# What is on the page: cells, formulas, formulas that MathJax could not read, dollars left in outputs, pictures and those drawn.
SEEN = """
const every = (s) => [...document.querySelectorAll('.jp-Notebook ' + s)];
const pictures = every('.jp-RenderedImage img');
return {cells: every('.jp-Cell').length, formulas: every('mjx-container').length,
        broken: every('mjx-merror, [data-mjx-error]').map((e) => e.textContent),
        raw: every('.jp-RenderedHTMLCommon, .jp-RenderedLatex').map((e) => e.innerText).filter((t) => t.includes('$')),
        pictures: pictures.length, drawn: pictures.filter((i) => i.complete && i.naturalWidth > 100).length};
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab that serves a copy of the notebooks."""
    pytest.importorskip("jupyterlab")
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(FOLDER, home/"notebooks", ignore=shutil.ignore_patterns(".*"))
    own = {"JUPYTER_RUNTIME_DIR": "run", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data",
           "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces"}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0", "--LabApp.news_url=",
               f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={home/'notebooks'}"]
    with open(home/"log", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {k: str(home/v) for k, v in own.items()})
    try:
        yield _address(home, server)
    finally:
        server.terminate()
        server.wait(20)


def _address(home: Path, server: subprocess.Popen) -> str:
    for _ in range(2*PATIENCE):
        for note in home.glob("run/jpserver-*.json"):
            try:
                return json.loads(note.read_text())["url"]
            except ValueError:  # it is being written
                pass
        assert server.poll() is None, (home/"log").read_text()
        time.sleep(0.5)
    raise AssertionError((home/"log").read_text())


@contextmanager
def _chromium(profile: Path):
    """A headless Chromium with a window tall enough for a whole notebook."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (CHROMIUM and DRIVER):
        pytest.skip("Chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,9000",
                   "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(option)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One browser for all notebooks; its log holds what any of them said."""
    with _chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def fresh_browser(tmp_path):
    """A browser that has opened no page, so that its log holds what the page of one test says."""
    with _chromium(tmp_path/"chromium") as driver:
        yield driver


def _opened(browser, address: str, name: str) -> dict:
    """What is seen of a notebook once nothing changes any more."""
    browser.get(f"{address}doc/tree/{name}.ipynb?token={TOKEN}&reset")
    last, until = None, time.time() + PATIENCE
    while time.time() < until:
        time.sleep(1.5)
        seen = browser.execute_script(SEEN)
        if seen == last and seen["formulas"] and not seen["raw"]:
            break
        last = seen
    return seen


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_formulas_and_pictures_are_seen(lab, browser, name):
    notebook = json.loads((FOLDER/f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [o["data"] for c in notebook["cells"] for o in c.get("outputs", []) if "data" in o]
    seen = _opened(browser, lab, name)
    assert seen["cells"] >= len(notebook["cells"])
    assert seen["formulas"] >= sum("text/latex" in d or "text/markdown" in d or "$" in "".join(d.get("text/html", ""))
                                   for d in outputs) > 0
    assert not seen["broken"] and not seen["raw"]
    assert seen["drawn"] == seen["pictures"] == sum("Figure" in "".join(d["text/plain"]) for d in outputs)


def test_a_slider_of_an_interactive_report_moves_the_curve(fresh_browser, tmp_path):
    """The page is one file; at each place of the slider it reads what the theory solves there."""
    place = hx.report("sin", "tanh", alpha=[1, 2, 3], interactive=True).save(tmp_path/"sheet.html")
    fresh_browser.get(place.as_uri())
    assert not [entry for entry in fresh_browser.get_log("browser") if entry["level"] == "SEVERE"]
    theory, number = hx.theories.one_step("sin", "tanh"), fresh_browser.find_element("id", "explorer-number")
    move = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    ridge, rate, _ = fresh_browser.find_elements("css selector", "#explorer-controls input")
    seen = set()
    for lam, eta, places in ((0.1, 1, (4, 2)), (10, 1, (8, 2)), (1e-3, 4, (0, 4))):
        for slider, at in zip((ridge, rate), places, strict=True):
            fresh_browser.execute_script(move, slider, at)
        known = theory.solve(alpha=2, lam=lam, alpha0=5, eta=eta)["test_error"]
        assert number.text.startswith("test error, sin at n/d = 2: ")
        assert float(number.text.rpartition(": ")[2]) == pytest.approx(known, rel=1e-4)
        seen.add(fresh_browser.find_element("css selector", "#explorer polyline").get_attribute("points"))
    assert len(seen) == 3
