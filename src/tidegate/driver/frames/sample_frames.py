"""Rows of approximate windows, sampled on Spark: the plan says how likely, a hash of the row decides.

    share    π of the row's stratum, looked up by the lowest bits of its group's code: data to compiled code
    u        a number in [0, 1), out of a hash of all columns of the row, its time, the batch and the seed
    kept     where u < π; where π is 1 nothing is hashed

Rows that are left out are told apart right after the scan, and only counted.

Guarantee: a row's fate depends on the row, the batch, the plan and the seed alone, so a replay keeps the same
rows. Rows of a batch that are equal in every column share their fate: where many are, intervals are too
narrow, and the stream should carry a column that tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from tidegate.control.actuators import sampling
from tidegate.control.actuators.sampling import EstimateSettings
from tidegate.control.goal import goal_loop
from tidegate.control.receipts.receipts import ESTIMATED, EXACT
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import quoted
from tidegate.driver.sql_text import data, distinguished, literal
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import BEGINNING_US
from tidegate.window.estimate.strata import STRATA
from tidegate.worker.runtime.layout import SHARE, TIME

#: 2^-53, as in `sift/filter/decision.py`.
_UNIT = "1.1102230246251565E-16D"


def share_sql(shares: Sequence[float], code: str) -> str:
    """How likely a row is kept whose group has this code."""
    # Spark would fold a look-up that no row decides, as where there is one group only: see `sql_text.data`.
    stratum = f"cast({code} & {STRATA - 1} as int) + cast({TIME} < {BEGINNING_US}L as int)"
    return f"get({literal(list(shares), 'array<double>')}, {stratum})"


def left_out_sql(rows: DataFrame, seed: int, batch: int) -> str:
    """Is a row left out that would be kept with probability SHARE?"""
    columns = [(quoted(field.name), field.dataType) for field in visible(rows)]
    hashed = f"xxhash64({seed}L, {data(batch, 'bigint')}, {TIME}, {distinguished(columns)})"
    return f"{SHARE} < 1D AND shiftrightunsigned({hashed}, 11) * {_UNIT} >= {SHARE}"


class Estimating:
    """What the engine does about approximate windows, batch by batch."""

    def __init__(self, settings: EstimateSettings | None):
        self._settings = settings

    def decide(self, manifest: Manifest, operators: dict[str, OperatorTraits]) -> dict[str, Any]:
        """For the plan after this manifest."""
        return {} if self._settings is None else sampling.decide(self._settings, manifest, operators)

    def metrics(
        self, plan: Plan, reports: Sequence[TaskReport], before: Manifest, after: Manifest
    ) -> dict[str, Any]:
        """For people: which part of the rows was kept, how likely, and whether what came out is exact."""
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
        """Windows of which some that came out with this batch may be estimates."""
        if self._settings is None:
            return set()
        modes = sampling.mode(self._settings, plan, before, after)
        return {name for name, mode in modes.items() if mode == ESTIMATED}

    def learn(
        self, before: Manifest, plan: Plan, reports: Sequence[TaskReport], after: Manifest
    ) -> dict[str, Any]:
        """What goes into the manifest of a batch, of which the goal has had its share already."""
        if self._settings is None:
            return {}
        levels = after.control.get(goal_loop.CONTROL, {}).get("levels", {})
        learnt = sampling.learn(self._settings, before, plan, reports, after, levels)
        return {sampling.CONTROL: learnt}


def _kept(name: str, reports: Sequence[TaskReport]) -> float:
    """The part of the rows that came to a window and were not left out."""
    mine = [report for report in reports if report.operator == name]
    offered, dropped = (sum(getattr(one, of)[0] for one in mine) for of in ("offered", "dropped"))
    return round(1 - dropped / offered, 4) if offered else 1.0
