"""What people are told about owed work after a batch: how much there is, what was paid, what was given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.control.outcome import out_of_reach
from tidegate.model.debts import Debt
from tidegate.model.graph import Operator
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport


def debts_told(
    plan: Plan, after: Manifest, reports: Sequence[TaskReport], operators: Mapping[str, Operator]
) -> dict[str, Any]:
    """`bytes`: what is stored beyond its window, for debts alone. Comparisons and matches are estimates."""
    is_dead = out_of_reach(plan, operators)
    return {
        "count": len(after.debts),
        "comparisons": round(sum(debt.comparisons for debt in after.debts)),
        "matches": round(sum(debt.matches for debt in after.debts)),
        "oldest_batch": min((debt.batch for debt in after.debts), default=None),
        "bytes": sum(piece.data.length for piece in after.pieces if is_dead(piece)),
        "paid": {
            "comparisons": sum(report.paid.comparisons for report in reports),
            "matches": sum(report.paid.matches for report in reports),
            "cpu_seconds": sum(report.paid.cpu_seconds for report in reports),
        },
        "forgiven": [debt_told(debt) for debt in after.forgiven],
    }


def debt_told(debt: Debt) -> dict[str, Any]:
    """One debt in a line."""
    return {
        "operator": debt.operator,
        "batch": debt.batch,
        "comparisons": round(debt.comparisons),
        "matches": round(debt.matches, 1),
    }
