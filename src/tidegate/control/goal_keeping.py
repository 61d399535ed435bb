"""One goal for a whole query: what joins, matches and windows leave out in the next batch, decided together.

    reports of b ─┐                        ┌─▶ overload          r of each join
    time of b     ├─▶ one_goal ─▶ levels ──┼─▶ sifting           z of each match
    manifest b ───┘                        ├─▶ estimating        f of each approximate window
                                           ├─▶ window_dropping   p of each drop, outputs that are shut off
                                           └─▶ freshest          rows too old to be let in, where all that
                                                                 is not enough

Here what a batch did becomes the language of `one_goal.py`: the effort of every operator, what the next batch
would do if nothing were left out, and what every mechanism offers. Processor time is believed for joins
alone: most of what windows and matches cost is Spark's work in front of their tasks, so their time is what is
left.

Guarantee: pure; what was learnt lies in the manifest (`CONTROL`), what was decided in the levels that the
controllers take. A query with one mechanism has one offer, and this is then its rate rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tidegate.control import freshest, overload, sifting, window_dropping
from tidegate.control.arrivals import Arrivals
from tidegate.control.cost_model import Effort
from tidegate.control.estimating import EstimateSettings
from tidegate.control.goal_values import BatchSeen, Decided, GoalSettings, warnings
from tidegate.control.intake import Fits, Intake, Taken
from tidegate.control.join_prospects import foreseen
from tidegate.control.load_model import Took, uneven_seconds, wall_seconds
from tidegate.control.offers import (
    Offer,
    even_offer,
    regions_offer,
    rows_going,
    sample_offer,
    shut_offer,
    windows_offer,
)
from tidegate.control.one_goal import OneGoal
from tidegate.control.overload import OverloadSettings
from tidegate.control.planning import Operator
from tidegate.control.sifting import SiftSettings
from tidegate.control.window_dropping import DropSettings
from tidegate.sifting import MatchReport
from tidegate.values import Manifest, Plan, TaskReport
from tidegate.window.network import Network
from tidegate.window.nodes import Join, Output, Source, Window

#: Where the manifest keeps what was learnt.
CONTROL = "goal"
#: And in it: units that sources may give to the next batch, by stream.
LIMITS = "limits"


@dataclass(frozen=True)
class KeepSettings:
    """The goal, and everything that may be left out for it."""

    goal: GoalSettings
    trigger_seconds: float
    #: Streams, operators and outputs, and which way rows go.
    network: Network
    parallelism: int = 1
    overload: OverloadSettings | None = None
    sifting: SiftSettings | None = None
    dropping: DropSettings | None = None
    estimating: EstimateSettings | None = None
    #: Rows come while the query runs: what waits at a source is late.
    live: bool = True

    @property
    def freshest(self) -> tuple[str, ...]:
        """Joins that may be given the freshest of their rows alone, when nothing else is enough."""
        return tuple(sorted(self.goal.freshest or ()))

    @property
    def approximate(self) -> frozenset[str]:
        """Windows that may be estimated from some of their rows."""
        return frozenset() if self.estimating is None else frozenset(self.estimating.windows)


@dataclass(frozen=True)
class Ran:
    """What a batch did, and how long it took."""

    reports: Sequence[TaskReport]
    matched: Sequence[MatchReport]
    #: By match: rows in front of its sifter.
    entered: Mapping[str, int]
    busy_seconds: float
    cold: bool
    #: What the pairs of joins are worth, where the user says so.
    worth: overload.Worth = field(default_factory=dict)
    #: By stream: what the batch took of its source.
    taken: Mapping[str, Taken] = field(default_factory=dict)


def learn(
    settings: KeepSettings,
    before: Manifest,
    plan: Plan,
    ran: Ran,
    after: Manifest,
    operators: Mapping[str, Operator],
) -> dict[str, Any]:
    """What all controllers know after a batch: goes into its manifest."""
    known = before.control.get(CONTROL, {})
    goal = OneGoal.restore(known["one"], settings.goal) if known else OneGoal(settings.goal)
    arrivals = Arrivals.restore(known["arrivals"]) if known else Arrivals()
    intake = Intake.restore(known["intake"]) if known else Intake()
    efforts = _efforts(settings, ran)
    # What came, not what was let in: a batch whose windows are all dropped is no calm one.
    rows = sum(sum(report.offered) for report in ran.reports) + sum(ran.entered.values())
    taken = sum(one.rows for one in ran.taken.values()) or rows
    arrived, waiting = (intake.observe(ran.taken), intake.waiting) if ran.taken else (rows, 0.0)
    expected = arrivals.observe(arrived, plan.now_us, ran.busy_seconds, settings.trigger_seconds, waiting)
    wanted = intake.wanted(expected.rows, settings.live)
    growth = wanted / taken if taken else 0.0
    prospects = _Prospects(settings, before, plan, ran, after, operators, growth)
    joins = _reports_of_joins(settings, ran.reports)
    cores = settings.parallelism
    seen = BatchSeen(
        ran.busy_seconds,
        efforts,
        {name: _took(some, cores) for name, some in joins.items()},
        sum(uneven_seconds([one.cpu_seconds for one in some], cores) for some in joins.values()),
        expected.behind_seconds,
        teaches=bool(rows) and not ran.cold,
        foreseeable=not plan.dropping,
    )
    decided = goal.adapt(seen, prospects.ahead(efforts, known.get("levels", {})), prospects.offers())
    limits = intake.limits(_fits(settings.goal, decided, wanted)) if seen.teaches and wanted else {}
    learnt: dict[str, Any] = {
        CONTROL: {
            "one": goal.snapshot(),
            "arrivals": arrivals.snapshot(),
            "intake": intake.snapshot(),
            LIMITS: limits,
            "levels": dict(decided.levels),
            "told": {**_told(settings, decided), "waiting": waiting, "wanted": wanted, "limits": limits},
        }
    }
    if settings.freshest:
        learnt[freshest.CONTROL] = freshest.learn(
            before, plan, ran.reports, after, operators, settings.freshest, decided.keep_share
        )
    return learnt | _mechanisms(settings, before, plan, ran, after, operators, decided.levels)


def limits(manifest: Manifest) -> dict[str, int]:
    """By stream: units that its source may give to the batch after this manifest."""
    return dict(manifest.control.get(CONTROL, {}).get(LIMITS, {}))


def _mechanisms(
    settings: KeepSettings,
    before: Manifest,
    plan: Plan,
    ran: Ran,
    after: Manifest,
    operators: Mapping[str, Operator],
    levels: Mapping[str, float],
) -> dict[str, Any]:
    """What every mechanism makes of its level."""
    learnt: dict[str, Any] = {}
    busy, cold = ran.busy_seconds, ran.cold
    if settings.overload is not None:
        time = overload.BatchTime(busy, measures_joins=True, cold=cold)
        learnt |= overload.learn(
            settings.overload, before, plan, ran.reports, after, operators, time, ran.worth, levels
        )
    if settings.sifting is not None:
        offered = sifting.Offered(ran.entered, busy, cold)
        learnt[sifting.CONTROL] = sifting.learn(settings.sifting, before, plan, ran.matched, offered, levels)
    if settings.dropping is not None:
        learnt[window_dropping.CONTROL] = window_dropping.learn(
            settings.dropping, before, plan, ran.reports, after, busy, cold, levels
        )
    return learnt


class _Prospects:
    """What the next batch would do in full, and what may be left out of it."""

    def __init__(
        self,
        settings: KeepSettings,
        before: Manifest,
        plan: Plan,
        ran: Ran,
        after: Manifest,
        operators: Mapping[str, Operator],
        growth: float,
    ) -> None:
        self.settings, self.before, self.ran, self.growth = settings, before, ran, growth
        joins = settings.overload
        # The paper's own rule goes by what it feels for, not by what is foreseen.
        self._joins = (
            foreseen(joins, before, plan, ran.reports, after, operators, growth)
            if joins is not None and joins.shed.rate == "model"
            else {}
        )

    def ahead(self, efforts: Mapping[str, Effort], levels: Mapping[str, float]) -> dict[str, Effort]:
        """By operator: what it would do, were nothing left out."""
        full = {name: _times(effort, self.growth) for name, effort in efforts.items()}
        for drop in self._drops(levels):
            # Windows behind others had fewer rows because their inputs were dropped.
            for name, kept in drop.items():
                if name in full and not self._reads_all(name):
                    full[name] = _times(full[name], 1 / max(kept, 0.05))
        for name, rows in self._offered_to_windows().items():
            lost = efforts[name].rows / rows if rows else 1.0
            outputs = efforts[name].outputs / max(lost, 0.05)
            full[name] = _times(Effort(rows, 0.0, outputs, efforts[name].bytes), self.growth)
        for name in self._sampled & full.keys():
            full[name] = replace(full[name], comparisons=full[name].rows)
        for name, entered in self.ran.entered.items():
            passed = efforts[name].comparisons if name in efforts else 0.0
            outputs = efforts[name].outputs * entered / passed if passed else 0.0
            full[name] = _times(Effort(entered, entered, outputs), self.growth)
        return full | {name: one.effort for name, one in self._joins.items()}

    def offers(self) -> list[Offer]:
        """What every mechanism can leave out."""
        found = [one.offer(self._outputs(name), self._behind(name)) for name, one in self._joins.items()]
        sifters = self.settings.sifting
        if sifters is not None and sifters.shed.rate == "model":
            found += [self._match_offer(name) for name in sifters.matches]
        found += [sample_offer(name, self._outputs(name)) for name in sorted(self._sampled)]
        drops = self.settings.dropping
        if drops is not None and drops.shed.window == "auto":
            for name, drop in drops.drops.items():
                going = {n: part for n, part in rows_going(drops.network, drop).items() if part > 0}
                made = {drops.network.by_name[output].parents[0] for output in drop.outputs}
                found.append(
                    windows_offer(window_dropping.drop_point(name), drop.outputs, drop.max_gap, going, made)
                )
                found += [shut_offer(output, self._own(output)) for output in drop.outputs]
        return found

    def _match_offer(self, name: str) -> Offer:
        known = self.before.control.get(sifting.CONTROL, {}).get("matches", {}).get(name, {})
        outputs, behind = self._outputs(name), self._behind(name)
        regions = known.get("regions")
        sifters = self.settings.sifting
        if regions is None or known.get("frequencies") is None or sifters is None:
            return even_offer(name, outputs, behind)
        return regions_offer(
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
        """Windows of which as many rows are kept as there is time for."""
        settings = self.settings.estimating
        fixed = settings is None or settings.fixed is not None
        return frozenset() if fixed else self.settings.approximate

    def _drops(self, levels: Mapping[str, float]) -> list[dict[str, float]]:
        """Per drop in force: the part of its rows that each operator was left."""
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
        """Rows that came to windows of streams, dropped or not."""
        offered: dict[str, int] = {}
        for report in self.ran.reports:
            if self._reads_all(report.operator):
                offered[report.operator] = offered.get(report.operator, 0) + sum(report.offered)
        return offered

    def _reads_all(self, name: str) -> bool:
        """A window aggregate whose rows are counted before any goes."""
        if name in self.settings.approximate:
            return False
        network = self.settings.network
        node = network.by_name.get(name)
        return isinstance(node, Window) and isinstance(network.by_name[node.parent], Source)

    def _outputs(self, name: str) -> dict[str, float]:
        network = self.settings.network
        return {output.name: 1.0 for output in network.outputs if name in network.above(output.name)}

    def _behind(self, name: str) -> dict[str, float]:
        network = self.settings.network
        return {
            node.name: 1.0
            for node in network.nodes
            if node.name != name and not isinstance(node, Output) and name in network.above(node.name)
        }

    def _own(self, output: str) -> list[str]:
        """Operators that work for this output alone."""
        network = self.settings.network
        left = {node.name for node in network.without(frozenset({output})).nodes}
        return [node.name for node in network.nodes if node.name not in left and node.name != output]


def _efforts(settings: KeepSettings, ran: Ran) -> dict[str, Effort]:
    """By operator: what it did."""
    parts: dict[str, list[Effort]] = {}
    for report in ran.reports:
        looked = overload.comparisons_of(report)
        rows = sum(report.offered) - sum(report.dropped) - sum(report.stale)
        # What is paid comes out, too, and only of joins whose every row is a match.
        outputs = report.matches or (0 if report.paid.matches else report.emitted)
        done = Effort(rows, looked or report.comparisons, outputs, report.bytes_read)
        if report.operator in settings.approximate:
            # As in front of a match: every row is looked at, some are kept.
            done = Effort(sum(report.offered), rows, outputs, report.bytes_read)
        parts.setdefault(report.operator, []).append(done)
    for match in ran.matched:
        parts.setdefault(match.operator, []).append(Effort(0.0, match.tried, match.emitted))
    found = {name: Effort.total(some) for name, some in parts.items()}
    for name, rows in ran.entered.items():
        done = found.get(name, Effort())
        found[name] = Effort(rows, done.comparisons, done.outputs)
    return found


def _reports_of_joins(settings: KeepSettings, reports: Sequence[TaskReport]) -> dict[str, list[TaskReport]]:
    """What the instances of every join say."""
    found: dict[str, list[TaskReport]] = {}
    for report in reports:
        if isinstance(settings.network.by_name.get(report.operator), Join):
            found.setdefault(report.operator, []).append(report)
    return found


def _took(instances: Sequence[TaskReport], cores: int) -> Took:
    """The time of a join, and the part of it that went to pairs."""
    cpu_seconds = [one.cpu_seconds for one in instances]
    looking = sum(one.looking_seconds for one in instances) / max(sum(cpu_seconds), 1e-9)
    return Took.of(wall_seconds(cpu_seconds, cores), looking)


def _fits(goal: GoalSettings, decided: Decided, rows: float) -> Fits:
    """Rows that a batch has time for, from what so many are expected to take."""
    # Where overhead takes nearly all the time, batches are longer: smaller ones would get through even less.
    room = max((1 - decided.headroom / 2) * goal.batch_seconds - decided.fixed, decided.fixed / 2)
    full, planned, deepest = (
        rows * room / max(seconds - decided.fixed, 1e-6)
        for seconds in (decided.full, decided.expected, decided.deepest)
    )
    return Fits(full, planned, deepest)


def _times(effort: Effort, factor: float) -> Effort:
    return Effort(*(factor * effort.parts).tolist())


def _told(settings: KeepSettings, decided: Decided) -> dict[str, Any]:
    """For telemetry: what is expected, what is lost, and what cannot be kept."""
    return {**decided.told(), "warnings": warnings(settings.goal, decided)}
