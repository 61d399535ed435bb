"""Decides which windows are dropped when batches exceed their time budget.

Paper: window drop, sections 2.3 and 3.6. After every batch the goal of the query
(`control/goal/goal_loop.py`) gives levels. From these this controller takes

    p      the drop ratio of each drop, at most what its longest gap allows
    shut   outputs that are no longer computed, because no p within all bounds suffices

and decides windows of which no row has been seen yet, up to a little beyond the newest row.

    levels ─▶ learn ─▶ manifest b ─▶ decide ─▶ plan b+1: runs of dropped windows, per drop
                                                 └─▶ arrows: which times pass between two operators

Guarantee: pure functions of what is in the manifest and of the levels. Decisions are in the plan, and a
decided window is never decided again, so a replay, a late row and every group see the same ones. While
all levels are 0 no further window is dropped. Outputs are shut off only after `SHUT_AFTER_BATCHES` batches in
a row in which no p would have been enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tidegate.api.goal import Shed
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.drop_cost import dropped_rows
from tidegate.window.drop.intervals import Intervals
from tidegate.window.drop.kept_arrows import Arrow, kept_on_arrows
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, Network, time_window
from tidegate.window.drop.placement import DropPlacement, place
from tidegate.window.drop.window_drop import DropState, WindowDrop, share_max
from tidegate.window.lifetime import Lifetime
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
    """The windows that may be dropped, and the time budget."""

    shed: Shed
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

    @cached_property
    def _children(self) -> frozenset[str]:
        return frozenset(point.child for drop in self.drops.values() for point in drop.behind)

    def reached(self, operator: str) -> bool:
        """Whether rows in front of this operator may ever be dropped."""
        return operator in self._children

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
    """Per drop, for the batch after this manifest: what was decided, and the share p it was decided with."""
    known = manifest.control.get(CONTROL, {})
    decided = {}
    for name, drop in settings.drops.items():
        last = known.get("drops", {}).get(name)
        p = known.get("shares", {}).get(name, 0.0)
        shut = any(output in known.get("shut", ()) for output in drop.outputs)
        newest = _newest(settings, name, manifest)
        if newest == BEGINNING_US or (last is None and not p and not shut):
            continue
        coins, closed_us = settings.coins(drop), _closed_us(settings, drop, manifest)
        state = DropState.from_json(last["state"]) if last else coins.begin(newest + 1)
        # Windows written before they were decided are not dropped any more.
        state = coins.decide(state, closed_us - 1, 0.0)
        ahead = newest + AHEAD * known.get("advance_us", {}).get(name, 0) + drop.slide_us
        state = coins.shut(state, ahead) if shut else coins.decide(state, ahead, p)
        decided[name] = {"p": p, "shut": shut, "state": state.forget(closed_us).to_json()}
    return decided


def arrows(settings: DropSettings, plan: Plan) -> dict[Arrow, Intervals]:
    """Per arrow with fewer rows under this plan: the times that pass."""
    states = {name: DropState.from_json(raw["state"]) for name, raw in plan.shed.dropping.items()}
    dropped = {settings.drops[name]: s.decisions for name, s in states.items() if s.decisions.dropped}
    return kept_on_arrows(settings.network, dropped)


def missing(
    settings: DropSettings, plan: Plan, before: Manifest, after: Manifest
) -> dict[str, list[tuple[int, int, int]]]:
    """Per output: the windows that closed with this batch and were dropped, as runs of starts.

    A run is its first start, its last, and the step between starts. Whether any row fell into them is
    unknown.
    """
    found = {}
    for (parent, child), kept in arrows(settings, plan).items():
        spec = _result_spec(settings.network, child)
        if spec is None:
            continue
        closed = (spec.start(_first_open(spec, parent, manifest)) for manifest in (before, after))
        gaps = kept.between().overlap(*closed)
        first, beyond = spec.starting(gaps.low, gaps.high)
        some = first < beyond
        starts, ends = spec.start(first[some]), spec.start(beyond[some] - 1)
        if starts.size:
            found[child] = [
                (a, b, spec.slide_us) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
            ]
    return found


def closed_windows(settings: DropSettings, before: Manifest, after: Manifest) -> dict[str, int]:
    """Per output of windows that may be dropped: how many closed with this batch, dropped or not.

    Absent while time has not begun, because windows before the first row are not counted.
    """
    found = {}
    for output in _outputs(settings):
        spec, (operator,) = _result_spec(settings.network, output), settings.network.by_name[output].parents
        if spec is not None and before.settled_us[operator] != BEGINNING_US:
            found[output] = _first_open(spec, operator, after) - _first_open(spec, operator, before)
    return found


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
    short, shut = 0, []
    if settings.shed.window == "auto":
        shares = {
            name: min(levels[drop_point(name)], share_max(drop.max_gap))
            for name, drop in settings.drops.items()
        }
        asked = [output for output in _outputs(settings) if levels.get(output, 0.0) >= 1]
        short = known.get("short", 0) + 1 if asked else 0
        shut = asked if short >= SHUT_AFTER_BATCHES or known.get("shut") else []
    else:
        shares = {name: _fixed(settings.shed.window, drop) for name, drop in settings.drops.items()}
    return {
        "short": short,
        "shut": shut,
        "shares": shares,
        "drops": dict(plan.shed.dropping),
        "advance_us": {name: _advance(settings, name, before, after, known) for name in settings.drops},
    }


def drop_point(name: str) -> str:
    """The name of a drop among the shed options, distinct from those of the outputs it decides for."""
    return f"windows of {name}"


def _outputs(settings: DropSettings) -> list[str]:
    return [output for drop in settings.drops.values() for output in drop.outputs]


def _fixed(share: str | float, drop: DropPlacement) -> float:
    """The drop ratio that the user gave, limited by the longest gap."""
    return min(float(share), share_max(drop.max_gap))


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


def _closed_us(settings: DropSettings, drop: DropPlacement, manifest: Manifest) -> int:
    """Windows of these outputs that start before this time are written or never will be."""
    closed = []
    for output in drop.outputs:
        spec, (operator,) = _result_spec(settings.network, output), settings.network.by_name[output].parents
        assert spec is not None, "outputs without windows have no drop"
        closed.append(spec.start(_first_open(spec, operator, manifest)))
    return min(closed)


def _first_open(spec: WindowSpec, operator: str, manifest: Manifest) -> int:
    """The first window of an operator that is not closed; far in the past before time has begun."""
    return Lifetime(spec).closed(max(BEGINNING_US // 2, manifest.settled_us[operator]))


def _result_spec(network: Network, output: str) -> WindowSpec | None:
    """The windows whose results an output shows."""
    node = network.by_name[output]
    return time_window(network.by_name[node.parent]) if isinstance(node, DropOutputNode) else None
