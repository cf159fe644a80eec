"""Theory beside simulation, setting by setting: ``python tests/experiments/one_step_table.py`` measures the table again.

It writes tests/reference/one_step_simulation.json; the measured numbers depend on the seeds alone. With names as
arguments only those settings are measured.
"""

import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import scipy

import hermitex as hx
from hermitex.experiments.one_step_experiment import simulate
from hermitex.experiments.statistics import agreement

TABLE = Path(__file__).parents[1] / "reference" / "one_step_simulation.json"
# Setting k has the seeds 100 k, 100 k + 1, ...; networks are counted from 19: no two settings share a draw. A network's batch
# makes its errors fluctuate more.
DIMENSION, SEEDS, NETWORK_SEEDS = 600, 32, 64

# name -> (functions and structure, numbers)
FEATURES = {
    "smooth": (dict(sigma="tanh", target="sin"), dict(alpha=0.9, alpha0=20, eta=3, lam=0.1)),
    "narrow, noisy, jump in the target": (dict(sigma="tanh", target="sign"),
                                          dict(alpha=2, beta=0.5, alpha0=2, eta=1, lam=0.1, Delta=0.25)),
    "small batch": (dict(sigma="erf", target="sign"), dict(alpha=1.5, alpha0=0.5, eta=2, lam=0.05)),
    "kinked, wide": (dict(sigma="relu", target="relu"), dict(alpha=1, beta=2, r=0.8, c=1, gamma=0.9, lam=0.05)),
    "kinked, Gaussian rows, noisy": (dict(sigma="relu", target="relu", rows="gaussian"),
                                     dict(alpha=2, beta=1.5, r=0.8, c=1, gamma=0.9, lam=0.05, Delta=0.1)),
    "smooth, Gaussian rows": (dict(sigma="softplus", target="sin", rows="gaussian"),
                              dict(alpha=1.5, r=1.2, c=1.5, gamma=0.8, lam=0.02)),
    "even": (dict(sigma="abs", target="z + He2(z)/2"), dict(alpha=1.5, beta=0.7, r=1.2, c=1, gamma=0.7, lam=0.2)),
    "jumps, noisy": (dict(sigma="sign", target="sign"), dict(alpha=3, r=1.5, c=1, gamma=0.8, lam=0.05, Delta=0.3)),
    "neither odd nor even": (dict(sigma="softplus", target="sin"), dict(alpha=1.5, alpha0=5, eta=2, lam=0.05)),
    "typed by a user": (dict(sigma="z*tanh(softplus(z))", target="Piecewise((z, z > 0), (z**2/4, True))"),
                        dict(alpha=1.2, beta=1.3, r=1, c=0.8, gamma=0.85, lam=0.1)),
    "no spike": (dict(sigma="gelu", target="z + He3(z)/6"), dict(alpha=1.5, r=0, c=1, gamma=0.5, lam=0.05)),
    "overparametrised, small ridge": (dict(sigma="sin", target="tanh"), dict(alpha=0.6, beta=1.8, r=1, c=1, gamma=0.9, lam=1e-5)),
    "bias": (dict(sigma="tanh", target="z + He2(z)/2"), dict(alpha=2, r=0.9, c=1, gamma=0.9, lam=0.05, bias=-1)),
    "two letters": (dict(sigma="tanh", target="sin", vocabulary=[1, -1.5]),
                    dict(alpha=1.5, r=1, c=1, gamma=0.9, lam=0.05, Delta=0.1)),
    "three letters, unequal rows": (dict(sigma="relu", target="tanh", vocabulary=[1, 0.5, -1], fractions=[0.5, 0.25, 0.25],
                                         norms=[1, 0.8, 1.5]), dict(alpha=2, beta=1.2, r=1, gamma=0.8, lam=0.1)),
    "two letters, orthogonal rows": (dict(sigma="tanh", target="sin", vocabulary=[1, -1.5], rows="orthogonal"),
                                     dict(alpha=1.5, beta=0.8, r=1, c=1, gamma=1, lam=0.05)),
    "logistic": (dict(sigma="tanh", target="sign", loss="logistic"), dict(alpha=1.5, r=1.2, c=1, gamma=0.8, lam=0.05)),
    "Huber, noisy, narrow": (dict(sigma="erf", target="tanh", loss="huber:1/2"),
                             dict(alpha=1.5, beta=0.6, r=1, c=1, gamma=0.9, lam=0.1, Delta=0.5)),
}
# the trained network beside network="exact": the same kind of settings, odd activations
NETWORKS = {
    "network: smooth": (dict(sigma="tanh", target="sin", network="exact"), dict(alpha=0.9, alpha0=20, eta=3, lam=0.1)),
    "network: sign": (dict(sigma="tanh", target="sign", network="exact"), dict(alpha=2, alpha0=2, eta=3, lam=0.1)),
    "network: third order": (dict(sigma="tanh", target="z + He3(z)/6", network="exact"), dict(alpha=2, alpha0=3, eta=2, lam=0.05)),
    "network: wide": (dict(sigma="erf", target="sin", network="exact"), dict(alpha=2, beta=2, alpha0=3, eta=3, lam=0.05)),
    "network: noisy": (dict(sigma="erf", target="sin", network="exact"),
                       dict(alpha=3, beta=0.8, alpha0=1, eta=1.5, lam=0.05, Delta=0.1)),
    "network: large batch": (dict(sigma="tanh", target="sin", network="exact"), dict(alpha=1, alpha0=float("inf"), eta=3, lam=0.1)),
}


