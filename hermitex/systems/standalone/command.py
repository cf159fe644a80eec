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


def command(solve, selftest, points, code, doc, argv=None):
    """Print the self-test or a table, failed points as nan; exit 0, 1 if something failed, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0].replace("%", "%%"), conflict_handler="resolve",
                                     allow_abbrev=False)
    words = dict(zip([*code.parameters, *dict.fromkeys(e[1] for e in code.arrays if e[1])], solve.__code__.co_varnames))
    words["t"] = "t"  # if flow
    for name, word in words.items():  # the options are the keywords of `solve`
        also = ["--lam"] if name == "lamda" and "lam" not in words else []
        parser.add_argument(f"--{word}", *also, dest=word, type=values, action="append", metavar="VALUES")
    for name, default in solve.__kwdefaults__.items():
        kind = {"start": first_guess, "method": str}.get(name, float)
        parser.add_argument(f"--{name}", type=kind, default=default, help="UNKNOWN=NUMBER,..." if name == "start" else f"{default}")
    parser.add_argument("--selftest", action="store_true", help="solve the reference points and compare")
    parser.add_argument("--json", action="store_true", help="print JSON, a list for each quantity")
    given = vars(parser.parse_args(argv))
    testing, as_json, status = given.pop("selftest"), given.pop("json"), 0
    try:
        if testing:
            worst = selftest()
            print(f"selftest: {points} points, largest deviation {worst:.1e}: {'passed' if worst <= 1e-9 else 'FAILED'}")
            return 0 if worst <= 1e-9 else 1
        if missing := [f"--{w}" for w in words.values() if given[w] is None]:
            raise ValueError(f"give a value for {', '.join(missing)}, or --selftest")
        if twice := [f"--{w}" for w in words.values() if len(given[w]) > 1]:
            raise ValueError(f"{twice[0]} has two values; give it once")
        given |= {w: given[w][0] for w in words.values()}
        columns = [given[words[n]] for n in code.parameters]
        if (total := np.prod([float(v.size) for v in columns])) > MOST:
            raise ValueError(f"the grid has {total:.0f} points, at most {MOST} fit")
        grid, before = {}, 1
        for n, v in zip(code.parameters, columns):  # the last one runs first
            grid[n], before = np.tile(np.repeat(v, int(total)//(before*v.size)), before), before*v.size
        found = solve(**given | {words[n]: v for n, v in grid.items()})
    except NotSolved as error:
        good, status = np.asarray(error.converged), 1
        if testing or not good.any():
            print(f"selftest: {points} points: FAILED, {error}" if testing else error, file=None if testing else sys.stderr)
            return 1
        print(error, file=sys.stderr)
        whole = {"error", "converged"}
        whole.add("t")  # if flow
        found = {n: v if n in whole else np.where(good.T, np.transpose(v), np.nan).T for n, v in error.values.items()}
    except ValueError as error:
        parser.error(str(error))
    times, found["t"] = np.size(found["t"]), np.tile(found["t"], int(total))  # if flow
    found = {n: v if np.size(v) == total*times else np.repeat(v, times) for n, v in (grid | found).items()}  # if flow
    found = {n: np.ravel(v).tolist() for n, v in (grid | found).items()}
    if as_json:
        print(json.dumps({n: [v if np.isfinite(v) else None for v in column] for n, column in found.items()}))
        return status
    table = [list(found), *([f"{v:.8g}" for v in row] for row in zip(*found.values()))]
    widths = [max(map(len, column)) for column in zip(*table)]
    print("\n".join("  ".join(v.rjust(w) for v, w in zip(row, widths)) for row in table))
    return status


def run(main):
    """`main` and its exit status; an error is one line."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    status, said = 2, "standard output: it is closed\n"
    try:
        if sys.stdout is not None:
            sys.stdout.reconfigure(errors="backslashreplace")  # a name may have letters that the terminal has not
            status, said = main(), ""
            sys.stdout.flush()
    except KeyboardInterrupt:
        status, said = 130, "interrupted\n"
    except OSError as error:  # of a pipe: the reader has what it wanted
        status, said = (0, "") if isinstance(error, BrokenPipeError) else (2, f"standard output: {error.strerror or error}\n")
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to be written
    sys.stderr.write(said)
    return status
