"""Decides where rows of a window are aggregated: by Spark before the shuffle, or by tasks after it.

Partial aggregation adds a shuffle of partials by key before ours by instance. It pays if many rows make one
partial, and not if every row has its own group. The last batch gives the ratio: rows in over partials stored.
Between the two bounds nothing changes, which prevents oscillation. If partials are as large as their rows
(lists), rows are never pre-aggregated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport

#: Key in the manifest's control state: rows per partial of each window, and which windows went by row.
CONTROL = "adding_up"
#: Below the first, rows are shuffled as they are; above the second, partial aggregation is used.
FEW, MANY = 2.5, 4.0


def by_row(manifest: Manifest, windows: Collection[str], always: Collection[str] = ()) -> tuple[str, ...]:
    """Of these windows, those whose rows are shuffled as they are in the next batch."""
    known = manifest.control.get(CONTROL, {"ratio": {}, "by_row": []})
    ratio, before = known["ratio"], known["by_row"]
    return tuple(
        name
        for name in sorted(windows)
        if name in always or ratio.get(name, MANY) < (MANY if name in before else FEW)
    )


def learn(before: Manifest, plan: Plan, reports: Sequence[TaskReport], windows: Collection[str]) -> Snapshot:
    """Rows per partial of each window, as of its last batch that had any."""
    ratio = dict(before.control.get(CONTROL, {}).get("ratio", {}))
    for name in windows:
        mine = [report for report in reports if report.operator == name]
        stored = sum(report.work.stored for report in mine)
        if stored:
            rows = sum(
                r.rows.offered[0] - r.rows.late[0] - r.rows.rejected[0] - r.rows.dropped[0] for r in mine
            )
            ratio[name] = rows / stored
    return {"ratio": ratio, "by_row": list(plan.shuffles.by_row)}
