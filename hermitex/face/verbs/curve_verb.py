"""hermitex curve THEORY --alpha 0.2:3:50 ...: test_error(alpha), train_error(alpha), the order parameters; experiment and picture.

A theory is one entry of the table in `face.curve_options`.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hermitex.errors import BadInput, BudgetExceeded, NoValue, UnknownName
from hermitex.face import cli, guard, output
from hermitex.face.curve_options import ARRAY, AXES, LIST, NUMBER, OPTIONS, SWITCH, TEXT, THEORIES, WORDS_OF_LABELS, CurveEntry
from hermitex.show.files import check_place, write_whole

EXPERIMENTS = True
# curves that a picture still tells apart; seeds whose spread has a relative error of 1/sqrt(30) = 18 %
MOST_CURVES, _SEEDS = 40, 16
_MODEL = "the model"
_NAMES = "|".join(sorted(THEORIES, key=len, reverse=True))
_OF_THEORY = re.compile(rf"((?:{_NAMES})(?:, (?:{_NAMES}))*)( --\w+)?: (.*)")  # a clause of help that speaks of some theories only
_WHY_NOT = {"model": "its experiment is of one kind; leave it out",
            "baselines": "the reference lines are those of one-step; leave it out"}
_LIKE = {"dimension": 50, "epsilon1": "1/2", "P": "2:1/2,3:1/6", "gamma_1": 0.5, "gamma_2": 0.5, "s": 0.6}  # not 1


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all theories; `run` refuses what a theory does not take."""
    parser.add_argument("theory", metavar="THEORY", help=f"one of {', '.join(THEORIES)}")
    axis = parser.add_argument_group("the axis", "one number, some as 0.5,1,2 or a grid START:STOP:POINTS")
    for name, (metavar, line, like) in AXES.items():
        axis.add_argument(f"--{name}", metavar=metavar, help=f"{line}, as {own_words(like, '')}")
    model = parser.add_argument_group(_MODEL, "`hermitex curve THEORY --help` shows the options of one theory alone")
    for name, (kind, metavar, line) in OPTIONS.items():
        if kind == SWITCH:
            model.add_argument(f"--{name}", action="store_true", default=None, help=line)
        else:
            model.add_argument(f"--{name}", metavar=metavar, help=line)
    model.add_argument("--tolerance", metavar="T", help="relative, of every solve (default: of the theory, most have 1e-11)")
    model.add_argument("--optimise", metavar="LETTERS", type=_letters, help="numbers that have their best values at every "
                       "point, for instance lam or lam,eta; they are sought --within bounds")
    model.add_argument("--within", metavar="LO:HI", help="the bounds between which --optimise seeks them (default: 1e-6:1e3), "
                       "one for all or one for each, 1e-4:10,0.1:30; a message reports a best value at one of them")
    model.add_argument("--refine", type=int, metavar="N", help="add up to N points where the curve bends, as at a peak")
    experiment = parser.add_argument_group("the experiment")
    experiment.add_argument("--simulate", action="store_true", help="measure at finite size too, at no more than 8 points")
    experiment.add_argument("--seeds", type=int, metavar="K", help=f"of the experiment (default: {_SEEDS})")
    experiment.add_argument("--simulate-dimension", metavar="d", help="d of the experiment (default: --dimension, or by cost)")
    experiment.add_argument("--model", metavar="M", help="what the experiment trains: features or network (default: by --network); "
                        "sgd: vectors or overlaps, the same law; bayes-amp: its start, zero, spectral or informed")
    experiment.add_argument("--progress", action="store_true", help="report progress on stderr, also for short runs "
                            "(without: on a terminal, elsewhere a line each ten seconds)")
    written = parser.add_argument_group("output files")
    written.add_argument("--plot", metavar="F", help="write a picture: F.pdf, F.svg or F.png")
    written.add_argument("--baselines", action="store_true",
                         help="one-step: random features and the best linear predictor in the picture")
    written.add_argument("--csv", metavar="F", help="write every quantity, residual and converged")
    written.add_argument("--bib", metavar="F", help="write the BibTeX of the papers used")


