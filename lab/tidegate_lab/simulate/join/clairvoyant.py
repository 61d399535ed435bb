"""The choice of cells with full knowledge: the reference for every policy that has to learn.

First all rows are joined, and every comparison is counted by window and age. The clairvoyant policy then
chooses cells by these true values, without exploration or other cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.control.actuators.policy import AgeCounts, Decision, ProbeOrder, Telemetry, newest_first
from tidegate.join.selective.cells import choose_cells
from tidegate_lab.simulate.join.basic_windows import Windows, cell_lengths
from tidegate_lab.simulate.join.counted_conditions import Condition
from tidegate_lab.simulate.join.machine import Machine, Stream
from tidegate_lab.simulate.join.stream_join import StreamJoin

Counts = tuple[AgeCounts, AgeCounts]


class _Everything:
    """Skips nothing and remembers what every period found."""

    def __init__(self, windows: Windows) -> None:
        self.decision = Decision(newest_first(windows, (1.0, 1.0)))
        self.periods: list[Counts] = []

    def adapt(self, telemetry: Telemetry) -> Decision:
        self.periods.append(telemetry.chosen)
        return self.decision

    def snapshot(self) -> dict[str, Any]:
        return {}


def true_counts(
    streams: tuple[Stream, Stream], windows: Windows, condition: Condition, machine: Machine, seconds: float
) -> list[Counts]:
    """What comparing everything finds, period by period; the machine's capacity is ignored."""
    unlimited = Machine(
        buffer_us=machine.buffer_us, tick_us=machine.tick_us, period_us=machine.period_us, seed=machine.seed
    )
    everything = _Everything(windows)
    StreamJoin(streams, windows, condition, unlimited).run(everything, seconds)
    return everything.periods


class Clairvoyant:
    """Cells by true values: one entry per period (the last one stays), or one for the whole run."""

    def __init__(self, windows: Windows, fraction: float, counts: Sequence[Counts]) -> None:
        lengths = tuple(cell_lengths(length, windows.slot_us) for length in windows.lengths_us)
        self._decisions = []
        for left, right in counts:
            values = _values(left), _values(right)
            first, second = choose_cells(values, (lengths[0], lengths[1]), fraction)
            self._decisions.append(Decision((ProbeOrder(*first), ProbeOrder(*second))))
        self._period = 0

    @property
    def decision(self) -> Decision:
        return self._decisions[min(self._period, len(self._decisions) - 1)]

    def adapt(self, telemetry: Telemetry) -> Decision:
        self._period += 1
        return self.decision

    def snapshot(self) -> dict[str, Any]:
        return {"period": self._period}


def together(counts: Sequence[Counts]) -> Counts:
    """Several periods as one."""
    left, right = (
        AgeCounts(
            np.sum([both[window].matches for both in counts], axis=0),
            np.sum([both[window].comparisons for both in counts], axis=0),
        )
        for window in (0, 1)
    )
    return left, right


def _values(counts: AgeCounts) -> NDArray[np.float64]:
    return np.asarray(counts.matches / np.maximum(counts.comparisons, 1))
