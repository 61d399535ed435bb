"""The tables that `tidegate bench join` prints; the JSON has the same figures under their full names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from tidegate.observe import units
from tidegate.observe.table import print_table

HEADS = (
    "engine",
    "rows/batch",
    "rows/s",
    "batch median",
    "batch p95",
    "state B/row",
    "peak memory",
    "GC share",
    "tidegate is",
)


def print_rows(console: Console, name: str, rows: list[dict[str, Any]]) -> None:
    table = []
    for row in rows:
        ratio = row["tidegate_speedup"]
        dead = "died" if row["died"] else "absent" if row["absent"] else None
        engine = f"{row['engine']} ±{row['window_seconds']:g} s, {units.count(row['keys'])} keys"
        table.append(
            (
                engine,
                units.count(row["rows_per_batch"]),
                dead or cell(row["rows_per_second"], units.count),
                cell(row["batch_seconds_median"], units.seconds),
                cell(row["batch_seconds_p95"], units.seconds),
                cell(row["state_bytes_per_row"], units.count),
                cell(row["peak_memory_bytes"] or None, units.size),
                cell(row["gc_share"], lambda share: f"{share:.0%}"),
                cell(ratio, lambda r: f"{r['median']:.1f}x faster ({r['min']:.1f} to {r['max']:.1f})"),
            )
        )
    print_table(console, name, HEADS, table)


def cell(value: Any, show: Callable[[Any], str]) -> str:
    return "-" if value is None else show(value)
