"""The text of an exported file:  header, solve, formulas, what they speak of, averages, solver, command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """A text with places <<name>>."""

    text: str

    def render(self, values: Mapping[str, str]) -> str:
        """The text with every place filled, each once: what a value holds is not read again."""
        return _filled(self.text, values).rstrip() + "\n"

    def docstrings(self, values: Mapping[str, str]) -> dict[str, str]:
        """The docstrings of the file ("") and of its `solve`, with unescaped values."""
        head, _, rest = self.text.partition('"""')[2].partition('"""')
        return {"": _filled(head, values), "solve": _filled(rest.partition('"""')[2].partition('"""')[0], values)}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"<<(\w+)>>", lambda m: values[m[1]], text)


_START = '''#!/usr/bin/env python3
"""<<title>>

<<formulas>>

Usage:

    from this_file import solve; solve(...)          python this_file.py --selftest
    python this_file.py <<times>>--PARAMETER 0.2,0.9 ...      (0.5, or 0.2,0.9, or first:last:points) [--json]

Written by hermitex <<version>>; needs <<needs>> and nothing else.
"""

<<imports>>


'''
_SYSTEM = '''def solve(<<signature>>*, start=None, tolerance=<<tolerance>>, budget=None, method=<<method>>, damping=<<damping>>):
    """Solve the equations at every point of the parameters.

<<parameters>>
    start     : {unknown: first guess}, beside START; else 1 for what is positive, or 0
    tolerance : relative, for the error of every unknown and observable
    budget    : CPU seconds; what is not solved by then has not converged
    method    : "newton", or "iterate", x <- x + damping (rhs(x) - x), which ends at stable points only

<<returned>>
    Raises NotSolved where some points did not converge (it names the first, and carries `.values` and `.converged`),
    and ValueError where a parameter is not finite or the shapes do not broadcast.
    """
    numbers = {<<given>>}
    return solve_points(EQUATIONS, numbers, START if start is None else start, tolerance, budget, method, damping)


'''
_FLOW = '''def solve(<<signature>>*, t, start=None, tolerance=<<tolerance>>, budget=None):
    """Integrate the rates over time at every point of the parameters.

<<parameters>>
    t         : the times to report, the first of them where the flow starts; or the time to reach from 0
    start     : {variable: number}, beside START
    tolerance : relative, at every time: two integrations agree to it
    budget    : CPU seconds; what is not integrated by then has not converged

<<returned>>
    Raises NotSolved where a trajectory did not converge (it carries `.values` and `.converged`), and ValueError where a
    parameter is not finite or the shapes do not broadcast.
    """
    numbers = {<<given>>}
    return flow_points(EQUATIONS, numbers, {**START, **(start or {})}, t, tolerance, budget)


'''
_REST = '''# -- the formulas ------------------------------------------------------------------------------------------------------
# s holds numbers by name, quad the nodes and weights by integration variable; "d/u/v" is the derivative of the
# right-hand side of u by v; "matrix/u/v" and "constant/u" are the linear equation of u, sum_v matrix v + constant = 0.
# A block eliminates unknowns: s.get takes what their formulas say, unless s holds them.
<<functions>>


# -- the solver --------------------------------------------------------------------------------------------------------
<<driver>>


<<equations>>START = <<start>>
# (parameters, solution), computed when this file was written. Residuals re-checked: <<checked>>.
REFERENCE = (
<<reference>>)


def selftest():
    """The largest relative deviation from the reference points; values below 1e-6 count as 1e-6."""
    return float(np.max([0.0 if str(found[n]) == str(v) else abs(found[n] - v)/max(abs(v), 1e-6)
                         for given, expected in REFERENCE for found in [solve(**given)] for n, v in expected.items()]))


def main(argv=None):
    """The command line, with its exit status."""
    return command(solve, selftest, len(REFERENCE), EQUATIONS, __doc__, argv)


if __name__ == "__main__":
    sys.exit(run(main))
'''
FILE, FLOW_FILE = Template(_START + _SYSTEM + _REST), Template(_START + _FLOW + _REST)
PLACES = frozenset(re.findall(r"<<(\w+)>>", FILE.text + FLOW_FILE.text))
