"""Keys are equal when Spark says so: every type, many columns, mixed types, nulls, and codes that collide."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import EPOCH_US, Sink, counted

import tidegate as tg
from tidegate.driver.compile import keys

NAN = float("nan")
#: Column → its type on the left, its type on the right, values on both sides.
KEY_COLUMNS: dict[str, tuple[str, str, Sequence[Any]]] = {
    "whole": ("int", "bigint", [1, 2, -(2**31), None]),
    "tiny": ("tinyint", "tinyint", [-128, 0, 127, None]),
    "text": ("string", "string", ["", "a", "A", "x" * 200, "ß", None]),
    "day": ("date", "date", [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None]),
    "money": ("decimal(10,2)", "decimal(30,4)", [Decimal("1.50"), Decimal("-1.50"), Decimal("0.01"), None]),
    "small_money": ("decimal(9,2)", "decimal(9,2)", [Decimal("1.50"), Decimal("-1.50"), None]),
    "bytes": ("binary", "binary", [bytearray(b""), bytearray(b"\x00"), bytearray(b"\x00\x01"), None]),
    "ratio": ("double", "double", [0.0, -0.0, NAN, float("inf"), 0.1, None]),
    "rough": ("float", "double", [0.0, -0.0, NAN, 0.5, None]),
    "loose": ("string collate UTF8_LCASE", "string collate UTF8_LCASE", ["a", "A", "b", "", None]),
    "truth": ("boolean", "boolean", [True, False, None]),
}


def side(spark: SparkSession, types: dict[str, str], values: Mapping[str, Sequence[Any]]) -> DataFrame:
    """A row per value and column: row i takes the i-th value of each column, in turns."""
    longest = max(map(len, values.values()))
    turns = {name: list(itertools.islice(itertools.cycle(v), longest + 2)) for name, v in values.items()}
    rows = [(i, *(turns[name][i] for name in types)) for i in range(longest + 2)]
    schema = ", ".join(["n int", *(f"{name} {kind}" for name, kind in types.items())])
    frame = spark.createDataFrame(rows, schema)
    return frame.withColumn("ts", F.timestamp_micros(F.lit(EPOCH_US) + F.col("n")))


def spark_join(left: DataFrame, right: DataFrame, on: Sequence[str], how: str) -> list[tuple[Any, ...]]:
    condition: Column = F.lit(True)
    for name in on:
        condition = condition & (F.col(f"l.{name}") == F.col(f"r.{name}"))
    joined = left.alias("l").join(right.alias("r"), condition, how)
    return [tuple(row) for row in joined.select("l.n", "r.n").collect()]


def numbers(sink: Sink) -> list[tuple[Any, ...]]:
    places = [sink.columns.index("n"), sink.columns.index("n_right")]
    return [tuple(row[i] for i in places) for row in sink.rows]


@pytest.fixture(scope="module")
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    values = {name: column[2] for name, column in KEY_COLUMNS.items()}
    left = side(spark, {name: column[0] for name, column in KEY_COLUMNS.items()}, values)
    backwards = {name: list(reversed(column)) for name, column in values.items()}
    right = side(spark, {name: column[1] for name, column in KEY_COLUMNS.items()}, backwards)
    return left.cache(), right.cache()


def test_keys_of_every_type_are_equal_when_spark_says_so(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    left, right = sides
    keys_of_flows: dict[str, list[str]] = {name: [name] for name in KEY_COLUMNS}
    keys_of_flows |= {"small and small": ["tiny", "day"], "text and ratio": ["text", "ratio"]}
    a = tg.stream(left, time="ts", name="a", lateness="0 seconds")
    b = tg.stream(right, time="ts", name="b", lateness="0 seconds")
    sinks = {name: Sink(name) for name in keys_of_flows}
    outputs = [
        a.select("n", *on)
        .join(b.select("n", *on), on=on, within="1 minute", how="full")
        .write_to(sinks[name])
        for name, on in keys_of_flows.items()
    ]
    tg.start(*outputs, partitions=3, instances=2)
    for name, on in keys_of_flows.items():
        assert counted(numbers(sinks[name])) == counted(spark_join(left, right, on, "full")), name


def test_colliding_codes_give_no_wrong_pair(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "hash_of", lambda *columns: F.lit(7).cast("long"))
    left, right = sides
    a = tg.stream(left, time="ts", name="a", lateness="0 seconds")
    b = tg.stream(right, time="ts", name="b", lateness="0 seconds")
    names = ["text", "money", "bytes", "loose"]
    sinks = {name: Sink(name) for name in names}
    outputs = [
        a.select("n", name)
        .join(b.select("n", name), on=name, within="1 minute", how="full")
        .write_to(sinks[name])
        for name in names
    ]
    tg.start(*outputs, partitions=3, instances=2)
    for name in names:
        assert counted(numbers(sinks[name])) == counted(spark_join(left, right, [name], "full")), name


@pytest.mark.parametrize("kind", ["array<int>", "map<int,int>", "struct<x:int>"])
def test_a_nested_column_is_refused_as_a_key(spark: SparkSession, kind: str) -> None:
    frame = spark.createDataFrame([], f"ts timestamp, k {kind}")
    a, b = (
        tg.stream(frame, time="ts", name="a", lateness="0 seconds"),
        tg.stream(frame, time="ts", name="b", lateness="0 seconds"),
    )
    with pytest.raises(tg.FlowError, match="JOIN_KEY_TYPE"):
        tg.start(a.join(b, on="k", within="1 second").write_to("noop"))


def test_types_that_never_compare_are_refused(spark: SparkSession) -> None:
    a = tg.stream(
        spark.createDataFrame([], "ts timestamp, k date"), time="ts", name="a", lateness="0 seconds"
    )
    b = tg.stream(spark.createDataFrame([], "ts timestamp, k int"), time="ts", name="b", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match="JOIN_KEY_TYPES_DIFFER"):
        tg.start(a.join(b, on="k", within="1 second").write_to("noop"))
