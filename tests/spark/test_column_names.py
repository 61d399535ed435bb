"""Columns named with a dot, a backtick, `*`, a space, or in two cases, through every operator."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg

NOON = dt.datetime(2026, 3, 1, 12)
SCHEMA = (
    "`at.time` timestamp, `cell.id` int, `tick``ed` string, `*` string, V int, v double, `a b` int, "
    "`la.t` double, `lo``n` double"
)
ROWS = [
    (
        NOON + dt.timedelta(seconds=7 * i),
        i % 3,
        f"t{i % 2}",
        f"T{i % 3}",
        i % 4,
        float(i),
        i % 5,
        37.0 + i,
        -9.0,
    )
    for i in range(40)
]
GROUP = ["cell.id", "tick`ed", "*", "a b", "V", "v"]


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def cols(names: list[str]) -> list[str]:
    return list(map(quoted, names))


@pytest.fixture
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    """Rows with such names, in a session that tells `V` from `v`."""
    before = spark.conf.get("spark.sql.caseSensitive")
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield spark.createDataFrame(ROWS, SCHEMA)
    spark.conf.set("spark.sql.caseSensitive", str(before))


def stream(frame: DataFrame, name: str = "s") -> tg.Stream:
    return tg.stream(frame, name=name, time="at.time")


def same(got: DataFrame, wanted: DataFrame) -> None:
    assert got.columns == wanted.columns
    found = Counter(map(tuple, got.collect()))
    assert found
    assert found == Counter(map(tuple, wanted.collect()))


def grouped(frame: DataFrame, by: list[str], *aggregates: Column, size: str = "1 minute") -> DataFrame:
    """Spark's own window aggregate, with our columns."""
    made = frame.groupBy(F.window(F.col("`at.time`"), size).alias("w"), *cols(by)).agg(*aggregates)
    return made.select("w.start", "w.end", *[quoted(c) for c in made.columns if c != "w"]).toDF(
        "window_start", "window_end", *[c for c in made.columns if c != "w"]
    )


def test_windows_and_windows_of_windows_group_and_aggregate_by_any_name(frame: DataFrame) -> None:
    plain = [F.sum("v").alias("s.um"), F.max("`tick``ed`").alias("m`ax"), F.count("*").alias("n *")]
    one = stream(frame).window("1 minute", by=GROUP).agg(*plain)
    same(one.to_dataframe(), grouped(frame, GROUP, *plain))
    texts = (
        stream(frame).window("1 minute", by="cell.id").agg("max(`tick``ed`) as `m``ax`", "sum(V) as `s.um`")
    )
    same(
        texts.to_dataframe(),
        grouped(frame, ["cell.id"], F.max("`tick``ed`").alias("m`ax"), F.sum("V").alias("s.um")),
    )
    two = one.window("2 minutes", by=["tick`ed", "*"]).agg(
        **{"t.op": F.max("`s.um`"), "T.op": F.min("`m``ax`")}
    )
    inner = one.to_dataframe().withColumnRenamed("window_start", "at.time").drop("window_end")
    same(
        two.to_dataframe(),
        grouped(
            inner,
            ["tick`ed", "*"],
            F.max("`s.um`").alias("t.op"),
            F.min("`m``ax`").alias("T.op"),
            size="2 minutes",
        ),
    )


def test_sampled_windows_and_windows_of_rows_take_any_name(frame: DataFrame) -> None:
    by = ["cell.id", "tick`ed", "*"]
    about = (
        stream(frame).window("1 minute", by=by, approximate=True).agg(**{"s.um": F.sum("v")}).to_dataframe()
    )
    same(about.drop("s.um_low", "s.um_high"), grouped(frame, by, F.sum("v").alias("s.um")))
    last = stream(frame).window(tg.row_window(1), by=by).agg(**{"a.ny": F.max("`la.t`")}).to_dataframe()
    same(last.select(*cols([*by, "a.ny"])), frame.select(*cols(by), F.col("`la.t`").alias("a.ny")))