def narrow(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Let the help of one theory show its own options only."""
    theory = next((w for w in words if w in THEORIES), None)
    if theory is None:
        return
    entry = THEORIES[theory]
    own = {*entry.functions, *entry.structure, *entry.numbers, entry.axis}
    hidden = {*_no_use(entry), *(() if entry.numbers else ("optimise", "within")),
              *(() if entry.experiment else ("simulate", "seeds", "simulate_dimension", "progress"))}
    for group in parser._action_groups:
        group.description = None if group.title == _MODEL else group.description
    for action in parser._actions:
        if (action.dest in {*OPTIONS, *AXES} and action.dest not in own) or action.dest in hidden:
            action.help = argparse.SUPPRESS
        elif action.dest == "theory":
            action.help = f"{theory}; `hermitex curve --help` names the others"
        elif action.dest == "budget" and not entry.experiment:
            action.help = str(action.help).replace(cli.OF_EXPERIMENT, "")
        elif action.dest == "simulate_dimension" and "dimension" not in entry.numbers:
            action.help = "d of the experiment (default: by cost)"
        elif action.dest == "labels" and "labels" in entry.words:
            action.metavar, action.help = "NAME", own_words(str(action.help), theory)
        elif action.dest == "tolerance":
            action.help = f"relative, of every solve (default: {entry.tolerance})"
        elif action.dest in {*OPTIONS, *AXES, "model", "baselines"}:
            line, as_, _ = str(action.help).partition(", as ")
            action.help = own_words(line, theory) + (as_ and as_ + _example(action.dest, theory))


def _no_use(entry: CurveEntry) -> tuple[str, ...]:
    """Options of all theories that this one has no use for."""
    return (*(() if entry.solved else ("optimise", "within", "refine")), *(() if entry.model else ("model",)),
            *(() if entry.baselines else ("baselines",)))


def own_words(line: str, theory: str) -> str:
    """The help of an option for one theory: the clauses that name the theory, or else the clauses that name none.

    >>> own_words("overlap of spike and target (default: 1; glm: 0); random-features: d/p", "random-features")
    'd/p'
    >>> own_words("overlap of spike and target (default: 1; glm: 0); random-features: d/p", "one-step")
    'overlap of spike and target (default: 1)'
    """
    line = re.sub(r" \(([^()]*)\)", lambda m: f" ({inside})" if (inside := _clauses(m[1], theory)) else "", line)
    return _clauses(line, theory)


def _clauses(line: str, theory: str) -> str:
    own, common, of = [], [], None  # a clause that names no theory goes on about those of the one before
    for clause in re.split(r"(?:; |(?<!\.)\. )(?![^(]*\))", line):
        if named := _OF_THEORY.fullmatch(clause):
            of, clause = named[1].split(", "), f"with{named[2]}: {named[3]}" if named[2] else named[3]
        if of is None:
            common.append(clause)
        elif theory in of:
            own.append(clause)
    return "; ".join(own or common)


def run(args: argparse.Namespace) -> int:
    """Solve, simulate where asked, write the files and print; status 1 if a point failed."""
    try:
        return _run(args)
    except NoValue as error:
        if error.name not in OPTIONS:
            raise
        option = f"--{error.name}"
        raise BadInput(f"{error.asking}: {option} is needed, for instance {option} {_LIKE.get(error.name, 1)}") from None


def _run(args: argparse.Namespace) -> int:
    entry, keywords = _request(args)
    from hermitex.face import theory_and_experiment as face
    from hermitex.theories import THEORIES as FACTORIES
    from hermitex.theories.curves import Curves

    output.check_picture(args.plot)
    for path in (args.csv, args.bib):
        check_place(path)
    alpha = _list(entry.axis, getattr(args, entry.axis))
    members = _members(entry, keywords, alpha)
    found: list[Any] = []
    lines, late = None, False
    for member in members:
        several = [n for n, v in member.items() if isinstance(v, list) and OPTIONS.get(n, ("",))[0] == NUMBER]
        if args.simulate and (several or args.optimise):
            raise BadInput(f"--simulate: the experiment is made along --{entry.axis} alone; give the others one value each")
        if args.optimise:
            member["optimise"] = args.optimise
        if args.within is not None:
            member["bounds"] = _bounds(args.within, member["optimise"])
        if args.refine is not None:
            member["refine"] = args.refine
        with guard.deadline(args.budget):
            theory, numbers = face.build(FACTORIES[args.theory], args.theory, member)
            if not numbers.get("repetition") and (said := getattr(theory, "remark", "")):
                cli.print_err(said)
            line: dict[str, Any] = {entry.axis: alpha[0] if several and len(alpha) == 1 else alpha}
            made = face.curve(theory, **line, **numbers)
            for ended in made if isinstance(made, Curves) else (made,):
                if ended.at_end:
                    cli.print_err(f"best values at an end of their bounds: {ended.at_end}; give wider ones with --within")
            if args.baselines:
                if several or len(members) > 1:
                    raise BadInput("--baselines: the reference lines belong to one curve along --alpha; give one activation, "
                                   "one target and one value of each number")
                lines = face.baselines(theory, alpha, **numbers)
        measured = _measured(args, theory, alpha, numbers) if args.simulate else None
        late = late or (args.simulate and measured is None)
        if measured is not None:
            made = face.at_size_of(theory, made, measured, **line, **numbers).with_simulation(measured)
            told = measured.parameters.get("status", "")
            if said := theory.of_experiment(made, measured) or (told if told != made.parameters.get("status") else ""):
                cli.print_err(f"the experiment: {said}" if said == told else said)
        found.append(made)
    curves = Curves(tuple(found), tuple(_differing(members)))
    _write(args, curves, lines)
    if args.json:
        print(output.dumps(found[0].to_dict() if len(found) == 1 else [one.to_dict() for one in found]))
    else:
        texts = [_text(one, entry) for one in found]
        print("\n\n".join(f"{head}\n{text}" if head else text for head, text in zip(_heads(members), texts, strict=True)))
    for one in found:
        if one.all_converged:
            for said in dict.fromkeys(f"{one.axis} = {x:g}: {r}" for x, r in zip(*_reasons(one), strict=True) if r):
                cli.print_err(said)
        else:
            _say_failed(one)
    return cli.FAILED if late or not all(one.all_converged for one in found) else cli.ANSWERED


def _members(entry: CurveEntry, keywords: dict[str, Any], alpha: list[float]) -> list[dict[str, Any]]:
    """The keywords of each curve: one for every function, loss and value of the numbers that do not run along it."""
    parted = [n for n in (*entry.functions, "loss") if n in keywords]
    choices: dict[str, list[Any]] = {n: list(dict.fromkeys(output.split_expressions(keywords[n]))) for n in parted}
    lists = {n: v for n, v in keywords.items() if isinstance(v, list) and OPTIONS.get(n, ("",))[0] == NUMBER}
    if len(alpha) == 1 and lists:  # then the longest of them is the axis
        lists.pop(max(lists, key=lambda n: len(lists[n])))
    choices |= lists
    count = math.prod(map(len, choices.values()))
    if count > MOST_CURVES:
        raise BadInput(f"{count} curves at once, at most {MOST_CURVES}; hermitex sweep solves grids of any size")
    return [{**keywords, **dict(zip(choices, values, strict=True))} for values in itertools.product(*choices.values())]


def _differing(members: list[dict[str, Any]]) -> list[str]:
    """What several curves differ in."""
    first = members[0]
    return [n for n in first if any(m[n] is not first[n] and m[n] != first[n] for m in members)]  # an array is one for all


def _heads(members: list[dict[str, Any]]) -> list[str]:
    """What each of several curves differs in from the others, as a line over its table."""
    return [", ".join(f"{n} = {m[n]:g}" if isinstance(m[n], float) else f"{n} = {m[n]}" for n in _differing(members))
            for m in members]


def _measured(args: argparse.Namespace, theory: Any, alpha: list[float], numbers: dict[str, Any]) -> Any:
    """The experiment of a curve; None if the budget ends it, which a message reports."""
    from hermitex.face import theory_and_experiment as face
    from hermitex.show.progress import heartbeat, reporter, words

    options = {"seeds": _SEEDS if args.seeds is None else args.seeds, **({"model": args.model} if args.model else {})}
    if args.simulate_dimension is not None:
        options["dimension"] = output.one_number(args.simulate_dimension, "simulate-dimension")
    told = [0, int(options["seeds"])]
    tell = reporter("experiment", "seeds", asked=args.progress)

    def hear(done: int, total: int) -> None:
        told[:] = done, total
        tell(done, total)

    try:
        with guard.deadline(args.own_budget), heartbeat(hear) as heard:
            return face.experiment(theory, alpha, options, heard, **numbers)
    except BudgetExceeded as over:
        if args.own_budget is None or over.seconds != args.own_budget:
            raise
        done, total = told
        needs = f"about {words(1.2*args.own_budget*total/done)} are needed" if done else "not one seed was done"
        d = options.get("dimension", numbers.get("dimension"))
        fewer = f"--seeds {least} or " if (least := int(done/1.2)) else ""
        size = "--dimension" if theory.letters().get("dimension") is theory.REQUIRED else "--simulate-dimension"
        smaller = f"a {size} below {d:g}" if d is not None and math.isfinite(d) else f"a smaller {size}"
        cli.print_err(f"the experiment is left out: --budget {args.own_budget:g} was over after {done} of {total} seeds; {needs}; "
                f"raise it, or make the experiment smaller with {fewer}{smaller}")
        return None


def _request(args: argparse.Namespace) -> tuple[CurveEntry, dict[str, Any]]:
    """The theory's entry, and the keywords that the options mean."""
    if args.theory not in THEORIES:
        raise UnknownName(args.theory[:60], THEORIES, "theory")
    entry = THEORIES[args.theory]
    known = (*entry.functions, *entry.structure, *entry.numbers)
    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None and name != entry.axis}
    if strangers := [name for name in given if name not in known]:
        raise BadInput(f"--{strangers[0]} is not an option of {args.theory}; its options are {', '.join('--' + n for n in known)}")
    for name in entry.functions:
        if name not in given and not (name == "target" and given.get("labels") == "mixture"):
            raise BadInput(f"{args.theory}: --{name} is needed, for instance --{name} tanh")
    if strangers := [n for n in _no_use(entry) if getattr(args, n) not in (None, False)]:
        raise BadInput(f"--{strangers[0]} is not an option of {args.theory}: " + _WHY_NOT.get(
            strangers[0], "it has no error that is solved at every point; leave it out, and give several values of a number"))
    if not args.simulate and (lone := [n for n in ("seeds", "model", "simulate_dimension") if getattr(args, n) is not None]):
        raise BadInput(f"--{lone[0].replace('_', '-')} belongs to --simulate; give both")
    if strangers := [n for n in AXES if getattr(args, n) is not None and n != entry.axis]:
        raise BadInput(f"--{strangers[0]} is not an option of {args.theory}; its curve varies --{entry.axis}")
    if getattr(args, entry.axis) is None:
        raise BadInput(f"{args.theory}: --{entry.axis} is needed, for instance --{entry.axis} {_example(entry.axis, args.theory)}")
    if args.optimise is not None and not entry.numbers:
        raise BadInput(f"--optimise is not an option of {args.theory}, whose only number is --{entry.axis}; leave it out")
    if strangers := [n for n in args.optimise or () if n not in entry.numbers]:
        raise UnknownName(strangers[0][:60], entry.numbers, f"number of {args.theory} to optimise")
    if args.within is not None and args.optimise is None:
        raise BadInput("--within gives the bounds of what --optimise names; give both")
    as_words = {*entry.words, *(("labels",) if given.get("labels") in WORDS_OF_LABELS else ())}
    found = {name: read_option(name, text, TEXT if name in as_words else OPTIONS[name][0]) for name, text in given.items()}
    if args.tolerance is not None:
        found["tolerance"] = output.one_number(args.tolerance, "tolerance")
        if not 0 < found["tolerance"] < 1:
            raise BadInput(f"--tolerance is between 0 and 1, not {args.tolerance[:40]}")
    return entry, found


