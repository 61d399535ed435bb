"""The sifter in Spark's language: drops rows right where they come in, before anything is done with them.

`sift/lookup.py` finds a row's region, `sift/decision.py` decides by a hash of the row; here both are SQL over
arrays that are data to Spark's compiled code, so that a new sifter is no new code. One number u in [0, 1) per
row, out of a hash of its time and of the columns that regions are made of, decides everything. With a sample
share σ and the threshold d of its region, a row

    is a sample     where u >= 1 − σ          marked, so that the server sees what is offered
    passes          where u >= d · (1 − σ)    all samples do, and of the others the share 1 − d

Rows without a place (null or NaN on an axis) pass, because nothing is known of their worth. So do rows that
are late or too far ahead: the tasks count such rows, and drop them.

Guarantee: a row's fate depends on its time, these columns, the sifter and the seed alone, so a replay drops
the same rows. Rows that are alike in them share their fate.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.sift.lookup import Lookup
from tidegate.sift.lookup_tables import AxisTable
from tidegate.sift.sifter import Sifter
from tidegate.spark.keys import quoted
from tidegate.spark.layout import HASH, SAMPLE, TIME
from tidegate.spark.match_columns import coordinate_sql
from tidegate.spark.match_task import MatchBatch, scaled
from tidegate.spark.sql_text import literal

#: 2^-53, as in `sift/decision.py`.
_UNIT = "1.1102230246251565E-16D"
_CHANCE, _CELL = "_tidegate_chance", "_tidegate_sift_cell"


def sifted(rows: DataFrame, work: MatchBatch) -> DataFrame:
    """The rows that pass, each with SAMPLE; and with HASH where the tasks must decide."""
    sifter = work.sifter
    assert sifter is not None
    lookup = Lookup.of(sifter.regions)
    if lookup.exact_walk:
        hashed = rows.withColumn(HASH, F.expr(_hash(sifter, work.seed)))
        return hashed.withColumn(
            SAMPLE, F.expr(f"{_share(HASH)} >= {_first([1 - sifter.sample_share], HASH)}")
        )
    # The number of the task changes nothing, but Spark takes it for chance, and so computes the two numbers
    # once, where they stand, instead of writing them out wherever they are used.
    placed = rows.select(
        "*",
        F.expr(f"{_share(_hash(sifter, work.seed))} + 0 * spark_partition_id()").alias(_CHANCE),
        F.expr(_cell(sifter, lookup)).alias(_CELL),
    )
    thresholds = literal(scaled(sifter)[lookup.cells].tolist(), "array<double>")
    refused = f"{TIME} < {_first([work.late_before_us], TIME, 'bigint')}"
    refused += f" OR {TIME} > {_first([work.newest_us], TIME, 'bigint')}"
    kept = placed.where(f"coalesce({_CHANCE} >= get({thresholds}, {_CELL}), true) OR {refused}")
    sample = F.expr(f"{_CHANCE} >= {_first([1 - sifter.sample_share], _CHANCE)}").alias(SAMPLE)
    return kept.select(*[quoted(name) for name in rows.columns], sample)


def _hash(sifter: Sifter, seed: int) -> str:
    return f"xxhash64({seed}L, {TIME}, {', '.join(quoted(axis.column) for axis in sifter.axes)})"


def _cell(sifter: Sifter, lookup: Lookup) -> str:
    """The number of a row's cell; null where it has no place."""
    coordinates = [coordinate_sql(axis) for axis in sifter.axes]
    ranks = [_rank(x, table) for x, table in zip(coordinates, lookup.tables, strict=True)]
    nowhere = " OR ".join(f"isnan({x})" for x in coordinates)
    return f"if({nowhere}, cast(null as int), {' + '.join(ranks)})"


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
