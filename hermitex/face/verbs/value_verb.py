"""hermitex value QUANTITY ...: numbers of a theory that are not points of its curve, as the learned function or alpha_IT.

A quantity is one entry of the table `QUANTITIES`; its options are those of `hermitex curve` for its theory, and a few more.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.face import cli, guard
from hermitex.face.curve_options import NUMBER, OPTIONS, SWITCH, TEXT, THEORIES
from hermitex.face.verbs.curve_verb import own_words, read_option

Rows = dict[str, Any]


class Quantity(NamedTuple):
    """A theory, the options that the quantity takes (with * those that it needs), what computes it, its line in --help."""

    theory: str
    options: tuple[str, ...]
    found: Callable[[Any, Rows], Rows]  # of the factory of the theory and the options that were given
    line: str


# option -> (what it is, placeholder, help); the others are options of `hermitex curve`
OWN: dict[str, tuple[str, str, str]] = {
    "alpha": (NUMBER, "A", "samples n/d: one number, some as 0.5,1,2 or a grid START:STOP:POINTS"),
    "z": (NUMBER, "Z", "the coordinate along the target's direction, where the learned function is asked"),
    "kappa": (NUMBER, "K", "the coordinate along the spike"),
    "known": (TEXT, "r;r", "directions that are known, as \"1,0;0,1\": an entry for each variable (default: none)"),
    "prior": (TEXT, "L", "lambda_1, the ridge of the prior (default: 1/2)"),
    "plain": (SWITCH, "", "the flow without Sigma^(-1) (default: preconditioned)")}


def _made(make: Any, given: Rows, *names: str) -> Any:
    """The theory of the functions and the structure among what was given."""
    return make(**{("g" if n == "target" else n): given.pop(n) for n in names if n in given})


def _learned(make: Any, given: Rows) -> Rows:
    where: Rows = {n: np.atleast_1d(given.pop(n)) for n in ("z", "kappa") if n in given}
    found = _made(make, given, *THEORIES["one-step"].functions, *THEORIES["one-step"].structure).solve(**given).learned(**where)
    return {**where, "mean": found.mean, "spread": found.spread}


def _path(make: Any, given: Rows) -> Rows:
    found = _made(make, given, "sigma", "target", "steps", *_LETTERS).path(**given)
    several = found.overlap.ndim == 3   # a column for each letter, and of it for each direction
    columns: Rows = {"step": np.arange(1, len(found.c) + 1)}
    for k in range(found.overlap.shape[1] if several else 1):
        letter, at = (f"{k + 1}_", (slice(None), k)) if several else ("", (slice(None),))
        columns |= {f"overlap{letter}{j}": column for j, column in enumerate(found.overlap[at].T, start=1)}
        columns |= {f"norm{letter[:-1]}": found.norm[at], f"c{letter[:-1]}": found.c[at]}
    return {**columns, **({"rank": found.rank} if several else {})}


def _free_energy(make: Any, given: Rows) -> Rows:
    alpha = np.atleast_1d(given.pop("alpha"))
    found = _made(make, given, "target", "channel").free_energy(alpha=alpha)
    return {"alpha": alpha, **{n: found[n] for n in found.value}, "branch": np.broadcast_to(found.branch, alpha.shape)}


def _transitions(make: Any, given: Rows) -> Rows:
    found = _made(make, given, "target", "channel").transitions()
    return {**found.to_dict(), "alpha_IT": found.alpha_IT}


def _escape_time(make: Any, given: Rows) -> Rows:
    preconditioned, d = not given.pop("plain", False), np.atleast_1d(given.pop("dimension"))
    theory = _made(make, given, "target")
    return {"dimension": d, "escape_time": theory.escape_time(dimension=d, preconditioned=preconditioned, **given)}


def _threshold(make: Any, given: Rows) -> Rows:
    return {"threshold": _made(make, given, "k").threshold(**given)}


def _floor(make: Any, given: Rows) -> Rows:
    from hermitex.theories import floor

    rows = [part.split(",") for part in given.pop("known", "").split(";") if part.strip()]
    found = floor(given["target"], rows)
    return {n: found[n] for n in ("variance", "sharp", "error")}


_STEP, _LETTERS = ("alpha0*", "eta*", "beta", "Delta"), ("vocabulary", "fractions", "biases")
QUANTITIES: dict[str, Quantity] = {
    "learned": Quantity("one-step", ("sigma*", "target*", "network", "steps", "alpha*", "lam*", "beta", "Delta", "alpha0", "eta",
                                     "r", "c", "gamma", "bias", "dimension", "z", "kappa"), _learned,
                        "mean and spread of the prediction after one giant step"),
    "path": Quantity("one-step", ("sigma*", "target*", "steps*", *_LETTERS, *_STEP), _path,
                     "the spike after each of several giant steps: which direction appears when"),
    "free-energy": Quantity("bayes-amp", ("target*", "channel", "alpha*"), _free_energy,
                            "Bayes free entropy, information and the optimal overlap"),
    "transitions": Quantity("bayes-amp", ("target*", "channel"), _transitions,
                            "weak recovery, spinodals, and alpha_IT where the optimal overlap jumps"),
    "escape-time": Quantity("spiked-covariance", ("target*", "dimension*", "gamma_1*", "gamma_2*", "m0", "a0", "plain"),
                            _escape_time, "time until the correlation is 1/2, under a spiked covariance"),
    "threshold": Quantity("mean-field-parity", ("k", "prior"), _threshold,
                          "c*: k-parity is not learned at a temperature above c*/d^(1 - alpha)"),
    "floor": Quantity("one-step", ("target*", "known"), _floor, "what no readout learns once some directions are known")}


def _options(quantity: str) -> dict[str, bool]:
    """{name: whether it is needed} of one quantity."""
    return {n.rstrip("*"): n.endswith("*") for n in QUANTITIES[quantity].options}


def _described(name: str, quantity: str = "") -> tuple[str, str, str]:
    kind, metavar, said = OWN.get(name, OPTIONS.get(name, ("", "", "")))
    words = own_words(said, QUANTITIES[quantity].theory) if quantity and name not in OWN else said
    return kind, metavar, "; ".join(part for part in words.split("; ") if "several make" not in part and "--simulate" not in part)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of all quantities; `run` refuses what a quantity does not take."""
    parser.add_argument("quantity", metavar="QUANTITY", help="; ".join(f"{n}: {q.line}" for n, q in QUANTITIES.items()))
    every = dict.fromkeys(n for quantity in QUANTITIES for n in _options(quantity))
    group = parser.add_argument_group("the model", "`hermitex value QUANTITY --help` shows the options of one quantity alone")
    for name in every:
        kind, metavar, said = _described(name)
        how: dict[str, Any] = {"action": "store_true", "default": None} if kind == SWITCH else {"metavar": metavar}
        group.add_argument(f"--{name}", help=said, **how)


