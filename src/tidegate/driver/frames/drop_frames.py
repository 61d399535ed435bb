"""Window drop in Spark: which event times pass each arrow of the flow, under a plan.

    rows ──▶ window1 ──▶ window2 ──▶ output
         ▲           ▲          ▲
         │           │          └ window2 computes the windows that an output keeps, exactly
         │           └ window1 computes the windows that kept windows of window2 need
         └ rows that no kept window needs are dropped in front of the user's steps, and only counted

`control/actuators/window_dropping.py` decides; this module turns decisions into values for tasks and SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidegate.api.nodes import Output
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.receipts.warnings import BatchWarning, dropped_earlier_warnings, shut_warnings
from tidegate.driver.sql_text import data, literal
from tidegate.errors import StateError
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US, END_US
from tidegate.observe.units import iso
from tidegate.window.drop.cohorts import Cohorts
from tidegate.window.drop.gap_table import NO_GAPS, GapTable, gap_table
from tidegate.window.drop.group_drop import COHORTS
from tidegate.window.drop.intervals import Intervals, union
from tidegate.window.drop.lacking import starts_in
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
        self._gaps = {} if settings is None else window_dropping.arrows(settings, plan)

    def along(self, parent: str, operator: str) -> Intervals | None:
        """Times of rows that an operator needs; None: all."""
        gaps = self._gaps.get((parent, operator))
        return None if gaps is None else gaps.others()

    def into(self, parent: str, operator: str, from_us: int) -> GapTable | None:
        """Times of rows that an operator ignores; None if nothing is ever dropped in front of it."""
        gaps = self._whole(parent, operator)
        if gaps is not None and self._settings is not None:
            cohorts = self._settings.network.cohorts_on(parent, operator)
            return gap_table(gaps, from_us, END_US, cohorts=cohorts)
        return NO_GAPS if self._settings is not None and self._settings.reached(operator) else None

    def out_of(self, operator: str) -> Intervals | None:
        """Windows of an operator that are kept behind it, by their start; None: all."""
        if self._settings is None or not self._gaps:
            return None
        network = self._settings.network
        groups = network.groups_of(operator)
        # A child that drops other groups needs some group of every window.
        kept = [
            self.along(operator, child.name) if network.groups_on(operator, child.name) == groups else None
            for child in network.children[operator]
        ]
        whole = [one for one in kept if one is not None]
        return union(whole) if whole and len(whole) == len(kept) else None

    def cohorts_of(self, operator: str) -> Cohorts | None:
        """Where the windows of groups lie among those that are kept; None: all groups lose the same."""
        return None if self._settings is None else self._settings.network.cohorts_of(operator)

    def before(self, operator: str, output: Output) -> GapTable | None:
        """Windows that this output drops and others keep; None if it writes all there are."""
        kept = self.along(operator, output_name(output.name))
        if kept is None:
            return None
        shown = self.out_of(operator)
        if shown is not None and shown.to_json() == kept.to_json():
            return None
        gaps = self._whole(operator, output_name(output.name))
        if gaps is None:
            return None
        return gap_table(gaps, BEGINNING_US // 2, END_US, exact=True, cohorts=self.cohorts_of(operator))

    def _whole(self, parent: str, child: str) -> Intervals | None:
        """The gaps of an arrow; behind a window from start to start, so that they lie on a coarse grid."""
        gaps = self._gaps.get((parent, child))
        spec = None if self._settings is None else self._settings.network.result_spec(parent)
        if gaps is None or spec is None:
            return gaps
        first, beyond = starts_in(spec, gaps)
        return Intervals(spec.start(first), spec.start(beyond))


class Dropping:
    """Window drop as the engine uses it, batch by batch."""

    def __init__(self, settings: DropSettings | None):
        self._settings = settings
        #: The same if no window may be dropped.
        self._keeping = None if settings is None else replace(settings, shed=None)

    def decide(self, manifest: Manifest, keeping: bool = False) -> Metrics:
        """The decisions for the plan after this manifest; `keeping`: no window is dropped but those that
        are."""
        settings = self._keeping if keeping else self._settings
        return {} if settings is None else window_dropping.decide(settings, manifest)

    def passing(self, plan: Plan) -> Passing:
        return Passing(self._settings, plan)

    def metrics(self, plan: Plan, before: Manifest, after: Manifest) -> Metrics:
        """What is dropped, and which windows are missing with this batch."""
        if self._settings is None or (self._settings.shed is None and not plan.shed.dropping):
            return {}
        drops = plan.shed.dropping.get("drops", {}).items()
        outputs = {
            name: " + ".join(map(plain_name, drop.outputs)) for name, drop in self._settings.drops.items()
        }
        shares = {outputs.get(name, name): {"p": one["p"], "shut": bool(one["shut"])} for name, one in drops}
        missing = self.missing(plan, before, after).items()
        runs = {name: [[iso(first), iso(last)] for first, last, _ in some] for name, some in missing}
        return {"drops": shares, "missing": runs}

    def missing(self, plan: Plan, before: Manifest, after: Manifest) -> dict[str, list[tuple[int, int, int]]]:
        """Per output: windows that are missing with this batch, as runs: first and last start, and slide."""
        if self._settings is None:
            return {}
        found = window_dropping.missing(self._settings, plan, before, after)
        return {plain_name(name): runs for name, runs in found.items()}

    def missing_count(self, plan: Plan, before: Manifest, after: Manifest) -> dict[str, int]:
        """Per output: how many they are; by groups, each counts once for every cohort that lacks it."""
        if self._settings is None:
            return {}
        found = window_dropping.missing_count(self._settings, plan, before, after)
        return {plain_name(name): windows for name, windows in found.items()}

    def closed(self, plan: Plan, before: Manifest, after: Manifest) -> dict[str, int]:
        """Per output: windows that closed with this batch, missing or not."""
        if self._settings is None:
            return {}
        found = window_dropping.closed_windows(self._settings, plan, before, after)
        return {plain_name(name): windows for name, windows in found.items()}

    def ratios(self, plan: Plan) -> dict[str, float]:
        """Per output whose windows may be dropped: the drop ratio of the plan, 1 if it is shut off."""
        if self._settings is None or self._settings.shed is None:
            return {}
        found = {}
        for name, drop in self._settings.drops.items():
            planned = plan.shed.dropping.get("drops", {}).get(name, {"p": 0.0, "shut": ()})
            ratios = {one: 1.0 if one in planned["shut"] else float(planned["p"]) for one in drop.outputs}
            found.update({plain_name(output): ratio for output, ratio in ratios.items()})
        return found

    def warnings(self, after: Manifest, observes: bool = False) -> Iterator[BatchWarning]:
        """Outputs that are not computed from the next batch on, or still lack what an earlier run dropped.
        `observes`: nothing is done about the first."""
        if self._settings is None:
            return
        known = after.control.get(window_dropping.CONTROL, {}) if self._settings.shed is not None else {}
        yield from shut_warnings(map(plain_name, known.get("shut", ())), observes)
        lacking = window_dropping.lacking(self._settings, after)
        yield from dropped_earlier_warnings({plain_name(name): until for name, until in lacking.items()})


def refuse_rows_gone(settings: DropSettings | None, manifest: Manifest) -> None:
    """Refuse outputs of single rows that would be wrong, because an earlier run dropped rows in front."""
    lacking = {} if settings is None else window_dropping.lacking(settings, manifest)
    for name, until_us in lacking.items():
        if settings is not None and settings.network.result_spec(name) is None:
            raise StateError(
                f"Rows that output {plain_name(name)!r} needs were dropped by an earlier run",
                code="CHECKPOINT_ROWS_DROPPED",
                got=f"results of {settings.network.shown_by(name).name!r} up to {iso(until_us)} lack rows",
                why="Only windows were read there then, and these were dropped as a whole; single results "
                "would be wrong",
                do="Run the earlier outputs until event time has passed this time, then add the new one",
            )


def in_gap(table: GapTable, time: str = TIME, group: str = "0L") -> str:
    """`GapTable.inside` in SQL. All that changes from batch to batch is data.

    `group`: the code of a row's group, whose last bits are the number of its cohort.
    """
    low, high, grid = (data(one, "bigint", time) for one in (table.low_us, table.high_us, table.grid_us))
    cell = f"cast((least(greatest({time}, {low}), {high}) - {low}) div {grid} as int)"
    if table.by_cohort:
        cohort = f"cast({group} & {COHORTS - 1}L as int)"
        return f"getbit(get({literal(list(table.cells), 'array<bigint>')}, {cell}), {cohort}) = 1"
    return f"get({literal(list(table.cells), 'array<tinyint>')}, {cell}) = 1"
