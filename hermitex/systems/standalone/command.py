"""The command line of an exported file: --selftest, or a table of the solutions at every combination of the values given."""

import argparse
import json
import os
import sys

import numpy as np

from hermitex.systems.standalone.solving import NotSolved


def values(text):
    """0.5, or 0.2,0.9, or first:last:points, or for an array FILE.npy."""
    try:
        if text.endswith(".npy"):
            if not os.path.isfile(text):
                raise ValueError("it is no file")
            found = np.load(text)
            if found.dtype.kind not in "fiu":
                raise ValueError("it does not hold real numbers")
        elif ":" in text:
            first, last, points = text.split(":")
            if not 1 <= int(points) <= 10**7:
                raise ValueError("a range has 1 to 10,000,000 points")
            found = np.linspace(float(first), float(last), int(points))
        else:
            found = np.array([float(v) for v in text.split(",")])
        if not found.size or not np.isfinite(found).all():
            raise ValueError("every value must be finite, and there is one or more")
        return found
    except (EOFError, OSError, TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: {error}") from None


def first_guess(text):
    """q=0.5,m=1 as {unknown: number}."""
    try:
        return {name.strip(): float(value) for name, value in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: a start is UNKNOWN=NUMBER,UNKNOWN=NUMBER") from None


def deviation(solve, reference):
    """The largest deviation from the reference points, relative; values below 1e-6 count as 1e-6."""
    off = [0.0 if str(found[name]) == str(value) else abs(found[name] - value)/max(abs(value), 1e-6)
           for given, expected in reference for found in [solve(**given)] for name, value in expected.items()]
    return float(np.max(off))


def command(solve, code, reference, doc, argv=None):
    """Print the self-test or a table; exit 0, 1 if something failed, or 2 for what is no input."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0].replace("%", "%%"), conflict_handler="resolve",
                                     allow_abbrev=False)
    names, every = [*code.parameters, *dict.fromkeys(e[1] for e in code.arrays if e[1])], solve.__code__
    defaults, timed = solve.__kwdefaults__, "t" in every.co_varnames[:every.co_argcount + every.co_kwonlyargcount]
    words = dict(zip(names, every.co_varnames))  # the options are the keywords of `solve`
    for name, word in words.items():
        also = ["--lam"] if name == "lamda" and "lam" not in words else []
        parser.add_argument(f"--{word}", *also, dest=word, type=values, action="append", metavar="VALUES")
    if timed:
        parser.add_argument("--t", type=values, metavar="TIMES", help="to report; or one, to reach")
    parser.add_argument("--start", type=first_guess, metavar="NAME=VALUE,...", help="a first guess")
    parser.add_argument("--tolerance", type=float, default=defaults["tolerance"], help="relative (default: %(default)g)")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="what is left by then fails")
    if "method" in defaults:
        parser.add_argument("--method", default=defaults["method"], help="newton, or iterate: the map itself")
        parser.add_argument("--damping", type=float, default=defaults["damping"], metavar="WEIGHT", help="of --method iterate")
    parser.add_argument("--selftest", action="store_true", help="solve the reference points and compare")
    parser.add_argument("--json", action="store_true", help="print JSON, a list for each quantity")
    given = vars(parser.parse_args(argv))
    if given.pop("selftest"):
        try:
            worst = deviation(solve, reference)
        except NotSolved as error:
            print(f"selftest: {len(reference)} points: FAILED, {error}")
            return 1
        good = worst <= 1e-9
        print(f"selftest: {len(reference)} points, largest deviation {worst:.1e}: {'passed' if good else 'FAILED'}")
        return 0 if good else 1
    missing = [word for word in [*words.values(), *(["t"] if timed else [])] if given[word] is None]
    if missing:
        parser.error(f"give a value for {', '.join('--' + n for n in missing)}, or --selftest")
    for word in words.values():
        if len(given[word]) > 1:
            parser.error(f"--{word} has two values; give it once")
        given[word] = given[word][0]
    axes = [given[words[n]] for n in code.parameters]
    total = int(np.prod([a.size for a in axes], dtype=float))
    if total > 10**7:
        parser.error(f"the grid has {total} points, at most 10,000,000 fit")
    points = {n: v.ravel() for n, v in zip(code.parameters, np.meshgrid(*axes, indexing="ij"))}  # every combination
    as_json = given.pop("json")
    try:
        found = solve(**given | {words[n]: v for n, v in points.items()})
    except NotSolved as error:
        print(error, file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    times = np.size(found.get("t", 0))
    found = {n: np.repeat(v, times) for n, v in points.items()} | {
        n: np.tile(v, total) if n == "t" else np.ravel(v) if np.size(v) == total*times else np.repeat(v, times)
        for n, v in found.items()}
    if as_json:
        print(json.dumps({n: [v if v == v else None for v in np.atleast_1d(v).tolist()] for n, v in found.items()}))
        return 0
    table = [list(found), *([f"{v:.8g}" for v in row] for row in zip(*map(np.atleast_1d, found.values())))]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        print("  ".join(v.rjust(w) for v, w in zip(row, widths)))
    return 0


def run(main):
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