def narrow(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Let the help of one quantity show its own options only."""
    quantity = next((w for w in words if w in QUANTITIES), None)
    if quantity is None:
        return
    own = _options(quantity)
    for action in parser._actions:
        if action.dest == "quantity":
            action.help = f"{quantity}: {QUANTITIES[quantity].line}; `hermitex value --help` names the others"
        elif action.dest in own:
            action.help = _described(action.dest, quantity)[2] + (" (needed)" if own[action.dest] else "")
        elif action.dest in {*OPTIONS, *OWN}:
            action.help = argparse.SUPPRESS


def run(args: argparse.Namespace) -> int:
    """Compute the quantity and print it: a table where it has several rows."""
    if args.quantity not in QUANTITIES:
        raise UnknownName(args.quantity[:60], QUANTITIES, "quantity")
    own = _options(args.quantity)
    given = {n: v for n in {**OPTIONS, **OWN} if (v := getattr(args, n, None)) is not None}
    if strangers := [n for n in given if n not in own]:
        raise BadInput(f"--{strangers[0]} is not an option of {args.quantity}; its options are {', '.join('--' + n for n in own)}")
    if missing := [n for n, needed in own.items() if needed and n not in given]:
        raise BadInput(f"{args.quantity}: --{missing[0]} is needed; see hermitex value {args.quantity} --help")
    with guard.deadline(args.budget):
        from hermitex.theories import THEORIES as FACTORIES

        read = {n: read_option(n, text, _described(n)[0]) for n, text in given.items()}
        found = QUANTITIES[args.quantity].found(FACTORIES[QUANTITIES[args.quantity].theory], read)
    return cli.answer(args, {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in found.items()}, lambda: _text(found))


def _text(found: Rows) -> str:
    """A table of what has several rows, else a line for each quantity."""
    from hermitex.show.tables import text_table

    if lines := {n: v for n, v in found.items() if np.ndim(v) == 1 and isinstance(v, np.ndarray)}:
        rows = zip(*([v if isinstance(v, str) else f"{v:.10g}" for v in column.tolist()] for column in lines.values()), strict=True)
        return text_table(rows, list(lines), columns=None)
    width = max(map(len, found))
    return "\n".join(f"{name:<{width}}  {f'{v:.10g}' if isinstance(v, float) else v}" for name, v in found.items())