def test_joins_and_the_windows_and_matches_behind_them_take_any_name(frame: DataFrame) -> None:
    other = frame.select("`at.time`", "`cell.id`", "`*`", (F.col("v") + 1).alias("w.v"))
    keys = ["cell.id", "*"]
    pairs = stream(frame).join(stream(other, "t"), keys, within="20 seconds", how="inner", where="`w.v` > 3")
    left, right = frame.alias("l"), other.alias("r")
    near = F.col("r.`at.time`") - F.col("l.`at.time`")
    spark_pairs = left.join(
        right,
        (F.col("l.`cell.id`") == F.col("r.`cell.id`"))
        & (F.col("l.`*`") == F.col("r.`*`"))
        & near.between(F.expr("interval -20 seconds"), F.expr("interval 20 seconds"))
        & (F.col("r.`w.v`") > 3),
    )
    columns = ["v", "cell.id", "*", "tick`ed", "w.v"]
    wanted = spark_pairs.select(
        *[F.col(f"{'r' if c == 'w.v' else 'l'}.{quoted(c)}").alias(c) for c in columns]
    )
    same(pairs.select(*cols(columns)).to_dataframe(), wanted)
    counts = pairs.window("1 day", by=[*keys, "tick`ed"]).agg(**{"s.um": F.sum("`w.v`")}).to_dataframe()
    summed = wanted.groupBy(*cols([*keys, "tick`ed"])).agg(F.sum("`w.v`").alias("s.um"))
    same(counts.drop("window_start", "window_end"), summed)
    hits = pairs.match([tg.RangeQuery("q", "`w.v` > 9 and `tick``ed` = 't1'")]).to_dataframe()
    same(hits.select(*cols(columns)), wanted.filter("`w.v` > 9 and `tick``ed` = 't1'"))


def test_matches_tell_any_names_apart(frame: DataFrame) -> None:
    texts = {
        "dot": "`cell.id` > 0",
        "tick": "`tick``ed` = 't1'",
        "star": "`*` = 'T1'",
        "case": "V > 2 and v < 15",
        "space": "`a b` in (1, 2)",
    }
    hits = stream(frame).match([tg.RangeQuery(name, text) for name, text in texts.items()]).to_dataframe()
    wanted = [frame.filter(text).withColumn("query_name", F.lit(name)) for name, text in texts.items()]
    united = wanted[0]
    for one in wanted[1:]:
        united = united.unionAll(one)
    same(hits, united)


def test_steps_and_unions_take_any_name(frame: DataFrame) -> None:
    def stepped(one: Any) -> Any:
        """The same steps, of a stream or of Spark's frame."""
        more = one.select("`at.time`", "`cell.id`", "`*`", "V", "v", "`la.t`", "`lo``n`").drop("*")
        more = more.withColumnRenamed("cell.id", "x.`y").withColumn("p q", F.col("`x.``y`") + F.col("V"))
        cell = tg.hilbert("`la.t`", F.col("`lo``n`"), 9)
        return more.withColumns({"P Q": F.col("v") * 2, "c.ell": cell}).filter("`p q` > 1")

    made = stepped(stream(frame))
    same(made.to_dataframe(), stepped(frame))
    by = ["x.`y", "p q", "c.ell"]
    counts = made.window("1 minute", by=by).agg(**{"n.": F.count("*")}).to_dataframe()
    same(counts, grouped(stepped(frame), by, F.count("*").alias("n.")))
    both = made.union_by_name(stepped(stream(frame, "t")).drop("P Q"), allow_missing_columns=True)
    united = stepped(frame).unionByName(stepped(frame).drop("P Q"), allowMissingColumns=True)
    same(both.to_dataframe(), united)
    counted = both.window("1 minute", by=by).agg(n=F.sum("`P Q`"))
    same(counted.to_dataframe(), grouped(united, by, F.sum("`P Q`").alias("n")))


def test_files_and_tables_hold_columns_of_any_name(
    frame: DataFrame, spark: SparkSession, tmp_path: Path
) -> None:
    path, plain = str(tmp_path / "out"), stream(frame).drop("*")
    wanted = frame.drop("*")
    tg.start(
        plain.write_to("parquet", path, name="files", partition_by=["cell.id", "tick`ed"]),
        plain.write_to_table("names_table", name="table", partition_by=["a b"]),
    )
    same(spark.read.parquet(path).select(*cols(wanted.columns)), wanted)
    try:
        same(spark.table("names_table").select(*cols(wanted.columns)), wanted)
    finally:
        spark.sql("DROP TABLE IF EXISTS names_table")
