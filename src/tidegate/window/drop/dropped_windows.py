"""What was decided about the windows of every operator, and where rows are missing because of it.

The one home of these decisions, in the plan and in the manifest (`CONTROL`). They are kept by operator and by
arrow between operators, so they hold until their windows close, whatever the next run is: with another goal
or none, another `max_gap`, outputs that were renamed, added or removed.

    windows   by operator: windows are decided up to a time, and those that start in some intervals dropped
    shut      by output that was shut off: more windows that it does not write
    gaps      by arrow between two operators: times of rows that were dropped, or will be

`windows` are decisions; `gaps` are facts. An output never writes a window that lacks rows because of them
(`window/drop/lacking.py`), also if it was added since.

Guarantee: a value that JSON keeps; only what no open window needs any more is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.model.json_values import Snapshot
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.cohorts import Cohorts, as_missing, from_json, to_json
from tidegate.window.drop.intervals import NOTHING, Intervals, union
from tidegate.window.drop.kept_arrows import Arrow
from tidegate.window.drop.lacking import closed_over, reach_us
from tidegate.window.drop.network import DropJoinNode, DropOutputNode, Network, time_window
from tidegate.window.lifetime import Lifetime

#: Key in the manifest's control state.
CONTROL = "dropped"


@dataclass(frozen=True)
class DecidedWindows:
    """The windows of one operator, by their start; of each cohort at its place (`cohorts.py`)."""

    #: Windows that start before this time are decided.
    until_us: int
    dropped: Intervals = NOTHING
    #: `DropState.drop_debt` after the last decision.
    drop_debt: int = 0

    @property
    def gap_us(self) -> int:
        """The time before the first undecided window in which none is kept."""
        low, high = self.dropped.low, self.dropped.high
        return self.until_us - int(low[-1]) if low.size and high[-1] >= self.until_us else 0


@dataclass(frozen=True)
class DroppedWindows:
    """See the module docstring."""

    windows: Mapping[str, DecidedWindows] = field(default_factory=dict)
    shut: Mapping[str, Intervals] = field(default_factory=dict)
    gaps: Mapping[Arrow, Intervals] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Whether anything was decided about windows that are open."""
        return bool(self.windows or self.shut or self.gaps)

    def chosen(self, network: Network, output: str) -> Intervals:
        """Windows that an output does not write because it was decided so; others may lack rows."""
        node, shut = network.by_name[output], self.shut.get(output, NOTHING)
        mine = [as_missing(shut, None, network.cohorts_of(output)) if shut.low.size else shut]
        decided = self.windows.get(network.shown_by(output).name)
        if decided is not None and isinstance(node, DropOutputNode) and node.max_gap is not None:
            mine.append(decided.dropped)
        return union(mine)

    def on_arrows(self, network: Network) -> dict[Arrow, Intervals]:
        """By arrow on which some are missing: the times of rows that do not pass."""
        if not self.anything:
            return {}
        outputs = {(one.parent, one.name): self.chosen(network, one.name) for one in network.outputs}
        return closed_over(network, {**self.gaps, **outputs})

    def still_open(self, network: Network, settled_us: Mapping[str, int]) -> DroppedWindows:
        """Without what no open window needs any more."""
        windows: dict[str, DecidedWindows] = {}
        shut: dict[str, Intervals] = {}
        for name, one in self.windows.items():
            if name in settled_us and name in network.by_name:
                closed_us = closed_before(network, name, settled_us)
                # The last run counts for the gap, while the next window may still be dropped.
                ends = one.until_us >= closed_us
                since_us = min(closed_us, one.until_us - 1) if ends else closed_us
                left = _since(one.dropped, since_us, network.cohorts_of(name))
                if ends or left.low.size:
                    windows[name] = DecidedWindows(one.until_us, left, one.drop_debt)
        for output, starts in self.shut.items():
            if output in network.by_name:
                left = starts.since(closed_before(network, network.shown_by(output).name, settled_us))
                shut |= {output: left} if left.low.size else {}
        return DroppedWindows(windows, shut, self._open_gaps(network, settled_us))

    def _open_gaps(self, network: Network, settled_us: Mapping[str, int]) -> dict[Arrow, Intervals]:
        found = {}
        for (parent, child), times in self.gaps.items():
            if child in network.by_name and parent in network.by_name[child].parents:
                needed_us = _needed_from(network, parent, child, settled_us)
                left = _since(times, needed_us, network.cohorts_on(parent, child))
                found.update({(parent, child): left} if left.low.size else {})
        return found

    def to_json(self, network: Network) -> Snapshot:
        return {
            "windows": {
                name: {
                    "until_us": one.until_us,
                    "debt": one.drop_debt,
                    "dropped": to_json(one.dropped, network.cohorts_of(name)),
                }
                for name, one in self.windows.items()
            },
            "shut": {name: one.to_json() for name, one in self.shut.items()},
            "gaps": self._gaps_by_parent(network),
        }

    def _gaps_by_parent(self, network: Network) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (parent, child), one in self.gaps.items():
            found.setdefault(parent, {})[child] = to_json(one, network.cohorts_on(parent, child))
        return found

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], network: Network) -> DroppedWindows:
        """What a plan or a manifest says about a network, which may drop by other groups than it did."""
        decided = {
            name: DecidedWindows(
                one["until_us"], from_json(one["dropped"], network.cohorts_of(name)), one["debt"]
            )
            for name, one in raw.get("windows", {}).items()
            if name in network.by_name
        }
        shut = {name: Intervals.from_json(one) for name, one in raw.get("shut", {}).items()}
        gaps = {
            (parent, child): from_json(one, network.cohorts_on(parent, child))
            for parent, children in raw.get("gaps", {}).items()
            for child, one in children.items()
            if parent in network.by_name and child in network.by_name
        }
        return cls(decided, shut, gaps)


def _since(times: Intervals, time_us: int, cohorts: Cohorts | None) -> Intervals:
    return times.since(time_us) if cohorts is None else cohorts.since(times, time_us)


def closed_before(network: Network, operator: str, settled_us: Mapping[str, int]) -> int:
    """Windows of an operator that start before this are closed; far in the past before time has begun."""
    spec = time_window(network.by_name[operator])
    assert spec is not None, "only windows of time are dropped"
    return spec.start(Lifetime(spec).closed(max(BEGINNING_US // 2, settled_us[operator])))


def _needed_from(network: Network, parent: str, child: str, settled_us: Mapping[str, int]) -> int:
    """A row of this arrow below this time has no influence on a result that is still to come."""
    node = network.by_name[child]
    if time_window(node) is not None:
        return closed_before(network, child, settled_us)
    if isinstance(node, DropJoinNode):
        return max(BEGINNING_US // 2, settled_us[child]) - 2 * reach_us(node)
    return closed_before(network, parent, settled_us) if network.result_spec(parent) else BEGINNING_US
