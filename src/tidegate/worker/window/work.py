"""What one batch asks of the instances of a window aggregate."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.cohorts import Cohorts
from tidegate.window.drop.gap_table import GapTable
from tidegate.window.drop.intervals import Intervals
from tidegate.window.estimate.strata import NOTHING_LEFT_OUT, LeftOut
from tidegate.worker.runtime.layout import WindowLayout
from tidegate.worker.runtime.stage_file import Kept
from tidegate.worker.runtime.state_order import StateOrder

#: TAG of a partial: what happened to its rows before partial aggregation.
ON_TIME, LATE, REJECTED, DROPPED = 0, 1, 2, 3


@dataclass(frozen=True)
class WindowWork:
    """The work order of one batch for every instance of a window aggregate; sent to the workers."""

    layout: WindowLayout
    state: StateOrder
    late_before_us: int = 0
    newest_us: int = 0
    #: Partials are single rows: there was no partial aggregation.
    by_row: bool = False
    #: Times of rows that no kept window needs, and starts of windows to compute; None: no window drop.
    gaps: GapTable | None = None
    kept: Intervals | None = None
    #: Where the windows of each group lie among these; None: all groups lose the same.
    cohorts: Cohorts | None = None
    #: Of an approximate window: sampling probability per stratum, its seed, and what was dropped.
    shares: tuple[float, ...] | None = None
    seed: int = 0
    left_out: LeftOut = NOTHING_LEFT_OUT
    #: Windows that begin before this are not emitted: the operator was added after their first rows.
    begins_us: int = BEGINNING_US
    stage_root: str | None = None
    kept_as: Kept | None = None
