"""`tidegate bench overload --scenario day`: one scripted day in minutes, under several contenders."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tidegate_lab.commands.console import console_beside_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from tidegate_lab.bench.day.contenders import Start
    from tidegate_lab.bench.day.recorded import Recorded
    from tidegate_lab.bench.day.turns import Second
    from tidegate_lab.workloads.day import Day
    from tidegate_lab.workloads.day_answer import Answer

QUICK_SECONDS, QUICK_RATE = 16.0, 300.0
#: Seconds of rows that queries with and without a goal take in turns.
CALM_SECONDS = 192.0
COLUMNS = (
    "contender",
    "latency_p50",
    "latency_p95",
    "rows_in_time",
    "recall_in_time",
    "lost_too_late",
    "lost_never",
    "answer_at_the_end",
)


def run(arguments: argparse.Namespace) -> int:
    from tidegate.cli.demo.outcome import say
    from tidegate.observe.json_frame import Frame, write_frame
    from tidegate_lab.bench.day.bars import day_bars, rows_of_report
    from tidegate_lab.bench.day.contenders import CONTENDERS, GOAL_SECONDS
    from tidegate_lab.bench.day.plot import day_plot
    from tidegate_lab.bench.join.bars import marked
    from tidegate_lab.plots.bars import print_bars
    from tidegate_lab.plots.drawing import draw

    starts = {name: CONTENDERS[name] for name in arguments.contenders}
    with console_beside_spark(arguments.json) as console:
        day = _day(arguments, console)
        answer, runs, calm = _played(arguments, day, starts, console)
    rows = rows_of_report(runs, answer, calm, GOAL_SECONDS)
    # A day that is too short to settle says nothing about how fast it does.
    bars = marked(day_bars(runs, answer, calm, GOAL_SECONDS), 0 if arguments.quick else 1)
    _print_rows(console, rows[: len(runs)])
    print_bars(console, bars)
    picture = draw(day_plot(runs, answer, GOAL_SECONDS), arguments.plots)
    say(console, f"Picture: {picture}")
    if arguments.json is not None:
        write_frame(Frame("bench overload", arguments.seed, rows, bars), arguments.json)
    return 0


def _day(arguments: argparse.Namespace, console: Console) -> Day:
    from tidegate_lab.bench.day.capacity import calm_rate
    from tidegate_lab.workloads.day import scripted

    if arguments.quick:
        return scripted(QUICK_SECONDS, arguments.rate or QUICK_RATE, arguments.seed)
    rate = arguments.rate or calm_rate(arguments.seed, arguments.temp, _teller(console))
    return scripted(60 * arguments.minutes, rate, arguments.seed)


def _played(
    arguments: argparse.Namespace, day: Day, starts: Mapping[str, Start], console: Console
) -> tuple[Answer, dict[str, Recorded], list[Second]]:
    """The exact answer, the day of every contender, and calm with and without a goal."""
    from tidegate.cli.demo.outcome import say
    from tidegate_lab.bench.day.bars import OURS
    from tidegate_lab.bench.day.feed import prepare
    from tidegate_lab.bench.day.run import play
    from tidegate_lab.workloads.day import streams_of
    from tidegate_lab.workloads.day_answer import exact_answer

    answer = exact_answer(day, *streams_of(day))
    say(console, f"{day.seconds:.0f} s, {day.calm_rate:,.0f} rows/s of each stream in calm: ")
    say(console, f"{answer.results.sum():,} results among {answer.pairs.sum():,} pairs")
    runs: dict[str, Recorded] = {}
    with TemporaryDirectory(prefix="tidegate-feed-", dir=arguments.temp) as folder:
        feed = prepare(day, Path(folder))
        for name, start in starts.items():
            say(console, name)
            runs |= play(feed, {name: start}, arguments.temp, _teller(console))
    return answer, runs, _calm(arguments, day, console) if OURS in starts and not arguments.quick else []


def _calm(arguments: argparse.Namespace, day: Day, console: Console) -> list[Second]:
    from tidegate.cli.demo.outcome import say
    from tidegate_lab.bench.day.bars import OURS, WITHOUT_GOAL
    from tidegate_lab.bench.day.contenders import with_goal_at_once, without_goal_at_once
    from tidegate_lab.bench.day.turns import take_turns
    from tidegate_lab.workloads.day import Day, Segment

    say(console, "calm, with and without a goal, in turns")
    calm = Day(day.calm_rate, (Segment("calm", CALM_SECONDS),), day.window_seconds, day.seed)
    queries = {OURS: with_goal_at_once, WITHOUT_GOAL: without_goal_at_once}
    return take_turns(calm, queries, arguments.temp, _teller(console))


def _teller(console: Console) -> Callable[[str], None]:
    from tidegate.cli.demo.outcome import say

    return lambda text: say(console, "  " + text)


def _print_rows(console: Console, rows: list[dict[str, Any]]) -> None:
    from tidegate.observe.table import print_table

    def text(value: object) -> str:
        return f"{value:,.3g}" if isinstance(value, float) else str(value)

    table = [tuple(text(row[name]) for name in COLUMNS) for row in rows]
    print_table(console, "the day: seconds, and parts of all rows and results", COLUMNS, table)
