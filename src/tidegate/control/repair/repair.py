"""Decides which owed work a batch does: what there is time for, the most valuable first.

    time of a batch   |── ordinary work ──|── owed work ──|··· reserve ···|
                                           ◀──── spare ───▶

Ours; no paper has it. How long ordinary work takes is the longest of the last batches; how long owed work
takes is learnt from every batch that did some (`cost_model.py`: per debt, which is what it calls a row, per
comparison, per match). Cells of all debts compete by matches per comparison, then the older debt wins; the
last cell is taken in part, by lot.

Nothing is paid while joins leave out work for want of time. When nothing arrives, owed work may fill more of
the time, and gets some of it even where a batch that does nothing takes all there is: idle time ends every
debt, however slow the machine and however wrong the model.

Guarantee: pure; a function of the manifest and of what was asked for. What is learnt lies in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import groupby
from typing import Any

from tidegate.api.goal import WHEN_IDLE
from tidegate.control.goal.cost_model import CostModel, Effort
from tidegate.model.debts import Debt, DebtCell, DebtRepair, RepairCell
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.skip_plan import Skipping

#: Where the manifest keeps what is remembered.
CONTROL = "repair"
#: Part of the time of a batch that ordinary and owed work may fill together. The rest is for what neither
#: model foresees: a batch that repairs must not be the one that is late. Now and then tasks take a third
#: longer than others of the same work, for a batch or two; with 0.85 one repairing batch in thirty was late.
FILLED = 0.75
#: The same when nothing arrives, and the least part that is then for owed work.
FILLED_IDLE, LEAST_IDLE = 0.9, 0.25
#: Batches whose longest stands for the next. More: a rush that has just ended is remembered longer.
ORDINARY_KEPT = 4
#: Comparisons that are taken on before anything is known, and at least when nothing arrives: milliseconds, or
#: a tenth of a second where a Python function judges.
FIRST_COMPARISONS = 500_000.0
#: From a batch to the next at most so many times as many: more would be trusting a model that knows little.
RISE_MAX = 4.0
#: What took next to no time may rise faster: until as many times its time would fill this part of what is
#: spare, and at most so many times.
RISE_FILLS, RISE_FAR = 0.5, 64.0
#: Debts of one batch: each takes some calls over all stored runs, however little it owes.
DEBTS_PER_BATCH_MAX = 32

Payments = dict[str, tuple[DebtRepair, ...]]


@dataclass(frozen=True)
class RepairSettings:
    """When owed work is done, and how much may be kept for it."""

    when: str
    bytes_max: int
    #: Time that a batch may take, and tasks that run at the same time.
    batch_seconds: float
    parallelism: int = 1


@dataclass(frozen=True)
class Room:
    """What owed work may take in one batch."""

    seconds: float
    comparisons: float
    #: Comparisons that are made whatever time they take.
    at_least: float


def everything(debts: Iterable[Debt]) -> Payments:
    """All that is owed."""
    return _grouped(
        (debt, RepairCell(c.window, c.age, c.repaired, 1.0)) for debt in debts for c in debt.cells
    )


def choose(settings: RepairSettings, manifest: Manifest, skipping: Mapping[str, Skipping]) -> Payments:
    """What the batch after this manifest pays, if there is time for some of it."""
    known = manifest.control.get(CONTROL, {})
    idle = not known.get("rows", 0)
    short = any(one.fraction < 1 for one in skipping.values())
    if settings.when != WHEN_IDLE or not manifest.debts or (short and not idle):
        return {}
    ordinary = max(known.get("ordinary", ()), default=settings.batch_seconds)
    spare = (FILLED_IDLE if idle else FILLED) * settings.batch_seconds - ordinary
    seconds = max(spare, LEAST_IDLE * settings.batch_seconds) if idle else spare
    if seconds <= 0:
        return {}
    # A clock that saw nothing pass says nothing.
    took = known.get("seconds") or seconds
    rise = min(RISE_FAR, max(RISE_MAX, RISE_FILLS * seconds / took))
    room = Room(
        seconds,
        max(FIRST_COMPARISONS, rise * known.get("comparisons", 0)),
        FIRST_COMPARISONS if idle else 0.0,
    )
    return _grouped(_most_valuable(manifest.debts, _model(known), room))


def learn(
    settings: RepairSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    ordinary_seconds: float,
    cold: bool,
) -> Snapshot:
    """What is remembered after a batch that took so long, not counting what it made up for."""
    known = before.control.get(CONTROL, {})
    model, comparisons = _model(known), known.get("comparisons", 0)
    seconds = known.get("seconds")
    debts = sum(len(repairs) for repairs in plan.repair.repairs.values())
    # Where everything is paid in a pass of its own, the plan does not say how much that is.
    if debts and not plan.repair.repair_all and not cold:
        comparisons = sum(report.repaired.comparisons for report in reports)
        matches = sum(report.repaired.matches for report in reports)
        seconds = repair_seconds(reports, settings.parallelism)
        model.observe(Effort(debts, comparisons, matches), seconds)
    return {
        "rows": sum(sum(report.rows.offered) for report in reports),
        "ordinary": [*known.get("ordinary", ()), ordinary_seconds][-ORDINARY_KEPT:],
        # Of the last batch that paid.
        "comparisons": comparisons,
        "seconds": seconds,
        "model": model.snapshot(),
    }


def repair_seconds(reports: Sequence[TaskReport], parallelism: int) -> float:
    """Time of owed work: each join is as slow as its slowest instance, or as all of them on so many cores."""
    total = 0.0
    for name in {report.operator for report in reports}:
        seconds = [report.repaired.cpu_seconds for report in reports if report.operator == name]
        total += max(max(seconds), sum(seconds) / parallelism)
    return total


def _model(known: Mapping[str, Any]) -> CostModel:
    return CostModel.restore(known["model"]) if "model" in known else CostModel()


def _most_valuable(debts: Sequence[Debt], model: CostModel, room: Room) -> Iterator[tuple[Debt, RepairCell]]:
    """Cells by matches per comparison, as many as there is room for."""
    per_debt, per_comparison, per_match, _ = model.rates.tolist()
    seconds, comparisons = model.fixed, 0.0
    chosen: set[tuple[str, int]] = set()
    # Those with the best cells come first in any case, so no others need to be looked at closely.
    best = nsmallest(
        DEBTS_PER_BATCH_MAX, debts, key=lambda debt: (-max(map(_density, debt.cells)), debt.batch)
    )
    cells = [(debt, cell) for debt in best for cell in debt.cells]
    for debt, cell in sorted(cells, key=lambda one: (-_density(one[1]), one[0].batch)):
        name, left = (debt.operator, debt.batch), 1 - cell.repaired
        begin = 0.0 if name in chosen else per_debt
        size, cost = left * cell.comparisons, per_comparison * cell.comparisons + per_match * cell.matches
        in_time = _part(room.seconds - seconds - begin, left * cost)
        share = min(in_time, _part(room.comparisons - comparisons, size))
        share = max(share, _part(room.at_least - comparisons, size))
        if share <= 0:
            return
        chosen.add(name)
        seconds += begin + share * left * cost
        comparisons += share * size
        until = 1.0 if share >= 1 else cell.repaired + share * left
        yield debt, RepairCell(cell.window, cell.age, cell.repaired, until)


def _density(cell: DebtCell) -> float:
    return cell.matches / max(cell.comparisons, 1)


def _part(room: float, size: float) -> float:
    """How much of something fits; what has no size fits where there is any room."""
    if room <= 0:
        return 0.0
    return min(1.0, room / size) if size > 0 else 1.0


def _grouped(repaired: Iterable[tuple[Debt, RepairCell]]) -> Payments:
    """Payments by operator, oldest debt first."""

    def debt_of(one: tuple[Debt, RepairCell]) -> tuple[str, int]:
        return one[0].operator, one[0].batch

    repairs: dict[str, list[DebtRepair]] = {}
    for (operator, batch), cells in groupby(sorted(repaired, key=debt_of), key=debt_of):
        repairs.setdefault(operator, []).append(DebtRepair(batch, tuple(cell for _, cell in cells)))
    return {operator: tuple(made) for operator, made in repairs.items()}
