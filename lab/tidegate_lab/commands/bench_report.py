"""What all benchmarks of `tidegate bench` share: their last arguments, and how their figures are told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.cli.arguments import whole_number

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.observe.json_frame import Bar


def add_usual_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seed", type=whole_number, default=7, metavar="N", help="same seed, same rows (%(default)s)")
    add("--temp", type=Path, metavar="DIR", help="where data goes, and is removed (the system's)")
    add("--json", metavar="FILE", help="write all figures and samples; - for standard output")


def tell_bars(
    console: Console,
    command: str,
    arguments: argparse.Namespace,
    rows: list[dict[str, Any]],
    bars: list[Bar],
) -> None:
    """The bars, and where the user wants them all figures as JSON."""
    from tidegate.observe.json_frame import Frame, write_frame
    from tidegate_lab.plots.bars import print_bars

    print_bars(console, bars)
    if arguments.json is not None:
        write_frame(Frame(command, arguments.seed, rows, bars), arguments.json)


def print_figures(
    console: Console, title: str, heads: Sequence[str], rows: Sequence[dict[str, Any]], *, left: int = 1
) -> None:
    """Some columns of the rows; numbers to three digits."""
    from tidegate.observe.table import print_table

    table = [tuple(figure(row[head]) for head in heads) for row in rows]
    print_table(console, title, heads, table, left=left)


def figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
