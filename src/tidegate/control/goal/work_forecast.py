"""Work of a finished batch and of the next one without shedding, and the shed options of the next batch.

A join offers cells of both windows by value if its policy learns values (`control/actuators/selective.py`);
otherwise only a rate, with matches proportional to comparisons. If rows choose by content, matches follow a
learnt power of the rate (`control/actuators/content.py`).

Guarantee: functions of the manifests, the plan and the reports of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.actuators import join_shedding, sifting, window_dropping
from tidegate.control.actuators.content import bend_after
from tidegate.control.actuators.join_policies import JoinShape
from tidegate.control.actuators.join_shedding import (
    OverloadSettings,
    comparisons_of,
    full_work,
    known_of,
    offered_to,
    values_by_age,
)
from tidegate.control.actuators.policy import Work
from tidegate.control.actuators.work_ahead import work_ahead
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.goal_step import KeepSettings, Ran, Step
from tidegate.control.goal.shed_options import (
    ShedOption,
    cells_option,
    even_option,
    rate_option,
    regions_option,
    rows_going,
    sample_option,
    shut_option,
    windows_option,
)
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import LEFT, RIGHT
from tidegate.policies import RandomDrop
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Foreseen:
    """Work of a join in the next batch without shedding, and the value of its parts."""

    effort: Effort
    #: By cell of both windows: matches per comparison, and comparisons; None if no policy learns them.
    values: NDArray[np.float64] | None
    work: NDArray[np.float64]
    #: Stored rows that a new row will probe, per window and age.
    met: Work
    name: str = ""
    #: If rows choose by content, a probe ratio r finds r ** bend of the matches.
    bend: float | None = None
    #: Rows are dropped in front of the join, and not stored.
    drops_rows: bool = False

    def option(self, outputs: Mapping[str, float], behind: Mapping[str, float]) -> ShedOption:
        if self.values is None or self.bend is not None:
            return rate_option(self.name, outputs, self.bend or 1.0, behind, self.drops_rows)
        return cells_option(self.name, outputs, self.values, self.work, behind)


def foreseen(
    settings: OverloadSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    operators: Mapping[str, OperatorTraits],
    growth: float,
) -> dict[str, Foreseen]:
    """By join that may skip work: the next batch without shedding."""
    found = {}
    for name in settings.joins:
        shed = settings.shed_of(name)
        drops_rows = isinstance(shed.policy, RandomDrop)
        shape = JoinShape(operators[name])
        rows = [offered_to(reports, name, side) for side in (LEFT, RIGHT)]
        ahead = work_ahead(shape, before, after, name, growth, reports)
        both = full_work(shed, plan, before, after, reports, shape, name, ahead)
        work = np.concatenate([growth * rows[1 - side] * both[side] for side in (LEFT, RIGHT)])
        known = (known_of(settings, before, "policies") or {}).get(name)
        by_age = values_by_age(known)
        values = None if by_age is None else np.concatenate(by_age)
        mine = [report for report in reports if report.operator == name]
        matches = sum(report.work.matches for report in mine)
        probed = sum(map(comparisons_of, mine))
        outputs = float(values @ work) if values is not None else work.sum() * matches / max(1, probed)
        read = sum(report.state.bytes_read for report in mine)
        effort = Effort(growth * sum(rows), float(work.sum()), outputs, growth * read)
        bend = bend_after(before, plan, reports, name) if name in settings.by_content else None
        found[name] = Foreseen(effort, values, work, both, name, bend, drops_rows)
    return found


class WorkForecast:
    """Work of the next batch without shedding, and its shed options."""

    def __init__(self, step: Step, growth: float) -> None:
        """`growth`: expected rows of the next batch relative to the last."""
        self.settings, self.before, self.ran, self.growth = step.settings, step.before, step.ran, growth
        joins = self.settings.overload
        # The paper's own rule uses measured rates, not a forecast.
        self._joins = (
            foreseen(joins, step.before, step.plan, step.ran.reports, step.after, step.operators, growth)
            if joins is not None and joins.shed.rate == "auto"
            else {}
        )

    def ahead(self, efforts: Mapping[str, Effort], levels: Mapping[str, float]) -> dict[str, Effort]:
        """By operator: its work without shedding."""
        full = {name: _times(effort, self.growth) for name, effort in efforts.items()}
        for drop in self._drops(levels):
            # Downstream windows had fewer rows because windows before them were dropped.
            for name, kept in drop.items():
                if name in full and not self._reads_all(name):
                    full[name] = _times(full[name], 1 / max(kept, self.settings.goal.tuning.level.measurable))
        for name, rows in self._offered_to_windows().items():
            # What it emitted are windows of earlier rows, whatever became of those of this batch.
            full[name] = _times(replace(efforts[name], rows=rows, comparisons=0.0), self.growth)
        for name in self._sampled & full.keys():
            full[name] = replace(full[name], comparisons=full[name].rows)
        for name, entered in self.ran.entered.items():
            passed = efforts[name].comparisons if name in efforts else 0.0
            outputs = efforts[name].outputs * entered / passed if passed else 0.0
            full[name] = _times(Effort(entered, entered, outputs), self.growth)
        return full | {name: one.effort for name, one in self._joins.items()}

    @property
    def works(self) -> dict[str, Work]:
        """By join that may skip work: stored rows that a new row will probe."""
        return {name: one.met for name, one in self._joins.items()}

    def options(self) -> list[ShedOption]:
        """The shed options of all mechanisms."""
        found = [one.option(self._outputs(name), self._behind(name)) for name, one in self._joins.items()]
        sifters = self.settings.sifting
        if sifters is not None and sifters.shed.rate == "auto":
            found += [self._match_option(name) for name in sifters.matches]
        found += [sample_option(name, self._outputs(name)) for name in sorted(self._sampled)]
        drops = self.settings.dropping
        if drops is not None and drops.shed is not None and drops.shed.window == "auto":
            for name, drop in drops.drops.items():
                going = {n: part for n, part in rows_going(drops.network, drop).items() if part > 0}
                made = {drops.network.by_name[output].parents[0] for output in drop.outputs}
                found.append(
                    windows_option(window_dropping.drop_point(name), drop.outputs, drop.max_gap, going, made)
                )
                found += [shut_option(output, self._own(output)) for output in drop.outputs]
        return found

    def _match_option(self, name: str) -> ShedOption:
        known = self.before.control.get(sifting.CONTROL, {}).get("matches", {}).get(name, {})
        outputs, behind = self._outputs(name), self._behind(name)
        regions = known.get("regions")
        sifters = self.settings.sifting
        if regions is None or known.get("frequencies") is None or sifters is None:
            return even_option(name, outputs, behind)
        return regions_option(
            name,
            outputs,
            np.array(regions["qos"]),
            np.array(known["frequencies"]),
            np.array(regions["nonempty"], np.bool_),
            sifters.shed.fairness,
            behind,
        )

    @property
    def _sampled(self) -> frozenset[str]:
        """Options of windows that are estimated from samples."""
        settings = self.settings.estimating
        fixed = settings is None or settings.fixed is not None
        return frozenset() if fixed else self.settings.approximate

    def _drops(self, levels: Mapping[str, float]) -> list[dict[str, float]]:
        """Per drop in force: the part of its rows that each operator received."""
        drops = self.settings.dropping
        if drops is None:
            return []
        return [
            {
                n: 1 - part * levels.get(window_dropping.drop_point(name), 0.0)
                for n, part in rows_going(drops.network, drop).items()
            }
            for name, drop in drops.drops.items()
        ]

    def _offered_to_windows(self) -> dict[str, int]:
        """Rows that arrived at windows over streams, dropped or not."""
        offered: dict[str, int] = {}
        for report in self.ran.reports:
            if self._reads_all(report.operator):
                offered[report.operator] = offered.get(report.operator, 0) + sum(report.rows.offered)
        return offered

    def _reads_all(self, name: str) -> bool:
        """Whether this is a window aggregate whose rows are counted before any is dropped."""
        if name in self.settings.approximate:
            return False
        network = self.settings.network
        node = network.by_name.get(name)
        return isinstance(node, DropWindowNode) and isinstance(network.by_name[node.parent], DropSourceNode)

    def _outputs(self, name: str) -> dict[str, float]:
        network = self.settings.network
        return {output.name: 1.0 for output in network.outputs if name in network.above(output.name)}

    def _behind(self, name: str) -> dict[str, float]:
        network = self.settings.network
        return {
            node.name: 1.0
            for node in network.nodes
            if node.name != name and not isinstance(node, DropOutputNode) and name in network.above(node.name)
        }

    def _own(self, output: str) -> list[str]:
        """Operators that serve this output alone."""
        network = self.settings.network
        left = {node.name for node in network.without(frozenset({output})).nodes}
        return [node.name for node in network.nodes if node.name not in left and node.name != output]


def efforts_of(settings: KeepSettings, ran: Ran) -> dict[str, Effort]:
    """By operator: its effort in the batch."""
    parts: dict[str, list[Effort]] = {}
    for report in ran.reports:
        probed = join_shedding.comparisons_of(report)
        rows = sum(report.rows.offered) - sum(report.rows.dropped) - sum(report.rows.stale)
        # Repaired pairs are emitted, too, and only by joins whose every output row is a match.
        outputs = report.work.matches or (0 if report.repaired.matches else report.emitted)
        done = Effort(rows, probed or report.work.comparisons, outputs, report.state.bytes_read)
        if report.operator in settings.approximate:
            # As in front of a match: every row is read, some are kept.
            done = Effort(sum(report.rows.offered), rows, outputs, report.state.bytes_read)
        parts.setdefault(report.operator, []).append(done)
    for match in ran.matched:
        parts.setdefault(match.operator, []).append(Effort(0.0, match.tried, match.emitted))
    found = {name: Effort.total(some) for name, some in parts.items()}
    for name, rows in ran.entered.items():
        done = found.get(name, Effort())
        found[name] = Effort(rows, done.comparisons, done.outputs)
    return found


def _times(effort: Effort, factor: float) -> Effort:
    return Effort(*(factor * effort.parts).tolist())
