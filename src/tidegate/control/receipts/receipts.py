"""The receipt of a batch: for every stream and every output, exactly what was lost.

    plan, manifests ─┐
    reports of tasks ├─▶ receipt: one plain value, a JSON line in the checkpoint (`state/receipt_log.py`)
    observations     ┘

A stream has its ledger (`ledger.py`): offered = processed + shed by reason + late + rejected. An output has
the ledger of its operator (over all its inputs), the rows written where known, what may be missing and why
(`completeness.py`), for joins that skipped work the estimated recall with its 95 % interval, also by lag
(`recall.py`), and for windows the missing ones. `model/receipts.py` documents the names. Modes:

    EXACT       the rows that an engine with unlimited time would have written, from accepted rows
    SUBSET      some of these rows, all of them correct; of windows: some that would close now are missing
    ESTIMATED   values are estimates, of aggregates over a sample of the rows, with intervals where valid
                ones are known; groups of which no row was kept are missing

A join with repair finds skipped pairs later (`control/repair/debts.py`). Its output stays a SUBSET in the
batch that skipped, with the recall of what came in time; the receipts of later batches count the repairs.
`debt_pairs` is the debt after a batch, `repaired_pairs` and `written_off_pairs` are its repairs and
write-offs. If no debt is left in the end and none was written off, no skipped pair is missing from all
batches together.

An output is `complete` if it is exact and no row of its inputs, however far upstream, was late or rejected
in this batch. `loss_ratio` is measured, never planned: of a stream the share of rows that were shed; of an
output 1 - recall, or the share of the windows closed by this batch that were dropped; None where neither is
known.

Guarantee: a pure function; but for the measured latency it is the same for a replayed batch. Every ledger
balances (`rows_unexplained` is 0), or the receipt says by how much it does not. The recall is that of pairs,
before any filter after the join; it is omitted where no sound estimate exists, and `loss_reasons` gives the
reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.control.actuators.join_shedding import kept_by_age, kept_rows
from tidegate.control.receipts.completeness import EARLIER, SKIPPED_PAIRS, Losses, losses_of
from tidegate.control.receipts.ledger import (
    RANDOM_DROP,
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
from tidegate.control.receipts.recall import Estimate, Recall, found_shares, recall_of, recall_of_drop
from tidegate.control.receipts.warnings import BatchWarning
from tidegate.errors import explain
from tidegate.join.selective.reach import ages_of
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.codec import to_plain
from tidegate.model.graph import Lineage, Outlet, Reader
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.progress import STALE_ROWS_DROPPED, LatencyProgress
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.model.times import LEFT, RIGHT, SIDES, utc_text
from tidegate.window.lifetime import Lifetime, RowsLifetime

EXACT, SUBSET, ESTIMATED = "EXACT", "SUBSET", "ESTIMATED"
STREAM, OUTPUT = "stream", "output"
#: Work was skipped and no row explored: policies that never explore, or a batch of a few rows. (Random drop
#: needs none: its shares are known.)
NO_SAMPLE = "no_sample"

#: Runs of missing windows: start of the first and the last one, and how far apart they begin; microseconds.
MissingWindows = Sequence[tuple[int, int, int]]
Row = Snapshot


@dataclass(frozen=True)
class BatchOutcome:
    """Everything a batch reported."""

    plan: Plan
    before: Manifest
    after: Manifest
    reports: Sequence[TaskReport]
    matched: Sequence[MatchReport] = ()
    counted: Counted = field(default_factory=Counted)
    #: By output: windows that would have been written in this batch and were dropped.
    missing: Mapping[str, MissingWindows] = field(default_factory=dict)
    #: Approximate windows whose results are estimates in this batch.
    estimated: Collection[str] = ()
    #: By output of windows: how many closed with this batch, dropped or not; absent where it is unknown.
    closed: Mapping[str, int] = field(default_factory=dict)
    #: From the availability of rows to the publishing of their results.
    latency: LatencyProgress | None = None
    #: About outputs: windows that they lack.
    warnings: Sequence[BatchWarning] = ()
    #: By output that lacks windows: how many. Dropped by groups, each counts for every cohort that lacks it.
    missing_count: Mapping[str, int] = field(default_factory=dict)


def receipt_of(ways: Lineage, outcome: BatchOutcome) -> tuple[Row, dict[str, int]]:
    """The receipt of a batch, and what its manifest must remember (under `completeness.CONTROL`)."""
    lines = lines_of(ways.readers, outcome.reports, outcome.matched, outcome.counted)
    losses = losses_of(
        outcome.plan, outcome.before, outcome.after, outcome.reports, lines, ways.operators, outcome.estimated
    )
    found = {name: _found(name, ways, outcome, losses) for name in {outlet.source for outlet in ways.outputs}}
    streams = [_stream(name, ways, outcome, lines) for name in ways.streams]
    outputs = [_output(outlet, outcome, lines, losses, found[outlet.source]) for outlet in ways.outputs]
    receipt = {
        "batch_id": outcome.plan.batch,
        "started_at": utc_text(outcome.plan.now_us),
        "latency": None if outcome.latency is None else to_plain(outcome.latency),
        "rows": [*streams, *outputs],
    }
    return receipt, dict(losses.gaps_us)


def _stream(name: str, ways: Lineage, outcome: BatchOutcome, lines: Mapping[Reader, LedgerLine]) -> Row:
    line, readers = of_stream(name, lines, outcome.counted)
    gone = sum(_given_up(reader, ways, outcome) for reader in ways.readers if reader.source == name)
    mode = SUBSET if line.dropped or gone else EXACT
    return {
        "kind": STREAM,
        "name": name,
        "mode": mode,
        "complete": mode == EXACT and not line.late + line.rejected,
        **_ledger(line),
        "rows_evicted": gone,
        "loss_ratio": line.dropped / line.offered if line.offered else 0.0,
        "warnings": _warnings(name, ways, outcome),
        "readers": [{"reader": reader, **_ledger(one)} for reader, one in readers.items()],
    }


def _warnings(name: str, ways: Lineage, outcome: BatchOutcome) -> list[Row]:
    """Warnings about stale rows of a stream, dropped because the other shed options did not suffice."""
    found = []
    for reader in ways.readers:
        mine = [one for one in outcome.reports if one.operator == reader.operator and reader.source == name]
        stale = sum(report.rows.stale[reader.side] for report in mine)
        if stale:
            offered = sum(report.rows.offered[reader.side] for report in mine)
            fresh_us = outcome.plan.shed.skipping[reader.operator].fresh_us[reader.side]
            message = explain(
                f"{reader.name} dropped the oldest rows of {name!r}",
                got=f"{stale} of {offered} rows were older than {np.datetime64(fresh_us, 'us')}",
                why="With all other shedding the batch would still have exceeded its time budget",
                do="Give a longer latency, or run the query on more cores",
            )
            found.append({"code": STALE_ROWS_DROPPED, "message": message})
    return found


def _given_up(reader: Reader, ways: Lineage, outcome: BatchOutcome) -> int:
    if reader.operator not in outcome.plan.shed.skipping:
        return 0
    within, settle_us = ways.operators[reader.operator].within, outcome.plan.settle_us[reader.operator]
    dead_us = within.dead_before(reader.side, settle_us)
    return given_up(reader.operator, reader.side, outcome.before, outcome.plan, dead_us)


def _output(
    outlet: Outlet, outcome: BatchOutcome, lines: Mapping[Reader, LedgerLine], losses: Losses, found: Row
) -> Row:
    mine = [line for reader, line in lines.items() if reader.operator == outlet.source]
    line = added_up(mine) if mine else _straight(outlet, lines, outcome)
    missing = outcome.missing.get(outlet.name, ())
    estimated = outlet.source in losses.estimated
    why = {*losses.why.get(outlet.source, ())}
    why |= ({WINDOW_DROP} if missing else set()) | ({SAMPLING} if estimated else set())
    mode = ESTIMATED if estimated else SUBSET if why else EXACT
    refused = _refused(outlet.source, lines) if mine else line.late + line.rejected
    row = {
        "kind": OUTPUT,
        "name": outlet.name,
        "mode": mode,
        "complete": mode == EXACT and not refused,
        **_ledger(line),
        "rows_written": _written(outlet, line, outcome),
        "loss_reasons": sorted(why),
        "missing_windows": [list(run) for run in missing],
        "windows_missing": outcome.missing_count.get(outlet.name, 0),
        "windows_closed": outcome.closed.get(outlet.name),
        **_about(outlet, outcome),
        **_debts(outlet.source, outcome),
        # The number of rows of missing windows is unknown.
        **({} if missing else found),
    }
    return {**row, "loss_ratio": loss_ratio([row])}


def _about(outlet: Outlet, outcome: BatchOutcome) -> Row:
    """The warnings about an output, where there are some."""
    mine = [one for one in outcome.warnings if one.subject == outlet.name]
    return {"warnings": [{"code": one.code, "message": one.message} for one in mine]} if mine else {}


def _refused(operator: str, lines: Mapping[Reader, LedgerLine]) -> int:
    """Late and rejected rows of an operator and of all operators upstream of it."""
    mine = {reader: line for reader, line in lines.items() if reader.operator == operator}
    return sum(line.late + line.rejected for line in mine.values()) + sum(
        _refused(source, lines) for source in {reader.source for reader in mine}
    )


def loss_ratio(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The measured loss of an output over some batches; None where it is not known."""
    if all(row["mode"] == EXACT for row in rows):
        return 0.0
    if len(rows) == 1 and rows[0].get("recall") is not None:
        return 1.0 - float(rows[0]["recall"])
    if any(set(row["loss_reasons"]) - {WINDOW_DROP} for row in rows):
        return None
    known = [row for row in rows if row.get("windows_closed")]
    closed = sum(row["windows_closed"] for row in known)
    return sum(row["windows_missing"] for row in known) / closed if closed else None


