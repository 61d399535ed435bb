"""The public metrics of each operator after a batch: `model/progress.OperatorProgress`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.receipts.ledger import RANDOM_DROP
from tidegate.model.graph import Lineage
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import Total, index_of
from tidegate.model.progress import OperatorProgress
from tidegate.model.reports import MatchReport, TaskReport


@dataclass(frozen=True)
class OperatorFacts:
    """What other metrics of the same batch say about operators."""

    #: By join that may skip pairs, as in `telemetry.shed_of`; and of balancing, as in `balance_metrics.py`.
    shed: Metrics
    balance: Metrics
    #: By match with a sifter, as in `shed_metrics.sift_metrics`; by approximate window.
    sift: Metrics
    estimates: Metrics
    #: By output whose windows may be dropped: the drop ratio.
    drops: Mapping[str, float]


def operator_metrics(
    kinds: Mapping[str, str],
    lineage: Lineage,
    after: Manifest,
    reports: Sequence[TaskReport],
    matched: Sequence[MatchReport],
    facts: OperatorFacts,
) -> dict[str, OperatorProgress]:
    """By operator; `kinds`: all operators in the order of the flow."""
    state = index_of(after.pieces).totals()
    return {
        name: _metrics(
            name,
            kind,
            lineage,
            state.get(name, Total()),
            [report for report in reports if report.operator == name],
            [report for report in matched if report.operator == name],
            facts,
        )
        for name, kind in kinds.items()
    }


def _metrics(
    name: str,
    kind: str,
    lineage: Lineage,
    state: Total,
    reports: Sequence[TaskReport],
    matched: Sequence[MatchReport],
    facts: OperatorFacts,
) -> OperatorProgress:
    joins = any(reader.joins for reader in lineage.readers if reader.operator == name)
    candidates, probed = _pairs(name, reports, facts) if joins else (None, None)
    outputs = [outlet.name for outlet in lineage.outputs if outlet.source == name]
    balance = facts.balance.get(name, {})
    return OperatorProgress(
        kind=kind,
        rows_emitted=sum(one.emitted for one in reports) + sum(one.emitted for one in matched),
        pairs_candidate=candidates,
        pairs_probed=probed,
        probe_ratio=min(1.0, probed / candidates) if probed is not None and candidates else None,
        admit_ratio=_admitted(name, lineage, reports, facts),
        drop_ratio=max((facts.drops[one] for one in outputs if one in facts.drops), default=None),
        sample_ratio=facts.estimates.get(name, {}).get("kept"),
        state_rows=state.rows,
        state_bytes=state.size_bytes,
        instances=balance.get("instances") or len({one.instance for one in reports}) or len(matched),
        imbalance_ratio=_imbalance(reports, matched),
        rows_moved=(balance.get("moved") or {}).get("rows", 0),
        keys_split=balance.get("split_keys", 0),
    )


def _pairs(name: str, reports: Sequence[TaskReport], facts: OperatorFacts) -> tuple[int, int]:
    """Candidate pairs of a join, and those it probed; a join that may skip none probes all."""
    if name in facts.shed:
        windows = facts.shed[name]["windows"]
        return sum(one["in_reach"] for one in windows), sum(one["looked_at"] for one in windows)
    compared = sum(report.work.comparisons for report in reports)
    return compared, compared


def _admitted(
    name: str, lineage: Lineage, reports: Sequence[TaskReport], facts: OperatorFacts
) -> float | None:
    """The share of rows that were let in; None without rows, or where only windows or samples are dropped."""
    if name in facts.sift:
        offered, received = facts.sift[name]["offered"], facts.sift[name]["received"]
        return received / offered if offered else None
    sides = [one.side for one in lineage.readers if one.operator == name and one.reason == RANDOM_DROP]
    offered = sum(report.rows.offered[side] for report in reports for side in sides)
    lost = sum(report.rows.dropped[side] + report.rows.stale[side] for report in reports for side in sides)
    return 1 - lost / offered if offered else None


def _imbalance(reports: Sequence[TaskReport], matched: Sequence[MatchReport]) -> float | None:
    """Processor time of the heaviest instance over the mean."""
    seconds = np.zeros(max((report.instance for report in reports), default=-1) + 1 or len(matched))
    for report in reports:
        seconds[report.instance] += report.seconds.cpu
    if not reports:
        seconds[:] = [report.cpu_seconds for report in matched]
    return float(seconds.max() / seconds.mean()) if seconds.any() else None
