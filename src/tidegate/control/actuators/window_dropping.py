"""Decides which windows are dropped when batches exceed their time budget.

Paper: window drop, sections 2.3 and 3.6. After every batch the goal of the query
(`control/goal/goal_loop.py`) gives levels. From these this controller takes

    p      the drop ratio of each drop, at most what its longest gap allows
    shut   outputs that are no longer computed, because no p within all bounds suffices

and decides windows of which no row has been seen yet, up to a little beyond the newest row.

    levels ─▶ learn ─▶ manifest b ─▶ decide ─▶ plan b+1: dropped windows, per operator
                                                 └─▶ arrows: which times do not pass between two operators

Guarantee: pure functions of what is in the manifest and of the levels. Decisions are in the plan, and a
decided window is never decided again, so a replay, a late row and every later run see the same ones
(`window/drop/dropped_windows.py`); so does every group, or every group of a cohort where windows are dropped
by groups. While all levels are 0 no further window is dropped. Outputs are shut off only after
`SHUT_AFTER_BATCHES` batches in a row in which no p would have been enough; others that show the same windows
keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidegate.api.goal import Shed
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop import dropped_windows
from tidegate.window.drop.cohorts import as_missing
from tidegate.window.drop.drop_cost import dropped_rows
from tidegate.window.drop.dropped_windows import DecidedWindows, DroppedWindows, closed_before
from tidegate.window.drop.group_drop import COHORTS, GroupDrop
from tidegate.window.drop.intervals import NOTHING, Intervals, between, union
from tidegate.window.drop.kept_arrows import Arrow, kept_for
from tidegate.window.drop.lacking import closed_over, starts_in
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, Network
from tidegate.window.drop.placement import DropPlacement, place
from tidegate.window.drop.window_drop import WindowDrop, share_max
from tidegate.window.spec import WindowSpec

#: Key in the manifest's control state.
CONTROL = "windows"
#: Consecutive batches in which only shutting outputs off would help, before that is done.
SHUT_AFTER_BATCHES = 5
#: Windows are decided this many times the last advance of event time ahead.
AHEAD = 2
#: Part of the rows freed by the longest gap that a shorter gap must free.
FREED_LEAST = 0.9


@dataclass(frozen=True)
class DropSettings:
    """The windows that may be dropped."""

    #: How many are dropped; None: no more, but those that are stay so.
    shed: Shed | None
    #: Streams, operators and outputs; outputs define how many windows may be missing in a row.
    network: Network
    seed: int = 0

    @cached_property
    def drops(self) -> dict[str, DropPlacement]:
        """By name: the outputs that it decides for."""
        return {" + ".join(drop.outputs): drop for drop in place(self.network)}

    @cached_property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Per drop: the streams that feed its outputs."""
        return {
            name: tuple(
                sorted(
                    stream
                    for output in drop.outputs
                    for one in self.network.above(output)
                    if isinstance(node := self.network.by_name[one], DropSourceNode)
                    for stream in node.united or (node.name,)
                )
            )
            for name, drop in self.drops.items()
        }

    def share(self, name: str, known: Mapping[str, Any]) -> float:
        """The share of windows that goes, by the user or the goal, as far as the longest gap allows."""
        assert self.shed is not None, "without a share nothing is dropped"
        fixed = self.shed.window != "auto"
        share = float(self.shed.window) if fixed else known.get("shares", {}).get(name, 0.0)
        return min(share, share_max(self.drops[name].max_gap))

    @cached_property
    def _children(self) -> frozenset[str]:
        return frozenset(point.child for drop in self.drops.values() for point in drop.behind)

    def reached(self, operator: str) -> bool:
        """Whether rows in front of this operator may be dropped by this run."""
        return self.shed is not None and operator in self._children

    def operators(self, drop: DropPlacement) -> frozenset[str]:
        """The operators whose windows it decides."""
        return frozenset(self.network.shown_by(output).name for output in drop.outputs)

    def coins(self, drop: DropPlacement) -> WindowDrop:
        return WindowDrop(drop.slide_us, drop.max_gap, self.seed, windows_per_coin(drop), drop.offset_us)


