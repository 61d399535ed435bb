"""Bars: a measurement with its target, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.observe.json_frame import Bar

if TYPE_CHECKING:
    from rich.console import Console


def at_most(id: str, value: float | None, unit: str, target: float) -> Bar:
    return Bar(id, value, unit, f"<= {target:g}", value is not None and value <= target)


def at_least(id: str, value: float | None, unit: str, target: float) -> Bar:
    return Bar(id, value, unit, f">= {target:g}", value is not None and value >= target)


def print_bars(console: Console, bars: Sequence[Bar]) -> None:
    """One line a bar; nothing at all where there is none."""
    from tidegate.observe.table import print_table

    if bars:
        table = [
            (bar.id, "-" if bar.value is None else f"{bar.value:.3g} {bar.unit}", bar.target, _met(bar))
            for bar in bars
        ]
        print_table(console, "bars", ("bar", "measured", "target", ""), table)


def _met(bar: Bar) -> str:
    if bar.value is None:
        return "not measured"
    return "holds" if bar.holds else "MISSED"
