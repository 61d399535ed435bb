"""The window drop paper on Spark: what dropping windows really saves, in a pipeline and in a fan-out.

The paper gives each box a delay and asks how many windows must go so that an excess of rows fits. Here boxes
cost what they cost. Each plan runs with several shares p of its windows dropped, contenders in turns; the
time of a batch says how many more rows would fit, and so which share an excess asks for:

    seconds of a batch at p  ≤  seconds at none / (1 + excess)

This is about time, so figures differ from machine to machine and from run to run; simulated ones do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.api.start import StartOptions
from tidegate.driver.session import embedded_session
from tidegate.driver.start import run_flow
from tidegate_lab.bench.windows.feed import SCHEMA, Scenario
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.experiment import Figure, Line, Options, Outcome

#: As in the paper's experiments.
MAX_GAP = 10
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
EXCESSES = (0.1, 0.25, 0.5, 0.65, 1.0)
#: First batches that only warm up, and batches in all.
COLD = 3
#: Batches of a run, rounds in which the contenders take turns, rows of a batch.
_FULL, _QUICK = (13, 3, 500_000), (7, 1, 50_000)
#: A query of the paper: its outputs over the rows of a stream.
Plan = Callable[[tg.Stream], Mapping[str, tg.Stream]]


def pipeline(stream: tg.Stream) -> dict[str, tg.Stream]:
    """A window over the results of a window, filters in between."""
    inner = stream.filter("v > 0.05").window("100 milliseconds", by="k").agg(n=F.count("*"), s=F.sum("v"))
    return {"outer": inner.filter("n > 0").window("500 milliseconds", by="k").agg(m=F.max("s"))}


def fan_out(stream: tg.Stream) -> dict[str, tg.Stream]:
    """Two windows over the results of one."""
    inner = stream.window("100 milliseconds", by="k").agg(n=F.count("*"), s=F.sum("v"))
    return {
        "left": inner.window("300 milliseconds", by="k").agg(m=F.max("s")),
        "right": inner.window("200 milliseconds", by="k").agg(m=F.min("s")),
    }


def figures() -> tuple[Figure, ...]:
    """By the names that `--figure` takes."""
    return (
        Figure("10", "time of a batch by share dropped, pipeline, on Spark", _figure("10", pipeline)),
        Figure("11", "time of a batch by share dropped, fan-out, on Spark", _figure("11", fan_out)),
    )


def _figure(name: str, plan: Plan) -> Callable[[Options], Outcome]:
    def measure(options: Options) -> Outcome:
        seconds = _measured(plan, options)
        none = median(seconds[None])
        shares = np.array(SHARES)
        times = np.array([median(seconds[share]) for share in SHARES])
        needed = {excess: _needed(shares, times, none / (1 + excess)) for excess in EXCESSES}
        return Outcome(
            _lines(name, none, times, needed), (), [_plot(name, none, times, needed)], _rows(seconds)
        )

    return measure


def _measured(plan: Plan, options: Options) -> dict[float | None, list[float]]:
    """Seconds of usual batches, by share dropped; None: nothing may ever be missing."""
    batches, rounds, rows = _QUICK if options.quick else _FULL
    found: dict[float | None, list[float]] = {share: [] for share in (None, *SHARES)}
    session = embedded_session("tidegate reproduce window-drop", cores=2, memory="6g")
    try:
        with TemporaryDirectory(prefix="tidegate-window-drop-") as temporary:
            Scenario("plan", 100, 100, 1_000, rows, batches, options.seeds[0]).write(Path(temporary) / "in")
            for turn in range(rounds):
                for share, seconds in found.items():
                    checkpoint = Path(temporary) / f"checkpoint-{turn}-{share}"
                    seconds.append(
                        median(_run(session, plan, Path(temporary) / "in", share, checkpoint)[COLD:])
                    )
                    rmtree(checkpoint, ignore_errors=True)
    finally:
        session.stop()
    return found


def _run(
    session: SparkSession, plan: Plan, folder: Path, share: float | None, checkpoint: Path
) -> list[float]:
    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    outputs = plan(tg.stream(rows, time="ts", name="rows", lateness="0 seconds"))
    # What `tg.start` refuses: a goal, which allows windows to be dropped, over an input that ends.
    options = StartOptions(
        checkpoint=str(checkpoint),
        available_now=True,
        goal=None if share is None else tg.Goal(latency="1 hour"),
        shed=tg.Shed(window="none" if share is None else share),
    )
    query = run_flow(
        [
            stream.write_to(_nowhere, name=name, max_gap=None if share is None else MAX_GAP)
            for name, stream in outputs.items()
        ],
        options,
    )
    query.await_termination()
    return [progress["duration_seconds"] for progress in query.telemetry if progress["input_rows"]]


def _needed(shares: np.ndarray[Any, Any], times: np.ndarray[Any, Any], fits: float) -> float | None:
    """The least share with which a batch takes no longer than this; None where none does."""
    falling = np.minimum.accumulate(times)
    if falling[-1] > fits:
        return None
    return float(np.interp(-fits, -falling, shares)) if falling[0] > fits else 0.0


def _lines(
    name: str, none: float, times: np.ndarray[Any, Any], needed: Mapping[float, float | None]
) -> list[Line]:
    def told(excess: float) -> str:
        share = needed[excess]
        return "no share is enough" if share is None else f"{share:.2f}"

    return [
        Line(
            name,
            "cost of a window drop that drops nothing",
            "up to 4 % (table 4)",
            f"{times[0] / none - 1:+.1%}",
            float(times[0] / none - 1),
            agrees=bool(times[0] / none - 1 <= 0.04),
        ),
        Line(name, "share dropped at 25 % of excess", "about 0.2 to 0.4", told(0.25), needed[0.25]),
        Line(
            name,
            "share dropped at 65 % of excess",
            "the drop at the input still delivers",
            told(0.65),
            needed[0.65],
            agrees=needed[0.65] is not None,
        ),
    ]


def _plot(name: str, none: float, times: np.ndarray[Any, Any], needed: Mapping[float, float | None]) -> Plot:
    enough = {excess: share for excess, share in needed.items() if share is not None}
    return Plot(
        f"spark-figure-{name}",
        f"Window drop on Spark, figure {name}",
        "measured by the clock, two cores",
        [
            Panel("share of windows dropped", "seconds of a batch / without", [_curve(SHARES, times / none)]),
            Panel("excess load", "share dropped", [_curve(tuple(enough), list(enough.values()))]),
        ],
    )


def _curve(x: Any, y: Any) -> Curve:
    return Curve("measured", [float(one) for one in x], [float(one) for one in y], style="line")


def _rows(seconds: Mapping[float | None, list[float]]) -> list[dict[str, Any]]:
    return [{"share": share, "seconds": median(some), "samples": some} for share, some in seconds.items()]


def _nowhere(rows: DataFrame, batch: int) -> None:
    """Results are made by the tasks; nobody reads them."""
