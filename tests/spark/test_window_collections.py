"""Lists, sets, sketches and user-defined aggregates of windows on Spark, whatever the batches."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds

import tidegate as tg
from tidegate.driver.compile.windows.window_aggregates import taken_apart
from tidegate.worker.runtime.layout import TIME

SCHEMA = "ts timestamp, n long, fare double, word string, place struct<x: int, y: string>"
SECOND = 1_000_000
Row = dict[str, Any]
Key = tuple[Any, ...]


def rides(rows: int, seed: int, span_seconds: float = 40) -> pa.Table:
    """Times repeat, so that rows of one time must be told apart; a tenth of all values is null."""
    rng = np.random.default_rng(seed)

    def some(values: Sequence[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    us = seconds(0) + np.sort(rng.integers(0, int(span_seconds * 10), rows)) * 100_000
    places = [{"x": x, "y": y} for x, y in zip(some(range(rows)), some(["a"] * rows), strict=True)]
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "n": pa.array(some(rng.integers(0, 9, rows).tolist()), pa.int64()),
            "fare": pa.array(some((rng.integers(0, 99, rows) / 4).tolist()), pa.float64()),
            "word": pa.array(some(rng.choice(["bus", "tram", "taxi"], rows).tolist())),
            "place": pa.array(some(places), pa.struct([("x", pa.int32()), ("y", pa.string())])),
        }
    )


def out_of_order(table: pa.Table) -> pa.Table:
    """Rows come up to two seconds too late."""
    delays = np.random.default_rng(0).integers(0, 2 * SECOND, len(table))
    return table.take(np.argsort(table.column("ts").cast(pa.int64()).to_numpy() + delays, kind="stable"))


def windows_of(rows: Iterable[Row], size: int, slide: int, by: Sequence[str]) -> dict[Key, list[Row]]:
    """(start, group …) → the rows of this window, in order of time; in plain Python."""
    held: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        at = round((row["ts"] - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
        for number in range((at - size) // slide + 1, at // slide + 1):
            held[number * slide, *(row[name] for name in by)].append(row)
    return {key: sorted(some, key=lambda row: row["ts"]) for key, some in held.items()}


def microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)


# -- aggregates of users, and what they mean ---------------------------------------------------------


def mean_fare() -> tg.Aggregator:
    """With merge. Null fares are NaN. Workers cannot import tests, so classes are inside functions."""

    class MeanFare(tg.Aggregator):
        state = "n long, s double"
        returns = "double"

        def zero(self) -> tuple[int, float]:
            return 0, 0.0

        def update(self, state: tuple[int, float], fares: NDArray[np.float64]) -> tuple[int, float]:
            known = fares[~np.isnan(fares)]
            return state[0] + len(known), state[1] + float(known.sum())

        def merge(self, one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
            return one[0] + other[0], one[1] + other[1]

        def finish(self, state: tuple[int, float]) -> float | None:
            return state[1] / state[0] if state[0] else None

    return MeanFare("fare")


def mean_of(rows: Sequence[Row]) -> float | None:
    known = [row["fare"] for row in rows if row["fare"] is not None]
    return sum(known) / len(known) if known else None


def quantile_fare() -> tg.Aggregator:
    """Without merge: needs whole windows, and sees them in order of time. It has a parameter of its own."""

    class QuantileFare(tg.Aggregator):
        state = "fares array<double>, ordered boolean"
        returns = "struct<middle: double, ordered: boolean>"

        def __init__(self, *columns: Any, share: float) -> None:
            super().__init__(*columns)
            self.share = share

        def zero(self) -> tuple[list[float], bool]:
            return [], self.share <= 1

        def update(self, state: Any, at: NDArray[np.datetime64], fares: Any) -> tuple[list[float], bool]:
            return fares.tolist(), state[1] and bool((np.diff(at) >= np.timedelta64(0)).all())

        def finish(self, state: tuple[list[float], bool]) -> dict[str, Any]:
            return {"middle": float(np.quantile(state[0], self.share)), "ordered": state[1]}

    return QuantileFare("ts", F.coalesce("fare", F.lit(-1.0)), share=0.5)


def median_of(rows: Sequence[Row]) -> tuple[float, bool]:
    return float(np.median([-1.0 if row["fare"] is None else row["fare"] for row in rows])), True


def spread(merged: bool, column: str = "fare") -> tg.Aggregator:
    """Of the same column as another: rows that are kept can be shared, states cannot."""

    class Spread(tg.Aggregator):
        state = "low double, high double"
        returns = "double"

        def zero(self) -> tuple[float, float]:
            return np.inf, -np.inf

        def update(self, state: tuple[float, float], fares: NDArray[np.float64]) -> tuple[float, float]:
            return np.nanmin([state[0], *fares]), np.nanmax([state[1], *fares])

        def finish(self, state: tuple[float, float]) -> float:
            return state[1] - state[0]

    class Merged(Spread):
        def merge(self, one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
            return min(one[0], other[0]), max(one[1], other[1])

    return Merged(column) if merged else Spread(column)


def spread_of(rows: Sequence[Row]) -> float:
    known = [row["fare"] for row in rows if row["fare"] is not None]
    return max(known, default=-np.inf) - min(known, default=np.inf)


def words() -> tg.Aggregator:
    """Strings and whole numbers with nulls; a state with a map in it."""

    class Words(tg.Aggregator):
        state = "counts map<string, long>"
        returns = "map<string, long>"

        def zero(self) -> tuple[dict[str, int]]:
            return ({},)

        def update(self, state: tuple[dict[str, int]], words: Any, numbers: Any) -> tuple[dict[str, int]]:
            counts = dict(state[0])
            for word, number in zip(words, numbers, strict=True):
                counts[word or "?"] = counts.get(word or "?", 0) + (0 if np.isnan(number) else int(number))
            return (counts,)

        def merge(self, one: tuple[dict[str, int]], other: tuple[dict[str, int]]) -> tuple[dict[str, int]]:
            return ({key: one[0].get(key, 0) + other[0].get(key, 0) for key in one[0] | other[0]},)

        def finish(self, state: tuple[dict[str, int]]) -> dict[str, int]:
            return state[0]

    return Words("word", "n")


def words_of(rows: Sequence[Row]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row["word"] or "?"] += row["n"] or 0
    return dict(counts)


def values(column: str) -> Callable[[Sequence[Row]], Any]:
    return lambda rows: [as_tuple(row[column]) for row in rows if row[column] is not None]


def as_tuple(value: Any) -> Any:
    """Structs of Arrow as tuples, which Spark's rows are."""
    return tuple(value.values()) if isinstance(value, dict) else value


