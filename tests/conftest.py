"""One thread of BLAS for each process of the tests, and the same examples of Hypothesis at every run.

Two processes with two threads each wait for one another on two cores: small eigenvalue problems then take ten times
their CPU. `--hypothesis-profile=default` looks for new examples.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported; the workers inherit it

from hypothesis import settings  # noqa: E402

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
