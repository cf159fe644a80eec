"""How far it is: elapsed and left, a rewritten line on a terminal, a line each ten seconds elsewhere."""

import io
import time

import pytest

from hermitex.show import progress


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture(params=[True, False])
def screen(request):
    return Screen(request.param)


def told(monkeypatch, screen, steps, start=0, **how):
    """What is written where a step takes a second."""
    monkeypatch.setattr("sys.stderr", screen)
    now = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    tell = progress.reporter("sweep", "points", **how)
    for done in range(start, steps + 1):
        tell(done, steps)
        now[0] += 1.0


def test_it_says_what_is_done_and_what_is_left(screen, monkeypatch):
    told(monkeypatch, screen, 35)
    lines = [line for line in screen.getvalue().replace("\r", "\n").replace("\033[K", "").splitlines() if line]
    assert lines[-1] == "sweep: 35 of 35 points, 35 s"
    assert "sweep: 10 of 35 points, 10 s, about 25 s left" in lines
    assert len(lines) == (36 if screen.terminal else 4) and screen.getvalue().endswith("\n")
    assert ("\r" in screen.getvalue()) == screen.terminal


def test_what_was_done_before_says_nothing_of_the_pace(screen, monkeypatch):
    told(monkeypatch, screen, 50, start=30)
    assert "sweep: 40 of 50 points, 10 s, about 10 s left" in screen.getvalue()


def test_no_stderr_is_no_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert progress.reporter("sweep", "points")(1, 2) is None


@pytest.mark.parametrize("steps, lines", [(5, 0), (25, 3)])
def test_what_nobody_asked_for_is_said_where_it_takes_long(monkeypatch, steps, lines):
    screen = Screen(terminal=False)
    told(monkeypatch, screen, steps, asked=False)
    assert len(screen.getvalue().splitlines()) == lines


def test_a_long_step_is_told_of_while_it_lasts():
    heard = []
    with progress.heartbeat(lambda *now: heard.append(now), every=0.01) as tell:
        tell(1, 3)
        end = time.monotonic() + 10
        while len(heard) < 4 and time.monotonic() < end:
            time.sleep(0.005)
        tell(3, 3)
    assert heard[:4] == [(1, 3)]*4 and heard[-1] == (3, 3)
