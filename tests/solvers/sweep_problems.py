"""What worker processes solve in the tests of sweeps, and a script that is killed."""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import saddles

from hermitex.solvers.restarts import solve_robustly


def curve(point, pause=0.0):
    """A line of the one-step block; a point with alpha above 4.9 is said to have failed."""
    time.sleep(pause)
    start = np.ones((len(saddles.FOUR), point["alpha"].size))

    def both(x, p):
        return saddles.one_step(x, p), saddles.one_step_jacobian(x, p)

    s = solve_robustly(start, {**point, "beta": 1.0}, names=saddles.FOUR, residual=saddles.one_step,
               both=both, positive=True, raise_on_failure=False)  # fmt: skip
    good = s.converged & (point["alpha"] < 4.9)
    return {**s.value, "residual": s.residual, "iterations": s.iterations, "converged": good,
            "reason": np.where(good, "", "alpha, the load, is too large")}  # fmt: skip


def cheap(point):
    """Thirds and square roots: floats with all their digits."""
    good = point["alpha"] < 4.9
    return {"q": point["alpha"] / 3, "V": np.sqrt(point["lam"] * point["alpha"]), "converged": good,
            "reason": np.where(good, "", "alpha, the load, is too large")}  # fmt: skip


def fussy(point):
    if (point["alpha"] == 3).any():
        raise ArithmeticError("no solution at 3\nand a second line")
    return {"q": 1 / point["alpha"], "sign": point["alpha"] > 2, "count": np.arange(point["alpha"].size),
            "limit": np.where(point["alpha"] > 4, np.inf, np.nan)}  # fmt: skip


def deadly(point, folder, times):
    """Kills its own process at alpha = 3, the first `times` times."""
    if (point["alpha"] == 3).any():
        marks = Path(folder)
        tried = len(list(marks.iterdir()))
        if tried < times:
            (marks / str(tried)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return {"q": point["alpha"] ** 2}


GRID = {"alpha": np.geomspace(0.2, 5, 24), "lam": 10.0 ** -np.arange(1, 6)}

if __name__ == "__main__":
    from hermitex.solvers.chunked_sweep import sweep

    folder, csv, workers, pause = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    table = sweep(partial(curve, pause=pause), GRID, workers=workers, checkpoint=folder, chunk=8, signature="test")
    table.to_csv(csv)
