"""The telemetry of a batch: one detailed, plain dictionary, kept in the checkpoint and by the query handle.

It is internal: its names follow the engine and change with it. `progress.py` makes the public progress of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.control.actuators.join_shedding import probed_pairs
from tidegate.model.codec import to_plain
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import index_of
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, Observed, TaskReport
from tidegate.observe.units import iso, watermark_text

Telemetry = Metrics
#: The most keys per instance in the telemetry.
KEYS_REPORTED = 10


def telemetry_of(
    batch: int,
    after: Manifest,
    reports: Sequence[TaskReport],
    matched: Sequence[MatchReport],
    streams: Mapping[str, Sequence[str | None]],
    seen: Mapping[str, Observed],
    late_elsewhere: Mapping[str, int],
) -> Telemetry:
    """The telemetry of a batch; durations are added when it is over.

    `late_elsewhere`: late rows of streams that enter no join.
    """
    totals = index_of(after.pieces).totals().values()
    offered, late, rejected = _per_stream(after, reports, streams, seen)
    late.update(late_elsewhere)
    emitted: Counter[str] = Counter()
    for name, rows in [(r.operator, r.emitted) for r in reports] + [(r.operator, r.emitted) for r in matched]:
        emitted[name] += rows
    return {
        "batch": batch,
        "input_rows": sum(offered.values()),
        "offered": offered,
        "late": late,
        "rejected": rejected,
        "emitted": dict(emitted),
        "state_rows": sum(total.rows for total in totals),
        "state_bytes": sum(total.size_bytes for total in totals),
        "pieces": len(after.pieces),
        "watermarks": {name: watermark_text(clock.watermark_us) for name, clock in after.clocks.items()},
        "operators": [_operator(report) for report in reports],
        "matches": [_match(report) for report in matched],
    }


def shed_of(plan: Plan, reports: Sequence[TaskReport]) -> Metrics:
    """Per join that may skip pairs: what the plan skips, and what was skipped."""
    return {
        name: {
            "fraction": skipping.fraction,
            "fractions": list(skipping.fractions),
            "orders": [list(order) for order in skipping.orders],
            "content": skipping.content,
            "shares": [list(shares) for shares in skipping.shares],
            "keep_share": skipping.keep_share,
            "explore_share": skipping.explore_share,
            "dropped": [sum(r.rows.dropped[side] for r in reports if r.operator == name) for side in (0, 1)],
            "stale": [sum(r.rows.stale[side] for r in reports if r.operator == name) for side in (0, 1)],
            "fresh_from": [iso(fresh_us) for fresh_us in skipping.fresh_us],
            "windows": [_window(reports, name, window) for window in (0, 1)],
        }
        for name, skipping in plan.shed.skipping.items()
    }


def _window(reports: Sequence[TaskReport], name: str, window: int) -> Metrics:
    """Pairs of one window: candidates, probed and skipped; the probe ratio is probed / candidates."""
    probes = [report.probes[window] for report in reports if report.operator == name and report.probes]
    candidates, probed = sum(sum(one.candidates) for one in probes), sum(probed_pairs(one) for one in probes)
    return {
        "in_reach": candidates,
        "looked_at": probed,
        "skipped": max(0, candidates - probed),
        "fraction": min(1.0, probed / candidates) if candidates else None,
    }


def _per_stream(
    after: Manifest,
    reports: Sequence[TaskReport],
    streams: Mapping[str, Sequence[str | None]],
    seen: Mapping[str, Observed],
) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Rows offered, late and rejected. A stream that feeds several joins is counted at the first."""
    offered, late, rejected = (dict.fromkeys(after.clocks, 0) for _ in range(3))
    counted: dict[str, tuple[str, int]] = {}
    for report in reports:
        for number, stream in enumerate(streams[report.operator]):
            if stream is None or counted.setdefault(stream, (report.operator, number)) != (
                report.operator,
                number,
            ):
                continue
            late[stream] += report.rows.late[number]
            if stream not in seen:
                offered[stream] += report.rows.offered[number]
                rejected[stream] += report.rows.rejected[number]
    for stream, one in seen.items():
        offered[stream], rejected[stream] = one.offered, one.rejected
    return offered, late, rejected


def _operator(report: TaskReport) -> Metrics:
    # The keys that made most of the work are enough for people; balancing has seen them all.
    most = sorted(report.keys, key=lambda key: -key.comparisons)[:KEYS_REPORTED]
    rows, seconds, state = report.rows, report.seconds, report.state
    return {
        "operator": report.operator,
        "instance": report.instance,
        "offered": list(rows.offered),
        "late": list(rows.late),
        "rejected": list(rows.rejected),
        "keyless": list(rows.keyless),
        "dropped": list(rows.dropped),
        "stale": list(rows.stale),
        **to_plain(report.work),
        "emitted": report.emitted,
        "cpu_seconds": seconds.cpu,
        "looking_seconds": seconds.probing,
        "recut_seconds": seconds.recut,
        "bytes_read": state.bytes_read,
        "bytes_written": state.bytes_written,
        "staged": report.staged,
        "partitions": to_plain(report.partitions),
        "keys": to_plain(tuple(most)),
        "repaired": to_plain(report.repaired),
    }


def _match(report: MatchReport) -> Metrics:
    shown: Metrics = to_plain(replace(report, sample=None))
    for name in ("sample", "seen_us", "kept"):
        del shown[name]
    return shown