def _debts(name: str, outcome: BatchOutcome) -> Row:
    """Debt, repairs and write-offs of a join; empty where repair is off."""
    debt, written_off = (
        [debt.comparisons for debt in debts if debt.operator == name]
        for debts in (outcome.after.debts, outcome.after.written_off)
    )
    has_debts = any(debt.operator == name for debt in outcome.before.debts)
    repairs = outcome.plan.repair.bytes_max is not None and (has_debts or name in outcome.plan.shed.skipping)
    if not repairs and not written_off:
        return {}
    repaired = sum(report.repaired.comparisons for report in outcome.reports if report.operator == name)
    return {
        "debt_pairs": round(sum(debt)),
        "repaired_pairs": repaired,
        "written_off_pairs": round(sum(written_off)),
    }


def _found(name: str, ways: Lineage, outcome: BatchOutcome, losses: Losses) -> Row:
    """The share of the results of an operator or stream that was found; empty where it is unknown."""
    mine = [report for report in outcome.reports if report.operator == name]
    if name in losses.estimated:
        return {}
    if name not in losses.why:
        pairs = float(sum(report.work.matches for report in mine))
        known = {"estimate": to_plain(Estimate(pairs, pairs))} if name in ways.pairing else {}
        return {"recall": 1.0, "recall_low": 1.0, "recall_high": 1.0, **known}
    if name not in ways.pairing:
        return {}
    if losses.why[name] <= {RANDOM_DROP, EARLIER}:
        return _found_of_kept(name, ways, outcome, mine)
    if losses.why[name] != {SKIPPED_PAIRS}:
        return {}
    recall = recall_of(outcome.plan.shed.skipping[name], [report.probes for report in mine if report.probes])
    if recall is None:
        return {"loss_reasons": [NO_SAMPLE, SKIPPED_PAIRS]}
    by_lag = _by_lag(recall, ways.operators[name].within)
    return {**_estimated(recall.total), "recall_by_lag": by_lag}


