"""The Nexmark queries by this engine, Spark's own and Flink: the same events, in turns, in one run.

all-at-once   files of --batch-events events, one a batch, available now, back to back. Rates count the whole
              run, from the call that starts the query to its end. The first round is cold and does not count.
              Results of every contender are compared with DuckDB's over the finished events.
sustained     files published at a steady rate; the highest rate at which 95 % of the files have their results
              within --goal seconds for --seconds seconds. Latency is from the time of a file to the commit of
              the batch that processed it, read from Spark's logs for this engine and for Spark's own alike.
              Flink does not take part: it has no batches to time.

This engine and Spark's own write Parquet files, or discard their results (--sink noop). Flink writes its
results only in the first round, as CSV, and discards them in the rounds that count. Its tables are flat files
with the columns of the query, in CSV; in Parquet if flink-sql-parquet lies beside its jars. Every contender
has two cores and a process of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tidegate.cli.arguments import positive_int, positive_number
from tidegate.errors import FlowError
from tidegate_lab.commands.arguments import listed, name_among
from tidegate_lab.commands.bench_report import add_usual_arguments, print_figures, tell_bars

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from tidegate.observe.json_frame import Bar
    from tidegate_lab.bench.nexmark.processes import Processes

DIFFERENT_RESULTS = 1
ALL_AT_ONCE, SUSTAINED = "all-at-once", "sustained"
NAMES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q9", "q20")
ON_SPARK = ("tidegate", "spark-memory", "spark-rocksdb")
CONTENDERS = (*ON_SPARK, "flink", "flink-checkpoints")
FILE_EVENTS = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--mode", choices=(ALL_AT_ONCE, SUSTAINED), default=ALL_AT_ONCE, help="(%(default)s)")
    add("--queries", type=listed(name_among(*NAMES)), default=list(NAMES), metavar="A,B", help="(all)")
    add(
        "--contenders",
        type=listed(name_among(*CONTENDERS)),
        metavar="A,B",
        help=f"({', '.join(ON_SPARK)}, and flink where --flink is given)",
    )
    add("--flink", metavar="PYTHON", help="interpreter with apache-flink==2.3.0")
    add(
        "--flink-checkpoints",
        type=positive_number,
        nargs="?",
        const=1.0,
        metavar="S",
        help="also Flink with a checkpoint every S seconds (1)",
    )
    add("--event-rate", type=positive_int, default=10_000, metavar="N", help="a second of event time")
    add("--memory", default="6g", metavar="SIZE", help="heap of each contender's Java (%(default)s)")
    _add_all_at_once(parser.add_argument_group("all-at-once"))
    _add_sustained(parser.add_argument_group("sustained"))
    add("--plot", type=Path, metavar="FILE", help="draw the rates as a PNG picture")
    add_usual_arguments(parser)


def _add_all_at_once(group: Any) -> None:
    add = group.add_argument
    add("--events", type=positive_int, default=5_000_000, metavar="N", help="(%(default)s)")
    add("--batch-events", type=positive_int, default=500_000, metavar="N", help="of a file (%(default)s)")
    add("--rounds", type=positive_int, default=2, metavar="N", help="the first does not count (%(default)s)")
    add("--sink", choices=("parquet", "noop"), default="parquet", help="(%(default)s)")
    add("--timeout", type=positive_number, default=1800.0, metavar="S", help="of one run (%(default)g)")


def _add_sustained(group: Any) -> None:
    add = group.add_argument
    add("--goal", type=positive_number, default=2.0, metavar="S", help="p95 at most (%(default)g)")
    add("--seconds", type=positive_number, default=60.0, metavar="S", help="that count (%(default)g)")
    add("--warmup", type=positive_number, default=10.0, metavar="S", help="that do not (%(default)g)")
    add("--rate-from", type=positive_number, default=25_000.0, metavar="N", help="events/s (%(default)g)")
    add(
        "--halvings",
        type=positive_int,
        default=2,
        metavar="N",
        help="how often the gap between what holds and what does not is halved (%(default)s)",
    )
    add("--trigger", default="500 milliseconds", metavar="TIME", help="of all contenders (%(default)s)")
    add("--file-events", type=positive_int, default=FILE_EVENTS, metavar="N", help="(%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    import sys

    from rich.console import Console

    from tidegate_lab.bench.nexmark.processes import Machine, Processes

    console = Console(file=sys.stderr if arguments.json == "-" else sys.stdout, highlight=False)
    contenders = _contenders(arguments)
    with TemporaryDirectory(prefix="tidegate-nexmark-", dir=arguments.temp) as temporary:
        folder = Path(temporary)
        machine = Machine(arguments.memory, arguments.flink, arguments.flink_checkpoints or 1.0)
        processes = Processes(machine, folder / "contenders")
        mode = _all_at_once if arguments.mode == ALL_AT_ONCE else _sustained
        rows, bars, complaints = mode(arguments, contenders, processes, folder, console)
    tell_bars(console, f"bench nexmark --mode {arguments.mode}", arguments, rows, bars)
    if arguments.plot is not None:
        _draw(arguments, rows)
    for text in complaints:
        console.print(f"FAILED: {text}", markup=False)
    return DIFFERENT_RESULTS if complaints else 0


def _contenders(arguments: argparse.Namespace) -> list[str]:
    asked: list[str] = arguments.contenders or [
        *ON_SPARK,
        *(["flink"] if arguments.flink else []),
        *(["flink-checkpoints"] if arguments.flink and arguments.flink_checkpoints else []),
    ]
    flinks = [name for name in asked if name not in ON_SPARK]
    if flinks and not arguments.flink:
        raise FlowError(
            f"{flinks[0]} needs an interpreter of its own",
            code="LAB_ENGINE_PYTHON_MISSING",
            do="Give --flink PYTHON as well, where PYTHON has apache-flink==2.3.0",
        )
    return asked if arguments.mode == ALL_AT_ONCE else [name for name in asked if name in ON_SPARK]


Found = tuple[list[dict[str, Any]], "list[Bar]", list[str]]


def _all_at_once(
    arguments: argparse.Namespace, contenders: list[str], processes: Processes, folder: Path, console: Console
) -> Found:
    from tidegate_lab.bench.nexmark.bars import turn_bars, turn_rows
    from tidegate_lab.bench.nexmark.turns import Settings, run_turns
    from tidegate_lab.workloads.nexmark.events import Events

    per_file = min(arguments.batch_events, arguments.events)
    settings = Settings(
        Events(per_file, arguments.event_rate, arguments.seed),
        arguments.events // per_file,
        max(2, arguments.rounds),
        arguments.sink == "parquet",
        arguments.timeout,
    )
    lines = run_turns(arguments.queries, contenders, settings, processes, folder, _teller(console))
    rows = turn_rows(lines)
    heads = ("query", "contender", "rate", "seconds", "right", "trouble")
    shown = [{**row, "right": {True: "yes", False: "NO"}.get(row["right"], "-")} for row in rows]
    print_figures(console, "events a second, seconds of the run; the warm round", heads, shown, left=2)
    complaints = [f"{x.query}: {x.contender} gave another result" for x in lines if x.right is False]
    complaints += [f"{x.query}: {x.contender}: {x.trouble}" for x in lines if x.trouble and not x.absent]
    return rows, turn_bars(lines, per_file), complaints


def _sustained(
    arguments: argparse.Namespace, contenders: list[str], processes: Processes, folder: Path, console: Console
) -> Found:
    from tidegate_lab.bench.nexmark.bars import sustained_bars, sustained_rows
    from tidegate_lab.bench.nexmark.search import Conditions, run_searches
    from tidegate_lab.workloads.nexmark.events import Events

    conditions = Conditions(
        Events(arguments.file_events, arguments.event_rate, arguments.seed),
        arguments.rate_from,
        arguments.halvings,
        arguments.goal,
        arguments.warmup,
        arguments.seconds,
        arguments.trigger,
    )
    searches = run_searches(arguments.queries, contenders, conditions, processes, folder, _teller(console))
    rows = sustained_rows(searches)
    title = f"highest rate with p95 of at most {arguments.goal:g} s, events a second"
    print_figures(console, title, ("query", "contender", "rate", "trouble"), rows, left=2)
    complaints = [f"{one.query}: {one.contender}: {one.trouble}" for one in searches if one.trouble]
    return rows, sustained_bars(searches), complaints


def _teller(console: Console) -> Callable[[str], None]:
    from tidegate.cli.demo.outcome import say

    return lambda text: say(console, "  " + text)


def _draw(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    from tidegate_lab.bench.nexmark.plot import rates_plot
    from tidegate_lab.plots.drawing import draw

    file: Path = arguments.plot
    subtitles = {
        ALL_AT_ONCE: f"{arguments.events:,} events, {arguments.batch_events:,} a batch; two cores",
        SUSTAINED: f"highest rate with p95 of at most {arguments.goal:g} s; two cores",
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    draw(rates_plot(file.stem, rows, subtitles[arguments.mode]), file.parent)
