"""Measures the latency of the demo and verifies its outputs against the finished data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from tidegate.cli.demo.answers import Verdict, WindowAnswers, WindowVerdict, judge, judge_windows, summed_up
from tidegate.cli.demo.arrivals import PreparedCity, row_waits
from tidegate.cli.demo.city import City, burst_at
from tidegate.cli.demo.flow import BUSY, NEAR, STAY, WINDOW_US
from tidegate.cli.demo.outcome import Latency


def latency_of(
    prepared: PreparedCity,
    city: City,
    commits: Sequence[tuple[float, int]],
    moments: Sequence[float],
    goal_seconds: float,
) -> Latency:
    """The latency from arrival to commit: of all rows, and of those in the burst."""
    ticks, seconds, rows = row_waits(prepared.tick_rows, moments, commits)
    bursting = np.array([burst_at(city, tick) > 1 for tick in ticks], bool)

    def p95(some: Any) -> float | None:
        waits = np.repeat(seconds[some], rows[some])
        return float(np.percentile(waits, 95)) if waits.size else None

    return Latency(goal_seconds, p95(rows > 0), p95(bursting))


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
