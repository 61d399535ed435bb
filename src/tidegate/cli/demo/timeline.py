"""Latency and share of results on time, second by second: what `tidegate demo --plot` draws of one run.

A result is a pair of rows. It is possible as soon as the later of its two rows has arrived, and it is on
time if the batch that wrote it was committed at most the goal after that. Both curves are by the second of
arrival, so that runs of different engines on the same files can be compared point by point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow.dataset as ds
from numpy.typing import NDArray

from tidegate.cli.demo.answers import Nearness, Side, Stay, count_partners
from tidegate.cli.demo.arrivals import row_waits

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
#: The number of a batch in the path of a file.
_BATCH = re.compile(r"/(?:batch=|part-)(\d+)[-/]")


@dataclass(frozen=True)
class Timeline:
    """Curves of one run by second of arrival; NaN where nothing is known."""

    #: The 95th percentile of the time from a row's arrival to the commit of its batch.
    latency_seconds: Floats
    #: The share of the exact results that was written within the goal.
    on_time: Floats


@dataclass(frozen=True)
class WrittenPairs:
    """Row numbers of the pairs that a run wrote, and the batch that wrote each."""

    left: Ints
    right: Ints
    batch: Ints


def timeline(
    tick_rows: Ints,
    exact: Ints,
    pair_ticks: Ints,
    written_at: Floats,
    *,
    commits: Sequence[tuple[float, int]],
    moments: Sequence[float],
    goal_seconds: float,
) -> Timeline:
    """The curves of a run.

    `exact`: results by second of arrival; `pair_ticks`, `written_at`: that second and the moment of commit of
    every pair that was written. `commits`: when each batch was committed, and the rows it took; `moments`:
    when each second's files arrived. Rows and pairs of the first second are left out: the workers were cold.
    """
    seconds = tick_rows.size
    latency = np.full(seconds, np.nan)
    ticks, waits, rows = row_waits(tick_rows, moments, commits)
    for tick in np.unique(ticks):
        of_tick = ticks == tick
        latency[tick] = np.percentile(np.repeat(waits[of_tick], rows[of_tick]), 95)
    in_time = written_at - np.asarray(moments)[pair_ticks] <= goal_seconds
    found = np.bincount(pair_ticks[in_time], minlength=seconds)
    on_time = np.divide(found, exact, out=np.full(seconds, np.nan), where=exact > 0)
    on_time[0] = np.nan
    return Timeline(latency, on_time)


def pairs_written(out: Path) -> WrittenPairs:
    """The pairs below `out`, with their batch from the names of files: ours, or of Spark's folders."""
    fragments = list(ds.dataset(out, format="parquet").get_fragments())
    tables = [one.to_table(columns=["order_id", "track_id"]) for one in fragments]
    numbers = [int(_BATCH.findall(one.path)[0]) for one in fragments]
    order, track = (
        np.concatenate([table[name].to_numpy().astype(np.int64) for table in tables])
        for name in ("order_id", "track_id")
    )
    return WrittenPairs(order, track, np.repeat(numbers, [len(table) for table in tables]))


def pairs_by_tick(left: Side, right: Side, ticks: tuple[Ints, Ints], stay: Stay, near: Nearness) -> Ints:
    """The number of exact pairs by the tick in which the later row arrived. `ticks`: of both sides' rows."""
    left_tick, right_tick = ticks
    last = int(max(left_tick.max(initial=0), right_tick.max(initial=0)))
    mirrored = Stay(left_us=stay.right_us, right_us=stay.left_us)
    found = np.zeros(last + 1, np.int64)
    for tick in range(last + 1):
        new_left, new_right = left_tick == tick, right_tick == tick
        found[tick] = _pairs(_only(left, new_left), _only(right, right_tick <= tick), stay, near)
        found[tick] += _pairs(_only(right, new_right), _only(left, left_tick < tick), mirrored, near)
    return found


def _only(side: Side, rows: NDArray[np.bool_]) -> Side:
    return Side(side.key[rows], side.time_us[rows], side.counts[rows])


def _pairs(left: Side, right: Side, stay: Stay, near: Nearness) -> int:
    return sum(
        int(count_partners(Side(key, left.time_us, left.counts & (key >= 0)), right, stay).sum())
        for key in near.around(left.key)
    )
