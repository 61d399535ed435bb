"""The main job: two bursty, skewed streams of a made-up city, joined on an embedded Spark.

Orders and taxi tracks arrive as files, second by second, with two rushes a minute. Each order is joined with
the free cabs seen in its cell up to 20 seconds before or after it; an order without any is written alone.
At the end every pair is checked against the exact answer, worked out from the finished data.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Event
from typing import TYPE_CHECKING

from tidegate.cli.arguments import positive_int, positive_number, whole_number
from tidegate.errors import FlowError, explain

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.papers.arrivals import Prepared
    from tidegate.papers.city import City
    from tidegate.papers.partners import Stay, Verdict
    from tidegate.report.tally import Tally

SECONDS_DEFAULT = 60
#: Two slow cores take this many rows a second with ease, and three times as many in a rush.
RATE_DEFAULT = 5_000.0
STAY_US = 20_000_000
NOT_EXACT = 1
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--seconds",
        type=positive_int,
        default=SECONDS_DEFAULT,
        metavar="N",
        help="how long rows arrive (%(default)s)",
    )
    add(
        "--rate",
        type=positive_number,
        default=RATE_DEFAULT,
        metavar="X",
        help="rows a second of both streams together, outside the rush (%(default)g)",
    )
    add("--out", type=Path, metavar="DIR", help="where the pairs go (a new directory)")
    add("--checkpoint", type=Path, metavar="DIR", help="where the state of the query lives (a new directory)")
    add("--seed", type=whole_number, default=7, metavar="N", help="same seed, same city (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Prepare, stream, judge; the files that arrived are removed, the output and the checkpoint stay."""
    from rich.console import Console

    from tidegate.papers.arrivals import prepare
    from tidegate.report.outcome import print_outcome, say

    out, checkpoint = _places(arguments.out, arguments.checkpoint)
    city = city_of(arguments.rate, arguments.seed)
    console = Console(file=sys.stdout, highlight=False)
    stop = Event()
    with TemporaryDirectory(prefix="tidegate-city-") as root:
        prepared = prepare(city, arguments.seconds, Path(root))
        say(console, f"{prepared.rows:,} rows of a made-up city will arrive in {arguments.seconds} s.")
        tally = _stream(prepared, city, out, checkpoint, console, stop)
    verdict = None if stop.is_set() else _judge(prepared, out)
    print_outcome(console, tally, verdict)
    _print_places(console, out, checkpoint)
    if verdict is None:
        return INTERRUPTED
    return 0 if verdict.exact else NOT_EXACT


def city_of(rate: float, seed: int) -> City:
    """A quarter of the rows are orders. A busier city has more cells, so that partners stay few."""
    from tidegate.papers.city import City

    return City(
        orders_per_second=rate / 4,
        tracks_per_second=rate * 3 / 4,
        cells=max(100, round(rate * 2.5)),
        zipf=0.7,
        rush_factor=3.0,
        cabs=max(10, round(rate)),
        occupied_share=0.9,
        seed=seed,
    )


def _stay() -> Stay:
    from tidegate.papers.partners import Stay

    return Stay(left_us=STAY_US, right_us=STAY_US)


def _places(out: Path | None, checkpoint: Path | None) -> tuple[Path, Path]:
    """Two directories that are empty or do not exist yet."""
    for path, option in ((out, "--out"), (checkpoint, "--checkpoint")):
        if path is not None and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FlowError(
                explain(
                    f"{option} must be a new or empty directory",
                    got=str(path),
                    why="The demo begins anew, and what is there already would be mixed in",
                    do=f"Name another {option}, or remove that one",
                )
            )
    if out is None or checkpoint is None:
        home = Path(mkdtemp(prefix="tidegate-demo-"))
        out, checkpoint = out or home / "near", checkpoint or home / "checkpoint"
    return out.absolute(), checkpoint.absolute()


def _stream(
    prepared: Prepared, city: City, out: Path, checkpoint: Path, console: Console, stop: Event
) -> Tally:
    from tidegate.cli.quiet import standard_error_in
    from tidegate.cli.watch import ctrl_c_sets, watch
    from tidegate.papers.arrivals import Arrivals
    from tidegate.report.progress import Progress
    from tidegate.spark.demo import city_query

    arrivals = Arrivals(prepared)
    running = city_query(
        prepared, out=out, checkpoint=checkpoint, lateness_us=city.disorder_us, stay=_stay(), seed=city.seed
    )
    with standard_error_in(prepared.root / "spark.log"), ExitStack() as until_end:
        with console.status("Starting Spark …"):
            query = until_end.enter_context(running)
        # Spark sets its own Ctrl-C when its session starts; ours must come after that.
        until_end.enter_context(ctrl_c_sets(stop))
        until_end.callback(arrivals.stop)
        arrivals.start()
        with Progress(console, total=prepared.seconds, clock=time.monotonic) as progress:
            return watch(query, arrivals, progress, rows=prepared.rows, stop=stop)


def _judge(prepared: Prepared, out: Path) -> Verdict:
    import numpy as np
    import pyarrow.dataset as ds

    from tidegate.papers.partners import judge

    rows = ds.dataset(out, partitioning="hive").to_table(columns=["order_id", "track_id"])
    order = rows["order_id"].to_numpy().astype(np.int64)
    track = rows["track_id"].combine_chunks().fill_null(-1).to_numpy().astype(np.int64)
    return judge(prepared.orders, prepared.tracks, _stay(), order, track)


def _print_places(console: Console, out: Path, checkpoint: Path) -> None:
    from tidegate.report.outcome import say

    say(console, f"Pairs:  {out}")
    say(console, f"""  python -c "import pandas; print(pandas.read_parquet('{out}'))" """.rstrip())
    say(console, f"State:  {checkpoint}")
    say(console, f"  tidegate inspect {checkpoint}")
