"""The text of an exported file:  header, solve, formulas, quadrature, solver, self-test, command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

FORMULAS = ("tables", "right_hand_sides", "observables", "lawful")  # beside block_1, block_2, ...


@dataclass(frozen=True)
class Template:
    """A text with places <<name>>; a section whose place is empty is left out with its title."""

    text: str

    def render(self, values: Mapping[str, str]) -> str:
        """The text with every place filled, each once: what a value holds is not read again."""
        text = self.text
        for name in ("helpers", "quadrature"):
            if not values[name]:
                head, _, rest = text.partition(f"<<begin {name}>>")
                text = head + rest.partition(f"<<end {name}>>")[2].lstrip("\n")
            text = text.replace(f"<<begin {name}>>\n", "").replace(f"<<end {name}>>\n", "")
        return _filled(text, values).rstrip() + "\n"

    def docstrings(self, values: Mapping[str, str]) -> dict[str, str]:
        """What the docstrings of the file ("") and of its `solve` are to say, the values as they stand."""
        head, _, rest = self.text.partition('"""')[2].partition('"""')
        return {"": _filled(head, values), "solve": _filled(rest.partition('"""')[2].partition('"""')[0], values)}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"<<(\w+)>>", lambda m: values[m[1]], text)


FILE = Template('''#!/usr/bin/env python3
"""<<title>>

<<formulas>>

Usage:

    from this_file import solve; solve(...)          python this_file.py --selftest
    python this_file.py --PARAMETER 0.2,0.9 ...      (0.5, or 0.2,0.9, or first:last:points) [--json]

Written by hermitex <<version>>; needs <<needs>> and nothing else.
"""

<<imports>>


def solve(<<signature>>*, start=None, tolerance=<<tolerance>>, budget=None,
          method=<<method>>, damping=<<damping>>):
    """Solve the equations at every point of the parameters.

    Parameters
    ----------
<<parameters>>
    start     : {unknown: first guess}, beside START; else 1 for what Newton's method seeks as positive, or 0
    tolerance : relative, for the unknowns; the quadrature is held to a third of it
    budget    : CPU seconds; what is not solved by then has not converged
    method    : "newton", or "iterate", x <- x + damping (rhs(x) - x), which ends at stable points only

    Returns
    -------
