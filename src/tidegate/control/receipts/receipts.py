"""The receipt of a batch: for every stream and every output, exactly what was lost.

    plan, manifests ─┐
    reports of tasks ├─▶ receipt: one plain value, a JSON line in the checkpoint (`state/receipt_log.py`)
    observations     ┘

For streams the ledger (`ledger.py`): offered = processed + shed by reason + late + rejected. For outputs
the ledger of the operator that makes them (rows that came to it, over all its inputs), how many rows were
written where that is known, what may be missing and why (`completeness.py`), for joins that skipped work
the estimated recall with its 95 % interval, also by lag (`recall.py`), and for windows the ones that are
missing. Modes:

    EXACT       the rows that an engine with unlimited time would have written, from those that streams took
    SUBSET      some of these rows, all of them right; of windows: some are missing that would close now
    ESTIMATED   values are estimates, of aggregates over a sample of the rows, with intervals where valid
                ones are known; groups of which no row was kept are missing

A join with repair makes up for what it skipped (`debts.py`). Its output stays a SUBSET in the batch that
skipped, with the recall of what came in time: later batches pay, and say so. `debt` is what is owed after a
batch, `paid` and `forgiven` what it made up for and gave up, in comparisons. Where nothing is owed in the end
and nothing was ever forgiven, no pair is missing from all batches together for having been skipped.

Guarantee: a pure function, the same for a replayed batch; every ledger balances (`unexplained` is 0), and
where it does not, the receipt says by how much. The recall is that of pairs, before any filter behind the
join; none is given where no sound estimate is known, and `why` tells the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.control.receipts.completeness import SKIPPED_PAIRS, Losses, losses_of
from tidegate.control.receipts.ledger import (
    REASONS,
    SAMPLING,
    WINDOW_DROP,
    Counted,
    LedgerLine,
    added_up,
    given_up,
    lines_of,
    of_stream,
)
from tidegate.control.receipts.recall import Estimate, Recall, found_shares, recall_of
from tidegate.errors import explain
from tidegate.join.selective.reach import ages_of
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.codec import to_plain
from tidegate.model.graph import Lineage, Outlet, Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.model.times import SIDES

EXACT, SUBSET, ESTIMATED = "EXACT", "SUBSET", "ESTIMATED"
STREAM, OUTPUT = "stream", "output"
#: Work was skipped and no row explored: policies that never explore, or a batch of a few rows.
NO_SAMPLE = "no_sample"

#: Runs of missing windows: start of the first and the last one, and how far apart they begin; microseconds.
MissingWindows = Sequence[tuple[int, int, int]]
Row = dict[str, Any]


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
    #: Approximate windows whose results are estimates in this batch.
    estimated: Collection[str] = ()


def receipt_of(ways: Lineage, told: Told) -> tuple[Row, dict[str, int]]:
    """The receipt of a batch, and what its manifest must remember (under `completeness.CONTROL`)."""
    lines = lines_of(ways.readers, told.reports, told.matched, told.counted)
    losses = losses_of(
        told.plan, told.before, told.after, told.reports, lines, ways.operators, told.estimated
    )
    found = {name: _found(name, ways, told, losses) for name in {outlet.source for outlet in ways.outputs}}
    streams = [_stream(name, ways, told, lines) for name in ways.streams]
    outputs = [
        # Of windows that are missing nobody knows how many rows they would have had.
        {
            **_output(outlet, told, lines, losses),
            **({} if outlet.name in told.missing else found[outlet.source]),
        }
        for outlet in ways.outputs
    ]
    receipt = {"batch": told.plan.batch, "planned_us": told.plan.now_us, "rows": [*streams, *outputs]}
    return receipt, dict(losses.gaps_us)


def _stream(name: str, ways: Lineage, told: Told, lines: Mapping[Reader, LedgerLine]) -> Row:
    line, readers = of_stream(name, lines, told.counted)
    gone = sum(_given_up(reader, ways, told) for reader in ways.readers if reader.source == name)
    return {
        "kind": STREAM,
        "name": name,
        "mode": SUBSET if line.dropped or gone else EXACT,
        **_ledger(line),
        "given_up": gone,
        "warnings": _warnings(name, ways, told),
        "readers": [{"reader": reader, **_ledger(one)} for reader, one in readers.items()],
    }


def _warnings(name: str, ways: Lineage, told: Told) -> list[str]:
    """Rows of a stream that are lost because nothing else that could be left out was enough."""
    said = []
    for reader in ways.readers:
        mine = [one for one in told.reports if one.operator == reader.operator and reader.source == name]
        stale = sum(report.rows.stale[reader.side] for report in mine)
        if stale:
            offered = sum(report.rows.offered[reader.side] for report in mine)
            fresh_us = told.plan.shed.skipping[reader.operator].fresh_us[reader.side]
            older = f"older than {np.datetime64(fresh_us, 'us')}"
            said.append(
                explain(
                    f"{reader.name} let in only the freshest rows of {name!r}",
                    got=f"{stale} of {offered} rows were {older}, and are lost",
                    why="With everything else left out the batch would still have taken too long",
                    do="Allow a longer latency, or give the query more cores",
                )
            )
    return said


def _given_up(reader: Reader, ways: Lineage, told: Told) -> int:
    if reader.operator not in told.plan.shed.skipping:
        return 0
    within, settle_us = ways.operators[reader.operator].within, told.plan.settle_us[reader.operator]
    dead_us = within.dead_before(reader.side, settle_us)
    return given_up(reader.operator, reader.side, told.before, told.plan, dead_us)


def _output(outlet: Outlet, told: Told, lines: Mapping[Reader, LedgerLine], losses: Losses) -> Row:
    mine = [line for reader, line in lines.items() if reader.operator == outlet.source]
    line = added_up(mine) if mine else _straight(outlet, lines, told)
    missing = told.missing.get(outlet.name, ())
    estimated = outlet.source in losses.estimated
    why = {*losses.why.get(outlet.source, ())}
    why |= ({WINDOW_DROP} if missing else set()) | ({SAMPLING} if estimated else set())
    return {
        "kind": OUTPUT,
        "name": outlet.name,
        "mode": ESTIMATED if estimated else SUBSET if why else EXACT,
        **_ledger(line),
        "emitted": _emitted(outlet, line, told),
        "why": sorted(why),
        "missing": [list(run) for run in missing],
        **_debts(outlet.source, told),
    }


def _debts(name: str, told: Told) -> Row:
    """What a join owes, paid and gave up; nothing where nothing is repaired."""
    owed, forgiven = (
        [debt.comparisons for debt in debts if debt.operator == name]
        for debts in (told.after.debts, told.after.forgiven)
    )
    repairs = told.plan.repair.bytes_max is not None and name in told.plan.shed.skipping
    if not repairs and not forgiven:
        return {}
    paid = sum(report.repaired.comparisons for report in told.reports if report.operator == name)
    return {"debt": round(sum(owed)), "paid": paid, "forgiven": round(sum(forgiven))}


def _found(name: str, ways: Lineage, told: Told, losses: Losses) -> Row:
    """How much of the result of an operator, or stream, was found; nothing where nobody can tell."""
    mine = [report for report in told.reports if report.operator == name]
    if name in losses.estimated:
        return {}
    if name not in losses.why:
        pairs = float(sum(report.work.matches for report in mine))
        known = {"estimate": to_plain(Estimate(pairs, pairs))} if name in ways.pairing else {}
        return {"recall": 1.0, "recall_low": 1.0, "recall_high": 1.0, **known}
    if losses.why[name] != {SKIPPED_PAIRS} or name not in ways.pairing:
        return {}
    recall = recall_of(told.plan.shed.skipping[name], [report.probes for report in mine if report.probes])
    if recall is None:
        return {"why": [SKIPPED_PAIRS, NO_SAMPLE]}
    low, high = recall.total.interval
    return {
        "recall": recall.total.recall,
        "recall_low": low,
        "recall_high": high,
        "estimate": to_plain(recall.total),
        "by_lag": _by_lag(recall, ways.operators[name].within),
    }


def _straight(outlet: Outlet, lines: Mapping[Reader, LedgerLine], told: Told) -> LedgerLine:
    """Rows of a stream that go past all operators: nothing is shed on this way."""
    stream, _ = of_stream(outlet.source, lines, told.counted)
    if outlet.takes == "rows":
        taken = stream.processed + stream.dropped
        return LedgerLine(stream.offered, taken, stream.late, stream.rejected)
    rows = stream.late if outlet.takes == "late" else stream.rejected
    return LedgerLine(rows, rows)


def _emitted(outlet: Outlet, line: LedgerLine, told: Told) -> int | None:
    """Rows written; None where only the sink knows."""
    if not outlet.plain:
        return None
    counts = [report.emitted for report in told.reports if report.operator == outlet.source]
    counts += [report.emitted for report in told.matched if report.operator == outlet.source]
    return sum(counts) if counts else line.processed


def _by_lag(recall: Recall, within: Within | Tumbling | Unbounded | Any) -> list[Row]:
    """Per basic window in reach: how far the stored row lies behind the new one (ahead of it: negative)."""
    rows: list[Row] = []
    for side, estimates in enumerate(recall.by_age):
        ages = ages_of(within, side)
        found, true = estimates[:, 0], np.maximum(estimates[:, 0], estimates[:, 1] + estimates[:, 2])
        shares = np.round(np.stack(found_shares(estimates), axis=1), 4)
        for number in np.flatnonzero(true).tolist():
            part, low, high = shares[number].tolist()
            rows.append(
                {
                    "stored": SIDES[side],
                    "lag_us": (number - ages.ahead) * ages.slot_us,
                    "found": float(found[number]),
                    "true": round(float(true[number]), 1),
                    "recall": part,
                    "recall_low": low,
                    "recall_high": high,
                }
            )
    return rows


def _ledger(line: LedgerLine) -> Row:
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
