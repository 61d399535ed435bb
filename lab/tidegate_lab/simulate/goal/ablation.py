"""Ablation: every number of the control tuning halved and doubled, and every mechanism switched off.

    for each seed                      one scenario, its references
        for each variant               a run, its verdict
    by variant and metric              its mean over the seeds, less that of the tuning as it is

All variants meet the same scenarios and the same noise, so a difference is theirs. A number that moves
nothing is not needed; one that moves much was tuned. Movements are in points: hundredths of the batches,
results, time or recall, and of the batches for reversals. Seconds of recovery are not points: left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from tidegate.control.goal.goal_step import KeepSettings
from tidegate_lab.simulate.goal.judge import Maker
from tidegate_lab.simulate.goal.metrics import Verdict, verdict
from tidegate_lab.simulate.goal.played import play
from tidegate_lab.simulate.goal.product import GoalLoop
from tidegate_lab.simulate.goal.references import references
from tidegate_lab.simulate.goal.scenario import scenario

#: Changes the settings of the goal loop.
Change = Callable[[KeepSettings], KeepSettings]

#: A number whose halving, doubling and a mechanism whose loss move no metric by so many points is not needed;
#: and no number may move one by more than the second.
NEEDED, TOO_MUCH = 0.5, 3.0


@dataclass(frozen=True)
class Variant:
    """The control with one thing changed."""

    #: Name of the number or mechanism, and what was done to it.
    name: str
    what: str
    maker: Maker


@dataclass(frozen=True)
class Moved:
    """By how many points a variant moved each metric; NaN where no scenario says anything about it."""

    name: str
    what: str
    points: Mapping[str, float]
    #: Whether any run was different at all.
    reached: bool

    def row(self) -> dict[str, Any]:
        points = {name: None if np.isnan(value) else value for name, value in self.points.items()}
        return {"name": self.name, "what": self.what, "reached": self.reached, **points}

    @property
    def most(self) -> float:
        known = [abs(one) for one in self.points.values() if not np.isnan(one)]
        return max(known, default=0.0)


#: By metric: its value in points; None where the scenario says nothing.
POINTS: Mapping[str, Callable[[Verdict], float | None]] = {
    "on time": lambda one: None if one.on_time is None else 100 * one.on_time,
    "needless loss": lambda one: 100 * one.needless_loss,
    "budget use": lambda one: None if one.budget_use is None else 100 * one.budget_use,
    "reversals": lambda one: None if one.reversals is None else 10 * one.reversals,
    # What lies above the plan that never changes is no merit of a number.
    "of fixed": lambda one: 100 * min(1.0, one.of_fixed),
    "of clairvoyant": lambda one: 100 * one.of_clairvoyant,
}


def numbers(tuning: Any) -> dict[str, float]:
    """By dotted name: all numbers of a tuning, of its parts as well."""
    return dict(_numbers(tuning, ""))


def _numbers(part: Any, above: str) -> Iterator[tuple[str, float]]:
    for field in fields(part):
        value = getattr(part, field.name)
        if is_dataclass(value):
            yield from _numbers(value, f"{above}{field.name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{field.name}", value


def with_number(tuning: Any, name: str, factor: float) -> Any:
    """The tuning with one number multiplied; whole numbers stay whole, and at least 1."""
    first, _, rest = name.partition(".")
    value = getattr(tuning, first)
    if rest:
        return replace(tuning, **{first: with_number(value, rest, factor)})
    changed = factor * value
    return replace(tuning, **{first: max(1, round(changed)) if isinstance(value, int) else changed})


def tuned(tuning: Any) -> Maker:
    """Makes goal loops with this tuning."""

    def change(settings: KeepSettings) -> KeepSettings:
        goal: Any = settings.goal
        return replace(settings, goal=replace(goal, tuning=tuning))

    return changed(change)


def changed(change: Change) -> Maker:
    """Makes goal loops whose settings are changed."""
    return lambda one: GoalLoop(one, change=change)


def of_numbers(tuning: Any) -> list[Variant]:
    """Every number halved and doubled, where that is possible."""
    found = []
    for name, value in numbers(tuning).items():
        for what, factor in (("½", 0.5), ("2", 2.0)):
            try:
                other = with_number(tuning, name, factor)
            except Exception:
                # Settings are validated: some cannot be doubled.
                continue
            if numbers(other)[name] != value:
                found.append(Variant(name, what, tuned(other)))
    return found


def of_mechanisms() -> list[Variant]:
    """What can be switched off in the settings."""
    changes: dict[str, Change] = {
        "stale-row shedding": lambda one: replace(one, goal=replace(one.goal, freshest=frozenset())),
        "window drop": lambda one: replace(one, dropping=None),
        "sifters": lambda one: replace(one, sifting=None),
        "weights of outputs": lambda one: replace(one, goal=replace(one.goal, weights={})),
        "less time after a long batch": lambda one: replace(
            one, goal=replace(one.goal, latency_seconds=None)
        ),
    }
    return [Variant(name, "off", changed(change)) for name, change in changes.items()]


def measured(seed: int, variants: Sequence[Variant], base: Maker = GoalLoop) -> list[Verdict]:
    """Verdicts of one scenario: of the control as it is, and of every variant."""
    one = scenario(seed)
    known = references(one)
    makers = [base, *(variant.maker for variant in variants)]
    return [verdict(play(one, maker(one)), known) for maker in makers]


def moved(rows: Sequence[Sequence[Verdict]], variants: Sequence[Variant]) -> list[Moved]:
    """Means over scenarios, less those of the first verdict of each row."""
    found = []
    for number, variant in enumerate(variants, 1):
        points = {name: _moved(rows, number, value) for name, value in POINTS.items()}
        reached = any(row[number] != row[0] for row in rows)
        found.append(Moved(variant.name, variant.what, points, reached))
    return found


def _moved(rows: Sequence[Sequence[Verdict]], number: int, value: Callable[[Verdict], float | None]) -> float:
    pairs = [(value(row[0]), value(row[number])) for row in rows]
    # A run that never sheds has no budget use: compare scenarios where both say something.
    off = [after - before for before, after in pairs if before is not None and after is not None]
    return float(np.mean(off)) if off else float("nan")


def table(found: Sequence[Moved], seeds: Sequence[int], base: Mapping[str, float]) -> str:
    """The document of the ablation."""
    heads = ["number or mechanism", "", *POINTS, "most"]
    lines = [
        "# What each number of the control is worth",
        "",
        f"Mean movement over the scenarios of the seeds {seeds[0]} to {seeds[-1]}, in points, when a number",
        "is halved (½) or doubled (2), or a mechanism is switched off. For on time, budget use and recall",
        "more is better; for needless loss and reversals less. All variants meet the same rows and noise.",
        f"A movement below {NEEDED} on every metric means that the number is not needed; one above",
        f"{TOO_MUCH:g}, that the control hangs on it. This page is written by",
        "`python lab/scripts/ablate_control.py --table docs/control-ablation.md`.",
        "",
        "As it is: " + ", ".join(f"{name} {value:.2f}" for name, value in base.items()) + ".",
        "",
        "| " + " | ".join(heads) + " |",
        "|---|---|" + "--:|" * (len(POINTS) + 1),
    ]
    return "\n".join([*lines, *map(_line, found)]) + "\n"


def _line(one: Moved) -> str:
    cells = ["–" if np.isnan(value) else f"{value:+.2f}" for value in one.points.values()]
    most = f"**{one.most:.2f}**" if one.most > TOO_MUCH else f"{one.most:.2f}"
    return "| " + " | ".join([f"`{one.name}`", one.what, *cells, most if one.reached else "same runs"]) + " |"


def means(rows: Sequence[Sequence[Verdict]]) -> dict[str, float]:
    """By metric: the mean in points of the control as it is."""
    found = {}
    for name, value in POINTS.items():
        some = [one for one in (value(row[0]) for row in rows) if one is not None]
        if some:
            found[name] = float(np.mean(some))
    return found
