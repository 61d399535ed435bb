"""`tidegate bench overload --scenario steady`: a join in a rush that does not end, policy against policy.

Two streams (the selective join paper's workload) are calm, then in a rush; `--join` says how they are joined,
and with `--uncorrelated` matches do not depend on the time between rows. All policies get the same
rows and the same goal: results at most 2 seconds after their rows, a batch every second. The first policy
runs alone, to see how late its results are; then all run side by side, to compare what is left of the output:
a machine's speed changes from minute to minute. How much it can do is measured first, so that the rush is
several times as much on any machine.
"""

from __future__ import annotations

import argparse
from math import sqrt
from typing import TYPE_CHECKING

from tidegate_lab.commands.console import console_beside_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from tidegate_lab.bench.overload.run import Run

#: The goal of the runs, as text for the query and as a number for the bars.
GOAL, GOAL_SECONDS = "2 seconds", 2.0


def run(arguments: argparse.Namespace) -> int:
    from tidegate.observe.json_frame import Frame, write_frame
    from tidegate_lab.bench.overload.bars import overload_bars, rows_of_report
    from tidegate_lab.bench.overload.capacity import rush_rate
    from tidegate_lab.plots.bars import print_bars

    with console_beside_spark(arguments.json) as console:
        rate = arguments.rate or rush_rate(arguments, _teller(console))
        alone, together = _runs(arguments, rate, console)
    rows = rows_of_report(alone, together, GOAL_SECONDS)
    bars = overload_bars(alone, together, GOAL_SECONDS)
    _print_rows(console, rows)
    print_bars(console, bars)
    if arguments.json is not None:
        write_frame(Frame("bench overload", arguments.seed, rows, bars), arguments.json)
    return 0


def _runs(arguments: argparse.Namespace, rate: float, console: Console) -> tuple[Run, dict[str, Run]]:
    """The first policy alone, for how late it is; then all of them side by side, for what they find."""
    policies = arguments.policies
    alone = _played(arguments, [policies[0]], rate, console)[policies[0]]
    # Each of n policies has an nth of the machine, and work grows with the square of the rate.
    return alone, _played(arguments, policies, rate / sqrt(len(policies)), console)


def _played(
    arguments: argparse.Namespace, policies: list[str], rate: float, console: Console
) -> dict[str, Run]:
    from tidegate.cli.demo.outcome import say
    from tidegate_lab.bench.overload.feed import Story
    from tidegate_lab.bench.overload.run import play

    # Calm is a sixteenth of the work of the rush: far below what the machine can do.
    story = Story(
        rate / 4,
        rate,
        arguments.calm,
        arguments.rush,
        seed=arguments.seed,
        join=arguments.join,
        correlated=not arguments.uncorrelated,
    )
    say(console, f"{' and '.join(policies)}: {rate / 4:,.0f} rows/s of each stream, then {rate:,.0f}")
    return play(story, policies, GOAL, arguments.temp, _teller(console))


def _teller(console: Console) -> Callable[[str], None]:
    from tidegate.cli.demo.outcome import say

    return lambda text: say(console, "  " + text)


def _print_rows(console: Console, rows: list[dict[str, object]]) -> None:
    from tidegate.observe.table import print_table

    def text(value: object) -> str:
        return f"{value:,.3g}" if isinstance(value, float) else str(value)

    names = (
        "policy",
        "setting",
        "batch_seconds",
        "latency_p95",
        "fraction",
        "budget_used",
        "work_offered",
        "pairs_per_second",
    )
    table = [tuple(text(row[name]) for name in names) for row in rows]
    print_table(console, "in the rush, from 10 s after its beginning on", names, table)