def read_option(name: str, given: Any, kind: str) -> Any:
    """What the text of an option means."""
    if kind in (TEXT, SWITCH):
        return given
    read: dict[str, Any] = {LIST: _list, NUMBER: _numbers, ARRAY: _array}
    return read[kind](name, given) if kind in read else output.whole_number(given, name)


def _example(axis: str, theory: str) -> str:
    return own_words(AXES[axis][2], theory) if axis in AXES else "0.5:5:50"


def _letters(text: str) -> list[str]:
    return [n.strip() for n in text.split(",")]


def _bounds(text: str, letters: list[str]) -> dict[str, list[float]]:
    """LO:HI of all letters, or LO:HI,LO:HI of each."""
    pairs = [[output.one_number(end, "within") for end in part.split(":")] for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs) or len(pairs) not in (1, len(letters)):
        raise BadInput(f"--within is LO:HI, for instance 1e-4:10, or one for each letter of --optimise, not {text[:60]!r}")
    return dict(zip(letters, pairs*len(letters) if len(pairs) == 1 else pairs, strict=True))


def _list(name: str, text: str) -> list[float]:
    return [float(v) for v in output.grid(text, name)]


def _numbers(name: str, text: str) -> float | list[float]:
    """One number, or several: then the curve runs along them."""
    found = _list(name, text)
    return found[0] if len(found) == 1 and ":" not in text else found


