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
from tidegate.cli.demo.judge import row_ticks
from tidegate.cli.demo.outcome import say
from tidegate.cli.demo.plot import Scene, Shares, draw
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
        ticks = row_ticks(prepared)
        exact = pairs_by_tick(prepared.orders, prepared.tracks, ticks, STAY, city.grid)
        spark, of_spark = _measured(theirs, exact, ticks, goal_seconds)
        tidegate, of_tidegate = _measured(ours, exact, ticks, goal_seconds)
    burst = (city.burst_factor, city.burst_first_seconds, city.burst_seconds)
    draw(file, spark, tidegate, Scene(goal_seconds, *burst, of_spark, of_tidegate))
    for name, run, shares in (("Spark alone", spark, of_spark), ("Tidegate", tidegate, of_tidegate)):
        worst = np.nanmax(run.latency_seconds)
        say(console, f"{name}: p95 latency up to {worst:.1f} s; results: {shares.text}")
    say(console, f"Picture:  {file}")


def _measured(
    run: CityRun, exact: Ints, ticks: tuple[Ints, Ints], goal_seconds: float
) -> tuple[Timeline, Shares]:
    """The curves of a run, and which share of the exact pairs it wrote within the goal, and at all."""
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
    # The first second is left out, as in the curves.
    in_time = float(np.nansum(curves.on_time * exact) / max(1, exact[1:].sum()))
    return curves, Shares(in_time, pair_ticks.size / max(1, int(exact.sum())))
