"""Balancing on Spark: rows go where a plain loop sends them, and whatever moves, results stay whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.oracle.expected import naive
from tests.oracle.plain_routing import copies
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    read_files,
    seconds,
    stream_table,
)
from tests.spark.restless import Restless

import tidegate as tg
from tidegate.api.balance import StrategyName, Topology
from tidegate.api.joins.join_node import How
from tidegate.control.balance import balancing
from tidegate.control.balance.rerouting import first_routing
from tidegate.driver.frames.routing_frames import _copied, instance_of
from tidegate.join.within import Within
from tidegate.model.routing import Routing
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.worker.runtime.layout import CODE, INSTANCE, ROLE, ROW, TAG, TIME

PARTITIONS = 8
WINDOW_US = 3_000_000


@dataclass(frozen=True)
class Side:
    tag: int


@dataclass(frozen=True)
class Layout:
    """As much of a join's layout as routing asks for."""

    how: str
    partitions: int = PARTITIONS
    right: Side = Side(2)
    tracked: tuple[bool, bool] = (True, True)


def wanted(
    keys: dict[int, tuple[int, ...]], spread: int = 1, instances: int = 3, columns: int = 1
) -> Assignment:
    grids = {code: columns for code, places in keys.items() if len(places) % columns == 0}
    return Assignment(instances, tuple(p % instances for p in range(PARTITIONS)), spread, keys, grids)


def test_spark_sends_copies_where_the_plain_loop_does(spark: SparkSession) -> None:
    rows = spark.range(0, 400, 1, 2).selectExpr(
        f"cast(id % 4 as short) AS {TAG}", f"id AS {TIME}", f"xxhash64(id % 7) AS {CODE}", "id AS l0"
    )
    codes = [int(row[0]) % 2**64 for row in spark.range(3).selectExpr("xxhash64(id)").collect()]
    split = {codes[0]: (0, 2), codes[1]: (1,), codes[2]: (2, 1, 0)}
    wide = wanted({**split, codes[2]: (3, 1, 0, 2)}, instances=4, columns=2)
    for routing, how in (
        (first_routing([wanted(split)]), "inner"),
        (first_routing([wanted(split)]), "left_semi"),
        (first_routing([wide]), "full"),
        (first_routing([wide, wide]), "left"),
        (first_routing([wanted({}, spread=2)]), "full"),
        (first_routing([wanted(split), wanted({codes[2]: (0, 1)}, instances=2)]), "left"),
        (first_routing([wanted({}, spread=3), wanted(split)]), "left_semi"),
    ):
        copied = _copied(rows, Layout(how), routing)  # type: ignore[arg-type]
        table = copied.select(TAG, CODE, "l0", ROW, INSTANCE, ROLE).toArrow().to_pydict()
        got = Counter(zip(table["l0"], table[INSTANCE], table[ROLE], strict=True))
        assert got == expected_copies(table, routing, how)


def expected_copies(table: dict[str, list[Any]], routing: Routing, how: str) -> Counter[tuple[int, int, int]]:
    """What the plain loop says about the rows that Spark has copied, by Spark's own lots."""
    once = {row: i for i, row in enumerate(table["l0"])}
    expected: Counter[tuple[int, int, int]] = Counter()
    for tag in range(4):
        mine = [i for i in once.values() if table[TAG][i] == tag]
        made = copies(
            np.array([table[CODE][i] for i in mine], np.int64).view(np.uint64),
            np.array([table[ROW][i] for i in mine], np.int64),
            tag // 2,
            routing,
            PARTITIONS,
            keyless=tag % 2 == 1,
            semi=how == "left_semi",
        )
        for row, instance, role in zip(made.rows, made.instances, made.roles, strict=True):
            expected[table["l0"][mine[row]], int(instance), int(role)] += 1
    return expected


def test_spark_finds_the_one_instance_of_a_key_that_moved(spark: SparkSession) -> None:
    code = int(spark.range(1).selectExpr("xxhash64(id)").collect()[0][0])
    routing = first_routing([wanted({code % 2**64: (2,)})])
    rows = spark.range(0, 1).selectExpr(f"cast(0 as short) AS {TAG}", f"{code}L AS {CODE}")
    assert rows.select(instance_of(routing, PARTITIONS)).collect()[0][0] == 2


def skewed(batches: int, rows: int) -> dict[str, list[list[tuple[int, int | None, int, int]]]]:
    """Two streams in which two keys have most of the rows, and null keys come too: rows per batch."""
    rng = np.random.default_rng(5)
    streams: dict[str, list[list[tuple[int, int | None, int, int]]]] = {"a": [], "b": []}
    for made in streams.values():
        for batch in range(batches):
            keys = rng.choice([1, 1, 1, 1, 2, 2, None, *range(3, 40)], rows).tolist()
            times = (seconds(batch) + np.sort(rng.integers(0, 1_000_000, rows))).tolist()
            numbers = range(batch * rows, (batch + 1) * rows)
            made.append([(at, k, n, 0) for at, k, n in zip(times, keys, numbers, strict=True)])
    return streams


def expected_rows(streams: dict[str, list[list[tuple[int, int | None, int, int]]]], how: str) -> Counter[Any]:
    """Keys and numbers of the joined rows."""
    left, right = ([(k, n, at) for rows in streams[name] for at, k, n, _ in rows] for name in "ab")
    joined = naive(left, right, Within(-WINDOW_US, WINDOW_US), how, (1, 1))
    return Counter({row[:-1]: count for row, count in joined.items()})


