"""A flow in words, for `repr` and `explain`: the operator first, its inputs below it.

inner join orders_tracks_cell on cell, within -5 minutes … 1 minute
├─ filter
│  └─ stream orders: time ts, lateness 10 seconds
└─ stream tracks: time ts, lateness 10 seconds
"""

from __future__ import annotations

from tidegate.api.nodes import (
    Join,
    Match,
    Node,
    OperatorNode,
    Refused,
    Source,
    StatelessStep,
    Union,
    Window,
    name_of,
)
from tidegate.join.within import Tumbling, Unbounded
from tidegate.quantities import duration_text
from tidegate.window.spec import RowsSpec


def described(node: Node) -> str:
    """The flow behind a node, as a tree."""
    lines = [_line(node)]
    for number, parent in enumerate(node.inputs):
        last = number == len(node.inputs) - 1
        first, *rest = described(parent).splitlines()
        lines.append(("└─ " if last else "├─ ") + first)
        lines += [("   " if last else "│  ") + line for line in rest]
    return "\n".join(lines)


def summary(node: Node) -> str:
    """One line about a node, with the steps between it and its source or operator."""
    steps: list[str] = []
    while isinstance(node, StatelessStep):
        steps.append(node.kind)
        node = node.parent
    behind = f", then {', '.join(reversed(steps))}" if steps else ""
    return _line(node) + behind


def _line(node: Node) -> str:
    if isinstance(node, StatelessStep):
        return node.kind
    if isinstance(node, Source):
        return f"stream {node.name}: time {node.time}, lateness {duration_text(node.lateness_us)}"
    if isinstance(node, Refused):
        return f"{node.kind} rows"
    return f"{_operator(node)}"


def _operator(node: OperatorNode) -> str:
    name = name_of(node)
    if isinstance(node, Join):
        return f"{node.how} join {name}{_on(node)}{_time(node)}"
    if isinstance(node, Window):
        by = f" by {', '.join(node.by)}" if node.by else ""
        return f"window {name} of {_size(node)}{by}: {', '.join(one for one, _ in node.aggregates)}"
    if isinstance(node, Match):
        return f"match {name} of {len(node.queries)} range queries"
    if isinstance(node, Union):
        return f"union {name} by name" + (", missing columns null" if node.allow_missing_columns else "")
    return f"{node.label} {name}"


def _on(node: Join) -> str:
    keys = [str(key) for key in node.keys]
    if node.condition is not None:
        keys.append(node.condition.describe())
    return f" on {', '.join(keys)}" if keys else ""


def _time(node: Join) -> str:
    within = node.within
    if isinstance(within, Unbounded):
        return ", full history"
    if isinstance(within, Tumbling):
        return f", same window of {duration_text(within.size_us)}"
    return f", within {duration_text(within.lower_us)} … {duration_text(within.upper_us)}"


def _size(node: Window) -> str:
    spec = node.spec
    if isinstance(spec, RowsSpec):
        return f"{spec.size} rows, slide {spec.slide}"
    slide = "" if spec.slide_us == spec.size_us else f", slide {duration_text(spec.slide_us)}"
    offset = f", offset {duration_text(spec.offset_us)}" if spec.offset_us else ""
    return duration_text(spec.size_us) + slide + offset
