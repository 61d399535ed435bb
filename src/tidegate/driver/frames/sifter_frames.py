"""The sifter in Spark's language: drops rows right where they come in, before anything is done with them.

`sift/filter/lookup.py` finds a row's region, `sift/filter/decision.py` decides by a hash of it; here both are
SQL, with thresholds that are data to Spark's compiled code, so that other thresholds are no new code. One
number u in [0, 1) per row, out of a hash of its time and of the columns that regions are made of, decides
everything. With a sample share σ and the threshold d of its region, a row

    is a sample     where u >= 1 − σ          marked, so that the server sees what is offered
    passes          where u >= d · (1 − σ)    all samples do, and of the others the share 1 − d

Numbers are compared as integers of 53 bits, which is the same to the last bit and cheaper: Spark compares
doubles by a call that knows about NaN.

Rows without a place (null or NaN on an axis) pass, because nothing is known of their worth. So do rows that
are late or too far ahead: the tasks count such rows, and drop them.

Guarantee: a row's fate depends on its time, these columns, the sifter and the seed alone, so a replay drops
the same rows. Rows that are alike in them share their fate (numbers: up to the last bits of a weighted sum).
"""

from __future__ import annotations

import math

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.match_columns import coordinate_sql
from tidegate.driver.sql_text import data, literal
from tidegate.sift.filter.decision import UNIT
from tidegate.sift.filter.lookup import AxisTable, Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.regions import Regions
from tidegate.worker.match.task import MatchWork, scaled
from tidegate.worker.runtime.layout import HASH, SAMPLE, TIME

#: Weights of numbers in a hash: powers of what no ratio of usual numbers is near.
_GOLDEN = 0.6180339887498949
#: Regions that become nested conditions: a hundred are as slow as tables, several hundred overrun the code
#: generator.
TREE_MAX = 64


def sifted(rows: DataFrame, work: MatchWork) -> DataFrame:
    """The rows that pass, each with SAMPLE; and with HASH where the tasks must decide."""
    sifter = work.sifter
    assert sifter is not None
    lookup = Lookup.of(sifter.regions)
    chance = f"shiftrightunsigned({_hash(sifter, work.seed)}, 11)"
    sample = F.expr(f"{chance} >= {data(_whole(1 - sifter.sample_share), 'bigint')}")
    if lookup.exact_walk:
        return rows.withColumn(HASH, F.expr(_hash(sifter, work.seed))).withColumn(SAMPLE, sample)
    coordinates = [coordinate_sql(axis) for axis in sifter.axes]
    nowhere = " OR ".join(f"isnull({x}) OR isnan({x})" for x in coordinates)
    refused = f"{TIME} < {data(work.late_before_us, 'bigint')}"
    refused += f" OR {TIME} > {data(work.newest_us, 'bigint')}"
    passes = f"{chance} >= {_threshold(sifter, lookup, coordinates)}"
    return rows.where(f"{passes} OR {nowhere} OR {refused}").withColumn(SAMPLE, sample)


def _threshold(sifter: Sifter, lookup: Lookup, coordinates: list[str]) -> str:
    """The threshold of a row's region: looked up by region, as data.

    Few regions are told apart by the cuts themselves, as compiled code: four times as fast as tables, at the
    price of a compilation when regions change. (New thresholds alone change nothing.) Many would be too long
    for Spark's code generator, and are found in tables.
    """
    limits = [_whole(threshold) for threshold in scaled(sifter)]
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
    return f"if({coordinates[regions.axis[node]]} < {float(regions.at[node])!r}D, {below}, {above})"


def _hash(sifter: Sifter, seed: int) -> str:
    """64 bits of a row's time and place. Every argument takes time, so numbers are one, mixed by φ^-k."""
    numbers = [coordinate_sql(axis) for axis in sifter.axes if axis.kind != "category"]
    mixed = " + ".join(f"{_GOLDEN**power!r}D * {x}" for power, x in enumerate(numbers))
    others = [quoted(axis.column) for axis in sifter.axes if axis.kind == "category"]
    return f"xxhash64({', '.join([f'{TIME} ^ {seed}L', *([mixed] if mixed else []), *others])})"


def _rank(x: str, table: AxisTable) -> str:
    """How many cuts of its axis are at or below a coordinate, times the stride of the axis."""
    if not len(table.cuts):
        return "0"
    scaled = f"({x} - {data(table.origin, 'double')}) * {data(table.scale, 'double')}"
    bucket = f"cast(least(greatest({scaled}, 0D), {data(len(table.base) - 1.0, 'double')}) as int)"
    base = f"get({literal(table.base.tolist(), 'array<int>')}, {bucket})"
    cuts = literal([cut for cut in table.cuts.tolist() if cut == cut], "array<double>")
    steps = "".join(f" + if({x} >= get({cuts}, {base} + {step}), 1, 0)" for step in range(table.steps))
    return f"({base}{steps}) * {data(table.stride, 'int')}"


def _whole(share: float) -> int:
    """The least integer of 53 bits that is, times 2^-53, no less than a share: exact, by powers of two."""
    return math.ceil(share / UNIT)


def marked(rows: DataFrame, mark: str) -> DataFrame:
    """Rows that nodes let through, with SAMPLE where they say so."""
    return rows.withColumn(SAMPLE, F.coalesce(F.col(quoted(mark)).cast("boolean"), F.lit(False)))
