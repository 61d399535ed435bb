"""From Tidegate's run to the picture: runs the same rows through Spark alone, then draws both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from tidegate.cli.demo.arrivals import PreparedCity, prepare
from tidegate.cli.demo.city import City
from tidegate.cli.demo.flow import NEAR, STAY
from tidegate.cli.demo.outcome import say
from tidegate.cli.demo.plot import Scene, draw
from tidegate.cli.demo.spark_run import run_spark
from tidegate.cli.demo.timeline import Ints, Timeline, pairs_by_tick, pairs_written, timeline
from tidegate.cli.quiet_console import standard_error_in

if TYPE_CHECKING:
    from rich.console import Console

#: How long Spark may go on after the last row has arrived.
GRACE_SECONDS = 300.0


@dataclass(frozen=True)
class CityRun:
    """A finished run over a city."""

    prepared: PreparedCity
    out: Path
    #: When each batch was committed, and the rows it took, by batch.
    commits: Sequence[tuple[float, int]]
    #: When each second of the city arrived.
    moments: Sequence[float]


def compare(file: Path, city: City, ours: CityRun, goal_seconds: float, console: Console) -> None:
    """Run Spark alone on the same city, and draw both runs into `file`."""
    say(console, "The same rows through Spark's own join …")
    with TemporaryDirectory(prefix="tidegate-city-") as root:
        prepared = prepare(city, ours.prepared.seconds, Path(root))
        out = Path(root) / "out"
        with standard_error_in(Path(root) / "spark.log"):
            commits, moments = run_spark(
                prepared, city, out, Path(root) / "checkpoint", grace_seconds=GRACE_SECONDS
            )
        theirs = CityRun(prepared, out, commits, moments)
        ticks = _ticks(prepared)
        exact = pairs_by_tick(prepared.orders, prepared.tracks, ticks, STAY, city.grid)
        spark, spark_total = _measured(theirs, exact, ticks, goal_seconds)
        tidegate, tidegate_total = _measured(ours, exact, ticks, goal_seconds)
    burst = (city.burst_factor, city.burst_first_seconds, city.burst_seconds)
    draw(file, spark, tidegate, Scene(goal_seconds, *burst, spark_total, tidegate_total))
    for name, run in (("Spark alone", spark), ("Tidegate", tidegate)):
        worst, least = np.nanmax(run.latency_seconds), 100 * np.nanmin(run.on_time)
        say(console, f"{name}: p95 latency up to {worst:.1f} s, at least {least:.0f} % of results on time")
    say(console, f"Picture:  {file}")


def _measured(
    run: CityRun, exact: Ints, ticks: tuple[Ints, Ints], goal_seconds: float
) -> tuple[Timeline, float]:
    """The curves of a run, and the share of the exact pairs that it wrote at all."""
    pairs = pairs_written(run.out / NEAR)
    done = np.array([moment for moment, _ in run.commits])
    # Spark's last batch may have been written but not committed when it was stopped.
    known = pairs.batch < done.size
    pair_ticks = np.maximum(ticks[0][pairs.left], ticks[1][pairs.right])[known]
    curves = timeline(
        run.prepared.tick_rows,
        exact,
        pair_ticks,
        done[pairs.batch[known]],
        commits=run.commits,
        moments=run.moments,
        goal_seconds=goal_seconds,
    )
    return curves, pair_ticks.size / max(1, int(exact.sum()))


def _ticks(prepared: PreparedCity) -> tuple[Ints, Ints]:
    """The tick of every row; rows are numbered in the order of arrival."""
    order, track = (np.repeat(np.arange(rows.size), rows) for rows in prepared.stream_rows)
    return order, track