<<returned>>

    Raises
    ------
    NotSolved : some points did not converge; it names the first, and carries `.values` and `.converged`.
    ValueError : a parameter is not finite, or the shapes do not broadcast.
    """
    numbers = {<<given>>}
    return solve_all(CODE, numbers, START if start is None else start, tolerance, budget, method, damping)


# -- the formulas ------------------------------------------------------------------------------------------------------
# s holds numbers by name, quad the nodes and weights by integration variable; "d/u/v" is the derivative of the
# right-hand side of u by v; "matrix/u/v" and "constant/u" are the linear equation of u, sum_v matrix v + constant = 0.
<<begin helpers>>
<<helpers>>


<<end helpers>>
<<functions>>


<<begin quadrature>>
# -- quadrature: rules are refined where other nodes, or coarser weights on the same, give something else --------------
<<quadrature>>


<<end quadrature>>
# -- solving -----------------------------------------------------------------------------------------------------------
<<solving>>


<<axes>>CODE = Code(
    functions=globals(),
<<code>>    quadratures=<<rules>>,
)
START = <<start>>


# -- the self-test -----------------------------------------------------------------------------------------------------
# (parameters, solution), computed when this file was written. Residuals re-checked: <<checked>>.
REFERENCE = [
<<reference>>]


def selftest():
    """The largest deviation from the reference points, relative; values below 1e-6 count as 1e-6."""
    off = [0.0 if str(found[name]) == str(value) else abs(found[name] - value)/max(abs(value), 1e-6)
           for given, expected in REFERENCE for found in [solve(**given)] for name, value in expected.items()]
    return float(np.max(off))


# -- the command line --------------------------------------------------------------------------------------------------
def values(text):
    """0.5, or 0.2,0.9, or first:last:points, or for an array FILE.npy."""
    try:
        if text.endswith(".npy"):
            if not os.path.isfile(text):
                raise ValueError("it is no file")
            found = real_array(np.load(text))
        elif text.count(":") not in (0, 2):
            raise ValueError("a range is first:last:points")
        elif ":" in text:
            first, last, points = text.split(":")
            check_size("a range", {"values": int(points)})
            found = np.linspace(float(first), float(last), int(points))
        else:
            found = np.array([float(v) for v in text.split(",")])
        if not found.size:
            raise ValueError("a range has one point or more")
        return found
    except (EOFError, OSError, TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: {error}") from None


def first_guess(text):
    """q=0.5,m=1 as {unknown: number}."""
    try:
        return {name.strip(): float(value) for name, value in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: a start is UNKNOWN=NUMBER,UNKNOWN=NUMBER") from None


def main(argv=None):
    """Print the self-test or a table; exit 0, or 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\\n")[0].replace("%(", "% ("), conflict_handler="resolve",
                                     allow_abbrev=False)
    words = dict(zip(CODE.names, solve.__code__.co_varnames, strict=False))  # the options are the keywords of `solve`
    words_of_arrays = set(list(words.values())[len(CODE.parameters):])
    for name, word in words.items():
        also = ["--lam"] if name == "lamda" and "lam" not in words else []
        parser.add_argument(f"--{word}", *also, dest=word, type=values, action="append", metavar="VALUES")
    parser.add_argument("--start", type=first_guess, default=START, metavar="NAME=VALUE,...", help="a first guess")
    parser.add_argument("--tolerance", type=float, default=<<tolerance>>, help="relative (default: %(default)g)")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="what is left by then fails")
    parser.add_argument("--method", default=<<method>>, help="newton, or iterate: the map itself")
    parser.add_argument("--damping", type=float, default=<<damping>>, metavar="WEIGHT", help="of --method iterate")
    parser.add_argument("--selftest", action="store_true", help="solve the reference points and compare")
    parser.add_argument("--json", action="store_true", help="print JSON, a list for each quantity")
    given = vars(parser.parse_args(argv))
    if given["selftest"]:
        try:
            worst = selftest()
        except NotSolved as error:
            print(f"selftest: {len(REFERENCE)} points: FAILED, {error}")
            return 1
        good = worst <= 1e-9
        print(f"selftest: {len(REFERENCE)} points, largest deviation {worst:.1e}: {'passed' if good else 'FAILED'}")
        return 0 if good else 1
    missing = [word for word in words.values() if given[word] is None]
    if missing:
        parser.error(f"give a value for {', '.join('--' + n for n in missing)}, or --selftest")
    for word in words.values():
        if len(given[word]) > 1:
            parser.error(f"--{word} has two values; give it once")
    arrays = {name: given[word][0] for name, word in words.items() if word in words_of_arrays}
    words = {name: word for name, word in words.items() if name not in arrays}
    sizes = {word: given[word][0].size for word in words.values()}
    try:
        check_size("the grid", sizes)
    except ValueError as error:
        parser.error(str(error))
    total, done, points = int(np.prod(list(sizes.values()))), 1, {}
    for name, word in words.items():  # every combination
        done *= sizes[word]
        points[name] = np.tile(np.repeat(given[word][0], total//done), done//sizes[word])
    try:
        found = {**points, **solve_all(CODE, {**points, **arrays}, given["start"], given["tolerance"], given["budget"],
                                       given["method"], given["damping"])}
    except NotSolved as error:
        print(error, file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    if given["json"]:
        print(json.dumps({n: [v if v == v else None for v in np.atleast_1d(v).tolist()] for n, v in found.items()}))
        return 0
    rows = zip(*(np.broadcast_to(v, total) for v in found.values()), strict=True)
    table = [list(found), *([f"{v:.8g}" for v in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(v.rjust(w) for v, w in zip(row, widths, strict=True)))
    return 0


def run():
    """`main` and its exit status; what keeps it from its end is said in one line."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # where it is closed, nothing of it goes elsewhere
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may have letters that the terminal has not
        status = main()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        status, why = 130, "interrupted"
    except BrokenPipeError:  # the reader has what it wanted
        status, why = 0, ""
    except OSError as error:
        status, why = 2, f"standard output: {error.strerror or error}"
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to be written
    if why:
        print(why, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(run())
''')

# What differs where the equations are rates, {what a file for a System says: what one for a Flow says}.
_OF_A_FLOW = {
    "python this_file.py --PARAMETER": "python this_file.py --t 0:10:50 --PARAMETER",
    "*, start=None, tolerance=": "*, t, start=None, tolerance=",
    "Solve the equations at every": "Integrate the rates over time at every",
    "start     : {unknown: first guess}, beside START; else 1 for what Newton's method seeks as positive, or 0": """\
t         : the times to report, the first of them where the flow starts; or the time to reach from 0
    start     : {variable: number}, beside START""",
    "relative, for the unknowns; the quadrature is held to a third of it": "relative, at every time: two integrations agree to it",
    "what is not solved by then": "what is not integrated by then",
    "budget=None,\n          method=<<method>>, damping=<<damping>>):": "budget=None):",
    '    method    : "newton", or "iterate", x <- x + damping (rhs(x) - x), which ends at stable points only\n': "",
    '    parser.add_argument("--method", default=<<method>>, help="newton, or iterate: the map itself")\n': "",
    "solve_all(CODE, numbers, START if start is None else start, tolerance, budget, method, damping)":
        "flow_all(CODE, numbers, {**START, **(start or {})}, t, DOMAIN, tolerance, budget)",
    "START = <<start>>": "START = <<start>>\nDOMAIN = <<domain>>",
    """    missing = [word""": """    if given["t"] is None:
        parser.error("give --t, the times to report, or --selftest")
    missing = [word""",
    """    parser.add_argument("--damping", type=float, default=<<damping>>, metavar="WEIGHT", help="of --method iterate")
    parser.add_argument("--selftest",""":
        """    parser.add_argument("--t", type=values, metavar="TIMES", help="to report; or one, to reach")
    parser.add_argument("--selftest",""",
    """        found = {**points, **solve_all(CODE, {**points, **arrays}, given["start"], given["tolerance"], given["budget"],
                                       given["method"], given["damping"])}""":
        """        found = rows_of(points, flow_all(CODE, {**points, **arrays}, {**START, **given["start"]}, given["t"], DOMAIN,
                                         given["tolerance"], given["budget"]))
        total = len(found["t"])""",
}


def _for_flows(text: str) -> str:
    for old, new in _OF_A_FLOW.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


FLOW_FILE = Template(_for_flows(FILE.text))

PLACES = frozenset(re.findall(r"<<(\w+)>>", FLOW_FILE.text))
