"""Window drop in Spark: which event times pass each arrow of the flow, under a plan.

    rows ──▶ window1 ──▶ window2 ──▶ output
         ▲           ▲          ▲
         │           │          └ window2 computes the windows that an output keeps, exactly
         │           └ window1 computes the windows that kept windows of window2 need
         └ rows that no kept window needs are dropped in front of the user's steps, and only counted

`control/actuators/window_dropping.py` decides; this module turns decisions into values for tasks and SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.api.nodes import Output
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.driver.sql_text import data, literal
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US, END_US
from tidegate.observe.units import iso
from tidegate.window.drop.gap_table import NO_GAPS, GapTable, gap_table
from tidegate.window.drop.intervals import Intervals, union
from tidegate.window.drop.kept_arrows import Arrow
from tidegate.worker.runtime.layout import TIME

#: Outputs may have the names of streams or operators.
_OUTPUT = "output "


def output_name(name: str) -> str:
    """The name of an output in the window drop network."""
    return _OUTPUT + name


def plain_name(name: str) -> str:
    """The user's name of an output."""
    return name.removeprefix(_OUTPUT)


class Passing:
    """Which times pass along the arrows of a flow, under one plan."""

    def __init__(self, settings: DropSettings | None, plan: Plan):
        self._settings = settings
        self._kept: Mapping[Arrow, Intervals] = (
            window_dropping.arrows(settings, plan) if settings is not None and plan.shed.dropping else {}
        )

    def along(self, parent: str, operator: str) -> Intervals | None:
        """Times of rows that an operator needs; None: all."""
        return self._kept.get((parent, operator))

    def into(self, parent: str, operator: str, from_us: int) -> GapTable | None:
        """Times of rows that an operator ignores; None if nothing is ever dropped in front of it."""
        if self._settings is None or not self._settings.reached(operator):
            return None
        kept = self.along(parent, operator)
        return NO_GAPS if kept is None else gap_table(kept.between(), from_us, END_US)

    def out_of(self, operator: str) -> Intervals | None:
        """Windows of an operator that are kept behind it, by their start; None: all."""
        if self._settings is None or not self._kept:
            return None
        children = self._settings.network.children[operator]
        kept = [self._kept.get((operator, child.name)) for child in children]
        whole = [one for one in kept if one is not None]
        return union(whole) if whole and len(whole) == len(kept) else None

    def before(self, operator: str, output: Output) -> GapTable | None:
        """Windows that this output drops and others keep; None if it writes all there are."""
        kept = self._kept.get((operator, output_name(output.name)))
        if kept is None:
            return None
        shown = self.out_of(operator)
        if shown is not None and shown.to_json() == kept.to_json():
            return None
        return gap_table(kept.between(), BEGINNING_US // 2, END_US, exact=True)


class Dropping:
    """Window drop as the engine uses it, batch by batch."""

    def __init__(self, settings: DropSettings | None):
        self._settings = settings

    def decide(self, manifest: Manifest) -> Metrics:
        """The decisions for the plan after this manifest."""
        return {} if self._settings is None else window_dropping.decide(self._settings, manifest)

    def passing(self, plan: Plan) -> Passing:
        return Passing(self._settings, plan)

    def metrics(self, plan: Plan, before: Manifest, after: Manifest) -> Metrics:
        """What is dropped, and which windows are missing with this batch."""
        if self._settings is None:
            return {}
        shares = {name: {"p": one["p"], "shut": one["shut"]} for name, one in plan.shed.dropping.items()}
        missing = self.missing(plan, before, after).items()
        runs = {name: [[iso(first), iso(last)] for first, last, _ in some] for name, some in missing}
        return {"drops": shares, "missing": runs}

    def missing(self, plan: Plan, before: Manifest, after: Manifest) -> dict[str, list[tuple[int, int, int]]]:
        """Per output: windows that are missing with this batch, as runs: first and last start, and slide."""
        if self._settings is None:
            return {}
        found = window_dropping.missing(self._settings, plan, before, after)
        return {plain_name(name): runs for name, runs in found.items()}

    def closed(self, before: Manifest, after: Manifest) -> dict[str, int]:
        """Per output: windows that closed with this batch, missing or not."""
        if self._settings is None:
            return {}
        found = window_dropping.closed_windows(self._settings, before, after)
        return {plain_name(name): windows for name, windows in found.items()}

    def ratios(self, plan: Plan) -> dict[str, float]:
        """Per output whose windows may be dropped: the drop ratio of the plan, 1 if it is shut off."""
        if self._settings is None:
            return {}
        found = {}
        for name, drop in self._settings.drops.items():
            planned = plan.shed.dropping.get(name, {"p": 0.0, "shut": False})
            ratio = 1.0 if planned["shut"] else float(planned["p"])
            found.update({plain_name(output): ratio for output in drop.outputs})
        return found

    def shut(self, after: Manifest) -> list[str]:
        """Outputs that are not computed from the next batch on."""
        return [plain_name(name) for name in after.control.get(window_dropping.CONTROL, {}).get("shut", ())]


def in_gap(table: GapTable, time: str = TIME) -> str:
    """`GapTable.inside` in SQL. All that changes from batch to batch is data."""
    low, high, grid = (data(one, "bigint", time) for one in (table.low_us, table.high_us, table.grid_us))
    cell = f"cast((least(greatest({time}, {low}), {high}) - {low}) div {grid} as int)"
    return f"get({literal(list(table.cells), 'array<tinyint>')}, {cell}) = 1"
