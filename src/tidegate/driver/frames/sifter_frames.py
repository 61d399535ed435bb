"""The sifter in SQL: drops rows as they enter, before any other work.

`sift/filter/lookup.py` finds a row's region and `sift/filter/decision.py` decides by a hash; this module does
both in SQL. Thresholds are data to the compiled code, so new ones need no compilation. One number u in [0, 1)
per row comes from a hash of the whole row (`sql_text.lot`). With a sample share σ and the threshold d of its
region, a row

    is a sample     if u >= 1 − σ          marked, so that the server can measure what is offered
    passes          if u >= d · (1 − σ)    all samples, and the share 1 − d of the others

Numbers are compared as 53-bit integers, which gives the same result at less cost: Spark compares doubles by
a call that handles NaN.

A null or NaN on an axis is above every cut, as at the edge. Late rows and rows too far ahead pass: the tasks
count and drop them.

Guarantee: the decision depends only on the row, the batch, the sifter and the seed, so a replay drops the
same rows. Of a row, the columns that the user's steps compute are left out, unless they define regions: so
Spark can drop rows in front of the steps. Rows of a batch that are equal in all others share their fate.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.match_columns import coordinate_sql
from tidegate.driver.sql_text import data, literal, lot, lot_bits, lot_limit
from tidegate.sift.filter.lookup import AxisTable, Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.regions import Regions
from tidegate.worker.match.task import MatchWork, scaled
from tidegate.worker.runtime.layout import HASH, SAMPLE, TIME

_INFINITY = "cast('Infinity' as double)"
#: The most regions for nested conditions: 100 are as slow as tables, several hundred exceed the limits of the
#: code generator.
TREE_MAX = 64


def sifted(rows: DataFrame, work: MatchWork, known: Collection[str] | None = None) -> DataFrame:
    """The rows that pass, each with SAMPLE, and with HASH if the tasks must decide.

    `known`: the columns that are there before the user's steps; None: all.
    """
    sifter = work.sifter
    assert sifter is not None
    lookup = Lookup.of(sifter.regions)
    drawn_by = [
        field
        for field in visible(rows)
        if known is None or field.name in known or field.name in sifter.columns
    ]
    chance = lot(work.seed, work.batch, drawn_by)
    sample = F.expr(f"{chance} >= {data(lot_limit(1 - sifter.sample_share), 'bigint')}")
    if lookup.exact_walk:
        bits = F.expr(lot_bits(work.seed, work.batch, drawn_by))
        return rows.withColumn(HASH, bits).withColumn(SAMPLE, sample)
    coordinates = [coordinate_sql(axis) for axis in sifter.axes]
    refused = f"{TIME} < {data(work.late_before_us, 'bigint')}"
    refused += f" OR {TIME} > {data(work.newest_us, 'bigint')}"
    passes = f"{chance} >= {_threshold(sifter, lookup, coordinates)}"
    return rows.where(f"{passes} OR {refused}").withColumn(SAMPLE, sample)


def _threshold(sifter: Sifter, lookup: Lookup, coordinates: list[str]) -> str:
    """The threshold of a row's region, looked up as data.

    Few regions are found by compiled conditions: four times as fast as tables, but a change of regions costs
    a compilation. Many regions are found in tables, because the conditions would be too long for Spark's code
    generator.
    """
    limits = [lot_limit(threshold) for threshold in scaled(sifter)]
    if sifter.regions.count <= TREE_MAX:
        return f"get({literal(limits, 'array<bigint>')}, {_walk(sifter.regions, coordinates)})"
    thresholds = literal([limits[region] for region in lookup.cells], "array<bigint>")
    cell = " + ".join(_rank(x, table) for x, table in zip(coordinates, lookup.tables, strict=True))
    return f"get({thresholds}, {cell})"


def _walk(regions: Regions, coordinates: list[str], node: int = 0) -> str:
    """The tree of cuts as nested conditions, from this node on."""
    if node < 0 or not len(regions.axis):
        return str(max(0, ~node))
    below, above = (_walk(regions, coordinates, int(child)) for child in regions.children[node])
    # Spark has no literal for infinity; a null is below nothing.
    at = _INFINITY if regions.at[node] == math.inf else f"{float(regions.at[node])!r}D"
    return f"if({coordinates[regions.axis[node]]} < {at}, {below}, {above})"


def _rank(x: str, table: AxisTable) -> str:
    """The number of cuts at or below a coordinate, times the stride of the axis."""
    if not table.top:
        return "0"
    scaled = f"({x} - {data(table.origin, 'double')}) * {data(table.scale, 'double')}"
    bucket = f"cast(least(greatest({scaled}, 0D), {data(len(table.base) - 1.0, 'double')}) as int)"
    base = f"get({literal(table.base.tolist(), 'array<int>')}, {bucket})"
    cuts = literal([cut for cut in table.cuts.tolist() if cut == cut], "array<double>")
    steps = "".join(f" + if({x} >= get({cuts}, {base} + {step}), 1, 0)" for step in range(table.steps))
    rank = f"if({x} < {_INFINITY}, {base}{steps}, {data(table.top, 'int')})"
    return f"{rank} * {data(table.stride, 'int')}"


def marked(rows: DataFrame, mark: str) -> DataFrame:
    """Rows that the sources passed, with SAMPLE as they marked it."""
    return rows.withColumn(SAMPLE, F.coalesce(F.col(quoted(mark)).cast("boolean"), F.lit(False)))
