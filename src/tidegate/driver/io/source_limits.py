"""What the sources of a running query give to a batch, whatever its goal is at the time.

    a goal that sheds       `read_limits.py`: what the batch has time for
    no goal                 `default_limits.py`: what the tasks have memory for
    a goal that observes    as without a goal; what waits is counted as under a goal

Both look at the sources when the query starts, before either has written a limit; a change of the goal takes
back the limits of the one and writes those of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from tidegate.control import batch_size
from tidegate.control.goal import goal_loop
from tidegate.control.goal.backpressure import TakenRows
from tidegate.control.goal.goal_step import KeepSettings
from tidegate.driver.io.default_limits import DefaultLimits
from tidegate.driver.io.read_limits import ReadLimits
from tidegate.model.manifest import Manifest
from tidegate.model.times import BEGINNING_US


class SourceLimits:
    """The limits of one started streaming query; made inside `before_the_first_batch`."""

    def __init__(self, query: Any, spark: SparkSession, streams: Sequence[str]) -> None:
        """`streams`: the stream of each leaf of the query's input. Sources are not limited yet."""
        self._by_time = ReadLimits(query, spark, streams)
        self._by_memory = DefaultLimits(query, spark, streams)
        self._goal: KeepSettings | None = None
        #: Whether time limits the sources, or memory; None: nothing does yet.
        self._timed: bool | None = None

    def follow(self, goal: KeepSettings | None, manifest: Manifest) -> None:
        """Limit the sources as this goal asks, from the batch on that Spark plans next."""
        before, self._goal = self._timed, goal
        self._timed = goal is not None and not goal.observes
        if self._timed is before:
            return
        if before is not None:
            (self._by_time if before else self._by_memory).withdraw()
        if self._timed:
            self._by_time.begin(goal_loop.limits(manifest))
        else:
            self._by_memory.begin(batch_size.factor(manifest.control))

    @property
    def by_memory(self) -> DefaultLimits | None:
        """The limits in force, if they go by memory."""
        return self._by_memory if self._timed is False else None

    def taken(self, offered: Mapping[str, int], after: Manifest) -> dict[str, TakenRows]:
        """By stream: what the batch took of its source; empty without a goal, which alone asks for it."""
        if self._goal is None:
            return {}
        newest = {name: clock.seen_us for name, clock in after.clocks.items()}
        return {
            name: self._by_time.taken(name, rows, None if newest[name] == BEGINNING_US else newest[name])
            for name, rows in offered.items()
        }

    def set(self, manifest: Manifest) -> None:
        """Set what the next batch may take, as was learnt from the last one."""
        if self._timed:
            self._by_time.set(goal_loop.limits(manifest))
        else:
            self._by_memory.set(batch_size.factor(manifest.control))
