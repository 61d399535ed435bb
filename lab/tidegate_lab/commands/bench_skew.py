"""A join over skewed streams under every balancing strategy, on an embedded Spark.

Each workload's rows are the same for all strategies, which take turns in one session, a few batches each.
Instances are Spark tasks whose processor time is measured; throughput is rows over the time of the heaviest
instance, which is what as many one-core machines would give. The time of a batch on this machine is told
beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tidegate.api.balance import STRATEGIES as KNOWN
from tidegate.cli.arguments import positive_int, positive_number
from tidegate_lab.commands.arguments import listed, name_among
from tidegate_lab.commands.bench_report import add_usual_arguments, print_figures, tell_bars
from tidegate_lab.commands.console import console_beside_spark
from tidegate_lab.commands.real_data import add_real_argument, data_folder
from tidegate_lab.workloads.skew import GROUPS

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate_lab.bench.skew.feed import Workload
    from tidegate_lab.bench.skew.run import Run

STRATEGIES = "hash,fastjoin,ls_stream,contrand,auto"
WORKLOADS = "zipf-0,zipf-0.5,zipf-1.0,zipf-1.5,zipf-2.0,city,jump"
HEADS = (
    "workload",
    "strategy",
    "throughput",
    "imbalance",
    "total_seconds",
    "pairs",
    "moved_share",
    "migrations",
    "split_keys",
    "batch_seconds",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    strategies = listed(name_among(*KNOWN))
    workloads = listed(name_among("zipf-", "city", "jump", "taxis", *GROUPS))
    add(
        "--strategies",
        type=strategies,
        default=STRATEGIES,
        metavar="A,B",
        help="what tg.Balance takes (%(default)s)",
    )
    add(
        "--workloads",
        type=workloads,
        default=WORKLOADS,
        metavar="A,B",
        help="zipf-EXPONENT, G00 to G22, city, jump, or taxis, which are real (%(default)s)",
    )
    add("--topology", default="together", choices=("together", "biclique"), help="(%(default)s)")
    add("--instances", type=positive_int, default=8, metavar="N", help="of the join (%(default)s)")
    add("--batches", type=positive_int, default=24, metavar="N", help="of each run (%(default)s)")
    add("--pairs", type=positive_number, default=4e6, metavar="N", help="a batch, about (%(default)g)")
    add(
        "--rounds",
        type=positive_int,
        default=1,
        metavar="N",
        help="from the beginning; ratios are told by their median (%(default)s)",
    )
    add("--jump", type=positive_int, default=20, metavar="N", help="batches between jumps (%(default)s)")
    add_real_argument(parser, "taxis: San Francisco's")
    add_usual_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from tidegate_lab.bench.skew.bars import rows_of_report, skew_bars

    workloads = _workloads(arguments)
    with console_beside_spark(arguments.json) as console:
        runs = _runs(arguments, workloads, console)
    rows, bars = rows_of_report(runs), skew_bars(runs, arguments.jump)
    print_figures(console, "heaviest instance over an even share, and what follows", HEADS, rows, left=2)
    tell_bars(console, "bench skew", arguments, rows, bars)
    return 0


def _workloads(arguments: argparse.Namespace) -> list[Workload]:
    """All of them, before anything runs: real data may not be there."""
    from tidegate_lab.bench.skew.feed import TAXIS, Workload

    found = []
    for name in arguments.workloads:
        # Enough batches for two jumps.
        batches = 3 * arguments.jump if name == "jump" else arguments.batches
        real = data_folder(arguments.real) if name == TAXIS else None
        found.append(Workload(name, arguments.pairs, batches, arguments.seed, arguments.jump, real))
    return found


def _runs(
    arguments: argparse.Namespace, workloads: Sequence[Workload], console: Console
) -> dict[str, dict[str, list[Run]]]:
    from tidegate.cli.demo.outcome import say
    from tidegate.driver.session import embedded_session
    from tidegate_lab.bench.skew.feed import write
    from tidegate_lab.bench.skew.run import play

    # One task at a time: two that share a core's caches and units take longer than each by itself.
    session = embedded_session("tidegate bench skew", cores=1, memory="4g")
    runs: dict[str, dict[str, list[Run]]] = {}
    try:
        for workload in workloads:
            name = workload.name
            with TemporaryDirectory(prefix="tidegate-skew-", dir=arguments.temp) as folder:
                rows = write(Path(folder), workload.batch_codes())
                say(console, f"{name}: {len(rows)} batches of {rows[0]:,} rows")
                strategies = arguments.strategies if name != "jump" else ["auto"]
                settings = (strategies, arguments.instances, arguments.topology)
                rounds = [
                    play(session, Path(folder), name, len(rows), *settings) for _ in range(arguments.rounds)
                ]
            runs[name] = {strategy: [one[strategy] for one in rounds] for strategy in rounds[0]}
            for strategy, some in runs[name].items():
                told = ", ".join(f"{one.throughput:,.0f} rows/s {one.steady_imbalance:.2f}×" for one in some)
                say(console, f"  {strategy}: {told}")
    finally:
        session.stop()
    return runs
