"""Side-by-side speed in one run: the same generated rows through this engine and through others, in turns.

`tidegate bench join` compares with Spark's own stream-stream join (state in memory; RocksDB, formats 2 and
4), with the floor (the same scan, shuffle and hand-over, and a kernel that does nothing), with DuckDB joining
the finished data, and with Flink and Pathway where an interpreter has them. All must give the same pairs, or
the command fails. Contenders run one at a time in processes of their own, on two cores, with two shuffle
partitions; Spark's own engines get 14 GiB of heap for their state.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tidegate.cli.arguments import positive_int, positive_number, whole_number
from tidegate.errors import FlowError

if TYPE_CHECKING:
    from tidegate.observe.json_frame import Bar
    from tidegate_lab.bench.join.rounds import Settings
    from tidegate_lab.bench.join.scenarios import Options, Scenario

DIFFERENT_RESULTS = 1
SCENARIOS = (
    "default",
    "hundred-thousand",
    "million",
    "wide-rows",
    "fixed-cost",
    "long-stream",
    "long-window",
    "bars",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_work(parser.add_argument_group("what is joined (scenario default)"))
    _add_runs(parser.add_argument_group("how it is run"))


def _add_work(group: Any) -> None:
    add = group.add_argument
    add(
        "--rows-per-batch",
        type=positive_int,
        default=100_000,
        metavar="N",
        help="of both streams (%(default)s)",
    )
    add("--keys", type=positive_int, default=1_000_000, metavar="N", help="distinct keys (%(default)s)")
    add("--zipf", type=float, default=0.0, metavar="X", help="skew of the keys; 0 is uniform (%(default)s)")
    add("--window", type=positive_number, default=10.0, metavar="S", help="±seconds (%(default)g)")
    add(
        "--batch-seconds",
        type=positive_number,
        default=1.0,
        metavar="S",
        help="event time a batch (%(default)g)",
    )
    add(
        "--row-bytes",
        type=positive_int,
        default=24,
        metavar="N",
        help="24, or more with a payload (%(default)s)",
    )
    add(
        "--batches", type=positive_int, metavar="N", help="timed batches of a round (12; 6 at a million rows)"
    )
    add("--warmup", type=whole_number, metavar="N", help="batches before (as many as fill the window, and 2)")
    add("--seed", type=whole_number, default=7, metavar="N", help="same seed, same rows (%(default)s)")


def _add_runs(group: Any) -> None:
    add = group.add_argument
    add(
        "--scenario",
        choices=SCENARIOS,
        default="default",
        help="`bars` runs every figure asked for (%(default)s)",
    )
    add("--engines", metavar="A,B", help="only these, of: " + ", ".join(_engines()))
    add(
        "--rounds",
        type=positive_int,
        metavar="N",
        help="how often contenders take turns (3; 2 at a million rows)",
    )
    add(
        "--empty-batches",
        type=positive_int,
        metavar="N",
        help="also time N batches of 1,000 rows, as scenario fixed-cost does with 1,000 of them",
    )
    add("--timeout", type=positive_number, default=3600.0, metavar="S", help="of one run (%(default)g)")
    add("--heap", default="14g", metavar="SIZE", help="of Spark's own engines and Flink (%(default)s)")
    add("--heap-ours", default="4g", metavar="SIZE", help="of this engine and the floor (%(default)s)")
    add("--flink-python", metavar="PATH", help="interpreter that can import pyflink")
    add("--pathway-python", metavar="PATH", help="interpreter that can import pathway")
    add(
        "--scale", type=positive_number, default=1.0, metavar="X", help="dry run: sizes of a scenario times X"
    )
    add(
        "--temp",
        type=Path,
        metavar="DIR",
        help="where data and checkpoints go, and are removed (the system's)",
    )
    add("--json", metavar="FILE", help="write all figures and samples; - for standard output")


def _engines() -> tuple[str, ...]:
    from tidegate_lab.bench.join.spec import ENGINES

    return ENGINES


def run(arguments: argparse.Namespace) -> int:
    """Run the scenarios one after the other; the JSON is written anew after each, so little is ever lost."""
    from rich.console import Console

    from tidegate.cli.demo.outcome import say
    from tidegate.observe.json_frame import Frame, write_frame
    from tidegate_lab.bench.join.rounds import Arena, disagreements, unconfirmed
    from tidegate_lab.bench.join.summary import rows_of_report
    from tidegate_lab.bench.join.tables import print_rows
    from tidegate_lab.plots.bars import print_bars

    console = Console(file=sys.stderr if arguments.json == "-" else sys.stdout, highlight=False)
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    complaints: list[str] = []
    for scenario in _scenarios(arguments):
        say(console, f"Scenario {scenario.name}")
        with TemporaryDirectory(prefix="tidegate-bench-", dir=arguments.temp) as folder:
            settings = _settings(arguments, scenario)
            arena = Arena(Path(folder), settings, lambda text: say(console, "  " + text))
            lines = arena.run_rounds(scenario.entries)
        complaints += [f"{scenario.name}: {text}" for text in disagreements(lines)]
        for engine in unconfirmed(lines):
            say(console, f"  the pairs of {engine} could not be compared with any other engine's")
        rows += rows_of_report(scenario.name, lines)
        bars += scenario.bars(lines)
        print_rows(console, scenario.name, [row for row in rows if row["scenario"] == scenario.name])
        if arguments.json not in (None, "-"):
            write_frame(Frame("bench join", arguments.seed, rows, bars), arguments.json)
    print_bars(console, bars)
    if arguments.json == "-":
        write_frame(Frame("bench join", arguments.seed, rows, bars), "-")
    for text in complaints:
        say(console, f"FAILED: {text}")
    return DIFFERENT_RESULTS if complaints else 0


def _scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    from tidegate_lab.bench.join.scenarios import NAMED, default

    options = _options(arguments)
    if arguments.scenario == "bars":
        return [make(options) for make in NAMED.values()]
    chosen = [default(options) if arguments.scenario == "default" else NAMED[arguments.scenario](options)]
    if arguments.empty_batches and arguments.scenario != "fixed-cost":
        chosen.append(NAMED["fixed-cost"](options))
    return chosen


def _options(arguments: argparse.Namespace) -> Options:
    from tidegate_lab.bench.join.scenarios import Options

    return Options(
        rows_per_batch=arguments.rows_per_batch,
        keys=arguments.keys,
        zipf=arguments.zipf,
        window_ms=round(arguments.window * 1000),
        batch_ms=round(arguments.batch_seconds * 1000),
        row_bytes=arguments.row_bytes,
        batches=arguments.batches,
        warmup=arguments.warmup,
        engines=_chosen_engines(arguments),
        empty_batches=arguments.empty_batches or 1000,
        scale=arguments.scale,
        seed=arguments.seed,
    )


def _chosen_engines(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Those asked for; Flink and Pathway only with an interpreter to import them from."""
    known = _engines()
    elsewhere = {"flink": arguments.flink_python, "pathway": arguments.pathway_python}
    if arguments.engines is None:
        return tuple(name for name in known if elsewhere.get(name, "here"))
    asked = tuple(name.strip() for name in arguments.engines.split(","))
    for name in asked:
        if name not in known:
            raise FlowError(
                "Unknown engine", code="LAB_ENGINE_UNKNOWN", got=name, do="Use some of " + ", ".join(known)
            )
        if not elsewhere.get(name, "here"):
            raise FlowError(
                f"{name} needs an interpreter of its own",
                code="LAB_ENGINE_PYTHON_MISSING",
                do=f"Give --{name}-python PATH as well",
            )
    return asked


def _settings(arguments: argparse.Namespace, scenario: Scenario) -> Settings:
    from tidegate_lab.bench.join.rounds import Settings

    pythons = {"flink": arguments.flink_python, "pathway": arguments.pathway_python}
    return Settings(
        rounds=arguments.rounds or scenario.rounds,
        timeout_seconds=arguments.timeout,
        heap_others=arguments.heap,
        heap_ours=arguments.heap_ours,
        pythons={name: path for name, path in pythons.items() if path},
    )
