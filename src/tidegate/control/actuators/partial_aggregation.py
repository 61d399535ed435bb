"""Decides where rows of a window aggregate are added up: by Spark before the shuffle, or by tasks behind it.

Adding up first costs a shuffle of partials by key before ours by instance. It pays where many rows make one
partial, and is a waste where every row has a group of its own. The last batch says which: rows that came in,
over partials that were stored. Between the two bounds everything stays as it is, so nothing flaps. Where
partials are as large as the rows that they are made of (lists), rows always go as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport

#: Where the manifest keeps rows per partial of each window, and which of them went by row.
CONTROL = "adding_up"
#: Below the first, rows go as they are; above the second, they are added up before.
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
    return {"ratio": ratio, "by_row": list(plan.by_row)}
