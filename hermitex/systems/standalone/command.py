# ruff: noqa: B905 - of equal length throughout, and a line of an exported file has room for less
"""The command line of an exported file: --selftest, or a table of the solutions at every combination of the values given."""

import argparse
import json
import os
import sys

import numpy as np

from hermitex.systems.standalone.solving import NotSolved

MOST = 10**7  # points of a table: 80 MB for each column


def values(text):
    """0.5, or 0.2,0.9, or first:last:points, or for an array FILE.npy."""
    try:
        first, *rest = text.split(":")
        if text.endswith(".npy"):
            found = np.load(text) if os.path.isfile(text) else np.array("no file")
        elif rest:
            last, points = rest
            found = np.linspace(float(first), float(last), int(points) if int(points) <= MOST else -1)
        else:
            found = np.array([float(v) for v in text.split(",")])
        if found.dtype.kind not in "fiu" or not found.size or not np.isfinite(found).all():
            raise ValueError("give finite numbers, one or more")
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
    return float(np.max([0.0 if str(found[n]) == str(v) else abs(found[n] - v)/max(abs(v), 1e-6)
                         for given, expected in reference for found in [solve(**given)] for n, v in expected.items()]))


def solved_or_nan(solve, given):
    """0 and the values; where some points failed, 1 and nan at these, and what failed is said; where all did, NotSolved."""
    try:
        return 0, solve(**given)
    except NotSolved as error:
        good = np.asarray(error.converged)
        if not good.any():
            raise
        print(error, file=sys.stderr)
        shown = {n: np.where(good.reshape(good.shape + (1,)*(v.ndim - good.ndim)), v, np.nan) for n, v in error.values.items()
                 if n not in ("t", "error", "converged")}
        return 1, {n: shown.get(n, v) for n, v in error.values.items()}


def command(solve, code, reference, doc, argv=None):
    """Print the self-test or a table, what failed as nan; exit 0, 1 if something failed, or 2 for what is no input."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0].replace("%", "%%"), conflict_handler="resolve",
                                     allow_abbrev=False)
    every, defaults = solve.__code__, solve.__kwdefaults__
    timed = "t" in every.co_varnames[:every.co_argcount + every.co_kwonlyargcount]
    words = dict(zip([*code.parameters, *dict.fromkeys(e[1] for e in code.arrays if e[1])], every.co_varnames))
    for name, word in words.items():  # the options are the keywords of `solve`
        also = ["--lam"] if name == "lamda" and "lam" not in words else []
        parser.add_argument(f"--{word}", *also, dest=word, type=values, action="append", metavar="VALUES")
    for name, kind, told in (("t", values, "times to report; or one, to reach"), ("start", first_guess, "UNKNOWN=NUMBER,..."),
                             ("tolerance", float, "relative"), ("budget", float, "CPU seconds"),
                             ("method", str, "newton, or iterate: the map itself"), ("damping", float, "of iterate")):
        if name in defaults or (name == "t" and timed):
            parser.add_argument(f"--{name}", type=kind, default=defaults.get(name), help=told)
    parser.add_argument("--selftest", action="store_true", help="solve the reference points and compare")
    parser.add_argument("--json", action="store_true", help="print JSON, a list for each quantity")
    given = vars(parser.parse_args(argv))
    selftest, as_json = given.pop("selftest"), given.pop("json")
    try:
        if selftest:
            worst = deviation(solve, reference)
            print(f"selftest: {len(reference)} points, largest deviation {worst:.1e}: {'passed' if worst <= 1e-9 else 'FAILED'}")
            return 0 if worst <= 1e-9 else 1
        missing = [word for word in [*words.values(), *["t"]*timed] if given[word] is None]
        if missing or any(len(given[word]) > 1 for word in words.values()):
            raise ValueError(f"give a value for {', '.join('--' + n for n in missing)}, or --selftest" if missing else
                             f"--{next(w for w in words.values() if len(given[w]) > 1)} has two values; give it once")
        given |= {word: given[word][0] for word in words.values()}
        total = int(np.prod([float(given[words[n]].size) for n in code.parameters]))
        if total > MOST:
            raise ValueError(f"the grid has {total} points, at most {MOST} fit")
        points, before = {}, 1
        for n in code.parameters:  # the last one runs first
            v = given[words[n]]
            points[n] = np.tile(np.repeat(v, total//(before*v.size)), before)
            before *= v.size
        status, found = solved_or_nan(solve, given | {words[n]: v for n, v in points.items()})
    except NotSolved as error:
        print(f"selftest: {len(reference)} points: FAILED, {error}" if selftest else error, file=None if selftest else sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    times = np.size(found.get("t", 0))
    found = {n: np.repeat(v, times) for n, v in points.items()} | {n: np.tile(v, total) if n == "t" else np.ravel(v) if
             np.size(v) == total*times else np.repeat(v, times) for n, v in found.items()}
    if as_json:
        print(json.dumps({n: [v if np.isfinite(v) else None for v in np.atleast_1d(v).tolist()] for n, v in found.items()}))
        return status
    table = [list(found), *([f"{v:.8g}" for v in row] for row in zip(*map(np.atleast_1d, found.values())))]
    widths = [max(map(len, column)) for column in zip(*table)]
    print("\n".join("  ".join(v.rjust(w) for v, w in zip(row, widths)) for row in table))
    return status


def run(main):
    """`main` and its exit status; what keeps it from its end is said in one line."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may have letters that the terminal has not
        status = main()
        sys.stdout.flush()
        return status
    except (KeyboardInterrupt, OSError) as error:
        silent = isinstance(error, BrokenPipeError)  # the reader has what it wanted
        if sys.stdout:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to be written
        interrupted = isinstance(error, KeyboardInterrupt)
        print("" if silent else "interrupted" if interrupted else f"standard output: {getattr(error, 'strerror', 0) or error}",
              end="\n"*(not silent), file=sys.stderr)
        return 0 if silent else 130 if interrupted else 2