#: Name → the aggregate, and its meaning in plain Python.
AGGREGATES: dict[str, tuple[Callable[[], Any], Callable[[Sequence[Row]], Any]]] = {
    "rows": (lambda: F.count("*"), len),
    "mean": (mean_fare, mean_of),
    "median": (quantile_fare, median_of),
    "spread": (lambda: spread(True), spread_of),
    "whole_spread": (lambda: spread(False), spread_of),
    "words": (words, words_of),
    "fares": (lambda: F.collect_list("fare"), values("fare")),
    "places": (lambda: F.array_agg("place"), values("place")),
    "kinds": (lambda: F.collect_set("word"), values("word")),
    "spots": (lambda: F.collect_set("place"), values("place")),
    "top": (lambda: F.max("fare"), lambda rows: max(values("fare")(rows), default=None)),
}
LISTS, SETS = {"fares": "fare", "places": "place"}, ("kinds", "spots")


def aggregates() -> dict[str, Any]:
    return {name: made() for name, (made, _) in AGGREGATES.items()}


def check(found: Sequence[Row], wanted: dict[Key, list[Row]], by: Sequence[str]) -> None:
    """Every window once, and each aggregate what its rows say."""
    mine = {(microseconds(row["window_start"]), *(row[name] for name in by)): row for row in found}
    assert len(mine) == len(found), "a window came twice"
    assert mine.keys() == wanted.keys()
    for key, rows in wanted.items():
        for name, (_, meaning) in AGGREGATES.items():
            told, meant = mine[key][name], meaning(rows)
            if name in LISTS:
                check_list(told, rows, LISTS[name])
            elif name in SETS:
                assert len(told) == len(set(told)), "a set has a value twice"
                assert set(told) == set(meant)
            else:
                assert told == meant, (key, name)


def check_list(told: list[Any], rows: Sequence[Row], column: str) -> None:
    """In order of time; of rows of one time any order will do here."""
    place = 0
    for moment in sorted({row["ts"] for row in rows}):
        some = values(column)([row for row in rows if row["ts"] == moment])
        assert Counter(told[place : place + len(some)]) == Counter(some)
        place += len(some)
    assert place == len(told)


