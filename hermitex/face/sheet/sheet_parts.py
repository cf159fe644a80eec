r"""The parts of a model's sheet, in the order of the page: each asks one question of the package and words its answer.

A part composes existing calls (`hx.exponents`, `hx.expand`, `hx.curve`, `hx.bounds`, `hx.spectrum`) and computes nothing itself.
If a part does not apply (a target of several variables has no learning curve), it shows the line of the package's error.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hermitex.errors import BadInput, BudgetExceeded, HermitexError, NoClosedForm
from hermitex.exponents.complexity import RATES
from hermitex.exponents.directions.direction_text import staircase_words
from hermitex.face import theory_and_experiment as face
from hermitex.face.exponents_with_stages import exponents as find_exponents
from hermitex.face.sheet import sheet_text
from hermitex.face.sheet.sheet_page import Block, Drawing, Literal, Prose, Section, Tabular, prose
from hermitex.face.sheet.sheet_text import keywords, one_line, value
from hermitex.face.verbs.constants_verb import constants as find_constants
from hermitex.show.display import latex, number
from hermitex.show.plots import COLOURS
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.parsing import parse
from hermitex.symbolic.series.expansion import expand

_ORDERS = {1: 8, 2: 6, 3: 4}  # number of variables -> the highest order of the coefficients shown; 3 for more


@dataclass(frozen=True)
class Model:
    """The subject of the sheet: activations, a target, the channel of the label, and the numbers of the step.

    numbers : beta, lam, Delta, alpha0, eta;  simulate : None, or the options of the experiment;  patience : its seconds
    """

    sigmas: tuple[str, ...]
    target: str
    channel: Any
    alpha: tuple[float, ...]
    numbers: Mapping[str, Any]
    simulate: Mapping[str, Any] | None
    budget: float | None
    patience: float | None = None
    progress: Any = None
    _known: dict[tuple[str, str], Any] = field(default_factory=dict)

    def some(self, *names: str) -> dict[str, Any]:
        """Some of the numbers."""
        return {k: self.numbers[k] for k in names}

    def theory(self, sigma: str) -> Any:
        """The theory of one activation; the parts share it."""
        if self.other_labels:
            raise BadInput(f"the labels of this part are g(z) with Gaussian noise, those of the channel {self.channel} are not; "
                           "ask without a channel, and with Delta, or with the channel gaussian:1/4")
        if len(names := sorted({v.name for v in parse(self.target).free_symbols})) > 1:
            raise BadInput(f"the theory of one gradient step is about targets of one variable; this one is in {', '.join(names)}")
        return self._once("theory", sigma, lambda: face.THEORIES["one-step"](sigma, self.target))

    @property
    def other_labels(self) -> bool:
        """True if the label is not g(z) with Gaussian noise of variance Delta."""
        return self.channel is not None and self.channel.partition(":")[0].strip() not in ("deterministic", "gaussian")

    def step(self, sigma: str, **other: float) -> dict[str, Any]:
        """The spike at the numbers of the sheet, or at others, as `hx.spectrum` takes it."""
        from hermitex.theories.spike import spike

        with deadline(self.budget):
            at = spike(sigma, self.target)(**self.some("alpha0", "eta", "beta", "Delta") | other)
        return {"r": at.r, "c": at.c, "alpha": self.middle, "beta": self.numbers["beta"]}

    def spectrum(self, sigma: str, **step: Any) -> Any:
        """The law of the features' spectrum at such a spike, which takes seconds; the parts share it."""
        from hermitex.theories.spectrum import spectrum

        def law() -> Any:
            with deadline(self.budget):
                return spectrum(sigma, **step)

        return self._once(f"spectrum {step}", sigma, law)

    def baselines(self, sigma: str) -> Any:
        """Random features and the best linear predictor, at the numbers of the sheet."""
        kept = self.some("lam", "beta", "Delta")
        return self._once("baselines", sigma, lambda: face.baselines(self.theory(sigma), list(self.alpha), **kept))

    def _once(self, what: str, sigma: str, make: Callable[[], Any]) -> Any:
        if (what, sigma) not in self._known:
            self._known[what, sigma] = make()
        return self._known[what, sigma]

    def functions(self, sigma: str) -> dict[str, str]:
        """The options of a command line."""
        return {"sigma": sigma, "target": self.target}

    @property
    def middle(self) -> float:
        """The alpha of what is shown at one alpha."""
        return self.alpha[len(self.alpha)//2]


def setting(asked: Model) -> list[Block]:
    """The model in a paragraph, and the numbers that all parts share."""
    n = {k: number(v) for k, v in asked.numbers.items()}
    neurons = [x for s in asked.sigmas for x in (r" and $\sigma(z) =$ ", sheet_text.formula(s))][1:]
    return [Prose((
        r"Labels $y = g(z)$ of Gaussian inputs $x \in \mathbb{R}^d$ are seen through the projections $z$ of $x$ on the target's "
        r"directions, $g =$ ", sheet_text.formula(asked.target),
        *((", by the channel ", Literal(str(asked.channel)), ". ") if asked.other_labels else
          (rf", with noise of variance $\Delta = {n['Delta']}$. ",)),
        r"A network of $p = \beta d$ neurons, $\sigma(z) =$ ", *neurons,
        r", takes one gradient step of rate $\eta d$ on $\alpha_0 d$ samples; then its readout is fitted to $n = \alpha d$ fresh "
        rf"samples with ridge $\lambda$. As $d \to \infty$, at $\beta = {n['beta']}$, $\alpha_0 = {n['alpha0']}$, "
        rf"$\eta = {n['eta']}$ and $\lambda = {n['lam']}$:"))]


def exponents(asked: Model) -> Section:
    """Every exponent of the target, its rates and its certificates."""
    found = find_exponents(asked.target, channel=asked.channel, budget=asked.budget)
    rows = [(name.replace("_", " "), found.word(name, getattr(found, name), long=True))
            for name in ("information_exponent", "leap_exponent", "generative_exponent")]
    if len(found.variables) > 1:
        rows += [(title, Literal(staircase_words(stages, found.variables, found.numbers) or "-"))
                 for title, stages in (("staircase", found.staircase), ("generative staircase", found.generative_staircase))]
    rows += [("weak recovery", found.word("class", found.threshold.kind, long=True)),
             (r"threshold $\alpha_c$", sheet_text.threshold(found))]
    rates = [(rate.algorithm, sheet_text.rate(found, key), Literal(rate.hypotheses),
              " ".join(rf"\cite{{{k}}}" for k in rate.sources))
             for key, rate in RATES.items()]
    proofs = []
    most = 12  # rows of the certificates that fit on the page
    for c in found.certificates[:most]:
        quantity, relation, known = c.formulas
        proofs.append((f"${quantity} {relation}$" + (f" once {known} is known" if known else ""), Literal(c.how)))
    blocks: list[Block] = [Tabular(("quantity", "value"), tuple(rows)),
                           Tabular(("algorithm", "samples", "under", "source"), tuple(rates))]
    blocks += [Tabular(("certificate", "proof"), tuple(proofs))] if proofs else []
    if (more := len(found.certificates) - most) > 0:
        blocks.append(prose(f"The result of the call has {more} more certificates."))
    blocks += [prose(Literal(note)) for note in found.notes]
    channel = "" if asked.channel is None else f", channel={str(asked.channel)!r}"
    option = "" if asked.channel is None else f" --channel {shlex.quote(str(asked.channel))}"
    return Section("", blocks, f"hx.exponents({asked.target!r}{channel})",
                   [f"hermitex exponents --explain{option} -- {shlex.quote(asked.target)}"], {"exponents": found.to_dict()},
                   sheet_text.keys([found]))


def coefficients(asked: Model) -> Section:
    """Hermite coefficients of the target and of the activations, and the constants of the features."""
    from hermitex.theories.conditional_coefficients import mu

    several = len(parse(asked.target).free_symbols)
    orders = {asked.target: _ORDERS.get(max(several, 1), 3)} | {sheet_text.name_with_argument(s): _ORDERS[1] for s in asked.sigmas}
    with deadline(asked.budget):
        found = {f: expand(f, order=n, basis="orthonormal").to_dict() for f, n in orders.items()}
    heads = {f: Literal(f) for f in found}
    tables = [found] if several < 2 else [{f: e} for f, e in found.items()]
    blocks: list[Block] = [prose(r"Coefficients $\hat c_k = \mathbb{E}[f(z)\, h_k(z)] = c_k/\sqrt{k!}$ on the orthonormal "
                                 r"$h_k = He_k/\sqrt{k!}$."),
                           *(sheet_text.coefficients({heads[f]: e for f, e in t.items()}) for t in tables)]
    norms = [x for f, e in found.items() for x in (", ", heads[f], r": $\mathbb{E} f^2 =$ ", value(e["norm"], 10))][1:]
    made, rows = {}, []
    for s in asked.sigmas:
        made[s] = find_constants(s, 12, budget=asked.budget)
        rows.append((Literal(s), *(sheet_text.exact(made[s][k], made[s]["values"][k]) for k in ("mu_0", "mu_1", "mu_star"))))
    blocks += [Prose((*norms, ".")), Tabular(("activation", r"$\mu_0$", r"$\mu_1$", r"$\mu_\star$"), tuple(rows))]
    for s in asked.sigmas:
        try:
            with deadline(asked.budget):
                written = latex(mu(s, 1).expr)
        except NoClosedForm:
            continue
        if len(written) <= 2*sheet_text.LONGEST:
            blocks.append(prose(Literal(s), rf": $\mu_1(\kappa) = {written}$."))
    code = [*(f'hx.expand({f!r}, order={n}, basis="orthonormal")' for f, n in orders.items()),
            *(f"hx.constants({s!r}, 12)" for s in made)]
    shell = [*(f"hermitex hermite --order {n} --basis orthonormal -- {shlex.quote(f)}" for f, n in orders.items()),
             f"hermitex constants --digits 12 -- {' '.join(map(shlex.quote, made))}"]
    numbers = {s: {k: None if v is None else float(v) for k, v in c["values"].items()} for s, c in made.items()}
    data = {"expansions": found, "constants": numbers}
    return Section("", blocks, "\n".join(code), shell, data, ["cui2024"])


def baseline(asked: Model) -> Section:
    """The learners without feature learning: random features at the same sizes, and the best linear predictor."""
    kept = asked.some("lam", "beta", "Delta")
    with deadline(asked.budget):
        lines = {s: asked.baselines(s) for s in asked.sigmas}
    rows = [(value(asked.alpha[i]), *(value(b.random_features.test_error[i]) for b in lines.values()))
            for i in sheet_text.pick_places(asked.alpha)]
    best = next(iter(lines.values())).best_linear
    about = prose(rf"The best linear predictor of the target has the error ${number(best, 10)}$ at any number of samples. "
                  r"The test error of ridge regression on $p$ random features, $r = 0$ and $c = 1$:")
    code = [f'hx.baselines("one-step", sigma={s!r}, target={asked.target!r}, alpha=alpha, {keywords(kept)})' for s in lines]
    shell = [sheet_text.command("curve one-step", {**asked.functions(s), "alpha": sheet_text.line(asked.alpha, shell=True)},
                           {"r": 0, "c": 1, "gamma": 0, **kept}) for s in lines]
    return Section("", [about, Tabular((r"$\alpha = n/d$", *map(Literal, lines)), tuple(rows))], "\n".join(code), shell,
                   {s: b.to_dict() for s, b in lines.items()}, sheet_text.keys(lines.values()))


def learning_curve(asked: Model) -> Section:
    """The test error after one gradient step against samples, with the experiment and the baselines."""
    found: dict[str, Any] = {}
    late: list[str] = []
    for s in asked.sigmas:
        with deadline(asked.budget):
            found[s] = face.curve(asked.theory(s), list(asked.alpha), **asked.numbers)
        if asked.simulate is not None:
            try:
                with deadline(asked.patience):
                    measured = face.experiment(asked.theory(s), list(asked.alpha), asked.simulate, asked.progress, **asked.numbers)
            except BudgetExceeded as over:
                if over.seconds != asked.patience:
                    raise
                late.append(f"{s}: the experiment is left out: {str(over).partition(';')[0]}")
            else:
                found[s] = found[s].with_simulation(measured)
    made = next((c.simulation for c in found.values() if c.simulation is not None), None)
    ax: Any = None
    for k, s in enumerate(found):
        ax = asked.baselines(s).plot(ax, colour=COLOURS[k % len(COLOURS)] if len(found) > 1 else "")
    for s, c in found.items():
        ax = c.plot(ax, label=s if len(found) > 1 else "after one step")
    spikes = [(Literal(s), *(value(c.parameters[k], 8) for k in ("r", "c", "gamma"))) for s, c in found.items()]
    caption = "Test error against samples, " + ("thin in the colour of each and " if len(found) > 1 else "") + (
        "in grey what needs no feature learning")
    if made is not None:
        caption += (rf"; points: trained at $d = {int(made.parameters['dimension'])}$, {len(made.seeds)} seeds, with their "
                    "standard error")
    rows: list[tuple[str, ...]] = []
    for s, c in found.items():
        shown = range(len(c)) if c.simulation is None else [list(c.alpha).index(a) for a in c.simulation.alpha]
        for i in sheet_text.pick_places(list(shown)):
            k = list(shown)[i]
            beside = [] if made is None else ["left out" if c.simulation is None else sheet_text.measured(c.simulation, i)]
            rows.append((Literal(s), value(asked.alpha[k]), value(c.test_error[k]), value(c.train_error[k]), *beside))
    heads: tuple[str, ...] = ("activation", r"$\alpha = n/d$", "test error", "train error")
    heads += () if made is None else ("test error, measured",)
    blocks: list[Block] = [
        prose(r"The step makes of the random weights a spike of size $r$, with overlap $\gamma$ with the target, on a bulk of "
              r"variance $c$ \cite{cui2024}; the test error is that of ridge regression on the equivalent spiked features."),
        Tabular(("activation", "$r$", "$c$", r"$\gamma$"), tuple(spikes)), Drawing("learning_curve", ax.figure, caption + "."),
        Tabular(heads, tuple(rows)), *(prose(Literal(f"{s}: {why}")) for s, c in found.items() if (why := _failed(c))),
        *(prose(Literal(why)) for why in late)]
    simulate = "" if asked.simulate is None else f", simulate={dict(asked.simulate) or True!r}"
    code = [f'hx.curve("one-step", sigma={s!r}, target={asked.target!r}, alpha=alpha, {keywords(asked.numbers)}{simulate})'
            for s in found]
    more = "" if asked.simulate is None else " --simulate" + sheet_text.options(
        {"simulate-dimension" if k == "dimension" else k: v for k, v in asked.simulate.items()})
    alpha = sheet_text.line(asked.alpha, shell=True)
    shell = [sheet_text.command("curve one-step", {**asked.functions(s), "alpha": alpha}, asked.numbers) + more for s in found]
    return Section("", blocks, "\n".join(code), shell, {s: c.to_dict() for s, c in found.items()}, sheet_text.keys(found.values()),
                   unfinished="; ".join(late))


def _failed(curve: Any) -> str:
    """The note on points that did not converge."""
    if curve.all_converged:
        return ""
    try:
        curve.require()
    except HermitexError as error:
        return one_line(error).partition("; the curve is in")[0]
    return ""


def bounds(asked: Model) -> Section:
    """Bounds on the risk at this step, and at the best rate of each bound."""
    from hermitex.theories.bounds import bounds as find_bounds

    step = asked.some("alpha0", "eta", "beta", "Delta")
    free = {"optimise": True, **asked.some("Delta")}  # along a finite batch the bulk moves too, which takes a minute
    ways: dict[str, dict[str, Any]] = {"at this step": step, "at the best rate, for infinitely many samples of the step": free}
    rows: list[tuple[str, ...]] = []
    notes: list[Block] = []
    late: list[str] = []
    data: dict[str, Any] = {}
    code, shell = [], []
    for s in asked.sigmas:
        asked.theory(s)  # a wrong activation or target is reported once
        for where, way in ways.items():
            code.append(f"hx.bounds({s!r}, {asked.target!r}, {keywords(way)})")
            shell.append(sheet_text.command("bounds", asked.functions(s), way))
            try:
                with deadline(asked.budget):
                    found = find_bounds(s, asked.target, **way)
            except HermitexError as error:
                notes.append(prose(Literal(f"{s}, {where}: {one_line(error)}")))
                late += [f"{s}, {where}: {one_line(error)}"]*isinstance(error, BudgetExceeded)
                continue
            told = data[f"{s}, {where}"] = found.to_dict()
            for which in ("lower", "upper"):
                rate = step["eta"]/step["beta"] if where == "at this step" else told[f"eta_over_beta_{which}"]
                if rate is None:  # no step reaches it, as the note says
                    continue
                rows.append((Literal(s), where, which, value(told[which], 8), value(rate)))
            notes += [prose(Literal(f"{s}, {where}: {note}")) for note in found.notes]
    about = prose(r"The test error at the best ridge lies between two bounds \cite{cui2024}: the upper one is the error as "
                  r"$\lambda \to \infty$, the lower one that as $\alpha, \beta \to \infty$; the best rate $\eta/\beta$ of a step "
                  r"along the mean gradient ($\alpha_0 = \infty$) minimises each by itself.")
    table = Tabular(("activation", "where", "bound", "value", r"$\eta/\beta$"), tuple(rows))
    absent = "" if rows else "; ".join(x for n in notes if isinstance(n, Prose) for x in n.pieces)
    return Section("", [about, table, *notes], "\n".join(code), shell, data, ["cui2024"], absent, "; ".join(late))


def spectrum(asked: Model) -> Section:
    """The spectrum of the features after the step, at one alpha."""
    ax: Any = None
    laws, code, shell, rows = {}, [], [], []
    for s in asked.sigmas:
        asked.theory(s)
        given = asked.step(s)
        law = laws[s] = asked.spectrum(s, **given)
        code.append(f"hx.spectrum({s!r}, {keywords(given)})")
        shell.append(sheet_text.command("spectrum", {"sigma": s}, given))
        ax = law.plot(ax, label=s)
        o = law.outlier
        out = "none" if not o else (rf"${number(o['coefficient'], 6)}\, {o['times']} {'-' if o['constant'] < 0 else '+'} "
                                    rf"{number(abs(o['constant']), 6)}$")
        bulk = ", ".join(rf"$[{number(low, 6)},\, {number(high, 6)}]$" for low, high in law.edges) or "none"
        rows.append((Literal(s), bulk, value(law.mass_at_zero), out))
    about = prose(rf"Eigenvalues of $\Phi^T \Phi/p$ at $\alpha = {number(asked.middle, 6)}$, where $\Phi$ holds the features of "
                  "$n$ samples.")
    notes = [prose(Literal(f"{s}: {note}")) for s, law in laws.items() for note in law.notes]
    return Section("", [about, Drawing("spectrum", ax.figure, "Density of the bulk."),
                        Tabular(("activation", "bulk", "mass at 0", "outlier"), tuple(rows)), *notes],
                   "\n".join(code), shell, {s: law.to_dict() for s, law in laws.items()}, sheet_text.keys(laws.values()))


#: the parts in the order of the page
PARTS: tuple[tuple[str, Callable[[Model], Section]], ...] = (
    ("What the target asks of an algorithm", exponents), ("Coefficients", coefficients), ("Without feature learning", baseline),
    ("After one gradient step", learning_curve), ("Bounds and the best rate", bounds), ("Spectrum of the features", spectrum),
)


def compose(asked: Model) -> list[Section]:
    """All parts; a part that does not apply says why."""
    made = []
    for title, part in PARTS:
        try:
            found = part(asked)
        except HermitexError as error:
            why = one_line(error)
            found = Section(title, absent=why, unfinished=why if isinstance(error, BudgetExceeded) else "")
        made.append(replace(found, title=title))
    return made