def windows_per_coin(drop: DropPlacement) -> int:
    """The shortest gap that frees nearly as many rows as the longest: it frees time more evenly.

    A gap of n windows frees the rows that lie in no window outside of it; for tumbling windows that is all of
    them, whatever n is.
    """
    window = drop.points[0].window
    freed = [dropped_rows(replace(window, max_gap=n)) for n in range(1, drop.max_gap + 1)]
    return 1 + next(n for n, share in enumerate(freed) if share >= FREED_LEAST * freed[-1])


def decide(settings: DropSettings, manifest: Manifest) -> Snapshot:
    """For the batch after this manifest: the windows decided so far, and per drop the share p; empty while
    nothing was ever decided.
    """
    network, said = settings.network, manifest.control.get(CONTROL, {})
    known = _known(settings, manifest)
    if settings.shed is None and not known.anything:
        return {}
    known = known.still_open(network, manifest.settled_us)
    windows, shut, drops = dict(known.windows), dict(known.shut), {}
    for name, drop in settings.drops.items() if settings.shed is not None else ():
        off = [output for output in drop.outputs if output in said.get("shut", ())]
        p, ahead_us = settings.share(name, said), AHEAD * said.get("advance_us", {}).get(name, 0)
        decided = _decided(settings, name, manifest, known, p, ahead_us, bool(off))
        if decided is None:
            continue
        since_us, more = decided
        for one in settings.operators(drop):
            before = known.windows[one].dropped if one in known.windows else NOTHING
            windows[one] = replace(more, dropped=union([before, more.dropped]))
        for output in off:
            shut[output] = union([shut.get(output, NOTHING), between(since_us, more.until_us)])
        drops[name] = {"p": p, "shut": off}
    found = replace(known, windows=windows, shut=shut)
    found = replace(found, gaps=_gaps(settings, found))
    return {"drops": drops, **found.to_json(network)} if drops or found.anything else {}


def _known(settings: DropSettings, manifest: Manifest) -> DroppedWindows:
    raw = manifest.control.get(dropped_windows.CONTROL, {})
    return DroppedWindows.from_json(raw, settings.network)


def _decided(
    settings: DropSettings,
    name: str,
    manifest: Manifest,
    known: DroppedWindows,
    p: float,
    ahead_us: int,
    shuts: bool,
) -> tuple[int, DecidedWindows] | None:
    """From when on the next windows of a drop are decided, and how; none that any operator has decided."""
    drop, newest = settings.drops[name], _newest(settings, name, manifest)
    mine = [known.windows[one] for one in settings.operators(drop) if one in known.windows]
    if newest == BEGINNING_US or not (mine or p or shuts):
        return None
    until_us = max((one.until_us for one in mine), default=newest + 1)
    last = [one for one in mine if one.until_us == until_us]
    # Windows written before they were decided are not dropped any more.
    closed_us = min(
        closed_before(settings.network, one, manifest.settled_us) for one in settings.operators(drop)
    )
    if drop.groups is not None:
        # A window is decided when its first rows may come, with the latest p: it holds for all of them.
        up_to_us = newest + (ahead_us or drop.slide_us)
        return _decided_by_groups(settings, drop, last, max(until_us, closed_us), up_to_us, p)
    gap_us = max((one.gap_us for one in last), default=0)
    debt = max((one.drop_debt for one in last), default=0)
    coins = settings.coins(drop)
    state = coins.decide(coins.begin(until_us, gap_us, debt), closed_us - 1, 0.0)
    found = coins.decide(state, newest + ahead_us + drop.slide_us, p)
    return state.until_us, DecidedWindows(found.until_us, found.dropped, found.drop_debt)