def _array(name: str, text: str) -> Any:
    """A file, a formula with its range, or numbers."""
    from hermitex.face.spec_arrays import read_array

    try:
        return read_array(text if ".." in text or text.strip().endswith((".npy", ".csv", ".txt")) else _list(name, text), Path())
    except BadInput as error:
        raise BadInput(f"--{name}: {error}") from None


def _write(args: argparse.Namespace, found: Any, lines: Any) -> None:
    output.picture(args.plot, lambda: found.plot(lines.plot() if lines is not None else None))
    if args.csv:
        found.to_csv(args.csv)
    if args.bib:
        write_whole(args.bib, found.bibtex())


def _text(found: Any, entry: CurveEntry) -> str:
    """The errors, those of the experiment, the main order parameters, and the optimised numbers."""
    from hermitex.show.tables import text_table

    table = found.table()
    errors = ("test_error", "train_error", "test_loss")
    own = [k for k in found.values if k in errors or k in entry.shown or k in found.optimised.split(", ")]
    text = _rows(text_table, table, [found.axis, *own])
    if found.simulation is None:
        return text
    s = found.simulation
    beside = s.table()
    wanted = [k for k in s.values if k in errors] or list(s.values)
    columns = [s.axis, *(c for k in wanted for c in (k, f"{k}_se"))]
    return f"{text}\n\nexperiment at d = {s.parameters['dimension']}, {len(s.seeds)} seeds\n{_rows(text_table, beside, columns)}"


def _rows(text_table: Any, table: dict[str, list[Any]], columns: list[str]) -> str:
    rows = zip(*([None if v is None or v != v else f"{v:.7g}" for v in table[k]] for k in columns), strict=True)
    return str(text_table(rows, columns, columns=None))


def _reasons(found: Any) -> tuple[list[float], list[str]]:
    """Where, and what is to be said of that point."""
    import numpy as np

    return found.alpha.tolist(), np.broadcast_to(np.asarray(found.reason, dtype=object), found.alpha.shape).tolist()


def _say_failed(found: Any) -> None:
    import numpy as np

    bad = np.flatnonzero(~np.broadcast_to(found.converged, found.alpha.shape))
    _, reasons = _reasons(found)
    cli.print_err(f"{bad.size} of {len(found)} points failed; the first, {found.axis} = {found.alpha[bad[0]]:g}: "
            f"{reasons[bad[0]] or 'the residual stayed above the tolerance'}")
