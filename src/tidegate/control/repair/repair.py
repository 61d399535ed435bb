"""Decides which debts a batch repairs: as much as there is time for, the most valuable first.

    time of a batch   |── ordinary work ──|── repair ──|··· reserve ···|
                                           ◀── spare ──▶

Ours; no paper has it. Ordinary work is assumed to take as long as in the longest of the last batches; the
cost of repair is learnt from every batch that did some (`control/goal/cost_model.py`: per debt, counted as
its row, per comparison, per match). Cells of all debts compete by matches per comparison, then the older debt
wins; the last cell is taken in part, by hash sampling.

Nothing is repaired while joins shed for lack of time. When no rows arrive, repair may fill more of the time,
and gets some even if an empty batch uses the whole budget: so idle time ends every debt, however slow the
machine or wrong the model.

Guarantee: pure; a function of the manifest and the settings. What is learnt is in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import groupby
from typing import Any

from tidegate.api.goal import IDLE
from tidegate.control.goal.cost_model import CostModel, Effort
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.debts import Debt, DebtCell, DebtRepair, RepairCell
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.skip_plan import Skipping

#: Key in the manifest's control state.
CONTROL = "repair"
#: Part of a batch's time for ordinary work and repair together. The rest covers prediction errors, so that
#: repair does not make a batch overdue: tasks occasionally take a third longer for the same work. With 0.85,
#: one repairing batch in thirty was overdue.
FILLED = 0.75
#: The same when no rows arrive, and the least part that is then for repair.
FILLED_IDLE, LEAST_IDLE = 0.9, 0.25
#: Batches whose longest predicts the next. More: a burst that has just ended counts for longer.
ORDINARY_KEPT = 4
#: Comparisons in the first repair, and at least when no rows arrive: milliseconds, or a tenth of a second
#: with a Python predicate.
FIRST_COMPARISONS = 500_000.0
#: Largest growth of comparisons from one batch to the next, because the model has little data at first.
RISE_MAX = 4.0
#: Repair that took next to no time may grow faster: until it would fill this part of the spare time, by at
#: most this factor.
RISE_FILLS, RISE_FAR = 0.5, 64.0
#: Most debts per batch: each needs some calls over all stored runs, however small it is.
DEBTS_PER_BATCH_MAX = 32

Payments = dict[str, tuple[DebtRepair, ...]]


@dataclass(frozen=True)
class RepairSettings:
    """The budget for repair, and how many bytes may be kept for it."""

    when: str
    bytes_max: int
    #: Time that a batch may take, and tasks that run at the same time.
    batch_seconds: float
    parallelism: int = 1


@dataclass(frozen=True)
class Room:
    """What repair may take in one batch."""

    seconds: float
    comparisons: float
    #: Comparisons that are made however long they take.
    at_least: float


def everything(debts: Iterable[Debt]) -> Payments:
    """Repairs of all debts."""
    return _grouped(
        (debt, RepairCell(c.window, c.age, c.repaired, 1.0)) for debt in debts for c in debt.cells
    )


def choose(settings: RepairSettings, manifest: Manifest, skipping: Mapping[str, Skipping]) -> Payments:
    """What the batch after this manifest repairs, if there is time."""
    known = manifest.control.get(CONTROL, {})
    idle = not known.get("rows", 0)
    short = any(one.fraction < 1 for one in skipping.values())
    if settings.when != IDLE or not manifest.debts or (short and not idle):
        return {}
    ordinary = max(known.get("ordinary", ()), default=settings.batch_seconds)
    spare = (FILLED_IDLE if idle else FILLED) * settings.batch_seconds - ordinary
    seconds = max(spare, LEAST_IDLE * settings.batch_seconds) if idle else spare
    if seconds <= 0:
        return {}
    # A measured time of 0 is no measurement.
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
    # If all debts are repaired in a separate pass, the plan does not contain their size.
    if debts and not plan.repair.repair_all and not cold:
        comparisons = sum(report.repaired.comparisons for report in reports)
        matches = sum(report.repaired.matches for report in reports)
        seconds = repair_seconds(reports, settings.parallelism)
        model.observe(Effort(debts, comparisons, matches), seconds)
    return {
        "rows": sum(sum(report.rows.offered) for report in reports),
        "ordinary": [*known.get("ordinary", ()), ordinary_seconds][-ORDINARY_KEPT:],
        # Of the last batch that repaired.
        "comparisons": comparisons,
        "seconds": seconds,
        "model": to_plain(model),
    }


def repair_seconds(reports: Sequence[TaskReport], parallelism: int) -> float:
    """Time of repair: per join that of its slowest instance, or of all of them on this many cores."""
    total = 0.0
    for name in {report.operator for report in reports}:
        seconds = [report.repaired.cpu_seconds for report in reports if report.operator == name]
        total += max(max(seconds), sum(seconds) / parallelism)
    return total


def _model(known: Mapping[str, Any]) -> CostModel:
    return from_plain(CostModel, known["model"]) if "model" in known else CostModel()


def _most_valuable(debts: Sequence[Debt], model: CostModel, room: Room) -> Iterator[tuple[Debt, RepairCell]]:
    """Cells by matches per comparison, as many as fit."""
    per_debt, per_comparison, per_match, _ = model.rates.tolist()
    seconds, comparisons = model.fixed, 0.0
    chosen: set[tuple[str, int]] = set()
    # Debts with the best cells come first in any case, so the others need no closer evaluation.
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
    """The part of something that fits; anything of size 0 fits if there is any room."""
    if room <= 0:
        return 0.0
    return min(1.0, room / size) if size > 0 else 1.0


def _grouped(repaired: Iterable[tuple[Debt, RepairCell]]) -> Payments:
    """Repairs by operator, oldest debt first."""

    def debt_of(one: tuple[Debt, RepairCell]) -> tuple[str, int]:
        return one[0].operator, one[0].batch

    repairs: dict[str, list[DebtRepair]] = {}
    for (operator, batch), cells in groupby(sorted(repaired, key=debt_of), key=debt_of):
        repairs.setdefault(operator, []).append(DebtRepair(batch, tuple(cell for _, cell in cells)))
    return {operator: tuple(made) for operator, made in repairs.items()}
