"""Join shedding policies: the decision, its inputs, and the baselines.

Paper: selective join, related work and experiments (baselines), partial processing.

Every policy returns a `Decision`, so all run through the same code:

    random drop         rows are dropped before the join, the rest is joined fully        keep_share < 1
    window reduction    rows probe the newest part, and what lies beyond it is dropped    reach < 1
    partial processing  every row is stored; it probes the newest part of the window      fraction < 1
    selective           … it probes the most productive parts (`adaptive.py`,             fraction, order
                        `selective.py`)

Guarantee: policies are state machines, telemetry in, decision out; a decision is plain data that a plan can
hold. None reads a clock or draws a random number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tidegate.control.actuators.paper_rate import RateLoad, RateRule
from tidegate.model.json_values import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Per window (left, right): the cost of probing each basic window, in any unit.
Work = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


class Shape(Protocol):
    """What policies know of the windows of a join, simulated or real."""

    @property
    def lengths_us(self) -> tuple[int, int]: ...

    @property
    def ages(self) -> tuple[int, int]:
        """Basic windows of the left and the right window."""
        ...

    @property
    def work(self) -> Work:
        """Per window and age: cost of probing the whole basic window, before anything is measured."""
        ...


@dataclass(frozen=True)
class ProbeOrder:
    """How much of a window new rows of the other stream probe, and its ages in order."""

    fraction: float
    order: tuple[int, ...]


@dataclass(frozen=True)
class Decision:
    """What the join does until the next decision."""

    #: The left and the right window.
    windows: tuple[ProbeOrder, ProbeOrder]
    #: Rows processed fully, to learn; of those that enter the join.
    full_share: float = 0.0
    #: Part of every basic window that "fully" means: 1 in the paper.
    full_depth: float = 1.0
    #: Rows that enter the join at all.
    keep_share: float = 1.0
    #: Part of the windows, by age, that is kept; older rows are dropped.
    reach: float = 1.0


@dataclass(frozen=True)
class AgeCounts:
    """Comparisons made in one window, and matches found, by age of basic window.

    Where a comparison with one basic window costs more than with another (an index, a remote piece), the cost
    in units of a comparison stands in for their number: policies then maximise matches per cost.
    """

    matches: NDArray[Any]
    comparisons: NDArray[Any]


@dataclass(frozen=True)
class Telemetry:
    """What happened since the last decision."""

    load: RateLoad
    #: Per window: by rows that were processed fully, and by all others.
    full: tuple[AgeCounts, AgeCounts]
    chosen: tuple[AgeCounts, AgeCounts]
    #: Expected cost of each basic window, if known; None: proportional to its length.
    work: Work | None = None
    #: Nothing was skipped, so that all rows were processed fully.
    whole: bool = False
    #: How long that took, from batch to batch.
    seconds: float = 0.0

    @property
    def processed_fully(self) -> tuple[AgeCounts, AgeCounts]:
        """Per window: counts of all rows that probed everything."""
        if not self.whole:
            return self.full
        left, right = (
            AgeCounts(full.matches + other.matches, full.comparisons + other.comparisons)
            for full, other in zip(self.full, self.chosen, strict=True)
        )
        return left, right


class Policy(Protocol):
    """Decides what is skipped."""

    @property
    def decision(self) -> Decision: ...

    def adapt(self, telemetry: Telemetry) -> Decision: ...

    def snapshot(self) -> Snapshot: ...


def newest_first(windows: Shape, fractions: tuple[float, float]) -> tuple[ProbeOrder, ProbeOrder]:
    """The default order: the newest part of each window."""
    left, right = (ProbeOrder(f, tuple(range(n))) for f, n in zip(fractions, windows.ages, strict=True))
    return left, right


class _ByRate(ABC):
    """A policy that learns only the rate."""

    def __init__(self, windows: Shape, rate: RateRule) -> None:
        self.windows: Shape = windows
        self.rate: RateRule = rate

    def adapt(self, telemetry: Telemetry) -> Decision:
        self.rate.adapt(telemetry.load)
        return self.decision

    @property
    @abstractmethod
    def decision(self) -> Decision: ...

    def snapshot(self) -> Snapshot:
        return {"rate": self.rate.snapshot()}


class RandomDropPolicy(_ByRate):
    """Drop rows before the join: with √r of the rows of both streams, r of the pairs are left.

    With a fixed rate of 1 only rows that overflow the input buffers are dropped; the paper runs its baseline
    so.
    """

    @property
    def decision(self) -> Decision:
        return Decision(newest_first(self.windows, (1.0, 1.0)), keep_share=sqrt(self.rate.fraction))


class WindowReductionPolicy(_ByRate):
    """Shorten both windows to r of their length. Dropped rows do not come back when r rises."""

    @property
    def decision(self) -> Decision:
        return Decision(newest_first(self.windows, (1.0, 1.0)), reach=self.rate.fraction)
