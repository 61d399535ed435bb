"""Window aggregates: this engine and Spark's own streaming aggregation, on the same rows, in one run.

sliding    windows of 60 s, a new one every second, 1,000 groups
tumbling   windows of 10 s, 1,000,000 groups
drop       windows of 0.1 s, 1,000,000 groups, four times the rows, so that overhead is little of a batch:
           none or every other one dropped, in rounds, one after the other
ratio-N    the cost of overlap: windows of N seconds, a new one every second, 100 groups
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tidegate.cli.arguments import positive_int, whole_number
from tidegate_lab.commands.arguments import listed, name_among
from tidegate_lab.commands.console import console_beside_spark

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate_lab.bench.windows.run import Run

HEADS = ("scenario", "contender", "rate", "seconds", "mean", "fastest", "slowest", "dropped")
CONTENDERS = ("tidegate", "spark", "spark-rocksdb")
RATIO = "ratio-"
SCENARIOS = "sliding,tumbling,drop,ratio-1,ratio-600"
#: How often the contenders of `drop` take turns, after some runs that do not count: their differences are
#: small, and whoever comes first meets a Java that has not compiled everything yet.
ROUNDS = 3
UNCOUNTED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    contenders = name_among(*CONTENDERS)
    add("--scenarios", type=listed(_scenario), default=SCENARIOS, metavar="A,B", help="(%(default)s)")
    add(
        "--contenders",
        type=listed(contenders),
        default=",".join(CONTENDERS),
        metavar="A,B",
        help="(%(default)s)",
    )
    add("--rows", type=positive_int, default=1_000_000, metavar="N", help="of a batch (%(default)s)")
    add("--batches", type=positive_int, default=14, metavar="N", help="of ours (%(default)s)")
    add("--spark-batches", type=positive_int, default=6, metavar="N", help="of Spark's own (%(default)s)")
    add("--seed", type=whole_number, default=7, metavar="N", help="same seed, same rows (%(default)s)")
    add("--temp", type=Path, metavar="DIR", help="where data goes, and is removed (the system's)")
    add("--json", metavar="FILE", help="write all figures and samples; - for standard output")


def _scenario(text: str) -> str:
    name = name_among("sliding", "tumbling", "drop", RATIO)(text)
    seconds = name.removeprefix(RATIO)
    if seconds != name and not (seconds.isdecimal() and int(seconds)):
        raise argparse.ArgumentTypeError(f"the N of ratio-N is a whole number of at least 1. Got: {text}")
    return name


def run(arguments: argparse.Namespace) -> int:
    from tidegate.observe.json_frame import Frame, write_frame
    from tidegate.observe.table import print_table
    from tidegate_lab.bench.windows.bars import rows_of_report, window_bars
    from tidegate_lab.plots.bars import print_bars

    with console_beside_spark(arguments.json) as console:
        runs = _runs(arguments, console)
    rows, bars = rows_of_report(runs), window_bars(runs)
    table = [tuple(_told(row[name]) for name in HEADS) for row in rows]
    print_table(
        console,
        "rows a second; seconds of a batch: usual, mean, fastest and slowest; part of the rows dropped",
        HEADS,
        table,
        left=2,
    )
    print_bars(console, bars)
    if arguments.json is not None:
        write_frame(Frame("bench windows", arguments.seed, rows, bars), arguments.json)
    return 0


def _runs(arguments: argparse.Namespace, console: Console) -> list[Run]:
    from dataclasses import replace

    from tidegate.cli.demo.outcome import say
    from tidegate.driver.session import embedded_session
    from tidegate_lab.bench.windows.feed import FILES, Scenario
    from tidegate_lab.bench.windows.run import HALF, OURS, READY, play

    known = {
        "sliding": Scenario(
            "sliding", 60_000, 1_000, 1_000, arguments.rows, arguments.batches, arguments.seed
        ),
        "tumbling": Scenario(
            "tumbling", 10_000, 10_000, 1_000_000, arguments.rows, arguments.batches, arguments.seed
        ),
        "drop": Scenario("drop", 100, 100, 1_000_000, 4 * arguments.rows, arguments.batches, arguments.seed),
    }
    session = embedded_session("tidegate bench windows", cores=2, memory="6g")
    runs: list[Run] = []
    try:
        with TemporaryDirectory(prefix="tidegate-windows-", dir=arguments.temp) as temporary:
            for name in arguments.scenarios:
                ratio = name.startswith(RATIO)
                size = int(name.removeprefix(RATIO)) if ratio else 0
                scenario = known.get(name) or Scenario(
                    name, size * 1_000, 1_000, 100, arguments.rows, arguments.batches, arguments.seed
                )
                folder = Path(temporary) / name
                scenario.write(folder)
                # Spark's own would take minutes for a batch whose rows lie in six hundred windows each.
                contenders = [OURS] if ratio else arguments.contenders
                if name == "drop":
                    contenders = _turns((OURS, READY, HALF))
                for number, contender in enumerate(contenders):
                    ours = contender.startswith(OURS)
                    batches = scenario.batches if ours else arguments.spark_batches
                    limited = Path(temporary) / f"{name}-{number}"
                    limited.mkdir()
                    for file in sorted(folder.iterdir())[: FILES * batches]:
                        (limited / file.name).hardlink_to(file)
                    shortened = replace(scenario, batches=batches)
                    one = play(session, limited, shortened, contender, Path(temporary), number)
                    say(console, f"{name}: {contender} {one.usual:.2f} s a batch")
                    if name != "drop" or number >= UNCOUNTED:
                        runs.append(one)
    finally:
        session.stop()
    return runs


def _turns(contenders: tuple[str, ...]) -> list[str]:
    """Rounds, each begun by another one, behind some runs that do not count."""
    rounds = [contenders[i % len(contenders) :] + contenders[: i % len(contenders)] for i in range(ROUNDS)]
    return [*contenders[:UNCOUNTED], *(one for turn in rounds for one in turn)]


def _told(value: object) -> str:
    return f"{value:,.3g}" if isinstance(value, float) else str(value)
