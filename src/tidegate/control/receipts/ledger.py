"""What became of every row that an operator was offered, in whole numbers that must add up.

    offered = processed + shed (by reason) + late + rejected          unexplained = 0, in every batch

A *reader* takes rows in: a side of a join, a window aggregate, a match, an input of a union. Its line counts
each row once:

    offered     rows of its stream before the user's stateless steps (plus rows that a step adds); of another
                operator: rows after the stateless steps; of a union: rows that it passed on
    rejected    their time is null or too far ahead; tested first
    late        behind the watermark; rows that a stateless step filtered out are not tested
    shed        `random_drop` in front of a join, `sifter` in front of a match (or at the sources),
                `window_drop` in front of a window aggregate, or of a join that only feeds such; `sampling`
                in front of an approximate window, whose results are then estimates; `stale` in front of a
                join where nothing else sufficed and only the freshest rows were let in
    processed   all that were joined, matched or aggregated, including rows that stateless steps filtered out
                as requested (`filtered` counts them) and rows with a null key

Joined rows are counted where they are stored, not by subtraction: a row that a task lost would be
unexplained. So would a row that never reached a reader without stateless steps before it.

A stream with several readers has the line of the reader that got least, because readers sample independently
and the number of rows that any of them shed is unknown. The receipt contains the lines of all readers. Rows
that window reduction removes from the state were processed when they arrived; see `given_up`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.model.graph import Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, TaskReport

RANDOM_DROP, SIFTER, WINDOW_DROP, SAMPLING = "random_drop", "sifter", "window_drop", "sampling"
STALE = "stale"
REASONS = (RANDOM_DROP, SIFTER, WINDOW_DROP, SAMPLING, STALE)


@dataclass(frozen=True)
class Counted:
    """Counts that do not come from the tasks of joins, windows and matches."""

    #: By stream that Spark counts before all stateless steps: its rows, and those without a usable time.
    arrived: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    #: By match: rows in front of its sifter; and those that sifters at the sources dropped.
    entered: Mapping[str, int] = field(default_factory=dict)
    at_sources: Mapping[str, int] = field(default_factory=dict)
    #: Late rows of streams that no operator reads.
    late: Mapping[str, int] = field(default_factory=dict)
    #: By input of a union (`Reader.name`): rows that reached it, and late ones among them.
    united: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class LedgerLine:
    """What became of the rows of one reader."""

    offered: int = 0
    processed: int = 0
    late: int = 0
    rejected: int = 0
    shed: Mapping[str, int] = field(default_factory=dict)
    filtered: int = 0

    @property
    def dropped(self) -> int:
        return sum(self.shed.values())

    @property
    def unexplained(self) -> int:
        return self.offered - self.processed - self.dropped - self.late - self.rejected


def lines_of(
    readers: Sequence[Reader],
    reports: Sequence[TaskReport],
    matched: Sequence[MatchReport],
    counted: Counted,
) -> dict[Reader, LedgerLine]:
    """The line of every reader."""
    taken = {reader: _taken(reader, reports, matched, counted) for reader in readers}
    arrived = dict(counted.arrived)
    for reader, (_, line) in taken.items():
        if reader.reason is None:
            arrived[reader.operator] = arrived.get(reader.operator, 0) + line.processed
    for reader, (reached, _) in taken.items():
        # Where Spark counts nothing, a reader that gets all rows gives their number.
        if reader.whole and reader.source not in counted.arrived:
            arrived[reader.source] = max(reached, arrived.get(reader.source, 0))
    return {reader: _line(reader, *taken[reader], arrived, counted) for reader in readers}


def of_stream(
    stream: str, lines: Mapping[Reader, LedgerLine], counted: Counted
) -> tuple[LedgerLine, dict[str, LedgerLine]]:
    """The line of a stream, and those of its readers where there are several."""
    mine = {reader.name: line for reader, line in lines.items() if reader.source == stream}
    if not mine:
        return _unread(stream, counted), {}
    worst = max(mine.values(), key=lambda line: (line.dropped, line.late))
    return worst, mine if len(mine) > 1 else {}


def added_up(lines: Iterable[LedgerLine]) -> LedgerLine:
    """One line for all inputs of an operator."""
    lines = list(lines)
    sums = {
        name: sum(getattr(line, name) for line in lines)
        for name in ("offered", "processed", "late", "rejected", "filtered")
    }
    reasons = {reason for line in lines for reason in line.shed}
    return LedgerLine(
        **sums, shed={reason: sum(line.shed.get(reason, 0) for line in lines) for reason in reasons}
    )


def given_up(operator: str, side: int, before: Manifest, plan: Plan, dead_us: int) -> int:
    """Stored rows of a side that this batch dropped before their window was over (window reduction)."""
    skipping = plan.shed.skipping.get(operator)
    if skipping is None or plan.flush or skipping.forget_us[side] <= dead_us:
        return 0
    merged = {
        name
        for groups in plan.rewrites.merges.get(operator, {}).values()
        for group in groups
        for name in group
    }
    return sum(
        sum(piece.bounds[1::2]) - sum(piece.bounds[::2])
        for piece in before.pieces
        if (piece.operator, piece.side) == (operator, side)
        and dead_us <= piece.last_us < skipping.forget_us[side]
        and piece.name not in merged
    )


def _taken(
    reader: Reader, reports: Sequence[TaskReport], matched: Sequence[MatchReport], counted: Counted
) -> tuple[int, LedgerLine]:
    """Rows that reached a reader, and what its tasks report about them."""
    if reader.reason is None:
        reached, late = counted.united.get(reader.name, (0, 0))
        return reached, LedgerLine(reached, reached - late, late)
    if reader.reason == SIFTER:
        return _tried(reader, matched, counted)
    mine, side = [report for report in reports if report.operator == reader.operator], reader.side
    reached, late, rejected, dropped, stale, keyless = (
        sum(getattr(report.rows, name)[side] for report in mine)
        for name in ("offered", "late", "rejected", "dropped", "stale", "keyless")
    )
    shed = {reader.reason: dropped} | ({STALE: stale} if stale else {})
    if not reader.joins:
        processed = reached - late - rejected - dropped - stale
    else:
        stored = sum(load.arrived[side] for report in mine for load in report.partitions)
        processed = stored if reader.keeps_keyless else stored + keyless
    return reached, LedgerLine(reached, processed, late, rejected, shed)


def _tried(reader: Reader, matched: Sequence[MatchReport], counted: Counted) -> tuple[int, LedgerLine]:
    """Rows that reached a match, and what its tasks report about them."""
    tried = [report for report in matched if report.operator == reader.operator]
    received = sum(report.received for report in tried)
    reached = counted.entered.get(reader.operator, received)
    return reached, LedgerLine(
        reached,
        sum(report.tried for report in tried),
        sum(report.late for report in tried),
        sum(report.rejected for report in tried),
        {SIFTER: reached - received},
    )


def _line(
    reader: Reader, reached: int, counted_line: LedgerLine, arrived: Mapping[str, int], counted: Counted
) -> LedgerLine:
    """The line of a reader, starting at the source."""
    rejected = counted.rejected.get(reader.source, 0)
    filtered = arrived.get(reader.source, reached) - rejected - reached
    # Rows that a stateless step adds are offered as well.
    made = 0 if reader.whole else max(0, -filtered)
    filtered = 0 if reader.whole else max(0, filtered)
    elsewhere = counted.at_sources.get(reader.operator, 0)
    shed = counted_line.shed
    if reader.reason is not None:
        shed = {**shed, reader.reason: shed[reader.reason] + elsewhere}
    return LedgerLine(
        offered=arrived.get(reader.source, reached) + made + elsewhere,
        processed=counted_line.processed + filtered,
        late=counted_line.late,
        rejected=counted_line.rejected + rejected,
        shed=shed,
        filtered=filtered,
    )


def _unread(stream: str, counted: Counted) -> LedgerLine:
    """A stream whose rows go straight to outputs: rows on time are written."""
    arrived, rejected = counted.arrived.get(stream, 0), counted.rejected.get(stream, 0)
    late = counted.late.get(stream, 0)
    return LedgerLine(arrived, arrived - rejected - late, late, rejected)