def _decided_by_groups(
    settings: DropSettings,
    drop: DropPlacement,
    last: Sequence[DecidedWindows],
    from_us: int,
    up_to_us: int,
    p: float,
) -> tuple[int, DecidedWindows]:
    """The windows of every cohort between two times; `last`: the decisions before them."""
    cohorts, coins = settings.network.cohorts, settings.coins(drop)
    assert cohorts is not None, "the network has windows of groups"
    gaps_us = [cohorts.lengths_before(one.dropped, from_us) for one in last]
    longest_us = np.max([np.zeros(COHORTS, np.int64), *gaps_us], axis=0)
    found = GroupDrop(coins).decide(from_us, longest_us, cohorts.within(up_to_us), p)
    numbers, *runs = found.runs()
    low, high = (one * drop.slide_us + drop.offset_us for one in runs)
    begin_us, until_us = (one * drop.slide_us + drop.offset_us for one in (found.begin, found.end))
    return begin_us, DecidedWindows(until_us, cohorts.joined(numbers, low, high))


def _gaps(settings: DropSettings, found: DroppedWindows) -> dict[Arrow, Intervals]:
    """By arrow between operators: the rows that no kept window needs, and those that are gone already."""
    network, gaps = settings.network, dict(found.gaps)
    for drop in settings.drops.values() if settings.shed is not None else ():
        dropped = {output: found.chosen(network, output) for output in drop.outputs}
        for arrow, kept in kept_for(network, drop, dropped).items():
            gap, cohorts = kept.between(), network.cohorts_on(*arrow)
            mine = as_missing(gap, None, cohorts) if drop.groups is None and gap.low.size else gap
            gaps[arrow] = union([gaps.get(arrow, NOTHING), mine])
    outputs = {output.name for output in network.outputs}
    return {arrow: gap for arrow, gap in closed_over(network, gaps).items() if arrow[1] not in outputs}


def remembered(plan: Plan) -> Snapshot:
    """What the manifest keeps of a plan, whatever the settings are."""
    return {dropped_windows.CONTROL: {k: v for k, v in plan.shed.dropping.items() if k != "drops"}}


def arrows(settings: DropSettings, plan: Plan) -> dict[Arrow, Intervals]:
    """Per arrow with fewer rows under this plan: the times that do not pass."""
    network = settings.network
    return DroppedWindows.from_json(plan.shed.dropping, network).on_arrows(network)


def missing(
    settings: DropSettings, plan: Plan, before: Manifest, after: Manifest
) -> dict[str, list[tuple[int, int, int]]]:
    """Per output: the windows that closed with this batch and were dropped, as runs of starts.

    A run is its first start, its last, and the step between starts. Whether any row fell into them is
    unknown. By groups: the windows that some groups lack.
    """
    found, network = {}, settings.network
    for output, gone in _gone(settings, plan, before, after).items():
        spec, cohorts = network.result_spec(output), network.cohorts_of(output)
        assert spec is not None
        first, beyond = starts_in(spec, gone if cohorts is None else cohorts.any(gone))
        starts, ends = spec.start(first).tolist(), spec.start(beyond - 1).tolist()
        found[output] = [(a, b, spec.slide_us) for a, b in zip(starts, ends, strict=True)]
    return found


def missing_count(settings: DropSettings, plan: Plan, before: Manifest, after: Manifest) -> dict[str, int]:
    """Per output: how many windows are missing; by groups, each counts for every cohort that lacks it."""
    found = {}
    for output, gone in _gone(settings, plan, before, after).items():
        spec = settings.network.result_spec(output)
        assert spec is not None
        first, beyond = starts_in(spec, gone)
        found[output] = int((beyond - first).sum())
    return found


def _gone(settings: DropSettings, plan: Plan, before: Manifest, after: Manifest) -> dict[str, Intervals]:
    """Per output that lacks windows of this batch: the times in which they start."""
    found, network, gaps = {}, settings.network, arrows(settings, plan)
    for output, spec in _windows_shown(settings, gaps).items():
        operator = network.shown_by(output).name
        closed = [closed_before(network, operator, one.settled_us) for one in (before, after)]
        (parent,) = network.by_name[output].parents
        times, cohorts = gaps.get((parent, output), NOTHING), network.cohorts_of(output)
        gone = times.overlap(*closed) if cohorts is None else cohorts.overlap(times, *closed)
        if starts_in(spec, gone)[0].size:
            found[output] = gone
    return found