def dicts(sink: Sink) -> list[Row]:
    return [dict(zip(sink.columns, row, strict=True)) for row in sink.rows]


def frame_of(spark: SparkSession, folder: Path, table: pa.Table) -> DataFrame:
    add_files(folder, [table])
    return spark.read.schema(SCHEMA).parquet(str(folder))


@pytest.mark.parametrize(
    ("size", "slide", "by"),
    [(10, 10, ["word"]), (7, 3, []), (8, 2, ["fare", "word"])],
    ids=["tumbling", "sliding", "by a double"],
)
def test_windows_of_batch_inputs_are_what_their_rows_say(
    spark: SparkSession, tmp_path: Path, size: int, slide: int, by: list[str]
) -> None:
    table = rides(400, 1)
    stream = tg.stream(frame_of(spark, tmp_path, table), time="ts", name="rides", lateness="0 seconds")
    sink = Sink()
    windows = stream.window(f"{size} seconds", slide=f"{slide} seconds", by=by)
    tg.start(windows.agg(**aggregates()).write_to(sink))
    check(dicts(sink), windows_of(table.to_pylist(), size * SECOND, slide * SECOND, by), by)


def test_streamed_windows_do_not_depend_on_how_rows_are_cut_into_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = out_of_order(rides(500, 2))
    found = []
    for run, cuts in enumerate(([0, 500], [0, 3, 40, 41, 190, 420, 500])):
        add_files(tmp_path / f"in{run}", [table.slice(a, b - a) for a, b in pairwise(cuts)])
        frame = read_files(spark, tmp_path / f"in{run}", SCHEMA)
        stream = tg.stream(frame, time="ts", name="rides", lateness="3 seconds")
        sink = Sink()
        query = tg.start(
            stream.window("6 seconds", slide="2 seconds", by="word").agg(**aggregates()).write_to(sink),
            checkpoint=str(tmp_path / f"ck{run}"),
            available_now=True,
            instances=1 + run,
        )
        assert query.await_termination(PATIENCE_SECONDS)
        found.append(dicts(sink))
    newest = microseconds(max(table.column("ts").to_pylist()))
    wanted = windows_of(table.to_pylist(), 6 * SECOND, 2 * SECOND, ["word"])
    closed = {key: rows for key, rows in wanted.items() if key[0] + 9 * SECOND <= newest}
    check(found[1], closed, ["word"])
    # Lists too: rows of one time have an order of their own.
    one, other = (Counter(repr(sorted(row.items())) for row in rows) for rows in found)
    assert one == other


# -- behind other operators ------------------------------------------------------------------------------


def test_they_work_behind_a_window_and_behind_a_join(spark: SparkSession, tmp_path: Path) -> None:
    table = rides(200, 3)
    stream = tg.stream(frame_of(spark, tmp_path / "in", table), time="ts", name="rides", lateness="0 seconds")
    zones = spark.createDataFrame([("bus", 1), ("tram", 2)], "word string, zone int").withColumn(
        "at", F.timestamp_micros(F.lit(seconds(0)))
    )

    class Longest(tg.Aggregator):
        state = "longest int"
        returns = "int"

        def zero(self) -> tuple[int]:
            return (0,)

        def update(self, state: tuple[int], lists: Any) -> tuple[int]:
            return (max([state[0], *map(len, lists)]),)

        def merge(self, one: tuple[int], other: tuple[int]) -> tuple[int]:
            return max(one, other)

        def finish(self, state: tuple[int]) -> int:
            return state[0]

    joined = stream.join(
        tg.stream(zones, time="at", name="zones", lateness="0 seconds"), on="word", within="1 hour"
    )
    inner = stream.window("5 seconds", by="word").agg(
        mean=mean_fare(), fares=F.collect_list(F.struct(F.col("fare").alias("odd. name")))
    )
    nested = inner.window("20 seconds").agg(
        means=F.collect_list("mean"),
        longest=Longest("fares"),
    )
    zoned = joined.window("10 seconds", by="zone").agg(
        fares=F.collect_list("fare"), mean=mean_fare(), words=F.collect_set("word")
    )
    sinks = [Sink("nested"), Sink("zoned")]
    tg.start(nested.write_to(sinks[0]), zoned.write_to(sinks[1]))

    rows = table.to_pylist()
    first = windows_of(rows, 5 * SECOND, 5 * SECOND, ["word"])
    made = [
        {
            "ts": datetime.fromtimestamp(key[0] / 1e6, UTC),
            "mean": mean_of(some),
            "fares": some,
        }
        for key, some in first.items()
    ]
    outer = windows_of(made, 20 * SECOND, 20 * SECOND, [])
    assert len(sinks[0].rows) == len(outer)
    for row in dicts(sinks[0]):
        some = outer[(microseconds(row["window_start"]),)]
        check_list(row["means"], some, "mean")
        assert row["longest"] == max(len(one["fares"]) for one in some)
    zone_of = {"bus": 1, "tram": 2}
    there = [{**row, "zone": zone_of[row["word"]]} for row in rows if row["word"] in zone_of]
    wanted = windows_of(there, 10 * SECOND, 10 * SECOND, ["zone"])
    assert len(sinks[1].rows) == len(wanted)
    for row in dicts(sinks[1]):
        some = wanted[microseconds(row["window_start"]), row["zone"]]
        check_list(row["fares"], some, "fare")
        assert row["mean"] == mean_of(some)
        assert row["words"] == [some[0]["word"]]


