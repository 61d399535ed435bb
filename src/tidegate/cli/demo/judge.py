"""Sums up the latency of the demo and verifies its outputs against the finished data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from tidegate.cli.demo.answers import Verdict, WindowAnswers, WindowVerdict, judge, judge_windows, summed_up
from tidegate.cli.demo.arrivals import PreparedCity, ticks_taken
from tidegate.cli.demo.city import City, burst_at
from tidegate.cli.demo.flow import BUSY, NEAR, STAY, WINDOW_US
from tidegate.cli.demo.outcome import Latency, OnTime, Outcome
from tidegate.cli.demo.timeline import Ints, pairs_written
from tidegate.control.latency import p95_of_batches
from tidegate.observe.tally import Tally


def latency_of(prepared: PreparedCity, city: City, tally: Tally, goal_seconds: float) -> Latency:
    """The latency that the engine measured: of all rows, and of batches most of whose rows are of the burst.

    A file is modified when it arrives, so this is the time from arrival to commit. The batch with the first
    tick is left out because the workers were cold.
    """
    every, bursting, so_far = [], [], 0
    for (_, rows), (_, latency) in zip(tally.commits, tally.latencies, strict=True):
        ticks = ticks_taken(prepared.tick_rows, so_far, rows)
        so_far += rows
        if latency is None or not any(tick for tick, _ in ticks):
            continue
        every.append((latency, rows))
        if sum(count for tick, count in ticks if burst_at(city, tick) > 1) > rows / 2:
            bursting.append((latency, rows))
    return Latency(goal_seconds, p95_of_batches(every), p95_of_batches(bursting))


def on_time(
    prepared: PreparedCity,
    city: City,
    out: Path,
    outcome: Outcome,
    moments: Sequence[float],
) -> OnTime:
    """The shares that kept the goal. `moments`: when each second of the city arrived."""
    tally, goal_seconds = outcome.tally, outcome.latency.goal
    p95, so_far = [], 0
    for (_, rows), (_, latency) in zip(tally.commits, tally.latencies, strict=True):
        ticks = ticks_taken(prepared.tick_rows, so_far, rows)
        so_far += rows
        if latency is not None and latency.p95_seconds is not None and any(tick for tick, _ in ticks):
            p95.append(latency.p95_seconds)
    pairs, ticks_of = pairs_written(out / NEAR), row_ticks(prepared)
    tick = np.maximum(ticks_of[0][pairs.left], ticks_of[1][pairs.right])
    # Batches have the numbers of their commits, idle ones none.
    done = {one.batch: moment for one, (moment, _) in zip(tally.latencies, tally.commits, strict=True)}
    waits = np.array([done.get(batch, np.inf) for batch in pairs.batch.tolist()]) - np.asarray(moments)[tick]
    known, burst_us = outcome.pairs, city.start_us + round(1e6 * city.burst_first_seconds)
    # All pairs count: those of the first second are few, because no row has a partner yet.
    return OnTime(
        float(np.mean(np.array(p95) <= goal_seconds)) if p95 else 1.0,
        float((waits <= goal_seconds).sum() / max(1, known.pairs_exact if known else pairs.batch.size)),
        outcome.windows.missing_before(burst_us, WINDOW_US) if outcome.windows else 0,
    )


def row_ticks(prepared: PreparedCity) -> tuple[Ints, Ints]:
    """The tick of every row; rows are numbered in the order of arrival."""
    order, track = (np.repeat(np.arange(rows.size), rows) for rows in prepared.stream_rows)
    return order, track


def pairs_verdict(prepared: PreparedCity, city: City, out: Path) -> Verdict:
    """Compare the written pairs with the exact answer."""
    rows = ds.dataset(out / NEAR, partitioning="hive").to_table(columns=["order_id", "track_id"])
    order, track = (rows[name].to_numpy().astype(np.int64) for name in ("order_id", "track_id"))
    return judge(prepared.orders, prepared.tracks, STAY, order, track, city.grid)


def windows_verdict(prepared: PreparedCity, city: City, out: Path) -> WindowVerdict:
    """Compare the written windows with the exact answer."""
    rows = ds.dataset(out / BUSY, partitioning="hive").to_table()
    starts = rows["window_start"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
    district, orders = (rows[name].to_numpy().astype(np.int64) for name in ("district", "orders"))
    found = WindowAnswers(starts, district, orders, rows["fares"].to_numpy())
    districts = city.grid.district(prepared.orders.key)
    exact = summed_up(prepared.orders.time_us, districts, prepared.fares, WINDOW_US)
    return judge_windows(exact, found, WINDOW_US)