def closed_windows(settings: DropSettings, plan: Plan, before: Manifest, after: Manifest) -> dict[str, int]:
    """Per output of windows that may be dropped: how many closed with this batch, dropped or not.

    By groups, each counts for every cohort. Absent while time has not begun, because windows before the first
    row are not counted.
    """
    found, network = {}, settings.network
    for output, spec in _windows_shown(settings, arrows(settings, plan)).items():
        operator = network.shown_by(output).name
        if before.settled_us[operator] != BEGINNING_US:
            first, beyond = (
                closed_before(network, operator, manifest.settled_us) for manifest in (before, after)
            )
            parts = 1 if network.cohorts_of(output) is None else COHORTS
            found[output] = parts * ((beyond - first) // spec.slide_us)
    return found


def lacking(settings: DropSettings, manifest: Manifest) -> dict[str, int]:
    """Outputs that lack results although the settings of this run drop none: up to which time."""
    gaps = (
        _known(settings, manifest)
        .still_open(settings.network, manifest.settled_us)
        .on_arrows(settings.network)
    )
    drops = settings.drops.values() if settings.shed is not None else ()
    allowed = {output for drop in drops for output in drop.outputs}
    return {
        child: int((gap if cohorts is None else cohorts.any(gap)).high[-1])
        for (parent, child), gap in gaps.items()
        for cohorts in (settings.network.cohorts_on(parent, child),)
        if isinstance(settings.network.by_name[child], DropOutputNode) and child not in allowed
    }


def _windows_shown(settings: DropSettings, gaps: Mapping[Arrow, Intervals]) -> dict[str, WindowSpec]:
    """Outputs of windows that may be dropped, or that lack some."""
    drops = settings.drops.values() if settings.shed is not None else ()
    names = [*(output for drop in drops for output in drop.outputs), *(child for _, child in gaps)]
    specs = {
        name: settings.network.result_spec(name)
        for name in names
        if isinstance(settings.network.by_name[name], DropOutputNode)
    }
    return {name: spec for name, spec in specs.items() if spec is not None}


def learn(
    settings: DropSettings,
    before: Manifest,
    plan: Plan,
    after: Manifest,
    levels: Mapping[str, float],
) -> Snapshot:
    """What is known after a batch: goes into its manifest.

    `levels`: the drop ratio of each drop (`drop_point`), and 1 for each output to be shut off.
    """
    known = before.control.get(CONTROL, {})
    short, shut, shares = 0, [], {}
    if settings.shed is not None and settings.shed.window == "auto":
        shares = {name: levels[drop_point(name)] for name in settings.drops}
        asked = [output for output in _outputs(settings) if levels.get(output, 0.0) >= 1]
        short = known.get("short", 0) + 1 if asked else 0
        shut = asked if short >= SHUT_AFTER_BATCHES or known.get("shut") else []
    return {
        "short": short,
        "shut": shut,
        "shares": shares,
        "advance_us": {name: _advance(settings, name, before, after, known) for name in settings.drops},
    }


def drop_point(name: str) -> str:
    """The name of a drop among the shed options, distinct from those of the outputs it decides for."""
    return f"windows of {name}"


def _outputs(settings: DropSettings) -> list[str]:
    return [output for drop in settings.drops.values() for output in drop.outputs]


def _newest(settings: DropSettings, name: str, manifest: Manifest) -> int:
    clocks = [
        manifest.clocks[source].seen_us for source in settings.sources[name] if source in manifest.clocks
    ]
    return max(clocks, default=BEGINNING_US)


def _advance(
    settings: DropSettings, name: str, before: Manifest, after: Manifest, known: Mapping[str, Any]
) -> int:
    """How far a batch moved the newest time; a batch without rows keeps the last value."""
    old, new = (_newest(settings, name, manifest) for manifest in (before, after))
    if old == BEGINNING_US or new == old:
        return int(known.get("advance_us", {}).get(name, 0))
    return new - old
