"""Runs two bursty, skewed streams of a synthetic city on an embedded Spark, and overloads it on purpose.

Orders and taxi tracks arrive as files, second by second. Each order is joined with the free cabs at most a
step away, up to 20 seconds before or after it; orders and fares are summed by district every 5 seconds. Then
a burst multiplies the rows and so the work. To meet the latency goal, Tidegate rebalances and sheds work, and
repairs it after the burst. At the end every result is compared with the exact answer.

Exit codes: 0 all results are right and the goal was kept; 1 a result is wrong; 3 all are right, but the goal
was missed; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Event
from typing import TYPE_CHECKING

from tidegate.cli.arguments import positive_int, positive_number, whole_number
from tidegate.errors import FlowError

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.cli.demo.arrivals import PreparedCity
    from tidegate.cli.demo.city import City
    from tidegate.observe.tally import Tally

SECONDS_DEFAULT = 60
#: Rows per second that two slow cores process easily.
RATE_DEFAULT = 3_000.0
#: The factor of the burst: pairs grow with its square, so that two present cores are overloaded.
BURST_DEFAULT = 10.0
#: Beginning and length of the burst, as shares of the run.
BURST_BEGINS, BURST_LASTS = 0.3, 0.15
#: A batch of two operators has an overhead of about half a second on two cores, more on slow ones.
GOAL_SECONDS_DEFAULT = 2.0
WRONG, MISSED = 1, 3
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", type=positive_int, default=SECONDS_DEFAULT, metavar="N", help=_SECONDS)
    add("--rate", type=positive_number, default=RATE_DEFAULT, metavar="X", help=_RATE)
    add("--rush", type=positive_number, default=BURST_DEFAULT, metavar="X", help=_BURST)
    add("--goal", type=positive_number, default=GOAL_SECONDS_DEFAULT, metavar="S", help=_GOAL)
    add("--out", type=Path, metavar="DIR", help="where results go (a new directory)")
    add("--checkpoint", type=Path, metavar="DIR", help="where the state of the query lives (a new directory)")
    add("--plot", type=Path, metavar="FILE", help=_PLOT)
    add("--json", nargs="?", const="-", metavar="FILE", help=_JSON)
    add("--seed", type=whole_number, default=7, metavar="N", help="same seed, same city (%(default)s)")


_SECONDS = "how long rows arrive (%(default)s)"
_RATE = "rows a second of both streams together, outside the burst (%(default)g)"
_BURST = "times as many rows in the burst (%(default)g)"
_GOAL = "seconds after which results are late; a batch begins every second (%(default)g)"

_JSON = "write the figures as JSON, without a FILE to standard output"
_PLOT = "draw this run beside Spark's own join on the same rows (a .png or .svg); needs tidegate[plot]"


def run(arguments: argparse.Namespace) -> int:
    """Prepare, stream, verify; arrived files are removed, the output and the checkpoint stay."""
    from rich.console import Console

    from tidegate.cli.demo.arrivals import prepare
    from tidegate.cli.demo.judge import latency_of, on_time, pairs_verdict, windows_verdict
    from tidegate.cli.demo.outcome import Outcome, print_outcome, say, write_figures

    if arguments.plot is not None:
        from tidegate.cli.demo.plot import require_matplotlib

        require_matplotlib()
    out, checkpoint = _places(arguments.out, arguments.checkpoint)
    city = city_of(arguments.rate, arguments.seed, arguments.rush, arguments.seconds)
    # Figures on standard output can be read by a program: words go elsewhere then.
    console = Console(file=sys.stderr if arguments.json == "-" else sys.stdout, highlight=False)
    stop = Event()
    with TemporaryDirectory(prefix="tidegate-city-") as root:
        prepared = prepare(city, arguments.seconds, Path(root))
        say(console, f"{prepared.rows:,} rows of a made-up city will arrive in {arguments.seconds} s.")
        tally, moments = _stream(prepared, city, out, checkpoint, arguments.goal, console, stop)
        outcome = Outcome(tally, latency_of(prepared, city, tally, arguments.goal))
        if not stop.is_set():
            pairs, windows = pairs_verdict(prepared, city, out), windows_verdict(prepared, city, out)
            outcome = replace(outcome, pairs=pairs, windows=windows)
            outcome = replace(outcome, on_time=on_time(prepared, city, out, outcome, moments))
    print_outcome(console, outcome)
    _print_places(console, out, checkpoint)
    if arguments.json is not None:
        write_figures(arguments.json, arguments, outcome)
    if stop.is_set():
        return INTERRUPTED
    if arguments.plot is not None:
        from tidegate.cli.demo.comparison import CityRun, compare

        compare(arguments.plot, city, CityRun(prepared, out, tally.commits, moments), arguments.goal, console)
    return WRONG if not outcome.right else 0 if outcome.kept else MISSED


def city_of(rate: float, seed: int, burst: float, seconds: int) -> City:
    """A city with one burst; a quarter of the rows are orders."""
    from tidegate.cli.demo.city import City

    return City(
        orders_per_second=rate / 4,
        tracks_per_second=rate * 3 / 4,
        cells=max(100, round(rate * 2.5)),
        zipf=0.7,
        burst_factor=burst,
        burst_first_seconds=round(seconds * BURST_BEGINS),
        burst_seconds=max(1, round(seconds * BURST_LASTS)),
        burst_every_seconds=10 * seconds,
        cabs=max(10, round(rate)),
        occupied_share=0.9,
        seed=seed,
    )


def _places(out: Path | None, checkpoint: Path | None) -> tuple[Path, Path]:
    """Two directories that are empty or do not exist yet."""
    for path, option in ((out, "--out"), (checkpoint, "--checkpoint")):
        if path is not None and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FlowError(
                f"{option} must be a new or empty directory",
                code="DEMO_DIRECTORY_NOT_EMPTY",
                got=str(path),
                why="The demo starts from nothing and would mix with the files there",
                do=f"Pass another {option}, or delete that directory",
            )
    if out is None or checkpoint is None:
        home = Path(mkdtemp(prefix="tidegate-demo-"))
        out, checkpoint = out or home / "out", checkpoint or home / "checkpoint"
    return out.absolute(), checkpoint.absolute()


def _stream(
    prepared: PreparedCity,
    city: City,
    out: Path,
    checkpoint: Path,
    goal_seconds: float,
    console: Console,
    stop: Event,
) -> tuple[Tally, list[float]]:
    """The tally of the query, and when each second of the city arrived."""
    from tidegate.cli.demo.arrivals import CityArrivals
    from tidegate.cli.demo.flow import city_query
    from tidegate.cli.quiet_console import standard_error_in
    from tidegate.cli.watch import ctrl_c_sets, watch
    from tidegate.observe.live_page import LivePage

    arrivals = CityArrivals(prepared)
    running = city_query(prepared, city, out=out, checkpoint=checkpoint, goal_seconds=goal_seconds)
    with standard_error_in(prepared.root / "spark.log"), ExitStack() as until_end:
        with console.status("Starting Spark …"):
            query = until_end.enter_context(running)
        # Spark sets its own Ctrl-C handler when its session starts, so ours is set after that.
        until_end.enter_context(ctrl_c_sets(stop))
        until_end.callback(arrivals.stop)
        arrivals.start()
        with LivePage(console, total=prepared.seconds, clock=time.monotonic) as progress:
            tally = watch(
                query,
                arrivals,
                progress,
                rows=prepared.rows,
                stop=stop,
                line_of=lambda second: said_of(city, second),
            )
    return tally, arrivals.moments


def said_of(city: City, second: int) -> str | None:
    """The line to print for a second of the city, if any."""
    from tidegate.cli.demo.city import burst_at

    before, now = burst_at(city, second - 1), burst_at(city, second)
    if now == before:
        return None
    return f"a rush: {now:g} times the rows" if now > 1 else "the rush is over"


def _print_places(console: Console, out: Path, checkpoint: Path) -> None:
    from tidegate.cli.demo.flow import BUSY, NEAR
    from tidegate.cli.demo.outcome import say

    say(console, f"Pairs:    {out / NEAR}")
    say(console, f"Windows:  {out / BUSY}")
    say(console, f"""  python -c "import pandas; print(pandas.read_parquet('{out / NEAR}'))" """.rstrip())
    say(console, f"State:    {checkpoint}")
    say(console, f"  tidegate inspect {checkpoint}")
