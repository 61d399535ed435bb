"""Metrics of shedding after a batch: rows that sifters dropped, and debts of joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.control.actuators.sifting import CONTROL
from tidegate.control.outcome import out_of_reach
from tidegate.model.debts import Debt
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.sift.filter.sifter import Sifter


def sift_metrics(
    plan: Plan, reports: Sequence[MatchReport], offered: Mapping[str, int], after: Manifest
) -> Metrics:
    """By match with a sifter: offered, passed and dropped rows, and the sifter of the next batch."""
    learnt = after.control.get(CONTROL, {}).get("matches", {})
    metrics = {}
    for name, raw in plan.shed.sifters.items():
        mine = [report for report in reports if report.operator == name]
        received = sum(report.received for report in mine)
        metrics[name] = {
            **_sifter(Sifter.from_json(raw), mine),
            "offered": offered.get(name, received),
            "received": received,
            "dropped": offered.get(name, received) - received,
            "sampled": sum(report.sampled for report in mine),
            "matched": sum(report.matched for report in mine),
            "pairs": sum(report.emitted for report in mine),
        }
        if name in learnt:
            following = learnt[name]
            metrics[name]["next"] = {
                "version": following["sifter"]["version"],
                "z": following["sifter"]["z"],
                "why": following["why"],
                "expected_quality": following["quality"],
            }
    return metrics


def _sifter(sifter: Sifter, reports: Sequence[MatchReport]) -> Metrics:
    kept = np.zeros(sifter.regions.count, np.int64)
    for report in reports:
        # A sifter that was made for other queries is not applied and counts nothing by region.
        kept += np.array(report.kept, np.int64) if report.kept else 0
    return {
        "version": sifter.version,
        "z": sifter.z,
        "sample_share": sifter.sample_share,
        "thresholds": sifter.thresholds.tolist(),
        "kept": kept.tolist(),
    }


def debt_metrics(
    plan: Plan, after: Manifest, reports: Sequence[TaskReport], operators: Mapping[str, OperatorTraits]
) -> Metrics:
    """`bytes` are stored beyond their window for repair alone. Comparisons and matches are estimates."""
    is_dead = out_of_reach(plan, operators)
    return {
        "count": len(after.debts),
        "comparisons": round(sum(debt.comparisons for debt in after.debts)),
        "matches": round(sum(debt.matches for debt in after.debts)),
        "oldest_batch": min((debt.batch for debt in after.debts), default=None),
        "bytes": sum(piece.data.length for piece in after.pieces if is_dead(piece)),
        "repaired": {
            "comparisons": sum(report.repaired.comparisons for report in reports),
            "matches": sum(report.repaired.matches for report in reports),
            "cpu_seconds": sum(report.repaired.cpu_seconds for report in reports),
        },
        "written_off": [one_debt(debt) for debt in after.written_off],
    }


def one_debt(debt: Debt) -> Metrics:
    return {
        "operator": debt.operator,
        "batch": debt.batch,
        "comparisons": round(debt.comparisons),
        "matches": round(debt.matches, 1),
    }
