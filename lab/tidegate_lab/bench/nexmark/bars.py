"""The targets of the Nexmark queries, each with a fixed id, and the rows of the report.

Where both contenders were run and one has no rate, because it failed, was wrong or never kept the goal, the
bar has no value and does not hold.

nexmark.qN.over_flink            rate over that of Flink without checkpoints, all at once
nexmark.qN.over_spark            rate over the faster of Spark's own, all at once
nexmark.mean.over_flink          geometric mean over the stateful queries
nexmark.large.mean.over_flink    the same for batches of 2.5 million events or more
nexmark.sustained.qN.over_spark  highest rate that keeps the goal, over the better of Spark's own
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.nexmark.queries.catalogue import QUERIES, STATEFUL
from tidegate_lab.bench.nexmark.search import Search
from tidegate_lab.bench.nexmark.task import FLINK, OURS, SPARKS
from tidegate_lab.bench.nexmark.turns import Line
from tidegate_lab.plots.bars import at_least

#: A quarter of a second a batch in q3 and q8: nearly all of it is fixed cost.
OVER_FLINK = {"q3": 0.7, "q4": 1.0, "q5": 1.0, "q7": 1.0, "q8": 0.7, "q9": 1.0, "q20": 1.0}
OVER_FLINK_MEAN, OVER_FLINK_MEAN_LARGE = 1.2, 2.0
LARGE_BATCH = 2_500_000
OVER_SPARK = 2.0
OVER_SPARK_SUSTAINED, OVER_SPARK_SUSTAINED_STATELESS = 3.0, 0.9
Rates = Mapping[tuple[str, str], float | None]


def turn_bars(lines: Sequence[Line], batch_events: int) -> list[Bar]:
    """Bars of all that was run; a contender without a right result has no rate."""
    rates = {
        (line.query, line.contender): line.rate if line.right else None for line in lines if not line.absent
    }
    large = batch_events >= LARGE_BATCH
    bars: list[Bar] = []
    if not large:
        for other, rivals in (("flink", (FLINK,)), ("spark", SPARKS)):
            for query in STATEFUL:
                least = OVER_FLINK[query] if other == "flink" else OVER_SPARK
                if _both_ran(rates, query, rivals):
                    ratio = _ratio(rates, query, rivals)
                    bars.append(at_least(f"nexmark.{query}.over_{other}", ratio, "x", least))
    found = [ratio for query in STATEFUL if (ratio := _ratio(rates, query, (FLINK,))) is not None]
    # A mean over some of the queries is another figure.
    if len(found) == len(STATEFUL):
        name = "nexmark.large.mean.over_flink" if large else "nexmark.mean.over_flink"
        least = OVER_FLINK_MEAN_LARGE if large else OVER_FLINK_MEAN
        bars.append(at_least(name, geometric_mean(found), "x", least))
    return bars


def sustained_bars(searches: Sequence[Search]) -> list[Bar]:
    rates = {(one.query, one.contender): one.best for one in searches}
    bars: list[Bar] = []
    for name, query in QUERIES.items():
        if _both_ran(rates, name, SPARKS):
            ratio = _ratio(rates, name, SPARKS)
            least = OVER_SPARK_SUSTAINED if query.stateful else OVER_SPARK_SUSTAINED_STATELESS
            bars.append(at_least(f"nexmark.sustained.{name}.over_spark", ratio, "x", least))
    return bars


def _ratio(rates: Rates, query: str, others: Sequence[str]) -> float | None:
    """Ours over the best of the others; None where one of the two is missing."""
    theirs = [rate for other in others if (rate := rates.get((query, other))) is not None]
    ours = rates.get((query, OURS))
    return ours / max(theirs) if ours is not None and theirs else None


def _both_ran(rates: Rates, query: str, others: Sequence[str]) -> bool:
    return (query, OURS) in rates and any((query, other) in rates for other in others)


def turn_rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """One row per query and contender; samples are the seconds of every round and of its batches."""
    return [
        {
            "mode": "all-at-once",
            "query": line.query,
            "contender": line.contender,
            "events": line.events,
            "rate": line.rate,
            "seconds": line.seconds,
            "right": line.right,
            "trouble": line.trouble or None,
            "samples": [one.get("seconds") for one in line.rounds],
            "batch_samples": [one.get("batches", []) for one in line.rounds],
        }
        for line in lines
    ]


def sustained_rows(searches: Sequence[Search]) -> list[dict[str, Any]]:
    """One row per query and contender; samples are the latencies of every attempt."""
    return [
        {
            "mode": "sustained",
            "query": search.query,
            "contender": search.contender,
            "rate": search.best,
            "trouble": search.trouble or None,
            "attempts": [
                {
                    "rate": one.rate,
                    "held": one.held,
                    "p50": one.answer["p50"],
                    "p95": one.p95,
                    "fell_behind": one.answer["fell_behind"],
                    "samples": one.answer["latencies"],
                    "batch_samples": one.answer["batches"],
                }
                for one in search.attempts
            ],
        }
        for search in searches
    ]
