"""The sifter in Spark's language: drops rows right where they come in, before anything is done with them.

`sift/lookup.py` finds a row's region, `sift/decision.py` decides by a hash of the row; here both are one SQL
condition over arrays that are data to Spark's compiled code, so that a new sifter is no new code.
A row passes

    if it is a sample                   by another hash: marked, so that the server sees what is offered
    if it is late or too far ahead      the tasks count such rows, and drop them
    if it has no place                  null or NaN on an axis: no region, so nothing is known of its worth
    else if its hash says so            the share of a region that passes is 1 less its threshold

Guarantee: a row's fate depends on its columns, the sifter and the seed alone, so a replay drops the same
rows. Rows that are alike in every column share their fate.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.sift.lookup import Lookup
from tidegate.sift.lookup_tables import AxisTable
from tidegate.sift.sifter import Sifter
from tidegate.spark.joined_row import visible
from tidegate.spark.layout import HASH, SAMPLE, TIME
from tidegate.spark.match_columns import coordinate_sql
from tidegate.spark.match_task import MatchBatch
from tidegate.spark.sql_text import hashable, literal

#: 2^-53, as in `sift/decision.py`.
_UNIT = "1.1102230246251565E-16D"


def sifted(rows: DataFrame, work: MatchBatch) -> DataFrame:
    """The rows that pass, each with SAMPLE; and with HASH where the tasks must decide."""
    sifter = work.sifter
    assert sifter is not None
    lookup = Lookup.of(sifter.regions)
    columns = ", ".join(hashable(field) for field in visible(rows))
    hashed = rows.withColumn(HASH, F.expr(f"xxhash64({work.seed}L, {columns})"))
    sampled = f"{_share(f'xxhash64({HASH})')} < {_first([sifter.sample_share], HASH)}"
    if lookup.exact_walk:
        return hashed.withColumn(SAMPLE, F.expr(sampled))
    refused = f"{TIME} < {_first([work.late_before_us], HASH, 'bigint')}"
    refused += f" OR {TIME} > {_first([work.newest_us], HASH, 'bigint')}"
    passes = f"coalesce({_placed(sifter, lookup)}, true)"
    kept = hashed.where(f"({passes}) OR ({sampled}) OR ({refused})")
    return kept.withColumn(SAMPLE, F.expr(sampled)).drop(HASH)


def _placed(sifter: Sifter, lookup: Lookup) -> str:
    """Does the hash of a row let it pass? Null where the row has no place."""
    coordinates = [coordinate_sql(axis) for axis in sifter.axes]
    ranks = [_rank(x, table) for x, table in zip(coordinates, lookup.tables, strict=True)]
    cell = " + ".join(ranks)
    thresholds = literal(sifter.thresholds[lookup.cells].tolist(), "array<double>")
    nowhere = " OR ".join(f"isnan({x})" for x in coordinates)
    return f"{nowhere} OR {_share(HASH)} >= get({thresholds}, {cell})"


def _rank(x: str, table: AxisTable) -> str:
    """How many cuts of its axis are at or below a coordinate, times the stride of the axis."""
    if not len(table.cuts):
        return f"if(isnull({x}), cast(null as int), 0)"
    scaled = f"({x} - {_first([table.origin], x)}) * {_first([table.scale], x)}"
    bucket = f"cast(least(greatest({scaled}, 0D), {_first([len(table.base) - 1.0], x)}) as int)"
    base = f"get({literal(table.base.tolist(), 'array<int>')}, {bucket})"
    cuts = literal([cut for cut in table.cuts.tolist() if cut == cut], "array<double>")
    steps = "".join(f" + if({x} >= get({cuts}, {base} + {step}), 1, 0)" for step in range(table.steps))
    return f"({base}{steps}) * {_first([table.stride], x, 'int')}"


def _share(hashed: str) -> str:
    return f"shiftrightunsigned({hashed}, 11) * {_UNIT}"


def _first(value: list[float], column: str, kind: str = "double") -> str:
    """A number as data, null where the column is; Spark would fold a look-up that no row decides."""
    return f"get({literal(value, f'array<{kind}>')}, cast(isnull({column}) as int))"
