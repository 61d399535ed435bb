"""The receipt of a batch: for every stream and every output, exactly what was lost.

    plan, manifests ─┐
    reports of tasks ├─▶ receipt: one plain value, a JSON line in the checkpoint (`state/receipts.py`)
    observations     ┘

For streams the ledger (`ledger.py`): offered = processed + shed by reason + late + rejected. For outputs
the ledger of the operator that makes them (rows that came to it, over all its inputs), how many rows were
written where that is known, what may be missing and why (`completeness.py`), for joins that skipped work
the estimated recall with its 95 % interval, also by lag (`recall.py`), and for windows the ones that are
missing. Modes:

    EXACT       the rows that an engine with unlimited time would have written, from those that streams took
    SUBSET      some of these rows, all of them right
    ESTIMATED   values are estimates (of aggregates over a sample)

Guarantee: a pure function, the same for a replayed batch; every ledger balances (`unexplained` is 0), and
where it does not, the receipt says by how much. No recall is given where no sound estimate is known: `why`
tells the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.control.completeness import SKIPPED_PAIRS, Losses, losses_of
from tidegate.control.ledger import (
    REASONS,
    WINDOW_DROP,
    Counted,
    Line,
    Reader,
    added_up,
    given_up,
    lines_of,
    of_stream,
)
from tidegate.control.planning import Operator
from tidegate.control.recall import Estimate, Recall, recall_of
from tidegate.join.reach import ages_of
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.sifting import MatchReport
from tidegate.values import SIDES, Manifest, Plan, TaskReport

EXACT, SUBSET, ESTIMATED = "EXACT", "SUBSET", "ESTIMATED"
STREAM, OUTPUT = "stream", "output"
#: Work was skipped and no row explored: policies that never explore, or a batch of a few rows.
NO_SAMPLE = "no_sample"

#: Runs of missing windows: start of the first and the last one, and how far apart they begin; microseconds.
MissingWindows = Sequence[tuple[int, int, int]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Outlet:
    """One output of a query: where its rows come from, and whether each of them is written."""

    name: str
    #: The operator, or the stream, that it lies behind.
    source: str
    #: `late` or `rejected` where only such rows of a stream are written.
    takes: str = "rows"
    #: Nothing behind the source changes the number of rows.
    plain: bool = True


@dataclass(frozen=True)
class Ways:
    """The ways of rows through a query: who reads what, in the order of the flow, and what is written."""

    streams: tuple[str, ...]
    readers: tuple[Reader, ...]
    outputs: tuple[Outlet, ...]
    operators: Mapping[str, Operator]
    #: Joins whose results are pairs, so that their recall is that of pairs.
    pairing: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Told:
    """What a batch said about itself."""

    plan: Plan
    before: Manifest
    after: Manifest
    reports: Sequence[TaskReport]
    matched: Sequence[MatchReport] = ()
    counted: Counted = field(default_factory=Counted)
    #: By output: windows that would have come out in this batch and were decided against.
    missing: Mapping[str, MissingWindows] = field(default_factory=dict)


def receipt_of(ways: Ways, told: Told) -> tuple[Row, dict[str, int]]:
    """The receipt of a batch, and what its manifest must remember (under `completeness.CONTROL`)."""
    lines = lines_of(ways.readers, told.reports, told.matched, told.counted)
    losses = losses_of(told.plan, told.before, told.after, told.reports, lines, ways.operators)
    streams = [_stream(name, ways, told, lines) for name in ways.streams]
    outputs = [_output(outlet, ways, told, lines, losses) for outlet in ways.outputs]
    receipt = {"batch": told.plan.batch, "planned_us": told.plan.now_us, "rows": [*streams, *outputs]}
    return receipt, dict(losses.gaps_us)


def _stream(name: str, ways: Ways, told: Told, lines: Mapping[Reader, Line]) -> Row:
    line, readers = of_stream(name, lines, told.counted)
    gone = sum(_given_up(reader, ways, told) for reader in ways.readers if reader.source == name)
    return {
        "kind": STREAM,
        "name": name,
        "mode": SUBSET if line.dropped or gone else EXACT,
        **_ledger(line),
        "given_up": gone,
        "readers": [{"reader": reader, **_ledger(one)} for reader, one in readers.items()],
    }


def _given_up(reader: Reader, ways: Ways, told: Told) -> int:
    if reader.operator not in told.plan.skipping:
        return 0
    within, settle_us = ways.operators[reader.operator].within, told.plan.settle_us[reader.operator]
    dead_us = within.dead_before(reader.side, settle_us)
    return given_up(reader.operator, reader.side, told.before, told.plan, dead_us)


def _output(outlet: Outlet, ways: Ways, told: Told, lines: Mapping[Reader, Line], losses: Losses) -> Row:
    mine = [line for reader, line in lines.items() if reader.operator == outlet.source]
    line = added_up(mine) if mine else _straight(outlet, lines, told)
    missing = told.missing.get(outlet.name, ())
    why = sorted({*losses.why.get(outlet.source, ()), *((WINDOW_DROP,) if missing else ())})
    row: Row = {
        "kind": OUTPUT,
        "name": outlet.name,
        "mode": SUBSET if why else EXACT,
        **_ledger(line),
        "emitted": _emitted(outlet, line, told),
        "why": why,
        "missing": [list(run) for run in missing],
    }
    if not why:
        pairs = float(sum(report.matches for report in told.reports if report.operator == outlet.source))
        known = {"estimate": Estimate(pairs, pairs).to_json()} if outlet.source in ways.pairing else {}
        return {**row, "recall": 1.0, "recall_low": 1.0, "recall_high": 1.0, **known}
    if why != [SKIPPED_PAIRS] or outlet.source not in ways.pairing:
        return row
    looks = [report.looks for report in told.reports if report.operator == outlet.source and report.looks]
    recall = recall_of(told.plan.skipping[outlet.source], looks)
    if recall is None:
        return {**row, "why": [SKIPPED_PAIRS, NO_SAMPLE]}
    return {
        **row,
        **_recall_row(recall.total),
        "estimate": recall.total.to_json(),
        "by_lag": _by_lag(recall, ways.operators[outlet.source].within),
    }


def _straight(outlet: Outlet, lines: Mapping[Reader, Line], told: Told) -> Line:
    """Rows of a stream that go past all operators: nothing is shed on this way."""
    stream, _ = of_stream(outlet.source, lines, told.counted)
    if outlet.takes == "rows":
        taken = stream.processed + stream.dropped
        return Line(stream.offered, taken, stream.late, stream.rejected)
    rows = stream.late if outlet.takes == "late" else stream.rejected
    return Line(rows, rows)


def _emitted(outlet: Outlet, line: Line, told: Told) -> int | None:
    """Rows written; None where only the sink knows."""
    if not outlet.plain:
        return None
    counts = [report.emitted for report in told.reports if report.operator == outlet.source]
    counts += [report.emitted for report in told.matched if report.operator == outlet.source]
    return sum(counts) if counts else line.processed


def _recall_row(estimate: Estimate) -> Row:
    low, high = estimate.interval
    return {"recall": estimate.recall, "recall_low": low, "recall_high": high}


def _by_lag(recall: Recall, within: Within | Tumbling | Unbounded | Any) -> list[Row]:
    """Per basic window in reach: how far the stored row lies behind the new one (ahead of it: negative)."""
    rows: list[Row] = []
    for side, estimates in enumerate(recall.by_age):
        ages = ages_of(within, side)
        for number, one in enumerate(estimates):
            if one is not None and one.true:
                lag_us = (number - ages.ahead) * ages.slot_us
                found = {"found": one.found, "true": round(one.true, 1)}
                shares = {name: round(part or 0.0, 4) for name, part in _recall_row(one).items()}
                rows.append({"stored": SIDES[side], "lag_us": lag_us, **found, **shares})
    return rows


def _ledger(line: Line) -> Row:
    return {
        "offered": line.offered,
        "processed": line.processed,
        "shed": line.dropped,
        "shed_by": {reason: line.shed.get(reason, 0) for reason in REASONS},
        "late": line.late,
        "rejected": line.rejected,
        "filtered": line.filtered,
        "unexplained": line.unexplained,
    }
