"""The simulated machine with its counts since the last decision, and the inputs of a simulated join.

An input has arriving rows, here the selective join paper's workload, and the rows that the join has stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.control.actuators.policy import AgeCounts, Telemetry
from tidegate.errors import FlowError
from tidegate.join.sets.item_sets import bitsets
from tidegate_lab.simulate.join.counted_conditions import codes
from tidegate_lab.simulate.join.rate_model import PeriodLoad
from tidegate_lab.workloads.selective_join import Steps, Workload, draw


@dataclass(frozen=True)
class Stream:
    """One input: ascending times and join values (a word per line, a row per column)."""

    times_us: NDArray[np.int64]
    values: NDArray[np.uint64]


class StoredRows:
    """Stored rows of one stream: filled from the front, cut back when the last rows were not afforded."""

    def __init__(self, stream: Stream) -> None:
        self.times_us = np.empty_like(stream.times_us)
        self.values = np.empty_like(stream.values)
        self.size = 0
        #: Rows before this one were thrown away.
        self.first = 0
        self._stream = stream

    def append(self, places: NDArray[np.int64]) -> None:
        end = self.size + places.size
        self.times_us[self.size : end] = self._stream.times_us[places]
        self.values[:, self.size : end] = self._stream.values[:, places]
        self.size = end

    def forget_before(self, time_us: float) -> None:
        first = int(np.searchsorted(self.times_us[: self.size], time_us, side="left"))
        self.first = max(self.first, first)


def paper_streams(workload: Workload, rates: tuple[Steps, Steps]) -> tuple[Stream, Stream]:
    """Left and right; sets become bitsets, single values codes."""
    single = workload.size_mean == 1 and workload.size_deviation == 0
    left, right = (
        Stream(
            rows.times_us, codes(rows.items) if single else bitsets(rows.bounds, rows.items, workload.items)
        )
        for rows in draw(workload, rates)
    )
    return left, right


SECOND_US = 1_000_000


@dataclass(frozen=True)
class Machine:
    """What the simulated machine can do and how often it looks up."""

    comparisons_per_second: float = float("inf")
    buffer_us: int = SECOND_US
    tick_us: int = SECOND_US // 10
    period_us: int = 5 * SECOND_US
    seed: int = 7

    def __post_init__(self) -> None:
        if not (
            self.comparisons_per_second > 0 and 0 < self.tick_us <= self.period_us and self.buffer_us >= 0
        ):
            raise FlowError(
                "A simulated machine needs a capacity, a tick, and periods of at least a tick",
                code="LAB_MACHINE_INVALID",
                got=self,
                do="The paper's periods are 5 seconds and its buffers 1 second",
            )


@dataclass
class Period:
    """Counts since the last decision."""

    ages: tuple[int, int]
    offered: int = 0
    fetched: int = 0
    comparisons: int = 0
    outputs: int = 0
    #: [full or chosen][window] → matches and comparisons by age.
    counts: dict[tuple[bool, int], tuple[NDArray[np.int64], NDArray[np.int64]]] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = {
            (full, window): (np.zeros(self.ages[window], np.int64), np.zeros(self.ages[window], np.int64))
            for full in (True, False)
            for window in (0, 1)
        }

    def telemetry(self, machine: Machine, next_rows: float, next_comparisons_full: float) -> Telemetry:
        load = PeriodLoad(
            offered=self.offered,
            fetched=self.fetched,
            seconds=machine.period_us / SECOND_US,
            busy_seconds=self.comparisons / machine.comparisons_per_second,
            comparisons=self.comparisons,
            outputs=self.outputs,
            next_rows=next_rows,
            next_comparisons_full=next_comparisons_full,
            rows=self.fetched,
        )
        full, chosen = (
            (AgeCounts(*self.counts[kind, 0]), AgeCounts(*self.counts[kind, 1])) for kind in (True, False)
        )
        return Telemetry(load, full, chosen)
