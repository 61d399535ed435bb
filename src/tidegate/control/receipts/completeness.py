"""Which operators may lack results in a batch, and why; upstream losses and earlier batches count.

A skipped pair is missing once, in the batch of its later row. A row that was dropped or never emitted
upstream is missing in the state, so pairs with it are missing until its window is over:

    batch          1      2      3      4      5          rows dropped in batch 2: later rows find no match
    random drop           ✗                               there, however much time there is again
    results        EXACT  SUBSET SUBSET SUBSET EXACT      watermark has passed the newest row that is missing

Estimates lack nothing: their values are uncertain instead, and so is whatever is computed from them. Late and
rejected rows are no loss: the rules for them are part of the stream's description, and results are exact for
the rows that it accepted.

Guarantee: an operator that is not listed has exactly the results that it would have had without shedding.
Pure: the manifest keeps the newest time of a row that is missing in the state (`CONTROL`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.receipts.ledger import RANDOM_DROP, SAMPLING, STALE, WINDOW_DROP, LedgerLine
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import BEGINNING_US

#: Where the manifest keeps the newest time of a missing row, by operator.
CONTROL = "receipts"

#: Reasons that are not those of a row that was dropped (`ledger.REASONS`).
SKIPPED_PAIRS, WINDOW_REDUCTION = "skipped_pairs", "window_reduction"
UPSTREAM, EARLIER = "upstream", "earlier_batches"
#: With these reasons a row is missing in the state, where later rows would have probed it.
_MISSING_IN_STATE = {RANDOM_DROP, STALE, WINDOW_REDUCTION, UPSTREAM}
#: With these reasons no operator lacks results: whole windows are missing or estimated.
_REPORTED_OTHERWISE = (WINDOW_DROP, SAMPLING)


@dataclass(frozen=True)
class Losses:
    """Why results may be missing, by operator; and what the manifest must remember."""

    why: Mapping[str, frozenset[str]]
    gaps_us: Mapping[str, int]
    #: Operators whose results are estimates, or computed from such.
    estimated: frozenset[str] = frozenset()


def losses_of(
    plan: Plan,
    before: Manifest,
    after: Manifest,
    reports: Sequence[TaskReport],
    lines: Mapping[Reader, LedgerLine],
    operators: Mapping[str, OperatorTraits],
    estimated: Collection[str] = (),
) -> Losses:
    """What a batch lacks. Readers are given in the order of the flow, so upstream comes first.

    Rows dropped because no kept window needs them cause only missing windows, which every output lists
    itself. `estimated`: approximate windows whose results are estimates in this batch.
    """
    unsure = set(estimated)
    why: dict[str, frozenset[str]] = {}
    gaps_us = {name: at for name, at in before.control.get(CONTROL, {}).items() if name in operators}
    newest_us = max((clock.seen_us for clock in after.clocks.values()), default=BEGINNING_US)
    for name in dict.fromkeys(reader.operator for reader in lines):
        mine = _left_out(name, plan, reports)
        for reader, line in lines.items():
            if reader.operator == name:
                shed = (reason for reason, rows in line.shed.items() if rows)
                mine.update(reason for reason in shed if reason not in _REPORTED_OTHERWISE)
                mine.update({UPSTREAM} if reader.source in why else ())
                unsure.update({name} if reader.source in unsure else ())
        if name in operators:
            if _is_open(operators[name], before.late_before_us(name), gaps_us.get(name, BEGINNING_US)):
                mine.add(EARLIER)
            else:
                gaps_us.pop(name, None)
            if mine & _MISSING_IN_STATE:
                gaps_us[name] = newest_us
        if mine:
            why[name] = frozenset(mine)
    return Losses(why, gaps_us, frozenset(unsure))


def _left_out(name: str, plan: Plan, reports: Sequence[TaskReport]) -> set[str]:
    """The reasons for which the plan lets a join skip work, if there was anything to probe."""
    skipping = plan.shed.skipping.get(name)
    if skipping is None or not any(report.work.probed for report in reports if report.operator == name):
        return set()
    found = {SKIPPED_PAIRS} if min(map(min, skipping.shares)) < 1 else set()
    return found | ({WINDOW_REDUCTION} if max(skipping.forget_us) > BEGINNING_US else set())


def _is_open(operator: OperatorTraits, late_us: int, gap_us: int) -> bool:
    """Whether a row of that time could still be probed."""
    if gap_us == BEGINNING_US:
        return False
    return any(operator.within.dead_before(side, late_us) <= gap_us for side in (0, 1))