def _estimated(estimate: Estimate) -> Row:
    """The recall of a join as an estimate with its interval."""
    low, high = estimate.interval
    known = {"recall": estimate.recall, "recall_low": low, "recall_high": high}
    return {**known, "estimate": to_plain(estimate)}


def _found_of_kept(name: str, ways: Lineage, outcome: BatchOutcome, reports: Sequence[TaskReport]) -> Row:
    """The same where rows were dropped at random, in this batch or in earlier ones."""
    kept, within = kept_rows(outcome.after, name), ways.operators[name].within
    if isinstance(within, Lifetime | RowsLifetime) or not any(one.at_random for one in kept):
        return {}
    if any(one.lost is not None for one in kept):
        return {}
    sides = ages_of(within, LEFT), ages_of(within, RIGHT)
    offered, dropped = (
        [sum(getattr(one.rows, what)[side] for one in reports) for side in (LEFT, RIGHT)]
        for what in ("offered", "dropped")
    )
    left, right = (1 - lost / max(1, rows) for rows, lost in zip(offered, dropped, strict=True))
    partitions: dict[int, float] = {}
    for report in reports:
        for part in report.partitions:
            partitions[part.partition] = partitions.get(part.partition, 0.0) + part.matches
    probes = [report.probes for report in reports if report.probes]
    stored = kept_by_age(kept, outcome.after, name, sides)
    estimate = recall_of_drop((left, right), stored, probes, list(partitions.values()))
    return {} if estimate is None else _estimated(estimate)


def _straight(outlet: Outlet, lines: Mapping[Reader, LedgerLine], outcome: BatchOutcome) -> LedgerLine:
    """Rows of a stream that bypass all operators: nothing is shed there."""
    stream, _ = of_stream(outlet.source, lines, outcome.counted)
    if outlet.takes == "rows":
        taken = stream.processed + stream.dropped
        return LedgerLine(stream.offered, taken, stream.late, stream.rejected)
    rows = stream.late if outlet.takes == "late" else stream.rejected
    return LedgerLine(rows, rows)


def _written(outlet: Outlet, line: LedgerLine, outcome: BatchOutcome) -> int | None:
    """Rows written; None if only the sink knows."""
    if not outlet.plain:
        return None
    counts = [report.emitted for report in outcome.reports if report.operator == outlet.source]
    counts += [report.emitted for report in outcome.matched if report.operator == outlet.source]
    return sum(counts) if counts else line.processed - line.filtered


def _by_lag(recall: Recall, within: Within | Tumbling | Unbounded | Any) -> list[Row]:
    """Per basic window: how far the stored row lies behind the new one (ahead of it: negative)."""
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
        "rows_offered": line.offered,
        "rows_processed": line.processed,
        "rows_shed": line.dropped,
        "rows_late": line.late,
        "rows_rejected": line.rejected,
        "rows_filtered": line.filtered,
        "rows_unexplained": line.unexplained,
        "shed_reasons": {reason: line.shed.get(reason, 0) for reason in REASONS},
    }