def compare(name, *, dimension=DIMENSION, runs=None):
    """(theory with the 1/d term, experiment) of one setting."""
    first = 100*([*FEATURES].index(name) if name in FEATURES else 19 + [*NETWORKS].index(name))
    seeds = range(first, first + (runs or (SEEDS if name in FEATURES else NETWORK_SEEDS)))
    structure, numbers = (FEATURES | NETWORKS)[name]
    structure = dict(structure)
    theory = hx.theories.one_step(structure.pop("sigma"), structure.pop("target"), **structure)
    numbers = dict(numbers)
    alpha = [numbers.pop("alpha")]
    return theory.curve(alpha, dimension=dimension, **numbers), simulate(theory, alpha, dimension=dimension, seeds=seeds, **numbers)


def measure(name):
    """One row of the table."""
    begun = time.process_time()
    theory, experiment = compare(name)
    z = agreement(theory, experiment).z
    theory.require()
    row = {k: {"theory": float(theory[k][0]) if k in theory else None, "experiment": float(experiment[k][0]),
               "standard_error": float(experiment.standard_error[k][0]), "z": float(z[k][0]) if k in z else None}
           for k in experiment.values}
    structure, numbers = (FEATURES | NETWORKS)[name]
    said = {k: "inf" if v == float("inf") else v for k, v in numbers.items()}
    return {"structure": structure, "numbers": said, "seconds": round(time.process_time() - begun, 1), "quantities": row}


def kept():
    """The rows measured so far."""
    return json.loads(TABLE.read_text())["settings"] if TABLE.exists() else {}


def main(names):
    """Measure, write, and print what a reader wants to see."""
    for name in names or [*FEATURES, *NETWORKS]:
        row = measure(name)
        print(f"{name:36}", " ".join(f"{k} {v['z']:+.1f}" for k, v in row["quantities"].items() if v["z"] is not None),
              f"{row['seconds']} s", flush=True)
        rows = {**kept(), name: row}
        versions = {"hermitex": hx.__version__, "numpy": np.__version__, "scipy": scipy.__version__,
                    "python": platform.python_version()}
        provenance = {"source": "direct simulation, tests/experiments/one_step_table.py", "dimension": DIMENSION,
                      "seeds": f"100 k to 100 k + {SEEDS - 1} for setting k; {NETWORK_SEEDS} for a network, counted from 19",
                      "theory": "with its 1/d term", "versions": versions}
        ordered = {n: rows[n] for n in [*FEATURES, *NETWORKS] if n in rows}
        TABLE.write_text(json.dumps({"provenance": provenance, "settings": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
