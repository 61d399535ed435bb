"""Samples the rows of approximate windows in Spark, by a hash of the row.

    share    π of the row's stratum, looked up by the lowest bits of its group's code: data to compiled code
    u        a number in [0, 1) from a hash of all columns of the row, its time, the batch and the seed
    kept     if u < π; with π = 1 nothing is hashed

Rows that are not kept are marked right after the scan, and only counted.

Guarantee: the decision depends only on the row, the batch, the plan and the seed, so a replay keeps the same
rows. Limit: rows of a batch that are equal in every column are kept or dropped together. With many of them
intervals are too narrow, and the stream needs a column that distinguishes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from tidegate.control.actuators import sampling
from tidegate.control.actuators.sampling import EstimateSettings
from tidegate.control.levels import levels_of
from tidegate.control.receipts.receipts import ESTIMATED, EXACT
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.sql_text import literal, lot
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import BEGINNING_US
from tidegate.window.estimate.strata import STRATA
from tidegate.worker.runtime.layout import SHARE, TIME


def share_sql(shares: Sequence[float], code: str) -> str:
    """The probability that a row of the group with this code is kept."""
    # Spark would fold a lookup that does not depend on the row, as with one group: see `sql_text.data`.
    stratum = f"cast({code} & {STRATA - 1} as int) + cast({TIME} < {BEGINNING_US}L as int)"
    return f"get({literal(list(shares), 'array<double>')}, {stratum})"


def left_out_sql(rows: DataFrame, seed: int, batch: int) -> str:
    """Whether a row that is kept with probability SHARE is dropped."""
    return f"{SHARE} < 1D AND {lot(seed, batch, visible(rows))} >= {SHARE} * {2.0**53!r}D"


class Estimating:
    """Sampling as the engine uses it, batch by batch."""

    def __init__(self, settings: EstimateSettings | None):
        self._settings = settings

    def decide(
        self, manifest: Manifest, operators: dict[str, OperatorTraits], keeping: bool = False
    ) -> Metrics:
        """The decisions for the plan after this manifest; `keeping`: all rows are kept."""
        if self._settings is None:
            return {}
        settings = replace(self._settings, fixed=1.0) if keeping else self._settings
        return sampling.decide(settings, manifest, operators)

    def metrics(
        self, plan: Plan, reports: Sequence[TaskReport], before: Manifest, after: Manifest
    ) -> Metrics:
        """The share of rows that was kept, the probabilities, and whether results are exact."""
        estimated = self.estimated(plan, before, after)
        return {
            name: {
                "mode": ESTIMATED if name in estimated else EXACT,
                "kept": _kept(name, reports),
                "share_min": min(planned["shares"]),
                "share_max": max(planned["shares"]),
            }
            for name, planned in plan.shed.estimating.items()
        }

    def estimated(self, plan: Plan, before: Manifest, after: Manifest) -> set[str]:
        """Window aggregates whose results of this batch may be estimates."""
        if self._settings is None:
            return set()
        modes = sampling.mode(self._settings, plan, before, after)
        return {name for name, mode in modes.items() if mode == ESTIMATED}

    def learn(self, before: Manifest, plan: Plan, reports: Sequence[TaskReport], after: Manifest) -> Metrics:
        """What sampling learns from a batch, for its manifest; the goal has learnt before."""
        if self._settings is None:
            return {}
        levels = levels_of(after)
        learnt = sampling.learn(self._settings, before, plan, reports, after, levels)
        return {sampling.CONTROL: learnt}


def _kept(name: str, reports: Sequence[TaskReport]) -> float:
    """The share of the rows of a window that was kept."""
    mine = [report for report in reports if report.operator == name]
    offered, dropped = (sum(getattr(one.rows, of)[0] for one in mine) for of in ("offered", "dropped"))
    return round(1 - dropped / offered, 4) if offered else 1.0
