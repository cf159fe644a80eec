"""python tests/golden [--all] [PART ...] asks every question again; --renew writes the answers of today.

python tests/golden                    asks all questions but the slowest, prints each change, exits 1 if there is one
python tests/golden --all averages     one part, the slowest questions included
python tests/golden --renew commands   writes what changed in one part, and prints it as a difference: worse or better
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported
sys.path.insert(0, str(Path(__file__).parents[2]))  # the package of this checkout

from frozen.catalogue import PARTS  # noqa: E402
from frozen.entries import Outcome, Part, outcome  # noqa: E402
from frozen.renewal import difference, renew  # noqa: E402


def asked(part: Part, everything: bool) -> list[Outcome]:
    """Outcomes of a part, in the order of its file; changes are printed as they come."""
    outcomes = []
    for entry in part.entries():
        if entry["run"] == "never" or (entry["run"] == "all" and not everything):
            continue
        found = outcome(part, entry, thoroughly=everything)
        outcomes.append(found)
        if found.kind in ("better", "changed", "worse"):
            print(f"{found.kind}: {part.name}: {entry['name']}: {found.said or 'met now'}", flush=True)
            print(difference(entry["expected"], found.answer), flush=True)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/golden", description="Asks the questions whose answers are frozen.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--all", action="store_true", help="ask the slowest questions, too")
    parser.add_argument("--renew", action="store_true", help="write the answers of today, and print what changed")
    parser.add_argument("--reason", metavar="WORDS", help="why answers became worse: these are then written")
    parser.add_argument("--issue", metavar="N", type=int, help="mark wrong answers as not met, to be mended by this issue")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    bad = 0
    for name in options.parts or PARTS:
        outcomes = asked(PARTS[name], options.all)
        count = {kind: sum(found.kind == kind for found in outcomes) for kind in ("same", "open", "better", "changed", "worse")}
        said = ", ".join(f"{n} {kind}" for kind, n in count.items() if n)
        print(f"{name:14} {said:40} {sum(found.seconds for found in outcomes):7.1f} s of CPU", flush=True)
        if not options.renew:
            bad += count["better"] + count["changed"] + count["worse"]
        elif refused := renew(PARTS[name], outcomes, options.reason, options.issue):
            print(f"{name}: {refused} answers became worse and were not written: see --reason and --issue")
            bad += refused
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