# -- errors ----------------------------------------------------------------------------------------------


def test_a_function_that_raises_names_group_and_window_and_the_query_goes_on_once_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = rides(300, 4)
    table = whole.filter(pa.compute.equal(whole.column("word"), "bus"))
    add_files(tmp_path / "in", [table.slice(i, 20) for i in range(0, len(table), 20)])
    middle = table.column("ts").to_pylist()[len(table) // 2]

    class Total(tg.Aggregator):
        state = "n long, s double"
        returns = "double"

        def __init__(self, poison: datetime | None) -> None:
            super().__init__("ts", "fare")
            self.poison = None if poison is None else np.datetime64(poison.replace(tzinfo=None))

        def zero(self) -> tuple[int, float]:
            return 0, 0.0

        def update(self, state: tuple[int, float], at: Any, fares: Any) -> tuple[int, float]:
            if self.poison is not None and (at == self.poison).any():
                raise ValueError("bad row\nas it seems")
            return state[0] + len(fares), state[1] + float(np.nansum(fares))

        def merge(self, one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
            return one[0] + other[0], one[1] + other[1]

        def finish(self, state: tuple[int, float]) -> float:
            return state[1]

    def run(poison: datetime | None) -> Any:
        total = Total(poison)
        stream = tg.stream(
            read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="0 seconds"
        )
        busy = stream.window("4 seconds", by="word").agg(total=total, fares=F.collect_list("fare"))
        return tg.start(
            busy.write_to("parquet", str(tmp_path / "out")),
            checkpoint=str(tmp_path / "ck"),
            available_now=True,
        )

    query = run(middle)
    with pytest.raises(tg.BatchFailed) as caught:
        query.await_termination(PATIENCE_SECONDS)
    start = microseconds(middle) // (4 * SECOND) * 4 * SECOND
    moment = datetime.fromtimestamp(start / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    said = str(caught.value)
    assert (
        f"Aggregate 'total' failed in update, for the group word='bus' and the window from {moment}. " in said
    )
    assert "Got: ValueError: bad row as it seems (test_window_collections.py, line" in said
    assert "Correct the method" in said
    assert "AGGREGATOR_FAILED" in said
    assert isinstance(query.exception(), tg.BatchFailed)

    assert run(None).await_termination(PATIENCE_SECONDS)
    newest = microseconds(max(table.column("ts").to_pylist()))
    wanted = windows_of(table.to_pylist(), 4 * SECOND, 4 * SECOND, [])
    closed = {key[0]: some for key, some in wanted.items() if key[0] + 4 * SECOND <= newest}
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter(microseconds(row.window_start) for row in found) == Counter(closed.keys())
    for row in found:
        some = closed[microseconds(row.window_start)]
        assert row.total == sum(values("fare")(some))
        check_list(row.fares, some, "fare")


def test_another_state_does_not_go_on_from_a_checkpoint_and_another_function_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_files(tmp_path / "in", [rides(20, 5)])

    class Steps(tg.Aggregator):
        returns = "long"

        def __init__(self, column: str, state: str, step: int) -> None:
            super().__init__(column)
            self.state, self.step = state, step

        def zero(self) -> tuple[int]:
            return (0,)

        def update(self, state: tuple[int], array: Any) -> tuple[int]:
            return (state[0] + self.step * len(array),)

        def merge(self, one: tuple[int], other: tuple[int]) -> tuple[int]:
            return (one[0] + other[0],)

        def finish(self, state: tuple[int]) -> int:
            return state[0]

    def run(state: str, step: int, column: str = "n") -> None:
        one = Steps(column, state, step)
        stream = tg.stream(
            read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="0 seconds"
        )
        query = tg.start(
            stream.window("5 seconds").agg(x=one).write_to(Sink()),
            checkpoint=str(tmp_path / "ck"),
            available_now=True,
        )
        assert query.await_termination(PATIENCE_SECONDS)

    run("n long", 1)
    run("n long", 2)
    with pytest.raises(tg.StateError, match=r"aggregators.*n:bigint.*n:double"):
        run("n double", 1)
    with pytest.raises(tg.StateError, match="arguments"):
        run("n long", 1, column="fare")


# -- sketches --------------------------------------------------------------------------------------------


def numbers(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    us = seconds(0) + np.sort(rng.integers(0, 40 * SECOND, rows))
    keys = rng.integers(0, 3000, rows)
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "k": pa.array(keys, mask=rng.random(rows) < 0.1),
            "name": pa.array([f"user {key}" for key in keys]),
            "x": pa.array(rng.normal(0, 100, rows).round(2)),
            "price": pa.array(rng.integers(0, 10**6, rows))
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(9, 2)),
        }
    )


def rank_error(found: float, wanted: float, values: Any) -> float:
    """How far the rank of a value lies from the wanted one."""
    below, until = (values < found).mean(), (values <= found).mean()
    return float(max(below - wanted, wanted - until, 0.0))


def test_sketches_are_within_their_stated_errors(spark: SparkSession, tmp_path: Path) -> None:
    table = numbers(12_000, 6)
    add_files(tmp_path / "in", [table.slice(i, 4000) for i in range(0, 12_000, 4000)])
    schema = "ts timestamp, k long, name string, x double, price decimal(9, 2)"
    stream = tg.stream(read_files(spark, tmp_path / "in", schema), time="ts", name="s", lateness="0 seconds")
    sink = Sink()
    query = tg.start(
        stream.window("20 seconds", slide="5 seconds")
        .agg(
            keys=F.approx_count_distinct("k", 0.02),
            names=F.approx_count_distinct(F.struct("name", F.col("k") % 2)),
            rough=F.percentile_approx("x", [0.1, 0.5, 0.99], 100),
            exact=F.approx_percentile("x", F.lit(0.5)),
            whole=F.expr("approx_percentile(k, 0.9, 1000)"),
            price=F.percentile_approx("price", 0.25),
            nothing=F.percentile_approx(F.when(F.col("k") < 0, F.col("k")), [0.5]),
            nobody=F.approx_count_distinct(F.when(F.col("k") < 0, F.col("k"))),
            n=F.count("k"),
            spread=spread(True, "x"),
        )
        .write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    data = table.to_pandas()
    at = data.ts.astype("int64") // (1000 if data.ts.dt.unit == "ns" else 1)
    assert len(sink.rows) == 7
    for row in dicts(sink):
        start = microseconds(row["window_start"])
        mine = data[(at >= start) & (at < start + 20 * SECOND)]
        known = mine.k.dropna()
        assert row["n"] == len(known)
        assert row["keys"] == pytest.approx(known.nunique(), rel=3 * 0.02)
        pairs = mine.assign(odd=mine.k % 2)[["name", "odd"]].drop_duplicates()
        assert row["names"] == pytest.approx(len(pairs), rel=3 * 0.05)
        for found, wanted in zip(row["rough"], (0.1, 0.5, 0.99), strict=True):
            assert rank_error(found, wanted, mine.x.to_numpy()) <= 2 / 100
        # A sketch that holds more values than there are leaves none out.
        assert row["exact"] == np.sort(mine.x.to_numpy())[int(np.ceil(0.5 * len(mine))) - 1]
        assert isinstance(row["whole"], int)
        assert rank_error(row["whole"], 0.9, known.to_numpy()) <= 2 / 1000
        assert row["price"] == sorted(mine.price)[int(np.ceil(0.25 * len(mine))) - 1]
        assert row["nothing"] is None
        assert row["nobody"] == 0
        assert row["spread"] == mine.x.max() - mine.x.min()


# -- refused ---------------------------------------------------------------------------------------------


def anything(column: Any = "n", **attributes: Any) -> tg.Aggregator:
    class Anything(tg.Aggregator):
        state, returns = "n long", "long"

        def zero(self) -> tuple[int]:
            return (0,)

        def update(self, state: tuple[int], array: Any) -> tuple[int]:
            return state

        def finish(self, state: tuple[int]) -> int:
            return 0

    made = Anything(column)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (
            lambda: F.collect_set(F.create_map("word", "n")),
            "AGGREGATE_NOT_COMPUTABLE.*Spark cannot compute.*map",
        ),
        (lambda: F.approx_count_distinct("n", 0.0001), r"'x': approx_count_distinct .*rsd=0\.0001"),
        (lambda: F.percentile_approx("n", 0.5, 100_000), "accuracy=100000"),
        (lambda: F.percentile_approx("n", 1.5), "AGGREGATE_PERCENTAGE_INVALID.*between 0 and 1"),
        (
            lambda: F.percentile_approx("n", F.col("fare")),
            "AGGREGATE_CONSTANT_REQUIRED.*percentage must be a constant",
        ),
        (lambda: F.percentile_approx("word", 0.5), "takes numeric types"),
        (lambda: F.hll_sketch_agg("n"), "hll_sketch_agg.*approx_count_distinct"),
        (lambda: F.listagg("word"), "AGGREGATE_UNKNOWN.*listagg.*tg.Aggregator"),
        (
            lambda: F.sum("nowhere"),
            "AGGREGATE_ARGUMENT_INVALID.*'x': Spark cannot resolve.*nowhere.*ts, n, fare",
        ),
        (lambda: anything("nowhere"), "AGGREGATE_ARGUMENT_INVALID.*nowhere"),
        (lambda: anything(3), "AGGREGATOR_COLUMNS_INVALID.*names or Spark expressions"),
        (lambda: anything(state="n lang"), "AGGREGATOR_TYPE_INVALID.*type in state.*n lang"),
        (lambda: anything(state="long"), "AGGREGATOR_STATE_UNNAMED.*fields of a state need names"),
        (lambda: anything(state="n long, s double"), r"AGGREGATOR_ZERO_TYPE.*zero does not return.*\(0,\)"),
        (lambda: anything(state="n array<long>"), "zero does not return"),
        (lambda: anything(returns="much"), "type in returns"),
        (lambda: anything(lock=threading.Lock()), "'x' cannot be sent"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_a_reason(
    spark: SparkSession, aggregate: Callable[[], Any], says: str
) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    stream = tg.stream(frame, time="ts", name="rides", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match=says):
        tg.start(stream.window("1 second").agg(x=aggregate()).write_to(Sink()))


def test_equal_partials_of_equal_arguments_are_computed_once(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], f"{TIME} long, {SCHEMA}")
    taken = taken_apart(
        frame,
        [
            ("mean", F.avg(F.col("fare") + 1)),
            ("n", F.expr("count(fare + 1)")),
            ("others", F.count("n")),
            ("low", spread(False)),
            ("again", spread(False)),
            ("state", spread(True)),
            ("own", spread(True)),
        ],
    )
    assert taken.described == ["(fare + CAST(1 AS DOUBLE))", "n", "fare"]
    columns = [result.columns for result, _ in taken.results]
    assert columns[0][1:] == columns[1]
    assert columns[3] == columns[4]
    assert len({*columns[2], *columns[3], *columns[5], *columns[6]}) == 4


def test_groups_that_differ_in_where_their_nulls_are_stay_apart(spark: SparkSession) -> None:
    rows = [(1, None, 7), (2, 7, None), (3, None, None), (4, 7, 7), (5, None, 7)]
    frame = spark.createDataFrame([(seconds(at), a, b) for at, a, b in rows], "us long, a int, b int")
    stream = tg.stream(
        frame.select(F.timestamp_micros("us").alias("ts"), "a", "b"),
        time="ts",
        name="s",
        lateness="0 seconds",
    )
    sink = Sink()
    tg.start(stream.window("10 seconds", by=["a", "b"]).agg(n=F.count("*")).write_to(sink))
    assert Counter(row[2:] for row in sink.rows) == Counter(
        [(None, 7, 2), (7, None, 1), (None, None, 1), (7, 7, 1)]
    )
