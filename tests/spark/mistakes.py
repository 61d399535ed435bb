"""Mistakes that a user can make before anything runs: what is written, and what the message must say.

Each of `MISTAKES` has a name, a function that makes the mistake, the code of the error, and words of its
message, which must name the thing and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import tidegate
from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Untyped, because a type checker finds many of these mistakes.
tg: Any = tidegate
policies: Any = tidegate.policies
SCHEMA = "ts timestamp, cell string, {}, items array<string>, day date"


class Bench:
    """Two streams, `orders` and `tracks`, over files that are never read, and the same as tables."""

    def __init__(self, spark: SparkSession, folder: Path):
        self.spark, self.folder = spark, folder
        for name in ("orders", "tracks"):
            (folder / name).mkdir()
        self.orders, self.tracks = self.stream("orders"), self.stream("tracks")
        self.table = tg.stream(spark.createDataFrame([], SCHEMA.format("fare double")), name="old", time="ts")

    def frame(self, name: str, schema: str | None = None) -> DataFrame:
        own = "fare double" if name == "orders" else "speed double"
        reader = self.spark.readStream.schema(schema or SCHEMA.format(own))
        return reader.parquet(str(self.folder / name))

    def stream(self, name: str, schema: str | None = None, **more: Any) -> Any:
        settings = {"time": "ts", "lateness": "10 seconds", **more}
        return tg.stream(self.frame(name, schema), name=name, **settings)

    def near(self, **more: Any) -> Any:
        return self.orders.join(self.tracks, **{"on": "cell", "within": "5 minutes", **more})

    def out(self, name: str = "near") -> str:
        return str(self.folder / "out" / name)

    def start(self, *outputs: Any, **settings: Any) -> Any:
        """Start, and stop at once what should not have started."""
        given = {"checkpoint": self.folder / "never", **settings}
        query = tg.start(*outputs, **given)
        query.stop()
        return query

    def run(self, stream: Any, **settings: Any) -> Any:
        """Start a query that writes this stream nowhere."""
        return self.start(stream.write_to("noop"), **settings)


@dataclass(frozen=True)
class Mistake:
    """A mistake, and what the message must say about it."""

    name: str
    make: Callable[[Bench], object]
    code: str
    words: tuple[str, ...]
    #: Whether Spark, Python or sqlglot raised an error first, which is kept as the cause.
    caused: bool = field(default=False, kw_only=True)


class Mean(tidegate.Aggregator):
    """A correct aggregate, from which the wrong ones differ in one point."""

    state, returns = "n long, total double", "double"

    def zero(self) -> tuple[Any, ...]:
        return (0, 0.0)

    def update(self, state: Any, *arrays: Any, **unused: Any) -> tuple[Any, ...]:
        return (state[0] + len(arrays[0]), state[1] + float(arrays[0].sum()))

    def finish(self, state: Any) -> Any:
        return state[1] / state[0]


class UnknownType(Mean):
    returns = "doubel"


class OneField(Mean):
    def zero(self) -> tuple[Any, ...]:
        return (0,)


class NoFinish(tidegate.Aggregator):
    state, returns = "n long", "long"

    def zero(self) -> tuple[Any, ...]:
        return (0,)

    def update(self, state: Any, *arrays: Any, **unused: Any) -> tuple[Any, ...]:
        return (state[0] + len(arrays[0]),)


def agg(bench: Bench, **aggregates: Any) -> Any:
    return bench.run(bench.orders.window("1 minute", by="cell").agg(**aggregates))


def sql(bench: Bench, condition: str, **more: Any) -> Any:
    """A join whose condition is SQL."""
    return bench.orders.join(bench.tracks, condition, **more)


TIMED = "tracks.ts BETWEEN orders.ts - INTERVAL 5 MINUTES AND orders.ts + INTERVAL 1 MINUTE"


def a_closed_over_session(bench: Bench) -> Any:
    spark = bench.spark
    return bench.run(bench.near(on=tg.pairwise(lambda a, b: spark is not None and a == b, "cell")))


MISTAKES = (
    # -- streams -----------------------------------------------------------------------------------------
    Mistake(
        "not a frame",
        lambda b: tg.stream([1, 2], name="orders", time="ts"),
        "STREAM_NOT_A_FRAME",
        ("'orders'", "list", "spark.readStream"),
    ),
    Mistake(
        "a name that is no text",
        lambda b: tg.stream(b.frame("orders"), name=7, time="ts"),
        "NAME_UNUSABLE",
        ("stream", "7", 'name="orders"'),
    ),
    Mistake(
        "no time",
        lambda b: b.stream("orders", time=None),
        "STREAM_TIME_MISSING",
        ("'orders'", "cell, fare", 'time="ts"'),
    ),
    Mistake(
        "a typo in time",
        lambda b: b.stream("orders", time="tss"),
        "STREAM_TIME_UNKNOWN",
        ("'orders'", "'tss'", "ts, cell", "time="),
    ),
    Mistake(
        "a time that is text",
        lambda b: b.run(b.stream("orders", time="cell")),
        "STREAM_TIME_TYPE_INVALID",
        ("'orders'", "'cell'", "string", "to_timestamp"),
    ),
    Mistake(
        "a time that is a number",
        lambda b: b.run(b.stream("orders", "ts long, cell string")),
        "STREAM_TIME_TYPE_INVALID",
        ("'orders'", "bigint", "timestamp_micros"),
    ),
    Mistake(
        "a time that is a date",
        lambda b: b.run(b.stream("orders", time="day")),
        "STREAM_TIME_TYPE_INVALID",
        ("'orders'", "'day'", "date", "to_timestamp"),
    ),
    Mistake(
        "no lateness",
        lambda b: b.stream("orders", lateness=None),
        "STREAM_LATENESS_MISSING",
        ("'orders'", 'lateness="10 seconds"'),
    ),
    Mistake(
        "two latenesses",
        lambda b: tg.stream(
            b.frame("orders").withWatermark("ts", "1 minute"), name="orders", lateness="5 seconds"
        ),
        "STREAM_LATENESS_TWICE",
        ("'orders'", "5 seconds", "60 s", "lateness="),
    ),
    Mistake(
        "two times",
        lambda b: tg.stream(
            b.frame("orders", "ts timestamp, other timestamp").withWatermark("ts", "1 minute"),
            name="orders",
            time="other",
        ),
        "STREAM_TIME_TWICE",
        ("'orders'", "'other'", "'ts'", "time="),
    ),
    Mistake(
        "a lateness without a unit",
        lambda b: b.stream("orders", lateness="10"),
        "DURATION_INVALID",
        ("lateness of 'orders'", "'10'", '"2 seconds"'),
    ),
    Mistake(
        "a lateness that is a number",
        lambda b: b.stream("orders", lateness=10),
        "DURATION_INVALID",
        ("lateness of 'orders'", "10", '"2 seconds"'),
    ),
    Mistake(
        "a negative lateness",
        lambda b: b.stream("orders", lateness="-10 seconds"),
        "DURATION_NEGATIVE",
        ("lateness of 'orders'", "positive"),
    ),
    Mistake(
        "a misspelt unit",
        lambda b: b.stream("orders", max_ahead="3 dayz"),
        "DURATION_INVALID",
        ("max_ahead of 'orders'", "3 dayz", '"2 seconds"'),
    ),
    Mistake(
        "no idle time",
        lambda b: b.stream("orders", idle_timeout="0 seconds"),
        "STREAM_IDLE_TIMEOUT_ZERO",
        ("'orders'", "idle_timeout", "None"),
    ),
    Mistake(
        "an unknown available_at",
        lambda b: b.stream("orders", available_at="arrived"),
        "STREAM_AVAILABLE_AT_MISSING",
        ("'orders'", "'arrived'", "available_at="),
    ),
    Mistake(
        "an available_at that is text",
        lambda b: b.run(b.stream("orders", available_at="cell")),
        "STREAM_AVAILABLE_AT_TYPE",
        ("'orders'", "'cell'", "string", "available_at="),
    ),
    Mistake(
        "a typo among many columns",
        lambda b: b.stream("orders", ", ".join(f"column_{n} long" for n in range(300)), time="ts"),
        "STREAM_TIME_UNKNOWN",
        ("'orders'", "'ts'", "time="),
    ),
    Mistake(
        "a reserved column",
        lambda b: b.stream("orders", "ts timestamp, _tidegate_time long"),
        "COLUMN_NAME_RESERVED",
        ("_tidegate_time", "Rename"),
    ),
    Mistake(
        "two streams of one name",
        lambda b: b.run(b.orders.join(b.stream("orders"), "cell", within="1 minute")),
        "STREAM_NAMES_EQUAL",
        ("orders", "name="),
    ),
    Mistake(
        "late rows of a join",
        lambda b: b.near().late,
        "STREAM_REFUSED_NOT_SOURCE",
        ("late", "tg.stream", "orders"),
    ),
    Mistake(
        "late rows joined",
        lambda b: b.orders.late.join(b.tracks, "cell", within="1 minute"),
        "STREAM_REFUSED_AS_INPUT",
        ("orders.late", "lateness"),
    ),
    # -- steps -------------------------------------------------------------------------------------------
    Mistake(
        "a typo in filter",
        lambda b: b.run(b.orders.filter("fair > 3")),
        "STEP_INVALID",
        ("filter", "fair", "fare"),
        caused=True,
    ),
    Mistake(
        "bad SQL in filter",
        lambda b: b.run(b.orders.filter("fare >> > 3")),
        "STEP_INVALID",
        ("filter", "fare >> > 3"),
        caused=True,
    ),
    Mistake(
        "an unknown column in select",
        lambda b: b.run(b.orders.select("cell", "fair")),
        "STEP_INVALID",
        ("select", "fair", "fare"),
        caused=True,
    ),
    Mistake(
        "a text compared with an array",
        lambda b: b.run(b.orders.filter("items > 3")),
        "STEP_INVALID",
        ("filter", "items"),
        caused=True,
    ),
    Mistake(
        "a column that is no expression",
        lambda b: b.run(b.orders.with_column("one", 1)),
        "STEP_INVALID",
        ("with_column", "F.lit"),
        caused=True,
    ),
    Mistake(
        "with_columns without a dict",
        lambda b: b.orders.with_columns([("one", F.lit(1))]),
        "STEP_COLUMNS_NOT_A_DICT",
        ("list", "with_columns({"),
    ),
    Mistake(
        "transform without a function",
        lambda b: b.orders.transform("fare * 2"),
        "STEP_TRANSFORM_NOT_CALLABLE",
        ("fare * 2", "lambda"),
    ),
    Mistake(
        "a transform that returns nothing",
        lambda b: b.run(b.orders.transform(lambda frame: None)),
        "STEP_RESULT_INVALID",
        ("transform", "NoneType", "Return"),
    ),
    Mistake(
        "a transform that drops the time",
        lambda b: b.run(b.orders.transform(lambda frame: frame.select("cell"))),
        "STEP_TIME_LOST",
        ("transform", "_tidegate"),
    ),
    Mistake(
        "a transform that raises",
        lambda b: b.run(b.orders.transform(lambda frame: frame[7 / 0])),
        "STEP_FAILED",
        ("transform", "ZeroDivisionError"),
        caused=True,
    ),
    # -- joins -------------------------------------------------------------------------------------------
    Mistake(
        "a join with a table",
        lambda b: b.orders.join(b.frame("tracks"), "cell", within="1 minute"),
        "JOIN_OTHER_INVALID",
        ("DataFrame", "tg.stream"),
    ),
    Mistake(
        "no within",
        lambda b: b.near(within=None),
        "JOIN_WITHIN_MISSING",
        ("within", "tg.between", "tg.UNBOUNDED"),
    ),
    Mistake(
        "within as a tuple",
        lambda b: b.near(within=("-5 minutes", "1 minute")),
        "JOIN_WITHIN_PAIR",
        ("tg.between(",),
    ),
    Mistake("within as a number", lambda b: b.near(within=300), "JOIN_WITHIN_UNKNOWN", ("300", "tg.between")),
    Mistake(
        "crossed bounds",
        lambda b: tg.between("5 minutes", "-1 minute"),
        "JOIN_WITHIN_EMPTY",
        ("5 minutes", "-1 minute", "tg.between"),
    ),
    Mistake("an unknown how", lambda b: b.near(how="iner"), "JOIN_HOW_UNKNOWN", ("'iner'", "inner, left")),
    Mistake(
        "an unknown key",
        lambda b: b.run(b.near(on="zell")),
        "JOIN_COLUMN_MISSING",
        ("'zell'", "orders", "cell"),
    ),
    Mistake(
        "a key of one side only",
        lambda b: b.run(b.near(on="fare")),
        "JOIN_COLUMN_MISSING",
        ("'fare'", "tracks", "speed"),
    ),
    Mistake(
        "keys of types that cannot be compared",
        lambda b: b.run(b.near(on={"fare": "day"})),
        "JOIN_KEY_TYPES_DIFFER",
        ("'fare': double", "'day': date", "Cast"),
        caused=True,
    ),
    Mistake(
        "a key that is an array",
        lambda b: b.run(b.near(on="items")),
        "JOIN_KEY_TYPE",
        ("'items'", "array<string>", "parts"),
    ),
    Mistake("no key", lambda b: b.near(on=[]), "JOIN_ON_INVALID", ("on=[]", "tg.overlap")),
    Mistake("a key twice", lambda b: b.near(on=["cell", "cell"]), "JOIN_KEY_TWICE", ("cell", "once")),
    Mistake(
        "where with an unknown column",
        lambda b: b.run(b.near(where="sped < 10")),
        "JOIN_WHERE_INVALID",
        ("where", "sped", "speed"),
        caused=True,
    ),
    Mistake(
        "where that is no condition",
        lambda b: b.run(b.near(where="speed + 1")),
        "JOIN_WHERE_INVALID",
        ("where", "speed"),
        caused=True,
    ),
    Mistake(
        "an outer join over the full history",
        lambda b: b.near(how="left", within=tg.UNBOUNDED),
        "JOIN_UNBOUNDED_OUTER",
        ("'left'", "tg.between"),
    ),
    Mistake("an empty suffix", lambda b: b.near(suffix=""), "JOIN_SUFFIX_INVALID", ("suffix=''", '"_right"')),
    Mistake(
        "columns that clash",
        lambda b: b.run(
            b.orders.with_column("day_right", F.lit(1)).join(b.tracks, "cell", within="1 minute")
        ),
        "JOIN_COLUMNS_CLASH",
        ("day_right", "suffix"),
    ),
    Mistake(
        "overlap of a text",
        lambda b: b.run(b.near(on=tg.overlap("cell", at_least=2))),
        "JOIN_ITEMS_TYPE_UNSUPPORTED",
        ("'cell'", "string", "array"),
    ),
    Mistake(
        "overlap without a threshold",
        lambda b: tg.overlap("items"),
        "JOIN_SET_THRESHOLD",
        ("tg.overlap", "at_least=3"),
    ),
    Mistake(
        "a Jaccard similarity above one",
        lambda b: tg.overlap("items", jaccard=50),
        "JOIN_SET_THRESHOLD",
        ("50", "at most 1"),
    ),
    Mistake(
        "a pairwise function of one argument",
        lambda b: tg.pairwise(lambda pair: pair, "cell"),
        "JOIN_PAIRWISE_FUNCTION",
        ("tg.pairwise", "two arguments"),
    ),
    Mistake(
        "a pairwise function that needs the session",
        a_closed_over_session,
        "FUNCTION_NOT_SERIALISABLE",
        ("pairwise", "inside the function"),
        caused=True,
    ),
    Mistake(
        "two conditions on sets",
        lambda b: b.near(on=[tg.overlap("items", 2), tg.overlap("items", 3)]),
        "JOIN_CONDITIONS_MANY",
        ("items", "where="),
    ),
    Mistake(
        "times of two types",
        lambda b: b.run(
            b.orders.join(b.stream("tracks", "ts timestamp_ntz, cell string"), "cell", within="1 minute")
        ),
        "JOIN_TIME_TYPES_DIFFER",
        ("timestamp_ntz", "to_timestamp_ltz"),
    ),
    # -- joins by SQL ------------------------------------------------------------------------------------
    Mistake(
        "SQL with OR",
        lambda b: sql(b, f"(orders.cell = tracks.cell OR fare > 3) AND {TIMED} OR fare > 1"),
        "JOIN_SQL_OR",
        ("OR", "AND"),
    ),
    Mistake(
        "SQL without a time bound",
        lambda b: sql(b, "orders.cell = tracks.cell"),
        "JOIN_SQL_TIME_MISSING",
        ("tracks.ts BETWEEN orders.ts - INTERVAL", "within="),
    ),
    Mistake(
        "SQL with a one-sided bound",
        lambda b: sql(b, "orders.cell = tracks.cell AND tracks.ts >= orders.ts"),
        "JOIN_SQL_TIME_ONE_SIDED",
        ("after", "tracks.ts BETWEEN"),
    ),
    Mistake(
        "SQL with crossed bounds",
        lambda b: sql(
            b, "orders.cell = tracks.cell AND tracks.ts BETWEEN orders.ts + INTERVAL 5 MINUTES AND orders.ts"
        ),
        "JOIN_SQL_TIME_EMPTY",
        ("5 minutes", "widen"),
    ),
    Mistake(
        "SQL with an unknown stream",
        lambda b: sql(b, f"orders.cell = trucks.cell AND {TIMED}"),
        "JOIN_SQL_UNKNOWN_STREAM",
        ("trucks", "orders", "tracks"),
    ),
    Mistake(
        "SQL with an unknown column",
        lambda b: sql(b, f"orders.zell = tracks.cell AND {TIMED}"),
        "JOIN_SQL_UNKNOWN_COLUMN",
        ("zell", "orders", "cell"),
    ),
    Mistake(
        "SQL with an ambiguous column",
        lambda b: sql(b, f"cell = cell AND {TIMED}"),
        "JOIN_SQL_AMBIGUOUS_COLUMN",
        ("cell", "orders.cell"),
    ),
    Mistake(
        "SQL that does not parse",
        lambda b: sql(b, "orders.cell = = tracks.cell"),
        "JOIN_SQL_SYNTAX",
        ("orders.cell = = tracks.cell", "AND"),
    ),
    Mistake("SQL without an equality", lambda b: sql(b, TIMED), "JOIN_SQL_NO_KEY", ("orders", "tracks", "=")),
    Mistake(
        "SQL with bounds and within",
        lambda b: sql(b, f"orders.cell = tracks.cell AND {TIMED}", within="1 minute"),
        "JOIN_WITHIN_TWICE",
        ("within='1 minute'", "Leave one"),
    ),
    Mistake(
        "SQL in a list",
        lambda b: b.near(on=["cell", "orders.fare = tracks.speed"]),
        "JOIN_SQL_IN_LIST",
        ("orders.fare = tracks.speed", "where="),
    ),
    Mistake(
        "a column expression that cannot be read",
        lambda b: b.near(on=F.udf(lambda x: x)("cell")),
        "JOIN_COLUMN_UNREADABLE",
        ("SQL text", "where="),
    ),
    # -- windows -----------------------------------------------------------------------------------------
    Mistake(
        "a slide above the size",
        lambda b: b.orders.window("1 minute", slide="2 minutes"),
        "WINDOW_SLIDE_INVALID",
        ("slide", "size", "2 minutes"),
    ),
    Mistake(
        "a window of no length", lambda b: b.orders.window("0 seconds"), "WINDOW_SIZE_INVALID", ("size",)
    ),
    Mistake(
        "a window of a number",
        lambda b: b.orders.window(100),
        "WINDOW_SIZE_INVALID",
        ("size of a window", "100", "tg.row_window"),
    ),
    Mistake(
        "an unknown by",
        lambda b: b.run(b.orders.window("1 minute", by="zell").agg(n=F.count("*"))),
        "WINDOW_BY_UNKNOWN",
        ("zell", "cell", "by="),
    ),
    Mistake(
        "by an expression",
        lambda b: b.orders.window("1 minute", by=F.col("cell")),
        "WINDOW_BY_INVALID",
        ("cell", "with_column"),
    ),
    Mistake(
        "an aggregate without a name",
        lambda b: b.orders.window("1 minute").agg(F.count("*")),
        "AGGREGATE_NAME_MISSING",
        ("count", '.alias("n")'),
    ),
    Mistake(
        "no aggregate",
        lambda b: b.orders.window("1 minute").agg(),
        "WINDOW_AGGREGATES_MISSING",
        ('.agg(n=F.count("*"))',),
    ),
    Mistake(
        "DISTINCT",
        lambda b: agg(b, n=F.count_distinct("cell")),
        "AGGREGATE_UNSUPPORTED",
        ("'n'", "DISTINCT", "approx_count_distinct"),
    ),
    Mistake(
        "an expression over aggregates",
        lambda b: agg(b, n=F.max("fare") - F.min("fare")),
        "AGGREGATE_UNSUPPORTED",
        ("'n'", "after the window"),
    ),
    Mistake(
        "no aggregate function",
        lambda b: agg(b, n=F.col("fare")),
        "AGGREGATE_UNSUPPORTED",
        ("'n'", "fare", "F.max"),
    ),
    Mistake(
        "an unknown column in an aggregate",
        lambda b: agg(b, top=F.max("fair")),
        "AGGREGATE_ARGUMENT_INVALID",
        ("'top'", "fair", "fare"),
        caused=True,
    ),
    Mistake(
        "a sum of texts",
        lambda b: agg(b, total=F.sum("items")),
        "AGGREGATE_TYPE_INVALID",
        ("'total'", "array<string>", "ast"),
    ),
    Mistake(
        "a number as an aggregate", lambda b: agg(b, n=7), "AGGREGATE_UNSUPPORTED", ("'n'", "7", "F.max")
    ),
    Mistake(
        "an aggregate named as a group",
        lambda b: agg(b, cell=F.count("*")),
        "AGGREGATE_NAME_CLASH",
        ("cell", "another name"),
    ),
    Mistake(
        "an Aggregator class", lambda b: agg(b, mean=Mean), "AGGREGATOR_NOT_AN_INSTANCE", ("'mean'", "Mean(")
    ),
    Mistake(
        "an Aggregator without columns",
        lambda b: agg(b, mean=Mean()),
        "AGGREGATOR_COLUMNS_MISSING",
        ("'mean'", "Mean("),
    ),
    Mistake(
        "an Aggregator of an unknown type",
        lambda b: agg(b, mean=UnknownType("fare")),
        "AGGREGATOR_TYPE_INVALID",
        ("'mean'", "returns", "doubel"),
        caused=True,
    ),
    Mistake(
        "an Aggregator with a wrong state",
        lambda b: agg(b, mean=OneField("fare")),
        "AGGREGATOR_ZERO_TYPE",
        ("'mean'", "zero", "n long, total double"),
        caused=True,
    ),
    Mistake(
        "an Aggregator without finish",
        lambda b: agg(b, n=NoFinish("fare")),
        "AGGREGATOR_METHOD_MISSING",
        ("'n'", "finish", "NoFinish"),
    ),
    Mistake(
        "an Aggregator of an unknown column",
        lambda b: agg(b, mean=Mean("fair")),
        "AGGREGATE_ARGUMENT_INVALID",
        ("'mean'", "fair", "fare"),
        caused=True,
    ),
    Mistake(
        "max_gap without windows",
        lambda b: b.start(b.near().write_to("noop", max_gap=3), goal=tg.Goal(latency="2 seconds")),
        "OUTPUT_MAX_GAP_UNSUPPORTED",
        ("max_gap", "max_loss"),
    ),
    # -- matches -----------------------------------------------------------------------------------------
    Mistake(
        "a predicate that does not parse",
        lambda b: b.run(b.orders.match([tg.RangeQuery("dear", "fare > and 3")])),
        "QUERY_SQL_INVALID",
        ("'dear'", "fare > and 3"),
    ),
    Mistake(
        "a predicate over two columns",
        lambda b: b.run(b.orders.match([tg.RangeQuery("dear", "fare > cell")])),
        "QUERY_PREDICATE_UNSUPPORTED",
        ("'dear'", "fare > cell", "literals"),
    ),
    Mistake(
        "a predicate with an unknown column",
        lambda b: b.run(b.orders.match([tg.RangeQuery("dear", "fair > 3")])),
        "QUERY_COLUMN_MISSING",
        ("'dear'", "fair", "fare"),
    ),
    Mistake(
        "a predicate with a text for a number",
        lambda b: b.run(b.orders.match([tg.RangeQuery("dear", "fare > '3'")])),
        "QUERY_LITERAL_TYPE_MISMATCH",
        ("'dear'", "fare", "quotes"),
    ),
    Mistake(
        "queries of one name",
        lambda b: b.run(
            b.orders.match([tg.RangeQuery("dear", "fare > 3"), tg.RangeQuery("dear", "fare > 5")])
        ),
        "QUERY_NAMES_EQUAL",
        ("dear", "name"),
    ),
    Mistake(
        "a predicate that is never true",
        lambda b: b.run(b.orders.match([tg.RangeQuery("none", "fare > 3 and fare < 2")])),
        "QUERY_NEVER_TRUE",
        ("'none'", "fare > 3 and fare < 2", "Correct"),
    ),
    Mistake(
        "a text as a query",
        lambda b: b.orders.match(["fare > 3"]),
        "MATCH_QUERIES_TYPE",
        ("fare > 3", "tg.RangeQuery("),
    ),
    Mistake(
        "publish_to alone",
        lambda b: b.orders.match([tg.RangeQuery("dear", "fare > 3")], publish_to="filters/"),
        "MATCH_PUBLISH_INCOMPLETE",
        ("sample_column", "tidegate sift"),
    ),
    Mistake(
        "a negative weight",
        lambda b: tg.RangeQuery("dear", "fare > 3", weight=-1),
        "QUERY_WEIGHT_RANGE",
        ("'dear'", "-1", "above 0"),
    ),
    # -- outputs -----------------------------------------------------------------------------------------
    Mistake(
        "an unknown format",
        lambda b: b.start(b.near().write_to("parket", b.out())),
        "OUTPUT_FORMAT_UNKNOWN",
        ("'parket'", "spark.jars.packages"),
    ),
    Mistake(
        "Kafka without its package",
        lambda b: b.start(b.near().write_to("kafka", options={"topic": "near"})),
        "OUTPUT_FORMAT_UNKNOWN",
        ("'kafka'", "spark.jars.packages"),
    ),
    Mistake(
        "an output on a storage without a connector",
        lambda b: b.start(b.near().write_to("parquet", "nosuch://bucket/near")),
        "OUTPUT_PATH_UNREACHABLE",
        ("output", "nosuch://bucket/near", "No FileSystem for scheme", "connector"),
        caused=True,
    ),
    Mistake(
        "a checkpoint on a storage without a connector",
        lambda b: b.run(b.near(), checkpoint="nosuch://bucket/ck"),
        "CHECKPOINT_UNREACHABLE",
        ("nosuch://bucket/ck", "nosuch", "fsspec"),
        caused=True,
    ),
    Mistake(
        "no path",
        lambda b: b.near().write_to("parquet"),
        "OUTPUT_PATH_MISSING",
        ("parquet", "write_to('parquet', \"out/pairs\")"),
    ),
    Mistake(
        "a path that is no text",
        lambda b: b.near().write_to("parquet", 7),
        "PATH_TYPE",
        ("parquet", "7", '"some/folder"'),
    ),
    Mistake(
        "two outputs with one path",
        lambda b: b.start(
            b.near().write_to("parquet", b.out(), name="one"),
            b.near().write_to("parquet", b.out(), name="two"),
        ),
        "OUTPUT_PATHS_EQUAL",
        ("out/near", "own directory"),
    ),
    Mistake(
        "two outputs with one name",
        lambda b: b.start(b.orders.write_to("noop", name="one"), b.tracks.write_to("noop", name="one")),
        "OUTPUT_NAMES_EQUAL",
        ("one", 'name="'),
    ),
    Mistake(
        "two joins with one name",
        lambda b: b.start(
            b.near().write_to("noop", name="one"), b.near(how="left").write_to("noop", name="two")
        ),
        "OPERATOR_NAMES_EQUAL",
        ("orders_tracks_cell", 'name="'),
    ),
    Mistake(
        "an unknown partition_by",
        lambda b: b.start(b.near().write_to("parquet", b.out(), partition_by="dday")),
        "OUTPUT_PARTITION_BY_UNKNOWN",
        ("dday", "day", "partition_by="),
    ),
    Mistake(
        "options beside a function",
        lambda b: b.near().write_to(print, options={"compression": "zstd"}),
        "OUTPUT_FUNCTION_SETTINGS",
        ("options", "compression", "format"),
    ),
    Mistake(
        "update mode",
        lambda b: b.near().write_to("parquet", b.out(), mode="update"),
        "OUTPUT_MODE_UNSUPPORTED",
        ("'update'", "write_to(my_function)"),
    ),
    Mistake(
        "no format and no function",
        lambda b: b.near().write_to(None, b.out()),
        "OUTPUT_TARGET_TYPE",
        ("None", 'write_to("parquet"'),
    ),
    Mistake(
        "a loss of 5", lambda b: b.near().write_to("noop", max_loss=5), "MAX_LOSS_RANGE", ("5", "below 1")
    ),
    Mistake(
        "no priority",
        lambda b: b.near().write_to("noop", priority=0),
        "OUTPUT_PRIORITY_RANGE",
        ("0", "above zero"),
    ),
    Mistake(
        "a table in an unknown database",
        lambda b: b.start(b.near().write_to_table("nowhere.near")),
        "OUTPUT_DATABASE_UNKNOWN",
        ("'nowhere'", "CREATE DATABASE"),
    ),
    # -- starting ----------------------------------------------------------------------------------------
    Mistake("no outputs", lambda b: b.start(), "OUTPUTS_MISSING", ("write_to",)),
    Mistake(
        "a stream instead of an output", lambda b: b.start(b.near()), "OUTPUT_TYPE", ("Stream", ".write_to(")
    ),
    Mistake(
        "outputs in a list",
        lambda b: b.start([b.near().write_to("noop")]),
        "OUTPUT_TYPE",
        ("list", "tg.start("),
    ),
    Mistake(
        "no checkpoint", lambda b: b.run(b.near(), checkpoint=None), "CHECKPOINT_MISSING", ('checkpoint="',)
    ),
    Mistake(
        "a checkpoint that is a file",
        lambda b: (b.folder / "file").write_text("") or b.run(b.near(), checkpoint=b.folder / "file"),
        "CHECKPOINT_UNWRITABLE",
        ("/file", "checkpoint="),
        caused=True,
    ),
    Mistake(
        "a goal with nothing to shed",
        lambda b: b.run(b.near(how="left"), goal=tg.Goal(latency="2 seconds")),
        "GOAL_NOTHING_TO_SHED",
        ("left join", "left_semi"),
    ),
    Mistake(
        "a latency below the trigger",
        lambda b: b.run(b.near(), goal=tg.Goal(latency="1 second"), trigger="10 seconds"),
        "GOAL_LATENCY_BELOW_TRIGGER",
        ("1 s", "10 s", "trigger"),
    ),
    Mistake(
        "a goal that is a text",
        lambda b: b.run(b.near(), goal="2 seconds"),
        "START_SETTING_TYPE",
        ("goal", "tg.Goal("),
    ),
    Mistake(
        "a latency of zero",
        lambda b: tg.Goal(latency="0 seconds"),
        "GOAL_LATENCY_ZERO",
        ("latency", "'2 seconds'"),
    ),
    Mistake(
        "available_now with a trigger",
        lambda b: b.run(b.near(), available_now=True, trigger="1 second"),
        "AVAILABLE_NOW_WITH_TRIGGER",
        ("trigger='1 second'", "Leave one"),
    ),
    Mistake(
        "available_now with a goal",
        lambda b: b.run(b.near(), available_now=True, goal=tg.Goal(latency="2 seconds")),
        "AVAILABLE_NOW_WITH_GOAL",
        ("latency", "Leave out the goal"),
    ),
    Mistake(
        "the old way to say available_now",
        lambda b: b.run(b.near(), trigger="available now"),
        "TRIGGER_AVAILABLE_NOW",
        ("'available now'", "available_now=True"),
    ),
    Mistake(
        "an unknown watermark",
        lambda b: b.run(b.near(), watermark="fastest"),
        "WATERMARK_RULE_UNKNOWN",
        ("'fastest'", "'slowest'"),
    ),
    Mistake(
        "names that are exchanged",
        lambda b: b.run(b.near(), renames={"near": "close", "close": "near"}),
        "RENAMES_INVALID",
        ("near", "third name"),
    ),
    Mistake(
        "no instances", lambda b: b.run(b.near(), instances=0), "START_NUMBER_INVALID", ("instances", "0")
    ),
    Mistake(
        "more instances than partitions",
        lambda b: b.run(b.near(), instances=8, partitions=4),
        "BALANCE_INSTANCES_INVALID",
        ("8", "4", "instances="),
    ),
    Mistake(
        "a batch input with a goal",
        lambda b: b.run(b.table, checkpoint=None, goal=tg.Goal(latency="2 seconds")),
        "BATCH_SETTINGS_USELESS",
        ("goal", "spark.readStream"),
    ),
    Mistake(
        "batch and streaming inputs",
        lambda b: b.run(b.orders.join(b.table, "cell", within="1 minute")),
        "STREAM_INPUTS_MIXED",
        ("orders", "old", "transform"),
    ),
    Mistake(
        "to_dataframe of a stream",
        lambda b: b.near().to_dataframe(),
        "TO_DATAFRAME_STREAMING",
        ("orders", "tg.start"),
    ),
    # -- settings ----------------------------------------------------------------------------------------
    Mistake(
        "a typo in an option",
        lambda b: b.near().writeStream.option("tidegate.latencyy", "2 seconds"),
        "OPTION_UNKNOWN",
        ("tidegate.latencyy", "tidegate.latency,"),
    ),
    Mistake(
        "an option that is no number",
        lambda b: b.near().writeStream.option("tidegate.instances", "many"),
        "OPTION_VALUE",
        ("tidegate.instances", "many", "number"),
    ),
    Mistake(
        "complete mode",
        lambda b: b.near().writeStream.outputMode("complete"),
        "OUTPUT_MODE_UNSUPPORTED",
        ("'complete'", 'outputMode("append")'),
    ),
    Mistake(
        "an option of a goal without a latency",
        lambda b: (
            b.near()
            .writeStream.format("noop")
            .option("tidegate.max_loss", 0.1)
            .option("checkpointLocation", b.out("ck"))
            .start()
        ),
        "GOAL_LATENCY_MISSING",
        ("tidegate.max_loss", "tidegate.latency"),
    ),
    Mistake(
        "the old way to say repair",
        lambda b: tg.Shed(repair="when idle"),
        "SHED_REPAIR_UNKNOWN",
        ("'when idle'", "'idle'"),
    ),
    Mistake(
        "an unknown way to shed",
        lambda b: tg.Shed(join="randomly"),
        "SHED_JOIN_UNKNOWN",
        ("'randomly'", "selective"),
    ),
    Mistake(
        "a share to explore above one",
        lambda b: policies.Adaptive(explore_ratio=10),
        "SHED_EXPLORE_RATIO_RANGE",
        ("explore_ratio", "10", "up to 1"),
    ),
    Mistake(
        "a threshold below one",
        lambda b: policies.FastJoin(threshold=0.5),
        "POLICY_PARAMETER_RANGE",
        ("threshold", "0.5"),
    ),
    Mistake(
        "an unknown strategy",
        lambda b: tg.Balance(strategy="fast join"),
        "BALANCE_STRATEGY_UNKNOWN",
        ("'fast join'", "fastjoin"),
    ),
    Mistake(
        "a size without a unit",
        lambda b: tg.Goal(latency="2 seconds", max_state="2"),
        "SIZE_INVALID",
        ("max_state", "'2'", '"2 GB"'),
    ),
    Mistake(
        "a test with an unknown stream",
        lambda b: testing.run(b.near(), {"orders": [], "trucks": []}),
        "TESTING_STREAMS_DIFFER",
        ("trucks", "tracks"),
    ),
    Mistake(
        "a test with an unknown column",
        lambda b: testing.run(b.near(), {"orders": [[{"fair": 3.0}]], "tracks": []}),
        "TESTING_COLUMNS_UNKNOWN",
        ("orders", "fair", "fare"),
    ),
    Mistake(
        "a test with a value of another type",
        lambda b: testing.run(b.near(), {"orders": [[{"fare": "much"}]], "tracks": []}),
        "TESTING_ROWS_INVALID",
        ("Batch 0", "'orders'", "fare", "double"),
        caused=True,
    ),
    Mistake(
        "a probe ratio above one",
        lambda b: testing.run(b.near(), {"orders": [], "tracks": []}, probe_ratio=30),
        "TESTING_PROBE_RATIO_RANGE",
        ("probe_ratio", "30", "up to 1"),
    ),
)
