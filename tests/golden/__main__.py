"""python tests/golden [--all] [PART ...] asks every question again; --renew writes the answers of today.

python tests/golden                    asks all questions but the dearest, prints each change, exits 1 if there is one
python tests/golden --all averages     one part, the dearest questions included
python tests/golden --renew commands   writes what changed in one part, and prints it as a difference: worse or better
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from difflib import unified_diff
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported
sys.path.insert(0, str(Path(__file__).parents[2]))  # the package of this checkout

from frozen.catalogue import PARTS  # noqa: E402
from frozen.entries import Entry, Outcome, Part, outcome  # noqa: E402


def asked(part: Part, everything: bool) -> list[Outcome]:
    """Outcomes of a part, in the order of its file; changes are printed as they come."""
    outcomes = []
    for entry in part.entries():
        if entry["run"] == "never" or (entry["run"] == "all" and not everything):
            continue
        found = outcome(part, entry, thoroughly=everything)
        outcomes.append(found)
        if found.kind in ("better", "worse"):
            print(f"{found.kind}: {part.name}: {found.said or entry['name'] + ' is met now'}", flush=True)
            print(difference(entry["expected"], found.answer), flush=True)
    return outcomes


def difference(expected: object, answer: object) -> str:
    """Two answers as a unified difference of their lines."""
    before, after = (json.dumps(x, indent=1, ensure_ascii=False).splitlines() for x in (expected, answer))
    return "\n".join(f"    {line}" for line in list(unified_diff(before, after, lineterm="", n=1))[2:])


def renewed(part: Part, found: Outcome, reason: str | None) -> Entry | None:
    """The entry with its answer of today, or None where it may not be written.

    An answer for the worse needs a reason. The expected answer of a part that knows the right ones is never replaced: what is no
    longer met is marked so.
    """
    entry = {key: field for key, field in found.entry.items() if key not in ("met", "issue", "today")}
    if found.said is None:
        return entry
    if found.kind == "worse" and not reason:
        return None
    if part.known:
        return {**found.entry, "met": False, "today": found.answer, "reason": reason}
    return {**entry, "expected": found.answer} | ({"reason": reason} if found.kind == "worse" else {})


def renew(part: Part, outcomes: list[Outcome], reason: str | None) -> int:
    """Write the changed answers of a part; returns how many changes were refused."""
    entries, refused = part.entries(), 0
    places = {entry["name"]: k for k, entry in enumerate(entries)}
    for found in outcomes:
        if found.kind in ("better", "worse"):
            entry = renewed(part, found, reason)
            refused += entry is None
            if entry is not None:
                entries[places[entry["name"]]] = entry
    part.write(entries)
    return refused


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/golden", description="Asks the questions whose answers are frozen.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--all", action="store_true", help="the dearest questions, too")
    parser.add_argument("--renew", action="store_true", help="write the answers of today, and print what changed")
    parser.add_argument("--reason", metavar="WORDS", help="why answers changed for the worse: without it these are not written")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    bad = 0
    for name in options.parts or PARTS:
        outcomes = asked(PARTS[name], options.all)
        count = {kind: sum(found.kind == kind for found in outcomes) for kind in ("same", "open", "better", "worse")}
        said = ", ".join(f"{n} {kind}" for kind, n in count.items() if n)
        print(f"{name:14} {said:40} {sum(found.seconds for found in outcomes):7.1f} s of CPU", flush=True)
        refused = renew(PARTS[name], outcomes, options.reason) if options.renew else count["better"] + count["worse"]
        if options.renew and refused:
            print(f"{name}: {refused} answers became worse and were not written; give --reason WORDS, and name them in the "
                  "changelog")
        bad += refused
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
