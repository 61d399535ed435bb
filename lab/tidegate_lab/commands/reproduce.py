"""Reruns a paper's experiment: what the paper said next to what we measured, and a plot per figure.

Everything runs on the stages, without Spark: cost is counted under a simulated clock and not timed, so the
same seeds give the same figures on every machine (but for figures that are about time itself). With --spark
figures of window drop are timed on Spark. The exit code says whether the experiment ran, not whether we agree
with the paper: the table says that, line by line.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tidegate.cli.arguments import positive_int, whole_number
from tidegate.errors import FlowError
from tidegate_lab.commands.real_data import add_real_argument, data_folder

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.observe.json_frame import Bar
    from tidegate_lab.reproduce.experiment import Experiment, Figure, Line, Options

NAMES = ("selective-join", "sifters", "fastjoin", "ls-stream", "window-drop")
QUICK_SEEDS = 1
HEADS = ("figure", "what", "paper said", "we measured", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", choices=NAMES, help="the paper")
    add(
        "--figure",
        action="append",
        metavar="N",
        help="only this one (may be repeated): a figure's number, or `beyond` for what goes beyond the paper",
    )
    add("--seed", type=whole_number, default=0, metavar="N", help="the first seed (%(default)s)")
    add(
        "--seeds",
        type=positive_int,
        metavar="N",
        help=f"so many; medians are told (5, for sifters 20, with --quick {QUICK_SEEDS})",
    )
    add(
        "--quick",
        action="store_true",
        help="short runs at low rates: the shape of things, no figures to quote",
    )
    add_real_argument(parser, "on real data")
    add("--spark", action="store_true", help="window-drop: on Spark, by the clock (the figures that can be)")
    add("--out", type=Path, metavar="DIR", help="where the plots go (./reproduce-NAME)")
    add("--json", metavar="FILE", help="write all figures and samples; - for standard output")


def run(arguments: argparse.Namespace) -> int:
    """Figure by figure; the JSON is written anew after each, so little is ever lost."""
    from rich.console import Console

    from tidegate.cli.demo.outcome import say
    from tidegate.observe.json_frame import Frame, write_frame
    from tidegate_lab.plots.bars import print_bars
    from tidegate_lab.plots.drawing import draw
    from tidegate_lab.reproduce.experiment import QUICK_MARK
    from tidegate_lab.reproduce.registry import experiment

    console = Console(file=sys.stderr if arguments.json == "-" else sys.stdout, highlight=False)
    asked = experiment(arguments.name)
    options = _options(arguments, asked)
    folder = arguments.out or Path(f"reproduce-{arguments.name}")
    lines: list[Line] = []
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    for figure in _figures(asked, arguments.figure, options, arguments.spark):
        say(console, f"{_title(figure)}: {figure.shows} …")
        started = perf_counter()
        outcome = figure.measure(options)
        pictures = [str(draw(plot, folder)) for plot in outcome.plots]
        say(console, f"  {perf_counter() - started:.0f} s; {', '.join(pictures) or 'no plot'}")
        lines += outcome.lines
        bars += [replace(bar, id=bar.id + QUICK_MARK) if options.quick else bar for bar in outcome.bars]
        rows += [line.to_json() for line in outcome.lines]
        rows += [{"figure": figure.name, **plot.to_json()} for plot in outcome.plots]
        rows += [dict(row) for row in outcome.rows]
        if arguments.json not in (None, "-"):
            write_frame(Frame(f"reproduce {arguments.name}", arguments.seed, rows, bars), arguments.json)
    _print_lines(console, asked, lines, options)
    print_bars(console, bars)
    if arguments.json == "-":
        write_frame(Frame(f"reproduce {arguments.name}", arguments.seed, rows, bars), "-")
    return 0


def _options(arguments: argparse.Namespace, asked: Experiment) -> Options:
    from tidegate_lab.reproduce.experiment import Options

    number = arguments.seeds or (QUICK_SEEDS if arguments.quick else asked.seeds)
    seeds = tuple(range(arguments.seed, arguments.seed + number))
    return Options(seeds, arguments.quick, None if arguments.real is None else data_folder(arguments.real))


def _figures(asked: Experiment, names: list[str] | None, options: Options, spark: bool) -> list[Figure]:
    """Those asked for, by default all; with real data, or on Spark, the ones that can be measured there."""
    figures = asked.figures if options.real is None else asked.real
    if spark:
        figures = _on_spark(asked)
    known = {figure.name: figure for figure in figures}
    for name in names or ():
        if name not in known:
            raise FlowError(
                f"{asked.name} has no such figure to measure",
                code="LAB_FIGURE_UNKNOWN",
                got=name,
                do="Use one of " + ", ".join(known),
            )
    return [figure for figure in figures if names is None or figure.name in names]


def _on_spark(asked: Experiment) -> tuple[Figure, ...]:
    if asked.name != "window-drop":
        raise FlowError(
            f"The figures of {asked.name} are measured without Spark",
            code="LAB_FIGURE_WITHOUT_SPARK",
            do="Leave --spark out; `tidegate bench` measures all mechanisms on Spark",
        )
    from tidegate_lab.reproduce.window_drop.on_spark import figures

    return figures()


def _title(figure: Figure) -> str:
    return f"Figure {figure.name}" if figure.name.isdigit() else figure.name.capitalize()


def _print_lines(console: Console, asked: Experiment, lines: list[Line], options: Options) -> None:
    from tidegate.observe.table import print_table

    verdict = {True: "agrees", False: "differs", None: ""}
    table = [(line.figure, line.claim, line.paper, line.measured, verdict[line.agrees]) for line in lines]
    title = f"{asked.paper}: paper said / we measured ({options.seeds_text}, least to most in brackets)"
    print_table(console, title, HEADS, table, left=5)
