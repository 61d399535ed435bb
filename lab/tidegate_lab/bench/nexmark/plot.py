"""The picture of a run: the rate of every contender on every query, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate_lab.plots.plots import Curve, Panel, Plot

#: The same contender has the same colour everywhere.
COLOURS = {"tidegate": 0, "spark-memory": 1, "spark-rocksdb": 4, "flink": 2, "flink-checkpoints": 3}


def rates_plot(name: str, rows: Sequence[Mapping[str, Any]], subtitle: str) -> Plot:
    """Of the rows of a report; a contender without a rate on a query has no point there."""
    queries = list(dict.fromkeys(str(row["query"]) for row in rows))
    curves = []
    for contender, colour in COLOURS.items():
        points = [
            (float(queries.index(row["query"])), row["rate"] / 1000)
            for row in rows
            if row["contender"] == contender and row["rate"]
        ]
        if points:
            x, y = zip(*points, strict=True)
            curves.append(Curve(contender, x, y, "points", colour=colour))
    ticks = [(float(place), query) for place, query in enumerate(queries)]
    panel = Panel("query", "thousand events a second (log scale)", curves, ticks=ticks, y_log=True)
    return Plot(name, "Nexmark", subtitle, [panel], columns=1)
