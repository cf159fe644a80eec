"""The exponents of a target, its class and its threshold alpha_c, for two lists of targets."""

from __future__ import annotations

from typing import Any

import hermitex as hx

from .entries import Entry, Part, always

BUDGET = 60  # seconds of CPU: the default of the command line
KEYS = {"information": "information_exponent", "leap": "leap_exponent", "leap_coordinate": "leap_coordinate",
        "generative": "generative_exponent"}


def ask(entry: Entry) -> Any:
    """The numbers that the entry freezes, null where undetermined."""
    options: dict[str, Any] = {key: entry[key] for key in ("channel", "variables") if key in entry}
    if "cov" in entry:
        options["covariance"] = covariance(entry["cov"])
    found = hx.exponents(entry["target"], budget=BUDGET, **options).to_dict()
    weak = found["weak_recovery"]
    numbers = {short: found[key] for short, key in KEYS.items() if short in entry["expected"]}
    alpha_c = None if weak["alpha_c"] is None else float(weak["alpha_c"])
    return {**numbers, "class": weak["class"], "alpha_c": alpha_c}


def covariance(text: str) -> dict[tuple[Any, Any], Any]:
    """{(z1, z2): 1/2} of "z1,z2=1/2", as the command line takes it."""
    pairs = (part.split("=") for part in text.split(";"))
    return {tuple(hx.parse(name) for name in names.split(",")): hx.parse(number) for names, number in pairs}


def compare(entry: Entry, answer: Any) -> str | None:
    """Exponents and class are equal; alpha_c lies within `within` of the expected one, relative to it where it is above 1."""
    for key, expected in entry["expected"].items():
        found = answer[key]
        if key == "alpha_c" and expected is not None and found is not None:
            agree = abs(found - expected) <= entry["within"]*max(1, expected)
        else:
            agree = found == expected
        if not agree:
            return f"{entry['target']}: {key} {expected} was expected, {found} came"
    return None


def part(name: str, about: str) -> Part:
    return Part(name, about, ask, compare, wrong=always)


PARTS = (part("exponents", "exponents of 112 targets of papers and questions"),
         part("truth", "exponents of the 62 targets of the table of truth"))