def got_rows(sink: Sink, how: str) -> Counter[Any]:
    place = {name: i for i, name in enumerate(sink.columns)}
    shown = ("k", "n") if how in ("left_semi", "left_anti") else ("k", "n", "n_right")
    return Counter(tuple(row[place[name]] for name in shown) for row in sink.rows)


def flow(spark: SparkSession, home: Path, how: How, sink: Sink) -> tg.Output:
    a, b = (
        tg.stream(read_files(spark, home / name, STREAM_SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in "ab"
    )
    return a.join(b.select("ts", "k", "n"), on="k", within="3 seconds", how=how, name="near").write_to(
        sink, name="j"
    )


def run(
    spark: SparkSession, home: Path, how: How, balance: tg.Balance, instances: int = 3, rows: int = 80
) -> list[dict[str, Any]]:
    """Checks what a flow over skewed streams gives, and returns what was told of its balance."""
    streams, sink = skewed(5, rows), Sink()
    for name, batches in streams.items():
        # At the end time moves on, so that everything that waits comes out; these two wait themselves.
        add_files(home / name, [*map(stream_table, batches), stream_table([(seconds(100), None, -1, 0)])])
    query = tg.start(
        flow(spark, home, how, sink),
        checkpoint=str(home / "ck"),
        available_now=True,
        balance=balance,
        instances=instances,
        partitions=12,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert got_rows(sink, how) == expected_rows(streams, how)
    return [progress["balance"]["near"] for progress in query.telemetry]


MOVES: list[tuple[StrategyName, Topology, How]] = [
    ("auto", "together", "inner"),
    ("fastjoin", "together", "left"),
    ("ls_stream", "biclique", "inner"),
    ("contrand", "biclique", "full"),
    ("random", "together", "left_semi"),
]


@pytest.mark.parametrize(("strategy", "topology", "how"), MOVES)
def test_every_strategy_gives_the_same_rows(
    spark: SparkSession, tmp_path: Path, strategy: StrategyName, topology: Topology, how: How
) -> None:
    told = run(spark, tmp_path, how, tg.Balance(strategy=strategy, topology=topology))
    assert all(len(one["seconds"]) == one["instances"] == 3 for one in told)


@pytest.mark.parametrize("how", ["full", "left_semi"])
def test_keys_that_move_and_split_in_every_batch_change_nothing(
    spark: SparkSession, tmp_path: Path, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balancing, "strategy_of", lambda balance: Restless())
    told = run(spark, tmp_path, how, tg.Balance())
    assert max(one["split_keys"] for one in told) > 0
    assert sum(one["moved"]["rows"] for one in told if one["moved"]) > 0
    assert max(one["version"] for one in told) >= 4


def test_a_query_goes_on_with_another_number_of_instances(spark: SparkSession, tmp_path: Path) -> None:
    streams, sink = skewed(4, 60), Sink()

    def arrive(batches: slice) -> None:
        for name in "ab":
            add_files(tmp_path / name, [stream_table(rows) for rows in streams[name][batches]])

    arrive(slice(0, 2))
    query = tg.start(
        flow(spark, tmp_path, "inner", sink), checkpoint=str(tmp_path / "ck"), instances=2, partitions=12
    )
    query.process_all_available()
    query.rescale(4)
    with pytest.raises(tg.FlowError, match=r"BALANCE_INSTANCES_INVALID.*13 instances, 12 partitions"):
        query.rescale(13)
    arrive(slice(2, 4))
    query.process_all_available()
    query.stop()
    assert query.telemetry[-1]["balance"]["near"]["instances"] == 4
    assert got_rows(sink, "inner") == expected_rows(streams, "inner")


@pytest.mark.parametrize(("topology", "how"), [("together", "full"), ("biclique", "inner")])
def test_hot_keys_are_split_before_their_first_row_is_stored(
    spark: SparkSession, tmp_path: Path, topology: Topology, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few rows are not worth scattering: here it is free.
    monkeypatch.setattr(balancing, "strategy_of", lambda balance: Auto(scattering=0.0))
    told = run(spark, tmp_path, how, tg.Balance(topology=topology), instances=4, rows=300)
    assert told[0]["split_keys"] > 0
    # Nothing lay anywhere yet, so nothing has moved.
    assert told[0]["version"] == 0
    assert told[0]["moved"] is None


def test_keys_are_looked_at_until_there_were_rows_and_only_where_sources_feed_the_join(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[list[str]] = []
    begun = balancing.begun

    def watched(settings: Any, manifest: Any, ahead: Any) -> Any:
        looked.append(sorted(ahead))
        return begun(settings, manifest, ahead)

    monkeypatch.setattr(balancing, "begun", watched)
    streams, sink = skewed(3, 40), Sink()
    add_files(tmp_path / "a", [stream_table([])])
    add_files(tmp_path / "b", [stream_table([])])
    a, b = (
        tg.stream(
            read_files(spark, tmp_path / name, STREAM_SCHEMA), time="ts", name=name, lateness="0 seconds"
        )
        for name in "ab"
    )
    joined = a.join(b.select("ts", "k", "n"), on="k", within="3 seconds", name="near")
    twice = joined.select("ts", "k").join(b.select("ts", "k"), on="k", within="3 seconds")
    query = tg.start(
        joined.write_to(sink, name="once"),
        twice.write_to(Sink(), name="twice"),
        checkpoint=str(tmp_path / "ck"),
        instances=2,
        partitions=8,
    )
    query.process_all_available()
    before = len(looked)
    for name in "ab":
        add_files(tmp_path / name, [stream_table(rows) for rows in streams[name]])
    query.process_all_available()
    query.stop()
    assert not any(looked[:before])
    assert [one for one in looked if one] == [["near"]]
    assert got_rows(sink, "inner") == expected_rows(streams, "inner")
